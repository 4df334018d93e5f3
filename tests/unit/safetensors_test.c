/* safetensors: what the format allows is read, everything else is refused with a place; what is written is
 * canonical, aligned, summed, and read by the format's own package; damage, missing memory and failing
 * files. */
#include "context_case.h"

#include "file/file.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- reading ------------------------------------------------------------------------------------------- */

/* Length, header, data_bytes of 0, 1, 2, ...; malloc'ed. */
static uint8_t *make_file(const char *header, size_t data_bytes, size_t *bytes)
{
    size_t length = strlen(header);
    uint8_t *file = malloc(8 + length + data_bytes);
    for (int i = 0; i < 8; i++) file[i] = (uint8_t)((uint64_t)length >> 8 * i);
    memcpy(file + 8, header, length);
    for (size_t i = 0; i < data_bytes; i++) file[8 + length + i] = (uint8_t)i;
    *bytes = 8 + length + data_bytes;
    return file;
}

static exphil_status parse_copy(const void *data, size_t bytes, exphil_error *error)
{
    xph_tensors tensors = {.count = -1};
    uint8_t *copy = malloc(bytes ? bytes : 1); /* so that a sanitizer sees the first byte read behind it */
    memcpy(copy, data, bytes);
    exphil_status status = xph_tensors_parse(context, copy, bytes, "weights", &tensors, error);
    if (status == EXPHIL_OK)
        xph_tensors_free(&tensors);
    else
        assert_int_equal(tensors.count, -1);
    free(copy);
    return status;
}

static void taken(const char *header, size_t data_bytes)
{
    size_t bytes;
    exphil_error error = EXPHIL_ERROR_INIT;
    uint8_t *file = make_file(header, data_bytes, &bytes);
    if (parse_copy(file, bytes, &error) != EXPHIL_OK) fail_msg("%s: %s", header, error.message);
    free(file);
}

static void refused(const char *header, size_t data_bytes, const char *message)
{
    size_t bytes;
    exphil_error error = EXPHIL_ERROR_INIT;
    uint8_t *file = make_file(header, data_bytes, &bytes);
    assert_int_equal(parse_copy(file, bytes, &error), EXPHIL_E_FORMAT);
    assert_string_equal(error.message, message);
    free(file);
}

#define T(name, dtype, shape, begin, end)                                                                    \
  "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end "]}"

static void what_the_format_allows(void **state)
{
    taken("{}", 0);
    taken("{}          ", 0);
    taken("{\"__metadata__\":{}}", 0);
    taken("{" T("a", "F32", "[2]", 0, 8) "," T("b", "U8", "[]", 8, 9) "}", 9);
    taken("{" T("b", "U8", "[1,1,1,1]", 8, 9) "," T("a", "F32", "[2]", 0, 8) "}", 9); /* in any order */
    taken("{" T("a", "F64", "[0]", 0, 0) "," T("b", "F16", "[0,5]", 0, 0) "," T("c", "I8", "[3]", 0, 3) "}",
          3);
    taken("{" T("a", "F64", "[3,0]", 3, 3) "," T("c", "BOOL", "[3]", 0, 3) "}", 3);
    taken("{" T("a", "F4", "[4]", 0, 2) "," T("c", "F6_E2M3", "[4]", 2, 5) "}", 5);
    taken("{\"__metadata__\":{\"exphil.data_xxh64\":\"ef46db3751d8e999\"}}", 0); /* XXH64 of nothing */
}

