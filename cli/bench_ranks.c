/* Ranks for `exphil bench ranks`. See bench_ranks.h. */
#include "bench_ranks.h"
#include "ranks_engine.h"

#include <stdio.h>

/* One rank may be far slower than the first. */
static const ranks_wanted wanted = {.timeout = 600.0};

bool bench_ranks_open(bool mpi, bool is_ranks, bench_options *options, ranks **all)
{
    static char device[RANKS_DEVICE];
    machine_options machine = {.device = options->device, .threads = options->threads};
    *all = NULL;
    if (mpi != is_ranks) {
        fprintf(stderr, mpi ? "exphil: --mpi is for `exphil bench ranks`\n"
                            : "exphil: bench ranks wants --mpi: mpirun -n 2 exphil bench ranks --mpi\n");
        return false;
    }
    if (!mpi) return true;
    if (!ranks_open(&ranks_by_mpi, &wanted, all)) return false;
    if (ranks_count(*all) == 1) {
        fprintf(stderr, "exphil: bench ranks: this is one rank, and wants others: mpirun -n 2 exphil bench "
                        "ranks --mpi\n");
        ranks_together(*all, true);
        return false;
    }
    ranks_machine(*all, &machine, device);
    options->device = machine.device;
    options->threads = machine.threads ? machine.threads : 1;
    options->communicator = ranks_communicator(*all);
    return true;
}
