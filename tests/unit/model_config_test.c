/* Configurations: defaults, refusals that name the field, what a model says about itself, its tensors and
 * their places. */
#include "model_case.h"

#include <math.h>

#include "model/tensor_table.h"

#include <stdlib.h>

typedef struct fixture {
    test_memory memory;
    exphil_context *context;
} fixture;

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    if (!f) return 1;
    test_memory_init(&f->memory);
    f->context = test_context(&f->memory, NULL, 1);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    exphil_context_destroy(f->context);
    assert_memory_clean(&f->memory);
    free(f);
    return 0;
}

static void refuse(fixture *f, const exphil_model_config *config, exphil_status status, const char *part)
{
    exphil_model *model = (exphil_model *)f;
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(exphil_model_create(f->context, config, &model, &error), status);
    assert_ptr_equal(model, f);
    assert_int_equal(error.status, status);
    assert_says(&error, part);
}

#define REFUSE_FIELD(field, value)                                                                           \
  do {                                                                                                       \
    exphil_model_config config = model_case_config("mamba", EXPHIL_TYPE_F32);                                \
    config.field = value;                                                                                    \
    refuse(*state, &config, EXPHIL_E_INVALID, "exphil_model_config." #field);                                \
  } while (0)

static void fields_are_named(void **state)
{
    REFUSE_FIELD(hidden, -1);
    REFUSE_FIELD(hidden, 100000);
    REFUSE_FIELD(head_width, -2);
    REFUSE_FIELD(mamba_states, 257);
    REFUSE_FIELD(mamba_expand, 9);
    REFUSE_FIELD(mamba_taps, 1);
    REFUSE_FIELD(mamba_rank, -5);
    REFUSE_FIELD(attention_heads, INT64_MAX);
    REFUSE_FIELD(attention_dim, INT64_MIN);
    REFUSE_FIELD(attention_window_frames, 5000);
    REFUSE_FIELD(ffn_expand, 17);
    REFUSE_FIELD(window_frames, -1);
    REFUSE_FIELD(delay_frames, 65);
    REFUSE_FIELD(delay_frames, -1);
    REFUSE_FIELD(no_previous_action, 2);
    REFUSE_FIELD(mode, 2);
    REFUSE_FIELD(heads, -1);
    REFUSE_FIELD(reserved, 1);
    REFUSE_FIELD(norm_epsilon, -1e-5);
    REFUSE_FIELD(norm_epsilon, 1e-13);
    REFUSE_FIELD(norm_epsilon, 0.2);
    REFUSE_FIELD(norm_epsilon, (double)NAN);
    REFUSE_FIELD(norm_epsilon, (double)INFINITY);
    REFUSE_FIELD(no_final_norm, 2);
    REFUSE_FIELD(head_layers, -1);
    REFUSE_FIELD(head_layers, 5);
    REFUSE_FIELD(head_activation, 3);
    REFUSE_FIELD(head_activation, -1);
    REFUSE_FIELD(head_last, 2);
    REFUSE_FIELD(no_head_past, -1);
    REFUSE_FIELD(no_head_trunk, INT32_MAX);
}

#define REFUSE_WITH_LAYERS(field, value)                                                                     \
  do {                                                                                                       \
    exphil_model_config config = model_case_config("mamba", EXPHIL_TYPE_F32);                                \
    config.head_layers = 1;                                                                                  \
    config.field = value;                                                                                    \
    refuse(*state, &config, EXPHIL_E_INVALID, "exphil_model_config." #field);                                \
  } while (0)

/* Width of x in front of the blocks: whoever adds to x needs hidden, and somebody must get there. */
static void input_widths(void **state)
{
    static const char *const wrong[] = {"mamba", "norm mlp",    "relu*2 attention dense",
                                        "norm",  "norm relu*3", "lstm_bare"};
    static const char *const right[] = {"dense", "norm gru_only mlp", "relu dense relu",
                                        "(norm relu)*2 lstm_only mamba"};
    fixture *f = *state;
    REFUSE_FIELD(input_width, -1);
    REFUSE_FIELD(input_width, 8193);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        exphil_model_config config = model_case_config(wrong[i], EXPHIL_TYPE_F32);
        config.input_width = 25;
        refuse(*state, &config, EXPHIL_E_INVALID, "exphil_model_config.input_width is 25 and hidden 24: ");
        config.input_width = config.hidden; /* says nothing */
        exphil_model_destroy(model_case_create(f->context, &config));
    }
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        exphil_model_config config = model_case_config(right[i], EXPHIL_TYPE_F32);
        config.input_width = 7;
        exphil_model *model = model_case_create(f->context, &config);
        assert_int_equal(model->block[0].width, 7);
        assert_int_equal(model->tensor[0].param.dim[0], 7);
        exphil_model_destroy(model);
    }
}

