/* Files that stay open for reading while several objects use them, from any thread. */
#include "base/base.h"

static exphil_status take_file(exphil_context *context, const xph_file *file, const char *path,
                               xph_shared_file **shared, exphil_error *error)
{
    size_t length = strlen(path) + 1, bytes = sizeof **shared + length;
    xph_shared_file *made = xph_alloc(context, bytes);
    if (!made) return xph_no_memory(bytes, error);
    *made = (xph_shared_file){.context = context, .references = 1, .file = *file, .bytes = bytes};
    exphil_status status = xph_file_many(file) ? EXPHIL_OK : xph_mutex_create(context, &made->lock, error);
    if (status < 0) {
        xph_free(context, made, bytes);
        return status;
    }
    memcpy(made->name, path, length);
    made->file.path = made->name;
    xph_context_retain(context);
    *shared = made;
    return EXPHIL_OK;
}

exphil_status xph_shared_open(exphil_context *context, const char *path, xph_shared_file **shared,
                              exphil_error *error)
{
    xph_file file;
    XPH_TRY(xph_file_open(context, path, INT64_MAX, &file, error));
    exphil_status status = take_file(context, &file, path, shared, error);
    if (status < 0) xph_file_close(&file);
    return status;
}

xph_shared_file *xph_shared_retain(xph_shared_file *shared)
{
    if (shared) atomic_fetch_add(&shared->references, 1);
    return shared;
}

void xph_shared_release(xph_shared_file *shared)
{
    if (!shared || atomic_fetch_sub(&shared->references, 1) != 1) return;
    exphil_context *context = shared->context;
    xph_file_close(&shared->file);
    xph_mutex_destroy(shared->lock);
    xph_free(context, shared, shared->bytes);
    xph_context_release(context);
}

exphil_status xph_shared_read(const xph_shared_file *shared, uint64_t offset, void *to, size_t bytes,
                              exphil_error *error)
{
    if (shared->lock) xph_mutex_lock(shared->lock);
    exphil_status status = xph_file_read(&shared->file, offset, to, bytes, error);
    if (shared->lock) xph_mutex_unlock(shared->lock);
    return status;
}
