/* Sessions: what a step computes is what the net computes over the same frames; queues, drawing, failures, latency. */
#include "play_case.h"

#include "melee_frame.h"
#include "play/play.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STREAMS_MOST = 8, HEADS = 3, LOGITS = 12 }; /* of model_case_spec */

static const char *const patterns[] = {
    "mamba", "lstm", "gru", "attention", "mlp", "ffn", "(mamba attention)*2"};
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
    (void)state;
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
    (void)state;
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
    (void)state;
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

static void specs_without_floats_or_ids(void **state)
{
    (void)state;
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

typedef struct pair {
    exphil_context *context;
    exphil_model *model;
    exphil_session *a, *b;
    play_frames *f;
} pair;

static pair pair_make(const char *blocks, int32_t delay, exphil_session_config a, exphil_session_config b,
                      int64_t frames)
{
    pair p = {.context = test_context(NULL, NULL, 1)};
    exphil_model_config config = model_case_config(blocks, EXPHIL_TYPE_F32);
    config.delay_frames = delay;
    config.heads = EXPHIL_HEADS_AUTOREGRESSIVE;
    p.model = play_model(p.context, &config, 0.2);
    p.a = play_session(p.model, &a);
    p.b = play_session(p.model, &b);
    p.f = play_frames_make(p.model, a.streams ? a.streams : 1, frames, 11);
    return p;
}

static void pair_free(pair *p)
{
    play_frames_free(p->f);
    exphil_session_destroy(p->a);
    exphil_session_destroy(p->b);
    exphil_model_destroy(p->model);
    exphil_context_destroy(p->context);
}

static const int32_t neutral[HEADS] = {0, 2, 0};

static void due_is_decided_d_frames_ago(void **state)
{
    (void)state;
    enum { FRAMES = 30, RESET = 17 };
    for (int32_t delay = 0; delay <= 3; delay++) {
        exphil_session_config due = EXPHIL_SESSION_CONFIG_INIT;
        due.seed = 9;
        due.streams = 2;
        exphil_session_config decided = due;
        decided.deliver = EXPHIL_DELIVER_DECIDED;
        pair p = pair_make("lstm", delay, due, decided, FRAMES);
        int32_t is_due[FRAMES][2][HEADS], is_decided[FRAMES][2][HEADS];
        for (int64_t t = 0; t < FRAMES; t++) {
            if (t == RESET) assert_ok(exphil_session_reset(p.a, 1));
            if (t == RESET) assert_ok(exphil_session_reset(p.b, 1));
            play_step(p.a, p.f, t, true, is_due[t][0]);
            play_step(p.b, p.f, t, true, is_decided[t][0]);
        }
        for (int64_t t = 0; t < FRAMES; t++)
            for (int b = 0; b < 2; b++) {
                int64_t since = b == 1 && t >= RESET ? t - RESET : t;
                const int32_t *want = since < delay ? neutral : is_decided[t - delay][b];
                assert_memory_equal(is_due[t][b], want, sizeof neutral);
            }
        pair_free(&p);
    }
}

static void an_override_is_what_was_done(void **state)
{
    (void)state;
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
        int32_t decided[FRAMES][HEADS], queue[FRAMES][HEADS], due[HEADS];
        float got[FRAMES][LOGITS];
        double want[FRAMES * LOGITS];
        uint8_t reset[FRAMES] = {0};
        for (int32_t t = 0; t < FRAMES; t++) {
            play_step(session, f, t, false, due);
            assert_memory_equal(due, t < 2 ? neutral : queue[t - 2], sizeof neutral);
            play_logits(session, f, got[t]);
            memcpy(decided[t], xph_play_history(session, 0), sizeof decided[t]);
            memcpy(queue[t], decided[t], sizeof queue[t]);
            if (t % 3 != 1) continue;
            const int32_t done[HEADS] = {t % 8, t % 5, t % 4};
            assert_ok(exphil_session_override(session, 0, done));
            memcpy(queue[t], done, sizeof done);
        }
        play_reference(model, f, decided[0], reset, queue[0], want);
        for (int i = 0; i < FRAMES * LOGITS; i++) assert_true((double)got[i / LOGITS][i % LOGITS] == want[i]);
        play_frames_free(f);
        exphil_session_destroy(session);
        exphil_model_destroy(model);
        exphil_context_destroy(context);
    }
}

