/*
 * libexphil - learn.h: policies that improve on what they were taught.
 * SPDX-License-Identifier: MIT
 *
 * The rules of exphil.h hold. Letters as there; S is the recurrent state of one stream, in reals: floats, or doubles in a
 * model of EXPHIL_TYPE_F64.
 *
 *   1 value          what a policy expects, and what a frame of Melee is worth
 *   2 new weights    for a session that goes on playing
 *   3 own losses     forward, then any loss of the host's, then backward
 *   4 worlds         games that can be stepped
 *   5 rollouts       a session that records what it plays
 *   6 improvement    PPO on what was played, near a teacher
 *
 * From nothing to a policy: exphil_world_create (or a world of the host's own), exphil_model_create with value
 * EXPHIL_VALUE_SHARED, exphil_optimizer_create, exphil_trainer_create without a prefetcher, exphil_rollout_create,
 * exphil_learner_create; then exphil_rollout_run and exphil_learner_update in turn, and at the end exphil_trainer_model.
 * A new model with past actions as inputs repeats the last one nineteen times in twenty, which is a good start for
 * imitation and a poor one for learning from nothing: set exphil_model_config.no_previous_action there.
 * What is drawn follows from the seeds of model, session, rollout and learner: equal seeds give equal bits.
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

/* What a frame of Melee is worth to a player, by what the player and the opponent went through in it:
 *   reward = q(own) - q(opponent)
 *   q = - stock D - damage max(0, percent taken) - follower * (the same two of Nana) - ledge L
 *       - stalling S / 60 + approach * way
 * D: 1 in the first frame of a death (action states 0 to 10). L: 1 in the frame in which the ledge is caught (state 252)
 * while the opponent stands nearer to the middle and can be hit. S: 1 where
 * hypot(max(|x| - edge, 0), max(-y, y - 60, 0)) exceeds stalling_distance. way: units of the frame's own way towards where the
 * opponent was; 0 while somebody dies or returns (states up to 13). Terms and numbers: slippi-ai, reward.py. */
typedef struct exphil_melee_reward_config {
    size_t struct_size;
    double stock;             /* 0 = 1; negative: none */
    double damage;            /* of a percent; 0 = 0.01; negative: none */
    double follower;          /* 0 = 0.5; negative: none */
    double ledge;             /* 0: none */
    double stalling;          /* of a second; 0: none */
    double stalling_distance; /* 0 = 20 */
    double approach;          /* of a unit; 0: none */
} exphil_melee_reward_config;
/* clang-format off */
#define EXPHIL_MELEE_REWARD_CONFIG_INIT { sizeof(exphil_melee_reward_config), 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/* From any thread. before, now: two frames as one player sees them (exphil_session_step, exphil_slp_melee_frame); 0 where
 * they do not follow each other. config may be NULL. Seen by the other player the reward is the same with its sign
 * changed, exactly. EXPHIL_E_INVALID: the frames are of different games or players. EXPHIL_E_NUMERIC: what it is made of is
 * not finite. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_melee_reward(const exphil_melee_reward_config *config,
                                                              const exphil_melee_frame *before,
                                                              const exphil_melee_frame *now, float *reward,
                                                              exphil_error *error);

/* What came of each frame for one player of one game (exphil_episode_info has game and port): rewards [count] of the game's
 * frames first_frame, first_frame + 1, ..., frames being counted as in exphil_dataset_weight, of rows of
 * exphil_dataset_add_rows from 0. A reward answers the action that acts in its frame. over: 1: nothing came after the last of
 * them; 0: the game was cut off, and frames whose return would lack more than a 64th of its weight are not known. From them the
 * library makes the returns of the whole game, G_f = r_f + 0.5^(1/half_life_frames) G_{f+1}, one float a frame, before
 * anything is cut into episodes and chunks; batches of prefetchers that are made afterwards have them in
 * exphil_batch.returns. A later call of the same game and port replaces them. Splits have what the dataset had; corpus files
 * do not have it. EXPHIL_E_INVALID, EXPHIL_E_NUMERIC: name the argument; nothing has changed. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_dataset_rewards_set(exphil_dataset *dataset, uint64_t game,
                                                                     int32_t port, int32_t first_frame,
                                                                     const float *rewards, int64_t count,
                                                                     int32_t over, double half_life_frames,
                                                                     exphil_error *error);

/* Outcome-weighted imitation. The loss of a batch, by rows that count (mask > 0):
 *   imitation * mean of w nll + value * mean of (V - G)^2,    w = min(exp((G - V) / beta), cap), scaled to mean 1
 * (advantage-weighted regression: Peng et al. 2019). Rows whose return is not known have w = 1 and no value. Means are weighted
 * by mask; nll is plain, without smoothing and focal. */
