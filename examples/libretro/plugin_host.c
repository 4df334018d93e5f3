/* The frontend's side: messages, core options, where files are, and what the core is told in the frontend's name. */
#include "plugin.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define OPTIONS_MOST 512

static const struct retro_variable own_options[] = {
    {"exphil_mode", "Policy: what it does; auto|play|learn|record|off"},
    {"exphil_port", "Policy: controller port (when the game is loaded); auto|1|2|3|4|5|6|7|8"},
    {"exphil_choice", "Policy: choice of actions (when the game is loaded); sampled|likeliest"},
    {"exphil_take_over", "Policy: button by which you take over while it learns; select|l|r|l2|r2|l3|r3|x|y"},
};
#define OWN_OPTIONS (sizeof own_options / sizeof *own_options)

/* ---- messages ---- */

static void log_line(enum retro_log_level level, const char *text)
{
    if (plugin.log)
        plugin.log(level, "exphil: %s\n", text);
    else if (level >= RETRO_LOG_INFO)
        fprintf(stderr, "exphil: %s\n", text);
}

void plugin_say(enum retro_log_level level, const char *format, ...)
{
    char text[PLUGIN_MESSAGE];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    log_line(level, text);
}

/* To the log and the screen. */
static void show(enum retro_log_level level, const char *format, va_list list)
{
    char text[PLUGIN_MESSAGE];
    vsnprintf(text, sizeof text, format, list);
    log_line(level, text);
    struct retro_message message = {text, 300};
    if (plugin.environment) plugin.environment(RETRO_ENVIRONMENT_SET_MESSAGE, &message);
}

void plugin_tell(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    show(RETRO_LOG_ERROR, format, list);
    va_end(list);
    plugin.failed = 1;
}

void plugin_warn(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    show(RETRO_LOG_WARN, format, list);
    va_end(list);
}

void plugin_note(const char *text)
{
    struct retro_message message = {text, 120};
    log_line(RETRO_LOG_INFO, text);
    if (plugin.environment) plugin.environment(RETRO_ENVIRONMENT_SET_MESSAGE, &message);
}

int64_t plugin_now(void)
{
    return system_now_ns();
}

/* ---- options ---- */

/* The frontend keeps one list of options: ours stand before the core's. */
static bool send_with_own(const struct retro_variable *theirs)
{
    static struct retro_variable all[OPTIONS_MOST];
    size_t count = OWN_OPTIONS;
    memcpy(all, own_options, sizeof own_options);
    while (theirs && theirs->key && count + 1 < OPTIONS_MOST) all[count++] = *theirs++;
    all[count] = (struct retro_variable){NULL, NULL};
    plugin.options_told = 1;
    return plugin.environment(RETRO_ENVIRONMENT_SET_VARIABLES, all);
}

void plugin_send_options(void)
{
    if (!plugin.options_told) send_with_own(NULL);
}

const char *plugin_setting(const char *variable, const char *option)
{
    struct retro_variable asked = {option, NULL};
    const char *value = system_variable(variable);
    if (value && *value && strcmp(value, "auto") != 0) return value;
    if (!option || !plugin.environment || !plugin.environment(RETRO_ENVIRONMENT_GET_VARIABLE, &asked))
        return NULL;
    return asked.value && strcmp(asked.value, "auto") != 0 ? asked.value : NULL;
}

int plugin_whole(const char *text, uint64_t least, uint64_t most, uint64_t *value)
{
    char *end;
    if (*text < '0' || *text > '9') return -1; /* strtoull takes spaces and signs */
    errno = 0;
    uint64_t number = strtoull(text, &end, 10);
    if (*end || errno || number < least || number > most) return -1;
    *value = number;
    return 0;
}

int plugin_number(const char *variable, uint64_t least, uint64_t most, uint64_t *value)
{
    const char *text = system_variable(variable);
    if (!text || !*text || !plugin_whole(text, least, most, value)) return 0;
    plugin_tell("%s '%.40s' is no whole number from %llu to %llu", variable, text, (unsigned long long)least,
                (unsigned long long)most);
    return -1;
}

/* The frontend says once that options have changed; the core must hear it too. */
void plugin_poll_options(void)
{
    bool changed = false;
    if (plugin.environment(RETRO_ENVIRONMENT_GET_VARIABLE_UPDATE, &changed) && changed)
        plugin.options_changed = 3;
}

