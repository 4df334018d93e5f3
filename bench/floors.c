/* The floors of this machine: chains of independent instructions that do nothing else, and sums over memory. Functions are
 * compiled for their instruction set one by one and only called where the processor has it. */
#include "floors.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#  include <immintrin.h>
#endif

static volatile float keep;

#if defined(__x86_64__)

/* ---- arithmetic: enough independent chains to hide the latency of 4 cycles twice a cycle -------------------
 * Chains are variables of their own: gcc keeps an array of them in memory. */

#  define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)

/* A function that runs 12 chains of `step` (of s, the chain, and the constants a and b), 100 times a call. */
#  define START(i) VECTOR s##i = zero;
#  define TURN(i)                                                                                            \
    s##i = STEP(s##i);                                                                                       \
    __asm__ volatile("" : "+v"(s##i));
#  define JOIN(i) zero = ADD(zero, s##i);
#  define CHAINS                                                                                             \
    EACH(START)                                                                                              \
    for (int64_t c = 0; c < calls * 100; c++) {                                                              \
      EACH(TURN)                                                                                             \
    }                                                                                                        \
    EACH(JOIN)

#  define VECTOR  __m256
#  define STEP(s) _mm256_fmadd_ps(s, a, b)
#  define ADD     _mm256_add_ps
__attribute__((target("avx2,fma"))) static void fmas_avx2(void *arg, int64_t calls)
{
    (void)arg;
    __m256 zero = _mm256_setzero_ps(), a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.001f);
    CHAINS
    keep = _mm256_cvtss_f32(zero);
}
#  undef VECTOR
#  undef STEP
#  undef ADD

#  define VECTOR  __m512
#  define STEP(s) _mm512_fmadd_ps(s, a, b)
#  define ADD     _mm512_add_ps
__attribute__((target("avx512f"))) static void fma_avx512(void *arg, int64_t calls)
{
    (void)arg;
    __m512 zero = _mm512_setzero_ps(), a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f);
    CHAINS
    keep = _mm512_cvtss_f32(zero);
}
#  undef STEP

#  define STEP(s) _mm512_dpbf16_ps(s, a, a)
__attribute__((target("avx512f,avx512bf16"))) static void dot_bf16(void *arg, int64_t calls)
{
    (void)arg;
    __m512 zero = _mm512_setzero_ps();
    __m512bh a = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0.5f), _mm512_set1_ps(0.25f));
    CHAINS
    keep = _mm512_cvtss_f32(zero);
}
#  undef VECTOR
#  undef STEP
#  undef ADD

#  define VECTOR  __m512i
#  define STEP(s) _mm512_dpbusd_epi32(s, a, b)
#  define ADD     _mm512_add_epi32
__attribute__((target("avx512f,avx512vnni"))) static void dot_int8(void *arg, int64_t calls)
{
    (void)arg;
    __m512i zero = _mm512_setzero_si512(), a = _mm512_set1_epi8(3), b = _mm512_set1_epi8(-2);
    CHAINS
    keep = (float)_mm512_cvtsi512_si32(zero);
}

/* 2^x as n + r, polynomial of degree 5 in r: rounding, subtraction, five multiply-adds, scaling. What comes out is wanted
 * by nobody, so that the rounds do not wait for each other. */
#  define EXPONENTIAL(i)                                                                                     \
    {                                                                                                        \
      __m512 x = start;                                                                                      \
      __asm__ volatile("" : "+v"(x));                                                                        \
      __m512 r = _mm512_reduce_ps(x, 0);                                                                     \
      __m512 p = _mm512_fmadd_ps(r, c5, c4);                                                                 \
      p = _mm512_fmadd_ps(p, r, c3);                                                                         \
      p = _mm512_fmadd_ps(p, r, c2);                                                                         \
      p = _mm512_fmadd_ps(p, r, c1);                                                                         \
      p = _mm512_fmadd_ps(p, r, c0);                                                                         \
      p = _mm512_scalef_ps(p, x);                                                                            \
      __asm__ volatile("" : : "v"(p));                                                                       \
    }
