/* The pieces that imitation behind a live game learns from, each row with a weight. Nothing is ever taken out (aggregation: Ross et
 * al. 2011). */
#include "learn/live.h"

#include "data/data.h"

exphil_status xph_pieces_begin(exphil_context *context, const exphil_spec *spec, xph_pieces *pieces,
                               exphil_error *error)
{
    exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT;
    config.spec = spec;
    *pieces = (xph_pieces){.dataset = NULL};
    return exphil_dataset_create(context, &config, &pieces->dataset, error);
}

void xph_pieces_free(xph_pieces *pieces, exphil_context *context)
{
    if (pieces->dataset) xph_dataset_release(pieces->dataset);
    xph_free(context, pieces->weight, (size_t)pieces->capacity * sizeof *pieces->weight);
    *pieces = (xph_pieces){.dataset = NULL};
}

static exphil_status make_room(xph_pieces *pieces, exphil_context *context, int64_t rows, exphil_error *error)
{
    const int64_t need = pieces->rows + rows;
    int64_t capacity = pieces->capacity ? pieces->capacity : 4096;
    if (need <= pieces->capacity) return EXPHIL_OK;
    while (capacity < need) capacity *= 2;
    const size_t bytes = (size_t)capacity * sizeof(float), old = (size_t)pieces->capacity * sizeof(float);
    float *longer = xph_alloc(context, bytes);
    if (!longer) return xph_no_memory(bytes, error);
    if (pieces->rows) memcpy(longer, pieces->weight, (size_t)pieces->rows * sizeof *longer);
    xph_free(context, pieces->weight, old);
    pieces->weight = longer;
    pieces->capacity = capacity;
    return EXPHIL_OK;
}

exphil_status xph_pieces_add(xph_pieces *pieces, exphil_context *context, int64_t rows, const float *floats,
                             const int32_t *ids, const int32_t *actions, const float *weight,
                             exphil_error *error)
{
    XPH_TRY(make_room(pieces, context, rows, error));
    XPH_TRY(exphil_dataset_add_rows(pieces->dataset, (uint64_t)pieces->count + 1, rows, floats, ids, actions,
                                    error));
    memcpy(pieces->weight + pieces->rows, weight, (size_t)rows * sizeof *weight);
    pieces->rows += rows;
    pieces->count++;
    return EXPHIL_OK;
}
