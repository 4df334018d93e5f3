/* What game start and game end events say about the whole game. The game info block begins at offset 5 and is
 * always there; later fields exist if they fit. The text fields are not read: they are personal data. */
#include "melee/slp_internal.h"

void xph_slp_blank_info(exphil_slp_info *info)
{
    *info = (exphil_slp_info)EXPHIL_SLP_INFO_INIT;
    info->first_frame = info->last_frame = info->metadata_last_frame = XPH_SLP_NO_FRAME;
    info->game_number = info->tiebreak_number = UINT32_MAX;
    info->pal = info->frozen = info->minor_scene = info->major_scene = info->language = UINT8_MAX;
    info->end_method = UINT8_MAX;
    info->end_lras = -1;
    memset(info->placements, -1, sizeof info->placements);
}

static uint8_t byte_at(const uint8_t *event, size_t size, size_t offset)
{
    return offset <= size ? event[offset] : (uint8_t)UINT8_MAX;
}

static uint32_t word_at(const uint8_t *event, size_t size, size_t offset)
{
    return offset + 3 <= size ? xph_slp_u32(event + offset) : UINT32_MAX;
}

static void decode_port(const uint8_t *event, size_t size, uint8_t port, exphil_slp_port *settings)
{
    const uint8_t *block = event + 0x65 + 0x24 * (size_t)port;
    settings->character = block[0];
    settings->type = block[1];
    settings->stocks = block[2];
    settings->costume = block[3];
    settings->team_shade = block[7];
    settings->handicap = block[8];
    settings->team = block[9];
    settings->flags = block[12];
    settings->cpu_level = block[15];
    settings->start_damage = xph_slp_u16(block + 16);
    settings->respawn_damage = xph_slp_u16(block + 18);
    settings->offence_ratio = xph_slp_f32(block + 24);
    settings->defence_ratio = xph_slp_f32(block + 28);
    settings->model_scale = xph_slp_f32(block + 32);
    settings->dashback_fix = word_at(event, size, 0x141 + 8 * (size_t)port);
    settings->shield_drop_fix = word_at(event, size, 0x145 + 8 * (size_t)port);
    settings->port = port;
}

void xph_slp_decode_start(const uint8_t *event, size_t size, exphil_slp_info *info)
{
    memcpy(info->version, event + 0x01, sizeof info->version);
    info->timer_kind = event[0x05] & 3;
    info->game_mode = event[0x05] >> 5;
    info->friendly_fire = event[0x06] & 1;
    info->teams = event[0x0D];
    info->item_spawn = xph_slp_i8(event + 0x10);
    info->self_destruct = xph_slp_i8(event + 0x11);
    info->stage = xph_slp_u16(event + 0x13);
    info->timer_seconds = xph_slp_u32(event + 0x15);
    info->damage_ratio = xph_slp_f32(event + 0x35);
    info->seed = xph_slp_u32(event + 0x13D);
    info->pal = byte_at(event, size, 0x1A1);
    info->frozen = byte_at(event, size, 0x1A2);
    info->minor_scene = byte_at(event, size, 0x1A3);
    info->major_scene = byte_at(event, size, 0x1A4);
    info->language = byte_at(event, size, 0x2BD);
    info->game_number = word_at(event, size, 0x2F1);
    info->tiebreak_number = word_at(event, size, 0x2F5);
    for (uint8_t port = 0; port < EXPHIL_SLP_PORTS; port++) {
        decode_port(event, size, port, &info->ports[port]);
        info->player_count = (uint8_t)(info->player_count + (info->ports[port].type != 3));
    }
}

void xph_slp_decode_end(const uint8_t *event, size_t size, exphil_slp_info *info)
{
    info->end_method = event[1];
    if (size >= 2) info->end_lras = xph_slp_i8(event + 2);
    if (size >= 6) memcpy(info->placements, event + 3, sizeof info->placements);
}

/* 24 bits find the other recording among those of the same stage and
 * characters, and are shared by hundreds of matches a year: they lead back to none. */
uint32_t xph_slp_decode_match(const uint8_t *event, size_t size)
{
    enum { ID = 0x2BE, END = 0x2F8 };       /* game number and tiebreak follow the id */
    if (size < END || !event[ID]) return 0; /* offline there is none */
    uint32_t tag = (uint32_t)xph_hash(event + ID, END + 1 - ID) & 0xFFFFFF;
    return tag ? tag : 1;
}
