/* How a convolution over many frames is launched on the emulated GPU, which runs nothing of it. */
#include "device_case.h"

static unsigned parts; /* of the chunk that was launched last */

static void watch(const emu_event *event)
{
    if (event->kind == EMU_LAUNCH) parts = event->grid[2];
}

static unsigned parts_of(const void *state_in, void *state_out)
{
    const xph_conv_args args = {
        .batch = 1, .time = 130, .width = 8, .taps = 4, .state_in = state_in, .state_out = state_out};
    const xph_cuda_candidate *by = xph_cuda_conv;
    while (by->name && !by->accepts(&args)) by++;
    assert_non_null(by->name);
    emu_dry(watch);
    assert_int_equal(by->launch(&args, NULL), 0);
    emu_dry(NULL);
    return parts;
}

/* But for a state that changes in place. */
static void long_chunks_go_in_parts(void **state)
{
    float some[24], other[24];
    assert_int_equal(parts_of(NULL, NULL), 3);
    assert_int_equal(parts_of(some, other), 3);
    assert_int_equal(parts_of(some, NULL), 3);
    assert_int_equal(parts_of(NULL, other), 3);
    assert_int_equal(parts_of(some, some), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(long_chunks_go_in_parts)};
    return cmocka_run_group_tests_name("cuda_conv_parts", tests, NULL, NULL);
}
