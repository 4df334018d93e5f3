/* A step of play in one launch on the emulated GPU: what the CPU decides and thinks of it, the same bits in every order, and steps
 * one by one where it is refused. */
#include "emulated.h"
#include "play_case.h"

#include "play/play.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRAMES = 8 }; /* more than the window of attention */

/* ---- what runs ---- */

static int32_t heard;
static char last_heard[256];
static void hear(void *user, exphil_log_level level, const char *message)
{
    if (level > EXPHIL_LOG_WARNING) return;
    heard++;
    snprintf(last_heard, sizeof last_heard, "%s", message);
}

static exphil_context *context_that_is_heard(void)
{
    const exphil_context_config config = emulated_config("cuda:0", hear, NULL);
    exphil_context *context = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    heard = 0;
    if (exphil_context_create(&config, &context, &error) < 0) fail_msg("%s", error.message);
    return context;
}

/* ---- a model on both devices ---- */

typedef struct both {
    exphil_context *cpu, *gpu;
    exphil_model *one, *other;
    exphil_session *here, *there;
    play_frames *frames;
    int64_t streams;
    float *want, *got;
    int32_t *asked, *answered;
} both;

static both both_as(const exphil_model_config *config, const exphil_session_config *how, int64_t frames)
{
    const int64_t streams = how->streams ? how->streams : 1;
    both b = {.streams = streams};
    exphil_error error = EXPHIL_ERROR_INIT;
    char path[4096];
    b.cpu = test_context(NULL, NULL, 1);
    b.gpu = emulated_context();
    b.one = play_model(b.cpu, config, 0.1);
    snprintf(path, sizeof path, "%s/model.safetensors", test_folder());
    assert_int_equal(exphil_model_save(b.one, path, NULL), EXPHIL_OK);
    if (exphil_model_load(b.gpu, path, &b.other, &error) < 0) fail_msg("%s", error.message);
    b.here = play_session(b.one, how);
    b.there = play_session(b.other, how);
    b.frames = play_frames_make(b.one, streams, frames, 5);
    const size_t logits = (size_t)(streams * b.frames->logits), heads = (size_t)(streams * b.frames->heads);
    b.want = calloc(logits, sizeof *b.want);
    b.got = calloc(logits * (size_t)frames, sizeof *b.got);
    b.asked = calloc(heads, sizeof *b.asked);
    b.answered = calloc(heads, sizeof *b.answered);
    assert_true(b.want && b.got && b.asked && b.answered);
    return b;
}

static both both_of(const exphil_model_config *config, int64_t streams, int32_t deterministic)
{
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    how.streams = streams;
    how.deterministic = deterministic;
    return both_as(config, &how, FRAMES);
}

static void both_free(both *b)
{
    free(b->want);
    free(b->got);
    free(b->asked);
    free(b->answered);
    play_frames_free(b->frames);
    exphil_session_destroy(b->there);
    exphil_session_destroy(b->here);
    exphil_model_destroy(b->other);
    exphil_model_destroy(b->one);
    exphil_context_destroy(b->gpu);
    exphil_context_destroy(b->cpu);
    emulated_clean();
}

/* Plays the frames on the GPU alone; logits of all of them in got. */
static int64_t play_there(both *b)
{
    int64_t operations = 0;
    for (int64_t t = 0; t < FRAMES; t++) {
        emulated_gpu()->counts_clear();
        play_step(b->there, b->frames, t, t % 2, b->answered);
        operations = emulated_gpu()->count().operations;
        play_logits(b->there, b->frames, b->got + t * b->streams * b->frames->logits);
    }
    return operations;
}

/* And on the CPU: the largest difference of a logit or value. Returns the operations of a step. */
static int64_t play_both(both *b, double *worst)
{
    const int64_t logits = b->streams * b->frames->logits;
    int64_t operations = 0;
    for (int64_t t = 0; t < b->frames->frames; t++) {
        play_step(b->here, b->frames, t, t % 2, b->asked);
        emulated_gpu()->counts_clear();
        play_step(b->there, b->frames, t, t % 2, b->answered);
        operations = emulated_gpu()->count().operations;
        play_logits(b->here, b->frames, b->want);
        play_logits(b->there, b->frames, b->got);
        for (int64_t i = 0; i < logits; i++)
            *worst = fmax(*worst, fabs((double)b->got[i] - (double)b->want[i]));
        for (int64_t i = 0; b->here->values && i < b->streams; i++)
            *worst = fmax(*worst, fabs((double)b->there->values[i] - (double)b->here->values[i]));
        assert_memory_equal(b->asked, b->answered,
                            (size_t)(b->streams * b->frames->heads) * sizeof *b->asked);
    }
    return operations;
}

