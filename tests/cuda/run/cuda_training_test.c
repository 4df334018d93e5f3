/* Training on the emulated GPU against training on the CPU: the same model, the same batches, the same losses. All through
 * the public interface, the device being named as a host would. Streams run as late as they may, so that whoever does not
 * wait reads what is not there, and the host that touches the device's memory is stopped. */
#include "emulated.h"
#include "model/tensor_table.h"
#include "retry_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(EXPHIL_SANITIZE) /* five times as slow, and about other mistakes */
enum { UPDATES = 4, SANITIZED = 1 };
#else
enum { UPDATES = 12, SANITIZED = 0 };
#endif

static train_plan on_gpu(train_plan plan)
{
    plan.device = "cuda:0";
    plan.backend_path = EMULATED_FOLDER;
    return plan;
}

/* Losses of all updates, by their numbers: a device that is behind gives them later. */
static void losses_of(const train_plan *plan, double losses[UPDATES + 1])
{
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    train_run run = train_begin(plan);
    for (int i = 0; i <= UPDATES; i++) losses[i] = -1.0;
    for (int i = 0; i <= UPDATES; i++) {
        exphil_error error = EXPHIL_ERROR_INIT;
        if (exphil_trainer_step(run.trainer, &metrics, &error) < 0)
            fail_msg("update %d: %s", i, error.message);
        if (metrics.update <= UPDATES) losses[metrics.update] = metrics.loss;
    }
    train_end(&run);
}

static void compare(train_plan plan, double tolerance)
{
    double cpu[UPDATES + 1], gpu[UPDATES + 1], worst = 0.0;
    const train_plan other = on_gpu(plan);
    plan.trainer.precision = EXPHIL_PRECISION_F32;
    losses_of(&plan, cpu);
    losses_of(&other, gpu);
    emulated_clean();
    for (int i = 1; i <= UPDATES; i++) {
        if (gpu[i] < 0.0) fail_msg("no loss of update %d was given", i);
        double off = fabs(gpu[i] - cpu[i]) / cpu[i];
        worst = off > worst ? off : worst;
    }
    print_message("%-28s loss %.6f -> %.6f, worst relative difference %.2e\n", plan.model.blocks, cpu[1],
                  cpu[UPDATES], worst);
    if (!(worst <= tolerance))
        fail_msg("%s: losses differ by %g, at most %g is allowed", plan.model.blocks, worst, tolerance);
    if (!SANITIZED) assert_true(cpu[UPDATES] < cpu[1]);
}

static void late(void)
{
    emulated_gpu()->timing(EMU_LAZY, 1);
    emulated_gpu()->protect(1);
}

static void each_block_trains_alike(void **state)
{
    static const char *const blocks[] = {EACH_OF_SOME "lstm_bare norm dense relu"};
    late();
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        compare(train_plan_of(blocks[i], EXPHIL_MODE_CARRY), 1e-4);
}

/* Heads with layers, in both orders, and no LayerNorm behind the blocks. */
static void other_ends_train_alike(void **state)
{
    late();
    for (int end = 0; end < MODEL_CASE_ENDS; end++) {
        train_plan plan = train_plan_of(end ? "mlp" : "relu dense", EXPHIL_MODE_CARRY);
        plan.model.input_width = end ? 0 : 37;
        plan.model.heads = end > 0;
        model_case_end(&plan.model, end);
        compare(plan, 1e-4);
    }
}

static void windows_train_alike(void **state)
{
    late();
    compare(train_plan_of("mamba attention", EXPHIL_MODE_WINDOW), 1e-4);
}

/* Averaged weights, several batches an update, dropped activations, rounded weights: all that changes what an update is. */
static void every_setting_trains_alike(void **state)
{
    late();
    train_plan plan = train_plan_of("mamba mlp lstm", EXPHIL_MODE_CARRY);
    plan.trainer.accumulate = 3;
    plan.trainer.checkpoint_blocks = 1;
    plan.adam.ema_decay = 0.99;
    plan.adam.clip_norm = 0.5;
    plan.adam.decay = 0.01;
    compare(plan, 1e-4);
    plan = train_plan_of("gru attention", EXPHIL_MODE_CARRY);
    plan.trainer.fake_quantize = EXPHIL_TYPE_I8;
    compare(plan, 2e-3); /* a weight that rounds the other way moves the loss */
}

