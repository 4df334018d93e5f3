/* Every term of the loss, alone and with the others, against central differences; distributions against their formulas by
 * the C library; equal distributions are at no distance, to the last bit. */
#include "model_case.h"
#include "test_places.h"

#include "learn/policy.h"
#include "learn/powers.h"

#include <math.h>
#include <stdio.h>

enum { HEADS = 3, LOGITS = 12, CASES = 60 };
#define STEP 1e-5

static const xph_head head[HEADS] = {
    {EXPHIL_BERNOULLI, 3, 0}, {EXPHIL_CATEGORICAL, 5, 3}, {EXPHIL_CATEGORICAL, 4, 8}};

typedef struct sample {
    xph_policy policy;
    xph_policy_terms terms;
    double logits[LOGITS], old[LOGITS], old_chances[LOGITS], teacher[LOGITS], teacher_chances[LOGITS];
    double log_probability, advantage;
    int32_t action[HEADS];
} sample;

static void take_logs(const xph_policy *policy, const double *logits, double *logs, double *chances)
{
    xph_policy_logs(policy, logits, XPH_F64, 1, logs);
    xph_policy_chances(policy, logs, 1, chances);
}

static void draw_logs(const xph_policy *policy, xph_rng *rng, double scale, double *logs, double *chances)
{
    double logits[LOGITS];
    for (int i = 0; i < LOGITS; i++) logits[i] = model_case_uniform(rng, -scale, scale);
    take_logs(policy, logits, logs, chances);
}

static void draw(sample *s, uint64_t seed, double scale)
{
    xph_rng rng = {.seed = seed, .stream = XPH_RNG_TEST};
    *s = (sample){.policy = {.head = head, .heads = HEADS, .logits = LOGITS}};
    for (int h = 0; h < HEADS; h++) {
        s->policy.temperature[h] = seed % 2 ? model_case_uniform(&rng, 0.5, 2.0) : 1.0;
        s->action[h] = (int32_t)xph_rng_below(&rng, h == 0 ? 8 : (uint64_t)head[h].count);
    }
    for (int i = 0; i < LOGITS; i++) s->logits[i] = model_case_uniform(&rng, -scale, scale);
    draw_logs(&s->policy, &rng, scale, s->old, s->old_chances);
    draw_logs(&s->policy, &rng, scale, s->teacher, s->teacher_chances);
    double logs[LOGITS];
    xph_policy_logs(&s->policy, s->logits, XPH_F64, 1, logs);
    s->log_probability =
        xph_policy_log_probability(&s->policy, logs, s->action) + model_case_uniform(&rng, -0.4, 0.4);
    s->advantage = model_case_uniform(&rng, -2.0, 2.0);
}

static xph_policy_result loss_of(const sample *s, void *gradient, xph_type type)
{
    double logs[LOGITS], chances[LOGITS];
    xph_policy_result result;
    const xph_policy_rows rows = {.count = 1,
                                  .action = s->action,
                                  .log_probability = &s->log_probability,
                                  .advantage = &s->advantage,
                                  .old = s->old,
                                  .old_chances = s->old_chances,
                                  .teacher = s->teacher,
                                  .teacher_chances = s->teacher_chances};
    take_logs(&s->policy, s->logits, logs, chances);
    xph_policy_loss(&s->policy, &s->terms, &rows, logs, chances, 1.0, gradient, type, &result);
    return result;
}

static void check_differences(sample *s, const char *name)
{
    double gradient[LOGITS], largest = 1e-3;
    float single[LOGITS];
    loss_of(s, gradient, XPH_F64);
    loss_of(s, single, XPH_F32);
    for (int i = 0; i < LOGITS; i++)
        if (fabs(gradient[i]) > largest) largest = fabs(gradient[i]);
    for (int i = 0; i < LOGITS; i++) {
        double kept = s->logits[i];
        s->logits[i] = kept + STEP;
        double above = loss_of(s, NULL, XPH_F64).loss;
        s->logits[i] = kept - STEP;
        double below = loss_of(s, NULL, XPH_F64).loss, found = (above - below) / (2.0 * STEP);
        s->logits[i] = kept;
        if (!(fabs(found - gradient[i]) <= 1e-6 * largest))
            fail_msg("%s: gradient by logit %d is %.12g, differences say %.12g", name, i, gradient[i], found);
        assert_true(single[i] == (float)gradient[i]);
    }
}

