/* exphil/ops.h used wrongly: every refusal names the field, and nothing has been written. What is not refused, however its arrays
 * lie, gives the bits of dense arrays and writes the elements of its outputs alone. */
#include "ops_case.h"

#include <stdio.h>
#include <stdlib.h>

static const ops_shape shape = {2, 3, 4, 3, 2, 0};

typedef struct world {
    exphil_context *context;
    exphil_ops *ops;
} world;

static world world_make(void)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    world w = {NULL, NULL};
    config.threads = 1;
    assert_int_equal(exphil_context_create(&config, &w.context, NULL), EXPHIL_OK);
    w.ops = ops_make(w.context, 0);
    return w;
}

static void world_end(const world *w)
{
    exphil_ops_destroy(w->ops);
    exphil_context_destroy(w->context);
    case_release();
}

static uint64_t all_memory(const ops_run *r)
{
    uint64_t hash = xph_hash(r->workspace, r->workspace_bytes) ^ xph_hash(r->saved, r->saved_bytes);
    for (int i = 0; i < r->c->count; i++) hash = xph_mix(hash) ^ xph_hash(r->laid[i].data, r->laid[i].bytes);
    return hash;
}

static void must_refuse(const world *w, ops_run *r, exphil_status status, const char *says)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    const uint64_t before = all_memory(r);
    const exphil_status got = ops_run_do(w->ops, r, &error);
    if (got != status) fail_msg("%s: %d in place of \"%s\"", exphil_op_name(r->op), (int)got, says);
    assert_says(&error, says);
    assert_true(all_memory(r) == before);
}

/* A run in which everything is right, of any operation: forward 0..6, backward 7..12. */
enum { RUNS = 13 };
static ops_run *right(const world *w, int number, int layout)
{
    case_seed((uint64_t)number);
    ops_case *c = ops_case_make(ops_forward[number % 7], &shape);
    const bool backward = number >= 7;
    void *saved = backward ? ops_forward_of(w->ops, c, EXPHIL_OPS_F32) : NULL;
    return ops_run_make(w->ops, c, backward, EXPHIL_OPS_F32, layout, saved);
}

#define SET(r, type, field, value) (((type *)(void *)(r)->args)->field = (value))

static exphil_input *field(ops_run *r, int i)
{
    return (exphil_input *)(void *)(r->args + r->c->array[i].at);
}

static bool is_used(const ops_run *r, int i)
{
    return ops_is_in(r, i) || ops_is_out(r, i);
}

/* ---- one thing wrong at a time --------------------------------------------------------------------------- */

static const char *said(const char *format, const char *name)
{
    static char text[128];
    snprintf(text, sizeof text, format, name);
    return text;
}

static void check_array(const world *w, ops_run *r, int i)
{
    static const size_t strides[3] = {offsetof(exphil_input, batch_stride),
                                      offsetof(exphil_input, frame_stride),
                                      offsetof(exphil_input, column_stride)};
    static const char *const words[3] = {"%s.batch_stride is -1", "%s.frame_stride is -1",
                                         "%s.column_stride is -1"};
    const ops_array *a = &r->c->array[i];
    const exphil_input kept = *field(r, i);
    if (!(a->role & OPS_BYTES)) {
        field(r, i)->data = (const char *)kept.data + 1;
        must_refuse(w, r, EXPHIL_E_INVALID, said("the address of %s is 0x", a->name));
    }
    field(r, i)->data = (const void *)(UINTPTR_MAX - 7);
    if (r->laid[i].bytes > 8) must_refuse(w, r, EXPHIL_E_INVALID, said("%s with strides", a->name));
    for (int k = 0; k < 3; k++) {
        const int64_t bad[] = {-1, INT64_MIN, INT64_MAX, (int64_t)1 << 61};
        for (int n = 0; n < 4 && a->count[k] > 1; n++) {
            *field(r, i) = kept;
            memcpy((char *)field(r, i) + strides[k], &bad[n], sizeof bad[n]);
            must_refuse(w, r, EXPHIL_E_INVALID, n == 0 ? said(words[k], a->name) : a->name);
        }
    }
    *field(r, i) = (exphil_input){.data = kept.data, .batch_stride = 1, .frame_stride = 1};
    if (ops_is_out(r, i) && a->count[2] > 1 && a->count[0] * a->count[1] > 1)
        must_refuse(w, r, EXPHIL_E_INVALID, said("elements of %s overlap", a->name));
    *field(r, i) = kept;
}