static train_plan own_past_plan(const char *blocks, int32_t mode)
{
    train_plan plan = train_plan_of(blocks, mode);
    plan.sampling.drop_past = 0.3;
    plan.trainer.own_past = 0.7;
    plan.trainer.own_past_seed = 9;
    plan.trainer.accumulate = 2;
    return plan;
}

/* Past actions of the policy's own: drawn on the device, mixed on the host, the same as on the CPU. */
static void own_decisions_train_alike(void **state)
{
    late();
    compare(own_past_plan("mamba gru", EXPHIL_MODE_CARRY), 1e-4);
    compare(own_past_plan("attention", EXPHIL_MODE_WINDOW), 1e-4);
}

enum { ALONE = 80 };

static exphil_report measured(const train_plan *plan)
{
    exphil_report report = EXPHIL_REPORT_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    train_run run = train_begin(plan);
    (void)train_steps(&run, SANITIZED ? 3 : 8);
    report.alone_most_frames = ALONE;
    if (exphil_trainer_evaluate(run.trainer, EXPHIL_WEIGHTS, run.dataset, NULL, &report, &error) < 0)
        fail_msg("%s", error.message);
    train_end(&run);
    return report;
}

/* A policy alone: lanes in one net, whose decisions come back after every frame. */
static void alone_is_measured_alike(void **state)
{
    late();
    for (int32_t mode = 0; mode <= 1; mode++)
        for (int32_t heads = 0; heads <= 1; heads++) {
            train_plan plan = train_plan_of("gru attention", mode);
            plan.model.heads = heads;
            const train_plan there = on_gpu(plan);
            const exphil_report cpu = measured(&plan), gpu = measured(&there);
            assert_true(cpu.alone_frames >= ALONE && gpu.alone_frames == cpu.alone_frames);
            assert_int_equal(gpu.alone_change_frames, cpu.alone_change_frames);
            assert_true(gpu.alone_accuracy == cpu.alone_accuracy);
            assert_true(fabs(gpu.alone_nll - cpu.alone_nll) < 1e-3 * cpu.alone_nll);
            emulated_clean();
        }
}

/* Losses near those of floats, and the logits that come of them; the weights stay floats. */
static void narrow_rows_train(void **state)
{
    static const int32_t precisions[] = {EXPHIL_PRECISION_TF32, EXPHIL_PRECISION_BF16, EXPHIL_PRECISION_F16};
    late();
    for (size_t i = 0; i < sizeof precisions / sizeof *precisions; i++) {
        train_plan plan = train_plan_of("mamba attention lstm", EXPHIL_MODE_CARRY);
        plan.trainer.precision = precisions[i];
        print_message("precision %d: ", precisions[i]);
        compare(plan, 3e-2);
    }
}

/* Of one batch, as the host sees them. */
static float *gradients_of(const train_plan *plan, train_run *run)
{
    *run = train_begin(plan);
    const exphil_trainer *trainer = run->trainer;
    const xph_backend *backend = trainer->device->backend;
    exphil_batch batch =
        train_batch(run->model, 5, plan->model.window_frames ? plan->model.window_frames : 8, 0);
    float *all = malloc(trainer->arena_bytes);
    xph_stream *stream = NULL;
    size_t bytes;
    assert_ok(exphil_trainer_step_batch(run->trainer, &batch, NULL, NULL));
    free(train_snapshot(run->trainer, &bytes)); /* waits */
    assert_int_equal(backend->stream_create(trainer->device, 0, &stream), EXPHIL_OK);
    assert_int_equal(backend->download(stream, all, trainer->gradients, trainer->arena_bytes), EXPHIL_OK);
    assert_int_equal(backend->stream_wait(stream), EXPHIL_OK);
    backend->stream_destroy(stream);
    train_batch_free(&batch);
    return all;
}

