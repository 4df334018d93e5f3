/* LSTM and GRU by clusters (sm_90), both directions: all frames in one launch. A cluster of blocks has 8, 16 or 32 streams,
 * and each of its blocks some units with their recurrent weights in shared memory. In every frame a block multiplies its
 * weights by what all units of the streams have left, computes its units, and writes what it has of them into the shared
 * memory of the whole cluster; then the blocks meet. Streams do not meet, so clusters know nothing of each other.
 *
 * Weights are the 16 rows of a product, streams its 8 columns (tensor.cuh). The inner dimension is summed in the order of
 * `multiply` there, so that the bits are those of the kernels with a launch per frame.
 */
#ifndef XPH_CUDA_RNN_CLUSTER_CUH
#define XPH_CUDA_RNN_CLUSTER_CUH

#include "rnn.cuh"
#include "tensor.cuh"

#include <type_traits>

/* Where the compiler makes code for processors without clusters, their kernels are empty. */
#if !defined(__CUDACC__) || XPH_HAS_CLUSTERS
#  define RNN_CLUSTERS 1
#else
#  define RNN_CLUSTERS 0
#endif

constexpr int STEP_WORDS = 8; /* inner words of a product */
constexpr int TILE_STREAMS = 8, MOST_TILES = 4;
/* Weights must be fetched first, which a launch per frame outweighs only from so many on. */
constexpr int64_t CLUSTER_FRAMES = 6, TOO_MUCH = INT64_MAX;
constexpr int CLUSTER_COMPUTE = 90;

/* Words of operands, read at once. */
struct alignas(8) two_words {
    unsigned x, y;
};
struct alignas(16) four_words {
    unsigned x, y, z, w;
};

/* Words of a row in shared memory whose quads of 8 lanes, two rows by four, lie in different banks. */
__host__ __device__ inline int row_words(int64_t words)
{
    return static_cast<int>(words) | GROUP;
}

/* tiles: of TILE_STREAMS streams; buffers: of what blocks write to each other. blocks 0: there is none. */
struct cluster_shape {
    int blocks, units, tiles, buffers;
    size_t bytes;
};

/* compute: of the device, or of the code that kernels have for it where that is less. count: of multiprocessors; shared: bytes of
 * a block. All 0: no device answers. */
struct processor {
    int compute, count, shared;
};
inline processor processor_of_thread()
{
    int device, major, minor, count;
    if (cudaGetDevice(&device) || cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) ||
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) ||
        cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device)) {
        cudaGetLastError();
        return {0, 0, 0};
    }
    const int compute = 10 * major + minor, code = compute < CLUSTER_COMPUTE ? compute : xph_cuda_code();
    return {compute < code ? compute : code, count, xph_most_shared()};
}

/* By matrix units where the kernels with a launch per frame take them, else in float, of units in which these sum alike. */
inline bool cluster_fits(const xph_rnn_args *a)
{
    return rnn_tensor_fits(a) || (rnn_fits(a) && a->type == XPH_F32 && a->hidden && a->hidden % GROUP == 0);
}

/* Blocks have a multiple of `multiple` units, up to `most`, if possible not more than 32; bytes(units, streams, buffers) of
 * shared memory, room(shape) for so many clusters at once. A cluster has as few streams as let all of them run at once, as far as
 * multiprocessors tell. Products in float take so long that it must be all: a launch less is little beside another turn. */
