/* `exphil slp info|dump|verify`: what replays say, their canonical bytes, and comparison with a manifest. */
#include "slp_command.h"

#include "archive.h"
#include "commands.h"
#include "files.h"
#include "games.h"
#include "options.h"
#include "slp_manifest.h"
#include "slp_report.h"
#include "system.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A wrong line of options. */
static int usage(const char *complaint, const char *about)
{
    (void)fprintf(stderr, "exphil slp: %s%s; see exphil slp --help\n", complaint, about);
    return 2;
}

static int fail(const exphil_error *error)
{
    (void)fprintf(stderr, "exphil slp: %s: %s\n", exphil_status_name(error->status), error->message);
    return 1;
}

/* ---- info ---------------------------------------------------------------------------------------------- */

static struct info_options {
    file_choice files;
    int64_t game; /* -1: all */
    bool json, verbose;
} info_asked = {.game = -1};

static const option_entry info_entries[] = {
    FILE_OPTIONS(info_asked.files),
    {"verbose", OPTION_FLAG, &info_asked.verbose, NULL,
     "name each file that cannot be read; of one file, what few people want to know (default: not)"},
    {"game", OPTION_INT, &info_asked.game, "N", "of a corpus of games only this one, from 0 (default: all)"},
    {"json", OPTION_FLAG, &info_asked.json, NULL, "print one JSON object a file, one a line (default: text)"},
    {NULL, 0, NULL, NULL, NULL},
};

static const option_command info_table = {
    .usage = "slp info [OPTIONS] FILE...",
    .about = "What replays hold: who played, where, when and how long, who won and why that is known, what "
             "is wrong\n"
             "with the file. One file gets a page; several, and the games of a corpus of games, get a line "
             "each and\n"
             "then what they are together.\n"
             "FILE: " FILES_HELP ".\n"
             "Names and codes of players are never shown. Ports count from 1. In JSON so do winner_port, "
             "winner_ports\n"
             "and quitter_port; end.lras and end.placements have the file's port index, from 0, as in "
             "release 0.1.",
    .entry = info_entries};

typedef struct looking {
    exphil_context *context;
    slp_table *table;
    int64_t files;
    bool page, refused;
} looking;

static bool read_item(looking *l, const file_item *item, exphil_slp **slp, exphil_error *error)
{
    if (!item->problem && item->data)
        return exphil_slp_read(l->context, item->data, item->bytes, NULL, slp, error) >= 0;
    if (!item->problem) return exphil_slp_open(l->context, item->path, NULL, slp, error) >= 0;
    error->status = EXPHIL_E_FORMAT;
    (void)snprintf(error->message, sizeof error->message, "%s", item->problem);
    return false;
}

static bool refuse_item(looking *l, const file_item *item, const exphil_error *error)
{
    const char *why = error_reason(error, item->path);
    l->refused = true;
    if (l->page && item->problem)
        (void)fprintf(stderr, "exphil slp: %s: %s\n", item->name, why);
    else if (l->page)
        (void)fail(error);
    else if (info_asked.verbose && item->line)
        (void)fprintf(stderr, "line %lld: %s: %s\n", (long long)item->line, item->name, why);
    else if (info_asked.verbose)
        (void)fprintf(stderr, "%s: %s\n", item->name, why);
    return l->page || slp_table_refuse(l->table, why);
}

/* slp NULL: error says why there is none. */
static bool tell_one(looking *l, const file_item *item, const exphil_slp *slp, json_t *game,
                     const exphil_error *error)
{
    bool fine = true;
    if (info_asked.json) {
        slp_report_json(stdout, item->name, slp, game, error);
        l->refused = l->refused || !slp;
        return true;
    }
    json_decref(game);
    if (!slp)
        fine = refuse_item(l, item, error);
    else if (l->page)
        slp_report_page(stdout, item->name, slp, info_asked.verbose);
    else
        fine = slp_table_add(l->table, item->name, slp);
    if (!fine) (void)fprintf(stderr, "exphil slp: no memory\n");
    return fine;
}

/* A game by itself goes by the corpus and its number. */
static bool look_at_game(looking *l, const file_item *item, const exphil_games *games, int64_t index)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_slp *slp = NULL;
    char name[4200];
    file_item one = *item;
    snprintf(name, sizeof name, "%s game %" PRId64, item->name, index);
    one.name = name;
    bool readable = exphil_games_read(games, index, &slp, &error) >= 0;
    bool fine = tell_one(l, &one, slp, readable && info_asked.json ? game_json(games, index) : NULL, &error);
    exphil_slp_destroy(slp);
    return fine;
}

