/* What the commands print for people and programs: errors, progress, reports. */
#include "commands.h"
#include "stop.h"
#include "system.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t now_ns(void)
{
    return system_clock_ns();
}

static uint64_t allowed; /* by --memory-limit; 0: all */

void complain_of_limit(uint64_t bytes)
{
    allowed = bytes;
}

int complain(const char *what, const exphil_error *error)
{
    const char *status = exphil_status_name(error->status);
    if (error->status == EXPHIL_E_CANCELLED) return stop_status();
    if (strstr(error->message, what))
        fprintf(stderr, "exphil: %s: %s\n", status, error->message);
    else
        fprintf(stderr, "exphil: %s: %s: %s\n", what, status, error->message);
    if (error->status == EXPHIL_E_MEMORY && allowed)
        fprintf(stderr, "exphil: --memory-limit allows %" PRIu64 " bytes\n", allowed);
    return 1;
}

const char *error_reason(const exphil_error *error, const char *path)
{
    const char *text = error->message;
    size_t length = strlen(path), quoted = text[0] == '"';
    if (quoted && length + 8 > sizeof error->message)
        return exphil_status_name(error->status); /* no room for it */
    if (strncmp(text + quoted, path, length) != 0) return text;
    const char *behind = text + quoted + length;
    if (*behind != (quoted ? '"' : ':')) return text; /* a file in this folder, or one whose name begins so */
    return behind + 1 + strspn(behind + 1, ": ");
}

int print_json(json_t *object)
{
    char *text = object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(12)) : NULL;
    if (text)
        printf("%s\n", text);
    else
        fprintf(stderr, "exphil: --json: the result cannot be written as JSON\n");
    int status = text ? 0 : 1;
    free(text);
    json_decref(object);
    return status;
}

const char *plural(int64_t number)
{
    return number == 1 ? "" : "s";
}

bool complain_of_file(const char *path)
{
    fprintf(stderr, "exphil: %s: %s\n", path, strerror(errno));
    return false;
}

json_t *path_json(const char *path)
{
    json_t *text = json_string(path);
    return text ? text : json_null();
}

/* ---- progress --------------------------------------------------------------------------------------------------- */

void progress_begin(progress *bar, int64_t start, int64_t total, bool quiet)
{
    *bar = (progress){.terminal = system_terminal(stderr),
                      .quiet = quiet,
                      .began_ns = now_ns(),
                      .total = total,
                      .start = start};
}

static void time_text(char *text, size_t size, double seconds)
{
    long whole = (long)(seconds + 0.5);
    if (whole >= 3600)
        snprintf(text, size, "%ldh%02ldm", whole / 3600, whole / 60 % 60);
    else if (whole >= 60)
        snprintf(text, size, "%ldm%02lds", whole / 60, whole % 60);
    else
        snprintf(text, size, "%lds", whole);
}

/* Is it time to show something again? */
static bool progress_due(progress *bar, bool last)
{
    int64_t now = now_ns(), pause = bar->terminal ? 100000000 : 5000000000;
    if (!bar->terminal && pause < (now - bar->began_ns) / 5)
        pause = (now - bar->began_ns) / 5; /* a page, however long */
    if (bar->quiet || (!last && now - bar->shown_ns < pause)) return false;
    bar->shown_ns = now;
    return true;
}

/* How long the rest takes. */
static void progress_left(const progress *bar, int64_t done, char *text, size_t size)
{
    double spent = (double)(bar->shown_ns - bar->began_ns) * 1e-9;
    int64_t here = done - bar->start;
    time_text(text, size, here > 0 ? spent / (double)here * (double)(bar->total - done) : 0.0);
}

static void progress_picture(const progress *bar, int64_t done, char picture[25], double *part)
{
    *part = bar->total ? (double)done / (double)bar->total : 1.0;
    int filled = (int)(*part * 24.0);
    for (int i = 0; i < 24; i++) picture[i] = i < filled ? '#' : '.';
    picture[24] = 0;
}

