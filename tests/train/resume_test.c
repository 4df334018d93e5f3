/* A run that is killed and resumed is the run that was never killed, to the last bit of both files, whatever the threads on
 * either side. A checkpoint of another run is refused by the name of what differs; a damaged one is refused. */
#include "train_case.h"

#include "file/file.h"

#include <stdio.h>
#include <stdlib.h>

/* Two runs with everything on that a checkpoint must hold. */
static train_plan plan_of(int32_t mode, int32_t threads)
{
    train_plan plan = train_plan_of(mode ? "gru attention" : SOME_BLOCKS, mode);
    plan.threads = threads;
    plan.adam.ema_decay = 0.98;
    plan.adam.decay = 0.01;
    plan.adam.warmup_updates = 20;
    if (mode == EXPHIL_MODE_CARRY) {
        plan.model.heads = EXPHIL_HEADS_AUTOREGRESSIVE;
        plan.adam.schedule = EXPHIL_SCHEDULE_COSINE;
        plan.adam.total_updates = 220;
        plan.trainer.accumulate = 2;
        plan.trainer.checkpoint_blocks = 3;
    } else {
        plan.trainer.activations = EXPHIL_TYPE_BF16;
        plan.adam.schedule = EXPHIL_SCHEDULE_RESTARTS;
        plan.adam.restart_updates = 30;
        plan.adam.restart_factor = 2;
    }
    return plan;
}

/* ---- other processes -------------------------------------------------------------------------------------------------- */

enum { HALF = 100, LOST = 17 };

/* <mode> <threads> <from or -> <to> <what>: 100 updates and a save; then "end", or more that are lost, or saves for ever. */
static int other_life(char **argv)
{
    train_plan plan = plan_of(atoi(argv[0]), atoi(argv[1]));
    train_run run = train_begin(&plan);
    if (strcmp(argv[2], "-") != 0) assert_ok(exphil_trainer_resume(run.trainer, argv[2], NULL));
    while (strcmp(argv[4], "forever") == 0) {
        (void)train_steps(&run, 1);
        assert_ok(exphil_trainer_save(run.trainer, argv[3], NULL));
    }
    (void)train_steps(&run, HALF);
    assert_ok(exphil_trainer_save(run.trainer, argv[3], NULL));
    if (strcmp(argv[4], "die") == 0) {
        (void)train_steps(&run, LOST);
        test_die();
    }
    train_end(&run);
    return 0;
}

static test_process start(int32_t mode, int32_t threads, const char *from, const char *to, const char *what)
{
    char mode_text[16], threads_text[16];
    (void)snprintf(mode_text, sizeof mode_text, "%d", (int)mode);
    (void)snprintf(threads_text, sizeof threads_text, "%d", (int)threads);
    const char *const life[] = {mode_text, threads_text, from, to, what, NULL};
    return test_start_self(life);
}

static void killed_runs_go_on(void **state)
{
    static const int32_t threads[] = {1, 2, 4};
    for (int32_t mode = 0; mode <= 1; mode++) {
        train_plan plan = plan_of(mode, 1);
        train_run straight = train_begin(&plan);
        (void)train_steps(&straight, 2 * HALF);
        assert_ok(exphil_trainer_save(straight.trainer, test_path("straight"), NULL));
        train_end(&straight);
        for (int a = 0; a < 3; a++) {
            char half[512], end[512];
            (void)snprintf(half, sizeof half, "%s", test_path("half"));
            (void)snprintf(end, sizeof end, "%s", test_path("end"));
            assert_int_equal(test_wait(start(mode, threads[a], "-", half, "die")), TEST_KILLED);
            for (int b = 0; b < 3; b++) {
                assert_int_equal(test_wait(start(mode, threads[b], half, end, "end")), 0);
                assert_same_file(test_path("straight"), end);
                assert_same_file(test_path("straight.optimizer"), test_path("end.optimizer"));
            }
        }
    }
    test_folder_remove();
}

