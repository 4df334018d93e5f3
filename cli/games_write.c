/* `exphil corpus`: replays and corpora of games become one corpus of games, or what of them fits does. What cannot be read is
 * counted by its reason and never stops the rest. */
#include "commands.h"
#include "files.h"
#include "games.h"
#include "scratch.h"
#include "stop.h"
#include "system.h"
#include "tally.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct writing {
    const games_options *options;
    exphil_context *context;
    exphil_games_writer *output, *writer; /* of the corpus; what replays are added to */
    scratch scratch;                      /* of a selection: what it is made from, */
    exphil_games *from;                   /* opened; or the only corpus that was given */
    games_taken taken;
    exphil_games_info total; /* of the corpus in the end */
    FILE *report;
    file_list list;
    tally reasons;
    int64_t done; /* of the list */
    int64_t files, games, frames, truncated, duplicates, refused;
    int64_t elsewhere; /* files of other shares */ /* an archive holds many files */
    bool named_refused, stopped;
    system_facts out; /* all zero: not there yet */
    progress bar;
} writing;

/* ---- refusals ------------------------------------------------------------------------------------------ */

/* A field of the report: what would end it is written as C does. */
static void put_field(FILE *to, const char *text, char end)
{
    for (; *text; text++) {
        static const char special[] = "\t\n\r\\";
        static const char *const written[] = {"\\t", "\\n", "\\r", "\\\\"};
        const char *found = strchr(special, *text);
        if (found)
            fputs(written[found - special], to);
        else
            putc(*text, to);
    }
    putc(end, to);
}

static void report(writing *w, const char *result, int64_t frames, const char *path, int64_t game,
                   const char *reason, uint64_t hash)
{
    if (!w->report || w->options->select) return;
    fprintf(w->report, "%s\t%" PRId64 "\t", result, frames);
    put_field(w->report, path, '\t');
    if (game >= 0) fprintf(w->report, "%" PRId64, game);
    putc('\t', w->report);
    put_field(w->report, reason, '\t');
    if (hash) fprintf(w->report, "%016" PRIx64, hash);
    putc('\n', w->report);
}

/* ---- reading ------------------------------------------------------------------------------------------- */

/* Not this file's fault: the rest would fail too. What is being written has a name that no input has. */
static bool is_fatal(const writing *w, const exphil_error *error)
{
    bool lost = w->scratch.context ? scratch_failed(error) : strstr(error->message, ".exphil-tmp\"") != NULL;
    return error->status == EXPHIL_E_MEMORY || error->status == EXPHIL_E_CANCELLED ||
           error->status == EXPHIL_E_STATE || error->status == EXPHIL_E_BUSY ||
           error->status == EXPHIL_E_INTERNAL || (error->status == EXPHIL_E_IO && lost);
}

static bool no_memory(void)
{
    fprintf(stderr, "exphil: no memory for the reasons\n");
    return false;
}

static bool refuse(writing *w, const file_item *from, int64_t game, const char *reason)
{
    w->refused++;
    w->named_refused = w->named_refused || (from->named && game < 0); /* a corpus gives what is whole */
    report(w, "refused", 0, from->name, game, reason, 0);
    return tally_reason(&w->reasons, reason, from->name) || no_memory();
}

/* What the library takes for a damaged replay may be a good file of another kind. */
static const char *why_not(const file_item *from, const exphil_error *error)
{
    file_kind kind = from->data ? FILE_REPLAY : file_kind_of(from->path);
    if (kind == FILE_UNREADABLE) return strerror(errno); /* as the list says it */
    if (kind == FILE_DEVICE) return "this is neither a regular file nor a folder";
    if (kind == FILE_CORPUS) return "this is a corpus of rows, not of games";
    return kind == FILE_WEIGHTS ? "these are weights, not a replay" : error_reason(error, from->path);
}

/* Of a folder, what was whole before is there. */
static bool complain_of_output(const writing *w, const exphil_error *error)
{
    exphil_games *games = NULL;
    exphil_games_info info = EXPHIL_GAMES_INFO_INIT;
    complain(w->options->out, error);
    if (w->out.folder && exphil_games_open(w->context, w->options->out, &games, NULL) >= 0 &&
        exphil_games_query(games, &info, NULL) >= 0)
        fprintf(stderr, "exphil: %s holds %" PRId64 " whole game%s; the same command adds the rest\n",
                w->options->out, info.games, plural(info.games));
    exphil_games_destroy(games);
    return false;
}

