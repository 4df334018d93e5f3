/* A feed carries batches to the device and runs forward and loss on them: the part that training and evaluation share. */
#include "train/train.h"

/* Device blocks of a feed, in the order of feed->bytes. */
typedef struct feed_block {
    void **address;
    size_t bytes;
} feed_block;
enum { FEED_INPUTS = 6, FEED_BLOCKS = 11 };

static bool block_bytes(int64_t a, int64_t b, int64_t c, size_t element, size_t *bytes)
{
    size_t size = element;
    if (!xph_size_mul(size, (size_t)a, &size) || !xph_size_mul(size, (size_t)b, &size) ||
        !xph_size_mul(size, (size_t)c, &size) || !xph_size_align(size ? size : 1, 64, bytes))
        return false;
    return true;
}

static bool size_blocks(const xph_feed *feed, size_t bytes[FEED_BLOCKS])
{
    const xph_model_shape *shape = xph_model_shape_of(feed->model);
    int64_t rows = feed->batch * feed->time;
    return block_bytes(rows, shape->floats, 1, sizeof(float), &bytes[0]) &&
           block_bytes(rows, 1, 1, sizeof(float), &bytes[1]) &&
           block_bytes(rows, shape->ids, 1, sizeof(int32_t), &bytes[2]) &&
           block_bytes(rows, shape->slots, shape->heads, sizeof(int32_t), &bytes[3]) &&
           block_bytes(rows, shape->heads, 1, sizeof(int32_t), &bytes[4]) &&
           block_bytes(rows, 1, 1, sizeof(uint8_t), &bytes[5]) &&
           block_bytes(feed->batch, shape->state, 1, shape->real_bytes, &bytes[6]) &&
           block_bytes(feed->batch, shape->state, 1, shape->real_bytes, &bytes[7]) &&
           block_bytes(rows, shape->logits, 1, shape->real_bytes, &bytes[8]) &&
           block_bytes(shape->heads, 1, 1, sizeof(double), &bytes[9]) &&
           block_bytes(rows, shape->heads, 1, sizeof(double), &bytes[10]);
}

static void list_blocks(xph_feed *feed, void **address[FEED_BLOCKS])
{
    for (int i = 0; i < FEED_INPUTS; i++) address[i] = &feed->own[i];
    address[6] = &feed->state[0];
    address[7] = &feed->state[1];
    address[8] = &feed->dlogits;
    address[9] = (void **)&feed->sums;
    address[10] = (void **)&feed->rows_loss;
}

void xph_feed_destroy(xph_feed *feed)
{
    if (!feed->device) return;
    void **address[FEED_BLOCKS];
    list_blocks(feed, address);
    for (int i = 0; i < FEED_BLOCKS; i++)
        if (*address[i]) feed->device->backend->free(feed->device, *address[i], feed->bytes[i]);
    xph_net_destroy(feed->net);
    memset(feed, 0, sizeof *feed);
}

static exphil_status allocate_blocks(xph_feed *feed, exphil_error *error)
{
    void **address[FEED_BLOCKS];
    list_blocks(feed, address);
    if (!size_blocks(feed, feed->bytes))
        return xph_fail(error, EXPHIL_E_INVALID, "a batch of %lld x %lld frames is too large",
                        (long long)feed->batch, (long long)feed->time);
    for (int i = feed->device->backend->host_memory ? FEED_INPUTS : 0; i < FEED_BLOCKS; i++)
        if (feed->device->backend->alloc(feed->device, feed->bytes[i], address[i]) < 0)
            return xph_no_memory(feed->bytes[i], error);
    return EXPHIL_OK;
}

exphil_status xph_feed_create(const exphil_model *model, int64_t batch, int64_t time, uint32_t net_flags,
                              xph_feed *feed, exphil_error *error)
{
    xph_feed made = {.model = model, .batch = batch, .time = time};
    made.device = xph_context_backend(xph_model_context(model));
    exphil_status status = xph_net_create(model, batch, time, net_flags, &made.net, error);
    if (status >= 0) status = allocate_blocks(&made, error);
    if (status >= 0) {
        made.state_bytes =
            (size_t)batch * (size_t)xph_model_shape_of(model)->state * xph_model_shape_of(model)->real_bytes;
        xph_stream *stream = xph_net_stream(made.net);
        status = made.device->backend->zero(stream, made.state[0], made.bytes[6]);
        if (status >= 0) status = made.device->backend->zero(stream, made.state[1], made.bytes[7]);
        if (status < 0) xph_fail(error, status, "the device could not clear its state");
    }
    if (status < 0) {
        xph_feed_destroy(&made);
        return status;
    }
    *feed = made;
    return EXPHIL_OK;
}

/* Where the device reads part i of a batch: a copy of its own, or the host's. An absent or empty part is not read. */
static exphil_status take_input(const xph_feed *feed, int i, const void *from, int64_t width, size_t element,
                                const void **at)
{
    *at = feed->own[i] ? feed->own[i] : from;
    if (width == 0 || !feed->own[i]) return EXPHIL_OK;
    return feed->device->backend->upload(xph_net_stream(feed->net), feed->own[i], from,
                                         (size_t)(feed->batch * feed->time * width) * element);
}

