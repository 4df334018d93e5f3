/* Attack: memory refused at the n-th allocation on rank 1 of two, for each call that all ranks make. Prints what disagrees. */
#include "ranks_case.h"

#include <exphil/ranks.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { STEP, SAVE, RESUME, SET, AGREE, OPS };
static const char *const op_name[] = {"step", "save", "resume", "set_communicator", "agree"};

typedef struct shot {
    int op;
    long long n;
    long long made; /* allocations of rank 1 in the call */
    bool fresh;     /* save and resume without an update before */
    struct thread_ranks *others;
    exphil_status first[2], second[2], later[2];
    exphil_error e1[2], e2[2], e3[2];
    unsigned char *after[2], *end[2];
    size_t bytes[2], ebytes[2];
    bool moved[2];
    void *weights[2];
    size_t arena;
    int64_t epoch[2], index[2];
} shot;

static train_plan plan_of(void)
{
    train_plan plan = train_plan_of("lstm", EXPHIL_MODE_CARRY);
    plan.sampling.batch = 5;
    plan.adam.ema_decay = 0.9;
    plan.trainer.accumulate = 2;
    plan.trainer.own_past = 0.2;
    return plan;
}

static exphil_prefetcher *lanes_of(const train_run *run, const train_plan *plan, int32_t r, int32_t ranks)
{
    exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
    exphil_prefetcher *prefetcher = NULL;
    assert_ok(exphil_model_sampling(run->model, &sampling, NULL));
    sampling.batch = plan->sampling.batch;
    sampling.time = plan->sampling.time;
    sampling.seed = plan->sampling.seed;
    assert_ok(exphil_rank_lanes(sampling.batch, r, ranks, &sampling.first_lane, &sampling.lane_count, NULL));
    assert_ok(exphil_prefetcher_create(run->dataset, &sampling, &prefetcher, NULL));
    return prefetcher;
}

static exphil_status call(const shot *s, thread_rank *rank, train_run *run, exphil_prefetcher *next,
                          exphil_error *error)
{
    double number = 1.0 + rank->rank;
    *error = (exphil_error)EXPHIL_ERROR_INIT;
    switch (s->op) {
    case STEP: return exphil_trainer_step(run->trainer, NULL, error);
    case SAVE: return exphil_trainer_save(run->trainer, test_path("again"), error);
    case RESUME: return exphil_trainer_resume(run->trainer, test_path("kept"), error);
    case SET: {
        thread_rank *other = thread_ranks_of(s->others, 1 - rank->rank);
        return exphil_trainer_set_communicator(run->trainer, &other->communicator, next, error);
    }
    default: return exphil_trainer_agree(run->trainer, &number, 1, error);
    }
}

static long long cancel_calls, cancel_at;
static int victim = 1;
static bool cancels; /* in the place of memory */
static int32_t cancel(void *user)
{
    return __atomic_add_fetch(&cancel_calls, 1, __ATOMIC_SEQ_CST) >= cancel_at && cancel_at;
}
static pthread_mutex_t path_lock = PTHREAD_MUTEX_INITIALIZER;

