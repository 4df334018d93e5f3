/* The live stream: the same frames as the file reader gives under EXPHIL_SLP_ALL, whatever the pieces in
 * which the bytes come; corrections, ends, failures and the start of another game. */
#include "context_case.h"
#include "slp_writer.h"

#include <exphil/slp.h>

#include <stdlib.h>

static exphil_slp_stream *new_stream(void)
{
    exphil_slp_stream *stream = NULL;
    assert_int_equal(exphil_slp_stream_create(context, &stream, NULL), EXPHIL_OK);
    return stream;
}

static bool same_bits(const void *a, const void *b, size_t bytes)
{
    return memcmp(a, b, bytes) == 0;
}

/* The frame that is ready equals the one at a position of the file. Stage values held across a rollback may
 * differ and are looked at where there is none. */
static void check_frame(const exphil_slp_stream *stream, const exphil_slp *slp, int64_t position)
{
    const exphil_slp_frame *live = exphil_slp_stream_frame(stream),
                           *filed = exphil_slp_frame_at(slp, position);
    assert_non_null(live);
    assert_non_null(filed);
    assert_int_equal(live->frame, filed->frame);
    assert_int_equal(live->slots, filed->slots);
    assert_int_equal(live->item_count, filed->item_count);
    assert_true(same_bits(&live->frame, &filed->frame, sizeof *live - offsetof(exphil_slp_frame, frame)));
    assert_true(same_bits(live->items, filed->items, (size_t)live->item_count * sizeof *live->items));
    for (int32_t slot = 0; slot < 8; slot++) {
        const exphil_slp_player *a = exphil_slp_stream_player(stream, slot / 2, slot % 2);
        const exphil_slp_player *b = exphil_slp_player_at(slp, position, slot / 2, slot % 2);
        assert_int_equal(a != NULL, b != NULL);
        if (a) assert_true(same_bits(a, b, sizeof *a));
    }
}

/* Pushes in pieces of the given length; returns how many frames came. */
static int64_t push_all(exphil_slp_stream *stream, const slp_writer *writer, size_t piece,
                        const exphil_slp *slp)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    int64_t frames = 0;
    size_t at = 0;
    while (at < writer->bytes) {
        size_t bytes = writer->bytes - at < piece ? writer->bytes - at : piece, used = 99;
        exphil_status status = exphil_slp_stream_push(stream, writer->data + at, bytes, &used, &error);
        if (status < 0) fail_msg("%s", error.message);
        assert_true(used <= bytes);
        at += used;
        assert_int_equal(exphil_slp_stream_frame(stream) != NULL, status == EXPHIL_OK);
        if (status == EXPHIL_END) break;
        if (status == EXPHIL_OK) check_frame(stream, slp, frames++);
        if (status == EXPHIL_AGAIN) assert_int_equal(used, bytes);
    }
    return frames;
}

static void test_pieces(void **state)
{
    static const size_t pieces[] = {1, 2, 7, 64, 1000, SIZE_MAX};
    for (int which = 0; which < SLP_SAMPLES; which++) {
        slp_writer writer;
        exphil_slp_config config = {sizeof config, 0, EXPHIL_SLP_ALL, 0};
        exphil_slp *slp = NULL;
        slp_sample(&writer, which);
        assert_int_equal(exphil_slp_read(context, writer.data, writer.bytes, &config, &slp, NULL), EXPHIL_OK);
        int64_t count = exphil_slp_frame_count(slp);
        if (which == 21) count--; /* one frame stands behind the game end */
        if (which == 19)
            count--; /* nothing ever ends the last frame: no bookend, no next frame, no game end */
        for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
            exphil_slp_stream *stream = new_stream();
            assert_int_equal(push_all(stream, &writer, pieces[i], slp), count);
            exphil_slp_stream_destroy(stream);
        }
        exphil_slp_destroy(slp);
        slp_free(&writer);
    }
}

static exphil_status push(exphil_slp_stream *stream, const void *data, size_t bytes, size_t *used)
{
    *used = 12345;
    return exphil_slp_stream_push(stream, data, bytes, used, NULL);
}

