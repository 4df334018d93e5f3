/* The policies, batches and steps whose cost on a GPU is counted and timed. */
#include "cost_cases.h"

#include "base/base.h"
#include "train/train.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLOATS = 288, BATCH = 256, TIME = 60, HIDDEN = 256 };
enum { SMALL_BATCH = 2, SMALL_TIME = 3, SMALL_HIDDEN = 16, SEEN_MOST = 256 };

/* ---- the device's table, watched ---- */

/* A kernel that was chosen: its address is what run is given here. */
typedef struct seen {
    const xph_kernel *kernel;
    const char *name;
} seen;

static struct {
    const xph_backend *real;
    xph_backend table;
    const cost_watch *watch;
    seen seen[SEEN_MOST];
    int count;
} watched;

static exphil_status watched_query(xph_device *device, xph_op op, void *args, xph_op_info *info)
{
    int i = 0;
    XPH_TRY(watched.real->query(device, op, args, info));
    while (i < watched.count &&
           (watched.seen[i].kernel != info->kernel || watched.seen[i].name != info->name))
        i++;
    if (i == SEEN_MOST) return EXPHIL_E_MEMORY;
    if (i == watched.count) watched.seen[watched.count++] = (seen){info->kernel, info->name};
    info->kernel = (const xph_kernel *)&watched.seen[i];
    return EXPHIL_OK;
}

typedef struct operation {
    xph_stream *stream;
    const xph_kernel *kernel;
    const void *args;
} operation;

static exphil_status do_one(void *arg)
{
    const operation *o = arg;
    return watched.real->run(o->stream, o->kernel, o->args);
}

static exphil_status watched_run(xph_stream *stream, const xph_kernel *kernel, const void *args)
{
    const seen *of = (const seen *)kernel;
    operation one = {stream, of->kernel, args};
    return watched.watch->run(watched.real, stream, of->name, do_one, &one);
}

typedef struct joined {
    xph_stream *stream;
    const xph_joined_op *calls;
    const xph_download *results;
    int64_t count, result_count;
} joined;

static exphil_status do_joined(void *arg)
{
    const joined *j = arg;
    return watched.real->run_joined(j->stream, j->calls, j->count, j->results, j->result_count);
}

static exphil_status watched_joined(xph_stream *stream, const xph_joined_op *calls, int64_t count,
                                    const xph_download *results, int64_t result_count)
{
    joined all = {stream, calls, results, count, result_count};
    return watched.watch->run(watched.real, stream, "joined_step", do_joined, &all);
}

/* ---- policies ---- */

static void must(exphil_status status, const exphil_error *error)
{
    if (status >= 0) return;
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, exphil_status_name(status),
            error->message);
    exit(1);
}

static uint32_t chance = 1;

static uint32_t draw(uint32_t below)
{
    chance = chance * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(chance >> 8) * below >> 24);
}

static exphil_spec spec_of(bool melee)
{
    exphil_spec known = EXPHIL_SPEC_INIT, spec = EXPHIL_SPEC_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    must(exphil_melee_spec(NULL, NULL, &known, &error), &error);
    if (melee) return known;
    spec.layout = "bench";
    spec.codec = "bench";
    spec.float_count = FLOATS;
    spec.head_count = known.head_count;
    spec.heads = known.heads;
    return spec;
}

static exphil_model *model_of(exphil_context *context, const exphil_spec *spec, const char *blocks,
                              bool melee, bool value, bool small)
{
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_model *model = NULL;
    config.spec = spec;
    config.blocks = blocks;
    config.hidden = small ? SMALL_HIDDEN : HIDDEN;
    config.seed = 1;
    config.no_previous_action = !melee;
    config.value = value ? EXPHIL_VALUE_SHARED : EXPHIL_VALUE_NONE;
    must(exphil_model_create(context, &config, &model, &error), &error);
    return model;
}

/* ---- batches ---- */

/* Some ids are the same for a whole game, as characters and stages are; others change, most often to one of a few. */
static int32_t id_of(const exphil_spec *spec, int64_t k, int64_t stream, int64_t frame)
{
    const int32_t entries = spec->ids[k].entries;
    if (entries < 64) return (int32_t)((uint32_t)(stream * 7 + k * 5) % (uint32_t)entries);
    if (frame % 8) return -1; /* as in the frame before */
    const uint32_t few = entries / 8 > 1 ? (uint32_t)entries / 8 : 1;
    return (int32_t)(draw(4) ? draw(few) : draw((uint32_t)entries));
}