static void refusals_name_the_place(void **state)
{
    refused("[]", 0, "weights, byte 8: '{' must stand here");
    refused(" {}", 0, "weights, byte 8: '{' must stand here");
    refused("{} x", 0, "weights, byte 11: something follows the end");
    refused("{\"a\":1}", 0, "weights: a is no object");
    refused("{" T("a", "F32", "[2]", 0, 8) "}", 9,
            "weights: the tensors end at byte 8 of the data, the file at byte 9");
    refused("{" T("a", "F32", "[2]", 0, 8) "}", 7, "weights: a.data_offsets[1] is 8, not in 0..7");
    refused("{" T("a", "F32", "[2]", 8, 0) "}", 8, "weights: a.data_offsets[1] is 0, not in 8..8");
    refused("{" T("a", "F32", "[2]", 0, 4) "}", 4,
            "weights: tensor \"a\" has 4 bytes of data, its shape needs 8");
    refused("{" T("a", "U8", "[2]", 0, 2) "," T("b", "U8", "[2]", 1, 3) "}", 3,
            "weights: tensor \"b\" begins at byte 1 of the data, inside the one that ends at byte 2");
    refused("{" T("a", "U8", "[2]", 0, 2) "," T("b", "U8", "[2]", 3, 5) "}", 5,
            "weights: tensor \"b\" begins at byte 3 of the data, behind a hole from byte 2");
    refused("{" T("a", "U8", "[2]", 1, 3) "}", 3,
            "weights: tensor \"a\" begins at byte 1 of the data, behind a hole from byte 0");
    refused("{" T("a", "F5", "[2]", 0, 8) "}", 8, "weights: a has an unknown dtype");
    refused("{" T("a", "F4", "[3]", 0, 1) "}", 1,
            "weights: a has a shape that is too large, or not whole bytes");
    refused("{" T("a", "U8", "[4294967296,4294967296]", 0, 0) "}", 0,
            "weights: a has a shape that is too large, or not whole bytes");
    refused("{" T("a", "F64", "[2305843009213693952]", 0, 0) "}", 0,
            "weights: a has a shape that is too large, or not whole bytes");
    refused("{" T("a", "U8", "[-1]", 0, 0) "}", 0,
            "weights: a.shape[0] is -1, not in 0..9223372036854775807");
    refused("{" T("a", "U8", "[1.0]", 0, 1) "}", 1, "weights: a.shape[0] is no integer of 64 bits");
    refused("{" T("a", "U8", "[1,1,1,1,1]", 0, 1) "}", 1, "weights: a.shape has more than 4 dimensions");
    refused("{" T("", "U8", "[1]", 0, 1) "}", 1,
            "weights: \"\" is not named with 1 to 127 printable ASCII characters");
    refused("{" T("a", "U8", "[1]", 0, 1) "," T("a", "U8", "[1]", 1, 2) "}", 2,
            "weights, byte 61: this name stands twice");
    refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"x\":1}}", 1,
            "weights: a has fields besides dtype, shape and data_offsets");
    refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, "weights: a.data_offsets is missing");
    refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}}", 1,
            "weights: a.data_offsets has not two numbers");
    refused("{\"__metadata__\":{\"a\":1}}", 0, "weights: __metadata__.a is no text");
    refused("{\"__metadata__\":[]}", 0, "weights: __metadata__ is no object");
    refused("{\"__metadata__\":{\"exphil.data_xxh64\":\"EF46DB3751D8E999\"}}", 0,
            "weights: __metadata__.exphil.data_xxh64 is not 16 digits of 0-9a-f");
    refused("{\"__metadata__\":{\"exphil.data_xxh64\":\"ef46db3751d8e998\"}}", 0,
            "weights: the data is damaged: checksum ef46db3751d8e999, ef46db3751d8e998 expected");
}

static void names_and_lengths(void **state)
{
    char header[512], name[200];
    uint8_t longest[16] = {1, 0, 16, 0, 0, 0, 0, 0, '{', '}'};
    exphil_error error = EXPHIL_ERROR_INIT;
    memset(name, 'n', sizeof name);
    snprintf(header, sizeof header, "{\"%.127s\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}",
             name);
    taken(header, 0);
    size_t bytes;
    snprintf(header, sizeof header, "{\"%.128s\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}",
             name);
    uint8_t *file = make_file(header, 0, &bytes);
    assert_int_equal(parse_copy(file, bytes, &error), EXPHIL_E_FORMAT);
    free(file);
    assert_int_equal(parse_copy(longest, 16, &error), EXPHIL_E_FORMAT);
    assert_string_equal(error.message, "weights: byte 0 says the header has 1048577 bytes; 8 follow, at most "
                                       "1048576 are allowed: no safetensors file, or a cut one");
    assert_int_equal(parse_copy("abc", 3, &error), EXPHIL_E_FORMAT);
    assert_string_equal(error.message, "weights: ends at byte 3, inside the length of the header");
    memset(longest, 0, 8);
    assert_int_equal(parse_copy(longest, 8, &error), EXPHIL_E_FORMAT);
    memset(longest, 0xFF, 8);
    assert_int_equal(parse_copy(longest, 16, &error), EXPHIL_E_FORMAT);
}

