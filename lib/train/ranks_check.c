/* Before the first update: ranks must have the same of everything that the update of a joint batch depends on. */
#include "train/ranks.h"
#include "train/settings.h"
#include "train/shards.h"

#include <exphil/ranks.h>
#include <stdio.h>

/* What is compared beside the settings of a checkpoint. */
enum { PROCESSOR, COUNT, SETTINGS, WEIGHTS = SETTINGS + XPH_SETTINGS_MOST, MOMENTS, SCALE, PLAYED, WORDS };
static const char *const name[WORDS] = {[PROCESSOR] = "another kind of processor",
                                        [COUNT] = "another number of settings",
                                        [WEIGHTS] = "other weights",
                                        [MOMENTS] = "other moments of the optimizer",
                                        [SCALE] = "another loss scale",
                                        [PLAYED] = "another as_played"};

/* What is told of a difference in the data: not compared, for a file may have another name, and its hash is. */
typedef struct facts {
    int64_t games, episodes, frames;
    char layout[32], codec[32];
    char file[64]; /* the end of its name; "": rows in memory, or no prefetcher */
} facts;

/* What a rank has. */
typedef struct paper {
    uint64_t word[WORDS];
    facts facts;
} paper;

/* Processors of one architecture compute the same bits, whatever they are called; GPUs of one name do. */
static uint64_t processor(const exphil_trainer *trainer)
{
#if defined(__x86_64__)
    const char *architecture = "x86-64";
#elif defined(__aarch64__)
    const char *architecture = "aarch64";
#else
    const char *architecture = "other";
#endif
    exphil_device_info info = EXPHIL_DEVICE_INFO_INIT;
    xph_hasher hasher;
    xph_hash_begin(&hasher);
    xph_hash_add(&hasher, trainer->device->backend->name, strlen(trainer->device->backend->name));
    if (trainer->device->backend->host_memory)
        xph_hash_add(&hasher, architecture, strlen(architecture));
    else if (exphil_context_device(trainer->context, &info, NULL) >= 0)
        xph_hash_add(&hasher, info.name, strlen(info.name));
    return xph_hash_end(&hasher);
}

static exphil_status hash_arena(const exphil_trainer *trainer, xph_stream *stream, const void *arena,
                                xph_hasher *hasher)
{
    const xph_backend *backend = trainer->device->backend;
    if (!arena) return EXPHIL_OK;
    XPH_TRY(backend->download(stream, trainer->shared, arena, trainer->arena_bytes));
    XPH_TRY(backend->stream_wait(stream));
    xph_hash_add(hasher, trainer->shared, trainer->arena_bytes);
    return EXPHIL_OK;
}

static exphil_status hash_arenas(const exphil_trainer *trainer, uint64_t word[WORDS], exphil_error *error)
{
    const xph_backend *backend = trainer->device->backend;
    const exphil_optimizer *optimizer = trainer->optimizer;
    xph_hasher weights, moments, scale;
    xph_stream *stream;
    xph_hash_begin(&weights);
    xph_hash_begin(&moments);
    xph_hash_begin(&scale);
    xph_control control = {.done = 0};
    exphil_status status = backend->stream_create(trainer->device, 0, &stream);
    if (status < 0)
        return xph_fail_device(error, trainer->device, status, "trainer: no stream on the device");
    status = hash_arena(trainer, stream, trainer->weights, &weights);
    if (status >= 0) status = hash_arena(trainer, stream, optimizer->m, &moments);
    if (status >= 0) status = hash_arena(trainer, stream, optimizer->v, &moments);
    if (status >= 0) status = hash_arena(trainer, stream, optimizer->average, &moments);
    if (status >= 0) status = backend->download(stream, &control, trainer->control, sizeof control);
    status = xph_stream_end(stream, status);
    if (status < 0)
        return xph_fail_device(error, trainer->device, status,
                               "trainer: the device failed to give its weights");
    xph_hash_add(&scale, &control.loss_scale,
                 sizeof control.loss_scale); /* gradients are summed as they are scaled */
    xph_hash_add(&scale, &control.good, sizeof control.good);
    word[SCALE] = trainer->precision == EXPHIL_PRECISION_F16 ? xph_hash_end(&scale) : 0;
    word[WEIGHTS] = xph_hash_end(&weights);
    word[MOMENTS] = xph_hash_end(&moments);
    return EXPHIL_OK;
}

