/* Which process of several this one is, as what started them says in the environment: exphil launch, torchrun, mpirun or
 * srun. One place for all commands. */
#ifndef EXPHIL_CLI_RANK_PLACE_H
#define EXPHIL_CLI_RANK_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RANK_PLACE_MOST = 65536, RANK_PLACE_WHY = 320 };

#define RANK_PLACE_LAUNCH "exphil launch"

typedef struct rank_place {
    const char
        *family; /* who says it, a constant: RANK_PLACE_LAUNCH, "torchrun", "Open MPI", "MPICH", "SLURM";
                         * NULL: nobody does, and this process is alone (rank 0 of 1, and so on its machine) */
    int32_t rank, ranks; /* 0 to ranks-1; 1 to RANK_PLACE_MOST */
    int32_t local_rank,
        local_ranks; /* the same among those of this machine; local_ranks 0: SLURM does not say */
} rank_place;

/* The value of a variable; NULL: it is not set. getenv is one. */
typedef char *(*rank_place_get)(const char *name);

/* Variables come in families:
 *   exphil launch   EXPHIL_RANK, EXPHIL_RANKS, EXPHIL_LOCAL_RANK, EXPHIL_LOCAL_RANKS
 *   torchrun        RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE
 *   Open MPI        OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE
 *   MPICH           PMI_RANK, PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS
 *   SLURM           SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID; local ranks by SLURM_STEP_TASKS_PER_NODE and SLURM_NODEID
 * The first that is complete counts. Two that contradict each other, one that is not complete and numbers that cannot be are
 * refused: false, why names the variables. PMI_RANK and PMI_SIZE alone, which srun sets too, may stand beside another family.
 * SLURM comes last and contradicts nobody, because what mpirun, torchrun and exphil launch start inside of a job still
 * has the variables of the job; and it counts only beside SLURM_STEP_ID, because a batch script that srun did not start is
 * one process however many tasks the job has. An empty variable is set. why: RANK_PLACE_WHY bytes. */
bool rank_place_find(rank_place_get get, rank_place *place, char *why);

/* The descriptor that this variable names, as EXPHIL_ID_IN; -1: none. */
int rank_place_descriptor(rank_place_get get, const char *name);

/* Takes the variables of all families but SLURM's out of the environment, for children that get a place of their own. */
void rank_place_forget(void);

#endif
