/* Shared libraries of Windows. */
#include "base/wide_windows.h"

#include <stdio.h>

/* A damaged library or one of another processor is an error to the caller, and no box that waits for somebody to click. */
static HMODULE load(const wchar_t *path, DWORD flags)
{
    DWORD before = 0;
    const BOOL quiet = SetThreadErrorMode(GetThreadErrorMode() | SEM_FAILCRITICALERRORS, &before);
    HMODULE module = LoadLibraryExW(path, NULL, flags);
    const DWORD code = GetLastError();
    if (quiet) SetThreadErrorMode(before, NULL);
    SetLastError(code);
    return module;
}

static HMODULE open_absolute(const char *path)
{
    int32_t rc = 0;
    wchar_t *wide = xph_wide_path(path, &rc);
    if (!wide) {
        SetLastError(ERROR_INVALID_NAME);
        return NULL;
    }
    /* What the library itself needs may lie beside it. */
    HMODULE module = load(wide, LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | LOAD_LIBRARY_SEARCH_DEFAULT_DIRS);
    xph_wide_free(wide);
    return module;
}

/* A bare name is looked for beside this library, then where the system keeps its own and beside the program; never in the
 * current folder or on the PATH, where anybody may have put one. */
static HMODULE open_named(const char *name)
{
    char path[2048];
    HMODULE module = NULL;
    if (xph_library_folder(path, sizeof path)) {
        const size_t length = strlen(path);
        if ((size_t)snprintf(path + length, sizeof path - length, "\\%s", name) < sizeof path - length)
            module = open_absolute(path);
    }
    int32_t rc = 0;
    wchar_t *wide = module ? NULL : xph_wide(name, &rc);
    if (wide) module = load(wide, LOAD_LIBRARY_SEARCH_DEFAULT_DIRS);
    xph_wide_free(wide);
    return module;
}

void *xph_library_open(const char *path, char *reason, size_t bytes)
{
    HMODULE module = strpbrk(path, "/\\:") ? open_absolute(path) : open_named(path);
    const DWORD code = module ? 0 : GetLastError();
    if (!module)
        snprintf(reason, bytes,
                 code == ERROR_MOD_NOT_FOUND ? "it, or a library that it needs, was not found"
                                             : "could not be loaded (Windows error %lu)",
                 code);
    return module;
}

bool xph_library_find(void *library, const char *name, void *function)
{
    FARPROC found = GetProcAddress(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

void xph_library_close(void *library)
{
    FreeLibrary(library);
}

bool xph_library_folder(char *folder, size_t bytes)
{
    enum { MOST = 32768 }; /* characters of the longest path */
    static const char anchor = 0;
    HMODULE module = NULL;
    if (!GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS |
                                GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
                            (const wchar_t *)(const void *)&anchor, &module))
        return false;
    wchar_t *path = HeapAlloc(GetProcessHeap(), 0, MOST * sizeof *path);
    if (!path) return false;
    const DWORD length = GetModuleFileNameW(module, path, MOST);
    wchar_t *slash = length && length < MOST ? wcsrchr(path, L'\\') : NULL;
    if (slash) *slash = L'\0';
    const bool known = slash && xph_narrow(path, folder, bytes);
    xph_wide_free(path);
    return known;
}
