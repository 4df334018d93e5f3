/* What a run of `exphil learn` keeps: checkpoint and weights, the best weights, its log. The notes of the weights carry what the
 * library does not know of the run, so that they are of the same moment. */
#include "learn_run.h"

#include "files.h"
#include "notes.h"
#include "system.h"

#include <exphil/notes.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MATCH_GAMES = 40, EPISODES = 20 };

/* ---- names --------------------------------------------------------------------------------------------- */

bool learn_names(learn_run *r)
{
    static const char end[] = ".safetensors";
    const char *out = r->o->out;
    size_t length = strlen(out);
    bool suffix = name_ends(out, end);
    int kept = (int)(suffix ? length - (sizeof end - 1) : length);
    bool fine =
        snprintf(r->checkpoint, LEARN_PATH, "%s.optimizer", out) < LEARN_PATH - 40 &&
        snprintf(r->best_weights, LEARN_PATH, "%.*s.best%s", kept, out, suffix ? end : "") < LEARN_PATH;
    if (!fine) fprintf(stderr, "exphil: --out %s: the name is too long\n", out);
    return fine;
}

bool learn_may_begin(learn_run *r, const char *out)
{
    const learn_options *o = r->o;
    const char *const written[] = {out, r->checkpoint, r->best_weights};
    bool exists;
    for (int i = 0; i < 3; i++) {
        if (!output_possible("out", written[i], OUTPUT_REPLACED, &exists)) return false;
        if (!output_spares("out", written[i], o->init) || !output_spares("out", written[i], o->teacher))
            return false;
        if (exists && !o->resume && !o->force)
            return fprintf(
                       stderr,
                       "exphil: %s is there already: --resume goes on from its checkpoint, --force replaces "
                       "it\n",
                       written[i]) < 0;
    }
    if (o->resume && !system_there(r->checkpoint) && (system_there(out) || system_there(r->best_weights)))
        return fprintf(
                   stderr,
                   "exphil: --resume: there is no checkpoint %s; --init %s --out OTHER starts a new run from "
                   "its weights\n",
                   r->checkpoint, out) < 0;
    if (o->tensorboard && !events_free(o->tensorboard, o->force || o->resume)) return false;
    return !o->log ||
           output_free("log", o->log, OUTPUT_IN_PLACE, o->force || o->resume || log_is_unfinished(o->log));
}

/* ---- the log ------------------------------------------------------------------------------------------- */

bool learn_open_log(learn_run *r)
{
    const learn_options *o = r->o;
    bool over = o->resume && r->played >= o->frames;
    if (!log_begin(&r->log, o->log, o->resume, o->force, r->last.updates, over)) return false;
    if (!o->tensorboard) return true;
    r->log.events = events_open(o->tensorboard, o->force && !o->resume);
    if (r->log.events && o->resume) events_resume(r->log.events, r->last.updates);
    return r->log.events != NULL;
}

void learn_log_chunk(learn_run *r, double frames_per_second)
{
    const exphil_learner_metrics *m = &r->last;
    if (!log_wanted(&r->log) || (r->chunks % r->o->log_every && r->chunks != r->all_chunks)) return;
    json_t *line =
        json_pack("{s:s,s:I,s:I,s:I,s:I,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:b}", "kind",
                  "learn", "update", (json_int_t)m->updates, "chunk", (json_int_t)r->chunks, "frames",
                  (json_int_t)r->played, "episodes", (json_int_t)m->episodes, "reward", m->reward, "kl_old",
                  m->kl_old, "kl_to_teacher", m->kl_to_teacher, "kl_from_teacher", m->kl_from_teacher,
                  "entropy", m->entropy, "ratio", m->ratio, "clipped", m->clipped, "value_loss",
                  m->value_loss, "unexplained", m->unexplained, "loss", m->loss, "gradient_norm",
                  m->gradient_norm, "frames_per_second", frames_per_second, "taken_back", m->taken_back);
    if (m->episodes) {
        json_object_set_new(line, "episode_return", json_real(m->episode_return));
        json_object_set_new(line, "episode_frames", json_real(m->episode_frames));
    }
    log_line(&r->log, line);
}

/* ---- notes --------------------------------------------------------------------------------------------- */

static json_t *score_json(const learn_score_line *s)
{
    return json_pack("{s:I,s:f,s:f,s:f}", "update", (json_int_t)s->update, "score", s->score, "low", s->low,
                     "high", s->high);
}

