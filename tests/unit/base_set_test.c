/* Sets of keys, and names in folders: what a brute force finds too, in an order that no library chooses. */
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- sets ---- */

/* Against a plain table, with keys that repeat, lie together, and are 0. */
static void sets_are_sets(void **state)
{
    enum { KEYS = 3000 };
    static const uint64_t strides[] = {0, 1, 16, 1u << 20, UINT64_C(1) << 40};
    exphil_context *context = test_context(NULL, NULL, 1);
    for (size_t s = 0; s < sizeof strides / sizeof strides[0]; s++) {
        xph_set set;
        bool there[KEYS] = {false};
        int64_t count = 0;
        xph_rng rng = {s, XPH_RNG_TEST, 0};
        xph_set_begin(context, &set);
        assert_false(xph_set_has(&set, 0));
        for (int i = 0; i < 2 * KEYS; i++) {
            size_t k = (size_t)xph_rng_below(&rng, KEYS);
            uint64_t key = strides[s] ? k * strides[s] : k * 0xC2B2AE3D27D4EB4Fu;
            assert_int_equal(xph_set_has(&set, key), there[k]);
            assert_int_equal(xph_set_reserve(&set, 1, NULL), EXPHIL_OK);
            xph_set_add(&set, key);
            xph_set_add(&set, key);
            count += !there[k];
            there[k] = true;
            assert_true(xph_set_has(&set, key));
            assert_int_equal(set.count, count);
            assert_true(set.capacity >= 2 * set.count);
        }
        for (size_t k = 0; k < KEYS; k++) {
            uint64_t key = strides[s] ? k * strides[s] : k * 0xC2B2AE3D27D4EB4Fu;
            assert_int_equal(xph_set_has(&set, key), there[k]);
        }
        xph_set_free(&set);
    }
    exphil_context_destroy(context);
}

/* Without memory a set stays as it was. */
static void sets_without_memory(void **state)
{
    test_memory memory;
    xph_set set;
    exphil_error error = EXPHIL_ERROR_INIT;
    test_memory_init(&memory);
    exphil_context *context = test_context(&memory, NULL, 1);
    xph_set_begin(context, &set);
    assert_int_equal(xph_set_reserve(&set, 8, NULL), EXPHIL_OK);
    for (uint64_t key = 0; key < 8; key++) xph_set_add(&set, key);
    memory.fail_at = atomic_load(&memory.calls) + 1;
    assert_int_equal(xph_set_reserve(&set, 1000, &error), EXPHIL_E_MEMORY);
    for (uint64_t key = 0; key < 20; key++) assert_int_equal(xph_set_has(&set, key), key < 8);
    assert_int_equal(xph_set_reserve(&set, 1000, NULL), EXPHIL_OK);
    for (uint64_t key = 0; key < 20; key++) assert_int_equal(xph_set_has(&set, key), key < 8);
    xph_set_free(&set);
    exphil_context_destroy(context);
    assert_memory_clean(&memory);
}

/* ---- folders ---- */

/* A list hook that gives so many names in a shuffled order, and fails behind some of them. */
typedef struct listing {
    exphil_io hook;
    int count, fail_after;
} listing;

static int32_t list(void *user, const char *folder, int32_t (*name)(void *to, const char *name), void *to)
{
    listing *from = user;
    assert_string_equal(folder, "some/folder");
    for (int i = 0; i < from->count; i++) {
        char text[32];
        if (i == from->fail_after) return EIO;
        snprintf(text, sizeof text, "%04x%s", i * 7919 % from->count, i % 3 ? ".games" : ".other");
        int32_t rc = name(to, text);
        if (rc) return rc;
    }
    return 0;
}

static exphil_context *context_of(listing *from, test_memory *memory)
{
    static test_io io;
    test_io_init(&io);
    from->hook = io.hook;
    from->hook.user = from;
    from->hook.list = list;
    io.hook = from->hook;
    return test_context(memory, &io, 1);
}

static void names_are_sorted(void **state)
{
    static const int counts[] = {0, 1, 2, 3, 64, 65, 1009, 5003};
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        listing from = {.count = counts[c], .fail_after = -1};
        test_memory memory;
        xph_folder all, games;
        test_memory_init(&memory);
        exphil_context *context = context_of(&from, &memory);
        assert_int_equal(xph_folder_list(context, "some/folder", "", &all, NULL), EXPHIL_OK);
        assert_int_equal(xph_folder_list(context, "some/folder", ".games", &games, NULL), EXPHIL_OK);
        assert_int_equal(all.count, counts[c]);
        assert_int_equal(games.count, counts[c] - (counts[c] + 2) / 3);
        for (int64_t i = 1; i < all.count; i++) assert_true(strcmp(all.names[i - 1], all.names[i]) < 0);
        for (int64_t i = 1; i < games.count; i++) assert_true(strcmp(games.names[i - 1], games.names[i]) < 0);
        for (int64_t i = 0; i < games.count; i++) assert_non_null(strstr(games.names[i], ".games"));
        xph_folder_free(&all);
        xph_folder_free(&games);
        exphil_context_destroy(context);
        assert_memory_clean(&memory);
    }
}

static void listing_fails(void **state)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    for (int at = 0; at < 200; at += 13) {
        listing from = {.count = 200, .fail_after = at};
        test_memory memory;
        xph_folder folder;
        test_memory_init(&memory);
        exphil_context *context = context_of(&from, &memory);
        assert_int_equal(xph_folder_list(context, "some/folder", "", &folder, &error), EXPHIL_E_IO);
        assert_int_equal(error.native_code, EIO);
        assert_says(&error, "some/folder");
        assert_int_equal(folder.count, 0);
        from.fail_after = -1;
        memory.fail_at = atomic_load(&memory.calls) + 1 + at;
        assert_int_equal(xph_folder_list(context, "some/folder", "", &folder, &error), EXPHIL_E_MEMORY);
        assert_int_equal(folder.count, 0);
        exphil_context_destroy(context);
        assert_memory_clean(&memory);
    }
}

