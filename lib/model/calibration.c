/* The comparison that a quantised model carries with it: taken from a host or a file, neither of which is
 * trusted. */
#include "model/calibration.h"

#include <inttypes.h>

#define HEAD_MEMBERS 5
#define MEMBERS      8
#define FRAMES_MOST  (INT64_C(1) << 53) /* whole in every reader of JSON */

/* ---- what may stand there ------------------------------------------------------------------------------ */

static bool possible(double value, double most)
{
    return value >= 0.0 && value <= most && xph_finite(value);
}

static exphil_status out_of_range(const char *where, const char *field, exphil_error *error)
{
    return xph_fail(error, EXPHIL_E_INVALID, "comparison%s: %s is out of range", where, field);
}

/* Errors and divergences are finite and not negative, shares at most 1. */
static exphil_status check_numbers(const char *where, double max_error, double rms_error, double kl,
                                   double agreement, exphil_error *error)
{
    const double most = 1e300;
    if (!possible(max_error, most)) return out_of_range(where, "max_error", error);
    if (!possible(rms_error, most)) return out_of_range(where, "rms_error", error);
    if (!possible(kl, most)) return out_of_range(where, "kl", error);
    return possible(agreement, 1.0) ? EXPHIL_OK : out_of_range(where, "agreement", error);
}

exphil_status xph_calibration_check(const exphil_model *model, const exphil_comparison *c,
                                    exphil_error *error)
{
    if (c->frames < 1 || c->frames > FRAMES_MOST) return out_of_range("", "frames", error);
    if (c->heads != model->shape.heads)
        return xph_fail(error, EXPHIL_E_INVALID, "comparison: heads is %" PRId64 ", the model has %" PRId64,
                        c->heads, model->shape.heads);
    XPH_TRY(check_numbers("", c->max_error, c->rms_error, c->kl, c->agreement, error));
    for (int64_t i = 0; i < c->heads; i++) {
        const exphil_head_comparison *h = &c->head[i];
        char where[16] = ".head[00]";
        where[6] = (char)('0' + i / 10);
        where[7] = (char)('0' + i % 10);
        XPH_TRY(check_numbers(where, h->max_error, h->rms_error, h->kl, h->agreement, error));
    }
    return EXPHIL_OK;
}

static exphil_status set(exphil_model *model, const exphil_comparison *known, exphil_error *error)
{
    XPH_TRY(xph_calibration_check(model, known, error));
    model->calibration = *known;
    for (int64_t i = known->heads; i < EXPHIL_HEADS_MAX; i++)
        model->calibration.head[i] = (exphil_head_comparison){0, 0, 0, 0};
    model->calibrated = true;
    return EXPHIL_OK;
}

exphil_status exphil_model_calibration_set(exphil_model *model, const exphil_comparison *comparison,
                                           exphil_error *error)
{
    XPH_OWN_FPU;
    XPH_TRY(xph_model_check(model, error));
    if (!comparison) return xph_fail(error, EXPHIL_E_INVALID, "comparison is NULL");
    exphil_comparison known = EXPHIL_COMPARISON_INIT;
    XPH_TRY(XPH_TAKE(exphil_comparison, &known, comparison, error));
    if (!model->shape.narrow)
        return xph_fail(error, EXPHIL_E_STATE, "the model is not quantised: there is nothing to calibrate");
    if (!xph_model_alone(model))
        return xph_fail(error, EXPHIL_E_STATE, "the model is in use: its calibration stays as it is");
    return set(model, &known, error);
}

exphil_status exphil_model_calibration_get(const exphil_model *model, exphil_comparison *comparison,
                                           exphil_error *error)
{
    XPH_OWN_FPU;
    XPH_TRY(xph_model_check(model, error));
    if (!comparison) return xph_fail(error, EXPHIL_E_INVALID, "comparison is NULL");
    if (!model->calibrated) return xph_fail(error, EXPHIL_E_STATE, "the model has not been calibrated");
    return XPH_GIVE(exphil_comparison, comparison, &model->calibration, error);
}

/* ---- as text ------------------------------------------------------------------------------------------- */

