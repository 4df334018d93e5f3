/* See platform.h. */
#include "platform.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <tlhelp32.h>

void *bench_pages(size_t bytes)
{
    return VirtualAlloc(NULL, bytes, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
}

void bench_pages_free(void *address, size_t bytes)
{
    (void)bytes;
    (void)VirtualFree(address, 0, MEM_RELEASE);
}

void *bench_aligned(size_t align, size_t bytes)
{
    return _aligned_malloc(bytes, align);
}

void bench_aligned_free(void *address)
{
    _aligned_free(address);
}

int bench_threads(void)
{
    THREADENTRY32 one = {.dwSize = sizeof one};
    HANDLE all = CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0);
    int count = 0;
    for (BOOL more = all != INVALID_HANDLE_VALUE && Thread32First(all, &one); more;
         more = Thread32Next(all, &one))
        count += one.th32OwnerProcessID == GetCurrentProcessId();
    if (all != INVALID_HANDLE_VALUE) (void)CloseHandle(all);
    return count;
}

typedef LONG(WINAPI *version_of)(OSVERSIONINFOW *version);

/* Other functions tell a version that depends on the program's manifest. */
static void name_version(char *text, size_t bytes)
{
    OSVERSIONINFOW version = {.dwOSVersionInfoSize = sizeof version};
    FARPROC found = GetProcAddress(GetModuleHandleW(L"ntdll.dll"), "RtlGetVersion");
    version_of get = NULL;
    memcpy(&get, &found, sizeof found);
    if (get && get(&version) == 0)
        snprintf(text, bytes, "Windows %lu.%lu, build %lu", version.dwMajorVersion, version.dwMinorVersion,
                 version.dwBuildNumber);
    else
        snprintf(text, bytes, "Windows");
}

void bench_platform_of(bench_platform *platform)
{
    SYSTEM_INFO machine;
    MEMORYSTATUSEX memory = {.dwLength = sizeof memory};
    GetSystemInfo(&machine);
    *platform = (bench_platform){.cores = machine.dwNumberOfProcessors};
    if (GlobalMemoryStatusEx(&memory)) platform->memory = (int64_t)memory.ullTotalPhys;
    name_version(platform->system, sizeof platform->system);
    snprintf(platform->kernel, sizeof platform->kernel, "%.200s", platform->system);
}