static void one(thread_rank *rank)
{
    shot *s = rank->user;
    int r = rank->rank;
    test_memory memory;
    train_plan plan = plan_of(), own = ranks_case_plan(&plan, rank);
    test_memory_init(&memory);
    const bool odd = victim == r;
    if (odd && cancels) own.cancel = cancel;
    if (odd && !cancels) own.memory = &memory;
    train_run run = train_begin(&own);
    exphil_prefetcher *next = s->op == SET ? lanes_of(&run, &plan, 1 - r, 2) : NULL;
    if (!s->fresh) (void)train_steps(&run, 3);
    if (s->op == RESUME) {
        assert_ok(exphil_trainer_save(run.trainer, test_path("kept"), NULL));
        (void)train_steps(&run, 2);
    }
    usleep(2000); /* the prefetcher is at rest */
    long long before = atomic_load(&memory.calls);
    if (odd && s->n) memory.fail_at = before + s->n;
    if (odd && cancels) before = cancel_calls, cancel_at = s->n ? before + s->n : 0;
    s->first[r] = call(s, rank, &run, next, &s->e1[r]);
    memory.fail_at = 0;
    if (odd) s->made = (cancels ? cancel_calls : atomic_load(&memory.calls)) - before;
    if (odd) cancel_at = 0;
    if (s->op == SET && s->first[r] == EXPHIL_E_IO)
        s->moved[r] = run.trainer->communicator.user == thread_ranks_of(s->others, 1 - r);
    s->after[r] = train_snapshot(run.trainer, &s->bytes[r]);
    s->second[r] = s->first[0] < 0 || s->first[r] < 0 ? call(s, rank, &run, next, &s->e2[r]) : EXPHIL_OK;
    for (int i = 0; i < 3 && s->later[r] >= 0; i++) s->later[r] = exphil_trainer_step(run.trainer, NULL, &s->e3[r]);
    s->end[r] = train_snapshot(run.trainer, &s->ebytes[r]);
    s->arena = run.trainer->arena_bytes;
    if (s->op == SET) thread_ranks_leave(thread_ranks_of(s->others, 1 - r));
    thread_ranks_leave(rank);
    train_end(&run);
    exphil_prefetcher_destroy(next);
    if (odd && (atomic_load(&memory.live) || atomic_load(&memory.wrong)))
        printf("   %s n=%lld: leak or wrong free: live %lld wrong %lld\n", op_name[s->op], s->n,
               (long long)memory.live, (long long)memory.wrong);
}

static shot shoot(int op, long long n, bool fresh)
{
    shot s = {.op = op, .n = n, .fresh = fresh};
    void *user[2] = {&s, &s};
    if (op == SET) s.others = thread_ranks_open(2, (thread_how){0, -1, false});
    thread_ranks_run(2, one, user, (thread_how){0, -1, false});
    if (op == SET) thread_ranks_close(s.others);
    return s;
}

static void drop(shot *s)
{
    for (int r = 0; r < 2; r++) free(s->after[r]), free(s->end[r]);
}

static void sweep(int op, bool fresh)
{
    shot good = shoot(op, 0, fresh);
    printf("%s%s: %lld allocations; undisturbed %d %d later %d %d\n", op_name[op], fresh ? " fresh" : "", good.made,
           good.first[0], good.first[1], good.later[0], good.later[1]);
    for (long long n = getenv("N") ? atoi(getenv("N")) : 1; n <= (getenv("N") ? atoi(getenv("N")) : good.made + 1); n++) {
        shot s = shoot(op, n, fresh);
        bool split = (s.first[0] < 0) != (s.first[1] < 0);
        bool stuck = s.second[0] < 0 || s.second[1] < 0 || s.later[0] < 0 || s.later[1] < 0;
        bool differ = !stuck && (s.ebytes[0] < s.arena || memcmp(s.end[0], s.end[1], 4 * s.arena) != 0);
        bool drift = !stuck && op != RESUME && op != STEP && memcmp(s.end[0], good.end[0], 4 * good.arena) != 0;
        if (s.first[0] < 0 || s.first[1] < 0 || split || stuck || differ)
            printf(" n=%lld: first %s | %s%s%s%s%s\n", n, s.e1[0].message, s.e1[1].message, split ? "  SPLIT" : "",
                   stuck ? "  STUCK" : "", differ ? "  WEIGHTS DIFFER" : "", drift ? "  DRIFT" : "");
        if (s.moved[0] || s.moved[1]) printf("      E_IO, and the communicator is the new one\n");
        if (stuck)
            printf("      second %d %d (%s | %s), later %d %d (%s | %s)\n", s.second[0], s.second[1], s.e2[0].message,
                   s.e2[1].message, s.later[0], s.later[1], s.e3[0].message, s.e3[1].message);
        fflush(stdout);
        drop(&s);
    }
    drop(&good);
}

int main(int argc, char **argv)
{
    alarm(300);
    (void)path_lock;
    printf("%s\n", test_folder());
    if (getenv("VICTIM")) victim = atoi(getenv("VICTIM"));
    for (int op = 0; op < OPS; op++)
        if (argc < 2 || strchr(argv[1], '0' + op)) sweep(op, false);
    cancels = true;
    printf("cancelled\n");
    for (int op = 0; op < OPS; op++)
        if (argc < 2 || strchr(argv[1], 'a' + op)) sweep(op, false);
    cancels = false;
    if (argc < 2) {
        sweep(SET, true);
        sweep(SAVE, true);
    }
    test_folder_remove();
    return 0;
}
