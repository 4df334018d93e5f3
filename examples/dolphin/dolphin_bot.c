/* A policy plays a GameCube game in stock Dolphin; or a script plays Pong and is recorded.
 *   dolphin_bot play   [OPTIONS] GAME.map GAME.dol WEIGHTS     a policy plays
 *   dolphin_bot teach  [OPTIONS] GAME.map GAME.dol [CORPUS]    the scripted player of Pong plays, into a corpus if it is named
 *   dolphin_bot train  GAME.map CORPUS WEIGHTS                 a policy learns from the corpus
 * Options: -n FRAMES of a game (3600), -g GAMES (1; Pong only: from seeds 1, 2, ...), -x SPEED (1: as on a console, 0: no limit),
 * -w SECONDS to wait for Dolphin, whatever it is to do (20),
 * -b: somebody bumps into the scripted player now and then; what it does meanwhile is not recorded, but how it recovers is
 * Ends with 0, or 1 with a line that says why, 2 for wrong words, 3 when there is no Dolphin. */
#define _POSIX_C_SOURCE 200809L
#include "../pong/pong.h"
#include "../pong/teacher.h"
#include "dolphin_play.h"
#include "dolphin_train.h"
#include "pong_game.h"

#include <fcntl.h>
#include <libretro-common/libretro.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct bot {
    int64_t frames, games, patience_s;
    double speed;
    struct game_map map;
    struct dolphin dolphin;
    struct play play;
    struct pong_tally tally;
    int is_pong, seed;
    int bumpy;                   /* -b */
    uint32_t random;             /* for bumps: when, how long, where to */
    int bump_frames, bump_press; /* left; pressed meanwhile */
    int bumped;                  /* the latest decision was none of the script's own */
    exphil_context *context;
    exphil_model *model;
    exphil_session *session; /* NULL: the scripted player */
    exphil_dataset *corpus;  /* NULL: nothing is recorded */
    float *floats;           /* of the episode so far, [rows, map.floats] ... */
    int32_t *ids, *actions;
    int64_t rows;
};

static int complain(const char *what, const exphil_error *error)
{
    return fprintf(stderr, "dolphin_bot: %s: %s: %s\n", what, exphil_status_name(error->status),
                   error->message),
           1;
}

/* ---- players ---- */

static int decide_by_policy(void *user, const struct play_frame *frame, int32_t *action)
{
    struct bot *b = user;
    if (b->is_pong) pong_count(&b->tally, frame->state);
    if (frame->fresh && exphil_session_reset(b->session, 0) < 0) return -1;
    if (exphil_session_step_row(b->session, frame->floats, frame->ids, NULL, action) >= 0) return 0;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_session_error(b->session, &error);
    snprintf(b->play.message, sizeof b->play.message, "%s: %s", exphil_status_name(error.status),
             error.message);
    return -1;
}

/* Without them a policy sees only what the script lets happen, and knows nothing of being too late. Ten to fifty frames about
 * every five seconds. */
static int bump(struct bot *b, int buttons)
{
    b->random = b->random * 1664525u + 1013904223u;
    uint32_t draw = b->random >> 16;
    if (b->bumpy && b->bump_frames == 0 && draw % 240 == 0) {
        b->bump_frames = 10 + (int)(draw / 240 % 40);
        b->bump_press = (int)(draw >> 8) % 3;
    }
    b->bumped = b->bump_frames > 0;
    if (!b->bumped) return buttons;
    b->bump_frames--;
    return b->bump_press;
}

static int decide_by_script(void *user, const struct play_frame *frame, int32_t *action)
{
    struct bot *b = user;
    struct game_press press = {0, {0}, 0};
    int buttons = bump(b, pong_teacher(frame->state, 0));
    pong_count(&b->tally, frame->state);
    if (buttons)
        press.buttons =
            (uint16_t)(1u << (buttons == PONG_UP ? RETRO_DEVICE_ID_JOYPAD_UP : RETRO_DEVICE_ID_JOYPAD_DOWN));
    game_map_action(&b->map, &press, action);
    return 0;
}

/* ---- recording ---- */

/* The rows so far are an episode. */
static int end_episode(struct bot *b)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    int64_t rows = b->rows;
    b->rows = 0;
    if (!b->corpus || rows == 0 ||
        exphil_dataset_add_rows(b->corpus, (uint64_t)b->seed, rows, b->floats, b->ids, b->actions, &error) >=
            0)
        return 0;
    snprintf(b->play.message, sizeof b->play.message, "%s: %s", exphil_status_name(error.status),
             error.message);
    return -1;
}