/* How far gradients are from those of floats, as a share of them: the worst tensor's, or all together. */
static double gradients_off(const exphil_model *model, const float *want, const float *got, double scale,
                            bool together)
{
    double worst = 0.0, off = 0.0, square = 0.0;
    for (int64_t t = 0; t < model->tensor_count; t++) {
        const xph_param *param = xph_model_param(model, t);
        if (!together) off = square = 0.0;
        for (int64_t i = param->offset; i < param->offset + param->count; i++) {
            off += pow((double)got[i] / scale - (double)want[i], 2.0);
            square += pow((double)want[i], 2.0);
        }
        if (!together && off > worst * worst * square) worst = sqrt(off / square);
    }
    return together ? sqrt(off / square) : worst;
}

/* Those of float16, which are scaled, are near in every tensor. bfloat16 has three bits less: where a part is at its
 * limit, as mamba_exphil's steps are and ReLUs, a tensor's gradient may be of the few that are not. */
static void compare_gradients(train_plan plan)
{
    static const int32_t precisions[] = {EXPHIL_PRECISION_TF32, EXPHIL_PRECISION_BF16, EXPHIL_PRECISION_F16};
    static const double most[] = {0.002, 0.02, 0.005}, scale[] = {1.0, 1.0, 65536.0};
    train_run cpu, gpu;
    plan.by_hand = true;
    float *want = gradients_of(&plan, &cpu);
    for (int i = 0; i < 3; i++) {
        train_plan there = on_gpu(plan);
        there.trainer.precision = precisions[i];
        float *got = gradients_of(&there, &gpu);
        double off = gradients_off(cpu.model, want, got, scale[i], i == 1);
        print_message("%s, precision %d: gradients off by %.5f\n", plan.model.blocks, precisions[i], off);
        assert_true(off <= most[i]);
        train_end(&gpu);
        free(got);
    }
    train_end(&cpu);
    free(want);
    emulated_clean();
}

static void narrow_gradients_are_near(void **state)
{
    static const char *const blocks[] = {"mamba_exphil ffn_gelu", "norm lstm_only relu dense",
                                         "lstm_bare gru_bare", "attention gru_only", "mlp"};
    late();
    for (int i = 0; i < 5; i++) {
        train_plan plan = train_plan_of(blocks[i], i % 2 ? EXPHIL_MODE_WINDOW : EXPHIL_MODE_CARRY);
        plan.model.heads = i > 1;
        if (i < MODEL_CASE_ENDS) model_case_end(&plan.model, i);
        compare_gradients(plan);
    }
}

/* More matrices than are packed at once (lib/model/weights.c). */
static void gradients_of_many_matrices_are_near(void **state)
{
    late();
    compare_gradients(train_plan_of("mamba*9", EXPHIL_MODE_CARRY));
}

static void fill_tensor(const train_run *run, const char *name, float value)
{
    const xph_param *param = xph_model_param(run->model, 0);
    for (int64_t i = 1; strcmp(param->name, name) != 0; i++) param = xph_model_param(run->model, i);
    const xph_backend *backend = run->trainer->device->backend;
    float *values = malloc((size_t)param->count * sizeof *values);
    xph_stream *stream = NULL;
    for (int64_t i = 0; i < param->count; i++) values[i] = value;
    assert_int_equal(backend->stream_create(run->trainer->device, 0, &stream), EXPHIL_OK);
    assert_int_equal(backend->upload(stream, (float *)run->trainer->weights + param->offset, values,
                                     (size_t)param->count * sizeof *values),
                     EXPHIL_OK);
    assert_int_equal(backend->stream_wait(stream), EXPHIL_OK);
    backend->stream_destroy(stream);
    free(values);
}

/* The scan's states of all lanes after one batch, every step being softplus(bias). */
static float *states_after(const train_plan *plan, float bias, size_t *count)
{
    train_run run = train_begin(plan);
    exphil_batch batch = train_batch(run.model, 8, 5, 0);
    size_t bytes;
    fill_tensor(&run, "blocks.0.dt_proj.weight", 0.0f);
    fill_tensor(&run, "blocks.0.dt_proj.bias", bias);
    assert_ok(exphil_trainer_step_batch(run.trainer, &batch, NULL, &model_case_failure));
    unsigned char *all = train_snapshot(run.trainer, &bytes);
    const size_t of_lanes = run.trainer->feed.state_bytes, lane = of_lanes / 8,
                 scan = 48 * 5 * sizeof(float); /* the convolution's lie before */
    float *states = malloc(8 * scan);
    for (size_t b = 0; b < 8; b++)
        memcpy(states + b * 48 * 5, all + bytes - 4 * sizeof(int64_t) - of_lanes + (b + 1) * lane - scan,
               scan);
    *count = 8 * scan / sizeof *states;
    free(all);
    train_batch_free(&batch);
    train_end(&run);
    return states;
}

