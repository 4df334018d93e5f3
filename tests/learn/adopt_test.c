/* New weights for a session that plays on: they enter between two frames with the state kept, a rollback across the adoption
 * finds the weights of its frame, what is wrong is refused, and the call is quiet. */
#include "learn_case.h"
#include "traps.h"

#include <stdlib.h>

enum { STREAMS = 3, FRAMES = 240, BACK = 9, GENERATIONS = 9, ROLLBACKS = 1000, ACTIONS = 3 * STREAMS };

typedef struct game {
    float floats[13 * STREAMS];
    int32_t ids[2 * STREAMS];
} game;

typedef struct bench {
    test_memory memory;
    exphil_context *context;
    exphil_model *model[GENERATIONS];
    game row[FRAMES];
} bench;

/* Generations are the same model with other weights. */
static bench *bench_make(const char *blocks, int32_t mode)
{
    bench *b = calloc(1, sizeof *b);
    xph_rng rng = {.seed = 12, .stream = XPH_RNG_TEST};
    test_memory_init(&b->memory);
    b->context = test_context(&b->memory, NULL, 1);
    for (int g = 0; g < GENERATIONS; g++) {
        exphil_model_config config = model_case_config(blocks, EXPHIL_TYPE_F32);
        config.mode = mode;
        config.value = EXPHIL_VALUE_SHARED;
        config.seed = (uint64_t)g;
        b->model[g] = model_case_create(b->context, &config);
        assert_ok(exphil_model_prepare(b->model[g], NULL));
    }
    for (int f = 0; f < FRAMES; f++)
        for (int s = 0; s < STREAMS; s++) {
            for (int i = 0; i < 13; i++)
                b->row[f].floats[13 * s + i] = (float)model_case_uniform(&rng, -1.0, 1.0);
            b->row[f].ids[2 * s] = (int32_t)xph_rng_below(&rng, 5);
            b->row[f].ids[2 * s + 1] = (int32_t)xph_rng_below(&rng, 7);
        }
    return b;
}

static void bench_free(bench *b)
{
    for (int g = 0; g < GENERATIONS; g++) exphil_model_destroy(b->model[g]);
    exphil_context_destroy(b->context);
    assert_memory_clean(&b->memory);
    free(b);
}

static exphil_session *play(const exphil_model *model, int32_t adoptable)
{
    exphil_session *session = NULL;
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    config.streams = STREAMS;
    config.seed = 4;
    config.adoptable = adoptable;
    assert_ok(exphil_session_create(model, &config, &session, NULL));
    return session;
}

static bool adopt(exphil_session *session, const exphil_model *model)
{
    exphil_model *before = NULL;
    exphil_status status = exphil_session_adopt(session, model, &before);
    exphil_model_destroy(before);
    return status == EXPHIL_OK;
}

static bool step(exphil_session *session, const bench *b, int f, int32_t *actions)
{
    return exphil_session_step_row(session, b->row[f].floats, b->row[f].ids, NULL, actions) == EXPHIL_OK;
}

/* ---- tests --------------------------------------------------------------------------------------------------------- */

/* Frames from 20 on are those of a session that only knows the new weights and begins with the state of frame 20. */
static void the_state_is_kept(void **unused)
{
    static const char *const patterns[] = {EACH_OF_SOME "mamba attention gru mlp ffn"};
    for (size_t k = 0; k < sizeof patterns / sizeof patterns[0]; k++) {
        bench *b = bench_make(patterns[k], EXPHIL_MODE_CARRY);
        exphil_session *one = play(b->model[0], 1), *other = play(b->model[1], 1);
        int32_t mine[ACTIONS], its[ACTIONS];
        size_t bytes = exphil_session_state_size(one);
        void *state = malloc(bytes);
        for (int f = 0; f < 20; f++) assert_true(step(one, b, f, mine));
        for (int s = 0; s < STREAMS; s++) {
            assert_ok(exphil_session_state_save(one, s, state, bytes));
            assert_ok(exphil_session_state_restore(other, s, state, bytes));
        }
        assert_true(adopt(one, b->model[1]));
        for (int f = 20; f < 60; f++) {
            assert_true(step(one, b, f, mine) && step(other, b, f, its));
            assert_memory_equal(mine, its, sizeof mine);
            for (int s = 0; s < STREAMS; s++) {
                float logits[2][12];
                assert_ok(exphil_session_logits(one, s, logits[0], 12));
                assert_ok(exphil_session_logits(other, s, logits[1], 12));
                assert_memory_equal(logits[0], logits[1], sizeof logits[0]);
            }
        }
        free(state);
        exphil_session_destroy(one);
        exphil_session_destroy(other);
        bench_free(b);
    }
}

/* A run of FRAMES with an adoption every now and then, in which streams are taken back again and again. */
typedef struct rollback_run {
    const bench *b;
    exphil_session *session;
    unsigned char *kept; /* [FRAMES, STREAMS, bytes] before each frame */
    size_t bytes;
    int32_t actions[FRAMES][ACTIONS];
    float values[FRAMES][STREAMS];
    int generation;
} rollback_run;

