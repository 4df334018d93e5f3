/* The selective scan and its gradient. */
#include "ops/ops.h"

#define LOG2_E 1.44269504088896340736

/* Of an A that is given: A log2(e). */
static exphil_status make_decay(const xph_call *call, xph_stream *stream, void *prepared)
{
    const bool backward = call->op == EXPHIL_OP_SCAN_GRAD;
    const xph_scan_args *scan = backward ? &call->args.scan_grad.fwd : &call->args.scan;
    xph_axpby_args args = {.type = call->args.type,
                           .count = scan->width * scan->states,
                           .x = scan->a_log,
                           .y = prepared,
                           .a = LOG2_E};
    XPH_TRY(stream->device->backend->zero(stream, prepared, call->prepared_bytes));
    return xph_run_once(stream, XPH_OP_AXPBY, &args);
}

static void take_dimensions(xph_call *call, const exphil_scan_args *a)
{
    xph_take_count(call, "width", a->width, 1, (int64_t)1 << 32);
    xph_take_count(call, "states", a->states, 1, 256);
    xph_take_reserved(call, a->reserved);
    xph_take_frames(call, a->batch, a->frames, xph_times(a->width, a->states));
    if (!a->a_log.data == !a->a.data)
        xph_call_fail(call, EXPHIL_E_INVALID, "%s: a_log and a are %s, must be one of them", call->name,
                      a->a.data ? "both given" : "both NULL");
}

static void take_rates(xph_call *call, const exphil_scan_args *a, xph_scan_args *to)
{
    if (a->a_log.data) {
        xph_take_matrix(call, "a_log", &a->a_log, XPH_READ, 0, a->width, a->states, &to->a_log);
        return;
    }
    xph_take_matrix(call, "a", &a->a, XPH_READ, 0, a->width, a->states, &to->a_log);
    to->plain_a = 1;
    call->prepare = make_decay;
    call->prepared_bytes = (size_t)(a->width * a->states * call->element);
    call->prepared_slot = &to->decay;
}

/* What forward and backward read. Gives the tensor of the state. */
static int take_inputs(xph_call *call, const exphil_scan_args *a, xph_scan_args *to)
{
    const uint32_t must = XPH_READ | XPH_REQUIRED;
    *to = (xph_scan_args){.batch = a->batch,
                          .time = a->frames,
                          .width = a->width,
                          .states = a->states,
                          .ld_state = a->width * a->states,
                          .plain_delta = a->delta_plain != 0};
    xph_take_rows(call, "u", &a->u, must, 0, a->width, &to->x, &to->ldx);
    xph_take_rows(call, "delta", &a->delta, must, 0, a->width, &to->dt, &to->lddt);
    xph_take_matrix(call, "delta_bias", &a->delta_bias, XPH_READ, 0, 1, a->width, &to->delta_bias);
    take_rates(call, a, to);
    xph_take_rows(call, "b", &a->b, must, 0, a->states, &to->b, &to->ldb);
    xph_take_rows(call, "c", &a->c, must, 0, a->states, &to->c, &to->ldc);
    xph_take_matrix(call, "skip", &a->skip, XPH_READ, 0, 1, a->width, &to->skip);
    xph_take_rows(call, "z", &a->z, XPH_READ, 0, a->width, &to->z, &to->ldz);
    xph_take_reset(call, &a->reset, &to->reset);
    return xph_take_state(call, "state_in", &a->state_in, XPH_READ, a->width, a->states, &to->state_in);
}

static void take_forward(xph_call *call, const exphil_scan_args *a)
{
    xph_scan_args *to = &call->args.scan;
    call->kernel_op = XPH_OP_SCAN;
    call->carry[0] = take_inputs(call, a, to);
    call->carry[1] =
        xph_take_state(call, "state_out", &a->state_out, XPH_WRITE, a->width, a->states, &to->state_out);
    call->in_place = true;
    xph_take_rows(call, "y", &a->y, XPH_WRITE | XPH_REQUIRED, 0, a->width, &to->y, &to->ldy);
    call->scratch_slot = &to->scratch;
}

static void check_gradients(xph_call *call, const exphil_scan_args *a)
{
    xph_take_absent(call, "ddelta_bias", &a->ddelta_bias, "delta_bias", &a->delta_bias);
    xph_take_absent(call, "dskip", &a->dskip, "skip", &a->skip);
    xph_take_absent(call, "dz", &a->dz, "z", &a->z);
    xph_take_absent(call, "dstate_in", &a->dstate_in, "state_in", &a->state_in);
}

static void take_backward(xph_call *call, const exphil_scan_args *a)
{
    const uint32_t adds = XPH_ADDS | XPH_NEEDED;
    xph_scan_grad_args *to = &call->args.scan_grad;
    const int64_t width = a->width, states = a->states;
    *to = (xph_scan_grad_args){.scratch = NULL};
    call->kernel_op = XPH_OP_SCAN_GRAD;
    (void)take_inputs(call, a, &to->fwd);
    check_gradients(call, a);
    xph_take_rows(call, "dy", &a->dy, XPH_READ | XPH_REQUIRED, 0, width, &to->dy, &to->lddy);
    call->carry[0] =
        xph_take_state(call, "dstate_out", &a->dstate_out, XPH_READ, width, states, &to->dstate_out);
    call->carry[1] =
        xph_take_state(call, "dstate_in", &a->dstate_in, XPH_WRITE, width, states, &to->dstate_in);
    xph_take_rows(call, "du", &a->du, XPH_WRITE, XPH_NEEDED, width, &to->dx, &to->lddx);
    xph_take_rows(call, "ddelta", &a->ddelta, XPH_WRITE, XPH_NEEDED, width, &to->ddt, &to->ldddt);
    xph_take_matrix(call, "ddelta_bias", &a->ddelta_bias, XPH_WRITE, XPH_ADDS, 1, width, &to->ddelta_bias);
    xph_take_matrix(call, "da", &a->da, XPH_WRITE, adds, width, states, &to->da_log);
    xph_take_rows(call, "db", &a->db, XPH_WRITE, XPH_NEEDED, states, &to->db, &to->lddb);
    xph_take_rows(call, "dc", &a->dc, XPH_WRITE, XPH_NEEDED, states, &to->dc, &to->lddc);
    xph_take_matrix(call, "dskip", &a->dskip, XPH_WRITE, a->skip.data ? adds : XPH_ADDS, 1, width,
                    &to->dskip);
    xph_take_rows(call, "dz", &a->dz, XPH_WRITE, a->z.data ? XPH_NEEDED : 0, width, &to->dz, &to->lddz);
    call->scratch_slot = &to->scratch;
}

exphil_status xph_describe_scan(xph_call *call, const void *given)
{
    exphil_scan_args taken = EXPHIL_SCAN_ARGS_INIT;
    XPH_TRY(XPH_TAKE(exphil_scan_args, &taken, (const exphil_scan_args *)given, call->error));
    take_dimensions(call, &taken);
    XPH_TRY(call->status);
    if (call->op == EXPHIL_OP_SCAN)
        take_forward(call, &taken);
    else
        take_backward(call, &taken);
    return call->status;
}
