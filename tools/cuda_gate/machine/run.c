/* Control: the warps of a block from barrier to barrier, and the lanes of a warp as groups that part at jumps and come together
 * again where the code says. */
#include "machine.h"

#include <string.h>

typedef struct turn {
    uint32_t lanes, sure; /* that may run an instruction; that certainly do */
} turn;

static turn turn_of(const warp *w, const instruction *i, uint32_t mask)
{
    const operand guard = {.kind = PREDICATE, .number = i->guard, .flags = i->guard_flags};
    uint32_t known;
    const uint32_t value = predicate_read(w, &guard, &known);
    return (turn){mask & (value | ~known), mask & value & known};
}

/* ---- groups ---- */

static void add_group(warp *w, uint32_t mask, int at)
{
    w->groups[w->group_count++] = (group){.mask = mask, .at = at};
}

static void drop_group(warp *w, group *g)
{
    *g = w->groups[--w->group_count];
}

static group *next_group(warp *w)
{
    group *best = NULL;
    for (group *g = w->groups; g < w->groups + w->group_count; g++)
        if (g->state == RUNS && (!best || g->at < best->at)) best = g;
    return best;
}

static uint32_t waiting_at(const warp *w, int at)
{
    uint32_t mask = 0;
    for (const group *g = w->groups; g < w->groups + w->group_count; g++)
        if (g->state == AT_SYNC && g->at == at) mask |= g->mask;
    return mask;
}

/* Goes on as one group from the instruction behind. */
static void join(warp *w, int at)
{
    const uint32_t mask = waiting_at(w, at);
    for (int k = w->group_count - 1; k >= 0; k--)
        if (w->groups[k].state == AT_SYNC && w->groups[k].at == at) drop_group(w, &w->groups[k]);
    add_group(w, mask, at + 1);
}

static void join_all(warp *w)
{
    for (bool again = true; again;) {
        again = false;
        for (int k = 0; k < w->group_count && !again; k++) {
            const group *g = &w->groups[k];
            if (g->state != AT_SYNC || g->wanted & w->live & ~waiting_at(w, g->at)) continue;
            join(w, g->at);
            again = true;
        }
    }
}

static void wait_for(warp *w, group *g, uint32_t wanted)
{
    g->state = AT_SYNC;
    g->wanted = wanted;
    join_all(w);
}

/* ---- jumps ---- */

/* Lanes that jump: those that certainly do, and by rule those whose predicate is not known. */
static uint32_t jumping(machine *m, warp *w, const instruction *i, uint32_t mask)
{
    account *a = &m->accounts[i - m->launch->kernel->code];
    turn t = turn_of(w, i, mask);
    for (int k = 0; k < i->count; k++)
        if (i->operands[k].kind == PREDICATE) {
            uint32_t known;
            const uint32_t value = predicate_read(w, &i->operands[k], &known);
            t.lanes &= value | ~known, t.sure &= value & known;
        }
    const uint32_t unknown = t.lanes & ~t.sure;
    if (!unknown) return t.sure;
    *(i->rule ? &a->taken : &a->passed) += __builtin_popcount(unknown);
    return i->rule ? t.lanes : t.sure;
}

static int target_of(const machine *m, const instruction *i)
{
    for (int k = 0; k < i->count; k++)
        if (i->operands[k].kind == TARGET) return (int)i->operands[k].value;
    machine_fail(m, i, "has no target");
}

static void run_bra(machine *m, warp *w, const instruction *i, group *g)
{
    const uint32_t jump = i->flags & OP_DIV ? 0 : jumping(m, w, i, g->mask);
    if (!jump) {
        g->at++;
    } else if (jump == g->mask) {
        g->at = target_of(m, i);
    } else {
        g->mask &= ~jump;
        g->at++;
        add_group(w, jump, target_of(m, i));
    }
}

/* The address to go back to is a place in the code, in a register. */
static void run_ret(machine *m, const warp *w, const instruction *i, group *g)
{
    uint32_t values[LANES];
    const uint32_t known = operand_read(m, w, i, &i->operands[0], values);
    const int first = __builtin_ctz(g->mask);
    if (!(known >> first & 1)) machine_fail(m, i, "goes back to a place that is not known");
    g->at = (int)(values[first] / 16);
    if (g->at >= m->launch->kernel->count) machine_fail(m, i, "goes back to no place of the kernel");
}

static void run_exit(machine *m, warp *w, const instruction *i, group *g)
{
    const uint32_t gone = jumping(m, w, i, g->mask);
    w->live &= ~gone;
    g->mask &= ~gone;
    g->at++;
    if (!g->mask) drop_group(w, g);
    if (gone) join_all(w);
}

static void run_break(warp *w, const instruction *i, group *g)
{
    const int number = i->operands[i->count - 1].number;
    const uint32_t out = turn_of(w, i, g->mask).sure;
    for (int lane = 0; lane < LANES; lane++) w->barrier[number][lane] &= ~out;
    for (group *other = w->groups; other < w->groups + w->group_count; other++)
        if (other->state == AT_SYNC) other->wanted &= ~out;
    g->at++;
    join_all(w);
}

static void run_bssy(warp *w, const instruction *i, group *g)
{
    for (int lane = 0; lane < LANES; lane++)
        if (g->mask >> lane & 1) w->barrier[i->operands[0].number][lane] = g->mask;
    g->at++;
}

static void run_warpsync(warp *w, const instruction *i, group *g)
{
    if (i->flags & OP_ALL && turn_of(w, i, g->mask).sure == g->mask)
        wait_for(w, g, w->live);
    else
        g->at++;
}

