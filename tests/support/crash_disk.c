/* See crash_disk.h. */
#include "crash_disk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

uint64_t crash_random(crash_disk *disk, uint64_t below)
{
    disk->random ^= disk->random << 13;
    disk->random ^= disk->random >> 7;
    disk->random ^= disk->random << 17;
    return below ? disk->random % below : 0;
}

/* ---- names ------------------------------------------------------------------------------------------------- */

static crash_file *durable_file(const crash_disk *disk, const char *path)
{
    for (int32_t i = 0; i < disk->names; i++)
        if (strcmp(disk->durable[i].name, path) == 0) return disk->durable[i].file;
    return NULL;
}

/* As programs see it. */
static crash_file *find(const crash_disk *disk, const char *path)
{
    for (int32_t i = disk->changes; i-- > 0;)
        if (strcmp(disk->pending[i].name, path) == 0) return disk->pending[i].file;
    return durable_file(disk, path);
}

static void change(crash_disk *disk, const char *path, crash_file *file)
{
    assert_true(disk->changes < CRASH_FILES && strlen(path) < CRASH_NAME);
    crash_change *c = &disk->pending[disk->changes++];
    (void)snprintf(c->name, sizeof c->name, "%s", path);
    c->file = file;
    c->operation = disk->operations;
}

static void apply(crash_disk *disk, const crash_change *c)
{
    int32_t i = 0;
    while (i < disk->names && strcmp(disk->durable[i].name, c->name) != 0) i++;
    if (c->file) {
        assert_true(i < CRASH_FILES);
        if (i == disk->names) disk->names++;
        disk->durable[i] = *c;
    } else if (i < disk->names) {
        disk->durable[i] = disk->durable[--disk->names];
    }
}

bool crash_has(const crash_disk *disk, const char *path)
{
    return find(disk, path) != NULL;
}

/* ---- the hook ---------------------------------------------------------------------------------------------- */

/* True: this operation is cut short by the power. */
static bool begin(crash_disk *disk)
{
    if (!disk->dead && ++disk->calls == disk->power_cut_at) disk->dead = true;
    return disk->dead;
}

static int32_t kind(void *user, const char *path, int32_t *what)
{
    if (begin(user)) return EIO;
    *what = find(user, path) ? EXPHIL_IO_FILE : EXPHIL_IO_ABSENT;
    return 0;
}

static int32_t open_file(void *user, const char *path, int32_t mode, void **file)
{
    crash_disk *disk = user;
    if (begin(disk)) return EIO;
    *file = find(disk, path);
    if (mode != EXPHIL_IO_CREATE) return *file ? 0 : ENOENT;
    crash_file *made = calloc(1, sizeof *made);
    assert_non_null(made);
    assert_true(disk->files < (int32_t)(sizeof disk->file / sizeof disk->file[0]));
    disk->file[disk->files++] = made;
    disk->operations++;
    change(disk, path, made);
    *file = made;
    return 0;
}

static int32_t size(void *user, void *file, uint64_t *bytes)
{
    if (begin(user)) return EIO;
    *bytes = ((crash_file *)file)->bytes;
    return 0;
}

static int32_t read_file(void *user, void *file, uint64_t offset, void *data, size_t bytes, size_t *done)
{
    const crash_file *f = file;
    if (begin(user)) return EIO;
    size_t left = offset < f->bytes ? f->bytes - (size_t)offset : 0;
    *done = bytes < left ? bytes : left;
    if (*done) memcpy(data, f->data + offset, *done);
    return 0;
}

static void append(crash_file *f, const void *data, size_t bytes)
{
    if (f->capacity - f->bytes < bytes) {
        f->capacity = 2 * (f->bytes + bytes);
        f->data = realloc(f->data, f->capacity);
        assert_non_null(f->data);
    }
    if (bytes) memcpy(f->data + f->bytes, data, bytes);
    f->bytes += bytes;
}

