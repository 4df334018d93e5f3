/* The Windows half of system.h: Windows 10 and later. Its own strings are UTF-16; nothing depends on the code page of the
 * machine. Links shell32 beside what every program has. */
#ifndef EXAMPLES_SYSTEM_WINDOWS_H
#define EXAMPLES_SYSTEM_WINDOWS_H

#ifndef WIN32_LEAN_AND_MEAN
#  define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>
/* after windows.h */
#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <shellapi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* NULL: no memory, or text is not in UTF-8. The caller frees. */
static inline wchar_t *system_wide(const char *text)
{
    int count = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, NULL, 0);
    wchar_t *wide = count > 0 ? malloc((size_t)count * sizeof *wide) : NULL;
    if (wide) MultiByteToWideChar(CP_UTF8, 0, text, -1, wide, count);
    return wide;
}

static inline char *system_narrow(const wchar_t *text)
{
    int count = WideCharToMultiByte(CP_UTF8, 0, text, -1, NULL, 0, NULL, NULL);
    char *narrow = count > 0 ? malloc((size_t)count) : NULL;
    if (narrow) WideCharToMultiByte(CP_UTF8, 0, text, -1, narrow, count, NULL, NULL);
    return narrow;
}

/* They live as long as the program does. */
static inline void system_arguments(int *argc, char ***argv)
{
    int count = 0, taken = 0;
    wchar_t **wide = CommandLineToArgvW(GetCommandLineW(), &count);
    char **list = wide ? calloc((size_t)count + 1, sizeof *list) : NULL;
    while (list && taken < count && (list[taken] = system_narrow(wide[taken]))) taken++;
    if (list && taken == count) *argc = count, *argv = list;
    LocalFree(wide);
    SetConsoleOutputCP(CP_UTF8);
}

static inline int64_t system_now_ns(void)
{
    LARGE_INTEGER ticks, second;
    QueryPerformanceCounter(&ticks);
    QueryPerformanceFrequency(&second);
    return ticks.QuadPart / second.QuadPart * 1000000000 +
           ticks.QuadPart % second.QuadPart * 1000000000 / second.QuadPart;
}

/* Sleep() counts in clock ticks of up to 15.6 ms, a frame: a timer of high resolution does not (Windows 10 1803 and later). */
static inline void system_wait_until(int64_t ns)
{
    LARGE_INTEGER due;
    HANDLE timer = CreateWaitableTimerExW(NULL, NULL, 2 /* high resolution */, TIMER_ALL_ACCESS);
    if (!timer) timer = CreateWaitableTimerExW(NULL, NULL, 0, TIMER_ALL_ACCESS);
    for (int64_t left; (left = ns - system_now_ns()) > 0;) {
        due.QuadPart = -(left + 99) / 100; /* from now, in units of 100 ns */
        if (!timer || !SetWaitableTimer(timer, &due, 0, NULL, NULL, FALSE) ||
            WaitForSingleObject(timer, INFINITE) != WAIT_OBJECT_0)
            Sleep((DWORD)(left / 1000000));
    }
    if (timer) CloseHandle(timer);
}

static inline int system_can_write(const char *path, const char *beside)
{
    wchar_t *wide = system_wide(path), *other = system_wide(beside);
    DWORD is = wide ? GetFileAttributesW(wide) : INVALID_FILE_ATTRIBUTES;
    int folder = is != INVALID_FILE_ATTRIBUTES && is & FILE_ATTRIBUTE_DIRECTORY;
    int file = other && !folder ? _wopen(other, _O_WRONLY | _O_CREAT | _O_EXCL, _S_IREAD | _S_IWRITE) : -1;
    if (folder) errno = EISDIR;
    int can = file >= 0 && !_close(file) && !_wunlink(other);
    free(wide), free(other);
    return can;
}

static inline int system_by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static inline int system_list(const char *path, const char *ending, char ***names)
{
    WIN32_FIND_DATAW entry;
    size_t bytes = strlen(path) + 3, last = strlen(ending);
    char *pattern = malloc(bytes), **list = NULL;
    if (pattern) snprintf(pattern, bytes, "%s/*", path);
    wchar_t *wide = pattern ? system_wide(pattern) : NULL;
    HANDLE find = wide ? FindFirstFileW(wide, &entry) : INVALID_HANDLE_VALUE;
    free(pattern), free(wide);
    if (find == INVALID_HANDLE_VALUE) return -1;
    int count = 0;
    do {
        char *name = system_narrow(entry.cFileName), **more;
        size_t length = name ? strlen(name) : 0;
        if (length <= last || strcmp(name + length - last, ending) != 0 ||
            !(more = realloc(list, ((size_t)count + 1) * sizeof *list))) {
            free(name);
            continue;
        }
        list = more, list[count++] = name;
    } while (FindNextFileW(find, &entry));
    FindClose(find);
    if (count) qsort(list, (size_t)count, sizeof *list, system_by_name);
    *names = list;
    return count;
}
#endif
