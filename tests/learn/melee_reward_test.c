/* What a frame of Melee is worth: by hand, of both players, and of every real replay as a script of its own counts it. */
#include "game_case.h"
#include "model_case.h"
#include "test_places.h"

#include <exphil/learn.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static exphil_melee_frame frame_of(int32_t number)
{
    exphil_melee_frame f = EXPHIL_MELEE_FRAME_INIT;
    f.frame = number;
    f.stage = 32;
    f.own_port = 1;
    f.opponent_port = 2;
    for (int i = 0; i < 2; i++)
        f.player[i] = (exphil_melee_character){.present = 1,
                                               .known = EXPHIL_MELEE_HAS_ALL,
                                               .x = i ? 30.0f : -30.0f,
                                               .action_state = 14,
                                               .stocks = 4};
    return f;
}

static double reward(const exphil_melee_reward_config *config, const exphil_melee_frame *a,
                     const exphil_melee_frame *b)
{
    float value = 7.0f, other = 7.0f;
    exphil_melee_frame x = *a, y = *b;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_melee_reward(config, a, b, &value, &error) < 0) fail_msg("%s", error.message);
    x.own_port = y.own_port = a->opponent_port;
    x.opponent_port = y.opponent_port = a->own_port;
    assert_ok(exphil_melee_reward(config, &x, &y, &other, NULL));
    assert_true(value == -other);
    return (double)value;
}

static void terms_by_hand(void **unused)
{
    exphil_melee_reward_config c = EXPHIL_MELEE_REWARD_CONFIG_INIT;
    exphil_melee_frame a = frame_of(10), b = frame_of(11);
    assert_true(reward(NULL, &a, &b) == 0.0);
    b.player[1].percent = 12.0f;
    assert_true(fabs(reward(NULL, &a, &b) - 0.12) < 1e-7);
    b.player[0].action_state = 4; /* dies */
    assert_true(fabs(reward(NULL, &a, &b) + 0.88) < 1e-7);
    a.player[0].action_state = 4; /* was dying already */
    assert_true(fabs(reward(NULL, &a, &b) - 0.12) < 1e-7);
    a = frame_of(10), b = frame_of(11);
    a.player[1].percent = 90.0f; /* a new stock takes percent away, which is no gain */
    assert_true(reward(NULL, &a, &b) == 0.0);
    a = frame_of(10), b = frame_of(11);
    a.follower[1] = b.follower[1] = a.player[1];
    b.follower[1].percent = 10.0f;
    assert_true(fabs(reward(NULL, &a, &b) - 0.05) < 1e-7);
    c.follower = -1.0;
    assert_true(reward(&c, &a, &b) == 0.0);
    b.frame = 12; /* a gap */
    assert_true(reward(NULL, &a, &b) == 0.0);
    /* who catches the ledge beside somebody who can be hit */
    c = (exphil_melee_reward_config)EXPHIL_MELEE_REWARD_CONFIG_INIT;
    c.ledge = 0.25;
    a = frame_of(10), b = frame_of(11);
    b.player[0].x = -90.0f;
    b.player[0].action_state = 252;
    assert_true(reward(&c, &a, &b) == -0.25);
    b.player[1].hurtbox = 1;
    assert_true(reward(&c, &a, &b) == 0.0);
    b.player[1].hurtbox = 0;
    b.player[1].x = 95.0f;
    assert_true(reward(&c, &a, &b) == 0.0);
    /* far off stage */
    c = (exphil_melee_reward_config)EXPHIL_MELEE_REWARD_CONFIG_INIT;
    c.stalling = 6.0;
    a = frame_of(10), b = frame_of(11);
    b.player[1].y = 81.0f;
    assert_true(fabs(reward(&c, &a, &b) - 0.1) < 1e-7);
    b.player[1].y = 79.0f;
    assert_true(reward(&c, &a, &b) == 0.0);
    /* towards the other */
    c = (exphil_melee_reward_config)EXPHIL_MELEE_REWARD_CONFIG_INIT;
    c.approach = 0.1;
    a = frame_of(10), b = frame_of(11);
    b.player[0].x = -28.0f;
    assert_true(fabs(reward(&c, &a, &b) - 0.2) < 1e-7);
    b.player[1].x = 31.0f;
    assert_true(fabs(reward(&c, &a, &b) - 0.3) < 1e-7);
}