static bool look_at_games(looking *l, const file_item *item)
{
    exphil_games *games = NULL;
    exphil_games_info info = EXPHIL_GAMES_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    bool fine;
    if (exphil_games_open(l->context, item->path, &games, &error) < 0 ||
        exphil_games_query(games, &info, &error) < 0) {
        fine = tell_one(l, item, NULL, NULL, &error);
    } else if (info_asked.game >= 0) {
        fine = look_at_game(l, item, games, info_asked.game);
    } else {
        fine = true;
        l->page = false;
        for (int64_t i = 0; fine && i < info.games; i++) fine = look_at_game(l, item, games, i);
    }
    exphil_games_destroy(games);
    return fine;
}

static bool look(void *user, const file_item *item)
{
    looking *l = user;
    exphil_slp *slp = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    l->files++;
    if (item->games) return look_at_games(l, item);
    if (item->inside && !item->named) l->page = false;
    bool readable = read_item(l, item, &slp, &error),
         fine = tell_one(l, item, readable ? slp : NULL, NULL, &error);
    exphil_slp_destroy(slp);
    return fine;
}

/* Numbers are a corpus's own. */
static bool check_game(const file_list *list)
{
    if (info_asked.game < 0 || (list->count == 1 && list->of[0].kind == FILE_GAMES)) return true;
    return usage("--game goes with one corpus of games", "") == 0;
}

static int info_run(exphil_context *context, int count, char **paths)
{
    const file_rules rules = {.hint = "", .any = true};
    looking l = {.context = context, .table = slp_table_make()};
    file_list list = {.of = NULL};
    bool fine = l.table && file_list_make(&list, &info_asked.files, &rules, count, paths);
    if (fine && !check_game(&list)) return file_list_free(&list), slp_table_free(l.table), 2;
    l.page =
        info_asked.game >= 0 || (count == 1 && !info_asked.files.from && list.count == 1 && list.of[0].named);
    fine = fine && file_list_visit(&list, &info_asked.files, look, &l);
    if (fine && !info_asked.json && !l.page) slp_table_print(stdout, l.table, l.files, info_asked.verbose);
    file_list_free(&list);
    slp_table_free(l.table);
    return !fine || l.refused;
}

/* ---- dump ---------------------------------------------------------------------------------------------- */

static struct dump_options {
    const char *what, *slot, *out, *rollback;
    int64_t game; /* -1: not given */
    bool force;
} dump_asked = {.game = -1};

static const option_entry dump_entries[] = {
    {"what", OPTION_TEXT, &dump_asked.what, "KIND", "state, input, aux or items (no default)"},
    {"slot", OPTION_TEXT, &dump_asked.slot, "SLOT",
     "P1 to P4, and P1n to P4n for Nana; items need none (no default)"},
    {"rollback", OPTION_TEXT, &dump_asked.rollback, "WHICH",
     "of the simulations of a frame: last (default), first or all"},
    {"game", OPTION_INT, &dump_asked.game, "N", "of a corpus of games this one, from 0 (no default)"},
    {"out", OPTION_TEXT, &dump_asked.out, "FILE", "where the bytes go (default: stdout)"},
    {"force", OPTION_FLAG, &dump_asked.force, NULL, "replace OUT if it is there (default: refuse)"},
    {NULL, 0, NULL, NULL, NULL},
};

static const option_command dump_table = {
    .usage = "slp dump --what KIND [OPTIONS] FILE",
    .about =
        "Canonical little-endian bytes of a replay (include/exphil/slp.h, section 5).\n"
        "FILE: one replay, compressed or not, or one of an archive: ARCHIVE:ENTRY; or a corpus of games.",
    .entry = dump_entries};

/* Index of the slot "P1".."P4" or "P1n".."P4n"; -1 when there is none, -2 when this is no slot's name. */
static int32_t slot_of(const exphil_slp *slp, const char *name)
{
    if (!name || (name[0] != 'P' && name[0] != 'p') || name[1] < '1' || name[1] > '4') return -2;
    if (name[2] && (name[2] != 'n' || name[3])) return -2;
    for (int32_t i = 0; i < exphil_slp_slot_count(slp); i++) {
        const exphil_slp_slot *slot = exphil_slp_slot_at(slp, i);
        if (slot->port == name[1] - '1' && slot->follower == (name[2] == 'n')) return i;
    }
    return -1;
}

static int index_of(const char *name, const char *const *names, int count)
{
    for (int i = 0; name && i < count; i++)
        if (strcmp(name, names[i]) == 0) return i;
    return -1;
}

/* Pipes and devices take bytes as they come. */
static bool may_write(const char *replay)
{
    const char *out = dump_asked.out;
    system_facts facts;
    if (!out || strcmp(out, "-") == 0 || strncmp(out, "/dev/", 5) == 0) return true;
    if (system_look(out, &facts) && facts.pipe) return true;
    return output_spares("out", out, replay) && output_free("out", out, OUTPUT_IN_PLACE, dump_asked.force);
}

