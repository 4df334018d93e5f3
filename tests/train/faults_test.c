/* Memory that is not there and files that fail, at every place, once and for ever: the status the header promises, nothing
 * left behind, the old file as it was, and the same call works when the trouble is over. */
#include "train_case.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* What an operation works on; all of it made before the faults begin. */
typedef struct bench {
    test_memory memory;
    test_io io;
    train_plan plan;
    train_run run;
    exphil_batch batch;
    float *floats;
    int32_t *ids, *actions;
    exphil_model *quantized;
} bench;

enum { FRAMES = 30 };

static void bench_make(bench *b, int32_t mode)
{
    memset(b, 0, sizeof *b);
    test_memory_init(&b->memory);
    test_io_init(&b->io);
    b->plan = train_plan_of("(mamba attention)*2 gru ffn", mode);
    b->plan.model.heads = EXPHIL_HEADS_AUTOREGRESSIVE;
    b->plan.memory = &b->memory;
    b->plan.io = &b->io;
    b->plan.threads = 2;
    b->plan.episodes = 3;
    b->plan.adam.ema_decay = 0.9;
    b->plan.trainer.accumulate = 2;
    b->plan.trainer.checkpoint_blocks = mode == EXPHIL_MODE_CARRY;
    b->plan.trainer.activations = mode == EXPHIL_MODE_CARRY ? EXPHIL_TYPE_F32 : EXPHIL_TYPE_BF16;
    b->run = train_begin(&b->plan);
    b->floats = calloc(FRAMES * 13, sizeof *b->floats);
    b->ids = calloc(FRAMES * 2, sizeof *b->ids);
    b->actions = calloc(FRAMES * 3, sizeof *b->actions);
    b->batch = train_batch(b->run.model, 2, 6, 0);
    (void)train_steps(&b->run, 2);
    assert_ok(exphil_trainer_save(b->run.trainer, test_path("old"), NULL));
    assert_ok(exphil_model_save(b->run.model, test_path("model"), NULL));
    exphil_comparison comparison = EXPHIL_COMPARISON_INIT;
    comparison.frames = 1;
    comparison.heads = 3;
    assert_ok(exphil_model_quantize(b->run.model, EXPHIL_TYPE_I8, &b->quantized, NULL));
    assert_ok(exphil_model_calibration_set(b->quantized, &comparison, NULL));
    assert_ok(exphil_model_save(b->quantized, test_path("quantized"), NULL));
    assert_ok(exphil_dataset_save(b->run.dataset, test_path("corpus"), NULL));
}

static void bench_free(bench *b)
{
    exphil_model_destroy(b->quantized);
    train_end(&b->run);
    train_batch_free(&b->batch);
    free(b->floats);
    free(b->ids);
    free(b->actions);
    assert_memory_clean(&b->memory);
    assert_int_equal(atomic_load(&b->io.open_files), 0);
    test_folder_remove();
}

/* ---- operations: each cleans up after itself when it went well ----------------------------------------------------- */

typedef exphil_status (*operation)(bench *b, exphil_error *error);

/* An operation that makes one object, by a call that puts it into made. */
#define MAKES(name, object, call)                                                                            \
  static exphil_status name(bench *b, exphil_error *error)                                                   \
  {                                                                                                          \
    object *made = NULL;                                                                                     \
    exphil_status status = call;                                                                             \
    assert_int_equal(made != NULL, status == EXPHIL_OK);                                                     \
    object##_destroy(made);                                                                                  \
    return status;                                                                                           \
  }
MAKES(create_model, exphil_model, exphil_model_create(b->run.context, &b->plan.model, &made, error))
MAKES(give_model, exphil_model, exphil_trainer_model(b->run.trainer, EXPHIL_WEIGHTS_AVERAGED, &made, error))
MAKES(load_model, exphil_model, exphil_model_load(b->run.context, test_path("model"), &made, error))
MAKES(load_quantized, exphil_model, exphil_model_load(b->run.context, test_path("quantized"), &made, error))
MAKES(quantize, exphil_model, exphil_model_quantize(b->run.model, EXPHIL_TYPE_I8, &made, error))
MAKES(open_corpus, exphil_dataset, exphil_dataset_open(b->run.context, test_path("corpus"), &made, error))

