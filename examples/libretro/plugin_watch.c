/* What keeps the policy from playing, or a recording from growing, without being an error of anybody: said once. */
#include "plugin.h"

#include <math.h>

#define PATIENCE 600 /* frames */

/* The game is not as the map wants it: a menu, a moment after power-on, or another game. */
void plugin_watch_unready(void)
{
    char why[PLUGIN_MESSAGE];
    if (plugin.mode == MODE_OFF || plugin.watch.begun || ++plugin.watch.waited != PATIENCE) return;
    game_map_unready(&plugin.map, core_memory_at, &plugin.memory, plugin.values, why, sizeof why);
    plugin_warn("in %d frames the game has not begun: %s", PATIENCE, why);
}

/* The game runs. A core asks for the pads that its console has. */
void plugin_watch_running(void)
{
    plugin.watch.begun = 1;
    if (plugin.mode == MODE_OFF || ++plugin.watch.ran != PATIENCE || plugin.watch.asked) return;
    plugin_warn("in %d frames the core has not asked for the pad of port %u: nothing is pressed there",
                PATIENCE, plugin.port + 1);
}

void plugin_watch_missing(int field)
{
    const struct game_field *at = &plugin.map.field[field];
    char why[PLUGIN_MESSAGE];
    if (plugin.watch.row_told) return;
    plugin.watch.row_told = 1;
    core_memory_missing(&plugin.memory, at->address, why, sizeof why);
    plugin_tell("%.600s:%d: address 0x%04lX of '%s': %s", plugin.map.path, at->line,
                (unsigned long)at->address, at->name, why);
}

void plugin_watch_wrong(int field)
{
    const struct game_field *at = &plugin.map.field[field];
    double value = plugin.values[field];
    if (plugin.watch.row_told) return;
    plugin.watch.row_told = 1;
    if (at->kind == FIELD_ID)
        plugin_tell(
            "%.600s:%d: id '%s' is %g, its entries are 0 to %d; such frames are neither played nor recorded",
            plugin.map.path, at->line, at->name, value, (int)at->entries - 1);
    else
        plugin_tell(
            "%.600s:%d: float '%s' is not finite (%g in memory); such frames are neither played nor recorded",
            plugin.map.path, at->line, at->name, value != value ? (double)NAN : value);
}

void plugin_watch_empty(void)
{
    char why[PLUGIN_MESSAGE] = "";
    if (plugin.watch.row_told)
        snprintf(why, sizeof why, "the map does not fit, as is said above");
    else if (!plugin.watch.begun)
        game_map_unready(&plugin.map, core_memory_at, &plugin.memory, plugin.values, why, sizeof why);
    if (!*why) snprintf(why, sizeof why, "no episode lasted %d frames", PLUGIN_LEAST_FRAMES);
    plugin_tell("nothing was recorded: %s", why);
}
