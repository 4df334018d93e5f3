/* Makes policies of every kind with the installed library alone, exports each as ONNX, and plays it:
 *   onnx_policies FOLDER FRAMES      NAME.onnx, and NAME.play: a line of JSON, then arrays, in the order of `play`;
 *                                    untrained.safetensors, for exphil train --init
 * All weights are shaken, so that none is 0 or 1. Rows, noise, resets, overrides and settings are drawn. */
#include <exphil/conditions.h>
#include <exphil/learn.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAM "onnx_policies"
#include "../data/policy_draw.h"

enum { STREAMS = 3, RESET_EVERY = 37, OVERRIDE_EVERY = 29 };

/* ---- what is made ---- */

/* Names that values of a graph might have, too. */
static const exphil_id_spec ids[] = {{"stage", 5, 3}, {"own.character", 7, 0}};
static const exphil_head_spec heads[] = {{"buttons", EXPHIL_BERNOULLI, 3, 2, 0},
                                         {"one", EXPHIL_CATEGORICAL, 5, 3, 0},
                                         {"weight", EXPHIL_CATEGORICAL, 2, 1, 0},
                                         {"past", EXPHIL_BERNOULLI, 31, 5, 0}};
static const exphil_spec small = {sizeof small, "small", "four", 6, 2, ids, 4, heads, 0};
static const exphil_spec bare = {sizeof bare, "bare", "one", 4, 0, NULL, 1, heads + 1, 0};
static const exphil_spec bits = {sizeof bits, "bits", "bits", 0, 2, ids, 1, heads, 0};
static const exphil_condition_spec conditions[] = {{"player", 3, 4, 0.1}, {"rank", 2, 0, 0.5}};
static const int32_t delays[] = {0, 2, 5}, one_delay[] = {3}, values[] = {2, 0};

enum { TOLD = 1, TOLD_ONE = 2 }; /* conditions and several delays; and one */
enum { DRAWN, WARM, STILL, MIXED };
typedef struct policy {
    const char *name, *blocks;
    int32_t delay, alone, order, weights, told, value, how; /* delay: played; alone: no_previous_action */
    const exphil_spec *spec;                                /* NULL: Melee's, with the library's sizes */
} policy;

#define ALL "mamba lstm gru attention ffn mlp"
static const policy policies[] = {
    {"mamba", "mamba", 0, 0, 1, 0, 0, 0, DRAWN, &small},
    {"lstm", "lstm", 1, 0, 1, 0, 0, 0, DRAWN, &small},
    {"gru", "gru", 0, 1, 1, 0, 0, 0, WARM, &small},
    {"attention", "attention", 18, 0, 1, 0, 0, 0, DRAWN, &small},
    {"mlp", "mlp", 2, 1, 0, 0, 0, 0, MIXED, &small},
    {"ffn", "ffn", 0, 0, 0, 0, 0, 0, STILL, &small},
    {"all", ALL, 2, 0, 1, 0, 0, EXPHIL_VALUE_SHARED, DRAWN, &small},
    {"all_apart", "(" ALL ")*2", 18, 1, 0, 0, 0, EXPHIL_VALUE_DETACHED, MIXED, &small},
    {"attentions", "attention*2 mamba attention", 0, 0, 1, 0, 0, 0, STILL, &small},
    {"bare", "gru mamba", 0, 1, 1, 0, 0, 0, DRAWN, &bare},
    {"bare_still", "lstm ffn", 3, 0, 0, 0, 0, 0, STILL, &bare},
    {"bits", "mamba mlp", 0, 1, 1, 0, 0, 0, MIXED, &bits},
    {"bits_still", "gru", 1, 0, 0, 0, 0, 0, STILL, &bits},
    {"told_0", ALL, 0, 0, 1, 0, TOLD, 0, DRAWN, &small},
    {"told_2", "mamba", 2, 1, 1, 0, TOLD, 0, MIXED, &small},
    {"told_5", "gru attention", 5, 0, 0, 0, TOLD, EXPHIL_VALUE_SHARED, WARM, &small},
    {"told_bits", "gru", 2, 1, 0, 0, TOLD, 0, STILL, &bits},
    {"told_one", "ffn", 3, 0, 1, 0, TOLD_ONE, 0, DRAWN, &small},
    {"bare_blocks", "lstm_bare gru_bare ffn_gelu mamba_exphil", 2, 0, 1, 0, 0, 0, DRAWN, &small},
    {"in_series", "norm lstm_only norm gru_only relu dense norm relu", 0, 1, 0, 0, 0, 0, MIXED, &small},
    {"int8_series", "lstm_bare ffn_gelu mamba_exphil gru_only dense", 1, 0, 1, EXPHIL_TYPE_I8, 0, 0, DRAWN,
     &small},
    {"melee", NULL, 0, 0, 0, 0, 0, 0, DRAWN, NULL},
    {"melee_late", "lstm ffn", 18, 0, 1, 0, 0, 0, DRAWN, NULL},
    {"bf16", ALL, 1, 0, 1, EXPHIL_TYPE_BF16, 0, EXPHIL_VALUE_SHARED, DRAWN, &small},
    {"bf16_melee", "mamba*2", 0, 0, 0, EXPHIL_TYPE_BF16, 0, 0, DRAWN, NULL},
    {"int8_mamba", "mamba", 0, 0, 1, EXPHIL_TYPE_I8, 0, 0, DRAWN, &small},
    {"int8_lstm", "lstm", 0, 1, 1, EXPHIL_TYPE_I8, 0, 0, WARM, &small},
    {"int8_gru", "gru", 1, 0, 0, EXPHIL_TYPE_I8, 0, 0, DRAWN, &small},
    {"int8_attention", "attention", 0, 0, 1, EXPHIL_TYPE_I8, 0, 0, MIXED, &small},
    {"int8_ffn", "ffn mlp", 2, 0, 0, EXPHIL_TYPE_I8, 0, 0, DRAWN, &small},
    {"int8_all", ALL, 2, 0, 1, EXPHIL_TYPE_I8, TOLD, EXPHIL_VALUE_DETACHED, DRAWN, &small},
    {"int8_melee", "mamba*2", 0, 0, 1, EXPHIL_TYPE_I8, 0, 0, DRAWN, NULL},
};