/* game: of a corpus, else -1. False: nothing more can be added. */
static bool took(writing *w, const file_item *from, int64_t game, exphil_status status,
                 const exphil_games_added *added, const exphil_error *error)
{
    if (status < 0 && is_fatal(w, error)) {
        w->stopped = error->status == EXPHIL_E_CANCELLED;
        if (w->stopped) return false;
        return w->scratch.context && scratch_failed(error) ? scratch_complain(&w->scratch, error)
                                                           : complain_of_output(w, error);
    }
    if (status < 0) return refuse(w, from, game, why_not(from, error));
    if (added->duplicate) {
        w->duplicates++;
        report(w, "duplicate", added->frames, from->name, game,
               added->content_hash ? "the same game is there" : "the same file was added",
               added->source_hash);
        return true;
    }
    w->games++;
    w->frames += added->frames;
    w->truncated += added->truncated;
    report(w, "added", added->frames, from->name, game, added->truncated ? "the replay ends early" : "",
           added->source_hash);
    return true;
}

static void show(writing *w, bool last)
{
    char text[80];
    snprintf(text, sizeof text, "%" PRId64 " game%s, %" PRId64 " frames", w->games, plural(w->games),
             w->frames);
    progress_count(&w->bar, w->done, "files", text, last);
}

static bool add_corpus(writing *w, const file_item *from);

/* A folder of which a file cannot be opened gives what the others hold. */
static bool add_each(writing *w, const file_item *from)
{
    char **names;
    int count = system_names(from->path, &names);
    bool fine = count >= 0 || no_memory();
    for (int i = 0; i < count; i++) {
        char path[4096];
        int length = snprintf(path, sizeof path, "%s/%s", from->path, names[i]);
        file_item item = *from;
        item.path = item.name = path;
        if (fine && length < (int)sizeof path && name_ends(path, ".games")) fine = add_corpus(w, &item);
    }
    system_names_free(names, count);
    return fine;
}

static bool add_corpus(writing *w, const file_item *from)
{
    exphil_games *games = NULL;
    exphil_games_info info = EXPHIL_GAMES_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    system_facts facts;
    exphil_status status = exphil_games_open(w->context, from->path, &games, &error);
    if (status < 0 && system_look(from->path, &facts) && facts.folder && !is_fatal(w, &error))
        return add_each(w, from);
    if (status >= 0) status = exphil_games_query(games, &info, &error);
    bool fine = status >= 0 || took(w, from, -1, status, NULL, &error);
    for (int64_t i = 0; fine && status >= 0 && i < info.games; i++) {
        exphil_games_added added = EXPHIL_GAMES_ADDED_INIT;
        fine = took(w, from, i, exphil_games_copy(w->writer, games, i, &added, &error), &added, &error);
        if (stop_asked()) {
            w->stopped = true;
            fine = false;
        }
        show(w, false);
    }
    exphil_games_destroy(games);
    return fine;
}

/* What the folder that games are added to holds of them is known. */
static bool is_own(const writing *w, const file_item *from)
{
    return from->games && w->out.folder && file_within(from->path, w->options->out);
}

/* By its name alone, without folder and archive: whoever makes the parts, and in whatever order, deals a file to the same. FNV-1a
 * (Fowler, Noll, Vo). */
static bool is_elsewhere(const writing *w, const file_item *from)
{
    const char *name = from->name;
    uint64_t hash = 14695981039346656037u;
    for (const char *c = from->name; *c; c++)
        if ((*c == '/' || *c == ':') && c[1]) name = c + 1;
    for (; *name; name++) hash = (hash ^ (unsigned char)*name) * 1099511628211u;
    const uint64_t shares = (uint64_t)w->options->shares;
    return shares && (hash ^ hash >> 32) % shares != (uint64_t)w->options->share;
}

static bool add_item(void *user, const file_item *from)
{
    writing *w = user;
    exphil_games_added added = EXPHIL_GAMES_ADDED_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    bool fine;
    if (stop_asked()) return false;
    if (is_own(w, from)) return true;
    if (is_elsewhere(w, from)) {
        w->elsewhere++;
        return true;
    }
    if (from->problem)
        fine = refuse(w, from, -1, from->problem);
    else if (from->games)
        fine = add_corpus(w, from);
    else if (from->data)
        fine = took(w, from, -1, exphil_games_add_memory(w->writer, from->data, from->bytes, &added, &error),
                    &added, &error);
    else
        fine = took(w, from, -1, exphil_games_add(w->writer, from->path, &added, &error), &added, &error);
    w->files += fine;
    show(w, false);
    return fine;
}

