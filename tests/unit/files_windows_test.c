/* Files on Windows: writers that are killed at every step, a full disk, files that others hold open, and names; where libraries come
 * from. The program starts itself as the other process. */
#define UNICODE
#define WIN32_LEAN_AND_MEAN
#include "test.h"

#include "base/wide_windows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <winioctl.h>

#define TEMPORARY ".exphil-tmp"

enum { PIECES = 6, WORDS = 4096, KILLED = 77, PATH = 2048 };

/* ---- files seen by Windows' own calls ------------------------------------------------------------------ */

static char folder[PATH];

static wchar_t *wide_of(const char *path)
{
    static wchar_t buffer[4][PATH];
    static int at;
    int32_t rc = 0;
    wchar_t *wide = xph_wide_path(path, &rc), *to = buffer[at++ % 4];
    if (!wide) fail_msg("\"%s\" is no path: %d", path, (int)rc);
    assert_true(wcslen(wide) < PATH);
    wcscpy(to, wide);
    xph_wide_free(wide);
    return to;
}

static const char *place(const char *name)
{
    static char buffer[8][PATH];
    static int at;
    char *to = buffer[at++ % 8];
    snprintf(to, PATH, "%s\\%s", folder, name);
    return to;
}

static const char *temporary_of(const char *path)
{
    static char buffer[PATH];
    snprintf(buffer, sizeof buffer, "%s" TEMPORARY, path);
    return buffer;
}

static bool there(const char *path)
{
    return GetFileAttributesW(wide_of(path)) != INVALID_FILE_ATTRIBUTES;
}

static HANDLE hold(const char *path, DWORD access, DWORD share)
{
    HANDLE handle =
        CreateFileW(wide_of(path), access, share, NULL, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
    if (handle == INVALID_HANDLE_VALUE) fail_msg("cannot open \"%s\": %lu", path, GetLastError());
    return handle;
}

static void begin_folder(const char *under)
{
    wchar_t temporary[MAX_PATH + 1];
    char narrow[PATH];
    assert_true(GetTempPathW(MAX_PATH + 1, temporary) > 0);
    assert_true(xph_narrow(temporary, narrow, sizeof narrow));
    bool made = false;
    for (int i = 0; i < 1000 && !made; i++) { /* numbers of processes come again */
        snprintf(folder, sizeof folder, "%s\\exphil files %lu.%d", under ? under : narrow,
                 GetCurrentProcessId(), i);
        made = CreateDirectoryW(wide_of(folder), NULL);
    }
    assert_true(made);
}

static void remove_all(const wchar_t *path)
{
    wchar_t inner[2 * PATH];
    WIN32_FIND_DATAW found;
    swprintf(inner, 2 * PATH, L"%ls\\*", path);
    HANDLE search = FindFirstFileW(inner, &found);
    if (search == INVALID_HANDLE_VALUE) return;
    do {
        if (wcscmp(found.cFileName, L".") == 0 || wcscmp(found.cFileName, L"..") == 0) continue;
        swprintf(inner, 2 * PATH, L"%ls\\%ls", path, found.cFileName);
        SetFileAttributesW(inner, FILE_ATTRIBUTE_NORMAL);
        if (found.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY)
            remove_all(inner);
        else
            DeleteFileW(inner);
    } while (FindNextFileW(search, &found));
    FindClose(search);
    RemoveDirectoryW(path);
}

/* ---- a file of generation n: PIECES times WORDS of the number n ---------------------------------------- */

static exphil_context *context_with(const exphil_io *io)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_context *context = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    config.threads = 1;
    config.io = io;
    if (exphil_context_create(&config, &context, &error) != EXPHIL_OK) fail_msg("%s", error.message);
    return context;
}

static exphil_status save(exphil_context *context, const char *path, uint32_t generation, exphil_error *error)
{
    static uint32_t words[WORDS];
    xph_file_writer writer;
    for (int i = 0; i < WORDS; i++) words[i] = generation;
    XPH_TRY(xph_file_begin(context, path, &writer, error));
    for (int i = 0; i < PIECES; i++) XPH_TRY(xph_file_add(&writer, words, sizeof words, error));
    return xph_file_commit(&writer, error);
}

/* Generation of a whole file; half of one fails the test. */
static uint32_t generation_of(exphil_context *context, const char *path)
{
    static uint32_t words[PIECES * WORDS];
    exphil_error error = EXPHIL_ERROR_INIT;
    xph_file file;
    if (xph_file_open(context, path, INT64_MAX, &file, &error) != EXPHIL_OK) fail_msg("%s", error.message);
    assert_int_equal(file.bytes, sizeof words);
    assert_int_equal(xph_file_read(&file, 0, words, sizeof words, NULL), EXPHIL_OK);
    xph_file_close(&file);
    for (int i = 1; i < PIECES * WORDS; i++) assert_int_equal(words[i], words[0]);
    return words[0];
}

static void assert_generation(const char *path, uint32_t generation)
{
    exphil_context *context = context_with(NULL);
    assert_int_equal(generation_of(context, path), generation);
    exphil_context_destroy(context);
}

