/* The graph of attention in the form that cuDNN's engines know (cudnn-frontend builds it alike): product, scale, bias, causal
 * band by selects on indices, softmax in its parts with the log-sum-exp beside it, product. Intermediate tensors are virtual
 * and float, but for what goes into a product. */
#include "cudnn_attention.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { RANK = 4, ALIGNMENT = 16, OPS = 32, CONFIGS = 8, FIRST_ID = 1 };

/* Once something has failed nothing more is asked. */
typedef struct builder {
    const dn_library *lib;
    xph_cudnn_graph *to;
    const xph_cudnn_shape *shape;
    dn_desc ops[OPS];
    int op_count, status;
    int64_t next_id; /* of virtual tensors */
} builder;

static void note(builder *b, int status, const char *where)
{
    if (b->status || !status) return;
    b->status = status;
    b->to->where = where;
}

static dn_desc make(builder *b, int type, const char *what)
{
    dn_desc made = NULL;
    if (b->status) return NULL;
    if (b->to->count == XPH_CUDNN_DESCS) {
        note(b, DN_INTERNAL_ERROR, what);
        return NULL;
    }
    note(b, b->lib->cudnnBackendCreateDescriptor(type, &made), what);
    if (!b->status) b->to->all[b->to->count++] = made;
    return made;
}

static void set(builder *b, dn_desc desc, int name, int type, int64_t count, const void *values,
                const char *what)
{
    if (!b->status) note(b, b->lib->cudnnBackendSetAttribute(desc, name, type, count, values), what);
}

static void set_desc(builder *b, dn_desc desc, int name, dn_desc value, const char *what)
{
    if (value) set(b, desc, name, DN_OF_DESCRIPTOR, 1, &value, what);
}

static void end(builder *b, dn_desc desc, const char *what)
{
    if (!b->status) note(b, b->lib->cudnnBackendFinalize(desc), what);
}

/* ---- tensors ---- */

typedef struct layout {
    int64_t dims[RANK], strides[RANK];
} layout;

enum { IN_MEMORY, VIRTUAL, BY_VALUE };

static dn_desc tensor(builder *b, int64_t id, int type, int kind, const layout *at)
{
    static const char what[] = "a tensor";
    const int64_t alignment = ALIGNMENT, number = id + FIRST_ID;
    const _Bool is_virtual = kind == VIRTUAL, by_value = kind == BY_VALUE;
    dn_desc t = make(b, DN_TENSOR, what);
    set(b, t, DN_TENSOR_ID, DN_OF_INT64, 1, &number, what);
    set(b, t, DN_TENSOR_ALIGNMENT, DN_OF_INT64, 1, &alignment, what);
    set(b, t, DN_TENSOR_TYPE, DN_OF_DATA_TYPE, 1, &type, what);
    set(b, t, DN_TENSOR_DIMENSIONS, DN_OF_INT64, RANK, at->dims, what);
    set(b, t, DN_TENSOR_STRIDES, DN_OF_INT64, RANK, at->strides, what);
    set(b, t, DN_TENSOR_VIRTUAL, DN_OF_BOOLEAN, 1, &is_virtual, what);
    if (by_value) set(b, t, DN_TENSOR_BY_VALUE, DN_OF_BOOLEAN, 1, &by_value, what);
    end(b, t, what);
    return t;
}

/* Of one number for each pair of frames, or for each frame. */
static layout scores_of(const xph_cudnn_shape *s)
{
    const int64_t t = s->time;
    return (layout){{s->batch, s->heads, t, t}, {s->heads * t * t, t * t, t, 1}};
}

static layout frames_of(const xph_cudnn_shape *s)
{
    return (layout){{s->batch, s->heads, s->time, 1}, {s->heads * s->time, s->time, 1, 1}};
}

static dn_desc virtual_scores(builder *b, int type)
{
    const layout at = scores_of(b->shape);
    return tensor(b, b->next_id++, type, VIRTUAL, &at);
}

static dn_desc virtual_frames(builder *b)
{
    const layout at = frames_of(b->shape);
    return tensor(b, b->next_id++, DN_FLOAT, VIRTUAL, &at);
}

static dn_desc scalar(builder *b, int which, float value)
{
    static const layout at = {{1, 1, 1, 1}, {1, 1, 1, 1}};
    b->to->scalars[which - XPH_CUDNN_SCALE] = value;
    b->to->tensors++;
    return tensor(b, which, DN_FLOAT, BY_VALUE, &at);
}

/* ---- operations ---- */

