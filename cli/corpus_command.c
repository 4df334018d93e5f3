/* `exphil corpus`: replays become a corpus, of games or of rows. */
#include "commands.h"
#include "files.h"
#include "games.h"
#include "options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct corpus_options {
    data_options data;
    const char *share; /* R/P; NULL: all */
    games_options games;
    const char *out;
    bool rows, json, force;
} asked = {.data.if_weights = "a corpus is made of replays"};

/* ---- rows ---------------------------------------------------------------------------------------------- */

/* Of rows of games it is not known how many inputs never change. */
static void print_packed(const char *out, const exphil_dataset_info *info)
{
    printf("%s: %" PRId64 " frames, %" PRId64 " episode%s, %" PRId64 " game%s", out, info->frames,
           info->episodes, plural(info->episodes), info->games, plural(info->games));
    if (info->constant_floats >= 0)
        printf("; %" PRId64 " of %" PRId64 " inputs never change", info->constant_floats, info->float_count);
    printf("\n");
}

static int pack(exphil_context *context, const data_options *data, const char *out, int count, char **paths,
                bool json)
{
    exphil_spec spec = EXPHIL_SPEC_INIT;
    exphil_dataset *dataset = NULL;
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    int status = 0;
    if (!preset_spec(data, &spec) || !load_dataset(context, &spec, data, count, paths, &dataset)) return 1;
    if (exphil_dataset_save(dataset, out, &error) < 0 || exphil_dataset_query(dataset, &info, &error) < 0)
        status = complain(out, &error);
    else if (json)
        status = print_json(json_pack("{s:o,s:I,s:I,s:I}", "corpus", path_json(out), "frames",
                                      (json_int_t)info.frames, "episodes", (json_int_t)info.episodes, "games",
                                      (json_int_t)info.games));
    else
        print_packed(out, &info);
    exphil_dataset_destroy(dataset);
    return status;
}

static int write_rows(int count, char **paths)
{
    const machine_options machine = {.threads = asked.games.threads ? asked.games.threads : 1};
    exphil_context *context;
    asked.data.outputs[0].option = "out";
    asked.data.outputs[0].path = asked.out;
    asked.data.quiet = asked.games.quiet;
    asked.data.threads = asked.games.threads;
    if (!output_free("out", asked.out, OUTPUT_REPLACED, asked.force)) return 1;
    if (!open_context(&machine, NULL, &context)) return 1;
    int status = pack(context, &asked.data, asked.out, count, paths, asked.json);
    exphil_context_destroy(context);
    return status;
}

/* ---- games --------------------------------------------------------------------------------------------- */

static int write_games(const select_options *select, int count, char **paths)
{
    asked.games.files = &asked.data.files;
    asked.games.select = select;
    asked.games.out = asked.out;
    asked.games.force = asked.force;
    asked.games.json = asked.json;
    return games_write(&asked.games, count, paths);
}

#define OUT_OPTIONS                                                                                          \
  {"out", OPTION_TEXT, &asked.out, "OUT", "the corpus to write (no default)"},                               \
      {"force", OPTION_FLAG, &asked.force, NULL, "replace OUT if it is there (default: refuse)"},            \
      FILE_OPTIONS(asked.data.files),                                                                        \
      {"threads", OPTION_INT, &asked.games.threads, "N", "processor threads (default 0: one per core)"},     \
      {"quiet", OPTION_FLAG, &asked.games.quiet, NULL, "no progress (default: shown; --json: none)"},        \
  {                                                                                                          \
    "json", OPTION_FLAG, &asked.json, NULL, "print one JSON object (default: text)"                          \
  }
#define GAMES_OPTIONS                                                                                        \
  {"shard-size", OPTION_BYTES, &asked.games.shard_bytes, "BYTES",                                            \
   "OUT is a folder of files of about so many bytes, as 256MiB (default: one file; in a folder 1GiB)"},      \
      {"level", OPTION_INT, &asked.games.level, "N", "of the compression, 1 to 19 (default 3)"},             \
      {"share", OPTION_TEXT, &asked.share, "R/P",                                                            \
       "of the files part R, from 0, of P, by their names: P processes make P corpora (default: all)"},      \
  {                                                                                                          \
    "stored", OPTION_FLAG, &asked.games.stored, NULL,                                                        \
        "do not compress: ten times the bytes (default: compress)"                                           \
  }

static bool read_share(void)
{
    char *end = NULL;
    if (!asked.share) return true;
    asked.games.share = strtol(asked.share, &end, 10);
    if (end != asked.share && *end == '/') asked.games.shares = strtol(end + 1, &end, 10);
    if (*end == '\0' && asked.games.share >= 0 && asked.games.share < asked.games.shares &&
        asked.games.shares <= 65536)
        return true;
    fprintf(stderr,
            "exphil: --share wants R/P, a part from 0 to P-1 and how many there are, up to 65536; not %s\n",
            asked.share);
    return false;
}

