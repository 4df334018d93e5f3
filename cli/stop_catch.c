/* Signals that end a long command: POSIX. See stop.h. */
#include "stop.h"

#include <signal.h>
#include <stddef.h>

static const int caught[] = {SIGINT, SIGTERM, SIGHUP};
enum { CAUGHT = sizeof caught / sizeof caught[0] };

static void handle(int which, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART}, before;
    sigemptyset(&action.sa_mask);
    if (which == SIGHUP && sigaction(which, NULL, &before) == 0 && before.sa_handler == SIG_IGN) return;
    sigaction(which, &action, NULL);
}

/* The next one, whichever it is, does what it does by default. */
static void on_signal(int which)
{
    stop_ask(which);
    for (size_t i = 0; i < CAUGHT; i++) handle(caught[i], SIG_DFL);
}

void stop_catch(void)
{
    for (size_t i = 0; i < CAUGHT; i++) handle(caught[i], on_signal);
    handle(SIGPIPE, SIG_IGN);
    handle(SIGXFSZ, SIG_IGN);
}

const char *stop_name(void)
{
    return stop_number() == SIGTERM ? "SIGTERM" : stop_number() == SIGHUP ? "SIGHUP" : "Ctrl-C";
}
