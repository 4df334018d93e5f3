/* The hot calls are quiet: no allocation, no lock, no system call over 100,000 steps, and the floating-point mode of the
 * host is neither felt nor changed. */
#include "play_case.h"

#include "melee_frame.h"
#include "test_modes.h"
#include "traps.h"

#include <math.h>
#include <stdlib.h>

#if defined(EXPHIL_TEST_FEWER) && !defined(EXPHIL_SANITIZE)
enum { STEPS = 10000 };
#else
enum { STEPS = 100000 };
#endif
enum { HEADS = 3, LOGITS = 12 };

/* ---- what is run ------------------------------------------------------------------------------------------------- */

/* One session of rows and one of Melee frames, two streams each, and everything their calls need. */
typedef struct bench {
    test_memory memory;
    exphil_context *context;
    exphil_model *model, *melee;
    exphil_session *session, *live;
    play_frames *f;
    void *block;
    size_t bytes;
    exphil_melee_frame frame[2];
} bench;

static void bench_make(bench *b, int32_t mode)
{
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    how.streams = 2;
    test_memory_init(&b->memory);
    b->context = test_context(&b->memory, NULL, 2);
    exphil_model_config config = model_case_config("mamba lstm gru attention ffn", EXPHIL_TYPE_F32);
    config.heads = EXPHIL_HEADS_AUTOREGRESSIVE;
    config.hidden = 16;
    config.mode = mode;
    config.window_frames = mode == EXPHIL_MODE_WINDOW ? 3 : 0;
    b->model = play_model(b->context, &config, 0.1);
    config.spec = NULL;
    config.blocks = "mlp";
    b->melee = play_model(b->context, &config, 0.1);
    b->session = play_session(b->model, &how);
    b->live = play_session(b->melee, &how);
    b->f = play_frames_make(b->model, 2, 64, 3);
    b->bytes = exphil_session_state_size(b->session);
    b->block = malloc(b->bytes);
    b->frame[0] = b->frame[1] = melee_frame();
}

static void bench_free(bench *b)
{
    free(b->block);
    play_frames_free(b->f);
    exphil_session_destroy(b->session);
    exphil_session_destroy(b->live);
    exphil_model_destroy(b->model);
    exphil_model_destroy(b->melee);
    exphil_context_destroy(b->context);
    assert_memory_clean(&b->memory);
}

/* Every hot call, also those that fail. Nothing of cmocka in here: the caller may have no system calls. */
static bool hot(bench *b, int64_t t)
{
    int32_t action[2 * HEADS];
    float logits[LOGITS], bad[26];
    exphil_pad pad[2];
    int64_t row = t % 64 * 2;
    bool fine = exphil_session_step_row(b->session, b->f->floats + row * 13, b->f->ids + row * 2,
                                        t % 2 ? NULL : b->f->noise + row * LOGITS, action) == EXPHIL_OK;
    if (t % 16 == 0) fine &= exphil_session_step(b->live, b->frame, pad) == EXPHIL_OK;
    fine &= exphil_session_state_save(b->session, t % 2, b->block, b->bytes) == EXPHIL_OK;
    fine &= exphil_session_state_restore(b->session, (t + 1) % 2, b->block, b->bytes) == EXPHIL_OK;
    fine &= exphil_session_logits(b->session, 1, logits, LOGITS) == EXPHIL_OK;
    fine &= exphil_session_override(b->session, 0, action) == EXPHIL_OK;
    if (t % 100 == 99) fine &= exphil_session_reset(b->session, t % 200 == 99 ? -1 : 1) == EXPHIL_OK;
    if (t % 50 != 49) return fine;
    memcpy(bad, b->f->floats, sizeof bad);
    for (int i = 0; i < 13; i++) bad[i] = 3e38f;
    fine &= exphil_session_step_row(b->session, bad, b->f->ids, NULL, action) == EXPHIL_E_NUMERIC;
    bad[3] = INFINITY;
    fine &= exphil_session_step_row(b->session, bad, b->f->ids, NULL, action) == EXPHIL_E_NUMERIC;
    fine &= exphil_session_reset(b->session, 7) == EXPHIL_E_INVALID;
    fine &= exphil_session_state_restore(b->session, 0, b->f->floats, b->bytes) < 0;
    return fine;
}

/* ---- tests --------------------------------------------------------------------------------------------------------- */

static int64_t steps_of(int32_t mode)
{
    return mode == EXPHIL_MODE_WINDOW ? STEPS / 10 : STEPS;
}

static void nothing_is_allocated_or_locked(void **state)
{
    for (int32_t mode = 0; mode <= 1; mode++) {
        bench b;
        bench_make(&b, mode);
        assert_true(hot(&b, 0));
        long long before[] = {atomic_load(&b.memory.calls), atomic_load(&trap_locks),
                              atomic_load(&trap_mallocs)};
        bool fine = true;
        for (int64_t t = 0; t < steps_of(mode); t++) fine &= hot(&b, t);
        assert_true(fine);
        assert_int_equal(atomic_load(&b.memory.calls), before[0]);
        assert_int_equal(atomic_load(&trap_locks), before[1]);
        assert_int_equal(atomic_load(&trap_mallocs), before[2]);
        bench_free(&b);
    }
}