static void assert_saves(const char *path, uint32_t generation)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_context *context = context_with(NULL);
    if (save(context, path, generation, &error) != EXPHIL_OK) fail_msg("%s", error.message);
    assert_int_equal(generation_of(context, path), generation);
    assert_false(there(temporary_of(path)));
    exphil_context_destroy(context);
}

/* A save that must fail so; what was there stays, and nothing is left beside it. */
static void assert_refused(const char *path, exphil_status status, int32_t code, int32_t or_code)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_context *context = context_with(NULL);
    assert_int_equal(save(context, path, 999, &error), status);
    if (error.native_code != code && error.native_code != or_code)
        fail_msg("%d instead of %d: %s", (int)error.native_code, (int)code, error.message);
    exphil_context_destroy(context);
}

/* ---- the other process --------------------------------------------------------------------------------- */

/* The system's calls, counted; at one of them the process ends at once. Each is two steps: before it, and after it or, of a
 * write, in the midst of it. */
static int32_t steps, last_step;

static void step(void)
{
    if (++steps == last_step) TerminateProcess(GetCurrentProcess(), KILLED);
}
static int32_t dying_open(void *user, const char *path, int32_t mode, void **file)
{
    step();
    const int32_t rc = xph_system_io.open(user, path, mode, file);
    step();
    return rc;
}
static int32_t dying_write(void *user, void *file, const void *data, size_t bytes, size_t *done)
{
    step();
    const size_t half = WORDS * sizeof(uint32_t) / 2;
    const int32_t rc = xph_system_io.write(user, file, data, bytes > half ? half : bytes, done);
    step();
    return rc;
}
static int32_t dying_sync(void *user, void *file)
{
    step();
    const int32_t rc = xph_system_io.sync(user, file);
    step();
    return rc;
}
static int32_t dying_rename(void *user, const char *from, const char *to)
{
    step();
    const int32_t rc = xph_system_io.rename(user, from, to);
    step();
    return rc;
}
static int32_t dying_close(void *user, void *file)
{
    step();
    const int32_t rc = xph_system_io.close(user, file);
    step();
    return rc;
}

static int other_process(char **arguments)
{
    const char *what = arguments[1], *path = arguments[2];
    const uint32_t generation = (uint32_t)strtoul(arguments[3], NULL, 10);
    exphil_io io = xph_system_io;
    if (strcmp(what, "killed") == 0) {
        last_step = (int32_t)strtol(arguments[4], NULL, 10);
        io.open = dying_open;
        io.write = dying_write;
        io.sync = dying_sync;
        io.rename = dying_rename;
        io.close = dying_close;
    }
    exphil_context *context = context_with(&io);
    if (strcmp(what, "endless") == 0)
        for (uint32_t i = generation;; i++)
            if (save(context, path, i, NULL) != EXPHIL_OK) return 3;
    if (strcmp(what, "holds") == 0) {
        xph_file_writer writer;
        if (xph_file_begin(context, path, &writer, NULL) != EXPHIL_OK) return 4;
        if (xph_file_add(&writer, "half", 4, NULL) != EXPHIL_OK) return 5;
        puts("ready");
        fflush(stdout);
        for (;;) Sleep(1000);
    }
    const exphil_status status = save(context, path, generation, NULL);
    exphil_context_destroy(context);
    return status == EXPHIL_OK ? 0 : 6;
}

typedef struct process {
    HANDLE handle, said; /* what it writes, where that was asked for */
} process;

/* Ends with this process, however that ends: after a failure nobody would end it. */
static void end_with_this(HANDLE other)
{
    static HANDLE job;
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = {.BasicLimitInformation.LimitFlags =
                                                       JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE};
    if (!job) {
        job = CreateJobObjectW(NULL, NULL);
        assert_true(SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits, sizeof limits));
    }
    assert_true(AssignProcessToJobObject(job, other));
}

static process start(const char *what, const char *path, uint32_t generation, int32_t at, bool heard)
{
    static wchar_t self[PATH], command[2 * PATH];
    process made = {0};
    HANDLE to = NULL;
    SECURITY_ATTRIBUTES inherited = {.nLength = sizeof inherited, .bInheritHandle = TRUE};
    STARTUPINFOW info = {.cb = sizeof info};
    PROCESS_INFORMATION process_info;
    assert_true(GetModuleFileNameW(NULL, self, PATH) < PATH);
    swprintf(command, 2 * PATH, L"\"%ls\" %hs \"%ls\" %u %d", self, what, wide_of(path), generation, (int)at);
    if (heard) {
        assert_true(CreatePipe(&made.said, &to, &inherited, 0));
        assert_true(SetHandleInformation(made.said, HANDLE_FLAG_INHERIT, 0));
        info.dwFlags = STARTF_USESTDHANDLES;
        info.hStdOutput = to;
        info.hStdError = GetStdHandle(STD_ERROR_HANDLE);
    }
    assert_true(CreateProcessW(NULL, command, NULL, NULL, heard, 0, NULL, NULL, &info, &process_info));
    CloseHandle(process_info.hThread);
    if (to) CloseHandle(to);
    made.handle = process_info.hProcess;
    end_with_this(made.handle);
    return made;
}

