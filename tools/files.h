/* What a file is, by its first bytes and not by its name. */
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

#endif
