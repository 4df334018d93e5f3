/* Windows 10 and later. Nothing depends on the code page of the machine. */
#include "system.h"

#include "wide.h"

#include <stdlib.h>
#include <winsock2.h>
/* after winsock2.h, which wants to be before windows.h */
#include <shellapi.h>
#include <windows.h>

static void (*on_stop)(void);

wchar_t *wide_of(const char *text)
{
    int count = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, NULL, 0);
    wchar_t *wide = count > 0 ? malloc((size_t)count * sizeof *wide) : NULL;
    if (wide) MultiByteToWideChar(CP_UTF8, 0, text, -1, wide, count);
    return wide;
}

static char *narrow_of(const wchar_t *text)
{
    int count = WideCharToMultiByte(CP_UTF8, 0, text, -1, NULL, 0, NULL, NULL);
    char *narrow = count > 0 ? malloc((size_t)count) : NULL;
    if (narrow) WideCharToMultiByte(CP_UTF8, 0, text, -1, narrow, count, NULL, NULL);
    return narrow;
}

/* They live as long as the program does. */
void system_arguments(int *argc, char ***argv)
{
    int count = 0, taken = 0;
    wchar_t **wide = CommandLineToArgvW(GetCommandLineW(), &count);
    char **list = wide ? calloc((size_t)count + 1, sizeof *list) : NULL;
    while (list && taken < count && (list[taken] = narrow_of(wide[taken]))) taken++;
    if (list && taken == count) *argc = count, *argv = list;
    LocalFree(wide);
    SetConsoleOutputCP(CP_UTF8);
}

/* The pipe is a handle, and no number of C's streams. */
void system_hold_streams(void) {}

/* In a thread of its own. A console that is closed ends the program when this returns: it has the seconds that Windows gives it,
 * and main is done before. */
static BOOL WINAPI handle(DWORD event)
{
    on_stop();
    if (event != CTRL_C_EVENT && event != CTRL_BREAK_EVENT) Sleep(INFINITE);
    return TRUE;
}

void system_on_stop(void (*called)(void))
{
    on_stop = called;
    SetConsoleCtrlHandler(handle, TRUE);
}

int64_t system_now_ns(void)
{
    LARGE_INTEGER ticks, second;
    QueryPerformanceCounter(&ticks);
    QueryPerformanceFrequency(&second);
    return ticks.QuadPart / second.QuadPart * 1000000000 +
           ticks.QuadPart % second.QuadPart * 1000000000 / second.QuadPart;
}

FILE *system_open(const char *path, const char *mode)
{
    wchar_t *wide = wide_of(path), *how = wide_of(mode);
    FILE *file = wide && how ? _wfopen(wide, how) : NULL;
    free(wide), free(how);
    return file;
}

void system_socket_forget(void)
{
    WSASetLastError(0);
}

const char *system_socket_why(void)
{
    static char text[64];
    int why = WSAGetLastError();
    if (why == WSAEADDRINUSE) return "Address already in use";
    if (!why) return "no memory";
    snprintf(text, sizeof text, "Windows Sockets error %d", why);
    return text;
}
