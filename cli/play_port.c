/* Whose place a policy takes in a replay, where nobody said it: that of the character it was trained on. */
#include "play_port.h"
#include "notes.h"
#include "slp_words.h"

#include <stdio.h>

enum { TYPE_HUMAN = 0, TYPE_EMPTY = 3 };

/* How much a policy knows of who sits there: frames of the character, then that a human plays it, then frames of the port. */
static bool knows_better(const json_t *train, const exphil_slp_info *info, int port, int than)
{
    const exphil_slp_port *a = &info->ports[port - 1], *b = &info->ports[than - 1];
    int64_t one = notes_frames_of(train, a->character), other = notes_frames_of(train, b->character);
    if (one != other) return one > other;
    if ((a->type == TYPE_HUMAN) != (b->type == TYPE_HUMAN)) return a->type == TYPE_HUMAN;
    return notes_frames_at(train, a->character, port) > notes_frames_at(train, b->character, than);
}

/* The port of the character that it knows best, and how many have one that it knows; 0: none has. */
static int best_port(const json_t *train, const exphil_slp_info *info, int *count)
{
    int best = 0;
    *count = 0;
    for (int port = 1; port <= EXPHIL_SLP_PORTS; port++) {
        const exphil_slp_port *player = &info->ports[port - 1];
        if (player->type >= TYPE_EMPTY || !notes_frames_of(train, player->character)) continue;
        ++*count;
        if (!best || knows_better(train, info, port, best)) best = port;
    }
    return best;
}

static int first_port(const exphil_slp_info *info)
{
    for (int port = 1; port <= EXPHIL_SLP_PORTS; port++)
        if (info->ports[port - 1].type < TYPE_EMPTY) return port;
    return 1;
}

int play_port(const exphil_model *model, const exphil_slp_info *info, bool quiet)
{
    json_t *notes = notes_of(model);
    const json_t *train = notes_train(notes);
    bool known = json_array_size(json_object_get(train, "characters")) > 0;
    char who[WORDS_SHORT];
    int count = 0, port = known ? best_port(train, info, &count) : 0;
    const char *why =
        !known  ? NULL
        : !port ? "nobody has a character that the policy was trained on; --port takes another"
        : count == 1
            ? "the character that the policy was trained on"
            : "of several characters that it was trained on, the one it knows best; --port takes another";
    if (!port) port = known ? first_port(info) : 1;
    if (why && !quiet) fprintf(stderr, "%s: %s\n", words_player(who, info, port - 1), why);
    json_decref(notes);
    return port;
}
