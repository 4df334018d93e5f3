/* What all calls share: a device, on the CPU a stream of it, and nothing that a call changes. */
#include "ops/ops.h"

static void nothing(void *arg, int64_t i, int32_t worker)
{
    (void)arg, (void)i, (void)worker;
}

static exphil_status open_stream(exphil_ops *ops, exphil_error *error)
{
    const xph_backend *backend = ops->device->backend;
    if (!backend->host_memory) {
        if (backend->stream_wrap) return EXPHIL_OK;
        return xph_fail(error, EXPHIL_E_UNSUPPORTED, "the device %s takes no arrays of the caller's own",
                        backend->name);
    }
    exphil_status status =
        backend->stream_create(ops->device, ops->alone ? XPH_STREAM_INLINE : 0, &ops->stream);
    if (status < 0) return xph_fail_device(error, ops->device, status, "the device gave no stream");
    if (!ops->alone) xph_parallel(ops->context, nothing, NULL, 2); /* starts them: a run allocates nothing */
    return EXPHIL_OK;
}

exphil_status exphil_ops_create(exphil_context *context, const exphil_ops_config *config, exphil_ops **ops,
                                exphil_error *error)
{
    exphil_ops_config taken = EXPHIL_OPS_CONFIG_INIT;
    if (!ops) return xph_fail(error, EXPHIL_E_INVALID, "ops is NULL");
    XPH_TRY(xph_context_check(context, error));
    XPH_TRY(XPH_TAKE(exphil_ops_config, &taken, config, error));
    if (taken.threads != 0 && taken.threads != 1)
        return xph_fail(error, EXPHIL_E_INVALID, "threads is %d, must be 0 or 1", (int)taken.threads);
    if (taken.reserved)
        return xph_fail(error, EXPHIL_E_INVALID, "reserved is %d, must be 0", (int)taken.reserved);
    exphil_ops *made = xph_calloc(context, 1, sizeof *made);
    if (!made) return xph_no_memory(sizeof *made, error);
    made->context = xph_context_retain(context);
    made->device = xph_context_backend(context);
    made->alone = taken.threads == 1 || xph_workers(context) == 1;
    exphil_status status = open_stream(made, error);
    if (status < 0) {
        exphil_ops_destroy(made);
        return status;
    }
    *ops = made;
    return EXPHIL_OK;
}

void exphil_ops_destroy(exphil_ops *ops)
{
    if (!ops || xph_context_check(ops->context, NULL) < 0) return;
    exphil_context *context = ops->context;
    if (ops->stream) ops->device->backend->stream_destroy(ops->stream);
    xph_free(context, ops, sizeof *ops);
    xph_context_release(context);
}
