/* What the processor can do. */
#include "base/system.h"

#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#  include <cpuid.h>

/* State that the system saves on a task switch (XCR0): without it the registers may not be touched, whatever CPUID
 * says; virtual machines do hide AVX-512 that way. */
#  define XCR0_AVX    0x06u /* SSE, upper halves of ymm */
#  define XCR0_AVX512 0xE6u /* ... and opmask, upper halves of zmm0-15, zmm16-31 */

static bool all(uint32_t word, uint32_t bits)
{
    return (word & bits) == bits;
}

/* XGETBV by hand: the intrinsic needs a compiler flag that would let the compiler use AVX here. */
static uint32_t enabled_state(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

/* Bit i: the processor has level i, and kernels were built for it. */
static uint32_t levels(void)
{
    const uint32_t none = 1u << XPH_ISA_REF, avx2 = none | 1u << XPH_ISA_AVX2;
#  ifndef XPH_HAVE_X86_SETS
    return none;
#  endif
    const uint32_t wide = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | (uint32_t)bit_AVX512VL;
    uint32_t a, b, c, d, most, vnni, found = avx2;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !all(c, bit_OSXSAVE | bit_AVX | bit_FMA | bit_F16C)) return none;
    uint32_t state = enabled_state();
    if (!__get_cpuid_count(7, 0, &most, &b, &vnni, &d) || !all(state, XCR0_AVX) || !all(b, bit_AVX2))
        return none;
    if (most < 1 || !__get_cpuid_count(7, 1, &a, &c, &c, &d)) a = 0;
    if (all(a, bit_AVXVNNI)) found |= 1u << XPH_ISA_AVX2_VNNI;
    if (!all(state, XCR0_AVX512) || !all(b, wide)) return found;
    found |= 1u << XPH_ISA_AVX512;
    if (!all(vnni, bit_AVX512VNNI)) return found;
    found |= 1u << XPH_ISA_AVX512_VNNI;
    return all(a, bit_AVX512BF16) ? found | 1u << XPH_ISA_AVX512_BF16 : found;
}

static bool made_by_intel(void)
{
    uint32_t a, b, c, d;
    return __get_cpuid(0, &a, &b, &c, &d) && b == signature_INTEL_ebx && c == signature_INTEL_ecx &&
           d == signature_INTEL_edx;
}

bool xph_cpu_has(xph_isa level)
{
    return level >= 0 && level < XPH_ISA_COUNT && (levels() >> level & 1u);
}

/* vdpbf16ps makes 64 operations. Zen 4 starts one in a cycle, twice what its fmas do; Intel's Golden Cove one in two
 * cycles on both of its ports: half of what its fmas do. */
xph_isa xph_cpu_detect(void)
{
    uint32_t found = levels();
    if (made_by_intel()) found &= ~(1u << XPH_ISA_AVX512_BF16);
    xph_isa best = XPH_ISA_REF;
    for (xph_isa level = XPH_ISA_REF; level < XPH_ISA_COUNT; level++)
        if (found >> level & 1u) best = level;
    return best;
}

void xph_cpu_name(char *name, size_t bytes)
{
    uint32_t brand[13] = {0};
    bool known = true;
    for (size_t i = 0; i < 3 && known; i++) {
        uint32_t *r = brand + 4 * i;
        known = __get_cpuid(0x80000002u + (uint32_t)i, &r[0], &r[1], &r[2], &r[3]) != 0;
    }
    const char *text = (const char *)brand;
    while (*text == ' ') text++;
    snprintf(name, bytes, "%s", known && *text ? text : "x86-64");
    for (size_t end = strlen(name); end > 0 && name[end - 1] == ' '; end--) name[end - 1] = '\0';
}

#elif defined(XPH_HAVE_ARM_SETS)

/* Advanced SIMD is part of AArch64, products of int8 are not. */
bool xph_cpu_has(xph_isa level)
{
    return level == XPH_ISA_REF || level == XPH_ISA_NEON ||
           (level == XPH_ISA_NEON_DOT && xph_machine_multiplies());
}

xph_isa xph_cpu_detect(void)
{
    return xph_machine_multiplies() ? XPH_ISA_NEON_DOT : XPH_ISA_NEON;
}

void xph_cpu_name(char *name, size_t bytes)
{
    snprintf(name, bytes, "AArch64");
}

#elif defined(XPH_HAVE_SIMD128_SET)

#  if defined(XPH_HAVE_RELAXED_SET)
#    include <wasm_simd128.h>

/* A host may round the product, if it does so always. Rounded once, (1 + 2^-23)^2 - (1 + 2^-22) is 2^-46. */
__attribute__((target("relaxed-simd"))) static bool fused(void)
{
    volatile float factor = 0x1.000002p0f, sum = -0x1.000004p0f;
    v128_t x = wasm_f32x4_splat(factor);
    return wasm_f32x4_extract_lane(wasm_f32x4_relaxed_madd(x, x, wasm_f32x4_splat(sum)), 0) == 0x1p-46f;
}
#  else
static bool fused(void)
{
    return false;
}
#  endif

bool xph_cpu_has(xph_isa level)
{
    return level == XPH_ISA_REF || level == XPH_ISA_SIMD128 || (level == XPH_ISA_RELAXED && fused());
}

xph_isa xph_cpu_detect(void)
{
    return fused() ? XPH_ISA_RELAXED : XPH_ISA_SIMD128;
}

void xph_cpu_name(char *name, size_t bytes)
{
    snprintf(name, bytes, "WebAssembly");
}

#else

bool xph_cpu_has(xph_isa level)
{
    return level == XPH_ISA_REF;
}

xph_isa xph_cpu_detect(void)
{
    return XPH_ISA_REF;
}

void xph_cpu_name(char *name, size_t bytes)
{
    snprintf(name, bytes, "CPU");
}

#endif

const char *xph_isa_name(xph_isa isa)
{
    static const char *const names[XPH_ISA_COUNT] = {
        [XPH_ISA_REF] = "ref",
        [XPH_ISA_AVX2] = "avx2",
        [XPH_ISA_AVX2_VNNI] = "avx2vnni",
        [XPH_ISA_AVX512] = "avx512",
        [XPH_ISA_AVX512_VNNI] = "avx512vnni",
        [XPH_ISA_AVX512_BF16] = "avx512bf16",
        [XPH_ISA_NEON] = "neon",
        [XPH_ISA_NEON_DOT] = "neondot",
        [XPH_ISA_SIMD128] = "simd128",
        [XPH_ISA_RELAXED] = "relaxed",
    };
    return isa >= 0 && isa < XPH_ISA_COUNT ? names[isa] : "unknown";
}
