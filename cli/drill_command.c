/* `exphil drill`: the scripted drill as a replay to learn from, or as a world for a policy to play in. */
#include "commands.h"
#include "conditions.h"
#include "drill_pipe.h"
#include "drill_world.h"
#include "files.h"
#include "options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct outcome {
    int64_t frames, same, hits, teacher_hits;
    exphil_session_info info;
} outcome;

static int64_t teacher_hits(uint64_t seed, int64_t frames)
{
    drill_world world;
    drill_begin(&world, seed);
    for (int64_t i = 0; i < frames + COUNTDOWN; i++) {
        exphil_pad pad;
        drill_teach(&world, &pad);
        drill_step(&world, &pad);
    }
    return world.hits;
}

/* A game that holds controllers back: pads[frame % (lag + 1)]. */
enum { LAG_MOST = 64 };
typedef struct held {
    exphil_pad pad[LAG_MOST + 1];
    int64_t lag;
} held;

/* What acts in this frame when this is decided. */
static const exphil_pad *hold(held *h, int64_t frame, const exphil_pad *pad)
{
    h->pad[frame % (h->lag + 1)] = *pad;
    return &h->pad[(frame + 1) % (h->lag + 1)];
}

/* What is pressed in answer to this frame, by the policy, or without one by the bot behind the pipe. */
static int decide(exphil_session *session, const exphil_melee_frame *frame, exphil_pad *pad)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    if (!session) return drill_pipe_say(frame) && drill_pipe_hear(frame->frame, pad) ? 0 : 1;
    if (exphil_session_step(session, frame, pad) >= 0) return 0;
    exphil_session_error(session, &error);
    return complain("step", &error);
}

/* The policy, or the bot, alone holds the controller; same counts frames on which the teacher would have pressed the same. */
static int play_world(exphil_session *session, uint64_t seed, int64_t frames, int64_t lag, outcome *out)
{
    held late = {.lag = lag};
    drill_world world;
    exphil_error error = EXPHIL_ERROR_INIT;
    drill_begin(&world, seed);
    while (world.frame < -1) {
        static const exphil_pad nothing;
        drill_step(&world, &nothing);
    }
    for (int64_t i = 0; i < frames; i++) {
        exphil_melee_frame frame;
        exphil_pad pad, taught;
        int32_t action[EXPHIL_HEADS_MAX] = {0}, wanted[EXPHIL_HEADS_MAX] = {0};
        drill_observe(&world, &frame);
        drill_teach(&world, &taught);
        if (decide(session, &frame, &pad) != 0) return 1;
        const exphil_pad *acts = hold(&late, i, &pad);
        if (exphil_melee_pad_encode(NULL, acts, action, &error) < 0 ||
            exphil_melee_pad_encode(NULL, &taught, wanted, &error) < 0)
            return complain("pad", &error);
        out->same += memcmp(action, wanted, sizeof action) == 0;
        out->frames++;
        drill_step(&world, acts);
    }
    out->hits = world.hits;
    out->teacher_hits = teacher_hits(seed, frames);
    if (!session) return 0;
    return exphil_session_query(session, &out->info, &error) < 0 ? complain("session", &error) : 0;
}

static void show_hits(FILE *to, const outcome *out)
{
    double same = out->frames ? (double)out->same / (double)out->frames : 0.0;
    fprintf(to,
            "%" PRId64 " frames alone at the controller: %.3f %% as the teacher would have pressed; %" PRId64
            " hits (the teacher: %" PRId64 ")\n",
            out->frames, 100 * same, out->hits, out->teacher_hits);
}

static int show(const outcome *out, bool json)
{
    double same = out->frames ? (double)out->same / (double)out->frames : 0.0;
    if (json)
        return print_json(json_pack("{s:I,s:f,s:I,s:I,s:I,s:I,s:I}", "frames", (json_int_t)out->frames,
                                    "agreement", same, "hits", (json_int_t)out->hits, "teacher_hits",
                                    (json_int_t)out->teacher_hits, "p50_ns", (json_int_t)out->info.p50_ns,
                                    "p99_ns", (json_int_t)out->info.p99_ns, "missed_deadlines",
                                    (json_int_t)out->info.missed));
    show_hits(stdout, out);
    print_latency(&out->info);
    printf("; deadlines missed: %" PRIu64 "\n", out->info.missed);
    return 0;
}

typedef struct drill_options {
    const char *out, *play_as;
    int64_t seed, frames, delay, lag; /* delay -1: that of the policy */
    bool json, force, pipe;
} drill_options;

