/* JSON: what is taken and what is refused, against jansson as an independent reader; getters; the writer;
 * memory that fails. */
#include "context_case.h"

#include "file/file.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static exphil_status parse(const char *text, size_t bytes, xph_json **json, exphil_error *error)
{
    /* An exact copy, so that a sanitizer sees the first byte read behind it. */
    char *copy = malloc(bytes ? bytes : 1);
    memcpy(copy, text, bytes);
    exphil_status status = xph_json_parse(context, copy, bytes, "doc", 100, json, error);
    free(copy);
    return status;
}

static void refused(const char *text, const char *message)
{
    xph_json *json = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(parse(text, strlen(text), &json, &error), EXPHIL_E_FORMAT);
    assert_null(json);
    assert_string_equal(error.message, message);
}

static void refusals_name_the_byte(void **state)
{
    refused("", "doc, byte 100: '{' or '[' must stand here");
    refused("1", "doc, byte 100: '{' or '[' must stand here");
    refused("{\"a\":1,\"a\":2}", "doc, byte 107: this name stands twice");
    refused("{\"a\":1,\"\\u0061\":2}", "doc, byte 107: this name stands twice");
    refused("[1,]", "doc, byte 103: a value must stand here");
    refused("[,1]", "doc, byte 101: a value must stand here");
    refused("[1 2]", "doc, byte 103: ',' or ']' must stand here");
    refused("{\"a\" 1}", "doc, byte 105: ':' must stand here");
    refused("{a:1}", "doc, byte 101: a name must stand here");
    refused("[01]", "doc, byte 101: a value must stand here");
    refused("[1.]", "doc, byte 101: a value must stand here");
    refused("[+1]", "doc, byte 101: a value must stand here");
    refused("[NaN]", "doc, byte 101: a value must stand here");
    refused("[1] x", "doc, byte 104: something follows the end");
    refused("[\"\t\"]", "doc, byte 102: control character in a text");
    refused("[\"\\x\"]", "doc, byte 102: unknown escape");
    refused("[\"\\u0000\"]", "doc, byte 102: \\u0000 in a text");
    refused("[\"\\ud800\"]", "doc, byte 102: half of a surrogate pair");
    refused("[\"\xC0\x80\"]", "doc, byte 102: not UTF-8");
    refused("[\"a", "doc, byte 101: text without an end");
    refused("[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]", "doc, byte 116: nested too deeply");
}

static void limits_of_size(void **state)
{
    xph_json *json = NULL;
    size_t bytes = XPH_JSON_MOST_BYTES + 1;
    char *text = malloc(bytes);
    memset(text, ' ', bytes);
    memcpy(text, "[]", 2);
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(xph_json_parse(context, text, bytes, "doc", 0, &json, &error), EXPHIL_E_FORMAT);
    assert_int_equal(xph_json_parse(context, text, bytes - 1, "doc", 0, &json, &error), EXPHIL_OK);
    xph_json_free(json);
    /* values: 65536 with the top */
    text[0] = '[';
    for (size_t i = 0; i < 65535; i++) memcpy(text + 1 + 2 * i, "0,", 2);
    text[2 * 65535] = ']';
    assert_int_equal(xph_json_parse(context, text, 2 * 65535 + 1, "doc", 0, &json, &error), EXPHIL_OK);
    assert_int_equal(xph_json_count(json, 0), 65535);
    xph_json_free(json);
    memcpy(text + 2 * 65535, ",0]", 3);
    assert_int_equal(xph_json_parse(context, text, 2 * 65535 + 3, "doc", 0, &json, &error), EXPHIL_E_FORMAT);
    assert_string_equal(error.message, "doc: more than 65536 values");
    free(text);
}

/* ---- against jansson ----------------------------------------------------------------------------------- */