/* With a number of threads it is for some of the warps; they are taken to be there. */
static void run_bar(warp *w, const instruction *i, group *g)
{
    (void)w;
    if (i->what)
        g->at++;
    else
        g->state = AT_BARRIER;
}

static bool run_control(machine *m, warp *w, const instruction *i, group *g)
{
    switch (i->op) {
    case DO_BRA:
        run_bra(m, w, i, g);
        return true;
    case DO_CALL:
        g->at = target_of(m, i);
        return true;
    case DO_RET:
        run_ret(m, w, i, g);
        return true;
    case DO_EXIT:
        run_exit(m, w, i, g);
        return true;
    case DO_BSSY:
        run_bssy(w, i, g);
        return true;
    case DO_BSYNC:
        wait_for(w, g, w->barrier[i->operands[0].number][__builtin_ctz(g->mask)]);
        return true;
    case DO_BREAK:
        run_break(w, i, g);
        return true;
    case DO_BAR:
        run_bar(w, i, g);
        return true;
    case DO_WARPSYNC:
        run_warpsync(w, i, g);
        return true;
    default:
        return false;
    }
}

/* ---- instructions ---- */

static void forget_results(warp *w, const instruction *i, uint32_t lanes)
{
    for (int k = 0; k < i->count; k++) {
        const operand *o = &i->operands[k];
        if (o->kind == REGISTER) {
            register_forget(w, o->number, i->what, lanes);
            return;
        }
        if (o->kind == PREDICATE) predicate_write(w, o->number, lanes, 0, 0);
    }
}

static void run_plain(machine *m, warp *w, const instruction *i, uint32_t mask)
{
    const bool wide = i->flags & OP_UNIFORM && i->op != DO_VOTE;
    const turn t = turn_of(w, i, wide ? ALL : mask);
    if (!t.lanes) return;
    if (i->op == DO_UNKNOWN || i->op == DO_MATRIX)
        forget_results(w, i, t.lanes);
    else if (i->op == DO_GLOBAL || i->op == DO_SHARED || i->op == DO_LOCAL || i->op == DO_COPY)
        run_memory(m, w, i, t.lanes, t.sure);
    else if (i->op >= DO_PLOP3 && i->op != DO_PRMT && i->op <= DO_SHFL)
        run_logic(m, w, i, t.lanes, t.sure);
    else if (i->op != DO_NOTHING)
        run_integer(m, w, i, t.lanes, t.sure);
}

static void run_group(machine *m, warp *w, group *g)
{
    const kernel *k = m->launch->kernel;
    const int count = w->group_count;
    while (g->state == RUNS && w->group_count == count) {
        if (g->at >= k->count) machine_fail(m, &k->code[k->count - 1], "is not the end");
        const instruction *i = &k->code[g->at];
        m->accounts[g->at].executed++;
        w->executed++;
        if (--m->left < 0) machine_fail(m, i, "runs without end");
        const bool jumps = i->op >= DO_BRA && i->op <= DO_WARPSYNC;
        if (jumps && run_control(m, w, i, g)) {
            if (i->op != DO_BRA && i->op != DO_BSSY && i->op != DO_CALL && i->op != DO_RET) return;
            continue;
        }
        run_plain(m, w, i, g->mask);
        g->at++;
    }
}

static void begin_warp(const machine *m, warp *w, unsigned index)
{
    const unsigned threads = m->launch->block[0] * m->launch->block[1] * m->launch->block[2];
    const unsigned left = threads - index * LANES;
    memset(w, 0, sizeof *w);
    w->index = index;
    w->live = left >= LANES ? ALL : (1u << left) - 1;
    /* What is in a register that nothing was written to does not matter; bits of it are set one by one. */
    for (int i = 0; i < REGISTERS; i++) w->known[i] = ALL;
    w->predicate[PT] = w->predicate[PREDICATES - 1] = ALL;
    w->predicate_known[PT] = w->predicate_known[PREDICATES - 1] = ALL;
    add_group(w, w->live, 0);
}

/* All live lanes of the block are at the barrier: they go on, those of a warp that are at one place together. */
static bool release_barrier(machine *m)
{
    for (unsigned k = 0; k < m->warp_count; k++)
        for (int g = 0; g < m->warps[k].group_count; g++)
            if (m->warps[k].groups[g].state != AT_BARRIER) return false;
    bool any = false;
    for (unsigned k = 0; k < m->warp_count; k++) {
        warp *w = &m->warps[k];
        for (int g = 0; g < w->group_count; g++) {
            w->groups[g].state = RUNS;
            w->groups[g].at++;
            any = true;
            for (int other = w->group_count - 1; other > g; other--)
                if (w->groups[other].state == AT_BARRIER && w->groups[other].at + 1 == w->groups[g].at) {
                    w->groups[g].mask |= w->groups[other].mask;
                    drop_group(w, &w->groups[other]);
                }
        }
    }
    return any;
}

void run_block(machine *m)
{
    const unsigned threads = m->launch->block[0] * m->launch->block[1] * m->launch->block[2];
    m->warp_count = (threads + LANES - 1) / LANES;
    memset(m->shared_known, 0, sizeof m->shared_known);
    for (unsigned k = 0; k < m->warp_count; k++) begin_warp(m, &m->warps[k], k);
    do {
        for (unsigned k = 0; k < m->warp_count; k++)
            for (group *g; (g = next_group(&m->warps[k]));) run_group(m, &m->warps[k], g);
    } while (release_barrier(m));
    for (unsigned k = 0; k < m->warp_count; k++)
        if (m->warps[k].live)
            machine_fail(m, &m->launch->kernel->code[m->warps[k].groups[0].at],
                         "is where lanes wait for others");
}
