/* Which replays a command takes: files, folders, archives and lists of them, as one list without repetitions. */
#ifndef EXPHIL_CLI_FILE_LIST_H
#define EXPHIL_CLI_FILE_LIST_H

#include "files.h"
#include "options.h"

#include <stddef.h>

/* What options say, beside the files on the command line. */
typedef struct file_choice {
    const char *from; /* a file of paths, - for standard input; NULL: none */
    bool null_ended;  /* in it a NUL ends a path, not a line end */
    text_list exclude;
} file_choice;

#define FILE_OPTIONS(c)                                                                                      \
  {"files-from", OPTION_TEXT, &(c).from, "LIST",                                                             \
   "also the files and folders that LIST names, one a line; - reads standard input (default: none)"},        \
      {"null", OPTION_FLAG, &(c).null_ended, NULL,                                                           \
       "a NUL ends each path of LIST, as find -print0 writes them (default: a line end)"},                   \
  {                                                                                                          \
    "exclude", OPTION_TEXTS, &(c).exclude, "PATTERN",                                                        \
        "leave out what matches, by path or by name: '*/old/*', 'test*'; may be repeated (default: nothing)" \
  }

/* A file of the list. */
typedef struct file_entry {
    char *path;
    char *inside;  /* of an archive this entry alone; NULL: all */
    char *problem; /* NULL, or why it cannot be read */
    int64_t line;  /* of the list that names it; 0: the command line or a folder does */
    file_kind kind;
    bool named; /* by itself, on the command line: it must be readable */
} file_entry;

typedef struct file_list {
    file_entry *of;
    size_t count, capacity;
    int64_t excluded; /* by a pattern; of a folder nothing else is counted */
    int64_t repeated; /* files and folders that were there already, under this name or another */
} file_list;

typedef struct file_rules {
    const char *hint; /* what to say of weights */
    bool any;         /* what is no replay is listed too: who reads it tells */
} file_rules;

/* Command line first, in its order; then the list, bytewise by path. A folder's files follow bytewise by name, folder by
 * folder: replays (.slp), archives and corpora of games (.games) by their names, links followed, hidden ones not. The
 * corpora of games of one folder come first, as one, under the folder's name; one by one where not all of them come. Each
 * file and each folder comes once. False: said on stderr what is wrong, with the line of the list. Free it in any case. */
bool file_list_make(file_list *list, const file_choice *choice, const file_rules *rules, int count,
                    char **paths);
void file_list_free(file_list *list);
bool file_excluded(const file_choice *choice, const char *path);

/* A replay: a file, or bytes out of an archive. Or a corpus of games. */
typedef struct file_item {
    const char *name; /* for people: the path, or "a.zip:game.slp" */
    const char *path; /* on the disk: the replay, or the archive */
    const void *data; /* NULL: the file at path is the replay */
    size_t bytes;
    const char *problem; /* not NULL: it cannot be read, and this is why */
    int64_t line;
    bool named, inside; /* inside: one of the entries of an archive */
    bool games;         /* no replay: a corpus of games, which may be a folder */
} file_item;

/* False stops. */
typedef bool (*file_visitor)(void *user, const file_item *item);
bool file_visit(const file_entry *entry, const file_choice *choice, file_visitor visitor, void *user);
/* The same for all of the list. */
bool file_list_visit(const file_list *list, const file_choice *choice, file_visitor visitor, void *user);

#endif
