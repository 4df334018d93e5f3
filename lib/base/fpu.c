/* The floating-point mode of a thread: rounding to nearest, denormals kept, exceptions masked, while the library
 * computes. Only SSE and NEON are used, so the x87 control word does not matter. */
#include "base/base.h"

#if defined(__SSE__)
#  include <xmmintrin.h>

#  define PLAIN 0x1F80u /* all exceptions masked, round to nearest, neither FTZ nor DAZ */

xph_fpu xph_fpu_push(void)
{
    xph_fpu saved = _mm_getcsr();
    if (saved != PLAIN) _mm_setcsr(PLAIN);
    return saved;
}

/* Puts back the exception flags too: the host does not see that anything was computed. */
void xph_fpu_pop(xph_fpu saved)
{
    _mm_setcsr(saved);
}

#elif defined(__aarch64__)

/* The exception flags are in a register of their own, FPSR: IOC to IXC in bits 0-4, IDC in 7, QC (an integer was saturated) in
 * 27. In FPCR bits 6, 7 and 27-31 mean nothing (Arm ARM, C5.2.8): they hold QC, IDC and the others. */
#  define HELD 0xF80000C0u

xph_fpu xph_fpu_push(void)
{
    uint64_t mode, flags;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    __asm__ volatile("mrs %0, fpsr" : "=r"(flags));
    if (mode) __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0));
    return ((xph_fpu)mode & ~HELD) | ((xph_fpu)flags & 0x1F) << 27 | ((xph_fpu)flags & 0x80) |
           ((xph_fpu)(flags >> 27) & 1) << 6;
}

/* Puts back the exception flags too, as above. */
void xph_fpu_pop(xph_fpu saved)
{
    const uint64_t flags = saved >> 27 | (saved & 0x80) | (uint64_t)(saved >> 6 & 1) << 27;
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)(saved & ~HELD)));
    __asm__ volatile("msr fpsr, %0" : : "r"(flags));
}

#else

xph_fpu xph_fpu_push(void)
{
    return 0;
}
void xph_fpu_pop(xph_fpu saved)
{
    (void)saved;
}

#endif
