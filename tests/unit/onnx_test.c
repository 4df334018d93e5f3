/* ONNX files of models of every kind, read by a decoder that is written here from onnx.proto: the graph hangs together, the
 * weights are those of the model, what describes it is there; what cannot be is refused by name; no fault costs the old
 * file. That runtimes compute what sessions do is shown by hosts.onnx. */
#include "crash_disk.h"
#include "model_case.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- a decoder ------------------------------------------------------------------------------------------ */

typedef struct bytes {
    const uint8_t *at, *end;
} bytes;

typedef struct field {
    uint64_t number, value;
    bytes in;
} field;

static uint64_t read_varint(bytes *b)
{
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        assert_true(b->at < b->end && shift < 70);
        uint8_t byte = *b->at++;
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) return value;
    }
}

static bool read_field(bytes *b, field *f)
{
    if (b->at == b->end) return false;
    uint64_t tag = read_varint(b), length = 4;
    *f = (field){.number = tag >> 3};
    if ((tag & 7) == 0) {
        f->value = read_varint(b);
        return true;
    }
    if ((tag & 7) == 2)
        length = read_varint(b);
    else
        assert_int_equal(tag & 7, 5);
    assert_true((uint64_t)(b->end - b->at) >= length);
    f->in = (bytes){b->at, b->at + length};
    b->at += length;
    return true;
}

enum { NAME = 160, NODES = 1024, INS = 80, OUTS = 16, VALUES = 4096, RANK = 4 };

typedef struct value {
    char name[NAME];
    int64_t type, dim[RANK]; /* -1: the batch */
    int32_t rank;
    bytes raw; /* of an initializer */
} value;

typedef struct node {
    char name[NAME], op[32], in[INS][NAME], out[OUTS][NAME];
    int32_t ins, outs;
} node;

typedef struct graph {
    int64_t ir, opset;
    char meta_key[8][64];
    char *meta[8];
    int32_t metas, nodes, constants, inputs, outputs;
    node *node;
    value *constant, *input, *output;
    char *file;
} graph;

static void text_of(bytes b, char *to, size_t size)
{
    size_t length = (size_t)(b.end - b.at);
    assert_true(length < size);
    memcpy(to, b.at, length);
    to[length] = 0;
}

static void read_shape(bytes b, value *v)
{
    field f, dim;
    while (read_field(&b, &f)) {
        assert_true(f.number == 1 && v->rank < RANK);
        assert_true(read_field(&f.in, &dim));
        v->dim[v->rank++] = dim.number == 2 ? -1 : (int64_t)dim.value;
        if (dim.number == 2) assert_memory_equal(dim.in.at, "N", 1);
    }
}

static void read_value(bytes b, value *v)
{
    field f, type, tensor;
    while (read_field(&b, &f)) {
        if (f.number == 1) text_of(f.in, v->name, sizeof v->name);
        if (f.number != 2) continue;
        assert_true(read_field(&f.in, &type) && type.number == 1);
        while (read_field(&type.in, &tensor)) {
            if (tensor.number == 1) v->type = (int64_t)tensor.value;
            if (tensor.number == 2) read_shape(tensor.in, v);
        }
    }
}

static void read_tensor(bytes b, value *v)
{
    field f;
    while (read_field(&b, &f)) {
        if (f.number == 1) v->dim[v->rank++] = (int64_t)f.value;
        if (f.number == 2) v->type = (int64_t)f.value;
        if (f.number == 8) text_of(f.in, v->name, sizeof v->name);
        if (f.number == 9) v->raw = f.in;
    }
}

static void read_node(bytes b, node *n)
{
    field f;
    while (read_field(&b, &f)) {
        if (f.number == 1 && n->ins < INS) text_of(f.in, n->in[n->ins++], NAME);
        if (f.number == 2 && n->outs < OUTS) text_of(f.in, n->out[n->outs++], NAME);
        if (f.number == 3) text_of(f.in, n->name, NAME);
        if (f.number == 4) text_of(f.in, n->op, sizeof n->op);
    }
}

static void read_graph(bytes b, graph *g)
{
    field f;
    while (read_field(&b, &f)) {
        assert_true(g->nodes < NODES && g->constants < VALUES && g->inputs < VALUES && g->outputs < VALUES);
        if (f.number == 1) read_node(f.in, &g->node[g->nodes++]);
        if (f.number == 5) read_tensor(f.in, &g->constant[g->constants++]);
        if (f.number == 11) read_value(f.in, &g->input[g->inputs++]);
        if (f.number == 12) read_value(f.in, &g->output[g->outputs++]);
    }
}

