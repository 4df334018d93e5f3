/* Steps and rewards of a rollout are quiet, and so is the adoption of new weights: no allocation, no lock and no system call,
 * over many chunks that are recorded, also where episodes end, are cut off, actions are overridden and calls are refused. */
#include "learn_case.h"
#include "traps.h"

#include <math.h>
#include <stdlib.h>

enum { LANES = 4, TIME = 32, CHUNKS = 100 };

typedef struct bench {
    test_memory memory;
    learn_run run;
    exphil_rollout *rollout; /* without a delay; the run's own has one */
    exphil_session *session; /* adopts these in turn */
    exphil_model *models[3];
    unsigned char *kept;
    size_t bytes;
    noise world;
} bench;

static void bench_make(bench *b)
{
    learn_plan plan = learn_plan_of("mamba gru attention");
    exphil_session_config session = EXPHIL_SESSION_CONFIG_INIT;
    exphil_rollout_config config = EXPHIL_ROLLOUT_CONFIG_INIT;
    memset(b, 0, sizeof *b);
    test_memory_init(&b->memory);
    plan.memory = &b->memory;
    plan.lanes = session.streams = LANES;
    plan.time = config.time = TIME;
    plan.model.delay_frames = 3;
    plan.model.neutral_start = 1;
    b->run = learn_begin(&plan);
    plan.model.delay_frames = 0;
    exphil_model *model = model_case_create(b->run.context, &plan.model);
    assert_ok(exphil_rollout_create(model, &session, &config, &b->rollout, NULL));
    session.adoptable = 1;
    assert_ok(exphil_session_create(model, &session, &b->session, NULL));
    b->models[0] = model;
    for (int i = 1; i < 3; i++) {
        plan.model.seed = (uint64_t)i;
        b->models[i] = model_case_create(b->run.context, &plan.model);
    }
    for (int i = 0; i < 3; i++) assert_ok(exphil_model_prepare(b->models[i], NULL));
    b->bytes = exphil_session_state_size(b->session);
    b->kept = calloc(1, b->bytes);
    for (int i = 0; i < LANES; i++)
        b->world.rng[i] = (xph_rng){.seed = 3, .stream = (uint64_t)i << 8 | XPH_RNG_TEST};
}

static void bench_free(bench *b)
{
    exphil_rollout_destroy(b->rollout);
    exphil_session_destroy(b->session);
    for (int i = 0; i < 3; i++) exphil_model_destroy(b->models[i]);
    free(b->kept);
    learn_end(&b->run);
    assert_memory_clean(&b->memory);
}

/* A whole chunk. Nothing of cmocka in here: the caller may have no system calls. */
static bool chunk(bench *b, exphil_rollout *rollout)
{
    float floats[13 * LANES], reward[LANES];
    int32_t ids[2 * LANES], actions[3 * LANES], other[3] = {1, 2, 0};
    uint8_t ends[LANES];
    bool fine = true;
    exphil_status status = EXPHIL_OK;
    for (int t = 0; status == EXPHIL_OK && t < 100; t++) {
        for (int i = 0; i < LANES; i++) noise_row(&b->world, i, floats + 13 * i, ids + 2 * i);
        fine &= exphil_rollout_step(rollout, floats, ids, actions) == EXPHIL_OK;
        fine &= exphil_rollout_step(rollout, floats, ids, actions) == EXPHIL_E_STATE;
        if (t % 7 == 0)
            fine &= exphil_session_override(exphil_rollout_session(rollout), t % LANES, other) == EXPHIL_OK;
        for (int i = 0; i < LANES; i++) {
            reward[i] = i == t % LANES ? NAN : 1.0f;
            ends[i] = (t + i) % 18 == 0 ? EXPHIL_CUT_OFF : (t + i) % 9 == 0 ? EXPHIL_OVER : EXPHIL_GOES_ON;
        }
        fine &= exphil_rollout_reward(rollout, reward, ends, floats, ids) == EXPHIL_E_NUMERIC;
        reward[t % LANES] = 0.5f;
        status = exphil_rollout_reward(rollout, reward, ends, floats, ids);
    }
    xph_rollout_next(rollout);
    return fine && status == EXPHIL_END;
}

/* New weights, some frames, and back to before they came; a model that is not another's is refused. */
static bool adoptions(bench *b)
{
    float floats[13 * LANES];
    int32_t ids[2 * LANES], actions[3 * LANES];
    bool fine = true;
    for (int g = 0; g < 3; g++) {
        exphil_model *before = NULL;
        fine &= exphil_session_state_save(b->session, 0, b->kept, b->bytes) == EXPHIL_OK;
        fine &= exphil_session_adopt(b->session, b->run.model, &before) == EXPHIL_E_MISMATCH;
        fine &= exphil_session_adopt(b->session, b->models[g], &before) == EXPHIL_OK;
        exphil_model_destroy(before); /* not the last reference */
        for (int t = 0; t < 8; t++) {
            if (t == 5) fine &= exphil_session_state_restore(b->session, 0, b->kept, b->bytes) == EXPHIL_OK;
            for (int i = 0; i < LANES; i++) noise_row(&b->world, i, floats + 13 * i, ids + 2 * i);
            fine &= exphil_session_step_row(b->session, floats, ids, NULL, actions) == EXPHIL_OK;
        }
    }
    return fine;
}

static bool hot(bench *b)
{
    return chunk(b, b->rollout) && chunk(b, b->run.rollout) && adoptions(b);
}

static void nothing_is_allocated_or_locked(void **state)
{
    bench b;
    bool fine = true;
    bench_make(&b);
    long long before[] = {atomic_load(&b.memory.calls), atomic_load(&trap_locks), atomic_load(&trap_mallocs)};
    for (int i = 0; i < CHUNKS; i++) fine &= hot(&b);
    assert_true(fine);
    assert_int_equal(atomic_load(&b.memory.calls), before[0]);
    assert_int_equal(atomic_load(&trap_locks), before[1]);
    assert_int_equal(atomic_load(&trap_mallocs), before[2]);
    bench_free(&b);
}

#ifndef EXPHIL_SANITIZE /* sanitizers call the system themselves */

static int live(void *unused)
{
    bool fine = true;
    bench b;
    bench_make(&b);
    if (!traps_give_up_system_calls()) return TRAPS_NO_FILTER;
    for (int i = 0; i < CHUNKS; i++) fine &= hot(&b);
    return fine ? TRAPS_FINE : TRAPS_WRONG;
}

static void the_system_is_never_called(void **state)
{
    assert_quiet_life(live, NULL);
}

#endif

int main(void)
{
    traps_watch();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_allocated_or_locked),
#ifndef EXPHIL_SANITIZE
        cmocka_unit_test(the_system_is_never_called),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
