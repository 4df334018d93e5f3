/* A policy in the place of a player of a replay: what `exphil play` and `exphil review` share. */
#ifndef EXPHIL_CLI_SEAT_H
#define EXPHIL_CLI_SEAT_H

#include <exphil/slp.h>

#include <jansson.h>
#include <stdbool.h>

/* May this be a replay? Else says what it is, and the hint. */
bool seat_replay(const char *path, const char *hint);
/* Chooses *port where it is 0, which is said unless quiet, and checks that both are played (opponent 0: not asked for). False: said
 * who is there. */
bool seat_take(const exphil_model *model, const exphil_slp_info *info, const char *path, int64_t *port,
               int64_t opponent, bool quiet);
/* Whose place it is, against whom, and where: on stderr. */
void seat_say(const exphil_slp_info *info, int64_t port, int64_t opponent);
/* The first other player, of another team in team games, as the library takes it: index 0..3 of own index; -1: there is none. */
int seat_opponent(const exphil_slp_info *info, int own);
/* The recorded action of a game frame, as head values; false: there is none. */
bool seat_recorded(const exphil_slp *slp, const exphil_spec *spec, int32_t port, int32_t frame,
                   int32_t *action);
json_t *pad_json(const exphil_pad *pad);
/* Says what a hot call of the session refused; returns 1. */
int seat_failed(exphil_session *session, const char *what);

#endif
