/* The part of CUDA that kernels of this folder use, for two compilers: nvcc compiles them for a GPU, any
 * C++17 compiler with tests/cuda/emu in its search path for the emulated one. Seven things are written
 * differently from plain CUDA:
 *   XPH_LAUNCH(kernel, grid, block, shared_bytes, stream, arguments...)   for kernel<<<...>>>(...); a kernel with
 *                                                       template arguments stands in parentheses
 *   XPH_SHARED(type, name, [a][b])                      for __shared__ type name[a][b]
 *   XPH_SHARED_DYNAMIC(type, name)                      for extern __shared__, aligned to 16 bytes
 *   XPH_UNROLL, XPH_KEEP_LOOP                           for #pragma unroll, and for #pragma unroll 1
 *   XPH_LAUNCH_CLUSTER(kernel, blocks, grid, ...)       the same on sm_90, for clusters of so many blocks along x
 *   XPH_ENTER();                                        the first line of every kernel: waits for the kernel before it
 *   XPH_ALIGNED(address, bytes);                        in front of what moves so many bytes at once: they lie at a
 *                                                       multiple of them, which a GPU would find out by itself
 * Kernels are launched while the one before them ends (programmatic dependent launch, sm_90): their blocks take up the
 * multiprocessors that fall idle, and wait in XPH_ENTER until it has ended and its memory is seen. As every kernel waits, all
 * before that one have ended too. No memory may be touched before; tools/cuda-gate looks for it in the machine code.
 *
 * All float arithmetic that matters is written as fmaf; nvcc must be given -fmad=false, so that two kernels
 * that write the same operations compute the same bits.
 */
#ifndef XPH_CUDA_LAUNCH_CUH
#define XPH_CUDA_LAUNCH_CUH

#include <stdint.h>

#ifdef __CUDACC__
#  include <cuda_bf16.h>
#  include <cuda_fp16.h>
#  include <cuda_runtime.h>
#  define XPH_LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                         \
    xph_launch(kernel, grid, block, shared_bytes, stream, __VA_ARGS__)
#  define XPH_LAUNCH_CLUSTER(kernel, blocks, grid, block, shared_bytes, stream, ...)                         \
    xph_launch_cluster(kernel, blocks, grid, block, shared_bytes, stream, __VA_ARGS__)
#  define XPH_ENTER() xph_enter()
#  define XPH_ALIGNED(address, bytes)
#  define XPH_UNROLL                   _Pragma("unroll")
#  define XPH_KEEP_LOOP                _Pragma("unroll 1")
#  define XPH_SHARED(type, name, dims) __shared__ type name dims
#  define XPH_SHARED_DYNAMIC(type, name)                                                                     \
    extern __shared__ __align__(16) unsigned char xph_dynamic_shared[];                                      \
    type *const name = reinterpret_cast<type *>(xph_dynamic_shared)
