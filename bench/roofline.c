/* `exphil bench train --device D`: updates as they are recorded on the device. With --roofline, every
 * operation of an update as it runs there among the others: its time between two events, the least bytes and
 * operations that it needs (op_work.c), and which of two bounds, both measured here, limits it: the rate of a
 * copy, or that of a large product in the same precision.
 *
 * Updates are not recorded while they are examined, so that events fit between their operations. A long piece
 * of work runs before each, so that the host is ahead of the device and no operation waits to be launched. */
#include "op_work.h"
#include "say.h"
#include "train.h"

#include "device/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS_MOST = 4096, SEEN_MOST = 256, NAMES_MOST = 64, UPDATES = 15, WARM = 3, ROUNDS = 9 };

typedef struct call {
    xph_event *begin, *end;
    op_work work;
    char kernel[64];
} call;

/* A kernel that was chosen, and for what: its address is what run is given here. */
typedef struct seen {
    xph_op op;
    const xph_kernel *kernel;
    const char *name;
} seen;

/* The device's own table lies behind the one that is put in its place: a trainer has no field for a pointer of ours. */
typedef struct looking {
    const xph_backend *real;
    xph_backend timed;
    seen seen[SEEN_MOST];
    int seen_count;
    bool on;
    call calls[CALLS_MOST];
    int count;
    void *ahead; /* memory that is cleared ahead of an update */
    size_t ahead_bytes;
} looking;
static looking look;

static exphil_status timed_query(xph_device *device, xph_op op, void *args, xph_op_info *info)
{
    XPH_TRY(look.real->query(device, op, args, info));
    int i = 0;
    while (i < look.seen_count &&
           (look.seen[i].op != op || look.seen[i].kernel != info->kernel || look.seen[i].name != info->name))
        i++;
    if (i == SEEN_MOST) return EXPHIL_E_MEMORY;
    if (i == look.seen_count) look.seen[look.seen_count++] = (seen){op, info->kernel, info->name};
    info->kernel = (const xph_kernel *)&look.seen[i];
    return EXPHIL_OK;
}

static exphil_status timed_run(xph_stream *stream, const xph_kernel *kernel, const void *args)
{
    const seen *of = (const seen *)kernel;
    if (!look.on || look.count == CALLS_MOST) return look.real->run(stream, of->kernel, args);
    call *c = &look.calls[look.count++];
    if (look.count == 1)
        for (int i = 0; i < 4; i++) XPH_TRY(look.real->zero(stream, look.ahead, look.ahead_bytes));
    if (!c->begin) XPH_TRY(look.real->event_create(stream->device, XPH_EVENT_TIMED, &c->begin));
    if (!c->end) XPH_TRY(look.real->event_create(stream->device, XPH_EVENT_TIMED, &c->end));
    snprintf(c->kernel, sizeof c->kernel, "%s", of->name);
    c->work = op_work_of(of->op, args);
    XPH_TRY(look.real->event_mark(c->begin, stream));
    const exphil_status status = look.real->run(stream, of->kernel, args);
    if (status == EXPHIL_E_UNSUPPORTED) look.count--; /* the net asks for the next candidate */
    XPH_TRY(status);
    return look.real->event_mark(c->end, stream);
}

static void look_into(exphil_context *context)
{
    xph_device *device = xph_context_backend(context);
    look.real = device->backend;
    look.timed = *device->backend;
    look.timed.query = timed_query;
    look.timed.run = timed_run;
    look.timed.record_begin = NULL;
    device->backend = &look.timed;
}

/* ---- the two bounds --------------------------------------------------------------------------------------- */

typedef struct bounds {
    double copy, product; /* bytes and operations per second */
} bounds;

