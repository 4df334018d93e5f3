/* LSTM and GRU by clusters, forward (rnn_cluster.cuh). A warp makes all gates of 8 units: rows of its first product are
 * the gates 0 and 1 of them, of the second 2 and 3 (a GRU has no 3), so that lane 4 g + t ends with all gates of unit g for
 * the streams 2 t and 2 t + 1 of every tile. c, and h of a GRU, stay in registers. h lies in shared memory twice, so that a
 * frame takes one barrier. What the host wants of a frame is written, and the inputs of the next one are read, while the
 * blocks wait for each other.
 */
#include "rnn_cell.cuh"
#include "rnn_cluster.cuh"

namespace
{

constexpr int WARP_UNITS = 8, MOST_UNITS = 64;
constexpr int GATE_WORDS = WARP * 2; /* of a gate, a warp and a step: two a lane */
template <int G> constexpr int STEP = G * GATE_WORDS;

/* Of a product: a lane's words as the units take them, where it has two gates. */
template <int G> __device__ constexpr int gates_of_product(int product)
{
    return 2 * product + 2 <= G ? 2 : 1;
}
template <int G> __device__ inline int lane_at(int product, int lane)
{
    return product * 2 * GATE_WORDS + lane * gates_of_product<G>(product) * 2;
}

/* w: of the warp, [step][STEP]; from: the lane's first words of gate 0. */
template <class Kind, int G>
__device__ inline void bring(unsigned *w, const float *from, int64_t gate_words, int groups, int lane)
{
    for (int group = 0; group < groups; group++) {
        XPH_UNROLL
        for (int gate = 0; gate < G; gate++) {
            const float4 v =
                __ldg(reinterpret_cast<const float4 *>(from + gate * gate_words) + group * (GROUP / QUAD));
            const int next = gates_of_product<G>(gate / 2);
            unsigned *to = w + 2 * group * STEP<G> + lane_at<G>(gate / 2, lane) + gate % 2;
            to[0] = operand<Kind>(v.x);
            to[next] = operand<Kind>(v.y);
            to[STEP<G>] = operand<Kind>(v.z);
            to[STEP<G> + next] = operand<Kind>(v.w);
        }
    }
}

/* sum[product][tile][of every second step]; w: of the warp, h: where the lane's words of the first tile begin. */
template <class Kind, int G, int TILES>
__device__ inline void multiply(const unsigned *w, const float4 *h, int ld, int groups, int lane,
                                float (&sum)[2][TILES][2][4])
{
    const four_words *upper = reinterpret_cast<const four_words *>(w + lane_at<G>(0, lane));
    const unsigned *lower = w + lane_at<G>(1, lane);
    for (int group = 0; group < groups; group++) {
        float4 x[TILES];
        XPH_UNROLL
        for (int n = 0; n < TILES; n++) x[n] = h[n * TILE_STREAMS * ld];
        XPH_UNROLL
        for (int half = 0; half < 2; half++) {
            const four_words v = upper[half * STEP<G> / QUAD];
            four_words u = {0, 0, 0, 0};
            if constexpr (G == LSTM) {
                u = *reinterpret_cast<const four_words *>(lower + half * STEP<G>);
            } else {
                const two_words third = *reinterpret_cast<const two_words *>(lower + half * STEP<G>);
                u.x = third.x;
                u.z = third.y;
            }
            const unsigned first[4] = {v.x, v.y, v.z, v.w}, second[4] = {u.x, u.y, u.z, u.w};
            XPH_UNROLL
            for (int n = 0; n < TILES; n++) {
                const unsigned b[2] = {__float_as_uint(half ? x[n].z : x[n].x),
                                       __float_as_uint(half ? x[n].w : x[n].y)};
                add_product<Kind>(sum[0][n][half], first, b);
                add_product<Kind>(sum[1][n][half], second, b);
            }
        }
        upper += 2 * STEP<G> / QUAD;
        lower += 2 * STEP<G>;
        h += GROUP / QUAD;
    }
}

/* What the warp has written of its 8 units into its own block's rows goes to the same place of all others. */
template <class Number, int STREAMS>
__device__ inline void send(Number *rows, int ld, unsigned rank, unsigned blocks, int lane)
{
    constexpr int PARTS = WARP_UNITS * int(sizeof(Number)) / int(sizeof(float4)), CHUNKS = STREAMS * PARTS;
    constexpr int WIDTH = CHUNKS < WARP ? CHUNKS : WARP;
    XPH_UNROLL
    for (int i = lane % WIDTH; i < CHUNKS; i += WIDTH) {
        float4 *own = reinterpret_cast<float4 *>(rows + i / PARTS * ld) + i % PARTS;
        const float4 v = *own;
        for (unsigned by = 1 + static_cast<unsigned>(lane / WIDTH); by < blocks; by += WARP / WIDTH)
            *xph_cluster_map(own, (rank + by) % blocks) = v;
    }
}

/* w: rows of `words` words, as the units read them. */
template <class Stored, class Kind, int G, int TILES>
__global__ void __launch_bounds__(MOST_UNITS / WARP_UNITS *WARP, 1)
    rnn_cluster(const xph_rnn_args a, const float *packed, const int units)
{
    XPH_ENTER();
#if RNN_CLUSTERS
    using Number = typename Kind::Number;
    constexpr int STREAMS = TILE_STREAMS * TILES, CELLS = 2 * TILES;
    XPH_SHARED_DYNAMIC(unsigned, w);
    const int thread = static_cast<int>(threadIdx.x), lane = thread % WARP, warp = thread / WARP;
    const int g = lane / 4, t = lane % 4, hidden = static_cast<int>(a.hidden);
    const int words = hidden / Kind::PER_WORD, ld = row_words(words), groups = words / GROUP;
    const unsigned rank = xph_cluster_rank(), blocks = xph_cluster_size();
    const int64_t stream0 = int64_t(blockIdx.x / blocks) * STREAMS;
    const int warp_unit = static_cast<int>(rank) * units + warp * WARP_UNITS, unit = warp_unit + g;
    unsigned *const mine = w + warp * 2 * groups * STEP<G>;
    float *const h = reinterpret_cast<float *>(w + G * units * words);
    bring<Kind, G>(mine, packed + int64_t(unit) * words + t * QUAD, int64_t(hidden) * words, groups, lane);
    for (int i = thread; i < 2 * STREAMS * ld; i += static_cast<int>(blockDim.x)) h[i] = 0.0f;
    __syncthreads();
    const float *const state = static_cast<const float *>(a.state_in);
    for (int i = thread; state && i < STREAMS * hidden; i += static_cast<int>(blockDim.x)) {
        const int row = i / hidden, at = i % hidden;
        if (stream0 + row >= a.batch) break;
        store_operand<Kind>(reinterpret_cast<Number *>(h + row * ld) + at,
                            load_changing(state + (stream0 + row) * a.ld_state + at));
    }
    cell<G> cells[CELLS] = {};
    float bias[G];
    int row0[CELLS]; /* of a stream that is not there: the last one's, and nothing of it is written */
    bool there[CELLS];
    XPH_UNROLL
    for (int k = 0; k < G; k++) bias[k] = load(static_cast<const float *>(a.bias) + k * hidden + unit);
    XPH_UNROLL
    for (int e = 0; e < CELLS; e++) {
        const int64_t stream = stream0 + e / 2 * TILE_STREAMS + 2 * t + e % 2;
        there[e] = stream < a.batch;
        row0[e] = static_cast<int>((there[e] ? stream : a.batch - 1) * a.time);
        if (!state) continue;
        const float *from = state + (there[e] ? stream : a.batch - 1) * a.ld_state + unit;
        if (G == GRU) cells[e].h = load_changing(from);
        if (G == LSTM) cells[e].c = load_changing(from + hidden);
    }
    unsigned fresh; /* a bit for each */
    const auto inputs = [&](int time) {
        fresh = !time && !state ? ~0u : 0u;
        XPH_UNROLL
        for (int e = 0; e < CELLS; e++) {
            const int at = (row0[e] + time) * static_cast<int>(a.ldgx) + unit;
            XPH_UNROLL
            for (int k = 0; k < G; k++)
                cells[e].gx[k] = load(static_cast<const Stored *>(a.gx) + (at + k * hidden));
            if (a.reset && a.reset[row0[e] + time]) fresh |= 1u << e;
        }
    };
    inputs(0);
    xph_cluster_sync(); /* every block is there, and has read the state */
    const int frames = static_cast<int>(a.time);
    for (int time = 0; time < frames; time++) {
        const bool ends = time + 1 == frames;
        const float *before = h + (time & 1) * STREAMS * ld;
        float *after = h + (~time & 1) * STREAMS * ld;
        float sum[2][TILES][2][4] = {};
        multiply<Kind, G, TILES>(mine, reinterpret_cast<const float4 *>(before + g * ld) + t, ld / QUAD,
                                 groups, lane, sum);
        XPH_UNROLL
        for (int e = 0; e < CELLS; e++) {
            cell<G> &c = cells[e];
            float gate[G];
            c.fresh = fresh >> e & 1;
            if (c.fresh) c.h = c.c = 0.0f;
            XPH_UNROLL
            for (int k = 0; k < G; k++) {
                const int at = 2 * (k % 2) + e % 2;
                gate[k] = bias[k] + (c.fresh ? 0.0f : sum[k / 2][e / 2][0][at] + sum[k / 2][e / 2][1][at]);
            }
            c.step(gate);
            const int row = e / 2 * TILE_STREAMS + 2 * t + e % 2;
            store_operand<Kind>(reinterpret_cast<Number *>(after + row * ld) + unit, c.h);
        }
        if (!ends) {
            __syncwarp();
            send<Number, STREAMS>(reinterpret_cast<Number *>(after) + warp_unit, ld * Kind::PER_WORD, rank,
                                  blocks, lane);
            xph_cluster_arrive();
        }
        XPH_UNROLL
        for (int e = 0; e < CELLS; e++) {
            const int row = row0[e] + time;
            if (!there[e]) continue;
            store(static_cast<Stored *>(a.y) + (row * static_cast<int>(a.ldy) + unit), cells[e].h);
            float *saved = static_cast<float *>(a.saved) + (row * (G + 1) * hidden + unit);
            XPH_UNROLL
            for (int k = 0; k < G + 1 && a.saved; k++) saved[k * hidden] = cells[e].saved[k];
        }
        if (ends) break;
        inputs(time + 1);
        xph_cluster_wait();
    }
    XPH_UNROLL
    for (int e = 0; e < CELLS; e++) {
        if (!there[e] || !a.state_out) continue;
        const int64_t stream = stream0 + e / 2 * TILE_STREAMS + 2 * t + e % 2;
        float *to = static_cast<float *>(a.state_out) + stream * a.ld_state + unit;
        to[0] = cells[e].h;
        if (G == LSTM) to[hidden] = cells[e].c;
    }
#endif
}

cluster_shape shape_of(const xph_rnn_args *a)
{
    return cluster_shape_of(a, WARP_UNITS, MOST_UNITS, 2, [&](int64_t units, int64_t streams, int buffers) {
        const int64_t words = a->hidden * number_bytes(a) / int64_t(sizeof(float));
        return (gates_of(a) / a->hidden * units * words + buffers * streams * row_words(words)) *
               int64_t(sizeof(float));
    });
}

int threads_of(const cluster_shape &s)
{
    return s.units / WARP_UNITS * WARP;
}

/* Kernels count numbers of rows in 32 bits. */
bool counts_are_short(const xph_rnn_args *a)
{
    int64_t most = a->ldgx > a->ldy ? a->ldgx : a->ldy;
    const int64_t saved = gates_of(a) + a->hidden;
    if (saved > most) most = saved;
    return a->batch * a->time * most < int64_t(1) << 31;
}

}  // namespace

