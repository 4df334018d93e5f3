/* The dimensions and arrays of a call: what describing functions say, and what is wrong with it. */
#include "ops/ops.h"

_Static_assert(sizeof(exphil_input) == sizeof(exphil_output), "both are looked at as the first");

#define MOST ((int64_t)1 << 44)

/* ---- dimensions ------------------------------------------------------------------------------------------ */

int64_t xph_times(int64_t a, int64_t b)
{
    if (a < 0 || b < 0) return -1;
    return a > 0 && b > MOST / a ? MOST + 1 : a * b;
}

void xph_take_count(xph_call *call, const char *name, int64_t value, int64_t least, int64_t most)
{
    if (value >= least && value <= most) return;
    xph_call_fail(call, EXPHIL_E_INVALID, "%s: %s is %lld, must be %lld..%lld", call->name, name,
                  (long long)value, (long long)least, (long long)most);
}

void xph_take_real(xph_call *call, const char *name, double value, double least, double most)
{
    char text[3][XPH_DOUBLE_TEXT];
    if (xph_finite(value) && value >= least && value <= most) return;
    xph_call_fail(call, EXPHIL_E_INVALID, "%s: %s is %s, must be %s..%s", call->name, name,
                  xph_format_double(text[0], value, 6), xph_format_double(text[1], least, 6),
                  xph_format_double(text[2], most, 6));
}

void xph_take_reserved(xph_call *call, int32_t value)
{
    if (!value) return;
    xph_call_fail(call, EXPHIL_E_INVALID, "%s: reserved is %d, must be 0", call->name, (int)value);
}

void xph_take_frames(xph_call *call, int64_t batch, int64_t frames, int64_t of_a_frame)
{
    xph_take_count(call, "batch", batch, 0, MOST);
    xph_take_count(call, "frames", frames, 0, MOST);
    if (call->status < 0) return;
    /* without frames there still are states and weights */
    int64_t all = xph_times(xph_times(batch > 1 ? batch : 1, frames > 1 ? frames : 1), of_a_frame);
    if (all > MOST)
        xph_call_fail(call, EXPHIL_E_INVALID,
                      "%s: batch %lld, frames %lld and its other dimensions give more than 2^44 elements",
                      call->name, (long long)batch, (long long)frames);
    call->batch = batch;
    call->frames = frames;
}

/* ---- tensors --------------------------------------------------------------------------------------------- */

void xph_tensor_begin(xph_call *call, int32_t layout, int64_t width, uint32_t flags, void *slot, int64_t *ld)
{
    call->tensor[call->tensors++] = (xph_tensor){
        .slot = slot, .ld = ld, .width = width, .layout = layout, .flags = flags, .first = call->arrays};
}

static int64_t or_else(int64_t stride, int64_t dense)
{
    return stride ? stride : dense;
}

/* The strides that a matrix or vector has not are not looked at. */
void xph_array_add(xph_call *call, const char *name, const void *field, uint32_t access, int64_t batch,
                   int64_t frames, int64_t columns)
{
    exphil_input given;
    memcpy(&given, field, sizeof given);
    xph_array *array = &call->array[call->arrays++];
    *array = (xph_array){.name = name,
                         .data = (unsigned char *)(uintptr_t)given.data,
                         .count = {batch, frames, columns},
                         .element = call->element,
                         .access = access};
    array->stride[2] = or_else(given.column_stride, 1);
    array->stride[1] = xph_times(columns, array->stride[2]);
    if (frames > 1) array->stride[1] = or_else(given.frame_stride, array->stride[1]);
    array->stride[0] = xph_times(frames, array->stride[1]);
    if (batch > 1) array->stride[0] = or_else(given.batch_stride, array->stride[0]);
    xph_tensor *tensor = &call->tensor[call->tensors - 1];
    tensor->parts++;
    if (given.data) tensor->given = true;
}

static int single(xph_call *call, const char *name, const void *field, uint32_t access,
                  const int64_t count[3])
{
    xph_array_add(call, name, field, access, count[0], count[1], count[2]);
    return call->tensors - 1;
}

int xph_take_rows(xph_call *call, const char *name, const void *field, uint32_t access, uint32_t flags,
                  int64_t width, void *slot, int64_t *ld)
{
    xph_tensor_begin(call, XPH_ROWS, width, flags, slot, ld);
    return single(call, name, field, access, (const int64_t[]){call->batch, call->frames, width});
}

int xph_take_matrix(xph_call *call, const char *name, const void *field, uint32_t access, uint32_t flags,
                    int64_t rows, int64_t columns, void *slot)
{
    xph_tensor_begin(call, XPH_DENSE, xph_times(rows, columns), flags, slot, NULL);
    return single(call, name, field, access, (const int64_t[]){1, rows, columns});
}

int xph_take_state(xph_call *call, const char *name, const void *field, uint32_t access, int64_t rows,
                   int64_t columns, void *slot)
{
    xph_tensor_begin(call, XPH_STATES, xph_times(rows, columns), 0, slot, NULL);
    return single(call, name, field, access, (const int64_t[]){call->batch, rows, columns});
}