/* -4.609 lies between two bfloat16s: rounded, it makes every step 1.5 % longer, and with it every state. What else is
 * rounded goes either way. */
static void narrow_rows_keep_the_bias_of_a_step(void **state)
{
    late();
    size_t count = 0;
    train_plan plan = train_plan_of("mamba", EXPHIL_MODE_CARRY);
    plan.by_hand = true;
    float *want = states_after(&plan, -4.609f, &count);
    for (int32_t precision = EXPHIL_PRECISION_BF16; precision <= EXPHIL_PRECISION_F16; precision++) {
        train_plan there = on_gpu(plan);
        there.trainer.precision = precision;
        float *got = states_after(&there, -4.609f, &count);
        double product = 0.0, square = 0.0;
        for (size_t i = 0; i < count; i++) {
            product += (double)got[i] * (double)want[i];
            square += (double)want[i] * (double)want[i];
        }
        print_message("precision %d: states %+.3f %% of those of floats\n", precision,
                      100.0 * (product / square - 1.0));
        assert_true(fabs(product / square - 1.0) < 0.004);
        free(got);
    }
    free(want);
    emulated_clean();
}

static unsigned char *weights_after(const train_plan *plan, int64_t updates, size_t *bytes)
{
    train_run run = train_begin(plan);
    train_steps(&run, updates);
    unsigned char *all = train_snapshot(run.trainer, bytes);
    train_end(&run);
    return all;
}

/* However streams interleave, whatever runs first in a kernel: one run, one result. */
static void every_order_gives_the_same_bits(void **state)
{
    const train_plan plan = on_gpu(train_plan_of("mamba attention gru", EXPHIL_MODE_CARRY));
    unsigned char *first = NULL;
    size_t bytes = 0, other = 0;
    emulated_gpu()->protect(0);
    for (int i = 0; i < 6; i++) {
        emulated_gpu()->timing(i % EMU_TIMINGS, (uint64_t)i);
        emulated_gpu()->schedule(i / 2);
        unsigned char *all = weights_after(&plan, 6, &other);
        if (first) {
            assert_int_equal(other, bytes);
            assert_memory_equal(all, first, bytes);
            free(all);
        } else {
            first = all;
            bytes = other;
        }
    }
    free(first);
    emulated_gpu()->schedule(EMU_FORWARD);
    emulated_clean();
}

/* The first update runs operation by operation. After the first of them have been recorded an update is one graph, one copy
 * back and the batch's copies, and asks the driver for no memory; the host is an update ahead of the device, and sleeps while
 * it waits. */
static void an_update_is_one_graph(void **state)
{
    late();
    const train_plan plan = on_gpu(train_plan_of("mamba", EXPHIL_MODE_CARRY));
    train_run run = train_begin(&plan);
    exphil_memory_info before = EXPHIL_MEMORY_INFO_INIT, after = EXPHIL_MEMORY_INFO_INIT;
    emulated_gpu()->counts_clear();
    exphil_metrics metrics = train_steps(&run, 1);
    assert_int_equal(emulated_gpu()->count().graph_launches, 0);
    metrics = train_steps(&run, 2);
    assert_int_equal(exphil_context_memory(run.context, &before, NULL), EXPHIL_OK);
    assert_true(before.device_used_bytes > 0 && before.device_peak_bytes >= before.device_used_bytes);
    for (int64_t i = 4; i <= 20; i++) {
        emulated_gpu()->counts_clear();
        metrics = train_steps(&run, 1);
        const emu_counts counts = emulated_gpu()->count();
        assert_int_equal(metrics.update, i - 1);
        assert_int_equal(counts.graph_launches, 1);
        assert_int_equal(counts.launches + counts.sets + counts.mallocs + counts.pinned, 0);
        assert_true(counts.synchronisations > 0);
        assert_int_equal(counts.spins, 0);
        assert_true(counts.copies <= 8);
    }
    assert_int_equal(exphil_context_memory(run.context, &after, NULL), EXPHIL_OK);
    assert_int_equal(after.device_requests, before.device_requests);
    train_end(&run);
    emulated_clean();
}

