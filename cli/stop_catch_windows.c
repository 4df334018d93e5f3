/* What ends a long command on Windows: Ctrl-C, Ctrl-Break, which is what a program sends that wants an end, and the console that
 * is closed. See stop.h. */
#include "stop.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

enum { HANGUP = 1, INTERRUPT = 2, TERMINATE = 15 }; /* as POSIX numbers them */

/* Called on a thread of its own. After a console has been closed, or with the end of a session, the process is ended when this
 * returns, and in any case after some seconds ("HandlerRoutine callback function"): it stays, while the command keeps what it
 * has and ends. */
static BOOL WINAPI on_event(DWORD event)
{
    const bool first = !stop_asked();
    stop_ask(event == CTRL_C_EVENT ? INTERRUPT : event == CTRL_CLOSE_EVENT ? HANGUP : TERMINATE);
    if (event == CTRL_C_EVENT || event == CTRL_BREAK_EVENT) return first; /* FALSE: it ends at once */
    Sleep(INFINITE);
    return TRUE;
}

void stop_catch(void)
{
    (void)SetConsoleCtrlHandler(NULL, FALSE); /* else Ctrl-C may be off, as what started this had it */
    (void)SetConsoleCtrlHandler(on_event, TRUE);
}

const char *stop_name(void)
{
    return stop_number() == TERMINATE ? "Ctrl-Break or the end of the session"
           : stop_number() == HANGUP  ? "the end of the console"
                                      : "Ctrl-C";
}
