/* The machine as this process sees it, on Windows: cores and memory. */
#include "base/wide_windows.h"

/* Cores of the processor group that the process began in, of at most 64. The mask is 0 in a process whose threads are in
 * several groups. */
int32_t xph_cpu_count(void)
{
    DWORD_PTR mine = 0, machine = 0;
    int32_t count = 0;
    if (GetProcessAffinityMask(GetCurrentProcess(), &mine, &machine))
        for (; mine; mine &= mine - 1) count++;
    if (count == 0) count = (int32_t)GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
    return count > 0 ? count : 1;
}

bool xph_machine_multiplies(void)
{
    const DWORD dot_products = 43; /* PF_ARM_V82_DP_INSTRUCTIONS_AVAILABLE, which older headers lack */
    return IsProcessorFeaturePresent(dot_products);
}

int64_t xph_memory_total(void)
{
    MEMORYSTATUSEX status = {.dwLength = sizeof status};
    return GlobalMemoryStatusEx(&status) ? (int64_t)status.ullTotalPhys : 0;
}
