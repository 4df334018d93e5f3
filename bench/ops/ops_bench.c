/* What a call of exphil/ops.h costs over the kernel that it runs, of a tiny shape, and how long the scan and its gradient take.
 *
 *   ops_bench [CALLS]      medians of so many calls, 100000 by default; those of the large shape of a hundredth
 *
 * One thread. `call`: exphil_ops_run; `kernel`: the same work asked of the device with arguments that are ready; both alternate, so
 * that whatever else the machine does meets both. `strided`: the same call on [batch, width, frames] of mamba_ssm. */
#include "ops/ops.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST = 1000000, STATES = 16 };

typedef struct place {
    exphil_context *context;
    exphil_ops *ops;
    xph_device *device;
    xph_stream *stream;
} place;

typedef struct shape {
    int64_t batch, frames, width;
} shape;

static float *numbers(int64_t count, float low, float high)
{
    static uint32_t state = 1;
    float *x = aligned_alloc(64, ((size_t)count * sizeof *x + 63) & ~(size_t)63);
    if (!x) exit(1);
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = low + (high - low) * (float)(state >> 8) / 16777216.0f;
    }
    return x;
}

static void must(exphil_status status, const exphil_error *error)
{
    if (status >= 0) return;
    fprintf(stderr, "ops_bench: %s\n", error->message);
    exit(1);
}

/* ---- a scan and its gradient ----------------------------------------------------------------------------- */

typedef struct scan {
    exphil_scan_args args;
    xph_scan_grad_args kernel; /* its fwd is the arguments of forward */
    xph_op_info info;
    void *workspace;
    size_t workspace_bytes;
    bool backward;
} scan;

static exphil_input array_of(int64_t count, float low, float high)
{
    return (exphil_input){.data = numbers(count, low, high)};
}

static exphil_output result_of(int64_t count)
{
    return (exphil_output){.data = numbers(count, 0.0f, 0.0f)};
}

static void fill_args(exphil_scan_args *a, const shape *s, bool backward)
{
    const int64_t rows = s->batch * s->frames, all = rows * s->width, weights = s->width * STATES;
    *a = (exphil_scan_args)EXPHIL_SCAN_ARGS_INIT;
    a->op = backward ? EXPHIL_OP_SCAN_GRAD : EXPHIL_OP_SCAN;
    a->batch = s->batch, a->frames = s->frames, a->width = s->width, a->states = STATES;
    a->u = array_of(all, -1.0f, 1.0f), a->delta = array_of(all, -5.0f, -2.0f),
    a->a_log = array_of(weights, 0.0f, 2.7f);
    a->b = array_of(rows * STATES, -1.0f, 1.0f), a->c = array_of(rows * STATES, -1.0f, 1.0f);
    a->skip = array_of(s->width, 0.5f, 1.5f), a->z = array_of(all, -1.0f, 1.0f);
    if (!backward) {
        a->y = result_of(all);
        return;
    }
    a->dy = array_of(all, -1.0f, 1.0f), a->du = result_of(all), a->ddelta = result_of(all),
    a->da = result_of(weights);
    a->db = result_of(rows * STATES), a->dc = result_of(rows * STATES), a->dskip = result_of(s->width);
    a->dz = result_of(all);
}

/* The same arrays as arguments of table A. */
static void fill_kernel(scan *k)
{
    const exphil_scan_args *a = &k->args;
    xph_scan_args *f = &k->kernel.fwd;
    *f = (xph_scan_args){.batch = a->batch, .time = a->frames, .width = a->width, .states = STATES};
    f->x = a->u.data, f->dt = a->delta.data, f->a_log = a->a_log.data, f->b = a->b.data, f->c = a->c.data;
    f->skip = a->skip.data, f->z = a->z.data, f->y = a->y.data;
    f->ldx = f->lddt = f->ldz = f->ldy = a->width;
    f->ldb = f->ldc = STATES, f->ld_state = a->width * STATES;
    xph_scan_grad_args *g = &k->kernel;
    g->dy = a->dy.data, g->dx = a->du.data, g->ddt = a->ddelta.data, g->da_log = a->da.data,
    g->db = a->db.data;
    g->dc = a->dc.data, g->dskip = a->dskip.data, g->dz = a->dz.data;
    g->lddy = g->lddx = g->ldddt = g->lddz = a->width;
    g->lddb = g->lddc = STATES;
}

