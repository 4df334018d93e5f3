/* `exphil bench tune --device D --choices FILE`: the products of an update, as `exphil bench train --device D` makes it, and of
 * steps of its models, or of those of the policy of --weights, each timed with every algorithm that the device's library of
 * products offers; the fastest go into FILE, which runs take that are told to by EXPHIL_CUBLASLT_CHOICES=FILE. */
#include "say.h"
#include "train.h"

#include "device/device.h"

#include <stdio.h>

enum { UPDATES = 2 };

/* A session steps when it is made: its products are asked for. */
static bool step_of(const bench_trainer *t, int64_t streams)
{
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    exphil_session *session = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    config.streams = streams;
    if (exphil_session_create(t->model, &config, &session, &error) < 0) {
        bench_say("step", error.message);
        return false;
    }
    exphil_session_destroy(session);
    return true;
}

/* w NULL: the policy of a file. */
static bool ask_for(const bench_options *options, const bench_workload *w)
{
    static const int64_t players[] = {1, 16, 256};
    bench_trainer t;
    size_t mark = bench_memory_mark();
    bool good = w ? bench_trainer_make(&t, w, 1, options) : bench_trainer_load(&t, options);
    if (good) {
        bench_trainer_update(&t, UPDATES);
        good = !t.failed && exphil_trainer_wait(t.trainer, NULL, NULL) >= 0;
        for (int i = 0; good && i < (options->quick ? 1 : 3); i++) good = step_of(&t, players[i]);
        bench_trainer_end(&t);
    }
    bench_memory_release(mark);
    return good;
}

typedef struct teller {
    bench_report *report;
    int64_t lines;
} teller;

static void note(void *user, const char *line)
{
    teller *t = user;
    t->lines++;
    bench_report_note(t->report, line);
}

static void summary(const teller *t, const char *path)
{
    char line[320];
    snprintf(line, sizeof line, "%lld choice%s written to %.200s; EXPHIL_CUBLASLT_CHOICES=FILE takes them",
             (long long)t->lines, t->lines == 1 ? "" : "s", path);
    bench_report_note(t->report, line);
}

static bool tune(bench_report *report, const bench_options *options, exphil_context *context)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    xph_device *device = xph_context_backend(context);
    if (options->weights && !ask_for(options, NULL)) return false;
    for (int i = 0; !options->weights && i < BENCH_ROOFLINES; i++) {
        bench_workload w = bench_roofline_workload(options, i);
        if (bench_wanted(options, "update", w.name) && !ask_for(options, &w)) return false;
    }
    if (!device->backend->tune) {
        bench_say(options->device, "this device has no library to choose from");
        return false;
    }
    teller t = {.report = report};
    if (device->backend->tune(device, options->choices, note, &t, &error) >= 0) {
        summary(&t, options->choices);
        return true;
    }
    bench_say(options->choices, error.message);
    return false;
}

bool bench_tune(bench_report *report, const bench_options *options)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_context *context =
        NULL; /* open all the while: what was asked for is known as long as a device is open */
    exphil_error error = EXPHIL_ERROR_INIT;
    config.device = options->device;
    config.threads = 1;
    if (exphil_context_create(&config, &context, &error) < 0) {
        bench_say(options->device, error.message);
        return false;
    }
    bool good = tune(report, options, context);
    exphil_context_destroy(context);
    return good;
}