static void read_meta(bytes b, graph *g)
{
    field key, content;
    assert_true(read_field(&b, &key) && read_field(&b, &content) && key.number == 1 && content.number == 2);
    text_of(key.in, g->meta_key[g->metas], sizeof g->meta_key[0]);
    size_t size = (size_t)(content.in.end - content.in.at) + 1;
    g->meta[g->metas] = malloc(size);
    text_of(content.in, g->meta[g->metas++], size);
}

static graph *read_file(const char *path)
{
    graph *g = calloc(1, sizeof *g);
    size_t size;
    field f, opset;
    g->node = calloc(NODES, sizeof *g->node);
    g->constant = calloc(VALUES, sizeof *g->constant);
    g->input = calloc(VALUES, sizeof *g->input);
    g->output = calloc(VALUES, sizeof *g->output);
    g->file = test_read(path, &size);
    assert_non_null(g->file);
    bytes b = {(const uint8_t *)g->file, (const uint8_t *)g->file + size};
    while (read_field(&b, &f)) {
        if (f.number == 1) g->ir = (int64_t)f.value;
        if (f.number == 7) read_graph(f.in, g);
        if (f.number == 14) read_meta(f.in, g);
        if (f.number != 8) continue;
        while (read_field(&f.in, &opset))
            if (opset.number == 2) g->opset = (int64_t)opset.value;
    }
    return g;
}

static void free_graph(graph *g)
{
    for (int32_t i = 0; i < g->metas; i++) free(g->meta[i]);
    free(g->node), free(g->constant), free(g->input), free(g->output), free(g->file);
    free(g);
}

static const value *find(const value *list, int32_t count, const char *name)
{
    for (int32_t i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0) return &list[i];
    return NULL;
}

static const char *meta(const graph *g, const char *key)
{
    for (int32_t i = 0; i < g->metas; i++)
        if (strcmp(g->meta_key[i], key) == 0) return g->meta[i];
    return NULL;
}

/* ---- models --------------------------------------------------------------------------------------------- */

static const exphil_condition_spec told[] = {{"player", 5, 3, 0.25}, {"weight", 2, 0, 0.0}};
static const int32_t delays[] = {0, 2, 5};

typedef struct kind {
    int32_t order, told, value, narrow, alone, delay, end; /* end: 1 + one of model_case_end, or 0 */
} kind;
static const kind kinds[] = {
    {0, 0, 0, 0, 0, 1, 0},
    {1, 1, 1, 0, 0, 0, 0},
    {0, 1, 0, 0, 1, 0, 0},
    {1, 0, 0, EXPHIL_TYPE_I8, 0, 1, 0},
    {1, 0, 1, 0, 1, 0, 0},
    {0, 0, 0, 0, 0, 64, 0},
    {0, 1, 1, EXPHIL_TYPE_BF16, 0, 0, 0},
    {0, 0, 0, 0, 1, 0, 1},
    {1, 0, 0, 0, 0, 18, 2},
    {1, 1, 1, EXPHIL_TYPE_I8, 0, 0, 3},
    {0, 0, 0, EXPHIL_TYPE_BF16, 0, 1, 3},
    {1, 0, 1, EXPHIL_TYPE_I8, 1, 0, 1},
    {1, 1, 0, 0, 0, 0, 4},
    {0, 0, 1, EXPHIL_TYPE_I8, 0, 2, 4},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static exphil_model *make(exphil_context *context, const char *blocks, const kind *k)
{
    exphil_model_config config = model_case_config(blocks, EXPHIL_TYPE_F32);
    config.heads = k->order;
    config.delay_frames = k->told ? 0 : k->delay;
    config.no_previous_action = k->alone;
    config.conditions = told;
    config.condition_count = k->told ? 2 : 0;
    config.delays = delays;
    config.delay_count = k->told ? 3 : 0;
    config.value = k->value;
    if (k->end) model_case_end(&config, k->end - 1);
    exphil_model *model = model_case_create(context, &config), *narrow = NULL;
    if (!k->narrow) return model;
    assert_ok(exphil_model_quantize(model, k->narrow, &narrow, NULL));
    exphil_model_destroy(model);
    return narrow;
}

static graph *export_of(const exphil_model *model)
{
    const char *path = test_path("model.onnx");
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_model_export_onnx(model, path, &error) < 0) fail_msg("%s", error.message);
    return read_file(path);
}

