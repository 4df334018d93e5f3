/* Input rows: floats, then table rows picked by ids, then one-hot past actions; and the gradient of the
 * tables.
 *
 * A thread makes one column of ROWS rows, and so finds out once what the column is. In the gradient a block
 * owns one row of a table: strand s of its threads goes through the input rows s, s + 32, ..., once for every
 * id of the table, and the strands are added in order. Ids may share a table, as two players' characters do.
 * Host arrays in args are passed with the launch.
 */
#include "element.cuh"
#include "kernels.h"

namespace
{

constexpr int THREADS = 128, ROWS = 16, MOST_TABLES = 32, MOST_HEADS = 32, STRANDS = 32;

struct on_host {
    xph_embed_table table[MOST_TABLES];
    xph_head head[MOST_HEADS];
};

/* What a column holds: -1 of what it is not. */
struct column {
    int64_t input; /* column of the floats */
    int table;     /* id */
    int64_t entry; /* column of its table */
    int64_t slot;  /* past action */
    int head;      /* of the slot, and its class or bit */
    int32_t choice;
};

__device__ inline column column_of(const xph_embed_args &a, const on_host &host, int64_t c)
{
    column to = {-1, -1, 0, -1, -1, 0};
    if (c < a.floats) {
        to.input = c;
        return to;
    }
    c -= a.floats;
    for (int i = 0; i < a.ids; i++) {
        if (c < host.table[i].width) {
            to.table = i;
            to.entry = c;
            return to;
        }
        c -= host.table[i].width;
    }
    to.slot = c / a.logits;
    c %= a.logits;
    for (int h = 0; h < a.heads; h++) {
        const xph_head &head = host.head[h];
        if (c < head.first || c >= head.first + head.count) continue;
        to.head = h;
        to.choice = static_cast<int32_t>(c - head.first);
    }
    return to;
}

__device__ inline float one_hot(const xph_embed_args &a, const on_host &host, column k, int64_t row)
{
    if (k.head < 0 || !a.actions) return 0.0f;
    const int32_t action = a.actions[row * a.lda + k.slot * a.heads + k.head];
    if (host.head[k.head].kind == EXPHIL_BERNOULLI)
        return static_cast<float>(static_cast<uint32_t>(action) >> k.choice & 1u);
    return action == k.choice ? 1.0f : 0.0f;
}

__device__ inline float number_at(const xph_embed_args &a, const on_host &host, column k, int64_t row)
{
    if (k.input >= 0) return load(a.x + row * a.ldx + k.input);
    if (k.table < 0) return one_hot(a, host, k, row);
    const xph_embed_table &t = host.table[k.table];
    return load(static_cast<const float *>(t.table) + a.id[row * a.ldid + k.table] * t.width + k.entry);
}

template <class Stored>
__global__ void __launch_bounds__(THREADS) embed(const xph_embed_args a, const on_host host, int64_t width)
{
    XPH_ENTER();
    const int64_t c = int64_t(blockIdx.y) * THREADS + threadIdx.x;
    if (c >= width) return;
    const column k = column_of(a, host, c);
    const int64_t first = int64_t(blockIdx.x) * ROWS;
    for (int64_t row = first; row < first + ROWS && row < a.rows; row++)
        store(static_cast<Stored *>(a.y) + row * a.ldy + c, number_at(a, host, k, row));
}

/* Row blockIdx.x, columns from 32 blockIdx.y on, of the table of id `first`. */
template <class Stored>
__global__ void __launch_bounds__(WARP *STRANDS)
    embed_grad(const xph_embed_grad_args g, const on_host host, int first)
{
    XPH_ENTER();
    XPH_SHARED(float, strands, [STRANDS][WARP]);
    const xph_embed_args &a = g.fwd;
    const xph_embed_table &t = host.table[first];
    const int64_t entry = blockIdx.x, c = int64_t(blockIdx.y) * WARP + threadIdx.x;
    float sum = 0.0f;
    int64_t at = a.floats;
    for (int i = 0; i < a.ids; at += host.table[i].width, i++) {
        if (host.table[i].dtable != t.dtable) continue;
        for (int64_t row = threadIdx.y; row < a.rows; row += STRANDS)
            if (a.id[row * a.ldid + i] == entry && c < t.width)
                sum += load(static_cast<const Stored *>(g.dy) + row * g.lddy + at + c);
    }
    strands[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y || c >= t.width) return;
    sum = 0.0f;
    for (int s = 0; s < STRANDS; s++) sum += strands[s][threadIdx.x];
    static_cast<float *>(t.dtable)[entry * t.width + c] += sum;
}

bool fits(const xph_embed_args *a)
{
    return is_stored(a->type) && a->ids <= MOST_TABLES && a->heads <= MOST_HEADS;
}

on_host host_of(const xph_embed_args *a)
{
    on_host to = {};
    for (int64_t i = 0; i < a->ids; i++) to.table[i] = a->tables[i];
    for (int64_t h = 0; a->slots && h < a->heads; h++) to.head[h] = a->head[h];
    return to;
}

bool accepts(const void *args)
{
    return fits(static_cast<const xph_embed_args *>(args));
}

int launch(const void *args, cudaStream_t stream)
{
    const xph_embed_args *a = static_cast<const xph_embed_args *>(args);
    int64_t width = a->floats + a->slots * a->logits;
    for (int64_t i = 0; i < a->ids; i++) width += a->tables[i].width;
    const dim3 grid(as_grid(blocks_of(a->rows, ROWS)), as_grid(blocks_of(width, THREADS)));
    if (!a->rows || !width) return cudaSuccess;
    with_stored(a->type, [&](auto zero) {
        XPH_LAUNCH((embed<decltype(zero)>), grid, dim3(THREADS), 0, stream, *a, host_of(a), width);
    });
    return cudaGetLastError();
}

bool grad_accepts(const void *args)
{
    return fits(&static_cast<const xph_embed_grad_args *>(args)->fwd);
}

bool seen_before(const xph_embed_args *a, int64_t id)
{
    for (int64_t i = 0; i < id; i++)
        if (a->tables[i].dtable == a->tables[id].dtable) return true;
    return false;
}

int grad_launch(const void *args, cudaStream_t stream)
{
    const xph_embed_grad_args *g = static_cast<const xph_embed_grad_args *>(args);
    const xph_embed_args *a = &g->fwd;
    for (int id = 0; a->rows && id < a->ids; id++) {
        const xph_embed_table *t = &a->tables[id];
        if (!t->dtable || !t->entries || !t->width || seen_before(a, id)) continue;
        const dim3 grid(as_grid(t->entries), as_grid(blocks_of(t->width, WARP))), block(WARP, STRANDS);
        with_stored(a->type, [&](auto zero) {
            XPH_LAUNCH((embed_grad<decltype(zero)>), grid, block, 0, stream, *g, host_of(a), id);
        });
    }
    return cudaGetLastError();
}

}  // namespace

const xph_cuda_candidate xph_cuda_embed[] = {
    {"embed", accepts, nullptr, launch},
    {nullptr, nullptr, nullptr, nullptr},
};
const xph_cuda_candidate xph_cuda_embed_grad[] = {
    {"embed_grad", grad_accepts, nullptr, grad_launch},
    {nullptr, nullptr, nullptr, nullptr},
};
