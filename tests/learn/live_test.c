/* A policy that learns behind the game it plays: paced, the bits follow from what was given alone; a run that was saved goes
 * on; frames that were rolled back are not learnt from; and reinforcement is that of a learner in one context. */
#include "live_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Melee ------------------------------------------------------------------------------------------------------- */

/* Frames become rows and actions controllers as in a session; a person's controller comes back as it is, and is learnt from as the
 * codec expresses it. */
static void frames_of_melee(void **state)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_model_config small = EXPHIL_MODEL_CONFIG_INIT;
    exphil_live_config config = EXPHIL_LIVE_CONFIG_INIT;
    exphil_live *live = NULL;
    exphil_session *session = NULL;
    small.blocks = "gru";
    small.hidden = 16;
    small.neutral_start = 1;
    config.paced = 1;
    config.updates = 2;
    exphil_model *model = model_case_create(context, &small);
    assert_ok(exphil_live_create(model, &config, &live, NULL));
    assert_ok(exphil_session_create(model, NULL, &session, NULL));
    for (int t = 0; t < 150; t++) {
        exphil_melee_frame frame = EXPHIL_MELEE_FRAME_INIT;
        exphil_pad person = {EXPHIL_PAD_B, 0.3f, -0.9f, 0.01f, 0.0f, 0.25f}, pads[2];
        int32_t action[EXPHIL_HEADS_MAX];
        frame.frame = t;
        frame.stage = 32;
        frame.own_port = 1;
        for (int p = 0; p < 2; p++) frame.player[p].present = 1, frame.player[p].known = EXPHIL_MELEE_HAS_ALL;
        frame.player[1].x = (float)t;
        const bool plays = t % 4 == 3;
        assert_ok(exphil_live_step(live, &frame, plays ? &person : NULL, &pads[0]));
        assert_ok(exphil_session_step(session, &frame, &pads[1]));
        if (!plays) assert_memory_equal(&pads[0], &pads[1], sizeof pads[0]);
        if (!plays) continue;
        assert_memory_equal(&pads[0], &person, sizeof person);
        assert_ok(exphil_melee_pad_encode("exphil81", &person, action, NULL));
        assert_ok(exphil_session_override(session, 0, action));
        person.main_x = (float)NAN;
        assert_int_equal(exphil_live_step(live, &frame, &person, &pads[0]), EXPHIL_E_NUMERIC);
    }
    assert_ok(exphil_live_settle(live, NULL));
    assert_int_equal(live_info(live).learnt, 37);
    exphil_session_destroy(session);
    exphil_live_destroy(live);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
}

/* ---- the same bits --------------------------------------------------------------------------------------------- */

static const live_plan paced_plan = {.frames = 900, .on = 30, .of = 70, .episode = 333, .settle = 200};

static void paced_runs_are_the_same(void **state)
{
    static const char *const patterns[] = {"mlp", "mamba gru"};
    for (int p = 0; p < 2; p++) {
        uint64_t first[2] = {0, 0};
        for (int i = 0; i < 5; i++) {
            live_bench b;
            uint64_t hash = 0;
            live_bench_make(&b, patterns[p], p);
            b.config.paced = 1;
            b.config.rollback_frames = i == 3 ? 20 : 0;
            b.config.ring_frames = i == 4 ? 250 : 0;
            b.learning.threads = i == 1 ? 4 : i == 2 ? 2 : 1;
            exphil_live *live = live_bench_live(&b);
            live_person person = live_person_of(1, p);
            live_play(live, &person, &paced_plan, &hash);
            assert_ok(exphil_live_settle(live, NULL));
            assert_int_equal(live_info(live).dropped, 0);
            if (i == 0) first[0] = hash, first[1] = live_weights(live);
            assert_int_equal(hash, first[0]);
            assert_int_equal(live_weights(live), first[1]);
            exphil_live_destroy(live);
            live_bench_free(&b);
        }
    }
}

