/* Text, paths and errors of Windows in the library's terms: UTF-8 and values of errno. */
#include "base/wide_windows.h"

#include <errno.h>

/* Some SDKs have no names for them. */
#ifndef ERROR_VIRUS_INFECTED
#  define ERROR_VIRUS_INFECTED 225
#endif
#ifndef ERROR_DISK_QUOTA_EXCEEDED
#  define ERROR_DISK_QUOTA_EXCEEDED 1295
#endif

/* ---- errors -------------------------------------------------------------------------------------------- */

/* Microsoft's "System Error Codes". What is not here is EIO. */
static const struct {
    uint32_t code;
    int32_t number;
} errors[] = {
    {ERROR_FILE_NOT_FOUND, ENOENT},
    {ERROR_PATH_NOT_FOUND, ENOENT},
    {ERROR_INVALID_DRIVE, ENOENT},
    {ERROR_BAD_NETPATH, ENOENT},
    {ERROR_BAD_NET_NAME, ENOENT},
    {ERROR_MOD_NOT_FOUND, ENOENT},
    {ERROR_TOO_MANY_OPEN_FILES, EMFILE},
    {ERROR_ACCESS_DENIED, EACCES},
    {ERROR_CANT_ACCESS_FILE, EACCES},
    {ERROR_VIRUS_INFECTED, EACCES},
    {ERROR_PRIVILEGE_NOT_HELD, EPERM},
    {ERROR_WRITE_PROTECT, EROFS},
    {ERROR_SHARING_VIOLATION, EBUSY},
    {ERROR_LOCK_VIOLATION, EBUSY},
    {ERROR_BUSY, EBUSY},
    {ERROR_DELETE_PENDING, EBUSY},
    {ERROR_USER_MAPPED_FILE, EBUSY},
    {ERROR_DISK_FULL, ENOSPC},
    {ERROR_HANDLE_DISK_FULL, ENOSPC},
    {ERROR_DISK_QUOTA_EXCEEDED, ENOSPC},
    {ERROR_FILE_TOO_LARGE, EFBIG},
    {ERROR_FILE_EXISTS, EEXIST},
    {ERROR_ALREADY_EXISTS, EEXIST},
    {ERROR_DIRECTORY, ENOTDIR},
    {ERROR_DIR_NOT_EMPTY, ENOTEMPTY},
    {ERROR_NOT_SAME_DEVICE, EXDEV},
    {ERROR_CANT_RESOLVE_FILENAME, ELOOP},
    {ERROR_FILENAME_EXCED_RANGE, ENAMETOOLONG},
    {ERROR_INVALID_NAME, EINVAL},
    {ERROR_BAD_PATHNAME, EINVAL},
    {ERROR_INVALID_PARAMETER, EINVAL},
    {ERROR_NO_UNICODE_TRANSLATION, EILSEQ},
    {ERROR_INVALID_HANDLE, EBADF},
    {ERROR_NOT_READY, ENXIO},
    {ERROR_NOT_SUPPORTED, ENOTSUP},
    {ERROR_NOT_ENOUGH_MEMORY, ENOMEM},
    {ERROR_OUTOFMEMORY, ENOMEM},
    {ERROR_NO_SYSTEM_RESOURCES, ENOMEM},
    {ERROR_COMMITMENT_LIMIT, ENOMEM},
};

int32_t xph_windows_errno(uint32_t code)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == code) return errors[i].number;
    return EIO;
}

void xph_ntdll(const char *name, void *function)
{
    HMODULE module = GetModuleHandleW(L"ntdll.dll");
    FARPROC found = module ? GetProcAddress(module, name) : NULL;
    memcpy(function, &found, sizeof found);
}

/* ---- text ---------------------------------------------------------------------------------------------- */

static wchar_t *wide_memory(size_t characters, int32_t *rc)
{
    wchar_t *text = HeapAlloc(GetProcessHeap(), 0, characters * sizeof *text);
    if (!text) *rc = ENOMEM;
    return text;
}

void xph_wide_free(wchar_t *text)
{
    if (text) HeapFree(GetProcessHeap(), 0, text);
}

wchar_t *xph_wide(const char *text, int32_t *rc)
{
    const int characters = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, NULL, 0);
    if (characters <= 0) {
        *rc = xph_windows_errno(GetLastError());
        return NULL;
    }
    wchar_t *wide = wide_memory((size_t)characters, rc);
    if (wide) MultiByteToWideChar(CP_UTF8, 0, text, -1, wide, characters);
    return wide;
}

bool xph_narrow(const wchar_t *text, char *to, size_t bytes)
{
    const int most = bytes < INT_MAX ? (int)bytes : INT_MAX;
    return WideCharToMultiByte(CP_UTF8, WC_ERR_INVALID_CHARS, text, -1, to, most, NULL, NULL) > 0;
}

/* ---- paths --------------------------------------------------------------------------------------------- */

