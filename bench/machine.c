/* What a figure was measured on: processor, caches, kernel, compiler, library, date. Nothing that names the host or its
 * folders. */
#include "caches.h"
#include "platform.h"
#include "report.h"
#include "system.h"

#include <exphil/exphil.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

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

json_t *bench_machine(const bench_place *place)
{
    exphil_device_info device = EXPHIL_DEVICE_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    char date[32] = "";
    bench_platform platform;
    time_t now = time(NULL);
    struct tm utc;
    if (exphil_device_get(0, &device, &error) < 0) return NULL;
    bench_platform_of(&platform);
    if (system_date(now, true, &utc)) strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return json_pack("{s:s,s:s,s:I,s:I,s:o,s:s,s:s,s:s,s:s,s:s,s:s,s:b,s:b}", "processor", device.name, "isa",
                     device.isa, "cores", (json_int_t)platform.cores, "memory_bytes",
                     (json_int_t)platform.memory, "caches",
                     bench_caches("/sys/devices/system/cpu/cpu0/cache"), "system", platform.system, "kernel",
                     platform.kernel, "governor", *platform.governor ? platform.governor : "unknown",
                     "compiler", compiler(), "library", exphil_version_string(), "date", date, "pinned",
                     place->core >= 0, "fifo", place->fifo);
}
