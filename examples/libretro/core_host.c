/* The callbacks that a core wants, answered as plainly as can be. */
#include "core_host.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whose core this thread is in; a thread that a core began by itself has none. */
static _Thread_local struct core_host *current;

static void print_log(enum retro_log_level level, const char *format, ...)
{
    va_list list;
    if (level < (current && current->verbose ? RETRO_LOG_INFO : RETRO_LOG_WARN)) return;
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
}

static bool find_option(const struct core_host *host, struct retro_variable *asked)
{
    for (int i = 0; i < host->options; i++) {
        if (strcmp(asked->key, host->option_name[i])) continue;
        asked->value = host->option_value[i];
        return true;
    }
    return false;
}

/* Bits of RETRO_ENVIRONMENT_GET_AUDIO_VIDEO_ENABLE: picture, sound; the last one: sound is never wanted. */
static bool say_wishes(const struct core_host *host, int *wishes)
{
    *wishes = host->blind ? 8 : 3;
    return true;
}

static bool environment(unsigned command, void *data)
{
    struct core_host *host = current;
    if (!host) return false;
    switch (command) {
    case RETRO_ENVIRONMENT_SET_PIXEL_FORMAT:
        host->form = *(const enum retro_pixel_format *)data;
        return true;
    case RETRO_ENVIRONMENT_GET_CAN_DUPE:
        *(bool *)data = true;
        return true;
    case RETRO_ENVIRONMENT_GET_LOG_INTERFACE:
        ((struct retro_log_callback *)data)->log = print_log;
        return true;
    case RETRO_ENVIRONMENT_GET_SYSTEM_DIRECTORY:
    case RETRO_ENVIRONMENT_GET_SAVE_DIRECTORY:
        *(const char **)data = ".";
        return true;
    case RETRO_ENVIRONMENT_GET_VARIABLE:
        return find_option(host, data);
    case RETRO_ENVIRONMENT_GET_VARIABLE_UPDATE:
        *(bool *)data = false;
        return true;
    case RETRO_ENVIRONMENT_SET_VARIABLES:
    case RETRO_ENVIRONMENT_GET_INPUT_BITMASKS:
        return true;
    case RETRO_ENVIRONMENT_GET_AUDIO_VIDEO_ENABLE:
        return say_wishes(host, data);
    case RETRO_ENVIRONMENT_SET_MEMORY_MAPS:
        core_memory_set_bus(&host->memory, data);
        return true;
    case RETRO_ENVIRONMENT_SET_MESSAGE:
        fprintf(stderr, "on screen: %s\n", ((const struct retro_message *)data)->msg);
        return true;
    default:
        return false;
    }
}

/* ---- picture, sound, pads ---- */

static uint8_t point_of(enum retro_pixel_format form, const uint8_t *row, unsigned x)
{
    uint32_t wide;
    uint16_t narrow;
    if (form == RETRO_PIXEL_FORMAT_XRGB8888) {
        memcpy(&wide, row + 4 * (size_t)x, sizeof wide);
        return (uint8_t)((wide >> 16 & 0xE0) | (wide >> 11 & 0x1C) | (wide >> 6 & 3));
    }
    memcpy(&narrow, row + 2 * (size_t)x, sizeof narrow);
    if (form == RETRO_PIXEL_FORMAT_RGB565)
        return (uint8_t)((narrow >> 8 & 0xE0) | (narrow >> 6 & 0x1C) | (narrow >> 3 & 3));
    return (uint8_t)((narrow >> 7 & 0xE0) | (narrow >> 5 & 0x1C) | (narrow >> 3 & 3));
}

static void take_picture(const void *data, unsigned width, unsigned height, size_t pitch)
{
    struct core_host *host = current;
    if (!host || host->blind || !data || width * height == 0) return;
    if (width != host->width || height != host->height) {
        uint8_t *points = realloc(host->points, (size_t)width * height);
        if (!points) return;
        host->points = points, host->width = width, host->height = height;
    }
    for (unsigned y = 0; y < height; y++)
        for (unsigned x = 0; x < width; x++)
            host->points[(size_t)y * width + x] = point_of(host->form, (const uint8_t *)data + y * pitch, x);
}

static void take_sample(int16_t left, int16_t right)
{
    (void)left, (void)right;
}

static size_t take_samples(const int16_t *samples, size_t count)
{
    (void)samples;
    return count;
}

static void poll_pads(void) {}

static int16_t read_pad(unsigned port, unsigned device, unsigned index, unsigned id)
{
    if (!current || port >= CORE_PORTS) return 0;
    const struct game_press *pad = &current->pad[port];
    if ((device & RETRO_DEVICE_MASK) == RETRO_DEVICE_JOYPAD)
        return (int16_t)(id == RETRO_DEVICE_ID_JOYPAD_MASK ? pad->buttons
                         : id < 16                         ? pad->buttons >> id & 1
                                                           : 0);
    if ((device & RETRO_DEVICE_MASK) == RETRO_DEVICE_ANALOG && index < 2 && id < 2)
        return pad->axis[index * 2 + id];
    return 0;
}

