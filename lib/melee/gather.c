/* A frame seen from one player, and the plain numbers about each of its characters, items and the world
 * that the layout tables pick from. Absent and unknown things are zeros here; the masks that say so are
 * numbers of their own. Integers are clamped before they are converted, so any bytes are safe. */
#include "melee/cloud.h"
#include "melee/layout.h"

#include <math.h>

#define FOUNTAIN        2
#define STADIUM         3
#define YOSHIS          8
#define DREAM_LAND      28
#define FIRST_PLAYABLE  (-39)
#define FLAGS4_HITSTUN  0x02
#define FLAGS1_REFLECTS 0x14 /* what ExPhil's parser calls invulnerable */
#define TECH            199  /* and the rolls out of it, forward and backward, behind it */
#define TECH_MASKED     7    /* frames in which they look alike, slippi_ai/observations.py */

/* Where the ground ends on the right (and, mirrored, on the left), standing: libmelee stages.py
 * EDGE_GROUND_POSITION. */
static const struct stage {
    int32_t id;
    float edge;
} stages[6] = {
    {FOUNTAIN, 63.3475494385f},   {STADIUM, 87.75f},    {YOSHIS, 56.0f},
    {DREAM_LAND, 77.2713012695f}, {31, 68.4000015259f}, {32, 85.5656967163f},
};

/* Bits of the five flag bytes that mean something (Slippi's specification, post-frame 0x26..0x2A): absorbing,
 * reflecting as owner, reflecting; intangible, fast-falling, in hitlag as defender, in hitlag; holding, in
 * shield; shield touched, powershield; cloaked, inactive, dead, off-screen. */
static const struct bit {
    uint8_t byte, mask;
} bits[XPH_CHAR_COUNT - XPH_CHAR_BIT] = {
    {0, 0x02}, {0, 0x08}, {0, 0x10}, {1, 0x04}, {1, 0x08}, {1, 0x10}, {1, 0x20}, {2, 0x04},
    {2, 0x80}, {3, 0x04}, {3, 0x20}, {4, 0x02}, {4, 0x10}, {4, 0x40}, {4, 0x80},
};

double xph_melee_stage_edge(int32_t stage)
{
    for (int32_t i = 0; i < 6; i++) {
        if (stages[i].id == stage) return (double)stages[i].edge;
    }
    return 0;
}

/* Whole part, clamped; NaN gives low. */
static int32_t whole(double value, int32_t low, int32_t high)
{
    if (!(value > low)) return low;
    return value >= high ? high : (int32_t)value;
}

/* ---- scene --------------------------------------------------------------------------------------------- */

static const exphil_melee_character *if_present(const exphil_melee_character *character)
{
    return character->present ? character : NULL;
}

/* The opponent: the given port, or the first other port that is present. */
static int32_t find_opponent(const exphil_melee_frame *frame)
{
    if (frame->opponent_port) return frame->opponent_port;
    for (int32_t port = 1; port <= 4; port++) {
        if (port != frame->own_port && frame->player[port - 1].present) return port;
    }
    return 0;
}

static double distance_of(const exphil_melee_item *item, const exphil_melee_character *own)
{
    double dx = (double)item->x - (double)own->x, dy = (double)item->y - (double)own->y;
    return dx * dx + dy * dy;
}

/* Nearest to the own character first, of equally near ones the older. An insertion sort of at most 15
 * items of which only the first slots are kept. A position that is not finite is an error here, as it has
 * no distance. */
static exphil_status pick_items(xph_melee_scene *scene, const char **culprit)
{
    const exphil_melee_character *own = scene->character[XPH_WHO_OWN];
    double distance[XPH_MELEE_ITEMS];
    int32_t kept = 0;
    for (int32_t i = 0; i < scene->frame->item_count; i++) {
        const exphil_melee_item *item = &scene->frame->item[i];
        if (!isfinite(item->x) || !isfinite(item->y)) {
            *culprit = isfinite(item->x) ? "item.y is not finite" : "item.x is not finite";
            return EXPHIL_E_NUMERIC;
        }
        double d = distance_of(item, own);
        int32_t at = kept;
        while (at > 0 && (d < distance[at - 1] ||
                          (d == distance[at - 1] && item->spawn_id < scene->item[at - 1]->spawn_id))) {
            at--;
        }
        if (at == XPH_MELEE_ITEMS) continue;
        if (kept < XPH_MELEE_ITEMS) kept++;
        for (int32_t j = kept - 1; j > at; j--) {
            scene->item[j] = scene->item[j - 1];
            distance[j] = distance[j - 1];
        }
        scene->item[at] = item;
        distance[at] = d;
    }
    return EXPHIL_OK;
}

