/* Blocks that are cut into parts: where the parts lie, and sizes that no number holds. */
#include "test.h"

#include "base/base.h"

static void parts_begin_at_lines(void **unused)
{
    unsigned char block[256];
    xph_cutter measured = {NULL, 0}, c = {block, 0};
    assert_null(xph_cut(&measured, 3, 5, 4));
    assert_null(xph_cut(&measured, 0, 7, 8));
    assert_null(xph_cut(&measured, 1, 1, 1));
    assert_true(measured.at == 128);
    assert_ptr_equal(xph_cut(&c, 3, 5, 4), block);
    assert_ptr_equal(xph_cut(&c, 0, 7, 8), block + 64);
    assert_ptr_equal(xph_cut(&c, 1, 1, 1), block + 64);
    assert_true(c.at == measured.at);
}

static void what_is_too_large_stays_so(void **unused)
{
    const int64_t most = INT64_MAX;
    const struct {
        int64_t count, width;
        size_t element;
    } bad[] = {{most, most, 1}, {most, 2, 8}, {most, 1, 8}, {-1, 1, 1}, {1, -1, 1}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        xph_cutter c = {NULL, 64};
        assert_null(xph_cut(&c, bad[i].count, bad[i].width, bad[i].element));
        assert_true(c.at == SIZE_MAX);
        assert_null(xph_cut(&c, 0, 1, 1));
        assert_null(xph_cut(&c, 1, 1, 1));
        assert_true(c.at == SIZE_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_begin_at_lines),
        cmocka_unit_test(what_is_too_large_stays_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