static int32_t *ids_of(const exphil_spec *spec, int64_t streams, int64_t frames)
{
    const int64_t wide = spec->id_count;
    int32_t *ids = calloc((size_t)(streams * frames * wide) + 1, sizeof *ids);
    for (int64_t row = 0; row < streams * frames; row++)
        for (int64_t k = 0; k < wide; k++) {
            const int32_t id = id_of(spec, k, row / frames, row % frames);
            ids[row * wide + k] = id < 0 ? ids[(row - 1) * wide + k] : id;
        }
    return ids;
}

static int32_t action_of(const exphil_head_spec *head, int64_t row)
{
    if (row % 5) return head->neutral;
    return (int32_t)draw(head->kind == EXPHIL_BERNOULLI ? 1u << head->count : (uint32_t)head->count);
}

static int32_t *actions_of(const exphil_spec *spec, int64_t rows)
{
    int32_t *actions = calloc((size_t)(rows * spec->head_count) + 1, sizeof *actions);
    for (int64_t i = 0; i < rows * spec->head_count; i++)
        actions[i] = action_of(&spec->heads[i % spec->head_count], i / spec->head_count);
    return actions;
}

static float *floats_of(const exphil_spec *spec, int64_t rows)
{
    float *floats = calloc((size_t)(rows * spec->float_count) + 1, sizeof *floats);
    for (int64_t i = 0; i < rows * spec->float_count; i++) floats[i] = (float)draw(2000) / 1000.0f - 1.0f;
    return floats;
}

/* All rows count; an episode begins with every eighth stream, and with every eighth other in the middle. */
static exphil_batch batch_of(const exphil_spec *spec, int64_t slots, bool small)
{
    const int64_t sequences = small ? SMALL_BATCH : BATCH, time = small ? SMALL_TIME : TIME;
    const int64_t rows = sequences * time;
    exphil_batch batch = EXPHIL_BATCH_INIT;
    float *mask = calloc((size_t)rows, sizeof *mask);
    uint8_t *reset = calloc((size_t)rows, 1);
    for (int64_t row = 0; row < rows; row++) mask[row] = 1;
    for (int64_t b = 0; b < sequences; b++)
        if (b % 4 == 0) reset[b * time + (b % 8 ? time / 2 : 0)] = 1;
    batch.batch = sequences;
    batch.time = time;
    batch.frames = rows;
    batch.floats = floats_of(spec, rows);
    batch.ids = ids_of(spec, sequences, time);
    batch.actions = actions_of(spec, rows);
    batch.past = slots ? actions_of(spec, rows * slots) : NULL;
    batch.mask = mask;
    batch.reset = reset;
    return batch;
}

static void free_batch(const exphil_batch *batch)
{
    const void *const all[] = {batch->floats, batch->ids,  batch->actions,
                               batch->past,   batch->mask, batch->reset};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free((void *)(uintptr_t)all[i]);
}

/* ---- cases ---- */

/* What the loss of learning from play is told on the device, of one batch that is all that was played: every row counts, and there
 * is a teacher. */
typedef struct played {
    const xph_kernel *kernel;
    xph_policy_loss_args args;
    unsigned char *memory;
    size_t bytes;
    xph_policy_tally tally;
} played;

static xph_policy_loss_args played_args(const exphil_model *model, const exphil_batch *batch)
{
    static double temperature[EXPHIL_HEADS_MAX];
    const xph_model_shape *shape = xph_model_shape_of(model);
    const int64_t rows = batch->batch * batch->time;
    for (int i = 0; i < EXPHIL_HEADS_MAX; i++) temperature[i] = 1.0;
    return (xph_policy_loss_args){.part = XPH_POLICY_LOSS,
                                  .rows = rows,
                                  .time = batch->time,
                                  .stride = batch->time,
                                  .all = rows,
                                  .heads = shape->heads,
                                  .logits = shape->logits,
                                  .head = xph_model_heads(model),
                                  .temperature = temperature,
                                  .terms = {1.0, 0.2, 0.1, 0.1, 0.1, 0.01},
                                  .scale = 1.0 / (double)rows,
                                  .value = 0.5};
}