/* ---- drawing ---------------------------------------------------------------------------------------------------------- */

static double sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

/* Checks one action against logits; comparisons that are too close to call are passed over. */
static void check_drawn(const float *logits, const float *noise, const exphil_head_play *play,
                        const int32_t *before, const int32_t *action)
{
    int first = 0;
    for (int h = 0; h < HEADS; h++) {
        const exphil_head_spec *head = &model_case_spec.heads[h];
        double temperature = play[h].temperature > 0 ? (double)play[h].temperature : 1.0, score[8];
        int best = 0;
        for (int i = 0; i < head->count; i++) {
            double y = (double)logits[first + i], u = noise ? (double)noise[first + i] : 0.5;
            if (head->kind == EXPHIL_BERNOULLI) {
                double edge = u, p = sigmoid(y / temperature);
                if (play[h].deterministic) {
                    p = sigmoid(y);
                    edge = before[h] >> i & 1 ? (double)play[h].release : (double)play[h].press;
                    if (edge == 0.0) edge = 0.5;
                }
                if (fabs(p - edge) > 1e-5) assert_int_equal(action[h] >> i & 1, p > edge);
            } else {
                score[i] = play[h].deterministic ? y : y / temperature - log(-log(u));
                if (score[i] > score[best]) best = i;
            }
        }
        if (head->kind == EXPHIL_CATEGORICAL && score[best] - score[action[h]] > 1e-4)
            assert_int_equal(action[h], best);
        first += head->count;
    }
}

static void check_play(const exphil_head_play play[HEADS], int32_t all_deterministic)
{
    enum { FRAMES = 300 };
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    how.heads = play;
    how.deliver = EXPHIL_DELIVER_DECIDED;
    how.deterministic = all_deterministic;
    pair p = pair_make("mamba", 1, how, how, FRAMES);
    int32_t before[HEADS], action[HEADS], changes = 0;
    float logits[LOGITS];
    exphil_head_play effective[HEADS];
    memcpy(effective, play, sizeof effective);
    for (int h = 0; h < HEADS; h++) effective[h].deterministic |= all_deterministic;
    memcpy(before, neutral, sizeof before);
    for (int64_t t = 0; t < FRAMES; t++) {
        play_step(p.a, p.f, t, false, action);
        play_logits(p.a, p.f, logits);
        check_drawn(logits, p.f->noise + t * LOGITS, effective, before, action);
        changes += memcmp(before, action, sizeof before) != 0;
        memcpy(before, action, sizeof before);
    }
    assert_true(changes > 5);
    pair_free(&p);
}

static void heads_are_drawn_as_asked(void **state)
{
    (void)state;
    check_play((exphil_head_play[HEADS]){{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}}, 0);
    check_play((exphil_head_play[HEADS]){{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}}, 1);
    check_play((exphil_head_play[HEADS]){{0.5f, 0, 0, 0}, {2.0f, 0, 0, 0}, {0.01f, 0, 0, 0}}, 0);
    check_play((exphil_head_play[HEADS]){{0, 1, 0.55f, 0.45f}, {0, 0, 0, 0}, {0, 1, 0, 0}}, 0);
    check_play((exphil_head_play[HEADS]){{0, 0, 0.9f, 0.1f}, {0, 1, 0, 0}, {3.0f, 0, 0, 0}}, 0);
}

