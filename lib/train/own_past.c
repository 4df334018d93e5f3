/* Scheduled sampling (Bengio et al. 2015, "Scheduled Sampling for Sequence Prediction with Recurrent Neural
 * Networks"): some past actions of a batch become what the policy itself decides there, so that it learns from
 * a past like the one it has in play. As one pass of its own over the batch with the recorded past
 * (Mihaylova & Martins 2019, "Scheduled Sampling for Transformers"): an approximation, for a decision does not
 * see the decisions that replaced others before it. Gradients do not flow through decisions.
 *
 * Numbers of update u are those of the stream (seed, u): row r of batch `part` has 1 + L of them from
 * (part * B*T + r) * S on, with S the next multiple of 4: one says whether the row's decision is
 * taken, L draw it. Of ranks that meet, B and r are of all their lanes; else part is k * 2^20 + part on rank k. */
#include "train/ranks.h"

bool xph_own_past_check(const exphil_model *model, const exphil_trainer_config *config, exphil_error *error)
{
    if (!(config->own_past >= 0.0 && config->own_past <= 1.0))
        (void)xph_fail(error, EXPHIL_E_INVALID, "trainer config: own_past is %g, must lie in 0..1",
                       config->own_past);
    else if (config->own_past_ramp_updates < 0)
        (void)xph_fail(error, EXPHIL_E_INVALID,
                       "trainer config: own_past_ramp_updates is %lld, must be 0 or more",
                       (long long)config->own_past_ramp_updates);
    else if (config->own_past > 0.0 && xph_model_shape_of(model)->slots == 0)
        (void)xph_fail(error, EXPHIL_E_INVALID,
                       "trainer config: own_past is %g, but the model has no past actions", config->own_past);
    else
        return true;
    return false;
}

/* ---- making and freeing ------------------------------------------------------------------------------------------ */

/* Cuts 64-byte aligned parts of a block; without base it only measures. */
static void *cut(unsigned char *base, size_t *at, size_t bytes)
{
    void *part = base ? base + *at : NULL;
    *at += (bytes + 63) / 64 * 64;
    return part;
}

static size_t cut_host(const xph_feed *feed, xph_own_past *own)
{
    const xph_model_shape *shape = xph_model_shape_of(feed->model);
    size_t rows = (size_t)(feed->batch * feed->time), at = 0;
    own->noise = cut(own->memory, &at, rows * (size_t)shape->logits * sizeof(float));
    own->drawn = cut(own->memory, &at, rows * (size_t)shape->heads * sizeof(int32_t));
    own->past = cut(own->memory, &at, rows * (size_t)(shape->slots * shape->heads) * sizeof(int32_t));
    own->taken = cut(own->memory, &at, rows);
    return at;
}

static size_t cut_device(const xph_feed *feed, xph_own_past *own)
{
    const xph_model_shape *shape = xph_model_shape_of(feed->model);
    size_t rows = (size_t)(feed->batch * feed->time), at = 0;
    own->d_noise = own->noise;
    own->d_drawn = own->drawn;
    if (feed->device->backend->host_memory) return at;
    own->d_noise = cut(own->d_memory, &at, rows * (size_t)shape->logits * sizeof(float));
    own->d_drawn = cut(own->d_memory, &at, rows * (size_t)shape->heads * sizeof(int32_t));
    return at;
}

exphil_status xph_own_past_make(exphil_trainer *trainer, exphil_error *error)
{
    xph_own_past *own = &trainer->own_past;
    const xph_feed *feed = &trainer->feed;
    const xph_backend *backend = trainer->device->backend;
    uint32_t flags = XPH_NET_DRAWS_ALL | XPH_NET_PRECISION(trainer->precision);
    void *block = NULL;
    if (own->share == 0.0) return EXPHIL_OK;
    XPH_TRY(xph_net_create(trainer->model, feed->batch / feed->shards, feed->time, flags, &own->net, error));
    exphil_status status = backend->event_create(trainer->device, 0, &own->ready);
    if (status < 0)
        return xph_fail_device(error, trainer->device, status, "trainer: the device made no event");
    own->memory_bytes = cut_host(feed, own);
    status = backend->host_alloc(trainer->device, own->memory_bytes, &block);
    if (status < 0) return xph_no_device_memory(error, trainer->device, status, own->memory_bytes);
    own->memory = block;
    (void)cut_host(feed, own);
    own->d_memory_bytes = cut_device(feed, own);
    if (own->d_memory_bytes == 0) return EXPHIL_OK;
    status = backend->alloc(trainer->device, own->d_memory_bytes, &block);
    if (status < 0) return xph_no_device_memory(error, trainer->device, status, own->d_memory_bytes);
    own->d_memory = block;
    (void)cut_device(feed, own);
    return EXPHIL_OK;
}

void xph_own_past_drop(exphil_trainer *trainer)
{
    const xph_backend *backend = trainer->device->backend;
    xph_own_past *own = &trainer->own_past;
    if (own->net) backend->stream_wait(xph_net_stream(own->net));
    if (own->d_memory) backend->free(trainer->device, own->d_memory, own->d_memory_bytes);
    if (own->memory) backend->host_free(trainer->device, own->memory, own->memory_bytes);
    if (own->ready) backend->event_destroy(own->ready);
    xph_net_destroy(own->net);
    *own = (xph_own_past){.share = own->share, .ramp = own->ramp, .seed = own->seed};
}

/* ---- an update ----------------------------------------------------------------------------------------------------- */

