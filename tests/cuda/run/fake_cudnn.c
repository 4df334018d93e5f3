/* A stand-in for cuDNN on the emulated GPU: the functions that cuda/cudnn.c looks up. A graph is checked as the real library
 * does it - attributes and their types and counts, what must be set, the order of finalizing, shapes, strides, types,
 * addresses, the workspace - and then computed operation by operation as it was described, as a kernel of its stream. It
 * refuses whatever else a test asks it to. What the real one takes and refuses was tried out with it
 * (tests/cuda/cudnn_real_test.c). */
#include "fake_cudnn.h"

#include "cudnn_api.h"
#include "fake_numbers.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>

#define API __attribute__((visibility("default")))

enum { MAGIC = 0xd9, RANK = 4, ATTRIBUTES = 16, DEFAULT_WORKSPACE = 4096, DIM_MOST = 256, WHOLE = 8 };

struct dn_context {
    int magic;
    void *stream;
    pthread_t by; /* whose stream it is */
};

typedef struct attribute {
    int name, type;
    int64_t count;
    void *values;
} attribute;

typedef struct job job;
typedef struct desc {
    int type, finalized, count, engine; /* engine: 0 adds in no fixed order */
    attribute has[ATTRIBUTES];
    const struct desc *of; /* configuration: its graph */
    job *jobs;             /* plan: what was run */
} desc;

struct job {
    job *next;
    const desc *graph;
    int64_t count;
    int64_t ids[16];
    void *at[16];
    float value[16];
};

API fake_cudnn fake;

static int wrong(int status)
{
    fake.wrong++;
    return status;
}

/* ---- what descriptors have ---- */

typedef struct rule {
    int desc, name, type, least, most, needed, of; /* of: the type of descriptors */
} rule;

