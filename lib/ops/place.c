/* Which tensors the kernel can use where they are, and where in the workspace the others go. */
#include "ops/ops.h"

static int64_t rows_of(const xph_call *call, const xph_tensor *t)
{
    if (t->layout == XPH_DENSE) return 1;
    return t->layout == XPH_STATES ? call->batch : call->batch * call->frames;
}

/* ---- used where they are --------------------------------------------------------------------------------- */

static bool columns_together(const xph_array *a)
{
    return a->count[2] <= 1 || a->stride[2] == 1;
}

/* Rows evenly apart, so far. */
static bool rows_even(const xph_array *a, int64_t width, int64_t *ld)
{
    *ld = width;
    if (!columns_together(a)) return false;
    if (a->count[1] > 1) *ld = a->stride[1];
    if (a->count[1] <= 1 && a->count[0] > 1) *ld = a->stride[0];
    return a->count[0] <= 1 || a->count[1] <= 1 || a->stride[0] == a->count[1] * a->stride[1];
}

/* What is in one batch entry lies together, and the next one `width` further. */
static bool dense(const xph_array *a, int64_t width)
{
    if (!columns_together(a) || (a->count[1] > 1 && a->stride[1] != a->count[2])) return false;
    return a->count[0] <= 1 || a->stride[0] == width;
}

static bool usable(const xph_array *a, const xph_tensor *t, int64_t *ld)
{
    *ld = t->width;
    if (t->layout == XPH_ROWS) return rows_even(a, t->width, ld);
    return dense(a, t->layout == XPH_STATES ? t->width : a->count[1] * a->count[2]);
}

/* Elements that an array adds to a row of its tensor. */
static int64_t share_of(const xph_tensor *t, const xph_array *a)
{
    return t->layout == XPH_ROWS ? a->count[2] : a->count[1] * a->count[2];
}

/* All arrays are there, in one matrix, side by side. */
static bool side_by_side(const xph_call *call, const xph_tensor *t, int64_t *ld)
{
    const xph_array *first = &call->array[t->first];
    int64_t columns = 0, distance;
    for (int i = 0; i < t->parts; i++) {
        const xph_array *a = first + i;
        if (!a->data || !usable(a, t, &distance) || (i && distance != *ld)) return false;
        if ((uintptr_t)a->data - (uintptr_t)first->data != (uintptr_t)(columns * a->element)) return false;
        columns += share_of(t, a);
        *ld = distance;
    }
    return true;
}

static exphil_status must_copy(xph_call *call, const xph_tensor *t)
{
    for (int i = t->first; i < t->first + t->parts; i++) {
        const xph_array *a = &call->array[i];
        if (a->data) call->copies++;
        if (!a->data || columns_together(a) || call->ops->device->backend->host_memory) continue;
        return xph_call_fail(call, EXPHIL_E_UNSUPPORTED,
                             "%s: %s.column_stride is %lld, must be 1 on this device", call->name, a->name,
                             (long long)a->stride[2]);
    }
    return EXPHIL_OK;
}

exphil_status xph_tensors_place(xph_call *call)
{
    xph_cutter cutter = {0};
    call->copies = 0;
    for (int i = 0; i < call->tensors; i++) {
        xph_tensor *t = &call->tensor[i];
        const int64_t rows = rows_of(call, t);
        int64_t ld = t->width;
        t->moved = false;
        if (rows && t->width && (t->given || t->flags & XPH_NEEDED) && !side_by_side(call, t, &ld)) {
            const size_t element = (size_t)call->array[t->first].element;
            ld = t->width;
            t->moved = true;
            t->at = cutter.at;
            t->bytes = (size_t)rows * (size_t)t->width * element;
            (void)xph_cut(&cutter, rows, t->width, element);
            XPH_TRY(must_copy(call, t));
        }
        if (t->ld) *t->ld = ld;
    }
    call->bytes = cutter.at;
    return EXPHIL_OK;
}

/* ---- addresses ------------------------------------------------------------------------------------------- */

static void *address_of(const xph_call *call, const xph_tensor *t, unsigned char *workspace)
{
    return t->moved ? workspace + t->at : call->array[t->first].data;
}