static void every_array_is_named(void **state)
{
    const world w = world_make();
    for (int number = 0; number < RUNS; number++) {
        ops_run *r = right(&w, number, OPS_PADDED);
        for (int i = 0; i < r->c->count; i++)
            if (is_used(r, i)) check_array(&w, r, i);
        assert_int_equal(ops_run_do(w.ops, r, NULL), EXPHIL_OK);
    }
    world_end(&w);
}

static const struct required {
    int number;
    const char *names[12];
} required[] = {
    {0, {"u", "delta", "b", "c", "y"}}, {1, {"q", "k", "v", "y"}},
    {2, {"gates", "weight", "y"}},      {3, {"gates", "weight", "y"}},
    {4, {"x", "gain", "shift", "y"}},   {5, {"x", "weight", "y"}},
    {6, {"p", "m", "v", "grad"}},       {7, {"u", "delta", "b", "c", "dy"}},
    {8, {"q", "k", "v", "y", "dy"}},    {9, {"weight", "y", "dy"}},
    {10, {"weight", "y", "dy"}},        {11, {"x", "gain", "shift", "dy"}},
    {12, {"x", "weight", "dy"}},
};

static void what_is_needed_must_be_there(void **state)
{
    const world w = world_make();
    for (size_t n = 0; n < sizeof required / sizeof required[0]; n++) {
        ops_run *r = right(&w, required[n].number, OPS_DENSE);
        for (int k = 0; required[n].names[k]; k++)
            for (int i = 0; i < r->c->count; i++) {
                const exphil_input kept = *field(r, i);
                if (strcmp(r->c->array[i].name, required[n].names[k]) != 0) continue;
                field(r, i)->data = NULL;
                must_refuse(&w, r, EXPHIL_E_INVALID, said(": %s is NULL", required[n].names[k]));
                *field(r, i) = kept;
            }
    }
    world_end(&w);
}

static void outputs_overlap_nothing(void **state)
{
    const world w = world_make();
    for (int number = 0; number < RUNS; number++) {
        ops_run *r = right(&w, number, OPS_DENSE);
        for (int i = 0; i < r->c->count; i++)
            for (int k = 0; k < r->c->count; k++) {
                const ops_array *a = &r->c->array[i], *b = &r->c->array[k];
                if (i == k || !ops_is_out(r, i) || !is_used(r, k) || !strncmp(b->name, "state_in", 8))
                    continue;
                if (number >= 7 && strncmp(a->name, "dstate", 6) == 0 && strncmp(b->name, "dstate", 6) == 0)
                    continue;
                if (strcmp(b->name + 1, "_in") == 0 && strcmp(a->name + 1, "_out") == 0) continue;
                const exphil_input kept = *field(r, i);
                field(r, i)->data =
                    (const char *)field(r, k)->data + (b->role & OPS_BYTES ? 0 : sizeof(float));
                field(r, i)->data = (const void *)((uintptr_t)field(r, i)->data & ~(uintptr_t)3);
                exphil_error error = EXPHIL_ERROR_INIT;
                const uint64_t before = all_memory(r);
                assert_int_equal(ops_run_do(w.ops, r, &error), EXPHIL_E_INVALID);
                assert_says(&error, "overlap");
                assert_says(&error, a->name);
                assert_true(all_memory(r) == before);
                *field(r, i) = kept;
            }
        exphil_input *out = NULL;
        for (int i = 0; i < r->c->count; i++)
            if (ops_is_out(r, i)) out = field(r, i);
        const exphil_input kept = *out;
        if (r->workspace_bytes >= 4096) {
            out->data = (const char *)r->workspace + (64 - (uintptr_t)r->workspace % 64);
            must_refuse(&w, r, EXPHIL_E_INVALID, "and the workspace overlap");
        }
        *out = kept;
        assert_int_equal(ops_run_do(w.ops, r, NULL), EXPHIL_OK);
    }
    world_end(&w);
}

