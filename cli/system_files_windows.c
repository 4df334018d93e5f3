/* Files of the program on Windows. Names are UTF-16 there, and all are opened so that others may replace and remove them
 * meanwhile, as on POSIX. See system.h. */
#include "system_windows.h"

#include "system.h"

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors and paths ---------------------------------------------------------------------------------- */

bool wide_failed(void)
{
    errno = xph_windows_errno(GetLastError());
    return false;
}

/* Of a drive alone its root is meant, not where it stands. */
wchar_t *wide_path(const char *path)
{
    char root[] = "C:/";
    int32_t why = 0;
    if (path[0] && path[1] == ':' && !path[2]) path = (root[0] = path[0], root);
    wchar_t *wide = xph_wide_path(path, &why);
    if (!wide) errno = why;
    return wide;
}

HANDLE wide_open(const char *path, DWORD access, DWORD creation, DWORD flags)
{
    wchar_t *wide = wide_path(path);
    HANDLE handle = INVALID_HANDLE_VALUE;
    if (!wide) return handle;
    handle = CreateFileW(wide, access, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL, creation,
                         flags | FILE_ATTRIBUTE_NORMAL, NULL);
    if (handle == INVALID_HANDLE_VALUE) (void)wide_failed();
    xph_wide_free(wide);
    return handle;
}

static DWORD attributes(const char *path)
{
    wchar_t *wide = wide_path(path);
    DWORD found = wide ? GetFileAttributesW(wide) : INVALID_FILE_ATTRIBUTES;
    if (wide && found == INVALID_FILE_ATTRIBUTES) (void)wide_failed();
    xph_wide_free(wide);
    return found;
}

/* ---- what is there ------------------------------------------------------------------------------------- */