/* Median seconds of work(context); 0 after a failure. */
static double seconds_of(xph_stream *stream, exphil_status (*work)(xph_stream *stream, void *arg), void *arg)
{
    const xph_backend *real = look.real;
    xph_event *begin = NULL, *end = NULL;
    double sample[ROUNDS] = {0};
    exphil_status status = real->event_create(stream->device, XPH_EVENT_TIMED, &begin);
    if (status >= 0) status = real->event_create(stream->device, XPH_EVENT_TIMED, &end);
    for (int i = 0; status >= 0 && i < ROUNDS; i++) {
        status = real->event_mark(begin, stream);
        if (status >= 0) status = work(stream, arg);
        if (status >= 0) status = real->event_mark(end, stream);
        if (status >= 0) status = real->event_wait(end);
        if (status >= 0) status = real->event_elapsed(begin, end, &sample[i]);
    }
    if (begin) real->event_destroy(begin);
    if (end) real->event_destroy(end);
    qsort(sample, ROUNDS, sizeof *sample, bench_ascending);
    return status < 0 ? 0.0 : sample[ROUNDS / 2] * 1e-9;
}

typedef struct copied {
    void *to;
    const void *from;
    size_t bytes;
} copied;

static exphil_status copy_once(xph_stream *stream, void *arg)
{
    const copied *c = arg;
    return look.real->copy(stream, c->to, c->from, c->bytes);
}

typedef struct multiplied {
    xph_linear_args args;
    xph_op_info chosen;
} multiplied;

static exphil_status multiply_once(xph_stream *stream, void *arg)
{
    multiplied *m = arg;
    exphil_status status = look.real->run(stream, m->chosen.kernel, &m->args);
    while (status == EXPHIL_E_UNSUPPORTED) {
        m->chosen.refused |= m->chosen.candidate;
        XPH_TRY(look.real->query(stream->device, XPH_OP_LINEAR, &m->args, &m->chosen));
        status = look.real->run(stream, m->chosen.kernel, &m->args);
    }
    return status;
}

static double product_rate(xph_device *device, xph_stream *stream, int32_t precision, int64_t side)
{
    xph_type type = precision == EXPHIL_PRECISION_BF16  ? XPH_BF16
                    : precision == EXPHIL_PRECISION_F16 ? XPH_F16
                                                        : XPH_F32;
    size_t bytes = (size_t)(side * side) * 4;
    void *block[4] = {NULL, NULL, NULL, NULL};
    exphil_status status = EXPHIL_OK;
    double seconds = 0;
    for (int i = 0; status >= 0 && i < 4; i++) {
        status = look.real->alloc(device, bytes, &block[i]);
        if (status >= 0) status = look.real->zero(stream, block[i], bytes);
    }
    multiplied m = {.args = {.type = type, .rows = side, .in = side, .out = side, .ldx = side, .ldy = side}};
    m.args.x = block[0];
    m.args.w = block[1];
    m.args.packed = block[2];
    m.args.y = block[3];
    m.args.math = precision ? XPH_MATH_TF32 : XPH_MATH_F32;
    if (status >= 0) status = look.real->query(device, XPH_OP_LINEAR, &m.args, &m.chosen);
    if (status >= 0) seconds = seconds_of(stream, multiply_once, &m);
    look.real->stream_wait(stream);
    for (int i = 0; i < 4; i++)
        if (block[i]) look.real->free(device, block[i], bytes);
    return seconds > 0 ? 2.0 * (double)side * (double)side * (double)side / seconds : 0;
}

static bool measure_bounds(exphil_context *context, int32_t precision, bool small, bounds *to)
{
    xph_device *device = xph_context_backend(context);
    xph_stream *stream = NULL;
    copied c = {.bytes = small ? (size_t)1 << 16 : (size_t)1 << 29};
    void *from = NULL;
    exphil_status status = look.real->stream_create(device, XPH_STREAM_NET, &stream);
    if (status >= 0) status = look.real->alloc(device, c.bytes, &c.to);
    if (status >= 0) status = look.real->alloc(device, c.bytes, &from);
    if (status >= 0) status = look.real->zero(stream, from, c.bytes);
    c.from = from;
    double seconds = status >= 0 ? seconds_of(stream, copy_once, &c) : 0;
    to->copy = seconds > 0 ? 2.0 * (double)c.bytes / seconds : 0;
    to->product = status >= 0 ? product_rate(device, stream, precision, small ? 16 : 8192) : 0;
    if (stream) look.real->stream_wait(stream);
    if (from) look.real->free(device, from, c.bytes);
    look.ahead = c.to;
    look.ahead_bytes = c.bytes;
    if (stream) look.real->stream_destroy(stream);
    return to->copy > 0 && to->product > 0;
}

