/* Integers: what addresses and counters are made of. */
#include "machine.h"

#include <math.h>
#include <string.h>

/* Destination, then predicates that it also writes, then what it reads. */
typedef struct shape {
    int to;       /* register */
    int carry[2]; /* predicates that are written, PT where there is none */
    int from;     /* the first operand that is read */
    int carries;  /* predicates at the end that are read */
    const operand *in[2];
} shape;

static shape shape_of(const machine *m, const instruction *i)
{
    shape s = {.to = RZ, .carry = {PT, PT}};
    int at = 0, written = 0;
    if (i->operands[at].kind == PREDICATE) s.carry[written++] = i->operands[at++].number;
    if (i->operands[at].kind != REGISTER) machine_fail(m, i, "has no register to write");
    s.to = i->operands[at++].number;
    while (at < i->count && i->operands[at].kind == PREDICATE && written < 2)
        s.carry[written++] = i->operands[at++].number;
    s.from = at;
    for (int k = i->count - 1; k >= at && i->operands[k].kind == PREDICATE; k--)
        if (s.carries < 2) s.in[s.carries++] = &i->operands[k];
    return s;
}

static void write_carry(warp *w, const shape *s, uint32_t lanes, uint32_t known, const uint64_t over[LANES])
{
    for (int k = 0; k < 2; k++) {
        uint32_t bits = 0;
        for (int lane = 0; lane < LANES; lane++) bits |= (uint32_t)(over[lane] > (uint64_t)k) << lane;
        predicate_write(w, s->carry[k], lanes, known, bits);
    }
}

static uint32_t add_carries(const warp *w, const shape *s, uint64_t sum[LANES], uint32_t known)
{
    for (int k = 0; k < s->carries; k++) {
        uint32_t certain;
        const uint32_t bits = predicate_read(w, s->in[k], &certain);
        known &= certain;
        for (int lane = 0; lane < LANES; lane++) sum[lane] += bits >> lane & 1;
    }
    return known;
}

static void write_pair(warp *w, int to, uint32_t lanes, uint32_t known, const uint64_t values[LANES])
{
    uint32_t low[LANES], high[LANES];
    for (int lane = 0; lane < LANES; lane++) {
        low[lane] = (uint32_t)values[lane];
        high[lane] = (uint32_t)(values[lane] >> 32);
    }
    register_write(w, to, lanes, known, low);
    if (to != RZ && to != REGISTERS - 1) register_write(w, to + 1, lanes, known, high);
}

static void put_low(warp *w, int to, uint32_t lanes, uint32_t known, const uint64_t values[LANES])
{
    uint32_t low[LANES];
    for (int lane = 0; lane < LANES; lane++) low[lane] = (uint32_t)values[lane];
    register_write(w, to, lanes, known, low);
}

static void run_mov(machine *m, warp *w, const instruction *i, uint32_t lanes, uint32_t sure)
{
    uint32_t a[LANES];
    const uint32_t known = operand_read(m, w, i, &i->operands[1], a) & sure;
    register_write(w, i->operands[0].number, lanes, known, a);
}

/* A pair, most often of zeros. */
static void run_cs2r(warp *w, const instruction *i, uint32_t lanes, uint32_t sure)
{
    const uint32_t zero[LANES] = {0};
    const uint32_t known = i->operands[1].kind == REGISTER ? sure : 0;
    register_write(w, i->operands[0].number, lanes, known, zero);
    if (i->flags & OP_64) register_write(w, i->operands[0].number + 1, lanes, known, zero);
}

/* ---- products ---- */

static uint64_t product(const instruction *i, uint32_t a, uint32_t b)
{
    if (i->flags & OP_U32) return (uint64_t)a * b;
    return (uint64_t)((int64_t)(int32_t)a * (int32_t)b);
}