static const rule rules[] = {
    {DN_TENSOR, DN_TENSOR_ID, DN_OF_INT64, 1, 1, 1, 0},
    {DN_TENSOR, DN_TENSOR_ALIGNMENT, DN_OF_INT64, 1, 1, 1, 0},
    {DN_TENSOR, DN_TENSOR_TYPE, DN_OF_DATA_TYPE, 1, 1, 1, 0},
    {DN_TENSOR, DN_TENSOR_DIMENSIONS, DN_OF_INT64, RANK, RANK, 1, 0},
    {DN_TENSOR, DN_TENSOR_STRIDES, DN_OF_INT64, RANK, RANK, 1, 0},
    {DN_TENSOR, DN_TENSOR_VIRTUAL, DN_OF_BOOLEAN, 1, 1, 0, 0},
    {DN_TENSOR, DN_TENSOR_BY_VALUE, DN_OF_BOOLEAN, 1, 1, 0, 0},
    {DN_POINTWISE, DN_POINTWISE_MODE, DN_OF_POINTWISE, 1, 1, 1, 0},
    {DN_POINTWISE, DN_POINTWISE_PRECISION, DN_OF_DATA_TYPE, 1, 1, 1, 0},
    {DN_POINTWISE, DN_POINTWISE_AXIS, DN_OF_INT64, 1, 1, 0, 0},
    {DN_OP_POINTWISE, DN_OP_POINTWISE_DESC, DN_OF_DESCRIPTOR, 1, 1, 1, DN_POINTWISE},
    {DN_OP_POINTWISE, DN_OP_POINTWISE_X, DN_OF_DESCRIPTOR, 1, 1, 1, DN_TENSOR},
    {DN_OP_POINTWISE, DN_OP_POINTWISE_B, DN_OF_DESCRIPTOR, 1, 1, 0, DN_TENSOR},
    {DN_OP_POINTWISE, DN_OP_POINTWISE_T, DN_OF_DESCRIPTOR, 1, 1, 0, DN_TENSOR},
    {DN_OP_POINTWISE, DN_OP_POINTWISE_Y, DN_OF_DESCRIPTOR, 1, 1, 1, DN_TENSOR},
    {DN_MATMUL, DN_MATMUL_TYPE, DN_OF_DATA_TYPE, 1, 1, 1, 0},
    {DN_OP_MATMUL, DN_OP_MATMUL_A, DN_OF_DESCRIPTOR, 1, 1, 1, DN_TENSOR},
    {DN_OP_MATMUL, DN_OP_MATMUL_B, DN_OF_DESCRIPTOR, 1, 1, 1, DN_TENSOR},
    {DN_OP_MATMUL, DN_OP_MATMUL_C, DN_OF_DESCRIPTOR, 1, 1, 1, DN_TENSOR},
    {DN_OP_MATMUL, DN_OP_MATMUL_DESC, DN_OF_DESCRIPTOR, 1, 1, 1, DN_MATMUL},
    {DN_REDUCTION, DN_REDUCTION_OPERATOR, DN_OF_REDUCTION, 1, 1, 1, 0},
    {DN_REDUCTION, DN_REDUCTION_TYPE, DN_OF_DATA_TYPE, 1, 1, 1, 0},
    {DN_OP_REDUCTION, DN_OP_REDUCTION_X, DN_OF_DESCRIPTOR, 1, 1, 1, DN_TENSOR},
    {DN_OP_REDUCTION, DN_OP_REDUCTION_Y, DN_OF_DESCRIPTOR, 1, 1, 1, DN_TENSOR},
    {DN_OP_REDUCTION, DN_OP_REDUCTION_DESC, DN_OF_DESCRIPTOR, 1, 1, 1, DN_REDUCTION},
    {DN_GRAPH, DN_GRAPH_HANDLE, DN_OF_HANDLE, 1, 1, 1, 0},
    {DN_GRAPH, DN_GRAPH_OPS, DN_OF_DESCRIPTOR, 1, 50, 1, -1},
    {DN_ENGINE_HEURISTIC, DN_HEURISTIC_GRAPH, DN_OF_DESCRIPTOR, 1, 1, 1, DN_GRAPH},
    {DN_ENGINE_HEURISTIC, DN_HEURISTIC_MODE, DN_OF_HEURISTIC, 1, 1, 1, 0},
    {DN_EXECUTION_PLAN, DN_PLAN_HANDLE, DN_OF_HANDLE, 1, 1, 1, 0},
    {DN_EXECUTION_PLAN, DN_PLAN_CONFIG, DN_OF_DESCRIPTOR, 1, 1, 1, DN_ENGINE_CONFIG},
    {DN_VARIANT_PACK, DN_PACK_IDS, DN_OF_INT64, 1, 16, 1, 0},
    {DN_VARIANT_PACK, DN_PACK_POINTERS, DN_OF_POINTER, 1, 16, 1, 0},
    {DN_VARIANT_PACK, DN_PACK_WORKSPACE, DN_OF_POINTER, 1, 1, 1, 0},
};
enum { RULES = sizeof rules / sizeof *rules };

static size_t size_of(int type)
{
    switch (type) {
    case DN_OF_INT64:
        return sizeof(int64_t);
    case DN_OF_BOOLEAN:
        return sizeof(bool);
    case DN_OF_HANDLE:
    case DN_OF_POINTER:
    case DN_OF_DESCRIPTOR:
        return sizeof(void *);
    default:
        return sizeof(int);
    }
}

static const attribute *find(const desc *d, int name)
{
    for (int i = 0; i < d->count; i++)
        if (d->has[i].name == name) return &d->has[i];
    return NULL;
}

static int64_t number(const desc *d, int name, int64_t otherwise)
{
    const attribute *a = find(d, name);
    if (!a) return otherwise;
    if (a->type == DN_OF_INT64) return *(const int64_t *)a->values;
    return a->type == DN_OF_BOOLEAN ? *(const bool *)a->values : *(const int *)a->values;
}

static const desc *part(const desc *d, int name)
{
    const attribute *a = find(d, name);
    return a ? *(desc *const *)a->values : NULL;
}

static const int64_t *dims(const desc *tensor)
{
    return find(tensor, DN_TENSOR_DIMENSIONS)->values;
}

static const int64_t *strides(const desc *tensor)
{
    return find(tensor, DN_TENSOR_STRIDES)->values;
}

static int tensor_type(const desc *tensor)
{
    return (int)number(tensor, DN_TENSOR_TYPE, -1);
}

static int64_t tensor_id(const desc *tensor)
{
    return number(tensor, DN_TENSOR_ID, -1);
}