static uint64_t hash_of(fixture *f, exphil_model_config config)
{
    exphil_model *model = model_case_create(f->context, &config);
    uint64_t hash = xph_model_config_hash(model);
    exphil_model_destroy(model);
    return hash;
}

/* Each field makes another model, and what says the usual says nothing. */
static void each_field_is_in_the_hash(void **state)
{
    fixture *f = *state;
    enum { CHANGES = 10 };
    uint64_t hash[CHANGES];
    for (int i = 0; i < CHANGES; i++) {
        exphil_model_config config = model_case_config("norm dense", EXPHIL_TYPE_F32);
        config.head_layers = i > 3;
        if (i == 1) config.norm_epsilon = 1e-6;
        if (i == 2) config.no_final_norm = 1;
        if (i == 3) config.input_width = 25;
        if (i == 5) config.head_units = 19;
        if (i == 6) config.head_activation = EXPHIL_ACTIVATION_RELU;
        if (i == 7) config.head_last = 1;
        if (i == 8) config.no_head_past = 1;
        if (i == 9) config.no_head_trunk = 1;
        hash[i] = hash_of(f, config);
        for (int k = 0; k < i; k++) assert_true(hash[k] != hash[i]);
    }
    exphil_model_config usual = model_case_config("norm dense", EXPHIL_TYPE_F32);
    usual.norm_epsilon = 1e-5;
    usual.input_width = usual.hidden;
    assert_true(hash_of(f, usual) == hash[0]);
    usual.head_layers = 1;
    usual.head_units = usual.head_width;
    assert_true(hash_of(f, usual) == hash[4]);
}

static exphil_model_info info_of(fixture *f, const exphil_model_config *config)
{
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    exphil_model *model = model_case_create(f->context, config);
    assert_int_equal(exphil_model_query(model, &info, NULL), EXPHIL_OK);
    exphil_model_destroy(model);
    return info;
}

static void each_field_is_told(void **state)
{
    exphil_model_config config = model_case_config("norm dense", EXPHIL_TYPE_F32);
    exphil_model_info info = info_of(*state, &config);
    assert_true(info.norm_epsilon == 1e-5);
    assert_int_equal(info.head_units + info.no_final_norm + info.head_layers + info.head_activation +
                         info.head_last + info.no_head_past + info.no_head_trunk + info.input_width,
                     0);
    config.norm_epsilon = 1e-6;
    config.no_final_norm = config.no_head_past = config.no_head_trunk = config.head_last = 1;
    config.head_layers = 3;
    config.head_activation = EXPHIL_ACTIVATION_GELU_TANH;
    config.input_width = 25;
    info = info_of(*state, &config);
    assert_true(info.norm_epsilon == 1e-6);
    assert_int_equal(info.no_final_norm, 1);
    assert_int_equal(info.head_layers, 3);
    assert_int_equal(info.head_units, config.head_width);
    assert_int_equal(info.head_activation, EXPHIL_ACTIVATION_GELU_TANH);
    assert_int_equal(info.head_last, 1);
    assert_int_equal(info.no_head_past, 1);
    assert_int_equal(info.no_head_trunk, 1);
    assert_int_equal(info.input_width, 25);
}

