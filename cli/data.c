/* Makes a dataset or a model from the files on a command line. */
#include "commands.h"
#include "files.h"
#include "players.h"
#include "replay_table.h"
#include "scratch.h"
#include "tally.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void log_line(void *user, exphil_log_level level, const char *message)
{
    (void)user;
    fprintf(stderr, "exphil: %s%s\n", level <= EXPHIL_LOG_WARNING ? "warning: " : "", message);
}

bool open_context(const machine_options *machine, exphil_cancel_fn cancel, exphil_context **context)
{
    static const machine_options one_thread = {.threads = 1};
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (!machine) machine = &one_thread;
    config.threads = (int32_t)machine->threads;
    config.device = machine->device;
    config.cpu_isa = machine->isa;
    config.memory_limit_bytes = (size_t)machine->memory_limit;
    complain_of_limit(machine->memory_limit);
    config.log = log_line;
    config.log_level =
        config.device && !machine->quiet ? EXPHIL_LOG_INFO : EXPHIL_LOG_WARNING; /* whose products it takes */
    config.cancel = cancel;
    if (exphil_context_create(&config, context, &error) >= 0) return true;
    complain("context", &error);
    if (strstr(error.message, "EXPHIL_CUBLASLT_CHOICES"))
        fprintf(stderr, "exphil: unset EXPHIL_CUBLASLT_CHOICES to go on without it\n");
    else if (machine->device && strncmp(machine->device, "cuda", 4) == 0)
        fprintf(stderr,
                "exphil: leave --device out to use the processor, --device auto takes what there is; exphil "
                "devices tells what that is\n");
    return false;
}

bool precision_of(const char *name, int32_t *precision)
{
    static const char *const names[] = {"f32", "tf32", "bf16", "f16"};
    *precision = EXPHIL_PRECISION_F32;
    for (int32_t i = 0; name && i < 4; i++) {
        if (strcmp(name, names[i]) != 0) continue;
        *precision = i; /* EXPHIL_PRECISION_F32 and so on */
        return true;
    }
    if (name) fprintf(stderr, "exphil: --precision wants f32, tf32, bf16 or f16, not %s\n", name);
    return !name;
}

bool preset_spec(const data_options *options, exphil_spec *spec)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    *spec = (exphil_spec)EXPHIL_SPEC_INIT;
    if (exphil_melee_spec(options->layout, options->codec, spec, &error) >= 0) return true;
    complain("layout", &error);
    return false;
}

bool load_weights(exphil_context *context, const char *path, const char *hint, exphil_model **model)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    size_t length = strlen(path);
    if (!file_wanted(path, FILE_WEIGHTS, hint)) return false;
    if (exphil_model_load(context, path, model, &error) >= 0) return true;
    complain(path, &error);
    if (length > 10 && strcmp(path + length - 10, ".optimizer") == 0)
        fprintf(stderr, "exphil: that is a checkpoint, for --resume; the weights are %.*s\n",
                (int)(length - 10), path);
    return false;
}

/* ---- replays ------------------------------------------------------------------------------------------- */

/* A replay that went into the scratch corpus. */
typedef struct entered {
    char *name;
    size_t inside; /* where the name of an archive's entry begins; 0: it is none */
    uint64_t game;
} entered;

typedef struct loading {
    const data_options *options;
    exphil_context *context;
    exphil_dataset *dataset;
    progress bar;
    int64_t done;    /* of the list */
    int64_t replays; /* tried */
    int64_t episodes;
    int64_t left_out;
    int64_t cut;      /* replays that end early */
    uint64_t *groups; /* [grouped] of replays that were taken one by one: exphil_episode_info.group */
    int64_t grouped, group_capacity;
    tally reasons, players; /* players: where the character that was asked for was not found */
    rewards_found rewards;
    scratch scratch; /* of replays that are selected from; without a context: there are none yet */
    entered *entered;
    size_t entered_count, entered_capacity;
    int64_t corpora;
    int64_t refused[EXPHIL_REFUSED_REASONS]; /* players of games, by EXPHIL_REFUSED_... */
    int64_t *ends;                           /* [corpora][2]: their first episode, and behind their last */
} loading;

static bool no_memory(void)
{
    fprintf(stderr, "exphil: no memory for the list of what was read\n");
    return false;
}

static bool leave_out(loading *l, const char *path, const char *reason)
{
    l->left_out++;
    return tally_reason(&l->reasons, reason, path) || no_memory();
}