static const struct {
    const char *name;
    xph_policy_terms terms;
} cases[] = {
    {"surrogate", {1.0, 0.2, 0, 0, 0, 0}},       {"weighed surrogate", {3.0, 0.05, 0, 0, 0, 0}},
    {"KL to old", {0, 0.2, 0.7, 0, 0, 0}},       {"KL to teacher", {0, 0.2, 0, 0.6, 0, 0}},
    {"KL from teacher", {0, 0.2, 0, 0, 0.4, 0}}, {"entropy", {0, 0.2, 0, 0, 0, 0.3}},
    {"all", {1.5, 0.2, 0.3, 0.2, 0.1, 0.05}},
};

static void gradients_are_those_of_the_terms(void **unused)
{
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++)
        for (uint64_t seed = 1; seed <= CASES; seed++) {
            sample s;
            draw(&s, seed, 3.0);
            s.terms = cases[k].terms;
            /* differences mean nothing where the surrogate has its corner */
            double ratio = loss_of(&s, NULL, XPH_F64).ratio;
            if (fabs(ratio - 1.0 - s.terms.clip) < 1e-3 || fabs(ratio - 1.0 + s.terms.clip) < 1e-3) continue;
            check_differences(&s, cases[k].name);
        }
}

static double imitation_of(const sample *s, void *gradient, xph_type type)
{
    double logs[LOGITS], chances[LOGITS];
    take_logs(&s->policy, s->logits, logs, chances);
    double nll = xph_policy_imitate(&s->policy, s->action, logs, chances, 0.7, gradient, type);
    assert_true(nll == -xph_policy_log_probability(&s->policy, logs, s->action));
    return nll;
}

/* Imitation: the gradient of -log p, and nothing else of the row. */
static void imitation_has_its_gradient(void **unused)
{
    for (uint64_t seed = 1; seed <= CASES; seed++) {
        sample s;
        double gradient[LOGITS];
        float single[LOGITS];
        draw(&s, seed, 3.0);
        assert_true(imitation_of(&s, gradient, XPH_F64) == imitation_of(&s, single, XPH_F32));
        for (int i = 0; i < LOGITS; i++) {
            double sides[2], kept = s.logits[i];
            for (int k = 0; k < 2; k++) {
                s.logits[i] = kept + (k ? -STEP : STEP);
                sides[k] = 0.7 * imitation_of(&s, NULL, XPH_F64);
            }
            s.logits[i] = kept;
            double found = (sides[0] - sides[1]) / (2.0 * STEP);
            if (!(fabs(found - gradient[i]) <= 1e-6 * fmax(fabs(gradient[i]), 1e-3)))
                fail_msg("gradient by logit %d is %.12g, differences say %.12g", i, gradient[i], found);
            assert_true(single[i] == (float)gradient[i]);
        }
    }
}

static void read_numbers(FILE *file, double *to, int count)
{
    for (int i = 0; i < count; i++) assert_int_equal(fscanf(file, "%la", &to[i]), 1);
}

/* tests/data/make_policy_golden.py */
static void losses_are_those_of_pytorch(void **unused)
{
    FILE *file = fopen(EXPHIL_SOURCE_DIR "/tests/data/policy/golden.txt", "r");
    assert_non_null(file);
    for (int k = 0; k < 40; k++) {
        double old[LOGITS], teacher[LOGITS], actions[HEADS], terms[9], wanted[LOGITS], found[LOGITS];
        sample s = {.policy = {.head = head, .heads = HEADS, .logits = LOGITS}};
        read_numbers(file, s.logits, LOGITS);
        read_numbers(file, old, LOGITS);
        read_numbers(file, teacher, LOGITS);
        read_numbers(file, s.policy.temperature, HEADS);
        read_numbers(file, actions, HEADS);
        read_numbers(file, terms, 9);
        read_numbers(file, wanted, LOGITS);
        for (int h = 0; h < HEADS; h++) s.action[h] = (int32_t)actions[h];
        take_logs(&s.policy, old, s.old, s.old_chances);
        take_logs(&s.policy, teacher, s.teacher, s.teacher_chances);
        s.terms = (xph_policy_terms){terms[0], terms[1], terms[2], terms[3], terms[4], terms[5]};
        s.advantage = terms[6];
        s.log_probability = terms[7];
        xph_policy_result result = loss_of(&s, found, XPH_F64);
        assert_true(fabs(result.loss - terms[8]) < 1e-12 * (1.0 + fabs(terms[8])));
        for (int i = 0; i < LOGITS; i++) assert_true(fabs(found[i] - wanted[i]) < 1e-12);
    }
    double more;
    assert_int_equal(fscanf(file, "%la", &more), EOF);
    fclose(file);
}