/* 4096 tensors in reverse order of their data, and one more. */
static void most_tensors(void **state)
{
    for (int count = 4096; count <= 4097; count++) {
        char *header = malloc(1 << 20);
        size_t used = 0, bytes;
        for (int i = count - 1; i >= 0; i--) {
            used += (size_t)snprintf(header + used, 128,
                                     "%c\"t%d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%d,%d]}",
                                     used ? ',' : '{', i, i, i + 1);
        }
        snprintf(header + used, 2, "}");
        uint8_t *file = make_file(header, (size_t)count, &bytes);
        exphil_error error = EXPHIL_ERROR_INIT;
        xph_tensors tensors;
        exphil_status status = xph_tensors_parse(context, file, bytes, "weights", &tensors, &error);
        if (count == 4096) {
            assert_int_equal(status, EXPHIL_OK);
            for (int i = 0; i < count; i++)
                assert_int_equal(*(const uint8_t *)tensors.tensor[i].data, i & 255);
            xph_tensors_free(&tensors);
        } else {
            assert_int_equal(status, EXPHIL_E_FORMAT);
            assert_string_equal(error.message, "weights: 4097 tensors, at most 4096 are allowed");
        }
        free(file);
        free(header);
    }
}

/* ---- writing ------------------------------------------------------------------------------------------- */

#define COUNT 5
static uint8_t values[512];

static void describe(xph_array array[COUNT])
{
    for (size_t i = 0; i < sizeof values; i++) values[i] = (uint8_t)(3 * i + 1);
    array[0] = (xph_array){"odd", XPH_DTYPE_U8, 1, {3, 1, 1, 1}, values, 3, 0};
    array[1] = (xph_array){"z.weight", XPH_DTYPE_F32, 2, {4, 8, 1, 1}, values + 10, 128, 0};
    array[2] = (xph_array){"a.weight", XPH_DTYPE_F64, 4, {2, 2, 2, 2}, values + 64, 128, 0};
    array[3] = (xph_array){"half", XPH_DTYPE_F32, 1, {8, 1, 1, 1}, values + 128, 32, 0};
    array[4] = (xph_array){"scalar", XPH_DTYPE_I64, 0, {1, 1, 1, 1}, values + 256, 8, 0};
}

static const xph_pair pairs[] = {{"b", "2"}, {"a", "1\n\"\xC3\xA9"}, {"z.last", ""}};

static exphil_status save(exphil_context *with, const xph_array *array, const xph_pair *some,
                          const char *path, exphil_error *error)
{
    xph_file_writer writer = {.context = with};
    exphil_status status = xph_tensors_write(with, array, COUNT, some, 3, path, &writer, error);
    return status < 0 ? status : xph_file_commit(&writer, error);
}

static void good_save(const xph_array *array, const xph_pair *some, const char *path)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    if (save(context, array, some, path, &error) != EXPHIL_OK) fail_msg("%s", error.message);
}

static void check_content(const xph_tensors *file)
{
    xph_array array[COUNT];
    describe(array);
    assert_int_equal(file->count, COUNT);
    for (int i = 0; i < COUNT; i++) {
        const xph_array *found = xph_tensors_find(file, array[i].name);
        assert_non_null(found);
        assert_int_equal(found->dtype, array[i].dtype);
        assert_int_equal(found->rank, array[i].rank);
        assert_memory_equal(found->dim, array[i].dim, sizeof found->dim);
        assert_int_equal(found->bytes, array[i].bytes);
        assert_memory_equal(found->data, array[i].data, found->bytes);
    }
    for (int i = 0; i < 3; i++) assert_string_equal(xph_tensors_metadata(file, pairs[i].key), pairs[i].value);
    assert_null(xph_tensors_metadata(file, "c"));
    assert_null(xph_tensors_find(file, "c"));
}