/* ---- shapes ---- */

typedef struct shape {
    const char *blocks;
    int64_t streams;
    int32_t hidden, trunk, states, rank, taps, value, independent;
    bool joined;
} shape;

static exphil_model_config config_of(const shape *s)
{
    exphil_model_config config = model_case_config(s->blocks, EXPHIL_TYPE_F32);
    config.mode = EXPHIL_MODE_CARRY;
    if (s->hidden) config.hidden = s->hidden;
    if (s->trunk) config.head_width = s->trunk;
    if (s->states) config.mamba_states = s->states;
    if (s->rank) config.mamba_rank = s->rank;
    if (s->taps) config.mamba_taps = s->taps;
    config.value = s->value;
    config.heads = s->independent ? EXPHIL_HEADS_INDEPENDENT : EXPHIL_HEADS_AUTOREGRESSIVE;
    return config;
}

static const shape shapes[] = {
    {"mamba", 1, 0, 0, 0, 0, 0, 0, 0, true},
    {"mamba", 2, 256, 128, 16, 16, 4, 0, 0, true},   /* blocks have elements of the same numbers */
    {"mamba mamba", 1, 72, 40, 5, 3, 3, 1, 0, true}, /* and of others */
    {"mamba", 2, 37, 21, 32, 7, 7, 1, 1, true},      /* rows that are not read four numbers at a time */
    {"mamba", 1, 24, 0, 1, 1, 2, 0, 0, true},
    {"mamba", 1, 24, 0, 33, 0, 0, 0, 0, false}, /* more states than a lane holds */
    {"mamba", 1, 24, 0, 0, 0, 16, 0, 0, true},
    {"mamba_exphil", 16, 12, 0, 9, 0, 0, 0, 0, true},
    {"mamba", 17, 0, 0, 0, 0, 0, 0, 0, false}, /* more rows than pay */
    {"lstm", 1, 256, 0, 0, 0, 0, 0, 0, true},
    {"gru", 3, 100, 0, 0, 0, 0, 0, 0, true},
    {"lstm_bare", 1, 30, 0, 0, 0, 0, 1, 0, true},
    {"gru_bare lstm", 1, 0, 0, 0, 0, 0, 0, 1, true},
    {"attention lstm", 2, 64, 0, 0, 0, 0, 0, 0,
     true}, /* units whose state does not lie as their weights do */
    {"ffn_gelu", 1, 96, 0, 0, 0, 0, 0, 0, true},
    {"ffn_gelu", 1, 516, 0, 0, 0, 0, 0, 0, true},               /* products longer than eight quads a lane */
    {"ffn mlp", 2, 300, 0, 0, 0, 0, 0, 0, true},                /* wide norms */
    {"lstm_only gru_only mamba", 3, 0, 0, 0, 0, 0, 0, 0, true}, /* copies */
    {"relu dense norm", 1, 0, 0, 0, 0, 0, 0, 0, true},
    {"mamba attention", 1, 0, 0, 0, 0, 0, 0, 0, true},
    {"attention", 2, 128, 0, 0, 0, 0, 1, 0, true},
    {"mamba mamba mamba mamba mamba", 1, 0, 0, 0, 0, 0, 0, 0,
     false}, /* more than the parameters of a launch hold */
};

static void plays_as_the_cpu(const shape *s, int32_t deterministic)
{
    const exphil_model_config config = config_of(s);
    both b = both_of(&config, s->streams, deterministic);
    double worst = 0.0;
    const int64_t operations = play_both(&b, &worst);
    print_message("%-24s %2lld streams: %lld operations, numbers differ by at most %.1e\n", s->blocks,
                  (long long)s->streams, (long long)operations, worst);
    assert_true(worst <= 2e-5);
    assert_int_equal(operations == 1, s->joined);
    both_free(&b);
}

static void shapes_play_as_the_cpu(void **state)
{
    emulated_gpu()->timing(EMU_LAZY, 1);
    emulated_gpu()->protect(1);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) plays_as_the_cpu(&shapes[i], i % 2 == 0);
}

