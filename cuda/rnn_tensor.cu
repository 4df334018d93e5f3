/* LSTM and GRU, forward, by matrix units: rows of bfloat16 or float16 with the packed weights, rows of float
 * where TF32 is allowed. As in rnn.cu a frame is a launch and nothing but the new state leaves a block; here
 * a warp makes all gates of 4 units of 16 streams. It reads its weights and h from L2 straight into
 * registers, in the order that loads of 16 bytes give: a lane's four words are the words of two steps, and
 * the inner dimension is summed in that order.
 *
 * A second copy of h lies in scratch, in the layout that the matrix units read.
 */
#include "rnn_cell.cuh"
#include "tensor.cuh"

namespace
{

constexpr int ROWS = 16, WARP_UNITS = 4, WARPS_DOWN = 2, WARPS_ACROSS = 4;
constexpr int BLOCK_ROWS = ROWS * WARPS_DOWN, BLOCK_UNITS = WARP_UNITS * WARPS_ACROSS;
constexpr int64_t WHOLE = 32; /* hidden is a multiple of it */

/* Operands of a frame: rows of `groups` groups of words. h NULL: nothing was before. */
struct operands {
    const float *w, *h;
    void *h_after; /* NULL: not wanted */
    int groups;
};

/* The first product's columns are the gates 0 and 1 of the warp's four units, the second's 2 and 3 (a GRU's 2 once more), so
 * that lane 4 g + t ends with all gates of unit t of the rows g and g + 8. */
template <class Stored, class Kind, int G>
__global__ void __launch_bounds__(RNN_THREADS, 2) rnn_frame_tensor(const frame f, const operands o)
{
    XPH_ENTER();
    const xph_rnn_args &a = f.a;
    const int lane = static_cast<int>(threadIdx.x) % WARP, warp = static_cast<int>(threadIdx.x) / WARP;
    const int g = lane / 4, t = lane % 4;
    const int64_t row0 = int64_t(blockIdx.x) * BLOCK_ROWS + warp % WARPS_DOWN * ROWS;
    const int64_t unit0 = int64_t(blockIdx.y) * BLOCK_UNITS + warp / WARPS_DOWN * WARP_UNITS,
                  unit = unit0 + t;
    const int64_t words = int64_t(o.groups) * GROUP;
    const float *w[2], *h[2];
    cell<G> cells[2] = {};
    products p = {};
    XPH_UNROLL
    for (int i = 0; i < 2; i++) {
        const int64_t stream = row0 + g + 8 * i;
        const int gate = 2 * i + g % 2 < G ? 2 * i + g % 2 : G - 1;
        w[i] = o.w + (gate * a.hidden + unit0 + g / 2) * words + t * QUAD;
        h[i] = o.h ? o.h + (stream < a.batch ? stream : 0) * words + t * QUAD : nullptr;
        if (stream < a.batch) cells[i] = cell_before<Stored, G>(f, stream, unit);
    }
    if (o.h) multiply<Kind>(w, h, o.groups, &p);
    XPH_UNROLL
    for (int i = 0; i < 2; i++) {
        const int64_t stream = row0 + g + 8 * i;
        if (stream >= a.batch) continue;
        float gate[G];
        XPH_UNROLL
        for (int k = 0; k < G; k++) {
            const float sum = p.sum[k / 2][0][2 * i + k % 2] + p.sum[k / 2][1][2 * i + k % 2];
            gate[k] = load(static_cast<const float *>(a.bias) + k * a.hidden + unit) +
                      (cells[i].fresh ? 0.0f : sum);
        }
        cells[i].step(gate);
        cell_after<Stored, G>(f, stream, unit, cells[i]);
        if (o.h_after)
            store(static_cast<typename Kind::Number *>(o.h_after) + stream * a.hidden + unit, cells[i].h);
    }
}

/* h of state_in as the units read it. */
template <class Number>
__global__ void __launch_bounds__(RNN_THREADS) rnn_first_h(const xph_rnn_args a, Number *to)
{
    XPH_ENTER();
    const int64_t i = int64_t(blockIdx.x) * RNN_THREADS + threadIdx.x, stream = i / a.hidden,
                  unit = i % a.hidden;
    if (stream >= a.batch) return;
    store(to + i, load_changing(static_cast<const float *>(a.state_in) + stream * a.ld_state + unit));
}

/* ---- frames ---- */

int64_t state_ld(const xph_rnn_args *a)
{
    return round_up(state_width(a), QUAD);
}
/* Of h as the units read it, in bytes. */
int64_t operand_bytes(const xph_rnn_args *a)
{
    return a->batch * a->hidden * (a->type == XPH_F32 ? 4 : 2);
}

/* One frame alone needs no state in scratch: the thread that reads a number of state_in writes that of state_out. */
template <class Stored, class Kind, int G> void frames(const xph_rnn_args *a, cudaStream_t stream)
{
    using Number = typename Kind::Number;
    const dim3 grid(as_grid(blocks_of(a->batch, BLOCK_ROWS)), as_grid(blocks_of(a->hidden, BLOCK_UNITS)));
    const dim3 numbers(as_grid(blocks_of(a->batch * a->hidden, RNN_THREADS)));
    const int64_t ld = state_ld(a);
    char *const read = static_cast<char *>(a->scratch);
    float *const states = reinterpret_cast<float *>(read + 2 * operand_bytes(a));
    frame f = {*a, 0, static_cast<const float *>(a->state_in), nullptr, a->ld_state, 0, false, false};
    operands o = {static_cast<const float *>(a->type == XPH_F32 ? a->w : a->packed), nullptr, nullptr, 0};
    o.groups = static_cast<int>(a->hidden / (GROUP * Kind::PER_WORD));
    if (a->state_in) {
        Number *to = reinterpret_cast<Number *>(read + operand_bytes(a));
        XPH_LAUNCH((rnn_first_h<Number>), numbers, dim3(RNN_THREADS), 0, stream, *a, to);
        o.h = reinterpret_cast<const float *>(to);
    }
    for (f.t = 0; f.t < a->time; f.t++) {
        const bool ends = f.t + 1 == a->time;
        f.after = ends ? static_cast<float *>(a->state_out) : states + f.t % 2 * a->batch * ld;
        f.ld_after = ends ? a->ld_state : ld;
        o.h_after = ends ? nullptr : read + f.t % 2 * operand_bytes(a);
        XPH_LAUNCH((rnn_frame_tensor<Stored, Kind, G>), grid, dim3(RNN_THREADS), 0, stream, f, o);
        f.before = f.after;
        f.ld_before = f.ld_after;
        o.h = static_cast<const float *>(o.h_after);
    }
}

template <class Stored, class Kind> void frames_of_kind(const xph_rnn_args *a, cudaStream_t stream)
{
    if (a->kind == XPH_RNN_LSTM)
        frames<Stored, Kind, LSTM>(a, stream);
    else
        frames<Stored, Kind, GRU>(a, stream);
}

}  // namespace

bool rnn_tensor_fits(const xph_rnn_args *a)
{
    return rnn_fits(a) && a->hidden > 0 && a->hidden % WHOLE == 0 &&
           (a->type != XPH_F32 || a->math == XPH_MATH_TF32);
}

size_t rnn_tensor_scratch(const xph_rnn_args *a)
{
    const int64_t states = a->time > 1 ? 2 * a->batch * state_ld(a) : 0;
    return static_cast<size_t>(2 * operand_bytes(a) + states * int64_t(sizeof(float)));
}

bool rnn_tensor_ready(const xph_rnn_args *a)
{
    const void *w = a->type == XPH_F32 ? a->w : a->packed;
    return w && in_quads(w, a->hidden, a->hidden);
}

int rnn_tensor_frames(const xph_rnn_args *a, cudaStream_t stream)
{
    if (a->type == XPH_BF16)
        frames_of_kind<__nv_bfloat16, by_bf16>(a, stream);
    else if (a->type == XPH_F16)
        frames_of_kind<__half, by_f16>(a, stream);
    else
        frames_of_kind<float, by_tf32>(a, stream);
    return cudaGetLastError();
}