/* What is about to be written over is not read: a folder may hold it. */
static bool spared(const data_options *o, const char *path)
{
    for (size_t i = 0; i < sizeof o->outputs / sizeof o->outputs[0]; i++)
        if (!output_spares(o->outputs[i].option, o->outputs[i].path, path)) return false;
    return true;
}

static exphil_status refuse_item(const file_item *item, exphil_error *error)
{
    (void)snprintf(error->message, sizeof error->message, "%s", item->problem);
    return error->status = EXPHIL_E_FORMAT;
}

static exphil_status read_replay(loading *l, const file_item *item, exphil_replay_result *result,
                                 exphil_error *error)
{
    const select_options *o = &l->options->select;
    exphil_replay_config config = EXPHIL_REPLAY_CONFIG_INIT;
    config.character = o->character;
    config.port = (int32_t)o->port;
    config.opponent_port = (int32_t)o->opponent;
    config.first_frame = (int32_t)o->first;
    config.last_frame = (int32_t)o->last;
    if (item->problem) return refuse_item(item, error);
    if (item->data)
        return exphil_dataset_add_replay_memory(l->dataset, item->data, item->bytes, &config, result, error);
    return exphil_dataset_add_replay(l->dataset, item->path, &config, result, error);
}

/* What tables have about a replay whose episodes begin with this one; name NULL: a corpus has its hash alone. */
static bool give_lines(const data_options *o, exphil_dataset *dataset, int64_t first, int64_t end,
                       const char *name, const char *inside)
{
    exphil_episode_info info = EXPHIL_EPISODE_INFO_INIT;
    bool fine = true;
    for (size_t t = 0; t < sizeof o->tables / sizeof o->tables[0]; t++) {
        uint64_t last = 0;
        if (!o->tables[t]) continue;
        for (int64_t i = first; fine && i < end; i++) {
            if (exphil_dataset_episode(dataset, i, &info, NULL) < 0) return false;
            if (i > first && info.game == last) continue;
            last = info.game;
            fine = replay_table_give(o->tables[t], name, inside, last, dataset);
        }
    }
    return fine;
}

/* Says what tables hold of nothing that was given; false: all that they hold. */
static bool lines_used(const data_options *o)
{
    bool fine = true;
    for (size_t t = 0; t < sizeof o->tables / sizeof o->tables[0]; t++)
        if (o->tables[t]) fine = replay_table_used(o->tables[t], o->quiet) && fine;
    return fine;
}

static bool has_tables(const data_options *o)
{
    bool any = false;
    for (size_t t = 0; t < sizeof o->tables / sizeof o->tables[0]; t++) any = any || o->tables[t];
    return any;
}

/* A replay's name inside an archive; NULL: it is in none. */
static const char *name_inside(const file_item *item)
{
    return item->inside ? item->name + strlen(item->path) + 1 : NULL;
}

/* Which match it may be. */
static bool note_group(loading *l, int64_t episode)
{
    exphil_episode_info info = EXPHIL_EPISODE_INFO_INIT;
    if (l->grouped == l->group_capacity) {
        int64_t capacity = l->group_capacity ? 2 * l->group_capacity : 256;
        uint64_t *wider = realloc(l->groups, (size_t)capacity * sizeof *wider);
        if (!wider) return no_memory();
        l->groups = wider;
        l->group_capacity = capacity;
    }
    if (exphil_dataset_episode(l->dataset, episode, &info, NULL) >= 0 && info.group)
        l->groups[l->grouped++] = info.group;
    return true;
}

/* What came of each frame of a replay that was taken is read from it once more. */
static bool give_rewards(loading *l, const file_item *item, int64_t first)
{
    const data_options *o = l->options;
    exphil_slp *slp = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (!o->rewards || first == l->episodes) return true;
    exphil_status status = item->data
                               ? exphil_slp_read(l->context, item->data, item->bytes, NULL, &slp, &error)
                               : exphil_slp_open(l->context, item->path, NULL, &slp, &error);
    bool fine = status >= 0 && rewards_of_replay(o->rewards, l->dataset, first, l->episodes, slp,
                                                 (int32_t)o->select.opponent, &l->rewards, &error);
    exphil_slp_destroy(slp);
    return fine || complain(item->name, &error) == 0;
}

static bool took_replay(loading *l, const file_item *item, const exphil_replay_result *result)
{
    if (result->episodes && !note_group(l, l->episodes)) return false;
    int64_t first = l->episodes;
    l->episodes += result->episodes;
    l->cut += result->truncated;
    if (!give_rewards(l, item, first)) return false;
    return give_lines(l->options, l->dataset, first, l->episodes, item->name, name_inside(item));
}

