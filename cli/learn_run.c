/* `exphil learn`, the run: a policy plays, learns, is scored and kept. */
#include "learn_run.h"

#include "notes.h"
#include "stop.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NEW_VALUE_CHUNKS = 8 };

/* ---- making ---------------------------------------------------------------------------------------------------------- */

static bool fail(const char *what, const exphil_error *error)
{
    return complain(what, error) == 0;
}

static bool new_model(learn_run *r, const exphil_spec *spec)
{
    const learn_options *o = r->o;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    config.spec = spec;
    config.blocks = o->blocks;
    config.hidden = config.head_width = o->hidden;
    config.delay_frames = (int32_t)o->delay;
    config.no_previous_action = o->no_previous;
    config.neutral_start = 1;
    config.value = EXPHIL_VALUE_SHARED;
    config.seed = (uint64_t)o->seed;
    network_fill(&o->network, &config);
    return exphil_model_create(r->context, &config, &r->model, &error) >= 0 ||
           network_refused(o->command, &error);
}

static bool hash_of(const exphil_model *model, const char *path, char hash[20])
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    if (exphil_model_query(model, &info, &error) < 0) return fail(path, &error);
    (void)snprintf(hash, 20, "%016" PRIx64, info.weights_hash);
    return true;
}

/* Weights to begin with; without a value head they get one. */
static bool given_model(learn_run *r)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    exphil_model *with = NULL;
    if (!load_weights(r->context, r->o->init, "--init wants weights", &r->model)) return false;
    if (!hash_of(r->model, r->o->init, r->start_hash)) return false;
    if (exphil_model_query(r->model, &info, &error) < 0) return fail(r->o->init, &error);
    if (info.value) return true;
    if (exphil_model_with_value(r->model, EXPHIL_VALUE_DETACHED, (uint64_t)r->o->seed, &with, &error) < 0)
        return fail(r->o->init, &error);
    exphil_model_destroy(r->model);
    r->model = with;
    r->new_value = true;
    return true;
}

/* The rows of a world are known before there is one. */
static bool make_model(learn_run *r)
{
    exphil_world base = {0}, held = {0};
    bool fine =
        learn_world_fresh(r, 1, &base, &held) && (r->o->init ? given_model(r) : new_model(r, base.spec));
    exphil_world_destroy(&held);
    exphil_world_destroy(&base);
    r->start = r->model;
    return fine;
}

/* The largest number up to --batches that divides the streams, as the library has it. */
static int64_t batches_of(const learn_run *r)
{
    int64_t batches = r->o->batches, streams = r->world->lanes * r->world->seats;
    while (batches > 1 && streams % batches) batches--;
    return batches;
}

static bool make_trainer(learn_run *r)
{
    const learn_options *o = r->o;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_optimizer_config adam = EXPHIL_OPTIMIZER_CONFIG_INIT;
    exphil_trainer_config config = EXPHIL_TRAINER_CONFIG_INIT;
    adam.rate = o->rate;
    adam.clip_norm = 0.5;
    adam.schedule = EXPHIL_SCHEDULE_COSINE;
    adam.total_updates = r->all_chunks * o->epochs * batches_of(r);
    adam.resume_new_total = 1; /* --frames of another number */
    config.as_played = 1;
    config.precision = o->how_precise;
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
    session.streams = r->world->lanes * r->world->seats;
    session.seed = rollout.seed = config.seed = (uint64_t)o->seed;
    rollout.time = o->time;
    config.clip = o->ratio_clip;
    config.entropy = o->entropy;
    config.half_life_frames = 60.0 * o->half_life / (double)o->repeat;
    config.to_teacher = o->to_teacher;
    config.most_kl = o->most_kl;
    config.reward_scale = o->reward_scale;
    config.epochs = o->epochs;
    config.batches = o->batches;
    config.value_only = o->value_only >= 0 ? o->value_only : r->new_value ? NEW_VALUE_CHUNKS : 0;
    if (o->teacher && (!load_weights(r->context, o->teacher, "--teacher wants weights", &r->teacher) ||
                       !hash_of(r->teacher, o->teacher, r->teacher_hash)))
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
    if (!open_context(&o->machine, stop_cancel, &r->context) || !make_model(r) || !learn_world_make(r))
        return false;
    if (exphil_model_query(r->model, &info, &error) < 0) return fail("model", &error);
    r->each = o->lanes * (o->time + info.delay_frames);
    r->all_chunks = (o->frames + r->each - 1) / r->each;
    return make_trainer(r) && make_learner(r) && league_begin(r) && learn_resume(r) && learn_open_log(r);
}

static void free_run(learn_run *r)
{
    exphil_learner_destroy(r->learner);
    exphil_rollout_destroy(r->rollout);
    exphil_trainer_destroy(r->trainer);
    exphil_optimizer_destroy(r->optimizer);
    exphil_model_destroy(r->teacher);
    league_free(r);
    learn_world_free(r);
    exphil_model_destroy(r->best_model);
    exphil_model_destroy(r->model);
    exphil_context_destroy(r->context);
    json_decref(r->scores);
}

