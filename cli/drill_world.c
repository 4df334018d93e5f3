/* The drill's world and its teacher. Its numbers are of the real game's magnitude; its physics are not the
 * game's. */
#include "drill_world.h"

#include <math.h>
#include <string.h>

enum { WAIT = 14, WALK = 15, DASH = 20, SQUAT = 24, JUMP = 25, FALL = 29, SHINE = 360, SHINE_AIR = 365 };

static uint32_t draw(drill_world *world)
{
    world->random = world->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(world->random >> 33);
}

static void enter(drill_body *body, int32_t action)
{
    body->age = body->action == action ? body->age + 1 : 0;
    body->action = action;
}

void drill_begin(drill_world *world, uint64_t seed)
{
    memset(world, 0, sizeof *world);
    world->random = seed * 0x9E3779B97F4A7C15u + 1;
    world->frame = -COUNTDOWN;
    world->own = (drill_body){.x = -60.0f + (float)(draw(world) % 40), .facing = 1.0f, .action = WAIT};
    world->other = (drill_body){.x = 30.0f + (float)(draw(world) % 30), .facing = -1.0f, .action = WAIT};
    world->goal = 40;
}

static void observe_body(const drill_body *body, exphil_melee_character *to)
{
    memset(to, 0, sizeof *to);
    to->present = 1;
    to->known = EXPHIL_MELEE_HAS_ALL;
    to->character = 1;
    to->x = body->x;
    to->y = body->y;
    to->facing = body->facing;
    to->percent = body->percent;
    to->shield = 60.0f;
    to->state_age = (float)body->age;
    to->action_state = (uint16_t)body->action;
    to->stocks = 4;
    to->jumps = body->airborne ? 1 : 2;
    to->airborne = (uint8_t)body->airborne;
    to->last_hit_by = 6;
    to->speed_air_x = body->airborne ? body->speed_x : 0.0f;
    to->speed_y = body->speed_y;
    to->speed_ground_x = body->airborne ? 0.0f : body->speed_x;
}

void drill_observe(const drill_world *world, exphil_melee_frame *frame)
{
    memset(frame, 0, sizeof *frame);
    frame->struct_size = sizeof *frame;
    frame->frame = world->frame;
    frame->stage = 32;
    frame->own_port = 1;
    frame->opponent_port = 2;
    frame->platform_left = 20.0f;
    frame->platform_right = 28.0f;
    observe_body(&world->own, &frame->player[0]);
    observe_body(&world->other, &frame->player[1]);
}

/* Far: dash there. Near: walk. In reach: reflector, jump out of it after three frames, reflector in the air, and so on. */
void drill_teach(const drill_world *world, exphil_pad *pad)
{
    const drill_body *own = &world->own;
    float distance = world->other.x - own->x, sign = distance < 0.0f ? -1.0f : 1.0f;
    *pad = (exphil_pad){0};
    if (own->action == SHINE && own->age >= 2)
        pad->buttons = EXPHIL_PAD_X;
    else if (own->action == JUMP && own->age == 3)
        pad->buttons = EXPHIL_PAD_B, pad->main_y = -1.0f;
    else if (own->airborne)
        pad->main_x = 0.5f * sign;
    else if (own->action == SHINE || own->action == SQUAT)
        pad->main_y = -1.0f;
    else if (fabsf(distance) > 35.0f)
        pad->main_x = sign;
    else if (fabsf(distance) > 9.0f)
        pad->main_x = 0.5f * sign;
    else
        pad->buttons = EXPHIL_PAD_B, pad->main_y = -1.0f;
}

static void step_ground(drill_body *own, const exphil_pad *pad)
{
    if (own->action == SHINE && !(own->age >= 2 && (pad->buttons & EXPHIL_PAD_X))) {
        own->speed_x = 0.0f;
        enter(own, own->age >= 12 ? WAIT : SHINE);
    } else if (own->action == SQUAT && own->age >= 2) {
        enter(own, JUMP);
        own->airborne = 1;
        own->speed_y = 3.0f;
    } else if (own->action == SQUAT || (pad->buttons & EXPHIL_PAD_X)) {
        enter(own, SQUAT);
    } else if ((pad->buttons & EXPHIL_PAD_B) && pad->main_y < -0.6f) {
        enter(own, SHINE);
        own->speed_x = 0.0f;
    } else if (fabsf(pad->main_x) > 0.25f) {
        own->facing = pad->main_x < 0.0f ? -1.0f : 1.0f;
        own->speed_x = fabsf(pad->main_x) > 0.8f ? 2.0f * own->facing : 0.9f * own->facing;
        enter(own, fabsf(pad->main_x) > 0.8f ? DASH : WALK);
    } else {
        own->speed_x = 0.0f;
        enter(own, WAIT);
    }
}

static void step_air(drill_body *own, const exphil_pad *pad)
{
    own->speed_x = 0.8f * pad->main_x;
    own->speed_y -= 0.23f;
    if ((pad->buttons & EXPHIL_PAD_B) && pad->main_y < -0.6f) {
        enter(own, SHINE_AIR);
        own->speed_y = 0.0f;
    } else if (own->action == SHINE_AIR && own->age < 4)
        enter(own, SHINE_AIR);
    else if (own->action == JUMP && own->speed_y > 0.0f)
        enter(own, JUMP);
    else
        enter(own, FALL);
}

static void move(drill_body *body)
{
    body->x += body->speed_x;
    body->y += body->speed_y;
    if (body->x > 84.0f) body->x = 84.0f;
    if (body->x < -84.0f) body->x = -84.0f;
    if (!body->airborne || body->y > 0.0f) return;
    body->y = body->speed_y = 0.0f;
    body->airborne = 0;
    enter(body, WAIT);
}

static void wander(drill_world *world)
{
    drill_body *other = &world->other;
    float way = (float)world->goal - other->x;
    if (world->pause > 0) {
        world->pause--;
        other->speed_x = 0.0f;
        enter(other, WAIT);
        return;
    }
    if (fabsf(way) < 1.5f) {
        world->goal = (int32_t)(draw(world) % 140) - 70;
        world->pause = 40 + (int32_t)(draw(world) % 120);
        return;
    }
    other->facing = way < 0.0f ? -1.0f : 1.0f;
    other->speed_x = 1.2f * other->facing;
    enter(other, WALK);
    other->x += other->speed_x;
}

void drill_step(drill_world *world, const exphil_pad *pad)
{
    static const exphil_pad nothing;
    drill_body *own = &world->own;
    world->frame++;
    if (world->frame < -39) pad = &nothing; /* nobody has control yet */
    if (own->airborne)
        step_air(own, pad);
    else
        step_ground(own, pad);
    move(own);
    wander(world);
    if ((own->action == SHINE || own->action == SHINE_AIR) && own->age == 0 &&
        fabsf(world->other.x - own->x) < 12.0f) {
        world->hits++;
        world->other.percent = fminf(world->other.percent + 5.0f, 999.0f);
    }
}
