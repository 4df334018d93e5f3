/* The flat block of a stream: rollback, clones and other processes go on to the last bit, random stream included; blocks
 * of anything else are refused, and no block of bytes whatever leads out of memory. */
#include "play_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { HEADS = 3, LOGITS = 12 };

static const char *const patterns[] = {EACH_BLOCK "(mamba attention)*2"};
enum { PATTERNS = sizeof patterns / sizeof patterns[0] };

static exphil_model_config config_of(int pattern, int32_t mode)
{
    exphil_model_config config = model_case_config(patterns[pattern], EXPHIL_TYPE_F32);
    config.heads = EXPHIL_HEADS_AUTOREGRESSIVE;
    config.delay_frames = 2;
    config.mode = mode;
    config.window_frames = mode == EXPHIL_MODE_WINDOW ? 6 : 0;
    return config;
}

typedef struct game {
    exphil_context *context;
    exphil_model *model;
    exphil_session *session;
    play_frames *f;
    size_t bytes;
} game;

static game game_make(int pattern, int32_t mode, int64_t streams, int64_t frames)
{
    game g = {.context = test_context(NULL, NULL, 1)};
    exphil_model_config config = config_of(pattern, mode);
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    how.streams = streams;
    how.seed = 31;
    g.model = play_model(g.context, &config, 0.2);
    g.session = play_session(g.model, &how);
    g.f = play_frames_make(g.model, streams, frames, 6);
    g.bytes = exphil_session_state_size(g.session);
    return g;
}

static void game_free(game *g)
{
    play_frames_free(g->f);
    exphil_session_destroy(g->session);
    exphil_model_destroy(g->model);
    exphil_context_destroy(g->context);
}

/* Actions and logits of frames [first, first + count), as drawn by the session itself; one stream. */
typedef struct tape {
    int32_t action[HEADS];
    float logits[LOGITS];
} tape;

static void play(exphil_session *session, const play_frames *f, int64_t first, int64_t count, tape *to)
{
    for (int64_t t = 0; t < count; t++) {
        play_step(session, f, first + t, true, to[t].action);
        play_logits(session, f, to[t].logits);
    }
}

/* ---- going back ---------------------------------------------------------------------------------------------------- */

static void restored_streams_go_on(void **state)
{
    enum { FRAMES = 600, BEFORE = 45 };
    for (int p = 0; p < PATTERNS; p++)
        for (int32_t mode = 0; mode <= 1; mode++) {
            game g = game_make(p, mode, 1, 100);
            tape *one = calloc(FRAMES, sizeof *one), *two = calloc(FRAMES, sizeof *two);
            void *block = malloc(g.bytes), *end[2] = {malloc(g.bytes), malloc(g.bytes)};
            play(g.session, g.f, 0, BEFORE, one);
            assert_ok(exphil_session_state_save(g.session, 0, block, g.bytes));
            play(g.session, g.f, BEFORE, FRAMES, one);
            assert_ok(exphil_session_state_save(g.session, 0, end[0], g.bytes));
            assert_ok(exphil_session_state_restore(g.session, 0, block, g.bytes));
            play(g.session, g.f, BEFORE, FRAMES, two);
            assert_ok(exphil_session_state_save(g.session, 0, end[1], g.bytes));
            assert_memory_equal(one, two, FRAMES * sizeof *one);
            assert_memory_equal(end[0], end[1], g.bytes);
            assert_memory_not_equal(end[0], block, g.bytes);
            free(one);
            free(two);
            free(block);
            free(end[0]);
            free(end[1]);
            game_free(&g);
        }
}