static void run_imad_pair(machine *m, warp *w, const instruction *i, const shape *s, uint32_t lanes,
                          uint32_t sure)
{
    uint32_t a[LANES], b[LANES];
    uint64_t c[LANES], sum[LANES], over[LANES];
    uint32_t known = operand_read(m, w, i, &i->operands[s->from], a);
    known &= operand_read(m, w, i, &i->operands[s->from + 1], b);
    known &= operand_read_pair(m, w, i, &i->operands[s->from + 2], c) & sure;
    for (int lane = 0; lane < LANES; lane++) {
        sum[lane] = product(i, a[lane], b[lane]) + c[lane];
        over[lane] = sum[lane] < c[lane];
    }
    if (i->flags & OP_X) known = add_carries(w, s, sum, known);
    write_carry(w, s, lanes, known, over);
    if (i->flags & OP_HI) {
        for (int lane = 0; lane < LANES; lane++) sum[lane] >>= 32;
        put_low(w, s->to, lanes, known, sum);
    } else {
        write_pair(w, s->to, lanes, known, sum);
    }
}

static void run_imad(machine *m, warp *w, const instruction *i, uint32_t lanes, uint32_t sure)
{
    const shape s = shape_of(m, i);
    uint32_t a[LANES], b[LANES], c[LANES];
    uint64_t sum[LANES];
    if (i->flags & (OP_WIDE | OP_HI)) {
        run_imad_pair(m, w, i, &s, lanes, sure);
        return;
    }
    const operand *x = &i->operands[s.from], *y = x + 1;
    const uint32_t of_a = operand_read(m, w, i, x, a), of_b = operand_read(m, w, i, y, b);
    uint32_t known = of_a & of_b;
    for (int lane = 0; lane < LANES; lane++) /* nothing times what is not known */
        if ((of_a >> lane & 1 && !a[lane]) || (of_b >> lane & 1 && !b[lane])) {
            a[lane] = b[lane] = 0;
            known |= 1u << lane;
        }
    known &= operand_read(m, w, i, y + 1, c) & sure;
    for (int lane = 0; lane < LANES; lane++) sum[lane] = a[lane] * b[lane] + c[lane];
    if (i->flags & OP_X) known = add_carries(w, &s, sum, known);
    put_low(w, s.to, lanes, known, sum);
}

/* ---- sums ---- */

/* The sign of an operand as a carry of its own: -x is ~x + 1. */
static uint32_t read_term(machine *m, warp *w, const instruction *i, const operand *o, uint64_t sum[LANES])
{
    uint32_t a[LANES];
    const uint32_t known = operand_plain(m, w, o, a);
    const bool turned = o->kind != IMMEDIATE && o->flags & (NEGATIVE | INVERTED);
    const bool one = o->kind != IMMEDIATE && o->flags & NEGATIVE && !(i->flags & OP_X);
    for (int lane = 0; lane < LANES; lane++) sum[lane] += (turned ? ~a[lane] : a[lane]) + (uint64_t)one;
    return known;
}

static void run_iadd3(machine *m, warp *w, const instruction *i, uint32_t lanes, uint32_t sure)
{
    const shape s = shape_of(m, i);
    uint64_t sum[LANES] = {0}, over[LANES];
    uint32_t known = sure;
    for (int k = s.from; k < i->count && i->operands[k].kind != PREDICATE; k++)
        known &= read_term(m, w, i, &i->operands[k], sum);
    if (i->flags & OP_X) known = add_carries(w, &s, sum, known);
    for (int lane = 0; lane < LANES; lane++) over[lane] = sum[lane] >> 32;
    write_carry(w, &s, lanes, known, over);
    put_low(w, s.to, lanes, known, sum);
}

/* The last number, and before it a sum, for VIADDMNMX. */
static void run_minmax(machine *m, warp *w, const instruction *i, uint32_t lanes, uint32_t sure)
{
    const int numbers = i->count - 2; /* without destination and predicate */
    uint32_t a[LANES], b[LANES], certain, known = operand_read(m, w, i, &i->operands[1], a);
    const uint32_t least = predicate_read(w, &i->operands[i->count - 1], &certain);
    for (int k = 2; k <= numbers; k++) {
        known &= operand_read(m, w, i, &i->operands[k], b);
        for (int lane = 0; lane < LANES; lane++) {
            const uint32_t x = a[lane], y = b[lane];
            const bool first = i->flags & OP_U32 ? x < y : (int32_t)x < (int32_t)y;
            const bool adds = i->what && k == 2;
            a[lane] = adds ? x + y : first == (least >> lane & 1) ? x : y;
        }
    }
    register_write(w, i->operands[0].number, lanes, known & certain & sure, a);
}

