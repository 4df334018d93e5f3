/* No memory at any moment, and no power at any moment of a save: learning from play is as before the call, and goes on to the
 * bits of a run that nothing happened to. */
#include "block_case.h"
#include "crash_disk.h"

#include <stdio.h>
#include <stdlib.h>

enum { CHUNKS = 3 };

static learn_plan plan_of(void)
{
    learn_plan p = learn_plan_of("gru");
    p.model.hidden = 8;
    p.model.delay_frames = 1;
    p.model.neutral_start = 1;
    p.lanes = 4;
    p.time = 5;
    p.taught = true;
    p.learner.batches = 2;
    p.learner.to_teacher = 0.1;
    p.learner.most_kl = 1e6; /* looks at the whole chunk */
    return p;
}

/* Weights after each chunk of a run that nothing happens to; at [0] those of its beginning. */
static void go_straight(const learn_plan *p, uint64_t weights[CHUNKS + 1])
{
    noise n = {.fail_at = 0};
    learn_run r = learn_begin(p);
    const exphil_world world = noise_kept_world(&n, p->lanes);
    for (int i = 0; i <= CHUNKS; i++) {
        if (i) learn_chunk(&r, &world);
        weights[i] = learn_weights(&r);
    }
    learn_end(&r);
}

/* ---- memory ---------------------------------------------------------------------------------------------------------- */

/* What is tried with memory that fails; each may be made again after a failure. */
typedef struct attempt {
    learn_run *run;
    const exphil_world *world;
    const char *path;
    const learn_plan *plan;
    exphil_rollout *rollout;
    exphil_learner *learner;
} attempt;
typedef exphil_status tried(attempt *a, exphil_error *error);

static exphil_status make_rollout(attempt *a, exphil_error *error)
{
    exphil_session_config session = EXPHIL_SESSION_CONFIG_INIT;
    session.streams = a->plan->lanes;
    return exphil_rollout_create(a->run->model, &session, NULL, &a->rollout, error);
}

static exphil_status make_learner(attempt *a, exphil_error *error)
{
    return exphil_learner_create(a->run->trainer, a->run->model, &a->plan->learner, &a->learner, error);
}

static exphil_status play(attempt *a, exphil_error *error)
{
    return exphil_rollout_run(a->run->rollout, a->world, error);
}

static exphil_status learn(attempt *a, exphil_error *error)
{
    return exphil_learner_update(a->run->learner, a->run->rollout, NULL, error);
}

static exphil_status save(attempt *a, exphil_error *error)
{
    return exphil_learner_save(a->run->learner, a->run->rollout, a->world, a->path, error);
}

static exphil_status resume(attempt *a, exphil_error *error)
{
    return exphil_learner_resume(a->run->learner, a->run->rollout, a->world, a->path, error);
}

/* Fails at every call for memory in turn, once alone and once with all later ones; same: weights are as before each failure. */
static int starve(test_memory *memory, attempt *a, tried *call, bool same)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    int failures = 0;
    for (long long k = 1;; k++)
        for (int on = 0; on < 2; on++) {
            const uint64_t before = learn_weights(a->run);
            const long long live = atomic_load(&memory->live);
            memory->fail_on = on;
            memory->fail_at = atomic_load(&memory->calls) + k;
            exphil_status status = call(a, &error);
            const bool unharmed = atomic_load(&memory->calls) < memory->fail_at;
            memory->fail_at = 0;
            if (status >= 0 && unharmed) return failures;
            if (status >= 0) fail_msg("call %lld for memory failed, and nothing was said", k);
            if (status != EXPHIL_E_MEMORY) fail_msg("call %lld: %d, %s", k, status, error.message);
            failures++;
            assert_true(strlen(error.message) > 0);
            if (same) assert_true(learn_weights(a->run) == before);
            if (call == make_rollout || call == make_learner) assert_true(atomic_load(&memory->live) == live);
        }
}

static void no_memory_at_any_moment(void **unused)
{
    learn_plan p = plan_of();
    uint64_t straight[CHUNKS + 1];
    test_memory memory;
    noise n = {.fail_at = 0};
    go_straight(&p, straight);
    test_memory_init(&memory);
    p.memory = &memory;
    learn_run r = learn_begin(&p);
    const exphil_world world = noise_kept_world(&n, p.lanes);
    attempt a = {.run = &r, .world = &world, .path = "", .plan = &p};
    char path[256];
    (void)snprintf(path, sizeof path, "%s", test_path("starved"));
    a.path = path;
    assert_true(starve(&memory, &a, make_rollout, true) > 0);
    assert_true(starve(&memory, &a, make_learner, true) > 0);
    exphil_learner_destroy(a.learner);
    exphil_rollout_destroy(a.rollout);
    for (int i = 1; i <= CHUNKS; i++) {
        (void)starve(&memory, &a, play, true);
        assert_true(starve(&memory, &a, learn, true) > 0);
        assert_true(learn_weights(&r) == straight[i]);
        assert_true(starve(&memory, &a, save, true) > 0);
        assert_true(learn_weights(&r) == straight[i]);
    }
    learn_end(&r);
    assert_memory_clean(&memory);
}