static void what_is_wrong_is_refused(void **unused)
{
    exphil_melee_reward_config c = EXPHIL_MELEE_REWARD_CONFIG_INIT;
    exphil_melee_frame a = frame_of(10), b = frame_of(11);
    exphil_error error = EXPHIL_ERROR_INIT;
    float value = 3.0f;
    assert_int_equal(exphil_melee_reward(NULL, NULL, &b, &value, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_melee_reward(NULL, &a, &b, NULL, &error), EXPHIL_E_INVALID);
    b.stage = 31;
    assert_int_equal(exphil_melee_reward(NULL, &a, &b, &value, &error), EXPHIL_E_INVALID);
    b = frame_of(11);
    b.own_port = 9;
    assert_int_equal(exphil_melee_reward(NULL, &a, &b, &value, &error), EXPHIL_E_INVALID);
    b = frame_of(11);
    c.damage = (double)NAN;
    assert_int_equal(exphil_melee_reward(&c, &a, &b, &value, &error), EXPHIL_E_INVALID);
    assert_non_null(strstr(error.message, "damage"));
    b.player[0].percent = INFINITY;
    assert_int_equal(exphil_melee_reward(NULL, &a, &b, &value, &error), EXPHIL_E_NUMERIC);
    b = frame_of(11);
    b.struct_size = 3;
    assert_int_equal(exphil_melee_reward(NULL, &a, &b, &value, &error), EXPHIL_E_INVALID);
    assert_true(value == 3.0f);
}

/* ---- every replay ------------------------------------------------------------------------------------------------------ */

typedef struct listing {
    FILE *list;
    char paths[600][600];
    int own[600], other[600], count;
} listing;

static void note(const char *path, exphil_slp *slp, void *arg)
{
    listing *l = arg;
    exphil_slp_info info = EXPHIL_SLP_INFO_INIT;
    int ports[4], count = 0;
    assert_ok(exphil_slp_query(slp, &info, NULL));
    for (int p = 0; p < 4; p++)
        if (info.ports[p].type < 3) ports[count++] = p + 1;
    if (count != 2 || l->count == 600 || exphil_slp_frame_count(slp) < 2) return;
    snprintf(l->paths[l->count], sizeof l->paths[0], "%s", path);
    l->own[l->count] = ports[0];
    l->other[l->count] = ports[1];
    fprintf(l->list, "%s %d %d\n", path, ports[0], ports[1]);
    l->count++;
}

static int64_t compare(exphil_slp *slp, int own, int other, const exphil_melee_reward_config *config,
                       FILE *said, const char *path, double *stocks)
{
    int64_t frames = exphil_slp_frame_count(slp);
    exphil_melee_frame before = EXPHIL_MELEE_FRAME_INIT, now = EXPHIL_MELEE_FRAME_INIT;
    bool there = false;
    for (int64_t i = 0; i < frames; i++) {
        unsigned expected;
        float value = 0.0f, wanted;
        bool was = there;
        before = now;
        now = (exphil_melee_frame)EXPHIL_MELEE_FRAME_INIT;
        there = exphil_slp_melee_frame(slp, i, own, other, &now, NULL) >= 0;
        if (i == 0) continue;
        assert_int_equal(fscanf(said, "%u", &expected), 1);
        memcpy(&wanted, &expected, sizeof wanted);
        if (!was || !there) continue; /* the own character is not there: there is no frame to see */
        exphil_error error = EXPHIL_ERROR_INIT;
        if (exphil_melee_reward(config, &before, &now, &value, &error) < 0)
            fail_msg("%s: %s", path, error.message);
        if (value != wanted)
            fail_msg("%s, frame %d: %.9g, counted %.9g", path, (int)now.frame, (double)value, (double)wanted);
        *stocks += (double)value;
    }
    return frames;
}

/* A game's sum of what stocks alone are worth is the stocks that were lost, but for one that is lost in the last frames and not
 * counted down any more. */
static void as_a_script_counts(void **state)
{
    const char *reader = test_replay("../slp_reference.py");
    static listing l;
    char list[512], command[2048];
    int64_t frames = 0;
    if (!reader || !test_exists(reader))
        test_left_out("there is no ../shared/slp_reference.py to count with");
    if (!test_has_command("python3")) test_left_out("there is no python3 to count with");
    snprintf(list, sizeof list, "%s", test_path("rewards"));
    l.list = fopen(list, "w");
    assert_non_null(l.list);
    assert_true(game_each_real(note, &l));
    fclose(l.list);
    snprintf(command, sizeof command, "python3 \"%s\" \"%s\" \"%s\"",
             EXPHIL_SOURCE_DIR "/tests/support/reward_reference.py", reader, list);
    FILE *said = test_command(command);
    assert_non_null(said);
    int exact = 0;
    for (int i = 0; i < l.count; i++) {
        exphil_slp *slp = NULL;
        exphil_melee_reward_config stocks = EXPHIL_MELEE_REWARD_CONFIG_INIT,
                                   all = EXPHIL_MELEE_REWARD_CONFIG_INIT;
        int own, other;
        double sum = 0.0, of_stocks = 0.0;
        float value;
        all.stock = 2.0, all.damage = 0.02, all.follower = 0.25, all.ledge = 0.3, all.stalling = 0.6;
        all.stalling_distance = 12.0, all.approach = 0.001;
        assert_ok(exphil_slp_open(context, l.paths[i], NULL, &slp, NULL));
        assert_int_equal(fscanf(said, "%d %d", &own, &other), 2);
        frames += compare(slp, l.own[i], l.other[i], NULL, said, l.paths[i], &sum);
        compare(slp, l.own[i], l.other[i], &all, said, l.paths[i], &sum);
        stocks.damage = stocks.follower = -1.0;
        for (int64_t f = 1; f < exphil_slp_frame_count(slp); f++) {
            exphil_melee_frame a = EXPHIL_MELEE_FRAME_INIT, b = EXPHIL_MELEE_FRAME_INIT;
            if (exphil_slp_melee_frame(slp, f - 1, l.own[i], l.other[i], &a, NULL) < 0 ||
                exphil_slp_melee_frame(slp, f, l.own[i], l.other[i], &b, NULL) < 0)
                continue;
            assert_ok(exphil_melee_reward(&stocks, &a, &b, &value, NULL));
            of_stocks += (double)value;
        }
        exact += of_stocks == (double)(other - own);
        if (!(fabs(of_stocks - (double)(other - own)) <= 1.0))
            fail_msg("%s: stocks are worth %g, lost were %d and %d", l.paths[i], of_stocks, own, other);
        exphil_slp_destroy(slp);
    }
    assert_int_equal(test_command_end(said), 0);
    assert_true(l.count >= 10);
    print_message("%d games, %lld frames: the same rewards; stocks exact in %d\n", l.count, (long long)frames,
                  exact);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(terms_by_hand),
        cmocka_unit_test(what_is_wrong_is_refused),
        cmocka_unit_test(as_a_script_counts),
    };
    return cmocka_run_group_tests(tests, context_open, context_close);
}
