/* Input rows: floats, then table rows picked by ids, then one-hot past actions; and the gradient of the
 * tables.
 *
 * A thread makes one column of ROWS rows, and so finds out once what the column is.
 *
 * In the gradient a block has columns of one whole table in shared memory, and goes through CHUNK input rows: a thread owns a
 * column, and adds to the entry that each row names, so nothing meets and the order is that of the rows. Small tables are there
 * several times, strand s of the threads taking rows s, s + strands, ...; strands are added in order, and the chunks by
 * embed_fold. No row is read for an entry that it does not name, and ids need not be sorted. Tables that no block can hold are
 * added up entry by entry (embed_grad_large). Ids may share a table, as two players' characters do. Host arrays in args are
 * passed with the launch.
 */
#include "embed.cuh"
#include "kernels.h"

namespace
{

constexpr int THREADS = 128, ROWS = 16, MOST_TABLES = 32, MOST_HEADS = 32, STRANDS = 32;
/* Of the gradient: input rows of a block, those it reads ahead, and the shared memory that it has everywhere. */
constexpr int GRAD_THREADS = 128, GRAD_AHEAD = 8, MOST_PARTS = 64;
constexpr int64_t CHUNK = 512, SHARED_BYTES = 48 * 1024;

struct on_host {
    xph_embed_table table[MOST_TABLES];
    xph_head head[MOST_HEADS];
};

template <class Stored>
__global__ void __launch_bounds__(THREADS) embed(const xph_embed_args a, const on_host host, int64_t width)
{
    XPH_ENTER();
    const int64_t c = int64_t(blockIdx.y) * THREADS + threadIdx.x;
    if (c >= width) return;
    const embed_column k = embed_column_of(a, host, c);
    const int64_t first = int64_t(blockIdx.x) * ROWS;
    for (int64_t row = first; row < first + ROWS && row < a.rows; row++)
        store(static_cast<Stored *>(a.y) + row * a.ldy + c, embed_number(a, host, k, row));
}

/* ---- gradient ---- */

/* Columns of a table that a block holds `strands` times. */
struct table_part {
    int32_t table, first, columns, strands;
    int64_t at; /* in a chunk's sums */
};
struct all_parts {
    table_part part[MOST_PARTS];
    int32_t id_at[MOST_TABLES]; /* first column of each id in a row of y */
    int32_t count;
    int64_t floats; /* of the sums of a chunk */
};

template <class Stored>
__global__ void __launch_bounds__(GRAD_THREADS)
    embed_grad(const xph_embed_grad_args g, const on_host host, const all_parts all)
{
    XPH_ENTER();
    XPH_SHARED_DYNAMIC(float, sums);
    const xph_embed_args &a = g.fwd;
    const table_part &p = all.part[blockIdx.y];
    const xph_embed_table &t = host.table[p.table];
    const int thread = static_cast<int>(threadIdx.x), strand = thread / p.columns,
              column = thread % p.columns;
    const int entries = static_cast<int>(t.entries), copy = entries * p.columns;
    for (int i = thread; i < copy * p.strands; i += GRAD_THREADS) sums[i] = 0.0f;
    __syncthreads();
    const int64_t begin = int64_t(blockIdx.x) * CHUNK, end = begin + CHUNK < a.rows ? begin + CHUNK : a.rows;
    float *own = sums + strand * copy + column;
    for (int i = p.table; i < a.ids && strand < p.strands; i++) {
        if (host.table[i].dtable != t.dtable) continue;
        const Stored *dy = static_cast<const Stored *>(g.dy) + all.id_at[i] + p.first + column;
        for (int64_t first = begin + strand; first < end; first += GRAD_AHEAD * p.strands) {
            int32_t id[GRAD_AHEAD];
            float d[GRAD_AHEAD];
            XPH_UNROLL
            for (int k = 0; k < GRAD_AHEAD; k++) {
                const int64_t row = first + k * p.strands;
                id[k] = row < end ? a.id[row * a.ldid + i] : 0;
                d[k] = row < end ? load(dy + row * g.lddy) : 0.0f;
            }
            XPH_UNROLL
            for (int k = 0; k < GRAD_AHEAD; k++) own[id[k] * p.columns] += d[k];
        }
    }
    __syncthreads();
    float *to = static_cast<float *>(g.scratch) + blockIdx.x * all.floats + p.at;
    for (int i = thread; i < copy; i += GRAD_THREADS) {
        float sum = sums[i];
        for (int s = 1; s < p.strands; s++) sum += sums[s * copy + i];
        to[i] = sum;
    }
}

/* Chunk after chunk, eight loads ahead; of one part. */
template <class Unused = void>
__global__ void __launch_bounds__(THREADS)
    embed_fold(const float *sums, const on_host host, const all_parts all, int chunks)
{
    XPH_ENTER();
    const table_part &p = all.part[blockIdx.y];
    const xph_embed_table &t = host.table[p.table];
    const int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (i >= t.entries * p.columns) return;
    float sum = 0.0f;
    for (int first = 0; first < chunks; first += 8) {
        float x[8];
        XPH_UNROLL
        for (int k = 0; k < 8; k++)
            x[k] = first + k < chunks ? sums[(first + k) * all.floats + p.at + i] : 0.0f;
        XPH_UNROLL
        for (int k = 0; k < 8; k++) sum += x[k];
    }
    static_cast<float *>(t.dtable)[i / p.columns * t.width + p.first + i % p.columns] += sum;
}

/* Row blockIdx.x, columns from 32 blockIdx.y on, of the table of id `first`. */
template <class Stored>
__global__ void __launch_bounds__(WARP *STRANDS)
    embed_grad_large(const xph_embed_grad_args g, const on_host host, int first)
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

/* Of a row of y. */
int64_t width_of(const xph_embed_args *a)
{
    int64_t width = a->floats + a->slots * a->logits;
    for (int64_t i = 0; i < a->ids; i++) width += a->tables[i].width;
    return width;
}

bool accepts(const void *args)
{
    const xph_embed_args *a = static_cast<const xph_embed_args *>(args);
    return fits(a) && fits_across(blocks_of(width_of(a), THREADS));
}

int launch(const void *args, cudaStream_t stream)
{
    const xph_embed_args *a = static_cast<const xph_embed_args *>(args);
    const int64_t width = width_of(a);
    const dim3 grid(as_grid(blocks_of(a->rows, ROWS)), as_grid(blocks_of(width, THREADS)));
    if (!a->rows || !width) return cudaSuccess;
    with_stored(a->type, [&](auto zero) {
        XPH_LAUNCH((embed<decltype(zero)>), grid, dim3(THREADS), 0, stream, *a, host_of(a), width);
    });
    return cudaGetLastError();
}

/* Whether every table fits into blocks, shared or not. */
bool whole_parts(const xph_embed_args *a)
{
    int64_t parts = 0;
    for (int64_t i = 0; i < a->ids; i++) {
        const xph_embed_table *t = &a->tables[i];
        if (!t->entries || !t->width) continue;
        const int64_t held = SHARED_BYTES / int64_t(sizeof(float)) / t->entries;
        if (!held) return false;
        parts += blocks_of(t->width, held < GRAD_THREADS ? held : GRAD_THREADS);
    }
    return parts <= MOST_PARTS;
}

/* Others have other bits. */
bool large_accepts(const void *args)
{
    const xph_embed_args *a = &static_cast<const xph_embed_grad_args *>(args)->fwd;
    return fits(a) && !whole_parts(a) && fits_across(blocks_of(width_of(a), WARP));
}

bool seen_before(const xph_embed_args *a, int64_t id)
{
    for (int64_t i = 0; i < id; i++)
        if (a->tables[i].dtable == a->tables[id].dtable) return true;
    return false;
}

/* False: a table has too many entries, or there are too many parts. */
bool parts_of(const xph_embed_args *a, all_parts *to)
{
    int64_t at = a->floats;
    for (int64_t i = 0; i < a->ids; at += a->tables[i].width, i++) {
        const xph_embed_table *t = &a->tables[i];
        to->id_at[i] = static_cast<int32_t>(at);
        if (!t->dtable || !t->entries || !t->width || seen_before(a, i)) continue;
        const int64_t held = SHARED_BYTES / int64_t(sizeof(float)) / t->entries; /* columns of the table */
        const int64_t most = held < GRAD_THREADS ? held : GRAD_THREADS,
                      count = most ? blocks_of(t->width, most) : 0;
        if (!count) return false;
        const int64_t columns = blocks_of(t->width, count), copies = held / columns,
                      strands = GRAD_THREADS / columns;
        for (int64_t first = 0; first < t->width; first += columns) {
            if (to->count == MOST_PARTS) return false;
            const int64_t left = t->width - first, own = left < columns ? left : columns;
            to->part[to->count++] = {static_cast<int32_t>(i), static_cast<int32_t>(first),
                                     static_cast<int32_t>(own),
                                     static_cast<int32_t>(copies < strands ? copies : strands), to->floats};
            to->floats += t->entries * own;
        }
    }
    return true;
}

/* query does not see dtable: tables that are shared count as others there. */
bool parts_accept(const void *args)
{
    const xph_embed_args *a = &static_cast<const xph_embed_grad_args *>(args)->fwd;
    return fits(a) && whole_parts(a) && a->rows < int64_t(1) << 31;
}

size_t parts_scratch(const void *args)
{
    const xph_embed_args *a = &static_cast<const xph_embed_grad_args *>(args)->fwd;
    int64_t floats = 0;
    for (int64_t i = 0; i < a->ids; i++) floats += a->tables[i].entries * a->tables[i].width;
    return static_cast<size_t>(blocks_of(a->rows, CHUNK) * floats) * sizeof(float);
}

int parts_launch(const void *args, cudaStream_t stream)
{
    const xph_embed_grad_args *g = static_cast<const xph_embed_grad_args *>(args);
    const xph_embed_args *a = &g->fwd;
    all_parts all = {};
    int64_t largest = 0, shared = 0;
    if (!a->rows || !parts_of(a, &all) || !all.count) return cudaSuccess;
    for (int k = 0; k < all.count; k++) {
        const int64_t numbers = a->tables[all.part[k].table].entries * all.part[k].columns;
        largest = numbers > largest ? numbers : largest;
        shared = numbers * all.part[k].strands > shared ? numbers * all.part[k].strands : shared;
    }
    const int64_t chunks = blocks_of(a->rows, CHUNK);
    const unsigned parts = static_cast<unsigned>(all.count);
    with_stored(a->type, [&](auto zero) {
        XPH_LAUNCH((embed_grad<decltype(zero)>), dim3(as_grid(chunks), parts), dim3(GRAD_THREADS),
                   static_cast<size_t>(shared) * sizeof(float), stream, *g, host_of(a), all);
    });
    XPH_LAUNCH((embed_fold<>), dim3(as_grid(blocks_of(largest, THREADS)), parts), dim3(THREADS), 0, stream,
               static_cast<const float *>(g->scratch), host_of(a), all, static_cast<int>(chunks));
    return cudaGetLastError();
}

int large_launch(const void *args, cudaStream_t stream)
{
    const xph_embed_grad_args *g = static_cast<const xph_embed_grad_args *>(args);
    const xph_embed_args *a = &g->fwd;
    for (int id = 0; a->rows && id < a->ids; id++) {
        const xph_embed_table *t = &a->tables[id];
        if (!t->dtable || !t->entries || !t->width || seen_before(a, id)) continue;
        const dim3 grid(as_grid(t->entries), as_grid(blocks_of(t->width, WARP))), block(WARP, STRANDS);
        with_stored(a->type, [&](auto zero) {
            XPH_LAUNCH((embed_grad_large<decltype(zero)>), grid, block, 0, stream, *g, host_of(a), id);
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
    {"embed_grad", parts_accept, parts_scratch, parts_launch},
    {"embed_grad_large", large_accepts, nullptr, large_launch},
    {nullptr, nullptr, nullptr, nullptr},
};
