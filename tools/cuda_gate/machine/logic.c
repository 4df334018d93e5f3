/* Predicates of three values, choices, and what the lanes of a warp tell each other. */
#include "machine.h"

#include <string.h>

typedef struct truth {
    uint32_t value, known;
} truth;

static truth truth_of(const warp *w, const operand *o)
{
    truth t;
    t.value = predicate_read(w, o, &t.known);
    return t;
}

static truth negated(truth t)
{
    return (truth){~t.value, t.known};
}

static truth both(truth a, truth b)
{
    return (truth){a.value & b.value, (a.known & b.known) | (a.known & ~a.value) | (b.known & ~b.value)};
}

static truth either(truth a, truth b)
{
    return negated(both(negated(a), negated(b)));
}

static truth combined(const instruction *i, truth a, truth b)
{
    if (i->flags & OP_XOR) return (truth){a.value ^ b.value, a.known & b.known};
    return i->flags & OP_OR ? either(a, b) : both(a, b);
}

static void write_truth(warp *w, const operand *o, uint32_t lanes, uint32_t sure, truth t)
{
    predicate_write(w, o->number, lanes, t.known & sure, t.value);
}

/* Pd, Pd2, a, b, P in: Pd = (a ? b) op P, Pd2 = !(a ? b) op P. */
static void write_both(warp *w, const instruction *i, uint32_t lanes, uint32_t sure, truth compared)
{
    const truth in = truth_of(w, &i->operands[4]);
    const truth first = combined(i, compared, in), second = combined(i, negated(compared), in);
    write_truth(w, &i->operands[0], lanes, sure, first);
    write_truth(w, &i->operands[1], lanes, sure, second);
}

static void run_isetp(machine *m, warp *w, const instruction *i, uint32_t lanes, uint32_t sure)
{
    uint32_t a[LANES], b[LANES];
    truth low = {0, ALL}, compared = {0, 0};
    compared.known = operand_read(m, w, i, &i->operands[2], a) & operand_read(m, w, i, &i->operands[3], b);
    if (i->flags & OP_EX) low = truth_of(w, &i->operands[5]);
    for (int lane = 0; lane < LANES; lane++) {
        const bool less = i->flags & OP_U32 ? a[lane] < b[lane] : (int32_t)a[lane] < (int32_t)b[lane];
        const bool same = a[lane] == b[lane];
        const int is = same ? EQUAL : less ? LESS : GREATER;
        bool is_true = (i->what & is) != 0;
        if (same && i->flags & OP_EX) {
            is_true = low.value >> lane & 1;
            if (!(low.known >> lane & 1)) compared.known &= ~(1u << lane);
        }
        if (is_true) compared.value |= 1u << lane;
    }
    write_both(w, i, lanes, sure, compared);
}

