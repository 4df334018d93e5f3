/* What the selective scan and its gradient share: groups of channels and the recurrence itself.
 *
 * Work is done on groups of at most GROUP blocks of LANES channels of one stream; channels lie in the lanes
 * of registers. A matrix [channels][N] is transposed to [block][N][LANES], N padded with zeros to a multiple
 * of CHAINS; channels beyond the width compute on zeros. The decay exp(-delta A) with A = exp(a_log) is
 * 2^(-delta A log2(e)); the rates A log2(e) are made once per group, or came prepared. A sum over the states
 * runs in CHAINS chains, state n in chain n % CHAINS, which are then joined: (0 + 2) + (1 + 3).
 */
#ifndef XPH_CPU_KERNELS_SCAN_BLOCK_H
#define XPH_CPU_KERNELS_SCAN_BLOCK_H

#include "cpu/kernels/real.h"
#include "cpu/simd/columns.h"
#include "cpu/simd/lanes.h"
#include "cpu/simd/vec_element.h"

enum {
    CHAINS = 4,
    GROUP = 4,                  /* blocks; so that a visit to a row takes more than a line of the cache */
    WIDE = GROUP * LANES,       /* channels of a group */
    COLUMN = VEC_ABREAST * VEC, /* channels that are taken through the frames together */
    CHUNK = 16,                 /* frames whose functions are taken together, beside the recurrence */
    MOST_STATES = 256           /* of a frame; some rows lie on the stack */
};

#define LOG2_E R(1.44269504088896340736)
#define LN_2   R(0.69314718055994530942)

/* Up to GROUP blocks of one stream: count channels from `channel` on. */
typedef struct group {
    const xph_scan_args *a;
    int64_t stream, channel, count, blocks;
    int64_t states; /* filled up */
} group;

XPH_INLINE int64_t filled_states(const xph_scan_args *a)
{
    return blocks_of(a->states, CHAINS) * CHAINS;
}

/* Blocks of a group: with many states fewer. */
XPH_INLINE int64_t blocks_per_group(const xph_scan_args *a)
{
    return int_max(1, int_min(GROUP, MOST_STATES / filled_states(a)));
}

/* Groups of a stream. */
XPH_INLINE int64_t groups_of(const xph_scan_args *a)
{
    return blocks_of(a->width, blocks_per_group(a) * LANES);
}

XPH_INLINE group group_at(const xph_scan_args *a, int64_t stream, int64_t number)
{
    int64_t most = blocks_per_group(a) * LANES, channel = number * most;
    int64_t count = int_min(most, a->width - channel);
    return (group){a, stream, channel, count, blocks_of(count, LANES), filled_states(a)};
}

XPH_INLINE bool scan_fits(const xph_scan_args *a)
{
    return a->states >= 1 && a->states <= MOST_STATES;
}

XPH_INLINE int64_t row_of(const group *g, int64_t t)
{
    return g->stream * g->a->time + t;
}

XPH_INLINE bool resets(const group *g, int64_t t)
{
    return g->a->reset && g->a->reset[row_of(g, t)];
}

/* Reals of a transposed matrix of the group. */
XPH_INLINE int64_t transposed_size(const group *g)
{
    return g->blocks * g->states * LANES;
}

/* VEC channels from c on of the group's part of a row of a [rows][ld] matrix; beyond the group zeros. */
XPH_INLINE vec row_load(const group *g, const void *matrix, int64_t ld, int64_t row, int64_t c)
{
    const real *from = (const real *)matrix + row * ld + g->channel + c;
    return c + VEC <= g->count ? vec_load(from) : vec_load_part(from, g->count - c);
}

/* COLUMN channels; full, a constant: the group has WIDE. */
XPH_INLINE void row_column(const group *g, vec v[VEC_ABREAST], const void *matrix, int64_t ld, int64_t row,
                           int64_t c, const bool full)
{
    const real *from = (const real *)matrix + row * ld + g->channel + c;
    EACH_VEC(i, VEC_ABREAST)
    v[i] = full ? vec_load(from + i * VEC) : row_load(g, matrix, ld, row, c + i * VEC);
}

/* The step of a row before softplus. */
XPH_INLINE vec step_load(const group *g, int64_t row, int64_t c)
{
    const xph_scan_args *a = g->a;
    const vec dt = row_load(g, a->dt, a->lddt, row, c);
    return a->delta_bias ? dt + row_load(g, a->delta_bias, 0, 0, c) : dt;
}

