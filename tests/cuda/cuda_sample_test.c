/* The CUDA kernels that draw actions, on the emulated GPU: logits and actions against the CPU's in double, where no draw
 * lies within rounding of its threshold; the logits of the heads given what was drawn; rows alone; ties, hysteresis and
 * logits that are no numbers; noise that the device makes. */
#include "device_case.h"

#include "emu_control.h"

#include <math.h>
#include <string.h>

enum { HEADS = 5, RUNS = 16 };
static const xph_head heads[HEADS] = {{EXPHIL_BERNOULLI, 8, 0},
                                      {EXPHIL_CATEGORICAL, 17, 8},
                                      {EXPHIL_BERNOULLI, 31, 25},
                                      {EXPHIL_CATEGORICAL, 2, 56},
                                      {EXPHIL_CATEGORICAL, 75, 58}};

typedef struct shape {
    int64_t rows, width, pad;
    int heads;
    bool chained, based, held; /* held: last actions are known */
} shape;

static const shape shapes[] = {
    {1, 256, 0, 5, true, true, true},   {0, 4, 0, 5, true, true, true},    {1, 1, 1, 1, false, false, false},
    {7, 31, 2, 3, false, true, true},   {5, 33, 0, 5, true, false, false}, {70, 64, 3, 2, true, false, true},
    {3, 257, 0, 5, true, true, true},   {2, 1024, 1, 5, true, true, true}, {4, 100, 0, 4, true, true, false},
    {2, 513, 0, 2, false, false, true}, {9, 255, 0, 5, true, true, true},  {66, 40, 0, 2, true, true, true},
};

typedef struct layer {
    shape s;
    int64_t logits;
    double *z, *v, *bias, *e, *base;
    float *noise;
    int32_t *previous;
    xph_sample_head how[HEADS];
} layer;

static layer layer_make(const shape *s)
{
    layer l = {.s = *s, .logits = heads[s->heads - 1].first + heads[s->heads - 1].count};
    double size = 2.0 / sqrt((double)s->width);
    l.z = case_random(s->rows * s->width, -2, 2);
    l.v = case_random(l.logits * s->width, -size, size);
    l.bias = case_random(l.logits, -1, 1);
    l.e = s->chained ? case_random(l.logits * s->width, -1, 1) : NULL;
    l.base = s->based ? case_random(s->rows * l.logits, -1, 1) : NULL;
    l.noise = case_alloc((size_t)(s->rows * l.logits) * sizeof *l.noise);
    for (int64_t i = 0; i < s->rows * l.logits; i++)
        l.noise[i] = (float)((double)case_below(1 << 24) + 0.5) / 16777216.0f;
    l.previous = s->held ? case_alloc((size_t)(s->rows * s->heads) * sizeof *l.previous) : NULL;
    for (int64_t i = 0; i < s->rows * s->heads && s->held; i++) l.previous[i] = (int32_t)case_below(1 << 30);
    for (int h = 0; h < HEADS; h++)
        l.how[h] = (xph_sample_head){h % 2 ? 0.5f : 0.0f, h % 3 ? 0.6f : 0.0f, 0.3f, case_below(3) == 0};
    return l;
}

/* Where every run leaves its actions: what the CPU drew in `wanted`, the device's runs one after the other. */
typedef struct drawn {
    int32_t *wanted, *run[RUNS];
    int runs;
    int64_t count;
} drawn;

static void place_for_actions(const kt_case *c, const xph_kernel_set *set, void *given)
{
    drawn *d = (drawn *)(uintptr_t)c->context;
    xph_sample_args *args = given;
    assert_true(d->runs < RUNS);
    args->actions = d->run[d->runs++] = case_alloc((size_t)d->count * sizeof *args->actions);
}

enum { Y = 5 }; /* place in the table below */

static kt_case sample_case(const layer *l, drawn *d)
{
    const shape *s = &l->s;
    const kt_tensor tensors[] = {
        KT_FIELD(xph_sample_args, heads.z, heads.ldz, s->rows, s->width, KT_IN, l->z, NULL),
        KT_FLAT(xph_sample_args, heads.v, l->logits, s->width, KT_IN, l->v, NULL),
        KT_FLAT(xph_sample_args, heads.bias, 1, l->logits, KT_IN, l->bias, NULL),
        KT_FLAT(xph_sample_args, heads.e, l->logits, s->width, KT_IN, l->e, NULL),
        KT_FIELD(xph_sample_args, heads.base, heads.ldbase, s->rows, l->logits, KT_IN, l->base, NULL),
        KT_FIELD(xph_sample_args, heads.y, heads.ldy, s->rows, l->logits, KT_OUT, NULL, NULL),
    };
    *d = (drawn){.count = s->rows * s->heads};
    d->wanted = case_alloc((size_t)d->count * sizeof *d->wanted);
    const xph_sample_args args = {
        .heads = {.rows = s->rows, .width = s->width, .heads = s->heads, .logits = l->logits, .head = heads},
        .how = l->how,
        .noise = l->noise,
        .ldn = l->logits,
        .previous = l->previous,
        .ldp = s->heads,
        .actions = d->wanted,
        .lda = s->heads};
    kt_case c = KT_CASE("sample", XPH_OP_SAMPLE, args, offsetof(xph_sample_args, scratch), tensors, s->pad);
    c.prepare = place_for_actions;
    c.context = d;
    return c;
}

