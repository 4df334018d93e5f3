/* What forward and gradient of attention in tiles share: moving rows into shared memory and out of
 * registers. */
#ifndef XPH_CUDA_ATTENTION_TILE_CUH
#define XPH_CUDA_ATTENTION_TILE_CUH

#include "attention.cuh"

template <class Unit> using number_of = typename Unit::number;

constexpr int BIASES =
    2 * TILE; /* of a tile of frames and one of keys: distances -63..63 from the first ones' */

/* ---- four numbers at once ---- */

struct alignas(8) four_bf16 {
    unsigned low, high;
};
struct alignas(8) four_halves {
    __half x[4];
};
__device__ inline float4 load4(const float *from)
{
    return *reinterpret_cast<const float4 *>(from);
}
__device__ inline four_bf16 load4(const __nv_bfloat16 *from)
{
    return *reinterpret_cast<const four_bf16 *>(from);
}
__device__ inline four_halves load4(const __half *from)
{
    return *reinterpret_cast<const four_halves *>(from);
}
__device__ inline float4 as_floats(float4 x)
{
    return x;
}
__device__ inline float4 as_floats(four_bf16 x)
{
    return make_float4(__uint_as_float(x.low << 16), __uint_as_float(x.low & 0xffff0000u),
                       __uint_as_float(x.high << 16), __uint_as_float(x.high & 0xffff0000u));
}
__device__ inline float4 as_floats(four_halves x)
{
    return make_float4(__half2float(x.x[0]), __half2float(x.x[1]), __half2float(x.x[2]),
                       __half2float(x.x[3]));
}
template <class Unit, class Four> __device__ inline void put4(typename Unit::number *to, Four x)
{
    Unit::put4(to, as_floats(x));
}
template <> __device__ inline void put4<bf16_unit, four_bf16>(__nv_bfloat16 *to, four_bf16 x)
{
    *reinterpret_cast<four_bf16 *>(to) = x;
}
__device__ inline void store2(float *to, float x, float y)
{
    *reinterpret_cast<float2 *>(to) = make_float2(x, y);
}
__device__ inline void store2(__nv_bfloat16 *to, float x, float y)
{
    *reinterpret_cast<unsigned *>(to) = pack_bf16(x, y);
}
__device__ inline void store2(__half *to, float x, float y)
{
#ifdef __CUDACC__
    *reinterpret_cast<__half2 *>(to) = __floats2half2_rn(x, y);
#else
    store(to, x), store(to + 1, y);
#endif
}

/* Whether rows can be read and written four numbers at a time. */
template <class Stored> __device__ inline bool in_fours(const Stored *row, int64_t ld, int dim)
{
    return reinterpret_cast<uintptr_t>(row) % (4 * sizeof(Stored)) == 0 && ld % 4 == 0 && dim % 4 == 0;
}

/* ---- rows into shared memory ---- */

/* How threads share the rows of a tile, four columns each: a round is what a thread loads of a matrix at once, at most MOST
 * vectors. */
template <int DIM, int MOST> struct filling {
    static constexpr int ACROSS = DIM / 4, DOWN = TILE_THREADS / ACROSS;
    static constexpr int AT_ONCE = TILE / DOWN < MOST ? TILE / DOWN : MOST, ROUND = AT_ONCE * DOWN;
    static __device__ int column() { return static_cast<int>(threadIdx.x) % ACROSS * 4; }
    static __device__ int row() { return static_cast<int>(threadIdx.x) / ACROSS; }
};

template <class Unit, int DIM, class Row>
__device__ inline void fill_slowly(typename Unit::number *to, int begin, int end, int dim, const Row &row)
{
    constexpr int LD = DIM + Unit::PAD;
    using how = filling<DIM, 1>;
    const int d = how::column();
    XPH_KEEP_LOOP
    for (int r = how::row(); r < TILE; r += how::DOWN) {
        float x[4] = {};
        const bool here = r >= begin && r < end;
        XPH_UNROLL
        for (int k = 0; k < 4; k++)
            if (here && d + k < dim) x[k] = load(row(r) + d + k);
        Unit::put4(to + r * LD + d, make_float4(x[0], x[1], x[2], x[3]));
    }
}

