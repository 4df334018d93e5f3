/* Frames of Zstandard from anybody: the right ones are read exactly, all others are refused, and nothing is written behind
 * the end. Most frames are made by hand, from RFC 8878; the encoder makes others: libzstd, where it is, and in
 * zstd_bundled_test the library's own (XPH_ZSTD_BUNDLED). */
#include "context_case.h"

#include "base/system.h"
#include "file/file.h"

#include <stdlib.h>

enum { MOST = 1 << 20, GUARD = 64 };

typedef struct frame {
    uint8_t data[4096];
    size_t bytes;
} frame;

static void put(frame *to, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        to->data[to->bytes++] = (uint8_t)(i < sizeof value ? value >> 8 * i : 0);
}

/* Magic, descriptor of a single segment with a size of 4 bytes. */
static void begin(frame *to, uint32_t size)
{
    to->bytes = 0;
    put(to, 0xFD2FB528, 4);
    put(to, 0xA0, 1);
    put(to, size, 4);
}

enum { RAW = 0, REPEATED = 1 };
static void block(frame *to, int type, uint32_t size, bool last)
{
    put(to, (uint32_t)last | (uint32_t)type << 1 | size << 3, 3);
}

static void raw_block(frame *to, const void *text, uint32_t size, bool last)
{
    block(to, RAW, size, last);
    memcpy(to->data + to->bytes, text, size);
    to->bytes += size;
}

/* Decodes into memory of exactly this size, with a guard behind it, from memory that ends where the frame ends. */
static const char *decode(const uint8_t *data, size_t bytes, uint8_t *to, size_t size)
{
    xph_zstd_decoder *decoder = NULL;
    uint8_t *exact = malloc(bytes ? bytes : 1), *made = malloc(size + GUARD);
    assert_true(exact && made);
    if (bytes) memcpy(exact, data, bytes);
    memset(made, 0x5A, size + GUARD);
    assert_int_equal(xph_zstd_decoder_create(context, &decoder, NULL), EXPHIL_OK);
    const char *wrong = xph_zstd_decode(decoder, exact, bytes, made, size);
    for (size_t i = 0; i < GUARD; i++) assert_int_equal(made[size + i], 0x5A);
    if (to) memcpy(to, made, size);
    xph_zstd_decoder_destroy(decoder);
    free(made);
    free(exact);
    return wrong;
}

static void assert_wrong(const frame *from, size_t size, const char *words)
{
    const char *wrong = decode(from->data, from->bytes, NULL, size);
    if (!wrong || !strstr(wrong, words))
        fail_msg("\"%s\" lacks \"%s\"", wrong ? wrong : "nothing wrong", words);
}

static void right_frames(void **state)
{
    uint8_t to[300];
    frame made;
    begin(&made, 5);
    raw_block(&made, "hello", 5, true);
    assert_null(decode(made.data, made.bytes, to, 5));
    assert_memory_equal(to, "hello", 5);
    begin(&made, 11);
    raw_block(&made, "hello ", 6, false);
    raw_block(&made, "world", 5, true);
    assert_null(decode(made.data, made.bytes, to, 11));
    assert_memory_equal(to, "hello world", 11);
    begin(&made, 300);
    block(&made, REPEATED, 300, true);
    put(&made, 'x', 1);
    assert_null(decode(made.data, made.bytes, to, 300));
    for (int i = 0; i < 300; i++) assert_int_equal(to[i], 'x');
    begin(&made, 0);
    block(&made, RAW, 0, true);
    assert_null(decode(made.data, made.bytes, to, 0));
}

/* 1 MiB out of 41 bytes is right where 1 MiB was expected, and nothing is written where less was. */
static void bombs(void **state)
{
    frame made;
    begin(&made, MOST);
    for (int i = 0; i < 8; i++) {
        block(&made, REPEATED, 1 << 17, i == 7);
        put(&made, 0, 1);
    }
    assert_null(decode(made.data, made.bytes, NULL, MOST));
    assert_wrong(&made, MOST - 1, "declares another size");
    assert_wrong(&made, 100, "declares another size");
    for (int i = 0; i < 4; i++) made.data[5 + i] = 0; /* declares 100, holds 1 MiB */
    made.data[5] = 100;
    assert_wrong(&made, 100, "damaged");
}

