/*
 * libexphil - ops.h: the kernels alone, on arrays of the caller's own.
 * SPDX-License-Identifier: MIT
 *
 * The rules of exphil.h hold. These are the kernels that sessions and trainers run, chosen in the same way: the same
 * arrays give the same bits, on any instruction set and with any number of threads, whether frames come in one call or, with the
 * state handed on, one by one as in a session. Trainers of another precision than f32 have kernels of their own.
 *
 *   exphil_ops_create   once for a context: chooses the set of kernels
 *   exphil_ops_query    once for each shape: how much workspace a call needs
 *   exphil_ops_run      does it. It allocates nothing, and writes the output arrays and the workspace alone
 *
 * Arguments     A struct for each family of operations; op says which one, forward or backward. Backward takes the struct
 *               of forward with the gradients filled in; fields that an operation does not use are not looked at.
 * Arrays        exphil_input and exphil_output: an address and three strides, in elements. The comment at a field has the
 *               shape, [batch, frame, column]; of a matrix [frame, column], of a vector [column], the strides that it has
 *               not are not looked at. A stride of 0 leaves no gap: columns lie together, a frame begins where the columns of the
 *               one before end, a batch entry where its frames end. What is broadcast must be written out. Negative strides
 *               are refused.
 *               A kernel reads rows whose columns lie together (column stride 1), evenly apart (batch stride = frames *
 *               frame stride). Arrays with other strides - [batch, column, frame] of mamba_ssm, time first - are copied
 *               to the workspace before, or from it after: the same bits, for the time of a copy. On a GPU such copies go
 *               row by row, and a column stride other than 1 is EXPHIL_E_UNSUPPORTED.
 *               Addresses are multiples of the element's size, else EXPHIL_E_INVALID; more is not asked of them. Values are not
 *               looked at: NaN in, NaN out.
 * Missing       An address of NULL is an array that is not there: allowed where the comment says "or NULL". Inputs are
 *               then zeros, outputs are not wanted. Of arrays without elements the address is not looked at.
 * Empty         Without frames (batch or frames 0) an operation does what its formula says: weights have gradients of
 *               zero, and states leave as they came. All other dimensions are at least 1.
 * Gradients     Every gradient that a call returns is overwritten, those of weights, which are sums over all batches
 *               and frames, too. Who accumulates adds afterwards.
 * Overlap       An output must not overlap another array of the call, and no two of its elements each other: columns of
 *               one wider matrix do not overlap. Allowed is, in forward, a state that goes out where it came in, with the same
 *               strides.
 *               Overlap is found by strides and shapes alone, before anything is written; what cannot be told apart is
 *               refused.
 * Types         EXPHIL_OPS_F32, and EXPHIL_OPS_F64 on the CPU: the reference. Resets are bytes. Of 16 bits there is none.
 * Sizes         Elements of the largest product of an operation's dimensions: at most 2^44, else EXPHIL_E_INVALID.
 * Threads       exphil_ops may be shared freely: queries and runs may go on at the same time, each with arrays and a
 *               workspace of its own. With one thread a run takes no lock and makes no system call.
 * Refusals      Name the field with its value and what it must be. Nothing is written then.
 *
 * Resets are [batch, frames] bytes, nonzero where a frame starts an episode: the carried state is zero from there on,
 * and neither values nor gradients cross it.
 */
#ifndef EXPHIL_OPS_H
#define EXPHIL_OPS_H

