/* Examination shows what an evaluation counts: its figures follow from the frames, for every block, both modes, teacher-forced
 * and alone, each frame once and in the order of its episode; threads change nothing; the host may end it. */
#include "train_case.h"

#include <exphil/conditions.h>
#include <exphil/examine.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { EPISODES = 5, HEADS = 3, LOGITS = 12 };

/* What the host adds up, as it would. */
typedef struct sums {
    const exphil_dataset *dataset;
    int64_t frames, exact, changes, exact_change, right[HEADS], next[EPISODES], stop_at;
    double nll[HEADS];
    uint64_t hash;
    bool alone;
} sums;

static double softplus(double x)
{
    return (x > 0 ? x : 0) + log1p(exp(x > 0 ? -x : x));
}

/* log p of a head's value by its logits. */
static double log_p(const exphil_head_spec *head, const double *logits, int32_t value)
{
    double most = logits[0], sum = 0, p = 0;
    if (head->kind == EXPHIL_BERNOULLI) {
        for (int32_t i = 0; i < head->count; i++) p -= softplus(value >> i & 1 ? -logits[i] : logits[i]);
        return p;
    }
    for (int32_t i = 0; i < head->count; i++) most = fmax(most, logits[i]);
    for (int32_t i = 0; i < head->count; i++) sum += exp(logits[i] - most);
    return logits[value] - most - log(sum);
}

static int32_t likeliest(const exphil_head_spec *head, const double *logits)
{
    int32_t best = 0;
    for (int32_t i = 0; i < head->count; i++) {
        if (head->kind == EXPHIL_BERNOULLI)
            best |= (logits[i] > 0) << i;
        else if (logits[i] > logits[best])
            best = i;
    }
    return best;
}

static int32_t add(void *user, const exphil_examined *f)
{
    sums *s = user;
    exphil_episode_info episode = EXPHIL_EPISODE_INFO_INIT;
    int32_t done[HEADS], ids[2];
    float floats[13];
    bool exact = true, change = false;
    if (s->stop_at && s->frames == s->stop_at) return 1;
    assert_int_equal(f->struct_size, sizeof *f);
    assert_int_equal(exphil_dataset_episode(s->dataset, f->episode, &episode, NULL), EXPHIL_OK);
    assert_int_equal(f->frame, episode.first + f->row);
    assert_ok(exphil_dataset_frame(s->dataset, f->frame, floats, ids, NULL, NULL));
    assert_memory_equal(floats, f->floats, sizeof floats);
    assert_memory_equal(ids, f->ids, sizeof ids);
    if (s->next[f->episode]) assert_int_equal(f->row, s->next[f->episode]);
    s->next[f->episode] = f->row + 1;
    assert_ok(exphil_dataset_frame(s->dataset, f->frame + f->delay_frames, NULL, NULL, done, NULL));
    assert_memory_equal(done, f->recorded, sizeof done);
    if (f->row + f->delay_frames > 0) {
        assert_ok(exphil_dataset_frame(s->dataset, f->frame + f->delay_frames - 1, NULL, NULL, done, NULL));
        assert_memory_equal(done, f->before, sizeof done);
    }
    for (int64_t h = 0, first = 0; h < HEADS; h++) {
        const exphil_head_spec *head = &model_case_spec.heads[h];
        double want = log_p(head, f->logits + first, f->recorded[h]);
        assert_true(fabs(f->log_probability[h] - want) <= 1e-9 * (1 + fabs(want)));
        if (!s->alone) assert_int_equal(f->likely[h], likeliest(head, f->logits + first));
        s->nll[h] -= f->log_probability[h];
        s->right[h] += f->likely[h] == f->recorded[h];
        exact &= f->likely[h] == f->recorded[h];
        change |= f->recorded[h] != f->before[h];
        first += head->count;
    }
    s->frames++;
    s->exact += exact;
    s->changes += change;
    s->exact_change += exact && change;
    const uint64_t parts[] = {s->hash, xph_hash(f->logits, LOGITS * sizeof *f->logits),
                              xph_hash(f->likely, HEADS * sizeof *f->likely), (uint64_t)f->frame};
    s->hash = xph_hash(parts, sizeof parts);
    return 0;
}

static sums examined(const exphil_model *model, const exphil_dataset *dataset, int64_t batch, int64_t alone)
{
    exphil_examination how = EXPHIL_EXAMINATION_INIT;
    sums s = {.dataset = dataset, .alone = alone > 0};
    how.see = add;
    how.user = &s;
    how.batch = batch;
    how.alone_most_frames = alone;
    assert_ok(exphil_examine(model, dataset, &how, NULL));
    return s;
}

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * (1 + fabs(want)))) fail_msg("%.17g, not %.17g", got, want);
}

