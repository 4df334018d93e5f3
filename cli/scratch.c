/* Corpora of games without a name. The library writes to and reads from a path: these hooks of a context give it one that
 * no file can have, and behind it a file that was unlinked when it was made. Other paths are those of the file system. */
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* No file lies in /dev/null. The library's temporary beside it begins with the same signs. */
static const char path_of_it[] = "/dev/null/corpus of games";

/* ---- hooks: a file is its descriptor plus one ------------------------------------------------------------ */

enum { MOST_AT_ONCE = 1 << 30 };

static int number_of(const void *file)
{
    return (int)((intptr_t)file - 1);
}

static bool is_it(const char *path)
{
    return strncmp(path, path_of_it, sizeof path_of_it - 1) == 0;
}

static int32_t io_kind(void *user, const char *path, int32_t *kind)
{
    struct stat facts;
    (void)user;
    *kind = EXPHIL_IO_ABSENT;
    if (is_it(path)) return 0;
    if (lstat(path, &facts) != 0) return errno == ENOENT ? 0 : errno;
    *kind = S_ISREG(facts.st_mode)   ? EXPHIL_IO_FILE
            : S_ISDIR(facts.st_mode) ? EXPHIL_IO_FOLDER
                                     : EXPHIL_IO_OTHER;
    return 0;
}

/* user is the unnamed file; its readers and its writer close a descriptor of their own. */
static int32_t io_open(void *user, const char *path, int32_t mode, void **file)
{
    if (mode != EXPHIL_IO_READ && !is_it(path)) return EROFS;
    int descriptor = is_it(path) ? fcntl(number_of(user), F_DUPFD_CLOEXEC, 3)
                                 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0) return errno;
    *file = (void *)((intptr_t)descriptor + 1);
    return 0;
}

static int32_t io_size(void *user, void *file, uint64_t *bytes)
{
    struct stat facts;
    (void)user;
    if (fstat(number_of(file), &facts) != 0) return errno;
    if (!S_ISREG(facts.st_mode)) return S_ISDIR(facts.st_mode) ? EISDIR : EINVAL;
    *bytes = (uint64_t)facts.st_size;
    return 0;
}

static int32_t io_read(void *user, void *file, uint64_t offset, void *data, size_t bytes, size_t *done)
{
    (void)user;
    if (offset > INT64_MAX) return EOVERFLOW;
    ssize_t got = pread(number_of(file), data, bytes < MOST_AT_ONCE ? bytes : MOST_AT_ONCE, (off_t)offset);
    if (got < 0) return errno;
    *done = (size_t)got;
    return 0;
}

static int32_t io_write(void *user, void *file, const void *data, size_t bytes, size_t *done)
{
    (void)user;
    ssize_t put = write(number_of(file), data, bytes < MOST_AT_ONCE ? bytes : MOST_AT_ONCE);
    if (put < 0) return errno;
    *done = (size_t)put;
    return 0;
}

static int32_t io_close(void *user, void *file)
{
    (void)user;
    return close(number_of(file)) == 0 || errno == EINTR ? 0 : errno;
}

/* Nothing of it outlives the program: neither a name nor what a loss of power would take. */
static int32_t io_sync(void *user, void *file)
{
    (void)user;
    (void)file;
    return 0;
}

static int32_t io_rename(void *user, const char *from, const char *to)
{
    (void)user;
    return is_it(from) && is_it(to) ? 0 : EROFS;
}

static int32_t io_path(void *user, const char *path)
{
    (void)user;
    return is_it(path) ? 0 : EROFS;
}

/* ---- the file ------------------------------------------------------------------------------------------ */

/* -1: none can be made there. */
static int make_unnamed(const char *folder)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/exphil-XXXXXX", folder) >= (int)sizeof path) return -1;
    int descriptor = mkostemp(path, O_CLOEXEC);
    if (descriptor >= 0) (void)unlink(path);
    return descriptor;
}

static bool make_file(scratch *s)
{
    const char *const asked = getenv("TMPDIR"), *const folders[] = {"/var/tmp", "/tmp"};
    s->descriptor = -1;
    if (asked && *asked) s->descriptor = make_unnamed(s->folder = asked);
    for (size_t i = 0; !(asked && *asked) && s->descriptor < 0 && i < 2; i++)
        s->descriptor = make_unnamed(s->folder = folders[i]);
    if (s->descriptor >= 0) return true;
    fprintf(stderr, "exphil: no temporary file can be made in %s: %s; TMPDIR names another folder\n",
            s->folder, strerror(errno));
    return false;
}

bool scratch_failed(const exphil_error *error)
{
    return error->status == EXPHIL_E_STATE || error->status == EXPHIL_E_INTERNAL ||
           (error->status == EXPHIL_E_IO && strstr(error->message, path_of_it));
}

bool scratch_complain(const scratch *s, const exphil_error *error)
{
    if (error->status == EXPHIL_E_CANCELLED) return false;
    fprintf(stderr, "exphil: the temporary file in %s: %s\n", s->folder,
            error->native_code ? strerror(error->native_code) : error->message);
    if (error->status == EXPHIL_E_IO)
        fprintf(stderr, "exphil: TMPDIR names another folder, with more room\n");
    return false;
}

/* ---- the corpus ---------------------------------------------------------------------------------------- */

static bool make_context(scratch *s, int64_t threads, exphil_cancel_fn cancel)
{
    const exphil_io io = {.struct_size = sizeof io,
                          .user = (void *)((intptr_t)s->descriptor + 1),
                          .kind = io_kind,
                          .open = io_open,
                          .size = io_size,
                          .read = io_read,
                          .write = io_write,
                          .sync = io_sync,
                          .close = io_close,
                          .rename = io_rename,
                          .remove = io_path,
                          .sync_folder = io_path};
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    config.io = &io;
    config.threads = (int32_t)threads;
    config.cancel = cancel;
    return exphil_context_create(&config, &s->context, &error) >= 0 || scratch_complain(s, &error);
}

/* Without libzstd it takes ten times the room and holds the same. */
static bool make_writer(scratch *s, const exphil_games_config *asked)
{
    exphil_games_config config = EXPHIL_GAMES_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    config.level = 1;
    exphil_status status =
        exphil_games_create(s->context, path_of_it, asked ? asked : &config, &s->writer, &error);
    if (status == EXPHIL_E_UNSUPPORTED && !asked) {
        config.stored = 1;
        status = exphil_games_create(s->context, path_of_it, &config, &s->writer, &error);
    }
    return status >= 0 || scratch_complain(s, &error);
}

bool scratch_begin(scratch *s, int64_t threads, exphil_cancel_fn cancel, const exphil_games_config *config)
{
    *s = (scratch){.descriptor = -1};
    return make_file(s) && make_context(s, threads, cancel) && make_writer(s, config);
}

bool scratch_open(scratch *s, exphil_games **games)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    return (exphil_games_finish(s->writer, NULL, &error) >= 0 &&
            exphil_games_open(s->context, path_of_it, games, &error) >= 0) ||
           scratch_complain(s, &error);
}

void scratch_end(scratch *s)
{
    exphil_games_writer_destroy(s->writer);
    exphil_context_destroy(s->context);
    if (s->descriptor >= 0) close(s->descriptor);
    *s = (scratch){.descriptor = -1};
}
