/* Lists of files: command line, folders and files of paths. */
#include "file_list.h"

#include "archive.h"
#include "system.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MOST = 64, PATH_MOST = 4096 };

/* What is in the list already, by what it is and not by its name: an open table of hashes, half empty. */
typedef struct known_set {
    struct known {
        uint64_t device, number, bytes;
    } * of;
    size_t count, capacity; /* capacity: 0 or a power of two; an unused place is all zero */
} known_set;

typedef struct making {
    file_list *list;
    const file_choice *choice;
    const file_rules *rules;
    known_set known;
    const char *from; /* the list that is being read, by its name; NULL: none */
    int64_t line;
} making;

static bool complain_of_list(const char *name, const char *why)
{
    fprintf(stderr, "exphil: --files-from %s: %s\n", name, why);
    return false;
}

static bool no_memory(void)
{
    fprintf(stderr, "exphil: no memory for the list of files\n");
    return false;
}

/* ---- once each ----------------------------------------------------------------------------------------- */

static size_t place_of(const known_set *set, const struct known *key)
{
    uint64_t hash = (key->number * 0x9E3779B97F4A7C15u ^ key->device) * 0xC2B2AE3D27D4EB4Fu;
    size_t at = (size_t)(hash >> 32) & (set->capacity - 1);
    while (set->of[at].number && memcmp(&set->of[at], key, sizeof *key) != 0)
        at = (at + 1) & (set->capacity - 1);
    return at;
}

static bool grow(known_set *set)
{
    known_set wider = {.capacity = set->capacity ? 2 * set->capacity : 1024, .count = set->count};
    wider.of = calloc(wider.capacity, sizeof *wider.of);
    if (!wider.of) return no_memory();
    for (size_t i = 0; i < set->capacity; i++)
        if (set->of[i].number) wider.of[place_of(&wider, &set->of[i])] = set->of[i];
    free(set->of);
    *set = wider;
    return true;
}

/* Notes a file or folder. *repeated: it was there. Systems that number nothing (0) repeat nothing. */
static bool note(known_set *set, const system_facts *facts, bool *repeated)
{
    /* The size of a folder changes. */
    const struct known key = {facts->device, facts->number, facts->folder ? 0 : facts->bytes};
    *repeated = false;
    if (!key.number) return true;
    if (2 * set->count >= set->capacity && !grow(set)) return false;
    struct known *place = &set->of[place_of(set, &key)];
    *repeated = place->number != 0;
    if (!*repeated) set->count++;
    *place = key;
    return true;
}

/* ---- entries ------------------------------------------------------------------------------------------- */

static file_entry *add(making *m, const char *path, file_kind kind)
{
    file_list *list = m->list;
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 64;
        file_entry *wider = realloc(list->of, capacity * sizeof *wider);
        if (!wider) return (void)no_memory(), NULL;
        list->of = wider;
        list->capacity = capacity;
    }
    file_entry *entry = &list->of[list->count];
    *entry = (file_entry){.path = strdup(path), .kind = kind, .line = m->line};
    if (!entry->path) return (void)no_memory(), NULL;
    list->count++;
    return entry;
}

/* Listed only to be told. */
static bool add_problem(making *m, const char *path, const char *problem, bool named)
{
    file_entry *entry = add(m, path, FILE_UNREADABLE);
    if (!entry) return false;
    entry->named = named;
    entry->problem = strdup(problem);
    return entry->problem || no_memory();
}

bool file_excluded(const file_choice *choice, const char *path)
{
    while (strncmp(path, "./", 2) == 0) path += 2;
    const char *slash = strrchr(path, '/');
    for (int i = 0; i < choice->exclude.count; i++)
        if (system_match(choice->exclude.text[i], path) ||
            (slash && system_match(choice->exclude.text[i], slash + 1)))
            return true;
    return false;
}

/* ---- folders ------------------------------------------------------------------------------------------- */

static bool add_folder(making *m, const char *path, int depth);