static void strides(exphil_scan_args *a)
{
    const int64_t frames = a->frames, width = a->width;
    exphil_input *in[] = {&a->u, &a->delta, &a->z, &a->dy};
    exphil_output *out[] = {&a->y, &a->du, &a->ddelta, &a->dz};
    for (int i = 0; i < 4; i++)
        in[i]->batch_stride = frames * width, in[i]->frame_stride = 1, in[i]->column_stride = frames;
    for (int i = 0; i < 4; i++)
        out[i]->batch_stride = frames * width, out[i]->frame_stride = 1, out[i]->column_stride = frames;
    exphil_input *few[] = {&a->b, &a->c};
    exphil_output *back[] = {&a->db, &a->dc};
    for (int i = 0; i < 2; i++)
        few[i]->batch_stride = frames * STATES, few[i]->frame_stride = 1, few[i]->column_stride = frames;
    for (int i = 0; i < 2; i++)
        back[i]->batch_stride = frames * STATES, back[i]->frame_stride = 1, back[i]->column_stride = frames;
}

static scan make(const place *p, const shape *s, bool backward, bool strided)
{
    scan k = {.backward = backward};
    exphil_op_info info = EXPHIL_OP_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    fill_args(&k.args, s, backward);
    fill_kernel(&k);
    if (strided) strides(&k.args);
    must(exphil_ops_query(p->ops, &k.args, &info, &error), &error);
    k.workspace_bytes = info.workspace_bytes;
    k.workspace = numbers((int64_t)info.workspace_bytes / 4 + 16, 0.0f, 0.0f);
    void *args = backward ? (void *)&k.kernel : (void *)&k.kernel.fwd;
    if (p->device->backend->query(p->device, backward ? XPH_OP_SCAN_GRAD : XPH_OP_SCAN, args, &k.info) < 0)
        exit(1);
    k.kernel.scratch = k.kernel.fwd.scratch = numbers((int64_t)k.info.scratch_bytes / 4 + 16, 0.0f, 0.0f);
    return k;
}

/* ---- times ----------------------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *times, int64_t count)
{
    qsort(times, (size_t)count, sizeof *times, ascending);
    return times[count / 2];
}

static double time_call(const place *p, const scan *k, exphil_error *error)
{
    const int64_t begin = xph_clock_ns();
    must(exphil_ops_run(p->ops, &k->args, k->workspace, k->workspace_bytes, NULL, error), error);
    return (double)(xph_clock_ns() - begin);
}

static double time_kernel(const place *p, const scan *k)
{
    const int64_t begin = xph_clock_ns();
    if (p->device->backend->run(p->stream, k->info.kernel,
                                k->backward ? (const void *)&k->kernel : &k->kernel.fwd) < 0)
        exit(1);
    return (double)(xph_clock_ns() - begin);
}

static double time_nothing(void)
{
    const int64_t begin = xph_clock_ns();
    return (double)(xph_clock_ns() - begin);
}

static void measure(const place *p, const shape *s, bool backward, int64_t count)
{
    static double times[4][MOST];
    exphil_error error = EXPHIL_ERROR_INIT;
    scan k = make(p, s, backward, false), strided = make(p, s, backward, true);
    for (int64_t i = -count / 10 - 1; i < count; i++) {
        const double one = time_call(p, &k, &error), other = time_kernel(p, &k),
                     third = time_call(p, &strided, &error);
        const double none = time_nothing();
        if (i < 0) continue;
        times[0][i] = one, times[1][i] = other, times[2][i] = third, times[3][i] = none;
    }
    const double clock = median(times[3], count), call = median(times[0], count) - clock,
                 kernel = median(times[1], count) - clock, apart = median(times[2], count) - clock;
    printf("%-9s B %lld T %lld D %lld N %d: call %.0f ns, kernel %.0f ns, over it %.0f ns; strided %.0f ns\n",
           backward ? "scan_grad" : "scan", (long long)s->batch, (long long)s->frames, (long long)s->width,
           STATES, call, kernel, call - kernel, apart);
}

int main(int count, char **words)
{
    const int64_t calls = count > 1 ? atoll(words[1]) : 100000;
    const shape tiny = {1, 1, 16}, usual = {4, 60, 512};
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    place p = {.context = NULL};
    if (calls < 100 || calls > MOST) {
        fprintf(stderr, "ops_bench: CALLS must be 100..%d\n", MOST);
        return 2;
    }
    config.threads = 1;
    must(exphil_context_create(&config, &p.context, &error), &error);
    must(exphil_ops_create(p.context, NULL, &p.ops, &error), &error);
    p.device = xph_context_backend(p.context);
    must(p.device->backend->stream_create(p.device, XPH_STREAM_INLINE, &p.stream), &error);
    for (int backward = 0; backward <= 1; backward++) measure(&p, &tiny, backward, calls);
    for (int backward = 0; backward <= 1; backward++) measure(&p, &usual, backward, calls / 100);
    p.device->backend->stream_destroy(p.stream);
    exphil_ops_destroy(p.ops);
    exphil_context_destroy(p.context);
    return 0;
}
