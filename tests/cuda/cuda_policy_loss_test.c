/* The loss of learning from play on the emulated GPU: logs, chances, results and gradients have the bits of the host's, in every
 * schedule, whatever heads, rows and terms there are; sums are the host's but for their order. */
#include "device_case.h"

#include "learn/policy.h"

#include <math.h>
#include <string.h>

enum { HEADS_MOST = EXPHIL_HEADS_MAX };

typedef struct heads {
    int64_t count;
    xph_head of[HEADS_MOST];
} heads;

#define BITS(n)    EXPHIL_BERNOULLI, n
#define CLASSES(n) EXPHIL_CATEGORICAL, n
static const heads policies[] = {
    {6,
     {{BITS(8), 0},
      {CLASSES(17), 8},
      {CLASSES(17), 25},
      {CLASSES(17), 42},
      {CLASSES(17), 59},
      {CLASSES(5), 76}}},
    {1, {{CLASSES(2), 0}}},
    {1, {{BITS(1), 0}}},
    {3, {{BITS(31), 0}, {CLASSES(3), 31}, {BITS(31), 34}}},
    {2, {{CLASSES(100), 0}, {CLASSES(201), 100}}},
    {16,
     {{CLASSES(2), 0},
      {BITS(1), 2},
      {CLASSES(3), 3},
      {BITS(2), 6},
      {CLASSES(4), 8},
      {BITS(3), 12},
      {CLASSES(5), 15},
      {BITS(4), 20},
      {CLASSES(6), 24},
      {BITS(5), 30},
      {CLASSES(7), 35},
      {BITS(6), 42},
      {CLASSES(8), 48},
      {BITS(7), 56},
      {CLASSES(9), 63},
      {CLASSES(10), 72}}},
};
enum { POLICIES = sizeof policies / sizeof policies[0] };

