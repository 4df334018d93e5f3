/* What came of the games of which a dataset has rows: rewards of every frame, made of the replays themselves. */
#ifndef EXPHIL_CLI_REWARDS_H
#define EXPHIL_CLI_REWARDS_H

#include <exphil/games.h>
#include <exphil/learn.h>

#include <jansson.h>
#include <stdbool.h>

/* What frames are worth. */
typedef struct rewards_options {
    exphil_melee_reward_config of;
    double half_life; /* seconds after which a reward counts half */
    bool optional;    /* data that do not tell are no failure */
} rewards_options;

/* What there was, of all games together; a side is a player of a game. */
typedef struct rewards_found {
    int64_t sides, cut_off;
    int64_t known;      /* frames whose return is known */
    int64_t gaps;       /* frames that do not follow the one before: they have no reward */
    int64_t not_finite; /* frames with a number that is none: likewise */
} rewards_found;

/* A game that was cut off is not known beyond so many seconds before its end: 1/64 of a return's weight lies farther off. */
double rewards_masked_seconds(const rewards_options *options);
/* Was the game played to an end, so that nothing came after its last frame? Not where somebody quit, the game was broken off, or
 * the recording ends before it. */
bool rewards_game_over(const exphil_slp *slp);
/* What each frame was worth to a port against opponent (0: the first other player): [*count] from *first on, frame by frame, 0
 * where a frame is missing. The replay has a frame. Free it. NULL: error says why. */
float *rewards_of_side(const rewards_options *options, const exphil_slp *slp, int32_t port, int32_t opponent,
                       int32_t *first, int64_t *count, rewards_found *found, exphil_error *error);
/* Gives a dataset the rewards of a replay, whose episodes are first to end - 1. */
bool rewards_of_replay(const rewards_options *options, exphil_dataset *dataset, int64_t first, int64_t end,
                       const exphil_slp *slp, int32_t opponent, rewards_found *found, exphil_error *error);
/* The same for the games of a corpus that have such episodes. cancel may be NULL. */
bool rewards_of_games(const rewards_options *options, exphil_dataset *dataset, int64_t first, int64_t end,
                      const exphil_games *games, int32_t opponent, exphil_cancel_fn cancel,
                      rewards_found *found, exphil_error *error);
/* In a line on stderr, unless quiet. False: of no frame it is known what came, said why. */
bool rewards_say(const rewards_options *options, const rewards_found *found, bool quiet);

/* As members of an object, by the names of the options, and back from what is not trusted: what is missing or out of its range
 * stays as it is. */
void rewards_write(const rewards_options *options, json_t *to);
void rewards_read(rewards_options *options, const json_t *from);

#endif
