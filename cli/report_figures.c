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
    static const char *const fields[] = {
        "loss",           "nll",           "exact_accuracy", "exact_change_accuracy",
        "alone_accuracy", "gradient_norm", "rate",           "frames_per_second"};
    static picture p;
    bool fine = true;
    fprintf(f, "<div class=\"figures\">\n");
    for (size_t i = 0; fine && i < sizeof fields / sizeof fields[0]; i++) {
        bool linear = strcmp(fields[i], "rate") == 0 || strcmp(fields[i], "frames_per_second") == 0;
        plot_begin(&p, fields[i], linear);
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

/* ---- a square ------------------------------------------------------------------------------------------ */

enum { SIDE = 300, LEFT = 84, TOP = 16, WIDTH = 480, HEIGHT = SIDE + TOP + 54 };

static void begin_square(FILE *f, const char *across, const char *down)
{
    fprintf(f,
            "<figure><svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 "
            "%d %d\" font-family=\"sans-serif\" font-size=\"12\" fill=\"currentColor\">\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", LEFT + SIDE / 2, HEIGHT - 8,
            across);
    fprintf(f, "<text x=\"14\" y=\"%d\" text-anchor=\"middle\" transform=\"rotate(-90 14 %d)\">%s</text>\n",
            TOP + SIDE / 2, TOP + SIDE / 2, down);
}

static void end_square(FILE *f)
{
    fprintf(f, "</svg></figure>\n");
}

/* ---- calibration --------------------------------------------------------------------------------------- */

static bool member(json_t *row, const char *name, double *number)
{
    json_t *value = json_object_get(row, name);
    *number = json_number_value(value);
    return json_is_number(value);
}

static void draw_grid(FILE *f)
{
    for (int i = 0; i <= 5; i++) {
        int x = LEFT + SIDE * i / 5, y = TOP + SIDE - SIDE * i / 5;
        fprintf(f,
                "<line x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\" stroke=\"currentColor\" "
                "stroke-opacity=\"0.15\"/>\n",
                LEFT, LEFT + SIDE, y, y);
        fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%d %%</text>\n", LEFT - 8, y + 4, 20 * i);
        fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%d %%</text>\n", x, TOP + SIDE + 22,
                20 * i);
    }
    fprintf(
        f,
        "<line x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\" stroke=\"currentColor\" stroke-dasharray=\"2 4\"/>\n",
        LEFT, LEFT + SIDE, TOP + SIDE, TOP);
}

bool report_calibration(FILE *f, json_t *rows)
{
    size_t i;
    json_t *row;
    double sure, right, frames, most = 0.0;
    if (!json_array_size(rows)) return false;
    json_array_foreach(rows, i, row)
    {
        if (!member(row, "confidence", &sure) || !member(row, "accuracy", &right) ||
            !member(row, "frames", &frames))
            return false;
        most = fmax(most, frames);
    }
    begin_square(f, "how sure the policy was", "how often it was right");
    draw_grid(f);
    json_array_foreach(rows, i, row)
    {
        (void)member(row, "confidence", &sure);
        (void)member(row, "accuracy", &right);
        (void)member(row, "frames", &frames);
        if (frames <= 0.0) continue; /* nothing was seen there */
        fprintf(f,
                "<circle class=\"d0\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"#1f6fb4\" "
                "fill-opacity=\"0.7\"/>\n",
                LEFT + SIDE * sure, TOP + SIDE - SIDE * right, 2.0 + 8.0 * sqrt(frames / most));
    }
    end_square(f);
    return true;
}

/* ---- confusion ----------------------------------------------------------------------------------------- */

static const char *label_of(json_t *labels, size_t i, char text[16])
{
    json_t *label = json_array_get(labels, i);
    if (json_is_string(label))
        (void)snprintf(text, 16, "%.8s", json_string_value(label));
    else if (json_is_number(label))
        (void)snprintf(text, 16, "%.3g", json_number_value(label));
    else
        (void)snprintf(text, 16, "%zu", i);
    return text;
}

/* As many as have room beside each other. */
static void draw_labels(FILE *f, json_t *labels, size_t count)
{
    char text[16];
    double cell = (double)SIDE / (double)count;
    size_t longest = 1, down = (size_t)ceil(14.0 / cell), across;
    for (size_t i = 0; i < count; i++)
        if (strlen(label_of(labels, i, text)) > longest) longest = strlen(text);
    across = (size_t)ceil((8.0 * (double)longest + 6.0) / cell);
    for (size_t i = 0; i < count; i++) {
        double at = ((double)i + 0.5) * cell;
        if (i % down == 0) {
            fprintf(f, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", LEFT - 6, TOP + at + 4);
            write_escaped(f, label_of(labels, i, text));
            fprintf(f, "</text>\n");
        }
        if (i % across) continue;
        fprintf(f, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">", LEFT + at, TOP + SIDE + 22);
        write_escaped(f, label_of(labels, i, text));
        fprintf(f, "</text>\n");
    }
}

static void draw_row(FILE *f, json_t *row, size_t at, size_t count)
{
    size_t k;
    json_t *value;
    double sum = 0.0, cell = (double)SIDE / (double)count;
    json_array_foreach(row, k, value) sum += json_number_value(value);
    json_array_foreach(row, k, value)
    {
        double share = sum > 0.0 ? json_number_value(value) / sum : 0.0;
        if (share <= 0.0) continue;
        fprintf(f,
                "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" class=\"%s\" fill=\"%s\" "
                "fill-opacity=\"%.3f\"/>\n",
                LEFT + (double)k * cell, TOP + (double)at * cell, cell, cell, k == at ? "c0" : "c1",
                k == at ? "#1f6fb4" : "#d1495b", fmax(0.02, sqrt(share)));
    }
}

bool report_confusion(FILE *f, json_t *matrix, json_t *labels)
{
    size_t count = json_array_size(matrix), i, k;
    json_t *row, *value;
    if (count < 2 || count > 300) return false;
    json_array_foreach(matrix, i, row)
    {
        if (json_array_size(row) != count) return false;
        json_array_foreach(row, k, value) if (!json_is_number(value)) return false;
    }
    begin_square(f, "what the policy takes", "what was recorded");
    json_array_foreach(matrix, i, row) draw_row(f, row, i, count);
    fprintf(f,
            "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"currentColor\" "
            "stroke-opacity=\"0.5\"/>\n",
            LEFT, TOP, SIDE, SIDE);
    draw_labels(f, labels, count);
    end_square(f);
    return true;
}
