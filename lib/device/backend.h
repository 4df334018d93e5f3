/* Table A: the contract between the core and a device backend. Private: core and plugins come from one source
 * tree and are compared by a hash of this file, operations.h, settle.h and exphil.h.
 *
 * Work of one stream runs in order. The core plans once: shapes are checked, scratch is sized by query, then operations
 * (operations.h) are only called; they allocate nothing. */
#ifndef XPH_DEVICE_BACKEND_H
#define XPH_DEVICE_BACKEND_H

#include "device/operations.h"

#define XPH_BACKEND_ABI 2u

typedef struct xph_device xph_device; /* opened by the backend */
typedef struct xph_stream xph_stream; /* ordered work of one device */
typedef struct xph_event xph_event;
typedef struct xph_graph xph_graph; /* recorded work, replayed in one call */

/* What the core gives a backend: a plugin has no undefined references to libexphil. */
typedef struct xph_host {
    size_t struct_size;
    uint32_t abi, core_version;
    const char *build_id;
    void *context;
    void *(*alloc)(void *context, size_t bytes);
    void (*free)(void *context, void *pointer, size_t bytes);
    void (*log)(void *context, exphil_log_level level, const char *message);
    int32_t (*cancelled)(void *context);
    void (*parallel)(void *context, void (*fn)(void *arg, int64_t i, int32_t worker), void *arg,
                     int64_t count);
    int32_t (*workers)(void *context);
    int32_t isa; /* level allowed by the context (base/base.h xph_isa) */
    int32_t reserved;
    size_t memory_limit_bytes; /* of the device's own memory; 0: none. alloc keeps it for the CPU */
} xph_host;

/* How an operation is done for given shapes, and what it needs. */
typedef struct xph_op_info {
    const xph_kernel *kernel; /* what run is given */
    const char *name;         /* of it */
    size_t scratch_bytes;     /* for args.scratch */
    size_t packed_bytes;      /* linear and rnn: size of packed; scan: of decay */
    uint32_t refused;         /* given: candidates that are not to be taken, by bit */
    uint32_t candidate;       /* the bit of kernel, or of what it calls and alone may refuse */
    /* nonzero: a gradient adds up the columns of what it writes (dx_sum and the like), which are gradients of biases; else those
     * must be NULL */
    int32_t sums;
    int32_t draws; /* sample, nonzero: args.draw may be there; else it must be NULL */
    /* scan, nonzero: it makes the product args.step, which is there; else it does not look at it */
    int32_t products;
    int32_t reserved;
    size_t saved_bytes; /* scan: of marks, 0: there are none */
} xph_op_info;

/* One of several operations that are done in one launch (joins); XPH_OP_COUNT: a copy, of rows that lie together. */
typedef struct xph_copy_args {
    void *to;
    const void *from;
    size_t bytes;
} xph_copy_args;
typedef struct xph_joined_op {
    xph_op op;
    int32_t reserved;
    const void *args;
} xph_joined_op;
/* What the host wants of what they make: bytes from `from` on go to `to`, which host_alloc gave. */
typedef struct xph_download {
    void *to;
    const void *from;
    size_t bytes;
} xph_download;

/* Room for a stream that is not ours (stream_wrap). */
typedef union xph_wrapped {
    void *pointers[12];
} xph_wrapped;

/* INLINE: never fans out to other threads, and a wait is short: play. NET: for products, whose memory it then
 * has. */
enum { XPH_STREAM_INLINE = 1, XPH_STREAM_NET = 2 };
enum { XPH_EVENT_TIMED = 1 }; /* for event_elapsed */

/* Sums over ranks: processes or threads, each with a device of its own. */
typedef struct xph_comm xph_comm;
enum { XPH_COMM_ID_BYTES = 128, XPH_COMM_RANKS = 256 /* at most */ };
/* The order in which ranks are added. 0: (s0 + s1) + s2 + ... TREE: neighbours first, then neighbouring sums,
 * (s0 + s1) + (s2 + s3); a rank or sum without a neighbour goes up as it is. PLAIN: as the library of the device
 * has it, which may be faster. Whichever it is, all ranks get the same bits; those of PLAIN depend on the
 * machines. */
enum { XPH_COMM_TREE = 1, XPH_COMM_PLAIN = 2 };
enum { XPH_COMM_OK = 0, XPH_COMM_IN_PROGRESS = 1 /* a sum is being enqueued */, XPH_COMM_FAILED = 2 };
typedef struct xph_comm_args {
    const uint8_t *id;   /* [XPH_COMM_ID_BYTES] what comm_id gave one of the ranks */
    int32_t rank, ranks; /* 0 <= rank < ranks <= XPH_COMM_RANKS */
    uint32_t flags;      /* the same on all ranks, as are ranks and bytes */
    int32_t timeout_ms;  /* 1 or more: how long the host waits for other ranks */
    int64_t bytes;       /* 0 or more: the longest data of comm_reduce */
} xph_comm_args;

