/* The emulated GPU: every planted mistake is found, the kernel without one passes, and the primitives do what CUDA says
 * they do. A mistake is found by a fault, or by results that are wrong or differ between the schedules. */
#include "test.h"

#include "emu_control.h"
#include "faulty.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { COUNT = FAULTY_THREADS * FAULTY_BLOCKS };

typedef struct result {
    float out[COUNT], sums[FAULTY_BLOCKS];
    char fault[1000]; /* empty: none */
} result;

static float input_at(int i)
{
    return (float)(i % 37) + 0.25f;
}

static result run(int fault, int schedule)
{
    result r = {.fault = ""};
    emu_schedule(schedule);
    float *in = emu_alloc(sizeof r.out, 4), *out = emu_alloc(sizeof r.out, 4),
          *sums = emu_alloc(sizeof r.sums, 4);
    for (int i = 0; i < COUNT; i++) in[i] = input_at(i);
    faulty_launch(fault, in, out, sums);
    if (emu_fault()) snprintf(r.fault, sizeof r.fault, "%s", emu_fault());
    emu_clear();
    memcpy(r.out, out, sizeof r.out);
    memcpy(r.sums, sums, sizeof r.sums);
    emu_free(in);
    emu_free(out);
    emu_free(sums);
    return r;
}

static bool right(const result *r)
{
    for (int b = 0; b < FAULTY_BLOCKS; b++) {
        float sum = 0;
        for (int i = 0; i < FAULTY_THREADS; i++) {
            int at = b * FAULTY_THREADS, next = (i + 1) % FAULTY_THREADS;
            sum += input_at(at + i);
            if (r->out[at + i] != input_at(at + i) + input_at(at + next)) return false;
        }
        if (r->sums[b] != sum) return false;
    }
    return true;
}

static void the_right_kernel_passes(void **state)
{
    for (int s = 0; s < EMU_SCHEDULES; s++) {
        result r = run(FAULTY_NONE, s);
        assert_string_equal(r.fault, "");
        assert_true(right(&r));
    }
    assert_int_equal(emu_allocated(), 0);
}

enum {
    ENDS_AT_PAGE = 1 << EMU_FORWARD | 1 << EMU_RANDOM,
    BEGINS_AT_PAGE = 1 << EMU_REVERSE,
    ANY = 7,
    SOME = 8
};
typedef struct planted {
    int fault, schedules; /* that must see it; SOME: at least one, by wrong results */
    const char *words;    /* of the report */
} planted;

static const planted all_planted[] = {
    {FAULTY_NO_BARRIER_STAGED, SOME, ""},
    {FAULTY_NO_BARRIER_SUM, SOME, ""},
    {FAULTY_NO_WARP_BARRIER, SOME, ""},
    {FAULTY_OUT_OF_RANGE, ENDS_AT_PAGE, "out of bounds"},
    {FAULTY_OUT_OF_RANGE_WRITE, BEGINS_AT_PAGE, "out of bounds"},
    {FAULTY_SHARED_OUT_OF_RANGE, ENDS_AT_PAGE, "out of bounds"},
    {FAULTY_DIVERGENT_SHUFFLE, ANY, "lanes that a mask names do not come"},
    {FAULTY_OTHER_SHUFFLE, ANY, "lanes that a mask names do not come"},
    {FAULTY_STRANGE_LANE, ANY, "shuffle from a lane that its mask does not name"},
    {FAULTY_UNINITIALISED, ANY, ""},
    {FAULTY_EARLY_EXIT, ANY, "threads do not come to a barrier"},
    {FAULTY_DIVERGENT_BARRIER, ANY, "threads do not come to a barrier"},
    {FAULTY_STACK, ANY, "stack overflow"},
    {FAULTY_MISALIGNED, ANY, "misaligned address"},
};

static bool found(const planted *p, int schedule)
{
    result r = run(p->fault, schedule);
    return *p->words ? strstr(r.fault, p->words) != NULL : !right(&r);
}

/* A schedule in which memory lies at its other page is not asked: there the sanitizer would end the program. */
static void planted_faults_are_found(void **state)
{
    assert_int_equal(sizeof all_planted / sizeof *all_planted, FAULTY_COUNT - 1);
    for (size_t i = 0; i < sizeof all_planted / sizeof *all_planted; i++) {
        const planted *p = &all_planted[i];
        int by = 0, asked = p->schedules == SOME ? ANY : p->schedules;
        for (int s = 0; s < EMU_SCHEDULES; s++)
            if (asked >> s & 1 && found(p, s)) by |= 1 << s;
        if (p->schedules == SOME ? !by : by != asked) fail_msg("planted fault %d: found by %d", p->fault, by);
    }
    result r = run(FAULTY_NONE, EMU_FORWARD);
    assert_true(!*r.fault && right(&r));
}

