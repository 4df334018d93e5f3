/* `exphil bench train`: one update - forward, loss, backward, AdamW - of small policies, on one thread and on two, beside the
 * floor that its multiply-adds set. */
#include "train.h"
#include "say.h"

#include <stdio.h>
#include <string.h>

enum { FLOATS = 288 };

const bench_workload bench_workloads[BENCH_WORKLOADS] = {
    {"lstm 256", "lstm", 256, 64, 60, 1.2, 1.3},
    {"gru 256", "gru", 256, 64, 60, 1.2, 1.3},
    {"attention 4 x 64", "attention", 256, 64, 60, 1.2, 1.3},
    {"mlp 288-512-512", "mlp", 512, 256, 1, 1.2, 1.3},
    {"mamba 256", "mamba", 256, 64, 60, 1.25, 1.25},
};

/* ---- one trainer ------------------------------------------------------------------------------------------ */

/* 288 numbers a frame, no ids, and the six heads of the Melee preset. */
exphil_status bench_train_spec(exphil_spec *spec, exphil_error *error)
{
    exphil_spec melee = EXPHIL_SPEC_INIT;
    exphil_status status = exphil_melee_spec(NULL, NULL, &melee, error);
    if (status < 0) return status;
    *spec = (exphil_spec)EXPHIL_SPEC_INIT;
    spec->layout = "bench";
    spec->codec = "bench";
    spec->float_count = FLOATS;
    spec->head_count = melee.head_count;
    spec->heads = melee.heads;
    return EXPHIL_OK;
}

static void say(void *user, exphil_log_level level, const char *message)
{
    (void)user, (void)level;
    bench_say(NULL, message);
}

static exphil_status open_it(bench_trainer *t, int threads, const bench_options *o, exphil_error *error)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    config.threads = threads;
    config.cpu_isa = o->isa;
    config.device = o->device;
    config.memory_limit_bytes = (size_t)o->memory_limit;
    config.log = o->device ? say : NULL; /* which library does its products */
    config.log_level = EXPHIL_LOG_INFO;
    exphil_status status = exphil_context_create(&config, &t->context, error);
    if (status >= 0 && o->opened) o->opened(t->context);
    return status;
}

static exphil_status train_it(bench_trainer *t, const bench_options *o, exphil_error *error)
{
    exphil_optimizer_config optimizer = EXPHIL_OPTIMIZER_CONFIG_INIT;
    exphil_trainer_config trainer = EXPHIL_TRAINER_CONFIG_INIT;
    trainer.precision = (int32_t)o->precision;
    optimizer.rate = 1e-4;
    optimizer.decay = 0.01;
    exphil_status status = exphil_optimizer_create(t->model, &optimizer, &t->optimizer, error);
    if (status < 0) return status;
    return exphil_trainer_create(t->model, t->optimizer, NULL, &trainer, &t->trainer, error);
}

static exphil_status make_all(bench_trainer *t, const bench_workload *w, int threads, const bench_options *o,
                              exphil_error *error)
{
    exphil_model_config model = EXPHIL_MODEL_CONFIG_INIT;
    exphil_spec spec;
    exphil_status status = open_it(t, threads, o, error);
    if (status >= 0) status = bench_train_spec(&spec, error);
    if (status < 0) return status;
    model.spec = &spec;
    model.blocks = w->blocks;
    model.hidden = w->hidden;
    model.seed = 1;
    model.no_previous_action = 1;
    status = exphil_model_create(t->context, &model, &t->model, error);
    t->heads = spec.head_count;
    return status < 0 ? status : train_it(t, o, error);
}

/* Weights that every row meets, twice the multiply-adds each, forward and twice backward; the first layer hands nothing
 * further back. Attention adds its pairs. */
static double count_flop(const bench_trainer *t, const bench_workload *w)
{
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    double weights = 0, first = 0, rows = (double)(w->batch * w->time);
    if (exphil_model_query(t->model, &info, NULL) < 0) return 0;
    for (int64_t i = 0; i < info.tensor_count; i++) {
        exphil_tensor_info one = EXPHIL_TENSOR_INFO_INIT;
        if (exphil_model_tensor_info(t->model, i, &one, NULL) < 0) return 0;
        if (one.rank != 2 || strstr(one.name, ".A_log") || strstr(one.name, "relative_bias")) continue;
        double numbers = (double)one.dim[0] * (double)one.dim[1];
        if (strncmp(one.name, "input.", 6) == 0) first = numbers;
        weights += numbers;
    }
    double pairs =
        (double)w->time * (double)(w->time + 1) / 2 * (double)w->batch; /* the window sees the whole chunk */
    double attention = strstr(w->blocks, "attention") ? pairs * 256 * 4 * 3.5 : 0;
    return rows * 2 * (3 * weights - first) + attention;
}