static bool is_virtual(const desc *tensor)
{
    return number(tensor, DN_TENSOR_VIRTUAL, 0) != 0;
}

API int cudnnBackendCreateDescriptor(int type, dn_desc *made)
{
    desc *d = calloc(1, sizeof *d);
    d->type = type;
    fake.alive++;
    *made = d;
    return DN_SUCCESS;
}

API int cudnnBackendDestroyDescriptor(dn_desc given)
{
    desc *d = given;
    for (int i = 0; i < d->count; i++) free(d->has[i].values);
    while (d->jobs) {
        job *next = d->jobs->next;
        free(d->jobs);
        d->jobs = next;
    }
    free(d);
    fake.alive--;
    return DN_SUCCESS;
}

API int cudnnBackendSetAttribute(dn_desc given, int name, int type, int64_t count, const void *values)
{
    desc *d = given;
    const rule *r = rules;
    if (!d || !values) return wrong(DN_BAD_PARAM_NULL_POINTER);
    if (d->finalized) return wrong(DN_BAD_PARAM);
    while (r < rules + RULES && (r->desc != d->type || r->name != name)) r++;
    if (r == rules + RULES) return wrong(DN_BAD_PARAM);
    if (r->type != type) return wrong(DN_BAD_PARAM_ATTRIBUTE_TYPE);
    if (count < r->least || count > r->most) return wrong(DN_BAD_PARAM_OUT_OF_BOUND);
    for (int64_t i = 0; type == DN_OF_DESCRIPTOR && i < count; i++) {
        const desc *other = ((desc *const *)values)[i];
        if (!other) return wrong(DN_BAD_PARAM_NULL_POINTER);
        if (!other->finalized) return wrong(DN_BAD_PARAM_NOT_FINALIZED);
        if (r->of >= 0 ? other->type != r->of
                       : other->type != DN_OP_POINTWISE && other->type != DN_OP_MATMUL &&
                             other->type != DN_OP_REDUCTION)
            return wrong(DN_BAD_PARAM_DESCRIPTOR_TYPE);
    }
    attribute *a = (attribute *)(uintptr_t)find(d, name);
    if (!a) a = &d->has[d->count++];
    free(a->values);
    *a = (attribute){name, type, count, malloc((size_t)count * size_of(type))};
    memcpy(a->values, values, (size_t)count * size_of(type));
    return DN_SUCCESS;
}

/* ---- what is finalized ---- */

static int tensor_fits(const desc *t)
{
    const int type = tensor_type(t);
    if (number(t, DN_TENSOR_ALIGNMENT, 0) != 16) return DN_BAD_PARAM;
    if (is_virtual(t) && number(t, DN_TENSOR_BY_VALUE, 0)) return DN_BAD_PARAM;
    if (type != DN_FLOAT && type != DN_HALF && type != DN_BFLOAT16 && type != DN_INT32 && type != DN_BOOLEAN)
        return DN_BAD_PARAM;
    for (int i = 0; i < RANK; i++)
        if (dims(t)[i] < 1 || strides(t)[i] < 1) return DN_BAD_PARAM;
    return DN_SUCCESS;
}

/* x in place of y, each dimension of it 1 or the same. */
static bool spreads(const desc *x, const desc *y)
{
    for (int i = 0; i < RANK; i++)
        if (dims(x)[i] != 1 && dims(x)[i] != dims(y)[i]) return false;
    return true;
}