/* A replay that was named must be readable; one that a folder, an archive or a list holds may be passed over. */
static bool refuse_replay(loading *l, const file_item *item, const exphil_error *error)
{
    if (item->named || error->status == EXPHIL_E_MEMORY || error->status == EXPHIL_E_CANCELLED)
        return complain(item->name, error) == 0;
    if (!players_refused(&l->players, error->message)) return no_memory();
    return leave_out(l, item->name, error_reason(error, item->name));
}

static bool add_replay(loading *l, const file_item *item)
{
    exphil_replay_result result = EXPHIL_REPLAY_RESULT_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    const select_options *o = &l->options->select;
    if (read_replay(l, item, &result, &error) < 0) return refuse_replay(l, item, &error);
    if (result.episodes) return took_replay(l, item, &result);
    return leave_out(l, item->name,
                     result.frames_masked  ? "no frame becomes a row"
                     : o->first || o->last ? "no frames from --first to --last"
                                           : "the replay has no frames");
}

/* ---- replays that are selected from ----------------------------------------------------------------------- */

/* Its name, for tables of what is told of files. */
static bool note_entered(loading *l, const file_item *item, uint64_t game)
{
    if (!has_tables(l->options)) return true;
    if (l->entered_count == l->entered_capacity) {
        size_t capacity = l->entered_capacity ? 2 * l->entered_capacity : 256;
        entered *wider = realloc(l->entered, capacity * sizeof *wider);
        if (!wider) return no_memory();
        l->entered = wider;
        l->entered_capacity = capacity;
    }
    entered *e = &l->entered[l->entered_count];
    const char *inside = name_inside(item);
    *e = (entered){strdup(item->name), inside ? (size_t)(inside - item->name) : 0, game};
    l->entered_count += e->name != NULL;
    return e->name || no_memory();
}

static bool enter_replay(loading *l, const file_item *item)
{
    exphil_games_added added = EXPHIL_GAMES_ADDED_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_status status;
    if (l->options->cancel && l->options->cancel(NULL)) return false;
    if (!l->scratch.context && !scratch_begin(&l->scratch, l->options->threads, l->options->cancel, NULL))
        return false;
    if (item->problem)
        status = refuse_item(item, &error);
    else if (item->data)
        status = exphil_games_add_memory(l->scratch.writer, item->data, item->bytes, &added, &error);
    else
        status = exphil_games_add(l->scratch.writer, item->path, &added, &error);
    if (status < 0 && scratch_failed(&error)) return scratch_complain(&l->scratch, &error);
    if (status < 0) return refuse_replay(l, item, &error);
    l->cut += added.truncated && !added.duplicate;
    return note_entered(l, item, added.source_hash) &&
           (!added.duplicate || leave_out(l, item->name, "the same game came before"));
}

/* Tables name files; their games are in the dataset from this episode on, unless nobody of them was taken. */
static bool give_entered(loading *l, int64_t first)
{
    const data_options *o = l->options;
    select_games taken;
    if (!l->entered_count) return true;
    if (!select_games_of(l->dataset, first, &taken)) return no_memory();
    bool fine = true;
    for (size_t t = 0; t < sizeof o->tables / sizeof o->tables[0]; t++)
        for (size_t i = 0; fine && o->tables[t] && i < l->entered_count; i++) {
            const entered *e = &l->entered[i];
            const char *inside = e->inside ? e->name + e->inside : NULL;
            if (select_has(&taken, e->game))
                fine = replay_table_give(o->tables[t], e->name, inside, e->game, l->dataset);
        }
    free(taken.hash);
    return fine;
}

/* ---- corpora of games ---------------------------------------------------------------------------------- */

static bool games_spared(const data_options *o, const char *path)
{
    for (size_t i = 0; i < sizeof o->outputs / sizeof o->outputs[0]; i++)
        if (!output_spares_games(o->outputs[i].option, o->outputs[i].path, path)) return false;
    return true;
}

/* Where the episodes of a corpus lie. */
static bool note_episodes(loading *l, int64_t episodes)
{
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    int64_t *wider = realloc(l->ends, (size_t)(l->corpora + 1) * 2 * sizeof *wider);
    if (!wider || exphil_dataset_query(l->dataset, &info, &error) < 0) {
        fprintf(stderr, "exphil: no memory for the list of corpora\n");
        if (wider) l->ends = wider;
        return false;
    }
    l->ends = wider;
    wider[2 * l->corpora] = info.episodes - episodes;
    wider[2 * l->corpora++ + 1] = info.episodes;
    return true;
}

