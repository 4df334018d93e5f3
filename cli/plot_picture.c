/* Pictures of curves as SVG. */
#include "plot.h"

#include "commands.h"
#include "runs.h"
#include "system.h"

#include <math.h>
#include <string.h>

/* ---- SVG ----------------------------------------------------------------------------------------------- */

/* Where things stand: the legend above the curves, as high as it must be. */
typedef struct sheet {
    const picture *p;
    FILE *f;
    bool in_page;
    double width, height, left, right, top, bottom;
} sheet;

enum { ROW = 18, SLOT = 166, HELD_WIDTH = 2 };

/* One a run; in a page .r0, .r1, ... may have others in the dark. */
static const char *const inks[LOGS_MOST] = {"#1f6fb4", "#d1495b", "#2e933c", "#8d5fd3",
                                            "#c77700", "#178f8f", "#7a4b26", "#5b6770"};
static const char *const dashes[BASELINES] = {"2 4", "8 4"};

static double place_x(const sheet *s, double x)
{
    return s->left + (x - s->p->x0) / (s->p->x1 - s->p->x0) * (s->width - s->left - s->right);
}

static double place_y(const sheet *s, double y)
{
    return s->height - s->bottom - plot_height(s->p, y) * (s->height - s->top - s->bottom);
}

/* What the numbers are in, behind the name of the field. */
static const char *unit_word(const char *field)
{
    static const char *const words[][2] = {{"frames_per_second", ""},
                                           {"value_loss", ""},
                                           {"nll", ", nats a frame"},
                                           {"loss", ", nats"},
                                           {"waited_ns", ", nanoseconds"}};
    size_t length = strlen(field);
    if (field_is_share(field)) return ", share of frames";
    if (strncmp(field, "heads/", 6) == 0 && !strchr(field + 6, '/')) return ", loss in nats";
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t bytes = strlen(words[i][0]);
        if (length >= bytes && strcmp(field + length - bytes, words[i][0]) == 0) return words[i][1];
    }
    return "";
}

void write_escaped(FILE *f, const char *text)
{
    json_t *valid = json_string(text);
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        if (*text == '<')
            fputs("&lt;", f);
        else if (*text == '>')
            fputs("&gt;", f);
        else if (*text == '&')
            fputs("&amp;", f);
        else if (*text == '"')
            fputs("&quot;", f);
        else if (byte < 0x20 || byte == 0x7f || (byte >= 0x80 && !valid))
            fputc('?', f);
        else
            fputc(*text, f);
    }
    json_decref(valid);
}

static size_t logs_of(const picture *p)
{
    return p->count / LOG_KINDS;
}

/* Is it the same of all logs? */
static bool shared(const picture *p, int b)
{
    const baseline *first = &p->baselines[0][b];
    for (size_t i = 1; i < logs_of(p); i++) {
        const baseline *other = &p->baselines[i][b];
        if (!first->word != !other->word || first->value < other->value || first->value > other->value)
            return false;
    }
    return true;
}

static const char *word_of(const picture *p, int b)
{
    for (size_t i = 0; i < logs_of(p); i++)
        if (p->baselines[i][b].word) return p->baselines[i][b].word;
    return NULL;
}

static bool any_of(const picture *p, int kind)
{
    for (size_t c = (size_t)kind; c < p->count; c += LOG_KINDS)
        if (p->curves[c].count) return true;
    return false;
}

static void draw_axes(const sheet *s)
{
    const picture *p = s->p;
    ticks t;
    double foot = s->height - s->bottom, middle = (s->width - s->right + s->left) / 2;
    if (p->logarithmic)
        ticks_logarithmic(&t, p->y0, p->y1, POWERS);
    else
        ticks_linear(&t, p->y0, p->y1, 0.0, HEIGHTS + 2, field_is_share(p->field));
    for (int i = 0; i < t.count; i++) {
        double at = place_y(s, t.at[i]);
        fprintf(s->f,
                "<line x1=\"%g\" x2=\"%g\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"currentColor\" "
                "stroke-opacity=\"0.15\"/>\n",
                s->left, s->width - s->right, at, at);
        fprintf(s->f, "<text class=\"y\" x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", s->left - 8,
                at + 4, t.text[i]);
    }
    fprintf(s->f,
            "<line x1=\"%g\" x2=\"%g\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"currentColor\" "
            "stroke-opacity=\"0.5\"/>\n",
            s->left, s->width - s->right, foot, foot);
    ticks_linear(&t, p->x0, p->x1, 1.0, s->in_page ? 4 : 6, false);
    for (int i = 0; i < t.count; i++) {
        double at = place_x(s, t.at[i]);
        fprintf(s->f,
                "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"currentColor\" "
                "stroke-opacity=\"0.5\"/>\n",
                at, at, foot, foot + 4);
        fprintf(s->f, "<text class=\"x\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n", at,
                foot + 22, t.text[i]);
    }
    fprintf(s->f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">update</text>\n", middle,
            s->height - 8);
}