/* Where the rows of this rank's batch begin among all that have numbers in the update. */
static uint64_t first_row(const exphil_trainer *trainer, int64_t part)
{
    const xph_feed *feed = &trainer->feed;
    int64_t before = 0;
    if (!xph_ranks_meet(trainer))
        return ((uint64_t)trainer->communicator.rank << 20 | (uint64_t)part) *
               (uint64_t)(feed->batch * feed->time);
    int64_t lanes = xph_ranks_lanes(trainer, &before);
    return (uint64_t)((part * lanes + before) * feed->time);
}

/* Which decisions are taken, and the noise that draws them: that of others is not looked at, but must lie in (0,1). */
static void draw(const exphil_trainer *trainer, int64_t number, int64_t part)
{
    const xph_own_past *own = &trainer->own_past;
    int64_t rows = trainer->feed.batch * trainer->feed.time,
            width = xph_model_shape_of(trainer->model)->logits, numbers = (width + 4) / 4 * 4;
    double share = number < own->ramp ? own->share * (double)number / (double)own->ramp : own->share;
    const uint64_t first = first_row(trainer, part);
    for (int64_t r = 0; r < rows; r++) {
        xph_rng rng = {.seed = own->seed,
                       .stream = XPH_RNG_OWN | (uint64_t)number << 8,
                       .position = (first + (uint64_t)r) * (uint64_t)numbers};
        float *noise = own->noise + r * width;
        own->taken[r] = (double)xph_rng_float(&rng) < share;
        if (own->taken[r])
            xph_rng_floats(&rng, noise, width);
        else
            for (int64_t i = 0; i < width; i++) noise[i] = 0.5f;
    }
}

/* Shard after shard, as the batch is trained. */
static exphil_status sample(exphil_trainer *trainer)
{
    const xph_own_past *own = &trainer->own_past;
    const xph_model_shape *shape = xph_model_shape_of(trainer->model);
    xph_feed *feed = &trainer->feed;
    const int64_t rows = xph_feed_rows(feed);
    xph_sample_head how[EXPHIL_HEADS_MAX];
    exphil_status status = EXPHIL_OK;
    for (int h = 0; h < EXPHIL_HEADS_MAX; h++) how[h] = (xph_sample_head){1.0f, 0.5f, 0.5f, 0};
    for (int64_t s = 0; status >= 0 && s < feed->shards; s++) {
        xph_net_io io;
        feed->shard = s;
        xph_feed_io(feed, &io);
        io.actions = NULL;
        status = xph_net_sample(own->net, xph_trainer_seen(trainer), trainer->packed, &io, how,
                                own->d_noise + s * rows * shape->logits, NULL,
                                own->d_drawn + s * rows * shape->heads);
    }
    feed->shard = 0;
    return status;
}

/* The policy's decisions on all rows of the batch that was taken, with the recorded past, from the state that the
 * batch begins with. The state that this pass leaves is written over by the next. */
static exphil_status decide(exphil_trainer *trainer)
{
    const xph_own_past *own = &trainer->own_past;
    const xph_backend *backend = trainer->device->backend;
    const xph_model_shape *shape = xph_model_shape_of(trainer->model);
    xph_stream *stream = xph_net_stream(own->net);
    size_t rows = (size_t)(trainer->feed.batch * trainer->feed.time);
    XPH_TRY(backend->event_mark(own->ready, xph_net_stream(trainer->feed.net)));
    XPH_TRY(backend->stream_follow(stream, own->ready));
    if (own->d_noise != own->noise)
        XPH_TRY(
            backend->upload(stream, own->d_noise, own->noise, rows * (size_t)shape->logits * sizeof(float)));
    XPH_TRY(sample(trainer));
    if (own->d_drawn != own->drawn)
        XPH_TRY(backend->download(stream, own->drawn, own->d_drawn,
                                  rows * (size_t)shape->heads * sizeof(int32_t)));
    return backend->stream_wait(stream);
}

/* Past actions that a row sees: of several delays with its own, in padding none. */
static int64_t seen_slots(const xph_told *told, const xph_model_shape *shape, const exphil_batch *batch,
                          int64_t row)
{
    if (!told->delays) return shape->slots;
    int32_t id = batch->conditions[row * shape->told + told->conditions];
    return id ? xph_told_slots(told->delay[id - 1], shape->delay, shape->slots) : 0;
}

/* A decision that is taken stands wherever it is past within its episode and batch, but not where the past was
 * dropped, nor in a slot that the row does not see. */
static void mix(const exphil_trainer *trainer, const exphil_batch *batch)
{
    const xph_own_past *own = &trainer->own_past;
    const xph_model_shape *shape = xph_model_shape_of(trainer->model);
    const xph_told *told = xph_model_told(trainer->model);
    int64_t time = batch->time, heads = shape->heads, slots = shape->slots;
    size_t bytes = (size_t)heads * sizeof(int32_t);
    memcpy(own->past, batch->past, bytes * (size_t)(batch->batch * time * slots));
    for (int64_t r = 0; r < batch->batch * time; r++) {
        if (batch->dropped && batch->dropped[r]) continue;
        int64_t seen = seen_slots(told, shape, batch, r);
        for (int64_t s = 0; s < seen && s < r % time && !batch->reset[r - s]; s++)
            if (own->taken[r - 1 - s])
                memcpy(own->past + (r * slots + s) * heads, own->drawn + (r - 1 - s) * heads, bytes);
    }
}

exphil_status xph_own_past_take(exphil_trainer *trainer, const exphil_batch *batch, int64_t number,
                                int64_t part)
{
    xph_own_past *own = &trainer->own_past;
    xph_feed *feed = &trainer->feed;
    if (!own->net) return EXPHIL_OK;
    draw(trainer, number, part);
    XPH_TRY(decide(trainer));
    mix(trainer, batch);
    return xph_feed_past(feed, own->past);
}
