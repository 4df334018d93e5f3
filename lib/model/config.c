/* Configuration of a model: defaults for what is 0, limits for the rest. Every refusal names the field. */
#include "model/tensor_table.h"

#include <stddef.h>

#define CONFIG_NAME "exphil_model_config"

/* A width or count: where it is, what 0 means, and what is allowed. */
typedef struct limit {
    const char *name;
    size_t at;
    int64_t usual, low, high;
} limit;

#define FIELD(field, usual, low, high)                                                                       \
  {                                                                                                          \
#    field, offsetof(exphil_model_config, field), usual, low, high                                           \
  }
static const limit limits[] = {
    FIELD(hidden, 256, 1, 8192),
    FIELD(head_width, 128, 1, 8192),
    FIELD(mamba_states, 16, 1, 256),
    FIELD(mamba_expand, 2, 1, 8),
    FIELD(mamba_taps, 4, 2, 16),
    FIELD(mamba_rank, 0, 1, 1024), /* 0: rank_usual of hidden, which stands above */
    FIELD(attention_heads, 4, 1, 128),
    FIELD(attention_dim, 64, 1, 512),
    FIELD(attention_window_frames, 60, 1, 4096),
    FIELD(ffn_expand, 2, 1, 16),
    FIELD(window_frames, 60, 1, 4096),
};

#define EPSILON_USUAL XPH_NORM_EPSILON
#define EPSILON_LOW   1e-12
#define EPSILON_HIGH  0.1
#define UNITS_MOST    8192

static int64_t rank_usual(int64_t hidden)
{
    return hidden < 16 ? 1 : hidden / 16;
}

static exphil_status fill_limit(exphil_model_config *config, const limit *l, exphil_error *error)
{
    int64_t *value = (int64_t *)(void *)((unsigned char *)config + l->at);
    if (*value == 0) *value = l->usual ? l->usual : rank_usual(config->hidden);
    if (*value >= l->low && *value <= l->high) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_INVALID, "%s.%s is %lld, must be %lld..%lld, or 0 for the default",
                    CONFIG_NAME, l->name, (long long)*value, (long long)l->low, (long long)l->high);
}

static exphil_status check_choice(const char *name, int32_t value, int32_t high, exphil_error *error)
{
    if (value >= 0 && value <= high) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_INVALID, "%s.%s is %d, must be 0..%d", CONFIG_NAME, name, (int)value,
                    (int)high);
}

static exphil_status check_choices(const exphil_model_config *config, exphil_error *error)
{
    XPH_TRY(check_choice("delay_frames", config->delay_frames, 64, error));
    XPH_TRY(check_choice("no_previous_action", config->no_previous_action, 1, error));
    XPH_TRY(check_choice("mode", config->mode, EXPHIL_MODE_WINDOW, error));
    XPH_TRY(check_choice("heads", config->heads, EXPHIL_HEADS_AUTOREGRESSIVE, error));
    if (config->type != EXPHIL_TYPE_F32 && config->type != EXPHIL_TYPE_F64)
        return xph_fail(error, EXPHIL_E_UNSUPPORTED,
                        "%s.type is %d; models are made in EXPHIL_TYPE_F32 or EXPHIL_TYPE_F64", CONFIG_NAME,
                        (int)config->type);
    XPH_TRY(check_choice("reserved", config->reserved, 0, error));
    XPH_TRY(check_choice("neutral_start", config->neutral_start, 1, error));
    XPH_TRY(check_choice("reserved_2", config->reserved_2, 0, error));
    XPH_TRY(check_choice("value", config->value, EXPHIL_VALUE_SHARED, error));
    return check_choice("reserved_3", config->reserved_3, 0, error);
}

static exphil_status fill_epsilon(exphil_model_config *config, exphil_error *error)
{
    if (config->norm_epsilon == 0.0) config->norm_epsilon = EPSILON_USUAL;
    if (config->norm_epsilon >= EPSILON_LOW && config->norm_epsilon <= EPSILON_HIGH) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_INVALID, "%s.norm_epsilon is %g, must be %g..%g, or 0 for %g",
                    CONFIG_NAME, config->norm_epsilon, EPSILON_LOW, EPSILON_HIGH, EPSILON_USUAL);
}

/* What is about hidden layers of the heads, which there are none of. */
static exphil_status check_no_layers(const exphil_model_config *config, exphil_error *error)
{
    const char *given = config->head_units        ? "head_units"
                        : config->head_activation ? "head_activation"
                        : config->head_last       ? "head_last"
                        : config->no_head_trunk   ? "no_head_trunk"
                                                  : NULL;
    if (!given) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_INVALID, "%s.%s is given, which needs head_layers", CONFIG_NAME, given);
}

static exphil_status fill_heads(exphil_model_config *config, exphil_error *error)
{
    XPH_TRY(check_choice("no_final_norm", config->no_final_norm, 1, error));
    XPH_TRY(check_choice("head_layers", config->head_layers, XPH_HEAD_LAYERS_MOST, error));
    XPH_TRY(check_choice("head_activation", config->head_activation, EXPHIL_ACTIVATION_GELU_TANH, error));
    XPH_TRY(check_choice("head_last", config->head_last, 1, error));
    XPH_TRY(check_choice("no_head_past", config->no_head_past, 1, error));
    XPH_TRY(check_choice("no_head_trunk", config->no_head_trunk, 1, error));
    if (!config->head_layers) return check_no_layers(config, error);
    if (config->head_units == 0) config->head_units = config->head_width;
    if (config->head_units >= 1 && config->head_units <= UNITS_MOST) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_INVALID, "%s.head_units is %lld, must be 1..%d, or 0 for head_width",
                    CONFIG_NAME, (long long)config->head_units, UNITS_MOST);
}

static exphil_status fill_input(exphil_model_config *config, exphil_error *error)
{
    if (config->input_width == config->hidden) config->input_width = 0;
    if (config->input_width >= 0 && config->input_width <= UNITS_MOST) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_INVALID, "%s.input_width is %lld, must be 1..%d, or 0 for hidden",
                    CONFIG_NAME, (long long)config->input_width, UNITS_MOST);
}

exphil_status xph_model_config_resolve(const exphil_model_config *given, exphil_model_config *known,
                                       exphil_error *error)
{
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    XPH_TRY(XPH_TAKE(exphil_model_config, &config, given, error));
    if (!config.blocks) config.blocks = "mamba*2";
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        XPH_TRY(fill_limit(&config, &limits[i], error));
    XPH_TRY(check_choices(&config, error));
    XPH_TRY(fill_epsilon(&config, error));
    XPH_TRY(fill_heads(&config, error));
    XPH_TRY(fill_input(&config, error));
    *known = config;
    return EXPHIL_OK;
}
