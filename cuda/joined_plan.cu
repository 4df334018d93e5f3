/* Which steps are joined, and the list of what their launch does (joined.cuh). */
#include "element.cuh"
#include "joined.cuh"

#include <string.h>

namespace
{

constexpr int MOST_VECTORS = 2 * JOINED_STEPS;
constexpr unsigned MOST_BLOCKS = 16;
constexpr int64_t MOST_ROWS = 16, MOST_FLOATS = JOINED_BYTES / 4, FAR = int64_t(1) << 30;

int as_int(int64_t x)
{
    return static_cast<int>(x);
}
/* What an operation has made: width numbers from `first` on, of row 0. */
struct vector {
    const float *first;
    int64_t width, ld;
    int place, maker; /* step that made it */
    bool owned, met;  /* by elements, else every block has all; the blocks met after it was made */
};

struct planner {
    joined_program p = {};
    vector made[MOST_VECTORS];
    int vectors = 0;
    int64_t rows = 0;
    unsigned blocks = 0, wanted = 0; /* of a cluster; as many as its shapes want, where there is room */
    bool fits = true;
    const xph_download *results = nullptr; /* NULL: of a plan without addresses */
    int64_t result_count = 0;
    uint64_t given = 0; /* bits of the results that something makes */

    void refuse_unless(bool good) { fits = fits && good; }