/* ---- the legend ---------------------------------------------------------------------------------------- */

/* How curves are drawn: entry by entry, as many beside each other as there is room for. */
typedef struct key {
    const sheet *s;
    int count;
    bool draw;
} key;

typedef struct key_look {
    const char *dash, *width, *opacity;
    bool line, dot, own; /* own: in the ink of the run, where there is one */
} key_look;

static void add_key(key *k, const char *text, key_look as)
{
    const sheet *s = k->s;
    bool own = as.own && logs_of(s->p) == 1;
    const char *ink = own ? inks[0] : "currentColor";
    int each = (int)((s->width - s->left - s->right) / SLOT);
    int row = 1 + k->count / each;
    double x = s->left + (k->count % each) * SLOT, y = 20 + ROW * row;
    k->count++;
    if (!k->draw) return;
    if (as.line)
        fprintf(s->f,
                "<line%s x1=\"%g\" x2=\"%g\" y1=\"%g\" y2=\"%g\" stroke=\"%s\" stroke-width=\"%s\" "
                "stroke-opacity=\"%s\"%s%s%s/>\n",
                own ? " class=\"r0\"" : "", x, x + 24, y - 4, y - 4, ink, as.width, as.opacity,
                as.dash ? " stroke-dasharray=\"" : "", as.dash ? as.dash : "", as.dash ? "\"" : "");
    if (as.dot)
        fprintf(s->f, "<circle%s cx=\"%g\" cy=\"%g\" r=\"3\" fill=\"%s\" stroke=\"%s\"/>\n",
                !own      ? ""
                : as.line ? " class=\"d0\""
                          : " class=\"r0\"",
                x + 12, y - 4, as.line ? ink : "none", ink);
    fprintf(s->f, "<text class=\"key\" x=\"%g\" y=\"%g\">%s</text>\n", x + 30, y, text);
}

/* Beside held-out scores training is drawn fainter. */
static const char *faint(bool beside)
{
    return beside ? "0.55" : "1";
}

/* Rows that the keys take; one curve alone needs none. */
static int draw_keys(const sheet *s, bool draw)
{
    const picture *p = s->p;
    key k = {.s = s, .draw = draw};
    char text[64], number[24];
    bool train = any_of(p, LOG_TRAIN), held = any_of(p, LOG_HELD), scored = any_of(p, LOG_SCORED);
    if (train + held + scored == 1 && !word_of(p, 0) && !word_of(p, 1)) return 0;
    if (train)
        add_key(
            &k, "training",
            (key_look){.width = "1.2", .opacity = faint(held && logs_of(p) == 1), .line = true, .own = true});
    if (held)
        add_key(&k, "held out",
                (key_look){.width = "2", .opacity = "1", .line = true, .dot = true, .own = true});
    if (scored) add_key(&k, "training data", (key_look){.dot = true, .own = true});
    for (int b = 0; b < BASELINES; b++) {
        if (!word_of(p, b)) continue;
        number_text(p->baselines[0][b].value, field_is_share(p->field), number);
        bool one = shared(p, b);
        (void)snprintf(text, sizeof text, "%.20s%s%s", word_of(p, b), one ? " " : "", one ? number : "");
        add_key(&k, text, (key_look){.dash = dashes[b], .width = "1.2", .opacity = "1", .line = true});
    }
    int each = (int)((s->width - s->left - s->right) / SLOT);
    return (k.count + each - 1) / each;
}

/* The end of a long name tells more than its beginning. */
static void write_name(const sheet *s, size_t log, double width)
{
    const char *name = s->p->names[log];
    size_t room = (size_t)(width / 7.5), length = strlen(name);
    const char *shown = length > room ? name + length - room + 3 : name;
    while (shown > name && (*shown & 0xc0) == 0x80) shown++; /* not inside a letter */
    if (shown > name) fprintf(s->f, "...");
    write_escaped(s->f, shown);
}

static void draw_name(const sheet *s, size_t log, double y)
{
    fprintf(s->f, "<line x1=\"%g\" x2=\"%g\" y1=\"%g\" y2=\"%g\" stroke=\"%s\" stroke-width=\"2\"/>\n",
            s->left, s->left + 24, y - 4, y - 4, inks[log]);
    fprintf(s->f, "<text class=\"name\" x=\"%g\" y=\"%g\">", s->left + 30, y);
    write_name(s, log, s->width - s->left - s->right - 30);
    fprintf(s->f, "</text>\n");
}

/* Names of several runs have a line each. */
static size_t name_rows(const sheet *s)
{
    return s->in_page || logs_of(s->p) < 2 ? 0 : logs_of(s->p);
}

