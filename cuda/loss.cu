/* Loss of the action heads and its gradient in one pass (loss.cuh), a warp per row and head; then the sums of each head. */
#include "kernels.h"
#include "loss.cuh"

namespace
{

constexpr int THREADS = 128, WARPS = THREADS / WARP;

template <class Stored>
__global__ void __launch_bounds__(THREADS) loss_rows(const xph_loss_args a, const heads_of_loss heads)
{
    XPH_ENTER();
    const int64_t at = int64_t(blockIdx.x) * WARPS + threadIdx.x / WARP, row = at / a.heads;
    if (row >= a.rows) return;
    const int64_t h = at % a.heads;
    const head_of_loss &head = heads.head[h];
    const double mask = a.mask ? static_cast<double>(load(a.mask + row)) : 1.0;
    loss_job<Stored, WARP> j;
    j.x = static_cast<const Stored *>(a.y) + row * a.ldy + head.first;
    j.dx = a.dy ? static_cast<Stored *>(a.dy) + row * a.lddy + head.first : nullptr;
    j.action = a.actions[row * a.lda + h];
    const double scale = a.given ? a.given->scale * a.control->loss_scale : a.scale;
    j.factor = static_cast<float>(scale * mask * head.weight);
    j.counts = mask != 0.0;
    j.lane = static_cast<int>(threadIdx.x) % WARP;
    const double loss = loss_of_head(j, head, heads.positive, mask);
    if (j.lane == 0) a.rows_loss[at] = loss;
}

/* A block per head: thread t takes rows t, t + 128, ..., then the threads by halves. */
__global__ void __launch_bounds__(THREADS) loss_sums(const xph_loss_args a)
{
    XPH_ENTER();
    XPH_SHARED(double, buffer, [THREADS]);
    const int thread = static_cast<int>(threadIdx.x);
    double sum = 0.0;
    for (int64_t row = thread; row < a.rows; row += THREADS) sum += a.rows_loss[row * a.heads + blockIdx.x];
    buffer[thread] = sum;
    for (int half = THREADS / 2; half; half /= 2) {
        __syncthreads();
        if (thread < half) buffer[thread] += buffer[thread + half];
    }
    if (thread) return;
    a.sums[blockIdx.x] = buffer[0];
    if (a.given) a.control->head[blockIdx.x] += buffer[0] * a.given->scale;
}

bool accepts(const void *args)
{
    const xph_loss_args *a = static_cast<const xph_loss_args *>(args);
    heads_of_loss heads;
    return is_stored(a->type) && a->rows < int64_t(1) << 31 && heads_of(a, &heads);
}

int launch(const void *args, cudaStream_t stream)
{
    const xph_loss_args *a = static_cast<const xph_loss_args *>(args);
    heads_of_loss heads = {};
    heads_of(a, &heads);
    if (!a->heads) return cudaSuccess;
    const dim3 grid(as_grid(blocks_of(a->rows * a->heads, WARPS)));
    with_stored(a->type, [&](auto zero) {
        if (a->rows) XPH_LAUNCH((loss_rows<decltype(zero)>), grid, dim3(THREADS), 0, stream, *a, heads);
    });
    XPH_LAUNCH(loss_sums, dim3(as_grid(a->heads)), dim3(THREADS), 0, stream, *a);
    return cudaGetLastError();
}

}  // namespace

const xph_cuda_candidate xph_cuda_loss[] = {
    {"loss", accepts, nullptr, launch},
    {nullptr, nullptr, nullptr, nullptr},
};
