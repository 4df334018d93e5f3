/* Advantages against their definition, summed forward, for delays, ends of both kinds and the end of a chunk. */
#include "test.h"

#include "learn/returns.h"

#include <exphil/learn.h>

#include <math.h>

enum { T = 40, DELAY_MOST = 5, ROUNDS = 300 };

typedef struct played {
    float reward[T + DELAY_MOST], cut_off[T + DELAY_MOST], value[T + 1];
    uint8_t end[T + DELAY_MOST];
} played;

static void draw(played *p, uint64_t seed, uint64_t between)
{
    xph_rng rng = {.seed = seed, .stream = XPH_RNG_TEST};
    for (int f = 0; f < T + DELAY_MOST; f++) {
        p->reward[f] = (float)(xph_rng_double(&rng) - 0.5);
        p->end[f] = xph_rng_below(&rng, between) ? EXPHIL_GOES_ON : (uint8_t)(1 + xph_rng_below(&rng, 2));
        p->cut_off[f] = p->end[f] == EXPHIL_CUT_OFF ? (float)xph_rng_double(&rng) : NAN;
    }
    for (int t = 0; t <= T; t++) p->value[t] = (float)xph_rng_double(&rng);
}

/* The sum of (gamma lambda)^k delta_{t+k} until the episode or the chunk ends. */
static double by_definition(const played *p, int t, int delay, double gamma, double lambda)
{
    double sum = 0.0, weight = 1.0;
    for (; t < T; t++, weight *= gamma * lambda) {
        int f = t + delay;
        double next = p->end[f] == EXPHIL_OVER                ? 0.0
                      : p->end[f] == EXPHIL_CUT_OFF && !delay ? (double)p->cut_off[f]
                                                              : (double)p->value[t + 1];
        sum += weight * ((double)p->reward[f] + gamma * next - (double)p->value[t]);
        if (p->end[f] != EXPHIL_GOES_ON) break;
    }
    return sum;
}

static void advantages_are_the_definition(void **unused)
{
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        int delay = (int)(seed % (DELAY_MOST + 1));
        double gamma = 0.9 + 0.01 * (double)(seed % 10), lambda = 0.8 + 0.02 * (double)(seed % 11);
        double advantage[T], target[T];
        uint8_t acts[T];
        played p;
        draw(&p, seed, 3 + seed % 20);
        const xph_lane lane = {T, delay, p.reward, p.end, p.value, p.cut_off};
        xph_returns(&lane, gamma, lambda, advantage, target, acts);
        for (int t = 0; t < T; t++) {
            bool ended = false;
            for (int f = t; f < t + delay; f++) ended |= p.end[f] != EXPHIL_GOES_ON;
            assert_int_equal(acts[t], !ended);
            double wanted = ended ? 0.0 : by_definition(&p, t, delay, gamma, lambda);
            assert_true(fabs(advantage[t] - wanted) < 1e-12);
            assert_true(fabs(target[t] - wanted - (double)p.value[t]) < 1e-12);
        }
    }
}

/* With lambda 1 and nothing cut off the target is the return of what was played. */
static void targets_are_returns(void **unused)
{
    played p;
    double advantage[T], target[T], whole[T];
    uint8_t acts[T];
    draw(&p, 7, 1000000);
    for (int f = 0; f < T + DELAY_MOST; f++) p.end[f] = EXPHIL_GOES_ON;
    p.end[T - 1] = EXPHIL_OVER;
    const xph_lane lane = {T, 0, p.reward, p.end, p.value, p.cut_off};
    xph_returns(&lane, 0.97, 1.0, advantage, target, acts);
    xph_whole_returns(p.reward, T, 0.97, 0.0, whole);
    for (int t = 0; t < T; t++) assert_true(fabs(target[t] - whole[t]) < 1e-12);
    xph_whole_returns(p.reward, T, 0.97, 2.0, whole);
    assert_true(fabs(whole[T - 1] - (double)p.reward[T - 1] - 1.94) < 1e-12);
}

static void half_lives(void **unused)
{
    assert_true(fabs(xph_discount(240.0) - 0.997116) < 1e-6);
    assert_true(fabs(xph_discount(480.0) - 0.998557) < 1e-6);
    assert_true(fabs(pow(xph_discount(33.0), 33.0) - 0.5) < 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(advantages_are_the_definition),
        cmocka_unit_test(targets_are_returns),
        cmocka_unit_test(half_lives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
