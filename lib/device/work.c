#include "device/device.h"

#include "base/base.h"

const char *xph_op_name(xph_op op)
{
#define WORD(NAME, name) [XPH_OP_##NAME] = #name,
    static const char *const words[XPH_OP_COUNT] = {XPH_EACH_OP(WORD)};
    return op >= 0 && op < XPH_OP_COUNT ? words[op] : NULL;
}

exphil_status xph_choose_kernel(xph_device *device, xph_op op, void *args, const xph_kernel **kernel)
{
    xph_op_info info = {0};
    if (device->backend->query(device, op, args, &info) < 0 || info.scratch_bytes) return EXPHIL_E_INTERNAL;
    *kernel = info.kernel;
    return EXPHIL_OK;
}

exphil_status xph_run_once(xph_stream *stream, xph_op op, void *args)
{
    const xph_kernel *kernel;
    XPH_TRY(xph_choose_kernel(stream->device, op, args, &kernel));
    return stream->device->backend->run(stream, kernel, args);
}

exphil_status xph_stream_end(xph_stream *stream, exphil_status status)
{
    const xph_backend *backend = stream->device->backend;
    if (status >= 0) status = backend->stream_wait(stream);
    backend->stream_destroy(stream);
    return status;
}