static void plays_alike(const exphil_model_config *config, const exphil_head_play *heads, int64_t streams,
                        int64_t frames)
{
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    how.streams = streams;
    how.heads = heads;
    both b = both_as(config, &how, frames);
    double worst = 0.0;
    assert_int_equal(play_both(&b, &worst), 1);
    print_message("%s: numbers differ by at most %.1e\n", config->blocks, worst);
    assert_true(worst <= 2e-5);
    both_free(&b);
}

/* More keys than warps of a block, in parts that several blocks have, around the ring more than once. */
static void long_windows_play_as_the_cpu(void **state)
{
    static const struct {
        int32_t heads, dim, window;
    } shapes_of[] = {{1, 40, 43}, {3, 6, 37}, {17, 3, 20}};
    for (size_t i = 0; i < sizeof shapes_of / sizeof *shapes_of; i++) {
        const shape s = {"attention", 1, 0, 0, 0, 0, 0, 0, 0, true};
        exphil_model_config config = config_of(&s);
        config.attention_heads = shapes_of[i].heads;
        config.attention_dim = shapes_of[i].dim;
        config.attention_window_frames = shapes_of[i].window;
        plays_alike(&config, NULL, 2, 50);
    }
}

/* A head of more classes than block 0 takes in a turn, heads of one bit and of all, and of an odd number of logits, so that rows of
 * noise begin anywhere in what is made at once. */
static void other_heads_play_as_the_cpu(void **state)
{
    static const exphil_head_spec heads[] = {{"buttons", EXPHIL_BERNOULLI, 31, 0, 0},
                                             {"stick", EXPHIL_CATEGORICAL, 131, 2, 0},
                                             {"one", EXPHIL_BERNOULLI, 1, 0, 0},
                                             {"trigger", EXPHIL_CATEGORICAL, 2, 0, 0}};
    /* Buttons that are held until they are less likely, and what is drawn less wildly. */
    static const exphil_head_play plays[] = {
        {0, 1, 0.52f, 0.48f}, {0.7f, 0, 0, 0}, {0, 1, 0.51f, 0.49f}, {0, 1, 0, 0}};
    exphil_spec spec = model_case_spec;
    spec.head_count = 4;
    spec.heads = heads;
    for (int32_t independent = 0; independent < 2; independent++) {
        const shape s = {"gru", 1, 40, 21, 0, 0, 0, 1, independent, true};
        exphil_model_config config = config_of(&s);
        config.spec = &spec;
        plays_alike(&config, independent ? NULL : plays, 3, 2 * FRAMES);
    }
}

/* Rows of floats alone, which the first product reads where the host has put them; logits start from nothing. */
static void floats_alone_play_as_the_cpu(void **state)
{
    const shape s = {"lstm", 1, 0, 0, 0, 0, 0, 0, 0, true};
    exphil_spec spec = model_case_spec;
    exphil_model_config config = config_of(&s);
    spec.float_count = 16;
    spec.id_count = 0;
    spec.ids = NULL;
    config.spec = &spec;
    config.no_previous_action = 1;
    config.delay_frames = 0;
    config.no_head_past = 1;
    plays_alike(&config, NULL, 3, FRAMES);
}

/* In whatever order blocks, warps and lanes come. */
static void orders_give_the_same_bits(void **state)
{
    static const shape few[] = {{"mamba mamba", 2, 72, 40, 5, 3, 3, 1, 0, true},
                                {"gru lstm", 1, 64, 0, 0, 0, 0, 0, 0, true},
                                {"ffn mamba_exphil", 1, 0, 0, 0, 0, 0, 0, 0, true},
                                {"attention", 2, 64, 0, 0, 0, 0, 0, 0, true}};
    for (size_t i = 0; i < sizeof few / sizeof *few; i++) {
        const exphil_model_config config = config_of(&few[i]);
        float *first = NULL;
        for (int schedule = 0; schedule < EMU_SCHEDULES; schedule++) {
            emulated_gpu()->schedule(schedule);
            both b = both_of(&config, few[i].streams, 0);
            assert_int_equal(play_there(&b), 1);
            const size_t bytes = (size_t)(FRAMES * b.streams * b.frames->logits) * sizeof *b.got;
            if (first)
                assert_memory_equal(first, b.got, bytes);
            else
                first = memcpy(malloc(bytes), b.got, bytes);
            both_free(&b);
        }
        free(first);
    }
    emulated_gpu()->schedule(EMU_FORWARD);
}

