/* The machine as this process sees it, on Linux: cores and memory. */
#define _GNU_SOURCE
#include "base/system.h"

#include <sched.h>
#include <sys/auxv.h>
#include <unistd.h>

int32_t xph_cpu_count(void)
{
    /* A set of 8192 cores; the kernel refuses a set that is too small, then all that are online count. */
    cpu_set_t set[8192 / CPU_SETSIZE];
    if (sched_getaffinity(0, sizeof set, set) == 0) {
        int count = CPU_COUNT_S(sizeof set, set);
        if (count > 0) return count;
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int32_t)online : 1;
}

bool xph_machine_multiplies(void)
{
    const unsigned long dot_products = 1ul << 20; /* HWCAP_ASIMDDP of AArch64 */
    return (getauxval(AT_HWCAP) & dot_products) != 0;
}

int64_t xph_memory_total(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (int64_t)pages * page : 0;
}