static DWORD end_of(process *of)
{
    DWORD code = 0;
    assert_int_equal(WaitForSingleObject(of->handle, INFINITE), WAIT_OBJECT_0);
    assert_true(GetExitCodeProcess(of->handle, &code));
    CloseHandle(of->handle);
    if (of->said) CloseHandle(of->said);
    return code;
}

/* ---- kill ---------------------------------------------------------------------------------------------- */

/* Old or new, whatever step was the last, and the next writer gets through. */
static void a_writer_killed_at_any_step_leaves_a_whole_file(void **state)
{
    const char *path = place("killed.bin");
    exphil_context *context = context_with(NULL);
    assert_saves(path, 1);
    int32_t at = 1, old = 0, new = 0;
    for (DWORD code = KILLED; code == KILLED; at++) {
        process writer = start("killed", path, 2, at, false);
        code = end_of(&writer);
        assert_true(code == KILLED || code == 0);
        const uint32_t generation = generation_of(context, path);
        assert_true(generation == 1 || generation == 2);
        if (generation == 1)
            old++;
        else
            new ++;
        assert_saves(path, 1);
    }
    print_message("killed at %d steps: %d times the old file, %d times the new one\n", (int)at - 2, (int)old,
                  (int)new - 1);
    assert_true(old > 2 * PIECES && new > 3);
    exphil_context_destroy(context);
}

/* The same from outside, wherever it was. */
static void a_writer_killed_from_outside_leaves_a_whole_file(void **state)
{
    const char *path = place("endless.bin");
    exphil_context *context = context_with(NULL);
    uint32_t generation = 1;
    assert_saves(path, generation);
    for (int round = 0; round < 10; round++) {
        process writer = start("endless", path, generation + 1, 0, false);
        const uint32_t until = generation + 2 + (uint32_t)round;
        /* A reader that never pauses keeps the writer from its rename where renames are not those of POSIX. */
        while (generation_of(context, path) < until)
            assert_int_equal(WaitForSingleObject(writer.handle, 5), WAIT_TIMEOUT);
        assert_true(TerminateProcess(writer.handle, KILLED));
        assert_int_equal(end_of(&writer), KILLED);
        generation = generation_of(context, path);
        assert_true(generation >= until);
        assert_saves(path, ++generation);
    }
    exphil_context_destroy(context);
}

static void a_second_writer_is_told(void **state)
{
    const char *path = place("two.bin");
    char word[6] = {0};
    DWORD got = 0;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_context *context = context_with(NULL);
    assert_saves(path, 1);
    process writer = start("holds", path, 2, 0, true);
    assert_true(ReadFile(writer.said, word, 5, &got, NULL) && got == 5);
    assert_string_equal(word, "ready");
    assert_int_equal(save(context, path, 3, &error), EXPHIL_E_BUSY);
    assert_non_null(strstr(error.message, "being written by somebody else"));
    assert_int_equal(error.native_code, EBUSY);
    assert_int_equal(generation_of(context, path), 1);
    assert_true(there(temporary_of(path)));
    assert_true(TerminateProcess(writer.handle, KILLED));
    assert_int_equal(end_of(&writer), KILLED);
    assert_true(there(temporary_of(path)));
    assert_saves(path, 3);
    exphil_context_destroy(context);
}

/* ---- full disk ----------------------------------------------------------------------------------------- */

/* Windows writes what fits, or nothing, and says ERROR_DISK_FULL. */
static size_t room;
static DWORD full_code;
static int32_t full_write(void *user, void *file, const void *data, size_t bytes, size_t *done)
{
    if (room == 0) return xph_windows_errno(full_code);
    const int32_t rc = xph_system_io.write(user, file, data, bytes < room ? bytes : room, done);
    room -= *done;
    return rc;
}
static int32_t full_sync(void *user, void *file)
{
    return xph_windows_errno(full_code);
}

static void a_full_disk_leaves_the_old_file(void **state)
{
    const DWORD codes[] = {ERROR_DISK_FULL, ERROR_HANDLE_DISK_FULL, 1295 /* ERROR_DISK_QUOTA_EXCEEDED */};
    const char *path = place("full.bin");
    assert_saves(path, 1);
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        for (size_t left = 0; left <= 3 * WORDS * sizeof(uint32_t); left += WORDS + 1) {
            exphil_io io = xph_system_io;
            exphil_error error = EXPHIL_ERROR_INIT;
            room = left;
            full_code = codes[i];
            io.write = full_write;
            exphil_context *context = context_with(&io);
            assert_int_equal(save(context, path, 2, &error), EXPHIL_E_IO);
            assert_int_equal(error.native_code, ENOSPC);
            assert_false(there(temporary_of(path)));
            exphil_context_destroy(context);
            assert_generation(path, 1);
        }
        exphil_io io = xph_system_io;
        exphil_error error = EXPHIL_ERROR_INIT;
        io.sync = full_sync; /* delayed allocation */
        exphil_context *context = context_with(&io);
        assert_int_equal(save(context, path, 2, &error), EXPHIL_E_IO);
        assert_int_equal(error.native_code, ENOSPC);
        assert_false(there(temporary_of(path)));
        exphil_context_destroy(context);
        assert_generation(path, 1);
    }
    assert_saves(path, 2);
}

