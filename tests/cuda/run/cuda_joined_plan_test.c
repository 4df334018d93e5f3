/* What a step in one launch does not do (cuda/joined_plan.cu): operations listed by hand, of which one thing is changed at a time,
 * at each bound and one beyond it. Nothing is launched, so addresses are made up. */
#include "emulated.h"

#include "device/device.h"

#include <string.h>

enum {
    WIDTH = 48,
    STATES = 4,
    TAPS = 4,
    HEADS = 2,
    DIM = 24,
    WINDOW = 8,
    TRUNK = 40,
    LOGITS = 12,
    MOST_IDS = 40,
    SPAN = HEADS * DIM,
    LD_STATE = 4096
};
enum { EMBED, LINEAR, NORM, CONV, SUM, SCAN, RNN, ATTEND, RELU, COPY, TRUNK_OF, BASE, SAMPLE, CALLS };

/* A net of one block of each kind. */
typedef struct net {
    xph_embed_args embed;
    xph_linear_args linear, trunk;
    xph_norm_args norm;
    xph_conv_args conv;
    xph_axpby_args sum;
    xph_scan_args scan;
    xph_rnn_args rnn;
    xph_attention_args attention;
    xph_activate_args relu;
    xph_copy_args copy;
    xph_heads_args base;
    xph_sample_args sample;
    xph_embed_table tables[MOST_IDS];
    xph_head head[20];
    xph_sample_head how[20];
    xph_joined_op calls[CALLS + 40];
    xph_download results[3]; /* the last: in one test */
    int64_t count;
} net;

/* Places of 16 MB each, of numbers that are never looked at. */
static void *place(int i)
{
    return (void *)((uintptr_t)(i + 1) << 24);
}
enum {
    IN = 1,
    ROW,
    HIDDEN,
    NORMED,
    TURNED,
    SUMMED,
    SCANNED,
    GATES,
    UNITS,
    QKV,
    SEEN,
    CUT,
    COPIED,
    HEAD,
    START,
    GIVEN,
    DRAWN,
    WEIGHTS,
    STATE,
    NEXT,
    RESET
};

static const void *state_at(int64_t at)
{
    return (const float *)place(STATE) + at;
}
static void *next_at(int64_t at)
{
    return (float *)place(NEXT) + at;
}

/* Floats and ids, and a product of them that all others read. */
static void make_inputs(net *n, int64_t rows)
{
    xph_embed_args *e = &n->embed;
    xph_linear_args *l = &n->linear;
    for (int i = 0; i < MOST_IDS; i++)
        n->tables[i] = (xph_embed_table){.table = place(WEIGHTS), .entries = 8, .width = i ? 2 : WIDTH - 30};
    e->rows = rows, e->floats = 30, e->ids = 1;
    e->x = place(IN), e->ldx = 30, e->id = place(IN), e->ldid = 1;
    e->tables = n->tables, e->head = n->head;
    e->y = place(ROW), e->ldy = WIDTH;
    l->rows = rows, l->in = WIDTH, l->out = 4 * WIDTH;
    l->x = e->y, l->ldx = e->ldy, l->w = place(WEIGHTS);
    l->y = place(HIDDEN), l->ldy = 4 * WIDTH;
}

static void make_channels(net *n, int64_t rows)
{
    xph_norm_args *m = &n->norm;
    xph_conv_args *c = &n->conv;
    xph_scan_args *s = &n->scan;
    m->rows = rows, m->width = WIDTH, m->epsilon = 1e-5;
    m->x = place(HIDDEN), m->ldx = 4 * WIDTH, m->gain = m->shift = place(WEIGHTS);
    m->y = place(NORMED), m->ldy = WIDTH;
    c->batch = rows, c->time = 1, c->width = WIDTH, c->taps = TAPS;
    c->x = m->y, c->ldx = WIDTH, c->w = c->bias = place(WEIGHTS);
    c->state_in = state_at(0), c->state_out = next_at(0), c->ld_state = LD_STATE;
    c->y = place(TURNED), c->ldy = WIDTH;
    n->sum = (xph_axpby_args){
        .count = rows * WIDTH, .x = c->y, .y = place(SUMMED), .a = 1.0, .b = 1.0, .from = m->y};
    s->batch = rows, s->time = 1, s->width = WIDTH, s->states = STATES;
    s->x = n->sum.y, s->ldx = WIDTH, s->dt = c->y, s->lddt = WIDTH, s->a_log = place(WEIGHTS);
    s->b = s->c = m->y, s->ldb = s->ldc = WIDTH;
    s->state_in = state_at(512), s->state_out = next_at(512), s->ld_state = LD_STATE;
    s->y = place(SCANNED), s->ldy = WIDTH;
}

