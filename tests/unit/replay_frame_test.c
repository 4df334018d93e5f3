/* From replays and live streams to observations through the public interface: positions, ports, names, and a live stream
 * that gives the bits of the finished replay. */
#include "slp_writer.h"
#include "test.h"

#include <exphil/slp.h>

#include <stdlib.h>

static exphil_slp *read_sample(exphil_context *context, slp_writer *writer, int32_t first, int32_t last)
{
    exphil_slp *slp = NULL;
    slp_begin(writer, &slp_layouts[SLP_NEWEST], false);
    slp_head(writer, &slp_layouts[SLP_NEWEST]);
    for (int32_t frame = first; frame <= last; frame++)
        if (frame != -120) slp_frame(writer, frame, 1 | 4, 0); /* ports 1 and 2; one frame is missing */
    slp_game_end(writer, 2);
    slp_close(writer, last);
    assert_int_equal(exphil_slp_read(context, writer->data, writer->bytes, NULL, &slp, NULL), EXPHIL_OK);
    return slp;
}

static void positions_and_ports(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    slp_writer writer;
    exphil_slp *slp = read_sample(context, &writer, -123, -100);
    exphil_melee_frame frame = EXPHIL_MELEE_FRAME_INIT, before = frame;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_pad pad = {77, 1, 1, 1, 1, 1};
    assert_int_equal(exphil_slp_position(slp, -123), 0);
    assert_int_equal(exphil_slp_position(slp, -121), 2);
    assert_int_equal(exphil_slp_position(slp, -120), -1);
    assert_int_equal(exphil_slp_position(slp, -119), 3);
    assert_int_equal(exphil_slp_position(slp, -100), 22);
    assert_int_equal(exphil_slp_position(slp, -99), -1);
    assert_int_equal(exphil_slp_position(slp, INT32_MIN), -1);
    assert_int_equal(exphil_slp_position(NULL, 0), -1);
    assert_int_equal(exphil_slp_melee_frame(slp, 2, 2, 0, &frame, &error), EXPHIL_OK);
    assert_int_equal(frame.frame, -121);
    assert_int_equal(frame.own_port, 2);
    assert_int_equal(frame.opponent_port, 1);
    assert_true(frame.player[1].present && frame.player[0].present && !frame.player[2].present);
    const struct {
        int64_t position;
        int32_t own, opponent;
        const char *says;
    } bad[] = {{2, 0, 0, "port is 0"},           {2, 5, 0, "port is 5"},
               {2, 1, 5, "opponent_port is 5"},  {2, 1, 1, "both 1"},
               {-1, 1, 0, "position is -1"},     {23, 1, 0, "position is 23"},
               {2, 3, 0, "port 3 has no record"}};
    frame = before;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(
            exphil_slp_melee_frame(slp, bad[i].position, bad[i].own, bad[i].opponent, &frame, &error),
            EXPHIL_E_INVALID);
        assert_non_null(strstr(error.message, bad[i].says));
        assert_memory_equal(&frame, &before, sizeof frame);
    }
    assert_int_equal(exphil_slp_melee_pad(slp, 2, 3, &pad, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_slp_melee_pad(slp, 2, 0, &pad, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_slp_melee_pad(slp, 2, 1, NULL, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_slp_melee_pad(NULL, 2, 1, &pad, &error), EXPHIL_E_INVALID);
    assert_int_equal(pad.buttons, 77);
    exphil_slp_destroy(slp);
    slp_free(&writer);
    exphil_context_destroy(context);
}

/* Every frame that the stream delivers is the frame of the replay. */
static void live_is_the_replay(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    slp_writer writer;
    exphil_slp *slp = read_sample(context, &writer, -123, -90);
    exphil_slp_stream *stream = NULL;
    exphil_melee_frame live = EXPHIL_MELEE_FRAME_INIT, kept = EXPHIL_MELEE_FRAME_INIT;
    size_t at = 15, used = 0; /* behind the container's header */
    int64_t frames = 0;
    assert_int_equal(exphil_slp_stream_create(context, &stream, NULL), EXPHIL_OK);
    assert_int_equal(exphil_slp_stream_melee_frame(stream, 1, 0, &live, NULL), EXPHIL_E_STATE);
    while (at < writer.bytes) {
        exphil_status status =
            exphil_slp_stream_push(stream, writer.data + at, writer.bytes - at, &used, NULL);
        at += used;
        if (status != EXPHIL_OK) break;
        int64_t position = exphil_slp_position(slp, exphil_slp_stream_frame(stream)->frame);
        assert_int_equal(exphil_slp_stream_melee_frame(stream, 1, 0, &live, NULL), EXPHIL_OK);
        assert_int_equal(exphil_slp_melee_frame(slp, position, 1, 0, &kept, NULL), EXPHIL_OK);
        assert_memory_equal(&live, &kept, sizeof live);
        assert_int_equal(exphil_slp_stream_melee_frame(stream, 4, 0, &live, NULL), EXPHIL_E_INVALID);
        frames++;
    }
    assert_int_equal(frames, exphil_slp_frame_count(slp));
    assert_int_equal(exphil_slp_stream_melee_frame(NULL, 1, 0, &live, NULL), EXPHIL_E_INVALID);
    exphil_slp_stream_destroy(stream);
    exphil_slp_destroy(slp);
    slp_free(&writer);
    exphil_context_destroy(context);
}

static void names(void **state)
{
    assert_string_equal(exphil_melee_character_name(2), "fox");
    assert_string_equal(exphil_melee_character_name(10), "mewtwo");
    assert_null(exphil_melee_character_name(-1));
    assert_null(exphil_melee_character_name(1000));
    assert_string_equal(exphil_melee_stage_name(31), "battlefield");
    assert_null(exphil_melee_stage_name(-5));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(positions_and_ports),
                                       cmocka_unit_test(live_is_the_replay), cmocka_unit_test(names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
