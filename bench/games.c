/* See games.h. A large corpus is made of a small one: each game many times with other seeds, which makes it another game;
 * its blocks are copied as they are. */
#include "games.h"
#include "say.h"
#include "system.h"

#include "games/format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BATCHES = 100, BATCH = 64, TIME = 60 };

/* ---- corpora --------------------------------------------------------------------------------------------- */

static exphil_status add_folder(exphil_games_writer *writer, const char *folder, int depth,
                                exphil_error *error)
{
    exphil_status status = EXPHIL_OK;
    system_folder *all = depth < 8 ? system_folder_open(folder) : NULL;
    for (const char *entry; all && status >= 0 && (entry = system_folder_next(all)) != NULL;) {
        char name[4096];
        size_t length = strlen(entry);
        if (entry[0] == '.') continue;
        if (snprintf(name, sizeof name, "%s/%s", folder, entry) >= (int)sizeof name) continue;
        if (length < 5 || strcmp(entry + length - 4, ".slp") != 0) {
            status = add_folder(writer, name, depth + 1, error);
            continue;
        }
        status = exphil_games_add(writer, name, NULL, error);
        if (status == EXPHIL_E_UNSUPPORTED || status == EXPHIL_E_FORMAT) status = EXPHIL_OK;
    }
    if (all) system_folder_close(all);
    return status;
}

/* All replays in a folder and below it that a corpus keeps. */
static exphil_status write_small(exphil_context *context, const char *folder, const char *path,
                                 exphil_error *error)
{
    exphil_games_writer *writer = NULL;
    exphil_games_info info = EXPHIL_GAMES_INFO_INIT;
    exphil_status status = exphil_games_create(context, path, NULL, &writer, error);
    if (status >= 0) status = add_folder(writer, folder, 0, error);
    if (status >= 0) status = exphil_games_finish(writer, &info, error);
    exphil_games_writer_destroy(writer);
    if (status >= 0 && info.games == 0) {
        snprintf(error->message, sizeof error->message, "%s holds no replay", folder);
        status = EXPHIL_E_FORMAT;
    }
    return status;
}

/* A file in the making. */
typedef struct large {
    xph_file_writer file;
    xph_game_entry *entries;
    xph_games_trailer trailer;
} large;

static exphil_status write_copy(large *to, const xph_game_front *front, const uint8_t *rest, size_t bytes,
                                uint32_t number, exphil_error *error)
{
    xph_game_entry entry = front->entry;
    size_t runs = entry.runs * sizeof *front->runs;
    xph_hasher hasher;
    entry.seed += number;
    entry.source_hash += number;
    entry.offset = to->file.written;
    entry.content_hash = xph_game_content(&entry, &front->start, front->places);
    xph_hash_begin(&hasher);
    xph_hash_add(&hasher, &entry, sizeof entry);
    xph_hash_add(&hasher, &front->start, sizeof front->start);
    xph_hash_add(&hasher, front->runs, runs);
    uint64_t hash = xph_hash_end(&hasher);
    XPH_TRY(xph_file_add(&to->file, &entry, sizeof entry, error));
    XPH_TRY(xph_file_add(&to->file, &front->start, sizeof front->start, error));
    XPH_TRY(xph_file_add(&to->file, front->runs, runs, error));
    XPH_TRY(xph_file_add(&to->file, &hash, sizeof hash, error));
    XPH_TRY(xph_file_add(&to->file, rest, bytes, error));
    to->entries[to->trailer.games++] = entry;
    to->trailer.frames += entry.frames;
    to->trailer.content_hash += xph_game_share(entry.content_hash);
    return EXPHIL_OK;
}

static exphil_status write_copies(large *to, const exphil_games *games, int64_t game, int64_t copies,
                                  exphil_error *error)
{
    xph_game_front *front;
    XPH_TRY(xph_game_front_read(games, game, &front, error));
    uint64_t head = xph_game_head_bytes(&front->entry);
    size_t bytes = front->entry.bytes - (size_t)head;
    uint8_t *rest = malloc(bytes);
    exphil_status status =
        rest ? xph_shared_read(front->file, front->at + head, rest, bytes, error) : EXPHIL_E_MEMORY;
    for (int64_t i = 0; status >= 0 && i < copies; i++)
        status = write_copy(to, front, rest, bytes, (uint32_t)(i * 77777 + 1), error);
    free(rest);
    xph_game_front_free(front);
    return status;
}

