/* Hosts may call from threads as small as 64 KiB: coroutines of emulators, threads of run-times. Every kind of call, from
 * making a context to its end, runs on a stack that has no more than such a thread. It was painted before, which tells how
 * deep the call went: not below DEEPEST, so that the host, too, has room. */
#include "melee_frame.h"
#include "play_case.h"
#include "slp_check.h"
#include "slp_writer.h"
#include "train_case.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    DEEPEST = 48 << 10,        /* with what the C library keeps on top: its thread and thread-local storage */
    SMALL = (64 << 10) - 4096, /* a thread of 64 KiB; of its stack one page is the guard */
    FRAMES = 4
};

/* ---- stacks -------------------------------------------------------------------------------------------------------- */

typedef struct task {
    void (*fn)(const struct task *task);
    const char *what, *isa;
    int32_t type, mode;
    bool odd; /* numbers of states and taps that the quick kernels do not take */
} task;

static void *thread_of(void *arg)
{
    const task *t = arg;
    t->fn(t);
    return NULL;
}

/* What is about to run is told first: a stack that is too small ends the process. */
static void on_a_small_stack(const task *t)
{
#if defined(EXPHIL_SANITIZE) || !defined(__OPTIMIZE__)
    print_message("SKIPPED: without optimisation, or with a sanitizer, functions take more of the stack\n");
    skip();
#else
    print_message("%s, %s, type %d, mode %d%s", t->what, t->isa, (int)t->type, (int)t->mode,
                  t->odd ? ", odd sizes" : "");
    fflush(NULL);
    size_t depth = 0;
    (void)test_on_small_stack(SMALL, thread_of, (void *)(uintptr_t)t, &depth);
    print_message(": %d bytes of stack\n", (int)depth);
    if (depth > DEEPEST) fail_msg("%s: %d bytes of stack", t->what, (int)depth);
#endif
}

/* ---- parts that all share ------------------------------------------------------------------------------------------- */

static exphil_model_config model_of(const task *t)
{
    exphil_model_config config = model_case_config(SOME_BLOCKS, t->type);
    config.mode = t->mode;
    config.window_frames = t->mode == EXPHIL_MODE_WINDOW ? 6 : 0;
    config.hidden = 72; /* more than a panel of weights, and no multiple of one */
    config.head_width = 70;
    config.mamba_states = t->odd ? 70 : 16;
    config.mamba_taps = t->odd ? 7 : 4;
    return config;
}

static train_plan plan_of(const task *t)
{
    train_plan plan = train_plan_of(SOME_BLOCKS, t->mode);
    plan.model = model_of(t);
    plan.isa = t->isa;
    plan.sampling.batch = 14;                                  /* rows for more than one sum of a gradient */
    if (t->mode == EXPHIL_MODE_CARRY) plan.sampling.time = 10; /* 140 */
    plan.episodes = 1;
    plan.adam.ema_decay = 0.9;
    return plan;
}

static exphil_context *context_of(const task *t)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_context *context = NULL;
    config.cpu_isa = t->isa;
    config.threads = 1; /* so that the caller does all of it */
    assert_ok(exphil_context_create(&config, &context, NULL));
    return context;
}

static const char *file_of(const task *t, const char *name)
{
    return test_path(name);
}

/* ---- training --------------------------------------------------------------------------------------------------------- */

static void save_and_go_on(const task *t, train_run *run)
{
    const char *path = file_of(t, "run");
    exphil_model *trained = NULL;
    exphil_report report = EXPHIL_REPORT_INIT;
    assert_ok(exphil_trainer_evaluate(run->trainer, EXPHIL_WEIGHTS_AVERAGED, run->dataset, run->dataset,
                                      &report, NULL));
    assert_ok(exphil_trainer_save(run->trainer, path, NULL));
    assert_ok(exphil_trainer_resume(run->trainer, path, NULL));
    assert_ok(exphil_trainer_model(run->trainer, EXPHIL_WEIGHTS, &trained, NULL));
    assert_ok(exphil_evaluate(trained, run->dataset, run->dataset, NULL, 0, &report, NULL));
    exphil_model_destroy(trained);
}

static void train_all(const task *t)
{
    train_plan plan = plan_of(t);
    train_run run = train_begin(&plan);
    train_steps(&run, 1);
    save_and_go_on(t, &run);
    train_end(&run);
}

/* As train_all with less memory, several threads and batches, and weights seen as they will be rounded. */
static void train_variants(const task *t)
{
    static const exphil_trainer_config variants[] = {
        {.struct_size = sizeof(exphil_trainer_config), .accumulate = 2, .checkpoint_blocks = 2},
        {.struct_size = sizeof(exphil_trainer_config), .activations = EXPHIL_TYPE_BF16},
        {.struct_size = sizeof(exphil_trainer_config), .fake_quantize = EXPHIL_TYPE_I8},
    };
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        train_plan plan = plan_of(t);
        plan.trainer = variants[i];
        plan.threads = 3;
        train_run run = train_begin(&plan);
        train_steps(&run, 1);
        train_end(&run);
    }
}

