/* Plays a policy in Slippi Dolphin: frames from its spectator stream, controllers into its pipe.
 *   slippi_bot [OPTIONS] WEIGHTS PIPE
 * One model, one session, one player of the game. It waits for the game, follows from game to game and through lost
 * connections, and tells its figures at the end: after --games or --frames, or when interrupted. */
#include "controller.h"
#include "pipe.h"
#include "player.h"
#include "spectator.h"
#include "system.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    EMPTY_PORT = 3, /* exphil_slp_port.type */
    HINT_MS = 10000 /* so long without an answer: what may be wrong is told */
};

struct options {
    const char *weights, *pipe;
    spectator_config game;
    exphil_session_config session;
    int64_t frames, games;
    int32_t player, opponent, game_delay, flush, quiet;
};

struct bot {
    struct options options;
    exphil_context *context;
    exphil_model *model;
    spectator *spectator;
    controller *controller;
    player *player;
    exphil_pad held;
    int64_t written, unread, games;
    int64_t slowest_ns, total_ns; /* from a frame's arrival until it is in the pipe */
    int64_t hint_ns;              /* when the hint is due; INT64_MAX: not any more */
    int last_send;
    int unseen;   /* a game has begun, none of its frames has come */
    int left_out; /* this game is without the player or the opponent that was asked for */
    int ever_left_out;
};

static volatile sig_atomic_t stopped;

static void stop(void)
{
    stopped = 1;
}

static int complain(const char *what, const char *more)
{
    return fprintf(stderr, "slippi_bot: %s: %s\n", what, more), 0;
}

/* ---- options --------------------------------------------------------------------------------------------- */

static const char usage[] =
    "slippi_bot [OPTIONS] WEIGHTS PIPE\n"
    "  --host NAME         where the game runs (127.0.0.1)\n"
    "  --port N            of its spectator stream, UDP (51441)\n"
    "  --player N          whom to play, 1..4 (1)\n"
    "  --opponent N        1..4; 0: the first other player (0)\n"
    "  --game-delay N      frames that the game itself delays inputs by; online: as set there, often 2 (0)\n"
    "  --deterministic     always the likeliest action\n"
    "  --seed N            of the noise otherwise (0)\n"
    "  --flush             end each frame with FLUSH, for BlockingPipes = True\n"
    "  --frames N          stop after so many frames\n"
    "  --games N           stop after so many games\n"
    "  --quiet             only errors, and the figures at the end\n"
    "  --help              this text\n";

static int take_number(const char *name, const char *text, int64_t low, int64_t high, int64_t *value)
{
    char *end;
    long long read = text ? strtoll(text, &end, 10) : 0;
    if (!text || end == text || *end || read < low || read > high)
        return fprintf(stderr, "slippi_bot: %s wants a number from %lld to %lld\n", name, (long long)low,
                       (long long)high),
               0;
    *value = read;
    return 1;
}

/* Options with a value. 1: taken; 0: there is something wrong, which has been said; -1: no such option. */
static int take_option(struct options *o, const char *name, const char *text)
{
    int64_t value = 0;
    static const struct {
        const char *name;
        int64_t low, high;
    } numbers[] = {{"--port", 1, 65535},     {"--player", 1, 4},       {"--opponent", 0, 4},
                   {"--game-delay", 0, 64},  {"--seed", 0, INT64_MAX}, {"--frames", 1, INT64_MAX},
                   {"--games", 1, INT64_MAX}};
    size_t i = 0, count = sizeof numbers / sizeof numbers[0];
    if (!strcmp(name, "--host")) {
        o->game.host = text;
        return text ? 1 : (fprintf(stderr, "slippi_bot: --host wants a name\n"), 0);
    }
    while (i < count && strcmp(name, numbers[i].name) != 0) i++;
    if (i == count) return -1;
    if (!take_number(name, text, numbers[i].low, numbers[i].high, &value)) return 0;
    switch (i) {
    case 0:
        o->game.port = (uint16_t)value;
        break;
    case 1:
        o->player = (int32_t)value;
        break;
    case 2:
        o->opponent = (int32_t)value;
        break;
    case 3:
        o->game_delay = (int32_t)value;
        break;
    case 4:
        o->session.seed = (uint64_t)value;
        break;
    case 5:
        o->frames = value;
        break;
    default:
        o->games = value;
        break;
    }
    return 1;
}

