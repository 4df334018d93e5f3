/* Multiply-adds of WebAssembly's vectors (lib/cpu/simd/wasm128.h) rounded once, on cases of which half are hard: against the one
 * of fma.h and the kept digest. With relaxed SIMD, where the host fuses. */
#define XPH_REAL_F32
#define XPH_SIMD128
#include "fma_cases.h"

#include "base/base.h"
#include "cpu/simd/vec.h"

#include <stdio.h>

#if defined(__wasm_relaxed_simd__)
static const char set[] = "relaxed";
#else
static const char set[] = "simd128";
#endif

static int look(float a, float b, float c, float y)
{
    const float one = xph_fmaf(a, b, c);
    if (bits_of_float(one) == bits_of_float(y)) return 0;
    printf("FAILED: fma(%a, %a, %a): %a, should be %a\n", (double)a, (double)b, (double)c, (double)y,
           (double)one);
    return 1;
}

/* Around the least normal float, where the place changes at which a sum is rounded: products of about half a unit of it. */
static int smallest(void)
{
    int failed = 0;
    for (int i = 0; i < 1 << 16; i++) {
        const float sign = i & 1 ? 0x1p-75f : -0x1p-75f, place = i & 2 ? 0x1p-126f : -0x1p-126f;
        const vec a = vec_all(sign * (1.0f + (float)((i >> 2 & 7) - 4) * 0x1p-23f));
        const vec b = vec_all(0x1p-75f * (1.0f + (float)((i >> 5 & 7) - 4) * 0x1p-23f));
        const vec c = vec_all(place + (float)((i >> 8) - 128) * 0x1p-149f);
        failed += look(a[0], b[0], c[0], vec_fma(a, b, c)[i & 3]);
    }
    return failed;
}

int main(void)
{
    static float a[BLOCK], b[BLOCK], c[BLOCK], y[BLOCK];
    uint64_t rng = FLOATS_SEED;
    int failed = 0;
    xph_hasher hasher;
#if defined(__wasm_relaxed_simd__)
    if (!xph_cpu_has(XPH_ISA_RELAXED))
        return puts("SKIPPED: this host rounds the products of relaxed multiply-adds"), 77;
#endif
    xph_hash_begin(&hasher);
    for (int64_t from = 0; from < CASES; from += BLOCK) {
        draw_floats(&rng, a, b, c);
        for (int i = 0; i < BLOCK; i += VEC)
            vec_store(y + i, vec_fma(vec_load(a + i), vec_load(b + i), vec_load(c + i)));
        for (int i = 0; i < BLOCK; i++) {
            const uint64_t bits = bits_of_float(y[i]);
            failed += look(a[i], b[i], c[i], y[i]);
            failed += look(a[i], b[i], c[i], FMA(a[i], b[i], c[i]));
            xph_hash_add(&hasher, &bits, sizeof bits);
        }
    }
    failed += smallest();
    if (xph_hash_end(&hasher) != KEPT_FLOATS)
        failed += printf("FAILED: another digest than the kept one\n") > 0;
    printf("%d multiply-adds by %s, %d failed\n", CASES, set, failed);
    return failed ? 1 : 0;
}
