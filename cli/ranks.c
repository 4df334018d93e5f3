/* Ranks that an MPI has started, by libexphil_mpi. See ranks.h. */
#include "ranks.h"
#include "rank_place.h"

#define EXPHIL_MPI_WITHOUT_MPI_H
#include <exphil_mpi.h>

#include <dlfcn.h>
#include <inttypes.h>
#include <sched.h>
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
    __typeof__(exphil_mpi_abort) *abort;
    __typeof__(exphil_mpi_close) *close;
} mpi;

struct ranks {
    exphil_mpi *all; /* NULL: closed */
    exphil_communicator communicator;
    int32_t local, sharing; /* place on this machine; ranks that may use the same processors as this one */
    int64_t processors;     /* that it may use; 0: not known */
    bool together, failed;  /* failed: to close */
};

int32_t ranks_rank(const ranks *r)
{
    return r ? r->communicator.rank : 0;
}

int32_t ranks_count(const ranks *r)
{
    return r ? r->communicator.ranks : 1;
}

bool ranks_first(const ranks *r)
{
    return ranks_rank(r) == 0;
}

const exphil_communicator *ranks_communicator(const ranks *r)
{
    return r ? &r->communicator : NULL;
}

void ranks_together(ranks *r, bool together)
{
    if (r) r->together = together;
}

/* ---- the library ----------------------------------------------------------------------------------------- */

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
static bool load(void)
{
    const char *named = getenv("EXPHIL_MPI_LIBRARY"), *path = named && *named ? named : LIBRARY;
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
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

/* Variables that say nothing whole are somebody else's. */
bool ranks_none(void)
{
    char why[RANK_PLACE_WHY];
    rank_place place;
    if (!rank_place_find(getenv, &place, why) || place.ranks == 1) return true;
    fprintf(stderr,
            "exphil: %s has started %d processes, and each would be a run of its own: exphil train --mpi, "
            "started by mpirun or "
            "srun, makes them one\n",
            place.family, place.ranks);
    return false;
}

/* ---- what all say ---------------------------------------------------------------------------------------- */

static bool broken(const ranks *r)
{
    return r->all && *mpi.why(r->all);
}

/* The number of each rank; NULL: said why not. Free it. */
static double *gather(ranks *r, double own)
{
    const exphil_communicator *with = &r->communicator;
    double *all = calloc((size_t)with->ranks, sizeof *all);
    if (!all) {
        fprintf(stderr, "exphil: --mpi: no memory for what ranks say\n");
        return NULL;
    }
    all[with->rank] = own;
    if (with->all_reduce(with->user, all, with->ranks, EXPHIL_TYPE_F64) == 0) return all;
    free(all);
    return NULL; /* ranks_end says why */
}

bool ranks_least(ranks *r, double *number)
{
    if (!r) return true;
    double *all = gather(r, *number);
    for (int32_t k = 0; all && k < r->communicator.ranks; k++)
        if (all[k] < *number) *number = all[k];
    free(all);
    return all != NULL;
}

bool ranks_all(ranks *r, bool fine)
{
    double number = fine ? 1.0 : 0.0;
    if (!ranks_least(r, &number)) return false;
    ranks_together(r, number < 1.0);
    return number >= 1.0;
}

bool ranks_same(ranks *r, double number, const char *what)
{
    if (!r) return true;
    int32_t other = 0;
    double *all = gather(r, number);
    if (!all) return false;
    for (int32_t k = r->communicator.ranks - 1; k > 0; k--)
        if (all[k] < all[0] || all[k] > all[0]) other = k;
    free(all);
    ranks_together(r, other > 0);
    if (other && ranks_first(r))
        fprintf(stderr, "exphil: --mpi: rank %" PRId32 " has %s than rank 0\n", other, what);
    return !other;
}

/* ---- the machine ----------------------------------------------------------------------------------------- */

/* FNV-1a, of 52 bits: a double holds it. */
static double hash_of(const void *data, size_t bytes, double before)
{
    uint64_t hash = UINT64_C(14695981039346656037) ^ (uint64_t)before;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const unsigned char *)data)[i]) * UINT64_C(1099511628211);
    return (double)(hash >> 12);
}

