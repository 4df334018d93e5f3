/* LSTM and GRU by clusters, forward (rnn_cluster.cuh). A warp makes all gates of 8 units, a lane ends with those of one unit
 * for some of the streams. c, and h of a GRU, stay in registers. h lies in shared memory twice, so that a frame takes one
 * barrier. What the host wants of a frame is written, and the inputs of the next one are read, while the blocks wait for each
 * other.
 */
#include "rnn_cell.cuh"
#include "rnn_cluster.cuh"

namespace
{

constexpr int WARP_UNITS = 8, MOST_UNITS = 64;
constexpr int GATE_WORDS = WARP * 2; /* of a gate, a warp and a step: two a lane */

/* ---- products by matrix units ---- */

/* Rows of the first product are the gates 0 and 1 of 8 units, of the second 2 and 3 (a GRU has no 3), so that lane 4 g + t ends
 * with all gates of unit g for the streams 2 t and 2 t + 1 of every tile. */
template <class Kind_, int G, int TILES> struct by_units {
    using Kind = Kind_;
    static constexpr int STEP = G * GATE_WORDS;
    int lane;
    float sum[2][TILES][2][4]; /* product, tile, of every second step */

    __device__ int unit() const { return lane / 4; }
    __device__ int row(int e) const { return e / 2 * TILE_STREAMS + lane % 4 * 2 + e % 2; }
    __device__ float gate(int e, int k) const
    {
        const int at = 2 * (k % 2) + e % 2;
        return sum[k / 2][e / 2][0][at] + sum[k / 2][e / 2][1][at];
    }

    /* A lane's words of a product, as the units take them, where it has two gates. */
    static __device__ constexpr int gates_of(int product) { return 2 * product + 2 <= G ? 2 : 1; }
    __device__ int lane_at(int product) const
    {
        return product * 2 * GATE_WORDS + lane * gates_of(product) * 2;
    }
    /* w: of the warp, [step][STEP]; from: gate 0 of its first unit. */
    __device__ void bring(unsigned *w, const float *from, int words) const
    {
        from += lane / 4 * words + lane % 4 * QUAD;
        for (int group = 0; group < words / GROUP; group++) {
            XPH_UNROLL
            for (int gate = 0; gate < G; gate++) {
                const float4 v = __ldg(
                    reinterpret_cast<const float4 *>(from + int64_t(gate) * words * Kind::PER_WORD * words) +
                    group * (GROUP / QUAD));
                const int next = gates_of(gate / 2);
                unsigned *to = w + 2 * group * STEP + lane_at(gate / 2) + gate % 2;
                to[0] = operand<Kind>(v.x);
                to[next] = operand<Kind>(v.y);
                to[STEP] = operand<Kind>(v.z);
                to[STEP + next] = operand<Kind>(v.w);
            }
        }
    }
    /* h: ld quads a row */
    __device__ void multiply(const unsigned *w, const float4 *h, int ld, int words)
    {
        const four_words *upper = reinterpret_cast<const four_words *>(w + lane_at(0));
        const unsigned *lower = w + lane_at(1);
        h += lane / 4 * ld + lane % 4;
        XPH_UNROLL
        for (int n = 0; n < 16 * TILES; n++) sum[n / (8 * TILES)][n / 8 % TILES][n / 4 % 2][n % 4] = 0.0f;
        for (int group = 0; group < words / GROUP; group++) {
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
            upper += 2 * STEP / QUAD;
            lower += 2 * STEP;
            h += GROUP / QUAD;
        }
    }
};

/* ---- products in float ---- */

/* The sums of rnn.cu in their order: a lane has one strand of all gates of a unit, for all streams; when strands are added, it
 * keeps a share of the streams. */
template <int G, int TILES> struct by_floats {
    using Kind = by_float;
    static constexpr int STRANDS = 4, ROWS = TILE_STREAMS * TILES, SHARE = ROWS / STRANDS;
    static_assert(WARP / STRANDS == WARP_UNITS, "strands of a warp's units are its lanes");
    int lane;
    float sum[ROWS * G];

    __device__ int unit() const { return lane % WARP_UNITS; }
    __device__ int row(int e) const { return lane / WARP_UNITS * SHARE + e; }
    __device__ float gate(int e, int k) const { return sum[e * G + k]; }

    /* w: of the warp, [quads of a strand][gate][lane] */
    __device__ void bring(unsigned *w, const float *from, int words) const
    {
        float4 *to = reinterpret_cast<float4 *>(w) + lane;
        from += lane % WARP_UNITS * words + lane / WARP_UNITS * QUAD;
        for (int k = 0; k < words; k += QUAD * STRANDS) {
            XPH_UNROLL
            for (int gate = 0; gate < G; gate++, to += WARP)
                *to = __ldg(reinterpret_cast<const float4 *>(from + int64_t(gate) * words * words + k));
        }
    }
    __device__ void multiply(const unsigned *w, const float4 *h, int ld, int words)
    {
        const float4 *from = reinterpret_cast<const float4 *>(w) + lane;
        h += lane / WARP_UNITS;
        XPH_UNROLL
        for (int n = 0; n < ROWS * G; n++) sum[n] = 0.0f;
        for (int q = 0; q < words / QUAD; q += STRANDS) {
            float4 y[G];
            XPH_UNROLL
            for (int gate = 0; gate < G; gate++, from += WARP) y[gate] = *from;
            XPH_UNROLL
            for (int r = 0; r < ROWS; r++) {
                const float4 x = h[r * ld + q];
                XPH_UNROLL
                for (int gate = 0; gate < G; gate++)
                    sum[r * G + gate] = add_quad(x, y[gate], sum[r * G + gate]);
            }
        }
        fold_lanes<ROWS * G, WARP_UNITS>(sum, lane);
    }
};

template <class Kind, int G, int TILES> struct products_of {
    using type = by_units<Kind, G, TILES>;
};
template <int G, int TILES> struct products_of<by_float, G, TILES> {
    using type = by_floats<G, TILES>;
};

/* ---- a cluster ---- */

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
__global__ void __launch_bounds__(MOST_UNITS / WARP_UNITS * WARP, 1)
    rnn_cluster(const xph_rnn_args a, const float *packed, const int units)
{
    XPH_ENTER();
#if RNN_CLUSTERS
    using Number = typename Kind::Number;
    using Products = typename products_of<Kind, G, TILES>::type;
    constexpr int STREAMS = TILE_STREAMS * TILES, CELLS = 2 * TILES;
    XPH_SHARED_DYNAMIC(unsigned, w);
    const int thread = static_cast<int>(threadIdx.x), lane = thread % WARP, warp = thread / WARP;
    const int hidden = static_cast<int>(a.hidden), words = hidden / Kind::PER_WORD, ld = row_words(words);
    const unsigned rank = xph_cluster_rank(), blocks = xph_cluster_size();
    const int64_t stream0 = int64_t(blockIdx.x / blocks) * STREAMS;
    const int warp_unit = static_cast<int>(rank) * units + warp * WARP_UNITS;
    Products product;
    product.lane = lane;
    const int unit = warp_unit + product.unit();
    unsigned *const mine = w + warp * WARP_UNITS * G * words;
    float *const h = reinterpret_cast<float *>(w + G * units * words);
    product.bring(mine, packed + int64_t(warp_unit) * words, words);
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
        const int64_t stream = stream0 + product.row(e);
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
        product.multiply(mine, reinterpret_cast<const float4 *>(before), ld / QUAD, words);
        XPH_UNROLL
        for (int e = 0; e < CELLS; e++) {
            cell<G> &c = cells[e];
            float gate[G];
            c.fresh = fresh >> e & 1;
            if (c.fresh) c.h = c.c = 0.0f;
            XPH_UNROLL
            for (int k = 0; k < G; k++) gate[k] = bias[k] + (c.fresh ? 0.0f : product.gate(e, k));
            c.step(gate);
            store_operand<Kind>(reinterpret_cast<Number *>(after + product.row(e) * ld) + unit, c.h);
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
        const int64_t stream = stream0 + product.row(e);
        float *to = static_cast<float *>(a.state_out) + stream * a.ld_state + unit;
        to[0] = cells[e].h;
        if (G == LSTM) to[hidden] = cells[e].c;
    }
#endif
}

int threads_of(const cluster_shape &s)
{
    return s.units / WARP_UNITS * WARP;
}

/* f(kernel) */
template <class Each> auto with_kernel(const xph_rnn_args *a, const cluster_shape &s, Each f)
{
    return with_kind(a, [&](auto zero, auto kind, auto gates) {
        return with_tiles(s.tiles, [&](auto tiles) {
            return f(rnn_cluster<decltype(zero), decltype(kind), gates(), tiles()>);
        });
    });
}

cluster_shape shape_of(const xph_rnn_args *a)
{
    const auto bytes = [&](int64_t units, int64_t streams, int buffers) {
        const int64_t words = a->hidden * number_bytes(a) / int64_t(sizeof(float));
        return (gates_of(a) / a->hidden * units * words + buffers * streams * row_words(words)) *
               int64_t(sizeof(float));
    };
    return cluster_shape_of(a, WARP_UNITS, MOST_UNITS, 2, bytes, [&](const cluster_shape &s) {
        return with_kernel(a, s, [&](auto kernel) { return clusters_at_once(kernel, s, threads_of(s)); });
    });
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
    const bool ready =
        rnn_tensor_fits(a) ? rnn_tensor_ready(a) : a->w && in_quads(a->w, a->hidden, a->hidden);
    return ready && counts_are_short(a);
}

bool rnn_cluster_fits(const xph_rnn_args *a)
{
    return cluster_fits(a) && !a->input.rows && shape_of(a).blocks;
}

int rnn_cluster_run(const xph_rnn_args *a, cudaStream_t stream)
{
    const cluster_shape s = shape_of(a);
    if (!s.blocks) return XPH_CUDA_NO_ROOM;
    const float *w = static_cast<const float *>(a->type == XPH_F32 ? a->w : a->packed);
    return with_kernel(a, s, [&](auto kernel) {
        return launch_clusters(kernel, s, a->batch, threads_of(s), stream, *a, w, s.units);
    });
}

int32_t xph_cuda_code(void)
{
    cudaFuncAttributes is = {};
    if (cudaFuncGetAttributes(&is, rnn_cluster<float, by_tf32, LSTM, 1>)) {
        cudaGetLastError();
        return 0;
    }
    return is.ptxVersion < is.binaryVersion ? is.ptxVersion : is.binaryVersion;
}