static void cut_played(played *p, size_t scratch, unsigned char *base)
{
    xph_policy_loss_args *a = &p->args;
    const int64_t rows = a->rows, logits = a->logits;
    xph_cutter c = {base, 0};
    a->counts = xph_cut(&c, rows, 1, 1);
    a->stream = xph_cut(&c, rows / a->time, 1, sizeof(int64_t));
    a->log_probability = xph_cut(&c, rows, 1, sizeof(double));
    a->advantage = xph_cut(&c, rows, 1, sizeof(double));
    a->target = xph_cut(&c, rows, 1, sizeof(double));
    a->old = xph_cut(&c, rows, logits, sizeof(double));
    a->old_chances = xph_cut(&c, rows, logits, sizeof(double));
    a->teacher = xph_cut(&c, rows, logits, sizeof(double));
    a->teacher_chances = xph_cut(&c, rows, logits, sizeof(double));
    a->tally = xph_cut(&c, 1, 1, sizeof *a->tally);
    a->scratch = xph_cut(&c, 1, 1, scratch);
    p->memory = base;
    p->bytes = c.at;
}

static exphil_status send_played(xph_stream *stream, const played *p, int64_t streams)
{
    const xph_backend *backend = stream->device->backend;
    uint8_t *counts = calloc((size_t)p->args.rows, 1);
    int64_t *numbers = calloc((size_t)streams, sizeof *numbers);
    memset(counts, XPH_ROW_PLAYED, (size_t)p->args.rows);
    for (int64_t i = 0; i < streams; i++) numbers[i] = i;
    exphil_status status = backend->zero(stream, p->memory, p->bytes);
    if (status >= 0)
        status = backend->upload(stream, (void *)(uintptr_t)p->args.counts, counts, (size_t)p->args.rows);
    if (status >= 0)
        status = backend->upload(stream, (void *)(uintptr_t)p->args.stream, numbers,
                                 (size_t)streams * sizeof *numbers);
    status = xph_stream_end(stream, status);
    free(counts);
    free(numbers);
    return status;
}

static played make_played(const exphil_model *model, const exphil_batch *batch)
{
    xph_device *device = xph_context_backend(xph_model_context(model));
    exphil_error error = EXPHIL_ERROR_INIT;
    xph_op_info info = {0};
    xph_stream *stream;
    void *memory;
    played p = {.args = played_args(model, batch)};
    must(device->backend->query(device, XPH_OP_POLICY_LOSS, &p.args, &info), &error);
    p.kernel = info.kernel;
    cut_played(&p, info.scratch_bytes, NULL);
    must(device->backend->alloc(device, p.bytes, &memory), &error);
    cut_played(&p, info.scratch_bytes, memory);
    must(device->backend->stream_create(device, 0, &stream), &error);
    must(send_played(stream, &p, batch->batch), &error);
    return p;
}

static void update_by_play(exphil_trainer *trainer, const exphil_batch *batch, played *p)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    xph_halves halves;
    must(xph_trainer_forward_here(trainer, batch, NULL, &halves, &error), &error);
    const xph_backend *backend = halves.stream->device->backend;
    xph_policy_loss_args args = p->args;
    args.y = halves.logits;
    args.values = halves.values;
    args.actions = halves.actions;
    args.dlogits = halves.dlogits;
    args.dvalues = halves.dvalues;
    must(backend->run(halves.stream, p->kernel, &args), &error);
    must(backend->download(halves.stream, &p->tally, args.tally, sizeof p->tally), &error);
    must(backend->stream_wait(halves.stream), &error);
    must(xph_trainer_backward_here(trainer, -1, -1, 0.0, NULL, &error), &error);
}

typedef enum updating { IMITATES, IMITATES_MELEE, LEARNS } updating;
static const char two_of_mamba[] = "mamba*2";

