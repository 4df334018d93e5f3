/* What the tests of wrong use share: a world in which everything is right, outputs that must stay as they are, and calls
 * that must be refused. One world and one set of outputs in a program. */
#ifndef EXPHIL_MISUSE_CASE_H
#define EXPHIL_MISUSE_CASE_H

#include "melee_frame.h"
#include "play_case.h"
#include "train_case.h"

typedef struct misuse_world {
    test_io io;
    train_plan plan;
    train_run run, hand; /* with a prefetcher, and by hand */
    exphil_context *elsewhere;
    exphil_model *melee, *quantized;
    exphil_comparison comparison;
    exphil_session *session, *live; /* of run.model, of melee */
    exphil_dataset *empty, *replays;
    exphil_slp_stream *stream;
    exphil_batch batch;
    exphil_melee_frame frame;
    float floats[8 * 13], big[4096];
    int32_t ids[8 * 2 + EXPHIL_IDS_MAX], actions[8 * 3], zero[EXPHIL_HEADS_MAX];
    unsigned char block[65536];
} misuse_world;
extern misuse_world w;

/* Of a group of tests: makes the world, and ends it. */
int misuse_begin(void **state);
int misuse_end(void **state);

/* Makes a dataset of this spec, and destroys it. */
exphil_status misuse_take_spec(const void *given, exphil_error *e);

enum { OUTS = 3, OUT_BYTES = 32768 };
extern unsigned char misuse_kept[OUTS][OUT_BYTES]; /* what was in the outputs before the call */

/* A place for an output, filled with bytes that no output has; struct_size 0: not a struct. */
void *misuse_place(int which, size_t struct_size);
#define OUT(type)  ((type *)misuse_place(0, 0))
#define OUT2(type) ((type *)misuse_place(1, 0))
#define FILL(type) ((type *)misuse_place(0, sizeof(type)))

/* Fails unless this is what the call gave and said, and its outputs are as they were. */
void misuse_check(const char *call, exphil_status status, exphil_status want, const exphil_error *error,
                  const char *says);

/* call uses &e for its error. */
#define BAD(want, says, call)                                                                                \
  do {                                                                                                       \
    exphil_error e = EXPHIL_ERROR_INIT;                                                                      \
    exphil_status bad_status = (call);                                                                       \
    misuse_check(#call, bad_status, EXPHIL_E_##want, &e, says);                                              \
  } while (0)

/* The hot calls keep their text in the session. */
#define HOT(session, want, says, call)                                                                       \
  do {                                                                                                       \
    exphil_error e = EXPHIL_ERROR_INIT;                                                                      \
    exphil_status bad_status = (call);                                                                       \
    (void)exphil_session_error(session, &e);                                                                 \
    misuse_check(#call, bad_status, EXPHIL_E_##want, &e, says);                                              \
  } while (0)

#endif
