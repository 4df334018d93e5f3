/* Trainings that are planned and made. */
#include "plan_case.h"

#include "game_case.h"
#include "train_case.h"

#include <exphil/games.h>
#include <stdio.h>
#include <stdlib.h>

#define OK(call)                                                                                             \
  do {                                                                                                       \
    exphil_error error_of = EXPHIL_ERROR_INIT, *error = &error_of;                                           \
    if ((call) < 0) fail_msg("%s:%d: %s", __FILE__, __LINE__, error_of.message);                             \
  } while (0)

enum { ALONE = 200, UPDATES = 4, GAMES = 5 };
/* An emulated GPU is slow: less of everything. */
enum { GPU_ALONE = 40, GPU_UPDATES = 2, GPU_GAMES = 5 };

static const int32_t delays[] = {0, 2, 4};
static const exphil_condition_spec conditions[] = {{"player", 3, 4, 0.1}, {"rank", 5, 3, 0.0}};

/* 0: as it is by default. joint: the batch of all ranks, whose last `batch` lanes it has. f64: on the CPU, for a GPU has it
 * not; precision: the other way round. */
typedef struct kind {
    const char *name, *blocks;
    int64_t batch, time, hidden, accumulate, segment, shuffle, memory, joint;
    double ema, own_past, drop_past, balance;
    int32_t mode, activations, checkpoint, fake, several, told, delay, buffers, autoregressive, games, f64,
        precision;
} kind;

static const kind kinds[PLAN_CASES] = {
    {.name = "mamba", .blocks = "mamba*2", .batch = 8, .time = 16},
    {.name = "lstm, averaged", .blocks = "lstm", .batch = 6, .time = 20, .ema = 0.9},
    {.name = "gru, three batches an update", .blocks = "gru*2", .batch = 5, .time = 12, .accumulate = 3},
    {.name = "attention", .blocks = "attention*2", .batch = 4, .time = 24},
    {.name = "mlp and ffn", .blocks = "mlp ffn", .batch = 16, .time = 10, .buffers = 5},
    {.name = "windows", .blocks = "gru", .mode = EXPHIL_MODE_WINDOW, .batch = 24, .time = 12},
    {.name = "windows in groups",
     .blocks = "mamba attention",
     .mode = EXPHIL_MODE_WINDOW,
     .batch = 9,
     .time = 14,
     .shuffle = 1024,
     .ema = 0.5},
    {.name = "activations of one block", .blocks = "mamba*4", .batch = 8, .time = 16, .checkpoint = 1},
    {.name = "activations of two, in bfloat16",
     .blocks = "(mamba ffn)*2",
     .batch = 8,
     .time = 16,
     .checkpoint = 2,
     .activations = EXPHIL_TYPE_BF16},
    {.name = "bfloat16", .blocks = "lstm ffn", .batch = 10, .time = 16, .activations = EXPHIL_TYPE_BF16},
    {.name = "own past", .blocks = "gru", .batch = 7, .time = 16, .own_past = 0.5, .drop_past = 0.2},
    {.name = "several delays", .blocks = "lstm", .batch = 6, .time = 16, .several = 1},
    {.name = "conditions", .blocks = "mamba", .batch = 6, .time = 16, .told = 1, .ema = 0.9, .accumulate = 2},
    {.name = "for int8", .blocks = "mamba ffn", .batch = 4, .time = 16, .fake = EXPHIL_TYPE_I8},
    {.name = "heads one after the other",
     .blocks = "gru ffn",
     .batch = 24,
     .time = 9,
     .autoregressive = 1,
     .own_past = 1.0},
    {.name = "segments", .blocks = "gru", .batch = 12, .time = 16, .segment = 48, .delay = 3, .balance = 0.5},
    {.name = "games", .blocks = "gru", .batch = 8, .time = 60, .games = 1},
    {.name = "windows of games",
     .blocks = "ffn",
     .mode = EXPHIL_MODE_WINDOW,
     .batch = 16,
     .time = 20,
     .games = 1,
     .delay = 2},
    {.name = "games in little memory",
     .blocks = "mamba",
     .batch = 12,
     .time = 40,
     .games = 1,
     .memory = 7500000},
    {.name = "wide",
     .blocks = "lstm mamba",
     .batch = 2,
     .time = 40,
     .hidden = 96,
     .f64 = 1,
     .precision = EXPHIL_PRECISION_BF16},
    {.name = "lanes of a rank", .blocks = "lstm", .batch = 6, .joint = 20, .time = 16, .segment = 40},
    {.name = "games of a rank's lanes", .blocks = "ffn", .batch = 5, .joint = 7, .time = 60, .games = 1},
};