bool rnn_cluster_ready(const xph_rnn_args *a)
{
    return rnn_tensor_ready(a) && counts_are_short(a);
}

bool rnn_cluster_fits(const xph_rnn_args *a)
{
    if (!rnn_tensor_fits(a) || a->input.rows) return false;
    const cluster_shape s = shape_of(a);
    return s.blocks && with_kind(a, [&](auto zero, auto kind, auto gates) {
               return with_tiles(s.tiles, [&](auto tiles) {
                   return xph_cluster_room(rnn_cluster<decltype(zero), decltype(kind), gates(), tiles()>,
                                           as_grid(s.blocks), dim3(as_grid(threads_of(s))), s.bytes) > 0;
               });
           });
}

int rnn_cluster_run(const xph_rnn_args *a, cudaStream_t stream)
{
    const cluster_shape s = shape_of(a);
    if (!s.blocks) return XPH_CUDA_NO_ROOM;
    const float *w = static_cast<const float *>(a->type == XPH_F32 ? a->w : a->packed);
    return with_kind(a, [&](auto zero, auto kind, auto gates) {
        return with_tiles(s.tiles, [&](auto tiles) {
            return launch_clusters(rnn_cluster<decltype(zero), decltype(kind), gates(), tiles()>, s, a->batch,
                                   threads_of(s), stream, *a, w, s.units);
        });
    });
}
