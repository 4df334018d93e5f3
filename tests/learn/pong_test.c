/* Pong without a console is the console's: the same bytes after every frame, from every state of the generator, against the
 * game's own player and with two; seats see the field from their own side. */
#include "test.h"

#include "learn/pong.h"

#include <exphil/learn.h>

#include <stdlib.h>

/* the original, which has one game */
#include "../../examples/pong/pong.c"

enum { FRAMES = 20000 };

static void compare(const xph_pong *g, int frame)
{
    const uint8_t original[] = {pong.pause,
                                pong.ball_x,
                                pong.ball_y,
                                (uint8_t)pong.speed_x,
                                (uint8_t)pong.speed_y,
                                pong.paddle[0],
                                pong.paddle[1],
                                pong.rally,
                                pong.random};
    const uint8_t own[] = {
        g->pause,     g->ball_x, g->ball_y, (uint8_t)g->speed_x, (uint8_t)g->speed_y, g->paddle[0],
        g->paddle[1], g->rally,  g->random};
    if (memcmp(original, own, sizeof own) != 0) fail_msg("frame %d is another", frame);
}

/* The console's matches end at 11: scores are set back before that, so that the games go on alike. */
static void play(uint8_t random, bool two)
{
    xph_rng rng = {.seed = random, .stream = XPH_RNG_TEST};
    xph_pong g;
    int points[2] = {0, 0};
    pong_start();
    pong.random = random;
    pong.score[0] = pong.score[1] = 0;
    serve(SERVE_PAUSE);
    xph_pong_start(&g, random);
    compare(&g, -1);
    for (int frame = 0; frame < FRAMES; frame++) {
        uint8_t left = (uint8_t)xph_rng_below(&rng, 3), right = (uint8_t)xph_rng_below(&rng, 3);
        if (two && frame == 0) right = 1;
        /* holds its direction for a while, and often meets the ball */
        if (frame % 3) left = g.ball_y + 3 < g.paddle[0] + 12 ? 1 : 2;
        pong.buttons[0] = left;
        pong.buttons[1] = two ? right : 0;
        pong_step();
        for (int p = 0; p < 2; p++) points[p] += pong.score[p];
        pong.score[0] = pong.score[1] = 0;
        xph_pong seen = g;
        seen.frame++;
        xph_pong_step(&g, left, two ? right : xph_pong_opponent(&seen));
        for (int p = 0; p < 2; p++) points[p] -= g.score[p];
        g.score[0] = g.score[1] = 0;
        compare(&g, frame);
        assert_true(points[0] == 0 && points[1] == 0);
    }
}

static void the_bytes_are_the_console_s(void **unused)
{
    for (int random = 1; random < 256; random += 23) {
        play((uint8_t)random, false);
        play((uint8_t)random, true);
    }
}

static void seats_see_their_own_side(void **unused)
{
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_world world = {0};
    float rows[2][7], reward[2];
    int32_t actions[2] = {1, 2};
    uint8_t end = 0;
    int64_t ended = 0, frames = 0;
    if (exphil_world_create(context, "pong-two", 1, &world, NULL) < 0) fail();
    assert_int_equal(world.seats, 2);
    assert_int_equal(world.reset(world.user, 0, 5, rows[0], NULL), 0);
    for (; frames < 3000; frames++) {
        assert_true(rows[0][0] == -rows[1][0] && rows[0][2] == -rows[1][2]);
        assert_true(rows[0][4] == rows[1][5] && rows[0][5] == rows[1][4] && rows[0][1] == rows[1][1]);
        actions[0] = frames % 50 < 25 ? 1 : 2;
        actions[1] = frames % 34 < 17 ? 1 : 2;
        assert_int_equal(world.step(world.user, 0, 1, actions, rows[0], NULL, reward, &end), 0);
        assert_true(reward[0] == -reward[1]);
        if (end != EXPHIL_GOES_ON) break;
    }
    ended = end;
    assert_true(ended == EXPHIL_OVER || frames == 3000);
    exphil_world_destroy(&world);
    exphil_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bytes_are_the_console_s),
        cmocka_unit_test(seats_see_their_own_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
