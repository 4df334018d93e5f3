/* What the tests of sessions share: models with weights that matter, inputs in the order a host gives them, and the same
 * frames through a net, which says what every step must have computed. */
#ifndef EXPHIL_PLAY_CASE_H
#define EXPHIL_PLAY_CASE_H

#include "model_case.h"

/* A model of this configuration whose every weight is moved by up to shake, so that biases are not zero. */
exphil_model *play_model(exphil_context *context, const exphil_model_config *config, double shake);
/* Adds up to shake to one tensor, from a stream of its own. */
void play_shake(exphil_model *model, const char *tensor, double shake, uint64_t seed);
/* Fails the test when there is none. */
exphil_session *play_session(const exphil_model *model, const exphil_session_config *config);

/* T frames of B streams, frame after frame: row t*B + b. */
typedef struct play_frames {
    int64_t streams, frames, float_count, id_count, heads, logits;
    float *floats, *noise;
    int32_t *ids;
} play_frames;
play_frames *play_frames_make(const exphil_model *model, int64_t streams, int64_t frames, uint64_t seed);
void play_frames_free(play_frames *frames);

/* One step of all streams with frame t; own: the session's own noise. Fails the test when the step fails. */
void play_step(exphil_session *session, const play_frames *frames, int64_t t, bool own, int32_t *actions);
/* Logits of all streams [B, L]. */
void play_logits(const exphil_session *session, const play_frames *frames, float *logits);

/* Logits [T, B, L] of a net that is shown the same frames. decided [T, B, A] is what the session decided; reset [T, B]
 * says where streams were reset before the frame; override [T, B, A]: what the queue held instead afterwards, or NULL. In
 * window mode every frame is a window of its own. */
void play_reference(exphil_model *model, const play_frames *frames, const int32_t *decided,
                    const uint8_t *reset, const int32_t *override, double *logits);

enum { PLAY_HEADS = 3, PLAY_LOGITS = 12 }; /* of model_case_spec */
enum { PLAY_STREAMS = 8 };                 /* at most of a pair */
extern const int32_t play_neutral[PLAY_HEADS];

/* Two sessions of one model, whose heads are autoregressive, and frames for both. */
typedef struct play_pair {
    exphil_context *context;
    exphil_model *model;
    exphil_session *a, *b;
    play_frames *f;
} play_pair;
/* Blocks that begin with an end's number (model_case_end) and a colon have that end. */
play_pair play_pair_make(const char *blocks, int32_t delay, exphil_session_config a, exphil_session_config b,
                         int64_t frames);
void play_pair_free(play_pair *p);
/* Whether both do the same in all frames; own: as play_step has it. */
bool play_same_run(play_pair *p, int64_t frames, bool own);

/* Fails unless the session's error has this status and these words. */
void play_says(const exphil_session *session, exphil_status status, const char *words);

#endif
