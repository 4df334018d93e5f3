/* A training run as `exphil train` asks for it. */
#ifndef EXPHIL_CLI_TRAIN_RUN_H
#define EXPHIL_CLI_TRAIN_RUN_H

#include "commands.h"
#include "conditions.h"
#include "history.h"
#include "log_write.h"
#include "network.h"
#include "options.h"
#include "ranks.h"
#include "train_keep.h"
#include "train_outcome.h"
#include "verdict.h"

#include <exphil/ranks.h>

#include <stdio.h>

enum { TRAIN_BATCH_AUTO = -1 };            /* --batch auto */
enum { TRAIN_MIRROR_WHERE_THERE_IS = -1 }; /* nobody gave --mirror */

/* 0 in epochs, updates and batch: chosen by the amount of data. */
typedef struct train_options {
    data_options data;
    machine_options machine;
    const char *bad_batch; /* --keep-bad-batch; NULL: none */
    const char *out, *log, *init, *split, *heads, *mode, *schedule, *blocks, *activations;
    const char *delay, *conditions, *weights; /* NULL: 0; none */
    const char *fake_quantize, *precision;    /* NULL: not; f32 */
    int64_t updates, epochs, most_updates, seed, batch, time, segment, accumulate, warmup, restart;
    int64_t checkpoint_blocks, shards;
    int64_t alone, log_every, eval_every, save_every, head_width, hidden, window, attention_window, stride,
        shuffle_frames, own_past_ramp;
    double drop_past, own_past, mirror, balance_character, balance_action, balance_change;
    double rate, decay, clip, ema, low_ratio, held_out, smoothing, focal, button_weight, condition_mask;
    int64_t workers, score_frames;
    uint64_t memory_bytes;  /* of batches and of games that rows are made of */
    const char *best;       /* a name of score_names; NULL: nll */
    int64_t patience, keep; /* 0: never; only the newest */
    double least_gain, save_minutes;
    bool updates_given;                                                        /* --updates or --epochs */
    char checkpoint[TRAIN_PATH], scores[TRAIN_PATH], best_weights[TRAIN_PATH]; /* keep_names */
    char record[TRAIN_PATH]; /* OUT.run.json: the options of this run, for --config */
    const char *config, *preset, *tensorboard;
    const option_command *command; /* that the options are of */
    bool silent;                   /* --quiet was given; quiet: or this rank does not speak */
    bool json, resume, force, no_previous, recorded_start, last_only, quiet;
    bool mpi;
    double ranks_timeout; /* seconds */
    ranks *ranks;         /* of --mpi; NULL: this process is alone */
    bool began;           /* --resume was asked for, and there was nothing to go on from: resume is false */
    struct {
        int32_t split, heads, mode, schedule, activations, fake_quantize, precision, best;
        int32_t delays[EXPHIL_DELAYS_MAX];
        int64_t delay_count;
    } chosen; /* what the words above stand for: EXPHIL_..., read_choices */
    network_options network;
    outcome_options outcome;
    condition_table told; /* of --conditions */
    replay_table weighed; /* of --frame-weights */
    json_t *given;        /* the options that were given, for the notes (notes.h) */
} train_options;

/* Everything a run holds. */
typedef struct train_state {
    train_options *options; /* only quiet changes, where a rank becomes the first */
    data_options loading;   /* those of options, with the threads of this rank */
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
    int64_t planned_before;   /* updates, by the run that --resume goes on with; 0: not known */
    bool bad_batch_kept;
    int64_t updates, done, frames, batch;
    double mirror; /* part of the games that are shown mirrored */
    double loss, frames_per_second;
    exphil_outcome_metrics outcome;       /* of the last update, with --value */
    double unexplained;                   /* of late, for the line of progress; 0: not known */
    bool damaged;                         /* rows that were needed cannot be read */
    bool stopped;                         /* by a signal, and saved */
    bool stopping;                        /* of ranks: a signal to one of them was told to all */
    bool rows;                            /* all data is one corpus of rows */
    uint64_t planned;                     /* bytes that the run takes at most, beside data and model */
    int64_t measured_frames, measured_ns; /* of the first updates (train_estimate) */
    uint64_t memory; /* of the context before the trainer and its batches were made; then: what they took */
    log_writer log;
    train_scores scores;
    exphil_dataset
        *watch; /* the end of each game that is held out, scored while the run goes on; NULL: all of it is */
    int64_t every;             /* updates between scores; 0: one at the end */
    exphil_report held_report; /* of the last score; frames 0: there is none */
    char words[96];            /* of the last score, for the line of progress */
    int64_t saved, saved_ns;   /* update of the last save of this process, 0: none; when, or when it began */
    progress bar;
    bool running; /* the loop has begun: ranks that are lost may be done without (train_lost.c) */
    history history;
    json_t *notes; /* what does not change of them */
} train_state;

