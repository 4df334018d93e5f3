/* Ranks that do not fit together are refused by name before the first update, on all ranks; and so are ranks that do different
 * things. */
#include "ranks_case.h"

#include <exphil/plan.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* One rank of two differs by what change makes of its plan. */
typedef struct odd_one {
    void (*change)(train_plan *plan);
    bool trained; /* the odd one's optimizer has been used */
    bool silent;  /* the odd one takes no error */
    bool by_hand; /* nobody has a prefetcher */
    /* gives each rank other data than the plan's; NULL: nothing */
    exphil_dataset *(*data)(exphil_context *context, int32_t rank);
    exphil_status status[3];
    exphil_error error[3];
} odd_one;

static train_plan plan_of(void)
{
    train_plan plan = train_plan_of("mlp", EXPHIL_MODE_CARRY);
    plan.sampling.batch = 6;
    return plan;
}

/* A trainer without ranks first, whose parts serve the one that is tried. */
static void create(thread_rank *rank)
{
    odd_one *odd = rank->user;
    train_plan plan = plan_of();
    plan.by_hand = odd->by_hand;
    if (rank->rank == 1) odd->change(&plan);
    train_plan own = ranks_case_plan(&plan, rank);
    if (rank->rank == 1 && own.sampling.first_lane == 3 && plan.sampling.lane_count)
        own.sampling.first_lane = plan.sampling.first_lane,
        own.sampling.lane_count = plan.sampling.lane_count;
    exphil_trainer_config how = own.trainer;
    exphil_trainer *trainer = NULL;
    own.trainer.communicator = NULL;
    own.trainer.own_past = 0.0;
    train_run run = train_begin(&own);
    if (odd->data) {
        exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
        assert_ok(exphil_model_sampling(run.model, &sampling, NULL));
        own.sampling.delay_frames = sampling.delay_frames;
        own.sampling.action_slots = sampling.action_slots;
        exphil_prefetcher_destroy(run.prefetcher);
        exphil_dataset_destroy(run.dataset);
        run.dataset = odd->data(run.context, rank->rank);
        assert_ok(exphil_prefetcher_create(run.dataset, &own.sampling, &run.prefetcher, NULL));
    }
    if (rank->rank == 1 && odd->trained) (void)train_steps(&run, 1);
    exphil_trainer_destroy(run.trainer);
    run.trainer = NULL;
    odd->error[rank->rank] = (exphil_error)EXPHIL_ERROR_INIT;
    odd->status[rank->rank] =
        exphil_trainer_create(run.model, run.optimizer, run.prefetcher, &how, &trainer,
                              odd->silent && rank->rank ? NULL : &odd->error[rank->rank]);
    assert_null(trainer);
    train_end(&run);
}

static void refused_so(odd_one odd, const char *message)
{
    void *user[2] = {&odd, &odd};
    thread_ranks_run(2, create, user, (thread_how){0, -1, false});
    for (int r = 0; r < 2; r++) {
        if (odd.status[r] != EXPHIL_E_MISMATCH || !strstr(odd.error[r].message, message))
            fail_msg("rank %d: %s: \"%s\", not \"%s\"", r, exphil_status_name(odd.status[r]),
                     odd.error[r].message, message);
    }
}

static void refused(void (*change)(train_plan *plan), const char *message)
{
    refused_so((odd_one){.change = change}, message);
}

static void seed(train_plan *plan)
{
    plan->model.seed = 77;
}
static void width(train_plan *plan)
{
    plan->model.hidden = 40;
}
static void data(train_plan *plan)
{
    plan->episodes = 6;
}
static void layout(train_plan *plan)
{
    static exphil_spec other;
    other = model_case_spec;
    other.layout = "elsewhere";
    plan->model.spec = &other;
}
static void heads(train_plan *plan)
{
    static exphil_spec other;
    other = model_case_spec;
    other.float_count++;
    plan->model.spec = &other;
}
static void batch(train_plan *plan)
{
    plan->sampling.batch = 8;
}
static void sampled(train_plan *plan)
{
    plan->sampling.seed = 4;
}
static void rate(train_plan *plan)
{
    plan->adam.rate = 1e-3;
}
static void accumulate(train_plan *plan)
{
    plan->trainer.accumulate = 2;
}
static void loss(train_plan *plan)
{
    static const exphil_head_loss losses[3] = {{2.0, 0, 0, NULL}, {0, 0.1, 0, NULL}, {0, 0, 0, NULL}};
    plan->trainer.losses = losses;
}
static void played(train_plan *plan)
{
    plan->trainer.as_played = 1;
}
static void by_hand(train_plan *plan)
{
    plan->by_hand = true;
}
static void average(train_plan *plan)
{
    plan->adam.ema_decay = 0.5;
}

