/* End to end: slippi_bot at a served game, its pipe read as the game reads it, against a session in this process over the same
 * frames.
 *   pipe_check PIPE WEIGHTS GAME.slp PLAYER FRAMES GAME_DELAY COMMAND [ARGUMENT...]
 * COMMAND is the bot; it gets WEIGHTS and PIPE appended and must write FRAMES frames that end with FLUSH. The reference knows
 * nothing of snapshots: after a correction it begins again from the first frame, with the actions that were pressed. */
#include "../system.h"
#include "controller.h"
#include "peer.h"

#include <exphil/slp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOLD_MAX = 64 };

struct reference {
    exphil_context *context;
    exphil_model *model;
    exphil_session *session;
    exphil_slp *slp;
    exphil_model_info info;
    exphil_melee_frame *known; /* [count] by frame index - first, in the latest version */
    int32_t (*pressed)[EXPHIL_HEADS_MAX];
    int32_t count, hold; /* frames -1.. stepped so far */
    int corrected;
};

static int fail(const char *what, const char *more)
{
    fprintf(stderr, "pipe_check: %s: %s\n", what, more);
    return 0;
}

/* ---- what the game reads --------------------------------------------------------------------------------- */

struct reader {
    exphil_pad now, *pads;
    int64_t count, room;
    char line[256];
    size_t length;
};

static const struct {
    const char *name;
    uint32_t bit;
} buttons[] = {{"A", EXPHIL_PAD_A},           {"B", EXPHIL_PAD_B},           {"X", EXPHIL_PAD_X},
               {"Y", EXPHIL_PAD_Y},           {"Z", EXPHIL_PAD_Z},           {"L", EXPHIL_PAD_L},
               {"R", EXPHIL_PAD_R},           {"START", EXPHIL_PAD_START},   {"D_UP", EXPHIL_PAD_D_UP},
               {"D_DOWN", EXPHIL_PAD_D_DOWN}, {"D_LEFT", EXPHIL_PAD_D_LEFT}, {"D_RIGHT", EXPHIL_PAD_D_RIGHT}};

/* Dolphin makes a byte of it, Melee a stick of the byte. */
static float stick(double value)
{
    double byte = floor((value - 0.5) * 254);
    return (float)(byte > 80 ? 80 : byte < -80 ? -80 : byte) / 80;
}

static int take_line(struct reader *r)
{
    char word[16], name[16];
    double x = 0, y = 0;
    uint32_t bit = 0;
    if (!strcmp(r->line, "FLUSH")) {
        if (r->count < r->room) r->pads[r->count] = r->now;
        r->count++;
        return 1;
    }
    int read = sscanf(r->line, "%15s %15s %lf %lf", word, name, &x, &y);
    for (size_t i = 0; read >= 2 && i < sizeof buttons / sizeof buttons[0]; i++)
        if (!strcmp(name, buttons[i].name)) bit = buttons[i].bit;
    if (read == 2 && bit && !strcmp(word, "PRESS"))
        r->now.buttons |= bit;
    else if (read == 2 && bit && !strcmp(word, "RELEASE"))
        r->now.buttons &= ~bit;
    else if (read == 4 && !strcmp(word, "SET") && !strcmp(name, "MAIN"))
        r->now.main_x = stick(x), r->now.main_y = stick(y);
    else if (read == 4 && !strcmp(word, "SET") && !strcmp(name, "C"))
        r->now.c_x = stick(x), r->now.c_y = stick(y);
    else if (read == 3 && !strcmp(word, "SET") && !strcmp(name, "L"))
        r->now.trigger = (float)floor(x * 255) / 140;
    else
        return fail("the pipe says", r->line);
    return 1;
}

static int take_bytes(struct reader *r, const char *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (data[i] != '\n') {
            if (r->length + 1 >= sizeof r->line) return fail("the pipe", "a line is too long");
            r->line[r->length++] = data[i];
            continue;
        }
        r->line[r->length] = '\0';
        r->length = 0;
        if (!take_line(r)) return 0;
    }
    return 1;
}

/* Until the bot is gone. The pipe is open for reading before it starts, and read as fast as it is written. It has room for all of
 * it: on a busy machine the bot, which never waits, must not run ahead of the reader. */
static int run_bot(struct reader *r, const char *path, char **command)
{
    char buffer[65536];
    int status = -1, fine = 1;
    peer_make(path);
    peer *pipe = peer_open(path, 1 << 20);
    if (!pipe) return fail(path, "cannot be read");
    peer_program *bot = peer_start(command);
    if (!bot) return fail(command[0], "does not start");
    for (;;) {
        size_t bytes = peer_read(pipe, buffer, sizeof buffer);
        if (bytes > 0) fine = fine && take_bytes(r, buffer, bytes);
        if (bytes > 0) continue;
        if (status >= 0) break; /* it is gone, and nothing is left */
        status = peer_ended(bot);
        if (status < 0) peer_pause();
    }
    peer_close(pipe);
    if (status) return fail(command[0], "failed");
    return fine;
}

/* ---- what it should read --------------------------------------------------------------------------------- */