static int read_options(struct options *o, int argc, char **argv)
{
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (!strcmp(argv[i], "--help"))
            exit(fputs(usage, stdout) < 0);
        else if (!strcmp(argv[i], "--deterministic"))
            o->session.deterministic = 1;
        else if (!strcmp(argv[i], "--flush"))
            o->flush = 1;
        else if (!strcmp(argv[i], "--quiet"))
            o->quiet = 1;
        else {
            int taken = take_option(o, argv[i], i + 1 < argc ? argv[i + 1] : NULL);
            if (taken < 0) return complain(argv[i], "no such option; --help tells all");
            if (taken == 0) return 0;
            i++;
        }
    }
    if (argc - i != 2) return complain("WEIGHTS PIPE", "these two, after the options; --help tells more");
    if (o->opponent == o->player) return complain("--opponent", "the same as --player; name another, or 0");
    o->weights = argv[i];
    o->pipe = argv[i + 1];
    return 1;
}

/* ---- play ------------------------------------------------------------------------------------------------ */

static int complain_of_pipe(const struct bot *b, int error)
{
    return complain(b->options.pipe, error == EBUSY
                                         ? "another bot writes to this pipe; each wants one of its own"
                                         : strerror(error));
}

/* The two names are easily given the wrong way round: a pipe is not opened to be read as weights. */
static int open_player(struct bot *b, exphil_error *error)
{
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    const struct options *o = &b->options;
    char plays[96];
    if (pipe_is_name(o->weights)) return complain(o->weights, "a pipe; WEIGHTS come first, then PIPE");
    if (exphil_model_load(b->context, o->weights, &b->model, error) < 0 ||
        exphil_model_query(b->model, &info, error) < 0)
        return complain(exphil_status_name(error->status), error->message);
    if (!exphil_melee_field_count(info.layout)) {
        snprintf(plays, sizeof plays, "plays %s/%s, not Melee", info.layout, info.codec);
        return complain(o->weights, plays);
    }
    return player_create(b->model, &o->session, o->game_delay, &b->player, error) >= 0 ||
           complain(o->weights, error->message);
}

static int open_bot(struct bot *b)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    const struct options *o = &b->options;
    if (exphil_context_create(NULL, &b->context, &error) < 0)
        return complain(exphil_status_name(error.status), error.message);
    if (!open_player(b, &error)) return 0;
    b->spectator = spectator_create(b->context, &o->game, &error);
    if (!b->spectator) return complain(exphil_status_name(error.status), error.message);
    b->controller = controller_create(o->pipe, o->flush);
    if (!b->controller && errno == EINVAL) return complain(o->pipe, pipe_wanted);
    return b->controller ? 1 : complain_of_pipe(b, errno);
}

static void say(const struct bot *b, const char *what, const char *more)
{
    if (!b->options.quiet) printf("%s%s%s\n", what, *more ? ": " : "", more), fflush(stdout);
}

static void say_address(const struct bot *b, const char *what, const char *more)
{
    const spectator_config *game = &b->options.game;
    char text[400];
    snprintf(text, sizeof text, "%s %s:%u", what, game->host ? game->host : "127.0.0.1",
             game->port ? (unsigned)game->port : SPECTATOR_PORT);
    say(b, text, more);
}

