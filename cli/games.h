/* Corpora of games: making them of replays and of one another, checking them, looking into them. */
#ifndef EXPHIL_CLI_GAMES_H
#define EXPHIL_CLI_GAMES_H

#include "commands.h"

#include <exphil/games.h>

#include <jansson.h>
#include <stdbool.h>

/* How a corpus is made. */
typedef struct games_options {
    const file_choice *files;
    const select_options *select; /* NULL: all games, whatever they are */
    const char *out, *report;     /* report NULL: none */
    int64_t level, threads;
    uint64_t shard_bytes;  /* 0: the library's choice; else out is a folder */
    int64_t share, shares; /* of the files this part, from 0, of so many; shares 0: all of them */
    bool stored, force, quiet, json;
} games_options;

/* `exphil corpus` and `exphil corpus select`: the exit status. */
int games_write(const games_options *options, int count, char **paths);

/* What a selection took of a corpus. */
typedef struct games_taken {
    exphil_selection_report report; /* of players */
    int64_t games, frames;          /* written */
    int64_t there;                  /* games that the output had already */
} games_taken;
/* Adds the games of which a player is taken; bar says whether to be quiet. False: error says why not. */
bool games_take(exphil_context *context, const exphil_games *from, const select_options *options,
                exphil_games_writer *to, exphil_cancel_fn cancel, progress *bar, games_taken *taken,
                exphil_error *error);
void games_taken_print(const games_taken *taken);
/* Lines "count, what, result, reason" with tabs between them. */
void games_taken_write(FILE *to, const games_taken *taken);
json_t *games_taken_json(const games_taken *taken);

/* `exphil corpus verify`: of rows too. */
int corpus_verify_command(int argc, char **argv);

/* `exphil info`: what a corpus holds. */
int games_summary(exphil_context *context, const char *path, bool json);
/* What the index says of a game that a replay does not; NULL: nothing. */
json_t *game_json(const exphil_games *games, int64_t index);

#endif