/* Until a save has put another file in the place of this one. */
static void await_save(const char *path, uint64_t before)
{
    for (int i = 0; i < 300000 && test_file_number(path) == before; i++) xph_sleep(1000000);
    assert_true(test_file_number(path) != before);
}

/* However a save is cut short, both files are whole, old or new. */
static void killed_saves_leave_whole_files(void **state)
{
    char path[512], state_path[512];
    (void)snprintf(path, sizeof path, "%s", test_path("net"));
    (void)snprintf(state_path, sizeof state_path, "%s", test_path("net.optimizer"));
    train_plan plan = plan_of(EXPHIL_MODE_CARRY, 1);
    train_run run = train_begin(&plan);
    (void)train_steps(&run, 1);
    assert_ok(exphil_trainer_save(run.trainer, path, NULL));
    int64_t updates = 0;
    for (int round = 0; round < 12; round++) {
        uint64_t before = test_file_number(state_path);
        test_process child = start(EXPHIL_MODE_CARRY, 1, path, path, "forever");
        await_save(state_path, before);
        xph_sleep(700000 * round);
        test_kill(child);
        assert_int_equal(test_wait(child), TEST_KILLED);
        exphil_optimizer_info info = EXPHIL_OPTIMIZER_INFO_INIT;
        exphil_model *model = NULL;
        exphil_error error = EXPHIL_ERROR_INIT;
        if (exphil_trainer_resume(run.trainer, path, &error) < 0)
            fail_msg("round %d: %s", round, error.message);
        if (exphil_model_load(run.context, path, &model, &error) < 0)
            fail_msg("round %d: %s", round, error.message);
        assert_ok(exphil_optimizer_query(run.optimizer, &info, NULL));
        assert_true(info.updates > updates);
        updates = info.updates;
        exphil_model_destroy(model);
    }
    train_end(&run);
    test_folder_remove();
}

/* ---- in one process --------------------------------------------------------------------------------------------------- */

/* Every place in an epoch, its ends among them; and over a refused update. */
static void any_place_will_do(void **state)
{
    for (int32_t kind = 0; kind <= 2; kind++) {
        train_plan plan = train_plan_of("gru", kind ? EXPHIL_MODE_WINDOW : EXPHIL_MODE_CARRY);
        plan.episodes = 2;
        plan.sampling.stride = kind ? 5 : 0;
        plan.sampling.shuffle_frames = kind == 2 ? 1024 : 0;
        train_run straight = train_begin(&plan);
        exphil_prefetcher_info info = EXPHIL_PREFETCHER_INFO_INIT;
        assert_ok(exphil_prefetcher_query(straight.prefetcher, &info, NULL));
        int64_t total = 2 * info.batches_per_epoch + 2;
        assert_true(info.batches_per_epoch >= 2);
        (void)train_steps(&straight, total);
        size_t bytes;
        unsigned char *want = train_snapshot(straight.trainer, &bytes);
        train_end(&straight);
        for (int64_t k = 0; k <= total; k++) {
            train_run first = train_begin(&plan), second = train_begin(&plan);
            if (k) (void)train_steps(&first, k);
            assert_ok(exphil_trainer_save(first.trainer, test_path("net"), NULL));
            train_end(&first);
            (void)train_steps(&second, k % 3); /* where the second run stood before does not matter */
            assert_ok(exphil_trainer_resume(second.trainer, test_path("net"), NULL));
            if (k < total) (void)train_steps(&second, total - k);
            unsigned char *got = train_snapshot(second.trainer, &bytes);
            assert_memory_equal(got, want, bytes);
            free(got);
            train_end(&second);
        }
        free(want);
    }
    test_folder_remove();
}

