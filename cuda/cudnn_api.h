/* The part of cuDNN's interface that attention uses, so that neither its header nor its library is needed to build. Names and
 * values are those of cudnn_graph.h (cuDNN 9), where they are documented; cudnn_check.c holds them against it. */
#ifndef XPH_CUDA_CUDNN_API_H
#define XPH_CUDA_CUDNN_API_H

#include <stddef.h>
#include <stdint.h>

enum { DN_LEAST_VERSION = 90500, DN_WHOLE_INFINITY = 91000 /* masks may hold it */ };
enum {
    DN_SUCCESS = 0,
    DN_NOT_INITIALIZED = 1001,
    DN_BAD_PARAM = 2000,
    DN_BAD_PARAM_NULL_POINTER = 2002,
    DN_BAD_PARAM_MISALIGNED_POINTER = 2003,
    DN_BAD_PARAM_NOT_FINALIZED = 2004,
    DN_BAD_PARAM_OUT_OF_BOUND = 2005,
    DN_BAD_PARAM_SIZE_INSUFFICIENT = 2006,
    DN_BAD_PARAM_SHAPE_MISMATCH = 2008,
    DN_BAD_PARAM_DUPLICATED_ENTRIES = 2009,
    DN_BAD_PARAM_ATTRIBUTE_TYPE = 2010,
    DN_BAD_PARAM_DESCRIPTOR_TYPE = 2012,
    DN_NOT_SUPPORTED = 3000,
    DN_NOT_SUPPORTED_GRAPH_PATTERN = 3001,
    DN_NOT_SUPPORTED_SHAPE = 3002,
    DN_NOT_SUPPORTED_DATA_TYPE = 3003,
    DN_NOT_SUPPORTED_LAYOUT = 3004,
    DN_INTERNAL_ERROR = 4000,
    DN_EXECUTION_FAILED = 5000, /* and up to 5999 */
    DN_STATUS_END = 6000
};                                                                                  /* cudnnStatus_t */
enum { DN_FLOAT = 0, DN_HALF = 2, DN_INT32 = 4, DN_BFLOAT16 = 9, DN_BOOLEAN = 11 }; /* cudnnDataType_t */
enum { DN_REDUCE_ADD = 0, DN_REDUCE_MAX = 3 }; /* cudnnReduceTensorOp_t */
enum {
    DN_POINTWISE_ADD = 0,
    DN_POINTWISE_MUL = 1,
    DN_POINTWISE_DIV = 6,
    DN_POINTWISE_SUB = 9,
    DN_POINTWISE_EXP = 13,
    DN_POINTWISE_LOG = 15,
    DN_POINTWISE_CMP_GT = 302,
    DN_POINTWISE_CMP_GE = 303,
    DN_POINTWISE_GEN_INDEX = 501,
    DN_POINTWISE_SELECT = 601
};                                                         /* cudnnPointwiseMode_t */
enum { DN_HEURISTIC_FALLBACK = 2, DN_HEURISTIC_A = 3 };    /* cudnnBackendHeurMode_t */
enum { DN_NOTE_NONDETERMINISTIC = 4, DN_NOTES_MOST = 16 }; /* cudnnBackendNumericalNote_t */

enum {
    DN_OF_HANDLE = 0,
    DN_OF_DATA_TYPE = 1,
    DN_OF_BOOLEAN = 2,
    DN_OF_INT64 = 3,
    DN_OF_FLOAT = 4,
    DN_OF_POINTER = 6,
    DN_OF_HEURISTIC = 8,
    DN_OF_NOTE = 11,
    DN_OF_POINTWISE = 14,
    DN_OF_DESCRIPTOR = 15,
    DN_OF_REDUCTION = 18,
    DN_OF_CHAR = 24
}; /* cudnnBackendAttributeType_t */

enum {
    DN_POINTWISE = 0,
    DN_ENGINE = 2,
    DN_ENGINE_CONFIG = 3,
    DN_ENGINE_HEURISTIC = 4,
    DN_EXECUTION_PLAN = 5,
    DN_OP_POINTWISE = 13,
    DN_GRAPH = 15,
    DN_VARIANT_PACK = 16,
    DN_TENSOR = 17,
    DN_MATMUL = 18,
    DN_OP_MATMUL = 19,
    DN_REDUCTION = 21,
    DN_OP_REDUCTION = 22,
    DN_DEVICE = 38 /* 9.8 and newer */
};                 /* cudnnBackendDescriptorType_t */

