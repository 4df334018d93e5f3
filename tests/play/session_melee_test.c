/* Sessions of Melee: frames are encoded rows, and bad frames are refused. */
#include "play_case.h"

#include "melee_frame.h"

#include <math.h>
#include <stdlib.h>

static exphil_model *melee_model(exphil_context *context)
{
    exphil_model_config config = model_case_config("gru", EXPHIL_TYPE_F32);
    config.spec = NULL;
    return play_model(context, &config, 0.1);
}

/* Two sessions, one given frames, one what the encoder makes of them. */
static void frames_are_encoded_rows(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_model *model = melee_model(context);
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    how.streams = 2;
    exphil_session *live = play_session(model, &how), *rows = play_session(model, &how);
    exphil_session_info info = EXPHIL_SESSION_INFO_INIT;
    assert_ok(exphil_session_query(live, &info, NULL));
    float *floats = calloc((size_t)(2 * info.float_count), sizeof *floats);
    int32_t *ids = calloc((size_t)(2 * info.id_count) + 1, sizeof *ids), action[2][EXPHIL_HEADS_MAX];
    for (int t = 0; t < 20; t++) {
        exphil_melee_frame frame[2] = {melee_frame(), melee_frame()};
        exphil_pad pad[2], want;
        frame[0].player[1].x += (float)t;
        frame[1].player[1].y -= (float)t;
        assert_ok(exphil_session_step(live, frame, pad));
        for (int b = 0; b < 2; b++)
            assert_ok(exphil_melee_encode(NULL, &frame[b], floats + b * info.float_count,
                                          ids + b * info.id_count, NULL));
        assert_ok(exphil_session_step_row(rows, floats, ids, NULL, action[0]));
        for (int b = 0; b < 2; b++) {
            assert_ok(exphil_melee_pad_decode(NULL, action[0] + b * info.head_count, &want, NULL));
            assert_memory_equal(&pad[b], &want, sizeof want);
        }
    }
    free(floats);
    free(ids);
    exphil_session_destroy(live);
    exphil_session_destroy(rows);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
}

static void bad_frames_are_refused(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_model *model = melee_model(context);
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    how.streams = 2;
    exphil_session *session = play_session(model, &how);
    exphil_pad pad[2], untouched[2];
    memset(pad, 0x77, sizeof pad);
    memcpy(untouched, pad, sizeof pad);
    exphil_melee_frame frame[2] = {melee_frame(), melee_frame()};
    frame[1].own_port = 3;
    assert_int_equal(exphil_session_step(session, frame, pad), EXPHIL_E_INVALID);
    play_says(session, EXPHIL_E_INVALID, "frames[1]: ");
    frame[1] = melee_frame();
    frame[1].player[1].x = NAN;
    assert_int_equal(exphil_session_step(session, frame, pad), EXPHIL_E_NUMERIC);
    play_says(session, EXPHIL_E_NUMERIC, "own.x");
    frame[1] = melee_frame();
    frame[1].struct_size = 8;
    assert_int_equal(exphil_session_step(session, frame, pad), EXPHIL_E_INVALID);
    play_says(session, EXPHIL_E_INVALID, "frames[1].struct_size");
    frame[0].struct_size = 0;
    assert_int_equal(exphil_session_step(session, frame, pad), EXPHIL_E_INVALID);
    frame[0].struct_size = SIZE_MAX - 7;
    assert_int_equal(exphil_session_step(session, frame, pad), EXPHIL_E_INVALID);
    assert_int_equal(exphil_session_step(session, NULL, pad), EXPHIL_E_INVALID);
    play_says(session, EXPHIL_E_INVALID, "frames is NULL");
    frame[0] = frame[1] = melee_frame();
    assert_int_equal(exphil_session_step(session, frame, NULL), EXPHIL_E_INVALID);
    play_says(session, EXPHIL_E_INVALID, "pads is NULL");
    assert_memory_equal(pad, untouched, sizeof pad);
    exphil_session_destroy(session);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
}

/* Frames of a newer program: longer structs, whose tail must be zero. */
static void longer_frames_are_stepped_over(void **state)
{
    typedef struct longer {
        exphil_melee_frame frame;
        uint64_t more[2];
    } longer;
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_model *model = melee_model(context);
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    how.streams = 2;
    exphil_session *session = play_session(model, &how), *other = play_session(model, &how);
    longer given[2] = {{melee_frame(), {0, 0}}, {melee_frame(), {0, 0}}};
    exphil_melee_frame plain[2] = {melee_frame(), melee_frame()};
    exphil_pad pad[2], want[2];
    given[1].frame.player[1].x = plain[1].player[1].x = 3;
    for (int i = 0; i < 2; i++) given[i].frame.struct_size = sizeof given[i];
    assert_ok(exphil_session_step(session, &given[0].frame, pad));
    assert_ok(exphil_session_step(other, plain, want));
    assert_memory_equal(pad, want, sizeof pad);
    given[1].more[1] = 1;
    assert_int_equal(exphil_session_step(session, &given[0].frame, pad), EXPHIL_E_VERSION);
    play_says(session, EXPHIL_E_VERSION, "frames[1]");
    exphil_session_destroy(session);
    exphil_session_destroy(other);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
}

/* A spec that only bears Melee's names has rows of another length: frames must not be encoded for it. */
static void names_alone_are_not_melee(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_model_config config = model_case_config("mlp", EXPHIL_TYPE_F32);
    exphil_spec spec = model_case_spec;
    spec.layout = "melee2";
    spec.codec = "exphil81";
    config.spec = &spec;
    exphil_model *model = model_case_create(context, &config);
    exphil_session *session = play_session(model, NULL);
    exphil_melee_frame frame = melee_frame();
    exphil_pad pad;
    assert_int_equal(exphil_session_step(session, &frame, &pad), EXPHIL_E_STATE);
    play_says(session, EXPHIL_E_STATE, "exphil_session_step_row");
    exphil_session_destroy(session);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_encoded_rows),
        cmocka_unit_test(bad_frames_are_refused),
        cmocka_unit_test(longer_frames_are_stepped_over),
        cmocka_unit_test(names_alone_are_not_melee),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
