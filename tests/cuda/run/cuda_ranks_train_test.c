/* Ranks with an emulated GPU each, which the stand-in for NCCL adds up: the run of one GPU with all lanes to rounding, the same
 * bits on all ranks, and an end for all when one is gone. */
#include "emulated.h"
#include "ranks_case.h"

#include <exphil/ranks.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { UPDATES = 12, MOST = 4 };

static train_plan plan_of(const char *blocks)
{
    train_plan plan = train_plan_of(blocks, EXPHIL_MODE_CARRY);
    plan.sampling.batch = 8;
    plan.sampling.time = 6;
    plan.sampling.segment_frames = 25;
    plan.adam.ema_decay = 0.9;
    plan.backend_path = EMULATED_FOLDER;
    return plan;
}

/* What all ranks do, and what each came to. */
typedef struct group {
    train_plan plan;
    int32_t ranks, sums;
    uint8_t id[EXPHIL_RANKS_ID_BYTES];
    int32_t leaves; /* this rank is gone after two updates; -1: none */
    int64_t updates;
    exphil_status status[MOST];
    exphil_error error[MOST];
    double losses[MOST][UPDATES + 1];
    unsigned char *all[MOST];
    size_t bytes;
} group;

static void make_id(group *g)
{
    exphil_context *context = emulated_context();
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_ranks_id(context, g->id, &error) < 0) fail_msg("%s", error.message);
    exphil_context_destroy(context);
}

static void train(group *g, int32_t rank, train_run *run)
{
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    for (int64_t u = 0; u < g->updates; u++) {
        if (rank == g->leaves && u == 2) return;
        g->status[rank] = exphil_trainer_step(run->trainer, &metrics, &g->error[rank]);
        if (g->status[rank] < 0) return;
        if (metrics.update <= UPDATES) g->losses[rank][metrics.update] = metrics.loss;
    }
    g->all[rank] = train_snapshot(run->trainer, &g->bytes);
}

/* The trainer is made a second time, for only a model says how much is summed. */
static void one_rank(thread_rank *rank)
{
    group *g = rank->user;
    char device[16];
    train_plan own = g->plan;
    exphil_ranks_config config = EXPHIL_RANKS_CONFIG_INIT;
    exphil_device_communicator with = EXPHIL_DEVICE_COMMUNICATOR_INIT;
    exphil_ranks *ranks = NULL;
    exphil_error *error = &g->error[rank->rank];
    snprintf(device, sizeof device, "cuda:%d", rank->rank);
    own.device = device;
    assert_ok(exphil_rank_lanes(own.sampling.batch, rank->rank, rank->ranks, &own.sampling.first_lane,
                                &own.sampling.lane_count, NULL));
    own.trainer.shards = 0;
    train_run run = train_begin(&own);
    exphil_trainer_destroy(run.trainer);
    config.id = g->id;
    config.model = run.model;
    config.rank = rank->rank;
    config.ranks = rank->ranks;
    config.sums = g->sums;
    config.timeout_ms = g->leaves < 0 ? 120000 : 10000;
    if (exphil_ranks_open(&config, &ranks, error) < 0) fail_msg("rank %d: %s", rank->rank, error->message);
    assert_ok(exphil_ranks_communicator(ranks, &with, error));
    own.trainer.device_communicator = &with;
    own.trainer.reduction = EXPHIL_REDUCTION_SUMS;
    own.trainer.shards = g->plan.trainer.shards;
    if (exphil_trainer_create(run.model, run.optimizer, run.prefetcher, &own.trainer, &run.trainer, error) <
        0)
        fail_msg("rank %d: %s", rank->rank, error->message);
    train(g, rank->rank, &run);
    exphil_trainer_destroy(run.trainer);
    run.trainer = NULL;
    exphil_ranks_destroy(ranks);
    train_end(&run);
}

static void run_group(group *g)
{
    void *user[MOST] = {g, g, g, g};
    fake_nccl *fake = emulated_nccl(MOST);
    emulated_gpu()->timing(EMU_LAZY, 1);
    emulated_gpu()->protect(1);
    for (int r = 0; r < MOST; r++) g->error[r] = (exphil_error)EXPHIL_ERROR_INIT;
    make_id(g);
    thread_ranks_run(g->ranks, one_rank, user, (thread_how){0, -1, false});
    if (fake->said[0]) fail_msg("NCCL was used wrongly: %s", fake->said);
    emulated_gpu()->devices(1, 0);
}

static void free_group(group *g)
{
    for (int r = 0; r < MOST; r++) free(g->all[r]);
}

static void alone(const train_plan *plan, double losses[UPDATES + 1])
{
    train_plan own = *plan;
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    own.device = "cuda:0";
    train_run run = train_begin(&own);
    for (int u = 0; u <= UPDATES; u++) {
        exphil_error error = EXPHIL_ERROR_INIT;
        if (exphil_trainer_step(run.trainer, &metrics, &error) < 0) fail_msg("alone: %s", error.message);
        if (metrics.update <= UPDATES) losses[metrics.update] = metrics.loss;
    }
    train_end(&run);
}

