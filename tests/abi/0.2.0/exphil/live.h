/*
 * libexphil - live.h: a policy that learns behind the game that it plays.
 * SPDX-License-Identifier: MIT
 *
 * The rules of exphil.h hold. Letters as there; d is the delay of the model.
 *
 * The game runs at 60 frames a second, and so do the calls marked "hot": they put what happens into a ring and go on. A thread
 * of the library's own trains beside the game, on a context of its own, and the policy gets its new weights between two frames
 * (exphil_session_adopt).
 *
 *   EXPHIL_LIVE_IMITATE    Who the game listens to changes: now the policy, now a person who takes over where it does badly.
 *                          What the person does is learnt from, together with the data that the policy was taught by before
 *                          (DAgger: Ross et al. 2011; a person who decides when: Kelly et al. 2019; both kinds of data in equal
 *                          shares: Mandlekar et al. 2020).
 *   EXPHIL_LIVE_REINFORCE  The host says what came of each frame, and chunks of play are learnt from by PPO (learn.h).
 *
 * A frame of the host, at 60 Hz:
 *   exphil_live_step_row(live, row, person plays ? what the person presses : NULL, actions), press actions
 *   when an episode ends (imitation), or once a frame (reinforcement): exphil_live_reward
 */
#ifndef EXPHIL_LIVE_H
#define EXPHIL_LIVE_H

#include <exphil/learn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A session that plays one stream, and what learns behind it. */
typedef struct exphil_live exphil_live;

/* From what is learnt. */
enum { EXPHIL_LIVE_IMITATE = 0, EXPHIL_LIVE_REINFORCE = 1 };

