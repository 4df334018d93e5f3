/* Whether a long command has been asked to end; stop_catch.c and stop_catch_windows.c hear who asks. See stop.h. */
#include "stop.h"

#include <signal.h>

static volatile sig_atomic_t number, holding;

bool stop_asked(void)
{
    return number != 0;
}

int stop_number(void)
{
    return number;
}

void stop_ask(int which)
{
    if (!number) number = which;
}

int32_t stop_cancel(void *user)
{
    (void)user;
    return number != 0 && !holding;
}

void stop_hold(bool held)
{
    holding = held;
}

int stop_status(void)
{
    return 128 + (number ? number : SIGINT);
}
