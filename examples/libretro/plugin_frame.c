/* One frame: what the game shows becomes a row, the row an action, the action what the core reads from the pad. Whatever
 * fails here leaves the pad to the person. */
#include "plugin.h"

#include <stdlib.h>
#include <string.h>

/* ---- a game begins and ends ---- */

/* auto: play where there are weights, else nothing. */
static enum plugin_mode mode_of(const char *setting)
{
    if (!setting) return plugin.player.session ? MODE_PLAY : MODE_OFF;
    if (!strcmp(setting, "record")) return MODE_RECORD;
    if (!strcmp(setting, "play")) return MODE_PLAY;
    if (!strcmp(setting, "learn")) return MODE_LEARN;
    if (strcmp(setting, "off") != 0) plugin_tell("mode '%.40s' is none of play, learn, record, off", setting);
    return MODE_OFF;
}

/* Without a policy: why, and what to do. Weights that could not be had have been told. */
static void tell_no_policy(int asked)
{
    const struct plugin_player *player = &plugin.player;
    if (player->failed) return;
    if (!asked)
        plugin_warn("%s is not there: no policy plays (EXPHIL_MODE=record makes a recording)",
                    *player->path ? player->path : "GAME.safetensors");
    else if (*player->path)
        plugin_tell("no policy to play: %s is not there", player->path);
    else
        plugin_tell("no policy to play: set EXPHIL_MODEL, or put GAME.safetensors beside the game");
}

/* Learning ends, and what it learnt plays on, from a start. */
static void end_learning(void)
{
    char learned[PLUGIN_PATH];
    if (plugin.mode != MODE_LEARN) return;
    snprintf(learned, sizeof learned, "%s", plugin.learn.path);
    int saved = plugin_learn_close();
    plugin_player_close();
    plugin_player_open(saved ? learned : NULL);
}

/* What was learnt cannot be learnt further: the policy plays as it is. */
static enum plugin_mode begin_learning(void)
{
    return plugin_learn_open() ? MODE_PLAY : MODE_LEARN;
}

static void choose_mode(void)
{
    const char *setting = plugin_setting("EXPHIL_MODE", "exphil_mode");
    enum plugin_mode mode = mode_of(setting);
    if (!plugin.player.session && (mode == MODE_PLAY || mode == MODE_LEARN || !setting)) {
        tell_no_policy(setting != NULL);
        mode = MODE_OFF;
    }
    if (mode == plugin.mode) return;
    plugin_record_close();
    end_learning();
    plugin.mode = mode == MODE_LEARN ? begin_learning() : mode;
    plugin_new_start();
    if (mode == MODE_RECORD) plugin_record_open();
    if (plugin.mode == MODE_PLAY || plugin.mode == MODE_LEARN)
        plugin_say(RETRO_LOG_INFO, "%s plays port %u, %s actions%s", plugin.player.path, plugin.port + 1,
                   plugin.player.likeliest ? "likeliest" : "sampled",
                   plugin.mode == MODE_LEARN ? ", and learns when you take over" : "");
}

static int open_map(void)
{
    char path[PLUGIN_PATH], message[PLUGIN_MESSAGE];
    if (plugin_path("EXPHIL_MAP", ".exphil", 0, path)) {
        plugin_tell("no map of this game: set EXPHIL_MAP, or put GAME.exphil beside it");
        return -1;
    }
    if (game_map_load(&plugin.map, path, message, sizeof message)) {
        plugin_tell("%s", message);
        return -1;
    }
    plugin.has_map = 1;
    plugin.memory.id = plugin.map.memory;
    plugin.floats = calloc((size_t)plugin.map.floats + 1, sizeof(float));
    plugin.ids = calloc((size_t)plugin.map.ids + 1, sizeof(int32_t));
    if (plugin.floats && plugin.ids) return 0;
    plugin_tell("no memory");
    return -1;
}

