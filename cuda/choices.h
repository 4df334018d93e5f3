/* Algorithms of cuBLASLt that were timed and kept in a file: `exphil bench tune` writes it, a device that is opened with
 * EXPHIL_CUBLASLT_CHOICES=FILE takes it. Lines of text, numbers in decimal, one blank between words:
 *
 *   exphil cublaslt choices 1
 *   card NAME                   as the driver names it
 *   isa sm_90
 *   driver N                    cudaDriverGetVersion
 *   library N                   cublasLtGetVersion
 *   products N                  then so many of the lines
 *   product <24 numbers> <8 words of 16 hexadecimal digits>
 *   sum <16 hexadecimal digits> FNV-1a, 64 bits, of all bytes before this line
 *
 * Numbers of a product: those of lt_shape in their order, bytes of workspace, then algorithm, tile, stages and parts of
 * split-K as the library tells them, which are for people. The words are cublasLtMatmulAlgo_t. Where operands are transposed
 * first (blaslt_transposed.c), the shape is that of the product before, the algorithm that of the one after. */
#ifndef XPH_CUDA_CHOICES_H
#define XPH_CUDA_CHOICES_H

#include "cublaslt.h"
#include "device.h"

#define LT_WORKSPACE ((size_t)32 << 20)

enum { LT_MATRICES = 4, LT_ALIGNMENTS = LT_MATRICES + 1, LT_CONFIGS = 4, LT_NAME = 32 };

/* A product d = op(a) op(b) + beta c, all as cuBLASLt sees them. */
typedef struct lt_shape {
    int64_t m, n, k, lda, ldb, ldc, ldd;
    int32_t transpose_a, transpose_b, type_ab, type_cd, compute, bias; /* bias: type of it, or -1 */
    int32_t align[LT_ALIGNMENTS];                                      /* of a, b, c, d, bias: bytes */
    int32_t
        transposed; /* which operands are copied first, LT_TRANSPOSED_...; of a product that is asked for 0 */
} lt_shape;
enum { LT_TRANSPOSED_A = 1, LT_TRANSPOSED_B = 2, LT_TRANSPOSED = 3 };

typedef struct lt_choice {
    lt_shape shape;
    int64_t workspace_bytes;
    int32_t config[LT_CONFIGS]; /* algorithm, tile, stages, parts */
    lt_algo algo;
} lt_choice;

typedef struct lt_choices {
    char card[256], isa[32];
    int64_t driver, library;
    lt_choice *of;
    int64_t count;
    bool *taken;             /* [count] for a product; NULL: of no file */
    int64_t asked, answered; /* products */
} lt_choices;

/* 0 bytes of choices, for this device and library. */
void xph_choices_head(lt_choices *choices, const xph_cuda_device *device, size_t library);
/* EXPHIL_E_IO, EXPHIL_E_FORMAT (which byte), EXPHIL_E_UNSUPPORTED: it is of another card, driver or library. Then there is
 * nothing in choices. */
exphil_status xph_choices_read(const char *path, const xph_cuda_device *device, size_t library,
                               lt_choices *choices, exphil_error *error);
exphil_status xph_choices_write(const char *path, const lt_choices *choices, exphil_error *error);
void xph_choices_free(lt_choices *choices);
bool xph_choices_same(const lt_choices *a, const lt_choices *b);
/* Of a file: how many were taken and how many products had none, a line of the log. Nothing if no product was asked for. */
void xph_choices_tell(const lt_choices *choices, const xph_cuda_device *device);
/* The first for this shape whose matrices are aligned no better than these. alignment false: whatever these are. */
const lt_choice *xph_choices_find(const lt_choices *choices, const lt_shape *shape, bool alignment);
/* That which a product takes, for xph_choices_tell. */
const lt_choice *xph_choices_take(lt_choices *choices, const lt_shape *shape);
/* Bytes of scratch that a product of this shape may want, however its matrices are aligned. */
size_t xph_choices_scratch(const lt_choices *choices, const lt_shape *shape);
/* Whether it is one in tf32 whose operands `which` do not lie along the sum (blaslt_transposed.c). */
bool xph_lt_may_transpose(const lt_shape *shape, int32_t which);
/* "66.20.15.1"; behind it ".ta", ".tb" or ".tab" where a, b or both are transposed first */
void xph_choice_name(const lt_choice *choice, char name[LT_NAME]);

#endif
