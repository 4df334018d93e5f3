/* The page itself: what stands where, and how it looks in light and dark. */
#include "report.h"

#include "commands.h"
#include "files.h"
#include "notes.h"
#include "plot.h"
#include "system.h"

#include <exphil/exphil.h>

#include <string.h>

static const char style[] =
    ":root{color-scheme:light dark;--ink:#222;--back:#fff;--faint:#667;--line:#ddd;--bar:#1f6fb4;--w:5.2em}\n"
    "body{margin:0 auto;padding:16px;max-width:1040px;color:var(--ink);background:var(--back);"
    "font:15px/1.45 system-ui,sans-serif;overflow-wrap:anywhere}\n"
    "h1{font-size:22px;margin:0 0 4px}h2{font-size:17px;margin:28px 0 6px}h3{font-size:15px;margin:16px 0 "
    "4px}\n"
    "p{margin:4px 0 8px;max-width:75ch}.faint{color:var(--faint)}\n"
    "dl{columns:3 19em;column-gap:40px;margin:8px 0}\n"
    "dl div{display:flex;justify-content:space-between;gap:16px;break-inside:avoid;border-bottom:1px solid "
    "var(--line)}\n"
    "dt{color:var(--faint);flex:none;max-width:60%}dd{margin:0;text-align:right;min-width:0}\n"
    ".figures{display:flex;flex-wrap:wrap;gap:16px 24px}figure{margin:0;flex:0 1 auto;min-width:0}\n"
    ".curves{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,400px),1fr))}.curves "
    "svg{width:100%}\n"
    ".o{white-space:nowrap}\n"
    "figcaption{font-size:12px;font-weight:bold;max-width:320px}svg{display:block;max-width:100%;height:auto}"
    "\n"
    ".wide{overflow-x:auto;max-width:100%}table{border-collapse:collapse;margin:4px 0}\n"
    "th,td{padding:3px 10px 5px 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line);"
    "overflow-wrap:normal}\n"
    "th{font-weight:600;white-space:nowrap}.n{text-align:right}td.n{text-align:right;white-space:nowrap;"
    "font-variant-numeric:tabular-nums}\n"
    "th.n{white-space:normal;vertical-align:bottom;width:var(--w)}\n"
    "td.s{background:linear-gradient(var(--bar),var(--bar)) 0 100%/calc(var(--s)*var(--w)) 3px "
    "no-repeat;min-width:var(--w)}\n"
    ".verdict{border-left:4px solid var(--bar);padding-left:12px;margin:8px 0}\n"
    "ol{padding-left:1.6em;columns:2 26em;column-gap:40px}li{break-inside:avoid;margin:0 0 10px}\n"
    "@media(max-width:600px){body{padding:10px}:root{--w:3.2em}table{font-size:11.5px}th,td{padding-right:"
    "5px}}\n"
    "details{margin:8px 0}summary{cursor:pointer}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e4e6ea;--back:#15171b;--faint:#9aa2ad;--line:#33373e;"
    "--bar:#5fa8e6}\n"
    "line.r0,polyline.r0,circle.r0{stroke:#5fa8e6}.d0{fill:#5fa8e6;stroke:#5fa8e6}"
    "rect.c0{fill:#5fa8e6}rect.c1{fill:#ee7b8b}}\n"
    "@media print{body{max-width:none}details{display:none}}\n";

/* Text in which no line breaks at the dashes of an option, nor before a percent sign. */
static void write_text(FILE *f, const char *text)
{
    enum { WORD_MOST = 40 }; /* what is longer, a path say, may break */
    char word[512];
    while (*text) {
        size_t length = strcspn(text, " ");
        bool whole = length < WORD_MOST;
        (void)snprintf(word, sizeof word, "%.*s", (int)length, text);
        bool option = whole && strstr(word, "--");
        if (option) fprintf(f, "<span class=\"o\">");
        write_escaped(f, word);
        if (option) fprintf(f, "</span>");
        text += length < sizeof word ? length : sizeof word - 1;
        if (*text != ' ') continue;
        fputs(text[1] == '%' ? "&nbsp;" : " ", f);
        text++;
    }
}

void report_title(FILE *f, int level, const char *title, const char *about)
{
    fprintf(f, "<h%d>", level);
    write_escaped(f, title);
    fprintf(f, "</h%d>\n", level);
    if (!about) return;
    fprintf(f, "<p class=\"faint\">");
    write_text(f, about);
    fprintf(f, "</p>\n");
}

/* ---- a run --------------------------------------------------------------------------------------------- */

static void write_verdict(FILE *f, json_t *verdict)
{
    static const char *const texts[] = {"figure", "advice"};
    const char *name = json_string_value(json_object_get(verdict, "name")), *text;
    if (!name) return;
    report_title(f, 2, "Verdict", NULL);
    fprintf(f, "<p class=\"verdict\"><b>");
    write_escaped(f, name);
    fprintf(f, ".</b>");
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        text = json_string_value(json_object_get(verdict, texts[i]));
        if (!text || !text[0]) continue;
        fputc(' ', f);
        write_text(f, text);
    }
    fprintf(f, "</p>\n");
}