/* Frames interleave, but batch entries do not repeat so: the second one of y lies on that of x. */
static void batches_that_do_not_repeat_overlap(void **state)
{
    const world w = world_make();
    float *memory = case_alloc(64 * sizeof *memory);
    case_seed(1);
    ops_case *c = ops_case_make(EXPHIL_OP_NORM, &(ops_shape){2, 3, 2, 0, 0, 0});
    ops_run *r = ops_run_make(w.ops, c, false, EXPHIL_OPS_F32, OPS_DENSE, NULL);
    memset(memory, 0, 64 * sizeof *memory);
    SET(r, exphil_norm_args, x, ((exphil_input){memory, 12, 4, 1}));
    SET(r, exphil_norm_args, y, ((exphil_output){memory + 2, 12, 4, 1}));
    assert_int_equal(ops_run_do(w.ops, r, NULL), EXPHIL_OK);
    SET(r, exphil_norm_args, x.batch_stride, 13);
    SET(r, exphil_norm_args, y.batch_stride, 10);
    r->workspace_bytes = 4096; /* rows that are not evenly apart are copied */
    r->workspace = case_alloc(r->workspace_bytes);
    must_refuse(&w, r, EXPHIL_E_INVALID, "norm: y and x overlap");
    SET(r, exphil_norm_args, y.batch_stride, 13);
    assert_int_equal(ops_run_do(w.ops, r, NULL), EXPHIL_E_INVALID); /* apart, but it cannot be told */
    world_end(&w);
}

/* A gradient never goes where the one of the outgoing state came in: not every kernel reads that first. */
static void gradients_of_states_have_places_of_their_own(void **state)
{
    const world w = world_make();
    const int numbers[] = {7, 12};
    for (int n = 0; n < 2; n++) {
        ops_run *r = right(&w, numbers[n], OPS_DENSE);
        int in = -1, out = -1;
        for (int i = 0; i < r->c->count; i++) {
            if (strcmp(r->c->array[i].name, "dstate_out") == 0) in = i;
            if (strcmp(r->c->array[i].name, "dstate_in") == 0) out = i;
        }
        field(r, out)->data = field(r, in)->data;
        must_refuse(&w, r, EXPHIL_E_INVALID, "dstate_in and dstate_out overlap");
    }
    world_end(&w);
}

/* ---- numbers --------------------------------------------------------------------------------------------- */

typedef struct wrong_number {
    int number;
    size_t at;
    int64_t value;
    int32_t bytes;
    const char *says;
} wrong_number;
#define I64(number, type, field, value, says)                                                                \
  {                                                                                                          \
    number, offsetof(type, field), value, 8, says                                                            \
  }
#define I32(number, type, field, value, says)                                                                \
  {                                                                                                          \
    number, offsetof(type, field), value, 4, says                                                            \
  }

