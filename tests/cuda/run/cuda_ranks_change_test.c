/* Ranks with an emulated GPU each, whose communicator failed, go on with other ranks: fewer, as many, more, one alone, by NCCL
 * or by a host's communicator. */
#include "emulated.h"
#include "ranks_case.h"

#include <exphil/ranks.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { BEFORE = 3, AFTER = 4, UPDATES = BEFORE + AFTER, LANES = 8, MOST = 4 };

static train_plan plan_of(const char *blocks, int32_t shards)
{
    train_plan plan = train_plan_of(blocks, EXPHIL_MODE_CARRY);
    plan.sampling.batch = LANES;
    plan.sampling.time = 6;
    plan.sampling.segment_frames = 25;
    plan.adam.ema_decay = 0.9;
    plan.trainer.shards = shards;
    plan.trainer.reduction = EXPHIL_REDUCTION_SUMS;
    plan.backend_path = EMULATED_FOLDER;
    plan.device = "cuda:0";
    return plan;
}

/* How ranks add up: each alone, by the stand-in for NCCL, by a host's communicator. */
typedef enum sums_by { ALONE, NCCL, HOST } sums_by;

/* What ends the first communicator: nothing, ranks that are gone, or the hosts of all. */
typedef enum ending { STAYS, GONE, ABORTED } ending;

/* `ranks` train; those from `left` on are gone, or have not come yet; the others go on with each other. */
typedef struct scene {
    const char *blocks;
    int32_t ranks, left, sums, shards;
    sums_by first, then;
    ending end;
    uint8_t id[2][EXPHIL_RANKS_ID_BYTES];
    struct thread_ranks *others;
    pthread_barrier_t together;
    double loss[MOST][UPDATES];
    unsigned char *all[MOST];
    size_t bytes, arena; /* of all, and of the weights in front */
    int64_t place[MOST][2];
    char said[MOST][256]; /* the last warning */
} scene;

static void hear(void *user, exphil_log_level level, const char *message)
{
    if (level == EXPHIL_LOG_WARNING) snprintf(user, sizeof((scene *)NULL)->said[0], "%s", message);
}

/* ---- one rank ------------------------------------------------------------------------------------------------------- */

/* What a rank holds of one group. */
typedef struct member {
    exphil_ranks *ranks;
    exphil_device_communicator with;
} member;

