/* Latency of steps in half-octave buckets: constant memory, no clock of its own. */
#include "play/play.h"

void xph_latency_init(xph_latency *latency, int64_t deadline_ns)
{
    memset(latency, 0, sizeof *latency);
    latency->deadline_ns = deadline_ns;
    double edge = 64.0;
    for (int i = 0; i < EXPHIL_LATENCY_BUCKETS; i++) { /* the last edge is 64 * 2^32 ns, about 275 s */
        edge *= 1.41421356237309504880;
        latency->edge[i] = (int64_t)edge;
    }
}

void xph_latency_add(xph_latency *latency, int64_t ns)
{
    int low = 0, high = EXPHIL_LATENCY_BUCKETS - 1;
    while (low < high) { /* first bucket whose upper edge lies above ns */
        int middle = (low + high) / 2;
        if (ns < latency->edge[middle]) high = middle;
        else low = middle + 1;
    }
    latency->count[low]++;
    latency->steps++;
    latency->missed += ns > latency->deadline_ns;
    latency->last_ns = ns;
    if (ns > latency->max_ns) latency->max_ns = ns;
}

int64_t xph_latency_quantile(const xph_latency *latency, double share)
{
    double wanted = share * (double)latency->steps, sum = 0.0;
    if (latency->steps == 0) return 0;
    for (int i = 0; i < EXPHIL_LATENCY_BUCKETS; i++) {
        sum += (double)latency->count[i];
        if (sum >= wanted) return latency->edge[i];
    }
    return latency->edge[EXPHIL_LATENCY_BUCKETS - 1];
}
