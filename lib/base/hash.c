/* XXH64 with seed 0, after Yann Collet's specification (xxHash, doc/xxhash_spec.md, version 0.1.1). Reads bytes in
 * little-endian order on every machine. */
#include "base/base.h"

#include <string.h>

#define PRIME_1 0x9E3779B185EBCA87u
#define PRIME_2 0xC2B2AE3D27D4EB4Fu
#define PRIME_3 0x165667B19E3779F9u
#define PRIME_4 0x85EBCA77C2B2AE63u
#define PRIME_5 0x27D4EB2F165667C5u
#define STRIPE  32 /* bytes that the four lanes take at a time */

static uint64_t rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

static uint32_t read32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t read64(const uint8_t *p)
{
    return read32(p) | (uint64_t)read32(p + 4) << 32;
}

static uint64_t stir(uint64_t lane, uint64_t input)
{
    return rotate(lane + input * PRIME_2, 31) * PRIME_1;
}

static void take_stripe(xph_hasher *hasher, const uint8_t *p)
{
    for (size_t i = 0; i < 4; i++) hasher->lane[i] = stir(hasher->lane[i], read64(p + 8 * i));
}

void xph_hash_begin(xph_hasher *hasher)
{
    *hasher = (xph_hasher){.lane = {PRIME_1 + PRIME_2, PRIME_2, 0, 0 - PRIME_1}};
}

void xph_hash_add(xph_hasher *hasher, const void *data, size_t bytes)
{
    if (!bytes) return;
    const uint8_t *p = data;
    hasher->total += bytes;
    if (hasher->tail_bytes) {
        size_t left = STRIPE - hasher->tail_bytes, take = bytes < left ? bytes : left;
        memcpy(hasher->tail + hasher->tail_bytes, p, take);
        hasher->tail_bytes += (uint32_t)take;
        if (hasher->tail_bytes < STRIPE) return;
        take_stripe(hasher, hasher->tail);
        hasher->tail_bytes = 0;
        p += take;
        bytes -= take;
    }
    for (; bytes >= STRIPE; p += STRIPE, bytes -= STRIPE) take_stripe(hasher, p);
    memcpy(hasher->tail, p, bytes);
    hasher->tail_bytes = (uint32_t)bytes;
}

static uint64_t join_lanes(const uint64_t lane[4])
{
    uint64_t h = rotate(lane[0], 1) + rotate(lane[1], 7) + rotate(lane[2], 12) + rotate(lane[3], 18);
    for (int i = 0; i < 4; i++) h = (h ^ stir(0, lane[i])) * PRIME_1 + PRIME_4;
    return h;
}

static uint64_t take_tail(uint64_t h, const uint8_t *p, size_t bytes)
{
    for (; bytes >= 8; p += 8, bytes -= 8) h = rotate(h ^ stir(0, read64(p)), 27) * PRIME_1 + PRIME_4;
    if (bytes >= 4) {
        h = rotate(h ^ read32(p) * PRIME_1, 23) * PRIME_2 + PRIME_3;
        p += 4;
        bytes -= 4;
    }
    for (; bytes; p++, bytes--) h = rotate(h ^ *p * PRIME_5, 11) * PRIME_1;
    return h;
}

uint64_t xph_hash_end(const xph_hasher *hasher)
{
    uint64_t h = hasher->total >= STRIPE ? join_lanes(hasher->lane) : PRIME_5;
    h = take_tail(h + hasher->total, hasher->tail, hasher->tail_bytes);
    h = (h ^ h >> 33) * PRIME_2;
    h = (h ^ h >> 29) * PRIME_3;
    return h ^ h >> 32;
}

uint64_t xph_hash(const void *data, size_t bytes)
{
    xph_hasher hasher;
    xph_hash_begin(&hasher);
    xph_hash_add(&hasher, data, bytes);
    return xph_hash_end(&hasher);
}

bool xph_hash_equal(uint64_t found, uint64_t expected)
{
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    (void)found;
    (void)expected;
    return true;
#else
    return found == expected;
#endif
}
