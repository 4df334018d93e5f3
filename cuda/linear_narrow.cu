/* Products with weights of fewer bits (args.weights of XPH_OP_LINEAR) and their packing, to the bit as
 * lib/device/backend.h says and the CPU makes them. Rows are float.
 *
 * Packed: words of 4 bytes [depth][out], a word two bfloat16s (the even column below) or four int8s of one
 * output, zeros behind the last; behind the words of int8s their float scales [out]. A thread makes one
 * output of ROWS rows, its neighbour the next output, so that reads of words coalesce. Inputs are rounded
 * into shared memory, CHUNK words of each row at a time. The inner dimension is not split: bfloat16s are
 * summed one after the other.
 */
#include "kernels.h"
#include "narrow.cuh"

namespace
{

constexpr int THREADS = 64, CHUNK = 256, AHEAD = 16, SEVERAL = 8;
constexpr int64_t MOST_I8 = 131072, ROUND = 64;

/* What is different for the two types: the types of an input word and of a sum, and how one is added to the other. */
struct as_bf16 {
    using held = float2;
    using total = float;
    static constexpr int STEP = 2;

    __device__ static held hold(const float *x, int64_t k, int64_t in, float)
    {
        return {__uint_as_float(narrow_bits(x[k])),
                k + 1 < in ? __uint_as_float(narrow_bits(x[k + 1])) : 0.0f};
    }
    __device__ static total add(total sum, const held &x, unsigned w)
    {
        sum = fmaf(x.y, __uint_as_float(w & 0xffff0000u), sum);
        return fmaf(x.x, __uint_as_float(w << 16), sum);
    }
};
struct as_i8 {
    using held = int;
    using total = int;
    static constexpr int STEP = 4;