/* What trainers leave behind is used again: nothing new is asked of the driver. */
static void memory_is_used_again(void **state)
{
    late();
    exphil_context *context = emulated_context();
    const exphil_model_config config = model_case_config("lstm", EXPHIL_TYPE_F32);
    exphil_memory_info info = EXPHIL_MEMORY_INFO_INIT;
    for (int i = 0; i < 60; i++) {
        exphil_model *model = NULL;
        exphil_session *session = NULL;
        assert_int_equal(exphil_model_create(context, &config, &model, NULL), EXPHIL_OK);
        assert_int_equal(exphil_session_create(model, NULL, &session, NULL), EXPHIL_OK);
        exphil_session_destroy(session);
        exphil_model_destroy(model);
    }
    assert_int_equal(exphil_context_memory(context, &info, NULL), EXPHIL_OK);
    print_message("%llu of %llu requests met from the pool\n", (unsigned long long)info.device_reused,
                  (unsigned long long)info.device_requests);
    assert_true((double)info.device_reused >= 0.98 * (double)info.device_requests);
    assert_int_equal(info.device_used_bytes, 0);
    exphil_context_destroy(context);
    emulated_clean();
}

/* Saved on the device and resumed there, or begun on the CPU and gone on with on the device. */
static void runs_go_on_where_they_were_saved(void **state)
{
    late();
    char path[4096];
    size_t bytes, other;
    snprintf(path, sizeof path, "%s/run", test_folder());
    train_plan plan = own_past_plan("mamba lstm", EXPHIL_MODE_CARRY);
    const train_plan there = on_gpu(plan);
    unsigned char *straight = weights_after(&there, 9, &bytes);
    train_run run = train_begin(&there);
    train_steps(&run, 5);
    assert_int_equal(exphil_trainer_save(run.trainer, path, NULL), EXPHIL_OK);
    train_end(&run);
    run = train_begin(&there);
    assert_int_equal(exphil_trainer_resume(run.trainer, path, NULL), EXPHIL_OK);
    train_steps(&run, 4);
    unsigned char *resumed = train_snapshot(run.trainer, &other);
    train_end(&run);
    assert_int_equal(bytes, other);
    assert_memory_equal(straight, resumed, bytes);
    run = train_begin(&plan);
    assert_int_equal(exphil_trainer_resume(run.trainer, path, NULL), EXPHIL_OK);
    const exphil_metrics metrics = train_steps(&run, 4);
    assert_int_equal(metrics.update, 9);
    train_end(&run);
    free(straight);
    free(resumed);
    emulated_clean();
}

/* Without a prefetcher the state waits on the host for the first batch. */
static void runs_by_hand_go_on(void **state)
{
    late();
    train_plan plan = on_gpu(train_plan_of("mamba lstm", EXPHIL_MODE_CARRY));
    plan.by_hand = true;
    train_run run = train_begin(&plan), second = train_begin(&plan);
    exphil_batch batch = train_batch(run.model, 3, 7, 0);
    size_t bytes[2];
    assert_ok(exphil_trainer_step_batch(run.trainer, &batch, NULL, NULL));
    assert_ok(exphil_trainer_save(run.trainer, test_path("net"), NULL));
    assert_ok(exphil_trainer_resume(second.trainer, test_path("net"), NULL));
    assert_ok(exphil_trainer_save(second.trainer, test_path("again"), NULL));
    assert_ok(exphil_trainer_resume(second.trainer, test_path("again"), NULL));
    memset((void *)(uintptr_t)batch.reset, 0, 21);
    assert_ok(exphil_trainer_step_batch(run.trainer, &batch, NULL, NULL));
    assert_ok(exphil_trainer_step_batch(second.trainer, &batch, NULL, NULL));
    unsigned char *want = train_snapshot(run.trainer, &bytes[0]),
                  *got = train_snapshot(second.trainer, &bytes[1]);
    assert_int_equal(bytes[0], bytes[1]);
    assert_memory_equal(want, got, bytes[0]);
    free(want);
    free(got);
    train_batch_free(&batch);
    train_end(&run);
    train_end(&second);
    test_folder_remove();
    emulated_clean();
}

