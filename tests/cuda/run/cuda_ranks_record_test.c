/* Updates of ranks with an emulated GPU each, in which the sum is recorded with the rest: one replay and no more, the bits of
 * updates that are not recorded, and nothing changed by one that is stopped, wherever that is. */
#include "emulated.h"
#include "thread_ranks.h"
#include "train_case.h"

#include <exphil/ranks.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 4, UPDATES = 7, PATIENT = 120000, REFUSAL = 7 };
/* How an update is stopped. */
enum { NEVER, BY_STATE, BY_LIMIT, BY_ABORT, BEFORE };

/* A host's communicator, before that of the library. */
typedef struct relay {
    exphil_device_communicator inner;
    exphil_ranks *ranks;
    atomic_bool refuses; /* to be recorded */
    atomic_bool says_ok; /* whatever the other says */
    atomic_bool gone;    /* it says so */
    int64_t gone_at;     /* and from this exchange of rank 0 on; 0: never */
    int64_t
        waits_at; /* its host waits when it has come to this exchange, until another has given up; 0: it does not */
    const atomic_bool *until;
    bool too_late; /* its abort ends nothing any more */
    atomic_bool gave_up;
    atomic_int enqueued, recorded;
} relay;

typedef struct group {
    train_plan plan;
    int32_t ranks, sums;
    int32_t flags[MOST];  /* what the host takes away of them */
    bool refuses[MOST];   /* the host */
    int32_t stops, limit; /* how; of the communicators, in ms, or 0 */
    int64_t at;           /* updates before the one that is stopped */
    int64_t run;          /* exchanges of it before the one that hangs */
    int32_t who;          /* where it hangs */
    int64_t updates;      /* 0: UPDATES */
    int timing;           /* after EMU_LAZY */
    bool split;           /* forward and backward are calls of their own */
    bool open;            /* nobody looks whether the host touches memory of a device: that takes long */
    /* what comes of it */
    relay relays[MOST];
    uint8_t id[EXPHIL_RANKS_ID_BYTES];
    pthread_barrier_t all;
    double losses[MOST][UPDATES];
    unsigned char *end[MOST];
    size_t bytes;
} group;

static fake_nccl *fake;
static char logged[MOST][1024];

#define WANT(condition)   want(condition, __LINE__, #condition, NULL)
#define WENT(call, error) want((call) >= 0, __LINE__, #call, error)

/* In threads, where cmocka's own end nothing, and other ranks would wait. */
static void want(bool condition, int line, const char *words, const exphil_error *error)
{
    if (condition) return;
    const char *fault = emulated_gpu()->fault();
    fprintf(stderr, "%s:%d: %s\nerror: %s\nstand-in: %s\nemulated GPU: %s\n", __FILE__, line, words,
            error ? error->message : "", fake->said, fault ? fault : "");
    _exit(1);
}

static void keep_log(void *user, exphil_log_level level, const char *message)
{
    char *log = user;
    const size_t used = strlen(log);
    if (strstr(message, "device_communicator"))
        snprintf(log + used, sizeof logged[0] - used, "%s\n", message);
}

/* ---- the host's communicator ------------------------------------------------------------------------------------ */

static int32_t all_reduce(void *user, void *data, int64_t count, int32_t type, void *stream)
{
    relay *r = user;
    const bool recorded = fake->capturing(stream) != 0;
    if (recorded && atomic_load(&r->refuses)) return REFUSAL;
    atomic_fetch_add(recorded ? &r->recorded : &r->enqueued, 1);
    return r->inner.all_reduce(r->inner.user, data, count, type, stream);
}

static int32_t state(void *user)
{
    const struct timespec little = {0, 100000};
    relay *r = user;
    if (r->waits_at && atomic_load(&fake->runs[1]) >= r->waits_at)
        while (!atomic_load(r->until)) nanosleep(&little, NULL);
    if (atomic_load(&r->says_ok)) return EXPHIL_RANKS_OK;
    if (r->gone_at && atomic_load(&fake->runs[0]) >= r->gone_at) return EXPHIL_RANKS_FAILED;
    return atomic_load(&r->gone) ? EXPHIL_RANKS_FAILED : r->inner.state(r->inner.user);
}

static void give_up(void *user)
{
    relay *r = user;
    if (!r->too_late) r->inner.abort(r->inner.user);
    atomic_store(&r->gave_up, true);
}