/* Every second the last 7 frames turn out to have been others, are taken back and played again. */
static void rollback_is_a_straight_run(void **state)
{
    enum { FRAMES = 2000, BACK = 7, EVERY = 60 };
    for (int32_t mode = 0; mode <= 1; mode++) {
        game g = game_make(6, mode, 1, 333);
        exphil_session *straight = NULL;
        tape *want = calloc(FRAMES, sizeof *want), *got = calloc(FRAMES, sizeof *got), wrong[BACK];
        unsigned char *ring = malloc(g.bytes * BACK);
        assert_ok(exphil_session_clone(g.session, &straight, NULL));
        play(straight, g.f, 0, FRAMES, want);
        for (int64_t t = 0; t < FRAMES; t++) {
            assert_ok(exphil_session_state_save(g.session, 0, ring + g.bytes * (size_t)(t % BACK), g.bytes));
            play(g.session, g.f, t, 1, got + t);
            if (t % EVERY != EVERY - 1) continue;
            int64_t from = t - BACK + 1;
            unsigned char *block = ring + g.bytes * (size_t)(from % BACK);
            assert_ok(exphil_session_state_restore(g.session, 0, block, g.bytes));
            play(g.session, g.f, from + 100, BACK, wrong); /* a prediction that was wrong */
            assert_ok(exphil_session_state_restore(g.session, 0, block, g.bytes));
            memset(got + from, 0, BACK * sizeof *got);
            play(g.session, g.f, from, BACK, got + from);
        }
        assert_memory_equal(got, want, FRAMES * sizeof *got);
        free(want);
        free(got);
        free(ring);
        exphil_session_destroy(straight);
        game_free(&g);
    }
}

/* ---- states that lag ---------------------------------------------------------------------------------------------- */

static void assert_same_states(const exphil_session *one, const exphil_session *two, int64_t streams,
                               int64_t t)
{
    size_t bytes = exphil_session_state_size(one);
    unsigned char *a = malloc(bytes), *b = malloc(bytes);
    for (int64_t s = 0; s < streams; s++) {
        assert_ok(exphil_session_state_save(one, s, a, bytes));
        assert_ok(exphil_session_state_save(two, s, b, bytes));
        if (memcmp(a, b, bytes))
            fail_msg("frame %lld: stream %lld has another state", (long long)t, (long long)s);
    }
    free(a);
    free(b);
}

/* A stream's own state restored changes nothing, but lets the next step copy all of it. */
static void restore_itself(exphil_session *session)
{
    size_t bytes = exphil_session_state_size(session);
    void *block = malloc(bytes);
    assert_ok(exphil_session_state_save(session, 0, block, bytes));
    assert_ok(exphil_session_state_restore(session, 0, block, bytes));
    free(block);
}

/* What befalls a session between two steps, the same for both. */
static void befall(exphil_session **session, const play_frames *f, int64_t t, void *block,
                   exphil_status saved)
{
    size_t bytes = exphil_session_state_size(*session);
    int32_t action[2 * HEADS];
    exphil_session *clone = NULL;
    if (t % 13 == 5) assert_ok(exphil_session_reset(*session, t % 2));
    if (t % 50 == 49) assert_ok(exphil_session_reset(*session, -1));
    if (t % 17 == 3) assert_ok(exphil_session_state_save(*session, 1, block, bytes));
    if (t % 17 == 9 && saved >= 0) assert_ok(exphil_session_state_restore(*session, 1, block, bytes));
    if (t % 11 == 7) {
        float floats[64];
        memcpy(floats, f->floats, (size_t)(2 * f->float_count) * sizeof *floats);
        floats[f->float_count] =
            t % 2 ? NAN : 3e38f; /* refused, or too much for the net: that stream starts again */
        exphil_status status = exphil_session_step_row(*session, floats, f->ids, NULL, action);
        assert_true(t % 2 ? status == EXPHIL_E_NUMERIC : status == EXPHIL_E_NUMERIC || status == EXPHIL_OK);
    }
    if (t % 23 != 20) return;
    assert_ok(exphil_session_clone(*session, &clone, NULL));
    exphil_session_destroy(*session);
    *session = clone;
}

/* Large states are moved on where they lie, one frame behind. Whatever comes between two steps: the bytes of a session
 * whose states are copied whole in every step. */
