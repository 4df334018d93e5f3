/* Checks nccl_api.h against NVIDIA's own header, where that is installed. */
#include "nccl_api.h"

#if defined(__has_include)
#  if __has_include(<nccl.h>) && __has_include(<cuda_runtime.h>)
#    define NC_CHECKED 1
#  endif
#endif

#ifdef NC_CHECKED
#  include <nccl.h>

#  define SAME(own, theirs) _Static_assert((long long)(own) == (long long)(theirs), #  own " is not " #  theirs)
SAME(NC_SUCCESS, ncclSuccess);
SAME(NC_UNHANDLED_CUDA_ERROR, ncclUnhandledCudaError);
SAME(NC_SYSTEM_ERROR, ncclSystemError);
SAME(NC_INTERNAL_ERROR, ncclInternalError);
SAME(NC_INVALID_ARGUMENT, ncclInvalidArgument);
SAME(NC_INVALID_USAGE, ncclInvalidUsage);
SAME(NC_REMOTE_ERROR, ncclRemoteError);
SAME(NC_IN_PROGRESS, ncclInProgress);
SAME(NC_INT8, ncclInt8);
SAME(NC_FLOAT32, ncclFloat32);
SAME(NC_FLOAT64, ncclFloat64);
SAME(NC_SUM, ncclSum);
SAME(NC_ID_BYTES, NCCL_UNIQUE_ID_BYTES);
SAME(NC_UNDEFINED, NCCL_CONFIG_UNDEF_INT);
SAME(NC_LEAST_VERSION, NCCL_VERSION(2, 18, 0));
SAME(sizeof(nc_id), sizeof(ncclUniqueId));
SAME(_Alignof(nc_id), _Alignof(ncclUniqueId));

#  define SAME_PLACE(own, theirs)                                                                            \
    SAME(offsetof(nc_config, own), offsetof(ncclConfig_t, theirs));                                          \
    SAME(sizeof(((nc_config *)0)->own), sizeof(((ncclConfig_t *)0)->theirs))
SAME_PLACE(size, size);
SAME_PLACE(magic, magic);
SAME_PLACE(version, version);
SAME_PLACE(blocking, blocking);
SAME_PLACE(cga_cluster_size, cgaClusterSize);
SAME_PLACE(min_ctas, minCTAs);
SAME_PLACE(max_ctas, maxCTAs);
SAME_PLACE(net_name, netName);
SAME_PLACE(split_share, splitShare);
_Static_assert(sizeof(nc_config) <= sizeof(ncclConfig_t), "theirs begins with ours");

/* Their functions take what ours are called with: enums are passed as int, the id by value. */
SAME(sizeof(ncclResult_t), sizeof(int));
SAME(sizeof(ncclDataType_t), sizeof(int));
SAME(sizeof(ncclRedOp_t), sizeof(int));
#  define TAKES(function, result, ...)                                                                       \
    _Static_assert(__builtin_types_compatible_p(__typeof__(function), result(__VA_ARGS__)),                  \
                   #function " takes something else")
TAKES(ncclGetVersion, ncclResult_t, int *);
TAKES(ncclGetUniqueId, ncclResult_t, ncclUniqueId *);
TAKES(ncclCommInitRankConfig, ncclResult_t, nc_comm *, int, ncclUniqueId, int, ncclConfig_t *);
TAKES(ncclCommFinalize, ncclResult_t, nc_comm);
TAKES(ncclCommDestroy, ncclResult_t, nc_comm);
TAKES(ncclCommAbort, ncclResult_t, nc_comm);
TAKES(ncclCommGetAsyncError, ncclResult_t, nc_comm, ncclResult_t *);
TAKES(ncclGetErrorString, const char *, ncclResult_t);
TAKES(ncclGetLastError, const char *, nc_comm);
TAKES(ncclAllReduce, ncclResult_t, const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, nc_comm,
      struct CUstream_st *);
TAKES(ncclSend, ncclResult_t, const void *, size_t, ncclDataType_t, int, nc_comm, struct CUstream_st *);
TAKES(ncclRecv, ncclResult_t, void *, size_t, ncclDataType_t, int, nc_comm, struct CUstream_st *);
TAKES(ncclGroupStart, ncclResult_t, void);
TAKES(ncclGroupEnd, ncclResult_t, void);

const int xph_nccl_checked = NCCL_VERSION_CODE;
#else
const int xph_nccl_checked = 0;
#endif