/* ---- the graph ------------------------------------------------------------------------------------------ */

/* Names that were made so far: inputs, initializers, outputs of nodes in order. */
typedef struct made {
    char (*name)[NAME];
    int32_t count;
} made;

static bool is_made(const made *m, const char *name)
{
    for (int32_t i = 0; i < m->count; i++)
        if (strcmp(m->name[i], name) == 0) return true;
    return false;
}

static void add_made(made *m, const char *name)
{
    if (is_made(m, name)) fail_msg("%s is made twice", name);
    assert_true(name[0] && m->count < 2 * VALUES);
    memcpy(m->name[m->count++], name, NAME);
}

static void check_order(const graph *g)
{
    made m = {calloc(2 * VALUES, NAME), 0};
    for (int32_t i = 0; i < g->inputs; i++) add_made(&m, g->input[i].name);
    for (int32_t i = 0; i < g->constants; i++) add_made(&m, g->constant[i].name);
    for (int32_t i = 0; i < g->nodes; i++) {
        const node *n = &g->node[i];
        for (int32_t k = 0; k < n->ins; k++)
            if (!is_made(&m, n->in[k])) fail_msg("%s reads %s, which is not there yet", n->name, n->in[k]);
        for (int32_t k = 0; k < n->outs; k++) add_made(&m, n->out[k]);
        assert_string_equal(n->name, n->out[n->outs - 1]);
        assert_true(n->op[0]);
    }
    for (int32_t i = 0; i < g->outputs; i++)
        if (!is_made(&m, g->output[i].name)) fail_msg("output %s is made by nobody", g->output[i].name);
    free(m.name);
}

static void check_sizes(const graph *g)
{
    for (int32_t i = 0; i < g->constants; i++) {
        const value *c = &g->constant[i];
        int64_t count = 1, each = c->type == 1 ? 4 : c->type == 2 ? 1 : c->type == 7 ? 8 : 2;
        assert_true(c->type == 1 || c->type == 2 || c->type == 7 || c->type == 16);
        for (int32_t d = 0; d < c->rank; d++) count *= c->dim[d];
        if (c->raw.end - c->raw.at != count * each) fail_msg("%s has other bytes than its shape", c->name);
    }
}

/* What goes in as NAME and out as NAME_out, and as many numbers of state as the model has. */
static void check_states(const graph *g, const exphil_model *model)
{
    int64_t numbers = 0, queue = 0;
    for (int32_t i = 0; i < g->inputs; i++) {
        char name[NAME + 8];
        snprintf(name, sizeof name, "%s_out", g->input[i].name);
        const value *in = &g->input[i], *out = find(g->output, g->outputs, name);
        if (!out) continue;
        assert_int_equal(in->dim[0], -1);
        assert_true(in->type == out->type && in->rank == out->rank);
        assert_memory_equal(in->dim, out->dim, sizeof in->dim);
        if (strcmp(in->name, "past") == 0) queue = in->dim[1];
        if (strncmp(in->name, "blocks.", 7) != 0) continue;
        int64_t count = 1;
        for (int32_t d = 1; d < in->rank; d++) count *= in->dim[d];
        numbers += count;
    }
    assert_true(numbers <= model->shape.state);
    bool attends = false;
    for (int64_t i = 0; i < model->block_count; i++) attends |= model->block[i].kind == XPH_BLOCK_ATTENTION;
    if (!attends) assert_int_equal(numbers, model->shape.state);
    assert_true(queue >= model->shape.slots && queue >= model->shape.delay);
}

static void check_graph(const graph *g, const exphil_model *model)
{
    assert_int_equal(g->ir, 8);
    assert_int_equal(g->opset, 17);
    check_order(g);
    check_sizes(g);
    check_states(g, model);
    static const char *const wanted[] = {"logits", "actions", "decided"};
    for (int i = 0; i < 3; i++) assert_non_null(find(g->output, g->outputs, wanted[i]));
    assert_int_equal(find(g->output, g->outputs, "value") != NULL, model->shape.value);
    assert_int_equal(find(g->input, g->inputs, "delay") != NULL, model->told.delays > 0);
}