static exphil_dataset *some_data(const live_bench *b, int64_t frames)
{
    exphil_dataset *dataset = NULL;
    exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT;
    static float floats[1000][13];
    static int32_t ids[1000][2], actions[1000][3];
    live_person other = live_person_of(5, 0);
    for (int64_t f = 0; f < frames; f++) live_person_look(&other, floats[f], ids[f], actions[f]);
    config.spec = &model_case_spec;
    assert_ok(exphil_dataset_create(b->context, &config, &dataset, NULL));
    assert_ok(exphil_dataset_add_rows(dataset, 1, frames, floats[0], ids[0], actions[0], NULL));
    return dataset;
}

static void saved_runs_go_on(void **state)
{
    live_bench b;
    uint64_t straight = 0, cut = 0;

    const char *path = (test_folder(), test_path("live.safetensors"));
    live_bench_make(&b, "mamba gru", 2);
    b.config.paced = 1;
    b.config.dataset = some_data(&b, 700); /* it goes on where it was, in the midst of an episode */
    exphil_live *live = live_bench_live(&b), *again = live_bench_live(&b);
    exphil_dataset_destroy((exphil_dataset *)(uintptr_t)b.config.dataset);
    live_person person = live_person_of(1, 2);
    live_play(live, &person, &paced_plan, &straight);
    assert_ok(exphil_live_save(live, path, NULL));
    assert_ok(exphil_live_resume(again, path, NULL));
    assert_int_equal(live_weights(again), live_weights(live));
    assert_int_equal(live_info(again).learnt, live_info(live).learnt);
    assert_int_equal(live_info(again).updates, live_info(live).updates);
    /* The session's state is the host's: both start an episode with equal draws. */
    const size_t bytes = exphil_session_state_size(exphil_live_session(live));
    unsigned char *kept = malloc(bytes);
    assert_ok(exphil_live_reward(live, 0.0f, EXPHIL_OVER, NULL, NULL));
    assert_ok(exphil_session_state_save(exphil_live_session(live), 0, kept, bytes));
    exphil_live_session(again)->goes_back = true;
    assert_ok(exphil_session_state_restore(exphil_live_session(again), 0, kept, bytes));
    free(kept);
    live_person same = person;
    straight = cut = 0;
    live_play(live, &person, &paced_plan, &straight);
    live_play(again, &same, &paced_plan, &cut);
    assert_int_equal(cut, straight);
    assert_ok(exphil_live_settle(live, NULL));
    assert_ok(exphil_live_settle(again, NULL));
    assert_int_equal(live_weights(again), live_weights(live));
    test_folder_remove();
    exphil_live_destroy(live);
    exphil_live_destroy(again);
    live_bench_free(&b);
}

/* With other data beside it a run goes on too: it keeps what the person did. */
static void other_data_may_stand_beside_it(void **state)
{
    live_bench b;
    uint64_t hash = 0;
    exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT;
    exphil_dataset *dataset = NULL;
    const char *path = (test_folder(), test_path("live.safetensors"));
    live_bench_make(&b, "gru", 0);
    config.spec = &model_case_spec;
    assert_ok(exphil_dataset_create(b.context, &config, &dataset, NULL));
    b.config.dataset = dataset;
    live_person person = live_person_of(1, 0);
    for (uint64_t game = 1; game < 4; game++) {
        float floats[13];
        int32_t ids[2], action[3];
        live_person_look(&person, floats, ids, action);
        assert_ok(exphil_dataset_add_rows(dataset, game, 1, floats, ids, action, NULL));
        if (game == 1) continue; /* at first there are two games */
        exphil_live *live = live_bench_live(&b);
        if (game == 3) assert_ok(exphil_live_resume(live, path, NULL));
        assert_int_equal(live_info(live).learnt, game == 3 ? 100 : 0);
        const live_plan plan = {.frames = 100, .on = 1, .of = 1, .episode = 100};
        live_play(live, &person, &plan, &hash);
        assert_ok(exphil_live_save(live, path, NULL));
        assert_int_equal(live_info(live).learnt, game == 3 ? 200 : 100);
        exphil_live_destroy(live);
    }
    exphil_dataset_destroy(dataset);
    test_folder_remove();
    live_bench_free(&b);
}

