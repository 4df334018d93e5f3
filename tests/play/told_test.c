/* What a session is told beside the frame: it plays as a policy that has the same numbers as ids of its frames, and what it
 * computes is what training saw, for every kind of block, in both modes, for every delay. */
#include "train_case.h"

#include "play_case.h"

#include <exphil/conditions.h>
#include <stdlib.h>

enum { LOGITS = 12, WINDOW = 7, STREAMS = 3, FRAMES = 40, VALUES = 5, WIDTH = 3, LONGEST = 80 };

static const exphil_condition_spec player = {"player", VALUES, WIDTH, 0.25};
static const int32_t delays[3] = {0, 2, 5};

static exphil_model_config config_of(const char *blocks, int32_t mode)
{
    exphil_model_config config = model_case_config(blocks, EXPHIL_TYPE_F32);
    config.mode = mode;
    config.window_frames = mode ? WINDOW : 0;
    config.conditions = &player;
    config.condition_count = 1;
    config.neutral_start = 1;
    return config;
}

/* ---- a condition is an id that the frame does not have ---------------------------------------------------------------- */

static const exphil_id_spec twin_ids[3] = {
    {"stage", 5, 3}, {"own.character", 7, 0}, {"player", VALUES + 1, WIDTH}};

static void copy_weights(const exphil_model *from, exphil_model *to)
{
    exphil_tensor_info a = EXPHIL_TENSOR_INFO_INIT, b = EXPHIL_TENSOR_INFO_INIT;
    for (int64_t i = 0; exphil_model_tensor_info(from, i, &a, NULL) == EXPHIL_OK; i++) {
        void *data = malloc(a.size_bytes);
        assert_ok(exphil_model_tensor_info(to, i, &b, NULL));
        assert_ok(exphil_model_tensor_get(from, a.name, data, a.size_bytes, NULL));
        assert_ok(exphil_model_tensor_set(to, b.name, data, b.size_bytes, NULL));
        free(data);
    }
}

/* The model with the condition, and one with the same weights whose frames have it as their third id. */
typedef struct twins {
    exphil_context *context;
    exphil_spec spec;
    exphil_model *told, *plain;
    play_frames *frames;
    exphil_session *a, *b;
} twins;

static void twins_make(twins *t, const char *blocks, int32_t mode)
{
    exphil_model_config config = config_of(blocks, mode), other = config;
    const int32_t values[1] = {2};
    t->context = test_context(NULL, NULL, 1);
    t->spec = model_case_spec;
    t->spec.ids = twin_ids;
    t->spec.id_count = 3;
    other.spec = &t->spec;
    other.conditions = NULL;
    other.condition_count = 0;
    t->told = play_model(t->context, &config, 0.2);
    t->plain = model_case_create(t->context, &other);
    copy_weights(t->told, t->plain);
    t->frames = play_frames_make(t->told, STREAMS, FRAMES, 4);
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    how.streams = STREAMS;
    t->b = play_session(t->plain, &how);
    how.conditions = values;
    how.condition_count = 1;
    t->a = play_session(t->told, &how);
}

static void twins_free(twins *t)
{
    exphil_session_destroy(t->a);
    exphil_session_destroy(t->b);
    play_frames_free(t->frames);
    exphil_model_destroy(t->told);
    exphil_model_destroy(t->plain);
    exphil_context_destroy(t->context);
}

/* A step of both; value [STREAMS] is what the frames of the other have. */
static void both_step(const twins *t, exphil_session *a, int64_t frame, const int32_t *value)
{
    int32_t ids[STREAMS * 3], one[STREAMS * 3], other[STREAMS * 3];
    float x[STREAMS * LOGITS], y[STREAMS * LOGITS];
    const play_frames *f = t->frames;
    for (int b = 0; b < STREAMS; b++) {
        memcpy(ids + b * 3, f->ids + (frame * STREAMS + b) * 2, 2 * sizeof *ids);
        ids[b * 3 + 2] = value[b];
    }
    play_step(a, f, frame, false, one);
    assert_ok(exphil_session_step_row(t->b, f->floats + frame * STREAMS * 13, ids,
                                      f->noise + frame * STREAMS * LOGITS, other));
    play_logits(a, f, x);
    play_logits(t->b, f, y);
    assert_memory_equal(one, other, sizeof one);
    assert_memory_equal(x, y, sizeof x);
}

