/* `exphil bench ranks`: the ranks of the subject. */
#ifndef EXPHIL_CLI_BENCH_RANKS_H
#define EXPHIL_CLI_BENCH_RANKS_H

#include "ranks.h"

#include "bench.h"

/* With --mpi all ranks meet, for the subject that wants them (is_ranks) only; said why not: false. *all: NULL without. options
 * gets the communicator and, where it is left open, this rank's share of its machine. */
bool bench_ranks_open(bool mpi, bool is_ranks, bench_options *options, ranks **all);

#endif