/* The step itself; plain (args.plain_delta) is a constant of the caller. */
XPH_INLINE vec step_of(const group *g, int64_t row, int64_t c, const bool plain)
{
    const vec dt = step_load(g, row, c);
    return plain ? dt : vec_softplus(dt);
}

XPH_INLINE void row_store(const group *g, void *matrix, int64_t ld, int64_t row, int64_t c, vec v)
{
    real *to = (real *)matrix + row * ld + g->channel + c;
    if (c + VEC <= g->count)
        vec_store(to, v);
    else
        vec_store_part(to, v, g->count - c);
}

XPH_INLINE void row_column_store(const group *g, void *matrix, int64_t ld, int64_t row, int64_t c,
                                 const vec v[VEC_ABREAST], const bool full)
{
    real *to = (real *)matrix + row * ld + g->channel + c;
    EACH_VEC(i, VEC_ABREAST)
    {
        if (full)
            vec_store(to + i * VEC, v[i]);
        else
            row_store(g, matrix, ld, row, c + i * VEC, v[i]);
    }
}

/* ---- matrices transposed ---- */

/* The group's part of a [channels][N] matrix, transposed; NULL: zeros. */
XPH_INLINE void transpose_in(const group *g, real *transposed, const real *matrix)
{
    int64_t states = g->a->states, block = g->states * LANES;
    if (!matrix || g->count % LANES || states != g->states)
        memset(transposed, 0, (size_t)transposed_size(g) * sizeof(real));
    for (int64_t c = 0; matrix && c < g->count; c += LANES)
        transpose(transposed + c / LANES * block, LANES, matrix + (g->channel + c) * states, states,
                  int_min(LANES, g->count - c), states);
}

XPH_INLINE void transpose_out(const group *g, real *matrix, const real *transposed)
{
    int64_t states = g->a->states, block = g->states * LANES;
    for (int64_t c = 0; matrix && c < g->count; c += LANES)
        transpose(matrix + (g->channel + c) * states, states, transposed + c / LANES * block, LANES, states,
                  int_min(LANES, g->count - c));
}

XPH_INLINE real *state_of(const group *g, const void *states)
{
    return states ? (real *)(uintptr_t)states + g->stream * g->a->ld_state : NULL;
}

XPH_INLINE vec rate_of(vec a_log)
{
    return vec_exp(a_log) * vec_all(LOG2_E);
}

/* Of state n where they are fixed. */
XPH_INLINE real fixed_rate(int64_t n)
{
    return (real)(n + 1) * LOG2_E;
}

/* A log2(e), transposed. */
XPH_INLINE void rates_of(const group *g, real *rates)
{
    if (g->a->fixed) {
        for (int64_t i = 0; i < transposed_size(g); i += VEC)
            vec_store(rates + i, vec_all(fixed_rate(i / LANES % g->states)));
        return;
    }
    transpose_in(g, rates, g->a->decay ? g->a->decay : g->a->a_log);
    if (g->a->decay && !g->a->plain_a) return;
    for (int64_t i = 0; i < transposed_size(g); i += VEC) {
        const vec x = vec_load(rates + i);
        vec_store(rates + i, g->a->plain_a ? -x : rate_of(x));
    }
}

/* limits[channel]: steps up to this need no look at the end of exp2's range. */
XPH_INLINE void limits_of(const group *g, const real *rates, real *limits)
{
    for (int64_t c = 0; c < g->blocks * LANES; c += VEC) {
        const real *from = rates + c / LANES * g->states * LANES + c % LANES;
        vec most[CHAINS] = {{0}};
        for (int64_t n = 0; n < g->states; n += CHAINS) {
            XPH_UNROLL
            for (int64_t j = 0; j < CHAINS; j++) most[j] = vec_max(vec_load(from + (n + j) * LANES), most[j]);
        }
        vec_store(limits + c,
                  vec_all(R(125.0)) / vec_max(vec_max(most[0], most[1]), vec_max(most[2], most[3])));
    }
}

/* Whether no step of a column leads out of exp2's range, where it pays to look. */
XPH_INLINE bool all_near(const real *delta, const real *limits)
{
    bool near = VEC_NEAR_PAYS;
    EACH_VEC(i, VEC_ABREAST)
    near = near && vec_all_at_most(vec_load(delta + i * VEC), vec_load(limits + i * VEC));
    return near;
}

/* ---- the recurrence ---- */