/* Heads with layers of their own, and what goes with them. */
typedef struct layered {
    policy p;
    int32_t layers, activation, last, no_trunk, no_past, no_norm;
} layered;

enum { SILU = EXPHIL_ACTIVATION_SILU, RELU = EXPHIL_ACTIVATION_RELU, GELU = EXPHIL_ACTIVATION_GELU_TANH };
static const layered layers[] = {
    {{"no_norm", "gru", 1, 0, 1, 0, 0, 0, DRAWN, &small}, 0, 0, 0, 0, 0, 1},
    {{"no_past", "gru", 1, 0, 1, 0, 0, 0, DRAWN, &small}, 0, 0, 0, 0, 1, 0},
    {{"no_past_apart", "gru", 1, 0, 0, 0, 0, 0, MIXED, &small}, 0, 0, 0, 0, 1, 0},
    {{"one_silu", "mamba", 1, 0, 1, 0, 0, 0, DRAWN, &small}, 1, SILU, 0, 0, 0, 0},
    {{"two_relu", "lstm", 0, 0, 0, 0, 0, 0, MIXED, &small}, 2, RELU, 0, 0, 0, 0},
    {{"three_gelu", "gru", 0, 1, 1, 0, 0, 0, DRAWN, &small}, 3, GELU, 0, 0, 0, 0},
    {{"four_silu", "ffn", 2, 1, 0, 0, 0, 0, DRAWN, &small}, 4, SILU, 0, 0, 0, 0},
    {{"last", "gru", 0, 0, 1, 0, 0, 0, DRAWN, &small}, 1, RELU, 1, 0, 0, 0},
    {{"last_apart", "mamba", 3, 1, 0, 0, 0, 0, WARM, &small}, 2, GELU, 1, 0, 0, 0},
    {{"last_alone", "gru", 0, 0, 1, 0, 0, 0, STILL, &bits}, 1, SILU, 1, 0, 1, 0},
    {{"no_trunk", "lstm", 0, 0, 1, 0, 0, EXPHIL_VALUE_SHARED, DRAWN, &small}, 1, RELU, 0, 1, 0, 0},
    {{"exphil_like", "relu norm lstm_only norm", 0, 1, 0, 0, 0, 0, DRAWN, &small}, 1, RELU, 0, 1, 0, 1},
    {{"bare_layers", "gru", 0, 1, 1, 0, 0, 0, DRAWN, &bare}, 2, SILU, 0, 0, 0, 0},
    {{"together", ALL, 2, 0, 1, 0, TOLD, EXPHIL_VALUE_SHARED, MIXED, &small}, 4, GELU, 1, 1, 1, 1},
    {{"together_0", "gru", 0, 1, 1, 0, TOLD, EXPHIL_VALUE_DETACHED, DRAWN, &small}, 3, RELU, 1, 0, 0, 0},
    {{"together_5", "mamba", 5, 0, 0, 0, TOLD, 0, STILL, &small}, 2, SILU, 1, 1, 0, 0},
    {{"slippi_like", "(lstm_bare ffn_gelu)*2", 3, 0, 1, 0, TOLD_ONE, EXPHIL_VALUE_DETACHED, DRAWN, NULL},
     2,
     RELU,
     1,
     0,
     1,
     1},
    {{"int8_one", "gru", 1, 0, 1, EXPHIL_TYPE_I8, 0, 0, DRAWN, &small}, 1, SILU, 1, 0, 0, 0},
    {{"int8_two", "lstm", 0, 0, 0, EXPHIL_TYPE_I8, 0, 0, MIXED, &small}, 2, RELU, 0, 0, 1, 1},
    {{"int8_four", "mamba", 2, 0, 1, EXPHIL_TYPE_I8, TOLD, EXPHIL_VALUE_SHARED, DRAWN, &small},
     4,
     GELU,
     1,
     1,
     0,
     0},
    {{"int8_slippi", "(lstm_bare ffn_gelu)*2", 18, 0, 1, EXPHIL_TYPE_I8, 0, 0, DRAWN, NULL},
     2,
     RELU,
     1,
     0,
     1,
     1},
    {{"bf16_three", "gru ffn", 1, 0, 1, EXPHIL_TYPE_BF16, 0, 0, DRAWN, &small}, 3, SILU, 1, 0, 1, 0},
};

