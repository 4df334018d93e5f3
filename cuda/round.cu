/* Weights rounded to fewer bits (XPH_OP_ROUND): bfloat16s number by number, int8s by one block per row, which
 * finds the row's scale first. The bits are the CPU's. Parameters are float whatever the type of rows. */
#include "kernels.h"
#include "narrow.cuh"

namespace
{

constexpr int THREADS = 256;

/* q before to, which may be w. */
__global__ void __launch_bounds__(THREADS) round_bf16(const xph_round_args a)
{
    XPH_ENTER();
    const int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (i >= a.in * a.out) return;
    const unsigned bits = narrow_bits(static_cast<const float *>(a.w)[i]);
    if (a.q) static_cast<uint16_t *>(a.q)[i] = static_cast<uint16_t>(bits >> 16);
    if (a.to) static_cast<float *>(a.to)[i] = __uint_as_float(bits);
}

__global__ void __launch_bounds__(THREADS) round_i8(const xph_round_args a)
{
    XPH_ENTER();
    const int64_t first = blockIdx.x * a.in;
    const float *w = static_cast<const float *>(a.w) + first;
    unsigned largest = 0;
    for (int64_t k = threadIdx.x; k < a.in; k += THREADS) {
        const unsigned size = size_bits(w[k]);
        largest = size > largest ? size : largest;
    }
    const float scale = i8_scale(largest_of_block<THREADS>(largest));
    if (a.scale && threadIdx.x == 0) a.scale[blockIdx.x] = scale;
    for (int64_t k = threadIdx.x; k < a.in; k += THREADS) {
        const int level = i8_of(w[k], scale);
        if (a.q) static_cast<int8_t *>(a.q)[first + k] = static_cast<int8_t>(level);
        /* A NaN as it is: multiplied, a device gives one of its own. */
        const float wide = scale == scale ? scale * static_cast<float>(level) : scale;
        if (a.to) static_cast<float *>(a.to)[first + k] = wide;
    }
}

bool accepts(const void *args)
{
    const xph_round_args *a = static_cast<const xph_round_args *>(args);
    return is_stored(a->type) && (a->weights == XPH_BF16 || a->weights == XPH_I8) &&
           a->out < int64_t(1) << 31;
}

int launch(const void *args, cudaStream_t stream)
{
    const xph_round_args *a = static_cast<const xph_round_args *>(args);
    const dim3 numbers(as_grid(blocks_of(a->in * a->out, THREADS))), rows(as_grid(a->out));
    if (!a->out || (!a->in && a->weights == XPH_BF16)) return cudaSuccess;
    if (a->weights == XPH_I8)
        XPH_LAUNCH(round_i8, rows, dim3(THREADS), 0, stream, *a);
    else
        XPH_LAUNCH(round_bf16, numbers, dim3(THREADS), 0, stream, *a);
    return cudaGetLastError();
}

}  // namespace

const xph_cuda_candidate xph_cuda_round[] = {
    {"round", accepts, nullptr, launch},
    {nullptr, nullptr, nullptr, nullptr},
};
