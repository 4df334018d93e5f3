/* A stand-in for cuBLASLt on the emulated GPU: the functions that cuda/blaslt.c looks up, done by plain loops, strict about
 * what it is given. It works when it is called, so streams must be eager. */
#include "cublaslt.h"

#include <stdlib.h>
#include <string.h>

struct lt_handle {
    int magic;
};
struct lt_desc {
    int compute, transpose[2], epilogue, bias_type;
    const void *bias;
};
struct lt_layout {
    int type;
    uint64_t rows, columns;
    int64_t ld;
};
struct lt_pref {
    size_t workspace;
    uint32_t schemes, align[4];
};

enum { MAGIC = 0x17, OK = 0, INVALID = 7, NOT_SUPPORTED = 15 };

/* What a test asks: products so far; whether a bias of floats beside narrow outputs is refused. */
__attribute__((visibility("default"))) int fake_products, fake_refuses_float_bias, fake_alive;

#define API __attribute__((visibility("default")))

API int cublasLtCreate(lt_handle *handle);
API int cublasLtDestroy(lt_handle handle);
API size_t cublasLtGetVersion(void);
API int cublasLtMatmulDescCreate(lt_desc *desc, int compute, int scale);
API int cublasLtMatmulDescSetAttribute(lt_desc desc, int attribute, const void *value, size_t bytes);
API int cublasLtMatmulDescDestroy(lt_desc desc);
API int cublasLtMatrixLayoutCreate(lt_layout *layout, int type, uint64_t rows, uint64_t columns, int64_t ld);
API int cublasLtMatrixLayoutDestroy(lt_layout layout);
API int cublasLtMatmulPreferenceCreate(lt_pref *pref);
API int cublasLtMatmulPreferenceSetAttribute(lt_pref pref, int attribute, const void *value, size_t bytes);
API int cublasLtMatmulPreferenceDestroy(lt_pref pref);
API int cublasLtMatmulAlgoGetHeuristic(lt_handle handle, lt_desc desc, lt_layout a, lt_layout b, lt_layout c,
                                       lt_layout d, lt_pref pref, int wanted, lt_found found[], int *count);
API int cublasLtMatmul(lt_handle handle, lt_desc desc, const void *alpha, const void *a, lt_layout la,
                       const void *b, lt_layout lb, const void *beta, const void *c, lt_layout lc, void *d,
                       lt_layout ld, const lt_algo *algo, void *workspace, size_t workspace_bytes,
                       void *stream);

int cublasLtCreate(lt_handle *handle)
{
    *handle = calloc(1, sizeof **handle);
    (*handle)->magic = MAGIC;
    fake_alive++;
    return OK;
}

int cublasLtDestroy(lt_handle handle)
{
    free(handle);
    fake_alive--;
    return OK;
}

size_t cublasLtGetVersion(void)
{
    return 130000;
}

int cublasLtMatmulDescCreate(lt_desc *desc, int compute, int scale)
{
    *desc = calloc(1, sizeof **desc);
    **desc = (struct lt_desc){.compute = compute, .epilogue = LT_EPILOGUE_DEFAULT, .bias_type = -1};
    fake_alive++;
    return scale == LT_R_32F ? OK : INVALID;
}

static int take(void *to, size_t room, const void *value, size_t bytes)
{
    if (bytes != room) return INVALID;
    memcpy(to, value, bytes);
    return OK;
}

int cublasLtMatmulDescSetAttribute(lt_desc desc, int attribute, const void *value, size_t bytes)
{
    switch (attribute) {
    case LT_DESC_TRANSA:
        return take(&desc->transpose[0], sizeof(int), value, bytes);
    case LT_DESC_TRANSB:
        return take(&desc->transpose[1], sizeof(int), value, bytes);
    case LT_DESC_EPILOGUE:
        return take(&desc->epilogue, sizeof(int), value, bytes);
    case LT_DESC_BIAS_DATA_TYPE:
        return take(&desc->bias_type, sizeof(int), value, bytes);
    case LT_DESC_BIAS_POINTER:
        return take((void *)&desc->bias, sizeof desc->bias, value, bytes);
    default:
        return INVALID;
    }
}

int cublasLtMatmulDescDestroy(lt_desc desc)
{
    free(desc);
    fake_alive--;
    return OK;
}

int cublasLtMatrixLayoutCreate(lt_layout *layout, int type, uint64_t rows, uint64_t columns, int64_t ld)
{
    *layout = calloc(1, sizeof **layout);
    **layout = (struct lt_layout){type, rows, columns, ld};
    fake_alive++;
    return ld >= (int64_t)rows ? OK : INVALID;
}

int cublasLtMatrixLayoutDestroy(lt_layout layout)
{
    free(layout);
    fake_alive--;
    return OK;
}