/* ---- states ---- */

/* Frames 1 to 3; logits of all of them. */
static void play_three(both *b, float *logits)
{
    for (int64_t t = 1; t < 4; t++, logits += b->streams * b->frames->logits) {
        play_step(b->there, b->frames, t, false, b->answered);
        play_logits(b->there, b->frames, logits);
    }
}

/* Save, play on, restore, play the same frames: the same bits, whatever was played before, by as many steps as you like. A clone
 * goes its own way from there. */
static void states_come_back(void **state)
{
    const shape s = {"mamba lstm attention", 2, 0, 0, 0, 0, 0, 0, 0, true};
    const exphil_model_config config = config_of(&s);
    both b = both_of(&config, s.streams, 0);
    exphil_session *clone = NULL;
    const size_t bytes = exphil_session_state_size(b.there), logits = (size_t)(b.streams * b.frames->logits);
    unsigned char *saved = malloc(bytes);
    float *again = calloc(3 * logits, sizeof *again);
    (void)play_there(&b);
    assert_int_equal(exphil_session_clone(b.there, &clone, NULL), EXPHIL_OK);
    for (int64_t i = 0; i < b.streams; i++) {
        play_step(b.there, b.frames, 0, true, b.answered);
        assert_int_equal(exphil_session_state_save(b.there, i, saved, bytes), EXPHIL_OK);
        play_three(&b, b.got);
        for (int64_t k = 0; k < 3; k++) {
            for (int64_t t = 0; t < k; t++) play_step(b.there, b.frames, 7 - t, false, b.answered);
            assert_int_equal(exphil_session_state_restore(b.there, i, saved, bytes), EXPHIL_OK);
            play_three(&b, again);
            for (int64_t t = 0; t < 3; t++) {
                const size_t own = (size_t)t * logits + (size_t)(i * b.frames->logits);
                assert_memory_equal(b.got + own, again + own, (size_t)b.frames->logits * sizeof(float));
            }
        }
    }
    exphil_session_destroy(clone);
    free(saved);
    free(again);
    both_free(&b);
}

/* Counters of a ring of 5 frames that a state from outside has do not lead out of it. */
static void counters_from_outside(void **state)
{
    static const float odd[] = {NAN, -1.0f, 5.0f, 6.0f, 1e30f, -1e30f, INFINITY};
    const shape s = {"attention", 1, 0, 0, 0, 0, 0, 0, 0, true};
    const exphil_model_config config = config_of(&s);
    both b = both_of(&config, 2, 1);
    const size_t bytes = exphil_session_state_size(b.there),
                 behind = (size_t)b.frames->logits * sizeof(float);
    unsigned char *saved = malloc(bytes);
    (void)play_there(&b);
    for (size_t i = 0; i < 2 * sizeof odd / sizeof *odd; i++) {
        float counters[2];
        for (int64_t t = 0; t < 6; t++) {
            play_step(b.there, b.frames, t, false, b.answered);
            assert_int_equal(exphil_session_state_save(b.there, 1, saved, bytes), EXPHIL_OK);
            memcpy(counters, saved + bytes - behind - sizeof counters, sizeof counters);
            assert_true(counters[0] >= 0 && counters[0] < 5 && counters[1] >= 1 && counters[1] <= 5);
        }
        counters[i % 2] = odd[i / 2];
        memcpy(saved + bytes - behind - sizeof counters, counters, sizeof counters);
        assert_int_equal(exphil_session_state_restore(b.there, 1, saved, bytes), EXPHIL_OK);
    }
    play_step(b.there, b.frames, 0, false, b.answered);
    free(saved);
    both_free(&b);
}

/* ---- refusals ---- */

static void asked_for_it_is_not_joined(void **state)
{
    const exphil_model_config config = config_of(&shapes[0]);
    setenv("EXPHIL_CUDA_JOIN", "none", 1);
    both b = both_of(&config, 1, 1);
    unsetenv("EXPHIL_CUDA_JOIN");
    double worst = 0.0;
    assert_true(play_both(&b, &worst) > 10);
    assert_true(worst <= 2e-5);
    both_free(&b);
}