static bool separator(wchar_t c)
{
    return c == L'/' || c == L'\\';
}

static bool same_letters(const wchar_t *name, size_t length, const char *upper)
{
    for (size_t i = 0; i < length; i++) {
        wchar_t c = name[i] >= L'a' && name[i] <= L'z' ? (wchar_t)(name[i] - L'a' + L'A') : name[i];
        if (!upper[i] || c != (wchar_t)(unsigned char)upper[i]) return false;
    }
    return !upper[length];
}

/* CON, NUL.txt, com1: Windows opens a device ("Naming Files, Paths, and Namespaces"). */
static bool device(const wchar_t *name, size_t length)
{
    static const char *const names[] = {"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"};
    size_t stem = 0;
    while (stem < length && name[stem] != L'.') stem++;
    while (stem > 0 && name[stem - 1] == L' ') stem--;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (same_letters(name, stem, names[i])) return true;
    if (stem != 4 || !(same_letters(name, 3, "COM") || same_letters(name, 3, "LPT"))) return false;
    const wchar_t digit = name[3];
    return (digit >= L'0' && digit <= L'9') || digit == 0xB9 || digit == 0xB2 || digit == 0xB3;
}

/* A file of this name can be made, and no other name means it: Windows drops dots and spaces at the end, and takes what
 * follows a colon for a stream inside the file. */
static bool plain_name(const wchar_t *name, size_t length)
{
    if (length == 0 || (length == 1 && name[0] == L'.') ||
        (length == 2 && name[0] == L'.' && name[1] == L'.'))
        return true;
    for (size_t i = 0; i < length; i++)
        if (name[i] < 0x20 || wcschr(L"<>:\"|?*", name[i])) return false;
    return name[length - 1] != L'.' && name[length - 1] != L' ' && !device(name, length);
}

static bool plain_names(const wchar_t *path)
{
    while (*path) {
        size_t length = 0;
        while (path[length] && !separator(path[length])) length++;
        if (!plain_name(path, length)) return false;
        path += length + (path[length] != 0);
    }
    return true;
}

/* Behind the drive of a path, where a colon is what it should be. */
static const wchar_t *behind_drive(const wchar_t *path)
{
    const bool letter = (path[0] >= L'a' && path[0] <= L'z') || (path[0] >= L'A' && path[0] <= L'Z');
    return letter && path[1] == L':' ? path + 2 : path;
}

/* \\?\, with either separator. */
static bool verbatim(const wchar_t *path)
{
    return separator(path[0]) && separator(path[1]) && path[2] == L'?' && separator(path[3]);
}

/* Puts \\?\ before the absolute path at whole + HEAD_ROOM. What it is shows there only: a relative path or \x may lead to a
 * server, or to \\?\ itself, when the current folder does. */
#define HEAD_ROOM 7
static bool put_head(wchar_t *whole)
{
    const wchar_t *path = whole + HEAD_ROOM, *head = L"\\\\?\\";
    if (verbatim(path)) {
        head = L"";
    } else if (separator(path[0]) && separator(path[1])) {
        if (path[2] == L'.') return false; /* a device */
        head = L"\\\\?\\UNC\\";
        path += 2;
    }
    const size_t before = wcslen(head);
    memmove(whole + before, path, (wcslen(path) + 1) * sizeof *path);
    memcpy(whole, head, before * sizeof *head);
    return true;
}

static wchar_t *whole_path(const wchar_t *path, int32_t *rc)
{
    const DWORD room = GetFullPathNameW(path, 0, NULL, NULL);
    wchar_t *whole = room ? wide_memory(HEAD_ROOM + room, rc) : NULL;
    if (!room) *rc = xph_windows_errno(GetLastError());
    if (!whole) return NULL;
    const DWORD length = GetFullPathNameW(path, room, whole + HEAD_ROOM, NULL);
    /* Longer than its room: the current folder has changed meanwhile. */
    if (length > 0 && length < room && put_head(whole)) return whole;
    *rc = EINVAL;
    xph_wide_free(whole);
    return NULL;
}

wchar_t *xph_wide_path(const char *path, int32_t *rc)
{
    wchar_t *wide = xph_wide(path, rc), *whole = NULL;
    if (!wide) return NULL;
    if (verbatim(wide)) { /* as it is; to Windows a / in it is a letter, to the library a separator */
        for (wchar_t *c = wide; *c; c++)
            if (*c == L'/') *c = L'\\';
        if (plain_names(behind_drive(wide + 4))) return wide;
        *rc = EINVAL;
    } else if (!*wide) {
        *rc = ENOENT;
    } else if ((separator(wide[0]) && separator(wide[1]) && wide[2] == L'.') ||
               !plain_names(behind_drive(wide))) {
        *rc = EINVAL;
    } else {
        whole = whole_path(wide, rc);
    }
    xph_wide_free(wide);
    return whole;
}