static void graphs_hang_together(void **state)
{
    static const char *const patterns[] = {EACH_BLOCK ALL_BLOCKS, "(mamba attention)*2 attention"};
    exphil_context *context = test_context(NULL, NULL, 1);
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        for (int k = 0; k < KINDS; k++) {
            exphil_model *model = make(context, patterns[i], &kinds[k]);
            graph *g = export_of(model);
            check_graph(g, model);
            free_graph(g);
            exphil_model_destroy(model);
        }
    exphil_context_destroy(context);
}

/* Heads may be called as values of the graph or parts of tensors are. */
static void heads_have_any_names(void **state)
{
    static const exphil_head_spec named[] = {
        {"last", EXPHIL_BERNOULLI, 2, 0, 0},     {"past.head", EXPHIL_CATEGORICAL, 3, 0, 0},
        {"0.weight", EXPHIL_BERNOULLI, 2, 0, 0}, {"trunk", EXPHIL_CATEGORICAL, 2, 0, 0},
        {"logits", EXPHIL_CATEGORICAL, 2, 0, 0}, {"before", EXPHIL_BERNOULLI, 1, 0, 0}};
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_spec spec = model_case_spec;
    spec.heads = named;
    spec.head_count = 6;
    for (int end = -1; end < MODEL_CASE_ENDS; end++)
        for (int way = 0; way < 4; way++) {
            exphil_model_config config = model_case_config("gru", EXPHIL_TYPE_F32);
            config.spec = &spec;
            config.heads = way & 1;
            if (end >= 0) model_case_end(&config, end);
            exphil_model *model = model_case_create(context, &config), *rounded = NULL;
            assert_ok(exphil_model_quantize(model, EXPHIL_TYPE_I8, &rounded, NULL));
            graph *g = export_of(way & 2 ? rounded : model);
            check_graph(g, model);
            free_graph(g);
            exphil_model_destroy(rounded);
            exphil_model_destroy(model);
        }
    exphil_context_destroy(context);
}

/* ---- weights -------------------------------------------------------------------------------------------- */