typedef struct exphil_outcome_config {
    size_t struct_size;
    double imitation; /* 0 = 1; negative: only the value is learnt, and the optimizer's decay must be 0 */
    double value;     /* 0 = 0.5 */
    double beta;      /* in units of the rewards; 0: all rows weigh the same */
    double cap;       /* 0 = 5 */
    int64_t warm_up;  /* updates of the trainer in which w is 1, while the value is learnt; 0: none */
    uint64_t seed;    /* of the shuffle */
    int32_t shuffle;  /* 1: a control: the weights of a batch go to rows at random */
    int32_t reserved; /* must be 0 */
} exphil_outcome_config;
/* clang-format off */
#define EXPHIL_OUTCOME_CONFIG_INIT { sizeof(exphil_outcome_config), 0, 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/* What came of an update. */
typedef struct exphil_outcome_metrics {
    size_t struct_size;
    int64_t update, frames; /* as in exphil_metrics */
    int64_t known;          /* rows of the batch whose return is known */
    double loss, nll, value_loss, gradient_norm;
    double unexplained; /* mean (G - V)^2 / variance of G in the batch; 1 where returns are all the same */
    double
        effective; /* (sum of w)^2 / (n sum of w^2): the share of the rows that so many of equal weight would be;
                           below 0.2 few rows say all: beta is too small */
    double clipped; /* share of the known rows at the cap */
} exphil_outcome_metrics;
/* clang-format off */
#define EXPHIL_OUTCOME_METRICS_INIT { sizeof(exphil_outcome_metrics), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/* One update from the trainer's prefetcher by this loss, in the place of exphil_trainer_step; config may be NULL. Model: with a
 * value head. EXPHIL_E_NUMERIC as exphil_trainer_backward: the batch is passed over. After other failures the next call takes
 * the same batch. EXPHIL_E_UNSUPPORTED: as exphil_trainer_forward, a communicator, and decay without imitation. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_trainer_step_outcome(exphil_trainer *trainer,
                                                                      const exphil_outcome_config *config,
                                                                      exphil_outcome_metrics *metrics,
                                                                      exphil_error *error);

/* ---- 2 new weights ------------------------------------------------------------------------------------ */

/* Makes what a session wants of a model beside its weights, so that exphil_session_adopt finds it there. From any
 * thread, once for a model; waits for a GPU. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_model_prepare(const exphil_model *model,
                                                               exphil_error *error);
/* Hot. The steps from here on play the weights of this model, with state, queue and random streams as they are. By the
 * thread that steps. The session keeps two sets of weights, these and those that it played until now; before becomes the
 * model whose place these have taken, for the caller to destroy when there is time, or NULL.
 * Rollback goes on working: a stream that is restored to a frame before the adoption plays the weights of that frame, and
 * meets these again where it met them first, so that its bits are those of a straight run. All streams of a session play the
 * same weights: those of the state that was restored last. A state of weights that are gone goes on with the
 * newest. An adoption while older weights play takes the place of the one that was to come.
 * EXPHIL_E_STATE: the session is not adoptable (exphil_session_config), or the model was not prepared.
 * EXPHIL_E_MISMATCH: another context or configuration (blocks, widths, spec, type, delays). The session is then as it was. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_session_adopt(exphil_session *session,
                                                               const exphil_model *model,
                                                               exphil_model **before);

/* ---- 3 own losses ------------------------------------------------------------------------------------- */

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
 * of the batch is checked, and it must stay as it is until backward or abandon. All arrays that the model has a use for are
 * given; mask is not used but to tell in exphil_metrics.frames how many frames were learnt from; where reset is 1 the
 * state before counts for nothing. All batches of a trainer have the shape of the first.
 * states: NULL: the carried state, as exphil_trainer_step_batch. Else where each lane begins: B blocks of
 * exphil_session_state_save, one after the other, of sessions of this model or of earlier or later weights of it;
 * size_bytes is that of all. They are constants of the loss, and take the place of the carried state. EXPHIL_E_MISMATCH: of a
 * model of another configuration. EXPHIL_E_FORMAT: no state, or one that release 0.1 saved, which does not say of what model.
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
 * metrics may be NULL, its head losses are 0. EXPHIL_E_NUMERIC: a number is not finite, and weights, moments and schedule are
 * as before: of dlogits, dvalues or loss (the message names it), and the carried state is where the batch began, as after abandon;
 * or of the gradient of the weights, and the carried state starts from zero, as after exphil_trainer_step. After EXPHIL_E_IO
 * (communicator) the update may be tried again from forward on. After any status the trainer takes all
 * calls again. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_trainer_backward(exphil_trainer *trainer,
                                                                  const void *dlogits, const void *dvalues,
                                                                  double loss, exphil_metrics *metrics,
                                                                  exphil_error *error);
