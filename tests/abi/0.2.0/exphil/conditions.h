/*
 * libexphil - conditions: what a policy may be told beside the frame.
 * SPDX-License-Identifier: MIT
 *
 * A model declares its conditions (exphil_model_config.conditions): player, rank, style. A dataset has their
 * values by name, training sees them, and a session plays with those it was given. A model with several
 * delays (exphil_model_config.delays) is told its delay in the same way. The rules of exphil.h hold.
 */
#ifndef EXPHIL_CONDITIONS_H
#define EXPHIL_CONDITIONS_H

#include <exphil/exphil.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Gives a condition a value in all episodes of one game (exphil_episode_info.game) that are of one port, or
 * with port 0 in those of its ports that have no value of their own. It holds for episodes that are there and
 * for those that come later; a later call replaces an earlier one. Splits, and prefetchers made afterwards,
 * have what the dataset had when they were made; a corpus file does not have it. Where no call gave a value
 * it is 0: not known.
 * name: 1..31 of [a-z0-9_.], of at most EXPHIL_CONDITIONS_MAX different ones in a dataset. value: 0..65535.
 * port: 0..4. EXPHIL_E_INVALID names what is out of range. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_dataset_condition(exphil_dataset *dataset, const char *name,
                                                                   uint64_t game, int32_t port, int32_t value,
                                                                   exphil_error *error);
/* The same for the episodes [first, first + count) of a dataset, whatever their game: for rows, whose sides of
 * a game have no port. It goes before exphil_dataset_condition. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_dataset_condition_episodes(exphil_dataset *dataset,
                                                                            const char *name, int64_t first,
                                                                            int64_t count, int32_t value,
                                                                            exphil_error *error);

/* What an evaluation goes by. */
typedef struct exphil_evaluation {
    size_t struct_size;
    const exphil_dataset *frequencies; /* as in exphil_evaluate */
    const exphil_head_loss *losses;    /* likewise */
    /* [condition_count] values for all episodes, in the place of the dataset's; NULL: the dataset's. All 0:
     * how well the model does when it is told nothing */
    const int32_t *conditions;
    const int32_t *delay_frames; /* one of the model's delays; NULL: as in exphil_evaluate */
    int64_t condition_count;     /* the model's; 0 without conditions */
    int64_t batch;               /* as in exphil_evaluate */
} exphil_evaluation;
/* clang-format off */
#define EXPHIL_EVALUATION_INIT { sizeof(exphil_evaluation), 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/* exphil_evaluate with more to choose; how may be NULL. EXPHIL_E_INVALID names a value that the model does not
 * have, EXPHIL_E_MISMATCH a delay that is none of its. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_evaluate_as(const exphil_model *model,
                                                             const exphil_dataset *dataset,
                                                             const exphil_evaluation *how,
                                                             exphil_report *report, exphil_error *error);

/* Hot. What a stream (-1: all) plays as from the next step on: values [count], count being the model's
 * condition_count. The recurrent state and the queue stay; in EXPHIL_MODE_WINDOW the frames of the window keep
 * what they were played with. Values are part of exphil_session_state_save and stay over resets. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_session_conditions_set(exphil_session *session,
                                                                        int64_t stream, const int32_t *values,
                                                                        int64_t count);

#ifdef __cplusplus
}
#endif
#endif
