/* Over whole arenas: AdamW with a running average, the Euclidean norm and the first element that is not
 * finite, what follows from them (lib/device/settle.h), y = a x + b y, and casts between float and the types
 * of rows. Elements are independent, except in the norm, whose squares are summed in double: in a thread,
 * over the threads of a block, over blocks, each in an order that depends on the count alone.
 */
#define XPH_ON_DEVICE __host__ __device__
#include "flat.cuh"
#include "fold.cuh"
#include "kernels.h"

#include "device/settle.h" /* needs what fold.cuh includes */

namespace
{

using namespace flat;

/* ---- adam: v and m in place, then p, then its average ---- */

/* take: 1 - beta. */
struct rates {
    float keep1, keep2, take1, take2, scale, unbias1, unbias2, epsilon, rate, decay, keep_ema, take_ema;
};

/* The numbers of an update that the host has not fixed. */
struct live {
    xph_rates rates;
    double grad_scale;
};

__device__ inline rates rates_of(const xph_adam_args &a, const live &now)
{
    const auto narrow = [](double x) { return static_cast<float>(x); };
    return {narrow(a.beta1),
            narrow(a.beta2),
            narrow(1.0 - a.beta1),
            narrow(1.0 - a.beta2),
            narrow(now.grad_scale),
            narrow(1.0 / now.rates.correction1),
            narrow(1.0 / now.rates.correction2),
            narrow(a.epsilon),
            narrow(now.rates.rate),
            narrow(a.decay),
            narrow(now.rates.ema_decay),
            narrow(1.0 - now.rates.ema_decay)};
}

struct arenas {
    const float *grad;
    float *p, *m, *v, *ema;
    int64_t count, decay_count;
};

/* The first thread makes the rates: divisions of doubles are dear. */
__global__ void __launch_bounds__(THREADS) adam(const arenas a, const xph_adam_args given)
{
    XPH_ENTER();
    XPH_SHARED(rates, buffer, [1]);
    const xph_control *control = given.given ? given.control : nullptr;
    if (control && control->verdict != XPH_UPDATE_DONE) return; /* all of the block */
    if (threadIdx.x == 0) {
        live now = {{given.rate, given.correction1, given.correction2, given.ema_decay}, given.grad_scale};
        if (control) now = {xph_live_rates(given.given, control), control->grad_scale};
        buffer[0] = rates_of(given, now);
    }
    __syncthreads();
    const rates k = buffer[0];
    each_element(a.count, [&](int64_t i) {
        const float g = load(a.grad + i) * k.scale, p = a.p[i], decay = i < a.decay_count ? k.decay : 0.0f;
        const float m = fmaf(k.take1, g, k.keep1 * a.m[i]), v = fmaf(k.take2 * g, g, k.keep2 * a.v[i]);
        const float step = m * k.unbias1 / (sqrtf(v * k.unbias2) + k.epsilon);
        const float next = fmaf(-k.rate, fmaf(decay, p, step), p);
        a.m[i] = m;
        a.v[i] = v;
        a.p[i] = next;
        if (a.ema) a.ema[i] = fmaf(k.take_ema, next, k.keep_ema * a.ema[i]);
    });
}

int adam_launch(const void *args, cudaStream_t stream)
{
    const xph_adam_args *a = static_cast<const xph_adam_args *>(args);
    const arenas all = {static_cast<const float *>(a->grad),
                        static_cast<float *>(a->p),
                        static_cast<float *>(a->m),
                        static_cast<float *>(a->v),
                        static_cast<float *>(a->ema),
                        a->count,
                        a->decay_count};
    if (!a->count) return cudaSuccess;
    XPH_LAUNCH(adam, blocks_over(a->count), dim3(THREADS), 0, stream, all, *a);
    return cudaGetLastError();
}

/* ---- norm2 ---- */

constexpr int64_t NONE = INT64_MAX, NORM_ITEM = 4096;

struct partial {
    double sum;
    int64_t bad; /* the first that is not finite, or NONE */
};

__device__ inline partial both(partial a, partial b)
{
    return {a.sum + b.sum, a.bad < b.bad ? a.bad : b.bad};
}

/* In thread 0. */
__device__ inline partial sum_of_block(partial mine, partial *buffer)
{
    const int thread = static_cast<int>(threadIdx.x);
    buffer[thread] = mine;
    for (int half = THREADS / 2; half; half /= 2) {
        __syncthreads();
        if (thread < half) buffer[thread] = both(buffer[thread], buffer[thread + half]);
    }
    return buffer[thread];
}

/* What the block finds in its elements, in thread 0. */
__device__ inline partial part_of_block(const float *x, int64_t count, partial *buffer)
{
    const int64_t begin = blockIdx.x * NORM_ITEM, end = begin + NORM_ITEM < count ? begin + NORM_ITEM : count;
    partial mine = {0.0, NONE};
    for (int64_t i = begin + threadIdx.x; i < end; i += THREADS) {
        const float number = load(x + i);
        const bool bad = number - number != 0.0f;
        mine = both(mine, {static_cast<double>(number) * number, bad ? i : NONE});
    }
    return sum_of_block(mine, buffer);
}

/* All parts in one order, whichever block adds them. In thread 0. */
__device__ inline partial join_parts(const volatile partial *parts, int64_t count, partial *buffer)
{
    partial mine = {0.0, NONE};
    for (int64_t i = threadIdx.x; i < count; i += THREADS) mine = both(mine, {parts[i].sum, parts[i].bad});
    return sum_of_block(mine, buffer);
}

__global__ void __launch_bounds__(THREADS) norm_parts(const float *x, int64_t count, partial *parts)
{
    XPH_ENTER();
    XPH_SHARED(partial, buffer, [THREADS]);
    const partial all = part_of_block(x, count, buffer);
    if (threadIdx.x == 0) parts[blockIdx.x] = all;
}

__global__ void __launch_bounds__(THREADS)
    norm_join(const partial *parts, int64_t count, double *norm, int64_t *first_bad)
{
    XPH_ENTER();
    XPH_SHARED(partial, buffer, [THREADS]);
    const partial all = join_parts(parts, count, buffer);
    if (threadIdx.x) return;
    *norm = sqrt(all.sum);
    *first_bad = all.bad == NONE ? -1 : all.bad;
}

/* The block that comes last joins the parts and settles the update: one launch for all of it. */
__global__ void __launch_bounds__(THREADS)
    norm_settle(const float *x, int64_t count, partial *parts, const xph_settle_args settle)
{
    XPH_ENTER();
    XPH_SHARED(partial, buffer, [THREADS]);
    XPH_SHARED(int, last, [1]);
    const partial own = part_of_block(x, count, buffer);
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = own;
        __threadfence();
        last[0] = atomicAdd(&settle.control->arrived, 1u) + 1u == gridDim.x;
    }
    __syncthreads();
    if (!last[0]) return;
    __threadfence();
    const partial all = join_parts(parts, gridDim.x, buffer);
    if (threadIdx.x) return;
    settle.control->norm = sqrt(all.sum);
    settle.control->first_bad = all.bad == NONE ? -1 : all.bad;
    settle.control->arrived = 0;
    xph_settle(&settle);
}

