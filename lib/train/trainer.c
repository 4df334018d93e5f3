/* One training run: batches in, updates of a private copy of the model's weights out. The order of all sums
 * is fixed, so a run depends on its seeds, not on the number of threads. */
#include "train/ranks.h"
#include "train/shards.h"

#define CHECKPOINT_MOST 64 /* blocks: no model has more */

void xph_trainer_drop_shape(exphil_trainer *trainer)
{
    if (trainer->feed.net) trainer->device->backend->stream_wait(xph_net_stream(trainer->feed.net));
    xph_trainer_forget(trainer);
    if (trainer->kept)
        trainer->device->backend->free(trainer->device, trainer->kept, trainer->feed.state_bytes);
    trainer->kept = NULL;
    xph_shards_drop(trainer);
    xph_split_drop(trainer);
    xph_own_past_drop(trainer);
    xph_feed_destroy(&trainer->feed);
}

void xph_resumed_drop(exphil_trainer *trainer)
{
    xph_free(trainer->context, trainer->resumed.state, trainer->resumed.state_bytes);
    trainer->resumed = (xph_resumed){.batch = 0};
}

static void free_trainer(exphil_trainer *trainer)
{
    exphil_context *context = trainer->context;
    const xph_backend *backend = trainer->device->backend;
    xph_trainer_drop_shape(trainer);
    xph_resumed_drop(trainer);
    if (trainer->weights) backend->free(trainer->device, trainer->weights, trainer->arena_bytes);
    if (trainer->rounded) backend->free(trainer->device, trainer->rounded, trainer->arena_bytes);
    if (trainer->gradients) backend->free(trainer->device, trainer->gradients, trainer->arena_bytes);
    if (trainer->packed) backend->free(trainer->device, trainer->packed, trainer->packed_bytes);
    if (trainer->norm_scratch)
        backend->free(trainer->device, trainer->norm_scratch, trainer->norm_scratch_bytes);
    if (trainer->control) backend->free(trainer->device, trainer->control, sizeof *trainer->control);
    xph_pending_destroy(trainer);
    xph_device_ranks_drop(trainer, &trainer->device_ranks);
    xph_notes_free(context, &trainer->notes);
    if (trainer->shared) xph_free(context, trainer->shared, trainer->arena_bytes);
    if (trainer->said) xph_ranks_forget(context, trainer->said, trainer->communicator.ranks);
    if (trainer->prefetcher) xph_prefetcher_release(trainer->prefetcher);
    if (trainer->optimizer) {
        atomic_store(&trainer->optimizer->attached, 0);
        xph_optimizer_release(trainer->optimizer);
    }
    if (trainer->model) xph_model_release(trainer->model);
    xph_free(context, trainer, sizeof *trainer);
    xph_context_release(context);
}

void exphil_trainer_destroy(exphil_trainer *trainer)
{
    if (trainer && atomic_fetch_sub_explicit(&trainer->references, 1, memory_order_acq_rel) == 1)
        free_trainer(trainer);
}

exphil_trainer *xph_trainer_retain(exphil_trainer *trainer)
{
    atomic_fetch_add_explicit(&trainer->references, 1, memory_order_relaxed);
    return trainer;
}

exphil_status xph_trainer_enter_open(const exphil_trainer *trainer, exphil_error *error)
{
    if (!trainer) return xph_fail(error, EXPHIL_E_INVALID, "trainer is NULL");
    XPH_TRY(xph_context_check(trainer->context, error));
    bool alone = xph_busy_enter(&((exphil_trainer *)(uintptr_t)trainer)->busy);
    return alone ? EXPHIL_OK : xph_busy_error("trainer", error);
}

exphil_status xph_trainer_enter(const exphil_trainer *trainer, exphil_error *error)
{
    XPH_TRY(xph_trainer_enter_open(trainer, error));
    if (!trainer->split.open) return EXPHIL_OK;
    xph_trainer_leave(trainer);
    return xph_fail(error, EXPHIL_E_STATE,
                    "trainer is between exphil_trainer_forward and exphil_trainer_backward or abandon");
}

