/* Selective scan (Mamba's S6): forward over frames, one frame, and the rates prepared for both.
 *
 * Over frames a channel belongs to 1, 2 or 4 lanes that keep its states in registers and walk through time; b
 * and c of STAGE frames at a time are staged in shared memory, two buffers with one barrier per stage. Inputs
 * are read where the products before left them, row by row, neighbouring channels by neighbouring lanes. A
 * single frame is not staged: four lanes per channel read and write its states four floats at a time, and dt may be
 * made there, too, of the bottleneck.
 */
#include "scan.cuh"

namespace
{

constexpr int THREADS = 128, STAGE = CHUNK;

/* Fewest lanes per channel that hold its states and rates without spilling. */
constexpr int fewest_lanes(int padded)
{
    return padded <= 16 ? 1 : padded / 16;
}

/* y = (sum + skip x) SiLU(z) */
template <class Stored>
__device__ inline void leave(const xph_scan_args &a, int64_t row, int64_t channel, float sum, float skip,
                             float x, float z)
{
    float y = fmaf(skip, x, sum);
    if (a.z) y *= z * scan_sigmoid(z);
    store(static_cast<Stored *>(a.y) + row * a.ldy + channel, y);
}

/* ---- over frames ---- */

template <int PADDED> struct stage {
    alignas(16) float row[STAGE][2 * PADDED]; /* b | c */
    unsigned cuts;                            /* bit per frame */
};

/* What a thread stages: one column of b or c, of every EVERY-th frame. Addresses of a stage are one pointer and multiples
 * of a stride of 32 bits, which are one instruction each. */
template <class Stored, int PADDED> struct filler {
    static constexpr int EVERY = THREADS / (2 * PADDED);
    const Stored *from; /* of frame t0 + first */
    const uint8_t *reset;
    int ld, column, first;
    bool there;

    __device__ filler(const xph_scan_args &a, int64_t stream)
    {
        const int thread = static_cast<int>(threadIdx.x);
        column = thread % (2 * PADDED);
        first = thread / (2 * PADDED);
        const bool of_c = column >= PADDED;
        const int n = column % PADDED;
        const void *matrix = of_c ? a.c : a.b;
        const int64_t stride = of_c ? a.ldc : a.ldb;
        there = n < a.states;
        ld = static_cast<int>(stride);
        from = static_cast<const Stored *>(matrix) + (stream * a.time + first) * stride + (there ? n : 0);
        reset = a.reset ? a.reset + stream * a.time + thread : nullptr;
    }

    /* The next stage, of which so many frames are there. */
    __device__ void fill(stage<PADDED> *s, int frames)
    {
        const int thread = static_cast<int>(threadIdx.x);
        XPH_UNROLL
        for (int j = 0; j < STAGE; j += EVERY)
            if (first + j < STAGE)
                s->row[first + j][column] = there && first + j < frames ? load(from + j * ld) : 0.0f;
        if (thread < WARP) {
            const unsigned cuts = __ballot_sync(ALL_LANES, reset && thread < frames && *reset);
            if (thread == 0) s->cuts = cuts;
        }
        from += int64_t(STAGE) * ld;
        if (reset) reset += STAGE;
    }
};

/* The numbers of a channel, walked through a stage at a time. */
template <class Stored> struct channel_walk {
    const Stored *x, *dt, *z;
    Stored *y;
    int ldx, lddt, ldz, ldy;
    float skip, bias;
    bool gated, writes, plain;

    __device__ channel_walk(const xph_scan_args &a, int64_t stream, int64_t channel, bool writes_)
    {
        const int64_t row = stream * a.time;
        ldx = static_cast<int>(a.ldx);
        lddt = static_cast<int>(a.lddt);
        ldz = a.z ? static_cast<int>(a.ldz) : 0;
        ldy = static_cast<int>(a.ldy);
        gated = a.z;
        writes = writes_;
        plain = a.plain_delta;
        skip = scan_of_channel(a.skip, channel);
        bias = scan_of_channel(a.delta_bias, channel);
        x = static_cast<const Stored *>(a.x) + row * a.ldx + channel;
        dt = static_cast<const Stored *>(a.dt) + row * a.lddt + channel;
        z = gated ? static_cast<const Stored *>(a.z) + row * a.ldz + channel : x;
        y = a.y ? static_cast<Stored *>(a.y) + row * a.ldy + channel : nullptr;
    }

    /* One stage; FULL: all its frames are there. Inputs are loaded together. */
    template <int PADDED, int LANES, bool FULL>
    __device__ void run(float (&h)[PADDED / LANES], const float (&rate)[PADDED / LANES],
                        const stage<PADDED> &s, int part, int frames)
    {
        float in[STAGE], step[STAGE], gate[STAGE];
        XPH_UNROLL
        for (int j = 0; j < STAGE; j++) {
            if (!FULL && j >= frames) continue;
            in[j] = load(x + j * ldx);
            step[j] = load(dt + j * lddt);
            gate[j] = gated ? load(z + j * ldz) : 0.0f;
        }
        const unsigned cuts = s.cuts;
        XPH_UNROLL
        for (int j = 0; j < STAGE; j++) {
            if (!FULL && j >= frames) continue;
            const float *b = s.row[j] + part * (PADDED / LANES);
            const float delta = scan_delta(plain, step[j] + bias);
            const float sum =
                scan_advance<PADDED, LANES>(h, rate, delta, delta * in[j], cuts >> j & 1u, b, b + PADDED);
            float out = fmaf(skip, in[j], sum);
            if (gated) out *= gate[j] * scan_sigmoid(gate[j]);
            if (writes) store(y + j * ldy, out);
        }
        x += int64_t(STAGE) * ldx;
        dt += int64_t(STAGE) * lddt;
        z += int64_t(STAGE) * ldz;
        y += int64_t(STAGE) * ldy;
    }
};

/* Leaves the states of a lane before frame t. */
template <int PADDED, int LANES>
__device__ inline void leave_mark(const xph_scan_args &a, int t, const float (&h)[PADDED / LANES])
{
    constexpr int OWN = PADDED / LANES;
    const unsigned thread = this_thread();
    const int part = static_cast<int>(thread % LANES),
              channel = static_cast<int>(blockIdx.y * (THREADS / LANES) + thread / LANES);
    if (channel >= a.width) return;
    float *to = static_cast<float *>(a.marks) +
                (scan_mark_at(a, PADDED, t / CHUNK, part * OWN / 4, channel) * 4 + part * OWN % 4);
    const int quad = static_cast<int>(a.width) * 4; /* floats from one to the next */
    if constexpr (OWN % 4 == 0) {
        XPH_UNROLL
        for (int i = 0; i < OWN; i += 4)
            *reinterpret_cast<float4 *>(to + i / 4 * quad) = make_float4(h[i], h[i + 1], h[i + 2], h[i + 3]);
    } else {
        *reinterpret_cast<float2 *>(to) = make_float2(h[0], h[1]);
    }
}

template <class Stored, int PADDED, int LANES>
__global__ void __launch_bounds__(THREADS, 4) scan_frames(const xph_scan_args a)
{
    XPH_ENTER();
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
    float h[OWN], rate[OWN];
    XPH_UNROLL
    for (int i = 0; i < OWN; i++) {
        const int n = part * OWN + i;
        rate[i] = scan_rate(a, mine, n);
        h[i] = in && n < a.states ? in[state + n] : 0.0f;
    }
    filler<Stored, PADDED> fill(a, stream);
    channel_walk<Stored> walk(a, stream, mine, there && part == 0 && a.y);
    int left = static_cast<int>(a.time), buffer = 0;
    fill.fill(&staged[0], left);
    for (; left > 0; left -= STAGE, buffer ^= 1) {
        if (a.marks && left < a.time) leave_mark<PADDED, LANES>(a, static_cast<int>(a.time) - left, h);
        __syncthreads();
        if (left > STAGE) fill.fill(&staged[buffer ^ 1], left - STAGE);
        if (left >= STAGE)
            walk.template run<PADDED, LANES, true>(h, rate, staged[buffer], part, STAGE);
        else
            walk.template run<PADDED, LANES, false>(h, rate, staged[buffer], part, left);
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

/* A warp has WARP neighbouring channels. What there is one of to a channel lane l has of channel l: it makes delta, and y. The
 * states of a channel four lanes have, in WARP / QUADS rounds of QUADS channels: reads and writes of a round lie together. */
constexpr int QUADS = WARP / CHAINS, ROUNDS = WARP / QUADS;
constexpr int MOST_RANK = 64;

/* Reads and writes of whole float4s: rates prepared or not, states, b and c as they lie. */
inline bool lies_in_fours(const xph_scan_args *a, int padded)
{
    const uintptr_t all = reinterpret_cast<uintptr_t>(a->state_in) |
                          reinterpret_cast<uintptr_t>(a->state_out) | reinterpret_cast<uintptr_t>(a->decay) |
                          reinterpret_cast<uintptr_t>(a->a_log);
    return padded >= 16 && a->states == padded && a->ld_state % 4 == 0 && all % 16 == 0;
}

template <bool FOURS, int COUNT>
__device__ inline void read_numbers(float (&h)[COUNT], const float *from, int count)
{
    if constexpr (FOURS && COUNT % 4 == 0) {
        XPH_UNROLL
        for (int i = 0; i < COUNT; i += 4) {
            const float4 four = load_four(from + i);
            h[i] = four.x, h[i + 1] = four.y, h[i + 2] = four.z, h[i + 3] = four.w;
        }
    } else {
        XPH_UNROLL
        for (int i = 0; i < COUNT; i++) h[i] = i < count ? load_changing(from + i) : 0.0f;
    }
}

template <bool FOURS, int COUNT>
__device__ inline void write_numbers(const float (&h)[COUNT], float *to, int count)
{
    if constexpr (FOURS && COUNT % 4 == 0) {
        XPH_UNROLL
        for (int i = 0; i < COUNT; i += 4)
            store_four(to + i, make_float4(h[i], h[i + 1], h[i + 2], h[i + 3]));
    } else {
        XPH_UNROLL
        for (int i = 0; i < COUNT; i++)
            if (i < count) to[i] = h[i];
    }
}

/* Of states first, first + 1, ... of a channel. */
template <bool FOURS, int COUNT>
__device__ inline void read_rates(float (&rate)[COUNT], const xph_scan_args &a, int64_t channel, int first)
{
    const void *const made = a.decay ? a.decay : a.a_log;
    if (FOURS && !a.fixed) {
        read_numbers<true>(rate, static_cast<const float *>(made) + channel * a.states + first, COUNT);
        XPH_UNROLL
        for (int i = 0; !a.decay && i < COUNT; i++) rate[i] = scan_rate_of(rate[i]);
    } else {
        XPH_UNROLL
        for (int i = 0; i < COUNT; i++) rate[i] = scan_rate(a, channel, first + i);
    }
}

/* dt of a channel, its bias added: given, or a chain along the inner dimension, as linear.cu makes it. */
template <class Stored, bool MAKES>
__device__ inline float dt_of(const xph_scan_args &a, bool in_fours, int64_t stream, int64_t channel)
{
    const float bias = scan_of_channel(a.delta_bias, channel);
    if constexpr (!MAKES) {
        return load(static_cast<const Stored *>(a.dt) + stream * a.lddt + channel) + bias;
    } else {
        const xph_linear_args &p = a.step;
        const float *x = static_cast<const float *>(p.x) + stream * p.ldx;
        const float *w = static_cast<const float *>(p.w) + channel * p.in;
        const int in = static_cast<int>(p.in);
        float sum = 0.0f;
        int k = 0;
        for (; in_fours && k < in; k += 4) {
            const float4 four = load_four(w + k);
            sum = fmaf(load(x + k), four.x, sum);
            sum = fmaf(load(x + k + 1), four.y, sum);
            sum = fmaf(load(x + k + 2), four.z, sum);
            sum = fmaf(load(x + k + 3), four.w, sum);
        }
        for (; k < in; k++) sum = fmaf(load(x + k), load(w + k), sum);
        if (p.bias) sum += load(static_cast<const float *>(p.bias) + channel);
        return sum + bias;
    }
}

/* States of a lane in some rounds, from `round` on, and their rates. */
template <int OWN, int AT_ONCE, bool FOURS> struct held {
    float h[AT_ONCE][OWN], rate[AT_ONCE][OWN];

    /* lane is the channel's of round 0. */
    __device__ void fetch(const xph_scan_args &a, int64_t channel0, int64_t states, int first, bool carried)
    {
        XPH_UNROLL
        for (int r = 0; r < AT_ONCE; r++) {
            const int64_t of = channel0 + r * QUADS, channel = of < a.width ? of : a.width - 1;
            if (carried) {
                read_numbers<FOURS>(h[r],
                                    static_cast<const float *>(a.state_in) + states + channel * a.states,
                                    static_cast<int>(a.states) - first);
            } else {
                XPH_UNROLL
                for (int i = 0; i < OWN; i++) h[r][i] = 0.0f;
            }
            read_rates<FOURS>(rate[r], a, channel, first);
        }
    }
};

/* MAKES: dt, w_in_fours: of weights that are read four at a time. */
template <class Stored, int PADDED, bool FOURS, bool MAKES>
__global__ void __launch_bounds__(THREADS, PADDED <= 16   ? 6
                                           : PADDED <= 32 ? 4
                                                          : 2)
    scan_step(const xph_scan_args a, const bool w_in_fours)
{
    XPH_ENTER();
    constexpr int OWN = PADDED / CHAINS, AT_ONCE = OWN <= 4 ? ROUNDS : 1;
    const int thread = static_cast<int>(threadIdx.x), lane = thread % WARP, first = lane % CHAINS * OWN;
    const int64_t stream = blockIdx.x, base = int64_t(blockIdx.y) * THREADS + (thread - lane);
    if (base >= a.width) return;
    const int64_t own = base + lane, mine = own < a.width ? own : a.width - 1;
    const int64_t states = stream * a.ld_state + first, channel0 = base + lane / CHAINS;
    const bool carried = a.state_in && !(a.reset && a.reset[stream]);
    held<OWN, AT_ONCE, FOURS> s;
    s.fetch(a, channel0, states, first, carried);
    float b[OWN], c[OWN], whole = 0.0f;
    XPH_UNROLL
    for (int i = 0; i < OWN; i++) {
        b[i] = scan_row<Stored>(a, a.b, a.ldb, stream, first + i);
        c[i] = scan_row<Stored>(a, a.c, a.ldc, stream, first + i);
    }
    const float x = load(static_cast<const Stored *>(a.x) + stream * a.ldx + mine);
    const float z = a.z ? load(static_cast<const Stored *>(a.z) + stream * a.ldz + mine) : 0.0f;
    const float skip = scan_of_channel(a.skip, mine);
    const float delta = scan_delta(a.plain_delta, dt_of<Stored, MAKES>(a, w_in_fours, stream, mine));
    const float inflow = delta * x;
    XPH_UNROLL
    for (int round = 0; round < ROUNDS; round++) {
        const int r = round % AT_ONCE, from = round * QUADS + lane / CHAINS;
        if (AT_ONCE < ROUNDS && round) s.fetch(a, channel0 + round * QUADS, states, first, carried);
        const float sum = scan_advance<PADDED, CHAINS>(s.h[r], s.rate[r], __shfl_sync(ALL_LANES, delta, from),
                                                       __shfl_sync(ALL_LANES, inflow, from), false, b, c);
        const float its = __shfl_sync(ALL_LANES, sum, lane % QUADS * CHAINS);
        whole = lane / QUADS == round ? its : whole;
        if (a.state_out && base + from < a.width)
            write_numbers<FOURS>(s.h[r],
                                 static_cast<float *>(a.state_out) + states + (base + from) * a.states,
                                 static_cast<int>(a.states) - first);
    }
    if (own < a.width) leave<Stored>(a, stream, own, whole, skip, x, z);
}

template <class Stored, int PADDED, bool FOURS> int launch_step(const xph_scan_args *a, cudaStream_t stream)
{
    const dim3 grid(as_grid(a->batch), as_grid(blocks_of(a->width, THREADS)));
    const bool w_in_fours = a->step.in % 4 == 0 && reinterpret_cast<uintptr_t>(a->step.w) % 16 == 0;
    if constexpr (sizeof(Stored) == sizeof(float)) {
        if (a->step.rows) {
            XPH_LAUNCH((scan_step<Stored, PADDED, FOURS, true>), grid, dim3(THREADS), 0, stream, *a,
                       w_in_fours);
            return cudaGetLastError();
        }
    }
    XPH_LAUNCH((scan_step<Stored, PADDED, FOURS, false>), grid, dim3(THREADS), 0, stream, *a, w_in_fours);
    return cudaGetLastError();
}

template <class Stored, int PADDED> struct one_frame {
    static int run(const xph_scan_args *a, cudaStream_t stream)
    {
        if constexpr (PADDED >= 16)
            if (lies_in_fours(a, PADDED)) return launch_step<Stored, PADDED, true>(a, stream);
        return launch_step<Stored, PADDED, false>(a, stream);
    }
};

/* The product of dt has a row to a stream, and weights of floats. */
bool makes_step(const xph_scan_args *a)
{
    const xph_linear_args *p = &a->step;
    return a->type == XPH_F32 && p->type == XPH_F32 && p->weights == XPH_F32 && p->rows == a->batch &&
           p->out == a->width && p->in >= 1 && p->in <= MOST_RANK && p->ldx < int64_t(1) << 27;
}

/* ---- candidates ---- */

/* Channels from which one lane each keeps every GPU busy: four warps for each of some 130 multiprocessors. */
constexpr int64_t MANY_CHANNELS = 4 * 130 * WARP;

/* Lanes of a channel, of which a block has THREADS. */
bool fits_with(const xph_scan_args *a, int64_t lanes)
{
    return scan_fits(a) && fits_across(blocks_of(a->width * lanes, THREADS));
}

bool step_accepts(const void *args)
{
    const xph_scan_args *a = static_cast<const xph_scan_args *>(args);
    return a->time == 1 && fits_with(a, 1) && (!a->step.rows || makes_step(a));
}

bool many_accepts(const void *args)
{
    const xph_scan_args *a = static_cast<const xph_scan_args *>(args);
    return a->batch * a->width >= MANY_CHANNELS && !a->step.rows &&
           fits_with(a, fewest_lanes(scan_padded(a)));
}

bool frames_accepts(const void *args)
{
    const xph_scan_args *a = static_cast<const xph_scan_args *>(args);
    return !a->step.rows && fits_with(a, CHAINS);
}

template <template <class, int> class Do> int launch(const void *args, cudaStream_t stream)
{
    const xph_scan_args *a = static_cast<const xph_scan_args *>(args);
    return a->batch && a->width ? scan_by_type<Do>(a, a, stream) : cudaSuccess;
}

}  // namespace

size_t xph_scan_saved_bytes(const void *args)
{
    return scan_marks_bytes(static_cast<const xph_scan_args *>(args));
}

int xph_scan_marks(const xph_scan_args *args, cudaStream_t stream)
{
    xph_scan_args a = *args;
    a.y = a.state_out = nullptr;
    a.ldy = 0;
    return many_accepts(&a) ? launch<few_lanes>(&a, stream) : launch<four_lanes>(&a, stream);
}

namespace
{

/* ---- rates prepared ---- */

__global__ void __launch_bounds__(THREADS) scan_pack(const float *a_log, float *decay, int64_t count)
{
    XPH_ENTER();
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
