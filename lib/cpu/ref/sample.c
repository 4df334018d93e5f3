/* Draws the actions of a row, head by head: the logits of a head, its action, the trunk moved by it, the next
 * head. One row takes one pass over v and, in play, no memory but its scratch. */
#include "cpu/ref/trunk.h"

/* Scratch: the trunk of every row [rows, R]. */
static size_t sample_scratch(const void *given)
{
    const xph_heads_args *args = &((const xph_sample_args *)given)->heads;
    return (size_t)(args->rows * args->width) * sizeof(real);
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

/* What is known when a head of a row is drawn. */
typedef struct draw {
    const xph_head *head;
    const xph_sample_head *how;
    const real *logits;
    const float *noise; /* of the head's logits; NULL when deterministic */
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
    uint32_t bits = 0;
    real temperature = temperature_of(d->how), press = threshold(d->how->press),
         hold = threshold(d->how->release);
    for (int32_t i = 0; i < d->head->count; i++) {
        bool on;
        if (d->how->deterministic)
            on = real_sigmoid(d->logits[i]) > ((uint32_t)d->previous >> i & 1u ? hold : press);
        else
            on = (real)d->noise[i] < real_sigmoid(d->logits[i] / temperature);
        bits |= (uint32_t)on << i;
    }
    return (int32_t)bits;
}

/* Argmax, the lowest class of equal ones; with Gumbel noise -log(-log u) when the head is drawn at random. */
static int32_t draw_class(const draw *d)
{
    real score[XPH_LANES], temperature = temperature_of(d->how), best = -REAL_INFINITY;
    int64_t class = 0;
    for (int64_t at = 0; at < d->head->count; at += XPH_LANES) {
        int64_t part = int_min(XPH_LANES, d->head->count - at);
        const real *logits = d->logits + at;
        if (d->how->deterministic) memcpy(score, logits, (size_t)part * sizeof(real));
        for (int64_t i = 0; i < part && !d->how->deterministic; i++)
            score[i] = logits[i] / temperature - real_log(-real_log((real)d->noise[at + i]));
        for (int64_t i = 0; i < part; i++) {
            class = score[i] > best ? at + i : class;
            best = score[i] > best ? score[i] : best;
        }
    }
    return (int32_t) class;
}

static void head_logits(const xph_heads_args *args, const xph_head *head, int64_t row, const real *s, real *y)
{
    real hidden[TRUNK_COLUMNS];
    trunk_bias(args, row, head->first, head->count, y);
    for (int64_t column = 0; column < args->width; column += TRUNK_COLUMNS) {
        int64_t columns = int_min(TRUNK_COLUMNS, args->width - column);
        trunk_hidden(s + column, columns, hidden);
        trunk_logits(args, head, column, columns, hidden, y);
    }
}

static void sample_row(const xph_sample_args *sample, int64_t row)
{
    const xph_heads_args *args = &sample->heads;
    real *s = (real *)sample->scratch + row * args->width, *y = (real *)args->y + row * args->ldy;
    memcpy(s, (const real *)args->z + row * args->ldz, (size_t)args->width * sizeof(real));
    for (int64_t h = 0; h < args->heads; h++) {
        const xph_head *head = &args->head[h];
        draw d = {head, &sample->how[h], y + head->first, NULL, 0};
        if (sample->noise) d.noise = sample->noise + row * sample->ldn + head->first;
        if (sample->previous) d.previous = sample->previous[row * sample->ldp + h];
        head_logits(args, head, row, s, y);
        int32_t action = head->kind == XPH_HEAD_BERNOULLI ? draw_bits(&d) : draw_class(&d);
        sample->actions[row * sample->lda + h] = action;
        if (args->e) trunk_take(args, head, action, 0, args->width, s);
    }
}

static void sample_run(const void *given, int64_t begin, int64_t end)
{
    const xph_sample_args *sample = given;
    int64_t block = block_rows(&sample->heads), last = int_min(sample->heads.rows, end * block);
    for (int64_t row = begin * block; row < last; row++) sample_row(sample, row);
}

const xph_candidate XPH_LIST(sample)[] = {
    {XPH_LABEL("sample"), NULL, sample_scratch, {{sample_items, sample_run}}}, XPH_LIST_END};
