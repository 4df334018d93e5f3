/* A whole file in memory, through the context's file hooks. */
#include "base/hooks.h"

#include <errno.h>

static exphil_status refuse(exphil_error *error, int32_t code, const char *what, const char *path)
{
    return xph_fail_errno(error, EXPHIL_E_IO, code, "could not %s \"%s\"", what, path);
}

/* Tries to map; false: read instead. */
static bool map_file(const exphil_io *io, void *handle, size_t bytes, xph_file_data *file)
{
    const void *data = NULL;
    if (!io->map || !bytes || io->map(io->user, handle, bytes, &data) != 0 || !data) return false;
    file->data = data;
    file->bytes = bytes;
    file->mapped = true;
    return true;
}

static exphil_status fill(const exphil_io *io, void *handle, const char *path, uint8_t *to, size_t bytes,
                          exphil_error *error)
{
    int interrupted = 0;
    for (size_t at = 0; at < bytes;) {
        size_t done = 0;
        int32_t rc = io->read(io->user, handle, at, to + at, bytes - at, &done);
        if (rc == EINTR && ++interrupted < XPH_MOST_INTERRUPTS) continue;
        if (rc) return refuse(error, rc, "read", path);
        if (!done || done > bytes - at) {
            return xph_fail(error, EXPHIL_E_IO, "\"%s\" ended at byte %zu of %zu while it was read", path, at,
                            bytes);
        }
        at += done;
        interrupted = 0;
    }
    return EXPHIL_OK;
}

static exphil_status read_file(void *handle, const char *path, size_t bytes, xph_file_data *file,
                               exphil_error *error)
{
    exphil_context *context = file->context;
    uint8_t *data = xph_alloc(context, bytes);
    if (!data) return xph_fail(error, EXPHIL_E_MEMORY, "could not get %zu bytes to read \"%s\"", bytes, path);
    exphil_status status = fill(&context->io, handle, path, data, bytes, error);
    if (status < 0) {
        xph_free(context, data, bytes);
        return status;
    }
    file->data = data;
    file->bytes = bytes;
    file->mapped = false;
    return EXPHIL_OK;
}

/* file->context is set. */
static exphil_status read_open(void *handle, const char *path, size_t limit_bytes, bool map,
                               xph_file_data *file, exphil_error *error)
{
    const exphil_io *io = &file->context->io;
    uint64_t size = 0;
    int32_t rc = io->size(io->user, handle, &size);
    if (rc) return refuse(error, rc, "size up", path);
    if (size > limit_bytes) {
        return xph_fail(error, EXPHIL_E_FORMAT, "\"%s\" has %llu bytes, at most %zu are allowed", path,
                        (unsigned long long)size, limit_bytes);
    }
    if (map && map_file(io, handle, (size_t)size, file)) return EXPHIL_OK;
    return read_file(handle, path, (size_t)size, file, error);
}

exphil_status xph_file_read(exphil_context *context, const char *path, size_t limit_bytes, bool map,
                            xph_file_data *file, exphil_error *error)
{
    if (!path || !*path) return xph_fail(error, EXPHIL_E_INVALID, "path is %s", path ? "empty" : "NULL");
    const exphil_io *io = &context->io;
    void *handle = NULL;
    int32_t rc;
    for (int i = 0; (rc = io->open(io->user, path, EXPHIL_IO_READ, &handle)) == EINTR; i++) {
        if (i >= XPH_MOST_INTERRUPTS) break;
    }
    if (rc) return refuse(error, rc, "open", path);
    xph_file_data got = {.context = context};
    exphil_status status = read_open(handle, path, limit_bytes, map, &got, error);
    io->close(io->user, handle); /* only read: nothing can be lost by its failure */
    if (status == EXPHIL_OK) *file = got;
    return status;
}

void xph_file_release(xph_file_data *file)
{
    if (!file->data) return;
    const exphil_io *io = &file->context->io;
    if (file->mapped) {
        io->unmap(io->user, file->data, file->bytes);
    } else {
        xph_free(file->context, (void *)(uintptr_t)file->data, file->bytes);
    }
    *file = (xph_file_data){.context = file->context};
}