static void reports_say_where(void **state)
{
    result r = run(FAULTY_OUT_OF_RANGE, EMU_FORWARD);
    assert_non_null(strstr(r.fault, "faulty, block (2,0,0)"));
    assert_non_null(strstr(r.fault, "thread (127,0,0)"));
    assert_non_null(strstr(r.fault, "byte 1536 of device memory of 1536"));
    r = run(FAULTY_OUT_OF_RANGE_WRITE, EMU_REVERSE);
    assert_non_null(strstr(r.fault, "byte -4 of device memory of 1536"));
    r = run(FAULTY_SHARED_OUT_OF_RANGE, EMU_FORWARD);
    assert_non_null(strstr(r.fault, "byte 512 of a shared array of 512"));
    r = run(FAULTY_EARLY_EXIT, EMU_RANDOM);
    assert_non_null(strstr(r.fault, "threads 0-126 in __syncthreads"));
    assert_non_null(strstr(r.fault, "faulty.cu:"));
    assert_non_null(strstr(r.fault, "threads 127-127 have ended"));
    r = run(FAULTY_DIVERGENT_SHUFFLE, EMU_FORWARD);
    assert_non_null(strstr(r.fault, "in __shfl_xor_sync mask ffffffff"));
}

/* As on a device: after a fault nothing runs until it is cleared. */
static void faults_stay(void **state)
{
    emu_schedule(EMU_FORWARD);
    float *out = emu_alloc(4, 4);
    too_large_launch(out);
    assert_non_null(strstr(emu_fault(), "refused"));
    int32_t *results = emu_alloc(sizeof(int32_t[14 * 64]), 4), *counter = emu_alloc(sizeof(int32_t[3]), 4);
    collectives_launch(results, counter);
    assert_int_equal(results[0], -1);
    emu_clear();
    emu_free(out);
    emu_free(results);
    emu_free(counter);
    assert_int_equal(emu_allocated(), 0);
}

static int32_t collective_wanted(int which, int thread)
{
    int lane = thread % 32, warp = thread - lane, segment = lane % 8;
    switch (which) {
    case 0:
        return warp + 5;
    case 1:
        return thread - segment + (lane + 3) % 8;
    case 2:
        return warp + (lane ^ 3);
    case 3:
        return warp + (lane & 4 ? lane ^ 4 : lane);
    case 4:
        return lane + 2 < 32 ? thread + 2 : thread;
    case 5:
        return segment + 3 < 8 ? thread + 3 : thread;
    case 6:
        return lane >= 2 ? thread - 2 : thread;
    case 7:
        return segment >= 3 ? thread - 3 : thread;
    case 8:
        return 0x49249249;
    case 9:
        return 1;
    case 10:
        return 1;
    case 11:
        return thread ^ 1;
    case 12:
        return 8;
    default:
        return lane ? __builtin_ctz((unsigned)lane) + 1 : 0;
    }
}

static void collectives_are_those_of_cuda(void **state)
{
    for (int s = 0; s < EMU_SCHEDULES; s++) {
        emu_schedule(s);
        int32_t *results = emu_alloc(sizeof(int32_t[14 * 64]), 4),
                *counter = emu_alloc(sizeof(int32_t[3]), 4);
        memset(counter, 0, sizeof(int32_t[3]));
        collectives_launch(results, counter);
        assert_null(emu_fault());
        for (int i = 0; i < 14 * 64; i++) assert_int_equal(results[i], collective_wanted(i / 64, i % 64));
        assert_int_equal(counter[0], 63 * 32);
        assert_int_equal(counter[1], 63);
        assert_int_equal(counter[2], 7);
        emu_free(results);
        emu_free(counter);
    }
}

static void grids_and_dynamic_memory(void **state)
{
    enum { THREADS = 12 * 96, LENGTH = THREADS - 41 };
    for (int s = 0; s < EMU_SCHEDULES; s++) {
        emu_schedule(s);
        float *in = emu_alloc(sizeof(float[LENGTH]), 4), *out = emu_alloc(sizeof(float[LENGTH]), 4);
        for (int i = 0; i < LENGTH; i++) in[i] = input_at(i);
        dynamic_launch(in, out, 3.0f, LENGTH);
        assert_null(emu_fault());
        for (int i = 0; i < LENGTH; i++) assert_true(out[i] == 3.0f * input_at(i));
        emu_free(in);
        emu_free(out);
    }
}

/* The narrow number nearest to x among all finite ones of 16 bits, of two the one whose last bit is 0. */
static void check_rounding(uint16_t (*narrow)(float), float (*wide)(uint16_t), uint16_t infinity)
{
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        float x = wide((uint16_t)bits);
        if ((bits & 0x7fff) > infinity) assert_true(isnan(x) && (narrow(x) & 0x7fff) > infinity);
        if ((bits & 0x7fff) <= infinity) assert_int_equal(narrow(x), bits);
    }
    for (uint16_t bits = 0; bits < infinity - 1; bits++) {
        float below = wide(bits), above = wide((uint16_t)(bits + 1)), middle = below + (above - below) / 2;
        assert_true(below < middle && middle < above);
        assert_int_equal(narrow(middle), bits + (bits & 1));
        assert_int_equal(narrow(nextafterf(middle, 0)), bits);
        assert_int_equal(narrow(-nextafterf(middle, INFINITY)), (bits + 1) | 0x8000);
    }
}

