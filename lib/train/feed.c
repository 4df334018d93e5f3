/* A feed carries batches to the device and runs forward and loss on them: the part that training and
 * evaluation share.
 *
 * A device with its own memory has two slots for batches: while the device works on one, a second stream
 * fills the other. The owner may change a batch once it has been uploaded. */
#include "train/shards.h"

/* Device blocks of a feed, in the order of feed->bytes. */
enum { IDS = 2 }; /* of the inputs */
enum { STATE_IN = XPH_FEED_INPUTS, STATE_OUT, DLOGITS, DVALUES, SUMS, ROWS_LOSS };
_Static_assert(ROWS_LOSS + 1 == XPH_FEED_BLOCKS, "every block has its size in xph_feed.bytes");

static bool block_bytes(int64_t a, int64_t b, int64_t c, size_t element, size_t *bytes)
{
    size_t size = element;
    if (__builtin_mul_overflow(size, (size_t)a, &size) || __builtin_mul_overflow(size, (size_t)b, &size) ||
        __builtin_mul_overflow(size, (size_t)c, &size))
        return false;
    return xph_size_align(size ? size : 1, 64, bytes);
}

static bool size_blocks(const xph_feed *feed, size_t bytes[XPH_FEED_BLOCKS])
{
    const xph_model_shape *shape = xph_model_shape_of(feed->model);
    int64_t rows = feed->batch * feed->time, part = xph_feed_rows(feed);
    return block_bytes(rows, shape->floats, 1, sizeof(float), &bytes[0]) &&
           block_bytes(rows, 1, 1, sizeof(float), &bytes[1]) &&
           block_bytes(rows, shape->tables, 1, sizeof(int32_t), &bytes[IDS]) &&
           block_bytes(rows, shape->slots, shape->heads, sizeof(int32_t), &bytes[3]) &&
           block_bytes(rows, shape->heads, 1, sizeof(int32_t), &bytes[4]) &&
           block_bytes(rows, 1, 1, sizeof(uint8_t), &bytes[5]) &&
           block_bytes(1, 1, 1, sizeof(xph_given), &bytes[6]) &&
           block_bytes(feed->batch, shape->state, 1, shape->real_bytes, &bytes[STATE_IN]) &&
           block_bytes(feed->batch, shape->state, 1, shape->real_bytes, &bytes[STATE_OUT]) &&
           block_bytes(part, shape->logits, 1, shape->real_bytes, &bytes[DLOGITS]) &&
           (!shape->value || block_bytes(part, 1, 1, shape->real_bytes, &bytes[DVALUES])) &&
           block_bytes(shape->heads, 1, 1, sizeof(double), &bytes[SUMS]) &&
           block_bytes(part, shape->heads, 1, sizeof(double), &bytes[ROWS_LOSS]);
}

size_t xph_feed_tables_bytes(const xph_feed *feed)
{
    return xph_model_shape_of(feed->model)->told ? feed->bytes[IDS] : 0;
}

/* ---- making and freeing ----------------------------------------------------------------------------------------- */

static void free_slot(const xph_feed *feed, const xph_feed_slot *slot)
{
    const xph_backend *backend = feed->device->backend;
    for (int i = 0; i < XPH_FEED_INPUTS; i++)
        if (slot->own[i]) backend->free(feed->device, slot->own[i], feed->bytes[i]);
    if (slot->given) backend->host_free(feed->device, slot->given, sizeof *slot->given);
    if (slot->tables) backend->host_free(feed->device, slot->tables, xph_feed_tables_bytes(feed));
    if (slot->uploaded) backend->event_destroy(slot->uploaded);
    if (slot->read) backend->event_destroy(slot->read);
}

void xph_feed_destroy(xph_feed *feed)
{
    if (!feed->device) return;
    const xph_backend *backend = feed->device->backend;
    void *const block[] = {feed->state[0], feed->state[1], feed->dlogits,
                           feed->dvalues,  feed->sums,     feed->rows_loss};
    if (feed->uploads) backend->stream_wait(feed->uploads);
    if (feed->net) backend->stream_wait(xph_net_stream(feed->net));
    for (int i = 0; i < 2; i++) free_slot(feed, &feed->slot[i]);
    for (int i = STATE_IN; i < XPH_FEED_BLOCKS; i++)
        if (block[i - STATE_IN]) backend->free(feed->device, block[i - STATE_IN], feed->bytes[i]);
    if (feed->uploads) backend->stream_destroy(feed->uploads);
    xph_net_destroy(feed->net);
    memset(feed, 0, sizeof *feed);
}