static void check(const char *blocks, int32_t mode, int32_t delay, int32_t heads, int32_t threads)
{
    exphil_context *context = test_context(NULL, NULL, threads);
    exphil_dataset *dataset = train_dataset(context, EPISODES);
    exphil_model_config config = model_case_config(blocks, EXPHIL_TYPE_F32);
    exphil_report report = EXPHIL_REPORT_INIT;
    config.mode = mode;
    config.delay_frames = delay;
    config.heads = heads;
    if (mode == EXPHIL_MODE_WINDOW) config.window_frames = 12;
    exphil_model *model = model_case_create(context, &config);
    report.alone_most_frames = 150;
    assert_ok(exphil_evaluate(model, dataset, NULL, NULL, 0, &report, NULL));
    sums all = examined(model, dataset, 0, 0), alone = examined(model, dataset, 0, 150);
    assert_int_equal(all.frames, report.frames);
    near((double)all.exact / (double)all.frames, report.exact_accuracy);
    assert_int_equal(all.changes, report.change_frames);
    near((double)all.exact_change / (double)all.changes, report.exact_change_accuracy);
    for (int h = 0; h < HEADS; h++) {
        near(all.nll[h] / (double)all.frames, report.head[h].nll);
        near((double)all.right[h] / (double)all.frames, report.head[h].accuracy);
    }
    assert_int_equal(alone.frames, report.alone_frames);
    near((double)alone.exact / (double)alone.frames, report.alone_accuracy);
    near((double)alone.exact_change / (double)alone.changes, report.alone_change_accuracy);
    near((alone.nll[0] + alone.nll[1] + alone.nll[2]) / (double)alone.frames, report.alone_nll);
    exphil_model_destroy(model);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

static void it_shows_what_is_counted(void **state)
{
    static const char *const patterns[] = {EACH_BLOCK ALL_BLOCKS};
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        check(patterns[i], EXPHIL_MODE_CARRY, 0, EXPHIL_HEADS_INDEPENDENT, 2);
        check(patterns[i], EXPHIL_MODE_WINDOW, 2, EXPHIL_HEADS_INDEPENDENT, 1);
    }
    check("gru", EXPHIL_MODE_CARRY, 3, EXPHIL_HEADS_AUTOREGRESSIVE, 3);
}

/* Order and bits: of threads never, of the batch only teacher-forced. */
static void threads_change_nothing(void **state)
{
    uint64_t forced[2], alone[2];
    for (int32_t i = 0; i < 2; i++) {
        exphil_context *context = test_context(NULL, NULL, i ? 4 : 1);
        exphil_dataset *dataset = train_dataset(context, EPISODES);
        exphil_model_config config = model_case_config("mamba lstm", EXPHIL_TYPE_F32);
        exphil_model *model = model_case_create(context, &config);
        forced[i] = examined(model, dataset, 3, 0).hash;
        alone[i] = examined(model, dataset, i ? 2 : 7, 1000000).hash;
        exphil_model_destroy(model);
        exphil_dataset_destroy(dataset);
        exphil_context_destroy(context);
    }
    assert_int_equal(forced[0], forced[1]);
    assert_int_equal(alone[0], alone[1]);
}

