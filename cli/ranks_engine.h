/* What joins the ranks of one command: the table that ranks.c calls, and one file for each that fills it. A group is what an
 * engine has opened. */
#ifndef EXPHIL_CLI_RANKS_ENGINE_H
#define EXPHIL_CLI_RANKS_ENGINE_H

#include "ranks.h"

#include <exphil/ranks.h>

typedef struct ranks_engine {
    const char *name; /* what lines that tell of it begin with, behind "exphil: " */
    /* Before all ranks meet. False: said why it is not there; nothing was begun. */
    bool (*load)(const ranks_wanted *wanted);
    /* By all ranks; waits for them. After a failure the process ends by abort, whose group is NULL. */
    exphil_status (*open)(const ranks_wanted *wanted, void **group, exphil_error *error);
    /* Numbers of the host's memory are added by it: what ranks ask each other. */
    exphil_status (*communicator)(void *group, exphil_communicator *communicator, exphil_error *error);
    /* The same for a trainer, in the memory of its GPU; NULL: it takes the one above. Good until release. */
    const exphil_device_communicator *(*on_device)(void *group);
    /* Place of this rank among those of its machine. */
    exphil_status (*local)(void *group, int32_t *rank, exphil_error *error);
    /* Why the group is broken, ""; valid until release. */
    const char *(*why)(void *group);
    /* NULL: it has no such thing. By all ranks that are left once one was lost: a group of them, in their old order. The old one
     * is of no use then, and its communicator stays as broken as it is. EXPHIL_E_UNSUPPORTED: it is not broken by a loss, or
     * ranks are bound to each other. */
    exphil_status (*shrink)(void *group, void **smaller, exphil_error *error);
    /* Ends all ranks by this status as far as it can, and may return. group may be NULL. */
    void (*abort)(void *group, int status);
    /* By all ranks. A failure: it is broken, or not all came; the group stays. */
    exphil_status (*close)(void *group);
    /* After close, when nothing uses the group any more. NULL: nothing is left. */
    void (*release)(void *group);
} ranks_engine;

extern const ranks_engine ranks_by_mpi; /* libexphil_mpi, for --mpi (ranks_mpi.c) */
extern const ranks_engine ranks_by_gpu; /* NCCL, of what started the processes (ranks_gpu.c) */

/* GPUs that this process sees. local: its place on this machine. */
int64_t ranks_gpus(int32_t local);
/* Where `cuda` or `auto` leaves it open: one of several GPUs by the place on this machine. device: RANKS_DEVICE bytes, which
 * machine may point to. */
void ranks_choose_gpu(int32_t local, machine_options *machine, char *device);

#endif
