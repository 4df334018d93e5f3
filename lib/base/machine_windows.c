/* The machine as this process sees it, on Windows: cores and memory. */
#include "base/wide_windows.h"

/* "Starting with Windows 11 and Windows Server 2022 ... processes and their threads have processor affinities that by default
 * span all processors in the system, across multiple groups" (Microsoft's "Processor Groups"). Other functions than
 * RtlGetVersion tell a version that depends on the program's manifest. */
static bool threads_go_everywhere(void)
{
    LONG(WINAPI * version_of)(OSVERSIONINFOW *) = NULL;
    OSVERSIONINFOW version = {.dwOSVersionInfoSize = sizeof version};
    xph_ntdll("RtlGetVersion", &version_of);
    return version_of && version_of(&version) == 0 && version.dwBuildNumber >= 20348;
}

/* Cores that the process may use of the processor group that it began in, of at most 64, and those of the other groups where it
 * is kept from none and its threads go there. The mask is 0 in a process whose threads are in several groups. */
int32_t xph_cpu_count(void)
{
    DWORD_PTR mine = 0, machine = 0;
    int32_t count = 0;
    if (GetProcessAffinityMask(GetCurrentProcess(), &mine, &machine) &&
        !(mine == machine && GetActiveProcessorGroupCount() > 1 && threads_go_everywhere()))
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