static void same_as_one(const char *blocks, int32_t ranks, int32_t sums)
{
    group g = {.plan = plan_of(blocks), .ranks = ranks, .sums = sums, .leaves = -1, .updates = UPDATES + 1};
    double one[UPDATES + 1];
    alone(&g.plan, one);
    run_group(&g);
    emulated_clean();
    for (int32_t r = 0; r < ranks; r++) {
        if (g.status[r] < 0) fail_msg("rank %d: %s", r, g.error[r].message);
        assert_memory_equal(g.losses[r] + 1, g.losses[0] + 1, UPDATES * sizeof(double));
    }
    for (int u = 1; u <= UPDATES; u++)
        if (!(fabs(g.losses[0][u] - one[u]) <= 1e-6 * one[u]))
            fail_msg("%s, %d ranks, update %d: loss %.9g, alone %.9g", blocks, ranks, u, g.losses[0][u],
                     one[u]);
    free_group(&g);
}

static void ranks_train_as_one(void **state)
{
    same_as_one("lstm", 2, EXPHIL_SUMS_ORDERED);
    same_as_one("mamba", 4, EXPHIL_SUMS_ORDERED);
    same_as_one("mlp", 4, EXPHIL_SUMS_TREE);
    same_as_one("mlp", 2, EXPHIL_SUMS_PLAIN);
}

/* One GPU, two and four. */
static void shards_have_the_same_bits(void **state)
{
    double losses[3][UPDATES + 1];
    train_plan plan = plan_of("gru");
    plan.trainer.shards = 4;
    alone(&plan, losses[0]);
    for (int i = 1; i <= 2; i++) {
        group g = {
            .plan = plan, .ranks = 2 * i, .sums = EXPHIL_SUMS_TREE, .leaves = -1, .updates = UPDATES + 1};
        run_group(&g);
        for (int32_t r = 0; r < g.ranks; r++)
            if (g.status[r] < 0) fail_msg("rank %d: %s", r, g.error[r].message);
        memcpy(losses[i], g.losses[0], sizeof losses[i]);
        free_group(&g);
    }
    emulated_clean();
    for (int i = 1; i <= 2; i++) assert_memory_equal(losses[i] + 1, losses[0] + 1, UPDATES * sizeof(double));
}

/* The others wait for its next meeting, no longer than they must. */
static void a_rank_that_is_gone(void **state)
{
    group g = {.plan = plan_of("mlp"), .ranks = 3, .leaves = 1, .updates = 5};
    run_group(&g);
    assert_int_equal(g.status[1], EXPHIL_OK);
    for (int r = 0; r < 3; r += 2) {
        assert_int_equal(g.status[r], EXPHIL_E_IO);
        if (!strstr(g.error[r].message, "communicator")) fail_msg("rank %d: %s", r, g.error[r].message);
    }
    free_group(&g);
}

/* ---- refusals ------------------------------------------------------------------------------------------------------- */

static int32_t never(void *user, void *data, int64_t count, int32_t type, void *stream)
{
    return 1;
}
static int32_t fine(void *user)
{
    return EXPHIL_RANKS_OK;
}
static void nothing(void *user) {}

static exphil_status make(const train_run *run, const exphil_trainer_config *how, exphil_error *error)
{
    exphil_trainer *trainer = NULL;
    exphil_status status = exphil_trainer_create(run->model, run->optimizer, NULL, how, &trainer, error);
    exphil_trainer_destroy(trainer);
    return status;
}

static void refused_groups(const exphil_model *model)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_ranks_config config = EXPHIL_RANKS_CONFIG_INIT;
    exphil_ranks *ranks = NULL;
    uint8_t id[EXPHIL_RANKS_ID_BYTES] = {0};
    assert_int_equal(exphil_ranks_open(&config, &ranks, &error), EXPHIL_E_INVALID);
    assert_string_equal(error.message, "ranks config: id is NULL");
    config.id = id;
    config.model = model;
    config.ranks = 300;
    assert_int_equal(exphil_ranks_open(&config, &ranks, &error), EXPHIL_E_INVALID);
    assert_string_equal(error.message, "ranks config: rank 0 of 300 ranks, at most 256");
    config.ranks = 1;
    config.sums = 3;
    assert_int_equal(exphil_ranks_open(&config, &ranks, &error), EXPHIL_E_INVALID);
    assert_string_equal(error.message, "ranks config: sums is 3, not EXPHIL_SUMS_...");
    config.sums = EXPHIL_SUMS_PLAIN;
    config.reserved = -3;
    assert_int_equal(exphil_ranks_open(&config, &ranks, &error), EXPHIL_E_INVALID);
    assert_string_equal(error.message, "ranks config: reserved is -3, must be 0");
    assert_null(ranks);
}

