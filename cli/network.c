/* Options of a new model beside its blocks and its width, and what `exphil info` says of them. */
#include "network.h"

#include "commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const activations[] = {"silu", "relu", "gelu_tanh"}; /* by EXPHIL_ACTIVATION_... */
enum { ACTIVATIONS = 3 };

/* ---- options --------------------------------------------------------------------------------------------------------- */

static bool read_activation(network_options *o)
{
    int32_t i = 0;
    if (!o->activation) return true;
    while (i < ACTIVATIONS && strcmp(o->activation, activations[i]) != 0) i++;
    o->kind = i;
    if (i < ACTIVATIONS) return true;
    fprintf(stderr, "exphil: --head-activation wants silu, relu or gelu_tanh, not %s\n", o->activation);
    return false;
}

bool network_check(const option_command *command, network_options *o, bool past)
{
    static const char *const of_layers[] = {"head-units", "head-activation", "head-last", "no-head-trunk"};
    if (!read_activation(o)) return false;
    for (size_t i = 0; !o->head_layers && i < sizeof of_layers / sizeof of_layers[0]; i++) {
        if (!options_given(command, of_layers[i])) continue;
        fprintf(stderr, "exphil: --%s is for --head-layers N\n", of_layers[i]);
        return false;
    }
    if (!o->last || past) return true;
    fprintf(stderr, "exphil: --no-previous-action and --head-last: there are no past actions\n");
    return false;
}

void network_fill(const network_options *o, exphil_model_config *config)
{
    config->head_layers = (int32_t)o->head_layers;
    config->head_units = o->head_units;
    config->head_activation = o->kind;
    config->head_last = o->last;
    config->no_head_trunk = o->no_trunk;
    config->no_head_past = o->no_past;
    config->no_final_norm = o->no_final_norm;
    config->norm_epsilon = o->norm_epsilon;
    config->input_width = o->input_width;
}

/* "exphil_model_config.input_width is ...": --input-width is ... */
bool network_refused(const option_command *command, const exphil_error *error)
{
    static const char config[] = "exphil_model_config.";
    const char *field = error->message + sizeof config - 1;
    char name[64];
    size_t length = 0;
    if (strncmp(error->message, config, sizeof config - 1) == 0) {
        length = strcspn(field, " ");
        (void)snprintf(name, sizeof name, "%.*s", (int)length, field);
        for (char *c = name; *c; c++)
            if (*c == '_') *c = '-';
    }
    if (!length || !options_find(command, name)) return complain("model", error) == 0;
    fprintf(stderr, "exphil: %s: --%s%s\n", exphil_status_name(error->status), name, field + length);
    return false;
}

/* ---- what a model has ------------------------------------------------------------------------------------------------ */

static bool usual_epsilon(const exphil_model_info *info)
{
    return info->norm_epsilon >= 1e-5 && info->norm_epsilon <= 1e-5;
}

void network_print(const exphil_model_info *info)
{
    if (info->input_width) printf("input width %" PRId64 "\n", info->input_width);
    if (!usual_epsilon(info)) printf("LayerNorms add %g to the variance\n", info->norm_epsilon);
    if (info->no_final_norm) printf("no LayerNorm behind the blocks\n");
    if (info->head_layers)
        printf("every head has %d layer%s of %" PRId64 ", %s%s%s\n", info->head_layers,
               plural(info->head_layers), info->head_units, activations[info->head_activation],
               info->no_head_trunk ? ", without a trunk" : "",
               info->head_last ? ", which see what it chose last" : "");
    if (info->no_head_past) printf("past actions are no term of the logits\n");
}

void network_json(const exphil_model_info *info, json_t *object)
{
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {{"no_final_norm", info->no_final_norm}, {"head_layers", info->head_layers},
                   {"head_units", info->head_units},       {"head_last", info->head_last},
                   {"no_head_past", info->no_head_past},   {"no_head_trunk", info->no_head_trunk},
                   {"input_width", info->input_width}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (numbers[i].value) json_object_set_new(object, numbers[i].name, json_integer(numbers[i].value));
    if (!usual_epsilon(info)) json_object_set_new(object, "norm_epsilon", json_real(info->norm_epsilon));
    if (info->head_activation)
        json_object_set_new(object, "head_activation", json_string(activations[info->head_activation]));
}
