/* One model, many sessions, each on a thread of its own: every session plays what it would play alone, while others are
 * made, ended, and the model is queried and saved. Above all this is what the thread sanitizer watches. */
#include "play_case.h"

#include <stdlib.h>
#include <string.h>

enum { PLAYERS = 4, ROUNDS = 3, FRAMES = 40, STREAMS = 2, ROWS = FRAMES * STREAMS };

/* What one thread plays, and what came of it. */
typedef struct player {
    const exphil_model *model;
    const play_frames *frames;
    int32_t *actions; /* [FRAMES, STREAMS, heads] of the last round */
    float *logits;    /* [FRAMES, STREAMS, logits] */
    exphil_status status;
} player;

static exphil_status play_round(player *p)
{
    const play_frames *f = p->frames;
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    exphil_session *session = NULL;
    config.streams = STREAMS;
    config.deliver = EXPHIL_DELIVER_DECIDED;
    exphil_status status = exphil_session_create(p->model, &config, &session, NULL);
    for (int64_t t = 0; status == EXPHIL_OK && t < FRAMES; t++) {
        int64_t row = t * STREAMS;
        status =
            exphil_session_step_row(session, f->floats + row * f->float_count, f->ids + row * f->id_count,
                                    f->noise + row * f->logits, p->actions + row * f->heads);
        for (int64_t b = 0; status == EXPHIL_OK && b < STREAMS; b++)
            status = exphil_session_logits(session, b, p->logits + (row + b) * f->logits, f->logits);
    }
    exphil_session_destroy(session);
    return status;
}

/* A thread may not fail a test: it leaves a status. */
static void *play_rounds(void *given)
{
    player *p = given;
    p->status = EXPHIL_OK;
    for (int i = 0; i < ROUNDS && p->status == EXPHIL_OK; i++) p->status = play_round(p);
    return NULL;
}

static void *look_at(void *given)
{
    player *p = given;
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    p->status = EXPHIL_OK;
    for (int i = 0; i < 2 * ROUNDS && p->status == EXPHIL_OK; i++) {
        p->status = exphil_model_query(p->model, &info, NULL);
        if (p->status == EXPHIL_OK)
            p->status = exphil_model_save(p->model, test_path("seen.safetensors"), NULL);
    }
    return NULL;
}

static player player_of(const exphil_model *model, const play_frames *frames)
{
    player p = {model, frames, calloc((size_t)(ROWS * frames->heads), sizeof(int32_t)),
                calloc((size_t)(ROWS * frames->logits), sizeof(float)), EXPHIL_E_INTERNAL};
    assert_non_null(p.actions);
    assert_non_null(p.logits);
    return p;
}

static void play_together(const char *blocks, int32_t pool)
{
    exphil_context *context = test_context(NULL, NULL, pool);
    exphil_model_config config = model_case_config(blocks, EXPHIL_TYPE_F32);
    exphil_model *model = play_model(context, &config, 0.2);
    player alone[PLAYERS], together[PLAYERS], looker = {.model = model};
    test_thread thread[PLAYERS + 1];
    for (int i = 0; i < PLAYERS; i++) {
        play_frames *frames = play_frames_make(model, STREAMS, FRAMES, (uint64_t)i);
        alone[i] = player_of(model, frames);
        together[i] = player_of(model, frames);
    }
    /* First together: what a first session prepares is then prepared by several at once. */
    test_thread_start(&thread[PLAYERS], look_at, &looker);
    for (int i = 0; i < PLAYERS; i++) test_thread_start(&thread[i], play_rounds, &together[i]);
    for (int i = 0; i <= PLAYERS; i++) (void)test_thread_join(&thread[i]);
    assert_ok(looker.status);
    for (int i = 0; i < PLAYERS; i++) {
        const play_frames *f = together[i].frames;
        assert_ok(together[i].status);
        assert_ok(play_round(&alone[i]));
        assert_memory_equal(alone[i].actions, together[i].actions, (size_t)(ROWS * f->heads) * 4);
        assert_memory_equal(alone[i].logits, together[i].logits, (size_t)(ROWS * f->logits) * 4);
        /* Players see different frames; equal logits would mean that nobody looked. */
        assert_true(i == 0 || memcmp(alone[0].logits, alone[i].logits, (size_t)(ROWS * f->logits) * 4) != 0);
    }
    for (int i = 0; i < PLAYERS; i++) {
        play_frames_free((play_frames *)together[i].frames);
        free(alone[i].actions);
        free(alone[i].logits);
        free(together[i].actions);
        free(together[i].logits);
    }
    exphil_model_destroy(model);
    exphil_context_destroy(context);
}

static void sessions_share_a_model(void **state)
{
    static const char *const blocks[] = {EACH_BLOCK};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) play_together(blocks[i], 1);
}

static void they_share_the_pool_too(void **state)
{
    play_together("mamba attention", 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sessions_share_a_model),
        cmocka_unit_test(they_share_the_pool_too),
    };
    return cmocka_run_group_tests(tests, NULL, test_leave);
}