static void train_by_hand(const task *t)
{
    train_plan plan = plan_of(t);
    plan.by_hand = true;
    train_run run = train_begin(&plan);
    exphil_batch batch =
        train_batch(run.model, 3, plan.model.window_frames ? plan.model.window_frames : 8, 0);
    assert_ok(exphil_trainer_step_batch(run.trainer, &batch, NULL, NULL));
    train_batch_free(&batch);
    train_end(&run);
}

/* ---- models and play ------------------------------------------------------------------------------------------------------ */

static void play(const exphil_model *model, int64_t streams)
{
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    exphil_session *session = NULL, *clone = NULL;
    config.streams = streams;
    assert_ok(exphil_session_create(model, &config, &session, NULL));
    assert_ok(exphil_session_clone(session, &clone, NULL));
    play_frames *frames = play_frames_make(model, streams, FRAMES, 5);
    size_t bytes = exphil_session_state_size(session);
    void *state = malloc(bytes);
    int32_t *actions = calloc((size_t)(streams * frames->heads), sizeof *actions);
    float *logits = calloc((size_t)(streams * frames->logits), sizeof *logits);
    for (int64_t f = 0; f < FRAMES; f++) {
        play_step(session, frames, f, f % 2, actions);
        play_logits(session, frames, logits);
        assert_ok(exphil_session_override(session, 0, actions));
        assert_ok(exphil_session_state_save(session, streams - 1, state, bytes));
        assert_ok(exphil_session_state_restore(clone, 0, state, bytes));
    }
    assert_ok(exphil_session_reset(session, -1));
    free(state), free(actions), free(logits);
    play_frames_free(frames);
    exphil_session_destroy(clone);
    exphil_session_destroy(session);
}

static void play_both(const exphil_model *model)
{
    play(model, 1);
    play(model, 20);
}

static void save_and_load(const task *t, const exphil_model *model)
{
    exphil_model *loaded = NULL;
    exphil_context *context = context_of(t);
    assert_ok(exphil_model_save(model, file_of(t, "model"), NULL));
    assert_ok(exphil_model_load(context, file_of(t, "model"), &loaded, NULL));
    exphil_model_destroy(loaded);
    exphil_context_destroy(context);
}

static void play_all(const task *t)
{
    exphil_context *context = context_of(t);
    exphil_model_config config = model_of(t);
    exphil_model *model = play_model(context, &config, 0.05);
    play_both(model);
    save_and_load(t, model);
    exphil_status status = exphil_model_export_onnx(model, file_of(t, "model.onnx"), NULL);
    assert_true(status == EXPHIL_OK || status == EXPHIL_E_UNSUPPORTED);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
}

