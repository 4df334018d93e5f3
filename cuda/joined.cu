/* A step of play in one launch: what joined_plan.cu has listed, done by a cluster of blocks for each row (joined.cuh).
 *
 * A product is done by warps: warp w makes element w of every grain of its block, lanes take the inner dimension four numbers
 * at a time. The first weights of a product are on their way while the blocks meet before it, and all of them come into the
 * cache of the device at the beginning: nothing that is read from outside depends on what is computed, but ids and what is
 * drawn. Actions are drawn by block 0, head by head.
 */
#include "activate.cuh"
#include "draw.cuh"
#include "embed.cuh"
#include "fold.cuh"
#include "joined.cuh"
#include "rnn_cell.cuh"
#include "rnn_cluster.cuh"
#include "scan.cuh"

namespace
{

constexpr int AHEAD = 8;             /* quads of weights that a lane has on their way */
constexpr int LANE_QUADS = WARP * 4; /* numbers that the quads of a warp cover */
constexpr int64_t LINE = 128;

/* A block of the cluster at work on its row. */
struct worker {
    const joined_program &p;
    float *vectors;
    int64_t row;
    int rank, thread, lane, warp;

    /* Grains of a vector that are this block's, and element j of the m-th. */
    __device__ int grains(int width) const
    {
        return ((width + GRAIN - 1) / GRAIN - rank + (1 << p.turns) - 1) >> p.turns;
    }
    __device__ int element(int m, int j) const { return ((m << p.turns) + rank) * GRAIN + j; }
    /* f(element) for the elements of a vector that are the block's, each by `lanes` neighbouring threads; all threads come, those
     * that have none with `width` or more. */
    template <int LANES = 1, class Each> __device__ void each_own(int width, Each f) const
    {
        constexpr int ONCE = JOINED_THREADS / LANES;
        const int count = grains(width) * GRAIN;
        XPH_KEEP_LOOP
        for (int i = 0; i < count; i += ONCE) {
            const int own = i + thread / LANES;
            f(own < count ? element(own / GRAIN, own % GRAIN) : width);
        }
    }
    /* y: place of an element. Of `twins` threads that have it this is one. */
    __device__ void put(const joined_step &s, int y, float x, int twin = 0, int twins = 1) const
    {
        if (!s.spreads) {
            if (twin == 0) vectors[y] = x;
            return;
        }
        XPH_KEEP_LOOP
        for (int r = twin; r >> p.turns == 0; r += twins)
            *(r == rank ? vectors + y : xph_cluster_map(vectors + y, static_cast<unsigned>(r))) = x;
    }
    __device__ const float *state_in(int at) const { return p.state_in + row * p.ld_state + at; }
    __device__ float *state_out(int at) const { return p.state_out + row * p.ld_state + at; }
};

/* ---- from outside ---- */

__device__ inline void ask(const void *at)
{
#ifdef __CUDACC__
    asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
#else
    (void)at;
#endif
}
/* By the lanes of a warp. */
__device__ inline void ask_rows(const worker &w, const float *from, int64_t count)
{
    const char *at = reinterpret_cast<const char *>(from);
    XPH_KEEP_LOOP
    for (int64_t i = w.lane * LINE; i < count * int64_t(sizeof *from); i += WARP * LINE) ask(at + i);
}
__device__ inline void ask_own(const worker &w, const float *from, int rows, int width)
{
    XPH_KEEP_LOOP
    for (int m = 0; m < w.grains(rows); m++) {
        const int first = w.element(m, 0), count = first + GRAIN <= rows ? GRAIN : rows - first;
        ask_rows(w, from + int64_t(first) * width, int64_t(count) * width);
    }
}

/* What this block will want, a warp for some of the steps; and what is drawn with. */
__device__ inline void ask_all(const worker &w)
{
    const joined_program &p = w.p;
    if (!w.rank) row_noise(p.draw, 0, p.noise, p.ld_noise, w.row).make(w.vectors + p.noise_at, p.logits);
    if (!w.rank && w.thread < p.heads) {
        const int32_t before = p.previous ? p.previous[w.row * p.ld_previous + w.thread] : 0;
        w.vectors[p.previous_at + w.thread] = __uint_as_float(static_cast<unsigned>(before));
    }
    XPH_KEEP_LOOP
    for (int i = w.warp; i < p.count; i += JOINED_WARPS) {
        const joined_step &s = p.step[i];
        if (s.kind == JOINED_LINEAR || s.kind == JOINED_ODD)
            ask_own(w, s.linear.w, s.linear.out, s.linear.in);
        XPH_KEEP_LOOP
        for (int k = 0; s.kind == JOINED_RNN && k < (s.rnn.lstm ? LSTM : GRU); k++)
            ask_own(w, s.rnn.w + int64_t(k) * s.rnn.hidden * s.rnn.hidden, s.rnn.hidden, s.rnn.hidden);
    }
    if (w.rank || w.warp > 1) return;
    if (w.warp == 0) ask_rows(w, p.v, int64_t(p.logits) * p.width);
    if (w.warp == 1 && p.e) ask_rows(w, p.e, int64_t(p.logits) * p.width);
}

/* ---- products ---- */

/* What came before is there. */
__device__ inline void wait(const joined_step &s)
{
    if (s.meets)
        xph_cluster_wait();
    else
        __syncthreads();
}

/* Numbers k..k + 3 of a row of `count`, zeros behind it. */
__device__ inline float4 numbers_at(const float *row, int k, int count)
{
    if (k >= count) return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    XPH_ALIGNED(row + k, sizeof(float4));
    return *reinterpret_cast<const float4 *>(row + k);
}

__device__ inline void finish(const worker &w, const joined_step &s, int o, float sum, int twin, int twins)
{
    const joined_linear &a = s.linear;
    if (o >= a.out) return;
    if (a.bias) sum += load(a.bias + o);
    if (a.residual != NOWHERE) sum += w.vectors[a.residual + o];
    w.put(s, a.y + o, sum, twin, twins);
    if (a.leave && twin == 0) a.leave[w.row * a.ld_leave + o] = sum;
}

/* QUADS of a row for each lane, so that AHEAD of them are those of ROWS rows. A row that is longer is taken in turns. */
template <int QUADS> struct products {
    static constexpr int ROWS = AHEAD / QUADS, TURN = QUADS * LANE_QUADS, TWINS = WARP / ROWS;

    /* Of the grains from `first` on, and numbers from k0 on. */
    static __device__ void bring(const worker &w, const joined_step &s, float4 (&ahead)[AHEAD], int first,
                                 int k0)
    {
        const joined_linear &a = s.linear;
        XPH_UNROLL
        for (int n = 0; n < AHEAD; n++) {
            const int o = w.element(first + n / QUADS, w.warp), k = k0 + (n % QUADS * WARP + w.lane) * 4;
            ahead[n] = numbers_at(a.w + int64_t(o) * a.in, k, o < a.out ? a.in : 0);
        }
    }
    static __device__ void run(const worker &w, const joined_step &s)
    {
        const joined_linear &a = s.linear;
        const int grains = w.grains(a.out);
        float4 ahead[AHEAD];
        bring(w, s, ahead, 0, 0);
        wait(s);
        XPH_KEEP_LOOP
        for (int first = 0; first < grains; first += ROWS) {
            float sum[ROWS];
            XPH_UNROLL
            for (int m = 0; m < ROWS; m++) sum[m] = 0.0f;
            XPH_KEEP_LOOP
            for (int k0 = 0; k0 < a.in; k0 += TURN) {
                if (first || k0) bring(w, s, ahead, first, k0);
                XPH_UNROLL
                for (int i = 0; i < QUADS; i++) {
                    const int k = k0 + (i * WARP + w.lane) * 4;
                    const float4 x = numbers_at(w.vectors + a.x, k, a.in);
                    XPH_UNROLL
                    for (int m = 0; m < ROWS; m++) sum[m] = add_quad(x, ahead[m * QUADS + i], sum[m]);
                }
            }
            const int m = fold_lanes<ROWS, 1>(sum, w.lane);
            finish(w, s, w.element(first + m, w.warp), sum[0], w.lane % TWINS, TWINS);
        }
    }
};

__device__ inline void odd(const worker &w, const joined_step &s)
{
    const joined_linear &a = s.linear;
    XPH_KEEP_LOOP
    for (int m = 0; m < w.grains(a.out); m++) {
        const int o = w.element(m, w.warp);
        const float *row = a.w + int64_t(o < a.out ? o : 0) * a.in;
        float sum = 0.0f;
        XPH_KEEP_LOOP
        for (int k = w.lane; k < a.in; k += WARP) {
            const float x = w.vectors[a.x + k];
            sum = fmaf(load(row + k), s.flags & JOINED_SILU ? silu(x) : x, sum);
        }
        finish(w, s, o, sum_of_warp(sum), w.lane, WARP);
    }
}

/* f(products for rows of so many numbers) */
template <class Each> __device__ inline void with_products(int in, Each f)
{
    if (in <= LANE_QUADS) return f(products<1>());
    if (in <= 2 * LANE_QUADS) return f(products<2>());
    if (in <= 4 * LANE_QUADS) return f(products<4>());
    f(products<8>());
}

/* ---- LayerNorm ---- */

/* Every warp has the moments of the whole row, a thread writes some columns of it. Up to HELD of a lane stay in registers. */
constexpr int HELD = 8;
__device__ inline void norm(const worker &w, const joined_step &s)
{
    const joined_norm &a = s.norm;
    const float *from = w.vectors + a.x, count = static_cast<float>(a.width);
    float x[HELD], sum = 0.0f, squares = 0.0f;
    XPH_UNROLL
    for (int i = 0; i < HELD; i++) {
        x[i] = i * WARP + w.lane < a.width ? from[i * WARP + w.lane] : 0.0f;
        sum += x[i];
    }
    XPH_KEEP_LOOP
    for (int c = HELD * WARP + w.lane; c < a.width; c += WARP) sum += from[c];
    const float mean = sum_of_warp(sum) / count;
    XPH_UNROLL
    for (int i = 0; i < HELD; i++) {
        const float d = x[i] - mean;
        if (i * WARP + w.lane < a.width) squares = fmaf(d, d, squares);
    }
    XPH_KEEP_LOOP
    for (int c = HELD * WARP + w.lane; c < a.width; c += WARP)
        squares = fmaf(from[c] - mean, from[c] - mean, squares);
    const float rstd = 1.0f / sqrtf(sum_of_warp(squares) / count + a.epsilon);
    XPH_KEEP_LOOP
    for (int c = w.thread; c < a.width; c += JOINED_THREADS) {
        const float n = fmaf((from[c] - mean) * rstd, load(a.gain + c), load(a.shift + c));
        w.vectors[a.y + c] = s.flags & JOINED_SILU ? silu(n) : n;
    }
}

/* ---- blocks of a model ---- */

/* TAPS or fewer. */
template <int TAPS> __device__ inline void conv(const worker &w, const joined_step &s)
{
    const joined_conv &a = s.conv;
    w.each_own(a.width, [&](int channel) {
        if (channel >= a.width) return;
        const float *taps = a.w + int64_t(channel) * a.taps, *in = w.state_in(a.state) + channel;
        float *out = w.state_out(a.state) + channel, x[TAPS], weight[TAPS], sum = load(a.bias + channel);
        XPH_UNROLL
        for (int j = 0; j < TAPS; j++) {
            weight[j] = j < a.taps ? load(taps + j) : 0.0f;
            x[j] = j + 1 < a.taps ? in[j * a.width] : w.vectors[a.x + channel];
        }
        XPH_UNROLL
        for (int j = 0; j < TAPS; j++) {
            if (j >= a.taps) continue;
            sum = fmaf(weight[j], x[j], sum);
            if (j) out[(j - 1) * a.width] = x[j];
        }
        w.put(s, a.y + channel, silu(sum));
    });
}

/* Four lanes have a channel. */
template <int PADDED> __device__ inline void scan(const worker &w, const joined_step &s)
{
    constexpr int OWN = PADDED / CHAINS;
    const joined_scan &a = s.scan;
    const int first = w.thread % CHAINS * OWN;
    w.each_own<CHAINS>(a.width, [&](int channel) {
        const bool there = channel < a.width;
        const int mine = there ? channel : 0;
        const float *in = w.state_in(a.state) + mine * a.states;
        float *out = w.state_out(a.state) + mine * a.states;
        float h[OWN], rate[OWN], b[OWN], c[OWN];
        XPH_UNROLL
        for (int i = 0; i < OWN; i++) {
            const int n = first + i;
            const bool held = n < a.states;
            h[i] = held ? in[n] : 0.0f;
            b[i] = held ? w.vectors[a.b + n] : 0.0f;
            c[i] = held ? w.vectors[a.c + n] : 0.0f;
            rate[i] = held ? -static_cast<float>(n + 1) * LOG2_E : 0.0f;
            if (!held || s.flags & JOINED_COUNTS) continue;
            const float of = load(a.rates + mine * a.states + n);
            rate[i] = s.flags & JOINED_RATES ? of : scan_rate_of(of);
        }
        const float x = there ? w.vectors[a.x + channel] : 0.0f,
                    dt = there ? w.vectors[a.dt + channel] : 0.0f;
        const float delta = scan_delta(false, dt + scan_of_channel(a.delta_bias, mine));
        float y = scan_advance<PADDED, CHAINS>(h, rate, delta, delta * x, false, b, c);
        if (!there) return;
        y = fmaf(scan_of_channel(a.skip, channel), x, y);
        if (a.z != NOWHERE) {
            const float z = w.vectors[a.z + channel];
            y *= z * scan_sigmoid(z);
        }
        w.put(s, a.y + channel, y, w.thread % CHAINS, CHAINS);
        XPH_UNROLL
        for (int i = 0; i < OWN; i++)
            if (first + i < a.states) out[first + i] = h[i];
    });
}

__device__ inline void scan_of(const worker &w, const joined_step &s)
{
    if (s.scan.states <= 8) return scan<8>(w, s);
    if (s.scan.states <= 16) return scan<16>(w, s);
    scan<32>(w, s);
}

/* A warp makes the gates of a unit. state: h, behind it c of an LSTM. */
template <int G> __device__ inline void rnn(const worker &w, const joined_step &s)
{
    const joined_rnn &a = s.rnn;
    const float *h = w.state_in(a.state);
    float *out = w.state_out(a.state);
    const bool quads = s.flags & JOINED_QUADS;
    XPH_KEEP_LOOP
    for (int m = 0; m < w.grains(a.hidden); m++) {
        const int unit = w.element(m, w.warp);
        if (unit >= a.hidden) continue;
        float gate[G];
        XPH_UNROLL
        for (int k = 0; k < G; k++) gate[k] = 0.0f;
        const float *row = a.w + int64_t(unit) * a.hidden;
        const int64_t next = int64_t(a.hidden) * a.hidden;
        XPH_KEEP_LOOP
        for (int at = w.lane * 4; quads && at < a.hidden; at += LANE_QUADS) {
            const float4 x = numbers_at(h, at, a.hidden);
            XPH_UNROLL
            for (int k = 0; k < G; k++)
                gate[k] = add_quad(x, numbers_at(row + k * next, at, a.hidden), gate[k]);
        }
        XPH_KEEP_LOOP
        for (int at = w.lane; !quads && at < a.hidden; at += WARP) {
            const float x = h[at];
            XPH_UNROLL
            for (int k = 0; k < G; k++) gate[k] = fmaf(load(row + k * next + at), x, gate[k]);
        }
        cell<G> to = {};
        XPH_UNROLL
        for (int k = 0; k < G; k++) {
            gate[k] = sum_of_warp(gate[k]);
            if (a.bias) gate[k] += load(a.bias + k * a.hidden + unit);
            to.gx[k] = w.vectors[a.gx + k * a.hidden + unit];
        }
        if (G == GRU) to.h = h[unit];
        if (G == LSTM) to.c = h[a.hidden + unit];
        to.step(gate);
        w.put(s, a.y + unit, to.h, w.lane, WARP);
        if (w.lane == 0) out[unit] = to.h;
        if (G == LSTM && w.lane == 0) out[a.hidden + unit] = to.c;
    }
}

/* ---- attention ---- */

/* Below every score; finite, so that a score of -infinity weighs nothing. */
constexpr float UNSEEN_BASE = -1e30f;

/* A softmax as far as it went: the sums are of 2^(score - base), as they are and times the columns that the lane has of a value. */
struct attended {
    float base, total, sum[JOINED_COLUMNS];

