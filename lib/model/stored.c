/* How tensors lie in a weights file: in the type of the model, except that the rounded matrices of a
 * quantised model are stored as the numbers they consist of, BF16 or I8 with "<name>.scale", one F32 per row.
 * A file holds only numbers that rounding makes (lib/device/backend.h): it then packs to the bits it was
 * saved from, and is saved again as it was. */
#include "model/stored.h"

#include "model/tensors.h"

#include <inttypes.h>
#include <stdio.h>

#define LABEL          "weights"
#define SCALE_SUFFIX   ".scale"
#define SMALLEST_BF16  0x1p-50f  /* what is smaller is 0 */
#define SMALLEST_SCALE 0x1p-100f /* of a row that is not all 0 */
#define LARGEST_SCALE  0x1p120f

/* By xph_type. */
static const int32_t dtype_of[] = {[XPH_F32] = XPH_DTYPE_F32,
                                   [XPH_F64] = XPH_DTYPE_F64,
                                   [XPH_BF16] = XPH_DTYPE_BF16,
                                   [XPH_I8] = XPH_DTYPE_I8};

static int32_t dtype_wanted(const exphil_model *model, int64_t index)
{
    xph_type narrow = xph_model_narrow(model, index);
    return dtype_of[narrow ? narrow : model->shape.type];
}