#include <exphil/exphil.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Operations. Numbers never change, and are never those of another operation. */
enum {
    EXPHIL_OP_SCAN = 1,           /* exphil_scan_args */
    EXPHIL_OP_SCAN_GRAD = 2,      /* exphil_scan_args */
    EXPHIL_OP_ATTENTION = 3,      /* exphil_attention_args */
    EXPHIL_OP_ATTENTION_GRAD = 4, /* exphil_attention_args */
    EXPHIL_OP_LSTM = 5,           /* exphil_rnn_args */
    EXPHIL_OP_LSTM_GRAD = 6,      /* exphil_rnn_args */
    EXPHIL_OP_GRU = 7,            /* exphil_rnn_args */
    EXPHIL_OP_GRU_GRAD = 8,       /* exphil_rnn_args */
    EXPHIL_OP_NORM = 9,           /* exphil_norm_args */
    EXPHIL_OP_NORM_GRAD = 10,     /* exphil_norm_args */
    EXPHIL_OP_CONV = 11,          /* exphil_conv_args */
    EXPHIL_OP_CONV_GRAD = 12,     /* exphil_conv_args */
    EXPHIL_OP_ADAMW = 13          /* exphil_adamw_args */
};
/* Types of the elements of all arrays of a call. */
enum { EXPHIL_OPS_F32 = 0, EXPHIL_OPS_F64 = 1 };

/* An array that is read. */
typedef struct exphil_input { /* fixed layout, never extended */
    const void *data;
    int64_t batch_stride, frame_stride, column_stride; /* in elements; 0: dense */
} exphil_input;
/* An array that is written. */
typedef struct exphil_output { /* fixed layout, never extended */
    void *data;
    int64_t batch_stride, frame_stride, column_stride;
} exphil_output;

/* ---- arguments --------------------------------------------------------------------------------------------- */

/* Selective scan of Mamba (Gu & Dao 2023, S6: zero-order hold for A, Euler for B). u is x of the paper.
 *   d = softplus(delta + delta_bias), or delta + delta_bias with delta_plain
 *   h[t] = exp(d[t] A) h[t-1] + d[t] u[t] b[t]      y[t] = (sum_n c[t][n] h[t][n] + skip u[t]) * SiLU(z[t])
 * That is mamba_ssm's selective_scan_fn(u, delta, A, B, C, D, z, delta_bias, delta_softplus, return_last_state) with B and C
 * of one group that vary with time; delta_plain is delta_softplus=False. Steps below 0 and an A above 0 are not what the
 * kernels are made for: numbers come out, but no particular ones. */
typedef struct exphil_scan_args {
    size_t struct_size;
    int32_t op, type;
    int64_t batch, frames;
    int64_t width;           /* channels */
    int64_t states;          /* of a channel, 1..256 */
    int32_t delta_plain;     /* nonzero: steps are used as they are */
    int32_t reserved;        /* must be 0 */
    exphil_input u;          /* [batch, frames, width] */
    exphil_input delta;      /* [batch, frames, width] */
    exphil_input delta_bias; /* [width] or NULL */
    exphil_input a_log;      /* [width, states]: A = -exp(a_log). It or a, not both */
    exphil_input a;          /* [width, states]: A itself */
    exphil_input b, c;       /* [batch, frames, states] */
    exphil_input skip;       /* [width] or NULL. D of the paper */
    exphil_input z;          /* [batch, frames, width] or NULL: no gate */
    exphil_input reset;      /* [batch, frames] bytes, or NULL; frame_stride 0: one byte after the other */
    exphil_input state_in;   /* [batch, width, states] or NULL */
    exphil_output state_out; /* the same, or NULL. Not written by backward */
    exphil_output y;         /* [batch, frames, width]. Neither read nor written by backward */
    /* backward: gradients of what goes out, in */
    exphil_input dy;         /* [batch, frames, width] */
    exphil_input dstate_out; /* [batch, width, states] or NULL */
    /* backward: gradients of what went in, out; each or NULL, and NULL where the array itself is */
    exphil_output du, ddelta, ddelta_bias;
    exphil_output da; /* of a_log, or of a: of the one that is given */
    exphil_output db, dc, dskip, dz, dstate_in;
} exphil_scan_args;