/* No update after forward: weights and moments are as before it, and the carried state is where the batch began. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_trainer_abandon(exphil_trainer *trainer,
                                                                 exphil_error *error);

/* ---- 4 worlds ----------------------------------------------------------------------------------------- */

/* How an episode stands after a frame. Over: nothing comes any more. Cut off: it would have gone on (a limit of time), so
 * what it leaves still has a value. */
enum { EXPHIL_GOES_ON = 0, EXPHIL_OVER = 1, EXPHIL_CUT_OFF = 2 };

/* A game that can be stepped: anything that fills this struct, which the host may do itself (struct_size =
 * sizeof(exphil_world), every function but save, load and destroy). It plays `lanes` games at once, each with `seats`
 * players; seat s of lane l is stream l * seats + s. Rows and actions are those of spec, the same for all seats; floats and
 * ids are never NULL, also where there are none. Arrays are the caller's, and read and written during the call alone. The
 * functions return 0, or another number that ends the call of the library that asked (EXPHIL_E_IO). A world is played by one
 * call at a time. The library's own watch over that: where two threads are in one lane, the second one's call returns 2; where
 * they are in one world of exphil_world_against, 3. Over a host's world nobody watches. */
typedef struct exphil_world {
    size_t struct_size;
    void *user;
    const exphil_spec *spec;
    int64_t lanes;
    int64_t seats; /* 1..8; one policy plays all of them. Against others: exphil_world_against (match.h) */
    size_t state_bytes; /* of what save writes; 0: games cannot be saved */
    /* A new episode, which is a function of seed alone: floats [seats, F], ids [seats, K] of its first row. */
    int32_t (*reset)(void *user, int64_t lane, uint64_t seed, float *floats, int32_t *ids);
    /* One frame of lanes first .. first + count - 1, of arrays that begin with lane first: actions
     * [count * seats, A] act, then floats and ids are the rows that show what came of it, reward [count * seats], end
     * [count] EXPHIL_GOES_ON, ... A lane that has ended is reset before it is stepped again. Different lanes may be stepped
     * from several threads at once. */
    int32_t (*step)(void *user, int64_t first, int64_t count, const int32_t *actions, float *floats,
                    int32_t *ids, float *reward, uint8_t *end);
    /* The game of a lane as a flat block, and back, on any lane. */
    int32_t (*save)(void *user, int64_t lane, void *state);
    int32_t (*load)(void *user, int64_t lane, const void *state);
    /* Frees user, for exphil_world_destroy; NULL: there is nothing to free. */
    void (*destroy)(void *user);
} exphil_world;