/* Streams that were played, rows of each and those that are learnt from, streams of the batch. */
static const struct {
    int64_t streams, stride, time, each;
} shapes[] = {{1, 1, 1, 1}, {3, 9, 7, 2}, {5, 13, 13, 5}, {4, 40, 38, 3}, {2, 1, 1, 0}, {0, 3, 2, 0}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static const xph_policy_terms terms[] = {
    {1.0, 0.2, 0, 0, 0, 0}, {3.0, 0.05, 0, 0, 0, 0}, {0, 0.2, 0.7, 0, 0, 0},          {0, 0.2, 0, 0.6, 0, 0},
    {0, 0.2, 0, 0, 0.4, 0}, {0, 0.2, 0, 0, 0, 0.3},  {1.5, 0.2, 0.3, 0.2, 0.1, 0.05}, {0, 0.2, 0, 0, 0, 0},
};
enum { TERMS = sizeof terms / sizeof terms[0] };

/* How far logits reach: those of a policy, nearly certain ones, and the largest floats. */
static const double reaches[] = {3, 30, 1e4, 3e38};
enum { REACHES = sizeof reaches / sizeof reaches[0] };

/* ---- what was played, and a batch of it ---- */

typedef struct played {
    xph_policy policy;
    int64_t streams, stride, time, all, each, rows;
    bool taught, remembered;                      /* there is a teacher; what was said in play is there */
    float *was, *teacher;                         /* [streams, stride, L] */
    float *now, *values;                          /* [rows, L], [rows] */
    int32_t *actions;                             /* [rows, A] */
    int64_t *stream;                              /* [each] */
    double *log_probability, *advantage, *target; /* [all] */
    uint8_t *counts;
    xph_policy_terms terms;
    double scale, imitation, value;
} played;

static void *device(int64_t count, size_t element)
{
    void *at = emu_alloc((size_t)(count ? count : 1) * element, element < 16 ? element : 16);
    assert_non_null(at);
    return at;
}

static float *logits_of(const played *p, int64_t rows, double reach)
{
    float *y = device(rows * p->policy.logits, sizeof *y);
    for (int64_t i = 0; i < rows * p->policy.logits; i++)
        y[i] =
            case_below(20) ? (float)case_uniform(-reach, reach) : (float)(case_below(3) - 1) * (float)reach;
    return y;
}

static double *numbers_of(int64_t count, double low, double high)
{
    double *x = device(count, sizeof *x);
    for (int64_t i = 0; i < count; i++) x[i] = case_uniform(low, high);
    return x;
}

static void draw_rows(played *p)
{
    const xph_policy *policy = &p->policy;
    p->actions = device(p->rows * policy->heads, sizeof *p->actions);
    for (int64_t i = 0; i < p->rows * policy->heads; i++) {
        const xph_head *head = &policy->head[i % policy->heads];
        p->actions[i] =
            (int32_t)case_below(head->kind == EXPHIL_BERNOULLI ? (int64_t)1 << head->count : head->count);
    }
    p->stream = device(p->each, sizeof *p->stream);
    for (int64_t i = 0; i < p->each; i++)
        p->stream[i] = p->streams - 1 - i; /* another order than they were played in */
    p->values = device(p->rows, sizeof *p->values);
    for (int64_t i = 0; i < p->rows; i++) p->values[i] = (float)case_uniform(-2, 2);
    p->counts = device(p->all, 1);
    for (int64_t i = 0; i < p->all; i++)
        p->counts[i] = (uint8_t)(case_below(4) ? XPH_ROW_PLAYED : case_below(3));
}

static played draw(size_t number)
{
    const heads *h = &policies[number % POLICIES];
    const size_t shape = number / POLICIES % SHAPES;
    played p = {.policy = {.head = h->of,
                           .heads = h->count,
                           .logits = h->of[h->count - 1].first + h->of[h->count - 1].count},
                .streams = shapes[shape].streams,
                .stride = shapes[shape].stride,
                .time = shapes[shape].time,
                .each = shapes[shape].each};
    const double reach = reaches[number / 3 % REACHES];
    case_seed(number);
    p.all = p.streams * p.time;
    p.rows = p.each * p.time;
    p.taught = number % 3 != 1;
    p.remembered = number % 5 != 4;
    p.terms = terms[number % TERMS];
    p.scale = p.rows ? 1.0 / (double)p.rows : 0.0;
    p.imitation = number % 2 ? 0.3 * p.scale : 0.0;
    p.value = 0.5;
    for (int64_t k = 0; k < p.policy.heads; k++)
        p.policy.temperature[k] = number % 4 == 2 ? case_uniform(0.3, 3) : 1.0;
    p.was = logits_of(&p, p.streams * p.stride, reach);
    p.teacher = logits_of(&p, p.streams * p.stride, reach);
    p.now = logits_of(&p, p.rows, reach);
    draw_rows(&p);
    p.advantage = numbers_of(p.all, -2, 2);
    p.target = numbers_of(p.all, -2, 2);
    p.log_probability = numbers_of(p.all, -30, -1);
    return p;
}

static void free_played(const played *p)
{
    void *const all[] = {p->was,    p->teacher,   p->now,    p->values,          p->actions,
                         p->stream, p->advantage, p->target, p->log_probability, p->counts};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) emu_free(all[i]);
}

/* ---- the host's ---- */

typedef struct logs {
    double *logs, *chances;
} logs;

static logs logs_of(const played *p, const float *y, int64_t rows)
{
    const size_t bytes = (size_t)(rows * p->policy.logits) * sizeof(double);
    logs l = {case_alloc(bytes), case_alloc(bytes)};
    xph_policy_logs(&p->policy, y, XPH_F32, rows, l.logs);
    xph_policy_chances(&p->policy, l.logs, rows, l.chances);
    return l;
}