__attribute__((target("avx512f,avx512dq"))) static void exp_avx512(void *arg, int64_t calls)
{
    (void)arg;
    const __m512 c5 = _mm512_set1_ps(1.33e-3f), c4 = _mm512_set1_ps(9.67e-3f), c3 = _mm512_set1_ps(5.55e-2f);
    const __m512 c2 = _mm512_set1_ps(0.2402f), c1 = _mm512_set1_ps(0.6931f), c0 = _mm512_set1_ps(1.0f);
    __m512 start = _mm512_set1_ps(-1.3f);
    for (int64_t c = 0; c < calls * 100; c++) {
        __asm__ volatile("" : "+v"(start));
        EACH(EXPONENTIAL)
    }
    keep = _mm512_cvtss_f32(start);
}

/* The same with n = (x + 1.5 * 2^23), whose low bits are the exponent. */
#  define EXPONENTIAL_AVX2(i)                                                                                \
    {                                                                                                        \
      __m256 x = start;                                                                                      \
      __asm__ volatile("" : "+x"(x));                                                                        \
      __m256 s = _mm256_add_ps(x, magic), r = _mm256_sub_ps(x, _mm256_sub_ps(s, magic));                     \
      __m256 p = _mm256_fmadd_ps(r, c5, c4);                                                                 \
      p = _mm256_fmadd_ps(p, r, c3);                                                                         \
      p = _mm256_fmadd_ps(p, r, c2);                                                                         \
      p = _mm256_fmadd_ps(p, r, c1);                                                                         \
      p = _mm256_fmadd_ps(p, r, c0);                                                                         \
      __m256i y = _mm256_add_epi32(_mm256_castps_si256(p), _mm256_slli_epi32(_mm256_castps_si256(s), 23));   \
      __asm__ volatile("" : : "x"(y));                                                                       \
    }
__attribute__((target("avx2,fma"))) static void exp_avx2(void *arg, int64_t calls)
{
    (void)arg;
    const __m256 c5 = _mm256_set1_ps(1.33e-3f), c4 = _mm256_set1_ps(9.67e-3f), c3 = _mm256_set1_ps(5.55e-2f);
    const __m256 c2 = _mm256_set1_ps(0.2402f), c1 = _mm256_set1_ps(0.6931f), c0 = _mm256_set1_ps(1.0f);
    const __m256 magic = _mm256_set1_ps(12582912.0f);
    __m256 start = _mm256_set1_ps(-1.3f);
    for (int64_t c = 0; c < calls * 100; c++) {
        __asm__ volatile("" : "+x"(start));
        EACH(EXPONENTIAL_AVX2)
    }
    keep = _mm256_cvtss_f32(start);
}

/* ---- memory -------------------------------------------------------------------------------------------- */

__attribute__((target("avx512f"))) static void read_avx512(void *arg, int64_t calls)
{
    const bench_pass *b = arg;
    __m512 s0 = _mm512_setzero_ps(), s1 = s0, s2 = s0, s3 = s0;
    for (int64_t c = 0; c < calls; c++) {
        for (int64_t at = 0; at < b->count; at += 64) {
            s0 = _mm512_add_ps(s0, _mm512_load_ps(b->in[0] + at));
            s1 = _mm512_add_ps(s1, _mm512_load_ps(b->in[0] + at + 16));
            s2 = _mm512_add_ps(s2, _mm512_load_ps(b->in[0] + at + 32));
            s3 = _mm512_add_ps(s3, _mm512_load_ps(b->in[0] + at + 48));
        }
        __asm__ volatile("" : : : "memory");
    }
    keep = _mm512_cvtss_f32(_mm512_add_ps(_mm512_add_ps(s0, s1), _mm512_add_ps(s2, s3)));
}

__attribute__((target("avx2"))) static void read_avx2(void *arg, int64_t calls)
{
    const bench_pass *b = arg;
    __m256 s0 = _mm256_setzero_ps(), s1 = s0, s2 = s0, s3 = s0;
    for (int64_t c = 0; c < calls; c++) {
        for (int64_t at = 0; at < b->count; at += 32) {
            s0 = _mm256_add_ps(s0, _mm256_load_ps(b->in[0] + at));
            s1 = _mm256_add_ps(s1, _mm256_load_ps(b->in[0] + at + 8));
            s2 = _mm256_add_ps(s2, _mm256_load_ps(b->in[0] + at + 16));
            s3 = _mm256_add_ps(s3, _mm256_load_ps(b->in[0] + at + 24));
        }
        __asm__ volatile("" : : : "memory");
    }
    keep = _mm256_cvtss_f32(_mm256_add_ps(_mm256_add_ps(s0, s1), _mm256_add_ps(s2, s3)));
}

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl");
}
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