static exphil_status create_dataset(bench *b, exphil_error *error)
{
    exphil_dataset *dataset = NULL;
    exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT;
    config.spec = &model_case_spec;
    exphil_status status = exphil_dataset_create(b->run.context, &config, &dataset, error);
    if (status == EXPHIL_OK)
        status = exphil_dataset_add_rows(dataset, 1, FRAMES, b->floats, b->ids, b->actions, error);
    exphil_dataset_destroy(dataset);
    return status;
}

static exphil_status split_dataset(bench *b, exphil_error *error)
{
    exphil_dataset *kept = NULL, *held = NULL;
    exphil_split_config config = EXPHIL_SPLIT_CONFIG_INIT;
    config.held_out = 0.3;
    config.by = EXPHIL_SPLIT_TIME;
    exphil_status status = exphil_dataset_split(b->run.dataset, &config, &kept, &held, error);
    assert_int_equal(kept != NULL, status == EXPHIL_OK);
    assert_int_equal(held != NULL, status == EXPHIL_OK);
    exphil_dataset_destroy(kept);
    exphil_dataset_destroy(held);
    return status;
}

static exphil_status create_prefetcher(bench *b, exphil_error *error)
{
    exphil_prefetcher *prefetcher = NULL;
    exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
    exphil_batch batch = EXPHIL_BATCH_INIT;
    exphil_status status = exphil_model_sampling(b->run.model, &sampling, error);
    if (status == EXPHIL_OK) status = exphil_prefetcher_create(b->run.dataset, &sampling, &prefetcher, error);
    assert_int_equal(prefetcher != NULL, status == EXPHIL_OK);
    if (prefetcher) status = exphil_prefetcher_next(prefetcher, &batch, error);
    exphil_prefetcher_destroy(prefetcher);
    return status;
}

static exphil_status create_trainer(bench *b, exphil_error *error)
{
    exphil_optimizer *optimizer = NULL;
    exphil_trainer *trainer = NULL;
    exphil_status status = exphil_optimizer_create(b->run.model, &b->plan.adam, &optimizer, error);
    if (status == EXPHIL_OK)
        status = exphil_trainer_create(b->run.model, optimizer, b->run.prefetcher, &b->plan.trainer, &trainer,
                                       error);
    assert_int_equal(trainer != NULL, status == EXPHIL_OK);
    exphil_trainer_destroy(trainer);
    exphil_optimizer_destroy(optimizer);
    return status;
}

/* Of a model of its own, since the first session of a model has its weights packed. */
static exphil_status create_session(bench *b, exphil_error *error)
{
    exphil_model *model = NULL;
    exphil_session *session = NULL, *clone = NULL;
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    config.streams = 2;
    exphil_status status = exphil_model_create(b->run.context, &b->plan.model, &model, error);
    if (model) status = exphil_session_create(model, &config, &session, error);
    assert_int_equal(session != NULL, status == EXPHIL_OK);
    if (session) status = exphil_session_clone(session, &clone, error);
    exphil_session_destroy(session);
    exphil_session_destroy(clone);
    exphil_model_destroy(model);
    return status;
}

static exphil_status step(bench *b, exphil_error *error)
{
    return exphil_trainer_step(b->run.trainer, NULL, error);
}

/* The first batch of a trainer without prefetcher tells the shape, so this one allocates. */
static exphil_status step_of(bench *b, const exphil_trainer_config *config, exphil_error *error)
{
    exphil_optimizer *optimizer = NULL;
    exphil_trainer *trainer = NULL;
    exphil_status status = exphil_optimizer_create(b->run.model, &b->plan.adam, &optimizer, error);
    if (status == EXPHIL_OK)
        status = exphil_trainer_create(b->run.model, optimizer, NULL, config, &trainer, error);
    if (status == EXPHIL_OK) status = exphil_trainer_step_batch(trainer, &b->batch, NULL, error);
    exphil_trainer_destroy(trainer);
    exphil_optimizer_destroy(optimizer);
    return status;
}

