/* A run whose disk loses its power, or is full, at any moment of a save: it goes on to the last bit from a state that is at
 * most one save old, and nothing that was left keeps the next save from being made. EXPHIL_ROUNDS: moments of each kind
 * (200). */
#include "crash_disk.h"
#include "train_case.h"

#include <stdlib.h>

enum { UPDATES = 8, EVERY = 2 };

static int32_t rounds(void)
{
    const char *asked = getenv("EXPHIL_ROUNDS");
    return asked ? atoi(asked) : 200;
}

static train_plan plan_of(crash_disk *disk, int32_t averaged)
{
    train_plan plan = train_plan_of("gru", EXPHIL_MODE_CARRY);
    plan.model.hidden = 4;
    plan.model.head_width = 4;
    plan.threads = 1;
    plan.adam.ema_decay = averaged ? 0.9 : 0.0;
    plan.trainer.saved_weights = averaged ? EXPHIL_WEIGHTS_AVERAGED : EXPHIL_WEIGHTS;
    plan.io = disk ? &disk->io : NULL;
    return plan;
}

/* What a run that nothing happens to is after each update. */
typedef struct straight {
    unsigned char *at[UPDATES + 1];
    size_t bytes;
} straight;

static straight go_straight(int32_t averaged)
{
    straight s = {.bytes = 0};
    train_plan plan = plan_of(NULL, averaged);
    train_run run = train_begin(&plan);
    for (int64_t u = 0; u <= UPDATES; u++) {
        if (u) (void)train_steps(&run, 1);
        s.at[u] = train_snapshot(run.trainer, &s.bytes);
    }
    train_end(&run);
    return s;
}

static void free_straight(straight *s)
{
    for (int64_t u = 0; u <= UPDATES; u++) free(s->at[u]);
}

static void assert_stands_at(const train_run *run, const straight *s, int64_t update)
{
    size_t bytes;
    unsigned char *got = train_snapshot(run->trainer, &bytes);
    assert_int_equal(bytes, s->bytes);
    assert_memory_equal(got, s->at[update], bytes);
    free(got);
}

/* Where the run stands whose checkpoint is on the disk; -1: there is none. */
static int64_t resume(train_run *run, const crash_disk *disk)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_optimizer_info info = EXPHIL_OPTIMIZER_INFO_INIT;
    if (!crash_has(disk, "net.optimizer")) return -1;
    if (exphil_trainer_resume(run->trainer, "net", &error) < 0) fail_msg("%s", error.message);
    assert_ok(exphil_optimizer_query(run->optimizer, &info, NULL));
    return info.updates;
}

/* The weights are whole; -1: there are none. */
static int64_t weights_of(const train_run *run, const crash_disk *disk)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_model *model = NULL;
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    if (!crash_has(disk, "net")) return -1;
    if (exphil_model_load(run->context, "net", &model, &error) < 0) fail_msg("%s", error.message);
    assert_ok(exphil_model_query(model, &info, NULL));
    exphil_model_destroy(model);
    return (int64_t)info.trained_updates;
}

/* Saves after every second update; returns the update of the last save that ended well, *tried that of the last one. */
static int64_t go_on(train_run *run, int64_t from, int64_t saved, int64_t *tried)
{
    for (int64_t u = from + 1; u <= UPDATES; u++) {
        (void)train_steps(run, 1);
        if (u % EVERY) continue;
        *tried = u;
        if (exphil_trainer_save(run->trainer, "net", NULL) < 0) return saved;
        saved = u;
    }
    return saved;
}

/* How many operations a run makes that nothing happens to. */
static long long count_calls(int32_t averaged)
{
    static crash_disk disk;
    int64_t tried = 0;
    crash_disk_begin(&disk, 0);
    train_plan plan = plan_of(&disk, averaged);
    train_run run = train_begin(&plan);
    assert_int_equal(go_on(&run, 0, 0, &tried), UPDATES);
    train_end(&run);
    long long calls = disk.calls;
    crash_disk_end(&disk);
    return calls;
}