/* Without a prefetcher the shape comes from the file. */
static void runs_by_hand_go_on(void **state)
{
    train_plan plan = train_plan_of("lstm mamba", EXPHIL_MODE_CARRY);
    plan.by_hand = true;
    train_run straight = train_begin(&plan), second = train_begin(&plan);
    exphil_batch batch[4];
    for (int i = 0; i < 4; i++) batch[i] = train_batch(straight.model, 3, 7, 3 * i);
    memset((void *)(uintptr_t)batch[2].reset, 0, 21); /* goes on where the one before ended */
    for (int i = 0; i < 4; i++) {
        if (i == 2) assert_ok(exphil_trainer_save(straight.trainer, test_path("net"), NULL));
        assert_ok(exphil_trainer_step_batch(straight.trainer, &batch[i], NULL, NULL));
    }
    assert_ok(exphil_trainer_resume(second.trainer, test_path("net"), NULL));
    for (int i = 2; i < 4; i++) assert_ok(exphil_trainer_step_batch(second.trainer, &batch[i], NULL, NULL));
    size_t bytes;
    unsigned char *want = train_snapshot(straight.trainer, &bytes),
                  *got = train_snapshot(second.trainer, &bytes);
    assert_memory_equal(got, want, bytes);
    free(want);
    free(got);
    for (int i = 0; i < 4; i++) train_batch_free(&batch[i]);
    train_end(&straight);
    train_end(&second);
    test_folder_remove();
}

/* Training goes on from a model that was trained before: the file counts all of it. */
static void counters_add_up(void **state)
{
    train_plan plan = train_plan_of("gru", EXPHIL_MODE_CARRY);
    train_run run = train_begin(&plan);
    exphil_metrics metrics = train_steps(&run, 7);
    assert_ok(exphil_trainer_save(run.trainer, test_path("net"), NULL));
    exphil_model *model = NULL;
    exphil_optimizer *optimizer = NULL;
    exphil_trainer *trainer = NULL;
    assert_ok(exphil_model_load(run.context, test_path("net"), &model, NULL));
    assert_ok(exphil_optimizer_create(model, &plan.adam, &optimizer, NULL));
    assert_ok(exphil_trainer_create(model, optimizer, run.prefetcher, NULL, &trainer, NULL));
    for (int i = 0; i < 3; i++) assert_ok(exphil_trainer_step(trainer, &metrics, NULL));
    assert_int_equal(metrics.update, 3);
    assert_ok(exphil_trainer_save(trainer, test_path("more"), NULL));
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    exphil_model_destroy(model);
    assert_ok(exphil_model_load(run.context, test_path("more"), &model, NULL));
    assert_ok(exphil_model_query(model, &info, NULL));
    assert_int_equal(info.trained_updates, 10);
    exphil_model_destroy(model);
    exphil_trainer_destroy(trainer);
    exphil_optimizer_destroy(optimizer);
    train_end(&run);
    test_folder_remove();
}

/* ---- checkpoints of other runs -------------------------------------------------------------------------------------- */

static void refuse(const train_plan *plan, const char *says)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    train_run run = train_begin(plan);
    size_t bytes;
    unsigned char *before, *after;
    if (!plan->by_hand) (void)train_steps(&run, 2);
    before = train_snapshot(run.trainer, &bytes);
    exphil_status status = exphil_trainer_resume(run.trainer, test_path("net"), &error);
    if (status != EXPHIL_E_MISMATCH) fail_msg("%s: %s", says, exphil_status_name(status));
    assert_says(&error, says);
    after = train_snapshot(run.trainer, &bytes);
    assert_memory_equal(before, after, bytes);
    free(before);
    free(after);
    if (!plan->by_hand) (void)train_steps(&run, 1);
    train_end(&run);
}

/* What a schedule does not look at may change: a run of constant rate can be made longer. */
static void schedules_compare_what_they_use(void **state)
{
    train_plan plan = train_plan_of("gru", EXPHIL_MODE_CARRY), other;
    plan.adam.schedule = EXPHIL_SCHEDULE_RESTARTS;
    plan.adam.restart_updates = 10;
    train_run run = train_begin(&plan);
    (void)train_steps(&run, 3);
    assert_ok(exphil_trainer_save(run.trainer, test_path("net"), NULL));
    train_end(&run);
    other = plan;
    other.adam.restart_updates = 11;
    refuse(&other, "optimizer.restart_updates 10, this run has 11");
    other = plan;
    other.adam.restart_factor = 2.5;
    refuse(&other, "optimizer.restart_factor 1, this run has 2.5");
    other = plan;
    other.adam.total_updates = 99;
    run = train_begin(&other);
    assert_ok(exphil_trainer_resume(run.trainer, test_path("net"), NULL));
    train_end(&run);
    test_folder_remove();
}