static void refusals(void **state)
{
    train_plan plan = plan_of("mlp");
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_device_communicator with = EXPHIL_DEVICE_COMMUNICATOR_INIT;
    exphil_trainer_config how = EXPHIL_TRAINER_CONFIG_INIT;
    plan.device = "cuda:0";
    plan.by_hand = true;
    train_run run = train_begin(&plan);
    exphil_trainer_destroy(run.trainer);
    run.trainer = NULL;
    with.all_reduce = never;
    with.state = fine;
    with.abort = nothing;
    with.ranks = 2;
    how.device_communicator = &with;
    assert_int_equal(make(&run, &how, &error), EXPHIL_E_INVALID);
    assert_string_equal(error.message, "trainer config: device_communicator needs EXPHIL_REDUCTION_SUMS");
    how.reduction = EXPHIL_REDUCTION_SUMS;
    assert_int_equal(make(&run, &how, &error), EXPHIL_E_IO);
    with.rank = 2;
    assert_int_equal(make(&run, &how, &error), EXPHIL_E_INVALID);
    assert_string_equal(error.message, "device_communicator: rank 2 of 2 ranks");
    with.rank = 0;
    with.flags = 4;
    assert_int_equal(make(&run, &how, &error), EXPHIL_E_INVALID);
    assert_string_equal(error.message, "device_communicator: flags is 4, not EXPHIL_RANKS_...");
    with.flags = 0;
    with.abort = NULL;
    assert_int_equal(make(&run, &how, &error), EXPHIL_E_INVALID);
    assert_string_equal(error.message, "device_communicator: abort is NULL");
    refused_groups(run.model);
    exphil_ranks_destroy(NULL);
    train_end(&run);
    plan.device = NULL;
    run = train_begin(&plan);
    exphil_trainer_destroy(run.trainer);
    run.trainer = NULL;
    uint8_t id[EXPHIL_RANKS_ID_BYTES] = {0};
    assert_int_equal(exphil_ranks_id(run.context, id, &error), EXPHIL_E_UNSUPPORTED);
    with.abort = nothing;
    assert_int_equal(make(&run, &how, &error), EXPHIL_E_UNSUPPORTED);
    assert_string_equal(error.message,
                        "device_communicator: cpu works in the host's memory: give a communicator");
    train_end(&run);
    emulated_clean();
}

/* One rank on the CPU, one on a GPU, both with a host's communicator. */
static void other_processor(thread_rank *rank)
{
    group *g = rank->user;
    train_plan own = ranks_case_plan(&g->plan, rank);
    exphil_trainer_config how = own.trainer;
    exphil_trainer *trainer = NULL;
    own.device = rank->rank ? "cuda:0" : NULL;
    own.trainer.communicator = NULL;
    train_run run = train_begin(&own);
    exphil_trainer_destroy(run.trainer);
    run.trainer = NULL;
    g->status[rank->rank] = exphil_trainer_create(run.model, run.optimizer, run.prefetcher, &how, &trainer,
                                                  &g->error[rank->rank]);
    exphil_trainer_destroy(trainer);
    train_end(&run);
}

static void other_processors_are_refused(void **state)
{
    group g = {.plan = plan_of("mlp")};
    void *user[2] = {&g, &g};
    for (int r = 0; r < 2; r++) g.error[r] = (exphil_error)EXPHIL_ERROR_INIT;
    thread_ranks_run(2, other_processor, user, (thread_how){0, -1, false});
    for (int r = 0; r < 2; r++) {
        assert_int_equal(g.status[r], EXPHIL_E_MISMATCH);
        assert_string_equal(g.error[r].message, "rank 1 has another kind of processor than rank 0");
    }
    emulated_clean();
}

/* Gradients of GPUs through the host's memory. */
static void by_a_hosts_communicator(void **state)
{
    train_plan plan = plan_of("lstm");
    plan.device = "cuda:0";
    ranks_case one = {.plan = plan, .updates = UPDATES}, two = {.plan = plan, .ranks = 2, .updates = UPDATES};
    ranks_case_run(&one);
    ranks_case_run(&two);
    for (int r = 0; r < 2; r++)
        if (two.status[r] < 0) fail_msg("rank %d: %s", r, two.error[r].message);
    assert_memory_equal(&two.metrics[0].loss, &two.metrics[1].loss, sizeof(double));
    assert_true(fabs(two.metrics[0].loss - one.metrics[0].loss) <= 1e-6 * one.metrics[0].loss);
    ranks_case_free(&one);
    ranks_case_free(&two);
    emulated_clean();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_train_as_one),           cmocka_unit_test(shards_have_the_same_bits),
        cmocka_unit_test(a_rank_that_is_gone),          cmocka_unit_test(refusals),
        cmocka_unit_test(other_processors_are_refused), cmocka_unit_test(by_a_hosts_communicator),
    };
    setenv("EXPHIL_NCCL", EMULATED_NCCL, 1);
    setenv("EXPHIL_CUBLASLT", "none", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
