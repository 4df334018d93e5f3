/* Names in a folder, through the context's file hooks. */
#include "base/hooks.h"

#include <errno.h>
#include <stdio.h>

exphil_status xph_path_kind(exphil_context *context, const char *path, int32_t *kind, exphil_error *error)
{
    if (!path || !*path) return xph_fail(error, EXPHIL_E_INVALID, "path is %s", path ? "empty" : "NULL");
    int32_t rc = context->io.kind(context->io.user, path, kind);
    return rc ? xph_fail_errno(error, EXPHIL_E_IO, rc, "could not look at \"%s\"", path) : EXPHIL_OK;
}

char *xph_path_join(exphil_context *context, const char *folder, const char *name, size_t *bytes)
{
    size_t length = strlen(folder);
    bool open = length && xph_path_open(folder[length - 1]);
    *bytes = length + strlen(name) + 2;
    char *path = xph_alloc(context, *bytes);
    if (path) snprintf(path, *bytes, open ? "%s%s" : "%s/%s", folder, name);
    return path;
}

/* ---- listing ------------------------------------------------------------------------------------------- */

typedef struct listing {
    xph_folder *folder;
    const char *suffix;
} listing;

static bool ends_in(const char *name, const char *suffix)
{
    size_t length = strlen(name), end = strlen(suffix);
    return length >= end && memcmp(name + length - end, suffix, end) == 0;
}

static bool grow(xph_folder *folder)
{
    if (folder->count < folder->capacity) return true;
    int64_t more = folder->capacity ? 2 * folder->capacity : 64;
    char **names = xph_alloc(folder->context, (size_t)more * sizeof *names);
    if (!names) return false;
    if (folder->count) memcpy(names, folder->names, (size_t)folder->count * sizeof *names);
    xph_free(folder->context, folder->names, (size_t)folder->capacity * sizeof *names);
    folder->names = names;
    folder->capacity = more;
    return true;
}

static int32_t take_name(void *arg, const char *name)
{
    listing *to = arg;
    if (!ends_in(name, to->suffix)) return 0;
    size_t bytes = strlen(name) + 1;
    char *kept = grow(to->folder) ? xph_alloc(to->folder->context, bytes) : NULL;
    if (!kept) return ENOMEM;
    memcpy(kept, name, bytes);
    to->folder->names[to->folder->count++] = kept;
    return 0;
}

/* Heap sort: no memory, and no library's order of letters. */
static void sift(char **names, int64_t root, int64_t count)
{
    for (int64_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && strcmp(names[child + 1], names[child]) > 0) child++;
        if (strcmp(names[root], names[child]) >= 0) return;
        char *kept = names[root];
        names[root] = names[child];
        names[child] = kept;
    }
}

static void sort_names(char **names, int64_t count)
{
    for (int64_t i = count / 2; i-- > 0;) sift(names, i, count);
    while (count > 1) {
        char *kept = names[0];
        names[0] = names[--count];
        names[count] = kept;
        sift(names, 0, count);
    }
}

exphil_status xph_folder_list(exphil_context *context, const char *path, const char *suffix,
                              xph_folder *folder, exphil_error *error)
{
    const exphil_io *io = &context->io;
    *folder = (xph_folder){.context = context};
    if (!io->list)
        return xph_fail(error, EXPHIL_E_UNSUPPORTED, "\"%s\" is a folder, and io.list is NULL", path);
    listing to = {folder, suffix};
    int32_t rc = io->list(io->user, path, take_name, &to);
    if (rc) {
        xph_folder_free(folder);
        return rc == ENOMEM ? xph_fail(error, EXPHIL_E_MEMORY, "no memory for the names in \"%s\"", path)
                            : xph_fail_errno(error, EXPHIL_E_IO, rc, "could not list \"%s\"", path);
    }
    sort_names(folder->names, folder->count);
    return EXPHIL_OK;
}

void xph_folder_free(xph_folder *folder)
{
    for (int64_t i = 0; i < folder->count; i++)
        xph_free(folder->context, folder->names[i], strlen(folder->names[i]) + 1);
    xph_free(folder->context, folder->names, (size_t)folder->capacity * sizeof *folder->names);
    *folder = (xph_folder){.context = folder->context};
}
