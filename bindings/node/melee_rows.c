/* What exphil_melee.test.js compares with: frames filled field by field in C, their rows in every layout, and the pads of a
 * session that steps them. As JSON on standard output; the untrained policy is written to the file that is named.
 *   melee_rows MODEL */
#include <exphil/exphil.h>
#include <stdio.h>
#include <stdlib.h>

#define FRAMES 60

static void demand(exphil_status status, const exphil_error *error)
{
    if (status >= 0) return;
    fprintf(stderr, "melee_rows: %s\n", error->message);
    exit(1);
}

/* 0..119, never twice the same soon: every field gets a number of its own. */
static int next(uint32_t *state)
{
    *state = *state * 1103515245u + 12345u;
    return (int)((*state >> 16) % 120);
}

static float quarter(uint32_t *state)
{
    return (float)next(state) / 4 - 15;
}

static void fill_character(exphil_melee_character *c, uint32_t *state)
{
    c->present = 1;
    c->known = EXPHIL_MELEE_HAS_ALL;
    c->x = quarter(state), c->y = quarter(state), c->facing = quarter(state), c->percent = quarter(state);
    c->shield = quarter(state), c->state_age = quarter(state), c->misc = quarter(state);
    c->speed_air_x = quarter(state), c->speed_y = quarter(state), c->speed_attack_x = quarter(state);
    c->speed_attack_y = quarter(state), c->speed_ground_x = quarter(state), c->hitlag = quarter(state);
    c->action_state = (uint16_t)(next(state) * 3), c->ground = (uint16_t)next(state);
    c->character = (uint8_t)(next(state) % 26), c->stocks = (uint8_t)(next(state) % 5);
    c->last_attack = (uint8_t)next(state), c->combo = (uint8_t)next(state);
    c->last_hit_by = (uint8_t)(next(state) % 4), c->airborne = (uint8_t)(next(state) % 2);
    c->jumps = (uint8_t)(next(state) % 6), c->l_cancel = (uint8_t)(next(state) % 3);
    c->hurtbox = (uint8_t)(next(state) % 3);
    for (int i = 0; i < 5; i++) c->flags[i] = (uint8_t)next(state);
}

static void fill_item(exphil_melee_item *item, uint32_t *state)
{
    item->facing = quarter(state), item->speed_x = quarter(state), item->speed_y = quarter(state);
    item->x = quarter(state), item->y = quarter(state), item->timer = quarter(state);
    item->spawn_id = (uint32_t)next(state), item->type = (uint16_t)next(state);
    item->damage = (uint16_t)next(state), item->state = (uint8_t)next(state);
    for (int i = 0; i < 4; i++) item->misc[i] = (uint8_t)next(state);
    item->owner = (int8_t)(next(state) % 4);
}

static exphil_melee_frame make_frame(int t)
{
    exphil_melee_frame frame = EXPHIL_MELEE_FRAME_INIT;
    uint32_t state = (uint32_t)t;
    static const int32_t stages[] = {2, 3, 28, 31, 32};
    frame.frame = t - 30;
    frame.stage = stages[t % 5];
    frame.own_port = 2, frame.opponent_port = 4;
    fill_character(&frame.player[1], &state);
    fill_character(&frame.player[3], &state);
    fill_character(&frame.follower[1], &state);
    frame.platform_left = quarter(&state), frame.platform_right = quarter(&state);
    frame.wind = next(&state) % 3;
    frame.stadium_kind = next(&state), frame.stadium_event = next(&state);
    frame.item_count = t % (EXPHIL_MELEE_ITEMS_MAX + 1);
    for (int i = 0; i < frame.item_count; i++) fill_item(&frame.item[i], &state);
    return frame;
}

static void print_rows(const char *layout)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_spec spec = EXPHIL_SPEC_INIT;
    float floats[4096];
    int32_t ids[EXPHIL_IDS_MAX];
    demand(exphil_melee_spec(layout, NULL, &spec, &error), &error);
    printf("\"%s\":[", layout);
    for (int t = 0; t < FRAMES; t++) {
        exphil_melee_frame frame = make_frame(t);
        demand(exphil_melee_encode(layout, &frame, floats, ids, &error), &error);
        printf("%s{\"floats\":[", t ? ",\n" : "");
        for (int64_t i = 0; i < spec.float_count; i++) printf("%s%.9g", i ? "," : "", (double)floats[i]);
        printf("],\"ids\":[");
        for (int64_t i = 0; i < spec.id_count; i++) printf("%s%d", i ? "," : "", (int)ids[i]);
        printf("]}");
    }
    printf("],\n");
}

static void print_pads(const char *path)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_context *context = NULL;
    exphil_model *model = NULL;
    exphil_session *session = NULL;
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    exphil_session_config play = EXPHIL_SESSION_CONFIG_INIT;
    exphil_pad pads[2];
    config.blocks = "gru", config.hidden = 16, config.head_width = 16, config.seed = 5;
    play.seed = 7, play.streams = 2;
    demand(exphil_context_create(NULL, &context, &error), &error);
    demand(exphil_model_create(context, &config, &model, &error), &error);
    demand(exphil_model_save(model, path, &error), &error);
    demand(exphil_session_create(model, &play, &session, &error), &error);
    printf("\"pads\":[");
    for (int t = 0; t < FRAMES; t++) {
        exphil_melee_frame frames[2] = {make_frame(t), make_frame(FRAMES - t)};
        exphil_status status = exphil_session_step(session, frames, pads);
        if (status < 0) demand(exphil_session_error(session, &error), &error);
        for (int b = 0; b < 2; b++)
            printf("%s[%u,%.9g,%.9g,%.9g,%.9g,%.9g]", t || b ? ",\n" : "", (unsigned)pads[b].buttons,
                   (double)pads[b].main_x, (double)pads[b].main_y, (double)pads[b].c_x, (double)pads[b].c_y,
                   (double)pads[b].trigger);
    }
    printf("]\n");
    exphil_session_destroy(session);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
}

int main(int argc, char **argv)
{
    if (argc != 2) return fprintf(stderr, "melee_rows MODEL\n"), 2;
    printf("{");
    print_rows("melee2");
    print_rows("exphil288");
    print_pads(argv[1]);
    printf("}\n");
    return 0;
}
