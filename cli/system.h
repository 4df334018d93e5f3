/* What differs between systems, and what of it the program needs beside the library: one file for POSIX, some for Windows.
 * Paths are UTF-8 with '/' between their parts. What fails leaves its reason in errno. */
#ifndef EXPHIL_CLI_SYSTEM_H
#define EXPHIL_CLI_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>

enum { SYSTEM_PATH = 4096 }; /* bytes of the longest path, with its end */

/* ---- the program -------------------------------------------------------------------------------------- */

/* First in main: arguments become UTF-8 and paths, standard streams take bytes as they are, and files that are opened later
 * do not get the numbers of closed ones. */
void system_begin(int *argc, char ***argv);
/* A path that a person or another program wrote becomes one with '/', in place. */
void system_path(char *text);
/* The extension of shared libraries: ".so", ".dylib", ".dll". */
extern const char system_library_end[];
/* Does a drive stand before the path, as in C:/games? Its bytes; 0: none. */
size_t system_drive(const char *path);
/* A shared library, and a function or variable of it; they stay. everywhere: its names are seen by libraries to come. NULL: not
 * there, and why is a line. */
void *system_library(const char *path, bool everywhere);
void *system_symbol(void *library, const char *name);
const char *system_library_why(void);
/* The folder of worlds: EXPHIL_WORLDS, else where they are installed; NULL: it is not known. */
const char *system_worlds(void);
/* The function of libarchive that opens a file, and the path as it takes it. */
extern const char system_archive_opens[];
const void *system_archive_path(const char *path);
/* Is this stream shown to a person, who sees escape sequences obeyed? */
bool system_terminal(FILE *stream);

/* How many processors this process may use, and as bits which; 0: not known. For ranks: there are none on Windows. */
int64_t system_processors(void *set, size_t bytes);

/* ---- time ---------------------------------------------------------------------------------------------- */

int64_t system_clock_ns(void); /* monotonic */
/* Of seconds since 1970, here or in UTC. */
bool system_date(int64_t seconds, bool utc, struct tm *date);

/* ---- files --------------------------------------------------------------------------------------------- */

typedef struct system_facts {
    bool regular, folder, pipe, other; /* other: there, and neither regular nor a folder */
    uint64_t device, number;           /* equal for one file under two names; number 0: not known */
    uint64_t bytes;
    int64_t modified; /* seconds since 1970 */
} system_facts;

/* Do two paths name one file, or one that is yet to be made? By their letters, not by what is there. */
bool system_same_name(const char *a, const char *b);
/* What a path leads to. */
bool system_look(const char *path, system_facts *facts);
bool system_there(const char *path);
/* Is something there, even a link that leads nowhere? */
bool system_taken(const char *path);
bool system_link(const char *path); /* a symbolic one */
bool system_writable(const char *path);
bool system_writable_folder(const char *path);
/* May a file take the place of this one? errno is EBUSY where another program has it open, which POSIX does not mind. */
bool system_replaceable(const char *path);
/* Is that where stdout goes? */
bool system_stdout_is(const system_facts *facts);

/* fopen; bytes are never changed on their way, whatever the mode says. */
FILE *system_open(const char *path, const char *mode);
/* A new file to write; errno is EEXIST where there is one. */
FILE *system_create(const char *path);
/* A regular file to read, at once whatever stands there. NULL: facts say what it is, or nothing where it cannot be opened. */
FILE *system_open_regular(const char *path, system_facts *facts);
/* In the place of what is there, except of a link: NULL, as for anything else that cannot be written. */
FILE *system_open_anew(const char *path);
/* What was written lies on the disk. */
bool system_sync(FILE *file);
void system_sync_folder(const char *path);
bool system_rename(const char *from, const char *to);
bool system_remove(const char *path);
/* The file that a link leads to, to be freed. */
char *system_real(const char *path);
/* A line with its end, as getline reads it; -1: none is left. */
ptrdiff_t system_line(char **line, size_t *room, FILE *file);

/* A file by its handle, not negative; -1: it cannot be had. Calls may take or give less than was asked for. */
intptr_t system_raw_open(const char *path); /* to read, at once whatever stands there */
intptr_t
system_raw_unnamed(const char *folder);   /* a new one there, gone when the program ends, however that ends */
intptr_t system_raw_again(intptr_t file); /* another handle of it */
bool system_raw_look(intptr_t file, system_facts *facts);
ptrdiff_t system_raw_read(intptr_t file, uint64_t offset, void *to,
                          size_t bytes); /* -1: failed; 0: its end */
ptrdiff_t system_raw_append(intptr_t file, const void *from, size_t bytes);
bool system_raw_close(intptr_t file);

/* ---- folders ------------------------------------------------------------------------------------------- */

bool system_make_folder(const char *path);
/* The names in a folder, one after the other; NULL: all were told. */
typedef struct system_folder system_folder;
system_folder *system_folder_open(const char *path);
const char *system_folder_next(system_folder *folder);
void system_folder_close(system_folder *folder);
/* All of them, in the order of their bytes; -1: they cannot be read. */
int system_names(const char *path, char ***names);
void system_names_free(char **names, int count);
/* Visits what lies below a path, itself too, folders first; a visit of something else than 0 ends it. Returns what ended it, 0,
 * or -1: it could not be read. */
int system_walk(const char *path, int (*visit)(const char *path, const system_facts *facts));
/* Folders for temporary files, the best first; NULL: no more. */
const char *system_temporary(int which);
/* The variable of the environment that names such a folder. */
extern const char system_temporary_variable[];
/* fnmatch without flags: * and ? match '/' too. */
bool system_match(const char *pattern, const char *path);

#endif