/* On a real file system of a few hundred kilobytes, where the environment names one. */
static void a_small_disk_is_filled(void **state)
{
    char small[PATH], kept[PATH];
    if (xph_environment("EXPHIL_SMALL_FOLDER", small, sizeof small) < 1) {
        print_message("SKIPPED: EXPHIL_SMALL_FOLDER names no folder of a small disk\n");
        skip();
    }
    memcpy(kept, folder, sizeof kept);
    begin_folder(small);
    exphil_context *context = context_with(NULL);
    exphil_status status = EXPHIL_OK;
    exphil_error error = EXPHIL_ERROR_INIT;
    const char *last = NULL;
    int saved = 0;
    assert_saves(place("old.bin"), 1);
    for (; status == EXPHIL_OK && saved < 1000; saved++) {
        char name[32];
        snprintf(name, sizeof name, "%d.bin", saved);
        last = place(name);
        status = save(context, last, 2, &error);
    }
    assert_int_equal(status, EXPHIL_E_IO);
    assert_int_equal(error.native_code, ENOSPC);
    assert_false(there(last) || there(temporary_of(last)));
    /* In place of a file there is no more room either, and the old one stays. */
    assert_int_equal(save(context, place("old.bin"), 3, &error), EXPHIL_E_IO);
    assert_int_equal(error.native_code, ENOSPC);
    assert_int_equal(generation_of(context, place("old.bin")), 1);
    assert_true(DeleteFileW(wide_of(place("0.bin"))));
    assert_saves(place("old.bin"), 3);
    print_message("%d files fitted\n", saved);
    exphil_context_destroy(context);
    remove_all(wide_of(folder));
    memcpy(folder, kept, sizeof kept);
}

/* ---- what others hold ---------------------------------------------------------------------------------- */

/* Whether this file system takes the place of a file that is open, as POSIX does: NTFS does. */
static bool replaces_open_files(void)
{
    struct {
        DWORD flags;
        HANDLE root;
        DWORD name_bytes;
        wchar_t name[PATH];
    } info = {.flags = 3}; /* FILE_RENAME_FLAG_REPLACE_IF_EXISTS | FILE_RENAME_FLAG_POSIX_SEMANTICS */
    assert_saves(place("posix.bin"), 1);
    HANDLE handle = hold(place("posix.bin"), DELETE | SYNCHRONIZE,
                         FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE);
    wcscpy(info.name, wide_of(place("renamed.bin")));
    info.name_bytes = (DWORD)(wcslen(info.name) * sizeof(wchar_t));
    const bool known = SetFileInformationByHandle(handle, (FILE_INFO_BY_HANDLE_CLASS)22, &info, sizeof info);
    const DWORD code = known ? 0 : GetLastError();
    CloseHandle(handle);
    print_message("renames as POSIX: %s (error %lu)\n", known ? "yes" : "no", code);
    return known;
}

static void a_reader_that_shares_all_is_not_in_the_way(void **state)
{
    const char *path = place("shared.bin");
    const bool replaces = replaces_open_files();
    uint32_t word = 0;
    DWORD got = 0;
    assert_saves(path, 1);
    HANDLE reader = hold(path, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE);
    if (replaces)
        assert_saves(path, 2);
    else
        assert_refused(path, EXPHIL_E_IO, EACCES, EBUSY);
    assert_false(there(temporary_of(path)));
    assert_true(ReadFile(reader, &word, sizeof word, &got, NULL) && got == sizeof word);
    assert_int_equal(word, 1); /* it goes on in what it opened */
    CloseHandle(reader);
    assert_saves(path, 2);
    /* The library's own readers keep nobody from deleting or writing. */
    exphil_context *context = context_with(NULL);
    xph_file file;
    assert_int_equal(xph_file_open(context, path, INT64_MAX, &file, NULL), EXPHIL_OK);
    CloseHandle(hold(path, GENERIC_READ | GENERIC_WRITE | DELETE,
                     FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE));
    assert_true(DeleteFileW(wide_of(path)));
    assert_int_equal(xph_file_read(&file, 4, &word, sizeof word, NULL), EXPHIL_OK);
    assert_int_equal(word, 2);
    xph_file_close(&file);
    assert_false(there(path));
    exphil_context_destroy(context);
}

static void a_target_that_others_keep_is_left(void **state)
{
    const char *path = place("kept.bin");
    const DWORD shares[] = {0, FILE_SHARE_READ, FILE_SHARE_READ | FILE_SHARE_WRITE};
    assert_saves(path, 1);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        HANDLE other = hold(path, GENERIC_READ, shares[i]);
        assert_refused(path, EXPHIL_E_IO, EBUSY, EACCES);
        assert_false(there(temporary_of(path)));
        CloseHandle(other);
        assert_generation(path, 1);
    }
    HANDLE other = hold(path, GENERIC_READ, 0);
    exphil_context *context = context_with(NULL);
    exphil_error error = EXPHIL_ERROR_INIT;
    xph_file file;
    assert_int_equal(xph_file_open(context, path, INT64_MAX, &file, &error), EXPHIL_E_IO);
    assert_int_equal(error.native_code, EBUSY);
    CloseHandle(other);
    exphil_context_destroy(context);
    assert_saves(path, 2);
}

