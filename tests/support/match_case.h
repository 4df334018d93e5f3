/* Games of two made here, in which known things happen: Fox on port 1 against Falco on port 3, whose percent rises by 10 in
 * every frame but each twentieth, where it is 0 again and a stock is gone, of 200. */
#ifndef EXPHIL_MATCH_CASE_H
#define EXPHIL_MATCH_CASE_H

#include "slp_writer.h"

typedef struct match_made {
    uint32_t seed;
    int32_t frames;
    uint8_t characters[2], types[2], teams[2]; /* of ports 1 and 3 */
    uint8_t stage;
    int8_t item_spawn;
    bool team_game, ended;
    const char *day;
    uint8_t hitter;  /* who hit port 3 last */
    bool idle;       /* port 1 */
    int8_t place[2]; /* placements */
    uint8_t method;
    int8_t quit;
} match_made;

/* 100 frames on Battlefield that port 1 won, on 2024-05-06. */
extern const match_made match_usual;
/* Begins the writer with the whole replay; slp_free ends its life. */
void match_make(slp_writer *w, const match_made *m);

#endif