static uint32_t bits_at(const void *data, int64_t i)
{
    uint32_t bits;
    memcpy(&bits, (const unsigned char *)data + (size_t)i * sizeof bits, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void scale_name(char name[XPH_TENSORS_NAME], const xph_param *param)
{
    snprintf(name, XPH_TENSORS_NAME, "%.*s" SCALE_SUFFIX, (int)(XPH_TENSORS_NAME - sizeof SCALE_SUFFIX),
             param->name);
}

/* ---- writing ------------------------------------------------------------------------------------------- */

static float row_largest(const float *row, int64_t in)
{
    float largest = 0.0f;
    for (int64_t k = 0; k < in; k++) {
        float size = row[k] < 0.0f ? -row[k] : row[k];
        largest = size > largest ? size : largest;
    }
    return largest;
}

/* The largest of a rounded row is 127 scales, so the quotient is exact, and so are all others. */
static float row_scale(float largest)
{
    if (largest > 127.0f * SMALLEST_SCALE) return largest / 127.0f;
    return largest > 0.0f ? SMALLEST_SCALE : 1.0f;
}

static void store_i8(const xph_param *param, const float *from, int8_t *q, float *scale)
{
    int64_t out = param->dim[0], in = param->dim[1];
    for (int64_t r = 0; r < out; r++) {
        const float *row = from + r * in;
        scale[r] = row_scale(row_largest(row, in));
        for (int64_t k = 0; k < in; k++) q[r * in + k] = (int8_t)(row[k] / scale[r]);
    }
}

static void store_bf16(const xph_param *param, const float *from, uint16_t *q)
{
    for (int64_t i = 0; i < param->count; i++) q[i] = (uint16_t)(bits_at(from, i) >> 16);
}

/* Bytes of the numbers, rounded up so that scales may stand behind them. */
static size_t numbers_bytes(xph_type narrow, const xph_param *param)
{
    size_t each = narrow == XPH_I8 ? sizeof(int8_t) : sizeof(uint16_t);
    return ((size_t)param->count * each + 3) & ~(size_t)3;
}

static exphil_status make_buffers(const exphil_model *model, xph_stored *stored, exphil_error *error)
{
    int64_t scales = 0;
    size_t bytes = 4;
    for (int64_t i = 0; i < model->tensor_count; i++) {
        const xph_param *param = xph_model_param(model, i);
        xph_type narrow = xph_model_narrow(model, i);
        if (!narrow) continue;
        bytes += numbers_bytes(narrow, param);
        if (narrow == XPH_I8) bytes += (size_t)param->dim[0] * sizeof(float);
        scales += narrow == XPH_I8;
    }
    stored->array_bytes = (size_t)(model->tensor_count + scales) * sizeof *stored->array;
    stored->name_bytes = (size_t)(scales + 1) * sizeof *stored->name;
    stored->block_bytes = bytes;
    stored->array = xph_alloc(stored->context, stored->array_bytes);
    stored->name = xph_alloc(stored->context, stored->name_bytes);
    stored->block = xph_alloc(stored->context, stored->block_bytes);
    if (stored->array && stored->name && stored->block) return EXPHIL_OK;
    return xph_no_memory(stored->array_bytes + stored->name_bytes + stored->block_bytes, error);
}

/* A rounded matrix: its numbers go to *at, which moves behind them. */
static void add_narrow(xph_stored *stored, xph_array *array, const xph_param *param, unsigned char **at)
{
    bool scaled = array->dtype == XPH_DTYPE_I8;
    const float *values = array->data;
    unsigned char *q = *at, *behind = q + numbers_bytes(scaled ? XPH_I8 : XPH_BF16, param);
    array->data = q;
    array->bytes = (size_t)param->count * (scaled ? sizeof(int8_t) : sizeof(uint16_t));
    *at = behind;
    if (!scaled) {
        store_bf16(param, values, (uint16_t *)(void *)q);
        return;
    }
    char *name = stored->name[stored->scales++];
    scale_name(name, param);
    stored->array[stored->count++] = (xph_array){.name = name,
                                                 .dtype = XPH_DTYPE_F32,
                                                 .rank = 1,
                                                 .dim = {param->dim[0], 1, 1, 1},
                                                 .data = behind,
                                                 .bytes = (size_t)param->dim[0] * sizeof(float)};
    store_i8(param, values, (int8_t *)(void *)q, (float *)(void *)behind);
    *at = behind + (size_t)param->dim[0] * sizeof(float);
}

exphil_status xph_stored_make(const exphil_model *model, const void *host, xph_stored *stored,
                              exphil_error *error)
{
    *stored = (xph_stored){.context = model->context};
    XPH_TRY(make_buffers(model, stored, error));
    unsigned char *at = stored->block;
    for (int64_t i = 0; i < model->tensor_count; i++) {
        const xph_param *param = xph_model_param(model, i);
        xph_array *array = &stored->array[stored->count++];
        *array = (xph_array){.name = param->name, .dtype = dtype_wanted(model, i), .rank = param->rank};
        for (int32_t d = 0; d < XPH_TENSORS_RANK; d++) array->dim[d] = d < param->rank ? param->dim[d] : 1;
        array->data = (const char *)host + (size_t)param->offset * model->shape.real_bytes;
        array->bytes = (size_t)param->count * model->shape.real_bytes;
        if (xph_model_narrow(model, i)) add_narrow(stored, array, param, &at);
    }
    return EXPHIL_OK;
}

void xph_stored_free(xph_stored *stored)
{
    xph_free(stored->context, stored->array, stored->array_bytes);
    xph_free(stored->context, stored->name, stored->name_bytes);
    xph_free(stored->context, stored->block, stored->block_bytes);
}

/* ---- checking ------------------------------------------------------------------------------------------ */

static exphil_status check_array(const xph_array *array, const char *name, int32_t dtype, int32_t rank,
                                 const int64_t *dim, exphil_error *error)
{
    if (!array) return xph_fail(error, EXPHIL_E_FORMAT, LABEL ": tensor \"%s\" is missing", name);
    if (array->dtype != dtype) {
        return xph_fail(error, EXPHIL_E_FORMAT, LABEL ": tensor \"%s\" is %s, the model is %s", name,
                        xph_dtype_name(array->dtype), xph_dtype_name(dtype));
    }
    bool same = array->rank == rank;
    for (int32_t d = 0; same && d < rank; d++) same = array->dim[d] == dim[d];
    if (same) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_FORMAT,
                    LABEL ": tensor \"%s\" has %d dimensions [%" PRId64 ",%" PRId64
                          ",...], the model needs %d [%" PRId64 ",%" PRId64 ",...]",
                    name, (int)array->rank, array->dim[0], array->dim[1], (int)rank, dim[0],
                    rank > 1 ? dim[1] : 1);
}

static exphil_status not_finite(const char *name, int64_t element, exphil_error *error)
{
    return xph_fail(error, EXPHIL_E_NUMERIC, LABEL ": tensor \"%s\" is not finite at element %" PRId64, name,
                    element);
}

static exphil_status check_bf16(const xph_array *array, int64_t count, exphil_error *error)
{
    for (int64_t i = 0; i < count; i++) {
        uint16_t half;
        memcpy(&half, (const unsigned char *)array->data + (size_t)i * sizeof half, sizeof half);
        if ((half & 0x7F80) == 0x7F80) return not_finite(array->name, i, error);
        float size = float_of((uint32_t)(half & 0x7FFF) << 16);
        if (half && size < SMALLEST_BF16)
            return xph_fail(error, EXPHIL_E_FORMAT,
                            LABEL ": tensor \"%s\" is below 2^-50 at element %" PRId64 ", but not 0",
                            array->name, i);
    }
    return EXPHIL_OK;
}

/* Positive, of 16 significant bits, neither too small nor too large. */
static exphil_status check_scale(const xph_array *scale, int64_t row, exphil_error *error)
{
    uint32_t bits = bits_at(scale->data, row);
    float value = float_of(bits);
    if ((bits & 0x7F800000) == 0x7F800000) return not_finite(scale->name, row, error);
    const char *what = bits >> 31 || bits == 0  ? "not positive"
                       : value < SMALLEST_SCALE ? "below 2^-100"
                       : value > LARGEST_SCALE  ? "above 2^120"
                       : bits & 0xFF            ? "of more than 16 significant bits"
                                                : NULL;
    if (!what) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_FORMAT, LABEL ": tensor \"%s\" is %s at element %" PRId64, scale->name,
                    what, row);
}

