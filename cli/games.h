/* Corpora of games: making them of replays and of one another, checking them, looking into them. */
#ifndef EXPHIL_CLI_GAMES_H
#define EXPHIL_CLI_GAMES_H

#include "file_list.h"

#include <exphil/games.h>

#include <jansson.h>
#include <stdbool.h>

/* How a corpus is made. */
typedef struct games_options {
    const file_choice *files;
    const char *out, *report; /* report NULL: none */
    int64_t level, threads;
    uint64_t shard_bytes; /* 0: the library's choice; else out is a folder */
    bool stored, force, quiet, json;
} games_options;

/* `exphil corpus --games`: the exit status. */
int games_write(const games_options *options, int count, char **paths);
/* `exphil corpus verify`: of rows too. */
int corpus_verify_command(int argc, char **argv);

/* `exphil info`: what a corpus holds. */
int games_summary(exphil_context *context, const char *path, bool json);
/* What the index says of a game that a replay does not; NULL: nothing. */
json_t *game_json(const exphil_games *games, int64_t index);

#endif
