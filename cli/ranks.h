/* One command run by several processes together, its ranks. What joins them stands in ranks_engine.h: an MPI that has started
 * them (--mpi), whose libexphil_mpi is loaded when it is asked for, or NCCL, where exphil launch has started them and each has a
 * GPU. One thread. Where a pointer to ranks may be NULL, that is a process alone. */
#ifndef EXPHIL_CLI_RANKS_H
#define EXPHIL_CLI_RANKS_H

#include "commands.h"

#include <exphil/exphil.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ranks ranks;

/* What a run ends with that another rank, or MPI, has failed: EX_TEMPFAIL, with --resume it may be tried again. */
enum { RANKS_FAILED = 75 };

/* What joins ranks (ranks_engine.h). */
typedef struct ranks_engine ranks_engine;
typedef struct ranks_wanted {
    double timeout; /* seconds that one waits for another, as when one reads data and another is done */
    bool tree;      /* sums are ((0 + 1) + (2 + 3)) + ..., for shards */
    machine_options machine;
} ranks_wanted;

/* What joins this process to others; NULL: it is alone. mpi: --mpi. Else the environment says so (rank_place.h); variables that
 * say nothing whole are somebody else's. */
const ranks_engine *ranks_engine_for(bool mpi);

/* Has a launcher started this process, alone or as one of several? */
bool ranks_started(void);

/* All ranks call it. From here on stdout of ranks above 0 leads nowhere, and of what they write on stderr errors alone are shown,
 * behind "exphil: rank 2: " (where the C library has fopencookie; elsewhere all is). False: said why the engine is not there.
 * Does not return where it was there and failed. */
bool ranks_open(const ranks_engine *engine, const ranks_wanted *wanted, ranks **made);

int32_t ranks_rank(const ranks *r);                            /* NULL: 0 */
int32_t ranks_count(const ranks *r);                           /* NULL: 1 */
bool ranks_first(const ranks *r);                              /* rank 0, which writes and tells */
const char *ranks_name(const ranks *r);                        /* of the engine: what lines begin with */
const exphil_communicator *ranks_communicator(const ranks *r); /* of the host's memory */
/* The trainer's communicator, and that sums are over ranks. NULL: nothing is changed. */
void ranks_lend(const ranks *r, exphil_trainer_config *config);

/* Calls of all ranks. The least of their numbers; are all of them fine; and, are all numbers equal: if not, rank 0 says which
 * rank has another `what`. False also where they failed, which ranks_end says. NULL: as they are. */
bool ranks_least(ranks *r, double *number);
bool ranks_all(ranks *r, bool fine);
bool ranks_same(ranks *r, double number, const char *what);
/* FNV-1a, of 52 bits: a number that ranks can compare. before: 0, or the hash of what stands before it. */
double ranks_hash(const void *data, size_t bytes, double before);
/* The first rank that has another number than rank 0; 0: none. False: they failed. */
bool ranks_other(ranks *r, double number, int32_t *other);

/* What this rank takes of its machine where the options leave it open: its share of the processors that it may use, and of the
 * GPUs one. device: room for a name, which machine may point to. */
enum { RANKS_DEVICE = 32 };
void ranks_machine(const ranks *r, machine_options *machine, char device[RANKS_DEVICE]);

/* After a call of all ranks that failed. True: a rank was lost, what joins them can do without, and those that are left are all
 * ranks from now on, in their old order; ranks_communicator is another one, and the call may be made again with it. The first of
 * them is rank 0 now, and speaks as such. False: nothing was done. r may be NULL. */
bool ranks_shrink(ranks *r);
/* Which were lost then: "rank 1", "rank 1, 2", as they were numbered before. */
const char *ranks_lost(const ranks *r);
/* How often rank 0 was lost so far, the same on all ranks. */
int32_t ranks_firsts_lost(const ranks *r);
/* The ranks that are left cannot go on: they end as after a failure. */
void ranks_give_up(ranks *r);

/* From here on all ranks end by what happens to this one, or, false, it may be alone with it. At first it may. */
void ranks_together(ranks *r, bool together);
/* A call of all ranks: they need each other no more. False: it failed, said. */
bool ranks_close(ranks *r);
/* The last call: returns the status with which this process is to end. Before ranks_close all ranks end: those that know by
 * themselves, together; else this one ends the others, and the process, by its status. */
int ranks_end(ranks *r, int status);

/* A checkpoint is whole: rank 0 tells exphil launch, if that has started it. */
void ranks_saved(const ranks *r);

/* From here on stderr is that of this rank, until the end of it (ranks_say.c). */
void ranks_say_begin(int32_t rank);
void ranks_say_end(void);

#endif
