/* LSTM and GRU by clusters, backward (rnn_cluster.cuh), from the last frame to the first. A block has the columns of W of its
 * units, a warp the part of one gate of 16 of them. What all gates of the frame behind pass on to h is the sum of these
 * parts, gate by gate; then the block's threads compute the gates of its units, and write their gradients to all blocks.
 * Where shared memory has room for one buffer of them only, blocks say when they have read it.
 */
#include "rnn_back.cuh"
#include "rnn_cluster.cuh"

using namespace rnn_back;

namespace
{

constexpr int WARP_UNITS = 16, MOST_UNITS = 48, MOST_OF_LARGEST = 32;
constexpr int STEP = WARP * QUAD; /* words of the weights of a step */

/* Of a block whose clusters have so many tiles of streams: what a thread holds must fit into its registers. */
__host__ __device__ constexpr int most_units(int tiles)
{
    return tiles == MOST_TILES ? MOST_OF_LARGEST : MOST_UNITS;
}

/* w: [gate][units / WARP_UNITS][step][STEP]: words t and t + 4 of units g and g + 8; a word is one number or two, of
 * neighbouring rows of W. from: column 0 of the block. */
template <class Kind>
__device__ inline void bring(unsigned *w, const float *from, int gates, int units, int hidden)
{
    using Number = typename Kind::Number;
    const int words = hidden / Kind::PER_WORD, count = gates * words * units;
    for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) {
        const int unit = i % units, row = i / units, gate = row / words, word = row % words;
        const int step = word / GROUP * 2 + word % 4 / 2, lane = unit % 8 * 4 + word % GROUP / 4;
        const int at = unit / 8 % 2 + word % 2 * 2;
        Number *to = reinterpret_cast<Number *>(
            w + ((gate * (units / WARP_UNITS) + unit / WARP_UNITS) * (words / STEP_WORDS) + step) * STEP +
            lane * QUAD + at);
        XPH_UNROLL
        for (int k = 0; k < Kind::PER_WORD; k++)
            store_operand<Kind>(to + k, load(from + (int64_t(row) * Kind::PER_WORD + k) * hidden + unit));
    }
}

/* sum[tile][of every second step]; w, d: where the lane's words begin. */
template <class Kind, int TILES>
__device__ inline void multiply(const four_words *w, const float4 *d, int ld, int groups,
                                float (&sum)[TILES][2][4])
{
    for (int group = 0; group < groups; group++, w += 2 * STEP / QUAD, d += GROUP / QUAD) {
        float4 x[TILES];
        XPH_UNROLL
        for (int n = 0; n < TILES; n++) x[n] = d[n * TILE_STREAMS * ld];
        XPH_UNROLL
        for (int half = 0; half < 2; half++) {
            const four_words v = w[half * STEP / QUAD];
            const unsigned a[4] = {v.x, v.y, v.z, v.w};
            XPH_UNROLL
            for (int n = 0; n < TILES; n++) {
                const unsigned b[2] = {__float_as_uint(half ? x[n].z : x[n].x),
                                       __float_as_uint(half ? x[n].w : x[n].y)};
                add_product<Kind>(sum[n][half], a, b);
            }
        }
    }
}

/* What the block has written of its units into its own rows goes to the same place of all others. rows: of Numbers, those of
 * a gate `hidden` apart, `ld` those of a stream. */
template <class Number, int G, int STREAMS>
__device__ inline void send(Number *rows, int ld, int hidden, int units, unsigned rank, unsigned blocks)
{
    constexpr int EACH = int(sizeof(float4)) / int(sizeof(Number));
    const int parts = units / EACH, chunks = STREAMS * G * parts;
    for (int i = static_cast<int>(threadIdx.x); i < chunks; i += static_cast<int>(blockDim.x)) {
        const int row = i / parts;
        float4 *own = reinterpret_cast<float4 *>(rows + row / G * ld + row % G * hidden) + i % parts;
        const float4 v = *own;
        for (unsigned by = 1; by < blocks; by++) *xph_cluster_map(own, (rank + by) % blocks) = v;
    }
}