/* The thread saves by itself, and a run goes on from there. */
static void the_thread_saves_by_itself(void **state)
{
    live_bench b;
    uint64_t hash = 0;
    live_bench_make(&b, "gru", 0);
    (void)test_folder();
    b.config.path = test_path("kept");
    b.config.save_pieces = 2;
    exphil_live *live = live_bench_live(&b), *again = NULL;
    live_person person = live_person_of(1, 0);
    const live_plan plan = {.frames = 50 * 5, .on = 1, .of = 1, .episode = 1000};
    live_play(live, &person, &plan, &hash);
    assert_ok(exphil_live_settle(live, NULL));
    const exphil_live_info info = live_info(live);
    assert_int_equal(info.pieces, 5);
    assert_int_equal(info.saved, 2);
    assert_int_equal(info.unsaved, EXPHIL_OK);
    exphil_live_destroy(live);
    again = live_bench_live(&b);
    assert_ok(exphil_live_resume(again, b.config.path, NULL));
    assert_int_equal(live_info(again).pieces, 4);
    assert_int_equal(live_info(again).learnt, 200);
    exphil_live_destroy(again);
    b.config.path = test_path("no/folder");
    live = live_bench_live(&b);
    live_play(live, &person, &plan, &hash);
    assert_ok(exphil_live_settle(live, NULL));
    assert_int_equal(live_info(live).saved, 0);
    assert_int_equal(live_info(live).unsaved, EXPHIL_E_IO);
    assert_true(strstr(live_info(live).message, "no/folder") != NULL);
    assert_int_equal(live_info(live).failed, EXPHIL_OK);
    exphil_live_destroy(live);
    test_folder_remove();
    live_bench_free(&b);
}

/* ---- rollback ---------------------------------------------------------------------------------------------------- */

/* Every 37 frames the last 1 to 12 are played again, after others that never were. */
static void frames_that_are_taken_back_are_not_learnt(void **state)
{
    uint64_t first[2] = {0, 0};
    for (int back = 0; back < 2; back++) {
        live_bench b;
        uint64_t hash = 0;
        enum { BACK = 12 };
        live_bench_make(&b, "mamba gru", 1);
        b.config.paced = 1;
        b.config.rollback_frames = BACK;
        exphil_live *live = live_bench_live(&b);
        exphil_session *session = exphil_live_session(live);
        const size_t bytes = exphil_session_state_size(session);
        unsigned char *kept = malloc(bytes);
        live_person person = live_person_of(1, 1);
        int64_t taken_back = 0;
        for (int i = 0; i < 700; i++) {
            float floats[13];
            int32_t ids[2], action[3], actions[3];
            if (back && i % 37 == 36) {
                live_person never = live_person_of(99, 1);
                assert_ok(exphil_session_state_save(session, 0, kept, bytes));
                for (int k = 0; k <= i % BACK; k++, taken_back++) {
                    live_person_look(&never, floats, ids, action);
                    assert_ok(exphil_live_step_row(live, floats, ids, k % 3 ? action : NULL, actions));
                }
                assert_ok(exphil_session_state_restore(session, 0, kept, bytes));
            }
            live_person_look(&person, floats, ids, action);
            assert_ok(exphil_live_step_row(live, floats, ids, i % 5 ? action : NULL, actions));
            hash = xph_mix(hash + xph_hash(actions, sizeof actions));
            if (i % 150 == 149) assert_ok(exphil_live_settle(live, NULL));
        }
        assert_ok(exphil_live_settle(live, NULL));
        assert_int_equal(live_info(live).taken_back, taken_back);
        if (!back) first[0] = hash, first[1] = live_weights(live);
        assert_int_equal(hash, first[0]);
        assert_int_equal(live_weights(live), first[1]);
        free(kept);
        exphil_live_destroy(live);
        live_bench_free(&b);
    }
}

