/* What a replay says, as JSON. Keys of 0.1 stay as they are, ports in end.lras and placements by index from 0; in keys that
 * came later, ports count from 1. */
#include "slp_report.h"

#include "slp_manifest.h"
#include "slp_words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

static const char *const problem_names[] = {
    "negative_length", "length_past_file", "short_event",     "second_start",          "port",
    "no_frame_start",  "item_outside",     "bookend_outside", "frame_index_too_large", "metadata",
    "item_limit"};

enum { PROBLEMS = sizeof problem_names / sizeof problem_names[0] };

static const char *metadata_name(int32_t state)
{
    static const char *const names[] = {"absent", "ok", "unreadable"};
    return state >= 0 && state <= EXPHIL_SLP_METADATA_UNREADABLE ? names[state] : "?";
}

static exphil_slp_info info_of(const exphil_slp *slp)
{
    exphil_slp_info info = EXPHIL_SLP_INFO_INIT;
    if (exphil_slp_query(slp, &info, NULL) < 0) info.struct_size = 0;
    return info;
}

/* ---- JSON ---------------------------------------------------------------------------------------------- */

static void set_int(json_t *object, const char *key, int64_t value)
{
    (void)json_object_set_new(object, key, json_integer((json_int_t)value));
}

/* null when the value is the one that stands for "not there". */
static void set_unless(json_t *object, const char *key, int64_t value, int64_t absent)
{
    (void)json_object_set_new(object, key, value == absent ? json_null() : json_integer((json_int_t)value));
}

static void set_text(json_t *object, const char *key, const char *text)
{
    json_t *string = json_string(text); /* NULL for a path that is not UTF-8 */
    (void)json_object_set_new(object, key, string ? string : json_null());
}

static void set_name(json_t *object, const char *key, const char *name)
{
    (void)json_object_set_new(object, key, name ? json_string(name) : json_null());
}

static json_t *json_ports(const exphil_slp_info *info)
{
    json_t *list = json_array();
    for (int i = 0; i < EXPHIL_SLP_PORTS; i++) {
        const exphil_slp_port *port = &info->ports[i];
        if (port->type == 3) continue;
        json_t *object = json_object();
        set_int(object, "port", i + 1);
        set_int(object, "character", port->character);
        set_name(object, "character_name", exphil_melee_character_name(port->character));
        set_int(object, "type", port->type);
        set_int(object, "stocks", port->stocks);
        set_int(object, "team", port->team);
        set_int(object, "costume", port->costume);
        set_int(object, "cpu_level", port->cpu_level);
        set_unless(object, "dashback_fix", port->dashback_fix, UINT32_MAX);
        set_unless(object, "shield_drop_fix", port->shield_drop_fix, UINT32_MAX);
        (void)json_array_append_new(list, object);
    }
    return list;
}

static json_t *json_slots(const exphil_slp *slp)
{
    json_t *list = json_array();
    for (int32_t i = 0; i < exphil_slp_slot_count(slp); i++) {
        const exphil_slp_slot *slot = exphil_slp_slot_at(slp, i);
        const exphil_slp_player *last = &slot->records[slot->record_count - 1];
        json_t *object = json_object(), *percent = json_real((double)last->percent); /* NULL for a NaN */
        char name[16];
        (void)snprintf(name, sizeof name, "P%d%s", (int)slot->port + 1, slot->follower ? "n" : "");
        set_text(object, "slot", name);
        set_int(object, "records", slot->record_count);
        set_int(object, "first", slot->first_frame);
        set_int(object, "last", slot->last_frame);
        (void)json_object_set_new(object, "final_percent", percent ? percent : json_null());
        set_int(object, "final_stocks", last->stocks);
        (void)json_array_append_new(list, object);
    }
    return list;
}

static json_t *json_end(const exphil_slp_info *info)
{
    if (info->end_count == 0) return json_null();
    json_t *object = json_object(), *places = json_array();
    set_int(object, "method", info->end_method);
    if (info->fields & EXPHIL_SLP_HAS_LRAS) set_int(object, "lras", info->end_lras);
    for (int i = 0; i < EXPHIL_SLP_PORTS; i++)
        (void)json_array_append_new(places, json_integer(info->placements[i]));
    if (info->fields & EXPHIL_SLP_HAS_PLACEMENTS) (void)json_object_set(object, "placements", places);
    json_decref(places);
    return object;
}

static json_t *json_problems(const exphil_slp_info *info)
{
    json_t *list = json_array();
    for (size_t i = 0; i < PROBLEMS; i++)
        if (info->problems >> i & 1) (void)json_array_append_new(list, json_string(problem_names[i]));
    return list;
}

