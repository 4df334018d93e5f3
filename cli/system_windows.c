/* The program on Windows: its arguments, the console, libraries, time. See system.h. */
#include "system_windows.h"

#include "system.h"

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <stdlib.h>
#include <string.h>

/* ---- text ---------------------------------------------------------------------------------------------- */

char *narrow_text(const wchar_t *text)
{
    int bytes = WideCharToMultiByte(CP_UTF8, WC_ERR_INVALID_CHARS, text, -1, NULL, 0, NULL, NULL);
    char *narrow = bytes > 0 ? malloc((size_t)bytes) : NULL;
    errno = bytes > 0 ? ENOMEM : EILSEQ;
    if (narrow) (void)WideCharToMultiByte(CP_UTF8, 0, text, -1, narrow, bytes, NULL, NULL);
    return narrow;
}

void system_path(char *text)
{
    for (; *text; text++)
        if (*text == '\\') *text = '/';
}

size_t system_drive(const char *path)
{
    bool letter = (path[0] >= 'A' && path[0] <= 'Z') || (path[0] >= 'a' && path[0] <= 'z');
    return letter && path[1] == ':' && (path[2] == '/' || path[2] == '\\') ? 2 : 0;
}

/* ---- arguments ----------------------------------------------------------------------------------------- */

/* An argument of the command line as the C run-time of Windows cuts it ("Parsing C command-line arguments"): 2n backslashes
 * before a quote are n of them, one more makes the quote a letter; two quotes inside quotes are one. Returns what is behind. */
static const wchar_t *cut_argument(const wchar_t *at, wchar_t *to)
{
    bool quoted = false;
    for (; *at && (quoted || (*at != ' ' && *at != '\t'));) {
        size_t slashes = 0;
        while (at[slashes] == '\\') slashes++;
        bool quote = at[slashes] == '"';
        for (size_t i = 0; i < (quote ? slashes / 2 : slashes); i++) *to++ = '\\';
        at += slashes;
        if (quote && slashes % 2) {
            *to++ = *at++;
        } else if (quote) {
            if (quoted && at[1] == '"')
                *to++ = *at++;
            else
                quoted = !quoted;
            at++;
        } else if (*at && (quoted || (*at != ' ' && *at != '\t'))) {
            *to++ = *at++;
        }
    }
    *to = 0;
    while (*at == ' ' || *at == '\t') at++;
    return at;
}

/* The program's own name ends at the next quote, or at the next blank, and has no special signs. */
static const wchar_t *pass_program(const wchar_t *at)
{
    const wchar_t end = *at == '"' ? '"' : ' ';
    if (end == '"') at++;
    while (*at && *at != end && !(end == ' ' && *at == '\t')) at++;
    if (*at == '"') at++;
    while (*at == ' ' || *at == '\t') at++;
    return at;
}

/* As main was given them where there is no memory. */
static void take_arguments(int *argc, char ***argv)
{
    const wchar_t *at = GetCommandLineW();
    size_t most = wcslen(at) + 1;
    wchar_t *one = malloc(most * sizeof *one);
    char **all = malloc((most / 2 + 3) * sizeof *all);
    int count = 1;
    bool fine = one && all;
    if (fine) all[0] = (*argv)[0];
    for (at = pass_program(at); fine && *at; count += fine) {
        at = cut_argument(at, one);
        all[count] = narrow_text(one);
        fine = all[count] != NULL;
        if (!fine && errno == EILSEQ) {
            fprintf(stderr, "exphil: argument %d is no text: it holds half of a UTF-16 pair\n", count);
            exit(2);
        }
        if (fine) system_path(all[count]);
    }
    free(one);
    if (!fine) return;
    all[count] = NULL;
    *argc = count;
    *argv = all;
}

/* ---- standard streams ---------------------------------------------------------------------------------- */

static UINT pages_before;

static void restore_pages(void)
{
    if (pages_before) (void)SetConsoleOutputCP(pages_before);
}

/* What ends the program by Ctrl-C does not return to exit. The handler that was set last is asked first: this one is asked where
 * no other wants to go on. */
static BOOL WINAPI leave_pages(DWORD event)
{
    (void)event;
    restore_pages();
    return FALSE;
}

/* Numbers of standard streams that are closed stay theirs (the C run-time's own rule). */
void system_begin(int *argc, char ***argv)
{
    FILE *const streams[] = {stdin, stdout, stderr};
    for (int i = 0; i < 3; i++)
        if (_fileno(streams[i]) >= 0) (void)_setmode(_fileno(streams[i]), _O_BINARY);
    /* A library that cannot be loaded is refused in words, not shown in a window that waits for somebody. */
    (void)SetErrorMode(GetErrorMode() | SEM_FAILCRITICALERRORS);
    pages_before = GetConsoleOutputCP();
    if (pages_before && SetConsoleOutputCP(CP_UTF8)) {
        (void)atexit(restore_pages);
        (void)SetConsoleCtrlHandler(leave_pages, TRUE);
    }
    take_arguments(argc, argv);
}

/* Consoles before Windows 10 do not know escape sequences. */
bool system_terminal(FILE *stream)
{
    DWORD mode;
    HANDLE console = (HANDLE)_get_osfhandle(_fileno(stream));
    return GetConsoleMode(console, &mode) &&
           SetConsoleMode(console, mode | ENABLE_PROCESSED_OUTPUT | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
}

/* ---- libraries ----------------------------------------------------------------------------------------- */

const char system_library_end[] = ".dll";
static char library_why[512];

void *system_library(const char *path, bool everywhere)
{
    char reason[256];
    (void)everywhere;
    void *library = xph_library_open(path, reason, sizeof reason);
    if (!library) (void)snprintf(library_why, sizeof library_why, "%.200s: %s", path, reason);
    return library;
}

void *system_symbol(void *library, const char *name)
{
    void *symbol = NULL;
    (void)xph_library_find(library, name, &symbol);
    return symbol;
}

const char *system_library_why(void)
{
    return library_why;
}

/* A folder of the build would be one on any drive, which anybody may make: worlds lie beside the program. */
const char *system_worlds(void)
{
    static char folder[SYSTEM_PATH];
    const int64_t bytes = xph_environment("EXPHIL_WORLDS", folder, sizeof folder);
    if (bytes >= SYSTEM_PATH) return NULL;
    if (bytes <= 0 && !xph_library_folder(folder, sizeof folder)) return NULL;
    system_path(folder);
    return folder;
}

const char system_archive_opens[] = "archive_read_open_filename_w";

const void *system_archive_path(const char *path)
{
    static wchar_t *wide;
    xph_wide_free(wide);
    wide = wide_path(path);
    return wide;
}

/* ---- time ---------------------------------------------------------------------------------------------- */

int64_t system_clock_ns(void)
{
    LARGE_INTEGER rate, now;
    (void)QueryPerformanceFrequency(&rate);
    (void)QueryPerformanceCounter(&now);
    return now.QuadPart / rate.QuadPart * 1000000000 +
           now.QuadPart % rate.QuadPart * 1000000000 / rate.QuadPart;
}

bool system_date(int64_t seconds, bool utc, struct tm *date)
{
    const __time64_t time = seconds;
    return (utc ? _gmtime64_s(date, &time) : _localtime64_s(date, &time)) == 0;
}
