/* The part of cuBLASLt's interface that products use, so that neither its header nor its library is needed to build. Names,
 * values and layouts are those of cublasLt.h (CUDA 12 and 13), where they are documented. */
#ifndef XPH_CUDA_CUBLASLT_H
#define XPH_CUDA_CUBLASLT_H

#include <stddef.h>
#include <stdint.h>

enum { LT_R_32F = 0, LT_R_16F = 2, LT_R_16BF = 14 };         /* cudaDataType */
enum { LT_COMPUTE_32F = 68, LT_COMPUTE_32F_FAST_TF32 = 77 }; /* cublasComputeType_t */
enum { LT_OP_N = 0, LT_OP_T = 1 };                           /* cublasOperation_t */
enum {
    LT_DESC_TRANSA = 3,
    LT_DESC_TRANSB = 4,
    LT_DESC_EPILOGUE = 7,
    LT_DESC_BIAS_POINTER = 8,
    LT_DESC_BIAS_DATA_TYPE = 26
};                                                      /* cublasLtMatmulDescAttributes_t */
enum { LT_EPILOGUE_DEFAULT = 1, LT_EPILOGUE_BIAS = 4 }; /* cublasLtEpilogue_t */
enum {
    LT_PREF_MAX_WORKSPACE_BYTES = 1,
    LT_PREF_REDUCTION_SCHEME_MASK = 3,
    LT_PREF_MIN_ALIGNMENT_A_BYTES = 5
}; /* cublasLtMatmulPreferenceAttributes_t; B, C, D follow */
enum { LT_REDUCTION_COMPUTE_TYPE = 2, LT_REDUCTION_OUTPUT_TYPE = 4 }; /* cublasLtReductionScheme_t */

enum {
    LT_CONFIG_ID = 0,
    LT_CONFIG_TILE_ID = 1,
    LT_CONFIG_SPLITK_NUM = 2,
    LT_CONFIG_STAGES_ID = 6
}; /* cublasLtMatmulAlgoConfigAttributes_t; each 4 bytes */

enum { LT_STATUS_MAPPING_ERROR = 11, LT_STATUS_EXECUTION_FAILED = 13 }; /* cublasStatus_t */

typedef struct lt_handle *lt_handle;
typedef struct lt_desc *lt_desc;
typedef struct lt_layout *lt_layout;
typedef struct lt_pref *lt_pref;
typedef struct lt_algo {
    uint64_t data[8];
} lt_algo;
typedef struct lt_found {
    lt_algo algo;
    size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
} lt_found;

/* Functions by the names that they are looked up under; each gives 0 when all went well. */
typedef struct lt_library {
    int (*cublasLtCreate)(lt_handle *handle);
    int (*cublasLtDestroy)(lt_handle handle);
    size_t (*cublasLtGetVersion)(void);
    int (*cublasLtMatmulDescCreate)(lt_desc *desc, int compute, int scale);
    int (*cublasLtMatmulDescSetAttribute)(lt_desc desc, int attribute, const void *value, size_t bytes);
    int (*cublasLtMatmulDescDestroy)(lt_desc desc);
    int (*cublasLtMatrixLayoutCreate)(lt_layout *layout, int type, uint64_t rows, uint64_t columns,
                                      int64_t ld);
    int (*cublasLtMatrixLayoutDestroy)(lt_layout layout);
    int (*cublasLtMatmulPreferenceCreate)(lt_pref *pref);
    int (*cublasLtMatmulPreferenceSetAttribute)(lt_pref pref, int attribute, const void *value, size_t bytes);
    int (*cublasLtMatmulPreferenceDestroy)(lt_pref pref);
    int (*cublasLtMatmulAlgoGetHeuristic)(lt_handle handle, lt_desc desc, lt_layout a, lt_layout b,
                                          lt_layout c, lt_layout d, lt_pref pref, int wanted,
                                          lt_found found[], int *count);
    int (*cublasLtMatmulAlgoCheck)(lt_handle handle, lt_desc desc, lt_layout a, lt_layout b, lt_layout c,
                                   lt_layout d, const lt_algo *algo, lt_found *found);
    int (*cublasLtMatmulAlgoConfigGetAttribute)(const lt_algo *algo, int attribute, void *value, size_t bytes,
                                                size_t *written);
    int (*cublasLtMatmul)(lt_handle handle, lt_desc desc, const void *alpha, const void *a, lt_layout la,
                          const void *b, lt_layout lb, const void *beta, const void *c, lt_layout lc, void *d,
                          lt_layout ld, const lt_algo *algo, void *workspace, size_t workspace_bytes,
                          void *stream);
} lt_library;

#endif