static void write_numbers(xph_json_out *out, double max_error, double rms_error, double kl, double agreement)
{
    xph_json_add_double(out, "max_error", max_error);
    xph_json_add_double(out, "rms_error", rms_error);
    xph_json_add_double(out, "kl", kl);
    xph_json_add_double(out, "agreement", agreement);
}

void xph_calibration_write(const exphil_model *model, xph_json_out *out)
{
    const exphil_comparison *c = &model->calibration;
    xph_json_open(out, NULL, '{');
    xph_json_add_hex(out, "reference", c->reference_hash);
    xph_json_add_hex(out, "data", c->content_hash);
    xph_json_add_int(out, "frames", c->frames);
    write_numbers(out, c->max_error, c->rms_error, c->kl, c->agreement);
    xph_json_open(out, "heads", '[');
    for (int64_t i = 0; i < c->heads; i++) {
        const exphil_head_comparison *h = &c->head[i];
        xph_json_open(out, NULL, '{');
        xph_json_add_text(out, "name", model->spec->heads[i].name);
        write_numbers(out, h->max_error, h->rms_error, h->kl, h->agreement);
        xph_json_close(out, '}');
    }
    xph_json_close(out, ']');
    xph_json_close(out, '}');
}

static exphil_status check_members(const xph_json *json, int32_t at, int32_t members, exphil_error *error)
{
    if (xph_json_kind(json, at) != XPH_JSON_OBJECT) return xph_json_refuse(json, at, "is no object", error);
    if (xph_json_count(json, at) == members) return EXPHIL_OK;
    return xph_json_refuse(json, at, "has other fields than this version knows", error);
}

static exphil_status read_numbers(const xph_json *json, int32_t at, double *max_error, double *rms_error,
                                  double *kl, double *agreement, exphil_error *error)
{
    XPH_TRY(xph_json_get_double(json, at, "max_error", max_error, error));
    XPH_TRY(xph_json_get_double(json, at, "rms_error", rms_error, error));
    XPH_TRY(xph_json_get_double(json, at, "kl", kl, error));
    return xph_json_get_double(json, at, "agreement", agreement, error);
}

static exphil_status read_head(const exphil_model *model, const xph_json *json, int32_t at, int64_t index,
                               exphil_head_comparison *head, exphil_error *error)
{
    const char *name;
    XPH_TRY(check_members(json, at, HEAD_MEMBERS, error));
    XPH_TRY(xph_json_get_text(json, at, "name", &name, error));
    if (strcmp(name, model->spec->heads[index].name) != 0)
        return xph_json_refuse(json, xph_json_find(json, at, "name"), "is not the name of that head", error);
    return read_numbers(json, at, &head->max_error, &head->rms_error, &head->kl, &head->agreement, error);
}

static exphil_status read_heads(const exphil_model *model, const xph_json *json, exphil_comparison *c,
                                exphil_error *error)
{
    int32_t list;
    XPH_TRY(xph_json_get(json, 0, "heads", XPH_JSON_ARRAY, &list, error));
    if (xph_json_count(json, list) != model->shape.heads)
        return xph_json_refuse(json, list, "has not as many items as the model heads", error);
    for (int32_t at = xph_json_first(json, list); at >= 0; at = xph_json_next(json, at)) {
        XPH_TRY(read_head(model, json, at, c->heads, &c->head[c->heads], error));
        c->heads++;
    }
    return EXPHIL_OK;
}

exphil_status xph_calibration_read(exphil_model *model, const xph_json *json, exphil_error *error)
{
    exphil_comparison c = EXPHIL_COMPARISON_INIT;
    XPH_TRY(check_members(json, 0, MEMBERS, error));
    XPH_TRY(xph_json_get_hex(json, 0, "reference", &c.reference_hash, error));
    XPH_TRY(xph_json_get_hex(json, 0, "data", &c.content_hash, error));
    XPH_TRY(xph_json_get_int(json, 0, "frames", 1, FRAMES_MOST, &c.frames, error));
    XPH_TRY(read_numbers(json, 0, &c.max_error, &c.rms_error, &c.kl, &c.agreement, error));
    XPH_TRY(read_heads(model, json, &c, error));
    return set(model, &c, error);
}
