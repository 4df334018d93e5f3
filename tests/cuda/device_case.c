#include "device_case.h"

#include "emu_control.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers as they are stored ---- */

static float bf16_to_float(uint16_t narrow)
{
    uint32_t bits = (uint32_t)narrow << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint16_t bf16_of_float(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static bool is_narrow(const device_case *d, const kt_tensor *t)
{
    return d->type == XPH_BF16 && t->ld_at != KT_DENSE && !strstr(t->name, "state");
}

static size_t size_of(bool narrow)
{
    return narrow ? sizeof(uint16_t) : sizeof(float);
}

static void put_number(void *to, bool narrow, int64_t i, double x)
{
    if (narrow)
        ((uint16_t *)to)[i] = bf16_of_float((float)x);
    else
        ((float *)to)[i] = (float)x;
}

static double get_number(const void *from, bool narrow, int64_t i)
{
    return narrow ? (double)bf16_to_float(((const uint16_t *)from)[i]) : (double)((const float *)from)[i];
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

static void *give(const device_case *d, const kt_tensor *t)
{
    bool narrow = is_narrow(d, t);
    int64_t ld = ld_of(d->test, t), room = t->rows > 0 ? (t->rows - 1) * ld + t->width : 0;
    void *to = emu_alloc((size_t)room * size_of(narrow), size_of(narrow));
    assert_non_null(to);
    for (int64_t i = 0; t->x && i < t->rows * t->width; i++)
        put_number(to, narrow, i / t->width * ld + i % t->width, t->x[i]);
    return to;
}

/* Back as doubles; what lies between the rows must be what emu_alloc put there. */
static double *take(const device_case *d, const kt_tensor *t, const void *from)
{
    bool narrow = is_narrow(d, t);
    int64_t ld = ld_of(d->test, t);
    double *x = case_zeros(t->rows * t->width);
    for (int64_t r = 0; r < t->rows; r++) {
        for (int64_t i = 0; i < t->width; i++) x[r * t->width + i] = get_number(from, narrow, r * ld + i);
        for (int64_t i = t->width; r + 1 < t->rows && i < ld; i++)
            if (!isnan(get_number(from, narrow, r * ld + i))) fail_msg("%s: written between rows", t->name);
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
        memory[i] = give(d, t);
        put(args, t->at, &memory[i], sizeof memory[i]);
    }
    void *reset = give_resets(d, args);
    if (c->prepare) c->prepare(c, NULL, args);
    bool accepted = candidate->accepts(args);
    if (accepted) launch(d, candidate, args);
    for (int i = 0; i < c->count; i++) {
        const kt_tensor *t = &c->tensors[i];
        results[i] = accepted && t->role != KT_IN ? take(d, t, memory[i]) : NULL;
        emu_free(memory[i]);
    }
    emu_free(reset);
    free(args);
    return accepted;
}

/* ---- judging ---- */

/* The same case with inputs that the type can hold. */
static kt_case rounded(const device_case *d, kt_tensor tensors[KT_MOST])
{
    kt_case c = *d->test;
    memcpy(tensors, c.tensors, (size_t)c.count * sizeof *tensors);
    c.tensors = tensors;
    for (int i = 0; i < c.count; i++) {
        kt_tensor *t = &tensors[i];
        if (!t->x || !is_narrow(d, t)) continue;
        double *x = kt_copy(t->x, t->rows * t->width);
        for (int64_t k = 0; k < t->rows * t->width; k++)
            x[k] = (double)bf16_to_float(bf16_of_float((float)x[k]));
        t->x = x;
    }
    return c;
}

static void compare(const device_case *d, double *const *got)
{
    kt_tensor tensors[KT_MOST];
    double *want[KT_MOST];
    kt_case c = rounded(d, tensors);
    c.prepare = NULL; /* it speaks of the device's memory */
    kt_reference(&c, want);
    for (int i = 0; i < c.count; i++) {
        char what[200];
        if (!got[i]) continue;
        snprintf(what, sizeof what, "%s of %s, type %d", tensors[i].name, c.name, d->type);
        case_close(what, got[i], want[i], tensors[i].rows * tensors[i].width, d->tolerance);
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

void device_check(const device_case *d, double *results[KT_MOST])
{
    double *first[KT_MOST], *next[KT_MOST];
    bool have = false;
    for (const xph_cuda_candidate *k = d->list; k->name; k++) {
        for (int s = 0; s < EMU_SCHEDULES; s++) {
            emu_schedule(s);
            if (!run(d, k, have ? next : first)) continue;
            if (have)
                same(d, k->name, s, next, first);
            else
                compare(d, first);
            have = true;
        }
    }
    assert_true(have);
    assert_int_equal(emu_allocated(), 0);
    if (results) memcpy(results, first, sizeof first);
}

void device_run(const device_case *d, double *results[KT_MOST])
{
    emu_schedule(EMU_FORWARD);
    for (const xph_cuda_candidate *k = d->list; k->name; k++)
        if (run(d, k, results)) return;
    fail_msg("%s: no candidate accepts", d->test->name);
}
