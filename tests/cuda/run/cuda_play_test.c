/* Play on the emulated GPU: what the CPU decides, from one graph a step; states that are saved, restored and copied. */
#include "emulated.h"
#include "play_case.h"

#include "play/play.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STREAMS = 3, FRAMES = 16 };

static void late(void)
{
    emulated_gpu()->timing(EMU_LAZY, 1);
    emulated_gpu()->protect(1);
}

static exphil_model_config config_of(const char *blocks, int32_t mode)
{
    exphil_model_config config = model_case_config(blocks, EXPHIL_TYPE_F32);
    config.mode = mode;
    config.window_frames = mode == EXPHIL_MODE_WINDOW ? 6 : 0;
    return config;
}

static exphil_session *open_session(const exphil_model *model, int64_t streams)
{
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    config.streams = streams;
    config.deterministic = 1;
    return play_session(model, &config);
}

static void plays_as_the_cpu(const char *blocks, int32_t mode, int end)
{
    exphil_model_config config = config_of(blocks, mode);
    config.heads = end > 0;
    if (strncmp(blocks, "norm dense", 10) == 0) config.input_width = 37;
    if (end >= 0) model_case_end(&config, end);
    exphil_context *cpu = test_context(NULL, NULL, 1), *gpu = emulated_context();
    exphil_model *one = play_model(cpu, &config, 0.1), *other = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    char path[4096];
    snprintf(path, sizeof path, "%s/model.safetensors", test_folder());
    assert_int_equal(exphil_model_save(one, path, NULL), EXPHIL_OK);
    if (exphil_model_load(gpu, path, &other, &error) < 0) fail_msg("%s", error.message);
    exphil_session *here = open_session(one, STREAMS), *there = open_session(other, STREAMS);
    play_frames *frames = play_frames_make(one, STREAMS, FRAMES, 5);
    const size_t logits = (size_t)(STREAMS * frames->logits), actions = (size_t)(STREAMS * frames->heads);
    float *want = calloc(logits, sizeof *want), *got = calloc(logits, sizeof *got);
    int32_t *asked = calloc(actions, sizeof *asked), *answered = calloc(actions, sizeof *answered);
    double worst = 0.0;
    for (int64_t t = 0; t < FRAMES; t++) {
        play_step(here, frames, t, true, asked);
        emulated_gpu()->counts_clear();
        play_step(there, frames, t, true, answered);
        const emu_counts counts = emulated_gpu()->count();
        assert_int_equal(counts.graph_launches, 1);
        assert_int_equal(counts.launches + counts.copies + counts.sets + counts.mallocs + counts.pinned, 0);
        assert_int_equal(counts.spins, 1); /* a frame's wait is short */
        play_logits(here, frames, want);
        play_logits(there, frames, got);
        for (size_t i = 0; i < logits; i++) worst = fmax(worst, fabs((double)got[i] - (double)want[i]));
        assert_memory_equal(asked, answered, actions * sizeof *asked);
    }
    print_message("%-20s logits differ by at most %.1e\n", blocks, worst);
    assert_true(worst <= 2e-5);
    free(want);
    free(got);
    free(asked);
    free(answered);
    play_frames_free(frames);
    exphil_session_destroy(there);
    exphil_session_destroy(here);
    exphil_model_destroy(other);
    exphil_model_destroy(one);
    exphil_context_destroy(gpu);
    exphil_context_destroy(cpu);
    emulated_clean();
}

static void each_block_plays_as_the_cpu(void **state)
{
    static const char *const blocks[] = {EACH_BLOCK};
    late();
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        plays_as_the_cpu(blocks[i], EXPHIL_MODE_CARRY, -1);
}

static void other_ends_play_as_the_cpu(void **state)
{
    late();
    for (int end = 0; end < MODEL_CASE_ENDS; end++) plays_as_the_cpu("gru", EXPHIL_MODE_CARRY, end);
}

static void windows_play_as_the_cpu(void **state)
{
    late();
    plays_as_the_cpu("mamba attention", EXPHIL_MODE_WINDOW, -1);
    plays_as_the_cpu("norm dense", EXPHIL_MODE_WINDOW, 1);
}