static unsigned char *kept(const rollback_run *r, int frame, int stream)
{
    return r->kept + (size_t)(frame * STREAMS + stream) * r->bytes;
}

static bool keep(rollback_run *r, int frame)
{
    bool fine = true;
    for (int s = 0; s < STREAMS; s++)
        fine &= exphil_session_state_save(r->session, s, kept(r, frame, s), r->bytes) == EXPHIL_OK;
    return fine;
}

static bool back_to(rollback_run *r, int frame)
{
    bool fine = true;
    for (int s = 0; s < STREAMS; s++)
        fine &= exphil_session_state_restore(r->session, s, kept(r, frame, s), r->bytes) == EXPHIL_OK;
    return fine;
}

/* Frames that were played before come out as they did. */
static bool frame(rollback_run *r, int f, bool again)
{
    int32_t actions[ACTIONS];
    float value;
    bool fine = keep(r, f) && step(r->session, r->b, f, actions);
    if (again) fine &= memcmp(actions, r->actions[f], sizeof actions) == 0;
    memcpy(r->actions[f], actions, sizeof actions);
    for (int s = 0; s < STREAMS; s++) {
        fine &= exphil_session_value(r->session, s, &value) == EXPHIL_OK;
        if (again) fine &= memcmp(&value, &r->values[f][s], sizeof value) == 0;
        r->values[f][s] = value;
    }
    return fine;
}

static bool rollbacks(rollback_run *r, int count)
{
    xph_rng rng = {.seed = 7, .stream = XPH_RNG_TEST};
    bool fine = true;
    for (int done = 0, f = 0; fine && f < FRAMES; f++) {
        if (f % 30 == 15) {
            r->generation++;
            fine &= adopt(r->session, r->b->model[r->generation]);
        }
        fine &= frame(r, f, false);
        for (int k = 0; fine && k < (count + FRAMES - 1) / FRAMES && done < count; k++, done++) {
            int back = 1 + (int)xph_rng_below(&rng, BACK), from = f + 1 > back ? f + 1 - back : 0;
            fine &= back_to(r, from);
            for (int g = from; fine && g <= f; g++) fine &= frame(r, g, true);
        }
    }
    return fine;
}

static rollback_run *run_make(const bench *b)
{
    rollback_run *r = calloc(1, sizeof *r);
    r->b = b;
    r->session = play(b->model[0], 1);
    r->bytes = exphil_session_state_size(r->session);
    r->kept = calloc(FRAMES * STREAMS, r->bytes);
    return r;
}

static void run_free(rollback_run *r)
{
    exphil_session_destroy(r->session);
    free(r->kept);
    free(r);
}

static void a_rollback_finds_the_weights_of_its_frame(void **unused)
{
    static const char *const patterns[] = {"gru attention", "mamba*2", "lstm"};
    for (int k = 0; k < 4; k++) {
        bench *b = bench_make(patterns[k % 3], k == 3 ? EXPHIL_MODE_WINDOW : EXPHIL_MODE_CARRY);
        rollback_run *straight = run_make(b), *back = run_make(b);
        assert_true(rollbacks(straight, 0));
        assert_true(rollbacks(back, ROLLBACKS));
        assert_int_equal(back->generation, GENERATIONS - 1);
        assert_memory_equal(straight->actions, back->actions, sizeof back->actions);
        assert_memory_equal(straight->values, back->values, sizeof back->values);
        run_free(straight);
        run_free(back);
        bench_free(b);
    }
}

static void nothing_is_allocated_or_locked(void **unused)
{
    bench *b = bench_make("mamba gru", EXPHIL_MODE_CARRY);
    rollback_run *r = run_make(b);
    long long before[] = {atomic_load(&b->memory.calls), atomic_load(&trap_locks),
                          atomic_load(&trap_mallocs)};
    bool fine = rollbacks(r, ROLLBACKS);
    long long after[] = {atomic_load(&b->memory.calls), atomic_load(&trap_locks), atomic_load(&trap_mallocs)};
    assert_true(fine);
    assert_memory_equal(before, after, sizeof before);
    run_free(r);
    bench_free(b);
}

