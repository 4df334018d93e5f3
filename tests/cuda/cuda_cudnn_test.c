/* Attention by cuDNN as cuda/cudnn.c asks for it, with a library in its place that computes the graph it is given: against
 * the CPU's in double, beside own kernels, with resets and rings that the library knows nothing of, and what is not given
 * to it at all. */
#include "cudnn_api.h"
#include "device_case.h"
#include "fake_cudnn.h"
#include "test_places.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const xph_backend *xph_backend_query(uint32_t abi, const xph_host *host);

static fake_cudnn *fake;
static const xph_backend *gpu;

/* ---- a device of its own ---- */

typedef struct heard {
    int warnings;
    char last[512];
} heard;

static void *take(void *context, size_t bytes)
{
    return malloc(bytes);
}

static void give_back(void *context, void *pointer, size_t bytes)
{
    free(pointer);
}

static void hear(void *context, exphil_log_level level, const char *message)
{
    heard *to = context;
    if (level > EXPHIL_LOG_WARNING || strstr(message, "cuBLASLt")) return;
    to->warnings++;
    snprintf(to->last, sizeof to->last, "%s", message);
}

static heard said;

static xph_device *opened(void)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    const xph_host host = {.struct_size = sizeof host,
                           .abi = XPH_BACKEND_ABI,
                           .context = &said,
                           .alloc = take,
                           .free = give_back,
                           .log = hear};
    xph_device *device = NULL;
    said = (heard){.warnings = 0};
    if (gpu->device_open(&host, 0, &device, &error) < 0) fail_msg("%s", error.message);
    return device;
}

/* Nothing of the library is left when the last one is closed. */
static void closed(xph_device *device)
{
    gpu->device_close(device);
    assert_int_equal(fake->alive, 0);
}

/* ---- shapes ---- */

typedef struct shape {
    int64_t batch, time, heads, dim, window;
    int ring;   /* -1: no state_in; else slots filled */
    int resets; /* one frame in so many; 0: none; -1: at the first frame of every stream */
    int fresh;
    int64_t pad;
} shape;