template <class Bytes, class Room>
cluster_shape cluster_shape_of(const xph_rnn_args *a, int multiple, int most, int least_buffers, Bytes bytes,
                               Room room)
{
    cluster_shape found = {};
    const processor p = processor_of_thread();
    const bool in_turns = rnn_tensor_fits(a);
    if (p.compute < CLUSTER_COMPUTE || a->time < CLUSTER_FRAMES || !a->batch) return found;
    for (int blocks = 2; blocks <= 16 && (!found.blocks || found.units > WARP); blocks *= 2) {
        const int units = static_cast<int>(a->hidden / blocks);
        if (a->hidden % (blocks * multiple) || units > most) continue;
        const int at_once = p.count < blocks ? 1 : p.count / blocks;
        int tiles = 1;
        while (tiles < MOST_TILES && a->batch > int64_t(TILE_STREAMS) * tiles * at_once) tiles *= 2;
        bool fits = false;
        for (; tiles && tiles <= MOST_TILES && !fits; tiles = in_turns ? tiles / 2 : tiles * 2)
            for (int buffers = 2; buffers >= least_buffers && !fits; buffers--) {
                const int64_t all = bytes(units, TILE_STREAMS * tiles, buffers),
                              clusters = blocks_of(a->batch, TILE_STREAMS * tiles);
                if (all > p.shared || !(in_turns || clusters <= at_once)) continue;
                const cluster_shape s = {blocks, units, tiles, buffers, static_cast<size_t>(all)};
                fits = room(s) >= (in_turns ? 1 : clusters);
                if (fits) found = s;
            }
    }
    return found;
}

inline int64_t number_bytes(const xph_rnn_args *a)
{
    return a->type == XPH_F32 ? 4 : 2;
}

/* How numbers are multiplied without matrix units. */
struct by_float {
    using Number = float;
    static constexpr int PER_WORD = 1;
};

/* As products take it. */
template <class Kind> __device__ inline void store_operand(typename Kind::Number *to, float x)
{
    if constexpr (std::is_same<Kind, by_tf32>::value)
        *to = to_tf32(x);
    else
        store(to, x);
}

/* f(tiles as a constant) */
template <class Each> auto with_tiles(int tiles, Each f)
{
    if (tiles == 1) return f(std::integral_constant<int, 1>());
    if (tiles == 2) return f(std::integral_constant<int, 2>());
    return f(std::integral_constant<int, MOST_TILES>());
}
/* f(zero of the rows, of how their numbers are multiplied, gates as a constant) */
template <class Each> auto with_kind(const xph_rnn_args *a, Each f)
{
    const auto gates = [&](auto zero, auto kind) {
        if (a->kind == XPH_RNN_LSTM) return f(zero, kind, std::integral_constant<int, LSTM>());
        return f(zero, kind, std::integral_constant<int, GRU>());
    };
    if (a->type == XPH_BF16) return gates(__nv_bfloat16(), by_bf16());
    if (a->type == XPH_F16) return gates(__half(), by_f16());
    if (rnn_tensor_fits(a)) return gates(0.0f, by_tf32());
    return gates(0.0f, by_float());
}

/* Of clusters of a shape. */
template <class Kernel> int clusters_at_once(Kernel kernel, const cluster_shape &s, int threads)
{
    return xph_cluster_room(kernel, as_grid(s.blocks), dim3(as_grid(threads)), s.bytes);
}

/* Of a launch of clusters; XPH_CUDA_NO_ROOM: the device has no room for them, nothing was done. */
inline int cluster_code(cudaError_t error)
{
    const bool none = error == cudaErrorInvalidConfiguration || error == cudaErrorLaunchOutOfResources ||
                      error == cudaErrorInvalidClusterSize;
    return none ? int(XPH_CUDA_NO_ROOM) : int(error);
}

/* There is room for one of this shape. */
template <class Kernel, class... A>
int launch_clusters(Kernel kernel, const cluster_shape &s, int64_t batch, int threads, cudaStream_t stream,
                    const A &...arguments)
{
    const int64_t clusters = blocks_of(batch, TILE_STREAMS * s.tiles);
    const dim3 grid(as_grid(clusters * s.blocks)), block(as_grid(threads));
    XPH_LAUNCH_CLUSTER(kernel, as_grid(s.blocks), grid, block, s.bytes, stream, arguments...);
    return cluster_code(cudaGetLastError());
}

#endif