/* False: said on stderr what went wrong with the corpus itself. A stop is no failure. */
static bool add_all(writing *w)
{
    const file_list *list = &w->list;
    bool fine = true;
    progress_begin(&w->bar, 0, (int64_t)list->count, w->options->quiet || w->options->json);
    w->bar.shown_ns = w->bar.began_ns; /* short runs need no line but the last */
    for (size_t i = 0; fine && i < list->count && !stop_asked(); i++) {
        fine = file_visit(&list->of[i], w->options->files, add_item, w);
        w->done += fine;
    }
    show(w, true);
    w->stopped = w->stopped || (stop_asked() && w->done < (int64_t)list->count);
    return fine || w->stopped;
}

/* ---- the end ------------------------------------------------------------------------------------------- */

static double bytes_a_frame(const writing *w)
{
    return w->total.frames ? (double)w->total.bytes / (double)w->total.frames : 0.0;
}

static json_t *summary_json(const writing *w)
{
    json_t *reasons = json_object();
    for (size_t i = 0; i < w->reasons.count; i++)
        json_object_set_new(reasons, w->reasons.of[i].word, json_integer((json_int_t)w->reasons.of[i].count));
    json_t *total = json_pack("{s:I,s:I,s:I,s:f}", "games", (json_int_t)w->total.games, "frames",
                              (json_int_t)w->total.frames, "bytes", (json_int_t)w->total.bytes,
                              "bytes_per_frame", bytes_a_frame(w));
    json_t *object = json_pack(
        "{s:o,s:I,s:I,s:I,s:I,s:I,s:I,s:o,s:I,s:I,s:o,s:b}", "corpus", path_json(w->options->out), "files",
        (json_int_t)w->files, "games", (json_int_t)w->games, "frames", (json_int_t)w->frames, "ended_early",
        (json_int_t)w->truncated, "duplicates", (json_int_t)w->duplicates, "refused", (json_int_t)w->refused,
        "reasons", reasons, "left_out", (json_int_t)w->list.excluded, "repeated",
        (json_int_t)w->list.repeated, "total", total, "stopped", w->stopped);
    if (w->options->shares)
        json_object_set_new(object, "of_other_shares", json_integer((json_int_t)w->elsewhere));
    if (w->options->select) json_object_set_new(object, "selected", games_taken_json(&w->taken));
    return object;
}

static void print_reasons(const writing *w)
{
    for (size_t i = 0; i < w->reasons.count; i++) {
        printf("  %10" PRId64 "  ", w->reasons.of[i].count);
        tally_print(stdout, &w->reasons.of[i]);
    }
}

static void print_summary(const writing *w)
{
    bool select = w->options->select;
    printf("files read      %10" PRId64 "\n", w->files);
    printf("%s     %10" PRId64 "   of %" PRId64 " frames\n", select ? "games read " : "games added", w->games,
           w->frames);
    if (w->truncated)
        printf("  end early     %10" PRId64 "   the frames before their end %s\n", w->truncated,
               select ? "count" : "were added");
    printf("duplicates      %10" PRId64 "\n", w->duplicates);
    printf("refused         %10" PRId64 "\n", w->refused);
    print_reasons(w);
    if (w->list.excluded) printf("left out        %10" PRId64 "   by --exclude\n", w->list.excluded);
    if (w->elsewhere) printf("of other shares %10" PRId64 "\n", w->elsewhere);
    if (w->list.repeated) printf("named twice     %10" PRId64 "   and read once\n", w->list.repeated);
    if (select) games_taken_print(&w->taken);
    if (!w->total.games) return;
    printf("%s: %" PRId64 " game%s, %" PRId64 " frames, %" PRIu64 " bytes, %.2f bytes a frame\n",
           w->options->out, w->total.games, plural(w->total.games), w->total.frames, w->total.bytes,
           bytes_a_frame(w));
}

/* What the corpus holds now, with what a folder held before. */
static bool look_at_all(writing *w)
{
    exphil_games *games = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    bool fine = exphil_games_open(w->context, w->options->out, &games, &error) >= 0 &&
                exphil_games_query(games, &w->total, &error) >= 0;
    exphil_games_destroy(games);
    return fine || complain(w->options->out, &error) == 0;
}

static void say_stopped(const writing *w)
{
    fprintf(stderr, "exphil: stopped after %" PRId64 " of %" PRId64 " files; %s holds whole games. %s\n",
            w->done, (int64_t)w->list.count, w->options->out,
            w->out.folder ? "The same command adds the rest"
                          : "The same command with --force makes all of it");
}