static void play_narrow(const task *t)
{
    static const int32_t types[] = {EXPHIL_TYPE_BF16, EXPHIL_TYPE_I8};
    exphil_context *context = context_of(t);
    exphil_dataset *dataset = train_dataset(context, 1);
    exphil_model_config config = model_of(t);
    exphil_model *model = play_model(context, &config, 0.05);
    for (int i = 0; i < 2; i++) {
        exphil_model *narrow = NULL;
        exphil_comparison comparison = EXPHIL_COMPARISON_INIT;
        exphil_report report = EXPHIL_REPORT_INIT;
        assert_ok(exphil_model_quantize(model, types[i], &narrow, NULL));
        play_both(narrow);
        assert_ok(exphil_model_compare(model, narrow, dataset, 0, &comparison, NULL));
        assert_ok(exphil_model_calibration_set(narrow, &comparison, NULL));
        assert_ok(exphil_evaluate(narrow, dataset, NULL, NULL, 0, &report, NULL));
        save_and_load(t, narrow);
        exphil_model_destroy(narrow);
    }
    exphil_model_destroy(model);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

/* ---- data and Melee ------------------------------------------------------------------------------------------------------ */

static void read_replays(const task *t)
{
    exphil_context *context = context_of(t);
    exphil_dataset *dataset = NULL;
    assert_ok(exphil_dataset_create(context, NULL, &dataset, NULL));
    for (int i = 0; i < SLP_SAMPLES; i++) {
        slp_writer writer;
        slp_sample(&writer, i);
        assert_null(slp_check_bytes(context, writer.data, writer.bytes, 100));
        exphil_status status =
            exphil_dataset_add_replay_memory(dataset, writer.data, writer.bytes, NULL, NULL, NULL);
        assert_true(status >= 0 || status == EXPHIL_E_UNSUPPORTED || status == EXPHIL_E_FORMAT);
        slp_free(&writer);
    }
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

static void keep_data(const task *t)
{
    exphil_context *context = context_of(t);
    exphil_dataset *dataset = train_dataset(context, 6), *opened = NULL, *kept = NULL, *out = NULL;
    exphil_split_config split = EXPHIL_SPLIT_CONFIG_INIT;
    exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
    exphil_prefetcher *prefetcher = NULL;
    exphil_batch batch = EXPHIL_BATCH_INIT;
    split.held_out = 0.3;
    assert_ok(exphil_dataset_save(dataset, file_of(t, "corpus"), NULL));
    assert_ok(exphil_dataset_open(context, file_of(t, "corpus"), &opened, NULL));
    assert_ok(exphil_dataset_verify(opened, NULL));
    assert_ok(exphil_dataset_split(opened, &split, &kept, &out, NULL));
    assert_ok(exphil_dataset_weight(kept, 1, 0, 3, 20, 0.5, NULL));
    sampling.balance_character = sampling.balance_action = sampling.balance_change = 0.5;
    assert_ok(exphil_prefetcher_create(kept, &sampling, &prefetcher, NULL));
    assert_ok(exphil_prefetcher_next(prefetcher, &batch, NULL));
    exphil_prefetcher_destroy(prefetcher);
    exphil_dataset_destroy(out), exphil_dataset_destroy(kept);
    exphil_dataset_destroy(opened), exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

static void play_melee(const task *t)
{
    exphil_context *context = context_of(t);
    exphil_spec spec = EXPHIL_SPEC_INIT;
    exphil_model_config config = model_of(t);
    exphil_session *session = NULL;
    exphil_melee_frame *frame = malloc(sizeof *frame);
    exphil_pad pad;
    assert_ok(exphil_melee_spec(NULL, NULL, &spec, NULL));
    config.spec = &spec;
    exphil_model *model = model_case_create(context, &config);
    *frame = melee_frame();
    assert_ok(exphil_session_create(model, NULL, &session, NULL));
    for (int i = 0; i < FRAMES; i++) assert_ok(exphil_session_step(session, frame, &pad));
    free(frame);
    exphil_session_destroy(session);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
}

/* Errors are written by the longest way there is to a text. */
static void refuse(const task *t)
{
    exphil_context *context = context_of(t);
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_model *model = NULL;
    exphil_dataset *dataset = NULL;
    exphil_model_config config = model_of(t);
    config.blocks = "mamba, what";
    test_write(file_of(t, "bad"), "{\"a\": [1, 2", 11);
    assert_true(exphil_model_create(context, &config, &model, &error) < 0);
    assert_true(exphil_model_load(context, file_of(t, "bad"), &model, &error) < 0);
    assert_true(exphil_dataset_open(context, file_of(t, "bad"), &dataset, &error) < 0);
    assert_true(exphil_model_load(context, file_of(t, "none"), &model, &error) < 0);
    exphil_context_destroy(context);
}

/* ---- every instruction set, type and mode ------------------------------------------------------------------------------------ */

static void everywhere(const char *what, void (*fn)(const task *t), bool double_too)
{
    for (xph_isa isa = XPH_ISA_REF; isa < XPH_ISA_COUNT; isa++) {
        for (int i = 0; xph_cpu_has(isa) && i < 6; i++) {
            task t = {fn,
                      what,
                      xph_isa_name(isa),
                      i & 1 ? EXPHIL_TYPE_F64 : EXPHIL_TYPE_F32,
                      i & 2 ? EXPHIL_MODE_WINDOW : EXPHIL_MODE_CARRY,
                      (i & 4) != 0};
            if (t.type == EXPHIL_TYPE_F64 && (!double_too || isa != XPH_ISA_REF)) continue;
            on_a_small_stack(&t);
        }
    }
}

static void once(const char *what, void (*fn)(const task *t))
{
    const task t = {fn, what, "ref", EXPHIL_TYPE_F32, EXPHIL_MODE_CARRY, false};
    on_a_small_stack(&t);
}

static void training(void **state)
{
    everywhere("train", train_all, true);
}

static void training_otherwise(void **state)
{
    everywhere("train otherwise", train_variants, false);
    everywhere("train by hand", train_by_hand, true);
}

static void playing(void **state)
{
    everywhere("play", play_all, true);
    everywhere("play rounded", play_narrow, false);
    once("play Melee", play_melee);
}

static void all_else(void **state)
{
    once("replays", read_replays);
    once("data", keep_data);
    once("errors", refuse);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training),
        cmocka_unit_test(training_otherwise),
        cmocka_unit_test(playing),
        cmocka_unit_test(all_else),
    };
    return cmocka_run_group_tests(tests, NULL, test_leave);
}