static void a_temporary_that_others_hold_is_busy(void **state)
{
    const char *path = place("locked.bin"), *temporary = temporary_of(path);
    assert_saves(path, 1);
    HANDLE other =
        CreateFileW(wide_of(temporary), GENERIC_WRITE, 0, NULL, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, NULL);
    assert_true(other != INVALID_HANDLE_VALUE);
    assert_refused(path, EXPHIL_E_BUSY, EBUSY, EBUSY);
    assert_true(there(temporary_of(path)));
    CloseHandle(other);
    assert_generation(path, 1);
    assert_saves(path, 2);
    /* Deleted, and kept by somebody who looks at it: the name is waited for. */
    other = CreateFileW(wide_of(temporary_of(path)), GENERIC_READ | DELETE,
                        FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL, CREATE_NEW,
                        FILE_ATTRIBUTE_NORMAL, NULL);
    FILE_DISPOSITION_INFO gone = {.DeleteFile = TRUE};
    assert_true(SetFileInformationByHandle(other, FileDispositionInfo, &gone, sizeof gone));
    assert_refused(path, EXPHIL_E_BUSY, EBUSY, EBUSY);
    CloseHandle(other);
    assert_saves(path, 2);
    /* A folder of that name is not taken away. */
    assert_true(CreateDirectoryW(wide_of(temporary_of(path)), NULL));
    assert_refused(path, EXPHIL_E_IO, EEXIST, EEXIST);
    assert_true(RemoveDirectoryW(wide_of(temporary_of(path))));
    assert_saves(path, 3);
}

/* On POSIX the folder's rights decide; here the file's own. */
static void a_read_only_target_is_left(void **state)
{
    const char *path = place("read only.bin");
    assert_saves(path, 1);
    assert_true(SetFileAttributesW(wide_of(path), FILE_ATTRIBUTE_READONLY));
    assert_refused(path, EXPHIL_E_IO, EACCES, EACCES);
    assert_false(there(temporary_of(path)));
    assert_generation(path, 1);
    assert_true(SetFileAttributesW(wide_of(path), FILE_ATTRIBUTE_NORMAL));
    assert_saves(path, 2);
}

static void a_folder_is_no_file(void **state)
{
    const char *path = place("folder");
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_context *context = context_with(NULL);
    xph_file file;
    assert_true(CreateDirectoryW(wide_of(path), NULL));
    assert_refused(path, EXPHIL_E_IO, 0, 0);
    assert_int_equal(xph_file_open(context, path, INT64_MAX, &file, &error), EXPHIL_E_IO);
    assert_int_equal(error.native_code, EISDIR);
    assert_int_equal(xph_file_open(context, place("nobody.bin"), INT64_MAX, &file, &error), EXPHIL_E_IO);
    assert_int_equal(error.native_code, ENOENT);
    assert_refused(place("nowhere\\a.bin"), EXPHIL_E_IO, ENOENT, ENOENT);
    exphil_context_destroy(context);
}

/* ---- names --------------------------------------------------------------------------------------------- */

static void any_good_name_will_do(void **state)
{
    const char *names[] = {"with spaces in it.bin",
                           "\xC3\xBC\xC3\x9F.bin",
                           "\xE3\x82\xB9\xE3\x83\x9E\xE3\x83\x96\xE3\x83\xA9.bin",
                           "\xF0\x9F\x8E\xAE.bin",
                           ".hidden",
                           "a.b.c",
                           "CONSOLE",
                           "com.bin",
                           "a'b&c(d)%TEMP%!^.bin"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_saves(place(names[i]), (uint32_t)i + 1);
        assert_generation(place(names[i]), (uint32_t)i + 1);
    }
}

static void slashes_and_dots_lead_where_they_say(void **state)
{
    char mixed[PATH];
    assert_true(CreateDirectoryW(wide_of(place("in")), NULL));
    snprintf(mixed, sizeof mixed, "%s/in/../in/./mixed.bin", folder);
    assert_saves(mixed, 4);
    assert_generation(place("in\\mixed.bin"), 4);
    /* Relative, from the current folder. */
    wchar_t before[PATH];
    assert_true(GetCurrentDirectoryW(PATH, before) < PATH);
    for (uint32_t i = 0; i < 2; i++) {
        assert_true(SetCurrentDirectoryW(wide_of(place("in")) + (i ? 0 : 4))); /* without \\?\, and with it */
        assert_saves("relative.bin", 5 + 2 * i);
        assert_saves("../up.bin", 6 + 2 * i);
        assert_true(SetCurrentDirectoryW(before));
        assert_generation(place("in\\relative.bin"), 5 + 2 * i);
        assert_generation(place("up.bin"), 6 + 2 * i);
    }
}

