/* Counter-based random numbers: Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
 * 1, 2, 3" (SC 2011). Number n of a stream is word n % 4 of the block with counter (n / 4, stream), so that any
 * number can be had without those before it, on any thread, the same on every machine. */
#include "base/base.h"

#define ROUNDS 10

/* Multipliers and Weyl constants of section 4.3 of the paper. */
#define MULTIPLY_0 0xD2511F53u
#define MULTIPLY_1 0xCD9E8D57u
#define WEYL_0     0x9E3779B9u /* golden ratio */
#define WEYL_1     0xBB67AE85u /* sqrt(3) - 1 */

void xph_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t p0 = (uint64_t)MULTIPLY_0 * c0, p1 = (uint64_t)MULTIPLY_1 * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        k0 += WEYL_0;
        k1 += WEYL_1;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

static void block(const xph_rng *rng, uint32_t out[4])
{
    uint64_t n = rng->position / 4;
    const uint32_t counter[4] = {(uint32_t)n, (uint32_t)(n >> 32), (uint32_t)rng->stream,
                                 (uint32_t)(rng->stream >> 32)};
    const uint32_t key[2] = {(uint32_t)rng->seed, (uint32_t)(rng->seed >> 32)};
    xph_philox(counter, key, out);
}

uint32_t xph_rng_u32(xph_rng *rng)
{
    uint32_t out[4];
    block(rng, out);
    return out[rng->position++ % 4];
}

uint64_t xph_rng_u64(xph_rng *rng)
{
    uint64_t low = xph_rng_u32(rng), high = xph_rng_u32(rng);
    return low | high << 32;
}

uint64_t xph_rng_below(xph_rng *rng, uint64_t bound)
{
    /* 2^64 mod bound numbers at the bottom are rejected; what is left is a multiple of bound long. */
    uint64_t rejected = (0 - bound) % bound;
    for (;;) {
        uint64_t x = xph_rng_u64(rng);
        if (x >= rejected) return x % bound;
    }
}

double xph_rng_double(xph_rng *rng)
{
    return (double)(xph_rng_u64(rng) >> 11) * 0x1p-53;
}

/* The odd multiples of 2^-24: all exact in float, none of them 0 or 1. */
float xph_rng_float(xph_rng *rng)
{
    return (float)((xph_rng_u32(rng) >> 9) * 2 + 1) * 0x1p-24f;
}
