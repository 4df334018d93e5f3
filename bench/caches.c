#include "caches.h"

#include "report.h"

#include <stdio.h>
#include <string.h>

#if defined(__x86_64__) || defined(__i386__)
#  include <cpuid.h>
#endif

#define MOST 8 /* caches of one processor */

static json_t *cache_row(const char *level, const char *type, const char *size, const char *shared)
{
    return json_pack("{s:s,s:s,s:s,s:s}", "level", level, "type", type, "size", size, "shared_by", shared);
}

static void told_by_system(const char *folder, json_t *list)
{
    for (int i = 0; i < MOST; i++) {
        static const char *const names[] = {"level", "type", "size", "shared_cpu_list"};
        char text[4][64], path[512];
        for (int k = 0; k < 4; k++) {
            snprintf(path, sizeof path, "%s/index%d/%s", folder, i, names[k]);
            if (!*bench_line_of(path, text[k], sizeof text[k])) snprintf(text[k], sizeof text[k], "unknown");
            if (k == 0 && strcmp(text[k], "unknown") == 0) return;
        }
        json_array_append_new(list, cache_row(text[0], text[1], text[2], text[3]));
    }
}

/* Intel SDM volume 2A, CPUID leaf 4; AMD APM volume 3, leaf 8000001D: the same bits. */
bool bench_cache_of(const uint32_t r[4], bench_cache *cache)
{
    static const char *const types[] = {NULL, "Data", "Instruction", "Unified"};
    uint32_t type = r[0] & 31, ways = (r[1] >> 22) + 1, parts = (r[1] >> 12 & 1023) + 1,
             line = (r[1] & 4095) + 1;
    if (type < 1 || type > 3) return false;
    *cache =
        (bench_cache){(int)(r[0] >> 5 & 7), types[type], (int64_t)ways * parts * line * ((int64_t)r[2] + 1)};
    return true;
}

#if defined(__x86_64__) || defined(__i386__)
static void told_by_leaf(uint32_t leaf, json_t *list)
{
    for (uint32_t i = 0; i < MOST; i++) {
        uint32_t r[4];
        bench_cache cache;
        if (!__get_cpuid_count(leaf, i, &r[0], &r[1], &r[2], &r[3]) || !bench_cache_of(r, &cache)) return;
        char level[16], size[32];
        snprintf(level, sizeof level, "%d", cache.level);
        snprintf(size, sizeof size, "%lldK", (long long)(cache.bytes / 1024));
        json_array_append_new(list, cache_row(level, cache.type, size, "unknown"));
    }
}

/* Leaf 4 of AMD's processors is empty. */
static void told_by_processor(json_t *list)
{
    told_by_leaf(4, list);
    if (json_array_size(list) == 0) told_by_leaf(0x8000001Du, list);
}
#else
static void told_by_processor(json_t *list)
{
    (void)list;
}
#endif

json_t *bench_caches(const char *folder)
{
    json_t *list = json_array();
    told_by_system(folder, list);
    if (json_array_size(list) == 0) told_by_processor(list);
    if (json_array_size(list) > 0) return list;
    json_decref(list);
    return json_string("unknown");
}
