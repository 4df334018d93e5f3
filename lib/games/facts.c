/* What a corpus of games notes of a replay beside its frames, and the way back. All facts are whole numbers that
 * follow from the frames in their order, so that any other reader can count the same. */
#include "games/format.h"

#include <math.h>
#include <stdio.h>

/* ---- settings ------------------------------------------------------------------------------------------ */

/* Where a replay was played; what has no number here is 255. */
static const char *const played_on[] = {"",           "dolphin", "mainline dolphin",
                                        "nintendont", "network", "console"};
#define PLAYED_ON_OTHER 255

static uint8_t played_on_number(const char *text)
{
    for (size_t i = 0; i < sizeof played_on / sizeof played_on[0]; i++) {
        if (strcmp(text, played_on[i]) == 0) return (uint8_t)i;
    }
    return PLAYED_ON_OTHER;
}

/* Fields that a corpus keeps where the replay has them. */
#define KEPT_FIELDS                                                                                          \
  ~(uint32_t)(EXPHIL_SLP_HAS_PRE_PERCENT | EXPHIL_SLP_HAS_FRAME_SEED | EXPHIL_SLP_HAS_LATEST_FINAL |         \
              EXPHIL_SLP_HAS_SCENE_COUNTER)

/* Metadata that cannot be read are none here: a corpus keeps what others say. */
static uint8_t problem_flags(const exphil_slp_info *info)
{
    int64_t count = info->problem_count - (info->metadata == EXPHIL_SLP_METADATA_UNREADABLE);
    return (uint8_t)((count < XPH_GAME_PROBLEMS_MOST ? count : XPH_GAME_PROBLEMS_MOST) * XPH_GAME_PROBLEMS);
}

static void put_settings(const exphil_slp_info *info, xph_game_entry *entry, xph_game_start *start)
{
    entry->seed = info->seed;
    entry->fields = info->fields & KEPT_FIELDS;
    entry->timer_seconds = info->timer_seconds;
    entry->stage = info->stage;
    memcpy(entry->version, info->version, sizeof entry->version);
    entry->game_mode = info->game_mode;
    entry->teams = info->teams;
    entry->pal = info->pal;
    entry->frozen = info->frozen;
    entry->minor_scene = info->minor_scene;
    entry->major_scene = info->major_scene;
    entry->item_spawn = info->item_spawn;
    entry->end_method = info->end_method;
    entry->end_lras = info->end_lras;
    entry->stop = (uint8_t)info->stop;
    entry->played_on = played_on_number(info->played_on);
    entry->language = info->language;
    entry->timer_kind = info->timer_kind;
    entry->friendly_fire = info->friendly_fire;
    entry->self_destruct = info->self_destruct;
    if (info->end_count) entry->flags |= XPH_GAME_ENDED;
    if (info->truncated) entry->flags |= XPH_GAME_CUT;
    entry->flags |= problem_flags(info);
    start->damage_ratio = info->damage_ratio;
    start->game_number = info->game_number;
    start->tiebreak_number = info->tiebreak_number;
    start->metadata_last_frame = info->metadata_last_frame;
}

static void put_port(const exphil_slp_port *from, int8_t placement, xph_game_port *port,
                     xph_game_start_port *rest)
{
    port->character = from->character;
    port->type = from->type;
    port->stocks = from->stocks;
    port->costume = from->costume;
    port->team = from->team;
    port->flags = from->flags;
    port->cpu_level = from->cpu_level;
    port->placement = placement;
    rest->dashback_fix = from->dashback_fix;
    rest->shield_drop_fix = from->shield_drop_fix;
    rest->offence_ratio = from->offence_ratio;
    rest->defence_ratio = from->defence_ratio;
    rest->model_scale = from->model_scale;
    rest->start_damage = from->start_damage;
    rest->respawn_damage = from->respawn_damage;
    rest->team_shade = from->team_shade;
    rest->handicap = from->handicap;
    rest->port = from->port;
}

