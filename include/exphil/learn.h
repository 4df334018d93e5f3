/*
 * libexphil - learn.h: policies that improve on what they were taught.
 * SPDX-License-Identifier: MIT
 *
 * The rules of exphil.h hold. Letters as there; S is the recurrent state of one stream, in reals: floats, or doubles in a
 * model of EXPHIL_TYPE_F64.
 *
 *   1 value          what a policy expects
 *   2 own losses     forward, then any loss of the host's, then backward
 */
#ifndef EXPHIL_LEARN_H
#define EXPHIL_LEARN_H

#include <exphil/exphil.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1 value ------------------------------------------------------------------------------------------ */

/* Hot. What the value head said in the last step of a stream: its estimate of the discounted rewards to come, in the
 * units of the rewards that it was trained on. EXPHIL_E_STATE: the model has no value head
 * (exphil_model_config.value). 0 before the first step; exphil_session_reset leaves it. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_session_value(const exphil_session *session, int64_t stream,
                                                               float *value);
/* A copy of a model with a new value head, EXPHIL_VALUE_DETACHED or SHARED, in the place of one that it may have:
 * it decides as the model does, and its value is 0. Its trunk is drawn from seed. Notes and counters are copied.
 * EXPHIL_E_UNSUPPORTED: the model is quantised. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_model_with_value(const exphil_model *model, int32_t value,
                                                                  uint64_t seed, exphil_model **with,
                                                                  exphil_error *error);

/* ---- 2 own losses ------------------------------------------------------------------------------------- */

/* What forward gives. Its arrays belong to the trainer and are valid until backward or abandon. */
typedef struct exphil_forward {
    size_t struct_size;
    int64_t rows;        /* B*T */
    int64_t logit_count; /* L */
    const void *
        logits; /* [B*T, L] reals: of head i what the policy gives to each class or bit, beside batch->actions of
                            the heads before it where heads are autoregressive */
    const void *values; /* [B*T] reals; NULL: the model has no value head */
} exphil_forward;
/* clang-format off */
#define EXPHIL_FORWARD_INIT { sizeof(exphil_forward), 0, 0, 0, 0 }
/* clang-format on */

/* The first half of an update whose loss is the host's: the current weights over one batch that the host made. Every value
 * of the batch is checked, and it must stay as it is until backward or abandon. mask is not used; it says in
 * exphil_metrics.frames how many frames were learnt from. All batches of a trainer have the shape of the first.
 * states: NULL: the carried state, as exphil_trainer_step_batch. Else where each lane begins: B blocks of
 * exphil_session_state_save, one after the other, of sessions of this model or of earlier or later weights of it
 * (EXPHIL_E_MISMATCH, EXPHIL_E_FORMAT); size_bytes is that of all. They are constants of the loss, and take the place
 * of the carried state.
 * On success exphil_trainer_backward or exphil_trainer_abandon must follow; all other calls of the trainer but destroy are
 * EXPHIL_E_STATE until then. EXPHIL_E_UNSUPPORTED: the trainer has accumulate above 1, own_past, or
 * EXPHIL_PRECISION_F16. Waits for updates that a GPU still works on. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_trainer_forward(exphil_trainer *trainer,
                                                                 const exphil_batch *batch,
                                                                 const void *states, size_t size_bytes,
                                                                 exphil_forward *forward,
                                                                 exphil_error *error);
/* The second half: gradients of the host's loss by what forward gave, dlogits [B*T, L] and dvalues [B*T] reals, not
 * divided by anything; dvalues NULL: 0. Then clipping and AdamW, as exphil_trainer_step. loss is what metrics tells;
 * metrics may be NULL, its head losses are 0. EXPHIL_E_NUMERIC: a number is not finite, also in the gradient of the weights:
 * weights, moments and schedule are then as before, and the carried state starts from zero. After EXPHIL_E_IO
 * (communicator) the update may be tried again from forward on. After any status the trainer takes all
 * calls again. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_trainer_backward(exphil_trainer *trainer,
                                                                  const void *dlogits, const void *dvalues,
                                                                  double loss, exphil_metrics *metrics,
                                                                  exphil_error *error);
/* No update after forward: weights and moments are as before it, and the carried state is where the batch began. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_trainer_abandon(exphil_trainer *trainer,
                                                                 exphil_error *error);

/* ---- 3 worlds ----------------------------------------------------------------------------------------- */

/* How an episode stands after a frame. Over: nothing comes any more. Cut off: it would have gone on (a limit of time), so
 * what it leaves still has a value. */
enum { EXPHIL_GOES_ON = 0, EXPHIL_OVER = 1, EXPHIL_CUT_OFF = 2 };

#ifdef __cplusplus
}
#endif
#endif
