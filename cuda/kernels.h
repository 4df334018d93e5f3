/* The kernels of the CUDA backend, as its C part and the tests call them. For every operation of table A
 * (lib/device/backend.h) there is an ordered list of candidates, ended by one without name; the first that accepts runs. All
 * candidates of a list give the same bits, whatever the device: sums run in one fixed order that depends on shapes
 * alone, and there are no atomics on floats.
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
    int (*launch)(const void *args, struct CUstream_st *stream); /* a cudaError_t, or XPH_CUDA_REFUSED */
} xph_cuda_candidate;

/* A candidate found, with the addresses before it, that it cannot: nothing was done, the next one may. */
enum { XPH_CUDA_REFUSED = -1 };

/* The first candidate of op that accepts and is not refused, by bit; NULL: there is none. */
const xph_cuda_candidate *xph_cuda_choose(xph_op op, const void *args, uint32_t refused, uint32_t *bit);

/* Bytes of args.packed: a narrow copy of the weights, or what linear_pack and scan_pack make; 0 for operations that have
 * none. */
size_t xph_cuda_packed_bytes(xph_op op, const void *args);
/* Where in a narrow copy of weights [out,in] that of their bias begins, in bytes. */
size_t xph_packed_bias_at(int64_t in, int64_t out);

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

/* Runs the first that accepts and does not refuse: for a kernel made of others, as a product in a recurrent layer, with
 * scratch for all of them. cudaErrorInvalidValue (1) when none does. */
static inline int xph_cuda_run(const xph_cuda_candidate *list, const void *args, struct CUstream_st *stream)
{
    for (; list->name; list++) {
        const int code = list->accepts(args) ? list->launch(args, stream) : XPH_CUDA_REFUSED;
        if (code != XPH_CUDA_REFUSED) return code;
    }
    return 1;
}

#define XPH_CUDA_DECLARE(NAME, name) extern const xph_cuda_candidate xph_cuda_##name[];
XPH_EACH_OP(XPH_CUDA_DECLARE)
#undef XPH_CUDA_DECLARE

#ifdef __cplusplus
}
#endif

#endif