void xph_trainer_leave(const exphil_trainer *trainer)
{
    xph_busy_leave(&((exphil_trainer *)(uintptr_t)trainer)->busy);
}

static exphil_status differs(const char *what, long long data, long long model, exphil_error *error)
{
    return xph_fail(error, EXPHIL_E_MISMATCH, "prefetcher's %s is %lld, the model's is %lld", what, data,
                    model);
}

exphil_status xph_trainer_check_sampling(const exphil_model *model, const exphil_sampling *sampling,
                                         const xph_told *told, exphil_error *error)
{
    const xph_model_shape *shape = xph_model_shape_of(model);
    if (sampling->mode != shape->mode) return differs("mode", sampling->mode, shape->mode, error);
    XPH_TRY(xph_told_same(told, xph_model_told(model), "prefetcher's", "the model's", error));
    if (sampling->delay_frames != shape->delay)
        return differs("delay_frames", sampling->delay_frames, shape->delay, error);
    if (sampling->action_slots != shape->slots)
        return differs("action_slots", sampling->action_slots, shape->slots, error);
    if (sampling->neutral_start != shape->neutral_start)
        return differs("neutral_start", sampling->neutral_start, shape->neutral_start, error);
    if (shape->mode == EXPHIL_MODE_WINDOW && sampling->time != shape->window)
        return differs("time", sampling->time, shape->window, error);
    return EXPHIL_OK;
}

exphil_status xph_trainer_check_data(const exphil_model *model, const exphil_prefetcher *prefetcher,
                                     exphil_error *error)
{
    const xph_model_shape *shape = xph_model_shape_of(model);
    const exphil_sampling *sampling = xph_prefetcher_sampling(prefetcher);
    const exphil_dataset *dataset = xph_prefetcher_dataset(prefetcher);
    if (xph_dataset_context(dataset) != xph_model_context(model))
        return xph_fail(error, EXPHIL_E_MISMATCH, "prefetcher and model are of different contexts");
    if (xph_dataset_spec_hash(dataset) != shape->spec_hash) {
        const exphil_spec *data = xph_dataset_spec_of(dataset), *own = xph_model_spec(model);
        return xph_fail(error, EXPHIL_E_MISMATCH,
                        "the data is %s/%s (%016llx), the model wants %s/%s (%016llx)", data->layout,
                        data->codec, (unsigned long long)xph_dataset_spec_hash(dataset), own->layout,
                        own->codec, (unsigned long long)shape->spec_hash);
    }
    return xph_trainer_check_sampling(model, sampling, xph_prefetcher_told(prefetcher), error);
}

static exphil_status check_optimizer(const exphil_model *model, const exphil_optimizer *optimizer,
                                     exphil_error *error)
{
    if (optimizer->context != xph_model_context(model))
        return xph_fail(error, EXPHIL_E_MISMATCH, "optimizer and model are of different contexts");
    if (optimizer->config_hash != xph_model_config_hash(model))
        return xph_fail(error, EXPHIL_E_MISMATCH,
                        "the optimizer was made for a model of another configuration");
    return EXPHIL_OK;
}