static int pointwise_fits(const desc *op)
{
    const desc *how = part(op, DN_OP_POINTWISE_DESC), *x = part(op, DN_OP_POINTWISE_X),
               *b = part(op, DN_OP_POINTWISE_B), *t = part(op, DN_OP_POINTWISE_T),
               *y = part(op, DN_OP_POINTWISE_Y);
    const int mode = (int)number(how, DN_POINTWISE_MODE, -1);
    const bool one = mode == DN_POINTWISE_EXP || mode == DN_POINTWISE_LOG || mode == DN_POINTWISE_GEN_INDEX;
    const bool compares = mode == DN_POINTWISE_CMP_GT || mode == DN_POINTWISE_CMP_GE;
    if (one ? b || t : !b || !t != (mode != DN_POINTWISE_SELECT)) return DN_BAD_PARAM;
    if (!spreads(x, y) || (b && !spreads(b, y)) || (t && !spreads(t, y))) return DN_BAD_PARAM_SHAPE_MISMATCH;
    if ((mode == DN_POINTWISE_GEN_INDEX) != (number(how, DN_POINTWISE_AXIS, -1) >= 0)) return DN_BAD_PARAM;
    if (mode == DN_POINTWISE_GEN_INDEX && tensor_type(y) != DN_INT32) return DN_BAD_PARAM;
    if (compares != (tensor_type(y) == DN_BOOLEAN)) return DN_BAD_PARAM;
    if (compares != (number(how, DN_POINTWISE_PRECISION, -1) == DN_BOOLEAN)) return DN_BAD_PARAM;
    return t && tensor_type(t) != DN_BOOLEAN ? DN_BAD_PARAM : DN_SUCCESS;
}

static bool is_narrow(int type)
{
    return type == DN_HALF || type == DN_BFLOAT16;
}

static int product_fits(const desc *op)
{
    const desc *a = part(op, DN_OP_MATMUL_A), *b = part(op, DN_OP_MATMUL_B), *c = part(op, DN_OP_MATMUL_C);
    for (int i = 0; i < 2; i++)
        if (dims(a)[i] != dims(c)[i] || dims(b)[i] != dims(c)[i]) return DN_BAD_PARAM_SHAPE_MISMATCH;
    if (dims(a)[2] != dims(c)[2] || dims(b)[3] != dims(c)[3] || dims(a)[3] != dims(b)[2])
        return DN_BAD_PARAM_SHAPE_MISMATCH;
    return tensor_type(a) == tensor_type(b) && is_narrow(tensor_type(a)) ? DN_SUCCESS
                                                                         : DN_NOT_SUPPORTED_DATA_TYPE;
}

static int reduction_fits(const desc *op)
{
    const desc *x = part(op, DN_OP_REDUCTION_X), *y = part(op, DN_OP_REDUCTION_Y);
    return spreads(y, x) ? DN_SUCCESS : DN_BAD_PARAM_SHAPE_MISMATCH;
}

static const int inputs[] = {DN_OP_POINTWISE_X, DN_OP_POINTWISE_B, DN_OP_POINTWISE_T,
                             DN_OP_MATMUL_A,    DN_OP_MATMUL_B,    DN_OP_REDUCTION_X};
static const int outputs[] = {DN_OP_POINTWISE_Y, DN_OP_MATMUL_C, DN_OP_REDUCTION_Y};
enum { INPUTS = sizeof inputs / sizeof *inputs, OUTPUTS = sizeof outputs / sizeof *outputs, TENSORS = 64 };

static const desc *output_of(const desc *op)
{
    for (int i = 0; i < OUTPUTS; i++)
        if (part(op, outputs[i])) return part(op, outputs[i]);
    return NULL;
}

typedef struct tensors {
    const desc *of[TENSORS];
    int count;
} tensors;

/* false: another has this number. */
static bool enter(tensors *list, const desc *t)
{
    for (int i = 0; i < list->count; i++)
        if (tensor_id(list->of[i]) == tensor_id(t)) return list->of[i] == t;
    list->of[list->count++] = t;
    return true;
}

static bool holds(const tensors *list, const desc *t)
{
    for (int i = 0; i < list->count; i++)
        if (list->of[i] == t) return true;
    return false;
}

static const desc *op_of(const desc *graph, int64_t i)
{
    return ((desc *const *)find(graph, DN_GRAPH_OPS)->values)[i];
}

static int64_t op_count(const desc *graph)
{
    return find(graph, DN_GRAPH_OPS)->count;
}

static int list_tensors(const desc *graph, tensors *list)
{
    for (int64_t i = 0; i < op_count(graph); i++) {
        const desc *op = op_of(graph, i), *y = output_of(op);
        for (int k = 0; k < INPUTS; k++) {
            const desc *x = part(op, inputs[k]);
            if (x && is_virtual(x) && !holds(list, x)) return DN_BAD_PARAM; /* nothing makes it */
            if (x && !enter(list, x)) return DN_BAD_PARAM_DUPLICATED_ENTRIES;
        }
        if (holds(list, y) || !enter(list, y)) return DN_BAD_PARAM_DUPLICATED_ENTRIES;
    }
    return DN_SUCCESS;
}

