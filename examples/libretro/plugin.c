/* A libretro core that plays another core's games with a policy of libexphil: it forwards everything, and for one
 * controller port answers what the policy presses. README.md says how it is set up. */
#include "plugin.h"

#include <string.h>

struct plugin plugin;

/* Cost of the latest decisions of this game, and of the session's step in each; returns how many. No part of libretro. */
RETRO_API int64_t exphil_plugin_times(const int32_t **decision_ns, const int32_t **step_ns);

/* 1: something has been told as an error since the game was loaded; after the game, too. No part of libretro. */
RETRO_API int exphil_plugin_failed(void);

static void close_core(void) __attribute__((destructor));

/* The frontend unloads this library when it is done with it; the core goes with it, not before. */
static void close_core(void)
{
    core_library_close(&plugin.core);
}

/* ---- before a game ---- */

unsigned retro_api_version(void)
{
    return RETRO_API_VERSION;
}

void retro_get_system_info(struct retro_system_info *info)
{
    static char name[128];
    memset(info, 0, sizeof *info);
    info->library_name = "exphil without a core";
    info->library_version = exphil_version_string();
    if (plugin_open_core()) return;
    plugin.core.retro_get_system_info(info);
    snprintf(name, sizeof name, "%s + exphil", info->library_name ? info->library_name : "?");
    info->library_name = name;
}

void retro_set_environment(retro_environment_t environment)
{
    struct retro_log_callback log = {NULL};
    plugin.environment = environment;
    plugin.options_told = 0;
    if (environment(RETRO_ENVIRONMENT_GET_LOG_INTERFACE, &log)) plugin.log = log.log;
    if (plugin_open_core()) return;
    plugin.core.retro_set_environment(plugin_environment);
    plugin_send_options();
}

void retro_set_video_refresh(retro_video_refresh_t callback)
{
    if (!plugin_open_core()) plugin.core.retro_set_video_refresh(callback);
}

void retro_set_audio_sample(retro_audio_sample_t callback)
{
    if (!plugin_open_core()) plugin.core.retro_set_audio_sample(callback);
}

void retro_set_audio_sample_batch(retro_audio_sample_batch_t callback)
{
    if (!plugin_open_core()) plugin.core.retro_set_audio_sample_batch(callback);
}

void retro_set_input_poll(retro_input_poll_t callback)
{
    plugin.poll = callback;
    if (!plugin_open_core()) plugin.core.retro_set_input_poll(callback);
}

void retro_set_input_state(retro_input_state_t callback)
{
    plugin.input = callback;
    if (!plugin_open_core()) plugin.core.retro_set_input_state(plugin_input);
}

void retro_init(void)
{
    if (!plugin_open_core())
        plugin.core.retro_init();
    else
        plugin_tell("%s", plugin.core_message);
}

void retro_deinit(void)
{
    if (!plugin_open_core()) plugin.core.retro_deinit();
}

/* ---- a game ---- */

bool retro_load_game(const struct retro_game_info *game)
{
    if (plugin_open_core()) {
        plugin_tell("%s", plugin.core_message);
        return false;
    }
    if (!plugin.core.retro_load_game(game)) return false;
    plugin_begin_game(game ? game->path : NULL);
    return true;
}

bool retro_load_game_special(unsigned type, const struct retro_game_info *games, size_t count)
{
    if (plugin_open_core() || !plugin.core.retro_load_game_special(type, games, count)) return false;
    plugin_begin_game(count && games ? games[0].path : NULL);
    return true;
}

void retro_unload_game(void)
{
    if (plugin_open_core()) return;
    plugin_end_game();
    plugin.core.retro_unload_game();
}

void retro_get_system_av_info(struct retro_system_av_info *info)
{
    memset(info, 0, sizeof *info);
    if (!plugin_open_core()) plugin.core.retro_get_system_av_info(info);
}

void retro_set_controller_port_device(unsigned port, unsigned device)
{
    if (!plugin_open_core()) plugin.core.retro_set_controller_port_device(port, device);
}

void retro_reset(void)
{
    if (plugin_open_core()) return;
    plugin.core.retro_reset();
    plugin_new_start();
}

void retro_run(void)
{
    if (plugin_open_core()) return;
    plugin_before_frame();
    plugin.core.retro_run();
    plugin_after_frame();
}

unsigned retro_get_region(void)
{
    return plugin_open_core() ? RETRO_REGION_NTSC : plugin.core.retro_get_region();
}

void *retro_get_memory_data(unsigned id)
{
    return plugin_open_core() ? NULL : plugin.core.retro_get_memory_data(id);
}

size_t retro_get_memory_size(unsigned id)
{
    return plugin_open_core() ? 0 : plugin.core.retro_get_memory_size(id);
}

void retro_cheat_reset(void)
{
    if (!plugin_open_core()) plugin.core.retro_cheat_reset();
}

void retro_cheat_set(unsigned index, bool enabled, const char *code)
{
    if (!plugin_open_core()) plugin.core.retro_cheat_set(index, enabled, code);
}

/* ---- states: the core's bytes, then ours at the end ---- */

size_t retro_serialize_size(void)
{
    size_t size = plugin_open_core() ? 0 : plugin.core.retro_serialize_size();
    return size ? size + plugin_state_bytes() : 0;
}

/* A recording is one straight line of frames: there is nothing to go back to. */
static int refuse_while_recording(void)
{
    if (plugin.mode != MODE_RECORD) return 0;
    if (!plugin.foreign_told) plugin_tell("no save states, rewind or run-ahead while recording");
    plugin.foreign_told = 1;
    return 1;
}

bool retro_serialize(void *data, size_t size)
{
    size_t own = plugin_state_bytes();
    if (plugin_open_core() || size < own || refuse_while_recording()) return false;
    if (!plugin.core.retro_serialize(data, size - own)) return false;
    if (own) plugin_state_save((uint8_t *)data + size - own);
    return true;
}

/* What stands behind the core's bytes may be damaged or another plugin's: some cores want exactly their own size. */
static bool restore_core(const void *data, size_t size)
{
    if (plugin.core.retro_unserialize(data, size)) return true;
    size_t own = plugin.core.retro_serialize_size();
    return own && own < size && plugin.core.retro_unserialize(data, own);
}

bool retro_unserialize(const void *data, size_t size)
{
    if (plugin_open_core() || refuse_while_recording()) return false;
    size_t part = plugin_state_find(data, size);
    if (!restore_core(data, size - part)) return false;
    plugin_state_restore((const uint8_t *)data + size - part, part);
    return true;
}

/* ---- for a runner ---- */

int exphil_plugin_failed(void)
{
    return plugin.failed;
}

int64_t exphil_plugin_times(const int32_t **decision_ns, const int32_t **step_ns)
{
    *decision_ns = plugin.decision_ns;
    *step_ns = plugin.step_ns;
    return plugin.player.rows < PLUGIN_TIMES ? plugin.player.rows : PLUGIN_TIMES;
}
