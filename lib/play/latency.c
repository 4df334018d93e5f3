/* Latency of steps in half-octave buckets: constant memory; the caller reads the clock. */
#include "play/play.h"

/* Upper edge of bucket i, 64 * 2^((i+1)/2), rounded up: the durations below it are the integers below the exact edge.
 * Whole octaves are exact; between them stands 64 * sqrt(2) * 2^24 = 1518500249.988..., shifted down. */
static int64_t edge_of(int i)
{
    int octaves = (i + 1) / 2;
    if ((i + 1) % 2 == 0) return (int64_t)64 << octaves;
    const uint64_t root = 388736063996u; /* 64 * sqrt(2) * 2^32, rounded down */
    return (int64_t)(root >> (32 - octaves)) + 1;
}

void xph_latency_init(xph_latency *latency, int64_t deadline_ns)
{
    memset(latency, 0, sizeof *latency);
    latency->deadline_ns = deadline_ns;
    for (int i = 0; i < EXPHIL_LATENCY_BUCKETS; i++)
        latency->edge[i] = edge_of(i); /* the last: 64 * 2^32 ns, 275 s */
}

/* First bucket whose upper edge lies above ns: octave k from 64 ns on is buckets 2 k and 2 k + 1. */
static int bucket_of(const xph_latency *latency, int64_t ns)
{
    if (ns < 64) return 0;
    int even = 2 * (57 - __builtin_clzll((unsigned long long)ns));
    if (even >= EXPHIL_LATENCY_BUCKETS) return EXPHIL_LATENCY_BUCKETS - 1;
    return even + (ns >= latency->edge[even]);
}

void xph_latency_add(xph_latency *latency, int64_t ns)
{
    latency->count[bucket_of(latency, ns)]++;
    latency->steps++;
    latency->missed += ns > latency->deadline_ns;
    latency->last_ns = ns;
    if (ns > latency->max_ns) latency->max_ns = ns;
}

/* Upper edge of the bucket that holds the step below which so many of a hundred lie. */
int64_t xph_latency_quantile(const xph_latency *latency, uint64_t percent)
{
    uint64_t sum = 0, wanted = latency->steps / 100 * percent + (latency->steps % 100 * percent + 99) / 100;
    if (latency->steps == 0) return 0;
    for (int i = 0; i < EXPHIL_LATENCY_BUCKETS; i++) {
        sum += latency->count[i];
        if (sum >= wanted) return latency->edge[i];
    }
    return latency->edge[EXPHIL_LATENCY_BUCKETS - 1];
}
