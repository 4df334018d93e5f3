/* Corpora of games without a name. The library writes to and reads from a path: these hooks of a context give it one that
 * no file can have, and behind it a file that was unlinked when it was made. Other paths are those of the file system. */
#include "scratch.h"

#include "system.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* No file lies in /dev/null. The library's temporary beside it begins with the same signs. */
static const char path_of_it[] = "/dev/null/corpus of games";

/* ---- hooks: a file is its handle plus one ---------------------------------------------------------------- */

enum { MOST_AT_ONCE = 1 << 30 };

static intptr_t handle_of(const void *file)
{
    return (intptr_t)file - 1;
}

static bool is_it(const char *path)
{
    return strncmp(path, path_of_it, sizeof path_of_it - 1) == 0;
}

static int32_t io_kind(void *user, const char *path, int32_t *kind)
{
    system_facts facts;
    (void)user;
    *kind = EXPHIL_IO_ABSENT;
    if (is_it(path)) return 0;
    if (system_link(path)) return *kind = EXPHIL_IO_OTHER, 0;
    if (!system_look(path, &facts)) return errno == ENOENT ? 0 : errno;
    *kind = facts.regular ? EXPHIL_IO_FILE : facts.folder ? EXPHIL_IO_FOLDER : EXPHIL_IO_OTHER;
    return 0;
}

/* user is the unnamed file; its readers and its writer close a handle of their own. */
static int32_t io_open(void *user, const char *path, int32_t mode, void **file)
{
    if (mode != EXPHIL_IO_READ && !is_it(path)) return EROFS;
    intptr_t handle = is_it(path) ? system_raw_again(handle_of(user)) : system_raw_open(path);
    if (handle < 0) return errno;
    *file = (void *)(handle + 1);
    return 0;
}

static int32_t io_size(void *user, void *file, uint64_t *bytes)
{
    system_facts facts;
    (void)user;
    if (!system_raw_look(handle_of(file), &facts)) return errno;
    if (!facts.regular) return facts.folder ? EISDIR : EINVAL;
    *bytes = facts.bytes;
    return 0;
}

static int32_t io_read(void *user, void *file, uint64_t offset, void *data, size_t bytes, size_t *done)
{
    (void)user;
    if (offset > INT64_MAX) return EOVERFLOW;
    ptrdiff_t got =
        system_raw_read(handle_of(file), offset, data, bytes < MOST_AT_ONCE ? bytes : MOST_AT_ONCE);
    if (got < 0) return errno;
    *done = (size_t)got;
    return 0;
}

static int32_t io_write(void *user, void *file, const void *data, size_t bytes, size_t *done)
{
    (void)user;
    ptrdiff_t put = system_raw_append(handle_of(file), data, bytes < MOST_AT_ONCE ? bytes : MOST_AT_ONCE);
    if (put < 0) return errno;
    *done = (size_t)put;
    return 0;
}

static int32_t io_close(void *user, void *file)
{
    (void)user;
    return system_raw_close(handle_of(file)) || errno == EINTR ? 0 : errno;
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

static bool make_file(scratch *s)
{
    const char *folder;
    s->file = -1;
    for (int i = 0; s->file < 0 && (folder = system_temporary(i)) != NULL; i++)
        s->file = system_raw_unnamed(s->folder = folder);
    if (s->file >= 0) return true;
    fprintf(stderr, "exphil: no temporary file can be made in %s: %s; %s names another folder\n", s->folder,
            strerror(errno), system_temporary_variable);
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
        fprintf(stderr, "exphil: %s names another folder, with more room\n", system_temporary_variable);
    return false;
}

/* ---- the corpus ---------------------------------------------------------------------------------------- */

static bool make_context(scratch *s, int64_t threads, exphil_cancel_fn cancel)
{
    const exphil_io io = {.struct_size = sizeof io,
                          .user = (void *)(s->file + 1),
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
    *s = (scratch){.file = -1};
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
    if (s->file >= 0) (void)system_raw_close(s->file);
    *s = (scratch){.file = -1};
}
