/* See files_case_windows.h. */
#include "files_case_windows.h"

/* ---- files seen by Windows' own calls ------------------------------------------------------------------ */

char folder[PATH];

wchar_t *wide_of(const char *path)
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

const char *place(const char *name)
{
    static char buffer[8][PATH];
    static int at;
    char *to = buffer[at++ % 8];
    snprintf(to, PATH, "%s\\%s", folder, name);
    return to;
}

const char *temporary_of(const char *path)
{
    static char buffer[PATH];
    snprintf(buffer, sizeof buffer, "%s" TEMPORARY, path);
    return buffer;
}

bool there(const char *path)
{
    return GetFileAttributesW(wide_of(path)) != INVALID_FILE_ATTRIBUTES;
}

HANDLE hold(const char *path, DWORD access, DWORD share)
{
    HANDLE handle =
        CreateFileW(wide_of(path), access, share, NULL, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
    if (handle == INVALID_HANDLE_VALUE) fail_msg("cannot open \"%s\": %lu", path, GetLastError());
    return handle;
}

void begin_folder(const char *under)
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

void remove_all(const wchar_t *path)
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

exphil_context *context_with(const exphil_io *io)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_context *context = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    config.threads = 1;
    config.io = io;
    if (exphil_context_create(&config, &context, &error) != EXPHIL_OK) fail_msg("%s", error.message);
    return context;
}

exphil_status save(exphil_context *context, const char *path, uint32_t generation, exphil_error *error)
{
    static uint32_t words[WORDS];
    xph_file_writer writer;
    for (int i = 0; i < WORDS; i++) words[i] = generation;
    XPH_TRY(xph_file_begin(context, path, &writer, error));
    for (int i = 0; i < PIECES; i++) XPH_TRY(xph_file_add(&writer, words, sizeof words, error));
    return xph_file_commit(&writer, error);
}

/* Generation of a whole file; half of one fails the test. */
uint32_t generation_of(exphil_context *context, const char *path)
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

void assert_generation(const char *path, uint32_t generation)
{
    exphil_context *context = context_with(NULL);
    assert_int_equal(generation_of(context, path), generation);
    exphil_context_destroy(context);
}

void assert_saves(const char *path, uint32_t generation)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_context *context = context_with(NULL);
    if (save(context, path, generation, &error) != EXPHIL_OK) fail_msg("%s", error.message);
    assert_int_equal(generation_of(context, path), generation);
    assert_false(there(temporary_of(path)));
    exphil_context_destroy(context);
}

/* A save that must fail so; what was there stays, and nothing is left beside it. */
void assert_refused(const char *path, exphil_status status, int32_t code, int32_t or_code)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_context *context = context_with(NULL);
    assert_int_equal(save(context, path, 999, &error), status);
    if (error.native_code != code && error.native_code != or_code)
        fail_msg("%d instead of %d: %s", (int)error.native_code, (int)code, error.message);
    exphil_context_destroy(context);
}
