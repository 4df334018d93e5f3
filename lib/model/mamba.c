/* The Mamba block (Gu & Dao 2023): in-projection to x | z, causal convolution with SiLU, selective scan
 * gated by SiLU(z), out-projection. D = expand * hidden, N states, dt through a bottleneck of `rank`.
 * State: convolution, then scan.
 *
 * ExPhil's form of it (mamba_exphil) has fixed rates 1..N, no skip, a bias at its second projection, and steps within
 * limits: delta = clamp(softplus(dt), 0.001, 0.1), which is softplus of dt within the inverses of both.
 *
 * The bias of dt is added by its linear, but with rows of 16 bits by the scan, in float: it lies near -5, where bfloat16
 * would move delta by a hundredth. */
#include "model/layer.h"

enum {
    NORM,
    NORM_BIAS,
    IN,
    IN_BIAS,
    CONV,
    CONV_BIAS,
    X,
    DT,
    DT_BIAS,
    A_LOG,
    SKIP,
    OUT,
    OUT_BIAS,
    X_BIAS,
    ROLES
};
/* Of xph_saved.more: [M,2D], [M,D], [M,rank+2N], [M,D], [M,D], what the scan leaves for its gradient or none. */
enum { XZ, XC, PROJ, STEP, Y, MARKS };

static bool is_exphil(const xph_block *block)
{
    return block->kind == XPH_BLOCK_MAMBA_EXPHIL;
}

/* -1: the block has none. */
static int64_t tensor(const xph_block *block, int64_t role)
{
    static const int16_t places[2][ROLES] = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, -1},
                                             {0, 1, 2, 3, 4, 5, 6, 8, 9, -1, -1, 10, 11, 7}};
    int64_t place = places[is_exphil(block)][role];
    return place < 0 ? -1 : block->first + place;
}

/* log(e^0.001 - 1) and log(e^0.1 - 1). Rows of 16 bits hold the others exactly; softplus of those is 0.001001 and
 * 0.1002. */
static const double *step_limits(const xph_plan *plan)
{
    static const double reals[2] = {-6.9072552373154705, -2.2521684610440906}, narrow[2] = {-6.90625, -2.25};
    return plan->type == XPH_BF16 || plan->type == XPH_F16 ? narrow : reals;
}

static int64_t inner(const exphil_model *model)
{
    return model->config.mamba_expand * model->config.hidden;
}

static void declare(xph_declaring *to, xph_block *block)
{
    const exphil_model_config *c = &to->model->config;
    int64_t width = inner(to->model), states = c->mamba_states, rank = c->mamba_rank, taps = c->mamba_taps;
    double conv = 1.0 / __builtin_sqrt((double)taps);
    xph_declare_norm(to, "norm", c->hidden);
    xph_declare_linear(to, "in_proj", c->hidden, 2 * width, 1.0);
    xph_declare(to, "conv.weight", width, taps, XPH_DECAYS, XPH_INIT_UNIFORM, conv);
    xph_declare(to, "conv.bias", width, 0, 0, XPH_INIT_UNIFORM, conv);
    xph_declare(to, "x_proj.weight", rank + 2 * states, width, XPH_DECAYS | XPH_PACKS, XPH_INIT_UNIFORM,
                1.0 / __builtin_sqrt((double)width));
    if (is_exphil(block)) xph_declare_bias(to, 1, "x_proj.bias", rank + 2 * states, XPH_INIT_ZERO, 0.0);
    xph_declare(to, "dt_proj.weight", width, rank, XPH_DECAYS | XPH_PACKS, XPH_INIT_UNIFORM,
                1.0 / __builtin_sqrt((double)rank));
    xph_declare(to, "dt_proj.bias", width, 0, 0, XPH_INIT_DT, 0.0);
    if (!is_exphil(block)) {
        xph_declare(to, "A_log", width, states, XPH_PREPARES, XPH_INIT_STATES, 0.0);
        xph_declare(to, "D", width, 0, 0, XPH_INIT_ONE, 0.0);
    }
    xph_declare_linear(to, "out_proj", width, c->hidden, xph_residual_scale(to->model));
    block->state = (taps - 1) * width + width * states;
}

/* ---- convolution --------------------------------------------------------------------------------------- */

static xph_conv_args conv_args(const xph_plan *plan, const xph_saved *s)
{
    return (xph_conv_args){.type = plan->type,
                           .batch = plan->batch,
                           .time = plan->time,
                           .width = inner(plan->model),
                           .taps = plan->model->config.mamba_taps,
                           .ldx = s->more[XZ].ld,
                           .ldy = s->more[XC].ld};
}