static void say_taken(const char *name, const exphil_selection_report *taken, bool recovered)
{
    fprintf(stderr,
            "%s: %" PRId64 " frames in %" PRId64 " episode%s: %" PRId64 " of %" PRId64 " player%s in %" PRId64
            " game%s",
            name, taken->frames, taken->episodes, plural(taken->episodes), taken->taken, taken->players,
            plural(taken->players), taken->games, plural(taken->games));
    if (taken->frames_masked)
        fprintf(stderr,
                "; %" PRId64 " frames left out, in which a character is absent or a number is not finite",
                taken->frames_masked);
    fprintf(stderr, "%s\n", recovered ? " (its end is missing: the whole games were kept)" : "");
}

static bool select_from(loading *l, const char *name, const exphil_games *games, bool recovered,
                        int64_t *episodes)
{
    const data_options *o = l->options;
    const exphil_selection selection = select_make(&o->select);
    exphil_selection_report taken = EXPHIL_SELECTION_REPORT_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_dataset_add_games(l->dataset, games, &selection, &taken, &error) < 0)
        return complain(name, &error) == 0;
    for (int i = 0; i < EXPHIL_REFUSED_REASONS; i++) l->refused[i] += taken.refused[i];
    if (!o->quiet || recovered) say_taken(name, &taken, recovered);
    l->episodes += taken.episodes;
    *episodes = taken.episodes;
    if (o->rewards && !rewards_of_games(o->rewards, l->dataset, l->episodes - taken.episodes, l->episodes,
                                        games, (int32_t)o->select.opponent, o->cancel, &l->rewards, &error))
        return complain(name, &error) == 0;
    if (o->select.character && !taken.taken && taken.refused[EXPHIL_REFUSED_CHARACTER] &&
        !players_of_games(&l->players, games))
        return no_memory();
    return true;
}

static bool add_games(loading *l, const file_item *item)
{
    exphil_games *games = NULL;
    exphil_games_info info = EXPHIL_GAMES_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    int64_t first = l->episodes, episodes = 0;
    if (!games_spared(l->options, item->path)) return false;
    bool fine = (exphil_games_open(l->context, item->path, &games, &error) >= 0 &&
                 exphil_games_query(games, &info, &error) >= 0) ||
                complain(item->name, &error) == 0;
    fine = fine && select_from(l, item->name, games, info.recovered, &episodes) &&
           note_episodes(l, episodes) && give_lines(l->options, l->dataset, first, l->episodes, NULL, NULL);
    exphil_games_destroy(games);
    return fine;
}

/* The replays are one corpus. */
static bool add_entered(loading *l)
{
    exphil_games *games = NULL;
    int64_t first = l->episodes, episodes;
    if (!l->scratch.context) return true;
    bool fine = scratch_open(&l->scratch, &games) && select_from(l, "replays", games, false, &episodes);
    exphil_games_destroy(games);
    scratch_end(&l->scratch);
    return fine && give_entered(l, first);
}

/* ---- what is there twice ------------------------------------------------------------------------------- */

/* A game, and who brought it: the corpus of that number, or -1, replays. */
typedef struct brought {
    uint64_t game;
    int64_t by;
} brought;

static int by_game(const void *a, const void *b)
{
    const brought *one = a, *two = b;
    if (one->game != two->game) return one->game < two->game ? -1 : 1;
    return (one->by > two->by) - (one->by < two->by);
}

static int64_t count_repeats(const loading *l, int64_t episodes, brought *list)
{
    int64_t count = 0, repeats = 0, corpus = 0;
    for (int64_t i = 0; i < episodes; i++) {
        exphil_episode_info info = EXPHIL_EPISODE_INFO_INIT;
        while (corpus < l->corpora && i >= l->ends[2 * corpus + 1]) corpus++;
        bool inside = corpus < l->corpora && i >= l->ends[2 * corpus];
        if (exphil_dataset_episode(l->dataset, i, &info, NULL) >= 0)
            list[count++] = (brought){info.game, inside ? corpus : -1};
    }
    qsort(list, (size_t)count, sizeof *list, by_game);
    for (int64_t i = 0, counted = -1; i + 1 < count; i++) {
        if (list[i].game != list[i + 1].game || list[i].by == list[i + 1].by) continue;
        if (counted < 0 || list[counted].game != list[i].game) repeats++;
        counted = i;
    }
    return repeats;
}

