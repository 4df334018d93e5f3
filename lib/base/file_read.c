/* Reading files at any offset, through the context's file hooks. Nothing is mapped: a file that another
 * program shortens gives a status, not a signal. */
#include "base/hooks.h"

#include <errno.h>

static exphil_status refuse(exphil_error *error, int32_t code, const char *what, const char *path)
{
    return xph_fail_errno(error, EXPHIL_E_IO, code, "could not %s \"%s\"", what, path);
}

static int32_t open_handle(const exphil_io *io, const char *path, void **handle)
{
    int32_t rc = EINTR;
    for (int i = 0; rc == EINTR && i < XPH_MOST_INTERRUPTS; i++) {
        rc = io->open(io->user, path, EXPHIL_IO_READ, handle);
    }
    return rc;
}

exphil_status xph_file_open(exphil_context *context, const char *path, uint64_t limit_bytes, xph_file *file,
                            exphil_error *error)
{
    if (!path || !*path) return xph_fail(error, EXPHIL_E_INVALID, "path is %s", path ? "empty" : "NULL");
    const exphil_io *io = &context->io;
    xph_file opened = {.context = context, .path = path};
    int32_t rc = open_handle(io, path, &opened.handle);
    if (rc) return refuse(error, rc, "open", path);
    exphil_status status = EXPHIL_OK;
    rc = io->size(io->user, opened.handle, &opened.bytes);
    if (rc) {
        status = refuse(error, rc, "size up", path);
    } else if (opened.bytes > limit_bytes) {
        status = xph_fail(error, EXPHIL_E_FORMAT, "\"%s\" has %llu bytes, at most %llu are allowed", path,
                          (unsigned long long)opened.bytes, (unsigned long long)limit_bytes);
    }
    if (status < 0) {
        io->close(io->user, opened.handle);
        return status;
    }
    *file = opened;
    return EXPHIL_OK;
}

exphil_status xph_file_read(const xph_file *file, uint64_t offset, void *to, size_t bytes,
                            exphil_error *error)
{
    const exphil_io *io = &file->context->io;
    int interrupted = 0;
    for (size_t at = 0; at < bytes;) {
        size_t done = 0;
        uint64_t from = offset + at;
        int32_t rc = io->read(io->user, file->handle, from, (uint8_t *)to + at, bytes - at, &done);
        if (rc == EINTR && ++interrupted < XPH_MOST_INTERRUPTS) continue;
        if (!rc && done > bytes - at) rc = EIO;
        if (rc) {
            return xph_fail_errno(error, EXPHIL_E_IO, rc, "could not read byte %llu of \"%s\"",
                                  (unsigned long long)from, file->path);
        }
        if (!done) {
            return xph_fail(error, EXPHIL_E_FORMAT,
                            "\"%s\" byte %llu: the file ends here, it had %llu bytes when it was opened",
                            file->path, (unsigned long long)from, (unsigned long long)file->bytes);
        }
        at += done;
        interrupted = 0;
    }
    return EXPHIL_OK;
}

bool xph_file_many(const xph_file *file)
{
    return file->context->io.read == xph_system_io.read; /* it keeps no place */
}

void xph_file_close(xph_file *file)
{
    if (!file->context) return;
    const exphil_io *io = &file->context->io;
    io->close(io->user, file->handle); /* only read: nothing can be lost by its failure */
    *file = (xph_file){.context = NULL};
}

/* Pieces between which the cancel hook is called. */
#define FETCH_BYTES ((size_t)1 << 26)

exphil_status xph_file_fetch(const xph_file *file, uint64_t offset, size_t bytes, xph_file_data *data,
                             exphil_error *error)
{
    exphil_context *context = file->context;
    uint8_t *to = xph_alloc(context, bytes);
    if (!to)
        return xph_fail(error, EXPHIL_E_MEMORY, "could not get %zu bytes to read \"%s\"", bytes, file->path);
    exphil_status status = EXPHIL_OK;
    for (size_t at = 0; status >= 0 && at < bytes; at += FETCH_BYTES) {
        size_t piece = bytes - at < FETCH_BYTES ? bytes - at : FETCH_BYTES;
        status = at && xph_cancelled(context) ? xph_fail(error, EXPHIL_E_CANCELLED, "cancelled by the host")
                                              : xph_file_read(file, offset + at, to + at, piece, error);
    }
    if (status < 0) {
        xph_free(context, to, bytes);
        return status;
    }
    *data = (xph_file_data){.context = context, .data = to, .bytes = bytes};
    return EXPHIL_OK;
}

void xph_file_release(xph_file_data *data)
{
    if (data->data) xph_free(data->context, data->data, data->bytes);
    *data = (xph_file_data){.context = data->context};
}