static void add(builder *b, dn_desc op, const char *what)
{
    end(b, op, what);
    if (b->op_count == OPS)
        note(b, DN_INTERNAL_ERROR, what);
    else
        b->ops[b->op_count++] = op;
}

/* y = x mode other, or x where `where` is true, else other. axis: of GEN_INDEX, else -1. */
static dn_desc pointwise(builder *b, int mode, int precision, int64_t axis, dn_desc x, dn_desc other,
                         dn_desc where, dn_desc y)
{
    static const char what[] = "a pointwise operation";
    dn_desc how = make(b, DN_POINTWISE, what), op = NULL;
    set(b, how, DN_POINTWISE_MODE, DN_OF_POINTWISE, 1, &mode, what);
    set(b, how, DN_POINTWISE_PRECISION, DN_OF_DATA_TYPE, 1, &precision, what);
    if (axis >= 0) set(b, how, DN_POINTWISE_AXIS, DN_OF_INT64, 1, &axis, what);
    end(b, how, what);
    op = make(b, DN_OP_POINTWISE, what);
    set_desc(b, op, DN_OP_POINTWISE_DESC, how, what);
    set_desc(b, op, DN_OP_POINTWISE_X, x, what);
    set_desc(b, op, DN_OP_POINTWISE_B, other, what);
    set_desc(b, op, DN_OP_POINTWISE_T, where, what);
    set_desc(b, op, DN_OP_POINTWISE_Y, y, what);
    add(b, op, what);
    return y;
}

static dn_desc arithmetic(builder *b, int mode, dn_desc x, dn_desc other)
{
    return pointwise(b, mode, DN_FLOAT, -1, x, other, NULL, virtual_scores(b, DN_FLOAT));
}

static void product(builder *b, dn_desc left, dn_desc right, dn_desc to)
{
    static const char what[] = "a product";
    const int type = DN_FLOAT;
    dn_desc how = make(b, DN_MATMUL, what), op = NULL;
    set(b, how, DN_MATMUL_TYPE, DN_OF_DATA_TYPE, 1, &type, what);
    end(b, how, what);
    op = make(b, DN_OP_MATMUL, what);
    set_desc(b, op, DN_OP_MATMUL_A, left, what);
    set_desc(b, op, DN_OP_MATMUL_B, right, what);
    set_desc(b, op, DN_OP_MATMUL_C, to, what);
    set_desc(b, op, DN_OP_MATMUL_DESC, how, what);
    add(b, op, what);
}

static dn_desc reduction(builder *b, int operation, dn_desc x)
{
    static const char what[] = "a reduction";
    const int type = DN_FLOAT;
    dn_desc how = make(b, DN_REDUCTION, what), op = NULL, y = NULL;
    set(b, how, DN_REDUCTION_OPERATOR, DN_OF_REDUCTION, 1, &operation, what);
    set(b, how, DN_REDUCTION_TYPE, DN_OF_DATA_TYPE, 1, &type, what);
    end(b, how, what);
    y = virtual_frames(b);
    op = make(b, DN_OP_REDUCTION, what);
    set_desc(b, op, DN_OP_REDUCTION_X, x, what);
    set_desc(b, op, DN_OP_REDUCTION_Y, y, what);
    set_desc(b, op, DN_OP_REDUCTION_DESC, how, what);
    add(b, op, what);
    return y;
}

/* ---- the graph ---- */

static dn_desc index_of(builder *b, dn_desc scores, int64_t axis)
{
    return pointwise(b, DN_POINTWISE_GEN_INDEX, DN_FLOAT, axis, scores, NULL, NULL,
                     virtual_scores(b, DN_INT32));
}

/* Scores where left `mode` right, else never. */
static dn_desc select_where(builder *b, dn_desc scores, dn_desc left, int mode, dn_desc right, dn_desc never)
{
    dn_desc seen = pointwise(b, mode, DN_BOOLEAN, -1, left, right, NULL, virtual_scores(b, DN_BOOLEAN));
    return pointwise(b, DN_POINTWISE_SELECT, DN_FLOAT, -1, scores, never, seen, virtual_scores(b, DN_FLOAT));
}

static dn_desc band(builder *b, dn_desc scores)
{
    const xph_cudnn_shape *s = b->shape;
    const float never = b->lib->cudnnGetVersion() < DN_WHOLE_INFINITY ? -FLT_MAX : -INFINITY;
    dn_desc hidden = scalar(b, XPH_CUDNN_NEVER, never), frame = index_of(b, scores, 2),
            key = index_of(b, scores, 3);
    scores = select_where(b, scores, frame, DN_POINTWISE_CMP_GE, key, hidden);
    if (s->window >= s->time) return scores;
    frame = index_of(b, scores, 2);
    key = index_of(b, scores, 3);
    key = arithmetic(b, DN_POINTWISE_ADD, key, scalar(b, XPH_CUDNN_WINDOW, (float)s->window));
    return select_where(b, scores, key, DN_POINTWISE_CMP_GT, frame, hidden);
}