enum {
    DN_POINTWISE_MODE = 0,
    DN_POINTWISE_PRECISION = 1,
    DN_POINTWISE_AXIS = 9,
    DN_HEURISTIC_MODE = 200,
    DN_HEURISTIC_GRAPH = 201,
    DN_HEURISTIC_RESULTS = 202,
    DN_HEURISTIC_DEVICE = 204,
    DN_CONFIG_ENGINE = 300,
    DN_PLAN_HANDLE = 400,
    DN_PLAN_CONFIG = 401,
    DN_PLAN_WORKSPACE = 402,
    DN_OP_POINTWISE_DESC = 750,
    DN_OP_POINTWISE_X = 751,
    DN_OP_POINTWISE_B = 752,
    DN_OP_POINTWISE_Y = 753,
    DN_OP_POINTWISE_T = 758,
    DN_GRAPH_HANDLE = 800,
    DN_GRAPH_OPS = 801,
    DN_TENSOR_ALIGNMENT = 900,
    DN_TENSOR_TYPE = 901,
    DN_TENSOR_DIMENSIONS = 902,
    DN_TENSOR_STRIDES = 903,
    DN_TENSOR_ID = 906,
    DN_TENSOR_VIRTUAL = 907,
    DN_TENSOR_BY_VALUE = 908,
    DN_PACK_IDS = 1000,
    DN_PACK_POINTERS = 1001,
    DN_PACK_WORKSPACE = 1003,
    DN_ENGINE_NOTES = 1303,
    DN_MATMUL_TYPE = 1500,
    DN_OP_MATMUL_A = 1520,
    DN_OP_MATMUL_B = 1521,
    DN_OP_MATMUL_C = 1522,
    DN_OP_MATMUL_DESC = 1523,
    DN_REDUCTION_OPERATOR = 1600,
    DN_REDUCTION_TYPE = 1601,
    DN_OP_REDUCTION_X = 1610,
    DN_OP_REDUCTION_Y = 1611,
    DN_OP_REDUCTION_DESC = 1612,
    DN_DEVICE_JSON = 2702
}; /* cudnnBackendAttributeName_t */

typedef struct dn_context *dn_handle;
typedef void *dn_desc;
struct CUstream_st;

/* Functions by the names that they are looked up under. Results are cudnnStatus_t, enums are passed as int. */
typedef struct dn_library {
    size_t (*cudnnGetVersion)(void);
    void (*cudnnGetLastErrorString)(char *message, size_t bytes);
    int (*cudnnCreate)(dn_handle *handle);
    int (*cudnnDestroy)(dn_handle handle);
    int (*cudnnSetStream)(dn_handle handle, struct CUstream_st *stream);
    int (*cudnnBackendCreateDescriptor)(int type, dn_desc *desc);
    int (*cudnnBackendDestroyDescriptor)(dn_desc desc);
    int (*cudnnBackendFinalize)(dn_desc desc);
    int (*cudnnBackendSetAttribute)(dn_desc desc, int name, int type, int64_t count, const void *values);
    int (*cudnnBackendGetAttribute)(const dn_desc desc, int name, int type, int64_t wanted, int64_t *count,
                                    void *values);
    int (*cudnnBackendExecute)(dn_handle handle, dn_desc plan, dn_desc pack);
} dn_library;

#define DN_EACH_FUNCTION(each)                                                                               \
  each(cudnnGetVersion) each(cudnnGetLastErrorString) each(cudnnCreate) each(cudnnDestroy)                   \
      each(cudnnSetStream) each(cudnnBackendCreateDescriptor) each(cudnnBackendDestroyDescriptor)            \
          each(cudnnBackendFinalize) each(cudnnBackendSetAttribute) each(cudnnBackendGetAttribute)           \
              each(cudnnBackendExecute)

extern const int
    xph_cudnn_checked; /* the version of the header that all of this was held against; 0: none was there */

#endif