static void same(const xph_json *json, int32_t at, const json_t *other)
{
    switch (xph_json_kind(json, at)) {
    case XPH_JSON_OBJECT:
        assert_true(json_is_object(other));
        assert_int_equal(xph_json_count(json, at), json_object_size(other));
        for (int32_t i = xph_json_first(json, at); i >= 0; i = xph_json_next(json, i)) {
            assert_int_equal(xph_json_parent(json, i), at);
            assert_int_equal(xph_json_find(json, at, xph_json_name(json, i)), i);
            same(json, i, json_object_get(other, xph_json_name(json, i)));
        }
        break;
    case XPH_JSON_ARRAY: {
        assert_true(json_is_array(other));
        size_t index = 0;
        for (int32_t i = xph_json_first(json, at); i >= 0; i = xph_json_next(json, i)) {
            same(json, i, json_array_get(other, index++));
        }
        assert_int_equal(index, json_array_size(other));
        break;
    }
    case XPH_JSON_TEXT:
        assert_true(json_is_string(other));
        assert_string_equal(xph_json_text(json, at), json_string_value(other));
        break;
    case XPH_JSON_NUMBER:
        assert_true(json_is_number(other));
        assert_true(strtod(xph_json_text(json, at), NULL) == json_number_value(other));
        break;
    case XPH_JSON_BOOL:
        assert_true(json_is_boolean(other));
        assert_int_equal(xph_json_true(json, at), json_is_true(other));
        break;
    default:
        assert_int_equal(xph_json_kind(json, at), XPH_JSON_NULL);
        assert_true(json_is_null(other));
    }
}

/* jansson reads numbers at once and refuses large ones; here that is the getters' work. Depth and values
 * are limits that only this reader has, and jansson passes over zero bytes between values. Returns 1 when
 * both took the text. */
static int compare(const char *text, size_t bytes)
{
    json_error_t why;
    memset(&why, 0, sizeof why);
    xph_json *json = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_status status = parse(text, bytes, &json, &error);
    json_t *other = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &why);
    int taken = status == EXPHIL_OK && other;
    if (taken) {
        same(json, 0, other);
    } else if (status == EXPHIL_OK) {
        assert_int_equal(json_error_code(&why), json_error_numeric_overflow);
    } else if (other && !strstr(error.message, "nested too deeply") && !memchr(text, 0, bytes)) {
        fail_msg("jansson takes \"%.*s\", here: %s", (int)bytes, text, error.message);
    }
    xph_json_free(json);
    json_decref(other);
    return taken;
}

static const char *const seeds[] = {
    "{\"__metadata__\":{\"k\":\"v\",\"n\":\"\\u00e9\\ud83d\\ude00\\n\"},\"w\":{\"dtype\":\"F32\",\"shape\":["
    "2,3],"
    "\"data_offsets\":[0,24]}}   ",
    "[null,true,false,0,-0,1.5,-2e10,3E-2,1e+2,\"\",[],{},[[]],{\"a\":{}},\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"]",
    "{\"\":1,\"a\":[1,2,{\"a\":\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"}],\"b\":-9223372036854775808}",
    "\t\r\n [ 1 , { \"x\" : [ ] } ] \n",
};

static void agrees_with_jansson(void **state)
{
    static const char tokens[] = "{}[]\":,\\u0123456789eE.+-truefalsnl \t\n\xC3\xA9\xED\xA0\x80\xF4\x90\x01";
    xph_rng rng = {.seed = 1, .stream = XPH_RNG_TEST};
    int taken = 0;
    for (int round = 0; round < 60000; round++) {
        char text[400];
        const char *seed = seeds[round % 4];
        size_t bytes = strlen(seed);
        memcpy(text, seed, bytes);
        for (uint64_t edits = xph_rng_below(&rng, 4); edits; edits--) {
            size_t at = (size_t)xph_rng_below(&rng, bytes), most = bytes - at;
            size_t piece = 1 + (size_t)xph_rng_below(&rng, most < 8 ? most : 8);
            switch (xph_rng_below(&rng, 4)) {
            case 0:
                text[at] = tokens[xph_rng_below(&rng, sizeof tokens - 1)];
                break;
            case 1:
                memmove(text + at, text + at + piece, bytes - at - piece), bytes -= piece;
                break;
            case 2:
                memmove(text + at + piece, text + at, bytes - at), bytes += piece;
                break; /* doubles a piece */
            default:
                text[at] = (char)(text[at] ^ (1 << xph_rng_below(&rng, 8)));
            }
            if (!bytes) break;
        }
        taken += compare(text, bytes);
    }
    assert_in_range(taken, 10000, 50000); /* neither all nor none */
}