static exphil_status step_by_hand(bench *b, exphil_error *error)
{
    return step_of(b, &b->plan.trainer, error);
}

static exphil_status save(bench *b, exphil_error *error)
{
    return exphil_trainer_save(b->run.trainer, test_path("new"), error);
}

static exphil_status resume(bench *b, exphil_error *error)
{
    return exphil_trainer_resume(b->run.trainer, test_path("old"), error);
}

static exphil_status evaluate(bench *b, exphil_error *error)
{
    exphil_report report = EXPHIL_REPORT_INIT;
    exphil_status status = exphil_evaluate(b->run.model, b->run.dataset, NULL, NULL, 0, &report, error);
    assert_int_equal(report.frames > 0, status == EXPHIL_OK);
    return status;
}

static exphil_status evaluate_trainer(bench *b, exphil_error *error)
{
    exphil_report report = EXPHIL_REPORT_INIT;
    exphil_status status =
        exphil_trainer_evaluate(b->run.trainer, EXPHIL_WEIGHTS, b->run.dataset, NULL, &report, error);
    assert_int_equal(report.frames > 0, status == EXPHIL_OK);
    return status;
}

static exphil_status save_model(bench *b, exphil_error *error)
{
    return exphil_model_save(b->run.model, test_path("new"), error);
}

/* With a model of its own, whose packed form is made on the way. */
static exphil_status compare(bench *b, exphil_error *error)
{
    exphil_comparison comparison = EXPHIL_COMPARISON_INIT;
    exphil_model *quantized = NULL;
    exphil_status status = exphil_model_quantize(b->run.model, EXPHIL_TYPE_BF16, &quantized, error);
    if (quantized)
        status = exphil_model_compare(b->run.model, quantized, b->run.dataset, 0, &comparison, error);
    assert_int_equal(comparison.frames > 0, status == EXPHIL_OK);
    exphil_model_destroy(quantized);
    return status;
}

static exphil_status create_fake_trainer(bench *b, exphil_error *error)
{
    exphil_trainer_config config = b->plan.trainer;
    config.fake_quantize = EXPHIL_TYPE_I8;
    return step_of(b, &config, error);
}

static exphil_status save_quantized(bench *b, exphil_error *error)
{
    return exphil_model_save(b->quantized, test_path("new"), error);
}

static exphil_status save_corpus(bench *b, exphil_error *error)
{
    return exphil_dataset_save(b->run.dataset, test_path("new"), error);
}

static const struct {
    const char *name;
    operation run;
    bool files, writes;
} operations[] = {
    {"create model", create_model, false, false},
    {"create dataset", create_dataset, false, false},
    {"split dataset", split_dataset, false, false},
    {"create prefetcher", create_prefetcher, false, false},
    {"create trainer", create_trainer, false, false},
    {"create session", create_session, false, false},
    {"step", step, false, false},
    {"step by hand", step_by_hand, false, false},
    {"trainer's model", give_model, false, false},
    {"evaluate", evaluate, false, false},
    {"evaluate trainer", evaluate_trainer, false, false},
    {"save", save, true, true},
    {"resume", resume, true, false},
    {"quantize", quantize, false, false},
    {"compare", compare, false, false},
    {"create fake trainer", create_fake_trainer, false, false},
    {"load quantized", load_quantized, true, false},
    {"save quantized", save_quantized, true, true},
    {"load model", load_model, true, false},
    {"save model", save_model, true, true},
    {"open corpus", open_corpus, true, false},
    {"save corpus", save_corpus, true, true},
};
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

/* ---- memory ------------------------------------------------------------------------------------------------------------ */

/* A failure changes nothing in the trainer, but for a step that had its memory. */
static void check_untouched(const bench *b, const unsigned char *before, const char *name)
{
    size_t bytes;
    unsigned char *after = train_snapshot(b->run.trainer, &bytes);
    if (memcmp(before, after, bytes) != 0) fail_msg("%s changed the trainer although it failed", name);
    free(after);
}

