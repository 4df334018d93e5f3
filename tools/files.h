/* What a file is, by its first bytes and not by its name; and which files may be written. */
#ifndef EXPHIL_TOOLS_FILES_H
#define EXPHIL_TOOLS_FILES_H

#include <stdbool.h>

typedef enum file_kind {
    FILE_UNREADABLE, /* absent, or not allowed: errno says why */
    FILE_FOLDER,
    FILE_REPLAY,
    FILE_WEIGHTS, /* any safetensors file */
    FILE_CORPUS,
    FILE_OTHER
} file_kind;

file_kind file_kind_of(const char *path);
/* Is it of the wanted kind? If not, says on stderr what it is, and the hint. */
bool file_wanted(const char *path, file_kind wanted, const char *hint);
/* Says on stderr why a file of this kind is of no use. */
void file_refuse(const char *path, file_kind kind, const char *hint);

/* May this file be made: is it absent or a regular file, in a folder that takes files? *there: it exists. Says on
 * stderr why not, naming the option. */
bool output_possible(const char *option, const char *path, bool *there);
/* The same, and what is there already is replaced only by force. */
bool output_free(const char *option, const char *path, bool force);

#endif
