/* Queries and runs: the steps of a call, the same for every operation. */
#include "ops/ops.h"

static const struct kind {
    const char *name;
    xph_describe_fn describe;
} kinds[] = {
    [EXPHIL_OP_SCAN] = {"scan", xph_describe_scan},
    [EXPHIL_OP_SCAN_GRAD] = {"scan_grad", xph_describe_scan},
    [EXPHIL_OP_ATTENTION] = {"attention", xph_describe_attention},
    [EXPHIL_OP_ATTENTION_GRAD] = {"attention_grad", xph_describe_attention},
    [EXPHIL_OP_LSTM] = {"lstm", xph_describe_rnn},
    [EXPHIL_OP_LSTM_GRAD] = {"lstm_grad", xph_describe_rnn},
    [EXPHIL_OP_GRU] = {"gru", xph_describe_rnn},
    [EXPHIL_OP_GRU_GRAD] = {"gru_grad", xph_describe_rnn},
    [EXPHIL_OP_NORM] = {"norm", xph_describe_norm},
    [EXPHIL_OP_NORM_GRAD] = {"norm_grad", xph_describe_norm},
    [EXPHIL_OP_CONV] = {"conv", xph_describe_conv},
    [EXPHIL_OP_CONV_GRAD] = {"conv_grad", xph_describe_conv},
    [EXPHIL_OP_ADAMW] = {"adamw", xph_describe_adamw},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

const char *exphil_op_name(int32_t op)
{
    return op >= 1 && op < KINDS ? kinds[op].name : NULL;
}

/* With what every struct of arguments begins. */
typedef struct head {
    size_t struct_size;
    int32_t op, type;
} head;

/* ---- planning -------------------------------------------------------------------------------------------- */

static exphil_status describe(xph_call *call, const exphil_ops *ops, const void *args, exphil_error *error)
{
    head given;
    if (!args) return xph_fail(error, EXPHIL_E_INVALID, "args is NULL");
    memcpy(&given.struct_size, args, sizeof given.struct_size);
    if (given.struct_size < sizeof given)
        return xph_fail(error, EXPHIL_E_INVALID, "args.struct_size is %zu; use an INIT macro",
                        given.struct_size);
    memcpy(&given, args, sizeof given);
    if (!exphil_op_name(given.op))
        return xph_fail(error, EXPHIL_E_UNSUPPORTED, "op is %d, this library knows 1..%d", (int)given.op,
                        (int)KINDS - 1);
    call->ops = ops;
    call->error = error;
    call->op = given.op;
    call->name = kinds[given.op].name;
    call->status = EXPHIL_OK;
    call->arrays = call->tensors = 0;
    call->batch = call->frames = 1;
    call->carry[0] = call->carry[1] = -1;
    call->in_place = call->packs = false;
    call->saved = 0;
    call->scratch_slot = call->prepared_slot = NULL;
    call->prepare = NULL;
    call->prepared_bytes = 0;
    if (given.type != EXPHIL_OPS_F32 && given.type != EXPHIL_OPS_F64)
        return xph_fail(error, EXPHIL_E_INVALID, "%s: type is %d, must be 0 or 1", call->name,
                        (int)given.type);
    call->element = given.type == EXPHIL_OPS_F64 ? (int32_t)sizeof(double) : (int32_t)sizeof(float);
    XPH_TRY(kinds[given.op].describe(call, args));
    XPH_TRY(call->status);
    call->args.type = given.type;
    return EXPHIL_OK;
}

static bool nothing_to_do(const xph_call *call)
{
    return call->batch == 0 || call->frames == 0;
}

static exphil_status choose(xph_call *call)
{
    xph_device *device = call->ops->device;
    call->info = (xph_op_info){.name = call->name};
    if (nothing_to_do(call)) {
        call->prepared_bytes = 0;
        return EXPHIL_OK;
    }
    exphil_status status = device->backend->query(device, call->kernel_op, &call->args, &call->info);
    if (status == EXPHIL_E_UNSUPPORTED)
        return xph_call_fail(call, status, "%s: the device %s has no kernel for this type and these fields",
                             call->name, device->backend->name);
    if (status < 0) return xph_call_fail(call, status, "%s: the device failed", call->name);
    if (call->packs) call->prepared_bytes = call->info.packed_bytes;
    return EXPHIL_OK;
}

/* Behind the last part, so that any address can be rounded up. */
#define ALIGN 64

static exphil_status cut_rest(xph_call *call)
{
    xph_cutter cutter = {.at = call->bytes};
    call->prepared_at = cutter.at;
    (void)xph_cut(&cutter, (int64_t)call->prepared_bytes, 1, 1);
    call->scratch_at = cutter.at;
    (void)xph_cut(&cutter, (int64_t)call->info.scratch_bytes, 1, 1);
    call->bytes = cutter.at;
    if (call->bytes == 0) return EXPHIL_OK;
    if (!xph_size_add(call->bytes, ALIGN - 1, &call->bytes) || call->bytes > (size_t)PTRDIFF_MAX)
        return xph_call_fail(call, EXPHIL_E_INVALID, "%s: its workspace does not fit in any memory",
                             call->name);
    return EXPHIL_OK;
}

static exphil_status plan(xph_call *call, const exphil_ops *ops, const void *args, bool looks,
                          exphil_error *error)
{
    if (!ops) return xph_fail(error, EXPHIL_E_INVALID, "ops is NULL");
    XPH_TRY(xph_context_check(ops->context, error));
    XPH_TRY(describe(call, ops, args, error));
    XPH_TRY(xph_arrays_check(call, looks));
    XPH_TRY(xph_tensors_place(call));
    XPH_TRY(choose(call));
    return cut_rest(call);
}

exphil_status exphil_ops_query(exphil_ops *ops, const void *args, exphil_op_info *info, exphil_error *error)
{
    XPH_OWN_FPU;
    xph_call call;
    XPH_TRY(XPH_CHECK_OUTPUT(exphil_op_info, info, error));
    XPH_TRY(plan(&call, ops, args, false, error));
    exphil_op_info known = EXPHIL_OP_INFO_INIT;
    known.workspace_bytes = call.bytes;
    known.saved_bytes = (size_t)call.saved * (size_t)call.element;
    known.copies = call.copies;
    known.kernel = call.info.name;
    return XPH_GIVE(exphil_op_info, info, &known, error);
}

/* ---- running --------------------------------------------------------------------------------------------- */

static exphil_status check_workspace(xph_call *call, const void *workspace, size_t bytes)
{
    if (bytes < call->bytes)
        return xph_call_fail(call, EXPHIL_E_INVALID, "%s: workspace_bytes is %zu, must be %zu or more",
                             call->name, bytes, call->bytes);
    if (!workspace && call->bytes)
        return xph_call_fail(call, EXPHIL_E_INVALID, "%s: workspace is NULL, %zu bytes are needed",
                             call->name, call->bytes);
    if (bytes > UINTPTR_MAX - (uintptr_t)workspace)
        return xph_call_fail(call, EXPHIL_E_INVALID, "%s: workspace_bytes is %zu, more than any memory has",
                             call->name, bytes);
    return EXPHIL_OK;
}

static exphil_status work(xph_call *call, xph_stream *stream, unsigned char *workspace)
{
    XPH_TRY(xph_tensors_enter(call, stream, workspace));
    if (nothing_to_do(call)) {
        XPH_TRY(xph_tensors_carry(call, stream, workspace));
    } else {
        if (call->prepare && call->prepared_bytes)
            XPH_TRY(call->prepare(call, stream, workspace + call->prepared_at));
        XPH_TRY(stream->device->backend->run(stream, call->info.kernel, &call->args));
    }
    return xph_tensors_leave(call, stream, workspace);
}

exphil_status exphil_ops_run(exphil_ops *ops, const void *args, void *workspace, size_t workspace_bytes,
                             void *stream, exphil_error *error)
{
    XPH_OWN_FPU;
    xph_call call;
    xph_wrapped place;
    XPH_TRY(plan(&call, ops, args, true, error));
    XPH_TRY(check_workspace(&call, workspace, workspace_bytes));
    XPH_TRY(xph_overlap_check(&call, workspace, call.bytes ? workspace_bytes : 0));
    if (ops->stream && stream)
        return xph_fail(error, EXPHIL_E_INVALID, "stream is given, must be NULL on this device");
    xph_stream *on =
        ops->stream ? ops->stream : ops->device->backend->stream_wrap(ops->device, stream, &place);
    unsigned char *aligned = workspace;
    if (call.bytes) aligned += -(uintptr_t)workspace & (ALIGN - 1);
    xph_tensors_bind(&call, aligned);
    exphil_status status = work(&call, on, aligned);
    if (status < 0) return xph_fail_device(error, ops->device, status, "%s: the device failed", call.name);
    return EXPHIL_OK;
}
