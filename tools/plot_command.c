/* `exphil plot`: training logs (one JSON object per line) to one SVG picture, and with --text to a picture in letters. */
#include "commands.h"
#include "options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct point { double x, y; } point;
typedef struct curve { char label[96]; point *at; size_t count, room; bool dots; } curve;
enum { CURVES_MOST = 16, WIDTH = 900, HEIGHT = 480, LEFT = 72, RIGHT = 24, TOP = 40, BOTTOM = 52 };
typedef struct picture { curve curves[CURVES_MOST]; size_t count; double x0, x1, y0, y1; bool logarithmic; } picture;

static const char *const colour[] = { "#1f6fb4", "#d1495b", "#2e933c", "#8d5fd3", "#e08e0b", "#178f8f", "#7a4b26", "#666666" };

static bool add_point(curve *c, double x, double y)
{
    if (c->count == c->room) {
        size_t room = c->room ? 2 * c->room : 256;
        point *more = realloc(c->at, room * sizeof *more);
        if (!more) return false;
        c->at = more;
        c->room = room;
    }
    c->at[c->count++] = (point){ x, y };
    return true;
}

static bool read_line(const char *line, const char *field, curve *train, curve *held)
{
    json_t *object = json_loads(line, 0, NULL);
    const char *kind = json_string_value(json_object_get(object, "kind"));
    json_t *x = json_object_get(object, "update"), *y = json_object_get(object, field);
    bool fine = object != NULL;
    if (kind && json_is_number(x) && json_is_number(y)) {
        curve *to = strcmp(kind, "train") == 0 ? train : strcmp(kind, "held_out") == 0 ? held : NULL;
        if (to) fine = add_point(to, json_number_value(x), json_number_value(y));
    }
    json_decref(object);
    return fine;
}

static bool read_log(picture *p, const char *path, const char *field)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    long number = 0;
    bool fine = file != NULL;
    if (!file) perror(path);
    curve *train = &p->curves[p->count], *held = &p->curves[p->count + 1];
    snprintf(train->label, sizeof train->label, "%.80s", path);
    snprintf(held->label, sizeof held->label, "%.80s held out", path);
    held->dots = true;
    while (fine && getline(&line, &room, file) > 0) {
        number++;
        fine = read_line(line, field, train, held);
        if (!fine) fprintf(stderr, "exphil: %s line %ld is not a JSON object\n", path, number);
    }
    free(line);
    if (file) fclose(file);
    p->count += 2;
    return fine;
}

/* Centred moving mean, so that a noisy loss shows its course. */
static void smooth(curve *c, size_t half)
{
    point *out = malloc(c->count * sizeof *out);
    if (!out) return;
    for (size_t i = 0; i < c->count; i++) {
        size_t first = i > half ? i - half : 0, last = i + half < c->count ? i + half : c->count - 1;
        double sum = 0.0;
        for (size_t k = first; k <= last; k++) sum += c->at[k].y;
        out[i] = (point){ c->at[i].x, sum / (double)(last - first + 1) };
    }
    memcpy(c->at, out, c->count * sizeof *out);
    free(out);
}

static bool fit(picture *p)
{
    bool any = false;
    for (size_t c = 0; c < p->count; c++)
        for (size_t i = 0; i < p->curves[c].count; i++) {
            point at = p->curves[c].at[i];
            if (!isfinite(at.y) || (p->logarithmic && at.y <= 0.0)) continue;
            if (!any) p->x0 = p->x1 = at.x, p->y0 = p->y1 = at.y;
            any = true;
            p->x0 = fmin(p->x0, at.x), p->x1 = fmax(p->x1, at.x);
            p->y0 = fmin(p->y0, at.y), p->y1 = fmax(p->y1, at.y);
        }
    if (p->x1 <= p->x0) p->x1 = p->x0 + 1.0;
    if (!p->logarithmic && p->y0 > 0.0 && p->y0 < 0.5 * p->y1) p->y0 = 0.0;
    if (p->y1 <= p->y0) p->y1 = p->y0 + (p->logarithmic ? p->y0 : 1.0);
    return any;
}

static double place_x(const picture *p, double x) { return LEFT + (x - p->x0) / (p->x1 - p->x0) * (WIDTH - LEFT - RIGHT); }

static double place_y(const picture *p, double y)
{
    double part = p->logarithmic ? log(y / p->y0) / log(p->y1 / p->y0) : (y - p->y0) / (p->y1 - p->y0);
    return HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM);
}

