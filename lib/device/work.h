/* Operations beside a net (lib/model/plan.c keeps the kernels of one). */
#ifndef XPH_DEVICE_WORK_H
#define XPH_DEVICE_WORK_H

#include "device/backend.h"

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
