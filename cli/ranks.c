/* What ranks do together, whatever joins them (ranks_engine.h). See ranks.h. */
#include "rank_place.h"
#include "ranks_engine.h"
#include "system.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ranks {
    const ranks_engine *engine;
    void *group;
    bool closed;
    exphil_communicator communicator;
    double *said;           /* [ranks], of the last question */
    int32_t local, sharing; /* place on this machine; ranks that may use the same processors as this one */
    int64_t processors;     /* that it may use; 0: not known */
    bool together, failed;  /* failed: to close */
    int out;                /* stdout as it was, of ranks above 0 */
    int32_t firsts_lost;
    char lost[256]; /* "rank 1, 2": of the ranks that there were before */
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

const char *ranks_name(const ranks *r)
{
    return r ? r->engine->name : "";
}

const exphil_communicator *ranks_communicator(const ranks *r)
{
    return r ? &r->communicator : NULL;
}

void ranks_lend(const ranks *r, exphil_trainer_config *config)
{
    if (!r) return;
    config->reduction = EXPHIL_REDUCTION_SUMS;
    if (r->engine->on_device)
        config->device_communicator = r->engine->on_device(r->group);
    else
        config->communicator = &r->communicator;
}

void ranks_together(ranks *r, bool together)
{
    if (r) r->together = together;
}

const ranks_engine *ranks_engine_for(bool mpi)
{
    char why[RANK_PLACE_WHY];
    rank_place place;
    if (mpi) return &ranks_by_mpi;
    return rank_place_find(getenv, &place, why) && place.ranks > 1 ? &ranks_by_gpu : NULL;
}

bool ranks_started(void)
{
    char why[RANK_PLACE_WHY];
    rank_place place;
    return rank_place_find(getenv, &place, why) && place.family;
}

/* What launch has handed to others, as to an mpirun, is not theirs any more. */
void ranks_saved(const ranks *r)
{
    char why[RANK_PLACE_WHY];
    rank_place place;
    const int descriptor = rank_place_descriptor(getenv, "EXPHIL_PROGRESS_OUT");
    if (descriptor < 0 || (r && r->engine == &ranks_by_mpi) || !rank_place_find(getenv, &place, why) ||
        !place.family || strcmp(place.family, RANK_PLACE_LAUNCH) != 0 || place.rank > 0)
        return;
    (void)!write(descriptor, "", 1); /* nobody may listen any more */
}

/* ---- what all say ---------------------------------------------------------------------------------------- */

static bool broken(const ranks *r)
{
    return !r->closed && *r->engine->why(r->group);
}

/* The number of each rank, until the next question; NULL: they failed, and ranks_end says why. */
static const double *gather(ranks *r, double own)
{
    const exphil_communicator *with = &r->communicator;
    memset(r->said, 0, (size_t)with->ranks * sizeof *r->said);
    r->said[with->rank] = own;
    return with->all_reduce(with->user, r->said, with->ranks, EXPHIL_TYPE_F64) == 0 ? r->said : NULL;
}

bool ranks_least(ranks *r, double *number)
{
    if (!r) return true;
    const double *all = gather(r, *number);
    for (int32_t k = 0; all && k < r->communicator.ranks; k++)
        if (all[k] < *number) *number = all[k];
    return all != NULL;
}

bool ranks_all(ranks *r, bool fine)
{
    double number = fine ? 1.0 : 0.0;
    if (!ranks_least(r, &number)) return false;
    ranks_together(r, number < 1.0);
    return number >= 1.0;
}

bool ranks_other(ranks *r, double number, int32_t *other)
{
    *other = 0;
    if (!r) return true;
    const double *all = gather(r, number);
    if (!all) return false;
    for (int32_t k = r->communicator.ranks - 1; k > 0; k--)
        if (all[k] < all[0] || all[k] > all[0]) *other = k;
    ranks_together(r, *other > 0);
    return true;
}

bool ranks_same(ranks *r, double number, const char *what)
{
    int32_t other;
    if (!ranks_other(r, number, &other)) return false;
    if (other && ranks_first(r))
        fprintf(stderr, "exphil: %s: rank %" PRId32 " has %s than rank 0\n", ranks_name(r), other, what);
    return !other;
}