static void written_is_canonical_and_aligned(void **state)
{
    xph_array array[COUNT], turned[COUNT];
    xph_pair other[3] = {pairs[2], pairs[0], pairs[1]};
    describe(array);
    for (int i = 0; i < COUNT; i++) turned[i] = array[COUNT - 1 - i];
    const char *one = test_path("one.safetensors"), *two = test_path("two.safetensors");
    good_save(array, pairs, one);
    good_save(turned, other, two);
    size_t bytes, bytes_two;
    char *file = test_read(one, &bytes), *file_two = test_read(two, &bytes_two);
    assert_int_equal(bytes, bytes_two);
    assert_memory_equal(file, file_two, bytes);
    uint64_t header = 0;
    memcpy(&header, file, 8);
    assert_int_equal((header + 8) % 64, 0);
    xph_tensors tensors;
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(xph_tensors_parse(context, file, bytes, "weights", &tensors, &error), EXPHIL_OK);
    check_content(&tensors);
    static const char *const order[COUNT] = {"a.weight", "z.weight", "half", "scalar", "odd"};
    static const size_t align[COUNT] = {64, 64, 32, 8, 1};
    for (int i = 0; i < COUNT; i++) {
        assert_string_equal(tensors.tensor[i].name, order[i]);
        assert_int_equal((size_t)((const char *)tensors.tensor[i].data - file) % align[i], 0);
    }
    xph_tensors_free(&tensors);
    free(file);
    free(file_two);
}

static void writer_refuses(void **state)
{
    xph_array array[COUNT];
    xph_file_writer writer = {.context = context};
    exphil_error error = EXPHIL_ERROR_INIT;
    const char *path = test_path("never.safetensors");
    describe(array);
    array[0].name = "__metadata__";
    assert_int_equal(xph_tensors_write(context, array, COUNT, NULL, 0, path, &writer, &error),
                     EXPHIL_E_INVALID);
    describe(array);
    array[0].name = "half";
    assert_int_equal(xph_tensors_write(context, array, COUNT, NULL, 0, path, &writer, &error),
                     EXPHIL_E_INVALID);
    assert_string_equal(error.message, "two tensors have the name \"half\"");
    describe(array);
    array[0].bytes = 4;
    assert_int_equal(xph_tensors_write(context, array, COUNT, NULL, 0, path, &writer, &error),
                     EXPHIL_E_INVALID);
    describe(array);
    const xph_pair wrong = {"k", "\xFF"};
    assert_int_equal(xph_tensors_write(context, array, COUNT, &wrong, 1, path, &writer, &error),
                     EXPHIL_E_INVALID);
    size_t size = 1 << 20;
    char *text = malloc(size + 1);
    memset(text, 'x', size);
    text[size] = '\0';
    const xph_pair large = {"k", text};
    assert_int_equal(xph_tensors_write(context, array, COUNT, &large, 1, path, &writer, &error),
                     EXPHIL_E_UNSUPPORTED);
    free(text);
    assert_false(test_exists(path));
    assert_null(writer.file);
}

static void python_reads_and_writes(void **state)
{
    xph_array array[COUNT];
    describe(array);
    char said[1024], wanted[1024];
    unsigned total = 0;
    for (int i = 0; i < COUNT; i++) {
        for (size_t b = 0; b < array[i].bytes; b++) total += ((const uint8_t *)array[i].data)[b];
    }
    const char *one = test_path("one.safetensors"), *back = test_path("back.safetensors");
    good_save(array, pairs, one);
    if (!test_safetensors_rewrite(one, back, said, sizeof said)) skip();
    snprintf(wanted, sizeof wanted, "%d %u a b exphil.data_xxh64 z.last\n", COUNT, total);
    assert_string_equal(said, wanted);
    size_t bytes;
    char *file = test_read(back, &bytes);
    xph_tensors tensors;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (xph_tensors_parse(context, file, bytes, "weights", &tensors, &error) != EXPHIL_OK)
        fail_msg("%s", error.message);
    check_content(&tensors);
    xph_tensors_free(&tensors);
    free(file);
}

/* ---- damage -------------------------------------------------------------------------------------------- */

