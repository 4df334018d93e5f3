/* A world from its arguments, for `exphil learn --world libretro:ARGUMENTS` and for whoever else loads this library. */
#define _POSIX_C_SOURCE 200809L
#include "world.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BOOT_MOST 3600 /* frames until the game runs as its map wants it */

static const char usage[] = "core=FILE|NAME,rom=FILE,map=FILE[,map=FILE][,state=FILE][,threads=N]"
                            "[,option:NAME=VALUE]";

static exphil_status complain(exphil_error *error, exphil_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static exphil_status complain(exphil_error *error, exphil_status status, const char *format, ...)
{
    va_list list;
    if (!error) return status;
    error->status = status;
    error->native_code = 0;
    va_start(list, format);
    vsnprintf(error->message, sizeof error->message, format, list);
    va_end(list);
    return status;
}

/* ---- arguments ---------------------------------------------------------------------------------------------------------- */

static exphil_status take_option(struct world *w, char *name, exphil_error *error)
{
    char *value = strchr(name, '=');
    if (!value || w->options == CORE_OPTIONS)
        return complain(error, EXPHIL_E_INVALID,
                        "option:%.60s: option:NAME=VALUE is wanted, at most %d times", name, CORE_OPTIONS);
    *value = 0;
    w->option_name[w->options] = name;
    w->option_value[w->options++] = value + 1;
    return EXPHIL_OK;
}

static exphil_status take_threads(struct world *w, const char *value, exphil_error *error)
{
    char *end;
    long number = strtol(value, &end, 10);
    if (end == value || *end || number < 1 || number > WORLD_LANES)
        return complain(error, EXPHIL_E_INVALID, "threads '%.40s' is no number from 1 to %d", value,
                        WORLD_LANES);
    w->threads = number;
    return EXPHIL_OK;
}

static exphil_status take_argument(struct world *w, char *name, int64_t *maps, exphil_error *error)
{
    if (!strncmp(name, "option:", 7)) return take_option(w, name + 7, error);
    char *value = strchr(name, '=');
    if (!value || !value[1])
        return complain(error, EXPHIL_E_INVALID, "'%.60s' is no NAME=VALUE; %s", name, usage);
    *value++ = 0;
    if (!strcmp(name, "threads")) return take_threads(w, value, error);
    if (!strcmp(name, "map")) {
        if (*maps == WORLD_SEATS) return complain(error, EXPHIL_E_INVALID, "more than %d maps", WORLD_SEATS);
        w->map_path[(*maps)++] = value;
        return EXPHIL_OK;
    }
    const struct {
        const char *name, **to;
    } table[] = {{"core", &w->core}, {"rom", &w->rom}, {"state", &w->start}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcmp(name, table[i].name)) continue;
        if (*table[i].to) return complain(error, EXPHIL_E_INVALID, "%s is given twice", name);
        *table[i].to = value;
        return EXPHIL_OK;
    }
    return complain(error, EXPHIL_E_INVALID, "what is '%.40s'? %s", name, usage);
}

static exphil_status take_arguments(struct world *w, const char *arguments, exphil_error *error)
{
    int64_t maps = 0;
    w->arguments = malloc(strlen(arguments) + 1);
    if (!w->arguments) return complain(error, EXPHIL_E_MEMORY, "no memory");
    strcpy(w->arguments, arguments);
    for (char *at = *arguments ? w->arguments : NULL, *next; at; at = next) {
        next = strchr(at, ',');
        if (next) *next++ = 0;
        exphil_status status = take_argument(w, at, &maps, error);
        if (status < 0) return status;
    }
    if (!w->core || !w->rom || !maps)
        return complain(error, EXPHIL_E_INVALID, "no %s; %s",
                        !w->core  ? "core"
                        : !w->rom ? "rom"
                                  : "map",
                        usage);
    if (maps < w->seats)
        return complain(error, EXPHIL_E_INVALID, "%lld seats want as many maps, there are %lld",
                        (long long)w->seats, (long long)maps);
    return EXPHIL_OK;
}

/* ---- maps --------------------------------------------------------------------------------------------------------------- */

