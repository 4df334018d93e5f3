/* Files in memory: a list of names and bytes. One thread, so that nothing is locked, and nothing is lost but with the module. */
#include "play.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct file {
    struct file *next;
    unsigned char *data;
    size_t size, room;
    char name[64];
};
static struct file *files;

static struct file **find(const char *name)
{
    struct file **at = &files;
    while (*at && strcmp((*at)->name, name) != 0) at = &(*at)->next;
    return at;
}

static int32_t remove_file(void *user, const char *name)
{
    (void)user;
    struct file **at = find(name), *gone = *at;
    if (!gone) return ENOENT;
    *at = gone->next;
    free(gone->data);
    free(gone);
    return 0;
}

static int32_t kind_of(void *user, const char *name, int32_t *kind)
{
    (void)user;
    *kind = *find(name) ? EXPHIL_IO_FILE : EXPHIL_IO_ABSENT;
    return 0;
}

static int32_t open_file(void *user, const char *name, int32_t mode, void **file)
{
    struct file **at = find(name);
    if (mode == EXPHIL_IO_CREATE) {
        if (strlen(name) >= sizeof(*at)->name) return ENAMETOOLONG;
        if (*at) remove_file(user, name);
        at = find(name);
        if (!(*at = calloc(1, sizeof **at))) return ENOMEM;
        strcpy((*at)->name, name);
    }
    if (!*at) return ENOENT;
    *file = *at;
    return 0;
}

static int32_t size_of(void *user, void *file, uint64_t *size)
{
    (void)user;
    *size = ((struct file *)file)->size;
    return 0;
}

static int32_t read_file(void *user, void *file, uint64_t offset, void *data, size_t bytes, size_t *done)
{
    (void)user;
    const struct file *f = file;
    *done = 0;
    if (offset >= f->size) return 0;
    *done = bytes < f->size - (size_t)offset ? bytes : f->size - (size_t)offset;
    memcpy(data, f->data + offset, *done);
    return 0;
}

static int32_t write_file(void *user, void *file, const void *data, size_t bytes, size_t *done)
{
    (void)user;
    struct file *f = file;
    if (bytes > f->room - f->size) {
        size_t room = f->size + bytes + f->room / 2;
        unsigned char *more = room > f->size ? realloc(f->data, room) : NULL;
        if (!more) return ENOSPC;
        f->data = more;
        f->room = room;
    }
    memcpy(f->data + f->size, data, bytes);
    f->size += bytes;
    *done = bytes;
    return 0;
}

static int32_t nothing(void *user, void *file)
{
    (void)user;
    (void)file;
    return 0;
}

static int32_t rename_file(void *user, const char *from, const char *to)
{
    struct file *moved = *find(from);
    if (!moved) return ENOENT;
    if (strlen(to) >= sizeof moved->name) return ENAMETOOLONG;
    if (strcmp(from, to) == 0) return 0;
    if (*find(to)) remove_file(user, to);
    strcpy(moved->name, to);
    return 0;
}

static int32_t sync_folder(void *user, const char *name)
{
    (void)user;
    (void)name;
    return 0;
}

const exphil_io play_files = {.struct_size = sizeof(exphil_io),
                              .kind = kind_of,
                              .open = open_file,
                              .size = size_of,
                              .read = read_file,
                              .write = write_file,
                              .sync = nothing,
                              .close = nothing,
                              .rename = rename_file,
                              .remove = remove_file,
                              .sync_folder = sync_folder};
