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

/* The exception flags are in a register of their own, FPSR, in bits that FPCR does not have. */
#  define FLAGS 0x9Fu

xph_fpu xph_fpu_push(void)
{
    uint64_t mode, flags;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    __asm__ volatile("mrs %0, fpsr" : "=r"(flags));
    if (mode) __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0));
    return (xph_fpu)mode | ((xph_fpu)flags & FLAGS);
}

/* Puts back the exception flags too, as above. */
void xph_fpu_pop(xph_fpu saved)
{
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)(saved & ~FLAGS)));
    __asm__ volatile("msr fpsr, %0" : : "r"((uint64_t)(saved & FLAGS)));
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
