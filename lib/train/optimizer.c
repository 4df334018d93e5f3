/* AdamW with its state: moments and averaged weights as arenas beside the model's weights. */
#include "train/train.h"

static void fill_defaults(exphil_optimizer_config *config)
{
    if (config->rate == 0.0) config->rate = 1e-3;
    if (config->beta1 == 0.0) config->beta1 = 0.9;
    if (config->beta2 == 0.0) config->beta2 = 0.999;
    if (config->epsilon == 0.0) config->epsilon = 1e-8;
    if (config->clip_norm == 0.0) config->clip_norm = 1.0;
    if (config->restart_factor == 0.0) config->restart_factor = 1.0;
}

/* value in [low, high), or the field's name in the message; NaN fails. */
static exphil_status check_range(const char *field, double value, double low, double high,
                                 exphil_error *error)
{
    char text[XPH_DOUBLE_TEXT];
    if (value >= low && value < high) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_INVALID, "optimizer config: %s is %s, out of range", field,
                    xph_format_double(text, value, 9));
}

static exphil_status check_config(const exphil_optimizer_config *config, exphil_error *error)
{
    XPH_TRY(check_range("rate", config->rate, 0.0, 1e6, error));
    XPH_TRY(check_range("beta1", config->beta1, 0.0, 1.0, error));
    XPH_TRY(check_range("beta2", config->beta2, 0.0, 1.0, error));
    XPH_TRY(check_range("epsilon", config->epsilon, 1e-30, 1e6, error));
    XPH_TRY(check_range("decay", config->decay, 0.0, 1e6, error));
    XPH_TRY(check_range("ema_decay", config->ema_decay, 0.0, 1.0, error));
    XPH_TRY(check_range("clip_norm", config->clip_norm, -1e300, 1e300, error));
    if (config->rate * config->decay >
        1.0) /* weights would change their sign, and above 2 grow without end */
        return xph_fail(error, EXPHIL_E_INVALID, "optimizer config: rate times decay is above 1");
    if (config->reserved || config->reserved_2)
        return xph_fail(error, EXPHIL_E_INVALID, "optimizer config: %s must be 0",
                        config->reserved ? "reserved" : "reserved_2");
    if (config->resume_new_total != 0 && config->resume_new_total != 1)
        return xph_fail(error, EXPHIL_E_INVALID, "optimizer config: resume_new_total is %d, must be 0 or 1",
                        config->resume_new_total);
    return xph_schedule_check(config, error);
}

static exphil_status arena(exphil_optimizer *optimizer, xph_stream *stream, const void *from, void **address,
                           exphil_error *error)
{
    const xph_backend *backend = optimizer->device->backend;
    exphil_status status = backend->alloc(optimizer->device, optimizer->arena_bytes, address);
    if (status < 0) return xph_no_device_memory(error, optimizer->device, status, optimizer->arena_bytes);
    status = from ? backend->copy(stream, *address, from, optimizer->arena_bytes)
                  : backend->zero(stream, *address, optimizer->arena_bytes);
    if (status < 0)
        return xph_fail_device(error, optimizer->device, status,
                               "optimizer: the device could not fill its state");
    return EXPHIL_OK;
}

/* All but the weights and what comes with an update. */
static xph_adam_args adam_args(const exphil_optimizer *optimizer)
{
    const exphil_optimizer_config *config = &optimizer->config;
    return (xph_adam_args){.type = optimizer->type,
                           .count = optimizer->weights,
                           .decay_count = optimizer->decaying,
                           .m = optimizer->m,
                           .v = optimizer->v,
                           .ema = optimizer->average,
                           .beta1 = config->beta1,
                           .beta2 = config->beta2,
                           .epsilon = config->epsilon,
                           .decay = config->decay};
}

static exphil_status choose_adam(exphil_optimizer *optimizer, exphil_error *error)
{
    xph_adam_args args = adam_args(optimizer);
    exphil_status status = xph_choose_kernel(optimizer->device, XPH_OP_ADAM, &args, &optimizer->adam);
    if (status < 0)
        return xph_fail_device(error, optimizer->device, status,
                               "optimizer: the device has no kernel for an update");
    return EXPHIL_OK;
}

static exphil_status make_arenas(exphil_optimizer *optimizer, const exphil_model *model, exphil_error *error)
{
    const xph_backend *backend = optimizer->device->backend;
    xph_stream *stream;
    exphil_status status = backend->stream_create(optimizer->device, 0, &stream);
    if (status < 0)
        return xph_fail_device(error, optimizer->device, status, "optimizer: no stream on the device");
    status = arena(optimizer, stream, NULL, &optimizer->m, error);
    if (status >= 0) status = arena(optimizer, stream, NULL, &optimizer->v, error);
    if (status >= 0 && optimizer->config.ema_decay > 0.0)
        status = arena(optimizer, stream, xph_model_weights(model), &optimizer->average, error);
    return xph_stream_end(stream, status);
}

