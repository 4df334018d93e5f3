/* Ranks that an MPI has started, by libexphil_mpi. See ranks_engine.h. */
#include "rank_place.h"
#include "ranks_engine.h"

#define EXPHIL_MPI_WITHOUT_MPI_H
#include <exphil_mpi.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY "libexphil_mpi.so.0"

/* What is taken of the library. */
static struct {
    __typeof__(exphil_mpi_open_world) *open_world;
    __typeof__(exphil_mpi_communicator) *communicator;
    __typeof__(exphil_mpi_local) *local;
    __typeof__(exphil_mpi_why) *why;
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

static exphil_status open_world(const ranks_wanted *wanted, void **group, exphil_error *error)
{
    exphil_mpi_config config = EXPHIL_MPI_CONFIG_INIT;
    exphil_communicator all = {.struct_size = sizeof all};
    exphil_mpi *opened = NULL;
    config.timeout_ms = (int64_t)(wanted->timeout * 1e3 + 0.5);
    config.tree = wanted->tree;
    exphil_status status = mpi.open_world(NULL, NULL, &config, &opened, error);
    if (status >= 0) status = mpi.communicator(opened, &all, error);
    if (status >= 0 && all.ranks == 1 && !check_alone()) mpi.abort(opened, 1);
    *group = opened;
    return status;
}

static exphil_status communicator(void *group, exphil_communicator *out, exphil_error *error)
{
    return mpi.communicator(group, out, error);
}

static exphil_status local(void *group, int32_t *rank, exphil_error *error)
{
    int32_t count;
    return mpi.local(group, rank, &count, error);
}

static const char *why(void *group)
{
    return mpi.why(group);
}

static void abort_all(void *group, int status)
{
    mpi.abort(group, status);
}

static exphil_status close_world(void *group)
{
    return mpi.close(group);
}

const ranks_engine ranks_by_mpi = {.name = "--mpi",
                                   .load = load,
                                   .open = open_world,
                                   .communicator = communicator,
                                   .local = local,
                                   .why = why,
                                   .abort = abort_all,
                                   .close = close_world};
