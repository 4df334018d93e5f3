/* The page itself: what stands where, and how it looks in light and dark. */
#include "report.h"

#include "plot.h"

#include <exphil/exphil.h>

#include <string.h>

static const char style[] =
    ":root{color-scheme:light dark;--ink:#222;--back:#fff;--faint:#667;--line:#ddd;--bar:#1f6fb4}\n"
    "body{margin:0 auto;padding:16px;max-width:1040px;color:var(--ink);background:var(--back);"
    "font:15px/1.45 system-ui,sans-serif;overflow-wrap:anywhere}\n"
    "h1{font-size:22px;margin:0 0 4px}h2{font-size:17px;margin:28px 0 6px}h3{font-size:15px;margin:16px 0 "
    "4px}\n"
    "p{margin:4px 0 8px;max-width:75ch}.faint{color:var(--faint)}\n"
    "dl{columns:3 19em;column-gap:40px;margin:8px 0}\n"
    "dl div{display:flex;justify-content:space-between;gap:16px;break-inside:avoid;border-bottom:1px solid "
    "var(--line)}\n"
    "dt{color:var(--faint);flex:none;max-width:60%}dd{margin:0;text-align:right;min-width:0}\n"
    ".figures{display:flex;flex-wrap:wrap;gap:16px}figure{margin:0;flex:0 1 480px;min-width:0}\n"
    "svg{display:block;max-width:100%;height:auto}\n"
    ".wide{overflow-x:auto;max-width:100%}table{border-collapse:collapse;margin:4px 0}\n"
    "th,td{padding:3px 10px 5px 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line);"
    "overflow-wrap:normal}\n"
    "th{font-weight:600;white-space:nowrap}.n{text-align:right}td.n{text-align:right;white-space:nowrap;"
    "font-variant-numeric:tabular-nums}\n"
    "td.s{background:linear-gradient(var(--bar),var(--bar)) 0 100%/calc(var(--s)*.92) 3px "
    "no-repeat;min-width:5em}\n"
    ".verdict{border-left:4px solid var(--bar);padding-left:12px;margin:8px 0}\n"
    "details{margin:8px 0}summary{cursor:pointer}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e4e6ea;--back:#15171b;--faint:#9aa2ad;--line:#33373e;"
    "--bar:#5fa8e6}\n"
    "line.r0,polyline.r0,circle.r0{stroke:#5fa8e6}.d0{fill:#5fa8e6;stroke:#5fa8e6}"
    "rect.c0{fill:#5fa8e6}rect.c1{fill:#ee7b8b}}\n"
    "@media print{body{max-width:none}details{display:none}}\n";

/* What members of an examination are, in the order of the page; others follow with their own names. */
static const struct {
    const char *name, *title, *about;
} known[] = {
    {"buttons", "How often buttons are pressed",
     "Shares of frames; a button that is recorded and that the policy never presses was not learnt."},
    {"press_rates", "How often buttons are pressed",
     "Shares of frames; a button that is recorded and that the policy never presses was not learnt."},
    {"entropy", "How sure the policy is", "Entropy of its distributions, in nats: 0 is certain."},
    {"calibration", "Calibration",
     "Right as often as it is sure: then the dots lie on the diagonal. Below it the policy is too sure. "
     "Larger dots "
     "stand for more frames."},
    {"confusion", "What is taken for what",
     "Each row is what was recorded, each column what the policy takes; the diagonal is right. Stronger "
     "colours are "
     "larger shares of the row."},
    {"heads", "Heads", "Shares of frames on which each part of the controller is right."},
    {"characters", "Characters", NULL},
    {"stages", "Stages", NULL},
    {"phases", "Phases of a game", NULL},
    {"mistakes", "Frames that cost most", "What was recorded there, and what the policy would have pressed."},
};
enum { KNOWN = sizeof known / sizeof known[0] };

static void write_title(FILE *f, int level, const char *title, const char *about)
{
    fprintf(f, "<h%d>", level);
    write_escaped(f, title);
    fprintf(f, "</h%d>\n", level);
    if (about) fprintf(f, "<p class=\"faint\">%s</p>\n", about);
}

/* ---- an examination ------------------------------------------------------------------------------------ */

/* Counts and labels of one head; of several, by their names. */
static bool write_confusion(FILE *f, json_t *value)
{
    const char *name;
    json_t *one;
    json_t *counts = json_object_get(value, "counts");
    bool any = counts && report_confusion(f, counts, json_object_get(value, "labels"));
    if (counts) return any;
    json_object_foreach(value, name, one)
    {
        if (!json_is_object(one) || !json_object_get(one, "counts")) continue;
        write_title(f, 3, name, NULL);
        any = report_confusion(f, json_object_get(one, "counts"), json_object_get(one, "labels")) || any;
    }
    return any;
}

static bool write_calibration(FILE *f, json_t *value)
{
    const char *name;
    json_t *one;
    bool any = json_is_array(value) && report_calibration(f, value);
    json_object_foreach(value, name, one)
    {
        if (!json_is_array(one) || !report_are_rows(one)) continue;
        write_title(f, 3, name, NULL);
        if (!report_calibration(f, one)) report_rows(f, one);
        any = true;
    }
    return any;
}

static void write_member(FILE *f, const char *name, json_t *value)
{
    if (strcmp(name, "calibration") == 0 && write_calibration(f, value)) return;
    if (strcmp(name, "confusion") == 0 && write_confusion(f, value)) return;
    if (report_are_rows(value))
        report_rows(f, value);
    else
        report_facts(f, value);
}

