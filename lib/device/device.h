/* Door of lib/device: the device of a context, how its failures are reported, and what runs on it beside a net.
 * The contract itself, which devices know too, is backend.h. */
#ifndef XPH_DEVICE_DEVICE_H
#define XPH_DEVICE_DEVICE_H

#include "base/base.h"
#include "device/backend.h"

/* Opened with the context, which owns it (context.c). */
xph_device *xph_context_backend(const exphil_context *context);

/* ---- plans of memory ---- */

/* A context whose device gives addresses and has no memory (measure.c): models, optimizers, trainers and nets are made
 * on it as on that of `of`, at the cost of their structs. No work is done on it, nothing of its memory may be looked at. */
exphil_status xph_context_measure(exphil_context *of, exphil_context **context, exphil_error *error);
bool xph_context_measures(const exphil_context *context);
/* What a context's children hold. */
typedef struct xph_held {
    uint64_t host, device; /* host: with pinned memory */
    uint64_t limited;      /* of these, what the context's memory limit counts */
} xph_held;
/* Of a context that measures. */
xph_held xph_context_held(const exphil_context *context);
xph_held xph_held_since(const exphil_context *context, const xph_held *before);
/* What can still be taken: bytes; UINT64_MAX: no limit, and how much is free is not known. limited: within the context's
 * memory limit. device: UINT64_MAX where it works in the host's memory. */
typedef struct xph_room {
    uint64_t host, device, limited;
} xph_room;
xph_room xph_context_room(const exphil_context *context);

/* With EXPHIL_E_DEVICE the driver's own code, else 0. */
static inline int32_t xph_native_code(const xph_device *device, exphil_status status)
{
    const xph_backend *backend = device->backend;
    return status == EXPHIL_E_DEVICE && backend->native_code ? backend->native_code(device) : 0;
}
/* xph_fail for a call of table A (backend.h) that failed with status: with the driver's own code. */
#define xph_fail_device(error, device, status, ...)                                                          \
  (xph_error_fill_native(error, status, xph_native_code(device, status), __VA_ARGS__), xph_status(status))

/* An allocation of the device that failed with status: there is no memory, or the device is lost. */
static inline exphil_status xph_no_device_memory(exphil_error *error, const xph_device *device,
                                                 exphil_status status, size_t bytes)
{
    if (status == EXPHIL_E_MEMORY)
        return xph_fail(
            error, EXPHIL_E_MEMORY,
            "could not get %zu bytes: the device has no more, or memory_limit_bytes allows no more", bytes);
    return xph_fail_device(error, device, status, "the device failed when it was asked for %zu bytes", bytes);
}

/* ---- operations beside a net (lib/model/plan.c keeps the kernels of one) ---- */

/* The word of an operation in XPH_OPS, NULL for a number that is none. */
const char *xph_op_name(xph_op op);

/* The kernel of an operation that runs often and without scratch. EXPHIL_E_INTERNAL: the device has none, or it wants
 * scratch. */
exphil_status xph_choose_kernel(xph_device *device, xph_op op, void *args, const xph_kernel **kernel);
/* Chooses and runs, where an operation runs once. */
exphil_status xph_run_once(xph_stream *stream, xph_op op, void *args);
/* The end of a stream that was made for one piece of work: waits for it unless status says that it failed, destroys the
 * stream, and gives the status of both. */
exphil_status xph_stream_end(xph_stream *stream, exphil_status status);

#endif
