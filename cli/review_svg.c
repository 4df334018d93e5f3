/* The curve of a review as a picture. */
#include "review.h"

#include "plot.h"
#include "slp_words.h"
#include "system.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 960, HEIGHT = 420, LEFT = 64, RIGHT = 24, TOP = 64, FOOT = 48 };

typedef struct sheet {
    const review *r;
    FILE *f;
    double reach; /* of values, both ways */
} sheet;

static double place_x(const sheet *s, double at)
{
    double last = s->r->count > 1 ? (double)(s->r->count - 1) : 1.0;
    return LEFT + at / last * (WIDTH - LEFT - RIGHT);
}

static double place_y(const sheet *s, double value)
{
    return TOP + (1.0 - value / s->reach) / 2.0 * (HEIGHT - TOP - FOOT);
}

static double reach_of(const review *r)
{
    double most = 0.1, least = -0.1;
    for (int64_t i = 0; i < r->count; i++)
        if (r->frame[i].known) most = fmax(most, fabs(r->frame[i].value));
    least = -most;
    ticks_enclose(&least, &most, 8);
    return most;
}

static void draw_axes(const sheet *s)
{
    ticks t;
    char time[WORDS_SHORT];
    ticks_linear(&t, -s->reach, s->reach, 0.0, 8, false);
    for (int i = 0; i < t.count; i++) {
        double y = place_y(s, t.at[i]);
        fprintf(s->f,
                "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"currentColor\" "
                "stroke-opacity=\"%s\"/>\n"
                "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                LEFT, WIDTH - RIGHT, y, y, fabs(t.at[i]) < 1e-9 ? "0.6" : "0.15", LEFT - 8, y + 4, t.text[i]);
    }
    int64_t step = 1800; /* half a minute */
    while (s->r->count / step > 12) step *= 2;
    for (int64_t at = 0; at < s->r->count; at += step) {
        double x = place_x(s, (double)at);
        fprintf(s->f,
                "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"currentColor\" "
                "stroke-opacity=\"0.5\"/>\n"
                "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
                x, x, HEIGHT - FOOT, HEIGHT - FOOT + 5, x, HEIGHT - FOOT + 22, words_time(time, at));
    }
}

/* A line where a stock went: of whom is told by its colour. */
static void draw_deaths(const sheet *s)
{
    const review *r = s->r;
    const int32_t ports[] = {r->port, r->other};
    for (int p = 0; p < 2; p++)
        for (int64_t i = 0; ports[p] && i < r->count; i++) {
            if (!review_dies(r, ports[p], (int32_t)(r->first + i))) continue;
            double x = place_x(s, (double)i);
            fprintf(s->f,
                    "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"%s\" stroke-dasharray=\"4 "
                    "3\"/>\n",
                    x, x, TOP, HEIGHT - FOOT, p ? "#2e8b57" : "#d1495b");
        }
}

static void draw_curve(const sheet *s)
{
    bool open = false;
    for (int64_t i = 0; i < s->r->count; i++) {
        const review_frame *f = &s->r->frame[i];
        if (f->known && !open)
            fprintf(
                s->f,
                "<polyline fill=\"none\" stroke=\"#1f6fb4\" stroke-width=\"1.3\" stroke-linejoin=\"round\" "
                "points=\"");
        if (!f->known && open) fprintf(s->f, "\"/>\n");
        open = f->known;
        if (open) fprintf(s->f, "%.1f,%.1f ", place_x(s, (double)i), place_y(s, f->value));
    }
    if (open) fprintf(s->f, "\"/>\n");
}

/* A number beside another one stands below it. */
static int number_height(const review *r, int64_t swing)
{
    for (int64_t i = 0; i < swing; i++)
        if (llabs(r->swing[i].at - r->swing[swing].at) * (WIDTH - LEFT - RIGHT) < 16 * r->count)
            return TOP + 14;
    return TOP - 5;
}

static void draw_swings(const sheet *s)
{
    for (int64_t i = 0; i < s->r->swings; i++) {
        double x = place_x(s, (double)s->r->swing[i].at), wide = place_x(s, REVIEW_WINDOW) - LEFT;
        fprintf(
            s->f,
            "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"#e6a817\" fill-opacity=\"0.3\"/>\n"
            "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" font-weight=\"bold\">%" PRId64 "</text>\n",
            x, TOP, fmax(wide, 2.0), HEIGHT - TOP - FOOT, x + wide / 2.0, number_height(s->r, i), i + 1);
    }
}

static void draw_head(const sheet *s)
{
    const review *r = s->r;
    char own[WORDS_SHORT], other[WORDS_SHORT] = "nobody";
    words_player(own, &r->game, r->port - 1);
    if (r->other) words_player(other, &r->game, r->other - 1);
    fprintf(s->f, "<text x=\"%d\" y=\"20\" font-weight=\"bold\">Value: what ", LEFT);
    write_escaped(s->f, own);
    fprintf(s->f, " is to gain against ");
    write_escaped(s->f, other);
    fprintf(s->f, "</text>\n<text x=\"%d\" y=\"38\"><tspan fill=\"#d1495b\">dashes: ", LEFT);
    write_escaped(s->f, own);
    fprintf(s->f, " dies</tspan>  <tspan dx=\"12\" fill=\"#2e8b57\">dashes: ");
    write_escaped(s->f, other);
    fprintf(s->f,
            " dies</tspan>  <tspan dx=\"12\" fill=\"#a87400\">bands: the largest swings</tspan></text>\n");
}

bool review_svg(const review *r, const char *path)
{
    FILE *f = system_open(path, "w");
    if (!f) return complain_of_file(path);
    const sheet s = {.r = r, .f = f, .reach = reach_of(r)};
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
            "font-family=\"sans-serif\" font-size=\"12\" fill=\"currentColor\" color=\"#222\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    draw_head(&s);
    draw_swings(&s);
    draw_axes(&s);
    draw_deaths(&s);
    draw_curve(&s);
    fprintf(f, "</svg>\n");
    bool fine = !ferror(f);
    if (fclose(f) == 0 && fine) return true;
    return complain_of_file(path);
}