static void run_iabs(machine *m, warp *w, const instruction *i, uint32_t lanes, uint32_t sure)
{
    uint32_t a[LANES];
    const uint32_t known = operand_read(m, w, i, &i->operands[1], a) & sure;
    for (int lane = 0; lane < LANES; lane++)
        if ((int32_t)a[lane] < 0) a[lane] = -a[lane];
    register_write(w, i->operands[0].number, lanes, known, a);
}

/* ---- shifts ---- */

/* (a << s) + b; HI: what a shift of c:a leaves above, + b. */
static void run_lea(machine *m, warp *w, const instruction *i, uint32_t lanes, uint32_t sure)
{
    const shape s = shape_of(m, i);
    const operand *o = &i->operands[s.from];
    const bool high = i->flags & OP_HI, extends = i->flags & OP_SX32;
    const bool takes_c = high && !extends;
    uint32_t a[LANES], b[LANES], c[LANES] = {0}, by[LANES];
    uint64_t sum[LANES], over[LANES];
    uint32_t known = operand_read(m, w, i, o, a) & operand_plain(m, w, o + 1, b) & sure;
    if (takes_c) known &= operand_read(m, w, i, o + 2, c);
    known &= operand_read(m, w, i, o + (takes_c ? 3 : 2), by);
    const bool turned = o[1].kind != IMMEDIATE && o[1].flags & (NEGATIVE | INVERTED);
    const bool one = o[1].kind != IMMEDIATE && o[1].flags & NEGATIVE && !(i->flags & OP_X);
    for (int lane = 0; lane < LANES; lane++) {
        const uint64_t whole =
            extends ? (uint64_t)(int64_t)(int32_t)a[lane] : (uint64_t)c[lane] << 32 | a[lane];
        const uint32_t shift = by[lane] & 31;
        const uint32_t shifted = high ? (uint32_t)(whole << shift >> 32) : a[lane] << shift;
        sum[lane] = (uint64_t)shifted + (turned ? ~b[lane] : b[lane]) + one;
    }
    if (i->flags & OP_X) known = add_carries(w, &s, sum, known);
    for (int lane = 0; lane < LANES; lane++) over[lane] = sum[lane] >> 32;
    write_carry(w, &s, lanes, known, over);
    put_low(w, s.to, lanes, known, sum);
}

static uint64_t shifted(const instruction *i, uint64_t pair, uint32_t by)
{
    const uint32_t most = i->flags & OP_64 ? 63 : 32;
    if (by > most) by = most;
    if (!(i->flags & OP_RIGHT)) return pair << by;
    return i->flags & OP_SIGNED ? (uint64_t)((int64_t)pair >> by) : pair >> by;
}

/* The low or high half of hi:lo, shifted. Of 32 bits: only that half. */
static void run_shf(machine *m, warp *w, const instruction *i, uint32_t lanes, uint32_t sure)
{
    uint32_t low[LANES], by[LANES], high[LANES];
    uint64_t result[LANES];
    const bool above = i->flags & OP_HI;
    uint32_t known = operand_read(m, w, i, &i->operands[2], by) & sure;
    const uint32_t of_low = operand_read(m, w, i, &i->operands[1], low),
                   of_high = operand_read(m, w, i, &i->operands[3], high);
    const bool right = i->flags & OP_RIGHT, whole = i->flags & OP_64;
    known &= whole || right || above ? of_low & of_high : of_low;
    for (int lane = 0; lane < LANES; lane++) {
        const uint64_t pair = (uint64_t)high[lane] << 32 | low[lane];
        result[lane] = shifted(i, pair, by[lane]) >> (above ? 32 : 0);
    }
    put_low(w, i->operands[0].number, lanes, known, result);
}

/* ---- bits ---- */

