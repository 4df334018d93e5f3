/* Cores and priority: see harness.h. */
#include "harness.h"

#include <sched.h>

static cpu_set_t all_cores;
static bool placed;
static bench_place taken = {-1, false};

int bench_core(int i)
{
    if (!placed) placed = sched_getaffinity(0, sizeof all_cores, &all_cores) == 0;
    for (size_t core = 0; placed && core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, &all_cores) && i-- == 0) return (int)core;
    return -1;
}

int bench_cores(void)
{
    int count = 0;
    while (bench_core(count) >= 0) count++;
    return count;
}

static bool pin_to(int core)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)core, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0;
}

bench_place bench_take_place(bool pin, bool fifo)
{
    bench_place place = {-1, false};
    if (sched_getaffinity(0, sizeof all_cores, &all_cores) != 0) return place;
    placed = true;
    /* The last core: interrupts like the first one. */
    for (size_t i = 0; pin && i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &all_cores)) place.core = (int)i;
    if (place.core >= 0 && !pin_to(place.core)) place.core = -1;
    struct sched_param parameter = {.sched_priority = 50};
    place.fifo =
        sched_getscheduler(0) == SCHED_FIFO || (fifo && sched_setscheduler(0, SCHED_FIFO, &parameter) == 0);
    taken = place;
    return place;
}

bench_place bench_where(void)
{
    return taken;
}

void bench_stay(bench_place place)
{
    if (place.core >= 0) (void)pin_to(place.core);
}

void bench_roam(void)
{
    if (placed) (void)sched_setaffinity(0, sizeof all_cores, &all_cores);
}

void bench_leave_place(void)
{
    struct sched_param parameter = {.sched_priority = 0};
    (void)sched_setscheduler(0, SCHED_OTHER, &parameter);
    if (placed) (void)sched_setaffinity(0, sizeof all_cores, &all_cores);
}
