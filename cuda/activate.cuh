/* The functions of XPH_OP_ACTIVATE, of one number. */
#ifndef XPH_CUDA_ACTIVATE_CUH
#define XPH_CUDA_ACTIVATE_CUH

#include "element.cuh"

/* What of the arguments a thread reads. */
struct activation {
    int kind;
    float low, high;
};

/* The value at x, and in *slope the derivative there. gelu(x) = x sigmoid(2 t), t = sqrt(2/pi) (x + 0.044715 x^3): no digits are
 * lost where tanh is near -1. */
__device__ inline float activated(const activation &f, float x, float *slope)
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
    constexpr float TWICE_ROOT = 1.59576912160573071176f, CUBIC = 0.044715f, FAR = 30.0f;
    const float c = fminf(fmaxf(x, -FAR), FAR), square = c * c;
    const float s = sigmoid(c * fmaf(square, CUBIC, 1.0f) * TWICE_ROOT);
    *slope = fmaf(c * (fmaf(square, 3.0f * CUBIC, 1.0f) * TWICE_ROOT), s * (1.0f - s), s);
    return x * s;
}

#endif