/* Row t of stream b: number b * time + t. */
static logs logs_of_chunk(const played *p, const float *y)
{
    const int64_t width = p->policy.logits;
    const size_t bytes = (size_t)(p->all * width) * sizeof(double);
    logs l = {case_alloc(bytes), case_alloc(bytes)};
    for (int64_t b = 0; b < p->streams; b++) {
        const logs one = logs_of(p, y + b * p->stride * width, p->time);
        const size_t part = (size_t)(p->time * width) * sizeof(double);
        memcpy(l.logs + b * p->time * width, one.logs, part);
        memcpy(l.chances + b * p->time * width, one.chances, part);
    }
    return l;
}

typedef struct results {
    float *dlogits, *dvalues;
    xph_policy_result *result;
    double *miss;
    xph_policy_tally tally;
} results;

static void loss_of_row(const played *p, const logs *was, const logs *taught, const logs *now, int64_t row,
                        results *r)
{
    const int64_t width = p->policy.logits, at = p->stream[row / p->time] * p->time + row % p->time;
    const int32_t *action = p->actions + row * p->policy.heads;
    const xph_policy_rows one = {.count = 1,
                                 .action = action,
                                 .log_probability = p->log_probability + at,
                                 .advantage = p->advantage + at,
                                 .counts = p->counts + at,
                                 .old = p->remembered ? was->logs + at * width : NULL,
                                 .old_chances = p->remembered ? was->chances + at * width : NULL,
                                 .teacher = p->taught ? taught->logs + at * width : NULL,
                                 .teacher_chances = p->taught ? taught->chances + at * width : NULL};
    const double *own = now->logs + row * width, *chances = now->chances + row * width;
    float *dlogits = r->dlogits + row * width;
    const uint8_t what = p->counts[at];
    xph_policy_loss(&p->policy, &p->terms, &one, own, chances, p->scale, dlogits, XPH_F32, &r->result[row]);
    const double miss = what == XPH_ROW_PLAYED ? (double)p->values[row] - p->target[at] : 0.0;
    r->dvalues[row] = (float)(2.0 * p->value * p->scale * miss);
    r->miss[row] = miss * miss;
    if (what == XPH_ROW_IMITATED)
        r->miss[row] = xph_policy_imitate(&p->policy, action, own, chances, p->imitation,
                                          p->imitation > 0.0 ? dlogits : NULL, XPH_F32);
}

static void add_row(const played *p, int64_t row, const results *r, xph_policy_tally *sum)
{
    const xph_policy_result *one = &r->result[row];
    const uint8_t what = p->counts[p->stream[row / p->time] * p->time + row % p->time];
    if (what == XPH_ROW_IMITATED) sum->imitated++, sum->nll += r->miss[row];
    if (what != XPH_ROW_PLAYED) return;
    sum->rows++;
    sum->loss += one->loss + p->value * r->miss[row];
    sum->miss += r->miss[row];
    sum->ratio += one->ratio;
    sum->clipped += one->clipped;
    sum->kl_old += one->kl_old;
    sum->to_teacher += one->kl_to_teacher;
    sum->from_teacher += one->kl_from_teacher;
    sum->entropy += one->entropy;
    if (one->apart > sum->apart) sum->apart = one->apart;
}

static int64_t first_bad(const float *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(x[i])) return i;
    return -1;
}

static results by_host(const played *p)
{
    const logs was = logs_of_chunk(p, p->was), taught = logs_of_chunk(p, p->teacher),
               now = logs_of(p, p->now, p->rows);
    results r = {case_alloc((size_t)(p->rows * p->policy.logits) * sizeof(float)),
                 case_alloc((size_t)p->rows * sizeof(float)),
                 case_alloc((size_t)p->rows * sizeof(xph_policy_result)),
                 case_alloc((size_t)p->rows * sizeof(double)),
                 {.rows = 0}};
    for (int64_t row = 0; row < p->rows; row++) {
        loss_of_row(p, &was, &taught, &now, row, &r);
        add_row(p, row, &r, &r.tally);
    }
    r.tally.bad_logit = first_bad(r.dlogits, p->rows * p->policy.logits);
    r.tally.bad_value = first_bad(r.dvalues, p->rows);
    return r;
}