/* Smaller clusters with the same bits, then none. */
static void without_room_it_is_not_joined(void **state)
{
    static const shape wide = {"mamba attention", 1, 256, 128, 16, 16, 4, 1, 0, true};
    const exphil_model_config config = config_of(&wide);
    float *first = NULL;
    for (int blocks = 16; blocks; blocks /= 2) {
        emulated_gpu()->clusters(blocks);
        both b = both_of(&config, wide.streams, 1);
        double worst = 0.0;
        const int64_t operations = play_both(&b, &worst);
        const size_t bytes = (size_t)(b.streams * b.frames->logits) * sizeof *b.got;
        print_message("clusters of %d: %lld operations, numbers differ by at most %.1e\n", blocks,
                      (long long)operations, worst);
        assert_int_equal(operations == 1, blocks > 1);
        assert_true(worst <= 2e-5);
        if (!first) first = memcpy(malloc(bytes), b.got, bytes);
        if (blocks > 1) assert_memory_equal(first, b.got, bytes);
        both_free(&b);
    }
    free(first);
    emulated_gpu()->clusters(16);
}

/* Nor does the number of blocks that keys are dealt out to change a bit. */
static void parts_of_keys_are_those_of_the_shape(void **state)
{
    static const shape wide = {"attention", 1, 256, 0, 0, 0, 0, 0, 0, true};
    exphil_model_config config = config_of(&wide);
    float first[64];
    config.attention_window_frames = 40;
    for (int blocks = 16; blocks > 1; blocks /= 4) {
        exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
        emulated_gpu()->clusters(blocks);
        both b = both_as(&config, &how, 20); /* more than warps of a block */
        assert_true(b.frames->logits <= 64);
        for (int64_t t = 0; t < 20; t++) play_step(b.there, b.frames, t, false, b.answered);
        play_logits(b.there, b.frames, b.got);
        const size_t bytes = (size_t)b.frames->logits * sizeof *b.got;
        if (blocks == 16) memcpy(first, b.got, bytes);
        assert_memory_equal(first, b.got, bytes);
        both_free(&b);
    }
    emulated_gpu()->clusters(16);
}

/* The room goes after the session was made: when other weights come, their steps are recorded one by one. */
static void room_that_is_gone_is_told_once(void **state)
{
    const exphil_model_config config = config_of(&shapes[0]);
    exphil_context *gpu = context_that_is_heard();
    exphil_model *model = play_model(gpu, &config, 0.1);
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    how.deterministic = 1;
    exphil_session *session = play_session(model, &how), *other;
    play_frames *frames = play_frames_make(model, 1, FRAMES, 5);
    float got[64], want[64];
    int32_t actions[8];
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_true(frames->logits <= 64 && frames->heads <= 8);
    play_step(session, frames, 0, true, actions);
    emulated_gpu()->clusters(1);
    exphil_model *next = play_model(gpu, &config, 0.2);
    if (xph_play_adopt(session, next, &error) < 0) fail_msg("%s", error.message);
    other = play_session(next, &how);
    for (int64_t t = 1; t < FRAMES; t++) play_step(session, frames, t, true, actions);
    assert_int_equal(exphil_session_reset(session, 0), EXPHIL_OK);
    for (int64_t t = 0; t < FRAMES; t++) {
        emulated_gpu()->counts_clear();
        play_step(session, frames, t, true, actions);
        assert_true(emulated_gpu()->count().operations > 10);
        play_step(other, frames, t, true, actions);
        play_logits(session, frames, got);
        play_logits(other, frames, want);
        assert_memory_equal(got, want, (size_t)frames->logits * sizeof *got);
    }
    assert_int_equal(heard, 1);
    assert_non_null(strstr(last_heard, "no room for the clusters of joined_step"));
    emulated_gpu()->clusters(16);
    play_frames_free(frames);
    exphil_session_destroy(other);
    exphil_session_destroy(session);
    exphil_model_destroy(next);
    exphil_model_destroy(model);
    exphil_context_destroy(gpu);
    emulated_clean();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_play_as_the_cpu),
        cmocka_unit_test(long_windows_play_as_the_cpu),
        cmocka_unit_test(other_heads_play_as_the_cpu),
        cmocka_unit_test(floats_alone_play_as_the_cpu),
        cmocka_unit_test(orders_give_the_same_bits),
        cmocka_unit_test(states_come_back),
        cmocka_unit_test(counters_from_outside),
        cmocka_unit_test(asked_for_it_is_not_joined),
        cmocka_unit_test(without_room_it_is_not_joined),
        cmocka_unit_test(parts_of_keys_are_those_of_the_shape),
        cmocka_unit_test(room_that_is_gone_is_told_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