/* How attention is computed; the bits are the same. */
enum { EXPHIL_ATTENTION_AUTO = 0, EXPHIL_ATTENTION_PLAIN = 1, EXPHIL_ATTENTION_CHUNKED = 2 };
/* Causal sliding-window attention with a bias per head and distance:
 *   y[t] = sum_j softmax_j(q[t].k[j] / sqrt(dim) + bias[head][t-j]) v[j]     t-window < j <= t, of the same episode
 * A row has its heads side by side, [heads * dim]; arrays of [batch, heads, frames, dim] must be transposed first. Columns of
 * one matrix q | k | v are not copied; three arrays of their own are.
 * State: a ring of keys [window, heads*dim], then one of values, then two numbers: the next slot, and how many are filled.
 * All zero is an empty one. It is one row, and no gradient flows into it. */
typedef struct exphil_attention_args {
    size_t struct_size;
    int32_t op, type;
    int64_t batch, frames;
    int64_t heads, dim;
    int64_t window;          /* frames that are seen, the own one among them */
    int32_t method;          /* EXPHIL_ATTENTION_...; with one frame always plain */
    int32_t reserved;        /* must be 0 */
    exphil_input q, k, v;    /* [batch, frames, heads*dim] */
    exphil_input bias;       /* [heads, window] or NULL */
    exphil_input reset;      /* [batch, frames] bytes, or NULL */
    exphil_input state_in;   /* [batch, 2*window*heads*dim + 2] or NULL; its row is [column] */
    exphil_output state_out; /* the same, or NULL. Not written by backward */
    exphil_output y;         /* [batch, frames, heads*dim]; backward reads it */
    void *saved;             /* what backward needs of forward, which writes it; NULL: no backward follows */
    size_t saved_bytes;      /* of saved: as many as the query says, or more */
    exphil_input dy;         /* [batch, frames, heads*dim] */
    exphil_output dq, dk, dv, dbias; /* each or NULL */
} exphil_attention_args;

/* LSTM (Hochreiter & Schmidhuber 1997) and GRU (Cho et al. 2014), in the form and gate order of PyTorch and cuDNN, from the input
 * part of the gates on, gates = x W_ih^T + bias_ih:
 *   LSTM i,f,g,o: all += W h + bias;  c = sig(f) c + sig(i) tanh(g);  h = sig(o) tanh(c)
 *   GRU  r,z,n:   r,z += W h + bias;  n = tanh(gates_n + sig(r) (W_n h + bias_n));  h = (1-sig(z)) n + sig(z) h
 * G: 4 gates of an LSTM, 3 of a GRU. A GRU has no c: what is said of one must be NULL. */
typedef struct exphil_rnn_args {
    size_t struct_size;
    int32_t op, type;
    int64_t batch, frames;
    int64_t hidden;
    exphil_input gates;         /* [batch, frames, G*hidden]. Not read by backward */
    exphil_input weight;        /* [G*hidden, hidden]: PyTorch's weight_hh */
    exphil_input bias;          /* [G*hidden] or NULL: bias_hh */
    exphil_input reset;         /* [batch, frames] bytes, or NULL */
    exphil_input h_in, c_in;    /* [batch, hidden] or NULL; a row is [column] */
    exphil_output h_out, c_out; /* the same, or NULL. Not written by backward */
    exphil_output y;            /* [batch, frames, hidden]: h of every frame; backward reads it */
    void *saved;        /* what backward needs of forward, which writes it; NULL: no backward follows */
    size_t saved_bytes; /* of saved: as many as the query says, or more */
    exphil_input dy;    /* [batch, frames, hidden] */
    exphil_input dh_out, dc_out;                        /* [batch, hidden] or NULL */
    exphil_output dgates, dweight, dbias, dh_in, dc_in; /* each or NULL */
} exphil_rnn_args;

/* LayerNorm (Ba et al. 2016) over the columns, two passes, and SiLU of it:
 *   n = (x - mean) / sqrt(variance + epsilon) * gain + shift      y = n, or n sigmoid(n) with silu */
