/* What a run keeps: checkpoint and weights, the best weights, earlier checkpoints, and its log. */
#ifndef EXPHIL_CLI_TRAIN_KEEP_H
#define EXPHIL_CLI_TRAIN_KEEP_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "train_scores.h"

enum { TRAIN_PATH = 4096 };
struct train_options;
struct train_state;

/* ---- names (train_files.c) ------------------------------------------------------------------------------ */

/* OUT.optimizer, OUT.scores, and OUT.best.safetensors before the suffix of OUT; false: too long, said. */
bool keep_names(struct train_options *o);
/* "<OUT without .safetensors>.<update>.safetensors". */
void keep_numbered(const struct train_options *o, int64_t update, char path[TRAIN_PATH]);
/* With --keep: no file with such a name is there but those of this run (said which); with --force none that is read. */
bool keep_numbers_free(const struct train_options *o, const train_scores *own);
/* --resume where no run has left weights or a checkpoint begins from the start, which is said: a loop that always gives it
 * needs no first time. */
void keep_begins(struct train_options *o);
/* What earlier runs left is continued or replaced only on request: may this run begin? */
bool keep_may_begin(const struct train_options *o);

/* ---- saving (train_save.c) ------------------------------------------------------------------------------ */

/* Checkpoint and weights, with what belongs to them: after a kill at any moment the run goes on from this one or the one
 * before. False with a message. */
bool keep_save(struct train_state *r);
/* The same, and these are the best weights. */
bool keep_best(struct train_state *r);
/* Is a checkpoint due, by --save-every or by the clock? */
bool keep_due(const struct train_state *r);
/* After exphil_trainer_resume: takes up what belongs to the checkpoint. */
bool keep_resume(struct train_state *r);
/* Before the run goes on, when nothing can refuse it any more: what a kill kept from being written the checkpoint makes, and
 * what is beyond it goes. */
bool keep_complete(struct train_state *r);

/* ---- scores while it runs (train_watch.c) --------------------------------------------------------------- */

/* How often, and on what. */
bool watch_plan(struct train_state *r);
/* Is a score due at the update that is done? */
bool watch_due(const struct train_state *r);
/* Scores what is held out, notes and logs it, and keeps the weights if they are the best. False with a message, or
 * cancelled. */
bool watch_score(struct train_state *r);
/* Was nothing gained for --patience scores? */
bool watch_over(const struct train_state *r);
/* Which weights are the best, and which file is which. */
void watch_print(const struct train_state *r);
void watch_json(const struct train_state *r, json_t *object);

#endif
