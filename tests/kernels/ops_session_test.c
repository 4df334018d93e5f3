/* exphil/ops.h beside a session: a policy plays frame by frame, in streams of which one begins anew. What the steps of its block
 * were given, the operations are given again, with the model's own tensors, many frames a call: they give what the steps gave, to
 * the last bit. */
#include "ops_case.h"
#include "play_case.h"

#include "model/net_plan.h"
#include "play/play.h"

#include <stdio.h>

enum { STREAMS = 3, FRAMES = 14, FIRST = 9, ANEW = 5, BEGINS = 1, STEPS = 4, ARRAYS = 6 };

/* ---- what a session computes ----------------------------------------------------------------------------------------- */

/* Rows of every stream and frame, [STREAMS][FRAMES][width]. */
typedef struct rows {
    float *x;
    int64_t width;
} rows;

/* A step of the session's block: its result, and what it was given. */
typedef struct heard {
    const xph_step *step;
    rows y, in[ARRAYS];
} heard;

static struct {
    const xph_backend *real;
    xph_backend spy;
    const xph_net *net;
    int64_t frame;
    int count;
    heard of[STEPS];
} played;

static void hear(rows *to, const void *from, int64_t ld, int64_t width)
{
    if (!to->x) to->x = case_alloc((size_t)(STREAMS * FRAMES * width) * sizeof *to->x);
    to->width = width;
    for (int64_t b = 0; b < STREAMS; b++)
        memcpy(to->x + (b * FRAMES + played.frame) * width, (const float *)from + b * ld,
               (size_t)width * sizeof *to->x);
}

static void hear_scan(heard *h, const xph_scan_args *a)
{
    hear(&h->in[0], a->x, a->ldx, a->width);
    hear(&h->in[1], a->dt, a->lddt, a->width);
    hear(&h->in[2], a->b, a->ldb, a->states);
    hear(&h->in[3], a->c, a->ldc, a->states);
    if (a->z) hear(&h->in[4], a->z, a->ldz, a->width);
}

static int64_t gates_of(const xph_rnn_args *a)
{
    return a->kind == XPH_RNN_LSTM ? 4 : 3;
}

/* Before the step runs. */
static void hear_inputs(heard *h)
{
    const xph_step_args *a = &h->step->args;
    if (h->step->op == XPH_OP_CONV) hear(&h->in[0], a->conv.x, a->conv.ldx, a->conv.width);
    if (h->step->op == XPH_OP_NORM) hear(&h->in[0], a->norm.x, a->norm.ldx, a->norm.width);
    if (h->step->op == XPH_OP_SCAN) hear_scan(h, &a->scan);
    if (h->step->op == XPH_OP_RNN) hear(&h->in[0], a->rnn.gx, a->rnn.ldgx, gates_of(&a->rnn) * a->rnn.hidden);
    if (h->step->op == XPH_OP_ATTENTION)
        hear(&h->in[0], a->attention.qkv, a->attention.ldqkv, 3 * a->attention.heads * a->attention.dim);
}

/* And after. */
static void hear_result(heard *h)
{
    const xph_step_args *a = &h->step->args;
    if (h->step->op == XPH_OP_CONV) hear(&h->y, a->conv.y, a->conv.ldy, a->conv.width);
    if (h->step->op == XPH_OP_NORM) hear(&h->y, a->norm.y, a->norm.ldy, a->norm.width);
    if (h->step->op == XPH_OP_SCAN) hear(&h->y, a->scan.y, a->scan.ldy, a->scan.width);
    if (h->step->op == XPH_OP_RNN) hear(&h->y, a->rnn.y, a->rnn.ldy, a->rnn.hidden);
    if (h->step->op == XPH_OP_ATTENTION)
        hear(&h->y, a->attention.y, a->attention.ldy, a->attention.heads * a->attention.dim);
}

static bool is_asked(xph_op op)
{
    return op == XPH_OP_CONV || op == XPH_OP_SCAN || op == XPH_OP_RNN || op == XPH_OP_ATTENTION ||
           op == XPH_OP_NORM;
}

/* NULL: the step is of the heads, or no such operation. */
static heard *heard_of(const void *args)
{
    for (int i = 0; i < played.count; i++)
        if (&played.of[i].step->args == args) return &played.of[i];
    for (const xph_step *step = played.net->blocks.first; step; step = step->next) {
        if (&step->args != args || !is_asked(step->op)) continue;
        assert_true(played.count < STEPS);
        played.of[played.count].step = step;
        return &played.of[played.count++];
    }
    return NULL;
}

static exphil_status run_and_hear(xph_stream *stream, const xph_kernel *kernel, const void *args)
{
    heard *h = heard_of(args);
    if (h) hear_inputs(h);
    exphil_status status = played.real->run(stream, kernel, args);
    if (h) hear_result(h);
    return status;
}

