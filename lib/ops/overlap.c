/* Whether arrays of a call lie on each other, by their strides and shapes alone. Columns of one matrix do not, though what they
 * reach does: their strides are the same, and their places modulo a stride are apart. */
#include "ops/ops.h"

/* Elements that the dimensions with strides below `stride` reach; 0: one of the others is no multiple of it. */
static int64_t reach_within(const xph_array *a, int64_t stride)
{
    int64_t reach = 1;
    for (int i = 0; i < 3; i++) {
        if (a->count[i] <= 1) continue;
        if (a->stride[i] >= stride) {
            if (a->stride[i] % stride) return 0;
        } else {
            reach += (a->count[i] - 1) * a->stride[i];
        }
    }
    return reach;
}

/* Do both repeat every `stride` elements, in places apart from each other? */
static bool apart_modulo(const xph_array *a, const xph_array *b, int64_t stride)
{
    const int64_t one = reach_within(a, stride), other = reach_within(b, stride);
    const int64_t between = (int64_t)(((intptr_t)b->data - (intptr_t)a->data) / a->element);
    const int64_t from = (between % stride + stride) % stride;
    return one && other && from >= one && from + other <= stride;
}

static bool apart(const xph_array *a, const xph_array *b)
{
    const uintptr_t one = (uintptr_t)a->data, other = (uintptr_t)b->data;
    if (one + a->reach <= other || other + b->reach <= one) return true;
    if (a->element != b->element || (other - one) % (uintptr_t)a->element) return false;
    for (int i = 0; i < 3; i++)
        if (a->count[i] > 1 && apart_modulo(a, b, a->stride[i])) return true;
    return false;
}

static bool empty(const xph_array *a)
{
    return !a->data || a->count[0] == 0 || a->count[1] == 0 || a->count[2] == 0;
}

/* A state that goes out where it came in: the n-th array of both tensors, in the same place. */
static bool in_place(const xph_call *call, int one, int other)
{
    if (!call->in_place) return false;
    const xph_tensor *in = &call->tensor[call->carry[0]], *out = &call->tensor[call->carry[1]];
    const xph_array *a = &call->array[one], *b = &call->array[other];
    if (one - in->first != other - out->first) return false;
    if (one < in->first || one >= in->first + in->parts) return false;
    return a->data == b->data && memcmp(a->stride, b->stride, sizeof a->stride) == 0;
}

exphil_status xph_overlap_check(xph_call *call, const void *workspace, size_t workspace_bytes)
{
    const uintptr_t from = (uintptr_t)workspace;
    for (int i = 0; i < call->arrays; i++) {
        const xph_array *a = &call->array[i];
        if (empty(a)) continue;
        const uintptr_t at = (uintptr_t)a->data;
        if (workspace_bytes && at < from + workspace_bytes && from < at + a->reach)
            return xph_call_fail(call, EXPHIL_E_INVALID, "%s: %s and the workspace overlap", call->name,
                                 a->name);
        if (!(a->access & XPH_WRITE)) continue;
        for (int k = 0; k < call->arrays; k++) {
            const xph_array *b = &call->array[k];
            if (k == i || (k < i && (b->access & XPH_WRITE)) || empty(b)) continue;
            if (apart(a, b) || in_place(call, k, i)) continue;
            return xph_call_fail(call, EXPHIL_E_INVALID, "%s: %s and %s overlap, or cannot be told apart",
                                 call->name, a->name, b->name);
        }
    }
    return EXPHIL_OK;
}
