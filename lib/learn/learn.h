/* Door of lib/learn: what its files share. The room stands on lib/train and lib/play, and is where both meet. */
#ifndef XPH_LEARN_LEARN_H
#define XPH_LEARN_LEARN_H

#include "learn/policy.h"
#include "play/play.h"
#include "train/train.h"

#include <exphil/learn.h>

/* ---- rollouts ------------------------------------------------------------------------------------------- */

/* Rows are kept by stream: row t of stream b is number b * R + t, R = T + d. All of a chunk is played by the same weights. The
 * last d rows are not learnt from: they are played until the T before them have their rewards. */
struct exphil_rollout {
    exphil_context *context;
    exphil_session *session;
    xph_busy busy;
    const xph_model_shape *shape;
    xph_policy policy;
    int64_t streams, time, delay, rows; /* rows: R */
    int64_t decided, rewarded;          /* rows of the chunk so far, the same for all streams */
    int64_t received; /* streams of the chunk that came as blocks; then it is not played here */
    uint8_t *arrived; /* [B] which of them */
    uint64_t seed;
    bool playing; /* a world's episodes have begun */
    bool by_host; /* rows came by steps of the host's */
    bool stepped; /* the world has made a frame whose reward is not recorded yet */
    bool broken;  /* a world failed: its games and these rows no longer fit together */
    /* What tells the world that is played from another one; step NULL: none was played yet. */
    struct {
        const void *user;
        int32_t (*step)(void *user, int64_t first, int64_t count, const int32_t *actions, float *floats,
                        int32_t *ids, float *reward, uint8_t *end);
    } of;
    const exphil_learner *taught_by; /* whose teacher goes with it; never followed */
    uint8_t *fresh;                  /* [B] 1: the next row starts an episode */
    int64_t *episodes;               /* [B] begun so far, of the lane's first seat */
    double *sum;                     /* [B] rewards of the episode so far */
    int64_t *frames;                 /* [B] its frames so far */
    /* [B, R, ...] */
    float *floats, *logits, *value, *reward, *cut_off;
    int32_t *ids, *past, *actions;
    double *log_probability;
    uint8_t *reset, *end, *taken; /* taken: the action is the policy's own */
    float *next_value;            /* [B] of the row after the chunk, without delay */
    double *ended_sum;            /* of the episode that ended in this frame */
    int64_t *ended_frames;
    unsigned char *state; /* [B, state] where the chunk begins */
    double *logs;         /* [B, L] scratch */
    /* of the world that is played: [B, ...] */
    float *world_floats, *world_reward;
    int32_t *world_ids, *world_actions;
    uint8_t *world_end, *stream_end;
    unsigned char *memory;
    size_t memory_bytes;
};

/* Whether T rows have all that is learnt from; EXPHIL_E_STATE if not, or if its world has failed. */
bool xph_rollout_full(const exphil_rollout *rollout);
exphil_status xph_rollout_check_full(const exphil_rollout *rollout, exphil_error *error);
/* EXPHIL_E_STATE: its world has failed. */
exphil_status xph_rollout_check_whole(const exphil_rollout *rollout, exphil_error *error);
/* EXPHIL_E_STATE: rows are recorded, or streams came as blocks. */
exphil_status xph_rollout_check_empty(const exphil_rollout *rollout, exphil_error *error);
/* exphil_rollout_step and exphil_rollout_reward, of a rollout that was entered; of: who plays, the host or a world. The session
 * is in use meanwhile: EXPHIL_E_BUSY, and nothing has changed, if somebody else is in it. */
typedef enum xph_rollout_of { XPH_OF_HOST, XPH_OF_WORLD } xph_rollout_of;
exphil_status xph_rollout_step(exphil_rollout *rollout, xph_rollout_of of, const float *floats,
                               const int32_t *ids, int32_t *actions);
exphil_status xph_rollout_reward(exphil_rollout *rollout, xph_rollout_of of, const float *reward,
                                 const uint8_t *end, const float *floats, const int32_t *ids);
/* What a host put in the place of the last action, before the row is looked at. EXPHIL_E_BUSY. */
exphil_status xph_rollout_take_overrides(exphil_rollout *rollout, exphil_error *error);
/* Why one of the above failed. */
exphil_status xph_rollout_fail(const exphil_rollout *rollout, exphil_status status, exphil_error *error);
/* Of a world that rollout and host agree on; EXPHIL_E_INVALID, EXPHIL_E_MISMATCH; EXPHIL_E_STATE: another one is played, or the
 * host plays. */
exphil_status xph_rollout_check_world(const exphil_rollout *rollout, const exphil_world *world,
                                      exphil_error *error);