static int graph_fits(const desc *graph)
{
    tensors list = {.count = 0};
    const struct dn_context *handle = *(struct dn_context *const *)find(graph, DN_GRAPH_HANDLE)->values;
    if (!handle || handle->magic != MAGIC) return DN_NOT_INITIALIZED;
    return list_tensors(graph, &list);
}

static int pack_fits(const desc *pack)
{
    return find(pack, DN_PACK_IDS)->count == find(pack, DN_PACK_POINTERS)->count ? DN_SUCCESS : DN_BAD_PARAM;
}

static bool refuses(int where)
{
    if (fake.where != where) return false;
    fake.refusals++;
    return true;
}

API int cudnnBackendFinalize(dn_desc given)
{
    desc *d = given;
    int status = DN_SUCCESS;
    if (!d) return wrong(DN_BAD_PARAM_NULL_POINTER);
    if (d->finalized) return wrong(DN_BAD_PARAM);
    for (int i = 0; i < RULES; i++)
        if (rules[i].desc == d->type && rules[i].needed && !find(d, rules[i].name))
            return wrong(DN_BAD_PARAM);
    if (d->type == DN_TENSOR) status = tensor_fits(d);
    if (d->type == DN_OP_POINTWISE) status = pointwise_fits(d);
    if (d->type == DN_OP_MATMUL) status = product_fits(d);
    if (d->type == DN_OP_REDUCTION) status = reduction_fits(d);
    if (d->type == DN_GRAPH) status = graph_fits(d);
    if (d->type == DN_VARIANT_PACK) status = pack_fits(d);
    if (status) return wrong(status);
    if (d->type == DN_EXECUTION_PLAN) {
        if (refuses(FAKE_DNN_AT_PLAN)) return fake.status;
        fake.plans++;
    }
    d->finalized = 1;
    return DN_SUCCESS;
}

/* ---- engines ---- */

/* What the real one says of tensors in memory that go into products. */
static int surface(const desc *graph)
{
    tensors list = {.count = 0};
    (void)list_tensors(graph, &list);
    for (int i = 0; i < list.count; i++) {
        const desc *t = list.of[i];
        const bool columns = !is_virtual(t) && is_narrow(tensor_type(t)) && strides(t)[3] != 1;
        const int inner = columns ? 2 : 3, outer = columns ? 3 : 2;
        if (is_virtual(t) || !is_narrow(tensor_type(t))) continue;
        if (dims(t)[inner] % WHOLE || dims(t)[inner] > DIM_MOST) return DN_NOT_SUPPORTED_SHAPE;
        if (strides(t)[inner] != 1 || strides(t)[outer] % WHOLE || strides(t)[1] % WHOLE ||
            strides(t)[0] % WHOLE)
            return DN_NOT_SUPPORTED_LAYOUT;
    }
    return DN_SUCCESS;
}

static int results(const desc *heuristic, int64_t wanted, int64_t *count, void *values)
{
    desc **configs = values;
    const desc *graph = part(heuristic, DN_HEURISTIC_GRAPH);
    *count = 0;
    if (refuses(FAKE_DNN_AT_QUERY)) {
        if (fake.status > 0) return fake.status;
        if (fake.status == FAKE_DNN_NO_ENGINE) return DN_SUCCESS;
        wanted = 1;
    }
    if (surface(graph)) return DN_SUCCESS; /* no engine */
    for (int i = 0; i < 2 && i < wanted; i++) {
        if (configs[i]->type != DN_ENGINE_CONFIG) return wrong(DN_BAD_PARAM_DESCRIPTOR_TYPE);
        configs[i]->of = graph;
        configs[i]->engine = i;
        configs[i]->finalized = 1;
        (*count)++;
    }
    return DN_SUCCESS;
}

