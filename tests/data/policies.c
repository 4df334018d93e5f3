/* Makes policies of every kind with the installed library alone, plays and scores them, and writes all of it for
 * tests/data/rebuild.py to make again from doc/model.md:
 *   policies FOLDER     NAME.safetensors          the policy, every weight shaken
 *                       NAME.fresh.safetensors    as it was created; NAME.decayed.safetensors after one update without a
 *                                                 gradient: tensors that decay are half of what they were
 *                       NAME.plain.safetensors    what a quantised policy was made of
 *                       NAME.rows                 safetensors too: rows, noise, settings, actions, logits, losses */
#include <exphil/conditions.h>
#include <exphil/learn.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAM "policies"
#include "policy_draw.h"

enum { FRAMES = 24, STREAMS = 2, ARRAYS = 40, RESET_FRAME = 9, OVERRIDE_FRAME = 5, BITS_MOST = 31 };

/* ---- what is made ---- */

static const exphil_id_spec ids[] = {{"stage", 5, 3}, {"own.character", 7, 0}};
static const exphil_head_spec heads[] = {{"buttons", EXPHIL_BERNOULLI, 3, 2, 0},
                                         {"stick", EXPHIL_CATEGORICAL, 5, 3, 0},
                                         {"trigger", EXPHIL_CATEGORICAL, 2, 1, 0},
                                         {"taps", EXPHIL_BERNOULLI, 2, 0, 0}};
static const exphil_spec small = {sizeof small, "small", "four", 6, 2, ids, 4, heads, 0};
static const exphil_spec bare = {sizeof bare, "bare", "one", 4, 0, NULL, 1, heads + 1, 0};

static const exphil_condition_spec conditions[] = {{"player", 3, 4, 0.1}, {"rank", 2, 0, 0.5}};
static const int32_t delays[] = {0, 2, 5}, values[] = {2, 0};

typedef struct policy {
    const char *name, *blocks;
    int32_t delay, alone, mode, order, type,
        weights;             /* alone: no_previous_action; weights: quantised to, or 0 */
    const exphil_spec *spec; /* NULL: Melee's, with all sizes the library's own */
    int32_t neutral_start,
        told; /* told: it has conditions, and delays of which delay is the one that is played */
    int32_t value;
    int32_t heads; /* a way of ending, below */
} policy;

/* Fields of the configuration that are about what comes behind the blocks. */
enum { USUAL, EXPHIL, SLIPPI, DEEP, PLAIN };
static void end(exphil_model_config *config, int32_t heads)
{
    if (!heads) return;
    config->head_layers = heads == PLAIN ? 0 : heads == DEEP ? 3 : heads == SLIPPI ? 2 : 1;
    config->head_units = heads == EXPHIL ? 11 : heads == SLIPPI ? 13 : 0;
    config->head_activation = heads == PLAIN  ? 0
                              : heads == DEEP ? EXPHIL_ACTIVATION_GELU_TANH
                                              : EXPHIL_ACTIVATION_RELU;
    if (heads == DEEP && config->type == EXPHIL_TYPE_F64) config->head_activation = EXPHIL_ACTIVATION_SILU;
    config->head_last = heads == SLIPPI || heads == DEEP;
    config->no_head_past = heads == SLIPPI || heads == PLAIN;
    config->no_head_trunk = heads == EXPHIL;
    config->no_final_norm = heads != DEEP;
    config->norm_epsilon = heads == DEEP ? 0.0 : 1e-6;
    if (heads == EXPHIL && strncmp(config->blocks, "norm gru_only", 13) == 0) config->input_width = 23;
}