/* The traps do trap. */
static void traps_work(void **state)
{
    if (!traps_count())
        test_left_out("this system lets no program count the C library's locks and allocations");
    test_lock *lock = test_lock_make();
    long long before = atomic_load(&trap_locks);
    test_lock_enter(lock);
    test_lock_leave(lock);
    assert_int_equal(atomic_load(&trap_locks), before + 2);
    test_lock_free(lock);
#ifndef EXPHIL_SANITIZE
    before = atomic_load(&trap_mallocs);
    void *volatile some = malloc(10);
    free(some);
    assert_int_equal(atomic_load(&trap_mallocs), before + 1);
#endif
    bench b;
    before = atomic_load(&trap_locks);
    bench_make(&b, 0); /* creation may lock, and does */
    assert_true(atomic_load(&trap_locks) > before);
    bench_free(&b);
}

#ifndef EXPHIL_SANITIZE /* sanitizers call the system themselves */

typedef struct life {
    int32_t mode;
    bool guilty;
} life;

static int live(void *arg)
{
    const life *l = arg;
    bench b;
    bench_make(&b, l->mode);
    bool fine = hot(&b, 0);
    if (!traps_give_up_system_calls()) return TRAPS_NO_FILTER;
    for (int64_t t = 0; t < steps_of(l->mode); t++) fine &= hot(&b, t);
    if (l->guilty) traps_call_the_system();
    return fine ? TRAPS_FINE : TRAPS_WRONG;
}

static void the_system_is_never_called(void **state)
{
    life quiet[] = {{0, false}, {1, false}}, guilty = {1, true};
    for (int i = 0; i < 2; i++) assert_quiet_life(live, &quiet[i]);
    assert_guilty_life(live, &guilty);
}

#endif

/* ---- floating-point modes ------------------------------------------------------------------------------------------ */

/* Everything that computes with what the host gave, under one mode; the mode must be the same after every call. */
typedef struct outcome {
    int32_t action[200][2 * HEADS];
    float logits[LOGITS];
    exphil_pad pad[2], decoded;
    float row[4096];
    int32_t ids[EXPHIL_IDS_MAX], encoded[EXPHIL_HEADS_MAX];
    unsigned char block[65536];
} outcome;

#define IN_MODE(call)                                                                                        \
  do {                                                                                                       \
    test_mode_set(mode);                                                                                     \
    exphil_status in_mode = (call);                                                                          \
    uint32_t after = test_mode();                                                                            \
    test_mode_set(TEST_PLAIN);                                                                               \
    assert_int_equal(in_mode, EXPHIL_OK);                                                                    \
    assert_int_equal(after, mode);                                                                           \
  } while (0)

static void compute(uint32_t mode, outcome *o)
{
    bench b;
    exphil_session *session = NULL, *clone = NULL;
    exphil_session_info info = EXPHIL_SESSION_INFO_INIT;
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    how.streams = 2;
    bench_make(&b, 0);
    IN_MODE(exphil_session_create(b.model, &how, &session, NULL));
    for (int64_t t = 0; t < 200; t++) {
        IN_MODE(exphil_session_step_row(session, b.f->floats + t % 64 * 26, b.f->ids + t % 64 * 4, NULL,
                                        o->action[t]));
        if (t == 100) IN_MODE(exphil_session_reset(session, 1));
        if (t == 150) IN_MODE(exphil_session_override(session, 1, o->action[t - 1]));
    }
    IN_MODE(exphil_session_logits(session, 0, o->logits, LOGITS));
    assert_true(b.bytes <= sizeof o->block);
    IN_MODE(exphil_session_state_save(session, 1, o->block, b.bytes));
    IN_MODE(exphil_session_state_restore(session, 0, o->block, b.bytes));
    IN_MODE(exphil_session_clone(session, &clone, NULL));
    IN_MODE(exphil_session_query(session, &info, NULL));
    b.frame[0].player[1].percent = 33.333f;
    b.frame[0].player[1].x = 17.7f;
    IN_MODE(exphil_session_step(b.live, b.frame, o->pad));
    IN_MODE(exphil_melee_encode(NULL, &b.frame[0], o->row, o->ids, NULL));
    const exphil_pad pad = {EXPHIL_PAD_A, 0.33f, -0.77f, 0.1f, 0.9f, 0.4f};
    IN_MODE(exphil_melee_pad_encode(NULL, &pad, o->encoded, NULL));
    IN_MODE(exphil_melee_pad_decode(NULL, o->encoded, &o->decoded, NULL));
    exphil_session_destroy(session);
    exphil_session_destroy(clone);
    bench_free(&b);
}

static void host_modes_are_not_felt(void **state)
{
    test_needs_modes();
    outcome *want = calloc(1, sizeof *want);
    compute(TEST_PLAIN, want);
    for (int i = 0; i < TEST_MODE_COUNT; i++) {
        outcome *got = calloc(1, sizeof *got);
        compute(test_modes[i], got);
        if (memcmp(want, got, sizeof *got) != 0)
            fail_msg("another result with mode %04x", (unsigned)test_modes[i]);
        free(got);
    }
    free(want);
}

int main(void)
{
    traps_watch();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(traps_work),
        cmocka_unit_test(nothing_is_allocated_or_locked),
#ifndef EXPHIL_SANITIZE
        cmocka_unit_test(the_system_is_never_called),
#endif
        cmocka_unit_test(host_modes_are_not_felt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