struct back_args {
    xph_rnn_grad_args g;
    back_rows rows;
    int units, buffers;
};

template <class Stored, class Kind, int G, int TILES>
__global__ void __launch_bounds__(most_units(TILES) / WARP_UNITS *G *WARP, 1) rnn_cluster_back(const back_args b)
{
    XPH_ENTER();
#if RNN_CLUSTERS
    using Number = typename Kind::Number;
    /* Units and streams of a block over its threads, of which there are G a unit pair. */
    constexpr int STREAMS = TILE_STREAMS * TILES, EACH = (4 * TILES + G - 1) / G;
    XPH_SHARED_DYNAMIC(unsigned, w);
    const xph_rnn_args &a = b.g.fwd;
    const int thread = static_cast<int>(threadIdx.x), lane = thread % WARP, warp = thread / WARP;
    const int g = lane / 4, t = lane % 4, units = b.units, threads = static_cast<int>(blockDim.x);
    const int hidden = static_cast<int>(a.hidden), words = hidden / Kind::PER_WORD, ld = row_words(G * words);
    const int groups = words / GROUP, gate = warp % G, warp_tile = warp / G;
    const unsigned rank = xph_cluster_rank(), blocks = xph_cluster_size();
    const int64_t stream0 = int64_t(blockIdx.x / blocks) * STREAMS, unit0 = int64_t(rank) * units;
    float *const passed = reinterpret_cast<float *>(w + G * units * words); /* gradients of gates */
    float *const parts = passed + b.buffers * STREAMS * ld;                 /* [G][STREAMS][units + 1] */
    const four_words *const mine =
        reinterpret_cast<const four_words *>(w) +
        (gate * (units / WARP_UNITS) + warp_tile) * 2 * groups * (STEP / QUAD) + lane;
    cell<G> cells[EACH];
    carried next[EACH];
    gates<G> d[EACH];
    int row_of[EACH], unit_of[EACH]; /* row -1: there is none */
    XPH_UNROLL
    for (int e = 0; e < EACH; e++) {
        const int i = thread + e * threads, row = i / units;
        row_of[e] = row < STREAMS && stream0 + row < a.batch ? row : -1;
        unit_of[e] = i % units;
    }
    const auto each = [&](auto act) { /* act(e, row, unit of the block) for those that are the thread's */
                                      XPH_UNROLL
                                      for (int e = 0; e < EACH; e++)
                                          if (row_of[e] >= 0) act(e, row_of[e], unit_of[e]);
    };
    const auto begin = [&](int64_t time) {
        if (time < 0) return;
        each([&](int e, int row, int unit) {
            cells[e] = cell_of<Stored, G>(b.g, time, stream0 + row, unit0 + unit);
        });
    };
    bring<Kind>(w, static_cast<const float *>(a.w) + unit0, G, units, hidden);
    for (int i = thread; i < b.buffers * STREAMS * ld; i += threads) passed[i] = 0.0f;
    each([&](int e, int row, int unit) {
        next[e] = carried_from_end<G>(b.g, stream0 + row, unit0 + unit);
    });
    begin(a.time - 1);
    xph_cluster_sync(); /* every block is there */
    const int64_t last = b.g.dstate_in ? -1 : 0;
    for (int64_t time = a.time - 1, at = 0; time >= last; time--) {
        const bool first = time + 1 == a.time;
        if (!first) {
            float sum[TILES][2][4] = {};
            multiply<Kind, TILES>(
                mine,
                reinterpret_cast<const float4 *>(passed + at * STREAMS * ld + g * ld + gate * words) + t,
                ld / QUAD, groups, sum);
            if (b.buffers == 1) xph_cluster_arrive();
            XPH_UNROLL
            for (int i = 0; i < TILES * 4; i++)
                parts[(gate * STREAMS + i / 4 * TILE_STREAMS + 2 * t + i % 2) * (units + 1) +
                      warp_tile * WARP_UNITS + g + i / 2 % 2 * 8] =
                    sum[i / 4][0][i % 4] + sum[i / 4][1][i % 4];
            __syncthreads();
            if (b.buffers == 2) at ^= 1;
        }
        Number *const rows = reinterpret_cast<Number *>(passed + at * STREAMS * ld) + unit0;
        each([&](int e, int row, int unit) {
            float sum = 0.0f;
            XPH_UNROLL
            for (int k = 0; k < G && !first; k++) sum += parts[(k * STREAMS + row) * (units + 1) + unit];
            const float dh = next[e].passes ? next[e].h + sum : next[e].h;
            if (time < 0) {
                give_state<G>(b.g, stream0 + row, unit0 + unit, dh, next[e].c);
                return;
            }
            d[e] = back<G>(cells[e], dh, next[e].c);
            XPH_UNROLL
            for (int k = 0; k < G && time > last; k++)
                store_operand<Kind>(rows + row * ld * Kind::PER_WORD + k * hidden + unit, d[e].recurrent[k]);
        });
        if (time > last) {
            __syncthreads();
            if (b.buffers == 1 && !first) xph_cluster_wait();
            send<Number, G, STREAMS>(rows, ld * Kind::PER_WORD, hidden, units, rank, blocks);
            xph_cluster_arrive();
        }
        each([&](int e, int row, int unit) {
            if (time < 0) return;
            const int64_t stream = stream0 + row;
            give_rows<Stored, G>(b.g, b.rows, time, stream, unit0 + unit, cells[e], d[e]);
            next[e] = carried_on<G>(d[e].aside, is_fresh(a, stream, time));
        });
        if (time == last) break;
        begin(time - 1);
        xph_cluster_wait();
    }
#endif
}

