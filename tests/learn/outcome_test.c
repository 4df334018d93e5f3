/* Outcome-weighted imitation: returns are those of whole games, with delays, splits and games that were cut off; plain weights are
 * plain imitation; better rows count more, and the control's do not; the value is learnt; an evaluation tells how much of what came
 * it leaves unexplained; what is wrong is refused. */
#include "model_case.h"

#include <exphil/learn.h>

#include <math.h>
#include <stdlib.h>

enum { FRAMES = 400, GAMES = 6 };

typedef struct bench {
    exphil_context *context;
    exphil_dataset *dataset;
    float rewards[GAMES][FRAMES];
    int32_t actions[GAMES][FRAMES][3];
} bench;

/* Whoever plays moves at random; class 2 of the first stick is rewarded two frames later. */
static void bench_make(bench *b)
{
    exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT;
    xph_rng rng = {.seed = 3, .stream = XPH_RNG_TEST};
    static float floats[FRAMES][13];
    static int32_t ids[FRAMES][2];
    memset(b, 0, sizeof *b);
    b->context = test_context(NULL, NULL, 1);
    config.spec = &model_case_spec;
    assert_ok(exphil_dataset_create(b->context, &config, &b->dataset, NULL));
    for (int g = 0; g < GAMES; g++) {
        for (int f = 0; f < FRAMES; f++) {
            for (int i = 0; i < 13; i++) floats[f][i] = (float)model_case_uniform(&rng, -1.0, 1.0);
            ids[f][0] = (int32_t)xph_rng_below(&rng, 5);
            ids[f][1] = (int32_t)xph_rng_below(&rng, 7);
            b->actions[g][f][0] = (int32_t)xph_rng_below(&rng, 8);
            b->actions[g][f][1] = (int32_t)xph_rng_below(&rng, 5);
            b->actions[g][f][2] = (int32_t)xph_rng_below(&rng, 4);
            b->rewards[g][f] = f >= 2 && b->actions[g][f - 2][1] == 2 ? 1.0f : 0.0f;
        }
        assert_ok(exphil_dataset_add_rows(b->dataset, (uint64_t)g + 1, FRAMES, floats[0], ids[0],
                                          b->actions[g][0], NULL));
    }
}

static void bench_free(bench *b)
{
    exphil_dataset_destroy(b->dataset);
    exphil_context_destroy(b->context);
}

static void give_rewards(bench *b, int32_t over, double half_life)
{
    for (int g = 0; g < GAMES; g++)
        assert_ok(exphil_dataset_rewards_set(b->dataset, (uint64_t)g + 1, 0, 0, b->rewards[g], FRAMES, over,
                                             half_life, NULL));
}

/* Of frame f of a game by hand; NAN where it is not known. */
static double by_hand(const bench *b, int g, int64_t f, int32_t over, double half_life)
{
    double sum = 0.0, gamma = pow(0.5, 1.0 / half_life);
    if (f >= FRAMES) return (double)NAN;
    if (!over && pow(gamma, (double)(FRAMES - f)) > 1.0 / 64.0) return (double)NAN;
    for (int64_t k = FRAMES - 1; k >= f; k--) sum = (double)b->rewards[g][k] + gamma * sum;
    return sum;
}

