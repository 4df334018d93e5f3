/* Curves of training logs, and the axes that they need. */
#include "plot.h"

#include "files.h"
#include "runs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- fields -------------------------------------------------------------------------------------------- */

/* What stands beside a score for comparison: in the same object, by its last name. */
static const struct {
    const char *of, *field[BASELINES], *word[BASELINES];
} beside[] = {
    {"exact_accuracy", {"exact_majority", "exact_copy"}, {"majority", "copy"}},
    {"alone_accuracy", {"exact_majority", "exact_copy"}, {"majority", "copy"}},
    {"exact_change_accuracy", {"exact_majority_change", NULL}, {"majority", NULL}},
    {"alone_change_accuracy", {"exact_majority_change", NULL}, {"majority", NULL}},
    {"accuracy", {"majority_accuracy", "copy_accuracy"}, {"majority", "copy"}},
    {"nll", {"frequency_nll", NULL}, {"frequencies", NULL}},
    {"alone_nll", {"frequency_nll", NULL}, {"frequencies", NULL}},
};
enum { BESIDE = sizeof beside / sizeof beside[0] };

static const char *last_name(const char *field)
{
    const char *slash = strrchr(field, '/');
    return slash ? slash + 1 : field;
}

static size_t beside_of(const char *field)
{
    size_t i = 0;
    while (i < BESIDE && strcmp(beside[i].of, last_name(field)) != 0) i++;
    return i;
}

/* Lines of training have one number a head, its loss; scores have an object. */
void plot_begin(picture *p, const char *field, bool linear)
{
    memset(p, 0, sizeof *p);
    p->field = field;
    p->logarithmic = !linear && !field_is_share(field);
    size_t at = beside_of(field), head = strncmp(field, "heads/", 6) == 0 ? strcspn(field + 6, "/") + 6 : 0;
    bool loss = head && (!field[head] || strcmp(field + head, "/loss") == 0);
    (void)snprintf(p->fields[LOG_TRAIN], FIELD_MOST, "%.*s", (int)(loss ? head : FIELD_MOST - 1), field);
    (void)snprintf(p->fields[LOG_HELD], FIELD_MOST, "%.100s%s", field, loss && !field[head] ? "/loss" : "");
    for (int b = 0; b < BASELINES; b++)
        if (at < BESIDE && beside[at].field[b])
            (void)snprintf(p->fields[2 + b], FIELD_MOST, "%.*s%s", (int)(last_name(field) - field), field,
                           beside[at].field[b]);
}

/* ---- reading ------------------------------------------------------------------------------------------- */

static void leave_far_out(picture *p, log_series *curve)
{
    size_t kept = 0;
    for (size_t i = 0; i < curve->count; i++) {
        point at = curve->at[i];
        if (fabs(at.x) > PLOT_MOST || fabs(at.y) > PLOT_MOST)
            p->too_large++;
        else
            curve->at[kept++] = at;
    }
    curve->count = kept;
}

/* What falls below 0, as rewards do, has no logarithm: then the height is linear. */
static void choose_height(picture *p, const log_series *curve)
{
    for (size_t i = 0; i < curve->count; i++)
        if (curve->at[i].y < 0.0) p->logarithmic = false;
}

/* The last of them: of what is held out, else of the training data. */
static void take_baselines(picture *p, size_t log, const log_series *of)
{
    size_t at = beside_of(p->field);
    for (int b = 0; b < BASELINES; b++)
        for (int scored = 0; scored < 2; scored++) {
            const log_series *s = &of[2 * b + scored];
            double value = s->count ? s->at[s->count - 1].y : 0.0;
            baseline *to = &p->baselines[log][b];
            if (s->count && !to->word && fabs(value) <= PLOT_MOST)
                *to = (baseline){beside[at].word[b], value};
        }
}

bool plot_read(picture *p, const char *path)
{
    enum { ALL = LOG_KINDS + 2 * BASELINES };
    log_series all[ALL] = {{.kind = LOG_TRAIN, .field = p->fields[0]},
                           {.kind = LOG_HELD, .field = p->fields[1]},
                           {.kind = LOG_SCORED, .field = p->fields[1]}};
    for (int i = 0; i < 2 * BASELINES; i++)
        all[LOG_KINDS + i] =
            (log_series){.kind = i % 2 ? LOG_SCORED : LOG_HELD, .field = p->fields[2 + i / 2]};
    size_t log = p->count / LOG_KINDS;
    bool fine = log_read(path, all, ALL);
    if (all[LOG_TRAIN].count) all[LOG_SCORED].count = 0; /* the last loss once more */
    for (int k = 0; k < LOG_KINDS; k++) {
        leave_far_out(p, &all[k]);
        choose_height(p, &all[k]);
        p->curves[p->count + (size_t)k] = all[k];
    }
    take_baselines(p, log, all + LOG_KINDS);
    log_free(all + LOG_KINDS, ALL - LOG_KINDS);
    p->names[log] = path;
    p->count += LOG_KINDS;
    return fine;
}

