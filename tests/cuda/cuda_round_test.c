/* Rounding of weights on the emulated GPU: bit for bit what the CPU makes (kernels.kernel_narrow_test says what that is),
 * of ordinary numbers and of such as lie around every bound. */
#include "device_case.h"
#include "narrow_case.h"

#include <string.h>

/* What rounding leaves of out rows of in weights. */
typedef struct rounded {
    float *to, *scale;
    void *q;
} rounded;

static xph_round_args args_of(xph_type weights, int64_t in, int64_t out, const float *w, const rounded *r)
{
    return (xph_round_args){.type = XPH_F32,
                            .weights = weights,
                            .in = in,
                            .out = out,
                            .w = w,
                            .to = r->to,
                            .q = r->q,
                            .scale = r->scale};
}

static size_t bytes_of_q(xph_type weights, int64_t count)
{
    return (size_t)count * (weights == XPH_I8 ? 1 : 2);
}

static rounded on_cpu(xph_type weights, const float *w, int64_t in, int64_t out)
{
    const xph_kernel_set *set = &xph_kernels_f32_ref;
    rounded r = {case_alloc((size_t)(in * out) * sizeof *r.to), case_alloc((size_t)out * sizeof *r.scale),
                 case_alloc(bytes_of_q(weights, in * out))};
    const xph_round_args args = args_of(weights, in, out, w, &r);
    case_run(set->op[XPH_OP_ROUND], &args, 1);
    return r;
}

/* In place, or into a place of its own. */
static void on_device(xph_type weights, const float *w, int64_t in, int64_t out, bool in_place,
                      const rounded *want)
{
    size_t bytes = (size_t)(in * out) * sizeof *w;
    float *given = emu_alloc(bytes, sizeof *w);
    rounded r = {in_place ? given : emu_alloc(bytes, sizeof *w),
                 emu_alloc((size_t)out * sizeof *r.scale, sizeof *w),
                 emu_alloc(bytes_of_q(weights, in * out), 2)};
    memcpy(given, w, bytes);
    const xph_round_args args = args_of(weights, in, out, given, &r);
    assert_true(xph_cuda_round[0].accepts(&args));
    device_do(xph_cuda_round, &args);
    if (emu_fault()) fail_msg("%s", emu_fault());
    assert_memory_equal(r.to, want->to, bytes);
    assert_memory_equal(r.q, want->q, bytes_of_q(weights, in * out));
    if (weights == XPH_I8) assert_memory_equal(r.scale, want->scale, (size_t)out * sizeof *r.scale);
    if (!in_place) assert_memory_equal(given, w, bytes);
    if (!in_place) emu_free(r.to);
    emu_free(r.scale);
    emu_free(r.q);
    emu_free(given);
}

static void check(const float *w, int64_t in, int64_t out)
{
    for (int i = 0; i < 2; i++) {
        const xph_type weights = i ? XPH_I8 : XPH_BF16;
        rounded want = on_cpu(weights, w, in, out);
        for (int schedule = 0; schedule < EMU_SCHEDULES; schedule++) {
            emu_schedule(schedule);
            on_device(weights, w, in, out, schedule % 2, &want);
        }
    }
    assert_int_equal(emu_allocated(), 0);
}

static const struct {
    int64_t in, out;
} shapes[] = {{1, 1},   {5, 3},    {37, 21}, {0, 4},   {7, 0},    {256, 9},
              {257, 2}, {1000, 3}, {31, 70}, {64, 33}, {520, 11}, {2, 300}};

static void matrices(void **state)
{
    for (size_t i = 0; i < NARROW_KINDS * sizeof shapes / sizeof *shapes; i++) {
        int64_t in = shapes[i / NARROW_KINDS].in, out = shapes[i / NARROW_KINDS].out;
        case_seed(i);
        check(narrow_numbers((int)(i % NARROW_KINDS), in * out), in, out);
        case_release();
    }
}

static void special_numbers(void **state)
{
    check(narrow_special, NARROW_SPECIAL, 1);
    check(narrow_special, 1, NARROW_SPECIAL);
    check(narrow_special, 3, 4);
    case_release();
}

static void what_is_no_narrow_type_is_refused(void **state)
{
    for (xph_type weights = 0; weights < 8; weights++) {
        const xph_round_args args = {.type = XPH_F32, .weights = weights, .in = 8, .out = 8};
        assert_int_equal(xph_cuda_round[0].accepts(&args), weights == XPH_BF16 || weights == XPH_I8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(matrices), cmocka_unit_test(special_numbers),
                                       cmocka_unit_test(what_is_no_narrow_type_is_refused)};
    return cmocka_run_group_tests_name("cuda_round", tests, NULL, NULL);
}