static void lagging_states_are_whole(void **state)
{
    enum { FRAMES = 300, STREAMS = 2 };
    static const int which[] = {1, 3, 6};
    for (size_t i = 0; i < sizeof which / sizeof which[0]; i++) {
        game g = game_make(which[i], EXPHIL_MODE_CARRY, STREAMS, FRAMES);
        exphil_session *twin = NULL;
        void *block[2] = {malloc(g.bytes), malloc(g.bytes)};
        int32_t action[2][STREAMS][HEADS];
        assert_true(g.f->float_count * STREAMS <= 64);
        assert_ok(exphil_session_clone(g.session, &twin, NULL));
        for (int64_t t = 0; t < FRAMES; t++) {
            exphil_status saved = t > 3 ? EXPHIL_OK : EXPHIL_E_STATE;
            befall(&g.session, g.f, t, block[0], saved);
            befall(&twin, g.f, t, block[1], saved);
            restore_itself(twin);
            play_step(g.session, g.f, t, true, action[0][0]);
            play_step(twin, g.f, t, true, action[1][0]);
            assert_memory_equal(action[0], action[1], sizeof action[0]);
            assert_same_states(g.session, twin, STREAMS, t);
        }
        exphil_session_destroy(twin);
        free(block[0]);
        free(block[1]);
        game_free(&g);
    }
}

static void clones_are_twins(void **state)
{
    enum { FRAMES = 60 };
    for (int32_t mode = 0; mode <= 1; mode++) {
        exphil_context *context = test_context(NULL, NULL, 1);
        exphil_model_config config = config_of(6, mode);
        exphil_model *model = play_model(context, &config, 0.2);
        const exphil_head_play heads[HEADS] = {{2.0f, 0, 0, 0}, {0, 1, 0, 0}, {0.7f, 0, 0.8f, 0.3f}};
        exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
        how.heads = heads;
        how.seed = 5;
        how.streams = 3;
        how.deliver = EXPHIL_DELIVER_DECIDED;
        exphil_session *one = play_session(model, &how), *two = NULL;
        play_frames *f = play_frames_make(model, 3, FRAMES, 8);
        int32_t a[3][HEADS], b[3][HEADS];
        for (int64_t t = 0; t < FRAMES / 2; t++) play_step(one, f, t, true, a[0]);
        assert_ok(exphil_session_clone(one, &two, NULL));
        for (int64_t t = FRAMES / 2; t < FRAMES; t++) {
            float logits[2][3][LOGITS];
            play_step(one, f, t, true, a[0]);
            play_step(two, f, t, true, b[0]);
            play_logits(one, f, logits[0][0]);
            play_logits(two, f, logits[1][0]);
            assert_memory_equal(a, b, sizeof a);
            assert_memory_equal(logits[0], logits[1], sizeof logits[0]);
        }
        /* and then each goes its own way */
        assert_ok(exphil_session_reset(two, 1));
        play_step(one, f, 0, true, a[0]);
        play_step(two, f, 0, true, b[0]);
        assert_memory_equal(a[0], b[0], sizeof a[0]);
        assert_memory_equal(a[2], b[2], sizeof a[2]);
        play_frames_free(f);
        exphil_session_destroy(one);
        exphil_session_destroy(two);
        exphil_model_destroy(model);
        exphil_context_destroy(context);
    }
}

/* A stream may move to another place of another session, and streams may be swapped. */
static void blocks_fit_any_stream(void **state)
{
    game g = game_make(6, EXPHIL_MODE_CARRY, 3, 50);
    exphil_session *single = play_session(g.model, NULL);
    int32_t action[3][HEADS], one[HEADS];
    void *block = malloc(g.bytes), *other = malloc(g.bytes);
    for (int64_t t = 0; t < 20; t++) play_step(g.session, g.f, t, true, action[0]);
    assert_ok(exphil_session_state_save(g.session, 2, block, g.bytes));
    assert_ok(exphil_session_state_save(g.session, 0, other, g.bytes));
    assert_int_equal(exphil_session_state_size(single), g.bytes);
    assert_ok(exphil_session_state_restore(single, 0, block, g.bytes));
    assert_ok(exphil_session_state_restore(g.session, 0, block, g.bytes));
    assert_ok(exphil_session_state_restore(g.session, 2, other, g.bytes));
    for (int64_t t = 20; t < 40; t++) {
        float floats[3][13];
        int32_t ids[3][2];
        for (int b = 0; b < 3; b++) { /* all streams see what stream 2 sees */
            memcpy(floats[b], g.f->floats + (t * 3 + 2) * 13, sizeof floats[b]);
            memcpy(ids[b], g.f->ids + (t * 3 + 2) * 2, sizeof ids[b]);
        }
        assert_ok(exphil_session_step_row(g.session, floats[0], ids[0], NULL, action[0]));
        assert_ok(exphil_session_step_row(single, floats[2], ids[2], NULL, one));
        assert_memory_equal(action[0], one, sizeof one);
    }
    free(block);
    free(other);
    exphil_session_destroy(single);
    game_free(&g);
}

