/* What sessions refuse, and that nothing moves then: bad rows, numbers that overflow, hosts that do not fit. */
#include "play_case.h"

#include <math.h>
#include <stdlib.h>

static void *save_all(const exphil_session *session, int64_t streams)
{
    size_t bytes = exphil_session_state_size(session);
    unsigned char *all = malloc(bytes * (size_t)streams);
    for (int64_t b = 0; b < streams; b++)
        assert_ok(exphil_session_state_save(session, b, all + bytes * (size_t)b, bytes));
    return all;
}

typedef struct bad_input {
    const char *says;
    exphil_status status;
    int64_t at_float, at_id, at_noise;
    float value;
    int32_t id;
} bad_input;

static void bad_rows_move_nothing(void **state)
{
    static const bad_input cases[] = {
        {"stream 1: floats[12]", EXPHIL_E_NUMERIC, 25, -1, -1, NAN, 0},
        {"stream 0: floats[0]", EXPHIL_E_NUMERIC, 0, -1, -1, INFINITY, 0},
        {"stream 0: floats[3]", EXPHIL_E_NUMERIC, 3, -1, -1, -INFINITY, 0},
        {"stream 1: ids[0] stage is 5, outside 0..4", EXPHIL_E_INVALID, -1, 2, -1, 0, 5},
        {"stream 0: ids[1] own.character is -1", EXPHIL_E_INVALID, -1, 1, -1, 0, -1},
        {"stream 0: ids[1]", EXPHIL_E_INVALID, -1, 1, -1, 0, INT32_MAX},
        {"noise[23]", EXPHIL_E_INVALID, -1, -1, 23, 1.0f, 0},
        {"noise[0]", EXPHIL_E_INVALID, -1, -1, 0, 0.0f, 0},
        {"noise[5]", EXPHIL_E_INVALID, -1, -1, 5, NAN, 0},
    };
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    how.streams = 2;
    play_pair p = play_pair_make("(mamba attention)*2", 2, how, how, 10);
    int32_t action[2 * PLAY_HEADS], untouched[2 * PLAY_HEADS];
    for (int64_t t = 0; t < 8; t++) play_step(p.a, p.f, t, true, action);
    unsigned char *before = save_all(p.a, 2);
    memset(action, 0x55, sizeof action);
    memcpy(untouched, action, sizeof action);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        float floats[26], noise[2 * PLAY_LOGITS];
        int32_t ids[4];
        memcpy(floats, p.f->floats, sizeof floats);
        memcpy(noise, p.f->noise, sizeof noise);
        memcpy(ids, p.f->ids, sizeof ids);
        if (cases[i].at_float >= 0) floats[cases[i].at_float] = cases[i].value;
        if (cases[i].at_id >= 0) ids[cases[i].at_id] = cases[i].id;
        if (cases[i].at_noise >= 0) noise[cases[i].at_noise] = cases[i].value;
        assert_int_equal(exphil_session_step_row(p.a, floats, ids, noise, action), cases[i].status);
        play_says(p.a, cases[i].status, cases[i].says);
        unsigned char *after = save_all(p.a, 2);
        assert_memory_equal(after, before, 2 * exphil_session_state_size(p.a));
        assert_memory_equal(action, untouched, sizeof action);
        free(after);
    }
    exphil_session_info info = EXPHIL_SESSION_INFO_INIT;
    assert_ok(exphil_session_query(p.a, &info, NULL));
    assert_int_equal(info.steps, 8);
    free(before);
    play_pair_free(&p);
}