/* With a bookend the frame comes with its last byte, not with the next frame. */
static void test_latency(void **state)
{
    slp_writer writer;
    size_t used;
    slp_begin(&writer, &slp_layouts[SLP_NEWEST], true);
    slp_head(&writer, &slp_layouts[SLP_NEWEST]);
    slp_frame(&writer, -123, 0x05, 2);
    exphil_slp_stream *stream = new_stream();
    assert_int_equal(push(stream, writer.data, writer.bytes - 1, &used), EXPHIL_AGAIN);
    assert_null(exphil_slp_stream_frame(stream));
    assert_null(exphil_slp_stream_player(stream, 0, 0));
    assert_int_equal(push(stream, writer.data + writer.bytes - 1, 1, &used), EXPHIL_OK);
    assert_int_equal(exphil_slp_stream_frame(stream)->frame, -123);
    assert_int_equal(exphil_slp_stream_frame(stream)->item_count, 2);
    assert_non_null(exphil_slp_stream_player(stream, 1, 0));
    assert_null(exphil_slp_stream_player(stream, 1, 1));
    assert_null(exphil_slp_stream_player(stream, 4, 0));
    assert_null(exphil_slp_stream_player(stream, 0, 2));
    assert_int_equal(push(stream, NULL, 0, &used), EXPHIL_AGAIN);
    assert_int_equal(used, 0);
    assert_null(exphil_slp_stream_frame(stream));
    exphil_slp_stream_destroy(stream);
    slp_free(&writer);
}

static bool is_told(exphil_status status, const exphil_error *error)
{
    return status == EXPHIL_E_STATE && strstr(error->message, "fork");
}

static int goes_on(void *arg)
{
    exphil_slp_stream *stream = arg;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_slp_info info = EXPHIL_SLP_INFO_INIT;
    exphil_melee_frame frame = EXPHIL_MELEE_FRAME_INIT;
    size_t used;
    if (!is_told(exphil_slp_stream_query(stream, &info, &error), &error)) return 1;
    if (!is_told(exphil_slp_stream_melee_frame(stream, 1, 2, &frame, &error), &error)) return 2;
    if (!is_told(exphil_slp_stream_push(stream, NULL, 0, &used, &error), &error)) return 3;
    if (!is_told(exphil_slp_stream_reset(stream, &error), &error)) return 4;
    exphil_slp_stream_destroy(stream);
    return 0;
}

/* A child that goes on with a stream of its parent's is told by every call that has a status. */
static void test_fork(void **state)
{
    slp_writer writer;
    size_t used;
    slp_begin(&writer, &slp_layouts[SLP_NEWEST], true);
    slp_head(&writer, &slp_layouts[SLP_NEWEST]);
    slp_frame(&writer, -123, 0x05, 2);
    exphil_slp_stream *stream = new_stream();
    assert_int_equal(push(stream, writer.data, writer.bytes, &used), EXPHIL_OK);
    assert_int_equal(test_in_copy(goes_on, stream), 0);
    exphil_slp_stream_destroy(stream);
    slp_free(&writer);
}

/* More items than the limit: the first ones stay. */
static void test_item_limit(void **state)
{
    slp_writer writer;
    exphil_slp_info info = EXPHIL_SLP_INFO_INIT;
    size_t used;
    slp_begin(&writer, &slp_layouts[SLP_NEWEST], true);
    slp_head(&writer, &slp_layouts[SLP_NEWEST]);
    slp_frame(&writer, -123, 0x01, EXPHIL_SLP_STREAM_ITEMS + 3);
    exphil_slp_stream *stream = new_stream();
    assert_int_equal(push(stream, writer.data, writer.bytes, &used), EXPHIL_OK);
    assert_int_equal(exphil_slp_stream_frame(stream)->item_count, EXPHIL_SLP_STREAM_ITEMS);
    assert_int_equal(exphil_slp_stream_query(stream, &info, NULL), EXPHIL_OK);
    assert_int_equal(info.problems, EXPHIL_SLP_PROBLEM_ITEM_LIMIT);
    assert_int_equal(info.problem_count, 3);
    exphil_slp_stream_destroy(stream);
    slp_free(&writer);
}

/* Frames until END or a failure; the number of frames. */
static int drain(exphil_slp_stream *stream, const slp_writer *writer, exphil_status *last)
{
    size_t at = 0, used = 0;
    int frames = 0;
    do {
        *last = exphil_slp_stream_push(stream, writer->data + at, writer->bytes - at, &used, NULL);
        if (*last >= 0) at += used;
        frames += *last == EXPHIL_OK;
    } while (*last == EXPHIL_OK);
    return frames;
}

