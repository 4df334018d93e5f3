/* Rows of a table that actions take, added to what the heads see (XPH_OP_CODES), and the gradient of the table.
 *
 * Forward, a thread makes one column of a row. In the gradient a block owns 32 columns of a row of the table: strand s of
 * its threads takes the rows s, s + 32, ..., the strands are added in order. The heads, a host array in args, are passed
 * with the launch.
 */
#include "element.cuh"
#include "kernels.h"

namespace
{

constexpr int THREADS = 128, MOST_HEADS = 32, STRANDS = 32;

struct all_heads {
    xph_head head[MOST_HEADS];
};

/* Whether an action takes class or bit k of a head. */
__device__ inline bool takes(const xph_head &head, int32_t action, int k)
{
    if (head.kind == EXPHIL_BERNOULLI) return static_cast<uint32_t>(action) >> k & 1u;
    return action == k;
}

template <class Stored>
__global__ void __launch_bounds__(THREADS) codes(const xph_codes_args a, const all_heads heads)
{
    XPH_ENTER();
    const int64_t c = int64_t(blockIdx.y) * THREADS + threadIdx.x, row = blockIdx.x;
    if (c >= a.width) return;
    const float *table = static_cast<const float *>(a.table) + c;
    Stored *y = static_cast<Stored *>(a.y) + row * a.ldy + c;
    float sum = load_changing(y);
    for (int h = 0; h < a.heads; h++) {
        const xph_head &head = heads.head[h];
        const int32_t action = a.actions[row * a.lda + h];
        const bool bits = head.kind == EXPHIL_BERNOULLI;
        if (!bits && static_cast<uint32_t>(action) >= static_cast<uint32_t>(head.count)) continue;
        for (int k = bits ? 0 : action; k < (bits ? head.count : action + 1); k++)
            if (takes(head, action, k)) sum += load(table + (head.first + k) * a.width);
    }
    store(y, sum);
}

template <class Stored>
__global__ void __launch_bounds__(WARP *STRANDS)
    codes_grad(const xph_codes_grad_args g, const all_heads heads)
{
    XPH_ENTER();
    XPH_SHARED(float, strands, [STRANDS][WARP]);
    const xph_codes_args &a = g.fwd;
    const int64_t l = blockIdx.x, c = int64_t(blockIdx.y) * WARP + threadIdx.x;
    int h = 0;
    while (h < a.heads && (l < heads.head[h].first || l >= heads.head[h].first + heads.head[h].count)) h++;
    if (h == a.heads) return; /* nobody's row: the whole block */
    const int k = static_cast<int>(l - heads.head[h].first);
    float sum = 0.0f;
    for (int64_t row = threadIdx.y; row < a.rows; row += STRANDS)
        if (c < a.width && takes(heads.head[h], a.actions[row * a.lda + h], k))
            sum += load(static_cast<const Stored *>(g.dy) + row * g.lddy + c);
    strands[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y || c >= a.width) return;
    sum = 0.0f;
    for (int s = 0; s < STRANDS; s++) sum += strands[s][threadIdx.x];
    static_cast<float *>(g.dtable)[l * a.width + c] += sum;
}

all_heads heads_of(const xph_codes_args *a)
{
    all_heads to = {};
    for (int64_t h = 0; h < a->heads; h++) to.head[h] = a->head[h];
    return to;
}

bool fits(const xph_codes_args *a)
{
    return is_stored(a->type) && a->heads <= MOST_HEADS && a->rows < int64_t(1) << 31 &&
           fits_across(blocks_of(a->width, WARP));
}

bool accepts(const void *args)
{
    return fits(static_cast<const xph_codes_args *>(args));
}

bool grad_accepts(const void *args)
{
    return fits(&static_cast<const xph_codes_grad_args *>(args)->fwd);
}

int launch(const void *args, cudaStream_t stream)
{
    const xph_codes_args *a = static_cast<const xph_codes_args *>(args);
    const dim3 grid(as_grid(a->rows), as_grid(blocks_of(a->width, THREADS)));
    if (!a->rows || !a->width) return cudaSuccess;
    with_stored(a->type, [&](auto zero) {
        XPH_LAUNCH((codes<decltype(zero)>), grid, dim3(THREADS), 0, stream, *a, heads_of(a));
    });
    return cudaGetLastError();
}

int grad_launch(const void *args, cudaStream_t stream)
{
    const xph_codes_grad_args *g = static_cast<const xph_codes_grad_args *>(args);
    const xph_codes_args *a = &g->fwd;
    int64_t entries = 0;
    for (int64_t h = 0; h < a->heads; h++)
        entries =
            entries > a->head[h].first + a->head[h].count ? entries : a->head[h].first + a->head[h].count;
    const dim3 grid(as_grid(entries), as_grid(blocks_of(a->width, WARP)));
    if (!a->rows || !a->width || !entries) return cudaSuccess;
    with_stored(a->type, [&](auto zero) {
        XPH_LAUNCH((codes_grad<decltype(zero)>), grid, dim3(WARP, STRANDS), 0, stream, *g, heads_of(a));
    });
    return cudaGetLastError();
}

}  // namespace

const xph_cuda_candidate xph_cuda_codes[] = {
    {"codes", accepts, nullptr, launch},
    {nullptr, nullptr, nullptr, nullptr},
};
const xph_cuda_candidate xph_cuda_codes_grad[] = {
    {"codes_grad", grad_accepts, nullptr, grad_launch},
    {nullptr, nullptr, nullptr, nullptr},
};