/* How it plays and learns. What is pointed to is read at creation only. Fields of the other way are refused. */
typedef struct exphil_live_config {
    size_t struct_size;
    /* streams 0 or 1, deliver EXPHIL_DELIVER_DUE; it is made adoptable; NULL: all defaults */
    const exphil_session_config *session;
    /* Of what learns. Its hooks are called from the thread; its cancel is not used. NULL: the CPU, one thread, allocator, files
     * and instruction set of the model's context, no log */
    const exphil_context_config *context;
    const exphil_optimizer_config *optimizer; /* NULL: all defaults */
    /* Without accumulate and communicator; NULL: all defaults. For reinforcement as_played is set */
    const exphil_trainer_config *trainer;
    /* Imitation: how batches are made, without in_order, seed, conditions and delays. What follows from the model may be 0;
     * batch 0 = 16 lanes, time 0 = 60. Balance is of dataset alone. NULL: all defaults */
    const exphil_sampling *sampling;
    /* Imitation: what the policy was taught by before, of the model's spec. What is added later is not seen. NULL: none */
    const exphil_dataset *dataset;
    const exphil_learner_config *learner; /* reinforcement: the loss; NULL: all defaults */
    const exphil_model *teacher;          /* reinforcement: a frozen one, on any context; NULL: none */
    /* Imitation with dataset: the share of what was played here in each batch, of its lanes, to the nearest whole one, and of the
     * weight in its loss; 0 = 0.5, below 1 */
    double share;
    /* Imitation: what a frame weighs in which the person let the policy play, beside 1 of a frame of the person's, 0..1:
     * what was not corrected was right enough. 0: such frames only lead up to others */
    double approved;
    /* Imitation: frames after which they are learnt from, fewer where an episode ends; 0 = 120, at most 100000. Before a piece
     * stand the rows of the last one that lead up to it: up to 60 for a model with a memory. Pieces are kept as long as live */
    int64_t piece_frames;
    int64_t updates; /* imitation: of a piece in which the person played (or, with approved, any); 0 = 32 */
    int64_t time;    /* reinforcement: rows of a chunk; 0 = 256, at most 4096 */
    /* Frames that may wait to be learnt from; 0 = 3600, at most 1000000. Reinforcement: chunks, 0 = 4, at most 1024 */
    int64_t ring_frames;
    /* Imitation: so many of the latest frames may be taken back, by a state of the session that is restored: they are learnt
     * from when they no longer can. Farther back, what was learnt stays. 0: states cannot be restored; at most 600 */
    int64_t rollback_frames;
    /* Where the thread saves by itself, as exphil_live_save does, whole pieces alone; NULL: nowhere. So a host that crashes loses
     * little, and a game never waits for a disk */
    const char *path;
    int64_t save_pieces; /* after so many pieces, or chunks, again; 0 = 16 */
    uint64_t seed;       /* of the order in which is learnt */
    int32_t way;         /* EXPHIL_LIVE_... */
    /* 1: new weights enter in exphil_live_settle alone, so that what is played and learnt is a function of what was given and
     * of where that was called, to the last bit, as long as nothing is dropped. 0: as soon as they are there */
    int32_t paced;
} exphil_live_config;
/* clang-format off */
#define EXPHIL_LIVE_CONFIG_INIT \
    { sizeof(exphil_live_config), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/* model: plays first, and is the start of what is learnt; not quantised, without conditions and of one delay. config may be NULL.
 * Makes the session, a second context with trainer and data, and starts the thread: of no real-time policy and of a low priority,
 * where the system has these, on the processors of the calling thread. Reinforcement: as exphil_rollout_create and
 * exphil_learner_create; imitation: EXPHIL_E_MISMATCH where dataset or sampling are not the model's. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_live_create(const exphil_model *model,
                                                             const exphil_live_config *config,
                                                             exphil_live **live, exphil_error *error);
/* Ends the thread, within an update, and frees all. What was not saved is lost. In a forked child it frees nothing. */
EXPHIL_API void exphil_live_destroy(exphil_live *live);
/* Its session, for logits, values, latency and why a hot call failed (exphil_session_error); for states to be saved, and with
 * rollback_frames restored. All else that would move it is refused (EXPHIL_E_STATE), and it must not be destroyed. */
EXPHIL_API exphil_session *exphil_live_session(exphil_live *live);

/* Hot. A frame: floats [F] and ids [K] in, actions [A] out, what is to be pressed in this frame. person NULL: the policy plays, as
 * exphil_session_step_row. Else [A], what a person presses: it is given back in actions and is what acted; the policy's own
 * decision counts for nothing, and of its past actions the one of this frame is the person's. First it takes new weights,
 * if there are any. EXPHIL_E_INVALID, EXPHIL_E_NUMERIC: a value is none; nothing has moved. Weights that overflow are
 * EXPHIL_E_NUMERIC as in exphil_session_step_row, with a person too: the stream is reset, and the frame is not recorded. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_live_step_row(exphil_live *live, const float *floats,
                                                               const int32_t *ids, const int32_t *person,
                                                               int32_t *actions);
/* Hot. The same of Melee: one frame in, one controller out. person is learnt from as the codec expresses it, and given back as
 * it is. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_live_step(exphil_live *live, const exphil_melee_frame *frame,
                                                           const exphil_pad *person, exphil_pad *pad);
/* Hot. What came of the last step: end, EXPHIL_GOES_ON or what ended its episode; the next step's row is then the first of
 * another. Imitation: to be called where an episode ends; reward, floats and ids are not read. Reinforcement: after every step,
 * as exphil_rollout_reward, with the row that shows what came of it (with a delay floats and ids may be NULL). When its chunk
 * is full it goes to the thread, and the next one begins, with new weights if there are any; while ring_frames
 * chunks wait, it is dropped and counted. Chunks were played by weights that may be some chunks old: ratios and KL are to
 * these (EXPHIL_BLOCK_ANY). */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_live_reward(exphil_live *live, float reward, uint8_t end,
                                                             const float *floats, const int32_t *ids);

/* What was played and learnt so far. */
typedef struct exphil_live_info {
    size_t struct_size;
    int64_t frames;     /* steps, those that were taken back too */
    int64_t person;     /* of them, in which the person played */
    int64_t dropped;    /* frames that the ring had no room for: learning was too slow */
    int64_t taken_back; /* frames that a restored state took back */
    int64_t pieces;     /* pieces, or chunks, that were learnt from */
    int64_t learnt;     /* frames of the person in them; reinforcement: rows, since creation */
    int64_t updates;    /* of the weights */
    int64_t adopted;    /* times that the session took new weights */
    double loss;        /* mean of the last piece's updates; reinforcement: exphil_learner_metrics.loss */
    double reward;      /* reinforcement: mean of a frame of the last chunk */
    int64_t skipped;    /* updates that were refused because of NaN or infinity */
    int64_t saved;      /* times that the thread saved by itself */
    /* What ended learning, else EXPHIL_OK: nothing is learnt any more, while play goes on */
    exphil_status failed;
    exphil_status unsaved; /* what the thread's last save came to; it tries again */
    char message[240];     /* of failed, else of unsaved */
} exphil_live_info;
/* clang-format off */
#define EXPHIL_LIVE_INFO_INIT { sizeof(exphil_live_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, { 0 } }
/* clang-format on */
/* From any thread, also during a step. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_live_query(const exphil_live *live, exphil_live_info *info,
                                                            exphil_error *error);

/* By the thread that steps; not hot. Waits until all that was given is learnt from, also a piece that is not full and frames that
 * could still be taken back, and gives the session the newest weights (reinforcement: between two chunks; while one is under
 * way, when it ends). Returns what ended learning, if it has ended. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_live_settle(exphil_live *live, exphil_error *error);
/* The newest weights, on the context of the model that it was made of; before the first update that model itself. The caller has a
 * reference: exphil_model_destroy. From any thread; does not wait. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_live_model(exphil_live *live, exphil_model **model,
                                                            exphil_error *error);
/* exphil_trainer_save: the weights in path, and in path + ".optimizer" all that learning goes on from, all pieces among it. By the
 * thread that steps, which first waits as in exphil_live_settle; what it plays next is another piece, to which nothing leads up.
 * dataset is not in it. The game, and the state of the session, are the host's. Reinforcement: EXPHIL_E_STATE where no chunk has
 * been learnt from. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_live_save(exphil_live *live, const char *path,
                                                           exphil_error *error);
/* Before the first step: goes on from there, and the session plays those weights. Needs the same model and configuration
 * (EXPHIL_E_MISMATCH names the difference). dataset may be another one: its rows then come in an order of their own, else where
 * they were. Damage is EXPHIL_E_FORMAT. Nothing has changed after a failure. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_live_resume(exphil_live *live, const char *path,
                                                             exphil_error *error);

#ifdef __cplusplus
}
#endif
#endif
