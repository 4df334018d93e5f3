/* Guarded memory, runs on several threads and comparisons for the kernel tests. */
#include "kernel_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory ---- */

typedef struct piece {
    struct piece *next;
    void *map;
    size_t bytes;
} piece;

static piece *pieces;
static bool guard_front;
static xph_rng rng;

void case_guard_front(bool front)
{
    guard_front = front;
}

/* EXPHIL_TEST_GUARDS=filled: the pages around can be read, and hold what no result survives; that they still do is
 * checked on release. For emulators that read a whole register where the mask of a load says less (qemu 7.2). */
static bool guards_filled(void)
{
    const char *how = getenv("EXPHIL_TEST_GUARDS");
    return how && strcmp(how, "filled") == 0;
}

static void guard(char *page, size_t bytes)
{
    if (guards_filled())
        memset(page, 0xff, bytes);
    else
        test_pages_guard(page, bytes);
}

static void guard_intact(const char *page, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (page[i] != (char)0xff) fail_msg("a kernel wrote outside its memory");
}

/* On a real card, whose kernels read what a case has, tests/cuda/card/card.c has others of these: it is told of the pages. */
void case_gives(void *pages, size_t bytes);
void case_takes(void *pages);

__attribute__((weak)) void case_gives(void *pages, size_t bytes)
{
    (void)pages, (void)bytes;
}

__attribute__((weak)) void case_takes(void *pages)
{
    (void)pages;
}

void *case_alloc(size_t bytes)
{
    size_t page = test_page_bytes(), rounded = (bytes + page - 1) / page * page;
    char *map = test_pages(rounded + 2 * page);
    piece *p = malloc(sizeof *p);
    if (!map || !p) abort();
    guard(map, page);
    guard(map + page + rounded, page);
    *p = (piece){pieces, map, rounded + 2 * page};
    pieces = p;
    memset(map + page, 0xff, rounded);
    case_gives(map + page, rounded);
    return guard_front ? map + page : map + page + rounded - bytes;
}

void *case_mark(void)
{
    return pieces;
}

void case_release_to(void *mark)
{
    while (pieces && pieces != mark) {
        piece *p = pieces;
        pieces = p->next;
        if (guards_filled()) {
            size_t page = test_page_bytes();
            guard_intact(p->map, page);
            guard_intact((char *)p->map + p->bytes - page, page);
        }
        case_takes((char *)p->map + test_page_bytes());
        test_pages_free(p->map, p->bytes);
        free(p);
    }
}

void case_release(void)
{
    case_release_to(NULL);
}

/* ---- numbers ---- */

void case_seed(uint64_t seed)
{
    rng = (xph_rng){seed, XPH_RNG_TEST, 0};
}

double case_uniform(double low, double high)
{
    return (double)(float)(low + (high - low) * xph_rng_double(&rng));
}

int64_t case_below(int64_t bound)
{
    return (int64_t)xph_rng_below(&rng, (uint64_t)bound);
}

double *case_random(int64_t count, double low, double high)
{
    double *x = case_alloc((size_t)count * sizeof *x);
    for (int64_t i = 0; i < count; i++) x[i] = case_uniform(low, high);
    return x;
}

double *case_zeros(int64_t count)
{
    double *x = case_alloc((size_t)count * sizeof *x);
    for (int64_t i = 0; i < count; i++) x[i] = 0.0;
    return x;
}

size_t case_bytes(xph_type type)
{
    return type == XPH_F64 ? sizeof(double) : sizeof(float);
}

static double number_at(xph_type type, const void *x, int64_t i)
{
    return type == XPH_F64 ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

static size_t matrix_bytes(xph_type type, int64_t rows, int64_t width, int64_t ld)
{
    return rows > 0 ? (size_t)((rows - 1) * ld + width) * case_bytes(type) : 0;
}

void *case_give(xph_type type, const double *x, int64_t rows, int64_t width, int64_t ld)
{
    if (!x) return NULL;
    void *to = case_alloc(matrix_bytes(type, rows, width, ld));
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < width; i++) {
            if (type == XPH_F64)
                ((double *)to)[r * ld + i] = x[r * width + i];
            else
                ((float *)to)[r * ld + i] = (float)x[r * width + i];
        }
    }
    return to;
}

double *case_take(xph_type type, const void *x, int64_t rows, int64_t width, int64_t ld)
{
    double *to = case_zeros(rows * width);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < width; i++) to[r * width + i] = number_at(type, x, r * ld + i);
    return to;
}

void case_padding_intact(xph_type type, const void *x, int64_t rows, int64_t width, int64_t ld)
{
    for (int64_t r = 0; r + 1 < rows; r++)
        for (int64_t i = width; i < ld; i++) assert_true(isnan(number_at(type, x, r * ld + i)));
}

