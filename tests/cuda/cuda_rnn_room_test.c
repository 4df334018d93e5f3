/* Where the emulated device has no room for clusters, less shared memory, or code for older processors, LSTM and GRU are left to
 * other clusters and other kernels. */
#include "device_case.h"

#include <stdlib.h>
#include <string.h>

static const char *name_of(xph_op op, void *args)
{
    uint32_t bit;
    return xph_cuda_choose(op, args, 0, &bit)->name;
}

/* They are not chosen, and one chosen before does nothing. */
static void clusters_without_room(void **state)
{
    uint32_t bit;
    xph_rnn_args a = {.type = XPH_BF16, .batch = 1, .time = 8, .hidden = 64};
    a.packed = emu_alloc(4 * 64 * 64 * 2, sizeof(float));
    xph_rnn_grad_args g = {.fwd = a};
    const xph_cuda_candidate *forward = xph_cuda_choose(XPH_OP_RNN, &a, 0, &bit);
    assert_string_equal(forward->name, "rnn_cluster");
    assert_string_equal(xph_cuda_choose(XPH_OP_RNN, &a, bit, &bit)->name, "rnn_tensor");
    const xph_cuda_candidate *back = xph_cuda_choose(XPH_OP_RNN_GRAD, &g, 0, &bit);
    assert_string_equal(back->name, "rnn_grad_cluster");
    assert_string_equal(xph_cuda_choose(XPH_OP_RNN_GRAD, &g, bit, &bit)->name, "rnn_grad_tensor");
    emu_clusters(1);
    emu_counts_clear();
    assert_int_equal(forward->launch(&a, NULL), XPH_CUDA_NO_ROOM);
    assert_int_equal(back->launch(&g, NULL), XPH_CUDA_NO_ROOM);
    assert_int_equal(emu_count().launches, 0);
    assert_string_equal(name_of(XPH_OP_RNN, &a), "rnn_tensor");
    assert_string_equal(name_of(XPH_OP_RNN_GRAD, &g), "rnn_grad_tensor");
    emu_clusters(16);
    assert_null(emu_fault());
    emu_free((void *)(uintptr_t)a.packed);
}

/* ---- what is launched ---- */

static struct {
    unsigned blocks, clusters;
    size_t shared_bytes;
} seen;

static void watch(const emu_event *event)
{
    if (event->kind != EMU_LAUNCH || event->cluster < 2) return;
    seen.blocks = event->cluster;
    seen.clusters = event->grid[0] / event->cluster;
    seen.shared_bytes = event->shared_bytes;
}

/* The clusters of a layer; math: of floats. */
static void look_at(const xph_rnn_args *args, const char *name)
{
    uint32_t bit;
    xph_rnn_args a = *args;
    const xph_cuda_candidate *k = xph_cuda_choose(XPH_OP_RNN, &a, 0, &bit);
    assert_string_equal(k->name, name);
    seen.blocks = 0;
    emu_dry(watch);
    assert_int_equal(k->launch(&a, NULL), 0);
    emu_timing(EMU_EAGER, 0);
    emu_dry(NULL);
    assert_null(emu_fault());
    assert_true(seen.blocks > 1);
}

/* All that a layer reads and writes. */
static xph_rnn_args layer_of(int64_t hidden, int64_t batch, int32_t math)
{
    enum { TIME = 6, GATES = 4 };
    xph_rnn_args a = {.type = XPH_F32, .math = math, .batch = batch, .time = TIME, .hidden = hidden};
    float *gx = emu_alloc((size_t)(batch * TIME * GATES * hidden) * sizeof *gx, 16);
    float *w = emu_alloc((size_t)(GATES * hidden * hidden) * sizeof *w, 16);
    float *bias = emu_alloc((size_t)(GATES * hidden) * sizeof *bias, 16);
    for (int64_t i = 0; i < batch * TIME * GATES * hidden; i++)
        gx[i] = (float)(i * 7919 % 1013) / 1013.0f - 0.5f;
    for (int64_t i = 0; i < GATES * hidden * hidden; i++) w[i] = (float)(i * 7907 % 1019) / 8192.0f - 0.06f;
    for (int64_t i = 0; i < GATES * hidden; i++) bias[i] = (float)(i % 11) / 64.0f;
    a.gx = gx;
    a.w = a.packed = w;
    a.bias = bias;
    a.ldgx = GATES * hidden;
    a.y = emu_alloc((size_t)(batch * TIME * hidden) * sizeof(float), 16);
    a.ldy = hidden;
    return a;
}

static void layer_end(const xph_rnn_args *a)
{
    emu_free((void *)(uintptr_t)a->gx);
    emu_free((void *)(uintptr_t)a->w);
    emu_free((void *)(uintptr_t)a->bias);
    emu_free(a->y);
}