#define CHECK(call)                                                                                          \
  do {                                                                                                       \
    exphil_error error_ = EXPHIL_ERROR_INIT, *error = &error_;                                               \
    if ((call) < 0) fail_msg("%s: %s", #call, error_.message);                                               \
  } while (0)

static member join(const scene *s, exphil_context *context, int which, int32_t rank, int32_t ranks)
{
    exphil_ranks_config config = EXPHIL_RANKS_CONFIG_INIT;
    member m = {.with = EXPHIL_DEVICE_COMMUNICATOR_INIT};
    config.id = s->id[which];
    config.context = context;
    config.piece_bytes = 1 << 20; /* 64 MiB take long to be forbidden */
    config.rank = rank;
    config.ranks = ranks;
    config.sums = s->sums;
    config.timeout_ms = 120000;
    CHECK(exphil_ranks_open(&config, &m.ranks, error));
    CHECK(exphil_ranks_communicator(m.ranks, &m.with, error));
    return m;
}

static exphil_prefetcher *lanes_of(const train_run *run, const train_plan *plan, int32_t rank, int32_t ranks)
{
    exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
    exphil_prefetcher *prefetcher = NULL;
    CHECK(exphil_model_sampling(run->model, &sampling, error));
    sampling.batch = plan->sampling.batch;
    sampling.time = plan->sampling.time;
    sampling.seed = plan->sampling.seed;
    sampling.segment_frames = plan->sampling.segment_frames;
    CHECK(exphil_rank_lanes(sampling.batch, rank, ranks, &sampling.first_lane, &sampling.lane_count, error));
    CHECK(exphil_prefetcher_create(run->dataset, &sampling, &prefetcher, error));
    return prefetcher;
}

static train_run begin(scene *s, thread_rank *rank, train_plan plan, sums_by by, member *m)
{
    char device[16];
    snprintf(device, sizeof device, "cuda:%d", rank->rank);
    plan.device = device;
    plan.log = hear;
    plan.log_user = s->said[rank->rank];
    plan.log_level = EXPHIL_LOG_WARNING;
    if (by == ALONE) return train_begin(&plan);
    train_plan own = ranks_case_plan(&plan, rank), single = own;
    single.trainer.communicator = NULL;
    single.trainer.shards = 0;
    train_run run = train_begin(&single);
    exphil_trainer_destroy(run.trainer);
    run.trainer = NULL;
    if (by == NCCL) {
        *m = join(s, run.context, 0, rank->rank, rank->ranks);
        own.trainer.device_communicator = &m->with;
        own.trainer.communicator = NULL;
    }
    CHECK(exphil_trainer_create(run.model, run.optimizer, run.prefetcher, &own.trainer, &run.trainer, error));
    return run;
}

/* Metrics are those of the update before, where the host is ahead: alone, or with a host's communicator. */
static void train(scene *s, int32_t rank, const train_run *run, int updates)
{
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    for (int u = 0; u < updates; u++) {
        CHECK(exphil_trainer_step(run->trainer, &metrics, error));
        s->loss[rank][metrics.update - 1] = metrics.loss;
    }
    CHECK(xph_trainer_settle(run->trainer, error));
    s->loss[rank][run->trainer->metrics.update - 1] = run->trainer->metrics.loss;
}

static void keep(scene *s, int32_t rank, const train_run *run)
{
    size_t bytes;
    s->all[rank] = train_snapshot(run->trainer, &bytes);
    s->arena = run->trainer->arena_bytes;
    s->place[rank][0] = run->trainer->epoch;
    s->place[rank][1] = run->trainer->index;
    if (rank == 0) s->bytes = bytes;
}

/* The update that finds it out changes nothing. */
static void find_out(const scene *s, const train_run *run, const member *m)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    size_t bytes[2];
    if (s->end == STAYS) return;
    unsigned char *before = train_snapshot(run->trainer, &bytes[0]);
    if (s->end == ABORTED) m->with.abort(m->with.user);
    assert_int_equal(exphil_trainer_step(run->trainer, NULL, &error), EXPHIL_E_IO);
    assert_says(&error, "communicator");
    assert_int_equal(exphil_trainer_step(run->trainer, NULL, &error), EXPHIL_E_IO);
    assert_int_equal(m->with.state(m->with.user), EXPHIL_RANKS_FAILED);
    unsigned char *after = train_snapshot(run->trainer, &bytes[1]);
    assert_int_equal(bytes[0], bytes[1]);
    assert_memory_equal(before, after, bytes[0]);
    free(before);
    free(after);
}

/* The next communicator is the trainer's, the first one nobody's. */
static void change(scene *s, thread_rank *rank, const train_plan *plan, train_run *run, member *m)
{
    exphil_prefetcher *next = lanes_of(run, plan, rank->rank, s->left);
    member other = {.ranks = NULL};
    if (s->then == NCCL) other = join(s, run->context, 1, rank->rank, s->left);
    if (s->then == NCCL)
        CHECK(exphil_trainer_set_device_communicator(run->trainer, &other.with, next, error));
    else
        CHECK(exphil_trainer_set_communicator(
            run->trainer, s->then == HOST ? &thread_ranks_of(s->others, rank->rank)->communicator : NULL,
            next, error));
    exphil_prefetcher_destroy(run->prefetcher);
    run->prefetcher = next;
    exphil_ranks_destroy(m->ranks);
    *m = other;
}

static void leave(train_run *run, member *m)
{
    exphil_trainer_destroy(run->trainer);
    run->trainer = NULL;
    exphil_ranks_destroy(m->ranks);
    train_end(run);
}

static void one_rank(thread_rank *rank)
{
    scene *s = rank->user;
    member m = {.ranks = NULL};
    train_plan plan = plan_of(s->blocks, s->shards);
    train_run run = begin(s, rank, plan, s->first, &m);
    train(s, rank->rank, &run, BEFORE);
    pthread_barrier_wait(&s->together);
    if (rank->rank < s->left) {
        find_out(s, &run, &m);
        if (s->end != STAYS || s->then != s->first || s->left < s->ranks) change(s, rank, &plan, &run, &m);
        train(s, rank->rank, &run, AFTER);
        keep(s, rank->rank, &run);
        if (s->then == HOST) thread_ranks_leave(thread_ranks_of(s->others, rank->rank));
    } else if (s->first == NCCL) {
        m.with.abort(m.with.user);
    }
    leave(&run, &m);
}

