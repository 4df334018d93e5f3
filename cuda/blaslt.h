/* What products by cuBLASLt (blaslt.c) and the timing of their algorithms (blaslt_tune.c) share. */
#ifndef XPH_CUDA_BLASLT_H
#define XPH_CUDA_BLASLT_H

#include "choices.h"

enum { NO_ALGORITHM = -1 }; /* beside cublasStatus_t */

typedef lt_shape shape;

typedef struct plan {
    struct plan *next;
    shape key;   /* of the product that is wanted */
    shape asked; /* of that which the library is asked for: key, or with operands transposed */
    lt_desc desc;
    lt_layout a, b, c, d;
    lt_found found;
    int refused; /* a cublasStatus_t or NO_ALGORITHM; 0: no */
} plan;

typedef struct workspace {
    xph_cuda_stream *of;
    void *address;
} workspace;

struct xph_blaslt {
    pthread_mutex_t lock;
    lt_handle handle;
    plan *plans;
    workspace *workspaces;
    int64_t workspace_count, workspace_capacity;
    lt_choices choices; /* of a file, as it was when the first device was opened; none: the library's own */
    atomic_int users;   /* devices of this ordinal that are open; counted under opening, read without it */
};

extern lt_library xph_lt; /* once a device has it */

/* Descriptions of p->asked; a cublasStatus_t. */
int xph_lt_describe(plan *p, const void *of_bias);
/* All that it holds, but itself. */
void xph_lt_free(plan *p);
/* The library reads off the address of the bias how it is aligned. */
int xph_lt_bias(const plan *p, const void *bias);
/* At most `wanted` algorithms, best first as the library thinks. */
int xph_lt_ask(const xph_blaslt *lt, const plan *p, lt_found *found, int wanted, int *count);
const char *xph_lt_type(int32_t type);

/* blaslt_transposed.c. The product with operands `which` transposed, what their copies take of scratch, and making them: operand
 * becomes where they are. A cudaError_t. */
shape xph_lt_transposed(const shape *s, int32_t which);
size_t xph_lt_transposed_bytes(const shape *s, int32_t which);
int xph_lt_transpose(const shape *s, int32_t which, const void *operand[2], void *scratch,
                     cudaStream_t stream);

#endif
