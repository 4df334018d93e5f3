/* What C makes of drawn Melee frames, line by line; ExphilMelee.cs draws the same frames and must print the same lines.
 *   melee_check MODEL FRAMES */
#include <exphil/exphil.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t state = 1;

/* Knuth's linear congruential generator (The Art of Computer Programming 2, 3.3.4); the upper 24 bits of it. */
static uint32_t draw(uint32_t below)
{
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
}

static float number(float size)
{
    return ((float)draw(1u << 24) / 8388608.0f - 1.0f) * size;
}

static void draw_character(exphil_melee_character *c)
{
    float *numbers[] = {
        &c->x,     &c->y,           &c->facing,  &c->percent,        &c->shield,         &c->state_age,
        &c->misc,  &c->speed_air_x, &c->speed_y, &c->speed_attack_x, &c->speed_attack_y, &c->speed_ground_x,
        &c->hitlag};
    uint8_t *bytes[] = {&c->character, &c->stocks,   &c->last_attack, &c->combo,   &c->last_hit_by,
                        &c->airborne,  &c->jumps,    &c->l_cancel,    &c->hurtbox, &c->flags[0],
                        &c->flags[1],  &c->flags[2], &c->flags[3],    &c->flags[4]};
    c->present = draw(4) != 0;
    c->known = draw(2) ? EXPHIL_MELEE_HAS_ALL : draw(32);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) *numbers[i] = number(60);
    c->action_state = (uint16_t)draw(400);
    c->ground = (uint16_t)draw(8);
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) *bytes[i] = (uint8_t)draw(draw(2) ? 4 : 256);
}

static void draw_item(exphil_melee_item *item)
{
    float *numbers[] = {&item->facing, &item->speed_x, &item->speed_y, &item->x, &item->y, &item->timer};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) *numbers[i] = number(60);
    item->spawn_id = draw(100);
    item->type = (uint16_t)draw(240);
    item->damage = (uint16_t)draw(60);
    item->state = (uint8_t)draw(8);
    for (int i = 0; i < 4; i++) item->misc[i] = (uint8_t)draw(256);
    item->owner = (int8_t)((int)draw(5) - 1);
}

static void draw_frame(exphil_melee_frame *frame, int32_t number_of_frame)
{
    frame->frame = number_of_frame;
    frame->stage = (int32_t)draw(33);
    frame->own_port = (int32_t)draw(4) + 1;
    frame->opponent_port = draw(4) ? ((frame->own_port + (int32_t)draw(3)) % 4) + 1 : 0; /* another one */
    for (int i = 0; i < 4; i++) {
        draw_character(&frame->player[i]);
        draw_character(&frame->follower[i]);
    }
    frame->player[frame->own_port - 1].present = 1;
    frame->platform_left = number(30);
    frame->platform_right = number(30);
    frame->wind = (int32_t)draw(3);
    frame->stadium_kind = (int32_t)draw(10);
    frame->stadium_event = (int32_t)draw(10);
    frame->item_count = (int32_t)draw(EXPHIL_MELEE_ITEMS_MAX + 1);
    for (int i = 0; i < EXPHIL_MELEE_ITEMS_MAX; i++) draw_item(&frame->item[i]);
}

/* What a host leaves out as the header has it: all of a character is known, nobody's items, Fountain of Dreams as it begins. */
static void plain_frame(exphil_melee_frame *frame)
{
    frame->stage = 2;
    frame->own_port = 1;
    frame->platform_left = 20;
    frame->platform_right = 28;
    frame->item_count = 2;
    for (int i = 0; i < 2; i++) {
        frame->player[i].present = 1;
        frame->player[i].known = EXPHIL_MELEE_HAS_ALL;
        frame->player[i].hitlag = 5;
        frame->item[i].owner = -1;
    }
}

static void demand(int holds, const exphil_error *error)
{
    if (holds) return;
    fprintf(stderr, "melee_check: %s\n", error->message);
    exit(1);
}

