/* Kernels with one planted mistake each, and the same ones without. */
#ifndef EXPHIL_FAULTY_H
#define EXPHIL_FAULTY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    FAULTY_NONE,
    FAULTY_NO_BARRIER_STAGED,   /* reads what other threads stage without waiting for them */
    FAULTY_NO_BARRIER_SUM,      /* sums what other warps leave without waiting for them */
    FAULTY_NO_WARP_BARRIER,     /* reads what other lanes leave without waiting for them */
    FAULTY_OUT_OF_RANGE,        /* reads one element behind the input */
    FAULTY_OUT_OF_RANGE_WRITE,  /* writes one element before the output */
    FAULTY_SHARED_OUT_OF_RANGE, /* a row of shared memory too far */
    FAULTY_DIVERGENT_SHUFFLE,   /* half of the lanes named do not come */
    FAULTY_OTHER_SHUFFLE,       /* they meet at another place */
    FAULTY_STRANGE_LANE,        /* from a lane that is not named */
    FAULTY_UNINITIALISED,       /* shared memory that nobody has written */
    FAULTY_EARLY_EXIT,          /* threads end before a barrier */
    FAULTY_DIVERGENT_BARRIER,   /* two barriers, half of the threads in each */
    FAULTY_STACK,               /* endless recursion */
    FAULTY_MISALIGNED,          /* two numbers at once, from between two places of such */
    FAULTY_COUNT
};
enum { FAULTY_THREADS = 128, FAULTY_BLOCKS = 3, CLUSTER_THREADS = 48 };

/* out[block * 128 + thread] = in[...] + in of the neighbour in the block; sums[block] = the sum of in. */
void faulty_launch(int fault, const float *in, float *out, float *sums);
/* From each of 64 threads: all kinds of shuffles and votes, atomics; out[14][64]. */
void collectives_launch(int32_t *out, int32_t *counter);
/* out[i] = scale in[i] with dynamic shared memory, by blocks of 32 x 3 threads in a grid of (2, 3, 2). */
void dynamic_launch(const float *in, float *out, float scale, int64_t count);
enum {
    CLUSTER_RIGHT,
    CLUSTER_EARLY,       /* looks for its neighbour's memory before that is there */
    CLUSTER_ENDS,        /* a block ends while its neighbour reads from it */
    CLUSTER_NO_BARRIER,  /* reads what the neighbour writes without waiting for it */
    CLUSTER_OWN_BARRIER, /* waits for its own block alone */
    CLUSTER_HALF,        /* half of a block does not come to the barrier */
    CLUSTER_STRANGE,     /* a block that is not there */
    CLUSTER_BEYOND,      /* behind the end of the neighbour's array */
    CLUSTER_LOCAL,       /* an address that is not in shared memory */
    CLUSTER_COUNT
};
/* out[i] = in of the thread with the same index in the next block of its cluster; 48 threads a block. */
void cluster_launch(int fault, int size, int blocks, const float *in, float *out);
/* Refused: more threads than a block may have. */
void too_large_launch(float *out);
uint16_t bf16_of(float x);
float of_bf16(uint16_t bits);
uint16_t half_of(float x);
float of_half(uint16_t bits);

#ifdef __cplusplus
}
#endif

#endif