/* A cosine may get another end: the rates are those of the new one from there on, and the next checkpoint has it. */
static void runs_get_another_end(void **state)
{
    train_plan plan = train_plan_of("gru", EXPHIL_MODE_CARRY), other;
    plan.adam.schedule = EXPHIL_SCHEDULE_COSINE;
    plan.adam.total_updates = 6;
    for (int64_t total = 5; total <= 40; total += 35) {
        train_run run = train_begin(&plan);
        (void)train_steps(&run, 4);
        assert_ok(exphil_trainer_save(run.trainer, test_path("net"), NULL));
        size_t bytes;
        unsigned char *before = train_snapshot(run.trainer, &bytes);
        train_end(&run);
        other = plan;
        other.adam.total_updates = total;
        refuse(&other, "optimizer.total_updates 6, this run has");
        other.adam.resume_new_total = 1;
        other.adam.rate = 2 * plan.adam.rate;
        refuse(&other, "optimizer.rate"); /* nothing else may differ */
        other.adam.rate = plan.adam.rate;
        run = train_begin(&other);
        assert_ok(exphil_trainer_resume(run.trainer, test_path("net"), NULL));
        unsigned char *after = train_snapshot(run.trainer, &bytes);
        assert_memory_equal(before, after, bytes);
        exphil_metrics metrics = train_steps(&run, 1);
        exphil_optimizer_config config = other.adam;
        config.restart_factor = 1.0;
        assert_true(metrics.rate == xph_schedule_rate(&config, 4));
        assert_ok(exphil_trainer_save(run.trainer, test_path("net"), NULL));
        train_end(&run);
        refuse(&plan, "optimizer.total_updates");
        other.adam.resume_new_total = 0;
        run = train_begin(&other);
        assert_ok(exphil_trainer_resume(run.trainer, test_path("net"), NULL));
        train_end(&run);
        free(before);
        free(after);
    }
    test_folder_remove();
}

/* The file of averaged weights is that of their model, and the run goes on from the same checkpoint. */
static void averaged_weights_are_saved(void **state)
{
    train_plan plan = train_plan_of("lstm", EXPHIL_MODE_CARRY), other;
    exphil_model *model = NULL;
    plan.adam.ema_decay = 0.9;
    other = plan;
    other.trainer.saved_weights = EXPHIL_WEIGHTS_AVERAGED;
    train_run run = train_begin(&plan), averaged = train_begin(&other);
    (void)train_steps(&run, 5);
    (void)train_steps(&averaged, 5);
    assert_ok(exphil_trainer_save(run.trainer, test_path("plain"), NULL));
    assert_ok(exphil_trainer_save(averaged.trainer, test_path("net"), NULL));
    assert_same_file(test_path("plain.optimizer"), test_path("net.optimizer"));
    for (int32_t which = EXPHIL_WEIGHTS; which <= EXPHIL_WEIGHTS_AVERAGED; which++) {
        assert_ok(exphil_trainer_model(run.trainer, which, &model, NULL));
        assert_ok(exphil_model_save(model, test_path("model"), NULL));
        exphil_model_destroy(model);
        assert_same_file(test_path("model"), test_path(which ? "net" : "plain"));
    }
    size_t one, two;
    char *plain = test_read(test_path("plain"), &one), *net = test_read(test_path("net"), &two);
    assert_true(one != two || memcmp(plain, net, one) != 0);
    assert_ok(exphil_trainer_resume(run.trainer, test_path("net"), NULL));
    free(plain);
    free(net);
    train_end(&run);
    train_end(&averaged);
    test_folder_remove();
}

/* A run of this plan is saved as "net". */
static void save_run(const train_plan *plan, int64_t updates)
{
    train_run run = train_begin(plan);
    (void)train_steps(&run, updates);
    assert_ok(exphil_trainer_save(run.trainer, test_path("net"), NULL));
    train_end(&run);
}