/* A round of rows, those from begin to end - 1, zeros around them. */
template <class Unit, int DIM, int MOST, class Stored> struct round_of_rows {
    using how = filling<DIM, MOST>;
    using four = decltype(load4(static_cast<const Stored *>(nullptr)));
    four x[how::AT_ONCE];

    __device__ void load(const Stored *from, int64_t ld, int first, int begin, int end, int dim)
    {
        const int d = how::column();
        XPH_UNROLL
        for (int i = 0; i < how::AT_ONCE; i++) {
            const int r = first + i * how::DOWN + how::row();
            x[i] = r >= begin && r < end && d < dim ? load4(from + r * ld + d) : four{};
        }
    }
    __device__ void put(typename Unit::number *to, int first) const
    {
        XPH_UNROLL
        for (int i = 0; i < how::AT_ONCE; i++)
            put4<Unit>(to + (first + i * how::DOWN + how::row()) * (DIM + Unit::PAD) + how::column(), x[i]);
    }
};

/* Rows of a matrix that start at `from`, which need not exist itself. */
template <class Stored> struct rows_at {
    const Stored *from;
    int64_t ld;
};

/* Rows begin..end-1 of two matrices, which are on their way together; zeros around them. */
template <class Unit, int DIM, int MOST, class Stored>
__device__ inline void fill(typename Unit::number *to_a, rows_at<Stored> a, typename Unit::number *to_b,
                            rows_at<Stored> b, int begin, int end, int dim)
{
    constexpr int ROUND = filling<DIM, MOST>::ROUND;
    if (!in_fours(a.from, a.ld, dim) || !in_fours(b.from, b.ld, dim)) {
        fill_slowly<Unit, DIM>(to_a, begin, end, dim, [=](int r) { return a.from + r * a.ld; });
        fill_slowly<Unit, DIM>(to_b, begin, end, dim, [=](int r) { return b.from + r * b.ld; });
        return;
    }
    XPH_UNROLL
    for (int first = 0; first < TILE; first += ROUND) {
        round_of_rows<Unit, DIM, MOST, Stored> x, y;
        x.load(a.from, a.ld, first, begin, end, dim);
        y.load(b.from, b.ld, first, begin, end, dim);
        x.put(to_a, first);
        y.put(to_b, first);
    }
}

/* Queries of frames t0..t0 + 63. */
template <class Unit, int DIM, class Stored>
__device__ inline void fill_queries(const xph_attention_args &a, const head_view &v, int t0,
                                    typename Unit::number *queries)
{
    constexpr int MOST = 8;
    const Stored *from = query_at<Stored>(a, v, t0);
    const int64_t ld = a.ldqkv;
    if (!in_fours(from, ld, v.dim)) {
        fill_slowly<Unit, DIM>(queries, 0, v.time - t0, v.dim, [=](int r) { return from + r * ld; });
        return;
    }
    XPH_UNROLL
    for (int first = 0; first < TILE; first += filling<DIM, MOST>::ROUND) {
        round_of_rows<Unit, DIM, MOST, Stored> x;
        x.load(from, ld, first, 0, v.time - t0, v.dim);
        x.put(queries, first);
    }
}

/* Keys and values k0..k0 + 63, the former not older than `oldest`. A tile of keys lies in the ring or in the chunk. */
template <class Unit, int DIM, int MOST, class Stored>
__device__ inline void fill_keys(const xph_attention_args &a, const head_view &v, int k0, int oldest,
                                 typename Unit::number *keys, typename Unit::number *values)
{
    const int begin = oldest > k0 ? oldest - k0 : 0;
    if (k0 < 0) {
        fill_slowly<Unit, DIM>(keys, begin, TILE, v.dim, [&](int r) { return ring_key(v, k0 + r); });
        fill_slowly<Unit, DIM>(values, begin, TILE, v.dim, [&](int r) { return ring_value(v, k0 + r); });
    } else {
        const rows_at<Stored> k = {query_at<Stored>(a, v, k0) + v.span, a.ldqkv};
        fill<Unit, DIM, MOST>(keys, k, values, rows_at<Stored>{k.from + v.span, k.ld}, begin, v.time - k0,
                              v.dim);
    }
}