size_t norm_scratch(const void *args)
{
    const xph_norm2_args *a = static_cast<const xph_norm2_args *>(args);
    return static_cast<size_t>(blocks_of(a->count, NORM_ITEM)) * sizeof(partial);
}

int norm_launch(const void *args, cudaStream_t stream)
{
    const xph_norm2_args *a = static_cast<const xph_norm2_args *>(args);
    const int64_t blocks = blocks_of(a->count, NORM_ITEM);
    partial *parts = static_cast<partial *>(a->scratch);
    if (a->settle && blocks) {
        XPH_LAUNCH(norm_settle, dim3(as_grid(blocks)), dim3(THREADS), 0, stream,
                   static_cast<const float *>(a->x), a->count, parts, *a->settle);
        return cudaGetLastError();
    }
    if (blocks)
        XPH_LAUNCH(norm_parts, dim3(as_grid(blocks)), dim3(THREADS), 0, stream,
                   static_cast<const float *>(a->x), a->count, parts);
    XPH_LAUNCH(norm_join, dim3(1), dim3(THREADS), 0, stream, parts, blocks, a->norm, a->first_bad);
    return cudaGetLastError();
}

/* ---- clear ---- */

__global__ void __launch_bounds__(THREADS) clear(const xph_control *control, float *x, int64_t count)
{
    XPH_ENTER();
    if (control->verdict == XPH_UPDATE_DONE) return;
    each_element(count, [&](int64_t i) { x[i] = 0.0f; });
}

int clear_launch(const void *args, cudaStream_t stream)
{
    const xph_clear_args *a = static_cast<const xph_clear_args *>(args);
    if (!a->count) return cudaSuccess;
    XPH_LAUNCH(clear, blocks_over(a->count), dim3(THREADS), 0, stream, a->control, static_cast<float *>(a->x),
               a->count);
    return cudaGetLastError();
}

/* ---- axpby; x, y and from may be the same ---- */