/* A bit stays on between release and press: without hysteresis the two sessions would do the same. */
static void hysteresis_matters(void **state)
{
    (void)state;
    const exphil_head_play wide[HEADS] = {{0, 1, 0.62f, 0.38f}, {0, 1, 0, 0}, {0, 1, 0, 0}};
    exphil_session_config plain = EXPHIL_SESSION_CONFIG_INIT;
    plain.deterministic = 1;
    exphil_session_config held = plain;
    held.heads = wide;
    pair p = pair_make("ffn", 0, plain, held, 400);
    int changes[2] = {0}, last[2] = {0};
    for (int64_t t = 0; t < 400; t++) {
        int32_t action[2][HEADS];
        play_step(p.a, p.f, t, true, action[0]);
        play_step(p.b, p.f, t, true, action[1]);
        for (int i = 0; i < 2; i++) {
            changes[i] += t && action[i][0] != last[i];
            last[i] = action[i][0];
        }
    }
    assert_true(changes[0] > 20);
    assert_true(changes[1] < changes[0]);
    pair_free(&p);
}

static bool same_run(pair *p, int64_t frames, bool own)
{
    bool same = true;
    for (int64_t t = 0; t < frames; t++) {
        int32_t a[STREAMS_MOST * HEADS], b[STREAMS_MOST * HEADS];
        play_step(p->a, p->f, t, own, a);
        play_step(p->b, p->f, t, own, b);
        same &= memcmp(a, b, (size_t)(p->f->streams * HEADS) * sizeof *a) == 0;
    }
    return same;
}

static void noise_is_a_function_of_the_seed(void **state)
{
    (void)state;
    exphil_session_config one = EXPHIL_SESSION_CONFIG_INIT;
    one.seed = 1;
    one.streams = 3;
    exphil_session_config two = one;
    two.seed = 2;
    pair p = pair_make("mamba", 1, one, one, 40);
    assert_true(same_run(&p, 40, true));
    pair_free(&p);
    p = pair_make("mamba", 1, one, two, 40);
    assert_false(same_run(&p, 40, true));
    pair_free(&p);
    p = pair_make("mamba", 1, one, two, 40); /* the caller's noise: the seed does not matter */
    assert_true(same_run(&p, 40, false));
    pair_free(&p);
}

/* Streams of one session draw different numbers. */
static void streams_have_noise_of_their_own(void **state)
{
    (void)state;
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    how.streams = 2;
    pair p = pair_make("mlp", 0, how, how, 60);
    int differ = 0;
    for (int64_t t = 0; t < 60; t++) {
        float floats[2 * 13];
        int32_t ids[4], action[2 * HEADS];
        for (int b = 0; b < 2; b++) {
            memcpy(floats + 13 * b, p.f->floats + t * 26, 13 * sizeof(float));
            memcpy(ids + 2 * b, p.f->ids + t * 4, 2 * sizeof(int32_t));
        }
        assert_ok(exphil_session_step_row(p.a, floats, ids, NULL, action));
        differ += memcmp(action, action + HEADS, sizeof neutral) != 0;
    }
    assert_true(differ > 10);
    pair_free(&p);
}

/* A step with the caller's noise does not move the session's own; a reset neither. */
static void own_noise_goes_on(void **state)
{
    (void)state;
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    how.seed = 77;
    pair p = pair_make("gru", 2, how, how, 20);
    int32_t a[HEADS], b[HEADS];
    for (int64_t t = 0; t < 5; t++) play_step(p.a, p.f, t, true, a);
    for (int64_t t = 0; t < 5; t++) play_step(p.b, p.f, t, true, b);
    for (int64_t t = 5; t < 9; t++) play_step(p.b, p.f, t, false, b);
    assert_ok(exphil_session_reset(p.a, 0));
    assert_ok(exphil_session_reset(p.b, -1));
    for (int64_t t = 9; t < 20; t++) {
        play_step(p.a, p.f, t, true, a);
        play_step(p.b, p.f, t, true, b);
        assert_memory_equal(a, b, sizeof a);
    }
    pair_free(&p);
}