static exphil_status check_config(const exphil_trainer_config *config, exphil_error *error)
{
    if (config->accumulate < 0 || config->accumulate > 1000000)
        return xph_fail(error, EXPHIL_E_INVALID, "trainer config: accumulate must lie in 0..1000000");
    if (config->checkpoint_blocks < 0)
        return xph_fail(error, EXPHIL_E_INVALID, "trainer config: checkpoint_blocks must be 0 or more");
    if (config->activations != EXPHIL_TYPE_F32 && config->activations != EXPHIL_TYPE_BF16)
        return xph_fail(error, EXPHIL_E_UNSUPPORTED,
                        "trainer config: activations must be EXPHIL_TYPE_F32 or EXPHIL_TYPE_BF16");
    if (config->reduction != EXPHIL_REDUCTION_MEANS && config->reduction != EXPHIL_REDUCTION_SUMS)
        return xph_fail(error, EXPHIL_E_INVALID, "trainer config: reduction is %d, not EXPHIL_REDUCTION_...",
                        config->reduction);
    if (config->fake_quantize && config->fake_quantize != EXPHIL_TYPE_BF16 &&
        config->fake_quantize != EXPHIL_TYPE_I8)
        return xph_fail(error, EXPHIL_E_UNSUPPORTED,
                        "trainer config: fake_quantize must be 0, EXPHIL_TYPE_BF16 or EXPHIL_TYPE_I8");
    return EXPHIL_OK;
}

static exphil_status check_precision(const exphil_model *model, const exphil_trainer_config *config,
                                     exphil_error *error)
{
    const xph_backend *backend = xph_context_backend(xph_model_context(model))->backend;
    static const char *const names[] = {"f32", "tf32", "bf16", "f16"};
    const int32_t precision = config->precision;
    if (precision < EXPHIL_PRECISION_F32 || precision > EXPHIL_PRECISION_F16)
        return xph_fail(error, EXPHIL_E_INVALID, "trainer config: precision is %d, not EXPHIL_PRECISION_...",
                        precision);
    if (!(backend->precisions >> precision & 1u))
        return xph_fail(error, EXPHIL_E_UNSUPPORTED,
                        "trainer config: precision %s is for CUDA devices, this one is %s", names[precision],
                        backend->name);
    if (precision && xph_model_shape_of(model)->type != XPH_F32)
        return xph_fail(error, EXPHIL_E_UNSUPPORTED,
                        "trainer config: a model of doubles has no other precision than 0");
    if (!(config->loss_scale == 0.0 || (config->loss_scale >= 1.0 && config->loss_scale <= 0x1p24)))
        return xph_fail(error, EXPHIL_E_INVALID,
                        "trainer config: loss_scale must be 0 or lie in 1..16777216");
    return EXPHIL_OK;
}

/* Rounded weights have lost what small updates add up to. */
static exphil_status check_model(const exphil_model *model, const exphil_trainer_config *config,
                                 exphil_error *error)
{
    if (xph_model_shape_of(model)->narrow)
        return xph_fail(
            error, EXPHIL_E_UNSUPPORTED,
            "a quantised model is not trained: train the model it was made of, with fake_quantize");
    if (!config->fake_quantize) return EXPHIL_OK;
    exphil_status status = xph_model_can_round(model, config->fake_quantize, error);
    return status < 0 ? xph_fail_within(error, status, "trainer config: fake_quantize") : EXPHIL_OK;
}

exphil_status xph_communicator_take(const exphil_communicator *given, exphil_communicator *known,
                                    exphil_error *error)
{
    *known = (exphil_communicator){.struct_size = sizeof *known, .ranks = 1};
    XPH_TRY(XPH_TAKE(exphil_communicator, known, given, error));
    if (given && !known->all_reduce)
        return xph_fail(error, EXPHIL_E_INVALID, "communicator: all_reduce is NULL");
    if (known->ranks < 1 || known->rank < 0 || known->rank >= known->ranks)
        return xph_fail(error, EXPHIL_E_INVALID, "communicator: rank %d of %d ranks", known->rank,
                        known->ranks);
    return EXPHIL_OK;
}

/* The others would wait for a rank that has no memory for a trainer that meets. A rank plans for itself. */
static void tell_early(exphil_context *context, const exphil_communicator *with, const exphil_error *error)
{
    if (with->all_reduce && !xph_context_measures(context))
        xph_ranks_tell_early(with, XPH_CALL_CREATE, EXPHIL_E_MEMORY, error);
}