/* How the reading went. */
static void set_reading(json_t *object, const exphil_slp_info *info)
{
    static const char *const containers[] = {
        [EXPHIL_SLP_CONTAINER] = "ubjson", [EXPHIL_SLP_BARE] = "bare", [EXPHIL_SLP_GAMES] = "games"};
    set_text(object, "container", containers[info->container]);
    set_int(object, "bytes", (int64_t)info->input_bytes);
    set_int(object, "raw_declared", info->raw_declared_bytes);
    set_text(object, "stop", slp_stop_name(info->stop));
    set_int(object, "stop_offset", (int64_t)info->stop_offset);
    (void)json_object_set_new(object, "truncated", json_boolean(info->truncated));
    set_text(object, "metadata", metadata_name(info->metadata));
    (void)json_object_set_new(object, "played_on",
                              info->played_on[0] ? json_string(info->played_on) : json_null());
    set_unless(object, "metadata_last_frame", info->metadata_last_frame, INT32_MIN);
    set_int(object, "frames", info->frame_count);
    set_int(object, "instances", info->instance_count);
    set_int(object, "incomplete_instances", info->incomplete_count);
    set_unless(object, "first_frame", info->first_frame, INT32_MIN);
    set_unless(object, "last_frame", info->last_frame, INT32_MIN);
    set_int(object, "items", info->item_count);
    set_int(object, "unknown_events", info->unknown_event_count);
    set_int(object, "game_end_count", info->end_count);
    set_int(object, "problem_count", info->problem_count);
    (void)json_object_set_new(object, "problems", json_problems(info));
}

static void set_settings(json_t *object, const exphil_slp_info *info)
{
    char version[16];
    const uint8_t *v = info->version;
    (void)snprintf(version, sizeof version, "%u.%u.%u", (unsigned)v[0], (unsigned)v[1], (unsigned)v[2]);
    set_text(object, "version", version);
    set_int(object, "stage", info->stage);
    set_name(object, "stage_name", exphil_melee_stage_name(info->stage));
    set_int(object, "game_mode", info->game_mode);
    (void)json_object_set_new(object, "is_teams", json_boolean(info->teams));
    set_int(object, "item_spawn", info->item_spawn);
    set_int(object, "timer_seconds", info->timer_seconds);
    set_int(object, "seed", info->seed);
    set_unless(object, "pal", info->pal, UINT8_MAX);
    set_unless(object, "frozen_ps", info->frozen, UINT8_MAX);
    set_unless(object, "minor_scene", info->minor_scene, UINT8_MAX);
    set_unless(object, "major_scene", info->major_scene, UINT8_MAX);
    set_unless(object, "language", info->language, UINT8_MAX);
    set_unless(object, "game_number", info->game_number, UINT32_MAX);
    set_unless(object, "tiebreak_number", info->tiebreak_number, UINT32_MAX);
}

/* Ports 1..4 of bits. */
static json_t *json_bits(int32_t bits)
{
    json_t *list = json_array();
    for (int i = 0; i < EXPHIL_SLP_PORTS; i++)
        if (bits >> i & 1) (void)json_array_append_new(list, json_integer(i + 1));
    return list;
}

/* Since 0.2. */
static void set_result(json_t *object, const exphil_slp *slp, const exphil_slp_info *info)
{
    exphil_slp_result result = EXPHIL_SLP_RESULT_INIT;
    char problem[WORDS_LONG];
    if (exphil_slp_result_get(slp, &result, NULL) < 0) return;
    set_text(object, "result", words_reason(result.reason));
    set_unless(object, "winner_port", result.winner, 0);
    (void)json_object_set_new(object, "winner_ports", json_bits(result.winners));
    set_unless(object, "quitter_port", result.quitter, 0);
    (void)json_object_set_new(object, "started_at",
                              info->started_at[0] ? json_string(info->started_at) : json_null());
    (void)json_object_set_new(object, "seconds", json_real((double)words_clock_frames(info) / 60.0));
    set_name(object, "finding", words_finding(problem, info) ? problem : NULL);
}

void slp_report_json(FILE *out, const char *path, const exphil_slp *slp, json_t *game,
                     const exphil_error *error)
{
    json_t *object = json_object();
    set_text(object, "file", path);
    if (game) (void)json_object_set_new(object, "game", game);
    (void)json_object_set_new(object, "readable", json_boolean(slp != NULL));
    if (slp) {
        const exphil_slp_info info = info_of(slp);
        set_settings(object, &info);
        (void)json_object_set_new(object, "players", json_ports(&info));
        set_reading(object, &info);
        (void)json_object_set_new(object, "slots", json_slots(slp));
        (void)json_object_set_new(object, "end", json_end(&info));
        set_result(object, slp, &info);
    } else {
        set_text(object, "status", exphil_status_name(error->status));
        set_text(object, "error", error->message);
    }
    (void)json_dumpf(object, out, JSON_COMPACT | JSON_SORT_KEYS);
    (void)fprintf(out, "\n");
    json_decref(object);
}