/* The saved run is not that of the plan with this changed. */
#define OTHER(field, value, says)                                                                            \
  do {                                                                                                       \
    train_plan other = *plan;                                                                                \
    other.field = (value);                                                                                   \
    refuse(&other, says);                                                                                    \
  } while (0)

static void other_losses_are_named(const train_plan *plan)
{
    const exphil_head_loss heavier[3] = {{2, 0, 0, NULL}}, smooth[3] = {{0, 0, 0, NULL}, {0, 0.1, 0, NULL}},
                           focal[3] = {{0, 0, 2, NULL}};
    static const float positive[3] = {1, 2, 1};
    const exphil_head_loss skewed[3] = {{0, 0, 0, positive}};
    OTHER(trainer.losses, heavier, "with losses");
    OTHER(trainer.losses, smooth, "with losses");
    OTHER(trainer.losses, focal, "with losses");
    OTHER(trainer.losses, skewed, "with losses");
}

static void other_optimizers_are_named(const train_plan *plan)
{
    OTHER(adam.rate, 4e-3, "optimizer.rate");
    OTHER(adam.beta1, 0.8, "optimizer.beta1");
    OTHER(adam.beta2, 0.99, "optimizer.beta2");
    OTHER(adam.epsilon, 1e-7, "optimizer.epsilon");
    OTHER(adam.decay, 0.1, "optimizer.decay");
    OTHER(adam.clip_norm, 2, "optimizer.clip_norm");
    OTHER(adam.ema_decay, 0.8, "optimizer.ema_decay");
    OTHER(adam.ema_decay, 0, "optimizer.ema_decay");
    OTHER(adam.low_ratio, 0.1, "optimizer.low_ratio");
    OTHER(adam.warmup_updates, 5, "optimizer.warmup_updates");
    OTHER(adam.total_updates, 500, "optimizer.total_updates");
}

static void other_data_is_named(const train_plan *plan)
{
    OTHER(episodes, 6, "with dataset");
    OTHER(sampling.batch, 3, "sampling.batch");
    OTHER(sampling.time, 9, "sampling.time");
    OTHER(sampling.segment_frames, 20, "sampling.segment_frames");
    OTHER(sampling.seed, 4, "sampling.seed");
    OTHER(sampling.in_order, 1, "sampling.in_order");
    OTHER(by_hand, true, "with a prefetcher, this trainer has none");
}

static void other_windows_are_named(void)
{
    train_plan windows = train_plan_of("gru", EXPHIL_MODE_WINDOW), *plan = &windows;
    save_run(plan, 1);
    OTHER(sampling.stride, 2, "sampling.stride");
    OTHER(sampling.last_only, 1, "sampling.last_only");
    OTHER(sampling.shuffle_frames, 65536, "sampling.shuffle_frames 0, this run has 65536");
    plan->by_hand = true;
    train_run run = train_begin(plan);
    exphil_batch batch = train_batch(run.model, 2, 6, 0);
    assert_ok(exphil_trainer_step_batch(run.trainer, &batch, NULL, NULL));
    assert_ok(exphil_trainer_save(run.trainer, test_path("net"), NULL));
    train_batch_free(&batch);
    train_end(&run);
    OTHER(by_hand, false, "without a prefetcher, this trainer has one");
}

static void other_settings_are_named(void **state)
{
    train_plan carried = train_plan_of("gru", EXPHIL_MODE_CARRY), *plan = &carried;
    plan->adam.ema_decay = 0.9;
    plan->adam.schedule = EXPHIL_SCHEDULE_COSINE;
    plan->adam.total_updates = 300;
    save_run(plan, 3);
    OTHER(model.hidden, 16, "model.hidden 24, this run has 16");
    OTHER(model.blocks, "lstm", "with model.");
    OTHER(model.delay_frames, 2, "model.delay_frames");
    OTHER(model.mode, EXPHIL_MODE_WINDOW, "model.mode");
    OTHER(trainer.accumulate, 2, "accumulate 1, this run has 2");
    OTHER(trainer.activations, EXPHIL_TYPE_BF16, "activations 0, this run has 2");
    other_losses_are_named(plan);
    other_optimizers_are_named(plan);
    other_data_is_named(plan);
    plan->adam.schedule = EXPHIL_SCHEDULE_COSINE;
    plan->adam.total_updates = 500;
    refuse(plan, "optimizer.");
    other_windows_are_named();
    test_folder_remove();
}