/* wine's servers are folders of its own; on Windows shares are made by administrators. */
static void a_current_folder_may_be_on_a_share(void **state)
{
    char *(*name_of)(const wchar_t *) = NULL;
    const FARPROC found = GetProcAddress(GetModuleHandleW(L"kernel32.dll"), "wine_get_unix_file_name");
    memcpy(&name_of, &found, sizeof name_of);
    if (!name_of) print_message("SKIPPED: shares are made under wine only\n");
    if (!name_of) skip();
    wchar_t servers[PATH], server[PATH], before[PATH], share[PATH];
    const char *drive = name_of(L"C:\\");
    swprintf(servers, PATH, L"\\\\?\\unix%.*hs\\unc", (int)(strstr(drive, "/c:") - drive), drive);
    for (wchar_t *c = servers; (c = wcschr(c, L'/'));) *c = L'\\';
    CreateDirectoryW(servers, NULL);
    swprintf(server, PATH, L"%ls\\exphil-%lu", servers, GetCurrentProcessId());
    swprintf(share, PATH, L"\\\\exphil-%lu\\share", GetCurrentProcessId());
    CreateDirectoryW(server, NULL); /* there from a run that failed, maybe: numbers of processes come again */
    CreateDirectoryW(share, NULL);
    wcscat(share, L"\\in");
    CreateDirectoryW(share, NULL);
    assert_true(GetCurrentDirectoryW(PATH, before) < PATH && SetCurrentDirectoryW(share));
    assert_saves("relative.bin", 5);
    assert_saves("../up.bin", 6);
    wcscat(share, L"\\relative.bin");
    assert_true(GetFileAttributesW(share) != INVALID_FILE_ATTRIBUTES);
    assert_int_equal(wcsncmp(wide_of("\\up.bin"), L"\\\\?\\UNC\\exphil-", 15), 0);
    assert_true(SetCurrentDirectoryW(before));
    remove_all(server);
}

/* Longer than MAX_PATH, in every place. */
static void long_paths_are_paths(void **state)
{
    char path[PATH], part[64];
    memset(part, 'p', sizeof part - 1);
    part[sizeof part - 1] = '\0';
    snprintf(path, sizeof path, "%s", folder);
    for (int i = 0; i < 8; i++) {
        const size_t length = strlen(path);
        snprintf(path + length, sizeof path - length, "\\%s", part);
        assert_true(CreateDirectoryW(wide_of(path), NULL));
    }
    snprintf(path + strlen(path), sizeof path - strlen(path), "\\long.bin");
    assert_true(strlen(path) > 2 * MAX_PATH);
    assert_saves(path, 7);
    for (char *c = path; (c = strchr(c, '\\'));) *c = '/';
    assert_saves(path, 8);
    char exact[PATH];
    assert_true(xph_narrow(wide_of(path), exact, sizeof exact));
    assert_saves(exact, 9); /* with \\?\ */
    for (char *c = exact; (c = strchr(c, '\\'));) *c = '/';
    assert_saves(exact, 10);
    /* A name of more than 255 characters is none. */
    char name[300];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_context *context = context_with(NULL);
    assert_int_equal(save(context, place(name), 1, &error), EXPHIL_E_IO);
    exphil_context_destroy(context);
}

/* What Windows would take for something else is refused before it is opened. */
static void surprising_names_are_refused(void **state)
{
    const char *names[] = {
        "CON",    "nul",         "NUL.txt",       "aux.bin",     "Com1",       "LPT9.safetensors",
        "conin$", "COM\xC2\xB9", "com\xC2\xB2.a", "LPT\xC2\xB3", "COM0",       "nul .txt",
        "dot.",   "space ",      "dots...",       "file:stream", "a*b",        "a?b",
        "a<b",    "a|b",         "a\"b",          "tab\tname",   "NUL\\a.bin", "in.\\a.bin"};
    exphil_context *context = context_with(NULL);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int32_t kind = EXPHIL_IO_ABSENT;
        xph_file file;
        exphil_error error = EXPHIL_ERROR_INIT;
        assert_refused(place(names[i]), EXPHIL_E_IO, EINVAL, EINVAL);
        assert_int_equal(xph_file_open(context, place(names[i]), INT64_MAX, &file, &error), EXPHIL_E_IO);
        assert_int_equal(error.native_code, EINVAL);
        assert_int_equal(xph_path_kind(context, place(names[i]), &kind, &error), EXPHIL_E_IO);
        /* With \\?\ nothing else looks at the name. */
        char verbatim[PATH];
        assert_true(xph_narrow(wide_of(folder), verbatim, PATH));
        assert_true(strlen(verbatim) + strlen(names[i]) + 2 < PATH);
        strcat(strcat(verbatim, "\\"), names[i]);
        assert_refused(verbatim, EXPHIL_E_IO, EINVAL, EINVAL);
    }
    assert_refused("NUL", EXPHIL_E_IO, EINVAL, EINVAL);
    assert_refused("\\\\.\\NUL", EXPHIL_E_IO, EINVAL, EINVAL);
    assert_refused("C:x:y", EXPHIL_E_IO, EINVAL, EINVAL);
    assert_refused(place("\xFF\xFE.bin"), EXPHIL_E_IO, EILSEQ, EILSEQ); /* no UTF-8 */
    exphil_context_destroy(context);
}