typedef void (*xph_tune_fn)(void *user, const char *line);

typedef struct xph_backend {
    /* frozen head */
    size_t struct_size;
    uint32_t abi, core_version;
    const char *name, *build_id;
    /* nonzero: the device works in the host's memory, which need not be uploaded, and work is done when a
     * call returns */
    int32_t host_memory;
    uint32_t precisions; /* bit per EXPHIL_PRECISION_... that training may ask for */
    /* devices, memory, order */
    int32_t (*device_count)(void);
    exphil_status (*device_info)(int32_t ordinal, exphil_device_info *info);
    exphil_status (*device_open)(const xph_host *host, int32_t ordinal, xph_device **device,
                                 exphil_error *error);
    void (*device_close)(xph_device *device);
    /* 64-byte aligned, content arbitrary */
    exphil_status (*alloc)(xph_device *device, size_t bytes, void **address);
    void (*free)(xph_device *device, void *address, size_t bytes);
    /* Host memory that copies to and from the device need not stage; until a copy is done it must stay as it
     * is. */
    exphil_status (*host_alloc)(xph_device *device, size_t bytes, void **address);
    void (*host_free)(xph_device *device, void *address, size_t bytes);
    void (*memory_info)(xph_device *device, exphil_memory_info *info); /* fills device_..., pinned_... */
    exphil_status (*stream_create)(xph_device *device, uint32_t flags, xph_stream **stream);
    void (*stream_destroy)(xph_stream *stream);
    exphil_status (*upload)(xph_stream *stream, void *device_to, const void *host_from, size_t bytes);
    exphil_status (*download)(xph_stream *stream, void *host_to, const void *device_from, size_t bytes);
    exphil_status (*copy)(xph_stream *stream, void *to, const void *from, size_t bytes);
    exphil_status (*zero)(xph_stream *stream, void *to, size_t bytes);
    exphil_status (*stream_wait)(xph_stream *stream);
    /* An event is the work that its stream had when it was last marked; one never marked is done. */
    exphil_status (*event_create)(xph_device *device, uint32_t flags, xph_event **event);
    void (*event_destroy)(xph_event *event);
    exphil_status (*event_mark)(xph_event *event, xph_stream *stream);
    exphil_status (*event_wait)(xph_event *event);                        /* the host waits */
    exphil_status (*stream_follow)(xph_stream *stream, xph_event *event); /* later work of stream waits */
    /* both timed, marked and done */
    exphil_status (*event_elapsed)(xph_event *from, xph_event *to, double *ns);
    /* Between begin and end work is recorded and not done, with the numbers in its arguments as they are now.
     * end also ends a recording that failed, and gives no graph then; EXPHIL_E_UNSUPPORTED: an operation
     * refused (see run). */
    exphil_status (*record_begin)(xph_stream *stream); /* NULL: recording would save nothing */
    exphil_status (*record_end)(xph_stream *stream, xph_graph **graph);
    exphil_status (*replay)(xph_stream *stream, xph_graph *graph);
    void (*graph_destroy)(xph_graph *graph);
    /* operations: args is the struct of that op. query chooses, once: by types, shapes, distances of rows and
     * what is marked host. Addresses on the device are not looked at and need not be there yet, and what else
     * may change from call to call (ld_state, back, lagging, rates) does not count. What is marked as of query
     * it fills in. run does what was chosen. EXPHIL_E_UNSUPPORTED from query: no candidate is left. From run:
     * the kernel cannot after all (a library refuses a shape when it sees the addresses), has done nothing, and
     * the backend has said so once. Then query is called again with that candidate refused, and scratch made as
     * it says. While work is recorded the recording is ended first: a refusal may have spoilt it. */
    exphil_status (*query)(xph_device *device, xph_op op, void *args, xph_op_info *info);
    exphil_status (*run)(xph_stream *stream, const xph_kernel *kernel, const void *args);
    int32_t (*native_code)(const xph_device *device); /* of its last EXPHIL_E_DEVICE; NULL: always 0 */
    /* What alloc takes of the device's memory for so many bytes, and what a stream with these flags takes; NULL: as
     * many as asked, and none. */
    size_t (*alloc_bytes)(size_t bytes);
    size_t (*stream_bytes)(const xph_device *device, uint32_t flags);
    /* What alloc can still give, within the limit; 0: not known. NULL: it is host memory. */
    uint64_t (*memory_free)(xph_device *device);
    /* A stream of the caller's own (cudaStream_t), as one on which operations, copies and zeros are asked for from any
     * number of threads; nothing else, and nobody destroys it. It lies in place, and is there as long as that. NULL: the
     * device has none but its own. */
    xph_stream *(*stream_wrap)(xph_device *device, void *native, xph_wrapped *place);
    /* Sums over ranks, and what hosts of several ranks need beside them. NULL, all of them, on a device that has none.
     * comm_id: of a new group of ranks, by one of them, which lives until comm_open has returned on all. From any thread.
     * EXPHIL_E_UNSUPPORTED, EXPHIL_E_VERSION: no library for it, or too old a one; error says which. */
    exphil_status (*comm_id)(uint8_t id[XPH_COMM_ID_BYTES], exphil_error *error);
    /* By all ranks at once; each waits until all are there and agree. EXPHIL_E_INVALID names the field,
     * EXPHIL_E_MISMATCH the rank that was opened otherwise, EXPHIL_E_IO: time is up or the library failed;
     * EXPHIL_E_CANCELLED: the host's cancel hook. Takes at most bytes + 64 ranks of the device's memory, beside what the
     * library takes. */
    exphil_status (*comm_open)(xph_device *device, const xph_comm_args *args, xph_comm **comm,
                               exphil_error *error);
    /* Enqueues data[count] (XPH_F32 or XPH_F64, aligned to 16 bytes) = the sum of all ranks' data. By one thread,
     * on one stream, with the same counts and types in the same order on every rank. It may be recorded once it ran
     * unrecorded with the same count. The host may wait for other ranks while it is enqueued, at most timeout_ms.
     * EXPHIL_E_UNSUPPORTED: the library refuses to be recorded, and can be used as before. Any other failure
     * (EXPHIL_E_IO; EXPHIL_E_INVALID: an argument) is logged, and but for an argument's final. */
    exphil_status (*comm_reduce)(xph_comm *comm, xph_stream *stream, void *data, int64_t count,
                                 xph_type type);
    /* XPH_COMM_...; once FAILED, for ever. From any thread. Sums that were done while it is still OK are right; who
     * waits for one watches event_done and this, for a sum that waits for a rank that is gone is never done. Nor is one
     * of a communicator that has failed, before comm_abort. */
    int32_t (*comm_state)(xph_comm *comm);
    /* Ends what is enqueued or recorded, whose results are then arbitrary, and fails what comes. Returns at once. From
     * any thread. */
    void (*comm_abort)(xph_comm *comm);
    /* By all ranks, unless it has failed. Recordings that hold its sums were destroyed before and its stream waited
     * for, or this waits for ever. */
    void (*comm_close)(xph_comm *comm);
    /* *done: whether it has happened. Does not wait. */
    exphil_status (*event_done)(xph_event *event, int32_t *done);
    /* A word in the device's memory gets this value, whatever streams are doing: a host tells running work to stop. It is
     * there when the call returns. From any thread, not while this thread records. */
    exphil_status (*word_set)(xph_device *device, uint32_t *address, uint32_t value);
    /* What stream_wrap takes. */
    void *(*stream_native)(xph_stream *stream);
    /* Times what a library can do for every product that it was asked for since the first device of this ordinal was opened,
     * and writes the fastest to a file, which a device takes that is opened with EXPHIL_CUBLASLT_CHOICES=path. Each is told
     * in a line. Nothing else may run on the device meanwhile. NULL: there is nothing to choose. */
    exphil_status (*tune)(xph_device *device, const char *path, xph_tune_fn told, void *user,
                          exphil_error *error);
    /* A frame of play in one launch: operations of few rows, from EMBED (or LINEAR, of floats) to SAMPLE, with the addresses of
     * their arguments, which need only be different ones; `how` is not looked at. joins: nonzero where the device does them so,
     * NULL: never. Inputs may then lie in memory that host_alloc gave. run_joined does them. Of what they make, states and
     * results are left, all else is not written. EXPHIL_E_UNSUPPORTED: nothing was done, they are to be run one by one, and the
     * backend has said so once; a recording is spoilt. */
    int32_t (*joins)(xph_device *device, const xph_joined_op *calls, int64_t count);
    exphil_status (*run_joined)(xph_stream *stream, const xph_joined_op *calls, int64_t count,
                                const xph_download *results, int64_t result_count);
} xph_backend;

typedef const xph_backend *(*xph_backend_query_fn)(uint32_t abi, const xph_host *host);

/* The backend of a device: the first member of every xph_device. */
struct xph_device {
    const xph_backend *backend;
};
struct xph_stream {
    xph_device *device;
};

const xph_backend *xph_cpu_backend(void); /* lib/cpu; always there */

#endif
