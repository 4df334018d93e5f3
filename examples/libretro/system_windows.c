/* Windows 10 and later. Nothing depends on the code page of the machine. Windows cannot remove a library that is loaded, so a copy
 * goes when it is closed; one of a program that was ended stays in the folder for temporary files. */
#include "system.h"

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>
/* after windows.h */
#include <shellapi.h>

#define PATH_ROOM      4096
#define VARIABLES_MOST 32

/* NULL: no memory, or text is not in UTF-8. The caller frees. */
static wchar_t *wide_of(const char *text)
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

static int errno_of(DWORD error)
{
    switch (error) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
        return ENOENT;
    case ERROR_SHARING_VIOLATION:
    case ERROR_DELETE_PENDING:
        return EBUSY;
    case ERROR_ACCESS_DENIED:
    case ERROR_WRITE_PROTECT:
        return EACCES;
    case ERROR_FILENAME_EXCED_RANGE:
        return ENAMETOOLONG;
    case ERROR_INVALID_NAME:
        return EINVAL;
    default:
        return EIO;
    }
}

/* ---- libraries ---------------------------------------------------------------------------------------------------------- */

/* In Windows' own words, in UTF-8. */
static void *refuse(const char *path, DWORD error, char *why, size_t why_bytes)
{
    wchar_t text[200];
    DWORD length = FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, NULL, error, 0,
                                  text, sizeof text / sizeof *text, NULL);
    while (length && (text[length - 1] == L'\r' || text[length - 1] == L'\n' || text[length - 1] == L'.'))
        length--;
    text[length < 199 ? length : 199] = 0;
    char *said = narrow_of(text);
    snprintf(why, why_bytes, "%s: %s (Windows error %lu)", path, said && *said ? said : "cannot be loaded",
             error);
    free(said);
    return NULL;
}

/* The whole path, with the slashes that are Windows' own: only so are libraries that it needs looked for beside it. */
static wchar_t *whole_path(const char *path)
{
    wchar_t *wide = wide_of(path), *whole = NULL;
    DWORD room = wide ? GetFullPathNameW(wide, 0, NULL, NULL) : 0;
    if (room) whole = malloc((size_t)room * sizeof *whole);
    if (whole && !GetFullPathNameW(wide, room, whole, NULL)) free(whole), whole = NULL;
    free(wide);
    return whole;
}

/* A damaged library, or one for other processors, is refused in words: Windows would show a window that waits for somebody. */
static void *load_quietly(const wchar_t *whole, DWORD how, DWORD *error)
{
    DWORD before = 0;
    SetThreadErrorMode(SEM_FAILCRITICALERRORS, &before);
    void *library = (void *)LoadLibraryExW(whole, NULL, how);
    *error = library ? 0 : GetLastError();
    SetThreadErrorMode(before, NULL);
    return library;
}

static void *load(const char *path, const wchar_t *whole, char *why, size_t why_bytes)
{
    DWORD error = ERROR_INVALID_NAME;
    void *library = whole ? load_quietly(whole, LOAD_WITH_ALTERED_SEARCH_PATH, &error) : NULL;
    return library ? library : refuse(path, error, why, why_bytes);
}

void *system_library_open(const char *path, char *why, size_t why_bytes)
{
    wchar_t *whole = whole_path(path);
    void *library = load(path, whole, why, why_bytes);
    free(whole);
    return library;
}

/* To be deleted and freed. NULL: error says why. */
static wchar_t *copy_of(const wchar_t *whole, DWORD *error)
{
    wchar_t folder[MAX_PATH + 2], *name = calloc(MAX_PATH + 1, sizeof *name);
    DWORD units = GetTempPathW(MAX_PATH + 2, folder); /* the room it wants, where that is too little */
    *error = !name ? ERROR_NOT_ENOUGH_MEMORY : units > MAX_PATH + 1 ? ERROR_FILENAME_EXCED_RANGE : 0;
    if (!*error && (!units || !GetTempFileNameW(folder, L"exp", 0, name) || !CopyFileW(whole, name, FALSE)))
        *error = GetLastError();
    if (!*error) return name;
    if (name && *name) DeleteFileW(name);
    return free(name), NULL;
}