#define ALL    "(mamba attention)*2 gru ffn lstm mlp"
#define OTHERS "lstm_bare mamba_exphil gru_bare ffn_gelu norm gru_only relu dense lstm_only mamba_exphil norm"
static const policy policies[] = {
    {"mamba", "mamba", 0, 0, 0, 0, EXPHIL_TYPE_F32, 0, &small, 0, 0, 0, USUAL},
    {"lstm", "lstm", 0, 0, 0, 0, EXPHIL_TYPE_F32, 0, &small, 0, 0, 0, USUAL},
    {"gru", "gru", 1, 0, 0, 0, EXPHIL_TYPE_F32, 0, &small, 0, 0, 0, USUAL},
    {"attention", "attention", 0, 0, 0, 0, EXPHIL_TYPE_F32, 0, &small, 0, 0, 0, USUAL},
    {"mlp", "mlp", 3, 0, 0, 1, EXPHIL_TYPE_F32, 0, &small, 0, 0, 0, USUAL},
    {"ffn", "ffn", 0, 0, 0, 1, EXPHIL_TYPE_F32, 0, &bare, 0, 0, 0, USUAL},
    {"all", ALL, 2, 0, 0, 1, EXPHIL_TYPE_F32, 0, &small, 1, 0, 0, USUAL},
    {"alone", "gru mamba", 0, 1, 0, 1, EXPHIL_TYPE_F32, 0, &small, 0, 0, 0, USUAL},
    {"queued", "lstm attention", 3, 1, 0, 1, EXPHIL_TYPE_F32, 0, &small, 1, 0, 0, USUAL},
    {"window", "mamba attention lstm", 1, 0, 1, 0, EXPHIL_TYPE_F32, 0, &small, 0, 0, 0, USUAL},
    {"window_all", ALL, 2, 1, 1, 1, EXPHIL_TYPE_F64, 0, &bare, 1, 0, 0, USUAL},
    {"double", ALL, 1, 0, 0, 1, EXPHIL_TYPE_F64, 0, &small, 0, 0, 0, USUAL},
    {"bf16", "attention ffn mlp", 1, 0, 0, 1, EXPHIL_TYPE_F32, EXPHIL_TYPE_BF16, &small, 0, 0, 0, USUAL},
    {"bf16_mamba", "mamba", 0, 0, 0, 1, EXPHIL_TYPE_F32, EXPHIL_TYPE_BF16, &small, 0, 0, 0, USUAL},
    {"bf16_window", "gru lstm", 0, 0, 1, 0, EXPHIL_TYPE_F32, EXPHIL_TYPE_BF16, &small, 0, 0, 0, USUAL},
    {"int8", ALL, 1, 0, 0, 1, EXPHIL_TYPE_F32, EXPHIL_TYPE_I8, &small, 0, 0, 0, USUAL},
    {"int8_window", "mlp lstm", 0, 0, 1, 0, EXPHIL_TYPE_F32, EXPHIL_TYPE_I8, &small, 0, 0, 0, USUAL},
    {"told", ALL, 2, 0, 0, 1, EXPHIL_TYPE_F32, 0, &small, 1, 1, 0, USUAL},
    {"told_window", "gru attention", 2, 1, 1, 1, EXPHIL_TYPE_F64, 0, &small, 0, 1, 0, USUAL},
    {"told_bare", "mamba", 0, 1, 0, 0, EXPHIL_TYPE_F32, 0, &bare, 1, 1, 0, USUAL},
    {"value", "gru mamba", 1, 0, 0, 1, EXPHIL_TYPE_F32, 0, &small, 1, 0, EXPHIL_VALUE_SHARED, USUAL},
    {"value_double", "attention", 0, 1, 1, 0, EXPHIL_TYPE_F64, 0, &small, 0, 0, EXPHIL_VALUE_DETACHED, USUAL},
    {"value_int8", "lstm", 0, 0, 0, 0, EXPHIL_TYPE_F32, EXPHIL_TYPE_I8, &small, 0, 0, EXPHIL_VALUE_SHARED,
     USUAL},
    {"others", OTHERS, 1, 0, 0, 1, EXPHIL_TYPE_F32, 0, &small, 1, 0, 0, USUAL},
    {"others_window", OTHERS, 0, 0, 1, 0, EXPHIL_TYPE_F64, 0, &bare, 0, 0, 0, USUAL},
    {"others_int8", OTHERS, 1, 0, 0, 1, EXPHIL_TYPE_F32, EXPHIL_TYPE_I8, &small, 0, 0, 0, USUAL},
    {"exphil", "norm gru_only norm", 1, 0, 0, 0, EXPHIL_TYPE_F32, 0, &small, 1, 0, 0, EXPHIL},
    {"exphil_told", "mamba_exphil", 2, 0, 1, 1, EXPHIL_TYPE_F64, 0, &small, 0, 1, EXPHIL_VALUE_SHARED,
     EXPHIL},
    {"slippi", "lstm_bare ffn_gelu", 2, 0, 0, 1, EXPHIL_TYPE_F32, 0, &small, 1, 0, 0, SLIPPI},
    {"slippi_int8", "lstm_bare ffn_gelu", 2, 0, 0, 1, EXPHIL_TYPE_F32, EXPHIL_TYPE_I8, &small, 1, 0, 0,
     SLIPPI},
    {"slippi_window", "lstm_bare", 0, 0, 1, 1, EXPHIL_TYPE_F32, 0, &small, 1, 0, 0, SLIPPI},
    {"deep", "mamba", 1, 0, 0, 1, EXPHIL_TYPE_F32, 0, &small, 0, 0, EXPHIL_VALUE_DETACHED, DEEP},
    {"deep_alone", "mlp gru", 3, 1, 1, 0, EXPHIL_TYPE_F64, 0, &small, 0, 0, 0, DEEP},
    {"deep_bf16", "ffn", 1, 0, 0, 1, EXPHIL_TYPE_F32, EXPHIL_TYPE_BF16, &bare, 0, 0, 0, DEEP},
    {"plain", "lstm", 1, 0, 0, 1, EXPHIL_TYPE_F32, 0, &small, 0, 0, EXPHIL_VALUE_SHARED, PLAIN},
    {"melee", NULL, 0, 0, 0, 0, EXPHIL_TYPE_F32, 0, NULL, 0, 0, 0, USUAL},
};

