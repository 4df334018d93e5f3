/* A corpus that another process shortens or overwrites while it is used: a status from every call that needs its rows, never
 * a signal. And one that many threads use: a host's read is not called twice at a time. */
#include "train_case.h"

#include <stdio.h>

typedef struct world {
    test_io io; /* of the last test; the others have the library's own files */
    train_plan plan;
    train_run run; /* a model and trainer on rows in memory */
    exphil_dataset *open;
    exphil_dataset_info info;
    char path[512];
    size_t bytes;
} world;
static world w;

static int begin(void **state)
{
    w.plan = train_plan_of("gru", EXPHIL_MODE_CARRY);
    w.plan.episodes = 24;
    w.run = train_begin(&w.plan);
    (void)snprintf(w.path, sizeof w.path, "%s", test_path("corpus"));
    w.info = (exphil_dataset_info)EXPHIL_DATASET_INFO_INIT;
    assert_int_equal(exphil_dataset_query(w.run.dataset, &w.info, NULL), EXPHIL_OK);
    return 0;
}

static int end(void **state)
{
    train_end(&w.run);
    test_folder_remove();
    return 0;
}

/* Opened anew; checked: all of its rows have passed. */
static void open_corpus(bool checked)
{
    assert_int_equal(exphil_dataset_save(w.run.dataset, w.path, NULL), EXPHIL_OK);
    assert_int_equal(exphil_dataset_open(w.run.context, w.path, &w.open, NULL), EXPHIL_OK);
    if (checked) assert_int_equal(exphil_dataset_verify(w.open, NULL), EXPHIL_OK);
    FILE *file = fopen(w.path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    w.bytes = (size_t)ftell(file);
    (void)fclose(file);
}

/* ---- what needs rows ------------------------------------------------------------------------------------------------- */

static exphil_status frames(exphil_error *e)
{
    float floats[64];
    int32_t ids[64], action[EXPHIL_HEADS_MAX];
    exphil_status status = EXPHIL_OK;
    for (int64_t i = 0; status >= 0 && i < w.info.frames; i++)
        status = exphil_dataset_frame(w.open, i, floats, ids, action, e);
    return status;
}

/* Out of order: rows alone, once their pieces are checked. */
static exphil_status frames_backwards(exphil_error *e)
{
    float floats[64];
    int32_t ids[64], action[EXPHIL_HEADS_MAX];
    exphil_status status = EXPHIL_OK;
    for (int64_t i = w.info.frames; status >= 0 && i-- > 0;)
        status = exphil_dataset_frame(w.open, i, floats, ids, action, e);
    return status;
}

static exphil_status verify(exphil_error *e)
{
    return exphil_dataset_verify(w.open, e);
}

static exphil_status evaluate(exphil_error *e)
{
    exphil_report report = EXPHIL_REPORT_INIT;
    return exphil_evaluate(w.run.model, w.open, NULL, NULL, 0, &report, e);
}

static exphil_status frequencies(exphil_error *e)
{
    exphil_report report = EXPHIL_REPORT_INIT;
    return exphil_evaluate(w.run.model, w.run.dataset, w.open, NULL, 0, &report, e);
}

static exphil_status compare(exphil_error *e)
{
    exphil_comparison comparison = EXPHIL_COMPARISON_INIT;
    return exphil_model_compare(w.run.model, w.run.model, w.open, 0, &comparison, e);
}

static exphil_status save(exphil_error *e)
{
    exphil_status status = exphil_dataset_save(w.open, test_path("copy"), e);
    assert_int_equal(test_exists(test_path("copy")), status == EXPHIL_OK);
    (void)remove(test_path("copy"));
    return status;
}

static exphil_status split(exphil_error *e)
{
    exphil_split_config by_time = EXPHIL_SPLIT_CONFIG_INIT;
    exphil_dataset *kept = NULL, *held = NULL;
    by_time.by = EXPHIL_SPLIT_TIME;
    by_time.held_out = 0.5;
    exphil_status status = exphil_dataset_split(w.open, &by_time, &kept, &held, e);
    exphil_dataset_destroy(kept);
    exphil_dataset_destroy(held);
    return status;
}

static exphil_status prefetch(exphil_error *e)
{
    exphil_sampling how = EXPHIL_SAMPLING_INIT;
    exphil_prefetcher *prefetcher = NULL;
    exphil_batch batch = EXPHIL_BATCH_INIT;
    how.batch = 2;
    how.time = 8;
    how.delay_frames = 1;
    how.action_slots = 2;
    exphil_status status = exphil_prefetcher_create(w.open, &how, &prefetcher, e);
    while (status == EXPHIL_OK) status = exphil_prefetcher_next(prefetcher, &batch, e);
    exphil_prefetcher_destroy(prefetcher);
    return status == EXPHIL_END ? EXPHIL_OK : status;
}

static const struct {
    const char *name;
    exphil_status (*run)(exphil_error *e);
    bool rows_once_checked; /* reads rows that have passed */
} uses[] = {
    {"frames", frames, true},
    {"frames backwards", frames_backwards, true},
    {"verify", verify, false},
    {"evaluate", evaluate, true},
    {"frequencies", frequencies, true},
    {"compare", compare, true},
    {"save", save, true},
    {"split", split, true},
    {"prefetcher", prefetch, true},
};
enum { USES = sizeof uses / sizeof uses[0] };

static void shortened(void **state)
{
    for (int i = 0; i < USES; i++) {
        for (int part = 0; part < 8; part++) {
            bool checked = part & 1;
            exphil_error error = EXPHIL_ERROR_INIT;
            open_corpus(checked);
            if (part == 0 && uses[i].run(&error) != EXPHIL_OK)
                fail_msg("%s: %s", uses[i].name, error.message);
            exphil_dataset_destroy(w.open);
            open_corpus(checked);
            test_resize(w.path, w.bytes * (size_t)(part / 2) / 4);
            exphil_status status = uses[i].run(&error);
            exphil_status want = checked && !uses[i].rows_once_checked ? EXPHIL_OK : EXPHIL_E_FORMAT;
            if (status != want)
                fail_msg("%s: %s, %s", uses[i].name, exphil_status_name(status), error.message);
            if (status < 0 && !strstr(error.message, ": the file ends here"))
                fail_msg("%s: \"%s\"", uses[i].name, error.message);
            exphil_dataset_destroy(w.open);
        }
    }
}

/* Zeros where rows were: found where they were not checked before, else rows as they are. */
static void overwritten(void **state)
{
    for (int i = 0; i < USES; i++) {
        for (int checked = 0; checked < 2; checked++) {
            exphil_error error = EXPHIL_ERROR_INIT;
            open_corpus(checked);
            test_resize(w.path, w.bytes / 2);
            test_resize(w.path, w.bytes);
            exphil_status status = uses[i].run(&error);
            if (status != (checked ? EXPHIL_OK : EXPHIL_E_FORMAT))
                fail_msg("%s: %s, %s", uses[i].name, exphil_status_name(status), error.message);
            exphil_dataset_destroy(w.open);
        }
    }
}

/* The prefetcher of a run has read a part, and reads on while the file is shortened. */
static void shortened_under_a_run(void **state)
{
    exphil_prefetcher *prefetcher = NULL;
    exphil_optimizer *optimizer = NULL;
    exphil_trainer *trainer = NULL;
    exphil_sampling how = EXPHIL_SAMPLING_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    open_corpus(false);
    assert_int_equal(exphil_model_sampling(w.run.model, &how, NULL), EXPHIL_OK);
    how.batch = 2;
    how.time = 8;
    assert_int_equal(exphil_prefetcher_create(w.open, &how, &prefetcher, NULL), EXPHIL_OK);
    assert_int_equal(exphil_optimizer_create(w.run.model, NULL, &optimizer, NULL), EXPHIL_OK);
    assert_int_equal(exphil_trainer_create(w.run.model, optimizer, prefetcher, NULL, &trainer, NULL),
                     EXPHIL_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(exphil_trainer_step(trainer, NULL, NULL), EXPHIL_OK);
    test_resize(w.path, w.bytes / 3);
    exphil_status status = EXPHIL_OK;
    for (int64_t i = 0; status == EXPHIL_OK && i < w.info.frames; i++)
        status = exphil_trainer_step(trainer, NULL, &error);
    assert_int_equal(status, EXPHIL_E_FORMAT);
    assert_non_null(strstr(error.message, ": the file ends here"));
    /* The run can be saved, and goes on when the file is whole again. */
    assert_int_equal(exphil_trainer_save(trainer, test_path("net"), NULL), EXPHIL_OK);
    exphil_trainer_destroy(trainer);
    exphil_optimizer_destroy(optimizer);
    exphil_prefetcher_destroy(prefetcher);
    exphil_dataset_destroy(w.open);
}

/* ---- many readers ---------------------------------------------------------------------------------------------------- */

static void a_hosts_read_is_called_by_one_at_a_time(void **state)
{
    exphil_prefetcher *prefetcher[3] = {NULL};
    test_io_init(&w.io);
    exphil_context *context = test_context(NULL, &w.io, 3);
    exphil_batch batch = EXPHIL_BATCH_INIT;
    exphil_dataset *many = NULL;
    open_corpus(false);
    exphil_dataset_destroy(w.open);
    assert_int_equal(exphil_dataset_open(context, w.path, &many, NULL), EXPHIL_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(exphil_prefetcher_create(many, NULL, &prefetcher[i], NULL), EXPHIL_OK);
    assert_int_equal(exphil_dataset_verify(many, NULL), EXPHIL_OK);
    for (int k = 0; k < 60; k++) {
        for (int i = 0; i < 3; i++) assert_true(exphil_prefetcher_next(prefetcher[i], &batch, NULL) >= 0);
        assert_int_equal(exphil_dataset_frame(many, k * 7 % w.info.frames, NULL, NULL, NULL, NULL),
                         EXPHIL_OK);
    }
    for (int i = 0; i < 3; i++) exphil_prefetcher_destroy(prefetcher[i]);
    assert_int_equal(atomic_load(&w.io.overlaps), 0);
    exphil_dataset_destroy(many);
    exphil_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shortened),
        cmocka_unit_test(overwritten),
        cmocka_unit_test(shortened_under_a_run),
        cmocka_unit_test(a_hosts_read_is_called_by_one_at_a_time),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