static void bind_conv(xph_plan *plan, const xph_block *block, const xph_saved *s, xph_conv_args *a,
                      bool forward)
{
    xph_plan_bind(plan, &a->x, s->more[XZ]);
    xph_plan_bind(plan, &a->w, xph_weight(plan, block->first + CONV));
    xph_plan_bind(plan, &a->bias, xph_weight(plan, block->first + CONV_BIAS));
    xph_plan_bind(plan, &a->reset, (xph_ref){.space = XPH_SPACE_RESET});
    xph_plan_bind_state(plan, block, 0, &a->state_in, forward ? &a->state_out : NULL, &a->ld_state);
    if (forward) xph_plan_bind(plan, &a->y, s->more[XC]);
}

static void conv_forward(xph_plan *plan, const xph_block *block, const xph_saved *s)
{
    xph_conv_args args = conv_args(plan, s);
    xph_step *step = xph_plan_step(plan, XPH_OP_CONV, &args, sizeof args);
    if (!step) return;
    xph_plan_scratch(plan, step, NULL);
    bind_conv(plan, block, s, &step->args.conv, true);
}

/* Gives whether it and the scan, by *z_sum, add up the gradient of the bias of the in-projection. */
static bool conv_backward(xph_plan *plan, const xph_block *block, const xph_saved *s, xph_ref dxc,
                          xph_ref dxz, void **z_sum)
{
    xph_conv_grad_args args = {.fwd = conv_args(plan, s), .lddy = dxc.ld, .lddx = dxz.ld};
    xph_step *step = xph_plan_step(plan, XPH_OP_CONV_GRAD, &args, sizeof args);
    if (!step) return false;
    xph_conv_grad_args *a = &step->args.conv_grad;
    xph_plan_scratch(plan, step, &a->scratch);
    bind_conv(plan, block, s, &a->fwd, false);
    xph_plan_bind(plan, &a->dy, dxc);
    xph_plan_bind(plan, &a->dx, dxz);
    xph_plan_bind(plan, &a->dw, xph_gradient(plan, block->first + CONV));
    xph_plan_bind(plan, &a->dbias, xph_gradient(plan, block->first + CONV_BIAS));
    if (!step->chosen.sums || !z_sum) return false;
    xph_ref bias = xph_gradient(plan, block->first + IN_BIAS);
    xph_plan_bind(plan, &a->dx_sum, bias);
    bias.at += inner(plan->model) * (int64_t)plan->model->shape.real_bytes;
    xph_plan_bind(plan, z_sum, bias);
    return true;
}

/* ---- scan ---------------------------------------------------------------------------------------------- */

/* Where the bias of dt is added. */
static bool scan_adds_bias(const xph_plan *plan, const xph_block *block)
{
    return !is_exphil(block) && (plan->type == XPH_BF16 || plan->type == XPH_F16);
}

static int64_t dt_bias(const xph_plan *plan, const xph_block *block, bool scan)
{
    return scan_adds_bias(plan, block) == scan ? tensor(block, DT_BIAS) : -1;
}

static xph_scan_args scan_args(const xph_plan *plan, const xph_block *block, const xph_saved *s)
{
    return (xph_scan_args){.type = plan->type,
                           .fixed = is_exphil(block),
                           .batch = plan->batch,
                           .time = plan->time,
                           .width = inner(plan->model),
                           .states = plan->model->config.mamba_states,
                           .ldx = s->more[XC].ld,
                           .lddt = s->more[STEP].ld,
                           .ldb = s->more[PROJ].ld,
                           .ldc = s->more[PROJ].ld,
                           .ldz = s->more[XZ].ld,
                           .ldy = s->more[Y].ld};
}

/* Whether the device's scan also makes dt from the bottleneck, for one frame. */
static bool scan_makes_step(xph_plan *plan, const xph_block *block, const xph_saved *s, xph_scan_args *args)
{
    xph_device *device = plan->model->device;
    xph_op_info info = {0};
    *args = scan_args(plan, block, s);
    if (plan->status < 0 || plan->train || plan->time != 1 || is_exphil(block)) return false;
    args->step = xph_linear_shape(plan, s->more[PROJ], tensor(block, DT), s->more[STEP]);
    if (device->backend->query(device, XPH_OP_SCAN, args, &info) >= 0 && info.products) return true;
    args->step = (xph_linear_args){0};
    return false;
}

