/* Rows of measurements as text and JSON: see report.h. */
#include "report.h"
#include "say.h"
#include "system.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

bool bench_report_begin(bench_report *report, const char *subject, bool quiet, const bench_place *place)
{
    *report = (bench_report){.quiet = quiet};
    report->rows = json_array();
    report->root = json_pack("{s:s,s:i,s:o,s:o,s:{},s:[]}", "bench", subject, "format", 1, "machine",
                             bench_machine(place), "rows", report->rows, "facts", "notes");
    return report->root != NULL;
}

void bench_report_floors(bench_report *report, const bench_floors *floors)
{
    json_object_set_new(report->root, "floors", bench_floors_json(floors));
    if (!report->quiet) bench_floors_print(floors);
}

/* ---- text ---------------------------------------------------------------------------------------------- */

static const char *in_units(char text[24], double ns)
{
    if (ns < 10)
        snprintf(text, 24, "%.3f ns", ns);
    else if (ns < 1000)
        snprintf(text, 24, "%.1f ns", ns);
    else if (ns < 1e6)
        snprintf(text, 24, ns < 1e4 ? "%.3f us" : "%.2f us", ns / 1e3);
    else if (ns < 1e9)
        snprintf(text, 24, "%.3f ms", ns / 1e6);
    else
        snprintf(text, 24, "%.3f s", ns / 1e9);
    return text;
}

/* Items per second; per item where one takes longer than it is worth to count per second. */
static void rate_text(char text[32], const bench_row *row)
{
    static const char *const scale[] = {"", "k", "M", "G", "T"};
    text[0] = '\0';
    if (!row->item || row->items <= 0 || row->time.p50 <= 0) return;
    if (strcmp(row->item, "element") == 0) {
        snprintf(text, 32, "%.4f ns/elem", row->time.p50 / row->items);
        return;
    }
    double rate = row->items / row->time.p50 * 1e9;
    int s = 0;
    while (rate >= 1000 && s < 4) {
        rate /= 1000;
        s++;
    }
    const char *item = strcmp(row->item, "flop") == 0   ? "FLOP"
                       : strcmp(row->item, "byte") == 0 ? "B"
                                                        : row->item;
    snprintf(text, 32, "%.1f %s%s%s/s", rate, scale[s], strlen(item) > 4 ? " " : "", item);
}

/* A tail of fewer samples says nothing. */
enum { TAIL_SAMPLES = 100 };

static bool tail_met(const bench_row *row)
{
    return row->time.p999 <= row->bar_tail * row->time.p50;
}

static void print_row(bench_report *report, const bench_row *row)
{
    char middle[24], low[24], high[24], tail[24], rate[32], share[64] = "", bar[160] = "";
    if (strcmp(report->last, row->subject) != 0) {
        printf("%s\n", row->subject);
        snprintf(report->last, sizeof report->last, "%s", row->subject);
    }
    rate_text(rate, row);
    if (row->floor_ns > 0)
        snprintf(share, sizeof share, "%5.1f %% of %s", 100 * row->floor_ns / row->time.p50, row->floor_of);
    if (row->bar_ns > 0)
        snprintf(bar, sizeof bar, "  <= %s: %s", row->bar, row->time.p50 <= row->bar_ns ? "met" : "MISSED");
    bool tailed = row->time.samples >= TAIL_SAMPLES;
    if (row->bar_tail > 0 && row->time.p50 > 0 && tailed)
        snprintf(bar + strlen(bar), sizeof bar - strlen(bar), "  p99.9 <= %g x: %.1f, %s", row->bar_tail,
                 row->time.p999 / row->time.p50, tail_met(row) ? "met" : "MISSED");
    if (row->floor_tail > 0 && tailed)
        snprintf(bar + strlen(bar), sizeof bar - strlen(bar), " (floor's %.1f)", row->floor_tail);
    printf("  %-34s %-24s %11s [%s .. %s] p99.9 %s  %s  %s%s\n", row->what, row->how,
           in_units(middle, row->time.p50), in_units(low, row->time.p25), in_units(high, row->time.p75),
           tailed ? in_units(tail, row->time.p999) : "-", rate, share, bar);
    fflush(stdout);
}

/* ---- JSON ---------------------------------------------------------------------------------------------- */

/* Seven digits are more than a clock knows. */
static json_t *number(double value)
{
    if (value == 0 || !isfinite(value)) return json_real(0);
    double scale = pow(10, 6 - floor(log10(fabs(value))));
    return json_real(round(value * scale) / scale);
}

static json_t *row_json(const bench_row *row)
{
    const bench_stats *t = &row->time;
    json_t *json =
        json_pack("{s:s,s:s,s:s,s:I,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "subject", row->subject, "what", row->what,
                  "how", row->how, "samples", (json_int_t)t->samples, "least_ns", number(t->least), "p25_ns",
                  number(t->p25), "p50_ns", number(t->p50), "p75_ns", number(t->p75), "p99_ns",
                  number(t->p99), "p999_ns", number(t->p999), "most_ns", number(t->most));
    if (!json) return NULL;
    if (row->item && row->items > 0) {
        json_object_set_new(json, "item", json_string(row->item));
        json_object_set_new(json, "items", number(row->items));
    }
    if (row->floor_ns > 0) {
        json_object_set_new(json, "floor_ns", number(row->floor_ns));
        json_object_set_new(json, "floor_of", json_string(row->floor_of));
        json_object_set_new(json, "share_of_floor", number(row->floor_ns / t->p50));
    }
    if (row->bar_ns > 0) {
        json_object_set_new(json, "bar_ns", number(row->bar_ns));
        json_object_set_new(json, "bar", json_string(row->bar));
        json_object_set_new(json, "met", json_boolean(t->p50 <= row->bar_ns));
    }
    if (row->bar_tail > 0 && t->samples >= TAIL_SAMPLES) {
        if (row->floor_tail > 0) json_object_set_new(json, "floor_tail", number(row->floor_tail));
        json_object_set_new(json, "tail", number(t->p999 / t->p50));
        json_object_set_new(json, "tail_bar", number(row->bar_tail));
        json_object_set_new(json, "tail_met", json_boolean(tail_met(row)));
    }
    return json;
}

void bench_report_row(bench_report *report, const bench_row *row)
{
    if (row->time.samples == 0) return;
    report->count++;
    if (row->bar_ns > 0) {
        report->met += row->time.p50 <= row->bar_ns;
        report->missed += row->time.p50 > row->bar_ns;
    }
    if (row->bar_tail > 0 && row->time.samples >= TAIL_SAMPLES) {
        report->met += tail_met(row);
        report->missed += !tail_met(row);
    }
    json_array_append_new(report->rows, row_json(row));
    if (!report->quiet) print_row(report, row);
}

void bench_report_fact(bench_report *report, const char *name, double value, const char *unit)
{
    json_object_set_new(json_object_get(report->root, "facts"), name,
                        json_pack("{s:o,s:s}", "value", number(value), "unit", unit));
    if (!report->quiet) {
        printf("  %-59s %11.5g %s\n", name, value, unit);
        fflush(stdout);
    }
}

void bench_report_note(bench_report *report, const char *text)
{
    json_array_append_new(json_object_get(report->root, "notes"), json_string(text));
    bench_say(NULL, text);
}

bool bench_write_json(const json_t *root, const char *path, size_t flags)
{
    FILE *file = system_open(path, "w");
    bool fine = file && json_dumpf(root, file, flags) == 0;
    if (file && fclose(file) != 0) fine = false;
    return fine;
}