/* The library's own worlds, by name:
 *   "cartpole"        a pole on a cart is kept upright (Barto, Sutton & Anderson 1983): position, speed, angle, angular
 *                     speed; one head of two classes, left and right; 1 a frame; over beyond 2.4 units or 12 degrees, cut off
 *                     after 500 frames
 *   "cartpole-blind"  the same without the two speeds, which a policy must remember
 *   "pong"            the left paddle of examples/pong against the game's own player: ball, its speed, both paddles, pause; one
 *                     head of three classes, still, up, down; 1 for a point, -1 for the other's; over at 21 points, cut off
 *                     after 20,000 frames. Where its 255 random numbers begin, and up to 60 idle frames, follow from the seed
 *   "pong-two"        the same with two seats, each of which sees itself on the left
 * Fills world, which lives until exphil_world_destroy. world->struct_size says how much of it is filled; 0 counts as the size of
 * 0.2.0. EXPHIL_E_INVALID: there is none of this name; lanes is not 1..4096. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_world_create(exphil_context *context, const char *name,
                                                              int64_t lanes, exphil_world *world,
                                                              exphil_error *error);
/* A world in a library of its own, for programs that load such: exphil learn --world FILE.so:ARGUMENTS. The library exports
 * exphil_world_open, a function of this type, which fills world with so many lanes and seats as it is asked for, or refuses: then
 * world is as it was, and the error says why. world->struct_size is what the program has room for: a library that was built with
 * a longer struct refuses with EXPHIL_E_VERSION. arguments is what the user wrote, "" for nothing. Worlds are destroyed
 * before the library is unloaded. */
typedef exphil_status (*exphil_world_open_fn)(const char *arguments, int64_t lanes, int64_t seats,
                                              exphil_world *world, exphil_error *error);
/* Of a world that the library filled, or that has a destroy of its own; it is all zero then. */
EXPHIL_API void exphil_world_destroy(exphil_world *world);

/* ---- 5 rollouts --------------------------------------------------------------------------------------- */

/* A session that plays and records what it does: for every stream and frame the row, past actions, the action that was drawn,
 * its log-probability, the value, the reward and how the episode stands; and the state at the start of a chunk. */
typedef struct exphil_rollout exphil_rollout;

/* Length of a chunk, and which episodes are played. */
typedef struct exphil_rollout_config {
    size_t struct_size;
    int64_t time;  /* T, rows of a chunk; 0 = 64, at most 4096 */
    uint64_t seed; /* of the episodes of a world */
} exphil_rollout_config;
/* clang-format off */
#define EXPHIL_ROLLOUT_CONFIG_INIT { sizeof(exphil_rollout_config), 0, 0 }
/* clang-format on */

/* The session is made here, as exphil_session_create makes it, and belongs to the rollout. Its model has a value head.
 * EXPHIL_E_UNSUPPORTED: actions that are not drawn have no probability, so that a deterministic session or head is
 * refused; so are quantised models, window mode and conditions. config may be NULL. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_rollout_create(const exphil_model *model,
                                                                const exphil_session_config *session,
                                                                const exphil_rollout_config *config,
                                                                exphil_rollout **rollout,
                                                                exphil_error *error);
EXPHIL_API void exphil_rollout_destroy(exphil_rollout *rollout);
/* Its session, for logits, values and latency. Steps, resets and restores of it are refused (EXPHIL_E_STATE), and it must not
 * be destroyed. Other calls of it while the rollout is in a step or a reward are EXPHIL_E_BUSY, and those of the rollout while
 * another thread is in the session: nothing has changed then.
 * A frame whose action was overridden (exphil_session_override, until the next step; of the last frame of a chunk until it is
 * learnt from or saved as a block) is recorded with the action that was put in its place, the policy's own too if that is what it
 * would have done: reinforcement does not learn from it, exphil_learner_config.imitation does. */
EXPHIL_API exphil_session *exphil_rollout_session(exphil_rollout *rollout);
/* Hot. exphil_session_step_row, recorded. EXPHIL_E_STATE: the chunk is full, the frame before has no reward yet, or the rollout
 * plays a world. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_rollout_step(exphil_rollout *rollout, const float *floats,
                                                              const int32_t *ids, int32_t *actions);
/* Hot. What came of the last step: reward [B], end [B]. A stream whose episode ended is reset, so that the next step's row
 * is the first of another. floats [B, F] and ids [B, K]: the rows that show what came of it, also of a stream that was cut
 * off. With a delay they are not read; without one, where a stream is cut off or the chunk becomes full, whose last value
 * they give: the state is as if they had not been looked at. EXPHIL_END: the chunk is full, T rows have their rewards; with
 * a delay of d frames d rows more were played meanwhile, which are not learnt from. EXPHIL_E_NUMERIC: a reward is not
 * finite. After a failure nothing is recorded. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_rollout_reward(exphil_rollout *rollout, const float *reward,
                                                                const uint8_t *end, const float *floats,
                                                                const int32_t *ids);
/* Plays a world until the chunk is full. Streams are lanes * seats. The first call starts its episodes; they go on from chunk
 * to chunk, and so a rollout has one world, whose user and step are the same in every call. EXPHIL_E_STATE: it plays another
 * one, the host has stepped it, or the chunk is full already. The seed of an episode is a function of config.seed, the lane and
 * how many the lane has had. After a world has failed (EXPHIL_E_IO, or a row, reward or end that is none: EXPHIL_E_NUMERIC,
 * EXPHIL_E_INVALID) its games and what is recorded no longer fit together: whatever is asked of the rollout and of a learner
 * with it is EXPHIL_E_STATE, and it is to be destroyed. The learner is as before. EXPHIL_E_NUMERIC of the policy's logits:
 * those games are cut off, and the call may be made again. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_rollout_run(exphil_rollout *rollout,
                                                             const exphil_world *world, exphil_error *error);

/* ---- 6 improvement ------------------------------------------------------------------------------------ */

