/* Planning a net: a stack of buffers that becomes one arena, lists of steps, and the addresses in their
 * arguments that change from call to call. Nothing here knows what a layer is. */
#include "model/net_plan.h"

#define BUFFER_ALIGN 64

/* ---- buffers ------------------------------------------------------------------------------------------- */

static exphil_status too_large(xph_plan *plan)
{
    return xph_fail(plan->error, EXPHIL_E_MEMORY, "a net of %lld x %lld frames is too large for this machine",
                    (long long)plan->batch, (long long)plan->time);
}

/* Place of `bytes` on top of the stack; the stack itself stays. */
static size_t reach(xph_plan *plan, size_t bytes, size_t *end)
{
    size_t first = plan->top, last;
    if (!xph_size_add(first, bytes, &last) || !xph_size_align(last, BUFFER_ALIGN, &last)) {
        if (plan->status >= 0) plan->status = too_large(plan);
        last = first;
    }
    if (last > plan->peak) plan->peak = last;
    *end = last;
    return first;
}

static xph_ref buffer_of(xph_plan *plan, int64_t rows, int64_t width, uint32_t element)
{
    size_t bytes = 0;
    if (plan->status < 0) return (xph_ref){0};
    if (!xph_size_mul((size_t)rows, (size_t)width, &bytes) || !xph_size_mul(bytes, element, &bytes) ||
        bytes > (size_t)PTRDIFF_MAX)
        plan->status = too_large(plan);
    if (plan->status < 0) return (xph_ref){0};
    xph_ref ref = {.space = XPH_SPACE_ARENA, .element = element, .ld = width};
    ref.at = (int64_t)reach(plan, bytes, &plan->top);
    return ref;
}

xph_ref xph_plan_buffer(xph_plan *plan, int64_t rows, int64_t width)
{
    return buffer_of(plan, rows, width, plan->element);
}

xph_ref xph_plan_reals(xph_plan *plan, int64_t rows, int64_t width)
{
    return buffer_of(plan, rows, width, (uint32_t)plan->model->shape.real_bytes);
}

xph_ref xph_plan_kept(xph_plan *plan, int64_t rows, int64_t width)
{
    return plan->train ? xph_plan_reals(plan, rows, width) : (xph_ref){0};
}

xph_ref xph_plan_kept_bytes(xph_plan *plan, size_t bytes)
{
    size_t real = (size_t)plan->model->shape.real_bytes;
    return bytes ? xph_plan_kept(plan, 1, (int64_t)((bytes + real - 1) / real)) : (xph_ref){0};
}

xph_ref xph_columns(xph_ref matrix, int64_t first)
{
    matrix.at += first * (int64_t)matrix.element;
    return matrix;
}

xph_ref xph_plan_next(xph_plan *plan, int64_t width)
{
    if (plan->train && !plan->out.space) return xph_plan_buffer(plan, plan->rows, width);
    xph_ref next = plan->train ? plan->out : plan->x; /* as wide as x ever is */
    next.ld = width;
    return next;
}

xph_ref xph_plan_store(xph_plan *plan, int64_t count, size_t element)
{
    size_t bytes = 0, end = 0;
    if (plan->status < 0) return (xph_ref){0};
    if (!xph_size_mul((size_t)count, element, &bytes) || !xph_size_add(plan->stored, bytes, &end) ||
        !xph_size_align(end, BUFFER_ALIGN, &end) || end > (size_t)PTRDIFF_MAX) {
        plan->status = too_large(plan);
        return (xph_ref){0};
    }
    xph_ref ref = {.space = XPH_SPACE_STORE, .element = (uint32_t)element, .at = (int64_t)plan->stored};
    plan->stored = end;
    return ref;
}

/* ---- tensors ------------------------------------------------------------------------------------------- */

static xph_ref tensor_ref(const xph_plan *plan, xph_space space, int64_t index)
{
    if (index < 0) return (xph_ref){0};
    const xph_param *param = &plan->model->tensor[index].param;
    return (xph_ref){
        .space = space, .at = param->offset * (int64_t)plan->model->shape.real_bytes, .ld = param->dim[1]};
}

xph_ref xph_weight(const xph_plan *plan, int64_t index)
{
    return tensor_ref(plan, XPH_SPACE_WEIGHTS, index);
}

xph_ref xph_gradient(const xph_plan *plan, int64_t index)
{
    return tensor_ref(plan, XPH_SPACE_GRADIENTS, index);
}

xph_ref xph_packed(const xph_plan *plan, int64_t index)
{
    if (index < 0) return (xph_ref){0};
    const xph_tensor *tensor = &plan->model->tensor[index];
    if (tensor->packed_bytes == 0) return (xph_ref){0};
    return (xph_ref){.space = XPH_SPACE_PACKED, .at = (int64_t)tensor->packed_at};
}

/* ---- steps --------------------------------------------------------------------------------------------- */

xph_step *xph_plan_step(xph_plan *plan, xph_op op, const void *args, size_t bytes)
{
    if (plan->status < 0) return NULL;
    xph_step *step = xph_calloc(plan->model->context, 1, sizeof *step);
    if (!step) {
        plan->status = xph_no_memory(sizeof *step, plan->error);
        return NULL;
    }
    step->op = op;
    step->when = plan->when;
    memcpy(&step->args, args, bytes);
    if (plan->program->last)
        plan->program->last->next = step;
    else
        plan->program->first = step;
    plan->program->last = step;
    return step;
}

