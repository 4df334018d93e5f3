/* The held-out scores of a run so far. See train_scores.h. */
#include "train_scores.h"

#include "files.h"
#include "system.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

const char *const score_names[SCORE_METRICS] = {"nll", "loss", "exact", "change", "alone", "unexplained"};

/* ---- scores -------------------------------------------------------------------------------------------------- */

held_score score_of(int64_t update, const exphil_report *report)
{
    return (held_score){update,
                        {report->nll, report->loss, report->exact_accuracy, report->exact_change_accuracy,
                         report->alone_frames ? report->alone_nll : NAN,
                         report->value_frames ? report->unexplained : NAN}};
}

static bool no_memory(void)
{
    fprintf(stderr, "exphil: no memory for the scores\n");
    return false;
}

bool scores_add(train_scores *s, const held_score *one)
{
    if (s->count == s->capacity) {
        size_t capacity = s->capacity ? 2 * s->capacity : 32;
        held_score *more = realloc(s->at, capacity * sizeof *more);
        if (!more) return no_memory();
        s->at = more;
        s->capacity = capacity;
    }
    s->at[s->count++] = *one;
    return true;
}

bool scores_have(const train_scores *s, int64_t update)
{
    return s->count && s->at[s->count - 1].update >= update;
}

/* Is this value better than that one by more than a share of it? Anything finite is better than what is not. */
static bool better(score_metric metric, double value, double than, double share)
{
    bool less =
        metric == SCORE_NLL || metric == SCORE_LOSS || metric == SCORE_ALONE || metric == SCORE_UNEXPLAINED;
    if (!isfinite(value) || !isfinite(than)) return isfinite(value) && !isfinite(than);
    return less ? value < than - share * fabs(than) : value > than + share * fabs(than);
}

standing scores_stand(const train_scores *s, double least_gain)
{
    standing now = {NULL, NULL, 0};
    double gained = NAN;
    for (size_t i = 0; i < s->count; i++) {
        double value = s->at[i].of[s->metric];
        now.last = &s->at[i];
        if (!now.best || better(s->metric, value, now.best->of[s->metric], 0.0)) now.best = now.last;
        if (i == 0 || better(s->metric, value, gained, least_gain)) {
            gained = value;
            now.without_gain = 0;
        } else {
            now.without_gain++;
        }
    }
    return now;
}

/* ---- checkpoints ----------------------------------------------------------------------------------------------- */

bool scores_keep_checkpoint(train_scores *s, int64_t update)
{
    size_t count = s->checkpoint_count;
    if (count && s->checkpoints[count - 1] == update) return true;
    int64_t *more = realloc(s->checkpoints, (count + 1) * sizeof *more);
    if (!more) return no_memory();
    s->checkpoints = more;
    s->checkpoints[s->checkpoint_count++] = update;
    return true;
}

void scores_drop_checkpoint(train_scores *s, size_t index)
{
    s->checkpoint_count--;
    memmove(s->checkpoints + index, s->checkpoints + index + 1,
            (s->checkpoint_count - index) * sizeof *s->checkpoints);
}

void scores_free(train_scores *s)
{
    free(s->at);
    free(s->checkpoints);
    *s = (train_scores){.at = NULL};
}

/* ---- the file -------------------------------------------------------------------------------------------------- */

static json_t *score_json(const held_score *one)
{
    json_t *object = json_pack("{s:I}", "update", (json_int_t)one->update);
    for (int m = 0; m < SCORE_METRICS; m++)
        if (isfinite(one->of[m])) json_object_set_new(object, score_names[m], json_real(one->of[m]));
    return object;
}

bool scores_write(const train_scores *s, const char *path)
{
    json_t *scores = json_array(), *checkpoints = json_array();
    for (size_t i = 0; i < s->count; i++) json_array_append_new(scores, score_json(&s->at[i]));
    for (size_t i = 0; i < s->checkpoint_count; i++)
        json_array_append_new(checkpoints, json_integer((json_int_t)s->checkpoints[i]));
    json_t *object = json_pack("{s:i,s:s,s:I,s:I,s:I,s:I,s:o,s:o}", "version", 1, "best_by",
                               score_names[s->metric], "updates", (json_int_t)s->updates, "most_frames",
                               (json_int_t)s->most_frames, "frames", (json_int_t)s->frames, "alone_frames",
                               (json_int_t)s->alone_frames, "scores", scores, "checkpoints", checkpoints);
    char *text = object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    bool fine = text ? file_write_whole(path, text, strlen(text)) : no_memory();
    free(text);
    json_decref(object);
    return fine;
}

/* A whole number from 0 on. */
static bool take_count(const json_t *object, const char *name, int64_t *to)
{
    const json_t *value = json_object_get(object, name);
    *to = json_integer_value(value);
    return json_is_integer(value) && *to >= 0;
}

static bool take_scores(train_scores *s, const json_t *list, int64_t updates)
{
    size_t i;
    const json_t *object;
    int64_t before = 0;
    if (!json_is_array(list)) return false;
    json_array_foreach(list, i, object)
    {
        held_score one;
        if (!take_count(object, "update", &one.update) || one.update <= before) return false;
        before = one.update;
        for (int m = 0; m < SCORE_METRICS; m++) {
            const json_t *value = json_object_get(object, score_names[m]);
            one.of[m] = json_is_number(value) ? json_number_value(value) : NAN;
        }
        if (one.update <= updates && !scores_add(s, &one)) return false;
    }
    return true;
}

static bool take_checkpoints(train_scores *s, const json_t *list)
{
    size_t i;
    const json_t *value;
    if (!json_is_array(list)) return false;
    json_array_foreach(list, i, value)
    {
        if (!json_is_integer(value)) return false;
        if (!scores_keep_checkpoint(s, json_integer_value(value))) return false;
    }
    return true;
}

static bool take_metric(train_scores *s, const char *word)
{
    for (int m = 0; word && m < SCORE_METRICS; m++) {
        if (strcmp(word, score_names[m]) != 0) continue;
        s->metric = (score_metric)m;
        return true;
    }
    return false;
}

bool scores_read(train_scores *s, const char *path, int64_t updates, bool *there)
{
    json_error_t error;
    int64_t version = 0;
    *there = system_there(path);
    if (!*there) return true;
    json_t *object = file_json(path, &error);
    bool fine =
        json_is_object(object) && take_count(object, "version", &version) && version == 1 &&
        take_metric(s, json_string_value(json_object_get(object, "best_by"))) &&
        take_count(object, "updates", &s->updates) && take_count(object, "most_frames", &s->most_frames) &&
        take_count(object, "frames", &s->frames) && take_count(object, "alone_frames", &s->alone_frames) &&
        take_scores(s, json_object_get(object, "scores"), updates) &&
        take_checkpoints(s, json_object_get(object, "checkpoints"));
    json_decref(object);
    if (!fine)
        fprintf(stderr,
                "exphil: %s, the scores of this run so far, is damaged: move it away, and the best is chosen "
                "among the scores to come\n",
                path);
    return fine;
}
