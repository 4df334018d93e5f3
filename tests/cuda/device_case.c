#include "device_case.h"

#include "faulty.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers as they are stored ---- */

const xph_type device_types[DEVICE_TYPES] = {XPH_F32, XPH_BF16, XPH_F16};

/* Sums of some hundred numbers, each rounded where it is stored. */
double device_tolerance(xph_type type)
{
    return type == XPH_F32 ? 5e-6 : type == XPH_F16 ? 3e-3 : 2e-2;
}

size_t device_bytes(xph_type type)
{
    return type == XPH_F32 ? sizeof(float) : sizeof(uint16_t);
}

void device_put(xph_type type, void *to, int64_t i, double x)
{
    if (type == XPH_F32)
        ((float *)to)[i] = (float)x;
    else
        ((uint16_t *)to)[i] = type == XPH_F16 ? half_of((float)x) : bf16_of((float)x);
}

double device_get(xph_type type, const void *from, int64_t i)
{
    if (type == XPH_F32) return (double)((const float *)from)[i];
    uint16_t narrow = ((const uint16_t *)from)[i];
    return (double)(type == XPH_F16 ? of_half(narrow) : of_bf16(narrow));
}

double device_rounded(xph_type type, double x)
{
    float cell;
    device_put(type, &cell, 0, x);
    return device_get(type, &cell, 0);
}

static xph_type type_of(const device_case *d, const kt_tensor *t)
{
    return t->ld_at != KT_DENSE && !strstr(t->name, "state") ? d->type : XPH_F32;
}

/* ---- one run ---- */

static int64_t ld_of(const kt_case *c, const kt_tensor *t)
{
    return t->ld_at == KT_DENSE ? t->width : t->width + c->pad;
}

static void put(void *args, size_t at, const void *value, size_t bytes)
{
    memcpy((char *)args + at, value, bytes);
}

/* Bytes in front of a tensor. */
static size_t astray(const device_case *d, int i)
{
    return i + 1 == d->astray ? device_bytes(type_of(d, &d->test->tensors[i])) : 0;
}

static void *give(const device_case *d, int i)
{
    const kt_tensor *t = &d->test->tensors[i];
    xph_type type = type_of(d, t);
    int64_t ld = ld_of(d->test, t), elements = t->rows > 0 ? (t->rows - 1) * ld + t->width : 0;
    const size_t bytes = (size_t)elements * device_bytes(type),
                 align = d->align ? d->align : device_bytes(type);
    char *at = emu_alloc((bytes + astray(d, i) + align - 1) / align * align, align);
    assert_non_null(at);
    void *to = at + astray(d, i);
    for (int64_t k = 0; t->x && k < t->rows * t->width; k++)
        device_put(type, to, k / t->width * ld + k % t->width, t->x[k]);
    return to;
}

/* Back as doubles; what lies between the rows must be what emu_alloc put there. */
static double *take(const device_case *d, const kt_tensor *t, const void *from)
{
    xph_type type = type_of(d, t);
    int64_t ld = ld_of(d->test, t);
    double *x = case_zeros(t->rows * t->width);
    for (int64_t r = 0; r < t->rows; r++) {
        for (int64_t i = 0; i < t->width; i++) x[r * t->width + i] = device_get(type, from, r * ld + i);
        for (int64_t i = t->width; r + 1 < t->rows && i < ld; i++)
            if (!isnan(device_get(type, from, r * ld + i))) fail_msg("%s: written between rows", t->name);
    }
    return x;
}

static void *give_resets(const device_case *d, void *args)
{
    const uint8_t *host;
    if (d->reset_at == KT_DENSE) return NULL;
    memcpy(&host, (char *)args + d->reset_at, sizeof host);
    if (!host) return NULL;
    void *reset = emu_alloc((size_t)d->rows, 1);
    assert_non_null(reset);
    memcpy(reset, host, (size_t)d->rows);
    put(args, d->reset_at, &reset, sizeof reset);
    return reset;
}

static void launch(const device_case *d, const xph_cuda_candidate *candidate, void *args)
{
    size_t bytes = candidate->scratch_bytes ? candidate->scratch_bytes(args) : 0;
    void *scratch = emu_alloc(bytes, sizeof(float));
    assert_non_null(scratch);
    if (d->test->scratch_at != KT_DENSE) put(args, d->test->scratch_at, &scratch, sizeof scratch);
    int error = candidate->launch(args, NULL);
    if (emu_fault()) fail_msg("%s: %s", candidate->name, emu_fault());
    assert_int_equal(error, 0);
    emu_free(scratch);
}

/* ---- sums of columns ---- */

static float before_columns(int64_t i)
{
    return 0.25f * (float)(i % 7);
}

static float *give_columns(const device_case *d, void *args)
{
    if (!d->columns_at) return NULL;
    const int64_t width = d->test->tensors[d->columns_of].width;
    float *sums = emu_alloc((size_t)width * sizeof *sums, sizeof *sums);
    assert_non_null(sums);
    for (int64_t i = 0; i < width; i++) sums[i] = before_columns(i);
    put(args, d->columns_at, &sums, sizeof sums);
    return sums;
}

static float *kept_columns; /* of the first run of a check */

