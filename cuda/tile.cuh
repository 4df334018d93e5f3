/* Products of tiles in shared memory, by a block of 128 threads. A tile has 64 rows of DIM = 32, 64 or 128
 * numbers; a warp owns 16 rows of every result, a thread ROWS of them, and of these score_columns of 64 or
 * columns_of(DIM) of DIM columns, in registers. Three units do the same three products:
 *   float_unit   chains of fmaf, each over its columns or rows in order: the same bits as any chain elsewhere
 *   tf32_unit    matrix units on floats of 10 bits of fraction
 *   bf16_unit    matrix units on bfloat16s
 *
 *   scores   s[row][c] = a[row].b[c]                     c below `end`, a multiple of 16; 0 beyond
 *   times    to[row][d] += sum over c of p[row][c] b[c][d]   c from begin to end, multiples of 16; times_of_buffer has p
 *            in `buffer`, where chains of fmaf have it always
 *   transposed   to[row][d] += sum over c of p[c][row] b[c][d]   likewise; p lies in `buffer`
 *
 * A product reads of `a`, and `times` of `buffer`, what the rows of its own warp need, and all of b. A 16-byte
 * vector of a row is read by 8 lanes of neighbouring rows without bank conflicts, hence the padding.
 */
#ifndef XPH_CUDA_TILE_CUH
#define XPH_CUDA_TILE_CUH

#include "mma.cuh"

constexpr int TILE = 64; /* frames, and keys, that a block takes together */
constexpr int TILE_THREADS = 128, BAND = 16;

__device__ inline int tile_lane()
{
    return static_cast<int>(threadIdx.x) % WARP;
}
/* First row of the warp. */
__device__ inline int own_rows()
{
    return static_cast<int>(threadIdx.x) / WARP * BAND;
}

/* ---- chains of fmaf ---- */

struct float_unit {
    using number = float;
    static constexpr int ROWS = 8, SCORES = TILE / 16, LANES = 16; /* LANES: that share a row */
    static constexpr int PAD = 4, BUFFER_LD = TILE + 4;
    static constexpr bool THROUGH_BUFFER = true; /* times reads p from buffer */
    static __host__ __device__ constexpr int columns_of(int dim) { return dim / 16; }
    static __host__ __device__ constexpr int vector_of(int dim) { return dim < TILE ? 2 : 4; }

    static __device__ int row(int i) { return static_cast<int>(threadIdx.x) / 16 * ROWS + i; }
    static __device__ int score_column(int j) { return static_cast<int>(threadIdx.x) % 16 + 16 * j; }
    template <int DIM> static __device__ int column(int j)
    {
        constexpr int VECTOR = vector_of(DIM);
        return static_cast<int>(threadIdx.x) % 16 * VECTOR + j % VECTOR + j / VECTOR * 16 * VECTOR;
    }

    static __device__ float4 vector(const float *at) { return *reinterpret_cast<const float4 *>(at); }

    template <int DIM, int GROUPS>
    static __device__ void scores_of(float (&s)[ROWS][SCORES], const float *a, const float *b)
    {
        constexpr int LD = DIM + PAD;
        const float *rows = a + row(0) * LD, *columns = b + score_column(0) * LD;
        XPH_KEEP_LOOP
        for (int d = 0; d < DIM; d += 4) {
            float4 y[GROUPS];
            XPH_UNROLL
            for (int j = 0; j < GROUPS; j++) y[j] = vector(columns + 16 * j * LD + d);
            XPH_UNROLL
            for (int i = 0; i < ROWS; i++) {
                const float4 x = vector(rows + i * LD + d);
                XPH_UNROLL
                for (int j = 0; j < GROUPS; j++) {
                    s[i][j] = fmaf(x.x, y[j].x, s[i][j]);
                    s[i][j] = fmaf(x.y, y[j].y, s[i][j]);
                    s[i][j] = fmaf(x.z, y[j].z, s[i][j]);
                    s[i][j] = fmaf(x.w, y[j].w, s[i][j]);
                }
            }
        }
    }
    template <int DIM>
    static __device__ void scores(float (&s)[ROWS][SCORES], const float *a, const float *b, int, int end)
    {
        XPH_UNROLL
        for (int i = 0; i < ROWS; i++) {
            XPH_UNROLL
            for (int j = 0; j < SCORES; j++) s[i][j] = 0.0f;
        }
        if (end == 16)
            scores_of<DIM, 1>(s, a, b);
        else if (end == 32)
            scores_of<DIM, 2>(s, a, b);
        else if (end == 48)
            scores_of<DIM, 3>(s, a, b);
        else if (end == 64)
            scores_of<DIM, 4>(s, a, b);
    }

