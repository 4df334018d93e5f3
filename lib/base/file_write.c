/* Writing a file so that after any failure, kill or loss of power the old file or the new one is there, never
 * half of it: a temporary beside it, synced, renamed over it, then the folder synced (why each step: Pillai
 * et al., "All file systems are not created equal", OSDI 2014). Only one writer at a time has the temporary:
 * it is locked from begin until after the rename, and a second writer gets EXPHIL_E_BUSY. */
#include "base/hooks.h"

#include <errno.h>
#include <stdio.h>

#define SUFFIX ".exphil-tmp"

static exphil_status refuse(exphil_error *error, int32_t code, const char *what, const char *path)
{
    return xph_fail_errno(error, EXPHIL_E_IO, code, "could not %s \"%s\"", what, path);
}

/* Links are not followed: the rename would put the file in place of the link. */
static exphil_status check_target(const exphil_io *io, const char *path, exphil_error *error)
{
    int32_t kind = EXPHIL_IO_ABSENT;
    int32_t rc = io->kind(io->user, path, &kind);
    if (rc) return refuse(error, rc, "look at", path);
    if (kind == EXPHIL_IO_ABSENT || kind == EXPHIL_IO_FILE) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_IO, "\"%s\" is %s, not a regular file; it is not replaced", path,
                    kind == EXPHIL_IO_FOLDER ? "a folder" : "a link or a device");
}

static exphil_status open_temporary(const exphil_io *io, const char *path, void **handle, exphil_error *error)
{
    int32_t rc = EINTR;
    for (int i = 0; rc == EINTR && i < XPH_MOST_INTERRUPTS; i++) {
        rc = io->open(io->user, path, EXPHIL_IO_CREATE, handle);
    }
    if (rc == EBUSY) {
        return xph_fail_errno(error, EXPHIL_E_BUSY, rc, "\"%s\" is being written by somebody else", path);
    }
    return rc ? refuse(error, rc, "create", path) : EXPHIL_OK;
}

static void forget(xph_file_writer *writer)
{
    xph_free(writer->context, writer->path, writer->path_bytes);
    *writer = (xph_file_writer){.context = writer->context};
}

exphil_status xph_file_begin(exphil_context *context, const char *path, xph_file_writer *writer,
                             exphil_error *error)
{
    if (!path || !*path) return xph_fail(error, EXPHIL_E_INVALID, "path is %s", path ? "empty" : "NULL");
    XPH_TRY(check_target(&context->io, path, error));
    /* One piece of memory: the path, then the temporary's. */
    size_t length = strlen(path) + 1, bytes;
    if (!xph_size_mul(length, 2, &bytes) || !xph_size_add(bytes, sizeof SUFFIX, &bytes)) {
        return xph_fail(error, EXPHIL_E_INVALID, "path is too long");
    }
    char *names = xph_alloc(context, bytes);
    if (!names) return xph_no_memory(bytes, error);
    xph_file_writer begun = {
        .context = context, .path = names, .temporary = names + length, .path_bytes = bytes};
    snprintf(begun.path, length, "%s", path);
    snprintf(begun.temporary, bytes - length, "%s" SUFFIX, path);
    exphil_status status = open_temporary(&context->io, begun.temporary, &begun.file, error);
    if (status < 0) {
        xph_free(context, names, bytes);
        return status;
    }
    *writer = begun;
    return EXPHIL_OK;
}

exphil_status xph_file_add(xph_file_writer *writer, const void *data, size_t bytes, exphil_error *error)
{
    if (!writer->file) return xph_fail(error, EXPHIL_E_STATE, "the file is not open for writing");
    const exphil_io *io = &writer->context->io;
    const uint8_t *from = data;
    int interrupted = 0;
    for (size_t at = 0; at < bytes;) {
        size_t done = 0;
        int32_t rc = io->write(io->user, writer->file, from + at, bytes - at, &done);
        if (rc == EINTR && ++interrupted < XPH_MOST_INTERRUPTS) continue;
        if (!rc && (!done || done > bytes - at)) rc = EIO;
        if (rc) {
            exphil_status status =
                xph_fail_errno(error, EXPHIL_E_IO, rc, "could not write byte %llu of \"%s\"",
                               (unsigned long long)writer->written, writer->temporary);
            xph_file_cancel(writer);
            return status;
        }
        at += done;
        writer->written += done;
        interrupted = 0;
    }
    return EXPHIL_OK;
}

exphil_status xph_file_rename(xph_file_writer *writer, const char *path, exphil_error *error)
{
    if (!writer->file) return xph_fail(error, EXPHIL_E_STATE, "the file is not open for writing");
    XPH_TRY(check_target(&writer->context->io, path, error));
    size_t length = strlen(path) + 1, rest = strlen(writer->temporary) + 1, bytes;
    if (!xph_size_add(length, rest, &bytes)) return xph_fail(error, EXPHIL_E_INVALID, "path is too long");
    char *names = xph_alloc(writer->context, bytes);
    if (!names) return xph_no_memory(bytes, error);
    memcpy(names, path, length);
    memcpy(names + length, writer->temporary, rest);
    xph_free(writer->context, writer->path, writer->path_bytes);
    writer->path = names;
    writer->temporary = names + length;
    writer->path_bytes = bytes;
    return EXPHIL_OK;
}

/* A failed sync is final: the system has dropped the pages and a second sync would say all is well. */
exphil_status xph_file_commit(xph_file_writer *writer, exphil_error *error)
{
    if (!writer->file) return xph_fail(error, EXPHIL_E_STATE, "the file is not open for writing");
    const exphil_io *io = &writer->context->io;
    int32_t rc = io->sync(io->user, writer->file);
    const char *what = "sync";
    if (!rc) {
        rc = io->rename(io->user, writer->temporary, writer->path);
        what = "rename to its final name";
    }
    if (rc) {
        exphil_status status = refuse(error, rc, what, writer->temporary);
        xph_file_cancel(writer);
        return status;
    }
    /* From here on the new file is there whole; a failure means that it may not survive a loss of power. */
    exphil_status status = EXPHIL_OK;
    rc = io->close(io->user, writer->file);
    if (rc) status = refuse(error, rc, "close", writer->path);
    rc = io->sync_folder(io->user, writer->path);
    if (rc && status == EXPHIL_OK) status = refuse(error, rc, "sync the folder of", writer->path);
    forget(writer);
    return status;
}

/* Removed before it is closed: once the lock is gone the temporary may be another writer's. */
void xph_file_cancel(xph_file_writer *writer)
{
    if (!writer->file) return;
    const exphil_io *io = &writer->context->io;
    io->remove(io->user, writer->temporary);
    io->close(io->user, writer->file);
    forget(writer);
}
