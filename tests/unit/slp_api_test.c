/* How the replay reader behaves as an interface: arguments, configurations of every age, untouched outputs,
 * files, limits, memory that cannot be had, the cancel hook, dumps. */
#include "context_case.h"
#include "slp_writer.h"

#include <exphil/slp.h>

#include <stdlib.h>

static slp_writer sample;

static exphil_slp *read_sample(void)
{
    exphil_slp *slp = NULL;
    assert_int_equal(exphil_slp_read(context, sample.data, sample.bytes, NULL, &slp, NULL), EXPHIL_OK);
    return slp;
}

static void test_arguments(void **state)
{
    exphil_slp *slp = NULL;
    exphil_slp_info info = EXPHIL_SLP_INFO_INIT;
    assert_int_equal(exphil_slp_read(NULL, sample.data, sample.bytes, NULL, &slp, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_slp_read(context, NULL, 1, NULL, &slp, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_slp_read(context, NULL, 0, NULL, &slp, NULL), EXPHIL_E_FORMAT);
    assert_int_equal(exphil_slp_read(context, sample.data, sample.bytes, NULL, NULL, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_slp_open(NULL, "x", NULL, &slp, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_slp_open(context, NULL, NULL, &slp, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_slp_open(context, "x", NULL, NULL, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_slp_query(NULL, &info, NULL), EXPHIL_E_INVALID);
    assert_null(slp);
    exphil_slp_destroy(NULL);
    assert_int_equal(exphil_slp_frame_count(NULL), 0);
    assert_null(exphil_slp_frame_at(NULL, 0));
    assert_int_equal(exphil_slp_slot_count(NULL), 0);
    assert_null(exphil_slp_slot_at(NULL, 0));
    assert_null(exphil_slp_player_at(NULL, 0, 0, 0));
}

static void test_bounds(void **state)
{
    exphil_slp *slp = read_sample();
    assert_null(exphil_slp_frame_at(slp, -1));
    assert_null(exphil_slp_frame_at(slp, 3));
    assert_null(exphil_slp_frame_at(slp, INT64_MAX));
    assert_null(exphil_slp_slot_at(slp, -1));
    assert_null(exphil_slp_slot_at(slp, exphil_slp_slot_count(slp)));
    assert_non_null(exphil_slp_player_at(slp, 2, 0, 0));
    assert_null(exphil_slp_player_at(slp, 3, 0, 0));
    assert_null(exphil_slp_player_at(slp, -1, 0, 0));
    assert_null(exphil_slp_player_at(slp, 0, -1, 0));
    assert_null(exphil_slp_player_at(slp, 0, 4, 0));
    assert_null(exphil_slp_player_at(slp, 0, 0, 2));
    assert_null(exphil_slp_player_at(slp, 0, 0, -1));
    exphil_slp_destroy(slp);
}

static exphil_status read_with(const void *config, exphil_error *error)
{
    exphil_slp *slp = NULL;
    exphil_status status = exphil_slp_read(context, sample.data, sample.bytes, config, &slp, error);
    assert_true((status == EXPHIL_OK) == (slp != NULL));
    exphil_slp_destroy(slp);
    return status;
}

static void test_config(void **state)
{
    struct {
        exphil_slp_config known;
        uint64_t later;
    } newer = {EXPHIL_SLP_CONFIG_INIT, 0};
    exphil_slp_config config = EXPHIL_SLP_CONFIG_INIT;
    assert_int_equal(read_with(&config, NULL), EXPHIL_OK);
    config.rollback = 3;
    assert_int_equal(read_with(&config, NULL), EXPHIL_E_INVALID);
    config.rollback = -1;
    assert_int_equal(read_with(&config, NULL), EXPHIL_E_INVALID);
    config.rollback = 0;
    config.flags = 1;
    assert_int_equal(read_with(&config, NULL), EXPHIL_E_INVALID);
    config.flags = 0;
    config.limit_bytes = (size_t)INT32_MAX + 1;
    assert_int_equal(read_with(&config, NULL), EXPHIL_E_INVALID);
    config.limit_bytes = sample.bytes;
    assert_int_equal(read_with(&config, NULL), EXPHIL_OK);
    config.limit_bytes--;
    assert_int_equal(read_with(&config, NULL), EXPHIL_E_FORMAT);
    config.struct_size = 4;
    assert_int_equal(read_with(&config, NULL), EXPHIL_E_INVALID);
    newer.known.struct_size = sizeof newer;
    assert_int_equal(read_with(&newer, NULL), EXPHIL_OK);
    newer.later = 1;
    assert_int_equal(read_with(&newer, NULL), EXPHIL_E_VERSION);
}

/* Later programs' longer structs are filled as far as this library knows, shorter ones refused. */
static void test_info_sizes(void **state)
{
    struct {
        exphil_slp_info known;
        uint64_t later;
    } newer = {EXPHIL_SLP_INFO_INIT, 7};
    exphil_slp *slp = read_sample();
    newer.known.struct_size = sizeof newer;
    assert_int_equal(exphil_slp_query(slp, &newer.known, NULL), EXPHIL_OK);
    assert_int_equal(newer.known.struct_size, sizeof newer);
    assert_int_equal(newer.known.frame_count, 3);
    assert_int_equal(newer.later, 7);
    newer.known.struct_size = 8;
    assert_int_equal(exphil_slp_query(slp, &newer.known, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_slp_query(slp, NULL, NULL), EXPHIL_E_INVALID);
    exphil_slp_destroy(slp);
}

static void test_files(void **state)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_slp_config config = EXPHIL_SLP_CONFIG_INIT;
    exphil_slp *slp = NULL;
    test_write(test_path("good.slp"), sample.data, sample.bytes);
    test_write(test_path("bad.slp"), "nothing", 7);
    assert_int_equal(exphil_slp_open(context, test_path("good.slp"), NULL, &slp, &error), EXPHIL_OK);
    assert_int_equal(exphil_slp_frame_count(slp), 3);
    exphil_slp_destroy(slp);
    slp = NULL;
    assert_int_equal(exphil_slp_open(context, test_path("bad.slp"), NULL, &slp, &error), EXPHIL_E_FORMAT);
    assert_non_null(strstr(error.message, "bad.slp"));
    assert_non_null(strstr(error.message, "offset 0"));
    assert_int_equal(exphil_slp_open(context, test_path("none.slp"), NULL, &slp, &error), EXPHIL_E_IO);
    config.limit_bytes = 100;
    assert_int_equal(exphil_slp_open(context, test_path("good.slp"), &config, &slp, &error), EXPHIL_E_FORMAT);
    config.flags = 1;
    assert_int_equal(exphil_slp_open(context, test_path("good.slp"), &config, &slp, &error),
                     EXPHIL_E_INVALID);
    assert_null(slp);
    test_folder_remove();
}

/* A replay outlives the handle of its context. */
static void test_keeps_context(void **state)
{
    exphil_slp *slp = NULL;
    exphil_slp_stream *stream = NULL;
    test_memory memory;
    test_memory_init(&memory);
    exphil_context *own = test_context(&memory, NULL, 1);
    assert_int_equal(exphil_slp_read(own, sample.data, sample.bytes, NULL, &slp, NULL), EXPHIL_OK);
    assert_int_equal(exphil_slp_stream_create(own, &stream, NULL), EXPHIL_OK);
    exphil_context_destroy(own);
    assert_int_equal(exphil_slp_frame_at(slp, 0)->frame, -123);
    exphil_slp_destroy(slp);
    exphil_slp_stream_destroy(stream);
    assert_memory_clean(&memory);
}

static int32_t say_yes(void *user)
{
    return 1;
}

static void test_cancel(void **state)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_context *own = NULL;
    exphil_slp *slp = NULL;
    config.threads = 1;
    config.cancel = say_yes;
    assert_int_equal(exphil_context_create(&config, &own, NULL), EXPHIL_OK);
    assert_int_equal(exphil_slp_read(own, sample.data, sample.bytes, NULL, &slp, NULL), EXPHIL_E_CANCELLED);
    assert_null(slp);
    exphil_context_destroy(own);
}

/* Each allocation refused in turn, once and from then on: a clean error and nothing left, then success. */
static void refuse_allocations(const slp_writer *writer, bool fail_on)
{
    test_memory memory;
    test_memory_init(&memory);
    exphil_context *own = test_context(&memory, NULL, 1);
    long long live = atomic_load(&memory.live), n = 0;
    exphil_slp *slp = NULL;
    exphil_status status = EXPHIL_E_MEMORY;
    for (; status == EXPHIL_E_MEMORY; n++) {
        memory.fail_at = atomic_load(&memory.calls) + n + 1;
        memory.fail_on = fail_on;
        status = exphil_slp_read(own, writer->data, writer->bytes, NULL, &slp, NULL);
        memory.fail_at = 0;
        memory.fail_on = false;
        if (status < 0) {
            assert_null(slp);
            assert_int_equal(atomic_load(&memory.live), live);
        }
    }
    assert_int_equal(status, EXPHIL_OK);
    assert_true(n > 5);
    exphil_slp_destroy(slp);
    exphil_context_destroy(own);
    assert_memory_clean(&memory);
}

static void test_no_memory(void **state)
{
    slp_writer writer;
    for (int which = 0; which < SLP_SAMPLES; which++) {
        slp_sample(&writer, which);
        refuse_allocations(&writer, false);
        refuse_allocations(&writer, true);
        slp_free(&writer);
    }
}

/* Frames of ten bytes, so that the list of frames grows, again with refused allocations. */
static void test_many_small_frames(void **state)
{
    slp_writer writer;
    slp_begin(&writer, &slp_layouts[SLP_NEWEST], false);
    slp_declare(&writer, 0x3A, 4);
    slp_declare(&writer, 0x3C, 4);
    slp_head(&writer, &slp_layouts[SLP_NEWEST]);
    for (int32_t i = 0; i < 3000; i++) slp_frame(&writer, i % 1500, 0, 0);
    slp_close(&writer, 0);
    refuse_allocations(&writer, false);
    exphil_slp *slp = NULL;
    assert_int_equal(exphil_slp_read(context, writer.data, writer.bytes, NULL, &slp, NULL), EXPHIL_OK);
    assert_int_equal(exphil_slp_frame_count(slp), 1500);
    assert_int_equal(exphil_slp_slot_count(slp), 0);
    assert_int_equal(exphil_slp_frame_at(slp, 1499)->instance, 2999);
    exphil_slp_destroy(slp);
    slp_free(&writer);
}

static void test_stream_no_memory(void **state)
{
    test_memory memory;
    exphil_slp_stream *stream = NULL;
    test_memory_init(&memory);
    exphil_context *own = test_context(&memory, NULL, 1);
    memory.fail_at = atomic_load(&memory.calls) + 1;
    assert_int_equal(exphil_slp_stream_create(own, &stream, NULL), EXPHIL_E_MEMORY);
    assert_null(stream);
    exphil_context_destroy(own);
    assert_memory_clean(&memory);
}

/* ---- dumps --------------------------------------------------------------------------------------------- */

static void test_dump_arguments(void **state)
{
    uint8_t buffer[4096];
    exphil_slp *slp = read_sample();
    assert_int_equal(exphil_slp_dump_bytes(slp, EXPHIL_SLP_DUMP_STATE, 0), 3 * 24);
    assert_int_equal(exphil_slp_dump_bytes(slp, EXPHIL_SLP_DUMP_INPUT, 1), 3 * 30);
    assert_int_equal(exphil_slp_dump_bytes(slp, EXPHIL_SLP_DUMP_AUX, 2), 2 * 54);
    assert_int_equal(exphil_slp_dump_bytes(slp, EXPHIL_SLP_DUMP_ITEMS, 9), 3 * 6 + 3 * 34);
    assert_int_equal(exphil_slp_dump_bytes(slp, EXPHIL_SLP_DUMP_STATE, 3), 0);
    assert_int_equal(exphil_slp_dump_bytes(slp, 4, 0), 0);
    assert_int_equal(exphil_slp_dump_bytes(slp, -1, 0), 0);
    assert_int_equal(exphil_slp_dump_bytes(NULL, EXPHIL_SLP_DUMP_ITEMS, 0), 0);
    assert_int_equal(exphil_slp_dump(slp, 0, 0, buffer, 72, NULL), EXPHIL_OK);
    assert_int_equal(exphil_slp_dump(slp, 0, 0, buffer, 73, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_slp_dump(slp, 0, 0, NULL, 72, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_slp_dump(slp, 0, 3, buffer, 0, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_slp_dump(slp, 5, 0, buffer, 0, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_slp_dump(NULL, 0, 0, buffer, 0, NULL), EXPHIL_E_INVALID);
    exphil_slp_destroy(slp);
}

/* Bytes of the last item: frame -121 has two, the second at the end of the dump. */
static void test_item_dump(void **state)
{
    uint8_t buffer[120], right[34];
    static const uint8_t order[34] = {0x06, 0x05, 0x07, 0x0B, 0x0A, 0x09, 0x08, 0x0F, 0x0E, 0x0D, 0x0C, 0x13,
                                      0x12, 0x11, 0x10, 0x17, 0x16, 0x15, 0x14, 0x1B, 0x1A, 0x19, 0x18, 0x1D,
                                      0x1C, 0x21, 0x20, 0x1F, 0x1E, 0x25, 0x24, 0x23, 0x22, 0x2A};
    exphil_slp *slp = read_sample();
    assert_int_equal(exphil_slp_dump(slp, EXPHIL_SLP_DUMP_ITEMS, 0, buffer, sizeof buffer, NULL), EXPHIL_OK);
    for (size_t i = 0; i < sizeof right; i++) right[i] = slp_byte(0x3B, -121, 1, 0, order[i]);
    assert_memory_equal(buffer + sizeof buffer - sizeof right, right, sizeof right);
    assert_memory_equal(buffer, "\x85\xFF\xFF\xFF\x00\x00", 6);
    exphil_slp_destroy(slp);
}

/* A field that the replay lacks: NaN, FF, -1. */
static void test_dump_absent(void **state)
{
    slp_writer writer;
    uint8_t buffer[3 * 54];
    exphil_slp *slp = NULL;
    slp_sample(&writer, 0);
    assert_int_equal(exphil_slp_read(context, writer.data, writer.bytes, NULL, &slp, NULL), EXPHIL_OK);
    assert_int_equal(exphil_slp_dump(slp, EXPHIL_SLP_DUMP_AUX, 0, buffer, sizeof buffer, NULL), EXPHIL_OK);
    for (size_t i = 11; i < 20; i++) assert_int_equal(buffer[i], 0xFF);
    for (size_t i = 20; i < 52; i += 4) assert_memory_equal(buffer + i, "\x00\x00\xC0\x7F", 4);
    assert_memory_equal(buffer + 52, "\xFF\xFF", 2);
    exphil_slp_destroy(slp);
    slp_free(&writer);
}

static int set_up(void **state)
{
    slp_sample(&sample, SLP_NEWEST);
    return context_open(state);
}

static int tear_down(void **state)
{
    slp_free(&sample);
    return context_close(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_config),
        cmocka_unit_test(test_info_sizes),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_keeps_context),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_many_small_frames),
        cmocka_unit_test(test_stream_no_memory),
        cmocka_unit_test(test_dump_arguments),
        cmocka_unit_test(test_item_dump),
        cmocka_unit_test(test_dump_absent),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