/* ---- the machine ----------------------------------------------------------------------------------------- */

double ranks_hash(const void *data, size_t bytes, double before)
{
    uint64_t hash = UINT64_C(14695981039346656037) ^ (uint64_t)before;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const unsigned char *)data)[i]) * UINT64_C(1099511628211);
    return (double)(hash >> 12);
}

/* Launchers give each rank its own processors, or all of them the same. */
static bool find_processors(ranks *r)
{
    unsigned char set[1024];
    char host[256] = "";
    memset(set, 0, sizeof set);
    r->processors = system_processors(set, sizeof set);
    (void)gethostname(host, sizeof host - 1);
    const double own = ranks_hash(set, sizeof set, ranks_hash(host, strlen(host), 0.0)),
                 *all = gather(r, own);
    for (int32_t k = 0; all && k < r->communicator.ranks; k++) r->sharing += all[k] <= own && all[k] >= own;
    return all != NULL;
}

static int64_t listed_gpus(void)
{
    int64_t found = 0;
    for (int64_t i = 0, count = exphil_device_count(); i < count; i++) {
        exphil_device_info info = EXPHIL_DEVICE_INFO_INIT;
        if (exphil_device_get(i, &info, NULL) >= 0 && strncmp(info.id, "cuda", 4) == 0) found++;
    }
    return found;
}

static bool opens(int32_t number)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_context *context = NULL;
    char device[RANKS_DEVICE];
    (void)snprintf(device, sizeof device, "cuda:%" PRId32, number);
    config.device = device;
    config.threads = 1;
    if (exphil_context_create(&config, &context, NULL) < 0) return false;
    exphil_context_destroy(context);
    return true;
}

/* Some systems list none before one was opened: this rank's own, if there is such, so that not all take memory of the first. */
int64_t ranks_gpus(int32_t local)
{
    int64_t found = listed_gpus();
    return found || !(opens(local) || (local > 0 && opens(0))) ? found : listed_gpus();
}

void ranks_choose_gpu(int32_t local, machine_options *machine, char *device)
{
    if (!machine->device || (strcmp(machine->device, "cuda") != 0 && strcmp(machine->device, "auto") != 0))
        return;
    int64_t gpus = ranks_gpus(local);
    if (gpus < 2) return;
    (void)snprintf(device, RANKS_DEVICE, "cuda:%" PRId64, local % gpus);
    machine->device = device;
}

void ranks_machine(const ranks *r, machine_options *machine, char device[RANKS_DEVICE])
{
    if (!r) return;
    if (!machine->threads && r->sharing > 1 && r->processors > 0) {
        machine->threads = r->processors / r->sharing;
        if (machine->threads < 1) machine->threads = 1;
    }
    ranks_choose_gpu(r->local, machine, device);
}

/* ---- beginning and end ----------------------------------------------------------------------------------- */

/* Ends all ranks; those that the engine does not end at once are ended by what started them. */
_Noreturn static void end_all(const ranks *r, int status)
{
    fflush(stdout);
    fflush(stderr);
    r->engine->abort(r->group, status);
    _exit(status);
}

/* The group, and what every rank takes of it. */
static exphil_status open_group(ranks *r, const ranks_wanted *wanted, exphil_error *error)
{
    const ranks_engine *engine = r->engine;
    exphil_status status = engine->open(wanted, &r->group, error);
    if (status >= 0) status = engine->communicator(r->group, &r->communicator, error);
    if (status >= 0) status = engine->local(r->group, &r->local, error);
    if (status < 0) return status;
    r->said = calloc((size_t)r->communicator.ranks, sizeof *r->said);
    if (r->said) return EXPHIL_OK;
    error->status = EXPHIL_E_MEMORY;
    (void)snprintf(error->message, sizeof error->message, "no memory for what %" PRId32 " ranks say",
                   r->communicator.ranks);
    return EXPHIL_E_MEMORY;
}