static int record(void *user, const struct play_frame *frame, const int32_t *action)
{
    struct bot *b = user;
    size_t floats = (size_t)b->map.floats, ids = (size_t)b->map.ids, heads = (size_t)b->map.heads;
    if ((frame->fresh || b->bumped) && end_episode(b)) return -1;
    if (b->bumped) return 0;
    size_t row = (size_t)b->rows++;
    memcpy(b->floats + row * floats, frame->floats, floats * sizeof *b->floats);
    memcpy(b->ids + row * ids, frame->ids, ids * sizeof *b->ids);
    memcpy(b->actions + row * heads, action, heads * sizeof *b->actions);
    return 0;
}

static int open_corpus(struct bot *b, exphil_error *error)
{
    exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT;
    config.spec = &b->map.spec;
    size_t rows = (size_t)b->frames;
    b->floats = calloc(rows, ((size_t)b->map.floats + 1) * sizeof *b->floats);
    b->ids = calloc(rows, ((size_t)b->map.ids + 1) * sizeof *b->ids);
    b->actions = calloc(rows, (size_t)b->map.heads * sizeof *b->actions);
    if (!b->floats || !b->ids || !b->actions) return fprintf(stderr, "dolphin_bot: no memory\n"), -1;
    return exphil_dataset_create(b->context, &config, &b->corpus, error) < 0 ? complain("corpus", error) : 0;
}

/* ---- games ---- */

static int compare_costs(const void *a, const void *b)
{
    int32_t left = *(const int32_t *)a, right = *(const int32_t *)b;
    return (left > right) - (left < right);
}

static void print_table(const struct bot *b, const char *who)
{
    const struct play_count *c = &b->play.count;
    const struct pong_tally *t = &b->tally;
    int64_t costs = c->frames < c->cost_room ? c->frames : c->cost_room, balls = t->returned + t->lost;
    qsort(c->cost_ns, (size_t)costs, sizeof *c->cost_ns, compare_costs);
    double p50 = costs ? c->cost_ns[costs / 2] / 1e3 : 0,
           p99 = costs ? c->cost_ns[costs * 99 / 100] / 1e3 : 0;
    printf("%-8s %8s %8s %6s %6s %7s %15s %9s %9s %9s %9s %6s %8s %9s\n", "player", "frames", "a second",
           "missed", "late", "untaken", "latency mean/max", "p50 us", "p99 us", "max us", "returned", "balls",
           "percent", "score");
    printf(
        "%-8s %8lld %8.2f %6lld %6lld %7lld %9.2f / %4lld %9.1f %9.1f %9.1f %9lld %6lld %8.2f %5lld:%lld\n",
        who, (long long)c->frames,
        c->time_ns ? (double)(c->frames + c->missed) * 1e9 / (double)c->time_ns : 0, (long long)c->missed,
        (long long)c->late, (long long)c->untaken, c->changes ? (double)c->latency / (double)c->changes : 0,
        (long long)c->latency_max, p50, p99, costs ? c->cost_ns[costs - 1] / 1e3 : 0, (long long)t->returned,
        (long long)balls, balls ? 100.0 * (double)t->returned / (double)balls : 0, (long long)t->won,
        (long long)t->lost);
}

static int play_games(struct bot *b)
{
    struct play *p = &b->play;
    int status = play_wait_game(p);
    for (int64_t game = 1; game <= b->games && status == DOLPHIN_OK; game++) {
        b->seed = (int)game;
        b->random = (uint32_t)game;
        memset(b->tally.before, 0, sizeof b->tally.before);
        if (b->is_pong && (status = pong_restart(&b->dolphin, b->map.state_address, b->seed)) != DOLPHIN_OK)
            snprintf(p->message, sizeof p->message, "%s", b->dolphin.message);
        if (status == DOLPHIN_OK) status = play_frames(p, b->frames);
        if (status == DOLPHIN_OK && end_episode(b)) status = DOLPHIN_FAILED;
    }
    return status;
}

static int run(struct bot *b, const char *game, const char *who)
{
    b->is_pong =
        b->map.magic_bytes == 4 && !memcmp(b->map.magic, "PONG", 4) && b->map.state_bytes == PONG_STATE_BYTES;
    if (!b->session && !b->is_pong)
        return fprintf(stderr, "dolphin_bot: the scripted player plays only Pong\n"), 1;
    if (b->games > 1 && !b->is_pong)
        return fprintf(stderr, "dolphin_bot: only Pong can be begun anew: -g 1\n"), 1;
    if (play_open(&b->play, &b->dolphin, &b->map))
        return fprintf(stderr, "dolphin_bot: %s\n", b->play.message), 1;
    b->play.decide = b->session ? decide_by_policy : decide_by_script;
    b->play.record = b->corpus ? record : NULL;
    b->play.user = b;
    b->play.count.cost_room = b->frames * b->games;
    b->play.count.cost_ns = calloc((size_t)b->play.count.cost_room, sizeof *b->play.count.cost_ns);
    if (!b->play.count.cost_ns) return fprintf(stderr, "dolphin_bot: no memory\n"), 1;
    int status = dolphin_start(&b->dolphin, NULL, game, b->speed, (int)b->patience_s);
    if (status != DOLPHIN_OK) {
        fprintf(stderr, "dolphin_bot: %s\n", b->dolphin.message);
        return status == DOLPHIN_MISSING ? 3 : 1;
    }
    status = play_games(b);
    const char *how = dolphin_stop(&b->dolphin);
    if (*how) fprintf(stderr, "dolphin_bot: Dolphin had to be %s\n", how);
    if (status != DOLPHIN_OK) return fprintf(stderr, "dolphin_bot: %s\n", b->play.message), 1;
    print_table(b, who);
    return 0;
}