static void free_optimizer(exphil_optimizer *optimizer)
{
    const xph_backend *backend = optimizer->device->backend;
    exphil_context *context = optimizer->context;
    if (optimizer->m) backend->free(optimizer->device, optimizer->m, optimizer->arena_bytes);
    if (optimizer->v) backend->free(optimizer->device, optimizer->v, optimizer->arena_bytes);
    if (optimizer->average) backend->free(optimizer->device, optimizer->average, optimizer->arena_bytes);
    xph_free(context, optimizer, sizeof *optimizer);
    xph_context_release(context);
}

exphil_status exphil_optimizer_create(const exphil_model *model, const exphil_optimizer_config *config,
                                      exphil_optimizer **optimizer, exphil_error *error)
{
    XPH_OWN_FPU;
    if (!model || !optimizer)
        return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL", model ? "optimizer" : "model");
    exphil_context *context = xph_model_context(model);
    XPH_TRY(xph_context_check(context, error));
    exphil_optimizer_config known = EXPHIL_OPTIMIZER_CONFIG_INIT;
    XPH_TRY(XPH_TAKE(exphil_optimizer_config, &known, config, error));
    fill_defaults(&known);
    XPH_TRY(check_config(&known, error));
    const xph_model_shape *shape = xph_model_shape_of(model);
    if (shape->narrow)
        return xph_fail(
            error, EXPHIL_E_UNSUPPORTED,
            "a quantised model is not trained: train the model it was made of, with fake_quantize");
    exphil_optimizer *made = xph_calloc(context, 1, sizeof *made);
    if (!made) return xph_no_memory(sizeof *made, error);
    made->context = xph_context_retain(context);
    made->device = xph_context_backend(context);
    made->config = known;
    atomic_init(&made->references, 1);
    atomic_init(&made->attached, 0);
    made->type = shape->type;
    made->weights = shape->weights;
    made->decaying = shape->decaying;
    made->arena_bytes = (size_t)shape->weights * shape->real_bytes;
    made->config_hash = xph_model_config_hash(model);
    exphil_status status = make_arenas(made, model, error);
    if (status >= 0) status = choose_adam(made, error);
    if (status < 0) {
        free_optimizer(made);
        return status;
    }
    *optimizer = made;
    return EXPHIL_OK;
}

exphil_optimizer *xph_optimizer_retain(exphil_optimizer *optimizer)
{
    atomic_fetch_add(&optimizer->references, 1);
    return optimizer;
}

void xph_optimizer_release(exphil_optimizer *optimizer)
{
    if (optimizer && atomic_fetch_sub(&optimizer->references, 1) == 1) free_optimizer(optimizer);
}

void exphil_optimizer_destroy(exphil_optimizer *optimizer)
{
    xph_optimizer_release(optimizer);
}

exphil_status exphil_optimizer_query(const exphil_optimizer *optimizer, exphil_optimizer_info *info,
                                     exphil_error *error)
{
    XPH_OWN_FPU;
    if (!optimizer) return xph_fail(error, EXPHIL_E_INVALID, "optimizer is NULL");
    XPH_TRY(xph_context_check(optimizer->context, error));
    exphil_optimizer_info known = EXPHIL_OPTIMIZER_INFO_INIT;
    known.updates = optimizer->updates;
    known.rate = xph_schedule_rate(&optimizer->config, optimizer->updates);
    known.state_bytes = (uint64_t)optimizer->arena_bytes * (optimizer->average ? 3u : 2u);
    return XPH_GIVE(exphil_optimizer_info, info, &known, error);
}

/* Early on the average follows closely, or it would remember the initial weights for 1 / (1 - decay) updates. */
static double average_decay(const exphil_optimizer_config *config, int64_t update)
{
    double early = ((double)update + 1.0) / ((double)update + 10.0);
    return early < config->ema_decay ? early : config->ema_decay;
}

xph_rates xph_optimizer_rates(const exphil_optimizer *optimizer, int64_t number)
{
    const exphil_optimizer_config *config = &optimizer->config;
    return (xph_rates){.rate = xph_schedule_rate(config, number - 1),
                       .correction1 = 1.0 - xph_whole_power(config->beta1, number),
                       .correction2 = 1.0 - xph_whole_power(config->beta2, number),
                       .ema_decay = average_decay(config, number - 1)};
}

exphil_status xph_optimizer_update(const exphil_optimizer *optimizer, xph_stream *stream, void *weights,
                                   const void *gradients, const xph_given *given, const xph_control *control)
{
    xph_adam_args args = adam_args(optimizer);
    args.p = weights;
    args.grad = gradients;
    args.given = given;
    args.control = control;
    return optimizer->device->backend->run(stream, optimizer->adam, &args);
}
