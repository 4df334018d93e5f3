/*
 * libexphil - blocks.h: chunks that were played in other processes.
 * SPDX-License-Identifier: MIT
 *
 * The rules of exphil.h hold. Letters as in learn.h: B streams, T rows of a chunk, d frames of delay.
 *
 * Players and a learner in several processes, or on several machines: bots beside emulators, a learner beside a GPU.
 *   player   exphil_rollout_create; then again and again exphil_rollout_run (or step and reward) until the chunk is full,
 *            exphil_rollout_block_save, the block is sent, new weights are waited for (what exphil_model_save wrote:
 *            exphil_model_load, exphil_model_load_memory), exphil_rollout_adopt
 *   learner  exphil_rollout_create with the same arguments, but the streams of all players together, and
 *            exphil_learner_create; then again and again exphil_rollout_block_take for each player's block until it says
 *            EXPHIL_END, exphil_learner_update as of a chunk of its own, exphil_trainer_model, exphil_model_save
 * What is learnt has the bits of what one process would have learnt that played these streams itself, whatever the order in
 * which blocks came. How bytes travel is the host's: examples/apart.c uses a pipe.
 */
#ifndef EXPHIL_BLOCKS_H
#define EXPHIL_BLOCKS_H

#include <exphil/learn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of a block of this rollout; all of its blocks have as many. 0: rollout is NULL. From any thread. */
EXPHIL_API size_t exphil_rollout_block_size(const exphil_rollout *rollout);
/* A full chunk as one flat block, which belongs to the caller and has no pointers: what it was played by (hashes of layout,
 * of the model's configuration and of its weights, delay, temperatures), of every stream the state at its start, rows, past
 * actions, actions, logits, log-probabilities, values, rewards and ends, and a hash over all. Numbers are little-endian; a
 * block is of one release, and another one may refuse it (EXPHIL_E_FORMAT). The rollout is as before: exphil_rollout_adopt
 * begins its next chunk. By the thread that steps.
 * size_bytes: exphil_rollout_block_size, else EXPHIL_E_INVALID. EXPHIL_E_STATE: the chunk is not full, or its world has failed.
 * Frames that the host overrode are marked, so that they are imitated where they are learnt from. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_rollout_block_save(const exphil_rollout *rollout,
                                                                    void *block, size_t size_bytes,
                                                                    exphil_error *error);

/* Which weights may have played a block that is taken. */
enum {
    /* Those that this rollout has: of its creation, or of the last update or adoption. What is learnt is then what one
     * process learns. */
    EXPHIL_BLOCK_CURRENT = 0,
    /* Any of the same configuration, for players that do not wait: ratios, KL to the old policy and advantages go by what
     * played the block, and exphil_learner_metrics.recomputed tells how far that is from the weights now. Old blocks teach
     * little or the wrong: exphil_block_query says whose they are. */
    EXPHIL_BLOCK_ANY = 1
};
/* The streams of a block become streams first_stream, first_stream + 1, ... of this rollout's chunk: which player is which
 * streams is the host's to keep the same from chunk to chunk. Instead of playing: no row of the chunk is recorded, and once
 * a block is taken, steps, rewards, runs and exphil_learner_save are EXPHIL_E_STATE until the chunk is full and learnt from, or
 * given up by exphil_rollout_adopt. The session's own state, episodes and games stay as they are.
 * block: at any address, from anybody: every number in it is checked before anything counts, so that one with a right hash
 * is harmless too. It is read during the call, and may be changed meanwhile by who shares that memory: what was checked is
 * what is taken. weights: EXPHIL_BLOCK_CURRENT or ANY. By the thread that updates.
 * EXPHIL_OK: streams are missing; EXPHIL_END: the chunk is full. After a failure nothing has changed:
 * EXPHIL_E_INVALID: an argument. EXPHIL_E_STATE: rows are recorded, the chunk is full, or one of these streams is there already.
 * EXPHIL_E_FORMAT: no block of this release, damaged, or a number is out of range: the message names field, stream, row and
 * byte. EXPHIL_E_MISMATCH: layout, model, delay, T, a temperature or the weights are others, or there are not so many streams:
 * the message names the first difference. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_rollout_block_take(exphil_rollout *rollout,
                                                                    int64_t first_stream, int32_t weights,
                                                                    const void *block, size_t size_bytes,
                                                                    exphil_error *error);
/* Between two chunks, of one that is full, not begun, or that some blocks have come for: its rows are dropped, the session plays
 * these weights from here on, with its state as it is, and the next chunk begins. model NULL: the weights stay, for players
 * that go on before they have others. By the thread that steps; waits for a GPU. exphil_learner_update does as much for the
 * rollout that it is given.
 * EXPHIL_E_STATE: a chunk is under way. EXPHIL_E_MISMATCH: a model of another context or configuration. Nothing has changed
 * then. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_rollout_adopt(exphil_rollout *rollout,
                                                               const exphil_model *model,
                                                               exphil_error *error);

/* What a block says of itself. */
typedef struct exphil_block_info {
    size_t struct_size;
    int64_t streams, time; /* B, T */
    uint64_t spec_hash;    /* exphil_spec_hash of the layout of its rows */
    uint64_t weights_hash; /* exphil_model_info.weights_hash of the model that played */
    int32_t delay_frames;  /* d */
    int32_t reserved;
} exphil_block_info;
/* clang-format off */
#define EXPHIL_BLOCK_INFO_INIT { sizeof(exphil_block_info), 0, 0, 0, 0, 0, 0 }
/* clang-format on */
/* From any thread. EXPHIL_E_FORMAT: no block of this release, or its hash is not that of its bytes. What it says is not
 * checked otherwise: exphil_rollout_block_take does. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_block_query(const void *block, size_t size_bytes,
                                                             exphil_block_info *info, exphil_error *error);

#ifdef __cplusplus
}
#endif
#endif
