/* Reading of training logs, one JSON object a line, and the axes that their curves need. */
#include "plot.h"

#include "files.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

/* ---- reading ------------------------------------------------------------------------------------------- */

static bool add_point(curve *c, double x, double y)
{
    if (c->count == c->capacity) {
        size_t capacity = c->capacity ? 2 * c->capacity : 256;
        point *more = realloc(c->at, capacity * sizeof *more);
        if (!more) return false;
        c->at = more;
        c->capacity = capacity;
    }
    c->at[c->count++] = (point){x, y};
    return true;
}

static int kind_of(const char *kind)
{
    static const char *const kinds[PLOT_KINDS] = {"train", "held_out", "train_set"};
    for (int i = 0; kind && i < PLOT_KINDS; i++)
        if (strcmp(kind, kinds[i]) == 0) return i;
    return -1;
}

static bool read_line(picture *p, const char *line, curve *curves)
{
    json_t *object = json_loads(line, 0, NULL);
    int kind = kind_of(json_string_value(json_object_get(object, "kind")));
    json_t *x = json_object_get(object, "update"), *y = json_object_get(object, p->field);
    bool fine = json_is_object(object);
    if (kind >= 0 && json_is_number(x) && json_is_number(y)) {
        point at = {json_number_value(x), json_number_value(y)};
        bool far = fabs(at.x) > PLOT_MOST || fabs(at.y) > PLOT_MOST;
        if (far) p->too_large++;
        fine = far || add_point(&curves[kind], at.x, at.y);
    }
    json_decref(object);
    return fine;
}

bool plot_read(picture *p, const char *path)
{
    static const char *const labels[PLOT_KINDS] = {"", " held out", " on the training data"};
    FILE *file = file_open(path);
    char *line = NULL;
    size_t capacity = 0;
    long number = 0;
    bool fine = file != NULL;
    curve *curves = &p->curves[p->count];
    for (int k = 0; k < PLOT_KINDS; k++) {
        (void)snprintf(curves[k].label, sizeof curves[k].label, "%.80s%s", path, labels[k]);
        curves[k].dots = k != PLOT_TRAIN;
    }
    while (fine && getline(&line, &capacity, file) > 0) {
        number++;
        fine = read_line(p, line, curves);
        if (!fine) fprintf(stderr, "exphil: %s line %ld is not a JSON object\n", path, number);
    }
    free(line);
    if (file) fclose(file);
    if (curves[PLOT_TRAIN].count) curves[PLOT_SCORED].count = 0; /* the last loss once more */
    p->count += PLOT_KINDS;
    return fine;
}

void plot_list_fields(const char *path)
{
    FILE *file = file_open(path);
    char *line = NULL;
    size_t capacity = 0;
    json_t *names = json_object();
    const char *name, *comma = "";
    json_t *value;
    while (file && getline(&line, &capacity, file) > 0) {
        json_t *object = json_loads(line, 0, NULL);
        json_object_foreach(object, name, value) if (json_is_number(value) && strcmp(name, "update") != 0)
            json_object_set_new(names, name, json_true());
        json_decref(object);
    }
    fprintf(stderr, "exphil: %s has", path);
    json_object_foreach(names, name, value)
    {
        fprintf(stderr, "%s %s", comma, name);
        comma = ",";
    }
    fprintf(stderr, "%s\n", comma[0] ? "" : " nothing to draw");
    json_decref(names);
    free(line);
    if (file) fclose(file);
}

void plot_free(picture *p)
{
    for (size_t c = 0; c < p->count; c++) free(p->curves[c].at);
    p->count = 0;
}

/* ---- shaping ------------------------------------------------------------------------------------------- */

/* Centred moving mean, so that a noisy loss shows its course. */
static void smooth(curve *c, size_t half)
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
    for (size_t c = PLOT_TRAIN; c < p->count; c += PLOT_KINDS) {
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
static void widen(picture *p, bool shares)
{
    double y = p->y0;
    if (p->logarithmic)
        p->y0 = 0.8 * y, p->y1 = 1.25 * y;
    else if (y == 0.0)
        p->y1 = 1.0;
    else
        p->y0 = y - 0.25 * fabs(y), p->y1 = y + 0.25 * fabs(y);
    if (shares && y <= 1.0 && p->y1 > 1.0) p->y1 = 1.0;
}

bool plot_fit(picture *p)
{
    bool any = false, shares = strstr(p->field, "accuracy") || strncmp(p->field, "exact_", 6) == 0;
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
    double margin = fmax(1.0, 1e-6 * fabs(p->x0)); /* around a single update */
    if (any && p->x1 <= p->x0) p->x0 -= margin, p->x1 += margin;
    if (any && p->y1 - p->y0 <= 1e-12 * fabs(p->y1))
        widen(p, shares);
    else if (!p->logarithmic && p->y0 > 0.0 && p->y0 < 0.5 * p->y1)
        p->y0 = 0.0;
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
