/* Cores on Windows, of the first group of processors; real-time priority is left alone. See harness.h. */
#include "harness.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

static DWORD_PTR all_cores;
static bench_place taken = {-1, false};

static DWORD_PTR cores(void)
{
    DWORD_PTR system;
    if (!all_cores && !GetProcessAffinityMask(GetCurrentProcess(), &all_cores, &system)) all_cores = 1;
    return all_cores;
}

int bench_core(int i)
{
    for (int core = 0; core < (int)(8 * sizeof(DWORD_PTR)); core++)
        if (cores() >> core & 1 && i-- == 0) return core;
    return -1;
}

int bench_cores(void)
{
    int count = 0;
    while (bench_core(count) >= 0) count++;
    return count;
}

bench_place bench_take_place(bool pin, bool fifo)
{
    (void)fifo;
    /* The last core: interrupts like the first one. */
    bench_place place = {pin ? bench_core(bench_cores() - 1) : -1, false};
    bench_stay(place);
    taken = place;
    return place;
}

bench_place bench_where(void)
{
    return taken;
}

void bench_stay(bench_place place)
{
    if (place.core >= 0) (void)SetThreadAffinityMask(GetCurrentThread(), (DWORD_PTR)1 << place.core);
}

void bench_roam(void)
{
    (void)SetThreadAffinityMask(GetCurrentThread(), cores());
}

void bench_leave_place(void)
{
    bench_roam();
}