/* Values change in the middle of an episode, of one stream or of all, over resets, rollback and clones. */
static void plays_as_its_twin(void **state)
{
    static const char *const blocks[] = {EACH_BLOCK ALL_BLOCKS};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        for (int32_t mode = 0; mode <= 1; mode++) {
            twins t;
            int32_t value[STREAMS] = {2, 2, 2};
            exphil_session *a;
            twins_make(&t, blocks[i], mode);
            a = t.a;
            size_t bytes = exphil_session_state_size(a);
            void *saved = malloc(bytes), *twin = malloc(exphil_session_state_size(t.b));
            for (int64_t frame = 0; frame < FRAMES; frame++) {
                if (frame == 5 || frame == 30) value[1] = (int32_t)(frame % 4);
                if (frame == 5 || frame == 30) assert_ok(exphil_session_conditions_set(a, 1, &value[1], 1));
                if (frame == 9) {
                    const int32_t all = 5;
                    value[0] = value[1] = value[2] = all;
                    assert_ok(exphil_session_conditions_set(a, -1, &all, 1));
                    assert_ok(exphil_session_reset(a, 2));
                    assert_ok(exphil_session_reset(t.b, 2));
                }
                if (frame == 12) {
                    assert_ok(exphil_session_state_save(a, 1, saved, bytes));
                    assert_ok(exphil_session_state_save(t.b, 1, twin, exphil_session_state_size(t.b)));
                }
                if (frame == 15) { /* another value, and back with the state */
                    const int32_t other = 0;
                    assert_ok(exphil_session_conditions_set(a, 1, &other, 1));
                    assert_ok(exphil_session_state_restore(a, 1, saved, bytes));
                    assert_ok(exphil_session_state_restore(t.b, 1, twin, exphil_session_state_size(t.b)));
                }
                if (frame == 20) assert_ok(exphil_session_clone(t.a, &a, NULL));
                both_step(&t, a, frame, value);
            }
            exphil_session_destroy(a);
            free(saved);
            free(twin);
            twins_free(&t);
        }
}

/* The values matter: another one gives other logits. */
static void values_are_seen(void **state)
{
    for (int32_t mode = 0; mode <= 1; mode++) {
        twins t;
        float x[STREAMS * LOGITS];
        int32_t actions[STREAMS * 3];
        const int32_t three = 3;
        twins_make(&t, "gru", mode);
        assert_ok(exphil_session_conditions_set(t.a, 1, &three, 1));
        memcpy(t.frames->floats + 13, t.frames->floats, 13 * sizeof(float));
        memcpy(t.frames->ids + 2, t.frames->ids, 2 * sizeof(int32_t));
        play_step(t.a, t.frames, 0, false, actions);
        play_logits(t.a, t.frames, x);
        assert_memory_not_equal(x, x + LOGITS, LOGITS * sizeof *x);
        twins_free(&t);
    }
}

/* Training: the same batches with the value as an id or as a condition lead to the same weights. */
static void trains_as_its_twin(void **state)
{
    for (int32_t mode = 0; mode <= 1; mode++) {
        twins t;
        twins_make(&t, "mamba gru attention", mode);
        exphil_optimizer *adam[2] = {NULL};
        exphil_trainer *trainer[2] = {NULL};
        exphil_model *model[2] = {t.told, t.plain};
        const int64_t time = mode ? WINDOW : 6, rows = 3 * time;
        exphil_batch batch = train_batch(t.told, 3, time, 1), other;
        int32_t *conditions = malloc((size_t)rows * sizeof *conditions),
                *ids = malloc((size_t)rows * 3 * sizeof *ids);
        for (int64_t r = 0; r < rows; r++) {
            conditions[r] = (int32_t)(r / time * 2);
            memcpy(ids + r * 3, batch.ids + r * 2, 2 * sizeof *ids);
            ids[r * 3 + 2] = conditions[r];
        }
        exphil_batch given = batch;
        given.conditions = conditions;
        other = batch;
        other.ids = ids;
        for (int i = 0; i < 2; i++) {
            assert_ok(exphil_optimizer_create(model[i], NULL, &adam[i], NULL));
            assert_ok(exphil_trainer_create(model[i], adam[i], NULL, NULL, &trainer[i], NULL));
        }
        for (int u = 0; u < 5; u++) {
            exphil_metrics one = EXPHIL_METRICS_INIT, two = EXPHIL_METRICS_INIT;
            assert_ok(exphil_trainer_step_batch(trainer[0], &given, &one, NULL));
            assert_ok(exphil_trainer_step_batch(trainer[1], &other, &two, NULL));
            assert_true(one.loss == two.loss && one.gradient_norm == two.gradient_norm);
        }
        for (int i = 0; i < 2; i++) {
            exphil_trainer_destroy(trainer[i]);
            exphil_optimizer_destroy(adam[i]);
        }
        free(conditions);
        free(ids);
        train_batch_free(&batch);
        twins_free(&t);
    }
}