/* ---- a game ---- */

static int read_file(struct core_host *host, const char *path, struct retro_game_info *game, char *message,
                     size_t message_bytes)
{
    FILE *file = system_open(path, "rb");
    long size = -1;
    if (file && !fseek(file, 0, SEEK_END)) size = ftell(file);
    if (size > 0) host->game = malloc((size_t)size);
    int failed =
        !host->game || fseek(file, 0, SEEK_SET) || fread(host->game, 1, (size_t)size, file) != (size_t)size;
    if (file) fclose(file);
    if (failed) return snprintf(message, message_bytes, "cannot read %s", path), -1;
    *game = (struct retro_game_info){path, host->game, (size_t)size, NULL};
    return 0;
}

static void give_callbacks(const struct core_library *core)
{
    core->retro_set_environment(environment);
    core->retro_set_video_refresh(take_picture);
    core->retro_set_audio_sample(take_sample);
    core->retro_set_audio_sample_batch(take_samples);
    core->retro_set_input_poll(poll_pads);
    core->retro_set_input_state(read_pad);
    core->retro_init();
}

int core_host_open(struct core_host *host, const char *core, const char *path, char *message,
                   size_t message_bytes)
{
    struct retro_game_info game;
    struct retro_system_av_info av;
    host->memory.core = &host->core;
    current = host;
    if (core_library_open(&host->core, core, message, message_bytes)) return -1;
    give_callbacks(&host->core);
    if (read_file(host, path, &game, message, message_bytes)) return -1;
    if (!host->core.retro_load_game(&game))
        return snprintf(message, message_bytes, "the core refuses %s", path), -1;
    host->core.retro_get_system_av_info(&av);
    for (unsigned port = 0; port < 2; port++)
        host->core.retro_set_controller_port_device(port, RETRO_DEVICE_JOYPAD);
    host->loaded = 1;
    return 0;
}

void core_host_frame(struct core_host *host)
{
    current = host;
    host->core.retro_run();
}

int core_host_save(struct core_host *host, void *state, size_t bytes)
{
    current = host;
    return host->core.retro_serialize(state, bytes) ? 0 : -1;
}

int core_host_load(struct core_host *host, const void *state, size_t bytes)
{
    current = host;
    return host->core.retro_unserialize(state, bytes) ? 0 : -1;
}

int core_host_close(struct core_host *host)
{
    int (*failed)(void), result = 0;
    current = host;
    if (host->core.handle) {
        *(void **)&failed = system_library_find(host->core.handle, "exphil_plugin_failed");
        if (host->loaded) host->core.retro_unload_game();
        result = failed && failed() ? -1 : 0;
        host->core.retro_deinit();
    }
    core_library_close(&host->core);
    free(host->points);
    free(host->game);
    host->points = NULL;
    host->game = NULL;
    host->width = host->height = 0;
    host->loaded = 0;
    current = NULL;
    return result;
}

/* 64-bit FNV-1a. */
uint64_t core_host_hash(const struct core_host *host, uint64_t before)
{
    const uint8_t *data = host->core.retro_get_memory_data(RETRO_MEMORY_SYSTEM_RAM);
    size_t size = host->core.retro_get_memory_size(RETRO_MEMORY_SYSTEM_RAM);
    uint64_t hash = before ? before : 0xCBF29CE484222325u;
    for (size_t i = 0; data && i < size; i++) hash = (hash ^ data[i]) * 0x100000001B3u;
    return hash;
}

/* ---- by a map ---- */

int core_host_read(struct core_host *host, const struct game_map *map, double *values, int *missing)
{
    int field;
    *missing = -1;
    host->memory.id = map->memory;
    if (game_map_read(map, core_memory_at, &host->memory, values, &field)) return *missing = field, -1;
    return game_map_ready(map, core_memory_at, &host->memory, values) ? 0 : -1;
}

void core_host_unready(struct core_host *host, const struct game_map *map, char *why, size_t why_bytes)
{
    double values[GAME_MAP_FIELDS];
    char memory[640];
    int field;
    *why = 0;
    (void)core_host_read(host, map, values, &field);
    if (field >= 0) {
        core_memory_missing(&host->memory, map->field[field].address, memory, sizeof memory);
        snprintf(why, why_bytes, "%.300s:%d: '%s': %s", map->path, map->field[field].line,
                 map->field[field].name, memory);
        return;
    }
    game_map_unready(map, core_memory_at, &host->memory, values, memory, sizeof memory);
    if (*memory) snprintf(why, why_bytes, "the game has not begun: %s", memory);
}
