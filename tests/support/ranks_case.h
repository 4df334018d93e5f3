/* Runs of training by ranks that are threads: the plan of one rank, made for each of them with its lanes and communicator. */
#ifndef EXPHIL_RANKS_CASE_H
#define EXPHIL_RANKS_CASE_H

#include "thread_ranks.h"
#include "train_case.h"

/* What all ranks do, and what each of them came to. */
typedef struct ranks_case {
    train_plan plan;
    int32_t ranks;       /* 0: one trainer without a communicator */
    int64_t updates;     /* of this run */
    const char *resumed; /* resumes there first, on rank 0: path of no meaning on the others */
    const char *saved;   /* saves there at last */
    thread_how how;
    int64_t again;                           /* failed calls of step that are made again, at most */
    exphil_status status[THREAD_RANKS_MOST]; /* the first failure */
    exphil_error error[THREAD_RANKS_MOST];   /* and what it said */
    exphil_metrics metrics[THREAD_RANKS_MOST];
    void *weights[THREAD_RANKS_MOST]; /* at the end; ranks_case_free */
    size_t weights_bytes;
    int64_t epoch[THREAD_RANKS_MOST], index[THREAD_RANKS_MOST];
    int64_t calls; /* of all_reduce, on rank 0 */
} ranks_case;

/* The plan of rank r: its lanes and communicator (whose memory is the rank's). */
train_plan ranks_case_plan(const train_plan *plan, thread_rank *rank);
void ranks_case_run(ranks_case *c);
void ranks_case_free(ranks_case *c);
/* All ranks ended well, with equal weights, metrics and places. */
void ranks_case_agree(const ranks_case *c);
/* What a rank says of another's failure: these words, and what that one says itself. */
void ranks_case_heard(const exphil_error *heard, const char *words, const exphil_error *own);
/* Distance of the weights of two runs: the norm of the difference, by that of the second. */
double ranks_case_distance(const ranks_case *a, const ranks_case *b);

#endif