static void check_batches(const bench *b, const exphil_dataset *dataset, int32_t delay, int32_t over,
                          double half_life)
{
    exphil_sampling how = EXPHIL_SAMPLING_INIT;
    exphil_prefetcher *prefetcher = NULL;
    exphil_batch batch = EXPHIL_BATCH_INIT;
    exphil_status status;
    int64_t known = 0, unknown = 0;
    how.batch = 3;
    how.time = 32;
    how.delay_frames = delay;
    how.neutral_start = 1;
    assert_ok(exphil_prefetcher_create(dataset, &how, &prefetcher, NULL));
    while ((status = exphil_prefetcher_next(prefetcher, &batch, NULL)) == EXPHIL_OK)
        for (int64_t row = 0; row < batch.batch * batch.time; row++) {
            float found = batch.returns[row];
            if (batch.rows[row] < 0) {
                assert_true(isnan(found));
                continue;
            }
            exphil_episode_info info = EXPHIL_EPISODE_INFO_INIT;
            int64_t frame = batch.rows[row], episode = 0;
            for (; exphil_dataset_episode(dataset, episode, &info, NULL) >= 0; episode++)
                if (frame < info.frames)
                    break;
                else
                    frame -= info.frames;
            double wanted = by_hand(b, (int)info.game - 1, frame + delay, over, half_life);
            known += !isnan(wanted);
            unknown += isnan(wanted) != 0;
            assert_true(isnan(wanted) ? isnan(found)
                                      : fabs((double)found - wanted) < 1e-5 * (1.0 + fabs(wanted)));
        }
    assert_int_equal(status, EXPHIL_END);
    assert_true(known > 500 && (over ? unknown == 0 : unknown > 0));
    exphil_prefetcher_destroy(prefetcher);
}

static void returns_are_of_whole_games(void **unused)
{
    bench b;
    exphil_split_config config = EXPHIL_SPLIT_CONFIG_INIT;
    exphil_dataset *kept = NULL, *held = NULL;
    bench_make(&b);
    give_rewards(&b, 1, 20.0);
    check_batches(&b, b.dataset, 0, 1, 20.0);
    check_batches(&b, b.dataset, 5, 1, 20.0);
    config.held_out = 0.34;
    config.by = EXPHIL_SPLIT_GAME;
    assert_ok(exphil_dataset_split(b.dataset, &config, &kept, &held, NULL));
    give_rewards(&b, 0, 7.0); /* replaces; a split keeps what it had */
    check_batches(&b, kept, 2, 1, 20.0);
    check_batches(&b, b.dataset, 0, 0, 7.0);
    check_batches(&b, b.dataset, 3, 0, 7.0);
    exphil_dataset_destroy(kept);
    exphil_dataset_destroy(held);
    bench_free(&b);
}

typedef struct course {
    exphil_model *model;
    exphil_prefetcher *prefetcher;
    exphil_optimizer *optimizer;
    exphil_trainer *trainer;
} course;

static course decaying_course(const bench *b, int32_t value, double decay)
{
    course c;
    exphil_model_config config = model_case_config("gru", EXPHIL_TYPE_F32);
    exphil_sampling how = EXPHIL_SAMPLING_INIT;
    exphil_optimizer_config adam = EXPHIL_OPTIMIZER_CONFIG_INIT;
    config.value = value;
    config.no_previous_action = 1;
    config.neutral_start = 1;
    c.model = model_case_create(b->context, &config);
    assert_ok(exphil_model_sampling(c.model, &how, NULL));
    how.batch = 4;
    how.time = 25;
    adam.rate = 0.01;
    adam.decay = decay;
    assert_ok(exphil_prefetcher_create(b->dataset, &how, &c.prefetcher, NULL));
    assert_ok(exphil_optimizer_create(c.model, &adam, &c.optimizer, NULL));
    assert_ok(exphil_trainer_create(c.model, c.optimizer, c.prefetcher, NULL, &c.trainer, NULL));
    return c;
}

static course course_make(const bench *b, int32_t value)
{
    return decaying_course(b, value, 0.0);
}

static void course_free(course *c)
{
    exphil_trainer_destroy(c->trainer);
    exphil_optimizer_destroy(c->optimizer);
    exphil_prefetcher_destroy(c->prefetcher);
    exphil_model_destroy(c->model);
}

static uint64_t hash_of(const course *c)
{
    exphil_model *model = NULL;
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    assert_ok(exphil_trainer_model(c->trainer, EXPHIL_WEIGHTS, &model, NULL));
    assert_ok(exphil_model_query(model, &info, NULL));
    exphil_model_destroy(model);
    return info.weights_hash;
}

