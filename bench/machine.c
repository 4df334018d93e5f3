/* What a figure was measured on: processor, caches, kernel, compiler, library, date. Nothing that names the host or its
 * folders. */
#include "caches.h"
#include "report.h"

#include <exphil/exphil.h>

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

const char *bench_line_of(const char *path, char *line, size_t bytes)
{
    FILE *f = fopen(path, "r");
    line[0] = '\0';
    if (!f) return line;
    if (!fgets(line, (int)bytes, f)) line[0] = '\0';
    fclose(f);
    line[strcspn(line, "\n")] = '\0';
    return line;
}

static const char *compiler(void)
{
#if defined(__clang__)
    return "clang " __clang_version__;
#elif defined(__GNUC__)
    return "gcc " __VERSION__;
#else
    return "unknown";
#endif
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

json_t *bench_machine(const bench_place *place)
{
    exphil_device_info device = EXPHIL_DEVICE_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    char system[256], governor[64], date[32] = "", kernel[208] = "";
    struct utsname uts;
    time_t now = time(NULL);
    struct tm utc;
    if (exphil_device_get(0, &device, &error) < 0) return NULL;
    system_name(system, sizeof system);
    if (gmtime_r(&now, &utc)) strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
    if (uname(&uts) == 0) snprintf(kernel, sizeof kernel, "%s %s %s", uts.sysname, uts.release, uts.machine);
    bench_line_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", governor, sizeof governor);
    return json_pack("{s:s,s:s,s:I,s:I,s:o,s:s,s:s,s:s,s:s,s:s,s:s,s:b,s:b}", "processor", device.name, "isa",
                     device.isa, "cores", (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "memory_bytes",
                     (json_int_t)sysconf(_SC_PHYS_PAGES) * (json_int_t)sysconf(_SC_PAGESIZE), "caches",
                     bench_caches("/sys/devices/system/cpu/cpu0/cache"), "system", system, "kernel", kernel,
                     "governor", *governor ? governor : "unknown", "compiler", compiler(), "library",
                     exphil_version_string(), "date", date, "pinned", place->core >= 0, "fifo", place->fifo);
}
