/* Whole models against PyTorch in double precision (tests/data/make_golden.py): logits, carried state,
 * loss and every gradient, for every kind of block. Double must agree to 1e-9, single to 1e-5. */
#include "model_case.h"
#include "test_places.h"

#include "device/device.h"
#include "file/file.h"

#include <stdio.h>
#include <stdlib.h>

#define FOLDER EXPHIL_SOURCE_DIR "/tests/data/golden"
#define END    ".safetensors"

typedef struct golden {
    exphil_context *context;
    char *bytes;
    xph_tensors file;
    exphil_model *model;
    const xph_model_shape *shape;
    int64_t batch, time, rows;
    void *weights, *packed, *gradients, *state_in, *state_out, *dlogits;
    const char *name;
    double tolerance;
} golden;

/* ---- the file ------------------------------------------------------------------------------------------ */

static const xph_array *find(const golden *g, const char *name)
{
    const xph_array *array = xph_tensors_find(&g->file, name);
    if (!array) fail_msg("%s: the file has no %s", g->name, name);
    return array;
}

static int64_t count_of(const xph_array *array)
{
    int64_t count = 1;
    for (int32_t i = 0; i < array->rank; i++) count *= array->dim[i];
    return count;
}

/* Numbers of any of the types that the script writes, as doubles; freed by the caller. */
static double *take(const golden *g, const char *name, int64_t count)
{
    const xph_array *array = find(g, name);
    if (count_of(array) != count)
        fail_msg("%s: %s has %lld numbers", g->name, name, (long long)count_of(array));
    double *x = malloc((size_t)count * sizeof *x + 1);
    for (int64_t i = 0; i < count; i++) {
        float single;
        if (array->dtype == XPH_DTYPE_F64) {
            memcpy(&x[i], (const char *)array->data + (size_t)i * sizeof *x, sizeof *x);
        } else {
            assert_int_equal(array->dtype, XPH_DTYPE_F32);
            memcpy(&single, (const char *)array->data + (size_t)i * sizeof single, sizeof single);
            x[i] = (double)single;
        }
    }
    return x;
}

/* A copy at an address of its own, as the file has it. */
static void *raw(const golden *g, const char *name, int64_t count, size_t size)
{
    const xph_array *array = find(g, name);
    assert_int_equal(array->bytes, (size_t)count * size);
    void *copy = malloc(array->bytes + 1);
    memcpy(copy, array->data, array->bytes);
    return copy;
}

static int64_t setting(const golden *g, const char *key)
{
    const char *text = xph_tensors_metadata(&g->file, key);
    if (!text) fail_msg("%s: the file does not say %s", g->name, key);
    return strtoll(text, NULL, 10);
}

/* What only some files say. */
static double setting_or(const golden *g, const char *key, double otherwise)
{
    const char *text = xph_tensors_metadata(&g->file, key);
    return text ? strtod(text, NULL) : otherwise;
}

static void take_later(const golden *g, exphil_model_config *config)
{
    config->norm_epsilon = setting_or(g, "norm_epsilon", 0);
    config->no_final_norm = (int32_t)setting_or(g, "no_final_norm", 0);
    config->head_layers = (int32_t)setting_or(g, "head_layers", 0);
    config->head_units = (int64_t)setting_or(g, "head_units", 0);
    config->head_activation = (int32_t)setting_or(g, "head_activation", 0);
    config->head_last = (int32_t)setting_or(g, "head_last", 0);
    config->no_head_past = (int32_t)setting_or(g, "no_head_past", 0);
    config->input_width = (int64_t)setting_or(g, "input_width", 0);
    config->no_head_trunk = (int32_t)setting_or(g, "no_head_trunk", 0);
}

static exphil_model_config config_of(const golden *g, int32_t type)
{
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    config.spec = &model_case_spec;
    config.blocks = xph_tensors_metadata(&g->file, "blocks");
    config.hidden = setting(g, "hidden");
    config.head_width = setting(g, "head_width");
    config.mamba_states = setting(g, "mamba_states");
    config.mamba_expand = setting(g, "mamba_expand");
    config.mamba_taps = setting(g, "mamba_taps");
    config.mamba_rank = setting(g, "mamba_rank");
    config.attention_heads = setting(g, "attention_heads");
    config.attention_dim = setting(g, "attention_dim");
    config.attention_window_frames = setting(g, "attention_window_frames");
    config.ffn_expand = setting(g, "ffn_expand");
    config.delay_frames = (int32_t)setting(g, "delay_frames");
    config.heads = (int32_t)setting(g, "heads");
    config.type = type;
    take_later(g, &config);
    return config;
}

/* ---- putting in and comparing -------------------------------------------------------------------------- */

static void *reals(const golden *g, const double *x, int64_t count)
{
    unsigned char *to = calloc((size_t)count + 1, g->shape->real_bytes);
    for (int64_t i = 0; i < count; i++) {
        float single = x ? (float)x[i] : 0.0f;
        if (g->shape->type == XPH_F64)
            memcpy(to + (size_t)i * sizeof *x, x ? &x[i] : &(double){0}, sizeof *x);
        else
            memcpy(to + (size_t)i * sizeof single, &single, sizeof single);
    }
    return to;
}