static bool has_part(json_t *value)
{
    return (json_is_object(value) && json_object_size(value)) || report_are_rows(value);
}

static size_t known_as(const char *name)
{
    size_t i = 0;
    while (i < KNOWN && strcmp(known[i].name, name) != 0) i++;
    return i;
}

static void write_examined(FILE *f, json_t *examined)
{
    const char *name;
    json_t *value;
    write_title(f, 2, "Examination", NULL);
    report_facts(f, examined);
    for (size_t i = 0; i < KNOWN; i++) {
        value = json_object_get(examined, known[i].name);
        if (!has_part(value)) continue;
        write_title(f, 2, known[i].title, known[i].about);
        write_member(f, known[i].name, value);
    }
    json_object_foreach(examined, name, value)
    {
        if (!has_part(value) || known_as(name) < KNOWN || strncmp(name, "verdict", 7) == 0) continue;
        write_title(f, 2, name, NULL);
        write_member(f, name, value);
    }
}

/* ---- a run --------------------------------------------------------------------------------------------- */

/* Its texts, the first of which names it. */
static void write_sentence(FILE *f, json_t *one)
{
    const char *name, *begin = "<b>", *end = "</b> ";
    json_t *text;
    fprintf(f, "<p class=\"verdict\">");
    if (!json_is_object(one)) report_value(f, "verdict", one);
    json_object_foreach(one, name, text)
    {
        if (json_is_null(text)) continue;
        fputs(begin, f);
        if (!json_is_string(text)) fprintf(f, "%s ", name);
        report_value(f, name, text);
        fputs(end, f);
        begin = "", end = ". ";
    }
    fprintf(f, "</p>\n");
}

/* A text, or several, or objects of them. */
static void write_verdict(FILE *f, json_t *of)
{
    json_t *verdict = json_object_get(of, "verdict");
    if (!verdict) verdict = json_object_get(of, "verdicts");
    if (!verdict || json_is_null(verdict)) return;
    size_t count = json_is_array(verdict) ? json_array_size(verdict) : 1;
    if (count) write_title(f, 2, "Verdict", NULL);
    for (size_t i = 0; i < count; i++)
        write_sentence(f, json_is_array(verdict) ? json_array_get(verdict, i) : verdict);
}

static json_t *run_facts(const run *of)
{
    json_t *facts = json_object();
    if (of->started[0])
        json_object_set_new(facts, of->record ? "started" : "log of", json_string(of->started));
    json_object_set_new(facts, "updates", json_integer((json_int_t)of->updates));
    if (of->planned > 0.0) json_object_set_new(facts, "of_planned", json_integer((json_int_t)of->planned));
    if (of->speed > 0.0) json_object_set_new(facts, "frames_per_second", json_integer((json_int_t)of->speed));
    if (of->scored) {
        json_object_set_new(facts, "best_held-out_nll", json_real(of->best));
        json_object_set_new(facts, "after_update", json_integer((json_int_t)of->best_update));
        json_object_set_new(facts, "last_held-out_nll", json_real(of->last));
    }
    if (of->record) json_object_set(facts, "version", json_object_get(of->record, "version"));
    if (of->record) json_object_set(facts, "data", json_object_get(of->record, "files"));
    return facts;
}

static void write_run(FILE *f, const report_parts *parts)
{
    json_t *facts = run_facts(parts->run);
    if (parts->weights) json_object_update(facts, parts->weights);
    report_facts(f, facts);
    json_decref(facts);
}

/* The last scores in the log. */
static void write_scores(FILE *f, const char *kind, const char *title, json_t *scores)
{
    json_t *line = json_object_get(scores, kind);
    if (!line) return;
    write_title(f, 2, title, NULL);
    report_facts(f, line);
    if (report_are_rows(json_object_get(line, "heads"))) report_rows(f, json_object_get(line, "heads"));
}

static void write_options(FILE *f, const run *of)
{
    static const char *const facts[] = {"version", "started", "files", "defaults", "chosen"};
    if (!of->record) return;
    json_t *asked = json_copy(of->record);
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) json_object_del(asked, facts[i]);
    write_title(f, 2, "Options", NULL);
    report_facts(f, asked);
    fprintf(f, "<details><summary>all that were not asked for</summary>\n");
    report_facts(f, json_object_get(of->record, "defaults"));
    fprintf(f, "</details>\n");
    json_decref(asked);
}

void report_page(FILE *f, const report_parts *parts)
{
    fprintf(f,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
            "content=\"width=device-width, initial-scale=1\">\n<title>");
    write_escaped(f, parts->run->name);
    fprintf(f, "</title>\n<style>\n%s</style>\n</head>\n<body>\n", style);
    write_title(f, 1, parts->run->name, NULL);
    const char *version = exphil_version_string();
    fprintf(f, "<p class=\"faint\">A training run, as exphil report %.*s tells it.</p>\n",
            (int)strcspn(version, " "), version);
    write_run(f, parts);
    write_verdict(f, parts->examined);
    write_verdict(f, json_object_get(parts->scores, "verdict"));
    if (parts->run->log) {
        write_title(
            f, 2, "Curves",
            "Thin lines are training, dots are held-out scores; dashes are what no skill has: always the "
            "commonest action (majority), always the last one again (copy).");
        (void)report_curves(f, parts->run->log);
    }
    write_scores(f, "held_out", "Held out, at the end", parts->scores);
    write_scores(f, "train_set", "On the training data, at the end", parts->scores);
    if (parts->examined) write_examined(f, parts->examined);
    write_options(f, parts->run);
    fprintf(f, "</body>\n</html>\n");
}