    static __device__ void put(float *buffer, const float (&p)[ROWS][SCORES])
    {
        XPH_UNROLL
        for (int i = 0; i < ROWS; i++) {
            XPH_UNROLL
            for (int j = 0; j < SCORES; j++) buffer[row(i) * BUFFER_LD + score_column(j)] = p[i][j];
        }
    }

    /* to[i][] += x[i] y[] for one row of b. */
    template <int DIM>
    static __device__ void add_row(float (&to)[ROWS][columns_of(DIM)], const float (&x)[ROWS], const float *b)
    {
        float y[columns_of(DIM)];
        if constexpr (DIM < TILE) {
            const float2 v = *reinterpret_cast<const float2 *>(b + column<DIM>(0));
            y[0] = v.x, y[1] = v.y;
        } else {
            XPH_UNROLL
            for (int j = 0; j < columns_of(DIM); j += 4) {
                const float4 v = vector(b + column<DIM>(j));
                y[j] = v.x, y[j + 1] = v.y, y[j + 2] = v.z, y[j + 3] = v.w;
            }
        }
        XPH_UNROLL
        for (int i = 0; i < ROWS; i++) {
            XPH_UNROLL
            for (int j = 0; j < columns_of(DIM); j++) to[i][j] = fmaf(x[i], y[j], to[i][j]);
        }
    }
    template <int DIM>
    static __device__ void times_of_buffer(float (&to)[ROWS][columns_of(DIM)], const float *buffer,
                                           const float *b, int begin, int end)
    {
        constexpr int LD = DIM + PAD;
        const float *rows = buffer + row(0) * BUFFER_LD;
        XPH_KEEP_LOOP
        for (int c = begin; c < end; c += 2) {
            float x[2][ROWS];
            XPH_UNROLL
            for (int i = 0; i < ROWS; i++) {
                const float2 v = *reinterpret_cast<const float2 *>(rows + i * BUFFER_LD + c);
                x[0][i] = v.x, x[1][i] = v.y;
            }
            add_row<DIM>(to, x[0], b + c * LD);
            add_row<DIM>(to, x[1], b + (c + 1) * LD);
        }
    }
    template <int DIM>
    static __device__ void times(float (&to)[ROWS][columns_of(DIM)], const float (&)[ROWS][SCORES],
                                 const float *buffer, const float *b, int begin, int end)
    {
        times_of_buffer<DIM>(to, buffer, b, begin, end);
    }
    template <int DIM>
    static __device__ void transposed(float (&to)[ROWS][columns_of(DIM)], const float *buffer, const float *b,
                                      int begin, int end)
    {
        constexpr int LD = DIM + PAD;
        XPH_KEEP_LOOP
        for (int c = begin; c < end; c++) {
            const float4 low = vector(buffer + c * BUFFER_LD + row(0)),
                         high = vector(buffer + c * BUFFER_LD + row(4));
            const float x[ROWS] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
            add_row<DIM>(to, x, b + c * LD);
        }
    }
    static __device__ float rounded(float x) { return x; }
    static __device__ void put4(float *to, float4 x) { *reinterpret_cast<float4 *>(to) = x; }
    static __device__ float get(const float *from) { return *from; }
};

/* ---- matrix units ---- */

/* Where a thread's numbers lie in the fragments of 16 rows; products of rows with rows, in steps of 32 bytes of k. */
template <class Number, class Mma> struct matrix_unit {
    using number = Number;
    static constexpr int ROWS = 2, SCORES = TILE / 4, LANES = 4;
    static constexpr int VECTOR =
        16 / static_cast<int>(sizeof(Number)); /* numbers of 16 bytes: half a step of k */
    static constexpr int PAD = VECTOR, BUFFER_LD = TILE + 8;
    static constexpr bool THROUGH_BUFFER = false;
    static __host__ __device__ constexpr int columns_of(int dim) { return dim / 4; }

    static __device__ int row(int i) { return own_rows() + tile_lane() / 4 + 8 * i; }
    static __device__ int score_column(int j) { return j / 2 * 8 + tile_lane() % 4 * 2 + j % 2; }
    template <int DIM> static __device__ int column(int j) { return score_column(j); }

    template <int DIM>
    static __device__ void scores(float (&s)[ROWS][SCORES], const Number *a, const Number *b, int begin,
                                  int end)
    {
        constexpr int LD = DIM + PAD;
        const int lane = tile_lane(), in = lane % 8, matrix = lane / 8;
        const Number *rows = a + (own_rows() + in + matrix % 2 * 8) * LD + matrix / 2 * VECTOR;
        const Number *columns = b + (in + matrix / 2 * 8) * LD + matrix % 2 * VECTOR;
        XPH_UNROLL
        for (int i = 0; i < ROWS; i++) {
            XPH_UNROLL
            for (int j = 0; j < SCORES; j++) s[i][j] = 0.0f;
        }
        XPH_UNROLL
        for (int d = 0; d < DIM; d += 2 * VECTOR) {
            unsigned x[4];
            load_matrices(x, rows + d);
            XPH_UNROLL
            for (int c = 0; c < TILE; c += 16) {
                if (c < begin || c >= end) continue;
                unsigned y[4];
                load_matrices(y, columns + c * LD + d);
                Mma::add(s, c / 4, x, y[0], y[1]);
                Mma::add(s, c / 4 + 2, x, y[2], y[3]);
            }
        }
    }
};

