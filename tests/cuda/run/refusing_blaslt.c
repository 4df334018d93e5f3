/* A cuBLASLt that starts and then refuses every product: what a rehearsal of tools/gpu-check runs with. Products of a stand-in
 * do not run in the order of streams (fake_blaslt.c), so the library's own must take their place. */
#include "blaslt_api.h"

#pragma GCC diagnostic ignored "-Wunused-parameter" /* it refuses whatever it is given */

enum { OK = 0, NOT_SUPPORTED = 15 };

static int nothing; /* what handles point to */

int cublasLtCreate(lt_handle *handle)
{
    *handle = (lt_handle)(void *)&nothing;
    return OK;
}

int cublasLtDestroy(lt_handle handle)
{
    return OK;
}

size_t cublasLtGetVersion(void)
{
    return 130000;
}

int cublasLtMatmulDescCreate(lt_desc *desc, int compute, int scale)
{
    *desc = (lt_desc)(void *)&nothing;
    return OK;
}

int cublasLtMatmulDescSetAttribute(lt_desc desc, int attribute, const void *value, size_t bytes)
{
    return OK;
}

int cublasLtMatmulDescDestroy(lt_desc desc)
{
    return OK;
}

int cublasLtMatrixLayoutCreate(lt_layout *layout, int type, uint64_t rows, uint64_t columns, int64_t ld)
{
    *layout = (lt_layout)(void *)&nothing;
    return OK;
}

int cublasLtMatrixLayoutDestroy(lt_layout layout)
{
    return OK;
}

int cublasLtMatmulPreferenceCreate(lt_pref *pref)
{
    *pref = (lt_pref)(void *)&nothing;
    return OK;
}

int cublasLtMatmulPreferenceSetAttribute(lt_pref pref, int attribute, const void *value, size_t bytes)
{
    return OK;
}

int cublasLtMatmulPreferenceDestroy(lt_pref pref)
{
    return OK;
}

int cublasLtMatmulAlgoGetHeuristic(lt_handle handle, lt_desc desc, lt_layout a, lt_layout b, lt_layout c,
                                   lt_layout d, lt_pref pref, int wanted, lt_found found[], int *count)
{
    *count = 0;
    return NOT_SUPPORTED;
}

int cublasLtMatmulAlgoCheck(lt_handle handle, lt_desc desc, lt_layout a, lt_layout b, lt_layout c,
                            lt_layout d, const lt_algo *algo, lt_found *found)
{
    return NOT_SUPPORTED;
}

int cublasLtMatmulAlgoConfigGetAttribute(const lt_algo *algo, int attribute, void *value, size_t bytes,
                                         size_t *written)
{
    return NOT_SUPPORTED;
}

int cublasLtMatmul(lt_handle handle, lt_desc desc, const void *alpha, const void *a, lt_layout la,
                   const void *b, lt_layout lb, const void *beta, const void *c, lt_layout lc, void *d,
                   lt_layout ld, const lt_algo *algo, void *workspace, size_t workspace_bytes, void *stream)
{
    return NOT_SUPPORTED;
}
