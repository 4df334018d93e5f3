/* What an examination shows, as sections of a page. */
#include "report.h"

#include <math.h>

#define COLUMNS(table) (table), sizeof(table) / sizeof((table)[0])

/* ---- heads --------------------------------------------------------------------------------------------- */

static void write_presses(FILE *f, json_t *heads)
{
    static const report_column columns[] = {{"recorded", REPORT_RATE, "recorded"},
                                            {"probability", REPORT_RATE, "policy's probability"},
                                            {"decided", REPORT_RATE, "policy's decisions"}};
    const char *name;
    json_t *head;
    json_object_foreach(heads, name, head)
    {
        json_t *bits = json_object_get(head, "bits");
        if (!json_is_object(bits) || !json_object_size(bits)) continue;
        report_title(f, 3, "How often buttons are down",
                     "Shares of the frames: as recorded, by the probability that the policy gives on "
                     "average, and by its decisions, which hold down what is likelier than not. Where "
                     "decisions are far below what was recorded, the policy hardly uses the button.");
        report_table(f, bits, COLUMNS(columns));
    }
}

static void write_sureness(FILE *f, json_t *heads)
{
    static const report_column columns[] = {{"entropy", REPORT_NUMBER, "entropy, nats"},
                                            {"calibration_error", REPORT_RATE, "calibration error"}};
    const char *name;
    json_t *head;
    if (!json_is_object(heads) || !json_object_size(heads)) return;
    report_title(f, 3, "How sure the policy is",
                 "Entropy is its doubt: 0 is none. The calibration error is how far its probabilities are "
                 "from how often it is right. In the pictures dots lie on the diagonal where it is right as "
                 "often as it is sure, and below it where it is too sure; larger dots are more frames.");
    report_table(f, heads, COLUMNS(columns));
    fprintf(f, "<div class=\"figures\">\n");
    json_object_foreach(heads, name, head) report_calibration(f, name, json_object_get(head, "bins"));
    fprintf(f, "</div>\n");
}

/* ---- groups -------------------------------------------------------------------------------------------- */

static void write_groups(FILE *f, json_t *examination)
{
    static const struct {
        const char *name, *title;
    } groups[] = {{"characters", "By its character"},
                  {"opponents", "By the opponent's character"},
                  {"stages", "By stage"},
                  {"phases", "By phase of the game"}};
    static const report_column columns[] = {{"frames", REPORT_NUMBER, "frames"},
                                            {"exact_accuracy", REPORT_SHARE, "right"},
                                            {"exact_change_accuracy", REPORT_SHARE, "right on changes"},
                                            {"nll", REPORT_NUMBER, "nll"}};
    fprintf(f, "<div class=\"figures\">\n");
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        json_t *rows = json_object_get(examination, groups[i].name);
        if (!json_is_object(rows) || !json_object_size(rows)) continue;
        fprintf(f, "<div class=\"wide\">");
        report_title(f, 3, groups[i].title, NULL);
        report_table(f, rows, COLUMNS(columns));
        fprintf(f, "</div>\n");
    }
    fprintf(f, "</div>\n");
}

/* ---- mistakes ------------------------------------------------------------------------------------------ */

/* Words, the text of this member, and what follows it; nothing where there is no text. */
static void write_text(FILE *f, const char *before, json_t *object, const char *name, const char *after)
{
    const char *text = json_string_value(json_object_get(object, name));
    if (!text || !text[0]) return;
    fputs(before, f);
    report_name(f, text);
    fputs(after, f);
}

static void write_mistake(FILE *f, json_t *mistake)
{
    json_t *frame = json_object_get(mistake, "frame"), *chance = json_object_get(mistake, "probability");
    json_int_t at = json_integer_value(frame), seconds = at > 0 ? at / 60 : 0;
    double percent = 100.0 * json_number_value(chance);
    fprintf(f, "<li>");
    if (json_is_integer(frame)) fprintf(f, "<b>%lld:%02lld</b>, frame %lld", seconds / 60, seconds % 60, at);
    write_text(f, ": ", mistake, "match", "");
    write_text(f, "<br>recorded: <b>", json_object_get(mistake, "recorded"), "text", "</b>");
    if (json_is_number(chance))
        fprintf(f, ", probability %s%.3g %%", percent < 0.001 ? "below " : "", fmax(percent, 0.001));
    write_text(f, "<br>likeliest: <b>", json_object_get(mistake, "likely"), "text", "</b>");
    write_text(f, "<br><span class=\"faint\">", mistake, "situation", "</span>");
    write_text(f, "<br><span class=\"faint\">game ", mistake, "game", "</span>");
    fprintf(f, "</li>\n");
}

static void write_mistakes(FILE *f, json_t *mistakes)
{
    json_t *mistake;
    size_t i;
    if (!json_array_size(mistakes)) return;
    report_title(f, 3, "Frames that cost most",
                 "What was recorded there, which the policy thought unlikely, and what it thought likeliest; "
                 "of each second at most one, spread over the games.");
    fprintf(f, "<ol>\n");
    json_array_foreach(mistakes, i, mistake) write_mistake(f, mistake);
    fprintf(f, "</ol>\n");
}

void report_examination(FILE *f, json_t *examination, json_t *mistakes, const char *about)
{
    json_t *heads = json_object_get(examination, "heads"),
           *stick = json_object_get(examination, "main_stick");
    if (!json_object_size(examination) && !json_array_size(mistakes)) return;
    report_title(f, 2, "Examination", about);
    write_presses(f, heads);
    write_sureness(f, heads);
    (void)report_stick(f, stick);
    write_groups(f, examination);
    write_mistakes(f, mistakes);
}