static exphil_slp_port port_info(const xph_game_port *port, const xph_game_start_port *rest)
{
    return (exphil_slp_port){.dashback_fix = rest->dashback_fix,
                             .shield_drop_fix = rest->shield_drop_fix,
                             .offence_ratio = rest->offence_ratio,
                             .defence_ratio = rest->defence_ratio,
                             .model_scale = rest->model_scale,
                             .start_damage = rest->start_damage,
                             .respawn_damage = rest->respawn_damage,
                             .character = port->character,
                             .type = port->type,
                             .stocks = port->stocks,
                             .costume = port->costume,
                             .team_shade = rest->team_shade,
                             .handicap = rest->handicap,
                             .team = port->team,
                             .flags = port->flags,
                             .cpu_level = port->cpu_level,
                             .port = rest->port};
}

/* ---- what happened ------------------------------------------------------------------------------------- */

/* One port, while its records are looked through in order. */
typedef struct history {
    const exphil_slp_player *last;
    double damage_dealt, damage_taken;
} history;

static uint16_t whole_percent(double damage)
{
    return damage >= UINT16_MAX ? UINT16_MAX : (uint16_t)damage;
}

static void count_to(uint8_t *count)
{
    if (*count < UINT8_MAX) (*count)++;
}

/* The port that hit this one last, or itself. */
static int32_t culprit(const exphil_slp_player *record, int32_t own)
{
    return record->last_hit_by < EXPHIL_SLP_PORTS ? record->last_hit_by : own;
}

static bool has_input(const exphil_slp_player *p)
{
    return p->physical_buttons || p->joy_x != 0 || p->joy_y != 0 || p->c_x != 0 || p->c_y != 0 ||
           p->trigger != 0;
}

/* What changed for a port since its last record. Damage that is no number counts as none. */
static void look_at(const exphil_slp_player *now, int32_t own, history *all, xph_game_port *ports)
{
    const exphil_slp_player *last = all[own].last;
    all[own].last = now;
    ports[own].end_stocks = now->stocks;
    if (has_input(now)) ports[own].input_frames++;
    if (!last) return;
    int32_t by = culprit(now, own);
    double damage = (double)now->percent - (double)last->percent;
    if (now->stocks == last->stocks && damage > 0 && damage < 1000) {
        all[own].damage_taken += damage;
        if (by != own) all[by].damage_dealt += damage;
    }
    if (now->stocks < last->stocks) {
        by = culprit(last, own); /* the record of the death itself may be a new life's */
        count_to(by == own ? &ports[own].self_destructs : &ports[by].stocks_taken);
    }
}

static void look_through(const exphil_slp *slp, xph_game_port *ports)
{
    history all[EXPHIL_SLP_PORTS] = {{.last = NULL}};
    for (int64_t position = 0; position < exphil_slp_frame_count(slp); position++) {
        for (int32_t port = 0; port < EXPHIL_SLP_PORTS; port++) {
            const exphil_slp_player *now = exphil_slp_player_at(slp, position, port, 0);
            if (now) look_at(now, port, all, ports);
        }
    }
    for (int32_t port = 0; port < EXPHIL_SLP_PORTS; port++) {
        ports[port].damage_dealt = whole_percent(all[port].damage_dealt);
        ports[port].damage_taken = whole_percent(all[port].damage_taken);
    }
}

/* The last frame that no rollback can have changed: what the recorder calls final, else what netplay's longest
 * prediction leaves. */
#define PREDICTION 16
static int32_t certain_end(const exphil_slp *slp, const exphil_slp_info *info)
{
    int32_t last = INT32_MIN;
    for (int64_t position = 0; position < exphil_slp_frame_count(slp); position++) {
        int32_t final = exphil_slp_frame_at(slp, position)->latest_final;
        if (final > last && final <= info->last_frame) last = final;
    }
    bool recorded = (info->fields & EXPHIL_SLP_HAS_LATEST_FINAL) && last != INT32_MIN;
    return recorded ? last : info->last_frame - PREDICTION;
}

static uint8_t winner_of(const exphil_slp *slp)
{
    exphil_slp_result result = EXPHIL_SLP_RESULT_INIT;
    return exphil_slp_result_get(slp, &result, NULL) < 0 ? 0 : (uint8_t)result.winner;
}

/* ---- when ---------------------------------------------------------------------------------------------- */

/* So many digits at a place of a text; -1: others stand there. */
static int32_t digits_at(const char *text, int32_t count)
{
    int32_t number = 0;
    for (int32_t i = 0; i < count; i++) {
        if (text[i] < '0' || text[i] > '9') return -1;
        number = 10 * number + text[i] - '0';
    }
    return number;
}