static bool note_names(void *user, json_t *object)
{
    const char *name;
    json_t *value;
    if (log_kind(object) < 0) return true;
    json_object_foreach(object, name, value) if (json_is_number(value) && strcmp(name, "update") != 0)
        json_object_set_new(user, name, json_true());
    const char *head;
    json_t *of;
    json_object_foreach(json_object_get(object, "heads"), head, of)
    {
        char path[FIELD_MOST];
        (void)snprintf(path, sizeof path, "heads/%.100s", head);
        json_object_set_new(user, path, json_true());
    }
    return true;
}

void plot_list_fields(const char *path)
{
    json_t *names = json_object(), *value;
    const char *name, *comma = "";
    (void)log_each(path, note_names, names);
    fprintf(stderr, "exphil: %s has", path);
    json_object_foreach(names, name, value)
    {
        fprintf(stderr, "%s %s", comma, name);
        comma = ",";
    }
    fprintf(stderr, "%s\n", comma[0] ? "" : " nothing to draw");
    json_decref(names);
}

void plot_free(picture *p)
{
    log_free(p->curves, p->count);
    p->count = 0;
}

/* ---- shaping ------------------------------------------------------------------------------------------- */

/* Centred moving mean, so that a noisy loss shows its course. */
static void smooth(log_series *c, size_t half)
{
    point *out = half ? malloc(c->count * sizeof *out) : NULL;
    if (!out) return;
    for (size_t i = 0; i < c->count; i++) {
        size_t first = i > half ? i - half : 0, last = i + half < c->count ? i + half : c->count - 1;
        double sum = 0.0;
        for (size_t k = first; k <= last; k++) sum += c->at[k].y;
        out[i] = (point){c->at[i].x, sum / (double)(last - first + 1)};
    }
    memcpy(c->at, out, c->count * sizeof *out);
    free(out);
}

void plot_smooth(picture *p, long half)
{
    for (size_t c = LOG_TRAIN; c < p->count; c += LOG_KINDS) {
        size_t width = half >= 0 ? (size_t)half : p->curves[c].count / 200;
        if (!p->curves[c].count || !width) continue;
        smooth(&p->curves[c], width);
        p->smoothed = true;
    }
}

bool plot_drawn(const picture *p, double y)
{
    return !p->logarithmic || y >= PLOT_LEAST;
}

/* Room above and below a series that is all one value; shares stay at or below 1. */
static void widen(picture *p)
{
    double y = p->y0;
    if (p->logarithmic)
        p->y0 = 0.8 * y, p->y1 = 1.25 * y;
    else if (y == 0.0)
        p->y1 = 1.0;
    else
        p->y0 = y - 0.25 * fabs(y), p->y1 = y + 0.25 * fabs(y);
    if (field_is_share(p->field) && y <= 1.0 && p->y1 > 1.0) p->y1 = 1.0;
}

/* Baselines stand beside the curves; where there is no curve they say nothing. */
static void fit_baselines(picture *p)
{
    for (size_t i = 0; i < p->count / LOG_KINDS; i++)
        for (int b = 0; b < BASELINES; b++) {
            const baseline *of = &p->baselines[i][b];
            if (!of->word || !plot_drawn(p, of->value)) continue;
            p->y0 = fmin(p->y0, of->value);
            p->y1 = fmax(p->y1, of->value);
        }
}

bool plot_fit(picture *p)
{
    bool any = false;
    p->too_small = 0;
    for (size_t c = 0; c < p->count; c++)
        for (size_t i = 0; i < p->curves[c].count; i++) {
            point at = p->curves[c].at[i];
            if (!plot_drawn(p, at.y)) {
                p->too_small++;
                continue;
            }
            if (!any) p->x0 = p->x1 = at.x, p->y0 = p->y1 = at.y;
            any = true;
            p->x0 = fmin(p->x0, at.x), p->x1 = fmax(p->x1, at.x);
            p->y0 = fmin(p->y0, at.y), p->y1 = fmax(p->y1, at.y);
        }
    if (any) fit_baselines(p);
    double margin = fmax(1.0, 1e-6 * fabs(p->x0)); /* around a single update */
    if (any && p->x1 <= p->x0) p->x0 -= margin, p->x1 += margin;
    if (any && p->y1 - p->y0 <= 1e-12 * fabs(p->y1))
        widen(p);
    else if (!p->logarithmic && p->y0 > 0.0 && p->y0 < 0.5 * p->y1)
        p->y0 = 0.0;
    if (any && !p->logarithmic) ticks_enclose(&p->y0, &p->y1, HEIGHTS);
    if (any && p->logarithmic) ticks_reach(&p->y0, p->y1, POWERS);
    return any;
}

double plot_height(const picture *p, double y)
{
    return p->logarithmic ? log(y / p->y0) / log(p->y1 / p->y0) : (y - p->y0) / (p->y1 - p->y0);
}

int plot_digits(const picture *p)
{
    double most = fmax(fabs(p->y0), fabs(p->y1)), step = (p->y1 - p->y0) / 5.0;
    int digits = step > 0.0 ? (int)ceil(log10(most / step)) + 1 : 3;
    return digits < 3 ? 3 : digits > 9 ? 9 : digits;
}

const char *plot_manner(const picture *p)
{
    if (p->logarithmic) return p->smoothed ? " (logarithmic, smoothed)" : " (logarithmic)";
    return p->smoothed ? " (smoothed)" : "";
}