static float bf16_at(const uint8_t *from, int64_t i)
{
    uint32_t bits = (uint32_t)from[2 * i] << 16 | (uint32_t)from[2 * i + 1] << 24;
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static void check_i8(const graph *g, const exphil_tensor_info *t, const float *wanted)
{
    char name[NAME];
    snprintf(name, sizeof name, "%s.T", t->name);
    const value *numbers = find(g->constant, g->constants, name);
    snprintf(name, sizeof name, "%s.scale", t->name);
    const value *scales = find(g->constant, g->constants, name);
    assert_true(numbers && scales && numbers->type == 2);
    assert_true(numbers->dim[0] == t->dim[1] && numbers->dim[1] == t->dim[0] && scales->dim[0] == t->dim[0]);
    for (int64_t o = 0; o < t->dim[0]; o++)
        for (int64_t k = 0; k < t->dim[1]; k++) {
            float scale;
            memcpy(&scale, scales->raw.at + o * 4, 4);
            assert_true(scale * (float)(numbers->raw.at[k * t->dim[0] + o] - 128) ==
                        wanted[o * t->dim[1] + k]);
        }
}

/* As a whole, or as the rows of each head. Returns the elements found. */
static int64_t check_rows(const graph *g, const exphil_tensor_info *t, const float *wanted)
{
    const size_t length = strlen(t->name);
    int64_t at = 0;
    for (int32_t i = 0; i < g->constants; i++) {
        const value *c = &g->constant[i];
        if (strncmp(c->name, t->name, length) != 0 || (c->name[length] && c->name[length] != '.')) continue;
        if (c->type == 7) continue;
        int64_t count = (c->raw.end - c->raw.at) / (c->type == 1 ? 4 : 2);
        for (int64_t k = 0; k < count; k++) {
            float number;
            memcpy(&number, c->raw.at + k * 4 * (c->type == 1), 4);
            if (c->type != 1) number = bf16_at(c->raw.at, k);
            if (number != wanted[at + k]) fail_msg("%s differs at %d", c->name, (int)k);
        }
        at += count;
    }
    return at;
}

static void weights_are_those_of_the_model(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    for (int k = 0; k < KINDS; k++) {
        exphil_model *model = make(context, ALL_BLOCKS, &kinds[k]);
        graph *g = export_of(model);
        exphil_tensor_info t = EXPHIL_TENSOR_INFO_INIT;
        for (int64_t i = 0; exphil_model_tensor_info(model, i, &t, NULL) == EXPHIL_OK; i++) {
            const int64_t count = t.dim[0] * t.dim[1];
            float *wanted = malloc(t.size_bytes);
            assert_ok(exphil_model_tensor_get(model, t.name, wanted, t.size_bytes, NULL));
            if (xph_model_narrow(model, i) == XPH_I8)
                check_i8(g, &t, wanted);
            else if (strcmp(t.name, "heads.embed") ==
                     0) /* of all heads but the last, whose value nobody reads */
                assert_int_equal(check_rows(g, &t, wanted), count - 4 * t.dim[1]);
            else
                assert_int_equal(check_rows(g, &t, wanted), count);
            free(wanted);
        }
        free_graph(g);
        exphil_model_destroy(model);
    }
    exphil_context_destroy(context);
}

/* ---- what describes it ---------------------------------------------------------------------------------- */

static int32_t count_of(const char *text, const char *word)
{
    int32_t count = 0;
    for (const char *at = text; (at = strstr(at, word)); at++) count++;
    return count;
}

static void a_file_describes_itself(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    config.blocks = "mlp";
    config.hidden = 16;
    exphil_model *model = model_case_create(context, &config);
    graph *g = export_of(model);
    const char *text = meta(g, "exphil.model"), *layout = meta(g, "exphil.layout"),
               *codec = meta(g, "exphil.codec");
    assert_true(text && layout && codec);
    assert_ok(exphil_model_save(model, test_path("model.safetensors"), NULL));
    xph_tensors file;
    assert_ok(xph_tensors_open(context, test_path("model.safetensors"), "weights", &file, NULL));
    assert_string_equal(text, xph_tensors_metadata(&file, "exphil.model"));
    xph_tensors_free(&file);
    assert_int_equal(count_of(layout, "\"source\""), exphil_melee_field_count("melee2"));
    assert_non_null(strstr(
        layout,
        "{\"name\":\"own.percent\",\"of\":\"floats\",\"offset\":1,\"count\":1,\"scale\":0.01,\"low\":0,"
        "\"high\":1e+01,\"source\":\"post 0x16 f32\"}"));
    assert_non_null(strstr(
        codec, "{\"head\":\"buttons\",\"moves\":\"buttons\",\"values\":[256,512,1024,2048,16,64,32,8]}"));
    assert_non_null(strstr(codec, "{\"head\":\"main_y\",\"moves\":\"main_y\",\"values\":[-1,-0.875,"));
    assert_non_null(strstr(codec, "{\"head\":\"c_x\",\"moves\":\"c_x\","));
    assert_non_null(
        strstr(codec, "{\"head\":\"shoulder\",\"moves\":\"trigger\",\"values\":[0,0.25,0.5,0.75,1]}"));
    assert_string_equal(meta(g, "exphil.trained_updates"), "0");
    free_graph(g);
    exphil_model_destroy(model);
    model = make(context, "mlp", &kinds[0]); /* a game of one's own has a layout of its own */
    g = export_of(model);
    assert_true(meta(g, "exphil.model") && !meta(g, "exphil.layout") && !meta(g, "exphil.codec"));
    free_graph(g);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
}

/* ---- refusals ------------------------------------------------------------------------------------------- */

static void refused(const exphil_model *model, exphil_status status, const char *words)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(exphil_model_export_onnx(model, test_path("refused.onnx"), &error), status);
    assert_says(&error, words);
    assert_false(test_exists(test_path("refused.onnx")));
    assert_false(test_exists(test_path("refused.onnx.exphil-tmp")));
}

