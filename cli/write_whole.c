/* A small file, replaced whole or not at all: a temporary beside it, synced, renamed over it, then the folder synced. */
#include "files.h"

#include "commands.h"
#include "system.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SUFFIX ".exphil-tmp"

static bool make_temporary(const char *path, const char *data, size_t bytes)
{
    FILE *file = system_open_anew(path);
    if (!file) return false;
    bool fine = fwrite(data, 1, bytes, file) == bytes && system_sync(file);
    int number = errno;
    if (fclose(file) != 0 && fine) return false;
    errno = number;
    return fine;
}

static void sync_folder(const char *path)
{
    char *folder = file_folder(path);
    if (folder) system_sync_folder(folder);
    free(folder);
}

bool file_write_whole(const char *path, const char *data, size_t bytes)
{
    size_t length = strlen(path) + sizeof SUFFIX;
    char *temporary = malloc(length);
    if (!temporary) {
        fprintf(stderr, "exphil: %s: no memory\n", path);
        return false;
    }
    (void)snprintf(temporary, length, "%s" SUFFIX, path);
    bool fine = make_temporary(temporary, data, bytes) && system_rename(temporary, path);
    if (!fine) {
        (void)complain_of_file(path);
        (void)system_remove(temporary);
    }
    free(temporary);
    if (fine) sync_folder(path);
    return fine;
}