template <class Stored>
__global__ void __launch_bounds__(THREADS)
    axpby(const Stored *x, const Stored *from, Stored *y, int64_t count, float a, float b)
{
    XPH_ENTER();
    each_element(
        count, [&](int64_t i) { store(y + i, fmaf(load_changing(x + i), a, load_changing(from + i) * b)); });
}

template <class Stored> int axpby_of(const xph_axpby_args *a, cudaStream_t stream)
{
    Stored *y = static_cast<Stored *>(a->y);
    const Stored *from = a->from ? static_cast<const Stored *>(a->from) : y;
    if (!a->count) return cudaSuccess;
    XPH_LAUNCH((axpby<Stored>), blocks_over(a->count), dim3(THREADS), 0, stream,
               static_cast<const Stored *>(a->x), from, y, a->count, static_cast<float>(a->a),
               static_cast<float>(a->b));
    return cudaGetLastError();
}

int axpby_launch(const void *args, cudaStream_t stream)
{
    const xph_axpby_args *a = static_cast<const xph_axpby_args *>(args);
    return with_stored(a->type, [&](auto zero) { return axpby_of<decltype(zero)>(a, stream); });
}

bool axpby_accepts(const void *args)
{
    return is_stored(static_cast<const xph_axpby_args *>(args)->type);
}

/* Of doubles: losses of heads. */
__global__ void __launch_bounds__(THREADS)
    axpby_wide(const double *x, const double *from, double *y, int64_t count, double a, double b)
{
    XPH_ENTER();
    each_element(count, [&](int64_t i) { y[i] = fma(x[i], a, from[i] * b); });
}

int axpby_wide_launch(const void *args, cudaStream_t stream)
{
    const xph_axpby_args *a = static_cast<const xph_axpby_args *>(args);
    double *y = static_cast<double *>(a->y);
    const double *from = a->from ? static_cast<const double *>(a->from) : y;
    if (!a->count) return cudaSuccess;
    XPH_LAUNCH(axpby_wide, blocks_over(a->count), dim3(THREADS), 0, stream, static_cast<const double *>(a->x),
               from, y, a->count, a->a, a->b);
    return cudaGetLastError();
}

bool is_wide(const void *args)
{
    return static_cast<const xph_axpby_args *>(args)->type == XPH_F64;
}

/* ---- cast ---- */

template <class From, class To>
__global__ void __launch_bounds__(THREADS) cast(const From *x, To *y, int64_t count)
{
    XPH_ENTER();
    each_element(count, [&](int64_t i) { store(y + i, load(x + i)); });
}

template <class Stored> int cast_of(const xph_cast_args *a, cudaStream_t stream)
{
    if (a->narrow)
        XPH_LAUNCH((cast<float, Stored>), blocks_over(a->count), dim3(THREADS), 0, stream,
                   static_cast<const float *>(a->x), static_cast<Stored *>(a->y), a->count);
    else
        XPH_LAUNCH((cast<Stored, float>), blocks_over(a->count), dim3(THREADS), 0, stream,
                   static_cast<const Stored *>(a->x), static_cast<float *>(a->y), a->count);
    return cudaGetLastError();
}

int cast_launch(const void *args, cudaStream_t stream)
{
    const xph_cast_args *a = static_cast<const xph_cast_args *>(args);
    if (!a->count) return cudaSuccess;
    return with_stored(a->as, [&](auto zero) { return cast_of<decltype(zero)>(a, stream); });
}

bool cast_accepts(const void *args)
{
    const xph_cast_args *a = static_cast<const xph_cast_args *>(args);
    return a->type == XPH_F32 && a->as != XPH_F32 && is_stored(a->as);
}

/* type is the first member of all args. */
bool is_float(const void *args)
{
    return *static_cast<const xph_type *>(args) == XPH_F32;
}

}  // namespace

const xph_cuda_candidate xph_cuda_adam[] = {
    {"adam", is_float, nullptr, adam_launch},
    {nullptr, nullptr, nullptr, nullptr},
};
const xph_cuda_candidate xph_cuda_norm2[] = {
    {"norm2", is_float, norm_scratch, norm_launch},
    {nullptr, nullptr, nullptr, nullptr},
};
const xph_cuda_candidate xph_cuda_axpby[] = {
    {"axpby", axpby_accepts, nullptr, axpby_launch},
    {"axpby_wide", is_wide, nullptr, axpby_wide_launch},
    {nullptr, nullptr, nullptr, nullptr},
};
const xph_cuda_candidate xph_cuda_clear[] = {
    {"clear", is_float, nullptr, clear_launch},
    {nullptr, nullptr, nullptr, nullptr},
};
const xph_cuda_candidate xph_cuda_cast[] = {
    {"cast", cast_accepts, nullptr, cast_launch},
    {nullptr, nullptr, nullptr, nullptr},
};
