/* Where nothing can be trapped: the C library gives nobody its place, and the system has no filters. */
#include "test.h"
#include "traps.h"

#define NO_FILTER "system calls are refused by seccomp, which this system or its C library does not have"

atomic_llong trap_locks, trap_mallocs;

bool traps_count(void)
{
    return false;
}

void traps_watch(void) {}

bool traps_give_up_system_calls(void)
{
    return false;
}

void traps_call_the_system(void) {}

void assert_quiet_life(trap_life life, void *arg)
{
    (void)life;
    (void)arg;
    test_left_out(NO_FILTER);
}

void assert_guilty_life(trap_life life, void *arg)
{
    (void)life;
    (void)arg;
    test_left_out(NO_FILTER);
}