typedef struct exphil_norm_args {
    size_t struct_size;
    int32_t op, type;
    int64_t batch, frames;
    int64_t width;
    double epsilon;           /* 0 = 1e-5; at most 1 */
    int32_t silu;             /* nonzero: with SiLU */
    int32_t reserved;         /* must be 0 */
    exphil_input x;           /* [batch, frames, width] */
    exphil_input gain, shift; /* [width]. PyTorch's weight and bias */
    exphil_output y;          /* [batch, frames, width]. Neither read nor written by backward */
    void *saved;              /* what backward needs of forward, which writes it; NULL: no backward follows */
    size_t saved_bytes;       /* of saved: as many as the query says, or more */
    exphil_input dy;          /* [batch, frames, width] */
    exphil_output dx, dgain, dshift; /* each or NULL */
} exphil_norm_args;

/* Causal depthwise convolution with SiLU, as before Mamba's scan; there is none without SiLU:
 *   y[t][d] = SiLU(bias[d] + sum_j weight[d][j] x[t-taps+1+j][d])
 * State: the last taps-1 inputs, oldest first. */
typedef struct exphil_conv_args {
    size_t struct_size;
    int32_t op, type;
    int64_t batch, frames;
    int64_t width;
    int64_t taps;            /* 1..256 */
    exphil_input x;          /* [batch, frames, width] */
    exphil_input weight;     /* [width, taps]; a Conv1d's [width, 1, taps] is the same */
    exphil_input bias;       /* [width] or NULL */
    exphil_input reset;      /* [batch, frames] bytes, or NULL */
    exphil_input state_in;   /* [batch, taps-1, width] or NULL */
    exphil_output state_out; /* the same, or NULL. Not written by backward */
    exphil_output y;         /* [batch, frames, width]. Neither read nor written by backward */
    exphil_input dy;         /* [batch, frames, width] */
    exphil_input dstate_out; /* [batch, taps-1, width] or NULL */
    exphil_output dx, dweight, dbias, dstate_in; /* each or NULL */
} exphil_conv_args;

/* One step of AdamW (Loshchilov & Hutter 2019), epsilon outside the root:
 *   g = grad_scale grad;  m = beta1 m + (1-beta1) g;  v = beta2 v + (1-beta2) g^2
 *   p -= rate (m / (1-beta1^step) / (sqrt(v / (1-beta2^step)) + epsilon) + decay p)
 * p, m, v and average are read and written in place. */
typedef struct exphil_adamw_args {
    size_t struct_size;
    int32_t op, type;
    int64_t count;
    int64_t step;        /* 1 for the first */
    double rate;         /* >= 0 */
    double beta1, beta2; /* 0 = 0.9, 0.999; below 1 */
    double epsilon;      /* 0 = 1e-8; at least 1e-30 */
    double decay;        /* >= 0 */
    double grad_scale;   /* 0 = 1 */
    /* average = average_decay average + (1-average_decay) p; 0..1. Only with average */
    double average_decay;
    exphil_output p, m, v; /* [count] */
    exphil_input grad;     /* [count] */
    exphil_output average; /* [count] or NULL */
} exphil_adamw_args;

/* The struct with its size and the number of forward; the others are put into op. */
/* clang-format off */
#define EXPHIL_NO_ARRAY { 0, 0, 0, 0 }
#define EXPHIL_SCAN_ARGS_INIT \
  { sizeof(exphil_scan_args), EXPHIL_OP_SCAN, 0, 0, 0, 0, 0, 0, 0, EXPHIL_NO_ARRAY, \
    EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, \
    EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, \
    EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, \
    EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, \
    EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY }
#define EXPHIL_ATTENTION_ARGS_INIT \
  { sizeof(exphil_attention_args), EXPHIL_OP_ATTENTION, 0, 0, 0, 0, 0, 0, 0, 0, EXPHIL_NO_ARRAY, \
    EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, \
    EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, 0, 0, EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, \
    EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY }
#define EXPHIL_RNN_ARGS_INIT \
  { sizeof(exphil_rnn_args), EXPHIL_OP_LSTM, 0, 0, 0, 0, EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, \
    EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, \
    EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, 0, 0, EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, \
    EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY }
