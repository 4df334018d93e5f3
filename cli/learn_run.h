/* A run of `exphil learn`. */
#ifndef EXPHIL_CLI_LEARN_RUN_H
#define EXPHIL_CLI_LEARN_RUN_H

#include "commands.h"
#include "learn_score.h"
#include "log_write.h"
#include "network.h"
#include "options.h"

#include <exphil/match.h>

#include <jansson.h>

enum { LEARN_PATH = 4096, LEAGUE_SLOTS = 4, LEAGUE_MOST = 16, GONE_MOST = 64 };

typedef struct learn_options {
    const char *world, *opponent, *out, *init, *teacher, *blocks, *log, *tensorboard, *preset, *precision;
    machine_options machine;
    int64_t frames, seed, lanes, time, hidden, delay, epochs, batches, repeat, log_every, scores, episodes,
        value_only;
    double rate, half_life, entropy, ratio_clip, to_teacher, most_kl, reward_scale, save_minutes;
    bool json, quiet, force, resume, no_previous, control;
    int32_t how_precise; /* EXPHIL_PRECISION_... */
    network_options network;
    const option_command *command; /* that the options are of */
    json_t *given;                 /* for the notes */
} learn_options;

/* A policy of the run's past, which may be played against. */
typedef struct snapshot {
    int64_t update; /* 0: the start */
    exphil_model *model;
    double played, won; /* against whoever learnt then, of late: each chunk counts 0.9 of the next */
} snapshot;

typedef struct league {
    snapshot of[LEAGUE_MOST];
    int count, in_slot[LEAGUE_SLOTS]; /* which of them plays */
    int64_t gone[GONE_MOST];          /* updates of snapshots that only the last checkpoint still wants */
    int gone_count;
} league;

typedef struct learn_run {
    const learn_options *o;
    exphil_context *context;
    /* as the name says; with held actions; with opponents; with rewards of others. all zero: none */
    exphil_world base, repeated, against, control;
    const exphil_world *world; /* the one that is played */
    exphil_model *model, *start, *teacher;
    exphil_optimizer *optimizer;
    exphil_trainer *trainer;
    exphil_rollout *rollout;
    exphil_learner *learner;
    exphil_learner_metrics last;
    int64_t played, each, chunks, all_chunks;  /* frames: so far; of a chunk */
    int64_t learning_ns, saved_ns, resumed_at; /* so far; when; frames */
    double episodes, returns;                  /* of the frames that progress has not told yet */
    double recent;                             /* what they were before, in the mean of ten or more */
    bool has_recent;                           /* episodes have ended */
    bool new_value;                            /* the weights of --init had no value head */
    int refused;                               /* chunks with numbers that are not finite */
    league league;
    learn_score_line score, best; /* the last; the best so far. update -1: none yet */
    exphil_model *best_model;     /* NULL: the start */
    json_t *scores;
    log_writer log;
    char start_hash[20], teacher_hash[20]; /* of the weights of --init and --teacher; "": none */
    char checkpoint[LEARN_PATH], best_weights[LEARN_PATH];
} learn_run;

/* Is this a name of --world, and one of --opponent that goes with it? Says why not. */
bool learn_world_known(const learn_options *o);
/* Whether two policies sit in it. */
bool learn_world_of_two(const learn_options *o);
/* The world that is played, and what is behind it (learn_world.c). r->start is there. */
bool learn_world_make(learn_run *r);
void learn_world_free(learn_run *r);
/* The world of that name, with so many lanes, for scores: with actions held as in the run. */
bool learn_world_fresh(const learn_run *r, int64_t lanes, exphil_world *base, exphil_world *world);

/* League (learn_league.c): after a chunk, what came of the games; now and then a snapshot, and other opponents. */
bool league_begin(learn_run *r);
bool league_after(learn_run *r);
void league_saved(learn_run *r); /* files that no checkpoint wants any more go */
json_t *league_json(const learn_run *r);
bool league_read(learn_run *r, const json_t *notes);
void league_free(learn_run *r);

/* The run, for a process; returns the exit status (learn_run.c). */
int learn_run_all(learn_run *r);

/* Keeping (learn_keep.c). */
bool learn_names(learn_run *r);
bool learn_may_begin(learn_run *r, const char *out);
bool learn_open_log(learn_run *r);
void learn_log_chunk(learn_run *r, double frames_per_second);
bool learn_save(learn_run *r);
bool learn_can_save(const learn_run *r); /* its world can: there is a checkpoint */
bool learn_resume(learn_run *r);
/* A score, where one is due; the best weights are kept. */
bool learn_watch(learn_run *r);

#endif