/* Outside the bounds the surrogate pulls back, but never pushes on. */
static void the_surrogate_is_clipped(void **unused)
{
    sample s;
    double gradient[LOGITS];
    draw(&s, 2, 1.0);
    s.terms = (xph_policy_terms){.surrogate = 1.0, .clip = 0.2};
    double logs[LOGITS];
    xph_policy_logs(&s.policy, s.logits, XPH_F64, 1, logs);
    double own = xph_policy_log_probability(&s.policy, logs, s.action);
    for (int sign = -1; sign <= 1; sign += 2)
        for (int moved = -1; moved <= 1; moved++) {
            s.advantage = sign;
            s.log_probability = own - 0.5 * moved;
            xph_policy_result result = loss_of(&s, gradient, XPH_F64);
            bool clipped = sign * moved > 0;
            assert_true(result.clipped == (clipped ? 1.0 : 0.0));
            assert_true(fabs(result.ratio - exp(0.5 * moved)) < 1e-12);
            for (int i = 0; i < LOGITS; i++) assert_true(clipped == (gradient[i] == 0.0));
        }
}

static void distributions_are_the_formulas(void **unused)
{
    for (uint64_t seed = 1; seed <= CASES; seed++) {
        sample s;
        double logs[LOGITS], wanted = 0.0, entropy = 0.0;
        draw(&s, seed, 8.0);
        xph_policy_logs(&s.policy, s.logits, XPH_F64, 1, logs);
        for (int h = 0; h < HEADS; h++) {
            double sum = 0.0;
            for (int i = 0; i < head[h].count; i++)
                sum += exp(s.logits[head[h].first + i] / s.policy.temperature[h]);
            for (int i = 0; i < head[h].count; i++) {
                double y = s.logits[head[h].first + i] / s.policy.temperature[h], p;
                if (head[h].kind == EXPHIL_CATEGORICAL) {
                    p = exp(y) / sum;
                    if (i == s.action[h]) wanted += log(p);
                    entropy -= p * log(p);
                    assert_true(fabs(logs[head[h].first + i] - log(p)) < 1e-12 * (1.0 + fabs(log(p))));
                } else {
                    p = 1.0 / (1.0 + exp(-y));
                    wanted += log(s.action[h] >> i & 1 ? p : 1.0 - p);
                    entropy -= p * log(p) + (1.0 - p) * log(1.0 - p);
                }
            }
        }
        assert_true(fabs(xph_policy_log_probability(&s.policy, logs, s.action) - wanted) <
                    1e-11 * (1.0 - wanted));
        assert_true(fabs(loss_of(&s, NULL, XPH_F64).entropy - entropy) < 1e-11);
    }
}

static void equal_policies_are_at_no_distance(void **unused)
{
    for (uint64_t seed = 1; seed <= CASES; seed++) {
        sample s;
        draw(&s, seed, 30.0);
        double logs[LOGITS];
        xph_policy_logs(&s.policy, s.logits, XPH_F64, 1, logs);
        take_logs(&s.policy, s.logits, s.old, s.old_chances);
        take_logs(&s.policy, s.logits, s.teacher, s.teacher_chances);
        s.log_probability = xph_policy_log_probability(&s.policy, logs, s.action);
        s.terms = cases[6].terms;
        xph_policy_result result = loss_of(&s, NULL, XPH_F64);
        assert_true(result.kl_old == 0.0 && result.kl_to_teacher == 0.0 && result.kl_from_teacher == 0.0);
        assert_true(result.ratio == 1.0 && result.clipped == 0.0);
    }
}

/* Logits as large as floats allow give numbers. */
static void extremes_stay_finite(void **unused)
{
    static const double extreme[] = {3e38, -3e38, 1e4, -1e4, 0.0};
    for (int a = 0; a < 5; a++)
        for (int b = 0; b < 5; b++) {
            sample s;
            double gradient[LOGITS];
            draw(&s, 4, 1.0);
            for (int i = 0; i < LOGITS; i++) s.logits[i] = extreme[i % 2 ? a : b];
            s.terms = cases[6].terms;
            xph_policy_result result = loss_of(&s, gradient, XPH_F64);
            assert_true(isfinite(result.ratio) && isfinite(result.entropy));
            for (int i = 0; i < LOGITS; i++) assert_true(gradient[i] == gradient[i]);
        }
}

/* However many are taken at a time, and wherever a number lies among them. */
static void powers_have_the_bits_of_one(void **unused)
{
    static const double special[] = {0.0,
                                     -0.0,
                                     1e-300,
                                     -1e-300,
                                     700.0,
                                     -700.0,
                                     700.1,
                                     -700.1,
                                     1e300,
                                     -1e300,
                                     INFINITY,
                                     -INFINITY,
                                     0.34657359027997264,
                                     -0.34657359027997264};
    enum { MOST = 37, SPECIAL = sizeof special / sizeof special[0] };
    xph_rng rng = {.seed = 7, .stream = XPH_RNG_TEST};
    for (int round = 0; round < 400; round++) {
        double x[MOST + 1], wanted[MOST + 1];
        const int n = round % (MOST + 1);
        for (int i = 0; i <= n; i++) {
            x[i] = model_case_uniform(&rng, -750.0, 750.0) / (round % 3 ? 40.0 : 1.0);
            if (round % 5 == 0) x[i] = special[(round / 5 + i) % SPECIAL];
            wanted[i] = i < n ? xph_power(x[i]) : x[i];
        }
        xph_powers(x, n);
        assert_memory_equal(x, wanted, (size_t)(n + 1) * sizeof *x);
    }
}