/* Farther back than was said, what was shown stays, and what follows is another episode to learning. */
static void farther_back_is_a_gap(void **state)
{
    live_bench b;
    float floats[13];
    int32_t ids[2], action[3], actions[3];
    live_bench_make(&b, "gru", 0);
    b.config.paced = 1;
    b.config.rollback_frames = 2;
    exphil_live *live = live_bench_live(&b);
    exphil_session *session = exphil_live_session(live);
    const size_t bytes = exphil_session_state_size(session);
    unsigned char *kept = malloc(bytes);
    live_person person = live_person_of(1, 0);
    for (int i = 0; i < 40; i++) {
        if (i == 10) assert_ok(exphil_session_state_save(session, 0, kept, bytes));
        if (i == 20) assert_ok(exphil_session_state_restore(session, 0, kept, bytes));
        live_person_look(&person, floats, ids, action);
        assert_ok(exphil_live_step_row(live, floats, ids, action, actions));
    }
    assert_ok(exphil_live_settle(live, NULL));
    const exphil_live_info info = live_info(live);
    assert_int_equal(info.taken_back, 2);
    assert_int_equal(info.pieces, 2);
    assert_int_equal(info.learnt, 38);
    free(kept);
    exphil_live_destroy(live);
    live_bench_free(&b);
}

typedef struct walk {
    exphil_live *live;
    live_person person;
    unsigned char *kept[3];
    size_t bytes;
} walk;

static void frames_of(walk *w, int count)
{
    for (int i = 0; i < count; i++) {
        float floats[13];
        int32_t ids[2], action[3], actions[3];
        live_person_look(&w->person, floats, ids, action);
        assert_ok(exphil_live_step_row(w->live, floats, ids, action, actions));
    }
}

static void keep(walk *w, int i)
{
    assert_ok(exphil_session_state_save(exphil_live_session(w->live), 0, w->kept[i], w->bytes));
}

static void back(walk *w, int i)
{
    assert_ok(exphil_session_state_restore(exphil_live_session(w->live), 0, w->kept[i], w->bytes));
}

/* What is learnt is one line of frames that followed each other, or two where some of it is not there any more. */
static void only_what_led_to_the_state_is_learnt(void **state)
{
    static const struct {
        const char *name;
        int64_t ring, rollback, pieces, learnt,
            undone; /* undone: taken back, or dropped, as the thread had made room or not */
    } expected[] = {{"a gap, restored twice", 0, 2, 2, 21, 3},
                    {"sideways, between two branches", 0, 20, 2, 15, 10},
                    {"over frames that were dropped", 21, 20, 2, 24, 5}};
    for (int i = 0; i < 3; i++) {
        live_bench b;
        live_bench_make(&b, "gru", 0);
        b.config.paced = 1;
        b.config.ring_frames = expected[i].ring;
        b.config.rollback_frames = expected[i].rollback;
        b.config.piece_frames = 1000;
        walk w = {.live = live_bench_live(&b), .person = live_person_of(1, 0)};
        w.bytes = exphil_session_state_size(exphil_live_session(w.live));
        for (int k = 0; k < 3; k++) w.kept[k] = malloc(w.bytes);
        if (i == 0) {
            frames_of(&w, 10);
            keep(&w, 0);
            frames_of(&w, 10); /* 18 of 20 are shown */
            back(&w, 0);
            frames_of(&w, 1);
            back(&w, 0);
            frames_of(&w, 3);
        } else if (i == 1) {
            frames_of(&w, 5);
            keep(&w, 0);
            frames_of(&w, 5);
            keep(&w, 1);
            back(&w, 0);
            frames_of(&w, 5);
            back(&w, 1); /* as many frames, of others */
            frames_of(&w, 10);
        } else {
            frames_of(&w, 21);
            keep(&w, 0);
            frames_of(&w, 5); /* the ring is full, but for the frame that the thread may have read */
            back(&w, 0);
            assert_ok(exphil_live_settle(w.live, NULL));
            frames_of(&w, 1);
            keep(&w, 1);
            frames_of(&w, 2);
        }
        assert_ok(exphil_live_settle(w.live, NULL));
        const exphil_live_info info = live_info(w.live);
        print_message("%s: %lld pieces, %lld frames, %lld taken back, %lld dropped\n", expected[i].name,
                      (long long)info.pieces, (long long)info.learnt, (long long)info.taken_back,
                      (long long)info.dropped);
        assert_int_equal(info.learnt, expected[i].learnt);
        assert_int_equal(info.pieces, expected[i].pieces);
        assert_int_equal(info.taken_back + info.dropped, expected[i].undone);
        for (int k = 0; k < 3; k++) free(w.kept[k]);
        exphil_live_destroy(w.live);
        live_bench_free(&b);
    }
}

