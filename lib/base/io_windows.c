/* exphil_io on the file systems of Windows. A file is its handle. Files are opened for reading so that everybody else may go
 * on as he likes, as on POSIX; one that is being written is nobody else's to write. */
#include "base/wide_windows.h"

#include <errno.h>

#define LARGEST_TRANSFER ((size_t)1 << 30)
/* Whoever looks at new files (virus scanners, indexers) holds them for moments: half a second in all. */
#define ATTEMPTS         10

/* <winbase.h> of some SDKs lacks them (FILE_RENAME_INFO and FILE_DISPOSITION_INFO_EX, Windows 10 1607 and 1709). */
#define RENAME_INFO_EX         ((FILE_INFO_BY_HANDLE_CLASS)22)
#define DISPOSITION_INFO_EX    ((FILE_INFO_BY_HANDLE_CLASS)21)
#define REPLACE_IF_EXISTS      0x1u
#define POSIX_SEMANTICS        0x2u
#define DISPOSITION_DELETE     0x1u
#define DISPOSITION_POSIX      0x2u
#define REPARSE_NAME_SURROGATE 0x20000000u

typedef struct rename_info {
    DWORD flags;
    HANDLE root;
    DWORD name_bytes;
    wchar_t name[1];
} rename_info;

static int32_t last_errno(void)
{
    return xph_windows_errno(GetLastError());
}

static void pause_before(int attempt)
{
    if (attempt > 0) Sleep(1u << (attempt - 1));
}

/* Links and junctions stand for another file; other reparse points are files that a driver keeps elsewhere. */
static int32_t kind_of_reparse(const wchar_t *path, int32_t *kind)
{
    WIN32_FIND_DATAW found;
    HANDLE search = FindFirstFileW(path, &found);
    if (search == INVALID_HANDLE_VALUE) return last_errno();
    FindClose(search);
    if (found.dwReserved0 & REPARSE_NAME_SURROGATE) *kind = EXPHIL_IO_OTHER;
    return 0;
}

/* With a separator at the end what a link leads to is meant, as on POSIX. */
static int32_t kind_of_wide(const wchar_t *path, int32_t *kind)
{
    const size_t length = wcslen(path);
    const bool beyond = length > 0 && path[length - 1] == L'\\';
    const DWORD attributes = GetFileAttributesW(path);
    if (attributes == INVALID_FILE_ATTRIBUTES) {
        const int32_t rc = last_errno();
        if (rc != ENOENT) return rc;
        *kind = EXPHIL_IO_ABSENT;
        return 0;
    }
    *kind = attributes & FILE_ATTRIBUTE_DIRECTORY ? EXPHIL_IO_FOLDER : EXPHIL_IO_FILE;
    return attributes & FILE_ATTRIBUTE_REPARSE_POINT && !beyond ? kind_of_reparse(path, kind) : 0;
}

static int32_t kind_of(void *user, const char *path, int32_t *kind)
{
    (void)user;
    int32_t rc = 0;
    wchar_t *wide = xph_wide_path(path, &rc);
    if (!wide) return rc;
    rc = kind_of_wide(wide, kind);
    xph_wide_free(wide);
    return rc;
}

/* Why CreateFileW refused: it says of a folder that access is denied. */
static int32_t why_refused(const wchar_t *path)
{
    const int32_t rc = last_errno();
    int32_t kind = EXPHIL_IO_ABSENT;
    if (rc == EACCES && kind_of_wide(path, &kind) == 0 && kind == EXPHIL_IO_FOLDER) return EISDIR;
    return rc;
}