static void make_sequences(net *n, int64_t rows)
{
    xph_rnn_args *r = &n->rnn;
    xph_attention_args *a = &n->attention;
    r->kind = XPH_RNN_LSTM, r->batch = rows, r->time = 1, r->hidden = WIDTH;
    r->gx = place(HIDDEN), r->ldgx = 4 * WIDTH, r->w = r->bias = place(WEIGHTS);
    r->state_in = state_at(1024), r->state_out = next_at(1024), r->ld_state = LD_STATE;
    r->y = place(UNITS), r->ldy = WIDTH;
    a->batch = rows, a->time = 1, a->heads = HEADS, a->dim = DIM, a->window = WINDOW;
    a->qkv = place(HIDDEN), a->ldqkv = 4 * WIDTH, a->bias = place(WEIGHTS);
    a->state_in = state_at(2048), a->state_out = next_at(2048), a->ld_state = LD_STATE;
    a->y = place(SEEN), a->ldy = SPAN;
}

static void make_ends(net *n, int64_t rows)
{
    xph_linear_args *t = &n->trunk;
    xph_heads_args *b = &n->base, *h = &n->sample.heads;
    n->head[0] = (xph_head){EXPHIL_BERNOULLI, 8, 0};
    n->head[1] = (xph_head){EXPHIL_CATEGORICAL, 4, 8};
    n->relu = (xph_activate_args){
        .kind = XPH_ACTIVATE_RELU, .count = rows * SPAN, .x = place(SEEN), .y = place(CUT)};
    n->copy = (xph_copy_args){place(COPIED), place(CUT), (size_t)(rows * SPAN) * sizeof(float)};
    t->rows = rows, t->in = WIDTH, t->out = TRUNK;
    t->x = n->copy.to, t->ldx = SPAN, t->w = place(WEIGHTS), t->residual = place(UNITS), t->ldr = WIDTH;
    t->y = place(HEAD), t->ldy = TRUNK;
    b->rows = rows, b->width = TRUNK, b->heads = 2, b->logits = LOGITS, b->head = n->head;
    b->z = t->y, b->ldz = TRUNK, b->v = place(WEIGHTS), b->y = place(START), b->ldy = LOGITS;
    *h = *b;
    h->base = b->y, h->ldbase = LOGITS, h->y = place(GIVEN);
    n->sample.how = n->how, n->sample.noise = place(IN), n->sample.ldn = LOGITS;
    n->sample.actions = place(DRAWN), n->sample.lda = 2;
    n->results[0] = (xph_download){place(RESET + 1), h->y, (size_t)(rows * LOGITS) * sizeof(float)};
    n->results[1] = (xph_download){place(RESET + 2), n->sample.actions, (size_t)(rows * 2) * sizeof(int32_t)};
}

/* `rows` streams. */
static void net_make(net *n, int64_t rows)
{
    memset(n, 0, sizeof *n);
    make_inputs(n, rows);
    make_channels(n, rows);
    make_sequences(n, rows);
    make_ends(n, rows);
    const xph_joined_op calls[CALLS] = {
        [EMBED] = {XPH_OP_EMBED, 0, &n->embed},     [LINEAR] = {XPH_OP_LINEAR, 0, &n->linear},
        [NORM] = {XPH_OP_NORM, 0, &n->norm},        [CONV] = {XPH_OP_CONV, 0, &n->conv},
        [SUM] = {XPH_OP_AXPBY, 0, &n->sum},         [SCAN] = {XPH_OP_SCAN, 0, &n->scan},
        [RNN] = {XPH_OP_RNN, 0, &n->rnn},           [ATTEND] = {XPH_OP_ATTENTION, 0, &n->attention},
        [RELU] = {XPH_OP_ACTIVATE, 0, &n->relu},    [COPY] = {XPH_OP_COUNT, 0, &n->copy},
        [TRUNK_OF] = {XPH_OP_LINEAR, 0, &n->trunk}, [BASE] = {XPH_OP_HEADS, 0, &n->base},
        [SAMPLE] = {XPH_OP_SAMPLE, 0, &n->sample},
    };
    memcpy(n->calls, calls, sizeof calls);
    n->count = CALLS;
}

/* ---- one thing at a time ---- */

typedef struct change {
    const char *what;
    void (*make)(net *n);
    bool joins; /* at a bound, not beyond it */
} change;

