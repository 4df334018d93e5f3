/* Synthetic frames: see frames.h. */
#include "frames.h"

enum { FINAL_DESTINATION = 32, FOX = 1, FALCO = 22 };

/* A wave between low and high without libm, so that every machine makes the same frames. */
static float wave(int64_t at, int64_t period, float low, float high)
{
    int64_t part = at % (2 * period);
    float up = (float)(part < period ? part : 2 * period - part) / (float)period;
    return low + (high - low) * up;
}

static exphil_melee_character fighter(int64_t at, uint8_t character)
{
    exphil_melee_character c = {
        .present = 1, .known = EXPHIL_MELEE_HAS_ALL, .character = character, .stocks = 4};
    c.x = wave(at, 97, -60, 60);
    c.y = wave(at, 41, 0, 30);
    c.facing = at / 97 % 2 ? -1.0f : 1.0f;
    c.percent = wave(at, 1000, 0, 150);
    c.shield = 60;
    c.state_age = (float)(at % 40);
    c.speed_air_x = wave(at, 53, -2, 2);
    c.speed_y = wave(at, 37, -3, 3);
    c.speed_ground_x = wave(at, 29, -2, 2);
    c.action_state = (uint16_t)(14 + at / 40 % 300);
    c.last_attack = (uint8_t)(at / 60 % 30);
    c.jumps = (uint8_t)(at % 3);
    c.airborne = c.y > 1;
    return c;
}

void bench_frame(exphil_melee_frame *frame, int64_t at)
{
    *frame = (exphil_melee_frame)EXPHIL_MELEE_FRAME_INIT;
    frame->frame = (int32_t)(at % 28800);
    frame->stage = FINAL_DESTINATION;
    frame->own_port = 1;
    frame->opponent_port = 2;
    frame->player[0] = fighter(at, FOX);
    frame->player[1] = fighter(at + 31, FALCO);
    frame->platform_left = 20;
    frame->platform_right = 28;
    frame->item_count = (int32_t)(at / 120 % 2);
    for (int32_t i = 0; i < frame->item_count; i++) {
        frame->item[i] =
            (exphil_melee_item){.facing = 1, .speed_x = 4, .type = 54, .owner = 1, .spawn_id = 3};
        frame->item[i].x = wave(at, 60, -80, 80);
        frame->item[i].y = 10;
    }
}
