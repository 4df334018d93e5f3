/* Messages as they are written, against a decoder that is written here from the encoding's description, and against
 * bytes by hand. */
#include "file/file.h"
#include "test.h"

#include <float.h>
#include <stdlib.h>

/* ---- reading -------------------------------------------------------------------------------------------- */

typedef struct field {
    uint64_t number, wire, value; /* value: of a varint, or bytes of the rest */
    const uint8_t *data;
} field;

static uint64_t read_varint(const uint8_t **at, const uint8_t *end)
{
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        assert_true(*at < end && shift < 70);
        uint8_t byte = *(*at)++;
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) return value;
    }
}

static field read_field(const uint8_t **at, const uint8_t *end)
{
    field f = {0};
    uint64_t tag = read_varint(at, end);
    f.number = tag >> 3;
    f.wire = tag & 7;
    if (f.wire == 0) {
        f.value = read_varint(at, end);
        return f;
    }
    f.value = f.wire == 2 ? read_varint(at, end) : 4;
    assert_true(f.wire == 2 || f.wire == 5);
    f.data = *at;
    assert_true((uint64_t)(end - *at) >= f.value);
    *at += f.value;
    return f;
}

/* ---- tests ---------------------------------------------------------------------------------------------- */

static void bytes_by_hand(void **state)
{
    /* Field 1 as 150, field 2 as "testing", field 3 as a message of field 1 as 150: the examples of the encoding's page. */
    static const uint8_t wanted[] = {0x08, 0x96, 0x01, 0x12, 0x07, 0x74, 0x65, 0x73, 0x74,
                                     0x69, 0x6e, 0x67, 0x1a, 0x03, 0x08, 0x96, 0x01};
    exphil_context *context = test_context(NULL, NULL, 1);
    xph_proto_out out;
    xph_proto_begin(&out, context);
    xph_proto_add_int(&out, 1, 150);
    xph_proto_add_text(&out, 2, "testing");
    size_t inner = xph_proto_open(&out, 3);
    xph_proto_add_int(&out, 1, 150);
    xph_proto_close(&out, inner, 0);
    assert_int_equal(xph_proto_end(&out, NULL), EXPHIL_OK);
    assert_int_equal(out.bytes, sizeof wanted);
    assert_memory_equal(out.data, wanted, sizeof wanted);
    xph_proto_drop(&out);
    exphil_context_destroy(context);
}

static void numbers_come_back(void **state)
{
    static const int64_t numbers[] = {0, 1, 127, 128, 16383, 16384, INT32_MAX, INT64_MAX, -1, INT64_MIN};
    static const float floats[] = {0.0f, -1.5f, FLT_MAX, 1e-5f};
    enum { NUMBERS = sizeof numbers / sizeof *numbers, FLOATS = sizeof floats / sizeof *floats };
    exphil_context *context = test_context(NULL, NULL, 1);
    xph_proto_out out;
    xph_proto_begin(&out, context);
    for (int i = 0; i < NUMBERS; i++) xph_proto_add_int(&out, 1 + 300 * i, numbers[i]);
    for (int i = 0; i < FLOATS; i++) xph_proto_add_float(&out, 15 + i, floats[i]);
    assert_int_equal(xph_proto_end(&out, NULL), EXPHIL_OK);
    const uint8_t *at = out.data, *end = out.data + out.bytes;
    for (int i = 0; i < NUMBERS; i++) {
        field f = read_field(&at, end);
        assert_true(f.number == 1 + 300 * (uint64_t)i && f.wire == 0 && f.value == (uint64_t)numbers[i]);
    }
    for (int i = 0; i < FLOATS; i++) {
        field f = read_field(&at, end);
        assert_true(f.number == 15 + (uint64_t)i && f.wire == 5);
        assert_memory_equal(f.data, &floats[i], sizeof floats[i]);
    }
    assert_ptr_equal(at, end);
    xph_proto_drop(&out);
    exphil_context_destroy(context);
}

/* Messages in messages, of lengths whose own length takes 1, 2 and 3 bytes, some of their bytes elsewhere. */
static void messages_inside_messages(void **state)
{
    static const size_t lengths[] = {0,     1,     125,   126,   127,   128,  16379,
                                     16380, 16381, 16382, 16383, 16384, 70000};
    static const uint8_t rest[5] = {1, 2, 3, 4, 5};
    exphil_context *context = test_context(NULL, NULL, 1);
    uint8_t *content = calloc(70000, 1);
    for (int i = 0; i < 70000; i++) content[i] = (uint8_t)(i * 7);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        xph_proto_out out;
        xph_proto_begin(&out, context);
        size_t outer = xph_proto_open(&out, 7), inner = xph_proto_open(&out, 8);
        xph_proto_add_bytes(&out, 9, content, lengths[i]);
        xph_proto_close(&out, inner, 0);
        xph_proto_add_length(&out, 10, sizeof rest);
        xph_proto_close(&out, outer, sizeof rest);
        assert_int_equal(xph_proto_end(&out, NULL), EXPHIL_OK);
        uint8_t *whole = malloc(out.bytes + sizeof rest);
        memcpy(whole, out.data, out.bytes);
        memcpy(whole + out.bytes, rest, sizeof rest);
        const uint8_t *at = whole, *end = whole + out.bytes + sizeof rest;
        field f = read_field(&at, end);
        assert_true(f.number == 7 && at == end);
        at = f.data;
        f = read_field(&at, end);
        assert_int_equal(f.number, 8);
        const uint8_t *deep = f.data;
        field bytes = read_field(&deep, f.data + f.value);
        assert_true(bytes.number == 9 && bytes.value == lengths[i] && deep == f.data + f.value);
        assert_memory_equal(bytes.data, content, lengths[i]);
        f = read_field(&at, end);
        assert_true(f.number == 10 && f.value == sizeof rest && at == end);
        assert_memory_equal(f.data, rest, sizeof rest);
        free(whole);
        xph_proto_drop(&out);
    }
    free(content);
    exphil_context_destroy(context);
}

static void a_failure_sticks(void **state)
{
    test_memory memory;
    test_memory_init(&memory);
    exphil_context *context = test_context(&memory, NULL, 1);
    static const char text[] = "more than fits into what is there at first, again and again";
    for (int which = 1; which <= 3; which++) {
        exphil_error error = EXPHIL_ERROR_INIT;
        xph_proto_out out;
        xph_proto_begin(&out, context);
        memory.fail_at = atomic_load(&memory.calls) + which;
        for (int i = 0; i < 20; i++) {
            size_t mark = xph_proto_open(&out, 1);
            xph_proto_add_text(&out, 2, text);
            xph_proto_add_int(&out, 3, i);
            xph_proto_close(&out, mark, 0);
        }
        memory.fail_at = 0;
        assert_int_equal(xph_proto_end(&out, &error), EXPHIL_E_MEMORY);
        assert_says(&error, "message");
        assert_null(out.data);
        xph_proto_drop(&out);
    }
    exphil_context_destroy(context);
    assert_memory_clean(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_by_hand),
        cmocka_unit_test(numbers_come_back),
        cmocka_unit_test(messages_inside_messages),
        cmocka_unit_test(a_failure_sticks),
    };
    return cmocka_run_group_tests(tests, NULL, test_leave);
}
