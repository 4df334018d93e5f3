/* LSTM and GRU by clusters, backward (rnn_cluster.cuh), from the last frame to the first. A block has the columns of W of its
 * units, a warp the part of one gate of 16 of them. What all gates of the frame behind pass on to h is the sum of these
 * parts, gate by gate; then the block's threads compute the gates of its units, and write their gradients to all blocks.
 * Where shared memory has room for one buffer of them only, blocks say when they have read it.
 */
#include "rnn_back.cuh"
#include "rnn_cluster.cuh"

using namespace rnn_back;

/* Has a name for compilers that find fault with what no kernel of an older processor calls. */
namespace rnn_cluster_products
{

constexpr int SHARE_UNITS = 16, MOST_UNITS = 48, MOST_OF_LARGEST = 32;

/* Of a block whose clusters have so many tiles of streams: what a thread holds must fit into its registers. */
__host__ __device__ constexpr int most_units(int tiles)
{
    return tiles == MOST_TILES ? MOST_OF_LARGEST : MOST_UNITS;
}

/* ---- products by matrix units ---- */

/* A warp has the part of one gate of 16 units, so that there are as many parts of a sum as gates. */
template <class Kind_, int G_, int TILES> struct by_units {
    using Kind = Kind_;
    static constexpr int G = G_, PARTS = G, STEP = WARP * QUAD; /* words of the weights of a step */
    /* Warps of as many units as a warp has, and what units and streams are a thread's. */
    static constexpr int WARPS = G, EACH = (4 * TILES + G - 1) / G;
    int lane, gate, tile;

    __device__ by_units(int lane_, int warp, int) : lane(lane_), gate(warp % G), tile(warp / G) {}

    /* Where in w a word of gate `of` and W's column `unit` lies. w: [gate][tile][step][STEP], of a step the words t and
     * t + 4 of the units g and g + 8. */
    static __device__ int place(int of, int word, int unit, int units, int words)
    {
        const int step = word / GROUP * 2 + word % 4 / 2, at = unit % 8 * 4 + word % GROUP / 4;
        return ((of * (units / SHARE_UNITS) + unit / SHARE_UNITS) * (words / STEP_WORDS) + step) * STEP +
               at * QUAD + unit / 8 % 2 + word % 2 * 2;
    }
    /* parts: [G][STREAMS][units + 1]; d: the gradients of gates, ld words a stream. */
    __device__ void multiply(const unsigned *w, const float *d, int ld, int units, int words,
                             float *parts) const
    {
        float sum[TILES][2][4] = {}; /* of every second step */
        const four_words *from =
            reinterpret_cast<const four_words *>(w) +
            (gate * (units / SHARE_UNITS) + tile) * (words / STEP_WORDS) * (STEP / QUAD) + lane;
        const float4 *h = reinterpret_cast<const float4 *>(d + lane / 4 * ld + gate * words) + lane % 4;
        for (int group = 0; group < words / GROUP; group++, from += 2 * STEP / QUAD, h += GROUP / QUAD) {
            float4 x[TILES];
            XPH_UNROLL
            for (int n = 0; n < TILES; n++) x[n] = h[n * TILE_STREAMS * (ld / QUAD)];
            XPH_UNROLL
            for (int half = 0; half < 2; half++) {
                const four_words v = from[half * STEP / QUAD];
                const unsigned a[4] = {v.x, v.y, v.z, v.w};
                XPH_UNROLL
                for (int n = 0; n < TILES; n++) {
                    const unsigned b[2] = {__float_as_uint(half ? x[n].z : x[n].x),
                                           __float_as_uint(half ? x[n].w : x[n].y)};
                    add_product<Kind>(sum[n][half], a, b);
                }
            }
        }
        parts += (gate * TILES * TILE_STREAMS + lane % 4 * 2) * (units + 1) + tile * SHARE_UNITS + lane / 4;
        XPH_UNROLL
        for (int i = 0; i < TILES * 4; i++)
            parts[(i / 4 * TILE_STREAMS + i % 2) * (units + 1) + i / 2 % 2 * 8] =
                sum[i / 4][0][i % 4] + sum[i / 4][1][i % 4];
    }
};

/* ---- products in float ---- */

/* The sums of rnn_grad.cu in their order. A warp has 8 units for one half of the streams, a lane two of them and one of 8
 * strands. */
template <int G_, int TILES> struct by_floats {
    using Kind = by_float;
    static constexpr int G = G_, PARTS = 1, STRANDS = 8, LEAST = WARP / STRANDS, WARP_UNITS = 8;
    static constexpr int ROWS = TILE_STREAMS * TILES / 2, SUMS = 2 * ROWS, LEFT = fold_left(SUMS, LEAST);
    static constexpr int WARPS = 4, EACH = TILES;
    int lane, tile, row0;

    __device__ by_floats(int lane_, int warp, int warps)
        : lane(lane_), tile(warp % (warps / 2)), row0(warp / (warps / 2) * ROWS)
    {
    }
    /* w: [8 units][quads of a strand][two units][lane][QUAD] */
    static __device__ int place(int of, int word, int unit, int, int words)
    {
        const int row = of * words + word;
        const int quad = row / QUAD, at = quad % STRANDS * LEAST + unit % LEAST;
        const int turn = (unit / WARP_UNITS * (G * words / QUAD / STRANDS) + quad / STRANDS) * 2;
        return ((turn + unit % WARP_UNITS / LEAST) * WARP + at) * QUAD + row % QUAD;
    }
    __device__ void multiply(const unsigned *w, const float *d, int ld, int units, int words,
                             float *parts) const
    {
        const int turns = G * words / QUAD / STRANDS;
        const float4 *from = reinterpret_cast<const float4 *>(w) + tile * turns * 2 * WARP + lane;
        const float4 *x = reinterpret_cast<const float4 *>(d + row0 * ld) + lane / LEAST;
        float sum[SUMS]; /* [row][of two units] */
        XPH_UNROLL
        for (int n = 0; n < SUMS; n++) sum[n] = 0.0f;
        for (int turn = 0; turn < turns; turn++, from += 2 * WARP, x += STRANDS) {
            const float4 y[2] = {from[0], from[WARP]};
            XPH_UNROLL
            for (int r = 0; r < ROWS; r++) {
                const float4 v = x[r * (ld / QUAD)];
                sum[2 * r] = add_quad(v, y[0], sum[2 * r]);
                sum[2 * r + 1] = add_quad(v, y[1], sum[2 * r + 1]);
            }
        }
        fold_lanes<SUMS, LEAST>(sum, lane);
        const int first = lane / LEAST * SUMS / STRANDS;
        XPH_UNROLL
        for (int n = 0; n < LEFT; n++)
            parts[(row0 + (first + n) / 2) * (units + 1) + tile * WARP_UNITS + (first + n) % 2 * LEAST +
                  lane % LEAST] = sum[n];
    }
};

template <class Kind, int G, int TILES> struct products_of {
    using type = by_units<Kind, G, TILES>;
};
template <int G, int TILES> struct products_of<by_float, G, TILES> {
    using type = by_floats<G, TILES>;
};

}  // namespace rnn_cluster_products