    joined_step *add(joined_kind kind)
    {
        refuse_unless(p.count < JOINED_STEPS);
        if (!fits) return nullptr;
        joined_step *step = &p.step[p.count++];
        step->kind = static_cast<uint8_t>(kind);
        step->meets = p.count == 1; /* nobody writes into the memory of a block that has not begun */
        return step;
    }
    int room(int64_t floats)
    {
        const int64_t first = p.floats, all = first + blocks_of(floats, GRAIN) * GRAIN;
        refuse_unless(floats > 0 && all <= MOST_FLOATS);
        if (!fits) return NOWHERE;
        p.floats = static_cast<int32_t>(all);
        return static_cast<int>(first);
    }
    /* Of the step that was added last. leaves: it also writes it to where a result goes. */
    int write(const void *to, int64_t width, int64_t ld, bool owned, bool leaves = false)
    {
        const int place = room(width);
        refuse_unless(vectors < MOST_VECTORS && to && (leaves || !result_at(to)));
        if (!fits) return NOWHERE;
        made[vectors++] = {static_cast<const float *>(to), width, ld, place, p.count - 1, owned, false};
        return place;
    }
    /* The vector that was made last of those there; else nothing fits. */
    vector *find(const void *from, int64_t width, int64_t ld)
    {
        const float *at = static_cast<const float *>(from);
        vector *found = nullptr;
        for (int i = 0; i < vectors; i++)
            if (at >= made[i].first && at < made[i].first + made[i].width) found = &made[i];
        refuse_unless(found && at + width <= found->first + found->width && (rows == 1 || ld == found->ld));
        return fits ? found : nullptr;
    }
    /* own: a block reads the elements that are its own, in a vector that begins at this one, and in every `period` of it. */
    int read(const void *from, int64_t width, int64_t ld, bool own, int64_t period = 0)
    {
        const int64_t turn = int64_t(GRAIN) * blocks;
        const vector *v = find(from, width, ld);
        if (!v) return NOWHERE;
        const int64_t skipped = static_cast<const float *>(from) - v->first;
        const bool alone = own && skipped % turn == 0 && period % turn == 0;
        if (v->owned && !alone) {
            p.step[v->maker].spreads = 1;
            if (!v->met) meet();
        }
        return v->place + as_int(skipped);
    }
    /* Before the step that was added last. Of what it made before it read, nothing is met. */
    void meet()
    {
        p.step[p.count - 1].meets = 1;
        for (int i = 0; i < vectors; i++) made[i].met = made[i].met || made[i].maker < p.count - 1;
    }
    /* Which result lies there, NULL: none. */
    const xph_download *result_at(const void *at) const
    {
        const uintptr_t here = reinterpret_cast<uintptr_t>(at);
        for (int64_t i = 0; results && i < result_count; i++) {
            const uintptr_t from = reinterpret_cast<uintptr_t>(results[i].from);
            if (here >= from && here < from + results[i].bytes) return &results[i];
        }
        return nullptr;
    }
    /* Where row 0 of it goes. */
    template <class Number> Number *leaving(Number *at)
    {
        const xph_download *result = result_at(at);
        if (!result) return nullptr;
        given |= uint64_t(1) << (result - results);
        const int64_t skipped =
            reinterpret_cast<unsigned char *>(at) - static_cast<const unsigned char *>(result->from);
        return reinterpret_cast<Number *>(static_cast<unsigned char *>(result->to) + skipped);
    }
    int state(const void *in, void *out, int64_t ld)
    {
        refuse_unless(in && out && in != out); /* a block reads what another writes */
        if (!fits) return 0;
        const float *from = static_cast<const float *>(in);
        float *to = static_cast<float *>(out);
        if (!p.state_in) {
            p.state_in = from;
            p.state_out = to;
            p.ld_state = ld;
        }
        const int64_t at = from - p.state_in;
        refuse_unless(at == to - p.state_out && at > -FAR && at < FAR && ld == p.ld_state);
        return static_cast<int>(at);
    }
    /* Every operation has the same rows, one frame of each stream. */
    bool begin(xph_type type, int64_t count)
    {
        if (!rows) rows = count;
        refuse_unless(type == XPH_F32 && count == rows);
        return fits;
    }
};

bool in_fours(const void *at, int64_t ld)
{
    return reinterpret_cast<uintptr_t>(at) % 16 == 0 && ld % 4 == 0;
}

/* ---- operations ---- */

void plan(planner *to, const xph_embed_args &a)
{
    int64_t width = a.floats + a.slots * a.logits;
    to->refuse_unless(a.ids <= JOINED_TABLES && (!a.slots || a.heads <= JOINED_HEADS));
    if (!to->begin(a.type, a.rows) || !to->add(JOINED_EMBED)) return;
    joined_program &p = to->p;
    for (int64_t i = 0; i < a.ids; i++) {
        width += a.tables[i].width;
        p.table[i] = {floats(a.tables[i].table), a.tables[i].width};
    }
    for (int64_t h = 0; a.slots && h < a.heads; h++) p.head[h] = a.head[h];
    p.embed = a;
    p.row_width = as_int(width);
    p.row = to->write(a.y, width, a.ldy, true);
}

/* Gives the place of y; without one it is nobody's but of whoever asked. */
int plan_product(planner *to, const xph_linear_args &a, uint8_t flags)
{
    joined_step *step = to->add(JOINED_LINEAR);
    if (!step) return NOWHERE;
    to->refuse_unless(a.in < FAR && a.out < FAR && a.ldy < FAR && a.ldx < FAR);
    const int x = to->read(a.x, a.in, a.ldx, false);
    const int residual = a.residual ? to->read(a.residual, a.out, a.ldr, true) : NOWHERE;
    float *leave = a.y ? to->leaving(static_cast<float *>(a.y)) : nullptr;
    const int y = a.y ? to->write(a.y, a.out, a.ldy, true, true) : to->room(a.out);
    if (flags || !in_fours(a.w, a.in) || x % 4) step->kind = JOINED_ODD;
    step->flags = flags;
    step->linear = {floats(a.w), floats(a.bias), leave, as_int(a.in), as_int(a.out),
                    x,           residual,       y,     as_int(a.ldy)};
    return y;
}

/* The first reads rows of floats where the host put them: they are fetched like any input. */
void plan(planner *to, const xph_linear_args &a)
{
    to->refuse_unless(!a.weights);
    if (!to->begin(a.type, a.rows)) return;
    if (!to->vectors) {
        xph_embed_args row = {};
        row.rows = a.rows;
        row.floats = a.in;
        row.x = static_cast<const float *>(a.x);
        row.ldx = row.ldy = a.ldx;
        row.y = const_cast<void *>(a.x);
        plan(to, row);
    }
    plan_product(to, a, 0);
}

/* Heads that see no actions are a product. */
void plan(planner *to, const xph_heads_args &a)
{
    to->refuse_unless(!a.chained && !a.e);
    if (!to->begin(a.type, a.rows)) return;
    xph_linear_args product = {};
    product.in = a.width;
    product.out = a.logits;
    product.x = a.z;
    product.ldx = a.ldz;
    product.w = a.v;
    product.bias = a.bias;
    product.residual = a.base;
    product.ldr = a.ldbase;
    product.y = a.y;
    product.ldy = a.ldy;
    plan_product(to, product, JOINED_SILU);
}

void plan(planner *to, const xph_norm_args &a)
{
    to->refuse_unless(!a.saved && a.width <= JOINED_WIDTH);
    if (!to->begin(a.type, a.rows)) return;
    joined_step *step = to->add(JOINED_NORM);
    if (!step) return;
    const int x = to->read(a.x, a.width, a.ldx, false), y = to->write(a.y, a.width, a.ldy, false);
    step->flags = a.act == XPH_ACT_SILU ? JOINED_SILU : 0;
    step->norm = {floats(a.gain), floats(a.shift), static_cast<float>(a.epsilon), as_int(a.width), x, y};
}

void plan(planner *to, const xph_conv_args &a)
{
    to->refuse_unless(a.time == 1 && !a.reset && a.taps <= 16 && a.width < FAR);
    if (!to->begin(a.type, a.batch)) return;
    joined_step *step = to->add(JOINED_CONV);
    if (!step) return;
    const int x = to->read(a.x, a.width, a.ldx, true), y = to->write(a.y, a.width, a.ldy, true);
    step->conv = {floats(a.w),
                  floats(a.bias),
                  to->state(a.state_in, a.state_out, a.ld_state),
                  as_int(a.width),
                  as_int(a.taps),
                  x,
                  y};
}

void plan(planner *to, const xph_scan_args &a)
{
    to->refuse_unless(a.time == 1 && !a.reset && !a.plain_delta && !a.plain_a && a.states >= 1 &&
                      a.states <= 32 && a.width < FAR / 32);
    if (!to->begin(a.type, a.batch)) return;
    const int made = a.step.rows ? plan_product(to, a.step, 0) : NOWHERE;
    joined_step *step = to->add(JOINED_SCAN);
    if (!step) return;
    const int x = to->read(a.x, a.width, a.ldx, true),
              dt = a.step.rows ? made : to->read(a.dt, a.width, a.lddt, true);
    const int b = to->read(a.b, a.states, a.ldb, false), c = to->read(a.c, a.states, a.ldc, false);
    const int z = a.z ? to->read(a.z, a.width, a.ldz, true) : NOWHERE;
    const int y = to->write(a.y, a.width, a.ldy, true);
    step->flags = a.fixed ? JOINED_COUNTS : a.decay ? JOINED_RATES : uint8_t(0);
    step->scan = {floats(a.delta_bias),
                  a.fixed ? nullptr : floats(a.decay ? a.decay : a.a_log),
                  floats(a.skip),
                  to->state(a.state_in, a.state_out, a.ld_state),
                  as_int(a.width),
                  as_int(a.states),
                  x,
                  dt,
                  b,
                  c,
                  z,
                  y};
}

void plan(planner *to, const xph_rnn_args &a)
{
    const bool lstm = a.kind == XPH_RNN_LSTM;
    to->refuse_unless(a.time == 1 && !a.reset && !a.weights && !a.saved && a.hidden < FAR / 4 &&
                      (lstm || a.kind == XPH_RNN_GRU));
    if (!to->begin(a.type, a.batch)) return;
    if (a.input.rows) plan(to, a.input);
    joined_step *step = to->add(JOINED_RNN);
    if (!step) return;
    const int gx = to->read(a.gx, (lstm ? 4 : 3) * a.hidden, a.ldgx, true, a.hidden);
    const int y = to->write(a.y, a.hidden, a.ldy, true),
              state = to->state(a.state_in, a.state_out, a.ld_state);
    if (in_fours(a.w, a.hidden) && in_fours(a.state_in, a.ld_state)) step->flags = JOINED_QUADS;
    step->rnn = {floats(a.w), floats(a.bias), state, as_int(a.hidden), lstm, gx, y};
}

void plan(planner *to, const xph_attention_args &a)
{
    to->refuse_unless(a.time == 1 && !a.reset && !a.saved && a.dim <= WARP * JOINED_COLUMNS &&
                      a.window < FAR / 1024 && a.heads * a.dim < 1024 * 16);
    if (!to->begin(a.type, a.batch)) return;
    joined_step *attend = to->add(JOINED_ATTEND);
    if (!attend) return;
    /* By shapes alone, however many blocks there are: sums have one order. */
    const int64_t splits = a.heads < to->wanted ? to->wanted / a.heads : 1, each = a.dim + 2,
                  span = a.heads * a.dim;
    const int qkv = to->read(a.qkv, 3 * span, a.ldqkv, false);
    const int parts = to->room(a.heads * splits * each), own = to->room(JOINED_WARPS * each);
    attend->spreads = 1;
    joined_step *gather = to->add(JOINED_GATHER);
    if (!gather) return;
    to->meet();
    gather->attention = {floats(a.bias),
                         to->state(a.state_in, a.state_out, a.ld_state),
                         as_int(a.heads),
                         as_int(a.dim),
                         as_int(a.window),
                         as_int(splits),
                         a.lagging,
                         qkv,
                         parts,
                         own,
                         to->write(a.y, span, a.ldy, true)};
    attend->attention = gather->attention;
}

void plan(planner *to, const xph_activate_args &a)
{
    to->refuse_unless(to->rows && a.count % to->rows == 0);
    if (!to->begin(a.type, to->rows)) return;
    joined_step *step = to->add(JOINED_ACTIVATE);
    if (!step) return;
    const int64_t width = a.count / to->rows;
    const int x = to->read(a.x, width, width, true), y = to->write(a.y, width, width, true);
    step->activate = {static_cast<float>(a.low), static_cast<float>(a.high), a.kind, as_int(width), x, y};
}

void plan(planner *to, const xph_axpby_args &a)
{
    to->refuse_unless(to->rows && a.count % to->rows == 0 && a.a == 1.0 && a.b == 1.0 && a.from);
    if (!to->begin(a.type, to->rows)) return;
    joined_step *step = to->add(JOINED_SUM);
    if (!step) return;
    const int64_t width = a.count / to->rows;
    const int x = to->read(a.x, width, width, true), from = to->read(a.from, width, width, true);
    step->sum = {as_int(width), x, from, to->write(a.y, width, width, true)};
}

/* It is the same vector, seen elsewhere: all of it, as far as it goes. */
void plan(planner *to, const xph_copy_args &a)
{
    const int64_t count = static_cast<int64_t>(a.bytes / sizeof(float));
    to->refuse_unless(to->rows && to->vectors < MOST_VECTORS && count % to->rows == 0 &&
                      !to->result_at(a.to));
    if (!to->fits) return;
    const vector *from = to->find(a.from, count / to->rows, count / to->rows);
    if (!from) return;
    to->refuse_unless(a.from == from->first);
    vector copy = *from;
    copy.first = static_cast<const float *>(a.to);
    copy.width = copy.ld = count / to->rows;
    to->made[to->vectors++] = copy;
}

void plan(planner *to, const xph_sample_args &a)
{
    const xph_heads_args &h = a.heads;
    joined_program &p = to->p;
    to->refuse_unless(!a.drawn && h.heads <= JOINED_HEADS && h.width <= JOINED_WIDTH && h.logits < FAR);
    if (!to->begin(h.type, h.rows) || !to->add(JOINED_SAMPLE)) return;
    for (int64_t i = 0; i < h.heads; i++) {
        p.head[i] = h.head[i];
        if (to->results) p.how[i] = a.how[i];
    }
    p.z = to->read(h.z, h.width, h.ldz, false);
    p.base = h.base ? to->read(h.base, h.logits, h.ldbase, false) : NOWHERE;
    p.noise_at = to->room(h.logits);
    p.previous_at = to->room(h.heads);
    p.width = as_int(h.width);
    p.heads = as_int(h.heads);
    p.logits = as_int(h.logits);
    p.v = floats(h.v);
    p.bias = floats(h.bias);
    p.e = floats(h.e);
    p.noise = a.noise;
    p.draw = a.draw;
    p.ld_noise = as_int(a.ldn);
    p.previous = a.previous;
    p.ld_previous = as_int(a.ldp);
    p.actions = to->leaving(a.actions);
    p.ld_actions = as_int(a.lda);
    p.y = to->leaving(static_cast<float *>(h.y));
    p.ld_y = as_int(h.ldy);
    p.draws_quads = in_fours(h.v, h.width);
}

/* ---- all of them ---- */

template <class Args> const Args &as(const xph_joined_op &call)
{
    return *static_cast<const Args *>(call.args);
}

void plan_call(planner *to, const xph_joined_op &call)
{
    switch (call.op) {
    case XPH_OP_EMBED:
        return plan(to, as<xph_embed_args>(call));
    case XPH_OP_LINEAR:
        return plan(to, as<xph_linear_args>(call));
    case XPH_OP_HEADS:
        return plan(to, as<xph_heads_args>(call));
    case XPH_OP_NORM:
        return plan(to, as<xph_norm_args>(call));
    case XPH_OP_CONV:
        return plan(to, as<xph_conv_args>(call));
    case XPH_OP_SCAN:
        return plan(to, as<xph_scan_args>(call));
    case XPH_OP_RNN:
        return plan(to, as<xph_rnn_args>(call));
    case XPH_OP_ATTENTION:
        return plan(to, as<xph_attention_args>(call));
    case XPH_OP_ACTIVATE:
        return plan(to, as<xph_activate_args>(call));
    case XPH_OP_AXPBY:
        return plan(to, as<xph_axpby_args>(call));
    case XPH_OP_SAMPLE:
        return plan(to, as<xph_sample_args>(call));
    case XPH_OP_COUNT:
        return plan(to, as<xph_copy_args>(call));
    default:
        to->fits = false;
    }
}

int64_t width_of(const xph_joined_op &call)
{
    switch (call.op) {
    case XPH_OP_LINEAR:
        return as<xph_linear_args>(call).out;
    case XPH_OP_CONV:
        return as<xph_conv_args>(call).width;
    case XPH_OP_RNN:
        return as<xph_rnn_args>(call).hidden;
    default:
        return 0;
    }
}

/* As many blocks as have something to do in the widest product. */
unsigned blocks_for(const xph_joined_op *calls, int64_t count)
{
    int64_t widest = 0;
    for (int64_t i = 0; i < count; i++) widest = width_of(calls[i]) > widest ? width_of(calls[i]) : widest;
    unsigned blocks = 2;
    while (blocks < MOST_BLOCKS && int64_t(blocks) * GRAIN < widest) blocks *= 2;
    return blocks;
}

/* Begins with what is read from outside, and ends with the draw: who draws is alone then, and the other blocks may end. */
bool plan_all(planner *to, const xph_joined_op *calls, int64_t count, unsigned blocks)
{
    to->blocks = blocks;
    to->wanted = blocks_for(calls, count);
    to->fits = count && (calls[0].op == XPH_OP_EMBED || calls[0].op == XPH_OP_LINEAR) &&
               calls[count - 1].op == XPH_OP_SAMPLE;
    for (int64_t i = 0; to->fits && i < count; i++) plan_call(to, calls[i]);
    to->refuse_unless(to->rows >= 1 && to->rows <= MOST_ROWS);
    if (to->results) to->refuse_unless(to->given + 1 == uint64_t(1) << to->result_count);
    return to->fits;
}

/* In the largest clusters that there is room for. */
unsigned plan_for_device(planner *to, const xph_joined_op *calls, int64_t count, const xph_download *results,
                         int64_t result_count)
{
    *to = planner();
    for (unsigned blocks = blocks_for(calls, count); blocks >= 2; blocks /= 2) {
        *to = planner();
        to->results = results;
        to->result_count = result_count;
        if (!plan_all(to, calls, count, blocks)) return 0;
        while (1u << to->p.turns < blocks) to->p.turns++;
        if (joined_room(blocks, static_cast<size_t>(to->p.floats) * sizeof(float))) return blocks;
    }
    return 0;
}

}  // namespace

bool xph_joined_fits(const xph_joined_op *calls, int64_t count)
{
    planner to;
    return plan_for_device(&to, calls, count, nullptr, 0);
}

int xph_joined_run(const xph_joined_op *calls, int64_t count, const xph_download *results,
                   int64_t result_count, cudaStream_t stream)
{
    static const xph_download none = {};
    planner to;
    if (result_count > 32) return XPH_CUDA_REFUSED;
    const unsigned blocks =
        plan_for_device(&to, calls, count, results ? results : &none, results ? result_count : 0);
    if (blocks) return joined_launch(to.p, blocks, to.rows, stream);
    return to.fits ? int(XPH_CUDA_NO_ROOM) : int(XPH_CUDA_REFUSED);
}