static void set_layers(exphil_model_config *config, const layered *l)
{
    static exphil_spec slippi = EXPHIL_SPEC_INIT;
    config->head_layers = l->layers;
    config->head_activation = l->activation;
    config->head_last = l->last;
    config->no_head_trunk = l->no_trunk;
    config->no_head_past = l->no_past;
    config->no_final_norm = l->no_norm;
    if (l->layers > 1) config->head_units = 15;
    if (config->spec) return;
    must(exphil_melee_spec("slippi", "slippi", &slippi, &error), "slippi");
    config->spec = &slippi;
    config->hidden = 48;
    config->head_width = 32;
    config->norm_epsilon = 1e-6;
    config->neutral_start = 1;
}

/* l: of p, or NULL. */
static exphil_model *create(exphil_context *context, const policy *p, const layered *l)
{
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    exphil_model *model = NULL;
    config.spec = p->spec;
    config.blocks = p->blocks;
    config.seed = 7;
    config.delay_frames = p->told ? 0 : p->delay;
    config.delays = p->told == TOLD ? delays : one_delay;
    config.delay_count = p->told == TOLD ? 3 : p->told;
    if (p->told == TOLD_ONE) config.delay_count = 1;
    config.conditions = conditions;
    config.condition_count = p->told ? 2 : 0;
    config.no_previous_action = p->alone;
    config.heads = p->order;
    config.value = p->value;
    if (strcmp(p->name, "bare_blocks") == 0 || strcmp(p->name, "in_series") == 0)
        config.norm_epsilon = 0.05; /* that of every LayerNorm, in blocks and behind them */
    if (strcmp(p->name, "in_series") == 0 || strcmp(p->name, "exphil_like") == 0) config.input_width = 24;
    if (p->spec) {
        config.hidden = 20;
        config.head_width = 18;
        config.mamba_states = 5;
        config.mamba_taps = p->spec == &bits ? 2 : 3;
        config.mamba_rank = 4;
        config.attention_heads = 3;
        config.attention_dim = 6;
        config.attention_window_frames = p->told ? 1 : 5;
        config.ffn_expand = 3;
    }
    if (l) set_layers(&config, l);
    must(exphil_model_create(context, &config, &model, &error), p->name);
    return model;
}

/* heads_width: of what is added to matrices of the heads; layers upon layers of small ones would give 0. */
static void shake(exphil_model *model, float heads_width)
{
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    must(exphil_model_query(model, &info, &error), "model");
    for (int64_t i = 0; i < info.tensor_count; i++) {
        exphil_tensor_info t = EXPHIL_TENSOR_INFO_INIT;
        must(exphil_model_tensor_info(model, i, &t, &error), "tensor");
        int64_t count = t.dim[0] * t.dim[1];
        float width = strncmp(t.name, "heads.", 6) == 0 ? heads_width : 0.7f,
              scale = t.rank == 2 ? width / sqrtf((float)t.dim[1]) : 0.3f,
              *data = zeroed(count, sizeof *data);
        must(exphil_model_tensor_get(model, t.name, data, t.size_bytes, &error), t.name);
        for (int64_t k = 0; k < count; k++) data[k] += draw_float(scale);
        must(exphil_model_tensor_set(model, t.name, data, t.size_bytes, &error), t.name);
        free(data);
    }
}

