/* A small file, replaced whole or not at all: a temporary beside it, synced, renamed over it, then the folder synced. */
#include "files.h"

#include "commands.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUFFIX ".exphil-tmp"

static bool write_all(int descriptor, const char *data, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        ssize_t wrote = write(descriptor, data + at, bytes - at);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) return false;
        at += (size_t)wrote;
    }
    return fsync(descriptor) == 0;
}

static bool make_temporary(const char *path, const char *data, size_t bytes)
{
    int descriptor = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor < 0) return false;
    bool fine = write_all(descriptor, data, bytes);
    int number = errno;
    close(descriptor);
    errno = number;
    return fine;
}

static void sync_folder(const char *path)
{
    char *folder = file_folder(path);
    int descriptor = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (descriptor >= 0) {
        (void)fsync(descriptor);
        close(descriptor);
    }
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
    bool fine = make_temporary(temporary, data, bytes) && rename(temporary, path) == 0;
    if (!fine) {
        (void)complain_of_file(path);
        (void)unlink(temporary);
    }
    free(temporary);
    if (fine) sync_folder(path);
    return fine;
}