/* CPUID leaf 7.1, EAX bit 5; older compilers do not know the name for __builtin_cpu_supports. */
static bool has_bf16(void)
{
    unsigned a = 7, b, c = 1, d;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    return has_avx512() && (a >> 5 & 1);
}
static bool has_vnni(void)
{
    return has_avx512() && __builtin_cpu_supports("avx512vnni");
}

#else
#  define has_avx512() false
#  define has_avx2()   false
#  define has_bf16()   false
#  define has_vnni()   false
#  define fmas_avx2    fma_plain
#  define fma_avx512   fma_plain
#  define dot_bf16     fma_plain
#  define dot_int8     fma_plain
#  define exp_avx2     fma_plain
#  define exp_avx512   fma_plain
#  define read_avx2    read_plain
#  define read_avx512  read_plain
#endif

typedef float lanes __attribute__((vector_size(16)));

static void fma_plain(void *arg, int64_t calls)
{
    (void)arg;
    lanes sum[8] = {{0}}, a = {0.5f, 0.5f, 0.5f, 0.5f}, b = {1, 1, 1, 1};
    for (int64_t c = 0; c < calls * 100; c++)
        for (int i = 0; i < 8; i++) sum[i] = sum[i] * a + b;
    for (int i = 1; i < 8; i++) sum[0] += sum[i];
    keep = sum[0][0];
}

static void read_plain(void *arg, int64_t calls)
{
    const bench_pass *b = arg;
    lanes sum[8] = {{0}};
    for (int64_t c = 0; c < calls; c++) {
        for (int64_t at = 0; at < b->count; at += 32)
            for (int i = 0; i < 8; i++) {
                lanes v;
                memcpy(&v, b->in[0] + at + 4 * i, sizeof v);
                sum[i] += v;
            }
        __asm__ volatile("" : : : "memory");
    }
    for (int i = 1; i < 8; i++) sum[0] += sum[i];
    keep = sum[0][0];
}

static void write_all(void *arg, int64_t calls)
{
    const bench_pass *b = arg;
    for (int64_t c = 0; c < calls; c++) {
        memset((void *)(uintptr_t)b->in[0], (int)c & 1, (size_t)b->count * sizeof(float));
        __asm__ volatile("" : : : "memory");
    }
}

/* Reads four arrays and writes three, as an optimizer must, or fewer (a NULL ends the list), with next to no arithmetic. */
#if defined(__x86_64__)
__attribute__((target("avx512f"))) static void pass_avx512(void *arg, int64_t calls)
{
    const bench_pass *b = arg;
    for (int64_t c = 0; c < calls; c++) {
        for (int64_t at = 0; at + 16 <= b->count; at += 16) {
            __m512 sum = _mm512_loadu_ps(b->in[0] + at);
            for (int i = 1; i < 4 && b->in[i]; i++) sum = _mm512_add_ps(sum, _mm512_loadu_ps(b->in[i] + at));
            for (int i = 0; i < 3 && b->out[i]; i++) _mm512_storeu_ps(b->out[i] + at, sum);
        }
        __asm__ volatile("" : : : "memory");
    }
}
#else
#  define pass_avx512 pass_plain
#endif

static void pass_plain(void *arg, int64_t calls)
{
    const bench_pass *b = arg;
    for (int64_t c = 0; c < calls; c++) {
        for (int64_t at = 0; at + 4 <= b->count; at += 4) {
            lanes sum = {0}, v;
            for (int i = 0; i < 4 && b->in[i]; i++) {
                memcpy(&v, b->in[i] + at, sizeof v);
                sum += v;
            }
            for (int i = 0; i < 3 && b->out[i]; i++) memcpy(b->out[i] + at, &sum, sizeof sum);
        }
        __asm__ volatile("" : : : "memory");
    }
}

/* ---- putting them together ------------------------------------------------------------------------------- */

typedef void (*chain)(void *arg, int64_t calls);

