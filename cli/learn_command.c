/* `exphil learn`: a policy plays a world and learns from it. Options. */
#include "files.h"
#include "learn_run.h"
#include "notes.h"
#include "presets.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

/* What is usual for a world. */
typedef struct usual {
    const char *world;
    int64_t frames, lanes, time;
    double half_life, entropy, reward_scale;
} usual;
static const usual usuals[] = {{"cartpole", 500000, 16, 64, 1.15, 0.0, 0.1},
                               {"cartpole-blind", 500000, 16, 64, 1.15, 0.0, 0.1},
                               {"drill", 1000000, 16, 128, 1.0, 0.003, 1.0},
                               {"pong", 5000000, 64, 128, 4.0, 0.003, 1.0},
                               {"pong-two", 5000000, 32, 128, 4.0, 0.003, 1.0}};
static const usual foreign = {"", 2000000, 16, 128, 4.0, 0.01, 1.0};

/* Options that were not given. */
static void take_usual(const option_command *command, learn_options *o)
{
    const usual *u = world_foreign(o->world) ? &foreign : &usuals[0];
    for (size_t i = 0; i < sizeof usuals / sizeof usuals[0]; i++)
        if (strcmp(usuals[i].world, o->world) == 0) u = &usuals[i];
    if (!options_given(command, "frames")) o->frames = u->frames;
    if (!options_given(command, "lanes")) o->lanes = u->lanes;
    if (!options_given(command, "time")) o->time = u->time;
    if (!options_given(command, "half-life")) o->half_life = u->half_life;
    if (!options_given(command, "entropy")) o->entropy = u->entropy;
    if (!options_given(command, "reward-scale")) o->reward_scale = u->reward_scale;
}

static learn_options asked = {.out = "learned.safetensors",
                              .blocks = "mlp",
                              .hidden = 64,
                              .epochs = 4,
                              .batches = 4,
                              .repeat = 1,
                              .value_only = -1, /* as the weights want it */
                              .log_every = 1,
                              .scores = 10,
                              .episodes = 100,
                              .save_minutes = 5.0,
                              .rate = 1e-3,
                              .ratio_clip = 0.2};
