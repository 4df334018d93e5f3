/* See memory_io.h. One file at a time; its name does not matter. */
#include "memory_io.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int32_t kind(void *user, const char *path, int32_t *what)
{
    (void)user;
    (void)path;
    *what = EXPHIL_IO_ABSENT;
    return 0;
}

static int32_t open_file(void *user, const char *path, int32_t mode, void **file)
{
    (void)path;
    memory_io *io = user;
    if (mode == EXPHIL_IO_CREATE) io->bytes = 0;
    *file = io;
    return 0;
}

static int32_t size(void *user, void *file, uint64_t *bytes)
{
    (void)user;
    *bytes = ((memory_io *)file)->bytes;
    return 0;
}

static int32_t read_file(void *user, void *file, uint64_t offset, void *data, size_t bytes, size_t *done)
{
    (void)user;
    memory_io *io = file;
    size_t left = offset < io->bytes ? io->bytes - (size_t)offset : 0;
    *done = bytes < left ? bytes : left;
    if (*done) memcpy(data, io->data + offset, *done);
    return 0;
}

static int32_t write_file(void *user, void *file, const void *data, size_t bytes, size_t *done)
{
    (void)user;
    memory_io *io = file;
    if (io->capacity - io->bytes < bytes) {
        size_t capacity = 2 * (io->bytes + bytes);
        uint8_t *larger = realloc(io->data, capacity);
        if (!larger) return ENOSPC;
        io->data = larger;
        io->capacity = capacity;
    }
    memcpy(io->data + io->bytes, data, bytes);
    io->bytes += bytes;
    *done = bytes;
    return 0;
}

static int32_t nothing(void *user, void *file)
{
    (void)user;
    (void)file;
    return 0;
}

static int32_t nothing_by_name(void *user, const char *path)
{
    (void)user;
    (void)path;
    return 0;
}

static int32_t rename_file(void *user, const char *from, const char *to)
{
    (void)user;
    (void)from;
    (void)to;
    return 0;
}

void memory_io_init(memory_io *io)
{
    memset(io, 0, sizeof *io);
    io->hook = (exphil_io){.struct_size = sizeof(exphil_io),
                           .user = io,
                           .kind = kind,
                           .open = open_file,
                           .size = size,
                           .read = read_file,
                           .write = write_file,
                           .sync = nothing,
                           .close = nothing,
                           .rename = rename_file,
                           .remove = nothing_by_name,
                           .sync_folder = nothing_by_name};
}

uint8_t *memory_io_take(memory_io *io, size_t *bytes)
{
    uint8_t *data = io->data;
    *bytes = io->bytes;
    io->data = NULL;
    io->bytes = io->capacity = 0;
    return data;
}