static exphil_status end_large(large *to, exphil_error *error)
{
    size_t bytes = (size_t)to->trailer.games * sizeof *to->entries;
    memcpy(to->trailer.magic, XPH_GAMES_TRAILER, sizeof to->trailer.magic);
    to->trailer.index = to->file.written;
    to->trailer.index_hash = xph_hash(to->entries, bytes);
    to->trailer.hash = xph_hash(&to->trailer, offsetof(xph_games_trailer, hash));
    XPH_TRY(xph_file_add(&to->file, to->entries, bytes, error));
    XPH_TRY(xph_file_add(&to->file, &to->trailer, sizeof to->trailer, error));
    return xph_file_commit(&to->file, error);
}

/* As many copies of each game as make so many frames. */
static exphil_status write_large(const exphil_games *games, int64_t frames, const char *path,
                                 exphil_error *error)
{
    exphil_context *context = xph_games_context(games);
    int64_t copies = frames / games->info.frames + 1;
    large to = {.entries = calloc((size_t)(copies * games->info.games), sizeof *to.entries)};
    xph_games_header header;
    if (!to.entries) return EXPHIL_E_MEMORY;
    exphil_status status = xph_shared_read(games->shards[0].file, 0, &header, sizeof header, error);
    if (status >= 0) status = xph_file_begin(context, path, &to.file, error);
    if (status >= 0) status = xph_file_add(&to.file, &header, sizeof header, error);
    for (int64_t i = 0; status >= 0 && i < games->info.games; i++)
        status = write_copies(&to, games, i, copies, error);
    if (status >= 0) status = end_large(&to, error);
    if (status < 0 && to.file.context) xph_file_cancel(&to.file);
    free(to.entries);
    return status;
}

/* ---- batches --------------------------------------------------------------------------------------------- */

typedef struct way {
    exphil_prefetcher *prefetcher;
    int64_t rows;
    bool failed;
} way;

/* Some batches more; an epoch that ends goes on with the next. */
static void take_batches(void *arg, int64_t calls)
{
    way *w = arg;
    for (int64_t i = 0; i < calls * BATCHES && !w->failed;) {
        exphil_batch batch = EXPHIL_BATCH_INIT;
        exphil_status status = exphil_prefetcher_next(w->prefetcher, &batch, NULL);
        w->failed = status < 0;
        i += status == EXPHIL_OK;
    }
}

static exphil_sampling sampling_of(int32_t workers)
{
    exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
    sampling.batch = BATCH;
    sampling.time = TIME;
    sampling.action_slots = 1;
    sampling.workers = workers;
    return sampling;
}

static exphil_status dataset_of(exphil_context *context, const exphil_games *games, exphil_dataset **dataset)
{
    exphil_status status = exphil_dataset_create(context, NULL, dataset, NULL);
    return status < 0 ? status : exphil_dataset_add_games(*dataset, games, NULL, NULL, NULL);
}

static bool time_batches(bench_report *report, const bench_options *o, const exphil_dataset *few,
                         const exphil_dataset *many)
{
    static const char *const how[] = {"1 worker", "2 workers", "1 worker, many games"};
    enum { WAYS = 3 };
    bench_effort effort = bench_effort_of(o);
    way ways[WAYS] = {{NULL, 0, false}};
    bench_work work[WAYS];
    bool good = true;
    effort.round_ns *= 5;
    bench_roam(); /* the workers inherit what this thread may use, and it does next to nothing */
    for (int i = 0; i < WAYS; i++) {
        exphil_sampling sampling = sampling_of(i == 1 ? 2 : 1);
        good =
            good && exphil_prefetcher_create(i == 2 ? many : few, &sampling, &ways[i].prefetcher, NULL) >= 0;
        work[i] = (bench_work){.run = take_batches, .arg = &ways[i], .calls = 1};
    }
    good = good && bench_measure(work, WAYS, &effort);
    bench_stay(bench_where());
    for (int i = 0; i < WAYS; i++) {
        if (good && !ways[i].failed) {
            bench_row row = {.subject = "games to batches", .time = bench_stats_of(&work[i])};
            snprintf(row.how, sizeof row.how, "%s", how[i]);
            snprintf(row.what, sizeof row.what, "%d x %d x %d, melee2", BATCHES, BATCH, TIME);
            row.items = (double)BATCHES * BATCH * TIME;
            row.item = "row";
            row.bar_ns = row.items * 1e3 / 0.9;
            snprintf(row.bar, sizeof row.bar, "0.9 M rows/s");
            bench_report_row(report, &row);
        }
        good = good && !ways[i].failed;
        exphil_prefetcher_destroy(ways[i].prefetcher);
        bench_work_free(&work[i]);
    }
    return good;
}

