/* A policy learns behind the game what the person does, with any delay, beside other data in the share that was asked for. */
#include "live_case.h"

#include <stdlib.h>

static void what_the_person_does_is_learnt(void **state)
{
    static const char *const patterns[] = {"mlp", "gru", "mamba", "attention"};
    for (int32_t i = 0; i < 8; i++) {
        live_bench b;
        uint64_t hash = 0;
        const int32_t delay = i / 4 * 3;
        live_bench_make(&b, patterns[i % 4], delay);
        b.config.updates = 40;
        exphil_live *live = live_bench_live(&b);
        live_person person = live_person_of(1, delay);
        const live_plan plan = {.frames = 1500, .on = 60, .of = 100, .episode = 400};
        live_play(live, &person, &plan, &hash);
        assert_ok(exphil_live_settle(live, NULL));
        exphil_model *learnt = NULL;
        assert_ok(exphil_live_model(live, &learnt, NULL));
        double before = live_agreement(b.model, 2, 1000), after = live_agreement(learnt, 2, 1000);
        print_message("%-9s delay %d: the person's stick in %2.0f %% of frames, before %2.0f %%\n",
                      patterns[i % 4], delay, 100.0 * after, 100.0 * before);
        assert_true(before < 0.5);
        assert_true(after > 0.95);
        const exphil_live_info info = live_info(live);
        assert_int_equal(info.frames, 1500);
        assert_int_equal(info.person, 900);
        assert_int_equal(info.dropped, 0);
        assert_int_equal(info.failed, EXPHIL_OK);
        assert_true(info.adopted > 0 && info.updates >= info.pieces * 40);
        /* of an episode the first d frames were decided before it, and the row that decides the last d is not there to learn */
        assert_in_range(info.learnt, 900 - 4 * delay, 900);
        exphil_model_destroy(learnt);
        exphil_live_destroy(live);
        live_bench_free(&b);
    }
}

/* Windows are learnt from too. */
static void windows_are_learnt_from(void **state)
{
    live_bench b;
    uint64_t hash = 0;
    exphil_model_config model = model_case_config("attention", EXPHIL_TYPE_F32);
    live_bench_make(&b, "mlp", 0);
    exphil_model_destroy(b.model);
    model.mode = EXPHIL_MODE_WINDOW;
    model.window_frames = 6;
    b.model = model_case_create(b.context, &model);
    b.sampling = (exphil_sampling)EXPHIL_SAMPLING_INIT;
    assert_ok(exphil_model_sampling(b.model, &b.sampling, NULL));
    b.sampling.last_only = 1;
    b.config.updates = 150;
    exphil_live *live = live_bench_live(&b);
    live_person person = live_person_of(1, 1);
    const live_plan plan = {.frames = 600, .on = 60, .of = 100, .episode = 400};
    live_play(live, &person, &plan, &hash);
    assert_ok(exphil_live_settle(live, NULL));
    exphil_model *learnt = NULL;
    assert_ok(exphil_live_model(live, &learnt, NULL));
    assert_true(live_agreement(learnt, 2, 500) > 0.9);
    exphil_model_destroy(learnt);
    exphil_live_destroy(live);
    live_bench_free(&b);
}

/* Frames in which the policy plays teach nothing, unless they are approved. */
static void what_is_let_pass_counts_where_it_is_approved(void **state)
{
    live_bench b;
    uint64_t hash = 0;
    live_bench_make(&b, "gru", 0);
    const live_plan alone = {.frames = 500, .on = 0, .of = 1, .episode = 200};
    for (int approved = 0; approved < 2; approved++) {
        b.config.approved = approved ? 0.25 : 0.0;
        exphil_live *live = live_bench_live(&b);
        live_person person = live_person_of(1, 0);
        live_play(live, &person, &alone, &hash);
        assert_ok(exphil_live_settle(live, NULL));
        const exphil_live_info info = live_info(live);
        assert_int_equal(info.learnt, 0);
        assert_int_equal(info.pieces > 0, approved);
        assert_int_equal(info.updates > 0, approved);
        exphil_live_destroy(live);
    }
    live_bench_free(&b);
}

enum { GIVEN = 20000 };

/* The host's data, which are many, hold the share that is left to them: a person who does otherwise than they say wins by share.
 * What the host says of its games by their numbers is not of pieces. */
static void data_keep_their_share(void **state)
{
    static float floats[GIVEN][13];
    static int32_t ids[GIVEN][2], actions[GIVEN][3];
    double kept[2];
    for (int i = 0; i < 2; i++) {
        live_bench b;
        uint64_t hash = 0;
        exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT;
        exphil_dataset *dataset = NULL;
        live_bench_make(&b, "mlp", 0);
        live_person other = live_person_of(5, 0);
        for (int f = 0; f < GIVEN; f++) {
            live_person_look(&other, floats[f], ids[f], actions[f]);
            actions[f][1] = (ids[f][0] + 3) % 5; /* the person's is (ids[0] + 2) % 5 */
        }
        config.spec = &model_case_spec;
        assert_ok(exphil_dataset_create(b.context, &config, &dataset, NULL));
        for (int g = 0; g < 20; g++) {
            const int at = g * (GIVEN / 20);
            assert_ok(exphil_dataset_add_rows(dataset, (uint64_t)g + 1, GIVEN / 20, floats[at], ids[at],
                                              actions[at], NULL));
        }
        for (uint64_t g = 1; g <= 8; g++)
            assert_ok(exphil_dataset_weight(dataset, g, 0, INT32_MIN, INT32_MAX, 0.5, NULL));
        b.config.dataset = dataset;
        b.config.share = i ? 0.9 : 0.1;
        b.config.updates = 20;
        b.sampling.batch = 10;
        exphil_live *live = live_bench_live(&b);
        exphil_dataset_destroy(dataset); /* what it had is kept */
        live_person person = live_person_of(1, 0);
        const live_plan plan = {.frames = 4000, .on = 1, .of = 1, .episode = 400};
        live_play(live, &person, &plan, &hash);
        assert_ok(exphil_live_settle(live, NULL));
        exphil_model *learnt = NULL;
        assert_ok(exphil_live_model(live, &learnt, NULL));
        kept[i] = live_agreement(learnt, 2, 1000);
        exphil_model_destroy(learnt);
        exphil_live_destroy(live);
        live_bench_free(&b);
    }
    print_message("as the person: %.2f with a share of 0.1, %.2f with 0.9\n", kept[0], kept[1]);
    assert_true(kept[0] < 0.1);
    assert_true(kept[1] > 0.8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_person_does_is_learnt),
        cmocka_unit_test(windows_are_learnt_from),
        cmocka_unit_test(what_is_let_pass_counts_where_it_is_approved),
        cmocka_unit_test(data_keep_their_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