static void as_it_is(net *n) {}

static void reset_of_conv(net *n)
{
    n->conv.reset = place(RESET);
}
static void reset_of_scan(net *n)
{
    n->scan.reset = place(RESET);
}
static void reset_of_rnn(net *n)
{
    n->rnn.reset = place(RESET);
}
static void reset_of_attention(net *n)
{
    n->attention.reset = place(RESET);
}
static void frames_of_conv(net *n)
{
    n->conv.time = 2;
}
static void frames_of_scan(net *n)
{
    n->scan.time = 2;
}
static void frames_of_rnn(net *n)
{
    n->rnn.time = 2;
}
static void frames_of_attention(net *n)
{
    n->attention.time = 2;
}
/* A block would read what another has written. */
static void in_place(net *n)
{
    n->conv.state_out = (void *)(uintptr_t)n->conv.state_in;
    n->scan.state_out = (void *)(uintptr_t)n->scan.state_in;
    n->rnn.state_out = (void *)(uintptr_t)n->rnn.state_in;
    n->attention.state_out = (void *)(uintptr_t)n->attention.state_in;
}
static void state_elsewhere(net *n)
{
    n->rnn.state_out = next_at(1032);
}
static void state_of_other_rows(net *n)
{
    n->scan.ld_state = 2048;
}
static void no_state(net *n)
{
    n->scan.state_in = NULL;
}
static void saved_of_norm(net *n)
{
    n->norm.saved = place(RESET);
}
static void saved_of_rnn(net *n)
{
    n->rnn.saved = place(RESET);
}
static void saved_of_attention(net *n)
{
    n->attention.saved = place(RESET);
}
static void narrow_weights(net *n)
{
    n->linear.weights = XPH_BF16;
}
static void narrow_weights_of_rnn(net *n)
{
    n->rnn.weights = XPH_I8;
}
static void doubles(net *n)
{
    n->norm.type = XPH_F64;
}
static void narrow_rows(net *n)
{
    n->scan.type = XPH_BF16;
}
static void plain_steps(net *n)
{
    n->scan.plain_delta = 1;
}
static void plain_rates(net *n)
{
    n->scan.plain_a = 1;
}
static void another_cell(net *n)
{
    n->rnn.kind = 7;
}
static void weighted_sum(net *n)
{
    n->sum.a = 0.5;
}
static void negative_sum(net *n)
{
    n->sum.b = -1.0;
}
static void sum_in_place(net *n)
{
    n->sum.from = NULL;
}
static void heads_in_a_chain(net *n)
{
    n->base.chained = 1;
}
static void heads_that_see_actions(net *n)
{
    n->base.e = place(WEIGHTS);
}
static void drawn_before(net *n)
{
    n->sample.drawn = 1;
}
static void no_draw(net *n)
{
    n->count--;
}
static void no_beginning(net *n)
{
    n->calls[EMBED] = n->calls[NORM];
}
static void not_an_operation_of_play(net *n)
{
    n->calls[RELU].op = XPH_OP_LOSS;
}
static void other_rows(net *n)
{
    n->norm.rows++;
}
static void longer_than_it_was_made(net *n)
{
    n->trunk.in = n->relu.count + 1;
}
static void nobody_made_it(net *n)
{
    n->norm.x = place(RESET);
}
static void rows_of_another_distance(net *n)
{
    net_make(n, 2);
    n->norm.ldx = WIDTH;
}
static void copy_of_a_part(net *n)
{
    n->copy.from = (const float *)n->copy.from + 16;
    n->copy.bytes -= 16 * sizeof(float);
    n->trunk.in = n->trunk.ldx -= 16;
}
static void copy_of_the_first(net *n)
{
    n->copy.bytes -= 16 * sizeof(float);
    n->trunk.in = n->trunk.ldx -= 16;
}
static void rows_most(net *n)
{
    net_make(n, 16);
}
static void rows_more(net *n)
{
    net_make(n, 17);
}
static void states_most(net *n)
{
    n->scan.states = 32;
}
static void states_more(net *n)
{
    n->scan.states = 33;
}
static void taps_most(net *n)
{
    n->conv.taps = 16;
}
static void taps_more(net *n)
{
    n->conv.taps = 17;
}
static void heads_of(net *n, int64_t dim)
{
    n->linear.out = n->linear.ldy = n->norm.ldx = n->attention.ldqkv = n->rnn.ldgx = 6 * dim;
    n->attention.dim = dim;
    n->attention.ldy = HEADS * dim;
    n->relu.count = HEADS * dim;
    n->copy.bytes = (size_t)(HEADS * dim) * sizeof(float);
    n->trunk.ldx = HEADS * dim;
}
static void dim_most(net *n)
{
    heads_of(n, 128);
}
static void dim_more(net *n)
{
    heads_of(n, 129);
}
static void norm_of(net *n, int64_t width)
{
    n->linear.out = n->linear.ldy = n->norm.ldx = n->attention.ldqkv = n->rnn.ldgx = width;
    n->norm.width = n->norm.ldy = n->conv.ldx = n->scan.ldb = n->scan.ldc = width;
    n->sum.from = n->sum.x;
}
static void norm_most(net *n)
{
    norm_of(n, 1024);
}
static void norm_more(net *n)
{
    norm_of(n, 1025);
}
static void trunk_of(net *n, int64_t width)
{
    n->trunk.out = n->trunk.ldy = n->base.width = n->base.ldz = n->sample.heads.width = n->sample.heads.ldz =
        width;
    n->trunk.residual = NULL;
}
static void trunk_most(net *n)
{
    trunk_of(n, 1024);
}
static void trunk_more(net *n)
{
    trunk_of(n, 1025);
}
static void ids_of(net *n, int64_t ids)
{
    n->embed.ids = ids;
    n->linear.in = n->linear.ldx = n->embed.ldy = WIDTH + 2 * (ids - 1);
}
static void ids_most(net *n)
{
    ids_of(n, 32);
}
static void ids_more(net *n)
{
    ids_of(n, 33);
}
/* Each of one bit. */
static void draws_of(net *n, int32_t heads)
{
    for (int32_t h = 0; h < heads; h++) n->head[h] = (xph_head){EXPHIL_BERNOULLI, 1, h};
    n->base.heads = n->sample.heads.heads = n->sample.lda = heads;
    n->base.logits = n->base.ldy = n->sample.heads.logits = n->sample.heads.ldy = n->sample.ldn = heads;
    n->sample.heads.ldbase = heads;
}
static void draws_most(net *n)
{
    draws_of(n, 16);
}
static void draws_more(net *n)
{
    draws_of(n, 17);
}
/* A product the size of what is left of the 51,200 floats: the vectors of the net take the rest. */
static void vectors_of(net *n, int64_t floats)
{
    n->linear.out = n->linear.ldy = n->norm.ldx = n->attention.ldqkv = n->rnn.ldgx = floats;
}
static void vectors_some(net *n)
{
    vectors_of(n, 48000);
}
static void vectors_more(net *n)
{
    vectors_of(n, 51200);
}
/* Of 35 operations the net has 13 steps less the copy, and attention is two. */
static void operations_of(net *n, int64_t more)
{
    const xph_joined_op draw = n->calls[SAMPLE];
    for (int64_t i = 0; i < more; i++) n->calls[SAMPLE + i] = (xph_joined_op){XPH_OP_ACTIVATE, 0, &n->relu};
    n->calls[SAMPLE + more] = draw;
    n->count = CALLS + more;
}
static void operations_most(net *n)
{
    operations_of(n, 22);
}
static void operations_more(net *n)
{
    operations_of(n, 23);
}