static dn_desc softmax(builder *b, dn_desc scores)
{
    const layout frames = frames_of(b->shape);
    dn_desc most = reduction(b, DN_REDUCE_MAX, scores);
    dn_desc parts =
        pointwise(b, DN_POINTWISE_EXP, DN_FLOAT, -1, arithmetic(b, DN_POINTWISE_SUB, scores, most), NULL,
                  NULL, virtual_scores(b, DN_FLOAT));
    dn_desc sum = reduction(b, DN_REDUCE_ADD, parts);
    dn_desc log_sum = pointwise(b, DN_POINTWISE_LOG, DN_FLOAT, -1, sum, NULL, NULL, virtual_frames(b));
    pointwise(b, DN_POINTWISE_ADD, DN_FLOAT, -1, most, log_sum, NULL,
              tensor(b, XPH_CUDNN_STATS, DN_FLOAT, IN_MEMORY, &frames));
    return pointwise(b, DN_POINTWISE_DIV, DN_FLOAT, -1, parts, sum, NULL, virtual_scores(b, b->shape->type));
}

static void describe(builder *b)
{
    const xph_cudnn_shape *s = b->shape;
    const int64_t t = s->time, d = s->dim;
    const layout in = {{s->batch, s->heads, t, d}, {t * s->ld_in, d, s->ld_in, 1}},
                 keys = {{s->batch, s->heads, d, t}, {t * s->ld_in, d, 1, s->ld_in}},
                 out = {{s->batch, s->heads, t, d}, {t * s->ld_out, d, s->ld_out, 1}},
                 biases = {{1, s->heads, t, t}, {s->heads * t * t, t * t, t, 1}};
    dn_desc q = tensor(b, XPH_CUDNN_Q, s->type, IN_MEMORY, &in),
            k = tensor(b, XPH_CUDNN_K, s->type, IN_MEMORY, &keys),
            v = tensor(b, XPH_CUDNN_V, s->type, IN_MEMORY, &in),
            bias = tensor(b, XPH_CUDNN_BIAS, DN_FLOAT, IN_MEMORY, &biases),
            y = tensor(b, XPH_CUDNN_Y, s->type, IN_MEMORY, &out), scores = virtual_scores(b, DN_FLOAT);
    product(b, q, k, scores);
    scores = arithmetic(b, DN_POINTWISE_MUL, scores, scalar(b, XPH_CUDNN_SCALE, 1.0f / sqrtf((float)d)));
    scores = arithmetic(b, DN_POINTWISE_ADD, scores, bias);
    product(b, softmax(b, band(b, scores)), v, y);
}

int xph_cudnn_graph_make(const dn_library *lib, dn_handle handle, const xph_cudnn_shape *s,
                         xph_cudnn_graph *to)
{
    static const char what[] = "the graph";
    *to = (xph_cudnn_graph){.tensors = XPH_CUDNN_STATS + 1};
    builder b = {.lib = lib, .to = to, .shape = s, .next_id = XPH_CUDNN_TENSORS};
    describe(&b);
    dn_desc graph = make(&b, DN_GRAPH, what);
    if (handle) set(&b, graph, DN_GRAPH_HANDLE, DN_OF_HANDLE, 1, &handle, what);
    set(&b, graph, DN_GRAPH_OPS, DN_OF_DESCRIPTOR, b.op_count, b.ops, what);
    end(&b, graph, what);
    to->graph = graph;
    return b.status;
}

/* ---- engines ---- */

static _Bool is_deterministic(builder *b, dn_desc config)
{
    static const char what[] = "an engine";
    int notes[DN_NOTES_MOST];
    int64_t count = 0;
    dn_desc engine = make(b, DN_ENGINE, what);
    if (b->status) return 0;
    note(b, b->lib->cudnnBackendGetAttribute(config, DN_CONFIG_ENGINE, DN_OF_DESCRIPTOR, 1, &count, &engine),
         what);
    if (b->status) return 0;
    note(b,
         b->lib->cudnnBackendGetAttribute(engine, DN_ENGINE_NOTES, DN_OF_NOTE, DN_NOTES_MOST, &count, notes),
         what);
    for (int64_t i = 0; i < count && !b->status; i++)
        if (notes[i] == DN_NOTE_NONDETERMINISTIC) return 0;
    return !b->status;
}

