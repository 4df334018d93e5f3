/* The sum over ranks of one slice: rows of numbers that other ranks sent, and the one that lies in the data. Ranks are added
 * in the order that table A has for its flags, number by number: the same bits, wherever a number lies. */
#include "flat.cuh"
#include "kernels.h"

namespace
{

/* 2^LEVELS ranks or more do not exist. */
constexpr int LEVELS = 9;
static_assert(XPH_COMM_RANKS < 1 << LEVELS, "a sum for every bit of a rank");

template <class Real> __device__ inline Real number_of(const xph_ranks_args &a, int32_t rank, int64_t i)
{
    const Real *own = static_cast<const Real *>(a.own), *others = static_cast<const Real *>(a.others);
    return rank == a.rank ? own[i] : others[rank * a.stride + i];
}

/* A rank after the other for all numbers of a thread, so that it waits for memory once a rank. */
template <class Real> __global__ void __launch_bounds__(flat::THREADS) ranks_in_order(const xph_ranks_args a)
{
    XPH_ENTER();
    const int64_t first = blockIdx.x * flat::ITEM + threadIdx.x;
    Real sum[flat::EACH] = {};
    for (int32_t rank = 0; rank < a.ranks; rank++) {
        XPH_UNROLL
        for (int k = 0; k < flat::EACH; k++) {
            const int64_t i = first + k * flat::THREADS;
            if (i >= a.count) continue;
            const Real x = number_of<Real>(a, rank, i);
            sum[k] = rank ? sum[k] + x : x;
        }
    }
    XPH_UNROLL
    for (int k = 0; k < flat::EACH; k++)
        if (first + k * flat::THREADS < a.count)
            static_cast<Real *>(a.own)[first + k * flat::THREADS] = sum[k];
}

/* waiting[k] is a sum of 2^k ranks whose neighbour on the right is not there yet: those of the bits of `rank`. */
template <class Real> __global__ void __launch_bounds__(flat::THREADS) ranks_as_tree(const xph_ranks_args a)
{
    XPH_ENTER();
    flat::each_element(a.count, [&](int64_t i) {
        Real waiting[LEVELS] = {};
        for (int32_t rank = 0; rank < a.ranks; rank++) {
            Real sum = number_of<Real>(a, rank, i);
            bool goes_up = true;
            XPH_UNROLL
            for (int k = 0; k < LEVELS; k++) {
                const bool meets = rank >> k & 1;
                if (goes_up && meets) sum = waiting[k] + sum;
                if (goes_up && !meets) waiting[k] = sum;
                goes_up = goes_up && meets;
            }
        }
        Real sum = 0;
        bool begun = false;
        XPH_UNROLL
        for (int k = 0; k < LEVELS; k++) {
            if (!(a.ranks >> k & 1)) continue;
            sum = begun ? waiting[k] + sum : waiting[k];
            begun = true;
        }
        static_cast<Real *>(a.own)[i] = sum;
    });
}

template <class Real> void launch(const xph_ranks_args *a, cudaStream_t stream)
{
    const dim3 grid = flat::blocks_over(a->count);
    if (a->tree)
        XPH_LAUNCH((ranks_as_tree<Real>), grid, dim3(flat::THREADS), 0, stream, *a);
    else
        XPH_LAUNCH((ranks_in_order<Real>), grid, dim3(flat::THREADS), 0, stream, *a);
}

}  // namespace

int xph_ranks(const xph_ranks_args *args, cudaStream_t stream)
{
    if (!args->count) return cudaSuccess;
    if (args->type == XPH_F64)
        launch<double>(args, stream);
    else
        launch<float>(args, stream);
    return cudaGetLastError();
}
