/* A learner behind a game is not felt in it: steps and rewards allocate nothing, take no lock and make no system call, while the
 * thread learns, new weights come and are taken, frames are rolled back, the ring is full, and calls are refused. */
#include "live_case.h"
#include "traps.h"

#include <stdlib.h>

enum { FRAMES = 20000, BACK = 8 };

/* An allocator that counts what this thread asks for. */
static _Thread_local bool watched;
static atomic_llong asked;

static void *count_alloc(void *user, size_t bytes, size_t align)
{
    if (watched) atomic_fetch_add(&asked, 1);
    return test_aligned(align < 64 ? 64 : align, bytes);
}

static void count_free(void *user, void *pointer, size_t bytes)
{
    if (watched) atomic_fetch_add(&asked, 1);
    test_aligned_free(pointer);
}

typedef struct bench {
    exphil_context *context;
    exphil_model *model;
    exphil_live *imitates, *rewarded;
    live_person person;
    unsigned char *kept;
    size_t bytes;
} bench;

static void bench_make(bench *b)
{
    const exphil_allocator allocator = {sizeof allocator, NULL, count_alloc, count_free};
    exphil_context_config context = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_model_config model = model_case_config("mamba gru", EXPHIL_TYPE_F32);
    exphil_live_config config = EXPHIL_LIVE_CONFIG_INIT;
    memset(b, 0, sizeof *b);
    watched = true;
    context.allocator = &allocator;
    context.threads = 1;
    assert_ok(exphil_context_create(&context, &b->context, NULL));
    model.value = EXPHIL_VALUE_SHARED;
    model.neutral_start = 1;
    b->model = model_case_create(b->context, &model);
    config.piece_frames = 64;
    config.updates = 2;
    config.ring_frames = 200;
    config.rollback_frames = BACK;
    assert_ok(exphil_live_create(b->model, &config, &b->imitates, NULL));
    config = (exphil_live_config)EXPHIL_LIVE_CONFIG_INIT;
    config.way = EXPHIL_LIVE_REINFORCE;
    config.time = 32;
    config.ring_frames = 2;
    assert_ok(exphil_live_create(b->model, &config, &b->rewarded, NULL));
    b->person = live_person_of(1, 0);
    b->bytes = exphil_session_state_size(exphil_live_session(b->imitates));
    b->kept = calloc(1, b->bytes);
}

static void bench_free(bench *b)
{
    exphil_live_destroy(b->imitates);
    exphil_live_destroy(b->rewarded);
    free(b->kept);
    exphil_model_destroy(b->model);
    exphil_context_destroy(b->context);
}

/* Nothing of cmocka in here: the caller may have no system calls. */
static bool frames(bench *b, int64_t from, int64_t to)
{
    exphil_session *session = exphil_live_session(b->imitates);
    bool fine = true;
    for (int64_t i = from; i < to; i++) {
        float row[13];
        int32_t ids[2], action[3], actions[3];
        const uint8_t end = i % 50 == 49 ? EXPHIL_CUT_OFF : i % 75 == 74 ? EXPHIL_OVER : EXPHIL_GOES_ON;
        live_person_look(&b->person, row, ids, action);
        if (i % 20 == 3) fine &= exphil_session_state_save(session, 0, b->kept, b->bytes) == EXPHIL_OK;
        if (i % 20 == 7) fine &= exphil_session_state_restore(session, 0, b->kept, b->bytes) == EXPHIL_OK;
        fine &= exphil_live_step_row(b->imitates, row, ids, i % 3 ? action : NULL, actions) == EXPHIL_OK;
        fine &= exphil_live_reward(b->imitates, 0.0f, end, NULL, NULL) == EXPHIL_OK;
        fine &= exphil_live_step_row(b->rewarded, row, ids, i % 9 ? NULL : action, actions) == EXPHIL_OK;
        fine &= exphil_live_step_row(b->rewarded, row, ids, NULL, actions) == EXPHIL_E_STATE;
        fine &= exphil_live_reward(b->rewarded, 1.0f, end, row, ids) == EXPHIL_OK;
        action[1] = 5;
        fine &= exphil_live_step_row(b->imitates, row, ids, action, actions) == EXPHIL_E_INVALID;
    }
    return fine;
}

static bool waited_for(bench *b)
{
    return live_info(b->imitates).adopted > 3 && live_info(b->rewarded).adopted > 3;
}

static void nothing_is_allocated_or_locked(void **state)
{
    bench b;
    int64_t played = 0;
    bench_make(&b);
    /* Queries lock: they are not counted. */
    for (; played < FRAMES || !waited_for(&b); played += 1000) {
        long long before[] = {atomic_load(&asked), atomic_load(&trap_locks)};
        assert_true(frames(&b, played, played + 1000));
        assert_int_equal(atomic_load(&asked), before[0]);
        assert_int_equal(atomic_load(&trap_locks), before[1]);
    }
    print_message(
        "%lld frames; new weights taken %lld and %lld times, %lld frames dropped, %lld taken back\n",
        (long long)played, (long long)live_info(b.imitates).adopted, (long long)live_info(b.rewarded).adopted,
        (long long)live_info(b.imitates).dropped, (long long)live_info(b.imitates).taken_back);
    assert_true(live_info(b.imitates).taken_back > 0);
    assert_int_equal(live_info(b.imitates).failed, EXPHIL_OK);
    assert_int_equal(live_info(b.rewarded).failed, EXPHIL_OK);
    bench_free(&b);
}

#ifndef EXPHIL_SANITIZE /* sanitizers call the system themselves */

static int live(void *unused)
{
    bench b;
    bench_make(&b);
    if (!traps_give_up_system_calls()) return TRAPS_NO_FILTER;
    return frames(&b, 0, FRAMES) ? TRAPS_FINE : TRAPS_WRONG;
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