/* bias[TILE - 1 + frame - key] for rows of the two tiles, with log2(e). */
__device__ inline void fill_bias(const xph_attention_args &a, const head_view &v, int t0, int k0, float *bias)
{
    const int i = static_cast<int>(threadIdx.x), distance = t0 - k0 + i - (TILE - 1);
    if (i < BIASES) bias[i] = distance >= 0 && distance < v.window ? bias_at(a, v, distance) : 0.0f;
}

/* ---- rows out of registers ---- */

/* Rows of `to` that are below end, times factor(i) of the thread's i-th row. */
template <class Unit, int DIM, class Stored, class Factor>
__device__ inline void leave(float (&x)[Unit::ROWS][Unit::columns_of(DIM)], Stored *to, int64_t ld, int end,
                             int dim, const Factor &factor)
{
    constexpr int COLUMNS = Unit::columns_of(DIM);
    const int column = Unit::template column<DIM>(0), left = dim - column;
    const bool fours = in_fours(to, ld, dim);
    const int64_t step = (Unit::row(1) - Unit::row(0)) * ld;
    Stored *row = to + Unit::row(0) * ld + column;
    XPH_UNROLL
    for (int i = 0; i < Unit::ROWS; i++) {
        const float f = factor(i);
        XPH_UNROLL
        for (int j = 0; j < COLUMNS; j++) x[i][j] *= f;
    }
    if (fours) {
        XPH_UNROLL
        for (int i = 0; i < Unit::ROWS; i++, row += step) {
            XPH_UNROLL
            for (int j = 0; j < COLUMNS; j += 2) {
                const int d = Unit::template column<DIM>(j) - column;
                if (Unit::row(i) < end && d < left) store2(row + d, x[i][j], x[i][j + 1]);
            }
        }
    } else {
        XPH_UNROLL
        for (int i = 0; i < Unit::ROWS; i++, row += step) {
            XPH_UNROLL
            for (int j = 0; j < COLUMNS; j++) {
                const int d = Unit::template column<DIM>(j) - column;
                if (Unit::row(i) < end && d < left) store(row + d, x[i][j]);
            }
        }
    }
}

template <class Unit, int DIM> __device__ inline void clear(float (&x)[Unit::ROWS][Unit::columns_of(DIM)])
{
    XPH_UNROLL
    for (int i = 0; i < Unit::ROWS; i++) {
        XPH_UNROLL
        for (int j = 0; j < Unit::columns_of(DIM); j++) x[i][j] = 0.0f;
    }
}

/* ---- which kernel ---- */

inline int64_t band_up(int64_t x)
{
    return blocks_of(x, BAND) * BAND;
}

/* Kernels are made for 32, 64 and 128 columns. */
template <template <class, class, int> class Kernel, class Unit, class Stored, class Args>
int attention_by_dim(int64_t dim, const Args *args, cudaStream_t stream)
{
    if (dim <= 32) return Kernel<Unit, Stored, 32>::run(args, stream);
    if (dim <= 64) return Kernel<Unit, Stored, 64>::run(args, stream);
    return Kernel<Unit, Stored, 128>::run(args, stream);
}
template <template <class, class, int> class Kernel, class Args>
int attention_by_unit(const xph_attention_args *a, attention_unit unit, const Args *args, cudaStream_t stream)
{
    if (a->type == XPH_BF16) return attention_by_dim<Kernel, bf16_unit, __nv_bfloat16>(a->dim, args, stream);
    if (a->type == XPH_F16) return attention_by_dim<Kernel, tf32_unit, __half>(a->dim, args, stream);
    if (unit == ATTENTION_MATRICES) return attention_by_dim<Kernel, tf32_unit, float>(a->dim, args, stream);
    return attention_by_dim<Kernel, float_unit, float>(a->dim, args, stream);
}

/* Chains are for floats alone: of narrow ones matrix units lose nothing that is not lost yet. Halves are exact in
 * tf32_unit, whose probabilities and gradients have their fraction and a float's range. */
inline bool attention_tiles_fit(const xph_attention_args *a, attention_unit unit)
{
    if (!attention_fits(a) || a->dim > 128 || a->method == XPH_ATTENTION_PLAIN) return false;
    if (unit == ATTENTION_CHAINS) return a->type == XPH_F32;
    return a->type != XPH_F32 || a->math == XPH_MATH_TF32;
}

inline int attention_padded(int64_t dim)
{
    return dim <= 32 ? 32 : dim <= 64 ? 64 : 128;
}

#endif