/* Work per ns of the fastest quarter: a floor is what is possible. */
static double rate(chain run, void *arg, double per_call, double effort_ns)
{
    bench_work work = {.run = run, .arg = arg};
    bench_effort effort = {.rounds = 3, .round_ns = effort_ns / 3};
    if (!bench_measure(&work, 1, &effort)) return 0;
    bench_stats stats = bench_stats_of(&work);
    bench_work_free(&work);
    return stats.p25 > 0 ? per_call / stats.p25 : 0;
}

typedef struct crowd {
    chain run;
    atomic_int *arrived;
    int all;
    double ns;
    int64_t calls;
} crowd;

static void *one_of_crowd(void *arg)
{
    crowd *c = arg;
    c->run(NULL, c->calls / 10);
    atomic_fetch_add(c->arrived, 1);
    while (atomic_load(c->arrived) < c->all) sched_yield();
    int64_t before = bench_now();
    c->run(NULL, c->calls);
    c->ns = (double)(bench_now() - before);
    return NULL;
}

/* The median of some tries with all threads at once; each try as long as its slowest thread. */
static double crowd_rate(chain run, double per_call, double alone, int threads, double effort_ns)
{
    enum { MOST = 64, TRIES = 5 };
    if (threads > MOST) threads = MOST;
    double best = 0;
    bench_place place = bench_where();
    bench_roam();
    for (int t = 0; t < TRIES; t++) {
        atomic_int arrived = 0;
        pthread_t id[MOST];
        crowd one[MOST];
        double slowest = 0;
        for (int i = 0; i < threads; i++) {
            one[i] = (crowd){run, &arrived, threads, 0, (int64_t)(effort_ns / TRIES * alone / per_call) + 1};
            if (pthread_create(&id[i], NULL, one_of_crowd, &one[i]) != 0) return 0;
        }
        for (int i = 0; i < threads; i++) {
            pthread_join(id[i], NULL);
            if (one[i].ns > slowest) slowest = one[i].ns;
        }
        double all = (double)one[0].calls * per_call * threads / slowest;
        if (all > best) best = all;
    }
    bench_stay(place);
    return best;
}

static bool has(int kind)
{
    return kind == FLOOR_BF16 ? has_bf16() : kind == FLOOR_INT8 ? has_vnni() : true;
}

bool bench_floor_work(int kind, bench_pass *pass, bench_work *work, double *per_call)
{
    bool wide = has_avx512(), middle = has_avx2();
    if (kind == FLOOR_NONE || !has(kind)) return false;
    if (kind == FLOOR_EXP && !middle) return false;
    static const double done[] = {[FLOOR_BF16] = 12 * 64 * 100, [FLOOR_INT8] = 12 * 128 * 100};
    *work = (bench_work){.arg = pass};
    switch (kind) {
    case FLOOR_FMA:
        work->run = wide ? fma_avx512 : middle ? fmas_avx2 : fma_plain;
        *per_call = wide ? 12 * 32 * 100 : middle ? 12 * 16 * 100 : 8 * 8 * 100;
        break;
    case FLOOR_EXP:
        work->run = wide ? exp_avx512 : exp_avx2;
        *per_call = wide ? 12 * 16 * 100 : 12 * 8 * 100;
        break;
    case FLOOR_READ:
        work->run = wide ? read_avx512 : middle ? read_avx2 : read_plain;
        *per_call = (double)pass->count * sizeof(float);
        break;
    case FLOOR_PASS:
        work->run = wide ? pass_avx512 : pass_plain;
        *per_call = 1;
        break;
    default:
        work->run = kind == FLOOR_BF16 ? dot_bf16 : dot_int8;
        *per_call = done[kind];
    }
    return true;
}

static const int64_t sizes[FLOOR_SIZES] = {
    16 << 10, 128 << 10, 512 << 10, 768 << 10, 1 << 20,  3 << 19,
    2 << 20,  3 << 20,   4 << 20,   8 << 20,   32 << 20, (int64_t)192 << 20,
};

/* 0 where the processor has not got it. */
static double floor_rate(int kind, bench_pass *pass, double effort_ns)
{
    bench_work work;
    double per_call;
    return bench_floor_work(kind, pass, &work, &per_call) ? rate(work.run, pass, per_call, effort_ns) : 0;
}