static exphil_status take_batch(xph_feed *feed, const exphil_batch *batch)
{
    const xph_model_shape *shape = xph_model_shape_of(feed->model);
    const void *at[FEED_INPUTS];
    XPH_TRY(take_input(feed, 0, batch->floats, shape->floats, sizeof(float), &at[0]));
    XPH_TRY(take_input(feed, 1, batch->mask, 1, sizeof(float), &at[1]));
    XPH_TRY(take_input(feed, 2, batch->ids, shape->ids, sizeof(int32_t), &at[2]));
    XPH_TRY(take_input(feed, 3, batch->past, shape->slots * shape->heads, sizeof(int32_t), &at[3]));
    XPH_TRY(take_input(feed, 4, batch->actions, shape->heads, sizeof(int32_t), &at[4]));
    XPH_TRY(take_input(feed, 5, batch->reset, 1, sizeof(uint8_t), &at[5]));
    feed->floats = at[0];
    feed->mask = at[1];
    feed->ids = at[2];
    feed->past = at[3];
    feed->actions = at[4];
    feed->reset = at[5];
    return EXPHIL_OK;
}

void xph_feed_io(const xph_feed *feed, xph_net_io *io)
{
    *io = (xph_net_io){.floats = feed->floats,
                       .ids = feed->ids,
                       .past = feed->past,
                       .actions = feed->actions,
                       .reset = feed->reset,
                       .state_in = feed->state[0],
                       .state_out = feed->state[1],
                       .ld_state = xph_model_shape_of(feed->model)->state};
}

void xph_feed_swap(xph_feed *feed)
{
    void *in = feed->state[0];
    feed->state[0] = feed->state[1];
    feed->state[1] = in;
}

double xph_mask_sum(const exphil_batch *batch)
{
    double sum = 0.0;
    for (int64_t i = 0; i < batch->batch * batch->time; i++) sum += (double)batch->mask[i];
    return sum;
}

exphil_status xph_feed_forward(xph_feed *feed, const void *weights, const void *packed,
                               const xph_losses *losses, const exphil_batch *batch, double scale,
                               bool gradients, double *head_sums)
{
    const xph_model_shape *shape = xph_model_shape_of(feed->model);
    const xph_backend *backend = feed->device->backend;
    xph_stream *stream = xph_net_stream(feed->net);
    xph_net_io io;
    XPH_TRY(take_batch(feed, batch));
    xph_feed_io(feed, &io);
    XPH_TRY(xph_net_forward(feed->net, weights, packed, &io));
    xph_loss_args args = {
        .type = shape->type,
        .rows = feed->batch * feed->time,
        .heads = shape->heads,
        .logits = shape->logits,
        .head = xph_model_heads(feed->model),
        .loss = losses->head,
        .y = xph_net_logits(feed->net),
        .ldy = shape->logits,
        .actions = feed->actions,
        .lda = shape->heads,
        .mask = feed->mask,
        .scale = scale,
        .dy = gradients ? feed->dlogits : NULL,
        .lddy = shape->logits,
        .sums = feed->sums,
        .rows_loss = feed->rows_loss,
    };
    XPH_TRY(backend->run(stream, XPH_OP_LOSS, &args));
    XPH_TRY(backend->download(stream, head_sums, feed->sums, (size_t)shape->heads * sizeof(double)));
    return backend->stream_wait(stream);
}

static exphil_status take_positive(const exphil_head_spec *head, const float *given, float *copy,
                                   int64_t index, exphil_error *error)
{
    if (head->kind != EXPHIL_BERNOULLI)
        return xph_fail(error, EXPHIL_E_INVALID, "losses[%lld].positive_weight: head %s is categorical",
                        (long long)index, head->name);
    for (int32_t bit = 0; bit < head->count; bit++) {
        if (!(given[bit] > 0.0f && given[bit] <= 1e6f))
            return xph_fail(error, EXPHIL_E_INVALID, "losses[%lld].positive_weight[%d] must lie in (0, 1e6]",
                            (long long)index, bit);
        copy[bit] = given[bit];
    }
    return EXPHIL_OK;
}

static exphil_status take_one(const exphil_head_spec *head, const exphil_head_loss *given, xph_losses *losses,
                              int64_t index, exphil_error *error)
{
    xph_head_loss *loss = &losses->head[index];
    long long at = (long long)index;
    if (!(given->weight >= -1e6 && given->weight <= 1e6))
        return xph_fail(error, EXPHIL_E_INVALID, "losses[%lld].weight is out of range", at);
    if (!(given->smoothing >= 0.0 && given->smoothing < 1.0))
        return xph_fail(error, EXPHIL_E_INVALID, "losses[%lld].smoothing must lie in [0, 1)", at);
    if (given->smoothing > 0.0 && head->kind == EXPHIL_BERNOULLI)
        return xph_fail(error, EXPHIL_E_INVALID, "losses[%lld].smoothing: head %s is Bernoulli", at,
                        head->name);
    if (!(given->focal_gamma >= 0.0 && given->focal_gamma <= 100.0))
        return xph_fail(error, EXPHIL_E_INVALID, "losses[%lld].focal_gamma must lie in [0, 100]", at);
    loss->weight = given->weight == 0.0 ? 1.0 : given->weight < 0.0 ? 0.0 : given->weight;
    loss->smoothing = given->smoothing;
    loss->focal_gamma = given->focal_gamma;
    if (!given->positive_weight) return EXPHIL_OK;
    XPH_TRY(take_positive(head, given->positive_weight, losses->positive[index], index, error));
    loss->positive_weight = losses->positive[index];
    return EXPHIL_OK;
}

exphil_status xph_losses_take(const exphil_spec *spec, const exphil_head_loss *given, xph_losses *losses,
                              exphil_error *error)
{
    static const exphil_head_loss plain = {0, 0, 0, NULL};
    memset(losses, 0, sizeof *losses);
    for (int64_t i = 0; i < spec->head_count; i++)
        XPH_TRY(take_one(&spec->heads[i], given ? &given[i] : &plain, losses, i, error));
    return EXPHIL_OK;
}
