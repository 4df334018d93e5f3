/* What a file is, by its first bytes and not by its name; and which files may be written. */
#ifndef EXPHIL_CLI_FILES_H
#define EXPHIL_CLI_FILES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

typedef enum file_kind {
    FILE_UNREADABLE, /* absent, or not allowed: errno says why */
    FILE_FOLDER,
    FILE_DEVICE, /* a pipe, a terminal, ...: never read, as the library does */
    FILE_REPLAY,
    FILE_WEIGHTS, /* any safetensors file */
    FILE_CORPUS,  /* of rows */
    FILE_GAMES,   /* a corpus of games */
    FILE_ARCHIVE, /* compressed files too */
    FILE_ONNX,    /* that the library wrote: nothing here reads it */
    FILE_OTHER
} file_kind;

file_kind file_kind_of(const char *path);
/* Does it end in this, and is more than this? */
bool name_ends(const char *name, const char *end);
/* Is this a corpus of games: a file, or a folder in which such files lie? */
bool games_at(const char *path);
/* Is it of the wanted kind? If not, says on stderr what it is, and the hint. */
bool file_wanted(const char *path, file_kind wanted, const char *hint);
/* A regular file to read, at once whatever stands there; NULL: said on stderr why not. */
FILE *file_open(const char *path);
/* The same for text in UTF-8, behind the mark (EF BB BF) with which some programs of Windows begin it. UTF-16 is refused. */
FILE *file_open_text(const char *path);
#define UTF16_WORDS "it is UTF-16, which \">\" of PowerShell writes: save it as UTF-8"
/* Bytes of the mark that a text begins with; -1: it is UTF-16. */
int text_mark(const char *text, size_t bytes);
/* Says on stderr why a file of this kind is of no use. */
void file_refuse(const char *path, file_kind kind, const char *hint);

/* Who writes an output: this program in place, or the library by a temporary beside it, which then replaces it. */
typedef enum output_way { OUTPUT_IN_PLACE, OUTPUT_REPLACED } output_way;

/* Can this file be made: is it absent or a regular file, in a folder that takes it? Tries it with an empty file, which is
 * removed again. *there: it exists. Says on stderr why not, naming the option. */
bool output_possible(const char *option, const char *path, output_way way, bool *there);
/* The same, and what is there already is replaced only by force. */
bool output_free(const char *option, const char *path, output_way way, bool force);
/* Are these two files, so that writing path leaves kept alone? If not, says so on stderr: force is no excuse. Without
 * one of them (NULL) they are. */
bool output_spares(const char *option, const char *path, const char *kept);
/* The same for a corpus of games, which may be a folder of files. */
bool output_spares_games(const char *option, const char *path, const char *kept);
/* What a JSON file holds; NULL: error, which may be NULL, says why not. */
json_t *file_json(const char *path, json_error_t *error);
/* The first bytes of a text, to be freed; NULL: no memory. */
char *text_part(const char *text, size_t bytes);
/* The folder of this path, to be freed; NULL: no memory. */
char *file_folder(const char *path);
/* Replaces a file whole or not at all, synced; false, said on stderr. */
bool file_write_whole(const char *path, const char *data, size_t bytes);
/* Is this the folder, or does it lie right in it? */
bool file_within(const char *path, const char *folder);

#endif