/* Finite inputs so large that sums overflow: that stream starts again, its neighbours have not moved. */
static void overflow_resets_its_stream_alone(void **state)
{
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    how.streams = 3;
    play_pair p = play_pair_make("mamba lstm attention", 1, how, how, 10);
    int32_t action[3 * PLAY_HEADS], wanted[3 * PLAY_HEADS];
    for (int64_t t = 0; t < 6; t++) {
        play_step(p.a, p.f, t, true, action);
        play_step(p.b, p.f, t, true, wanted);
    }
    size_t bytes = exphil_session_state_size(p.a);
    assert_ok(exphil_session_reset(p.b, 1));
    unsigned char *want = save_all(p.b, 3);
    float floats[39];
    memcpy(floats, p.f->floats, sizeof floats);
    for (int i = 13; i < 26; i++) floats[i] = 3e38f;
    assert_int_equal(exphil_session_step_row(p.a, floats, p.f->ids, NULL, action), EXPHIL_E_NUMERIC);
    play_says(p.a, EXPHIL_E_NUMERIC, "stream 1: the logits are not finite; it was reset");
    unsigned char *got = save_all(p.a, 3);
    assert_memory_equal(got, want, 3 * bytes);
    for (int64_t t = 6; t < 10; t++) {
        play_step(p.a, p.f, t, true, action);
        play_step(p.b, p.f, t, true, wanted);
        assert_memory_equal(action, wanted, sizeof action);
    }
    free(got);
    free(want);
    play_pair_free(&p);
}

static void small_calls_name_what_is_wrong(void **state)
{
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    how.streams = 2;
    play_pair p = play_pair_make("gru", 1, how, how, 4);
    float logits[PLAY_LOGITS] = {0};
    const int32_t wild[PLAY_HEADS] = {8, 0, 0};
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(exphil_session_error(p.a, &error), EXPHIL_OK);
    assert_int_equal(exphil_session_logits(p.a, 2, logits, PLAY_LOGITS), EXPHIL_E_INVALID);
    play_says(p.a, EXPHIL_E_INVALID, "stream is 2, the session has 2");
    assert_int_equal(exphil_session_logits(p.a, -1, logits, PLAY_LOGITS), EXPHIL_E_INVALID);
    assert_int_equal(exphil_session_logits(p.a, 0, logits, PLAY_LOGITS - 1), EXPHIL_E_INVALID);
    play_says(p.a, EXPHIL_E_INVALID, "count is 11, there are 12");
    assert_int_equal(exphil_session_reset(p.a, -2), EXPHIL_E_INVALID);
    play_says(p.a, EXPHIL_E_INVALID, "stream is -2");
    assert_int_equal(exphil_session_override(p.a, 0, wild), EXPHIL_E_INVALID);
    play_says(p.a, EXPHIL_E_INVALID, "buttons is 8");
    assert_int_equal(exphil_session_override(p.a, 0, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_session_step_row(p.a, p.f->floats, NULL, NULL, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_session_error(p.b, NULL), EXPHIL_OK);
    play_pair_free(&p);
}

static void hosts_that_do_not_fit_are_refused(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_model_config config = model_case_config("gru", EXPHIL_TYPE_F32);
    exphil_model *model = model_case_create(context, &config);
    const int32_t delay = 3, window = EXPHIL_MODE_WINDOW, right = 1, carry = EXPHIL_MODE_CARRY;
    exphil_spec other = model_case_spec;
    other.layout = "elsewhere";
    const struct {
        exphil_session_config config;
        const char *says[2];
    } cases[] = {
        {{.delay_frames = &delay}, {"delay_frames 3", "with 1"}},
        {{.mode = &window}, {"mode window (1)", "mode carry"}},
        {{.spec = &other}, {"elsewhere/made-up", "made-up/made-up"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        exphil_session_config how = cases[i].config;
        exphil_session *session = NULL;
        exphil_error error = EXPHIL_ERROR_INIT;
        how.struct_size = sizeof how;
        assert_int_equal(exphil_session_create(model, &how, &session, &error), EXPHIL_E_MISMATCH);
        assert_null(session);
        for (int k = 0; k < 2; k++) assert_says(&error, cases[i].says[k]);
    }
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    how.delay_frames = &right;
    how.mode = &carry;
    how.spec = &model_case_spec;
    exphil_session_destroy(play_session(model, &how));
    exphil_model_destroy(model);
    exphil_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_rows_move_nothing),
        cmocka_unit_test(overflow_resets_its_stream_alone),
        cmocka_unit_test(small_calls_name_what_is_wrong),
        cmocka_unit_test(hosts_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
