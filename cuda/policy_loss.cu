/* The loss of learning from play and its gradients (XPH_OP_POLICY_LOSS), in double with the bits of the host's
 * (lib/device/policy_row.h). A block takes 32 rows into shared memory. A warp computes one logit of all rows (exponentials,
 * gradients), or adds up one unit of all rows, in order. Sums over rows are those of blocks, which policy_fold adds.
 *
 * Exponentials are most of the work, and divisions most of those: by numbers that the compiler knows, they are a product that
 * is set right. With z next to 1 / k, q = x z is less than an ulp off x / k if the error of z, in halves of its ulp, is at most
 * half of 1 / k, scaled to 1..2. Then r = x - k q is exact, and q + r z rounds as x / k does (Markstein 1990, Theorem 8). All
 * of the divisors here are such.
 */
#include "kernels.h"
#include "launch.cuh"

#define XPH_ON_DEVICE     __device__
#define XPH_UNROLLED      XPH_UNROLL
#define XPH_DIVIDED(x, k) divided(x, static_cast<double>(k))
__device__ inline double divided(double x, double k)
{
    const double z = 1.0 / k, q = x * z;
    if (k == 1.0 || k == 2.0 || k == 4.0 || k == 8.0 || k == 16.0) return q;
    return fma(fma(-k, q, x), z, q);
}

#include "device/policy_row.h"
#include "fold.cuh"

