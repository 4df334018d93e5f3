/* Telling replays, weights and corpora apart: each begins with bytes that the others cannot begin with. Then: what may be
 * written where. */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOOK = 16 };

/* The container of a replay, or its bare event stream: event sizes (0x35) of 3 bytes each behind one of length. */
static bool is_replay(const uint8_t *data, size_t bytes)
{
    static const uint8_t container[] = {'{', 'U', 3, 'r', 'a', 'w'};
    if (bytes >= sizeof container && memcmp(data, container, sizeof container) == 0) return true;
    return bytes >= 8 && data[0] == 0x35 && data[1] >= 4 && data[1] % 3 == 1 && data[2] >= 0x36 &&
           data[2] < 0x50;
}

/* safetensors: length of the header in 8 bytes, little-endian, then JSON. Headers above 100 MB are not allowed. */
static bool is_weights(const uint8_t *data, size_t bytes)
{
    uint64_t header = 0;
    for (size_t i = 0; bytes > 8 && i < 8; i++) header |= (uint64_t)data[i] << 8 * i;
    return bytes > 8 && data[8] == '{' && header >= 2 && header <= 100000000;
}

/* O_NONBLOCK: opening a pipe that nobody writes to must not hang. *kind is FILE_OTHER when there is a file. */
static FILE *open_regular(const char *path, file_kind *kind)
{
    struct stat facts;
    FILE *file = NULL;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    *kind = FILE_UNREADABLE;
    if (descriptor < 0) return NULL;
    bool known = fstat(descriptor, &facts) == 0;
    if (known && S_ISREG(facts.st_mode))
        file = fdopen(descriptor, "rb");
    else if (known)
        *kind = S_ISDIR(facts.st_mode) ? FILE_FOLDER : FILE_DEVICE;
    if (!file) {
        close(descriptor);
        return NULL;
    }
    *kind = FILE_OTHER;
    return file;
}

FILE *file_open(const char *path)
{
    file_kind kind;
    FILE *file = open_regular(path, &kind);
    if (!file) file_refuse(path, kind, "name a file in it");
    return file;
}

file_kind file_kind_of(const char *path)
{
    uint8_t data[LOOK];
    file_kind kind;
    FILE *file = open_regular(path, &kind);
    if (!file) return kind;
    size_t bytes = fread(data, 1, sizeof data, file);
    fclose(file);
    if (is_replay(data, bytes)) return FILE_REPLAY;
    if (bytes >= 8 && memcmp(data, "exphilco", 8) == 0) return FILE_CORPUS;
    return is_weights(data, bytes) ? FILE_WEIGHTS : FILE_OTHER;
}

void file_refuse(const char *path, file_kind kind, const char *hint)
{
    static const char *const texts[] = {[FILE_FOLDER] = "this is a folder",
                                        [FILE_REPLAY] = "this is a replay",
                                        [FILE_WEIGHTS] = "these are weights",
                                        [FILE_CORPUS] = "this is a corpus"};
    if (kind == FILE_UNREADABLE)
        fprintf(stderr, "exphil: %s: %s\n", path, strerror(errno));
    else if (kind == FILE_DEVICE)
        fprintf(stderr, "exphil: %s: this is neither a regular file nor a folder\n", path);
    else if (kind == FILE_OTHER)
        fprintf(stderr, "exphil: %s: this is neither weights, corpus nor replay\n", path);
    else
        fprintf(stderr, "exphil: %s: %s; %s\n", path, texts[kind], hint);
}

bool file_wanted(const char *path, file_kind wanted, const char *hint)
{
    file_kind kind = file_kind_of(path);
    if (kind == wanted) return true;
    file_refuse(path, kind, hint);
    return false;
}

/* ---- outputs ------------------------------------------------------------------------------------------- */

static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == path ? strdup("/") : slash ? strndup(path, (size_t)(slash - path)) : strdup(".");
}

/* May files be made in the folder of this path? */
static bool check_folder(const char *option, const char *path)
{
    char *folder = folder_of(path);
    struct stat facts;
    bool fine = false;
    if (!folder) return false;
    if (stat(folder, &facts) != 0)
        fprintf(stderr, "exphil: --%s %s: folder %s: %s\n", option, path, folder, strerror(errno));
    else if (!S_ISDIR(facts.st_mode))
        fprintf(stderr, "exphil: --%s %s: %s is no folder\n", option, path, folder);
    else if (access(folder, W_OK | X_OK) != 0)
        fprintf(stderr, "exphil: --%s %s: folder %s: %s\n", option, path, folder, strerror(errno));
    else
        fine = true;
    free(folder);
    return fine;
}

bool output_possible(const char *option, const char *path, bool *there)
{
    struct stat facts, results;
    *there = stat(path, &facts) == 0;
    if (strcmp(path, "-") == 0) {
        fprintf(stderr, "exphil: --%s -: this wants a file; one of that name is ./-\n", option);
        return false;
    }
    if (*there && fstat(STDOUT_FILENO, &results) == 0 && results.st_dev == facts.st_dev &&
        results.st_ino == facts.st_ino && S_ISREG(facts.st_mode)) {
        fprintf(stderr, "exphil: --%s %s: that is where the results go; name another file\n", option, path);
        return false;
    }
    if (!*there || S_ISREG(facts.st_mode)) return check_folder(option, path);
    fprintf(stderr, "exphil: --%s %s: that is %s\n", option, path,
            S_ISDIR(facts.st_mode) ? "a folder; name a file in it" : "no regular file");
    return false;
}

bool output_free(const char *option, const char *path, bool force)
{
    bool there;
    if (!output_possible(option, path, &there)) return false;
    if (!there || force) return true;
    fprintf(stderr, "exphil: %s is there already: --force replaces it\n", path);
    return false;
}

static bool same_inode(const char *a, const char *b)
{
    struct stat one, two;
    return stat(a, &one) == 0 && stat(b, &two) == 0 && one.st_dev == two.st_dev && one.st_ino == two.st_ino;
}

/* One file under two names; or one name, in one folder, of a file that is yet to be made. */
static bool same_file(const char *a, const char *b)
{
    const char *name_a = strrchr(a, '/'), *name_b = strrchr(b, '/');
    if (same_inode(a, b)) return true;
    if (strcmp(name_a ? name_a + 1 : a, name_b ? name_b + 1 : b) != 0) return false;
    char *folder_a = folder_of(a), *folder_b = folder_of(b);
    bool same = folder_a && folder_b && same_inode(folder_a, folder_b);
    free(folder_a);
    free(folder_b);
    return same;
}

bool output_spares(const char *option, const char *path, const char *kept)
{
    if (!path || !kept || !same_file(path, kept)) return true;
    fprintf(stderr, "exphil: --%s %s would write over %s, which is needed: name another file\n", option, path,
            kept);
    return false;
}
