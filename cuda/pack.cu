/* Packed forms of weights for matrix units: a narrow copy of a matrix, made once per update, for rows of
 * float16 or bfloat16, followed by a narrow copy of the bias. Rows of floats are multiplied with the weights
 * themselves. */
#include "element.cuh"
#include "kernels.h"

namespace
{

constexpr int THREADS = 256;
constexpr int64_t BIAS_ALIGN = 64; /* bytes */

/* count numbers of w, then `more` of bias. */
template <class Stored>
__global__ void __launch_bounds__(THREADS)
    pack(const float *w, const float *bias, Stored *to, Stored *to_bias, int64_t count, int64_t more)
{
    XPH_ENTER();
    const int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (i < count)
        store(to + i, load(w + i));
    else if (i < count + more)
        store(to_bias + i - count, load(bias + i - count));
}

bool accepts(const void *args)
{
    const xph_linear_pack_args *a = static_cast<const xph_linear_pack_args *>(args);
    return !a->weights && is_stored(a->type);
}

int launch(const void *args, cudaStream_t stream)
{
    const xph_linear_pack_args *a = static_cast<const xph_linear_pack_args *>(args);
    const int64_t count = a->in * a->out, more = a->bias ? a->out : 0;
    const dim3 grid(as_grid(blocks_of(count + more, THREADS)));
    const float *w = static_cast<const float *>(a->w), *bias = static_cast<const float *>(a->bias);
    char *const to = static_cast<char *>(a->packed);
    if (!count || a->type == XPH_F32) return cudaSuccess;
    with_stored(a->type, [&](auto zero) {
        using Stored = decltype(zero);
        XPH_LAUNCH((pack<Stored>), grid, dim3(THREADS), 0, stream, w, bias, reinterpret_cast<Stored *>(to),
                   reinterpret_cast<Stored *>(to + xph_packed_bias_at(a->in, a->out)), count, more);
    });
    return cudaGetLastError();
}

size_t matrix_bytes(xph_type weights, int64_t in, int64_t out)
{
    if (weights) return xph_narrow_bytes(weights, in, out);
    return xph_packed_bias_at(in, out) + static_cast<size_t>(out) * sizeof(__nv_bfloat16);
}

size_t decay_bytes(int64_t width, int64_t states)
{
    return static_cast<size_t>(width) * static_cast<size_t>(states) * sizeof(float);
}

}  // namespace

size_t xph_packed_bias_at(int64_t in, int64_t out)
{
    const int64_t bytes = in * out * int64_t(sizeof(__nv_bfloat16));
    return static_cast<size_t>(blocks_of(bytes, BIAS_ALIGN) * BIAS_ALIGN);
}

size_t xph_cuda_packed_bytes(xph_op op, const void *args)
{
    const xph_linear_args *linear = static_cast<const xph_linear_args *>(args);
    const xph_linear_pack_args *made = static_cast<const xph_linear_pack_args *>(args);
    const xph_rnn_args *rnn = static_cast<const xph_rnn_args *>(args);
    const xph_scan_args *scan = static_cast<const xph_scan_args *>(args);
    const xph_scan_pack_args *decay = static_cast<const xph_scan_pack_args *>(args);
    switch (op) {
    case XPH_OP_LINEAR:
        return matrix_bytes(linear->weights, linear->in, linear->out);
    case XPH_OP_LINEAR_PACK:
        return matrix_bytes(made->weights, made->in, made->out);
    case XPH_OP_RNN:
        return matrix_bytes(rnn->weights, rnn->hidden, (rnn->kind == XPH_RNN_LSTM ? 4 : 3) * rnn->hidden);
    case XPH_OP_SCAN:
        return decay_bytes(scan->width, scan->states);
    case XPH_OP_SCAN_PACK:
        return decay_bytes(decay->width, decay->states);
    default:
        return 0;
    }
}

const xph_cuda_candidate xph_cuda_linear_pack[] = {
    {"linear_pack", accepts, nullptr, launch},
    {"linear_pack_narrow", xph_narrow_accepts_pack, nullptr, xph_narrow_pack},
    {nullptr, nullptr, nullptr, nullptr},
};