static exphil_status take_block(const xph_feed *feed, size_t bytes, void **block, exphil_error *error)
{
    exphil_status status = feed->device->backend->alloc(feed->device, bytes, block);
    return status < 0 ? xph_no_device_memory(error, feed->device, status, bytes) : EXPHIL_OK;
}

static exphil_status make_slot(const xph_feed *feed, xph_feed_slot *slot, exphil_error *error)
{
    const xph_backend *backend = feed->device->backend;
    void *given = NULL;
    exphil_status status = backend->event_create(feed->device, 0, &slot->uploaded);
    if (status >= 0) status = backend->event_create(feed->device, 0, &slot->read);
    if (status < 0) return xph_fail_device(error, feed->device, status, "the device made no event");
    status = backend->host_alloc(feed->device, sizeof *slot->given, &given);
    if (status < 0) return xph_no_device_memory(error, feed->device, status, sizeof *slot->given);
    slot->given = given;
    void *tables = NULL;
    size_t tables_bytes = xph_feed_tables_bytes(feed);
    if (tables_bytes) {
        status = backend->host_alloc(feed->device, tables_bytes, &tables);
        if (status < 0) return xph_no_device_memory(error, feed->device, status, tables_bytes);
    }
    slot->tables = tables;
    for (int i = 0; !backend->host_memory && i < XPH_FEED_INPUTS; i++)
        XPH_TRY(take_block(feed, feed->bytes[i], &slot->own[i], error));
    return EXPHIL_OK;
}

static exphil_status make_blocks(xph_feed *feed, exphil_error *error)
{
    const xph_backend *backend = feed->device->backend;
    void **const block[] = {&feed->state[0], &feed->state[1],      &feed->dlogits,
                            &feed->dvalues,  (void **)&feed->sums, (void **)&feed->rows_loss};
    if (!size_blocks(feed, feed->bytes))
        return xph_fail(error, EXPHIL_E_INVALID, "a batch of %lld x %lld frames is too large",
                        (long long)feed->batch, (long long)feed->time);
    for (int i = STATE_IN; i < XPH_FEED_BLOCKS; i++)
        if (feed->bytes[i]) XPH_TRY(take_block(feed, feed->bytes[i], block[i - STATE_IN], error));
    for (int i = 0; i < 2; i++) XPH_TRY(make_slot(feed, &feed->slot[i], error));
    exphil_status status = backend->stream_create(feed->device, 0, &feed->uploads);
    if (status < 0) return xph_fail_device(error, feed->device, status, "the device made no stream");
    xph_stream *stream = xph_net_stream(feed->net);
    status = backend->zero(stream, feed->state[0], feed->bytes[STATE_IN]);
    if (status >= 0) status = backend->zero(stream, feed->state[1], feed->bytes[STATE_OUT]);
    if (status >= 0 && feed->dvalues) status = backend->zero(stream, feed->dvalues, feed->bytes[DVALUES]);
    return status < 0 ? xph_fail_device(error, feed->device, status, "the device could not clear its state")
                      : EXPHIL_OK;
}

/* Of arrays that a model may not have. */
static const int32_t *at(const int32_t *array, int64_t index)
{
    return array ? array + index : NULL;
}

static xph_loss_args loss_args(const xph_feed *feed, const xph_losses *losses, xph_control *control)
{
    const xph_model_shape *shape = xph_model_shape_of(feed->model);
    const int64_t rows = xph_feed_rows(feed), first = feed->shard * rows;
    return (xph_loss_args){
        .type = shape->type,
        .rows = rows,
        .heads = shape->heads,
        .logits = shape->logits,
        .head = xph_model_heads(feed->model),
        .loss = losses->head,
        .y = xph_net_logits(feed->net),
        .ldy = shape->logits,
        .actions = at(feed->actions, first * shape->heads),
        .lda = shape->heads,
        .mask = feed->mask ? feed->mask + first : NULL,
        .given = control ? feed->given : NULL,
        .control = control,
        .dy = control ? feed->dlogits : NULL,
        .lddy = shape->logits,
        .sums = feed->sums,
        .rows_loss = feed->rows_loss,
    };
}

static exphil_status choose_loss(xph_feed *feed, const xph_losses *losses, exphil_error *error)
{
    xph_loss_args args = loss_args(feed, losses, NULL);
    exphil_status status = xph_choose_kernel(feed->device, XPH_OP_LOSS, &args, &feed->loss);
    return status < 0 ? xph_fail_device(error, feed->device, status, "the device has no kernel for this loss")
                      : EXPHIL_OK;
}