static void a_run_is_resumed_without_memory(void **unused)
{
    learn_plan p = plan_of();
    uint64_t straight[CHUNKS + 1];
    test_memory memory;
    noise n = {.fail_at = 0}, fresh = {.fail_at = 0};
    char path[256];
    (void)snprintf(path, sizeof path, "%s", test_path("hungry"));
    go_straight(&p, straight);
    learn_run r = learn_begin(&p);
    const exphil_world world = noise_kept_world(&n, p.lanes), other = noise_kept_world(&fresh, p.lanes);
    learn_chunk(&r, &world);
    assert_ok(exphil_learner_save(r.learner, r.rollout, &world, path, NULL));
    learn_end(&r);
    test_memory_init(&memory);
    p.memory = &memory;
    r = learn_begin(&p);
    attempt a = {.run = &r, .world = &other, .path = path, .plan = &p};
    assert_true(starve(&memory, &a, resume, false) > 0);
    for (int i = 1; i <= CHUNKS; i++) {
        assert_true(learn_weights(&r) == straight[i]);
        if (i < CHUNKS) learn_chunk(&r, &other);
    }
    learn_end(&r);
    assert_memory_clean(&memory);
}

/* ---- power ----------------------------------------------------------------------------------------------------------- */

/* Learns and saves after each chunk from chunk first on, until a save fails; returns how many were saved well. */
static int go_on(learn_run *r, const exphil_world *world, int first, const uint64_t straight[CHUNKS + 1])
{
    int saved = first;
    for (int i = first + 1; i <= CHUNKS; i++) {
        learn_chunk(r, world);
        assert_true(learn_weights(r) == straight[i]);
        if (exphil_learner_save(r->learner, r->rollout, world, "run", NULL) < 0) return saved;
        saved = i;
    }
    return saved;
}

static int standing(learn_run *r, const uint64_t straight[CHUNKS + 1])
{
    const uint64_t now = learn_weights(r);
    for (int i = 0; i <= CHUNKS; i++)
        if (straight[i] == now) return i;
    fail_msg("a run stands where none ever stood");
    return -1;
}

/* The power goes in operation at, or the disk is full from there on; then a new process goes on. Returns the operations made. */
static long long lose(const learn_plan *like, long long at, bool full, const uint64_t straight[CHUNKS + 1])
{
    static crash_disk disk;
    exphil_error error = EXPHIL_ERROR_INIT;
    noise n = {.fail_at = 0}, later = {.fail_at = 0};
    learn_plan p = *like;
    crash_disk_begin(&disk, (uint64_t)at);
    p.io = &disk.io;
    if (full)
        disk.free_bytes = at;
    else
        disk.power_cut_at = at;
    learn_run r = learn_begin(&p);
    const exphil_world world = noise_kept_world(&n, p.lanes), again = noise_kept_world(&later, p.lanes);
    const int saved = go_on(&r, &world, 0, straight);
    learn_end(&r);
    const long long calls = disk.calls;
    disk.power_cut_at = 0;
    disk.free_bytes = -1;
    if (!full && disk.dead) crash_reboot(&disk);
    r = learn_begin(&p);
    int from = 0;
    if (crash_has(&disk, "run")) {
        if (exphil_learner_resume(r.learner, r.rollout, &again, "run", &error) < 0)
            fail_msg("%s", error.message);
        from = standing(&r, straight);
    }
    assert_true(from >= saved && from <= saved + 1);
    assert_int_equal(go_on(&r, &again, from, straight), CHUNKS);
    learn_end(&r);
    crash_disk_end(&disk);
    return calls;
}

static void no_power_at_any_moment(void **unused)
{
    learn_plan p = plan_of();
    uint64_t straight[CHUNKS + 1];
    p.learner.epochs = 1;
    go_straight(&p, straight);
    long long calls = lose(&p, 1LL << 40, false, straight);
    assert_true(calls > CHUNKS * 4);
    for (long long at = 1; at <= calls; at++) (void)lose(&p, at, false, straight);
}

static void no_space_at_any_moment(void **unused)
{
    learn_plan p = plan_of();
    uint64_t straight[CHUNKS + 1];
    p.learner.epochs = 1;
    go_straight(&p, straight);
    for (long long space = 0; space < 1 << 20; space = space * 2 + 997) (void)lose(&p, space, true, straight);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_memory_at_any_moment),
        cmocka_unit_test(a_run_is_resumed_without_memory),
        cmocka_unit_test(no_power_at_any_moment),
        cmocka_unit_test(no_space_at_any_moment),
    };
    return cmocka_run_group_tests(tests, NULL, test_leave);
}