/* Days from 1970-01-01 to the date at the beginning of a text in ISO 8601, as it stands there whatever the zone; 0:
 * there is none before 2149. Civil calendar: years begin in March, so that the odd day comes last. */
static uint16_t day_of(const char *text)
{
    if (strlen(text) < 10 || text[4] != '-' || text[7] != '-') return 0;
    int32_t year = digits_at(text, 4), month = digits_at(text + 5, 2), day = digits_at(text + 8, 2);
    if (year < 1970 || year > 2148 || month < 1 || month > 12 || day < 1 || day > 31) return 0;
    int32_t y = month > 2 ? year : year - 1, m = (month + 9) % 12;
    return (uint16_t)(365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468);
}

/* The way back: the date alone. */
static void date_of(uint16_t day, char *text, size_t capacity)
{
    int32_t z = day + 719468, era = z / 146097, d = z % 146097;
    int32_t y = (d - d / 1460 + d / 36524 - d / 146096) / 365, n = d - (365 * y + y / 4 - y / 100);
    int32_t m = (5 * n + 2) / 153, year = y + era * 400 + (m >= 10);
    text[0] = 0;
    if (day)
        snprintf(text, capacity, "%04d-%02d-%02d", (int)year, (int)(m < 10 ? m + 3 : m - 9),
                 (int)(n - (153 * m + 2) / 5 + 1));
}

/* ---- numbers ------------------------------------------------------------------------------------------- */

static bool all_finite(const float *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i])) return false;
    }
    return true;
}

/* Absent fields hold NaN, and are no layout's: it knows what a replay records. So does misc outside hitstun. */
static bool record_finite(const exphil_slp_player *p, uint32_t fields)
{
    const float always[] = {p->joy_x, p->joy_y, p->c_x,    p->c_y,     p->trigger,
                            p->x,     p->y,     p->facing, p->percent, p->shield};
    const float speed[] = {p->vel_air_x, p->vel_y, p->vel_kb_x, p->vel_kb_y, p->vel_ground_x};
    bool hitstun = (fields & EXPHIL_SLP_HAS_FLAGS) && p->flags[3] & 2;
    return all_finite(always, sizeof always / sizeof always[0]) &&
           (!(fields & EXPHIL_SLP_HAS_STATE_AGE) || isfinite(p->state_age)) &&
           (!hitstun || isfinite(p->misc)) && (!(fields & EXPHIL_SLP_HAS_VELOCITY) || all_finite(speed, 5)) &&
           (!(fields & EXPHIL_SLP_HAS_HITLAG) || isfinite(p->hitlag));
}

static bool item_finite(const exphil_slp_item *item)
{
    const float values[] = {item->facing, item->vel_x, item->vel_y, item->x, item->y, item->timer};
    return all_finite(values, sizeof values / sizeof values[0]);
}

static bool frame_finite(const exphil_slp *slp, int64_t position, uint32_t fields)
{
    const exphil_slp_frame *frame = exphil_slp_frame_at(slp, position);
    if (fields & EXPHIL_SLP_HAS_FOUNTAIN &&
        (!isfinite(frame->fountain_left) || !isfinite(frame->fountain_right)))
        return false;
    for (int32_t i = 0; i < frame->item_count; i++) {
        if (!item_finite(&frame->items[i])) return false;
    }
    for (int32_t slot = 0; slot < XPH_GAME_SLOTS; slot++) {
        const exphil_slp_player *record = exphil_slp_player_at(slp, position, slot / 2, slot % 2);
        if (record && !record_finite(record, fields)) return false;
    }
    return true;
}

static uint8_t number_flags(const exphil_slp *slp, const exphil_slp_info *info)
{
    uint8_t flags = XPH_GAME_FINITE;
    for (int64_t position = 0; position < exphil_slp_frame_count(slp); position++) {
        const exphil_slp_frame *frame = exphil_slp_frame_at(slp, position);
        if (!frame_finite(slp, position, info->fields)) flags = (uint8_t)(flags & ~XPH_GAME_FINITE);
        if (position && frame->frame != frame[-1].frame + 1) flags |= XPH_GAME_GAPS;
    }
    return flags;
}

/* ---- inputs -------------------------------------------------------------------------------------------- */