static exphil_status grow(xph_net *net, exphil_error *error)
{
    if (net->patch_count < net->patch_capacity) return EXPHIL_OK;
    int64_t capacity = net->patch_capacity ? 2 * net->patch_capacity : 128;
    size_t bytes = (size_t)capacity * sizeof *net->patch,
           old = (size_t)net->patch_capacity * sizeof *net->patch;
    xph_patch *more = xph_alloc(net->model->context, bytes);
    if (!more) return xph_no_memory(bytes, error);
    if (old) memcpy(more, net->patch, old);
    xph_free(net->model->context, net->patch, old);
    net->patch = more;
    net->patch_capacity = capacity;
    return EXPHIL_OK;
}

void xph_plan_bind(xph_plan *plan, void *slot, xph_ref ref)
{
    if (plan->status < 0 || ref.space == XPH_SPACE_NONE) return;
    plan->status = grow(plan->net, plan->error);
    if (plan->status < 0) return;
    plan->net->patch[plan->net->patch_count++] = (xph_patch){.slot = slot, .at = ref.at, .space = ref.space};
}

void xph_plan_bind_state(xph_plan *plan, const xph_block *block, int64_t first, const void **state_in,
                         void **state_out, int64_t *ld_state)
{
    int64_t at = (block->state_at + first) * (int64_t)plan->model->shape.real_bytes;
    xph_plan_bind(plan, state_in, (xph_ref){.space = XPH_SPACE_STATE_IN, .at = at});
    if (state_out && plan->pass == XPH_PASS_FIRST)
        xph_plan_bind(plan, state_out, (xph_ref){.space = XPH_SPACE_STATE_OUT, .at = at});
    xph_plan_bind(plan, ld_state, (xph_ref){.space = XPH_SPACE_LD_STATE});
}

void xph_plan_scratch(xph_plan *plan, xph_step *step, void *slot)
{
    if (plan->status < 0) return;
    xph_device *device = plan->model->device;
    exphil_status status = device->backend->query(device, step->op, &step->args, &step->chosen);
    if (status < 0) {
        plan->status =
            xph_fail(plan->error, status, "the device %s has no kernel for operation %s of this model",
                     device->backend->name, xph_op_name(step->op));
        return;
    }
    step->scratch = slot;
    step->scratch_bytes = step->chosen.scratch_bytes;
    if (step->scratch_bytes == 0 || !slot) return;
    size_t end;
    xph_ref ref = {.space = XPH_SPACE_ARENA};
    ref.at = (int64_t)reach(plan, step->scratch_bytes, &end);
    xph_plan_bind(plan, slot, ref);
}

static exphil_status spare_scratch(xph_net *net, size_t bytes, void **address)
{
    xph_spare *spare = net->spares;
    while (spare && spare->bytes < bytes) spare = spare->next;
    if (!spare) {
        exphil_context *context = net->model->context;
        spare = xph_calloc(context, 1, sizeof *spare);
        if (!spare) return EXPHIL_E_MEMORY;
        exphil_status status = net->backend->alloc(net->model->device, bytes, &spare->address);
        if (status < 0) {
            xph_free(context, spare, sizeof *spare);
            return status;
        }
        spare->bytes = bytes;
        spare->next = net->spares;
        net->spares = spare;
    }
    *address = spare->address;
    return EXPHIL_OK;
}

exphil_status xph_plan_next_candidate(xph_net *net, xph_step *step)
{
    xph_op_info info = {.refused = step->chosen.refused | step->chosen.candidate};
    XPH_TRY(net->backend->query(net->model->device, step->op, &step->args, &info));
    if (info.scratch_bytes > step->scratch_bytes) {
        if (!step->scratch) return EXPHIL_E_INTERNAL;
        XPH_TRY(spare_scratch(net, info.scratch_bytes, step->scratch));
        step->scratch_bytes = info.scratch_bytes;
    }
    step->chosen = info;
    return EXPHIL_OK;
}

static bool moves_in_play(const xph_patch *patch)
{
    return patch->space == XPH_SPACE_STATE_IN || patch->space == XPH_SPACE_STATE_OUT ||
           patch->space == XPH_SPACE_BACK;
}

/* What play writes on every frame stands behind what it does not. */
static void states_last(xph_net *net)
{
    int64_t first = 0;
    for (int64_t i = 0; i < net->patch_count; i++) {
        const xph_patch patch = net->patch[i];
        if (moves_in_play(&patch)) continue;
        net->patch[i] = net->patch[first];
        net->patch[first++] = patch;
    }
    net->patch_states = first;
}

/* Addresses in the arena are written now; the other patches move together. The store lies behind the rest. */
exphil_status xph_plan_finish(xph_plan *plan)
{
    xph_net *net = plan->net;
    XPH_TRY(plan->status);
    void *arena = NULL;
    size_t bytes = 0;
    if (!xph_size_add(plan->peak, plan->stored, &bytes)) return too_large(plan);
    exphil_status status = net->backend->alloc(net->model->device, bytes, &arena);
    if (status < 0) return xph_no_device_memory(plan->error, net->model->device, status, bytes);
    net->arena = arena;
    net->arena_bytes = bytes;
    int64_t kept = 0;
    for (int64_t i = 0; i < net->patch_count; i++) {
        const xph_patch patch = net->patch[i];
        void *address = net->arena + (patch.space == XPH_SPACE_STORE ? plan->peak : 0) + patch.at;
        if (patch.space == XPH_SPACE_ARENA || patch.space == XPH_SPACE_STORE)
            memcpy(patch.slot, &address, sizeof address);
        else
            net->patch[kept++] = patch;
    }
    net->patch_count = kept;
    states_last(net);
    return EXPHIL_OK;
}
