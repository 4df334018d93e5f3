/* The old program as a host: memory, files, threads, log and cancelling are its own. */
#include "old.h"

#include <errno.h>
#include <stdatomic.h>

/* ---- memory ------------------------------------------------------------------------------------------- */

/* Threads of the library ask for memory, too. */
static _Atomic int64_t held;
static int64_t asked, loops;

static void *host_alloc(void *user, size_t size, size_t align)
{
    (void)user;
    held += (int64_t)size;
    return aligned_alloc(align, (size + align - 1) / align * align);
}

static void host_free(void *user, void *pointer, size_t size)
{
    (void)user;
    held -= (int64_t)size;
    free(pointer);
}

/* ---- files, in memory --------------------------------------------------------------------------------- */

enum { FILES = 32 };
static struct file {
    char path[96];
    unsigned char *data;
    size_t size;
} files[FILES];

static struct file *find(const char *path)
{
    for (int i = 0; i < FILES; i++)
        if (files[i].path[0] && strcmp(files[i].path, path) == 0) return &files[i];
    return NULL;
}

static void drop(struct file *file)
{
    if (!file) return;
    free(file->data);
    memset(file, 0, sizeof *file);
}

static struct file *make(const char *path)
{
    drop(find(path));
    for (int i = 0; i < FILES; i++) {
        if (files[i].path[0] || strlen(path) >= sizeof files[i].path) continue;
        snprintf(files[i].path, sizeof files[i].path, "%s", path);
        return &files[i];
    }
    return NULL;
}

static int32_t file_kind(void *user, const char *path, int32_t *kind)
{
    (void)user;
    *kind = strcmp(path, FOLDER) == 0 ? EXPHIL_IO_FOLDER : find(path) ? EXPHIL_IO_FILE : EXPHIL_IO_ABSENT;
    return 0;
}

static int32_t file_open(void *user, const char *path, int32_t mode, void **file)
{
    (void)user;
    *file = mode == EXPHIL_IO_CREATE ? make(path) : find(path);
    return *file ? 0 : ENOENT;
}

static int32_t file_size(void *user, void *file, uint64_t *size)
{
    (void)user;
    *size = ((struct file *)file)->size;
    return 0;
}

static int32_t file_read(void *user, void *file, uint64_t offset, void *data, size_t size, size_t *done)
{
    const struct file *from = file;
    (void)user;
    size_t rest = offset < from->size ? from->size - (size_t)offset : 0;
    *done = size < rest ? size : rest;
    if (*done) memcpy(data, from->data + offset, *done);
    return 0;
}

static int32_t file_write(void *user, void *file, const void *data, size_t size, size_t *done)
{
    struct file *to = file;
    (void)user;
    unsigned char *longer = realloc(to->data, to->size + size + 1);
    if (!longer) return ENOMEM;
    to->data = longer;
    memcpy(to->data + to->size, data, size);
    to->size += size;
    *done = size;
    return 0;
}

static int32_t file_nothing(void *user, void *file)
{
    (void)user;
    (void)file;
    return 0;
}

static int32_t file_rename(void *user, const char *from, const char *to)
{
    struct file *file = find(from);
    (void)user;
    if (!file || strlen(to) >= sizeof file->path) return ENOENT;
    drop(find(to));
    snprintf(file->path, sizeof file->path, "%s", to);
    return 0;
}

static int32_t file_remove(void *user, const char *path)
{
    (void)user;
    drop(find(path));
    return 0;
}

static int32_t folder_sync(void *user, const char *path)
{
    (void)user;
    (void)path;
    return 0;
}

static int32_t file_map(void *user, void *file, size_t size, const void **data)
{
    (void)user;
    (void)size;
    *data = ((struct file *)file)->data;
    return 0;
}

static int32_t file_unmap(void *user, const void *data, size_t size)
{
    (void)user;
    (void)data;
    (void)size;
    return 0;
}

#if EXPHIL_VERSION >= 200
static int32_t folder_list(void *user, const char *folder, int32_t (*name)(void *to, const char *name),
                           void *to)
{
    size_t length = strlen(folder);
    int32_t code = 0;
    (void)user;
    for (int i = 0; i < FILES && !code; i++)
        if (strncmp(files[i].path, folder, length) == 0 && files[i].path[length] == '/')
            code = name(to, files[i].path + length + 1);
    return code;
}
#endif

/* ---- threads, log, cancelling ------------------------------------------------------------------------- */

static void in_turn(void *user, void (*fn)(void *arg, int64_t i, int32_t worker), void *arg, int64_t count)
{
    (void)user;
    loops++;
    for (int64_t i = 0; i < count; i++) fn(arg, i, (int32_t)(i % 2));
}

static void host_log(void *user, exphil_log_level level, const char *message)
{
    (void)user;
    CHECK(level >= EXPHIL_LOG_ERROR && level <= EXPHIL_LOG_DEBUG && message[0]);
}

static int32_t host_cancel(void *user)
{
    (void)user;
    asked++;
    return 0;
}

const exphil_io *host_io;

exphil_context *host_context(void)
{
    exphil_allocator allocator = {sizeof allocator, NULL, host_alloc, host_free};
    exphil_io io = {sizeof io,    NULL,         file_kind,   file_open,   file_size,   file_read, file_write,
                    file_nothing, file_nothing, file_rename, file_remove, folder_sync, file_map,  file_unmap};
    exphil_executor executor = {sizeof executor, NULL, 2, 0, in_turn};
#if EXPHIL_VERSION >= 200
    io.list = folder_list;
#endif
    exphil_context_config *config = EDGE(exphil_context_config, EXPHIL_CONTEXT_CONFIG_INIT);
    exphil_device_info *device = EDGE(exphil_device_info, EXPHIL_DEVICE_INFO_INIT), here = *device;
    exphil_memory_info *memory = EDGE(exphil_memory_info, EXPHIL_MEMORY_INFO_INIT);
    exphil_context *context = NULL;
    config->allocator = EDGE_OF(allocator);
    config->io = host_io = EDGE_OF(io);
    config->executor = EDGE_OF(executor);
    config->log = host_log;
    config->cancel = host_cancel;
    config->log_level = EXPHIL_LOG_DEBUG;
    config->threads = 2;
    DONE(exphil_context_create(config, &context, error));
    DONE(exphil_context_device(context, device, error));
    DONE(exphil_device_get(0, EDGE_OF(here), error));
    CHECK(strcmp(device->id, "cpu") == 0 && exphil_device_count() > 0);
    DONE(exphil_context_memory(context, memory, error));
    CHECK(memory->host_used_bytes > 0 && (int64_t)memory->host_used_bytes == held &&
          !memory->device_used_bytes);
    return context;
}

void host_file(const char *path, const void *data, size_t size)
{
    size_t done = 0;
    struct file *file = make(path);
    CHECK(file && file_write(NULL, file, data, size, &done) == 0 && done == size);
}

void host_end(void)
{
    for (int i = 0; i < FILES; i++) drop(&files[i]);
    CHECK(held == 0 && asked > 0 && loops > 0);
}