static long long fail_allocations(bench *b, int which, bool for_ever)
{
    const char *name = operations[which].name;
    long long failed = 0;
    assert_ok(operations[which].run(b, NULL)); /* what is made once for good, is made now */
    for (long long at = 1; at < 5000; at++) {
        exphil_error error = EXPHIL_ERROR_INIT;
        size_t bytes;
        unsigned char *before = train_snapshot(b->run.trainer, &bytes);
        long long live = atomic_load(&b->memory.live), calls = atomic_load(&b->memory.calls);
        b->memory.fail_on = for_ever;
        b->memory.fail_at = calls + at;
        exphil_status status = operations[which].run(b, &error);
        b->memory.fail_at = 0;
        bool reached = atomic_load(&b->memory.calls) >= calls + at;
        if (status != EXPHIL_OK && (status != EXPHIL_E_MEMORY || !error.message[0]))
            fail_msg("%s, allocation %lld: %s: %s", name, at, exphil_status_name(status), error.message);
        if (status != EXPHIL_OK) check_untouched(b, before, name);
        if (atomic_load(&b->memory.live) != live) fail_msg("%s leaks after allocation %lld failed", name, at);
        assert_int_equal(atomic_load(&b->io.open_files), 0);
        free(before);
        failed += status != EXPHIL_OK;
        if (!reached) break;
    }
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_status status = operations[which].run(b, &error);
    if (status < 0) fail_msg("%s does not work afterwards: %s", name, error.message);
    return failed;
}

static void memory_may_fail_anywhere(void **state)
{
    for (int32_t mode = 0; mode <= 1; mode++) {
        bench b;
        bench_make(&b, mode);
        for (int i = 0; i < OPERATIONS; i++) {
            long long once = fail_allocations(&b, i, false), always = fail_allocations(&b, i, true);
            print_message("%-18s fails at %lld of its allocations\n", operations[i].name, once);
            if (strcmp(operations[i].name, "step") != 0)
                assert_true(once > 0 && always >= once);
            else
                assert_true(once == 0); /* everything was had at creation */
        }
        bench_free(&b);
    }
}

/* ---- files --------------------------------------------------------------------------------------------------------------- */

static bool file_is(const char *name, const char *data, size_t bytes)
{
    size_t got_bytes = 0;
    char *got = test_read(test_path(name), &got_bytes);
    bool same = got && data ? got_bytes == bytes && memcmp(got, data, bytes) == 0 : got == data;
    free(got);
    return same;
}

/* What a call that writes "new" leaves: the old or the new file, whole, and no temporary. */
typedef struct pair {
    char *data[2];
    size_t bytes[2];
} pair;

static void check_files(const pair *old, const pair *new, bool failed, const char *name, long long at)
{
    static const char *const names[2] = {"new", "new.optimizer"};
    for (int i = 0; i < 2; i++) {
        bool is_old = file_is(names[i], old->data[i], old->bytes[i]),
             is_new = file_is(names[i], new->data[i], new->bytes[i]);
        if (!(is_new || (failed && is_old)))
            fail_msg("%s, operation %lld: %s is neither old nor new", name, at, names[i]);
    }
    if (test_exists(test_path("new.exphil-tmp")) || test_exists(test_path("new.optimizer.exphil-tmp")))
        fail_msg("%s, operation %lld: a temporary is left", name, at);
}

static pair read_pair(void)
{
    pair p;
    p.data[0] = test_read(test_path("new"), &p.bytes[0]);
    p.data[1] = test_read(test_path("new.optimizer"), &p.bytes[1]);
    return p;
}

static void write_pair(const pair *p)
{
    static const char *const names[2] = {"new", "new.optimizer"};
    for (int i = 0; i < 2; i++) {
        (void)remove(test_path(names[i]));
        if (p->data[i]) test_write(test_path(names[i]), p->data[i], p->bytes[i]);
    }
}

static void free_pair(pair *p)
{
    free(p->data[0]);
    free(p->data[1]);
}