/* ---- play ---- */

typedef struct game {
    const policy *p;
    exphil_spec spec;
    exphil_model_info info;
    int64_t frames;
    float *floats, *noise, *logits, *value; /* [frames, STREAMS, ...] */
    int32_t *ids, *actions, *given;         /* given: by whom an action was overridden, -1: it was not */
    uint8_t *reset;
    exphil_head_play how[EXPHIL_HEADS_MAX];
} game;

static int32_t any_value(const exphil_head_spec *head)
{
    uint32_t limit = head->kind == EXPHIL_BERNOULLI ? 1u << head->count : (uint32_t)head->count;
    return (int32_t)(draw() % limit);
}

static void draw_settings(game *g)
{
    for (int64_t h = 0; h < g->spec.head_count; h++) {
        const int32_t how = g->p->how;
        exphil_head_play *to = &g->how[h];
        *to = (exphil_head_play){0};
        to->temperature = how == DRAWN ? 0.0f : 0.6f + 0.3f * (float)h;
        to->deterministic = how == STILL || (how == MIXED && h % 2 == 0);
        to->press = how == DRAWN ? 0.0f : 0.6f;
        to->release = how == DRAWN ? 0.0f : 0.4f;
    }
}

static void draw_game(game *g)
{
    const exphil_spec *s = &g->spec;
    int64_t rows = g->frames * STREAMS;
    g->floats = zeroed(rows * s->float_count, 4);
    g->ids = zeroed(rows * s->id_count, 4);
    g->noise = zeroed(rows * g->info.logit_count, 4);
    g->logits = zeroed(rows * g->info.logit_count, 4);
    g->value = zeroed(rows, 4);
    g->actions = zeroed(rows * s->head_count, 4);
    g->given = zeroed(rows * s->head_count, 4);
    g->reset = zeroed(rows, 1);
    for (int64_t i = 0; i < rows * s->float_count; i++) g->floats[i] = draw_float(1.5f);
    for (int64_t i = 0; i < rows * s->id_count; i++)
        g->ids[i] = (int32_t)(draw() % (uint32_t)s->ids[i % s->id_count].entries);
    for (int64_t i = 0; i < rows * g->info.logit_count; i++)
        g->noise[i] = (float)((double)(draw() >> 9) * 2.0 + 1.0) * 0x1p-24f;
    for (int64_t i = 0; i < rows; i++) {
        bool given = draw() % OVERRIDE_EVERY == 0;
        g->reset[i] = draw() % RESET_EVERY == 0;
        for (int64_t h = 0; h < s->head_count; h++)
            g->given[i * s->head_count + h] = given ? any_value(&s->heads[h]) : -1;
    }
    draw_settings(g);
}

static void play(game *g, const exphil_model *model)
{
    int64_t count = g->spec.head_count, width = g->info.logit_count;
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    exphil_session *session = NULL;
    config.heads = g->how;
    config.streams = STREAMS;
    config.delay_frames = &g->p->delay;
    config.conditions = g->p->told ? values : NULL;
    config.condition_count = g->p->told ? 2 : 0;
    must(exphil_session_create(model, &config, &session, &error), g->p->name);
    for (int64_t t = 0; t < g->frames; t++) {
        int64_t row = t * STREAMS;
        for (int64_t b = 0; b < STREAMS; b++)
            if (g->reset[row + b]) must(exphil_session_reset(session, b), "reset");
        must(exphil_session_step_row(session, g->floats + row * g->spec.float_count,
                                     g->ids + row * g->spec.id_count, g->noise + row * width,
                                     g->actions + row * count),
             "step");
        for (int64_t b = 0; b < STREAMS; b++) {
            const int32_t *given = g->given + (row + b) * count;
            must(exphil_session_logits(session, b, g->logits + (row + b) * width, width), "logits");
            if (g->p->value) must(exphil_session_value(session, b, g->value + row + b), "value");
            if (given[0] >= 0) must(exphil_session_override(session, b, given), "override");
        }
    }
    exphil_session_destroy(session);
}

static void put(FILE *file, const void *data, int64_t count, size_t size)
{
    if (fwrite(data, size, (size_t)count, file) != (size_t)count) exit(1);
}

