/* Whether weights are of the rows and actions of the map, and what the first difference is. */
#include "plugin.h"

#include <string.h>

/* The first head, or id, that differs. 0: none does. */
static int first_head(const exphil_spec *map, const exphil_spec *weights, char *why, size_t bytes)
{
    for (int64_t i = 0; i < map->head_count; i++) {
        const exphil_head_spec *a = &map->heads[i], *b = &weights->heads[i];
        if (!strcmp(a->name, b->name) && a->kind == b->kind && a->count == b->count &&
            a->neutral == b->neutral)
            continue;
        return snprintf(
            why, bytes, "the map has head '%s' of %d %s, neutral %d, the weights '%s' of %d %s, neutral %d",
            a->name, (int)a->count, a->kind == EXPHIL_BERNOULLI ? "bits" : "classes", (int)a->neutral,
            b->name, (int)b->count, b->kind == EXPHIL_BERNOULLI ? "bits" : "classes", (int)b->neutral);
    }
    return 0;
}

static int first_id(const exphil_spec *map, const exphil_spec *weights, char *why, size_t bytes)
{
    for (int64_t i = 0; i < map->id_count; i++) {
        const exphil_id_spec *a = &map->ids[i], *b = &weights->ids[i];
        int32_t a_width = a->width ? a->width : 8, b_width = b->width ? b->width : 8;
        if (!strcmp(a->name, b->name) && a->entries == b->entries && a_width == b_width) continue;
        return snprintf(why, bytes,
                        "the map has id '%s' entries %d width %d, the weights '%s' entries %d width %d",
                        a->name, (int)a->entries, (int)a_width, b->name, (int)b->entries, (int)b_width);
    }
    return 0;
}

int plugin_fit(const exphil_spec *weights, char *why, size_t why_bytes)
{
    const exphil_spec *map = &plugin.map.spec;
    const struct {
        const char *what;
        int64_t map, weights;
    } counts[] = {{"floats", map->float_count, weights->float_count},
                  {"ids", map->id_count, weights->id_count},
                  {"heads", map->head_count, weights->head_count}};
    if (exphil_spec_hash(map) == exphil_spec_hash(weights)) return 0;
    if (strcmp(map->layout, weights->layout) != 0 || strcmp(map->codec, weights->codec) != 0)
        return snprintf(why, why_bytes, "the map is of layout %s and codec %s, the weights of %s and %s",
                        map->layout, map->codec, weights->layout, weights->codec);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i].map != counts[i].weights)
            return snprintf(why, why_bytes, "the map has %lld %s, the weights %lld", (long long)counts[i].map,
                            counts[i].what, (long long)counts[i].weights);
    if (first_id(map, weights, why, why_bytes) || first_head(map, weights, why, why_bytes)) return 1;
    return snprintf(why, why_bytes,
                    "the floats of the map have other names than those of the weights, or another order");
}