static const change changes[] = {
    {"as it is", as_it_is, true},
    {"a reset of a convolution", reset_of_conv, false},
    {"a reset of a scan", reset_of_scan, false},
    {"a reset of an LSTM", reset_of_rnn, false},
    {"a reset of attention", reset_of_attention, false},
    {"frames of a convolution", frames_of_conv, false},
    {"frames of a scan", frames_of_scan, false},
    {"frames of an LSTM", frames_of_rnn, false},
    {"frames of attention", frames_of_attention, false},
    {"states in place", in_place, false},
    {"a state at another distance", state_elsewhere, false},
    {"a state of other rows", state_of_other_rows, false},
    {"no state", no_state, false},
    {"a norm that saves", saved_of_norm, false},
    {"an LSTM that saves", saved_of_rnn, false},
    {"attention that saves", saved_of_attention, false},
    {"weights in 16 bits", narrow_weights, false},
    {"weights of an LSTM in 8 bits", narrow_weights_of_rnn, false},
    {"doubles", doubles, false},
    {"rows in 16 bits", narrow_rows, false},
    {"steps without softplus", plain_steps, false},
    {"rates as they are", plain_rates, false},
    {"another cell", another_cell, false},
    {"x / 2 + y", weighted_sum, false},
    {"x - y", negative_sum, false},
    {"a sum in place", sum_in_place, false},
    {"heads in a chain", heads_in_a_chain, false},
    {"heads that see actions", heads_that_see_actions, false},
    {"numbers that were drawn before", drawn_before, false},
    {"no draw", no_draw, false},
    {"no inputs", no_beginning, false},
    {"a loss", not_an_operation_of_play, false},
    {"other rows", other_rows, false},
    {"more than was made", longer_than_it_was_made, false},
    {"what nobody made", nobody_made_it, false},
    {"rows of another distance", rows_of_another_distance, false},
    {"a copy of what stands first", copy_of_the_first, true},
    {"a copy of what stands behind", copy_of_a_part, false},
    {"16 rows", rows_most, true},
    {"17 rows", rows_more, false},
    {"32 states", states_most, true},
    {"33 states", states_more, false},
    {"16 taps", taps_most, true},
    {"17 taps", taps_more, false},
    {"heads of 128", dim_most, true},
    {"heads of 129", dim_more, false},
    {"a norm of 1024", norm_most, true},
    {"a norm of 1025", norm_more, false},
    {"a trunk of 1024", trunk_most, true},
    {"a trunk of 1025", trunk_more, false},
    {"32 ids", ids_most, true},
    {"33 ids", ids_more, false},
    {"16 heads", draws_most, true},
    {"17 heads", draws_more, false},
    {"vectors that fit", vectors_some, true},
    {"vectors of more than 200 KB", vectors_more, false},
    {"35 steps", operations_most, true},
    {"36 steps", operations_more, false},
};