void plugin_begin_game(const char *game_path)
{
    snprintf(plugin.game_path, sizeof plugin.game_path, "%s", game_path ? game_path : "");
    bool masks = false;
    plugin.foreign_told = plugin.failed = 0;
    memset(&plugin.watch, 0, sizeof plugin.watch);
    plugin.mode = MODE_OFF;
    plugin.bitmasks = plugin.environment(RETRO_ENVIRONMENT_GET_INPUT_BITMASKS, &masks) ? 1 : 0;
    if (open_map()) {
        plugin_end_game();
        return;
    }
    const char *port = plugin_setting("EXPHIL_PORT", "exphil_port");
    uint64_t chosen = (uint64_t)plugin.map.port;
    if (port && plugin_whole(port, 1, 16, &chosen))
        plugin_tell("port '%.20s' is not 1 to 16: port %d", port, (int)plugin.map.port);
    plugin.port = (unsigned)chosen - 1;
    game_map_owned(&plugin.map, &plugin.owned_buttons, &plugin.owned_axes);
    plugin_player_open(NULL);
    plugin_teacher_open();
    choose_mode();
}

static int compare(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Nanoseconds of the share-th of the latest decisions; sorts them. */
static int32_t quantile(int32_t *times, double share)
{
    int64_t count = plugin.player.rows < PLUGIN_TIMES ? plugin.player.rows : PLUGIN_TIMES;
    if (count == 0) return 0;
    qsort(times, (size_t)count, sizeof *times, compare);
    return times[(int64_t)(share * (double)(count - 1))];
}

static void report(void)
{
    if (plugin.map.score[0] >= 0)
        plugin_say(RETRO_LOG_INFO, "%lld frames, score %lld:%lld", (long long)plugin.game.frames,
                   (long long)plugin.game.score[0], (long long)plugin.game.score[1]);
    if (plugin.player.rows)
        plugin_say(
            RETRO_LOG_INFO,
            "%lld decisions; microseconds at the median, of 99 in 100, at most: decision %.1f %.1f %.1f, "
            "of that step %.1f %.1f %.1f",
            (long long)plugin.player.rows, quantile(plugin.decision_ns, 0.5) / 1e3,
            quantile(plugin.decision_ns, 0.99) / 1e3, quantile(plugin.decision_ns, 1) / 1e3,
            quantile(plugin.step_ns, 0.5) / 1e3, quantile(plugin.step_ns, 0.99) / 1e3,
            quantile(plugin.step_ns, 1) / 1e3);
}

void plugin_end_game(void)
{
    plugin_record_close();
    (void)plugin_learn_close();
    if (plugin.has_map) report();
    plugin_player_close();
    plugin_teacher_close();
    if (plugin.has_map) game_map_free(&plugin.map);
    free(plugin.floats);
    free(plugin.ids);
    plugin.floats = NULL;
    plugin.ids = NULL;
    plugin.has_map = plugin.pressing = 0;
    plugin.mode = MODE_OFF;
    plugin.memory.parts = 0;
    memset(&plugin.game, 0, sizeof plugin.game);
}

void plugin_new_start(void)
{
    if (plugin.mode == MODE_RECORD) plugin_record_end_episode();
    plugin.game.running = 0;
}

/* ---- before the core runs ---- */

static void count_points(void)
{
    for (int side = 0; side < 2; side++) {
        if (plugin.map.score[side] < 0) return;
        int64_t points = game_map_points(plugin.values[plugin.map.score[side]], &plugin.game.points[side]);
        if (plugin.game.running) plugin.game.score[side] += points;
    }
}

/* 0: the game runs and its row is there. */
static int read_row(void)
{
    int field = 0;
    if (game_map_read(&plugin.map, core_memory_at, &plugin.memory, plugin.values, &field)) {
        plugin_watch_missing(field);
        return -1;
    }
    if (!game_map_ready(&plugin.map, core_memory_at, &plugin.memory, plugin.values)) {
        plugin_watch_unready();
        return -1;
    }
    if (!game_map_row(&plugin.map, plugin.values, plugin.floats, plugin.ids, &field)) return 0;
    plugin_watch_wrong(field);
    return -1;
}

static void follow_game(void)
{
    double episode = plugin.map.episode >= 0 ? plugin.values[plugin.map.episode] : 0;
    count_points();
    plugin.begun = !plugin.game.running || episode != plugin.game.episode;
    if (plugin.begun && plugin.mode == MODE_RECORD) plugin_record_end_episode();
    plugin.game.running = 1;
    plugin.game.episode = episode;
}

void plugin_before_frame(void)
{
    int64_t start = plugin_now();
    plugin_poll_options();
    if (plugin.has_map && (plugin.options_changed & 2)) {
        plugin.options_changed &= ~2;
        choose_mode();
    }
    plugin.pressing = plugin.begun = 0;
    plugin.game.frames++;
    if (!plugin.has_map) return;
    if (read_row()) {
        plugin_new_start();
        return;
    }
    follow_game();
    plugin_watch_running();
    if (plugin.mode == MODE_PLAY && !plugin.player.failed)
        plugin.pressing = plugin_player_step() == 0;
    else if (plugin.mode == MODE_LEARN && !plugin.player.failed)
        plugin.pressing = plugin_learn_step() == 0;
    else if (plugin.mode == MODE_RECORD)
        plugin.pressing = plugin_teacher_act() == 0;
    if (plugin.pressing)
        game_map_press(&plugin.map, plugin.mode == MODE_RECORD ? plugin_disturb() : plugin.action,
                       &plugin.press);
    if (plugin.pressing && plugin.mode != MODE_RECORD)
        plugin.decision_ns[plugin.player.rows++ % PLUGIN_TIMES] = (int32_t)(plugin_now() - start);
}

/* ---- while and after the core runs ---- */

static uint16_t held_buttons(unsigned port)
{
    unsigned buttons = 0;
    if (plugin.bitmasks)
        return (uint16_t)plugin.input(port, RETRO_DEVICE_JOYPAD, 0, RETRO_DEVICE_ID_JOYPAD_MASK);
    for (unsigned id = 0; id <= RETRO_DEVICE_ID_JOYPAD_R3; id++)
        if (plugin.input(port, RETRO_DEVICE_JOYPAD, 0, id)) buttons |= 1u << id;
    return (uint16_t)buttons;
}

void plugin_pad(struct game_press *held)
{
    *held = (struct game_press){held_buttons(plugin.port), {0}, 15};
    for (unsigned i = 0; i < GAME_MAP_AXES; i++)
        held->axis[i] = plugin.input(plugin.port, RETRO_DEVICE_ANALOG, i / 2, i % 2);
}

/* The person's buttons but for those that an action answers for, and the one that is for us. */
static uint16_t pad_buttons(void)
{
    const unsigned own = plugin.owned_buttons | plugin.learn.button;
    return (uint16_t)((held_buttons(plugin.port) & ~own) | plugin.press.buttons);
}

int16_t plugin_input(unsigned port, unsigned device, unsigned index, unsigned id)
{
    if (!plugin.input) return 0;
    if (port == plugin.port) plugin.watch.asked = 1;
    if (!plugin.pressing || port != plugin.port) return plugin.input(port, device, index, id);
    switch (device & RETRO_DEVICE_MASK) {
    case RETRO_DEVICE_JOYPAD:
        if (id == RETRO_DEVICE_ID_JOYPAD_MASK) return (int16_t)pad_buttons();
        return (int16_t)(id <= RETRO_DEVICE_ID_JOYPAD_R3 ? pad_buttons() >> id & 1 : 0);
    case RETRO_DEVICE_ANALOG:
        if (index == RETRO_DEVICE_INDEX_ANALOG_BUTTON && id <= RETRO_DEVICE_ID_JOYPAD_R3 &&
            plugin.owned_buttons >> id & 1)
            return plugin.press.buttons >> id & 1 ? 0x7FFF : 0;
        if (index <= RETRO_DEVICE_INDEX_ANALOG_RIGHT && id <= 1 && plugin.owned_axes >> (index * 2 + id) & 1)
            return plugin.press.axis[index * 2 + id];
        break;
    default:
        break;
    }
    return plugin.input(port, device, index, id);
}

void plugin_after_frame(void)
{
    if (plugin.mode != MODE_RECORD || !plugin.game.running) return;
    if (!plugin.pressing && plugin.input) { /* a person: what the core was told in this frame */
        struct game_press held;
        plugin_pad(&held);
        game_map_action(&plugin.map, &held, plugin.action);
    }
    plugin_record_frame();
}