const char *plan_case_name(int number)
{
    return kinds[number].name;
}

/* ---- data -------------------------------------------------------------------------------------------------------- */

static exphil_dataset *games_dataset(exphil_context *on, int count, int32_t last)
{
    exphil_games_config config = EXPHIL_GAMES_CONFIG_INIT;
    exphil_games_writer *writer = NULL;
    exphil_games *games = NULL;
    exphil_dataset *dataset = NULL;
    remove(test_path("plan.games"));
    if (exphil_games_create(on, test_path("plan.games"), &config, &writer, NULL) == EXPHIL_E_UNSUPPORTED) {
        config.stored = 1; /* there is no libzstd */
        OK(exphil_games_create(on, test_path("plan.games"), &config, &writer, error));
    }
    for (int i = 0; i < count; i++) {
        slp_writer made;
        slp_begin(&made, &slp_layouts[SLP_NEWEST], true);
        slp_head(&made, &slp_layouts[SLP_NEWEST]);
        game_seed(&made, (uint8_t)(i + 1));
        for (int32_t frame = -123; frame < last + 20 * i; frame++) slp_frame(&made, frame, 0x05, frame % 2);
        OK(exphil_games_add_memory(writer, made.data, made.bytes, NULL, error));
        slp_free(&made);
    }
    OK(exphil_games_finish(writer, NULL, error));
    exphil_games_writer_destroy(writer);
    OK(exphil_games_open(on, test_path("plan.games"), &games, error));
    OK(exphil_dataset_create(on, NULL, &dataset, error));
    OK(exphil_dataset_add_games(dataset, games, NULL, NULL, error));
    exphil_games_destroy(games);
    return dataset;
}

/* ---- what the host gives ------------------------------------------------------------------------------------------ */

/* Counts from when it is asked to: a model that is made takes more for a moment than its training does. */
static void *counted_alloc(void *user, size_t bytes, size_t align)
{
    plan_count *count = user;
    void *at = test_aligned(align, bytes);
    if (!at) return NULL;
    long long used = atomic_fetch_add(&count->used, (long long)bytes) + (long long)bytes;
    long long most = atomic_load(&count->most);
    while (used > most && !atomic_compare_exchange_weak(&count->most, &most, used)) {
    }
    return at;
}

static void counted_free(void *user, void *pointer, size_t bytes)
{
    atomic_fetch_sub(&((plan_count *)user)->used, (long long)bytes);
    test_aligned_free(pointer);
}

static exphil_context *context_of(const plan_place *place, plan_count *count)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_context *made = NULL;
    config.device = place->device;
    config.backend_path = place->backend_path;
    config.memory_limit_bytes = place->limit_bytes;
    count->hook = (exphil_allocator){sizeof count->hook, count, counted_alloc, counted_free};
    config.allocator = place->memory ? &place->memory->hook : &count->hook;
    config.threads = 2;
    OK(exphil_context_create(&config, &made, error));
    return made;
}

/* ---- a case ------------------------------------------------------------------------------------------------------ */

static void fill_model(plan_case *c, const kind *k, bool gpu)
{
    c->model_config = model_case_config(k->blocks, k->f64 && !gpu ? EXPHIL_TYPE_F64 : EXPHIL_TYPE_F32);
    if (k->games) c->model_config.spec = NULL;
    c->model_config.hidden = k->hidden ? k->hidden : 32;
    c->model_config.mode = k->mode;
    c->model_config.window_frames = k->mode == EXPHIL_MODE_WINDOW ? k->time : 0;
    c->model_config.heads = k->autoregressive ? EXPHIL_HEADS_AUTOREGRESSIVE : EXPHIL_HEADS_INDEPENDENT;
    c->model_config.delay_frames = k->several ? 0 : k->delay;
    c->model_config.delays = k->several ? delays : NULL;
    c->model_config.delay_count = k->several ? 3 : 0;
    c->model_config.conditions = k->told ? conditions : NULL;
    c->model_config.condition_count = k->told ? 2 : 0;
}

