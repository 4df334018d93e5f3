/* exphil_io on the file system of the machine. A file is its descriptor plus one, stored in the pointer:
 * nothing to allocate, and never NULL. Interrupted and short operations are reported as they are; the callers
 * in this room continue them. */
#define _GNU_SOURCE
#include "base/system.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LARGEST_TRANSFER ((size_t)1 << 30) /* Linux does at most 2 GiB less a page in one call */
#define CREATE_ATTEMPTS  16

static void *pack(int descriptor)
{
    return (void *)((intptr_t)descriptor + 1);
}
static int unpack(void *file)
{
    return (int)((intptr_t)file - 1);
}

static int32_t kind_of(void *user, const char *path, int32_t *kind)
{
    (void)user;
    struct stat status;
    if (lstat(path, &status) != 0) {
        if (errno != ENOENT) return errno;
        *kind = EXPHIL_IO_ABSENT;
        return 0;
    }
    *kind = S_ISREG(status.st_mode)   ? EXPHIL_IO_FILE
            : S_ISDIR(status.st_mode) ? EXPHIL_IO_FOLDER
                                      : EXPHIL_IO_OTHER;
    return 0;
}

/* O_NONBLOCK so that opening a pipe somebody put there does not hang; size refuses it afterwards. */
static int32_t open_existing(const char *path, void **file)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return errno;
    *file = pack(descriptor);
    return 0;
}

/* Whether path still names the file that was opened: another writer may have renamed or removed it between our open
 * and our lock. 0: yes; EAGAIN: no, open again; else an error. */
static int32_t still_there(int descriptor, const char *path)
{
    struct stat opened, named;
    if (fstat(descriptor, &opened) != 0) return errno;
    if (!S_ISREG(opened.st_mode)) return EEXIST;
    if (lstat(path, &named) != 0) return errno == ENOENT ? EAGAIN : errno;
    return opened.st_dev == named.st_dev && opened.st_ino == named.st_ino ? 0 : EAGAIN;
}

/* Locks the file that path names. EBUSY: somebody else has it locked. WASI has no locks: two writers of one file at the same
 * time are not kept apart there. */
static int32_t lock_named(int descriptor, const char *path)
{
#ifndef __wasi__
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) return errno == EWOULDBLOCK ? EBUSY : errno;
#endif
    return still_there(descriptor, path);
}

/* Takes away the name that a killed writer left. What else has the file by another name keeps it whole: nothing here
 * is ever truncated. Only who holds the lock of a file removes its name, so a living writer keeps it. */
static int32_t remove_stale(const char *path)
{
    int descriptor = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor < 0) return errno == ENOENT ? 0 : errno;
    int32_t rc = lock_named(descriptor, path);
    if (!rc && unlink(path) != 0) rc = errno;
    close(descriptor);
    return rc;
}

/* A new file of our own. EAGAIN: the name was taken and is free now, or another writer came between. */
static int32_t create_once(const char *path, void **file)
{
    int descriptor = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0666);
    if (descriptor < 0) {
        if (errno != EEXIST) return errno;
        int32_t rc = remove_stale(path);
        return rc ? rc : EAGAIN;
    }
    int32_t rc = lock_named(descriptor, path);
    if (rc) {
        close(descriptor);
        return rc;
    }
    *file = pack(descriptor);
    return 0;
}

static int32_t open_file(void *user, const char *path, int32_t mode, void **file)
{
    (void)user;
    if (mode == EXPHIL_IO_READ) return open_existing(path, file);
    if (mode != EXPHIL_IO_CREATE) return EINVAL;
    int32_t rc = EAGAIN;
    for (int i = 0; i < CREATE_ATTEMPTS && rc == EAGAIN; i++) rc = create_once(path, file);
    return rc == EAGAIN ? EBUSY : rc;
}

static int32_t size_of(void *user, void *file, uint64_t *size)
{
    (void)user;
    struct stat status;
    if (fstat(unpack(file), &status) != 0) return errno;
    if (S_ISDIR(status.st_mode)) return EISDIR;
    if (!S_ISREG(status.st_mode)) return EINVAL;
    *size = (uint64_t)status.st_size;
    return 0;
}

static int32_t read_at(void *user, void *file, uint64_t offset, void *data, size_t bytes, size_t *done)
{
    (void)user;
    if (offset > INT64_MAX) return EOVERFLOW;
    ssize_t rc =
        pread(unpack(file), data, bytes < LARGEST_TRANSFER ? bytes : LARGEST_TRANSFER, (off_t)offset);
    if (rc < 0) return errno;
    *done = (size_t)rc;
    return 0;
}

static int32_t write_on(void *user, void *file, const void *data, size_t bytes, size_t *done)
{
    (void)user;
    ssize_t rc = write(unpack(file), data, bytes < LARGEST_TRANSFER ? bytes : LARGEST_TRANSFER);
    if (rc < 0) return errno;
    *done = (size_t)rc;
    return 0;
}

static int32_t sync_descriptor(int descriptor)
{
#ifdef F_FULLFSYNC
    /* macOS: fsync leaves it in the cache of the drive ("man 2 fsync"); some file systems know nothing else. */
    if (fcntl(descriptor, F_FULLFSYNC) == 0) return 0;
    if (errno != ENOTSUP && errno != EOPNOTSUPP && errno != EINVAL && errno != ENOTTY) return errno;
#endif
    return fsync(descriptor) == 0 ? 0 : errno;
}

static int32_t sync_file(void *user, void *file)
{
    (void)user;
    return sync_descriptor(unpack(file));
}

/* The descriptor is gone whatever close says, after EINTR too (Linux). */
static int32_t close_file(void *user, void *file)
{
    (void)user;
    return close(unpack(file)) == 0 || errno == EINTR ? 0 : errno;
}

static int32_t rename_file(void *user, const char *from, const char *to)
{
    (void)user;
    return rename(from, to) == 0 ? 0 : errno;
}

static int32_t remove_file(void *user, const char *path)
{
    (void)user;
    return unlink(path) == 0 ? 0 : errno;
}

static int32_t sync_folder(void *user, const char *path)
{
    (void)user;
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    if (length >= sizeof folder) return ENAMETOOLONG;
    snprintf(folder, sizeof folder, "%.*s", (int)length, path);
    if (!length) snprintf(folder, sizeof folder, "%s", slash ? "/" : ".");
    int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return errno;
    /* Some network file systems cannot sync a folder and say EINVAL: there is no more to be done there. */
    const int32_t rc = sync_descriptor(descriptor);
    close(descriptor);
    return rc == EINVAL ? 0 : rc;
}

static int32_t list_folder(void *user, const char *folder, int32_t (*name)(void *to, const char *name),
                           void *to)
{
    (void)user;
    DIR *opened = opendir(folder);
    if (!opened) return errno;
    int32_t rc = 0;
    for (const struct dirent *entry; !rc;) {
        errno = 0; /* readdir tells its end from its failure by nothing else */
        entry = readdir(opened);
        if (!entry) {
            rc = errno;
            break;
        }
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) rc = name(to, entry->d_name);
    }
    closedir(opened);
    return rc;
}

const exphil_io xph_system_io = {
    .struct_size = sizeof(exphil_io),
    .kind = kind_of,
    .open = open_file,
    .size = size_of,
    .read = read_at,
    .write = write_on,
    .sync = sync_file,
    .close = close_file,
    .rename = rename_file,
    .remove = remove_file,
    .sync_folder = sync_folder,
    .list = list_folder,
};