/* One run of the first candidate that accepts. */
static double *draw_rows(const layer *l, xph_type type, drawn *d)
{
    double *results[KT_MOST];
    const kt_case c = sample_case(l, d);
    const device_case on = device_case_of(&c, xph_cuda_sample, type);
    device_run(&on, results);
    return results[Y];
}

static const int32_t *actions_of(const drawn *d)
{
    return d->run[d->runs - 1];
}

/* A candidate that does not accept leaves -1, which is no action. */
static void check_actions(const drawn *d)
{
    int ran = 0;
    for (int r = 0; r < d->runs && d->count; r++) {
        if (d->run[r][0] == -1) continue;
        for (int64_t k = 0; k < d->count; k++) assert_int_equal(d->run[r][k], d->wanted[k]);
        ran++;
    }
    assert_true(ran >= DEVICE_SCHEDULES || !d->count);
}

static void draws(void **state)
{
    for (size_t i = 0; i < DEVICE_TYPES * sizeof shapes / sizeof *shapes; i++) {
        drawn d;
        case_seed(i / DEVICE_TYPES);
        layer l = layer_make(&shapes[i / DEVICE_TYPES]);
        const kt_case c = sample_case(&l, &d);
        const device_case on = device_case_of(&c, xph_cuda_sample, device_types[i % DEVICE_TYPES]);
        device_check(&on);
        check_actions(&d);
        case_release();
    }
}

/* The logits are those of the heads operation given what was drawn: bit for bit. */
static void logits_are_those_of_the_heads(void **state)
{
    static const shape some[] = {{5, 96, 0, 5, true, true, true}, {3, 700, 0, 5, true, false, false}};
    for (size_t i = 0; i < 2; i++) {
        double *results[KT_MOST];
        drawn d;
        case_seed(i + 30);
        layer l = layer_make(&some[i]);
        double *y = draw_rows(&l, XPH_F32, &d);
        const int32_t *actions = actions_of(&d);
        kt_case c = sample_case(&l, &d);
        xph_heads_args *args = KT_ARGS(&c, xph_heads_args); /* the first member */
        args->actions = actions;
        args->lda = some[i].heads;
        c.prepare = NULL;
        c.scratch_at = KT_DENSE;
        c.args_bytes = sizeof *args;
        const device_case on = device_case_of(&c, xph_cuda_heads, XPH_F32);
        device_run(&on, results);
        case_same("logits", y, results[Y], some[i].rows * l.logits);
        case_release();
    }
}

static void rows_alone(void **state)
{
    const shape s = {66, 70, 0, 5, true, true, true}; /* more than the weights are asked ahead for */
    drawn all, one;
    case_seed(3);
    layer l = layer_make(&s);
    double *together = draw_rows(&l, XPH_F32, &all);
    for (int64_t m = 0; m < s.rows; m += 13) {
        layer row = l;
        row.s.rows = 1;
        row.z += m * s.width;
        row.base += m * l.logits;
        row.noise += m * l.logits;
        row.previous += m * s.heads;
        double *y = draw_rows(&row, XPH_F32, &one);
        case_same("row alone", y, together + m * l.logits, l.logits);
        assert_memory_equal(actions_of(&one), actions_of(&all) + m * s.heads,
                            (size_t)s.heads * sizeof(int32_t));
    }
    case_release();
}

/* Weights of zero: the logits are the biases. */
static layer biases_alone(int64_t rows)
{
    const shape s = {rows, 2, 0, HEADS, false, false, false};
    layer l = layer_make(&s);
    for (int64_t k = 0; k < l.logits * s.width; k++) l.v[k] = 0;
    for (int h = 0; h < HEADS; h++) l.how[h] = (xph_sample_head){.deterministic = 1};
    l.noise = NULL;
    return l;
}

