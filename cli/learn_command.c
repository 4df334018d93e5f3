/* `exphil learn`: a policy plays a world and learns from it. */
#include "commands.h"
#include "files.h"
#include "learn_score.h"
#include "options.h"
#include "stop.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct learn_options {
    const char *world, *out, *init, *teacher, *blocks;
    machine_options machine;
    int64_t frames, seed, lanes, time, hidden, delay, epochs, batches;
    double rate, half_life, entropy, ratio_clip, to_teacher, most_kl, reward_scale;
    bool json, quiet, force, no_previous;
} learn_options;

typedef struct learn_run {
    const learn_options *o;
    exphil_context *context;
    exphil_world world;
    exphil_model *model, *teacher;
    exphil_optimizer *optimizer;
    exphil_trainer *trainer;
    exphil_rollout *rollout;
    exphil_learner *learner;
    exphil_learner_metrics last;
    int64_t played, each; /* frames: so far; of a chunk */
    int64_t began_ns;
    double episodes, returns; /* of the frames that progress has not told yet */
    double recent;
    int refused; /* chunks with numbers that are not finite */
} learn_run;

/* ---- making ---------------------------------------------------------------------------------------------------------- */

static bool fail(const char *what, const exphil_error *error)
{
    return complain(what, error) == 0;
}

static bool new_model(learn_run *r)
{
    const learn_options *o = r->o;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    config.spec = r->world.spec;
    config.blocks = o->blocks;
    config.hidden = config.head_width = o->hidden;
    config.delay_frames = (int32_t)o->delay;
    config.no_previous_action = o->no_previous;
    config.neutral_start = 1;
    config.value = EXPHIL_VALUE_SHARED;
    config.seed = (uint64_t)o->seed;
    return exphil_model_create(r->context, &config, &r->model, &error) >= 0 || fail("model", &error);
}

/* Weights to begin with; without a value head they get one. */
static bool given_model(learn_run *r)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    exphil_model *with = NULL;
    if (!load_weights(r->context, r->o->init, "--init wants weights", &r->model)) return false;
    if (exphil_model_query(r->model, &info, &error) < 0) return fail(r->o->init, &error);
    if (info.value) return true;
    if (exphil_model_with_value(r->model, EXPHIL_VALUE_DETACHED, (uint64_t)r->o->seed, &with, &error) < 0)
        return fail(r->o->init, &error);
    exphil_model_destroy(r->model);
    r->model = with;
    return true;
}

/* The largest number up to --batches that divides the streams, as the library has it. */
static int64_t batches_of(const learn_run *r)
{
    int64_t batches = r->o->batches, streams = r->world.lanes * r->world.seats;
    while (batches > 1 && streams % batches) batches--;
    return batches;
}

static bool make_trainer(learn_run *r)
{
    const learn_options *o = r->o;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_optimizer_config adam = EXPHIL_OPTIMIZER_CONFIG_INIT;
    exphil_trainer_config config = EXPHIL_TRAINER_CONFIG_INIT;
    int64_t chunks = (o->frames + r->each - 1) / r->each;
    adam.rate = o->rate;
    adam.clip_norm = 0.5;
    adam.schedule = EXPHIL_SCHEDULE_COSINE;
    adam.total_updates = chunks * o->epochs * batches_of(r);
    config.as_played = 1;
    if (exphil_optimizer_create(r->model, &adam, &r->optimizer, &error) < 0) return fail("optimizer", &error);
    return exphil_trainer_create(r->model, r->optimizer, NULL, &config, &r->trainer, &error) >= 0 ||
           fail("trainer", &error);
}

static bool make_learner(learn_run *r)
{
    const learn_options *o = r->o;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_session_config session = EXPHIL_SESSION_CONFIG_INIT;
    exphil_rollout_config rollout = EXPHIL_ROLLOUT_CONFIG_INIT;
    exphil_learner_config config = EXPHIL_LEARNER_CONFIG_INIT;
    session.streams = r->world.lanes * r->world.seats;
    session.seed = rollout.seed = config.seed = (uint64_t)o->seed;
    rollout.time = o->time;
    config.clip = o->ratio_clip;
    config.entropy = o->entropy;
    config.half_life_frames = 60.0 * o->half_life;
    config.to_teacher = o->to_teacher;
    config.most_kl = o->most_kl;
    config.reward_scale = o->reward_scale;
    config.epochs = o->epochs;
    config.batches = o->batches;
    if (o->teacher && !load_weights(r->context, o->teacher, "--teacher wants weights", &r->teacher))
        return false;
    if (exphil_rollout_create(r->model, &session, &rollout, &r->rollout, &error) < 0)
        return fail("rollout", &error);
    return exphil_learner_create(r->trainer, r->teacher, &config, &r->learner, &error) >= 0 ||
           fail("learner", &error);
}

