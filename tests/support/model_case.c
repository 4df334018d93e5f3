/* Models, weights and frames for the tests of nets. */
#include "model_case.h"

#include <math.h>
#include <stdlib.h>

static const exphil_id_spec ids[] = {{"stage", 5, 3}, {"own.character", 7, 0}};
static const exphil_head_spec heads[] = {{"buttons", EXPHIL_BERNOULLI, 3, 0, 0},
                                         {"stick", EXPHIL_CATEGORICAL, 5, 2, 0},
                                         {"trigger", EXPHIL_CATEGORICAL, 4, 0, 0}};
const exphil_spec model_case_spec = {.struct_size = sizeof(exphil_spec),
                                     .layout = "made-up",
                                     .codec = "made-up",
                                     .float_count = 13,
                                     .id_count = 2,
                                     .ids = ids,
                                     .head_count = 3,
                                     .heads = heads};

exphil_model_config model_case_config(const char *blocks, int32_t type)
{
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    config.spec = &model_case_spec;
    config.blocks = blocks;
    config.seed = 7;
    config.hidden = 24;
    config.head_width = 18;
    config.mamba_states = 5;
    config.mamba_rank = 3;
    config.attention_heads = 3;
    config.attention_dim = 6;
    config.attention_window_frames = 5;
    config.delay_frames = 1;
    config.type = type;
    return config;
}

void model_case_end(exphil_model_config *config, int end)
{
    enum { EXPHIL, SLIPPI, DEEP, PLAIN };
    static const int32_t layers[] = {1, 2, 3, 0};
    config->head_layers = layers[end];
    config->head_units = end == EXPHIL ? 9 : end == SLIPPI ? 14 : 0;
    config->head_activation = end == DEEP    ? EXPHIL_ACTIVATION_GELU_TANH
                              : end == PLAIN ? EXPHIL_ACTIVATION_SILU
                                             : EXPHIL_ACTIVATION_RELU;
    config->head_last =
        (end == SLIPPI || end == DEEP) && (config->delay_frames || !config->no_previous_action);
    config->no_head_past = end == SLIPPI || end == PLAIN;
    config->no_head_trunk = end == EXPHIL;
    config->no_final_norm = end != DEEP;
    config->norm_epsilon = end == SLIPPI ? 1e-6 : end == PLAIN ? 1e-3 : 0.0;
}

exphil_model *model_case_create(exphil_context *context, const exphil_model_config *config)
{
    exphil_model *model = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_model_create(context, config, &model, &error) < 0) fail_msg("no model: %s", error.message);
    return model;
}

double model_case_get(const model_case *c, const void *array, int64_t i)
{
    return c->shape->type == XPH_F64 ? ((const double *)array)[i] : (double)((const float *)array)[i];
}

void model_case_set(const model_case *c, void *array, int64_t i, double value)
{
    if (c->shape->type == XPH_F64)
        ((double *)array)[i] = value;
    else
        ((float *)array)[i] = (float)value;
}

double model_case_uniform(xph_rng *rng, double low, double high)
{
    return low + (high - low) * xph_rng_double(rng);
}

/* Aligned as the library's own memory is, filled with NaN, so that nothing counts on zeros. */
static void *memory(size_t bytes)
{
    size_t padded = (bytes + 63) / 64 * 64 + 64;
    void *p = test_aligned(64, padded);
    assert_non_null(p);
    memset(p, 0xFF, padded);
    return p;
}

static int32_t draw_action(const xph_head *head, xph_rng *rng)
{
    uint64_t bound = head->kind == EXPHIL_BERNOULLI ? (uint64_t)1 << head->count : (uint64_t)head->count;
    return (int32_t)xph_rng_below(rng, bound);
}

static int32_t *draw_actions(const model_case *c, int64_t slots, xph_rng *rng)
{
    const xph_head *head = xph_model_heads(c->model);
    int64_t count = c->rows * slots * c->shape->heads;
    int32_t *actions = memory((size_t)count * sizeof *actions);
    for (int64_t i = 0; i < count; i++) actions[i] = draw_action(&head[i % c->shape->heads], rng);
    return actions;
}

