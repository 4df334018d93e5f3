/* The blocks of a training net, and where their activations are kept for backward. Blocks are taken in
 * segments; only the activations of one segment lie in the arena at a time, those of the last when backward
 * begins. All others are recomputed in backward:
 *   nothing requested      one segment of all blocks: everything stays where forward left it
 *   checkpoint n           segments of n blocks (Chen et al. 2016). Their inputs wait in the store, their forward runs
 *                          again, all but the last output. Same kernels on same numbers: same bits
 *   bfloat16               segments of one block. What its layer names waits in the store as bfloat16, widened again
 *                          before use; the rest is made again from that
 *   both                   as checkpoint, with inputs as bfloat16
 * Forward itself never sees a rounded number, and what the last segment keeps is exact. */
#include "model/layer.h"

/* ---- shapes --------------------------------------------------------------------------------------------- */

static bool rounds(const xph_plan *plan)
{
    return (plan->net->flags & XPH_NET_BF16) != 0;
}

static int64_t checkpoint(const xph_plan *plan)
{
    return (int64_t)(plan->net->flags >> 16);
}

static int64_t segment_blocks(const xph_plan *plan)
{
    if (checkpoint(plan)) return checkpoint(plan);
    return rounds(plan) ? 1 : plan->model->block_count;
}

static int64_t segment_end(const xph_plan *plan, int64_t first)
{
    int64_t end = first + segment_blocks(plan);
    return end < plan->model->block_count ? end : plan->model->block_count;
}

static int64_t elements(const xph_plan *plan, xph_ref dense)
{
    return plan->rows * dense.ld;
}

/* Numbers that are narrow already wait as they are. */
static void put_away(xph_plan *plan, xph_ref from, xph_ref to)
{
    size_t bytes = (size_t)elements(plan, from) * from.element;
    if (from.element == to.element)
        xph_emit_copy(plan, bytes, from, to);
    else
        xph_emit_cast(plan, XPH_BF16, true, elements(plan, from), from, to);
}

static void take_back(xph_plan *plan, xph_ref from, xph_ref to)
{
    size_t bytes = (size_t)elements(plan, to) * to.element;
    if (from.element == to.element)
        xph_emit_copy(plan, bytes, from, to);
    else
        xph_emit_cast(plan, XPH_BF16, false, elements(plan, to), from, to);
}

/* ---- the store ------------------------------------------------------------------------------------------ */

/* What forward left of the one block of a segment, while it is there. */
static void store_activations(xph_plan *plan, const xph_layer *layer, xph_saved *s)
{
    for (int m = 0; m < XPH_SAVED_MORE; m++) {
        bool narrow = layer->bf16 >> m & 1;
        if (!narrow && !(layer->exact >> m & 1)) continue;
        s->stored[m] =
            xph_plan_store(plan, elements(plan, s->more[m]), narrow ? sizeof(uint16_t) : s->more[m].element);
        put_away(plan, s->more[m], s->stored[m]);
    }
}

/* Back to where they were: the stack gives the same places when forward is emitted again from the same mark. */
static void restore_activations(xph_plan *plan, const xph_layer *layer, const xph_saved *s)
{
    for (int m = 0; m < XPH_SAVED_MORE; m++)
        if ((layer->bf16 | layer->exact) >> m & 1) take_back(plan, s->stored[m], s->more[m]);
}

/* ---- forward -------------------------------------------------------------------------------------------- */

static void emit_blocks(xph_plan *plan, int64_t first, int64_t end, xph_ref out)
{
    const exphil_model *model = plan->model;
    for (int64_t i = first; i < end && plan->status >= 0; i++) {
        bool last = i + 1 == end;
        plan->out = last ? out : (xph_ref){0};
        plan->ends = last && plan->pass != XPH_PASS_FIRST;
        xph_layer_of(model->block[i].kind)->forward(plan, &model->block[i], &plan->saved[i]);
    }
    plan->out = (xph_ref){0};
    plan->ends = false;
}

/* Where the output of a segment goes, which is the input of the next: it must outlive this segment's memory. Rounded
 * inputs are stored, so two buffers take turns. */
static xph_ref segment_output(xph_plan *plan, const xph_ref buffer[2], int64_t number)
{
    if (rounds(plan)) return buffer[number % 2];
    xph_ref out = xph_plan_store(plan, plan->rows * plan->model->widest, plan->element);
    return out;
}

static void forward_segments(xph_plan *plan)
{
    const exphil_model *model = plan->model;
    xph_ref buffer[2] = {plan->x, {0}};
    if (rounds(plan)) buffer[1] = xph_plan_buffer(plan, plan->rows, model->widest);
    plan->region = plan->top;
    size_t before = plan->peak;
    plan->peak = 0;
    int64_t number = 1;
    for (int64_t first = 0; first < model->block_count && plan->status >= 0; number++) {
        int64_t end = segment_end(plan, first);
        bool last = end == model->block_count;
        xph_saved *s = &plan->saved[first];
        plan->top = plan->region;
        if (rounds(plan) && !last) {
            s->stored_x = xph_plan_store(plan, elements(plan, plan->x), sizeof(uint16_t));
            put_away(plan, plan->x, s->stored_x);
        }
        emit_blocks(plan, first, end, last ? (xph_ref){0} : segment_output(plan, buffer, number));
        if (rounds(plan) && !checkpoint(plan) && !last)
            store_activations(plan, xph_layer_of(model->block[first].kind), s);
        first = end;
    }
    /* Nothing that lives longer may lie where a segment, its scratch included, is made again. */
    if (number > 2) plan->top = plan->peak;
    if (plan->peak < before) plan->peak = before;
}

void xph_blocks_forward(xph_plan *plan)
{
    if (plan->train) {
        forward_segments(plan);
        return;
    }
    for (int64_t i = 0; i < plan->model->block_count; i++) {
        size_t mark = plan->top;
        emit_blocks(plan, i, i + 1, (xph_ref){0});
        plan->top = mark;
    }
}

/* ---- backward ------------------------------------------------------------------------------------------- */

/* The activations of blocks [first, end) in the arena once more. */
static void make_again(xph_plan *plan, int64_t first, int64_t end)
{
    xph_saved *s = &plan->saved[first];
    plan->top = plan->region;
    plan->x = s->x;
    plan->pass = rounds(plan) && !checkpoint(plan) ? XPH_PASS_RESTORE : XPH_PASS_AGAIN;
    if (rounds(plan)) take_back(plan, s->stored_x, s->x);
    if (plan->pass == XPH_PASS_RESTORE)
        restore_activations(plan, xph_layer_of(plan->model->block[first].kind), s);
    emit_blocks(plan, first, end, (xph_ref){0});
    plan->pass = XPH_PASS_FIRST;
}

void xph_blocks_backward(xph_plan *plan)
{
    const exphil_model *model = plan->model;
    size_t mark = plan->top;
    int64_t size = segment_blocks(plan);
    for (int64_t first = (model->block_count - 1) / size * size; first >= 0; first -= size) {
        int64_t end = segment_end(plan, first);
        if (end < model->block_count) make_again(plan, first, end);
        for (int64_t i = end - 1; i >= first && plan->status >= 0; i--) {
            plan->top = mark;
            xph_layer_of(model->block[i].kind)->backward(plan, &model->block[i], &plan->saved[i]);
        }
    }
}