static void one_power_cut(const straight *s, int32_t averaged, long long calls, int32_t round, int32_t *older)
{
    static crash_disk disk;
    int64_t tried = 0;
    crash_disk_begin(&disk, (uint64_t)round);
    train_plan plan = plan_of(&disk, averaged);
    disk.power_cut_at = 1 + (long long)crash_random(&disk, (uint64_t)calls);
    train_run run = train_begin(&plan);
    int64_t saved = go_on(&run, 0, -1, &tried);
    assert_true(disk.dead);
    train_end(&run);
    crash_reboot(&disk);
    run = train_begin(&plan);
    int64_t at = resume(&run, &disk), weights = weights_of(&run, &disk);
    if (at < saved || (at != saved && at != tried))
        fail_msg("round %d: saved %lld and %lld, found %lld", (int)round, (long long)saved, (long long)tried,
                 (long long)at);
    if (weights > at || weights < saved)
        fail_msg("round %d: weights of %lld beside a checkpoint of %lld", (int)round, (long long)weights,
                 (long long)at);
    *older += at < tried;
    assert_stands_at(&run, s, at < 0 ? 0 : at);
    assert_int_equal(go_on(&run, at < 0 ? 0 : at, at, &tried), UPDATES);
    assert_stands_at(&run, s, UPDATES);
    assert_ok(exphil_trainer_save(run.trainer, "net", NULL)); /* the weights may be one save older */
    assert_int_equal(weights_of(&run, &disk), UPDATES);
    train_end(&run);
    crash_disk_end(&disk);
}

static void power_cuts(void **state)
{
    for (int32_t averaged = 0; averaged <= 1; averaged++) {
        straight s = go_straight(averaged);
        long long calls = count_calls(averaged);
        int32_t older = 0, count = rounds();
        for (int32_t i = averaged; i < count; i += 2) one_power_cut(&s, averaged, calls, i, &older);
        print_message("%d power cuts among %lld operations; the save under way was lost in %d\n",
                      (int)(count / 2), calls, (int)older);
        if (count >= 100) assert_true(older > count / 20 && older < count / 2 - count / 20); /* both happen */
        free_straight(&s);
    }
}

/* The run itself goes on, and saves when there is space again; meanwhile its last save is whole. */
static void one_full_disk(const straight *s, long long bytes, int32_t round)
{
    static crash_disk disk;
    int64_t tried = 0;
    crash_disk_begin(&disk, (uint64_t)round);
    train_plan plan = plan_of(&disk, 0);
    disk.free_bytes = (long long)crash_random(&disk, (uint64_t)bytes);
    train_run run = train_begin(&plan), other = train_begin(&plan);
    int64_t saved = go_on(&run, 0, -1, &tried);
    assert_true(tried > saved);
    int64_t at = resume(&other, &disk), weights = weights_of(&other, &disk);
    assert_true(at == saved || at == tried);
    assert_true(weights == saved);
    assert_stands_at(&other, s, at < 0 ? 0 : at);
    assert_false(crash_has(&disk, "net.exphil-tmp") || crash_has(&disk, "net.optimizer.exphil-tmp"));
    train_end(&other);
    disk.free_bytes = -1;
    assert_ok(exphil_trainer_save(run.trainer, "net", NULL));
    assert_int_equal(go_on(&run, tried, tried, &tried), UPDATES);
    assert_stands_at(&run, s, UPDATES);
    assert_int_equal(weights_of(&run, &disk), UPDATES);
    train_end(&run);
    crash_disk_end(&disk);
}

static long long count_bytes(void)
{
    static crash_disk disk;
    int64_t tried = 0;
    crash_disk_begin(&disk, 0);
    train_plan plan = plan_of(&disk, 0);
    disk.free_bytes = 1LL << 40;
    train_run run = train_begin(&plan);
    assert_int_equal(go_on(&run, 0, 0, &tried), UPDATES);
    train_end(&run);
    crash_disk_end(&disk);
    return (1LL << 40) - disk.free_bytes;
}

static void full_disks(void **state)
{
    straight s = go_straight(0);
    long long bytes = count_bytes();
    for (int32_t i = 0; i < rounds(); i++) one_full_disk(&s, bytes, i);
    print_message("%d disks, full within %lld bytes\n", (int)rounds(), bytes);
    free_straight(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(power_cuts),
        cmocka_unit_test(full_disks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