/* The last line of a log that is whole is the score of the training data. */
static void add_ended(json_t *facts, const report_parts *parts)
{
    const run *of = parts->run;
    json_int_t patience = json_integer_value(json_object_get(of->options, "patience"));
    char text[160] = "not yet, or it was stopped; --resume goes on";
    if (!(of->planned > of->updates) || !of->log) return;
    if (json_object_get(parts->lines, "train_set") && patience > 0)
        (void)snprintf(text, sizeof text, "by --patience %lld: so many scores without a gain", patience);
    json_object_set_new(facts, "ended", json_string(text));
}

/* OUT.best.safetensors before the suffix of OUT, as exphil train calls it. */
static void add_best_weights(json_t *facts, const char *out)
{
    static const char suffix[] = ".safetensors";
    size_t length = strlen(out), cut = name_ends(out, suffix) ? length - strlen(suffix) : length;
    char path[8192];
    (void)snprintf(path, sizeof path, "%.*s.best.safetensors", (int)cut, out);
    if (system_there(path)) json_object_set_new(facts, "best_weights", path_json(path));
}

static json_t *run_facts(const report_parts *parts)
{
    const run *of = parts->run;
    json_t *facts = json_object();
    if (of->started[0])
        json_object_set_new(facts, of->record ? "started" : "log of", json_string(of->started));
    json_object_set_new(facts, "updates", json_integer((json_int_t)of->updates));
    if (of->planned > 0.0) json_object_set_new(facts, "of_planned", json_integer((json_int_t)of->planned));
    if (of->speed > 0.0) json_object_set_new(facts, "frames_per_second", json_integer((json_int_t)of->speed));
    if (of->scored) {
        char best[64], last[64];
        (void)snprintf(best, sizeof best, "best_held-out_%s", parts->by);
        (void)snprintf(last, sizeof last, "last_held-out_%s", parts->by);
        json_object_set_new(facts, best, json_real(of->best));
        json_object_set_new(facts, "after_update", json_integer((json_int_t)of->best_update));
        json_object_set_new(facts, last, json_real(of->last));
    }
    add_ended(facts, parts);
    if (of->record) add_best_weights(facts, of->name);
    if (of->record) json_object_set(facts, "version", json_object_get(of->record, "version"));
    if (of->record) json_object_set(facts, "data", json_object_get(of->record, "files"));
    return facts;
}

static void write_run(FILE *f, const report_parts *parts)
{
    json_t *facts = run_facts(parts);
    if (parts->weights) json_object_update(facts, parts->weights);
    report_facts(f, facts);
    json_decref(facts);
}

/* ---- scores -------------------------------------------------------------------------------------------- */

/* A fact with a name that people read. */
static void move(json_t *facts, const char *name, json_t *scores, const char *field)
{
    json_t *value = json_object_get(scores, field);
    if (json_is_number(value) || json_is_boolean(value)) json_object_set(facts, name, value);
}

static void write_score_facts(FILE *f, json_t *scores)
{
    static const char *const names[][2] = {{"update", "after update"},
                                           {"frames", "frames"},
                                           {"change_frames", "on which the input changes"},
                                           {"nll", "nll, nats a frame"},
                                           {"frequency_nll", "freq nll"},
                                           {"alone_nll", "nll alone"},
                                           {"loss", "training loss"},
                                           {"unexplained", "value, unexplained"},
                                           {"value_loss", "value, squared error"},
                                           {"beats_baselines", "better than both baselines"}};
    json_t *facts = json_object();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) move(facts, names[i][1], scores, names[i][0]);
    report_facts(f, facts);
    json_decref(facts);
}

/* All parts of the input right: the policy, and what no skill has. */
static void write_exact(FILE *f, json_t *scores)
{
    static const report_column columns[] = {{"policy", REPORT_SHARE, "policy"},
                                            {"alone", REPORT_SHARE, "alone"},
                                            {"majority", REPORT_SHARE, "majority"},
                                            {"copy", REPORT_SHARE, "copy"}};
    static const char *const of[2][4] = {
        {"exact_accuracy", "alone_accuracy", "exact_majority", "exact_copy"},
        {"exact_change_accuracy", "alone_change_accuracy", "exact_majority_change", ""}};
    json_t *rows = json_object();
    for (int i = 0; i < 2; i++) {
        json_t *row = json_object();
        for (int c = 0; c < 4; c++) move(row, columns[c].name, scores, of[i][c]);
        if (json_object_size(row)) json_object_set(rows, i ? "on changes" : "all parts right", row);
        json_decref(row);
    }
    report_table(f, rows, columns, sizeof columns / sizeof columns[0]);
    json_decref(rows);
}

/* A part that never changes has no accuracy on changes. */
static json_t *heads_of(json_t *scores)
{
    json_t *heads = json_deep_copy(json_object_get(scores, "heads")), *head;
    const char *name;
    json_object_foreach(heads, name, head) if (json_number_value(json_object_get(head, "copy_accuracy")) >=
                                               1.0) json_object_del(head, "change_accuracy");
    return heads;
}

