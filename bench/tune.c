/* `exphil bench tune --device D --choices FILE`: the products of an update, as `exphil bench train --device D` makes it, and of
 * steps of its models, each timed with every algorithm that the device's library of products offers; the fastest go into FILE,
 * which runs take that are told to by EXPHIL_CUBLASLT_CHOICES=FILE. */
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

static bool ask_for(const bench_options *options, const bench_workload *w)
{
    static const int64_t players[] = {1, 16, 256};
    bench_trainer t;
    size_t mark = bench_memory_mark();
    bool good = bench_trainer_make(&t, w, 1, options);
    if (good) {
        bench_trainer_update(&t, UPDATES);
        good = !t.failed && exphil_trainer_wait(t.trainer, NULL, NULL) >= 0;
        for (int i = 0; good && i < (options->quick ? 1 : 3); i++) good = step_of(&t, players[i]);
        bench_trainer_end(&t);
    }
    bench_memory_release(mark);
    return good;
}

static void note(void *report, const char *line)
{
    bench_report_note(report, line);
}

static bool tune(bench_report *report, const bench_options *options, exphil_context *context)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    xph_device *device = xph_context_backend(context);
    for (int i = 0; i < BENCH_ROOFLINES; i++) {
        bench_workload w = bench_roofline_workload(options, i);
        if (bench_wanted(options, "update", w.name) && !ask_for(options, &w)) return false;
    }
    if (!device->backend->tune) {
        bench_say(options->device, "this device has no library to choose from");
        return false;
    }
    if (device->backend->tune(device, options->choices, note, report, &error) >= 0) return true;
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
