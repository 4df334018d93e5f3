/* `exphil bench data`: how fast replays become rows, how soon training starts on a large corpus, how fast a
 * corpus is read, how fast rows become batches. */
#include "bench.h"
#include "frames.h"
#include "games.h"
#include "say.h"
#include "system.h"

#include <exphil/exphil.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- replays ------------------------------------------------------------------------------------------- */

enum { REPLAYS_MOST = 400 };

typedef struct replay_pile {
    void *data[REPLAYS_MOST];
    size_t bytes[REPLAYS_MOST];
    int count;
    int64_t frames; /* of rows made in one pass */
    exphil_context *context;
    bool failed;
} replay_pile;

static bool add_file(replay_pile *pile, const char *path)
{
    FILE *f = system_open(path, "rb");
    if (!f) return false;
    if (fseek(f, 0, SEEK_END) != 0) return fclose(f), false;
    long size = ftell(f);
    rewind(f);
    void *data = size > 0 ? malloc((size_t)size) : NULL;
    bool good = data && fread(data, 1, (size_t)size, f) == (size_t)size;
    fclose(f);
    if (!good) return free(data), false;
    pile->data[pile->count] = data;
    pile->bytes[pile->count++] = (size_t)size;
    return true;
}

static void search(replay_pile *pile, const char *folder, int depth)
{
    system_folder *all = system_folder_open(folder);
    for (const char *name; all && pile->count < REPLAYS_MOST && (name = system_folder_next(all));) {
        char path[4096];
        system_facts facts;
        size_t length = strlen(name);
        if (name[0] == '.' || snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
            continue;
        if (!system_look(path, &facts)) continue;
        if (facts.folder && depth < 4) search(pile, path, depth + 1);
        if (facts.regular && length > 4 && strcmp(name + length - 4, ".slp") == 0) (void)add_file(pile, path);
    }
    if (all) system_folder_close(all);
}

/* All of the pile from memory into a new dataset; replays that no dataset wants (no human) cost nothing further. */
static void import(void *arg, int64_t calls)
{
    replay_pile *pile = arg;
    for (int64_t c = 0; c < calls; c++) {
        exphil_dataset *dataset = NULL;
        pile->frames = 0;
        if (exphil_dataset_create(pile->context, NULL, &dataset, NULL) < 0) {
            pile->failed = true;
            return;
        }
        for (int i = 0; i < pile->count; i++) {
            exphil_replay_result result = EXPHIL_REPLAY_RESULT_INIT;
            if (exphil_dataset_add_replay_memory(dataset, pile->data[i], pile->bytes[i], NULL, &result,
                                                 NULL) >= 0)
                pile->frames += result.frames;
        }
        exphil_dataset_destroy(dataset);
    }
}

static bool time_import(bench_report *report, const bench_options *o, replay_pile *pile)
{
    bench_work work = {.run = import, .arg = pile, .calls = 1};
    bench_effort effort = bench_effort_of(o);
    effort.round_ns *= 10;
    if (!bench_measure(&work, 1, &effort) || pile->failed) return false;
    bench_row row = {.subject = "replays to rows", .how = "melee2", .time = bench_stats_of(&work)};
    snprintf(row.what, sizeof row.what, "%d replays, %lld frames", pile->count, (long long)pile->frames);
    row.items = (double)pile->frames;
    row.item = "frame";
    row.bar_ns = (double)pile->frames * 1e3;
    snprintf(row.bar, sizeof row.bar, "1 us a frame");
    bench_work_free(&work);
    if (pile->frames > 0) bench_report_row(report, &row);
    return true;
}

static bool replays(bench_report *report, const bench_options *o, exphil_context *context)
{
    static replay_pile pile;
    pile = (replay_pile){.context = context};
    if (!bench_wanted(o, "replays to rows", "")) return true;
    if (o->replays) search(&pile, o->replays, 0);
    if (pile.count == 0) {
        bench_report_note(report, o->replays ? "SKIPPED: replays to rows: no .slp in that folder"
                                             : "SKIPPED: replays to rows: no folder given (--replays)");
        return true;
    }
    bool good = time_import(report, o, &pile);
    for (int i = 0; i < pile.count; i++) free(pile.data[i]);
    return good;
}

/* ---- a corpus ------------------------------------------------------------------------------------------ */

enum { EPISODE = 10000 };

typedef struct corpus {
    exphil_context *context;
    exphil_dataset *dataset; /* as opened, for reading */
    const char *path;
    float *floats;
    int32_t *ids, actions[EXPHIL_HEADS_MAX];
    int64_t frames, floats_each, ids_each, heads, at;
    float sum;
    bool failed;
} corpus;

/* Made-up games, encoded like real ones. */
static exphil_status fill(corpus *c, exphil_dataset *dataset, exphil_error *error)
{
    int32_t *actions = calloc((size_t)(EPISODE * c->heads), sizeof *actions);
    exphil_status status = actions ? EXPHIL_OK : EXPHIL_E_MEMORY;
    for (int64_t f = 0; status >= 0 && f < EPISODE; f++) {
        exphil_melee_frame frame;
        bench_frame(&frame, f);
        status = exphil_melee_encode("melee2", &frame, c->floats + f * c->floats_each,
                                     c->ids + f * c->ids_each, error);
        for (int64_t h = 0; h < c->heads; h++) actions[f * c->heads + h] = (int32_t)((f / 20 + h) % 4);
    }
    for (int64_t done = 0; status >= 0 && done < c->frames; done += EPISODE)
        status =
            exphil_dataset_add_rows(dataset, (uint64_t)done + 1, EPISODE, c->floats, c->ids, actions, error);
    free(actions);
    return status;
}

static exphil_status make_rows(corpus *c, exphil_dataset **dataset, exphil_error *error)
{
    exphil_spec spec = EXPHIL_SPEC_INIT;
    exphil_status status = exphil_melee_spec(NULL, NULL, &spec, error);
    if (status < 0) return status;
    c->floats_each = spec.float_count, c->ids_each = spec.id_count, c->heads = spec.head_count;
    c->floats = bench_memory((size_t)(EPISODE * c->floats_each) * sizeof(float));
    c->ids = bench_memory((size_t)(EPISODE * c->ids_each) * sizeof(int32_t));
    status = exphil_dataset_create(c->context, NULL, dataset, error);
    return status < 0 ? status : fill(c, *dataset, error);
}

static exphil_status make_corpus(corpus *c, exphil_error *error)
{
    exphil_dataset *dataset = NULL;
    exphil_status status = make_rows(c, &dataset, error);
    if (status >= 0) status = exphil_dataset_save(dataset, c->path, error);
    exphil_dataset_destroy(dataset);
    return status;
}

/* From the file to the first batch, as a training run begins. */
static void first_batch(void *arg, int64_t calls)
{
    corpus *c = arg;
    for (int64_t i = 0; i < calls; i++) {
        exphil_dataset *dataset = NULL;
        exphil_prefetcher *prefetcher = NULL;
        exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
        exphil_batch batch = EXPHIL_BATCH_INIT;
        sampling.batch = 64;
        sampling.time = 60;
        sampling.action_slots = 1;
        if (exphil_dataset_open(c->context, c->path, &dataset, NULL) < 0 ||
            exphil_prefetcher_create(dataset, &sampling, &prefetcher, NULL) < 0 ||
            exphil_prefetcher_next(prefetcher, &batch, NULL) < 0)
            c->failed = true;
        exphil_prefetcher_destroy(prefetcher);
        exphil_dataset_destroy(dataset);
    }
}

/* Every frame of the corpus once. */
static void read_all(void *arg, int64_t calls)
{
    corpus *c = arg;
    for (int64_t i = 0; i < calls; i++)
        for (int64_t f = 0; f < c->frames; f++)
            if (exphil_dataset_frame(c->dataset, f, c->floats, c->ids, c->actions, NULL) < 0)
                c->failed = true;
}

static bool time_corpus(bench_report *report, const bench_options *o, corpus *c)
{
    char what[72];
    bench_effort effort = bench_effort_of(o);
    snprintf(what, sizeof what, "%.2g M frames", (double)c->frames * 1e-6);
    bench_work open = {.run = first_batch, .arg = c, .calls = 1},
               read = {.run = read_all, .arg = c, .calls = 1};
    if (!bench_measure(&open, 1, &effort) || c->failed) return false;
    bench_row row = {.subject = "corpus opened, first batch", .time = bench_stats_of(&open), .bar_ns = 50e6};
    snprintf(row.what, sizeof row.what, "%s", what);
    snprintf(row.bar, sizeof row.bar, "50 ms");
    bench_report_row(report, &row);
    bench_work_free(&open);
    if (exphil_dataset_open(c->context, c->path, &c->dataset, NULL) < 0) return false;
    effort.rounds = o->quick ? 1 : 3;
    bool good = bench_measure(&read, 1, &effort) && !c->failed;
    double bytes = (double)c->frames * (double)((c->floats_each + c->ids_each + c->heads) * 4);
    row = (bench_row){
        .subject = "corpus read, all frames", .time = bench_stats_of(&read), .items = bytes, .item = "byte"};
    snprintf(row.what, sizeof row.what, "%s", what);
    row.floor_ns = bytes / bench_floors_read(&o->floors, bytes);
    snprintf(row.floor_of, sizeof row.floor_of, "reading %.3g MB", bytes * 1e-6);
    if (good) bench_report_row(report, &row);
    bench_work_free(&read);
    exphil_dataset_destroy(c->dataset);
    return good;
}

/* ---- batches -------------------------------------------------------------------------------------------- */

typedef struct batches {
    exphil_prefetcher *prefetcher;
    bool failed;
} batches;

/* One epoch, as fast as the thread fills batches. */
static void take_epoch(void *arg, int64_t calls)
{
    batches *b = arg;
    for (int64_t i = 0; i < calls && !b->failed;) {
        exphil_batch batch = EXPHIL_BATCH_INIT;
        exphil_status status = exphil_prefetcher_next(b->prefetcher, &batch, NULL);
        b->failed = status < 0;
        i += status == EXPHIL_END;
    }
}

static bool time_batches(bench_report *report, const bench_options *o, const corpus *c,
                         const exphil_dataset *dataset)
{
    static const double share[] = {0, 0.5, 1};
    static const char *const how[] = {"as they are", "mirror 0.5", "mirror 1"};
    enum { WAYS = 3 };
    bench_effort effort = bench_effort_of(o);
    batches ways[WAYS] = {{NULL, false}};
    bench_work work[WAYS];
    bool good = true;
    for (int i = 0; i < WAYS; i++) {
        exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
        sampling.batch = 64;
        sampling.action_slots = 1;
        sampling.mirror = share[i];
        good = good && exphil_prefetcher_create(dataset, &sampling, &ways[i].prefetcher, NULL) >= 0;
        work[i] = (bench_work){.run = take_epoch, .arg = &ways[i], .calls = 1};
    }
    good = good && bench_measure(work, WAYS, &effort);
    for (int i = 0; i < WAYS; i++) {
        if (good && !ways[i].failed) {
            bench_row row = {.subject = "rows to batches", .time = bench_stats_of(&work[i])};
            snprintf(row.how, sizeof row.how, "%s", how[i]);
            snprintf(row.what, sizeof row.what, "64 x 60, melee2, %.2g M frames", (double)c->frames * 1e-6);
            row.items = (double)c->frames;
            row.item = "frame";
            bench_report_row(report, &row);
        }
        good = good && !ways[i].failed;
        exphil_prefetcher_destroy(ways[i].prefetcher);
        bench_work_free(&work[i]);
    }
    return good;
}

/* Rows in memory, of made-up games. */
static bool filling(bench_report *report, const bench_options *o, exphil_context *context)
{
    corpus c = {.context = context, .frames = (o->quick ? 2 : 20) * EPISODE};
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_dataset *dataset = NULL;
    if (!bench_wanted(o, "rows to batches", "")) return true;
    size_t mark = bench_memory_mark();
    bool good = make_rows(&c, &dataset, &error) >= 0;
    if (!good) bench_say(NULL, error.message);
    good = good && time_batches(report, o, &c, dataset);
    exphil_dataset_destroy(dataset);
    bench_memory_release(mark);
    return good;
}

static bool corpora(bench_report *report, const bench_options *o, exphil_context *context)
{
    char path[4096];
    exphil_error error = EXPHIL_ERROR_INIT;
    corpus c = {.context = context, .path = path, .frames = o->quick ? EPISODE : 1000000};
    if (!bench_wanted(o, "corpus opened, first batch", "corpus read, all frames")) return true;
    snprintf(path, sizeof path, "%s/exphil-bench-%ld.corpus", bench_folder(o), (long)getpid());
    size_t mark = bench_memory_mark();
    bool made = make_corpus(&c, &error) >= 0;
    if (!made) bench_say(NULL, error.message);
    bool good = made && time_corpus(report, o, &c);
    (void)system_remove(path);
    bench_memory_release(mark);
    return good;
}

bool bench_data(bench_report *report, const bench_options *options)
{
    exphil_context *context = NULL;
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    config.threads = 1;
    config.cpu_isa = options->isa;
    if (exphil_context_create(&config, &context, &error) < 0) {
        bench_say(NULL, error.message);
        return false;
    }
    bool good = replays(report, options, context);
    good = corpora(report, options, context) && good;
    good = filling(report, options, context) && good;
    good = bench_games(report, options, context) && good;
    exphil_context_destroy(context);
    return good;
}
