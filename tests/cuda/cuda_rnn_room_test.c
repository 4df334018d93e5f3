/* Where the emulated device has no room for clusters, LSTM and GRU are left to other kernels. */
#include "device_case.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(clusters_without_room)};
    return cmocka_run_group_tests_name("cuda_rnn_room", tests, NULL, NULL);
}