static int open_reference(struct reference *r, const char *weights, const char *game, int32_t game_delay)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_slp_config all = EXPHIL_SLP_CONFIG_INIT;
    all.rollback = EXPHIL_SLP_ALL;
    r->info = (exphil_model_info)EXPHIL_MODEL_INFO_INIT;
    if (exphil_context_create(NULL, &r->context, &error) < 0 ||
        exphil_model_load(r->context, weights, &r->model, &error) < 0 ||
        exphil_model_query(r->model, &r->info, &error) < 0 ||
        exphil_slp_open(r->context, game, &all, &r->slp, &error) < 0)
        return fail("reference", error.message);
    size_t frames = (size_t)exphil_slp_frame_count(r->slp) + 1;
    r->known = calloc(frames, sizeof *r->known);
    r->pressed = calloc(frames, sizeof *r->pressed);
    r->hold = r->info.delay_frames - game_delay;
    return r->known && r->pressed;
}

static int begin_again(struct reference *r)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    config.seed = 7;
    config.deliver = EXPHIL_DELIVER_DECIDED;
    exphil_session_destroy(r->session);
    r->session = NULL;
    if (exphil_session_create(r->model, &config, &r->session, &error) < 0)
        return fail("session", error.message);
    for (int32_t i = 0; i < r->count; i++) {
        exphil_pad pad;
        if (exphil_session_step(r->session, &r->known[i], &pad) < 0 ||
            exphil_session_override(r->session, 0, r->pressed[i]) < 0)
            return fail("session", "does not step");
    }
    r->corrected = 0;
    return 1;
}

/* The pads that should come: *count of them, one for the menu and one for every new frame of the game. */
static int expect(struct reference *r, int32_t player, exphil_pad *pads, int64_t frames, int64_t *count)
{
    exphil_pad held[HOLD_MAX + 1] = {{0, 0, 0, 0, 0, 0}};
    int32_t newest = INT32_MIN;
    *count = 1; /* the menu before the game: serve_slp shows one frame of it, with nothing pressed */
    if (!begin_again(r)) return 0;
    for (int64_t at = 0; at < exphil_slp_frame_count(r->slp) && r->count < frames; at++) {
        exphil_melee_frame frame = EXPHIL_MELEE_FRAME_INIT;
        int32_t index = exphil_slp_frame_at(r->slp, at)->frame;
        if (exphil_slp_melee_frame(r->slp, at, player, 0, &frame, NULL) < 0)
            return fail("the game", "lacks the player");
        if (index <= newest) {
            if (index >= -1) r->known[index + 1] = frame, r->corrected++;
            continue;
        }
        newest = index;
        exphil_pad pad = {0, 0, 0, 0, 0, 0};
        if (index >= -1) {
            if (r->corrected && !begin_again(r)) return 0;
            if (exphil_session_step(r->session, &frame, &held[r->count % (HOLD_MAX + 1)]) < 0 ||
                exphil_melee_pad_encode(r->info.codec, &held[r->count % (HOLD_MAX + 1)], r->pressed[r->count],
                                        NULL) < 0)
                return fail("session", "does not step");
            r->known[r->count] = frame;
            if (r->count >= r->hold) pad = held[(r->count - r->hold) % (HOLD_MAX + 1)];
            r->count++;
        }
        pads[(*count)++] = pad;
    }
    return 1;
}

static int same(const exphil_pad *a, const exphil_pad *b)
{
    return a->buttons == b->buttons && a->main_x == b->main_x && a->main_y == b->main_y && a->c_x == b->c_x &&
           a->c_y == b->c_y && a->trigger == b->trigger;
}

static int compare(const struct reader *r, const exphil_pad *want, int64_t count)
{
    int64_t moves = 0;
    if (r->count < count)
        return fprintf(stderr, "pipe_check: %lld frames of %lld\n", (long long)r->count, (long long)count), 0;
    for (int64_t i = 0; i < count; i++) {
        const exphil_pad *a = &r->pads[i], *b = &want[i];
        if (!same(a, b))
            return fprintf(stderr, "pipe_check: frame %lld is %x %g %g %g %g %g, not %x %g %g %g %g %g\n",
                           (long long)i, (unsigned)a->buttons, a->main_x, a->main_y, a->c_x, a->c_y,
                           a->trigger, (unsigned)b->buttons, b->main_x, b->main_y, b->c_x, b->c_y,
                           b->trigger),
                   0;
        moves += i > 0 && !same(b, b - 1);
    }
    if (moves < count / 100) return fail("the policy", "hardly moves: nothing is compared");
    printf("pipe: %lld frames as the session's, %lld changes\n", (long long)count, (long long)moves);
    return 1;
}

int main(int argc, char **argv)
{
    system_arguments(&argc, &argv);
    struct reference reference = {.count = 0};
    struct reader reader = {.room = 0};
    char *command[64];
    int n = 0;
    if (argc < 8 || argc > 60) return fprintf(stderr, "pipe_check: see its first lines\n"), 2;
    for (int i = 7; i < argc; i++) command[n++] = argv[i];
    command[n++] = argv[2];
    command[n++] = argv[1];
    command[n] = NULL;
    if (!open_reference(&reference, argv[2], argv[3], atoi(argv[6]))) return 1;
    reader.room = exphil_slp_frame_count(reference.slp) + 2;
    int64_t count;
    exphil_pad *want = calloc((size_t)reader.room, sizeof *want);
    reader.pads = calloc((size_t)reader.room, sizeof *reader.pads);
    if (!want || !reader.pads || !expect(&reference, atoi(argv[4]), want, atoll(argv[5]), &count) ||
        !run_bot(&reader, argv[1], command) || !compare(&reader, want, count))
        return 1;
    free(want);
    free(reader.pads);
    free(reference.known);
    free(reference.pressed);
    exphil_slp_destroy(reference.slp);
    exphil_session_destroy(reference.session);
    exphil_model_destroy(reference.model);
    exphil_context_destroy(reference.context);
    return 0;
}