/* With all rows alike the losses of both ways of one update are the same, nearly: sums are made in another order. */
static void plain_weights_are_plain_imitation(void **unused)
{
    bench b;
    bench_make(&b);
    give_rewards(&b, 1, 20.0);
    course one = course_make(&b, EXPHIL_VALUE_DETACHED), other = course_make(&b, EXPHIL_VALUE_DETACHED);
    for (int i = 0; i < 20; i++) {
        exphil_metrics plain = EXPHIL_METRICS_INIT;
        exphil_outcome_metrics m = EXPHIL_OUTCOME_METRICS_INIT;
        assert_ok(exphil_trainer_step(one.trainer, &plain, NULL));
        assert_ok(exphil_trainer_step_outcome(other.trainer, NULL, &m, NULL));
        assert_int_equal(m.update, i + 1);
        assert_true(m.known == 100 && m.effective == 1.0 && m.clipped == 0.0);
        /* the library's objective is a mean over bits; this is their sum */
        assert_true(m.nll > plain.loss && isfinite(m.value_loss));
    }
    course_free(&one);
    course_free(&other);
    bench_free(&b);
}

/* Log-probability of class 2, which is worth something, after training. */
static double liking(const bench *b, const course *c)
{
    exphil_model *model = NULL;
    exphil_session *session = NULL;
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    double sum = 0.0;
    int32_t action[3], ids[2] = {1, 1};
    float floats[13] = {0.1f}, logits[12];
    assert_ok(exphil_trainer_model(c->trainer, EXPHIL_WEIGHTS, &model, NULL));
    assert_ok(exphil_session_create(model, &config, &session, NULL));
    for (int f = 0; f < 60; f++) {
        double mass = 0.0;
        for (int i = 0; i < 13; i++) floats[i] = (float)((f * 7 + i * 3) % 11) / 11.0f - 0.5f;
        assert_ok(exphil_session_step_row(session, floats, ids, NULL, action));
        assert_ok(exphil_session_logits(session, 0, logits, 12));
        for (int k = 0; k < 5; k++) mass += exp((double)logits[3 + k]);
        sum += exp((double)logits[5]) / mass / 60.0;
    }
    (void)b;
    exphil_session_destroy(session);
    exphil_model_destroy(model);
    return sum;
}

static void better_rows_count_more(void **unused)
{
    bench b;
    double found[3];
    uint64_t hashes[2];
    bench_make(&b);
    give_rewards(&b, 1, 2.0);
    for (int k = 0; k < 4; k++) {
        exphil_outcome_config config = EXPHIL_OUTCOME_CONFIG_INIT;
        exphil_outcome_metrics m = EXPHIL_OUTCOME_METRICS_INIT;
        double effective = 0.0;
        config.beta = k == 1 ? 0.0 : 0.3;
        config.warm_up = 10;
        config.shuffle = k == 2;
        course c = course_make(&b, EXPHIL_VALUE_SHARED);
        for (int i = 0; i < 150; i++) {
            assert_ok(exphil_trainer_step_outcome(c.trainer, &config, &m, NULL));
            if (i < 10) assert_true(m.effective == 1.0);
            effective += m.effective / 150.0;
        }
        if (k < 3) found[k] = liking(&b, &c);
        if (k == 0 || k == 3) hashes[k / 3] = hash_of(&c);
        if (k == 1 ? fabs(effective - 1.0) > 1e-9 : !(effective > 0.2 && effective < 0.95))
            fail_msg("run %d: an effective share of %g", k, effective);
        course_free(&c);
    }
    assert_true(hashes[0] == hashes[1]); /* the same run twice */
    if (!(found[0] > found[1] + 0.05 && found[0] > found[2] + 0.05))
        fail_msg("weighted %g, plain %g, shuffled %g", found[0], found[1], found[2]);
    bench_free(&b);
}