static const char *frame_trouble(const exphil_melee_frame *frame)
{
    if (frame->own_port < 1 || frame->own_port > 4) return "frame.own_port must be 1..4";
    if (frame->opponent_port < 0 || frame->opponent_port > 4) return "frame.opponent_port must be 0..4";
    if (frame->opponent_port == frame->own_port) return "frame.opponent_port is frame.own_port";
    if (frame->item_count < 0 || frame->item_count > EXPHIL_MELEE_ITEMS_MAX) {
        return "frame.item_count must be 0..15";
    }
    if (!frame->player[frame->own_port - 1].present) return "frame.own_port: that player is not present";
    return NULL;
}

exphil_status xph_melee_scene_make(const exphil_melee_frame *frame, xph_melee_scene *scene,
                                   const char **culprit)
{
    const char *trouble = frame_trouble(frame);
    if (trouble) {
        *culprit = trouble;
        return EXPHIL_E_INVALID;
    }
    int32_t own = frame->own_port - 1, opponent = find_opponent(frame);
    *scene = (xph_melee_scene){.frame = frame, .edge = xph_melee_stage_edge(frame->stage)};
    scene->opponent_port = opponent;
    scene->character[XPH_WHO_OWN] = &frame->player[own];
    scene->character[XPH_WHO_OWN_NANA] = if_present(&frame->follower[own]);
    if (opponent) {
        scene->character[XPH_WHO_OPPONENT] = if_present(&frame->player[opponent - 1]);
        scene->character[XPH_WHO_OPPONENT_NANA] = if_present(&frame->follower[opponent - 1]);
    }
    if (!isfinite(frame->player[own].x) || !isfinite(frame->player[own].y)) {
        *culprit = isfinite(frame->player[own].x) ? "own.y is not finite" : "own.x is not finite";
        return EXPHIL_E_NUMERIC;
    }
    return pick_items(scene, culprit);
}

/* ---- a character --------------------------------------------------------------------------------------- */

/* To the nearest whole frame, halves up, never below 0: what ExPhil's parser does. Not a number stays one. */
static double rounded_age(double age)
{
    if (!xph_finite(age)) return age;
    return whole(age + 0.5, 0, 1 << 20);
}

/* Not a number stays one. */
static double whole_percent(double percent)
{
    return xph_finite(percent) ? whole(percent, 0, UINT16_MAX) : percent;
}

/* What slippi-ai lets a player see of the other's state. */
static int32_t masked_state(const exphil_melee_character *c)
{
    bool rolls = c->action_state == TECH + 1 || c->action_state == TECH + 2;
    return rolls && c->known & EXPHIL_MELEE_HAS_AGE && c->state_age < TECH_MASKED ? TECH : c->action_state;
}

static void gather_flags(const exphil_melee_character *c, double *value)
{
    value[XPH_CHAR_JUMPS] = c->jumps;
    value[XPH_CHAR_AIRBORNE] = c->airborne != 0;
    value[XPH_CHAR_GROUNDED] = c->airborne == 0;
    value[XPH_CHAR_LCANCEL] = c->l_cancel;
    value[XPH_CHAR_REFLECTING] = (c->flags[0] & FLAGS1_REFLECTS) != 0;
    /* The place in which the game keeps hitstun means other things at other times, and runs below 0. */
    if (c->flags[3] & FLAGS4_HITSTUN) {
        value[XPH_CHAR_IN_HITSTUN] = 1;
        value[XPH_CHAR_HITSTUN] = c->misc < 0 ? 0 : (double)c->misc;
    }
    for (int32_t i = 0; i < XPH_CHAR_COUNT - XPH_CHAR_BIT; i++) {
        value[XPH_CHAR_BIT + i] = (c->flags[bits[i].byte] & bits[i].mask) != 0;
    }
}

