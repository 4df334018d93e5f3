/* Sums of one row in registers: lane i of LANES takes the elements i, i + LANES, ... in order, then halves are joined
 * (i with i + 8, + 4, + 2, + 1). The lanes are the same in all sets, however many registers hold them, so the results
 * are too. */
#ifndef XPH_CPU_SIMD_LANES_H
#define XPH_CPU_SIMD_LANES_H

#include "cpu/simd/vec.h"

enum { LANES = 16, LANE_VECS = LANES / VEC };

/* Registers joined to one; its lanes are still to be summed. */
XPH_INLINE vec join_vecs(const vec *lane)
{
    vec half[LANE_VECS > 1 ? LANE_VECS / 2 : 1];
    if (LANE_VECS == 1) return lane[0];
    XPH_UNROLL
    for (int i = 0; i < LANE_VECS / 2; i++) half[i] = lane[i] + lane[LANE_VECS / 2 + i];
    for (int count = LANE_VECS / 4; count > 0; count /= 2)
        for (int i = 0; i < count; i++) half[i] += half[i + count];
    return half[0];
}

/* The LANES numbers in lane[0..LANE_VECS) joined. */
XPH_INLINE real join_lanes(const vec *lane)
{
    return vec_sum(join_vecs(lane));
}

/* The largest of them; none is NaN. */
XPH_INLINE real top_of_lanes(const vec *lane)
{
    vec most = lane[0];
    XPH_UNROLL
    for (int i = 1; i < LANE_VECS; i++) most = vec_max(most, lane[i]);
    return vec_top(most);
}

#endif