#else
#  include "emu.h"
#  define XPH_LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                         \
    emu::launch(#kernel, 1, grid, block, shared_bytes, stream, kernel, __VA_ARGS__)
#  define XPH_LAUNCH_CLUSTER(kernel, blocks, grid, block, shared_bytes, stream, ...)                         \
    (cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, (blocks) > 8),             \
     emu::launch(#kernel, blocks, grid, block, shared_bytes, stream, kernel, __VA_ARGS__))
#  define XPH_ENTER()                 emu::enter()
#  define XPH_ALIGNED(address, bytes) emu::aligned(address, bytes)
#  define XPH_UNROLL
#  define XPH_KEEP_LOOP
#  define XPH_SHARED(type, name, dims)                                                                       \
    using name##_shared = type dims;                                                                         \
    static emu::shared_array name##_memory;                                                                  \
    name##_shared &name = *static_cast<name##_shared *>(emu::shared(&name##_memory, sizeof(name##_shared)))
#  define XPH_SHARED_DYNAMIC(type, name) type *const name = static_cast<type *>(emu::dynamic_shared())
#endif

#ifdef __CUDACC__
/* Whether kernels may begin before the one before them has ended (backend.c). */
extern "C" {
extern int xph_cuda_overlap;
}

__device__ __forceinline__ void xph_enter()
{
#  if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;\n\tgriddepcontrol.wait;" ::: "memory");
#  endif
}

/* Blocks of a cluster run together, and reach each other's shared memory: from the first xph_cluster_sync on, which all of
 * their threads come to, and until a last one, before which no block may end. blocks of such a launch are 8 at most; 16 on
 * devices that can. Code for older processors does nothing. */
#  if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#    define XPH_HAS_CLUSTERS 1
#  else
#    define XPH_HAS_CLUSTERS 0
#  endif
__device__ __forceinline__ unsigned xph_cluster_rank()
{
    unsigned rank = 0;
#  if XPH_HAS_CLUSTERS
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#  endif
    return rank;
}
__device__ __forceinline__ unsigned xph_cluster_size()
{
    unsigned size = 1;
#  if XPH_HAS_CLUSTERS
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
#  endif
    return size;
}
__device__ __forceinline__ void xph_cluster_sync()
{
#  if XPH_HAS_CLUSTERS
    __syncwarp();
    asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
#  endif
}
/* Its two halves: what a thread wrote before it arrives the others see when they have waited. */
__device__ __forceinline__ void xph_cluster_arrive()
{
#  if XPH_HAS_CLUSTERS
    __syncwarp();
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#  endif
}
__device__ __forceinline__ void xph_cluster_wait()
{
#  if XPH_HAS_CLUSTERS
    __syncwarp();
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#  endif
}
/* Where block `rank` of the cluster has what this one has at `own`, in shared memory. */
template <class T> __device__ __forceinline__ T *xph_cluster_map(T *own, unsigned rank)
{
    T *there = own;
#  if XPH_HAS_CLUSTERS
    asm volatile("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(own), "r"(rank));
#  endif
    return there;
}

/* What is wrong with it cudaGetLastError says, as after <<<>>>. */
template <class... P, class... A>
void xph_launch_cluster(void (*kernel)(P...), unsigned blocks, dim3 grid, dim3 block, size_t shared_bytes,
                        cudaStream_t stream, const A &...arguments)
{
    cudaLaunchAttribute how[2] = {};
    unsigned count = 0;
    if (xph_cuda_overlap) {
        how[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        how[count++].val.programmaticStreamSerializationAllowed = 1;
    }
    if (blocks > 1) {
        how[count].id = cudaLaunchAttributeClusterDimension;
        how[count].val.clusterDim.x = blocks;
        how[count].val.clusterDim.y = how[count].val.clusterDim.z = 1;
        count++;
    }
    if (blocks > 8) cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    config.attrs = how;
    config.numAttrs = count;
    cudaLaunchKernelEx(&config, kernel, P(arguments)...);
}
template <class... P, class... A>
void xph_launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream,
                const A &...arguments)
{
    xph_launch_cluster(kernel, 1, grid, block, shared_bytes, stream, arguments...);
}
#endif

/* Bytes of shared memory that a block may have on the device of this thread, if its kernel was allowed it; 0: no device answers. */
inline int xph_most_shared()
{
    int device = 0, bytes = 0;
    if (cudaGetDevice(&device) ||
        cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device)) {
        cudaGetLastError();
        return 0;
    }
    return bytes;
}
/* Lets a kernel have as much dynamic shared memory as there is beside `own` bytes, which it declares itself. What is allowed
 * belongs to the kernel and the device, whoever launches: so it is the same for all shapes, and none finds that another one, in
 * another thread, allowed less meanwhile. */
template <class... P> cudaError_t xph_allow_shared(void (*kernel)(P...), int own = 0)
{
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, xph_most_shared() - own);
}
/* How many such clusters the device has room for at once, 0 where it cannot run one; lets the kernel have its shared memory. */
template <class... P>
int xph_cluster_room(void (*kernel)(P...), unsigned blocks, dim3 block, size_t shared_bytes, int own = 0)
{
    cudaLaunchAttribute how = {};
    how.id = cudaLaunchAttributeClusterDimension;
    how.val.clusterDim.x = blocks;
    how.val.clusterDim.y = how.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(blocks);
    config.blockDim = block;
    config.dynamicSmemBytes = shared_bytes;
    config.attrs = &how;
    config.numAttrs = 1;
    int count = 0;
    if (xph_allow_shared(kernel, own) ||
        (blocks > 8 && cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1)) ||
        cudaOccupancyMaxActiveClusters(&count, kernel, &config)) {
        cudaGetLastError();
        return 0;
    }
    return count;
}

constexpr unsigned ALL_LANES = 0xffffffffu;
constexpr int WARP = 32;

#endif