/* By all ranks at once. */
static void open_ranks(group *g, int32_t rank, exphil_context *context)
{
    exphil_ranks_config config = EXPHIL_RANKS_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    relay *r = &g->relays[rank];
    config.id = g->id;
    config.context = context;
    config.piece_bytes = 1 << 20; /* 64 MiB take long to be forbidden */
    config.rank = rank;
    config.ranks = g->ranks;
    config.sums = g->sums;
    config.timeout_ms = PATIENT;
    r->inner = (exphil_device_communicator)EXPHIL_DEVICE_COMMUNICATOR_INIT;
    WENT(exphil_ranks_open(&config, &r->ranks, &error), &error);
    WENT(exphil_ranks_communicator(r->ranks, &r->inner, &error), &error);
}

static exphil_device_communicator communicator_of(group *g, int32_t rank)
{
    exphil_device_communicator with = g->relays[rank].inner;
    with.user = &g->relays[rank];
    with.all_reduce = all_reduce;
    with.state = state;
    with.abort = give_up;
    with.flags &= ~g->flags[rank];
    if (g->limit) with.timeout_ms = g->limit;
    return with;
}

static void make_id(group *g)
{
    exphil_context *context = emulated_context();
    exphil_error error = EXPHIL_ERROR_INIT;
    WENT(exphil_ranks_id(context, g->id, &error), &error);
    exphil_context_destroy(context);
}

/* ---- one rank ------------------------------------------------------------------------------------------------------ */

static void meet(group *g)
{
    pthread_barrier_wait(&g->all);
}

static train_run begin(group *g, thread_rank *rank)
{
    static const char *const devices[] = {"cuda:0", "cuda:1", "cuda:2", "cuda:3"};
    train_plan own = g->plan;
    exphil_error error = EXPHIL_ERROR_INIT;
    own.by_hand = g->split;
    own.device = devices[rank->rank];
    own.log = keep_log;
    own.log_user = logged[rank->rank];
    own.log_level = EXPHIL_LOG_INFO;
    logged[rank->rank][0] = 0;
    WENT(exphil_rank_lanes(own.sampling.batch, rank->rank, rank->ranks, &own.sampling.first_lane,
                           &own.sampling.lane_count, NULL),
         NULL);
    own.trainer.shards = 0;
    train_run run =
        train_begin(&own); /* of the trainer a second one is made: only a model says how much is summed */
    exphil_trainer_destroy(run.trainer);
    open_ranks(g, rank->rank, run.context);
    atomic_store(&g->relays[rank->rank].refuses, g->refuses[rank->rank]);
    const exphil_device_communicator with = communicator_of(g, rank->rank);
    own.trainer.device_communicator = &with;
    own.trainer.reduction = EXPHIL_REDUCTION_SUMS;
    own.trainer.shards = g->plan.trainer.shards;
    WENT(exphil_trainer_create(run.model, run.optimizer, run.prefetcher, &own.trainer, &run.trainer, &error),
         &error);
    return run;
}

static void end(group *g, int32_t rank, train_run *run)
{
    exphil_trainer_destroy(run->trainer);
    run->trainer = NULL;
    exphil_ranks_destroy(g->relays[rank].ranks);
    train_end(run);
}

/* The ranks of one that is at its end come together anew. What was recorded holds sums of the old group. */
static void renew(group *g, int32_t rank, const train_run *run)
{
    relay *r = &g->relays[rank];
    xph_trainer_forget(run->trainer);
    exphil_ranks_destroy(r->ranks);
    meet(g);
    if (rank == 0) {
        make_id(g);
        memset(fake->fault, 0, sizeof fake->fault);
        atomic_store(&fake->hung, 0);
    }
    atomic_store(&r->says_ok, false);
    atomic_store(&r->gone, false);
    r->gone_at = r->waits_at = 0;
    r->too_late = false;
    meet(g);
    open_ranks(g, rank, run->context);
}

