/* File hooks that fail at a given operation or move only a few bytes at a time, in front of the real ones. */
#include "test.h"

#include "base/hooks.h"

/* Notes the operation; a fault due now comes back as its code. */
static int32_t note(test_io *io, const char *name)
{
    size_t used = strlen(io->log);
    if (used + strlen(name) + 2 < sizeof io->log) {
        strcat(io->log, name);
        strcat(io->log, " ");
    }
    long long call = atomic_fetch_add(&io->calls, 1) + 1;
    bool due = io->fail_at && (call == io->fail_at || (io->fail_on && call > io->fail_at));
    return due ? io->code : 0;
}

static size_t limited(const test_io *io, size_t bytes)
{
    return io->most_bytes && bytes > io->most_bytes ? io->most_bytes : bytes;
}

static int32_t kind(void *user, const char *path, int32_t *what)
{
    int32_t rc = note(user, "kind");
    return rc ? rc : xph_posix_io.kind(NULL, path, what);
}

static int32_t open_file(void *user, const char *path, int32_t mode, void **file)
{
    test_io *io = user;
    int32_t rc = note(io, mode == EXPHIL_IO_CREATE ? "create" : "open");
    if (!rc) rc = xph_posix_io.open(NULL, path, mode, file);
    if (!rc) atomic_fetch_add(&io->open_files, 1);
    return rc;
}

static int32_t size(void *user, void *file, uint64_t *bytes)
{
    int32_t rc = note(user, "size");
    return rc ? rc : xph_posix_io.size(NULL, file, bytes);
}

static int32_t read_file(void *user, void *file, uint64_t offset, void *data, size_t bytes, size_t *done)
{
    int32_t rc = note(user, "read");
    return rc ? rc : xph_posix_io.read(NULL, file, offset, data, limited(user, bytes), done);
}

static int32_t write_file(void *user, void *file, const void *data, size_t bytes, size_t *done)
{
    int32_t rc = note(user, "write");
    return rc ? rc : xph_posix_io.write(NULL, file, data, limited(user, bytes), done);
}

static int32_t sync_file(void *user, void *file)
{
    int32_t rc = note(user, "sync");
    return rc ? rc : xph_posix_io.sync(NULL, file);
}

/* The file is gone even when close is told to fail, as the contract says. */
static int32_t close_file(void *user, void *file)
{
    test_io *io = user;
    int32_t rc = note(io, "close"), real = xph_posix_io.close(NULL, file);
    atomic_fetch_sub(&io->open_files, 1);
    return rc ? rc : real;
}

static int32_t rename_file(void *user, const char *from, const char *to)
{
    int32_t rc = note(user, "rename");
    return rc ? rc : xph_posix_io.rename(NULL, from, to);
}

static int32_t remove_file(void *user, const char *path)
{
    int32_t rc = note(user, "remove");
    return rc ? rc : xph_posix_io.remove(NULL, path);
}

static int32_t sync_folder(void *user, const char *path)
{
    int32_t rc = note(user, "folder");
    return rc ? rc : xph_posix_io.sync_folder(NULL, path);
}

static int32_t map_file(void *user, void *file, size_t bytes, const void **data)
{
    test_io *io = user;
    int32_t rc = note(io, "map");
    if (!rc) rc = xph_posix_io.map(NULL, file, bytes, data);
    if (!rc) atomic_fetch_add(&io->maps, 1);
    return rc;
}

static int32_t unmap_file(void *user, const void *data, size_t bytes)
{
    test_io *io = user;
    atomic_fetch_sub(&io->maps, 1);
    return xph_posix_io.unmap(NULL, data, bytes);
}

void test_io_init(test_io *io)
{
    memset(io, 0, sizeof *io);
    io->code = 5; /* EIO */
    io->hook = (exphil_io){
        .struct_size = sizeof(exphil_io),
        .user = io,
        .kind = kind,
        .open = open_file,
        .size = size,
        .read = read_file,
        .write = write_file,
        .sync = sync_file,
        .close = close_file,
        .rename = rename_file,
        .remove = remove_file,
        .sync_folder = sync_folder,
        .map = map_file,
        .unmap = unmap_file,
    };
}
