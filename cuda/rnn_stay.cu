/* LSTM and GRU of few units, forward, in one launch: streams do not meet, so a block takes ROWS of them through all frames
 * with all recurrent weights in its shared memory. A thread has one strand of all gates of a unit, for every stream; strands
 * of 8 neighbouring units are a warp. h lies in shared memory twice, so that a frame takes one barrier; c stays in a register.
 * The sums of rnn.cu in their order, so its bits.
 */
#include "rnn_cell.cuh"

namespace
{

constexpr int ROWS = 2, STRANDS = 4, LANE_UNITS = WARP / STRANDS, MOST_UNITS = 128;
constexpr int64_t LEAST_FRAMES = 3;

/* Quads of a row in shared memory: as many for every strand, and rows one quad apart in banks. */
__host__ __device__ inline int row_quads(int64_t hidden)
{
    return static_cast<int>(blocks_of(hidden, QUAD * STRANDS)) * STRANDS + 1;
}

/* Sums of gate g and stream r, of one strand. */
template <int G>
__device__ inline void multiply(const float4 *w, const float4 *h, int hidden, int ld, float (&sum)[ROWS * G])
{
    XPH_UNROLL
    for (int n = 0; n < ROWS * G; n++) sum[n] = 0.0f;
    for (int q = 0; q < ld - 1; q += STRANDS) {
        float4 x[ROWS];
        XPH_UNROLL
        for (int r = 0; r < ROWS; r++) x[r] = h[r * ld + q];
        XPH_UNROLL
        for (int g = 0; g < G; g++) {
            const float4 y = w[g * hidden * ld + q];
            XPH_UNROLL
            for (int r = 0; r < ROWS; r++) sum[r * G + g] = add_quad(x[r], y, sum[r * G + g]);
        }
    }
    XPH_UNROLL
    for (int bit = WARP / 2; bit >= LANE_UNITS; bit /= 2) {
        XPH_UNROLL
        for (int n = 0; n < ROWS * G; n++) sum[n] += __shfl_xor_sync(ALL_LANES, sum[n], bit);
    }
}

/* w: [G H][ld], h: [2][ROWS][ld]. Numbers behind the last are zeros. */
__device__ inline void bring(const xph_rnn_args &a, float4 *w, int64_t count, int ld, bool quads)
{
    const int hidden = static_cast<int>(a.hidden), step = static_cast<int>(blockDim.x);
    for (int i = static_cast<int>(threadIdx.x); i < count; i += step)
        w[i] = quad_of(static_cast<const float *>(a.w) + i / ld * a.hidden, i % ld * QUAD, hidden, quads);
    for (int i = static_cast<int>(threadIdx.x); i < 2 * ROWS * ld; i += step)
        w[count + i] = {0.0f, 0.0f, 0.0f, 0.0f};
}

template <class Stored, int G>
__global__ void __launch_bounds__(MOST_UNITS *STRANDS, 1)
    rnn_stay(const xph_rnn_args a, const int ld, const bool quads)
{
    XPH_ENTER();
    XPH_SHARED_DYNAMIC(float4, w);
    const int hidden = static_cast<int>(a.hidden), lane = static_cast<int>(threadIdx.x) % WARP;
    const int strand = lane / LANE_UNITS,
              unit = static_cast<int>(threadIdx.x) / WARP * LANE_UNITS + lane % LANE_UNITS;
    const int64_t count = int64_t(G) * hidden * ld, stream = int64_t(blockIdx.x) * ROWS + strand;
    const bool works = strand < ROWS && stream < a.batch && unit < hidden;
    float4 *const h = w + count;
    const float4 *const mine = w + (unit < hidden ? unit : 0) * ld + strand;
    const Stored *gx = static_cast<const Stored *>(a.gx) + (works ? stream * a.time * a.ldgx + unit : 0);
    const float *bias = static_cast<const float *>(a.bias) + (works ? unit : 0);
    cell<G> now = {};
    float next[G];
    bring(a, w, count, ld, quads);
    __syncthreads();
    if (works) {
        const float *state = static_cast<const float *>(a.state_in);
        if (state) state += stream * a.ld_state + unit;
        now.h = state ? state[0] : 0.0f;
        now.c = state && G == LSTM ? state[hidden] : 0.0f;
        reinterpret_cast<float *>(h + strand * ld)[unit] = now.h;
        XPH_UNROLL
        for (int g = 0; g < G; g++) next[g] = load(gx + g * hidden);
    }
    frame f = {a, 0, nullptr, nullptr, 0, a.ld_state, false, false};
    for (int at = 0; f.t < a.time; f.t++, at ^= 1) {
        float sum[ROWS * G], gate[G];
        __syncthreads(); /* h is there, and nobody reads any more what is written below */
        multiply<G>(mine, h + at * ROWS * ld + strand, hidden, ld, sum);
        if (!works) continue;
        now.fresh = (f.t == 0 && !a.state_in) || is_fresh(a, stream, f.t);
        if (now.fresh) now.h = now.c = 0.0f;
        XPH_UNROLL
        for (int g = 0; g < G; g++) {
            now.gx[g] = next[g];
            gate[g] = load(bias + g * hidden) + (now.fresh ? 0.0f
                                                 : strand  ? sum[(ROWS - 1) * G + g]
                                                           : sum[g]);
        }
        gx += a.ldgx;
        XPH_UNROLL
        for (int g = 0; g < G; g++) next[g] = f.t + 1 < a.time ? load(gx + g * hidden) : 0.0f;
        now.step(gate);
        f.after = f.t + 1 == a.time ? static_cast<float *>(a.state_out) : nullptr;
        cell_after<Stored, G>(f, stream, unit, now);
        reinterpret_cast<float *>(h + ((at ^ 1) * ROWS + strand) * ld)[unit] = now.h;
    }
}

int64_t bytes_of(const xph_rnn_args *a)
{
    return (gates_of(a) + 2 * ROWS) * row_quads(a->hidden) * int64_t(sizeof(float4));
}

template <class Stored, int G> int run(const xph_rnn_args *a, cudaStream_t stream)
{
    const int bytes = static_cast<int>(bytes_of(a));
    const dim3 block(as_grid(blocks_of(a->hidden, LANE_UNITS)) * WARP);
    const cudaError_t code = xph_allow_shared(rnn_stay<Stored, G>);
    if (code) return code;
    XPH_LAUNCH((rnn_stay<Stored, G>), dim3(as_grid(blocks_of(a->batch, ROWS))), block,
               static_cast<size_t>(bytes), stream, *a, row_quads(a->hidden),
               in_quads(a->w, a->hidden, a->hidden));
    return cudaGetLastError();
}

}  // namespace

bool rnn_stay_fits(const xph_rnn_args *a)
{
    return rnn_fits(a) && a->time >= LEAST_FRAMES && a->hidden <= MOST_UNITS &&
           bytes_of(a) <= xph_most_shared();
}

int rnn_stay_run(const xph_rnn_args *a, cudaStream_t stream)
{
    return with_stored(a->type, [&](auto zero) {
        using Stored = decltype(zero);
        return a->kind == XPH_RNN_LSTM ? run<Stored, LSTM>(a, stream) : run<Stored, GRU>(a, stream);
    });
}