/* ---- learning -------------------------------------------------------------------------------------------------------- */

/* Frames a second of playing and learning, without scores and checkpoints. */
static double speed_of(const learn_run *r)
{
    double seconds = (double)r->learning_ns / 1e9;
    return (double)(r->played - r->resumed_at) / (seconds > 0.0 ? seconds : 1.0);
}

static void tell(learn_run *r, progress *bar, bool last)
{
    char text[200], scored[64] = "", made[32] = "no return yet";
    const exphil_learner_metrics *m = &r->last;
    r->returns += m->episode_return * (double)m->episodes;
    r->episodes += (double)m->episodes;
    if (r->episodes >= 10.0 || (last && r->episodes > 0.0)) {
        r->recent = r->returns / r->episodes;
        r->returns = r->episodes = 0.0;
        r->has_recent = true;
    }
    if (r->o->quiet || r->o->json) return;
    if (r->score.update >= 0 && learn_world_of_two(r->o))
        snprintf(scored, sizeof scored, "  against its best %.2f", r->score.score);
    if (r->has_recent) snprintf(made, sizeof made, "return %.4g", r->recent);
    snprintf(text, sizeof text, "%s%s  reward %.4f  KL %.4f  entropy %.3f  value unexplained %.2f", made,
             scored, m->reward, m->kl_old, m->entropy, m->unexplained);
    progress_count(bar, r->played, "frames", text, last);
}

enum { REFUSED_MOST = 10 };

/* One chunk, and what is due after it. A chunk with a refused update is done with; a policy that can no longer be played is
 * not. */
static exphil_status one_chunk(learn_run *r, progress *bar)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    int64_t began = now_ns();
    exphil_status status = exphil_rollout_run(r->rollout, r->world, &error);
    if (status >= 0) status = exphil_learner_update(r->learner, r->rollout, &r->last, &error);
    r->learning_ns += now_ns() - began;
    if (status < 0) {
        progress_clear(bar);
        complain("learn", &error);
    }
    if (status < 0 && !(status == EXPHIL_E_NUMERIC && ++r->refused < REFUSED_MOST)) return status;
    r->played += r->each;
    r->chunks++;
    if (status < 0) return EXPHIL_OK;
    learn_log_chunk(r, speed_of(r));
    tell(r, bar, r->played >= r->o->frames);
    if (!league_after(r) || !learn_watch(r)) return stop_asked() ? EXPHIL_E_CANCELLED : EXPHIL_E_IO;
    bool due = r->o->save_minutes > 0.0 && (double)(now_ns() - r->saved_ns) > 60e9 * r->o->save_minutes;
    return !due || learn_save(r) ? EXPHIL_OK : EXPHIL_E_IO;
}

/* A signal waits for the chunk under way, behind which a checkpoint has its place. EXPHIL_E_CANCELLED: it asked for an end. */
static exphil_status learn(learn_run *r)
{
    progress bar;
    exphil_status status = EXPHIL_OK;
    progress_begin(&bar, r->played, r->all_chunks * r->each, r->o->quiet || r->o->json);
    r->saved_ns = now_ns();
    while (status >= 0 && r->played < r->o->frames) {
        if (stop_asked()) return EXPHIL_E_CANCELLED;
        stop_hold(true);
        status = one_chunk(r, &bar);
        stop_hold(false);
    }
    return status;
}

/* ---- the end --------------------------------------------------------------------------------------------------------- */

typedef struct outcome {
    learn_score drawn, likeliest;
    exphil_match_result match; /* against the start; games 0: there was none */
} outcome;

static json_t *score_json(const learn_score *s)
{
    return json_pack("{s:I,s:f,s:f,s:f,s:f,s:f}", "episodes", (json_int_t)s->episodes, "mean", s->mean,
                     "deviation", s->deviation, "least", s->least, "most", s->most, "frames", s->frames);
}

static json_t *match_json(const exphil_match_result *m)
{
    return json_pack("{s:I,s:I,s:I,s:I,s:f,s:f,s:f}", "games", (json_int_t)m->games, "won",
                     (json_int_t)m->won, "lost", (json_int_t)m->lost, "drawn", (json_int_t)m->drawn, "score",
                     m->score, "low", m->low, "high", m->high);
}

static json_t *outcome_json(const learn_run *r, const outcome *of)
{
    json_t *line =
        json_pack("{s:s,s:I,s:f,s:o,s:o}", "kind", "score", "update", (json_int_t)r->last.updates, "score",
                  of->drawn.mean, "drawn", score_json(&of->drawn), "likeliest", score_json(&of->likeliest));
    if (of->match.games) json_object_set_new(line, "match", match_json(&of->match));
    return line;
}

