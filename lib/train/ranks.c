/* Meetings of ranks, and what they add up. */
#include "train/ranks.h"

#include "train/shards.h"

#include <stddef.h>

enum { PLACES = (int)(sizeof(struct xph_said) / sizeof(double)) };
static const char *const doing[XPH_CALLS] = {"doing nothing",
                                             "making a trainer",
                                             "training a batch",
                                             "adding up gradients",
                                             "saving",
                                             "writing",
                                             "resuming",
                                             "agreeing on numbers",
                                             "sharing what they have",
                                             "changing its communicator"};

/* One more than there are ranks: in the last, losses of heads wait until the device has taken them. Then a number for each rank,
 * to be added. */
static size_t bytes_of(int32_t ranks)
{
    return ((size_t)ranks + 1) * sizeof(struct xph_said) + (size_t)ranks * sizeof(double);
}

double *xph_ranks_numbers(const exphil_trainer *trainer)
{
    return (double *)(void *)(trainer->said + trainer->communicator.ranks + 1);
}

struct xph_said *xph_ranks_said(exphil_context *context, int32_t ranks, exphil_error *error)
{
    struct xph_said *said = xph_calloc(context, 1, bytes_of(ranks));
    if (!said) (void)xph_no_memory(bytes_of(ranks), error);
    return said;
}

void xph_ranks_forget(exphil_context *context, struct xph_said *said, int32_t ranks)
{
    xph_free(context, said, bytes_of(ranks));
}

/* ---- bytes in doubles --------------------------------------------------------------------------------------------- */

/* 32 bits of data in each double: a sum of one such number and zeros is exact. */
static void spread(const unsigned char *data, size_t bytes, double *words)
{
    for (size_t at = 0; at < bytes; at += 4) {
        uint32_t word = 0;
        memcpy(&word, data + at, bytes - at < 4 ? bytes - at : 4);
        words[at / 4] = (double)word;
    }
}

static bool gather(const double *words, unsigned char *data, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += 4) {
        double given = words[at / 4];
        if (!(given >= 0.0 && given <= 4294967295.0)) return false;
        uint32_t word = (uint32_t)given;
        memcpy(data + at, &word, bytes - at < 4 ? bytes - at : 4);
    }
    return true;
}

/* ---- a meeting ---------------------------------------------------------------------------------------------------- */

static exphil_status reduce(const exphil_communicator *with, void *data, int64_t count, int32_t type,
                            exphil_error *error)
{
    int32_t code = with->all_reduce(with->user, data, count, type);
    if (!code) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_IO, "communicator: all_reduce failed with %d on rank %d", code,
                    with->rank);
}

exphil_status xph_ranks_reduce(const exphil_trainer *trainer, void *data, int64_t count, int32_t type,
                               exphil_error *error)
{
    return reduce(&trainer->communicator, data, count, type, error);
}

/* What all ranks bring to a meeting, and what one says of its own failure, or NULL. */
typedef struct meeting {
    const exphil_communicator *with;
    struct xph_said *said;
    const char *reason;
} meeting;

/* Which rank cannot; one that was cancelled counts last. -1: all can. */
static int32_t who_cannot(const meeting *m)
{
    int32_t found = -1;
    for (int32_t r = m->with->ranks - 1; r >= 0; r--) {
        double status = m->said[r].status;
        bool later = found >= 0 && status == (double)EXPHIL_E_CANCELLED;
        if (status < 0.0 && !later) found = r;
    }
    return found;
}

/* All ranks are here, and know that this one cannot go on: it tells them why. Without a text the status must do. */
static void share_reason(const meeting *m, int32_t rank, char text[sizeof((exphil_error *)0)->message])
{
    enum { BYTES = sizeof((exphil_error *)0)->message };
    double words[(BYTES + 3) / 4] = {0};
    memset(text, 0, BYTES);
    if (m->with->rank == rank && m->reason)
        for (size_t i = 0; i < BYTES - 1 && m->reason[i]; i++) text[i] = m->reason[i];
    spread((const unsigned char *)text, BYTES, words);
    exphil_status status = reduce(m->with, words, (BYTES + 3) / 4, EXPHIL_TYPE_F64, NULL);
    if (status < 0 || !gather(words, (unsigned char *)text, BYTES)) text[0] = 0;
    text[BYTES - 1] = 0;
}

