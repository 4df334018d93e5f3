/* A quantised model's measured distance from the model it was made from, as text. Private to lib/model. */
#ifndef XPH_MODEL_CALIBRATION_H
#define XPH_MODEL_CALIBRATION_H

#include "model/tensor_table.h"

/* One object; out is open and empty. */
void xph_calibration_write(const exphil_model *model, xph_json_out *out);
/* Every field must be there, and no other, and be possible: EXPHIL_E_FORMAT. Then the model has it. */
exphil_status xph_calibration_read(exphil_model *model, const xph_json *json, exphil_error *error);

#endif