static exphil_status take_communicator(exphil_trainer *trainer, const exphil_trainer_config *config,
                                       exphil_error *error)
{
    const bool sums = config->reduction == EXPHIL_REDUCTION_SUMS;
    trainer->sums = sums;
    XPH_TRY(xph_communicator_take(config->communicator, &trainer->communicator, error));
    if (config->device_communicator && (config->communicator || !sums))
        return xph_fail(error, EXPHIL_E_INVALID, "trainer config: device_communicator %s",
                        sums ? "and communicator are both given" : "needs EXPHIL_REDUCTION_SUMS");
    if (config->device_communicator)
        XPH_TRY(xph_device_ranks_make(trainer, config->device_communicator, &trainer->communicator,
                                      &trainer->device_ranks, error));
    if (!trainer->communicator.all_reduce || !sums) return EXPHIL_OK;
    trainer->said = xph_ranks_said(trainer->context, trainer->communicator.ranks, error);
    if (trainer->said) return EXPHIL_OK;
    tell_early(trainer->context, &trainer->communicator, error);
    return EXPHIL_E_MEMORY;
}

static exphil_status check_saved(const exphil_trainer_config *config, const exphil_optimizer *optimizer,
                                 exphil_error *error)
{
    const int32_t which = config->saved_weights;
    if (which != EXPHIL_WEIGHTS && which != EXPHIL_WEIGHTS_AVERAGED)
        return xph_fail(error, EXPHIL_E_INVALID, "trainer config: saved_weights is %d, not a kind of weights",
                        which);
    if (which == EXPHIL_WEIGHTS_AVERAGED && !optimizer->average)
        return xph_fail(error, EXPHIL_E_INVALID,
                        "trainer config: saved_weights wants averaged weights, and ema_decay is 0");
    if (config->as_played != 0 && config->as_played != 1)
        return xph_fail(error, EXPHIL_E_INVALID, "trainer config: as_played is %d, not 0 or 1",
                        config->as_played);
    return EXPHIL_OK;
}

static exphil_status device_block(exphil_trainer *trainer, size_t bytes, void **address, exphil_error *error)
{
    exphil_status status = trainer->device->backend->alloc(trainer->device, bytes, address);
    return status < 0 ? xph_no_device_memory(error, trainer->device, status, bytes) : EXPHIL_OK;
}

static exphil_status copy_weights(exphil_trainer *trainer, exphil_error *error)
{
    const xph_backend *backend = trainer->device->backend;
    xph_stream *stream;
    exphil_status status = backend->stream_create(trainer->device, 0, &stream);
    if (status < 0)
        return xph_fail_device(error, trainer->device, status, "trainer: no stream on the device");
    status = backend->copy(stream, trainer->weights, xph_model_weights(trainer->model), trainer->arena_bytes);
    status = xph_stream_end(stream, status);
    if (status < 0)
        return xph_fail_device(error, trainer->device, status,
                               "trainer: the device could not copy the weights");
    return EXPHIL_OK;
}

exphil_status xph_trainer_share(exphil_trainer *trainer, exphil_error *error)
{
    if (!trainer->shared) trainer->shared = xph_alloc(trainer->context, trainer->arena_bytes);
    return trainer->shared ? EXPHIL_OK : xph_no_memory(trainer->arena_bytes, error);
}