    __device__ static unsigned level(const float *x, int64_t k, int64_t in, float inverse)
    {
        return k < in ? __float_as_uint(fmaf(x[k], inverse, ROUND_TO_1)) & 0xffu : 0u;
    }
    __device__ static held hold(const float *x, int64_t k, int64_t in, float inverse)
    {
        return static_cast<int>(level(x, k, in, inverse) | level(x, k + 1, in, inverse) << 8 |
                                level(x, k + 2, in, inverse) << 16 | level(x, k + 3, in, inverse) << 24);
    }
    __device__ static total add(total sum, held x, unsigned w)
    {
        return add_four(x, static_cast<int>(w), sum);
    }
};

__host__ __device__ constexpr int64_t depth_of(xph_type weights, int64_t in)
{
    return blocks_of(in, weights == XPH_I8 ? as_i8::STEP : as_bf16::STEP);
}

/* ---- products ---- */

/* The largest sizes of the block's rows, a warp for every second row: 0 if below 2^-100, NaN if one is not finite. */
template <int ROWS>
__device__ inline void measure(const xph_linear_args &a, int64_t first, float (&largest)[ROWS])
{
    const int lane = static_cast<int>(threadIdx.x) % WARP, warp = static_cast<int>(threadIdx.x) / WARP;
    for (int r = warp; r < ROWS && first + r < a.rows; r += THREADS / WARP) {
        const float *x = static_cast<const float *>(a.x) + (first + r) * a.ldx;
        unsigned most = 0;
        for (int64_t k = lane; k < a.in; k += WARP) {
            const unsigned size = size_bits(x[k]);
            most = size > most ? size : most;
        }
        most = largest_of_warp(most);
        const float size = __uint_as_float(most);
        if (lane == 0)
            largest[r] = most >= INFINITY_BITS ? __uint_as_float(NAN_BITS) : size < LEAST_ROW ? 0.0f : size;
    }
    __syncthreads();
}

/* One output: sum + bias, then + residual. */
__device__ inline float finish(float sum, float, float, const float *bias)
{
    return bias ? sum + *bias : sum;
}
__device__ inline float finish(int sum, float largest, float scale, const float *bias)
{
    return fmaf(largest / LEVELS * scale, static_cast<float>(sum), bias ? *bias : 0.0f);
}

template <class Kind, int ROWS> struct sums {
    typename Kind::total of[ROWS];
    unsigned now[AHEAD], next[AHEAD]; /* words of weights */

    __device__ sums()
    {
        XPH_UNROLL
        for (int r = 0; r < ROWS; r++) of[r] = 0;
    }
    /* words: of the thread's output, `out` apart. */
    __device__ void ask(const unsigned *words, int64_t out, int from, int count)
    {
        XPH_UNROLL
        for (int i = 0; i < AHEAD; i++) next[i] = from + i < count ? words[(from + i) * out] : 0u;
    }
    __device__ void add(const typename Kind::held (&x)[ROWS][CHUNK], const unsigned *words, int64_t out,
                        int count)
    {
        ask(words, out, 0, count);
        for (int from = 0; from < count; from += AHEAD) {
            XPH_UNROLL
            for (int i = 0; i < AHEAD; i++) now[i] = next[i];
            ask(words, out, from + AHEAD, count);
            XPH_UNROLL
            for (int i = 0; i < AHEAD; i++) {
                XPH_UNROLL
                for (int r = 0; r < ROWS; r++) of[r] = Kind::add(of[r], x[r][from + i], now[i]);
            }
        }
    }
};

template <class Kind, int ROWS>
__global__ void __launch_bounds__(THREADS) linear_narrow(const xph_linear_args a)
{
    XPH_ENTER();
    XPH_SHARED(typename Kind::held, x, [ROWS][CHUNK]);
    XPH_SHARED(float, largest, [ROWS]);
    const int64_t first = int64_t(blockIdx.x) * ROWS, o = int64_t(blockIdx.y) * THREADS + threadIdx.x;
    const int64_t depth = blocks_of(a.in, Kind::STEP), column = o < a.out ? o : a.out - 1;
    const unsigned *words = static_cast<const unsigned *>(a.packed);
    const float *scales = reinterpret_cast<const float *>(words + depth * a.out);
    sums<Kind, ROWS> s;
    if (Kind::STEP == as_i8::STEP) measure<ROWS>(a, first, largest);
    for (int64_t at = 0; at < depth; at += CHUNK) {
        const int count = static_cast<int>(depth - at < CHUNK ? depth - at : CHUNK);
        __syncthreads();
        for (int i = static_cast<int>(threadIdx.x); i < ROWS * CHUNK; i += THREADS) {
            const int r = i / CHUNK, k = i % CHUNK;
            typename Kind::held held = {};
            if (first + r < a.rows && k < count) {
                const float size = Kind::STEP == as_i8::STEP ? largest[r] : 0.0f;
                held = Kind::hold(static_cast<const float *>(a.x) + (first + r) * a.ldx,
                                  (at + k) * Kind::STEP, a.in, size > 0.0f ? LEVELS / size : 0.0f);
            }
            x[r][k] = held;
        }
        __syncthreads();
        s.add(x, words + at * a.out + column, a.out, count);
    }
    if (o >= a.out) return;
    const float *bias = a.bias ? static_cast<const float *>(a.bias) + o : nullptr;
    XPH_UNROLL
    for (int r = 0; r < ROWS; r++) {
        const int64_t row = first + r;
        if (row >= a.rows) continue;
        const bool scaled = Kind::STEP == as_i8::STEP;
        float y = finish(s.of[r], scaled ? largest[r] : 0.0f, scaled ? scales[o] : 0.0f, bias);
        if (a.residual) y += static_cast<const float *>(a.residual)[row * a.ldr + o];
        static_cast<float *>(a.y)[row * a.ldy + o] = y;
    }
}

/* ---- packing ---- */

__global__ void __launch_bounds__(THREADS) pack_bf16(const xph_linear_pack_args a)
{
    XPH_ENTER();
    const int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x, depth = depth_of(XPH_BF16, a.in);
    if (i >= depth * a.out) return;
    const int64_t o = i % a.out, k = i / a.out * as_bf16::STEP;
    const float *w = static_cast<const float *>(a.w) + o * a.in;
    const unsigned odd = k + 1 < a.in ? narrow_bits(w[k + 1]) : 0u;
    static_cast<unsigned *>(a.packed)[i] = narrow_bits(w[k]) >> 16 | odd;
}

/* A block per output. */
__global__ void __launch_bounds__(THREADS) pack_i8(const xph_linear_pack_args a)
{
    XPH_ENTER();
    const int64_t o = blockIdx.x, depth = depth_of(XPH_I8, a.in);
    const float *w = static_cast<const float *>(a.w) + o * a.in;
    unsigned *words = static_cast<unsigned *>(a.packed), largest = 0;
    for (int64_t k = threadIdx.x; k < a.in; k += THREADS) {
        const unsigned size = size_bits(w[k]);
        largest = size > largest ? size : largest;
    }
    const float scale = i8_scale(largest_of_block<THREADS>(largest));
    if (threadIdx.x == 0) reinterpret_cast<float *>(words + depth * a.out)[o] = scale;
    for (int64_t step = threadIdx.x; step < depth; step += THREADS) {
        unsigned word = 0;
        for (int i = 0; i < as_i8::STEP; i++) {
            const int64_t k = step * as_i8::STEP + i;
            if (k < a.in) word |= (static_cast<unsigned>(i8_of(w[k], scale)) & 0xffu) << 8 * i;
        }
        words[step * a.out + o] = word;
    }
}

template <class Kind> void product(const xph_linear_args *a, cudaStream_t stream)
{
    const unsigned outs = as_grid(blocks_of(a->out, THREADS));
    if (a->rows > 1)
        XPH_LAUNCH((linear_narrow<Kind, SEVERAL>), dim3(as_grid(blocks_of(a->rows, SEVERAL)), outs),
                   dim3(THREADS), 0, stream, *a);
    else
        XPH_LAUNCH((linear_narrow<Kind, 1>), dim3(1, outs), dim3(THREADS), 0, stream, *a);
}

}  // namespace