/* A line of scores of the log, or what exphil eval printed. */
static void write_scores(FILE *f, const char *title, const char *about, json_t *scores)
{
    static const report_column columns[] = {{"accuracy", REPORT_SHARE, "policy"},
                                            {"top3", REPORT_SHARE, "in its top 3"},
                                            {"change_accuracy", REPORT_SHARE, "on changes"},
                                            {"majority_accuracy", REPORT_SHARE, "majority"},
                                            {"copy_accuracy", REPORT_SHARE, "copy"},
                                            {"nll", REPORT_NUMBER, "nll"},
                                            {"frequency_nll", REPORT_NUMBER, "freq nll"}};
    if (!json_is_number(json_object_get(scores, "frames"))) return;
    json_t *heads = heads_of(scores);
    report_title(f, 2, title, about);
    write_score_facts(f, scores);
    write_exact(f, scores);
    report_table(f, heads, columns, sizeof columns / sizeof columns[0]);
    json_decref(heads);
}

static void write_examination(FILE *f, const report_parts *parts)
{
    json_t *line = json_object_get(parts->lines, "examination"), *of = parts->eval ? parts->examined : line;
    const char *word = json_string_value(json_object_get(of, "of")),
               *data = parts->eval                              ? "what exphil eval was given"
                       : word && strcmp(word, "train_set") == 0 ? "the training data"
                                                                : "what was held out";
    char about[128];
    (void)snprintf(about, sizeof about, "%lld frames of %s, each with the recorded past before it.",
                   json_integer_value(json_object_get(json_object_get(of, "examination"), "frames")), data);
    report_examination(f, json_object_get(of, "examination"), json_object_get(of, "mistakes"), about);
}

/* ---- the page ------------------------------------------------------------------------------------------ */

static void write_options(FILE *f, const run *of)
{
    static const char *const facts[] = {"version", "started", "files", "defaults", "chosen"};
    if (!of->record) return;
    json_t *asked = json_copy(of->record);
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) json_object_del(asked, facts[i]);
    report_title(f, 2, "Options", NULL);
    report_facts(f, asked);
    fprintf(f, "<details><summary>all that were not asked for</summary>\n");
    report_facts(f, json_object_get(of->record, "defaults"));
    fprintf(f, "</details>\n");
    json_decref(asked);
}

static void write_about_values(FILE *f, json_t *line)
{
    if (!json_object_get(line, "unexplained")) return;
    fprintf(f, "<p class=\"faint\">");
    write_text(f,
               "Unexplained is the part of the variance of what came that the value leaves: 0 perfect, 1 as "
               "good as the mean; believe it of held-out games. Loss in training is then the nll, weighed by "
               "what came, and the value's squared error; of held-out games it is that of imitation alone.");
    if (json_object_get(line, "effective_share"))
        write_text(f,
                   " Effective: how many frames of equal weight would tell as much as these, weighed by what "
                   "came; below 20 % --outcome-beta is too small.");
    fprintf(f, "</p>\n");
}

void report_page(FILE *f, const report_parts *parts)
{
    fprintf(f,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
            "content=\"width=device-width, initial-scale=1\">\n<title>");
    write_escaped(f, parts->run->name);
    fprintf(f, "</title>\n<style>\n%s</style>\n</head>\n<body>\n", style);
    report_title(f, 1, parts->run->name, NULL);
    fprintf(f, "<p class=\"faint\">A training run, as exphil report %s tells it.</p>\n", notes_version());
    write_run(f, parts);
    write_verdict(f, json_object_get(json_object_get(parts->lines, "examination"), "verdict"));
    if (parts->run->log) {
        report_title(
            f, 2, "Curves",
            "Thin lines are training, dots are held-out scores; dashes are what no skill has: always the "
            "commonest action (majority), always the last one again (copy). nll: minus the log of "
            "the probability that the policy gave to what was pressed, nats a frame, summed over the parts "
            "of "
            "the controller. Loss is what training makes small: the mean over a part's bits, with "
            "--smoothing, --focal and --button-weight.");
        write_about_values(f, json_object_get(parts->lines, "train"));
        (void)report_curves(f, parts->run->log);
    }
    json_t *all = json_object_get(parts->lines, "held_out_all"),
           *best = json_object_get(parts->lines, "held_out_best");
    json_object_set(best, "update", json_object_get(best, "of_update"));
    write_scores(f, "The best weights on what was held out", NULL, best);
    write_scores(f, best ? "The last weights on what was held out" : "Scores on what was held out",
                 "Shares of the frames that are right. Alone: with its own decisions as past, as in play; "
                 "majority and "
                 "copy as above. On changes: where the recorded input differs from the frame before. Freq "
                 "nll: of who knows only how often each value occurs.",
                 all ? all : json_object_get(parts->lines, "held_out"));
    write_scores(f, "Scores on the training data", NULL, json_object_get(parts->lines, "train_set"));
    if (parts->eval) write_scores(f, "Scores on other data", "What exphil eval was given.", parts->examined);
    write_examination(f, parts);
    write_options(f, parts->run);
    fprintf(f, "</body>\n</html>\n");
}