int cublasLtMatmulPreferenceCreate(lt_pref *pref)
{
    *pref = calloc(1, sizeof **pref);
    fake_alive++;
    return OK;
}

int cublasLtMatmulPreferenceSetAttribute(lt_pref pref, int attribute, const void *value, size_t bytes)
{
    int align = attribute - LT_PREF_MIN_ALIGNMENT_A_BYTES;
    if (attribute == LT_PREF_MAX_WORKSPACE_BYTES)
        return take(&pref->workspace, sizeof pref->workspace, value, bytes);
    if (attribute == LT_PREF_REDUCTION_SCHEME_MASK)
        return take(&pref->schemes, sizeof pref->schemes, value, bytes);
    return align >= 0 && align < 4 ? take(&pref->align[align], sizeof(uint32_t), value, bytes) : INVALID;
}

int cublasLtMatmulPreferenceDestroy(lt_pref pref)
{
    free(pref);
    fake_alive--;
    return OK;
}

static int fits(const struct lt_desc *desc, const struct lt_layout *a, const struct lt_layout *b,
                const struct lt_layout *c, const struct lt_layout *d)
{
    uint64_t m = desc->transpose[0] ? a->columns : a->rows, k = desc->transpose[0] ? a->rows : a->columns;
    uint64_t n = desc->transpose[1] ? b->rows : b->columns, inner = desc->transpose[1] ? b->columns : b->rows;
    return k == inner && d->rows == m && d->columns == n && c->rows == m && c->columns == n &&
           c->type == d->type && a->type == b->type;
}

int cublasLtMatmulAlgoGetHeuristic(lt_handle handle, lt_desc desc, lt_layout a, lt_layout b, lt_layout c,
                                   lt_layout d, lt_pref pref, int wanted, lt_found found[], int *count)
{
    if (handle->magic != MAGIC || wanted != 1 || !fits(desc, a, b, c, d) || pref->schemes & 1) return INVALID;
    *count = 0;
    if (a->type == LT_R_16F) return NOT_SUPPORTED; /* no test multiplies halves */
    if (fake_refuses_float_bias && desc->bias_type == LT_R_32F && d->type != LT_R_32F) return NOT_SUPPORTED;
    memset(found, 0, sizeof *found);
    found->workspace_bytes = pref->workspace / 2;
    for (int i = 0; i < 4; i++) found->algo.data[i] = pref->align[i];
    *count = 1;
    return OK;
}

static float get(const void *at, int type, int64_t i)
{
    uint16_t narrow;
    uint32_t bits;
    float x;
    if (type == LT_R_32F) return ((const float *)at)[i];
    memcpy(&narrow, (const uint16_t *)at + i, sizeof narrow);
    bits = (uint32_t)narrow << 16;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void put(void *at, int type, int64_t i, float x)
{
    uint32_t bits;
    if (type == LT_R_32F) {
        ((float *)at)[i] = x;
    } else {
        memcpy(&bits, &x, sizeof bits);
        ((uint16_t *)at)[i] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
}

int cublasLtMatmul(lt_handle handle, lt_desc desc, const void *alpha, const void *a, lt_layout la,
                   const void *b, lt_layout lb, const void *beta, const void *c, lt_layout lc, void *d,
                   lt_layout ld, const lt_algo *algo, void *workspace, size_t workspace_bytes, void *stream)
{
    const void *address[4] = {a, b, c, d};
    const float times = *(const float *)beta;
    if (handle->magic != MAGIC || *(const float *)alpha != 1.0f || !stream) return INVALID;
    if (!workspace || workspace_bytes < 1024) return INVALID;
    for (int i = 0; i < 4; i++)
        if ((uintptr_t)address[i] % algo->data[i]) return INVALID;
    uint64_t inner = desc->transpose[0] ? la->rows : la->columns;
    for (uint64_t j = 0; j < ld->columns; j++)
        for (uint64_t i = 0; i < ld->rows; i++) {
            double sum = 0.0;
            for (uint64_t k = 0; k < inner; k++) {
                int64_t at =
                    (int64_t)(desc->transpose[0] ? k : i) + (int64_t)(desc->transpose[0] ? i : k) * la->ld;
                int64_t bt =
                    (int64_t)(desc->transpose[1] ? j : k) + (int64_t)(desc->transpose[1] ? k : j) * lb->ld;
                sum += (double)get(a, la->type, at) * (double)get(b, lb->type, bt);
            }
            if (times != 0.0f) sum += (double)(times * get(c, lc->type, (int64_t)i + (int64_t)j * lc->ld));
            if (desc->epilogue == LT_EPILOGUE_BIAS)
                sum += (double)get(desc->bias, desc->bias_type, (int64_t)i);
            put(d, ld->type, (int64_t)i + (int64_t)j * ld->ld, (float)sum);
        }
    fake_products++;
    return OK;
}