/* ---- commands ---- */

static int play(struct bot *b, char **word, exphil_error *error)
{
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    config.spec = &b->map.spec;
    config.deterministic = 1;
    if (exphil_model_load(b->context, word[2], &b->model, error) < 0 ||
        exphil_session_create(b->model, &config, &b->session, error) < 0)
        return complain(word[2], error);
    return run(b, word[1], "policy");
}

static int teach(struct bot *b, char **word, exphil_error *error)
{
    if (word[2] && open_corpus(b, error)) return 1;
    int failed = run(b, word[1], "script");
    if (failed || !word[2]) return failed;
    return exphil_dataset_save(b->corpus, word[2], error) < 0 ? complain(word[2], error) : 0;
}

static int train(struct bot *b, char **word, exphil_error *error)
{
    return dolphin_train(b->context, &b->map.spec, word[1], word[2], error) < 0 ? complain("train", error)
                                                                                : 0;
}

static void interrupt(int signal)
{
    (void)signal;
    dolphin_interrupted = 1;
}

static int read_options(struct bot *b, int argc, char **argv)
{
    for (int option; (option = getopt(argc, argv, "n:g:x:w:b")) != -1;) {
        char *end = NULL;
        double value = option == '?' ? -1 : option == 'b' ? 0 : strtod(optarg, &end);
        if (!(value >= 0 && value <= 1e9) || (end && (*end || end == optarg))) return -1;
        if (option == 'b') b->bumpy = 1;
        if (option == 'n') b->frames = (int64_t)value;
        if (option == 'g') b->games = (int64_t)value;
        if (option == 'x') b->speed = value;
        if (option == 'w') b->patience_s = (int64_t)value;
    }
    return b->frames < 1 || b->frames > 100000000 || b->games < 1 || b->games > 140 || b->speed > 100 ||
                   b->patience_s < 1 || b->patience_s > 3600
               ? -1
               : 0;
}

/* Files that are opened later, Dolphin's among them, must not get the numbers of closed standard streams: messages would go
 * into them. */
static void hold_streams(void)
{
    for (int stream = 0; stream <= 2; stream++)
        if (fcntl(stream, F_GETFD) < 0 && open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY) < 0) return;
}

int main(int argc, char **argv)
{
    hold_streams();
    static struct bot b = {.frames = 3600, .games = 1, .patience_s = 20, .speed = 1};
    static const struct {
        const char *name;
        int (*run)(struct bot *, char **, exphil_error *);
        int least;
    } commands[] = {{"play", play, 3}, {"teach", teach, 2}, {"train", train, 3}};
    exphil_error error = EXPHIL_ERROR_INIT;
    char message[400];
    size_t i = 0;
    while (argc > 1 && i < 3 && strcmp(argv[1], commands[i].name) != 0) i++;
    if (argc < 2 || i == 3 || read_options(&b, argc - 1, argv + 1) || argc - 1 - optind < commands[i].least ||
        argc - 1 - optind > 3)
        return fprintf(stderr, "dolphin_bot play|teach [-n FRAMES] [-g GAMES] [-x SPEED] [-w SECONDS] [-b] "
                               "MAP GAME WEIGHTS|[CORPUS]\n"
                               "dolphin_bot train MAP CORPUS WEIGHTS\n"),
               2;
    struct sigaction action = {.sa_handler = interrupt};
    sigaction(SIGINT, &action, NULL), sigaction(SIGTERM, &action, NULL), sigaction(SIGHUP, &action, NULL);
    char **word = argv + 1 + optind;
    if (game_map_load(&b.map, word[0], message, sizeof message))
        return fprintf(stderr, "dolphin_bot: %s\n", message), 1;
    int failed = exphil_context_create(NULL, &b.context, &error) < 0 ? complain("start", &error)
                                                                     : commands[i].run(&b, word, &error);
    exphil_session_destroy(b.session);
    exphil_model_destroy(b.model);
    exphil_dataset_destroy(b.corpus);
    exphil_context_destroy(b.context);
    game_map_free(&b.map);
    free(b.floats), free(b.ids), free(b.actions), free(b.play.count.cost_ns);
    return failed;
}