API int cudnnBackendGetAttribute(const dn_desc given, int name, int type, int64_t wanted, int64_t *count,
                                 void *values)
{
    const desc *d = given;
    if (!d->finalized) return wrong(DN_BAD_PARAM_NOT_FINALIZED);
    if (d->type == DN_ENGINE_HEURISTIC && name == DN_HEURISTIC_RESULTS && type == DN_OF_DESCRIPTOR)
        return results(d, wanted, count, values);
    *count = 1;
    if (d->type == DN_ENGINE_CONFIG && name == DN_CONFIG_ENGINE && type == DN_OF_DESCRIPTOR && wanted == 1) {
        desc *engine = *(desc **)values;
        if (engine->type != DN_ENGINE) return wrong(DN_BAD_PARAM_DESCRIPTOR_TYPE);
        engine->engine = d->engine;
        engine->finalized = 1;
        return DN_SUCCESS;
    }
    if (d->type == DN_ENGINE && name == DN_ENGINE_NOTES && type == DN_OF_NOTE) {
        ((int *)values)[0] = d->engine ? 0 : DN_NOTE_NONDETERMINISTIC;
        return DN_SUCCESS;
    }
    if (d->type == DN_EXECUTION_PLAN && name == DN_PLAN_WORKSPACE && type == DN_OF_INT64) {
        *(int64_t *)values = fake.wants ? (int64_t)fake.wants : DEFAULT_WORKSPACE;
        return DN_SUCCESS;
    }
    return wrong(DN_BAD_PARAM);
}

/* ---- numbers ---- */

typedef struct place {
    const desc *tensor;
    void *at;     /* in memory */
    float *whole; /* virtual: all its numbers; else NULL */
    float value;  /* by value */
    int64_t dims[RANK], strides[RANK];
    int type;
} place;

typedef struct work {
    const job *of;
    tensors list;
    place places[TENSORS];
} work;

static place *place_of(work *w, const desc *t)
{
    for (int i = 0; i < w->list.count; i++)
        if (w->list.of[i] == t) return &w->places[i];
    return NULL;
}

static void prepare(work *w)
{
    for (int i = 0; i < w->list.count; i++) {
        const desc *t = w->list.of[i];
        place *p = &w->places[i];
        *p = (place){.tensor = t, .type = tensor_type(t)};
        int64_t count = 1;
        for (int k = RANK - 1; k >= 0; k--) {
            p->dims[k] = dims(t)[k];
            p->strides[k] = is_virtual(t) ? count : strides(t)[k];
            count *= p->dims[k];
        }
        if (is_virtual(t)) p->whole = calloc((size_t)count, sizeof *p->whole);
        for (int64_t k = 0; k < w->of->count; k++) {
            if (w->of->ids[k] != tensor_id(t)) continue;
            p->at = w->of->at[k];
            p->value = w->of->value[k];
        }
    }
}

static int64_t at(const place *p, const int64_t i[RANK])
{
    int64_t place = 0;
    for (int k = 0; k < RANK; k++) place += p->dims[k] == 1 ? 0 : i[k] * p->strides[k];
    return place;
}

static float get(const place *p, const int64_t i[RANK])
{
    const int64_t n = at(p, i);
    if (p->whole) return p->whole[n];
    if (!p->at) return p->value;
    if (p->type == DN_FLOAT) return ((const float *)p->at)[n];
    return p->type == DN_HALF ? half_to_float(((const uint16_t *)p->at)[n])
                              : bfloat_to_float(((const uint16_t *)p->at)[n]);
}

static void put(const place *p, const int64_t i[RANK], float x)
{
    const int64_t n = at(p, i);
    const uint16_t narrow = p->type == DN_HALF ? float_to_half(x) : float_to_bfloat(x);
    if (p->whole)
        p->whole[n] = p->type == DN_HALF       ? half_to_float(narrow)
                      : p->type == DN_BFLOAT16 ? bfloat_to_float(narrow)
                                               : x;
    else if (p->type == DN_FLOAT)
        ((float *)p->at)[n] = x;
    else
        ((uint16_t *)p->at)[n] = narrow;
}

static bool next(const int64_t limits[RANK], int64_t i[RANK])
{
    for (int k = RANK - 1; k >= 0; k--) {
        if (++i[k] < limits[k]) return true;
        i[k] = 0;
    }
    return false;
}