/* Settings that change no number may differ: threads, buffers. */
static void harmless_settings_may_differ(void **state)
{
    train_plan plan = train_plan_of("gru", EXPHIL_MODE_CARRY);
    train_run run = train_begin(&plan);
    (void)train_steps(&run, 3);
    assert_ok(exphil_trainer_save(run.trainer, test_path("net"), NULL));
    train_end(&run);
    plan.threads = 3;
    plan.sampling.buffers = 7;
    plan.model.seed = 999;
    run = train_begin(&plan);
    assert_ok(exphil_trainer_resume(run.trainer, test_path("net"), NULL));
    train_end(&run);
    test_folder_remove();
}

/* ---- damage ------------------------------------------------------------------------------------------------------------ */

typedef struct damage {
    train_run run;
    unsigned char *want;
    size_t want_bytes;
    int64_t taken;
} damage;

/* Refused, and then nothing has changed; or, where a byte says nothing, taken as if it were whole. */
static void try_bytes(damage *d, const char *data, size_t bytes)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    test_write(test_path("net.optimizer"), data, bytes);
    exphil_status status = exphil_trainer_resume(d->run.trainer, test_path("net"), &error);
    size_t got_bytes;
    unsigned char *got = train_snapshot(d->run.trainer, &got_bytes);
    assert_int_equal(got_bytes, d->want_bytes);
    if (memcmp(got, d->want, got_bytes) != 0) fail_msg("a damaged checkpoint was taken (%zu bytes)", bytes);
    free(got);
    if (status == EXPHIL_OK)
        d->taken++;
    else if (status != EXPHIL_E_FORMAT && status != EXPHIL_E_MISMATCH && status != EXPHIL_E_VERSION)
        fail_msg("%s: %s", exphil_status_name(status), error.message);
    else
        assert_true(error.message[0] != 0);
}

static void damaged_checkpoints_are_refused(void **state)
{
    train_plan plan = train_plan_of("gru", EXPHIL_MODE_CARRY);
    plan.model.hidden = 2;
    plan.model.head_width = 1;
    plan.sampling.batch = 1;
    damage d = {.run = train_begin(&plan)};
    (void)train_steps(&d.run, 2);
    assert_ok(exphil_trainer_save(d.run.trainer, test_path("net"), NULL));
    d.want = train_snapshot(d.run.trainer, &d.want_bytes);
    size_t bytes;
    char *whole = test_read(test_path("net.optimizer"), &bytes), *bent = malloc(bytes + 1);
    print_message("a checkpoint of %zu bytes\n", bytes);
    for (size_t length = 0; length < bytes; length += length < 200 || length + 200 > bytes ? 1 : 7)
        try_bytes(&d, whole, length);
    assert_int_equal(d.taken, 0);
    for (size_t bit = 0; bit < 8 * bytes; bit += 29) {
        memcpy(bent, whole, bytes);
        bent[bit / 8] ^= (char)(1 << bit % 8);
        try_bytes(&d, bent, bytes);
    }
    memcpy(bent, whole, bytes);
    bent[bytes] = 0;
    try_bytes(&d, bent, bytes + 1);
    print_message("%lld of the damaged ones said the same\n", (long long)d.taken);
    d.taken = 0;
    try_bytes(&d, whole, bytes);
    assert_int_equal(d.taken, 1);
    free(whole);
    free(bent);
    free(d.want);
    train_end(&d.run);
    test_folder_remove();
}

