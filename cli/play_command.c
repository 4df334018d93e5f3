/* `exphil play`: sessions see a replay frame by frame and say what they would press; agreement and latency
 * are reported. Two sessions run side by side. The past actions of the first are the recorded ones
 * (teacher-forced, as in training and in eval); the second remembers only its own decisions, as in a live
 * game. */
#include "archive.h"
#include "commands.h"
#include "conditions.h"
#include "files.h"
#include "options.h"
#include "seat.h"
#include "verdict.h"

#include <exphil/slp.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct play_options {
    machine_options machine; /* one thread */
    const char *play_as;
    int64_t port, opponent, first, last, seed, show, delay; /* delay -1: not given */
    bool json, sample;
} play_options;

enum { FORCED, ALONE, SESSIONS };

typedef struct player {
    play_options *options;
    exphil_context *context;
    exphil_model *model;
    exphil_session *session[SESSIONS];
    exphil_slp *slp;
    exphil_spec spec;
    exphil_model_info info;
    int64_t frames, change, skipped;
    int64_t exact[SESSIONS], exact_change[SESSIONS];
    json_t *shown; /* with --json: the frames of --show */
} player;

/* ---- frames -------------------------------------------------------------------------------------------- */

/* One letter each: buttons as bits of a pad. */
static const struct {
    uint32_t bit;
    char letter;
} letters[] = {{EXPHIL_PAD_A, 'A'}, {EXPHIL_PAD_B, 'B'}, {EXPHIL_PAD_X, 'X'}, {EXPHIL_PAD_Y, 'Y'},
               {EXPHIL_PAD_Z, 'Z'}, {EXPHIL_PAD_L, 'L'}, {EXPHIL_PAD_R, 'R'}, {EXPHIL_PAD_D_UP, '^'}};

static void show_pad(const char *who, const exphil_pad *pad)
{
    printf("  %s [", who);
    for (size_t i = 0; i < sizeof letters / sizeof letters[0]; i++)
        putchar(pad->buttons & letters[i].bit ? letters[i].letter : '.');
    printf("] main %+.3f %+.3f  c %+.3f %+.3f  trigger %.2f", (double)pad->main_x, (double)pad->main_y,
           (double)pad->c_x, (double)pad->c_y, (double)pad->trigger);
}

static void show_frame(const player *p, int32_t frame, const exphil_pad *pad, const int32_t *target,
                       bool same)
{
    exphil_pad wanted;
    if (exphil_melee_pad_decode(p->spec.codec, target, &wanted, NULL) < 0) return;
    if (p->shown) {
        json_array_append_new(p->shown, json_pack("{s:i,s:b,s:o,s:o}", "frame", (int)frame, "same", same,
                                                  "policy", pad_json(pad), "pressed", pad_json(&wanted)));
        return;
    }
    printf("%6d", (int)frame);
    show_pad("policy", pad);
    show_pad(same ? "  =" : " !=", &wanted);
    printf("\n");
}

/* What the sessions decided, beside what was pressed on the frame that it is for. */
static void compare(player *p, int32_t frame, const exphil_pad *pads, const int32_t *target)
{
    int32_t action[EXPHIL_HEADS_MAX], before[EXPHIL_HEADS_MAX];
    size_t bytes = (size_t)p->spec.head_count * sizeof *action;
    for (int64_t h = 0; h < p->spec.head_count; h++) before[h] = p->spec.heads[h].neutral;
    if (frame > p->options->first)
        (void)seat_recorded(p->slp, &p->spec, (int32_t)p->options->port, frame - 1, before);
    bool change = memcmp(target, before, bytes) != 0;
    p->frames++;
    p->change += change;
    for (int s = 0; s < SESSIONS; s++) {
        if (exphil_melee_pad_encode(p->spec.codec, &pads[s], action, NULL) < 0) continue;
        bool same = memcmp(action, target, bytes) == 0;
        p->exact[s] += same;
        p->exact_change[s] += change && same;
        if (s == FORCED && p->frames <= p->options->show) show_frame(p, frame, &pads[s], target, same);
    }
}