static uint32_t looked_up(uint32_t table, uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t result = 0;
    for (int k = 0; k < 8; k++)
        if (table >> k & 1) result |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
    return result;
}

/* Bits of the result that an unknown factor cannot change are what they are: x & 0 is 0. */
static void run_lop3(machine *m, warp *w, const instruction *i, uint32_t lanes, uint32_t sure)
{
    const shape s = shape_of(m, i);
    const operand *o = &i->operands[s.from];
    uint32_t v[3][LANES], of[3], values[LANES], known = 0, set = 0;
    for (int k = 0; k < 3; k++) of[k] = operand_read(m, w, i, &o[k], v[k]);
    const uint32_t table = (uint32_t)o[3].value;
    for (int lane = 0; lane < LANES; lane++) {
        uint32_t least = ALL, most = 0;
        for (uint32_t guess = 0; guess < 8; guess++) {
            uint32_t x[3];
            for (int k = 0; k < 3; k++) x[k] = of[k] >> lane & 1 ? v[k][lane] : guess >> k & 1 ? ALL : 0;
            values[lane] = looked_up(table, x[0], x[1], x[2]);
            least &= values[lane], most |= values[lane];
            if (of[0] & of[1] & of[2] & 1u << lane) break;
        }
        if (least == most) known |= 1u << lane;
        if (values[lane]) set |= 1u << lane;
    }
    predicate_write(w, s.carry[0], lanes, known & sure, set);
    register_write(w, s.to, lanes, known & sure, values);
}

static void run_prmt(machine *m, warp *w, const instruction *i, uint32_t lanes, uint32_t sure)
{
    uint32_t a[LANES], by[LANES], b[LANES];
    uint32_t of_a = operand_read(m, w, i, &i->operands[1], a),
             of_b = operand_read(m, w, i, &i->operands[3], b);
    uint32_t known = operand_read(m, w, i, &i->operands[2], by) & sure, unknown = 0;
    for (int lane = 0; lane < LANES; lane++) {
        const uint64_t pair = (uint64_t)b[lane] << 32 | a[lane];
        uint32_t result = 0;
        for (int k = 0; k < 4; k++) {
            const uint32_t which = by[lane] >> (4 * k);
            uint32_t byte = (uint32_t)(pair >> (8 * (which & 7))) & 0xff;
            if (which & 8) byte = byte & 0x80 ? 0xff : 0;
            result |= byte << (8 * k);
            if (!((which & 4 ? of_b : of_a) >> lane & 1)) unknown |= 1u << lane;
        }
        a[lane] = result;
    }
    register_write(w, i->operands[0].number, lanes, known & ~unknown, a);
}

static uint32_t reversed(uint32_t x)
{
    uint32_t result = 0;
    for (int k = 0; k < 32; k++) result |= (x >> k & 1) << (31 - k);
    return result;
}

/* FLO: the highest bit that is set; SH: as a shift that brings it to the top. Of no bit all ones. */
static void run_bits(machine *m, warp *w, const instruction *i, uint32_t lanes, uint32_t sure)
{
    uint32_t a[LANES];
    const uint32_t known = operand_read(m, w, i, &i->operands[1], a) & sure;
    for (int lane = 0; lane < LANES; lane++) {
        uint32_t x = a[lane];
        if (i->op == DO_FLO && !(i->flags & OP_U32) && (int32_t)x < 0) x = ~x;
        const uint32_t zeros = x ? (uint32_t)__builtin_clz(x) : 32;
        if (i->op == DO_BREV) a[lane] = reversed(x);
        if (i->op == DO_POPC) a[lane] = (uint32_t)__builtin_popcount(x);
        if (i->op == DO_FLO) a[lane] = !x ? ALL : i->flags & OP_SH ? zeros : 31 - zeros;
    }
    register_write(w, i->operands[0].number, lanes, known, a);
}