/* ---- one update after the other -------------------------------------------------------------------------- */

/* All calls of one operation by one kernel. */
typedef struct group {
    char what[72];
    int calls;
    double bytes, flop, ns[UPDATES];
} group;

typedef struct groups {
    group of[NAMES_MOST];
    int count;
} groups;

static group *group_of(groups *g, const call *c)
{
    char what[72];
    bool same = strcmp(c->work.name, c->kernel) == 0;
    snprintf(what, sizeof what, "%s%s%s", c->work.name, same ? "" : ": ", same ? "" : c->kernel);
    for (int i = 0; i < g->count; i++)
        if (strcmp(g->of[i].what, what) == 0) return &g->of[i];
    if (g->count == NAMES_MOST) return &g->of[NAMES_MOST - 1];
    group *added = &g->of[g->count++];
    memset(added, 0, sizeof *added);
    snprintf(added->what, sizeof added->what, "%s", what);
    return added;
}

static bool look_once(bench_trainer *t, groups *g, int update)
{
    look.count = 0;
    look.on = true;
    bench_trainer_update(t, 1);
    look.on = false;
    if (t->failed || look.count == 0) return false;
    if (look.real->event_wait(look.calls[look.count - 1].end) < 0) return false;
    for (int i = 0; i < look.count; i++) {
        const call *c = &look.calls[i];
        double ns = 0;
        if (look.real->event_elapsed(c->begin, c->end, &ns) < 0) return false;
        group *of = group_of(g, c);
        of->ns[update] += ns;
        if (update) continue;
        of->calls++;
        of->bytes += c->work.bytes;
        of->flop += c->work.flop;
    }
    return true;
}

static void give_group(bench_report *report, group *g, const bounds *b, double whole)
{
    bench_work work = {.sample = g->ns, .count = UPDATES};
    bench_row row = {.time = bench_stats_of(&work), .items = g->bytes, .item = "byte"};
    double copied_ns = 1e9 * g->bytes / b->copy, computed_ns = 1e9 * g->flop / b->product;
    bool computes = computed_ns > copied_ns;
    row.floor_ns = computes ? computed_ns : copied_ns;
    if (computes) {
        row.items = g->flop;
        row.item = "flop";
    }
    snprintf(row.subject, sizeof row.subject, "operations of an update");
    snprintf(row.what, sizeof row.what, "%.71s", g->what);
    snprintf(row.how, sizeof row.how, "%d x, %.1f %%", g->calls, 100 * row.time.p50 / whole);
    snprintf(row.floor_of, sizeof row.floor_of, "%s (%.3g MB, %.3g GFLOP)", computes ? "product" : "copy",
             g->bytes * 1e-6, g->flop * 1e-9);
    bench_report_row(report, &row);
}

static int by_time(const void *a, const void *b)
{
    const group *x = a, *y = b;
    double sum_x = 0, sum_y = 0;
    for (int i = 0; i < UPDATES; i++) {
        sum_x += x->ns[i];
        sum_y += y->ns[i];
    }
    return (sum_x < sum_y) - (sum_x > sum_y);
}

static void give_groups(bench_report *report, groups *g, const bounds *b)
{
    double whole = 0;
    qsort(g->of, (size_t)g->count, sizeof *g->of, by_time);
    for (int i = 0; i < g->count; i++) {
        double sorted[UPDATES];
        memcpy(sorted, g->of[i].ns, sizeof sorted);
        qsort(sorted, UPDATES, sizeof *sorted, bench_ascending);
        whole += sorted[UPDATES / 2];
    }
    for (int i = 0; i < g->count; i++) give_group(report, &g->of[i], b, whole);
    bench_report_fact(report, "sum of the operations' medians", whole * 1e-6, "ms");
}

