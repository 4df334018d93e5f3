/* Operands, read for all lanes at once. */
#include "machine.h"

#include <string.h>

enum { SIZE_OF_BLOCK = 0x0, SIZE_OF_GRID = 0xc, STACK = 0x28, SIZE_OF_CLUSTER = 0x188 };

/* A word of constant bank 0; false: it is not known. */
static bool constant_word(const machine *m, int64_t at, uint32_t *word)
{
    const launch *l = m->launch;
    const int64_t in = at - l->kernel->parameters;
    if (in >= 0 && in < (int64_t)l->argument_bytes) {
        *word = 0;
        memcpy(word, l->arguments + in, 4);
        return true;
    }
    if (at >= SIZE_OF_BLOCK && at < SIZE_OF_BLOCK + 12) {
        *word = l->block[(at - SIZE_OF_BLOCK) / 4];
        return true;
    }
    if (at >= SIZE_OF_GRID && at < SIZE_OF_GRID + 12) {
        *word = l->grid[(at - SIZE_OF_GRID) / 4];
        return true;
    }
    if (at == STACK || at == SIZE_OF_CLUSTER) {
        *word = at == STACK ? LOCAL_BYTES : l->cluster;
        return true;
    }
    return false;
}

static uint32_t read_constant(const machine *m, const warp *w, const instruction *i, const operand *o,
                              int64_t more, uint32_t values[LANES])
{
    uint32_t known = 0;
    if (o->uniform) return 0; /* another bank */
    if (o->number < 0 || o->number == RZ || o->number == REGISTERS - 1) {
        const int64_t at = o->value + more;
        uint32_t word = 0;
        if (at >= m->launch->kernel->parameters + (int64_t)m->launch->argument_bytes)
            machine_fail(m, i, "reads behind the arguments, byte %lld", (long long)at);
        if (!constant_word(m, at, &word)) return 0;
        for (int lane = 0; lane < LANES; lane++) values[lane] = word;
        return ALL;
    }
    for (int lane = 0; lane < LANES; lane++)
        if (w->known[o->number] >> lane & 1 &&
            constant_word(m, (int64_t)(int32_t)w->value[o->number][lane] + o->value + more, &values[lane]))
            known |= 1u << lane;
    return known;
}

static uint32_t read_plain(const machine *m, const warp *w, const instruction *i, const operand *o, int part,
                           uint32_t values[LANES])
{
    if (o->kind == REGISTER) {
        const bool zero = o->number == RZ || o->number == REGISTERS - 1;
        const int number = zero ? o->number : o->number + part;
        memcpy(values, w->value[number], sizeof w->value[number]);
        return w->known[number];
    }
    if (o->kind == IMMEDIATE) {
        for (int lane = 0; lane < LANES; lane++) values[lane] = (uint32_t)(o->value >> (32 * part));
        return ALL;
    }
    if (o->kind == CONSTANT) return read_constant(m, w, i, o, 4 * part, values);
    machine_fail(m, i, "has an operand that is no number");
}

uint32_t operand_plain(const machine *m, const warp *w, const operand *o, uint32_t values[LANES])
{
    return read_plain(m, w, NULL, o, 0, values);
}

uint32_t operand_read(const machine *m, const warp *w, const instruction *i, const operand *o,
                      uint32_t values[LANES])
{
    const uint32_t known = read_plain(m, w, i, o, 0, values);
    if (o->kind == IMMEDIATE || !o->flags) return known;
    for (int lane = 0; lane < LANES; lane++) {
        if (o->flags & ABSOLUTE && (int32_t)values[lane] < 0) values[lane] = -values[lane];
        if (o->flags & NEGATIVE) values[lane] = -values[lane];
        if (o->flags & INVERTED) values[lane] = ~values[lane];
    }
    return known;
}

uint32_t operand_read_pair(const machine *m, const warp *w, const instruction *i, const operand *o,
                           uint64_t values[LANES])
{
    uint32_t low[LANES], high[LANES];
    const uint32_t known = read_plain(m, w, i, o, 0, low) & read_plain(m, w, i, o, 1, high);
    for (int lane = 0; lane < LANES; lane++) {
        values[lane] = (uint64_t)high[lane] << 32 | low[lane];
        if (o->flags & NEGATIVE && o->kind != IMMEDIATE) values[lane] = -values[lane];
        if (o->flags & INVERTED && o->kind != IMMEDIATE) values[lane] = ~values[lane];
    }
    return known;
}

uint32_t predicate_read(const warp *w, const operand *o, uint32_t *known)
{
    *known = w->predicate_known[o->number];
    return o->flags & INVERTED ? ~w->predicate[o->number] : w->predicate[o->number];
}

void register_write(warp *w, int number, uint32_t lanes, uint32_t known, const uint32_t values[LANES])
{
    if (number == RZ || number == REGISTERS - 1) return;
    known &= lanes;
    if (known == ALL)
        memcpy(w->value[number], values, sizeof w->value[number]);
    else
        for (uint32_t rest = known; rest; rest &= rest - 1) {
            const int lane = __builtin_ctz(rest);
            w->value[number][lane] = values[lane];
        }
    w->known[number] = (w->known[number] & ~lanes) | known;
}

void register_forget(warp *w, int number, int count, uint32_t lanes)
{
    if (number == RZ || number == REGISTERS - 1) return;
    for (int k = 0; k < count; k++)
        if (number + k < RZ || number >= UNIFORM) w->known[number + k] &= ~lanes;
}

void predicate_write(warp *w, int number, uint32_t lanes, uint32_t known, uint32_t values)
{
    if (number == PT || number == PREDICATES - 1) return;
    known &= lanes;
    w->predicate[number] = (w->predicate[number] & ~known) | (values & known);
    w->predicate_known[number] = (w->predicate_known[number] & ~lanes) | known;
}