/* One order of one joint batch is dealt to all ranks, each lane to one of them. */
exphil_status xph_ranks_lanes_check(const exphil_trainer *trainer, exphil_error *error)
{
    const exphil_communicator *with = &trainer->communicator;
    int64_t first, count;
    if (!trainer->prefetcher) return EXPHIL_OK;
    const exphil_sampling *sampling = xph_prefetcher_sampling(trainer->prefetcher);
    XPH_TRY(exphil_rank_lanes(sampling->batch, with->rank, with->ranks, &first, &count, error));
    if (sampling->first_lane == first && sampling->lane_count == count) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_MISMATCH,
                    "prefetcher has %lld lanes from lane %lld on, rank %d of %d has %lld from %lld on "
                    "(exphil_rank_lanes)",
                    (long long)sampling->lane_count, (long long)sampling->first_lane, with->rank, with->ranks,
                    (long long)count, (long long)first);
}

static exphil_status own_words(const exphil_trainer *trainer, uint64_t word[WORDS], exphil_error *error)
{
    XPH_TRY(xph_ranks_lanes_check(trainer, error));
    word[PLAYED] = (uint64_t)trainer->as_played;
    word[PROCESSOR] = processor(trainer);
    word[COUNT] = (uint64_t)xph_settings_values(trainer, word + SETTINGS);
    return hash_arenas(trainer, word, error);
}

/* Cut where a character begins. */
static void take_file(const char *given, char file[sizeof((facts *)0)->file])
{
    const size_t most = sizeof((facts *)0)->file - 1, bytes = strlen(given);
    const char *from = given + (bytes > most ? bytes - most : 0);
    while (((unsigned char)*from & 0xC0) == 0x80) from++;
    memcpy(file, from, strlen(from));
}

static void own_facts(const exphil_trainer *trainer, facts *own)
{
    const exphil_spec *spec = xph_model_spec(trainer->model);
    snprintf(own->layout, sizeof own->layout, "%s", spec->layout);
    snprintf(own->codec, sizeof own->codec, "%s", spec->codec);
    if (!trainer->prefetcher) return;
    const exphil_dataset *dataset = xph_prefetcher_dataset(trainer->prefetcher);
    const char *file = xph_dataset_file(dataset);
    own->games = xph_dataset_games(dataset);
    own->episodes = xph_dataset_episodes(dataset);
    own->frames = xph_dataset_frames(dataset);
    if (file) take_file(file, own->file);
}

/* ---- what differs --------------------------------------------------------------------------------------------------- */

enum { SHOWN = sizeof((facts *)0)->file + 8 };

static const char *show_file(char text[SHOWN], const facts *f)
{
    if (f->file[0])
        snprintf(text, SHOWN, " (\"%.*s\")", (int)sizeof f->file - 1, f->file);
    else
        text[0] = 0;
    return text;
}

static exphil_status counts_differ(const char *what, int64_t count, int64_t first, const facts *f,
                                   const facts *zero, int32_t rank, exphil_error *error)
{
    char own_file[SHOWN], first_file[SHOWN];
    return xph_fail(error, EXPHIL_E_MISMATCH, "rank %d has %lld %s of data%s, rank 0 has %lld%s", rank,
                    (long long)count, what, show_file(own_file, f), (long long)first,
                    show_file(first_file, zero));
}

/* Counts tell more than a hash. */
static exphil_status data_differs(const paper *own, const paper *first, int i, int32_t rank,
                                  exphil_error *error)
{
    const facts *f = &own->facts, *zero = &first->facts;
    char own_file[SHOWN], first_file[SHOWN];
    if (f->games != zero->games) return counts_differ("games", f->games, zero->games, f, zero, rank, error);
    if (f->episodes != zero->episodes)
        return counts_differ("episodes", f->episodes, zero->episodes, f, zero, rank, error);
    if (f->frames != zero->frames)
        return counts_differ("frames", f->frames, zero->frames, f, zero, rank, error);
    return xph_fail(error, EXPHIL_E_MISMATCH,
                    "rank %d has other rows of data%s than rank 0%s: dataset %016llx, not %016llx", rank,
                    show_file(own_file, f), show_file(first_file, zero), (unsigned long long)own->word[i],
                    (unsigned long long)first->word[i]);
}

static exphil_status spec_differs(const paper *own, const paper *first, int i, int32_t rank,
                                  exphil_error *error)
{
    const facts *f = &own->facts, *zero = &first->facts;
    if (memcmp(f->layout, zero->layout, sizeof f->layout) || memcmp(f->codec, zero->codec, sizeof f->codec))
        return xph_fail(error, EXPHIL_E_MISMATCH, "rank %d has a model of %.31s/%.31s, rank 0 of %.31s/%.31s",
                        rank, f->layout, f->codec, zero->layout, zero->codec);
    return xph_fail(error, EXPHIL_E_MISMATCH,
                    "rank %d has a model of other floats, ids or heads than rank 0: model.spec %016llx, not "
                    "%016llx",
                    rank, (unsigned long long)own->word[i], (unsigned long long)first->word[i]);
}

