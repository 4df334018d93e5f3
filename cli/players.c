/* Who plays, counted by player. */
#include "players.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool players_refused(tally *who, const char *message)
{
    bool fine = true;
    const char *at = strstr(message, "no human player");
    at = at ? strstr(at, "; P") : NULL;
    for (; fine && at; at = strpbrk(at + 2, ",;")) {
        char name[32], kind[8];
        if (sscanf(at + 1, " P%*d %31s %7[a-zA-Z]", name, kind) == 2 && strcmp(kind, "human") == 0)
            fine = tally_word(who, name);
    }
    return fine;
}

bool players_of_games(tally *who, const exphil_games *games)
{
    exphil_games_info info = EXPHIL_GAMES_INFO_INIT;
    bool fine = true;
    if (exphil_games_query(games, &info, NULL) < 0) return true;
    for (int64_t i = 0; fine && i < info.games; i++) {
        exphil_slp_info settings = EXPHIL_SLP_INFO_INIT;
        if (exphil_games_game(games, i, NULL, &settings, NULL) < 0) continue; /* damage is told elsewhere */
        for (int p = 0; fine && p < EXPHIL_SLP_PORTS; p++) {
            const char *name = exphil_melee_character_name(settings.ports[p].character);
            if (settings.ports[p].type == 0 && name) fine = tally_word(who, name);
        }
    }
    return fine;
}

bool players_say(tally *who, const char *character)
{
    enum { SHOWN = 8 };
    for (size_t i = 0; i < who->count; i++)
        if (strcmp(who->of[i].word, character) == 0) return false;
    if (!who->count) return false;
    tally_sort(who);
    fprintf(stderr, "exphil: nobody plays %s in what was given; people play", character);
    for (size_t i = 0; i < who->count && i < SHOWN; i++)
        fprintf(stderr, "%s %s (%" PRId64 ")", i ? "," : "", who->of[i].word, who->of[i].count);
    if (who->count > SHOWN) fprintf(stderr, " and %zu more", who->count - SHOWN);
    fprintf(stderr, "\n");
    return true;
}