/* The steps that were heard live as long as the session. */
static exphil_session *play(exphil_model *model)
{
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    int32_t actions[STREAMS * PLAY_HEADS];
    config.streams = STREAMS;
    exphil_session *session = play_session(model, &config);
    play_frames *frames = play_frames_make(model, STREAMS, FRAMES, 3);
    memset(&played, 0, sizeof played);
    played.net = session->net;
    played.real = session->net->backend;
    played.spy = *played.real;
    played.spy.run = run_and_hear;
    session->net->backend = &played.spy;
    for (played.frame = 0; played.frame < FRAMES; played.frame++) {
        if (played.frame == ANEW) assert_ok(exphil_session_reset(session, BEGINS));
        play_step(session, frames, played.frame, false, actions);
    }
    session->net->backend = played.real;
    play_frames_free(frames);
    return session;
}

/* ---- the same by operations --------------------------------------------------------------------------------------------- */

/* Frames [first, FIRST) or [FIRST, FRAMES) of a call, whose state is kept in memory of its own. */
typedef struct call {
    exphil_ops *ops;
    const exphil_model *model;
    const heard *h;
    int64_t first, frames;
    float *y, *state[2];
    uint8_t *reset;
    int norms; /* before this one */
} call;

static exphil_input given(const call *c, int i)
{
    const rows *r = &c->h->in[i];
    return (exphil_input){.data = r->x ? r->x + c->first * r->width : NULL,
                          .batch_stride = FRAMES * r->width};
}

static exphil_output wanted(const call *c)
{
    return (exphil_output){.data = c->y + c->first * c->h->y.width, .batch_stride = FRAMES * c->h->y.width};
}

static exphil_input begins(const call *c)
{
    return (exphil_input){.data = c->reset + c->first, .batch_stride = FRAMES};
}

static exphil_input tensor(const call *c, const char *name)
{
    char whole[128];
    exphil_tensor_info info = EXPHIL_TENSOR_INFO_INIT;
    snprintf(whole, sizeof whole, "blocks.0.%s", name);
    for (int64_t i = 0; exphil_model_tensor_info(c->model, i, &info, NULL) == EXPHIL_OK; i++) {
        if (strcmp(info.name, whole) != 0) continue;
        void *data = case_alloc(info.size_bytes);
        assert_ok(exphil_model_tensor_get(c->model, whole, data, info.size_bytes, NULL));
        return (exphil_input){.data = data};
    }
    fail_msg("no tensor %s", whole);
    return (exphil_input){0};
}

static exphil_input into(const call *c, int i)
{
    return (exphil_input){.data = c->state[i]};
}

static exphil_output out_of(const call *c, int i)
{
    return (exphil_output){.data = c->state[i]};
}

static void run(const call *c, const void *args)
{
    exphil_op_info info = EXPHIL_OP_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_ops_query(c->ops, args, &info, &error) < 0) fail_msg("%s", error.message);
    void *workspace = case_alloc(info.workspace_bytes);
    if (exphil_ops_run(c->ops, args, workspace, info.workspace_bytes, NULL, &error) < 0)
        fail_msg("%s", error.message);
}

#define SHAPED(TYPE, INIT)                                                                                   \
  exphil_##TYPE##_args args = INIT;                                                                          \
  args.batch = STREAMS, args.frames = c->frames;                                                             \
  args.y = wanted(c)

static void run_norm(const call *c)
{
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    SHAPED(norm, EXPHIL_NORM_ARGS_INIT);
    assert_ok(exphil_model_query(c->model, &info, NULL));
    args.width = c->h->y.width, args.x = given(c, 0), args.epsilon = info.norm_epsilon;
    args.silu = c->norms > 0; /* the one inside of mlp */
    args.gain = tensor(c, c->norms ? "up_norm.weight" : "norm.weight");
    args.shift = tensor(c, c->norms ? "up_norm.bias" : "norm.bias");
    run(c, &args);
}

static void run_conv(const call *c)
{
    SHAPED(conv, EXPHIL_CONV_ARGS_INIT);
    args.width = c->h->y.width, args.taps = c->h->step->args.conv.taps;
    args.x = given(c, 0), args.weight = tensor(c, "conv.weight"), args.bias = tensor(c, "conv.bias");
    args.reset = begins(c), args.state_in = into(c, 0), args.state_out = out_of(c, 0);
    run(c, &args);
}

/* -1, -2, ... for every channel. */
static exphil_input fixed_rates(int64_t width, int64_t states)
{
    float *a = case_alloc((size_t)(width * states) * sizeof *a);
    for (int64_t i = 0; i < width * states; i++) a[i] = -(float)(i % states + 1);
    return (exphil_input){.data = a};
}