static exphil_status allocate(exphil_trainer *trainer, exphil_error *error)
{
    const xph_model_shape *shape = xph_model_shape_of(trainer->model);
    const xph_backend *backend = trainer->device->backend;
    trainer->arena_bytes = (size_t)shape->weights * shape->real_bytes;
    trainer->packed_bytes = shape->packed_bytes ? shape->packed_bytes : 1;
    xph_norm2_args norm = {.type = shape->type, .count = shape->weights};
    xph_op_info info = {0};
    XPH_TRY(backend->query(trainer->device, XPH_OP_NORM2, &norm, &info));
    trainer->norm2 = info.kernel;
    trainer->norm_scratch_bytes = info.scratch_bytes ? info.scratch_bytes : 1;
    void *block = NULL;
    XPH_TRY(device_block(trainer, trainer->arena_bytes, &trainer->weights, error));
    if (trainer->fake_quantize)
        XPH_TRY(device_block(trainer, trainer->arena_bytes, &trainer->rounded, error));
    XPH_TRY(device_block(trainer, trainer->arena_bytes, &trainer->gradients, error));
    XPH_TRY(device_block(trainer, trainer->packed_bytes, &trainer->packed, error));
    XPH_TRY(device_block(trainer, trainer->norm_scratch_bytes, &trainer->norm_scratch, error));
    if (trainer->communicator.all_reduce) XPH_TRY(xph_trainer_share(trainer, error));
    XPH_TRY(device_block(trainer, sizeof *trainer->control, &block, error));
    trainer->control = block;
    XPH_TRY(xph_pending_create(trainer, error));
    XPH_TRY(xph_control_begin(trainer, trainer->loss_scale, 0, error));
    return copy_weights(trainer, error);
}

bool xph_trainer_shaped(const exphil_trainer *trainer)
{
    return trainer->feed.net || trainer->resumed.batch;
}

/* The state that a resumed run goes on from. */
static exphil_status take_resumed(const exphil_trainer *trainer)
{
    const xph_resumed *resumed = &trainer->resumed;
    const xph_backend *backend = trainer->device->backend;
    xph_stream *stream = xph_net_stream(trainer->feed.net);
    if (!resumed->state) return EXPHIL_OK;
    XPH_TRY(backend->upload(stream, trainer->feed.state[0], resumed->state, resumed->state_bytes));
    return backend->stream_wait(stream);
}

static exphil_status make_shape(exphil_trainer *trainer, int64_t batch, int64_t time, exphil_error *error)
{
    uint32_t flags = XPH_NET_TRAIN | XPH_NET_CHECKPOINT(trainer->checkpoint_blocks);
    flags |= XPH_NET_PRECISION(trainer->precision);
    if (trainer->activations == EXPHIL_TYPE_BF16) flags |= XPH_NET_BF16;
    if (trainer->as_played) flags |= XPH_NET_PLAIN;
    XPH_TRY(xph_feed_create(trainer->model, &trainer->losses, batch, time, xph_own_shards(trainer), flags,
                            &trainer->feed, error));
    XPH_TRY(xph_shards_make(trainer, error));
    const xph_model_shape *shape = xph_model_shape_of(trainer->model);
    xph_clear_args clear = {.type = shape->type, .count = batch * shape->state};
    exphil_status status = xph_choose_kernel(trainer->device, XPH_OP_CLEAR, &clear, &trainer->clear);
    if (status < 0)
        return xph_fail_device(error, trainer->device, status,
                               "trainer: the device has no kernel to clear a state");
    if (trainer->accumulate > 1 && trainer->feed.state_bytes)
        XPH_TRY(device_block(trainer, trainer->feed.state_bytes, &trainer->kept, error));
    XPH_TRY(xph_own_past_make(trainer, error));
    status = xph_trainer_refresh(trainer);
    if (status < 0)
        return xph_fail_device(error, trainer->device, status,
                               "trainer: the device could not pack the weights");
    status = take_resumed(trainer);
    if (status < 0)
        return xph_fail_device(error, trainer->device, status,
                               "trainer: the device could not take its state");
    return EXPHIL_OK;
}