static int write_bytes(const char *path, const void *data, size_t bytes)
{
    bool named = path && strcmp(path, "-") != 0;
    FILE *file = named ? system_open(path, "wb") : stdout;
    int good = file && fwrite(data, 1, bytes, file) == bytes && fflush(file) == 0;
    if (named && file && fclose(file) != 0) good = 0;
    if (!good) (void)fprintf(stderr, "exphil slp: cannot write %s\n", path ? path : "to stdout");
    return good ? 0 : 1;
}

static int dump_slp(const exphil_slp *slp, int32_t kind)
{
    int32_t slot = kind == EXPHIL_SLP_DUMP_ITEMS ? 0 : slot_of(slp, dump_asked.slot);
    exphil_error error = EXPHIL_ERROR_INIT;
    int result = 1;
    if (slot == -2) return usage("--slot must be P1..P4 or P1n..P4n", "");
    if (slot < 0) {
        (void)fprintf(stderr, "exphil slp: the replay has no records of %s\n", dump_asked.slot);
        return 1;
    }
    size_t bytes = exphil_slp_dump_bytes(slp, kind, slot);
    void *buffer = malloc(bytes + 1);
    if (!buffer)
        (void)fprintf(stderr, "exphil slp: no memory\n");
    else if (exphil_slp_dump(slp, kind, slot, buffer, bytes, &error) < 0)
        result = fail(&error);
    else
        result = write_bytes(dump_asked.out, buffer, bytes);
    free(buffer);
    return result;
}

/* A corpus may be a folder, which is not what is written to. */
static bool open_dumped(exphil_context *context, const char *path, const exphil_slp_config *config,
                        exphil_slp **slp, exphil_error *error)
{
    exphil_games *games = NULL;
    if (dump_asked.game < 0) return replay_open(context, path, config, slp, error);
    bool fine = exphil_games_open(context, path, &games, error) >= 0 &&
                exphil_games_read(games, dump_asked.game, slp, error) >= 0;
    exphil_games_destroy(games);
    return fine;
}

static int dump_run(exphil_context *context, int count, char **paths)
{
    static const char *const kinds[] = {"state", "input", "aux", "items"};
    static const char *const rollbacks[] = {"last", "first", "all"};
    exphil_slp_config config = EXPHIL_SLP_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_slp *slp = NULL;
    int kind = index_of(dump_asked.what, kinds, 4);
    if (count != 1) return usage("dump needs one file", "");
    if (kind < 0) return usage("--what must be state, input, aux or items", "");
    config.rollback = dump_asked.rollback ? index_of(dump_asked.rollback, rollbacks, 3) : 0;
    if (config.rollback < 0) return usage("--rollback must be last, first or all", "");
    bool games = games_at(paths[0]);
    if (games && dump_asked.game < 0) return usage("of a corpus of games dump wants --game N", "");
    if (!games && dump_asked.game >= 0) return usage("--game goes with a corpus of games", "");
    if (games && config.rollback)
        return usage("a corpus of games keeps the last simulation of a frame only", "");
    if (!may_write(paths[0]) || (games && !output_spares_games("out", dump_asked.out, paths[0]))) return 1;
    if (!open_dumped(context, paths[0], &config, &slp, &error)) return fail(&error);
    int result = dump_slp(slp, kind);
    exphil_slp_destroy(slp);
    return result;
}

/* ---- verify -------------------------------------------------------------------------------------------- */

static const option_entry verify_entries[] = {{NULL, 0, NULL, NULL, NULL}};

static const option_command verify_table = {
    .usage = "slp verify MANIFEST.tsv",
    .about = "Reads each file of a manifest and compares; ends with 'N passed, N failed'.\n"
             "The files lie beside the manifest; its sha256 column is checked as well.",
    .entry = verify_entries};

static int verify_run(exphil_context *context, int count, char **paths)
{
    if (count != 1) return usage("verify needs one manifest", "");
    return slp_manifest_verify(context, paths[0], stdout) != 0;
}

/* ---- all ----------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    const option_command *table;
    int (*run)(exphil_context *context, int count, char **paths);
} commands[] = {
    {"info", &info_table, info_run}, {"dump", &dump_table, dump_run}, {"verify", &verify_table, verify_run}};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static int show_all(void)
{
    for (size_t i = 0; i < COMMANDS; i++) {
        if (i) printf("\n");
        options_help(commands[i].table);
    }
    return 0;
}

static int run(size_t which, int argc, char **argv)
{
    exphil_context *context;
    int count, status;
    if (!options_read(commands[which].table, argc, argv, &count, &status)) return status;
    if (which == 0 && count == 0 && !info_asked.files.from) return usage("info needs a file", "");
    if (!open_context(NULL, NULL, &context)) return 1;
    status = commands[which].run(context, count, argv + 1);
    exphil_context_destroy(context);
    return status;
}

int slp_command(int argc, char **argv)
{
    if (argc < 2) return usage("a command is needed", "");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0)
        return show_all();
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(argv[1], commands[i].name) == 0) return run(i, argc - 1, argv + 1);
    return usage("unknown command ", argv[1]);
}