/* 99 KB, as sm_120 has: 8 blocks of 128 KB of weights do not fit, 16 with half of them do, and give the same bits. */
static void less_shared_memory_takes_more_blocks(void **state)
{
    static const struct {
        int32_t math;
        const char *name;
    } ways[] = {{XPH_MATH_TF32, "rnn_cluster"}, {XPH_MATH_F32, "rnn_cluster_floats"}};
    const size_t less = 99 * 1024;
    for (int i = 0; i < 2; i++) {
        const xph_rnn_args a = layer_of(256, 3, ways[i].math);
        const size_t bytes = (size_t)(a.batch * a.time * a.hidden) * sizeof(float);
        float *want = malloc(bytes);
        uint32_t bit;
        look_at(&a, ways[i].name);
        assert_int_equal(seen.blocks, 8);
        assert_true(seen.shared_bytes > less);
        for (int limited = 0; limited < 2; limited++) {
            xph_rnn_args own = a;
            if (limited) emu_shared(less);
            const xph_cuda_candidate *k = xph_cuda_choose(XPH_OP_RNN, &own, 0, &bit);
            assert_string_equal(k->name, ways[i].name);
            assert_int_equal(k->launch(&own, NULL), 0);
            emu_timing(EMU_EAGER, 0);
            if (!limited) memcpy(want, a.y, bytes);
        }
        look_at(&a, ways[i].name);
        assert_int_equal(seen.blocks, 16);
        assert_true(seen.shared_bytes <= less);
        assert_memory_equal(a.y, want, bytes);
        emu_shared(0);
        free(want);
        layer_end(&a);
    }
}

/* Of the kernel that stays the name is in the plan only where it is what runs. */
static void what_stays_fits_the_device(void **state)
{
    static const struct {
        int64_t hidden;
        size_t shared;
        const char *name;
    } cases[] = {{96, 0, "rnn_stay"},
                 {96, 99 * 1024, "rnn_few"},
                 {64, 99 * 1024, "rnn_stay"},
                 {64, 48 * 1024, "rnn_few"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        xph_rnn_args a = {
            .type = XPH_F32, .math = XPH_MATH_F32, .batch = 1, .time = 5, .hidden = cases[i].hidden};
        emu_shared(cases[i].shared);
        assert_string_equal(name_of(XPH_OP_RNN, &a), cases[i].name);
    }
    emu_shared(0);
}

/* Products in float: clusters that do not run at once take more streams each, or are not taken. */
static void floats_run_at_once(void **state)
{
    const xph_rnn_args few = layer_of(256, 8, XPH_MATH_F32), many = layer_of(256, 40, XPH_MATH_F32);
    xph_rnn_grad_args back = {
        .fwd = {.type = XPH_F32, .math = XPH_MATH_F32, .batch = 16, .time = 6, .hidden = 64}};
    look_at(&few, "rnn_cluster_floats");
    assert_int_equal(seen.clusters, 1);
    xph_rnn_args a = many;
    assert_string_equal(name_of(XPH_OP_RNN, &a), "rnn_few"); /* 32 streams are most of a cluster */
    assert_string_equal(name_of(XPH_OP_RNN_GRAD, &back), "rnn_grad_cluster");
    for (int at_once = 0; at_once < 2; at_once++) {
        uint32_t bit;
        emu_clusters_at_once(at_once);
        const xph_cuda_candidate *k = xph_cuda_choose(XPH_OP_RNN_GRAD, &back, 0, &bit);
        back.scratch = emu_alloc(k->scratch_bytes(&back), 256);
        emu_dry(watch);
        assert_int_equal(k->launch(&back, NULL), 0);
        emu_timing(EMU_EAGER, 0);
        emu_dry(NULL);
        emu_free(back.scratch);
        assert_null(emu_fault());
        assert_int_equal(seen.blocks, 2);
        assert_int_equal(seen.clusters, at_once ? 1 : 2);
    }
    emu_clusters_at_once(0);
    layer_end(&few);
    layer_end(&many);
}

/* Code that a driver made of that for older processors. */
static void code_for_older_processors(void **state)
{
    xph_rnn_args a = {.type = XPH_BF16, .batch = 1, .time = 8, .hidden = 64};
    xph_rnn_args floats = {.type = XPH_F32, .math = XPH_MATH_F32, .batch = 1, .time = 8, .hidden = 256};
    xph_rnn_grad_args g = {.fwd = a};
    for (int code = 80; code <= 90; code++) {
        const bool has = code >= 90;
        emu_code(code);
        assert_int_equal(xph_cuda_code(), code);
        assert_string_equal(name_of(XPH_OP_RNN, &a), has ? "rnn_cluster" : "rnn_tensor");
        assert_string_equal(name_of(XPH_OP_RNN, &floats), has ? "rnn_cluster_floats" : "rnn_few");
        assert_string_equal(name_of(XPH_OP_RNN_GRAD, &g), has ? "rnn_grad_cluster" : "rnn_grad_tensor");
    }
    emu_code(90);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clusters_without_room),      cmocka_unit_test(less_shared_memory_takes_more_blocks),
        cmocka_unit_test(what_stays_fits_the_device), cmocka_unit_test(floats_run_at_once),
        cmocka_unit_test(code_for_older_processors),
    };
    return cmocka_run_group_tests_name("cuda_rnn_room", tests, NULL, NULL);
}