    __device__ void add(float other_base, float other_total)
    {
        const float most = fmaxf(base, other_base), own = exp2_fast(base - most),
                    theirs = exp2_fast(other_base - most);
        total = fmaf(total, own, other_total * theirs);
        base = most;
        XPH_UNROLL
        for (int i = 0; i < JOINED_COLUMNS; i++) sum[i] *= own;
        factor = theirs;
    }
    float factor; /* of the other's values, after add */
};

/* Numbers that a lane has of a row of dim, zeros behind it. */
__device__ inline void columns_of(float (&to)[JOINED_COLUMNS], const float *row, int dim, int lane)
{
    XPH_UNROLL
    for (int i = 0; i < JOINED_COLUMNS; i++) to[i] = i * WARP + lane < dim ? row[i * WARP + lane] : 0.0f;
}

/* The stream's ring; slots are counted in floats, and whatever was restored from outside must not lead out of it. */
struct ring {
    const float *in;
    int span, window, next, filled;

    __device__ ring(const worker &w, const joined_attention &a)
        : in(w.state_in(a.state)), span(a.heads * a.dim), window(a.window)
    {
        const float *counters = in + 2 * int64_t(window) * span;
        next = counters[0] >= 0.0f && counters[0] < static_cast<float>(window) ? static_cast<int>(counters[0])
                                                                               : 0;
        filled = counters[1] >= 0.0f && counters[1] <= static_cast<float>(window)
                     ? static_cast<int>(counters[1])
                     : 0;
    }
    /* Of the key `distance` frames ago, 1 at least; values lie window * span further. */
    __device__ const float *key(int distance) const
    {
        const int slot = next - distance;
        return in + int64_t(slot < 0 ? slot + window : slot) * span;
    }
};

/* The keys of a part of a head that this warp takes. */
__device__ inline attended attend_warp(const worker &w, const joined_attention &a, const ring &r, int head,
                                       int part)
{
    const float *now = w.vectors + a.qkv + head * a.dim, scale = LOG2_E / sqrtf(static_cast<float>(a.dim));
    const int seen = r.filled + 1, count = seen < r.window ? seen : r.window;
    attended to = {UNSEEN_BASE, 0.0f, {}, 0.0f};
    float q[JOINED_COLUMNS], k[JOINED_COLUMNS], v[JOINED_COLUMNS];
    columns_of(q, now, a.dim, w.lane);
    XPH_KEEP_LOOP
    for (int distance = part * JOINED_WARPS + w.warp; distance < count; distance += a.splits * JOINED_WARPS) {
        const float *key = distance ? r.key(distance) + head * a.dim : now + r.span;
        columns_of(k, key, a.dim, w.lane);
        columns_of(v, distance ? key + int64_t(r.window) * r.span : now + 2 * r.span, a.dim, w.lane);
        float dot = 0.0f;
        XPH_UNROLL
        for (int i = 0; i < JOINED_COLUMNS; i++) dot = fmaf(q[i], k[i], dot);
        to.add(fmaf(sum_of_warp(dot), scale, load(a.bias + head * a.window + distance) * LOG2_E), 1.0f);
        XPH_UNROLL
        for (int i = 0; i < JOINED_COLUMNS; i++) to.sum[i] = fmaf(v[i], to.factor, to.sum[i]);
    }
    return to;
}

/* Puts together `count` parts that lie `each` apart, base and total before their values: that of column c. */
struct gathered {
    float base, total, value;
};
__device__ inline gathered gather_parts(const float *parts, int count, int each, int c)
{
    float base = UNSEEN_BASE;
    XPH_KEEP_LOOP
    for (int i = 0; i < count; i++) base = fmaxf(base, parts[i * each]);
    gathered to = {base, 0.0f, 0.0f};
    XPH_KEEP_LOOP
    for (int i = 0; i < count; i++) {
        const float factor = exp2_fast(parts[i * each] - base);
        to.total = fmaf(parts[i * each + 1], factor, to.total);
        to.value = fmaf(parts[i * each + 2 + c], factor, to.value);
    }
    return to;
}

/* What moves on in the ring: all of it, or, where the state that is written has been this one a frame ago, what it lacks. */
__device__ inline void move_ring(const worker &w, const joined_attention &a, const ring &r)
{
    const int newest = r.next ? r.next - 1 : r.window - 1;
    const int64_t half = int64_t(r.window) * r.span;
    float *out = w.state_out(a.state);
    if (out != r.in && !a.lagging) {
        XPH_KEEP_LOOP
        for (int64_t i = int64_t(w.rank) * JOINED_THREADS + w.thread; i < 2 * half;
             i += int64_t(JOINED_THREADS) << w.p.turns)
            if (i % half / r.span != r.next) out[i] = r.in[i];
    }
    w.each_own(r.span, [&](int c) {
        if (c >= r.span) return;
        XPH_UNROLL
        for (int part = 0; part < 2; part++) {
            const int64_t at = part * half + c;
            const int64_t last = at + int64_t(newest) * r.span;
            if (out != r.in && a.lagging && newest != r.next) out[last] = r.in[last];
            out[at + int64_t(r.next) * r.span] = w.vectors[a.qkv + (1 + part) * r.span + c];
        }
    });
    if (w.rank || w.thread) return;
    out[2 * half] = static_cast<float>(r.next + 1 < r.window ? r.next + 1 : 0);
    out[2 * half + 1] = static_cast<float>(r.filled < r.window ? r.filled + 1 : r.window);
}

__device__ inline void attend(const worker &w, const joined_step &s)
{
    const joined_attention &a = s.attention;
    const ring r(w, a);
    const int each = a.dim + 2;
    XPH_KEEP_LOOP
    for (int unit = w.rank; unit < a.heads * a.splits; unit += 1 << w.p.turns) {
        const attended of = attend_warp(w, a, r, unit / a.splits, unit % a.splits);
        float *own = w.vectors + a.own + w.warp * each;
        __syncthreads(); /* the last unit was read */
        if (w.lane == 0) own[0] = of.base;
        if (w.lane == 0) own[1] = of.total;
        XPH_UNROLL
        for (int i = 0; i < JOINED_COLUMNS; i++)
            if (i * WARP + w.lane < a.dim) own[2 + i * WARP + w.lane] = of.sum[i];
        __syncthreads();
        XPH_KEEP_LOOP
        for (int c = w.thread; c < a.dim; c += JOINED_THREADS) {
            const gathered all = gather_parts(w.vectors + a.own, JOINED_WARPS, each, c);
            if (c == 0) w.put(s, a.parts + unit * each, all.base);
            if (c == 0) w.put(s, a.parts + unit * each + 1, all.total);
            w.put(s, a.parts + unit * each + 2 + c, all.value);
        }
    }
    move_ring(w, a, r);
}

__device__ inline void gather(const worker &w, const joined_step &s)
{
    const joined_attention &a = s.attention;
    const int each = a.dim + 2;
    w.each_own(a.heads * a.dim, [&](int i) {
        if (i >= a.heads * a.dim) return;
        const gathered all =
            gather_parts(w.vectors + a.parts + i / a.dim * a.splits * each, a.splits, each, i % a.dim);
        w.put(s, a.y + i, __fdividef(all.value, all.total));
    });
}

/* ---- numbers by themselves ---- */

__device__ inline void embed(const worker &w, const joined_step &s)
{
    const joined_program &p = w.p;
    w.each_own(p.row_width, [&](int c) {
        if (c < p.row_width)
            w.put(s, p.row + c, embed_number(p.embed, p, embed_column_of(p.embed, p, c), w.row));
    });
}

__device__ inline void activate(const worker &w, const joined_step &s)
{
    const joined_activate &a = s.activate;
    const activation f = {a.kind, a.low, a.high};
    w.each_own(a.count, [&](int i) {
        float slope;
        if (i < a.count) w.put(s, a.y + i, activated(f, w.vectors[a.x + i], &slope));
    });
}

__device__ inline void sum(const worker &w, const joined_step &s)
{
    const joined_sum &a = s.sum;
    w.each_own(a.count, [&](int i) {
        if (i < a.count) w.put(s, a.y + i, w.vectors[a.x + i] + w.vectors[a.from + i]);
    });
}

/* ---- the draw ---- */

/* hidden = SiLU(trunk), columns by threads. */
struct drawer {
    const worker &w;
    float *trunk, *hidden, *scores;

