/* A net: a model planned once for B streams of T frames. Creation asks every layer for its operations; a
 * call writes the addresses it was given into their arguments and runs them in order. Calls allocate
 * nothing.
 *
 * Training keeps what backward reads, block after block or as segment.c says, and works on gradients above
 * that; without training every block reuses the memory of the one before and the residual stream stays in
 * place. */
#include "model/layer.h"

/* ---- planning ------------------------------------------------------------------------------------------ */

static void plan_blocks(xph_plan *plan)
{
    plan->program = &plan->net->blocks;
    xph_input_forward(plan);
    xph_blocks_forward(plan);
}

/* Drawing needs nothing of what the heads of all rows leave, but must not spoil it. */
static void plan_heads(xph_plan *plan)
{
    size_t mark = plan->top;
    plan->program = &plan->net->heads;
    xph_heads_forward(plan);
    if (!plan->train) plan->top = mark;
    mark = plan->top;
    plan->program = &plan->net->draw;
    plan->net->draws = true;
    xph_heads_draw(plan);
    plan->top = mark;
}

static void plan_backward(xph_plan *plan)
{
    plan->program = &plan->net->backward;
    plan->dx = xph_plan_buffer(plan, plan->rows, plan->model->widest);
    plan->dx.ld = plan->model->shape.hidden;
    size_t mark = plan->top;
    xph_heads_backward(plan);
    plan->top = mark;
    xph_blocks_backward(plan);
    plan->top = mark;
    xph_input_backward(plan);
}

static void take_precision(xph_plan *plan)
{
    uint32_t precision = XPH_NET_PRECISION_OF(plan->net->flags);
    plan->type = precision == EXPHIL_PRECISION_BF16  ? XPH_BF16
                 : precision == EXPHIL_PRECISION_F16 ? XPH_F16
                                                     : plan->model->shape.type;
    plan->math = precision == EXPHIL_PRECISION_F32 ? XPH_MATH_F32 : XPH_MATH_TF32;
    bool narrow = plan->type != plan->model->shape.type;
    plan->net->type = plan->type;
    plan->element = narrow ? (uint32_t)sizeof(uint16_t) : (uint32_t)plan->model->shape.real_bytes;
}

/* In the order of xph_net_actions. */
static void plan_outputs(xph_plan *plan)
{
    xph_net *net = plan->net;
    const xph_model_shape *shape = &net->model->shape;
    net->gives_actions = (net->flags & XPH_NET_INLINE) && !net->backend->host_memory;
    if (net->gives_actions) net->actions_at = (size_t)xph_plan_reals(plan, plan->batch, shape->heads).at;
    if (shape->value) plan->values = xph_plan_reals(plan, plan->rows, 1);
    net->values_at = (size_t)plan->values.at;
    plan->logits = xph_plan_reals(plan, plan->rows, shape->logits);
    net->logits_at = (size_t)plan->logits.at;
}

static exphil_status plan_net(xph_net *net, exphil_error *error)
{
    exphil_context *context = net->model->context;
    xph_plan *plan = xph_calloc(context, 1, sizeof *plan);
    if (!plan) return xph_no_memory(sizeof *plan, error);
    plan->net = net;
    plan->model = net->model;
    plan->error = error;
    plan->train = (net->flags & XPH_NET_TRAIN) != 0;
    take_precision(plan);
    plan->batch = net->batch;
    plan->time = net->time;
    plan->rows = net->batch * net->time;
    plan_outputs(plan);
    plan_blocks(plan);
    plan_heads(plan);
    net->kept_bytes = plan->train ? plan->top : 0;
    if (plan->train) plan_backward(plan);
    net->kept_bytes += plan->stored;
    exphil_status status = xph_plan_finish(plan);
    xph_free(context, plan, sizeof *plan);
    return status;
}

/* ---- addresses ----------------------------------------------------------------------------------------- */

typedef struct bases {
    const void *at[XPH_SPACES];
} bases;

