/* A policy in the place of a player. See seat.h. */
#include "seat.h"

#include "commands.h"
#include "files.h"
#include "play_port.h"
#include "slp_words.h"

#include <stdio.h>
#include <string.h>

enum { TYPE_HUMAN = 0, TYPE_EMPTY = 3 };

int seat_failed(exphil_session *session, const char *what)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_session_error(session, &error);
    return complain(what, &error);
}

/* What an archive holds is seen when it is read. */
bool seat_replay(const char *path, const char *hint)
{
    file_kind kind = file_kind_of(path);
    bool inside = kind == FILE_UNREADABLE && strchr(path, ':');
    return inside || kind == FILE_ARCHIVE || file_wanted(path, FILE_REPLAY, hint);
}

/* ---- who is there -------------------------------------------------------------------------------------- */

static void say_who(const exphil_slp_info *info)
{
    static const char *const types[] = {"human", "CPU", "demo"};
    const char *comma = "";
    for (int i = 0; i < EXPHIL_SLP_PORTS; i++) {
        const exphil_slp_port *port = &info->ports[i];
        if (port->type >= TYPE_EMPTY) continue;
        const char *name = exphil_melee_character_name(port->character);
        fprintf(stderr, "%s P%d %s %s", comma, i + 1, name ? name : "unknown", types[port->type]);
        comma = ",";
    }
    fprintf(stderr, "%s\n", comma[0] ? "" : " nobody plays");
}

int seat_opponent(const exphil_slp_info *info, int own)
{
    for (int i = 0; i < EXPHIL_SLP_PORTS; i++)
        if (i != own && info->ports[i].type < TYPE_EMPTY &&
            (!info->teams || info->ports[i].team != info->ports[own].team))
            return i;
    return -1;
}

void seat_say(const exphil_slp_info *info, int64_t port, int64_t opponent)
{
    const int own = (int)port - 1, other = opponent ? (int)opponent - 1 : seat_opponent(info, own);
    char text[WORDS_SHORT];
    fprintf(stderr, "in the place of %s", words_player(text, info, own));
    if (other >= 0) fprintf(stderr, ", against %s", words_player(text, info, other));
    fprintf(stderr, ", on %s\n", words_stage(text, info->stage));
}

bool seat_take(const exphil_model *model, const exphil_slp_info *info, const char *path, int64_t *port,
               int64_t opponent, bool quiet)
{
    if (!*port) *port = play_port(model, info, quiet);
    const int at = (int)*port - 1;
    bool own = info->ports[at].type < TYPE_EMPTY;
    bool other = !opponent || info->ports[opponent - 1].type < TYPE_EMPTY;
    if (!own || !other) {
        fprintf(stderr, "exphil: %s: no player at --%s %d; there is", path, own ? "opponent" : "port",
                (int)(own ? opponent : *port));
        say_who(info);
        return false;
    }
    if (info->ports[at].type != TYPE_HUMAN)
        fprintf(stderr,
                "exphil: warning: port %d is no human; buttons of the computer are not in the replay\n",
                (int)*port);
    return true;
}

/* ---- what is pressed ----------------------------------------------------------------------------------- */

json_t *pad_json(const exphil_pad *pad)
{
    static const struct {
        uint32_t bit;
        const char *name;
    } buttons[] = {{EXPHIL_PAD_A, "A"}, {EXPHIL_PAD_B, "B"}, {EXPHIL_PAD_X, "X"}, {EXPHIL_PAD_Y, "Y"},
                   {EXPHIL_PAD_Z, "Z"}, {EXPHIL_PAD_L, "L"}, {EXPHIL_PAD_R, "R"}, {EXPHIL_PAD_D_UP, "D_UP"}};
    json_t *held = json_array();
    for (size_t i = 0; i < sizeof buttons / sizeof buttons[0]; i++)
        if (pad->buttons & buttons[i].bit) json_array_append_new(held, json_string(buttons[i].name));
    return json_pack("{s:o,s:f,s:f,s:f,s:f,s:f}", "buttons", held, "main_x", (double)pad->main_x, "main_y",
                     (double)pad->main_y, "c_x", (double)pad->c_x, "c_y", (double)pad->c_y, "trigger",
                     (double)pad->trigger);
}

bool seat_recorded(const exphil_slp *slp, const exphil_spec *spec, int32_t port, int32_t frame,
                   int32_t *action)
{
    exphil_pad pad;
    int64_t position = exphil_slp_position(slp, frame);
    return position >= 0 && exphil_slp_melee_pad(slp, position, port, &pad, NULL) >= 0 &&
           exphil_melee_pad_encode(spec->codec, &pad, action, NULL) >= 0;
}
