/* Dolphin keeps the console's memory in a shared memory object, whose name it removes at once; it still has the file open, and
 * /proc/PID/fd leads to it. Mapped, a look at the game is a load, not a system call. The GameCube's memory is the object's first
 * 24 MiB. Needs the rights to read the process (same user; "ptrace" of kind read, which Yama does not restrict). */
#define _GNU_SOURCE
#include "dolphin.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int refuse(struct dolphin *d, const char *what)
{
    int forbidden = errno == EACCES || errno == EPERM;
    snprintf(d->message, sizeof d->message, "Dolphin's memory (process %d): %s: %s%s", (int)d->pid, what,
             strerror(errno),
             forbidden ? "; reading another process needs the same user and the right to trace it (ptrace)"
                       : "");
    return DOLPHIN_FAILED;
}

static int map_file(struct dolphin *d, const char *path)
{
    struct stat found;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return refuse(d, path);
    if (fstat(file, &found) < 0 ||
        found.st_size < (off_t)DOLPHIN_MEMORY_BYTES) { /* made, but not yet made long */
        close(file);
        return 1;
    }
    void *memory = mmap(NULL, DOLPHIN_MEMORY_BYTES, PROT_READ, MAP_SHARED, file, 0);
    int error = errno;
    close(file);
    errno = error;
    if (memory == MAP_FAILED) return refuse(d, "cannot be mapped");
    d->memory = memory;
    return DOLPHIN_OK;
}

int dolphin_memory_open(struct dolphin *d)
{
    char path[DOLPHIN_PATH], target[DOLPHIN_PATH];
    snprintf(path, sizeof path, "/proc/%d/fd", (int)d->pid);
    DIR *folder = opendir(path);
    if (!folder) return errno == ENOENT ? 1 : refuse(d, path);
    int status = 1;
    for (struct dirent *entry; status == 1 && (entry = readdir(folder));) {
        snprintf(path, sizeof path, "/proc/%d/fd/%.20s", (int)d->pid, entry->d_name);
        ssize_t bytes = readlink(path, target, sizeof target - 1);
        if (bytes <= 0) continue;
        target[bytes] = 0;
        if (strstr(target, "/dev/shm/dolphin-emu.")) status = map_file(d, path);
    }
    closedir(folder);
    return status;
}

void dolphin_memory_close(struct dolphin *d)
{
    if (d->memory) munmap((void *)(uintptr_t)d->memory, DOLPHIN_MEMORY_BYTES);
    d->memory = NULL;
}

const uint8_t *dolphin_memory_at(void *user, uint32_t address, uint32_t bytes)
{
    const struct dolphin *d = user;
    uint32_t offset = address & 0x3FFFFFFFu, top = address >> 30;
    if (!d->memory || (top != 2 && top != 3) || bytes > DOLPHIN_MEMORY_BYTES ||
        offset > DOLPHIN_MEMORY_BYTES - bytes)
        return NULL;
    return d->memory + offset;
}

/* Aligned words change whole. The console's byte order is the other one. */
uint32_t dolphin_word(const struct dolphin *d, uint32_t address)
{
    const uint8_t *bytes = dolphin_memory_at((void *)(uintptr_t)d, address & ~3u, 4);
    return bytes ? __builtin_bswap32(__atomic_load_n((const uint32_t *)(const void *)bytes, __ATOMIC_ACQUIRE))
                 : 0;
}

int dolphin_wait_word(struct dolphin *d, uint32_t address, uint32_t before, uint32_t *now)
{
    struct timespec nap = {0, d->poll_ns};
    int64_t naps_a_second = 1000000000 / d->poll_ns;
    for (int64_t naps = 0; (*now = dolphin_word(d, address)) == before; naps++) {
        int status = dolphin_interrupted || naps % (naps_a_second / 8) == 0 ? dolphin_check(d) : DOLPHIN_OK;
        if (status != DOLPHIN_OK) return status;
        if (naps >= naps_a_second * d->patience_s) {
            snprintf(d->message, sizeof d->message, "the game stands still: 0x%08X is %u for %d s",
                     (unsigned)address, (unsigned)before, d->patience_s);
            return DOLPHIN_FAILED;
        }
        nanosleep(&nap, NULL);
    }
    return DOLPHIN_OK;
}