/* Equal logits: the lowest class; infinities and NaN never lead outside the classes. */
static void ties_and_broken_logits(void **state)
{
    drawn d;
    case_seed(9);
    layer l = biases_alone(3);
    for (int64_t k = 0; k < l.logits; k++) l.bias[k] = 1;
    l.bias[8 + 3] = l.bias[8 + 11] = 4;
    l.bias[58 + 74] = l.bias[58 + 37] = l.bias[58 + 40] = 4;
    draw_rows(&l, XPH_F32, &d);
    assert_int_equal(actions_of(&d)[1], 3);
    assert_int_equal(actions_of(&d)[3], 0);
    assert_int_equal(actions_of(&d)[4], 37);
    for (int64_t k = 0; k < l.logits; k++) l.bias[k] = k % 2 ? NAN : -INFINITY;
    draw_rows(&l, XPH_F32, &d);
    for (int h = 0; h < HEADS; h++) assert_int_equal(actions_of(&d)[h], 0);
    for (int64_t k = 0; k < l.logits; k++) l.bias[k] = k % 3 ? NAN : INFINITY;
    draw_rows(&l, XPH_F32, &d);
    assert_int_equal(actions_of(&d)[0], 1 << 0 | 1 << 3 | 1 << 6);
    assert_int_equal(actions_of(&d)[1], 1);
    assert_int_equal(actions_of(&d)[4], 2);
    case_release();
}

/* A bit that is on stays on down to release, one that is off comes on above press. */
static void hysteresis_holds(void **state)
{
    static const double p[8] = {0.2, 0.35, 0.45, 0.55, 0.65, 0.3, 0.25, 0.7};
    drawn d;
    case_seed(2);
    layer l = biases_alone(2);
    for (int k = 0; k < 8; k++) l.bias[k] = (double)(float)log(p[k] / (1 - p[k]));
    l.bias[5] += 1e-5;
    l.how[0] = (xph_sample_head){1, 0.6f, 0.3f, 1};
    l.previous = case_alloc(2 * HEADS * sizeof *l.previous);
    memset(l.previous, 0, 2 * HEADS * sizeof *l.previous);
    l.previous[HEADS] = 255;
    draw_rows(&l, XPH_F32, &d);
    assert_int_equal(actions_of(&d)[0], 1 << 4 | 1 << 7);
    assert_int_equal(actions_of(&d)[HEADS], 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 7);
    l.previous = NULL;
    draw_rows(&l, XPH_F32, &d);
    assert_int_equal(actions_of(&d)[HEADS], 1 << 4 | 1 << 7);
    case_release();
}

/* Many draws of one row: chi-square of the 17 classes (16 degrees of freedom: above 45 once in 7000 runs, and every run
 * is the same) and the rate of each bit. */
static void frequencies_are_the_probabilities(void **state)
{
    enum { DRAWS = 1500 };
    const shape s = {DRAWS, 3, 0, 2, false, false, false};
    drawn d;
    case_seed(20);
    layer l = layer_make(&s);
    for (int64_t k = 3; k < DRAWS * 3; k++) l.z[k] = l.z[k % 3];
    for (int h = 0; h < HEADS; h++) l.how[h] = (xph_sample_head){.temperature = 0.7f};
    double *y = draw_rows(&l, XPH_F32, &d), total = 0, chi = 0, seen[17] = {0}, on[8] = {0};
    for (int64_t row = 0; row < DRAWS; row++) {
        seen[actions_of(&d)[row * 2 + 1]] += 1;
        for (int k = 0; k < 8; k++) on[k] += actions_of(&d)[row * 2] >> k & 1;
    }
    for (int k = 0; k < 17; k++) total += exp(y[8 + k] / (double)0.7f);
    for (int k = 0; k < 17; k++) {
        double expected = DRAWS * exp(y[8 + k] / (double)0.7f) / total;
        chi += (seen[k] - expected) * (seen[k] - expected) / expected;
    }
    assert_true(chi < 45);
    for (int k = 0; k < 8; k++) {
        double p = 1 / (1 + exp(-y[k] / (double)0.7f));
        assert_true(fabs(on[k] - DRAWS * p) < 4 * sqrt(DRAWS * p * (1 - p)));
    }
    case_release();
}

/* Where a row's numbers are made from, for the kernel of the next tests: in the device's memory what a session stages. */
typedef struct made_noise {
    drawn drawn; /* first: place_for_actions finds it */
    xph_draw *draw;
    int64_t first;
    float *given; /* of rows that make none */
} made_noise;

static void place_draws(const kt_case *c, const xph_kernel_set *set, void *args)
{
    const made_noise *m = c->context;
    xph_sample_args *a = args;
    place_for_actions(c, set, args);
    a->draw = m->draw;
    a->drawn = m->first;
    a->noise = m->given;
}

/* Row by row from `position` on; the noise of the layer becomes what the host draws there. Every fourth row is given its own,
 * and what is given to the others is none. */