static bool make(learn_run *r)
{
    const learn_options *o = r->o;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    if (!open_context(&o->machine, stop_cancel, &r->context)) return false;
    if (exphil_world_create(r->context, o->world, o->lanes, &r->world, &error) < 0)
        return fail("--world", &error);
    if (!(o->init ? given_model(r) : new_model(r))) return false;
    if (exphil_model_query(r->model, &info, &error) < 0) return fail("model", &error);
    r->each = o->lanes * (o->time + info.delay_frames);
    return make_trainer(r) && make_learner(r);
}

static void free_run(learn_run *r)
{
    exphil_learner_destroy(r->learner);
    exphil_rollout_destroy(r->rollout);
    exphil_trainer_destroy(r->trainer);
    exphil_optimizer_destroy(r->optimizer);
    exphil_model_destroy(r->teacher);
    exphil_model_destroy(r->model);
    exphil_world_destroy(&r->world);
    exphil_context_destroy(r->context);
}

/* ---- learning -------------------------------------------------------------------------------------------------------- */

static void tell(learn_run *r, progress *bar, bool last)
{
    char text[160];
    const exphil_learner_metrics *m = &r->last;
    r->returns += m->episode_return * (double)m->episodes;
    r->episodes += (double)m->episodes;
    if (r->episodes >= 10.0 || (last && r->episodes > 0.0)) {
        r->recent = r->returns / r->episodes;
        r->returns = r->episodes = 0.0;
    }
    if (r->o->quiet || r->o->json) return;
    snprintf(text, sizeof text, "return %.4g  KL %.4f  entropy %.3f  value unexplained %.2f", r->recent,
             m->kl_old, m->entropy, m->unexplained);
    progress_count(bar, r->played, "frames", text, last);
}

enum { REFUSED_MOST = 10 };

/* EXPHIL_E_CANCELLED: a signal asked for an end. */
static exphil_status learn(learn_run *r)
{
    progress bar;
    exphil_error error = EXPHIL_ERROR_INIT;
    progress_begin(&bar, 0, r->o->frames, r->o->quiet || r->o->json);
    r->began_ns = now_ns();
    while (r->played < r->o->frames) {
        exphil_status status = exphil_rollout_run(r->rollout, &r->world, &error);
        if (status >= 0) status = exphil_learner_update(r->learner, r->rollout, &r->last, &error);
        if (status < 0 && status != EXPHIL_E_CANCELLED) {
            progress_clear(&bar);
            complain("learn", &error);
        }
        /* a chunk with a refused update is done with; a policy that can no longer be played is not */
        if (status < 0 && !(status == EXPHIL_E_NUMERIC && ++r->refused < REFUSED_MOST)) return status;
        r->played += r->each;
        if (status < 0) continue;
        tell(r, &bar, r->played >= r->o->frames);
    }
    return EXPHIL_OK;
}

/* ---- the end --------------------------------------------------------------------------------------------------------- */

static json_t *score_json(const learn_score *s)
{
    return json_pack("{s:i,s:f,s:f,s:f,s:f,s:f}", "episodes", SCORE_EPISODES, "mean", s->mean, "deviation",
                     s->deviation, "least", s->least, "most", s->most, "frames", s->frames);
}

static int show(const learn_run *r, double seconds, const learn_score *drawn, const learn_score *likeliest)
{
    const learn_options *o = r->o;
    double speed = (double)r->played / (seconds > 0.0 ? seconds : 1.0);
    if (o->json)
        return print_json(json_pack(
            "{s:o,s:s,s:I,s:I,s:f,s:f,s:o,s:o,s:f,s:f,s:f,s:f}", "weights", path_json(o->out), "world",
            o->world, "frames", (json_int_t)r->played, "updates", (json_int_t)r->last.updates,
            "frames_per_second", speed, "score", drawn->mean, "drawn", score_json(drawn), "likeliest",
            score_json(likeliest), "kl_old", r->last.kl_old, "entropy", r->last.entropy, "unexplained",
            r->last.unexplained, "recomputed", r->last.recomputed));
    printf("%s: %" PRId64 " frames of %s, %" PRId64 " updates, %.0f frames/s\n", o->out, r->played, o->world,
           r->last.updates, speed);
    printf("%d fresh episodes, actions drawn:      mean return %.4g, deviation %.4g, from %.4g to %.4g\n",
           SCORE_EPISODES, drawn->mean, drawn->deviation, drawn->least, drawn->most);
    printf("%d fresh episodes, likeliest actions:  mean return %.4g, deviation %.4g, from %.4g to %.4g\n",
           SCORE_EPISODES, likeliest->mean, likeliest->deviation, likeliest->least, likeliest->most);
    return 0;
}

