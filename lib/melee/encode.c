/* The only encoder: replays, live frames and simulators all use it. It walks the tables of a layout over the
 * numbers that gather.c found, and writes the caller's row only if every number is valid. */
#include "melee/layout.h"

#include <math.h>

static float clamp(double value, double low, double high)
{
    double raised = value < low ? low : value; /* two plain choices: no branches */
    return (float)(raised > high ? high : raised);
}

static void set_place(const xph_melee_field *field, double number, float *row)
{
    const int32_t column = xph_melee_place(field, number);
    if (column >= 0) row[field->offset + column] = 1;
}

/* Fills the columns of one section. False: *culprit says which value is not finite. */
static bool fill_section(const xph_melee_section *section, const double *value, float *row, int32_t *ids,
                         const char **culprit)
{
    for (int32_t i = 0; i < section->count; i++) {
        const xph_melee_field *field = &section->fields[i];
        double v = value[field->from];
        switch (field->kind) {
        case XPH_FIELD_NUMBER:
            if (!xph_finite(v)) {
                *culprit = field->trouble;
                return false;
            }
            row[field->offset] = clamp(v * field->scale, field->low, field->high);
            break;
        case XPH_FIELD_FLAG:
            row[field->offset] = v != 0 ? 1.0f : 0.0f;
            break;
        case XPH_FIELD_ONE_HOT:
            set_place(field, v, row);
            break;
        case XPH_FIELD_ID:
            ids[field->offset] = (int32_t)clamp(v, 0, field->high);
            break;
        default:
            break;
        }
    }
    return true;
}

exphil_status xph_melee_encode(const xph_melee_layout *layout, const exphil_melee_frame *frame, float *floats,
                               int32_t *ids, const char **culprit)
{
    float row[XPH_MELEE_FLOATS_MOST];
    int32_t row_ids[EXPHIL_IDS_MAX];
    size_t float_bytes = (size_t)layout->float_count * sizeof *floats;
    size_t id_bytes = (size_t)layout->id_count * sizeof *ids;
    xph_melee_scene scene;
    XPH_TRY(xph_melee_scene_make(frame, &scene, culprit));
    memset(row, 0, float_bytes);
    memset(row_ids, 0, id_bytes);
    for (int32_t i = 0; i < layout->section_count; i++) {
        const xph_melee_section *section = &layout->sections[i];
        double value[XPH_MELEE_VALUES];
        if (!xph_melee_gather(&scene, section->who, value) && !section->fill_absent) continue;
        if (!fill_section(section, value, row, row_ids, culprit)) return EXPHIL_E_NUMERIC;
    }
    memcpy(floats, row, float_bytes);
    if (id_bytes) memcpy(ids, row_ids, id_bytes);
    return EXPHIL_OK;
}

exphil_status exphil_melee_encode(const char *layout, const exphil_melee_frame *frame, float *floats,
                                  int32_t *ids, exphil_error *error)
{
    XPH_OWN_FPU;
    const xph_melee_layout *found = xph_melee_layout_find(layout);
    if (!found) return xph_fail(error, EXPHIL_E_INVALID, "layout \"%s\" is unknown", layout);
    if (!frame) return xph_fail(error, EXPHIL_E_INVALID, "frame is NULL");
    if (!floats) return xph_fail(error, EXPHIL_E_INVALID, "floats is NULL");
    if (!ids && found->id_count) return xph_fail(error, EXPHIL_E_INVALID, "ids is NULL");
    exphil_melee_frame known = EXPHIL_MELEE_FRAME_INIT;
    XPH_TRY(XPH_TAKE(exphil_melee_frame, &known, frame, error));
    const char *culprit = "";
    exphil_status status = xph_melee_encode(found, &known, floats, ids, &culprit);
    return status < 0 ? xph_fail(error, status, "%s", culprit) : status;
}
