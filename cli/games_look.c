/* Looking into corpora of games: what they hold, their games one by one, whether they are whole. */
#include "commands.h"
#include "files.h"
#include "games.h"
#include "options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* exphil_games_info.recovered */
#define RECOVERED " (its end is missing or damaged: the whole games before it)"

/* ---- a corpus ------------------------------------------------------------------------------------------ */

static double bytes_a_frame(const exphil_games_info *info)
{
    return info->frames ? (double)info->bytes / (double)info->frames : 0.0;
}

int games_summary(exphil_context *context, const char *path, bool json)
{
    exphil_games *games = NULL;
    exphil_games_info info = EXPHIL_GAMES_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    bool fine = exphil_games_open(context, path, &games, &error) >= 0 &&
                exphil_games_query(games, &info, &error) >= 0;
    exphil_games_destroy(games);
    if (!fine) return complain(path, &error);
    char hash[20];
    snprintf(hash, sizeof hash, "%016" PRIx64, info.hash);
    if (json)
        return print_json(json_pack("{s:s,s:I,s:I,s:I,s:f,s:b,s:s}", "kind", "games", "games",
                                    (json_int_t)info.games, "frames", (json_int_t)info.frames, "bytes",
                                    (json_int_t)info.bytes, "bytes_per_frame", bytes_a_frame(&info),
                                    "recovered", info.recovered, "content_hash", hash));
    printf("corpus of %" PRId64 " game%s, %" PRId64 " frames%s\n", info.games, plural(info.games),
           info.frames, info.recovered ? RECOVERED : "");
    printf("%" PRIu64 " bytes, %.2f bytes a frame; content %s\n", info.bytes, bytes_a_frame(&info), hash);
    return 0;
}

/* ---- its games ----------------------------------------------------------------------------------------- */

static json_t *players_json(const exphil_game_info *game, const exphil_slp_info *settings)
{
    json_t *list = json_array();
    for (int i = 0; i < EXPHIL_SLP_PORTS; i++) {
        const exphil_game_player *player = &game->player[i];
        if (settings->ports[i].type >= 3) continue;
        json_array_append_new(list, json_pack("{s:i,s:i,s:i,s:i,s:i,s:i,s:i}", "port", i + 1, "damage_dealt",
                                              player->damage_dealt, "damage_taken", player->damage_taken,
                                              "stocks_taken", player->stocks_taken, "self_destructs",
                                              player->self_destructs, "end_stocks", player->end_stocks,
                                              "input_frames", player->input_frames));
    }
    return list;
}

json_t *game_json(const exphil_games *games, int64_t index)
{
    exphil_game_info game = EXPHIL_GAME_INFO_INIT;
    exphil_slp_info settings = EXPHIL_SLP_INFO_INIT;
    char content[20], source[20];
    if (exphil_games_game(games, index, &game, &settings, NULL) < 0) return NULL;
    snprintf(content, sizeof content, "%016" PRIx64, game.content_hash);
    snprintf(source, sizeof source, "%016" PRIx64, game.source_hash);
    return json_pack("{s:I,s:s,s:s,s:i,s:i,s:b,s:o}", "index", (json_int_t)index, "content_hash", content,
                     "source_hash", source, "match_tag", game.match_tag, "certain_end", game.certain_end,
                     "finite", game.finite, "players", players_json(&game, &settings));
}

/* ---- exphil corpus verify ------------------------------------------------------------------------------ */

/* Damaged games that are told one by one. */
enum { TOLD = 20 };

/* What is found of a corpus: the library logs each damaged game. */
typedef struct findings {
    const char *path;
    int64_t damaged; /* games */
    bool lost;       /* games that cannot be found, or what a file says as a whole is wrong */
} findings;

static void find(void *user, exphil_log_level level, const char *message)
{
    findings *all = user;
    exphil_error error = {.struct_size = sizeof error, .status = EXPHIL_E_FORMAT};
    if (level > EXPHIL_LOG_ERROR) {
        fprintf(stderr, "exphil: warning: %s\n", message);
        return;
    }
    snprintf(error.message, sizeof error.message, "%s", message);
    if (!all->damaged && !all->lost) printf("%s: damaged\n", all->path);
    const char *reason = error_reason(&error, all->path);
    bool game = strncmp(reason, "game ", 5) == 0 || strstr(reason, "\" game ");
    all->damaged += game;
    all->lost |= !game;
    if (!game || all->damaged <= TOLD) printf("  %s\n", reason);
}

