/* Sessions: what a step computes is what the net computes over the same frames; the queue; streams; handles. */
#include "play_case.h"

#include "melee_frame.h"
#include "play/play.h"

#include <stdlib.h>

static const char *const patterns[] = {EACH_BLOCK "(mamba attention)*2"};
enum { PATTERNS = sizeof patterns / sizeof patterns[0] };

/* ---- logits are those of the net ---------------------------------------------------------------------------------- */

/* Plays all frames with the given noise; streams are reset where reset [T,B] says so. */
static void play_all(exphil_session *session, const play_frames *f, const uint8_t *reset, int32_t *decided,
                     float *logits)
{
    for (int64_t t = 0; t < f->frames; t++) {
        for (int64_t b = 0; b < f->streams; b++)
            if (reset[t * f->streams + b]) assert_ok(exphil_session_reset(session, b));
        play_step(session, f, t, false, decided + t * f->streams * f->heads);
        play_logits(session, f, logits + t * f->streams * f->logits);
    }
}

static void compare_with_net(exphil_context *context, exphil_model_config config, int64_t streams,
                             int64_t frames, double tolerance)
{
    exphil_model *model = play_model(context, &config, 0.2);
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    how.streams = streams;
    how.deliver = EXPHIL_DELIVER_DECIDED;
    exphil_session *session = play_session(model, &how);
    play_frames *f = play_frames_make(model, streams, frames, 5);
    int64_t rows = frames * streams;
    int32_t *decided = calloc((size_t)(rows * f->heads), 4);
    uint8_t *reset = calloc((size_t)rows, 1);
    float *got = calloc((size_t)(rows * f->logits), sizeof *got);
    double *have = calloc((size_t)(rows * f->logits), sizeof *have),
           *want = calloc((size_t)(rows * f->logits), sizeof *want);
    xph_rng rng = {.seed = 3, .stream = XPH_RNG_TEST};
    for (int64_t i = 0; i < rows; i++) reset[i] = xph_rng_below(&rng, 9) == 0;
    play_all(session, f, reset, decided, got);
    play_reference(model, f, decided, reset, NULL, want);
    for (int64_t i = 0; i < rows * f->logits; i++) {
        have[i] = (double)got[i];
        if (config.type == EXPHIL_TYPE_F64) want[i] = (double)(float)want[i];
    }
    double error = model_case_error(have, want, rows * f->logits);
    if (!(error <= tolerance))
        fail_msg("%s, mode %d, heads %d, delay %d, %lld streams: logits differ by %g", config.blocks,
                 config.mode, config.heads, config.delay_frames, (long long)streams, error);
    free(decided);
    free(reset);
    free(got);
    free(have);
    free(want);
    play_frames_free(f);
    exphil_session_destroy(session);
    exphil_model_destroy(model);
}

static void steps_have_the_bits_of_the_net(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    for (int p = 0; p < PATTERNS; p++)
        for (int32_t delay = 0; delay <= 3; delay++)
            for (int32_t heads = 0; heads <= 1; heads++)
                for (int32_t without = 0; without <= 1; without++) {
                    exphil_model_config config = model_case_config(patterns[p], EXPHIL_TYPE_F32);
                    config.delay_frames = delay;
                    config.heads = heads;
                    config.no_previous_action = without;
                    compare_with_net(context, config, 1 + (p + delay + 2 * heads) % 5, 23, 0.0);
                }
    exphil_context_destroy(context);
}

static void double_precision_too(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    for (int p = 0; p < PATTERNS; p++) {
        exphil_model_config config = model_case_config(patterns[p], EXPHIL_TYPE_F64);
        config.heads = EXPHIL_HEADS_AUTOREGRESSIVE;
        compare_with_net(context, config, 2, 11, 0.0);
    }
    exphil_context_destroy(context);
}

