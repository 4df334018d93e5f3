/* What imitation behind a live game learns from: the host's rows, and behind them those of pieces, each with a weight. Nothing is
 * ever taken out (aggregation: Ross et al. 2011). */
#include "learn/live.h"

#include "data/data.h"

exphil_status xph_pieces_begin(exphil_context *context, const exphil_dataset *dataset,
                               const exphil_spec *spec, xph_pieces *pieces, exphil_error *error)
{
    exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT;
    config.spec = spec;
    *pieces = (xph_pieces){.dataset = NULL};
    XPH_TRY(dataset ? xph_dataset_snapshot(dataset, &pieces->dataset, error)
                    : exphil_dataset_create(context, &config, &pieces->dataset, error));
    pieces->base = xph_dataset_frames(pieces->dataset);
    return EXPHIL_OK;
}

void xph_pieces_free(xph_pieces *pieces, exphil_context *context)
{
    if (pieces->dataset) xph_dataset_release(pieces->dataset);
    xph_free(context, pieces->weight, (size_t)pieces->capacity * sizeof *pieces->weight);
    *pieces = (xph_pieces){.dataset = NULL};
}

static exphil_status make_room(xph_pieces *pieces, exphil_context *context, int64_t rows, exphil_error *error)
{
    const int64_t need = pieces->weights + rows;
    int64_t capacity = pieces->capacity ? pieces->capacity : 4096;
    if (need <= pieces->capacity) return EXPHIL_OK;
    while (capacity < need) capacity *= 2;
    const size_t bytes = (size_t)capacity * sizeof(float), old = (size_t)pieces->capacity * sizeof(float);
    float *longer = xph_alloc(context, bytes);
    if (!longer) return xph_no_memory(bytes, error);
    if (pieces->weights) memcpy(longer, pieces->weight, (size_t)pieces->weights * sizeof *longer);
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
    for (int64_t i = 0; i < rows; i++) {
        pieces->weight[pieces->weights + i] = weight[i];
        pieces->sum += (double)weight[i];
    }
    pieces->weights += rows;
    pieces->count++;
    return EXPHIL_OK;
}