/* What the copy needs is looked for beside the core, not in the folder for temporary files, where anybody may put one. */
static void *load_copy(const wchar_t *whole, const wchar_t *name, DWORD *error)
{
    wchar_t *folder = _wcsdup(whole), *slash = folder ? wcsrchr(folder, L'\\') : NULL;
    if (slash) slash[1] = 0;
    DLL_DIRECTORY_COOKIE beside = slash ? AddDllDirectory(folder) : NULL;
    free(folder);
    void *library = load_quietly(name, LOAD_LIBRARY_SEARCH_DEFAULT_DIRS, error);
    if (beside) RemoveDllDirectory(beside);
    return library;
}

static void *open_copy(const char *path, const wchar_t *whole, void **copy, char *why, size_t why_bytes)
{
    DWORD error;
    wchar_t *name = copy_of(whole, &error);
    void *library = name ? load_copy(whole, name, &error) : NULL;
    if (library) return *copy = name, library;
    if (name) DeleteFileW(name);
    free(name);
    char said[256];
    refuse("a copy of it", error, said, sizeof said);
    snprintf(why, why_bytes, "%s is in use, and no copy of it can be made: %s", path, said);
    return NULL;
}

void *system_library_open_alone(const char *path, void **copy, char *why, size_t why_bytes)
{
    HMODULE loaded = NULL;
    wchar_t *whole = whole_path(path);
    *copy = NULL;
    if (whole) GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT, whole, &loaded);
    void *library = loaded ? open_copy(path, whole, copy, why, why_bytes) : load(path, whole, why, why_bytes);
    free(whole);
    return library;
}

void *system_library_find(void *library, const char *name)
{
    void *found;
    FARPROC function = GetProcAddress(library, name);
    memcpy(&found, &function, sizeof found);
    return found;
}

void system_library_close(void *library)
{
    if (library) FreeLibrary(library);
}

void system_library_close_alone(void *library, void *copy)
{
    system_library_close(library);
    if (copy) DeleteFileW(copy);
    free(copy);
}

int system_library_path(const void *inside, char *path, size_t path_bytes)
{
    HMODULE own;
    wchar_t wide[PATH_ROOM];
    if (!GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS |
                                GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
                            inside, &own))
        return -1;
    DWORD length = GetModuleFileNameW(own, wide, PATH_ROOM);
    if (!length || length >= PATH_ROOM) return -1;
    return WideCharToMultiByte(CP_UTF8, 0, wide, -1, path, (int)path_bytes, NULL, NULL) > 0 ? 0 : -1;
}

/* ---- paths and files ---------------------------------------------------------------------------------------------------- */

const char *system_last_slash(const char *path)
{
    const char *last = NULL;
    for (; *path; path++)
        if (*path == '/' || *path == '\\') last = path;
    return last;
}

static DWORD attributes_of(const char *path)
{
    wchar_t *wide = wide_of(path);
    DWORD found = wide ? GetFileAttributesW(wide) : INVALID_FILE_ATTRIBUTES;
    free(wide);
    return found;
}

int system_is_there(const char *path)
{
    return attributes_of(path) != INVALID_FILE_ATTRIBUTES;
}

int system_is_readable(const char *path)
{
    return system_is_there(path);
}

/* A folder, or a device such as NUL or a pipe. */
int system_is_special(const char *path)
{
    wchar_t *wide = wide_of(path);
    HANDLE file = wide ? CreateFileW(wide, 0, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                                     OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL)
                       : INVALID_HANDLE_VALUE;
    free(wide);
    if (file == INVALID_HANDLE_VALUE) return 0;
    BY_HANDLE_FILE_INFORMATION seen;
    int special = GetFileType(file) != FILE_TYPE_DISK || !GetFileInformationByHandle(file, &seen) ||
                  seen.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY;
    CloseHandle(file);
    return special;
}

FILE *system_open(const char *path, const char *mode)
{
    wchar_t *wide = wide_of(path), *how = wide_of(mode);
    FILE *file = wide && how ? _wfopen(wide, how) : NULL;
    free(wide), free(how);
    return file;
}

int system_file_seen(const char *path, uint64_t *id, int64_t *bytes)
{
    wchar_t *wide = wide_of(path);
    BY_HANDLE_FILE_INFORMATION seen;
    HANDLE file =
        wide ? CreateFileW(wide, 0, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                           OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT, NULL)
             : INVALID_HANDLE_VALUE;
    free(wide);
    if (file == INVALID_HANDLE_VALUE) return -1;
    int disk = GetFileType(file) == FILE_TYPE_DISK && GetFileInformationByHandle(file, &seen);
    CloseHandle(file);
    if (!disk) return 1;
    *id = (uint64_t)seen.nFileIndexHigh << 32 | seen.nFileIndexLow;
    *bytes = (int64_t)seen.nFileSizeHigh << 32 | seen.nFileSizeLow;
    return seen.dwFileAttributes & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_REPARSE_POINT) ? 1 : 0;
}

