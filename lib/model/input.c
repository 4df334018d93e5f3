/* The input of a model: floats | rows of the id tables, then of the conditions' | past actions as one-hot and
 * bits, then one linear to the hidden width. Tensors: input.weight, input.bias, then the tables. What a policy is told
 * beside the frame is so an id like those of the frame, and no kernel knows of it. */
#include "model/layer.h"

#include <stdio.h>

#define ID_SCALE     0.5 /* half-width of the initial id rows: of the size of a scaled float */
#define ROW_MULTIPLE 16  /* input rows are padded to whole vectors; the padding is never read */

enum { WEIGHT, BIAS, TABLES };

static void declare_told(xph_declaring *to)
{
    const xph_told *told = &to->model->told;
    for (int64_t i = 0; i < told->conditions; i++) {
        char name[64];
        snprintf(name, sizeof name, "conditions.%s.weight", told->condition[i].name);
        xph_declare(to, name, xph_told_entries(told, i), told->condition[i].width, XPH_DECAYS,
                    XPH_INIT_UNIFORM, ID_SCALE);
    }
    if (told->delays)
        xph_declare(to, "delay.weight", xph_told_entries(told, told->conditions), XPH_DELAY_WIDTH, XPH_DECAYS,
                    XPH_INIT_UNIFORM, ID_SCALE);
}

void xph_input_declare(xph_declaring *to)
{
    const exphil_spec *spec = to->model->spec;
    int64_t width = to->model->first_width, row = to->model->row;
    /* observations and one-hot actions share the row: one scale for all of it would be coarse for most */
    xph_declare(to, "input.weight", width, row, XPH_DECAYS | XPH_PACKS | XPH_KEEPS_HALF, XPH_INIT_UNIFORM,
                1.0 / __builtin_sqrt((double)row));
    xph_declare_bias(to, 1, "input.bias", width, XPH_INIT_ZERO, 0.0);
    for (int64_t i = 0; i < spec->id_count; i++) {
        char name[64];
        snprintf(name, sizeof name, "ids.%s.weight", spec->ids[i].name);
        xph_declare(to, name, spec->ids[i].entries, spec->ids[i].width, XPH_DECAYS, XPH_INIT_UNIFORM,
                    ID_SCALE);
    }
    declare_told(to);
}

static xph_embed_args embed_args(const xph_plan *plan)
{
    const xph_model_shape *shape = &plan->model->shape;
    return (xph_embed_args){.type = plan->type,
                            .rows = plan->rows,
                            .floats = shape->floats,
                            .ids = shape->tables,
                            .slots = shape->slots,
                            .heads = shape->heads,
                            .logits = shape->logits,
                            .ldx = shape->floats,
                            .ldid = shape->tables,
                            .tables = plan->net->table,
                            .lda = shape->slots * shape->heads,
                            .head = plan->model->head,
                            .ldy = plan->row.ld};
}

static void bind_embed(xph_plan *plan, xph_embed_args *a)
{
    xph_plan_bind(plan, &a->x, (xph_ref){.space = XPH_SPACE_FLOATS});
    xph_plan_bind(plan, &a->id, (xph_ref){.space = XPH_SPACE_IDS});
    xph_plan_bind(plan, &a->actions, (xph_ref){.space = XPH_SPACE_PAST});
}

static void make_tables(xph_plan *plan)
{
    for (int64_t i = 0; i < plan->model->shape.tables; i++) {
        int64_t index = plan->model->input_first + TABLES + i;
        xph_embed_table *table = &plan->net->table[i];
        table->entries = plan->model->tensor[index].param.dim[0];
        table->width = plan->model->tensor[index].param.dim[1];
        xph_plan_bind(plan, &table->table, xph_weight(plan, index));
        xph_plan_bind(plan, &table->dtable, xph_gradient(plan, index));
    }
}

/* Whether rows are the floats that play stages on a device of its own, and nothing else: they are read where they lie. */
static bool rows_are_floats(const xph_plan *plan)
{
    const xph_model_shape *shape = &plan->model->shape;
    return (plan->net->flags & XPH_NET_INLINE) && !plan->net->backend->host_memory && plan->type == XPH_F32 &&
           !shape->tables && !shape->slots && shape->floats % ROW_MULTIPLE == 0;
}

void xph_input_forward(xph_plan *plan)
{
    int64_t first = plan->model->input_first;
    int64_t ld = (plan->model->row + ROW_MULTIPLE - 1) / ROW_MULTIPLE * ROW_MULTIPLE;
    plan->x = xph_plan_buffer(plan, plan->rows, plan->model->widest);
    plan->x.ld = plan->model->first_width;
    size_t mark = plan->top;
    if (rows_are_floats(plan)) {
        plan->row = (xph_ref){.space = XPH_SPACE_FLOATS, .element = sizeof(float), .ld = ld};
        xph_emit_linear(plan, plan->row, first + WEIGHT, first + BIAS, (xph_ref){0}, plan->x);
        return;
    }
    plan->row = xph_plan_buffer(plan, plan->rows, ld);
    make_tables(plan);
    xph_embed_args args = embed_args(plan);
    xph_step *step = xph_plan_step(plan, XPH_OP_EMBED, &args, sizeof args);
    if (!step) return;
    xph_plan_scratch(plan, step, NULL);
    bind_embed(plan, &step->args.embed);
    xph_plan_bind(plan, &step->args.embed.y, plan->row);
    xph_emit_linear(plan, plan->row, first + WEIGHT, first + BIAS, (xph_ref){0}, plan->x);
    if (!plan->train && !plan->model->shape.slots) plan->top = mark; /* the heads read past actions again */
}

void xph_input_backward(xph_plan *plan)
{
    int64_t first = plan->model->input_first;
    xph_ref drow = {0};
    if (plan->model->shape.tables) drow = xph_plan_buffer(plan, plan->rows, plan->row.ld);
    const int64_t bias = xph_plan_bias_of_dx(plan, first + BIAS);
    xph_emit_linear_grad(plan, plan->row, first + WEIGHT, bias, plan->dx, drow, false);
    if (!plan->model->shape.tables) return;
    xph_embed_grad_args args = {.fwd = embed_args(plan), .lddy = drow.ld};
    xph_step *step = xph_plan_step(plan, XPH_OP_EMBED_GRAD, &args, sizeof args);
    if (!step) return;
    xph_plan_scratch(plan, step, &step->args.embed_grad.scratch);
    bind_embed(plan, &step->args.embed_grad.fwd);
    xph_plan_bind(plan, &step->args.embed_grad.dy, drow);
}
