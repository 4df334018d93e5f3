/* Functions of single numbers over flat arrays, and their gradients (XPH_OP_ACTIVATE). x, y and dy, dx may be the
 * same.
 */
#include "flat.cuh"
#include "kernels.h"

namespace
{

using namespace flat;

/* What of the arguments a thread reads. */
struct function {
    int kind;
    float low, high;
};

/* gelu(x) = x sigmoid(2 t), t = sqrt(2/pi) (x + 0.044715 x^3): no digits are lost where tanh is near -1. */
constexpr float TWICE_ROOT = 1.59576912160573071176f, CUBIC = 0.044715f, FAR = 30.0f;

/* The value at x, and in *slope the derivative there. */
__device__ inline float activated(const function &f, float x, float *slope)
{
    if (f.kind == XPH_ACTIVATE_RELU) {
        *slope = x > 0.0f ? 1.0f : 0.0f;
        return x < 0.0f ? 0.0f : x;
    }
    if (f.kind == XPH_ACTIVATE_CLAMP) {
        *slope = x > f.low && x < f.high ? 1.0f : 0.0f;
        return x < f.low ? f.low : x > f.high ? f.high : x;
    }
    if (f.kind == XPH_ACTIVATE_SILU) {
        const float s = sigmoid(x);
        *slope = silu_slope(x, s);
        return x * s;
    }
    const float c = fminf(fmaxf(x, -FAR), FAR), square = c * c;
    const float s = sigmoid(c * fmaf(square, CUBIC, 1.0f) * TWICE_ROOT);
    *slope = fmaf(c * (fmaf(square, 3.0f * CUBIC, 1.0f) * TWICE_ROOT), s * (1.0f - s), s);
    return x * s;
}

template <class Stored>
__global__ void __launch_bounds__(THREADS)
    activate(const Stored *x, Stored *y, int64_t count, const function f)
{
    XPH_ENTER();
    each_element(count, [&](int64_t i) {
        float slope;
        store(y + i, activated(f, load_changing(x + i), &slope));
    });
}

template <class Stored>
__global__ void __launch_bounds__(THREADS)
    activate_grad(const Stored *x, const Stored *dy, Stored *dx, int64_t count, const function f)
{
    XPH_ENTER();
    each_element(count, [&](int64_t i) {
        float slope;
        (void)activated(f, load_changing(x + i), &slope);
        store(dx + i, load_changing(dy + i) * slope);
    });
}

function function_of(const xph_activate_args *a)
{
    return {a->kind, static_cast<float>(a->low), static_cast<float>(a->high)};
}

bool accepts(const void *args)
{
    return is_stored(*static_cast<const xph_type *>(args));
}

int launch(const void *args, cudaStream_t stream)
{
    const xph_activate_args *a = static_cast<const xph_activate_args *>(args);
    if (!a->count) return cudaSuccess;
    with_stored(a->type, [&](auto zero) {
        using Stored = decltype(zero);
        XPH_LAUNCH((activate<Stored>), blocks_over(a->count), dim3(THREADS), 0, stream,
                   static_cast<const Stored *>(a->x), static_cast<Stored *>(a->y), a->count, function_of(a));
    });
    return cudaGetLastError();
}

int grad_launch(const void *args, cudaStream_t stream)
{
    const xph_activate_grad_args *g = static_cast<const xph_activate_grad_args *>(args);
    const xph_activate_args *a = &g->fwd;
    if (!a->count) return cudaSuccess;
    with_stored(a->type, [&](auto zero) {
        using Stored = decltype(zero);
        XPH_LAUNCH((activate_grad<Stored>), blocks_over(a->count), dim3(THREADS), 0, stream,
                   static_cast<const Stored *>(a->x), static_cast<const Stored *>(g->dy),
                   static_cast<Stored *>(g->dx), a->count, function_of(a));
    });
    return cudaGetLastError();
}

}  // namespace

const xph_cuda_candidate xph_cuda_activate[] = {
    {"activate", accepts, nullptr, launch},
    {nullptr, nullptr, nullptr, nullptr},
};
const xph_cuda_candidate xph_cuda_activate_grad[] = {
    {"activate_grad", accepts, nullptr, grad_launch},
    {nullptr, nullptr, nullptr, nullptr},
};
