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

xph_fpu xph_fpu_push(void)
{
    uint64_t saved;
    __asm__ volatile("mrs %0, fpcr" : "=r"(saved));
    if (saved) __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0));
    return (xph_fpu)saved;
}

void xph_fpu_pop(xph_fpu saved)
{
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)saved));
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
