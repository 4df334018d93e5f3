/* `exphil bench host`: what the processor itself does in a step of players on a GPU, without one. The session is that of a device
 * with memory of its own, which records steps and makes its own noise; the device does nothing and answers at once. So there
 * is time for checking and staging of inputs, checking of what came back, queues and random streams, and none for launches,
 * copies and the net. What a card writes to the host's memory is not in the cache of a core as the zeros are that lie here. */
#include "bench.h"
#include "platform.h"
#include "say.h"

#include "device/device.h"
#include "model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- a device that does nothing ------------------------------------------------------------------------------ */

static exphil_status idle_alloc(xph_device *device, size_t bytes, void **address)
{
    (void)device;
    *address = bench_aligned(64, bytes + !bytes);
    return *address ? EXPHIL_OK : EXPHIL_E_MEMORY;
}
static void idle_free(xph_device *device, void *address, size_t bytes)
{
    (void)device, (void)bytes;
    bench_aligned_free(address);
}
static exphil_status idle_stream(xph_device *device, uint32_t flags, xph_stream **stream)
{
    static xph_stream one;
    (void)flags;
    one.device = device;
    *stream = &one;
    return EXPHIL_OK;
}
static void idle_end(xph_stream *stream)
{
    (void)stream;
}
static exphil_status idle_move(xph_stream *stream, void *to, const void *from, size_t bytes)
{
    (void)stream, (void)to, (void)from, (void)bytes;
    return EXPHIL_OK;
}
static exphil_status idle_zero(xph_stream *stream, void *to, size_t bytes)
{
    (void)stream, (void)to, (void)bytes;
    return EXPHIL_OK;
}
static exphil_status idle_stand(xph_stream *stream)
{
    (void)stream;
    return EXPHIL_OK;
}
static exphil_status idle_recorded(xph_stream *stream, xph_graph **graph)
{
    *graph = (xph_graph *)(void *)stream;
    return EXPHIL_OK;
}
static exphil_status idle_replay(xph_stream *stream, xph_graph *graph)
{
    (void)stream, (void)graph;
    return EXPHIL_OK;
}
static void idle_forget(xph_graph *graph)
{
    (void)graph;
}
static exphil_status idle_query(xph_device *device, xph_op op, void *args, xph_op_info *info)
{
    static const char kernel;
    (void)device, (void)args;
    *info = (xph_op_info){
        .kernel = (const xph_kernel *)(const void *)&kernel, .name = "idle", .draws = op == XPH_OP_SAMPLE};
    return EXPHIL_OK;
}
static exphil_status idle_run(xph_stream *stream, const xph_kernel *kernel, const void *args)
{
    (void)stream, (void)kernel, (void)args;
    return EXPHIL_OK;
}
static const xph_backend idle = {.struct_size = sizeof idle,
                                 .abi = XPH_BACKEND_ABI,
                                 .name = "idle",
                                 .alloc = idle_alloc,
                                 .free = idle_free,
                                 .host_alloc = idle_alloc,
                                 .host_free = idle_free,
                                 .stream_create = idle_stream,
                                 .stream_destroy = idle_end,
                                 .upload = idle_move,
                                 .download = idle_move,
                                 .copy = idle_move,
                                 .zero = idle_zero,
                                 .stream_wait = idle_stand,
                                 .record_begin = idle_stand,
                                 .record_end = idle_recorded,
                                 .replay = idle_replay,
                                 .graph_destroy = idle_forget,
                                 .query = idle_query,
                                 .run = idle_run};

/* ---- players -------------------------------------------------------------------------------------------------- */

typedef struct crowd {
    exphil_session *session;
    float *floats;
    int32_t *ids, *actions;
    bool failed;
} crowd;

static void step(void *arg, int64_t calls)
{
    crowd *c = arg;
    for (int64_t i = 0; i < calls; i++)
        if (exphil_session_step_row(c->session, c->floats, c->ids, NULL, c->actions) < 0) c->failed = true;
}

static bool measure(bench_report *report, const bench_options *options, const exphil_model *model,
                    int64_t players)
{
    const xph_model_shape *shape = xph_model_shape_of(model);
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    crowd c = {.failed = false};
    bench_row row = {.items = (double)players, .item = "frame"};
    bench_effort effort = bench_effort_of(options);
    const size_t mark = bench_memory_mark();
    snprintf(row.subject, sizeof row.subject, "the host's work of a step on a GPU");
    snprintf(row.what, sizeof row.what, "mamba 256 x 2, %d player%s", (int)players, players > 1 ? "s" : "");
    if (!bench_wanted(options, row.subject, row.what)) return true;
    config.streams = players;
    if (exphil_session_create(model, &config, &c.session, &error) < 0)
        return bench_say(row.what, error.message), false;
    c.floats = bench_floats((size_t)(players * shape->floats), 1.0f);
    c.ids = bench_memory((size_t)(players * shape->ids) * sizeof *c.ids);
    c.actions = bench_memory((size_t)(players * shape->heads) * sizeof *c.actions);
    bench_work work = {.run = step, .arg = &c, .calls = players < 256 ? 0 : 1};
    const bool good = bench_measure(&work, 1, &effort) && !c.failed;
    if (!good) bench_say(row.what, "a step failed");
    row.time = bench_stats_of(&work);
    if (players == 256) {
        row.bar_ns = 20e3;
        snprintf(row.bar, sizeof row.bar, "20 us");
    }
    bench_report_row(report, &row);
    bench_work_free(&work);
    exphil_session_destroy(c.session);
    bench_memory_release(mark);
    return good;
}

/* As `exphil bench step` has it. */
static exphil_status make_model(exphil_context *context, exphil_model **model, exphil_error *error)
{
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    exphil_spec spec = EXPHIL_SPEC_INIT;
    exphil_status status = exphil_melee_spec("exphil288", NULL, &spec, error);
    config.spec = &spec;
    config.blocks = "mamba*2";
    config.hidden = 256;
    config.seed = 1;
    return status < 0 ? status : exphil_model_create(context, &config, model, error);
}

bool bench_host(bench_report *report, const bench_options *options)
{
    static const int64_t players[] = {1, 16, 256};
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_context *context = NULL;
    exphil_model *model = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    config.threads = 1;
    config.cpu_isa = options->isa;
    exphil_status status = exphil_context_create(&config, &context, &error);
    if (status >= 0) status = make_model(context, &model, &error);
    if (status < 0) bench_say("host", error.message);
    bool good = status >= 0;
    if (good) {
        xph_device *device = xph_context_backend(context);
        const xph_backend *own = device->backend;
        device->backend = &idle;
        for (size_t i = 0; good && i < sizeof players / sizeof *players; i++)
            good = measure(report, options, model, players[i]);
        device->backend = own; /* whose the model's memory is */
    }
    exphil_model_destroy(model);
    exphil_context_destroy(context);
    return good;
}