static void make_batch(bench_trainer *t, const bench_workload *w)
{
    size_t rows = (size_t)(w->batch * w->time);
    int32_t *actions = bench_memory(rows * (size_t)t->heads * sizeof *actions);
    float *mask = bench_memory(rows * sizeof *mask);
    uint8_t *reset = bench_memory(rows);
    for (size_t r = 0; r < rows; r++) {
        mask[r] = 1;
        reset[r] = r % (size_t)w->time == 0;
        for (size_t h = 0; h < (size_t)t->heads; h++)
            actions[r * (size_t)t->heads + h] = (int32_t)((r + h) % 4);
    }
    bench_seed(11);
    t->batch = (exphil_batch)EXPHIL_BATCH_INIT;
    t->batch.batch = w->batch;
    t->batch.time = w->time;
    t->batch.frames = (int64_t)rows;
    t->batch.floats = bench_floats(rows * FLOATS, 1);
    t->batch.actions = actions;
    t->batch.mask = mask;
    t->batch.reset = reset;
}

bool bench_trainer_make(bench_trainer *t, const bench_workload *w, int threads, const bench_options *options)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    *t = (bench_trainer){0};
    if (make_all(t, w, threads, options, &error) < 0) {
        bench_say(w->name, error.message);
        bench_trainer_end(t);
        return false;
    }
    make_batch(t, w);
    t->flop = count_flop(t, w);
    if (strstr(w->blocks, "mamba")) t->scanned = (double)(w->batch * w->time * w->hidden) * 2 * 16;
    return true;
}

static int32_t *integers(int64_t count)
{
    int32_t *made = bench_memory((size_t)(count > 0 ? count : 1) * sizeof *made);
    memset(made, 0, (size_t)count * sizeof *made);
    return made;
}

/* Actions walk through the values of each head. */
exphil_status bench_batch_for(const exphil_model *model, int64_t lanes, int64_t chunk, exphil_batch *batch,
                              exphil_error *error)
{
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    exphil_spec spec = EXPHIL_SPEC_INIT;
    exphil_status status = exphil_model_query(model, &info, error);
    if (status >= 0) status = exphil_model_spec(model, &spec, error);
    if (status < 0) return status;
    int64_t time = info.window_frames > 0 ? info.window_frames : chunk, rows = lanes * time;
    int64_t told = info.condition_count + (info.delay_count > 0), slots = info.action_slots;
    int32_t *actions = integers(rows * spec.head_count), *past = integers(rows * slots * spec.head_count);
    int32_t *conditions = integers(rows * told);
    float *mask = bench_memory((size_t)rows * sizeof *mask);
    uint8_t *reset = bench_memory((size_t)rows);
    for (int64_t r = 0; r < rows; r++) {
        mask[r] = 1;
        reset[r] = r % time == 0;
        if (info.delay_count > 0) conditions[r * told + info.condition_count] = 1;
        for (int64_t h = 0; h < spec.head_count; h++) {
            const exphil_head_spec *head = &spec.heads[h];
            actions[r * spec.head_count + h] =
                (int32_t)((r + h) % (head->kind == EXPHIL_BERNOULLI ? 2 : head->count));
            for (int64_t s = 0; s < slots; s++) past[(r * slots + s) * spec.head_count + h] = head->neutral;
        }
    }
    bench_seed(11);
    *batch = (exphil_batch)EXPHIL_BATCH_INIT;
    batch->batch = lanes;
    batch->time = time;
    batch->frames = rows;
    batch->floats = bench_floats((size_t)(rows * info.float_count + 1), 1);
    batch->ids = integers(rows * info.id_count);
    batch->past = past;
    batch->actions = actions;
    batch->conditions = conditions;
    batch->mask = mask;
    batch->reset = reset;
    return EXPHIL_OK;
}