static const option_entry entries[] = {
    {NULL, 0, NULL, NULL, "play"},
    {"world", OPTION_TEXT, &asked.world, "NAME", WORLD_HELP},
    {"opponent", OPTION_TEXT, &asked.opponent, "WHO",
     "of pong, and of a library of two seats: game, its own player (default); self; frozen, the policy as it "
     "began; league, snapshots of its past (OUT.league.N), those the more that it loses to"},
    {"repeat", OPTION_INT, &asked.repeat, "N",
     "frames that an action is held, which count as one (default 1)"},
    {"frames", OPTION_INT, &asked.frames, "N",
     "frames to play, in whole chunks (default 500000; drill 1000000; pong 5000000; games of others "
     "2000000)"},
    {"lanes", OPTION_INT, &asked.lanes, "N", "games at a time (default 16; pong 64)"},
    {"time", OPTION_INT, &asked.time, "N",
     "frames of a chunk, after which it learns (default 64; drill, pong and games of others 128)"},
    {"seed", OPTION_INT, &asked.seed, "N", "of the weights, the games and the draws (default 0)"},
    {NULL, 0, NULL, NULL, "policy"},
    {"blocks", OPTION_TEXT, &asked.blocks, "PATTERN", "mlp (default), gru, mamba*2, ..."},
    {"hidden", OPTION_INT, &asked.hidden, "N", "width (default 64)"},
    NETWORK_OPTIONS(asked.network),
    {"delay", OPTION_INT, &asked.delay, "N", "frames from a decision to its effect (default 0)"},
    {"no-previous-action", OPTION_FLAG, &asked.no_previous, NULL,
     "past actions are no inputs, which is the better start from nothing (default: they are)"},
    {"init", OPTION_TEXT, &asked.init, "FILE",
     "start from these weights, which say all of this (default: new)"},
    {NULL, 0, NULL, NULL, "learning"},
    {"epochs", OPTION_INT, &asked.epochs, "N", "passes over a chunk (default 4)"},
    {"batches", OPTION_INT, &asked.batches, "N", "updates of a pass (default 4)"},
    {"rate", OPTION_NUMBER, &asked.rate, "X", "learning rate, which falls to 0 by a cosine (default 0.001)"},
    {"precision", OPTION_TEXT, &asked.precision, "NAME",
     "of learning on a GPU: f32 (default), tf32 or bf16; it plays in f32, and weights stay f32"},
    {"half-life", OPTION_NUMBER, &asked.half_life, "SECONDS",
     "after which a reward counts half (default 1.15; drill 1; pong and games of others 4)"},
    {"ratio-clip", OPTION_NUMBER, &asked.ratio_clip, "X",
     "how far the probability of an action may move in a chunk, as a share (default 0.2)"},
    {"entropy", OPTION_NUMBER, &asked.entropy, "X",
     "weight of the entropy (default 0; drill and pong 0.003; games of others 0.01)"},
    {"reward-scale", OPTION_NUMBER, &asked.reward_scale, "X",
     "factor of rewards (default 0.1; drill, pong and games of others 1)"},
    {"shuffled-rewards", OPTION_FLAG, &asked.control, NULL,
     "a control: lanes get each other's rewards, so that what is learnt is no skill (default: their own)"},
    {"teacher", OPTION_TEXT, &asked.teacher, "FILE", "a policy that it stays near (default: none)"},
    {"to-teacher", OPTION_NUMBER, &asked.to_teacher, "X",
     "weight of the divergence from the teacher (default 0)"},
    {"most-kl", OPTION_NUMBER, &asked.most_kl, "X",
     "take a chunk's updates back when the policy moved farther, nats (default: never)"},
    {"value-only", OPTION_INT, &asked.value_only, "N",
     "chunks at the beginning from which only the value is learnt (default 0; with --init of weights that "
     "had "
     "no value, 8)"},
    {NULL, 0, NULL, NULL, "output"},
    {"out", OPTION_TEXT, &asked.out, "FILE",
     "weights (default learned.safetensors); FILE.optimizer: the checkpoint; the best weights are beside it, "
     "as learned.best.safetensors"},
    {"preset", OPTION_TEXT, &asked.preset, "NAME",
     "near-teacher: small steps beside --teacher, " PRESET_NEAR_TEACHER
     "; or self-play: against itself, beside --teacher, " PRESET_SELF_PLAY
     "; what is given wins (default: none)"},
    {"resume", OPTION_FLAG, &asked.resume, NULL,
     "go on from OUT.optimizer, or begin where there is none yet; with --frames of another number the run is "
     "made "
     "longer or shorter (default: begin anew)"},
    {"scores", OPTION_INT, &asked.scores, "N",
     "scores while it runs, by which the best weights are kept: of pong-two, 40 games against the best so "
     "far; "
     "else the mean return of 20 episodes (default 10)"},
    {"episodes", OPTION_INT, &asked.episodes, "N",
     "fresh episodes of the score at the end, as often drawn as likeliest, 1 to 128 (default 100)"},
    {"save-minutes", OPTION_NUMBER, &asked.save_minutes, "X",
     "minutes between checkpoints (default 5; 0: none by the clock); one comes with new best weights, too"},
    {"log", OPTION_TEXT, &asked.log, "FILE",
     "one JSON object per line, for exphil plot --field episode_return; --resume goes on with it (default: "
     "none)"},
    {"log-every", OPTION_INT, &asked.log_every, "N", "chunks between lines of the log (default 1)"},
    {"tensorboard", OPTION_TEXT, &asked.tensorboard, "DIR",
     "the same numbers as event files of TensorBoard (default: none)"},
    {"force", OPTION_FLAG, &asked.force, NULL, "replace OUT and LOG if they are there (default: refuse)"},
    {"threads", OPTION_INT, &asked.machine.threads, "N", "processor threads (default 0: one per core)"},
    {"device", OPTION_TEXT, &asked.machine.device, "NAME", DEVICE_HELP},
    {"memory-limit", OPTION_BYTES, &asked.machine.memory_limit, "BYTES", LIMIT_HELP},
    {"isa", OPTION_TEXT, &asked.machine.isa, "NAME", ISA_HELP},
    {"quiet", OPTION_FLAG, &asked.quiet, NULL, "no progress (default: shown; --json: no progress)"},
    {"json", OPTION_FLAG, &asked.json, NULL, "print one JSON object at the end (default: text)"},
    {NULL, 0, NULL, NULL, NULL},
};
/* Do the weights of --init leave all to themselves that they say? */
static bool check_init(const option_command *command, const learn_options *o)
{
    static const char *const of_weights[] = {"blocks", "hidden", "delay", "no-previous-action",
                                             NETWORK_NAMES};
    for (size_t i = 0; o->init && i < sizeof of_weights / sizeof of_weights[0]; i++) {
        if (!options_given(command, of_weights[i])) continue;
        fprintf(stderr, "exphil: --%s and --init: the weights say that already; leave --%s out\n",
                of_weights[i], of_weights[i]);
        return false;
    }
    return true;
}

