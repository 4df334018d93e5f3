/* Memory: which sectors of 32 bytes are touched, and the few contents that are known: what the host copied, and shared and local
 * memory as far as known values were written. */
#include "machine.h"

#include <stdlib.h>
#include <string.h>

enum { SECTOR = 32, TABLE = 1 << 22, SHARED_MASK = 0xffffff, SHARED_FIRST = 0x400 };

/* ---- what the host copied ---- */

typedef struct range {
    uint64_t address;
    size_t bytes;
    const unsigned char *content;
} range;

static range *ranges; /* by address, none over another */
static size_t range_count;

/* The first that ends behind the address. */
static size_t range_at(uint64_t address)
{
    size_t from = 0, to = range_count;
    while (from < to) {
        const size_t middle = (from + to) / 2;
        if (ranges[middle].address + ranges[middle].bytes <= address)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

void memory_upload(uint64_t address, size_t bytes, const unsigned char *content)
{
    const size_t first = range_at(address);
    size_t last = first;
    while (last < range_count && ranges[last].address < address + bytes) last++;
    const size_t behind = range_count - last;
    range *tail = malloc((behind + 1) * sizeof *tail);
    memcpy(tail, ranges + last, behind * sizeof *tail);
    range_count = first + 1 + behind;
    ranges = realloc(ranges, (range_count + 1) * sizeof *ranges);
    ranges[first] = (range){address, bytes, content};
    memcpy(ranges + first + 1, tail, behind * sizeof *tail);
    free(tail);
}

static const unsigned char *content_at(uint64_t address, size_t bytes)
{
    const size_t at = range_at(address);
    if (at == range_count) return NULL;
    const range *r = &ranges[at];
    if (address < r->address || address + bytes > r->address + r->bytes) return NULL;
    return r->content + (address - r->address);
}

/* ---- sectors ---- */

typedef struct touched {
    uint64_t sector;
    uint32_t block, how; /* block: the number of a block that ran */
} touched;

static touched *now, *before; /* of this block, of the first of the launch */
static uint32_t block_serial, first_serial, used;
static bool is_first;

void memory_begin_launch(void)
{
    if (!now) now = calloc(TABLE, sizeof *now);
    if (!before) before = calloc(TABLE, sizeof *before);
    if (!now || !before) exit(1);
    first_serial = block_serial + 1;
}

void memory_begin_block(int number)
{
    block_serial++;
    used = 0;
    is_first = number == 0;
}

static touched *find(touched *table, uint64_t sector, uint32_t serial)
{
    uint64_t at = (sector * 0x9e3779b97f4a7c15u) >> 42;
    while (table[at].block == serial && table[at].sector != sector) at = (at + 1) % TABLE;
    return &table[at];
}

/* Whether it is the first time in this block, and in the launch as far as the first block knows. */
static bool touch(const machine *m, const instruction *i, uint64_t sector, uint32_t how, bool *is_new)
{
    touched *t = find(now, sector, block_serial);
    if (t->block != block_serial) {
        if (++used > TABLE / 2) machine_fail(m, i, "a block touches more memory than this counts");
        *t = (touched){sector, block_serial, 0};
    }
    if (t->how & how) return false;
    t->how |= how;
    touched *b = find(before, sector, first_serial);
    const bool there = b->block == first_serial && b->how & how;
    *is_new = !there;
    if (is_first && !there) {
        if (b->block != first_serial) *b = (touched){sector, first_serial, 0};
        b->how |= how;
    }
    return true;
}

static void count_sector(const machine *m, const instruction *i, account *a, uint64_t sector)
{
    bool is_new;
    a->sectors++;
    if (sector < a->least) a->least = sector;
    if (sector > a->most) a->most = sector;
    if (i->flags & OP_LOAD && touch(m, i, sector, OP_LOAD, &is_new)) a->reads++, a->new_reads += is_new;
    if (i->flags & OP_STORE && touch(m, i, sector, OP_STORE, &is_new)) a->writes++, a->new_writes += is_new;
}

static void count_sectors(const machine *m, const instruction *i, const uint64_t address[LANES],
                          uint32_t lanes, int bytes)
{
    account *a = &m->accounts[i - m->launch->kernel->code];
    uint64_t seen[2 * LANES];
    int count = 0;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const uint64_t at = address[__builtin_ctz(rest)];
        for (uint64_t s = at / SECTOR; s <= (at + (uint64_t)bytes - 1) / SECTOR; s++) {
            int k = count - 1;
            while (k >= 0 && seen[k] != s) k--;
            if (k >= 0) continue;
            seen[count++] = s;
            count_sector(m, i, a, s);
        }
    }
}

/* ---- addresses ---- */

static uint32_t address_of(const machine *m, const warp *w, const instruction *i, const operand *o,
                           uint64_t address[LANES])
{
    uint32_t low[LANES], known = ALL;
    uint64_t wide[LANES];
    operand part = {.kind = REGISTER, .number = o->number};
    for (int lane = 0; lane < LANES; lane++) address[lane] = (uint64_t)o->value;
    if (o->number >= 0 && o->flags & WIDE) {
        known &= operand_read_pair(m, w, i, &part, wide);
        for (int lane = 0; lane < LANES; lane++) address[lane] += wide[lane];
    } else if (o->number >= 0) {
        known &= operand_read(m, w, i, &part, low);
        for (int lane = 0; lane < LANES; lane++) address[lane] += (uint64_t)low[lane] * (uint64_t)o->scale;
    }
    if (o->uniform < 0) return known;
    part.number = o->uniform;
    if (o->flags & WIDE_UNIFORM) {
        known &= operand_read_pair(m, w, i, &part, wide);
        for (int lane = 0; lane < LANES; lane++) address[lane] += wide[lane];
    } else {
        known &= operand_read(m, w, i, &part, low);
        for (int lane = 0; lane < LANES; lane++) address[lane] += low[lane];
    }
    return known;
}

static uint32_t word_of(const instruction *i, const unsigned char *from, int bytes)
{
    uint32_t word = 0;
    memcpy(&word, from, bytes < 4 ? (size_t)bytes : 4);
    if (bytes == 1 && i->flags & OP_SIGNED) return (uint32_t)(int32_t)(int8_t)word;
    if (bytes == 2 && i->flags & OP_SIGNED) return (uint32_t)(int32_t)(int16_t)word;
    return word;
}

/* ---- global: destination or RZ, address, source or RZ ---- */

static void run_global(machine *m, warp *w, const instruction *i, uint32_t lanes, uint32_t sure)
{
    uint64_t address[LANES];
    const int to = i->operands[0].number, words = i->what < 4 ? 1 : i->what / 4;
    uint32_t known = address_of(m, w, i, &i->operands[1], address) & lanes;
    account *a = &m->accounts[i - m->launch->kernel->code];
    a->unknown += __builtin_popcount(lanes & ~known);
    for (int lane = 0; lane < LANES; lane++) /* of this or another block of the cluster */
        if (address[lane] >> 32 == WINDOW) known &= ~(1u << lane);
    count_sectors(m, i, address, known, i->what);
    if (!(i->flags & OP_LOAD)) return;
    for (int word = 0; word < words; word++) {
        uint32_t values[LANES], there = 0;
        for (uint32_t rest = i->flags & OP_STORE ? 0 : known & sure; rest; rest &= rest - 1) {
            const int lane = __builtin_ctz(rest);
            const unsigned char *from =
                content_at(address[lane] + 4 * (uint64_t)word, i->what < 4 ? (size_t)i->what : 4);
            if (!from) continue;
            values[lane] = word_of(i, from, i->what);
            there |= 1u << lane;
        }
        if (to != RZ) register_write(w, to + word, lanes, there, values);
    }
}

/* ---- shared and local: the same operands ---- */

static void put(unsigned char *memory, unsigned char *known, const instruction *i, uint32_t value,
                bool is_known, size_t at)
{
    const size_t bytes = i->what < 4 ? (size_t)i->what : 4;
    memcpy(memory + at, &value, bytes);
    memset(known + at, is_known, bytes);
}

static bool get(const unsigned char *memory, const unsigned char *known, const instruction *i,
                uint32_t *value, size_t at)
{
    const size_t bytes = i->what < 4 ? (size_t)i->what : 4;
    for (size_t k = 0; k < bytes; k++)
        if (!known[at + k]) return false;
    *value = word_of(i, memory + at, i->what);
    return true;
}

/* Where a lane's byte lies; false: nowhere in this block. */
static bool place_of(const machine *m, const instruction *i, uint64_t address, size_t *at, size_t bytes)
{
    if (i->op == DO_LOCAL) {
        *at = (uint32_t)address;
        return *at + bytes <= LOCAL_BYTES;
    }
    if (m->launch->cluster > 1 && address >> 24 != m->block[0] % m->launch->cluster) return false;
    *at = (address & SHARED_MASK) - SHARED_FIRST;
    return *at + bytes <= SHARED_BYTES;
}

static void run_own(machine *m, warp *w, const instruction *i, uint32_t lanes, uint32_t sure)
{
    uint64_t address[LANES];
    const uint32_t known = address_of(m, w, i, &i->operands[1], address) & lanes;
    const int words = i->what < 4 ? 1 : i->what / 4;
    const bool swaps = (i->flags & (OP_LOAD | OP_STORE)) == (OP_LOAD | OP_STORE);
    for (int word = 0; word < words; word++) {
        uint32_t values[LANES] = {0}, there = 0, of = 0;
        if (i->flags & OP_STORE) {
            operand from = i->operands[2];
            if (from.number != RZ) from.number += word;
            of = operand_read(m, w, i, &from, values);
        }
        for (uint32_t rest = known; rest; rest &= rest - 1) {
            const int lane = __builtin_ctz(rest);
            unsigned char *memory = i->op == DO_LOCAL ? w->local[lane] : m->shared;
            unsigned char *is = i->op == DO_LOCAL ? w->local_known[lane] : m->shared_known;
            size_t at;
            if (!place_of(m, i, address[lane] + 4 * (uint64_t)word, &at, 4)) continue;
            if (i->flags & OP_STORE)
                put(memory, is, i, values[lane], !swaps && of & sure & 1u << lane, at);
            else if (get(memory, is, i, &values[lane], at))
                there |= 1u << lane;
        }
        if (i->flags & OP_LOAD && i->operands[0].number != RZ)
            register_write(w, i->operands[0].number + word, lanes, swaps ? 0 : there & sure, values);
    }
    /* Where a lane writes is not known: nothing is any more. */
    if (i->op == DO_SHARED && i->flags & OP_STORE && lanes & ~known) memset(m->shared_known, 0, SHARED_BYTES);
}

/* From global to shared memory without registers: shared address, global address. */
static void run_copy(machine *m, warp *w, const instruction *i, uint32_t lanes)
{
    uint64_t address[LANES], to[LANES];
    const uint32_t known = address_of(m, w, i, &i->operands[1], address) & lanes;
    const uint32_t placed = address_of(m, w, i, &i->operands[0], to) & lanes;
    m->accounts[i - m->launch->kernel->code].unknown += __builtin_popcount(lanes & ~known);
    count_sectors(m, i, address, known, i->what);
    for (uint32_t rest = placed; rest; rest &= rest - 1) {
        size_t at;
        if (place_of(m, i, to[__builtin_ctz(rest)], &at, (size_t)i->what))
            memset(m->shared_known + at, 0, (size_t)i->what);
    }
}

void run_memory(machine *m, warp *w, const instruction *i, uint32_t lanes, uint32_t sure)
{
    if (i->op == DO_GLOBAL) return run_global(m, w, i, lanes, sure);
    if (i->op == DO_COPY) return run_copy(m, w, i, lanes);
    run_own(m, w, i, lanes, sure);
}
