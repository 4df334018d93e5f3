/* Times of steps: buckets, quantiles, and what a session counts. */
#include "play_case.h"

#include "play/play.h"

#include <math.h>

static void buckets_are_half_octaves(void **state)
{
    for (int i = 0; i < EXPHIL_LATENCY_BUCKETS; i++) {
        long double low = 64.0L * powl(2.0L, i / 2.0L), high = 64.0L * powl(2.0L, (i + 1) / 2.0L);
        const int64_t inside[] = {(int64_t)ceill(low - 1e-9L), (int64_t)ceill(high - 1e-9L) - 1};
        for (int k = 0; k < 2; k++) {
            xph_latency latency;
            xph_latency_init(&latency, 1000);
            xph_latency_add(&latency, inside[k]);
            for (int j = 0; j < EXPHIL_LATENCY_BUCKETS; j++) assert_int_equal(latency.count[j], j == i);
            assert_int_equal(latency.missed, inside[k] > 1000);
        }
    }
    xph_latency latency;
    xph_latency_init(&latency, 1000);
    xph_latency_add(&latency, 0);
    xph_latency_add(&latency, 63);
    xph_latency_add(&latency, INT64_MAX);
    assert_int_equal(latency.count[0], 2);
    assert_int_equal(latency.count[EXPHIL_LATENCY_BUCKETS - 1], 1);
    assert_int_equal(latency.max_ns, INT64_MAX);
}

static void quantiles_are_upper_edges(void **state)
{
    xph_latency latency;
    xph_latency_init(&latency, 1 << 20);
    assert_int_equal(xph_latency_quantile(&latency, 50), 0);
    for (int i = 0; i < 98; i++) xph_latency_add(&latency, 1024); /* 64 * 2^4: bucket 8, up to 1449 */
    xph_latency_add(&latency, 100000);
    xph_latency_add(&latency, 5000000);
    assert_int_equal(xph_latency_quantile(&latency, 50), 1449);
    assert_int_equal(xph_latency_quantile(&latency, 98), 1449);
    assert_int_equal(xph_latency_quantile(&latency, 99), 131072); /* 100000 lies in [92682, 131072) */
    assert_true(xph_latency_quantile(&latency, 100) > 5000000);
    assert_int_equal(latency.missed, 1);
}

static void steps_are_timed(void **state)
{
    exphil_session_config strict = EXPHIL_SESSION_CONFIG_INIT, lax = strict;
    strict.deadline_ns = 1;
    lax.deadline_ns = INT64_MAX;
    play_pair p = play_pair_make("gru", 1, strict, lax, 50);
    assert_true(play_same_run(&p, 50, true));
    exphil_session_info a = EXPHIL_SESSION_INFO_INIT, b = EXPHIL_SESSION_INFO_INIT;
    assert_ok(exphil_session_query(p.a, &a, NULL));
    assert_ok(exphil_session_query(p.b, &b, NULL));
    assert_int_equal(a.steps, 50);
    uint64_t sum = 0;
    for (int i = 0; i < EXPHIL_LATENCY_BUCKETS; i++) sum += a.latency[i];
    assert_int_equal(sum, 50);
    /* A coarse clock may see a step of 0 ns, in the first bucket. */
    assert_in_range(a.missed, sum - a.latency[0], sum);
    assert_int_equal(b.missed, 0);
    assert_true(a.p50_ns > 0 && a.p50_ns <= a.p99_ns && a.last_ns >= 0 && a.last_ns <= a.max_ns);
    assert_true(a.p99_ns <= 2 * a.max_ns + 64);
    assert_int_equal(a.streams, 1);
    assert_int_equal(a.float_count, 13);
    assert_int_equal(a.id_count, 2);
    assert_int_equal(a.head_count, PLAY_HEADS);
    assert_int_equal(a.logit_count, PLAY_LOGITS);
    assert_int_equal(a.state_bytes, exphil_session_state_size(p.a));
    play_pair_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buckets_are_half_octaves),
        cmocka_unit_test(quantiles_are_upper_edges),
        cmocka_unit_test(steps_are_timed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