/* What is in `from`, as a checkpoint of batches of another shape. */
static void forge(exphil_context *context, const char *from, const char *to, int64_t batch, int64_t time)
{
    size_t bytes;
    char *data = test_read(from, &bytes), text[4096], sum[XPH_HEX_TEXT];
    xph_tensors file;
    xph_file_writer writer;
    assert_ok(xph_tensors_parse(context, data, bytes, "checkpoint", &file, NULL));
    const char *said = xph_tensors_metadata(&file, "exphil.optimizer");
    const char *at = strstr(said, "\"batch\":"), *behind = strstr(said, ",\"settings\"");
    assert_true(at && behind);
    (void)snprintf(text, sizeof text, "%.*s\"batch\":%lld,\"time\":%lld%s", (int)(at - said), said,
                   (long long)batch, (long long)time, behind);
    const xph_pair pairs[] = {{"exphil.optimizer", text},
                              {"exphil.optimizer_xxh64", xph_hex_text(sum, xph_hash(text, strlen(text)))}};
    assert_ok(xph_tensors_write(context, file.tensor, file.count, pairs, 2, to, &writer, NULL));
    assert_ok(xph_file_commit(&writer, NULL));
    xph_tensors_free(&file);
    free(data);
}

/* A trainer without prefetcher learns its shape from the file, but a number in it asks for no memory: the batch that comes
 * does. What the trainer has and what the file holds, a few times over, is enough. */
static void numbers_in_a_file_take_no_memory(const char *blocks, exphil_status expected)
{
    test_memory memory;
    exphil_error error = EXPHIL_ERROR_INIT;
    test_memory_init(&memory);
    train_plan plan = train_plan_of(blocks, EXPHIL_MODE_CARRY);
    plan.by_hand = true;
    plan.memory = &memory;
    train_run run = train_begin(&plan), second = train_begin(&plan);
    exphil_batch batch = train_batch(run.model, 2, 5, 0);
    assert_ok(exphil_trainer_step_batch(run.trainer, &batch, NULL, NULL));
    assert_ok(exphil_trainer_save(run.trainer, test_path("good"), NULL));
    forge(run.context, test_path("good.optimizer"), test_path("net.optimizer"), 4096, 65536);
    size_t bytes, file_bytes;
    free(test_read(test_path("net.optimizer"), &file_bytes));
    unsigned char *before = train_snapshot(second.trainer, &bytes);
    memory.limit_bytes =
        atomic_load(&memory.live_bytes) + (long long)(4 * second.trainer->arena_bytes + 4 * file_bytes);
    exphil_status status = exphil_trainer_resume(second.trainer, test_path("net"), &error);
    if (status != expected) fail_msg("%s: %s: %s", blocks, exphil_status_name(status), error.message);
    if (status == EXPHIL_OK) { /* no tensor says otherwise: it holds for the first batch */
        status = exphil_trainer_step_batch(second.trainer, &batch, NULL, &error);
        assert_int_equal(status, EXPHIL_E_INVALID);
        assert_non_null(strstr(error.message, "batch is 2 x 5, this run has 4096 x 65536"));
    } else {
        unsigned char *after = train_snapshot(second.trainer, &bytes);
        assert_non_null(strstr(error.message, "checkpoint: state has"));
        assert_memory_equal(before, after, bytes);
        free(after);
    }
    memory.limit_bytes = 0;
    assert_ok(exphil_trainer_resume(second.trainer, test_path("good"), NULL));
    assert_ok(exphil_trainer_step_batch(second.trainer, &batch, NULL, NULL));
    free(before);
    train_batch_free(&batch);
    train_end(&run);
    train_end(&second);
    assert_memory_clean(&memory);
}

