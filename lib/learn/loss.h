/* The loss of a batch, and what is kept of it: by the host (loss.c), or on the device, where it has a kernel for the policy's heads
 * (loss_device.c). Both have the same gradients, to the bit. */
#ifndef XPH_LEARN_LOSS_H
#define XPH_LEARN_LOSS_H

#include "learn/learn.h"

/* Sums over the rows of a batch, or of several. */
typedef struct xph_tally {
    double rows, loss, miss, ratio, clipped, kl_old, to_teacher, from_teacher, entropy, norm, batches;
    double imitated, nll;      /* rows that the host decided */
    double apart, first_apart; /* the largest of the rows; of the rows of the first batch */
} xph_tally;

static inline double xph_mean(double sum, double rows)
{
    return rows > 0.0 ? sum / rows : 0.0;
}
/* Of all rows together. */
double xph_tally_loss(const exphil_learner *learner, const xph_tally *sum);

typedef struct xph_loss_job {
    exphil_learner *l;
    const exphil_rollout *r;
    const int64_t *streams;  /* of the batch */
    double scale, imitation; /* one over the rows of each kind, the latter times its weight */
    bool learns;             /* makes the update; else only looks */
} xph_loss_job;

/* Forward, loss and, if it learns, backward: own is the batch's, and sum grows by it. */
exphil_status xph_loss_by_host(const xph_loss_job *job, const exphil_batch *batch, xph_tally *own,
                               xph_tally *sum, exphil_metrics *metrics, exphil_error *error);
exphil_status xph_loss_on_device(const xph_loss_job *job, const exphil_batch *batch, xph_tally *own,
                                 xph_tally *sum, exphil_metrics *metrics, exphil_error *error);

/* What a chunk said, before its batches; and, where the host computes the loss, the teacher. */
void xph_loss_chunk_by_host(exphil_learner *learner, const exphil_rollout *rollout);
exphil_status xph_loss_chunk_on_device(exphil_learner *learner, const exphil_rollout *rollout,
                                       exphil_error *error);
/* On the device: of the logits that the teacher's net has now. finite: whether they are. */
exphil_status xph_loss_teacher_on_device(exphil_learner *learner, const exphil_rollout *rollout,
                                         bool *finite);

/* Which of the two it is, for a rollout of this shape; then memory for the second, all or nothing. */
void xph_loss_choose(exphil_learner *learner, const exphil_rollout *rollout);
exphil_status xph_loss_make(exphil_learner *learner, const exphil_rollout *rollout, exphil_error *error);
void xph_loss_drop(exphil_learner *learner);

#endif
