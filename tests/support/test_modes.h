/* The floating-point mode of the calling thread, as a host may have set it, with the flags of what it has computed: one number.
 * Where this processor's is not known there is one mode. */
#ifndef EXPHIL_TEST_MODES_H
#define EXPHIL_TEST_MODES_H

#include <stdint.h>

#if defined(__SSE__)
#  include <xmmintrin.h>

#  define TEST_PLAIN 0x1F80u /* all exceptions masked, to nearest, denormals kept, no flags */
#  define TEST_FLAGS 0x003Fu
#  define TEST_ODD   (0x9FC0u | 0x6000u) /* flush to zero, denormals are zero, toward zero */

/* Rounding up, down, to zero; denormals are zero, and up; exceptions raised before; exceptions trapped. */
static const uint32_t test_modes[] = {
    0x5F80, 0x3F80, 0x7F80, 0x9FC0, 0xDFC0, 0x1FBF, 0x5F80 & ~0x1F80u, 0x1F80 & ~0x1F80u};

static inline uint32_t test_mode(void)
{
    return _mm_getcsr();
}

static inline void test_mode_set(uint32_t mode)
{
    _mm_setcsr(mode);
}

#elif defined(__aarch64__)

#  define TEST_PLAIN 0u
#  define TEST_FLAGS 0x9Fu
#  define TEST_ODD   (1u << 24 | 3u << 22)

/* FPCR and the flags of FPSR, which lie where FPCR has nothing. Rounding up, down, to zero; flush to zero, and up; one NaN for all;
 * exceptions raised before. Few of these processors can trap. */
static const uint32_t test_modes[] = {1u << 22, 2u << 22, 3u << 22, 1u << 24, 1u << 24 | 1u << 22,
                                      1u << 25, 0x9F};

static inline uint32_t test_mode(void)
{
    uint64_t mode, flags;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    __asm__ volatile("mrs %0, fpsr" : "=r"(flags));
    return (uint32_t)mode | ((uint32_t)flags & TEST_FLAGS);
}

static inline void test_mode_set(uint32_t mode)
{
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)(mode & ~TEST_FLAGS)));
    __asm__ volatile("msr fpsr, %0" : : "r"((uint64_t)(mode & TEST_FLAGS)));
}

#else

#  define TEST_PLAIN 0u
#  define TEST_FLAGS 0u
#  define TEST_ODD   0u

static const uint32_t test_modes[] = {0};

static inline uint32_t test_mode(void)
{
    return 0;
}

static inline void test_mode_set(uint32_t mode)
{
    (void)mode;
}

#endif

enum { TEST_MODE_COUNT = sizeof test_modes / sizeof test_modes[0] };

/* First in a test that is about them. */
#define test_needs_modes()                                                                                   \
  do {                                                                                                       \
    if (TEST_ODD == TEST_PLAIN)                                                                              \
      test_left_out("the floating-point modes of this processor are not known here");                        \
  } while (0)

#endif