/* ---- another process ------------------------------------------------------------------------------------------------ */

enum { AFTER = 200 };

/* What the other process does: model from its file, state from its file, frames from their seed. */
static int second_life(const char *folder)
{
    char path[512];
    size_t bytes;
    exphil_model *model = NULL;
    exphil_context *context = test_context(NULL, NULL, 2);
    (void)snprintf(path, sizeof path, "%s/weights", folder);
    assert_ok(exphil_model_load(context, path, &model, NULL));
    (void)snprintf(path, sizeof path, "%s/state", folder);
    char *block = test_read(path, &bytes);
    exphil_session *session = play_session(model, NULL);
    play_frames *f = play_frames_make(model, 1, 50 + AFTER, 6);
    tape *to = calloc(AFTER, sizeof *to);
    exphil_status status = exphil_session_state_restore(session, 0, block, bytes);
    if (status == EXPHIL_OK) play(session, f, 50, AFTER, to);
    (void)snprintf(path, sizeof path, "%s/tape", folder);
    test_write(path, to, AFTER * sizeof *to);
    free(to);
    free(block);
    play_frames_free(f);
    exphil_session_destroy(session);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
    return status == EXPHIL_OK ? 0 : 1;
}

static void other_processes_go_on(void **state)
{
    for (int p = 0; p < PATTERNS; p++)
        for (int32_t mode = 0; mode <= 1; mode++) {
            game g = game_make(p, mode, 1, 50 + AFTER);
            tape *want = calloc(AFTER, sizeof *want);
            void *block = malloc(g.bytes);
            play(g.session, g.f, 0, 50, want);
            assert_ok(exphil_session_state_save(g.session, 0, block, g.bytes));
            play(g.session, g.f, 50, AFTER, want);
            assert_ok(exphil_model_save(g.model, test_path("weights"), NULL));
            test_write(test_path("state"), block, g.bytes);
            const char *const life[] = {"second-life", test_folder(), NULL};
            assert_int_equal(test_wait(test_start_self(life)), 0);
            size_t bytes = 0;
            char *got = test_read(test_path("tape"), &bytes);
            assert_int_equal(bytes, AFTER * sizeof *want);
            assert_memory_equal(got, want, bytes);
            free(got);
            free(block);
            free(want);
            game_free(&g);
        }
    test_folder_remove();
}

/* ---- blocks of other things ---------------------------------------------------------------------------------------- */

static void assert_refused(exphil_session *session, const void *block, size_t bytes, exphil_status status,
                           const char *says)
{
    size_t own = exphil_session_state_size(session);
    void *before = malloc(own), *after = malloc(own);
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_ok(exphil_session_state_save(session, 0, before, own));
    assert_int_equal(exphil_session_state_restore(session, 0, block, bytes), status);
    assert_int_equal(exphil_session_error(session, &error), status);
    assert_says(&error, says);
    assert_ok(exphil_session_state_save(session, 0, after, own));
    assert_memory_equal(before, after, own);
    free(before);
    free(after);
}

