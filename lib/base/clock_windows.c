/* Monotonic time of Windows, read in user space. */
#include "base/wide_windows.h"

int64_t xph_clock_ns(void)
{
    enum { SECOND = 1000000000 };
    LARGE_INTEGER now, frequency; /* of Windows XP and later, both calls succeed */
    QueryPerformanceFrequency(&frequency);
    QueryPerformanceCounter(&now);
    const int64_t whole = now.QuadPart / frequency.QuadPart, rest = now.QuadPart % frequency.QuadPart;
    return whole * SECOND + rest * SECOND / frequency.QuadPart;
}

void xph_sleep(int64_t ns)
{
    Sleep((DWORD)((ns + 999999) / 1000000));
}