static float float_of(uint32_t bits, const operand *o)
{
    float x;
    if (o->kind != IMMEDIATE && o->flags & ABSOLUTE) bits &= 0x7fffffffu;
    if (o->kind != IMMEDIATE && o->flags & NEGATIVE) bits ^= 0x80000000u;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void run_fsetp(machine *m, warp *w, const instruction *i, uint32_t lanes, uint32_t sure)
{
    uint32_t a[LANES], b[LANES];
    const operand *x = &i->operands[2], *y = &i->operands[3];
    truth compared = {0, operand_plain(m, w, x, a) & operand_plain(m, w, y, b)};
    for (int lane = 0; lane < LANES; lane++) {
        const float p = float_of(a[lane], x), q = float_of(b[lane], y);
        const int is = p < q ? LESS : p > q ? GREATER : p == q ? EQUAL : UNORDERED;
        if (i->what & is) compared.value |= 1u << lane;
    }
    write_both(w, i, lanes, sure, compared);
}

static uint32_t chosen(uint32_t table, uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t result = 0;
    for (int k = 0; k < 8; k++)
        if (table >> k & 1) result |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
    return result;
}

/* Known where no guess at what is unknown changes it. */
static truth table_of(uint32_t table, const truth in[3])
{
    uint32_t all = ALL, any = 0;
    for (uint32_t guess = 0; guess < 8; guess++) {
        uint32_t x[3];
        for (int k = 0; k < 3; k++) x[k] = (in[k].value & in[k].known) | (guess >> k & 1 ? ~in[k].known : 0);
        const uint32_t result = chosen(table, x[0], x[1], x[2]);
        all &= result, any |= result;
    }
    return (truth){all, all | ~any};
}

static void run_plop3(warp *w, const instruction *i, uint32_t lanes, uint32_t sure)
{
    truth in[3];
    for (int k = 0; k < 3; k++) in[k] = truth_of(w, &i->operands[2 + k]);
    const truth first = table_of((uint32_t)i->operands[5].value, in),
                second = table_of((uint32_t)i->operands[6].value, in);
    write_truth(w, &i->operands[0], lanes, sure, first);
    write_truth(w, &i->operands[1], lanes, sure, second);
}

static void run_sel(machine *m, warp *w, const instruction *i, uint32_t lanes, uint32_t sure)
{
    uint32_t a[LANES], b[LANES];
    const uint32_t of_a = operand_plain(m, w, &i->operands[1], a),
                   of_b = operand_plain(m, w, &i->operands[2], b);
    const truth p = truth_of(w, &i->operands[3]);
    uint32_t known = 0;
    for (int lane = 0; lane < LANES; lane++) {
        const bool sure_of_it = p.known >> lane & 1, first = p.value >> lane & 1;
        const bool is_a = of_a >> lane & 1, is_b = of_b >> lane & 1;
        if (sure_of_it ? (first ? is_a : is_b) : is_a && is_b && a[lane] == b[lane]) known |= 1u << lane;
        if (!first) a[lane] = b[lane];
    }
    const bool signs = (i->operands[1].kind != IMMEDIATE && i->operands[1].flags) ||
                       (i->operands[2].kind != IMMEDIATE && i->operands[2].flags);
    register_write(w, i->operands[0].number, lanes, signs ? 0 : known & sure, a);
}

/* ---- predicates as bits of a register ---- */

static int first_predicate(const instruction *i)
{
    return i->flags & OP_UNIFORM ? 8 : 0;
}

static void run_r2p(machine *m, warp *w, const instruction *i, uint32_t lanes, uint32_t sure)
{
    uint32_t a[LANES];
    const uint32_t known = operand_read(m, w, i, &i->operands[1], a) & sure;
    for (int k = 0; k < 7; k++) {
        uint32_t bits = 0;
        if (!(i->operands[2].value >> k & 1)) continue;
        for (int lane = 0; lane < LANES; lane++)
            bits |= (a[lane] >> (8 * i->operands[1].scale + k) & 1) << lane;
        predicate_write(w, first_predicate(i) + k, lanes, known, bits);
    }
}

static void run_p2r(machine *m, warp *w, const instruction *i, uint32_t lanes, uint32_t sure)
{
    uint32_t a[LANES];
    const uint32_t mask = (uint32_t)i->operands[3].value;
    uint32_t known = operand_read(m, w, i, &i->operands[2], a) & sure;
    for (int lane = 0; lane < LANES; lane++) a[lane] &= ~mask;
    for (int k = 0; k < 7; k++) {
        if (!(mask >> k & 1)) continue;
        known &= w->predicate_known[first_predicate(i) + k];
        for (int lane = 0; lane < LANES; lane++)
            a[lane] |= (w->predicate[first_predicate(i) + k] >> lane & 1) << k;
    }
    register_write(w, i->operands[0].number, lanes, known, a);
}

/* ---- between lanes ---- */

static void run_vote(warp *w, const instruction *i, uint32_t lanes, uint32_t sure)
{
    const bool has_register = i->operands[0].kind == REGISTER;
    const operand *to = &i->operands[has_register];
    const truth in = truth_of(w, to + 1);
    const uint32_t yes = in.value & in.known & lanes, no = ~in.value & in.known & lanes;
    const uint32_t targets = i->flags & OP_UNIFORM ? ALL : lanes;
    const bool all_known = (in.known & lanes) == lanes && sure == lanes;
    const bool settled = i->flags & OP_ALL ? all_known || no : all_known || yes;
    const bool result = i->flags & OP_ALL ? yes == lanes : yes != 0;
    uint32_t ballot[LANES];
    for (int lane = 0; lane < LANES; lane++) ballot[lane] = yes;
    predicate_write(w, to->number, targets, settled ? ALL : 0, result ? ALL : 0);
    if (has_register) register_write(w, i->operands[0].number, targets, all_known ? ALL : 0, ballot);
}

/* Lane that a lane reads; -1: its own. */
static int source_of(const instruction *i, int lane, uint32_t b, uint32_t c)
{
    const int clamp = (int)(c & 31), fixed = (int)(c >> 8 & 31), by = (int)(b & 31);
    const int least = lane & fixed, most = least | (clamp & ~fixed);
    if (i->what == BY_INDEX) {
        const int from = least | (by & ~fixed);
        return from <= most ? from : -1;
    }
    if (i->what == BUTTERFLY) return (lane ^ by) <= most ? lane ^ by : -1;
    if (i->what == UP) return lane - by >= most ? lane - by : -1;
    return lane + by <= most ? lane + by : -1;
}

static void run_shfl(machine *m, warp *w, const instruction *i, uint32_t lanes, uint32_t sure)
{
    uint32_t a[LANES], b[LANES], c[LANES], result[LANES], known = 0, there = 0;
    const uint32_t of = operand_read(m, w, i, &i->operands[2], a);
    const uint32_t how =
        operand_read(m, w, i, &i->operands[3], b) & operand_read(m, w, i, &i->operands[4], c);
    for (int lane = 0; lane < LANES; lane++) {
        int from = source_of(i, lane, b[lane], c[lane]);
        there |= (uint32_t)(from >= 0) << lane;
        if (from < 0) from = lane;
        result[lane] = a[from];
        if (of >> from & 1 && lanes >> from & 1) known |= 1u << lane;
    }
    predicate_write(w, i->operands[0].number, lanes, how & sure, there);
    register_write(w, i->operands[1].number, lanes, known & how & sure, result);
}

static void run_r2ur(machine *m, warp *w, const instruction *i, uint32_t lanes)
{
    uint32_t a[LANES];
    const uint32_t known = operand_read(m, w, i, &i->operands[1], a);
    const int first = __builtin_ctz(lanes);
    for (int lane = 0; lane < LANES; lane++) a[lane] = a[first];
    register_write(w, i->operands[0].number, ALL, known >> first & 1 ? ALL : 0, a);
}

/* ---- what a thread is told ---- */

enum {
    TID_X,
    TID_Y,
    TID_Z,
    CTAID_X,
    CTAID_Y,
    CTAID_Z,
    LANE,
    ZERO,
    RANK,
    EQUAL_MASK,
    LESS_MASK,
    GREATER_MASK,
    CHANGING, /* clocks and the like */
    WINDOW_HIGH
};

static bool special(const machine *m, const warp *w, int number, uint32_t lane, uint32_t *value)
{
    const unsigned *size = m->launch->block;
    const uint32_t thread = w->index * LANES + lane;
    switch (number) {
    case TID_X:
        *value = thread % size[0];
        return true;
    case TID_Y:
        *value = thread / size[0] % size[1];
        return true;
    case TID_Z:
        *value = thread / (size[0] * size[1]);
        return true;
    case LANE:
        *value = lane;
        return true;
    case ZERO:
        *value = 0;
        return true;
    case RANK:
        *value = m->block[0] % m->launch->cluster;
        return true;
    case WINDOW_HIGH:
        *value = WINDOW;
        return true;
    case EQUAL_MASK:
        *value = 1u << lane;
        return true;
    case LESS_MASK:
        *value = (1u << lane) - 1;
        return true;
    case GREATER_MASK:
        *value = ~((2u << lane) - 1);
        return true;
    default:
        *value = m->block[number < CTAID_X ? 0 : number > CTAID_Z ? 0 : number - CTAID_X];
        return number >= CTAID_X && number <= CTAID_Z;
    }
}

static void run_s2r(machine *m, warp *w, const instruction *i, uint32_t lanes, uint32_t sure)
{
    uint32_t values[LANES], known = 0;
    for (uint32_t lane = 0; lane < LANES; lane++)
        if (special(m, w, i->operands[1].number, lane, &values[lane])) known |= 1u << lane;
    register_write(w, i->operands[0].number, lanes, known & sure, values);
}

static uint32_t narrowed(const instruction *i, uint32_t word, int64_t at)
{
    word >>= 8 * (at & 3);
    if (i->what == 1) return i->flags & OP_SIGNED ? (uint32_t)(int32_t)(int8_t)word : word & 0xff;
    if (i->what == 2) return i->flags & OP_SIGNED ? (uint32_t)(int32_t)(int16_t)word : word & 0xffff;
    return word;
}

static void run_ldc(machine *m, warp *w, const instruction *i, uint32_t lanes, uint32_t sure)
{
    uint32_t values[4][LANES], known[4];
    operand o = i->operands[1];
    const int64_t low = i->what < 4 && o.number < 0 ? o.value & 3 : 0;
    const int words = i->what < 4 ? 1 : i->what / 4;
    o.value -= low;
    for (int word = 0; word < words; word++, o.value += 4) { /* what is written may be the address */
        known[word] = operand_read(m, w, i, &o, values[word]);
        for (int lane = 0; lane < LANES; lane++) values[word][lane] = narrowed(i, values[word][lane], low);
    }
    for (int word = 0; word < words; word++)
        register_write(w, i->operands[0].number + word, lanes, known[word] & sure, values[word]);
}

void run_logic(machine *m, warp *w, const instruction *i, uint32_t lanes, uint32_t sure)
{
    switch (i->op) {
    case DO_ISETP:
        return run_isetp(m, w, i, lanes, sure);
    case DO_FSETP:
        return run_fsetp(m, w, i, lanes, sure);
    case DO_DSETP:
        return write_both(w, i, lanes, sure, (truth){0, 0});
    case DO_FCHK: /* divisions take the short way */
        return predicate_write(w, i->operands[0].number, lanes, sure, 0);
    case DO_PLOP3:
        return run_plop3(w, i, lanes, sure);
    case DO_SEL:
        return run_sel(m, w, i, lanes, sure);
    case DO_R2P:
        return run_r2p(m, w, i, lanes, sure);
    case DO_P2R:
        return run_p2r(m, w, i, lanes, sure);
    case DO_VOTE:
        return run_vote(w, i, lanes, sure);
    case DO_SHFL:
        return run_shfl(m, w, i, lanes, sure);
    case DO_R2UR:
        return run_r2ur(m, w, i, lanes);
    case DO_S2R:
        return run_s2r(m, w, i, lanes, sure);
    default:
        return run_ldc(m, w, i, lanes, sure);
    }
}
