/* An emulated GPU: the part of CUDA C++ that the kernels of cuda/ use, for a host compiler. launch.cuh includes it where
 * nvcc is not the compiler. Every thread of a block is a fiber; blocks run one after another. What a real device leaves
 * to chance is made visible:
 *   - three schedules of blocks, warps and lanes (see emu_schedule); right kernels give the same bits under all
 *   - shared arrays are filled with NaN for every block and lie between pages that cannot be touched, as does all
 *     device memory; the schedule says at which of the two pages they lie
 *   - a thread that ends without XPH_ENTER, behind which a kernel may touch memory, is a fault
 *   - a kernel that is allowed less shared memory than before is a fault: another thread may be about to launch it; so are
 *     launches that may overlap of code that does not wait (emu_code)
 *   - blocks of a cluster run together; what they reach of each other before the cluster's first barrier, or of a block that
 *     has ended, is a fault
 *   - a barrier or a shuffle at which not all threads that it names meet, at the same place of the source, is a fault
 * A fault ends its launch and all later ones until emu_clear, as on a device; emu_fault says what happened and where.
 *
 * Not seen: wrong fences between blocks, host addresses given to kernels, ranges of registers, the rounding of the
 * device's approximate functions. Deliberately missing: atomics on floats (their order is chance), __activemask, and
 * the collectives without _sync.
 *
 * Needs no C++ run-time: no exceptions, no operator new, no guarded statics.
 */
#ifndef EXPHIL_EMU_H
#define EXPHIL_EMU_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "cuda_runtime_api.h"
#include "emu_control.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct uint3 {
    unsigned x, y, z;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
inline float2 make_float2(float x, float y)
{
    return {x, y};
}
inline float4 make_float4(float x, float y, float z, float w)
{
    return {x, y, z, w};
}

/* Of the fiber that runs. */
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
constexpr int warpSize = 32;

namespace emu
{

/* ---- launches and shared memory ---- */

struct launch_shape {
    const char *name;
    dim3 grid, block;
    size_t shared_bytes;
    unsigned cluster; /* blocks along x that run together; 1: each by itself */
    const void *kernel;
    void (*body)(const void *closure); /* one thread */
    /* Arguments as a device has them, each aligned as it wants: bytes written; to may be NULL. */
    size_t (*arguments)(const void *closure, unsigned char *to);
};
void enqueue_launch(const launch_shape &shape, const void *closure, size_t bytes, cudaStream_t stream);
bool allow(const void *kernel, cudaFuncAttribute what, int value);

/* Arguments of a kernel as it declares them, held until it runs. */
template <class... P> struct values;
template <> struct values<> {
    static values of() { return {}; }
    template <class Kernel, class... Before> void give(Kernel kernel, const Before &...before) const
    {
        kernel(before...);
    }
    size_t lay_out(unsigned char *, size_t at) const { return at; }
};
template <class First, class... Rest> struct values<First, Rest...> {
    static_assert(__is_trivially_copyable(First), "arguments of kernels are copied as bytes");
    First first;
    values<Rest...> rest;
    static values of(First first, Rest... rest) { return {first, values<Rest...>::of(rest...)}; }
    template <class Kernel, class... Before> void give(Kernel kernel, const Before &...before) const
    {
        rest.give(kernel, before..., first);
    }
    size_t lay_out(unsigned char *to, size_t at) const
    {
        at = (at + alignof(First) - 1) / alignof(First) * alignof(First);
        if (to) memcpy(to + at, &first, sizeof first);
        return rest.lay_out(to, at + sizeof first);
    }
};

template <class... P> struct closure {
    void (*kernel)(P...);
    values<P...> arguments;
    static void run(const void *context)
    {
        const closure *c = static_cast<const closure *>(context);
        c->arguments.give(c->kernel);
    }
    static size_t lay_out(const void *context, unsigned char *to)
    {
        return static_cast<const closure *>(context)->arguments.lay_out(to, 0);
    }
};

template <class... P, class... A>
void launch(const char *name, unsigned cluster, dim3 grid, dim3 block, size_t shared_bytes,
            cudaStream_t stream, void (*kernel)(P...), const A &...arguments)
{
    closure<P...> c = {kernel, values<P...>::of(arguments...)};
    enqueue_launch(
        {name, grid, block, shared_bytes, cluster, reinterpret_cast<const void *>(kernel), c.run, c.lay_out},
        &c, sizeof c, stream);
}

/* One per declaration (and instance of its template), and of it one for every block of a cluster. */
constexpr unsigned MOST_CLUSTER = 16, MOST_PORTABLE_CLUSTER = 8;
struct shared_copy {
    void *map, *data;
    size_t map_bytes, bytes;
    uint64_t serial; /* of the cluster that it was last filled for */
    bool front;      /* begins after the page before it */
    bool closed;     /* its block has ended, others have not */
};
struct shared_array {
    shared_copy copy[MOST_CLUSTER];
    size_t bytes;
    bool listed;
    shared_array *next;
};
void *shared(shared_array *array, size_t bytes);
void *dynamic_shared();
void enter(); /* once in every thread */

[[noreturn]] void misaligned(const void *address, size_t bytes);
inline void aligned(const void *address, size_t bytes)
{
    if (reinterpret_cast<uintptr_t>(address) % bytes) misaligned(address, bytes);
}

/* ---- threads that meet ---- */

enum meeting : uint8_t { SYNC, SHUFFLE, BALLOT };
struct place {
    const char *what, *file;
    int line;
};
/* The running lane waits for all lanes of mask. SHUFFLE: value of lane `source`; BALLOT: a bit per lane. */
uint64_t meet(unsigned mask, meeting kind, unsigned source, uint64_t value, place at);
void barrier(place at);
unsigned lane();

unsigned cluster_rank();
unsigned cluster_size();
void cluster_barrier(place at);
/* Half of it: all of it happens when a cluster arrives, or when it waits, as the schedule has it. */
void cluster_half(bool arrives, place at);
/* How many clusters run at once; -1: the launch would be refused. */
int cluster_room(const launch_shape &shape);
void *of_cluster(const void *address, unsigned rank, place at);

template <class T> T shuffle(unsigned mask, T value, unsigned source, bool own, place at)
{
    static_assert(sizeof(T) <= 8, "shuffles move at most 8 bytes");
    uint64_t raw = 0;
    memcpy(&raw, &value, sizeof value);
    raw = meet(mask, SHUFFLE, own ? lane() : source, raw, at);
    memcpy(&value, &raw, sizeof value);
    return value;
}

}  // namespace emu

