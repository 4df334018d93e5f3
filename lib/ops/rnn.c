/* LSTM and GRU and their gradients, from the input part of the gates on. */
#include "ops/ops.h"

static bool is_lstm(const xph_call *call)
{
    return call->op == EXPHIL_OP_LSTM || call->op == EXPHIL_OP_LSTM_GRAD;
}

static bool is_backward(const xph_call *call)
{
    return call->op == EXPHIL_OP_LSTM_GRAD || call->op == EXPHIL_OP_GRU_GRAD;
}

static void must_be_null(xph_call *call, const char *name, const void *data)
{
    if (data) xph_call_fail(call, EXPHIL_E_INVALID, "%s: %s must be NULL, there is no c", call->name, name);
}

static void take_dimensions(xph_call *call, const exphil_rnn_args *a)
{
    xph_take_count(call, "hidden", a->hidden, 1, 1 << 20);
    if (call->status < 0) return;
    xph_take_frames(call, a->batch, a->frames, 5 * a->hidden);
    if (is_lstm(call)) return;
    must_be_null(call, "c_in", a->c_in.data);
    if (is_backward(call)) {
        must_be_null(call, "dc_out", a->dc_out.data);
        must_be_null(call, "dc_in", a->dc_in.data);
    } else {
        must_be_null(call, "c_out", a->c_out.data);
    }
}

/* h, and c of an LSTM, which the kernel wants as h | c. */
static int take_pair(xph_call *call, const char *const names[2], const void *h, const void *c,
                     uint32_t access, int64_t hidden, void *slot)
{
    const int parts = is_lstm(call) ? 2 : 1;
    xph_tensor_begin(call, XPH_STATES, parts * hidden, 0, slot, NULL);
    for (int i = 0; i < parts; i++) xph_array_add(call, names[i], i ? c : h, access, call->batch, 1, hidden);
    return call->tensors - 1;
}

static int take_inputs(xph_call *call, const exphil_rnn_args *a, xph_rnn_args *to)
{
    static const char *const names[2] = {"h_in", "c_in"};
    const int64_t gates = (is_lstm(call) ? 4 : 3) * a->hidden;
    *to = (xph_rnn_args){.kind = is_lstm(call) ? XPH_RNN_LSTM : XPH_RNN_GRU,
                         .batch = a->batch,
                         .time = a->frames,
                         .hidden = a->hidden,
                         .ldgx = gates,
                         .ld_state = (is_lstm(call) ? 2 : 1) * a->hidden};
    xph_take_matrix(call, "weight", &a->weight, XPH_READ | XPH_REQUIRED, 0, gates, a->hidden, &to->w);
    xph_take_reset(call, &a->reset, &to->reset);
    return take_pair(call, names, &a->h_in, &a->c_in, XPH_READ, a->hidden, &to->state_in);
}

static void take_result(xph_call *call, const exphil_rnn_args *a, xph_rnn_args *to)
{
    const uint32_t access = XPH_REQUIRED | (is_backward(call) ? XPH_READ : XPH_WRITE);
    const int64_t rows = xph_times(a->batch, a->frames), kept = (is_lstm(call) ? 5 : 4) * a->hidden;
    xph_take_rows(call, "y", &a->y, access, 0, a->hidden, &to->y, &to->ldy);
    xph_take_saved(call, a->saved, a->saved_bytes, xph_times(rows, kept), is_backward(call), &to->saved);
}

/* The kernels read the weight in panels. */
static exphil_status pack(const xph_call *call, xph_stream *stream, void *prepared)
{
    const xph_rnn_args *rnn = &call->args.rnn;
    xph_linear_pack_args args = {.type = call->args.type,
                                 .in = rnn->hidden,
                                 .out = (rnn->kind == XPH_RNN_LSTM ? 4 : 3) * rnn->hidden,
                                 .w = rnn->w,
                                 .packed = prepared};
    return xph_run_once(stream, XPH_OP_LINEAR_PACK, &args);
}

static void take_forward(xph_call *call, const exphil_rnn_args *a)
{
    static const char *const names[2] = {"h_out", "c_out"};
    xph_rnn_args *to = &call->args.rnn;
    call->kernel_op = XPH_OP_RNN;
    call->carry[0] = take_inputs(call, a, to);
    const int64_t gates = to->ldgx;
    xph_take_rows(call, "gates", &a->gates, XPH_READ | XPH_REQUIRED, 0, gates, &to->gx, &to->ldgx);
    xph_take_matrix(call, "bias", &a->bias, XPH_READ, XPH_NEEDED, 1, gates, &to->bias);
    call->carry[1] = take_pair(call, names, &a->h_out, &a->c_out, XPH_WRITE, a->hidden, &to->state_out);
    call->in_place = true;
    take_result(call, a, to);
    call->prepare = pack;
    call->prepared_slot = &to->packed;
    call->packs = true;
    call->scratch_slot = &to->scratch;
}

static void take_backward(xph_call *call, const exphil_rnn_args *a)
{
    static const char *const outer[2] = {"dh_out", "dc_out"}, *const inner[2] = {"dh_in", "dc_in"};
    xph_rnn_grad_args *to = &call->args.rnn_grad;
    const uint32_t adds = XPH_ADDS | XPH_NEEDED;
    *to = (xph_rnn_grad_args){.scratch = NULL};
    call->kernel_op = XPH_OP_RNN_GRAD;
    (void)take_inputs(call, a, &to->fwd);
    const int64_t gates = to->fwd.ldgx;
    take_result(call, a, &to->fwd);
    xph_take_absent(call, "dh_in", &a->dh_in, "h_in", &a->h_in);
    xph_take_absent(call, "dc_in", &a->dc_in, "c_in", &a->c_in);
    xph_take_rows(call, "dy", &a->dy, XPH_READ | XPH_REQUIRED, 0, a->hidden, &to->dy, &to->lddy);
    call->carry[0] = take_pair(call, outer, &a->dh_out, &a->dc_out, XPH_READ, a->hidden, &to->dstate_out);
    call->carry[1] = take_pair(call, inner, &a->dh_in, &a->dc_in, XPH_WRITE, a->hidden, &to->dstate_in);
    xph_take_rows(call, "dgates", &a->dgates, XPH_WRITE, XPH_NEEDED, gates, &to->dgx, &to->lddgx);
    xph_take_matrix(call, "dweight", &a->dweight, XPH_WRITE, adds, gates, a->hidden, &to->dw);
    xph_take_matrix(call, "dbias", &a->dbias, XPH_WRITE, adds, 1, gates, &to->dbias);
    call->scratch_slot = &to->scratch;
}

exphil_status xph_describe_rnn(xph_call *call, const void *given)
{
    exphil_rnn_args taken = EXPHIL_RNN_ARGS_INIT;
    XPH_TRY(XPH_TAKE(exphil_rnn_args, &taken, (const exphil_rnn_args *)given, call->error));
    take_dimensions(call, &taken);
    XPH_TRY(call->status);
    if (is_backward(call))
        take_backward(call, &taken);
    else
        take_forward(call, &taken);
    return call->status;
}