#define EXPHIL_NORM_ARGS_INIT \
  { sizeof(exphil_norm_args), EXPHIL_OP_NORM, 0, 0, 0, 0, 0, 0, 0, EXPHIL_NO_ARRAY, \
    EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, 0, 0, EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, \
    EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY }
#define EXPHIL_CONV_ARGS_INIT \
  { sizeof(exphil_conv_args), EXPHIL_OP_CONV, 0, 0, 0, 0, 0, EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, \
    EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, \
    EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, \
    EXPHIL_NO_ARRAY }
#define EXPHIL_ADAMW_ARGS_INIT \
  { sizeof(exphil_adamw_args), EXPHIL_OP_ADAMW, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, EXPHIL_NO_ARRAY, \
    EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY, EXPHIL_NO_ARRAY }
/* clang-format on */

/* ---- calls ------------------------------------------------------------------------------------------------- */

/* The operations of a context. */
typedef struct exphil_ops exphil_ops;

/* What is decided for all calls. */
typedef struct exphil_ops_config {
    size_t struct_size;
    int32_t threads;  /* 0: those of the context; 1: the calling thread alone */
    int32_t reserved; /* must be 0 */
} exphil_ops_config;
/* clang-format off */
#define EXPHIL_OPS_CONFIG_INIT { sizeof(exphil_ops_config), 0, 0 }
/* clang-format on */

/* On the context's device. config may be NULL. With several threads the context's own are started here, if they are not yet
 * running. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_ops_create(exphil_context *context,
                                                            const exphil_ops_config *config, exphil_ops **ops,
                                                            exphil_error *error);
/* No run may be under way; on a GPU what was enqueued goes on. */
EXPHIL_API void exphil_ops_destroy(exphil_ops *ops);

/* What a call needs and how it is done. */
typedef struct exphil_op_info {
    size_t struct_size;
    size_t workspace_bytes;
    size_t saved_bytes; /* of args.saved; 0: backward needs none */
    int64_t copies; /* arrays that are copied: their strides are no kernel's, or it wants several together */
    const char *kernel; /* its name, valid as long as ops */
} exphil_op_info;
/* clang-format off */
#define EXPHIL_OP_INFO_INIT { sizeof(exphil_op_info), 0, 0, 0, 0 }
/* clang-format on */

/* args: one of the structs above. Looks at dimensions, strides, and at which addresses are NULL (but not at that of saved);
 * of other addresses only at how far q | k | v, dq | dk | dv, and h and c of a state lie apart. Nothing is read from them:
 * before there are arrays, any other value says that there will be one. A run with the same dimensions, strides and NULLs
 * needs as much, or less where these arrays lie side by side and the query could not see it. From any thread.
 * EXPHIL_E_INVALID names the field. EXPHIL_E_UNSUPPORTED: op is not known to this library, or not on this device with this
 * type and these fields. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_ops_query(exphil_ops *ops, const void *args,
                                                           exphil_op_info *info, exphil_error *error);

/* Does what args says. workspace: workspace_bytes of the query or more, on the device, with any alignment, NULL where none are
 * needed; its content does not matter and is not kept. stream: NULL on the CPU, where the work is done when the call
 * returns. On a GPU a cudaStream_t of the context's device (NULL: the default stream) to which the work is added; arrays and
 * workspace are device memory and stay until it is done.
 * After an error nothing was written, except EXPHIL_E_DEVICE. Hot call. From any thread. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_ops_run(exphil_ops *ops, const void *args, void *workspace,
                                                         size_t workspace_bytes, void *stream,
                                                         exphil_error *error);

/* "scan", "scan_grad", ...; NULL for a number that is none: numbers begin with 1 and have no gaps. Static storage. */
EXPHIL_API const char *exphil_op_name(int32_t op);

#ifdef __cplusplus
}
#endif

#endif