/* Of the seats that are played. All see rows of one form. */
static exphil_status open_maps(struct world *w, exphil_error *error)
{
    char message[WORLD_MESSAGE];
    for (int64_t s = 0; s < w->seats; s++) {
        struct game_map *map = &w->map[s];
        if (game_map_load(map, w->map_path[s], message, sizeof message))
            return complain(error, EXPHIL_E_FORMAT, "%s", message);
        if (!map->goals.rewards && map->score[0] < 0)
            return complain(error, EXPHIL_E_INVALID, "%.120s: no line 'score' nor 'reward': nothing to learn",
                            map->path);
        if (exphil_spec_hash(&map->spec) != exphil_spec_hash(&w->map[0].spec))
            return complain(error, EXPHIL_E_MISMATCH, "%.80s and %.80s make rows of different form",
                            w->map[0].path, map->path);
    }
    return EXPHIL_OK;
}

/* ---- cores -------------------------------------------------------------------------------------------------------------- */

static exphil_status open_lane(struct world *w, int64_t index, const char *core, exphil_error *error)
{
    struct core_host *host = &w->lane[index].host;
    char message[WORLD_MESSAGE];
    memcpy(host->option_name, w->option_name, sizeof host->option_name);
    memcpy(host->option_value, w->option_value, sizeof host->option_value);
    host->options = w->options;
    host->blind = 1;
    if (!core_host_open(host, core, w->rom, message, sizeof message)) return EXPHIL_OK;
    return complain(error, EXPHIL_E_IO, "lane %lld: %s", (long long)index, message);
}

/* A name without a folder is looked for where systems keep their cores. */
static exphil_status open_cores(struct world *w, exphil_error *error)
{
    char path[4096], file[256];
    snprintf(path, sizeof path, "%s", w->core);
    if (!system_last_slash(w->core)) {
        snprintf(file, sizeof file, "%.200s_libretro" SYSTEM_LIBRARY, w->core);
        if (core_library_find(file, path, sizeof path))
            return complain(error, EXPHIL_E_IO, "core: there is no %.80s in %s", file, EXPHIL_CORE_FOLDERS);
    }
    for (int64_t i = 0; i < w->lanes; i++) {
        exphil_status status = open_lane(w, i, path, error);
        if (status < 0) return status;
    }
    return EXPHIL_OK;
}

/* Cores greet on the standard output, where a program's results go. */
static exphil_status open_quietly(struct world *w, exphil_error *error)
{
    int kept = system_silence();
    exphil_status status = open_cores(w, error);
    system_speak(kept);
    return status;
}

/* ---- where episodes begin ----------------------------------------------------------------------------------------------- */

static exphil_status read_state(const char *path, unsigned char **bytes, size_t *size, exphil_error *error)
{
    FILE *file = system_open(path, "rb");
    long length = -1;
    if (file && !fseek(file, 0, SEEK_END)) length = ftell(file);
    if (length > 0) *bytes = malloc((size_t)length);
    int failed =
        !*bytes || fseek(file, 0, SEEK_SET) || fread(*bytes, 1, (size_t)length, file) != (size_t)length;
    if (file) fclose(file);
    if (failed) return complain(error, EXPHIL_E_IO, "state: cannot read %.180s", path);
    *size = (size_t)length;
    return EXPHIL_OK;
}

/* RetroArch keeps a core's state as it is, or as the block "MEM " of a file that begins with RASTATE. */
static const unsigned char *core_part(const unsigned char *bytes, size_t *size)
{
    const unsigned char *at = bytes, *end = bytes + *size;
    if (*size < 16 || memcmp(bytes, "RASTATE", 7) != 0) return bytes;
    for (at += 8; end - at >= 8;) {
        size_t length = (size_t)at[4] | (size_t)at[5] << 8 | (size_t)at[6] << 16 | (size_t)at[7] << 24;
        if ((size_t)(end - at) - 8 < length) return NULL;
        if (!memcmp(at, "MEM ", 4)) return *size = length, at + 8;
        length = (length + 7) / 8 * 8;
        if ((size_t)(end - at) - 8 < length) return NULL;
        at += 8 + length;
    }
    return NULL;
}

