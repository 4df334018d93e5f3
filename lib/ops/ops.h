/* Door of lib/ops, which nobody above it needs yet: the kernels of table A on arrays of the caller's own.
 *
 * A call goes through the same steps for every operation. Its own file (scan.c, ...) takes the public struct, looks at its
 * dimensions, and says which arrays it has and where they go in the arguments of table A: it makes a list of tensors, each
 * of one array or of several that the kernel wants side by side. The rest does not know operations: arrays.c looks at
 * addresses and strides, overlap.c at what is written, place.c finds out which tensors the kernel can use where they
 * are and gives the others a place in the workspace, move.c copies to and from there, call.c does it all in order.
 *
 * Everything of a call lies on the stack: nothing is allocated. */
#ifndef XPH_OPS_OPS_H
#define XPH_OPS_OPS_H

#include "device/device.h"

#include <exphil/ops.h>

struct exphil_ops {
    exphil_context *context;
    xph_device *device;
    xph_stream *stream; /* NULL: callers bring theirs */
    bool alone;         /* no other threads */
};

/* ---- arrays ---- */

/* LATE: a query does not ask for it. */
enum { XPH_READ = 1, XPH_WRITE = 2, XPH_REQUIRED = 4, XPH_LATE = 8 };
typedef struct xph_array {
    const char *name; /* the field */
    unsigned char *data;
    int64_t count[3], stride[3]; /* batch, frame, column; strides as they are, none 0 */
    size_t reach;                /* bytes from the first element to the end of the last */
    int32_t element;             /* bytes */
    uint32_t access;
} xph_array;

/* How a kernel wants rows. ROWS: [batch * frames, width], any distance. STATES: [batch, width], ld_state of the
 * operation being the width. DENSE: all together. */
enum { XPH_ROWS = 0, XPH_STATES = 1, XPH_DENSE = 2 };
/* NEEDED: also where the caller has none, as zeros or to be thrown away. ADDS: the kernel adds to what is there. */
enum { XPH_NEEDED = 1, XPH_ADDS = 2 };
typedef struct xph_tensor {
    void *slot;    /* of its address in the arguments, or NULL */
    int64_t *ld;   /* ROWS: of the distance, or NULL */
    int64_t width; /* elements of a row, those of all its arrays */
    int32_t layout;
    uint32_t flags;
    int32_t first, parts; /* of the arrays of the call */
    bool given, moved;    /* there are arrays; it lies in the workspace */
    size_t at, bytes;     /* place there */
} xph_tensor;

/* ---- calls ---- */

typedef union xph_op_args {
    xph_type type; /* of each the first member */
    xph_scan_args scan;
    xph_scan_grad_args scan_grad;
    xph_attention_args attention;
    xph_attention_grad_args attention_grad;
    xph_rnn_args rnn;
    xph_rnn_grad_args rnn_grad;
    xph_norm_args norm;
    xph_norm_grad_args norm_grad;
    xph_conv_args conv;
    xph_conv_grad_args conv_grad;
    xph_adam_args adam;
} xph_op_args;

enum { XPH_ARRAYS_MOST = 32 };
typedef struct xph_call {
    const exphil_ops *ops;
    const char *name; /* of the operation, for messages */
    exphil_error *error;
    exphil_status status; /* of the first thing that was wrong */
    int32_t op;
    int32_t element;       /* bytes */
    int64_t batch, frames; /* 1 and 1 where there are none */
    xph_op kernel_op;
    xph_op_args args;
    void *scratch_slot; /* in args, or NULL */
    int64_t saved;      /* elements that forward saves */
    int arrays, tensors;
    xph_array array[XPH_ARRAYS_MOST];
    xph_tensor tensor[XPH_ARRAYS_MOST];
    int carry[2];  /* tensors: without frames the second is the first; -1: none */
    bool in_place; /* they may lie in one place */
    bool packs;    /* prepared is as large as the query says that packed weights are */
    /* what is made of a weight before: bytes in the workspace, and how. NULL: nothing */
    exphil_status (*prepare)(const struct xph_call *call, xph_stream *stream, void *prepared);
    size_t prepared_bytes;
    void *prepared_slot;
    /* where it all is in the workspace */
    xph_op_info info;
    size_t prepared_at, scratch_at, bytes;
    int64_t copies;
} xph_call;