static int nothing_written(const writing *w)
{
    for (size_t i = 0; i < w->reasons.count; i++) {
        fprintf(stderr, "exphil: refused: %" PRId64 "  ", w->reasons.of[i].count);
        tally_print(stderr, &w->reasons.of[i]);
    }
    fprintf(stderr, "exphil: %s; nothing was written\n",
            w->stopped ? "stopped before the first game" : "no game was found in what was given");
    return w->stopped ? stop_status() : 1;
}

static int say_all(writing *w)
{
    return w->options->json ? print_json(summary_json(w)) : (print_summary(w), 0);
}

static int end(writing *w)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    bool folder = w->out.folder;
    stop_hold(true);
    tally_sort(&w->reasons);
    if (!folder && w->games == 0) return nothing_written(w);
    if (exphil_games_finish(w->output, NULL, &error) < 0) return !complain_of_output(w, &error);
    if (w->games == 0 && w->duplicates == 0) {
        fprintf(stderr, "exphil: no game was found in what was given\n");
        return w->stopped ? stop_status() : 1;
    }
    if (!look_at_all(w)) return 1;
    if (say_all(w) != 0) return 1;
    if (w->stopped) say_stopped(w);
    return w->stopped ? stop_status() : w->named_refused;
}

/* ---- selections ---------------------------------------------------------------------------------------- */

static void report_selection(const writing *w)
{
    if (!w->report) return;
    for (size_t i = 0; i < w->reasons.count; i++) {
        fprintf(w->report, "%" PRId64 "\tfiles\trefused\t", w->reasons.of[i].count);
        put_field(w->report, w->reasons.of[i].word, '\n');
    }
    fprintf(w->report, "%" PRId64 "\tfiles\tduplicate\tthe same game is there\n", w->duplicates);
    games_taken_write(w->report, &w->taken);
}

/* What the selection is made from. */
static bool read_one_corpus(writing *w)
{
    exphil_games_info info = EXPHIL_GAMES_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    const char *path = w->list.of[0].path;
    if (exphil_games_open(w->context, path, &w->from, &error) < 0 ||
        exphil_games_query(w->from, &info, &error) < 0)
        return complain(path, &error) == 0;
    if (info.recovered)
        fprintf(stderr, "%s: its end is missing or damaged: the whole games were kept\n", path);
    w->files = w->done = 1;
    w->games = info.games;
    w->frames = info.frames;
    return true;
}

static exphil_games_config how_stored(const games_options *o)
{
    exphil_games_config config = EXPHIL_GAMES_CONFIG_INIT;
    config.level = (int32_t)o->level;
    config.shard_bytes = (int64_t)o->shard_bytes;
    config.stored = o->stored;
    return config;
}

/* Into one corpus, which is a temporary file. */
static bool read_all(writing *w)
{
    const exphil_games_config config = how_stored(w->options);
    if (!scratch_begin(&w->scratch, w->options->threads, stop_cancel, &config)) return false;
    w->writer = w->scratch.writer;
    if (!add_all(w) || w->stopped) return false;
    tally_sort(&w->reasons);
    return w->games == 0 || scratch_open(&w->scratch, &w->from);
}

/* A selection of half of the files would have other duplicates: nothing half-made is kept. */
static int select_stopped(const writing *w)
{
    if (!stop_asked()) return 1;
    fprintf(stderr, "exphil: stopped; %s\n",
            w->out.folder ? "files that were whole stay in the folder" : "nothing was written");
    return stop_status();
}

static int end_selection(writing *w)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    bool folder = w->out.folder;
    stop_hold(true);
    report_selection(w);
    if ((folder || w->taken.games) && exphil_games_finish(w->output, NULL, &error) < 0)
        return !complain_of_output(w, &error);
    if (w->taken.games + w->taken.there && !look_at_all(w)) return 1;
    if (say_all(w) != 0) return 1;
    if (w->taken.games + w->taken.there) return w->named_refused;
    fprintf(stderr, "exphil: no game fits; nothing was written\n");
    return 1;
}

/* ---- the output ---------------------------------------------------------------------------------------- */

/* A folder is made where one is asked for and not there. */
static bool prepare_out(writing *w)
{
    const games_options *o = w->options;
    bool there = system_look(o->out, &w->out), folder = there && w->out.folder;
    if (!folder && !name_ends(o->out, "/") && !o->shard_bytes)
        return output_free("out", o->out, OUTPUT_REPLACED, o->force);
    if (there && !folder) {
        fprintf(stderr, "exphil: --out %s: that is no folder\n", o->out);
        return false;
    }
    if (there) return true;
    int why = system_make_folder(o->out) ? 0 : errno;
    if ((!why || why == EEXIST) && system_look(o->out, &w->out) && w->out.folder) return true;
    if (why) errno = why;
    return complain_of_file(o->out);
}