bool bench_trainer_load(bench_trainer *t, const bench_options *o)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    *t = (bench_trainer){0};
    exphil_status status = open_it(t, 1, o, &error);
    if (status >= 0) status = exphil_model_load(t->context, o->weights, &t->model, &error);
    if (status >= 0) status = train_it(t, o, &error);
    if (status >= 0) status = bench_batch_for(t->model, o->batch, o->time, &t->batch, &error);
    if (status >= 0) return true;
    bench_say(o->weights, error.message);
    bench_trainer_end(t);
    return false;
}

void bench_trainer_end(bench_trainer *t)
{
    exphil_trainer_destroy(t->trainer);
    exphil_optimizer_destroy(t->optimizer);
    exphil_model_destroy(t->model);
    exphil_context_destroy(t->context);
    *t = (bench_trainer){0};
}

void bench_trainer_update(void *trainer, int64_t calls)
{
    bench_trainer *t = trainer;
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    for (int64_t i = 0; i < calls; i++) {
        if (exphil_trainer_step_batch(t->trainer, &t->batch, &metrics, &error) >= 0) continue;
        if (!t->failed) bench_say("update", error.message);
        t->failed = true;
    }
    t->loss = metrics.loss;
}

/* ---- the subject ------------------------------------------------------------------------------------------ */

/* What a scan costs at best, forward and backward, in ns of one core for each number of its state: the bars of the
 * kernels, which lie at twice the exponential alone. */
static const double scan_ns = 0.20 + 0.60;

static void give_row(bench_report *report, const bench_options *o, const bench_workload *w,
                     const bench_trainer *t, bench_work *work, int threads)
{
    bench_row row = {.time = bench_stats_of(work), .items = t->flop, .item = "flop"};
    double bar = threads == 1 ? w->bar_alone : w->bar_two;
    row.floor_ns =
        t->flop / (threads == 1 ? o->floors.fma : o->floors.fma_threads) + t->scanned * scan_ns / threads;
    snprintf(row.subject, sizeof row.subject, "update");
    snprintf(row.what, sizeof row.what, "%s, B=%d T=%d", w->name, (int)w->batch, (int)w->time);
    snprintf(row.how, sizeof row.how, "%d thread%s", threads, threads == 1 ? "" : "s");
    snprintf(row.floor_of, sizeof row.floor_of, "%.3g GFLOP%s", t->flop * 1e-9,
             t->scanned > 0 ? " and scan" : "");
    if (threads <= 2) {
        row.bar_ns = bar * row.floor_ns;
        snprintf(row.bar, sizeof row.bar, "%g x floor", bar);
    }
    bench_report_row(report, &row);
}

static bool workload(bench_report *report, const bench_options *o, const bench_workload *w,
                     const int *threads, int count)
{
    bench_trainer trainer[2];
    bench_work works[2] = {{0}};
    bench_effort effort = bench_effort_of(o);
    size_t mark = bench_memory_mark();
    bool good = true;
    effort.round_ns *= 10;
    for (int i = 0; i < count && good; i++) {
        /* the first keeps its core; the threads of a second one inherit what this thread may use */
        if (threads[i] > 1) bench_roam();
        good = bench_trainer_make(&trainer[i], w, threads[i], o);
        works[i] = (bench_work){.run = bench_trainer_update, .arg = &trainer[i], .calls = 1};
        if (!good) count = i;
    }
    if (good) good = bench_measure(works, count, &effort);
    for (int i = 0; i < count; i++) {
        good = good && !trainer[i].failed;
        if (good) give_row(report, o, w, &trainer[i], &works[i], threads[i]);
        bench_work_free(&works[i]);
        bench_trainer_end(&trainer[i]);
    }
    bench_memory_release(mark);
    return good;
}

bool bench_train(bench_report *report, const bench_options *options)
{
    int threads[2] = {1, 2}, count = bench_cores() > 1 ? 2 : 1;
    bool good = true;
    if (options->device) return bench_roofline(report, options);
    if (options->threads) {
        threads[0] = (int)options->threads;
        count = 1;
    }
    for (int i = 0; i < BENCH_WORKLOADS; i++)
        if (bench_wanted(options, "update", bench_workloads[i].name))
            good = workload(report, options, &bench_workloads[i], threads, count) && good;
    return good;
}