exphil_status xph_trainer_shape(exphil_trainer *trainer, int64_t batch, int64_t time, exphil_error *error)
{
    bool made = trainer->feed.net != NULL;
    int64_t own_batch = made ? trainer->feed.batch : trainer->resumed.batch,
            own_time = made ? trainer->feed.time : trainer->resumed.time;
    if (xph_trainer_shaped(trainer) && (own_batch != batch || own_time != time))
        return xph_fail(error, EXPHIL_E_INVALID, "batch is %lld x %lld, this run has %lld x %lld",
                        (long long)batch, (long long)time, (long long)own_batch, (long long)own_time);
    if (made) return EXPHIL_OK;
    const int64_t joint = trainer->prefetcher ? xph_prefetcher_sampling(trainer->prefetcher)->batch
                                              : batch * trainer->communicator.ranks;
    XPH_TRY(xph_shards_check(trainer, joint, error));
    exphil_status status = make_shape(trainer, batch, time, error);
    if (status >= 0)
        xph_resumed_drop(trainer);
    else
        xph_trainer_drop_shape(trainer);
    return status;
}

static exphil_status attach(exphil_trainer *trainer, exphil_optimizer *optimizer, exphil_error *error)
{
    int free_one = 0;
    if (!atomic_compare_exchange_strong(&optimizer->attached, &free_one, 1))
        return xph_fail(error, EXPHIL_E_STATE, "optimizer already serves another trainer");
    trainer->optimizer = xph_optimizer_retain(optimizer);
    return EXPHIL_OK;
}

static exphil_status build(exphil_trainer *trainer, const exphil_model *model, exphil_optimizer *optimizer,
                           exphil_prefetcher *prefetcher, exphil_error *error)
{
    trainer->model = xph_model_retain(model);
    xph_model_trained(model, &trainer->base_updates, &trainer->base_frames);
    XPH_TRY(attach(trainer, optimizer, error));
    if (prefetcher) trainer->prefetcher = xph_prefetcher_retain(prefetcher);
    XPH_TRY(allocate(trainer, error));
    if (!prefetcher) return EXPHIL_OK;
    const exphil_sampling *sampling = xph_prefetcher_sampling(prefetcher);
    return xph_trainer_shape(trainer, sampling->lane_count, sampling->time, error);
}

static exphil_status check_all(const exphil_model *model, const exphil_optimizer *optimizer,
                               const exphil_prefetcher *prefetcher, const exphil_trainer_config *config,
                               exphil_error *error)
{
    XPH_TRY(check_config(config, error));
    XPH_TRY(check_precision(model, config, error));
    XPH_TRY(check_model(model, config, error));
    XPH_TRY(check_optimizer(model, optimizer, error));
    XPH_TRY(check_saved(config, optimizer, error));
    if (!xph_own_past_check(model, config, error)) return EXPHIL_E_INVALID;
    return prefetcher ? xph_trainer_check_data(model, prefetcher, error) : EXPHIL_OK;
}

static void take_settings(exphil_trainer *trainer, const exphil_trainer_config *config)
{
    trainer->accumulate = config->accumulate ? config->accumulate : 1;
    trainer->activations = config->activations;
    trainer->precision = config->precision;
    trainer->loss_scale = config->precision != EXPHIL_PRECISION_F16 ? 1.0
                          : config->loss_scale > 0.0                ? config->loss_scale
                                                                    : 65536.0;
    trainer->fake_quantize = config->fake_quantize;
    trainer->saved_weights = config->saved_weights;
    trainer->as_played = config->as_played;
    trainer->shards = config->shards ? config->shards : 1;
    trainer->own_past = (xph_own_past){
        .share = config->own_past, .ramp = config->own_past_ramp_updates, .seed = config->own_past_seed};
    trainer->checkpoint_blocks =
        config->checkpoint_blocks < CHECKPOINT_MOST ? config->checkpoint_blocks : CHECKPOINT_MOST;
}