static learn_score_line read_score(const json_t *json)
{
    if (!json_is_object(json)) return (learn_score_line){.update = -1};
    return (learn_score_line){json_integer_value(json_object_get(json, "update")),
                              json_number_value(json_object_get(json, "score")),
                              json_number_value(json_object_get(json, "low")),
                              json_number_value(json_object_get(json, "high"))};
}

/* What the policy was before stays beside what it is now: notes of imitation and of learning. */
static bool take_notes(learn_run *r)
{
    const learn_options *o = r->o;
    exphil_error error = EXPHIL_ERROR_INIT;
    json_t *notes = notes_of(r->model);
    if (!json_is_object(notes)) {
        json_decref(notes);
        notes = json_object();
    }
    json_t *learn = json_pack("{s:s,s:s,s:s,s:I,s:I,s:I,s:i,s:o}", "version", notes_version(), "world",
                              o->world, "opponent",
                              o->opponent             ? o->opponent
                              : learn_world_of_two(o) ? "self"
                                                      : "game",
                              "frames", (json_int_t)r->played, "chunks", (json_int_t)r->chunks, "updates",
                              (json_int_t)r->last.updates, "refused", r->refused, "options",
                              o->given ? json_incref(o->given) : json_object());
    json_object_set(learn, "scores", r->scores);
    json_object_set_new(learn, "score", json_string(learn_world_of_two(o) ? "won" : "return"));
    json_object_set_new(learn, "passes", json_integer(o->epochs));
    if (r->start_hash[0]) json_object_set_new(learn, "start", json_string(r->start_hash));
    if (r->teacher)
        json_object_set_new(learn, "teacher",
                            json_pack("{s:s,s:f}", "weights", r->teacher_hash, "weight", o->to_teacher));
    if (r->best.update >= 0) json_object_set_new(learn, "best", score_json(&r->best));
    json_t *of = league_json(r);
    if (of) json_object_set_new(learn, "league", of);
    json_object_set_new(notes, "learn", learn);
    char *text = json_dumps(notes, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
    json_decref(notes);
    bool fine = text && exphil_trainer_notes_set(r->trainer, text, &error) >= 0;
    free(text);
    return fine || complain("notes", &error) == 0;
}

bool learn_can_save(const learn_run *r)
{
    return r->world->state_bytes && r->world->save && r->world->load;
}

/* Of a world that cannot be saved. */
static bool save_weights(const learn_run *r)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_model *model = NULL;
    bool fine = exphil_trainer_model(r->trainer, EXPHIL_WEIGHTS, &model, &error) >= 0 &&
                exphil_model_save(model, r->o->out, &error) >= 0;
    exphil_model_destroy(model);
    return fine || complain(r->o->out, &error) == 0;
}

bool learn_save(learn_run *r)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    if (!take_notes(r)) return false;
    if (!learn_can_save(r)) {
        r->saved_ns = now_ns();
        return save_weights(r);
    }
    bool fine = exphil_learner_save(r->learner, r->rollout, r->world, r->o->out, &error) >= 0;
    r->saved_ns = now_ns();
    if (fine) league_saved(r);
    return fine || complain(r->o->out, &error) == 0;
}

static bool read_notes(learn_run *r)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_model *model = NULL;
    if (exphil_trainer_model(r->trainer, EXPHIL_WEIGHTS, &model, &error) < 0)
        return complain("notes", &error) == 0;
    json_t *notes = notes_of(model);
    const json_t *learn = json_object_get(notes, "learn"), *scores = json_object_get(learn, "scores");
    const char *world = json_string_value(json_object_get(learn, "world"));
    bool fine = world && strcmp(world, r->o->world) == 0;
    if (!fine)
        fprintf(stderr, "exphil: --world: the checkpoint was made with %s, this run has %s\n",
                world ? world : "another", r->o->world);
    r->played = r->resumed_at = json_integer_value(json_object_get(learn, "frames"));
    r->chunks = json_integer_value(json_object_get(learn, "chunks"));
    r->last.updates = json_integer_value(json_object_get(learn, "updates"));
    r->refused = (int)json_integer_value(json_object_get(learn, "refused"));
    r->best = read_score(json_object_get(learn, "best"));
    if (json_is_array(scores)) json_array_extend(r->scores, (json_t *)(uintptr_t)scores);
    fine = fine && league_read(r, json_object_get(learn, "league"));
    json_decref(notes);
    exphil_model_destroy(model);
    return fine;
}