/* It goes on waiting for ever: the game may be started hours later. But once it tells what may be wrong. */
static void hint(struct bot *b)
{
    spectator_stats seen;
    if (system_now_ns() < b->hint_ns) return;
    b->hint_ns = INT64_MAX;
    spectator_query(b->spectator, &seen);
    if (!seen.connections)
        say_address(b, "nothing yet from",
                    "is the spectator stream on? (--port is its UDP port, --player the controller)");
}

/* What is held goes out on every new frame: with blocking pipes the game waits for it. */
static int send_pad(struct bot *b)
{
    int status = controller_send(b->controller, &b->held);
    if (status < 0) return complain_of_pipe(b, -status);
    if (status == CONTROLLER_OK)
        b->written++;
    else
        b->unread++;
    if (status != b->last_send)
        say(b, b->options.pipe,
            status == CONTROLLER_OK     ? "written"
            : status == CONTROLLER_FULL ? "not read"
                                        : pipe_no_reader);
    b->last_send = status;
    return 1;
}

/* port 0: nobody was named. Whoever was named and does not play is told, with those who do. */
static int is_in_game(const exphil_slp_info *info, const char *who, int32_t port)
{
    char others[32] = "nobody";
    size_t used = 0;
    if (!port || info->ports[port - 1].type != EMPTY_PORT) return 1;
    for (int left = info->player_count, i = 0; i < EXPHIL_SLP_PORTS; i++) {
        if (info->ports[i].type == EMPTY_PORT) continue;
        const char *between = !used ? "" : left == 1 ? " and " : ", ";
        used += (size_t)snprintf(others + used, sizeof others - used, "%s%d", between, i + 1);
        left--;
    }
    fprintf(stderr, "slippi_bot: %s %d is not in this game; there are %s\n", who, (int)port, others);
    return 0;
}

/* With the first frame of a game it is known who plays. */
static int look_around(struct bot *b)
{
    exphil_slp_info info = EXPHIL_SLP_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_status status = exphil_slp_stream_query(spectator_stream(b->spectator), &info, &error);
    if (status < 0) return complain(exphil_status_name(status), error.message);
    b->unseen = 0;
    b->left_out = !is_in_game(&info, "player", b->options.player) ||
                  !is_in_game(&info, "opponent", b->options.opponent);
    b->ever_left_out |= b->left_out;
    return 1;
}

/* A player who is out of the game, or not in it yet, holds nothing; nor does anybody before the clock starts. */
static int play_frame(struct bot *b)
{
    int64_t start = system_now_ns();
    if (b->unseen && !look_around(b)) return 0;
    if (b->left_out) return send_pad(b);
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_melee_frame frame = EXPHIL_MELEE_FRAME_INIT;
    exphil_status status = exphil_slp_stream_melee_frame(spectator_stream(b->spectator), b->options.player,
                                                         b->options.opponent, &frame, &error);
    int new_frame = 1;
    if (status == EXPHIL_E_INVALID)
        b->held = (exphil_pad){0, 0, 0, 0, 0, 0};
    else if (status >= 0)
        new_frame = player_frame(b->player, &frame, &b->held);
    else
        return complain(exphil_status_name(status), error.message);
    if (new_frame < 0) {
        /* Values that are not finite: this frame is passed over, and what is held stays. */
        (void)exphil_session_error(player_session(b->player), &error);
        if (new_frame != EXPHIL_E_NUMERIC) return complain(exphil_status_name(new_frame), error.message);
        say(b, "a frame is passed over", error.message);
    }
    if (!new_frame) return 1; /* a correction: nothing to press */
    if (!send_pad(b)) return 0;
    int64_t took = system_now_ns() - start;
    b->total_ns += took;
    if (took > b->slowest_ns) b->slowest_ns = took;
    return 1;
}

static int is_done(const struct bot *b)
{
    player_stats stats;
    player_query(b->player, &stats);
    return stopped || (b->options.frames && (int64_t)stats.frames >= b->options.frames) ||
           (b->options.games && b->games >= b->options.games);
}

