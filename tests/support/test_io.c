/* File hooks that fail at a given operation or move only a few bytes at a time, in front of the real ones. */
#include "test.h"

#include "base/hooks.h"

#include <stdlib.h>

/* A file that is open: a real one, or bytes and a hole behind them. */
typedef struct test_file {
    void *real; /* NULL: in memory */
    const uint8_t *content;
    uint64_t bytes, size;
} test_file;

/* Notes the operation; a fault due now comes back as its code. Rows are read on any thread. */
static test_lock *lock;

static int32_t note(test_io *io, const char *name)
{
    test_lock_enter(lock);
    size_t used = strlen(io->log);
    if (used + strlen(name) + 2 < sizeof io->log) {
        strcat(io->log, name);
        strcat(io->log, " ");
    }
    test_lock_leave(lock);
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
    return rc ? rc : xph_system_io.kind(NULL, path, what);
}

static int32_t open_file(void *user, const char *path, int32_t mode, void **file)
{
    test_io *io = user;
    int32_t rc = note(io, mode == EXPHIL_IO_CREATE ? "create" : "open");
    test_file opened = {.content = io->content, .bytes = io->content_bytes, .size = io->content_bytes};
    if (opened.size < io->content_size) opened.size = io->content_size;
    if (!rc && strncmp(path, "content", strlen("content")) != 0)
        rc = xph_system_io.open(NULL, path, mode, &opened.real);
    if (rc) return rc;
    atomic_fetch_add(&io->open_files, 1);
    test_file *kept = malloc(sizeof *kept);
    assert_non_null(kept);
    *kept = opened;
    *file = kept;
    return 0;
}

static int32_t size(void *user, void *file, uint64_t *bytes)
{
    const test_file *f = file;
    int32_t rc = note(user, "size");
    if (rc) return rc;
    if (f->real) return xph_system_io.size(NULL, f->real, bytes);
    *bytes = f->size;
    return 0;
}

static void read_content(const test_file *f, uint64_t offset, void *data, size_t bytes, size_t *done)
{
    uint64_t left = offset < f->size ? f->size - offset : 0;
    uint64_t solid = offset < f->bytes ? f->bytes - offset : 0;
    *done = bytes < left ? bytes : (size_t)left;
    memset(data, 0, *done);
    if (solid) memcpy(data, f->content + offset, solid < *done ? (size_t)solid : *done);
}

static int32_t read_file(void *user, void *file, uint64_t offset, void *data, size_t bytes, size_t *done)
{
    test_io *io = user;
    const test_file *f = file;
    int32_t rc = note(io, "read");
    if (rc) return rc;
    if (atomic_fetch_add(&io->reading, 1)) atomic_fetch_add(&io->overlaps, 1);
    bytes = limited(io, bytes);
    if (f->real)
        rc = xph_system_io.read(NULL, f->real, offset, data, bytes, done);
    else
        read_content(f, offset, data, bytes, done);
    if (!rc) atomic_fetch_add(&io->bytes_read, (long long)*done);
    atomic_fetch_sub(&io->reading, 1);
    return rc;
}

static int32_t write_file(void *user, void *file, const void *data, size_t bytes, size_t *done)
{
    const test_file *f = file;
    int32_t rc = note(user, "write");
    return rc ? rc : xph_system_io.write(NULL, f->real, data, limited(user, bytes), done);
}

static int32_t sync_file(void *user, void *file)
{
    const test_file *f = file;
    int32_t rc = note(user, "sync");
    return rc ? rc : xph_system_io.sync(NULL, f->real);
}

/* The file is gone even when close is told to fail, as the contract says. */
static int32_t close_file(void *user, void *file)
{
    test_io *io = user;
    test_file *f = file;
    int32_t rc = note(io, "close"), real = f->real ? xph_system_io.close(NULL, f->real) : 0;
    free(f);
    atomic_fetch_sub(&io->open_files, 1);
    return rc ? rc : real;
}

static int32_t rename_file(void *user, const char *from, const char *to)
{
    int32_t rc = note(user, "rename");
    return rc ? rc : xph_system_io.rename(NULL, from, to);
}

static int32_t remove_file(void *user, const char *path)
{
    int32_t rc = note(user, "remove");
    return rc ? rc : xph_system_io.remove(NULL, path);
}

static int32_t sync_folder(void *user, const char *path)
{
    int32_t rc = note(user, "folder");
    return rc ? rc : xph_system_io.sync_folder(NULL, path);
}

static int32_t list(void *user, const char *folder, int32_t (*name)(void *to, const char *name), void *to)
{
    int32_t rc = note(user, "list");
    return rc ? rc : xph_system_io.list(NULL, folder, name, to);
}

void test_io_init(test_io *io)
{
    if (!lock) lock = test_lock_make();
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
        .list = list,
    };
}