/* A scale that is larger than its row needs would become another one when the row is rounded. */
static exphil_status check_row(const xph_array *array, const xph_array *scale, int64_t row, int64_t in,
                               exphil_error *error)
{
    const int8_t *q = (const int8_t *)array->data + row * in;
    int32_t largest = 0;
    XPH_TRY(check_scale(scale, row, error));
    for (int64_t k = 0; k < in; k++) {
        int32_t size = q[k] < 0 ? -q[k] : q[k];
        if (size > 127)
            return xph_fail(error, EXPHIL_E_FORMAT, LABEL ": tensor \"%s\" is -128 at element %" PRId64,
                            array->name, row * in + k);
        largest = size > largest ? size : largest;
    }
    float value = float_of(bits_at(scale->data, row));
    if (largest ? largest == 127 || value == SMALLEST_SCALE : value == 1.0f) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_FORMAT,
                    LABEL ": tensor \"%s\" has no scale of this size at element %" PRId64
                          ": the largest of the row is %d, not 127",
                    scale->name, row, (int)largest);
}

static exphil_status check_i8(const xph_param *param, const xph_array *array, const xph_tensors *file,
                              exphil_error *error)
{
    char name[XPH_TENSORS_NAME];
    scale_name(name, param);
    const xph_array *scale = xph_tensors_find(file, name);
    for (int64_t r = 0; r < param->dim[0]; r++) XPH_TRY(check_row(array, scale, r, param->dim[1], error));
    return EXPHIL_OK;
}

static exphil_status check_values(const exphil_model *model, int64_t index, const xph_array *array,
                                  const xph_tensors *file, exphil_error *error)
{
    const xph_param *param = xph_model_param(model, index);
    xph_type narrow = xph_model_narrow(model, index);
    if (narrow == XPH_I8) return check_i8(param, array, file, error);
    if (narrow == XPH_BF16) return check_bf16(array, param->count, error);
    int64_t bad = xph_first_bad(model->shape.type, array->data, param->count);
    return bad < 0 ? EXPHIL_OK : not_finite(param->name, bad, error);
}

/* Is this the scale of one of the model's matrices? */
static bool is_scale(const exphil_model *model, const char *name)
{
    char wanted[XPH_TENSORS_NAME];
    for (int64_t i = 0; i < model->tensor_count; i++) {
        if (xph_model_narrow(model, i) != XPH_I8) continue;
        scale_name(wanted, xph_model_param(model, i));
        if (strcmp(wanted, name) == 0) return true;
    }
    return false;
}

exphil_status xph_stored_check_shapes(const exphil_model *model, const xph_tensors *file, exphil_error *error)
{
    char scale[XPH_TENSORS_NAME];
    for (int64_t i = 0; i < model->tensor_count; i++) {
        const xph_param *param = xph_model_param(model, i);
        const xph_array *array = xph_tensors_find(file, param->name);
        XPH_TRY(check_array(array, param->name, dtype_wanted(model, i), param->rank, param->dim, error));
        if (xph_model_narrow(model, i) != XPH_I8) continue;
        scale_name(scale, param);
        XPH_TRY(check_array(xph_tensors_find(file, scale), scale, XPH_DTYPE_F32, 1, param->dim, error));
    }
    for (int64_t i = 0; i < file->count; i++) {
        const char *name = file->tensor[i].name;
        if (xph_model_find(model, name) >= 0 || is_scale(model, name)) continue;
        return xph_fail(error, EXPHIL_E_FORMAT, LABEL ": tensor \"%s\" is not one of the model's", name);
    }
    return EXPHIL_OK;
}

exphil_status xph_stored_check_values(const exphil_model *model, const xph_tensors *file, exphil_error *error)
{
    for (int64_t i = 0; i < model->tensor_count; i++) {
        const xph_array *array = xph_tensors_find(file, xph_model_param(model, i)->name);
        XPH_TRY(check_values(model, i, array, file, error));
    }
    return EXPHIL_OK;
}

/* ---- reading ------------------------------------------------------------------------------------------- */

static void read_bf16(const xph_param *param, const void *data, float *to)
{
    for (int64_t i = 0; i < param->count; i++) {
        uint16_t half;
        memcpy(&half, (const unsigned char *)data + (size_t)i * sizeof half, sizeof half);
        to[i] = float_of((uint32_t)half << 16);
    }
}

static void read_i8(const xph_param *param, const void *data, const void *scales, float *to)
{
    const int8_t *q = data;
    for (int64_t r = 0; r < param->dim[0]; r++) {
        float scale = float_of(bits_at(scales, r));
        for (int64_t k = 0; k < param->dim[1]; k++)
            to[r * param->dim[1] + k] = scale * (float)q[r * param->dim[1] + k];
    }
}

const void *xph_stored_values(const exphil_model *model, int64_t index, const xph_tensors *file, void *buffer)
{
    const xph_param *param = xph_model_param(model, index);
    const void *data = xph_tensors_find(file, param->name)->data;
    xph_type narrow = xph_model_narrow(model, index);
    char name[XPH_TENSORS_NAME];
    if (!narrow) return data;
    scale_name(name, param);
    if (narrow == XPH_I8)
        read_i8(param, data, xph_tensors_find(file, name)->data, buffer);
    else
        read_bf16(param, data, buffer);
    return buffer;
}
