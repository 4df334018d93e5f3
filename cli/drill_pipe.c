/* Frames as JSON to stdout, controllers as JSON from stdin. */
#include "drill_pipe.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum { LINE_MOST = 4096, BUTTONS_MOST = 0xFFFF };

static json_t *player_json(const exphil_melee_frame *frame, int32_t port)
{
    const exphil_melee_character *c = &frame->player[port - 1];
    return json_pack("{s:i,s:i,s:f,s:f,s:f,s:f,s:f,s:i,s:f,s:i,s:i,s:i,s:f,s:f,s:f}", "port", port,
                     "character", (int)c->character, "x", (double)c->x, "y", (double)c->y, "facing",
                     (double)c->facing, "percent", (double)c->percent, "shield", (double)c->shield, "state",
                     (int)c->action_state, "state_age", (double)c->state_age, "stocks", (int)c->stocks,
                     "jumps", (int)c->jumps, "airborne", (int)c->airborne, "speed_air_x",
                     (double)c->speed_air_x, "speed_ground_x", (double)c->speed_ground_x, "speed_y",
                     (double)c->speed_y);
}

bool drill_pipe_say(const exphil_melee_frame *frame)
{
    json_t *players = json_array(), *object;
    for (int32_t port = 1; port <= 4; port++)
        if (frame->player[port - 1].present) json_array_append_new(players, player_json(frame, port));
    object = json_pack("{s:i,s:i,s:i,s:i,s:o}", "frame", frame->frame, "stage", frame->stage, "own_port",
                       frame->own_port, "opponent_port", frame->opponent_port, "players", players);
    bool said = object && json_dumpf(object, stdout, JSON_COMPACT) == 0 && putchar('\n') != EOF &&
                fflush(stdout) == 0;
    json_decref(object);
    if (!said) fprintf(stderr, "exphil: the bot does not take frame %d\n", (int)frame->frame);
    return said;
}

static bool wrong(int32_t frame, const char *what)
{
    fprintf(stderr, "exphil: the bot's answer to frame %d %s\n", (int)frame, what);
    return false;
}

/* NaN is no JSON, so none can be here. */
static bool within(double value, double low)
{
    return value >= low && value <= 1.0;
}

bool drill_pipe_hear(int32_t frame, exphil_pad *pad)
{
    char line[LINE_MOST];
    int buttons = 0;
    double main_x = 0.0, main_y = 0.0, c_x = 0.0, c_y = 0.0, trigger = 0.0;
    if (!fgets(line, sizeof line, stdin)) return wrong(frame, "did not come");
    if (!strchr(line, '\n')) return wrong(frame, "is no whole line of at most 4095 bytes");
    json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
    int taken = object
                    ? json_unpack(object, "{s?i,s?F,s?F,s?F,s?F,s?F!}", "buttons", &buttons, "main_x",
                                  &main_x, "main_y", &main_y, "c_x", &c_x, "c_y", &c_y, "trigger", &trigger)
                    : -1;
    json_decref(object);
    if (taken < 0)
        return wrong(frame, "is no JSON object of buttons, main_x, main_y, c_x, c_y and trigger alone");
    if (buttons < 0 || buttons > BUTTONS_MOST) return wrong(frame, "has buttons outside 0..65535");
    if (!within(main_x, -1.0) || !within(main_y, -1.0) || !within(c_x, -1.0) || !within(c_y, -1.0) ||
        !within(trigger, 0.0))
        return wrong(frame, "has a stick outside -1..1 or a trigger outside 0..1");
    *pad = (exphil_pad){.buttons = (uint32_t)buttons,
                        .main_x = (float)main_x,
                        .main_y = (float)main_y,
                        .c_x = (float)c_x,
                        .c_y = (float)c_y,
                        .trigger = (float)trigger};
    return true;
}
