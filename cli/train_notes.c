/* What the weights of a run say of it: notes that grow with the run. */
#include "notes.h"
#include "stop.h"
#include "train_run.h"

#include <exphil/notes.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { CHARACTERS = 64, PORTS = 4 };

/* Frames by character; what has no place is not told. */
typedef struct census {
    int64_t frames[CHARACTERS], sides[CHARACTERS], at[CHARACTERS][PORTS], against[CHARACTERS];
    int64_t all_sides;
} census;

/* An episode that goes on with the same side of a game is no new side. */
static bool take_census(const exphil_dataset *dataset, int64_t episodes, census *found)
{
    exphil_episode_info before = EXPHIL_EPISODE_INFO_INIT;
    *found = (census){.all_sides = 0};
    for (int64_t i = 0; i < episodes; i++) {
        exphil_episode_info e = EXPHIL_EPISODE_INFO_INIT;
        if (exphil_dataset_episode(dataset, i, &e, NULL) < 0) return false;
        bool begins = !i || e.game != before.game || e.port != before.port || !e.port;
        found->all_sides += begins;
        if (e.character >= 0 && e.character < CHARACTERS) {
            found->frames[e.character] += e.frames;
            found->sides[e.character] += begins;
            if (e.port >= 1 && e.port <= PORTS) found->at[e.character][e.port - 1] += e.frames;
        }
        if (e.opponent_character >= 0 && e.opponent_character < CHARACTERS)
            found->against[e.opponent_character] += e.frames;
        before = e;
    }
    return true;
}

static json_t *characters_json(const census *found)
{
    json_t *list = json_array();
    for (int c = 0; c < CHARACTERS; c++) {
        char name[16], port[4];
        if (!found->frames[c]) continue;
        json_t *ports = json_object();
        for (int p = 0; p < PORTS; p++) {
            snprintf(port, sizeof port, "%d", p + 1);
            if (found->at[c][p]) json_object_set_new(ports, port, json_integer(found->at[c][p]));
        }
        json_array_append_new(list, json_pack("{s:s,s:I,s:I,s:o}", "character", notes_character(name, c),
                                              "frames", (json_int_t)found->frames[c], "sides",
                                              (json_int_t)found->sides[c], "ports", ports));
    }
    return list;
}

static json_t *opponents_json(const census *found)
{
    json_t *list = json_array();
    char name[16];
    for (int c = 0; c < CHARACTERS; c++)
        if (found->against[c])
            json_array_append_new(list, json_pack("{s:s,s:I}", "character", notes_character(name, c),
                                                  "frames", (json_int_t)found->against[c]));
    return list;
}

static json_t *data_json(const exphil_dataset *dataset, census *found)
{
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    char hash[20];
    if (exphil_dataset_query(dataset, &info, NULL) < 0 || !take_census(dataset, info.episodes, found))
        return NULL;
    snprintf(hash, sizeof hash, "%016" PRIx64, info.content_hash);
    return json_pack("{s:s,s:I,s:I,s:I}", "hash", hash, "frames", (json_int_t)info.frames, "games",
                     (json_int_t)info.games, "sides", (json_int_t)found->all_sides);
}

/* What does not change while it runs. */
static json_t *begin(const train_state *r)
{
    census found, held_census;
    json_t *data = data_json(r->train, &found);
    if (!data) return NULL;
    json_t *train = json_pack("{s:s,s:s,s:s,s:o,s:o,s:o}", "version", notes_version(), "layout",
                              r->spec.layout, "codec", r->spec.codec, "characters", characters_json(&found),
                              "opponents", opponents_json(&found), "data", data);
    if (r->held) {
        json_t *held = data_json(r->held, &held_census);
        json_object_set_new(held, "share", json_real(r->options->held_out));
        json_object_set_new(held, "split", json_string(r->options->split));
        json_object_set_new(train, "held_out", held);
    }
    json_t *outcome = outcome_notes(r->options);
    if (outcome) json_object_set_new(train, "outcome", outcome);
    json_object_set_new(train, "options", r->options->given ? json_incref(r->options->given) : json_object());
    return train;
}

/* The notes of the checkpoint that the trainer has been brought to. */
static bool read_back(train_state *r)
{
    exphil_model *model = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_trainer_model(r->trainer, EXPHIL_WEIGHTS, &model, &error) < 0)
        return complain("notes", &error) == 0;
    json_t *before = notes_of(model);
    const json_t *train = notes_train(before);
    r->skipped = (int64_t)json_integer_value(json_object_get(train, "refused_updates"));
    r->planned_before = (int64_t)json_integer_value(json_object_get(train, "planned_updates"));
    r->history.refused = r->skipped;
    history_read(&r->history, json_object_get(train, "held_out_scores"));
    history_loss_read(&r->history, json_object_get(train, "loss"));
    bool same = outcome_same(r->options, json_object_get(train, "outcome"));
    json_decref(before);
    exphil_model_destroy(model);
    return same;
}

bool train_notes_begin(train_state *r)
{
    r->notes = begin(r);
    r->history.by = r->scores.metric;
    if (!r->notes) {
        fprintf(stderr, "exphil: no memory for the notes of the weights\n");
        return false;
    }
    return !r->options->resume || read_back(r);
}

double train_passes(const train_state *r)
{
    double each = (double)(r->data.batches_per_epoch > 0 ? r->data.batches_per_epoch : 1);
    return (double)r->done * (double)r->options->accumulate / each;
}

/* Notes as they are now, sorted: the same in whatever order they became known. Free them. NULL: there is no memory. */
static char *notes_text(const train_state *r)
{
    json_t *train = r->notes, *scores = history_json(&r->history), *loss = history_loss_json(&r->history);
    json_object_set_new(train, "updates", json_integer(r->done));
    json_object_set_new(train, "planned_updates", json_integer(r->updates));
    json_object_set_new(train, "passes", json_real(train_passes(r)));
    json_object_set_new(train, "batch", json_integer(r->batch));
    if (r->skipped) json_object_set_new(train, "refused_updates", json_integer(r->skipped));
    if (scores) json_object_set_new(train, "held_out_scores", scores);
    if (loss) json_object_set_new(train, "loss", loss);
    json_t *all = json_pack("{s:O}", "train", train);
    char *text = all ? json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(all);
    return text;
}

bool train_notes_take(train_state *r)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    char *text = notes_text(r);
    bool fine = text && exphil_trainer_notes_set(r->trainer, text, &error) >= 0;
    if (!text) fprintf(stderr, "exphil: no memory for the notes of the weights\n");
    if (text && !fine) complain("notes", &error);
    free(text);
    return fine;
}

static bool write_finished(train_state *r)
{
    exphil_model *model = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    const train_options *o = r->options;
    const standing now = scores_stand(&r->scores, o->least_gain);
    int32_t which = o->ema > 0.0 ? EXPHIL_WEIGHTS_AVERAGED : EXPHIL_WEIGHTS;
    bool best = now.best && now.best->update == r->done;
    bool fine = exphil_trainer_model(r->trainer, which, &model, &error) >= 0 &&
                exphil_model_save(model, o->out, &error) >= 0 &&
                (!best || exphil_model_save(model, o->best_weights, &error) >= 0);
    exphil_model_destroy(model);
    return fine || complain(o->out, &error) == 0;
}

/* The checkpoint stays as it is: what comes of the scores is found again. Best weights that are these stay the same file. */
bool train_notes_finish(train_state *r)
{
    if (!train_notes_take(r)) return false;
    stop_hold(true);
    bool fine = write_finished(r);
    stop_hold(false);
    return fine;
}