static char *join(const char *folder, const char *name)
{
    size_t length = strlen(folder) + strlen(name) + 2;
    char *full = malloc(length);
    if (full)
        snprintf(full, length, folder[0] && folder[strlen(folder) - 1] == '/' ? "%s%s" : "%s/%s", folder,
                 name);
    else
        (void)no_memory();
    return full;
}

/* A file of games in a folder. *all: they all come so far. */
static bool add_games(making *m, const char *path, bool *all)
{
    system_facts facts;
    bool repeated = false, is_there = system_look(path, &facts), whole = *all;
    *all = false;
    if (is_there && facts.folder) return true;
    if (file_excluded(m->choice, path)) {
        m->list->excluded++;
        return true;
    }
    if (!is_there) return add_problem(m, path, strerror(errno), false);
    if (!facts.regular) return add_problem(m, path, "this is no regular file", false);
    if (!note(&m->known, &facts, &repeated)) return false;
    m->list->repeated += repeated;
    *all = whole && !repeated;
    return repeated || add(m, path, FILE_GAMES) != NULL;
}

/* The library takes the files of a folder as one corpus, the hidden ones too. */
static bool add_all_games(making *m, const char *folder, char **found, int count)
{
    file_list *list = m->list;
    size_t before = list->count;
    bool fine = true, all = true;
    for (int i = 0; fine && i < count; i++) {
        if (!name_ends(found[i], ".games")) continue;
        char *full = join(folder, found[i]);
        if (found[i][0] == '.')
            all = false;
        else
            fine = full && add_games(m, full, &all);
        free(full);
    }
    if (!fine || !all || list->count == before) return fine;
    while (list->count > before) free(list->of[--list->count].path);
    return add(m, folder, FILE_GAMES) != NULL;
}

/* Something else in a folder: what it is for goes by its name, so that nothing else is opened. */
static bool add_found(making *m, const char *path, int depth)
{
    system_facts facts;
    bool archive = archive_name(path), wanted = archive || name_ends(path, ".slp"), repeated;
    if (name_ends(path, ".games") && (!system_look(path, &facts) || !facts.folder)) return true;
    if (file_excluded(m->choice, path)) {
        m->list->excluded++;
        return true;
    }
    if (!system_look(path, &facts)) return !wanted || add_problem(m, path, strerror(errno), false);
    const bool folder = facts.folder;
    if (!folder && !wanted) return true;
    if (!folder && !facts.regular)
        return add_problem(m, path, "this is neither a regular file nor a folder", false);
    if (folder && depth > DEPTH_MOST)
        return add_problem(m, path, "folders are nested too deeply here", false);
    if (!note(&m->known, &facts, &repeated)) return false;
    m->list->repeated += repeated;
    if (repeated) return true;
    return folder ? add_folder(m, path, depth) : add(m, path, archive ? FILE_ARCHIVE : FILE_REPLAY) != NULL;
}

static bool add_folder(making *m, const char *path, int depth)
{
    char **found;
    int count = system_names(path, &found);
    bool fine = count >= 0 || add_problem(m, path, strerror(errno), depth == 0);
    fine = fine && add_all_games(m, path, found, count);
    for (int i = 0; i < count; i++) {
        const char *name = found[i];
        char *full = fine && name[0] != '.' ? join(path, name) : NULL;
        fine = fine && (name[0] == '.' || (full && add_found(m, full, depth + 1)));
        free(full);
    }
    system_names_free(found, count);
    return fine;
}

/* ---- named files --------------------------------------------------------------------------------------- */

/* Before what is wrong with a file that a list names. */
static void say_place(const making *m)
{
    if (m->from) fprintf(stderr, "exphil: line %" PRId64 " of %s:\n", m->line, m->from);
}

static bool refuse(making *m, const char *path, file_kind kind)
{
    if (m->rules->any) { /* who reads it tells */
        file_entry *entry = add(m, path, kind);
        if (entry) entry->named = !m->from;
        return entry != NULL;
    }
    say_place(m);
    file_refuse(path, kind, kind == FILE_CORPUS ? "a corpus of rows must be the only file" : m->rules->hint);
    return false;
}