static exphil_status others_fail(const meeting *m, int32_t rank, exphil_error *error)
{
    char text[sizeof error->message];
    const struct xph_said *said = &m->said[rank];
    exphil_status status = (exphil_status)said->status;
    if (status == EXPHIL_E_CANCELLED)
        return xph_fail(error, status, "rank %d was cancelled by its host", rank);
    share_reason(m, rank, text);
    return xph_fail(error, EXPHIL_E_IO, "rank %d failed with %s in %s%s%s", rank, exphil_status_name(status),
                    doing[(int)said->call], text[0] ? ": " : "", text);
}

/* Of several ranks that say something else, the first is named. */
static exphil_status compare(const meeting *m, exphil_error *error)
{
    const struct xph_said *said = m->said;
    for (int32_t r = 1; r < m->with->ranks; r++) {
        if (said[r].call != said[0].call)
            return xph_fail(error, EXPHIL_E_MISMATCH, "rank %d is %s, rank 0 is %s", r,
                            doing[(int)said[r].call], doing[(int)said[0].call]);
        if (said[r].update != said[0].update)
            return xph_fail(error, EXPHIL_E_MISMATCH, "rank %d is at update %.0f, rank 0 at %.0f", r,
                            said[r].update, said[0].update);
        if (said[r].epoch != said[0].epoch || said[r].index != said[0].index)
            return xph_fail(error, EXPHIL_E_MISMATCH,
                            "rank %d is at batch %.0f of epoch %.0f, rank 0 at batch %.0f of epoch %.0f", r,
                            said[r].index, said[r].epoch, said[0].index, said[0].epoch);
    }
    return EXPHIL_OK;
}

/* What came back must be what went in, and each rank must have said something that there is. Numbers may be NaN, or -0. */
static exphil_status check_sum(const meeting *m, const struct xph_said *own, exphil_error *error)
{
    const exphil_communicator *with = m->with;
    for (int32_t r = 0; r < with->ranks; r++) {
        double call = m->said[r].call;
        bool whole = r == with->rank ? memcmp(own, &m->said[r], offsetof(struct xph_said, number)) == 0
                                     : call >= 1.0 && call < (double)XPH_CALLS && call == (double)(int)call;
        if (!whole)
            return xph_fail(error, EXPHIL_E_IO,
                            "communicator: all_reduce gave no sum of doubles: what rank %d said did not "
                            "arrive on rank %d",
                            r, with->rank);
    }
    return EXPHIL_OK;
}

static exphil_status meet(const meeting *m, const struct xph_said *own, exphil_error *error)
{
    memset(m->said, 0, (size_t)m->with->ranks * sizeof *m->said);
    m->said[m->with->rank] = *own;
    XPH_TRY(reduce(m->with, m->said, (int64_t)m->with->ranks * PLACES, EXPHIL_TYPE_F64, error));
    XPH_TRY(check_sum(m, own, error));
    int32_t rank = who_cannot(m);
    return rank < 0 ? compare(m, error) : others_fail(m, rank, error);
}

/* Of a failure; NULL: the host took none. */
static const char *reason_of(exphil_status status, const exphil_error *error)
{
    const bool taken =
        error && error->struct_size >= XPH_LEAST(exphil_error) && error->status == status && status < 0;
    return taken ? error->message : NULL;
}