static void others_are_named(void **state)
{
    refused(seed, "rank 1 has other weights than rank 0");
    refused(width, "rank 1 has model.hidden 40, rank 0 has 24");
    refused(data, "rank 1 has 6 games of data, rank 0 has 5");
    refused_so((odd_one){.change = layout, .by_hand = true},
               "rank 1 has a model of elsewhere/made-up, rank 0 of made-up/made-up");
    refused_so((odd_one){.change = heads, .by_hand = true},
               "rank 1 has a model of other floats, ids or heads than rank 0: model.spec ");
    refused(batch, "rank 1 has sampling.batch 8, rank 0 has 6");
    refused(sampled, "rank 1 has sampling.seed 4, rank 0 has 3");
    refused(rate, "rank 1 has optimizer.rate 0.001, rank 0 has 0.005");
    refused(accumulate, "rank 1 has accumulate 2, rank 0 has 1");
    refused(loss, "rank 1 has losses ");
    refused(played, "rank 1 has another as_played than rank 0");
    refused(by_hand, "rank 1 has another number of settings than rank 0");
    refused(average, "rank 1 has optimizer.ema_decay 0.5, rank 0 has 0");
}

static void same(train_plan *plan) {}

/* ---- other data ----------------------------------------------------------------------------------------------------- */

/* Two episodes of one game, or of two; other is what a rank has otherwise. */
static exphil_dataset *episodes(exphil_context *context, int64_t frames, uint64_t game, float other)
{
    enum { LONG = 40 };
    static float floats[LONG * 13];
    static int32_t ids[LONG * 2], actions[LONG * 3];
    exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT;
    exphil_dataset *dataset = NULL;
    float own[LONG * 13];
    memcpy(own, floats, sizeof own);
    own[7] = other;
    config.spec = &model_case_spec;
    assert_ok(exphil_dataset_create(context, &config, &dataset, NULL));
    assert_ok(exphil_dataset_add_rows(dataset, 1, LONG, floats, ids, actions, NULL));
    assert_ok(exphil_dataset_add_rows(dataset, game, frames, own, ids, actions, NULL));
    return dataset;
}
static exphil_dataset *more_games(exphil_context *context, int32_t rank)
{
    return episodes(context, 30, 1 + (uint64_t)rank, (float)rank);
}
static exphil_dataset *more_frames(exphil_context *context, int32_t rank)
{
    return episodes(context, 30 + rank, 2, 0.0f);
}
static exphil_dataset *other_rows(exphil_context *context, int32_t rank)
{
    return episodes(context, 30, 2, (float)rank);
}
static exphil_dataset *more_episodes(exphil_context *context, int32_t rank)
{
    exphil_dataset *dataset = episodes(context, 30, 1, 0.0f);
    float floats[13] = {0};
    const int32_t ids[2] = {0}, actions[3] = {0};
    if (rank) assert_ok(exphil_dataset_add_rows(dataset, 1, 1, floats, ids, actions, NULL));
    return dataset;
}

/* A name of which the end is shown, which must not begin in the middle of a character. */
static exphil_dataset *in_files(exphil_context *context, int32_t rank)
{
    char name[128] = "a name that is cut in the middle of the sign \xc3\xa4"
                     " would be the first letter of what is shown of this name,first";
    exphil_dataset *dataset = other_rows(context, rank), *opened = NULL;
    char path[256];
    memcpy(name + strlen(name) - 5, rank ? "tenth" : "ninth", 5);
    snprintf(path, sizeof path, "%s/%s", test_folder(), name);
    assert_ok(exphil_dataset_save(dataset, path, NULL));
    assert_ok(exphil_dataset_open(context, path, &opened, NULL));
    exphil_dataset_destroy(dataset);
    return opened;
}

