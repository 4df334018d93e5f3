/* `exphil match`: policies against each other, each pair with seats exchanged and common chance. */
#include "commands.h"
#include "learn_run.h"
#include "options.h"
#include "stop.h"
#include "world.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { POLICIES_MOST = 16, LANES = 64 };

typedef struct match_options {
    const char *world;
    machine_options machine;
    int64_t games, seed, frames;
    double points;
    bool likeliest, json, quiet;
} match_options;

typedef struct table {
    const match_options *o;
    exphil_context *context;
    exphil_world world;
    exphil_model *model[POLICIES_MOST];
    char **paths;
    int count;
    exphil_match_result of[POLICIES_MOST][POLICIES_MOST]; /* of those with i < j */
} table;

static bool make(table *t)
{
    if (!world_has_seats(t->o->world, 2)) {
        fprintf(stderr, "exphil: --world: match wants a world of two seats, as pong, not %s\n", t->o->world);
        return false;
    }
    if (!open_context(&t->o->machine, stop_cancel, &t->context)) return false;
    if (!world_open(t->context, t->o->world, LANES, 2, &t->world)) return false;
    for (int i = 0; i < t->count; i++)
        if (!load_weights(t->context, t->paths[i], "match wants weights", &t->model[i])) return false;
    return true;
}

static bool play(table *t)
{
    const match_options *o = t->o;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_match_config config = EXPHIL_MATCH_CONFIG_INIT;
    progress bar;
    int64_t pairs = (int64_t)t->count * (t->count - 1) / 2, done = 0;
    config.games = o->games;
    config.seed = (uint64_t)o->seed;
    config.points = o->points;
    config.most_frames = o->frames;
    config.deterministic = o->likeliest;
    progress_begin(&bar, 0, pairs, o->quiet || o->json);
    for (int i = 0; i < t->count; i++)
        for (int j = i + 1; j < t->count; j++) {
            t->of[i][j] = (exphil_match_result)EXPHIL_MATCH_RESULT_INIT;
            if (exphil_match(t->model[i], t->model[j], &t->world, &config, &t->of[i][j], &error) < 0) {
                progress_clear(&bar);
                return complain("match", &error) == 0;
            }
            done++;
            progress_count(&bar, done, "matches", "", done == pairs);
        }
    return true;
}

static json_t *one_json(const table *t, int i, int j)
{
    const exphil_match_result *m = &t->of[i][j];
    return json_pack("{s:o,s:o,s:I,s:I,s:I,s:I,s:f,s:f,s:f,s:f,s:f,s:f}", "a", path_json(t->paths[i]), "b",
                     path_json(t->paths[j]), "games", (json_int_t)m->games, "won", (json_int_t)m->won, "lost",
                     (json_int_t)m->lost, "drawn", (json_int_t)m->drawn, "score", m->score, "low", m->low,
                     "high", m->high, "points", m->points, "points_against", m->points_against, "frames",
                     m->frames);
}

static int print_one(const table *t)
{
    const exphil_match_result *m = &t->of[0][1];
    double thousand = m->frames > 0.0 ? m->frames / 1000.0 : 1.0;
    printf("%s against %s: %.3f of %" PRId64 " games (95 %%: %.3f to %.3f); won %" PRId64 ", lost %" PRId64
           ", drawn %" PRId64 "\n",
           t->paths[0], t->paths[1], m->score, m->games, m->low, m->high, m->won, m->lost, m->drawn);
    printf("points %.0f to %.0f, %.2f to %.2f in 1,000 frames\n", m->points, m->points_against,
           m->points / thousand, m->points_against / thousand);
    return 0;
}

/* What the row wins against the column; at the end against all others. */
static int print_table(const table *t)
{
    printf("%-24s", "score against");
    for (int j = 0; j < t->count; j++) printf("  %6d", j + 1);
    printf("    mean\n");
    for (int i = 0; i < t->count; i++) {
        double sum = 0.0;
        printf("%2d %-21.21s", i + 1, t->paths[i]);
        for (int j = 0; j < t->count; j++) {
            double score = i < j ? t->of[i][j].score : i > j ? 1.0 - t->of[j][i].score : 0.0;
            sum += score;
            if (i == j)
                printf("  %6s", "-");
            else
                printf("  %6.3f", score);
        }
        printf("  %6.3f\n", sum / (double)(t->count - 1));
    }
    return 0;
}

static int show(const table *t)
{
    if (!t->o->json) return t->count == 2 ? print_one(t) : print_table(t);
    json_t *all = json_array();
    for (int i = 0; i < t->count; i++)
        for (int j = i + 1; j < t->count; j++) json_array_append_new(all, one_json(t, i, j));
    return print_json(json_pack("{s:s,s:b,s:I,s:o}", "world", t->o->world, "likeliest", t->o->likeliest,
                                "seed", (json_int_t)t->o->seed, "matches", all));
}

static void drop(table *t)
{
    exphil_world_destroy(&t->world);
    for (int i = 0; i < t->count; i++) exphil_model_destroy(t->model[i]);
    exphil_context_destroy(t->context);
}

int match_command(int argc, char **argv)
{
    static match_options o = {.games = 200};
    static const option_entry entries[] = {
        {"world", OPTION_TEXT, &o.world, "NAME",
         "pong: first to 11 points, each policy on both sides; or NAME:ARGUMENTS or FILE.so:ARGUMENTS, a "
         "library of another game of two seats"},
        {"games", OPTION_INT, &o.games, "N", "of each pair, an even number: two of each start (default 200)"},
        {"points", OPTION_NUMBER, &o.points, "X", "that win a game (default 11; -1: the world's own end)"},
        {"most-frames", OPTION_INT, &o.frames, "N", "of a game, which the leader then wins (default 20000)"},
        {"likeliest", OPTION_FLAG, &o.likeliest, NULL, "likeliest actions (default: actions are drawn)"},
        {"seed", OPTION_INT, &o.seed, "N", "of starts and draws (default 0)"},
        {"threads", OPTION_INT, &o.machine.threads, "N", "processor threads (default 0: one per core)"},
        {"device", OPTION_TEXT, &o.machine.device, "NAME", DEVICE_HELP},
        {"quiet", OPTION_FLAG, &o.quiet, NULL, "no progress (default: shown; --json: no progress)"},
        {"json", OPTION_FLAG, &o.json, NULL, "print one JSON object (default: a line, of several a table)"},
        {NULL, 0, NULL, NULL, NULL},
    };
    static const option_command command = {
        .usage = "match [OPTIONS] --world NAME A B [C...]",
        .about =
            "Plays policies against each other, every pair, and says who wins how often.\n"
            "A, B, C: weights of exphil learn or train. Each start is played twice with seats exchanged, and "
            "both games\nmeet the same chance; all games that are started count, an even one as a half. The "
            "interval is by\nbootstrap over starts.",
        .entry = entries};
    int count, status = 1;
    if (!options_read(&command, argc, argv, &count, &status)) return status;
    if (!o.world || count < 2 || count > POLICIES_MOST || o.games % 2) {
        fprintf(stderr, "exphil: match wants %s; see exphil match --help\n",
                !o.world      ? "--world NAME"
                : o.games % 2 ? "an even number of --games: each start is played twice"
                              : "2 to 16 weights");
        return 2;
    }
    static table t;
    t = (table){.o = &o, .paths = argv + 1, .count = count};
    stop_catch();
    status = make(&t) && play(&t) ? show(&t) : stop_asked() ? stop_status() : 1;
    drop(&t);
    return status;
}
