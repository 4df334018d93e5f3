/* Checkpoints of ranks: one file of all lanes, which any number of ranks goes on from, in the same order of the data; with the
 * same number of ranks to the same bits. */
#include "ranks_case.h"
#include "test_places.h"

#include <exphil/notes.h>
#include <stdlib.h>

enum { FIRST = 13, MORE = 15 };

static train_plan plan_of(int32_t type)
{
    train_plan plan = train_plan_of("lstm attention", EXPHIL_MODE_CARRY);
    plan.model.type = type;
    plan.sampling.batch = 6;
    plan.sampling.time = 5;
    plan.adam.ema_decay = 0.9;
    plan.adam.schedule = EXPHIL_SCHEDULE_COSINE;
    plan.adam.total_updates = FIRST + MORE;
    plan.trainer.own_past = 0.3;
    return plan;
}

static ranks_case run(int32_t ranks, int64_t updates, const char *resumed, const char *saved)
{
    ranks_case c = {.plan = plan_of(EXPHIL_TYPE_F64),
                    .ranks = ranks,
                    .updates = updates,
                    .resumed = resumed,
                    .saved = saved};
    ranks_case_run(&c);
    ranks_case_agree(&c);
    return c;
}

static void same_files(const char *one, const char *two)
{
    size_t bytes[2];
    char *data[2] = {test_read(test_path(one), &bytes[0]), test_read(test_path(two), &bytes[1])};
    assert_non_null(data[0]);
    assert_non_null(data[1]);
    assert_int_equal(bytes[0], bytes[1]);
    assert_memory_equal(data[0], data[1], bytes[0]);
    free(data[0]);
    free(data[1]);
}

/* To the last bit after as many updates with as many ranks; else to rounding. */
static void goes_on(int32_t before, int32_t after, const ranks_case *whole)
{
    ranks_case first = run(before, FIRST, NULL, "half"), c = run(after, MORE, "half", "end");
    assert_int_equal(c.metrics[0].update, FIRST + MORE);
    assert_int_equal(c.metrics[0].frames, whole->metrics[0].frames);
    assert_int_equal(c.epoch[0], whole->epoch[0]);
    assert_int_equal(c.index[0], whole->index[0]);
    double apart = ranks_case_distance(&c, whole);
    if (!(apart <= 1e-6))
        fail_msg("%d ranks, then %d: %g from the run that never stopped", before, after, apart);
    if (before == after && after == whole->ranks)
        assert_memory_equal(c.weights[0], whole->weights[0], c.weights_bytes);
    ranks_case_free(&first);
    ranks_case_free(&c);
}

static void any_number_goes_on(void **state)
{
    for (int32_t before = 0; before <= 3; before++)
        for (int32_t after = 0; after <= 4; after++) {
            ranks_case whole = run(after, FIRST + MORE, NULL, NULL);
            goes_on(before, after, &whole);
            ranks_case_free(&whole);
        }
}

/* Ranks that are one write what a trainer without ranks writes, byte for byte; three write the same shapes. */
static void files_are_those_of_one(void **state)
{
    ranks_case none = run(0, FIRST, NULL, "none"), one = run(1, FIRST, NULL, "one"),
               three = run(3, FIRST, NULL, "three");
    same_files("none", "one");
    same_files("none.optimizer", "one.optimizer");
    size_t bytes[2];
    free(test_read(test_path("none.optimizer"), &bytes[0]));
    free(test_read(test_path("three.optimizer"), &bytes[1]));
    assert_int_equal(bytes[0], bytes[1]);
    ranks_case_free(&none);
    ranks_case_free(&one);
    ranks_case_free(&three);
}

/* ---- a checkpoint of 0.1 -------------------------------------------------------------------------------------------- */