static const wrong_number wrong_numbers[] = {
    I64(0, exphil_scan_args, batch, -1, "scan: batch is -1, must be 0.."),
    I64(0, exphil_scan_args, frames, INT64_MIN, "scan: frames is -92"),
    I64(0, exphil_scan_args, frames, INT64_MAX, "scan: frames is 92"),
    I64(0, exphil_scan_args, width, 0, "scan: width is 0, must be 1.."),
    I64(0, exphil_scan_args, width, INT64_MAX, "scan: width is 92"),
    I64(0, exphil_scan_args, states, 257, "scan: states is 257, must be 1..256"),
    I64(0, exphil_scan_args, batch, (int64_t)1 << 43, "more than 2^44 elements"),
    I32(0, exphil_scan_args, reserved, 1, "scan: reserved is 1, must be 0"),
    I32(0, exphil_scan_args, type, 2, "scan: type is 2, must be 0 or 1"),
    I64(8, exphil_attention_args, heads, 0, "attention_grad: heads is 0"),
    I64(8, exphil_attention_args, dim, -5, "attention_grad: dim is -5"),
    I64(8, exphil_attention_args, window, 0, "attention_grad: window is 0"),
    I64(1, exphil_attention_args, frames, (int64_t)1 << 40, "more than 2^44 elements"),
    I32(1, exphil_attention_args, method, 3, "attention: method is 3, must be 0..2"),
    I32(1, exphil_attention_args, reserved, -1, "attention: reserved is -1"),
    I64(2, exphil_rnn_args, hidden, 0, "lstm: hidden is 0"),
    I64(10, exphil_rnn_args, hidden, INT64_MAX, "gru_grad: hidden is 92"),
    I64(4, exphil_norm_args, width, -1, "norm: width is -1"),
    I32(11, exphil_norm_args, reserved, 7, "norm_grad: reserved is 7"),
    I64(5, exphil_conv_args, taps, 0, "conv: taps is 0, must be 1..256"),
    I64(12, exphil_conv_args, taps, 257, "conv_grad: taps is 257, must be 1..256"),
    I64(6, exphil_adamw_args, count, -1, "adamw: count is -1"),
    I64(6, exphil_adamw_args, step, 0, "adamw: step is 0, must be 1.."),
};

static void every_number_is_named(void **state)
{
    const world w = world_make();
    for (size_t i = 0; i < sizeof wrong_numbers / sizeof wrong_numbers[0]; i++) {
        const wrong_number *n = &wrong_numbers[i];
        ops_run *r = right(&w, n->number, OPS_DENSE);
        exphil_op_info info = EXPHIL_OP_INFO_INIT;
        exphil_error error = EXPHIL_ERROR_INIT;
        memcpy(r->args + n->at, &n->value, (size_t)n->bytes);
        must_refuse(&w, r, EXPHIL_E_INVALID, n->says);
        assert_int_equal(exphil_ops_query(w.ops, r->args, &info, &error), EXPHIL_E_INVALID);
        assert_says(&error, n->says);
        assert_int_equal(info.workspace_bytes, 0);
        case_release();
    }
    world_end(&w);
}

static const struct wrong_real {
    size_t at;
    double value;
    const char *says;
} wrong_reals[] = {
    {offsetof(exphil_adamw_args, rate), -1.0, "adamw: rate is -1, must be 0.."},
    {offsetof(exphil_adamw_args, rate), 1e40, "adamw: rate is 1e+40"},
    {offsetof(exphil_adamw_args, beta1), 1.0, "adamw: beta1 is 1"},
    {offsetof(exphil_adamw_args, beta2), -0.1, "adamw: beta2 is -0.1"},
    {offsetof(exphil_adamw_args, epsilon), 1e-31, "adamw: epsilon is 1e-31"},
    {offsetof(exphil_adamw_args, decay), -1e-9, "adamw: decay is -1e-09"},
    {offsetof(exphil_adamw_args, average_decay), 1.5, "adamw: average_decay is 1.5"},
};

static void every_real_is_named(void **state)
{
    const world w = world_make();
    const uint64_t not_a_number = 0x7ff8000000000000u;
    for (size_t i = 0; i < sizeof wrong_reals / sizeof wrong_reals[0]; i++) {
        ops_run *r = right(&w, 6, OPS_DENSE);
        memcpy(r->args + wrong_reals[i].at, &wrong_reals[i].value, sizeof(double));
        must_refuse(&w, r, EXPHIL_E_INVALID, wrong_reals[i].says);
        memcpy(r->args + wrong_reals[i].at, &not_a_number, sizeof(double));
        must_refuse(&w, r, EXPHIL_E_INVALID, "is nan, must be ");
    }
    ops_run *r = right(&w, 4, OPS_DENSE);
    SET(r, exphil_norm_args, epsilon, 2.0);
    must_refuse(&w, r, EXPHIL_E_INVALID, "norm: epsilon is 2, must be 0..1");
    world_end(&w);
}

/* ---- structs, handles, workspaces ------------------------------------------------------------------------ */