static void the_value_is_learnt_alone(void **unused)
{
    bench b;
    bench_make(&b);
    give_rewards(&b, 1, 3.0);
    exphil_outcome_config config = EXPHIL_OUTCOME_CONFIG_INIT;
    exphil_outcome_metrics m = EXPHIL_OUTCOME_METRICS_INIT;
    config.imitation = -1.0;
    course c = course_make(&b, EXPHIL_VALUE_DETACHED);
    double before = liking(&b, &c), first = 0.0, last = 0.0;
    for (int i = 0; i < 300; i++) {
        assert_ok(exphil_trainer_step_outcome(c.trainer, &config, &m, NULL));
        if (i < 10) first += m.value_loss;
        if (i >= 290) last += m.value_loss;
    }
    assert_true(last < 0.5 * first && m.unexplained > 0.0);
    assert_true(liking(&b, &c) == before); /* the policy is as it was */
    course_free(&c);
    bench_free(&b);
}

/* The same by a session, game by game. */
static void by_session(const bench *b, const course *c, int32_t over, double half_life, exphil_report *told)
{
    exphil_model *model = NULL;
    exphil_session *session = NULL;
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    double misses = 0.0, sum = 0.0, squares = 0.0;
    int32_t action[3], ids[2];
    float floats[13], value;
    assert_ok(exphil_trainer_model(c->trainer, EXPHIL_WEIGHTS, &model, NULL));
    assert_ok(exphil_model_query(model, &info, NULL));
    assert_ok(exphil_session_create(model, NULL, &session, NULL));
    *told = (exphil_report)EXPHIL_REPORT_INIT;
    for (int64_t row = 0; row < (int64_t)GAMES * FRAMES; row++) {
        double came = by_hand(b, (int)(row / FRAMES), row % FRAMES + info.delay_frames, over, half_life);
        if (row % FRAMES == 0) assert_ok(exphil_session_reset(session, -1));
        assert_ok(exphil_dataset_rows(b->dataset, row, 1, floats, ids, NULL, NULL, NULL));
        assert_ok(exphil_session_step_row(session, floats, ids, NULL, action));
        assert_ok(exphil_session_value(session, 0, &value));
        if (row % FRAMES + info.delay_frames < FRAMES) /* its past actions are the recorded ones */
            assert_ok(exphil_session_override(session, 0,
                                              b->actions[row / FRAMES][row % FRAMES + info.delay_frames]));
        if (isnan(came)) continue;
        told->value_frames++;
        misses += ((double)value - came) * ((double)value - came);
        sum += came;
        squares += came * came;
    }
    double count = (double)told->value_frames;
    told->value_loss = misses / count;
    told->unexplained = told->value_loss / (squares / count - sum / count * sum / count);
    exphil_session_destroy(session);
    exphil_model_destroy(model);
}

static void an_evaluation_tells_what_is_unexplained(void **unused)
{
    bench b;
    bench_make(&b);
    exphil_outcome_config config = EXPHIL_OUTCOME_CONFIG_INIT;
    exphil_report told = EXPHIL_REPORT_INIT, wanted;
    course none = course_make(&b, EXPHIL_VALUE_NONE), c = course_make(&b, EXPHIL_VALUE_DETACHED);
    assert_ok(exphil_trainer_evaluate(c.trainer, EXPHIL_WEIGHTS, b.dataset, NULL, &told, NULL));
    assert_true(told.value_frames == 0 && told.value_loss == 0.0 && told.unexplained == 0.0); /* no rewards */
    course_free(&c);
    for (int32_t over = 0; over < 2; over++) {
        give_rewards(&b, over, 3.3);
        c = course_make(&b, EXPHIL_VALUE_DETACHED);
        for (int i = 0; i < 100; i++) assert_ok(exphil_trainer_step_outcome(c.trainer, &config, NULL, NULL));
        assert_ok(exphil_trainer_evaluate(c.trainer, EXPHIL_WEIGHTS, b.dataset, NULL, &told, NULL));
        by_session(&b, &c, over, 3.3, &wanted);
        assert_int_equal(told.value_frames, wanted.value_frames);
        assert_true(over ? told.value_frames == told.frames : told.value_frames < told.frames);
        assert_true(fabs(told.value_loss - wanted.value_loss) < 1e-5 * wanted.value_loss);
        assert_true(fabs(told.unexplained - wanted.unexplained) < 1e-5 * wanted.unexplained);
        assert_true(told.unexplained > 0.0 && told.unexplained < 1.0);
        course_free(&c);
    }
    assert_ok(exphil_trainer_evaluate(none.trainer, EXPHIL_WEIGHTS, b.dataset, NULL, &told, NULL));
    assert_true(told.value_frames == 0 && told.unexplained == 0.0); /* no head */
    course_free(&none);
    bench_free(&b);
}

