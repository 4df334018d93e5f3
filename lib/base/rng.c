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
static float unit_float(uint32_t bits)
{
    return (float)(int32_t)((bits >> 9) * 2 + 1) * 0x1p-24f;
}

float xph_rng_float(xph_rng *rng)
{
    return unit_float(xph_rng_u32(rng));
}

#define BLOCKS 8 /* side by side: a product takes long, but many may be under way */

#if defined(__SSE2__)
#  include <emmintrin.h>

#  define PAIRS (BLOCKS / 2)

/* Words of two blocks, each in the low half of a place of 64 bits. What stands in the high halves is never used:
 * products read the low ones. */
typedef struct pair {
    __m128i word[4];
} pair;

static void pair_round(pair *p, __m128i k0, __m128i k1)
{
    __m128i p0 = _mm_mul_epu32(p->word[0], _mm_set1_epi64x(MULTIPLY_0));
    __m128i p1 = _mm_mul_epu32(p->word[2], _mm_set1_epi64x(MULTIPLY_1));
    p->word[0] = _mm_xor_si128(_mm_xor_si128(_mm_srli_epi64(p1, 32), p->word[1]), k0);
    p->word[2] = _mm_xor_si128(_mm_xor_si128(_mm_srli_epi64(p0, 32), p->word[3]), k1);
    p->word[1] = p1;
    p->word[3] = p0;
}

static __m128i both(uint64_t first, uint64_t second)
{
    return _mm_set_epi64x((int64_t)second, (int64_t)first);
}

/* The BLOCKS blocks from block n on. */
static void many_blocks(const xph_rng *rng, uint64_t n, uint32_t to[4 * BLOCKS])
{
    pair p[PAIRS];
    uint32_t k0 = (uint32_t)rng->seed, k1 = (uint32_t)(rng->seed >> 32);
    for (uint64_t i = 0; i < PAIRS; i++) {
        uint64_t at = n + 2 * i;
        p[i].word[0] = both(at, at + 1);
        p[i].word[1] = both(at >> 32, (at + 1) >> 32);
        p[i].word[2] = _mm_set1_epi64x((int64_t)rng->stream);
        p[i].word[3] = _mm_set1_epi64x((int64_t)(rng->stream >> 32));
    }
    for (int round = 0; round < ROUNDS; round++, k0 += WEYL_0, k1 += WEYL_1)
        for (int i = 0; i < PAIRS; i++) pair_round(&p[i], _mm_set1_epi64x(k0), _mm_set1_epi64x(k1));
    for (size_t i = 0; i < PAIRS; i++) {
        __m128i low = _mm_unpacklo_epi32(p[i].word[0], p[i].word[1]),
                high = _mm_unpackhi_epi32(p[i].word[0], p[i].word[1]);
        __m128i low2 = _mm_unpacklo_epi32(p[i].word[2], p[i].word[3]),
                high2 = _mm_unpackhi_epi32(p[i].word[2], p[i].word[3]);
        _mm_storeu_si128((__m128i *)(void *)(to + 8 * i), _mm_unpacklo_epi64(low, low2));
        _mm_storeu_si128((__m128i *)(void *)(to + 8 * i + 4), _mm_unpacklo_epi64(high, high2));
    }
}
#else
static void many_blocks(const xph_rng *rng, uint64_t n, uint32_t to[4 * BLOCKS])
{
    for (uint64_t i = 0; i < BLOCKS; i++) {
        const xph_rng at = {rng->seed, rng->stream, 4 * (n + i)};
        block(&at, to + 4 * i);
    }
}
#endif

void xph_rng_floats(xph_rng *rng, float *to, int64_t count)
{
    while (count > 0) {
        uint32_t drawn[4 * BLOCKS];
        int64_t skipped = (int64_t)(rng->position % 4), left = (int64_t)4 * BLOCKS - skipped;
        int64_t taken = left < count ? left : count;
        many_blocks(rng, rng->position / 4, drawn);
        for (int64_t i = 0; i < taken; i++) to[i] = unit_float(drawn[skipped + i]);
        rng->position += (uint64_t)taken;
        to += taken;
        count -= taken;
    }
}
