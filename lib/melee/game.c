/* A replay as a list of frames: the observation after each, and the controller that acted in it. It only
 * copies values; their meaning is left to the encoder, so that a live host's frame is treated alike. */
#include "melee/melee.h"

/* Stage values before the first event of a game; also those of recorders that have no such events. */
#define PLATFORM_LEFT  20
#define PLATFORM_RIGHT 28

/* Which fields of a character a replay records: EXPHIL_SLP_HAS_* to EXPHIL_MELEE_HAS_*. */
static uint32_t known_fields(uint32_t fields)
{
    uint32_t known = 0;
    if (fields & EXPHIL_SLP_HAS_STATE_AGE) known |= EXPHIL_MELEE_HAS_AGE;
    if (fields & EXPHIL_SLP_HAS_FLAGS) known |= EXPHIL_MELEE_HAS_FLAGS;
    if (fields & EXPHIL_SLP_HAS_HURTBOX) known |= EXPHIL_MELEE_HAS_HURTBOX;
    if (fields & EXPHIL_SLP_HAS_VELOCITY) known |= EXPHIL_MELEE_HAS_SPEED;
    if (fields & EXPHIL_SLP_HAS_HITLAG) known |= EXPHIL_MELEE_HAS_HITLAG;
    return known;
}

static exphil_melee_character character_of(const exphil_slp_player *from, uint32_t known)
{
    exphil_melee_character to = {.present = 1, .known = known};
    to.x = from->x;
    to.y = from->y;
    to.facing = from->facing;
    to.percent = from->percent;
    to.shield = from->shield;
    to.state_age = from->state_age;
    to.misc = from->misc;
    to.speed_air_x = from->vel_air_x;
    to.speed_y = from->vel_y;
    to.speed_attack_x = from->vel_kb_x;
    to.speed_attack_y = from->vel_kb_y;
    to.speed_ground_x = from->vel_ground_x;
    to.hitlag = from->hitlag;
    to.action_state = from->action_state;
    to.ground = from->ground_id;
    to.character = from->character;
    to.stocks = from->stocks;
    to.last_attack = from->last_attack;
    to.combo = from->combo;
    to.last_hit_by = from->last_hit_by;
    to.airborne = from->airborne;
    to.jumps = from->jumps;
    to.l_cancel = from->l_cancel;
    to.hurtbox = from->hurtbox;
    memcpy(to.flags, from->flags, sizeof to.flags);
    return to;
}

static exphil_melee_item item_of(const exphil_slp_item *from)
{
    exphil_melee_item to = {.facing = from->facing,
                            .speed_x = from->vel_x,
                            .speed_y = from->vel_y,
                            .x = from->x,
                            .y = from->y,
                            .timer = from->timer,
                            .spawn_id = from->spawn_id,
                            .type = from->type,
                            .damage = from->damage,
                            .state = from->state,
                            .owner = from->owner};
    memcpy(to.misc, from->misc, sizeof to.misc);
    return to;
}

static void take_stage(const exphil_slp_frame *from, uint32_t fields, exphil_melee_frame *to)
{
    bool fountain = fields & EXPHIL_SLP_HAS_FOUNTAIN, whispy = fields & EXPHIL_SLP_HAS_WHISPY;
    bool stadium = fields & EXPHIL_SLP_HAS_STADIUM;
    to->platform_left = fountain ? from->fountain_left : PLATFORM_LEFT;
    to->platform_right = fountain ? from->fountain_right : PLATFORM_RIGHT;
    to->wind = whispy ? from->whispy : 0;
    to->stadium_kind = stadium ? from->stadium_kind : 0;
    to->stadium_event = stadium ? from->stadium_event : 0;
}

/* Ports are counted from 1 here and from 0 in the replay. */
static const exphil_slp_player *leader_at(const exphil_slp *slp, int64_t position, int32_t port)
{
    return port < 1 || port > EXPHIL_SLP_PORTS ? NULL : exphil_slp_player_at(slp, position, port - 1, 0);
}

/* 3 and above: nobody plays there. */
#define TYPE_EMPTY 3

int32_t xph_melee_opponent(const exphil_slp_info *info, int32_t own_port)
{
    const exphil_slp_port *own = &info->ports[own_port - 1];
    for (int32_t port = 1; port <= EXPHIL_SLP_PORTS; port++) {
        const exphil_slp_port *other = &info->ports[port - 1];
        if (port == own_port || other->type >= TYPE_EMPTY) continue;
        if (!info->teams || other->team != own->team) return port;
    }
    return 0;
}

