/* What the C files of this folder share: a device, its streams, its memory, its cuBLASLt. */
#ifndef XPH_CUDA_DEVICE_H
#define XPH_CUDA_DEVICE_H

#include "device/backend.h"
#include "kernels.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdatomic.h>

typedef struct xph_blaslt xph_blaslt;

/* A block of device memory that the driver allocated and that is kept until the device is closed or memory is short. */
typedef struct xph_block_kept {
    void *address;
    size_t bytes;
} xph_block_kept;

/* Device memory by rounded size. Whoever frees has waited for the streams that used it (as table A wants), so a block can
 * be given out again at once. */
typedef struct xph_cuda_memory {
    pthread_mutex_t lock;
    cudaStream_t stream; /* allocations are ordered in it */
    size_t limit;        /* bytes in use; 0: none */
    size_t used, peak;   /* as rounded */
    size_t pinned, pinned_peak;
    uint64_t requests, reused;
    xph_block_kept *kept;
    int64_t count, capacity;
    int32_t ordered; /* the driver allocates in streams */
} xph_cuda_memory;

typedef struct xph_cuda_device {
    xph_device base;
    xph_host host;
    int ordinal;
    int32_t compute; /* 90 for sm_90 */
    void *context;   /* the primary one; NULL: the driver cannot be asked for it */
    xph_cuda_memory memory;
    xph_blaslt *blaslt;     /* NULL: own products */
    atomic_int native_code; /* of the last failure */
    atomic_int no_room;     /* it was said that there is none for clusters */
    atomic_int no_join;     /* or that a step which was to be joined cannot be */
    atomic_int wide_heads;  /* or that heads are too wide */
    exphil_device_info info;
    cudaStream_t words; /* of word_set */
} xph_cuda_device;

typedef struct xph_cuda_stream {
    xph_stream base;
    cudaStream_t stream;
    cudaEvent_t idle; /* to wait for without spinning; NULL on a stream of play, whose waits are short */
    void *workspace;  /* of cuBLASLt, once there was a product */
    int recording;
    int spoilt; /* the recording holds what a library refused half-way */
} xph_cuda_stream;

/* The caller's current device comes back when the scope ends: its thread may use CUDA itself. Our context is pushed before the
 * thread's, if it has one, and popped: cudaSetDevice would make a context on the device that the thread had, though nobody uses
 * it. begin: once a device, before its first scope. */
typedef struct xph_cuda_scope {
    int before, pushed, changed;
} xph_cuda_scope;
exphil_status xph_cuda_begin(xph_cuda_device *device, exphil_error *error);
xph_cuda_scope xph_cuda_enter(const xph_device *device);
void xph_cuda_leave(const xph_cuda_scope *scope);
#define XPH_ON(device)                                                                                       \
  __attribute__((cleanup(xph_cuda_leave))) xph_cuda_scope xph_scope = xph_cuda_enter(device);                \
  (void)xph_scope

/* A status for what CUDA says; anything but success is logged as "cuda:0: <what>: <name> (<text>)". */
exphil_status xph_cuda_check(const xph_device *device, cudaError_t code, const char *what);
exphil_status xph_cuda_told(const xph_device *device, cudaError_t code, const char *what,
                            exphil_log_level level);