static void gather_speed(const exphil_melee_character *c, double *value)
{
    value[XPH_CHAR_AIR_X] = (double)c->speed_air_x;
    value[XPH_CHAR_GROUND_X] = (double)c->speed_ground_x;
    value[XPH_CHAR_SPEED_Y] = (double)c->speed_y;
    value[XPH_CHAR_ATTACK_X] = (double)c->speed_attack_x;
    value[XPH_CHAR_ATTACK_Y] = (double)c->speed_attack_y;
}

/* What only later recorders know. */
static void gather_known(const exphil_melee_character *c, double *value)
{
    for (int32_t i = 0; i < 5; i++) value[XPH_CHAR_HAS_AGE + i] = c->known >> i & 1;
    value[XPH_CHAR_GROUNDED] = 1;
    value[XPH_CHAR_LCANCEL] = -1;
    value[XPH_CHAR_HURTBOX] = c->known & EXPHIL_MELEE_HAS_HURTBOX ? c->hurtbox : -1;
    value[XPH_CHAR_INVULNERABLE] = value[XPH_CHAR_HURTBOX] > 0;
    if (c->known & EXPHIL_MELEE_HAS_AGE) {
        value[XPH_CHAR_AGE] = (double)c->state_age;
        value[XPH_CHAR_AGE_ROUNDED] = rounded_age((double)c->state_age);
        value[XPH_CHAR_AGE_ID] = whole((double)c->state_age, -2, 61) + 2;
    }
    if (c->known & EXPHIL_MELEE_HAS_FLAGS) gather_flags(c, value);
    if (c->known & EXPHIL_MELEE_HAS_SPEED) gather_speed(c, value);
    if (c->known & EXPHIL_MELEE_HAS_HITLAG) value[XPH_CHAR_HITLAG] = (double)c->hitlag;
}

static void gather_character(const exphil_melee_character *c, double edge, double *value)
{
    double x = (double)c->x, distance = x < 0 ? -x : x, side = c->facing < 0 ? -1 : 1;
    value[XPH_CHAR_PRESENT] = 1;
    value[XPH_CHAR_PERCENT] = (double)c->percent;
    value[XPH_CHAR_FACING] = (double)c->facing;
    value[XPH_CHAR_SIDE] = side;
    value[XPH_CHAR_X] = x;
    value[XPH_CHAR_Y] = (double)c->y;
    value[XPH_CHAR_SHIELD] = (double)c->shield;
    value[XPH_CHAR_STOCKS] = c->stocks;
    value[XPH_CHAR_COMBO] = c->combo;
    value[XPH_CHAR_EDGE] = edge > 0 ? edge - distance : 0;
    value[XPH_CHAR_EDGE_AHEAD] = edge > 0 ? edge - x * side : 0;
    value[XPH_CHAR_EDGE_85] = 85 - distance;
    value[XPH_CHAR_STATE] = c->action_state;
    value[XPH_CHAR_PERCENT_WHOLE] = whole_percent((double)c->percent);
    value[XPH_CHAR_RIGHT] = c->facing > 0 ? 1 : -1;
    value[XPH_CHAR_STATE_MASKED] = masked_state(c);
    value[XPH_CHAR_CHARACTER] = c->character;
    value[XPH_CHAR_LAST_ATTACK] = c->last_attack;
    gather_known(c, value);
}

/* ---- the world and items ------------------------------------------------------------------------------- */