static void check_columns(const device_case *d, const float *sums, const double *of)
{
    const kt_tensor *t = &d->test->tensors[d->columns_of];
    double *got = case_zeros(t->width), *want = case_zeros(t->width);
    for (int64_t i = 0; i < t->width; i++) {
        got[i] = (double)sums[i];
        want[i] = (double)before_columns(i);
        for (int64_t r = 0; r < t->rows; r++) want[i] += of[r * t->width + i];
    }
    case_close("sums of columns", got, want, t->width, d->tolerance);
    const size_t bytes = (size_t)t->width * sizeof *sums;
    if (kept_columns) {
        assert_memory_equal(sums, kept_columns, bytes);
    } else {
        kept_columns = case_alloc(bytes);
        memcpy(kept_columns, sums, bytes);
    }
}

/* False: the candidate does not accept. */
static bool run(const device_case *d, const xph_cuda_candidate *candidate, double *results[KT_MOST])
{
    const kt_case *c = d->test;
    void *args = malloc(c->args_bytes), *memory[KT_MOST] = {0};
    memcpy(args, c->args, c->args_bytes);
    put(args, 0, &d->type, sizeof d->type);
    for (int i = 0; i < c->count; i++) {
        const kt_tensor *t = &c->tensors[i];
        int64_t ld = ld_of(c, t);
        if (t->ld_at != KT_DENSE) put(args, t->ld_at, &ld, sizeof ld);
        if (t->role == KT_IN && !t->x) continue;
        memory[i] = give(d, i);
        put(args, t->at, &memory[i], sizeof memory[i]);
    }
    void *reset = give_resets(d, args);
    if (c->prepare) c->prepare(c, NULL, args);
    float *columns = give_columns(d, args);
    (void)xph_cuda_compose(c->op, args, 0);
    bool accepted = candidate->accepts(args);
    if (accepted) launch(d, candidate, args);
    for (int i = 0; i < c->count; i++) {
        const kt_tensor *t = &c->tensors[i];
        results[i] = accepted && t->role != KT_IN ? take(d, t, memory[i]) : NULL;
        if (memory[i]) emu_free((char *)memory[i] - astray(d, i));
    }
    if (columns && accepted) check_columns(d, columns, results[d->columns_of]);
    emu_free(columns);
    emu_free(reset);
    free(args);
    return accepted;
}

/* ---- judging ---- */

/* The same case with inputs that the type can hold. */
static kt_case rounded(const device_case *d)
{
    kt_case c = *d->test;
    for (int i = 0; i < c.count; i++) {
        kt_tensor *t = &c.tensors[i];
        if (!t->x) continue;
        double *x = kt_copy(t->x, t->rows * t->width);
        for (int64_t k = 0; k < t->rows * t->width; k++) x[k] = device_rounded(type_of(d, t), x[k]);
        t->x = x;
    }
    return c;
}

static void compare(const device_case *d, double *const *got)
{
    double *want[KT_MOST];
    kt_case c = rounded(d);
    c.prepare = NULL; /* it speaks of the device's memory */
    for (int i = 0; i < c.count; i++) want[i] = c.tensors[i].want;
    if (!d->wanted) kt_reference(&c, want);
    for (int i = 0; i < c.count; i++) {
        char what[200];
        if (!got[i] || !want[i]) continue;
        snprintf(what, sizeof what, "%s of %s, type %d", c.tensors[i].name, c.name, d->type);
        case_close(what, got[i], want[i], c.tensors[i].rows * c.tensors[i].width, d->tolerance);
    }
}

static void same(const device_case *d, const char *by, int schedule, double *const *a, double *const *b)
{
    for (int i = 0; i < d->test->count; i++) {
        char what[200];
        if (!a[i]) continue;
        snprintf(what, sizeof what, "%s of %s, schedule %d", d->test->tensors[i].name, by, schedule);
        case_same(what, a[i], b[i], d->test->tensors[i].rows * d->test->tensors[i].width);
    }
}

device_case device_case_of(const kt_case *test, const xph_cuda_candidate *list, xph_type type)
{
    return (device_case){
        .test = test, .list = list, .type = type, .tolerance = device_tolerance(type), .reset_at = KT_DENSE};
}

static bool asked(int schedule)
{
    static int candidates;
    if (schedule == 0) candidates++;
    return DEVICE_SCHEDULES > 1 || schedule == candidates % EMU_SCHEDULES;
}

void device_check(const device_case *d)
{
    double *first[KT_MOST], *own[KT_MOST], *next[KT_MOST];
    bool have = false;
    kept_columns = NULL;
    for (const xph_cuda_candidate *k = d->list; k->name; k++) {
        bool begun = have && !d->candidates_differ;
        if (begun) memcpy(own, first, sizeof own);
        for (int s = 0; s < EMU_SCHEDULES; s++) {
            if (!asked(s)) continue;
            emu_schedule(s);
            if (!run(d, k, begun ? next : own)) continue;
            if (begun)
                same(d, k->name, s, next, own);
            else
                compare(d, own);
            begun = true;
            if (!have) memcpy(first, own, sizeof first);
            have = true;
        }
    }
    assert_true(have);
    assert_int_equal(emu_allocated(), d->beside);
}

void device_run(const device_case *d, double *results[KT_MOST])
{
    emu_schedule(EMU_FORWARD);
    for (const xph_cuda_candidate *k = d->list; k->name; k++)
        if (run(d, k, results)) return;
    fail_msg("%s: no candidate accepts", d->test->name);
}

void device_do(const xph_cuda_candidate *list, const void *args)
{
    uint32_t bit;
    const xph_cuda_candidate *candidate = xph_cuda_first(list, args, 0, &bit);
    assert_non_null(candidate);
    assert_int_equal(candidate->launch(args, NULL), 0);
}
