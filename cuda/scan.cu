/* Selective scan (Mamba's S6): forward over frames, one frame, and the rates prepared for both.
 *
 * Over frames a channel belongs to 1, 2 or 4 lanes that keep its states in registers and walk through time; b and c of
 * STAGE frames at a time are staged in shared memory, two buffers with one barrier per stage. Inputs are read where the
 * products before left them, row by row, neighbouring channels by neighbouring lanes. Of one frame nothing is staged:
 * four lanes per channel, whose states they read and write as four floats at a time.
 */
#include "scan.cuh"

namespace
{

constexpr int THREADS = 128, STAGE = 8;

/* Fewest lanes per channel that hold its states and rates without spilling. */
constexpr int fewest_lanes(int padded)
{
    return padded <= 16 ? 1 : padded / 16;
}

/* The states of a lane one frame on; returns the channel's sum of c h, in all its lanes. */
template <int PADDED, int LANES>
__device__ inline float advance(float (&h)[PADDED / LANES], const float (&rate)[PADDED / LANES], float delta,
                                float inflow, bool cut, const float *b, const float *c)
{
    constexpr int CHAIN = PADDED / CHAINS, OWN = CHAINS / LANES;
    float sum[OWN];
    XPH_UNROLL
    for (int k = 0; k < OWN; k++) {
        sum[k] = 0.0f;
        XPH_UNROLL
        for (int i = 0; i < CHAIN; i++) {
            const int n = k * CHAIN + i;
            h[n] = scan_next(exp2_fast(delta * rate[n]), h[n], cut, inflow * b[n]);
            sum[k] = fmaf(c[n], h[n], sum[k]);
        }
    }
    XPH_UNROLL
    for (int k = 1; k < OWN; k *= 2) {
        XPH_UNROLL
        for (int i = 0; i + k < OWN; i += 2 * k) sum[i] += sum[i + k];
    }
    XPH_UNROLL
    for (int lane = 1; lane < LANES; lane *= 2) sum[0] += __shfl_xor_sync(ALL_LANES, sum[0], lane);
    return sum[0];
}

/* y = (sum + skip x) SiLU(z) */
template <class Stored>
__device__ inline void leave(const xph_scan_args &a, int64_t row, int64_t channel, float sum, float skip,
                             float x, float z)
{
    float y = fmaf(skip, x, sum);
    if (a.z) y *= silu(z);
    store(static_cast<Stored *>(a.y) + row * a.ldy + channel, y);
}

__device__ inline float skip_of(const xph_scan_args &a, int64_t channel)
{
    return a.skip ? load(static_cast<const float *>(a.skip) + channel) : 0.0f;
}

/* ---- over frames ---- */

template <int PADDED> struct stage {
    float row[STAGE][2 * PADDED]; /* b | c */
    int cut[STAGE];
};

template <class Stored, int PADDED>
__device__ inline void fill(stage<PADDED> *s, const xph_scan_args &a, int64_t stream, int64_t t0)
{
    const int thread = static_cast<int>(threadIdx.x);
    for (int i = thread; i < STAGE * 2 * PADDED; i += THREADS) {
        const int j = i / (2 * PADDED), n = i % (2 * PADDED);
        const bool there = t0 + j < a.time;
        const int64_t row = stream * a.time + t0 + j;
        const float b = there && n < PADDED ? scan_row<Stored>(a, a.b, a.ldb, row, n) : 0.0f;
        s->row[j][n] = there && n >= PADDED ? scan_row<Stored>(a, a.c, a.ldc, row, n - PADDED) : b;
    }
    if (thread < STAGE)
        s->cut[thread] = a.reset && t0 + thread < a.time && a.reset[stream * a.time + t0 + thread];
}

/* Inputs of a channel in the frames of a stage, asked for together. */
template <class Stored> struct inputs {
    float x[STAGE], dt[STAGE], z[STAGE];

    __device__ void read(const xph_scan_args &a, int64_t row, int64_t channel, int frames)
    {
        XPH_UNROLL
        for (int j = 0; j < STAGE; j++) {
            if (j >= frames) continue;
            x[j] = load(static_cast<const Stored *>(a.x) + (row + j) * a.ldx + channel);
            dt[j] = load(static_cast<const Stored *>(a.dt) + (row + j) * a.lddt + channel);
            z[j] = a.z ? load(static_cast<const Stored *>(a.z) + (row + j) * a.ldz + channel) : 0.0f;
        }
    }
};

template <class Stored, int PADDED, int LANES>
__global__ void __launch_bounds__(THREADS, 4) scan_frames(const xph_scan_args a)
{
    constexpr int OWN = PADDED / LANES, CHANNELS = THREADS / LANES;
    XPH_SHARED(stage<PADDED>, staged, [2]);
    const int thread = static_cast<int>(threadIdx.x), part = thread % LANES;
    const int64_t stream = blockIdx.x, channel = int64_t(blockIdx.y) * CHANNELS + thread / LANES;
    const bool there = channel < a.width;
    const int64_t mine =
        there ? channel : a.width - 1; /* lanes too many read what others do, and write nothing */
    const int64_t state = stream * a.ld_state + mine * a.states;
    const float *in = static_cast<const float *>(a.state_in);
    float *out = static_cast<float *>(a.state_out);
    const float skip = skip_of(a, mine);
    float h[OWN], rate[OWN];
    XPH_UNROLL
    for (int i = 0; i < OWN; i++) {
        const int n = part * OWN + i;
        rate[i] = scan_rate(a, mine, n);
        h[i] = in && n < a.states ? in[state + n] : 0.0f;
    }
    fill<Stored>(&staged[0], a, stream, 0);
    int buffer = 0;
    for (int64_t t0 = 0; t0 < a.time; t0 += STAGE, buffer ^= 1) {
        const int frames = static_cast<int>(t0 + STAGE < a.time ? STAGE : a.time - t0);
        const int64_t row = stream * a.time + t0;
        __syncthreads();
        if (t0 + STAGE < a.time) fill<Stored>(&staged[buffer ^ 1], a, stream, t0 + STAGE);
        inputs<Stored> input;
        input.read(a, row, mine, frames);
        XPH_UNROLL
        for (int j = 0; j < STAGE; j++) {
            if (j >= frames) continue;
            const float *b = staged[buffer].row[j] + part * OWN;
            const float delta = softplus(input.dt[j]);
            const float sum = advance<PADDED, LANES>(h, rate, delta, delta * input.x[j],
                                                     staged[buffer].cut[j], b, b + PADDED);
            if (there && part == 0) leave<Stored>(a, row + j, channel, sum, skip, input.x[j], input.z[j]);
        }
    }
    if (!out || !there) return;
    XPH_UNROLL
    for (int i = 0; i < OWN; i++)
        if (part * OWN + i < a.states) out[state + part * OWN + i] = h[i];
}

template <class Stored, int PADDED, int LANES> int launch_frames(const xph_scan_args *a, cudaStream_t stream)
{
    const dim3 grid(as_grid(a->batch), as_grid(blocks_of(a->width * LANES, THREADS)));
    XPH_LAUNCH((scan_frames<Stored, PADDED, LANES>), grid, dim3(THREADS), 0, stream, *a);
    return cudaGetLastError();
}

template <class Stored, int PADDED> struct few_lanes {
    static int run(const xph_scan_args *a, cudaStream_t stream)
    {
        return launch_frames<Stored, PADDED, fewest_lanes(PADDED)>(a, stream);
    }
};
template <class Stored, int PADDED> struct four_lanes {
    static int run(const xph_scan_args *a, cudaStream_t stream)
    {
        return launch_frames<Stored, PADDED, CHAINS>(a, stream);
    }
};

/* ---- one frame ---- */

/* Reads and writes of whole float4s: rates prepared or not, states as they lie. */
inline bool lies_in_fours(const xph_scan_args *a, int padded)
{
    const uintptr_t either =
        reinterpret_cast<uintptr_t>(a->state_in) | reinterpret_cast<uintptr_t>(a->state_out);
    return padded >= 16 && a->states == padded && a->ld_state % 4 == 0 && either % 16 == 0;
}

template <int COUNT>
__device__ inline void read_states(float (&h)[COUNT], const float *from, bool fours, int count)
{
    if constexpr (COUNT % 4 == 0) {
        XPH_UNROLL
        for (int i = 0; fours && i < COUNT; i += 4) {
            const float4 four = *reinterpret_cast<const float4 *>(from + i);
            h[i] = four.x, h[i + 1] = four.y, h[i + 2] = four.z, h[i + 3] = four.w;
        }
    }
    XPH_UNROLL
    for (int i = 0; !fours && i < COUNT; i++) h[i] = i < count ? from[i] : 0.0f;
}

template <int COUNT>
__device__ inline void write_states(const float (&h)[COUNT], float *to, bool fours, int count)
{
    if constexpr (COUNT % 4 == 0) {
        XPH_UNROLL
        for (int i = 0; fours && i < COUNT; i += 4)
            *reinterpret_cast<float4 *>(to + i) = make_float4(h[i], h[i + 1], h[i + 2], h[i + 3]);
    }
    XPH_UNROLL
    for (int i = 0; !fours && i < COUNT; i++)
        if (i < count) to[i] = h[i];
}

template <class Stored, int PADDED>
__global__ void __launch_bounds__(THREADS, 4) scan_step(const xph_scan_args a, bool fours)
{
    constexpr int OWN = PADDED / CHAINS;
    const int thread = static_cast<int>(threadIdx.x), part = thread % CHAINS, first = part * OWN;
    const int64_t stream = blockIdx.x, channel = int64_t(blockIdx.y) * (THREADS / CHAINS) + thread / CHAINS;
    const bool there = channel < a.width;
    const int64_t mine = there ? channel : a.width - 1;
    const int64_t state = stream * a.ld_state + mine * a.states + first;
    const int count =
        static_cast<int>(a.states) - first; /* of the states from first on, below 0 where none is */
    float h[OWN], rate[OWN], b[OWN], c[OWN];
    XPH_UNROLL
    for (int i = 0; i < OWN; i++) {
        rate[i] = scan_rate(a, mine, first + i);
        b[i] = scan_row<Stored>(a, a.b, a.ldb, stream, first + i);
        c[i] = scan_row<Stored>(a, a.c, a.ldc, stream, first + i);
        h[i] = 0.0f;
    }
    if (a.state_in) read_states(h, static_cast<const float *>(a.state_in) + state, fours, count);
    inputs<Stored> input;
    input.read(a, stream, mine, 1);
    const float delta = softplus(input.dt[0]);
    const bool cut = a.reset && a.reset[stream];
    const float sum = advance<PADDED, CHAINS>(h, rate, delta, delta * input.x[0], cut, b, c);
    if (!there) return;
    if (part == 0) leave<Stored>(a, stream, channel, sum, skip_of(a, channel), input.x[0], input.z[0]);
    if (a.state_out) write_states(h, static_cast<float *>(a.state_out) + state, fours, count);
}

template <class Stored, int PADDED> struct one_frame {
    static int run(const xph_scan_args *a, cudaStream_t stream)
    {
        const dim3 grid(as_grid(a->batch), as_grid(blocks_of(a->width * CHAINS, THREADS)));
        XPH_LAUNCH((scan_step<Stored, PADDED>), grid, dim3(THREADS), 0, stream, *a, lies_in_fours(a, PADDED));
        return cudaGetLastError();
    }
};

/* ---- candidates ---- */

/* Channels from which one lane each keeps every GPU busy: four warps for each of some 130 multiprocessors. */
constexpr int64_t MANY_CHANNELS = 4 * 130 * WARP;

bool step_accepts(const void *args)
{
    const xph_scan_args *a = static_cast<const xph_scan_args *>(args);
    return a->time == 1 && scan_fits(a);
}

bool many_accepts(const void *args)
{
    const xph_scan_args *a = static_cast<const xph_scan_args *>(args);
    return a->batch * a->width >= MANY_CHANNELS && scan_fits(a);
}

bool frames_accepts(const void *args)
{
    return scan_fits(static_cast<const xph_scan_args *>(args));
}

template <template <class, int> class Do> int launch(const void *args, cudaStream_t stream)
{
    const xph_scan_args *a = static_cast<const xph_scan_args *>(args);
    return a->batch && a->width ? scan_by_type<Do>(a, a, stream) : cudaSuccess;
}

/* ---- rates prepared ---- */

__global__ void __launch_bounds__(THREADS) scan_pack(const float *a_log, float *decay, int64_t count)
{
    const int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (i < count) decay[i] = scan_rate_of(a_log[i]);
}

bool pack_accepts(const void *)
{
    return true;
}

int pack_launch(const void *args, cudaStream_t stream)
{
    const xph_scan_pack_args *a = static_cast<const xph_scan_pack_args *>(args);
    const int64_t count = a->width * a->states;
    if (!count) return cudaSuccess;
    XPH_LAUNCH(scan_pack, dim3(as_grid(blocks_of(count, THREADS))), dim3(THREADS), 0, stream,
               static_cast<const float *>(a->a_log), static_cast<float *>(a->decay), count);
    return cudaGetLastError();
}

}  // namespace

const xph_cuda_candidate xph_cuda_scan[] = {
    {"scan_step", step_accepts, nullptr, launch<one_frame>},
    {"scan_many", many_accepts, nullptr, launch<few_lanes>},
    {"scan", frames_accepts, nullptr, launch<four_lanes>},
    {nullptr, nullptr, nullptr, nullptr},
};
const xph_cuda_candidate xph_cuda_scan_pack[] = {
    {"scan_pack", pack_accepts, nullptr, pack_launch},
    {nullptr, nullptr, nullptr, nullptr},
};