/* Bytes of shared memory are words, the gradients of gates twice or once, parts of sums. */
cluster_shape shape_of(const xph_rnn_args *a)
{
    const int64_t gates = gates_of(a) / (a->hidden ? a->hidden : 1);
    return cluster_shape_of(a, WARP_UNITS, MOST_UNITS, 1, [&](int64_t units, int64_t streams, int buffers) {
        const int64_t words = a->hidden * number_bytes(a) / int64_t(sizeof(float));
        if (units > most_units(static_cast<int>(streams) / TILE_STREAMS)) return CLUSTER_SHARED + 1;
        return (gates * units * words + buffers * streams * row_words(gates * words) +
                gates * streams * (units + 1)) *
               int64_t(sizeof(float));
    });
}

int threads_of(const xph_rnn_args *a, const cluster_shape &s)
{
    return static_cast<int>(gates_of(a) / a->hidden) * s.units / WARP_UNITS * WARP;
}

}  // namespace

bool rnn_cluster_fits_grad(const xph_rnn_grad_args *g)
{
    const xph_rnn_args *a = &g->fwd;
    if (!rnn_tensor_fits(a)) return false;
    const cluster_shape s = shape_of(a);
    return s.blocks && with_kind(a, [&](auto zero, auto kind, auto gates) {
               return with_tiles(s.tiles, [&](auto tiles) {
                   return xph_cluster_room(rnn_cluster_back<decltype(zero), decltype(kind), gates(), tiles()>,
                                           as_grid(s.blocks), dim3(as_grid(threads_of(a, s))), s.bytes) > 0;
               });
           });
}

int rnn_cluster_run_grad(const xph_rnn_grad_args *g, cudaStream_t stream)
{
    const xph_rnn_args *a = &g->fwd;
    const cluster_shape s = shape_of(a);
    if (!s.blocks) return XPH_CUDA_NO_ROOM;
    const back_args b = {*g, rows_of(g), s.units, s.buffers};
    return with_kind(a, [&](auto zero, auto kind, auto gates) {
        return with_tiles(s.tiles, [&](auto tiles) {
            return launch_clusters(rnn_cluster_back<decltype(zero), decltype(kind), gates(), tiles()>, s,
                                   a->batch, threads_of(a, s), stream, b);
        });
    });
}