/* ---- scores while it runs ------------------------------------------------------------------------------ */

static bool play_match(learn_run *r, const exphil_model *model, const exphil_world *world,
                       learn_score_line *score)
{
    exphil_match_config config = EXPHIL_MATCH_CONFIG_INIT;
    exphil_match_result result = EXPHIL_MATCH_RESULT_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    config.games = MATCH_GAMES;
    config.seed = (uint64_t)r->o->seed;
    if (exphil_match(model, r->best_model ? r->best_model : r->start, world, &config, &result, &error) < 0)
        return complain("match", &error) == 0;
    *score = (learn_score_line){r->last.updates, result.score, result.low, result.high};
    return true;
}

static bool play_episodes(learn_run *r, const exphil_model *model, const exphil_world *world,
                          learn_score_line *score)
{
    learn_score found;
    if (!learn_score_of(world, model, (uint64_t)r->o->seed, false, &found)) return false;
    double half = 1.96 * found.deviation / 4.472135955; /* of 20 episodes */
    *score = (learn_score_line){r->last.updates, found.mean, found.mean - half, found.mean + half};
    return true;
}

static bool score(learn_run *r, const exphil_model *model)
{
    exphil_world base = {0}, held = {0};
    bool two = learn_world_of_two(r->o);
    bool fine = learn_world_fresh(r, two ? MATCH_GAMES : EPISODES, &base, &held);
    const exphil_world *world = held.step ? &held : &base;
    if (fine) fine = two ? play_match(r, model, world, &r->score) : play_episodes(r, model, world, &r->score);
    exphil_world_destroy(&held);
    exphil_world_destroy(&base);
    return fine;
}

/* The weights of the checkpoint are the best. A kill between the two files leaves the checkpoint, and learn_resume comes here
 * again. */
static bool write_best(learn_run *r)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_model *model = NULL;
    bool fine = exphil_trainer_model(r->trainer, EXPHIL_WEIGHTS, &model, &error) >= 0 &&
                exphil_model_save(model, r->best_weights, &error) >= 0;
    exphil_model_destroy(r->best_model);
    r->best_model = model;
    return fine || complain(r->best_weights, &error) == 0;
}

static bool read_best(learn_run *r)
{
    if (r->best.update < 0) return true;
    if (r->best.update == r->last.updates) return write_best(r);
    return load_weights(r->context, r->best_weights, "--resume wants the best weights of the run",
                        &r->best_model);
}

bool learn_resume(learn_run *r)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    if (!learn_can_save(r)) {
        if (r->o->resume)
            fprintf(stderr,
                    "exphil: --resume: this world cannot be saved (no save and load): --init %s starts from "
                    "its weights\n",
                    r->o->out);
        else if (!r->o->quiet)
            fprintf(stderr,
                    "exphil: this world cannot be saved (no save and load): there is no checkpoint, and "
                    "--resume will not go on\n");
        return !r->o->resume;
    }
    if (!r->o->resume) return true;
    if (exphil_learner_resume(r->learner, r->rollout, r->world, r->o->out, &error) < 0)
        return complain(r->checkpoint, &error) == 0;
    return read_notes(r) && read_best(r);
}

/* Against another policy more than half of the games; else a higher mean. */
static bool is_better(const learn_run *r)
{
    if (learn_world_of_two(r->o)) return r->score.score > 0.5;
    return r->best.update < 0 || r->score.score > r->best.score;
}

bool learn_watch(learn_run *r)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_model *model = NULL;
    int64_t scores = r->o->scores, before = r->chunks - 1;
    if (!scores || r->chunks * scores / r->all_chunks == before * scores / r->all_chunks) return true;
    if (exphil_trainer_model(r->trainer, EXPHIL_WEIGHTS, &model, &error) < 0)
        return complain("score", &error) == 0;
    bool fine = score(r, model);
    exphil_model_destroy(model);
    if (fine) {
        json_t *line = score_json(&r->score);
        json_array_append(r->scores, line);
        json_object_set_new(line, "frames", json_integer(r->played));
        json_object_set_new(line, "kind", json_string("match"));
        json_t *logged = json_deep_copy(line);
        json_object_del(line, "kind");
        log_line(&r->log, logged);
        json_decref(line);
    }
    if (!fine || !is_better(r)) return fine;
    r->best = r->score;
    return learn_save(r) && write_best(r);
}
