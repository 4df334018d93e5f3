/* Sums in a fixed order: over the lanes of a warp, and over rows of partial sums that blocks have left. */
#ifndef XPH_CUDA_FOLD_CUH
#define XPH_CUDA_FOLD_CUH

#include "element.cuh"

/* COUNT sums over the lanes that differ in the bits LEAST..16, halved as often as there are bits or sums left: in each
 * round a lane gives away one half and takes in the other. Returns which of the sums v[0] is then, the next ones follow
 * in v[1]...; fold_left says how many. */
template <int COUNT, int LEAST, int BIT = WARP / 2, int CAPACITY>
__device__ inline int fold_lanes(float (&v)[CAPACITY], int lane)
{
    if constexpr (BIT < LEAST) {
        return 0;
    } else if constexpr (COUNT == 1) {
        v[0] += __shfl_xor_sync(ALL_LANES, v[0], BIT);
        return fold_lanes<1, LEAST, BIT / 2>(v, lane);
    } else {
        constexpr int HALF = COUNT / 2;
        const bool upper = lane & BIT;
        XPH_UNROLL
        for (int i = 0; i < HALF; i++) {
            const float give = upper ? v[i] : v[i + HALF], keep = upper ? v[i + HALF] : v[i];
            v[i] = keep + __shfl_xor_sync(ALL_LANES, give, BIT);
        }
        return (upper ? HALF : 0) + fold_lanes<HALF, LEAST, BIT / 2>(v, lane);
    }
}
__host__ __device__ constexpr int fold_left(int count, int least)
{
    return count / (WARP / least) > 1 ? count / (WARP / least) : 1;
}
/* Bits in which lanes differ that hold the same sums. */
__host__ __device__ constexpr int fold_twins(int count, int least)
{
    return count < WARP / least ? (WARP / least / count - 1) * least : 0;
}

/* In every lane. */
template <class Number> __device__ inline Number sum_of_warp(Number x)
{
    XPH_UNROLL
    for (int bit = WARP / 2; bit; bit /= 2) x += __shfl_xor_sync(ALL_LANES, x, bit);
    return x;
}

constexpr int FOLD_COLUMNS = WARP, FOLD_STRANDS = 32, FOLD_THREADS = 256;

/* Where the columns of partial sums are added up: array i takes those before end[i] that none before it has. NULL: those are
 * nobody's. */
constexpr int FOLD_ARRAYS = 5;
struct fold_targets {
    float *to[FOLD_ARRAYS];
    int64_t end[FOLD_ARRAYS];
    int count;
};
inline fold_targets fold_target(float *to, int64_t columns)
{
    return {{to}, {columns}, 1};
}
inline void fold_more(fold_targets *targets, void *to, int64_t columns)
{
    targets->to[targets->count] = static_cast<float *>(to);
    targets->end[targets->count] = (targets->count ? targets->end[targets->count - 1] : 0) + columns;
    targets->count++;
}
inline int64_t fold_columns(const fold_targets &targets)
{
    return targets.end[targets.count - 1];
}
__device__ inline float *fold_place(const fold_targets &targets, int64_t i)
{
    float *to = nullptr;
    XPH_UNROLL
    for (int k = FOLD_ARRAYS - 1; k >= 0; k--) {
        if (k >= targets.count || i >= targets.end[k]) continue;
        to = targets.to[k];
        if (to) to += i - (k ? targets.end[k - 1] : 0);
    }
    return to;
}

/* sum[i] += part[0][i] + part[1][i] + ...: strand s takes the rows s, s + 32, ...,
 * then 0 + 1 + ... + 31. */
template <class Unused = void>
__global__ void __launch_bounds__(FOLD_COLUMNS *FOLD_STRANDS)
    fold_rows(const float *part, const fold_targets targets, int64_t rows, int64_t count)
{
    XPH_ENTER();
    XPH_SHARED(float, strands, [FOLD_STRANDS][FOLD_COLUMNS]);
    const int64_t i = int64_t(blockIdx.x) * FOLD_COLUMNS + threadIdx.x;
    float *const to = i < count ? fold_place(targets, i) : nullptr;
    float s = 0.0f;
    for (int64_t r = threadIdx.y; to && r < rows; r += FOLD_STRANDS) s += part[r * count + i];
    strands[threadIdx.y][threadIdx.x] = s;
    __syncthreads();
    if (threadIdx.y || !to) return;
    s = 0.0f;
    for (int k = 0; k < FOLD_STRANDS; k++) s += strands[k][threadIdx.x];
    *to += s;
}

/* The same bits where no strand has more than one row: a thread adds them in their order, eight loads ahead. What is added
 * for rows that are not there changes nothing, for a sum that began at 0 is never -0. */
template <class Unused = void>
__global__ void __launch_bounds__(FOLD_THREADS)
    fold_few(const float *part, const fold_targets targets, int rows, int64_t count)
{
    XPH_ENTER();
    const int64_t i = int64_t(blockIdx.x) * FOLD_THREADS + threadIdx.x;
    float *const to = i < count ? fold_place(targets, i) : nullptr;
    if (!to) return;
    float s = 0.0f;
    for (int first = 0; first < rows; first += 8) {
        float x[8];
        XPH_UNROLL
        for (int k = 0; k < 8; k++) x[k] = first + k < rows ? part[(first + k) * count + i] : 0.0f;
        XPH_UNROLL
        for (int k = 0; k < 8; k++) s += x[k];
    }
    *to += s;
}

/* Rows lie together. */
inline void fold_to(const float *part, const fold_targets &targets, int64_t rows, cudaStream_t stream)
{
    const int64_t count = fold_columns(targets);
    if (!rows || !count) return;
    if (rows <= FOLD_STRANDS)
        XPH_LAUNCH((fold_few<>), dim3(as_grid(blocks_of(count, FOLD_THREADS))), dim3(FOLD_THREADS), 0, stream,
                   part, targets, static_cast<int>(rows), count);
    else
        XPH_LAUNCH((fold_rows<>), dim3(as_grid(blocks_of(count, FOLD_COLUMNS))),
                   dim3(FOLD_COLUMNS, FOLD_STRANDS), 0, stream, part, targets, rows, count);
}

inline void fold(const float *part, float *sum, int64_t rows, int64_t count, cudaStream_t stream)
{
    fold_to(part, fold_target(sum, count), rows, stream);
}

#endif
