/* LSTM and GRU, forward (XPH_OP_RNN): what recurs; the input parts of the gates are made before. A frame is a launch. A
 * block makes all gates of UNITS units of ROWS streams: tiles of h and of the weights, DEPTH deep, come into shared
 * memory through registers while the tile before them is multiplied; a thread has sums for TR streams and all gates of TU
 * units, of one strand. When strands are added, gates meet their input parts where they are and nothing but the new
 * state leaves the block.
 *
 * State goes from frame to frame through scratch, h | c of a stream side by side as in state_in.
 */
#include "rnn.cuh"

#include <math.h>

namespace
{

constexpr int STRANDS = 4, WARP_ROWS = 4, LANE_ROWS = 2, LANE_UNITS = 4;

/* A block has 4 x 2 warps, a warp for every strand 2 x 4 threads. Rows in shared memory are ROOM quads apart, so that what
 * half a warp reads at once lies in different banks. BLOCKS: of a multiprocessor at once. */
template <int TR_, int TU_, int DEPTH_, int BLOCKS_> struct tile {
    static constexpr int TR = TR_, TU = TU_, DEPTH = DEPTH_, BLOCKS = BLOCKS_, ROOM = DEPTH / QUAD + 2;
    static constexpr int ROWS = WARP_ROWS * LANE_ROWS * TR, UNITS = 2 * LANE_UNITS * TU;
};
using wide_tile = tile<4, 2, 32, 1>;
using few_tile = tile<1, 1, 128, 2>;
constexpr int64_t FEW_STREAMS = 64;

struct frame {
    xph_rnn_args a;
    int64_t t;
    const float *before; /* h | c of every stream, or NULL: zeros */
    float *after;        /* or NULL */
    int64_t ld_before, ld_after;
    bool quads_before, quads_w;
};

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

/* ---- cells ---- */

template <int G> struct cell {
    float gx[G], h, c; /* input parts, the state before */
    float saved[G + 1];
    bool fresh; /* nothing was before */

    /* gate: bias + W h */
    __device__ void step(const float (&gate)[G])
    {
        if constexpr (G == LSTM) {
            const float i = sigmoid(gx[0] + gate[0]), f = sigmoid(gx[1] + gate[1]);
            const float g = tanhf(gx[2] + gate[2]), o = sigmoid(gx[3] + gate[3]);
            c = fmaf(f, c, i * g);
            h = o * tanhf(c);
            saved[0] = i;
            saved[1] = f;
            saved[2] = g;
            saved[3] = o;
            saved[4] = c;
        } else {
            const float r = sigmoid(gx[0] + gate[0]), z = sigmoid(gx[1] + gate[1]);
            const float n = tanhf(fmaf(r, gate[2], gx[2]));
            h = fmaf(z, h - n, n);
            saved[0] = r;
            saved[1] = z;
            saved[2] = n;
            saved[3] = gate[2];
        }
    }
};

template <class Stored, int G>
__device__ inline cell<G> cell_before(const frame &f, int64_t stream, int64_t unit)
{
    const xph_rnn_args &a = f.a;
    cell<G> to;
    const Stored *gx = static_cast<const Stored *>(a.gx) + (stream * a.time + f.t) * a.ldgx + unit;
    const float *state = f.before + stream * f.ld_before + unit;
    to.fresh = !f.before || is_fresh(a, stream, f.t);
    XPH_UNROLL
    for (int g = 0; g < G; g++) to.gx[g] = load(gx + g * a.hidden);
    to.h = to.fresh || G == LSTM ? 0.0f : state[0];
    to.c = to.fresh || G == GRU ? 0.0f : state[a.hidden];
    return to;
}

template <class Stored, int G>
__device__ inline void cell_after(const frame &f, int64_t stream, int64_t unit, const cell<G> &from)
{
    const xph_rnn_args &a = f.a;
    const int64_t row = stream * a.time + f.t;
    store(static_cast<Stored *>(a.y) + row * a.ldy + unit, from.h);
    if (f.after) {
        float *state = f.after + stream * f.ld_after + unit;
        state[0] = from.h;
        if (G == LSTM) state[a.hidden] = from.c;
    }
    if (!a.saved) return;
    float *saved = static_cast<float *>(a.saved) + row * (G + 1) * a.hidden + unit;
    XPH_UNROLL
    for (int g = 0; g < G + 1; g++) saved[g * a.hidden] = from.saved[g];
}

/* ---- a frame ---- */

/* sum[(i TU + j) G + g] */
template <int G, class Tile>
__device__ inline void add_tile(const place<Tile> &p, const float4 (*h)[Tile::ROOM],
                                const float4 (*w)[Tile::ROOM], float (&sum)[Tile::TR * Tile::TU * G])
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
    constexpr int COLUMNS = G * Tile::UNITS, SUMS = Tile::TR * Tile::TU * G;
    XPH_SHARED(float4, h, [2][Tile::ROWS][Tile::ROOM]);
    XPH_SHARED(float4, w, [2][COLUMNS][Tile::ROOM]);
    const xph_rnn_args &a = f.a;
    const int64_t first = int64_t(blockIdx.x) * Tile::ROWS, unit0 = int64_t(blockIdx.y) * Tile::UNITS;
    const int hidden = static_cast<int>(a.hidden);
    const place<Tile> p;
    const int own = Tile::TR == STRANDS ? p.strand : 0;
    const int64_t stream = first + p.row + LANE_ROWS * own;
    const bool works = stream < a.batch && (Tile::TR == STRANDS || p.strand == 0);
    /* Nobody looks at sums of streams and units that are not there: they get others' numbers. */
    share<Tile::ROWS, Tile::DEPTH, Tile::ROOM> left(
        [&](int r) { return f.before + (first + r < a.batch ? first + r : first) * f.ld_before; });
    share<COLUMNS, Tile::DEPTH, Tile::ROOM> right([&](int r) {
        const int64_t unit = unit0 + r % Tile::UNITS;
        return static_cast<const float *>(a.w) +
               (r / Tile::UNITS * a.hidden + (unit < hidden ? unit : unit0)) * a.hidden;
    });
    cell<G> cells[Tile::TU] = {};
    float sum[SUMS];
    const int depth = f.before ? hidden : 0;
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

/* State from one place to another, zeros from nowhere. */
__global__ void __launch_bounds__(RNN_THREADS)
    rnn_carry(const float *from, int64_t ld_from, float *to, int64_t ld_to, int64_t streams, int64_t width)
{
    const int64_t i = int64_t(blockIdx.x) * RNN_THREADS + threadIdx.x;
    if (i >= streams * width) return;
    to[i / width * ld_to + i % width] = from ? from[i / width * ld_from + i % width] : 0.0f;
}

/* ---- candidates ---- */

int64_t room_of(const xph_rnn_args *a)
{
    return round_up(state_width(a), QUAD);
}

bool accepts(const void *args)
{
    return rnn_fits(static_cast<const xph_rnn_args *>(args));
}

bool few_accepts(const void *args)
{
    return static_cast<const xph_rnn_args *>(args)->batch <= FEW_STREAMS && accepts(args);
}

/* The state of two frames; of one where a frame alone may find its state_out where state_in is. */
size_t scratch(const void *args)
{
    const xph_rnn_args *a = static_cast<const xph_rnn_args *>(args);
    return static_cast<size_t>((a->time > 1 ? 2 : 1) * a->batch * room_of(a)) * sizeof(float);
}

bool overlap(const xph_rnn_args *a)
{
    const uintptr_t in = reinterpret_cast<uintptr_t>(a->state_in),
                    out = reinterpret_cast<uintptr_t>(a->state_out);
    const uintptr_t bytes = static_cast<uintptr_t>(a->batch * a->ld_state) * sizeof(float);
    return a->state_in && a->state_out && in < out + bytes && out < in + bytes;
}

void carry(const xph_rnn_args *a, float *to, int64_t ld, cudaStream_t stream)
{
    const int64_t width = state_width(a);
    const dim3 grid(as_grid(blocks_of(a->batch * width, RNN_THREADS)));
    XPH_LAUNCH(rnn_carry, grid, dim3(RNN_THREADS), 0, stream, static_cast<const float *>(a->state_in),
               a->ld_state, to, ld, a->batch, width);
}

template <class Stored, int G, class Tile> void frames(const xph_rnn_args *a, cudaStream_t stream)
{
    const dim3 grid(as_grid(blocks_of(a->batch, Tile::ROWS)), as_grid(blocks_of(a->hidden, Tile::UNITS)));
    const int64_t room = room_of(a);
    float *const states = static_cast<float *>(a->scratch), *const last = static_cast<float *>(a->state_out);
    frame f = {*a, 0, static_cast<const float *>(a->state_in), nullptr, a->ld_state, 0, false, false};
    if (a->time == 1 && overlap(a)) {
        carry(a, states, room, stream);
        f.before = states;
        f.ld_before = room;
    }
    f.quads_w = in_quads(a->w, a->hidden, a->hidden);
    for (f.t = 0; f.t < a->time; f.t++) {
        const bool ends = f.t + 1 == a->time;
        f.after = ends ? last : states + f.t % 2 * a->batch * room;
        f.ld_after = ends ? a->ld_state : room;
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

template <class Tile> int launch(const void *args, cudaStream_t stream)
{
    const xph_rnn_args *a = static_cast<const xph_rnn_args *>(args);
    const int error = a->input.rows ? xph_cuda_run(xph_cuda_linear, &a->input, stream) : cudaSuccess;
    if (error || !a->batch || !a->hidden) return error;
    if (!a->time && a->state_out) carry(a, static_cast<float *>(a->state_out), a->ld_state, stream);
    if (a->type == XPH_BF16)
        frames_of_kind<__nv_bfloat16, Tile>(a, stream);
    else
        frames_of_kind<float, Tile>(a, stream);
    return cudaGetLastError();
}

}  // namespace

const xph_cuda_candidate xph_cuda_rnn[] = {
    {"rnn_few", few_accepts, scratch, launch<few_tile>},
    {"rnn", accepts, scratch, launch<wide_tile>},
    {nullptr, nullptr, nullptr, nullptr},
};
