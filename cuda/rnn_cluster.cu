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

/* Where in a step's weights the two words of a gate lie: the first product's gates side by side, then the second's. */
template <int G> __device__ inline int gate_at(int gate, int lane)
{
    const int across = gate / 2 * 2 + 2 <= G ? 2 : 1;
    return gate / 2 * 2 * GATE_WORDS + (lane * across + gate % 2) * 2;
}

/* w: of the warp, [step][G GATE_WORDS]; from: the lane's first words of gate 0. */
template <class Kind, int G>
__device__ inline void bring(unsigned *w, const float *from, int64_t gate_words, int groups, int lane)
{
    for (int group = 0; group < groups; group++) {
        XPH_UNROLL
        for (int gate = 0; gate < G; gate++) {
            const float4 v =
                __ldg(reinterpret_cast<const float4 *>(from + gate * gate_words) + group * (GROUP / QUAD));
            two_words *to =
                reinterpret_cast<two_words *>(w + 2 * group * (G * GATE_WORDS) + gate_at<G>(gate, lane));
            to[0] = {operand<Kind>(v.x), operand<Kind>(v.y)};
            to[G * GATE_WORDS / 2] = {operand<Kind>(v.z), operand<Kind>(v.w)};
        }
    }
}

/* sum[product][tile][of every second step]; w: of the warp, h: where the lane's words of the first tile begin. */
template <class Kind, int G, int TILES>
__device__ inline void multiply(const unsigned *w, const float4 *h, int ld, int groups, int lane,
                                float (&sum)[2][TILES][2][4])
{
    constexpr int STEP = G * GATE_WORDS;
    const four_words *upper = reinterpret_cast<const four_words *>(w + gate_at<G>(0, lane));
    const unsigned *lower = w + gate_at<G>(2, lane);
    for (int group = 0; group < groups; group++) {
        float4 x[TILES];
        XPH_UNROLL
        for (int n = 0; n < TILES; n++) x[n] = h[n * TILE_STREAMS * ld];
        XPH_UNROLL
        for (int half = 0; half < 2; half++) {
            const four_words v = upper[half * STEP / QUAD];
            four_words u = {0, 0, 0, 0};
            if constexpr (G == LSTM) {
                u = *reinterpret_cast<const four_words *>(lower + half * STEP);
            } else {
                const two_words third = *reinterpret_cast<const two_words *>(lower + half * STEP);
                u.x = third.x;
                u.y = third.y;
            }
            const unsigned first[4] = {v.x, v.z, v.y, v.w}, second[4] = {u.x, u.z, u.y, u.w};
            XPH_UNROLL
            for (int n = 0; n < TILES; n++) {
                const unsigned b[2] = {__float_as_uint(half ? x[n].z : x[n].x),
                                       __float_as_uint(half ? x[n].w : x[n].y)};
                add_product<Kind>(sum[0][n][half], first, b);
                add_product<Kind>(sum[1][n][half], second, b);
            }
        }
        upper += 2 * STEP / QUAD;
        lower += 2 * STEP;
        h += GROUP / QUAD;
    }
}

/* What the warp has written of its 8 units into its own block's rows goes to the same place of all others. */
template <class Number, int STREAMS>
__device__ inline void send(Number *rows, int ld, unsigned rank, unsigned blocks, int lane)
{
    constexpr int PARTS = WARP_UNITS * int(sizeof(Number)) / int(sizeof(float4)), CHUNKS = STREAMS * PARTS;
    const int count = CHUNKS * (static_cast<int>(blocks) - 1);
    for (int i = lane; i < count; i += WARP) {
        const unsigned to = (rank + 1 + static_cast<unsigned>(i / CHUNKS)) % blocks;
        float4 *own = reinterpret_cast<float4 *>(rows + i % CHUNKS / PARTS * ld) + i % PARTS;
        *xph_cluster_map(own, to) = *own;
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
    constexpr int STREAMS = TILE_STREAMS * TILES;
    XPH_SHARED_DYNAMIC(unsigned, w);
    const int thread = static_cast<int>(threadIdx.x), lane = thread % WARP, warp = thread / WARP;
    const int g = lane / 4, t = lane % 4, hidden = static_cast<int>(a.hidden);
    const int words = hidden / Kind::PER_WORD, ld = row_words(words), groups = words / GROUP;
    const unsigned rank = xph_cluster_rank(), blocks = xph_cluster_size();
    const int64_t stream0 = int64_t(blockIdx.x / blocks) * STREAMS;
    const int warp_unit = static_cast<int>(rank) * units + warp * WARP_UNITS, unit = warp_unit + g;
    unsigned *const mine = w + warp * 2 * groups * (G * GATE_WORDS);
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
    cell<G> cells[2 * TILES] = {};
    float bias[G];
    XPH_UNROLL
    for (int k = 0; k < G; k++) bias[k] = load(static_cast<const float *>(a.bias) + k * hidden + unit);
    const auto each = [&](auto act) { /* act(e, row, stream) for the lane's streams that there are */
                                      XPH_UNROLL
                                      for (int e = 0; e < 2 * TILES; e++) {
                                          const int row = e / 2 * TILE_STREAMS + 2 * t + e % 2;
                                          if (stream0 + row < a.batch) act(e, row, stream0 + row);
                                      }
    };
    unsigned fresh; /* a bit for each */
    const auto inputs = [&](int64_t time) {
        fresh = 0;
        each([&](int e, int, int64_t stream) {
            const Stored *gx = static_cast<const Stored *>(a.gx) + (stream * a.time + time) * a.ldgx + unit;
            XPH_UNROLL
            for (int k = 0; k < G; k++) cells[e].gx[k] = load(gx + k * hidden);
            if ((!time && !state) || is_fresh(a, stream, time)) fresh |= 1u << e;
        });
    };
    each([&](int e, int, int64_t stream) {
        if (!state) return;
        const float *from = state + stream * a.ld_state + unit;
        cells[e].h = load_changing(from);
        if (G == LSTM) cells[e].c = load_changing(from + hidden);
    });
    inputs(0);
    xph_cluster_sync(); /* every block is there, and has read the state */
    for (int64_t time = 0; time < a.time; time++) {
        const bool ends = time + 1 == a.time;
        const float *before = h + (time & 1) * STREAMS * ld;
        float *after = h + (~time & 1) * STREAMS * ld;
        float sum[2][TILES][2][4] = {};
        multiply<Kind, G, TILES>(mine, reinterpret_cast<const float4 *>(before + g * ld) + t, ld / QUAD,
                                 groups, lane, sum);
        each([&](int e, int row, int64_t) {
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
            if (!ends) store_operand<Kind>(reinterpret_cast<Number *>(after + row * ld) + unit, c.h);
        });
        if (!ends) {
            __syncwarp();
            send<Number, STREAMS>(reinterpret_cast<Number *>(after) + warp_unit, ld * Kind::PER_WORD, rank,
                                  blocks, lane);
            xph_cluster_arrive();
        }
        const frame f = {a,     time, nullptr, ends ? static_cast<float *>(a.state_out) : nullptr, 0, a.ld_state,
                         false, false};
        each([&](int e, int, int64_t stream) { cell_after<Stored, G>(f, stream, unit, cells[e]); });
        if (ends) break;
        inputs(time + 1);
        xph_cluster_wait();
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

}  // namespace

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