typedef struct opening {
    exphil_context *context;
    const char *path;
    bool failed;
} opening;

/* From the file to the first batch. */
static void open_all(void *arg, int64_t calls)
{
    opening *opened = arg;
    for (int64_t i = 0; i < calls; i++) {
        exphil_games *games = NULL;
        exphil_dataset *dataset = NULL;
        exphil_prefetcher *prefetcher = NULL;
        exphil_sampling sampling = sampling_of(1);
        exphil_batch batch = EXPHIL_BATCH_INIT;
        if (exphil_games_open(opened->context, opened->path, &games, NULL) < 0 ||
            dataset_of(opened->context, games, &dataset) < 0 ||
            exphil_prefetcher_create(dataset, &sampling, &prefetcher, NULL) < 0 ||
            exphil_prefetcher_next(prefetcher, &batch, NULL) < 0)
            opened->failed = true;
        exphil_prefetcher_destroy(prefetcher);
        exphil_dataset_destroy(dataset);
        exphil_games_destroy(games);
    }
}

static bool time_opening(bench_report *report, const bench_options *o, exphil_context *context,
                         const char *path, const exphil_games *games)
{
    opening opened = {context, path, false};
    bench_work work = {.run = open_all, .arg = &opened, .calls = 1};
    bench_effort effort = bench_effort_of(o);
    if (!bench_measure(&work, 1, &effort) || opened.failed) return false;
    bench_row row = {.subject = "games opened, first batch", .time = bench_stats_of(&work), .bar_ns = 1e9};
    snprintf(row.what, sizeof row.what, "%lld games, %.3g M frames", (long long)games->info.games,
             (double)games->info.frames * 1e-6);
    snprintf(row.bar, sizeof row.bar, "1 s");
    bench_report_row(report, &row);
    bench_work_free(&work);
    return true;
}

/* ---- all ------------------------------------------------------------------------------------------------- */

static bool measure(bench_report *report, const bench_options *o, exphil_context *context, const char *small,
                    const char *large_path, exphil_error *error)
{
    exphil_games *few = NULL, *many = NULL;
    exphil_dataset *rows = NULL, *more = NULL;
    int64_t frames = o->large_frames ? o->large_frames
                     : o->quick      ? 1
                                     : (int64_t)(1e7 * (o->effort > 0 ? o->effort : 1));
    bool good = write_small(context, o->replays, small, error) >= 0 &&
                exphil_games_open(context, small, &few, error) >= 0 &&
                write_large(few, frames, large_path, error) >= 0 &&
                exphil_games_open(context, large_path, &many, error) >= 0 &&
                dataset_of(context, few, &rows) >= 0 && dataset_of(context, many, &more) >= 0;
    good = good && time_batches(report, o, rows, more) && time_opening(report, o, context, large_path, many);
    exphil_dataset_destroy(rows);
    exphil_dataset_destroy(more);
    exphil_games_destroy(few);
    exphil_games_destroy(many);
    return good;
}

bool bench_games(bench_report *report, const bench_options *o, exphil_context *context)
{
    char small[4096], many[4096];
    exphil_error error = EXPHIL_ERROR_INIT;
    if (!bench_wanted(o, "games to batches", "games opened, first batch")) return true;
    if (!o->replays) {
        bench_report_note(report, "SKIPPED: games to batches: no folder given (--replays)");
        return true;
    }
    snprintf(small, sizeof small, "%s/exphil-bench-%ld.games", bench_folder(o), (long)getpid());
    snprintf(many, sizeof many, "%s/exphil-bench-%ld-many.games", bench_folder(o), (long)getpid());
    bool good = measure(report, o, context, small, o->large ? o->large : many, &error);
    if (!good) bench_say(NULL, error.message);
    (void)system_remove(small);
    if (!o->large) (void)system_remove(many);
    return good;
}