static void draw_inputs(model_case *c, int64_t resets, xph_rng *rng)
{
    const exphil_spec *spec = xph_model_spec(c->model);
    c->floats = memory((size_t)(c->rows * c->shape->floats) * sizeof *c->floats);
    for (int64_t i = 0; i < c->rows * c->shape->floats; i++)
        c->floats[i] = (float)model_case_uniform(rng, -1.5, 1.5);
    c->ids = memory((size_t)(c->rows * c->shape->ids) * sizeof *c->ids);
    for (int64_t i = 0; i < c->rows * c->shape->ids; i++)
        c->ids[i] = (int32_t)xph_rng_below(rng, (uint64_t)spec->ids[i % c->shape->ids].entries);
    c->past = draw_actions(c, c->shape->slots, rng);
    c->actions = draw_actions(c, 1, rng);
    if (!resets) return;
    c->reset = memory((size_t)c->rows);
    for (int64_t i = 0; i < c->rows; i++) c->reset[i] = xph_rng_below(rng, (uint64_t)resets) == 0;
}

static void draw_reals(const model_case *c, void *to, int64_t count, double scale, xph_rng *rng)
{
    for (int64_t i = 0; i < count; i++) {
        /* exact in both types, so that a double and a single model can be given the same numbers */
        model_case_set(c, to, i, (double)(float)model_case_uniform(rng, -scale, scale));
    }
}

static void shake_weights(model_case *c, double shake, xph_rng *rng)
{
    for (int64_t p = 0; p < xph_model_param_count(c->model); p++) {
        const xph_param *param = xph_model_param(c->model, p);
        for (int64_t i = 0; i < param->count; i++) {
            double value =
                model_case_get(c, c->weights, param->offset + i) + model_case_uniform(rng, -shake, shake);
            model_case_set(c, c->weights, param->offset + i, (double)(float)value);
        }
    }
}

model_case *model_case_make(exphil_model *model, int64_t batch, int64_t time, int64_t resets, double shake,
                            uint64_t seed)
{
    model_case *c = calloc(1, sizeof *c);
    assert_non_null(c);
    xph_rng rng = {.seed = seed, .stream = XPH_RNG_TEST};
    c->model = model;
    c->shape = xph_model_shape_of(model);
    c->batch = batch;
    c->time = time;
    c->rows = batch * time;
    size_t bytes = (size_t)c->shape->weights * c->shape->real_bytes;
    c->weights = memory(bytes);
    memcpy(c->weights, xph_model_weights(model), bytes);
    c->gradients = memory(bytes);
    memset(c->gradients, 0, bytes);
    c->packed = memory(c->shape->packed_bytes);
    shake_weights(c, shake, &rng);
    draw_inputs(c, resets, &rng);
    c->state = memory((size_t)(batch * c->shape->state) * c->shape->real_bytes);
    draw_reals(c, c->state, batch * c->shape->state, 0.0, &rng);
    c->dlogits = memory((size_t)(c->rows * c->shape->logits) * c->shape->real_bytes);
    draw_reals(c, c->dlogits, c->rows * c->shape->logits, 1.0, &rng);
    if (!c->shape->value) return c;
    c->dvalues = memory((size_t)c->rows * c->shape->real_bytes);
    draw_reals(c, c->dvalues, c->rows, 1.0, &rng);
    return c;
}

void model_case_free(model_case *c)
{
    if (!c) return;
    void *const all[] = {c->floats, c->ids,       c->past,  c->actions, c->reset,  c->weights,
                         c->packed, c->gradients, c->state, c->dlogits, c->dvalues};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) test_aligned_free(all[i]);
    free(c);
}

xph_net_io model_case_io(const model_case *c, const void *state_in, void *state_out)
{
    return (xph_net_io){.floats = c->floats,
                        .ids = c->ids,
                        .past = c->past,
                        .actions = c->actions,
                        .reset = c->reset,
                        .state_in = state_in,
                        .state_out = state_out,
                        .ld_state = c->shape->state};
}