void progress_show(progress *bar, int64_t done, double loss, const char *held_out, double frames_per_second,
                   bool last)
{
    char left[32], picture[25];
    double part;
    if (!progress_due(bar, last)) return;
    progress_left(bar, done, left, sizeof left);
    progress_picture(bar, done, picture, &part);
    if (bar->terminal)
        fprintf(stderr,
                "\r[%s] %3.0f%%  update %" PRId64 "/%" PRId64 "  loss %.5f%s  %.0f frames/s  %s left\x1b[K%s",
                picture, 100.0 * part, done, bar->total, loss, held_out, frames_per_second, left,
                last ? "\n" : "");
    else
        fprintf(stderr, "update %" PRId64 "/%" PRId64 "  loss %.5f%s  %.0f frames/s  %s left\n", done,
                bar->total, loss, held_out, frames_per_second, left);
    fflush(stderr);
}

void progress_count(progress *bar, int64_t done, const char *what, const char *text, bool last)
{
    char left[32], picture[25];
    double part;
    if (!progress_due(bar, last)) return;
    progress_left(bar, done, left, sizeof left);
    progress_picture(bar, done, picture, &part);
    if (bar->terminal)
        fprintf(stderr, "\r[%s] %3.0f%%  %" PRId64 "/%" PRId64 " %s  %s  %s left\x1b[K%s", picture,
                100.0 * part, done, bar->total, what, text, left, last ? "\n" : "");
    else
        fprintf(stderr, "%" PRId64 "/%" PRId64 " %s  %s  %s left\n", done, bar->total, what, text, left);
    fflush(stderr);
}

void progress_clear(const progress *bar)
{
    if (bar->terminal && !bar->quiet && bar->shown_ns != bar->began_ns) fprintf(stderr, "\r\x1b[K");
}

/* ---- reports ------------------------------------------------------------------------------------------- */

static double baseline(const exphil_report *report)
{
    return report->exact_copy > report->exact_majority ? report->exact_copy : report->exact_majority;
}

static json_t *head_json(const exphil_head_report *head)
{
    return json_pack("{s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f}", "loss", head->loss, "nll", head->nll, "accuracy",
                     head->accuracy, "top3", head->top3, "change_accuracy", head->change_accuracy,
                     "majority_accuracy", head->majority_accuracy, "copy_accuracy", head->copy_accuracy,
                     "frequency_nll", head->frequency_nll);
}

/* Absent when it was not measured. */
static void add_alone(json_t *object, const exphil_report *report)
{
    if (report->alone_frames == 0) return;
    json_object_set_new(object, "alone_frames", json_integer((json_int_t)report->alone_frames));
    json_object_set_new(object, "alone_change_frames", json_integer((json_int_t)report->alone_change_frames));
    json_object_set_new(object, "alone_nll", json_real(report->alone_nll));
    json_object_set_new(object, "alone_accuracy", json_real(report->alone_accuracy));
    json_object_set_new(object, "alone_change_accuracy", json_real(report->alone_change_accuracy));
}

/* Likewise. */
static void add_value(json_t *object, const exphil_report *report)
{
    if (report->value_frames == 0) return;
    json_object_set_new(object, "value_frames", json_integer((json_int_t)report->value_frames));
    json_object_set_new(object, "value_loss", json_real(report->value_loss));
    json_object_set_new(object, "unexplained", json_real(report->unexplained));
}

json_t *report_json(const exphil_report *report, const exphil_spec *spec)
{
    json_t *heads = json_object();
    for (int64_t i = 0; i < report->heads; i++)
        json_object_set_new(heads, spec->heads[i].name, head_json(&report->head[i]));
    json_t *object = json_pack(
        "{s:I,s:I,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:b,s:o}", "frames", (json_int_t)report->frames,
        "change_frames", (json_int_t)report->change_frames, "loss", report->loss, "nll", report->nll,
        "frequency_nll", report->frequency_nll, "exact_accuracy", report->exact_accuracy,
        "exact_change_accuracy", report->exact_change_accuracy, "exact_majority", report->exact_majority,
        "exact_majority_change", report->exact_majority_change, "exact_copy", report->exact_copy,
        "beats_baselines", report->exact_accuracy > baseline(report), "heads", heads);
    add_alone(object, report);
    add_value(object, report);
    return object;
}

