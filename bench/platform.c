/* See platform.h. */
#include "platform.h"

#include "report.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

void *bench_pages(size_t bytes)
{
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

void bench_pages_free(void *address, size_t bytes)
{
    (void)munmap(address, bytes);
}

void *bench_aligned(size_t align, size_t bytes)
{
    void *memory = NULL;
    return posix_memalign(&memory, align, bytes) == 0 ? memory : NULL;
}

void bench_aligned_free(void *address)
{
    free(address);
}

int bench_threads(void)
{
    DIR *folder = opendir("/proc/self/task");
    int count = 0;
    for (struct dirent *e; folder && (e = readdir(folder));) count += e->d_name[0] != '.';
    if (folder) closedir(folder);
    return count;
}

/* Debian 12, Ubuntu 22.04, ...: from os-release. */
static void system_name(char *name, size_t bytes)
{
    char line[256];
    FILE *f = fopen("/etc/os-release", "r");
    snprintf(name, bytes, "unknown");
    while (f && fgets(line, sizeof line, f)) {
        if (strncmp(line, "PRETTY_NAME=\"", 13) != 0) continue;
        line[strcspn(line + 13, "\"") + 13] = '\0';
        snprintf(name, bytes, "%s", line + 13);
    }
    if (f) fclose(f);
}

void bench_platform_of(bench_platform *platform)
{
    struct utsname uts;
    *platform = (bench_platform){.cores = sysconf(_SC_NPROCESSORS_ONLN),
                                 .memory = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE)};
    system_name(platform->system, sizeof platform->system);
    if (uname(&uts) == 0)
        snprintf(platform->kernel, sizeof platform->kernel, "%s %s %s", uts.sysname, uts.release,
                 uts.machine);
    bench_line_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", platform->governor,
                  sizeof platform->governor);
}