static bool check_paths(const char *command, int count)
{
    if (!read_share()) return false;
    if (any_files(&asked.data, count) && asked.out) return true;
    fprintf(stderr, "exphil: %s wants %s; see exphil %s --help\n", command,
            asked.out ? "replays or corpora of games" : "--out OUT", command);
    return false;
}

/* ---- exphil corpus select ------------------------------------------------------------------------------ */

static const option_entry select_entries[] = {
    OUT_OPTIONS,
    GAMES_OPTIONS,
    {"report", OPTION_TEXT, &asked.games.report, "FILE",
     "the table of what was taken and why not, tab-separated (default: none)"},
    {NULL, 0, NULL, NULL, "a game comes whole if one player of it fits in all of this"},
    SELECT_OPTIONS(asked.data.select, "take"),
    {NULL, 0, NULL, NULL, NULL},
};

static int select_command(int argc, char **argv)
{
    static const option_command command = {
        .usage = "corpus select [OPTIONS] --out OUT FILE...",
        .about =
            "Writes the games that fit, whole and each match once, into a corpus of games, and one table of "
            "how many\nplayers were refused, by the first reason. OUT: a file; or a folder, made where its "
            "name ends in /.\n"
            "FILE: replays and corpora of games, as exphil corpus takes them. All are compared with each "
            "other, in\na temporary file, unless one corpus of games is all there is, without damage "
            "(TMPDIR: its folder).",
        .entry = select_entries};
    int count, status;
    if (!options_read(&command, argc, argv, &count, &status)) return status;
    if (!check_paths("corpus select", count) || !select_check(&asked.data.select)) return 2;
    return write_games(&asked.data.select, count, argv + 1);
}

/* ---- exphil corpus ------------------------------------------------------------------------------------- */

static const option_entry corpus_entries[] = {
    OUT_OPTIONS,
    {NULL, 0, NULL, NULL, "games"},
    GAMES_OPTIONS,
    {"report", OPTION_TEXT, &asked.games.report, "FILE",
     "a table of all files, tab-separated: added, duplicate or refused, and why (default: none)"},
    {NULL, 0, NULL, NULL, "rows"},
    {"rows", OPTION_FLAG, &asked.rows, NULL,
     "rows of one layout and codec, ninety times the bytes (default: games)"},
    {"layout", OPTION_TEXT, &asked.data.layout, "NAME", "melee2 (default), exphil288, slippi or slippi-nana"},
    {"codec", OPTION_TEXT, &asked.data.codec, "NAME",
     "exphil81 (default), exphil81-floor, slippi or slippi-fine"},
    SELECT_OPTIONS(asked.data.select, "take"),
    FRAME_OPTIONS(asked.data.select),
    {NULL, 0, NULL, NULL, NULL},
};

/* Options of rows follow --rows in the table. */
static bool check_kind(const option_command *command)
{
    static const char *const of_games[] = {"shard-size", "level", "share", "stored", "report"};
    const option_entry *e = command->entry;
    for (size_t i = 0; asked.rows && i < sizeof of_games / sizeof *of_games; i++) {
        if (!options_given(command, of_games[i])) continue;
        fprintf(stderr, "exphil: --%s is of corpora of games, and goes without --rows\n", of_games[i]);
        return false;
    }
    while (!e->name || strcmp(e->name, "rows") != 0) e++;
    for (e++; !asked.rows && e->help; e++) {
        if (!options_given(command, e->name)) continue;
        fprintf(
            stderr,
            "exphil: --%s chooses rows: it goes with --rows, which makes a corpus of them\n"
            "exphil: a corpus of games keeps all players and frames, for train to choose from; exphil corpus "
            "select takes some games\n",
            e->name);
        return false;
    }
    return true;
}

int corpus_command(int argc, char **argv)
{
    static bool given[sizeof corpus_entries / sizeof corpus_entries[0]];
    static const option_command command = {
        .usage = "corpus [OPTIONS] --out OUT FILE...",
        .about = "Keeps what replays record, every frame and player, in about 25 bytes a frame, for any "
                 "layout and "
                 "codec.\nOUT: a file; or a folder, made where its name ends in /, to which games are added. "
                 "Games "
                 "that are there\nalready are not added again. Ctrl-C keeps what is whole and ends with "
                 "status 130.\n"
                 "Damaged games of a corpus are left out, and counted.\n"
                 "With --rows: one file of the rows of one layout and codec, which opens in no time.\n"
                 "FILE: " FILES_HELP OR_ROWS_HELP "\n"
                 "exphil corpus select takes the games that fit. exphil corpus verify CORPUS... checks every "
                 "byte.",
        .entry = corpus_entries,
        .given = given};
    int count, status;
    if (argc > 1 && strcmp(argv[1], "verify") == 0) return corpus_verify_command(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "select") == 0) return select_command(argc - 1, argv + 1);
    if (!options_read(&command, argc, argv, &count, &status)) return status;
    if (!check_paths("corpus", count) || !check_kind(&command) || !select_check(&asked.data.select)) return 2;
    return asked.rows ? write_rows(count, argv + 1) : write_games(NULL, count, argv + 1);
}