/* ---- streams ------------------------------------------------------------------------------------------------------- */

static void a_stream_alone_is_the_same(void **state)
{
    (void)state;
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
            int32_t action[STREAMS][HEADS], single[HEADS];
            if (t == 8) assert_ok(exphil_session_reset(many, 2));
            play_step(many, f, t, false, action[0]);
            for (int b = 0; b < STREAMS; b++) {
                int64_t row = t * STREAMS + b;
                float logits[2][LOGITS];
                if (t == 8 && b == 2) assert_ok(exphil_session_reset(alone[b], 0));
                assert_ok(exphil_session_step_row(alone[b], f->floats + row * 13, f->ids + row * 2,
                                                  f->noise + row * LOGITS, single));
                assert_ok(exphil_session_logits(many, b, logits[0], LOGITS));
                assert_ok(exphil_session_logits(alone[b], 0, logits[1], LOGITS));
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

/* ---- Melee ---------------------------------------------------------------------------------------------------------- */

static exphil_model *melee_model(exphil_context *context)
{
    exphil_model_config config = model_case_config("gru", EXPHIL_TYPE_F32);
    config.spec = NULL;
    return play_model(context, &config, 0.1);
}

/* Two sessions, one given frames, one what the encoder makes of them. */
static void frames_are_encoded_rows(void **state)
{
    (void)state;
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

static void session_says(const exphil_session *session, exphil_status status, const char *says)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(exphil_session_error(session, &error), status);
    assert_int_equal(error.status, status);
    if (!strstr(error.message, says)) fail_msg("\"%s\" not in \"%s\"", says, error.message);
}

static void bad_frames_are_refused(void **state)
{
    (void)state;
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
    session_says(session, EXPHIL_E_INVALID, "frames[1]: ");
    frame[1] = melee_frame();
    frame[1].player[1].x = NAN;
    assert_int_equal(exphil_session_step(session, frame, pad), EXPHIL_E_NUMERIC);
    session_says(session, EXPHIL_E_NUMERIC, "own.x");
    frame[1] = melee_frame();
    frame[1].struct_size = 8;
    assert_int_equal(exphil_session_step(session, frame, pad), EXPHIL_E_INVALID);
    session_says(session, EXPHIL_E_INVALID, "frames[1].struct_size");
    frame[0].struct_size = 0;
    assert_int_equal(exphil_session_step(session, frame, pad), EXPHIL_E_INVALID);
    frame[0].struct_size = SIZE_MAX - 7;
    assert_int_equal(exphil_session_step(session, frame, pad), EXPHIL_E_INVALID);
    assert_int_equal(exphil_session_step(session, NULL, pad), EXPHIL_E_INVALID);
    session_says(session, EXPHIL_E_INVALID, "frames is NULL");
    frame[0] = frame[1] = melee_frame();
    assert_int_equal(exphil_session_step(session, frame, NULL), EXPHIL_E_INVALID);
    session_says(session, EXPHIL_E_INVALID, "pads is NULL");
    assert_memory_equal(pad, untouched, sizeof pad);
    exphil_session_destroy(session);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
}

/* Frames of a newer program: longer structs, whose tail must be zero. */
static void longer_frames_are_stepped_over(void **state)
{
    (void)state;
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
    session_says(session, EXPHIL_E_VERSION, "frames[1]");
    exphil_session_destroy(session);
    exphil_session_destroy(other);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
}

/* A spec that only bears Melee's names has rows of another length: frames must not be encoded for it. */
static void names_alone_are_not_melee(void **state)
{
    (void)state;
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
    session_says(session, EXPHIL_E_STATE, "exphil_session_step_row");
    exphil_session_destroy(session);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
}

/* ---- failures -------------------------------------------------------------------------------------------------------- */

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
    (void)state;
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
    pair p = pair_make("(mamba attention)*2", 2, how, how, 10);
    int32_t action[2 * HEADS], untouched[2 * HEADS];
    for (int64_t t = 0; t < 8; t++) play_step(p.a, p.f, t, true, action);
    unsigned char *before = save_all(p.a, 2);
    memset(action, 0x55, sizeof action);
    memcpy(untouched, action, sizeof action);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        float floats[26], noise[2 * LOGITS];
        int32_t ids[4];
        memcpy(floats, p.f->floats, sizeof floats);
        memcpy(noise, p.f->noise, sizeof noise);
        memcpy(ids, p.f->ids, sizeof ids);
        if (cases[i].at_float >= 0) floats[cases[i].at_float] = cases[i].value;
        if (cases[i].at_id >= 0) ids[cases[i].at_id] = cases[i].id;
        if (cases[i].at_noise >= 0) noise[cases[i].at_noise] = cases[i].value;
        assert_int_equal(exphil_session_step_row(p.a, floats, ids, noise, action), cases[i].status);
        session_says(p.a, cases[i].status, cases[i].says);
        unsigned char *after = save_all(p.a, 2);
        assert_memory_equal(after, before, 2 * exphil_session_state_size(p.a));
        assert_memory_equal(action, untouched, sizeof action);
        free(after);
    }
    exphil_session_info info = EXPHIL_SESSION_INFO_INIT;
    assert_ok(exphil_session_query(p.a, &info, NULL));
    assert_int_equal(info.steps, 8);
    free(before);
    pair_free(&p);
}