static ranks_case run_kept(int32_t ranks)
{
    train_plan plan = train_plan_of("mamba lstm gru attention mlp ffn", EXPHIL_MODE_CARRY); /* kept_test.c */
    plan.model.heads = EXPHIL_HEADS_AUTOREGRESSIVE;
    plan.model.delay_frames = 2;
    plan.episodes = 3;
    plan.adam.ema_decay = 0.98;
    plan.adam.decay = 0.01;
    ranks_case c = {.plan = plan, .ranks = ranks, .updates = 5, .resumed = "kept"};
    ranks_case_run(&c);
    ranks_case_agree(&c);
    return c;
}

static void ranks_go_on_from_0_1(void **state)
{
    size_t bytes = 0;
    char *data = test_read(EXPHIL_SOURCE_DIR "/tests/data/kept/0.1.0/carry.safetensors.optimizer", &bytes);
    assert_non_null(data);
    test_write(test_path("kept.optimizer"), data, bytes);
    free(data);
    ranks_case one = run_kept(0);
    for (int32_t ranks = 1; ranks <= 4; ranks++) {
        ranks_case c = run_kept(ranks);
        double apart = ranks_case_distance(&c, &one);
        if (!(apart <= (ranks == 1 ? 0.0 : 1e-4))) fail_msg("%d ranks: %g", ranks, apart);
        assert_int_equal(c.index[0], one.index[0]);
        ranks_case_free(&c);
    }
    ranks_case_free(&one);
}

/* ---- batches of the host's own --------------------------------------------------------------------------------------- */

typedef struct by_hand {
    exphil_status status;
    exphil_error error;
    unsigned char *all;
    size_t bytes;
    int64_t lanes, first;
} by_hand;

static void step(by_hand *h, train_run *run, int u)
{
    exphil_batch batch = train_batch(run->model, h->lanes, 6, h->first + u);
    if (u) memset((uint8_t *)(uintptr_t)batch.reset, 0, (size_t)h->lanes * 6);
    assert_ok(exphil_trainer_step_batch(run->trainer, &batch, NULL, NULL));
    train_batch_free(&batch);
}

static void hand_rank(thread_rank *rank)
{
    by_hand *h = rank->user;
    train_plan plan = plan_of(EXPHIL_TYPE_F64), own;
    plan.by_hand = true;
    own = ranks_case_plan(&plan, rank);
    train_run run = train_begin(&own);
    step(h, &run, 0);
    assert_ok(exphil_trainer_save(run.trainer, test_path("hand"), NULL));
    step(h, &run, 1);
    size_t bytes = 0;
    unsigned char *whole = train_snapshot(run.trainer, &bytes);
    train_end(&run);
    run = train_begin(&own);
    assert_ok(exphil_trainer_resume(run.trainer, test_path("hand"), NULL));
    step(h, &run, 1);
    h->all = train_snapshot(run.trainer, &h->bytes);
    assert_int_equal(h->bytes, bytes);
    assert_memory_equal(h->all, whole, bytes);
    free(whole);
    train_end(&run);
}

/* The shape is not known when the file is read: lanes are dealt as exphil_rank_lanes says. */
static void batches_by_hand_go_on(void **state)
{
    by_hand h[3] = {{.lanes = 1}, {.lanes = 2, .first = 1}, {.lanes = 2, .first = 3}};
    void *user[3] = {&h[0], &h[1], &h[2]};
    thread_ranks_run(3, hand_rank, user, (thread_how){0, -1, false});
    for (int r = 0; r < 3; r++) free(h[r].all);
}

/* ---- what fails ------------------------------------------------------------------------------------------------------- */

typedef struct trouble {
    const char *path; /* of rank 0 */
    bool saves, fills;
    exphil_status status[3];
    exphil_error error[3];
    bool kept[3]; /* the trainer is as before */
} trouble;