/* From here on this world is played. */
void xph_rollout_bind(exphil_rollout *rollout, const exphil_world *world);
/* After a chunk was learnt from: the next one begins. */
void xph_rollout_next(exphil_rollout *rollout);
/* New weights for what plays. */
exphil_status xph_rollout_adopt(exphil_rollout *rollout, const exphil_model *model, exphil_error *error);

/* ---- matches -------------------------------------------------------------------------------------------- */

/* EXPHIL_E_INVALID: it has not two seats, or what it must have. */
exphil_status xph_world_check_two(const exphil_world *world, exphil_error *error);

/* ---- learners ------------------------------------------------------------------------------------------- */

/* What a chunk says to the loss, by row t of stream b: number b * T + t. */
typedef struct xph_chunk {
    double *advantage, *target; /* [B, T] */
    double *old,
        *teacher; /* [B, T, L] logs, and chances of the same; where the host computes the loss, as is */
    double *old_chances, *teacher_chances;
    uint8_t *counts;           /* [B, T] XPH_ROW_... */
    xph_policy_result *result; /* [B, T] of the rows of a batch, in its order */
    double *miss;              /* [B, T] (V - G)^2 likewise; of imitated rows -log p of the action */
    float *scaled, *value;     /* of one stream: rewards by frame, values of its rows and the next */
    double *logs, *chances;    /* [B, T, L] of the rows of a batch: what the policy says now */
    float *ones;               /* [B, T + d] */
    void *mark;                /* of the trainer, before the chunk's updates */
    size_t mark_bytes;
} xph_chunk;

/* The same for a loss that the device computes: these lie alike on the device and, on their way to it and back, with the host. */
typedef struct xph_loss_said {
    double *advantage, *target, *log_probability; /* [B, T] */
    uint8_t *counts;                              /* [B, T] */
    int64_t *streams;                             /* of a batch */
    xph_policy_tally *tally;
    uint32_t *not_finite;
    unsigned char *memory;
    size_t bytes;
} xph_loss_said;
typedef struct xph_loss_device {
    const xph_kernel *kernel; /* NULL: the host computes it */
    size_t scratch_bytes;
    xph_loss_said here, host;
    float *played;                                         /* [B, T + d, L] logits */
    double *old, *old_chances, *teacher, *teacher_chances; /* [L, B, T] */
    void *scratch;
    unsigned char *memory;
    size_t bytes;
} xph_loss_device;

/* A batch of some streams of a chunk, and its gradients. */
typedef struct xph_part {
    float *floats, *mask, *dlogits, *dvalues;
    int32_t *ids, *past, *actions;
    uint8_t *reset;
    unsigned char *states;
    int64_t *order; /* streams, as they are shuffled */
} xph_part;

struct exphil_learner {
    exphil_context *context;
    exphil_trainer *trainer; /* retained */
    exphil_model *teacher;   /* retained, or NULL */
    xph_busy busy;
    exphil_learner_config config; /* defaults filled in */
    const xph_model_shape *shape;
    double discount;
    xph_policy_terms terms; /* of the chunk under way */
    double imitation;       /* weight, likewise */
    int64_t chunks, updates;
    int64_t streams, time, each; /* shape of the rollouts; streams of a batch. 0: not known yet */
    xph_feed taught;             /* the teacher over a chunk, with its own carried state */
    const void *teacher_packed;
    const exphil_rollout *with; /* whose chunks the teacher's state follows; NULL: none yet. Never followed */
    float *narrow;              /* logits of the teacher over a chunk, all of its rows */
    double *wide;
    xph_chunk chunk;
    xph_loss_device loss;
    xph_part part;
    unsigned char *memory;
    size_t memory_bytes;
};

#define XPH_KL_NEVER 1e300 /* exphil_learner_config.most_kl: a KL that nothing exceeds */

/* What learning from this rollout takes, once: EXPHIL_E_MISMATCH: it has been another shape. */
exphil_status xph_learner_shape(exphil_learner *learner, const exphil_rollout *rollout, exphil_error *error);
/* EXPHIL_E_MISMATCH: the rollout is of another context or configuration. */
exphil_status xph_learner_check_rollout(const exphil_learner *learner, const exphil_rollout *rollout,
                                        exphil_error *error);
/* The same, and EXPHIL_E_STATE: the teacher's state is of another rollout. */
exphil_status xph_learner_check_bound(const exphil_learner *learner, const exphil_rollout *rollout,
                                      exphil_error *error);
/* The teacher's state is of this rollout's chunks, up to the last. */
void xph_learner_bind(exphil_learner *learner, exphil_rollout *rollout);
/* The rollout's session plays what the trainer has now. */
exphil_status xph_learner_adopt(const exphil_learner *learner, exphil_rollout *rollout, exphil_error *error);
/* Advantages and targets of a full chunk, and which rows count. */
void xph_learner_value_chunk(exphil_learner *learner, const exphil_rollout *rollout);

#endif
