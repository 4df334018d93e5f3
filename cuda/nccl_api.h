/* The part of NCCL's interface that sums over ranks use, so that neither its header nor its library is needed to build. Names,
 * values and layouts are those of nccl.h (NCCL 2.18 and newer), where they are documented; nccl_check.c holds them against it. */
#ifndef XPH_CUDA_NCCL_API_H
#define XPH_CUDA_NCCL_API_H

#include <limits.h>
#include <stddef.h>

enum { NC_LEAST_VERSION = 21800 }; /* 10000 major + 100 minor + patch */
enum {
    NC_SUCCESS = 0,
    NC_UNHANDLED_CUDA_ERROR = 1,
    NC_SYSTEM_ERROR = 2,
    NC_INTERNAL_ERROR = 3,
    NC_INVALID_ARGUMENT = 4,
    NC_INVALID_USAGE = 5,
    NC_REMOTE_ERROR = 6,
    NC_IN_PROGRESS = 7
};                                                    /* ncclResult_t */
enum { NC_INT8 = 0, NC_FLOAT32 = 7, NC_FLOAT64 = 8 }; /* ncclDataType_t */
enum { NC_SUM = 0 };                                  /* ncclRedOp_t */
enum { NC_ID_BYTES = 128, NC_UNDEFINED = INT_MIN };

struct ncclComm;
typedef struct ncclComm *nc_comm;
typedef struct nc_id {
    char internal[NC_ID_BYTES];
} nc_id;
/* As 2.18 has it: newer libraries take what lies behind it for undefined, by size and version. */
typedef struct nc_config {
    size_t size;
    unsigned int magic, version;
    int blocking, cga_cluster_size, min_ctas, max_ctas;
    const char *net_name;
    int split_share;
} nc_config;
#define NC_CONFIG_MAGIC 0xcafebeefu

struct CUstream_st;

/* Functions by the names that they are looked up under. Results are ncclResult_t. */
typedef struct nc_library {
    int (*ncclGetVersion)(int *version);
    int (*ncclGetUniqueId)(nc_id *id);
    int (*ncclCommInitRankConfig)(nc_comm *comm, int ranks, nc_id id, int rank, nc_config *config);
    int (*ncclCommFinalize)(nc_comm comm);
    int (*ncclCommDestroy)(nc_comm comm);
    int (*ncclCommAbort)(nc_comm comm);
    int (*ncclCommGetAsyncError)(nc_comm comm, int *error);
    const char *(*ncclGetErrorString)(int result);
    const char *(*ncclGetLastError)(nc_comm comm); /* comm may be NULL */
    int (*ncclAllReduce)(const void *from, void *to, size_t count, int type, int op, nc_comm comm,
                         struct CUstream_st *stream);
    int (*ncclSend)(const void *from, size_t count, int type, int peer, nc_comm comm,
                    struct CUstream_st *stream);
    int (*ncclRecv)(void *to, size_t count, int type, int peer, nc_comm comm, struct CUstream_st *stream);
    int (*ncclGroupStart)(void);
    int (*ncclGroupEnd)(void);
} nc_library;

extern const int
    xph_nccl_checked; /* the version of the header that all of this was held against; 0: none was there */

#define NC_EACH_FUNCTION(each)                                                                               \
  each(ncclGetVersion) each(ncclGetUniqueId) each(ncclCommInitRankConfig) each(ncclCommFinalize)             \
      each(ncclCommDestroy) each(ncclCommAbort) each(ncclCommGetAsyncError) each(ncclGetErrorString)         \
          each(ncclGetLastError) each(ncclAllReduce) each(ncclSend) each(ncclRecv) each(ncclGroupStart)      \
              each(ncclGroupEnd)

#endif