/* Proximal policy optimisation on what a policy has played, near a teacher if there is one. */
typedef struct exphil_learner exphil_learner;

/* The loss of a row, all terms means over the rows that are learnt from and that the policy decided:
 *   - surrogate * min(r A, clip(r, 1-clip, 1+clip) A) + value * (V - G)^2 + to_old * KL(old || new)
 *   + to_teacher * KL(new || teacher) + from_teacher * KL(teacher || new) - entropy * H(new)
 * r: ratio of the joint probabilities of the action, new to recorded (Schulman et al. 2017); A: generalised advantage
 * (Schulman et al. 2016), G = A + V; KL and entropy at the temperatures of play, sums over heads. And of the rows whose action the
 * host put in the policy's place, a mean over these:
 *   imitation * -log p(action)
 * p: the joint probability at the temperatures of play (aggregated corrections: Ross et al. 2011). With a delay the row is the
 * one in which the policy had decided what was replaced. Rows of burn_in, and those whose action never acts because the
 * episode ends before, are in neither. */
typedef struct exphil_learner_config {
    size_t struct_size;
    double surrogate;        /* 0 = 1; negative: none */
    double clip;             /* 0 = 0.2 */
    double value;            /* 0 = 0.5 */
    double to_old;           /* 0: none */
    double to_teacher;       /* 0: none */
    double from_teacher;     /* 0: none */
    double entropy;          /* 0: none */
    double imitation;        /* of rows whose action the host overrode; 0: none */
    double half_life_frames; /* after which a reward counts half; 0 = 240 */
    double lambda;           /* 0 = 0.95 */
    double most_kl;      /* mean KL(old || new) of a chunk above which its updates are taken back; 0: never */
    double reward_scale; /* 0 = 1 */
    int64_t epochs;      /* passes over a chunk; 0 = 4 */
    int64_t batches; /* updates of a pass: the largest number up to this that divides the streams; 0 = 4 */
    int64_t burn_in; /* first rows of a chunk that only warm up the state; 0: none */
    /* Chunks at the beginning that only the value is learnt from. The policy stays as it is with EXPHIL_VALUE_DETACHED; a shared
     * head's loss moves what they share. Here, and where no other term has a weight, the optimizer's decay must be 0, because
     * it would move all weights: else EXPHIL_E_UNSUPPORTED of exphil_learner_create. */
    int64_t value_only;
    uint64_t seed; /* of the order of streams */
    /* 0: advantages are normalised to mean 0 and deviation 1 over a chunk, but not with a teacher; 1: always;
     * -1: never */
    int32_t normalise;
    int32_t reserved; /* must be 0 */
} exphil_learner_config;
/* clang-format off */
#define EXPHIL_LEARNER_CONFIG_INIT \
    { sizeof(exphil_learner_config), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/* What came of a chunk; means over its rows that were learnt from, of the last epoch where they change. */
typedef struct exphil_learner_metrics {
    size_t struct_size;
    int64_t chunks, updates; /* since the learner was made */
    int64_t rows;            /* learnt from that the policy decided */
    int64_t imitated;        /* rows that the host decided */
    int64_t episodes;        /* that ended in the chunk's frames */
    double episode_return;   /* mean of theirs over all streams, unscaled; 0 without any */
    double episode_frames;   /* mean length */
    double reward;           /* mean of a frame */
    double kl_old, kl_to_teacher, kl_from_teacher, entropy, ratio;
    double clipped; /* share of rows whose surrogate was clipped */
    double nll;     /* mean -log p of what the host did, over the imitated rows; told with imitation 0 too */
    double value_loss; /* mean (V - G)^2 */
    /* mean (G - V)^2 / variance of G, before the updates: 0 perfect, 1 as good as the mean, and where that is 0 */
    double unexplained;
    double loss, gradient_norm;
    /* Largest difference between a log-probability that was recorded and the one that forward computes before the first
     * update: 0 on the CPU with exphil_trainer_config.as_played */
    double recomputed;
    int32_t taken_back; /* 1: most_kl was exceeded, weights are as before the chunk */
    int32_t reserved;
} exphil_learner_metrics;
/* clang-format off */
#define EXPHIL_LEARNER_METRICS_INIT \
    { sizeof(exphil_learner_metrics), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/* trainer: of a model with a value head, by hand (no prefetcher), not used by anybody else meanwhile; it is kept alive.
 * teacher: a model of the same spec, delay and past actions, whose weights stay as they are; NULL: none, and the terms to it
 * must be 0. config may be NULL. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_learner_create(exphil_trainer *trainer,
                                                                const exphil_model *teacher,
                                                                const exphil_learner_config *config,
                                                                exphil_learner **learner,
                                                                exphil_error *error);
EXPHIL_API void exphil_learner_destroy(exphil_learner *learner);
/* Learns from a full chunk, gives the rollout's session the new weights, and makes room for the next chunk. The rollout is made
 * of the trainer's weights (exphil_trainer_model), so that it begins with them. That it learns is seen in reward
 * and, where episodes end, in episode_return; entropy falls slowly, kl_old stays near 0.001 to 0.02.
 * EXPHIL_E_STATE: it is not full, its world has failed, or the learner's teacher follows another rollout: the teacher's state goes
 * on from chunk to chunk, so that a learner with one has one rollout, and all of its chunks. EXPHIL_E_MISMATCH: a model of another
 * configuration; other weights than the trainer's, which is what the rollout has after exphil_rollout_adopt of
 * exphil_trainer_model (rows of other weights are learnt from as blocks, EXPHIL_BLOCK_ANY); another number of streams or rows
 * than before, also of the trainer's own batches. EXPHIL_E_NUMERIC: an
 * update was refused, as exphil_trainer_backward says, or the teacher's logits are not finite, which then begins anew:
 * weights, moments and schedule are as before the chunk, which is done with. After other failures but EXPHIL_E_DEVICE nothing
 * has changed, and the call may be made again (EXPHIL_E_CANCELLED, EXPHIL_E_MEMORY, EXPHIL_E_BUSY). */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_learner_update(exphil_learner *learner,
                                                                exphil_rollout *rollout,
                                                                exphil_learner_metrics *metrics,
                                                                exphil_error *error);

/* Between two chunks: exphil_trainer_save, with all that the next chunk depends on in the same checkpoint: the sessions' states,
 * the teacher's, the games of the world. world: what exphil_rollout_run plays, which has save and load
 * (EXPHIL_E_UNSUPPORTED: it has not); NULL: the host plays, and keeps its own games. EXPHIL_E_STATE: rows of a chunk are
 * recorded already, none has been learnt from yet, the rollout's world has failed, or world or rollout are others than those
 * that were learnt from. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_learner_save(const exphil_learner *learner,
                                                              const exphil_rollout *rollout,
                                                              const exphil_world *world, const char *path,
                                                              exphil_error *error);
/* Needs objects made with the same configuration (EXPHIL_E_MISMATCH names the difference) and a rollout that has recorded
 * nothing; they then go on, bit for bit, as if they had not stopped. exphil_trainer_resume of such a checkpoint takes the
 * trainer alone. Nothing has changed after a failure, but after EXPHIL_E_IO of the world's load, EXPHIL_E_DEVICE and
 * EXPHIL_E_MEMORY: then the trainer is that of the checkpoint, the rollout refuses to run (EXPHIL_E_STATE), and the call
 * may be made again. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_learner_resume(exphil_learner *learner,
                                                                exphil_rollout *rollout,
                                                                const exphil_world *world, const char *path,
                                                                exphil_error *error);

#ifdef __cplusplus
}
#endif
#endif