static exphil_model *create(exphil_context *context, const policy *p)
{
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    exphil_model *model = NULL;
    config.spec = p->spec;
    config.blocks = p->blocks;
    config.seed = 7;
    config.delay_frames = p->told ? 0 : p->delay;
    config.delays = delays;
    config.delay_count = p->told ? 3 : 0;
    config.conditions = conditions;
    config.condition_count = p->told ? 2 : 0;
    config.neutral_start = p->neutral_start;
    config.no_previous_action = p->alone;
    config.mode = p->mode;
    config.heads = p->order;
    config.type = p->type;
    config.value = p->value;
    end(&config, p->heads);
    if (p->spec) {
        config.hidden = 20;
        config.head_width = 18;
        config.mamba_states = 5;
        config.mamba_expand = 2;
        config.mamba_taps = 3;
        config.mamba_rank = 4;
        config.attention_heads = 3;
        config.attention_dim = 6;
        config.attention_window_frames = 5;
        config.ffn_expand = 3;
        config.window_frames = 7;
    }
    must(exphil_model_create(context, &config, &model, &error), p->name);
    return model;
}

/* So that nothing is 0 or 1 any more, and all sizes stay those of a trained policy. */
static void shake(exphil_model *model)
{
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    must(exphil_model_query(model, &info, &error), "model");
    for (int64_t i = 0; i < info.tensor_count; i++) {
        exphil_tensor_info t = EXPHIL_TENSOR_INFO_INIT;
        must(exphil_model_tensor_info(model, i, &t, &error), "tensor");
        int64_t count = t.dim[0] * t.dim[1];
        float scale = t.rank == 2 ? 0.7f / sqrtf((float)t.dim[1]) : 0.3f;
        void *data = zeroed(count, sizeof(double));
        must(exphil_model_tensor_get(model, t.name, data, t.size_bytes, &error), t.name);
        for (int64_t k = 0; k < count; k++) {
            if (t.type == EXPHIL_TYPE_F64)
                ((double *)data)[k] += (double)draw_float(scale);
            else
                ((float *)data)[k] += draw_float(scale);
        }
        must(exphil_model_tensor_set(model, t.name, data, t.size_bytes, &error), t.name);
        free(data);
    }
}

static void save(const exphil_model *model, const char *folder, const char *name, const char *what)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s%s.safetensors", folder, name, what);
    must(exphil_model_save(model, path, &error), path);
}

/* ---- arrays on their way to a file ---- */

typedef struct array {
    const char *name, *type;
    size_t bytes;
    int64_t dim[3];
    int32_t rank;
    void *data;
} array;

typedef struct game {
    const policy *p;
    exphil_spec spec;
    exphil_model_info info;
    array array[ARRAYS];
    int32_t count;
    float *floats, *noise, *how;
    int32_t *ids, *recorded, *given;
} game;

/* [FRAMES, STREAMS, width], or [width] alone. type: F32, F64, I32. */
static void *add(game *g, const char *name, const char *type, int64_t width, int32_t rank)
{
    size_t element = strcmp(type, "F64") == 0 ? 8 : 4;
    int64_t count = rank == 3 ? FRAMES * STREAMS * width : width;
    array *a = &g->array[g->count++];
    *a = (array){name, type, (size_t)count * element, {FRAMES, STREAMS, width}, rank, zeroed(count, element)};
    if (rank == 1) a->dim[0] = width;
    return a->data;
}