static int finish(learn_run *r, exphil_status ended)
{
    const bool stopped = ended == EXPHIL_E_CANCELLED;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_model *model = NULL;
    learn_score drawn, likeliest;
    double seconds = (double)(now_ns() - r->began_ns) / 1e9;
    stop_hold(true);
    bool fine = exphil_trainer_model(r->trainer, EXPHIL_WEIGHTS, &model, &error) >= 0 &&
                exphil_model_save(model, r->o->out, &error) >= 0;
    stop_hold(false);
    int status = fine ? 0 : complain(r->o->out, &error);
    if (fine && stopped) {
        fprintf(stderr,
                "exphil: stopped by %s after %" PRId64 " of %" PRId64
                " frames; %s has the weights, --init goes on from them\n",
                stop_name(), r->played, r->o->frames, r->o->out);
        status = stop_status();
    } else if (fine && ended < 0) {
        fprintf(stderr, "exphil: %s has the weights of %" PRId64 " of %" PRId64 " frames\n", r->o->out,
                r->played, r->o->frames);
        status = 1;
    } else if (fine) {
        uint64_t seed = (uint64_t)r->o->seed;
        status = learn_score_of(r->context, r->o->world, model, seed, false, &drawn) &&
                         learn_score_of(r->context, r->o->world, model, seed, true, &likeliest)
                     ? show(r, seconds, &drawn, &likeliest)
                     : 1;
    }
    exphil_model_destroy(model);
    return status;
}

static int run(const learn_options *o)
{
    learn_run r = {.o = o, .last = EXPHIL_LEARNER_METRICS_INIT};
    int status = 1;
    stop_catch();
    if (make(&r)) {
        exphil_status ended = learn(&r);
        if (ended >= 0 || ended == EXPHIL_E_CANCELLED || r.played) status = finish(&r, ended);
    }
    free_run(&r);
    return status;
}

/* What is usual for a world. */
typedef struct usual {
    const char *world;
    int64_t frames, lanes, time;
    double half_life, entropy, reward_scale;
} usual;
static const usual usuals[] = {{"cartpole", 500000, 16, 64, 1.15, 0.0, 0.1},
                               {"cartpole-blind", 500000, 16, 64, 1.15, 0.0, 0.1},
                               {"pong", 5000000, 64, 128, 4.0, 0.003, 1.0},
                               {"pong-two", 5000000, 32, 128, 4.0, 0.003, 1.0}};

/* Options that were not given. */
static void take_usual(const option_command *command, learn_options *o)
{
    const usual *u = &usuals[0];
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
                              .rate = 1e-3,
                              .ratio_clip = 0.2};
