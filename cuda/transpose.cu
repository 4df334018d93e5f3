/* Transposed copies of the operands of a product, one or two in a launch (blaslt_transposed.c). A block turns a square of them
 * over in shared memory, so that both sides are read and written along their rows. */
#include "element.cuh"
#include "kernels.h"

namespace
{

constexpr int SIDE = 64, THREADS = 256,
              LINES = THREADS / SIDE; /* rows of a square that a turn of the block takes */

/* f(row, column, where it is) for the part of a square of `rows` x `columns` that is there, its rows ld apart. A thread stays in
 * its column, and all that it asks for is asked for before it waits. */
template <class Each> __device__ inline void each_of_square(int64_t rows, int64_t columns, int64_t ld, Each f)
{
    const int column = int(threadIdx.x) % SIDE, first = int(threadIdx.x) / SIDE;
    int64_t at = first * ld + column;
    if (rows >= SIDE && columns >= SIDE) {
        XPH_UNROLL
        for (int row = 0; row < SIDE; row += LINES, at += LINES * ld) f(first + row, column, at);
    } else if (column < columns) {
        for (int row = first; row < SIDE && row < rows; row += LINES, at += LINES * ld) f(row, column, at);
    }
}

__global__ void __launch_bounds__(THREADS) transpose(const xph_transpose_args args)
{
    XPH_ENTER();
    XPH_SHARED(float, square, [SIDE][SIDE + 1]);
    const bool second = int64_t(blockIdx.x) >= args.of[0].squares;
    const xph_transposed m = second ? args.of[1] : args.of[0];
    const unsigned at = blockIdx.x - (second ? unsigned(args.of[0].squares) : 0u);
    const unsigned along = unsigned((m.columns + SIDE - 1) / SIDE);
    const int64_t row = int64_t(at / along) * SIDE, column = int64_t(at % along) * SIDE;
    const float *const from = static_cast<const float *>(m.from) + row * m.ld + column;
    float *const to = static_cast<float *>(m.to) + column * m.ldt + row;
    each_of_square(m.rows - row, m.columns - column, m.ld,
                   [&](int r, int c, int64_t i) { square[r][c] = load(from + i); });
    __syncthreads();
    each_of_square(m.columns - column, m.rows - row, m.ldt,
                   [&](int r, int c, int64_t i) { store(to + i, square[c][r]); });
}

int64_t squares_of(const xph_transposed &m)
{
    return blocks_of(m.rows, SIDE) * blocks_of(m.columns, SIDE);
}

}  // namespace

int xph_transpose(const xph_transpose_args *args, cudaStream_t stream)
{
    xph_transpose_args a = *args;
    a.of[0].squares = squares_of(a.of[0]);
    a.of[1].squares = squares_of(a.of[1]);
    const int64_t blocks = a.of[0].squares + a.of[1].squares;
    if (!blocks) return cudaSuccess;
    XPH_LAUNCH(transpose, dim3(as_grid(blocks)), dim3(THREADS), 0, stream, a);
    return cudaGetLastError();
}
