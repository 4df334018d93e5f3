/* What a value head says of a recorded game, and where the game turned. */
#ifndef EXPHIL_CLI_REVIEW_H
#define EXPHIL_CLI_REVIEW_H

#include "commands.h"

#include <exphil/slp.h>

/* A swing is within so many frames; what is expected before and after it is the mean of so many. As
 * many inputs as it has frames are told, so many of them before what happened first. */
enum { REVIEW_WINDOW = 120, REVIEW_MEAN = 30, REVIEW_LEAD = 90, REVIEW_EVENTS = 16 };

typedef struct review_options {
    machine_options machine; /* one thread */
    const char *weights, *play_as, *svg;
    int64_t port, opponent, swings, delay; /* delay -1: not given */
    bool json, force;
} review_options;

/* What is known of a frame in which an action acts. */
typedef struct review_frame {
    double value;  /* what the policy expected to come from this frame on, before it; NaN: nothing is said */
    double reward; /* what came in it */
    exphil_pad pressed, policy;
    bool known; /* value and policy are said, and pressed is recorded */
} review_frame;

/* What happened to a player. */
typedef enum review_kind {
    REVIEW_HIT,
    REVIEW_DEATH,
    REVIEW_GRABBED,
    REVIEW_LEDGE,
    REVIEW_SHIELD_BROKEN
} review_kind;
typedef struct review_event {
    review_kind kind;
    int32_t port;   /* 1..4 */
    int32_t frame;  /* of the game; of hits the first */
    double percent; /* HIT: taken, all together; DEATH: at */
    int32_t hit;    /* DEATH: frame of the last hit before, within five seconds; INT32_MIN: none */
} review_event;

/* swing = came + after - before: what was won less what had been expected. */
typedef struct review_swing {
    int64_t at; /* index of its first frame */
    double before, came, after, swing;
    review_event event[REVIEW_EVENTS];
    int events;
    int64_t inputs; /* index from which inputs are told: what led to the first event, or to the swing */
} review_swing;

typedef struct review {
    const review_options *options;
    const char *path; /* of the replay */
    exphil_context *context;
    exphil_model *model;
    exphil_session *session;
    exphil_slp *slp;
    exphil_spec spec;
    exphil_model_info info;
    exphil_slp_info game;
    exphil_slp_result result;
    rewards_options worth;
    bool worth_told;     /* the weights say what they were trained on */
    bool over;           /* nothing came after the last frame */
    int32_t first;       /* game frame of frame[0] */
    int32_t port, other; /* 1..4; other 0: nobody */
    int64_t count;
    review_frame *frame;
    review_swing *swing; /* largest first */
    int64_t swings;
    int64_t returns;    /* frames whose return is known, and what the value says of it */
    double unexplained; /* of the variance of returns */
} review;

/* Values, decisions and rewards of all frames (review_walk.c). False: said why not. */
bool review_walk(review *r);
/* The largest swings, no two nearer than REVIEW_WINDOW, and what happened in them (review_swings.c). */
bool review_find(review *r);
/* "P1 fox takes 34 %; P2 marth dies at 103 %". */
const char *review_happened(const review *r, const review_swing *s, char *to, size_t size);
/* Does the player of a port die in this frame? */
bool review_dies(const review *r, int32_t port, int32_t frame);
/* What is left of the game's clock at a frame, in frames; -1: it has none that runs down. */
int64_t review_clock(const review *r, int32_t frame);
void review_print(const review *r);
json_t *review_json(const review *r);
bool review_svg(const review *r, const char *path);

#endif
