/* Runs the tables of kernel_test.h. */
#include "kernel_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

kt_case kt_case_of(const char *name, xph_op op, const void *args, size_t args_bytes, size_t scratch_at,
                   const kt_tensor *tensors, size_t tensors_bytes, int64_t pad)
{
    kt_case c = {.name = name, .op = op, .args_bytes = args_bytes, .scratch_at = scratch_at, .pad = pad};
    c.count = (int)(tensors_bytes / sizeof *tensors);
    assert_true(args_bytes <= sizeof c.args && c.count <= KT_MOST);
    memcpy(c.args, args, args_bytes);
    memcpy(c.tensors, tensors, tensors_bytes);
    return c;
}

static int64_t ld_of(const kt_case *c, const kt_tensor *t)
{
    return t->ld_at == KT_DENSE ? t->width : t->width + c->pad;
}

static bool absent(const kt_tensor *t)
{
    return t->role == KT_IN && !t->x;
}

/* What is in a tensor before: KT_OUT holds NaN, so that what is not written shows. */
static void *place(const kt_case *c, const kt_tensor *t, xph_type type)
{
    int64_t ld = ld_of(c, t), elements = t->rows > 0 ? (t->rows - 1) * ld + t->width : 0;
    if (t->x) return case_give(type, t->x, t->rows, t->width, ld);
    return case_alloc((size_t)elements * case_bytes(type));
}

static void put(void *args, size_t at, const void *value, size_t bytes)
{
    memcpy((char *)args + at, value, bytes);
}

bool kt_run(const kt_case *c, const xph_kernel_set *set, const xph_candidate *candidate, int threads,
            double *results[KT_MOST])
{
    void *args = malloc(c->args_bytes), *memory[KT_MOST] = {0};
    memcpy(args, c->args, c->args_bytes);
    put(args, 0, &set->type, sizeof set->type);
    for (int i = 0; i < c->count; i++) {
        const kt_tensor *t = &c->tensors[i];
        int64_t ld = ld_of(c, t);
        if (t->ld_at != KT_DENSE) put(args, t->ld_at, &ld, sizeof ld);
        if (absent(t)) continue;
        memory[i] = place(c, t, set->type);
        put(args, t->at, &memory[i], sizeof memory[i]);
    }
    if (c->prepare) c->prepare(c, set, args);
    set->compose(c->op, args);
    if (!candidate) candidate = xph_kernels_choose(set, c->op, args);
    bool accepted = !candidate->accepts || candidate->accepts(args);
    if (accepted) {
        void *scratch = case_scratch(candidate, args);
        if (c->scratch_at != KT_DENSE) put(args, c->scratch_at, &scratch, sizeof scratch);
        case_run(candidate, args, threads);
        for (int i = 0; i < c->count; i++) {
            const kt_tensor *t = &c->tensors[i];
            results[i] = NULL;
            if (t->role == KT_IN) continue;
            results[i] = case_take(set->type, memory[i], t->rows, t->width, ld_of(c, t));
            case_padding_intact(set->type, memory[i], t->rows, t->width, ld_of(c, t));
        }
    }
    free(args);
    return accepted;
}

static void compare(const kt_case *c, const xph_candidate *candidate, xph_type type, double *const *results)
{
    for (int i = 0; i < c->count; i++) {
        const kt_tensor *t = &c->tensors[i];
        char what[200];
        if (!results[i] || !t->want) continue;
        snprintf(what, sizeof what, "%s of %s, %s", t->name, c->name, candidate->name);
        case_close(what, results[i], t->want, t->rows * t->width,
                   type == XPH_F64 ? c->tolerance64 : c->tolerance32);
    }
}

static void same(const kt_case *c, const xph_candidate *candidate, double *const *a, double *const *b)
{
    for (int i = 0; i < c->count; i++) {
        char what[200];
        if (!a[i]) continue;
        snprintf(what, sizeof what, "%s of %s, %s", c->tensors[i].name, c->name, candidate->name);
        case_same(what, a[i], b[i], c->tensors[i].rows * c->tensors[i].width);
    }
}

/* first: results of the first run of this type, filled by it. */
static int check_candidate(const kt_case *c, const xph_kernel_set *set, const xph_candidate *candidate,
                           double **first, bool *have)
{
    static const int threads[] = {1, 2, 4};
    for (int i = 0; i < 4; i++) {
        double *results[KT_MOST];
        case_guard_front(i == 3);
        bool accepted = kt_run(c, set, candidate, threads[i % 3], results);
        case_guard_front(false);
        if (!accepted) return 0;
        if (!*have) memcpy(first, results, sizeof results);
        if (!*have) compare(c, candidate, set->type, results);
        if (*have) same(c, candidate, results, first);
        *have = true;
    }
    return 1;
}

void kt_check(const kt_case *c)
{
    const xph_kernel_set *sets[CASE_SETS];
    void *mark = case_mark();
    double *first[2][KT_MOST];
    bool have[2] = {false, false};
    int count = case_sets(sets), run[2] = {0, 0};
    for (int s = 0; s < count; s++) {
        int type = sets[s]->type == XPH_F64;
        for (const xph_candidate *k = sets[s]->op[c->op]; k->name; k++)
            run[type] += check_candidate(c, sets[s], k, first[type], &have[type]);
    }
#ifdef XPH_HAVE_X86_SETS
    if (xph_cpu_has(XPH_ISA_AVX2)) /* not among case_sets, of which the first alone is of doubles */
        for (const xph_candidate *k = xph_kernels_f64_avx2.op[c->op]; k->name; k++)
            run[1] += check_candidate(c, &xph_kernels_f64_avx2, k, first[1], &have[1]);
#endif
    assert_true(run[0] >= 1 && run[1] >= 1);
    case_release_to(mark);
}

void kt_reference(const kt_case *c, double *results[KT_MOST])
{
    if (!kt_run(c, &xph_kernels_f64_ref, NULL, 1, results)) fail_msg("%s: not accepted", c->name);
}

double *kt_differences(double (*objective)(void *context), void *context, double *x, int64_t count,
                       const double *before)
{
    double *numeric = case_zeros(count);
    for (int64_t i = 0; i < count; i++) {
        double kept = x[i], h = 1e-5;
        x[i] = kept + h;
        double above = objective(context);
        x[i] = kept - h;
        double below = objective(context);
        x[i] = kept;
        numeric[i] = (above - below) / (2.0 * h) + (before ? before[i] : 0.0);
    }
    return numeric;
}

bool kt_any_bad(const double *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(x[i])) return true;
    return false;
}

double *kt_copy(const double *x, int64_t count)
{
    double *to = case_zeros(count);
    memcpy(to, x, (size_t)count * sizeof *x);
    return to;
}

uint8_t *kt_resets(int64_t count, int64_t every)
{
    if (!every) return NULL;
    uint8_t *reset = case_alloc((size_t)count);
    for (int64_t i = 0; i < count; i++) reset[i] = case_below(every) == 0;
    return reset;
}