static void what_cannot_be_is_refused(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_model_config config = model_case_config("gru mlp", EXPHIL_TYPE_F64);
    exphil_model *model = model_case_create(context, &config);
    refused(model, EXPHIL_E_UNSUPPORTED, "EXPHIL_TYPE_F64");
    exphil_model_destroy(model);
    config.type = EXPHIL_TYPE_F32;
    config.mode = EXPHIL_MODE_WINDOW;
    model = model_case_create(context, &config);
    refused(model, EXPHIL_E_UNSUPPORTED, "mode window");
    exphil_model_destroy(model);
    config.mode = EXPHIL_MODE_CARRY;
    model = model_case_create(context, &config);
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(exphil_model_export_onnx(model, "", &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_model_export_onnx(model, NULL, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_model_export_onnx(model, test_folder(), &error), EXPHIL_E_IO);
    model->block[1].kind = XPH_BLOCK_KINDS; /* as a kind that has no form there */
    refused(model, EXPHIL_E_UNSUPPORTED, "block 1 (unknown)");
    exphil_model_destroy(model);
    config.head_layers = 2;
    model = model_case_create(context, &config);
    model->config.head_activation = EXPHIL_ACTIVATION_GELU_TANH + 1; /* likewise */
    refused(model, EXPHIL_E_UNSUPPORTED, "head_activation 3 has no form");
    exphil_model_destroy(model);
    exphil_context_destroy(context);
}

/* Models that this table of tensors does not know: of other heads, or with more than is in the graph. */
static void other_models_are_not_misread(void **state)
{
    static const kind valued = {.order = 1, .value = 1, .delay = 1},
                      layered = {.order = 1, .delay = 1, .end = 3};
    exphil_context *context = test_context(NULL, NULL, 1);
    static const char *const names[] = {
        "norm.weight",        "heads.trunk.weight", "heads.logits.weight",  "heads.past.weight",
        "heads.embed",        "heads.past.weight",  "heads.stick.0.weight", "heads.trigger.3.weight",
        "heads.stick.before", "heads.buttons.last"};
    for (int i = 0; i < 10; i++) {
        exphil_model *model = make(context, "gru", i < 5 ? &valued : &layered);
        model->tensor[xph_model_find(model, names[i])].param.name[0] = 'x';
        refused(model, EXPHIL_E_UNSUPPORTED, names[i]);
        exphil_model_destroy(model);
    }
    exphil_model *model = make(context, "gru", &valued);
    model->shape.value = 0;
    refused(model, EXPHIL_E_UNSUPPORTED, "tensor \"value.trunk.weight\" has no form");
    exphil_model_destroy(model);
    exphil_context_destroy(context);
}

/* 2.1e9 bytes of floats are not made: the model has no memory yet. In 16 bits they would fit. */
static void what_is_too_large_is_refused(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_model_config config = model_case_config("ffn*64", EXPHIL_TYPE_F32);
    exphil_model *model;
    config.hidden = 1460;
    assert_ok(xph_model_outline(context, &config, 0, &model, NULL));
    assert_true((uint64_t)model->shape.weights * 4 > INT32_MAX);
    refused(model, EXPHIL_E_UNSUPPORTED, "at most 2147483647");
    exphil_model_destroy(model);
    exphil_context_destroy(context);
}

/* ---- faults --------------------------------------------------------------------------------------------- */

static const kind whole = {.order = 1, .told = 1, .value = 1, .narrow = EXPHIL_TYPE_I8, .end = 3};

static bool file_is(const char *path, const char *data, size_t size)
{
    size_t got;
    char *file = test_read(path, &got);
    bool same = file && got == size && memcmp(file, data, size) == 0;
    free(file);
    return same;
}

static void no_memory_at_any_moment(void **state)
{
    test_memory memory;
    test_memory_init(&memory);
    exphil_context *context = test_context(&memory, NULL, 1);
    exphil_model *model = make(context, ALL_BLOCKS, &whole);
    char *path = strdup(test_path("kept.onnx"));
    long long failed = 0;
    for (int for_ever = 0; for_ever < 2; for_ever++)
        for (long long at = 1;; at++) {
            exphil_error error = EXPHIL_ERROR_INIT;
            test_write(path, "old", 3);
            long long live = atomic_load(&memory.live), calls = atomic_load(&memory.calls);
            memory.fail_on = for_ever;
            memory.fail_at = calls + at;
            exphil_status status = exphil_model_export_onnx(model, path, &error);
            memory.fail_at = 0;
            assert_int_equal(atomic_load(&memory.live), live);
            if (status == EXPHIL_OK) break;
            assert_int_equal(status, EXPHIL_E_MEMORY);
            assert_true(error.message[0] && file_is(path, "old", 3));
            assert_false(test_exists(test_path("kept.onnx.exphil-tmp")));
            failed++;
        }
    assert_true(failed > 40);
    print_message("%lld allocations failed\n", failed);
    free(path);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
    assert_memory_clean(&memory);
}

static void files_may_fail_anywhere(void **state)
{
    static const int32_t codes[] = {ENOSPC, EIO};
    test_io io;
    test_io_init(&io);
    exphil_context *context = test_context(NULL, &io, 1);
    exphil_model *model = make(context, ALL_BLOCKS, &whole);
    char *path = strdup(test_path("kept.onnx"));
    size_t size;
    assert_ok(exphil_model_export_onnx(model, path, NULL));
    char *new = test_read(path, &size);
    for (int i = 0; i < 2; i++)
        for (long long at = 1;; at++) {
            exphil_error error = EXPHIL_ERROR_INIT;
            test_write(path, "old", 3);
            io.code = codes[i];
            io.fail_at = atomic_load(&io.calls) + at;
            exphil_status status = exphil_model_export_onnx(model, path, &error);
            io.fail_at = 0;
            assert_int_equal(atomic_load(&io.open_files), 0);
            assert_false(test_exists(test_path("kept.onnx.exphil-tmp")));
            bool is_new = file_is(path, new, size);
            if (status == EXPHIL_OK && is_new) break;
            assert_int_equal(status, EXPHIL_E_IO);
            assert_int_equal(error.native_code, codes[i]);
            assert_true(is_new || file_is(path, "old", 3));
        }
    free(new);
    free(path);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
}

static void disk_write(crash_disk *disk, const char *path, const void *data, size_t size)
{
    exphil_io *io = &disk->io.hook;
    void *file;
    size_t done;
    assert_int_equal(io->open(io->user, path, EXPHIL_IO_CREATE, &file), 0);
    assert_int_equal(io->write(io->user, file, data, size, &done), 0);
    assert_int_equal(done, size);
    assert_int_equal(io->sync(io->user, file), 0);
    assert_int_equal(io->close(io->user, file), 0);
    assert_int_equal(io->sync_folder(io->user, path), 0);
}

static bool disk_has(crash_disk *disk, const char *path, const char *data, size_t size)
{
    exphil_io *io = &disk->io.hook;
    void *file;
    uint64_t there;
    size_t done = 0;
    char *got = malloc(size + 1);
    assert_int_equal(io->open(io->user, path, EXPHIL_IO_READ, &file), 0);
    assert_int_equal(io->size(io->user, file, &there), 0);
    bool same = there == size && io->read(io->user, file, 0, got, size, &done) == 0 && done == size;
    same = same && memcmp(got, data, size) == 0;
    assert_int_equal(io->close(io->user, file), 0);
    free(got);
    return same;
}

/* The power goes in operation at, or the disk has so many bytes left. Returns the operations made. */
static long long lose(long long at, bool full, const char *new, size_t size)
{
    static crash_disk disk;
    crash_disk_begin(&disk, (uint64_t)at);
    disk_write(&disk, "model", "old", 3);
    exphil_context *context = test_context(NULL, &disk.io, 1);
    exphil_model *model = make(context, ALL_BLOCKS, &whole);
    long long before = disk.calls;
    if (full)
        disk.free_bytes = at;
    else
        disk.power_cut_at = before + at;
    exphil_status status = exphil_model_export_onnx(model, "model", NULL);
    long long calls = disk.calls - before;
    disk.power_cut_at = 0;
    disk.free_bytes = -1;
    if (disk.dead) crash_reboot(&disk);
    bool is_new = disk_has(&disk, "model", new, size);
    assert_true(is_new || (status < 0 && disk_has(&disk, "model", "old", 3)));
    if (full && at < (long long)size) assert_false(is_new);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
    crash_disk_end(&disk);
    return calls;
}

static void no_power_and_no_space_at_any_moment(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_model *model = make(context, ALL_BLOCKS, &whole);
    size_t size;
    assert_ok(exphil_model_export_onnx(model, test_path("model"), NULL));
    char *new = test_read(test_path("model"), &size);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
    long long calls = lose(1LL << 40, false, new, size);
    assert_true(calls > 50);
    for (long long at = 1; at <= calls; at++) (void)lose(at, false, new, size);
    for (long long space = 0; space < 2 * (long long)size; space = space * 2 + 997)
        (void)lose(space, true, new, size);
    free(new);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_hang_together),
        cmocka_unit_test(heads_have_any_names),
        cmocka_unit_test(weights_are_those_of_the_model),
        cmocka_unit_test(a_file_describes_itself),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(other_models_are_not_misread),
        cmocka_unit_test(what_is_too_large_is_refused),
        cmocka_unit_test(no_memory_at_any_moment),
        cmocka_unit_test(files_may_fail_anywhere),
        cmocka_unit_test(no_power_and_no_space_at_any_moment),
    };
    return cmocka_run_group_tests(tests, NULL, test_leave);
}