/* A host of 0.1 has no such hook. */
static void no_list_hook(void **state)
{
    test_io io;
    xph_folder folder;
    exphil_error error = EXPHIL_ERROR_INIT;
    test_io_init(&io);
    io.hook.list = NULL;
    exphil_context *context = test_context(NULL, &io, 1);
    assert_int_equal(xph_folder_list(context, "some/folder", "", &folder, &error), EXPHIL_E_UNSUPPORTED);
    assert_says(&error, "io.list is NULL");
    exphil_context_destroy(context);
}

/* The library's own hook: files and folders of a real folder, but neither itself nor what is above. */
static void real_folders(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_error error = EXPHIL_ERROR_INIT;
    xph_folder folder;
    int32_t kind = EXPHIL_IO_ABSENT;
    test_make_folder(test_path("names"));
    for (int i = 0; i < 500; i++) {
        char name[64];
        snprintf(name, sizeof name, "names/%c%d", 'z' - i % 26, i);
        test_write(test_path(name), "", 0);
    }
    test_write(test_path("names/.hidden"), "", 0);
    assert_int_equal(xph_path_kind(context, test_path("names"), &kind, NULL), EXPHIL_OK);
    assert_int_equal(kind, EXPHIL_IO_FOLDER);
    assert_int_equal(xph_folder_list(context, test_path("names"), "9", &folder, NULL), EXPHIL_OK);
    assert_int_equal(folder.count, 50);
    xph_folder_free(&folder);
    assert_int_equal(xph_folder_list(context, test_path("names"), "", &folder, NULL), EXPHIL_OK);
    for (int64_t i = 0; i < folder.count; i++) {
        assert_true(strcmp(folder.names[i], ".") != 0 && strcmp(folder.names[i], "..") != 0);
        if (i) assert_true(strcmp(folder.names[i - 1], folder.names[i]) < 0);
    }
    assert_in_range(folder.count, 500, 501);
    xph_folder_free(&folder);
    assert_int_equal(xph_folder_list(context, test_path("absent"), "", &folder, &error), EXPHIL_E_IO);
    assert_int_equal(xph_path_kind(context, test_path("absent"), &kind, NULL), EXPHIL_OK);
    assert_int_equal(kind, EXPHIL_IO_ABSENT);
    assert_int_equal(xph_path_kind(context, "", &kind, &error), EXPHIL_E_INVALID);
    exphil_context_destroy(context);
}

static void paths_are_joined(void **state)
{
    static const char *const cases[][3] = {{"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"/", "b", "/b"}};
    exphil_context *context = test_context(NULL, NULL, 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t bytes;
        char *path = xph_path_join(context, cases[i][0], cases[i][1], &bytes);
        assert_string_equal(path, cases[i][2]);
        xph_free(context, path, bytes);
    }
    exphil_context_destroy(context);
}

/* ---- a file that gets its name late ---- */

static exphil_status write_renamed(exphil_context *context, const char *first, const char *name,
                                   exphil_error *error)
{
    xph_file_writer writer;
    XPH_TRY(xph_file_begin(context, first, &writer, error));
    exphil_status status = xph_file_add(&writer, "text", 4, error);
    if (status == EXPHIL_OK) status = xph_file_rename(&writer, name, error);
    if (status == EXPHIL_OK) return xph_file_commit(&writer, error);
    xph_file_cancel(&writer);
    return status;
}

static void files_get_their_names_late(void **state)
{
    test_memory memory;
    exphil_error error = EXPHIL_ERROR_INIT;
    xph_file_writer writer;
    test_memory_init(&memory);
    exphil_context *context = test_context(&memory, NULL, 1);
    const char *first = test_path("first"), *name = test_path("a much longer name than the first");
    assert_int_equal(write_renamed(context, first, name, NULL), EXPHIL_OK);
    assert_false(test_exists(first));
    size_t bytes;
    char *text = test_read(name, &bytes);
    assert_string_equal(text, "text");
    free(text);
    /* a folder stands there: refused, and nothing is left behind */
    test_make_folder(test_path("taken"));
    assert_int_equal(write_renamed(context, first, test_path("taken"), &error), EXPHIL_E_IO);
    assert_says(&error, "a folder");
    assert_false(test_exists(test_path("first.exphil-tmp")));
    /* no memory for the name */
    assert_int_equal(xph_file_begin(context, first, &writer, NULL), EXPHIL_OK);
    memory.fail_at = atomic_load(&memory.calls) + 1;
    assert_int_equal(xph_file_rename(&writer, name, &error), EXPHIL_E_MEMORY);
    xph_file_cancel(&writer);
    assert_int_equal(xph_file_rename(&writer, name, &error), EXPHIL_E_STATE);
    assert_false(test_exists(test_path("first.exphil-tmp")));
    exphil_context_destroy(context);
    assert_memory_clean(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_are_sets),    cmocka_unit_test(sets_without_memory),
        cmocka_unit_test(names_are_sorted), cmocka_unit_test(listing_fails),
        cmocka_unit_test(no_list_hook),     cmocka_unit_test_teardown(real_folders, test_leave),
        cmocka_unit_test(paths_are_joined), cmocka_unit_test_teardown(files_get_their_names_late, test_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