exphil_status xph_feed_create(const exphil_model *model, const xph_losses *losses, int64_t batch,
                              int64_t time, int64_t shards, uint32_t net_flags, xph_feed *feed,
                              exphil_error *error)
{
    const xph_model_shape *shape = xph_model_shape_of(model);
    xph_feed made = {.model = model, .batch = batch, .time = time, .shards = shards};
    made.device = xph_context_backend(xph_model_context(model));
    made.state_bytes = (size_t)batch * (size_t)shape->state * shape->real_bytes;
    exphil_status status = xph_net_create(model, batch / shards, time, net_flags, &made.net, error);
    if (status >= 0) status = make_blocks(&made, error);
    if (status >= 0) status = choose_loss(&made, losses, error);
    if (status < 0) {
        xph_feed_destroy(&made);
        return status;
    }
    *feed = made;
    return EXPHIL_OK;
}

/* ---- a batch to the device -------------------------------------------------------------------------------------- */

typedef struct feed_part {
    const void *from;
    size_t bytes; /* 0: is not read */
} feed_part;

/* The net takes what a policy is told as ids behind those of the frame. */
static const int32_t *join_ids(const xph_feed *feed, const exphil_batch *batch, const xph_feed_slot *slot)
{
    const xph_model_shape *shape = xph_model_shape_of(feed->model);
    int64_t rows = feed->batch * feed->time;
    if (!shape->told) return batch->ids;
    for (int64_t r = 0; r < rows; r++) {
        int32_t *to = slot->tables + r * shape->tables;
        if (shape->ids) memcpy(to, batch->ids + r * shape->ids, (size_t)shape->ids * sizeof *to);
        memcpy(to + shape->ids, batch->conditions + r * shape->told, (size_t)shape->told * sizeof *to);
    }
    return slot->tables;
}

static void list_parts(const xph_feed *feed, const exphil_batch *batch, const int32_t *ids,
                       const xph_given *given, feed_part part[XPH_FEED_INPUTS])
{
    const xph_model_shape *shape = xph_model_shape_of(feed->model);
    size_t cells = (size_t)(feed->batch * feed->time) * 4;
    part[0] = (feed_part){batch->floats, cells * (size_t)shape->floats};
    part[1] = (feed_part){batch->mask, cells};
    part[IDS] = (feed_part){ids, cells * (size_t)shape->tables};
    part[3] = (feed_part){batch->past, cells * (size_t)(shape->slots * shape->heads)};
    part[4] = (feed_part){batch->actions, cells * (size_t)shape->heads};
    part[5] = (feed_part){batch->reset, cells / 4};
    part[6] = (feed_part){given, sizeof *given};
}

static exphil_status upload(const xph_feed *feed, const xph_feed_slot *slot,
                            const feed_part part[XPH_FEED_INPUTS])
{
    const xph_backend *backend = feed->device->backend;
    XPH_TRY(backend->stream_follow(feed->uploads, slot->read));
    for (int i = 0; i < XPH_FEED_INPUTS; i++)
        if (slot->own[i] && part[i].bytes)
            XPH_TRY(backend->upload(feed->uploads, slot->own[i], part[i].from, part[i].bytes));
    XPH_TRY(backend->event_mark(slot->uploaded, feed->uploads));
    return backend->stream_follow(xph_net_stream(feed->net), slot->uploaded);
}

exphil_status xph_feed_take(xph_feed *feed, const exphil_batch *batch, const xph_given *given)
{
    xph_feed_slot *slot = &feed->slot[feed->parity];
    feed_part part[XPH_FEED_INPUTS];
    const void *at[XPH_FEED_INPUTS];
    XPH_TRY(feed->device->backend->event_wait(slot->uploaded)); /* what was given then has left its place */
    *slot->given = *given;
    list_parts(feed, batch, join_ids(feed, batch, slot), slot->given, part);
    XPH_TRY(upload(feed, slot, part));
    for (int i = 0; i < XPH_FEED_INPUTS; i++) at[i] = slot->own[i] ? slot->own[i] : part[i].from;
    feed->floats = at[0];
    feed->mask = at[1];
    feed->ids = at[IDS];
    feed->past = at[3];
    feed->actions = at[4];
    feed->reset = at[5];
    feed->given = at[6];
    return EXPHIL_OK;
}