/* Input so large that the first product overflows: told one update later, with nothing moved, and the run goes on. */
static void overflow_is_refused(void **state)
{
    late();
    train_plan plan = on_gpu(train_plan_of("lstm", EXPHIL_MODE_CARRY));
    plan.by_hand = true;
    train_run run = train_begin(&plan);
    exphil_batch good = train_batch(run.model, 3, 7, 0), bad = train_batch(run.model, 3, 7, 2);
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    size_t bytes, other;
    for (int i = 0; i < 3; i++) assert_ok(exphil_trainer_step_batch(run.trainer, &good, &metrics, &error));
    unsigned char *before = train_snapshot(run.trainer, &bytes);
    for (int64_t i = 0; i < 3 * 7 * 13; i++) ((float *)(uintptr_t)bad.floats)[i] *= 3e38f;
    assert_ok(exphil_trainer_step_batch(run.trainer, &bad, &metrics, &error));
    unsigned char *after = train_snapshot(run.trainer, &other);
    const size_t state_bytes = run.trainer->feed.state_bytes,
                 kept = bytes - state_bytes - 4 * sizeof(int64_t);
    assert_int_equal(bytes, other);
    assert_memory_equal(before, after, kept);
    for (size_t i = 0; i < state_bytes; i++) assert_int_equal(after[kept + i], 0);
    assert_int_equal(exphil_trainer_step_batch(run.trainer, &good, &metrics, &error), EXPHIL_E_NUMERIC);
    assert_non_null(strstr(error.message, "update 4 refused"));
    for (int i = 0; i < 3; i++) assert_ok(exphil_trainer_step_batch(run.trainer, &good, &metrics, &error));
    assert_int_equal(metrics.skipped, 1);
    assert_int_equal(metrics.update, 5);
    free(before);
    free(after);
    train_batch_free(&good);
    train_batch_free(&bad);
    train_end(&run);
    emulated_clean();
}

/* Of the update that the device is still at, without another one behind it; what it came to is said once. */
static void the_last_update_is_waited_for(void **state)
{
    late();
    train_plan plan = on_gpu(train_plan_of("lstm", EXPHIL_MODE_CARRY));
    plan.by_hand = true;
    train_run run = train_begin(&plan), other = train_begin(&plan);
    exphil_batch good = train_batch(run.model, 3, 7, 0), bad = train_batch(run.model, 3, 7, 2);
    exphil_metrics waited = EXPHIL_METRICS_INIT, told = EXPHIL_METRICS_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_ok(exphil_trainer_wait(run.trainer, &waited, &error));
    assert_int_equal(waited.update, 0);
    for (int i = 0; i < 3; i++) assert_ok(exphil_trainer_step_batch(run.trainer, &good, &waited, &error));
    assert_int_equal(waited.update, 2);
    for (int i = 0; i < 2; i++) {
        assert_ok(exphil_trainer_wait(run.trainer, &waited, &error));
        assert_int_equal(waited.update, 3);
    }
    for (int i = 0; i < 4; i++) assert_ok(exphil_trainer_step_batch(other.trainer, &good, &told, &error));
    assert_int_equal(told.update, 3);
    assert_memory_equal(&waited.loss, &told.loss, sizeof told.loss);
    assert_memory_equal(&waited.gradient_norm, &told.gradient_norm, sizeof told.gradient_norm);
    for (int64_t i = 0; i < 3 * 7 * 13; i++) ((float *)(uintptr_t)bad.floats)[i] *= 3e38f;
    assert_ok(exphil_trainer_step_batch(run.trainer, &bad, NULL, &error));
    assert_int_equal(exphil_trainer_wait(run.trainer, NULL, &error), EXPHIL_E_NUMERIC);
    assert_non_null(strstr(error.message, "update 4 refused"));
    assert_ok(exphil_trainer_wait(run.trainer, &waited, &error));
    assert_ok(exphil_trainer_step_batch(run.trainer, &good, NULL, &error));
    assert_ok(exphil_trainer_wait(run.trainer, &waited, &error));
    assert_int_equal(waited.update, 4);
    assert_int_equal(waited.skipped, 1);
    train_batch_free(&good);
    train_batch_free(&bad);
    train_end(&run);
    train_end(&other);
    emulated_clean();
}