exphil_status xph_ranks_say(exphil_trainer *trainer, xph_call call, struct xph_said own, exphil_status status,
                            exphil_error *error)
{
    if (!xph_ranks_meet(trainer)) return status;
    own.call = (double)call;
    own.status = status < 0 ? (double)status : 0.0;
    own.update =
        trainer->optimizer ? (double)trainer->optimizer->updates : 0.0; /* it may be another trainer's */
    own.update +=
        (double)
            trainer->skipped; /* one rank may know already of an update that all others have yet to settle */
    for (int i = 0; i < 2; i++) own.update += (double)trainer->pending[i].live;
    if (trainer->prefetcher) {
        own.epoch = (double)trainer->epoch;
        own.index = (double)trainer->index;
    }
    exphil_error others = EXPHIL_ERROR_INIT;
    const meeting m = {&trainer->communicator, trainer->said, reason_of(status, error)};
    exphil_status met = meet(&m, &own, status < 0 ? &others : error);
    return status < 0 ? status : met;
}

void xph_ranks_tell_early(const exphil_communicator *with, xph_call call, exphil_status status,
                          const exphil_error *error)
{
    struct xph_said said[XPH_RANKS_EARLY], own = {.call = (double)call, .status = (double)status};
    exphil_error others = EXPHIL_ERROR_INIT;
    const meeting m = {with, said, reason_of(status, error)};
    if (with->ranks <= XPH_RANKS_EARLY) (void)meet(&m, &own, &others);
}

exphil_status xph_ranks_tell(exphil_trainer *trainer, xph_call call, exphil_status status,
                             exphil_error *error)
{
    return xph_ranks_say(trainer, call, (struct xph_said){.call = 0.0}, status, error);
}

/* Of shards, whose ranks are a power of two, as a tree. */
double xph_ranks_add(const exphil_trainer *trainer, double *number)
{
    const int32_t ranks = trainer->communicator.ranks;
    if (xph_is_sharded(trainer)) return xph_tree_sum(number, ranks);
    for (int32_t r = 1; r < ranks; r++) number[0] += number[r];
    return number[0];
}

double xph_ranks_weight(const exphil_trainer *trainer)
{
    double *weight = xph_ranks_numbers(trainer);
    for (int32_t r = 0; r < trainer->communicator.ranks; r++) weight[r] = trainer->said[r].weight;
    return xph_ranks_add(trainer, weight);
}

int64_t xph_ranks_frames(const exphil_trainer *trainer)
{
    double sum = 0.0;
    for (int32_t r = 0; r < trainer->communicator.ranks; r++) sum += trainer->said[r].frames;
    return (int64_t)sum;
}

int64_t xph_ranks_lanes(const exphil_trainer *trainer, int64_t *before)
{
    int64_t sum = 0;
    for (int32_t r = 0; r < trainer->communicator.ranks; r++) {
        if (r == trainer->communicator.rank) *before = sum;
        sum += (int64_t)trainer->said[r].lanes;
    }
    return sum;
}

/* ---- bytes -------------------------------------------------------------------------------------------------------- */

enum { WORDS_AT_ONCE = 1 << 17 }; /* a megabyte of doubles */

static int64_t words_of(size_t bytes)
{
    return (int64_t)((bytes + 3) / 4);
}

exphil_status xph_ranks_join(exphil_trainer *trainer, void *data, size_t bytes, exphil_status status,
                             exphil_error *error)
{
    if (!xph_ranks_meet(trainer)) return status;
    size_t memory = sizeof(double) * (size_t)WORDS_AT_ONCE;
    double *words = status >= 0 ? xph_alloc(trainer->context, memory) : NULL;
    if (status >= 0 && !words) status = xph_no_memory(memory, error);
    status = xph_ranks_tell(trainer, XPH_CALL_JOIN, status, error);
    for (size_t at = 0; status >= 0 && at < bytes; at += 4 * (size_t)WORDS_AT_ONCE) {
        size_t part = bytes - at < 4 * (size_t)WORDS_AT_ONCE ? bytes - at : 4 * (size_t)WORDS_AT_ONCE;
        spread((unsigned char *)data + at, part, words);
        status = xph_ranks_reduce(trainer, words, words_of(part), EXPHIL_TYPE_F64, error);
        if (status >= 0 && !gather(words, (unsigned char *)data + at, part))
            status = xph_fail(error, EXPHIL_E_IO, "communicator: all_reduce gave no sum of doubles");
    }
    xph_free(trainer->context, words, memory);
    return status;
}