static void other_data(exphil_dataset *(*made)(exphil_context *context, int32_t rank), const char *message)
{
    odd_one odd = {.change = same, .data = made};
    void *user[2] = {&odd, &odd};
    thread_ranks_run(2, create, user, (thread_how){0, -1, false});
    for (int r = 0; r < 2; r++)
        if (odd.status[r] != EXPHIL_E_MISMATCH ||
            strncmp(odd.error[r].message, message, strlen(message)) != 0)
            fail_msg("rank %d: %s: \"%s\", not \"%s\"", r, exphil_status_name(odd.status[r]),
                     odd.error[r].message, message);
}

/* What differs first is named by its counts; the hash alone where they are the same. */
static void data_is_named(void **state)
{
    (void)test_folder();
    other_data(more_games, "rank 1 has 2 games of data, rank 0 has 1");
    other_data(more_episodes, "rank 1 has 3 episodes of data, rank 0 has 2");
    other_data(more_frames, "rank 1 has 71 frames of data, rank 0 has 70");
    other_data(other_rows, "rank 1 has other rows of data than rank 0: dataset ");
    other_data(in_files, "rank 1 has other rows of data (\" would be the first letter of what is shown of "
                         "this name,tenth\") than rank 0 "
                         "(\" would be the first letter of what is shown of this name,ninth\"): dataset ");
    test_folder_remove();
}

static void used_optimizer(void **state)
{
    odd_one odd = {.change = same, .trained = true};
    void *user[2] = {&odd, &odd};
    thread_ranks_run(2, create, user, (thread_how){0, -1, false});
    for (int r = 0; r < 2; r++) {
        assert_int_equal(odd.status[r], EXPHIL_E_MISMATCH);
        assert_string_equal(odd.error[r].message, "rank 1 is at update 1, rank 0 at 0");
    }
}

static void bad_config(train_plan *plan)
{
    plan->trainer.own_past = 2.0;
}

/* What one rank's settings cannot be, the others hear. */
static void wrong_settings_of_one(void **state)
{
    odd_one odd = {.change = bad_config};
    void *user[2] = {&odd, &odd};
    thread_ranks_run(2, create, user, (thread_how){0, -1, false});
    assert_int_equal(odd.status[1], EXPHIL_E_INVALID);
    assert_int_equal(odd.status[0], EXPHIL_E_IO);
    ranks_case_heard(&odd.error[0], "rank 1 failed with EXPHIL_E_INVALID in making a trainer", &odd.error[1]);
}

/* Of several that cannot, the first is named, with its own words. */
static void two_of_three(thread_rank *rank)
{
    odd_one *odd = rank->user;
    train_plan plan = plan_of(), own = ranks_case_plan(&plan, rank);
    exphil_trainer_config how = own.trainer;
    own.trainer.communicator = NULL;
    train_run run = train_begin(&own);
    exphil_trainer_destroy(run.trainer);
    run.trainer = NULL;
    if (rank->rank == 1) how.own_past = 2.0;
    if (rank->rank == 2) how.accumulate = -1;
    odd->error[rank->rank] = (exphil_error)EXPHIL_ERROR_INIT;
    odd->status[rank->rank] = exphil_trainer_create(run.model, run.optimizer, run.prefetcher, &how,
                                                    &run.trainer, &odd->error[rank->rank]);
    train_end(&run);
}

static void two_cannot(void **state)
{
    odd_one odd = {.change = bad_config};
    void *user[3] = {&odd, &odd, &odd};
    thread_ranks_run(3, two_of_three, user, (thread_how){0, -1, false});
    assert_int_equal(odd.status[0], EXPHIL_E_IO);
    ranks_case_heard(&odd.error[0], "rank 1 failed with EXPHIL_E_INVALID in making a trainer", &odd.error[1]);
    assert_int_equal(odd.status[1], EXPHIL_E_INVALID);
    assert_says(&odd.error[1], "own_past is 2");
    assert_int_equal(odd.status[2], EXPHIL_E_INVALID);
    assert_says(&odd.error[2], "accumulate must lie in");
}

/* Of a rank whose host takes no error the status is all that is known. */
static void silent_rank(void **state)
{
    odd_one odd = {.change = bad_config, .silent = true};
    void *user[2] = {&odd, &odd};
    thread_ranks_run(2, create, user, (thread_how){0, -1, false});
    assert_int_equal(odd.status[1], EXPHIL_E_INVALID);
    assert_string_equal(odd.error[0].message, "rank 1 failed with EXPHIL_E_INVALID in making a trainer");
}

static void lanes(train_plan *plan)
{
    plan->sampling.first_lane = 2;
    plan->sampling.lane_count = 3;
}