/* Finite inputs so large that sums overflow: that stream starts again, its neighbours have not moved. */
static void overflow_resets_its_stream_alone(void **state)
{
    (void)state;
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    how.streams = 3;
    pair p = pair_make("mamba lstm attention", 1, how, how, 10);
    int32_t action[3 * HEADS], wanted[3 * HEADS];
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
    session_says(p.a, EXPHIL_E_NUMERIC, "stream 1: the logits are not finite; it was reset");
    unsigned char *got = save_all(p.a, 3);
    assert_memory_equal(got, want, 3 * bytes);
    for (int64_t t = 6; t < 10; t++) {
        play_step(p.a, p.f, t, true, action);
        play_step(p.b, p.f, t, true, wanted);
        assert_memory_equal(action, wanted, sizeof action);
    }
    free(got);
    free(want);
    pair_free(&p);
}

static void small_calls_name_what_is_wrong(void **state)
{
    (void)state;
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    how.streams = 2;
    pair p = pair_make("gru", 1, how, how, 4);
    float logits[LOGITS] = {0};
    const int32_t wild[HEADS] = {8, 0, 0};
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(exphil_session_error(p.a, &error), EXPHIL_OK);
    assert_int_equal(exphil_session_logits(p.a, 2, logits, LOGITS), EXPHIL_E_INVALID);
    session_says(p.a, EXPHIL_E_INVALID, "stream is 2, the session has 2");
    assert_int_equal(exphil_session_logits(p.a, -1, logits, LOGITS), EXPHIL_E_INVALID);
    assert_int_equal(exphil_session_logits(p.a, 0, logits, LOGITS - 1), EXPHIL_E_INVALID);
    session_says(p.a, EXPHIL_E_INVALID, "count is 11, there are 12");
    assert_int_equal(exphil_session_reset(p.a, -2), EXPHIL_E_INVALID);
    session_says(p.a, EXPHIL_E_INVALID, "stream is -2");
    assert_int_equal(exphil_session_override(p.a, 0, wild), EXPHIL_E_INVALID);
    session_says(p.a, EXPHIL_E_INVALID, "buttons is 8");
    assert_int_equal(exphil_session_override(p.a, 0, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_session_step_row(p.a, p.f->floats, NULL, NULL, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_session_error(p.b, NULL), EXPHIL_OK);
    pair_free(&p);
}

static void hosts_that_do_not_fit_are_refused(void **state)
{
    (void)state;
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
        for (int k = 0; k < 2; k++)
            if (!strstr(error.message, cases[i].says[k]))
                fail_msg("\"%s\" not in \"%s\"", cases[i].says[k], error.message);
    }
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    how.delay_frames = &right;
    how.mode = &carry;
    how.spec = &model_case_spec;
    exphil_session_destroy(play_session(model, &how));
    exphil_model_destroy(model);
    exphil_context_destroy(context);
}

/* ---- one thread at a time, fork, order of destruction ------------------------------------------------------------ */

static void check_all_refused(pair *p, exphil_status status)
{
    int32_t action[HEADS] = {0};
    float logits[LOGITS];
    size_t bytes = exphil_session_state_size(p->a);
    void *block = calloc(1, bytes);
    exphil_session *clone = NULL;
    exphil_session_info info = EXPHIL_SESSION_INFO_INIT;
    exphil_melee_frame frame = melee_frame();
    exphil_pad pad;
    assert_int_equal(exphil_session_step_row(p->a, p->f->floats, p->f->ids, NULL, action), status);
    assert_int_equal(exphil_session_step(p->a, &frame, &pad), status);
    assert_int_equal(exphil_session_logits(p->a, 0, logits, LOGITS), status);
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
    (void)state;
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    pair p = pair_make("gru", 1, how, how, 4);
    assert_true(xph_busy_enter(&p.a->busy));
    check_all_refused(&p, EXPHIL_E_BUSY);
    xph_busy_leave(&p.a->busy);
    int32_t action[HEADS];
    play_step(p.a, p.f, 0, true, action);
    pair_free(&p);
}

static void a_forked_child_is_refused(void **state)
{
    (void)state;
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    pair p = pair_make("gru", 1, how, how, 4);
    pid_t child = fork();
    if (child == 0) {
        check_all_refused(&p, EXPHIL_E_STATE);
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    pair_free(&p);
}

static void parents_may_go_first(void **state)
{
    (void)state;
    test_memory memory;
    test_memory_init(&memory);
    exphil_context *context = test_context(&memory, NULL, 1);
    exphil_model_config config = model_case_config("mamba attention", EXPHIL_TYPE_F32);
    exphil_model *model = play_model(context, &config, 0.1);
    exphil_session *session = play_session(model, NULL), *clone = NULL;
    play_frames *f = play_frames_make(model, 1, 3, 1);
    int32_t action[HEADS];
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

/* ---- latency ---------------------------------------------------------------------------------------------------------- */

static void buckets_are_half_octaves(void **state)
{
    (void)state;
    for (int i = 0; i < EXPHIL_LATENCY_BUCKETS; i++) {
        long double low = 64.0L * powl(2.0L, i / 2.0L), high = 64.0L * powl(2.0L, (i + 1) / 2.0L);
        const int64_t inside[] = {(int64_t)ceill(low - 1e-9L), (int64_t)ceill(high - 1e-9L) - 1};
        for (int k = 0; k < 2; k++) {
            xph_latency latency;
            xph_latency_init(&latency, 1000);
            xph_latency_add(&latency, inside[k]);
            for (int j = 0; j < EXPHIL_LATENCY_BUCKETS; j++) assert_int_equal(latency.count[j], j == i);
            assert_int_equal(latency.missed, inside[k] > 1000);
        }
    }
    xph_latency latency;
    xph_latency_init(&latency, 1000);
    xph_latency_add(&latency, 0);
    xph_latency_add(&latency, 63);
    xph_latency_add(&latency, INT64_MAX);
    assert_int_equal(latency.count[0], 2);
    assert_int_equal(latency.count[EXPHIL_LATENCY_BUCKETS - 1], 1);
    assert_int_equal(latency.max_ns, INT64_MAX);
}

static void quantiles_are_upper_edges(void **state)
{
    (void)state;
    xph_latency latency;
    xph_latency_init(&latency, 1 << 20);
    assert_int_equal(xph_latency_quantile(&latency, 50), 0);
    for (int i = 0; i < 98; i++) xph_latency_add(&latency, 1024); /* 64 * 2^4: bucket 8, up to 1449 */
    xph_latency_add(&latency, 100000);
    xph_latency_add(&latency, 5000000);
    assert_int_equal(xph_latency_quantile(&latency, 50), 1449);
    assert_int_equal(xph_latency_quantile(&latency, 98), 1449);
    assert_int_equal(xph_latency_quantile(&latency, 99), 131072); /* 100000 lies in [92682, 131072) */
    assert_true(xph_latency_quantile(&latency, 100) > 5000000);
    assert_int_equal(latency.missed, 1);
}

static void steps_are_timed(void **state)
{
    (void)state;
    exphil_session_config strict = EXPHIL_SESSION_CONFIG_INIT, lax = strict;
    strict.deadline_ns = 1;
    lax.deadline_ns = INT64_MAX;
    pair p = pair_make("gru", 1, strict, lax, 50);
    assert_true(same_run(&p, 50, true));
    exphil_session_info a = EXPHIL_SESSION_INFO_INIT, b = EXPHIL_SESSION_INFO_INIT;
    assert_ok(exphil_session_query(p.a, &a, NULL));
    assert_ok(exphil_session_query(p.b, &b, NULL));
    assert_int_equal(a.steps, 50);
    uint64_t sum = 0;
    for (int i = 0; i < EXPHIL_LATENCY_BUCKETS; i++) sum += a.latency[i];
    assert_int_equal(sum, 50);
    /* A coarse clock may see a step of 0 ns, in the first bucket. */
    assert_in_range(a.missed, sum - a.latency[0], sum);
    assert_int_equal(b.missed, 0);
    assert_true(a.p50_ns > 0 && a.p50_ns <= a.p99_ns && a.last_ns >= 0 && a.last_ns <= a.max_ns);
    assert_true(a.p99_ns <= 2 * a.max_ns + 64);
    assert_int_equal(a.streams, 1);
    assert_int_equal(a.float_count, 13);
    assert_int_equal(a.id_count, 2);
    assert_int_equal(a.head_count, HEADS);
    assert_int_equal(a.logit_count, LOGITS);
    assert_int_equal(a.state_bytes, exphil_session_state_size(p.a));
    pair_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_have_the_bits_of_the_net),
        cmocka_unit_test(double_precision_too),
        cmocka_unit_test(windows_have_the_bits_of_the_net),
        cmocka_unit_test(specs_without_floats_or_ids),
        cmocka_unit_test(due_is_decided_d_frames_ago),
        cmocka_unit_test(an_override_is_what_was_done),
        cmocka_unit_test(heads_are_drawn_as_asked),
        cmocka_unit_test(hysteresis_matters),
        cmocka_unit_test(noise_is_a_function_of_the_seed),
        cmocka_unit_test(streams_have_noise_of_their_own),
        cmocka_unit_test(own_noise_goes_on),
        cmocka_unit_test(a_stream_alone_is_the_same),
        cmocka_unit_test(frames_are_encoded_rows),
        cmocka_unit_test(bad_frames_are_refused),
        cmocka_unit_test(longer_frames_are_stepped_over),
        cmocka_unit_test(names_alone_are_not_melee),
        cmocka_unit_test(bad_rows_move_nothing),
        cmocka_unit_test(overflow_resets_its_stream_alone),
        cmocka_unit_test(small_calls_name_what_is_wrong),
        cmocka_unit_test(hosts_that_do_not_fit_are_refused),
        cmocka_unit_test(a_second_caller_is_refused),
        cmocka_unit_test(a_forked_child_is_refused),
        cmocka_unit_test(parents_may_go_first),
        cmocka_unit_test(buckets_are_half_octaves),
        cmocka_unit_test(quantiles_are_upper_edges),
        cmocka_unit_test(steps_are_timed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
