/* LSTM and GRU, forward (XPH_OP_RNN): the recurrent part; the input parts of the gates are computed before. A
 * frame is a launch. A block makes all gates of UNITS units of ROWS streams: tiles of h and of the weights,
 * DEPTH deep, come into shared memory through registers while the tile before them is multiplied; a thread
 * has sums for TR streams and all gates of TU units, of one strand. When strands are added, the input parts
 * join the gates in place, and only the new state leaves the block.
 *
 * State goes from frame to frame through scratch, h | c of a stream side by side as in state_in.
 */
#include "rnn_cell.cuh"

namespace
{

constexpr int STRANDS = 4, WARP_ROWS = 4, LANE_ROWS = 2, LANE_UNITS = 4;

/* A block has 4 x 2 warps, a warp for every strand 2 x 4 threads. Rows in shared memory are LD quads apart, so that what
 * half a warp reads at once lies in different banks. BLOCKS: of a multiprocessor at once. */
template <int TR_, int TU_, int DEPTH_, int BLOCKS_> struct tile {
    static constexpr int TR = TR_, TU = TU_, DEPTH = DEPTH_, BLOCKS = BLOCKS_, LD = DEPTH / QUAD + 2;
    static constexpr int ROWS = WARP_ROWS * LANE_ROWS * TR, UNITS = 2 * LANE_UNITS * TU;
};
using wide_tile = tile<4, 2, 32, 1>;
using few_tile = tile<1, 1, 128, 2>;
constexpr int64_t FEW_STREAMS = 64;

/* The thread's place: rows row + 2 i and units unit + 4 j of the block's. */
template <class Tile> struct place {
    int strand, row, unit;

    __device__ place()
    {
        const int lane = static_cast<int>(threadIdx.x) % WARP, warp = static_cast<int>(threadIdx.x) / WARP;
        strand = lane / (WARP / STRANDS);
        /* Neighbours read the same h, lanes that differ in bit 1 the same weights: either goes in half the time. */
        row = warp % WARP_ROWS * LANE_ROWS * Tile::TR + (lane >> 1 & 1);
        unit = warp / WARP_ROWS * LANE_UNITS * Tile::TU + (lane >> 1 & 2) + (lane & 1);
    }
};

/* ---- a frame ---- */

/* sum[(i TU + j) G + g] */
template <int G, class Tile>
__device__ inline void add_tile(const place<Tile> &p, const float4 (*h)[Tile::LD],
                                const float4 (*w)[Tile::LD], float (&sum)[Tile::TR * Tile::TU * G])
{
    XPH_UNROLL
    for (int k = 0; k < Tile::DEPTH / QUAD; k += STRANDS) {
        const int q = k + p.strand;
        float4 x[Tile::TR];
        XPH_UNROLL
        for (int i = 0; i < Tile::TR; i++) x[i] = h[p.row + LANE_ROWS * i][q];
        XPH_UNROLL
        for (int n = 0; n < Tile::TU * G; n++) {
            const float4 y = w[n % G * Tile::UNITS + p.unit + LANE_UNITS * (n / G)][q];
            XPH_UNROLL
            for (int i = 0; i < Tile::TR; i++)
                sum[i * Tile::TU * G + n] = add_quad(x[i], y, sum[i * Tile::TU * G + n]);
        }
    }
}

/* Afterwards a lane has whole sums from sum[0] on: those of its strand's row where there are as many rows as strands,
 * else all lanes have all. */
template <int G, class Tile>
__device__ inline void add_strands(float (&sum)[Tile::TR * Tile::TU * G], int lane)
{
    constexpr int COUNT = Tile::TR * Tile::TU * G;
    if constexpr (Tile::TR == STRANDS) {
        fold_lanes<COUNT, WARP / STRANDS>(sum, lane);
    } else {
        XPH_UNROLL
        for (int bit = WARP / 2; bit >= WARP / STRANDS; bit /= 2) {
            XPH_UNROLL
            for (int n = 0; n < COUNT; n++) sum[n] += __shfl_xor_sync(ALL_LANES, sum[n], bit);
        }
    }
}

template <class Stored, int G, class Tile>
__global__ void __launch_bounds__(RNN_THREADS, Tile::BLOCKS) rnn_frame(const frame f)
{
    XPH_ENTER();
    constexpr int COLUMNS = G * Tile::UNITS, SUMS = Tile::TR * Tile::TU * G;
    XPH_SHARED(float4, h, [2][Tile::ROWS][Tile::LD]);
    XPH_SHARED(float4, w, [2][COLUMNS][Tile::LD]);
    const xph_rnn_args &a = f.a;
    const int64_t first = int64_t(blockIdx.x) * Tile::ROWS, unit0 = int64_t(blockIdx.y) * Tile::UNITS;
    const int hidden = static_cast<int>(a.hidden), depth = f.before ? hidden : 0;
    const place<Tile> p;
    const int own = Tile::TR == STRANDS ? p.strand : 0;
    const int64_t stream = first + p.row + LANE_ROWS * own;
    const bool works = stream < a.batch && (Tile::TR == STRANDS || p.strand == 0);
    /* Nobody looks at sums of streams and units that are not there: they get others' numbers. */
    share<Tile::ROWS, Tile::DEPTH, Tile::LD> left([&](int r) {
        return depth ? f.before + (first + r < a.batch ? first + r : first) * f.ld_before : nullptr;
    });
    share<COLUMNS, Tile::DEPTH, Tile::LD> right([&](int r) {
        const int64_t unit = unit0 + r % Tile::UNITS;
        return static_cast<const float *>(a.w) +
               (r / Tile::UNITS * a.hidden + (unit < hidden ? unit : unit0)) * a.hidden;
    });
    cell<G> cells[Tile::TU] = {};
    float sum[SUMS];
    if (depth) left.take(0, depth, f.quads_before);
    if (depth) right.take(0, depth, f.quads_w);
    XPH_UNROLL
    for (int j = 0; j < Tile::TU; j++) {
        const int64_t unit = unit0 + p.unit + LANE_UNITS * j;
        if (works && unit < a.hidden) cells[j] = cell_before<Stored, G>(f, stream, unit);
    }
    XPH_UNROLL
    for (int n = 0; n < SUMS; n++) sum[n] = 0.0f;
    for (int k = 0, at = 0; k < depth; k += Tile::DEPTH, at ^= 1) {
        left.put(h[at]);
        right.put(w[at]);
        __syncthreads(); /* and whoever writes here next has been behind the next one */
        if (k + Tile::DEPTH < depth) {
            left.take(k + Tile::DEPTH, depth, f.quads_before);
            right.take(k + Tile::DEPTH, depth, f.quads_w);
        }
        add_tile<G, Tile>(p, h[at], w[at], sum);
    }
    add_strands<G, Tile>(sum, static_cast<int>(threadIdx.x) % WARP);
    XPH_UNROLL
    for (int j = 0; j < Tile::TU; j++) {
        const int64_t unit = unit0 + p.unit + LANE_UNITS * j;
        if (!works || unit >= a.hidden) continue;
        float gate[G];
        XPH_UNROLL
        for (int g = 0; g < G; g++)
            gate[g] = load(static_cast<const float *>(a.bias) + g * a.hidden + unit) +
                      (cells[j].fresh ? 0.0f : sum[j * G + g]);
        cells[j].step(gate);
        cell_after<Stored, G>(f, stream, unit, cells[j]);
    }
}

/* Gates of a frame whose recurrent products, bias added, another kernel has made: [batch][G H]. What the product of the
 * next frame reads is zero where that one is fresh. */
template <int G> __global__ void __launch_bounds__(RNN_THREADS) rnn_cells(const frame f, const float *product)
{
    XPH_ENTER();
    const xph_rnn_args &a = f.a;
    const int64_t i = int64_t(blockIdx.x) * RNN_THREADS + threadIdx.x, stream = i / a.hidden,
                  unit = i % a.hidden;
    if (stream >= a.batch) return;
    cell<G> c = cell_before<float, G>(f, stream, unit);
    float gate[G];
    XPH_UNROLL
    for (int g = 0; g < G; g++) gate[g] = load(product + (stream * G + g) * a.hidden + unit);
    c.step(gate);
    cell_after<float, G>(f, stream, unit, c);
    if (f.t + 1 < a.time && is_fresh(a, stream, f.t + 1)) f.after[stream * f.ld_after + unit] = 0.0f;
}

/* ---- candidates ---- */

int64_t state_ld(const xph_rnn_args *a)
{
    return round_up(state_width(a), QUAD);
}

bool accepts(const void *args)
{
    const xph_rnn_args *a = static_cast<const xph_rnn_args *>(args);
    return rnn_fits(a) && !rnn_tensor_fits(a); /* whose bits are others */
}

bool few_accepts(const void *args)
{
    return static_cast<const xph_rnn_args *>(args)->batch <= FEW_STREAMS && accepts(args);
}

/* The state of two frames; of one where a frame alone may find its state_out where state_in is. */
size_t scratch(const void *args)
{
    const xph_rnn_args *a = static_cast<const xph_rnn_args *>(args);
    return static_cast<size_t>((a->time > 1 ? 2 : 1) * a->batch * state_ld(a)) * sizeof(float);
}

bool overlap(const xph_rnn_args *a)
{
    const uintptr_t in = reinterpret_cast<uintptr_t>(a->state_in),
                    out = reinterpret_cast<uintptr_t>(a->state_out);
    const uintptr_t bytes = static_cast<uintptr_t>(a->batch * a->ld_state) * sizeof(float);
    return a->state_in && a->state_out && in < out + bytes && out < in + bytes;
}

template <class Stored, int G, class Tile> void frames(const xph_rnn_args *a, cudaStream_t stream)
{
    const dim3 grid(as_grid(blocks_of(a->batch, Tile::ROWS)), as_grid(blocks_of(a->hidden, Tile::UNITS)));
    const int64_t ld = state_ld(a);
    float *const states = static_cast<float *>(a->scratch), *const last = static_cast<float *>(a->state_out);
    frame f = {*a, 0, static_cast<const float *>(a->state_in), nullptr, a->ld_state, 0, false, false};
    if (a->time == 1 && overlap(a)) {
        carry(a, states, ld, false, stream);
        f.before = states;
        f.ld_before = ld;
    }
    f.quads_w = in_quads(a->w, a->hidden, a->hidden);
    for (f.t = 0; f.t < a->time; f.t++) {
        const bool ends = f.t + 1 == a->time;
        f.after = ends ? last : states + f.t % 2 * a->batch * ld;
        f.ld_after = ends ? a->ld_state : ld;
        f.quads_before = in_quads(f.before, f.ld_before, a->hidden);
        XPH_LAUNCH((rnn_frame<Stored, G, Tile>), grid, dim3(RNN_THREADS), 0, stream, f);
        f.before = f.after;
        f.ld_before = f.ld_after;
    }
}

template <class Stored, class Tile> void frames_of_kind(const xph_rnn_args *a, cudaStream_t stream)
{
    if (a->kind == XPH_RNN_LSTM)
        frames<Stored, LSTM, Tile>(a, stream);
    else
        frames<Stored, GRU, Tile>(a, stream);
}

/* What comes before frames: the input product, which may refuse; state through no frames at all. An error. */
int begin(const xph_rnn_args *a, cudaStream_t stream)
{
    const int error = a->input.rows ? xph_cuda_run(a->input_product, &a->input, stream) : cudaSuccess;
    if (!error && !a->time && a->batch && a->hidden && a->state_out)
        carry(a, static_cast<float *>(a->state_out), a->ld_state, false, stream);
    return error;
}

template <class Tile> int launch(const void *args, cudaStream_t stream)
{
    const xph_rnn_args *a = static_cast<const xph_rnn_args *>(args);
    const int error = begin(a, stream);
    if (error || !a->batch || !a->hidden) return error;
    with_stored(a->type, [&](auto zero) { frames_of_kind<decltype(zero), Tile>(a, stream); });
    return cudaGetLastError();
}

/* ---- matrix units ---- */

bool tensor_accepts(const void *args)
{
    return rnn_tensor_fits(static_cast<const xph_rnn_args *>(args));
}

size_t tensor_scratch(const void *args)
{
    const size_t own = rnn_tensor_scratch(static_cast<const xph_rnn_args *>(args)), other = scratch(args);
    return own > other ? own : other;
}

int tensor_launch(const void *args, cudaStream_t stream)
{
    const xph_rnn_args *a = static_cast<const xph_rnn_args *>(args);
    if (!rnn_tensor_ready(a)) return launch<wide_tile>(args, stream);
    const int error = begin(a, stream);
    return error || !a->batch || !a->time ? error : rnn_tensor_frames(a, stream);
}

/* ---- all frames at once ---- */

bool cluster_accepts(const void *args)
{
    return tensor_accepts(args) && rnn_cluster_fits(static_cast<const xph_rnn_args *>(args));
}

int cluster_launch(const void *args, cudaStream_t stream)
{
    const xph_rnn_args *a = static_cast<const xph_rnn_args *>(args);
    return rnn_cluster_ready(a) ? rnn_cluster_run(a, stream) : tensor_launch(args, stream);
}

bool cluster_floats_accepts(const void *args)
{
    return accepts(args) && rnn_cluster_fits(static_cast<const xph_rnn_args *>(args));
}

int cluster_floats_launch(const void *args, cudaStream_t stream)
{
    const xph_rnn_args *a = static_cast<const xph_rnn_args *>(args);
    return rnn_cluster_ready(a) ? rnn_cluster_run(a, stream) : launch<wide_tile>(args, stream);
}

bool stay_accepts(const void *args)
{
    return accepts(args) && rnn_stay_fits(static_cast<const xph_rnn_args *>(args));
}

int stay_launch(const void *args, cudaStream_t stream)
{
    const xph_rnn_args *a = static_cast<const xph_rnn_args *>(args);
    const int error = begin(a, stream);
    return error || !a->batch || !a->hidden ? error : rnn_stay_run(a, stream);
}

/* ---- weights of fewer bits: the product of a frame is that of linear ---- */

xph_linear_args product_of(const xph_rnn_args *a)
{
    xph_linear_args l = {};
    l.type = a->type;
    l.weights = a->weights;
    l.rows = a->batch;
    l.in = a->hidden;
    l.out = l.ldy = gates_of(a);
    l.packed = a->packed;
    l.bias = a->bias;
    l.math = a->math;
    return l;
}

bool narrow_accepts(const void *args)
{
    const xph_rnn_args *a = static_cast<const xph_rnn_args *>(args);
    const xph_linear_args l = product_of(a);
    return a->weights && is_rnn(a) && xph_narrow_accepts(&l);
}

/* The state of two frames, and a product. */
size_t narrow_scratch(const void *args)
{
    const xph_rnn_args *a = static_cast<const xph_rnn_args *>(args);
    return static_cast<size_t>(a->batch * (2 * state_ld(a) + gates_of(a))) * sizeof(float);
}

template <int G> int narrow_frames(const xph_rnn_args *a, cudaStream_t stream)
{
    const dim3 grid(as_grid(blocks_of(a->batch * a->hidden, RNN_THREADS)));
    const int64_t ld = state_ld(a);
    float *const states = static_cast<float *>(a->scratch), *const product = states + 2 * a->batch * ld;
    frame f = {*a, 0, states + a->batch * ld, nullptr, ld, ld, false, false};
    xph_linear_args l = product_of(a);
    l.y = product;
    l.ldx = ld;
    carry(a, states + a->batch * ld, ld, true, stream);
    for (f.t = 0; f.t < a->time; f.t++) {
        const bool ends = f.t + 1 == a->time;
        f.after = ends ? static_cast<float *>(a->state_out) : states + f.t % 2 * a->batch * ld;
        f.ld_after = ends ? a->ld_state : ld;
        l.x = f.before;
        const int error = xph_narrow_linear(&l, stream);
        if (error) return error;
        XPH_LAUNCH((rnn_cells<G>), grid, dim3(RNN_THREADS), 0, stream, f, product);
        f.before = f.after;
    }
    return cudaGetLastError();
}

int narrow_launch(const void *args, cudaStream_t stream)
{
    const xph_rnn_args *a = static_cast<const xph_rnn_args *>(args);
    const int error = begin(a, stream);
    if (error || !a->batch || !a->hidden || !a->time) return error;
    return a->kind == XPH_RNN_LSTM ? narrow_frames<LSTM>(a, stream) : narrow_frames<GRU>(a, stream);
}

}  // namespace

uint32_t xph_rnn_compose(xph_rnn_args *a, uint32_t refused)
{
    uint32_t bit = 0;
    a->input_product = nullptr;
    if (a->input.rows)
        a->input_product =
            reinterpret_cast<const xph_kernel *>(xph_cuda_first(xph_cuda_linear, &a->input, refused, &bit));
    return a->input_product ? bit : 0;
}

const xph_cuda_candidate xph_cuda_rnn[] = {
    {"rnn_narrow", narrow_accepts, narrow_scratch, narrow_launch},
    {"rnn_cluster", cluster_accepts, tensor_scratch, cluster_launch},
    {"rnn_tensor", tensor_accepts, tensor_scratch, tensor_launch},
    {"rnn_stay", stay_accepts, scratch, stay_launch},
    {"rnn_cluster_floats", cluster_floats_accepts, scratch, cluster_floats_launch},
    {"rnn_few", few_accepts, scratch, launch<few_tile>},
    {"rnn", accepts, scratch, launch<wide_tile>},
    {nullptr, nullptr, nullptr, nullptr},
};