/* Short windows take the plain method of attention, as the reference does; long ones another. */
static void windows_have_the_bits_of_the_net(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    for (int p = 0; p < PATTERNS; p++)
        for (int32_t delay = 0; delay <= 3; delay++)
            for (int32_t heads = 0; heads <= 1; heads++) {
                exphil_model_config config = model_case_config(patterns[p], EXPHIL_TYPE_F32);
                config.mode = EXPHIL_MODE_WINDOW;
                config.window_frames = delay == 3 ? 1 : 6;
                config.delay_frames = delay;
                config.heads = heads;
                config.no_previous_action = (p + delay) % 2;
                compare_with_net(context, config, 1 + (p + delay) % 5, 17, 0.0);
                if (delay) continue;
                config.window_frames = 20;
                compare_with_net(context, config, 2, 30, 1e-5);
            }
    exphil_context_destroy(context);
}

static void other_heads_have_the_bits_of_the_net(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    for (int32_t i = 0; i < 16 * MODEL_CASE_ENDS; i++) {
        exphil_model_config config = model_case_config(i & 1 ? "gru ffn_gelu" : "norm lstm_only",
                                                       i % 3 ? EXPHIL_TYPE_F32 : EXPHIL_TYPE_F64);
        config.heads = i / 2 & 1;
        config.mode = i / 4 & 1;
        config.window_frames = config.mode ? 5 : 0;
        config.delay_frames = i / 8 & 1 ? 3 : 0;
        config.no_previous_action = i % 5 == 1;
        model_case_end(&config, i / 16);
        if (!(i & 1)) config.input_width = i & 2 ? 31 : 13;
        compare_with_net(context, config, 1 + i % 4, 17, 0.0);
    }
    exphil_context_destroy(context);
}

static void specs_without_floats_or_ids(void **state)
{
    static const exphil_id_spec id = {"state", 9, 5};
    static const exphil_head_spec head = {"move", EXPHIL_CATEGORICAL, 3, 1, 0};
    exphil_context *context = test_context(NULL, NULL, 1);
    for (int which = 0; which < 2; which++) {
        exphil_spec spec = EXPHIL_SPEC_INIT;
        spec.layout = "tiny";
        spec.codec = "tiny";
        spec.float_count = which;
        spec.id_count = !which;
        spec.ids = &id;
        spec.head_count = 1;
        spec.heads = &head;
        exphil_model_config config = model_case_config("gru", EXPHIL_TYPE_F32);
        config.spec = &spec;
        compare_with_net(context, config, 3, 12, 0.0);
        config.delay_frames = 0;
        config.no_previous_action = 1;
        config.mode = EXPHIL_MODE_WINDOW;
        config.window_frames = 4;
        compare_with_net(context, config, 3, 12, 0.0);
    }
    exphil_context_destroy(context);
}

/* ---- the queue ------------------------------------------------------------------------------------------------------ */

static void due_is_decided_d_frames_ago(void **state)
{
    enum { FRAMES = 30, RESET = 17 };
    for (int32_t delay = 0; delay <= 3; delay++) {
        exphil_session_config due = EXPHIL_SESSION_CONFIG_INIT;
        due.seed = 9;
        due.streams = 2;
        exphil_session_config decided = due;
        decided.deliver = EXPHIL_DELIVER_DECIDED;
        play_pair p = play_pair_make("lstm", delay, due, decided, FRAMES);
        int32_t is_due[FRAMES][2][PLAY_HEADS], is_decided[FRAMES][2][PLAY_HEADS];
        for (int64_t t = 0; t < FRAMES; t++) {
            if (t == RESET) assert_ok(exphil_session_reset(p.a, 1));
            if (t == RESET) assert_ok(exphil_session_reset(p.b, 1));
            play_step(p.a, p.f, t, true, is_due[t][0]);
            play_step(p.b, p.f, t, true, is_decided[t][0]);
        }
        for (int64_t t = 0; t < FRAMES; t++)
            for (int b = 0; b < 2; b++) {
                int64_t since = b == 1 && t >= RESET ? t - RESET : t;
                const int32_t *want = since < delay ? play_neutral : is_decided[t - delay][b];
                assert_memory_equal(is_due[t][b], want, sizeof play_neutral);
            }
        play_pair_free(&p);
    }
}

