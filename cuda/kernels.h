/* The kernels of the CUDA backend, as its C part and the tests call them. For every operation of table A
 * (lib/device/backend.h) there is an ordered list of candidates, ended by one without name; the first that accepts runs. The sums
 * of a candidate run in one fixed order that depends on shapes alone, and there are no atomics on floats. Candidates of a list may
 * differ in that order, and which of them accepts may depend on the device.
 *
 * args.type is XPH_F32, XPH_BF16 or XPH_F16: that of the matrices with one row per frame. Parameters, states, what is saved for
 * the backward pass, and the gradients of parameters and states are float for both, and so is all arithmetic.
 */
#ifndef XPH_CUDA_KERNELS_H
#define XPH_CUDA_KERNELS_H

#include "device/backend.h"

#ifdef __cplusplus
extern "C" {
#else
#  include <stdbool.h>
#endif

struct CUstream_st; /* cudaStream_t points to one */

typedef struct xph_cuda_candidate {
    const char *name;
    bool (*accepts)(const void *args);
    size_t (*scratch_bytes)(const void *args);                   /* NULL: none */
    int (*launch)(const void *args, struct CUstream_st *stream); /* a cudaError_t, or one of the two below */
} xph_cuda_candidate;

/* A candidate found, with the addresses before it, that it cannot: nothing was done, the next one may. XPH_CUDA_NO_ROOM: the
 * device has no room for its clusters of blocks, which is still to be said. */
enum { XPH_CUDA_REFUSED = -1, XPH_CUDA_NO_ROOM = -2 };

/* The candidate of an operation, and its bit: the first that accepts and is not refused. NULL: there is none. What it calls of
 * other operations is chosen with it, into args. */
const xph_cuda_candidate *xph_cuda_choose(xph_op op, void *args, uint32_t refused, uint32_t *bit);
/* The first half of that, before a candidate is asked: gives the bit of what may refuse in place of the candidate, 0: none. */
uint32_t xph_cuda_compose(xph_op op, void *args, uint32_t refused);
/* The first of a list. */
const xph_cuda_candidate *xph_cuda_first(const xph_cuda_candidate *list, const void *args, uint32_t refused,
                                         uint32_t *bit);
/* What xph_cuda_compose does (rnn.cu, rnn_grad.cu); refused are the candidates of the product. No gradient of a product
 * refuses (blaslt.c). */
uint32_t xph_rnn_compose(xph_rnn_args *args, uint32_t refused);
void xph_rnn_grad_compose(xph_rnn_grad_args *args);

/* Bytes of args.packed: a narrow copy of the weights, or what linear_pack and scan_pack make; 0 for operations that have
 * none. */
size_t xph_cuda_packed_bytes(xph_op op, const void *args);
/* Where in a narrow copy of weights [out,in] that of their bias begins, in bytes. */
size_t xph_packed_bias_at(int64_t in, int64_t out);

/* Bytes of args.marks (scan.cu), and marks alone: y and state_out are not written. */
size_t xph_scan_saved_bytes(const void *args);
int xph_scan_marks(const xph_scan_args *args, struct CUstream_st *stream);

/* The convolution of one frame (conv_frame.cu): before all others in its list. */
bool xph_conv_frame_accepts(const void *args);
int xph_conv_frame(const void *args, struct CUstream_st *stream);

/* Own products with weights as they are (linear.cu): a chain of fmaf per number. */
bool xph_linear_accepts(const void *args);
int xph_linear(const void *args, struct CUstream_st *stream);
bool xph_linear_accepts_few(const void *args);
int xph_linear_few(const void *args, struct CUstream_st *stream);
bool xph_linear_accepts_grad(const void *args);
size_t xph_linear_grad_scratch(const void *args);
int xph_linear_grad(const void *args, struct CUstream_st *stream);

/* Products with weights of fewer bits, and their packing (linear_narrow.cu): behind cuBLASLt in the lists of both. */
size_t xph_narrow_bytes(xph_type weights, int64_t in, int64_t out);
bool xph_narrow_accepts(const void *args);
int xph_narrow_linear(const void *args, struct CUstream_st *stream);
bool xph_narrow_accepts_pack(const void *args);
int xph_narrow_pack(const void *args, struct CUstream_st *stream);

/* Transposed copies (transpose.cu): to[c][r] = from[r][c], floats; of none or one or two matrices, of no rows where there is
 * none. What lies between rows and ldt is left as it is. */
typedef struct xph_transposed {
    const void *from; /* [rows, columns], ld apart */
    void *to;         /* [columns, rows], ldt apart */
    int64_t rows, columns, ld, ldt;
    int64_t squares; /* of the kernel's own */
} xph_transposed;
typedef struct xph_transpose_args {
    xph_transposed of[2];
} xph_transpose_args;
int xph_transpose(const xph_transpose_args *args, struct CUstream_st *stream);

/* Attention by cuDNN (cudnn.c), and what that leaves to kernels. fix_accepts: whether they can. spread_bias: bias as a matrix
 * [heads, time, time], 0 where nothing is seen. fix: y and saved of the tiles that a reset or the ring cuts; saved of all
 * others is made of stats [batch, heads, time]; the ring moves on. */
bool xph_cudnn_attention_accepts(const void *args);
size_t xph_cudnn_attention_scratch(const void *args);
int xph_cudnn_attention(const void *args, struct CUstream_st *stream);
bool xph_attention_fix_accepts(const xph_attention_args *a);
int xph_attention_spread_bias(const xph_attention_args *a, float *to, struct CUstream_st *stream);
int xph_attention_fix(const xph_attention_args *a, const float *stats, struct CUstream_st *stream);

/* own = the sum over ranks of one slice (ranks.cu), for sums over ranks (nccl.c): that of `rank` is own itself, those of the
 * others are rows of `others`, `stride` numbers apart; the row of `rank` is not read. tree: in the order of XPH_COMM_TREE. Gives
 * a cudaError_t. */
typedef struct xph_ranks_args {
    xph_type type; /* XPH_F32, XPH_F64 */
    int32_t tree, rank, ranks;
    int64_t count, stride;
    void *own;          /* [count] */
    const void *others; /* [ranks, stride] */
} xph_ranks_args;
int xph_ranks(const xph_ranks_args *args, struct CUstream_st *stream);

/* A frame of play in one launch (joined_plan.cu; joins and run_joined of table A): a cudaError_t, XPH_CUDA_REFUSED or
 * XPH_CUDA_NO_ROOM. */
bool xph_joined_fits(const xph_joined_op *calls, int64_t count);
int xph_joined_run(const xph_joined_op *calls, int64_t count, const xph_download *results,
                   int64_t result_count, struct CUstream_st *stream);

/* The processor that kernels' code for the current device was written for, 90 for sm_90: a driver makes code for a newer device of
 * older one, in which clusters do nothing and kernels do not wait (launch.cuh). 0: CUDA does not say. */
int32_t xph_cuda_code(void);

/* Runs what args of another operation hold of it (table A, of query). */
static inline int xph_cuda_run(const xph_kernel *kernel, const void *args, struct CUstream_st *stream)
{
    return ((const xph_cuda_candidate *)kernel)->launch(args, stream);
}

#define XPH_CUDA_DECLARE(NAME, name) extern const xph_cuda_candidate xph_cuda_##name[];
XPH_EACH_OP(XPH_CUDA_DECLARE)
#undef XPH_CUDA_DECLARE

#ifdef __cplusplus
}
#endif

#endif