static void forged_shapes(void **state)
{
    numbers_in_a_file_take_no_memory("gru", EXPHIL_E_MISMATCH);
    numbers_in_a_file_take_no_memory("mlp", EXPHIL_OK);
    train_plan plan = train_plan_of("gru", EXPHIL_MODE_WINDOW);
    exphil_error error = EXPHIL_ERROR_INIT;
    plan.by_hand = true;
    train_run run = train_begin(&plan), second = train_begin(&plan);
    exphil_batch batch = train_batch(run.model, 2, 6, 0);
    assert_ok(exphil_trainer_step_batch(run.trainer, &batch, NULL, NULL));
    assert_ok(exphil_trainer_save(run.trainer, test_path("good"), NULL));
    forge(run.context, test_path("good.optimizer"), test_path("net.optimizer"), 2, 7);
    assert_int_equal(exphil_trainer_resume(second.trainer, test_path("net"), &error), EXPHIL_E_FORMAT);
    assert_non_null(strstr(error.message, "time is 7, the model's window is 6"));
    train_batch_free(&batch);
    train_end(&run);
    train_end(&second);
    test_folder_remove();
}

/* Until its first batch a resumed run is what it was saved as: saved again, the same files. */
static void a_resumed_run_is_saved_again(void **state)
{
    train_plan plan = train_plan_of("lstm mamba", EXPHIL_MODE_CARRY);
    plan.by_hand = true;
    train_run run = train_begin(&plan), second = train_begin(&plan), third = train_begin(&plan);
    exphil_batch batch = train_batch(run.model, 3, 7, 0);
    assert_ok(exphil_trainer_step_batch(run.trainer, &batch, NULL, NULL));
    assert_ok(exphil_trainer_save(run.trainer, test_path("net"), NULL));
    assert_ok(exphil_trainer_resume(second.trainer, test_path("net"), NULL));
    assert_ok(exphil_trainer_save(second.trainer, test_path("again"), NULL));
    assert_same_file(test_path("net"), test_path("again"));
    assert_same_file(test_path("net.optimizer"), test_path("again.optimizer"));
    assert_ok(exphil_trainer_resume(third.trainer, test_path("again"), NULL));
    memset((void *)(uintptr_t)batch.reset, 0, 21);
    assert_ok(exphil_trainer_step_batch(run.trainer, &batch, NULL, NULL));
    assert_ok(exphil_trainer_step_batch(third.trainer, &batch, NULL, NULL));
    assert_ok(exphil_trainer_save(run.trainer, test_path("net"), NULL));
    assert_ok(exphil_trainer_save(third.trainer, test_path("again"), NULL));
    assert_same_file(test_path("net.optimizer"), test_path("again.optimizer"));
    train_batch_free(&batch);
    train_end(&run);
    train_end(&second);
    train_end(&third);
    test_folder_remove();
}

static void other_files_are_refused(void **state)
{
    train_plan plan = train_plan_of("gru", EXPHIL_MODE_CARRY);
    train_run run = train_begin(&plan);
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(exphil_trainer_resume(run.trainer, test_path("absent"), &error), EXPHIL_E_IO);
    assert_non_null(strstr(error.message, "absent.optimizer"));
    assert_ok(exphil_model_save(run.model, test_path("net.optimizer"), NULL)); /* weights, not a checkpoint */
    assert_int_equal(exphil_trainer_resume(run.trainer, test_path("net"), &error), EXPHIL_E_FORMAT);
    assert_non_null(strstr(error.message, "exphil.optimizer"));
    assert_int_equal(exphil_trainer_resume(run.trainer, "", &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_trainer_save(run.trainer, "", &error), EXPHIL_E_INVALID);
    (void)train_steps(&run, 1);
    train_end(&run);
    test_folder_remove();
}

int main(int argc, char **argv)
{
    if (argc == 6) return other_life(argv + 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_place_will_do),
        cmocka_unit_test(runs_by_hand_go_on),
        cmocka_unit_test(counters_add_up),
        cmocka_unit_test(schedules_compare_what_they_use),
        cmocka_unit_test(runs_get_another_end),
        cmocka_unit_test(averaged_weights_are_saved),
        cmocka_unit_test(other_settings_are_named),
        cmocka_unit_test(harmless_settings_may_differ),
        cmocka_unit_test(damaged_checkpoints_are_refused),
        cmocka_unit_test(forged_shapes),
        cmocka_unit_test(a_resumed_run_is_saved_again),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(killed_runs_go_on),
        cmocka_unit_test(killed_saves_leave_whole_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