static void every_prefix_and_flip(void **state)
{
    for (size_t s = 0; s < 4; s++) {
        char text[400];
        size_t bytes = strlen(seeds[s]);
        memcpy(text, seeds[s], bytes);
        for (size_t length = 0; length <= bytes; length++) compare(text, length);
        for (size_t bit = 0; bit < 8 * bytes; bit++) {
            text[bit / 8] = (char)(text[bit / 8] ^ (1 << bit % 8));
            compare(text, bytes);
            text[bit / 8] = (char)(text[bit / 8] ^ (1 << bit % 8));
        }
    }
}

/* ---- getters ------------------------------------------------------------------------------------------- */

static xph_json *read_good(const char *text)
{
    xph_json *json = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (parse(text, strlen(text), &json, &error) != EXPHIL_OK) fail_msg("%s", error.message);
    return json;
}

static void getters_name_the_field(void **state)
{
    xph_json *json = read_good(
        "{\"a\":[{\"x\":1},{\"x\":-5,\"y\":1.5,\"h\":\"00000000000000ff\"}],\"big\":9223372036854775808,"
        "\"low\":-9223372036854775808,\"far\":1e999,\"t\":true}");
    exphil_error error = EXPHIL_ERROR_INIT;
    int64_t value = 7;
    uint64_t hex = 7;
    double real = 7;
    const char *text = NULL;
    int32_t list = -1, second;
    assert_int_equal(xph_json_get(json, 0, "a", XPH_JSON_ARRAY, &list, &error), EXPHIL_OK);
    second = xph_json_next(json, xph_json_first(json, list));
    assert_int_equal(xph_json_get_int(json, second, "x", -5, 5, &value, &error), EXPHIL_OK);
    assert_int_equal(value, -5);
    assert_int_equal(xph_json_get_int(json, second, "x", 0, 5, &value, &error), EXPHIL_E_FORMAT);
    assert_string_equal(error.message, "doc: a[1].x is -5, not in 0..5");
    assert_int_equal(xph_json_get_int(json, second, "y", 0, 5, &value, &error), EXPHIL_E_FORMAT);
    assert_string_equal(error.message, "doc: a[1].y is no integer of 64 bits");
    assert_int_equal(xph_json_get_int(json, second, "z", 0, 5, &value, &error), EXPHIL_E_FORMAT);
    assert_string_equal(error.message, "doc: a[1].z is missing");
    assert_int_equal(xph_json_get_text(json, second, "x", &text, &error), EXPHIL_E_FORMAT);
    assert_string_equal(error.message, "doc: a[1].x is no text");
    assert_int_equal(xph_json_get_hex(json, second, "h", &hex, &error), EXPHIL_OK);
    assert_int_equal(hex, 255);
    assert_int_equal(xph_json_get_double(json, second, "y", &real, &error), EXPHIL_OK);
    assert_true(real == 1.5);
    assert_int_equal(xph_json_get_int(json, 0, "low", INT64_MIN, 0, &value, &error), EXPHIL_OK);
    assert_true(value == INT64_MIN);
    assert_int_equal(xph_json_get_int(json, 0, "big", INT64_MIN, INT64_MAX, &value, &error), EXPHIL_E_FORMAT);
    assert_int_equal(xph_json_get_double(json, 0, "far", &real, &error), EXPHIL_E_FORMAT);
    assert_string_equal(error.message, "doc: far is out of the range of a double");
    assert_int_equal(xph_json_get_int(json, 0, "t", 0, 1, &value, &error), EXPHIL_E_FORMAT);
    assert_int_equal(xph_json_refuse(json, 0, "is wrong", &error), EXPHIL_E_FORMAT);
    assert_string_equal(error.message, "doc: the whole is wrong");
    assert_true(value == INT64_MIN && hex == 255 && real == 1.5 && !text); /* failures left them alone */
    xph_json_free(json);
}

static void hex_is_strict(void **state)
{
    uint64_t value = 3;
    char text[XPH_HEX_TEXT];
    assert_string_equal(xph_hex_text(text, 0x0123456789abcdefu), "0123456789abcdef");
    assert_true(xph_hex_value("ffffffffffffffff", &value) && value == UINT64_MAX);
    assert_false(xph_hex_value("", &value));
    assert_false(xph_hex_value("0123456789abcde", &value));
    assert_false(xph_hex_value("0123456789abcdef0", &value));
    assert_false(xph_hex_value("0123456789ABCDEF", &value));
    assert_true(value == UINT64_MAX);
}