static void folders_are_listed_in_utf8(void **state)
{
    exphil_context *context = context_with(NULL);
    exphil_error error = EXPHIL_ERROR_INIT;
    xph_folder found;
    assert_true(CreateDirectoryW(wide_of(place("list")), NULL));
    assert_int_equal(xph_folder_list(context, place("list"), "", &found, NULL), EXPHIL_OK);
    assert_int_equal(found.count, 0);
    xph_folder_free(&found);
    assert_saves(place("list\\b.games"), 1);
    assert_saves(place("list\\\xC3\xA9.games"), 1);
    assert_saves(place("list\\a.other"), 1);
    char spelled
        [4][PATH]; /* as it is, with a separator at the end, with \\?\, and that with the other separator */
    snprintf(spelled[0], PATH, "%s", place("list"));
    snprintf(spelled[1], PATH, "%s/", spelled[0]);
    assert_true(xph_narrow(wide_of(spelled[0]), spelled[2], PATH));
    memcpy(spelled[3], spelled[2], PATH);
    for (char *c = spelled[3]; (c = strchr(c, '\\'));) *c = '/';
    for (int i = 0; i < 4; i++) {
        assert_int_equal(xph_folder_list(context, spelled[i], ".games", &found, NULL), EXPHIL_OK);
        assert_int_equal(found.count, 2);
        assert_string_equal(found.names[0], "b.games");
        assert_string_equal(found.names[1], "\xC3\xA9.games");
        size_t bytes = 0; /* the library puts a / between them */
        char *joined = xph_path_join(context, spelled[i], found.names[1], &bytes);
        assert_generation(joined, 1);
        xph_free(context, joined, bytes);
        xph_folder_free(&found);
    }
    assert_int_equal(xph_folder_list(context, place("none"), "", &found, &error), EXPHIL_E_IO);
    assert_int_equal(error.native_code, ENOENT);
    assert_int_equal(xph_folder_list(context, place("list\\b.games"), "", &found, &error), EXPHIL_E_IO);
    assert_int_equal(error.native_code, ENOTDIR);
    const char *ends[] = {"x/", "x\\", "c:"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t bytes = 0;
        char expected[8], *joined = xph_path_join(context, ends[i], "n", &bytes);
        snprintf(expected, sizeof expected, "%sn", ends[i]);
        assert_string_equal(joined, expected);
        xph_free(context, joined, bytes);
    }
    exphil_context_destroy(context);
}

/* ---- offsets ------------------------------------------------------------------------------------------- */

/* A file with a hole, where the file system makes one. */
static void a_file_may_have_more_than_4_gib(void **state)
{
    const char *path = place("large.bin");
    const uint64_t at = UINT64_C(0x140000010);
    const char *mark = "here";
    DWORD done = 0;
    char read[5] = "";
    HANDLE handle =
        CreateFileW(wide_of(path), GENERIC_WRITE, 0, NULL, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, NULL);
    assert_true(handle != INVALID_HANDLE_VALUE);
    const bool sparse = DeviceIoControl(handle, FSCTL_SET_SPARSE, NULL, 0, NULL, 0, &done, NULL);
    const bool made = sparse &&
                      SetFilePointerEx(handle, (LARGE_INTEGER){.QuadPart = (int64_t)at}, NULL, FILE_BEGIN) &&
                      WriteFile(handle, mark, 4, &done, NULL);
    CloseHandle(handle);
    if (!made) print_message("SKIPPED: the file system has no room for a file of 5 GiB, or no holes\n");
    if (!made) skip();
    exphil_context *context = context_with(NULL);
    xph_file file;
    assert_int_equal(xph_file_open(context, path, INT64_MAX, &file, NULL), EXPHIL_OK);
    assert_true(file.bytes == at + 4);
    assert_int_equal(xph_file_read(&file, at, read, 4, NULL), EXPHIL_OK);
    assert_string_equal(read, mark);
    assert_int_equal(xph_file_read(&file, at & UINT32_MAX, read, 4, NULL), EXPHIL_OK);
    assert_memory_equal(read, "\0\0\0\0", 4);
    xph_file_close(&file);
    exphil_context_destroy(context);
    assert_true(DeleteFileW(wide_of(path)));
}

/* ---- errors -------------------------------------------------------------------------------------------- */