static void bind_scan(xph_plan *plan, const xph_block *block, const xph_saved *s, xph_scan_args *a,
                      bool forward)
{
    const exphil_model_config *c = &plan->model->config;
    xph_ref b = xph_columns(s->more[PROJ], c->mamba_rank);
    xph_plan_bind(plan, &a->x, s->more[XC]);
    xph_plan_bind(plan, &a->dt, s->more[STEP]);
    xph_plan_bind(plan, &a->delta_bias, xph_weight(plan, dt_bias(plan, block, true)));
    xph_plan_bind(plan, &a->a_log, xph_weight(plan, tensor(block, A_LOG)));
    xph_plan_bind(plan, &a->decay, xph_packed(plan, tensor(block, A_LOG)));
    xph_plan_bind(plan, &a->b, b);
    xph_plan_bind(plan, &a->c, xph_columns(b, c->mamba_states));
    xph_plan_bind(plan, &a->skip, xph_weight(plan, tensor(block, SKIP)));
    xph_plan_bind(plan, &a->z, xph_columns(s->more[XZ], inner(plan->model)));
    xph_plan_bind(plan, &a->reset, (xph_ref){.space = XPH_SPACE_RESET});
    int64_t conv_state = (c->mamba_taps - 1) * inner(plan->model);
    xph_plan_bind_state(plan, block, conv_state, &a->state_in, forward ? &a->state_out : NULL, &a->ld_state);
    if (forward) xph_plan_bind(plan, &a->y, s->more[Y]);
}

static void scan_forward(xph_plan *plan, const xph_block *block, xph_saved *s, const xph_scan_args *args)
{
    xph_step *step = xph_plan_step(plan, XPH_OP_SCAN, args, sizeof *args);
    if (!step) return;
    xph_plan_scratch(plan, step, NULL); /* for saved_bytes: what stays must lie below scratch */
    s->more[MARKS] = xph_plan_kept_bytes(plan, step->chosen.saved_bytes);
    xph_plan_scratch(plan, step, &step->args.scan.scratch);
    bind_scan(plan, block, s, &step->args.scan, true);
    if (args->step.rows)
        xph_bind_linear(plan, &step->args.scan.step, s->more[PROJ], tensor(block, DT),
                        dt_bias(plan, block, false), (xph_ref){0}, (xph_ref){0});
    xph_plan_bind(plan, &step->args.scan.marks, s->more[MARKS]);
}

/* What the gradient of the scan adds up: dt's bias that the linear added, and, where z_sum is not NULL, the columns of dz. */
typedef struct scan_sums {
    bool dt_bias;
    void **z_sum;
} scan_sums;
static scan_sums scan_backward(xph_plan *plan, const xph_block *block, const xph_saved *s, xph_ref dy,
                               const xph_saved *d)
{
    const exphil_model_config *c = &plan->model->config;
    xph_scan_grad_args args = {.fwd = scan_args(plan, block, s),
                               .lddy = dy.ld,
                               .lddx = d->more[XC].ld,
                               .ldddt = d->more[STEP].ld,
                               .lddb = d->more[PROJ].ld,
                               .lddc = d->more[PROJ].ld,
                               .lddz = d->more[XZ].ld};
    args.fwd.marked = s->more[MARKS].space != XPH_SPACE_NONE;
    xph_step *step = xph_plan_step(plan, XPH_OP_SCAN_GRAD, &args, sizeof args);
    if (!step) return (scan_sums){false, NULL};
    xph_scan_grad_args *a = &step->args.scan_grad;
    xph_plan_scratch(plan, step, &a->scratch);
    bind_scan(plan, block, s, &a->fwd, false);
    xph_plan_bind(plan, &a->fwd.marks, s->more[MARKS]);
    xph_ref db = xph_columns(d->more[PROJ], c->mamba_rank);
    xph_plan_bind(plan, &a->dy, dy);
    xph_plan_bind(plan, &a->dx, d->more[XC]);
    xph_plan_bind(plan, &a->ddt, d->more[STEP]);
    xph_plan_bind(plan, &a->db, db);
    xph_plan_bind(plan, &a->dc, xph_columns(db, c->mamba_states));
    xph_plan_bind(plan, &a->dz, xph_columns(d->more[XZ], inner(plan->model)));
    xph_plan_bind(plan, &a->da_log, xph_gradient(plan, tensor(block, A_LOG)));
    xph_plan_bind(plan, &a->dskip, xph_gradient(plan, tensor(block, SKIP)));
    xph_plan_bind(plan, &a->ddelta_bias, xph_gradient(plan, dt_bias(plan, block, true)));
    /* Behind limits dt has another gradient than the scan's. */
    bool sums = step->chosen.sums && !is_exphil(block);
    if (sums) xph_plan_bind(plan, &a->ddt_sum, xph_gradient(plan, dt_bias(plan, block, false)));
    return (scan_sums){sums, step->chosen.sums ? &a->dz_sum : NULL};
}

