/* Kernels over flat arrays, a thread for some elements. */
#ifndef XPH_CUDA_FLAT_CUH
#define XPH_CUDA_FLAT_CUH

#include "element.cuh"

namespace flat
{

constexpr int THREADS = 256, EACH = 4; /* elements of a thread, a block apart */
constexpr int64_t ITEM = THREADS * EACH;

/* f(i) for the elements of the thread. */
template <class Each> __device__ inline void each_element(int64_t count, Each f)
{
    const int64_t first = blockIdx.x * ITEM + threadIdx.x;
    XPH_UNROLL
    for (int k = 0; k < EACH; k++)
        if (first + k * THREADS < count) f(first + k * THREADS);
}

inline dim3 blocks_over(int64_t count)
{
    return dim3(as_grid(blocks_of(count, ITEM)));
}

}  // namespace flat

#endif
