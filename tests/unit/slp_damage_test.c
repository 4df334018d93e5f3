/* Damaged replays: every prefix and every single flipped bit of each sample, damaged lengths, and replays
 * that try to cost more time or memory than they have bytes. Nothing may crash, leak or read outside; what is
 * read must hang together. */
#include "context_case.h"
#include "slp_check.h"
#include "slp_writer.h"

#include <exphil/slp.h>

#include <stdio.h>
#include <stdlib.h>

static int64_t frames_of(const uint8_t *data, size_t bytes)
{
    exphil_slp *slp = NULL;
    if (exphil_slp_read(context, data, bytes, NULL, &slp, NULL) < 0) return -1;
    const char *wrong = slp_inconsistent(slp);
    if (wrong) fail_msg("%s", wrong);
    int64_t frames = exphil_slp_frame_count(slp);
    exphil_slp_destroy(slp);
    return frames;
}

/* A longer prefix never has fewer frames (samples without oddities), and a refusal names an offset. */
static void test_prefixes(void **state)
{
    for (int which = 0; which < SLP_SAMPLES; which++) {
        slp_writer writer;
        int64_t before = -1;
        slp_sample(&writer, which);
        for (size_t bytes = 0; bytes <= writer.bytes; bytes++) {
            uint8_t *exact = malloc(bytes ? bytes : 1); /* a sanitizer sees the first byte behind it */
            assert_non_null(exact);
            memcpy(exact, writer.data, bytes);
            int64_t frames = frames_of(exact, bytes);
            if (which < 16) assert_true(frames >= before);
            if (which < 16) before = frames;
            if (frames < 0) {
                exphil_error error = EXPHIL_ERROR_INIT;
                exphil_slp *slp = NULL;
                assert_int_equal(exphil_slp_read(context, exact, bytes, NULL, &slp, &error), EXPHIL_E_FORMAT);
                assert_non_null(strstr(error.message, "offset"));
            }
            free(exact);
        }
        slp_free(&writer);
    }
}

/* Every bit once; most of them hit values, of which none is validated. */
static void test_bit_flips(void **state)
{
    long readable = 0, all = 0;
    for (int which = 0; which < SLP_SAMPLES; which++) {
        slp_writer writer;
        slp_sample(&writer, which);
        uint8_t *exact = malloc(writer.bytes);
        assert_non_null(exact);
        memcpy(exact, writer.data, writer.bytes);
        for (size_t bit = 0; bit < 8 * writer.bytes; bit++, all++) {
            exact[bit / 8] ^= (uint8_t)(1u << bit % 8);
            if (frames_of(exact, writer.bytes) >= 0) readable++;
            exact[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        free(exact);
        slp_free(&writer);
    }
    assert_true(readable > all / 2);
}

/* All modes and the stream, on random damage of several bytes. */
static void test_random_damage(void **state)
{
    xph_rng rng = {1, XPH_RNG_TEST, 0};
    for (int which = 0; which < SLP_SAMPLES; which++) {
        slp_writer writer;
        slp_sample(&writer, which);
        uint8_t *exact = malloc(writer.bytes);
        assert_non_null(exact);
        for (int round = 0; round < 300; round++) {
            memcpy(exact, writer.data, writer.bytes);
            for (uint64_t n = xph_rng_below(&rng, 6); n > 0; n--)
                exact[xph_rng_below(&rng, round % 2 ? writer.bytes : 64)] = (uint8_t)xph_rng_u32(&rng);
            const char *wrong =
                slp_check_bytes(context, exact, writer.bytes, 1 + (size_t)xph_rng_below(&rng, 99));
            if (wrong) fail_msg("sample %d, round %d: %s", which, round, wrong);
        }
        free(exact);
        slp_free(&writer);
    }
}

static void test_lengths(void **state)
{
    static const int32_t lengths[] = {0, -1, INT32_MIN, INT32_MAX, 1, 40};
    for (int which = 0; which < 16; which++) {
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
            slp_writer writer;
            slp_sample(&writer, which);
            slp_length(&writer, lengths[i]);
            int64_t frames = frames_of(writer.data, writer.bytes);
            assert_int_equal(frames, i < 4 ? 3 : -1);
            slp_free(&writer);
        }
    }
}

/* Memory is paid for by bytes of input: one record in each of eight slots among very many frames of ten
 * bytes. */
static void test_memory_follows_input(void **state)
{
    test_memory memory;
    slp_writer writer;
    exphil_slp *slp = NULL;
    exphil_memory_info used = EXPHIL_MEMORY_INFO_INIT;
    test_memory_init(&memory);
    exphil_context *own = test_context(&memory, NULL, 1);
    slp_begin(&writer, &slp_layouts[SLP_NEWEST], true);
    slp_declare(&writer, 0x3A, 4);
    slp_declare(&writer, 0x3C, 4);
    slp_head(&writer, &slp_layouts[SLP_NEWEST]);
    slp_frame(&writer, -123, 0xFF, 0);
    for (int32_t i = 0; i < 100000; i++) slp_frame(&writer, i, 0, 0);
    slp_frame(&writer, 999999, 0xFF, 0);
    assert_int_equal(exphil_slp_read(own, writer.data, writer.bytes, NULL, &slp, NULL), EXPHIL_OK);
    assert_int_equal(exphil_slp_frame_count(slp), 100002);
    assert_int_equal(exphil_context_memory(own, &used, NULL), EXPHIL_OK);
    assert_true(used.host_peak_bytes < 20 * writer.bytes);
    exphil_slp_destroy(slp);
    exphil_context_destroy(own);
    slp_free(&writer);
}

/* Metadata of opened containers, fillers and empty texts: as long as the input, no longer. */
static void test_hostile_metadata(void **state)
{
    static const char *const patterns[] = {"[", "N", "{U\x01k", "[SU\x00", "[T", "[$Z#l\x7F\xFF\xFF\xFF"};
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        slp_writer writer;
        slp_begin(&writer, &slp_layouts[0], false);
        slp_head(&writer, &slp_layouts[0]);
        slp_frame(&writer, -123, 0x01, 0);
        slp_length(&writer, (int32_t)writer.bytes - 15);
        slp_put(&writer,
                "U\x08metadata{U\x01"
                "a",
                14);
        for (int n = 0; n < 100000; n++) slp_put(&writer, patterns[i], i == 3 ? 4 : strlen(patterns[i]));
        assert_int_equal(frames_of(writer.data, writer.bytes), 1);
        slp_free(&writer);
    }
}

/* The samples as seeds for the fuzz target. */
static void write_corpus(const char *folder)
{
    for (int which = 0; which < SLP_SAMPLES; which++) {
        char path[1024];
        slp_writer writer;
        slp_sample(&writer, which);
        (void)snprintf(path, sizeof path, "%s/sample-%02d.slp", folder, which);
        test_write(path, writer.data, writer.bytes);
        slp_free(&writer);
    }
}

static int set_up(void **state)
{
    context_open(state);
    if (getenv("EXPHIL_WRITE_CORPUS")) write_corpus(getenv("EXPHIL_WRITE_CORPUS"));
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prefixes),
        cmocka_unit_test(test_bit_flips),
        cmocka_unit_test(test_random_damage),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_memory_follows_input),
        cmocka_unit_test(test_hostile_metadata),
    };
    return cmocka_run_group_tests(tests, set_up, context_close);
}
