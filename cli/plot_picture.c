/* Pictures of curves: SVG, and letters for a terminal. */
#include "plot.h"

#include "commands.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WIDTH = 900, HEIGHT = 480, LEFT = 84, RIGHT = 24, TOP = 40, BOTTOM = 52 };

/* ---- SVG ----------------------------------------------------------------------------------------------- */

static double place_x(const picture *p, double x)
{
    return LEFT + (x - p->x0) / (p->x1 - p->x0) * (WIDTH - LEFT - RIGHT);
}

static double place_y(const picture *p, double y)
{
    return HEIGHT - BOTTOM - plot_height(p, y) * (HEIGHT - TOP - BOTTOM);
}

static const char *manner(const picture *p)
{
    if (p->logarithmic) return p->smoothed ? " (logarithmic, smoothed)" : " (logarithmic)";
    return p->smoothed ? " (smoothed)" : "";
}

static void write_escaped(FILE *f, const char *text)
{
    for (; *text; text++) {
        if (*text == '<')
            fputs("&lt;", f);
        else if (*text == '>')
            fputs("&gt;", f);
        else if (*text == '&')
            fputs("&amp;", f);
        else
            fputc(*text, f);
    }
}

static void draw_heights(FILE *f, const picture *p)
{
    for (int i = 0; i <= 5; i++) {
        double part = i / 5.0, at = HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM);
        double y = p->logarithmic ? p->y0 * pow(p->y1 / p->y0, part) : p->y0 + part * (p->y1 - p->y0);
        fprintf(f, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n", LEFT,
                WIDTH - RIGHT, at, at);
        fprintf(f, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.*g</text>\n", LEFT - 8, at + 4,
                plot_digits(p), y);
    }
}

/* 1, 2 or 5 times a power of ten, at least one update: five steps or fewer over the width. */
static double update_step(const picture *p)
{
    double least = (p->x1 - p->x0) / 5.0, ten = pow(10.0, floor(log10(least)));
    double step = least <= ten         ? ten
                  : least <= 2.0 * ten ? 2.0 * ten
                  : least <= 5.0 * ten ? 5.0 * ten
                                       : 10.0 * ten;
    return fmax(step, 1.0);
}

/* Where updates are too large to be told apart by a step, labels would stand upon each other. */
static void draw_updates(FILE *f, const picture *p)
{
    double step = update_step(p), first = ceil(p->x0 / step), before = 0.0;
    for (int i = 0; i <= 5; i++) {
        double x = (first + i) * step;
        if (x > p->x1 || (i && x <= before)) break;
        fprintf(f, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.10g</text>\n", place_x(p, x),
                HEIGHT - BOTTOM + 20, x);
        before = x;
    }
    fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">update</text>\n", (WIDTH + LEFT) / 2,
            HEIGHT - 10);
}

static void draw_axes(FILE *f, const picture *p)
{
    fprintf(f, "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n");
    draw_heights(f, p);
    draw_updates(f, p);
    fprintf(f, "<text x=\"%d\" y=\"20\">", LEFT);
    write_escaped(f, p->field);
    fprintf(f, "%s</text>\n", manner(p));
}

static void draw_curve(FILE *f, const picture *p, const curve *c, size_t index)
{
    static const char *const colour[] = {"#1f6fb4", "#d1495b", "#2e933c", "#8d5fd3",
                                         "#e08e0b", "#178f8f", "#7a4b26", "#666666"};
    const char *ink = colour[index % (sizeof colour / sizeof colour[0])];
    fprintf(f, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"%s\" points=\"", ink,
            c->dots ? "1" : "1.6");
    for (size_t i = 0; i < c->count; i++)
        if (plot_drawn(p, c->at[i].y))
            fprintf(f, "%.1f,%.1f ", place_x(p, c->at[i].x), place_y(p, c->at[i].y));
    fprintf(f, "\"/>\n");
    for (size_t i = 0; (c->dots || c->count == 1) && i < c->count; i++)
        if (plot_drawn(p, c->at[i].y))
            fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", place_x(p, c->at[i].x),
                    place_y(p, c->at[i].y), ink);
    fprintf(f, "<text x=\"%d\" y=\"%zu\" text-anchor=\"end\" fill=\"%s\">", WIDTH - RIGHT,
            (size_t)20 + 16 * index, ink);
    write_escaped(f, c->label);
    fprintf(f, "</text>\n");
}

bool plot_svg(const picture *p, const char *path)
{
    FILE *f = fopen(path, "w");
    if (!f) return complain_of_file(path);
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    draw_axes(f, p);
    for (size_t c = 0, shown = 0; c < p->count; c++)
        if (p->curves[c].count) draw_curve(f, p, &p->curves[c], shown++);
    fprintf(f, "</svg>\n");
    bool fine = !ferror(f);
    if (fclose(f) == 0 && fine) return true;
    return complain_of_file(path);
}

/* ---- letters ------------------------------------------------------------------------------------------- */

enum { COLUMNS = 72, ROWS = 10 };

static void draw_letters(const picture *p, const curve *c, char letter, char grid[ROWS][COLUMNS + 1])
{
    for (size_t i = 0; i < c->count; i++) {
        if (!plot_drawn(p, c->at[i].y)) continue;
        int row = (int)((1.0 - plot_height(p, c->at[i].y)) * (ROWS - 1) + 0.5);
        int column = (int)((c->at[i].x - p->x0) / (p->x1 - p->x0) * (COLUMNS - 1) + 0.5);
        if (row >= 0 && row < ROWS && column >= 0 && column < COLUMNS) grid[row][column] = letter;
    }
}

void plot_text(const picture *p)
{
    char grid[ROWS][COLUMNS + 1];
    memset(grid, ' ', sizeof grid);
    for (int r = 0; r < ROWS; r++) grid[r][COLUMNS] = 0;
    printf("%s%s%s\n", p->field, manner(p), p->curves[PLOT_HELD].count ? "; o: held out" : "");
    draw_letters(p, &p->curves[PLOT_SCORED], '*', grid);
    draw_letters(p, &p->curves[PLOT_TRAIN], '*', grid);
    draw_letters(p, &p->curves[PLOT_HELD], 'o', grid);
    for (int r = 0; r < ROWS; r++) {
        if (r == 0 || r == ROWS - 1)
            printf("%11.*g |%s\n", plot_digits(p), r == 0 ? p->y1 : p->y0, grid[r]);
        else
            printf("%11s |%s\n", "", grid[r]);
    }
    printf("%11s +", "");
    for (int i = 0; i < COLUMNS; i++) putchar('-');
    printf("\n%13s%-10.0f%*.0f updates\n", "", p->x0, COLUMNS - 10, p->x1);
}
