/* The machine as this process sees it, on macOS: cores and memory. */
#define _DARWIN_C_SOURCE
#include "base/system.h"

#include <sys/sysctl.h>
#include <unistd.h>

int32_t xph_cpu_count(void)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int32_t)online : 1;
}

bool xph_machine_multiplies(void)
{
    int there = 0;
    size_t length = sizeof there;
    return sysctlbyname("hw.optional.arm.FEAT_DotProd", &there, &length, NULL, 0) == 0 && there != 0;
}

int64_t xph_memory_total(void)
{
    uint64_t bytes = 0;
    size_t length = sizeof bytes;
    return sysctlbyname("hw.memsize", &bytes, &length, NULL, 0) == 0 ? (int64_t)bytes : 0;
}
