/* The functions of cuBLASLt that cuda/blaslt.c looks up, as a stand-in exports them. */
#ifndef EXPHIL_BLASLT_API_H
#define EXPHIL_BLASLT_API_H

#include "cublaslt.h"

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
API int cublasLtMatmulAlgoCheck(lt_handle handle, lt_desc desc, lt_layout a, lt_layout b, lt_layout c,
                                lt_layout d, const lt_algo *algo, lt_found *found);
API int cublasLtMatmulAlgoConfigGetAttribute(const lt_algo *algo, int attribute, void *value, size_t bytes,
                                             size_t *written);
API int cublasLtMatmul(lt_handle handle, lt_desc desc, const void *alpha, const void *a, lt_layout la,
                       const void *b, lt_layout lb, const void *beta, const void *c, lt_layout lc, void *d,
                       lt_layout ld, const lt_algo *algo, void *workspace, size_t workspace_bytes,
                       void *stream);

#endif
