/* Frames of Melee for tests. Values are chosen so that the expected columns can be worked out by hand. */
#include "melee_frame.h"

exphil_melee_character melee_character(float x, float y)
{
    exphil_melee_character c = {.present = 1, .known = EXPHIL_MELEE_HAS_ALL};
    c.x = x;
    c.y = y;
    c.facing = 1;
    c.shield = 60;
    c.action_state = 14;
    c.ground = 1;
    c.character = 1;
    c.stocks = 4;
    c.last_hit_by = 6;
    c.jumps = 2;
    return c;
}

static exphil_melee_character own(void)
{
    exphil_melee_character c = melee_character(-20, 5);
    c.facing = -1;
    c.percent = 42;
    c.shield = 30;
    c.state_age = 3.5f;
    c.misc = 12;
    c.speed_air_x = 1;
    c.speed_y = -2;
    c.speed_attack_x = 4;
    c.speed_attack_y = -8;
    c.speed_ground_x = 0.5f;
    c.hitlag = 6;
    c.action_state = 365;
    c.stocks = 3;
    c.last_attack = 20;
    c.combo = 5;
    c.airborne = 1;
    c.jumps = 1;
    c.l_cancel = 2;
    c.hurtbox = 1;
    c.flags[0] = 0x10;
    c.flags[1] = 0x08;
    c.flags[3] = 0x02;
    c.flags[4] = 0x40;
    return c;
}

static exphil_melee_character opponent(void)
{
    exphil_melee_character c = melee_character(90, -10);
    c.percent = 110;
    c.state_age = -1;
    c.action_state = 600;
    c.character = 10;
    c.l_cancel = 1;
    c.hurtbox = 2;
    c.flags[0] = 0x02;
    c.flags[2] = 0x84;
    c.flags[4] = 0x82;
    return c;
}

static exphil_melee_item item(float x, float y, uint32_t spawn_id, uint16_t type, int8_t owner)
{
    exphil_melee_item made = {.x = x, .y = y, .spawn_id = spawn_id, .type = type, .owner = owner};
    made.facing = 1;
    made.speed_x = 2;
    made.speed_y = -1;
    made.timer = 140;
    made.damage = 8;
    made.state = 3;
    return made;
}

exphil_melee_frame melee_frame(void)
{
    exphil_melee_frame frame = EXPHIL_MELEE_FRAME_INIT;
    frame.frame = 2880;
    frame.stage = 3;
    frame.own_port = 2;
    frame.opponent_port = 4;
    frame.player[1] = own();
    frame.player[3] = opponent();
    frame.follower[3] = melee_character(80, 0);
    frame.follower[3].character = 11;
    frame.platform_left = 20;
    frame.platform_right = 28;
    frame.stadium_kind = 9;
    frame.stadium_event = 5;
    frame.item_count = 7;
    frame.item[0] = item(100, 0, 1, 0x2B, -1);  /* 120 away */
    frame.item[1] = item(-20, 15, 2, 0x36, 1);  /* 10 away, own */
    frame.item[2] = item(0, 5, 9, 0x63, 3);     /* 20 away, the opponent's, younger */
    frame.item[3] = item(-40, 5, 4, 0x36, 0);   /* 20 away, somebody else's, older */
    frame.item[4] = item(-200, 5, 5, 0x36, -1); /* 180 away: no slot */
    frame.item[5] = item(-20, 35, 6, 0xD2, -1); /* 30 away */
    frame.item[6] = item(500, 5, 7, 0xEE, -1);  /* 520 away: no slot */
    return frame;
}