static void draw_axes(FILE *f, const picture *p, const char *field)
{
    fprintf(f, "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n");
    for (int i = 0; i <= 5; i++) {
        double part = i / 5.0, x = p->x0 + part * (p->x1 - p->x0);
        double y = p->logarithmic ? p->y0 * pow(p->y1 / p->y0, part) : p->y0 + part * (p->y1 - p->y0);
        fprintf(f, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n", LEFT, WIDTH - RIGHT, place_y(p, y),
                place_y(p, y));
        fprintf(f, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.3g</text>\n", LEFT - 8, place_y(p, y) + 4, y);
        fprintf(f, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.0f</text>\n", place_x(p, x), HEIGHT - BOTTOM + 20, x);
    }
    fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">update</text>\n", (WIDTH + LEFT) / 2, HEIGHT - 10);
    fprintf(f, "<text x=\"%d\" y=\"20\">%s</text>\n", LEFT, field);
}

static void write_escaped(FILE *f, const char *text)
{
    for (; *text; text++) {
        if (*text == '<') fputs("&lt;", f);
        else if (*text == '>') fputs("&gt;", f);
        else if (*text == '&') fputs("&amp;", f);
        else fputc(*text, f);
    }
}

static void draw_curve(FILE *f, const picture *p, const curve *c, size_t index)
{
    const char *ink = colour[index % (sizeof colour / sizeof colour[0])];
    if (c->count == 0) return;
    fprintf(f, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"%s\" points=\"", ink, c->dots ? "1" : "1.6");
    for (size_t i = 0; i < c->count; i++)
        if (isfinite(c->at[i].y) && (!p->logarithmic || c->at[i].y > 0.0))
            fprintf(f, "%.1f,%.1f ", place_x(p, c->at[i].x), place_y(p, c->at[i].y));
    fprintf(f, "\"/>\n");
    for (size_t i = 0; c->dots && i < c->count; i++)
        if (isfinite(c->at[i].y) && (!p->logarithmic || c->at[i].y > 0.0))
            fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", place_x(p, c->at[i].x),
                    place_y(p, c->at[i].y), ink);
    fprintf(f, "<text x=\"%d\" y=\"%zu\" text-anchor=\"end\" fill=\"%s\">", WIDTH - RIGHT, (size_t)20 + 16 * index, ink);
    write_escaped(f, c->label);
    fprintf(f, "</text>\n");
}

static bool write_svg(const picture *p, const char *path, const char *field)
{
    FILE *f = fopen(path, "w");
    if (!f) {
        perror(path);
        return false;
    }
    fprintf(f, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
               "font-family=\"sans-serif\" font-size=\"12\">\n", WIDTH, HEIGHT, WIDTH, HEIGHT);
    draw_axes(f, p, field);
    for (size_t c = 0, shown = 0; c < p->count; c++)
        if (p->curves[c].count) draw_curve(f, p, &p->curves[c], shown++);
    fprintf(f, "</svg>\n");
    if (fclose(f) == 0) return true;
    perror(path);
    return false;
}

/* The first curve as 10 rows of letters. */
static void print_text(const picture *p, const char *field)
{
    enum { COLUMNS = 72, ROWS = 10 };
    char grid[ROWS][COLUMNS + 1];
    const curve *c = &p->curves[0];
    memset(grid, ' ', sizeof grid);
    for (int r = 0; r < ROWS; r++) grid[r][COLUMNS] = 0;
    for (size_t i = 0; i < c->count; i++) {
        if (!isfinite(c->at[i].y) || (p->logarithmic && c->at[i].y <= 0.0)) continue;
        double across = (c->at[i].x - p->x0) / (p->x1 - p->x0) * (COLUMNS - 1);
        double down = (place_y(p, c->at[i].y) - TOP) / (HEIGHT - TOP - BOTTOM) * (ROWS - 1);
        int row = (int)(down + 0.5), column = (int)(across + 0.5);
        if (row >= 0 && row < ROWS && column >= 0 && column < COLUMNS) grid[row][column] = '*';
    }
    printf("%s\n", field);
    for (int r = 0; r < ROWS; r++) {
        if (r == 0 || r == ROWS - 1) printf("%9.3g |%s\n", r == 0 ? p->y1 : p->y0, grid[r]);
        else printf("%9s |%s\n", "", grid[r]);
    }
    printf("%9s +", "");
    for (int i = 0; i < COLUMNS; i++) putchar('-');
    printf("\n%11s%-10.0f%*.0f updates\n", "", p->x0, COLUMNS - 10, p->x1);
}

int plot_command(int argc, char **argv)
{
    const char *out = NULL, *field = "loss";
    int64_t half = -1;
    bool text = false, linear = false, json = false;
    const option_entry entries[] = {
        { "out", OPTION_TEXT, &out, "FILE", "the SVG to write (default: the first log's name + .svg)" },
        { "field", OPTION_TEXT, &field, "NAME", "loss (default), gradient_norm, rate, frames_per_second, exact_accuracy" },
        { "smooth", OPTION_INT, &half, "N", "mean over 2N+1 updates (default: 1/100 of the run)" },
        { "linear", OPTION_FLAG, &linear, NULL, "linear instead of logarithmic height" },
        { "text", OPTION_FLAG, &text, NULL, "print the first curve in letters instead" },
        { "json", OPTION_FLAG, &json, NULL, "print one JSON object" },
        { NULL, 0, NULL, NULL, NULL },
    };
    const option_command command = { "plot [OPTIONS] LOG...", "Draws the logs that exphil train --log wrote.", entries };
    int count, status;
    if (!options_read(&command, argc, argv, &count, &status)) return status;
    if (count == 0 || count > CURVES_MOST / 2) {
        fprintf(stderr, "exphil: plot wants 1 to %d logs; see exphil plot --help\n", CURVES_MOST / 2);
        return 2;
    }
    static picture p;
    char name[4096];
    bool fine = true;
    p.logarithmic = !linear;
    for (int i = 1; fine && i <= count; i++) fine = read_log(&p, argv[i], field);
    for (size_t c = 0; c < p.count; c += 2) smooth(&p.curves[c], half >= 0 ? (size_t)half : p.curves[c].count / 200);
    if (fine && !fit(&p)) {
        fprintf(stderr, "exphil: no %s in these logs\n", field);
        fine = false;
    }
    snprintf(name, sizeof name, "%s.svg", argv[1]);
    if (fine && text) print_text(&p, field);
    else if (fine) fine = write_svg(&p, out ? out : name, field);
    if (fine && !text && json) print_json(json_pack("{s:s}", "svg", out ? out : name));
    else if (fine && !text) printf("%s\n", out ? out : name);
    for (size_t c = 0; c < p.count; c++) free(p.curves[c].at);
    return fine ? 0 : 1;
}