static void other_settings_are_refused(void **state)
{
    game g = game_make(2, EXPHIL_MODE_CARRY, 1, 10);
    void *block = malloc(g.bytes);
    assert_ok(exphil_session_state_save(g.session, 0, block, g.bytes));
    const exphil_head_play warm[HEADS] = {{0, 0, 0, 0}, {1.5f, 0, 0, 0}, {0, 0, 0, 0}};
    const exphil_head_play held[HEADS] = {{0, 0, 0.6f, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}};
    const exphil_session_config others[] = {
        {.heads = warm}, {.heads = held}, {.deterministic = 1}, {.deliver = 1}};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        exphil_session_config how = others[i];
        how.struct_size = sizeof how;
        exphil_session *session = play_session(g.model, &how);
        assert_refused(session, block, g.bytes, EXPHIL_E_MISMATCH, "configuration");
        exphil_session_destroy(session);
    }
    /* What does not matter to the stream does not matter here: seed, streams, deadline. */
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    how.seed = 99;
    how.streams = 4;
    how.deadline_ns = 5;
    exphil_session *session = play_session(g.model, &how);
    assert_ok(exphil_session_state_restore(session, 3, block, g.bytes));
    exphil_session_destroy(session);
    free(block);
    game_free(&g);
}

static void other_models_are_refused(void **state)
{
    game g = game_make(2, EXPHIL_MODE_CARRY, 1, 10), shaken = game_make(2, EXPHIL_MODE_CARRY, 1, 10),
         window = game_make(2, EXPHIL_MODE_WINDOW, 1, 10), bigger = game_make(0, EXPHIL_MODE_CARRY, 1, 10);
    void *block = malloc(g.bytes);
    assert_ok(exphil_session_state_save(g.session, 0, block, g.bytes));
    assert_ok(
        exphil_session_state_restore(shaken.session, 0, block, g.bytes)); /* the same weights, made again */
    exphil_session_destroy(shaken.session);
    play_shake(shaken.model, "heads.logits.bias", 1e-3, 4);
    shaken.session = play_session(shaken.model, NULL);
    assert_refused(shaken.session, block, g.bytes, EXPHIL_E_MISMATCH, "weights");
    assert_refused(window.session, block, g.bytes, EXPHIL_E_INVALID, "size_bytes");
    assert_refused(bigger.session, block, g.bytes, EXPHIL_E_INVALID, "size_bytes");
    assert_refused(g.session, NULL, g.bytes, EXPHIL_E_INVALID, "state is NULL");
    for (size_t length = 0; length < g.bytes; length++) {
        void *prefix = malloc(length ? length : 1);
        memcpy(prefix, block, length);
        assert_int_equal(exphil_session_state_restore(g.session, 0, prefix, length), EXPHIL_E_INVALID);
        free(prefix);
    }
    assert_int_equal(exphil_session_state_save(g.session, 0, block, g.bytes - 1), EXPHIL_E_INVALID);
    assert_int_equal(exphil_session_state_save(g.session, 1, block, g.bytes), EXPHIL_E_INVALID);
    assert_int_equal(exphil_session_state_save(g.session, -1, block, g.bytes), EXPHIL_E_INVALID);
    assert_int_equal(exphil_session_state_save(g.session, 0, NULL, g.bytes), EXPHIL_E_INVALID);
    assert_int_equal(exphil_session_state_size(NULL), 0);
    free(block);
    game_free(&g);
    game_free(&shaken);
    game_free(&window);
    game_free(&bigger);
}

/* ---- damaged blocks ------------------------------------------------------------------------------------------------- */

/* Either refused, or the stream goes on somehow: no access out of bounds (that is for the sanitizer to see), and after a
 * reset it is as good as new. */
static void try_block(game *g, const void *block, int64_t *taken)
{
    int32_t action[HEADS];
    exphil_status status = exphil_session_state_restore(g->session, 0, block, g->bytes);
    if (status < 0) {
        assert_true(status == EXPHIL_E_FORMAT || status == EXPHIL_E_MISMATCH);
        return;
    }
    (*taken)++;
    for (int64_t t = 0; t < 2; t++) {
        status = exphil_session_step_row(g->session, g->f->floats + t * 13, g->f->ids + t * 2, NULL, action);
        assert_true(status == EXPHIL_OK || status == EXPHIL_E_NUMERIC);
        for (int h = 0; h < HEADS && status == EXPHIL_OK; h++) {
            const exphil_head_spec *head = &model_case_spec.heads[h];
            assert_true(action[h] >= 0 &&
                        action[h] < (head->kind == EXPHIL_BERNOULLI ? 1 << head->count : head->count));
        }
    }
}