exphil_status xph_feed_past(xph_feed *feed, const int32_t *past)
{
    const xph_model_shape *shape = xph_model_shape_of(feed->model);
    void *own = feed->slot[feed->parity].own[3];
    if (!own) {
        feed->past = past;
        return EXPHIL_OK;
    }
    size_t cells = (size_t)(feed->batch * feed->time * shape->slots * shape->heads);
    return feed->device->backend->upload(xph_net_stream(feed->net), own, past, cells * sizeof *past);
}

exphil_status xph_feed_uploaded(const xph_feed *feed)
{
    const xph_backend *backend = feed->device->backend;
    XPH_TRY(backend->event_wait(feed->slot[0].uploaded));
    return backend->event_wait(feed->slot[1].uploaded);
}

void xph_feed_io(const xph_feed *feed, xph_net_io *io)
{
    const xph_model_shape *shape = xph_model_shape_of(feed->model);
    const int64_t first = feed->shard * xph_feed_rows(feed);
    const size_t state = (size_t)feed->shard * (feed->state_bytes / (size_t)feed->shards);
    *io = (xph_net_io){.floats = feed->floats ? feed->floats + first * shape->floats : NULL,
                       .ids = at(feed->ids, first * shape->tables),
                       .past = at(feed->past, first * shape->slots * shape->heads),
                       .actions = at(feed->actions, first * shape->heads),
                       .reset = feed->reset ? feed->reset + first : NULL,
                       .state_in = (unsigned char *)feed->state[0] + state,
                       .state_out = (unsigned char *)feed->state[1] + state,
                       .ld_state = shape->state};
}

exphil_status xph_feed_swap(xph_feed *feed)
{
    void *in = feed->state[0];
    feed->state[0] = feed->state[1];
    feed->state[1] = in;
    feed->parity = !feed->parity;
    return feed->device->backend->event_mark(feed->slot[!feed->parity].read, xph_net_stream(feed->net));
}

/* A state that was read is whole until the batch after the next swap. */
void xph_feed_swap_back(xph_feed *feed)
{
    void *in = feed->state[1];
    feed->state[1] = feed->state[0];
    feed->state[0] = in;
    feed->parity = !feed->parity;
}

double xph_mask_sum(const exphil_batch *batch, int64_t shards)
{
    const int64_t rows = batch->batch / shards * batch->time;
    double sum[XPH_SHARDS_MOST] = {0.0};
    for (int64_t s = 0; s < shards; s++) {
        sum[s] = 0.0;
        for (int64_t i = s * rows; i < (s + 1) * rows; i++) sum[s] += (double)batch->mask[i];
    }
    return xph_tree_sum(sum, shards);
}

/* ---- forward and loss ------------------------------------------------------------------------------------------- */

exphil_status xph_feed_forward(xph_feed *feed, const void *weights, const void *packed,
                               const xph_losses *losses, xph_control *control)
{
    xph_net_io io;
    xph_feed_io(feed, &io);
    XPH_TRY(xph_net_forward(feed->net, weights, packed, &io));
    const xph_loss_args args = loss_args(feed, losses, control);
    return feed->device->backend->run(xph_net_stream(feed->net), feed->loss, &args);
}

exphil_status xph_feed_learn(xph_feed *feed, const void *weights, const void *packed,
                             const xph_losses *losses, xph_control *control, void *gradients)
{
    xph_net_io io;
    xph_feed_io(feed, &io);
    const xph_loss_args args = loss_args(feed, losses, control);
    exphil_status status = EXPHIL_E_UNSUPPORTED;
    if (xph_net_fuses(feed->net))
        status = xph_net_learn(feed->net, weights, packed, &io, &args, feed->dlogits, gradients);
    if (status != EXPHIL_E_UNSUPPORTED || xph_net_fuses(feed->net)) return status;
    XPH_TRY(xph_feed_forward(feed, weights, packed, losses, control));
    return xph_net_backward(feed->net, weights, packed, &io, feed->dlogits, feed->dvalues, gradients);
}

exphil_status xph_feed_measure(xph_feed *feed, const void *weights, const void *packed,
                               const xph_losses *losses, const exphil_batch *batch, double *head_sums)
{
    const xph_backend *backend = feed->device->backend;
    xph_stream *stream = xph_net_stream(feed->net);
    const xph_given nothing = {0};
    XPH_TRY(xph_feed_take(feed, batch, &nothing));
    XPH_TRY(xph_feed_forward(feed, weights, packed, losses, NULL));
    XPH_TRY(backend->download(stream, head_sums, feed->sums,
                              (size_t)xph_model_shape_of(feed->model)->heads * sizeof(double)));
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
