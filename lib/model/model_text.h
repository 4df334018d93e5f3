/* A model's configuration as JSON text, in the metadata of its weights. Private to lib/model. */
#ifndef XPH_MODEL_TEXT_H
#define XPH_MODEL_TEXT_H

#include "model/tensor_table.h"

/* What was read. config.spec points to spec, whose texts point into the document. */
typedef struct xph_model_text {
    exphil_model_config config;
    xph_type narrow; /* 0: absent */
    exphil_spec spec;
    exphil_id_spec ids[EXPHIL_IDS_MAX];
    exphil_head_spec heads[EXPHIL_HEADS_MAX];
    exphil_condition_spec conditions[EXPHIL_CONDITIONS_MAX];
    int32_t delays[EXPHIL_DELAYS_MAX];
} xph_model_text;

/* One object; out is open and empty. */
void xph_model_text_write(const exphil_model *model, xph_json_out *out);
/* Every field must be there but weights, which is that of quantised models, neutral_start, conditions and
 * delays and what came after 0.1, which are written where they are used; and no other. Values are checked
 * by whoever makes a model of them. *text is given, because it points into itself. */
exphil_status xph_model_text_read(const xph_json *json, xph_model_text *text, exphil_error *error);

#endif
