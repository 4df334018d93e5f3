/* Mirrored games in training: a policy that has seen its opponent on the right alone plays as well where left and right
 * are exchanged, if it learnt from mirrored games, and badly if not. Runs with a mirror go on bit for bit. */
#include "melee/melee.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

/* The world that `exphil drill` plays in. */
#include "../../cli/drill_world.c"

#define CHECK(call)                                                                                          \
  do {                                                                                                       \
    exphil_status check_status = (call);                                                                     \
    if (check_status < 0) fail_msg("%s: %s: %s", #call, exphil_status_name(check_status), error.message);    \
  } while (0)

enum {
    FLOATS = 278,
    IDS = 18,
    HEADS = 6,
    FRAMES = 150,
    LESSONS = 64,
    EXAMS = 24,
    UPDATES = 800,
    FIRST_EXAM = 1000
};

static exphil_error error = EXPHIL_ERROR_INIT;

/* ---- the drill and its mirror ---- */

/* At frame -1, where the policy takes over. */
static void begin(drill_world *world, uint64_t seed)
{
    static const exphil_pad nothing;
    drill_begin(world, seed);
    while (world->frame < -1) drill_step(world, &nothing);
}

static void observe(const drill_world *world, bool mirrored, exphil_melee_frame *frame)
{
    drill_observe(world, frame);
    if (mirrored) xph_melee_mirror_frame(frame);
}

/* The first frames of drills, in which the opponent is on the right; by frames and controllers, not by rows. */
static exphil_dataset *drills(exphil_context *context, uint64_t first, int64_t count, bool mirrored)
{
    static float floats[FRAMES][FLOATS];
    static int32_t ids[FRAMES][IDS], actions[FRAMES][HEADS];
    exphil_dataset *dataset = NULL;
    CHECK(exphil_dataset_create(context, NULL, &dataset, &error));
    for (uint64_t seed = first; seed < first + (uint64_t)count; seed++) {
        drill_world world;
        begin(&world, seed);
        for (int t = 0; t < FRAMES; t++) {
            exphil_melee_frame frame;
            exphil_pad pad;
            observe(&world, mirrored, &frame);
            CHECK(exphil_melee_encode(NULL, &frame, floats[t], ids[t], &error));
            drill_teach(&world, &pad);
            drill_step(&world, &pad);
            if (mirrored) xph_melee_mirror_pad(&pad);
            CHECK(exphil_melee_pad_encode(NULL, &pad, actions[t], &error));
        }
        CHECK(exphil_dataset_add_rows(dataset, seed, FRAMES, floats[0], ids[0], actions[0], &error));
    }
    return dataset;
}

/* Reflectors that hit, of a policy or, NULL, of the teacher. */
static int64_t hits(exphil_model *model, bool mirrored)
{
    int64_t all = 0;
    for (uint64_t seed = FIRST_EXAM; seed < FIRST_EXAM + EXAMS; seed++) {
        exphil_session *session = NULL;
        exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
        drill_world world;
        config.deterministic = 1;
        begin(&world, seed);
        if (model) CHECK(exphil_session_create(model, &config, &session, &error));
        for (int t = 0; t < FRAMES; t++) {
            exphil_melee_frame frame;
            exphil_pad pad;
            observe(&world, mirrored, &frame);
            if (model)
                CHECK(exphil_session_step(session, &frame, &pad));
            else
                drill_teach(&world, &pad);
            if (model && mirrored) xph_melee_mirror_pad(&pad);
            drill_step(&world, &pad);
        }
        all += world.hits;
        exphil_session_destroy(session);
    }
    return all;
}

/* ---- runs ---- */

typedef struct run {
    exphil_context *context;
    exphil_dataset *dataset;
    exphil_model *model;
    exphil_prefetcher *prefetcher;
    exphil_optimizer *optimizer;
    exphil_trainer *trainer;
} run;

static run begin_run(double mirror, int64_t batch, int32_t threads)
{
    run r = {.context = test_context(NULL, NULL, threads)};
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    exphil_optimizer_config adam = EXPHIL_OPTIMIZER_CONFIG_INIT;
    exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
    config.blocks = "gru";
    config.hidden = config.head_width = 32;
    config.no_previous_action = 1;
    config.seed = 1;
    r.dataset = drills(r.context, 1, LESSONS, false);
    CHECK(exphil_model_create(r.context, &config, &r.model, &error));
    CHECK(exphil_model_sampling(r.model, &sampling, &error));
    sampling.batch = batch;
    sampling.time = 30;
    sampling.seed = 2;
    sampling.mirror = mirror;
    CHECK(exphil_prefetcher_create(r.dataset, &sampling, &r.prefetcher, &error));
    adam.rate = 5e-3;
    adam.schedule = EXPHIL_SCHEDULE_COSINE;
    adam.total_updates = UPDATES;
    CHECK(exphil_optimizer_create(r.model, &adam, &r.optimizer, &error));
    CHECK(exphil_trainer_create(r.model, r.optimizer, r.prefetcher, NULL, &r.trainer, &error));
    return r;
}

static void end_run(run *r)
{
    exphil_trainer_destroy(r->trainer);
    exphil_optimizer_destroy(r->optimizer);
    exphil_prefetcher_destroy(r->prefetcher);
    exphil_model_destroy(r->model);
    exphil_dataset_destroy(r->dataset);
    exphil_context_destroy(r->context);
}

static void steps(const run *r, int64_t count)
{
    for (int64_t i = 0; i < count; i++) CHECK(exphil_trainer_step(r->trainer, NULL, &error));
}

/* ---- learning ---- */

typedef struct score {
    double accuracy[2]; /* whole actions right; of the drill, of its mirror */
    int64_t hits[2], teacher;
} score;

static score learn(double mirror)
{
    score made = {.teacher = hits(NULL, false)};
    run r = begin_run(mirror, 8, 0);
    exphil_model *model = NULL;
    steps(&r, UPDATES);
    CHECK(exphil_trainer_model(r.trainer, EXPHIL_WEIGHTS, &model, &error));
    for (int side = 0; side < 2; side++) {
        exphil_report report = EXPHIL_REPORT_INIT;
        exphil_dataset *exam = drills(r.context, FIRST_EXAM, EXAMS, side);
        CHECK(exphil_evaluate(model, exam, NULL, NULL, 0, &report, &error));
        made.accuracy[side] = report.exact_accuracy;
        made.hits[side] = hits(model, side);
        exphil_dataset_destroy(exam);
    }
    print_message("mirror %.1f: %.2f %% of the drill's actions, %.2f %% of its mirror's; %d and %d hits (the "
                  "teacher: %d)\n",
                  mirror, 100 * made.accuracy[0], 100 * made.accuracy[1], (int)made.hits[0],
                  (int)made.hits[1], (int)made.teacher);
    exphil_model_destroy(model);
    end_run(&r);
    return made;
}

static void both_sides_are_learnt(void **state)
{
    score with = learn(0.5), without = learn(0);
    assert_true(with.accuracy[0] > 0.96 && with.accuracy[1] > 0.96);
    assert_true(fabs(with.accuracy[0] - with.accuracy[1]) < 0.01);
    assert_true(100 * with.hits[0] > 97 * with.teacher && 100 * with.hits[1] > 97 * with.teacher);
    assert_true(without.accuracy[0] > 0.96 && without.accuracy[1] < 0.9);
    assert_true((double)without.hits[1] < 0.92 * (double)without.teacher);
}

/* ---- going on ---- */

static void runs_go_on(void **state)
{
    run whole = begin_run(0.5, 8, 1);
    steps(&whole, 60); /* of epochs of 40 batches */
    CHECK(exphil_trainer_save(whole.trainer, test_path("whole"), &error));
    end_run(&whole);
    run first = begin_run(0.5, 8, 2);
    steps(&first, 23);
    CHECK(exphil_trainer_save(first.trainer, test_path("part"), &error));
    end_run(&first);
    run second = begin_run(0.5, 8, 1);
    CHECK(exphil_trainer_resume(second.trainer, test_path("part"), &error));
    steps(&second, 37);
    CHECK(exphil_trainer_save(second.trainer, test_path("part"), &error));
    end_run(&second);
    assert_same_file(test_path("whole.optimizer"), test_path("part.optimizer"));
}

static void refuse(double mirror, const char *says)
{
    run r = begin_run(mirror, 8, 1);
    exphil_error why = EXPHIL_ERROR_INIT;
    assert_int_equal(exphil_trainer_resume(r.trainer, test_path("part"), &why), EXPHIL_E_MISMATCH);
    assert_says(&why, says);
    end_run(&r);
}

/* Another share is another run. Without a mirror the checkpoint says nothing of it, as before there was one. */
static void the_share_is_kept(void **state)
{
    static const double shares[] = {0.5, 0};
    for (int i = 0; i < 2; i++) {
        run r = begin_run(shares[i], 8, 1);
        size_t bytes;
        steps(&r, 3);
        CHECK(exphil_trainer_save(r.trainer, test_path("part"), &error));
        end_run(&r);
        char *file = test_read(test_path("part.optimizer"), &bytes);
        assert_non_null(file);
        assert_int_equal(test_find(file, bytes, "sampling.mirror", strlen("sampling.mirror")) != NULL,
                         shares[i] > 0);
        free(file);
        refuse(0.25, i ? "sampling.mirror 0, this run has 0.25" : "sampling.mirror 0.5, this run has 0.25");
        refuse(0.5 - shares[i],
               i ? "sampling.mirror 0, this run has 0.5" : "sampling.mirror 0.5, this run has 0");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_sides_are_learnt),
        cmocka_unit_test(runs_go_on),
        cmocka_unit_test(the_share_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, test_leave);
}