/* The bot hears the end, and how it went; people read it on stderr. */
static int play_pipe(const drill_options *o)
{
    outcome out = {.info = EXPHIL_SESSION_INFO_INIT};
    if (play_world(NULL, (uint64_t)o->seed, o->frames, o->lag, &out) != 0) return 1;
    show_hits(stderr, &out);
    return print_json(json_pack("{s:I,s:I,s:I}", "frames", (json_int_t)out.frames, "hits",
                                (json_int_t)out.hits, "teacher_hits", (json_int_t)out.teacher_hits));
}

static int play(const char *weights, const drill_options *o)
{
    const int32_t delay = (int32_t)o->delay;
    int32_t values[EXPHIL_CONDITIONS_MAX];
    exphil_context *context;
    exphil_model *model = NULL;
    exphil_session *session = NULL;
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    outcome out = {.info = EXPHIL_SESSION_INFO_INIT};
    int status = 0;
    if (!open_context(NULL, NULL, &context)) return 1;
    config.deterministic = 1;
    if (delay >= 0) config.delay_frames = &delay;
    if (!load_weights(context, weights, "drill plays WEIGHTS, or writes with --out", &model))
        status = 1;
    else if (!conditions_play_as(model, o->play_as, values, &config.condition_count) ||
             !delay_fits(model, o->delay))
        status = 2;
    else if ((config.conditions = config.condition_count ? values : NULL,
              exphil_session_create(model, &config, &session, &error)) < 0)
        status = complain(weights, &error);
    else
        status = play_world(session, (uint64_t)o->seed, o->frames, o->lag, &out);
    if (status == 0) status = show(&out, o->json);
    exphil_session_destroy(session);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
    return status;
}

enum { FRAMES_MOST = 200000 };

int drill_command(int argc, char **argv)
{
    drill_options o = {.seed = 1, .frames = 3600, .delay = -1};
    const option_entry entries[] = {
        {"out", OPTION_TEXT, &o.out, "FILE",
         "write the teacher's play as this replay (default: play WEIGHTS)"},
        {"force", OPTION_FLAG, &o.force, NULL, "replace OUT if it is there (default: refuse)"},
        {"pipe", OPTION_FLAG, &o.pipe, NULL,
         "a bot plays: frames go to stdout, controllers come from stdin, a line of JSON each (default: "
         "WEIGHTS)"},
        {"play-as", OPTION_TEXT, &o.play_as, "NAME=N", PLAY_AS_HELP},
        {"delay", OPTION_INT, &o.delay, "N", "of a policy with several: play this one (no default)"},
        {"lag", OPTION_INT, &o.lag, "N",
         "frames that the game holds the controller back, which the policy is not told (default 0)"},
        {"seed", OPTION_INT, &o.seed, "N", "another course of events (default 1)"},
        {"frames", OPTION_INT, &o.frames, "N",
         "frames of play, from 0 on, behind a countdown of 123 (default 3600, a minute)"},
        {"json", OPTION_FLAG, &o.json, NULL, "print one JSON object (default: text)"},
        {NULL, 0, NULL, NULL, NULL},
    };
    const option_command command = {
        .usage = "drill [OPTIONS] --out FILE.slp | drill [OPTIONS] WEIGHTS | drill [OPTIONS] --pipe",
        .about =
            "A scripted drill: a Fox that runs to its opponent and uses its reflector. With --out it is "
            "recorded,\n"
            "with WEIGHTS the policy plays it alone. A hit is a reflector that reaches the opponent.\n"
            "With another --seed than the replay that it learnt from had, the course is new to the policy.",
        .entry = entries};
    int count, status;
    if (!options_read(&command, argc, argv, &count, &status)) return status;
    const char *wrong = o.out && count               ? "--out FILE or WEIGHTS, not both"
                        : o.pipe && (o.out || count) ? "--pipe, --out FILE or WEIGHTS, one of them"
                        : !o.out && !o.pipe && count != 1
                            ? "--out FILE to write a replay, or WEIGHTS to play, one of them"
                            : NULL;
    if (wrong) {
        fprintf(stderr, "exphil: drill wants %s; see exphil drill --help\n", wrong);
        return 2;
    }
    if (o.frames > FRAMES_MOST) {
        fprintf(stderr, "exphil: --frames wants at most %d here, not %" PRId64 "\n", FRAMES_MOST, o.frames);
        return 2;
    }
    if (o.pipe) return play_pipe(&o);
    if (count == 1) return play(argv[1], &o);
    if (!output_free("out", o.out, OUTPUT_IN_PLACE, o.force)) return 1;
    if (!drill_write_replay(o.out, (uint64_t)o.seed, o.frames)) {
        complain_of_file(o.out);
        return 1;
    }
    if (o.json)
        return print_json(
            json_pack("{s:o,s:I}", "replay", path_json(o.out), "frames", (json_int_t)o.frames + COUNTDOWN));
    printf("%s: %" PRId64 " frame%s of play after a countdown of %d\n", o.out, o.frames, plural(o.frames),
           COUNTDOWN);
    return 0;
}
