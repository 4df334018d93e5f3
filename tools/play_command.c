/* `exphil play`: a session sees a replay frame by frame and says what it would press; agreement and latency come out.
 * By default the recorded action goes into the session's memory of what was done (teacher-forced); with --free its own. */
#include "commands.h"
#include "options.h"

#include <exphil/slp.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct play_options {
    const char *isa, *device;
    int64_t port, opponent, first, last, seed, show;
    bool json, free_run, sample;
} play_options;

typedef struct tally { int64_t frames, exact, change, exact_change, skipped; } tally;

typedef struct player {
    const play_options *options;
    exphil_context *context;
    exphil_model *model;
    exphil_session *session;
    exphil_slp *slp;
    exphil_spec spec;
    exphil_model_info info;
    tally count;
} player;

static int hot_failure(const player *p, const char *what)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_session_error(p->session, &error);
    return complain(what, &error);
}

static void show_pad(const char *who, const exphil_pad *pad)
{
    static const struct { uint32_t bit; const char *name; } buttons[] = {
        { EXPHIL_PAD_A, "A" }, { EXPHIL_PAD_B, "B" }, { EXPHIL_PAD_X, "X" }, { EXPHIL_PAD_Y, "Y" },
        { EXPHIL_PAD_Z, "Z" }, { EXPHIL_PAD_L, "L" }, { EXPHIL_PAD_R, "R" }, { EXPHIL_PAD_D_UP, "^" },
    };
    printf("  %s [", who);
    for (size_t i = 0; i < sizeof buttons / sizeof buttons[0]; i++)
        printf("%s", pad->buttons & buttons[i].bit ? buttons[i].name : ".");
    printf("] main %+.3f %+.3f  c %+.3f %+.3f  trigger %.2f", (double)pad->main_x, (double)pad->main_y, (double)pad->c_x,
           (double)pad->c_y, (double)pad->trigger);
}

/* The recorded action at a position, as head values; false: there is none. */
static bool recorded(const player *p, int64_t position, int32_t *action)
{
    exphil_pad pad;
    return position < exphil_slp_frame_count(p->slp) &&
           exphil_slp_melee_pad(p->slp, position, (int32_t)p->options->port, &pad, NULL) >= 0 &&
           exphil_melee_pad_encode(p->spec.codec, &pad, action, NULL) >= 0;
}

static void compare(player *p, int64_t position, const exphil_pad *pad, const int32_t *target, const int32_t *before)
{
    int32_t action[EXPHIL_HEADS_MAX];
    size_t bytes = (size_t)p->spec.head_count * sizeof *action;
    if (exphil_melee_pad_encode(p->spec.codec, pad, action, NULL) < 0) return;
    bool same = memcmp(action, target, bytes) == 0, change = memcmp(target, before, bytes) != 0;
    p->count.frames++;
    p->count.exact += same;
    p->count.change += change;
    p->count.exact_change += change && same;
    if (p->count.frames > p->options->show) return;
    exphil_pad wanted;
    if (exphil_melee_pad_decode(p->spec.codec, target, &wanted, NULL) < 0) return;
    printf("%6d", exphil_slp_frame_at(p->slp, position)->frame);
    show_pad("policy", pad);
    show_pad(same ? "  =" : " !=", &wanted);
    printf("\n");
}

/* Position - 1 is what is known, position is the frame that the due action belongs to. */
static int one_frame(player *p, int64_t position)
{
    exphil_melee_frame frame = { .struct_size = sizeof frame };
    exphil_pad pad;
    exphil_error error = EXPHIL_ERROR_INIT;
    int32_t target[EXPHIL_HEADS_MAX], decided[EXPHIL_HEADS_MAX], before[EXPHIL_HEADS_MAX];
    const play_options *o = p->options;
    if (exphil_slp_melee_frame(p->slp, position - 1, (int32_t)o->port, (int32_t)o->opponent, &frame, &error) < 0) {
        p->count.skipped++;
        return exphil_session_reset(p->session, -1) < 0 ? hot_failure(p, "reset") : 0;
    }
    if (exphil_session_step(p->session, &frame, &pad) < 0) return hot_failure(p, "step");
    if (recorded(p, position + p->info.delay_frames, decided)) {
        for (int64_t h = 0; h < p->spec.head_count; h++) before[h] = p->spec.heads[h].neutral;
        if (position > 0) (void)recorded(p, position + p->info.delay_frames - 1, before);
        memcpy(target, decided, sizeof target);
        compare(p, position, &pad, target, before);
        if (!o->free_run && exphil_session_override(p->session, 0, decided) < 0) return hot_failure(p, "override");
    }
    return 0;
}