static int64_t seconds_of(FILETIME time)
{
    const int64_t tenths_of_us = (int64_t)((uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime);
    return tenths_of_us / 10000000 - INT64_C(11644473600); /* from 1601 to 1970 */
}

static bool look_at(HANDLE handle, system_facts *facts)
{
    BY_HANDLE_FILE_INFORMATION of;
    *facts = (system_facts){.regular = false};
    const DWORD type = GetFileType(handle);
    facts->pipe = type == FILE_TYPE_PIPE;
    facts->other = type != FILE_TYPE_DISK;
    if (facts->other) return true;
    if (!GetFileInformationByHandle(handle, &of)) return wide_failed();
    facts->folder = (of.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
    facts->regular = !facts->folder;
    facts->device = of.dwVolumeSerialNumber;
    facts->number = (uint64_t)of.nFileIndexHigh << 32 | of.nFileIndexLow;
    if (facts->number == UINT64_MAX) facts->number = 0; /* ReFS, of a file whose number is longer */
    facts->bytes = (uint64_t)of.nFileSizeHigh << 32 | of.nFileSizeLow;
    facts->modified = seconds_of(of.ftLastWriteTime);
    return true;
}

/* Capitals and small letters are one. */
bool system_same_name(const char *a, const char *b)
{
    wchar_t *one = wide_path(a), *two = one ? wide_path(b) : NULL;
    bool same = two && CompareStringOrdinal(one, -1, two, -1, TRUE) == CSTR_EQUAL;
    xph_wide_free(one);
    xph_wide_free(two);
    return same;
}

/* FILE_FLAG_BACKUP_SEMANTICS opens folders too. */
bool system_look(const char *path, system_facts *facts)
{
    *facts = (system_facts){.regular = false};
    HANDLE handle = wide_open(path, FILE_READ_ATTRIBUTES, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS);
    if (handle == INVALID_HANDLE_VALUE && errno == EINVAL) errno = ENOENT; /* no file has such a name */
    if (handle == INVALID_HANDLE_VALUE) return false;
    bool fine = look_at(handle, facts);
    (void)CloseHandle(handle);
    return fine;
}

bool system_there(const char *path)
{
    system_facts facts;
    return system_look(path, &facts);
}

bool system_taken(const char *path)
{
    return attributes(path) != INVALID_FILE_ATTRIBUTES;
}

/* Symbolic links and junctions; other reparse points, as of OneDrive, are files. */
bool system_link(const char *path)
{
    WIN32_FIND_DATAW found;
    const DWORD of = attributes(path);
    if (of == INVALID_FILE_ATTRIBUTES || !(of & FILE_ATTRIBUTE_REPARSE_POINT)) return false;
    wchar_t *wide = wide_path(path);
    HANDLE search = wide ? FindFirstFileW(wide, &found) : INVALID_HANDLE_VALUE;
    xph_wide_free(wide);
    if (search == INVALID_HANDLE_VALUE) return false;
    (void)FindClose(search);
    return found.dwReserved0 == IO_REPARSE_TAG_SYMLINK || found.dwReserved0 == IO_REPARSE_TAG_MOUNT_POINT;
}

bool system_writable(const char *path)
{
    HANDLE handle = wide_open(path, GENERIC_WRITE, OPEN_EXISTING, 0);
    if (handle != INVALID_HANDLE_VALUE) (void)CloseHandle(handle);
    return handle != INVALID_HANDLE_VALUE;
}

/* Whether files can be made in it only trying shows, which is done anyway. */
bool system_writable_folder(const char *path)
{
    return attributes(path) != INVALID_FILE_ATTRIBUTES;
}

bool system_replaceable(const char *path)
{
    if (attributes(path) & FILE_ATTRIBUTE_READONLY) return errno = EACCES, false;
    HANDLE handle = wide_open(path, DELETE, OPEN_EXISTING, 0);
    if (handle != INVALID_HANDLE_VALUE) (void)CloseHandle(handle);
    return handle != INVALID_HANDLE_VALUE;
}

bool system_stdout_is(const system_facts *facts)
{
    system_facts results;
    return look_at((HANDLE)_get_osfhandle(_fileno(stdout)), &results) && results.number &&
           results.device == facts->device && results.number == facts->number;
}

/* ---- streams ------------------------------------------------------------------------------------------- */

/* mode: of fopen, whose bytes would be changed without 'b'. */
static FILE *stream_of(HANDLE handle, const char *mode)
{
    char binary[8];
    const bool reads = mode[0] == 'r';
    if (handle == INVALID_HANDLE_VALUE) return NULL;
    int descriptor = _open_osfhandle((intptr_t)handle,
                                     (reads ? _O_RDONLY : 0) | (mode[0] == 'a' ? _O_APPEND : 0) | _O_BINARY);
    if (descriptor < 0) (void)CloseHandle(handle);
    (void)snprintf(binary, sizeof binary, "%cb", mode[0]);
    FILE *file = descriptor >= 0 ? _fdopen(descriptor, binary) : NULL;
    if (descriptor >= 0 && !file) (void)_close(descriptor);
    return file;
}

FILE *system_open(const char *path, const char *mode)
{
    const bool reads = mode[0] == 'r', appends = mode[0] == 'a';
    system_facts facts;
    if (reads && !system_look(path, &facts)) return NULL;
    if (reads && facts.folder) return errno = EISDIR, NULL;
    return stream_of(wide_open(path, reads ? GENERIC_READ : GENERIC_WRITE,
                               reads     ? OPEN_EXISTING
                               : appends ? OPEN_ALWAYS
                                         : CREATE_ALWAYS,
                               0),
                     mode);
}

FILE *system_create(const char *path)
{
    return stream_of(wide_open(path, GENERIC_WRITE, CREATE_NEW, 0), "w");
}

FILE *system_open_regular(const char *path, system_facts *facts)
{
    if (!system_look(path, facts)) return NULL;
    return facts->regular ? system_open(path, "r") : NULL;
}

FILE *system_open_anew(const char *path)
{
    if (system_link(path)) return errno = EACCES, NULL;
    return system_open(path, "w");
}

bool system_sync(FILE *file)
{
    if (fflush(file) != 0) return false;
    return FlushFileBuffers((HANDLE)_get_osfhandle(_fileno(file))) || wide_failed();
}

/* What NTFS renames is in its journal; a folder is not written by itself. */
void system_sync_folder(const char *path)
{
    (void)path;
}

/* The library's own takes the place of a file that somebody reads, and waits a while for one that is held. */
bool system_rename(const char *from, const char *to)
{
    const int32_t why = xph_system_io.rename(NULL, from, to);
    if (why) errno = why;
    return why == 0;
}

bool system_remove(const char *path)
{
    wchar_t *wide = wide_path(path);
    bool fine = wide && (DeleteFileW(wide) || wide_failed());
    xph_wide_free(wide);
    return fine;
}

/* A link in the place of a log is left to Windows, which writes through it. */
char *system_real(const char *path)
{
    return strdup(path);
}

ptrdiff_t system_line(char **line, size_t *room, FILE *file)
{
    size_t used = 0;
    for (int letter = 0; letter != '\n';) {
        if (used + 2 > *room) {
            size_t wider = *room ? 2 * *room : 256;
            char *more = realloc(*line, wider);
            if (!more) return -1;
            *line = more;
            *room = wider;
        }
        letter = getc(file);
        if (letter == EOF) break;
        (*line)[used++] = (char)letter;
    }
    if (!used || ferror(file)) return -1;
    (*line)[used] = 0;
    return (ptrdiff_t)used;
}

/* ---- raw files ----------------------------------------------------------------------------------------- */

intptr_t system_raw_open(const char *path)
{
    return (intptr_t)wide_open(path, GENERIC_READ, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS);
}

/* The system removes it with its last handle. */
intptr_t system_raw_unnamed(const char *folder)
{
    char path[SYSTEM_PATH];
    for (unsigned i = 0; i < 100; i++) {
        int bytes = snprintf(path, sizeof path, "%s/exphil-%lu-%llx", folder,
                             (unsigned long)GetCurrentProcessId(), (unsigned long long)system_clock_ns() + i);
        if (bytes >= (int)sizeof path) return errno = ENAMETOOLONG, -1;
        HANDLE made = wide_open(path, GENERIC_READ | GENERIC_WRITE | DELETE, CREATE_NEW,
                                FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE);
        if (made != INVALID_HANDLE_VALUE || errno != EEXIST) return (intptr_t)made;
    }
    return -1;
}

intptr_t system_raw_again(intptr_t file)
{
    HANDLE again, own = GetCurrentProcess();
    if (DuplicateHandle(own, (HANDLE)file, own, &again, 0, FALSE, DUPLICATE_SAME_ACCESS))
        return (intptr_t)again;
    (void)wide_failed();
    return -1;
}

bool system_raw_look(intptr_t file, system_facts *facts)
{
    return look_at((HANDLE)file, facts);
}

ptrdiff_t system_raw_read(intptr_t file, uint64_t offset, void *to, size_t bytes)
{
    OVERLAPPED at = {.Offset = (DWORD)offset, .OffsetHigh = (DWORD)(offset >> 32)};
    DWORD got = 0;
    if (ReadFile((HANDLE)file, to, bytes < 1 << 30 ? (DWORD)bytes : 1 << 30, &got, &at))
        return (ptrdiff_t)got;
    if (GetLastError() == ERROR_HANDLE_EOF) return 0;
    (void)wide_failed();
    return -1;
}

/* All ones: behind the last byte. */
ptrdiff_t system_raw_append(intptr_t file, const void *from, size_t bytes)
{
    OVERLAPPED at = {.Offset = 0xffffffff, .OffsetHigh = 0xffffffff};
    DWORD put = 0;
    if (WriteFile((HANDLE)file, from, bytes < 1 << 30 ? (DWORD)bytes : 1 << 30, &put, &at))
        return (ptrdiff_t)put;
    (void)wide_failed();
    return -1;
}

bool system_raw_close(intptr_t file)
{
    return CloseHandle((HANDLE)file) || wide_failed();
}