/* Pinned memory is requested from the driver too: a lost device gives none, and that is not for want of memory. */
static void a_lost_device_is_no_want_of_memory(void **state)
{
    late();
    const train_plan plan = on_gpu(train_plan_of("lstm", EXPHIL_MODE_CARRY));
    train_run run = train_begin(&plan);
    exphil_prefetcher *other = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_sampling sampling = plan.sampling;
    sampling.delay_frames = run.model->config.delay_frames;
    train_steps(&run, 2);
    emulated_gpu()->fail_allocation(1);
    assert_int_equal(exphil_prefetcher_create(run.dataset, &sampling, &other, &error), EXPHIL_E_MEMORY);
    assert_int_equal(error.native_code, 0);
    assert_int_equal(exphil_prefetcher_create(run.dataset, &sampling, &other, &error), EXPHIL_OK);
    exphil_prefetcher_destroy(other);
    emulated_gpu()->fail_operation(1);
    exphil_status status = EXPHIL_OK;
    for (int i = 0; i < 3 && status >= 0; i++) status = exphil_trainer_step(run.trainer, NULL, &error);
    assert_int_equal(status, EXPHIL_E_DEVICE);
    assert_int_not_equal(error.native_code, 0);
    const int32_t code = error.native_code;
    error = (exphil_error)EXPHIL_ERROR_INIT;
    assert_int_equal(exphil_prefetcher_create(run.dataset, &sampling, &other, &error), EXPHIL_E_DEVICE);
    assert_int_equal(error.native_code, code);
    assert_non_null(strstr(error.message, "the device failed"));
    train_end(&run);
    emulated_gpu()->clear();
    emulated_gpu()->fail_operation(0);
}

/* Recorded updates too, and when the device is one behind. With a sanitizer it is behind where nothing is accumulated, and
 * looked at where something is; so it is there without a prefetcher everywhere. */
static void failed_updates_are_taken_again(void **state)
{
    late();
    for (int64_t accumulate = 1; accumulate <= 2; accumulate++)
        for (int looks = 0; looks <= 1; looks++) {
            if (SANITIZED && looks != accumulate - 1) continue;
            train_plan plan = on_gpu(train_plan_of("mamba gru", EXPHIL_MODE_CARRY));
            plan.trainer.accumulate = accumulate;
            plan.trainer.checkpoint_blocks = 1;
            retry_as_never_failed(plan, RETRY_REDUCE, looks);
            retry_as_never_failed(plan, RETRY_CANCEL, looks);
            if (looks != accumulate - 1) continue;
            plan.by_hand = true;
            retry_as_never_failed(plan, RETRY_REDUCE, looks);
        }
    emulated_clean();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_block_trains_alike),
        cmocka_unit_test(other_ends_train_alike),
        cmocka_unit_test(windows_train_alike),
        cmocka_unit_test(every_setting_trains_alike),
        cmocka_unit_test(own_decisions_train_alike),
        cmocka_unit_test(alone_is_measured_alike),
        cmocka_unit_test(narrow_rows_train),
        cmocka_unit_test(narrow_gradients_are_near),
        cmocka_unit_test(gradients_of_many_matrices_are_near),
        cmocka_unit_test(narrow_rows_keep_the_bias_of_a_step),
        cmocka_unit_test(every_order_gives_the_same_bits),
        cmocka_unit_test(an_update_is_one_graph),
        cmocka_unit_test(memory_is_used_again),
        cmocka_unit_test(runs_go_on_where_they_were_saved),
        cmocka_unit_test(runs_by_hand_go_on),
        cmocka_unit_test(overflow_is_refused),
        cmocka_unit_test(the_last_update_is_waited_for),
        cmocka_unit_test(failed_updates_are_taken_again),
        cmocka_unit_test(a_lost_device_is_no_want_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