static void other_frames(void **state)
{
    frame made;
    begin(&made, 5); /* a size too large, too small, none */
    raw_block(&made, "hello", 5, true);
    assert_wrong(&made, 6, "declares another size");
    assert_wrong(&made, 4, "declares another size");
    made.data[5] = 6;
    assert_wrong(&made, 6, "damaged");
    made.data[5] = 4;
    assert_wrong(&made, 4, "damaged");
    made.bytes = 0;
    put(&made, 0xFD2FB528, 4);
    put(&made, 0x5800, 2); /* no size, a window */
    raw_block(&made, "hello", 5, true);
    assert_wrong(&made, 5, "declares another size");
    begin(&made, 5); /* two frames, and bytes behind one */
    raw_block(&made, "hello", 5, true);
    size_t one = made.bytes;
    memcpy(made.data + one, made.data, one);
    made.bytes = 2 * one;
    assert_wrong(&made, 5, "another length");
    assert_wrong(&made, 10, "declares another size");
    made.bytes = one + 1;
    assert_wrong(&made, 5, "another length");
    made.bytes = 0; /* skippable ones, alone and in front */
    put(&made, 0x184D2A50, 4);
    put(&made, 3, 4);
    put(&made, 0, 3);
    assert_wrong(&made, 0, "no Zstandard frame");
    put(&made, 0xFD2FB528, 4);
    put(&made, 0x0120, 2);
    raw_block(&made, "x", 1, true);
    assert_wrong(&made, 1, "no Zstandard frame");
    made.bytes = 0; /* of zstd 0.1 */
    put(&made, 0xFD2FB51E, 4);
    put(&made, 0, 12);
    assert_wrong(&made, 5, "no Zstandard frame");
}

static void dictionaries_and_sums(void **state)
{
    frame made;
    for (int bytes = 1; bytes <= 4; bytes *= 2) { /* a dictionary's number of 1, 2, 4 bytes */
        made.bytes = 0;
        put(&made, 0xFD2FB528, 4);
        put(&made, (uint64_t)(0xA0 | (bytes == 4 ? 3 : bytes)), 1);
        put(&made, 7, (size_t)bytes);
        put(&made, 5, 4);
        raw_block(&made, "hello", 5, true);
        assert_wrong(&made, 5, "wants a dictionary");
    }
    begin(&made, 5); /* with a checksum: right, wrong */
    made.data[4] |= 4;
    raw_block(&made, "hello", 5, true);
    put(&made, xph_hash("hello", 5) & 0xFFFFFFFF, 4);
    assert_null(decode(made.data, made.bytes, NULL, 5));
    made.data[made.bytes - 1] ^= 1;
    assert_wrong(&made, 5, "damaged");
}