static void update(exphil_context *context, updating how, const char *blocks, int32_t precision,
                   const cost_watch *watch)
{
    const bool melee = how == IMITATES_MELEE;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_optimizer_config adam = EXPHIL_OPTIMIZER_CONFIG_INIT;
    exphil_trainer_config config = EXPHIL_TRAINER_CONFIG_INIT;
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    exphil_optimizer *optimizer = NULL;
    exphil_trainer *trainer = NULL;
    const exphil_spec spec = spec_of(melee);
    exphil_model *model = model_of(context, &spec, blocks, melee, how == LEARNS, watch->small);
    adam.rate = 1e-4;
    adam.decay = 0.01;
    adam.clip_norm = 1;
    config.precision = precision;
    must(exphil_model_query(model, &info, &error), &error);
    must(exphil_optimizer_create(model, &adam, &optimizer, &error), &error);
    must(exphil_trainer_create(model, optimizer, NULL, &config, &trainer, &error), &error);
    const exphil_batch batch = batch_of(&spec, info.action_slots, watch->small);
    played said = {0};
    if (how == LEARNS) said = make_played(model, &batch);
    for (int i = 0; i < watch->rounds; i++) {
        watch->begin(i);
        if (how == LEARNS)
            update_by_play(trainer, &batch, &said);
        else
            must(exphil_trainer_step_batch(trainer, &batch, &metrics, &error), &error);
        watch->end(i);
    }
    free_batch(&batch);
    if (said.memory) trainer->device->backend->free(trainer->device, said.memory, said.bytes);
    exphil_trainer_destroy(trainer);
    exphil_optimizer_destroy(optimizer);
    exphil_model_destroy(model);
}

static void step(exphil_context *context, bool melee, int64_t streams, const cost_watch *watch)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    exphil_session *session = NULL;
    const exphil_spec spec = spec_of(melee);
    exphil_model *model = model_of(context, &spec, two_of_mamba, melee, false, watch->small);
    float *floats = floats_of(&spec, streams);
    int32_t *ids = ids_of(&spec, streams, 1), *actions = actions_of(&spec, streams);
    config.streams = streams;
    must(exphil_session_create(model, &config, &session, &error), &error);
    for (int i = 0; i < watch->rounds; i++) {
        watch->begin(i);
        exphil_status status =
            exphil_session_step_row(session, floats, spec.id_count ? ids : NULL, NULL, actions);
        watch->end(i);
        if (status < 0) (void)exphil_session_error(session, &error);
        if (!watch->dry) must(status, &error);
    }
    free(floats);
    free(ids);
    free(actions);
    exphil_session_destroy(session);
    exphil_model_destroy(model);
}

static bool run_case(exphil_context *context, const char *name, const cost_watch *watch)
{
    static const struct {
        const char *name;
        int32_t precision;
    } kinds[] = {{"f32", EXPHIL_PRECISION_F32},
                 {"tf32", EXPHIL_PRECISION_TF32},
                 {"bf16", EXPHIL_PRECISION_BF16},
                 {"f16", EXPHIL_PRECISION_F16}};
    static const struct {
        const char *name, *blocks;
        updating how;
    } ways[] = {{"update-", two_of_mamba, IMITATES},
                {"melee2-", two_of_mamba, IMITATES_MELEE},
                {"learn-", two_of_mamba, LEARNS},
                {"lstm-", "lstm", IMITATES},
                {"gru-", "gru", IMITATES}};
    const bool melee = strncmp(name, "melee2-", 7) == 0;
    const char *what = melee ? name + 7 : name;
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        const size_t length = strlen(ways[w].name);
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            if (strncmp(name, ways[w].name, length) == 0 && strcmp(name + length, kinds[i].name) == 0) {
                update(context, ways[w].how, ways[w].blocks, kinds[i].precision, watch);
                return true;
            }
    }
    if (strncmp(what, "step-", 5) != 0 || atoll(what + 5) < 1) return false;
    step(context, melee, atoll(what + 5), watch);
    return true;
}

bool cost_case_run(exphil_context *context, const char *name, const cost_watch *watch)
{
    xph_device *device = xph_context_backend(context);
    watched.real = device->backend;
    watched.watch = watch;
    watched.count = 0;
    watched.table = *device->backend;
    watched.table.query = watched_query;
    watched.table.run = watched_run;
    watched.table.run_joined = watched_joined;
    watched.table.record_begin = NULL;
    device->backend = &watched.table;
    const bool known = run_case(context, name, watch);
    device->backend = watched.real;
    return known;
}