/* ---- sets and candidates ---- */

const xph_kernel_set *case_next_set(const xph_kernel_set *last)
{
#define SET(name) &xph_kernels_##name,
    static const xph_kernel_set *const all[] = {XPH_SETS(SET)};
    _Static_assert(sizeof all / sizeof *all <= CASE_SETS, "case_sets must hold all");
    size_t i = 0;
    while (last && all[i++] != last) continue;
    for (; i < sizeof all / sizeof *all; i++) {
        if (all[i]->type == XPH_F64 && all[i]->isa) continue; /* kt_check compares it with the reference */
        if (xph_cpu_has(all[i]->isa)) return all[i];
        print_message("SKIPPED: set %s, which this processor does not have\n", all[i]->name);
    }
    return NULL;
}

int case_sets(const xph_kernel_set *sets[CASE_SETS])
{
    int count = 0;
    EACH_SET(set) sets[count++] = set;
    return count;
}

typedef struct job {
    const xph_phase *phase;
    const void *args;
    int64_t items, thread, threads;
} job;

/* Items thread, thread + threads, ... from the last to the first. */
static void *work(void *given)
{
    const job *j = given;
    for (int64_t i = j->items - 1; i >= 0; i--)
        if (i % j->threads == j->thread) j->phase->run(j->args, i, i + 1);
    return NULL;
}

void case_run(const xph_candidate *candidate, const void *args, int threads)
{
    for (int p = 0; p < XPH_PHASES && candidate->phase[p].run; p++) {
        const xph_phase *phase = &candidate->phase[p];
        int64_t items = phase->items(args);
        test_thread id[16];
        job jobs[16];
        if (threads <= 1) {
            phase->run(args, 0, items);
            continue;
        }
        for (int t = 0; t < threads; t++) {
            jobs[t] = (job){phase, args, items, t, threads};
            test_thread_start(&id[t], work, &jobs[t]);
        }
        for (int t = 0; t < threads; t++) (void)test_thread_join(&id[t]);
    }
}

void *case_scratch(const xph_candidate *candidate, const void *args)
{
    size_t bytes = candidate->scratch_bytes ? candidate->scratch_bytes(args) : 0;
    bool front = guard_front;
    guard_front = bytes % 64 != 0; /* scratch is aligned to 64 bytes */
    void *scratch = case_alloc(bytes);
    guard_front = front;
    return scratch;
}

/* ---- judging ---- */

static double rms(const double *x, int64_t count)
{
    double total = 0.0;
    for (int64_t i = 0; i < count; i++) total += x[i] * x[i];
    return count ? sqrt(total / (double)count) : 0.0;
}

void case_close(const char *what, const double *a, const double *b, int64_t count, double tolerance)
{
    double scale = rms(b, count);
    for (int64_t i = 0; i < count; i++) {
        if (fabs(a[i] - b[i]) <= tolerance * (fabs(b[i]) + scale) + 1e-300) continue;
        fail_msg("%s[%lld] = %.9g, expected %.9g (rms %.3g, tolerance %.3g)", what, (long long)i, a[i], b[i],
                 scale, tolerance);
    }
}

/* EXPHIL_TEST_ZEROS=unsigned: -0 and 0 are the same. For valgrind 3.19, whose -(0 * x) + 0 is -0. */
static bool both_zero(double a, double b)
{
    const char *how = getenv("EXPHIL_TEST_ZEROS");
    return how && strcmp(how, "unsigned") == 0 && fpclassify(a) == FP_ZERO && fpclassify(b) == FP_ZERO;
}

void case_same(const char *what, const double *a, const double *b, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (memcmp(&a[i], &b[i], sizeof *a) == 0 || (isnan(a[i]) && isnan(b[i]))) continue;
        if (both_zero(a[i], b[i])) continue;
        fail_msg("%s[%lld]: %.17g and %.17g differ", what, (long long)i, a[i], b[i]);
    }
}

void case_gradient(const char *what, double (*objective)(void *context), void *context, double *x,
                   const double *gradient, int64_t count, double tolerance)
{
    double *numeric = malloc((size_t)(count + 1) * sizeof *numeric);
    for (int64_t i = 0; i < count; i++) {
        double kept = x[i], h = 1e-5;
        x[i] = kept + h;
        double above = objective(context);
        x[i] = kept - h;
        double below = objective(context);
        x[i] = kept;
        numeric[i] = (above - below) / (2.0 * h);
    }
    case_close(what, gradient, numeric, count, tolerance);
    free(numeric);
}

double case_dot(const double *a, const double *b, int64_t count)
{
    double total = 0.0;
    for (int64_t i = 0; i < count; i++) total += a[i] * b[i];
    return total;
}