/* Rank 0 trains alone and saves; the others resume that alone, and all go on together. */
static void comes_later(thread_rank *rank)
{
    scene *s = rank->user;
    member m = {.ranks = NULL};
    train_plan plan = plan_of(s->blocks, s->shards);
    train_run run = begin(s, rank, plan, ALONE, &m);
    if (rank->rank == 0) {
        train(s, 0, &run, BEFORE);
        CHECK(exphil_trainer_save(run.trainer, test_path("later"), error));
    }
    pthread_barrier_wait(&s->together);
    if (rank->rank) CHECK(exphil_trainer_resume(run.trainer, test_path("later"), error));
    change(s, rank, &plan, &run, &m);
    train(s, rank->rank, &run, AFTER);
    keep(s, rank->rank, &run);
    if (s->then == HOST) thread_ranks_leave(thread_ranks_of(s->others, rank->rank));
    leave(&run, &m);
}

/* ---- scenes --------------------------------------------------------------------------------------------------------- */

static void make_id(uint8_t id[EXPHIL_RANKS_ID_BYTES])
{
    exphil_context *context = emulated_context();
    CHECK(exphil_ranks_id(context, id, error));
    exphil_context_destroy(context);
}

static void run_scene(scene *s, thread_rank_fn fn)
{
    void *user[MOST] = {s, s, s, s};
    fake_nccl *fake = emulated_nccl(MOST);
    fake->hears = 1;
    emulated_gpu()->timing(EMU_LAZY, 1);
    emulated_gpu()->protect(1);
    (void)test_folder();
    make_id(s->id[0]);
    make_id(s->id[1]);
    s->others = thread_ranks_open(s->left, (thread_how){0, -1, s->shards > 1});
    pthread_barrier_init(&s->together, NULL, (unsigned)s->ranks);
    thread_ranks_run(s->ranks, fn, user, (thread_how){0, -1, s->shards > 1});
    pthread_barrier_destroy(&s->together);
    thread_ranks_close(s->others);
    if (fake->said[0]) fail_msg("NCCL was used wrongly: %s", fake->said);
    assert_int_equal(atomic_load(&fake->alive), 0);
    emulated_gpu()->devices(1, 0);
    emulated_clean();
}

static void free_scene(scene *s)
{
    for (int r = 0; r < MOST; r++) free(s->all[r]);
}

/* One GPU with all lanes, of which those from `lost` on start from zero in between. */
static void alone(const scene *of, int64_t lost, scene *one)
{
    *one = (scene){.left = 1};
    train_plan plan = plan_of(of->blocks, of->shards);
    train_run run = train_begin(&plan);
    train(one, 0, &run, BEFORE);
    const xph_feed *feed = &run.trainer->feed;
    const xph_backend *backend = run.trainer->device->backend;
    const size_t kept = feed->state_bytes / LANES * (size_t)lost;
    if (feed->state_bytes > kept)
        assert_ok(backend->zero(xph_net_stream(feed->net), (char *)feed->state[0] + kept,
                                feed->state_bytes - kept));
    train(one, 0, &run, AFTER);
    keep(one, 0, &run);
    train_end(&run);
}

static void same_on_all(const scene *s)
{
    for (int r = 1; r < s->left; r++) {
        assert_memory_equal(s->loss[r], s->loss[0], (UPDATES - 1) * sizeof(double));
        assert_memory_equal(s->all[r], s->all[0], 4 * s->arena);
        assert_memory_equal(s->place[r], s->place[0], sizeof s->place[0]);
    }
}

static void same_bits(const scene *a, const scene *b)
{
    assert_memory_equal(a->loss[0], b->loss[0], (UPDATES - 1) * sizeof(double));
    assert_memory_equal(a->all[0], b->all[0], 4 * a->arena);
    assert_memory_equal(a->place[0], b->place[0], sizeof a->place[0]);
}

static void near(const scene *a, const scene *b)
{
    for (int u = 0; u < UPDATES - 1; u++)
        if (!(fabs(a->loss[0][u] - b->loss[0][u]) <= 1e-6 * b->loss[0][u]))
            fail_msg("update %d: loss %.9g, of one %.9g", u + 1, a->loss[0][u], b->loss[0][u]);
    assert_memory_equal(a->place[0], b->place[0], sizeof a->place[0]);
}

/* With shards the bits are those of one GPU, which starts the same lanes from zero. */
static void goes_on(scene s)
{
    scene one;
    int64_t lost = LANES, count = 0;
    char expected[256] = "";
    if (s.left < s.ranks) assert_ok(exphil_rank_lanes(LANES, s.left, s.ranks, &lost, &count, NULL));
    if (lost < LANES)
        snprintf(expected, sizeof expected,
                 "trainer: no rank has the carried state of %d of %d lanes, they start from zero",
                 (int)(LANES - lost), LANES);
    run_scene(&s, one_rank);
    alone(&s, lost, &one);
    same_on_all(&s);
    for (int r = 0; r < s.left; r++) assert_string_equal(s.said[r], expected);
    if (s.shards > 1)
        same_bits(&s, &one);
    else
        near(&s, &one);
    free_scene(&s);
    free_scene(&one);
    emulated_clean();
}

