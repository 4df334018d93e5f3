/* Draws the actions of a row, head by head: the logits of a head, its action, the trunk updated by it, the
 * next head. One row takes one pass over v and, in play, no memory but its scratch. */
#include "cpu/kernels/trunk.h"
#include "cpu/simd/vec_element.h"

static int64_t padded(int64_t count)
{
    return blocks_of(count, LANES) * LANES;
}

/* Scratch of a row: its trunk [R], and Gumbel noise [L]. */
static int64_t row_reals(const xph_heads_args *args)
{
    return padded(args->width) + padded(args->logits);
}

static size_t sample_scratch(const void *given)
{
    const xph_heads_args *args = &((const xph_sample_args *)given)->heads;
    return (size_t)(args->rows * row_reals(args)) * sizeof(real);
}

static int64_t block_rows(const xph_heads_args *args)
{
    return rows_per_item(args->logits * args->width);
}

static int64_t sample_items(const void *given)
{
    const xph_heads_args *args = &((const xph_sample_args *)given)->heads;
    return blocks_of(args->rows, block_rows(args));
}

/* ---- noise ---- */

/* VEC numbers of noise, 1/2 where there are none. */
XPH_INLINE vec noise_part(const float *from, int64_t count)
{
    real u[VEC];
    for (int i = 0; i < VEC; i++) u[i] = i < count ? (real)from[i] : R(0.5);
    return vec_load(u);
}

XPH_INLINE vec noise_of(const float *from, int64_t left)
{
#if defined(XPH_REAL_F32)
    if (left >= VEC) return vec_load(from);
#endif
    return noise_part(from, left);
}

/* -log(-log u) */
static void gumbel(const float *noise, int64_t count, real *to)
{
    for (int64_t at = 0; at < count; at += VEC)
        vec_store(to + at, -vec_log(-vec_log(noise_of(noise + at, count - at))));
}

/* ---- draws ---- */

/* What is known when a head of a row is drawn. */
typedef struct draw {
    const xph_head *head;
    const xph_sample_head *how;
    const real *logits;
    const float *noise; /* of the head's logits; NULL when deterministic */
    const real *gumbel; /* made of it */
    int32_t previous;   /* bits */
} draw;

/* Zero means "as it is": 1 for the temperature, 1/2 for the thresholds. */
static real temperature_of(const xph_sample_head *how)
{
    return how->temperature > 0.0f ? (real)how->temperature : R(1.0);
}

static real threshold(float given)
{
    return given > 0.0f ? (real)given : R(0.5);
}

static int32_t draw_bits(const draw *d)
{
    uint32_t bits = 0, previous = (uint32_t)d->previous, count = (uint32_t)d->head->count;
    vec press = vec_all(threshold(d->how->press)), hold = vec_all(threshold(d->how->release));
    real temperature = temperature_of(d->how);
    for (uint32_t at = 0; at < count; at += VEC) {
        vec x = vec_load_part(d->logits + at, count - at);
        uint32_t on;
        if (d->how->deterministic) {
            x = vec_sigmoid(x);
            on = (previous >> at & vec_greater(x, hold)) | (~previous >> at & vec_greater(x, press));
        } else {
            if (temperature != R(1.0)) x /= vec_all(temperature);
            on = vec_greater(vec_sigmoid(x), noise_part(d->noise + at, count - at));
        }
        bits |= on << at;
    }
    return (int32_t)(bits & (0xffffffffu >> (32u - count)));
}

/* The lowest class of the lanes with the best score. */
static int32_t first_best(vec best, vec class)
{
    real number[VEC], first = REAL_INFINITY;
    vec_store(number, class);
    for (uint32_t lanes = vec_equal(best, vec_all(vec_top(best))); lanes; lanes &= lanes - 1) {
        real c = number[__builtin_ctz(lanes)];
        first = c < first ? c : first;
    }
    return (int32_t)first;
}

/* Argmax, the lowest class of equal ones, with noise when the head is drawn at random. A NaN is never the best; when
 * nothing is above -infinity it is class 0. Classes are numbers of at most 1024. */
static int32_t draw_class(const draw *d)
{
    real temperature = temperature_of(d->how), number[VEC];
    for (int i = 0; i < VEC; i++) number[i] = (real)i;
    const vec nothing = vec_all(-REAL_INFINITY), place = vec_load(number);
    vec best = nothing, class = vec_all(R(0.0));
    for (int32_t at = 0; at < d->head->count; at += VEC) {
        int64_t left = d->head->count - at;
        vec score = vec_load_part(d->logits + at, left);
        if (!d->how->deterministic) {
            if (temperature != R(1.0)) score /= vec_all(temperature);
            score += vec_load_part(d->gumbel + at, left);
        }
        score = vec_where_greater(vec_all((real)left), place, score, nothing);
        class = vec_where_greater(score, best, place + vec_all((real)at), class);
        best = vec_where_greater(score, best, score, best);
    }
    return first_best(best, class);
}

/* ---- rows ---- */

/* Logits of head h of a row; from: the trunk so far, which moves into s. */
static void head_logits(const xph_heads_args *args, int64_t h, int64_t row, const real *from,
                        const trunk_rows *taken, real *s, real *y)
{
    const xph_head *head = &args->head[h];
    real hidden[TRUNK_COLUMNS];
    trunk_bias(args, row, head->first, head->count, y);
    for (int64_t column = 0; column < args->width; column += TRUNK_COLUMNS) {
        int64_t columns = int_min(TRUNK_COLUMNS, args->width - column);
        trunk_next(from + column, taken, column, columns, s + column, hidden);
        XPH_FN(xph_trunk_logits)(args, head, column, columns, hidden, false, y);
    }
}

static bool any_noise(const xph_sample_args *sample)
{
    for (int64_t h = 0; h < sample->heads.heads; h++)
        if (!sample->how[h].deterministic && sample->heads.head[h].kind == EXPHIL_CATEGORICAL) return true;
    return false;
}

static void sample_row(const xph_sample_args *sample, int64_t row, bool noisy)
{
    const xph_heads_args *args = &sample->heads;
    real *s = (real *)sample->scratch + row * row_reals(args), *extra = s + padded(args->width);
    real *y = (real *)args->y + row * args->ldy;
    const real *from = (const real *)args->z + row * args->ldz;
    const float *noise = sample->noise ? sample->noise + row * sample->ldn : NULL;
    trunk_rows taken = {.count = 0};
    if (noisy) gumbel(noise, args->logits, extra);
    for (int64_t h = 0; h < args->heads; h++) {
        const xph_head *head = &args->head[h];
        draw d = {
            head, &sample->how[h], y + head->first, noise ? noise + head->first : NULL, extra + head->first,
            0};
        if (sample->previous) d.previous = sample->previous[row * sample->ldp + h];
        head_logits(args, h, row, from, &taken, s, y);
        int32_t action = head->kind == EXPHIL_BERNOULLI ? draw_bits(&d) : draw_class(&d);
        sample->actions[row * sample->lda + h] = action;
        if (!args->e) continue;
        trunk_taken(args->e, args->width, head, action, &taken);
        from = s;
    }
}

static void sample_run(const void *given, int64_t begin, int64_t end)
{
    const xph_sample_args *sample = given;
    int64_t block = block_rows(&sample->heads), last = int_min(sample->heads.rows, end * block);
    bool noisy = any_noise(sample);
    for (int64_t row = begin * block; row < last; row++) sample_row(sample, row, noisy);
}

const xph_candidate XPH_LIST(sample)[] = {
    {XPH_LABEL("sample"), NULL, sample_scratch, {{sample_items, sample_run}}}, XPH_LIST_END};
