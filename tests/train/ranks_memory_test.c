/* Memory that one of two ranks does not get, at every allocation of every call of all ranks, once and for ever: that rank says
 * so, the other names it, nobody waits, nothing is left behind or half changed, and the same call goes well afterwards. */
#include "ranks_case.h"

#include <exphil/ranks.h>
#include <stdio.h>
#include <stdlib.h>

enum { RANKS = 2, MOST = 4000 };

/* What a rank works on; all of it made before the trouble begins. */
typedef struct bench {
    int32_t rank;
    test_memory memory;
    train_plan plan;
    train_run run;
    exphil_optimizer *spare; /* of trainers that come and go */
    exphil_batch batch;
    struct thread_ranks *group[2]; /* the trainer is of one, and changes to the other */
    exphil_prefetcher *lanes[2];
    int other;
} bench;

typedef exphil_status (*operation)(bench *b, exphil_error *error);

/* One rank of the walk; what both came to is seen by both. */
typedef struct walk {
    struct thread_ranks *group[2];
    test_meeting *together;
    int32_t victim;
    exphil_status status[RANKS];
    exphil_error error[RANKS];
    bool reached;
    long long failed; /* calls, of the operation that is walked */
} walk;

/* ---- operations: each cleans up after itself when it went well ------------------------------------------------------ */

static exphil_status create(bench *b, exphil_error *error)
{
    exphil_trainer *trainer = NULL;
    exphil_status status =
        exphil_trainer_create(b->run.model, b->spare, b->run.prefetcher, &b->plan.trainer, &trainer, error);
    exphil_trainer_destroy(trainer);
    return status;
}

/* The first batch tells the shape. */
static exphil_status step_by_hand(bench *b, exphil_error *error)
{
    exphil_trainer *trainer = NULL;
    exphil_status status =
        exphil_trainer_create(b->run.model, b->spare, NULL, &b->plan.trainer, &trainer, error);
    if (status == EXPHIL_OK) status = exphil_trainer_step_batch(trainer, &b->batch, NULL, error);
    exphil_trainer_destroy(trainer);
    return status;
}

static exphil_status step(bench *b, exphil_error *error)
{
    return exphil_trainer_step(b->run.trainer, NULL, error);
}

static exphil_status save(bench *b, exphil_error *error)
{
    return exphil_trainer_save(b->run.trainer, test_path("walk"), error);
}

static exphil_status resume(bench *b, exphil_error *error)
{
    return exphil_trainer_resume(b->run.trainer, test_path("walk"), error);
}

static exphil_status agree(bench *b, exphil_error *error)
{
    double numbers[2] = {1.0, 2.0};
    return exphil_trainer_agree(b->run.trainer, numbers, 2, error);
}

static exphil_status change(bench *b, exphil_error *error)
{
    thread_rank *other = thread_ranks_of(b->group[b->other], b->rank);
    exphil_status status =
        exphil_trainer_set_communicator(b->run.trainer, &other->communicator, b->lanes[b->other], error);
    if (status == EXPHIL_OK) {
        b->run.prefetcher = b->lanes[b->other];
        b->plan.trainer.communicator = &other->communicator;
        b->other = !b->other;
    }
    return status;
}

static const struct {
    const char *name;
    operation run;
    bool allocates, moves; /* moves: it changes the trainer */
} operations[] = {
    {"create", create, true, false}, {"step by hand", step_by_hand, true, false},
    {"step", step, false, true},     {"save", save, true, false},
    {"resume", resume, true, false}, {"agree", agree, false, false},
    {"change", change, true, false},
};
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

/* ---- the walk ------------------------------------------------------------------------------------------------------- */

static void calm(bench *b, walk *w, int which)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_status status = operations[which].run(b, &error);
    if (status != EXPHIL_OK)
        fail_msg("rank %d, victim %d: %s: %s", b->rank, w->victim, operations[which].name, error.message);
    (void)test_meeting_come(w->together);
}

static void check_statuses(const walk *w, const char *name, long long at)
{
    const exphil_status own = w->status[w->victim], other = w->status[!w->victim];
    const exphil_error *error = &w->error[w->victim], *heard = &w->error[!w->victim];
    char words[64];
    if (own == EXPHIL_OK && other == EXPHIL_OK) return;
    if (own != EXPHIL_E_MEMORY || other != EXPHIL_E_IO)
        fail_msg("%s, allocation %lld of rank %d: %s (%s), the other %s (%s)", name, at, w->victim,
                 exphil_status_name(own), error->message, exphil_status_name(other), heard->message);
    snprintf(words, sizeof words, "rank %d failed with EXPHIL_E_MEMORY in ", w->victim);
    if (strncmp(heard->message, words, strlen(words)) != 0 || !error->message[0] ||
        !strstr(heard->message, error->message))
        fail_msg("%s, allocation %lld of rank %d: \"%s\", the other: \"%s\"", name, at, w->victim,
                 error->message, heard->message);
}