static double real_at(const golden *g, const void *array, int64_t i)
{
    return g->shape->type == XPH_F64 ? ((const double *)array)[i] : (double)((const float *)array)[i];
}

static void compare(const golden *g, const char *name, const void *found, int64_t count)
{
    double *expected = take(g, name, count), *x = malloc((size_t)count * sizeof *x + 1);
    for (int64_t i = 0; i < count; i++) x[i] = real_at(g, found, i);
    double error = model_case_error(x, expected, count);
    if (!(error <= g->tolerance))
        fail_msg("%s in %s: %s differs by %.3g", g->name, g->shape->type == XPH_F64 ? "double" : "single",
                 name, error);
    free(x);
    free(expected);
}

static void put_weights(golden *g)
{
    char name[160];
    int64_t named = 0;
    for (int64_t i = 0; i < xph_model_param_count(g->model); i++) {
        const xph_param *param = xph_model_param(g->model, i);
        snprintf(name, sizeof name, "weight:%s", param->name);
        double *x = take(g, name, param->count);
        void *values = reals(g, x, param->count);
        memcpy((char *)g->weights + (size_t)param->offset * g->shape->real_bytes, values,
               (size_t)param->count * g->shape->real_bytes);
        free(values);
        free(x);
    }
    for (int64_t i = 0; i < g->file.count; i++) named += strncmp(g->file.tensor[i].name, "weight:", 7) == 0;
    assert_int_equal(named, xph_model_param_count(g->model));
}

/* ---- loss ---------------------------------------------------------------------------------------------- */

static void check_loss(golden *g, const void *logits, const int32_t *actions)
{
    int64_t heads = g->shape->heads;
    double *weight = take(g, "loss.weight", heads), *smoothing = take(g, "loss.smoothing", heads);
    double *gamma = take(g, "loss.gamma", heads), *scale = take(g, "loss.scale", 1),
           *sums = take(g, "sums", heads);
    float *positive = raw(g, "loss.positive", 3, sizeof *positive),
          *mask = raw(g, "mask", g->rows, sizeof *mask);
    xph_head_loss loss[EXPHIL_HEADS_MAX];
    for (int64_t i = 0; i < heads; i++)
        loss[i] = (xph_head_loss){weight[i], smoothing[i], gamma[i], i == 0 ? positive : NULL};
    double found[EXPHIL_HEADS_MAX], *rows_loss = malloc((size_t)(g->rows * heads) * sizeof *rows_loss);
    xph_loss_args args = {.type = g->shape->type,
                          .rows = g->rows,
                          .heads = heads,
                          .logits = g->shape->logits,
                          .head = xph_model_heads(g->model),
                          .loss = loss,
                          .y = logits,
                          .ldy = g->shape->logits,
                          .actions = actions,
                          .lda = heads,
                          .mask = mask,
                          .scale = scale[0],
                          .dy = g->dlogits,
                          .lddy = g->shape->logits,
                          .sums = found,
                          .rows_loss = rows_loss};
    xph_device *device = xph_context_backend(g->context);
    xph_stream *stream = NULL;
    assert_ok(device->backend->stream_create(device, 0, &stream));
    assert_ok(xph_run_once(stream, XPH_OP_LOSS, &args));
    device->backend->stream_destroy(stream);
    double error = model_case_error(found, sums, heads);
    if (!(error <= g->tolerance)) fail_msg("%s: loss differs by %.3g", g->name, error);
    compare(g, "dlogits", g->dlogits, g->rows * g->shape->logits);
    void *const all[] = {weight, smoothing, gamma, scale, sums, positive, mask, rows_loss};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]);
}

/* ---- one file in one type ------------------------------------------------------------------------------ */

static void open_golden(golden *g, int32_t type)
{
    char path[512];
    size_t bytes = 0;
    snprintf(path, sizeof path, FOLDER "/%s" END, g->name);
    g->bytes = test_read(path, &bytes);
    if (!g->bytes) fail_msg("%s is not there", path);
    exphil_error error = EXPHIL_ERROR_INIT;
    if (xph_tensors_parse(g->context, g->bytes, bytes, g->name, &g->file, &error) < 0)
        fail_msg("%s", error.message);
    exphil_model_config config = config_of(g, type);
    g->model = model_case_create(g->context, &config);
    g->shape = xph_model_shape_of(g->model);
    g->tolerance = type == EXPHIL_TYPE_F64 ? 1e-9 : 1e-5;
    const xph_array *mask = find(g, "mask");
    g->batch = mask->dim[0];
    g->time = mask->dim[1];
    g->rows = g->batch * g->time;
    g->weights = reals(g, NULL, g->shape->weights);
    g->gradients = reals(g, NULL, g->shape->weights);
    g->dlogits = reals(g, NULL, g->rows * g->shape->logits);
    g->state_out = reals(g, NULL, g->batch * g->shape->state);
    g->packed = malloc(g->shape->packed_bytes + 1);
    if (setting(g, "state")) {
        double *state = take(g, "state_in", g->batch * g->shape->state);
        g->state_in = reals(g, state, g->batch * g->shape->state);
        free(state);
    }
    put_weights(g);
}