namespace
{

constexpr int ROWS = WARP, THREADS = 256, WARPS = THREADS / WARP, MOST_HEADS = EXPHIL_HEADS_MAX;

struct head_of_policy {
    int32_t kind, count, first, unit; /* unit: the first of its own */
    double temperature;
};
struct heads_of_policy {
    head_of_policy head[MOST_HEADS];
    int32_t heads, logits, units, ld; /* ld: of a row in shared memory */
};

/* What is kept of a unit: log p of what was done, and what it adds. */
enum { TAKEN, ENTROPY, KL_OLD, TO_TEACHER, FROM_TEACHER, UNIT_NUMBERS };
/* Of a block, and of all. */
enum {
    IN_ROWS,
    IN_LOSS,
    IN_MISS,
    IN_RATIO,
    IN_CLIPPED,
    IN_OLD,
    IN_TO,
    IN_FROM,
    IN_ENTROPY,
    IN_IMITATED,
    IN_NLL,
    SUMS
};
enum { IN_APART = SUMS, BAD_LOGIT, BAD_VALUE, PARTS };
constexpr double NONE = 1e300; /* in the place of what is not finite */

struct view {
    double *log, *p;          /* [ROWS, ld]: of logits, their logs, and chances; at last gradients in p */
    double *unit;             /* [UNIT_NUMBERS, units, ROWS], before that [heads, ROWS] */
    double *advance, *factor; /* [ROWS] */
    int64_t *at;              /* [ROWS] of a row: its place among all that were played */
    int32_t *what;            /* [ROWS] XPH_ROW_... */
    uint32_t *bad;            /* of the gradients, INT32_MAX less the first that is not finite; 0: none */
    uint8_t *head_of;         /* [logits] */
    int64_t first;            /* row of all */
    int rows, thread, warp, lane;
    bool lives; /* there is a row for this lane */
};

inline size_t shared_bytes(const heads_of_policy &h)
{
    const size_t numbers = static_cast<size_t>(2 * h.ld + UNIT_NUMBERS * h.units + 3);
    return ROWS * (numbers * sizeof(double) + sizeof(int32_t)) + 4 * sizeof(uint32_t) +
           static_cast<size_t>(h.logits);
}

__device__ inline view view_of(const heads_of_policy &h, unsigned char *shared, int64_t rows)
{
    view w;
    w.log = reinterpret_cast<double *>(shared);
    w.p = w.log + ROWS * h.ld;
    w.unit = w.p + ROWS * h.ld;
    w.advance = w.unit + UNIT_NUMBERS * h.units * ROWS;
    w.factor = w.advance + ROWS;
    w.at = reinterpret_cast<int64_t *>(w.factor + ROWS);
    w.what = reinterpret_cast<int32_t *>(w.at + ROWS);
    w.bad = reinterpret_cast<uint32_t *>(w.what + ROWS);
    w.head_of = reinterpret_cast<uint8_t *>(w.bad + 4);
    w.first = int64_t(blockIdx.x) * ROWS;
    w.rows = static_cast<int>(rows - w.first < ROWS ? rows - w.first : ROWS);
    w.thread = static_cast<int>(threadIdx.x);
    w.warp = w.thread / WARP;
    w.lane = w.thread % WARP;
    w.lives = w.lane < w.rows;
    for (int l = w.thread; l < h.logits; l += THREADS) {
        int of = h.heads - 1;
        while (h.head[of].first > l) of--;
        w.head_of[l] = static_cast<uint8_t>(of);
    }
    return w;
}

/* ---- logs and chances ---- */

/* Logits by the temperature of their head. */
__device__ inline void read_logits(const heads_of_policy &h, const view &w, const float *y,
                                   uint32_t *not_finite)
{
    for (int i = w.thread; i < w.rows * h.logits; i += THREADS) {
        const int row = i / h.logits, l = i % h.logits;
        const float x = y[w.first * h.logits + i];
        const double wide = static_cast<double>(x), temperature = h.head[w.head_of[l]].temperature;
        if (not_finite && x - x != 0.0f) atomicMax(not_finite, 1u);
        w.log[row * h.ld + l] = temperature == 1.0 ? wide : wide / temperature;
    }
}

/* f(number of a categorical head, the place of its first logit in this lane's row) */
template <class Each> __device__ inline void each_categorical(const heads_of_policy &h, const view &w, Each f)
{
    for (int k = w.warp; k < h.heads; k += WARPS)
        if (w.lives && h.head[k].kind == EXPHIL_CATEGORICAL) f(k, w.lane * h.ld + h.head[k].first);
}
/* f(logit, its head, its place in this lane's row) */
template <class Each> __device__ inline void each_logit(const heads_of_policy &h, const view &w, Each f)
{
    for (int l = w.warp; l < h.logits; l += WARPS)
        if (w.lives) f(l, w.head_of[l], w.lane * h.ld + l);
}

__device__ inline void distribute(const heads_of_policy &h, const view &w)
{
    double *const most = w.unit;
    each_categorical(h, w, [&](int k, int at) {
        double top = w.log[at];
        for (int i = 1; i < h.head[k].count; i++)
            if (w.log[at + i] > top) top = w.log[at + i];
        most[k * ROWS + w.lane] = top;
    });
    __syncthreads();
    each_logit(h, w, [&](int, int k, int at) {
        if (h.head[k].kind == EXPHIL_CATEGORICAL) w.p[at] = xph_power(w.log[at] - most[k * ROWS + w.lane]);
    });
    __syncthreads();
    each_categorical(h, w, [&](int k, int at) {
        double sum = 0.0;
        for (int i = 0; i < h.head[k].count; i++) sum += w.p[at + i];
        most[k * ROWS + w.lane] += xph_log_double(sum);
    });
    __syncthreads();
    each_logit(h, w, [&](int, int k, int at) {
        double x = w.log[at];
        if (h.head[k].kind == EXPHIL_CATEGORICAL)
            w.log[at] = x -= most[k * ROWS + w.lane];
        else
            x = -xph_bit_of(x).down;
        w.p[at] = xph_power(x);
    });
    __syncthreads();
}

template <class Unused = void>
__global__ void __launch_bounds__(THREADS) policy_logs(const xph_policy_loss_args a, const heads_of_policy h)
{
    XPH_ENTER();
    XPH_SHARED_DYNAMIC(unsigned char, shared);
    const view w = view_of(h, shared, a.rows);
    const int64_t row = w.first + w.lane, frame = row % a.stride, to = row / a.stride * a.time + frame;
    __syncthreads();
    read_logits(h, w, a.y, a.not_finite);
    __syncthreads();
    distribute(h, w);
    if (frame >= a.time) return;
    each_logit(h, w, [&](int l, int, int at) {
        a.logs[l * a.all + to] = w.log[at];
        a.chances[l * a.all + to] = w.p[at];
    });
}

/* ---- the loss ---- */

/* What the row of this lane says of head k; old and teacher have no part in imitation. */
__device__ inline xph_policy_head head_of_row(const xph_policy_loss_args &a, const heads_of_policy &h,
                                              const view &w, int k)
{
    const bool played = w.what[w.lane] == XPH_ROW_PLAYED;
    const int64_t far = h.head[k].first * a.all + w.at[w.lane];
    const int near = w.lane * h.ld + h.head[k].first;
    return {w.log + near,
            w.p + near,
            played && a.old ? a.old + far : nullptr,
            played && a.old ? a.old_chances + far : nullptr,
            played && a.teacher ? a.teacher + far : nullptr,
            played && a.teacher ? a.teacher_chances + far : nullptr,
            a.all,
            a.actions[(w.first + w.lane) * h.heads + k]};
}

__device__ inline double &unit_number(const heads_of_policy &h, const view &w, int number, int unit)
{
    return w.unit[(number * h.units + unit) * ROWS + w.lane];
}

/* Log p of what was done. */
__device__ inline double taken_of(const head_of_policy &head, const xph_policy_head &one, int bit)
{
    if (head.kind == EXPHIL_CATEGORICAL) return one.log[one.action];
    const xph_bit own = xph_bit_of(one.log[bit]);
    return -(one.action >> bit & 1 ? own.down : own.up);
}

__device__ inline void measure_units(const xph_policy_loss_args &a, const heads_of_policy &h, const view &w)
{
    for (int u = w.warp; u < h.units; u += WARPS) {
        if (!w.lives || w.what[w.lane] == XPH_ROW_NONE) continue;
        int k = h.heads - 1;
        while (h.head[k].unit > u) k--;
        const int bit = u - h.head[k].unit;
        const xph_policy_head one = head_of_row(a, h, w, k);
        const xph_policy_unit unit = h.head[k].kind == EXPHIL_CATEGORICAL
                                         ? xph_classes_unit(&one, h.head[k].count)
                                         : xph_bit_unit(&one, bit);
        unit_number(h, w, TAKEN, u) = taken_of(h.head[k], one, bit);
        unit_number(h, w, ENTROPY, u) = unit.entropy;
        unit_number(h, w, KL_OLD, u) = unit.kl_old;
        unit_number(h, w, TO_TEACHER, u) = unit.kl_to_teacher;
        unit_number(h, w, FROM_TEACHER, u) = unit.kl_from_teacher;
    }
}

__device__ inline xph_policy_unit unit_of(const heads_of_policy &h, const view &w, int u)
{
    return {unit_number(h, w, ENTROPY, u), unit_number(h, w, KL_OLD, u), unit_number(h, w, TO_TEACHER, u),
            unit_number(h, w, FROM_TEACHER, u)};
}

/* What a row comes to, with all that is asked of its units. */
struct row_result {
    xph_policy_result result;
    double miss, dvalue;
};

__device__ inline row_result result_of_row(const xph_policy_loss_args &a, const heads_of_policy &h,
                                           const view &w)
{
    row_result r = {};
    const int32_t what = w.lives ? w.what[w.lane] : XPH_ROW_NONE;
    const int64_t at = w.lives ? w.at[w.lane] : 0;
    double taken = 0.0, advance = -1.0, factor = a.imitation;
    for (int u = 0; what != XPH_ROW_NONE && u < h.units; u++) taken += unit_number(h, w, TAKEN, u);
    if (what == XPH_ROW_PLAYED) {
        const double apart = taken - a.log_probability[at];
        r.result.apart = apart < 0.0 ? -apart : apart;
        advance = xph_policy_surrogate(&a.terms, a.advantage[at], xph_power(apart), &r.result);
        factor = a.scale;
        for (int u = 0; u < h.units; u++) {
            const xph_policy_unit unit = unit_of(h, w, u);
            xph_policy_add(&r.result, &unit);
        }
        r.result.loss = xph_policy_row_loss(&a.terms, &r.result);
        const double miss = static_cast<double>(a.values[w.first + w.lane]) - a.target[at];
        r.miss = miss * miss;
        r.dvalue = 2.0 * a.value * a.scale * miss;
    } else if (what == XPH_ROW_IMITATED) {
        r.miss = -taken;
    }
    w.advance[w.lane] = advance;
    w.factor[w.lane] = factor;
    return r;
}

__device__ inline double least_of_warp(double x)
{
    XPH_UNROLL
    for (int bit = WARP / 2; bit; bit /= 2) {
        const double other = __shfl_xor_sync(ALL_LANES, x, bit);
        x = other < x ? other : x;
    }
    return x;
}

/* What the first warp finds in its rows goes to part [PARTS], `blocks` apart; the gradients of logits are looked at later. */
__device__ inline void leave_sums(const xph_policy_loss_args &a, const view &w, const row_result &r)
{
    double *const part = static_cast<double *>(a.scratch) + blockIdx.x;
    const int32_t what = w.lives ? w.what[w.lane] : XPH_ROW_NONE;
    const bool played = what == XPH_ROW_PLAYED, imitated = what == XPH_ROW_IMITATED;
    const xph_policy_result &one = r.result;
    const double of[SUMS] = {played ? 1.0 : 0.0,
                             played ? one.loss + a.value * r.miss : 0.0,
                             played ? r.miss : 0.0,
                             one.ratio,
                             one.clipped,
                             one.kl_old,
                             one.kl_to_teacher,
                             one.kl_from_teacher,
                             one.entropy,
                             imitated ? 1.0 : 0.0,
                             imitated ? r.miss : 0.0};
    const float dvalue = static_cast<float>(r.dvalue);
    const bool bad = a.dvalues && dvalue - dvalue != 0.0f;
    XPH_UNROLL
    for (int i = 0; i < SUMS; i++) {
        const double sum = sum_of_warp(of[i]);
        if (w.lane == 0) part[int64_t(i) * gridDim.x] = sum;
    }
    const double apart = -least_of_warp(one.apart > 0.0 ? -one.apart
                                                        : 0.0), /* one that is no number is passed over */
        first = least_of_warp(bad ? static_cast<double>(w.first + w.lane) : NONE);
    if (w.lane) return;
    part[int64_t(IN_APART) * gridDim.x] = apart;
    part[int64_t(BAD_VALUE) * gridDim.x] = first;
}

__device__ inline void leave_row(const xph_policy_loss_args &a, const view &w, const row_result &r)
{
    const int64_t row = w.first + w.lane;
    if (!w.lives) return;
    if (a.result) a.result[row] = r.result;
    if (a.miss) a.miss[row] = r.miss;
    if (a.dvalues) a.dvalues[row] = static_cast<float>(r.dvalue);
}

/* Gradients by the logits take the place of chances. */
__device__ inline void differentiate(const xph_policy_loss_args &a, const heads_of_policy &h, const view &w)
{
    constexpr xph_policy_terms imitates = XPH_POLICY_IMITATES;
    each_logit(h, w, [&](int l, int k, int at) {
        const int32_t what = w.what[w.lane];
        const double factor = w.factor[w.lane], advance = w.advance[w.lane];
        const head_of_policy &head = h.head[k];
        if (what == XPH_ROW_NONE || (what == XPH_ROW_IMITATED && !(factor > 0.0))) {
            w.p[at] = 0.0;
            return;
        }
        const xph_policy_terms terms = what == XPH_ROW_PLAYED ? a.terms : imitates;
        const xph_policy_head one = head_of_row(a, h, w, k);
        double d;
        if (head.kind == EXPHIL_CATEGORICAL) {
            const xph_policy_unit unit = unit_of(h, w, head.unit);
            d = xph_class_gradient(&terms, &one, &unit, advance, l - head.first);
        } else {
            d = xph_bit_gradient(&terms, &one, advance, l - head.first);
        }
        const double scaled = factor * d;
        w.p[at] = head.temperature == 1.0 ? scaled : scaled / head.temperature;
    });
}

__device__ inline void write_gradients(const xph_policy_loss_args &a, const heads_of_policy &h, const view &w)
{
    float *const to = a.dlogits + w.first * h.logits;
    for (int i = w.thread; i < w.rows * h.logits; i += THREADS) {
        const float d = static_cast<float>(w.p[i / h.logits * h.ld + i % h.logits]);
        if (d - d != 0.0f) atomicMax(w.bad, static_cast<uint32_t>(INT32_MAX - i));
        to[i] = d;
    }
}

template <class Unused = void>
__global__ void __launch_bounds__(THREADS) policy_loss(const xph_policy_loss_args a, const heads_of_policy h)
{
    XPH_ENTER();
    XPH_SHARED_DYNAMIC(unsigned char, shared);
    const view w = view_of(h, shared, a.rows);
    if (w.warp == 0 && w.lives) {
        const int64_t row = w.first + w.lane, at = a.stream[row / a.time] * a.time + row % a.time;
        w.at[w.lane] = at;
        w.what[w.lane] = a.counts[at];
    }
    if (w.thread == 0) *w.bad = 0;
    __syncthreads();
    read_logits(h, w, a.y, nullptr);
    __syncthreads();
    distribute(h, w);
    measure_units(a, h, w);
    __syncthreads();
    if (w.warp == 0) {
        const row_result r = result_of_row(a, h, w);
        leave_sums(a, w, r);
        leave_row(a, w, r);
    }
    __syncthreads();
    if (a.dlogits) {
        differentiate(a, h, w);
        __syncthreads();
        write_gradients(a, h, w);
        __syncthreads();
    }
    if (w.thread) return;
    const int64_t first = w.first * h.logits + (INT32_MAX - static_cast<int64_t>(*w.bad));
    static_cast<double *>(a.scratch)[int64_t(BAD_LOGIT) * gridDim.x + blockIdx.x] =
        *w.bad ? static_cast<double>(first) : NONE;
}

/* Parts of all blocks: a warp per number, lane i takes the blocks i, i + 32, ... */
template <class Unused = void>
__global__ void __launch_bounds__(PARTS *WARP)
    policy_fold(const double *parts, int64_t blocks, xph_policy_tally *tally)
{
    XPH_ENTER();
    const int number = static_cast<int>(threadIdx.x) / WARP, lane = static_cast<int>(threadIdx.x) % WARP;
    const double *const of = parts + number * blocks;
    double found = number < SUMS || number == IN_APART ? 0.0 : NONE;
    for (int64_t i = lane; i < blocks; i += WARP) {
        const double x = of[i];
        if (number < SUMS)
            found += x;
        else if (number == IN_APART ? x > found : x < found)
            found = x;
    }
    if (number < SUMS)
        found = sum_of_warp(found);
    else
        found = number == IN_APART ? -least_of_warp(-found) : least_of_warp(found);
    if (lane) return;
    if (number <= IN_APART) (&tally->rows)[number] = found;
    const int64_t first = found < NONE ? static_cast<int64_t>(found) : -1;
    if (number == BAD_LOGIT) tally->bad_logit = first;
    if (number == BAD_VALUE) tally->bad_value = first;
}
static_assert(offsetof(xph_policy_tally, apart) == IN_APART * sizeof(double),
              "numbers of a tally are in this order");

/* ---- the candidate ---- */

/* False where it cannot: heads that do not follow each other, or too many of them. */
bool heads_of(const xph_policy_loss_args *a, heads_of_policy *to)
{
    if (a->heads < 1 || a->heads > MOST_HEADS) return false;
    for (int64_t k = 0; k < a->heads; k++) {
        const xph_head *head = &a->head[k];
        if (head->first != to->logits || head->count < 1) return false;
        to->head[k] = {head->kind, head->count, to->logits, to->units, a->temperature[k]};
        to->logits += head->count;
        to->units += head->kind == EXPHIL_BERNOULLI ? head->count : 1;
    }
    to->heads = static_cast<int32_t>(a->heads);
    to->ld = to->logits | 1; /* so that lanes of a warp meet no bank twice */
    return to->logits == a->logits;
}

int64_t blocks_over_rows(const xph_policy_loss_args *a)
{
    return (a->rows + ROWS - 1) / ROWS;
}

bool accepts(const void *args)
{
    const xph_policy_loss_args *a = static_cast<const xph_policy_loss_args *>(args);
    heads_of_policy h = {};
    return a->rows < int64_t(1) << 31 && heads_of(a, &h) &&
           shared_bytes(h) <= static_cast<size_t>(xph_most_shared());
}

size_t scratch(const void *args)
{
    const xph_policy_loss_args *a = static_cast<const xph_policy_loss_args *>(args);
    return a->part == XPH_POLICY_LOSS ? static_cast<size_t>(blocks_over_rows(a)) * PARTS * sizeof(double) : 0;
}

int launch(const void *args, cudaStream_t stream)
{
    const xph_policy_loss_args *a = static_cast<const xph_policy_loss_args *>(args);
    heads_of_policy h = {};
    heads_of(a, &h);
    const size_t bytes = shared_bytes(h);
    const int64_t blocks = blocks_over_rows(a);
    const bool logs = a->part == XPH_POLICY_LOGS;
    const cudaError_t code = xph_allow_shared(logs ? policy_logs<> : policy_loss<>);
    if (code) return code;
    const dim3 grid(static_cast<unsigned>(blocks));
    if (logs && blocks) XPH_LAUNCH((policy_logs<>), grid, dim3(THREADS), bytes, stream, *a, h);
    if (logs) return cudaGetLastError();
    if (blocks) XPH_LAUNCH((policy_loss<>), grid, dim3(THREADS), bytes, stream, *a, h);
    XPH_LAUNCH((policy_fold<>), dim3(1), dim3(PARTS * WARP), 0, stream,
               static_cast<const double *>(a->scratch), blocks, a->tally);
    return cudaGetLastError();
}

}  // namespace

const xph_cuda_candidate xph_cuda_policy_loss[] = {
    {"policy_loss", accepts, scratch, launch},
    {nullptr, nullptr, nullptr, nullptr},
};