static void print_pad(const char *name, const exphil_pad *pad)
{
    const float axes[] = {pad->main_x, pad->main_y, pad->c_x, pad->c_y, pad->trigger};
    printf("%s %x", name, pad->buttons);
    for (int i = 0; i < 5; i++) {
        uint32_t bits;
        memcpy(&bits, &axes[i], sizeof bits);
        printf(" %x", bits);
    }
    printf("\n");
}

/* A row as a number of 64 bits: FNV-1a (Fowler, Noll, Vo), a word of 32 bits at a time. */
static void print_row(const char *layout, const exphil_melee_frame *frame)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_spec spec = EXPHIL_SPEC_INIT;
    float floats[4096];
    int32_t ids[EXPHIL_IDS_MAX];
    uint64_t hash = 14695981039346656037u;
    demand(exphil_melee_spec(layout, NULL, &spec, &error) == 0, &error);
    demand(exphil_melee_encode(layout, frame, floats, ids, &error) == 0, &error);
    for (int64_t i = 0; i < spec.float_count + spec.id_count; i++) {
        uint32_t bits;
        memcpy(&bits, i < spec.float_count ? (void *)&floats[i] : (void *)&ids[i - spec.float_count],
               sizeof bits);
        hash = (hash ^ bits) * 1099511628211u;
    }
    printf("%s %lld %lld %llx\n", spec.layout, (long long)spec.float_count, (long long)spec.id_count,
           (unsigned long long)hash);
}

static void print_action(const exphil_pad *pad)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_spec spec = EXPHIL_SPEC_INIT;
    exphil_pad again;
    int32_t action[EXPHIL_HEADS_MAX];
    demand(exphil_melee_spec(NULL, "exphil81-floor", &spec, &error) == 0, &error);
    demand(exphil_melee_pad_encode("exphil81-floor", pad, action, &error) == 0, &error);
    demand(exphil_melee_pad_decode("exphil81-floor", action, &again, &error) == 0, &error);
    printf("action");
    for (int64_t i = 0; i < spec.head_count; i++) printf(" %d", action[i]);
    printf("\n");
    print_pad("again", &again);
}

static exphil_session *open_session(const exphil_model *model, int64_t streams)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    exphil_session *session;
    config.seed = 5;
    config.streams = streams;
    demand(exphil_session_create(model, &config, &session, &error) == 0, &error);
    return session;
}

int main(int argc, char **argv)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_context *context;
    exphil_model *model;
    if (argc != 3) return 2;
    demand(exphil_context_create(NULL, &context, &error) == 0, &error);
    demand(exphil_model_load(context, argv[1], &model, &error) == 0, &error);
    exphil_melee_frame plain = EXPHIL_MELEE_FRAME_INIT;
    plain_frame(&plain);
    print_row(NULL, &plain);
    print_row("exphil288", &plain);
    exphil_session *one = open_session(model, 1), *two = open_session(model, 2);
    for (int32_t t = 0; t < atoi(argv[2]); t++) {
        exphil_melee_frame frames[2] = {EXPHIL_MELEE_FRAME_INIT, EXPHIL_MELEE_FRAME_INIT};
        exphil_pad pad, pads[2];
        draw_frame(&frames[0], t - 123);
        draw_frame(&frames[1], t - 123);
        print_row(NULL, &frames[0]);
        print_row("exphil288", &frames[0]);
        if (exphil_session_step(one, &frames[0], &pad) < 0)
            demand((exphil_session_error(one, &error), 0), &error);
        if (exphil_session_step(two, frames, pads) < 0)
            demand((exphil_session_error(two, &error), 0), &error);
        print_pad("one", &pad);
        print_pad("first", &pads[0]);
        print_pad("second", &pads[1]);
        print_action(&pads[1]);
    }
    exphil_session_destroy(one);
    exphil_session_destroy(two);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
    return 0;
}