/* Another number of lanes, of a joint batch as much larger. */
static void set_lanes(const kind *k, int64_t lanes, exphil_sampling *sampling)
{
    sampling->batch = k->joint ? (lanes * k->joint + k->batch - 1) / k->batch : lanes;
    sampling->lane_count = k->joint ? lanes : 0;
    sampling->first_lane = k->joint ? sampling->batch - lanes : 0;
}

static void fill_training(plan_case *c, const kind *k, bool gpu)
{
    c->sampling = (exphil_sampling)EXPHIL_SAMPLING_INIT;
    OK(exphil_model_sampling(c->model, &c->sampling, error));
    set_lanes(k, k->batch, &c->sampling);
    c->sampling.time = k->time;
    c->sampling.segment_frames = k->segment;
    c->sampling.shuffle_frames = k->shuffle;
    c->sampling.drop_past = k->drop_past;
    c->sampling.balance_action = k->balance;
    c->sampling.buffers = k->buffers;
    c->sampling.memory_bytes = k->memory;
    c->sampling.workers = 1;
    c->adam = (exphil_optimizer_config)EXPHIL_OPTIMIZER_CONFIG_INIT;
    c->adam.ema_decay = k->ema;
    c->trainer = (exphil_trainer_config)EXPHIL_TRAINER_CONFIG_INIT;
    c->trainer.accumulate = k->accumulate;
    c->trainer.activations = k->activations;
    c->trainer.checkpoint_blocks = k->checkpoint;
    c->trainer.fake_quantize = k->fake;
    c->trainer.own_past = k->own_past;
    c->trainer.precision = gpu ? k->precision : 0;
}

plan_case *plan_case_open(int number, const plan_place *place)
{
    const kind *k = &kinds[number];
    plan_case *c = calloc(1, sizeof *c);
    c->number = number;
    c->context = context_of(place, &c->count);
    c->gpu = place->device != NULL;
    if (k->games)
        c->dataset = games_dataset(c->context, c->gpu ? GPU_GAMES : GAMES, c->gpu ? 100 : 500);
    else
        c->dataset = train_dataset(c->context, c->gpu ? 3 : 9);
    for (int i = 0; k->told && i < 2; i++) train_tell(c->dataset, &conditions[i]);
    fill_model(c, k, c->gpu);
    OK(exphil_model_create(c->context, &c->model_config, &c->model, error));
    fill_training(c, k, c->gpu);
    return c;
}

void plan_case_close(plan_case *c)
{
    exphil_model_destroy(c->model);
    exphil_dataset_destroy(c->dataset);
    exphil_context_destroy(c->context);
    free(c);
}

static exphil_plan plan_with(const plan_case *c, int64_t batch, uint64_t host_limit, bool ends)
{
    exphil_plan_config config = EXPHIL_PLAN_CONFIG_INIT;
    exphil_plan plan = EXPHIL_PLAN_INIT;
    exphil_sampling sampling = c->sampling;
    if (batch) set_lanes(&kinds[c->number], batch, &sampling);
    config.model = c->model;
    config.optimizer = &c->adam;
    config.sampling = &sampling;
    config.trainer = &c->trainer;
    config.dataset = c->dataset;
    config.scored = ends ? c->dataset : NULL;
    config.no_checkpoint = !ends;
    config.alone_most_frames = c->gpu ? GPU_ALONE : ALONE;
    config.host_limit_bytes = host_limit;
    config.most_batch = 512;
    OK(exphil_trainer_plan(c->context, &config, &plan, error));
    return plan;
}

exphil_plan plan_case_plan(const plan_case *c, int64_t batch, uint64_t host_limit)
{
    return plan_with(c, batch, host_limit, true);
}

exphil_plan plan_case_updates(const plan_case *c)
{
    return plan_with(c, 0, 0, false);
}

/* ---- a run ------------------------------------------------------------------------------------------------------- */

typedef struct run_parts {
    exphil_prefetcher *prefetcher;
    exphil_optimizer *optimizer;
    exphil_trainer *trainer;
} run_parts;

static exphil_memory_info memory_of(const plan_case *c)
{
    exphil_memory_info info = EXPHIL_MEMORY_INFO_INIT;
    OK(exphil_context_memory(c->context, &info, error));
    return info;
}

static exphil_status begin(const plan_case *c, int64_t batch, run_parts *run, exphil_error *error)
{
    exphil_sampling sampling = c->sampling;
    if (batch) set_lanes(&kinds[c->number], batch, &sampling);
    XPH_TRY(exphil_prefetcher_create(c->dataset, &sampling, &run->prefetcher, error));
    XPH_TRY(exphil_optimizer_create(c->model, &c->adam, &run->optimizer, error));
    return exphil_trainer_create(c->model, run->optimizer, run->prefetcher, &c->trainer, &run->trainer,
                                 error);
}

