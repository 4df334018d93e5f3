/* macOS pins no thread to a core, and real-time priority is left alone. See harness.h. */
#include "harness.h"

#include <unistd.h>

int bench_cores(void)
{
    const long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? (int)count : 1;
}

int bench_core(int i)
{
    return i < bench_cores() ? i : -1;
}

bench_place bench_take_place(bool pin, bool fifo)
{
    (void)pin, (void)fifo;
    return bench_where();
}

bench_place bench_where(void)
{
    return (bench_place){-1, false};
}

void bench_stay(bench_place place)
{
    (void)place;
}

void bench_roam(void) {}

void bench_leave_place(void) {}