/* One attempt whose allocation number `at` fails on the victim; then one that goes well. */
static void attempt(bench *b, walk *w, int which, long long at, bool for_ever)
{
    const char *name = operations[which].name;
    const bool victim = b->rank == w->victim;
    size_t bytes[2];
    unsigned char *before = train_snapshot(b->run.trainer, &bytes[0]);
    const long long live = atomic_load(&b->memory.live), calls = atomic_load(&b->memory.calls);
    exphil_error *error = &w->error[b->rank];
    *error = (exphil_error)EXPHIL_ERROR_INIT;
    b->memory.fail_on = for_ever;
    b->memory.fail_at = victim ? calls + at : 0;
    const exphil_status status = operations[which].run(b, error);
    b->memory.fail_at = 0;
    w->status[b->rank] = status;
    if (victim) w->reached = atomic_load(&b->memory.calls) >= calls + at;
    (void)test_meeting_come(w->together);
    check_statuses(w, name, at);
    if (victim) w->failed += status != EXPHIL_OK;
    if (status != EXPHIL_OK) calm(b, w, which);
    unsigned char *after = train_snapshot(b->run.trainer, &bytes[1]);
    if (!operations[which].moves && (bytes[0] != bytes[1] || memcmp(before, after, bytes[0]) != 0))
        fail_msg("%s, allocation %lld of rank %d: the trainer of rank %d is another", name, at, w->victim,
                 b->rank);
    if (atomic_load(&b->memory.live) != live)
        fail_msg("%s, allocation %lld of rank %d: rank %d leaks", name, at, w->victim, b->rank);
    free(before);
    free(after);
}

static void walk_operation(bench *b, walk *w, int which, bool for_ever)
{
    const char *name = operations[which].name;
    (void)test_meeting_come(w->together);
    if (b->rank == w->victim) w->failed = 0;
    calm(b, w, which); /* what is made once for good, is made now */
    bool goes_on = true;
    for (long long at = 1; goes_on && at < MOST; at++) {
        attempt(b, w, which, at, for_ever);
        goes_on = w->reached;
        (void)test_meeting_come(w->together);
    }
    if (b->rank != w->victim) return;
    print_message("rank %d, %-12s fails at %lld of its allocations\n", w->victim, name, w->failed);
    assert_true(!goes_on && (w->failed > 0) == operations[which].allocates);
}

static void bench_make(bench *b, thread_rank *rank)
{
    const walk *w = rank->user;
    *b = (bench){.rank = rank->rank, .group = {w->group[0], w->group[1]}, .other = 1};
    test_memory_init(&b->memory);
    train_plan plan = train_plan_of("lstm ffn", EXPHIL_MODE_CARRY);
    plan.sampling.batch = 4;
    plan.sampling.time = 5;
    plan.episodes = 3;
    plan.adam.ema_decay = 0.9;
    plan.trainer.accumulate = 2;
    plan.trainer.own_past = 0.2;
    plan.memory = &b->memory;
    b->plan = ranks_case_plan(&plan, thread_ranks_of(w->group[0], rank->rank));
    b->run = train_begin(&b->plan);
    b->lanes[0] = b->run.prefetcher;
    exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
    assert_ok(exphil_model_sampling(b->run.model, &sampling, NULL));
    sampling.batch = plan.sampling.batch;
    sampling.time = plan.sampling.time;
    sampling.seed = plan.sampling.seed;
    assert_ok(exphil_rank_lanes(4, rank->rank, RANKS, &sampling.first_lane, &sampling.lane_count, NULL));
    assert_ok(exphil_prefetcher_create(b->run.dataset, &sampling, &b->lanes[1], NULL));
    assert_ok(exphil_optimizer_create(b->run.model, &b->plan.adam, &b->spare, NULL));
    b->batch = train_batch(b->run.model, 2, 5, 2 * rank->rank);
    (void)train_steps(&b->run, 2);
}

static void bench_free(bench *b)
{
    exphil_prefetcher_destroy(b->lanes[b->other]);
    exphil_optimizer_destroy(b->spare);
    train_batch_free(&b->batch);
    train_end(&b->run);
    assert_memory_clean(&b->memory);
}

static void one_rank(thread_rank *rank)
{
    walk *w = rank->user;
    bench b;
    bench_make(&b, rank);
    for (int i = 0; i < OPERATIONS; i++) {
        walk_operation(&b, w, i, false);
        walk_operation(&b, w, i, true);
    }
    (void)train_steps(&b.run, 2);
    thread_ranks_leave(thread_ranks_of(b.group[0], b.rank));
    thread_ranks_leave(thread_ranks_of(b.group[1], b.rank));
    bench_free(&b);
}

static void a_rank_without_memory(int32_t victim)
{
    walk w = {.victim = victim};
    void *user[RANKS] = {&w, &w};
    (void)test_folder();
    w.together = test_meeting_make(RANKS);
    for (int i = 0; i < 2; i++) w.group[i] = thread_ranks_open(RANKS, (thread_how){0, -1, false});
    thread_ranks_run(RANKS, one_rank, user, (thread_how){0, -1, false});
    for (int i = 0; i < 2; i++) thread_ranks_close(w.group[i]);
    test_meeting_free(w.together);
    test_folder_remove();
}

static void the_first_has_no_memory(void **state)
{
    a_rank_without_memory(0);
}

static void the_second_has_no_memory(void **state)
{
    a_rank_without_memory(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_has_no_memory),
        cmocka_unit_test(the_second_has_no_memory),
    };
    test_end_after(1200); /* only what hangs */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
