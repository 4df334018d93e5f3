/* The old program, kernels alone: each operation forward and backward on arrays of its own. */
#include "old.h"

#if EXPHIL_VERSION >= 200

enum {
    BATCH = 2,
    FRAMES = 6,
    WIDTH = 4,
    STATES = 3,
    TAPS = 3,
    WINDOW = 4,
    HEADS = 2,
    DIM = 4,
    HIDDEN = 5,
    MOST = 4096
};
enum { COLUMNS = HEADS * DIM, RING = 2 * WINDOW * COLUMNS + 2 };

static exphil_ops *kernels;
static float pool[MOST];
static size_t used;

/* The next numbers of the pool, in -1..1 or, for what is written, 0. */
static float *take(size_t count, int drawn)
{
    static uint32_t state = 11;
    float *at = pool + used;
    CHECK(used + count <= MOST);
    used += count;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        at[i] = drawn ? (float)(state >> 8) / 8388608.0f - 1.0f : 0.0f;
    }
    return at;
}

static exphil_input in(size_t count)
{
    return (exphil_input){take(count, 1), 0, 0, 0};
}

static exphil_output out(size_t count)
{
    return (exphil_output){take(count, 0), 0, 0, 0};
}

static exphil_input again(exphil_output of)
{
    return (exphil_input){of.data, of.batch_stride, of.frame_stride, of.column_stride};
}

static void sum(exphil_output of, size_t count)
{
    digest(of.data, count * sizeof(float));
}

/* saved, saved_bytes: of the struct, or NULL. */
static void run(const void *args, void **saved, size_t *saved_bytes)
{
    exphil_op_info *info = EDGE(exphil_op_info, EXPHIL_OP_INFO_INIT);
    DONE(exphil_ops_query(kernels, args, info, error));
    CHECK(info->kernel && info->copies >= 0);
    digest(&info->copies, sizeof info->copies);
    if (saved && !*saved && info->saved_bytes) {
        *saved = malloc(info->saved_bytes);
        *saved_bytes = info->saved_bytes;
        CHECK(*saved);
    }
    void *workspace = malloc(info->workspace_bytes + 1);
    CHECK(workspace);
    DONE(exphil_ops_run(kernels, args, workspace, info->workspace_bytes, NULL, error));
    free(workspace);
}

static void scan(void)
{
    const size_t row = BATCH * FRAMES * WIDTH, narrow = BATCH * FRAMES * STATES,
                 state = BATCH * WIDTH * STATES;
    exphil_scan_args *a = EDGE(exphil_scan_args, EXPHIL_SCAN_ARGS_INIT);
    used = 0;
    a->batch = BATCH, a->frames = FRAMES, a->width = WIDTH, a->states = STATES;
    a->u = in(row), a->delta = in(row), a->delta_bias = in(WIDTH), a->a_log = in(WIDTH * STATES);
    a->b = in(narrow), a->c = in(narrow), a->skip = in(WIDTH), a->z = in(row);
    a->state_in = in(state), a->state_out = out(state), a->y = out(row);
    run(a, NULL, NULL);
    sum(a->y, row);
    sum(a->state_out, state);
    a->op = EXPHIL_OP_SCAN_GRAD;
    a->dy = in(row), a->dstate_out = in(state);
    a->du = out(row), a->ddelta = out(row), a->ddelta_bias = out(WIDTH), a->da = out(WIDTH * STATES);
    a->db = out(narrow), a->dc = out(narrow), a->dskip = out(WIDTH), a->dz = out(row),
    a->dstate_in = out(state);
    run(a, NULL, NULL);
    sum(a->du, row);
    sum(a->da, WIDTH * STATES);
    sum(a->dstate_in, state);
    digest_end("scan");
}

/* What sees one frame alone is that frame. */
static void attention(void)
{
    const size_t row = BATCH * FRAMES * COLUMNS;
    exphil_attention_args *a = EDGE(exphil_attention_args, EXPHIL_ATTENTION_ARGS_INIT);
    used = 0;
    a->batch = BATCH, a->frames = FRAMES, a->heads = HEADS, a->dim = DIM, a->window = 1;
    a->q = in(row), a->k = in(row), a->v = in(row), a->y = out(row);
    run(a, NULL, NULL);
    CHECK(memcmp(a->y.data, a->v.data, row * sizeof(float)) == 0);
    a->window = WINDOW;
    a->bias = in(HEADS * WINDOW), a->state_out = out(BATCH * RING);
    run(a, &a->saved, &a->saved_bytes);
    CHECK(memcmp(a->y.data, a->v.data, row * sizeof(float)) != 0);
    sum(a->y, row);
    sum(a->state_out, BATCH * RING);
    a->op = EXPHIL_OP_ATTENTION_GRAD;
    a->dy = in(row), a->dq = out(row), a->dk = out(row), a->dv = out(row), a->dbias = out(HEADS * WINDOW);
    run(a, &a->saved, &a->saved_bytes);
    sum(a->dq, row);
    sum(a->dk, row);
    sum(a->dv, row);
    sum(a->dbias, HEADS * WINDOW);
    digest_end("attention");
    free(a->saved);
}