static void forget_events(void)
{
    for (int i = 0; i < CALLS_MOST; i++) {
        if (look.calls[i].begin) look.real->event_destroy(look.calls[i].begin);
        if (look.calls[i].end) look.real->event_destroy(look.calls[i].end);
        look.calls[i].begin = look.calls[i].end = NULL;
    }
}

static bool look_at_updates(bench_report *report, bench_trainer *t, const bounds *b)
{
    static groups g;
    bool good = true;
    g.count = 0;
    bench_trainer_update(t, WARM);
    for (int i = 0; good && i < UPDATES; i++) good = look_once(t, &g, i);
    if (good) give_groups(report, &g, b);
    forget_events();
    return good;
}

/* As it trains, recorded: the host's clock around many updates. */
static bool whole_update(bench_report *report, const bench_options *o, const bench_workload *w)
{
    bench_trainer t;
    bench_work work = {.run = bench_trainer_update, .arg = &t, .calls = o->quick ? 2 : 50};
    bench_effort effort = bench_effort_of(o);
    bench_row row = {.items = 0};
    if (!bench_trainer_make(&t, w, 1, o)) return false;
    bench_trainer_update(&t, WARM);
    bool good = bench_measure(&work, 1, &effort) && !t.failed;
    if (good) {
        row.time = bench_stats_of(&work);
        row.items = t.flop;
        row.item = "flop";
        snprintf(row.subject, sizeof row.subject, "update");
        snprintf(row.what, sizeof row.what, "%s, B=%d T=%d", w->name, (int)w->batch, (int)w->time);
        exphil_device_info info = EXPHIL_DEVICE_INFO_INIT;
        good = exphil_context_device(t.context, &info, NULL) >= 0;
        snprintf(row.how, sizeof row.how, "%s", info.id); /* not what was requested: that may be auto */
        bench_report_row(report, &row);
    }
    bench_work_free(&work);
    bench_trainer_end(&t);
    return good;
}

static bool roofline_of(bench_report *report, const bench_options *o, const bench_workload *w)
{
    bench_options looked = *o;
    bench_trainer t;
    bounds b = {0};
    if (!whole_update(report, o, w)) return false;
    if (!o->roofline) return true;
    looked.opened = look_into;
    if (!bench_trainer_make(&t, w, 1, &looked)) return false;
    bool good = measure_bounds(t.context, (int32_t)o->precision, o->quick, &b);
    if (good) {
        bench_report_fact(report, "a copy on the device moves", b.copy * 1e-9, "GB/s");
        bench_report_fact(report, "a large product does", b.product * 1e-12, "TFLOP/s");
        good = look_at_updates(report, &t, &b);
    } else {
        bench_say(NULL, "the device could not be measured");
    }
    if (look.ahead) look.real->free(xph_context_backend(t.context), look.ahead, look.ahead_bytes);
    look.ahead = NULL;
    bench_trainer_end(&t);
    return good;
}

bench_workload bench_roofline_workload(const bench_options *options, int i)
{
    static const bench_workload shown[BENCH_ROOFLINES] = {
        {"mamba x 2, 256 wide", "mamba mamba", 256, 256, 60, 0, 0},
        {"lstm x 2, 256 wide", "lstm lstm", 256, 256, 60, 0, 0},
        {"attention x 2, 4 x 64", "attention attention", 256, 256, 60, 0, 0},
    };
    bench_workload w = shown[i];
    if (options->quick) {
        w.hidden = 16;
        w.batch = 2;
        w.time = 3;
    }
    return w;
}

bool bench_roofline(bench_report *report, const bench_options *options)
{
    bool good = true;
    for (int i = 0; i < BENCH_ROOFLINES; i++) {
        const bench_workload w = bench_roofline_workload(options, i);
        if (!bench_wanted(options, "update", w.name)) continue;
        size_t mark = bench_memory_mark();
        good = roofline_of(report, options, &w) && good;
        bench_memory_release(mark);
    }
    return good;
}
