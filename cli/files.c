/* Telling replays, weights and corpora apart: each begins with bytes that the others cannot begin with. Also
 * which files may be written. */
#include "files.h"

#include "system.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* *kind is FILE_OTHER when there is a file. */
static FILE *open_regular(const char *path, file_kind *kind)
{
    system_facts facts;
    FILE *file = system_open_regular(path, &facts);
    *kind = file ? FILE_OTHER : facts.folder ? FILE_FOLDER : facts.other ? FILE_DEVICE : FILE_UNREADABLE;
    return file;
}

FILE *file_open(const char *path)
{
    file_kind kind;
    FILE *file = open_regular(path, &kind);
    if (!file) file_refuse(path, kind, "name a file in it");
    return file;
}

int text_mark(const char *text, size_t bytes)
{
    if (bytes >= 2 && (memcmp(text, "\xFF\xFE", 2) == 0 || memcmp(text, "\xFE\xFF", 2) == 0)) return -1;
    return bytes >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
}

FILE *file_open_text(const char *path)
{
    char first[3];
    FILE *file = file_open(path);
    const int mark = file ? text_mark(first, fread(first, 1, sizeof first, file)) : 0;
    if (file && mark >= 0 && fseek(file, mark, SEEK_SET) == 0) return file;
    if (!file) return NULL;
    fprintf(stderr, "exphil: %s: %s\n", path, mark < 0 ? UTF16_WORDS : strerror(errno));
    (void)fclose(file);
    return NULL;
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
    system_folder *folder = kind == FILE_FOLDER ? system_folder_open(path) : NULL;
    for (const char *name; folder && !found && (name = system_folder_next(folder)) != NULL;)
        found = name_ends(name, ".games");
    if (folder) system_folder_close(folder);
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

char *text_part(const char *text, size_t bytes)
{
    char *part = malloc(bytes + 1);
    if (!part) return NULL;
    memcpy(part, text, bytes);
    part[bytes] = 0;
    return part;
}

char *file_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == path ? strdup("/") : slash ? text_part(path, (size_t)(slash - path)) : strdup(".");
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
    system_facts facts;
    const char *why = NULL;
    if (!folder) return refuse_output(option, path, "no memory");
    if (!system_look(folder, &facts))
        why = strerror(errno);
    else if (!facts.folder)
        why = "that is no folder";
    else if (!system_writable_folder(folder))
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
    FILE *made = system_create(trial);
    int number = errno;
    if (made) {
        (void)fclose(made);
        (void)system_remove(trial);
    }
    free(trial);
    if (made || number == EEXIST) return true;
    fprintf(stderr, "exphil: --%s %s: no file can be made: %s\n", option, path, strerror(number));
    return false;
}

bool output_possible(const char *option, const char *path, output_way way, bool *there)
{
    system_facts facts;
    *there = system_look(path, &facts);
    if (!*path) return refuse_output(option, "\"\"", "the name is empty");
    /* As one that ends with a dot, on Windows: what is tried below has another name. */
    if (!*there && !system_taken(path) && errno == EINVAL)
        return refuse_output(option, path, "no file can have this name");
    if (strcmp(path, "-") == 0)
        return refuse_output(option, path, "this wants a file; one of that name is ./-");
    /* By the same file: results and output would write over each other. */
    if (*there && facts.regular && system_stdout_is(&facts))
        return refuse_output(option, path, "that is where the results go; name another file");
    if (*there && !facts.regular)
        return refuse_output(
            option, path, facts.folder ? "that is a folder; name a file in it" : "that is no regular file");
    /* A file in the place of a link would leave the file that it leads to as it was. */
    if (way == OUTPUT_REPLACED && system_link(path))
        return refuse_output(option, path, "that is a link; name the file that it leads to");
    if (way == OUTPUT_IN_PLACE && *there)
        return system_writable(path) || refuse_output(option, path, strerror(errno));
    if (way == OUTPUT_REPLACED && *there && !system_replaceable(path))
        return refuse_output(option, path,
                             errno == EBUSY ? "another program has it open" : "it is read-only");
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

/* What has no number, as on some shares, is told by its name. */
static bool same_inode(const char *a, const char *b)
{
    system_facts one, two;
    if (!system_look(a, &one) || !system_look(b, &two)) return false;
    if (!one.number || !two.number) return system_same_name(a, b);
    return one.device == two.device && one.number == two.number;
}

/* One file under two names; or one name, in one folder, of a file that is yet to be made. */
static bool same_file(const char *a, const char *b)
{
    const char *name_a = strrchr(a, '/'), *name_b = strrchr(b, '/');
    if (same_inode(a, b)) return true;
    if (!system_same_name(name_a ? name_a + 1 : a, name_b ? name_b + 1 : b)) return false;
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

json_t *file_json(const char *path, json_error_t *error)
{
    FILE *file = system_open(path, "rb");
    json_t *object = file ? json_loadf(file, 0, error) : NULL;
    if (!file && error)
        (void)snprintf(error->text, sizeof error->text, "unable to open %s: %s", path, strerror(errno));
    if (file) (void)fclose(file);
    return object;
}

bool output_spares_games(const char *option, const char *path, const char *kept)
{
    if (!output_spares(option, path, kept)) return false;
    if (!path || !name_ends(path, ".games") || !file_within(path, kept)) return true;
    fprintf(stderr, "exphil: --%s %s would be one of the files of %s, which is needed: name another file\n",
            option, path, kept);
    return false;
}