static exphil_status load_start(struct world *w, exphil_error *error)
{
    unsigned char *bytes = NULL;
    size_t size = 0;
    exphil_status status = w->start ? read_state(w->start, &bytes, &size, error) : EXPHIL_OK;
    if (w->start && status >= 0) {
        const unsigned char *part = core_part(bytes, &size);
        if (!part || core_host_load(&w->lane[0].host, part, size))
            status = complain(error, EXPHIL_E_FORMAT, "state: the core refuses %.160s%s", w->start,
                              part ? " (is it compressed, or of another game?)" : ", which is cut off");
    }
    free(bytes);
    return status;
}

static int all_ready(struct world *w, char *why, size_t why_bytes)
{
    double values[GAME_MAP_FIELDS];
    int missing;
    for (int64_t s = 0; s < w->seats; s++) {
        if (!core_host_read(&w->lane[0].host, &w->map[s], values, &missing)) continue;
        core_host_unready(&w->lane[0].host, &w->map[s], why, why_bytes);
        return 0;
    }
    return 1;
}

/* The first lane's core runs until the game does. */
static exphil_status find_begin(struct world *w, exphil_error *error)
{
    struct core_host *host = &w->lane[0].host;
    char why[WORLD_MESSAGE];
    exphil_status status = load_start(w, error);
    if (status < 0) return status;
    for (int frame = 0; !all_ready(w, why, sizeof why); frame++) {
        if (frame == BOOT_MOST) return complain(error, EXPHIL_E_STATE, "%s", why);
        core_host_frame(host);
    }
    w->state_bytes = host->core.retro_serialize_size();
    w->begin = w->state_bytes ? malloc(w->state_bytes) : NULL;
    if (!w->begin || core_host_save(host, w->begin, w->state_bytes))
        return complain(error, EXPHIL_E_UNSUPPORTED, "this core gives no save state now");
    return EXPHIL_OK;
}

/* ---- all of it ---------------------------------------------------------------------------------------------------------- */

void world_free(void *user)
{
    struct world *w = user;
    if (!w) return;
    world_crew_free(w->crew);
    for (int64_t i = 0; w->lane && i < w->lanes; i++) core_host_close(&w->lane[i].host);
    for (int64_t s = 0; s < w->seats; s++) game_map_free(&w->map[s]);
    free(w->lane);
    free(w->begin);
    free(w->arguments);
    free(w);
}

static exphil_status open_all(struct world *w, const char *arguments, exphil_error *error)
{
    exphil_status status = take_arguments(w, arguments, error);
    if (status >= 0) status = open_maps(w, error);
    if (status < 0) return status;
    w->lane = calloc((size_t)w->lanes, sizeof *w->lane);
    if (!w->threads) w->threads = system_processors();
    if (w->threads > w->lanes) w->threads = w->lanes;
    w->crew = w->lane ? world_crew_make(w->threads) : NULL;
    if (!w->crew) return complain(error, EXPHIL_E_MEMORY, "no memory for %lld lanes", (long long)w->lanes);
    status = open_quietly(w, error);
    return status < 0 ? status : find_begin(w, error);
}

RETRO_API exphil_status exphil_world_open(const char *arguments, int64_t lanes, int64_t seats,
                                          exphil_world *world, exphil_error *error)
{
    if (lanes < 1 || lanes > WORLD_LANES || seats < 1 || seats > WORLD_SEATS)
        return complain(error, EXPHIL_E_INVALID, "%lld lanes of %lld seats; 1 to %d and 1 to %d are possible",
                        (long long)lanes, (long long)seats, WORLD_LANES, WORLD_SEATS);
    if (world->struct_size < sizeof *world)
        return complain(error, EXPHIL_E_VERSION, "the program is older than this library of games");
    struct world *made = calloc(1, sizeof *made);
    if (!made) return complain(error, EXPHIL_E_MEMORY, "no memory");
    made->lanes = lanes;
    made->seats = seats;
    exphil_status status = open_all(made, arguments, error);
    if (status < 0)
        world_free(made);
    else
        world_fill(made, world);
    return status;
}