void xph_take_reset(xph_call *call, const exphil_input *field, const uint8_t **slot)
{
    xph_tensor_begin(call, XPH_DENSE, xph_times(call->batch, call->frames), 0, (void *)slot, NULL);
    xph_array_add(call, "reset", field, XPH_READ, call->batch, call->frames, 1);
    call->array[call->arrays - 1].element = 1;
}

void xph_take_saved(xph_call *call, void *data, size_t bytes, int64_t count, bool backward, void *slot)
{
    const exphil_output all = {.data = data};
    call->saved = count;
    xph_tensor_begin(call, XPH_DENSE, count, 0, slot, NULL);
    xph_array_add(call, "saved", &all, backward ? XPH_READ | XPH_REQUIRED | XPH_LATE : XPH_WRITE, 1, 1,
                  count);
    if (data && bytes / (size_t)call->element < (size_t)count)
        xph_call_fail(call, EXPHIL_E_INVALID, "%s: saved_bytes is %zu, must be %lld or more", call->name,
                      bytes, (long long)count * call->element);
}

void xph_take_absent(xph_call *call, const char *gradient, const exphil_output *field, const char *name,
                     const exphil_input *of)
{
    if (field->data && !of->data)
        xph_call_fail(call, EXPHIL_E_INVALID, "%s: %s must be NULL, because %s is", call->name, gradient,
                      name);
}

/* ---- checks ---------------------------------------------------------------------------------------------- */

static const char *const stride_names[3] = {"batch_stride", "frame_stride", "column_stride"};

static exphil_status too_far(xph_call *call, const xph_array *a)
{
    return xph_call_fail(call, EXPHIL_E_INVALID,
                         "%s: %s with strides %lld, %lld, %lld reaches beyond any memory", call->name,
                         a->name, (long long)a->stride[0], (long long)a->stride[1], (long long)a->stride[2]);
}

static exphil_status measure(xph_call *call, xph_array *a)
{
    size_t reach = 0, step;
    for (int i = 0; i < 3; i++) {
        if (a->count[i] <= 1) continue;
        if (a->stride[i] < 1)
            return xph_call_fail(call, EXPHIL_E_INVALID, "%s: %s.%s is %lld, must be 0 or more", call->name,
                                 a->name, stride_names[i], (long long)a->stride[i]);
        if (!xph_size_mul((size_t)a->stride[i], (size_t)(a->count[i] - 1), &step) ||
            !xph_size_add(reach, step, &reach))
            return too_far(call, a);
    }
    if (!xph_size_add(reach, 1, &reach) || !xph_size_mul(reach, (size_t)a->element, &reach) ||
        reach > (size_t)PTRDIFF_MAX)
        return too_far(call, a);
    a->reach = reach;
    return EXPHIL_OK;
}

/* Dimensions from the smallest stride to the largest; those of one element have none. */
static int ascending(const xph_array *a, int order[3])
{
    int count = 0;
    for (int i = 0; i < 3; i++) {
        if (a->count[i] <= 1) continue;
        int at = count++;
        for (; at > 0 && a->stride[order[at - 1]] > a->stride[i]; at--) order[at] = order[at - 1];
        order[at] = i;
    }
    return count;
}

static exphil_status elements_apart(xph_call *call, const xph_array *a)
{
    int order[3], count = ascending(a, order);
    int64_t reach = 1;
    for (int i = 0; i < count; i++) {
        const int64_t stride = a->stride[order[i]];
        if (stride < reach)
            return xph_call_fail(call, EXPHIL_E_INVALID,
                                 "%s: elements of %s overlap: %s is %lld, must be %lld or more", call->name,
                                 a->name, stride_names[order[i]], (long long)stride, (long long)reach);
        reach += (a->count[order[i]] - 1) * stride;
    }
    return EXPHIL_OK;
}

static exphil_status address(xph_call *call, const xph_array *a)
{
    const uintptr_t at = (uintptr_t)a->data;
    if (at % (uintptr_t)a->element)
        return xph_call_fail(call, EXPHIL_E_INVALID,
                             "%s: the address of %s is %#llx, must be a multiple of %d", call->name, a->name,
                             (unsigned long long)at, (int)a->element);
    return a->reach > UINTPTR_MAX - at ? too_far(call, a) : EXPHIL_OK;
}

exphil_status xph_arrays_check(xph_call *call, bool looks)
{
    for (int i = 0; i < call->arrays; i++) {
        xph_array *a = &call->array[i];
        if (a->count[0] == 0 || a->count[1] == 0 || a->count[2] == 0) continue;
        if (!a->data) {
            if (a->access & XPH_REQUIRED && (looks || !(a->access & XPH_LATE)))
                return xph_call_fail(call, EXPHIL_E_INVALID, "%s: %s is NULL", call->name, a->name);
            continue;
        }
        XPH_TRY(measure(call, a));
        if (a->access & XPH_WRITE) XPH_TRY(elements_apart(call, a));
        if (looks) XPH_TRY(address(call, a));
    }
    return EXPHIL_OK;
}
