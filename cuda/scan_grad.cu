/* Gradient of the selective scan (scan.cu). A block takes its channels of one stream back through time, chunk by chunk: from
 * the mark before a chunk it runs forward again, with all states in registers, then backwards. So every exponential is
 * computed twice, and no [B,T,D,N] array is ever in memory. Marks are those of the forward pass, or made here by its kernel.
 *
 * A lane holds OWN states of each of two neighbouring channels, whose db and dc are added up in the products themselves.
 * Values common to the states of a channel (softplus, gate) are computed once, four channels a thread, in memory order. They
 * stay in shared memory for the chunk, as do the sums over states of which dx, ddt and dz are made there.
 *
 * Sums over lanes go by halves: a lane gives away one half of its sums and keeps the other, as often as there are bits. Which
 * half that is must be one register in all lanes, or each would have to choose: so lanes hold their states, and their two
 * channels, in different orders. Slot i of a lane is state i ^ turn of its four, slot i of its channels is i ^ (part & 1).
 *
 * db and dc are sums over channels: in a warp so, over the warps of a block and over blocks in order. da_log and the sums over
 * frames of a channel are sums over streams. The parts lie in scratch, one kernel joins them all.
 */
#include "fold.cuh"
#include "scan.cuh"

namespace
{

constexpr int OWN = 4, THREADS = 128, WARPS = THREADS / WARP, BLOCKS = 3;
enum { SKIP, DELTA, GATE, OVER_FRAMES }; /* sums over frames: dskip, columns of ddt and of dz */
enum { BY_INFLOW, BY_RATE, BY_C, OVER_STATES };

template <int PADDED> struct shape {
    static constexpr int LANES = PADDED / OWN,              /* of a pair of channels */
        PAIRS = WARP / LANES, CHANNELS = 2 * PAIRS * WARPS, /* of a warp, of a block */
        QUADS = CHANNELS / 4, ROW = 2 * PADDED,             /* b | c */
        TURNS = PAIRS >= 4 ? 4 : 2,                         /* orders of states */
        HALVES = LANES > 2 ? 2 : 1,                         /* sums over states that are left to the end */
        KEPT = PADDED == 16
                   ? 5
                   : 3, /* frames of a chunk, its last, whose decays stay in registers: 168 hold no more */
        PITCH = CHANNELS + (HALVES > 1 ? 16 : 0); /* of them: banks differ */
};

__host__ __device__ constexpr int channels_of(int padded)
{
    return 2 * (WARP / (padded / OWN)) * WARPS;
}

/* Where the parts lie in scratch, in floats. */
struct layout {
    int64_t groups, padded, marks, part, sums, per_stream, total;
};

inline layout layout_of(const xph_scan_args *a)
{
    layout l;
    l.padded = scan_padded(a);
    l.groups = blocks_of(a->width, channels_of(static_cast<int>(l.padded)));
    l.per_stream = a->width * ((a->fixed ? 0 : a->states) + OVER_FRAMES);
    l.marks = 0;
    l.part = a->marked ? 0 : static_cast<int64_t>(scan_marks_bytes(a) / sizeof(float));
    l.sums = l.part + l.groups * a->batch * a->time * 2 * l.padded; /* part: [groups][M][b|c] */
    l.total =
        (l.sums + a->batch * l.per_stream + 3) / 4 * 4; /* sums: [B][da | OVER_FRAMES of each channel] */
    return l;
}

/* A chunk of the channels of a block. */
template <int PADDED> struct tile {
    using is = shape<PADDED>;
    alignas(16) float2 flow[CHUNK][is::CHANNELS]; /* delta, delta x */
    alignas(16) float gy[CHUNK][is::CHANNELS],
        gz[CHUNK][is::CHANNELS]; /* dy times what y and SiLU(z) have for factors */
    alignas(16) float x[CHUNK][is::CHANNELS], slope[CHUNK][is::CHANNELS]; /* slope: of softplus */
    alignas(16) float over_states[OVER_STATES][CHUNK][is::HALVES][is::PITCH];
    alignas(16) float row[CHUNK][is::TURNS][is::ROW]; /* b | c for every turn */
    alignas(16) float over_channels[CHUNK][WARPS][is::ROW];
    alignas(16) float4 over_frames[OVER_FRAMES][THREADS];
    unsigned cuts;
};

/* Where the chunk of a block lies. */
struct place {
    int row, first, frames, left; /* that come first; left: of the width from channel first on */
};

/* Four neighbours of a frame; what is beyond the width is 0. FOURS: they are one access. */
template <bool FOURS, class Stored>
__device__ inline float4 read_four(const void *matrix, int64_t ld, place p, int j, int d)
{
    const Stored *from = static_cast<const Stored *>(matrix) + scan_at(p.row + j, ld, p.first + d);
    if (FOURS) return load_four(from);
    return make_float4(d < p.left ? load(from) : 0.0f, d + 1 < p.left ? load(from + 1) : 0.0f,
                       d + 2 < p.left ? load(from + 2) : 0.0f, d + 3 < p.left ? load(from + 3) : 0.0f);
}

template <bool FOURS, class Stored>
__device__ inline void write_four(void *matrix, int64_t ld, place p, int j, int d, float4 x)
{
    Stored *to = static_cast<Stored *>(matrix) + scan_at(p.row + j, ld, p.first + d);
    if (FOURS) {
        store_four(to, x);
        return;
    }
    if (d < p.left) store(to, x.x);
    if (d + 1 < p.left) store(to + 1, x.y);
    if (d + 2 < p.left) store(to + 2, x.z);
    if (d + 3 < p.left) store(to + 3, x.w);
}

/* Of skip or delta_bias, four. */
template <bool FOURS> __device__ inline float4 four_of_channels(const void *vector, place p, int d)
{
    if (!vector) return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    return read_four<FOURS, float>(vector, 0, p, 0, d);
}

__device__ inline float &at(float4 &v, int i)
{
    return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}
__device__ inline float at(const float4 &v, int i)
{
    return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

/* What a lane has, found anew for every chunk. */
template <int PADDED> struct spot {
    int lane, warp, part, turn;
    int channel[2]; /* in the block */

    __device__ explicit spot(unsigned thread)
    {
        using is = shape<PADDED>;
        lane = static_cast<int>(thread % WARP), warp = static_cast<int>(thread / WARP);
        part = static_cast<int>(thread % is::LANES);
        turn = is::TURNS == 4 ? (lane >> 4 & 1) * 2 + (lane >> 3 & 1) : (lane >> 4 & 1) * 2;
        XPH_UNROLL
        for (int c = 0; c < 2; c++) channel[c] = static_cast<int>(thread / is::LANES * 2) + (c ^ (part & 1));
    }
    __device__ int64_t channel_of(int c) const
    {
        return int64_t(blockIdx.y) * shape<PADDED>::CHANNELS + channel[c];
    }
    __device__ int state_of(int i) const { return part * OWN + (i ^ turn); }
};

/* What a lane carries from chunk to chunk. */
struct lane_state {
    float rate[2][OWN], g[2][OWN], da[2][OWN];
};

template <class Stored, int PADDED> struct scan_back {
    using is = shape<PADDED>;
    using chunk = tile<PADDED>;

    __device__ static place place_of(const xph_scan_args &a, int k)
    {
        const int t = k * CHUNK, frames = static_cast<int>(a.time) - t,
                  first = static_cast<int>(blockIdx.y) * is::CHANNELS,
                  left = static_cast<int>(a.width) - first;
        return {static_cast<int>(blockIdx.x) * static_cast<int>(a.time) + t, first,
                frames < CHUNK ? frames : CHUNK, left < is::CHANNELS ? left : is::CHANNELS};
    }

    __device__ static lane_state enter(const xph_scan_grad_args &g)
    {
        const xph_scan_args &a = g.fwd;
        const spot<PADDED> my(this_thread());
        const float *out = static_cast<const float *>(g.dstate_out);
        lane_state l;
        XPH_UNROLL
        for (int c = 0; c < 2; c++) {
            const int64_t channel = my.channel_of(c), state = blockIdx.x * a.ld_state + channel * a.states;
            XPH_UNROLL
            for (int i = 0; i < OWN; i++) {
                const int n = my.state_of(i);
                const bool real = channel < a.width && n < a.states;
                l.rate[c][i] = real ? scan_rate(a, channel, n) : 0.0f;
                l.g[c][i] = real && out ? out[state + n] : 0.0f;
                l.da[c][i] = 0.0f;
            }
        }
        return l;
    }

    /* The states before a chunk that is not the first. */
    __device__ static void read_mark(const xph_scan_args &a, const float4 *marks, int k, place p,
                                     float (&h)[2][OWN])
    {
        const spot<PADDED> my(this_thread());
        const float4 *mark = marks + scan_mark_at(a, PADDED, k, my.part, p.first + my.channel[0]);
        XPH_UNROLL
        for (int c = 0; c < 2; c++) {
            float4 four = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (my.channel[c] < p.left) four = mark[my.channel[c] - my.channel[0]];
            const bool by1 = my.turn & 1, by2 = my.turn & 2;
            const float x = by1 ? four.y : four.x, y = by1 ? four.x : four.y, z = by1 ? four.w : four.z,
                        w = by1 ? four.z : four.w;
            h[c][0] = by2 ? z : x, h[c][1] = by2 ? w : y, h[c][2] = by2 ? x : z, h[c][3] = by2 ? y : w;
        }
    }
    __device__ static void read_state(const xph_scan_grad_args &g, float (&h)[2][OWN])
    {
        const spot<PADDED> my(this_thread());
        const xph_scan_args &a = g.fwd;
        const float *in = static_cast<const float *>(a.state_in);
        XPH_UNROLL
        for (int c = 0; c < 2; c++) {
            const int64_t channel = my.channel_of(c), state = blockIdx.x * a.ld_state + channel * a.states;
            XPH_UNROLL
            for (int i = 0; i < OWN; i++) {
                const int n = my.state_of(i);
                h[c][i] = in && channel < a.width && n < a.states ? in[state + n] : 0.0f;
            }
        }
    }

    /* A thread stages one column of b or c, of every EVERY-th frame. */
    __device__ static void fill_rows(chunk *s, const xph_scan_args &a, place p)
    {
        constexpr int EVERY = THREADS / is::ROW;
        const unsigned thread = this_thread();
        const int column = static_cast<int>(thread % is::ROW), first = static_cast<int>(thread / is::ROW),
                  n = static_cast<int>(thread % PADDED);
        const bool of_c = column >= PADDED, there = n < static_cast<int>(a.states);
        const int ld = static_cast<int>(of_c ? a.ldc : a.ldb);
        const Stored *from = static_cast<const Stored *>(of_c ? a.c : a.b) + scan_at(p.row + first, ld, n);
        XPH_UNROLL
        for (int j = 0; j < CHUNK; j += EVERY) {
            const float x = there && first + j < p.frames ? load(from + j * ld) : 0.0f;
            XPH_UNROLL
            for (int v = 0; v < is::TURNS; v++) s->row[first + j][v][column ^ v * (4 / is::TURNS)] = x;
        }
    }

    __device__ static void fill_cuts(chunk *s, const xph_scan_args &a, place p)
    {
        const int thread = static_cast<int>(this_thread());
        if (!a.reset || thread >= WARP) return;
        const unsigned cuts = __ballot_sync(ALL_LANES, thread < p.frames && a.reset[p.row + thread]);
        if (thread == 0) s->cuts = cuts;
    }

    /* Channels beyond the width are zeros, for which every gradient is zero. */
    template <bool FOURS> __device__ static void fill(chunk *s, const xph_scan_grad_args &g, place p)
    {
        const xph_scan_args &a = g.fwd;
        const unsigned thread = this_thread();
        XPH_UNROLL
        for (unsigned q = 0; q < CHUNK * is::QUADS; q += THREADS) {
            const int j = static_cast<int>((q + thread) / is::QUADS),
                      own = static_cast<int>((q + thread) % is::QUADS * 4);
            if (j >= p.frames) continue;
            const int d =
                FOURS && own > p.left - 4 ? p.left - 4 : own; /* fours beyond the width read the last */
            float4 x = read_four<FOURS, Stored>(a.x, a.ldx, p, j, d);
            float4 delta = read_four<FOURS, Stored>(a.dt, a.lddt, p, j, d),
                   gy = read_four<FOURS, Stored>(g.dy, g.lddy, p, j, d),
                   slope = make_float4(1.0f, 1.0f, 1.0f, 1.0f), gz = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (a.z) {
                const float4 z = read_four<FOURS, Stored>(a.z, a.ldz, p, j, d);
                XPH_UNROLL
                for (int i = 0; i < 4; i++) {
                    const float half = scan_sigmoid(at(z, i)), dy = at(gy, i);
                    at(gz, i) = dy * silu_slope(at(z, i), half);
                    at(gy, i) = dy * (at(z, i) * half);
                }
            }
            if (a.delta_bias) add(&delta, four_of_channels<FOURS>(a.delta_bias, p, d));
            if (!a.plain_delta) {
                XPH_UNROLL
                for (int i = 0; i < 4; i++) {
                    const scan_soft soft = scan_softplus(at(delta, i));
                    at(delta, i) = soft.value;
                    at(slope, i) = soft.slope;
                }
            }
            if (own + 4 > p.left) { /* rare */
                XPH_BRANCH;
                XPH_UNROLL
                for (int i = 0; i < 4; i++)
                    if (own + i >= p.left) at(delta, i) = at(x, i) = at(gy, i) = at(gz, i) = 0.0f;
            }
            float4 *flow = reinterpret_cast<float4 *>(&s->flow[j][own]);
            flow[0] = make_float4(delta.x, delta.x * x.x, delta.y, delta.y * x.y);
            flow[1] = make_float4(delta.z, delta.z * x.z, delta.w, delta.w * x.w);
            *reinterpret_cast<float4 *>(&s->gy[j][own]) = gy;
            *reinterpret_cast<float4 *>(&s->gz[j][own]) = gz;
            *reinterpret_cast<float4 *>(&s->x[j][own]) = x;
            *reinterpret_cast<float4 *>(&s->slope[j][own]) = slope;
        }
    }

    /* A sum over the states of four channels. */
    __device__ static float4 over_states(const chunk *s, int which, int j, int d)
    {
        float4 sum = *reinterpret_cast<const float4 *>(&s->over_states[which][j][0][d]);
        if (is::HALVES > 1) {
            const float4 other =
                *reinterpret_cast<const float4 *>(&s->over_states[which][j][is::HALVES - 1][d]);
            XPH_UNROLL
            for (int i = 0; i < 4; i++) at(sum, i) += at(other, i);
        }
        return sum;
    }

    __device__ static void add(float4 *to, float4 x)
    {
        float4 sum = *to;
        XPH_UNROLL
        for (int i = 0; i < 4; i++) at(sum, i) += at(x, i);
        *to = sum;
    }

    template <bool FOURS> __device__ static void leave(chunk *s, const xph_scan_grad_args &g, place p)
    {
        const unsigned thread = this_thread();
        XPH_UNROLL
        for (unsigned q = 0; q < CHUNK * is::QUADS; q += THREADS) {
            const int j = static_cast<int>((q + thread) / is::QUADS),
                      d = static_cast<int>((q + thread) % is::QUADS * 4);
            if (j >= p.frames || d >= p.left) continue;
            const float4 by_inflow = over_states(s, BY_INFLOW, j, d), by_rate = over_states(s, BY_RATE, j, d),
                         by_c = over_states(s, BY_C, j, d), skip = four_of_channels<FOURS>(g.fwd.skip, p, d),
                         flow0 = *reinterpret_cast<const float4 *>(&s->flow[j][d]),
                         flow1 = *reinterpret_cast<const float4 *>(&s->flow[j][d + 2]),
                         gy = *reinterpret_cast<const float4 *>(&s->gy[j][d]),
                         gz = *reinterpret_cast<const float4 *>(&s->gz[j][d]),
                         x = *reinterpret_cast<const float4 *>(&s->x[j][d]),
                         slope = *reinterpret_cast<const float4 *>(&s->slope[j][d]),
                         delta = make_float4(flow0.x, flow0.z, flow1.x, flow1.z);
            float4 dx, ddt, dz, dskip;
            XPH_UNROLL
            for (int i = 0; i < 4; i++) {
                at(dskip, i) = at(gy, i) * at(x, i);
                at(dx, i) = fmaf(at(by_inflow, i), at(delta, i), at(skip, i) * at(gy, i));
                at(ddt, i) = fmaf(at(by_rate, i), LN_2, at(x, i) * at(by_inflow, i)) * at(slope, i);
                at(dz, i) = at(gz, i) * fmaf(at(skip, i), at(x, i), at(by_c, i));
            }
            write_four<FOURS, Stored>(g.dx, g.lddx, p, j, d, dx);
            write_four<FOURS, Stored>(g.ddt, g.ldddt, p, j, d, ddt);
            if (g.dz) write_four<FOURS, Stored>(g.dz, g.lddz, p, j, d, dz);
            add(&s->over_frames[SKIP][thread], dskip);
            add(&s->over_frames[DELTA][thread], ddt);
            add(&s->over_frames[GATE][thread], dz);
        }
    }

    /* db and dc of the block, warp after warp. */
    __device__ static void leave_rows(const chunk *s, float *part, place p, int64_t rows)
    {
        float *to = part + (int64_t(blockIdx.y) * rows + p.row) * is::ROW;
        const unsigned thread = this_thread();
        XPH_UNROLL
        for (unsigned first = 0; first < CHUNK * is::ROW; first += THREADS * 4) {
            const unsigned i = first + thread * 4;
            if (i >= static_cast<unsigned>(p.frames * is::ROW)) continue;
            float4 total = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            XPH_UNROLL
            for (int w = 0; w < WARPS; w++) {
                const float4 of_warp =
                    *reinterpret_cast<const float4 *>(&s->over_channels[i / is::ROW][w][i % is::ROW]);
                XPH_UNROLL
                for (int k = 0; k < 4; k++) at(total, k) = w ? at(total, k) + at(of_warp, k) : at(of_warp, k);
            }
            *reinterpret_cast<float4 *>(to + i) = total;
        }
    }

    /* db (v[0..]) and dc (v[OWN..]) of the lane's states over the channels of its warp. */
    __device__ static void over_channels(chunk *s, const spot<PADDED> &my, int j, float (&v)[2 * OWN])
    {
        float *to = s->over_channels[j][my.warp];
        XPH_UNROLL
        for (int i = 0; i < 2; i++) {
            v[i] += __shfl_xor_sync(ALL_LANES, v[i + 2], 16);
            v[OWN + i] += __shfl_xor_sync(ALL_LANES, v[OWN + i + 2], 16);
        }
        if constexpr (is::PAIRS == 2) {
            XPH_UNROLL
            for (int i = 0; i < 2; i++) {
                to[my.state_of(i)] = v[i];
                to[PADDED + my.state_of(i)] = v[OWN + i];
            }
            return;
        }
        v[0] += __shfl_xor_sync(ALL_LANES, v[1], 8);
        v[OWN] += __shfl_xor_sync(ALL_LANES, v[OWN + 1], 8);
        if constexpr (is::PAIRS == 4) {
            to[my.state_of(0)] = v[0];
            to[PADDED + my.state_of(0)] = v[OWN];
            return;
        }
        const bool of_c = my.lane & 4;
        float sum = of_c ? v[OWN] : v[0];
        sum += __shfl_xor_sync(ALL_LANES, of_c ? v[0] : v[OWN], 4);
        if constexpr (is::PAIRS == 16) sum += __shfl_xor_sync(ALL_LANES, sum, 2);
        if (is::PAIRS < 16 || !(my.lane & 2)) to[(of_c ? PADDED : 0) + my.state_of(0)] = sum;
    }

    /* Sums over the states of the lane's two channels; the first slot's stay. */
    __device__ static void over_states(chunk *s, const spot<PADDED> &my, int j, float (&v)[OVER_STATES][2])
    {
        XPH_UNROLL
        for (int k = 0; k < OVER_STATES; k++) {
            float sum = v[k][0] + __shfl_xor_sync(ALL_LANES, v[k][1], 1);
            XPH_UNROLL
            for (int bit = 4; bit < is::LANES; bit *= 2) sum += __shfl_xor_sync(ALL_LANES, sum, bit);
            if (is::LANES <= 4 || my.part < 4)
                s->over_states[k][j][is::HALVES > 1 ? my.part >> 1 : 0][my.channel[0]] = sum;
        }
    }

    /* The frames of a chunk forward and back. WHOLE: all of them are there, and no episode starts in them. */
    template <bool WHOLE>
    __device__ static void run(chunk *s, lane_state *l, const float (&before)[2][OWN], int frames)
    {
        float states[CHUNK + 1][2][OWN], decay[CHUNK][2][OWN];
        constexpr int KEPT = WHOLE ? is::KEPT : 0;
        const unsigned cuts = WHOLE ? 0 : s->cuts;
        const spot<PADDED> my(this_thread());
        XPH_UNROLL
        for (int c = 0; c < 2; c++) {
            XPH_UNROLL
            for (int i = 0; i < OWN; i++) states[0][c][i] = before[c][i];
        }
        const float *rows = &s->row[0][my.turn / (4 / is::TURNS)][my.part * OWN];
        XPH_UNROLL
        for (int j = 0; j < CHUNK; j++) {
            if (!WHOLE && j >= frames) continue;
            const float4 b = *reinterpret_cast<const float4 *>(rows + j * is::TURNS * is::ROW);
            const bool cut = cuts >> j & 1u;
            XPH_UNROLL
            for (int c = 0; c < 2; c++) {
                const float2 flow = s->flow[j][my.channel[c]];
                XPH_UNROLL
                for (int i = 0; i < OWN; i++) {
                    const float falls = exp2_fast(flow.x * l->rate[c][i]);
                    if (j >= CHUNK - KEPT) decay[j][c][i] = falls;
                    states[j + 1][c][i] = scan_next(falls, states[j][c][i], cut, flow.y * at(b, i));
                }
            }
        }
        XPH_UNROLL
        for (int j = CHUNK - 1; j >= 0; j--) {
            if (!WHOLE && j >= frames) continue;
            const float4 b = *reinterpret_cast<const float4 *>(rows + j * is::TURNS * is::ROW),
                         cs = *reinterpret_cast<const float4 *>(rows + j * is::TURNS * is::ROW + PADDED);
            const bool cut = cuts >> j & 1u;
            float v[2 * OWN], sums[OVER_STATES][2];
            XPH_UNROLL
            for (int c = 0; c < 2; c++) {
                const float2 flow = s->flow[j][my.channel[c]];
                const float gy = s->gy[j][my.channel[c]];
                XPH_UNROLL
                for (int i = 0; i < OWN; i++) {
                    const float dh = fmaf(gy, at(cs, i), l->g[c][i]), after = states[j + 1][c][i];
                    const float falls =
                        j >= CHUNK - KEPT ? decay[j][c][i] : exp2_fast(flow.x * l->rate[c][i]);
                    l->g[c][i] = cut ? 0.0f : dh * falls;
                    const float falling = l->g[c][i] * (cut ? 0.0f : states[j][c][i]);
                    l->da[c][i] = fmaf(falling, flow.x, l->da[c][i]);
                    v[i] = c ? fmaf(dh, flow.y, v[i]) : dh * flow.y;
                    v[OWN + i] = c ? fmaf(gy, after, v[OWN + i]) : gy * after;
                    sums[BY_INFLOW][c] = i ? fmaf(dh, at(b, i), sums[BY_INFLOW][c]) : dh * at(b, i);
                    sums[BY_RATE][c] =
                        i ? fmaf(l->rate[c][i], falling, sums[BY_RATE][c]) : l->rate[c][i] * falling;
                    sums[BY_C][c] = i ? fmaf(at(cs, i), after, sums[BY_C][c]) : at(cs, i) * after;
                }
            }
            over_states(s, my, j, sums);
            over_channels(s, my, j, v);
        }
    }

    /* To where the states of the lane lie in a matrix [D,N]. */
    template <class Value> __device__ static void leave_states(const xph_scan_args &a, float *to, Value value)
    {
        const spot<PADDED> my(this_thread());
        const int states = static_cast<int>(a.states);
        XPH_UNROLL
        for (int c = 0; c < 2; c++) {
            const int channel = static_cast<int>(my.channel_of(c));
            if (channel >= a.width) continue;
            float *from = to + int64_t(channel) * states;
            XPH_UNROLL
            for (int i = 0; i < OWN; i++)
                if (my.state_of(i) < states) from[my.state_of(i)] = value(c, i);
        }
    }
    __device__ static void leave_states(const xph_scan_grad_args &g, float *sums, const lane_state &l)
    {
        const xph_scan_args &a = g.fwd;
        if (g.dstate_in)
            leave_states(a, static_cast<float *>(g.dstate_in) + blockIdx.x * a.ld_state,
                         [&](int c, int i) { return l.g[c][i]; });
        if (a.fixed) return;
        if (a.plain_a)
            leave_states(a, sums, [&](int c, int i) { return l.da[c][i]; });
        else
            leave_states(a, sums, [&](int c, int i) { return l.da[c][i] * l.rate[c][i] * LN_2; });
    }

    /* Sums over the frames of a channel: threads that had it, in order. */
    __device__ static void leave_sums(const chunk *s, float *sums, place p, int64_t width)
    {
        const float *from = reinterpret_cast<const float *>(s->over_frames);
        for (int i = static_cast<int>(threadIdx.x); i < OVER_FRAMES * is::CHANNELS; i += THREADS) {
            const int k = i / is::CHANNELS, d = i % is::CHANNELS;
            float total = 0.0f;
            for (int t = d / 4; t < THREADS; t += is::QUADS) total += from[(k * THREADS + t) * 4 + d % 4];
            if (d < p.left) sums[k * width + p.first + d] = total;
        }
    }
};

template <class Stored, int PADDED>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    scan_grad(const xph_scan_grad_args g, const layout where, const float4 *marks, bool fours)
{
    XPH_ENTER();
    using work = scan_back<Stored, PADDED>;
    XPH_SHARED(tile<PADDED>, chunk, [1]);
    const int thread = static_cast<int>(threadIdx.x);
    lane_state l = work::enter(g);
    for (int k = 0; k < OVER_FRAMES; k++) chunk->over_frames[k][thread] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (thread == 0) chunk->cuts = 0;
    float *scratch = static_cast<float *>(g.scratch);
    const int chunks = static_cast<int>(scan_chunks(g.fwd));
    for (int k = chunks - 1; k >= 0; k--) {
        const place p = work::place_of(g.fwd, k);
        float before[2][OWN];
        if (k)
            work::read_mark(g.fwd, marks, k, p, before);
        else
            work::read_state(g, before);
        work::fill_rows(chunk, g.fwd, p);
        work::fill_cuts(chunk, g.fwd, p);
        if (fours)
            work::template fill<true>(chunk, g, p);
        else
            work::template fill<false>(chunk, g, p);
        __syncthreads();
        if (p.frames == CHUNK && !chunk->cuts)
            work::template run<true>(chunk, &l, before, CHUNK);
        else
            work::template run<false>(chunk, &l, before, p.frames);
        __syncthreads();
        if (fours)
            work::template leave<true>(chunk, g, p);
        else
            work::template leave<false>(chunk, g, p);
        work::leave_rows(chunk, scratch + where.part, p, g.fwd.batch * g.fwd.time);
    }
    float *sums = scratch + where.sums + blockIdx.x * where.per_stream;
    work::leave_states(g, sums, l);
    __syncthreads();
    work::leave_sums(chunk, sums + (g.fwd.fixed ? 0 : g.fwd.width * g.fwd.states), work::place_of(g.fwd, 0),
                     g.fwd.width);
}

/* Where column i of the sums over streams goes, or NULL. */
__device__ inline float *sum_of(const xph_scan_grad_args &g, int64_t i)
{
    const int64_t width = g.fwd.width, rates = g.fwd.fixed ? 0 : width * g.fwd.states;
    if (i < rates) return static_cast<float *>(g.da_log) + i;
    const int64_t k = (i - rates) / width, channel = (i - rates) % width;
    void *to = k == SKIP ? g.dskip : k == GATE ? g.dz_sum : g.ddelta_bias ? g.ddelta_bias : g.ddt_sum;
    return to ? static_cast<float *>(to) + channel : nullptr;
}

/* The parts together. The first blocks add up streams, FOLD_COLUMNS columns a block, as fold_rows; the others db and dc of a
 * frame, over the blocks of its channels in order. */
template <class Stored>
__global__ void __launch_bounds__(FOLD_COLUMNS *FOLD_STRANDS)
    scan_join(const xph_scan_grad_args g, const layout where, int folds)
{
    XPH_ENTER();
    XPH_SHARED(float, strands, [FOLD_STRANDS][FOLD_COLUMNS]);
    const xph_scan_args &a = g.fwd;
    const float *scratch = static_cast<const float *>(g.scratch);
    const int thread = static_cast<int>(threadIdx.x), column = thread % FOLD_COLUMNS,
              strand = thread / FOLD_COLUMNS;
    if (static_cast<int>(blockIdx.x) < folds) {
        const int64_t i = int64_t(blockIdx.x) * FOLD_COLUMNS + column;
        float *to = i < where.per_stream ? sum_of(g, i) : nullptr, s = 0.0f;
        for (int64_t b = strand; to && b < a.batch; b += FOLD_STRANDS)
            s += scratch[where.sums + b * where.per_stream + i];
        strands[strand][column] = s;
        __syncthreads();
        if (strand || !to) return;
        s = 0.0f;
        for (int k = 0; k < FOLD_STRANDS; k++) s += strands[k][column];
        *to += s;
        return;
    }
    const int64_t size = a.batch * a.time * 2 * where.padded,
                  i = int64_t(blockIdx.x - folds) * (FOLD_COLUMNS * FOLD_STRANDS) + thread;
    const int64_t row = i / (2 * where.padded), place = i % (2 * where.padded), n = place % where.padded;
    if (i >= size || n >= a.states) return;
    float total = 0.0f;
    for (int64_t k = 0; k < where.groups; k++) total += scratch[where.part + k * size + i];
    if (place < where.padded)
        store(static_cast<Stored *>(g.db) + row * g.lddb + n, total);
    else
        store(static_cast<Stored *>(g.dc) + row * g.lddc + n, total);
}

/* Whether rows lie so that four neighbours are one access. */
inline bool lie_in_fours(const xph_scan_grad_args *g, size_t element)
{
    const xph_scan_args *a = &g->fwd;
    const void *rows[] = {a->x, a->dt, a->z, g->dy, g->dx, g->ddt, g->dz},
               *channels[] = {a->skip, a->delta_bias};
    const int64_t ld[] = {a->ldx,  a->lddt,  a->z ? a->ldz : 0,  g->lddy,
                          g->lddx, g->ldddt, g->dz ? g->lddz : 0};
    uintptr_t all = 0;
    int64_t distances = a->width;
    for (int i = 0; i < 7; i++) all |= reinterpret_cast<uintptr_t>(rows[i]), distances |= ld[i];
    uintptr_t reals = 0;
    for (int i = 0; i < 2; i++) reals |= reinterpret_cast<uintptr_t>(channels[i]);
    return all % (4 * element) == 0 && distances % 4 == 0 && reals % sizeof(float4) == 0;
}

template <class Stored, int PADDED> struct gradient {
    static int run(const xph_scan_grad_args *g, cudaStream_t stream)
    {
        const xph_scan_args *a = &g->fwd;
        const layout where = layout_of(a);
        const float4 *marks = static_cast<const float4 *>(a->marks);
        if (!a->marked) {
            xph_scan_args forward = *a;
            forward.marks = static_cast<float *>(g->scratch) + where.marks;
            marks = static_cast<const float4 *>(forward.marks);
            const int error = scan_marks_bytes(a) ? xph_scan_marks(&forward, stream) : 0;
            if (error) return error;
        }
        const dim3 grid(as_grid(a->batch), as_grid(where.groups));
        XPH_LAUNCH((scan_grad<Stored, PADDED>), grid, dim3(THREADS), 0, stream, *g, where, marks,
                   lie_in_fours(g, sizeof(Stored)));
        constexpr int SIZE = FOLD_COLUMNS * FOLD_STRANDS;
        const int64_t folds = blocks_of(where.per_stream, FOLD_COLUMNS),
                      joins = blocks_of(a->batch * a->time * 2 * PADDED, SIZE);
        XPH_LAUNCH((scan_join<Stored>), dim3(as_grid(folds + joins)), dim3(SIZE), 0, stream, *g, where,
                   static_cast<int>(folds));
        return cudaGetLastError();
    }
};

/* Of many channels the kernel that makes marks has as many in a block, or more. */
bool accepts(const void *args)
{
    const xph_scan_grad_args *g = static_cast<const xph_scan_grad_args *>(args);
    return scan_fits(&g->fwd) && g->lddy < MOST_LD && g->lddx < MOST_LD && g->ldddt < MOST_LD &&
           g->lddz < MOST_LD && fits_across(layout_of(&g->fwd).groups);
}

size_t scratch_bytes(const void *args)
{
    const layout l = layout_of(&static_cast<const xph_scan_grad_args *>(args)->fwd);
    return static_cast<size_t>(l.total) * sizeof(float);
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