static exphil_status train(const plan_case *c, const run_parts *run, exphil_error *error)
{
    exphil_prefetcher_info data = EXPHIL_PREFETCHER_INFO_INIT;
    XPH_TRY(exphil_prefetcher_query(run->prefetcher, &data, error));
    int64_t updates = c->gpu ? GPU_UPDATES : UPDATES;
    if (!c->gpu && kinds[c->number].games && data.batches_per_epoch > updates)
        updates = data.batches_per_epoch;
    for (int64_t i = 0; i < updates; i++) {
        exphil_metrics metrics = EXPHIL_METRICS_INIT;
        XPH_TRY(exphil_trainer_step(run->trainer, &metrics, error));
    }
    return EXPHIL_OK;
}

static exphil_status score(const plan_case *c, const run_parts *run, exphil_error *error)
{
    exphil_report report = EXPHIL_REPORT_INIT;
    report.alone_most_frames = c->gpu ? GPU_ALONE : ALONE;
    return exphil_trainer_evaluate(run->trainer, EXPHIL_WEIGHTS, c->dataset, NULL, &report, error);
}

/* Of the allocator since it was asked to count: *host; of pinned memory and of the device since the context was made. */
static void most_since(const plan_case *c, const exphil_memory_info *before, uint64_t *host, uint64_t *device)
{
    const exphil_memory_info now = memory_of(c);
    *host = (uint64_t)atomic_load(&c->count.most) + now.pinned_peak_bytes - before->host_used_bytes -
            before->pinned_used_bytes;
    *device = now.device_peak_bytes - before->device_used_bytes;
}

/* Pinned memory is not at its most then. */
static exphil_status save(const plan_case *c, const run_parts *run, const exphil_memory_info *before,
                          plan_taken *taken, exphil_error *error)
{
    const long long most = atomic_load(&c->count.most);
    XPH_TRY(exphil_trainer_save(run->trainer, test_path("plan.safetensors"), error));
    const long long now = atomic_load(&c->count.most);
    uint64_t host =
        (uint64_t)now + memory_of(c).pinned_used_bytes - before->host_used_bytes - before->pinned_used_bytes;
    if (now > most && host > taken->host_peak) taken->host_peak = host;
    return EXPHIL_OK;
}

exphil_status plan_case_run(plan_case *c, int64_t batch, plan_taken *taken, exphil_error *error)
{
    run_parts run = {NULL, NULL, NULL};
    const exphil_memory_info before = memory_of(c);
    atomic_store(&c->count.most, atomic_load(&c->count.used));
    exphil_status status = begin(c, batch, &run, error);
    if (status >= 0) status = train(c, &run, error);
    most_since(c, &before, &taken->host, &taken->device);
    if (status >= 0) status = score(c, &run, error);
    most_since(c, &before, &taken->host_peak, &taken->device_peak);
    if (status >= 0) status = save(c, &run, &before, taken, error);
    exphil_trainer_destroy(run.trainer);
    exphil_optimizer_destroy(run.optimizer);
    exphil_prefetcher_destroy(run.prefetcher);
    return status;
}

void plan_case_fits(plan_case *c, int64_t largest)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    plan_taken taken;
    if (plan_case_run(c, largest, &taken, &error) < 0)
        fail_msg("%s, %lld lanes: %s", plan_case_name(c->number), (long long)largest, error.message);
    exphil_status status = plan_case_run(c, 2 * largest, &taken, &error);
    if (status == EXPHIL_E_INVALID)
        assert_non_null(strstr(error.message, "sampling.memory_bytes"));
    else
        assert_int_equal(status, EXPHIL_E_MEMORY);
}

void assert_planned(const char *name, const char *what, uint64_t planned, uint64_t taken)
{
    double ratio = taken ? (double)planned / (double)taken : planned ? 99.0 : 1.0;
    print_message("%-32s %-12s planned %9llu, taken %9llu, %+.1f %%\n", name, what,
                  (unsigned long long)planned, (unsigned long long)taken, 100.0 * (ratio - 1.0));
    if (ratio < 0.9 || ratio > 1.1) fail_msg("%s: %s is off by more than 10 %%", name, what);
}