static int32_t open_existing(const wchar_t *path, void **file)
{
    HANDLE handle = CreateFileW(path, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                                NULL, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
    if (handle == INVALID_HANDLE_VALUE) return why_refused(path);
    *file = handle;
    return 0;
}

/* The name goes at once where the file system can do that, else with the last handle. */
static int32_t delete_opened(HANDLE handle)
{
    DWORD flags = DISPOSITION_DELETE | DISPOSITION_POSIX;
    if (SetFileInformationByHandle(handle, DISPOSITION_INFO_EX, &flags, sizeof flags)) return 0;
    FILE_DISPOSITION_INFO plain = {.DeleteFile = TRUE};
    return SetFileInformationByHandle(handle, FileDispositionInfo, &plain, sizeof plain) ? 0 : last_errno();
}

/* Opens for writing so that nobody else can while it is open: what is a lock on POSIX. The rename needs the share of DELETE.
 * EBUSY: somebody else has it open. */
static HANDLE open_alone(const wchar_t *path, DWORD creation)
{
    return CreateFileW(path, GENERIC_READ | GENERIC_WRITE | DELETE, FILE_SHARE_READ | FILE_SHARE_DELETE, NULL,
                       creation, FILE_ATTRIBUTE_NORMAL | FILE_FLAG_OPEN_REPARSE_POINT, NULL);
}

/* Why a name could not be had. EAGAIN: its file is deleted, but somebody who looks at it keeps it; Windows says of it that
 * access is denied, and the NT status that the deletion is pending. */
static int32_t why_taken(void)
{
    const DWORD code = GetLastError();
    const LONG delete_pending = (LONG)0xC0000056; /* STATUS_DELETE_PENDING */
    LONG(WINAPI * last_status)(void) = NULL;
    xph_ntdll("RtlGetLastNtStatus", &last_status);
    if (code == ERROR_ACCESS_DENIED && last_status && last_status() == delete_pending) return EAGAIN;
    return code == ERROR_DELETE_PENDING ? EAGAIN : xph_windows_errno(code);
}

/* Takes away what a killed writer left; a living writer has it open. */
static int32_t remove_stale(const wchar_t *path)
{
    int32_t kind = EXPHIL_IO_ABSENT, rc = 0;
    if (kind_of_wide(path, &kind) != 0) return why_taken();
    if (kind == EXPHIL_IO_ABSENT) return 0;
    if (kind != EXPHIL_IO_FILE) return EEXIST;
    HANDLE handle = open_alone(path, OPEN_EXISTING);
    if (handle == INVALID_HANDLE_VALUE) {
        rc = why_taken();
        return rc == ENOENT ? 0 : rc;
    }
    rc = delete_opened(handle);
    CloseHandle(handle);
    return rc;
}

/* A new file of our own. EAGAIN: the name was taken and is free now, or soon. */
static int32_t create_once(const wchar_t *path, void **file)
{
    HANDLE handle = open_alone(path, CREATE_NEW);
    if (handle == INVALID_HANDLE_VALUE) {
        int32_t rc = why_taken();
        if (rc != EEXIST) return rc;
        rc = remove_stale(path);
        return rc ? rc : EAGAIN;
    }
    *file = handle;
    return 0;
}

static int32_t open_file(void *user, const char *path, int32_t mode, void **file)
{
    (void)user;
    int32_t rc = EAGAIN;
    if (mode != EXPHIL_IO_READ && mode != EXPHIL_IO_CREATE) return EINVAL;
    wchar_t *wide = xph_wide_path(path, &rc);
    if (!wide) return rc;
    if (mode == EXPHIL_IO_READ) {
        rc = open_existing(wide, file);
    } else {
        for (int i = 0; i < ATTEMPTS && rc == EAGAIN; i++) {
            pause_before(i);
            rc = create_once(wide, file);
        }
        if (rc == EAGAIN) rc = EBUSY;
    }
    xph_wide_free(wide);
    return rc;
}

static int32_t size_of(void *user, void *file, uint64_t *size)
{
    (void)user;
    LARGE_INTEGER bytes;
    if (GetFileType(file) != FILE_TYPE_DISK) return EINVAL;
    if (!GetFileSizeEx(file, &bytes)) return last_errno();
    *size = (uint64_t)bytes.QuadPart;
    return 0;
}

/* The offset comes with each call, so that several threads may read at once. */
static int32_t read_at(void *user, void *file, uint64_t offset, void *data, size_t bytes, size_t *done)
{
    (void)user;
    if (offset > INT64_MAX) return EOVERFLOW;
    OVERLAPPED at = {.Offset = (DWORD)(offset & 0xFFFFFFFFu), .OffsetHigh = (DWORD)(offset >> 32)};
    DWORD got = 0;
    if (!ReadFile(file, data, (DWORD)(bytes < LARGEST_TRANSFER ? bytes : LARGEST_TRANSFER), &got, &at) &&
        GetLastError() != ERROR_HANDLE_EOF)
        return last_errno();
    *done = got;
    return 0;
}

static int32_t write_on(void *user, void *file, const void *data, size_t bytes, size_t *done)
{
    (void)user;
    DWORD written = 0;
    if (!WriteFile(file, data, (DWORD)(bytes < LARGEST_TRANSFER ? bytes : LARGEST_TRANSFER), &written, NULL))
        return last_errno();
    *done = written;
    return 0;
}

static int32_t sync_file(void *user, void *file)
{
    (void)user;
    return FlushFileBuffers(file) ? 0 : last_errno();
}

static int32_t close_file(void *user, void *file)
{
    (void)user;
    return CloseHandle(file) ? 0 : last_errno();
}

/* ---- names --------------------------------------------------------------------------------------------- */

/* "FILE_FLAG_WRITE_THROUGH: NTFS also flushes any metadata changes, such as a time stamp update or a rename operation, that
 * result from processing the request" (CreateFileW, "Caching Behavior"). */
static int32_t rename_posix(const wchar_t *from, const wchar_t *to, bool *refused)
{
    const size_t name_bytes = wcslen(to) * sizeof *to, bytes = sizeof(rename_info) + name_bytes;
    rename_info *info = HeapAlloc(GetProcessHeap(), HEAP_ZERO_MEMORY, bytes);
    if (!info) return ENOMEM;
    info->flags = REPLACE_IF_EXISTS | POSIX_SEMANTICS;
    info->name_bytes = (DWORD)name_bytes;
    memcpy(info->name, to, name_bytes);
    int32_t rc = 0;
    HANDLE handle = CreateFileW(
        from, DELETE | SYNCHRONIZE, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
        OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL | FILE_FLAG_OPEN_REPARSE_POINT | FILE_FLAG_WRITE_THROUGH, NULL);
    if (handle == INVALID_HANDLE_VALUE) {
        rc = last_errno();
    } else {
        if (!SetFileInformationByHandle(handle, RENAME_INFO_EX, info, (DWORD)bytes)) {
            const DWORD code = GetLastError();
            *refused = code == ERROR_INVALID_PARAMETER || code == ERROR_NOT_SUPPORTED ||
                       code == ERROR_INVALID_FUNCTION || code == ERROR_CALL_NOT_IMPLEMENTED;
            rc = xph_windows_errno(code);
        }
        CloseHandle(handle);
    }
    HeapFree(GetProcessHeap(), 0, info);
    return rc;
}

/* File systems other than NTFS know the older call only. */
static int32_t rename_once(const wchar_t *from, const wchar_t *to)
{
    bool refused = false;
    const int32_t rc = rename_posix(from, to, &refused);
    if (!refused) return rc;
    return MoveFileExW(from, to, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH) ? 0 : last_errno();
}

/* Refused here: not every file system does. */
static bool read_only(const wchar_t *path)
{
    const DWORD attributes = GetFileAttributesW(path);
    return attributes != INVALID_FILE_ATTRIBUTES && attributes & FILE_ATTRIBUTE_READONLY;
}

static int32_t rename_file(void *user, const char *from, const char *to)
{
    (void)user;
    int32_t rc = 0;
    wchar_t *wide = xph_wide_path(from, &rc), *target = wide ? xph_wide_path(to, &rc) : NULL;
    const bool refused = target && read_only(target);
    if (refused) rc = EACCES;
    for (int i = 0; target && !refused && i < ATTEMPTS; i++) {
        pause_before(i);
        rc = rename_once(wide, target);
        if (rc != EBUSY && rc != EACCES) break;
    }
    xph_wide_free(target);
    xph_wide_free(wide);
    return rc;
}

static int32_t remove_file(void *user, const char *path)
{
    (void)user;
    int32_t rc = 0;
    wchar_t *wide = xph_wide_path(path, &rc);
    if (!wide) return rc;
    if (!DeleteFileW(wide)) rc = last_errno();
    xph_wide_free(wide);
    return rc;
}

/* A folder has nothing to be flushed by: the rename has written through. */
static int32_t sync_folder(void *user, const char *path)
{
    (void)user;
    (void)path;
    return 0;
}

static int32_t each_name(HANDLE search, WIN32_FIND_DATAW *found, int32_t (*name)(void *to, const char *name),
                         void *to)
{
    char text[4 * MAX_PATH];
    do {
        if (wcscmp(found->cFileName, L".") == 0 || wcscmp(found->cFileName, L"..") == 0) continue;
        if (!xph_narrow(found->cFileName, text, sizeof text)) return EILSEQ;
        const int32_t rc = name(to, text);
        if (rc) return rc;
    } while (FindNextFileW(search, found));
    return GetLastError() == ERROR_NO_MORE_FILES ? 0 : last_errno();
}

static int32_t list_wide(const wchar_t *folder, int32_t (*name)(void *to, const char *name), void *to)
{
    const size_t length = wcslen(folder);
    wchar_t *pattern = HeapAlloc(GetProcessHeap(), 0, (length + 3) * sizeof *pattern);
    if (!pattern) return ENOMEM;
    memcpy(pattern, folder, length * sizeof *pattern);
    memcpy(pattern + length, folder[length - 1] == L'\\' ? L"*" : L"\\*",
           (folder[length - 1] == L'\\' ? 2 : 3) * sizeof *pattern);
    WIN32_FIND_DATAW found;
    HANDLE search = FindFirstFileW(pattern, &found);
    int32_t rc = 0, kind = EXPHIL_IO_ABSENT;
    if (search != INVALID_HANDLE_VALUE) {
        rc = each_name(search, &found, name, to);
        FindClose(search);
    } else {
        const bool none = GetLastError() == ERROR_FILE_NOT_FOUND; /* in the root of an empty drive */
        rc = last_errno();
        if (kind_of_wide(folder, &kind) == 0)
            rc = kind == EXPHIL_IO_FILE ? ENOTDIR : kind == EXPHIL_IO_FOLDER && none ? 0 : rc;
    }
    HeapFree(GetProcessHeap(), 0, pattern);
    return rc;
}

static int32_t list_folder(void *user, const char *folder, int32_t (*name)(void *to, const char *name),
                           void *to)
{
    (void)user;
    int32_t rc = 0;
    wchar_t *wide = xph_wide_path(folder, &rc);
    if (!wide) return rc;
    rc = list_wide(wide, name, to);
    xph_wide_free(wide);
    return rc;
}

const exphil_io xph_system_io = {
    .struct_size = sizeof(exphil_io),
    .kind = kind_of,
    .open = open_file,
    .size = size_of,
    .read = read_at,
    .write = write_on,
    .sync = sync_file,
    .close = close_file,
    .rename = rename_file,
    .remove = remove_file,
    .sync_folder = sync_folder,
    .list = list_folder,
};