    /* The scores of a head, a warp for every class or bit. */
    __device__ void score(int h) const
    {
        const joined_program &p = w.p;
        const rule r = {p.head[h], p.how[h]};
        const xph_head &head = r.head;
        const uint32_t before = __float_as_uint(w.vectors[p.previous_at + h]);
        constexpr int ONCE = 4;
        XPH_KEEP_LOOP
        for (int first = w.warp; first < head.count; first += ONCE * JOINED_WARPS) {
            float sum[ONCE];
            const float *v = p.v + (head.first + first) * p.width;
            XPH_UNROLL
            for (int i = 0; i < ONCE; i++) sum[i] = 0.0f;
            const auto there = [&](int i) { return first + i * JOINED_WARPS < head.count; };
            XPH_KEEP_LOOP
            for (int c = w.lane * 4; p.draws_quads && c < p.width; c += LANE_QUADS) {
                const float4 x = *reinterpret_cast<const float4 *>(hidden + c);
                XPH_UNROLL
                for (int i = 0; i < ONCE; i++)
                    sum[i] = add_quad(
                        x, numbers_at(v + i * JOINED_WARPS * p.width, c, there(i) ? p.width : 0), sum[i]);
            }
            XPH_KEEP_LOOP
            for (int c = w.lane; !p.draws_quads && c < p.width; c += WARP) {
                XPH_UNROLL
                for (int i = 0; i < ONCE; i++)
                    if (there(i)) sum[i] = fmaf(load(v + i * JOINED_WARPS * p.width + c), hidden[c], sum[i]);
            }
            const int k = first + fold_lanes<ONCE, 1>(sum, w.lane) * JOINED_WARPS;
            const int l = static_cast<int>(head.first) + k;
            if (w.lane % (WARP / ONCE) || k >= head.count) continue;
            float logit = sum[0];
            if (p.bias) logit += load(p.bias + l);
            if (p.base != NOWHERE) logit += w.vectors[p.base + l];
            if (p.y) p.y[w.row * p.ld_y + l] = logit;
            scores[l] = score_of(r, logit, compared(r, scores[l]), k < 32 && before >> k & 1u);
        }
    }
    __device__ int32_t take(const xph_head &head) const
    {
        const float *own = scores + head.first;
        if (head.kind != EXPHIL_CATEGORICAL)
            return static_cast<int32_t>(__ballot_sync(ALL_LANES, w.lane < head.count && own[w.lane] > 0.0f));
        float best = -INFINITY;
        int32_t taken = 0;
        XPH_KEEP_LOOP
        for (int k = w.lane; k < head.count; k += WARP) {
            if (!(own[k] > best)) continue;
            best = own[k];
            taken = k;
        }
        return best_class(best, taken);
    }
    /* The trunk with the rows of e that an action takes, one after the other. */
    __device__ void move_on(const xph_head &head, int32_t action) const
    {
        XPH_KEEP_LOOP
        for (int c = w.thread; c < w.p.width; c += JOINED_THREADS) {
            const float *e = w.p.e + head.first * w.p.width + c;
            float x = trunk[c];
            if (head.kind == EXPHIL_CATEGORICAL) x += load(e + int64_t(action) * w.p.width);
            XPH_KEEP_LOOP
            for (int k = 0; head.kind != EXPHIL_CATEGORICAL && k < head.count; k++)
                if (static_cast<uint32_t>(action) >> k & 1u) x += load(e + int64_t(k) * w.p.width);
            trunk[c] = x;
            hidden[c] = silu(x);
        }
    }
};

/* Scores take the place of the numbers that they are drawn with. */
__device__ inline void sample(const worker &w)
{
    XPH_SHARED(float4, quads, [JOINED_WIDTH / 4]);
    float *const hidden = &quads[0].x;
    const joined_program &p = w.p;
    if (w.rank) return;
    const drawer d = {w, w.vectors + p.z, hidden, w.vectors + p.noise_at};
    XPH_KEEP_LOOP
    for (int c = w.thread; c < p.width; c += JOINED_THREADS) hidden[c] = silu(d.trunk[c]);
    __syncthreads();
    XPH_KEEP_LOOP
    for (int h = 0; h < p.heads; h++) {
        d.score(h);
        __syncthreads();
        const int32_t action = d.take(p.head[h]);
        if (w.thread == 0 && p.actions) p.actions[w.row * p.ld_actions + h] = action;
        if (!p.e || h + 1 == p.heads) continue;
        d.move_on(p.head[h], action);
        __syncthreads();
    }
}

/* ---- all of it ---- */

__device__ inline void work(const worker &w, const joined_step &s)
{
    switch (s.kind) {
    case JOINED_EMBED:
        return embed(w, s);
    case JOINED_ODD:
        return odd(w, s);
    case JOINED_NORM:
        return norm(w, s);
    case JOINED_CONV:
        return s.conv.taps <= 4 ? conv<4>(w, s) : conv<16>(w, s);
    case JOINED_SCAN:
        return scan_of(w, s);
    case JOINED_RNN:
        return s.rnn.lstm ? rnn<LSTM>(w, s) : rnn<GRU>(w, s);
    case JOINED_ATTEND:
        return attend(w, s);
    case JOINED_GATHER:
        return gather(w, s);
    case JOINED_ACTIVATE:
        return activate(w, s);
    case JOINED_SUM:
        return sum(w, s);
    default:
        return sample(w);
    }
}

template <class Unused = void>
__global__ void __launch_bounds__(JOINED_THREADS, 1) joined(const joined_program p)
{
    XPH_ENTER();
#if !defined(__CUDACC__) || XPH_HAS_CLUSTERS
    XPH_SHARED_DYNAMIC(float, vectors);
    const int thread = static_cast<int>(threadIdx.x);
    const worker w = {p,      vectors,       blockIdx.x >> p.turns, static_cast<int>(xph_cluster_rank()),
                      thread, thread % WARP, thread / WARP};
    ask_all(w);
    XPH_KEEP_LOOP
    for (int i = 0; i < p.count; i++) {
        const joined_step &s = p.step[i];
        if (s.meets) xph_cluster_arrive();
        if (s.kind == JOINED_LINEAR) {
            with_products(s.linear.in, [&](auto of) { of.run(w, s); });
        } else {
            wait(s);
            work(w, s);
        }
    }
#endif
}

}  // namespace

/* Of the kernel itself, and the system's. */
constexpr int OWN_SHARED = 8 * 1024;

/* Bytes of vectors that a block may have on this device. */
static size_t most_bytes()
{
    const int64_t bytes = xph_most_shared() - OWN_SHARED;
    return static_cast<size_t>(bytes < JOINED_BYTES ? (bytes > 0 ? bytes : 0) : JOINED_BYTES);
}

int joined_room(unsigned blocks, size_t shared_bytes)
{
    const size_t most = most_bytes();
    if (processor_of_thread().compute < CLUSTER_COMPUTE || shared_bytes > most) return 0;
    return xph_cluster_room(joined<>, blocks, dim3(JOINED_THREADS), most, OWN_SHARED);
}

int joined_launch(const joined_program &program, unsigned blocks, int64_t rows, cudaStream_t stream)
{
    const size_t bytes = static_cast<size_t>(program.floats) * sizeof(float);
    XPH_LAUNCH_CLUSTER((joined<>), blocks, dim3(as_grid(rows * blocks)), dim3(JOINED_THREADS), bytes, stream,
                       program);
    return cluster_code(cudaGetLastError());
}