static void test_games(void **state)
{
    slp_writer writer;
    exphil_slp_info info = EXPHIL_SLP_INFO_INIT;
    exphil_status last;
    exphil_slp_stream *stream = new_stream();
    for (int which = 0; which < 16; which++) { /* one stream, many games */
        slp_sample(&writer, which);
        assert_int_equal(exphil_slp_stream_query(stream, &info, NULL), EXPHIL_E_STATE);
        assert_int_equal(drain(stream, &writer, &last), 3);
        assert_int_equal(last, EXPHIL_END);
        assert_int_equal(drain(stream, &writer, &last), 0);
        assert_int_equal(last, EXPHIL_END);
        assert_int_equal(exphil_slp_stream_query(stream, &info, NULL), EXPHIL_OK);
        assert_memory_equal(info.version, slp_layouts[which].version, 3);
        assert_int_equal(info.frame_count, 3);
        assert_int_equal(info.first_frame, -123);
        assert_int_equal(info.last_frame, -121);
        assert_int_equal(info.end_count, 1);
        assert_int_equal(exphil_slp_stream_reset(stream, NULL), EXPHIL_OK);
        slp_free(&writer);
    }
    exphil_slp_stream_destroy(stream);
}

/* Ends: the declared length (without game end), the metadata, an event across the end. */
static void test_ends(void **state)
{
    slp_writer writer;
    exphil_status last;
    exphil_slp_stream *stream = new_stream();
    for (int kind = 0; kind < 3; kind++) {
        slp_begin(&writer, &slp_layouts[1], false);
        slp_head(&writer, &slp_layouts[1]);
        slp_frame(&writer, -123, 0x05, 0);
        slp_frame(&writer, -122, 0x05, 0);
        if (kind != 1) slp_length(&writer, (int32_t)writer.bytes - 15 + (kind == 2 ? 20 : 0));
        if (kind != 2) slp_metadata(&writer, -122);
        if (kind == 2) slp_frame(&writer, -121, 0x05, 0);
        assert_int_equal(drain(stream, &writer, &last), 2);
        assert_int_equal(last, EXPHIL_END);
        assert_int_equal(exphil_slp_stream_reset(stream, NULL), EXPHIL_OK);
        slp_free(&writer);
    }
    exphil_slp_stream_destroy(stream);
}

/* A failure stays until the reset, and used_bytes stays as it was. */
static void refused(const char *data, size_t bytes, const char *text)
{
    exphil_slp_stream *stream = new_stream();
    for (int again = 0; again < 2; again++) {
        exphil_error error = EXPHIL_ERROR_INIT;
        size_t used = 77;
        assert_int_equal(exphil_slp_stream_push(stream, data, bytes, &used, &error), EXPHIL_E_FORMAT);
        assert_int_equal(used, 77);
        assert_says(&error, text);
    }
    assert_int_equal(exphil_slp_stream_reset(stream, NULL), EXPHIL_OK);
    size_t used;
    assert_int_equal(exphil_slp_stream_push(stream, "\x35", 1, &used, NULL), EXPHIL_AGAIN);
    exphil_slp_stream_destroy(stream);
}

static void test_failures(void **state)
{
    refused("this is not a replay", 20, "byte 0x74 at offset 0");
    refused("\x35\x00\x00", 3, "size 0");
    refused("\x35\x04\x37\x00\x01", 5, "no game start");
    refused("\x35\x04\x36\x01\x40\x99", 6, "event 0x99 at offset 5 has no size");
    refused("\x35\x04\x36\x01\x40U\x09", 7, "event 0x55 at offset 5 has no size");
    refused("\x35\x07\x36\x01\x40\x99\x00\x00\x99", 9, "comes before the game start");
    refused("{U\x03raw[$U#l\x00\x00\x00\x03\x35\x04\x36\x01\x40", 20, "is cut at offset 18");
}

static void test_arguments(void **state)
{
    exphil_slp_info info = EXPHIL_SLP_INFO_INIT;
    size_t used;
    exphil_slp_stream *stream = new_stream();
    assert_int_equal(exphil_slp_stream_create(NULL, &stream, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_slp_stream_create(context, NULL, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_slp_stream_push(NULL, "", 0, &used, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_slp_stream_push(stream, NULL, 1, &used, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_slp_stream_push(stream, "\x35", 1, NULL, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_slp_stream_reset(NULL, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_slp_stream_query(NULL, &info, NULL), EXPHIL_E_INVALID);
    assert_null(exphil_slp_stream_frame(NULL));
    assert_null(exphil_slp_stream_player(NULL, 0, 0));
    exphil_slp_stream_destroy(NULL);
    exphil_slp_stream_destroy(stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),    cmocka_unit_test(test_latency), cmocka_unit_test(test_item_limit),
        cmocka_unit_test(test_games),     cmocka_unit_test(test_ends),    cmocka_unit_test(test_failures),
        cmocka_unit_test(test_arguments), cmocka_unit_test(test_fork),
    };
    return cmocka_run_group_tests(tests, context_open, context_close);
}
