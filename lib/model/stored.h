/* The tensors of a model as a weights file holds them. Private to lib/model. */
#ifndef XPH_MODEL_STORED_H
#define XPH_MODEL_STORED_H

#include "model/tensor_table.h"

/* What is written: arrays that point into the host's copy of the arena and into a block of their own. */
typedef struct xph_stored {
    exphil_context *context;
    xph_array *array;
    char (*name)[XPH_TENSORS_NAME]; /* of the scales */
    unsigned char *block;
    int64_t count, scales;
    size_t array_bytes, name_bytes, block_bytes;
} xph_stored;

/* host: the whole arena, whose narrow tensors are rounded. *stored needs xph_stored_free also after a
 * failure. */
exphil_status xph_stored_make(const exphil_model *model, const void *host, xph_stored *stored,
                              exphil_error *error);
void xph_stored_free(xph_stored *stored);

/* Exactly the tensors of this model, of its types and shapes: EXPHIL_E_FORMAT names the tensor. No data is
 * looked at. */
exphil_status xph_stored_check_shapes(const exphil_model *model, const xph_tensors *file,
                                      exphil_error *error);
/* Then: finite, and rounded where the model is. EXPHIL_E_FORMAT or EXPHIL_E_NUMERIC names tensor and
 * element. */
exphil_status xph_stored_check_values(const exphil_model *model, const xph_tensors *file,
                                      exphil_error *error);
/* The values of tensor `index` in the type of the model, from a file that was checked: where they lie in
 * the file, or put into buffer[count] if they are stored otherwise. */
const void *xph_stored_values(const exphil_model *model, int64_t index, const xph_tensors *file,
                              void *buffer);

#endif
