/* Gradient of the selective scan (scan.cu). Nothing is kept from the forward pass. A block runs its channels
 * of one stream through time once and stores the state before every CHUNK frames in scratch. It then goes
 * back chunk by chunk: it runs a chunk again with all its states and decays in registers, then backwards. So
 * every exponential is computed twice, and no [B,T,D,N] array is ever in memory.
 *
 * A lane holds OWN states, PADDED / OWN lanes a channel. Values common to them (softplus, gate) are computed
 * once, by the threads in memory order, and stay in shared memory for the chunk, as do the per-frame
 * gradients that are written out.
 *
 * db and dc are sums over channels: in a warp by fold_lanes, over the warps of a block in order, over blocks
 * by scan_join; da_log, dskip and ddelta_bias are sums over streams, by fold. All parts lie in scratch.
 */
#include "fold.cuh"
#include "scan.cuh"

namespace
{

constexpr int OWN = 4, CHUNK = 8;

/* Blocks so that 12 warps with 168 registers each fit on a multiprocessor. */
__host__ __device__ constexpr int threads_of(int padded)
{
    return padded == 8 ? 128 : 192;
}
__host__ __device__ constexpr int channels_of(int padded)
{
    return threads_of(padded) / (padded / OWN);
}

template <int PADDED> struct shape {
    static constexpr int LANES = PADDED / OWN, THREADS = threads_of(PADDED), CHANNELS = channels_of(PADDED),
                         WARPS = THREADS / WARP, ROW = 2 * PADDED, BLOCKS = 12 / WARPS;
};

/* Where the parts lie in scratch, in floats. */
struct layout {
    int64_t groups, chunks, padded, marks, part, da, dskip, dbias, total;
};

inline layout layout_of(const xph_scan_args *a)
{
    layout l;
    l.padded = scan_padded(a);
    l.groups = blocks_of(a->width, channels_of(static_cast<int>(l.padded)));
    l.chunks = blocks_of(a->time, CHUNK);
    l.marks = 0; /* [B][chunks][groups][OWN][threads] */
    l.part = a->batch * l.chunks * l.groups * OWN * threads_of(static_cast<int>(l.padded));
    l.da = l.part + l.groups * a->batch * a->time * 2 * l.padded; /* part: [groups][M][b|c] */
    l.dskip = l.da + a->batch * a->width * a->states;
    l.dbias = l.dskip + a->batch * a->width;
    l.total = l.dbias + a->batch * a->width;
    return l;
}

/* A chunk of the channels of a block. */
template <int PADDED> struct tile {
    static constexpr int CHANNELS = shape<PADDED>::CHANNELS;
    float x[CHUNK][CHANNELS], delta[CHUNK][CHANNELS], slope[CHUNK][CHANNELS]; /* slope: of softplus */
    float gy[CHUNK][CHANNELS], gz[CHUNK][CHANNELS]; /* dy times what y and SiLU(z) have for factors */
    float dx[CHUNK][CHANNELS], ddt[CHUNK][CHANNELS], dz[CHUNK][CHANNELS];
    alignas(16) float row[CHUNK][2 * PADDED]; /* b | c */
    int cut[CHUNK];
};

/* Where the chunk of a block lies. */
struct place {
    int64_t stream, first, row; /* channel and row that come first */
    int frames;
};

template <class Stored, int PADDED>
__device__ inline void fill_rows(tile<PADDED> *s, const xph_scan_args &a, place p)
{
    constexpr int ROW = 2 * PADDED, THREADS = shape<PADDED>::THREADS;
    const int thread = static_cast<int>(threadIdx.x);
    for (int i = thread; i < p.frames * ROW; i += THREADS) {
        const int j = i / ROW, n = i % ROW;
        s->row[j][n] = n < PADDED ? scan_row<Stored>(a, a.b, a.ldb, p.row + j, n)
                                  : scan_row<Stored>(a, a.c, a.ldc, p.row + j, n - PADDED);
    }
    if (thread < p.frames) s->cut[thread] = a.reset && a.reset[p.row + thread];
}

/* Channels beyond the width are zeros, for which every gradient is zero. */
template <class Stored, int PADDED>
__device__ inline void fill_inputs(tile<PADDED> *s, const xph_scan_args &a, place p)
{
    constexpr int CHANNELS = shape<PADDED>::CHANNELS, THREADS = shape<PADDED>::THREADS;
    static_assert(THREADS % CHANNELS == 0, "a thread stays with its channel");
    const int64_t own = p.first + static_cast<int>(threadIdx.x) % CHANNELS;
    const float bias = own < a.width ? scan_of_channel(a.delta_bias, own) : 0.0f;
    for (int i = static_cast<int>(threadIdx.x); i < p.frames * CHANNELS; i += THREADS) {
        const int j = i / CHANNELS, d = i % CHANNELS;
        const int64_t channel = p.first + d;
        const bool there = channel < a.width;
        const float dt =
            there ? load(static_cast<const Stored *>(a.dt) + (p.row + j) * a.lddt + channel) + bias : 0.0f;
        s->x[j][d] = there ? load(static_cast<const Stored *>(a.x) + (p.row + j) * a.ldx + channel) : 0.0f;
        s->delta[j][d] = there ? scan_delta(a.plain_delta, dt) : 0.0f;
        s->slope[j][d] = a.plain_delta ? 1.0f : sigmoid(dt);
    }
}

template <class Stored, int PADDED>
__device__ inline void fill_gradients(tile<PADDED> *s, const xph_scan_grad_args &g, place p)
{
    constexpr int CHANNELS = shape<PADDED>::CHANNELS, THREADS = shape<PADDED>::THREADS;
    for (int i = static_cast<int>(threadIdx.x); i < p.frames * CHANNELS; i += THREADS) {
        const int j = i / CHANNELS, d = i % CHANNELS;
        const int64_t channel = p.first + d;
        const bool there = channel < g.fwd.width;
        const float dy =
            there ? load(static_cast<const Stored *>(g.dy) + (p.row + j) * g.lddy + channel) : 0.0f;
        float gate = 1.0f, slope = 0.0f;
        if (g.fwd.z && there) {
            const float z = load(static_cast<const Stored *>(g.fwd.z) + (p.row + j) * g.fwd.ldz + channel);
            const float half = sigmoid(z);
            gate = z * half;
            slope = silu_slope(z, half);
        }
        s->gy[j][d] = dy * gate;
        s->gz[j][d] = dy * slope;
    }
}

template <class Stored, int PADDED>
__device__ inline void leave(const tile<PADDED> *s, const xph_scan_grad_args &g, place p)
{
    constexpr int CHANNELS = shape<PADDED>::CHANNELS, THREADS = shape<PADDED>::THREADS;
    for (int i = static_cast<int>(threadIdx.x); i < p.frames * CHANNELS; i += THREADS) {
        const int j = i / CHANNELS, d = i % CHANNELS;
        const int64_t channel = p.first + d, row = p.row + j;
        if (channel >= g.fwd.width) continue;
        store(static_cast<Stored *>(g.dx) + row * g.lddx + channel, s->dx[j][d]);
        store(static_cast<Stored *>(g.ddt) + row * g.ldddt + channel, s->ddt[j][d]);
        if (g.dz) store(static_cast<Stored *>(g.dz) + row * g.lddz + channel, s->dz[j][d]);
    }
}

/* What a lane carries from chunk to chunk. */
template <int PADDED> struct lane_state {
    int lane, warp, part, d; /* part of the channel's states; channel in the block */
    float rate[OWN], h[OWN], g[OWN], da[OWN], skip, dskip, dbias;
};

template <int PADDED> __device__ inline float sum_of_channel(float x)
{
    XPH_UNROLL
    for (int bit = 1; bit < shape<PADDED>::LANES; bit *= 2) x += __shfl_xor_sync(ALL_LANES, x, bit);
    return x;
}

/* The frames of a chunk once more: states[j] before frame j, and the decay in it; dz on the way. */
template <int PADDED>
__device__ inline void again(tile<PADDED> *s, const lane_state<PADDED> &l, int frames, bool gated,
                             float (&states)[CHUNK + 1][OWN], float (&decay)[CHUNK][OWN])
{
    XPH_UNROLL
    for (int j = 0; j < CHUNK; j++) {
        if (j >= frames) continue;
        const float delta = s->delta[j][l.d], x = s->x[j][l.d], inflow = delta * x;
        const float *b = s->row[j] + l.part * OWN;
        float sum = 0.0f;
        XPH_UNROLL
        for (int n = 0; n < OWN; n++) {
            decay[j][n] = exp2_fast(delta * l.rate[n]);
            states[j + 1][n] = scan_next(decay[j][n], states[j][n], s->cut[j], inflow * b[n]);
            sum = fmaf(b[PADDED + n], states[j + 1][n], sum);
        }
        if (!gated) continue;
        sum = sum_of_channel<PADDED>(sum);
        if (l.part == 0) s->dz[j][l.d] = s->gz[j][l.d] * fmaf(l.skip, x, sum);
    }
}

/* One frame back. db and dc of the lane's states come out in v, OWN of each. */
template <int PADDED>
__device__ inline void back(tile<PADDED> *s, lane_state<PADDED> *l, int j, const float (&before)[OWN],
                            const float (&after)[OWN], const float (&decay)[OWN], float (&v)[2 * OWN])
{
    const float delta = s->delta[j][l->d], x = s->x[j][l->d], gy = s->gy[j][l->d], inflow = delta * x;
    const float *b = s->row[j] + l->part * OWN;
    const bool cut = s->cut[j];
    float by_inflow = 0.0f, by_rate = 0.0f;
    XPH_UNROLL
    for (int n = 0; n < OWN; n++) {
        const float dh = fmaf(gy, b[PADDED + n], l->g[n]);
        l->g[n] = cut ? 0.0f : dh * decay[n];
        const float falling = l->g[n] * (cut ? 0.0f : before[n]);
        v[n] = dh * inflow;
        v[OWN + n] = gy * after[n];
        by_inflow = fmaf(dh, b[n], by_inflow);
        by_rate = fmaf(l->rate[n], falling, by_rate);
        l->da[n] = fmaf(falling, delta, l->da[n]);
    }
    by_inflow = sum_of_channel<PADDED>(by_inflow);
    by_rate = sum_of_channel<PADDED>(by_rate);
    l->dskip = fmaf(gy, x, l->dskip);
    if (l->part) return;
    s->dx[j][l->d] = fmaf(by_inflow, delta, l->skip * gy);
    const float ddt = fmaf(by_rate, LN_2, x * by_inflow) * s->slope[j][l->d];
    s->ddt[j][l->d] = ddt;
    l->dbias += ddt;
}

template <class Stored, int PADDED> struct scan_back {
    static constexpr int LANES = shape<PADDED>::LANES, THREADS = shape<PADDED>::THREADS,
                         ROW = shape<PADDED>::ROW, WARPS = shape<PADDED>::WARPS,
                         CHANNELS = shape<PADDED>::CHANNELS;
    using sums = float[CHUNK][WARPS][ROW];

    __device__ static place place_of(const xph_scan_args &a, int64_t chunk)
    {
        const int64_t t = chunk * CHUNK, left = a.time - t, stream = blockIdx.x;
        return {stream, int64_t(blockIdx.y) * CHANNELS, stream * a.time + t,
                static_cast<int>(left < CHUNK ? left : CHUNK)};
    }

    __device__ static float *mark_of(const layout &at, float *scratch, int64_t chunk)
    {
        return scratch + at.marks +
               ((blockIdx.x * at.chunks + chunk) * at.groups + blockIdx.y) * OWN * THREADS + threadIdx.x;
    }

    __device__ static lane_state<PADDED> enter(const xph_scan_grad_args &g)
    {
        const xph_scan_args &a = g.fwd;
        const int thread = static_cast<int>(threadIdx.x);
        lane_state<PADDED> l;
        l.lane = thread % WARP, l.warp = thread / WARP, l.part = thread % LANES, l.d = thread / LANES;
        const int64_t channel = int64_t(blockIdx.y) * CHANNELS + l.d;
        const bool there = channel < a.width;
        const int64_t state = blockIdx.x * a.ld_state + channel * a.states;
        const float *in = static_cast<const float *>(a.state_in),
                    *out = static_cast<const float *>(g.dstate_out);
        l.skip = there ? scan_of_channel(a.skip, channel) : 0.0f;
        l.dskip = l.dbias = 0.0f;
        XPH_UNROLL
        for (int i = 0; i < OWN; i++) {
            const int n = l.part * OWN + i;
            const bool real = there && n < a.states;
            l.rate[i] = real ? scan_rate(a, channel, n) : 0.0f;
            l.h[i] = real && in ? in[state + n] : 0.0f;
            l.g[i] = real && out ? out[state + n] : 0.0f;
            l.da[i] = 0.0f;
        }
        return l;
    }

    /* Leaves the state before every chunk. */
    __device__ static void forth(const xph_scan_grad_args &g, const layout &at, tile<PADDED> *s,
                                 lane_state<PADDED> *l)
    {
        float *scratch = static_cast<float *>(g.scratch);
        for (int64_t k = 0; k < at.chunks; k++) {
            float *mark = mark_of(at, scratch, k);
            XPH_UNROLL
            for (int n = 0; n < OWN; n++) mark[n * THREADS] = l->h[n];
            if (k + 1 == at.chunks) break;
            const place p = place_of(g.fwd, k);
            __syncthreads();
            fill_rows<Stored>(s, g.fwd, p);
            fill_inputs<Stored>(s, g.fwd, p);
            __syncthreads();
            XPH_UNROLL
            for (int j = 0; j < CHUNK; j++) {
                const float delta = s->delta[j][l->d], inflow = delta * s->x[j][l->d];
                if (s->cut[j]) { /* of all lanes, and rare */
                    XPH_BRANCH;
                    XPH_UNROLL
                    for (int n = 0; n < OWN; n++) l->h[n] = 0.0f;
                }
                XPH_UNROLL
                for (int n = 0; n < OWN; n++)
                    l->h[n] = scan_next(exp2_fast(delta * l->rate[n]), l->h[n], false,
                                        inflow * s->row[j][l->part * OWN + n]);
            }
        }
    }

    /* db and dc of the block, warp after warp. */
    __device__ static void leave_sums(const xph_scan_grad_args &g, const layout &at, const sums &sum, place p)
    {
        const int64_t rows = g.fwd.batch * g.fwd.time;
        float *to = static_cast<float *>(g.scratch) + at.part + (blockIdx.y * rows + p.row) * ROW;
        for (int i = static_cast<int>(threadIdx.x); i < p.frames * ROW; i += THREADS) {
            float total = 0.0f;
            for (int w = 0; w < WARPS; w++) total += sum[i / ROW][w][i % ROW];
            to[i] = total;
        }
    }

    __device__ static void chunk_back(const xph_scan_grad_args &g, const layout &at, tile<PADDED> *s,
                                      sums &sum, lane_state<PADDED> *l, int64_t k)
    {
        constexpr int LEFT = fold_left(2 * OWN, LANES), TWINS = fold_twins(2 * OWN, LANES);
        const place p = place_of(g.fwd, k);
        __syncthreads();
        fill_rows<Stored>(s, g.fwd, p);
        fill_inputs<Stored>(s, g.fwd, p);
        fill_gradients<Stored>(s, g, p);
        float states[CHUNK + 1][OWN], decay[CHUNK][OWN];
        const float *mark = mark_of(at, static_cast<float *>(g.scratch), k);
        XPH_UNROLL
        for (int n = 0; n < OWN; n++) states[0][n] = mark[n * THREADS];
        __syncthreads();
        again<PADDED>(s, *l, p.frames, g.dz != nullptr, states, decay);
        XPH_UNROLL
        for (int j = CHUNK - 1; j >= 0; j--) {
            if (j >= p.frames) continue;
            float v[2 * OWN];
            back<PADDED>(s, l, j, states[j], states[j + 1], decay[j], v);
            const int first = fold_lanes<2 * OWN, LANES>(v, l->lane);
            XPH_UNROLL
            for (int i = 0; i < LEFT; i++) {
                const int column = (first + i) / OWN * PADDED + l->part * OWN + (first + i) % OWN;
                if (!(l->lane & TWINS)) sum[j][l->warp][column] = v[i];
            }
        }
        __syncthreads();
        leave<Stored>(s, g, p);
        leave_sums(g, at, sum, p);
    }

    __device__ static void leave_states(const xph_scan_grad_args &g, const layout &at,
                                        const lane_state<PADDED> &l)
    {
        const xph_scan_args &a = g.fwd;
        const int64_t channel = int64_t(blockIdx.y) * CHANNELS + l.d, stream = blockIdx.x;
        float *scratch = static_cast<float *>(g.scratch), *din = static_cast<float *>(g.dstate_in);
        if (channel >= a.width) return;
        XPH_UNROLL
        for (int i = 0; i < OWN; i++) {
            const int n = l.part * OWN + i;
            if (n >= a.states) continue;
            if (din) din[stream * a.ld_state + channel * a.states + n] = l.g[i];
            scratch[at.da + (stream * a.width + channel) * a.states + n] =
                a.plain_a ? l.da[i] : l.da[i] * l.rate[i] * LN_2;
        }
        if (l.part) return;
        scratch[at.dskip + stream * a.width + channel] = l.dskip;
        scratch[at.dbias + stream * a.width + channel] = l.dbias;
    }
};

template <class Stored, int PADDED>
__global__ void __launch_bounds__(shape<PADDED>::THREADS, shape<PADDED>::BLOCKS)
    scan_grad(const xph_scan_grad_args g, const layout at)
{
    XPH_ENTER();
    using work = scan_back<Stored, PADDED>;
    XPH_SHARED(tile<PADDED>, chunk, [1]);
    XPH_SHARED(float, sum, [CHUNK][work::WARPS][work::ROW]);
    lane_state<PADDED> l = work::enter(g);
    work::forth(g, at, chunk, &l);
    for (int64_t k = at.chunks - 1; k >= 0; k--) work::chunk_back(g, at, chunk, sum, &l, k);
    work::leave_states(g, at, l);
}

/* db and dc of a frame: the sums of the blocks, in order. */
template <class Stored>
__global__ void __launch_bounds__(256) scan_join(const xph_scan_grad_args g, const layout at)
{
    XPH_ENTER();
    const xph_scan_args &a = g.fwd;
    const int64_t size = a.batch * a.time * 2 * at.padded, i = int64_t(blockIdx.x) * 256 + threadIdx.x;
    const int64_t row = i / (2 * at.padded), column = i % (2 * at.padded), n = column % at.padded;
    if (i >= size || n >= a.states) return;
    const float *part = static_cast<const float *>(g.scratch) + at.part + i;
    float total = 0.0f;
    for (int64_t k = 0; k < at.groups; k++) total += part[k * size];
    if (column < at.padded)
        store(static_cast<Stored *>(g.db) + row * g.lddb + n, total);
    else
        store(static_cast<Stored *>(g.dc) + row * g.lddc + n, total);
}

template <class Stored, int PADDED> struct gradient {
    static int run(const xph_scan_grad_args *g, cudaStream_t stream)
    {
        const xph_scan_args *a = &g->fwd;
        const layout at = layout_of(a);
        const dim3 grid(as_grid(a->batch), as_grid(at.groups));
        XPH_LAUNCH((scan_grad<Stored, PADDED>), grid, dim3(shape<PADDED>::THREADS), 0, stream, *g, at);
        const int64_t sums = a->batch * a->time * 2 * PADDED;
        if (sums)
            XPH_LAUNCH((scan_join<Stored>), dim3(as_grid(blocks_of(sums, 256))), dim3(256), 0, stream, *g,
                       at);
        const float *scratch = static_cast<const float *>(g->scratch);
        if (!a->fixed)
            fold(scratch + at.da, static_cast<float *>(g->da_log), a->batch, a->width * a->states, stream);
        if (a->skip) fold(scratch + at.dskip, static_cast<float *>(g->dskip), a->batch, a->width, stream);
        if (g->ddelta_bias)
            fold(scratch + at.dbias, static_cast<float *>(g->ddelta_bias), a->batch, a->width, stream);
        return cudaGetLastError();
    }
};

bool accepts(const void *args)
{
    return scan_fits(&static_cast<const xph_scan_grad_args *>(args)->fwd);
}

size_t scratch_bytes(const void *args)
{
    const layout at = layout_of(&static_cast<const xph_scan_grad_args *>(args)->fwd);
    return static_cast<size_t>(at.total) * sizeof(float);
}

int launch(const void *args, cudaStream_t stream)
{
    const xph_scan_grad_args *g = static_cast<const xph_scan_grad_args *>(args);
    return g->fwd.batch && g->fwd.width ? scan_by_type<gradient>(&g->fwd, g, stream) : cudaSuccess;
}

}  // namespace

const xph_cuda_candidate xph_cuda_scan_grad[] = {
    {"scan_grad", accepts, scratch_bytes, launch},
    {nullptr, nullptr, nullptr, nullptr},
};