/* ---- what the core is told ---- */

bool plugin_environment(unsigned command, void *data)
{
    switch (command) {
    case RETRO_ENVIRONMENT_GET_CORE_OPTIONS_VERSION: /* the plain form, into which ours can be put */
        *(unsigned *)data = 0;
        return true;
    case RETRO_ENVIRONMENT_SET_VARIABLES:
        return send_with_own(data);
    case RETRO_ENVIRONMENT_GET_VARIABLE_UPDATE:
        plugin_poll_options();
        *(bool *)data = (plugin.options_changed & 1) != 0;
        plugin.options_changed &= ~1;
        return true;
    case RETRO_ENVIRONMENT_SET_MEMORY_MAPS:
        if (!core_memory_set_bus(&plugin.memory, data)) plugin.environment(command, data);
        return true;
    default:
        return plugin.environment(command, data);
    }
}

/* ---- files ---- */

/* exphil_NAME_libretro.so (SYSTEM_LIBRARY) plays on NAME_libretro.so: beside it, or where systems keep their cores. */
static int core_beside(const char *folder, size_t folder_length, const char *name, char *path)
{
    int length = snprintf(path, PLUGIN_PATH, "%.*s/%s", (int)folder_length, folder, name);
    return length > 0 && length < PLUGIN_PATH && system_is_readable(path) ? 0 : -1;
}

static int core_from_name(char *path, char *message, size_t message_bytes)
{
    char own[PLUGIN_PATH];
    const char *slash = system_library_path(&plugin, own, sizeof own) ? NULL : system_last_slash(own);
    const char *name = slash ? slash + 1 : "";
    if (strncmp(name, "exphil_", 7) != 0 || !strcmp(name, "exphil_libretro" SYSTEM_LIBRARY)) {
        snprintf(message, message_bytes,
                 "which core? Set EXPHIL_CORE to the path of one, or name a copy of this file "
                 "after it: exphil_nestopia_libretro" SYSTEM_LIBRARY
                 " plays on nestopia_libretro" SYSTEM_LIBRARY);
        return -1;
    }
    if (!core_beside(own, (size_t)(slash - own), name + 7, path)) return 0;
    if (!core_library_find(name + 7, path, PLUGIN_PATH)) return 0;
    snprintf(message, message_bytes, "no %.200s beside %.400s nor in %s", name + 7, own, EXPHIL_CORE_FOLDERS);
    return -1;
}

int plugin_open_core(void)
{
    char path[PLUGIN_PATH];
    const char *given = system_variable("EXPHIL_CORE");
    if (plugin.core_tried) return plugin.core.handle ? 0 : -1;
    plugin.core_tried = 1;
    if (given && *given)
        snprintf(path, sizeof path, "%s", given);
    else if (core_from_name(path, plugin.core_message, sizeof plugin.core_message))
        return -1;
    if (core_library_open(&plugin.core, path, plugin.core_message, sizeof plugin.core_message)) return -1;
    if (!system_library_find(plugin.core.handle,
                             "exphil_plugin_times")) { /* a plugin in a plugin would open itself for ever */
        plugin.memory.core = &plugin.core;
        return 0;
    }
    snprintf(plugin.core_message, sizeof plugin.core_message,
             "EXPHIL_CORE is this plugin, not a core: %.500s", path);
    core_library_close(&plugin.core);
    return -1;
}

int plugin_path(const char *variable, const char *ending, int any, char *path)
{
    const char *given = plugin_setting(variable, NULL), *game = plugin.game_path;
    int length;
    if (given) {
        length = snprintf(path, PLUGIN_PATH, "%s", given);
        return length < PLUGIN_PATH ? 0 : -1;
    }
    if (!*game) return -1;
    const char *slash = system_last_slash(game), *dot = strrchr(game, '.');
    size_t stem = dot && (!slash || dot > slash) ? (size_t)(dot - game) : strlen(game);
    length = snprintf(path, PLUGIN_PATH, "%.*s%s", (int)stem, game, ending);
    return length > 0 && length < PLUGIN_PATH && (any || system_is_readable(path)) ? 0 : -1;
}