static void write_play(const game *g, const char *folder)
{
    char path[1024];
    const int64_t rows = g->frames * STREAMS, count = g->spec.head_count;
    snprintf(path, sizeof path, "%s/%s.play", folder, g->p->name);
    FILE *file = fopen(path, "wb");
    if (!file) exit(1);
    fprintf(
        file,
        "{\"frames\":%" PRId64 ",\"streams\":%d,\"floats\":%" PRId64 ",\"ids\":%" PRId64 ",\"heads\":%" PRId64
        ",\"logits\":%" PRId64 ",\"value\":%d,\"weights\":%d,\"told\":%d,\"delay\":%d,\"conditions\":[%d,%d],"
        "\"blocks\":\"%s\",\"how\":[",
        g->frames, STREAMS, g->spec.float_count, g->spec.id_count, count, g->info.logit_count,
        g->p->value != 0, g->p->weights, g->p->told != 0, g->p->delay, values[0], values[1], g->info.blocks);
    for (int64_t h = 0; h < count; h++) {
        const exphil_head_play *how = &g->how[h]; /* 0 is the default there, and 0 means "not drawn" here */
        float temperature = how->temperature > 0.0f ? how->temperature : 1.0f;
        fprintf(file, "%s[%.9g,%.9g,%.9g]", h ? "," : "", how->deterministic ? 0.0 : (double)temperature,
                how->press > 0.0f ? (double)how->press : 0.5,
                how->release > 0.0f ? (double)how->release : 0.5);
    }
    fprintf(file, "]}\n");
    put(file, g->floats, rows * g->spec.float_count, 4);
    put(file, g->ids, rows * g->spec.id_count, 4);
    put(file, g->noise, rows * g->info.logit_count, 4);
    put(file, g->logits, rows * g->info.logit_count, 4);
    put(file, g->value, rows, 4);
    put(file, g->actions, rows * count, 4);
    put(file, g->given, rows * count, 4);
    put(file, g->reset, rows, 1);
    if (fclose(file)) exit(1);
}

/* A policy of heads with layers that is not trained yet, whose buttons are heads of their own. */
static void write_untrained(exphil_context *context, const char *folder)
{
    char path[1024];
    exphil_spec spec = EXPHIL_SPEC_INIT;
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    exphil_model *model = NULL;
    must(exphil_melee_spec("melee2", "slippi", &spec, &error), "melee2");
    config.spec = &spec;
    config.blocks = "gru";
    config.hidden = 64;
    config.head_width = 32;
    config.head_layers = 2;
    config.head_activation = RELU;
    config.head_last = config.no_head_past = config.no_final_norm = 1;
    config.heads = EXPHIL_HEADS_AUTOREGRESSIVE;
    must(exphil_model_create(context, &config, &model, &error), "untrained");
    snprintf(path, sizeof path, "%s/untrained.safetensors", folder);
    must(exphil_model_save(model, path, &error), path);
    exphil_model_destroy(model);
}

static void free_game(game *g)
{
    void *const all[] = {g->floats, g->noise, g->logits, g->value, g->ids, g->actions, g->given, g->reset};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void make(exphil_context *context, const policy *p, const layered *l, const char *folder,
                 int64_t frames)
{
    char path[1024];
    exphil_model *model = create(context, p, l), *narrow = NULL;
    game g = {.p = p, .spec = EXPHIL_SPEC_INIT, .info = EXPHIL_MODEL_INFO_INIT, .frames = frames};
    shake(model, l ? 1.4f : 0.7f);
    if (p->weights) {
        must(exphil_model_quantize(model, p->weights, &narrow, &error), p->name);
        exphil_model_destroy(model);
        model = narrow;
    }
    must(exphil_model_spec(model, &g.spec, &error), p->name);
    must(exphil_model_query(model, &g.info, &error), p->name);
    snprintf(path, sizeof path, "%s/%s.onnx", folder, p->name);
    must(exphil_model_export_onnx(model, path, &error), path);
    draw_game(&g);
    play(&g, model);
    write_play(&g, folder);
    free_game(&g);
    exphil_model_destroy(model);
}

int main(int argc, char **argv)
{
    exphil_context *context = NULL;
    if (argc != 3) return 2;
    must(exphil_context_create(NULL, &context, &error), "context");
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++)
        make(context, &policies[i], NULL, argv[1], strtoll(argv[2], NULL, 10));
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        make(context, &layers[i].p, &layers[i], argv[1], strtoll(argv[2], NULL, 10));
    write_untrained(context, argv[1]);
    exphil_context_destroy(context);
    return 0;
}