/* The first rank that differs, and in what first. */
static exphil_status compare(const exphil_trainer *trainer, const paper *of, exphil_error *error)
{
    for (int32_t r = 1; r < trainer->communicator.ranks; r++)
        for (int i = 0; i < WORDS; i++) {
            if (of[r].word[i] == of[0].word[i]) continue;
            if (name[i]) return xph_fail(error, EXPHIL_E_MISMATCH, "rank %d has %s than rank 0", r, name[i]);
            const char *setting = xph_settings_name(trainer, i - SETTINGS);
            if (strcmp(setting, "dataset") == 0) return data_differs(&of[r], &of[0], i, r, error);
            if (strcmp(setting, "model.spec") == 0) return spec_differs(&of[r], &of[0], i, r, error);
            return xph_settings_differ(trainer, i - SETTINGS, of[r].word[i], of[0].word[i], r, error);
        }
    return EXPHIL_OK;
}

/* As EXPHIL_VERSION has it. A rank may say anything. */
static uint32_t version_of(const struct xph_said *said)
{
    return said->number[0] >= 0.0 && said->number[0] < 1e9 ? (uint32_t)said->number[0] : 0;
}

/* Comes before all else is exchanged, of which another version may have more or less. */
static exphil_status same_version(const exphil_trainer *trainer, exphil_error *error)
{
    const uint32_t first = version_of(&trainer->said[0]);
    for (int32_t r = 1; r < trainer->communicator.ranks; r++) {
        const uint32_t own = version_of(&trainer->said[r]);
        if (own != first)
            return xph_fail(
                error, EXPHIL_E_MISMATCH, "rank %d has version %u.%u.%u of the library, rank 0 has %u.%u.%u",
                r, own / 10000, own / 100 % 100, own % 100, first / 10000, first / 100 % 100, first % 100);
    }
    return EXPHIL_OK;
}

/* Numbers of which a sum tells in which order it was taken: 1 is lost beside the first, 1 + 1 is not. */
static exphil_status probe(const exphil_trainer *trainer, exphil_error *error)
{
    const exphil_communicator *with = &trainer->communicator;
    const bool wide = trainer->optimizer->type == XPH_F64;
    const double first = wide ? 0x1p53 : 0x1p24, own = with->rank ? 1.0 : first,
                 expected = first + (double)(with->ranks - 2);
    const int64_t count = trainer->optimizer->weights;
    bool tree = true;
    if (!xph_is_sharded(trainer) || with->ranks < 3) return EXPHIL_OK;
    for (int64_t i = 0; i < count; i++) {
        if (wide)
            ((double *)trainer->shared)[i] = own;
        else
            ((float *)trainer->shared)[i] = (float)own;
    }
    XPH_TRY(
        xph_ranks_reduce(trainer, trainer->shared, count, wide ? EXPHIL_TYPE_F64 : EXPHIL_TYPE_F32, error));
    for (int64_t i = 0; i < count; i++)
        tree &= (wide ? ((double *)trainer->shared)[i] : (double)((float *)trainer->shared)[i]) == expected;
    return tree ? EXPHIL_OK
                : xph_fail(error, EXPHIL_E_UNSUPPORTED,
                           "communicator: shards of %d ranks need sums by a tree, ((0 + 1) + (2 + 3)) + ...",
                           with->ranks);
}

exphil_status xph_ranks_check(exphil_trainer *trainer, exphil_status status, exphil_error *error)
{
    const exphil_communicator *with = &trainer->communicator;
    const size_t bytes = (size_t)with->ranks * sizeof(paper);
    if (!xph_ranks_meet(trainer)) return status;
    const struct xph_said own = {.number = {(double)exphil_version()}};
    paper *of = status >= 0 ? xph_calloc(trainer->context, 1, bytes) : NULL;
    if (status >= 0)
        status = of ? own_words(trainer, of[with->rank].word, error) : xph_no_memory(bytes, error);
    if (status >= 0 && of) own_facts(trainer, &of[with->rank].facts);
    status = xph_ranks_say(trainer, XPH_CALL_CREATE, own, status, error);
    if (status >= 0) status = same_version(trainer, error);
    if (status >= 0) status = xph_ranks_join(trainer, of, bytes, EXPHIL_OK, error);
    if (status >= 0 && of) status = compare(trainer, of, error);
    if (status >= 0) status = probe(trainer, error);
    xph_free(trainer->context, of, bytes);
    return status;
}
