/* The teacher: a scripted player that is recorded, and the disturbances of what it presses. */
#include "plugin.h"

#include <stdlib.h>
#include <string.h>

/* -1: told. */
static int open_teacher(const char *path)
{
    struct plugin_teacher *teacher = &plugin.teacher;
    char why[PLUGIN_MESSAGE];
    teacher->library = system_library_open(path, why, sizeof why);
    if (!teacher->library) return plugin_tell("no teacher: %.900s", why), -1;
    *(void **)&teacher->act = system_library_find(teacher->library, "exphil_teacher");
    if (!teacher->act) return plugin_tell("%s has no function exphil_teacher", path), -1;
    if (plugin.map.state_bytes) return 0;
    plugin_tell("%.600s has no line 'state ADDRESS BYTES' for the teacher", plugin.map.path);
    return -1;
}

void plugin_teacher_open(void)
{
    const char *path = system_variable("EXPHIL_TEACHER");
    int asked = path && *path;
    uint64_t disturb = 0;
    plugin.teacher.random = 0x9E3779B97F4A7C15u;
    plugin.teacher.missing =
        plugin_number("EXPHIL_DISTURB", 0, 100, &disturb) || (asked && open_teacher(path));
    plugin.teacher.disturb = (double)disturb / 100;
    if (disturb == 0 || asked) return;
    plugin_tell("EXPHIL_DISTURB is of a teacher: set EXPHIL_TEACHER too");
    plugin.teacher.missing = 1;
}

/* Frames of nobody must not be recorded as if the teacher had let them be. */
static int stop_teacher(void)
{
    plugin.teacher.act = NULL;
    plugin.teacher.missing = 1;
    if (plugin.mode == MODE_RECORD) plugin_record_stop();
    return -1;
}

void plugin_teacher_close(void)
{
    system_library_close(plugin.teacher.library);
    memset(&plugin.teacher, 0, sizeof plugin.teacher);
}

int plugin_teacher_act(void)
{
    const struct game_map *map = &plugin.map;
    if (!plugin.teacher.act) return -1;
    const uint8_t *state = core_memory_at(&plugin.memory, map->state_address, map->state_bytes);
    if (!state) {
        char why[PLUGIN_MESSAGE];
        core_memory_missing(&plugin.memory, map->state_address, why, sizeof why);
        plugin_tell("%.600s:%d: the teacher's %lu bytes at 0x%04lX are not there: %.200s", map->path,
                    map->state_line, (unsigned long)map->state_bytes, (unsigned long)map->state_address, why);
        return stop_teacher();
    }
    if (plugin.teacher.act(state, map->state_bytes, map->player, plugin.action)) return -1;
    for (int h = 0; h < map->heads; h++) {
        const struct game_head *head = &map->head[h];
        int64_t most = head->kind == EXPHIL_BERNOULLI ? ((int64_t)1 << head->count) - 1 : head->count - 1;
        if (plugin.action[h] >= 0 && plugin.action[h] <= most) continue;
        plugin_tell("the teacher's action %d is none of head '%s'", (int)plugin.action[h], head->name);
        return stop_teacher();
    }
    return 0;
}

/* xorshift64* (Vigna 2016). */
static uint32_t draw(void)
{
    uint64_t *state = &plugin.teacher.random;
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)((*state * 0x2545F4914F6CDD1Du) >> 32);
}

#define DISTURBANCE 12 /* frames at most, at least 1 */

/* Now and then another action is pressed for a few frames while the teacher's goes on being recorded, so that the data
 * shows how to get back from where a flawless player never is (Laskey et al. 2017, DART). */
const int32_t *plugin_disturb(void)
{
    static int32_t other[EXPHIL_HEADS_MAX];
    struct plugin_teacher *teacher = &plugin.teacher;
    if (teacher->disturbed_frames > 0) {
        teacher->disturbed_frames--;
        return other;
    }
    if (draw() / 4294967296.0 * (DISTURBANCE + 1) / 2 >= teacher->disturb) return plugin.action;
    teacher->disturbed_frames = (int32_t)(draw() % DISTURBANCE);
    for (int h = 0; h < plugin.map.heads; h++) {
        const struct game_head *head = &plugin.map.head[h];
        uint32_t most = head->kind == EXPHIL_BERNOULLI ? 1u << head->count : (uint32_t)head->count;
        other[h] = (int32_t)(draw() % most);
    }
    return other;
}
