/* The figures of a report, as SVG inside the page. */
#include "report.h"

#include "plot.h"

#include <math.h>
#include <string.h>

/* One point is a number, which stands in the tables. */
static bool any_curve(const picture *p)
{
    for (size_t c = 0; c < p->count; c++)
        if (p->curves[c].count > 1) return true;
    return false;
}

bool report_curves(FILE *f, const char *log)
{
    static const struct {
        const char *field, *title;
    } curves[] = {{"loss", "Loss"},
                  {"nll", "nll"},
                  {"exact_accuracy", "Right on all parts"},
                  {"exact_change_accuracy", "Right where the input changes"},
                  {"alone_accuracy", "Right alone"},
                  {"unexplained", "Variance that the value leaves unexplained"},
                  {"value_loss", "Squared error of the value"},
                  {"effective_share", "Effective, as if of equal weight"},
                  {"clipped_share", "At the cap"},
                  {"gradient_norm", "Size of the gradient"},
                  {"rate", "Learning rate"},
                  {"frames_per_second", "Frames a second"}};
    static picture p;
    bool fine = true;
    fprintf(f, "<div class=\"figures curves\">\n");
    for (size_t i = 0; fine && i < sizeof curves / sizeof curves[0]; i++) {
        bool linear =
            strcmp(curves[i].field, "rate") == 0 || strcmp(curves[i].field, "frames_per_second") == 0;
        plot_begin(&p, curves[i].field, linear);
        p.title = curves[i].title;
        fine = plot_read(&p, log);
        plot_smooth(&p, -1);
        if (fine && any_curve(&p) && plot_fit(&p)) {
            fprintf(f, "<figure>");
            plot_draw(&p, f, true);
            fprintf(f, "</figure>\n");
        }
        plot_free(&p);
    }
    fprintf(f, "</div>\n");
    return fine;
}

/* ---- squares ------------------------------------------------------------------------------------------- */

typedef struct square {
    FILE *f;
    int side, left, top, width, height;
} square;

static void begin_square(const square *s, const char *across, const char *down)
{
    fprintf(s->f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\" fill=\"currentColor\">\n",
            s->width, s->height, s->width, s->height);
    fprintf(s->f, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", s->left + s->side / 2,
            s->height - 8, across);
    fprintf(s->f,
            "<text x=\"14\" y=\"%d\" text-anchor=\"middle\" transform=\"rotate(-90 14 %d)\">%s</text>\n",
            s->top + s->side / 2, s->top + s->side / 2, down);
}

static void end_square(const square *s)
{
    fprintf(s->f, "</svg></figure>\n");
}

/* ---- calibration --------------------------------------------------------------------------------------- */

static void draw_grid(const square *s)
{
    for (int i = 0; i <= 4; i++) {
        int x = s->left + s->side * i / 4, y = s->top + s->side - s->side * i / 4;
        fprintf(s->f,
                "<line x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\" stroke=\"currentColor\" "
                "stroke-opacity=\"0.15\"/>\n",
                s->left, s->left + s->side, y, y);
        fprintf(s->f, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%d %%</text>\n", s->left - 8, y + 4,
                25 * i);
        fprintf(s->f, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%d %%</text>\n", x,
                s->top + s->side + 22, 25 * i);
    }
    fprintf(s->f,
            "<line x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\" stroke=\"currentColor\" "
            "stroke-dasharray=\"2 4\"/>\n",
            s->left, s->left + s->side, s->top + s->side, s->top);
}

static double share_of(json_t *bin, const char *name)
{
    return fmin(fmax(json_number_value(json_object_get(bin, name)), 0.0), 1.0);
}

void report_calibration(FILE *f, const char *head, json_t *bins)
{
    const square s = {.f = f, .side = 232, .left = 72, .top = 16, .width = 328, .height = 302};
    size_t i;
    json_t *bin;
    double most = 0.0;
    json_array_foreach(bins, i, bin) most = fmax(most, json_number_value(json_object_get(bin, "count")));
    if (!(most > 0.0)) return;
    fprintf(f, "<figure><figcaption>");
    report_name(f, head);
    fprintf(f, "</figcaption>");
    begin_square(&s, "how sure", "how often right");
    draw_grid(&s);
    json_array_foreach(bins, i, bin)
    {
        double count = json_number_value(json_object_get(bin, "count"));
        if (!(count > 0.0)) continue; /* nothing was seen there */
        fprintf(f,
                "<circle class=\"d0\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"#1f6fb4\" "
                "fill-opacity=\"0.7\"/>\n",
                s.left + s.side * share_of(bin, "confidence"),
                s.top + s.side - s.side * share_of(bin, "accuracy"), 2.0 + 8.0 * sqrt(count / most));
    }
    end_square(&s);
}

