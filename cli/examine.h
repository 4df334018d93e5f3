/* What an examination of a policy (exphil/examine.h) comes to: rates of buttons, entropy, calibration, directions of the
 * stick, scores by group, and the frames that cost most. */
#ifndef EXPHIL_CLI_EXAMINE_H
#define EXPHIL_CLI_EXAMINE_H

#include <exphil/exphil.h>

#include <jansson.h>
#include <stdbool.h>

enum {
    EXAM_BITS = 32,
    EXAM_BINS = 10,
    EXAM_SECTORS = 9, /* the stick at rest, then eight directions from right, against the clock */
    EXAM_GROUPS = 64, /* characters, stages; the last takes what has no place */
    EXAM_PHASES = 4
};

/* One bit of a Bernoulli head. */
typedef struct exam_bit {
    double probability;        /* sum */
    int64_t decided, recorded; /* frames on which it is pressed */
} exam_bit;

typedef struct exam_head {
    double entropy; /* sum, nats */
    exam_bit bit[EXAM_BITS];
    int64_t classes[EXPHIL_HEADS_MAX * 32]; /* frames by decided class; what is beyond is in the last */
    struct {
        int64_t count, right;
        double confidence;
    } bin[EXAM_BINS]; /* of what was most likely, by how likely it was; of bits each counts */
} exam_head;

/* Scores of a part of the frames. */
typedef struct exam_group {
    int64_t frames, right, changes, right_changes;
    double nll;
} exam_group;

/* A frame that cost much. */
typedef struct exam_mistake {
    int64_t frame, episode, row;
    double nll;
    int32_t recorded[EXPHIL_HEADS_MAX], likely[EXPHIL_HEADS_MAX], delay;
    float own[4], other[4]; /* x, y, percent, stocks where the layout has them */
} exam_mistake;

typedef struct exam {
    const exphil_dataset *dataset;
    exphil_spec spec; /* the dataset's, which must live as long */
    int64_t frames;
    exam_head *head; /* [heads] */
    exam_group all, own[EXAM_GROUPS], other[EXAM_GROUPS], stage[EXAM_GROUPS], phase[EXAM_PHASES];
    int64_t stick[EXAM_SECTORS][EXAM_SECTORS]; /* [recorded][decided] frames */
    bool melee;                                /* the codec is one of controllers */
    bool alone;
    /* the frames that cost most: at most `each` of a game */
    int64_t wanted, each, games;
    int64_t *game; /* [episodes] number of its game */
    exam_mistake *candidates;
    int32_t *candidate_count; /* [games] */
    int64_t episodes;
    exphil_episode_info *episode;   /* [episodes] */
    int64_t at_own[4], at_other[4]; /* columns of x, y, percent, stocks; -1: none */
    double scale[4];
    bool failed; /* memory */
} exam;

/* How: the model's conditions and delay as in exphil_evaluation; may be NULL. alone: frames, 0: teacher-forced. mistakes: how
 * many are wanted. False, with a message on stderr, when it failed; exam_free in any case. */
typedef struct exam_how {
    const int32_t *conditions, *delay;
    int64_t condition_count, batch, alone, mistakes;
} exam_how;
bool exam_make(const exphil_model *model, const exphil_dataset *dataset, const exam_how *how, exam *made);
void exam_free(exam *made);

/* Share of decided to recorded presses and the like. */
double exam_rate_decided(const exam *made, int64_t head, int32_t bit);
double exam_rate_recorded(const exam *made, int64_t head, int32_t bit);
/* Expected calibration error of a head (Guo et al. 2017), ten bins of equal width. */
double exam_calibration_error(const exam *made, int64_t head);
/* The mistakes, dearest first: indices into candidates; free it. count: how many. */
int64_t *exam_mistakes(const exam *made, int64_t *count);

/* The direction of a stick that is not at rest: 0 right, 1 up and right, 2 up, ..., 7 down and right. */
int stick_eighth(double right, double up);

/* "A", or "buttons 3". */
const char *exam_bit_name(const exam *made, int64_t head, int32_t bit, char *to, size_t size);
/* examine_print.c: the short part, all as JSON, and the frames that cost most. */
void exam_print(const exam *made);
json_t *exam_json(const exam *made);
void exam_print_mistakes(const exam *made);
json_t *exam_mistakes_json(const exam *made);

#endif
