/*
 * libexphil - examination: what a policy says to each frame of a dataset.
 * SPDX-License-Identifier: MIT
 *
 * exphil_evaluate sums up; here the host sees every frame and sums up as it likes: how often a button is pressed, where a
 * policy is unsure, which frames it gets wrong. The rules of exphil.h hold.
 */
#ifndef EXPHIL_EXAMINE_H
#define EXPHIL_EXAMINE_H

#include <exphil/exphil.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One frame and what the policy says to it. Its arrays are valid during the call that shows it. */
typedef struct exphil_examined {
    size_t struct_size;
    int64_t frame;           /* of the dataset: the row that was shown (exphil_dataset_frame) */
    int64_t episode;         /* of the dataset (exphil_dataset_episode) */
    int64_t row;             /* of the episode, from 0 */
    const float *floats;     /* [F] of that row */
    const int32_t *ids;      /* [K] likewise */
    const int32_t *recorded; /* [A] the action of row + delay_frames, which is to be predicted */
    const int32_t *before;   /* [A] the one a frame before that, as exphil_report takes it */
    const int32_t *
        likely; /* [A] the most likely values: of a Bernoulli head the bits above one half, of ties the lower class */
    const double
        *log_probability; /* [A] of the recorded value, nats; of a Bernoulli head of all its bits together */
    const double *logits; /* [L] */
    int32_t delay_frames;
    int32_t reserved;
} exphil_examined;
/* Called from the thread that called exphil_examine, with nothing locked. It must not use objects of the call's model or
 * dataset but to read. Nonzero ends the examination with EXPHIL_E_CANCELLED. */
typedef int32_t (*exphil_examine_fn)(void *user, const exphil_examined *frame);

/* Who looks, and how the policy is run. */
typedef struct exphil_examination {
    size_t struct_size;
    exphil_examine_fn see; /* must be set */
    void *user;
    const int32_t *conditions;   /* [condition_count] as in exphil_evaluation (conditions.h) */
    const int32_t *delay_frames; /* likewise */
    int64_t condition_count;
    int64_t batch; /* as in exphil_evaluate: the order in which frames come depends on it */
    /* 0: teacher-forced, every frame that has a target once, in window mode from the end of an episode's first window on.
     * Above 0: alone, as in exphil_report: past actions are the
     * policy's own decisions, which are what `likely` tells; at least so many frames, in whole episodes, or all that
     * there are. A model without past actions is examined teacher-forced */
    int64_t alone_most_frames;
} exphil_examination;
/* clang-format off */
#define EXPHIL_EXAMINATION_INIT { sizeof(exphil_examination), 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/* Runs a model through a dataset as exphil_evaluate does, and shows each frame to the host: within an episode in the order
 * of time, episodes side by side. The order is a function of dataset, model and batch; alone not even of batch. Neither
 * order nor numbers depend on threads. A row of weight 0 is shown like any other. Memory is allocated before the
 * first frame. Errors are those of exphil_evaluate_as; alone_most_frames below 0 and a NULL see are EXPHIL_E_INVALID.
 * What was shown before a failure was right. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_examine(const exphil_model *model,
                                                         const exphil_dataset *dataset,
                                                         const exphil_examination *how, exphil_error *error);

#ifdef __cplusplus
}
#endif
#endif
