/* A report as an SVG picture: for every row with a floor, a bar shows how much of the floor was reached. */
#include "report.h"
#include "system.h"

#include <stdio.h>
#include <string.h>

enum { LEFT = 420, WIDTH = 1000, RIGHT = 90, BAR = 18, TOP = 46 };

static void escaped(FILE *f, const char *text)
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

static const char *text_of(const json_t *row, const char *key)
{
    const char *text = json_string_value(json_object_get(row, key));
    return text ? text : "";
}

static void draw_row(FILE *f, const json_t *row, int index)
{
    double share = json_number_value(json_object_get(row, "share_of_floor"));
    const json_t *met = json_object_get(row, "met");
    const char *ink = !met ? "#1f6fb4" : json_is_true(met) ? "#2e933c" : "#d1495b";
    double full = WIDTH - LEFT - RIGHT, shown = share > 1.2 ? 1.2 : share;
    int y = TOP + index * BAR;
    fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", LEFT - 8, y + BAR - 6);
    escaped(f, text_of(row, "subject"));
    fputs("  ", f);
    escaped(f, text_of(row, "what"));
    fputs("  ", f);
    escaped(f, text_of(row, "how"));
    fprintf(f, "</text>\n<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", LEFT, y + 2,
            full / 1.2 * shown, BAR - 5, ink);
    double bar = json_number_value(json_object_get(row, "bar_ns"));
    if (bar > 0) {
        double at = LEFT + full / 1.2 * json_number_value(json_object_get(row, "floor_ns")) / bar;
        fprintf(f,
                "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"black\" stroke-width=\"2\"/>\n",
                at, at, y, y + BAR - 1);
    }
    fprintf(f, "<text x=\"%.1f\" y=\"%d\">%.0f %%</text>\n", LEFT + full / 1.2 * shown + 4, y + BAR - 6,
            100 * share);
}

static void draw(FILE *f, const json_t *root, int count)
{
    const json_t *row;
    size_t i;
    int index = 0, height = TOP + count * BAR + 16;
    double at = LEFT + (WIDTH - LEFT - RIGHT) / 1.2;
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
            "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" "
            "fill=\"white\"/>\n",
            WIDTH, height, WIDTH, height);
    fprintf(f, "<text x=\"12\" y=\"18\" font-size=\"13\">");
    escaped(f, text_of(root, "bench"));
    fprintf(f, ": floor / measured time on ");
    escaped(f, text_of(json_object_get(root, "machine"), "processor"));
    fprintf(f, "</text>\n<text x=\"12\" y=\"34\">black line: the bar; green: met, red: missed</text>\n");
    fprintf(f,
            "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"#999\" stroke-dasharray=\"3 3\"/>\n",
            at, at, TOP - 6, height - 10);
    json_array_foreach(json_object_get(root, "rows"), i, row)
    {
        if (json_object_get(row, "share_of_floor")) draw_row(f, row, index++);
    }
    fprintf(f, "</svg>\n");
}

bool bench_chart(const json_t *root, const char *path)
{
    const json_t *row;
    size_t i;
    int count = 0;
    json_array_foreach(json_object_get(root, "rows"), i, row)
    {
        count += json_object_get(row, "share_of_floor") != NULL;
    }
    FILE *f = system_open(path, "w");
    if (!f) {
        perror(path);
        return false;
    }
    draw(f, root, count);
    if (fclose(f) == 0) return true;
    perror(path);
    return false;
}
