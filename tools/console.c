/* What the commands say to people and programs: errors, progress, reports. */
#include "commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int complain(const char *what, const exphil_error *error)
{
    fprintf(stderr, "exphil: %s: %s: %s\n", what, exphil_status_name(error->status), error->message);
    return 1;
}

void print_json(json_t *object)
{
    char *text = object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(12)) : NULL;
    if (text) printf("%s\n", text);
    free(text);
    json_decref(object);
}

/* ---- progress --------------------------------------------------------------------------------------------------- */

void progress_begin(progress *bar, int64_t start, int64_t total, bool quiet)
{
    *bar = (progress){ .terminal = isatty(2) == 1, .quiet = quiet, .began_ns = now_ns(), .total = total, .start = start };
}

static void time_text(char *text, size_t size, double seconds)
{
    long whole = (long)(seconds + 0.5);
    if (whole >= 3600) snprintf(text, size, "%ldh%02ldm", whole / 3600, whole / 60 % 60);
    else if (whole >= 60) snprintf(text, size, "%ldm%02lds", whole / 60, whole % 60);
    else snprintf(text, size, "%lds", whole);
}

void progress_show(progress *bar, int64_t done, double loss, double frames_per_second, bool last)
{
    int64_t now = now_ns(), pause = bar->terminal ? 100000000 : 5000000000;
    if (bar->quiet || (!last && now - bar->shown_ns < pause)) return;
    bar->shown_ns = now;
    char left[32], picture[25];
    double part = bar->total ? (double)done / (double)bar->total : 1.0, spent = (double)(now - bar->began_ns) * 1e-9;
    int64_t here = done - bar->start;
    time_text(left, sizeof left, here > 0 ? spent / (double)here * (double)(bar->total - done) : 0.0);
    int filled = (int)(part * 24.0);
    for (int i = 0; i < 24; i++) picture[i] = i < filled ? '#' : '.';
    picture[24] = 0;
    if (bar->terminal)
        fprintf(stderr, "\r[%s] %3.0f%%  update %" PRId64 "/%" PRId64 "  loss %.5f  %.0f frames/s  %s left\x1b[K%s", picture,
                100.0 * part, done, bar->total, loss, frames_per_second, left, last ? "\n" : "");
    else
        fprintf(stderr, "update %" PRId64 "/%" PRId64 "  loss %.5f  %.0f frames/s  %s left\n", done, bar->total, loss,
                frames_per_second, left);
    fflush(stderr);
}

/* ---- reports ------------------------------------------------------------------------------------------------------ */

json_t *report_json(const exphil_report *report, const exphil_spec *spec)
{
    json_t *heads = json_object();
    for (int64_t i = 0; i < report->heads; i++) {
        const exphil_head_report *head = &report->head[i];
        json_object_set_new(heads, spec->heads[i].name,
                            json_pack("{s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f}", "loss", head->loss, "nll", head->nll, "accuracy",
                                      head->accuracy, "top3", head->top3, "change_accuracy", head->change_accuracy,
                                      "majority_accuracy", head->majority_accuracy, "copy_accuracy",
                                      head->copy_accuracy, "frequency_nll", head->frequency_nll));
    }
    return json_pack("{s:I,s:I,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:o}", "frames", (json_int_t)report->frames,
                     "change_frames", (json_int_t)report->change_frames, "loss", report->loss, "nll", report->nll,
                     "frequency_nll", report->frequency_nll, "exact_accuracy", report->exact_accuracy,
                     "exact_change_accuracy", report->exact_change_accuracy, "exact_majority", report->exact_majority,
                     "exact_majority_change", report->exact_majority_change, "exact_copy", report->exact_copy, "heads",
                     heads);
}

void print_report(const exphil_report *report, const exphil_spec *spec)
{
    printf("frames %" PRId64 ", of which %" PRId64 " change the input\n", report->frames, report->change_frames);
    printf("%-22s %10s %10s %10s\n", "", "policy", "majority", "copy");
    printf("%-22s %9.3f%% %9.3f%% %9.3f%%\n", "exact, all heads", 100 * report->exact_accuracy,
           100 * report->exact_majority, 100 * report->exact_copy);
    printf("%-22s %9.3f%% %9.3f%% %9.3f%%\n", "exact, change frames", 100 * report->exact_change_accuracy,
           100 * report->exact_majority_change, 0.0);
    printf("%-22s %10.5f  (frequencies alone %.5f)\n", "nll, nats per frame", report->nll, report->frequency_nll);
    printf("%-22s %10.5f\n\n", "training objective", report->loss);
    printf("%-12s %9s %9s %9s %9s %9s %9s %9s\n", "head", "accuracy", "top 3", "change", "majority", "copy", "nll",
           "freq nll");
    for (int64_t i = 0; i < report->heads; i++) {
        const exphil_head_report *head = &report->head[i];
        printf("%-12s %8.2f%% %8.2f%% %8.2f%% %8.2f%% %8.2f%% %9.5f %9.5f\n", spec->heads[i].name, 100 * head->accuracy,
               100 * head->top3, 100 * head->change_accuracy, 100 * head->majority_accuracy, 100 * head->copy_accuracy,
               head->nll, head->frequency_nll);
    }
}