static void every_prefix_and_flip(void **state)
{
    xph_array array[COUNT];
    describe(array);
    const char *path = test_path("damage.safetensors");
    good_save(array, pairs, path);
    size_t bytes;
    uint64_t header = 0;
    char *file = test_read(path, &bytes);
    memcpy(&header, file, 8);
    exphil_error error = EXPHIL_ERROR_INIT;
    for (size_t length = 0; length < bytes; length++) {
        assert_int_equal(parse_copy(file, length, &error), EXPHIL_E_FORMAT);
        assert_true(error.message[0] != '\0');
    }
    int loaded = 0;
    for (size_t bit = 0; bit < 8 * bytes; bit++) {
        file[bit / 8] = (char)(file[bit / 8] ^ (1 << bit % 8));
        exphil_status status = parse_copy(file, bytes, &error);
        if (status == EXPHIL_OK) {
            /* Only a name, a dtype of the same size or a text of the metadata can have changed. */
            loaded++;
            assert_in_range(bit / 8, 8, 8 + header - 1);
        } else {
            assert_int_equal(status, EXPHIL_E_FORMAT);
        }
        file[bit / 8] = (char)(file[bit / 8] ^ (1 << bit % 8));
    }
    assert_in_range(loaded, 1, bytes); /* far fewer than the 8 * bytes flips */
    free(file);
}

static void memory_fails(void **state)
{
    test_memory memory;
    test_memory_init(&memory);
    exphil_context *poor = test_context(&memory, NULL, 1);
    xph_array array[COUNT];
    describe(array);
    const char *path = test_path("memory.safetensors");
    size_t bytes;
    long long before = atomic_load(&memory.calls);
    exphil_status saved = EXPHIL_E_MEMORY, loaded = EXPHIL_E_MEMORY;
    for (long long k = 1; saved < 0; k++) {
        exphil_error error = EXPHIL_ERROR_INIT;
        memory.fail_at = before + k;
        atomic_store(&memory.calls, before);
        saved = save(poor, array, pairs, path, &error);
        if (saved < 0) assert_int_equal(saved, EXPHIL_E_MEMORY);
        assert_int_equal(test_exists(path), saved == EXPHIL_OK);
    }
    char *file = test_read(path, &bytes);
    for (long long k = 1; loaded < 0; k++) {
        xph_tensors tensors;
        exphil_error error = EXPHIL_ERROR_INIT;
        memory.fail_at = before + k;
        atomic_store(&memory.calls, before);
        loaded = xph_tensors_parse(poor, file, bytes, "weights", &tensors, &error);
        if (loaded == EXPHIL_OK) {
            check_content(&tensors);
            xph_tensors_free(&tensors);
        } else {
            assert_int_equal(loaded, EXPHIL_E_MEMORY);
        }
    }
    free(file);
    memory.fail_at = 0;
    exphil_context_destroy(poor);
    assert_memory_clean(&memory);
}

/* Each file operation of a save fails once: the old file or the new one, no temporary, no open file. */
static void files_fail(void **state)
{
    test_io io;
    test_io_init(&io);
    exphil_context *broken = test_context(NULL, &io, 1);
    xph_array array[COUNT];
    const char *path = test_path("io.safetensors"), *temporary = test_path("io.safetensors.exphil-tmp");
    exphil_status status = EXPHIL_E_IO;
    for (long long k = 1; status < 0; k++) {
        test_write(path, "old", 3);
        describe(array);
        exphil_error error = EXPHIL_ERROR_INIT;
        io.fail_at = k;
        atomic_store(&io.calls, 0);
        io.log[0] = '\0';
        status = save(broken, array, pairs, path, &error);
        size_t bytes;
        char *file = test_read(path, &bytes);
        bool renamed =
            strstr(io.log, "rename ") && k > 3 && (strstr(io.log, "close ") > strstr(io.log, "rename "));
        if (status < 0) assert_int_equal(status, EXPHIL_E_IO);
        if (bytes == 3)
            assert_memory_equal(file, "old", 3);
        else
            assert_true(renamed && parse_copy(file, bytes, &error) == EXPHIL_OK);
        if (status == EXPHIL_OK) assert_true(bytes > 3);
        assert_int_equal(atomic_load(&io.open_files), 0);
        free(file);
        remove(temporary); /* where removing it was what failed */
    }
    io.fail_at = 0;
    exphil_context_destroy(broken);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_format_allows),
        cmocka_unit_test(refusals_name_the_place),
        cmocka_unit_test(names_and_lengths),
        cmocka_unit_test(most_tensors),
        cmocka_unit_test(written_is_canonical_and_aligned),
        cmocka_unit_test(writer_refuses),
        cmocka_unit_test(python_reads_and_writes),
        cmocka_unit_test(every_prefix_and_flip),
        cmocka_unit_test(memory_fails),
        cmocka_unit_test(files_fail),
    };
    return cmocka_run_group_tests(tests, context_open, context_close);
}