static void structs_say_how_long_they_are(void **state)
{
    const world w = world_make();
    for (int number = 0; number < RUNS; number++) {
        ops_run *r = right(&w, number, OPS_DENSE);
        size_t size, none[] = {0, 8, 15, 16, 24};
        memcpy(&size, r->args, sizeof size);
        for (int i = 0; i < 5; i++) {
            memcpy(r->args, &none[i], sizeof size);
            must_refuse(&w, r, EXPHIL_E_INVALID, "struct_size is ");
        }
        const size_t longer = size + 16;
        memcpy(r->args, &longer, sizeof longer);
        r->args[size + 3] = 1;
        must_refuse(&w, r, EXPHIL_E_VERSION, "uses byte");
        r->args[size + 3] = 0;
        assert_int_equal(ops_run_do(w.ops, r, NULL), EXPHIL_OK);
        const int32_t ops[] = {0, -1, EXPHIL_OP_ADAMW + 1, INT32_MAX};
        for (int i = 0; i < 4; i++) {
            memcpy(r->args + sizeof size, &ops[i], sizeof ops[i]);
            must_refuse(&w, r, EXPHIL_E_UNSUPPORTED, "this library knows 1..13");
            assert_null(exphil_op_name(ops[i]));
        }
    }
    world_end(&w);
}