static void measure_memory(bench_floors *f, double effort_ns)
{
    size_t mark = bench_memory_mark();
    int64_t most = sizes[FLOOR_SIZES - 1];
    bench_pass b = {.in = {bench_memory((size_t)most)}};
    for (int i = 0; i < FLOOR_SIZES; i++) {
        b.count = sizes[i] / (int64_t)sizeof(float);
        f->size[i] = sizes[i];
        f->read[i] = floor_rate(FLOOR_READ, &b, effort_ns);
    }
    f->write = rate(write_all, &b, (double)most, effort_ns);
    bench_memory_release(mark);
}

void bench_floors_measure(bench_floors *f, int threads, double effort_ns)
{
    bench_work fma;
    double flops;
    *f = (bench_floors){.threads = threads < 1 ? 1 : threads};
    bool wide = has_avx512(), middle = has_avx2();
    snprintf(f->isa, sizeof f->isa, "%s", wide ? "avx512" : middle ? "avx2" : "ref");
    if (wide || middle) f->fma_avx2 = rate(fmas_avx2, NULL, 12 * 16 * 100, effort_ns);
    f->exponential = floor_rate(FLOOR_EXP, NULL, effort_ns);
    f->fma = floor_rate(FLOOR_FMA, NULL, effort_ns);
    f->bf16 = floor_rate(FLOOR_BF16, NULL, effort_ns);
    f->int8 = floor_rate(FLOOR_INT8, NULL, effort_ns);
    f->fma_threads = f->fma;
    if (f->threads > 1 && bench_floor_work(FLOOR_FMA, NULL, &fma, &flops))
        f->fma_threads = crowd_rate(fma.run, flops, f->fma, f->threads, effort_ns);
    measure_memory(f, effort_ns);
}

const char *bench_floor_name(int kind)
{
    static const char *const name[] = {"",    "f32 multiply-adds", "bf16 products", "int8 products",
                                       "e^x", "reading",           "a pass"};
    return name[kind];
}

double bench_floors_read(const bench_floors *f, double bytes)
{
    if (bytes <= (double)f->size[0]) return f->read[0];
    for (int i = 1; i < FLOOR_SIZES; i++) {
        double low = (double)f->size[i - 1], high = (double)f->size[i];
        if (bytes > high) continue;
        /* between two sizes the time of a byte goes straight from one to the other */
        double part = (bytes - low) / (high - low);
        return 1 / ((1 - part) / f->read[i - 1] + part / f->read[i]);
    }
    return f->read[FLOOR_SIZES - 1];
}

json_t *bench_floors_json(const bench_floors *f)
{
    json_t *read = json_array();
    for (int i = 0; i < FLOOR_SIZES; i++)
        json_array_append_new(
            read, json_pack("{s:I,s:f}", "bytes", (json_int_t)f->size[i], "gb_per_s", f->read[i]));
    return json_pack("{s:s,s:f,s:f,s:f,s:f,s:f,s:i,s:f,s:o,s:f}", "isa", f->isa, "fma_gflops", f->fma,
                     "fma_avx2_gflops", f->fma_avx2, "bf16_gflops", f->bf16, "int8_gops", f->int8,
                     "exponentials_per_ns", f->exponential, "threads", f->threads, "fma_threads_gflops",
                     f->fma_threads, "read", read, "write_gb_per_s", f->write);
}

void bench_floors_print(const bench_floors *f)
{
    printf("one core (%s): f32 %.1f GFLOP/s (avx2 %.1f), bf16 %.1f, int8 %.1f GOP/s, exp %.3f ns; %d threads "
           "f32 %.1f\n",
           f->isa, f->fma, f->fma_avx2, f->bf16, f->int8, f->exponential > 0 ? 1 / f->exponential : 0.0,
           f->threads, f->fma_threads);
    printf("read GB/s:");
    for (int i = 0; i < FLOOR_SIZES; i++) {
        double kib = (double)f->size[i] / 1024;
        if (kib < 1024)
            printf(" %.0f KiB %.0f,", kib, f->read[i]);
        else
            printf(" %.3g MiB %.0f,", kib / 1024, f->read[i]);
    }
    printf(" write %.0f\n", f->write);
}
