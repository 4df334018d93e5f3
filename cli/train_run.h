/* A training run as `exphil train` asks for it. */
#ifndef EXPHIL_CLI_TRAIN_RUN_H
#define EXPHIL_CLI_TRAIN_RUN_H

#include "commands.h"
#include "conditions.h"
#include "history.h"
#include "verdict.h"

#include <stdio.h>

/* 0 in epochs, updates and batch: chosen by the amount of data. */
typedef struct train_options {
    data_options data;
    machine_options machine;
    const char *bad_batch; /* --keep-bad-batch; NULL: none */
    const char *out, *log, *init, *split, *heads, *mode, *schedule, *blocks, *activations;
    const char *delay, *conditions, *weights; /* NULL: 0; none */
    const char *fake_quantize, *precision;    /* NULL: not; f32 */
    int64_t updates, epochs, seed, batch, time, segment, accumulate, warmup, restart;
    int64_t checkpoint_blocks;
    int64_t alone, log_every, eval_every, save_every, head_width, hidden, window, attention_window, stride,
        shuffle_frames, own_past_ramp;
    double drop_past, own_past, mirror, balance_character, balance_action, balance_change;
    double rate, decay, clip, ema, low_ratio, held_out, smoothing, focal, button_weight, condition_mask;
    int64_t workers, score_frames;
    uint64_t memory_bytes; /* of batches and of games that rows are made of */
    char checkpoint[4096]; /* OUT.optimizer */
    bool json, resume, force, no_previous, recorded_start, last_only, quiet;
    struct {
        int32_t split, heads, mode, schedule, activations, fake_quantize, precision;
        int32_t delays[EXPHIL_DELAYS_MAX];
        int64_t delay_count;
    } chosen;             /* what the words above stand for: EXPHIL_..., read_choices */
    condition_table told; /* of --conditions */
    replay_table weighed; /* of --frame-weights */
    json_t *given;        /* the options that were given, for the notes (notes.h) */
} train_options;

/* Everything a run holds. */
typedef struct train_state {
    const train_options *options;
    exphil_context *context;
    exphil_model *model;
    exphil_dataset *all, *train, *held;
    exphil_dataset *few,
        *few_held; /* games of train and held that are scored in their place; NULL: all are */
    exphil_prefetcher *prefetcher;
    exphil_optimizer *optimizer;
    exphil_trainer *trainer;
    exphil_spec spec;
    exphil_prefetcher_info data;
    exphil_sampling sampling; /* of the prefetcher */
    int64_t skipped;          /* updates that were refused, those of earlier runs of --resume among them */
    bool bad_batch_kept;
    exphil_head_loss losses[EXPHIL_HEADS_MAX];
    float positive[32];
    int64_t updates, done, frames, batch;
    double loss, frames_per_second;
    bool damaged;    /* rows that were needed cannot be read */
    bool rows;       /* all data is one corpus of rows */
    uint64_t memory; /* of the context before the trainer and its batches were made; then: what they took */
    FILE *log;
    history history;
    json_t *notes; /* what does not change of them */
} train_state;

/* Data, model, optimizer and trainer (train_make.c); says why not and returns false. */
bool train_make(train_state *r, int count, char **paths);
/* Do frames weigh other than 1? */
bool train_weighs(const train_options *options);
/* Why a checkpoint is not gone on with, in the words of the options (train_resume.c). */
void explain_resume(const train_options *options, const exphil_error *error);
/* Bytes that the context's objects take now, on host and device. */
uint64_t train_memory(const train_state *r);
/* Notes of the weights (train_notes.c): begin, once data and trainer are there; what is known now goes into what is written
 * from now on; and with the last scores into the weights that are there. Say on stderr what failed. */
void train_notes_begin(train_state *r);
bool train_notes_take(train_state *r);
bool train_notes_finish(train_state *r);
double train_passes(const train_state *r); /* over the data, so far */
/* What came of the run (train_verdict.c); it goes into the notes. False, said on stderr: the examination failed. */
bool train_verdict(train_state *r, const exphil_report *train, const exphil_report *held, int64_t slots,
                   verdict *v);
/* Keeps the batch of an update that was just refused, if that was asked for, once a run; says on stderr where it goes wrong
 * (bad_batch.c). */
void keep_bad_batch(train_state *r, const exphil_error *why);
/* Returns the exit status. */
int train_run(train_options *options, int count, char **paths);

#endif