static const option_entry entries[] = {
    {NULL, 0, NULL, NULL, "play"},
    {"world", OPTION_TEXT, &asked.world, "NAME",
     "cartpole; cartpole-blind, without speeds; pong, against the game's own player; pong-two, against "
     "itself"},
    {"frames", OPTION_INT, &asked.frames, "N",
     "frames to play, in whole chunks (default 500000; pong 5000000)"},
    {"lanes", OPTION_INT, &asked.lanes, "N", "games at a time (default 16; pong 64)"},
    {"time", OPTION_INT, &asked.time, "N", "frames of a chunk, after which it learns (default 64; pong 128)"},
    {"seed", OPTION_INT, &asked.seed, "N", "of the weights, the games and the draws (default 0)"},
    {NULL, 0, NULL, NULL, "policy"},
    {"blocks", OPTION_TEXT, &asked.blocks, "PATTERN", "mlp (default), gru, mamba*2, ..."},
    {"hidden", OPTION_INT, &asked.hidden, "N", "width (default 64)"},
    {"delay", OPTION_INT, &asked.delay, "N", "frames from a decision to its effect (default 0)"},
    {"no-previous-action", OPTION_FLAG, &asked.no_previous, NULL,
     "past actions are no inputs (default: they are)"},
    {"init", OPTION_TEXT, &asked.init, "FILE",
     "start from these weights, which say all of this (default: new)"},
    {NULL, 0, NULL, NULL, "learning"},
    {"epochs", OPTION_INT, &asked.epochs, "N", "passes over a chunk (default 4)"},
    {"batches", OPTION_INT, &asked.batches, "N", "updates of a pass (default 4)"},
    {"rate", OPTION_NUMBER, &asked.rate, "X", "learning rate, which falls to 0 by a cosine (default 0.001)"},
    {"half-life", OPTION_NUMBER, &asked.half_life, "SECONDS",
     "after which a reward counts half (default 1.15; pong 4)"},
    {"ratio-clip", OPTION_NUMBER, &asked.ratio_clip, "X",
     "how far the probability of an action may move in a chunk, as a share (default 0.2)"},
    {"entropy", OPTION_NUMBER, &asked.entropy, "X", "weight of the entropy (default 0; pong 0.003)"},
    {"reward-scale", OPTION_NUMBER, &asked.reward_scale, "X", "factor of rewards (default 0.1; pong 1)"},
    {"teacher", OPTION_TEXT, &asked.teacher, "FILE", "a policy that it stays near (default: none)"},
    {"to-teacher", OPTION_NUMBER, &asked.to_teacher, "X",
     "weight of the divergence from the teacher (default 0)"},
    {"most-kl", OPTION_NUMBER, &asked.most_kl, "X",
     "take a chunk's updates back when the policy moved farther, nats (default: never)"},
    {NULL, 0, NULL, NULL, "output"},
    {"out", OPTION_TEXT, &asked.out, "FILE", "weights (default learned.safetensors)"},
    {"force", OPTION_FLAG, &asked.force, NULL, "replace OUT if it is there (default: refuse)"},
    {"threads", OPTION_INT, &asked.machine.threads, "N", "processor threads (default 0: one per core)"},
    {"device", OPTION_TEXT, &asked.machine.device, "NAME", DEVICE_HELP},
    {"quiet", OPTION_FLAG, &asked.quiet, NULL, "no progress (default: shown; --json: no progress)"},
    {"json", OPTION_FLAG, &asked.json, NULL, "print one JSON object at the end (default: text)"},
    {NULL, 0, NULL, NULL, NULL},
};
/* What weights say already. */
static bool of_weights(const option_command *command)
{
    return options_given(command, "blocks") || options_given(command, "hidden") ||
           options_given(command, "delay") || options_given(command, "no-previous-action");
}

int learn_command(int argc, char **argv)
{
    static bool given[sizeof entries / sizeof entries[0]];
    static const option_command command = {
        .usage = "learn [OPTIONS] --world NAME",
        .about =
            "A policy plays a game of the library's and learns from it by proximal policy optimisation, from "
            "nothing, "
            "or from\nweights (--init), near a teacher (--teacher FILE --to-teacher X). At the end 100 fresh "
            "episodes "
            "are played\nwith drawn and with the likeliest actions; all that were started count. The same "
            "seed gives "
            "the same weights,\nwith any number of threads. Ctrl-C, SIGTERM and SIGHUP save the weights.",
        .entry = entries,
        .given = given};
    int count, status;
    if (!options_read(&command, argc, argv, &count, &status)) return status;
    const char *wrong = !asked.world                               ? "--world NAME"
                        : count                                    ? "no files"
                        : asked.teacher && asked.to_teacher == 0.0 ? "--to-teacher X with --teacher"
                        : !asked.teacher && asked.to_teacher > 0.0 ? "--teacher FILE with --to-teacher"
                        : asked.init && of_weights(&command)
                            ? "no --blocks, --hidden, --delay or --no-previous-action with --init"
                            : NULL;
    if (wrong) {
        fprintf(stderr, "exphil: learn wants %s; see exphil learn --help\n", wrong);
        return 2;
    }
    take_usual(&command, &asked);
    if (!output_free("out", asked.out, OUTPUT_REPLACED, asked.force)) return 1;
    if (!output_spares("out", asked.out, asked.init) || !output_spares("out", asked.out, asked.teacher))
        return 1;
    return run(&asked);
}
