/* Values of single tensors, on the host. Private to lib/model. */
#ifndef XPH_MODEL_TENSORS_H
#define XPH_MODEL_TENSORS_H

#include "model/tensor_table.h"

/* Index of the first of count values that is not finite, -1: all are. data may have any alignment. */
int64_t xph_first_bad(xph_type type, const void *data, int64_t count);
/* The tensor of a public call: model and name checked, EXPHIL_E_INVALID for a name the model does not
 * have. */
exphil_status xph_named_param(const exphil_model *model, const char *name, const xph_param **param,
                              exphil_error *error);
/* Puts values in the type of the model there, if they are finite and nothing else uses the model. */
exphil_status xph_param_set(exphil_model *model, const xph_param *param, const void *data,
                            exphil_error *error);

#endif
