/* Finds infinities and NaN in numbers of files and hosts by their bits, so that no compiler flag can remove
 * the check and no signalling NaN raises anything. */
#include "base/base.h"

/* Exponent all ones. */
static bool not_finite(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (bits & 0x7F800000u) == 0x7F800000u;
}

/* Pieces are looked at without a branch first: rows are nearly always fine, and this way they pass at memory speed. */
enum { PIECE = 1024 };

int64_t xph_find_not_finite(const float *values, int64_t count)
{
    for (int64_t from = 0; from < count; from += PIECE) {
        int64_t to = from + PIECE < count ? from + PIECE : count;
        uint32_t bad = 0;
        for (int64_t i = from; i < to; i++) bad |= not_finite(values[i]) ? ~0u : 0u;
        for (int64_t i = from; bad && i < to; i++) {
            if (not_finite(values[i])) return i;
        }
    }
    return -1;
}

/* Copied as bits. */
static bool copy_piece(float *restrict to, const float *restrict from, int64_t count)
{
    uint32_t bad = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, from + i, sizeof bits);
        memcpy(to + i, &bits, sizeof bits);
        bad |= (bits & 0x7F800000u) == 0x7F800000u ? ~0u : 0u;
    }
    return bad == 0;
}

int64_t xph_copy_finite(float *to, const float *from, int64_t count)
{
    bool fine = true;
    for (int64_t at = 0; at < count; at += PIECE)
        fine &= copy_piece(to + at, from + at, at + PIECE < count ? PIECE : count - at);
    return fine ? -1 : xph_find_not_finite(from, count);
}