/* Rows [first, first + time) of every stream; width in bytes. */
static void *cut(const model_case *c, const void *from, int64_t first, int64_t time, size_t width)
{
    unsigned char *to = memory((size_t)(c->batch * time) * width);
    for (int64_t b = 0; b < c->batch; b++)
        memcpy(to + (size_t)(b * time) * width,
               (const unsigned char *)from + (size_t)(b * c->time + first) * width, (size_t)time * width);
    return to;
}

model_case *model_case_cut(const model_case *c, int64_t first, int64_t time)
{
    const xph_model_shape *shape = c->shape;
    model_case *part = calloc(1, sizeof *part);
    assert_non_null(part);
    *part = *c;
    part->time = time;
    part->rows = c->batch * time;
    size_t action = (size_t)shape->heads * sizeof *c->actions;
    part->floats = cut(c, c->floats, first, time, (size_t)shape->floats * sizeof *c->floats);
    part->ids = cut(c, c->ids, first, time, (size_t)shape->ids * sizeof *c->ids);
    part->past = cut(c, c->past, first, time, (size_t)shape->slots * action);
    part->actions = cut(c, c->actions, first, time, action);
    if (c->reset) part->reset = cut(c, c->reset, first, time, 1);
    part->dlogits = cut(c, c->dlogits, first, time, (size_t)shape->logits * shape->real_bytes);
    if (c->dvalues) part->dvalues = cut(c, c->dvalues, first, time, shape->real_bytes);
    size_t bytes = (size_t)shape->weights * shape->real_bytes;
    part->weights = memcpy(memory(bytes), c->weights, bytes);
    part->gradients = memset(memory(bytes), 0, bytes);
    part->packed = memory(shape->packed_bytes);
    bytes = (size_t)(c->batch * shape->state) * shape->real_bytes;
    part->state = memcpy(memory(bytes), c->state, bytes);
    return part;
}

double model_case_error(const double *a, const double *b, int64_t count)
{
    double square = 0.0, most = 0.0;
    for (int64_t i = 0; i < count; i++) square += b[i] * b[i];
    double rms = count ? sqrt(square / (double)count) : 0.0;
    for (int64_t i = 0; i < count; i++) {
        double error = fabs(a[i] - b[i]);
        if (!isfinite(error)) return INFINITY;
        if (error > 0.0) error /= fabs(b[i]) + rms;
        if (error > most) most = error;
    }
    return most;
}

exphil_status model_case_load(exphil_context *context, const char *file, size_t bytes, exphil_error *error)
{
    exphil_model *model = NULL;
    char *copy = malloc(bytes ? bytes : 1);
    memcpy(copy, file, bytes);
    exphil_status status = exphil_model_load_memory(context, copy, bytes, &model, error);
    free(copy);
    exphil_model_destroy(model);
    return status;
}

void model_case_damage(exphil_context *context, const char *path, exphil_status also)
{
    size_t bytes, loaded = 0;
    char *file = test_read(path, &bytes);
    for (size_t length = 0; length < bytes; length++) {
        exphil_error error = EXPHIL_ERROR_INIT;
        assert_int_equal(model_case_load(context, file, length, &error), EXPHIL_E_FORMAT);
        assert_true(error.message[0] != '\0');
    }
    for (size_t bit = 0; bit < 8 * bytes; bit++) {
        exphil_error error = EXPHIL_ERROR_INIT;
        file[bit / 8] = (char)(file[bit / 8] ^ (1 << bit % 8));
        exphil_status status = model_case_load(context, file, bytes, &error);
        file[bit / 8] = (char)(file[bit / 8] ^ (1 << bit % 8));
        loaded += status == EXPHIL_OK;
        assert_true(status == EXPHIL_OK || (status == error.status && error.message[0]));
        assert_true(status == EXPHIL_OK || status == EXPHIL_E_FORMAT || status == EXPHIL_E_MISMATCH ||
                    status == also);
    }
    /* The spelling of keys that may be absent, and digits of the counters. */
    print_message("%zu bytes: %zu of %zu flips load\n", bytes, loaded, 8 * bytes);
    assert_in_range(loaded, 1, bytes);
    free(file);
}