void xph_tensors_bind(xph_call *call, unsigned char *workspace)
{
    for (int i = 0; i < call->tensors; i++) {
        void *address = address_of(call, &call->tensor[i], workspace);
        if (call->tensor[i].slot) memcpy(call->tensor[i].slot, &address, sizeof address);
    }
    void *prepared = call->prepared_bytes ? workspace + call->prepared_at : NULL;
    void *scratch = call->info.scratch_bytes ? workspace + call->scratch_at : NULL;
    if (call->prepared_slot) memcpy(call->prepared_slot, &prepared, sizeof prepared);
    if (call->scratch_slot) memcpy(call->scratch_slot, &scratch, sizeof scratch);
}

/* ---- before and after ------------------------------------------------------------------------------------ */

/* Where part i of a moved tensor lies: its columns behind those of the parts before. */
static xph_moved part_of(const xph_call *call, const xph_tensor *t, int i, unsigned char *workspace)
{
    const xph_array *a = &call->array[t->first + i];
    xph_moved to = {.data = workspace + t->at, .stride = {t->width, a->count[2], 1}};
    if (t->layout == XPH_ROWS) to.stride[0] = a->count[1] * t->width, to.stride[1] = t->width;
    if (t->layout == XPH_DENSE) to.stride[0] = a->count[1] * a->count[2];
    for (int k = t->first; k < t->first + i; k++) to.data += share_of(t, &call->array[k]) * a->element;
    return to;
}

/* An input that is not there, or not wholly, is zeros; and so is what a kernel adds to. */
static bool begins_with_zeros(const xph_call *call, const xph_tensor *t)
{
    if (t->flags & XPH_ADDS) return true;
    for (int i = t->first; i < t->first + t->parts; i++)
        if (!call->array[i].data && call->array[i].access & XPH_READ) return true;
    return false;
}

static exphil_status enter(const xph_call *call, xph_stream *stream, const xph_tensor *t,
                           unsigned char *workspace)
{
    const xph_backend *backend = stream->device->backend;
    if (!t->moved) {
        const xph_array *a = &call->array[t->first];
        if (!(t->flags & XPH_ADDS) || !t->given) return EXPHIL_OK;
        return backend->zero(stream, a->data, (size_t)t->width * (size_t)a->element);
    }
    if (begins_with_zeros(call, t)) XPH_TRY(backend->zero(stream, workspace + t->at, t->bytes));
    for (int i = 0; i < t->parts; i++) {
        const xph_array *a = &call->array[t->first + i];
        if (!a->data || !(a->access & XPH_READ)) continue;
        const xph_moved to = part_of(call, t, i, workspace);
        XPH_TRY(xph_move(call, stream, a, &to, false));
    }
    return EXPHIL_OK;
}

exphil_status xph_tensors_enter(const xph_call *call, xph_stream *stream, unsigned char *workspace)
{
    for (int i = 0; i < call->tensors; i++) XPH_TRY(enter(call, stream, &call->tensor[i], workspace));
    return EXPHIL_OK;
}

exphil_status xph_tensors_leave(const xph_call *call, xph_stream *stream, unsigned char *workspace)
{
    for (int i = 0; i < call->tensors; i++) {
        const xph_tensor *t = &call->tensor[i];
        for (int k = 0; t->moved && k < t->parts; k++) {
            const xph_array *a = &call->array[t->first + k];
            if (!a->data || !(a->access & XPH_WRITE)) continue;
            const xph_moved from = part_of(call, t, k, workspace);
            XPH_TRY(xph_move(call, stream, a, &from, true));
        }
    }
    return EXPHIL_OK;
}

exphil_status xph_tensors_carry(const xph_call *call, xph_stream *stream, unsigned char *workspace)
{
    if (call->carry[0] < 0) return EXPHIL_OK;
    const xph_backend *backend = stream->device->backend;
    const xph_tensor *in = &call->tensor[call->carry[0]], *out = &call->tensor[call->carry[1]];
    const size_t bytes = (size_t)rows_of(call, out) * (size_t)out->width * (size_t)call->element;
    if (!out->given || !bytes) return EXPHIL_OK;
    void *to = address_of(call, out, workspace);
    const void *from = address_of(call, in, workspace);
    if (!in->given) return backend->zero(stream, to, bytes);
    return from == to ? EXPHIL_OK : backend->copy(stream, to, from, bytes);
}