/* Says what it stands for. */
static bool take_preset(const option_command *command, const learn_options *o)
{
    static const preset presets[] = {
        {"near-teacher", PRESET_NEAR_TEACHER}, {"self-play", PRESET_SELF_PLAY}, {NULL, NULL}};
    char taken[PRESET_TEXT];
    if (!o->preset) return true;
    if (!preset_take(command, presets, o->preset, NULL, taken)) return false;
    if (!o->quiet && !o->json)
        fprintf(stderr, "--preset %s: %s\n", o->preset, taken[0] ? taken : "all was given");
    return true;
}

/* A loop that always gives --resume needs no first time. */
static bool begin_of(learn_options *o)
{
    char checkpoint[LEARN_PATH];
    (void)snprintf(checkpoint, sizeof checkpoint, "%s.optimizer", o->out);
    if (!o->resume || file_kind_of(checkpoint) != FILE_UNREADABLE || file_kind_of(o->out) != FILE_UNREADABLE)
        return true;
    o->resume = false;
    fprintf(stderr, "exphil: --resume: there is no checkpoint yet; it begins from the start\n");
    return true;
}

int learn_command(int argc, char **argv)
{
    static bool given[sizeof entries / sizeof entries[0]];
    static const option_command command = {
        .usage = "learn [OPTIONS] --world NAME",
        .about =
            "A policy plays a game of the library's and learns from it by proximal policy optimisation, from "
            "nothing, "
            "or from\nweights (--init), near a teacher (--teacher FILE --to-teacher X). At the end fresh "
            "episodes "
            "are played\nwith drawn and with the likeliest actions; all that were started count. The same "
            "seed gives "
            "the same weights,\nwith any number of threads. Ctrl-C, SIGTERM and SIGHUP save a checkpoint and "
            "end with status 130, 143 and 129;\n--resume goes on to the last bit.",
        .entry = entries,
        .given = given};
    int count, status;
    if (!options_read(&command, argc, argv, &count, &status)) return status;
    if (!take_preset(&command, &asked)) return 2;
    const char *wrong = !asked.world                                        ? "--world NAME"
                        : count                                             ? "no files"
                        : asked.episodes < 1 || asked.episodes > SCORE_MOST ? "--episodes 1 to 128"
                        : asked.teacher && asked.to_teacher == 0.0          ? "--to-teacher X with --teacher"
                        : !asked.teacher && asked.to_teacher > 0.0 ? "--teacher FILE with --to-teacher"
                                                                   : NULL;
    if (wrong) {
        fprintf(stderr, "exphil: learn wants %s; see exphil learn --help\n", wrong);
        return 2;
    }
    if (asked.precision && strcmp(asked.precision, "f16") == 0) {
        fprintf(stderr, "exphil: learn wants f32, tf32 or bf16 as --precision: f16 is for imitation\n");
        return 2;
    }
    if (!precision_of(asked.precision, &asked.how_precise) || !check_init(&command, &asked) ||
        !network_check(&command, &asked.network, asked.delay > 0 || !asked.no_previous))
        return 2;
    asked.command = &command;
    take_usual(&command, &asked);
    if (!learn_world_known(&asked) || !begin_of(&asked)) return 1;
    static learn_run r;
    asked.given = notes_options(&command);
    r.o = &asked;
    status = learn_names(&r) && run_lock(asked.out) && learn_may_begin(&r, asked.out) ? learn_run_all(&r) : 1;
    run_unlock();
    json_decref(asked.given);
    return status;
}