enum { MANY = 1100 }; /* rows: more than a strip */

typedef struct many {
    double logits[MANY * LOGITS], logs[MANY * LOGITS], chances[MANY * LOGITS], old[MANY * LOGITS],
        old_chances[MANY * LOGITS], log_probability[MANY], advantage[MANY];
    float gradient[MANY * LOGITS];
    int32_t action[MANY * HEADS];
    uint8_t counts[MANY];
    xph_policy_result result[MANY];
} many;

static void draw_many(many *m, const sample *s)
{
    for (int t = 0; t < MANY; t++) {
        sample one;
        draw(&one, (uint64_t)t + 1, t % 2 ? 3.0 : 30.0);
        memcpy(m->logits + t * LOGITS, one.logits, sizeof one.logits);
        memcpy(m->action + t * HEADS, one.action, sizeof one.action);
        m->log_probability[t] = one.log_probability;
        m->advantage[t] = one.advantage;
        m->counts[t] = t % 7 == 3 ? XPH_ROW_NONE : t % 7 == 5 ? XPH_ROW_IMITATED : XPH_ROW_PLAYED;
    }
    xph_policy_logs(&s->policy, m->logits, XPH_F64, MANY, m->old);
    for (int i = 0; i < MANY * LOGITS; i++) m->logits[i] += i % 5 - 2;
    xph_policy_chances(&s->policy, m->old, MANY, m->old_chances);
    xph_policy_logs(&s->policy, m->logits, XPH_F64, MANY, m->logs);
    xph_policy_chances(&s->policy, m->logs, MANY, m->chances);
}

/* Row by row, against all of them in one call; of rows that were not played nothing comes. */
static void rows_together_are_rows_alone(void **unused)
{
    static many m;
    sample s;
    draw(&s, 2, 1.0);
    s.terms = cases[6].terms;
    draw_many(&m, &s);
    const xph_policy_rows rows = {
        MANY, m.action, m.log_probability, m.advantage, m.counts, m.old, m.old_chances, NULL, NULL};
    memset(m.gradient, 1, sizeof m.gradient);
    xph_policy_loss(&s.policy, &s.terms, &rows, m.logs, m.chances, 0.5, m.gradient, XPH_F32, m.result);
    for (int t = 0; t < MANY; t++) {
        double old[LOGITS], old_chances[LOGITS], logs[LOGITS], chances[LOGITS];
        float gradient[LOGITS];
        xph_policy_result result;
        take_logs(&s.policy, m.logits + t * LOGITS, logs, chances);
        memcpy(old, m.old + t * LOGITS, sizeof old);
        xph_policy_chances(&s.policy, old, 1, old_chances);
        assert_memory_equal(logs, m.logs + t * LOGITS, sizeof logs);
        assert_memory_equal(old_chances, m.old_chances + t * LOGITS, sizeof old_chances);
        const xph_policy_rows one = {1,
                                     m.action + t * HEADS,
                                     &m.log_probability[t],
                                     &m.advantage[t],
                                     &m.counts[t],
                                     old,
                                     old_chances,
                                     NULL,
                                     NULL};
        xph_policy_loss(&s.policy, &s.terms, &one, logs, chances, 0.5, gradient, XPH_F32, &result);
        assert_memory_equal(&result, &m.result[t], sizeof result);
        assert_memory_equal(gradient, m.gradient + t * LOGITS, sizeof gradient);
        const bool played = m.counts[t] == XPH_ROW_PLAYED;
        for (int i = 0; i < LOGITS; i++) assert_true(played || gradient[i] == 0.0f);
        assert_true(played ? result.ratio > 0.0 : result.ratio == 0.0 && result.loss == 0.0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_those_of_the_terms),  cmocka_unit_test(losses_are_those_of_pytorch),
        cmocka_unit_test(the_surrogate_is_clipped),          cmocka_unit_test(distributions_are_the_formulas),
        cmocka_unit_test(equal_policies_are_at_no_distance), cmocka_unit_test(extremes_stay_finite),
        cmocka_unit_test(powers_have_the_bits_of_one),       cmocka_unit_test(rows_together_are_rows_alone),
        cmocka_unit_test(imitation_has_its_gradient),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
