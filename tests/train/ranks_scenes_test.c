/* What ranks come to where one of them does something else than the others, a scene each: nobody waits, and all have the status
 * that ranks.h says. Prints what every call came to.
 *   ranks_scenes_test [LETTERS]   the scenes to run (default: all; those of a GPU where the emulated one is built) */
#include "ranks_case.h"
#include "test_places.h"

#include <exphil/learn.h>
#include <exphil/ranks.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define PLUGIN EXPHIL_BINARY_DIR "/tests/plugin-emulated"

static char which;
static test_meeting *together;
static struct thread_ranks *others;

static const char *key;       /* of the call that a scene is about */
static exphil_status came[8]; /* what it came to, the last time */

static void say(int r, const char *what, exphil_status status, const exphil_error *error)
{
    if (key && strstr(what, key)) came[r] = status;
    printf("%c rank %d %s: %s %s\n", which, r, what, exphil_status_name(status),
           status < 0 ? error->message : "");
    fflush(stdout);
}
#define DO(r, expression)                                                                                    \
  do {                                                                                                       \
    exphil_error error_ = EXPHIL_ERROR_INIT, *error = &error_;                                               \
    exphil_status status_ = (expression);                                                                    \
    say(r, #expression, status_, error);                                                                     \
  } while (0)

static train_plan plan_of(void)
{
    train_plan plan = train_plan_of("lstm", EXPHIL_MODE_CARRY);
    plan.sampling.batch = 6;
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

/* a: one rank goes on with a new one, which resumed its checkpoint alone. */
static double sum_state(const exphil_trainer *t)
{
    double s = 0;
    const float *f = t->feed.state[0];
    for (size_t i = 0; i < t->feed.state_bytes / 4; i++) s += fabs((double)f[i]);
    return s;
}
static void joins(thread_rank *rank)
{
    int r = rank->rank;
    train_plan plan = plan_of();
    struct thread_ranks *alone = thread_ranks_open(1, (thread_how){0, -1, false});
    thread_rank *lone = thread_ranks_of(alone, 0);
    train_plan own = ranks_case_plan(&plan, lone);
    train_run run = train_begin(&own);
    char path[300];
    snprintf(path, sizeof path, "%s/join", test_folder());
    if (!r) {
        (void)train_steps(&run, 4);
        DO(r, exphil_trainer_save(run.trainer, path, error));
    }
    (void)test_meeting_come(together);
    if (r) DO(r, exphil_trainer_resume(run.trainer, path, error));
    float kept[100];
    size_t each = run.trainer->feed.state_bytes / 6;
    memcpy(kept, (char *)run.trainer->feed.state[0] + (size_t)(r * 3) * each, 8 * sizeof *kept);
    printf("a rank %d: before, lane %d begins %g %g %g; all %g\n", r, r * 3, kept[0], kept[1], kept[2],
           sum_state(run.trainer));
    exphil_prefetcher *next = lanes_of(&run, &plan, r, 2);
    DO(r, exphil_trainer_set_communicator(run.trainer, &rank->communicator, next, error));
    const float *now = run.trainer->feed.state[0];
    printf("a rank %d: after,  lane %d begins %g %g %g; all %g\n", r, r * 3, now[0], now[1], now[2],
           sum_state(run.trainer));
    DO(r, exphil_trainer_step(run.trainer, NULL, error));
    thread_ranks_leave(rank);
    train_end(&run);
    exphil_prefetcher_destroy(next);
    thread_ranks_close(alone);
}

/* b: shards of 4 ranks, of which 3 go on. */
static void shards_change(thread_rank *rank)
{
    int r = rank->rank;
    train_plan plan = plan_of();
    plan.sampling.batch = 12;
    plan.trainer.shards = 4;
    train_plan own = ranks_case_plan(&plan, rank);
    train_run run = train_begin(&own);
    (void)train_steps(&run, 2);
    if (r < 3) {
        thread_rank *other = thread_ranks_of(others, r);
        exphil_prefetcher *next = lanes_of(&run, &plan, r, 3);
        DO(r, exphil_trainer_set_communicator(run.trainer, &other->communicator, next, error));
        printf("b rank %d: communicator is the %s one\n", r,
               run.trainer->communicator.user == other ? "new" : "old");
        DO(r, exphil_trainer_save(run.trainer, test_path("b"), error));
        DO(r, exphil_trainer_step(run.trainer, NULL, error));
        thread_ranks_leave(other);
        thread_ranks_leave(rank);
        train_end(&run);
        exphil_prefetcher_destroy(next);
        return;
    }
    train_end(&run);
}

/* c: a path of the others is not used. */
static void no_path(thread_rank *rank)
{
    train_plan plan = plan_of(), own = ranks_case_plan(&plan, rank);
    train_run run = train_begin(&own);
    (void)train_steps(&run, 1);
    DO(rank->rank, exphil_trainer_save(run.trainer, rank->rank ? NULL : test_path("c"), error));
    thread_ranks_leave(rank);
    train_end(&run);
}
static void empty_path(thread_rank *rank)
{
    train_plan plan = plan_of(), own = ranks_case_plan(&plan, rank);
    train_run run = train_begin(&own);
    (void)train_steps(&run, 1);
    DO(rank->rank, exphil_trainer_resume(run.trainer, rank->rank ? "" : "/nowhere", error));
    thread_ranks_leave(rank);
    train_end(&run);
}

/* e: other counts. */
static void agree_counts(thread_rank *rank)
{
    train_plan plan = plan_of(), own = ranks_case_plan(&plan, rank);
    train_run run = train_begin(&own);
    double n[2] = {-5.0 - rank->rank, -7.0};
    DO(rank->rank, exphil_trainer_agree(run.trainer, n, rank->rank ? 1 : 2, error));
    printf("e rank %d: %g %g\n", rank->rank, n[0], n[1]);
    thread_ranks_leave(rank);
    train_end(&run);
}

/* f: lanes of all ranks above 4096. g: other errors of step_batch. h: backward. */
static void many_lanes(thread_rank *rank)
{
    train_plan plan = plan_of();
    plan.by_hand = true;
    train_plan own = ranks_case_plan(&plan, rank);
    train_run run = train_begin(&own);
    exphil_batch batch = train_batch(run.model, 2100, 1, 0);
    DO(rank->rank, exphil_trainer_step_batch(run.trainer, &batch, NULL, error));
    DO(rank->rank, exphil_trainer_save(run.trainer, test_path("f"), error));
    DO(rank->rank, exphil_trainer_resume(run.trainer, test_path("f"), error));
    thread_ranks_leave(rank);
    train_batch_free(&batch);
    train_end(&run);
}
static void null_batch(thread_rank *rank)
{
    train_plan plan = plan_of();
    plan.by_hand = true;
    train_plan own = ranks_case_plan(&plan, rank);
    train_run run = train_begin(&own);
    exphil_batch batch = train_batch(run.model, 2, 4, 0);
    DO(rank->rank, exphil_trainer_step_batch(run.trainer, rank->rank ? NULL : &batch, NULL, error));
    thread_ranks_leave(rank);
    train_batch_free(&batch);
    train_end(&run);
}
static void bad_gradient(thread_rank *rank)
{
    train_plan plan = plan_of();
    plan.by_hand = true;
    train_plan own = ranks_case_plan(&plan, rank);
    train_run run = train_begin(&own);
    exphil_batch batch = train_batch(run.model, 2, 4, 0);
    exphil_forward given = EXPHIL_FORWARD_INIT;
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    DO(rank->rank, exphil_trainer_forward(run.trainer, &batch, NULL, 0, &given, error));
    float *d = calloc((size_t)(given.rows * given.logit_count), sizeof *d);
    d[0] = 0.1f;
    DO(rank->rank, exphil_trainer_backward(run.trainer, d, NULL, 1.0, &metrics, error));
    printf("h rank %d: frames %lld\n", rank->rank, (long long)metrics.frames);
    DO(rank->rank, exphil_trainer_forward(run.trainer, &batch, NULL, 0, &given, error));
    if (rank->rank) d[0] = NAN;
    DO(rank->rank, exphil_trainer_backward(run.trainer, d, NULL, 1.0, NULL, error));
    thread_ranks_leave(rank);
    free(d);
    train_batch_free(&batch);
    train_end(&run);
}

/* A trainer made of what served one without ranks. */
static void create_late(thread_rank *rank, train_plan own, void (*change)(exphil_trainer_config *how))
{
    exphil_trainer_config how = own.trainer;
    own.trainer.communicator = NULL;
    own.trainer.shards = 0;
    train_run run = train_begin(&own);
    exphil_trainer_destroy(run.trainer);
    run.trainer = NULL;
    if (rank->rank && change) change(&how);
    DO(rank->rank,
       exphil_trainer_create(run.model, run.optimizer, run.prefetcher, &how, &run.trainer, error));
    if (run.trainer) DO(rank->rank, exphil_trainer_step(run.trainer, NULL, error));
    thread_ranks_leave(rank);
    train_end(&run);
}
static void other_scale(exphil_trainer_config *how)
{
    how->loss_scale = 1024.0;
}

/* i: S divides the batch? 9 lanes, 2 ranks, 2 shards. */
static void odd_shards(thread_rank *rank)
{
    train_plan plan = plan_of();
    plan.sampling.batch = 9;
    plan.trainer.shards = 2;
    train_plan own = ranks_case_plan(&plan, rank);
    create_late(rank, own, NULL);
}

/* j: create with a wrong setting on one rank. */
static void wrong_setting(thread_rank *rank)
{
    train_plan plan = plan_of(), own = ranks_case_plan(&plan, rank);
    exphil_trainer_config how = own.trainer;
    own.trainer.communicator = NULL;
    train_run run = train_begin(&own);
    exphil_trainer_destroy(run.trainer);
    run.trainer = NULL;
    if (rank->rank) how.accumulate = -1;
    DO(rank->rank,
       exphil_trainer_create(run.model, run.optimizer, run.prefetcher, &how, &run.trainer, error));
    thread_ranks_leave(rank);
    train_end(&run);
}

/* k: a GPU; rank 0 alone asks for the model after an update that overflowed. */
static void settles_alone(thread_rank *rank)
{
    int r = rank->rank;
    train_plan plan = train_plan_of("mlp", EXPHIL_MODE_CARRY);
    plan.device = "cuda:0";
    plan.backend_path = PLUGIN;
    plan.trainer.precision = EXPHIL_PRECISION_F16;
    plan.trainer.loss_scale = 0x1p24;
    train_plan own = ranks_case_plan(&plan, rank);
    train_run run = train_begin(&own);
    exphil_metrics m = EXPHIL_METRICS_INIT;
    for (int i = 0; i < 6; i++) {
        DO(r, exphil_trainer_step(run.trainer, &m, error));
        printf("k rank %d: update %lld skipped %lld scale %g\n", r, (long long)m.update, (long long)m.skipped,
               m.loss_scale);
        if (i >= 1 && r == 0) {
            exphil_model *model = NULL;
            DO(r, exphil_trainer_model(run.trainer, EXPHIL_WEIGHTS, &model, error));
            exphil_model_destroy(model);
        }
    }
    thread_ranks_leave(rank);
    train_end(&run);
}

/* l: F32 on a GPU; a gradient that is not finite, then rank 0 alone asks for the model. */
static void numeric_alone_in(thread_rank *rank, int32_t precision)
{
    int r = rank->rank;
    train_plan plan = train_plan_of("mlp", EXPHIL_MODE_CARRY);
    plan.device = "cuda:0";
    plan.backend_path = PLUGIN;
    plan.by_hand = true;
    plan.trainer.precision = precision;
    plan.trainer.loss_scale = precision ? 0x1p24 : 0.0;
    train_plan own = ranks_case_plan(&plan, rank);
    train_run run = train_begin(&own);
    exphil_batch batch = train_batch(run.model, 2, 4, 0), bad = train_batch(run.model, 2, 4, 0);
    const bool half = precision == EXPHIL_PRECISION_F16;
    const int at = half ? 6 : 2;
    if (half) /* one row alone: a larger gradient, which overflows at the scale that others just did not */
        for (int i = 1; i < 8; i++) ((float *)(uintptr_t)bad.mask)[i] = 0.0f;
    if (half && r) ((float *)(uintptr_t)bad.mask)[0] = 0.0f;
    if (r && !half)
        for (int i = 0; i < 2 * 4 * 13; i++) ((float *)(uintptr_t)bad.floats)[i] = 3.4e38f;
    for (int i = 0; i < at + 4; i++) {
        DO(r, exphil_trainer_step_batch(run.trainer, i == at ? &bad : &batch, NULL, error));
        if (i == at && r == 0) {
            exphil_model *model = NULL;
            DO(r, exphil_trainer_model(run.trainer, EXPHIL_WEIGHTS, &model, error));
            exphil_model_destroy(model);
        }
    }
    thread_ranks_leave(rank);
    train_batch_free(&batch);
    train_batch_free(&bad);
    train_end(&run);
}

static void numeric_alone(thread_rank *rank)
{
    numeric_alone_in(rank, EXPHIL_PRECISION_F32);
}
/* o: the same in F16, where it is no failure. */
static void overflow_alone(thread_rank *rank)
{
    numeric_alone_in(rank, EXPHIL_PRECISION_F16);
}

/* m: other instruction sets. */
static void other_isa(thread_rank *rank)
{
    int r = rank->rank;
    train_plan plan = plan_of();
    static const char *const isa[] = {"ref", NULL};
    plan.isa = isa[r];
    plan.adam.ema_decay = 0.9;
    plan.trainer.own_past = 0.3;
    train_plan own = ranks_case_plan(&plan, rank);
    own.threads = r ? 2 : 1;
    train_run run = train_begin(&own);
    for (int i = 0; i < 12; i++) {
        exphil_error e = EXPHIL_ERROR_INIT;
        if (exphil_trainer_step(run.trainer, NULL, &e) < 0) say(r, "step", EXPHIL_E_IO, &e);
    }
    const unsigned char *w = run.trainer->weights;
    printf("m rank %d: weights %016llx\n", r, (unsigned long long)xph_hash(w, run.trainer->arena_bytes));
    thread_ranks_leave(rank);
    train_end(&run);
}

/* p: another first loss scale. */
static void settings_apart(thread_rank *rank)
{
    train_plan plan = train_plan_of("mlp", EXPHIL_MODE_CARRY);
    plan.device = "cuda:0";
    plan.backend_path = PLUGIN;
    plan.trainer.precision = EXPHIL_PRECISION_F16;
    plan.trainer.loss_scale = 65536.0;
    create_late(rank, ranks_case_plan(&plan, rank), other_scale);
}

/* n: step on a rank without a prefetcher, step_batch on the other. */
static void other_kind(thread_rank *rank)
{
    train_plan plan = plan_of();
    plan.by_hand = true;
    train_plan own = ranks_case_plan(&plan, rank);
    train_run run = train_begin(&own);
    exphil_batch batch = train_batch(run.model, 2, 4, 0);
    if (rank->rank)
        DO(1, exphil_trainer_step(run.trainer, NULL, error));
    else
        DO(0, exphil_trainer_step_batch(run.trainer, &batch, NULL, error));
    thread_ranks_leave(rank);
    train_batch_free(&batch);
    train_end(&run);
}

/* r: saving after a rank is lost. */
static void save_after_loss(thread_rank *rank)
{
    train_plan plan = plan_of(), own = ranks_case_plan(&plan, rank);
    train_run run = train_begin(&own);
    (void)train_steps(&run, 1);
    if (rank->rank == 0) {
        DO(0, exphil_trainer_step(run.trainer, NULL, error));
        DO(0, exphil_trainer_save(run.trainer, test_path("r"), error));
    }
    thread_ranks_leave(rank);
    train_end(&run);
}

int main(int argc, char **argv)
{
    enum { OK = EXPHIL_OK, IO = EXPHIL_E_IO, BAD = EXPHIL_E_INVALID, APART = EXPHIL_E_MISMATCH };
    static const struct {
        char letter;
        int32_t ranks;
        thread_rank_fn fn;
        bool tree;
        const char *key;
        exphil_status expected[2];
    } all[] = {{'a', 2, joins, 0, "set_communicator", {OK, OK}},
               {'b', 4, shards_change, 1, "set_communicator", {BAD, BAD}},
               {'c', 2, no_path, 0, "save", {OK, OK}},
               {'d', 2, empty_path, 0, "resume", {IO, IO}},
               {'e', 2, agree_counts, 0, "agree", {APART, APART}},
               {'f', 2, many_lanes, 0, "save", {EXPHIL_E_UNSUPPORTED, EXPHIL_E_UNSUPPORTED}},
               {'g', 2, null_batch, 0, "step_batch", {IO, BAD}},
               {'h', 2, bad_gradient, 0, "backward", {IO, EXPHIL_E_NUMERIC}},
               {'i', 2, odd_shards, 0, "create", {BAD, BAD}},
               {'j', 2, wrong_setting, 0, "create", {IO, BAD}},
               {'k', 2, settles_alone, 0, "step", {OK, OK}},
               {'l', 2, numeric_alone, 0, "step_batch", {OK, OK}},
               {'m', 2, other_isa, 0, NULL, {OK, OK}},
               {'n', 2, other_kind, 0, "step", {IO, EXPHIL_E_STATE}},
               {'o', 2, overflow_alone, 0, "step_batch", {OK, OK}},
               {'p', 2, settings_apart, 0, "create", {APART, APART}},
               {'r', 2, save_after_loss, 0, NULL, {OK, OK}}};
    int wrong = 0;
    test_end_after(120);
    (void)test_folder();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (argc > 1 && !strchr(argv[1], all[i].letter)) continue;
        if (strchr("klop", all[i].letter) && !test_exists(PLUGIN "/libexphil_cuda.so")) {
            printf("SKIPPED: no emulated GPU is built: ranks of GPUs are untested here\n");
            continue;
        }
        which = all[i].letter;
        key = all[i].key;
        came[0] = came[1] = OK;
        together = test_meeting_make(2);
        others = thread_ranks_open(3, (thread_how){0, -1, true});
        thread_ranks_run(all[i].ranks, all[i].fn, NULL, (thread_how){0, -1, all[i].tree});
        thread_ranks_close(others);
        test_meeting_free(together);
        for (int r = 0; key && r < 2; r++)
            if (came[r] != all[i].expected[r]) {
                printf("%c: rank %d: %s, expected %s\n", which, r, exphil_status_name(came[r]),
                       exphil_status_name(all[i].expected[r]));
                wrong = 1;
            }
    }
    test_folder_remove();
    return wrong;
}
