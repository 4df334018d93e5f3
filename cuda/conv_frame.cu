/* The causal convolution of conv.cu for one frame: the taps - 1 inputs before it are the carried state, which moves on
 * by one. To the bit what conv.cu gives. All that is read is read at once, by a thread for EACH neighbouring channels,
 * whose numbers lie together in every row: four where rows and addresses allow it, or one. The state may be moved in
 * its place, so that reads come before writes.
 *
 * Kernels are made for TAPS = 1, 2, 3, 4, 8 and 16, as in conv.cu.
 */
#include "element.cuh"
#include "kernels.h"

namespace
{

constexpr int THREADS = 128, MOST_TAPS = 16, FOUR = 4;

/* EACH numbers that lie together. */
template <int EACH, class Stored> __device__ inline void read_each(float (&to)[EACH], const Stored *from)
{
    if constexpr (EACH == FOUR) {
        const float4 four = load_four(from);
        to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
    } else {
        to[0] = load_changing(from);
    }
}
template <int EACH, class Stored> __device__ inline void write_each(Stored *to, const float (&x)[EACH])
{
    if constexpr (EACH == FOUR)
        store_four(to, make_float4(x[0], x[1], x[2], x[3]));
    else
        store(to, x[0]);
}

/* Weights of EACH channels, one behind the other. Taps that the kernel has and the convolution has not come first. */
template <int TAPS, int EACH>
__device__ inline void read_weights(float (&w)[EACH * TAPS], const float *from, int missing)
{
    if constexpr (EACH == FOUR) {
        XPH_UNROLL
        for (int i = 0; i < TAPS; i++) {
            const float4 four = load_four(from + FOUR * i);
            w[4 * i] = four.x, w[4 * i + 1] = four.y, w[4 * i + 2] = four.z, w[4 * i + 3] = four.w;
        }
    } else {
        XPH_UNROLL
        for (int j = 0; j < TAPS; j++) w[j] = j < missing ? 0.0f : load(from + j - missing);
    }
}

template <class Stored, int TAPS, int EACH>
__global__ void __launch_bounds__(THREADS) conv_frame(const xph_conv_args a)
{
    XPH_ENTER();
    const int64_t stream = blockIdx.x, channel = (int64_t(blockIdx.y) * THREADS + threadIdx.x) * EACH;
    if (channel >= a.width) return;
    const int missing = EACH == FOUR ? 0 : TAPS - static_cast<int>(a.taps);
    const bool cut = a.reset && a.reset[stream];
    const float *in = static_cast<const float *>(a.state_in);
    float *out = static_cast<float *>(a.state_out);
    float x[TAPS][EACH], w[EACH * TAPS], y[EACH];
    XPH_UNROLL
    for (int j = 0; j + 1 < TAPS; j++) {
        if (in && !cut && j >= missing) {
            read_each(x[j], in + stream * a.ld_state + (j - missing) * a.width + channel);
        } else {
            XPH_UNROLL
            for (int i = 0; i < EACH; i++) x[j][i] = 0.0f;
        }
    }
    read_each(x[TAPS - 1], static_cast<const Stored *>(a.x) + stream * a.ldx + channel);
    read_weights<TAPS, EACH>(w, static_cast<const float *>(a.w) + channel * a.taps, missing);
    read_each(y, static_cast<const float *>(a.bias) + channel);
    XPH_UNROLL
    for (int i = 0; i < EACH; i++) {
        XPH_UNROLL
        for (int j = 0; j < TAPS; j++)
            if (j >= missing) y[i] = fmaf(w[i * TAPS + j], x[j][i], y[i]);
        y[i] = silu(y[i]);
    }
    write_each(static_cast<Stored *>(a.y) + stream * a.ldy + channel, y);
    XPH_UNROLL
    for (int j = 1; out && j < TAPS; j++)
        if (j > missing) write_each(out + stream * a.ld_state + (j - 1 - missing) * a.width + channel, x[j]);
}

/* ---- candidates ---- */

/* Whether four neighbours lie together in everything. */
bool lies_in_fours(const xph_conv_args *a)
{
    const uintptr_t floats = reinterpret_cast<uintptr_t>(a->state_in) |
                             reinterpret_cast<uintptr_t>(a->state_out) | reinterpret_cast<uintptr_t>(a->w) |
                             reinterpret_cast<uintptr_t>(a->bias),
                    rows = reinterpret_cast<uintptr_t>(a->x) | reinterpret_cast<uintptr_t>(a->y);
    return a->taps <= FOUR && (a->width | a->ldx | a->ldy | a->ld_state) % FOUR == 0 && floats % 16 == 0 &&
           rows % (a->type == XPH_F32 ? 16 : 8) == 0;
}

template <class Stored, int TAPS, int EACH> int run(const xph_conv_args *a, cudaStream_t stream)
{
    const dim3 grid(as_grid(a->batch), as_grid(blocks_of(a->width, THREADS * EACH)));
    XPH_LAUNCH((conv_frame<Stored, TAPS, EACH>), grid, dim3(THREADS), 0, stream, *a);
    return cudaGetLastError();
}

template <class Stored, int TAPS> int few_taps(const xph_conv_args *a, cudaStream_t stream)
{
    return lies_in_fours(a) ? run<Stored, TAPS, FOUR>(a, stream) : run<Stored, TAPS, 1>(a, stream);
}

template <class Stored> int run_of(const xph_conv_args *a, cudaStream_t stream)
{
    switch (a->taps) {
    case 1:
        return few_taps<Stored, 1>(a, stream);
    case 2:
        return few_taps<Stored, 2>(a, stream);
    case 3:
        return few_taps<Stored, 3>(a, stream);
    case 4:
        return few_taps<Stored, 4>(a, stream);
    }
    return a->taps <= 8 ? run<Stored, 8, 1>(a, stream) : run<Stored, 16, 1>(a, stream);
}

}  // namespace

bool xph_conv_frame_accepts(const void *args)
{
    const xph_conv_args *a = static_cast<const xph_conv_args *>(args);
    return a->time == 1 && is_stored(a->type) && a->taps >= 1 && a->taps <= MOST_TAPS &&
           a->batch < (int64_t(1) << 31) && fits_across(blocks_of(a->width, THREADS));
}

int xph_conv_frame(const void *args, cudaStream_t stream)
{
    const xph_conv_args *a = static_cast<const xph_conv_args *>(args);
    if (!a->batch || !a->width) return cudaSuccess;
    return with_stored(a->type, [&](auto zero) { return run_of<decltype(zero)>(a, stream); });
}