/* A folder that somebody named must hold something. */
static bool add_named_folder(making *m, const char *path)
{
    size_t before = m->list->count;
    int64_t left_out = m->list->excluded, repeated = m->list->repeated;
    if (!add_folder(m, path, 0)) return false;
    if (m->list->count > before || m->list->repeated > repeated) return true;
    say_place(m);
    fprintf(stderr, "exphil: no .slp and no .games in %s", path);
    if (m->list->excluded > left_out)
        fprintf(stderr, " but what --exclude leaves out (%" PRId64 ")", m->list->excluded - left_out);
    fprintf(stderr, "\n");
    return false;
}

/* "a.zip:dir/game.slp", which is no file: cuts it in two. */
static char *split_archive(char *path)
{
    for (char *colon = strchr(path, ':'); colon; colon = strchr(colon + 1, ':')) {
        *colon = 0;
        if (file_kind_of(path) == FILE_ARCHIVE) return colon + 1;
        *colon = ':';
    }
    return NULL;
}

static bool add_inside(making *m, const char *path, file_kind kind)
{
    int number = errno;
    char *copy = strdup(path), *inside = copy ? split_archive(copy) : NULL;
    file_entry *entry = inside ? add(m, copy, FILE_ARCHIVE) : NULL;
    bool fine = entry != NULL;
    if (entry) {
        entry->named = true;
        entry->inside = strdup(inside);
        fine = entry->inside || no_memory();
    }
    free(copy);
    errno = number;
    return inside ? fine : refuse(m, path, kind);
}

/* The command line's only file may be a corpus, and a list names none. */
static bool add_named(making *m, const char *path, bool alone)
{
    system_facts facts;
    bool repeated = false;
    if (file_excluded(m->choice, path)) {
        m->list->excluded++;
        return true;
    }
    errno = 0;
    file_kind kind = file_kind_of(path);
    if (kind == FILE_UNREADABLE && (errno == ENOENT || errno == ENOTDIR)) return add_inside(m, path, kind);
    bool wanted = kind == FILE_REPLAY || kind == FILE_ARCHIVE || kind == FILE_FOLDER || kind == FILE_GAMES ||
                  (kind == FILE_CORPUS && alone && !m->rules->any) || (kind == FILE_OTHER && m->from);
    if (!wanted) return refuse(m, path, kind);
    if (system_look(path, &facts) && !note(&m->known, &facts, &repeated)) return false;
    m->list->repeated += repeated;
    if (repeated) return true;
    if (kind == FILE_FOLDER) return add_named_folder(m, path);
    file_entry *entry = add(m, path, kind);
    if (entry) entry->named = !m->from;
    return entry != NULL;
}

/* ---- a file of paths ----------------------------------------------------------------------------------- */

typedef struct listed {
    const char *path;
    int64_t line;
} listed;

static int by_path(const void *a, const void *b)
{
    const listed *one = a, *two = b;
    int order = strcmp(one->path, two->path);
    return order ? order : (one->line > two->line) - (one->line < two->line);
}

/* All of a stream; NULL: said on stderr why not. A list may come out of a pipe. */
static char *read_all(FILE *file, const char *name, size_t *bytes)
{
    char *text = NULL;
    size_t capacity = 0;
    *bytes = 0;
    do {
        if (*bytes + 1 >= capacity) {
            char *wider = realloc(text, capacity = capacity ? 2 * capacity : 65536);
            if (!wider) return free(text), (void)no_memory(), NULL;
            text = wider;
        }
        *bytes += fread(text + *bytes, 1, capacity - 1 - *bytes, file);
    } while (!feof(file) && !ferror(file));
    text[*bytes] = 0;
    if (!ferror(file)) return text;
    complain_of_list(name, strerror(errno));
    free(text);
    return NULL;
}

static bool bad_line(const making *m, int64_t line, const char *why)
{
    fprintf(stderr, "exphil: line %" PRId64 " of %s %s\n", line, m->from, why);
    return false;
}

