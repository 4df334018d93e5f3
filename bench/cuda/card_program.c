#include "card_program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

card_options card_options_of(int count, char **words)
{
    card_options o = {.device = "cuda:0"};
    for (int i = 1; i < count; i++) {
        const char **to = strcmp(words[i], "--device") == 0    ? &o.device
                          : strcmp(words[i], "--backend") == 0 ? &o.backend
                                                               : NULL;
        if (to && i + 1 < count) {
            *to = words[++i];
        } else if (strcmp(words[i], "--smoke") == 0) {
            o.smoke = true;
        } else if (strcmp(words[i], "--json") == 0) {
            o.json = true;
        } else if (words[i][0] == '-') {
            fprintf(stderr, "%s: unknown option %s\n", program_invocation_short_name, words[i]);
            exit(2);
        } else {
            o.words = words + i;
            o.count = count - i;
            break;
        }
    }
    return o;
}

bool card_asked_for(const card_options *o, const char *word)
{
    for (int i = 0; i < o->count; i++)
        if (strcmp(o->words[i], word) == 0) return true;
    return o->count == 0;
}

static void say(void *user, exphil_log_level level, const char *message)
{
    (void)user, (void)level;
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, message);
}

exphil_context *card_open(const card_options *o, int32_t threads)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_context *context = NULL;
    static bool opened;
    config.device = o->device;
    config.backend_path = o->backend;
    config.threads = threads;
    config.log = say;
    config.log_level = EXPHIL_LOG_INFO;
    const exphil_status status = exphil_context_create(&config, &context, &error);
    if (status < 0 && !opened) {
        printf("SKIPPED: %s\n", error.message);
        exit(CARD_ASIDE);
    }
    card_must("device", status, &error);
    opened = true;
    return context;
}

void card_must(const char *what, exphil_status status, const exphil_error *error)
{
    if (status >= 0) return;
    fprintf(stderr, "%s: %s: %s%s%s\n", program_invocation_short_name, what, exphil_status_name(status),
            error ? ": " : "", error ? error->message : "");
    exit(1);
}

void card_row(const card_options *o, json_t *row)
{
    if (o->json) {
        json_dumpf(row, stdout, JSON_COMPACT | JSON_REAL_PRECISION(8));
        putchar('\n');
    }
    fflush(stdout);
    json_decref(row);
}

double card_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double card_median(double *sample, int64_t count)
{
    qsort(sample, (size_t)count, sizeof *sample, ascending);
    return sample[count / 2];
}