static void handles_and_workspaces_are_looked_at(void **state)
{
    const world w = world_make();
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_op_info info = EXPHIL_OP_INFO_INIT;
    ops_run *r = right(&w, 7, OPS_DENSE);
    assert_int_equal(exphil_ops_query(NULL, r->args, &info, &error), EXPHIL_E_INVALID);
    assert_says(&error, "ops is NULL");
    assert_int_equal(exphil_ops_query(w.ops, NULL, &info, &error), EXPHIL_E_INVALID);
    assert_says(&error, "args is NULL");
    assert_int_equal(exphil_ops_query(w.ops, r->args, NULL, &error), EXPHIL_E_INVALID);
    info.struct_size = 3;
    assert_int_equal(exphil_ops_query(w.ops, r->args, &info, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_ops_run(NULL, r->args, NULL, 0, NULL, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_ops_run(w.ops, r->args, r->workspace, r->workspace_bytes, &info, &error),
                     EXPHIL_E_INVALID);
    assert_says(&error, "stream is given");
    assert_int_equal(exphil_ops_run(w.ops, r->args, NULL, r->workspace_bytes, NULL, &error),
                     EXPHIL_E_INVALID);
    assert_says(&error, "workspace is NULL");
    assert_int_equal(exphil_ops_run(w.ops, r->args, r->workspace, SIZE_MAX, NULL, &error), EXPHIL_E_INVALID);
    assert_says(&error, "more than any memory has");
    r->workspace_bytes--;
    must_refuse(&w, r, EXPHIL_E_INVALID, "scan_grad: workspace_bytes is ");
    exphil_ops_config config = EXPHIL_OPS_CONFIG_INIT;
    exphil_ops *ops = NULL;
    assert_int_equal(exphil_ops_create(NULL, NULL, &ops, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_ops_create(w.context, NULL, NULL, &error), EXPHIL_E_INVALID);
    config.threads = 2;
    assert_int_equal(exphil_ops_create(w.context, &config, &ops, &error), EXPHIL_E_INVALID);
    assert_says(&error, "threads is 2, must be 0 or 1");
    config = (exphil_ops_config){sizeof config, 0, 1};
    assert_int_equal(exphil_ops_create(w.context, &config, &ops, &error), EXPHIL_E_INVALID);
    assert_null(ops);
    exphil_ops_destroy(NULL);
    world_end(&w);
}

static void what_belongs_together_is_asked_for(void **state)
{
    const world w = world_make();
    ops_run *r = right(&w, 0, OPS_DENSE);
    const exphil_input rates = ((exphil_scan_args *)(void *)r->args)->a_log;
    SET(r, exphil_scan_args, a, rates);
    must_refuse(&w, r, EXPHIL_E_INVALID, "a_log and a are both given");
    SET(r, exphil_scan_args, a.data, NULL);
    SET(r, exphil_scan_args, a_log.data, NULL);
    must_refuse(&w, r, EXPHIL_E_INVALID, "a_log and a are both NULL");
    r = right(&w, 7, OPS_DENSE);
    SET(r, exphil_scan_args, z.data, NULL);
    must_refuse(&w, r, EXPHIL_E_INVALID, "dz must be NULL, because z is");
    r = right(&w, 3, OPS_DENSE);
    SET(r, exphil_rnn_args, c_in, ((exphil_rnn_args *)(void *)r->args)->h_in);
    must_refuse(&w, r, EXPHIL_E_INVALID, "gru: c_in must be NULL");
    const int with_saved[] = {1, 2, 3, 4, 8, 9, 10, 11};
    for (int i = 0; i < 8; i++) {
        r = right(&w, with_saved[i], OPS_DENSE);
        const size_t less = r->saved_bytes - 4;
        memcpy(r->args + r->c->saved_at + sizeof(void *), &less, sizeof less);
        must_refuse(&w, r, EXPHIL_E_INVALID, "saved_bytes is ");
        memset(r->args + r->c->saved_at, 0, sizeof(void *));
        if (i >= 4) must_refuse(&w, r, EXPHIL_E_INVALID, ": saved is NULL");
    }
    world_end(&w);
}

/* ---- far apart ------------------------------------------------------------------------------------------- */

/* Two batch entries 16 GiB from each other: the memory between is never touched. */
static void entries_may_lie_far_apart(void **state)
{
    const int64_t far = (int64_t)1 << 32;
    const size_t bytes = (size_t)far * sizeof(float) + 65536;
    const world w = world_make();
    char *memory = test_pages(bytes);
    if (!memory) {
        print_message("SKIPPED: this system does not give 16 GiB that are not touched\n");
        skip();
    }
    for (int number = 0; number < 2; number++) {
        ops_run *r = right(&w, number ? 7 : 0, OPS_DENSE), *same = right(&w, number ? 7 : 0, OPS_DENSE);
        const char *name = number ? "du" : "y";
        for (int i = 0; i < r->c->count; i++) {
            if (strcmp(r->c->array[i].name, name) != 0) continue;
            *field(r, i) = (exphil_input){.data = memory, .batch_stride = far};
            exphil_op_info info = EXPHIL_OP_INFO_INIT;
            assert_int_equal(exphil_ops_query(w.ops, r->args, &info, NULL), EXPHIL_OK);
            r->workspace = case_alloc(info.workspace_bytes);
            r->workspace_bytes = info.workspace_bytes;
            assert_int_equal(ops_run_do(w.ops, r, NULL), EXPHIL_OK);
            assert_int_equal(ops_run_do(w.ops, same, NULL), EXPHIL_OK);
            const size_t half = same->laid[i].bytes / 2;
            assert_memory_equal(memory, same->laid[i].data, half);
            assert_memory_equal(memory + far * 4, same->laid[i].data + half, half);
        }
    }
    test_pages_free(memory, bytes);
    world_end(&w);
}

/* ---- anything ---------------------------------------------------------------------------------------------- */

static int64_t rounds(int64_t usual)
{
    const char *given = getenv("EXPHIL_OPS_ROUNDS");
    return given ? atoll(given) : usual;
}

static int64_t wild(void)
{
    static const int64_t some[] = {0,
                                   1,
                                   -1,
                                   2,
                                   3,
                                   16,
                                   255,
                                   256,
                                   1 << 20,
                                   (int64_t)1 << 32,
                                   (int64_t)1 << 44,
                                   (int64_t)1 << 61,
                                   INT64_MAX,
                                   INT64_MIN,
                                   INT32_MAX,
                                   63};
    return some[case_below(16)];
}

/* A query reads no array, so it may be given anything; it answers or refuses. */
static void queries_may_be_given_anything(void **state)
{
    const world w = world_make();
    int64_t answered = 0;
    for (int64_t i = 0; i < rounds(1500); i++) {
        _Alignas(64) unsigned char args[OPS_ARGS] = {0};
        exphil_error error = EXPHIL_ERROR_INIT;
        exphil_op_info info = EXPHIL_OP_INFO_INIT;
        if (i % 500 == 0) case_seed((uint64_t)i);
        const int number = (int)case_below(RUNS);
        const ops_case *c = ops_case_make(ops_forward[number % 7], &shape);
        memcpy(args, c->args, sizeof args);
        const int32_t op = c->op + (number >= 7);
        memcpy(args + 8, &op, sizeof op);
        for (int k = 0; k < c->count; k++) {
            const exphil_input any = {(const void *)(uintptr_t)case_below(3), case_below(3) ? 0 : wild(),
                                      case_below(3) ? 0 : wild(), case_below(4) ? 0 : wild()};
            memcpy(args + c->array[k].at, &any, sizeof any);
        }
        for (int64_t k = case_below(3); k > 0; k--) {
            const int64_t value = wild();
            memcpy(args + 16 + 8 * case_below(6), &value, sizeof value);
        }
        const exphil_status status = exphil_ops_query(w.ops, args, &info, &error);
        answered += status == EXPHIL_OK;
        if (status != EXPHIL_OK) assert_true(status < 0 && error.message[0]);
        if (status == EXPHIL_OK) assert_true(info.workspace_bytes < PTRDIFF_MAX);
        case_release();
    }
    assert_true(answered > rounds(1500) / 100);
    world_end(&w);
}

/* ---- any layout ---------------------------------------------------------------------------------------------- */

enum { SLOT = 1 << 16, FILL = 0xa5 };

/* Strides that may or may not be fine. */
static void any_strides(const ops_array *a, int64_t stride[3])
{
    const int64_t t = a->count[1], d = a->count[2], gap = case_below(3), wide = d + gap;
    const int64_t some[][3] = {{t * d, d, 1},
                               {t * wide + gap, wide, 1},
                               {t * d, 1, t},
                               {2 * d, 2 * a->count[0] * d, 2},
                               {1, a->count[0], a->count[0] * t},
                               {2 * wide * t, 2 * wide, 1},
                               {d, a->count[0] * d, 1},
                               {wide * t * (1 + gap), wide, 1 + gap},
                               {1 + gap, t, 1 + gap}};
    memcpy(stride, some[case_below(9)], sizeof some[0]);
    for (int i = 0; i < 3; i++)
        if (stride[i] == 0) stride[i] = 1;
}

static int64_t place_of(const ops_laid *l, const ops_array *a, int64_t i)
{
    const int64_t d = a->count[2], t = a->count[1];
    return i / (t * d) * l->stride[0] + i / d % t * l->stride[1] + i % d * l->stride[2];
}

static size_t element_of(const ops_run *r, int i)
{
    return r->c->array[i].role & OPS_BYTES ? 1 : case_bytes(r->type);
}

/* Arrays in slots of one memory, now and then two of them in one. Numbers go in where they did, in another order of arrays some of
 * them over others: what then stands there is what goes in. */
static void scatter(ops_run *r, unsigned char *memory)
{
    for (int i = 0; i < r->c->count; i++) {
        const ops_array *a = &r->c->array[i];
        if (!is_used(r, i)) continue;
        ops_laid *l = &r->laid[i], dense = *l;
        const size_t element = element_of(r, i);
        const int64_t slot = case_below(5) ? i : case_below(i + 1);
        any_strides(a, l->stride);
        l->data = memory + slot * SLOT + (slot == i ? 0 : case_below(12)) * (int64_t)element;
        *field(r, i) = (exphil_input){l->data, l->stride[0], l->stride[1], l->stride[2]};
        for (int64_t k = 0; ops_is_in(r, i) && k < ops_elements(a); k++)
            memcpy(l->data + place_of(l, a, k) * (int64_t)element, dense.data + k * (int64_t)element,
                   element);
    }
}

/* All that goes in is still what it was: no other input lies on it. */
static bool inputs_whole(const ops_run *r, const ops_run *dense)
{
    for (int i = 0; i < r->c->count; i++) {
        const size_t element = element_of(r, i);
        for (int64_t k = 0; ops_is_in(r, i) && k < ops_elements(&r->c->array[i]); k++)
            if (memcmp(r->laid[i].data + place_of(&r->laid[i], &r->c->array[i], k) * (int64_t)element,
                       dense->laid[i].data + k * (int64_t)element, element) != 0)
                return false;
    }
    return true;
}

static void check_scattered(const ops_run *r, const ops_run *dense, unsigned char *memory,
                            unsigned char *before)
{
    for (int i = 0; i < r->c->count; i++) {
        const ops_array *a = &r->c->array[i];
        const size_t element = element_of(r, i);
        for (int64_t k = 0; ops_is_out(r, i) && k < ops_elements(a); k++) {
            const int64_t at = (r->laid[i].data - memory) + place_of(&r->laid[i], a, k) * (int64_t)element;
            if (memcmp(memory + at, dense->laid[i].data + k * (int64_t)element, element) != 0)
                fail_msg("%s of %s: another number", a->name, exphil_op_name(r->op));
            memcpy(before + at, memory + at, element);
        }
    }
    assert_memory_equal(memory, before, (size_t)r->c->count * SLOT);
}

static void one_scatter(const world *w, unsigned char *memory, int64_t *taken, int64_t *refused)
{
    const ops_shape s = {case_below(4),     case_below(5), 1 + case_below(6),
                         2 + case_below(3), case_below(3), (int32_t)case_below(2)};
    const int32_t op = ops_forward[case_below(7)], type = (int32_t)case_below(2);
    const bool backward = op != EXPHIL_OP_ADAMW && case_below(2);
    ops_case *c = ops_case_make(op, &s);
    void *saved = backward ? ops_forward_of(w->ops, c, type) : NULL;
    ops_run *dense = ops_run_make(w->ops, c, backward, type, OPS_DENSE, saved);
    ops_run *r = ops_run_make(w->ops, c, backward, type, OPS_DENSE, saved);
    const size_t all = (size_t)c->count * SLOT;
    memset(memory, FILL, all);
    scatter(r, memory);
    exphil_op_info info = EXPHIL_OP_INFO_INIT;
    const exphil_status asked = exphil_ops_query(w->ops, r->args, &info, NULL);
    unsigned char *before = case_alloc(all);
    memcpy(before, memory, all);
    r->workspace = case_alloc(info.workspace_bytes);
    r->workspace_bytes = info.workspace_bytes;
    const bool whole = inputs_whole(r, dense);
    const exphil_status status = ops_run_do(w->ops, r, NULL);
    assert_true(status == EXPHIL_OK || status == EXPHIL_E_INVALID);
    if (status < 0) {
        assert_memory_equal(memory, before, all);
        (*refused)++;
        return;
    }
    assert_int_equal(asked, EXPHIL_OK);
    if (!whole) return;
    assert_int_equal(ops_run_do(w->ops, dense, NULL), EXPHIL_OK);
    check_scattered(r, dense, memory, before);
    (*taken)++;
}

static void any_layout_is_right_or_refused(void **state)
{
    const world w = world_make();
    unsigned char *memory = malloc((size_t)OPS_MOST * SLOT);
    int64_t taken = 0, refused = 0;
    assert_non_null(memory);
    for (int64_t i = 0; i < rounds(800); i++) {
        case_seed((uint64_t)i);
        one_scatter(&w, memory, &taken, &refused);
        case_release();
    }
    assert_true(taken > rounds(800) / 20 && refused > rounds(800) / 20);
    free(memory);
    world_end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_array_is_named),
        cmocka_unit_test(what_is_needed_must_be_there),
        cmocka_unit_test(outputs_overlap_nothing),
        cmocka_unit_test(batches_that_do_not_repeat_overlap),
        cmocka_unit_test(gradients_of_states_have_places_of_their_own),
        cmocka_unit_test(every_number_is_named),
        cmocka_unit_test(every_real_is_named),
        cmocka_unit_test(structs_say_how_long_they_are),
        cmocka_unit_test(handles_and_workspaces_are_looked_at),
        cmocka_unit_test(what_belongs_together_is_asked_for),
        cmocka_unit_test(entries_may_lie_far_apart),
        cmocka_unit_test(queries_may_be_given_anything),
        cmocka_unit_test(any_layout_is_right_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
