/* Which simulation of a frame counts. Netplay simulates frames again. Usually the list is ascending apart
 * from a few steps back; in a damaged file it can be in any order, and sorting must stay linear. */
#include "melee/slp_internal.h"

enum { DIGIT_BITS = 7, DIGITS = 1 << DIGIT_BITS, PASSES = 3 }; /* 2^21 > 2 * EXPHIL_SLP_FRAME_LIMIT */

_Static_assert(2 * EXPHIL_SLP_FRAME_LIMIT < 1 << (DIGIT_BITS * PASSES),
               "every frame index needs its own key");

static size_t digit_of(const struct xph_slp_instance *instance, int pass)
{
    uint32_t key = (uint32_t)(instance->frame + EXPHIL_SLP_FRAME_LIMIT);
    return key >> (DIGIT_BITS * pass) & (DIGITS - 1);
}

/* Stable counting sort by one digit. */
static void sort_pass(const struct xph_slp_instance *from, struct xph_slp_instance *to, size_t count,
                      int pass)
{
    uint32_t place[DIGITS] = {0};
    for (size_t i = 0; i < count; i++) place[digit_of(&from[i], pass)]++;
    uint32_t sum = 0;
    for (size_t d = 0; d < DIGITS; d++) {
        uint32_t here = place[d];
        place[d] = sum;
        sum += here;
    }
    for (size_t i = 0; i < count; i++) to[place[digit_of(&from[i], pass)]++] = from[i];
}

static bool ascending(const struct xph_slp_instance *instances, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (instances[i].frame <= instances[i - 1].frame) return false;
    return true;
}

static size_t keep_one(struct xph_slp_instance *instances, size_t count, bool last)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        bool again = kept > 0 && instances[kept - 1].frame == instances[i].frame;
        if (!again)
            instances[kept++] = instances[i];
        else if (last)
            instances[kept - 1] = instances[i];
    }
    return kept;
}

exphil_status xph_slp_select(exphil_context *context, struct xph_slp_instance *instances, size_t *count,
                             int32_t rollback, exphil_error *error)
{
    if (rollback == EXPHIL_SLP_ALL || ascending(instances, *count)) return EXPHIL_OK;
    size_t bytes = *count * sizeof *instances; /* the list itself is as long */
    struct xph_slp_instance *scratch = xph_alloc(context, bytes);
    if (!scratch) return xph_no_memory(bytes, error);
    sort_pass(instances, scratch, *count, 0);
    sort_pass(scratch, instances, *count, 1);
    sort_pass(instances, scratch, *count, 2);
    memcpy(instances, scratch, bytes);
    xph_free(context, scratch, bytes);
    *count = keep_one(instances, *count, rollback == EXPHIL_SLP_LAST);
    return EXPHIL_OK;
}