/* Each of these says something of layers; the last asks for an input that is not there. */
static void heads_without_layers(void **state)
{
    REFUSE_FIELD(head_units, 8);
    REFUSE_FIELD(head_activation, EXPHIL_ACTIVATION_RELU);
    REFUSE_FIELD(head_last, 1);
    REFUSE_FIELD(no_head_trunk, 1);
    REFUSE_WITH_LAYERS(head_units, -1);
    REFUSE_WITH_LAYERS(head_units, 8193);
    REFUSE_WITH_LAYERS(head_units, INT64_MIN);
    exphil_model_config config = model_case_config("mamba", EXPHIL_TYPE_F32);
    config.head_layers = config.head_last = config.no_previous_action = 1;
    config.delay_frames = 0;
    refuse(*state, &config, EXPHIL_E_INVALID, "exphil_model_config.head_last");
    config.delay_frames = 1;
    fixture *f = *state;
    exphil_model *model = model_case_create(f->context, &config);
    assert_int_equal(model->config.head_units, config.head_width);
    assert_true(model->config.norm_epsilon == 1e-5);
    exphil_model_destroy(model);
}

static void other_refusals(void **state)
{
    exphil_model_config config = model_case_config("mamba", EXPHIL_TYPE_F32);
    config.type = EXPHIL_TYPE_BF16;
    refuse(*state, &config, EXPHIL_E_UNSUPPORTED, "exphil_model_config.type");
    config = model_case_config("mamba (lstm", EXPHIL_TYPE_F32);
    refuse(*state, &config, EXPHIL_E_INVALID, "blocks, column 7");
    config = model_case_config("mamba", EXPHIL_TYPE_F32);
    exphil_spec spec = model_case_spec;
    spec.head_count = 0;
    config.spec = &spec;
    refuse(*state, &config, EXPHIL_E_INVALID, "spec.head_count");
    config = model_case_config("mamba", EXPHIL_TYPE_F32);
    config.struct_size = 3;
    refuse(*state, &config, EXPHIL_E_INVALID, "exphil_model_config.struct_size");
    assert_int_equal(exphil_model_create(NULL, &config, NULL, NULL), EXPHIL_E_INVALID);
    fixture *f = *state;
    assert_int_equal(exphil_model_create(f->context, NULL, NULL, NULL), EXPHIL_E_INVALID);
}

static void defaults_are_those_of_the_header(void **state)
{
    fixture *f = *state;
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    config.spec = &model_case_spec;
    exphil_model *model = model_case_create(f->context, &config);
    const exphil_model_config *c = &model->config;
    assert_int_equal(c->hidden, 256);
    assert_int_equal(c->head_width, 128);
    assert_int_equal(c->mamba_states, 16);
    assert_int_equal(c->mamba_expand, 2);
    assert_int_equal(c->mamba_taps, 4);
    assert_int_equal(c->mamba_rank, 16);
    assert_int_equal(c->attention_heads, 4);
    assert_int_equal(c->attention_dim, 64);
    assert_int_equal(c->attention_window_frames, 60);
    assert_int_equal(c->ffn_expand, 2);
    assert_int_equal(model->block_count, 2);
    assert_int_equal(model->shape.window, 0);
    assert_int_equal(model->shape.slots, 1);
    exphil_model_destroy(model);
    config.hidden = 8;
    config.mode = EXPHIL_MODE_WINDOW;
    config.no_previous_action = 1;
    config.delay_frames = 3;
    model = model_case_create(f->context, &config);
    assert_int_equal(model->config.mamba_rank, 1);
    assert_int_equal(model->shape.window, 60);
    assert_int_equal(model->shape.slots, 3);
    exphil_model_destroy(model);
}