static int32_t write_file(void *user, void *file, const void *data, size_t bytes, size_t *done)
{
    crash_disk *disk = user;
    if (disk->dead) return EIO;
    if (begin(disk)) {
        append(file, data, (size_t)crash_random(disk, bytes + 1));
        return EIO;
    }
    if (disk->free_bytes >= 0 && (long long)bytes > disk->free_bytes) bytes = (size_t)disk->free_bytes;
    if (!bytes) return ENOSPC;
    if (disk->free_bytes >= 0) disk->free_bytes -= (long long)bytes;
    append(file, data, bytes);
    *done = bytes;
    return 0;
}

static int32_t sync_file(void *user, void *file)
{
    crash_file *f = file;
    if (begin(user)) return EIO;
    f->synced = f->bytes;
    return 0;
}

static int32_t close_file(void *user, void *file)
{
    return begin(user) ? EIO : 0;
}

/* Cut short it may have happened or not, as when it is not synced. */
static int32_t rename_file(void *user, const char *from, const char *to)
{
    crash_disk *disk = user;
    if (disk->dead) return EIO;
    bool cut = begin(disk);
    crash_file *file = find(disk, from);
    if (!file) return ENOENT;
    disk->operations++;
    change(disk, to, file);
    change(disk, from, NULL);
    return cut ? EIO : 0;
}

static int32_t remove_file(void *user, const char *path)
{
    crash_disk *disk = user;
    if (begin(disk)) return EIO;
    if (!find(disk, path)) return ENOENT;
    disk->operations++;
    change(disk, path, NULL);
    return 0;
}

static int32_t sync_folder(void *user, const char *path)
{
    crash_disk *disk = user;
    if (begin(disk)) return EIO;
    for (int32_t i = 0; i < disk->changes; i++) apply(disk, &disk->pending[i]);
    disk->changes = 0;
    return 0;
}

/* ---- the disk ---------------------------------------------------------------------------------------------- */

void crash_disk_begin(crash_disk *disk, uint64_t seed)
{
    memset(disk, 0, sizeof *disk);
    disk->random = (seed + 1) * 0x9e3779b97f4a7c15u;
    disk->free_bytes = -1;
    disk->io.hook = (exphil_io){.struct_size = sizeof(exphil_io),
                                .user = disk,
                                .kind = kind,
                                .open = open_file,
                                .size = size,
                                .read = read_file,
                                .write = write_file,
                                .sync = sync_file,
                                .close = close_file,
                                .rename = rename_file,
                                .remove = remove_file,
                                .sync_folder = sync_folder};
}

void crash_disk_end(crash_disk *disk)
{
    for (int32_t i = 0; i < disk->files; i++) {
        free(disk->file[i]->data);
        free(disk->file[i]);
    }
    disk->files = 0;
}

/* Content behind the last sync: some of it, where a block that did not come is zeros. */
static void lose_content(crash_disk *disk, crash_file *f)
{
    size_t loose = f->bytes - f->synced;
    if (!loose) return;
    f->bytes = f->synced + (size_t)crash_random(disk, loose + 1);
    for (size_t at = f->synced; at < f->bytes; at += 512)
        if (crash_random(disk, 2)) memset(f->data + at, 0, f->bytes - at < 512 ? f->bytes - at : 512);
}

void crash_reboot(crash_disk *disk)
{
    bool happened = false;
    for (int32_t i = 0; i < disk->changes; i++) {
        if (i == 0 || disk->pending[i].operation != disk->pending[i - 1].operation)
            happened = crash_random(disk, 2) != 0;
        if (happened) apply(disk, &disk->pending[i]);
    }
    disk->changes = 0;
    for (int32_t i = 0; i < disk->files; i++) {
        lose_content(disk, disk->file[i]);
        disk->file[i]->synced = disk->file[i]->bytes;
    }
    disk->dead = false;
    disk->calls = disk->power_cut_at = 0;
}
