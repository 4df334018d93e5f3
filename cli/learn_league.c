/* A league: snapshots of the run's own past as opponents, the more often the less is won against them. Everything follows from
 * the seed and the games, so that a run that goes on draws what it would have drawn. */
#include "learn_run.h"

#include "system.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { EVERY = 4, SNAPSHOTS = 20 }; /* chunks between draws of opponents; snapshots of a whole run */

static void name_of(const learn_run *r, int64_t update, char path[LEARN_PATH + 64])
{
    (void)snprintf(path, LEARN_PATH + 64, "%s.league.%" PRId64, r->o->out, update);
}

/* splitmix64 (Steele, Lea & Flood 2014), uniform in [0, 1). */
static double chance(uint64_t seed, uint64_t at)
{
    uint64_t z = seed * 0x9e3779b97f4a7c15u + (at + 1) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

/* The share of games that whoever learns does not win, squared (Vinyals et al. 2019: prioritised fictitious self-play). */
static double weight_of(const snapshot *s)
{
    double lost = 1.0 - (s->won + 0.5) / (s->played + 1.0);
    return lost * lost + 0.01;
}

static int draw(const learn_run *r, uint64_t at)
{
    double sum = 0.0, up_to = chance((uint64_t)r->o->seed, at);
    for (int i = 0; i < r->league.count; i++) sum += weight_of(&r->league.of[i]);
    up_to *= sum;
    for (int i = 0; i < r->league.count; i++)
        if ((up_to -= weight_of(&r->league.of[i])) < 0.0) return i;
    return r->league.count - 1;
}

static bool put(learn_run *r, int slot, int which)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    r->league.in_slot[slot] = which;
    return exphil_world_opponent(&r->against, slot, r->league.of[which].model, NULL, &error) >= 0 ||
           complain("--opponent", &error) == 0;
}

bool league_begin(learn_run *r)
{
    if (!r->o->opponent || strcmp(r->o->opponent, "league") != 0) return true;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_model *start = NULL;
    if (exphil_trainer_model(r->trainer, EXPHIL_WEIGHTS, &start, &error) < 0)
        return complain("league", &error) == 0;
    r->league.of[0] = (snapshot){.model = start};
    r->league.count = 1;
    return true;
}

/* The least of a threat goes where there is no room; the start stays. */
static void make_room(learn_run *r)
{
    league *l = &r->league;
    int least = 1;
    if (l->count < LEAGUE_MOST) return;
    for (int i = 2; i < l->count; i++)
        if (weight_of(&l->of[i]) < weight_of(&l->of[least])) least = i;
    if (l->gone_count < GONE_MOST) l->gone[l->gone_count++] = l->of[least].update;
    exphil_model_destroy(l->of[least].model);
    memmove(&l->of[least], &l->of[least + 1], (size_t)(l->count - least - 1) * sizeof *l->of);
    l->count--;
    for (int s = 0; s < LEAGUE_SLOTS; s++)
        if (l->in_slot[s] >= least) l->in_slot[s]--; /* a slot whose policy goes is drawn anew below */
}

static bool take_snapshot(learn_run *r)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_model *model = NULL;
    char path[LEARN_PATH + 64];
    make_room(r);
    name_of(r, r->last.updates, path);
    if (exphil_trainer_model(r->trainer, EXPHIL_WEIGHTS, &model, &error) < 0)
        return complain("league", &error) == 0;
    r->league.of[r->league.count++] = (snapshot){.update = r->last.updates, .model = model};
    return exphil_model_save(model, path, &error) >= 0 || complain(path, &error) == 0;
}

static bool note_games(learn_run *r)
{
    league *l = &r->league;
    exphil_error error = EXPHIL_ERROR_INIT;
    for (int i = 0; i < l->count; i++) l->of[i].played *= 0.9, l->of[i].won *= 0.9;
    for (int s = 0; s < LEAGUE_SLOTS; s++) {
        exphil_record record = EXPHIL_RECORD_INIT;
        if (exphil_world_opponent(&r->against, s, NULL, &record, &error) < 0)
            return complain("--opponent", &error) == 0;
        snapshot *of = &l->of[l->in_slot[s]];
        of->played += (double)record.episodes;
        of->won += (double)record.won + 0.5 * (double)(record.episodes - record.won - record.lost);
    }
    return true;
}

bool league_after(learn_run *r)
{
    int64_t every = r->all_chunks / SNAPSHOTS + 1;
    if (!r->league.count) return true;
    if (!note_games(r)) return false;
    bool newer = r->chunks % every == 0;
    if (newer && !take_snapshot(r)) return false;
    if (!newer && r->chunks % EVERY) return true;
    if (!put(r, 0, r->league.count - 1)) return false; /* the newest always plays */
    for (int s = 1; s < LEAGUE_SLOTS; s++)
        if (!put(r, s, draw(r, (uint64_t)(r->chunks * LEAGUE_SLOTS + s)))) return false;
    return true;
}

void league_saved(learn_run *r)
{
    char path[LEARN_PATH + 64];
    for (int i = 0; i < r->league.gone_count; i++) {
        name_of(r, r->league.gone[i], path);
        (void)system_remove(path);
    }
    r->league.gone_count = 0;
}

/* ---- notes --------------------------------------------------------------------------------------------- */

json_t *league_json(const learn_run *r)
{
    const league *l = &r->league;
    if (!l->count) return NULL;
    json_t *of = json_array(), *slots = json_array();
    for (int i = 0; i < l->count; i++)
        json_array_append_new(of, json_pack("{s:I,s:f,s:f}", "update", (json_int_t)l->of[i].update, "played",
                                            l->of[i].played, "won", l->of[i].won));
    for (int s = 0; s < LEAGUE_SLOTS; s++) json_array_append_new(slots, json_integer(l->in_slot[s]));
    return json_pack("{s:o,s:o}", "snapshots", of, "plays", slots);
}

static bool read_snapshot(learn_run *r, const json_t *of)
{
    league *l = &r->league;
    char path[LEARN_PATH + 64];
    snapshot s = {.update = json_integer_value(json_object_get(of, "update")),
                  .played = json_number_value(json_object_get(of, "played")),
                  .won = json_number_value(json_object_get(of, "won"))};
    name_of(r, s.update, path);
    if (s.update && !load_weights(r->context, path, "the checkpoint's league wants its snapshots", &s.model))
        return false;
    if (!s.update) s.model = l->of[0].model; /* made by league_begin */
    if (!s.update) l->count = 0;
    l->of[l->count++] = s;
    return true;
}

bool league_read(learn_run *r, const json_t *notes)
{
    const json_t *of = json_object_get(notes, "snapshots"), *slots = json_object_get(notes, "plays");
    size_t count = json_array_size(of);
    if (!r->league.count) return true;
    bool fine = count >= 1 && count <= LEAGUE_MOST && json_array_size(slots) == LEAGUE_SLOTS &&
                json_integer_value(json_object_get(json_array_get(of, 0), "update")) == 0;
    for (size_t i = 0; fine && i < count; i++)
        if (!read_snapshot(r, json_array_get(of, i))) return false;
    for (int s = 0; fine && s < LEAGUE_SLOTS; s++) {
        json_int_t which = json_integer_value(json_array_get(slots, (size_t)s));
        fine = which >= 0 && which < r->league.count;
        if (fine && !put(r, s, (int)which)) return false;
    }
    if (!fine) fprintf(stderr, "exphil: %s: its notes have no league that can be read\n", r->checkpoint);
    return fine;
}

void league_free(learn_run *r)
{
    for (int i = 0; i < r->league.count; i++) exphil_model_destroy(r->league.of[i].model);
}