static void what_is_wrong_is_refused(void **unused)
{
    bench b;
    bench_make(&b);
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_outcome_config config = EXPHIL_OUTCOME_CONFIG_INIT;
    float rewards[3] = {1.0f, NAN, 0.0f};
    assert_int_equal(exphil_dataset_rewards_set(NULL, 1, 0, 0, rewards, 3, 1, 10.0, &error),
                     EXPHIL_E_INVALID);
    assert_int_equal(exphil_dataset_rewards_set(b.dataset, 1, 0, 0, rewards, 3, 1, 10.0, &error),
                     EXPHIL_E_NUMERIC);
    assert_non_null(strstr(error.message, "rewards[1]"));
    assert_int_equal(exphil_dataset_rewards_set(b.dataset, 1, 7, 0, rewards, 1, 1, 10.0, &error),
                     EXPHIL_E_INVALID);
    assert_int_equal(exphil_dataset_rewards_set(b.dataset, 1, 0, 0, rewards, 0, 1, 10.0, &error),
                     EXPHIL_E_INVALID);
    assert_int_equal(exphil_dataset_rewards_set(b.dataset, 1, 0, 0, NULL, 1, 1, 10.0, &error),
                     EXPHIL_E_INVALID);
    assert_int_equal(exphil_dataset_rewards_set(b.dataset, 1, 0, 0, rewards, 1, 2, 10.0, &error),
                     EXPHIL_E_INVALID);
    assert_int_equal(exphil_dataset_rewards_set(b.dataset, 1, 0, 0, rewards, 1, 1, 0.0, &error),
                     EXPHIL_E_INVALID);
    course none = course_make(&b, EXPHIL_VALUE_NONE), c = course_make(&b, EXPHIL_VALUE_SHARED);
    assert_int_equal(exphil_trainer_step_outcome(NULL, NULL, NULL, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_trainer_step_outcome(none.trainer, NULL, NULL, &error), EXPHIL_E_INVALID);
    assert_non_null(strstr(error.message, "value head"));
    config.beta = -1.0;
    assert_int_equal(exphil_trainer_step_outcome(c.trainer, &config, NULL, &error), EXPHIL_E_INVALID);
    assert_non_null(strstr(error.message, "beta"));
    /* no rewards: plain imitation, and nothing is known */
    exphil_outcome_metrics m = EXPHIL_OUTCOME_METRICS_INIT;
    config.beta = 1.0;
    assert_ok(exphil_trainer_step_outcome(c.trainer, &config, &m, &error));
    assert_true(m.known == 0 && m.value_loss == 0.0 && m.nll > 0.0);
    /* the value alone: decay would move the policy */
    course d = decaying_course(&b, EXPHIL_VALUE_DETACHED, 0.1);
    config.imitation = -1.0;
    assert_int_equal(exphil_trainer_step_outcome(d.trainer, &config, NULL, &error), EXPHIL_E_UNSUPPORTED);
    assert_non_null(strstr(error.message, "decay"));
    config.imitation = 0.5;
    assert_ok(exphil_trainer_step_outcome(d.trainer, &config, NULL, &error));
    course_free(&d);
    course_free(&none);
    course_free(&c);
    bench_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(returns_are_of_whole_games),
        cmocka_unit_test(plain_weights_are_plain_imitation),
        cmocka_unit_test(better_rows_count_more),
        cmocka_unit_test(the_value_is_learnt_alone),
        cmocka_unit_test(an_evaluation_tells_what_is_unexplained),
        cmocka_unit_test(what_is_wrong_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