/* Draws with the session's own noise, which the device makes, and with noise that is given, in turn: the actions of the CPU. */
static void draws_as_the_cpu(const char *blocks, int32_t mode, int end)
{
    enum { LANES = 5, LONG = 16 };
    exphil_model_config config = config_of(blocks, mode);
    if (end >= 0) model_case_end(&config, end);
    exphil_context *cpu = test_context(NULL, NULL, 1), *gpu = emulated_context();
    exphil_model *one = play_model(cpu, &config, 0.1), *other = play_model(gpu, &config, 0.1);
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    how.streams = LANES;
    how.seed = UINT64_C(0x9876543210fedcba);
    exphil_session *here = play_session(one, &how), *there = play_session(other, &how);
    assert_true(there->draws && !here->draws);
    play_frames *frames = play_frames_make(one, LANES, LONG, 9);
    const size_t actions = (size_t)(LANES * frames->heads);
    int32_t *asked = calloc(actions, sizeof *asked), *answered = calloc(actions, sizeof *answered),
            changes = 0;
    for (int64_t t = 0; t < LONG; t++) {
        const bool own = t % 3 != 1;
        int32_t before[8];
        memcpy(before, answered, (size_t)frames->heads * sizeof *before);
        play_step(here, frames, t, own, asked);
        emulated_gpu()->counts_clear();
        play_step(there, frames, t, own, answered);
        const emu_counts counts = emulated_gpu()->count();
        assert_int_equal(counts.graph_launches, 1);
        /* What is given goes up by itself; one launch reads it where it is. */
        assert_int_equal(counts.copies, own || xph_net_joins(there->net) ? 0 : 1);
        assert_memory_equal(asked, answered, actions * sizeof *asked);
        changes += memcmp(before, answered, (size_t)frames->heads * sizeof *before) != 0;
    }
    assert_true(changes > LONG / 4);
    free(asked);
    free(answered);
    play_frames_free(frames);
    exphil_session_destroy(there);
    exphil_session_destroy(here);
    exphil_model_destroy(other);
    exphil_model_destroy(one);
    exphil_context_destroy(gpu);
    exphil_context_destroy(cpu);
    emulated_clean();
}

static void the_device_makes_the_noise(void **state)
{
    late();
    draws_as_the_cpu("mamba", EXPHIL_MODE_CARRY, -1);
    draws_as_the_cpu("mlp", EXPHIL_MODE_WINDOW, -1);
    for (int end = 0; end < MODEL_CASE_ENDS; end++) draws_as_the_cpu("gru", EXPHIL_MODE_CARRY, end);
}

/* A step that fails, and a look ahead, leave what the last step gave; both parities of the recordings give theirs. */
static void what_a_step_gave_stays(void **state)
{
    late();
    exphil_model_config config = config_of("mamba", EXPHIL_MODE_CARRY);
    exphil_context *gpu = emulated_context();
    exphil_model *model = play_model(gpu, &config, 0.1);
    exphil_session *session = open_session(model, STREAMS);
    play_frames *frames = play_frames_make(model, STREAMS, FRAMES, 12);
    const size_t logits = (size_t)(STREAMS * frames->logits),
                 floats = (size_t)(STREAMS * frames->float_count);
    float *before = calloc(logits, sizeof *before), *after = calloc(logits, sizeof *after),
          *bad = calloc(floats, sizeof *bad);
    int32_t actions[STREAMS * 8];
    for (int64_t t = 0; t < 6; t++) {
        play_step(session, frames, t, true, actions);
        play_logits(session, frames, before);
        assert_ok(xph_play_peek(session, frames->floats, frames->ids));
        memcpy(bad, frames->floats, floats * sizeof *bad);
        bad[floats - 1] = INFINITY;
        assert_int_equal(exphil_session_step_row(session, bad, frames->ids, NULL, actions), EXPHIL_E_NUMERIC);
        play_logits(session, frames, after);
        assert_memory_equal(before, after, logits * sizeof *after);
        memcpy(after, session->fresh, logits * sizeof *after);
        assert_memory_not_equal(before, after,
                                logits * sizeof *after); /* the look ahead was at another frame */
    }
    free(before);
    free(after);
    free(bad);
    play_frames_free(frames);
    exphil_session_destroy(session);
    exphil_model_destroy(model);
    exphil_context_destroy(gpu);
    emulated_clean();
}