static void lanes_of_another(void **state)
{
    odd_one odd = {.change = lanes};
    void *user[2] = {&odd, &odd};
    thread_ranks_run(2, create, user, (thread_how){0, -1, false});
    assert_int_equal(odd.status[1], EXPHIL_E_MISMATCH);
    assert_string_equal(odd.error[1].message,
                        "prefetcher has 3 lanes from lane 2 on, rank 1 of 2 has 3 from 3 on "
                        "(exphil_rank_lanes)");
    assert_int_equal(odd.status[0], EXPHIL_E_IO);
    ranks_case_heard(&odd.error[0], "rank 1 failed with EXPHIL_E_MISMATCH in making a trainer",
                     &odd.error[1]);
}

/* ---- different calls ---------------------------------------------------------------------------------------------- */

typedef struct calls {
    exphil_status status[2];
    exphil_error error[2];
} calls;

static void call(thread_rank *rank)
{
    calls *c = rank->user;
    train_plan plan = plan_of(), own = ranks_case_plan(&plan, rank);
    train_run run = train_begin(&own);
    (void)train_steps(&run, 1);
    exphil_error *error = &c->error[rank->rank];
    *error = (exphil_error)EXPHIL_ERROR_INIT;
    c->status[rank->rank] = rank->rank ? exphil_trainer_save(run.trainer, test_path("other call"), error)
                                       : exphil_trainer_step(run.trainer, NULL, error);
    (void)train_steps(&run, 1); /* both go on */
    train_end(&run);
}

static void different_calls(void **state)
{
    calls c;
    void *user[2] = {&c, &c};
    thread_ranks_run(2, call, user, (thread_how){0, -1, false});
    for (int r = 0; r < 2; r++) {
        assert_int_equal(c.status[r], EXPHIL_E_MISMATCH);
        assert_string_equal(c.error[r].message, "rank 1 is saving, rank 0 is training a batch");
    }
    test_folder_remove();
}

/* ---- communicators and settings ----------------------------------------------------------------------------------- */

static int32_t adds_nothing(void *user, void *data, int64_t count, int32_t type)
{
    return 0;
}

static int32_t halves(void *user, void *data, int64_t count, int32_t type)
{
    for (int64_t i = 0; i < count; i++)
        if (type == EXPHIL_TYPE_F64) ((double *)data)[i] *= 0.5;
    return 0;
}

static exphil_status make(const exphil_communicator *with, int32_t reduction, exphil_error *error)
{
    train_plan plan = plan_of();
    plan.by_hand = true;
    train_run run = train_begin(&plan);
    exphil_trainer *trainer = NULL;
    exphil_trainer_destroy(run.trainer);
    run.trainer = NULL;
    plan.trainer.communicator = with;
    plan.trainer.reduction = reduction;
    exphil_status status =
        exphil_trainer_create(run.model, run.optimizer, NULL, &plan.trainer, &trainer, error);
    exphil_trainer_destroy(trainer);
    train_end(&run);
    return status;
}

static void wrong_communicators(void **state)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_communicator with = {sizeof with, NULL, adds_nothing, 0, 2};
    assert_int_equal(make(&with, EXPHIL_REDUCTION_SUMS, &error), EXPHIL_E_IO);
    assert_string_equal(error.message,
                        "communicator: all_reduce gave no sum of doubles: what rank 1 said did not arrive "
                        "on rank 0");
    with.all_reduce = halves;
    with.ranks = 1;
    assert_int_equal(make(&with, EXPHIL_REDUCTION_SUMS, &error), EXPHIL_E_IO);
    assert_non_null(strstr(error.message, "what rank 0 said did not arrive on rank 0"));
    with.all_reduce = adds_nothing;
    assert_int_equal(make(&with, EXPHIL_REDUCTION_SUMS, &error), EXPHIL_OK);
    assert_int_equal(make(&with, 2, &error), EXPHIL_E_INVALID);
    assert_string_equal(error.message, "trainer config: reduction is 2, not EXPHIL_REDUCTION_...");
    assert_int_equal(make(NULL, EXPHIL_REDUCTION_SUMS, &error), EXPHIL_OK); /* one rank */
}

/* A communicator as rank 0 sees it: in the first meeting rank 1 says that it has no memory, then it says why, or cannot. */
typedef struct told {
    int64_t calls;
    int32_t code;   /* of the second call */
    double word[2]; /* the first words of the second call */
    int64_t count;  /* of all that follow, too, as the last of them; 0: zeros */
} told;