/* The loss of the host's is half the sum of the squares of logits. */
static exphil_status by_halves(const group *g, int32_t rank, const train_run *run, exphil_metrics *metrics,
                               exphil_error *error)
{
    exphil_batch batch = train_batch(run->model, 3, 6, rank);
    exphil_forward given = EXPHIL_FORWARD_INIT;
    WENT(exphil_trainer_forward(run->trainer, &batch, NULL, 0, &given, error), error);
    const exphil_status status =
        exphil_trainer_backward(run->trainer, given.logits, NULL, 1.0, metrics, error);
    train_batch_free(&batch);
    return status;
}

static exphil_status update_of(const group *g, int32_t rank, const train_run *run, exphil_metrics *metrics,
                               exphil_error *error)
{
    return g->split ? by_halves(g, rank, run, metrics, error)
                    : exphil_trainer_step(run->trainer, metrics, error);
}

/* ---- an update that is stopped ---------------------------------------------------------------------------------- */

/* Once it hangs. */
static void *stop_it(void *of)
{
    const struct timespec little = {0, 100000};
    group *g = of;
    while (!atomic_load(&fake->hung)) nanosleep(&little, NULL);
    for (int32_t r = 0; r < g->ranks; r++) {
        if (g->stops == BY_ABORT) give_up(&g->relays[r]);
        if (g->stops == BY_STATE) atomic_store(&g->relays[r].gone, true);
    }
    return NULL;
}

/* Or it was still in the meeting, or could not enqueue its sum any more. */
static bool says_why(int32_t stops, const char *message)
{
    static const char *const words[] = {[BY_STATE] = "a rank is gone",
                                        [BY_LIMIT] = "ms for the others",
                                        [BY_ABORT] = "no sum of all ranks",
                                        [BEFORE] = "all_reduce failed"};
    return strstr(message, words[stops]) || strstr(message, "all_reduce failed");
}

static void prepare(group *g, int32_t rank, pthread_t *other)
{
    if (g->stops == BEFORE) give_up(&g->relays[rank]);
    meet(g);
    if (rank == 0 && g->stops != BEFORE) {
        fake->fault[g->who].hangs_at = atomic_load(&fake->runs[g->who]) + 1 + g->run;
        for (int32_t r = 0; r < g->ranks; r++) atomic_store(&g->relays[r].says_ok, g->stops == BY_ABORT);
        WANT(pthread_create(other, NULL, stop_it, g) == 0);
    }
    meet(g);
}

static void stopped(group *g, int32_t rank, const train_run *run)
{
    pthread_t other;
    size_t bytes, after;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    unsigned char *was = train_snapshot(run->trainer, &bytes);
    prepare(g, rank, &other);
    const exphil_status status = update_of(g, rank, run, &metrics, &error);
    want(status == EXPHIL_E_IO && metrics.update == 0, __LINE__, "it is stopped", &error);
    want(says_why(g->stops, error.message), __LINE__, "it says why", &error);
    unsigned char *is = train_snapshot(run->trainer, &after);
    WANT(after == bytes && memcmp(was, is, bytes) == 0);
    meet(g);
    if (rank == 0 && g->stops != BEFORE) pthread_join(other, NULL);
    renew(g, rank, run);
    free(was);
    free(is);
}