template <class... P>
cudaError_t cudaFuncSetAttribute(void (*kernel)(P...), cudaFuncAttribute attribute, int value)
{
    return cudaFuncSetAttribute(reinterpret_cast<const void *>(kernel), attribute, value);
}
template <class... P> cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, void (*kernel)(P...))
{
    return cudaFuncGetAttributes(attributes, reinterpret_cast<const void *>(kernel));
}

enum cudaLaunchAttributeID { cudaLaunchAttributeClusterDimension = 4 };
struct cudaLaunchAttribute {
    cudaLaunchAttributeID id;
    struct {
        dim3 clusterDim;
    } val;
};
struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute *attrs;
    unsigned numAttrs;
};
template <class... P>
cudaError_t cudaOccupancyMaxActiveClusters(int *count, void (*kernel)(P...), const cudaLaunchConfig_t *config)
{
    const int room = emu::cluster_room({"", config->gridDim, config->blockDim, config->dynamicSmemBytes,
                                        config->numAttrs ? config->attrs->val.clusterDim.x : 1,
                                        reinterpret_cast<const void *>(kernel), nullptr, nullptr});
    *count = room < 0 ? 0 : room;
    return room < 0 ? cudaErrorInvalidClusterSize : cudaSuccess;
}

#define EMU_CALLER const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(EMU_CALLER)
{
    emu::barrier({"__syncthreads", file, line});
}
inline void __syncwarp(unsigned mask = 0xffffffffu, EMU_CALLER)
{
    emu::meet(mask, emu::SYNC, 0, 0, {"__syncwarp", file, line});
}