static int by_number(const void *a, const void *b)
{
    const uint64_t *one = a, *two = b;
    return (*one > *two) - (*one < *two);
}

/* Replays that are read one by one count as often as they come. */
static void warn_of_copies(const loading *l)
{
    int64_t copies = 0;
    if (l->grouped) qsort(l->groups, (size_t)l->grouped, sizeof *l->groups, by_number);
    for (int64_t i = 1; i < l->grouped; i++) copies += l->groups[i] == l->groups[i - 1];
    if (copies)
        fprintf(stderr,
                "exphil: warning: %" PRId64 " replay%s may show a match that another one shows, and count%s "
                "again; --duplicates drop takes each match once\n",
                copies, plural(copies), copies == 1 ? "s" : "");
}

/* A corpus says itself which of its games are one; beside replays or another corpus nobody does. */
static void warn_of_repeats(const loading *l, int64_t episodes)
{
    if (l->corpora == 0 || (l->corpora == 1 && l->replays == 0)) return;
    brought *list = malloc((size_t)episodes * sizeof *list);
    int64_t repeats = list ? count_repeats(l, episodes, list) : 0;
    free(list);
    if (repeats)
        fprintf(stderr,
                "exphil: warning: %" PRId64
                " game%s came more than once, out of a corpus of games and from elsewhere, "
                "and count%s so often; exphil corpus makes one corpus of them all, with each game once\n",
                repeats, plural(repeats), repeats == 1 ? "s" : "");
}

/* ---- the list ------------------------------------------------------------------------------------------ */

static void show(loading *l)
{
    char text[80];
    snprintf(text, sizeof text, "%" PRId64 " left out", l->left_out);
    progress_count(&l->bar, l->done, "files", text, false);
}

static bool add_item(void *user, const file_item *item)
{
    loading *l = user;
    show(l);
    if (item->games) return add_games(l, item);
    if (!spared(l->options, item->path)) return false;
    l->replays++;
    return select_filters(&l->options->select) ? enter_replay(l, item) : add_replay(l, item);
}

/* What was chosen before reading. */
static void say_choice(const loading *l, const file_list *list)
{
    if (l->options->quiet) return;
    if (list->excluded) fprintf(stderr, "left out by --exclude: %" PRId64 "\n", list->excluded);
    if (list->repeated) fprintf(stderr, "named more than once and read once: %" PRId64 "\n", list->repeated);
}

static bool add_all(loading *l, const file_list *list)
{
    bool fine = true;
    say_choice(l, list);
    progress_begin(&l->bar, 0, (int64_t)list->count, l->options->quiet);
    l->bar.shown_ns = l->bar.began_ns; /* short runs need no line */
    for (size_t i = 0; fine && i < list->count; i++, l->done++)
        fine = file_visit(&list->of[i], &l->options->files, add_item, l);
    progress_clear(&l->bar);
    return fine && add_entered(l);
}

/* ---- corpora ------------------------------------------------------------------------------------------- */

bool any_files(const data_options *options, int count)
{
    return count > 0 || options->files.from;
}

bool is_one_corpus(const data_options *options, int count, char **paths)
{
    return count == 1 && !options->files.from && file_kind_of(paths[0]) == FILE_CORPUS;
}

static void warn_of_choice(const char *name)
{
    fprintf(
        stderr,
        "exphil: warning: --%s does nothing here: what is in a corpus of rows was chosen when it was made\n",
        name);
}

/* Its frames were chosen when it was made. */
static void warn_of_choices(const data_options *o)
{
    if (o->layout) warn_of_choice("layout");
    if (o->codec) warn_of_choice("codec");
    select_given(&o->select, warn_of_choice);
}

static bool open_corpus(exphil_context *context, const char *path, const data_options *o,
                        exphil_dataset **dataset)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    if (exphil_dataset_open(context, path, dataset, &error) < 0) return complain(path, &error) == 0;
    if (exphil_dataset_query(*dataset, &info, &error) >= 0 && !(o->quiet && !info.recovered))
        fprintf(stderr, "%s: %" PRId64 " frames in %" PRId64 " episode%s%s\n", path, info.frames,
                info.episodes, plural(info.episodes),
                info.recovered ? " (torn tail: the whole episodes were kept)" : "");
    return give_lines(o, *dataset, 0, info.episodes, NULL, NULL) && lines_used(o);
}

