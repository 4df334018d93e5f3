/*
 * libexphil_mpi - training on several ranks of an MPI, as exphil.h describes it (exphil_communicator).
 * SPDX-License-Identifier: MIT
 *
 * A library of its own, compiled with the MPI that the host uses: MPIs differ in their binary interface. The rules at the
 * top of exphil.h hold, with these differences:
 *
 *   Threads     An exphil_mpi belongs to one thread at a time, which is not checked. Where MPI was initialised with
 *               MPI_THREAD_FUNNELED this is the thread that initialised MPI, which is checked.
 *   Host        exphil_mpi_open_world initialises MPI and exphil_mpi_close then finalises it; exphil_mpi_abort ends the
 *               process. While a call waits, errors of MPI_COMM_WORLD and MPI_COMM_SELF are returned; then their
 *               handlers are the host's again. Nothing else touches what belongs to the process.
 *   Collective  Where a declaration says so, all ranks call the function, with equal settings. Other functions are local.
 *   Failure     No call waits longer than it says for another rank, whatever became of that rank. Once a call has failed
 *               for such a reason the object is broken: each later reduction fails at once, and its memory is never
 *               freed, because MPI may still write there.
 *
 * A program that has no mpi.h, because it finds this library when it runs (dlopen), defines EXPHIL_MPI_WITHOUT_MPI_H
 * first: it has all but exphil_mpi_open.
 */
#ifndef EXPHIL_MPI_H
#define EXPHIL_MPI_H

#include <exphil/exphil.h>
#ifndef EXPHIL_MPI_WITHOUT_MPI_H
#  include <mpi.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* A communicator of MPI's own, with the memory that reductions need: 2 MiB, or 9 KiB a rank where that is more. */
typedef struct exphil_mpi exphil_mpi;

/* How long reductions wait, and in which order they add. All ranks have the same. */
typedef struct exphil_mpi_config {
    size_t struct_size;
    int64_t timeout_ms; /* of a reduction, from its call, 1..2^31-1; 0 = 30000 */
    /* of exphil_mpi_open, and of the first reduction, before which ranks may read data for long; 1..2^31-1; 0 = 600000 */
    int64_t start_ms;
    /* 0: in rank order, ((0+1)+2)+3. 1: as a binary tree, (0+1)+(2+3): rank k with k+1 if 2 divides k, their sum with that
     * of k+2 if 4 divides k, and so on */
    int32_t tree;
} exphil_mpi_config;
/* clang-format off */
#define EXPHIL_MPI_CONFIG_INIT { sizeof(exphil_mpi_config), 0, 0, 0 }
/* clang-format on */

/* Why a reduction failed: what all_reduce returns, and exphil_error.native_code has. Positive: a class of error of MPI. */
enum {
    EXPHIL_MPI_TIMED_OUT = -1, /* a rank did not come, or did not go on, within the time */
    EXPHIL_MPI_ELSEWHERE = -2, /* it failed on another rank (fault-tolerant MPI only) */
    EXPHIL_MPI_UNEQUAL =
        -3, /* ranks reduce other counts or types, in another order, or one is a call behind */
    EXPHIL_MPI_MISUSED = -4, /* data, count or type are wrong, MPI is finalised, or it is the wrong thread */
    EXPHIL_MPI_NO_MEMORY = -5
};

#ifndef EXPHIL_MPI_WITHOUT_MPI_H
/* Collective over comm, an intracommunicator, which is duplicated and stays the caller's. Its errors in later calls are
 * returned, whatever the handler of comm. config may be NULL.
 *   EXPHIL_E_INVALID  mpi is NULL, comm is MPI_COMM_NULL or an intercommunicator, a field of config is out of range
 *   EXPHIL_E_STATE    MPI is not initialised, or finalised; MPI_THREAD_SINGLE; MPI_THREAD_FUNNELED and another thread
 *   EXPHIL_E_IO       not all ranks came within start_ms, or MPI failed
 *   EXPHIL_E_MISMATCH the ranks' configs differ
 *   EXPHIL_E_MEMORY   no memory */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_mpi_open(MPI_Comm comm, const exphil_mpi_config *config,
                                                          exphil_mpi **mpi, exphil_error *error);