static void every_prefix_and_flip(void **state)
{
    frame made;
    uint8_t to[44];
    begin(&made, 44);
    raw_block(&made, "hello ", 6, false);
    block(&made, REPEATED, 33, false);
    put(&made, '.', 1);
    raw_block(&made, "world", 5, true);
    assert_null(decode(made.data, made.bytes, to, 44));
    for (size_t bytes = 0; bytes < made.bytes; bytes++) assert_non_null(decode(made.data, bytes, NULL, 44));
    for (size_t bit = 0; bit < 8 * made.bytes; bit++) {
        made.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        (void)decode(made.data, made.bytes, NULL, 44); /* may be right: the text is not checked */
        made.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

static void random_bytes(void **state)
{
    frame made;
    xph_rng rng = {1, XPH_RNG_TEST, 0};
    for (int i = 0; i < 20000; i++) {
        uint32_t size = xph_rng_u32(&rng) % 2000;
        begin(&made, size);
        if (i % 4 == 0) made.bytes = 0;
        size_t end = made.bytes + xph_rng_u32(&rng) % 200;
        while (made.bytes < end) put(&made, xph_rng_u32(&rng) & 0xFF, 1);
        const char *wrong = decode(made.data, made.bytes, NULL, size);
        assert_true(!wrong || strlen(wrong) < 100);
    }
}

/* Bundled, there is always one. */
static xph_zstd_encoder *encoder_of(int level, size_t most)
{
    xph_zstd_encoder *encoder = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    const exphil_status status = xph_zstd_encoder_create(context, level, most, &encoder, &error);
#ifndef XPH_ZSTD_BUNDLED
    if (status == EXPHIL_E_UNSUPPORTED) {
        assert_says(&error, XPH_LIBZSTD);
        print_message("SKIPPED: compression, since there is no " XPH_LIBZSTD "\n");
        return NULL;
    }
#endif
    if (status < 0) fail_msg("%s", error.message);
    return encoder;
}

/* What an encoder writes, every level, is read; its prefixes and changes are refused or harmless. */
static void compressed(void **state)
{
    enum { SIZE = 20000 };
    static uint8_t from[SIZE], packed[SIZE + SIZE / 128 + 512], to[SIZE];
    for (size_t i = 0; i < SIZE; i++) from[i] = (uint8_t)(i % 13 * (i / 500));
    for (int level = 1; level <= 19; level += 6) {
        xph_zstd_encoder *encoder = encoder_of(level, SIZE);
        size_t bytes;
        if (!encoder) return;
        assert_int_equal(xph_zstd_encode(encoder, from, SIZE, packed, sizeof packed, &bytes, NULL),
                         EXPHIL_OK);
        assert_int_equal(xph_zstd_encode(encoder, from, SIZE, packed, sizeof packed, &bytes, NULL),
                         EXPHIL_OK);
        xph_zstd_encoder_destroy(encoder);
        assert_true(bytes < SIZE / 2);
        assert_null(decode(packed, bytes, to, SIZE));
        assert_memory_equal(from, to, SIZE);
        for (size_t cut = 0; cut < bytes; cut++) assert_non_null(decode(packed, cut, NULL, SIZE));
        for (size_t at = 0; at < bytes; at++) {
            packed[at] ^= (uint8_t)(1 << at % 8);
            (void)decode(packed, bytes, NULL, SIZE);
            packed[at] ^= (uint8_t)(1 << at % 8);
        }
    }
}

/* An encoder takes whatever is not longer than it was made for, on either side of the sizes at which zstd changes its tables. */
static void every_size(void **state)
{
    static const size_t sizes[] = {
        0, 1, 16 << 10, (16 << 10) + 1, 128 << 10, (128 << 10) + 1, 256 << 10, (256 << 10) + 1, MOST};
    enum { COUNT = sizeof sizes / sizeof *sizes };
    uint8_t *from = malloc(MOST), *to = malloc(MOST), *packed = malloc(MOST + MOST / 128 + 512);
    xph_rng rng = {2, XPH_RNG_TEST, 0};
    bool there = true;
    assert_true(from && to && packed);
    for (size_t i = 0; i < MOST; i++) from[i] = (uint8_t)(xph_rng_u32(&rng) % (i % 5000 < 1000 ? 200 : 4));
    for (int level = 1; level <= 19 && there; level += 9) {
        for (int made_for = 1; made_for < COUNT && there; made_for++) {
            xph_zstd_encoder *encoder = encoder_of(level, sizes[made_for]);
            there = encoder != NULL;
            for (int i = made_for == COUNT - 1 ? 0 : made_for; there && i <= made_for; i++) {
                size_t bytes = 0, size = sizes[i];
                assert_int_equal(
                    xph_zstd_encode(encoder, from, size, packed, size + size / 128 + 512, &bytes, NULL),
                    EXPHIL_OK);
                assert_null(decode(packed, bytes, to, size));
                assert_memory_equal(from, to, size);
            }
            xph_zstd_encoder_destroy(encoder);
        }
    }
    free(packed);
    free(to);
    free(from);
}

#ifdef XPH_ZSTD_BUNDLED
/* All memory is the host's, and asked for when the encoder is made. Too little room for what comes out is told. */
static void memory_is_the_hosts(void **state)
{
    static uint8_t from[10000], packed[20000];
    test_memory memory;
    test_memory_init(&memory);
    exphil_context *own = test_context(&memory, NULL, 1);
    xph_zstd_encoder *encoder = NULL;
    size_t bytes = 0;
    const long before = atomic_load(&memory.calls);
    assert_int_equal(xph_zstd_encoder_create(own, 19, sizeof from, &encoder, NULL), EXPHIL_OK);
    assert_int_equal(atomic_load(&memory.calls), before + 1);
    assert_int_equal(xph_zstd_encode(encoder, from, sizeof from, packed, sizeof packed, &bytes, NULL),
                     EXPHIL_OK);
    assert_int_equal(xph_zstd_encode(encoder, from, sizeof from, packed, bytes - 1, &bytes, NULL),
                     EXPHIL_E_INTERNAL);
    assert_int_equal(atomic_load(&memory.calls), before + 1);
    xph_zstd_encoder_destroy(encoder);
    exphil_context_destroy(own);
    assert_memory_clean(&memory);
}
#endif

static void memory_runs_out(void **state)
{
    test_memory memory;
    test_memory_init(&memory);
    exphil_context *own = test_context(&memory, NULL, 1);
    xph_zstd_decoder *decoder = NULL;
    xph_zstd_encoder *encoder = NULL;
    memory.fail_at = atomic_load(&memory.calls) + 1;
    memory.fail_on = true;
    assert_int_equal(xph_zstd_decoder_create(own, &decoder, NULL), EXPHIL_E_MEMORY);
    assert_int_equal(xph_zstd_encoder_create(own, 3, MOST, &encoder, NULL), EXPHIL_E_MEMORY);
    xph_zstd_decoder_destroy(decoder);
    xph_zstd_encoder_destroy(encoder);
    exphil_context_destroy(own);
    assert_memory_clean(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_frames),
        cmocka_unit_test(bombs),
        cmocka_unit_test(other_frames),
        cmocka_unit_test(dictionaries_and_sums),
        cmocka_unit_test(every_prefix_and_flip),
        cmocka_unit_test(random_bytes),
        cmocka_unit_test(compressed),
        cmocka_unit_test(every_size),
#ifdef XPH_ZSTD_BUNDLED
        cmocka_unit_test(memory_is_the_hosts),
#endif
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, context_open, context_close);
}