/* Counted by hand from the shapes. */
static void a_model_tells_about_itself(void **state)
{
    fixture *f = *state;
    exphil_model_config config = model_case_config("mamba lstm", EXPHIL_TYPE_F64);
    exphil_model *model = model_case_create(f->context, &config);
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    assert_int_equal(exphil_model_query(model, &info, NULL), EXPHIL_OK);
    int64_t row = 13 + 3 + 8 + 2 * 12, h = 24, d = 48, n = 5, r = 3;
    int64_t mamba =
        2 * h + 2 * d * h + 2 * d + 4 * d + d + (r + 2 * n) * d + d * r + d + d * n + d + h * d + h;
    int64_t lstm = 2 * h + 2 * 4 * h * h + 2 * 4 * h,
            heads = 2 * h + 18 * h + 18 + 12 * 18 + 12 + 12 * 2 * 12;
    assert_int_equal(info.parameter_count, row * h + h + 5 * 3 + 7 * 8 + mamba + lstm + heads);
    assert_int_equal(info.tensor_count, 4 + 13 + 6 + 7);
    assert_int_equal(info.state_bytes, 8 * (3 * d + d * n + 2 * h));
    assert_int_equal(info.spec_hash, exphil_spec_hash(&model_case_spec));
    assert_int_equal(info.float_count, 13);
    assert_int_equal(info.id_count, 2);
    assert_int_equal(info.head_count, 3);
    assert_int_equal(info.logit_count, 12);
    assert_int_equal(info.hidden, 24);
    assert_int_equal(info.delay_frames, 1);
    assert_int_equal(info.action_slots, 2);
    assert_int_equal(info.type, EXPHIL_TYPE_F64);
    assert_string_equal(info.blocks, "mamba lstm");
    assert_string_equal(info.layout, "made-up");
    exphil_spec spec = EXPHIL_SPEC_INIT;
    assert_int_equal(exphil_model_spec(model, &spec, NULL), EXPHIL_OK);
    assert_int_equal(exphil_spec_hash(&spec), info.spec_hash);
    assert_int_equal(spec.ids[1].width, 8);
    exphil_model_destroy(model);
}

static void tensors_have_their_places(void **state)
{
    fixture *f = *state;
    exphil_model_config config = model_case_config("(mamba attention gru)*2 ffn", EXPHIL_TYPE_F32);
    config.heads = EXPHIL_HEADS_AUTOREGRESSIVE;
    exphil_model *model = model_case_create(f->context, &config);
    const xph_model_shape *shape = xph_model_shape_of(model);
    unsigned char *used = calloc((size_t)shape->weights, 1);
    for (int64_t i = 0; i < xph_model_param_count(model); i++) {
        const xph_param *param = xph_model_param(model, i);
        assert_int_equal(param->offset % 16, 0);
        assert_int_equal(param->count, param->dim[0] * param->dim[1] * param->dim[2] * param->dim[3]);
        assert_true(param->decays ? param->offset + param->count <= shape->decaying
                                  : param->offset >= shape->decaying);
        for (int64_t e = 0; e < param->count; e++) assert_int_equal(used[param->offset + e]++, 0);
        assert_int_equal(xph_model_param_at(model, param->offset + param->count - 1), i);
        assert_int_equal(xph_model_find(model, param->name), i);
        bool stays = param->rank == 1 || strstr(param->name, "relative_bias") ||
                     strstr(param->name, "A_log") || strcmp(param->name, "heads.past.weight") == 0;
        assert_int_equal(param->decays, !stays);
    }
    const float *weights = xph_model_weights(model);
    for (int64_t e = 0; e < shape->weights; e++) {
        if (used[e]) continue;
        assert_int_equal(xph_model_param_at(model, e), -1);
        assert_true(weights[e] == 0.0f);
    }
    assert_int_equal(xph_model_param_at(model, shape->weights), -1);
    assert_int_equal(xph_model_find(model, "blocks.7.norm.weight"), -1);
    assert_true(xph_model_find(model, "blocks.6.down.weight") >= 0);
    assert_true(xph_model_find(model, "heads.embed") >= 0);
    assert_true(xph_model_find(model, "ids.own.character.weight") >= 0);
    free(used);
    exphil_model_destroy(model);
}