/* A share of no frames is no number: "-". */
static void print_share(double share, bool any, int digits)
{
    if (any)
        printf(" %*.*f%%", digits == 3 ? 9 : 8, digits, 100.0 * share);
    else
        printf(" %*s", digits == 3 ? 10 : 9, "-");
}

/* A line of the table of whole actions. */
typedef struct exact_line {
    const char *what;
    double policy, alone, majority, copy;
    bool any, any_alone; /* frames */
} exact_line;

static void print_exact(const exact_line *line)
{
    printf("%-22s", line->what);
    print_share(line->policy, line->any, 3);
    print_share(line->alone, line->any_alone, 3);
    print_share(line->majority, line->any, 3);
    print_share(line->copy, line->any, 3);
    printf("\n");
}

/* A head whose copy baseline is always right never changes. */
static void print_head(const char *name, const exphil_head_report *head)
{
    printf("%-12s", name);
    print_share(head->accuracy, true, 2);
    print_share(head->top3, true, 2);
    print_share(head->change_accuracy, head->copy_accuracy < 1.0, 2);
    print_share(head->majority_accuracy, true, 2);
    print_share(head->copy_accuracy, true, 2);
    printf(" %9.5f %9.5f\n", head->nll, head->frequency_nll);
}

/* Bytes of the character here that a terminal would obey: controls (C0, DEL, C1) and marks that turn the direction of writing
 * (U+200E, F, U+202A to E, U+2066 to 9). 0: none. */
static size_t obeyed(const unsigned char *at)
{
    if (at[0] < 0x20 || at[0] == 0x7f) return 1;
    if (at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0) return 2;
    if (at[0] != 0xe2) return 0;
    bool mark = (at[1] == 0x80 && (at[2] == 0x8e || at[2] == 0x8f || (at[2] >= 0xaa && at[2] <= 0xae))) ||
                (at[1] == 0x81 && at[2] >= 0xa6 && at[2] <= 0xa9);
    return mark ? 3 : 0;
}

void foreign_text(const char *text, char *to, size_t size)
{
    size_t used = 0;
    for (size_t bytes; *text && used + 1 < size; text += bytes) {
        bytes = obeyed((const unsigned char *)text);
        to[used++] = *text;
        if (bytes)
            to[used - 1] = '?';
        else
            bytes = 1;
    }
    to[used] = 0;
}

void print_paragraph(const char *format, ...)
{
    char text[1024], *word = text;
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    for (int column = 0; *word;) {
        int length = (int)strcspn(word, " ");
        bool next = column > 0 && column + 1 + length > 100;
        printf("%s%.*s", column == 0 ? "" : next ? "\n" : " ", length, word);
        column = next || column == 0 ? length : column + 1 + length;
        word += length + (word[length] == ' ');
    }
    putchar('\n');
}

/* Beside the teacher-forced figures; without past actions they are the same. */
static exphil_report with_alone(const exphil_report *report, int64_t slots)
{
    exphil_report full = *report;
    if (slots > 0) return full;
    full.alone_frames = report->frames;
    full.alone_change_frames = report->change_frames;
    full.alone_accuracy = report->exact_accuracy;
    full.alone_change_accuracy = report->exact_change_accuracy;
    full.alone_nll = report->nll;
    return full;
}