/* Opened by one at a time, and gone with whoever has it, however that ends. */
int system_lock(const char *name, intptr_t *lock)
{
    wchar_t *wide = wide_of(name);
    if (!wide) return EINVAL;
    HANDLE file =
        CreateFileW(wide, GENERIC_READ | GENERIC_WRITE | DELETE, 0, NULL, OPEN_ALWAYS,
                    FILE_ATTRIBUTE_NORMAL | FILE_FLAG_DELETE_ON_CLOSE | FILE_FLAG_OPEN_REPARSE_POINT, NULL);
    DWORD error = GetLastError();
    free(wide);
    if (file == INVALID_HANDLE_VALUE) return errno_of(error);
    *lock = (intptr_t)file;
    return 0;
}

void system_unlock(const char *name, intptr_t lock)
{
    (void)name;
    CloseHandle((HANDLE)lock);
}

/* ---- the process -------------------------------------------------------------------------------------------------------- */

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

/* C's getenv gives what the code page of the machine has of it. */
const char *system_variable(const char *name)
{
    static struct {
        const char *name;
        char *value;
    } known[VARIABLES_MOST];
    wchar_t wide_name[64], *value = NULL;
    size_t at = 0;
    while (at < VARIABLES_MOST && known[at].name && strcmp(known[at].name, name) != 0) at++;
    if (at == VARIABLES_MOST || !MultiByteToWideChar(CP_UTF8, 0, name, -1, wide_name, 64)) return NULL;
    known[at].name = name;
    free(known[at].value);
    known[at].value = NULL;
    DWORD room = GetEnvironmentVariableW(wide_name, NULL, 0);
    if (room) value = calloc(room, sizeof *value); /* another thread may take the variable away meanwhile */
    if (value && GetEnvironmentVariableW(wide_name, value, room) < room) known[at].value = narrow_of(value);
    free(value);
    return known[at].value;
}

/* C's streams have numbers of their own, whatever the handles are. */
void system_hold_streams(void) {}

/* A core with a C run-time of its own keeps the handle that it finds, for good: one that stays open. Another file may get the
 * number of a closed handle, and what the core prints would go into it. */
static void show_nowhere(void)
{
    static HANDLE forever = INVALID_HANDLE_VALUE;
    if (forever == INVALID_HANDLE_VALUE)
        forever = CreateFileW(L"NUL", GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE, NULL, OPEN_EXISTING,
                              0, NULL);
    SetStdHandle(STD_OUTPUT_HANDLE, forever);
}

int system_silence(void)
{
    fflush(stdout);
    int kept = _dup(1), nowhere = _open("NUL", _O_WRONLY);
    if (kept >= 0 && nowhere >= 0 && !_dup2(nowhere, 1)) show_nowhere();
    if (nowhere >= 0) _close(nowhere);
    return kept;
}

void system_speak(int kept)
{
    fflush(stdout);
    if (kept < 0) return;
    if (!_dup2(kept, 1)) SetStdHandle(STD_OUTPUT_HANDLE, (HANDLE)_get_osfhandle(1));
    _close(kept);
}

long system_processors(void)
{
    DWORD cores = GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
    return cores ? (long)cores : 1;
}

int64_t system_now_ns(void)
{
    LARGE_INTEGER ticks, second;
    QueryPerformanceCounter(&ticks);
    QueryPerformanceFrequency(&second);
    return ticks.QuadPart / second.QuadPart * 1000000000 +
           ticks.QuadPart % second.QuadPart * 1000000000 / second.QuadPart;
}

/* Sleep() counts in clock ticks of up to 15.6 ms, a frame: a timer of high resolution does not (Windows 10 1803 and later). */
void system_sleep_ns(int64_t ns)
{
    LARGE_INTEGER due = {.QuadPart = -(ns + 99) / 100}; /* from now, in units of 100 ns */
    if (ns <= 0) return;
    HANDLE timer = CreateWaitableTimerExW(NULL, NULL, 2 /* high resolution */, TIMER_ALL_ACCESS);
    if (!timer || !SetWaitableTimer(timer, &due, 0, NULL, NULL, FALSE) ||
        WaitForSingleObject(timer, INFINITE) != WAIT_OBJECT_0)
        Sleep((DWORD)(ns / 1000000));
    if (timer) CloseHandle(timer);
}