/* ---- the stick ----------------------------------------------------------------------------------------- */

enum { SECTORS = 9, CELL = 38, LABEL = 10 };

/* "up-right" in two lines, as narrow as a cell. */
static void draw_label(const square *s, const char *name, int at)
{
    const char *dash = strchr(name, '-');
    char first[LABEL + 1];
    double x = s->left + (at + 0.5) * CELL;
    fprintf(s->f, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", s->left - 8,
            s->top + (at + 0.5) * CELL + 4);
    write_escaped(s->f, name);
    fprintf(s->f, "</text>\n<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">", x, s->top + s->side + 18);
    (void)snprintf(first, sizeof first, "%.*s", dash ? (int)(dash - name) : LABEL, name);
    write_escaped(s->f, first);
    if (dash) {
        fprintf(s->f, "<tspan x=\"%.1f\" dy=\"14\">", x);
        write_escaped(s->f, dash + 1);
        fprintf(s->f, "</tspan>");
    }
    fprintf(s->f, "</text>\n");
}

/* Shares of a row, and how many frames it has. */
static void draw_row(const square *s, json_t *row, int at)
{
    char text[24];
    double sum = 0.0, y = s->top + at * CELL;
    for (size_t k = 0; k < SECTORS; k++) sum += json_number_value(json_array_get(row, k));
    number_text(sum, false, text);
    fprintf(s->f, "<text x=\"%d\" y=\"%.1f\" fill-opacity=\"0.7\">%s</text>\n", s->left + s->side + 8,
            y + CELL / 2.0 + 4, text);
    for (int k = 0; sum > 0.0 && k < SECTORS; k++) {
        double share = json_number_value(json_array_get(row, (size_t)k)) / sum, x = s->left + k * CELL;
        if (!(share > 0.0)) continue;
        fprintf(s->f,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%d\" class=\"%s\" fill=\"%s\" "
                "fill-opacity=\"%.3f\"/>\n",
                x, y, CELL, CELL, k == at ? "c0" : "c1", k == at ? "#1f6fb4" : "#d1495b",
                fmax(0.04, 0.6 * sqrt(share)));
        fprintf(s->f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" font-size=\"11\">%s%.0f</text>\n",
                x + CELL / 2.0, y + CELL / 2.0 + 4, share < 0.005 ? "&lt;" : "",
                share < 0.005 ? 1.0 : 100.0 * share);
    }
}

/* Short names, and counts for each pair of them? */
static bool are_sectors(json_t *names, json_t *rows)
{
    size_t i, k;
    json_t *name, *row, *value;
    if (json_array_size(names) != SECTORS || json_array_size(rows) != SECTORS) return false;
    json_array_foreach(names, i,
                       name) if (!json_is_string(name) || json_string_length(name) > LABEL) return false;
    json_array_foreach(rows, i, row)
    {
        if (json_array_size(row) != SECTORS) return false;
        json_array_foreach(row, k,
                           value) if (!json_is_integer(value) || json_integer_value(value) < 0) return false;
    }
    return true;
}

bool report_stick(FILE *f, json_t *stick)
{
    const square s = {
        .f = f, .side = SECTORS * CELL, .left = 100, .top = 24, .width = 508, .height = SECTORS * CELL + 84};
    json_t *rows = json_object_get(stick, "recorded_decided"), *names = json_object_get(stick, "sectors");
    if (!are_sectors(names, rows)) return false;
    report_title(f, 3, "Where the main stick goes",
                 "Each row is a direction that was recorded, with its number of frames; its cells are where "
                 "the policy moves the stick then, in percent. Blue is right, red is wrong.");
    fprintf(f, "<div class=\"figures\">\n<figure>");
    begin_square(&s, "the policy's decision", "recorded");
    fprintf(f, "<text x=\"%d\" y=\"14\" fill-opacity=\"0.7\">frames</text>\n", s.left + s.side + 8);
    for (int i = 0; i < SECTORS; i++) {
        draw_row(&s, json_array_get(rows, (size_t)i), i);
        draw_label(&s, json_string_value(json_array_get(names, (size_t)i)), i);
    }
    fprintf(f,
            "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"currentColor\" "
            "stroke-opacity=\"0.5\"/>\n",
            s.left, s.top, s.side, s.side);
    end_square(&s);
    fprintf(f, "</div>\n");
    return true;
}