static void one_rank(thread_rank *rank)
{
    group *g = rank->user;
    train_run run = begin(g, rank);
    const int64_t updates = g->updates ? g->updates : UPDATES;
    for (int64_t u = 0; u < updates; u++) {
        exphil_error error = EXPHIL_ERROR_INIT;
        exphil_metrics metrics = EXPHIL_METRICS_INIT;
        if (g->stops && u == g->at) stopped(g, rank->rank, &run);
        WENT(update_of(g, rank->rank, &run, &metrics, &error), &error);
        WANT(metrics.update == u + 1 && metrics.skipped == 0);
        g->losses[rank->rank][u] = metrics.loss;
    }
    g->end[rank->rank] = train_snapshot(run.trainer, &g->bytes);
    end(g, rank->rank, &run);
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static void run_group_as(group *g, thread_rank_fn fn, void *with)
{
    void *user[MOST] = {with, with, with, with};
    fake = emulated_nccl(MOST);
    memset(fake->fault, 0, sizeof fake->fault);
    atomic_store(&fake->hung, 0);
    emulated_gpu()->timing((EMU_LAZY + g->timing) % EMU_TIMINGS, 1);
    emulated_gpu()->protect(!g->open && g->stops == NEVER); /* what is stopped has run whole elsewhere */
    make_id(g);
    assert_int_equal(pthread_barrier_init(&g->all, NULL, (unsigned)g->ranks), 0);
    thread_ranks_run(g->ranks, fn, user, (thread_how){0, -1, false});
    pthread_barrier_destroy(&g->all);
    if (fake->said[0]) fail_msg("NCCL was used wrongly: %s", fake->said);
    emulated_gpu()->devices(1, 0);
    assert_int_equal(atomic_load(&fake->alive), 0);
    emulated_clean();
}

static void run_group(group *g, thread_rank_fn fn)
{
    run_group_as(g, fn, g);
}

static void free_group(group *g)
{
    for (int r = 0; r < MOST; r++) free(g->end[r]);
}

/* All ranks have the weights of the first, and the losses of all. */
static void same_run(const group *a, const group *b)
{
    assert_int_equal(a->bytes, b->bytes);
    for (int32_t r = 0; r < a->ranks; r++) {
        assert_memory_equal(a->losses[r], b->losses[0], sizeof a->losses[r]);
        assert_memory_equal(a->end[r], b->end[r], a->bytes);
    }
}

static train_plan plan_of(const char *blocks, int32_t mode)
{
    train_plan plan = train_plan_of(blocks, mode);
    plan.sampling.batch = 8;
    plan.adam.ema_decay = 0.9;
    plan.backend_path = EMULATED_FOLDER;
    if (mode == EXPHIL_MODE_WINDOW) return plan;
    plan.sampling.segment_frames = 25;
    plan.sampling.time = 6;
    return plan;
}

static train_plan with_shards(void)
{
    train_plan plan = plan_of("gru", EXPHIL_MODE_CARRY);
    plan.trainer.shards = 4;
    return plan;
}

static train_plan with_own_past(int32_t mode)
{
    train_plan plan = plan_of(mode == EXPHIL_MODE_CARRY ? "mamba gru" : "attention", mode);
    plan.sampling.drop_past = 0.3;
    plan.trainer.own_past = 0.7;
    plan.trainer.own_past_seed = 9;
    return plan;
}

static train_plan with_several(const char *blocks)
{
    train_plan plan = plan_of(blocks, EXPHIL_MODE_CARRY);
    plan.trainer.accumulate = 3;
    return plan;
}

/* ---- one replay ---------------------------------------------------------------------------------------------------- */

typedef struct counted {
    emu_counts gpu;
    int exchanges, enqueued, recorded;
} counted;

static counted count_of(const group *g)
{
    counted c = {.gpu = emulated_gpu()->count(), .exchanges = atomic_load(&fake->exchanges)};
    for (int32_t r = 0; r < g->ranks; r++) {
        c.enqueued += atomic_load(&g->relays[r].enqueued);
        c.recorded += atomic_load(&g->relays[r].recorded);
    }
    return c;
}

/* What ranks do for an update, once all is recorded: a graph for each batch and a meeting before it, which is an exchange, the
 * kernel that adds up and another exchange. */
static void counts_are(const group *g, const counted *was, const counted *is)
{
    const int64_t batches = g->plan.trainer.accumulate ? g->plan.trainer.accumulate : 1;
    WANT(is->gpu.graph_launches - was->gpu.graph_launches == batches * g->ranks);
    WANT(is->gpu.launches - was->gpu.launches == 3 * batches * g->ranks);
    WANT(is->exchanges - was->exchanges == 2 * batches * g->ranks);
    WANT(is->enqueued - was->enqueued == batches * g->ranks);
    WANT(is->recorded == was->recorded);
    WANT(is->gpu.sets == was->gpu.sets && is->gpu.mallocs == was->gpu.mallocs);
    WANT(is->gpu.spins == was->gpu.spins);
}

static void counts_its_updates(thread_rank *rank)
{
    group *g = rank->user;
    train_run run = begin(g, rank);
    counted was = {.exchanges = 0}, is = was;
    train_steps(&run, 4);
    /* Gradients and losses of heads, by each parity of the batches that an update may end with. */
    WANT(atomic_load(&g->relays[rank->rank].recorded) == 4);
    for (int i = 0; i < 6; i++) {
        meet(g);
        if (rank->rank == 0) was = count_of(g);
        meet(g);
        train_steps(&run, 1);
        meet(g);
        if (rank->rank == 0) is = count_of(g);
        meet(g);
        if (rank->rank == 0) counts_are(g, &was, &is);
    }
    if (rank->rank == 0)
        print_message("a rank's update: %d graphs, %d launches, %d copies, %d calls that wait\n",
                      (int)(is.gpu.graph_launches - was.gpu.graph_launches) / g->ranks,
                      (int)(is.gpu.launches - was.gpu.launches) / g->ranks,
                      (int)(is.gpu.copies - was.gpu.copies) / g->ranks,
                      (int)(is.gpu.synchronisations - was.gpu.synchronisations) / g->ranks);
    end(g, rank->rank, &run);
}

static void an_update_is_one_replay(void **state)
{
    for (int i = 0; i < 2; i++) {
        group g = {.plan = i ? with_several("lstm") : plan_of("lstm", EXPHIL_MODE_CARRY), .ranks = 2 + 2 * i};
        run_group(&g, counts_its_updates);
        assert_int_equal(atomic_load(&fake->recorded) > 0, 1);
        for (int32_t r = 0; r < g.ranks; r++) assert_string_equal(logged[r], "");
    }
}

/* ---- the same bits ------------------------------------------------------------------------------------------------- */

static const char not_recorded[] =
    "trainer: sums of the device_communicator are not recorded, the host waits for "
    "each\n";
static const char refused[] =
    "trainer: all_reduce of the device_communicator refuses to be recorded (7), the host "
    "waits for sums\n";

/* Recorded, not recorded, refused by the host, and ranks that differ. */
static void same_bits(train_plan plan, int32_t ranks, int32_t sums)
{
    group g[4];
    for (int i = 0; i < 4; i++) {
        g[i] = (group){.plan = plan, .ranks = ranks, .sums = sums, .timing = i, .open = i > 0};
        for (int32_t r = 0; r < ranks; r++) {
            g[i].flags[r] = i == 1 || (i == 3 && r == 0) ? EXPHIL_RANKS_CAPTURABLE : 0;
            g[i].refuses[r] = i == 2 || (i == 3 && r == 1);
        }
        run_group(&g[i], one_rank);
        for (int32_t r = 0; r < ranks; r++) {
            assert_string_equal(logged[r], g[i].flags[r] ? not_recorded : g[i].refuses[r] ? refused : "");
            assert_int_equal(atomic_load(&g[i].relays[r].recorded), g[i].flags[r] || g[i].refuses[r] ? 0 : 4);
        }
        same_run(&g[i], &g[0]);
    }
    for (int i = 0; i < 4; i++) free_group(&g[i]);
}

static void recorded_or_not_the_bits_are_the_same(void **state)
{
    same_bits(plan_of("lstm", EXPHIL_MODE_CARRY), 2, EXPHIL_SUMS_ORDERED);
    same_bits(with_several("mamba"), 2, EXPHIL_SUMS_PLAIN);
    same_bits(with_own_past(EXPHIL_MODE_WINDOW), 2, EXPHIL_SUMS_ORDERED);
    same_bits(with_shards(), 4, EXPHIL_SUMS_TREE);
}

/* By the library below: it goes on. */
static void refuses_below(thread_rank *rank)
{
    group *g = rank->user;
    fake->fault[rank->rank].refuses = 5; /* invalid usage */
    one_rank(rank);
    WANT(g->relays[rank->rank].inner.flags & EXPHIL_RANKS_CAPTURABLE);
}

static void a_library_may_refuse(void **state)
{
    for (int plain = 0; plain <= 1; plain++) {
        group g = {.plan = plan_of("mlp", EXPHIL_MODE_CARRY),
                   .ranks = 2,
                   .sums = plain ? EXPHIL_SUMS_PLAIN : EXPHIL_SUMS_ORDERED};
        group one = g;
        run_group(&one, one_rank);
        run_group(&g, refuses_below);
        for (int32_t r = 0; r < 2; r++)
            if (!strstr(logged[r], "refuses to be recorded")) fail_msg("rank %d: %s", r, logged[r]);
        same_run(&g, &one);
        free_group(&one);
        free_group(&g);
    }
}

/* ---- stopped --------------------------------------------------------------------------------------------------------- */

/* In exchanges of one update's sums, each or every second, by one means and the other: then it goes on, and comes to what it
 * would have come to. */
static void stop_in(group plan, const int32_t means[2], int64_t every)
{
    const int64_t batches = plan.plan.trainer.accumulate ? plan.plan.trainer.accumulate : 1;
    const int64_t each = plan.sums == EXPHIL_SUMS_PLAIN ? 1 : 2; /* exchanges of a sum */
    group whole = plan;
    whole.open = true;
    run_group(&whole, one_rank);
    for (int64_t i = 0; i < 2 * each; i += every) {
        group g = plan;
        g.stops = means[i / every % 2];
        g.limit = g.stops == BY_LIMIT ? 10000 : 0;
        g.run = each * batches + i;
        g.who = (int32_t)(i % 2);
        run_group(&g, one_rank);
        same_run(&g, &whole);
        free_group(&g);
    }
    free_group(&whole);
}

static const int32_t both[] = {BY_STATE, BY_ABORT}, other_way[] = {BY_ABORT, BY_STATE},
                     by_state[] = {BY_STATE, BY_STATE};

static void a_stopped_replay_changes_nothing(void **state)
{
    stop_in((group){.plan = plan_of("lstm", EXPHIL_MODE_CARRY), .ranks = 2, .at = 5}, both, 1);
    stop_in((group){.plan = plan_of("mlp", EXPHIL_MODE_CARRY), .ranks = 2, .at = 4}, other_way, 1);
    stop_in((group){.plan = with_several("mamba"), .ranks = 2, .at = 4}, both, 2);
    stop_in(
        (group){.plan = plan_of("mlp", EXPHIL_MODE_CARRY), .ranks = 2, .sums = EXPHIL_SUMS_PLAIN, .at = 5},
        both, 1);
}

static void whatever_the_update_is(void **state)
{
    stop_in((group){.plan = with_shards(), .ranks = 4, .sums = EXPHIL_SUMS_TREE, .at = 5}, by_state, 3);
    stop_in((group){.plan = with_shards(), .ranks = 2, .sums = EXPHIL_SUMS_TREE, .at = 4}, both, 2);
    stop_in((group){.plan = with_own_past(EXPHIL_MODE_CARRY), .ranks = 2, .at = 4}, both, 2);
    stop_in((group){.plan = with_own_past(EXPHIL_MODE_WINDOW), .ranks = 2, .at = 4}, other_way, 2);
    stop_in((group){.plan = plan_of("lstm", EXPHIL_MODE_CARRY), .ranks = 2, .split = true, .at = 4}, both, 1);
}

/* Before anything is recorded, and the update with the first recording. */
static void so_does_one_that_is_not_recorded(void **state)
{
    stop_in((group){.plan = plan_of("lstm", EXPHIL_MODE_CARRY), .ranks = 2, .at = 0}, both, 1);
    stop_in((group){.plan = with_several("gru"), .ranks = 2, .at = 1}, both, 2);
}

/* The limit ends a hang; how long it is decides nothing. */
static void a_limit_ends_it(void **state)
{
    static const int32_t limit[] = {BY_LIMIT, BY_LIMIT};
    stop_in((group){.plan = plan_of("mlp", EXPHIL_MODE_CARRY), .ranks = 2, .at = 4}, limit, 4);
}

static void an_end_between_two_updates(void **state)
{
    static const int32_t before[] = {BEFORE, BEFORE};
    stop_in((group){.plan = plan_of("lstm", EXPHIL_MODE_CARRY), .ranks = 2, .at = 4}, before, 4);
}

/* ---- one is stopped alone ---------------------------------------------------------------------------------------- */

/* What one came to. */
typedef struct alone {
    group g;
    const group *before, *after; /* of runs without it, that many updates long, and one more */
    exphil_status status[2];
} alone;

/* Its communicator fails when the sum has begun: either the update is there, or nothing of it. The other's fails later. */
static void stops_alone(thread_rank *rank)
{
    alone *a = rank->user;
    group *g = &a->g;
    const int32_t r = rank->rank;
    train_run run = begin(g, rank);
    exphil_error error = EXPHIL_ERROR_INIT;
    size_t bytes;
    train_steps(&run, g->at);
    meet(g);
    if (r == 0) g->relays[0].gone_at = atomic_load(&fake->runs[0]) + 3;
    meet(g);
    a->status[r] = exphil_trainer_step(run.trainer, NULL, &error);
    if (r == 0) atomic_store(&g->relays[1].gone, true);
    unsigned char *is = train_snapshot(run.trainer, &bytes);
    want(a->status[r] == EXPHIL_OK || a->status[r] == EXPHIL_E_IO, __LINE__, "it is there or stopped",
         &error);
    WANT(memcmp(is, a->status[r] == EXPHIL_OK ? a->after->end[r] : a->before->end[r], bytes) == 0);
    meet(g);
    renew(g, r, &run);
    const bool same = a->status[0] == a->status[1];
    const exphil_status next = exphil_trainer_step(run.trainer, NULL, &error);
    want(next == (same ? EXPHIL_OK : EXPHIL_E_MISMATCH), __LINE__, "the next meeting knows", &error);
    WANT(same || strstr(error.message, "at update"));
    free(is);
    end(g, r, &run);
}

static void one_that_is_stopped_alone(void **state)
{
    group before = {.plan = plan_of("lstm", EXPHIL_MODE_CARRY), .ranks = 2, .updates = 4}, after = before;
    after.updates = 5;
    run_group(&before, one_rank);
    run_group(&after, one_rank);
    for (int i = 0; i < 5; i++) {
        alone a = {.g = {.plan = before.plan, .ranks = 2, .at = 4}, .before = &before, .after = &after};
        run_group_as(&a.g, stops_alone, &a);
    }
    free_group(&before);
    free_group(&after);
}

/* Rank 0 gives up before rank 1 has begun, but its sum comes to an end all the same: what it was told counts. */
static void gives_up_too_early(thread_rank *rank)
{
    alone *a = rank->user;
    group *g = &a->g;
    const int32_t r = rank->rank;
    train_run run = begin(g, rank);
    exphil_error error = EXPHIL_ERROR_INIT;
    size_t bytes;
    train_steps(&run, g->at);
    meet(g);
    if (r == 0) {
        g->relays[0].gone_at = atomic_load(&fake->runs[0]) + 3;
        g->relays[0].too_late = true;
        g->relays[1].until = &g->relays[0].gave_up;
        g->relays[1].waits_at = atomic_load(&fake->runs[1]) + 2;
    }
    meet(g);
    const exphil_status status = exphil_trainer_step(run.trainer, NULL, &error);
    want(status == (r ? EXPHIL_OK : EXPHIL_E_IO), __LINE__, "rank 0 is stopped, rank 1 is not", &error);
    WANT(r || strstr(error.message, "a rank is gone"));
    unsigned char *is = train_snapshot(run.trainer, &bytes);
    WANT(memcmp(is, r ? a->after->end[r] : a->before->end[r], bytes) == 0);
    meet(g);
    renew(g, r, &run);
    WANT(exphil_trainer_step(run.trainer, NULL, &error) == EXPHIL_E_MISMATCH);
    WANT(strcmp(error.message, "rank 1 is at update 5, rank 0 at 4") == 0);
    free(is);
    end(g, r, &run);
}

static void one_that_gives_up_too_early(void **state)
{
    group before = {.plan = plan_of("lstm", EXPHIL_MODE_CARRY), .ranks = 2, .updates = 4}, after = before;
    after.updates = 5;
    run_group(&before, one_rank);
    run_group(&after, one_rank);
    alone a = {.g = {.plan = before.plan, .ranks = 2, .at = 4}, .before = &before, .after = &after};
    run_group_as(&a.g, gives_up_too_early, &a);
    free_group(&before);
    free_group(&after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_update_is_one_replay),   cmocka_unit_test(recorded_or_not_the_bits_are_the_same),
        cmocka_unit_test(a_library_may_refuse),      cmocka_unit_test(a_stopped_replay_changes_nothing),
        cmocka_unit_test(whatever_the_update_is),    cmocka_unit_test(so_does_one_that_is_not_recorded),
        cmocka_unit_test(a_limit_ends_it),           cmocka_unit_test(an_end_between_two_updates),
        cmocka_unit_test(one_that_is_stopped_alone), cmocka_unit_test(one_that_gives_up_too_early),
    };
    cmocka_set_test_filter(getenv("ONLY"));
    setenv("EXPHIL_NCCL", EMULATED_NCCL, 1);
    setenv("EXPHIL_CUBLASLT", "none", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