/* ---- block --------------------------------------------------------------------------------------------- */

/* The five buffers of the block, or the gradients of them. */
static void make_buffers(xph_plan *plan, xph_saved *s)
{
    const exphil_model_config *c = &plan->model->config;
    int64_t rows = plan->rows, width = inner(plan->model);
    s->more[XZ] = xph_plan_buffer(plan, rows, 2 * width);
    s->more[XC] = xph_plan_buffer(plan, rows, width);
    s->more[PROJ] = xph_plan_buffer(plan, rows, c->mamba_rank + 2 * c->mamba_states);
    s->more[STEP] = xph_plan_buffer(plan, rows, width);
    s->more[Y] = xph_plan_buffer(plan, rows, width);
}

static void forward(xph_plan *plan, const xph_block *block, xph_saved *s)
{
    const xph_ref none = {0};
    int64_t first = block->first;
    bool all = plan->pass != XPH_PASS_RESTORE;
    xph_emit_enter(plan, first + NORM, s);
    make_buffers(plan, s);
    s->more[MARKS] = none; /* not restored: the gradient makes its own */
    if (all) {
        xph_emit_linear(plan, s->u, first + IN, first + IN_BIAS, none, s->more[XZ]);
        conv_forward(plan, block, s);
        xph_emit_linear(plan, s->more[XC], first + X, tensor(block, X_BIAS), none, s->more[PROJ]);
    }
    xph_scan_args scan;
    if (!scan_makes_step(plan, block, s, &scan))
        xph_emit_linear(plan, s->more[PROJ], tensor(block, DT), dt_bias(plan, block, false), none,
                        s->more[STEP]);
    if (is_exphil(block))
        xph_emit_activate(plan, XPH_ACTIVATE_CLAMP, step_limits(plan), s->more[STEP], s->more[STEP]);
    if (!all) return;
    scan_forward(plan, block, s, &scan);
    xph_emit_out_linear(plan, s, s->more[Y], tensor(block, OUT), tensor(block, OUT_BIAS));
}

static void backward(xph_plan *plan, const xph_block *block, const xph_saved *s)
{
    int64_t first = block->first;
    xph_saved d = {0};
    make_buffers(plan, &d);
    xph_ref du = xph_plan_buffer(plan, plan->rows, plan->model->shape.hidden);
    const int64_t out_bias = xph_plan_bias_of_dx(plan, tensor(block, OUT_BIAS));
    xph_emit_linear_grad(plan, s->more[Y], tensor(block, OUT), out_bias, plan->dx, d.more[Y], false);
    const scan_sums done = scan_backward(plan, block, s, d.more[Y], &d);
    if (is_exphil(
            block)) /* where the limits hold the gradient is 0, which STEP shows: it is one of them there */
        xph_emit_activate_grad(plan, XPH_ACTIVATE_CLAMP, step_limits(plan), s->more[STEP], d.more[STEP],
                               d.more[STEP]);
    xph_emit_linear_grad(plan, s->more[PROJ], tensor(block, DT),
                         done.dt_bias ? -1 : dt_bias(plan, block, false), d.more[STEP], d.more[PROJ], false);
    xph_emit_linear_grad(plan, s->more[XC], first + X, tensor(block, X_BIAS), d.more[PROJ], d.more[XC], true);
    const bool in_done = conv_backward(plan, block, s, d.more[XC], d.more[XZ], done.z_sum);
    xph_emit_linear_grad(plan, s->u, first + IN, in_done ? -1 : first + IN_BIAS, d.more[XZ], du, false);
    xph_emit_leave(plan, first + NORM, s, du);
}

/* Steps are made again from the bottleneck: as bfloat16 a preactivation near -5 would be off by a hundredth. */
const xph_layer xph_layer_mamba = {declare, forward, backward, 1u << XZ | 1u << XC | 1u << PROJ | 1u << Y,
                                   0,       false,   false};
const xph_layer xph_layer_mamba_exphil = {
    declare, forward, backward, 1u << XZ | 1u << XC | 1u << PROJ | 1u << Y, 0, false, false};