int xph_cudnn_engines(const dn_library *lib, xph_cudnn_graph *g, dn_desc device, int most, dn_desc configs[],
                      int *count)
{
    static const char what[] = "the choice of an engine";
    builder b = {.lib = lib, .to = g};
    const int mode = DN_HEURISTIC_A;
    dn_desc found[CONFIGS];
    int64_t all = 0;
    *count = 0;
    dn_desc heuristic = make(&b, DN_ENGINE_HEURISTIC, what);
    set_desc(&b, heuristic, DN_HEURISTIC_GRAPH, g->graph, what);
    set(&b, heuristic, DN_HEURISTIC_MODE, DN_OF_HEURISTIC, 1, &mode, what);
    set_desc(&b, heuristic, DN_HEURISTIC_DEVICE, device, what);
    end(&b, heuristic, what);
    for (int i = 0; i < CONFIGS; i++) found[i] = make(&b, DN_ENGINE_CONFIG, what);
    if (!b.status)
        note(&b,
             lib->cudnnBackendGetAttribute(heuristic, DN_HEURISTIC_RESULTS, DN_OF_DESCRIPTOR, CONFIGS, &all,
                                           found),
             what);
    for (int64_t i = 0; i < all && i < CONFIGS && *count < most && !b.status; i++)
        if (is_deterministic(&b, found[i])) configs[(*count)++] = found[i];
    if (!b.status && *count == 0) note(&b, XPH_CUDNN_NO_ENGINE, what);
    return b.status;
}

int xph_cudnn_plan_make(const dn_library *lib, dn_handle handle, xph_cudnn_graph *g, int64_t most_bytes)
{
    static const char what[] = "a plan";
    dn_desc configs[CONFIGS];
    int count, status = xph_cudnn_engines(lib, g, NULL, CONFIGS, configs, &count);
    if (status) return status;
    for (int i = 0; i < count && !g->plan; i++) {
        builder b = {.lib = lib, .to = g};
        int64_t bytes = 0, got = 0;
        dn_desc plan = make(&b, DN_EXECUTION_PLAN, what);
        set(&b, plan, DN_PLAN_HANDLE, DN_OF_HANDLE, 1, &handle, what);
        set_desc(&b, plan, DN_PLAN_CONFIG, configs[i], what);
        end(&b, plan, what);
        if (!b.status)
            note(&b, lib->cudnnBackendGetAttribute(plan, DN_PLAN_WORKSPACE, DN_OF_INT64, 1, &got, &bytes),
                 what);
        if (!b.status && (bytes < 0 || bytes > most_bytes)) note(&b, XPH_CUDNN_NO_ENGINE, "the workspace");
        status = b.status;
        if (status) continue;
        g->plan = plan;
        g->workspace = bytes;
    }
    return status;
}

int xph_cudnn_run(const dn_library *lib, dn_handle handle, const xph_cudnn_graph *g,
                  void *const data[XPH_CUDNN_STATS + 1], void *workspace)
{
    float scalars[3];
    void *pointers[XPH_CUDNN_TENSORS];
    int64_t ids[XPH_CUDNN_TENSORS];
    dn_desc pack = NULL;
    memcpy(scalars, g->scalars, sizeof scalars);
    for (int i = 0; i < g->tensors; i++) {
        ids[i] = i + FIRST_ID;
        pointers[i] = i <= XPH_CUDNN_STATS ? data[i] : &scalars[i - XPH_CUDNN_SCALE];
    }
    int status = lib->cudnnBackendCreateDescriptor(DN_VARIANT_PACK, &pack);
    if (status) return status;
    status = lib->cudnnBackendSetAttribute(pack, DN_PACK_IDS, DN_OF_INT64, g->tensors, ids);
    if (!status)
        status = lib->cudnnBackendSetAttribute(pack, DN_PACK_POINTERS, DN_OF_POINTER, g->tensors, pointers);
    if (!status)
        status = lib->cudnnBackendSetAttribute(pack, DN_PACK_WORKSPACE, DN_OF_POINTER, 1, &workspace);
    if (!status) status = lib->cudnnBackendFinalize(pack);
    if (!status) status = lib->cudnnBackendExecute(handle, g->plan, pack);
    lib->cudnnBackendDestroyDescriptor(pack);
    return status;
}

void xph_cudnn_graph_drop(const dn_library *lib, xph_cudnn_graph *g)
{
    while (g->count > 0) lib->cudnnBackendDestroyDescriptor(g->all[--g->count]);
    g->graph = g->plan = NULL;
}
