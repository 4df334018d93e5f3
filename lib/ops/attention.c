/* Sliding-window attention and its gradient. */
#include "ops/ops.h"

static void take_dimensions(xph_call *call, const exphil_attention_args *a)
{
    const int64_t most = (int64_t)1 << 32;
    xph_take_count(call, "heads", a->heads, 1, most);
    xph_take_count(call, "dim", a->dim, 1, most);
    xph_take_count(call, "window", a->window, 1, most);
    xph_take_count(call, "method", a->method, EXPHIL_ATTENTION_AUTO, EXPHIL_ATTENTION_CHUNKED);
    xph_take_reserved(call, a->reserved);
    if (call->status < 0) return;
    xph_take_frames(call, a->batch, a->frames,
                    xph_times(xph_times(a->heads, a->dim), xph_times(4, a->window)));
}

/* Three arrays that the kernel wants as q | k | v. */
static void take_three(xph_call *call, const char *const names[3], const void *const fields[3],
                       uint32_t access, uint32_t flags, int64_t span, void *slot, int64_t *ld)
{
    xph_tensor_begin(call, XPH_ROWS, 3 * span, flags, slot, ld);
    for (int i = 0; i < 3; i++)
        xph_array_add(call, names[i], fields[i], access, call->batch, call->frames, span);
}

static int take_inputs(xph_call *call, const exphil_attention_args *a, xph_attention_args *to)
{
    static const char *const names[3] = {"q", "k", "v"};
    const void *const fields[3] = {&a->q, &a->k, &a->v};
    const int64_t span = a->heads * a->dim, state = 2 * a->window * span + 2;
    *to = (xph_attention_args){.method = a->method,
                               .batch = a->batch,
                               .time = a->frames,
                               .heads = a->heads,
                               .dim = a->dim,
                               .window = a->window,
                               .ld_state = state};
    take_three(call, names, fields, XPH_READ | XPH_REQUIRED, 0, span, &to->qkv, &to->ldqkv);
    xph_take_matrix(call, "bias", &a->bias, XPH_READ, XPH_NEEDED, a->heads, a->window, &to->bias);
    xph_take_reset(call, &a->reset, &to->reset);
    return xph_take_state(call, "state_in", &a->state_in, XPH_READ, 1, state, &to->state_in);
}

static void take_result(xph_call *call, const exphil_attention_args *a, xph_attention_args *to, bool backward)
{
    const uint32_t access = XPH_REQUIRED | (backward ? XPH_READ : XPH_WRITE);
    const int64_t rows = xph_times(a->batch, a->frames);
    xph_take_rows(call, "y", &a->y, access, 0, a->heads * a->dim, &to->y, &to->ldy);
    xph_take_saved(call, a->saved, a->saved_bytes, xph_times(rows, a->heads), backward, &to->saved);
}

static void take_forward(xph_call *call, const exphil_attention_args *a)
{
    xph_attention_args *to = &call->args.attention;
    call->kernel_op = XPH_OP_ATTENTION;
    call->carry[0] = take_inputs(call, a, to);
    call->carry[1] =
        xph_take_state(call, "state_out", &a->state_out, XPH_WRITE, 1, to->ld_state, &to->state_out);
    call->in_place = true;
    take_result(call, a, to, false);
    call->scratch_slot = &to->scratch;
}

static void take_backward(xph_call *call, const exphil_attention_args *a)
{
    static const char *const names[3] = {"dq", "dk", "dv"};
    const void *const fields[3] = {&a->dq, &a->dk, &a->dv};
    xph_attention_grad_args *to = &call->args.attention_grad;
    const int64_t span = a->heads * a->dim;
    *to = (xph_attention_grad_args){.scratch = NULL};
    call->kernel_op = XPH_OP_ATTENTION_GRAD;
    (void)take_inputs(call, a, &to->fwd);
    take_result(call, a, &to->fwd, true);
    xph_take_rows(call, "dy", &a->dy, XPH_READ | XPH_REQUIRED, 0, span, &to->dy, &to->lddy);
    take_three(call, names, fields, XPH_WRITE, XPH_NEEDED, span, &to->dqkv, &to->lddqkv);
    xph_take_matrix(call, "dbias", &a->dbias, XPH_WRITE, XPH_ADDS | XPH_NEEDED, a->heads, a->window,
                    &to->dbias);
    call->scratch_slot = &to->scratch;
}

exphil_status xph_describe_attention(xph_call *call, const void *given)
{
    exphil_attention_args taken = EXPHIL_ATTENTION_ARGS_INIT;
    XPH_TRY(XPH_TAKE(exphil_attention_args, &taken, (const exphil_attention_args *)given, call->error));
    take_dimensions(call, &taken);
    XPH_TRY(call->status);
    if (call->op == EXPHIL_OP_ATTENTION)
        take_forward(call, &taken);
    else
        take_backward(call, &taken);
    return call->status;
}