/* What is known before a frame is the state after the frame before; without it an episode begins anew. */
static int one_frame(player *p, int32_t frame)
{
    const play_options *o = p->options;
    exphil_melee_frame state = {.struct_size = sizeof state};
    exphil_pad pads[SESSIONS];
    int32_t target[EXPHIL_HEADS_MAX], due = frame + p->info.delay_frames;
    int64_t before = exphil_slp_position(p->slp, frame - 1);
    bool known = before >= 0 && exphil_slp_melee_frame(p->slp, before, (int32_t)o->port, (int32_t)o->opponent,
                                                       &state, NULL) >= 0;
    p->skipped += !known;
    for (int s = 0; s < SESSIONS; s++) {
        exphil_session *session = p->session[s];
        if (!known && exphil_session_reset(session, -1) < 0) return seat_failed(session, "reset");
        if (known && exphil_session_step(session, &state, &pads[s]) < 0) return seat_failed(session, "step");
    }
    if (!known || !seat_recorded(p->slp, &p->spec, (int32_t)o->port, due, target)) return 0;
    compare(p, due, pads, target);
    return exphil_session_override(p->session[FORCED], 0, target) < 0
               ? seat_failed(p->session[FORCED], "override")
               : 0;
}

static int play_frames(player *p, const char *path)
{
    int64_t count = exphil_slp_frame_count(p->slp);
    for (int64_t position = 1; position < count; position++) {
        int32_t frame = exphil_slp_frame_at(p->slp, position)->frame;
        if (frame < p->options->first || (p->options->last && frame > p->options->last)) continue;
        int status = one_frame(p, frame);
        if (status) return status;
    }
    if (p->frames) return 0;
    fprintf(stderr, "exphil: %s: port %d plays none of these frames\n", path, (int)p->options->port);
    return 1;
}

/* ---- results ------------------------------------------------------------------------------------------- */

static double share(int64_t part, int64_t whole)
{
    return whole ? (double)part / (double)whole : 0.0;
}

static void print_agreement(const player *p, int s, const char *what)
{
    printf("%-46s %8.3f %%", what, 100.0 * share(p->exact[s], p->frames));
    if (p->change)
        printf("  %8.3f %%\n", 100.0 * share(p->exact_change[s], p->change));
    else
        printf("  %10s\n", "-");
}

/* A policy that has learnt to repeat its past actions is lost when they are its own. */
static void warn_of_copying(const player *p)
{
    verdict_case c = {.slots = p->info.action_slots, .delay = p->info.delay_frames, .measured_alone = true};
    verdict v;
    c.forced = share(p->exact[FORCED], p->frames);
    c.alone = share(p->exact[ALONE], p->frames);
    verdict_of(&c, &v);
    if (v.word == VERDICT_COPIES) verdict_print(&v);
}

/* Latency is that of the session that plays as live. */
static int print_result(const player *p)
{
    exphil_session_info info = EXPHIL_SESSION_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_session_query(p->session[ALONE], &info, &error) < 0) return complain("session", &error);
    if (p->options->json) {
        json_t *object = json_pack("{s:I,s:I,s:I,s:I,s:f,s:f,s:f,s:f,s:I,s:I,s:I,s:I}", "port",
                                   (json_int_t)p->options->port, "frames", (json_int_t)p->frames,
                                   "change_frames", (json_int_t)p->change, "skipped", (json_int_t)p->skipped,
                                   "exact_agreement", share(p->exact[FORCED], p->frames), "change_agreement",
                                   share(p->exact_change[FORCED], p->change), "alone_exact_agreement",
                                   share(p->exact[ALONE], p->frames), "alone_change_agreement",
                                   share(p->exact_change[ALONE], p->change), "p50_ns",
                                   (json_int_t)info.p50_ns, "p99_ns", (json_int_t)info.p99_ns, "max_ns",
                                   (json_int_t)info.max_ns, "missed_deadlines", (json_int_t)info.missed);
        if (p->shown) json_object_set(object, "shown", p->shown);
        return print_json(object);
    }
    printf("%" PRId64 " frames, of which %" PRId64 " change the input\n", p->frames, p->change);
    printf("%-46s %10s  %10s\n", "agreement with what was pressed", "all frames", "changes");
    print_agreement(p, FORCED, "past actions as recorded (teacher-forced)");
    print_agreement(p, ALONE, "past actions its own (as in a live game)");
    print_latency(&info);
    printf("; max %.1f us; deadlines missed: %" PRIu64 "\n", (double)info.max_ns / 1e3, info.missed);
    warn_of_copying(p);
    return 0;
}

/* ---- the command --------------------------------------------------------------------------------------- */

