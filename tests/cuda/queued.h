/* Kernels for the tests of the emulated runtime. */
#ifndef EXPHIL_QUEUED_H
#define EXPHIL_QUEUED_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* to[i] = from[i] * scale + shift; from and to may be the same. */
typedef struct queued_args {
    const float *from;
    float *to;
    int64_t count;
    float scale, shift;
} queued_args;
cudaError_t queued_launch(const queued_args *a, cudaStream_t stream);
/* *to += 1 by one thread, having used so much dynamic shared memory; allowed: requested before. */
cudaError_t queued_shared_launch(float *to, int bytes, int allowed, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