/* ---- the device's ---- */

static xph_policy_loss_args args_of(const played *p, int32_t part)
{
    return (xph_policy_loss_args){.part = part,
                                  .rows = part == XPH_POLICY_LOGS ? p->streams * p->stride : p->rows,
                                  .time = p->time,
                                  .stride = p->stride,
                                  .all = p->all,
                                  .heads = p->policy.heads,
                                  .logits = p->policy.logits,
                                  .head = p->policy.head,
                                  .temperature = p->policy.temperature};
}

static void run(xph_policy_loss_args *args)
{
    assert_true(xph_cuda_policy_loss->accepts(args));
    const size_t bytes = xph_cuda_policy_loss->scratch_bytes(args);
    args->scratch = emu_alloc(bytes ? bytes : 1, 16);
    assert_int_equal(xph_cuda_policy_loss->launch(args, NULL), 0);
    if (emu_fault()) fail_msg("policy_loss: %s", emu_fault());
    emu_free(args->scratch);
}

static logs device_logs(const played *p, const float *y, uint32_t *bad)
{
    logs l = {device(p->all * p->policy.logits, sizeof(double)),
              device(p->all * p->policy.logits, sizeof(double))};
    uint32_t *not_finite = device(1, sizeof *not_finite);
    xph_policy_loss_args args = args_of(p, XPH_POLICY_LOGS);
    *not_finite = 0;
    args.y = y, args.logs = l.logs, args.chances = l.chances, args.not_finite = bad ? not_finite : NULL;
    run(&args);
    if (bad) *bad = *not_finite;
    emu_free(not_finite);
    return l;
}

static bool same(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b);
}

/* Logit by logit on the device, row by row with the host. */
static void check_logs(const played *p, const logs *found, const logs *wanted)
{
    for (int64_t i = 0; i < p->all * p->policy.logits; i++) {
        const int64_t at = i % p->policy.logits * p->all + i / p->policy.logits;
        if (!same(found->logs[at], wanted->logs[i]) || !same(found->chances[at], wanted->chances[i]))
            fail_msg("row %lld, logit %lld: log %a, p %a, the host has %a, %a",
                     (long long)(i / p->policy.logits), (long long)(i % p->policy.logits), found->logs[at],
                     found->chances[at], wanted->logs[i], wanted->chances[i]);
    }
}

static void check_row(const played *p, const results *found, const results *wanted, int64_t row)
{
    enum { NUMBERS = sizeof(xph_policy_result) / sizeof(double) };
    const double *a = (const double *)&found->result[row], *b = (const double *)&wanted->result[row];
    const int64_t width = p->policy.logits;
    for (int i = 0; i < NUMBERS; i++)
        if (!same(a[i], b[i]))
            fail_msg("row %lld, number %d: %a, the host has %a", (long long)row, i, a[i], b[i]);
    if (!same(found->miss[row], wanted->miss[row]))
        fail_msg("row %lld misses by %a, by %a with the host", (long long)row, found->miss[row],
                 wanted->miss[row]);
    assert_true(same((double)found->dvalues[row], (double)wanted->dvalues[row]));
    for (int64_t i = row * width; i < (row + 1) * width; i++)
        if (!same((double)found->dlogits[i], (double)wanted->dlogits[i]))
            fail_msg("row %lld, gradient of logit %lld: %a, the host has %a", (long long)row,
                     (long long)(i % width), (double)found->dlogits[i], (double)wanted->dlogits[i]);
}

static void check_tally(const results *found, const results *wanted)
{
    enum { SUMS = offsetof(xph_policy_tally, apart) / sizeof(double) };
    const double *a = &found->tally.rows, *b = &wanted->tally.rows;
    for (int i = 0; i < SUMS; i++)
        if (!(fabs(a[i] - b[i]) <= 1e-9 * fabs(b[i])) && isfinite(b[i]))
            fail_msg("sum %d: %.17g, the host has %.17g", i, a[i], b[i]);
    for (int i = 0; i < SUMS; i++) assert_true(isfinite(a[i]) == isfinite(b[i]));
    assert_true(same(found->tally.apart, wanted->tally.apart));
    assert_int_equal(found->tally.bad_logit, wanted->tally.bad_logit);
    assert_int_equal(found->tally.bad_value, wanted->tally.bad_value);
}