static int show(const learn_run *r, const outcome *of)
{
    const learn_options *o = r->o;
    if (o->json) {
        json_t *line = outcome_json(r, of);
        json_object_del(line, "kind");
        json_object_del(line, "update");
        json_object_update_new(line, json_pack("{s:o,s:s,s:I,s:I,s:f,s:f,s:f,s:f,s:f}", "weights",
                                               path_json(o->out), "world", o->world, "frames",
                                               (json_int_t)r->played, "updates", (json_int_t)r->last.updates,
                                               "frames_per_second", speed_of(r), "kl_old", r->last.kl_old,
                                               "entropy", r->last.entropy, "unexplained", r->last.unexplained,
                                               "recomputed", r->last.recomputed));
        if (r->best.update >= 0)
            json_object_set_new(line, "best",
                                json_pack("{s:o,s:I,s:f}", "weights", path_json(r->best_weights), "update",
                                          (json_int_t)r->best.update, "score", r->best.score));
        return print_json(line);
    }
    char speed[40] = "";
    if (r->played > r->resumed_at) (void)snprintf(speed, sizeof speed, ", %.0f frames/s", speed_of(r));
    printf("%s: %" PRId64 " frames of %s, %" PRId64 " updates%s\n", o->out, r->played, o->world,
           r->last.updates, speed);
    const struct {
        const char *how;
        const learn_score *score;
    } both[] = {{"actions drawn:     ", &of->drawn}, {"likeliest actions: ", &of->likeliest}};
    for (int i = 0; i < 2 && !of->match.games; i++) /* against itself a mean tells nothing */
        printf("%" PRId64
               " fresh episodes, %s mean return %.4g in %.0f frames, deviation %.4g, from %.4g to %.4g\n",
               both[i].score->episodes, both[i].how, both[i].score->mean, both[i].score->frames,
               both[i].score->deviation, both[i].score->least, both[i].score->most);
    if (of->match.games)
        printf("against its start, %" PRId64
               " games, seats exchanged: %.3f of them won (95 %%: %.3f to %.3f)\n",
               of->match.games, of->match.score, of->match.low, of->match.high);
    if (r->best.update >= 0)
        printf("%s: the best of %zu scores, at update %" PRId64 "%s\n", r->best_weights,
               json_array_size(r->scores), r->best.update,
               r->best.update == r->last.updates ? ", the last" : "");
    return 0;
}

static bool play_out(learn_run *r, outcome *of)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_model *model = NULL;
    exphil_world base = {0}, held = {0};
    exphil_match_config config = EXPHIL_MATCH_CONFIG_INIT;
    uint64_t seed = (uint64_t)r->o->seed;
    config.seed = seed;
    of->match = (exphil_match_result)EXPHIL_MATCH_RESULT_INIT;
    bool fine =
        learn_world_fresh(r, r->o->episodes, &base, &held) &&
        (exphil_trainer_model(r->trainer, EXPHIL_WEIGHTS, &model, &error) >= 0 || fail("model", &error));
    const exphil_world *world = held.step ? &held : &base;
    fine = fine && learn_score_of(world, model, seed, false, &of->drawn) &&
           learn_score_of(world, model, seed, true, &of->likeliest);
    if (fine && learn_world_of_two(r->o))
        fine =
            exphil_match(model, r->start, world, &config, &of->match, &error) >= 0 || fail("match", &error);
    exphil_world_destroy(&held);
    exphil_world_destroy(&base);
    exphil_model_destroy(model);
    return fine;
}

static int finish(learn_run *r, exphil_status ended)
{
    const bool stopped = ended == EXPHIL_E_CANCELLED;
    outcome of;
    stop_hold(true);
    bool saved = r->played == r->resumed_at || learn_save(r);
    stop_hold(false);
    if (!saved) return 1;
    if ((stopped || ended < 0) && !learn_can_save(r)) {
        fprintf(stderr, "exphil: %s%s after %" PRId64 " of %" PRId64 " frames; the weights are in %s\n",
                stopped ? "stopped by " : "ended", stopped ? stop_name() : "", r->played, r->o->frames,
                r->o->out);
        return stopped ? stop_status() : 1;
    }
    if (stopped || ended < 0) {
        fprintf(stderr,
                "exphil: %s%s after %" PRId64 " of %" PRId64
                " frames; the checkpoint is %s, the same command with "
                "--resume goes on\n",
                stopped ? "stopped by " : "ended", stopped ? stop_name() : "", r->played, r->o->frames,
                r->checkpoint);
        return stopped ? stop_status() : 1;
    }
    if (!play_out(r, &of)) {
        if (stop_asked())
            fprintf(stderr, "exphil: stopped by %s while scoring; the weights are in %s\n", stop_name(),
                    r->o->out);
        return stop_asked() ? stop_status() : 1;
    }
    log_line(&r->log, outcome_json(r, &of));
    return show(r, &of);
}

int learn_run_all(learn_run *r)
{
    int status = 1;
    r->last = (exphil_learner_metrics)EXPHIL_LEARNER_METRICS_INIT;
    r->score.update = r->best.update = -1;
    r->scores = json_array();
    stop_catch();
    if (make(r)) {
        exphil_status ended = learn(r);
        if (r->played)
            status = finish(r, ended);
        else if (ended == EXPHIL_E_CANCELLED)
            status = stop_status();
    } else if (stop_asked()) {
        status = stop_status();
    }
    free_run(r);
    return log_end(&r->log) || status ? status : 1;
}
