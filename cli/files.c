/* Telling replays, weights and corpora apart: each begins with bytes that the others cannot begin with. Also
 * which files may be written. */
#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOOK = 264, TAR_MAGIC = 257 };

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

/* gzip, bzip2, xz, zstd, zip (an empty one too), 7z, tar. */
static bool is_archive(const uint8_t *data, size_t bytes)
{
    static const struct {
        size_t at, bytes;
        const char *magic;
    } known[] = {{0, 3, "\x1f\x8b\x08"},
                 {0, 3, "BZh"},
                 {0, 6,
                  "\xfd"
                  "7zXZ\0"},
                 {0, 4, "\x28\xb5\x2f\xfd"},
                 {0, 4, "PK\x03\x04"},
                 {0, 4, "PK\x05\x06"},
                 {0, 6, "7z\xbc\xaf\x27\x1c"},
                 {TAR_MAGIC, 5, "ustar"}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (bytes >= known[i].at + known[i].bytes &&
            memcmp(data + known[i].at, known[i].magic, known[i].bytes) == 0)
            return true;
    return false;
}

/* IR 8, then its producer, as exphil_model_export_onnx begins. */
static bool is_onnx(const uint8_t *data, size_t bytes)
{
    static const char start[] = "\x08\x08\x12\x09libexphil";
    return bytes >= sizeof start - 1 && memcmp(data, start, sizeof start - 1) == 0;
}

/* By the version of the format: rows before 3. */
static file_kind corpus_kind(const uint8_t *data, size_t bytes)
{
    uint32_t version = 0;
    for (size_t i = 0; bytes >= 12 && i < 4; i++) version |= (uint32_t)data[8 + i] << 8 * i;
    return version >= 3 ? FILE_GAMES : FILE_CORPUS;
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
    if (bytes >= 8 && memcmp(data, "exphilco", 8) == 0) return corpus_kind(data, bytes);
    if (is_weights(data, bytes)) return FILE_WEIGHTS;
    if (is_onnx(data, bytes)) return FILE_ONNX;
    return is_archive(data, bytes) ? FILE_ARCHIVE : FILE_OTHER;
}

bool name_ends(const char *name, const char *end)
{
    size_t length = strlen(name), bytes = strlen(end);
    return length > bytes && strcmp(name + length - bytes, end) == 0;
}

bool games_at(const char *path)
{
    file_kind kind = file_kind_of(path);
    bool found = kind == FILE_GAMES;
    DIR *folder = kind == FILE_FOLDER ? opendir(path) : NULL;
    for (const struct dirent *entry; folder && !found && (entry = readdir(folder)) != NULL;)
        found = name_ends(entry->d_name, ".games");
    if (folder) closedir(folder);
    return found;
}

void file_refuse(const char *path, file_kind kind, const char *hint)
{
    static const char *const texts[] = {[FILE_FOLDER] = "this is a folder",
                                        [FILE_REPLAY] = "this is a replay",
                                        [FILE_WEIGHTS] = "these are weights",
                                        [FILE_CORPUS] = "this is a corpus",
                                        [FILE_GAMES] = "this is a corpus of games",
                                        [FILE_ARCHIVE] = "this is an archive or a compressed file"};
    if (kind == FILE_UNREADABLE)
        fprintf(stderr, "exphil: %s: %s\n", path, strerror(errno));
    else if (kind == FILE_DEVICE)
        fprintf(stderr, "exphil: %s: this is neither a regular file nor a folder\n", path);
    else if (kind == FILE_ONNX)
        fprintf(stderr,
                "exphil: %s: this is an ONNX file of exphil export, for other runtimes; give the weights "
                "that it was made "
                "of\n",
                path);
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

char *file_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == path ? strdup("/") : slash ? strndup(path, (size_t)(slash - path)) : strdup(".");
}

static bool refuse_output(const char *option, const char *path, const char *why)
{
    fprintf(stderr, "exphil: --%s %s: %s\n", option, path, why);
    return false;
}

/* Is there the folder of this path? Which it is stands in the message. */
static bool check_folder(const char *option, const char *path)
{
    char *folder = file_folder(path);
    struct stat facts;
    const char *why = NULL;
    if (!folder) return refuse_output(option, path, "no memory");
    if (stat(folder, &facts) != 0)
        why = strerror(errno);
    else if (!S_ISDIR(facts.st_mode))
        why = "that is no folder";
    else if (access(folder, W_OK | X_OK) != 0)
        why = strerror(errno);
    if (why) fprintf(stderr, "exphil: --%s %s: folder %s: %s\n", option, path, folder, why);
    free(folder);
    return !why;
}

/* As long as the library's ".exphil-tmp", and never the temporary of a command that runs. */
#define TRIAL ".exphil-try"

/* Names may be too long, and some folders take no files though they may be written, as /proc: only trying shows. */
static bool check_making(const char *option, const char *path, output_way way)
{
    size_t bytes = strlen(path) + sizeof TRIAL;
    char *trial = malloc(bytes);
    if (!trial) return refuse_output(option, path, "no memory");
    (void)snprintf(trial, bytes, "%s%s", path, way == OUTPUT_REPLACED ? TRIAL : "");
    int descriptor = open(trial, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666), number = errno;
    if (descriptor >= 0) {
        close(descriptor);
        (void)unlink(trial);
    }
    free(trial);
    if (descriptor >= 0 || number == EEXIST) return true;
    fprintf(stderr, "exphil: --%s %s: no file can be made: %s\n", option, path, strerror(number));
    return false;
}

/* Where results go, by the same file: they and the output would write over each other. */
static bool is_stdout(const struct stat *facts)
{
    struct stat results;
    return fstat(STDOUT_FILENO, &results) == 0 && results.st_dev == facts->st_dev &&
           results.st_ino == facts->st_ino && S_ISREG(facts->st_mode);
}

/* A file in the place of a link would leave the file that it leads to as it was. */
static bool is_link(const char *path)
{
    struct stat facts;
    return lstat(path, &facts) == 0 && S_ISLNK(facts.st_mode);
}

bool output_possible(const char *option, const char *path, output_way way, bool *there)
{
    struct stat facts;
    *there = stat(path, &facts) == 0;
    if (!*path) return refuse_output(option, "\"\"", "the name is empty");
    if (strcmp(path, "-") == 0)
        return refuse_output(option, path, "this wants a file; one of that name is ./-");
    if (*there && is_stdout(&facts))
        return refuse_output(option, path, "that is where the results go; name another file");
    if (*there && !S_ISREG(facts.st_mode))
        return refuse_output(option, path,
                             S_ISDIR(facts.st_mode) ? "that is a folder; name a file in it"
                                                    : "that is no regular file");
    if (way == OUTPUT_REPLACED && is_link(path))
        return refuse_output(option, path, "that is a link; name the file that it leads to");
    if (way == OUTPUT_IN_PLACE && *there)
        return access(path, W_OK) == 0 || refuse_output(option, path, strerror(errno));
    return check_folder(option, path) && check_making(option, path, way);
}

bool output_free(const char *option, const char *path, output_way way, bool force)
{
    bool there;
    if (!output_possible(option, path, way, &there)) return false;
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
    char *folder_a = file_folder(a), *folder_b = file_folder(b);
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

bool file_within(const char *path, const char *folder)
{
    char *parent = file_folder(path);
    bool within = same_inode(path, folder) || (parent && same_inode(parent, folder));
    free(parent);
    return within;
}

bool output_spares_games(const char *option, const char *path, const char *kept)
{
    if (!output_spares(option, path, kept)) return false;
    if (!path || !name_ends(path, ".games") || !file_within(path, kept)) return true;
    fprintf(stderr, "exphil: --%s %s would be one of the files of %s, which is needed: name another file\n",
            option, path, kept);
    return false;
}