static void errors_have_the_numbers_of_errno(void **state)
{
    static const struct {
        DWORD code;
        int32_t number;
    } known[] = {{ERROR_FILE_NOT_FOUND, ENOENT},
                 {ERROR_PATH_NOT_FOUND, ENOENT},
                 {ERROR_ACCESS_DENIED, EACCES},
                 {ERROR_SHARING_VIOLATION, EBUSY},
                 {ERROR_LOCK_VIOLATION, EBUSY},
                 {ERROR_DISK_FULL, ENOSPC},
                 {ERROR_HANDLE_DISK_FULL, ENOSPC},
                 {1295, ENOSPC},
                 {ERROR_WRITE_PROTECT, EROFS},
                 {ERROR_FILE_EXISTS, EEXIST},
                 {ERROR_INVALID_NAME, EINVAL},
                 {ERROR_DIRECTORY, ENOTDIR},
                 {ERROR_NOT_SAME_DEVICE, EXDEV},
                 {ERROR_NOT_ENOUGH_MEMORY, ENOMEM},
                 {ERROR_CRC, EIO},
                 {ERROR_DELETE_PENDING, EBUSY},
                 {ERROR_FILENAME_EXCED_RANGE, ENAMETOOLONG}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_int_equal(xph_windows_errno(known[i].code), known[i].number);
}

/* ---- libraries and the environment ---------------------------------------------------------------------- */

/* Whoever may write in the current folder or in one of PATH cannot put a library there. */
static void libraries_come_from_where_the_program_is(void **state)
{
    wchar_t self[PATH], before[PATH], path[PATH];
    char reason[256];
    void *library = NULL;
    assert_true(GetModuleFileNameW(NULL, self, PATH) < PATH);
    assert_true(
        CopyFileW(self, wide_of(place("planted.dll")), TRUE)); /* a program is an image as a library is */
    library = xph_library_open(place("planted.dll"), reason, sizeof reason);
    assert_non_null(library);
    xph_library_close(library);
    assert_true(GetCurrentDirectoryW(PATH, before) < PATH);
    assert_true(GetEnvironmentVariableW(L"PATH", path, PATH) < PATH);
    assert_true(SetCurrentDirectoryW(wide_of(folder) + 4));
    assert_null(xph_library_open("planted.dll", reason, sizeof reason));
    assert_non_null(strstr(reason, "was not found"));
    assert_true(SetCurrentDirectoryW(before));
    assert_true(SetEnvironmentVariableW(L"PATH", wide_of(folder) + 4));
    assert_null(xph_library_open("planted.dll", reason, sizeof reason));
    assert_true(SetEnvironmentVariableW(L"PATH", path));
}

static void the_environment_is_utf8(void **state)
{
    char value[8] = "before";
    assert_true(SetEnvironmentVariableW(L"EXPHIL_OF_TEST", NULL));
    assert_int_equal(xph_environment("EXPHIL_OF_TEST", value, sizeof value), -1);
    assert_true(SetEnvironmentVariableW(L"EXPHIL_OF_TEST", L""));
    assert_int_equal(xph_environment("EXPHIL_OF_TEST", value, sizeof value), 0);
    assert_string_equal(value, "");
    assert_true(SetEnvironmentVariableW(L"EXPHIL_OF_TEST", L"a\u00E9\u65E5"));
    assert_int_equal(xph_environment("EXPHIL_OF_TEST", value, sizeof value), 6);
    assert_string_equal(value, "a\xC3\xA9\xE6\x97\xA5");
    assert_true(SetEnvironmentVariableW(L"EXPHIL_OF_TEST", L"longer than its room"));
    assert_int_equal(xph_environment("EXPHIL_OF_TEST", value, sizeof value), 20);
    assert_true(SetEnvironmentVariableW(L"EXPHIL_OF_TEST", NULL));
}

static int begin_all(void **state)
{
    begin_folder(NULL);
    return 0;
}
static int end_all(void **state)
{
    remove_all(wide_of(folder));
    return there(folder);
}

int main(int count, char **arguments)
{
    if (count > 4) return other_process(arguments);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_writer_killed_at_any_step_leaves_a_whole_file),
        cmocka_unit_test(a_writer_killed_from_outside_leaves_a_whole_file),
        cmocka_unit_test(a_second_writer_is_told),
        cmocka_unit_test(a_full_disk_leaves_the_old_file),
        cmocka_unit_test(a_small_disk_is_filled),
        cmocka_unit_test(a_reader_that_shares_all_is_not_in_the_way),
        cmocka_unit_test(a_target_that_others_keep_is_left),
        cmocka_unit_test(a_temporary_that_others_hold_is_busy),
        cmocka_unit_test(a_read_only_target_is_left),
        cmocka_unit_test(a_folder_is_no_file),
        cmocka_unit_test(any_good_name_will_do),
        cmocka_unit_test(slashes_and_dots_lead_where_they_say),
        cmocka_unit_test(a_current_folder_may_be_on_a_share),
        cmocka_unit_test(long_paths_are_paths),
        cmocka_unit_test(surprising_names_are_refused),
        cmocka_unit_test(folders_are_listed_in_utf8),
        cmocka_unit_test(libraries_come_from_where_the_program_is),
        cmocka_unit_test(the_environment_is_utf8),
        cmocka_unit_test(a_file_may_have_more_than_4_gib),
        cmocka_unit_test(errors_have_the_numbers_of_errno),
    };
    return cmocka_run_group_tests(tests, begin_all, end_all);
}