struct mma_of_tf32 {
    template <int COUNT>
    static __device__ void add(float (&s)[2][COUNT], int j, const unsigned (&a)[4], unsigned b0, unsigned b1)
    {
        mma_tf32(s[0][j], s[0][j + 1], s[1][j], s[1][j + 1], a, b0, b1);
    }
};
struct mma_of_bf16 {
    template <int COUNT>
    static __device__ void add(float (&s)[2][COUNT], int j, const unsigned (&a)[4], unsigned b0, unsigned b1)
    {
        mma_bf16(s[0][j], s[0][j + 1], s[1][j], s[1][j + 1], a, b0, b1);
    }
};

struct tf32_unit : matrix_unit<float, mma_of_tf32> {
    static __device__ float rounded(float x) { return to_tf32(x); }
    static __device__ unsigned bits(float x) { return __float_as_uint(x); }
    static __device__ unsigned round_bits(float x) { return bits(to_tf32(x)); }
    static __device__ void put4(float *to, float4 x)
    {
        *reinterpret_cast<float4 *>(to) = make_float4(to_tf32(x.x), to_tf32(x.y), to_tf32(x.z), to_tf32(x.w));
    }
    static __device__ float get(const float *from) { return *from; }
    static __device__ void put(float *buffer, const float (&p)[ROWS][SCORES])
    {
        XPH_UNROLL
        for (int i = 0; i < ROWS; i++) {
            XPH_UNROLL
            for (int j = 0; j < SCORES; j += 2)
                *reinterpret_cast<float2 *>(buffer + row(i) * BUFFER_LD + score_column(j)) =
                    make_float2(to_tf32(p[i][j]), to_tf32(p[i][j + 1]));
        }
    }

    /* Rows c..c+7 of b. A thread has columns 2 q and 2 q + 1 of p: they stand for k = q and q + 4, and the rows of b come
     * in that order. */
    template <int DIM>
    static __device__ void add_rows(float (&to)[ROWS][columns_of(DIM)], const unsigned (&x)[4],
                                    const float *b)
    {
        constexpr int LD = DIM + PAD;
        const float *rows = b + tile_lane() % 4 * 2 * LD + tile_lane() / 4;
        XPH_UNROLL
        for (int d = 0; d < DIM; d += 8) mma_of_tf32::add(to, d / 4, x, bits(rows[d]), bits(rows[LD + d]));
    }
    template <int DIM>
    static __device__ void times(float (&to)[ROWS][columns_of(DIM)], const float (&p)[ROWS][SCORES],
                                 const float *, const float *b, int begin, int end)
    {
        XPH_UNROLL
        for (int c = 0; c < TILE; c += 8) {
            if (c < begin || c >= end) continue;
            const int j = c / 4;
            const unsigned x[4] = {round_bits(p[0][j]), round_bits(p[1][j]), round_bits(p[0][j + 1]),
                                   round_bits(p[1][j + 1])};
            add_rows<DIM>(to, x, b + c * (DIM + PAD));
        }
    }
    template <int DIM>
    static __device__ void times_of_buffer(float (&to)[ROWS][columns_of(DIM)], const float *buffer,
                                           const float *b, int begin, int end)
    {
        const float *from = buffer + row(0) * BUFFER_LD + score_column(0);
        XPH_KEEP_LOOP
        for (int c = begin; c < end; c += 8) {
            const float2 low = *reinterpret_cast<const float2 *>(from + c),
                         high = *reinterpret_cast<const float2 *>(from + 8 * BUFFER_LD + c);
            const unsigned x[4] = {bits(low.x), bits(high.x), bits(low.y), bits(high.y)};
            add_rows<DIM>(to, x, b + c * (DIM + PAD));
        }
    }
    template <int DIM>
    static __device__ void transposed(float (&to)[ROWS][columns_of(DIM)], const float *buffer, const float *b,
                                      int begin, int end)
    {
        constexpr int LD = DIM + PAD;
        const int g = tile_lane() / 4, q = tile_lane() % 4;
        XPH_KEEP_LOOP
        for (int c = begin; c < end; c += 8) {
            const float *from = buffer + (c + q) * BUFFER_LD + own_rows() + g, *rows = b + (c + q) * LD + g;
            const unsigned x[4] = {bits(from[0]), bits(from[8]), bits(from[4 * BUFFER_LD]),
                                   bits(from[4 * BUFFER_LD + 8])};
            XPH_UNROLL
            for (int d = 0; d < DIM; d += 8)
                mma_of_tf32::add(to, d / 4, x, bits(rows[d]), bits(rows[4 * LD + d]));
        }
    }
};