/* Old weights are kept for one adoption, then they are the caller's; a clone has both. */
static void weights_come_back(void **unused)
{
    bench *b = bench_make("gru", EXPHIL_MODE_CARRY);
    exphil_session *session = play(b->model[0], 1), *clone = NULL;
    exphil_session_info info = EXPHIL_SESSION_INFO_INIT;
    exphil_model_info first = EXPHIL_MODEL_INFO_INIT, third = EXPHIL_MODEL_INFO_INIT;
    exphil_model *before = b->model[5];
    size_t bytes = exphil_session_state_size(session);
    void *early = malloc(bytes), *late = malloc(bytes);
    int32_t mine[ACTIONS], its[ACTIONS];
    assert_ok(exphil_model_query(b->model[0], &first, NULL));
    assert_ok(exphil_model_query(b->model[2], &third, NULL));
    assert_ok(exphil_session_state_save(session, 0, early, bytes));
    assert_ok(exphil_session_adopt(session, b->model[1], &before));
    assert_null(before);
    assert_true(step(session, b, 0, mine));
    assert_ok(exphil_session_state_save(session, 0, late, bytes));
    assert_ok(exphil_session_adopt(session, b->model[2], &before));
    assert_ptr_equal(before, b->model[0]);
    exphil_model_destroy(before);
    assert_ok(exphil_session_query(session, &info, NULL));
    assert_true(info.adoptions == 2 && info.weights_hash == third.weights_hash);
    assert_int_equal(info.state_bytes, bytes);
    /* the first weights are gone: their state goes on with the newest; the second are there */
    assert_ok(exphil_session_state_restore(session, 0, early, bytes));
    assert_ok(exphil_session_query(session, &info, NULL));
    assert_true(info.weights_hash == third.weights_hash && first.weights_hash != third.weights_hash);
    assert_ok(exphil_session_state_restore(session, 0, late, bytes));
    assert_ok(exphil_session_clone(session, &clone, NULL));
    for (int f = 1; f < 9; f++) {
        assert_true(step(session, b, f, mine) && step(clone, b, f, its));
        assert_memory_equal(mine, its, sizeof mine);
    }
    exphil_session_destroy(clone);
    exphil_session_destroy(session);
    free(early);
    free(late);
    bench_free(b);
}

static void what_is_wrong_is_refused(void **unused)
{
    bench *b = bench_make("gru", EXPHIL_MODE_CARRY);
    exphil_session *session = play(b->model[0], 1), *plain = play(b->model[0], 0);
    exphil_model_config config = model_case_config("lstm", EXPHIL_TYPE_F32);
    exphil_model *other = model_case_create(b->context, &config), *before = NULL, *late;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_session_config bad = EXPHIL_SESSION_CONFIG_INIT;
    exphil_session *none = NULL;
    size_t bytes = exphil_session_state_size(session);
    unsigned char *state = malloc(bytes);
    assert_int_equal(exphil_session_adopt(NULL, b->model[1], &before), EXPHIL_E_INVALID);
    assert_int_equal(exphil_session_adopt(session, NULL, &before), EXPHIL_E_INVALID);
    assert_int_equal(exphil_session_adopt(session, b->model[1], NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_session_adopt(plain, b->model[1], &before), EXPHIL_E_STATE);
    assert_int_equal(exphil_session_adopt(session, other, &before), EXPHIL_E_MISMATCH);
    config = model_case_config("gru", EXPHIL_TYPE_F32);
    config.value = EXPHIL_VALUE_SHARED;
    late = model_case_create(b->context, &config);
    assert_int_equal(exphil_session_adopt(session, late, &before), EXPHIL_E_STATE);
    exphil_session_error(session, &error);
    assert_non_null(strstr(error.message, "exphil_model_prepare"));
    assert_ok(exphil_model_prepare(late, NULL));
    assert_ok(exphil_model_prepare(late, NULL));
    assert_int_equal(exphil_model_prepare(NULL, &error), EXPHIL_E_INVALID);
    assert_true(adopt(session, late));
    /* states of plain and adoptable sessions are not the same; a frame that cannot be is refused */
    assert_int_not_equal(exphil_session_state_size(plain), bytes);
    assert_ok(exphil_session_state_save(session, 0, state, bytes));
    int refused = 0;
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        unsigned char was[8];
        memcpy(was, state + i, 8);
        memset(state + i, 0xff, 8);
        exphil_status status = exphil_session_state_restore(session, 0, state, bytes);
        assert_true(status == EXPHIL_OK || status == EXPHIL_E_FORMAT || status == EXPHIL_E_MISMATCH);
        exphil_session_error(session, &error);
        refused += status == EXPHIL_E_FORMAT && strstr(error.message, "frame") != NULL;
        memcpy(state + i, was, 8);
    }
    assert_int_equal(refused, 2); /* its frame, and its step */
    bad.adoptable = 2;
    assert_int_equal(exphil_session_create(b->model[0], &bad, &none, &error), EXPHIL_E_INVALID);
    assert_non_null(strstr(error.message, "adoptable"));
    free(state);
    exphil_model_destroy(late);
    exphil_model_destroy(other);
    exphil_session_destroy(session);
    exphil_session_destroy(plain);
    bench_free(b);
}

int main(void)
{
    traps_watch();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_state_is_kept),
        cmocka_unit_test(a_rollback_finds_the_weights_of_its_frame),
        cmocka_unit_test(nothing_is_allocated_or_locked),
        cmocka_unit_test(weights_come_back),
        cmocka_unit_test(what_is_wrong_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
