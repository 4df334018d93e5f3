/* Ranks that an MPI has started, by libexphil_mpi. See ranks_engine.h. */
#include "rank_place.h"
#include "ranks_engine.h"

#define EXPHIL_MPI_WITHOUT_MPI_H
#include <exphil_mpi.h>

#include <dlfcn.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY "libexphil_mpi.so.0"

/* What is taken of the library. */
static struct {
    __typeof__(exphil_mpi_open_world) *open_world;
    __typeof__(exphil_mpi_communicator) *communicator;
    __typeof__(exphil_mpi_local) *local;
    __typeof__(exphil_mpi_why) *why;
    __typeof__(exphil_mpi_shrink) *shrink;
    __typeof__(exphil_mpi_abort) *abort;
    __typeof__(exphil_mpi_close) *close;
} mpi;

static bool find(void *library, const char *path, const char *name, void *function)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    if (!found)
        fprintf(stderr, "exphil: --mpi: %s has no %s: it is of another version than this program\n", path,
                name);
    return found != NULL;
}

/* Open MPI finds its parts only where its names are everybody's. */
static bool load(const ranks_wanted *wanted)
{
    const char *named = getenv("EXPHIL_MPI_LIBRARY"), *path = named && *named ? named : LIBRARY;
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    (void)wanted;
    if (!library) {
        fprintf(stderr,
                "exphil: --mpi: %s\nexphil: --mpi: libexphil_mpi is a library of its own, built with the MPI "
                "that starts the "
                "ranks; EXPHIL_MPI_LIBRARY may name its file\n",
                dlerror());
        return false;
    }
    return find(library, path, "exphil_mpi_open_world", &mpi.open_world) &&
           find(library, path, "exphil_mpi_communicator", &mpi.communicator) &&
           find(library, path, "exphil_mpi_local", &mpi.local) &&
           find(library, path, "exphil_mpi_why", &mpi.why) &&
           find(library, path, "exphil_mpi_shrink", &mpi.shrink) &&
           find(library, path, "exphil_mpi_abort", &mpi.abort) &&
           find(library, path, "exphil_mpi_close", &mpi.close);
}

/* Processes that something else than the library's MPI has started are each alone, and would all be rank 0. */
static bool check_alone(void)
{
    char why[RANK_PLACE_WHY];
    rank_place place;
    if (!rank_place_find(getenv, &place, why)) {
        fprintf(stderr, "exphil: --mpi: %s\n", why);
        return false;
    }
    if (place.ranks > 1)
        fprintf(stderr,
                "exphil: --mpi: %s has started %d processes, and MPI sees this one alone: start them by the "
                "mpirun or srun "
                "of the MPI that libexphil_mpi is built with\n",
                place.family, place.ranks);
    return place.ranks == 1;
}

/* One object of the library, and why its last sum failed. */
typedef struct world {
    exphil_mpi *all;
    exphil_communicator with; /* of all */
    int32_t code;
} world;

static double timeout; /* seconds */

static int32_t all_reduce(void *user, void *data, int64_t count, int32_t type)
{
    world *w = user;
    return w->code = w->with.all_reduce(w->with.user, data, count, type);
}

static exphil_status take(exphil_mpi *all, void **group, exphil_error *error)
{
    world *made = calloc(1, sizeof *made);
    if (!made) {
        error->status = EXPHIL_E_MEMORY;
        (void)snprintf(error->message, sizeof error->message, "no memory for a group of ranks");
        return EXPHIL_E_MEMORY;
    }
    made->all = all;
    made->with.struct_size = sizeof made->with;
    *group = made;
    return mpi.communicator(all, &made->with, error);
}

static exphil_status open_world(const ranks_wanted *wanted, void **group, exphil_error *error)
{
    exphil_mpi_config config = EXPHIL_MPI_CONFIG_INIT;
    exphil_mpi *opened = NULL;
    timeout = wanted->timeout;
    config.timeout_ms = (int64_t)(wanted->timeout * 1e3 + 0.5);
    config.tree = wanted->tree;
    exphil_status status = mpi.open_world(NULL, NULL, &config, &opened, error);
    if (status >= 0) status = take(opened, group, error);
    if (status >= 0 && ((world *)*group)->with.ranks == 1 && !check_alone()) mpi.abort(opened, 1);
    return status;
}

static exphil_status communicator(void *group, exphil_communicator *out, exphil_error *error)
{
    const world *w = group;
    (void)error;
    out->user = group;
    out->all_reduce = all_reduce;
    out->rank = w->with.rank;
    out->ranks = w->with.ranks;
    return EXPHIL_OK;
}

static exphil_status local(void *group, int32_t *rank, exphil_error *error)
{
    int32_t count;
    return mpi.local(((world *)group)->all, rank, &count, error);
}

static const char *why(void *group)
{
    return mpi.why(((world *)group)->all);
}

static void abort_all(void *group, int status)
{
    mpi.abort(group ? ((world *)group)->all : NULL, status);
}

static exphil_status close_world(void *group)
{
    return mpi.close(((world *)group)->all);
}

/* ---- when a rank is lost ----------------------------------------------------------------------------------------- */

static void too_late(int number)
{
    (void)number;
    mpi.abort(NULL, RANKS_FAILED);
}

/* Those that are left wait for each other without limit: a rank that hangs is not lost to MPI. */
static exphil_status shrink(void *group, void **smaller, exphil_error *error)
{
    const world *w = group;
    exphil_mpi *left = NULL;
    if (w->code == EXPHIL_MPI_TIMED_OUT) return EXPHIL_E_UNSUPPORTED; /* whoever has not answered may live */
    (void)signal(SIGALRM, too_late);
    (void)alarm((unsigned)fmin(ceil(timeout) + 1.0, 1e9));
    exphil_status status = mpi.shrink(w->all, &left, error);
    (void)alarm(0);
    (void)signal(SIGALRM, SIG_DFL);
    return status < 0 ? status : take(left, smaller, error);
}

const ranks_engine ranks_by_mpi = {.name = "--mpi",
                                   .load = load,
                                   .open = open_world,
                                   .communicator = communicator,
                                   .local = local,
                                   .why = why,
                                   .shrink = shrink,
                                   .abort = abort_all,
                                   .close = close_world};