/* Behind the table: how many there are, and what to do. */
static void conclude(const findings *all, int64_t games)
{
    if (all->damaged > TOLD) printf("  and %" PRId64 " more\n", all->damaged - TOLD);
    fflush(stdout);
    fprintf(stderr, "exphil: %s: ", all->path);
    if (all->damaged)
        fprintf(stderr, "%" PRId64 " of %" PRId64 " game%s %s damaged", all->damaged, games, plural(games),
                all->damaged == 1 ? "is" : "are");
    if (all->lost)
        fprintf(stderr, "%s%" PRId64 " game%s can be found", all->damaged ? "; " : "only ", games,
                plural(games));
    if (all->damaged < games)
        fprintf(stderr, "; exphil corpus --out whole.games %s keeps what is whole", all->path);
    fprintf(stderr, "\n");
}

static bool verify_games(exphil_context *context, findings *all, exphil_error *error)
{
    exphil_games *games = NULL;
    exphil_games_info info = EXPHIL_GAMES_INFO_INIT;
    all->damaged = 0;
    bool fine = exphil_games_open(context, all->path, &games, error) >= 0 &&
                exphil_games_query(games, &info, error) >= 0 && exphil_games_verify(games, error) >= 0;
    exphil_games_destroy(games);
    if (fine && info.recovered)
        fprintf(stderr,
                "exphil: %s: the end of a file is missing or damaged; %" PRId64 " game%s before it, %" PRId64
                " frames, whole; exphil corpus --out whole.games %s keeps them\n",
                all->path, info.games, plural(info.games), info.frames, all->path);
    else if (fine)
        printf("%s: whole, %" PRId64 " game%s, %" PRId64 " frames\n", all->path, info.games,
               plural(info.games), info.frames);
    else if (all->damaged || all->lost)
        conclude(all, info.games);
    all->lost |= fine && info.recovered;
    return fine && !info.recovered;
}

static bool verify_rows(exphil_context *context, const char *path, exphil_error *error)
{
    exphil_dataset *dataset = NULL;
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    bool fine = exphil_dataset_open(context, path, &dataset, error) >= 0 &&
                exphil_dataset_verify(dataset, error) >= 0 &&
                exphil_dataset_query(dataset, &info, error) >= 0;
    exphil_dataset_destroy(dataset);
    if (fine)
        printf("%s: whole, %" PRId64 " episode%s, %" PRId64 " frames%s\n", path, info.episodes,
               plural(info.episodes), info.frames, info.recovered ? " (its end is missing)" : "");
    return fine;
}

static bool verify_path(exphil_context *context, findings *all, const char *path)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    file_kind kind = file_kind_of(path);
    bool games = kind == FILE_GAMES || kind == FILE_FOLDER;
    if (!games && kind != FILE_CORPUS) {
        file_refuse(path, kind, "corpus verify wants corpora");
        return false;
    }
    *all = (findings){.path = path};
    if (games ? verify_games(context, all, &error) : verify_rows(context, path, &error)) return true;
    bool told = (all->damaged || all->lost) && error.status != EXPHIL_E_CANCELLED;
    if (!told) complain(path, &error);
    return false;
}

/* One that hands on what the library logs. */
static bool open_finding(const machine_options *machine, findings *all, exphil_context **context)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    config.threads = (int32_t)machine->threads;
    config.log = find;
    config.log_user = all;
    return exphil_context_create(&config, context, &error) >= 0 || complain("context", &error) == 0;
}

int corpus_verify_command(int argc, char **argv)
{
    machine_options machine = {0};
    const option_entry entries[] = {
        {"threads", OPTION_INT, &machine.threads, "N", "processor threads (default 0: one per core)"},
        {NULL, 0, NULL, NULL, NULL}};
    const option_command command = {
        .usage = "corpus verify [OPTIONS] CORPUS...",
        .about =
            "Reads all of each corpus and checks every byte: of games, a file or a folder, or of rows.\n"
            "Of games it also counts again what each player did, and names each damaged one by number and "
            "byte;\nexphil corpus --out whole.games CORPUS keeps the others.",
        .entry = entries};
    int count, status;
    exphil_context *context;
    if (!options_read(&command, argc, argv, &count, &status)) return status;
    if (count == 0) {
        fprintf(stderr, "exphil: corpus verify wants a corpus; see exphil corpus verify --help\n");
        return 2;
    }
    findings all = {.path = ""};
    if (!open_finding(&machine, &all, &context)) return 1;
    status = 0;
    for (int i = 1; i <= count; i++)
        if (!verify_path(context, &all, argv[i])) status = 1;
    exphil_context_destroy(context);
    return status;
}
