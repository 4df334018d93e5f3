/* Files on Windows: writers that are killed at every step, a full disk, files that others hold open. The program starts itself as
 * the other process. */
#include "files_case_windows.h"

#include <errno.h>
#include <stdio.h>

enum { KILLED = 77 };

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
    };
    return cmocka_run_group_tests(tests, begin_all, end_all);
}