static void troubled_rank(thread_rank *rank)
{
    trouble *t = rank->user;
    train_plan plan = plan_of(EXPHIL_TYPE_F32), own = ranks_case_plan(&plan, rank);
    static test_io io;
    if (rank->rank == 0) {
        test_io_init(&io);
        own.io = &io;
    }
    train_run run = train_begin(&own);
    (void)train_steps(&run, 3);
    size_t bytes[2];
    unsigned char *before = train_snapshot(run.trainer, &bytes[0]);
    if (rank->rank == 0 && t->fills) {
        io.fail_at = (long long)io.calls + 4;
        io.fail_on = true;
        io.code = 28; /* no space left */
    }
    t->error[rank->rank] = (exphil_error)EXPHIL_ERROR_INIT;
    t->status[rank->rank] = t->saves ? exphil_trainer_save(run.trainer, t->path, &t->error[rank->rank])
                                     : exphil_trainer_resume(run.trainer, t->path, &t->error[rank->rank]);
    if (rank->rank == 0) io.fail_at = 0;
    unsigned char *after = train_snapshot(run.trainer, &bytes[1]);
    t->kept[rank->rank] = bytes[0] == bytes[1] && memcmp(before, after, bytes[0]) == 0;
    (void)train_steps(&run, 2); /* all go on */
    free(before);
    free(after);
    train_end(&run);
}

static void all_fail(trouble t, exphil_status first, const char *others)
{
    void *user[3] = {&t, &t, &t};
    thread_ranks_run(3, troubled_rank, user, (thread_how){0, -1, false});
    for (int r = 0; r < 3; r++) {
        if (t.status[r] != (r ? EXPHIL_E_IO : first))
            fail_msg("rank %d: %s: %s", r, exphil_status_name(t.status[r]), t.error[r].message);
        if (r) ranks_case_heard(&t.error[r], others, &t.error[0]);
        assert_true(t.kept[r]);
    }
}

static void what_rank_0_cannot_none_does(void **state)
{
    all_fail((trouble){.path = test_path("not there")}, EXPHIL_E_IO,
             "rank 0 failed with EXPHIL_E_IO in sharing what they have");
    test_write(test_path("damaged.optimizer"), "nothing at all", 14);
    all_fail((trouble){.path = test_path("damaged")}, EXPHIL_E_FORMAT,
             "rank 0 failed with EXPHIL_E_FORMAT in sharing what they have");
    all_fail((trouble){.path = test_path("full"), .saves = true, .fills = true}, EXPHIL_E_IO,
             "rank 0 failed with EXPHIL_E_IO in writing");
    size_t bytes;
    assert_null(test_read(test_path("full.optimizer"), &bytes));
}

/* ---- notes ------------------------------------------------------------------------------------------------------------- */

static void noted_rank(thread_rank *rank)
{
    train_plan plan = plan_of(EXPHIL_TYPE_F32), own = ranks_case_plan(&plan, rank);
    train_run run = train_begin(&own);
    const char *notes = NULL;
    exphil_model *model = NULL;
    if (rank->rank == 0) assert_ok(exphil_trainer_notes_set(run.trainer, "{\"seen\":3}", NULL));
    assert_ok(exphil_trainer_save(run.trainer, test_path("noted"), NULL));
    train_end(&run);
    run = train_begin(&own);
    assert_ok(exphil_trainer_resume(run.trainer, test_path("noted"), NULL));
    assert_ok(exphil_trainer_model(run.trainer, EXPHIL_WEIGHTS, &model, NULL));
    assert_ok(exphil_model_notes(model, &notes, NULL));
    assert_string_equal(notes, "{\"seen\":3}");
    exphil_model_destroy(model);
    train_end(&run);
}

static void notes_reach_all(void **state)
{
    thread_ranks_run(3, noted_rank, NULL, (thread_how){0, -1, false});
}

static int remove_folder(void **state)
{
    test_folder_remove();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_goes_on),           cmocka_unit_test(files_are_those_of_one),
        cmocka_unit_test(ranks_go_on_from_0_1),         cmocka_unit_test(batches_by_hand_go_on),
        cmocka_unit_test(what_rank_0_cannot_none_does), cmocka_unit_test(notes_reach_all),
    };
    return cmocka_run_group_tests(tests, NULL, remove_folder);
}