exphil_status xph_cuda_fail(exphil_error *error, exphil_status status, int native, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* A library by its name or path. NULL: *why tells in words, or is NULL. */
void *xph_cuda_library(const char *name, const char **why);

/* GPUs of this machine and what they are called, without starting the driver. */
int32_t xph_cuda_list(char name[128]);

exphil_status xph_cuda_memory_open(xph_cuda_device *device);
void xph_cuda_memory_close(xph_cuda_device *device);
exphil_status xph_cuda_alloc(xph_device *device, size_t bytes, void **address);
void xph_cuda_free(xph_device *device, void *address, size_t bytes);
exphil_status xph_cuda_host_alloc(xph_device *device, size_t bytes, void **address);
void xph_cuda_host_free(xph_device *device, void *address, size_t bytes);
void xph_cuda_memory_info(xph_device *device, exphil_memory_info *info);
size_t xph_cuda_rounded(size_t bytes);
uint64_t xph_cuda_memory_free(xph_device *device);

exphil_status xph_cuda_stream_create(xph_device *device, uint32_t flags, xph_stream **stream);
void xph_cuda_stream_destroy(xph_stream *stream);
xph_stream *xph_cuda_stream_wrap(xph_device *device, void *native, xph_wrapped *place);
exphil_status xph_cuda_move(xph_stream *stream, void *to, const void *from, size_t bytes);
exphil_status xph_cuda_zero(xph_stream *stream, void *to, size_t bytes);
exphil_status xph_cuda_stream_wait(xph_stream *stream);
exphil_status xph_cuda_event_create(xph_device *device, uint32_t flags, xph_event **event);
exphil_status xph_cuda_event_elapsed(xph_event *from, xph_event *to, double *ns);
void xph_cuda_event_destroy(xph_event *event);
exphil_status xph_cuda_event_mark(xph_event *event, xph_stream *stream);
exphil_status xph_cuda_event_wait(xph_event *event);
exphil_status xph_cuda_stream_follow(xph_stream *stream, xph_event *event);
exphil_status xph_cuda_event_done(xph_event *event, int32_t *done);
exphil_status xph_cuda_word_set(xph_device *device, uint32_t *address, uint32_t value);
void *xph_cuda_stream_native(xph_stream *stream);
exphil_status xph_cuda_record_begin(xph_stream *stream);
exphil_status xph_cuda_record_end(xph_stream *stream, xph_graph **graph);
exphil_status xph_cuda_replay(xph_stream *stream, xph_graph *graph);
void xph_cuda_graph_destroy(xph_graph *graph);

/* cuBLASLt, where the machine has it: opened by name, for products in candidates of kernels.h. Where it is not, device->blaslt
 * stays NULL and why is logged. A failure: EXPHIL_CUBLASLT_CHOICES names what cannot be taken. */
exphil_status xph_blaslt_open(xph_cuda_device *device, exphil_error *error);
/* Of a candidate for these args, with the algorithms that were chosen for its products. */
const char *xph_blaslt_name(const xph_device *device, const xph_cuda_candidate *of, const void *args);
exphil_status xph_cuda_tune(xph_device *device, const char *path, xph_tune_fn told, void *user,
                            exphil_error *error);
void xph_blaslt_close(xph_cuda_device *device);
/* Before a stream's first product: its workspace, which a recording could not get. And the end of it. */
exphil_status xph_blaslt_prepare(xph_cuda_stream *stream);
void xph_blaslt_forget(xph_cuda_stream *stream);
size_t xph_blaslt_bytes(const xph_device *device); /* of a workspace; 0 without cuBLASLt */

/* cuDNN, where the machine has it: opened by name when attention first asks for it (cudnn.c). for: whose work this thread
 * does, for what there is to say; NULL: nobody's. */
void xph_cudnn_open(const xph_cuda_device *device);
void xph_cudnn_close(const xph_cuda_device *device);
void xph_cudnn_for(const xph_device *device, xph_stream *stream);

/* Sums over ranks (nccl.c). */
exphil_status xph_cuda_comm_id(uint8_t id[XPH_COMM_ID_BYTES], exphil_error *error);
exphil_status xph_cuda_comm_open(xph_device *device, const xph_comm_args *args, xph_comm **comm,
                                 exphil_error *error);
exphil_status xph_cuda_comm_reduce(xph_comm *comm, xph_stream *stream, void *data, int64_t count,
                                   xph_type type);
int32_t xph_cuda_comm_state(xph_comm *comm);
void xph_cuda_comm_abort(xph_comm *comm);
void xph_cuda_comm_close(xph_comm *comm);

#endif