/* Streams that begin anew; short windows with a ring, with resets, with a padding of rows; an odd number of frames. */
static const shape shapes[] = {
    {4, 512, 1, 64, 600, -1, 0, 1, 0},   {4, 512, 1, 64, 512, 90, -1, 1, 0},
    {7, 513, 1, 40, 100, -1, 0, 1, 8},   {3, 520, 2, 88, 60, 60, 0, 0, 0},
    {4, 577, 1, 88, 30, 12, 130, 0, 24}, {2, 512, 2, 128, 128, 128, 64, 0, 0},
    {8, 512, 1, 32, 512, -1, 200, 1, 0},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

enum { Y = 2 };

typedef struct layer {
    int64_t rows, span, state;
    double *qkv, *bias, *in;
    uint8_t *reset;
} layer;

static layer layer_make(const shape *s)
{
    layer l = {.rows = s->batch * s->time, .span = s->heads * s->dim};
    l.state = 2 * s->window * l.span + 2;
    l.qkv = case_random(l.rows * 3 * l.span, -1.5, 1.5);
    l.bias = case_random(s->heads * s->window, -1, 1);
    if (s->ring >= 0) l.in = case_random(s->batch * l.state, -1.5, 1.5);
    for (int64_t b = 0; b < s->batch && l.in; b++) {
        l.in[(b + 1) * l.state - 2] = (double)case_below(s->window);
        l.in[(b + 1) * l.state - 1] = (double)s->ring;
    }
    l.reset = s->resets > 0 ? kt_resets(l.rows, s->resets) : NULL;
    if (s->resets < 0) {
        l.reset = case_alloc((size_t)l.rows);
        for (int64_t i = 0; i < l.rows; i++) l.reset[i] = i % s->time == 0;
    }
    return l;
}

static kt_case case_of(const shape *s, const layer *l)
{
    const kt_tensor tensors[] = {
        KT_FIELD(xph_attention_args, qkv, ldqkv, l->rows, 3 * l->span, KT_IN, l->qkv, NULL),
        KT_FLAT(xph_attention_args, bias, s->heads, s->window, KT_IN, l->bias, NULL),
        KT_FIELD(xph_attention_args, y, ldy, l->rows, l->span, KT_OUT, NULL, NULL),
        KT_FLAT(xph_attention_args, saved, l->rows, s->heads, KT_OUT, NULL, NULL),
        KT_FIELD(xph_attention_args, state_out, ld_state, s->batch, l->state, KT_OUT, NULL, NULL),
        KT_FIELD(xph_attention_args, state_in, ld_state, s->batch, l->state, KT_IN, l->in, NULL),
    };
    const xph_attention_args args = {.batch = s->batch,
                                     .time = s->time,
                                     .heads = s->heads,
                                     .dim = s->dim,
                                     .window = s->window,
                                     .fresh = s->fresh,
                                     .reset = l->reset};
    return KT_CASE("attention", XPH_OP_ATTENTION, args, offsetof(xph_attention_args, scratch), tensors,
                   s->pad);
}

static device_case on_device(const kt_case *c, const layer *l, xph_type type)
{
    static xph_cuda_candidate alone[2]; /* others have their own test */
    const xph_cuda_candidate *k = xph_cuda_attention;
    while (strcmp(k->name, "attention_cudnn") != 0) k++;
    alone[0] = *k;
    device_case d = device_case_of(c, alone, type);
    d.reset_at = offsetof(xph_attention_args, reset);
    d.rows = l->rows;
    d.candidates_differ = true;
    d.align = 64;
    return d;
}

/* By attention_cudnn, with the distances of rows that pads give. */
static bool is_taken(xph_device *device, const shape *s, xph_type type)
{
    const int64_t span = s->heads * s->dim;
    xph_attention_args a = {.type = type,
                            .batch = s->batch,
                            .time = s->time,
                            .heads = s->heads,
                            .dim = s->dim,
                            .window = s->window,
                            .fresh = s->fresh,
                            .ldqkv = 3 * span + s->pad,
                            .ldy = span + s->pad};
    xph_op_info info = {.refused = 0};
    assert_int_equal(gpu->query(device, XPH_OP_ATTENTION, &a, &info), EXPHIL_OK);
    return strcmp(info.name, "attention_cudnn") == 0;
}

static void results_are_right(void **state)
{
    xph_device *device = opened();
    for (size_t i = 0; i < SHAPES * 2; i++) {
        const shape *s = &shapes[i / 2];
        const xph_type type = i % 2 ? XPH_F16 : XPH_BF16;
        case_seed(i);
        layer l = layer_make(s);
        kt_case c = case_of(s, &l);
        device_case d = on_device(&c, &l, type);
        const int before = fake->runs;
        assert_true(is_taken(device, s, type));
        device_check(&d);
        assert_int_equal(fake->runs - before, DEVICE_SCHEDULES);
        case_release();
    }
    assert_int_equal(fake->wrong, 0);
    assert_int_equal(fake->plans, 2 * (SHAPES - 1)); /* two shapes differ in what it does not see */
    closed(device);
}

/* Without saved and without a state that goes out: as in play. */
static void what_is_not_asked_for(void **state)
{
    double *all[KT_MOST], *result[KT_MOST];
    const shape *s = &shapes[4];
    xph_device *device = opened();
    case_seed(3);
    layer l = layer_make(s);
    kt_case c = case_of(s, &l);
    device_case d = on_device(&c, &l, XPH_BF16);
    device_run(&d, all);
    for (int i = Y + 1; i < Y + 3; i++) c.tensors[i].role = KT_IN;
    device_run(&d, result);
    case_same("y", result[Y], all[Y], l.rows * l.span);
    case_release();
    closed(device);
}

/* Short chunks, floats, widths and distances that are no multiples of 8; where the bias would be more than all else; where a
 * ring or resets cut most tiles; on a device that is closed. */
static void what_is_not_given_to_it(void **state)
{
    shape s = shapes[0];
    xph_device *device = opened();
    const int before = fake->wrong;
    assert_true(is_taken(device, &s, XPH_BF16));
    assert_false(is_taken(device, &s, XPH_F32));
    s.fresh = 0;
    assert_false(is_taken(device, &s, XPH_BF16));
    s.window = 128;
    assert_true(is_taken(device, &s, XPH_BF16));
    s.window = 129;
    assert_false(is_taken(device, &s, XPH_BF16));
    s.fresh = 1;
    s.time = 511;
    assert_false(is_taken(device, &s, XPH_BF16));
    s.time = 512;
    s.pad = 4;
    assert_false(is_taken(device, &s, XPH_BF16));
    s.pad = 0;
    s.dim = 60;
    assert_false(is_taken(device, &s, XPH_BF16));
    s.dim = 136;
    assert_false(is_taken(device, &s, XPH_BF16));
    s.dim = 64;
    s.batch = 3;
    assert_false(is_taken(device, &s, XPH_BF16)); /* time^2 is more than 2 batch time dim */
    s.time = 4096;
    s.batch = 1024;
    assert_false(is_taken(device, &s, XPH_BF16)); /* more than a cache holds */
    assert_int_equal(fake->wrong, before);
    assert_int_equal(said.warnings, 0);
    closed(device);
    assert_false(xph_cudnn_attention_accepts(&(xph_attention_args){.type = XPH_BF16,
                                                                   .batch = 4,
                                                                   .time = 512,
                                                                   .heads = 1,
                                                                   .dim = 64,
                                                                   .window = 512,
                                                                   .fresh = 1,
                                                                   .ldqkv = 192,
                                                                   .ldy = 64}));
}

/* Whatever it answers when it is asked; and then it is not asked again. */
static void what_it_refuses_when_asked(void **state)
{
    static const struct {
        int where, status;
        size_t wants;
        const char *text;
    } ways[] = {
        {FAKE_DNN_AT_START, DN_NOT_INITIALIZED, 0,
         "cuDNN does not start, attention by own kernels: status 1001"},
        {FAKE_DNN_AT_QUERY, DN_NOT_SUPPORTED_SHAPE, 0,
         "cuda:0: cuDNN refuses attention of 4 x 512 frames, 1 heads of 64, window 512 (bf16; distances of "
         "rows 192 64): "
         "status 3002 (NOT_SUPPORTED) when asked for the choice of an engine; own kernels do it"},
        {FAKE_DNN_AT_QUERY, FAKE_DNN_NO_ENGINE, 0,
         "status -1 (no engine) when asked for the choice of an engine"},
        {FAKE_DNN_AT_QUERY, FAKE_DNN_UNORDERED, 0,
         "status -1 (no engine) when asked for the choice of an engine"},
        {FAKE_DNN_AT_PLAN, DN_INTERNAL_ERROR, 0, "status 4000 (INTERNAL_ERROR) when asked for a plan"},
        {FAKE_DNN_NOWHERE, 0, (size_t)1 << 30, "status -1 (no engine) when asked for the workspace"},
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        xph_device *device = opened();
        fake->where = ways[i].where;
        fake->status = ways[i].status;
        fake->wants = ways[i].wants;
        fake->refusals = fake->wrong = 0;
        for (int k = 0; k < 3; k++) assert_false(is_taken(device, &shapes[0], XPH_BF16));
        assert_int_equal(fake->refusals, ways[i].where != FAKE_DNN_NOWHERE);
        assert_int_equal(fake->wrong, 0);
        assert_int_equal(said.warnings, 1);
        if (!strstr(said.last, ways[i].text)) fail_msg("%s", said.last);
        fake->where = FAKE_DNN_NOWHERE;
        fake->wants = 0;
        closed(device);
        device = opened();
        assert_true(is_taken(device, &shapes[0], XPH_BF16)); /* a device that is opened anew asks anew */
        closed(device);
    }
}

/* They share plans and a handle, and the last one closes both. */
static void several_contexts_of_a_device(void **state)
{
    xph_device *one = opened(), *other = opened();
    const int before = fake->plans;
    assert_true(is_taken(one, &shapes[0], XPH_BF16));
    assert_true(is_taken(other, &shapes[0], XPH_BF16));
    assert_int_equal(fake->plans, before + 1);
    gpu->device_close(one);
    assert_true(fake->alive > 0);
    assert_true(is_taken(other, &shapes[0], XPH_BF16));
    closed(other);
}

static int set_up(void **state)
{
    emu_timing(EMU_EAGER, 1);
    static const char path[] = EXPHIL_BINARY_DIR "/tests/plugin-emulated/libfake_cudnn.so";
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) return -1;
    fake = dlsym(library, "fake");
    gpu = xph_backend_query(XPH_BACKEND_ABI, NULL);
    fake->call = emu_call;
    fake->capturing = emu_capturing;
    fake->spoil = emu_spoil_capture;
    setenv("EXPHIL_CUDNN", path, 1);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_right),
        cmocka_unit_test(what_is_not_asked_for),
        cmocka_unit_test(what_is_not_given_to_it),
        cmocka_unit_test(what_it_refuses_when_asked),
        cmocka_unit_test(several_contexts_of_a_device),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