/* What two recordings of one match share: the inputs of all ports. A follower's are the game's own, made of its
 * leader's. */
static void hash_inputs(const exphil_slp *slp, int64_t position, xph_hasher *hasher)
{
    const uint8_t leaders = exphil_slp_frame_at(slp, position)->slots & 0x55;
    xph_hash_add(hasher, &leaders, 1);
    for (int32_t port = 0; port < EXPHIL_SLP_PORTS; port++) {
        const exphil_slp_player *p = exphil_slp_player_at(slp, position, port, 0);
        if (!p) continue;
        const float values[] = {p->joy_x, p->joy_y, p->c_x, p->c_y, p->trigger};
        const uint32_t words[] = {p->buttons, p->physical_buttons};
        xph_hash_add(hasher, values, sizeof values);
        xph_hash_add(hasher, words, sizeof words);
    }
}

uint32_t xph_game_inputs(const exphil_slp *slp, int64_t first, int64_t frames)
{
    xph_hasher hasher;
    xph_hash_begin(&hasher);
    for (int64_t i = 0; i < frames; i++) hash_inputs(slp, first + i, &hasher);
    return (uint32_t)xph_hash_end(&hasher);
}

/* Of so many frames from the first on in which an input acts: nothing makes consoles agree on those before. 0: they are
 * not all there, or not all certain. */
static uint32_t digest_of(const exphil_slp *slp, int32_t frames, int32_t certain)
{
    int64_t first = exphil_slp_position(slp, EXPHIL_SLP_FIRST_PLAYABLE);
    int32_t last = EXPHIL_SLP_FIRST_PLAYABLE + frames - 1;
    const exphil_slp_frame *frame = first < 0 ? NULL : exphil_slp_frame_at(slp, first + frames - 1);
    if (!frame || frame->frame != last || last > certain) return 0;
    uint32_t digest = xph_game_inputs(slp, first, frames);
    return digest ? digest : 1;
}

static const int32_t rungs[] = {512, 2048, 8192};

static void put_digests(const exphil_slp *slp, xph_game_entry *entry)
{
    for (size_t i = 0; i < sizeof rungs / sizeof rungs[0]; i++)
        entry->digest[i] = digest_of(slp, rungs[i], entry->certain_end);
}

uint32_t xph_game_first_inputs(const exphil_slp *slp, const exphil_slp_info *info)
{
    return exphil_slp_frame_count(slp) ? digest_of(slp, rungs[0], certain_end(slp, info)) : 0;
}

/* ---- runs ---------------------------------------------------------------------------------------------- */

/* Is the record of a port's leader at this position a row's? */
static bool has_row(const exphil_slp *slp, int64_t position, int32_t port)
{
    const exphil_slp_frame *frame = exphil_slp_frame_at(slp, position);
    return position && frame->frame == frame[-1].frame + 1 &&
           exphil_slp_player_at(slp, position - 1, port, 0) && exphil_slp_player_at(slp, position, port, 0);
}

/* Runs of a port, into runs unless it is NULL. */
static uint32_t port_runs(const exphil_slp *slp, int32_t port, xph_game_run *runs)
{
    uint32_t count = 0;
    bool inside = false;
    xph_game_run run = {.port = 0};
    for (int64_t position = 1; position <= exphil_slp_frame_count(slp); position++) {
        bool row = position < exphil_slp_frame_count(slp) && has_row(slp, position, port);
        if (row && !inside)
            run = (xph_game_run){(uint32_t)port + 1, exphil_slp_frame_at(slp, position)->frame,
                                 (uint32_t)position, 0};
        if (row) run.frames++;
        if (inside && !row) {
            if (runs) runs[count] = run;
            count++;
        }
        inside = row;
    }
    return count;
}

static bool is_whole(const exphil_slp *slp, int32_t port)
{
    int64_t frames = exphil_slp_frame_count(slp);
    for (int64_t position = 1; position < frames; position++)
        if (!has_row(slp, position, port)) return false;
    return frames > 1;
}