static float combine(int mode, float x, float b, float t)
{
    switch (mode) {
    case DN_POINTWISE_ADD:
        return x + b;
    case DN_POINTWISE_MUL:
        return x * b;
    case DN_POINTWISE_DIV:
        return x / b;
    case DN_POINTWISE_SUB:
        return x - b;
    case DN_POINTWISE_EXP:
        return expf(x);
    case DN_POINTWISE_LOG:
        return logf(x);
    case DN_POINTWISE_CMP_GT:
        return x > b;
    case DN_POINTWISE_CMP_GE:
        return x >= b;
    default:
        return t != 0.0f ? x : b;
    }
}

static void do_pointwise(work *w, const desc *op)
{
    const desc *how = part(op, DN_OP_POINTWISE_DESC);
    const place *x = place_of(w, part(op, DN_OP_POINTWISE_X)), *b = place_of(w, part(op, DN_OP_POINTWISE_B)),
                *t = place_of(w, part(op, DN_OP_POINTWISE_T)), *y = place_of(w, part(op, DN_OP_POINTWISE_Y));
    const int mode = (int)number(how, DN_POINTWISE_MODE, -1);
    const int64_t axis = number(how, DN_POINTWISE_AXIS, -1);
    int64_t i[RANK] = {0};
    do {
        put(y, i,
            axis >= 0 ? (float)i[axis]
                      : combine(mode, get(x, i), b ? get(b, i) : 0.0f, t ? get(t, i) : 0.0f));
    } while (next(y->dims, i));
}

/* A matrix [rows, columns], its columns one after the other where `across`. */
static float *matrix(const place *p, const int64_t of[2], bool across)
{
    const int64_t rows = p->dims[2], columns = p->dims[3];
    float *to = malloc((size_t)(rows * columns) * sizeof *to);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            to[across ? c * rows + r : r * columns + c] = get(p, (const int64_t[]){of[0], of[1], r, c});
    return to;
}

static void do_product(work *w, const desc *op)
{
    const place *a = place_of(w, part(op, DN_OP_MATMUL_A)), *b = place_of(w, part(op, DN_OP_MATMUL_B)),
                *c = place_of(w, part(op, DN_OP_MATMUL_C));
    const int64_t depth = a->dims[3], inner[2] = {c->dims[2], c->dims[3]};
    for (int64_t m = 0; m < c->dims[0] * c->dims[1]; m++) {
        const int64_t of[2] = {m / c->dims[1], m % c->dims[1]};
        float *left = matrix(a, of, false), *right = matrix(b, of, true);
        for (int64_t i = 0; i < inner[0]; i++)
            for (int64_t j = 0; j < inner[1]; j++) {
                float sum[4] = {0.0f};
                for (int64_t k = 0; k < depth; k++) sum[k % 4] += left[i * depth + k] * right[j * depth + k];
                put(c, (const int64_t[]){of[0], of[1], i, j}, (sum[0] + sum[1]) + (sum[2] + sum[3]));
            }
        free(left);
        free(right);
    }
}

/* Over the last dimension, as attention does it. */
static void do_reduction(work *w, const desc *op)
{
    const int add = number(part(op, DN_OP_REDUCTION_DESC), DN_REDUCTION_OPERATOR, -1) == DN_REDUCE_ADD;
    const place *x = place_of(w, part(op, DN_OP_REDUCTION_X)), *y = place_of(w, part(op, DN_OP_REDUCTION_Y));
    int64_t i[RANK] = {0};
    do {
        int64_t of[RANK] = {i[0], i[1], i[2], 0};
        double result = (double)get(x, of);
        for (of[3] = 1; of[3] < x->dims[3]; of[3]++) {
            const double more = (double)get(x, of);
            result = add ? result + more : fmax(result, more);
        }
        put(y, i, (float)result);
    } while (next(y->dims, i));
}