using namespace rnn_cluster_products;

namespace
{

/* ---- a cluster ---- */

/* from: column 0 of the block. A word is one number or two, of neighbouring rows of W. A warp takes ONCE of them at a time. */
template <class Products> __device__ inline void bring(unsigned *w, const float *from, int units, int hidden)
{
    using Kind = typename Products::Kind;
    constexpr int ONCE = 8, EACH = Kind::PER_WORD;
    const int words = hidden / EACH, warps = static_cast<int>(blockDim.x) / WARP;
    for (int gate = 0; gate < Products::G; gate++) {
        for (int first = static_cast<int>(threadIdx.x) / WARP; first < words; first += ONCE * warps) {
            for (int unit = static_cast<int>(threadIdx.x) % WARP; unit < units; unit += WARP) {
                float v[ONCE][EACH];
                XPH_UNROLL
                for (int i = 0; i < ONCE * EACH; i++) {
                    const int word = first + i / EACH * warps;
                    v[i / EACH][i % EACH] =
                        word < words
                            ? load(from + ((int64_t(gate) * words + word) * EACH + i % EACH) * hidden + unit)
                            : 0.0f;
                }
                XPH_UNROLL
                for (int i = 0; i < ONCE * EACH; i++) {
                    const int word = first + i / EACH * warps;
                    if (word >= words) continue;
                    typename Kind::Number *to = reinterpret_cast<typename Kind::Number *>(
                        w + Products::place(gate, word, unit, units, words));
                    store_operand<Kind>(to + i % EACH, v[i / EACH][i % EACH]);
                }
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
__global__ void
__launch_bounds__(most_units(TILES) / SHARE_UNITS * products_of<Kind, G, TILES>::type::WARPS * WARP, 1)
    rnn_cluster_back(const back_args b)
{
    XPH_ENTER();
#if RNN_CLUSTERS
    using Number = typename Kind::Number;
    using Products = typename products_of<Kind, G, TILES>::type;
    constexpr int STREAMS = TILE_STREAMS * TILES, EACH = Products::EACH, PARTS = Products::PARTS;
    XPH_SHARED_DYNAMIC(unsigned, w);
    const xph_rnn_args &a = b.g.fwd;
    const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x), units = b.units;
    const int hidden = static_cast<int>(a.hidden), words = hidden / Kind::PER_WORD, ld = row_words(G * words);
    const Products product(thread % WARP, thread / WARP, threads / WARP);
    const unsigned rank = xph_cluster_rank(), blocks = xph_cluster_size();
    const int64_t stream0 = int64_t(blockIdx.x / blocks) * STREAMS, unit0 = int64_t(rank) * units;
    float *const passed = reinterpret_cast<float *>(w + G * units * words); /* gradients of gates */
    float *const parts = passed + b.buffers * STREAMS * ld;                 /* [PARTS][STREAMS][units + 1] */
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
    bring<Products>(w, static_cast<const float *>(a.w) + unit0, units, hidden);
    for (int i = thread; i < b.buffers * STREAMS * ld; i += threads) passed[i] = 0.0f;
    each([&](int e, int row, int unit) { next[e] = carried_from_end<G>(b.g, stream0 + row, unit0 + unit); });
    begin(a.time - 1);
    xph_cluster_sync(); /* every block is there */
    const int64_t last = b.g.dstate_in ? -1 : 0;
    for (int64_t time = a.time - 1, at = 0; time >= last; time--) {
        const bool first = time + 1 == a.time;
        if (!first) {
            product.multiply(w, passed + at * STREAMS * ld, ld, units, words, parts);
            if (b.buffers == 1 && time > last) xph_cluster_arrive();
            __syncthreads();
            if (b.buffers == 2) at ^= 1;
        }
        Number *const rows = reinterpret_cast<Number *>(passed + at * STREAMS * ld) + unit0;
        each([&](int e, int row, int unit) {
            float sum = PARTS == 1 && !first ? parts[row * (units + 1) + unit] : 0.0f;
            XPH_UNROLL
            for (int k = 0; k < PARTS && PARTS > 1 && !first; k++)
                sum += parts[(k * STREAMS + row) * (units + 1) + unit];
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

template <class Products> int threads_of(const cluster_shape &s)
{
    return s.units / SHARE_UNITS * Products::WARPS * WARP;
}

/* f(kernel, its threads) */
template <class Each> auto with_kernel(const xph_rnn_args *a, const cluster_shape &s, Each f)
{
    return with_kind(a, [&](auto zero, auto kind, auto gates) {
        return with_tiles(s.tiles, [&](auto tiles) {
            using Kind = decltype(kind);
            using Products = typename products_of<Kind, gates(), tiles()>::type;
            return f(rnn_cluster_back<decltype(zero), Kind, gates(), tiles()>, threads_of<Products>(s));
        });
    });
}

/* Bytes of shared memory are words, the gradients of gates twice or once, parts of sums. */
cluster_shape shape_of(const xph_rnn_args *a)
{
    const int64_t gates = gates_of(a) / (a->hidden ? a->hidden : 1);
    const auto bytes = [&](int64_t units, int64_t streams, int buffers) {
        const int64_t words = a->hidden * number_bytes(a) / int64_t(sizeof(float));
        if (units > most_units(static_cast<int>(streams) / TILE_STREAMS)) return TOO_MUCH;
        return (gates * units * words + buffers * streams * row_words(gates * words) +
                gates * streams * (units + 1)) *
               int64_t(sizeof(float));
    };
    return cluster_shape_of(a, SHARE_UNITS, MOST_UNITS, 1, bytes, [&](const cluster_shape &s) {
        return with_kernel(a, s,
                           [&](auto kernel, int threads) { return clusters_at_once(kernel, s, threads); });
    });
}

}  // namespace

bool rnn_cluster_fits_grad(const xph_rnn_grad_args *g)
{
    const xph_rnn_args *a = &g->fwd;
    return cluster_fits(a) && shape_of(a).blocks;
}

int rnn_cluster_run_grad(const xph_rnn_grad_args *g, cudaStream_t stream)
{
    const xph_rnn_args *a = &g->fwd;
    const cluster_shape s = shape_of(a);
    if (!s.blocks) return XPH_CUDA_NO_ROOM;
    const back_args b = {*g, rows_of(g), s.units, s.buffers};
    return with_kernel(a, s, [&](auto kernel, int threads) {
        return launch_clusters(kernel, s, a->batch, threads, stream, b);
    });
}
