/* Loss of the action heads and its gradient in one pass over the rows; then the sums of each head.
 *
 * No exponential has a positive argument and no difference of near numbers stands for a small one: with z =
 * +-x so that p_t = sigmoid(z), 1 - p_t is sigmoid(-z) and its power exp(-gamma softplus(z)); for classes the
 * sum of the others is kept apart from the largest term. So logits of +-1e4 give finite numbers and the
 * gradient of a nearly certain class keeps its digits. A row whose mask is zero does not count, whatever is
 * in it.
 *
 * Heads have few classes, so a lane is a row: VEC rows go through a head together, their logits transposed to
 * columns, and every sum over classes or bits runs in order. */
#include "cpu/kernels/real.h"
#include "cpu/simd/columns.h"
#include "cpu/simd/lanes.h"
#include "cpu/simd/vec_element.h"

enum { CLASSES = 64, SUMS = 8 }; /* classes whose columns are kept; lanes of the sums over rows */

static int64_t block_rows(const xph_loss_args *args)
{
    return blocks_of(rows_per_item(4 * args->logits), LANES) * LANES;
}

static int64_t row_items(const void *given)
{
    const xph_loss_args *args = given;
    return blocks_of(args->rows, block_rows(args));
}

/* VEC rows of one head. */
typedef struct job {
    const xph_head *head;
    const xph_head_loss *how;
    const real *x[VEC]; /* logits of the row */
    real *dx[VEC];      /* or NULL in all */
    int32_t action[VEC];
    vec factor; /* of the gradient; mask: 0 where a row does not count */
    vec counts; /* 1 or 0 */
    double loss[VEC];
} job;

static vec select_counting(const job *j, vec x)
{
    return vec_where_greater(j->counts, vec_all(R(0.0)), x, vec_all(R(0.0)));
}

/* ---- Bernoulli ---- */

/* Loss of one bit and, in *slope, its derivative by the logit:
 * L = w q^gamma softplus(-z), q = sigmoid(-z);  dL/dz = -w q^gamma (q + gamma p_t softplus(-z)). sign: 1 where the
 * bit is on, else -1. */
XPH_INLINE vec bit_loss(vec x, vec sign, vec weight, real gamma, vec *slope)
{
    const vec zero = vec_all(R(0.0)), one = vec_all(R(1.0));
    vec z = x * sign, e = vec_exp_down(z), near = vec_log1p_unit(e), share = one / (one + e);
    vec missed = vec_where_greater(z, zero, zero, -z) + near; /* softplus(-z) */
    vec hit = vec_where_greater(z, zero, z, zero) + near;     /* softplus(z) = -log q */
    vec q = vec_where_greater(z, zero, e, one) * share, p = vec_where_greater(z, zero, one, e) * share,
        factor = weight;
    if (gamma != R(0.0)) factor *= vec_exp(vec_all(-gamma) * hit);
    *slope = -sign * factor * vec_fma(vec_all(gamma) * p, missed, q);
    return factor * missed;
}

static vec sign_of(const job *j, int32_t bit)
{
    real sign[VEC];
    for (int r = 0; r < VEC; r++) sign[r] = (uint32_t)j->action[r] >> bit & 1u ? R(1.0) : R(-1.0);
    return vec_load(sign);
}

static void bernoulli(job *j)
{
    int32_t count = j->head->count;
    const vec zero = vec_all(R(0.0)), one = vec_all(R(1.0)), mean = j->factor / vec_all((real)count);
    real column[32 * VEC], part[VEC];
    columns_in(j->x, 0, count, column, VEC);
    for (int r = 0; r < VEC; r++) j->loss[r] = 0.0;
    for (int32_t i = 0; i < count; i++) {
        vec sign = sign_of(j, i), slope, weight = one;
        if (j->how->positive_weight)
            weight = vec_where_greater(sign, zero, vec_all((real)j->how->positive_weight[i]), one);
        vec loss = bit_loss(vec_load(column + i * VEC), sign, weight, (real)j->how->focal_gamma, &slope);
        vec_store(column + i * VEC, select_counting(j, mean * slope));
        vec_store(part, loss);
        for (int r = 0; r < VEC; r++) j->loss[r] += (double)part[r];
    }
    for (int r = 0; r < VEC; r++) j->loss[r] /= (double)count;
    if (j->dx[0]) columns_out(column, 0, count, j->dx);
}

/* ---- categorical ---- */