/* Launchers give each rank its own processors, or all of them the same. */
static bool find_processors(ranks *r)
{
    cpu_set_t set[8192 / CPU_SETSIZE];
    char host[256] = "";
    memset(set, 0, sizeof set);
    if (sched_getaffinity(0, sizeof set, set) == 0) r->processors = CPU_COUNT_S(sizeof set, set);
    (void)gethostname(host, sizeof host - 1);
    double own = hash_of(set, sizeof set, hash_of(host, strlen(host), 0.0)), *all = gather(r, own);
    for (int32_t k = 0; all && k < r->communicator.ranks; k++) r->sharing += all[k] <= own && all[k] >= own;
    free(all);
    return all != NULL;
}

static int64_t gpu_count(void)
{
    int64_t found = 0;
    for (int64_t i = 0, count = exphil_device_count(); i < count; i++) {
        exphil_device_info info = EXPHIL_DEVICE_INFO_INIT;
        if (exphil_device_get(i, &info, NULL) >= 0 && strncmp(info.id, "cuda", 4) == 0) found++;
    }
    return found;
}

void ranks_machine(const ranks *r, machine_options *machine, char device[RANKS_DEVICE])
{
    if (!r) return;
    if (!machine->threads && r->sharing > 1 && r->processors > 0) {
        machine->threads = r->processors / r->sharing;
        if (machine->threads < 1) machine->threads = 1;
    }
    if (!machine->device || (strcmp(machine->device, "cuda") != 0 && strcmp(machine->device, "auto") != 0))
        return;
    int64_t gpus = gpu_count();
    if (gpus < 2) return;
    (void)snprintf(device, RANKS_DEVICE, "cuda:%" PRId64, r->local % gpus);
    machine->device = device;
}

/* ---- beginning and end ----------------------------------------------------------------------------------- */

/* Ends all ranks; those that MPI does not end at once are ended by what started them. */
_Noreturn static void end_all(ranks *r, int status)
{
    fflush(stdout);
    fflush(stderr);
    mpi.abort(r ? r->all : NULL, status);
    _exit(status);
}

bool ranks_open(double timeout, bool tree, ranks **made)
{
    static ranks opened = {.communicator = {.struct_size = sizeof(exphil_communicator)}};
    exphil_mpi_config config = EXPHIL_MPI_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    int32_t locals;
    config.timeout_ms = (int64_t)(timeout * 1e3 + 0.5);
    config.tree = tree;
    if (!load()) return false;
    exphil_status status = mpi.open_world(NULL, NULL, &config, &opened.all, &error);
    if (status >= 0) status = mpi.communicator(opened.all, &opened.communicator, &error);
    if (status >= 0) status = mpi.local(opened.all, &opened.local, &locals, &error);
    if (status < 0) {
        complain("--mpi", &error);
        end_all(NULL, status == EXPHIL_E_IO ? RANKS_FAILED : 1);
    }
    if (opened.communicator.ranks == 1 && !check_alone()) end_all(&opened, 1);
    if (opened.communicator.rank > 0) {
        if (!freopen("/dev/null", "w", stdout)) end_all(&opened, 1);
        ranks_say_begin(opened.communicator.rank);
    }
    *made = &opened;
    if (!find_processors(&opened)) (void)ranks_end(&opened, 1);
    return true;
}

bool ranks_close(ranks *r)
{
    if (!r || !r->all) return true;
    r->failed = r->failed || broken(r) || mpi.close(r->all) < 0;
    if (!r->failed) r->all = NULL;
    return !r->failed;
}

int ranks_end(ranks *r, int status)
{
    if (!r || !r->all) return status;
    fflush(stdout);
    if (!broken(r) && !r->together) end_all(r, status);
    if (ranks_close(r)) return status;
    fprintf(stderr, "exphil: --mpi: %s\n", broken(r) ? mpi.why(r->all) : "not all ranks came to the end");
    end_all(r, RANKS_FAILED);
}
