/* Tables of conditions, and what a policy plays as. */
#ifndef EXPHIL_CLI_CONDITIONS_H
#define EXPHIL_CLI_CONDITIONS_H

#include "replay_table.h"

#include <exphil/conditions.h>

typedef struct condition_table {
    replay_table of;
    char name[EXPHIL_CONDITIONS_MAX][32];
    exphil_condition_spec spec[EXPHIL_CONDITIONS_MAX]; /* values: the largest in the column */
    int64_t count;                                     /* of conditions */
} condition_table;

/* The head is "file,port,NAME,..."; a field that is empty is 0. replay_table_free ends it. */
bool conditions_read(const char *path, double mask, condition_table *table);

/* Values of a model's conditions from "player=3,rank=2" (NULL: all 0). Says on stderr what is wrong. */
bool conditions_play_as(const exphil_model *model, const char *text, int32_t values[EXPHIL_CONDITIONS_MAX],
                        int64_t *count);
/* Can the policy play with what --delay says, -1: nothing? Of several delays one must be said. Says on stderr what it wants. */
bool delay_fits(const exphil_model *model, int64_t delay);
/* "0,2,4" in ascending order, as --delay has it. */
bool delays_read(const char *text, int32_t delays[EXPHIL_DELAYS_MAX], int64_t *count);
#define PLAY_AS_HELP "tell the policy who it is, as player=3,rank=2 (default: nothing)"

#endif
