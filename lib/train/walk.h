/* Private to lib/train: what an evaluation goes through, frame by frame. */
#ifndef XPH_TRAIN_WALK_H
#define XPH_TRAIN_WALK_H

#include "train/train.h"

/* One frame of an evaluation. Arrays are valid during the call that shows it. */
typedef struct xph_seen {
    int64_t frame;                  /* of the dataset: the row that was shown */
    const int32_t *target, *before; /* [A] recorded: what was to be predicted, and of the frame before it */
    const float *floats;            /* [F] the row */
    const int32_t *ids;             /* [K] */
    const double *logits;           /* [L] */
    int32_t likely[EXPHIL_HEADS_MAX], rank[EXPHIL_HEADS_MAX]; /* as xph_judge_head tells them */
    double nll[EXPHIL_HEADS_MAX];
    double value, outcome; /* of the value head, and what came: NaN where there is none, or it is not known */
} xph_seen;
/* Called for each frame, on the calling thread. A failure ends the walk. */
typedef exphil_status (*xph_see)(void *arg, const xph_seen *seen, exphil_error *error);
/* Fills likely, rank and nll from target and logits; returns the first head whose nll is not finite, or -1. */
int64_t xph_judge(const exphil_model *model, xph_seen *seen);

/* Everything the teacher-forced walk holds. free also after a make that failed. */
typedef struct xph_walk {
    exphil_context *context;
    xph_sampler *sampler;
    xph_feed feed;
    float *narrow;
    double *wide, *values; /* values [rows]; NULL: the model has no value head */
    size_t narrow_bytes, wide_bytes, values_bytes;
} xph_walk;
/* Sampling of whole episodes in order; conditions: room for those of sampling. */
exphil_status xph_whole_sampling(const exphil_model *model, const exphil_dataset *dataset, int64_t batch,
                                 exphil_sampling *sampling,
                                 exphil_condition_spec conditions[EXPHIL_CONDITIONS_MAX],
                                 exphil_error *error);
void xph_walk_size(xph_walk *walk, const exphil_model *model, int64_t rows); /* the bytes of its arrays */
exphil_status xph_walk_make(xph_walk *walk, const exphil_model *model, const exphil_dataset *dataset,
                            const xph_losses *losses, int64_t batch, const xph_fixed *fixed,
                            exphil_error *error);
void xph_walk_free(xph_walk *walk);
/* Shows all frames that have a target, once. loss_sums [A] grow by the sums of the training objective. */
exphil_status xph_walk_run(xph_walk *walk, const void *weights, const void *packed, const xph_losses *losses,
                           double *loss_sums, xph_see see, void *arg, exphil_error *error);

/* What came of a walk of the policy alone. */
typedef struct xph_alone_sums {
    int64_t frames, changes, exact, exact_change;
    double nll;
} xph_alone_sums;
/* At least `most` frames in whole episodes, fewer where there are no more, with the policy's own decisions as past actions.
 * see may be NULL; frames come to it in an order that depends on neither batch nor threads, and likely is what was decided.
 * The model has past actions; sampler is that of the teacher-forced walk: the policy is told the same, and has the same
 * delay. */
exphil_status xph_walk_alone(const exphil_model *model, const void *weights, const void *packed,
                             const xph_sampler *sampler, int64_t most, xph_see see, void *arg,
                             xph_alone_sums *sums, exphil_error *error);
/* What that takes without see, of a model on a context that measures; the dataset's context is another. */
exphil_status xph_alone_held(const exphil_model *model, const exphil_dataset *dataset, int64_t most,
                             xph_held *held, exphil_error *error);

#endif