static void draw_legend(const sheet *s)
{
    int rows = draw_keys(s, true);
    fprintf(s->f, "<text class=\"title\" x=\"%g\" y=\"18\"><tspan font-weight=\"bold\">",
            s->in_page ? 0 : s->left);
    write_escaped(s->f, s->p->title ? s->p->title : s->p->field);
    fprintf(s->f, "%s%s</tspan>", unit_word(s->p->field), plot_manner(s->p));
    if (!s->in_page && logs_of(s->p) == 1) {
        fprintf(s->f, "<tspan dx=\"12\">");
        write_name(s, 0, (s->width - s->left - s->right) / 2);
        fprintf(s->f, "</tspan>");
    }
    fprintf(s->f, "</text>\n");
    for (size_t i = 0; i < name_rows(s); i++) draw_name(s, i, 20 + ROW * (1 + rows + (int)i));
}

/* ---- curves -------------------------------------------------------------------------------------------- */

static void draw_line(const sheet *s, const log_series *c, size_t log, const char *width, const char *opacity)
{
    fprintf(s->f,
            "<polyline class=\"r%zu\" fill=\"none\" stroke=\"%s\" stroke-width=\"%s\" stroke-opacity=\"%s\" "
            "stroke-linejoin=\"round\" points=\"",
            log, inks[log], width, opacity);
    for (size_t i = 0; i < c->count; i++)
        if (plot_drawn(s->p, c->at[i].y))
            fprintf(s->f, "%.1f,%.1f ", place_x(s, c->at[i].x), place_y(s, c->at[i].y));
    fprintf(s->f, "\"/>\n");
}

static void draw_dots(const sheet *s, const log_series *c, size_t log, bool filled)
{
    for (size_t i = 0; i < c->count; i++)
        if (plot_drawn(s->p, c->at[i].y))
            fprintf(s->f,
                    "<circle class=\"%s%zu\" cx=\"%.1f\" cy=\"%.1f\" r=\"%s\" fill=\"%s\" stroke=\"%s\"/>\n",
                    filled ? "d" : "r", log, place_x(s, c->at[i].x), place_y(s, c->at[i].y),
                    c->count > 60 ? "1.5" : "3", filled ? inks[log] : "none", inks[log]);
}

static void draw_run(const sheet *s, size_t log)
{
    const log_series *train = &s->p->curves[log * LOG_KINDS + LOG_TRAIN], *held = train + LOG_HELD,
                     *scored = train + LOG_SCORED;
    if (train->count) draw_line(s, train, log, "1.2", faint(held->count > 0));
    if (train->count == 1) draw_dots(s, train, log, true);
    if (held->count) draw_line(s, held, log, "2", "1");
    draw_dots(s, held, log, true);
    draw_dots(s, scored, log, false);
}

/* Of several logs with one value of it, one line in no run's ink. */
static void draw_baselines(const sheet *s)
{
    const picture *p = s->p;
    size_t logs = logs_of(p);
    for (int b = 0; b < BASELINES; b++)
        for (size_t i = 0; i < (shared(p, b) ? 1 : logs); i++) {
            const baseline *of = &p->baselines[i][b];
            if (!of->word || !plot_drawn(p, of->value)) continue;
            bool own = !shared(p, b);
            double at = place_y(s, of->value);
            fprintf(s->f,
                    "<line class=\"%s%zu\" x1=\"%g\" x2=\"%g\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
                    "stroke-width=\"1.2\" stroke-dasharray=\"%s\"/>\n",
                    own ? "r" : "base", own ? i : (size_t)b, s->left, s->width - s->right, at, at,
                    own ? inks[i] : "currentColor", dashes[b]);
        }
}

void plot_draw(const picture *p, FILE *file, bool in_page)
{
    sheet s = {.p = p,
               .f = file,
               .in_page = in_page,
               .width = in_page ? 480 : 900,
               .left = in_page ? 64 : 84,
               .right = 24,
               .bottom = 50};
    s.top = 20 + ROW * (draw_keys(&s, false) + (double)name_rows(&s)) + 18;
    s.height = s.top + (in_page ? 220 : 380) + s.bottom;
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" viewBox=\"0 0 %g %g\" "
            "font-family=\"sans-serif\" font-size=\"12\" fill=\"currentColor\"%s>\n",
            s.width, s.height, s.width, s.height, in_page ? " role=\"img\"" : " color=\"#222\"");
    if (!in_page) fprintf(file, "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n");
    draw_legend(&s);
    draw_axes(&s);
    draw_baselines(&s);
    for (size_t i = 0; i < logs_of(p); i++) draw_run(&s, i);
    fprintf(file, "</svg>\n");
}

bool plot_svg(const picture *p, const char *path)
{
    FILE *f = system_open(path, "w");
    if (!f) return complain_of_file(path);
    plot_draw(p, f, false);
    bool fine = !ferror(f);
    if (fclose(f) == 0 && fine) return true;
    return complain_of_file(path);
}