/* Everything but the characters. */
static exphil_melee_frame begin_frame(const exphil_slp_info *info, const exphil_slp_frame *from,
                                      int32_t own_port, int32_t opponent_port)
{
    exphil_melee_frame made = {.struct_size = sizeof made,
                               .frame = from->frame,
                               .stage = info->stage,
                               .own_port = own_port,
                               .opponent_port =
                                   opponent_port ? opponent_port : xph_melee_opponent(info, own_port)};
    take_stage(from, info->fields, &made);
    while (made.item_count < from->item_count && made.item_count < EXPHIL_MELEE_ITEMS_MAX) {
        made.item[made.item_count] = item_of(&from->items[made.item_count]);
        made.item_count++;
    }
    return made;
}

static void take_characters(exphil_melee_frame *frame, int32_t port, const exphil_slp_player *leader,
                            const exphil_slp_player *follower, uint32_t known)
{
    if (leader) frame->player[port] = character_of(leader, known);
    if (follower) frame->follower[port] = character_of(follower, known);
}

bool xph_melee_game_state(const exphil_slp *slp, int64_t position, int32_t own_port, int32_t opponent_port,
                          exphil_melee_frame *frame)
{
    const exphil_slp_frame *from = exphil_slp_frame_at(slp, position);
    exphil_slp_info info = EXPHIL_SLP_INFO_INIT;
    if (!from || !leader_at(slp, position, own_port)) return false;
    if (exphil_slp_query(slp, &info, NULL) < 0) return false;
    exphil_melee_frame made = begin_frame(&info, from, own_port, opponent_port);
    for (int32_t port = 0; port < EXPHIL_SLP_PORTS; port++)
        take_characters(&made, port, exphil_slp_player_at(slp, position, port, 0),
                        exphil_slp_player_at(slp, position, port, 1), known_fields(info.fields));
    *frame = made;
    return true;
}

bool xph_melee_live_state(const exphil_slp_stream *stream, const exphil_slp_info *info, int32_t own_port,
                          int32_t opponent_port, exphil_melee_frame *frame)
{
    const exphil_slp_frame *from = exphil_slp_stream_frame(stream);
    if (!from || own_port < 1 || own_port > EXPHIL_SLP_PORTS) return false;
    if (!exphil_slp_stream_player(stream, own_port - 1, 0)) return false;
    exphil_melee_frame made = begin_frame(info, from, own_port, opponent_port);
    for (int32_t port = 0; port < EXPHIL_SLP_PORTS; port++)
        take_characters(&made, port, exphil_slp_stream_player(stream, port, 0),
                        exphil_slp_stream_player(stream, port, 1), known_fields(info->fields));
    *frame = made;
    return true;
}

/* The record of a slot in frame t of a block. */
static const exphil_slp_player *block_player(const xph_game_block *block, int32_t t, int32_t port,
                                             int32_t follower)
{
    int32_t slot = 2 * port + follower;
    return block->frame[t].slots >> slot & 1 ? &block->player[slot][t] : NULL;
}

bool xph_melee_block_state(const exphil_slp_info *info, const xph_game_block *block, int32_t t,
                           int32_t own_port, int32_t opponent_port, exphil_melee_frame *frame)
{
    uint32_t known = known_fields(info->fields);
    if (!block_player(block, t, own_port - 1, 0)) return false;
    *frame = begin_frame(info, &block->frame[t], own_port, opponent_port);
    for (int32_t port = 0; port < EXPHIL_SLP_PORTS; port++) {
        bool seen = port + 1 == own_port || port + 1 == frame->opponent_port || !frame->opponent_port;
        if (seen)
            take_characters(frame, port, block_player(block, t, port, 0), block_player(block, t, port, 1),
                            known);
    }
    return true;
}

static exphil_pad pad_of(const exphil_slp_player *from)
{
    return (exphil_pad){from->physical_buttons, from->joy_x, from->joy_y, from->c_x, from->c_y,
                        from->trigger};
}

bool xph_melee_block_pad(const xph_game_block *block, int32_t t, int32_t port, exphil_pad *pad)
{
    const exphil_slp_player *from = block_player(block, t, port - 1, 0);
    if (from) *pad = pad_of(from);
    return from != NULL;
}

bool xph_melee_game_pad(const exphil_slp *slp, int64_t position, int32_t port, exphil_pad *pad)
{
    const exphil_slp_player *from = leader_at(slp, position, port);
    if (!from) return false;
    *pad = pad_of(from);
    return true;
}