/* Losses of all heads, and what they point to. */
typedef struct train_losses {
    exphil_head_loss head[EXPHIL_HEADS_MAX];
    float positive[32];
} train_losses;

/* What the options ask of optimizer, trainer and batches; sampling has no batch yet (train_make.c). */
void train_optimizer_config(const train_state *r, exphil_optimizer_config *config);
void train_trainer_config(const train_state *r, train_losses *losses, exphil_trainer_config *config);
bool train_sampling(const train_state *r, exphil_sampling *sampling, exphil_error *error);
/* The joint batch, and of it the lanes of this rank; false: said that there are too few. */
bool train_lanes(const train_state *r, int64_t batch, exphil_sampling *sampling);
void train_drop(train_state *r); /* trainer, optimizer and prefetcher */

/* Chooses r->batch by the memory that is free; full: sequences that the data fill (train_plan.c). */
bool train_auto_batch(train_state *r, int64_t full);
/* Warns of a run that will not fit, and notes what it takes. */
void train_check_memory(train_state *r);
/* After EXPHIL_E_MEMORY: drops the run and says which batch fits. Returns false. */
bool train_advise_memory(train_state *r);
/* After each update: once the first few are measured, how long all will take. Only told, never acted on. */
void train_estimate(train_state *r, const exphil_metrics *m, const progress *bar);

/* Data, model, optimizer and trainer (train_make.c); says why not and returns false. */
bool train_make(train_state *r, int count, char **paths);
/* Scores the weights that are saved. False: said why not; *status is why. */
bool evaluate(train_state *r, const exphil_dataset *data, const exphil_dataset *frequencies,
              exphil_report *report, exphil_status *status);
void log_report(train_state *r, const char *kind, const exphil_report *report);
/* What to do about rows that cannot be read. */
void train_advise_damage(const train_state *r);
/* Scores, verdict and tables of a run that has come to its end. */
bool train_finish(train_state *r);
/* Do frames weigh other than 1? */
bool train_weighs(const train_options *options);
/* With --resume goes on from the checkpoint (train_resume.c); says why not, in the words of the options. */
bool train_resume(train_state *r);
/* Bytes that the context's objects take now, on host and device. */
uint64_t train_memory(const train_state *r);
/* Writes OUT.run.json; says why not and returns false. A run that has ended and is only scored again keeps the one that it
 * has. */
bool train_record(const train_state *r, int count, char **paths, bool over);
/* With --resume: --log and --tensorboard that are not given are those of the record, if it names any (said). */
bool train_take_up(train_options *o);
/* Says from which checkpoint the run goes on. */
void train_say_resumed(const train_state *r);
/* Notes of the weights (train_notes.c): begin, once data and trainer are there and the checkpoint is read; what is known now
 * goes into what is written from now on; and with the last scores into the weights that are there. Say on stderr what
 * failed. */
bool train_notes_begin(train_state *r);
bool train_notes_take(train_state *r);
bool train_notes_finish(train_state *r);
double train_passes(const train_state *r); /* over the data, so far */
/* What came of the run (train_verdict.c); it goes into the notes and the log. False, said on stderr: the
 * examination failed. */
bool train_verdict(train_state *r, const exphil_report *train, const exphil_report *held,
                   const exphil_model_info *policy, verdict *v);
/* Keeps the batch of an update that was just refused, if that was asked for, once a run; says on stderr where it goes wrong
 * (bad_batch.c). */
void keep_bad_batch(train_state *r, const exphil_error *why);
/* Of several ranks (train_ranks.c). Is this rank 0, which alone writes? */
bool train_first(const train_state *r);
/* Was a stop asked for: of ranks, one that all know of? */
bool train_stopping(const train_state *r);
/* A call of all ranks: have they the same options? False: rank 0 said which one is another on which rank, or they failed. NULL: one
 * rank. */
bool train_options_same(ranks *all, const option_command *command);
/* A call of all ranks. fine: this one can go on. True: all can. A signal that one of them got all know of then. any, if it is not
 * NULL, becomes true where it is on any of them. A process alone: fine. */
bool train_agree(train_state *r, bool fine, bool *any);
/* After a call of all ranks that failed: was a rank lost, and can the others go on (train_lost.c)? Then they are all ranks from
 * now on, with its lanes, and make the call again. False: not, said why where that is not what the call says. */
bool train_mend(train_state *r, const exphil_error *error);
/* After a call of all ranks that failed: may others be elsewhere than this one? Then it ends them. */
bool train_apart(const train_state *r, const exphil_error *error);
/* Returns the exit status. */
int train_run(train_options *options, int count, char **paths);

#endif
