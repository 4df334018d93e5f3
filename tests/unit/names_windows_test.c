/* Windows beside files that are saved: names, folders, offsets, numbers of errors, where libraries come from, the environment. */
#include "files_case_windows.h"

#include <errno.h>
#include <stdio.h>
#include <winioctl.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
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