/* The communicator comes first: what fails then, other ranks hear. */
static exphil_status create(exphil_trainer *made, const exphil_model *model, exphil_optimizer *optimizer,
                            exphil_prefetcher *prefetcher, const exphil_trainer_config *config,
                            exphil_error *error)
{
    XPH_TRY(take_communicator(made, config, error));
    exphil_status status = check_all(model, optimizer, prefetcher, config, error);
    take_settings(made, config);
    if (status >= 0) status = xph_losses_take(xph_model_spec(model), config->losses, &made->losses, error);
    if (status >= 0) status = xph_shards_check(made, 0, error);
    if (status >= 0) status = build(made, model, optimizer, prefetcher, error);
    /* a rank plans for itself */
    return xph_context_measures(made->context) ? status : xph_ranks_check(made, status, error);
}

/* What needs the device to meet has no way to tell the others. */
static exphil_status no_trainer(exphil_context *context, const exphil_trainer_config *config,
                                exphil_error *error)
{
    exphil_communicator with;
    exphil_error wrong = EXPHIL_ERROR_INIT, none = EXPHIL_ERROR_INIT;
    exphil_status status = xph_no_memory(sizeof(exphil_trainer), &none);
    if (config->reduction == EXPHIL_REDUCTION_SUMS &&
        xph_communicator_take(config->communicator, &with, &wrong) >= 0)
        tell_early(context, &with, &none);
    return xph_fail(error, status, "%s", none.message);
}

exphil_status exphil_trainer_create(const exphil_model *model, exphil_optimizer *optimizer,
                                    exphil_prefetcher *prefetcher, const exphil_trainer_config *config,
                                    exphil_trainer **trainer, exphil_error *error)
{
    XPH_OWN_FPU;
    if (!model || !optimizer || !trainer)
        return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL",
                        !model       ? "model"
                        : !optimizer ? "optimizer"
                                     : "trainer");
    exphil_context *context = xph_model_context(model);
    XPH_TRY(xph_context_check(context, error));
    exphil_trainer_config known = EXPHIL_TRAINER_CONFIG_INIT;
    XPH_TRY(XPH_TAKE(exphil_trainer_config, &known, config, error));
    exphil_trainer *made = xph_calloc(context, 1, sizeof *made);
    if (!made) return no_trainer(context, &known, error);
    made->context = xph_context_retain(context);
    made->device = xph_context_backend(context);
    atomic_init(&made->references, 1);
    made->late = (exphil_error)EXPHIL_ERROR_INIT;
    exphil_status status = create(made, model, optimizer, prefetcher, &known, error);
    if (status < 0) {
        free_trainer(made);
        return status;
    }
    *trainer = made;
    return EXPHIL_OK;
}

exphil_status exphil_trainer_model(const exphil_trainer *trainer, int32_t which, exphil_model **model,
                                   exphil_error *error)
{
    XPH_OWN_FPU;
    if (!trainer || !model)
        return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL", trainer ? "model" : "trainer");
    if (which != EXPHIL_WEIGHTS && which != EXPHIL_WEIGHTS_AVERAGED)
        return xph_fail(error, EXPHIL_E_INVALID, "which is %d, not a kind of weights", which);
    if (which == EXPHIL_WEIGHTS_AVERAGED && !trainer->optimizer->average)
        return xph_fail(error, EXPHIL_E_STATE, "no averaged weights: the optimizer's ema_decay is 0");
    XPH_TRY(xph_trainer_enter(trainer, error));
    const void *weights = which == EXPHIL_WEIGHTS ? trainer->weights : trainer->optimizer->average;
    exphil_status status = xph_trainer_settle((exphil_trainer *)(uintptr_t)trainer, error);
    exphil_model *made = NULL;
    if (status >= 0)
        status = xph_model_with_weights(trainer->model, weights,
                                        trainer->base_updates + (uint64_t)trainer->optimizer->updates,
                                        trainer->base_frames + (uint64_t)trainer->frames, &made, error);
    if (status >= 0) status = xph_model_take_notes(made, xph_trainer_notes(trainer), error);
    xph_trainer_leave(trainer);
    if (status < 0)
        xph_model_release(made);
    else
        *model = made;
    return status;
}
