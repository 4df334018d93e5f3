/* Folders of the program on Windows, and patterns of names. See system.h. */
#include "system_windows.h"

#include "system.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool system_make_folder(const char *path)
{
    wchar_t *wide = wide_path(path);
    bool fine = wide && (CreateDirectoryW(wide, NULL) || wide_failed());
    xph_wide_free(wide);
    return fine;
}

/* ---- names in a folder --------------------------------------------------------------------------------- */

struct system_folder {
    HANDLE search;
    WIN32_FIND_DATAW found;
    bool more;
    char name[4 * MAX_PATH];
};

static HANDLE search_begin(const char *path, WIN32_FIND_DATAW *found)
{
    static const wchar_t all[] = L"\\*";
    HANDLE search = INVALID_HANDLE_VALUE;
    wchar_t *wide = wide_path(path);
    const size_t length = wide ? wcslen(wide) : 0;
    wchar_t *pattern = wide ? malloc(length * sizeof *wide + sizeof all) : NULL;
    if (pattern) {
        const bool open = length && wide[length - 1] == L'\\';
        memcpy(pattern, wide, length * sizeof *wide);
        memcpy(pattern + length, all + open, sizeof all - open * sizeof *all);
        search = FindFirstFileW(pattern, found);
        if (search == INVALID_HANDLE_VALUE) (void)wide_failed();
    }
    free(pattern);
    xph_wide_free(wide);
    return search;
}

system_folder *system_folder_open(const char *path)
{
    system_folder *folder = malloc(sizeof *folder);
    if (!folder) return NULL;
    folder->search = search_begin(path, &folder->found);
    folder->more = folder->search != INVALID_HANDLE_VALUE;
    if (folder->more) return folder;
    free(folder);
    return NULL;
}

/* A name that is not UTF-16, which NTFS allows, gets a sign in the place of what is wrong, and is then not found. */
const char *system_folder_next(system_folder *folder)
{
    if (!folder->more) return NULL;
    if (!WideCharToMultiByte(CP_UTF8, 0, folder->found.cFileName, -1, folder->name, sizeof folder->name, NULL,
                             NULL))
        folder->name[0] = 0;
    folder->more = FindNextFileW(folder->search, &folder->found);
    return folder->name;
}

void system_folder_close(system_folder *folder)
{
    (void)FindClose(folder->search);
    free(folder);
}

/* ---- what lies below ----------------------------------------------------------------------------------- */

enum { DEPTH_MOST = 64 };

static int walk(const char *path, int depth, int (*visit)(const char *path, const system_facts *facts))
{
    system_facts facts;
    char **names, below[SYSTEM_PATH];
    if (!system_look(path, &facts)) return depth ? 0 : -1;
    int ended = visit(path, &facts);
    /* A link may lead back. */
    if (ended || !facts.folder || depth > DEPTH_MOST || (depth && system_link(path))) return ended;
    int count = system_names(path, &names);
    bool slash = *path && path[strlen(path) - 1] == '/';
    for (int i = 0; i < count && !ended; i++) {
        if (strcmp(names[i], ".") == 0 || strcmp(names[i], "..") == 0) continue;
        if (snprintf(below, sizeof below, "%s%s%s", path, slash ? "" : "/", names[i]) < (int)sizeof below)
            ended = walk(below, depth + 1, visit);
    }
    if (count >= 0) system_names_free(names, count);
    return ended;
}

int system_walk(const char *path, int (*visit)(const char *path, const system_facts *facts))
{
    return walk(path, 0, visit);
}

/* ---- temporary files ----------------------------------------------------------------------------------- */

const char system_temporary_variable[] = "TMP";

/* GetTempPath: of TMP, TEMP and USERPROFILE the first that is set. */
const char *system_temporary(int which)
{
    static char folder[SYSTEM_PATH];
    wchar_t wide[MAX_PATH + 2];
    DWORD units = which == 0 ? GetTempPathW(MAX_PATH + 1, wide) : 0;
    char *found = units && units <= MAX_PATH ? narrow_text(wide) : NULL;
    if (!found) return which == 0 ? "." : NULL;
    system_path(found);
    (void)snprintf(folder, sizeof folder, "%s", found);
    free(found);
    size_t length = strlen(folder);
    if (length > 3 && folder[length - 1] == '/') folder[length - 1] = 0;
    return folder;
}

/* ---- patterns ------------------------------------------------------------------------------------------ */

/* One letter of UTF-8. */
static const char *next_letter(const char *at)
{
    for (at++; (*at & 0xc0) == 0x80; at++) continue;
    return at;
}

/* Does a letter fit the set behind '['? *behind: what is behind its ']'; NULL: there is none, and '[' is a letter. Ranges are
 * of bytes. */
static bool in_set(const char *set, char letter, const char **behind)
{
    bool not = *set == '!' || *set == '^', in = false;
    const char *at = set + not, *first = at;
    for (; *at && (*at != ']' || at == first); at++) {
        if (at[1] == '-' && at[2] && at[2] != ']') {
            in = in || ((unsigned char)letter >= (unsigned char)at[0] &&
                        (unsigned char)letter <= (unsigned char)at[2]);
            at += 2;
        } else {
            in = in || *at == letter;
        }
    }
    *behind = *at ? at + 1 : NULL;
    return in != not ;
}

/* After a '*' that fits less it is tried with one letter more; the last one alone needs to be. */
bool system_match(const char *pattern, const char *path)
{
    const char *star = NULL, *from = NULL, *behind = NULL;
    while (*path) {
        bool set = *pattern == '[', in = set && in_set(pattern + 1, *path, &behind);
        if (*pattern == '*') {
            star = ++pattern;
            from = path;
        } else if (*pattern == '?') {
            pattern++;
            path = next_letter(path);
        } else if (set && behind ? in : *pattern == *path) {
            pattern = set && behind ? behind : pattern + 1;
            path++;
        } else if (star) {
            pattern = star;
            path = from = next_letter(from);
        } else {
            return false;
        }
    }
    while (*pattern == '*') pattern++;
    return !*pattern;
}