/* Cuts the text into paths, in place; empty ones are passed over. */
static bool cut(const making *m, char *text, size_t bytes, listed *to, size_t *count)
{
    const char end = m->choice->null_ended ? 0 : '\n';
    int64_t line = 0;
    *count = 0;
    for (char *at = text; at < text + bytes;) {
        char *stop = memchr(at, end, (size_t)(text + bytes - at));
        if (!stop) stop = text + bytes;
        line++;
        if (memchr(at, 0, (size_t)(stop - at)))
            return bad_line(m, line, "holds a NUL byte; --null is for lists whose paths end with one");
        *stop = 0;
        if (end && stop > at && stop[-1] == '\r') stop[-1] = 0;
        system_path(at);
        if (strlen(at) >= PATH_MOST) return bad_line(m, line, "is longer than a path may be");
        if (*at) to[(*count)++] = (listed){at, line};
        at = stop + 1;
    }
    return true;
}

static size_t lines_of(const char *text, size_t bytes, char end)
{
    size_t count = 1;
    for (size_t i = 0; i < bytes; i++) count += text[i] == end;
    return count;
}

static bool add_listed(making *m, char *text, size_t bytes)
{
    size_t count = 0, most = lines_of(text, bytes, m->choice->null_ended ? 0 : '\n');
    listed *list = malloc(most * sizeof *list);
    bool fine = list ? cut(m, text, bytes, list, &count) : no_memory();
    if (fine) qsort(list, count, sizeof *list, by_path);
    for (size_t i = 0; fine && i < count; i++) {
        m->line = list[i].line;
        fine = add_named(m, list[i].path, false);
    }
    if (fine && count == 0) {
        fprintf(stderr, "exphil: %s names no file\n", m->from);
        fine = false;
    }
    free(list);
    return fine;
}

static bool add_list(making *m)
{
    const char *path = m->choice->from;
    bool standard = strcmp(path, "-") == 0;
    size_t bytes;
    m->from = standard ? "standard input" : path;
    FILE *file = standard ? stdin : system_open(path, "rb");
    if (!file) return complain_of_list(path, strerror(errno));
    char *text = read_all(file, m->from, &bytes);
    if (!standard) fclose(file);
    const int mark = text && !m->choice->null_ended ? text_mark(text, bytes) : 0;
    bool fine = text && (mark < 0 ? complain_of_list(m->from, UTF16_WORDS)
                                  : add_listed(m, text + mark, bytes - (size_t)mark));
    free(text);
    return fine;
}

/* ---- public -------------------------------------------------------------------------------------------- */

bool file_list_make(file_list *list, const file_choice *choice, const file_rules *rules, int count,
                    char **paths)
{
    making m = {.list = list, .choice = choice, .rules = rules};
    *list = (file_list){.of = NULL};
    bool fine = true;
    if (choice->null_ended && !choice->from) {
        fprintf(stderr, "exphil: --null goes with --files-from\n");
        fine = false;
    }
    for (int i = 0; fine && i < count; i++) fine = add_named(&m, paths[i], count == 1 && !choice->from);
    if (fine && choice->from) fine = add_list(&m);
    if (fine && list->count == 0) {
        fprintf(stderr, "exphil: nothing is left of what was named: --exclude leaves all of it out\n");
        fine = false;
    }
    free(m.known.of);
    return fine;
}

void file_list_free(file_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->of[i].path);
        free(list->of[i].inside);
        free(list->of[i].problem);
    }
    free(list->of);
    *list = (file_list){.of = NULL};
}

bool file_visit(const file_entry *entry, const file_choice *choice, file_visitor visitor, void *user)
{
    const file_item item = {.name = entry->path,
                            .path = entry->path,
                            .problem = entry->problem,
                            .line = entry->line,
                            .named = entry->named,
                            .games = entry->kind == FILE_GAMES};
    if (entry->kind != FILE_ARCHIVE) return visitor(user, &item);
    return archive_visit(&item, entry->inside, choice, visitor, user);
}

bool file_list_visit(const file_list *list, const file_choice *choice, file_visitor visitor, void *user)
{
    for (size_t i = 0; i < list->count; i++)
        if (!file_visit(&list->of[i], choice, visitor, user)) return false;
    return true;
}