static void free_results(const results *r, xph_policy_tally *tally)
{
    emu_free(r->dlogits);
    emu_free(r->dvalues);
    emu_free(r->result);
    emu_free(r->miss);
    emu_free(tally);
}

/* gradients: false: only looks. */
static void check_loss(const played *p, const logs *was, const logs *taught, const results *wanted,
                       bool gradients)
{
    results r = {gradients ? device(p->rows * p->policy.logits, sizeof(float)) : NULL,
                 gradients ? device(p->rows, sizeof(float)) : NULL,
                 device(p->rows, sizeof(xph_policy_result)),
                 device(p->rows, sizeof(double)),
                 {.rows = 0}};
    xph_policy_tally *tally = device(1, sizeof *tally);
    xph_policy_loss_args args = args_of(p, XPH_POLICY_LOSS);
    args.y = p->now, args.values = p->values, args.actions = p->actions, args.stream = p->stream;
    args.log_probability = p->log_probability, args.advantage = p->advantage, args.target = p->target;
    args.counts = p->counts, args.terms = p->terms;
    args.old = p->remembered ? was->logs : NULL, args.old_chances = p->remembered ? was->chances : NULL;
    args.teacher = p->taught ? taught->logs : NULL, args.teacher_chances = p->taught ? taught->chances : NULL;
    args.scale = p->scale, args.imitation = p->imitation, args.value = p->value;
    args.dlogits = r.dlogits, args.dvalues = r.dvalues, args.result = r.result, args.miss = r.miss;
    args.tally = tally;
    run(&args);
    r.tally = *tally;
    results compared = r;
    if (!gradients) {
        compared.dlogits = wanted->dlogits, compared.dvalues = wanted->dvalues;
        compared.tally.bad_logit = wanted->tally.bad_logit,
        compared.tally.bad_value = wanted->tally.bad_value;
        assert_int_equal(r.tally.bad_logit, -1);
        assert_int_equal(r.tally.bad_value, -1);
    }
    for (int64_t row = 0; row < p->rows; row++) check_row(p, &compared, wanted, row);
    check_tally(&compared, wanted);
    free_results(&r, tally);
}

static void check(const played *p)
{
    const logs was = logs_of_chunk(p, p->was), taught = logs_of_chunk(p, p->teacher);
    const results wanted = by_host(p);
    for (int s = 0; s < DEVICE_SCHEDULES; s++) {
        uint32_t bad = 7;
        emu_schedule(s);
        const logs d_was = device_logs(p, p->was, NULL), d_taught = device_logs(p, p->teacher, &bad);
        assert_int_equal(bad, first_bad(p->teacher, p->streams * p->stride * p->policy.logits) >= 0);
        check_logs(p, &d_was, &was);
        check_logs(p, &d_taught, &taught);
        check_loss(p, &d_was, &d_taught, &wanted, true);
        if (s == 0) check_loss(p, &d_was, &d_taught, &wanted, false);
        emu_free(d_was.logs);
        emu_free(d_was.chances);
        emu_free(d_taught.logs);
        emu_free(d_taught.chances);
    }
}

/* ---- the tests ---- */

static void bits_are_the_host_s(void **state)
{
    for (size_t i = 0; i < POLICIES * SHAPES * 3; i++) {
        played p = draw(i);
        check(&p);
        free_played(&p);
        assert_int_equal(emu_allocated(), 0);
        case_release();
    }
}