/* ---- all ----------------------------------------------------------------------------------------------- */

/* One table of what was not taken, whatever it was. */
static void say_left_out(loading *l)
{
    tally_sort(&l->reasons);
    for (size_t i = 0; i < l->reasons.count; i++) {
        const struct counted *reason = &l->reasons.of[i];
        fprintf(stderr, "%8" PRId64 "  replay%s left out: ", reason->count, plural(reason->count));
        tally_print(stderr, reason);
    }
    if (!l->options->quiet) select_say_refused(stderr, l->refused);
}

static void say_total(const loading *l, const exphil_dataset_info *info)
{
    int64_t read = l->replays - l->left_out;
    if (l->replays == 0 && l->corpora == 1) return; /* said already */
    if (l->options->quiet && l->left_out == 0) return;
    fprintf(stderr, "%s%" PRId64 " frames in %" PRId64 " episode%s of ",
            l->replays + l->corpora > 1 ? "altogether " : "", info->frames, info->episodes,
            plural(info->episodes));
    if (l->replays)
        fprintf(stderr, "%s%" PRId64 " replay%s", l->scratch.context ? "the players of " : "", read,
                plural(read));
    if (l->cut) fprintf(stderr, " (%" PRId64 " end%s early)", l->cut, l->cut == 1 ? "s" : "");
    if (l->corpora)
        fprintf(stderr, "%s%" PRId64 " corp%s of games", l->replays ? " and " : "", l->corpora,
                l->corpora == 1 ? "us" : "ora");
    if (l->left_out) fprintf(stderr, "; %" PRId64 " left out", l->left_out);
    fprintf(stderr, "\n");
}

static void end_loading(loading *l)
{
    scratch_end(&l->scratch);
    tally_free(&l->reasons);
    tally_free(&l->players);
    for (size_t i = 0; i < l->entered_count; i++) free(l->entered[i].name);
    free(l->entered);
    free(l->ends);
    free(l->groups);
}

static bool load_replays(exphil_context *context, const exphil_spec *spec, const data_options *options,
                         const file_list *list, exphil_dataset **dataset)
{
    exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT;
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    loading l = {.options = options, .context = context, .scratch.file = -1};
    config.spec = spec;
    if (exphil_dataset_create(context, &config, &l.dataset, &error) < 0)
        return complain("dataset", &error) == 0;
    bool fine = add_all(&l, list);
    fine = fine && (!l.episodes || lines_used(options));
    fine = fine && (exphil_dataset_query(l.dataset, &info, &error) >= 0 || complain("dataset", &error) == 0);
    if (fine || l.left_out) say_left_out(&l);
    if (fine && info.frames > 0) {
        say_total(&l, &info);
        warn_of_repeats(&l, info.episodes);
        if (!options->select.duplicates) warn_of_copies(&l);
        fine = !options->rewards || rewards_say(options->rewards, &l.rewards, options->quiet);
    }
    if (fine && info.frames > 0) {
        *dataset = l.dataset;
    } else {
        if (fine && !(options->select.character && players_say(&l.players, options->select.character)))
            fprintf(stderr, "exphil: no frames were found in what was given\n");
        exphil_dataset_destroy(l.dataset);
        fine = false;
    }
    end_loading(&l);
    return fine;
}

/* Before anything is read, all that was named is looked at: is it data, and a corpus alone? */
bool load_dataset(exphil_context *context, const exphil_spec *spec, const data_options *options, int count,
                  char **paths, exphil_dataset **dataset)
{
    const file_rules rules = {.hint = options->if_weights};
    file_list list = {.of = NULL};
    bool fine = true;
    for (int i = 0; fine && i < count; i++) fine = spared(options, paths[i]);
    fine = fine && file_list_make(&list, &options->files, &rules, count, paths);
    if (fine && list.of[0].kind == FILE_CORPUS && options->rewards && !options->rewards->optional) {
        fprintf(stderr,
                "exphil: %s: a corpus of rows does not tell what came of its frames; --rewards wants replays "
                "or a corpus of games\n",
                list.of[0].path);
        fine = false;
    } else if (fine && list.of[0].kind == FILE_CORPUS) {
        warn_of_choices(options);
        fine = open_corpus(context, list.of[0].path, options, dataset);
    } else if (fine) {
        fine = load_replays(context, spec, options, &list, dataset);
    }
    file_list_free(&list);
    return fine;
}