static void narrow_numbers_round_to_even(void **state)
{
    check_rounding(bf16_of, of_bf16, 0x7f80);
    check_rounding(half_of, of_half, 0x7c00);
    assert_int_equal(half_of(65519.996f), 0x7bff);
    assert_int_equal(half_of(65520.0f), 0x7c00);
    assert_int_equal(bf16_of(3.4e38f), 0x7f80);
    assert_int_equal(half_of(-0.0f), 0x8000);
}

/* ---- clusters ---- */

enum { CLUSTER_BLOCKS = 32, CLUSTER_NUMBERS = CLUSTER_BLOCKS * CLUSTER_THREADS };

/* What a run of neighbours said, "wrong" for results, "" where all is right. */
static const char *neighbours_said(int fault, int size, int schedule)
{
    static char said[1000];
    emu_schedule(schedule);
    float *in = emu_alloc(CLUSTER_NUMBERS * sizeof *in, 4),
          *out = emu_alloc(CLUSTER_NUMBERS * sizeof *out, 4);
    for (int i = 0; i < CLUSTER_NUMBERS; i++) in[i] = input_at(i);
    cluster_launch(fault, size, CLUSTER_BLOCKS, in, out);
    snprintf(said, sizeof said, "%s", emu_fault() ? emu_fault() : "");
    emu_clear();
    for (int i = 0; i < CLUSTER_NUMBERS && !said[0]; i++) {
        int block = i / CLUSTER_THREADS, next = block / size * size + (block % size + 1) % size;
        if (out[i] != in[next * CLUSTER_THREADS + i % CLUSTER_THREADS]) snprintf(said, sizeof said, "wrong");
    }
    emu_free(in);
    emu_free(out);
    return said;
}

static void blocks_of_a_cluster_see_each_other(void **state)
{
    const int sizes[] = {1, 2, 4, 8, 16};
    for (int s = 0; s < EMU_SCHEDULES; s++)
        for (int i = 0; i < 5; i++) assert_string_equal(neighbours_said(CLUSTER_RIGHT, sizes[i], s), "");
    assert_non_null(strstr(neighbours_said(CLUSTER_RIGHT, 32, 0), "refused"));
    assert_non_null(strstr(neighbours_said(CLUSTER_RIGHT, 3, 0), "refused"));
    assert_non_null(strstr(neighbours_said(CLUSTER_RIGHT, 0, 0), "refused"));
}

static void faults_of_clusters_are_found(void **state)
{
    static const char *const words[CLUSTER_COUNT] = {
        [CLUSTER_EARLY] = "before the first",
        [CLUSTER_ENDS] = "which has ended",
        [CLUSTER_HALF] = "barrier of their cluster",
        [CLUSTER_STRANGE] = "block 4 of a cluster of 4",
        [CLUSTER_BEYOND] = "byte 192 of a shared array of 192",
        [CLUSTER_LOCAL] = "no address of shared memory",
    };
    for (int fault = 0; fault < CLUSTER_COUNT; fault++) {
        if (!words[fault]) continue;
        bool found = false;
        for (int s = 0; s < EMU_SCHEDULES; s++)
            found |= strstr(neighbours_said(fault, 4, s), words[fault]) != NULL;
        if (!found) print_message("%s: %s\n", words[fault], neighbours_said(fault, 4, EMU_FORWARD));
        assert_true(found);
    }
    bool wrong = false;
    for (int s = 0; s < EMU_SCHEDULES; s++)
        wrong |= strcmp(neighbours_said(CLUSTER_NO_BARRIER, 4, s), "wrong") == 0;
    assert_true(wrong);
    for (int s = 0; s < EMU_SCHEDULES; s++)
        assert_string_equal(neighbours_said(CLUSTER_OWN_BARRIER, 4, s), "wrong");
    assert_int_equal(emu_allocated(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_right_kernel_passes),
                                       cmocka_unit_test(planted_faults_are_found),
                                       cmocka_unit_test(reports_say_where),
                                       cmocka_unit_test(faults_stay),
                                       cmocka_unit_test(collectives_are_those_of_cuda),
                                       cmocka_unit_test(grids_and_dynamic_memory),
                                       cmocka_unit_test(narrow_numbers_round_to_even),
                                       cmocka_unit_test(blocks_of_a_cluster_see_each_other),
                                       cmocka_unit_test(faults_of_clusters_are_found)};
    return cmocka_run_group_tests_name("cuda_faults", tests, NULL, NULL);
}