/* ---- forward over an episode as training sees it ------------------------------------------------------------------------ */

/* Logits of the rows of the first episode, as in start_test.c, with these values and this delay. */
static int64_t forward_logits(exphil_model *model, const exphil_dataset *dataset, const int32_t *value,
                              int32_t delay_id, double *logits)
{
    const xph_model_shape *shape = xph_model_shape_of(model);
    exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
    xph_sampler *sampler = NULL;
    xph_feed feed;
    xph_losses losses;
    const void *packed = NULL;
    int64_t usable = train_episode_frames(0) - shape->delay, windows = 1;
    assert_ok(exphil_model_sampling(model, &sampling, NULL));
    sampling.batch = 1;
    sampling.in_order = 1;
    if (shape->mode == EXPHIL_MODE_CARRY)
        sampling.time = usable;
    else
        windows = usable - WINDOW + 1;
    assert_ok(xph_sampler_create(dataset, &sampling, &sampler, NULL));
    xph_sampler_fix(sampler, value, delay_id);
    assert_ok(xph_losses_take(&model_case_spec, NULL, &losses, NULL));
    assert_ok(xph_feed_create(model, &losses, 1, sampling.time, 1, 0, &feed, NULL));
    assert_ok(xph_model_packed(model, &packed, NULL));
    float *narrow = calloc((size_t)(sampling.time * LOGITS), sizeof *narrow);
    double *wide = calloc((size_t)(sampling.time * LOGITS), sizeof *wide), sums[EXPHIL_HEADS_MAX];
    for (int64_t w = 0; w < windows; w++) {
        exphil_batch batch = EXPHIL_BATCH_INIT;
        assert_ok(xph_sampler_batch(sampler, 0, w, &batch, NULL));
        assert_ok(xph_feed_measure(&feed, xph_model_weights(model), packed, &losses, &batch, sums));
        assert_ok(xph_feed_logits(&feed, narrow, wide));
        int64_t from = w ? sampling.time - 1 : 0;
        memcpy(logits + (w + from) * LOGITS, wide + from * LOGITS,
               (size_t)((sampling.time - from) * LOGITS) * sizeof *wide);
    }
    free(narrow);
    free(wide);
    xph_feed_destroy(&feed);
    xph_sampler_destroy(sampler);
    return usable;
}

/* The same frames played with a delay, what was recorded being what is done; every third frame is played twice, the first
 * time otherwise, and rolled back. */
static bool plays_alike(const exphil_model *model, const int32_t *value, int32_t delay, int64_t frames,
                        const double *logits)
{
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    how.delay_frames = &delay;
    how.conditions = value;
    how.condition_count = 1;
    exphil_session *session = play_session(model, &how);
    size_t bytes = exphil_session_state_size(session);
    void *saved = malloc(bytes);
    bool same = true;
    for (int64_t t = 0; t < frames; t++) {
        float floats[13], elsewhere[13], got[LOGITS];
        int32_t ids[2], other[2], action[3], done[3], due[3];
        train_row(0, t, floats, ids, action);
        train_row(0, t + delay, elsewhere, other, done);
        if (t % 3 == 0) {
            const int32_t wrong = 1;
            assert_ok(exphil_session_state_save(session, 0, saved, bytes));
            assert_ok(exphil_session_conditions_set(session, 0, &wrong, 1));
            assert_ok(exphil_session_step_row(session, elsewhere, ids, NULL, due));
            assert_ok(exphil_session_state_restore(session, 0, saved, bytes));
        }
        assert_ok(exphil_session_step_row(session, floats, ids, NULL, due));
        assert_ok(exphil_session_logits(session, 0, got, LOGITS));
        assert_ok(exphil_session_override(session, 0, done));
        for (int i = 0; i < LOGITS; i++) same &= (double)got[i] == logits[t * LOGITS + i];
        if (delay && t < delay) assert_memory_equal(due, play_neutral, sizeof due);
        if (delay && t >= delay)
            assert_memory_equal(due, action, sizeof due); /* what was overridden is due */
    }
    free(saved);
    exphil_session_destroy(session);
    return same;
}