static int open_player(player *p, char **paths)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_slp_info info = EXPHIL_SLP_INFO_INIT;
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    int32_t values[EXPHIL_CONDITIONS_MAX], delay = (int32_t)p->options->delay;
    p->info = (exphil_model_info)EXPHIL_MODEL_INFO_INIT;
    p->spec = (exphil_spec)EXPHIL_SPEC_INIT;
    config.deterministic = !p->options->sample;
    config.seed = (uint64_t)p->options->seed;
    config.deliver = EXPHIL_DELIVER_DECIDED;
    if (!open_context(&p->options->machine, NULL, &p->context) ||
        !load_weights(p->context, paths[0], "WEIGHTS comes first, then REPLAY", &p->model) ||
        !seat_replay(paths[1], "play wants WEIGHTS and then a .slp REPLAY"))
        return 1;
    if (exphil_model_query(p->model, &p->info, &error) < 0 ||
        exphil_model_spec(p->model, &p->spec, &error) < 0)
        return complain("model", &error);
    if (!conditions_play_as(p->model, p->options->play_as, values, &config.condition_count) ||
        !delay_fits(p->model, p->options->delay))
        return 2;
    if (config.condition_count) config.conditions = values;
    if (p->options->delay >= 0) {
        config.delay_frames = &delay;
        p->info.delay_frames = delay;
    }
    for (int s = 0; s < SESSIONS; s++) {
        if (exphil_session_create(p->model, &config, &p->session[s], &error) < 0)
            return complain("session", &error);
    }
    if (!replay_open(p->context, paths[1], NULL, &p->slp, &error)) return complain(paths[1], &error);
    if (exphil_slp_query(p->slp, &info, &error) < 0) return complain(paths[1], &error);
    if (!seat_take(p->model, &info, paths[1], &p->options->port, p->options->opponent, p->options->json))
        return 1;
    if (!p->options->json) seat_say(&info, p->options->port, p->options->opponent);
    return 0;
}

static int play(play_options *options, char **paths)
{
    player p = {.options = options, .shown = options->json && options->show ? json_array() : NULL};
    int status = open_player(&p, paths);
    if (status == 0) status = play_frames(&p, paths[1]);
    if (status == 0) status = print_result(&p);
    json_decref(p.shown);
    exphil_slp_destroy(p.slp);
    for (int s = 0; s < SESSIONS; s++) exphil_session_destroy(p.session[s]);
    exphil_model_destroy(p.model);
    exphil_context_destroy(p.context);
    return status;
}

int play_command(int argc, char **argv)
{
    play_options o = {.machine.threads = 1, .delay = -1};
    const option_entry entries[] = {
        {"port", OPTION_INT, &o.port, "N",
         "play this port's side (default: of the character that it was trained on; where nothing says which, "
         "1)"},
        {"opponent", OPTION_INT, &o.opponent, "N", "the other port (default: the first other player)"},
        {"first", OPTION_INT, &o.first, "FRAME", "first game frame (default 0)"},
        {"last", OPTION_INT, &o.last, "FRAME", "last game frame (default: all)"},
        {"play-as", OPTION_TEXT, &o.play_as, "NAME=N", PLAY_AS_HELP},
        {"delay", OPTION_INT, &o.delay, "N", "of a policy with several: play this one (no default)"},
        {"sample", OPTION_FLAG, &o.sample, NULL, "draw actions (default: take the likeliest)"},
        {"seed", OPTION_INT, &o.seed, "N", "of the drawing (default 0)"},
        {"show", OPTION_INT, &o.show, "N",
         "print the first N frames, teacher-forced, with --json as its field shown (default 0)"},
        {"device", OPTION_TEXT, &o.machine.device, "NAME", DEVICE_HELP},
        {"memory-limit", OPTION_BYTES, &o.machine.memory_limit, "BYTES", LIMIT_HELP},
        {"isa", OPTION_TEXT, &o.machine.isa, "NAME", ISA_HELP},
        {"json", OPTION_FLAG, &o.json, NULL, "print one JSON object (default: text)"},
        {NULL, 0, NULL, NULL, NULL},
    };
    const option_command command = {
        .usage = "play [OPTIONS] WEIGHTS REPLAY",
        .about =
            "Plays a policy frame by frame through a replay and compares what it presses with what was "
            "pressed.\n"
            "The policy sees what a live game would show it. Two agreements come out: one with the recorded\n"
            "actions as its memory of what it did (teacher-forced, what training and eval measure), and one\n"
            "where it remembers only its own decisions, as it does in a live game. 'changes' counts the "
            "frames\n"
            "on which the recorded input differs from the frame before: there, copying is always wrong.\n"
            "p50 and p99 of the latency are upper bounds, at most 1.42 times what was measured.\n"
            "REPLAY: a .slp file, compressed or not, or one of an archive: ARCHIVE:ENTRY.",
        .entry = entries};
    int count, status;
    if (!options_read(&command, argc, argv, &count, &status)) return status;
    if (count != 2) {
        fprintf(stderr, "exphil: play wants WEIGHTS and REPLAY; see exphil play --help\n");
        return 2;
    }
    const select_options ports = {.port = o.port, .opponent = o.opponent, .first = o.first, .last = o.last};
    return select_check(&ports) ? play(&o, argv + 1) : 2;
}
