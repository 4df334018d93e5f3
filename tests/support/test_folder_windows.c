/* Temporary folders of Windows, and what is done to files from outside. Names are UTF-8. */
#define WIN32_LEAN_AND_MEAN
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <windows.h>

enum { LONGEST = 1200 };

static char folder[512];

typedef struct wide {
    wchar_t text[LONGEST];
} wide;

static wide wide_of(const char *text)
{
    wide w;
    assert_true(MultiByteToWideChar(CP_UTF8, 0, text, -1, w.text, LONGEST) > 0);
    return w;
}

static void narrow(const wchar_t *from, char *to, int bytes)
{
    assert_true(WideCharToMultiByte(CP_UTF8, 0, from, -1, to, bytes, NULL, NULL) > 0);
}

const char *test_folder(void)
{
    wchar_t base[LONGEST], made[LONGEST];
    const wchar_t *given = _wgetenv(L"TMPDIR");
    DWORD length = 0;
    if (folder[0]) return folder;
    if (!given || !*given) {
        length = GetTempPathW(LONGEST, base);
        assert_true(length > 1 && length < LONGEST);
        base[length - 1] = 0; /* it ends in a backslash */
        given = base;
    }
    for (unsigned i = 0; i < 10000; i++) {
        swprintf(made, LONGEST, L"%ls/exphil-test-%lu-%u", given, GetCurrentProcessId(), i);
        if (CreateDirectoryW(made, NULL)) {
            narrow(made, folder, sizeof folder);
            for (char *at = folder; *at; at++)
                if (*at == '\\') *at = '/';
            return folder;
        }
        if (GetLastError() != ERROR_ALREADY_EXISTS) break;
    }
    fail_msg("could not make a folder: error %lu", GetLastError());
    return NULL;
}

static void remove_all(const wchar_t *path)
{
    wchar_t below[LONGEST];
    WIN32_FIND_DATAW found;
    swprintf(below, LONGEST, L"%ls\\*", path);
    HANDLE all = FindFirstFileW(below, &found);
    if (all == INVALID_HANDLE_VALUE) return;
    do {
        const DWORD what = found.dwFileAttributes;
        if (!wcscmp(found.cFileName, L".") || !wcscmp(found.cFileName, L"..")) continue;
        swprintf(below, LONGEST, L"%ls\\%ls", path, found.cFileName);
        if (!(what & FILE_ATTRIBUTE_DIRECTORY))
            DeleteFileW(below);
        else if (what & FILE_ATTRIBUTE_REPARSE_POINT)
            RemoveDirectoryW(below);
        else
            remove_all(below);
    } while (FindNextFileW(all, &found));
    FindClose(all);
    RemoveDirectoryW(path);
}

void test_folder_remove(void)
{
    if (folder[0]) remove_all(wide_of(folder).text);
    folder[0] = '\0';
}

bool test_exists(const char *path)
{
    return GetFileAttributesW(wide_of(path).text) != INVALID_FILE_ATTRIBUTES;
}

void test_make_folder(const char *path)
{
    assert_true(CreateDirectoryW(wide_of(path).text, NULL));
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int test_list(const char *path, char ***names)
{
    wchar_t below[LONGEST];
    WIN32_FIND_DATAW found;
    int count = 0;
    swprintf(below, LONGEST, L"%ls\\*", wide_of(path).text);
    HANDLE all = FindFirstFileW(below, &found);
    if (all == INVALID_HANDLE_VALUE) return -1;
    *names = NULL;
    do {
        char name[LONGEST];
        if (found.cFileName[0] == L'.') continue;
        narrow(found.cFileName, name, sizeof name);
        *names = realloc(*names, (size_t)(count + 1) * sizeof **names);
        assert_non_null(*names);
        (*names)[count++] = strdup(name);
    } while (FindNextFileW(all, &found));
    FindClose(all);
    if (count) qsort(*names, (size_t)count, sizeof **names, by_name);
    return count;
}

static HANDLE open_file(const char *path, DWORD access)
{
    return CreateFileW(wide_of(path).text, access, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                       NULL, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL);
}

void test_resize(const char *path, uint64_t bytes)
{
    HANDLE file = open_file(path, GENERIC_WRITE);
    LARGE_INTEGER end = {.QuadPart = (LONGLONG)bytes};
    assert_true(file != INVALID_HANDLE_VALUE);
    assert_true(SetFilePointerEx(file, end, NULL, FILE_BEGIN) && SetEndOfFile(file));
    CloseHandle(file);
}

uint64_t test_file_number(const char *path)
{
    HANDLE file = open_file(path, 0);
    BY_HANDLE_FILE_INFORMATION info;
    if (file == INVALID_HANDLE_VALUE) return 0;
    const BOOL fine = GetFileInformationByHandle(file, &info);
    CloseHandle(file);
    return fine ? (uint64_t)info.nFileIndexHigh << 32 | info.nFileIndexLow : 0;
}

bool test_replaces_open(void)
{
    char one[LONGEST], other[LONGEST];
    struct {
        DWORD flags; /* FILE_RENAME_INFO of Windows 10 */
        HANDLE root;
        DWORD bytes;
        WCHAR name[LONGEST];
    } rename = {.flags = 3}; /* REPLACE_IF_EXISTS, POSIX_SEMANTICS */
    snprintf(one, sizeof one, "%s/probe.one", test_folder());
    snprintf(other, sizeof other, "%s/probe.other", test_folder());
    test_write(one, "1", 1);
    test_write(other, "2", 1);
    HANDLE held = open_file(other, GENERIC_READ), moved = open_file(one, DELETE);
    const wide target = wide_of(other);
    rename.bytes = (DWORD)(wcslen(target.text) * sizeof(WCHAR));
    memcpy(rename.name, target.text, rename.bytes);
    const bool fine =
        SetFileInformationByHandle(moved, (FILE_INFO_BY_HANDLE_CLASS)22, &rename, sizeof rename);
    CloseHandle(held);
    CloseHandle(moved);
    DeleteFileW(wide_of(one).text);
    DeleteFileW(wide_of(other).text);
    return fine;
}

/* Without the right of an administrator only where the machine is in developer mode. */
bool test_link(const char *to, const char *name)
{
    enum { UNPRIVILEGED = 2 }; /* SYMBOLIC_LINK_FLAG_ALLOW_UNPRIVILEGED_CREATE */
    return CreateSymbolicLinkW(wide_of(name).text, wide_of(to).text, UNPRIVILEGED) &&
           GetFileAttributesW(wide_of(name).text) != INVALID_FILE_ATTRIBUTES &&
           GetFileAttributesW(wide_of(name).text) & FILE_ATTRIBUTE_REPARSE_POINT;
}

bool test_second_name(const char *of, const char *name)
{
    return CreateHardLinkW(wide_of(name).text, wide_of(of).text, NULL);
}

/* Pipes have a place of their own (\\.\pipe\), no folder holds one. */
bool test_pipe(const char *name)
{
    (void)name;
    return false;
}

bool test_has_command(const char *name)
{
    wchar_t found[LONGEST];
    return SearchPathW(NULL, wide_of(name).text, L".exe", LONGEST, found, NULL) > 0;
}

FILE *test_command(const char *command)
{
    return _popen(command, "rb");
}

int test_command_end(FILE *command)
{
    return _pclose(command);
}
