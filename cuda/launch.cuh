/* The part of CUDA that kernels of this folder use, for two compilers: nvcc compiles them for a GPU, any
 * C++17 compiler with tests/cuda/emu in its search path for the emulated one. Five things are written
 * differently from plain CUDA:
 *   XPH_LAUNCH(kernel, grid, block, shared_bytes, stream, arguments...)   for kernel<<<...>>>(...); a kernel with
 *                                                       template arguments stands in parentheses
 *   XPH_SHARED(type, name, [a][b])                      for __shared__ type name[a][b]
 *   XPH_SHARED_DYNAMIC(type, name)                      for extern __shared__, aligned to 16 bytes
 *   XPH_UNROLL                                          for #pragma unroll
 *   XPH_ENTER();                                        the first line of every kernel: waits for the kernel before it
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
#  define XPH_ENTER()                  xph_enter()
#  define XPH_UNROLL                   _Pragma("unroll")
#  define XPH_SHARED(type, name, dims) __shared__ type name dims
#  define XPH_SHARED_DYNAMIC(type, name)                                                                     \
    extern __shared__ __align__(16) unsigned char xph_dynamic_shared[];                                      \
    type *const name = reinterpret_cast<type *>(xph_dynamic_shared)
#else
#  include "emu.h"
#  define XPH_LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                         \
    emu::launch(#kernel, grid, block, shared_bytes, stream, kernel, __VA_ARGS__)
#  define XPH_ENTER() emu::enter()
#  define XPH_UNROLL
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

/* What is wrong with it cudaGetLastError says, as after <<<>>>. */
template <class... P, class... A>
void xph_launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream,
                const A &...arguments)
{
    cudaLaunchAttribute how = {};
    how.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    how.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    config.attrs = &how;
    config.numAttrs = xph_cuda_overlap ? 1 : 0;
    cudaLaunchKernelEx(&config, kernel, P(arguments)...);
}
#endif

constexpr unsigned ALL_LANES = 0xffffffffu;
constexpr int WARP = 32;

#endif