bool ranks_open(const ranks_engine *engine, const ranks_wanted *wanted, ranks **made)
{
    static ranks opened = {.communicator = {.struct_size = sizeof(exphil_communicator)}};
    exphil_error error = EXPHIL_ERROR_INIT;
    if (!engine->load(wanted)) return false;
    opened.engine = engine;
    exphil_status status = open_group(&opened, wanted, &error);
    if (status < 0) {
        complain(engine->name, &error);
        end_all(&opened, status == EXPHIL_E_IO ? RANKS_FAILED : 1);
    }
    if (opened.communicator.rank > 0) {
        opened.out = dup(STDOUT_FILENO);
        if (!freopen("/dev/null", "w", stdout)) end_all(&opened, 1);
        ranks_say_begin(opened.communicator.rank);
    }
    *made = &opened;
    if (!find_processors(&opened)) (void)ranks_end(&opened, 1);
    return true;
}

/* ---- when a rank is lost --------------------------------------------------------------------------------- */

const char *ranks_lost(const ranks *r)
{
    return r->lost;
}

int32_t ranks_firsts_lost(const ranks *r)
{
    return r ? r->firsts_lost : 0;
}

void ranks_give_up(ranks *r)
{
    r->failed = true;
}

/* A rank that was above 0, and is it now. */
static void speak(const ranks *r)
{
    ranks_say_end();
    fflush(stdout);
    if (r->out >= 0) (void)dup2(r->out, STDOUT_FILENO);
}

static bool shrink_once(ranks *r)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    void *left = NULL;
    exphil_status status = r->engine->shrink(r->group, &left, &error);
    if (status >= 0) status = r->engine->communicator(left, &r->communicator, &error);
    if (status >= 0) status = r->engine->local(left, &r->local, &error);
    if (status >= 0) r->group = left;
    if (status < 0 && status != EXPHIL_E_UNSUPPORTED) complain(r->engine->name, &error);
    return status >= 0;
}

/* Each says where it was before; nobody says it of those that are lost. */
static bool find_lost(ranks *r, int32_t before, int32_t count)
{
    const exphil_communicator *with = &r->communicator;
    size_t used = 0;
    memset(r->said, 0, (size_t)count * sizeof *r->said);
    r->said[before] = 1.0;
    if (with->all_reduce(with->user, r->said, count, EXPHIL_TYPE_F64) != 0) return false;
    for (int32_t k = 0; k < count; k++) {
        if (r->said[k] > 0.5 || used >= sizeof r->lost) continue;
        int bytes = snprintf(r->lost + used, sizeof r->lost - used, used ? ", %" PRId32 : "rank %" PRId32, k);
        used += bytes > 0 ? (size_t)bytes : 0;
    }
    return true;
}

bool ranks_shrink(ranks *r)
{
    if (!r || !r->engine->shrink || !broken(r)) return false;
    const int32_t before = r->communicator.rank, count = r->communicator.ranks;
    do { /* one more may be lost while they count */
        if (!shrink_once(r)) return false;
    } while (!find_lost(r, before, count));
    r->firsts_lost += r->said[0] < 0.5;
    if (r->communicator.rank == 0 && before > 0) speak(r);
    return true;
}

bool ranks_close(ranks *r)
{
    if (!r || r->closed) return true;
    r->failed = r->failed || broken(r) || r->engine->close(r->group) < 0;
    r->closed = !r->failed;
    return r->closed;
}

int ranks_end(ranks *r, int status)
{
    if (!r) return status;
    fflush(stdout);
    if (!r->closed && !broken(r) && !r->together && !r->failed) end_all(r, status);
    if (ranks_close(r)) {
        if (r->engine->release) r->engine->release(r->group);
        return status;
    }
    fprintf(stderr, "exphil: %s: %s\n", r->engine->name,
            broken(r)    ? r->engine->why(r->group)
            : r->lost[0] ? "the ranks that are left cannot go on"
                         : "not all ranks came to the end");
    /* As all do that are left. By MPI's abort Open MPI 5.0's mpirun hung now and then, or ended with 0. */
    if (r->lost[0] && !broken(r)) _exit(RANKS_FAILED);
    end_all(r, RANKS_FAILED);
}