static void trained_is_played(void **state)
{
    static const char *const blocks[] = {EACH_BLOCK ALL_BLOCKS};
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_dataset *dataset = train_dataset(context, 1);
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        for (int variant = 0; variant < 4; variant++) {
            exphil_model_config config = config_of(blocks[i], variant % 2);
            config.no_previous_action = variant / 2;
            config.delay_frames = 0;
            config.delays = delays;
            config.delay_count = 3;
            exphil_model *model = play_model(context, &config, 0.2);
            for (int32_t id = 1; id <= 3; id++) {
                double logits[LONGEST * LOGITS];
                const int32_t value = id + 1, another = 0;
                int64_t frames = forward_logits(model, dataset, &value, id, logits);
                if (!plays_alike(model, &value, delays[id - 1], frames, logits))
                    fail_msg("%s, mode %d, delay %d: others", blocks[i], variant % 2, delays[id - 1]);
                assert_false(plays_alike(model, &another, delays[id - 1], frames, logits));
                assert_false(plays_alike(model, &value, delays[id % 3], frames - 5, logits));
            }
            exphil_model_destroy(model);
        }
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

/* ---- refusals ------------------------------------------------------------------------------------------------------------ */

static void refused(const exphil_model *model, const exphil_session_config *how, exphil_status status,
                    const char *words)
{
    exphil_session *session = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(exphil_session_create(model, how, &session, &error), status);
    assert_null(session);
    assert_says(&error, words);
}

static void a_value_stands_once(exphil_session *session, unsigned char *saved, size_t bytes)
{
    int damaged = 0; /* a value that is none stands where the condition is kept */
    for (size_t at = 0; at + 4 <= bytes; at += 4) {
        const int32_t bad = 6;
        int32_t kept;
        memcpy(&kept, saved + at, 4);
        memcpy(saved + at, &bad, 4);
        if (exphil_session_state_restore(session, 0, saved, bytes) == EXPHIL_E_FORMAT) {
            exphil_error error = EXPHIL_ERROR_INIT;
            (void)exphil_session_error(session, &error);
            damaged += strstr(error.message, "condition player is out of range") != NULL;
        }
        memcpy(saved + at, &kept, 4);
    }
    assert_int_equal(damaged, 1);
}

static void wrong_settings_are_refused(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_model_config config = config_of("gru", EXPHIL_MODE_CARRY);
    config.delay_frames = 0;
    config.delays = delays;
    config.delay_count = 3;
    exphil_model *model = play_model(context, &config, 0.2);
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    int32_t delay = 3, value[2] = {6, 0};
    refused(model, &how, EXPHIL_E_INVALID, "needs to know which of 0, 2, 5 it is");
    refused(model, NULL, EXPHIL_E_INVALID, "delay_frames is NULL");
    how.delay_frames = &delay;
    refused(model, &how, EXPHIL_E_MISMATCH, "delay_frames is 3, the model was trained with 0, 2, 5");
    delay = 2;
    how.conditions = value;
    refused(model, &how, EXPHIL_E_INVALID, "condition_count is 0, the model has 1");
    how.condition_count = 1;
    refused(model, &how, EXPHIL_E_INVALID, "conditions[0] player is 6, outside 0..5");
    how.conditions = NULL;
    refused(model, &how, EXPHIL_E_INVALID, "conditions is NULL");
    how.condition_count = 0;
    exphil_session *session = play_session(model, &how), *other;
    value[0] = 1;
    assert_int_equal(exphil_session_conditions_set(session, 0, value, 2), EXPHIL_E_INVALID);
    play_says(session, EXPHIL_E_INVALID, "condition_count is 2, the model has 1");
    assert_int_equal(exphil_session_conditions_set(session, 0, NULL, 1), EXPHIL_E_INVALID);
    play_says(session, EXPHIL_E_INVALID, "values is NULL");
    assert_int_equal(exphil_session_conditions_set(session, 1, value, 1), EXPHIL_E_INVALID);
    play_says(session, EXPHIL_E_INVALID, "stream is 1");
    value[0] = -1;
    assert_int_equal(exphil_session_conditions_set(session, -1, value, 1), EXPHIL_E_INVALID);
    play_says(session, EXPHIL_E_INVALID, "conditions[0] player is -1, outside 0..5");
    assert_int_equal(exphil_session_conditions_set(NULL, 0, value, 1), EXPHIL_E_INVALID);
    delay = 5; /* a state is of one delay */
    other = play_session(model, &how);
    size_t bytes = exphil_session_state_size(session);
    unsigned char *saved = malloc(bytes);
    assert_int_equal(exphil_session_state_size(other), bytes);
    assert_ok(exphil_session_state_save(session, 0, saved, bytes));
    assert_int_equal(exphil_session_state_restore(other, 0, saved, bytes), EXPHIL_E_MISMATCH);
    a_value_stands_once(session, saved, bytes);
    free(saved);
    exphil_session_destroy(session);
    exphil_session_destroy(other);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plays_as_its_twin),          cmocka_unit_test(values_are_seen),
        cmocka_unit_test(trains_as_its_twin),         cmocka_unit_test(trained_is_played),
        cmocka_unit_test(wrong_settings_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