static void fewer_go_on(void **state)
{
    goes_on((scene){.blocks = "lstm", .ranks = 2, .left = 1, .first = NCCL, .then = NCCL, .end = GONE});
    goes_on((scene){.blocks = "mamba", .ranks = 4, .left = 3, .first = NCCL, .then = NCCL, .end = GONE});
    goes_on((scene){.blocks = "gru",
                    .ranks = 4,
                    .left = 2,
                    .sums = EXPHIL_SUMS_TREE,
                    .shards = 4,
                    .first = NCCL,
                    .then = NCCL,
                    .end = GONE});
}

static void one_goes_on_alone(void **state)
{
    goes_on((scene){.blocks = "lstm", .ranks = 2, .left = 1, .first = NCCL, .then = ALONE, .end = GONE});
    goes_on((scene){.blocks = "gru",
                    .ranks = 4,
                    .left = 1,
                    .sums = EXPHIL_SUMS_TREE,
                    .shards = 4,
                    .first = NCCL,
                    .then = ALONE,
                    .end = GONE});
}

/* The bits of a run whose communicator stays. */
static void as_many_go_on(void **state)
{
    static const scene bare = {.blocks = "lstm", .ranks = 2, .left = 2, .first = NCCL, .then = NCCL};
    scene stays = bare, ends = bare;
    ends.end = ABORTED;
    run_scene(&stays, one_rank);
    run_scene(&ends, one_rank);
    same_on_all(&ends);
    same_bits(&ends, &stays);
    for (int r = 0; r < 2; r++) assert_string_equal(ends.said[r], "");
    free_scene(&stays);
    free_scene(&ends);
}

/* From one kind of communicator to the other. */
static void the_other_kind_goes_on(void **state)
{
    goes_on((scene){.blocks = "lstm", .ranks = 2, .left = 2, .first = NCCL, .then = HOST, .end = ABORTED});
    goes_on((scene){.blocks = "lstm", .ranks = 2, .left = 2, .first = HOST, .then = NCCL});
}

static void more_come(void **state)
{
    static const sums_by then[] = {NCCL, HOST};
    for (int i = 0; i < 2; i++) {
        scene one, s = {.blocks = "gru",
                        .ranks = 2,
                        .left = 2,
                        .sums = EXPHIL_SUMS_TREE,
                        .shards = 4,
                        .first = ALONE,
                        .then = then[i]};
        run_scene(&s, comes_later);
        memcpy(s.loss[1], s.loss[0], BEFORE * sizeof(double)); /* it was not there */
        alone(&s, LANES, &one);
        same_on_all(&s);
        same_bits(&s, &one);
        free_scene(&s);
        free_scene(&one);
    }
    test_folder_remove();
}

/* ---- refusals ------------------------------------------------------------------------------------------------------- */

/* The second group is refused for its data; the first goes on as if nobody had asked. */
static void asks_in_vain(thread_rank *rank)
{
    scene *s = rank->user;
    member m = {.ranks = NULL};
    train_plan plan = plan_of(s->blocks, s->shards), wrong = plan;
    train_run run = begin(s, rank, plan, NCCL, &m);
    train(s, rank->rank, &run, BEFORE);
    member other = join(s, run.context, 1, rank->rank, s->ranks);
    exphil_error error = EXPHIL_ERROR_INIT;
    wrong.sampling.seed = 99;
    exphil_prefetcher *next = lanes_of(&run, &wrong, rank->rank, s->ranks);
    assert_int_equal(exphil_trainer_set_device_communicator(run.trainer, &other.with, next, &error),
                     EXPHIL_E_MISMATCH);
    assert_says(&error, "of which lanes alone may differ");
    exphil_prefetcher_destroy(next);
    next = lanes_of(&run, &plan, !rank->rank, s->ranks);
    assert_int_equal(exphil_trainer_set_device_communicator(run.trainer, &other.with, next, &error),
                     EXPHIL_E_MISMATCH);
    assert_says(&error, "(exphil_rank_lanes)");
    assert_int_equal(exphil_trainer_set_communicator(run.trainer, NULL, next, &error), EXPHIL_E_MISMATCH);
    assert_says(&error, "rank 0 of 1 has 8 from 0 on (exphil_rank_lanes)");
    exphil_prefetcher_destroy(next);
    /* rank 1 alone has none: rank 0 hears of it */
    next = lanes_of(&run, &plan, rank->rank, s->ranks);
    assert_int_equal(
        exphil_trainer_set_device_communicator(run.trainer, &other.with, rank->rank ? NULL : next, &error),
        rank->rank ? EXPHIL_E_INVALID : EXPHIL_E_IO);
    assert_says(&error, rank->rank ? "prefetcher is NULL" : "rank 1 failed with EXPHIL_E_INVALID");
    exphil_prefetcher_destroy(next);
    exphil_ranks_destroy(other.ranks);
    train(s, rank->rank, &run, AFTER);
    keep(s, rank->rank, &run);
    leave(&run, &m);
}