/* Where one column of COLUMN channels stands: its part of what the functions of a frame gave, of rates and of
 * states; b and c of the frame. */
typedef struct column {
    const real *delta, *inflow, *rates, *limits, *b, *c;
    const real *before;
    real *after, *decays, *sum; /* after may be before */
} column;

/* What is wanted of a frame besides the state. */
typedef enum { ONLY_STATES, SUMS, SUMS_AND_DECAYS } frame_outputs;

/* `count` states of one chain from n on: after = decay before + delta x b, sum += c after. */
XPH_INLINE void advance_states(const column *k, int64_t n, const int64_t count, const vec fall[VEC_ABREAST],
                               const vec inflow[VEC_ABREAST], vec sum[VEC_ABREAST], bool near,
                               const frame_outputs wanted)
{
    vec x[MOST_ABREAST];
    EACH_VEC(i, count * VEC_ABREAST)
    {
        const int64_t at = (n + i / VEC_ABREAST * CHAINS) * LANES + i % VEC_ABREAST * VEC;
        x[i] = fall[i % VEC_ABREAST] * vec_load(k->rates + at);
    }
    vecs_exp2_falling(x, count * VEC_ABREAST, near);
    EACH_VEC(i, count * VEC_ABREAST)
    {
        const int64_t state = n + i / VEC_ABREAST * CHAINS, v = i % VEC_ABREAST, at = state * LANES + v * VEC;
        vec next = vec_fma(x[i], vec_load(k->before + at), inflow[v] * vec_all(k->b[state]));
        if (wanted == SUMS_AND_DECAYS) vec_store(k->decays + at, x[i]);
        vec_store(k->after + at, next);
        if (wanted != ONLY_STATES) sum[v] = vec_fma(vec_all(k->c[state]), next, sum[v]);
    }
}

/* Straight runs of STRAIGHT states: a loop's end that is mispredicted costs as much as some of them. Where states are
 * taken side by side a chain comes after the other, so that few sums are under way. */
enum { STRAIGHT = 16, OF_CHAIN = STRAIGHT / CHAINS };
XPH_INLINE void advance_all(const column *k, int64_t states, bool near, const frame_outputs wanted)
{
    vec fall[VEC_ABREAST], inflow[VEC_ABREAST], sum[CHAINS][VEC_ABREAST] = {{{0}}};
    int64_t n = 0;
    EACH_VEC(i, VEC_ABREAST) fall[i] = -vec_load(k->delta + i * VEC);
    EACH_VEC(i, VEC_ABREAST) inflow[i] = vec_load(k->inflow + i * VEC);
    for (; n + STRAIGHT <= states; n += STRAIGHT) {
        XPH_UNROLL
        for (int64_t j = 0; j < STRAIGHT; j += VEC_ABREAST) {
            int64_t at = VEC_ABREAST == 1 ? j : j / OF_CHAIN + j % OF_CHAIN * CHAINS;
            advance_states(k, n + at, VEC_ABREAST, fall, inflow, sum[at % CHAINS], near, wanted);
        }
    }
    for (; n < states; n += CHAINS) {
        XPH_UNROLL
        for (int64_t j = 0; j < CHAINS; j++) advance_states(k, n + j, 1, fall, inflow, sum[j], near, wanted);
    }
    if (wanted == ONLY_STATES) return;
    EACH_VEC(i, VEC_ABREAST)
    vec_store(k->sum + i * VEC, (sum[0][i] + sum[2][i]) + (sum[1][i] + sum[3][i]));
}

/* One frame: after = decay before + delta x b, sum = sum_n c[n] after[n]. */
XPH_INLINE void advance(const column *k, int64_t states, const frame_outputs wanted)
{
    if (all_near(k->delta, k->limits))
        advance_all(k, states, true, wanted);
    else
        advance_all(k, states, false, wanted);
}

/* b or c of a frame; where N must be filled up, in `buffer`. */
XPH_INLINE const real *filled_row(const group *g, const real *row, real buffer[MOST_STATES])
{
    if (g->states == g->a->states) return row;
    memset(buffer + g->a->states, 0, (size_t)(g->states - g->a->states) * sizeof(real));
    memcpy(buffer, row, (size_t)g->a->states * sizeof(real));
    return buffer;
}
XPH_INLINE const real *frame_row(const group *g, const void *matrix, int64_t ld, int64_t t,
                                 real buffer[MOST_STATES])
{
    return filled_row(g, (const real *)matrix + row_of(g, t) * ld, buffer);
}

#endif