static void print_whole(const exphil_report *r)
{
    const exact_line all = {"exact, all heads", r->exact_accuracy, r->alone_accuracy,  r->exact_majority,
                            r->exact_copy,      r->frames > 0,     r->alone_frames > 0},
                     change = {"exact, change frames",
                               r->exact_change_accuracy,
                               r->alone_change_accuracy,
                               r->exact_majority_change,
                               0.0,
                               r->change_frames > 0,
                               r->alone_change_frames > 0};
    printf("%-22s %10s %10s %10s %10s\n", "", "policy", "alone", "majority", "copy");
    print_exact(&all);
    print_exact(&change);
    printf("%-22s %10.5f", "nll, nats per frame", r->nll);
    if (r->alone_frames > 0)
        printf(" %10.5f", r->alone_nll);
    else
        printf(" %10s", "-");
    printf("  (by frequencies %.5f)\n%-22s %10.5f\n", r->frequency_nll, "training objective", r->loss);
    if (r->value_frames)
        printf("%-22s %10.5f  of the variance of what came, on %" PRId64 " frames\n", "value, unexplained",
               r->unexplained, r->value_frames);
}

void print_report(const exphil_report *report, const exphil_spec *spec, int64_t slots)
{
    exphil_report full = with_alone(report, slots);
    printf("frames %" PRId64 ", of which %" PRId64 " change the input\n", report->frames,
           report->change_frames);
    print_whole(&full);
    if (slots == 0)
        printf("alone it is the same: past actions are no inputs\n");
    else if (report->alone_frames > 0)
        printf("alone: with its own decisions as past actions, as in play, on %" PRId64 " frames\n",
               report->alone_frames);
    printf("\n%-12s %9s %9s %9s %9s %9s %9s %9s\n", "head", "accuracy", "top 3", "change", "majority", "copy",
           "nll", "freq nll");
    for (int64_t i = 0; i < report->heads; i++) print_head(spec->heads[i].name, &report->head[i]);
}

/* Tenths of microseconds, rounded up: what was measured lies below. */
static double at_most_us(int64_t ns)
{
    int64_t tenths = (ns + 99) / 100;
    return (double)tenths / 10.0;
}

void print_latency(const exphil_session_info *info)
{
    printf("latency of a step: p50 <= %.1f us, p99 <= %.1f us", at_most_us(info->p50_ns),
           at_most_us(info->p99_ns));
}

/* ---- comparisons --------------------------------------------------------------------------------------- */

const char *weights_word(int32_t type)
{
    static const char *const words[] = {"f32", "f64", "bf16", "int8"};
    return type >= 0 && type < 4 ? words[type] : "?";
}

json_t *comparison_json(const exphil_comparison *c, const exphil_spec *spec)
{
    char reference[20], data[20];
    json_t *heads = json_object();
    snprintf(reference, sizeof reference, "%016" PRIx64, c->reference_hash);
    snprintf(data, sizeof data, "%016" PRIx64, c->content_hash);
    for (int64_t i = 0; i < c->heads; i++) {
        const exphil_head_comparison *h = &c->head[i];
        json_object_set_new(heads, spec->heads[i].name,
                            json_pack("{s:f,s:f,s:f,s:f}", "max_error", h->max_error, "rms_error",
                                      h->rms_error, "kl", h->kl, "agreement", h->agreement));
    }
    return json_pack("{s:s,s:s,s:I,s:f,s:f,s:f,s:f,s:o}", "reference", reference, "data", data, "frames",
                     (json_int_t)c->frames, "max_error", c->max_error, "rms_error", c->rms_error, "kl", c->kl,
                     "agreement", c->agreement, "heads", heads);
}

static void print_distance(const char *name, double agreement, double max_error, double rms_error, double kl)
{
    printf("%-12s %9.3f%% %10.5f %10.5f %10.6f\n", name, 100.0 * agreement, max_error, rms_error, kl);
}

void print_comparison(const exphil_comparison *c, const exphil_spec *spec)
{
    printf("against weights %016" PRIx64 " on %" PRId64 " frames (data %016" PRIx64 ")\n", c->reference_hash,
           c->frames, c->content_hash);
    printf("%-12s %10s %10s %10s %10s\n", "head", "agreement", "max error", "rms error", "kl, nats");
    for (int64_t i = 0; i < c->heads; i++)
        print_distance(spec->heads[i].name, c->head[i].agreement, c->head[i].max_error, c->head[i].rms_error,
                       c->head[i].kl);
    print_distance("all", c->agreement, c->max_error, c->rms_error, c->kl);
}