static made_noise made_noise_of(layer *l, uint64_t seed, uint64_t position, int64_t first)
{
    const size_t numbers = (size_t)(l->s.rows * l->logits);
    made_noise m = {.first = first};
    m.draw = case_alloc((size_t)l->s.rows * sizeof *m.draw);
    m.given = case_alloc(numbers * sizeof *m.given);
    for (size_t i = 0; i < numbers; i++) m.given[i] = NAN;
    for (int64_t row = 0; row < l->s.rows; row++) {
        xph_rng rng = {seed, XPH_RNG_SAMPLE | (uint64_t)(row + 1) << 8,
                       position + (uint64_t)(row * l->logits)};
        float *const own = l->noise + row * l->logits;
        m.draw[row] = (xph_draw){rng.seed, rng.stream, rng.position};
        rng.position += (uint64_t)first;
        xph_rng_floats(&rng, own, l->logits);
        if (row % 4 != 3) continue;
        m.draw[row] = (xph_draw){0, 0, 0};
        memcpy(m.given + row * l->logits, own, (size_t)l->logits * sizeof *own);
    }
    return m;
}

/* In all candidates and schedules the actions are those that the CPU draws with the host's numbers. A draw that were off by one
 * place would differ in some of so many logits. */
static void check_made(layer *l, uint64_t seed, uint64_t position, int64_t first)
{
    made_noise m = made_noise_of(l, seed, position, first);
    for (int h = 0; h < l->s.heads; h++) l->how[h].deterministic = 0;
    kt_case c = sample_case(l, &m.drawn);
    c.prepare = place_draws;
    c.context = &m;
    const device_case on = device_case_of(&c, xph_cuda_sample, XPH_F32);
    device_check(&on);
    check_actions(&m.drawn);
}

static void numbers_are_those_of_the_host(void **state)
{
    static const uint64_t positions[] = {0, 1, 6, 81 * 7, (UINT64_C(4) << 32) - 67, UINT64_MAX - 5000};
    static const shape some[] = {{6, 128, 0, 5, true, true, true}, {5, 70, 1, 3, false, true, false}};
    for (size_t i = 0; i < 2 * sizeof positions / sizeof *positions; i++) {
        case_seed(60 + i);
        layer l = layer_make(&some[i % 2]);
        check_made(&l, i % 3 ? i : UINT64_C(0x123456789abcdef0), positions[i / 2], i % 2 ? 25 : 0);
        case_release();
    }
}

/* More logits than a block has room for the numbers of: in a draw of them all the device makes each where it is needed. */
static void many_numbers_are_made_one_by_one(void **state)
{
    enum { MANY = 2, EACH = 700 };
    static const xph_head wide[MANY] = {{EXPHIL_CATEGORICAL, EACH, 0}, {EXPHIL_CATEGORICAL, EACH, EACH}};
    const shape s = {4, 8, 0, MANY, true, false, false};
    case_seed(77);
    layer l = layer_make(&s);
    l.logits = MANY * EACH;
    l.v = case_random(l.logits * s.width, -1, 1);
    l.e = case_random(l.logits * s.width, -1, 1);
    l.bias = case_random(l.logits, -1, 1);
    l.noise = case_alloc((size_t)(s.rows * l.logits) * sizeof *l.noise);
    made_noise m = made_noise_of(&l, 5, 3, 0);
    for (int h = 0; h < MANY; h++) l.how[h] = (xph_sample_head){.temperature = 1.0f};
    kt_case c = sample_case(&l, &m.drawn);
    KT_ARGS(&c, xph_sample_args)->heads.head = wide;
    c.prepare = place_draws;
    c.context = &m;
    const device_case on = device_case_of(&c, xph_cuda_sample, XPH_F32);
    device_check(&on);
    check_actions(&m.drawn);
    case_release();
}

static void wide_trunks_are_not_accepted(void **state)
{
    const xph_sample_args wide = {.heads = {.rows = 1, .width = 1025, .heads = 1}};
    const xph_sample_args many = {.heads = {.rows = 1, .width = 8, .heads = 33}};
    for (const xph_cuda_candidate *k = xph_cuda_sample; k->name; k++) {
        assert_false(k->accepts(&wide));
        assert_false(k->accepts(&many));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws),
        cmocka_unit_test(logits_are_those_of_the_heads),
        cmocka_unit_test(rows_alone),
        cmocka_unit_test(ties_and_broken_logits),
        cmocka_unit_test(hysteresis_holds),
        cmocka_unit_test(frequencies_are_the_probabilities),
        cmocka_unit_test(numbers_are_those_of_the_host),
        cmocka_unit_test(many_numbers_are_made_one_by_one),
        cmocka_unit_test(wide_trunks_are_not_accepted),
    };
    return cmocka_run_group_tests_name("cuda_sample", tests, NULL, NULL);
}