/* The columns of some classes; where all classes fit, they stay from pass to pass. */
typedef struct classes {
    real column[CLASSES * VEC];
    int64_t first, count;
} classes;

static bool next_classes(classes *c, const job *j, bool stay)
{
    int64_t all = j->head->count, first = c->first + c->count;
    if (first >= all) {
        c->first = c->count = 0;
        return false;
    }
    c->first = first;
    c->count = int_min(CLASSES, all - first);
    if (!stay) columns_in(j->x, first, c->count, c->column, VEC);
    return true;
}

/* What the loss and gradient need of the logits. Target t = (1 - smoothing) onehot + even, so p_t =
 * (1 - smoothing) p_c + even. */
typedef struct target {
    vec class, place;      /* of the target; of the first largest */
    vec top, own;          /* largest logit, that of the class */
    vec others, own_power; /* sum of e^(x - top) over all but the largest; of the class */
    vec below;             /* sum of top - x */
} target;

/* A NaN in the first logit stays the largest, another one shows in the sums. */
static void find_top(const job *j, classes *c, target *t)
{
    real class[VEC];
    for (int r = 0; r < VEC; r++)
        class[r] = (uint32_t)j->action[r] < (uint32_t)j->head->count ? (real)j->action[r] : R(0.0);
    t->class = vec_load(class);
    t->place = t->top = t->own = vec_all(R(0.0));
    while (next_classes(c, j, false)) {
        if (c->first == 0) t->top = t->own = vec_load(c->column);
        for (int64_t k = 0; k < c->count; k++) {
            vec x = vec_load(c->column + k * VEC), number = vec_all((real)(c->first + k));
            t->place = vec_where_greater(x, t->top, number, t->place);
            t->top = vec_where_greater(x, t->top, x, t->top);
            t->own = vec_where_equal(number, t->class, x, t->own);
        }
    }
}

/* Columns become e^(x - top). */
static void sum_powers(const job *j, classes *c, target *t, bool stay)
{
    const vec zero = vec_all(R(0.0));
    t->others = t->below = zero;
    while (next_classes(c, j, stay)) {
        for (int64_t k = 0; k < c->count; k++) {
            vec number = vec_all((real)(c->first + k)), d = vec_load(c->column + k * VEC) - t->top;
            vec e = vec_exp(d);
            vec_store(c->column + k * VEC, e);
            t->others += vec_where_equal(number, t->place, zero, e);
            t->below -= d;
        }
    }
    t->own_power = vec_exp(t->own - t->top);
}

/* dx_k = slope e_k - even, and at the class what keeps its digits. */
static void class_gradient(const job *j, classes *c, const target *t, vec slope, vec even, vec at_class,
                           bool stay)
{
    while (next_classes(c, j, stay)) {
        for (int64_t k = 0; k < c->count; k++) {
            vec e = vec_load(c->column + k * VEC);
            if (!stay) e = vec_exp(e - t->top);
            vec d =
                vec_where_equal(vec_all((real)(c->first + k)), t->class, at_class, vec_fma(slope, e, -even));
            vec_store(c->column + k * VEC, select_counting(j, d));
        }
        columns_out(c->column, c->first, c->count, j->dx);
    }
}

/* L = q^gamma CE;  dCE/dx_k = p_k - t_k;  dp_t/dx_k = p_k (t_k - p_t). */
static void categorical(job *j)
{
    const vec zero = vec_all(R(0.0)), one = vec_all(R(1.0));
    const real smoothing = (real)j->how->smoothing, number = (real)j->head->count,
               gamma = (real)j->how->focal_gamma;
    const vec keep = vec_all(R(1.0) - smoothing), even = vec_all(smoothing / number);
    bool stay = j->head->count <= CLASSES;
    classes c; /* its columns stay as they are: clearing them would take as long as a pass */
    target t;
    c.first = c.count = 0;
    find_top(j, &c, &t);
    sum_powers(j, &c, &t, stay);
    vec total = one + t.others, inverse = one / total, p = t.own_power * inverse;
    vec norm = vec_where_greater(t.others, one, vec_log(total), vec_log1p_unit(t.others));
    vec rest = vec_where_equal(t.class, t.place, t.others, one + (t.others - t.own_power)) * inverse;
    vec q = vec_fma(keep, rest, vec_all(smoothing) - even), entropy = keep * (t.top - t.own + norm);
    if (smoothing > R(0.0)) entropy = vec_fma(even, vec_fma(vec_all(number), norm, t.below), entropy);
    vec power = one, pull = zero;
    if (gamma > R(0.0)) { /* a NaN stays one */
        power = vec_where_greater(q, zero, vec_exp(vec_all(gamma) * vec_log(q)), q);
        pull = vec_where_greater(q, zero, vec_all(gamma) * power * (entropy / q), q);
    }
    real powers[VEC], entropies[VEC];
    vec_store(powers, power);
    vec_store(entropies, entropy);
    for (int r = 0; r < VEC; r++) j->loss[r] = (double)powers[r] * (double)entropies[r];
    if (!j->dx[0]) return;
    vec slope = vec_fma(pull * keep, p, power) * j->factor, spread = vec_all(smoothing) - even;
    vec at_class = j->factor * vec_fma(power, spread - rest, -pull * keep * p * rest);
    class_gradient(j, &c, &t, slope * inverse, power * even * j->factor, at_class, stay);
}

