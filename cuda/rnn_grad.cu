/* LSTM and GRU, backward (XPH_OP_RNN_GRAD). A frame is a launch, from the last to the first: what the next
 * frame's gates pass on to h through W (a product of UNITS columns for ROWS streams), then the gates of this
 * frame, whose gradients go to dgx and, as float, to where the launch before this frame reads them. One
 * launch more makes the gradient of state_in.
 *
 * The launches also store the h before every frame, so that dw and dbias are those of one linear layer over
 * all rows. The recurrent gradient of a gate equals that of the whole gate, except for the third gate of a
 * GRU, which the reset gate has scaled: it has its own buffer and is its own layer.
 */
#include "rnn_back.cuh"
#include "tensor.cuh"

using namespace rnn_back;

namespace
{

constexpr int STRANDS = 8, WARP_ROWS = 4, LANE_ROWS = 2, TU = 4, UNITS = 16;
constexpr int LEAST = WARP / STRANDS; /* lanes of a strand */

/* A block has 4 x 2 warps, a warp for every strand 2 x 2 threads of TR streams and TU units. Rows in shared memory are
 * LD quads apart, so that what half a warp reads at once lies in different banks. */
template <int TR_, int DEPTH_> struct tile {
    static constexpr int TR = TR_, DEPTH = DEPTH_, LD = DEPTH / QUAD + 2;
    static constexpr int ROWS = WARP_ROWS * LANE_ROWS * TR, SUMS = TR * TU, LEFT = fold_left(SUMS, LEAST);
};
using wide_tile = tile<4, 64>;
using few_tile = tile<1, 128>;
constexpr int64_t FEW_STREAMS = 64;

/* t -1: nothing but the gradient of state_in. */
struct frame {
    xph_rnn_grad_args g;
    int64_t t;
    const void *from; /* recurrent gradients of the gates of frame t + 1, [batch][ld]; NULL: there is none */
    void *to;         /* of frame t */
    int64_t ld;
    float *aside; /* [batch][H] what passes W by: dc of an LSTM, dh z of a GRU */
    back_rows rows;
    bool quads_w, quads_from;
};

/* The thread's place: rows and units of the block's that it has sums for. Neighbours read the same gates, lanes that
 * differ in bit 1 the same weights: either goes in half the time. */
template <class Tile> struct place {
    int lane, strand, warp_row, warp_unit;

    __device__ place()
    {
        const int warp = static_cast<int>(threadIdx.x) / WARP;
        lane = static_cast<int>(threadIdx.x) % WARP;
        strand = lane / LEAST;
        warp_row = warp % WARP_ROWS;
        warp_unit = warp / WARP_ROWS;
    }
    __device__ int row(int i) const
    {
        return warp_row * LANE_ROWS * Tile::TR + i / 2 * 4 + (lane & 2) / 2 * (Tile::TR > 1 ? 2 : 1) + i % 2;
    }
    /* Where unit j lies in shared memory, and which one it is: units lie there as u % 4, u / 4. */
    __device__ int unit_row(int j) const { return warp_unit * 8 + j / 2 * 4 + (lane & 1) * 2 + j % 2; }
    __device__ int unit(int j) const
    {
        const int r = unit_row(j);
        return r % 4 * 4 + r / 4;
    }
};

/* A thread's share of UNITS columns of W, DEPTH rows at a time, on their way to rows of shared memory. */
template <class Tile> struct columns {
    static constexpr int ACROSS = UNITS / QUAD, STEP = RNN_THREADS / ACROSS;
    static constexpr int COUNT = Tile::DEPTH / STEP;
    static_assert(Tile::DEPTH % STEP == 0, "all threads have as many quads");
    const float *w;
    float4 held[COUNT];
    int row, across, hidden, unit; /* unit: the first of the thread's quad */

    __device__ columns(const float *w_, int unit0, int hidden_) : w(w_), hidden(hidden_)
    {
        row = static_cast<int>(threadIdx.x) / ACROSS;
        across = static_cast<int>(threadIdx.x) % ACROSS;
        unit = unit0 + across * QUAD;
    }
    /* Rows from k on, zeros from `depth` on. */
    __device__ void take(int k, int depth, bool quads)
    {
        XPH_UNROLL
        for (int i = 0; i < COUNT; i++) {
            const int r = k + row + i * STEP;
            held[i] = {0.0f, 0.0f, 0.0f, 0.0f};
            if (r < depth) held[i] = quad_of(w + r * hidden, unit, hidden, quads);
        }
    }
    __device__ void put(float4 (*to)[Tile::LD]) const
    {
        constexpr int NEXT = ACROSS * Tile::LD * QUAD;
        float *column = reinterpret_cast<float *>(to[across]) + row;
        XPH_UNROLL
        for (int i = 0; i < COUNT; i++, column += STEP) {
            column[0] = held[i].x;
            column[NEXT] = held[i].y;
            column[2 * NEXT] = held[i].z;
            column[3 * NEXT] = held[i].w;
        }
    }
};

template <class Tile>
__device__ inline void add_tile(const place<Tile> &p, const float4 (*d)[Tile::LD],
                                const float4 (*w)[Tile::LD], float (&sum)[Tile::SUMS])
{
    XPH_UNROLL
    for (int k = 0; k < Tile::DEPTH / QUAD; k += STRANDS) {
        const int q = k + p.strand;
        float4 x[Tile::TR];
        XPH_UNROLL
        for (int i = 0; i < Tile::TR; i++) x[i] = d[p.row(i)][q];
        XPH_UNROLL
        for (int j = 0; j < TU; j++) {
            const float4 y = w[p.unit_row(j)][q];
            XPH_UNROLL
            for (int i = 0; i < Tile::TR; i++) sum[i * TU + j] = add_quad(x[i], y, sum[i * TU + j]);
        }
    }
}

/* sum[i TU + j], of one strand: what the gates of frame t + 1 pass on. */
template <int G, class Tile>
__device__ inline void product(const frame &f, const place<Tile> &p, int64_t stream0, int64_t unit0,
                               float (&sum)[Tile::SUMS])
{
    XPH_SHARED(float4, d, [2][Tile::ROWS][Tile::LD]);
    XPH_SHARED(float4, w, [2][UNITS][Tile::LD]);
    const xph_rnn_args &a = f.g.fwd;
    const int hidden = static_cast<int>(a.hidden), depth = G * hidden;
    share<Tile::ROWS, Tile::DEPTH, Tile::LD> left([&](int r) {
        return static_cast<const float *>(f.from) + (stream0 + r < a.batch ? stream0 + r : stream0) * f.ld;
    });
    columns<Tile> right(static_cast<const float *>(a.w), static_cast<int>(unit0), hidden);
    left.take(0, depth, f.quads_from);
    right.take(0, depth, f.quads_w);
    for (int k = 0, at = 0; k < depth; k += Tile::DEPTH, at ^= 1) {
        left.put(d[at]);
        right.put(w[at]);
        __syncthreads(); /* and whoever writes here next has been behind the next one */
        if (k + Tile::DEPTH < depth) {
            left.take(k + Tile::DEPTH, depth, f.quads_from);
            right.take(k + Tile::DEPTH, depth, f.quads_w);
        }
        add_tile<Tile>(p, d[at], w[at], sum);
    }
}

/* ---- cells ---- */

template <class Stored, class Number, int G>
__device__ inline void give(const frame &f, int64_t stream, int64_t unit, const cell<G> &v, const gates<G> &d)
{
    const int64_t hidden = f.g.fwd.hidden;
    Number *to = static_cast<Number *>(f.to) + stream * f.ld + unit;
    give_rows<Stored, G>(f.g, f.rows, f.t, stream, unit, v, d);
    XPH_UNROLL
    for (int g = 0; g < G; g++) store(to + g * hidden, d.recurrent[g]);
    f.aside[stream * hidden + unit] = d.aside;
}

template <int G> __device__ inline carried carried_to(const frame &f, int64_t stream, int64_t unit)
{
    const xph_rnn_args &a = f.g.fwd;
    if (!f.from) return carried_from_end<G>(f.g, stream, unit);
    return carried_on<G>(f.aside[stream * a.hidden + unit], is_fresh(a, stream, f.t + 1));
}

/* ---- a frame ---- */

/* One unit of one stream: what does not wait for the product, and the rest. */
template <class Stored, class Number, int G> struct task {
    cell<G> before;
    carried d;

    __device__ void begin(const frame &f, int64_t stream, int64_t unit)
    {
        d = carried_to<G>(f, stream, unit);
        if (f.t >= 0) before = cell_of<Stored, G>(f.g, f.t, stream, unit);
    }
    __device__ void end(const frame &f, int64_t stream, int64_t unit, float passed) const
    {
        const float dh = d.passes ? d.h + passed : d.h;
        if (f.t >= 0)
            give<Stored, Number, G>(f, stream, unit, before, back<G>(before, dh, d.c));
        else
            give_state<G>(f.g, stream, unit, dh, d.c);
    }
};

template <class Stored, int G, class Tile>
__global__ void __launch_bounds__(RNN_THREADS, 1) rnn_frame_back(const frame f)
{
    XPH_ENTER();
    const xph_rnn_args &a = f.g.fwd;
    const int64_t stream0 = int64_t(blockIdx.x) * Tile::ROWS, unit0 = int64_t(blockIdx.y) * UNITS;
    const place<Tile> p;
    const int first = p.strand * Tile::SUMS / STRANDS; /* of the sums that this lane ends with */
    const bool twin = p.lane & fold_twins(Tile::SUMS, LEAST);
    float sum[Tile::SUMS];
    task<Stored, float, G> tasks[Tile::LEFT] = {};
    const auto each = [&](auto act) { /* act(e, stream, unit) for those of them that there are */
                                      XPH_UNROLL
                                      for (int e = 0; e < Tile::LEFT; e++) {
                                          const int64_t stream = stream0 + p.row((first + e) / TU),
                                                        unit = unit0 + p.unit((first + e) % TU);
                                          if (!twin && stream < a.batch && unit < a.hidden)
                                              act(e, stream, unit);
                                      }
    };
    each([&](int e, int64_t stream, int64_t unit) { tasks[e].begin(f, stream, unit); });
    XPH_UNROLL
    for (int n = 0; n < Tile::SUMS; n++) sum[n] = 0.0f;
    if (f.from) product<G, Tile>(f, p, stream0, unit0, sum);
    fold_lanes<Tile::SUMS, LEAST>(sum, p.lane);
    each([&](int e, int64_t stream, int64_t unit) { tasks[e].end(f, stream, unit, sum[e]); });
}

/* ---- a frame by matrix units ---- */

constexpr int TENSOR_ROWS = 32, TRANSPOSE_TILE = 32, TRANSPOSE_ROWS = 8;

/* to[unit][gate] = w[gate][unit] */
template <class Number>
__global__ void __launch_bounds__(TRANSPOSE_TILE *TRANSPOSE_ROWS)
    rnn_transpose(const float *w, Number *to, int64_t gates, int64_t hidden)
{
    XPH_ENTER();
    XPH_SHARED(float, tile, [TRANSPOSE_TILE][TRANSPOSE_TILE + 1]);
    const int64_t gate0 = int64_t(blockIdx.x) * TRANSPOSE_TILE, unit0 = int64_t(blockIdx.y) * TRANSPOSE_TILE;
    for (int r = static_cast<int>(threadIdx.y); r < TRANSPOSE_TILE; r += TRANSPOSE_ROWS)
        tile[r][threadIdx.x] = load(w + (gate0 + r) * hidden + unit0 + threadIdx.x);
    __syncthreads();
    for (int r = static_cast<int>(threadIdx.y); r < TRANSPOSE_TILE; r += TRANSPOSE_ROWS)
        store(to + (unit0 + r) * gates + gate0 + threadIdx.x, tile[threadIdx.x][r]);
}

/* UNITS units of 32 streams: a warp for one gate's part of the sums of 16 streams. transposed: W with a row of words for every
 * unit; groups: of words of one gate. */
template <class Stored, class Kind, int G>
__global__ void __launch_bounds__(2 * G * WARP, 1)
    rnn_frame_back_tensor(const frame f, const float *transposed, int groups)
{
    XPH_ENTER();
    constexpr int THREADS = 2 * G * WARP, ALL = TENSOR_ROWS * UNITS, EACH = (ALL + THREADS - 1) / THREADS;
    XPH_SHARED(float, parts, [G][TENSOR_ROWS][UNITS + 1]);
    const xph_rnn_args &a = f.g.fwd;
    const int thread = static_cast<int>(threadIdx.x), lane = thread % WARP, g = lane / 4, t = lane % 4;
    const int gate = thread / WARP / 2, row0 = thread / WARP % 2 * (TENSOR_ROWS / 2);
    const int64_t stream0 = int64_t(blockIdx.x) * TENSOR_ROWS, unit0 = int64_t(blockIdx.y) * UNITS;
    const int64_t words = int64_t(groups) * GROUP, at = gate * words + t * QUAD;
    task<Stored, typename Kind::Number, G> tasks[EACH] = {};
    const auto each = [&](auto act) { /* act(e, row, unit) for those of the block that are the thread's */
                                      XPH_UNROLL
                                      for (int e = 0; e < EACH; e++) {
                                          const int i = thread + e * THREADS;
                                          if (i < ALL && stream0 + i / UNITS < a.batch)
                                              act(e, i / UNITS, i % UNITS);
                                      }
    };
    each([&](int e, int row, int unit) { tasks[e].begin(f, stream0 + row, unit0 + unit); });
    if (f.from) {
        const float *w[2], *d[2];
        products p = {};
        XPH_UNROLL
        for (int i = 0; i < 2; i++) {
            const int64_t stream = stream0 + row0 + g + 8 * i;
            w[i] = transposed + (unit0 + g + 8 * i) * G * words + at;
            d[i] =
                static_cast<const float *>(f.from) + (stream < a.batch ? stream : stream0) * G * words + at;
        }
        multiply<Kind>(w, d, groups, &p);
        XPH_UNROLL
        for (int i = 0; i < 8; i++)
            parts[gate][row0 + g + i / 2 % 2 * 8][i / 4 * 8 + 2 * t + i % 2] =
                p.sum[i / 4][0][i % 4] + p.sum[i / 4][1][i % 4];
    }
    __syncthreads();
    each([&](int e, int row, int unit) {
        float sum = 0.0f;
        XPH_UNROLL
        for (int k = 0; k < G; k++) sum += parts[k][row][unit];
        tasks[e].end(f, stream0 + row, unit0 + unit, sum);
    });
}

/* ---- gradients of the weights ---- */

/* Gates whose gradients are those in dgx. */
int64_t first_gates(const xph_rnn_args *a)
{
    return (a->kind == XPH_RNN_LSTM ? 4 : 2) * a->hidden;
}

/* Part 0: the gates whose gradients are in dgx, part 1 the third of a GRU. Addresses are those of scratch. */
xph_linear_grad_args weights_of(const xph_rnn_grad_args *g, int part)
{
    const xph_rnn_args *a = &g->fwd;
    char *scratch = static_cast<char *>(g->scratch);
    const int64_t first = part * first_gates(a);
    xph_linear_grad_args l = {};
    l.type = a->type;
    l.math = a->math;
    l.rows = a->batch * a->time;
    l.in = l.ldx = a->hidden;
    l.out = part ? a->hidden : first_gates(a);
    l.lddy = part ? a->hidden : g->lddgx;
    if (!scratch) return l;
    const layout r(g);
    const back_rows rows = rows_of(g);
    l.x = rows.before;
    l.dy = part ? rows.third : g->dgx;
    l.dw = g->dw ? static_cast<float *>(g->dw) + first * a->hidden : nullptr;
    l.dbias = g->dbias ? static_cast<float *>(g->dbias) + first : nullptr;
    l.scratch = scratch + r.kept;
    return l;
}

int parts_of(const xph_rnn_grad_args *g)
{
    return g->fwd.kind == XPH_RNN_LSTM ? 1 : 2;
}

int weights(const xph_rnn_grad_args *g, cudaStream_t stream)
{
    int error = cudaSuccess;
    for (int part = 0; part < parts_of(g) && !error && (g->dw || g->dbias); part++) {
        const xph_linear_grad_args l = weights_of(g, part);
        error = xph_cuda_run(g->products[part], &l, stream);
    }
    return error;
}

/* ---- candidates ---- */

bool fits(const xph_rnn_grad_args *g)
{
    return rnn_fits(&g->fwd) && g->products[0] && g->products[parts_of(g) - 1];
}

bool tensor_accepts(const void *args)
{
    const xph_rnn_grad_args *g = static_cast<const xph_rnn_grad_args *>(args);
    return fits(g) && rnn_tensor_fits(&g->fwd);
}

bool accepts(const void *args)
{
    const xph_rnn_grad_args *g = static_cast<const xph_rnn_grad_args *>(args);
    return fits(g) && !rnn_tensor_fits(&g->fwd); /* whose bits are others */
}

bool cluster_accepts(const void *args)
{
    const xph_rnn_grad_args *g = static_cast<const xph_rnn_grad_args *>(args);
    return fits(g) && rnn_cluster_fits_grad(g);
}

int cluster_launch(const void *args, cudaStream_t stream)
{
    const xph_rnn_grad_args *g = static_cast<const xph_rnn_grad_args *>(args);
    const int error = rnn_cluster_run_grad(g, stream);
    return error ? error : weights(g, stream);
}

bool few_accepts(const void *args)
{
    return static_cast<const xph_rnn_grad_args *>(args)->fwd.batch <= FEW_STREAMS && accepts(args);
}

size_t scratch(const void *args)
{
    const xph_rnn_grad_args *g = static_cast<const xph_rnn_grad_args *>(args);
    size_t most = 0;
    for (int part = 0; part < parts_of(g); part++) {
        const xph_linear_grad_args l = weights_of(g, part);
        const xph_cuda_candidate *c = reinterpret_cast<const xph_cuda_candidate *>(g->products[part]);
        const size_t bytes = c->scratch_bytes ? c->scratch_bytes(&l) : 0;
        most = bytes > most ? bytes : most;
    }
    return layout(g).kept + most;
}

/* The frames from the last on, by one(f) each. */
template <class One> void frames(const xph_rnn_grad_args *g, One one)
{
    const xph_rnn_args *a = &g->fwd;
    const layout r(g);
    char *const scratch = static_cast<char *>(g->scratch);
    frame f = {};
    f.g = *g;
    f.ld = r.ld;
    f.aside = reinterpret_cast<float *>(scratch + 2 * r.gates);
    f.rows = rows_of(g);
    f.quads_w = in_quads(a->w, a->hidden, a->hidden);
    f.quads_from = in_quads(g->scratch, r.ld, gates_of(a));
    for (f.t = a->time - 1; f.t >= (g->dstate_in ? -1 : 0); f.t--) {
        f.to = scratch + (f.t & 1) * r.gates;
        one(f);
        f.from = f.to;
    }
}

/* Kernels with shared memory and floats alone. */
template <class Tile> struct by_tiles {
    template <class Stored, int G> static void run(const xph_rnn_grad_args *g, cudaStream_t stream)
    {
        const xph_rnn_args *a = &g->fwd;
        const dim3 grid(as_grid(blocks_of(a->batch, Tile::ROWS)), as_grid(blocks_of(a->hidden, UNITS)));
        frames(g, [&](const frame &f) {
            XPH_LAUNCH((rnn_frame_back<Stored, G, Tile>), grid, dim3(RNN_THREADS), 0, stream, f);
        });
    }
};

template <class Stored> struct kind_of {
    using type = by_tf32;
};
template <> struct kind_of<__nv_bfloat16> {
    using type = by_bf16;
};
template <> struct kind_of<__half> {
    using type = by_f16;
};

struct by_units {
    template <class Stored, int G> static void run(const xph_rnn_grad_args *g, cudaStream_t stream)
    {
        using Kind = typename kind_of<Stored>::type;
        using Number = typename Kind::Number;
        const xph_rnn_args *a = &g->fwd;
        const dim3 grid(as_grid(blocks_of(a->batch, TENSOR_ROWS)), as_grid(blocks_of(a->hidden, UNITS)));
        const dim3 tiles(as_grid(G * a->hidden / TRANSPOSE_TILE), as_grid(a->hidden / TRANSPOSE_TILE));
        const layout r(g);
        const int groups = static_cast<int>(a->hidden / (GROUP * Kind::PER_WORD));
        Number *transposed =
            reinterpret_cast<Number *>(static_cast<char *>(g->scratch) + r.kept - r.transposed);
        XPH_LAUNCH((rnn_transpose<Number>), tiles, dim3(TRANSPOSE_TILE, TRANSPOSE_ROWS), 0, stream,
                   static_cast<const float *>(a->w), transposed, G * a->hidden, a->hidden);
        frames(g, [&](const frame &f) {
            XPH_LAUNCH((rnn_frame_back_tensor<Stored, Kind, G>), grid, dim3(2 * G * WARP), 0, stream, f,
                       reinterpret_cast<const float *>(transposed), groups);
        });
    }
};

template <class By> int launch(const void *args, cudaStream_t stream)
{
    const xph_rnn_grad_args *g = static_cast<const xph_rnn_grad_args *>(args);
    if (!g->fwd.batch || !g->fwd.hidden) return cudaSuccess;
    with_stored(g->fwd.type, [&](auto zero) {
        if (g->fwd.kind == XPH_RNN_LSTM)
            By::template run<decltype(zero), LSTM>(g, stream);
        else
            By::template run<decltype(zero), GRU>(g, stream);
    });
    const int error = weights(g, stream);
    return error ? error : cudaGetLastError();
}

}  // namespace

void xph_rnn_grad_compose(xph_rnn_grad_args *g)
{
    uint32_t bit;
    for (int part = 0; part < parts_of(g); part++) {
        const xph_linear_grad_args l = weights_of(g, part);
        g->products[part] =
            reinterpret_cast<const xph_kernel *>(xph_cuda_first(xph_cuda_linear_grad, &l, 0, &bit));
    }
}

const xph_cuda_candidate xph_cuda_rnn_grad[] = {
    {"rnn_grad_cluster", cluster_accepts, scratch, cluster_launch},
    {"rnn_grad_tensor", tensor_accepts, scratch, launch<by_units>},
    {"rnn_grad_few", few_accepts, scratch, launch<by_tiles<few_tile>>},
    {"rnn_grad", accepts, scratch, launch<by_tiles<wide_tile>>},
    {nullptr, nullptr, nullptr, nullptr},
};
