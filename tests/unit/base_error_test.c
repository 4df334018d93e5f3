/* Errors, status names, version: texts are one line, cut between characters, and locale-free. */
#include "test.h"

#include <errno.h>
#include <stdio.h>

static void fills_status_code_and_text(void **state)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(xph_fail(&error, EXPHIL_E_FORMAT, "byte %d of %s", 7, "x.slp"), EXPHIL_E_FORMAT);
    assert_int_equal(error.status, EXPHIL_E_FORMAT);
    assert_int_equal(error.native_code, 0);
    assert_string_equal(error.message, "byte 7 of x.slp");
    assert_int_equal(xph_fail_errno(&error, EXPHIL_E_IO, ENOENT, "open %s", "y"), EXPHIL_E_IO);
    assert_int_equal(error.native_code, ENOENT);
    assert_string_equal(error.message, "open y: No such file or directory");
    assert_int_equal(xph_fail_within(&error, EXPHIL_E_IO, "model %d", 3), EXPHIL_E_IO);
    assert_int_equal(error.native_code, ENOENT);
    assert_string_equal(error.message, "model 3: open y: No such file or directory");
}

static void null_and_unset_errors_are_left_alone(void **state)
{
    assert_int_equal(xph_fail(NULL, EXPHIL_E_BUSY, "x"), EXPHIL_E_BUSY);
    assert_int_equal(xph_fail_errno(NULL, EXPHIL_E_IO, EIO, "x"), EXPHIL_E_IO);
    assert_int_equal(xph_fail_within(NULL, EXPHIL_E_IO, "x"), EXPHIL_E_IO);
    exphil_error unset;
    memset(&unset, 0, sizeof unset);
    assert_int_equal(xph_fail(&unset, EXPHIL_E_BUSY, "x"), EXPHIL_E_BUSY);
    assert_int_equal(unset.status, 0);
}

static void long_texts_are_cut_between_characters(void **state)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    const size_t size = sizeof error.message;
    for (int lead = 0; lead < 4; lead++) {
        char path[600] = "";
        memset(path, 'a', (size_t)lead);
        for (int i = 0; i < 120; i++) strcat(path, "\xE2\x82\xAC"); /* euro signs */
        xph_fail(&error, EXPHIL_E_IO, "%s", path);
        size_t length = strlen(error.message);
        assert_true(length < size && length >= size - 3);
        assert_int_equal((length - (size_t)lead) % 3, 0);
        xph_fail_errno(&error, EXPHIL_E_IO, EACCES, "%s", path);
        assert_non_null(strstr(error.message, "\xE2\x82\xAC: Permission denied"));
        xph_fail_within(&error, EXPHIL_E_IO, "%s", path);
        assert_true(strlen(error.message) < size);
    }
}

static void control_characters_do_not_break_the_line(void **state)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    xph_fail(&error, EXPHIL_E_IO, "could not open \"%s\"", "a\nb\tc\x1b[0m\x7f");
    assert_string_equal(error.message, "could not open \"a?b?c?[0m?\"");
}

static void statuses_have_names(void **state)
{
    assert_string_equal(exphil_status_name(EXPHIL_OK), "EXPHIL_OK");
    assert_string_equal(exphil_status_name(EXPHIL_AGAIN), "EXPHIL_AGAIN");
    assert_string_equal(exphil_status_name(EXPHIL_E_FORMAT), "EXPHIL_E_FORMAT");
    for (exphil_status status = EXPHIL_E_INTERNAL; status <= EXPHIL_AGAIN; status++) {
        assert_string_not_equal(exphil_status_name(status), "EXPHIL_UNKNOWN");
    }
    assert_string_equal(exphil_status_name(EXPHIL_E_INTERNAL - 1), "EXPHIL_UNKNOWN");
    assert_string_equal(exphil_status_name(EXPHIL_AGAIN + 1), "EXPHIL_UNKNOWN");
}

static void version_is_the_headers(void **state)
{
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d cpu:ref", EXPHIL_VERSION_MAJOR, EXPHIL_VERSION_MINOR,
             EXPHIL_VERSION_PATCH);
    assert_int_equal(exphil_version(), EXPHIL_VERSION);
    assert_int_equal(strncmp(exphil_version_string(), text, strlen(text)), 0);
}

static void sizes_are_checked(void **state)
{
    size_t out = 42;
    assert_false(xph_size_add(SIZE_MAX, 1, &out));
    assert_false(xph_size_mul(SIZE_MAX / 2, 3, &out));
    assert_false(xph_size_align(SIZE_MAX - 3, 64, &out));
    assert_int_equal(out, 42);
    assert_true(xph_size_add(SIZE_MAX - 1, 1, &out) && out == SIZE_MAX);
    assert_true(xph_size_mul(SIZE_MAX, 0, &out) && out == 0);
    assert_true(xph_size_mul(0, SIZE_MAX, &out) && out == 0);
    assert_true(xph_size_align(65, 64, &out) && out == 128);
    assert_true(xph_size_align(64, 64, &out) && out == 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fills_status_code_and_text),
        cmocka_unit_test(null_and_unset_errors_are_left_alone),
        cmocka_unit_test(long_texts_are_cut_between_characters),
        cmocka_unit_test(control_characters_do_not_break_the_line),
        cmocka_unit_test(statuses_have_names),
        cmocka_unit_test(version_is_the_headers),
        cmocka_unit_test(sizes_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
