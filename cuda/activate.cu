/* Functions of single numbers over flat arrays, and their gradients (XPH_OP_ACTIVATE). x, y and dy, dx may be the
 * same.
 */
#include "activate.cuh"
#include "flat.cuh"
#include "kernels.h"

namespace
{

using namespace flat;

template <class Stored>
__global__ void __launch_bounds__(THREADS)
    activate(const Stored *x, Stored *y, int64_t count, const activation f)
{
    XPH_ENTER();
    each_element(count, [&](int64_t i) {
        float slope;
        store(y + i, activated(f, load_changing(x + i), &slope));
    });
}

template <class Stored>
__global__ void __launch_bounds__(THREADS)
    activate_grad(const Stored *x, const Stored *dy, Stored *dx, int64_t count, const activation f)
{
    XPH_ENTER();
    each_element(count, [&](int64_t i) {
        float slope;
        (void)activated(f, load_changing(x + i), &slope);
        store(dx + i, load_changing(dy + i) * slope);
    });
}

activation activation_of(const xph_activate_args *a)
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
                   static_cast<const Stored *>(a->x), static_cast<Stored *>(a->y), a->count,
                   activation_of(a));
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
                   static_cast<Stored *>(g->dx), a->count, activation_of(a));
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
