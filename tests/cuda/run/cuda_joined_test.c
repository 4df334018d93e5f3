/* A step of play in one launch on the emulated GPU: what the CPU decides, the same bits in every order, and steps one by one
 * where it is refused. */
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
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_context *context = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    config.device = "cuda:0";
    config.backend_path = EMULATED_FOLDER;
    config.log = hear;
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

static both both_of(const exphil_model_config *config, int64_t streams, int32_t deterministic)
{
    both b = {.streams = streams};
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    char path[4096];
    b.cpu = test_context(NULL, NULL, 1);
    b.gpu = emulated_context();
    b.one = play_model(b.cpu, config, 0.1);
    snprintf(path, sizeof path, "%s/model.safetensors", test_folder());
    assert_int_equal(exphil_model_save(b.one, path, NULL), EXPHIL_OK);
    if (exphil_model_load(b.gpu, path, &b.other, &error) < 0) fail_msg("%s", error.message);
    how.streams = streams;
    how.deterministic = deterministic;
    b.here = play_session(b.one, &how);
    b.there = play_session(b.other, &how);
    b.frames = play_frames_make(b.one, streams, FRAMES, 5);
    const size_t logits = (size_t)(streams * b.frames->logits), heads = (size_t)(streams * b.frames->heads);
    b.want = calloc(logits, sizeof *b.want);
    b.got = calloc(logits * FRAMES, sizeof *b.got);
    b.asked = calloc(heads, sizeof *b.asked);
    b.answered = calloc(heads, sizeof *b.answered);
    assert_true(b.want && b.got && b.asked && b.answered);
    return b;
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

/* And on the CPU: the largest difference of a logit. Returns the operations of a step. */
static int64_t play_both(both *b, double *worst)
{
    const int64_t logits = b->streams * b->frames->logits;
    int64_t operations = 0;
    for (int64_t t = 0; t < FRAMES; t++) {
        play_step(b->here, b->frames, t, t % 2, b->asked);
        emulated_gpu()->counts_clear();
        play_step(b->there, b->frames, t, t % 2, b->answered);
        operations = emulated_gpu()->count().operations;
        play_logits(b->here, b->frames, b->want);
        play_logits(b->there, b->frames, b->got);
        for (int64_t i = 0; i < logits; i++)
            *worst = fmax(*worst, fabs((double)b->got[i] - (double)b->want[i]));
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
    {"mamba_exphil", 16, 40, 0, 9, 0, 0, 0, 0, true},
    {"mamba", 17, 0, 0, 0, 0, 0, 0, 0, false}, /* more rows than pay */
    {"lstm", 1, 256, 0, 0, 0, 0, 0, 0, true},
    {"gru", 3, 100, 0, 0, 0, 0, 0, 0, true},
    {"lstm_bare", 1, 30, 0, 0, 0, 0, 1, 0, true},
    {"gru_bare lstm", 1, 0, 0, 0, 0, 0, 0, 1, true},
    {"ffn_gelu", 1, 96, 0, 0, 0, 0, 0, 0, true},
    {"ffn mlp", 2, 300, 0, 0, 0, 0, 0, 0, true},                /* products longer than a turn, wide norms */
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
    print_message("%-24s %2lld streams: %lld operations, logits differ by at most %.1e\n", s->blocks,
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

/* Save, play on, restore, play the same frames: the same bits. A clone goes its own way from there. */
static void states_come_back(void **state)
{
    const shape s = {"mamba lstm attention", 2, 0, 0, 0, 0, 0, 0, 0, true};
    const exphil_model_config config = config_of(&s);
    both b = both_of(&config, s.streams, 0);
    exphil_session *clone = NULL;
    const size_t bytes = exphil_session_state_size(b.there), logits = (size_t)(b.streams * b.frames->logits);
    unsigned char *saved = malloc(bytes);
    float *again = calloc(logits, sizeof *again);
    (void)play_there(&b);
    assert_int_equal(exphil_session_clone(b.there, &clone, NULL), EXPHIL_OK);
    for (int64_t i = 0; i < b.streams; i++) {
        play_step(b.there, b.frames, 0, true, b.answered);
        assert_int_equal(exphil_session_state_save(b.there, i, saved, bytes), EXPHIL_OK);
        for (int64_t t = 1; t < 4; t++) play_step(b.there, b.frames, t, false, b.answered);
        play_logits(b.there, b.frames, b.got);
        for (int k = 0; k < 2; k++) {
            assert_int_equal(exphil_session_state_restore(b.there, i, saved, bytes), EXPHIL_OK);
            for (int64_t t = 1; t < 4; t++) play_step(b.there, b.frames, t, false, b.answered);
            play_logits(b.there, b.frames, again);
            const size_t own = (size_t)(i * b.frames->logits);
            assert_memory_equal(b.got + own, again + own, (size_t)b.frames->logits * sizeof(float));
        }
    }
    exphil_session_destroy(clone);
    free(saved);
    free(again);
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
        print_message("clusters of %d: %lld operations, logits differ by at most %.1e\n", blocks,
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
        cmocka_unit_test(orders_give_the_same_bits),
        cmocka_unit_test(states_come_back),
        cmocka_unit_test(asked_for_it_is_not_joined),
        cmocka_unit_test(without_room_it_is_not_joined),
        cmocka_unit_test(room_that_is_gone_is_told_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
