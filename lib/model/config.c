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

exphil_status xph_model_config_resolve(const exphil_model_config *given, exphil_model_config *known,
                                       exphil_error *error)
{
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    XPH_TRY(XPH_TAKE(exphil_model_config, &config, given, error));
    if (!config.blocks) config.blocks = "mamba*2";
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        XPH_TRY(fill_limit(&config, &limits[i], error));
    XPH_TRY(check_choices(&config, error));
    *known = config;
    return EXPHIL_OK;
}
