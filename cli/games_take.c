/* Which games of a corpus are taken: those of which rows of a player would be. */
#include "commands.h"
#include "games.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* A dataset knows whose rows it would make; its episodes tell which games they are of. */
static bool choose(exphil_context *context, const exphil_games *from, const select_options *options,
                   games_taken *taken, select_games *chosen, exphil_error *error)
{
    const exphil_selection selection = select_make(options);
    exphil_dataset *dataset = NULL;
    taken->report = (exphil_selection_report)EXPHIL_SELECTION_REPORT_INIT;
    bool fine = exphil_dataset_create(context, NULL, &dataset, error) >= 0 &&
                exphil_dataset_add_games(dataset, from, &selection, &taken->report, error) >= 0;
    if (fine && !select_games_of(dataset, 0, chosen)) {
        error->status = EXPHIL_E_MEMORY;
        snprintf(error->message, sizeof error->message, "the list of games");
        fine = false;
    }
    exphil_dataset_destroy(dataset);
    return fine;
}

static bool copy(const exphil_games *from, int64_t index, const select_games *chosen, exphil_games_writer *to,
                 games_taken *taken, exphil_error *error)
{
    exphil_game_info game = EXPHIL_GAME_INFO_INIT;
    exphil_games_added added = EXPHIL_GAMES_ADDED_INIT;
    if (exphil_games_game(from, index, &game, NULL, error) < 0) return false;
    if (!select_has(chosen, game.source_hash)) return true;
    if (exphil_games_copy(to, from, index, &added, error) < 0) return false;
    taken->there += added.duplicate;
    taken->games += !added.duplicate;
    taken->frames += added.duplicate ? 0 : added.frames;
    return true;
}

bool games_take(exphil_context *context, const exphil_games *from, const select_options *options,
                exphil_games_writer *to, exphil_cancel_fn cancel, progress *bar, games_taken *taken,
                exphil_error *error)
{
    select_games chosen = {.hash = NULL};
    *taken = (games_taken){.games = 0};
    bool fine = choose(context, from, options, taken, &chosen, error);
    progress_begin(bar, 0, taken->report.games, bar->quiet);
    bar->shown_ns = bar->began_ns; /* short runs need no line */
    for (int64_t i = 0; fine && i < taken->report.games; i++) {
        progress_count(bar, i, "games", "looked at", false);
        if (cancel(NULL)) error->status = EXPHIL_E_CANCELLED;
        fine = !cancel(NULL) && copy(from, i, &chosen, to, taken, error);
    }
    progress_clear(bar);
    free(chosen.hash);
    return fine;
}

/* ---- what is said -------------------------------------------------------------------------------------- */

static int64_t refused(const games_taken *taken)
{
    return taken->report.players - taken->report.taken;
}

void games_taken_print(const games_taken *taken)
{
    printf("players         %10" PRId64 "\n", taken->report.players);
    printf("  taken         %10" PRId64 "\n", taken->report.taken);
    printf("  refused       %10" PRId64 "\n", refused(taken));
    for (int32_t i = 0; i < EXPHIL_REFUSED_REASONS; i++)
        if (taken->report.refused[i])
            printf("  %10" PRId64 "  %s\n", taken->report.refused[i], exphil_refused_name(i));
    printf("games taken     %10" PRId64 "   of %" PRId64 " frames\n", taken->games, taken->frames);
    if (taken->there) printf("  there already %10" PRId64 "\n", taken->there);
}

void games_taken_write(FILE *to, const games_taken *taken)
{
    fprintf(to, "%" PRId64 "\tplayers\ttaken\t\n", taken->report.taken);
    for (int32_t i = 0; i < EXPHIL_REFUSED_REASONS; i++)
        if (taken->report.refused[i])
            fprintf(to, "%" PRId64 "\tplayers\trefused\t%s\n", taken->report.refused[i],
                    exphil_refused_name(i));
    fprintf(to, "%" PRId64 "\tgames\ttaken\t\n%" PRId64 "\tgames\tduplicate\tthe same game is there\n",
            taken->games, taken->there);
}

json_t *games_taken_json(const games_taken *taken)
{
    json_t *reasons = json_object();
    for (int32_t i = 0; i < EXPHIL_REFUSED_REASONS; i++)
        if (taken->report.refused[i])
            json_object_set_new(reasons, exphil_refused_name(i),
                                json_integer((json_int_t)taken->report.refused[i]));
    return json_pack("{s:I,s:I,s:I,s:o,s:I,s:I,s:I}", "players", (json_int_t)taken->report.players, "taken",
                     (json_int_t)taken->report.taken, "refused", (json_int_t)refused(taken), "reasons",
                     reasons, "games", (json_int_t)taken->games, "frames", (json_int_t)taken->frames,
                     "there_already", (json_int_t)taken->there);
}