static void run_scan(const call *c)
{
    const xph_scan_args *scan = &c->h->step->args.scan;
    SHAPED(scan, EXPHIL_SCAN_ARGS_INIT);
    args.width = c->h->y.width, args.states = c->h->in[2].width;
    args.u = given(c, 0), args.delta = given(c, 1), args.b = given(c, 2), args.c = given(c, 3),
    args.z = given(c, 4);
    if (scan->fixed) {
        args.a = fixed_rates(args.width, args.states), args.delta_plain = scan->plain_delta;
    } else {
        args.a_log = tensor(c, "A_log"), args.skip = tensor(c, "D");
    }
    args.reset = begins(c), args.state_in = into(c, 0), args.state_out = out_of(c, 0);
    run(c, &args);
}

static void run_rnn(const call *c)
{
    const bool lstm = gates_of(&c->h->step->args.rnn) == 4;
    SHAPED(rnn, EXPHIL_RNN_ARGS_INIT);
    args.op = lstm ? EXPHIL_OP_LSTM : EXPHIL_OP_GRU;
    args.hidden = c->h->y.width, args.gates = given(c, 0);
    args.weight = tensor(c, "weight_hh"), args.bias = tensor(c, "bias_hh"), args.reset = begins(c);
    args.h_in = into(c, 0), args.h_out = out_of(c, 0);
    if (lstm) args.c_in = into(c, 1), args.c_out = out_of(c, 1);
    run(c, &args);
}

static void run_attention(const call *c)
{
    const xph_attention_args *a = &c->h->step->args.attention;
    const int64_t span = c->h->y.width;
    SHAPED(attention, EXPHIL_ATTENTION_ARGS_INIT);
    args.heads = a->heads, args.dim = a->dim, args.window = a->window;
    args.q = args.k = args.v = given(c, 0);
    args.q.frame_stride = args.k.frame_stride = args.v.frame_stride = 3 * span;
    args.k.data = (const float *)args.q.data + span, args.v.data = (const float *)args.q.data + 2 * span;
    args.bias = tensor(c, "relative_bias"), args.reset = begins(c);
    args.state_in = into(c, 0), args.state_out = out_of(c, 0);
    run(c, &args);
}

static void run_step(const call *c)
{
    const xph_op op = c->h->step->op;
    if (op == XPH_OP_NORM) run_norm(c);
    if (op == XPH_OP_CONV) run_conv(c);
    if (op == XPH_OP_SCAN) run_scan(c);
    if (op == XPH_OP_RNN) run_rnn(c);
    if (op == XPH_OP_ATTENTION) run_attention(c);
}

/* Zeros, more than any state here has. */
static void *zeros(size_t bytes)
{
    return memset(case_alloc(bytes), 0, bytes);
}

static void check(call c)
{
    const size_t bytes = (size_t)(STREAMS * FRAMES * c.h->y.width) * sizeof *c.y;
    c.y = case_alloc(bytes);
    for (int i = 0; i < 2; i++) c.state[i] = zeros(1 << 16);
    c.reset = zeros(STREAMS * FRAMES);
    c.reset[BEGINS * FRAMES + ANEW] = 1;
    c.frames = FIRST;
    run_step(&c);
    c.first = FIRST;
    c.frames = FRAMES - FIRST;
    run_step(&c);
    assert_memory_equal(c.y, c.h->y.x, bytes);
}

static void check_block(exphil_context *context, exphil_ops *ops, const char *block, int steps)
{
    exphil_model_config config = model_case_config(block, EXPHIL_TYPE_F32);
    config.norm_epsilon = 1e-3;
    exphil_model *model = play_model(context, &config, 0.2);
    call c = {.ops = ops, .model = model};
    exphil_session *session = play(model);
    assert_int_equal(played.count, steps);
    for (int i = 0; i < played.count; i++) {
        c.h = &played.of[i];
        check(c);
        c.norms += c.h->step->op == XPH_OP_NORM;
    }
    exphil_session_destroy(session);
    exphil_model_destroy(model);
    case_release();
}

static void a_sessions_frames_have_the_bits_of_operations(void **state)
{
    static const struct {
        const char *block;
        int steps;
    } blocks[] = {{"mamba", 3},    {"mamba_exphil", 3}, {"lstm", 2}, {"gru", 2},
                  {"gru_only", 1}, {"attention", 2},    {"mlp", 2}};
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_ops *ops = ops_make(context, 0);
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        check_block(context, ops, blocks[i].block, blocks[i].steps);
    exphil_ops_destroy(ops);
    exphil_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_sessions_frames_have_the_bits_of_operations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
