/* Products in tf32 whose operands are transposed first. Matrix units of sm_90 take operands of 4 bytes along the sum alone, as both
 * of y = x W^T lie; those of dw = dy^T x lie across it, and W of dx = dy W. What cuBLASLt does about that inside of a kernel, and
 * whether a copy is faster, is for `exphil bench tune` to measure: only a line of its file asks for copies. They are made in the
 * scratch of the operation. */
#include "blaslt.h"

#include <string.h>

enum { PAD = 32, ALIGN = 256 }; /* numbers of a row; bytes of a copy */

bool xph_lt_may_transpose(const shape *s, int32_t which)
{
    const bool a = which & LT_TRANSPOSED_A, b = which & LT_TRANSPOSED_B;
    return which > 0 && which <= LT_TRANSPOSED && s->type_ab == LT_R_32F && s->type_cd == LT_R_32F &&
           s->compute == LT_COMPUTE_32F_FAST_TF32 && s->bias < 0 && (!a || s->transpose_a == LT_OP_N) &&
           (!b || s->transpose_b == LT_OP_T);
}

static int64_t padded(int64_t k)
{
    return (k + PAD - 1) / PAD * PAD;
}

shape xph_lt_transposed(const shape *s, int32_t which)
{
    shape t = *s;
    t.transposed = which;
    if (which & LT_TRANSPOSED_A) {
        t.transpose_a = LT_OP_T;
        t.lda = padded(s->k);
        t.align[0] = ALIGN;
    }
    if (which & LT_TRANSPOSED_B) {
        t.transpose_b = LT_OP_N;
        t.ldb = padded(s->k);
        t.align[1] = ALIGN;
    }
    return t;
}

static size_t bytes_of(const shape *s, int64_t columns)
{
    return (size_t)padded(s->k) * (size_t)columns * sizeof(float);
}

/* The second begins behind the first, aligned. */
static size_t second_at(const shape *s, int32_t which)
{
    return which & LT_TRANSPOSED_A ? (bytes_of(s, s->m) + ALIGN - 1) / ALIGN * ALIGN : 0;
}

size_t xph_lt_transposed_bytes(const shape *s, int32_t which)
{
    if (!which) return 0;
    return ALIGN + second_at(s, which) + (which & LT_TRANSPOSED_B ? bytes_of(s, s->n) : 0);
}

size_t xph_choices_scratch(const lt_choices *choices, const shape *of)
{
    size_t most = 0;
    for (int64_t i = 0; i < choices->count; i++) {
        const shape *s = &choices->of[i].shape;
        if (memcmp(s, of, offsetof(shape, align)) != 0) continue;
        const size_t bytes = xph_lt_transposed_bytes(of, s->transposed);
        if (bytes > most) most = bytes;
    }
    return most;
}

int xph_lt_transpose(const shape *s, int32_t which, const void *operand[2], void *scratch,
                     cudaStream_t stream)
{
    xph_transpose_args args = {{{.rows = 0}}};
    if (!which) return cudaSuccess;
    char *const base = (char *)scratch + (-(uintptr_t)scratch & (ALIGN - 1));
    if (which & LT_TRANSPOSED_A) {
        args.of[0] = (xph_transposed){operand[0], base, s->k, s->m, s->lda, padded(s->k), 0};
        operand[0] = base;
    }
    if (which & LT_TRANSPOSED_B) {
        char *const to = base + second_at(s, which);
        args.of[1] = (xph_transposed){operand[1], to, s->k, s->n, s->ldb, padded(s->k), 0};
        operand[1] = to;
    }
    return xph_transpose(&args, stream);
}