static void what_is_joined(void **state)
{
    exphil_context *context = emulated_context();
    xph_device *device = xph_context_backend(context);
    static net n;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        net_make(&n, 1);
        changes[i].make(&n);
        const bool joins = device->backend->joins(device, n.calls, n.count) != 0;
        if (joins != changes[i].joins) fail_msg("%s: joins is %d", changes[i].what, joins);
    }
    exphil_context_destroy(context);
    emulated_clean();
}

/* ---- what it leaves ---- */

static void nothing_is_left(net *n)
{
    n->results[1].from = place(RESET);
}
/* Only products and the draw write where results go. */
static void a_norm_is_left(net *n)
{
    n->results[1].from = n->norm.y;
}
static void a_copy_is_left(net *n)
{
    n->results[1].from = n->copy.to;
}
/* A result of which the rest is made. */
static void a_norm_is_left_too(net *n)
{
    n->norm.y = (float *)n->trunk.y + n->trunk.ldy;
    n->conv.x = n->sum.from = n->scan.b = n->scan.c = n->norm.y;
    n->results[2] = (xph_download){place(RESET + 3), n->trunk.y, (size_t)(TRUNK + WIDTH) * sizeof(float)};
}

/* Results that the launch does not make are refused before anything runs. */
static void what_is_left(void **state)
{
    static const change left[] = {{"what nobody makes", nothing_is_left, false},
                                  {"what a norm makes", a_norm_is_left, false},
                                  {"what a copy makes", a_copy_is_left, false},
                                  {"what a product and a norm make", a_norm_is_left_too, false}};
    exphil_context *context = emulated_context();
    xph_device *device = xph_context_backend(context);
    xph_stream *stream = NULL;
    static net n;
    assert_int_equal(device->backend->stream_create(device, 0, &stream), EXPHIL_OK);
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        net_make(&n, 1);
        assert_true(device->backend->joins(device, n.calls, n.count));
        left[i].make(&n);
        if (device->backend->run_joined(stream, n.calls, n.count, n.results, n.results[2].bytes ? 3 : 2) !=
            EXPHIL_E_UNSUPPORTED)
            fail_msg("%s is not refused", left[i].what);
    }
    assert_int_equal(emulated_gpu()->count().operations, 0);
    device->backend->stream_destroy(stream);
    exphil_context_destroy(context);
    emulated_clean();
}

/* Before sm_90 there are no clusters, and without room there is none. */
static void where_there_are_no_clusters(void **state)
{
    static net n;
    net_make(&n, 1);
    for (int blocks = 1; blocks <= 2; blocks++) {
        emulated_gpu()->clusters(blocks);
        exphil_context *context = emulated_context();
        xph_device *device = xph_context_backend(context);
        assert_int_equal(device->backend->joins(device, n.calls, n.count) != 0, blocks > 1);
        exphil_context_destroy(context);
    }
    emulated_gpu()->clusters(16);
    emulated_clean();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_joined),
        cmocka_unit_test(what_is_left),
        cmocka_unit_test(where_there_are_no_clusters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
