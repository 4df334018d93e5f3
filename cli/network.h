/* What shapes a new model beside its blocks and its width: options of the commands that make one, and what `exphil info` says. */
#ifndef EXPHIL_CLI_NETWORK_H
#define EXPHIL_CLI_NETWORK_H

#include "options.h"

#include <exphil/exphil.h>

#include <jansson.h>

typedef struct network_options {
    int64_t head_layers, head_units, input_width; /* 0: not given */
    double norm_epsilon;
    const char *activation; /* NULL: SiLU */
    bool no_final_norm, last, no_past, no_trunk;
    int32_t kind; /* EXPHIL_ACTIVATION_... of activation (network_check) */
} network_options;

#define NETWORK_OPTIONS(o)                                                                                   \
  {"head-layers", OPTION_INT, &(o).head_layers, "N",                                                         \
   "hidden layers that every head has of its own, 1 to 4 (default: none, the heads share one layer)"},       \
      {"head-units", OPTION_INT, &(o).head_units, "N", "width of such layers (default: that of the trunk)"}, \
      {"head-activation", OPTION_TEXT, &(o).activation, "NAME",                                              \
       "behind such layers: silu (default), relu or gelu_tanh"},                                             \
      {"head-last", OPTION_FLAG, &(o).last, NULL,                                                            \
       "the first such layer sees what its head chose in the newest past action (default: it does not)"},    \
      {"no-head-trunk", OPTION_FLAG, &(o).no_trunk, NULL,                                                    \
       "such layers see what the blocks give (default: the trunk, a linear of all heads)"},                  \
      {"no-head-past", OPTION_FLAG, &(o).no_past, NULL,                                                      \
       "past actions are inputs of the network only (default: of the logits, too)"},                         \
      {"no-final-norm", OPTION_FLAG, &(o).no_final_norm, NULL,                                               \
       "no LayerNorm behind the last block (default: there is one)"},                                        \
      {"norm-epsilon", OPTION_NUMBER, &(o).norm_epsilon, "X",                                                \
       "what every LayerNorm adds to the variance (default 0.00001)"},                                       \
  {                                                                                                          \
    "input-width", OPTION_INT, &(o).input_width, "N",                                                        \
        "width in front of the first lstm_only, gru_only or dense, which then reads it (default: --hidden)"  \
  }
/* The names of these. */
#define NETWORK_NAMES                                                                                        \
  "head-layers", "head-units", "head-activation", "head-last", "no-head-trunk", "no-head-past",              \
      "no-final-norm", "norm-epsilon", "input-width"

/* Do they go together? past: are there past actions as inputs? If not, says on stderr what is wrong. */
bool network_check(const option_command *command, network_options *o, bool past);
void network_fill(const network_options *o, exphil_model_config *config);
/* Says why there can be no such model, by the option where it is one; returns false. */
bool network_refused(const option_command *command, const exphil_error *error);

/* What is not the usual, as lines and as members of the names that a weights file has. */
void network_print(const exphil_model_info *info);
void network_json(const exphil_model_info *info, json_t *object);

#endif
