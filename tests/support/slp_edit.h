/* A replay as another console, or another recorder, would have written it: the same match in other bytes. */
#ifndef EXPHIL_SLP_EDIT_H
#define EXPHIL_SLP_EDIT_H

#include "slp_writer.h"

typedef struct slp_edit {
    uint32_t seed; /* xor with the seed of the game */
    int32_t
        rollback; /* at every so many frames, three are simulated twice, first with other inputs; 0: never */
    int32_t padding;      /* unknown bytes behind what bookends have */
    int32_t drop;         /* frames at the end that are left out */
    int32_t input;        /* 1 + the place of the frame in which all sticks differ; 0: none */
    bool no_end;          /* without the game end event */
    const char *metadata; /* what stands there instead, a whole UBJSON value; NULL: as it is */
} slp_edit;

/* Begins `to` with the edited replay, a container with a length; slp_free ends its life. Rollbacks and padding are left out
 * where a recorder has no bookends. */
void slp_edit_make(const uint8_t *data, size_t bytes, const slp_edit *edit, slp_writer *to);

#endif