/* Save, play on, restore, play the same frames: the same bits. And a clone goes its own way from there. */
static void states_come_back(void **state)
{
    late();
    const exphil_model_config config = config_of("mamba attention lstm", EXPHIL_MODE_CARRY);
    exphil_context *gpu = emulated_context();
    exphil_model *model = play_model(gpu, &config, 0.1);
    exphil_session *session = open_session(model, 1), *clone = NULL;
    play_frames *frames = play_frames_make(model, 1, FRAMES, 6);
    float first[64], again[64], cloned[64];
    int32_t actions[8];
    assert_true(frames->logits <= 64 && frames->heads <= 8);
    for (int64_t t = 0; t < 9; t++) play_step(session, frames, t, true, actions);
    const size_t bytes = exphil_session_state_size(session);
    unsigned char *saved = malloc(bytes);
    assert_int_equal(exphil_session_state_save(session, 0, saved, bytes), EXPHIL_OK);
    assert_int_equal(exphil_session_clone(session, &clone, NULL), EXPHIL_OK);
    for (int64_t t = 9; t < 16; t++) play_step(session, frames, t, true, actions);
    play_logits(session, frames, first);
    assert_int_equal(exphil_session_state_restore(session, 0, saved, bytes), EXPHIL_OK);
    for (int64_t t = 9; t < 16; t++) play_step(session, frames, t, true, actions);
    play_logits(session, frames, again);
    for (int64_t t = 9; t < 16; t++) play_step(clone, frames, t, true, actions);
    play_logits(clone, frames, cloned);
    assert_memory_equal(first, again, (size_t)frames->logits * sizeof(float));
    assert_memory_equal(first, cloned, (size_t)frames->logits * sizeof(float));
    free(saved);
    play_frames_free(frames);
    exphil_session_destroy(clone);
    exphil_session_destroy(session);
    exphil_model_destroy(model);
    exphil_context_destroy(gpu);
    emulated_clean();
}

/* A block in pinned memory, which copies are made from as late as may be, may be written to as soon as restore is back. */
static void a_restored_block_is_the_callers_again(void **state)
{
    late();
    const exphil_model_config config = config_of("lstm", EXPHIL_MODE_CARRY);
    exphil_context *gpu = emulated_context();
    exphil_model *model = play_model(gpu, &config, 0.1);
    exphil_session *session = open_session(model, 1);
    play_frames *frames = play_frames_make(model, 1, FRAMES, 8);
    const xph_backend *backend = session->device->backend;
    const size_t bytes = exphil_session_state_size(session);
    float first[64], again[64];
    int32_t actions[8];
    void *block = NULL;
    assert_true(frames->logits <= 64 && frames->heads <= 8);
    assert_int_equal(backend->host_alloc(session->device, bytes, &block), EXPHIL_OK);
    for (int64_t t = 0; t < 5; t++) play_step(session, frames, t, true, actions);
    assert_int_equal(exphil_session_state_save(session, 0, block, bytes), EXPHIL_OK);
    play_step(session, frames, 5, true, actions);
    play_logits(session, frames, first);
    assert_int_equal(exphil_session_state_restore(session, 0, block, bytes), EXPHIL_OK);
    memset(block, 0x3f, bytes);
    play_step(session, frames, 5, true, actions);
    play_logits(session, frames, again);
    assert_memory_equal(first, again, (size_t)frames->logits * sizeof(float));
    backend->host_free(session->device, block, bytes);
    play_frames_free(frames);
    exphil_session_destroy(session);
    exphil_model_destroy(model);
    exphil_context_destroy(gpu);
    emulated_clean();
}

/* The device gives up in the middle: a status, and everything can still be taken down. */
static void a_lost_device_is_told(void **state)
{
    late();
    const exphil_model_config config = config_of("gru", EXPHIL_MODE_CARRY);
    exphil_context *gpu = emulated_context();
    exphil_model *model = play_model(gpu, &config, 0.1);
    exphil_session *session = open_session(model, 1);
    play_frames *frames = play_frames_make(model, 1, 4, 7);
    int32_t actions[8];
    play_step(session, frames, 0, true, actions);
    emulated_gpu()->fail_operation(1);
    assert_int_equal(exphil_session_step_row(session, frames->floats, frames->ids, NULL, actions),
                     EXPHIL_E_DEVICE);
    play_frames_free(frames);
    exphil_session_destroy(session);
    exphil_model_destroy(model);
    exphil_context_destroy(gpu);
    emulated_gpu()->clear();
    emulated_gpu()->fail_operation(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_block_plays_as_the_cpu),
        cmocka_unit_test(other_ends_play_as_the_cpu),
        cmocka_unit_test(windows_play_as_the_cpu),
        cmocka_unit_test(the_device_makes_the_noise),
        cmocka_unit_test(what_a_step_gave_stays),
        cmocka_unit_test(states_come_back),
        cmocka_unit_test(a_restored_block_is_the_callers_again),
        cmocka_unit_test(a_lost_device_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