#endif

/* Initialises MPI, with its arguments (both may be NULL), and opens MPI_COMM_WORLD.
 * exphil_mpi_close finalises MPI. Collective over all processes of the launch; a process that no launcher started is one
 * rank alone. EXPHIL_E_STATE: MPI is initialised already, or was finalised. Else as exphil_mpi_open; then MPI stays
 * initialised, and the process best ends by exphil_mpi_abort. What MPI itself does while it initialises has no time
 * limit but the launcher's. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_mpi_open_world(int *argc, char ***argv,
                                                                const exphil_mpi_config *config,
                                                                exphil_mpi **mpi, exphil_error *error);

/* What exphil_trainer_config.communicator takes: fills user, all_reduce, rank and ranks, and leaves fields after them as
 * they are. Good until exphil_mpi_close. all_reduce is collective, adds in the order of the config, and gives all ranks the
 * same bits with any MPI. It returns 0, or a code of those above, after which the object is broken and data has nothing of
 * use. Ranks learn of a failure by their own timeout. One that had all it needed has succeeded then, and fails in its next
 * reduction; with fault-tolerant MPI (MPI_FT: Open MPI 5 by mpirun --with-ft ulfm) all succeed or all fail, within
 * milliseconds if a rank has died.
 * EXPHIL_E_INVALID: mpi or out is NULL, or out->struct_size is too small. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_mpi_communicator(exphil_mpi *mpi, exphil_communicator *out,
                                                                  exphil_error *error);

/* Place of this rank among the ranks of its node, those with the same MPI_Get_processor_name, in the order of the ranks:
 * 0 <= *rank < *ranks. For choosing a GPU. EXPHIL_E_INVALID: a pointer is NULL. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_mpi_local(const exphil_mpi *mpi, int32_t *rank,
                                                           int32_t *ranks, exphil_error *error);

/* Time spent in reductions since the start, with waiting for other ranks, and how many there were; those that failed
 * count. EXPHIL_E_INVALID: a pointer is NULL. */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_mpi_time(const exphil_mpi *mpi, int64_t *reduced_ns,
                                                          int64_t *calls, exphil_error *error);

/* Why the object is broken, one line that names the rank that is missing where this is known; "" while it is not broken or
 * mpi is NULL. Valid until exphil_mpi_close; of a broken object for ever. */
EXPHIL_API const char *exphil_mpi_why(const exphil_mpi *mpi);

/* A new object of the ranks that live, in their old order, after a rank has died; one that dies meanwhile is left out too. All
 * of them succeed, or none, but for EXPHIL_E_MEMORY. Collective over those that live. The old one is broken by it and still to be
 * closed. Ranks that live must come, or it waits for them without limit: a rank that is stopped lives. If the old one is to
 * finalise MPI, the new one is now.
 *   EXPHIL_E_UNSUPPORTED  MPI is not fault-tolerant: not built so, or not launched so
 *   else as exphil_mpi_open */
EXPHIL_API EXPHIL_NODISCARD exphil_status exphil_mpi_shrink(exphil_mpi *mpi, exphil_mpi **smaller,
                                                            exphil_error *error);

/* Ends all processes of MPI_COMM_WORLD with code, 1..255 (else 1 is taken), and does not return: MPI_Abort, and after three
 * seconds SIGALRM with its default action, because MPI_Abort may hang. Before MPI is initialised, or when it is finalised,
 * only this process ends. mpi may be NULL, as where opening failed. */
EXPHIL_API void exphil_mpi_abort(exphil_mpi *mpi, int32_t code);

/* Collective: frees the communicator, and finalises MPI if this object initialised it. NULL does nothing.
 *   EXPHIL_E_IO     the object is broken, or not all ranks came within timeout_ms. Nothing is freed, and MPI not finalised,
 *                   which could wait for ever: a process that initialised MPI by this object best ends by exphil_mpi_abort
 *   EXPHIL_E_STATE  MPI_THREAD_FUNNELED and another thread: nothing is done */
EXPHIL_API exphil_status exphil_mpi_close(exphil_mpi *mpi);

#ifdef __cplusplus
}
#endif

#endif