static int handle(struct bot *b, spectator_event event)
{
    switch (event) {
    case SPECTATOR_FRAME:
        return play_frame(b);
    case SPECTATOR_GAME_BEGIN:
        say(b, "a game begins", "");
        b->unseen = 1;
        b->held = (exphil_pad){0, 0, 0, 0, 0, 0};
        controller_forget(b->controller); /* the game may have been started anew */
        return player_reset(b->player) >= 0 || complain("reset", "the session refuses");
    case SPECTATOR_GAME_END:
        b->games++;
        b->held = (exphil_pad){0, 0, 0, 0, 0, 0};
        say(b, "the game is over", "");
        return send_pad(b);
    case SPECTATOR_MENU:
        return !b->options.flush || send_pad(b); /* a menu waits for its controllers, too */
    case SPECTATOR_CONNECTED:
        controller_forget(b->controller);
        return say(b, "connected", spectator_version(b->spectator)), 1;
    case SPECTATOR_LOST:
        return say(b, "connection lost", spectator_trouble(b->spectator)), 1;
    case SPECTATOR_DAMAGED:
        return say(b, "unusable", spectator_trouble(b->spectator)), 1;
    case SPECTATOR_FAILED:
        return fprintf(stderr, "slippi_bot: %s\n", spectator_trouble(b->spectator)), 0;
    case SPECTATOR_NOTHING:
        break;
    }
    return 1;
}

/* Whether all went well: a bot that was left out of every game has not played, whatever else it did. */
static int tell_figures(const struct bot *b)
{
    exphil_session_info info = EXPHIL_SESSION_INFO_INIT;
    spectator_stats seen;
    player_stats stats;
    spectator_query(b->spectator, &seen);
    player_query(b->player, &stats);
    if (exphil_session_query(player_session(b->player), &info, NULL) < 0) return 0;
    int64_t sent = b->written + b->unread;
    printf("%lld games, %llu frames received, %llu played, %llu corrected, %llu too late to correct\n",
           (long long)b->games, (unsigned long long)seen.frames, (unsigned long long)stats.frames,
           (unsigned long long)stats.corrections, (unsigned long long)stats.lost);
    printf("%llu connections, %llu messages, %llu unusable; %lld frames written, %lld not read\n",
           (unsigned long long)seen.connections, (unsigned long long)seen.messages,
           (unsigned long long)seen.damaged, (long long)b->written, (long long)b->unread);
    printf("step: p50 < %.1f us, p99 < %.1f us, max %.1f us, missed %llu; frame to pipe: mean %.1f us, max "
           "%.1f us\n",
           (double)info.p50_ns / 1e3, (double)info.p99_ns / 1e3, (double)info.max_ns / 1e3,
           (unsigned long long)info.missed, sent ? (double)b->total_ns / (double)sent / 1e3 : 0.0,
           (double)b->slowest_ns / 1e3);
    return stats.frames > 0 || !b->ever_left_out;
}

int main(int argc, char **argv)
{
    system_hold_streams();
    system_arguments(&argc, &argv);
    static struct bot b;
    b.options.player = 1;
    b.options.session = (exphil_session_config)EXPHIL_SESSION_CONFIG_INIT;
    b.last_send = -1; /* nothing yet: the first one is told, too */
    if (!read_options(&b.options, argc, argv)) return 2;
    system_on_stop(stop);
    int fine = open_bot(&b);
    if (fine) say_address(&b, "waiting for the game:", "");
    b.hint_ns = system_now_ns() + HINT_MS * INT64_C(1000000);
    while (fine && !is_done(&b)) {
        fine = handle(&b, spectator_poll(b.spectator, 100));
        hint(&b);
    }
    if (b.controller && !tell_figures(&b)) fine = 0;
    controller_destroy(b.controller);
    spectator_destroy(b.spectator);
    player_destroy(b.player);
    exphil_model_destroy(b.model);
    exphil_context_destroy(b.context);
    return !fine;
}