static int print_result(player *p)
{
    exphil_session_info info = EXPHIL_SESSION_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_session_query(p->session, &info, &error) < 0) return complain("session", &error);
    const tally *t = &p->count;
    double exact = t->frames ? (double)t->exact / (double)t->frames : 0.0;
    double change = t->change ? (double)t->exact_change / (double)t->change : 0.0;
    if (p->options->json) {
        print_json(json_pack("{s:I,s:f,s:I,s:f,s:I,s:I,s:I,s:I,s:I}", "frames", (json_int_t)t->frames, "exact_agreement", exact,
                             "change_frames", (json_int_t)t->change, "change_agreement", change, "skipped",
                             (json_int_t)t->skipped, "p50_ns", (json_int_t)info.p50_ns, "p99_ns", (json_int_t)info.p99_ns,
                             "max_ns", (json_int_t)info.max_ns, "missed_deadlines", (json_int_t)info.missed));
        return 0;
    }
    printf("%" PRId64 " frames, agreement %.3f %% (on the %" PRId64 " frames that change the input %.3f %%)\n", t->frames,
           100 * exact, t->change, 100 * change);
    printf("latency of a step: p50 %.1f us, p99 %.1f us, max %.1f us; deadlines missed: %" PRIu64 "\n",
           (double)info.p50_ns / 1e3, (double)info.p99_ns / 1e3, (double)info.max_ns / 1e3, info.missed);
    return 0;
}

static int open_player(player *p, char **paths)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    p->info = (exphil_model_info)EXPHIL_MODEL_INFO_INIT;
    p->spec = (exphil_spec)EXPHIL_SPEC_INIT;
    config.deterministic = !p->options->sample;
    config.seed = (uint64_t)p->options->seed;
    config.deliver = EXPHIL_DELIVER_DECIDED;
    if (!open_context(1, p->options->device, p->options->isa, &p->context)) return 1;
    if (exphil_model_load(p->context, paths[0], &p->model, &error) < 0) return complain(paths[0], &error);
    if (exphil_model_query(p->model, &p->info, &error) < 0 || exphil_model_spec(p->model, &p->spec, &error) < 0 ||
        exphil_session_create(p->model, &config, &p->session, &error) < 0)
        return complain("session", &error);
    if (exphil_slp_open(p->context, paths[1], NULL, &p->slp, &error) < 0) return complain(paths[1], &error);
    return 0;
}

static int play_frames(player *p)
{
    int64_t count = exphil_slp_frame_count(p->slp);
    for (int64_t position = 1; position < count; position++) {
        int32_t frame = exphil_slp_frame_at(p->slp, position)->frame;
        if (frame < p->options->first || (p->options->last && frame > p->options->last)) continue;
        int status = one_frame(p, position);
        if (status) return status;
    }
    return print_result(p);
}

int play_command(int argc, char **argv)
{
    play_options o = { .port = 1 };
    const option_entry entries[] = {
        { "port", OPTION_INT, &o.port, "N", "play this port's side (default 1)" },
        { "opponent", OPTION_INT, &o.opponent, "N", "the other port; default: the first other player" },
        { "first", OPTION_INT, &o.first, "FRAME", "first game frame (default 0)" },
        { "last", OPTION_INT, &o.last, "FRAME", "last game frame (default: all)" },
        { "free", OPTION_FLAG, &o.free_run, NULL, "past actions are the policy's own, not the recorded ones" },
        { "sample", OPTION_FLAG, &o.sample, NULL, "draw actions instead of taking the likeliest" },
        { "seed", OPTION_INT, &o.seed, "N", "of the drawing" },
        { "show", OPTION_INT, &o.show, "N", "print the first N frames" },
        { "device", OPTION_TEXT, &o.device, "NAME", "cpu (default), cuda:0, auto" },
        { "isa", OPTION_TEXT, &o.isa, "NAME", "cap: ref, avx2, avx512" },
        { "json", OPTION_FLAG, &o.json, NULL, "print one JSON object" },
        { NULL, 0, NULL, NULL, NULL },
    };
    const option_command command = { "play [OPTIONS] WEIGHTS REPLAY",
                                     "Plays a policy frame by frame through a replay and compares what it presses with "
                                     "what was\npressed. The policy sees what a live game would show it.",
                                     entries };
    int count, status;
    if (!options_read(&command, argc, argv, &count, &status)) return status;
    if (count != 2 || o.port < 1 || o.port > 4) {
        fprintf(stderr, "exphil: play wants WEIGHTS and REPLAY and a port of 1..4; see exphil play --help\n");
        return 2;
    }
    player p = { .options = &o };
    status = open_player(&p, argv + 1);
    if (status == 0) status = play_frames(&p);
    exphil_slp_destroy(p.slp);
    exphil_session_destroy(p.session);
    exphil_model_destroy(p.model);
    exphil_context_destroy(p.context);
    return status;
}