/* ---- rows ---- */

static double scale_of(const xph_loss_args *args)
{
    return args->given ? args->given->scale * args->control->loss_scale : args->scale;
}

/* Head h of the rows from `row` on, of which `rows` are there; the others are the last one again. */
static void loss_head(const xph_loss_args *args, int64_t row, int64_t rows, int64_t h)
{
    job j;
    j.head = &args->head[h];
    j.how = &args->loss[h];
    real factor[VEC], counts[VEC];
    double mask[VEC];
    for (int r = 0; r < VEC; r++) {
        int64_t at = row + int_min(r, rows - 1);
        mask[r] = args->mask ? (double)args->mask[at] : 1.0;
        factor[r] = (real)(scale_of(args) * mask[r] * j.how->weight);
        counts[r] = mask[r] == 0.0 ? R(0.0) : R(1.0);
        j.x[r] = (const real *)args->y + at * args->ldy + j.head->first;
        j.dx[r] = args->dy ? (real *)args->dy + at * args->lddy + j.head->first : NULL;
        j.action[r] = args->actions[at * args->lda + h];
    }
    j.factor = vec_load(factor);
    j.counts = vec_load(counts);
    if (j.head->kind == EXPHIL_BERNOULLI)
        bernoulli(&j);
    else
        categorical(&j);
    for (int r = 0; r < rows; r++)
        args->rows_loss[(row + r) * args->heads + h] = mask[r] == 0.0 ? 0.0 : mask[r] * j.loss[r];
}

static void rows_run(const void *given, int64_t begin, int64_t end)
{
    const xph_loss_args *args = given;
    int64_t block = block_rows(args), last = int_min(args->rows, end * block);
    for (int64_t row = begin * block; row < last; row += VEC)
        for (int64_t h = 0; h < args->heads; h++) loss_head(args, row, int_min(VEC, last - row), h);
}

static int64_t head_items(const void *given)
{
    return ((const xph_loss_args *)given)->heads;
}

/* Row i belongs to lane i % SUMS. */
static double sum_rows(const double *losses, int64_t rows, int64_t stride)
{
    double lane[SUMS] = {0};
    int64_t row = 0;
    for (; row + SUMS <= rows; row += SUMS)
        for (int i = 0; i < SUMS; i++) lane[i] += losses[(row + i) * stride];
    for (int i = 0; row + i < rows; i++) lane[i] += losses[(row + i) * stride];
    for (int half = SUMS / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) lane[i] += lane[i + half];
    return lane[0];
}

static void sums_run(const void *given, int64_t begin, int64_t end)
{
    const xph_loss_args *args = given;
    for (int64_t h = begin; h < end; h++) {
        double sum = sum_rows(args->rows_loss + h, args->rows, args->heads);
        args->sums[h] = sum;
        if (args->given) args->control->head[h] += sum * args->given->scale;
    }
}

const xph_candidate XPH_LIST(loss)[] = {
    {XPH_LABEL("loss"), NULL, NULL, {{row_items, rows_run}, {head_items, sums_run}}}, XPH_LIST_END};

/* Apart: there is nothing to gain where logits stay in a cache. */
const xph_candidate XPH_LIST(heads_loss)[] = {XPH_LIST_END};

/* The host computes it, with all of its threads (lib/learn/loss.c). */
const xph_candidate XPH_LIST(policy_loss)[] = {XPH_LIST_END};