/* Makes the call of a public struct; what is wrong with its fields is in call->status. */
typedef exphil_status (*xph_describe_fn)(xph_call *call, const void *given);
exphil_status xph_describe_scan(xph_call *call, const void *given);
exphil_status xph_describe_attention(xph_call *call, const void *given);
exphil_status xph_describe_rnn(xph_call *call, const void *given);
exphil_status xph_describe_norm(xph_call *call, const void *given);
exphil_status xph_describe_conv(xph_call *call, const void *given);
exphil_status xph_describe_adamw(xph_call *call, const void *given);

/* The first failure of a call stays. */
#define xph_call_fail(call, code, ...)                                                                       \
  ((call)->status < 0 ? (call)->status : ((call)->status = xph_fail((call)->error, code, __VA_ARGS__)))

/* ---- what a describing function calls (arrays.c) ---- */

/* least..most, else EXPHIL_E_INVALID. */
void xph_take_count(xph_call *call, const char *name, int64_t value, int64_t least, int64_t most);
/* Not NaN either. */
void xph_take_real(xph_call *call, const char *name, double value, double least, double most);
/* A field that must be 0. */
void xph_take_reserved(xph_call *call, int32_t value);
/* batch, frames, and a product of dimensions with them that must not be too large for arithmetic. */
void xph_take_frames(xph_call *call, int64_t batch, int64_t frames, int64_t of_a_frame);
/* Product of dimensions; above 2^44 it is 2^44 + 1, below 0 it is -1. */
int64_t xph_times(int64_t a, int64_t b);

/* A tensor of which the arrays follow. slot: of a pointer in args. */
void xph_tensor_begin(xph_call *call, int32_t layout, int64_t width, uint32_t flags, void *slot, int64_t *ld);
/* field: an exphil_input or exphil_output. */
void xph_array_add(xph_call *call, const char *name, const void *field, uint32_t access, int64_t batch,
                   int64_t frames, int64_t columns);

/* Tensors of one array. Each gives its number. */
int xph_take_rows(xph_call *call, const char *name, const void *field, uint32_t access, uint32_t flags,
                  int64_t width, void *slot, int64_t *ld);
int xph_take_matrix(xph_call *call, const char *name, const void *field, uint32_t access, uint32_t flags,
                    int64_t rows, int64_t columns, void *slot);
int xph_take_state(xph_call *call, const char *name, const void *field, uint32_t access, int64_t rows,
                   int64_t columns, void *slot);
void xph_take_reset(xph_call *call, const exphil_input *field, const uint8_t **slot);
/* count elements; written in forward, read in backward, where it is required. */
void xph_take_saved(xph_call *call, void *data, size_t bytes, int64_t count, bool backward, void *slot);
/* A gradient of something that is not there. */
void xph_take_absent(xph_call *call, const char *gradient, const exphil_output *field, const char *name,
                     const exphil_input *of);

/* ---- what call.c calls ---- */

/* All arrays: required ones are there, addresses fit the element (where looks is false addresses are not looked at), strides
 * and what they reach fit in memory, elements of an output do not overlap. */
exphil_status xph_arrays_check(xph_call *call, bool looks);
/* No output lies on another array of the call, nor on the workspace. */
exphil_status xph_overlap_check(xph_call *call, const void *workspace, size_t workspace_bytes);
/* Puts distances of rows into the arguments, and tensors that must be moved into the workspace. */
exphil_status xph_tensors_place(xph_call *call);
/* Writes all addresses into the arguments. */
void xph_tensors_bind(xph_call *call, unsigned char *workspace);
/* Before the kernel: moved inputs are brought, zeros made. After it: moved outputs are brought back. */
exphil_status xph_tensors_enter(const xph_call *call, xph_stream *stream, unsigned char *workspace);
exphil_status xph_tensors_leave(const xph_call *call, xph_stream *stream, unsigned char *workspace);
/* In place of the kernel where there are no frames. */
exphil_status xph_tensors_carry(const xph_call *call, xph_stream *stream, unsigned char *workspace);

/* Strides that array i of a moved tensor has there, and its first element. */
typedef struct xph_moved {
    unsigned char *data;
    int64_t stride[3];
} xph_moved;
/* Copies all elements of an array to or from its place in the workspace. */
exphil_status xph_move(const xph_call *call, xph_stream *stream, const xph_array *array,
                       const xph_moved *moved, bool back);

#endif