static void what_is_refused_changes_nothing(void **state)
{
    static const scene bare = {.blocks = "lstm", .ranks = 2, .left = 2, .first = NCCL, .then = NCCL};
    scene calm = bare, asked = bare;
    run_scene(&calm, one_rank);
    run_scene(&asked, asks_in_vain);
    same_bits(&asked, &calm);
    free_scene(&calm);
    free_scene(&asked);
}

static int32_t fails(void *user, void *data, int64_t count, int32_t type, void *stream)
{
    return 5;
}
static int32_t fine(void *user)
{
    return EXPHIL_RANKS_OK;
}
static void nothing(void *user) {}

#define REFUSED(expected, words)                                                                             \
  do {                                                                                                       \
    assert_int_equal(exphil_trainer_set_device_communicator(run.trainer, &with, run.prefetcher, &error),     \
                     expected);                                                                              \
    assert_says(&error, words);                                                                              \
  } while (0)

/* Each of them before anyone meets; an update then goes well. */
static void refusals(void **state)
{
    train_plan plan = plan_of("mlp", 0);
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_device_communicator with = EXPHIL_DEVICE_COMMUNICATOR_INIT;
    train_run run = train_begin(&plan);
    with.all_reduce = fails;
    with.state = fine;
    with.abort = nothing;
    with.ranks = 1;
    emulated_gpu()->memory(emulated_gpu()->allocated());
    REFUSED(EXPHIL_E_MEMORY, "1048576 bytes");
    emulated_gpu()->memory(0);
    with.abort = NULL;
    REFUSED(EXPHIL_E_INVALID, "device_communicator: abort is NULL");
    with.abort = nothing;
    with.flags = 7;
    REFUSED(EXPHIL_E_INVALID, "device_communicator: flags is 7, not EXPHIL_RANKS_...");
    with.flags = 0;
    with.timeout_ms = -1;
    REFUSED(EXPHIL_E_INVALID, "device_communicator: timeout_ms is -1, must be 0 or more");
    with.timeout_ms = 0;
    with.rank = 1;
    REFUSED(EXPHIL_E_INVALID, "device_communicator: rank 1 of 1 ranks");
    with.rank = 0;
    REFUSED(EXPHIL_E_IO, "communicator: all_reduce failed");
    assert_int_equal(exphil_trainer_set_device_communicator(run.trainer, NULL, run.prefetcher, &error),
                     EXPHIL_E_INVALID);
    assert_string_equal(error.message, "communicator is NULL");
    assert_int_equal(exphil_trainer_set_device_communicator(NULL, &with, run.prefetcher, &error),
                     EXPHIL_E_INVALID);
    assert_string_equal(error.message, "trainer is NULL");
    (void)train_steps(&run, 1);
    train_end(&run);
    plan.device = NULL;
    run = train_begin(&plan);
    REFUSED(EXPHIL_E_UNSUPPORTED, "cpu works in the host's memory: give a communicator");
    train_end(&run);
    plan.device = "cuda:0";
    plan.trainer.reduction = EXPHIL_REDUCTION_MEANS;
    run = train_begin(&plan);
    REFUSED(EXPHIL_E_STATE, "its reduction is not EXPHIL_REDUCTION_SUMS");
    train_end(&run);
    emulated_clean();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fewer_go_on),   cmocka_unit_test(one_goes_on_alone),
        cmocka_unit_test(as_many_go_on), cmocka_unit_test(the_other_kind_goes_on),
        cmocka_unit_test(more_come),     cmocka_unit_test(what_is_refused_changes_nothing),
        cmocka_unit_test(refusals),
    };
    setenv("EXPHIL_NCCL", EMULATED_NCCL, 1);
    setenv("EXPHIL_CUBLASLT", "none", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