/* What is learnt and what was said are the same: the ratio is 1 and nothing is apart. */
static void what_was_played_is_at_no_distance(void **state)
{
    for (size_t i = 0; i < POLICIES; i++) {
        played p = draw(2 * POLICIES + i);
        const int64_t width = p.policy.logits;
        p.taught = p.remembered = true;
        for (int64_t row = 0; row < p.rows; row++)
            for (int64_t l = 0; l < width; l++) {
                const int64_t from = (p.stream[row / p.time] * p.stride + row % p.time) * width + l;
                p.now[row * width + l] = p.teacher[from] = p.was[from];
            }
        const logs now = logs_of(&p, p.now, p.rows);
        for (int64_t row = 0; row < p.rows; row++)
            p.log_probability[p.stream[row / p.time] * p.time + row % p.time] = xph_policy_log_probability(
                &p.policy, now.logs + row * width, p.actions + row * p.policy.heads);
        const results r = by_host(&p);
        assert_true(r.tally.apart == 0.0 && r.tally.kl_old == 0.0 && r.tally.to_teacher == 0.0);
        assert_true(r.tally.ratio == r.tally.rows && r.tally.rows > 0.0);
        check(&p);
        free_played(&p);
        case_release();
    }
}

/* The first of each kind is told, whichever block finds it. */
static void what_is_not_finite_is_told(void **state)
{
    static const struct {
        int64_t row;
        double advantage, target;
    } bad[] = {{0, INFINITY, 0}, {70, -INFINITY, 0}, {113, NAN, 0}, {70, 0, INFINITY}, {31, 1e300, -1e300}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        played p = draw(3 * POLICIES); /* 114 rows of the first policy */
        const int64_t at[] = {bad[i].row, p.rows - 1};
        assert_int_equal(p.rows, 114);
        for (int64_t k = 0; k < p.rows * p.policy.logits; k++) p.now[k] = (float)case_uniform(-3, 3);
        p.terms = terms[0];
        for (size_t k = 0; k < 2; k++) {
            const int64_t to = p.stream[at[k] / p.time] * p.time + at[k] % p.time;
            p.counts[to] = XPH_ROW_PLAYED;
            p.advantage[to] = bad[i].advantage;
            p.target[to] = bad[i].target;
        }
        const results r = by_host(&p);
        assert_true(r.tally.bad_logit >= 0 || r.tally.bad_value == bad[i].row);
        check(&p);
        p.was[5] = NAN;
        p.teacher[p.streams * p.stride * p.policy.logits - 1] =
            INFINITY; /* of a row that is not learnt from */
        check(&p);
        free_played(&p);
        case_release();
    }
}

static void others_are_not_accepted(void **state)
{
    const xph_head wide[] = {{CLASSES(1024), 0}}, gap[] = {{CLASSES(4), 0}, {BITS(3), 5}};
    const double temperature[HEADS_MOST + 1] = {1, 1};
    xph_head many[HEADS_MOST + 1];
    xph_policy_loss_args args = {
        .rows = 64, .time = 8, .temperature = temperature, .heads = 1, .logits = 1024};
    args.head = wide;
    assert_false(xph_cuda_policy_loss->accepts(&args));
    args.heads = 2, args.logits = 8, args.head = gap;
    assert_false(xph_cuda_policy_loss->accepts(&args));
    for (int k = 0; k <= HEADS_MOST; k++) many[k] = (xph_head){CLASSES(2), 2 * k};
    args.heads = HEADS_MOST + 1, args.logits = 2 * (HEADS_MOST + 1), args.head = many;
    assert_false(xph_cuda_policy_loss->accepts(&args));
    args.heads = HEADS_MOST, args.logits = 2 * HEADS_MOST;
    assert_true(xph_cuda_policy_loss->accepts(&args));
    args.rows = INT64_C(1) << 31;
    assert_false(xph_cuda_policy_loss->accepts(&args));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_the_host_s), cmocka_unit_test(what_was_played_is_at_no_distance),
        cmocka_unit_test(what_is_not_finite_is_told), cmocka_unit_test(others_are_not_accepted)};
    return cmocka_run_group_tests_name("cuda_policy_loss", tests, NULL, NULL);
}