static bases bases_of(const void *weights, const void *packed, const xph_net_io *io)
{
    return (bases){{[XPH_SPACE_WEIGHTS] = weights,
                    [XPH_SPACE_PACKED] = packed,
                    [XPH_SPACE_FLOATS] = io->floats,
                    [XPH_SPACE_IDS] = io->ids,
                    [XPH_SPACE_PAST] = io->past,
                    [XPH_SPACE_ACTIONS] = io->actions,
                    [XPH_SPACE_RESET] = io->reset,
                    [XPH_SPACE_STATE_IN] = io->state_in,
                    [XPH_SPACE_STATE_OUT] = io->state_out}};
}

/* The first patch that is not as it should be. Play gives the same addresses on every frame but those of the state,
 * which change places, and the order of reading: then the other arguments hold theirs already. */
static int64_t first_stale(const xph_net *net, const bases *b, const xph_net_io *io)
{
    bases before = *b;
    if (!net->patched || io->ld_state != net->ld_state || io->lagging != net->lagging) return 0;
    if (memcmp(net->base, b->at, sizeof net->base) == 0 && io->back == net->back) return net->patch_count;
    before.at[XPH_SPACE_STATE_IN] = net->base[XPH_SPACE_STATE_IN];
    before.at[XPH_SPACE_STATE_OUT] = net->base[XPH_SPACE_STATE_OUT];
    return memcmp(net->base, before.at, sizeof net->base) == 0 ? net->patch_states : 0;
}

static void write_addresses(xph_net *net, const bases *b, const xph_net_io *io)
{
    int64_t ld_state = io->ld_state;
    for (int64_t i = first_stale(net, b, io); i < net->patch_count; i++) {
        const xph_patch *patch = &net->patch[i];
        const unsigned char *base = b->at[patch->space];
        const void *address = base ? base + patch->at : NULL;
        if (patch->space == XPH_SPACE_LD_STATE)
            memcpy(patch->slot, &ld_state, sizeof ld_state);
        else if (patch->space == XPH_SPACE_LAGGING)
            memcpy(patch->slot, &io->lagging, sizeof io->lagging);
        else if (patch->space == XPH_SPACE_BACK)
            memcpy(patch->slot, &io->back, sizeof io->back);
        else
            memcpy(patch->slot, &address, sizeof address);
    }
    memcpy(net->base, b->at, sizeof net->base);
    net->ld_state = ld_state;
    net->lagging = io->lagging;
    net->back = io->back;
    net->patched = 1;
}

/* ---- one launch for all ---- */

/* Those that play runs. */
static int64_t list_calls(const xph_program *program, xph_joined_op *to)
{
    int64_t count = 0;
    for (const xph_step *step = program->first; step; step = step->next) {
        if (step->when == XPH_WHEN_FUSED) continue;
        if (to) to[count] = (xph_joined_op){.op = step->op, .args = &step->args};
        count++;
    }
    return count;
}

/* Addresses that are not known yet are some that are far from each other. */
static void place_apart(bases *b)
{
    enum { APART = sizeof(uintptr_t) > 4 ? 40 : 27 };
    for (int i = 0; i < XPH_SPACES; i++) b->at[i] = (const void *)(((uintptr_t)i + 1) << APART);
    b->at[XPH_SPACE_RESET] = NULL;
}

static exphil_status join(xph_net *net, exphil_error *error)
{
    const xph_net_io io = {.ld_state = net->model->shape.state};
    if (!net->backend->joins) return EXPHIL_OK;
    net->call_count = list_calls(&net->blocks, NULL) + list_calls(&net->draw, NULL);
    size_t bytes = (size_t)net->call_count * sizeof *net->calls;
    net->calls = xph_alloc(net->model->context, bytes);
    if (!net->calls) return xph_no_memory(bytes, error);
    list_calls(&net->draw, net->calls + list_calls(&net->blocks, net->calls));
    bases b;
    place_apart(&b);
    write_addresses(net, &b, &io);
    net->patched = 0; /* the next call writes all of its own */
    net->joins = net->backend->joins(net->model->device, net->calls, net->call_count) != 0;
    return EXPHIL_OK;
}