static void gather_stage(const exphil_melee_frame *frame, double *value)
{
    int32_t stage = frame->stage;
    value[XPH_WORLD_STAGE] = stage < 0 ? UINT16_MAX : stage;
    value[XPH_WORLD_WIND] = -1;
    value[XPH_WORLD_STADIUM_KIND] = value[XPH_WORLD_STADIUM_EVENT] = -1;
    if (stage == FOUNTAIN) {
        value[XPH_WORLD_PLATFORM_LEFT] = (double)frame->platform_left;
        value[XPH_WORLD_PLATFORM_RIGHT] = (double)frame->platform_right;
    } else if (stage == STADIUM) {
        value[XPH_WORLD_STADIUM_KIND] = frame->stadium_kind;
        value[XPH_WORLD_STADIUM_EVENT] = frame->stadium_event;
    } else if (stage == DREAM_LAND) {
        value[XPH_WORLD_WIND] = frame->wind;
    } else if (stage == YOSHIS) {
        int32_t phase = frame->frame % XPH_CLOUD_PERIOD;
        if (phase < 0) phase += XPH_CLOUD_PERIOD;
        value[XPH_WORLD_CLOUD] = phase;
        xph_melee_cloud_at(phase, &value[XPH_WORLD_CLOUD_X], &value[XPH_WORLD_CLOUD_Y]);
    }
}

static void gather_world(const xph_melee_scene *scene, double *value)
{
    const exphil_melee_frame *frame = scene->frame;
    const exphil_melee_character *own = scene->character[XPH_WHO_OWN];
    const exphil_melee_character *opponent = scene->character[XPH_WHO_OPPONENT];
    if (opponent) {
        double dx = (double)opponent->x - (double)own->x, dy = (double)opponent->y - (double)own->y;
        value[XPH_WORLD_DX] = dx;
        value[XPH_WORLD_DY] = dy;
        value[XPH_WORLD_DISTANCE] = sqrt(dx * dx + dy * dy);
        value[XPH_WORLD_AHEAD] = own->facing < 0 ? -dx : dx;
    }
    value[XPH_WORLD_FRAME] = frame->frame;
    value[XPH_WORLD_PLAYABLE] = frame->frame >= FIRST_PLAYABLE;
    value[XPH_WORLD_EDGE] = scene->edge;
    value[XPH_WORLD_ITEM_COUNT] = frame->item_count;
    gather_stage(frame, value);
}

static void gather_item(const xph_melee_scene *scene, const exphil_melee_item *item, double *value)
{
    const exphil_melee_character *own = scene->character[XPH_WHO_OWN];
    value[XPH_ITEM_PRESENT] = 1;
    value[XPH_ITEM_OWN] = item->owner == scene->frame->own_port - 1;
    value[XPH_ITEM_OPPONENT] = scene->opponent_port && item->owner == scene->opponent_port - 1;
    value[XPH_ITEM_NOBODY] = item->owner < 0;
    value[XPH_ITEM_FACING] = (double)item->facing;
    value[XPH_ITEM_X] = (double)item->x;
    value[XPH_ITEM_Y] = (double)item->y;
    value[XPH_ITEM_DX] = (double)item->x - (double)own->x;
    value[XPH_ITEM_DY] = (double)item->y - (double)own->y;
    value[XPH_ITEM_SPEED_X] = (double)item->speed_x;
    value[XPH_ITEM_SPEED_Y] = (double)item->speed_y;
    value[XPH_ITEM_STATE] = item->state;
    value[XPH_ITEM_TIMER] = (double)item->timer;
    value[XPH_ITEM_DAMAGE] = item->damage;
    value[XPH_ITEM_TYPE] = item->type + 1;
}

/* How many numbers a section has. */
static size_t count_of(int32_t who)
{
    if (who == XPH_WHO_WORLD) return XPH_WORLD_COUNT;
    return who >= XPH_WHO_ITEM ? XPH_ITEM_COUNT : XPH_CHAR_COUNT;
}

bool xph_melee_gather(const xph_melee_scene *scene, int32_t who, double value[XPH_MELEE_VALUES])
{
    memset(value, 0, count_of(who) * sizeof *value);
    if (who == XPH_WHO_WORLD) {
        gather_world(scene, value);
        return true;
    }
    if (who >= XPH_WHO_ITEM) {
        const exphil_melee_item *item = scene->item[who - XPH_WHO_ITEM];
        if (item) gather_item(scene, item, value);
        return item != NULL;
    }
    const exphil_melee_character *character = scene->character[who];
    if (character) {
        gather_character(character, scene->edge, value);
    } else {
        value[XPH_CHAR_EDGE_85] = 85;
        value[XPH_CHAR_RIGHT] = -1;
    }
    return character != NULL;
}
