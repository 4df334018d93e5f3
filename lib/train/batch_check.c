/* Batches that a host made itself: shape, arrays, and the range of every value. Those of a prefetcher were checked when
 * their rows were added. */
#include "train/train.h"

static exphil_status check_batch(const exphil_model *model, const exphil_batch *batch, exphil_error *error)
{
    const xph_model_shape *shape = xph_model_shape_of(model);
    if (batch->batch < 1 || batch->time < 1 || batch->batch > 4096 || batch->time > 65536)
        return xph_fail(error, EXPHIL_E_INVALID, "batch: %lld x %lld is out of range",
                        (long long)batch->batch, (long long)batch->time);
    if (shape->mode == EXPHIL_MODE_WINDOW && batch->time != shape->window)
        return xph_fail(error, EXPHIL_E_MISMATCH, "batch: time is %lld, the model's window is %lld",
                        (long long)batch->time, (long long)shape->window);
    const char *missing = shape->floats && !batch->floats     ? "floats"
                          : shape->ids && !batch->ids         ? "ids"
                          : shape->told && !batch->conditions ? "conditions"
                          : shape->slots && !batch->past      ? "past"
                          : !batch->actions                   ? "actions"
                          : !batch->mask                      ? "mask"
                          : !batch->reset                     ? "reset"
                                                              : NULL;
    if (missing) return xph_fail(error, EXPHIL_E_INVALID, "batch: %s is NULL", missing);
    return EXPHIL_OK;
}

/* The delay of a row that counts must be one; padding has none. */
static exphil_status check_told(const exphil_model *model, const exphil_batch *batch, int64_t r,
                                exphil_error *error)
{
    const xph_told *told = xph_model_told(model);
    int64_t columns = xph_told_columns(told);
    for (int64_t i = 0; i < columns; i++) {
        bool delay = i == told->conditions;
        int32_t value = batch->conditions[r * columns + i], least = delay && batch->mask[r] > 0.0f,
                most = xph_told_entries(told, i) - 1;
        if (value < least || value > most)
            return xph_fail(error, EXPHIL_E_INVALID, "batch: conditions[%lld] %s is %d, outside %d..%d",
                            (long long)r, delay ? "delay" : told->condition[i].name, (int)value, (int)least,
                            (int)most);
    }
    return EXPHIL_OK;
}

static exphil_status check_values(const exphil_model *model, const exphil_batch *batch, exphil_error *error)
{
    const exphil_spec *spec = xph_model_spec(model);
    int64_t rows = batch->batch * batch->time, slots = xph_model_shape_of(model)->slots;
    int64_t bad = xph_find_not_finite(batch->floats, rows * spec->float_count);
    if (bad >= 0)
        return xph_fail(error, EXPHIL_E_NUMERIC, "batch: floats[%lld][%lld] is not finite",
                        (long long)(bad / spec->float_count), (long long)(bad % spec->float_count));
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < spec->id_count; i++) {
            int32_t id = batch->ids[r * spec->id_count + i];
            if (id < 0 || id >= spec->ids[i].entries)
                return xph_fail(error, EXPHIL_E_INVALID, "batch: ids[%lld] %s is %d, outside 0..%d",
                                (long long)r, spec->ids[i].name, id, spec->ids[i].entries - 1);
        }
        XPH_TRY(check_told(model, batch, r, error));
        XPH_TRY(xph_action_check(spec, &batch->actions[r * spec->head_count], r, error));
        for (int64_t s = 0; s < slots; s++)
            XPH_TRY(xph_action_check(spec, &batch->past[(r * slots + s) * spec->head_count], r, error));
        if (!(batch->mask[r] >= 0.0f && batch->mask[r] <= 1e6f))
            return xph_fail(error, EXPHIL_E_INVALID, "batch: mask[%lld] is negative or not finite",
                            (long long)r);
    }
    return EXPHIL_OK;
}

exphil_status xph_batch_check(const exphil_model *model, const exphil_batch *batch, exphil_error *error)
{
    XPH_TRY(check_batch(model, batch, error));
    return check_values(model, batch, error);
}