/* ---- writing ------------------------------------------------------------------------------------------- */

static void write_some(xph_json_out *out)
{
    xph_json_open(out, NULL, '{');
    xph_json_add_text(out, "a\"b", "x\\y\n\xC3\xA9");
    xph_json_open(out, "list", '[');
    for (int i = -1; i < 2; i++) xph_json_add_int(out, NULL, i);
    xph_json_open(out, NULL, '{');
    xph_json_close(out, '}');
    xph_json_close(out, ']');
    xph_json_add_double(out, "d", 0.1);
    xph_json_add_hex(out, "h", 10);
    xph_json_close(out, '}');
    xph_json_pad(out, 8, 128);
}

static void writes_what_it_reads(void **state)
{
    static const char wanted[] = "{\"a\\\"b\":\"x\\\\y\\u000a\xC3\xA9\",\"list\":[-1,0,1,{}],\"d\":0.1,"
                                 "\"h\":\"000000000000000a\"}";
    xph_json_out out;
    exphil_error error = EXPHIL_ERROR_INIT;
    xph_json_begin(&out, context);
    write_some(&out);
    assert_int_equal(xph_json_end(&out, &error), EXPHIL_OK);
    assert_int_equal(out.bytes, 120);
    assert_memory_equal(out.text, wanted, sizeof wanted - 1);
    assert_int_equal(strspn(out.text + sizeof wanted - 1, " "), 120 - (sizeof wanted - 1));
    xph_json *json = read_good(out.text);
    assert_string_equal(xph_json_text(json, xph_json_find(json, 0, "a\"b")), "x\\y\n\xC3\xA9");
    xph_json_free(json);
    xph_json_drop(&out);
}

static void writer_refuses(void **state)
{
    xph_json_out out;
    exphil_error error = EXPHIL_ERROR_INIT;
    xph_json_begin(&out, context);
    xph_json_open(&out, NULL, '[');
    xph_json_add_text(&out, NULL, "\xFF");
    xph_json_close(&out, ']');
    assert_int_equal(xph_json_end(&out, &error), EXPHIL_E_INVALID);
    xph_json_begin(&out, context);
    xph_json_add_double(&out, NULL, (double)strtof("inf", NULL));
    assert_int_equal(xph_json_end(&out, &error), EXPHIL_E_NUMERIC);
}

/* Never a shortened text: the document or EXPHIL_E_MEMORY. */
static void memory_fails(void **state)
{
    test_memory memory;
    test_memory_init(&memory);
    exphil_context *poor = test_context(&memory, NULL, 1);
    long long before = atomic_load(&memory.calls);
    for (long long k = 1;; k++) {
        xph_json_out out;
        xph_json *json = NULL;
        exphil_error error = EXPHIL_ERROR_INIT;
        memory.fail_at = before + k;
        atomic_store(&memory.calls, before);
        xph_json_begin(&out, poor);
        for (int i = 0; i < 40; i++) write_some(&out);
        exphil_status status = xph_json_end(&out, &error);
        if (status == EXPHIL_OK) status = xph_json_parse(poor, out.text, 120, "doc", 0, &json, &error);
        xph_json_drop(&out);
        if (status == EXPHIL_OK) {
            assert_string_equal(xph_json_text(json, xph_json_find(json, 0, "a\"b")), "x\\y\n\xC3\xA9");
            xph_json_free(json);
            assert_true(k > 3);
            break;
        }
        assert_int_equal(status, EXPHIL_E_MEMORY);
        assert_int_equal(error.status, EXPHIL_E_MEMORY);
    }
    memory.fail_at = 0;
    exphil_context_destroy(poor);
    assert_memory_clean(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals_name_the_byte), cmocka_unit_test(limits_of_size),
        cmocka_unit_test(agrees_with_jansson),    cmocka_unit_test(every_prefix_and_flip),
        cmocka_unit_test(getters_name_the_field), cmocka_unit_test(hex_is_strict),
        cmocka_unit_test(writes_what_it_reads),   cmocka_unit_test(writer_refuses),
        cmocka_unit_test(memory_fails),
    };
    return cmocka_run_group_tests(tests, context_open, context_close);
}
