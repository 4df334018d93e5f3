/*
 * libexphil - match.h: policies against each other.
 * SPDX-License-Identifier: MIT
 *
 * The rules of exphil.h and learn.h hold. Worlds here have two seats.
 *
 *   1 matches        which of two policies is better, with an interval
 *   2 opponents      a world in which others play the second seat
 */
#ifndef EXPHIL_MATCH_H
#define EXPHIL_MATCH_H

#include <exphil/learn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1 matches ---------------------------------------------------------------------------------------- */

/* How a match is played. */
typedef struct exphil_match_config {
    size_t struct_size;
    int64_t games; /* even: each start is played twice, with seats exchanged; 0 = 200, at most 1000000 */
    int64_t most_frames; /* of a game, which the leader then wins; 0 = 20000 */
    /* Who has made so many points first has won the game; 0 = 11, negative: the world's end decides. A game that ends before, by
     * the world or by most_frames, is won by who leads. Points of a seat are its rewards above 0 */
    double points;
    uint64_t seed;         /* of starts and draws */
    int32_t deterministic; /* 1: both take the likeliest actions; 0: actions are drawn, at temperature 1 */
    int32_t reserved;      /* must be 0 */
} exphil_match_config;
/* clang-format off */
#define EXPHIL_MATCH_CONFIG_INIT { sizeof(exphil_match_config), 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/* What came of it, for the first policy. */
typedef struct exphil_match_result {
    size_t struct_size;
    int64_t games, won, lost, drawn;
    double score; /* (won + drawn / 2) / games */
    /* 95 % of the scores that other starts would have given: percentiles of 10,000 draws of so many starts with
     * replacement, both games of a start together (Efron & Tibshirani 1993, chapter 13) */
    double low, high;
    double points, points_against; /* of all games */
    double frames;                 /* of all games, until each was decided */
} exphil_match_result;
/* clang-format off */
#define EXPHIL_MATCH_RESULT_INIT { sizeof(exphil_match_result), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/* Plays a against b. The draws of a seat follow from seed, start, seat and frame, so that both games of a start, and matches of
 * other policies with this seed, meet the same chance; every game that is started counts. world: of two seats, with any
 * number of lanes, which are played at once and do not change the result; its games are lost. config may be NULL.
 * EXPHIL_E_MISMATCH: a model was made for other rows; EXPHIL_E_IO: the world failed; EXPHIL_E_CANCELLED. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_match(const exphil_model *a, const exphil_model *b,
                                                       const exphil_world *world,
                                                       const exphil_match_config *config,
                                                       exphil_match_result *result, exphil_error *error);

/* ---- 2 opponents -------------------------------------------------------------------------------------- */

/* Episodes that ended in a world of exphil_world_against, by opponent. */
typedef struct exphil_record {
    size_t struct_size;
    int64_t episodes, won, lost; /* of whoever plays the world's seat; by the sum of an episode's rewards */
} exphil_record;
/* clang-format off */
#define EXPHIL_RECORD_INIT { sizeof(exphil_record), 0, 0, 0 }
/* clang-format on */

/* The same lanes with one seat: the other is played by policies that do not learn, drawn at temperature 1. Lane l is played
 * against opponents[l % count], in the first seat where l / count is even and in the second elsewhere. Fills against, as
 * exphil_world_create does, which exphil_world_destroy ends; world and its games must live as long, and are played by nobody
 * else. All lanes are stepped together; it can be saved if world can. seed: of the opponents' draws. count: 1..64, at most the
 * lanes. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_world_against(exphil_context *context,
                                                               const exphil_world *world,
                                                               const exphil_model *const *opponents,
                                                               int64_t count, uint64_t seed,
                                                               exphil_world *against, exphil_error *error);
/* Of opponent index: what came of the episodes since the last call (record may be NULL), and, between two frames, another
 * policy in its place (model NULL: it stays), which goes on with the state that there is. The new one has the
 * configuration of the first (EXPHIL_E_MISMATCH). EXPHIL_E_INVALID: the world is not one of exphil_world_against. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_world_opponent(const exphil_world *against, int64_t index,
                                                                const exphil_model *model,
                                                                exphil_record *record, exphil_error *error);

#ifdef __cplusplus
}
#endif
#endif