static void recurrent(int32_t op, size_t gates)
{
    const size_t row = BATCH * FRAMES * HIDDEN, state = BATCH * HIDDEN;
    const int lstm = op == EXPHIL_OP_LSTM;
    static unsigned char reset[BATCH * FRAMES] = {[3] = 1};
    exphil_rnn_args *a = EDGE(exphil_rnn_args, EXPHIL_RNN_ARGS_INIT);
    used = 0;
    a->op = op;
    a->batch = BATCH, a->frames = FRAMES, a->hidden = HIDDEN;
    a->gates = in(gates * row), a->weight = in(gates * HIDDEN * HIDDEN), a->bias = in(gates * HIDDEN);
    a->reset.data = reset;
    a->h_in = in(state), a->h_out = out(state), a->y = out(row);
    if (lstm) a->c_in = in(state), a->c_out = out(state);
    run(a, &a->saved, &a->saved_bytes);
    CHECK(memcmp(a->h_out.data, (float *)a->y.data + (FRAMES - 1) * HIDDEN, HIDDEN * sizeof(float)) == 0);
    sum(a->y, row);
    a->op++;
    a->dy = in(row), a->dh_out = in(state), a->dgates = out(gates * row);
    a->dweight = out(gates * HIDDEN * HIDDEN), a->dbias = out(gates * HIDDEN), a->dh_in = out(state);
    if (lstm) a->dc_in = out(state);
    run(a, &a->saved, &a->saved_bytes);
    sum(a->dgates, gates * row);
    sum(a->dweight, gates * HIDDEN * HIDDEN);
    sum(a->dh_in, state);
    digest_end(lstm ? "lstm" : "gru");
    free(a->saved);
}

static void norm(void)
{
    const size_t row = BATCH * FRAMES * WIDTH;
    exphil_norm_args *a = EDGE(exphil_norm_args, EXPHIL_NORM_ARGS_INIT);
    used = 0;
    a->batch = BATCH, a->frames = FRAMES, a->width = WIDTH, a->silu = 1;
    a->x = in(row), a->gain = in(WIDTH), a->shift = in(WIDTH), a->y = out(row);
    run(a, &a->saved, &a->saved_bytes);
    sum(a->y, row);
    a->op = EXPHIL_OP_NORM_GRAD;
    a->dy = in(row), a->dx = out(row), a->dgain = out(WIDTH), a->dshift = out(WIDTH);
    run(a, &a->saved, &a->saved_bytes);
    sum(a->dx, row);
    sum(a->dgain, WIDTH);
    sum(a->dshift, WIDTH);
    digest_end("norm");
    free(a->saved);
}

/* Frames one after the other, with the state handed on, are what one call gives. */
static void conv(void)
{
    const size_t row = FRAMES * WIDTH, state = (TAPS - 1) * WIDTH;
    exphil_conv_args *a = EDGE(exphil_conv_args, EXPHIL_CONV_ARGS_INIT), *step;
    used = 0;
    a->batch = 1, a->frames = FRAMES, a->width = WIDTH, a->taps = TAPS;
    a->x = in(row), a->weight = in(WIDTH * TAPS), a->bias = in(WIDTH), a->y = out(row);
    run(a, NULL, NULL);
    step = EDGE_OF(*a);
    step->frames = 1;
    step->state_out = out(state), step->state_in = again(step->state_out), step->y = out(WIDTH);
    for (size_t t = 0; t < FRAMES; t++) {
        run(step, NULL, NULL);
        CHECK(memcmp(step->y.data, (float *)a->y.data + t * WIDTH, WIDTH * sizeof(float)) == 0);
        step->x.data = (const float *)step->x.data + WIDTH;
    }
    sum(a->y, row);
    a->op = EXPHIL_OP_CONV_GRAD;
    a->dy = in(row), a->dx = out(row), a->dweight = out(WIDTH * TAPS), a->dbias = out(WIDTH);
    run(a, NULL, NULL);
    sum(a->dx, row);
    sum(a->dweight, WIDTH * TAPS);
    digest_end("conv");
}

static void adamw(void)
{
    exphil_adamw_args *a = EDGE(exphil_adamw_args, EXPHIL_ADAMW_ARGS_INIT);
    used = 0;
    a->count = WIDTH, a->step = 1, a->rate = 0.5;
    a->p = out(WIDTH), a->m = out(WIDTH), a->v = out(WIDTH), a->grad = in(WIDTH);
    a->average = out(WIDTH), a->average_decay = 0.5;
    run(a, NULL, NULL);
    for (int i = 0; i < WIDTH; i++) { /* the first step goes as far as the rate, whatever the gradient */
        float p = ((float *)a->p.data)[i], grad = ((const float *)a->grad.data)[i];
        CHECK(grad > 0 ? p < -0.49f && p > -0.51f : p > 0.49f && p < 0.51f);
    }
    sum(a->p, WIDTH);
    sum(a->average, WIDTH);
    digest_end("adamw");
}

void ops(exphil_context *context)
{
    exphil_ops_config *config = EDGE(exphil_ops_config, EXPHIL_OPS_CONFIG_INIT);
    exphil_op_info *info = EDGE(exphil_op_info, EXPHIL_OP_INFO_INIT);
    exphil_scan_args *none = EDGE(exphil_scan_args, EXPHIL_SCAN_ARGS_INIT);
    config->threads = 1;
    DONE(exphil_ops_create(context, config, &kernels, error));
    scan();
    attention();
    recurrent(EXPHIL_OP_LSTM, 4);
    recurrent(EXPHIL_OP_GRU, 3);
    norm();
    conv();
    adamw();
    CHECK(exphil_ops_query(kernels, none, info, error) == EXPHIL_E_INVALID);
    none->op = 1000;
    CHECK(exphil_ops_query(kernels, none, info, error) == EXPHIL_E_UNSUPPORTED);
    CHECK(strcmp(exphil_op_name(EXPHIL_OP_ADAMW), "adamw") == 0 && !exphil_op_name(1000));
    exphil_ops_destroy(kernels);
}

#else
typedef int nothing_before_0_2;
#endif
