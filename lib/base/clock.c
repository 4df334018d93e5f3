/* Monotonic time. On Linux this is read in user space; it is not a system call. */
#define _GNU_SOURCE
#include "base/base.h"

#include <time.h>

int64_t xph_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void xph_sleep(int64_t ns)
{
    const struct timespec pause = {.tv_sec = 0, .tv_nsec = (long)ns};
    (void)nanosleep(&pause, NULL);
}