static void damaged_blocks_do_no_harm(void **state)
{
    for (int p = 0; p < PATTERNS; p++)
        for (int32_t mode = 0; mode <= 1; mode++) {
            game g = game_make(p, mode, 1, 20);
            tape before[20], after[20];
            unsigned char *block = malloc(g.bytes), *start = malloc(g.bytes), *bent = malloc(g.bytes);
            int64_t taken = 0;
            assert_ok(exphil_session_state_save(g.session, 0, start, g.bytes));
            play(g.session, g.f, 0, 20, before);
            assert_ok(exphil_session_state_save(g.session, 0, block, g.bytes));
            for (size_t i = 0;
                 i<8 * g.bytes; i += i> 8 * 256 ? 13u : 1u) { /* all of the head, some of the rest */
                memcpy(bent, block, g.bytes);
                bent[i / 8] ^= (unsigned char)(1u << i % 8);
                try_block(&g, bent, &taken);
            }
            /* whole words that are bad as integers, as reals, as both */
            static const uint32_t words[] = {0xFFFFFFFFu, 0x7FFFFFFFu, 0x80000000u, 0x7FC00000u, 0x7F800000u,
                                             0xFF800000u, 0x4F000000u, 0x5F000000u, 0x00000001u, 0x7F7FFFFFu};
            for (size_t at = 32; at + 4 <= g.bytes; at += 4)
                for (size_t w = 0; w < sizeof words / sizeof words[0]; w++) {
                    memcpy(bent, block, g.bytes);
                    memcpy(bent + at, &words[w], 4);
                    if (w == at / 4 % 10 || at + 256 > g.bytes - LOGITS * 4) try_block(&g, bent, &taken);
                }
            assert_true(taken > 20);
            assert_ok(exphil_session_state_restore(g.session, 0, start, g.bytes));
            play(g.session, g.f, 0, 20, after);
            assert_memory_equal(before, after, sizeof before);
            free(block);
            free(start);
            free(bent);
            game_free(&g);
        }
}

/* The ring of attention keeps slot numbers as reals at its end: none of them may lead out of the ring. */
static void hostile_rings_stay_inside(void **state)
{
    static const float numbers[] = {-1, 5, 4.5f, 1e30f, -1e30f, 9.3e18f, 0.5f, -0.0f, 6, 1e-40f};
    game g = game_make(3, EXPHIL_MODE_CARRY, 1, 20);
    tape drop[20];
    int64_t taken = 0;
    unsigned char *block = malloc(g.bytes), *bent = malloc(g.bytes);
    play(g.session, g.f, 0, 20, drop);
    assert_ok(exphil_session_state_save(g.session, 0, block, g.bytes));
    size_t counters = g.bytes - LOGITS * sizeof(float) - 2 * sizeof(float);
    float found[2];
    memcpy(found, block + counters, sizeof found);
    assert_true(found[0] == 0 && found[1] == 5); /* 20 frames round a ring of 5 */
    float all[12];
    memcpy(all, numbers, sizeof numbers);
    const uint32_t nan[2] = {0x7FC00000u, 0xFFC00001u};
    memcpy(all + 10, nan, sizeof nan);
    for (int i = 0; i < 12; i++)
        for (int k = 0; k < 12; k++) {
            memcpy(bent, block, g.bytes);
            memcpy(bent + counters, &all[i], sizeof(float));
            memcpy(bent + counters + sizeof(float), &all[k], sizeof(float));
            try_block(&g, bent, &taken);
        }
    free(block);
    free(bent);
    game_free(&g);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "second-life") == 0) return second_life(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(restored_streams_go_on),     cmocka_unit_test(rollback_is_a_straight_run),
        cmocka_unit_test(lagging_states_are_whole),   cmocka_unit_test(clones_are_twins),
        cmocka_unit_test(blocks_fit_any_stream),      cmocka_unit_test(other_processes_go_on),
        cmocka_unit_test(other_settings_are_refused), cmocka_unit_test(other_models_are_refused),
        cmocka_unit_test(damaged_blocks_do_no_harm),  cmocka_unit_test(hostile_rings_stay_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