bool xph_net_joins(const xph_net *net)
{
    return net->joins;
}

/* ---- making and freeing -------------------------------------------------------------------------------- */

exphil_status xph_net_create(const exphil_model *model, int64_t batch, int64_t time, uint32_t flags,
                             xph_net **net, exphil_error *error)
{
    if (batch < 1 || time < 1 || batch > INT32_MAX || time > INT32_MAX)
        return xph_fail(error, EXPHIL_E_INVALID, "a net of %lld x %lld frames cannot be made",
                        (long long)batch, (long long)time);
    xph_net *made = xph_calloc(model->context, 1, sizeof *made);
    if (!made) return xph_no_memory(sizeof *made, error);
    made->model = xph_model_retain(model);
    made->backend = model->device->backend;
    made->batch = batch;
    made->time = time;
    made->flags = flags;
    uint32_t stream_flags = XPH_STREAM_NET | (flags & XPH_NET_INLINE ? XPH_STREAM_INLINE : 0);
    exphil_status status = made->backend->stream_create(model->device, stream_flags, &made->stream);
    if (status == EXPHIL_E_MEMORY && made->backend->stream_bytes)
        status = xph_no_device_memory(error, model->device, status,
                                      made->backend->stream_bytes(model->device, stream_flags));
    else if (status < 0)
        status = xph_fail_device(error, model->device, status, "the device made no stream for a net");
    if (status >= 0) status = plan_net(made, error);
    if (status >= 0 && flags & XPH_NET_JOINS) status = join(made, error);
    if (status < 0) {
        xph_net_destroy(made);
        return status;
    }
    *net = made;
    return EXPHIL_OK;
}

static void free_program(exphil_context *context, xph_program *program)
{
    while (program->first) {
        xph_step *next = program->first->next;
        xph_free(context, program->first, sizeof *program->first);
        program->first = next;
    }
}

static void free_spares(xph_net *net)
{
    while (net->spares) {
        xph_spare *next = net->spares->next;
        net->backend->free(net->model->device, net->spares->address, net->spares->bytes);
        xph_free(net->model->context, net->spares, sizeof *net->spares);
        net->spares = next;
    }
}

/* Also of a net that is only partly made. */
void xph_net_destroy(xph_net *net)
{
    if (!net) return;
    exphil_model *model = net->model;
    exphil_context *context = model->context;
    if (net->stream) net->backend->stream_wait(net->stream);
    free_program(context, &net->blocks);
    free_program(context, &net->heads);
    free_program(context, &net->draw);
    free_program(context, &net->backward);
    xph_free(context, net->patch, (size_t)net->patch_capacity * sizeof *net->patch);
    free_spares(net);
    xph_free(context, net->calls, (size_t)net->call_count * sizeof *net->calls);
    if (net->arena) net->backend->free(model->device, net->arena, net->arena_bytes);
    if (net->stream) net->backend->stream_destroy(net->stream);
    xph_free(context, net, sizeof *net);
    xph_model_release(model);
}

xph_stream *xph_net_stream(const xph_net *net)
{
    return net->stream;
}

size_t xph_net_bytes(const xph_net *net)
{
    return net->arena_bytes;
}

size_t xph_net_planning_bytes(void)
{
    return sizeof(xph_plan);
}

size_t xph_net_kept_bytes(const xph_net *net)
{
    return net->kept_bytes;
}

void *xph_net_logits(const xph_net *net)
{
    return net->arena + net->logits_at;
}

void *xph_net_values(const xph_net *net)
{
    return net->model->shape.value ? net->arena + net->values_at : NULL;
}

void *xph_net_actions(const xph_net *net)
{
    return net->gives_actions ? net->arena + net->actions_at : NULL;
}

/* ---- showing ------------------------------------------------------------------------------------------- */