static int32_t tells(void *user, void *data, int64_t count, int32_t type)
{
    told *t = user;
    double *numbers = data;
    if (++t->calls == 1) {
        numbers[count / 2] = 1.0; /* it makes a trainer */
        numbers[count / 2 + 1] = (double)EXPHIL_E_MEMORY;
        return 0;
    }
    for (int64_t i = 0; i < 2 || i < t->count; i++) numbers[i] = t->word[i > 0];
    return t->code;
}

static void heard(told t, const char *words)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_communicator with = {sizeof with, &t, tells, 0, 2};
    char expected[400];
    assert_int_equal(make(&with, EXPHIL_REDUCTION_SUMS, &error), EXPHIL_E_IO);
    snprintf(expected, sizeof expected, "rank 1 failed with EXPHIL_E_MEMORY in making a trainer%s", words);
    expected[sizeof error.message - 1] = 0;
    assert_string_equal(error.message, expected);
    assert_int_equal(t.calls, 2);
}

/* Whatever comes: one line that has an end, or none. */
static void reasons_that_are_none(void **state)
{
    const double why = 0x3f796877; /* "why?" */
    heard((told){.word = {why, 0.0}}, ": why?");
    heard((told){.word = {why, 0x0a090120}}, ": why? ???");
    heard((told){.word = {why, 0.0}, .code = 9}, "");
    heard((told){.word = {why, 1e300}}, "");
    heard((told){.word = {why, -1.0}}, "");
    heard((told){.word = {NAN, 0.0}}, "");
    heard((told){.word = {0.0, why}}, "");
    char endless[300] = ": ";
    for (int i = 0; i < 60; i++) memcpy(endless + 2 + 4 * i, "why?", 4);
    heard((told){.word = {why, why}, .count = 60}, endless);
}

static int32_t is_asked(void *user, void *data, int64_t count, int32_t type)
{
    fail_msg("a plan asked the other ranks");
    return 1;
}

/* A rank plans for itself; the copy of the gradients and the shards are in it. */
static void plans_ask_nobody(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_communicator with = {sizeof with, NULL, is_asked, 0, 2};
    train_plan own = plan_of();
    exphil_plan_config config = EXPHIL_PLAN_CONFIG_INIT;
    exphil_plan alone = EXPHIL_PLAN_INIT, plan = EXPHIL_PLAN_INIT;
    own.sampling.batch = 8;
    config.model_config = &own.model;
    config.trainer = &own.trainer;
    assert_ok(exphil_trainer_plan(context, &config, &alone, NULL));
    own.trainer.communicator = &with;
    own.trainer.reduction = EXPHIL_REDUCTION_SUMS;
    own.trainer.shards = 8;
    assert_ok(exphil_trainer_plan(context, &config, &plan, NULL));
    const uint64_t before = alone.host_bytes[EXPHIL_PLAN_GRADIENTS],
                   now = plan.host_bytes[EXPHIL_PLAN_GRADIENTS];
    assert_true(now >= 4 * before); /* gradients, their copy, two sums of shards that wait */
    exphil_context_destroy(context);
    test_memory memory; /* nor where there is no memory for a plan */
    test_memory_init(&memory);
    context = test_context(&memory, NULL, 1);
    long long failed = 0;
    bool reached = true;
    for (long long at = 1; reached; at++) {
        const long long last = atomic_load(&memory.calls) + at;
        memory.fail_at = last;
        const exphil_status status = exphil_trainer_plan(context, &config, &plan, NULL);
        memory.fail_at = 0;
        reached = atomic_load(&memory.calls) >= last;
        assert_true(status == EXPHIL_OK || (reached && status == EXPHIL_E_MEMORY));
        failed += status < 0;
    }
    assert_true(failed > 0);
    exphil_context_destroy(context);
    assert_memory_clean(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_are_named),    cmocka_unit_test(data_is_named),
        cmocka_unit_test(used_optimizer),      cmocka_unit_test(wrong_settings_of_one),
        cmocka_unit_test(lanes_of_another),    cmocka_unit_test(different_calls),
        cmocka_unit_test(wrong_communicators), cmocka_unit_test(plans_ask_nobody),
        cmocka_unit_test(silent_rank),         cmocka_unit_test(reasons_that_are_none),
        cmocka_unit_test(two_cannot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