static void an_override_is_what_was_done(void **state)
{
    enum { FRAMES = 24 };
    for (int windowed = 0; windowed < 2; windowed++) {
        exphil_context *context = test_context(NULL, NULL, 1);
        exphil_model_config config = model_case_config("gru attention", EXPHIL_TYPE_F32);
        config.delay_frames = 2;
        config.mode = windowed;
        config.window_frames = windowed ? 5 : 0;
        exphil_model *model = play_model(context, &config, 0.2);
        exphil_session *session = play_session(model, NULL); /* DUE */
        play_frames *f = play_frames_make(model, 1, FRAMES, 4);
        int32_t decided[FRAMES][PLAY_HEADS], queue[FRAMES][PLAY_HEADS], due[PLAY_HEADS];
        float got[FRAMES][PLAY_LOGITS];
        double want[FRAMES * PLAY_LOGITS];
        uint8_t reset[FRAMES] = {0};
        for (int32_t t = 0; t < FRAMES; t++) {
            play_step(session, f, t, false, due);
            assert_memory_equal(due, t < 2 ? play_neutral : queue[t - 2], sizeof play_neutral);
            play_logits(session, f, got[t]);
            memcpy(decided[t], xph_play_history(session, 0), sizeof decided[t]);
            memcpy(queue[t], decided[t], sizeof queue[t]);
            if (t % 3 != 1) continue;
            const int32_t done[PLAY_HEADS] = {t % 8, t % 5, t % 4};
            assert_ok(exphil_session_override(session, 0, done));
            memcpy(queue[t], done, sizeof done);
        }
        play_reference(model, f, decided[0], reset, queue[0], want);
        for (int i = 0; i < FRAMES * PLAY_LOGITS; i++)
            assert_true((double)got[i / PLAY_LOGITS][i % PLAY_LOGITS] == want[i]);
        play_frames_free(f);
        exphil_session_destroy(session);
        exphil_model_destroy(model);
        exphil_context_destroy(context);
    }
}

/* ---- streams ------------------------------------------------------------------------------------------------------- */

static void a_stream_alone_is_the_same(void **state)
{
    enum { STREAMS = 5, FRAMES = 20 };
    exphil_context *context = test_context(NULL, NULL, 1);
    for (int p = 0; p < PATTERNS; p++) {
        exphil_model_config config = model_case_config(patterns[p], EXPHIL_TYPE_F32);
        config.heads = EXPHIL_HEADS_AUTOREGRESSIVE;
        exphil_model *model = play_model(context, &config, 0.2);
        exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
        how.streams = STREAMS;
        exphil_session *many = play_session(model, &how), *alone[STREAMS];
        for (int b = 0; b < STREAMS; b++) alone[b] = play_session(model, NULL);
        play_frames *f = play_frames_make(model, STREAMS, FRAMES, 21);
        for (int64_t t = 0; t < FRAMES; t++) {
            int32_t action[STREAMS][PLAY_HEADS], single[PLAY_HEADS];
            if (t == 8) assert_ok(exphil_session_reset(many, 2));
            play_step(many, f, t, false, action[0]);
            for (int b = 0; b < STREAMS; b++) {
                int64_t row = t * STREAMS + b;
                float logits[2][PLAY_LOGITS];
                if (t == 8 && b == 2) assert_ok(exphil_session_reset(alone[b], 0));
                assert_ok(exphil_session_step_row(alone[b], f->floats + row * 13, f->ids + row * 2,
                                                  f->noise + row * PLAY_LOGITS, single));
                assert_ok(exphil_session_logits(many, b, logits[0], PLAY_LOGITS));
                assert_ok(exphil_session_logits(alone[b], 0, logits[1], PLAY_LOGITS));
                assert_memory_equal(logits[0], logits[1], sizeof logits[0]);
                assert_memory_equal(single, action[b], sizeof single);
            }
        }
        for (int b = 0; b < STREAMS; b++) exphil_session_destroy(alone[b]);
        play_frames_free(f);
        exphil_session_destroy(many);
        exphil_model_destroy(model);
    }
    exphil_context_destroy(context);
}