static bool open_report(writing *w)
{
    const char *path = w->options->report;
    if (!path) return true;
    if (!output_free("report", path, OUTPUT_IN_PLACE, w->options->force)) return false;
    w->report = system_open(path, "w");
    if (!w->report) return complain_of_file(path);
    fputs(w->options->select ? "count\tof\tresult\treason\n" : "result\tframes\tfile\tgame\treason\thash\n",
          w->report);
    return true;
}

static bool close_report(writing *w)
{
    if (!w->report) return true;
    bool fine = !ferror(w->report);
    return (fclose(w->report) == 0 && fine) || complain_of_file(w->options->report);
}

static bool create(writing *w)
{
    const games_options *o = w->options;
    const exphil_games_config config = how_stored(o);
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_games_create(w->context, o->out, &config, &w->output, &error) >= 0) {
        w->writer = w->output;
        return true;
    }
    complain(o->out, &error);
    if (error.status == EXPHIL_E_UNSUPPORTED && strstr(error.message, "libzstd"))
        fprintf(stderr, "exphil: --stored writes without it, ten times the bytes\n");
    return false;
}

/* What cannot be read is listed too, and counted when its turn comes. */
static bool make_list(writing *w, int count, char **paths)
{
    const file_rules rules = {.hint = "", .any = true};
    const games_options *o = w->options;
    if (!file_list_make(&w->list, o->files, &rules, count, paths)) return false;
    for (size_t i = 0; i < w->list.count; i++) {
        const char *path = w->list.of[i].path;
        if (o->select && w->out.folder && file_within(path, o->out)) {
            fprintf(stderr, "exphil: --out %s holds %s, which is read: name another folder\n", o->out, path);
            return false;
        }
        if (w->out.folder
                ? !output_spares("report", o->report, path)
                : !output_spares_games("out", o->out, path) || !output_spares("report", o->report, path))
            return false;
    }
    return true;
}

/* ---- a selection ----------------------------------------------------------------------------------------- */

static bool take(writing *w, exphil_error *error)
{
    return games_take(w->context, w->from, w->options->select, w->output, stop_cancel, &w->bar, &w->taken,
                      error);
}

/* Is it a game of the only corpus that cannot be read? */
static bool is_damage(const writing *w, const exphil_error *error)
{
    return !w->scratch.context &&
           (error->status == EXPHIL_E_FORMAT ||
            (error->status == EXPHIL_E_IO && strstr(error->message, w->list.of[0].path)));
}

/* Another recording of a match may be taken in a damaged one's place, so the selection is made anew from what is whole. */
static bool begin_anew(writing *w)
{
    exphil_games_destroy(w->from);
    exphil_games_writer_destroy(w->output);
    w->from = NULL;
    w->output = NULL;
    w->files = w->done = w->games = w->frames = 0;
    return create(w) && read_all(w);
}

static int select_all(writing *w)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    bool one = w->list.count == 1 && w->list.of[0].kind == FILE_GAMES;
    w->bar.quiet = w->options->quiet || w->options->json;
    if (one ? !read_one_corpus(w) : !read_all(w)) return select_stopped(w);
    bool fine = w->from && take(w, &error);
    if (w->from && !fine && is_damage(w, &error)) {
        if (!begin_anew(w)) return select_stopped(w);
        fine = w->from && take(w, &error);
    }
    if (!w->from) return nothing_written(w);
    if (fine) return end_selection(w);
    complain(w->scratch.context ? "what was read" : w->list.of[0].path, &error);
    return select_stopped(w);
}

/* ---- all ------------------------------------------------------------------------------------------------- */

static int write_all(writing *w, int count, char **paths)
{
    const machine_options machine = {.threads = w->options->threads};
    if (!prepare_out(w) || !make_list(w, count, paths) || !open_context(&machine, stop_cancel, &w->context))
        return 1;
    stop_catch();
    if (!open_report(w) || !create(w)) return 1;
    if (w->options->select) return select_all(w);
    return add_all(w) ? end(w) : 1;
}

int games_write(const games_options *options, int count, char **paths)
{
    writing w = {.options = options, .total = EXPHIL_GAMES_INFO_INIT, .scratch.file = -1};
    int status = write_all(&w, count, paths);
    exphil_games_destroy(w.from);
    scratch_end(&w.scratch);
    exphil_games_writer_destroy(w.output);
    exphil_context_destroy(w.context);
    if (!close_report(&w)) status = 1;
    file_list_free(&w.list);
    tally_free(&w.reasons);
    return status;
}
