/* Which players of which games: one table of options, and the library's selection of it. */
#ifndef EXPHIL_CLI_SELECT_H
#define EXPHIL_CLI_SELECT_H

#include "options.h"

#include <exphil/games.h>

#include <stdio.h>

/* What the options say; NULL, 0 and false: any. */
typedef struct select_options {
    const char *character; /* one, by its name */
    int64_t port, opponent, first,
        last; /* of these and the character replays are asked one by one, as in 0.1 */
    const char *characters, *opponents, *stages, *since, *until, *least_version, *teams, *items, *result,
        *duplicates;
    int64_t least_frames, most_frames, players, least_damage, least_stocks, self_destructs_below;
    double least_input;
    bool complete, humans;
} select_options;

/* For the table of a command that VERB such players. */
#define SELECT_OPTIONS(s, verb)                                                                              \
  {"character", OPTION_TEXT, &(s).character, "NAME",                                                         \
   verb " only this character, each human who plays it (default: any)"},                                     \
      {"characters", OPTION_TEXT, &(s).characters, "LIST", verb " only these, as fox,falco (default: any)"}, \
      {"port", OPTION_INT, &(s).port, "N", verb " only this port (default: every human player)"},            \
      {"result", OPTION_TEXT, &(s).result, "WORD",                                                           \
       verb " only who won, or only who lost: won, lost (default: any)"},                                    \
      {"least-damage", OPTION_INT, &(s).least_damage, "N",                                                   \
       "only who dealt so many percent in the game (default 0)"},                                            \
      {"least-stocks", OPTION_INT, &(s).least_stocks, "N", "only who took so many stocks (default 0)"},      \
      {"self-destructs-below", OPTION_INT, &(s).self_destructs_below, "N",                                   \
       "only who died less often without the others' doing (default: any)"},                                 \
      {"least-input", OPTION_NUMBER, &(s).least_input, "SHARE",                                              \
       "only who touches the controller in so many of the frames, as 0.2 (default 0)"},                      \
      {"opponent", OPTION_INT, &(s).opponent, "N", "the other port (default: the first other player)"},      \
      {"opponents", OPTION_TEXT, &(s).opponents, "LIST",                                                     \
       "only against these characters, as marth,sheik (default: any)"},                                      \
      {"stages", OPTION_TEXT, &(s).stages, "LIST",                                                           \
       "only games on these, as battlefield,yoshis_story (default: any)"},                                   \
      {"least-frames", OPTION_INT, &(s).least_frames, "N", "only games of so many frames (default 0)"},      \
      {"most-frames", OPTION_INT, &(s).most_frames, "N", "only games of no more (default: any)"},            \
      {"since", OPTION_TEXT, &(s).since, "DATE", "only recordings of this day, as 2024-05-31, or later"},    \
      {"until", OPTION_TEXT, &(s).until, "DATE", "only of this day or before (default: any)"},               \
      {"least-version", OPTION_TEXT, &(s).least_version, "N.N",                                              \
       "only of recorders of this version, as 3.14, or later (default: any)"},                               \
      {"teams", OPTION_TEXT, &(s).teams, "WORD",                                                             \
       "team games: with only these, without none (default: any)"},                                          \
      {"items", OPTION_TEXT, &(s).items, "WORD",                                                             \
       "games in which items may appear: with only these, without none (default: any)"},                     \
      {"players", OPTION_INT, &(s).players, "N", "only games of so many players (default: any)"},            \
      {"complete", OPTION_FLAG, &(s).complete, NULL,                                                         \
       "only games that were recorded to their end, without gaps (default: any)"},                           \
      {"humans", OPTION_FLAG, &(s).humans, NULL, "only games without computer players (default: any)"},      \
  {                                                                                                          \
    "duplicates", OPTION_TEXT, &(s).duplicates, "WORD",                                                      \
        "of recordings of one match: drop all but one, or keep (default: drop; keep all replays where no "   \
        "other filter is given)"                                                                             \
  }
/* The frames that become rows. */
#define FRAME_OPTIONS(s)                                                                                     \
  {"first", OPTION_INT, &(s).first, "FRAME", "first game frame (default 0)"},                                \
  {                                                                                                          \
    "last", OPTION_INT, &(s).last, "FRAME", "last game frame (default: all)"                                 \
  }

/* Do values mean something, and go together? If not, says on stderr which does not and what is possible. */
bool select_check(const select_options *options);
/* Is anything asked for but character, port, opponent and frames? */
bool select_filters(const select_options *options);
/* The names of all options that were given. */
void select_given(const select_options *options, void (*say)(const char *name));
/* What they ask for; it borrows their texts. They were checked. */
exphil_selection select_make(const select_options *options);

/* The hashes of the games of which a dataset has episodes, from this one on; free them. NULL: no memory. */
typedef struct select_games {
    uint64_t *hash; /* ascending */
    size_t count;
} select_games;
bool select_games_of(const exphil_dataset *dataset, int64_t first_episode, select_games *games);
bool select_has(const select_games *games, uint64_t hash);

/* Lines of a table: how many players were not taken, and why. */
void select_say_refused(FILE *out, const int64_t refused[EXPHIL_REFUSED_REASONS]);

#endif
