/* The evolution rule of structs: callers of every age, in both directions. */
#include "test.h"

typedef struct settings {
    size_t struct_size;
    int32_t first, second;
} settings; /* "this library" */
typedef struct newer {
    settings old;
    int64_t third;
} newer;
typedef struct older {
    size_t struct_size;
    int32_t first, pad;
} older;

#define LEAST (offsetof(settings, second))

static exphil_status take(settings *known, const void *given, exphil_error *error)
{
    return xph_config_take(known, sizeof *known, given, LEAST, "settings", error);
}

static void same_age_is_copied(void **state)
{
    settings known = {sizeof known, 10, 20}, given = {sizeof given, 1, 2};
    assert_int_equal(take(&known, &given, NULL), EXPHIL_OK);
    assert_int_equal(known.first, 1);
    assert_int_equal(known.second, 2);
    known = (settings){sizeof known, 10, 20};
    assert_int_equal(take(&known, NULL, NULL), EXPHIL_OK);
    assert_int_equal(known.first, 10);
}

static void older_caller_leaves_the_rest_as_it_was(void **state)
{
    settings known = {sizeof known, 0, 20};
    older given = {LEAST, 1, 0x7777};
    assert_int_equal(take(&known, &given, NULL), EXPHIL_OK);
    assert_int_equal(known.first, 1);
    assert_int_equal(known.second, 20);
    assert_int_equal(known.struct_size, sizeof known);
}

static void newer_caller_may_use_only_what_is_known(void **state)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    settings known = {sizeof known, 0, 0};
    newer given = {{sizeof given, 1, 2}, 0};
    assert_int_equal(take(&known, &given, &error), EXPHIL_OK);
    assert_int_equal(known.second, 2);
    assert_int_equal(known.struct_size, sizeof known);
    given.third = 1;
    known = (settings){sizeof known, 5, 6};
    assert_int_equal(take(&known, &given, &error), EXPHIL_E_VERSION);
    assert_non_null(strstr(error.message, "settings"));
    assert_int_equal(known.first, 5);
}

static void nonsense_sizes_are_refused(void **state)
{
    const size_t sizes[] = {0, 1, LEAST - 1, SIZE_MAX, (size_t)1 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        exphil_error error = EXPHIL_ERROR_INIT;
        settings known = {sizeof known, 5, 6}, given = {sizes[i], 1, 2};
        assert_int_equal(take(&known, &given, &error), EXPHIL_E_INVALID);
        assert_non_null(strstr(error.message, "struct_size"));
        assert_int_equal(known.first, 5);
    }
}

static void results_fill_what_the_caller_has(void **state)
{
    settings known = {sizeof known, 3, 4};
    older small = {LEAST, 1, 99};
    assert_int_equal(xph_config_give(&small, &known, sizeof known, LEAST, "settings", NULL), EXPHIL_OK);
    assert_int_equal(small.struct_size, LEAST);
    assert_int_equal(small.first, 3);
    assert_int_equal(small.pad, 99);
    newer large = {{sizeof large, 0, 0}, 77};
    assert_int_equal(xph_config_give(&large, &known, sizeof known, LEAST, "settings", NULL), EXPHIL_OK);
    assert_int_equal(large.old.struct_size, sizeof large);
    assert_int_equal(large.old.second, 4);
    assert_int_equal(large.third, 77);
    assert_int_equal(xph_config_give(NULL, &known, sizeof known, LEAST, "settings", NULL), EXPHIL_E_INVALID);
    settings unset = {0, 8, 8};
    assert_int_equal(xph_config_give(&unset, &known, sizeof known, LEAST, "settings", NULL),
                     EXPHIL_E_INVALID);
    assert_int_equal(unset.first, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_age_is_copied),
        cmocka_unit_test(older_caller_leaves_the_rest_as_it_was),
        cmocka_unit_test(newer_caller_may_use_only_what_is_known),
        cmocka_unit_test(nonsense_sizes_are_refused),
        cmocka_unit_test(results_fill_what_the_caller_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