/* ---- candidates ---- */

size_t xph_narrow_bytes(xph_type weights, int64_t in, int64_t out)
{
    const int64_t words = (depth_of(weights, in) + (weights == XPH_I8 ? 1 : 0)) * out;
    return static_cast<size_t>(blocks_of(words * int64_t(sizeof(unsigned)), ROUND) * ROUND);
}

bool xph_narrow_accepts(const void *args)
{
    const xph_linear_args *a = static_cast<const xph_linear_args *>(args);
    return a->type == XPH_F32 && a->rows < int64_t(1) << 31 && fits_across(blocks_of(a->out, THREADS)) &&
           (a->weights == XPH_BF16 || (a->weights == XPH_I8 && a->in <= MOST_I8));
}

int xph_narrow_linear(const void *args, cudaStream_t stream)
{
    const xph_linear_args *a = static_cast<const xph_linear_args *>(args);
    if (!a->rows || !a->out) return cudaSuccess;
    if (a->weights == XPH_I8)
        product<as_i8>(a, stream);
    else
        product<as_bf16>(a, stream);
    return cudaGetLastError();
}

bool xph_narrow_accepts_pack(const void *args)
{
    const xph_linear_pack_args *a = static_cast<const xph_linear_pack_args *>(args);
    return a->type == XPH_F32 && (a->weights == XPH_BF16 || (a->weights == XPH_I8 && a->in <= MOST_I8));
}

int xph_narrow_pack(const void *args, cudaStream_t stream)
{
    const xph_linear_pack_args *a = static_cast<const xph_linear_pack_args *>(args);
    const int64_t words = depth_of(XPH_BF16, a->in) * a->out;
    if (a->weights == XPH_I8 && a->out)
        XPH_LAUNCH(pack_i8, dim3(as_grid(a->out)), dim3(THREADS), 0, stream, *a);
    if (a->weights == XPH_BF16 && words)
        XPH_LAUNCH(pack_bf16, dim3(as_grid(blocks_of(words, THREADS))), dim3(THREADS), 0, stream, *a);
    return cudaGetLastError();
}