static void close_golden(golden *g)
{
    void *const all[] = {g->weights, g->gradients, g->dlogits, g->state_in, g->state_out, g->packed};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]);
    exphil_model_destroy(g->model);
    xph_tensors_free(&g->file);
    free(g->bytes);
}

static void check_gradients(const golden *g)
{
    char name[160];
    for (int64_t i = 0; i < xph_model_param_count(g->model); i++) {
        const xph_param *param = xph_model_param(g->model, i);
        snprintf(name, sizeof name, "gradient:%s", param->name);
        compare(g, name, (const char *)g->gradients + (size_t)param->offset * g->shape->real_bytes,
                param->count);
    }
}

static void check(exphil_context *context, const char *name, int32_t type)
{
    golden g = {.context = context, .name = name};
    open_golden(&g, type);
    const xph_model_shape *shape = g.shape;
    float *floats = raw(&g, "floats", g.rows * shape->floats, sizeof *floats);
    int32_t *ids = raw(&g, "ids", g.rows * shape->ids, sizeof *ids);
    int32_t *past = raw(&g, "past", g.rows * shape->slots * shape->heads, sizeof *past);
    int32_t *actions = raw(&g, "actions", g.rows * shape->heads, sizeof *actions);
    uint8_t *reset = raw(&g, "reset", g.rows, 1);
    const xph_net_io io = {.floats = floats,
                           .ids = ids,
                           .past = past,
                           .actions = actions,
                           .reset = reset,
                           .state_in = g.state_in,
                           .state_out = g.state_out,
                           .ld_state = shape->state};
    xph_net *net = NULL;
    assert_ok(xph_net_create(g.model, g.batch, g.time, XPH_NET_TRAIN, &net, NULL));
    assert_ok(xph_net_pack(net, g.weights, g.packed));
    assert_ok(xph_net_forward(net, g.weights, g.packed, &io));
    compare(&g, "logits", xph_net_logits(net), g.rows * shape->logits);
    compare(&g, "state_out", g.state_out, g.batch * shape->state);
    check_loss(&g, xph_net_logits(net), actions);
    assert_ok(xph_net_backward(net, g.weights, g.packed, &io, g.dlogits, NULL, g.gradients));
    check_gradients(&g);
    xph_net_destroy(net);
    void *const all[] = {floats, ids, past, actions, reset};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]);
    close_golden(&g);
}

/* Every file of the folder. */
static void check_all(int32_t threads, int32_t type)
{
    exphil_context *context = test_context(NULL, NULL, threads);
    char **names = NULL;
    const int count = test_list(FOLDER, &names);
    assert_true(count > 0);
    for (int i = 0; i < count; i++) {
        char *end = strstr(names[i], END);
        if (!end || strcmp(end, END) != 0) fail_msg(FOLDER "/%s is no golden file", names[i]);
        *end = 0;
        check(context, names[i], type);
    }
    test_list_free(names, count);
    exphil_context_destroy(context);
}

static void in_double(void **unused)
{
    check_all(1, EXPHIL_TYPE_F64);
}

static void in_single(void **unused)
{
    check_all(2, EXPHIL_TYPE_F32);
}

static void every_block_has_a_file(void **unused)
{
    static const char *const blocks[] = {EACH_BLOCK};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
        golden g = {.name = blocks[i], .context = test_context(NULL, NULL, 1)};
        open_golden(&g, EXPHIL_TYPE_F64);
        assert_string_equal(xph_tensors_metadata(&g.file, "blocks"), blocks[i]);
        close_golden(&g);
        exphil_context_destroy(g.context);
    }
}

/* Blocks in a row with heads that read what was drawn, and state that comes from outside. */
static void mixtures_have_files(void **unused)
{
    static const char *const wanted[][3] = {{"network", "heads", "1"},
                                            {"carried", "state", "1"},
                                            {"no_final_norm", "no_final_norm", "1"},
                                            {"heads_of_slippi", "head_last", "1"}};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        golden g = {.name = wanted[i][0], .context = test_context(NULL, NULL, 1)};
        open_golden(&g, EXPHIL_TYPE_F64);
        assert_string_equal(xph_tensors_metadata(&g.file, wanted[i][1]), wanted[i][2]);
        assert_non_null(strchr(xph_tensors_metadata(&g.file, "blocks"), ' '));
        close_golden(&g);
        exphil_context_destroy(g.context);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(in_double), cmocka_unit_test(in_single),
                                       cmocka_unit_test(every_block_has_a_file),
                                       cmocka_unit_test(mixtures_have_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