/* Of a model of several delays each episode has its own, as it has in the evaluation. */
static void several_delays(void **state)
{
    static const int32_t delays[3] = {0, 2, 5};
    const int32_t chosen = 5, none = 4;
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = train_dataset(context, EPISODES);
    exphil_model_config config = model_case_config("gru", EXPHIL_TYPE_F32);
    exphil_examination how = EXPHIL_EXAMINATION_INIT;
    exphil_report report = EXPHIL_REPORT_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    config.delay_frames = 0;
    config.delays = delays;
    config.delay_count = 3;
    exphil_model *model = model_case_create(context, &config);
    assert_ok(exphil_evaluate(model, dataset, NULL, NULL, 0, &report, NULL));
    sums all = examined(model, dataset, 0, 0);
    assert_int_equal(all.frames, report.frames);
    near((double)all.exact / (double)all.frames, report.exact_accuracy);
    sums s = {.dataset = dataset};
    how.see = add;
    how.user = &s;
    how.delay_frames = &chosen;
    assert_ok(exphil_examine(model, dataset, &how, NULL));
    assert_int_equal(s.frames, report.frames);
    how.delay_frames = &none;
    assert_int_equal(exphil_examine(model, dataset, &how, &error), EXPHIL_E_MISMATCH);
    exphil_model_destroy(model);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

static void the_host_may_end_it(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 2);
    exphil_dataset *dataset = train_dataset(context, EPISODES), *empty = NULL;
    exphil_model_config config = model_case_config("gru", EXPHIL_TYPE_F32);
    exphil_model *model = model_case_create(context, &config);
    exphil_examination how = EXPHIL_EXAMINATION_INIT;
    exphil_dataset_config none = EXPHIL_DATASET_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    for (int64_t alone = 0; alone < 2; alone++) {
        sums s = {.dataset = dataset, .stop_at = 70, .alone = alone > 0};
        how.see = add;
        how.user = &s;
        how.alone_most_frames = alone * 1000;
        assert_int_equal(exphil_examine(model, dataset, &how, &error), EXPHIL_E_CANCELLED);
        assert_says(&error, "cancelled by the host");
        assert_int_equal(s.frames, 70);
    }
    how.alone_most_frames = -1;
    assert_int_equal(exphil_examine(model, dataset, &how, &error), EXPHIL_E_INVALID);
    assert_says(&error, "alone_most_frames is -1");
    how.alone_most_frames = 0;
    how.batch = 5000;
    assert_int_equal(exphil_examine(model, dataset, &how, &error), EXPHIL_E_INVALID);
    assert_says(&error, "batch");
    how.batch = 0;
    how.condition_count = 1;
    assert_int_equal(exphil_examine(model, dataset, &how, &error), EXPHIL_E_INVALID);
    how.condition_count = 0;
    how.see = NULL;
    assert_int_equal(exphil_examine(model, dataset, &how, &error), EXPHIL_E_INVALID);
    assert_says(&error, "see is NULL");
    assert_int_equal(exphil_examine(NULL, dataset, &how, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_examine(model, NULL, &how, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_examine(model, dataset, NULL, &error), EXPHIL_E_INVALID);
    assert_says(&error, "how is NULL");
    how.see = add;
    none.spec = &model_case_spec;
    assert_ok(exphil_dataset_create(context, &none, &empty, NULL));
    assert_int_equal(exphil_examine(model, empty, &how, &error), EXPHIL_E_INVALID);
    assert_says(&error, "dataset is empty");
    exphil_dataset_destroy(empty);
    exphil_model_destroy(model);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

static int32_t look_away(void *user, const exphil_examined *frame)
{
    return 0;
}

/* Wherever memory ends it is said, and nothing is left. */
static void memory_runs_out(void **state)
{
    for (int64_t alone = 0; alone < 2; alone++) {
        test_memory memory;
        test_memory_init(&memory);
        exphil_context *context = test_context(&memory, NULL, 2);
        exphil_dataset *dataset = train_dataset(context, 2);
        exphil_model_config config = model_case_config("gru", EXPHIL_TYPE_F32);
        exphil_model *model = model_case_create(context, &config);
        exphil_examination how = EXPHIL_EXAMINATION_INIT;
        exphil_status status = EXPHIL_E_MEMORY;
        long long tries = 0;
        how.see = look_away;
        how.alone_most_frames = alone * 1000;
        for (; status == EXPHIL_E_MEMORY; tries++) {
            memory.fail_at = atomic_load(&memory.calls) + 1 + tries;
            status = exphil_examine(model, dataset, &how, NULL);
        }
        assert_int_equal(status, EXPHIL_OK);
        assert_true(tries > 10);
        exphil_model_destroy(model);
        exphil_dataset_destroy(dataset);
        exphil_context_destroy(context);
        assert_memory_clean(&memory);
    }
}

/* Where rows of a prefetcher's batch come from, in any order of batches. */
static void batches_name_their_rows(void **state)
{
    for (int32_t mode = EXPHIL_MODE_CARRY; mode <= EXPHIL_MODE_WINDOW; mode++) {
        exphil_context *context = test_context(NULL, NULL, 1);
        exphil_dataset *dataset = train_dataset(context, EPISODES);
        exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
        exphil_prefetcher *prefetcher = NULL;
        exphil_batch batch = EXPHIL_BATCH_INIT;
        float floats[13];
        int64_t padding = 0, seen = 0;
        sampling.mode = mode;
        sampling.batch = 3;
        sampling.time = 16;
        sampling.stride = mode == EXPHIL_MODE_WINDOW ? 5 : 0;
        sampling.delay_frames = 1;
        assert_ok(exphil_prefetcher_create(dataset, &sampling, &prefetcher, NULL));
        while (exphil_prefetcher_next(prefetcher, &batch, NULL) == EXPHIL_OK)
            for (int64_t row = 0; row < batch.batch * batch.time; row++) {
                padding += batch.rows[row] < 0;
                assert_int_equal(batch.rows[row] < 0, batch.mask[row] == 0.0f);
                if (batch.rows[row] < 0) continue;
                assert_ok(exphil_dataset_frame(dataset, batch.rows[row], floats, NULL, NULL, NULL));
                assert_memory_equal(floats, batch.floats + row * 13, sizeof floats);
                seen++;
            }
        assert_true(seen > 100 && padding > 0);
        exphil_prefetcher_destroy(prefetcher);
        exphil_dataset_destroy(dataset);
        exphil_context_destroy(context);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_shows_what_is_counted), cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(several_delays),           cmocka_unit_test(the_host_may_end_it),
        cmocka_unit_test(memory_runs_out),          cmocka_unit_test(batches_name_their_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