/* However often it is settled, each frame of the person is learnt from once, but for the first d of an episode. */
static void settling_loses_nothing(void **state)
{
    live_bench b;
    uint64_t hash = 0;
    live_bench_make(&b, "gru", 5);
    exphil_live *live = live_bench_live(&b);
    live_person person = live_person_of(1, 5);
    const live_plan plan = {.frames = 200, .on = 1, .of = 1, .episode = 1000, .settle = 10};
    live_play(live, &person, &plan, &hash);
    assert_int_equal(live_info(live).learnt, 195);
    exphil_live_destroy(live);
    live_bench_free(&b);
}

/* ---- reinforcement ---------------------------------------------------------------------------------------------- */

/* A learner in one context, and one behind the game that is settled after each chunk, are one. */
static void reinforcement_is_that_of_one_context(void **state)
{
    for (int32_t delay = 0; delay < 3; delay += 2) {
        learn_plan plan = learn_plan_of("mamba gru");
        exphil_live_config config = EXPHIL_LIVE_CONFIG_INIT;
        exphil_session_config session = EXPHIL_SESSION_CONFIG_INIT;
        noise world = {.frames = 0};
        plan.lanes = 1;
        plan.time = config.time = 24;
        plan.model.delay_frames = delay;
        plan.model.neutral_start = 1;
        plan.taught = true;
        plan.learner.to_teacher = 0.01;
        session.seed = 5;
        config.way = EXPHIL_LIVE_REINFORCE;
        config.paced = 1;
        config.session = &session;
        config.learner = &plan.learner;
        learn_run run = learn_begin(&plan);
        config.teacher = run.model;
        exphil_live *live = NULL;
        assert_ok(exphil_live_create(run.model, &config, &live, NULL));
        float floats[13], reward;
        int32_t ids[2], actions[2][3];
        uint8_t end;
        world.rng[0] = (xph_rng){.seed = 1, .stream = XPH_RNG_TEST};
        noise_row(&world, 0, floats, ids);
        for (int chunk = 0; chunk < 5; chunk++) {
            exphil_learner_metrics m = EXPHIL_LEARNER_METRICS_INIT;
            exphil_status status = EXPHIL_OK;
            while (status == EXPHIL_OK) {
                assert_ok(exphil_rollout_step(run.rollout, floats, ids, actions[0]));
                assert_ok(exphil_live_step_row(live, floats, ids, NULL, actions[1]));
                assert_memory_equal(actions[0], actions[1], sizeof actions[0]);
                exphil_world w = noise_world(&world, 1);
                assert_int_equal(w.step(w.user, 0, 1, actions[0], floats, ids, &reward, &end), 0);
                status = exphil_rollout_reward(run.rollout, &reward, &end, floats, ids);
                assert_ok(exphil_live_reward(live, reward, end, floats, ids));
            }
            assert_int_equal(status, EXPHIL_END);
            assert_ok(exphil_learner_update(run.learner, run.rollout, &m, NULL));
            assert_ok(exphil_live_settle(live, NULL));
            assert_int_equal(live_weights(live), learn_weights(&run));
            assert_int_equal(live_info(live).pieces, chunk + 1);
        }
        assert_int_equal(live_info(live).adopted, 5);
        exphil_live_destroy(live);
        learn_end(&run);
    }
}

/* Paced, what was settled in the midst of a chunk enters when that ends. */
static void settled_weights_enter_with_the_next_chunk(void **state)
{
    live_bench b;
    exphil_live_config config = EXPHIL_LIVE_CONFIG_INIT;
    live_bench_make(&b, "gru", 0);
    config.way = EXPHIL_LIVE_REINFORCE;
    config.time = 16;
    config.paced = 1;
    exphil_live *live = NULL;
    assert_ok(exphil_live_create(b.model, &config, &live, NULL));
    live_person person = live_person_of(1, 0);
    for (int64_t i = 0; i < 64; i++) {
        float floats[13];
        int32_t ids[2], action[3], actions[3];
        live_person_look(&person, floats, ids, action);
        assert_ok(exphil_live_step_row(live, floats, ids, NULL, actions));
        assert_ok(exphil_live_reward(live, (float)(actions[1] == 2), EXPHIL_GOES_ON, floats, ids));
        if (i == 20) assert_ok(exphil_live_settle(live, NULL));
        assert_int_equal(live_info(live).adopted, i >= 31);
    }
    exphil_live_destroy(live);
    live_bench_free(&b);
}

