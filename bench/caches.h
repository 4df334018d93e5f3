/* The caches of the processor, for the report. */
#ifndef EXPHIL_BENCH_CACHES_H
#define EXPHIL_BENCH_CACHES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* [{level, type, size, shared_by}] as the system tells it in folder, else as the processor does, which does not name who
 * shares; "unknown" when neither does. folder is /sys/devices/system/cpu/cpu0/cache where sysfs is mounted. */
json_t *bench_caches(const char *folder);

/* One cache from the registers EAX, EBX, ECX, EDX of a cpuid leaf that describes it; false: there is none. */
typedef struct bench_cache {
    int level;
    const char *type; /* "Data", "Instruction", "Unified" as sysfs has it */
    int64_t bytes;
} bench_cache;
bool bench_cache_of(const uint32_t registers[4], bench_cache *cache);

#endif
