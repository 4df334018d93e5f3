/* What ends a long command on Windows: Ctrl-C, Ctrl-Break, which is what a program sends that wants an end, and the console that
 * is closed. See stop.h. */
#include "stop.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <signal.h>

enum { HANGUP = 1, INTERRUPT = 2, TERMINATE = 15 }; /* as POSIX numbers them */
static volatile sig_atomic_t number, holding;

/* Called on a thread of its own. After a console has been closed, or with the end of a session, the process is ended when this
 * returns, and in any case after some seconds ("HandlerRoutine callback function"): it stays, while the command keeps what it
 * has and ends. */
static BOOL WINAPI on_event(DWORD event)
{
    const bool first = !number;
    number = event == CTRL_C_EVENT ? INTERRUPT : event == CTRL_CLOSE_EVENT ? HANGUP : TERMINATE;
    if (event == CTRL_C_EVENT || event == CTRL_BREAK_EVENT) return first; /* FALSE: it ends at once */
    Sleep(INFINITE);
    return TRUE;
}

void stop_catch(void)
{
    (void)SetConsoleCtrlHandler(NULL, FALSE); /* else Ctrl-C may be off, as what started this had it */
    (void)SetConsoleCtrlHandler(on_event, TRUE);
}

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
    return 128 + (number ? number : INTERRUPT);
}

const char *stop_name(void)
{
    return number == TERMINATE ? "Ctrl-Break or the end of the session"
           : number == HANGUP  ? "the end of the console"
                               : "Ctrl-C";
}