static void show(const xph_net *net, const xph_program *program, const char *part, xph_net_visit visit,
                 void *arg)
{
    static const xph_op_info joined = {.name = "joined_step"};
    const bool whole = net->joins && (program == &net->blocks || program == &net->draw);
    for (const xph_step *step = program->first; step; step = step->next)
        if (step->when != (net->fuses ? XPH_WHEN_APART : XPH_WHEN_FUSED))
            visit(arg, part, step->op, whole ? &joined : &step->chosen,
                  step->op == XPH_STEP_COPY ? NULL : &step->args);
}

void xph_net_show(xph_net *net, xph_net_visit visit, void *arg)
{
    static const unsigned char stand_in[64];
    const xph_net_io io = {.ld_state = net->model->shape.state};
    bases b;
    for (int i = 0; i < XPH_SPACES; i++) b.at[i] = stand_in;
    write_addresses(net, &b, &io);
    net->patched = 0; /* the next call writes all of its own */
    show(net, &net->blocks, "blocks", visit, arg);
    show(net, &net->heads, "heads", visit, arg);
    show(net, &net->draw, "draw", visit, arg);
    show(net, &net->backward, "backward", visit, arg);
}

/* ---- running -------------------------------------------------------------------------------------------- */

static exphil_status run_step(const xph_net *net, const xph_step *step)
{
    const xph_copy_args *copy = &step->args.copy;
    if (step->op == XPH_STEP_COPY) return net->backend->copy(net->stream, copy->to, copy->from, copy->bytes);
    return net->backend->run(net->stream, step->chosen.kernel, &step->args);
}

static exphil_status run_settled(xph_net *net, xph_step *step)
{
    exphil_status status = run_step(net, step);
    while (status == EXPHIL_E_UNSUPPORTED) {
        XPH_TRY(xph_plan_next_candidate(net, step));
        status = run_step(net, step);
    }
    return status;
}

/* A step is refused for which there are others: they run from now on. */
static exphil_status unfuse(xph_net *net)
{
    net->fuses = false;
    xph_log(net->model->context, EXPHIL_LOG_WARNING,
            "%s refuses heads and loss in one operation, they run one by one", net->backend->name);
    return EXPHIL_E_UNSUPPORTED;
}

/* A recording in which something was refused is thrown away: it is gone on with to find what else is. */
static exphil_status run(xph_net *net, const xph_program *program)
{
    for (xph_step *step = program->first; step; step = step->next) {
        if (step->when != XPH_WHEN_ALWAYS && step->when != net->now) continue;
        exphil_status status = net->recording ? run_step(net, step) : run_settled(net, step);
        if (status == EXPHIL_E_UNSUPPORTED && net->recording)
            net->refused = true;
        else if (status == EXPHIL_E_UNSUPPORTED && step->when == XPH_WHEN_FUSED)
            return unfuse(net);
        else
            XPH_TRY(status);
    }
    return EXPHIL_OK;
}

exphil_status xph_net_record(xph_net *net, exphil_status (*work)(void *arg), void *arg, xph_graph **graph)
{
    xph_graph *made = NULL;
    XPH_TRY(net->backend->record_begin(net->stream));
    net->recording = true;
    net->refused = false;
    exphil_status status = work(arg), ended = net->backend->record_end(net->stream, &made);
    net->recording = false;
    if (status >= 0) status = ended;
    if (status >= 0 && net->refused) status = EXPHIL_E_UNSUPPORTED;
    if (status < 0 && made) net->backend->graph_destroy(made); /* half of the work is none */
    if (status >= 0) *graph = made;
    return status;
}

exphil_status xph_net_pack(xph_net *net, const void *weights, void *packed)
{
    return xph_model_pack(net->model, net->stream, net->type, weights, packed);
}

exphil_status xph_net_forward(xph_net *net, const void *weights, const void *packed, const xph_net_io *io)
{
    bases b = bases_of(weights, packed, io);
    write_addresses(net, &b, io);
    net->now = XPH_WHEN_APART;
    XPH_TRY(run(net, &net->blocks));
    return run(net, &net->heads);
}

bool xph_net_fuses(const xph_net *net)
{
    return net->fuses;
}