/* BMSK: so many bits from a place on; SGXT: the sign of a number of so many bits. */
static void run_fields(machine *m, warp *w, const instruction *i, uint32_t lanes, uint32_t sure)
{
    uint32_t a[LANES], b[LANES];
    const uint32_t known =
        operand_read(m, w, i, &i->operands[1], a) & operand_read(m, w, i, &i->operands[2], b) & sure;
    for (int lane = 0; lane < LANES; lane++) {
        const uint32_t x = a[lane] & 31, n = b[lane] > 32 ? 32 : b[lane];
        const uint64_t ones = ((uint64_t)1 << n) - 1;
        if (i->op == DO_BMSK) {
            a[lane] = (uint32_t)(ones << x);
        } else {
            const bool negative = !(i->flags & OP_U32) && n && a[lane] >> (n - 1) & 1;
            a[lane] = (uint32_t)((a[lane] & ones) | (negative ? ~ones : 0));
        }
    }
    register_write(w, i->operands[0].number, lanes, known, a);
}

/* ---- quotients: integer to float and back, as divisions by a number that is not known beforehand do it ---- */

static float up_to_float(double x)
{
    float f = (float)x;
    return (double)f < x ? nextafterf(f, INFINITY) : f;
}

static void run_quotient(machine *m, warp *w, const instruction *i, uint32_t lanes, uint32_t sure)
{
    const operand *o = &i->operands[1];
    const bool from_pair = i->op == DO_I2F && i->flags & OP_64, to_pair = i->op == DO_F2I && i->flags & OP_64;
    uint32_t a[LANES] = {0};
    uint64_t pair[LANES], result[LANES];
    uint32_t known = from_pair ? operand_read_pair(m, w, i, o, pair) : operand_read(m, w, i, o, a);
    for (int lane = 0; lane < LANES; lane++) {
        float x;
        memcpy(&x, &a[lane], sizeof x);
        if (i->op == DO_I2F) {
            const uint64_t n = from_pair ? pair[lane] : a[lane];
            const double value =
                i->flags & OP_SIGNED ? (double)(from_pair ? (int64_t)n : (int64_t)(int32_t)n) : (double)n;
            x = up_to_float(value);
        }
        if (i->op == DO_RCP) x = 1.0f / x;
        if (i->op == DO_F2I) {
            result[lane] = !(x == x) || x <= 0 ? 0 : x >= 0x1p63f ? UINT64_MAX : (uint64_t)x;
            if (i->flags & OP_SIGNED && x < 0) result[lane] = (uint64_t)(int64_t)x;
            if (!to_pair && result[lane] > ALL && !(i->flags & OP_SIGNED)) result[lane] = ALL;
        } else {
            uint32_t bits;
            memcpy(&bits, &x, sizeof bits);
            result[lane] = bits;
        }
    }
    if (to_pair)
        write_pair(w, i->operands[0].number, lanes, known & sure, result);
    else
        put_low(w, i->operands[0].number, lanes, known & sure, result);
}

void run_integer(machine *m, warp *w, const instruction *i, uint32_t lanes, uint32_t sure)
{
    switch (i->op) {
    case DO_MOV:
        return run_mov(m, w, i, lanes, sure);
    case DO_CS2R:
        return run_cs2r(w, i, lanes, sure);
    case DO_IMAD:
        return run_imad(m, w, i, lanes, sure);
    case DO_IADD3:
    case DO_VIADD:
        return run_iadd3(m, w, i, lanes, sure);
    case DO_IABS:
        return run_iabs(m, w, i, lanes, sure);
    case DO_MINMAX:
        return run_minmax(m, w, i, lanes, sure);
    case DO_LEA:
        return run_lea(m, w, i, lanes, sure);
    case DO_SHF:
        return run_shf(m, w, i, lanes, sure);
    case DO_LOP3:
        return run_lop3(m, w, i, lanes, sure);
    case DO_PRMT:
        return run_prmt(m, w, i, lanes, sure);
    case DO_BMSK:
    case DO_SGXT:
        return run_fields(m, w, i, lanes, sure);
    case DO_I2F:
    case DO_F2I:
    case DO_RCP:
        return run_quotient(m, w, i, lanes, sure);
    default:
        return run_bits(m, w, i, lanes, sure);
    }
}
