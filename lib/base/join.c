/* Things with equal keys, joined: a forest in which a thing points to a lesser one, the roots to themselves (union-find with
 * path halving, Tarjan & van Leeuwen, J. ACM 31, 1984). Keys are looked up as in set.c. */
#include "base/base.h"

exphil_status xph_join_begin(exphil_context *context, int64_t count, xph_join *join, exphil_error *error)
{
    *join = (xph_join){.context = context, .count = count, .capacity = 16};
    join->salt = xph_salt(join);
    while (join->capacity < 2 * count) join->capacity *= 2;
    size_t least = (size_t)count * sizeof *join->least, first = (size_t)join->capacity * sizeof *join->first;
    join->least = xph_alloc(context, least);
    join->first = xph_alloc(context, first);
    if (!join->least || !join->first) {
        xph_join_free(join);
        return xph_no_memory(least + first, error);
    }
    for (int64_t i = 0; i < count; i++) join->least[i] = (uint32_t)i;
    return EXPHIL_OK;
}

void xph_join_free(xph_join *join)
{
    if (!join->context) return;
    xph_free(join->context, join->least, (size_t)join->count * sizeof *join->least);
    xph_free(join->context, join->first, (size_t)join->capacity * sizeof *join->first);
    join->least = join->first = NULL;
}

int64_t xph_joined(xph_join *join, int64_t i)
{
    uint32_t *least = join->least, at = (uint32_t)i;
    while (least[at] != at) at = least[at] = least[least[at]];
    return at;
}

static void join_two(xph_join *join, int64_t a, int64_t b)
{
    int64_t one = xph_joined(join, a), other = xph_joined(join, b);
    if (one < other)
        join->least[other] = (uint32_t)one;
    else
        join->least[one] = (uint32_t)other;
}

void xph_join_equal(xph_join *join, const uint64_t *keys)
{
    uint64_t mask = (uint64_t)join->capacity - 1;
    memset(join->first, 0, (size_t)join->capacity * sizeof *join->first);
    for (int64_t i = 0; i < join->count; i++) {
        if (!keys[i]) continue;
        uint64_t at = xph_mix(keys[i] ^ join->salt) & mask;
        while (join->first[at] && keys[join->first[at] - 1] != keys[i]) at = (at + 1) & mask;
        if (join->first[at])
            join_two(join, join->first[at] - 1, i);
        else
            join->first[at] = (uint32_t)i + 1;
    }
}