static void write_arrays(const game *g, const char *folder)
{
    char path[1024], header[8192] = "{";
    size_t at = 1, offset = 0;
    for (int32_t i = 0; i < g->count; i++) {
        const array *a = &g->array[i];
        at += (size_t)snprintf(header + at, sizeof header - at, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[",
                               i ? "," : "", a->name, a->type);
        for (int32_t d = 0; d < a->rank; d++)
            at += (size_t)snprintf(header + at, sizeof header - at, "%s%" PRId64, d ? "," : "", a->dim[d]);
        at += (size_t)snprintf(header + at, sizeof header - at, "],\"data_offsets\":[%zu,%zu]}", offset,
                               offset + a->bytes);
        offset += a->bytes;
    }
    at += (size_t)snprintf(header + at, sizeof header - at, "}");
    uint64_t length = at;
    snprintf(path, sizeof path, "%s/%s.rows", folder, g->p->name);
    FILE *file = fopen(path, "wb");
    bool good = file && fwrite(&length, 8, 1, file) == 1 && fwrite(header, 1, at, file) == at;
    for (int32_t i = 0; i < g->count && good; i++)
        good = fwrite(g->array[i].data, 1, g->array[i].bytes, file) == g->array[i].bytes;
    if (!file || fclose(file) || !good) {
        fprintf(stderr, "policies: cannot write %s\n", path);
        exit(1);
    }
}

/* ---- rows and settings ---- */

static int32_t any_value(const exphil_head_spec *head)
{
    uint32_t limit = head->kind == EXPHIL_BERNOULLI ? 1u << head->count : (uint32_t)head->count;
    return (int32_t)(draw() % limit);
}

static void draw_game(game *g)
{
    const exphil_spec *s = &g->spec;
    int64_t rows = FRAMES * STREAMS;
    g->floats = add(g, "floats", "F32", s->float_count, 3);
    g->ids = add(g, "ids", "I32", s->id_count, 3);
    g->noise = add(g, "noise", "F32", g->info.logit_count, 3);
    g->recorded = add(g, "recorded", "I32", s->head_count, 3);
    g->given = add(g, "given", "I32", s->head_count, 1); /* what a human did in the policy's place */
    g->how = add(g, "how", "F32", 3 * s->head_count, 1); /* temperature, press, release of each head */
    for (int64_t i = 0; i < rows * s->float_count; i++) g->floats[i] = draw_float(1.5f);
    for (int64_t i = 0; i < rows * s->id_count; i++)
        g->ids[i] = (int32_t)(draw() % (uint32_t)s->ids[i % s->id_count].entries);
    for (int64_t i = 0; i < rows * g->info.logit_count; i++)
        g->noise[i] = (float)((double)(draw() >> 9) * 2.0 + 1.0) * 0x1p-24f;
    for (int64_t i = 0; i < rows * s->head_count; i++)
        g->recorded[i] = any_value(&s->heads[i % s->head_count]);
    for (int64_t h = 0; h < s->head_count; h++) {
        g->given[h] = any_value(&s->heads[h]);
        g->how[3 * h] = 0.6f + 0.3f * (float)h;
        g->how[3 * h + 1] = 0.6f;
        g->how[3 * h + 2] = 0.4f;
    }
}

/* ---- play ---- */

typedef struct run {
    const char *actions, *logits, *values; /* names of the arrays */
    bool noise, still;
    int32_t deliver;
} run;

/* A stream is reset in between, and a human takes over for a frame. */
static void play(game *g, const exphil_model *model, const run *r)
{
    int64_t count = g->spec.head_count, width = g->info.logit_count;
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    exphil_session *session = NULL;
    exphil_head_play how[EXPHIL_HEADS_MAX];
    for (int64_t h = 0; h < count; h++)
        how[h] = (exphil_head_play){g->how[3 * h], 0, g->how[3 * h + 1], g->how[3 * h + 2]};
    config.heads = how;
    config.streams = STREAMS;
    config.seed = 0x123456789abcdef0u;
    config.delay_frames = &g->p->delay;
    config.conditions = g->p->told ? values : NULL;
    config.condition_count = g->p->told ? 2 : 0;
    config.deterministic = r->still;
    config.deliver = r->deliver;
    must(exphil_session_create(model, &config, &session, &error), g->p->name);
    int32_t *actions = add(g, r->actions, "I32", count, 3);
    float *logits = add(g, r->logits, "F32", width, 3),
          *values_said = g->p->value ? add(g, r->values, "F32", 1, 3) : NULL;
    for (int64_t t = 0; t < FRAMES; t++) {
        int64_t row = t * STREAMS;
        if (t == RESET_FRAME) must(exphil_session_reset(session, 1), "reset");
        must(exphil_session_step_row(session, g->floats + row * g->spec.float_count,
                                     g->ids + row * g->spec.id_count,
                                     r->noise ? g->noise + row * width : NULL, actions + row * count),
             "step");
        for (int64_t b = 0; b < STREAMS; b++)
            must(exphil_session_logits(session, b, logits + (row + b) * width, width), "logits");
        for (int64_t b = 0; values_said && b < STREAMS; b++)
            must(exphil_session_value(session, b, values_said + row + b), "value");
        if (t == OVERRIDE_FRAME) must(exphil_session_override(session, 0, g->given), "override");
    }
    exphil_session_destroy(session);
}

/* ---- losses over recorded rows ---- */

/* One stream of an array [FRAMES, STREAMS, width] by itself. */
static void *stream_of(const void *from, int64_t b, int64_t width)
{
    unsigned char *to = zeroed(FRAMES * width, 4);
    for (int64_t t = 0; t < FRAMES && width; t++)
        memcpy(to + t * width * 4, (const unsigned char *)from + (t * STREAMS + b) * width * 4,
               (size_t)width * 4);
    return to;
}

static exphil_dataset *record(const game *g, exphil_context *context)
{
    exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT;
    exphil_dataset *data = NULL;
    config.spec = &g->spec;
    must(exphil_dataset_create(context, &config, &data, &error), "dataset");
    for (int64_t b = 0; b < STREAMS; b++) {
        float *floats = stream_of(g->floats, b, g->spec.float_count);
        int32_t *id = stream_of(g->ids, b, g->spec.id_count),
                *actions = stream_of(g->recorded, b, g->spec.head_count);
        must(exphil_dataset_add_rows(data, (uint64_t)b, FRAMES, floats, id, actions, &error), "rows");
        free(floats);
        free(id);
        free(actions);
    }
    return data;
}

static void score(game *g, exphil_context *context, const exphil_model *model)
{
    int64_t count = g->spec.head_count;
    exphil_head_loss loss[EXPHIL_HEADS_MAX];
    float positive[EXPHIL_HEADS_MAX][BITS_MOST];
    exphil_report report = EXPHIL_REPORT_INIT;
    double *settings = add(g, "losses", "F64", 3 * count, 1),
           *weight = add(g, "positive", "F64", BITS_MOST, 1),
           *found = add(g, "report", "F64", 2 * count + 1, 1); /* loss of each head, nll of each, all */
    for (int64_t h = 0; h < count; h++) {
        bool bits = g->spec.heads[h].kind == EXPHIL_BERNOULLI;
        loss[h] = (exphil_head_loss){h == 2 ? -1.0 : 0.5 + (double)h, bits ? 0.0 : 0.1, h % 2 ? 0.0 : 1.5,
                                     bits ? positive[h] : NULL};
        memcpy(settings + 3 * h, (double[3]){loss[h].weight, loss[h].smoothing, loss[h].focal_gamma}, 24);
        for (int i = 0; i < BITS_MOST; i++) positive[h][i] = (float)(weight[i] = 0.5 + 0.75 * i);
    }
    exphil_dataset *data = record(g, context);
    exphil_evaluation how = EXPHIL_EVALUATION_INIT;
    how.losses = loss;
    how.delay_frames = &g->p->delay;
    how.conditions = g->p->told ? values : NULL;
    how.condition_count = g->p->told ? 2 : 0;
    must(exphil_evaluate_as(model, data, &how, &report, &error), "evaluate");
    int32_t *told = add(g, "told", "I32", 3, 1); /* values of the conditions, and the delay */
    memcpy(told, values, sizeof values);
    told[2] = g->p->delay;
    for (int64_t h = 0; h < count; h++) {
        found[h] = report.head[h].loss;
        found[count + h] = report.head[h].nll;
    }
    found[2 * count] = report.loss;
    exphil_dataset_destroy(data);
}

/* ---- decay alone ---- */

/* One update in which no head is trained: the gradient is zero, so what changes is what decays. */
static void decay(const game *g, const exphil_model *model, const char *folder)
{
    int64_t time = g->info.window_frames ? g->info.window_frames : 4, count = g->spec.head_count;
    exphil_optimizer_config settings = EXPHIL_OPTIMIZER_CONFIG_INIT;
    exphil_trainer_config config = EXPHIL_TRAINER_CONFIG_INIT;
    exphil_batch batch = EXPHIL_BATCH_INIT;
    exphil_head_loss loss[EXPHIL_HEADS_MAX];
    exphil_optimizer *optimizer = NULL;
    exphil_trainer *trainer = NULL;
    exphil_model *after = NULL;
    settings.rate = 0.5;
    settings.decay = 1.0;
    for (int64_t h = 0; h < count; h++) loss[h] = (exphil_head_loss){-1.0, 0.0, 0.0, NULL};
    config.losses = loss;
    float *mask = zeroed(time, sizeof(float));
    for (int64_t t = 0; t < time; t++) mask[t] = 1.0f;
    batch.batch = 1;
    batch.time = time;
    batch.frames = time;
    batch.floats = zeroed(time * g->spec.float_count, sizeof(float));
    batch.ids = zeroed(time * g->spec.id_count, sizeof(int32_t));
    batch.past = zeroed(time * g->info.action_slots * count, sizeof(int32_t));
    batch.actions = zeroed(time * count, sizeof(int32_t));
    batch.mask = mask;
    batch.reset = zeroed(time, 1);
    int32_t *told = zeroed(time * 3, sizeof *told); /* two conditions and the delay */
    for (int64_t i = 0; i < time * 3; i++) told[i] = 1;
    batch.conditions = told;
    must(exphil_optimizer_create(model, &settings, &optimizer, &error), "optimizer");
    must(exphil_trainer_create(model, optimizer, NULL, &config, &trainer, &error), "trainer");
    must(exphil_trainer_step_batch(trainer, &batch, NULL, &error), "update");
    must(exphil_trainer_model(trainer, EXPHIL_WEIGHTS, &after, &error), "model");
    save(after, folder, g->p->name, ".decayed");
    exphil_model_destroy(after);
    exphil_trainer_destroy(trainer);
    exphil_optimizer_destroy(optimizer);
    const void *const all[] = {batch.floats, batch.ids,   batch.past,      batch.actions,
                               batch.mask,   batch.reset, batch.conditions};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free((void *)(uintptr_t)all[i]);
}

static void make(exphil_context *context, const policy *p, const char *folder)
{
    static const run runs[] = {
        {"drawn", "drawn.logits", "drawn.values", true, false, EXPHIL_DELIVER_DECIDED},
        {"due", "due.logits", "due.values", true, false, EXPHIL_DELIVER_DUE},
        {"own", "own.logits", "own.values", false, false, EXPHIL_DELIVER_DECIDED},
        {"still", "still.logits", "still.values", false, true, EXPHIL_DELIVER_DECIDED},
    };
    game g = {.p = p, .spec = EXPHIL_SPEC_INIT, .info = EXPHIL_MODEL_INFO_INIT};
    exphil_model *model = create(context, p);
    must(exphil_model_query(model, &g.info, &error), p->name);
    must(exphil_model_spec(model, &g.spec, &error), p->name);
    if (!p->weights) {
        save(model, folder, p->name, ".fresh");
        decay(&g, model, folder);
    }
    shake(model);
    if (p->weights) {
        exphil_model *rounded = NULL;
        save(model, folder, p->name, ".plain");
        must(exphil_model_quantize(model, p->weights, &rounded, &error), p->name);
        exphil_model_destroy(model);
        model = rounded;
        must(exphil_model_spec(model, &g.spec, &error), p->name);
    }
    save(model, folder, p->name, "");
    draw_game(&g);
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) play(&g, model, &runs[i]);
    score(&g, context, model);
    write_arrays(&g, folder);
    for (int32_t i = 0; i < g.count; i++) free(g.array[i].data);
    exphil_model_destroy(model);
}

int main(int argc, char **argv)
{
    exphil_context *context = NULL;
    if (argc != 2) {
        fprintf(stderr, "policies FOLDER\n");
        return 2;
    }
    must(exphil_context_create(NULL, &context, &error), "context");
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) make(context, &policies[i], argv[1]);
    exphil_context_destroy(context);
    return 0;
}