static void compute(const void *data)
{
    const job *of = *(job *const *)data;
    work *w = calloc(1, sizeof *w);
    w->of = of;
    (void)list_tensors(of->graph, &w->list);
    prepare(w);
    for (int64_t i = 0; i < op_count(of->graph); i++) {
        const desc *op = op_of(of->graph, i);
        if (op->type == DN_OP_POINTWISE) do_pointwise(w, op);
        if (op->type == DN_OP_MATMUL) do_product(w, op);
        if (op->type == DN_OP_REDUCTION) do_reduction(w, op);
    }
    for (int i = 0; i < w->list.count; i++) free(w->places[i].whole);
    free(w);
}

/* ---- running ---- */

API size_t cudnnGetVersion(void)
{
    return fake.version ? fake.version : 91900;
}

API void cudnnGetLastErrorString(char *message, size_t bytes)
{
    if (bytes) *message = 0;
}

API int cudnnCreate(dn_handle *handle)
{
    if (refuses(FAKE_DNN_AT_START)) return fake.status;
    *handle = calloc(1, sizeof **handle);
    (*handle)->magic = MAGIC;
    fake.alive++;
    return DN_SUCCESS;
}

API int cudnnDestroy(dn_handle handle)
{
    free(handle);
    fake.alive--;
    return DN_SUCCESS;
}

API int cudnnSetStream(dn_handle handle, struct CUstream_st *stream)
{
    if (!handle || handle->magic != MAGIC) return wrong(DN_BAD_PARAM);
    handle->stream = stream;
    handle->by = pthread_self();
    sched_yield(); /* to whoever does not wait */
    return DN_SUCCESS;
}

static int take_pack(job *j, const desc *pack)
{
    const attribute *ids = find(pack, DN_PACK_IDS), *pointers = find(pack, DN_PACK_POINTERS);
    tensors list = {.count = 0};
    (void)list_tensors(j->graph, &list);
    j->count = ids->count;
    for (int64_t k = 0; k < ids->count; k++) {
        j->ids[k] = ((const int64_t *)ids->values)[k];
        j->at[k] = ((void *const *)pointers->values)[k];
        if (!j->at[k]) return DN_BAD_PARAM_NULL_POINTER;
    }
    for (int i = 0; i < list.count; i++) {
        int64_t k = 0;
        if (is_virtual(list.of[i])) continue;
        while (k < j->count && j->ids[k] != tensor_id(list.of[i])) k++;
        if (k == j->count) return DN_BAD_PARAM;
        if (number(list.of[i], DN_TENSOR_BY_VALUE, 0)) {
            j->value[k] = *(const float *)j->at[k];
            j->at[k] = NULL;
        } else if ((uintptr_t)j->at[k] % 16) {
            return DN_BAD_PARAM_MISALIGNED_POINTER;
        }
    }
    return DN_SUCCESS;
}

API int cudnnBackendExecute(dn_handle handle, dn_desc given, dn_desc given_pack)
{
    desc *plan = given;
    const desc *pack = given_pack;
    if (!handle || handle->magic != MAGIC) return wrong(DN_BAD_PARAM);
    if (!plan || !plan->finalized || !pack->finalized) return wrong(DN_BAD_PARAM_NOT_FINALIZED);
    if (!part(plan, DN_PLAN_CONFIG)->engine) return wrong(DN_INTERNAL_ERROR); /* adds in no fixed order */
    if (!pthread_equal(handle->by, pthread_self())) fake.together++;
    const void *workspace = *(void *const *)find(pack, DN_PACK_WORKSPACE)->values;
    if (!workspace || (uintptr_t)workspace % 256) return wrong(DN_BAD_PARAM_MISALIGNED_POINTER);
    job *j = calloc(1, sizeof *j);
    j->graph = part(plan, DN_PLAN_CONFIG)->of;
    const int status = take_pack(j, pack);
    const bool refused = refuses(FAKE_DNN_AT_RUN);
    const bool spoilt = !refused && fake.capturing(handle->stream) && refuses(FAKE_DNN_IN_CAPTURE);
    if (spoilt && fake.spoils) fake.spoil(handle->stream);
    if (status || refused || spoilt) {
        free(j);
        return status ? wrong(status) : fake.status;
    }
    /* What it may write of the workspace, it writes. */
    j->next = plan->jobs;
    plan->jobs = j;
    fake.runs++;
    return fake.call(handle->stream, compute, &j, sizeof j) ? DN_EXECUTION_FAILED : DN_SUCCESS;
}