/* An operation that removes the temporary may fail too, so a broken disk may leave one; then the next save removes it. */
static void fail_files(bench *b, int which, bool for_ever, int32_t code)
{
    const char *name = operations[which].name;
    pair old = {{strdup("the old weights"), strdup("the old optimizer")}, {15, 17}}, new;
    long long failed = 0;
    write_pair(&old);
    assert_ok(operations[which].run(b, NULL));
    new = read_pair();
    for (long long at = 1; at < 500; at++) {
        exphil_error error = EXPHIL_ERROR_INIT;
        size_t bytes;
        unsigned char *before = train_snapshot(b->run.trainer, &bytes);
        long long live = atomic_load(&b->memory.live), calls = atomic_load(&b->io.calls);
        write_pair(&old);
        b->io.code = code;
        b->io.fail_on = for_ever;
        b->io.fail_at = calls + at;
        exphil_status status = operations[which].run(b, &error);
        b->io.fail_at = 0;
        bool reached = atomic_load(&b->io.calls) >= calls + at;
        if (status != EXPHIL_OK && (status != EXPHIL_E_IO || error.native_code != code))
            fail_msg("%s, operation %lld: %s: %s", name, at, exphil_status_name(status), error.message);
        if (status != EXPHIL_OK) check_untouched(b, before, name);
        if (for_ever) { /* the temporary could not be removed */
            (void)remove(test_path("new.exphil-tmp"));
            (void)remove(test_path("new.optimizer.exphil-tmp"));
        }
        if (operations[which].writes) check_files(&old, &new, status != EXPHIL_OK, name, at);
        if (atomic_load(&b->memory.live) != live) fail_msg("%s leaks after operation %lld failed", name, at);
        assert_int_equal(atomic_load(&b->io.open_files), 0);
        free(before);
        failed += status != EXPHIL_OK;
        if (!reached) break;
    }
    if (failed < (operations[which].writes ? 8 : 2))
        fail_msg("%s fails at %lld operations only", name, failed);
    write_pair(&old);
    assert_ok(operations[which].run(b, NULL));
    if (operations[which].writes) check_files(&new, &new, false, name, 0);
    free_pair(&old);
    free_pair(&new);
}

static void files_may_fail_anywhere(void **state)
{
    bench b;
    bench_make(&b, EXPHIL_MODE_CARRY);
    for (int i = 0; i < OPERATIONS; i++) {
        if (!operations[i].files) continue;
        fail_files(&b, i, false, EIO);
        fail_files(&b, i, true, EIO);
        if (operations[i].writes) fail_files(&b, i, true, ENOSPC);
    }
    bench_free(&b);
}

/* Files that give and take a few bytes at a time are only slow. */
static void short_reads_and_writes(void **state)
{
    bench b;
    bench_make(&b, EXPHIL_MODE_CARRY);
    assert_ok(exphil_trainer_save(b.run.trainer, test_path("whole"), NULL));
    size_t bytes[2], state_bytes;
    char *whole = test_read(test_path("whole.optimizer"), &bytes[0]);
    unsigned char *before = train_snapshot(b.run.trainer, &state_bytes);
    for (size_t most = 1000; most < 5000; most += 999) {
        b.io.most_bytes = most;
        assert_ok(exphil_trainer_save(b.run.trainer, test_path("pieces"), NULL));
        assert_ok(exphil_trainer_resume(b.run.trainer, test_path("pieces"), NULL));
        char *pieces = test_read(test_path("pieces.optimizer"), &bytes[1]);
        assert_int_equal(bytes[0], bytes[1]);
        assert_memory_equal(whole, pieces, bytes[0]);
        check_untouched(&b, before, "resume");
        for (int i = 0; i < OPERATIONS; i++)
            if (operations[i].files && strcmp(operations[i].name, "resume") != 0)
                assert_ok(operations[i].run(&b, NULL));
        free(pieces);
    }
    free(whole);
    free(before);
    bench_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_may_fail_anywhere),
        cmocka_unit_test(files_may_fail_anywhere),
        cmocka_unit_test(short_reads_and_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