static void children_keep_the_model(void **state)
{
    fixture *f = *state;
    exphil_model_config config = model_case_config("gru", EXPHIL_TYPE_F32);
    exphil_model *model = model_case_create(f->context, &config), *copy = NULL;
    assert_true(xph_model_alone(model));
    xph_net *net = NULL;
    assert_int_equal(xph_net_create(model, 1, 1, 0, &net, NULL), EXPHIL_OK);
    assert_false(xph_model_alone(model));
    assert_int_equal(xph_model_with_weights(model, xph_model_weights(model), 5, 600, &copy, NULL), EXPHIL_OK);
    uint64_t hash = 0, other = 1, updates = 0, frames = 0;
    assert_int_equal(xph_model_weights_hash(model, &hash, NULL), EXPHIL_OK);
    assert_int_equal(xph_model_weights_hash(copy, &other, NULL), EXPHIL_OK);
    assert_int_equal(hash, other);
    xph_model_trained(copy, &updates, &frames);
    assert_int_equal(updates, 5);
    assert_int_equal(frames, 600);
    exphil_model_destroy(model);
    assert_int_equal(xph_net_bytes(net) > 0, 1);
    xph_net_destroy(net);
    config.seed++;
    exphil_model *reseeded = model_case_create(f->context, &config);
    assert_int_equal(xph_model_weights_hash(reseeded, &other, NULL), EXPHIL_OK);
    assert_int_not_equal(hash, other);
    assert_int_equal(xph_model_config_hash(reseeded), xph_model_config_hash(copy));
    exphil_model_destroy(reseeded);
    config.hidden++;
    reseeded = model_case_create(f->context, &config);
    assert_int_not_equal(xph_model_config_hash(reseeded), xph_model_config_hash(copy));
    exphil_model_destroy(reseeded);
    exphil_model_destroy(copy);
}

/* Packed weights follow a change of the weights. */
static void packed_weights_are_made_anew(void **state)
{
    fixture *f = *state;
    exphil_model_config config = model_case_config("mlp", EXPHIL_TYPE_F32);
    exphil_model *model = model_case_create(f->context, &config);
    size_t bytes = xph_model_shape_of(model)->packed_bytes;
    if (bytes == 0) skip();
    const void *packed = NULL, *again = NULL;
    assert_int_equal(xph_model_packed(model, &packed, NULL), EXPHIL_OK);
    assert_int_equal(xph_model_packed(model, &again, NULL), EXPHIL_OK);
    assert_ptr_equal(packed, again);
    unsigned char *before = malloc(bytes);
    memcpy(before, packed, bytes);
    const xph_param *param = xph_model_param(model, xph_model_find(model, "input.weight"));
    float value = 1234.5f;
    assert_int_equal(xph_model_push(model, param->offset, 1, &value, NULL), EXPHIL_OK);
    assert_int_equal(xph_model_packed(model, &again, NULL), EXPHIL_OK);
    assert_memory_not_equal(before, again, bytes);
    free(before);
    exphil_model_destroy(model);
}

static void impossible_nets(void **state)
{
    fixture *f = *state;
    exphil_model_config config = model_case_config("lstm", EXPHIL_TYPE_F32);
    exphil_model *model = model_case_create(f->context, &config);
    xph_net *net = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(xph_net_create(model, 0, 1, 0, &net, &error), EXPHIL_E_INVALID);
    assert_int_equal(xph_net_create(model, 1, -1, 0, &net, &error), EXPHIL_E_INVALID);
    assert_int_equal(xph_net_create(model, INT32_MAX, INT32_MAX, 0, &net, &error), EXPHIL_E_MEMORY);
    assert_null(net);
    assert_int_equal(xph_net_create(model, 1, 1, 0, &net, &error), EXPHIL_OK);
    xph_net_io io = {0};
    assert_int_equal(xph_net_backward(net, NULL, NULL, &io, NULL, NULL, NULL), EXPHIL_E_STATE);
    xph_net_destroy(net);
    exphil_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(fields_are_named, setup, teardown),
        cmocka_unit_test_setup_teardown(each_field_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(heads_without_layers, setup, teardown),
        cmocka_unit_test_setup_teardown(input_widths, setup, teardown),
        cmocka_unit_test_setup_teardown(each_field_is_in_the_hash, setup, teardown),
        cmocka_unit_test_setup_teardown(other_refusals, setup, teardown),
        cmocka_unit_test_setup_teardown(defaults_are_those_of_the_header, setup, teardown),
        cmocka_unit_test_setup_teardown(a_model_tells_about_itself, setup, teardown),
        cmocka_unit_test_setup_teardown(tensors_have_their_places, setup, teardown),
        cmocka_unit_test_setup_teardown(children_keep_the_model, setup, teardown),
        cmocka_unit_test_setup_teardown(packed_weights_are_made_anew, setup, teardown),
        cmocka_unit_test_setup_teardown(impossible_nets, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