/* ---- one thread at a time, fork, order of destruction ------------------------------------------------------------ */

static void check_all_refused(play_pair *p, exphil_status status)
{
    int32_t action[PLAY_HEADS] = {0};
    float logits[PLAY_LOGITS];
    size_t bytes = exphil_session_state_size(p->a);
    void *block = calloc(1, bytes);
    exphil_session *clone = NULL;
    exphil_session_info info = EXPHIL_SESSION_INFO_INIT;
    exphil_melee_frame frame = melee_frame();
    exphil_pad pad;
    assert_int_equal(exphil_session_step_row(p->a, p->f->floats, p->f->ids, NULL, action), status);
    assert_int_equal(exphil_session_step(p->a, &frame, &pad), status);
    assert_int_equal(exphil_session_logits(p->a, 0, logits, PLAY_LOGITS), status);
    assert_int_equal(exphil_session_reset(p->a, 0), status);
    assert_int_equal(exphil_session_override(p->a, 0, action), status);
    assert_int_equal(exphil_session_state_save(p->a, 0, block, bytes), status);
    assert_int_equal(exphil_session_state_restore(p->a, 0, block, bytes), status);
    assert_int_equal(exphil_session_clone(p->a, &clone, NULL), status);
    assert_int_equal(exphil_session_query(p->a, &info, NULL), status);
    assert_int_equal(exphil_session_error(p->a, NULL), status);
    free(block);
}

static void a_second_caller_is_refused(void **state)
{
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    play_pair p = play_pair_make("gru", 1, how, how, 4);
    assert_true(xph_busy_enter(&p.a->busy));
    check_all_refused(&p, EXPHIL_E_BUSY);
    xph_busy_leave(&p.a->busy);
    int32_t action[PLAY_HEADS];
    play_step(p.a, p.f, 0, true, action);
    play_pair_free(&p);
}

static int is_refused(void *pair)
{
    check_all_refused(pair, EXPHIL_E_STATE);
    return 0;
}

static void a_forked_child_is_refused(void **state)
{
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    play_pair p = play_pair_make("gru", 1, how, how, 4);
    assert_int_equal(test_in_copy(is_refused, &p), 0);
    play_pair_free(&p);
}

static void parents_may_go_first(void **state)
{
    test_memory memory;
    test_memory_init(&memory);
    exphil_context *context = test_context(&memory, NULL, 1);
    exphil_model_config config = model_case_config("mamba attention", EXPHIL_TYPE_F32);
    exphil_model *model = play_model(context, &config, 0.1);
    exphil_session *session = play_session(model, NULL), *clone = NULL;
    play_frames *f = play_frames_make(model, 1, 3, 1);
    int32_t action[PLAY_HEADS];
    exphil_context_destroy(context);
    exphil_model_destroy(model);
    play_step(session, f, 0, true, action);
    assert_ok(exphil_session_clone(session, &clone, NULL));
    exphil_session_destroy(session);
    play_step(clone, f, 1, true, action);
    exphil_session_destroy(clone);
    exphil_session_destroy(NULL);
    play_frames_free(f);
    assert_memory_clean(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_have_the_bits_of_the_net),
        cmocka_unit_test(double_precision_too),
        cmocka_unit_test(windows_have_the_bits_of_the_net),
        cmocka_unit_test(other_heads_have_the_bits_of_the_net),
        cmocka_unit_test(specs_without_floats_or_ids),
        cmocka_unit_test(due_is_decided_d_frames_ago),
        cmocka_unit_test(an_override_is_what_was_done),
        cmocka_unit_test(a_stream_alone_is_the_same),
        cmocka_unit_test(a_second_caller_is_refused),
        cmocka_unit_test(a_forked_child_is_refused),
        cmocka_unit_test(parents_may_go_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