exphil_status xph_game_runs(exphil_context *context, const exphil_slp *slp, xph_game_entry *entry,
                            xph_game_run **runs, exphil_error *error)
{
    uint32_t count = 0;
    *runs = NULL;
    for (int32_t port = 0; port < EXPHIL_SLP_PORTS; port++) {
        entry->port[port].whole = is_whole(slp, port);
        if (!entry->port[port].whole) count += port_runs(slp, port, NULL);
    }
    entry->runs = count;
    if (!count) return EXPHIL_OK;
    *runs = xph_alloc(context, count * sizeof **runs);
    if (!*runs) return xph_no_memory(count * sizeof **runs, error);
    count = 0;
    for (int32_t port = 0; port < EXPHIL_SLP_PORTS; port++)
        if (!entry->port[port].whole) count += port_runs(slp, port, *runs + count);
    return EXPHIL_OK;
}

/* ---- all ----------------------------------------------------------------------------------------------- */

void xph_game_describe(const exphil_slp *slp, const exphil_slp_info *info, xph_game_entry *entry,
                       xph_game_start *start)
{
    put_settings(info, entry, start);
    entry->frames = (uint32_t)exphil_slp_frame_count(slp);
    entry->items = (uint32_t)info->item_count;
    entry->first_frame = entry->frames ? info->first_frame : 0;
    entry->last_frame = entry->frames ? info->last_frame : 0;
    entry->certain_end = entry->frames ? certain_end(slp, info) : 0;
    entry->tag = xph_slp_match_tag(slp);
    entry->day = day_of(info->started_at);
    entry->flags |= number_flags(slp, info);
    for (int32_t i = 0; i < EXPHIL_SLP_PORTS; i++)
        put_port(&info->ports[i], info->placements[i], &entry->port[i], &start->port[i]);
    for (int32_t i = 0; i < exphil_slp_slot_count(slp); i++) {
        const exphil_slp_slot *slot = exphil_slp_slot_at(slp, i);
        start->records[2 * slot->port + slot->follower] = (uint32_t)slot->record_count;
        entry->records += (uint32_t)slot->record_count;
    }
    look_through(slp, entry->port);
    put_digests(slp, entry);
    entry->winner = winner_of(slp);
}

void xph_game_info(const xph_game_entry *entry, const xph_game_start *start, exphil_slp_info *info)
{
    *info = (exphil_slp_info)EXPHIL_SLP_INFO_INIT;
    info->frame_count = entry->frames;
    info->item_count = entry->items;
    info->problem_count = xph_game_problems(entry);
    info->fields = entry->fields;
    info->container = EXPHIL_SLP_GAMES;
    info->stop = entry->stop;
    info->truncated = (entry->flags & XPH_GAME_CUT) != 0;
    info->first_frame = entry->frames ? entry->first_frame : INT32_MIN;
    info->last_frame = entry->frames ? entry->last_frame : INT32_MIN;
    info->metadata =
        start->metadata_last_frame == INT32_MIN ? EXPHIL_SLP_METADATA_ABSENT : EXPHIL_SLP_METADATA_OK;
    info->metadata_last_frame = start->metadata_last_frame;
    info->end_count = (entry->flags & XPH_GAME_ENDED) != 0;
    info->seed = entry->seed;
    info->timer_seconds = entry->timer_seconds;
    info->game_number = start->game_number;
    info->tiebreak_number = start->tiebreak_number;
    info->damage_ratio = start->damage_ratio;
    info->stage = entry->stage;
    memcpy(info->version, entry->version, sizeof entry->version);
    info->game_mode = entry->game_mode;
    info->timer_kind = entry->timer_kind;
    info->teams = entry->teams;
    info->friendly_fire = entry->friendly_fire;
    info->pal = entry->pal;
    info->frozen = entry->frozen;
    info->minor_scene = entry->minor_scene;
    info->major_scene = entry->major_scene;
    info->language = entry->language;
    info->item_spawn = entry->item_spawn;
    info->self_destruct = entry->self_destruct;
    info->end_method = entry->end_method;
    info->end_lras = entry->end_lras;
    if (entry->played_on < sizeof played_on / sizeof played_on[0])
        snprintf(info->played_on, sizeof info->played_on, "%s", played_on[entry->played_on]);
    date_of(entry->day, info->started_at, sizeof info->started_at);
    for (int32_t i = 0; i < EXPHIL_SLP_PORTS; i++) {
        info->ports[i] = port_info(&entry->port[i], &start->port[i]);
        info->placements[i] = entry->port[i].placement;
        info->player_count = (uint8_t)(info->player_count + (info->ports[i].type < 3));
    }
}
