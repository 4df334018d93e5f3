/* `exphil bench kernels`: walks the cases and, for each, the candidates of the best set; see kernels.h. */
#include "kernels.h"
#include "cells.h"

#include "device/device.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct kernel_run {
    const kernel_bench *bench;
    const xph_candidate *candidate;
    const xph_kernel *kernel; /* the device's, of run_spread */
    const void *args;
} kernel_run;

static void run_alone(void *arg, int64_t calls)
{
    const kernel_run *r = arg;
    for (int64_t c = 0; c < calls; c++)
        for (int i = 0; i < XPH_PHASES && r->candidate->phase[i].run; i++)
            r->candidate->phase[i].run(r->args, 0, r->candidate->phase[i].items(r->args));
}

/* On the threads of a context: what is chosen, as the library would. */
static void run_spread(void *arg, int64_t calls)
{
    const kernel_run *r = arg;
    xph_stream *stream = r->bench->stream;
    for (int64_t c = 0; c < calls; c++) (void)stream->device->backend->run(stream, r->kernel, r->args);
}

bool kernel_begin(const kernel_bench *k, kernel_case *c, const char *what, ...)
{
    va_list values;
    va_start(values, what);
    vsnprintf(c->what, sizeof c->what, what, values);
    va_end(values);
    c->mark = bench_memory_mark();
    return bench_wanted(k->options, c->subject, c->what);
}

enum { MOST = 8 };

static void give_row(kernel_bench *k, const kernel_case *c, const char *how, bench_work *work,
                     double floor_ns)
{
    bench_row row = {.time = bench_stats_of(work), .floor_ns = floor_ns, .items = c->items, .item = c->item};
    snprintf(row.subject, sizeof row.subject, "%s", c->subject);
    snprintf(row.what, sizeof row.what, "%s", c->what);
    snprintf(row.how, sizeof row.how, "%s", how);
    if (floor_ns > 0) {
        if (c->floor == FLOOR_READ)
            snprintf(row.floor_of, sizeof row.floor_of, "reading %.3g MB", (double)c->pass.count * 4e-6);
        else
            snprintf(row.floor_of, sizeof row.floor_of, "%s", bench_floor_name(c->floor));
    }
    if (c->bar_ns > 0) {
        row.bar_ns = c->bar_ns;
        if (c->item && strcmp(c->item, "element") == 0)
            snprintf(row.bar, sizeof row.bar, "%.3g ns/elem", c->bar_ns / c->items);
        else
            snprintf(row.bar, sizeof row.bar, "%.3g us", c->bar_ns / 1e3);
    } else if (c->bar_floors > 0 && floor_ns > 0) {
        row.bar_ns = c->bar_floors * floor_ns;
        snprintf(row.bar, sizeof row.bar, "%.3g x floor", c->bar_floors);
    }
    bench_report_row(k->report, &row);
}

/* Candidates that this case is timed with: the chosen one, or all that accept. */
static int gather(const kernel_bench *k, const kernel_case *c, const xph_candidate *found[MOST])
{
    int count = 0;
    k->set->compose(c->op, c->args);
    for (const xph_candidate *one = k->set->op[c->op]; one->name && count < MOST; one++) {
        if (one->accepts && !one->accepts(c->args)) continue;
        found[count++] = one;
        if (!k->options->candidates || k->stream) break;
    }
    return count;
}

static void give_scratch(kernel_case *c, const xph_candidate *const *found, int count)
{
    size_t most = 0;
    for (int i = 0; i < count; i++) {
        size_t bytes = found[i]->scratch_bytes ? found[i]->scratch_bytes(c->args) : 0;
        if (bytes > most) most = bytes;
    }
    void *scratch = bench_memory(most);
    if (c->scratch_at) memcpy((char *)c->args + c->scratch_at, &scratch, sizeof scratch);
}

void kernel_time(kernel_bench *k, kernel_case *c, void *args)
{
    const xph_candidate *found[MOST];
    kernel_run runs[MOST];
    bench_work works[MOST + 1] = {{0}};
    xph_op_info info = {0};
    c->args = args;
    if (k->stream && k->stream->device->backend->query(k->stream->device, c->op, c->args, &info) < 0) {
        k->failed = true;
        bench_memory_release(c->mark);
        return;
    }
    int count = gather(k, c, found);
    give_scratch(c, found, count);
    for (int i = 0; i < count; i++) {
        runs[i] = (kernel_run){k, found[i], info.kernel, c->args};
        works[i] = (bench_work){.run = k->stream ? run_spread : run_alone, .arg = &runs[i]};
    }
    double per_call = 1, floor_ns = 0, spread = k->stream ? (double)xph_workers(k->context) : 1;
    int all = count + bench_floor_work(c->floor, &c->pass, &works[count], &per_call);
    bench_effort effort = bench_effort_of(k->options);
    if (!bench_measure(works, all, &effort)) k->failed = true;
    if (all > count) {
        bench_stats floor = bench_stats_of(&works[count]);
        floor_ns = floor.p25 * (c->amount > 0 ? c->amount / per_call : 1) / spread;
    }
    for (int i = 0; i < count; i++) give_row(k, c, found[i]->name, &works[i], floor_ns);
    for (int i = 0; i < all; i++) bench_work_free(&works[i]);
    bench_memory_release(c->mark);
}

void *kernel_pack(const kernel_bench *k, xph_type weights, int64_t in, int64_t out, const float *w,
                  size_t *bytes)
{
    xph_linear_pack_args args = {.type = XPH_F32, .weights = weights, .in = in, .out = out, .w = w};
    size_t size = xph_kernels_packed_bytes(XPH_OP_LINEAR_PACK, &args);
    args.packed = bench_memory(size);
    const xph_candidate *c = xph_kernels_choose(k->set, XPH_OP_LINEAR_PACK, &args);
    for (int i = 0; c && i < XPH_PHASES && c->phase[i].run; i++)
        c->phase[i].run(&args, 0, c->phase[i].items(&args));
    if (bytes) *bytes = size;
    return args.packed;
}

/* ---- the subject --------------------------------------------------------------------------------------- */

static bool open_threads(kernel_bench *k)
{
    bench_leave_place();
    return bench_open((int32_t)k->options->threads, k->options->isa, 0, &k->context, &k->stream);
}

static xph_isa level(const char *name)
{
    xph_isa best = xph_cpu_detect();
    for (xph_isa isa = XPH_ISA_REF; name && isa < best; isa++)
        if (strcmp(name, xph_isa_name(isa)) == 0) return isa;
    return best;
}

bool bench_kernels(bench_report *report, const bench_options *options)
{
    kernel_bench k = {.report = report, .options = options};
    k.set = xph_kernels_pick(XPH_F32, level(options->isa));
    if (!k.set || (options->threads > 1 && !open_threads(&k))) return false;
    kernel_cases_linear(&k);
    kernel_cases_recurrent(&k);
    kernel_cases_sequence(&k);
    kernel_cases_rows(&k);
    if (k.stream) k.stream->device->backend->stream_destroy(k.stream);
    exphil_context_destroy(k.context);
    return !k.failed;
}
