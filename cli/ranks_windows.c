/* Ranks where the program has none, on Windows: this process is alone, and --mpi is refused. See ranks.h. */
#include "ranks_engine.h"

#include <stdio.h>

const ranks_engine ranks_by_mpi = {.name = "--mpi"};

const ranks_engine *ranks_engine_for(bool mpi)
{
    return mpi ? &ranks_by_mpi : NULL;
}

bool ranks_started(void)
{
    return false;
}

bool ranks_open(const ranks_engine *engine, const ranks_wanted *wanted, ranks **made)
{
    (void)wanted;
    *made = NULL;
    fprintf(stderr, "exphil: %s: on Windows this program trains in one process; ranks need Linux\n",
            engine->name);
    return false;
}

int32_t ranks_rank(const ranks *r)
{
    (void)r;
    return 0;
}

int32_t ranks_count(const ranks *r)
{
    (void)r;
    return 1;
}

bool ranks_first(const ranks *r)
{
    (void)r;
    return true;
}

const char *ranks_name(const ranks *r)
{
    (void)r;
    return "";
}

const exphil_communicator *ranks_communicator(const ranks *r)
{
    (void)r;
    return NULL;
}

void ranks_lend(const ranks *r, exphil_trainer_config *config)
{
    (void)r, (void)config;
}

bool ranks_least(ranks *r, double *number)
{
    (void)r, (void)number;
    return true;
}

bool ranks_all(ranks *r, bool fine)
{
    (void)r;
    return fine;
}

bool ranks_same(ranks *r, double number, const char *what)
{
    (void)r, (void)number, (void)what;
    return true;
}

double ranks_hash(const void *data, size_t bytes, double before)
{
    (void)data, (void)bytes;
    return before;
}

bool ranks_other(ranks *r, double number, int32_t *other)
{
    (void)r, (void)number;
    *other = 0;
    return true;
}

void ranks_machine(const ranks *r, machine_options *machine, char device[RANKS_DEVICE])
{
    (void)r, (void)machine, (void)device;
}

bool ranks_shrink(ranks *r)
{
    (void)r;
    return false;
}

const char *ranks_lost(const ranks *r)
{
    (void)r;
    return "";
}

int32_t ranks_firsts_lost(const ranks *r)
{
    (void)r;
    return 0;
}

void ranks_give_up(ranks *r)
{
    (void)r;
}

void ranks_together(ranks *r, bool together)
{
    (void)r, (void)together;
}

bool ranks_close(ranks *r)
{
    (void)r;
    return true;
}

int ranks_end(ranks *r, int status)
{
    (void)r;
    return status;
}

void ranks_saved(const ranks *r)
{
    (void)r;
}