template <class T> T __shfl_sync(unsigned mask, T value, int source, int width = 32, EMU_CALLER)
{
    unsigned segment = static_cast<unsigned>(width), first = emu::lane() & ~(segment - 1);
    unsigned from = first | (static_cast<unsigned>(source) & (segment - 1));
    return emu::shuffle(mask, value, from, false, {"__shfl_sync", file, line});
}
template <class T> T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, EMU_CALLER)
{
    unsigned segment = static_cast<unsigned>(width), from = emu::lane() ^ static_cast<unsigned>(bits);
    bool later = (from & ~(segment - 1)) > (emu::lane() & ~(segment - 1));
    return emu::shuffle(mask, value, from, later, {"__shfl_xor_sync", file, line});
}
template <class T> T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32, EMU_CALLER)
{
    unsigned segment = static_cast<unsigned>(width), at = emu::lane() & (segment - 1);
    return emu::shuffle(mask, value, emu::lane() + by, at + by >= segment, {"__shfl_down_sync", file, line});
}
template <class T> T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32, EMU_CALLER)
{
    unsigned segment = static_cast<unsigned>(width), at = emu::lane() & (segment - 1);
    return emu::shuffle(mask, value, emu::lane() - by, at < by, {"__shfl_up_sync", file, line});
}

inline unsigned __ballot_sync(unsigned mask, int predicate, EMU_CALLER)
{
    return static_cast<unsigned>(
        emu::meet(mask, emu::BALLOT, 0, predicate != 0, {"__ballot_sync", file, line}));
}
inline int __any_sync(unsigned mask, int predicate, EMU_CALLER)
{
    return emu::meet(mask, emu::BALLOT, 0, predicate != 0, {"__any_sync", file, line}) != 0;
}
inline int __all_sync(unsigned mask, int predicate, EMU_CALLER)
{
    return emu::meet(mask, emu::BALLOT, 0, predicate == 0, {"__all_sync", file, line}) == 0;
}

/* ---- clusters (launch.cuh) ---- */

inline unsigned xph_cluster_rank()
{
    return emu::cluster_rank();
}
inline unsigned xph_cluster_size()
{
    return emu::cluster_size();
}
inline void xph_cluster_sync(EMU_CALLER)
{
    emu::cluster_barrier({"xph_cluster_sync", file, line});
}
inline void xph_cluster_arrive(EMU_CALLER)
{
    emu::cluster_half(true, {"xph_cluster_arrive", file, line});
}
inline void xph_cluster_wait(EMU_CALLER)
{
    emu::cluster_half(false, {"xph_cluster_wait", file, line});
}
template <class T> T *xph_cluster_map(T *own, unsigned rank, EMU_CALLER)
{
    return static_cast<T *>(emu::of_cluster(own, rank, {"xph_cluster_map", file, line}));
}

/* ---- memory ---- */

template <class T> T __ldg(const T *from)
{
    return *from;
}
inline void __threadfence() {}

/* On integers alone: sums of floats would depend on the order in which threads come. One fiber runs at a time, and gives
 * way only where it waits. */
#define EMU_ATOMICS(type)                                                                                    \
  inline type atomicAdd(type *at, type value)                                                                \
  {                                                                                                          \
    type before = *at;                                                                                       \
    *at = before + value;                                                                                    \
    return before;                                                                                           \
  }                                                                                                          \
  inline type atomicMax(type *at, type value)                                                                \
  {                                                                                                          \
    type before = *at;                                                                                       \
    *at = before > value ? before : value;                                                                   \
    return before;                                                                                           \
  }                                                                                                          \
  inline type atomicCAS(type *at, type expected, type value)                                                 \
  {                                                                                                          \
    type before = *at;                                                                                       \
    if (before == expected) *at = value;                                                                     \
    return before;                                                                                           \
  }
EMU_ATOMICS(int)
EMU_ATOMICS(unsigned)
EMU_ATOMICS(unsigned long long)
float atomicAdd(float *at, float value) = delete;
double atomicAdd(double *at, double value) = delete;

/* ---- numbers ---- */

inline unsigned __float_as_uint(float x)
{
    unsigned bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
inline float __uint_as_float(unsigned bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
inline float __expf(float x)
{
    return expf(x);
}
inline float __fdividef(float x, float y)
{
    return y > 0x1p126f || y < -0x1p126f ? 0.0f * x : x / y;
}
inline float rsqrtf(float x)
{
    return 1.0f / sqrtf(x);
}
inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
inline int __ffs(int x)
{
    return __builtin_ffs(x);
}

/* bfloat16 and half as storage: to nearest even from float, exactly back. NaN becomes the one that CUDA gives. */
struct __nv_bfloat16 {
    uint16_t bits;
};
struct __half {
    uint16_t bits;
};
__nv_bfloat16 __float2bfloat16(float x);
float __bfloat162float(__nv_bfloat16 x);
__half __float2half(float x);
inline __half __float2half_rn(float x)
{
    return __float2half(x);
}
float __half2float(__half x);

#endif