/* Chunks that nobody waits for are learnt from too, and a full ring drops chunks, not frames. */
static void games_do_not_wait(void **state)
{
    live_bench b;
    exphil_live_config config = EXPHIL_LIVE_CONFIG_INIT;
    live_bench_make(&b, "gru", 1);
    config.way = EXPHIL_LIVE_REINFORCE;
    config.time = 16;
    config.ring_frames = 1;
    exphil_live *live = NULL;
    assert_ok(exphil_live_create(b.model, &config, &live, NULL));
    noise world = {.frames = 0};
    world.rng[0] = (xph_rng){.seed = 1, .stream = XPH_RNG_TEST};
    float floats[13], reward;
    int32_t ids[2], actions[3];
    uint8_t end;
    noise_row(&world, 0, floats, ids);
    int64_t steps = 0;
    for (; steps < 170 || live_info(live).pieces < 3; steps++) {
        assert_ok(exphil_live_step_row(live, floats, ids, NULL, actions));
        exphil_world w = noise_world(&world, 1);
        assert_int_equal(w.step(w.user, 0, 1, actions, floats, ids, &reward, &end), 0);
        assert_ok(exphil_live_reward(live, reward, end, floats, ids));
    }
    assert_ok(exphil_live_settle(live, NULL));
    const exphil_live_info info = live_info(live);
    assert_int_equal(info.frames, steps);
    assert_int_equal(info.pieces + info.dropped / 17, steps / 17); /* of 16 rows and one of delay */
    assert_int_equal(info.failed, EXPHIL_OK);
    exphil_live_destroy(live);
    live_bench_free(&b);
}

/* What a person did in the policy's place is not learnt from by PPO: with the person always there, nothing is. */
static void a_person_is_no_policy(void **state)
{
    for (int32_t delay = 0; delay < 3; delay += 2) {
        live_bench b;
        exphil_live_config config = EXPHIL_LIVE_CONFIG_INIT;
        live_bench_make(&b, "gru", delay);
        config.way = EXPHIL_LIVE_REINFORCE;
        config.time = 16;
        config.paced = 1;
        exphil_live *live = NULL;
        assert_ok(exphil_live_create(b.model, &config, &live, NULL));
        live_person person = live_person_of(1, delay);
        float floats[13];
        int32_t ids[2], action[3], actions[3];
        for (int64_t i = 0; i < 16 + delay; i++) {
            live_person_look(&person, floats, ids, action);
            assert_ok(exphil_live_step_row(live, floats, ids, i % 2 ? action : NULL, actions));
            if (i % 2) assert_memory_equal(actions, action, sizeof action);
            assert_ok(exphil_live_reward(live, 1.0f, EXPHIL_GOES_ON, floats, ids));
        }
        assert_ok(exphil_live_settle(live, NULL));
        assert_int_equal(live_info(live).pieces, 1);
        assert_int_equal(live_info(live).learnt, 8);
        exphil_live_destroy(live);
        live_bench_free(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_of_melee),
        cmocka_unit_test(paced_runs_are_the_same),
        cmocka_unit_test(saved_runs_go_on),
        cmocka_unit_test(other_data_may_stand_beside_it),
        cmocka_unit_test(the_thread_saves_by_itself),
        cmocka_unit_test(frames_that_are_taken_back_are_not_learnt),
        cmocka_unit_test(farther_back_is_a_gap),
        cmocka_unit_test(only_what_led_to_the_state_is_learnt),
        cmocka_unit_test(settling_loses_nothing),
        cmocka_unit_test(reinforcement_is_that_of_one_context),
        cmocka_unit_test(settled_weights_enter_with_the_next_chunk),
        cmocka_unit_test(games_do_not_wait),
        cmocka_unit_test(a_person_is_no_policy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