struct bf16_unit : matrix_unit<__nv_bfloat16, mma_of_bf16> {
    static __device__ void put2(__nv_bfloat16 *to, float low, float high)
    {
        *reinterpret_cast<unsigned *>(to) = pack_bf16(low, high);
    }
    static __device__ void put4(__nv_bfloat16 *to, float4 x)
    {
        put2(to, x.x, x.y);
        put2(to + 2, x.z, x.w);
    }
    static __device__ float get(const __nv_bfloat16 *from) { return __bfloat162float(*from); }
    static __device__ void put(__nv_bfloat16 *buffer, const float (&p)[ROWS][SCORES])
    {
        XPH_UNROLL
        for (int i = 0; i < ROWS; i++) {
            XPH_UNROLL
            for (int j = 0; j < SCORES; j += 2)
                put2(buffer + row(i) * BUFFER_LD + score_column(j), p[i][j], p[i][j + 1]);
        }
    }

    /* Rows c..c+15 of b, 16 columns at a time, transposed: neighbours in k together. */
    template <int DIM>
    static __device__ void add_rows(float (&to)[ROWS][columns_of(DIM)], const unsigned (&x)[4],
                                    const __nv_bfloat16 *b)
    {
        constexpr int LD = DIM + PAD;
        const int lane = tile_lane(), in = lane % 8, matrix = lane / 8;
        const __nv_bfloat16 *rows = b + (in + matrix % 2 * 8) * LD + matrix / 2 * 8;
        XPH_UNROLL
        for (int d = 0; d < DIM; d += 16) {
            unsigned y[4];
            load_transposed(y, rows + d);
            mma_of_bf16::add(to, d / 4, x, y[0], y[1]);
            mma_of_bf16::add(to, d / 4 + 2, x, y[2], y[3]);
        }
    }
    template <int DIM>
    static __device__ void times(float (&to)[ROWS][columns_of(DIM)], const float (&p)[ROWS][SCORES],
                                 const __nv_bfloat16 *, const __nv_bfloat16 *b, int begin, int end)
    {
        XPH_UNROLL
        for (int c = 0; c < TILE; c += 16) {
            if (c < begin || c >= end) continue;
            const int j = c / 4;
            const unsigned x[4] = {pack_bf16(p[0][j], p[0][j + 1]), pack_bf16(p[1][j], p[1][j + 1]),
                                   pack_bf16(p[0][j + 2], p[0][j + 3]), pack_bf16(p[1][j + 2], p[1][j + 3])};
            add_rows<DIM>(to, x, b + c * (DIM + PAD));
        }
    }
    static __device__ unsigned pair(const __nv_bfloat16 *at)
    {
        return *reinterpret_cast<const unsigned *>(at);
    }
    template <int DIM>
    static __device__ void times_of_buffer(float (&to)[ROWS][columns_of(DIM)], const __nv_bfloat16 *buffer,
                                           const __nv_bfloat16 *b, int begin, int end)
    {
        const __nv_bfloat16 *from = buffer + row(0) * BUFFER_LD + score_column(0);
        XPH_KEEP_LOOP
        for (int c = begin; c < end; c += 16) {
            const unsigned x[4] = {pair(from + c), pair(from + 8 * BUFFER_LD + c), pair(from + c + 8),
                                   pair(from + 8 * BUFFER_LD + c + 8)};
            add_rows<DIM>(to, x, b + c * (DIM + PAD));
        }
    }
    template <int DIM>
    static __device__ void transposed(float (&to)[ROWS][columns_of(DIM)], const __nv_bfloat16 *buffer,
                                      const __nv_bfloat16 *b, int begin, int end)
    {
        const int lane = tile_lane(), in = lane % 8, matrix = lane / 8;
        const __nv_bfloat16 *from = buffer + (in + matrix / 2 * 8) * BUFFER_LD + own_rows() + matrix % 2 * 8;
        XPH_KEEP_LOOP
        for (int c = begin; c < end; c += 16) {
            unsigned x[4];
            load_transposed(x, from + c * BUFFER_LD);
            add_rows<DIM>(to, x, b + c * (DIM + PAD));
        }
    }
};

/* ---- shared memory beyond 48 KB ---- */

/* Of a block, if it asks; 48 KB where that cannot be known. */
inline int64_t most_shared()
{
    int device = 0, bytes = 0;
    if (cudaGetDevice(&device) ||
        cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device))
        return 48 * 1024;
    return bytes;
}
template <class... P> inline int allow_shared(void (*kernel)(P...), size_t bytes)
{
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
}

#endif