/* A call that makes gradients. loss: host, or NULL: it was made between forward and backward. */
static void begin_gradients(xph_net *net, const void *weights, const void *packed, const xph_net_io *io,
                            const xph_loss_args *loss, const void *dlogits, const void *dvalues,
                            void *gradients)
{
    bases b = bases_of(weights, packed, io);
    b.at[XPH_SPACE_LOSS] = loss;
    b.at[XPH_SPACE_DLOGITS] = dlogits;
    b.at[XPH_SPACE_DVALUES] = dvalues;
    b.at[XPH_SPACE_GRADIENTS] = gradients;
    write_addresses(net, &b, io);
    net->now = loss ? XPH_WHEN_FUSED : XPH_WHEN_APART;
}

exphil_status xph_net_learn(xph_net *net, const void *weights, const void *packed, const xph_net_io *io,
                            const xph_loss_args *loss, void *dlogits, void *gradients)
{
    if (!net->fuses) return EXPHIL_E_STATE;
    begin_gradients(net, weights, packed, io, loss, dlogits, NULL, gradients);
    XPH_TRY(run(net, &net->blocks));
    XPH_TRY(run(net, &net->heads));
    return run(net, &net->backward);
}

exphil_status xph_net_backward(xph_net *net, const void *weights, const void *packed, const xph_net_io *io,
                               const void *dlogits, const void *dvalues, void *gradients)
{
    if (!(net->flags & XPH_NET_TRAIN)) return EXPHIL_E_STATE;
    begin_gradients(net, weights, packed, io, NULL, dlogits, dvalues, gradients);
    return run(net, &net->backward);
}

bool xph_net_draws(const xph_net *net)
{
    return net->draws;
}

static void point(xph_net *net, const void *weights, const void *packed, const xph_net_io *io,
                  const xph_sample_head *how, const float *noise, const int32_t *previous, int32_t *actions)
{
    bases b = bases_of(weights, packed, io);
    b.at[XPH_SPACE_HOW] = how;
    b.at[XPH_SPACE_NOISE] = noise;
    b.at[XPH_SPACE_DRAW] = io->draw;
    b.at[XPH_SPACE_PREVIOUS] = previous;
    b.at[XPH_SPACE_DRAWN] = actions;
    write_addresses(net, &b, io);
}

exphil_status xph_net_sample(xph_net *net, const void *weights, const void *packed, const xph_net_io *io,
                             const xph_sample_head *how, const float *noise, const int32_t *previous,
                             int32_t *actions)
{
    point(net, weights, packed, io, how, noise, previous, actions);
    net->now = XPH_WHEN_APART;
    XPH_TRY(run(net, &net->blocks));
    return run(net, &net->draw);
}

/* Another kernel than those of its steps may refuse, and then they are run one by one for good. */
static exphil_status run_joined(xph_net *net, const xph_download *results, int64_t count)
{
    exphil_status status = net->backend->run_joined(net->stream, net->calls, net->call_count, results, count);
    if (status == EXPHIL_E_UNSUPPORTED) {
        net->joins = false;
        net->refused = net->recording;
    }
    return status;
}

exphil_status xph_net_play(xph_net *net, const void *weights, const void *packed, const xph_net_io *io,
                           const xph_sample_head *how, const float *noise, const int32_t *previous,
                           int32_t *actions, const xph_download *results, int64_t result_count)
{
    if (net->joins) {
        point(net, weights, packed, io, how, noise, previous, actions);
        exphil_status status = run_joined(net, results, result_count);
        if (status != EXPHIL_E_UNSUPPORTED) return status;
    }
    XPH_TRY(xph_net_sample(net, weights, packed, io, how, noise, previous, actions));
    for (int64_t i = 0; i < result_count; i++)
        XPH_TRY(net->backend->download(net->stream, results[i].to, results[i].from, results[i].bytes));
    return EXPHIL_OK;
}

exphil_status xph_net_heads(xph_net *net)
{
    net->now = XPH_WHEN_APART;
    return run(net, &net->heads);
}
