/* Opens a library with a name space of its own, so that a core within a core does not take the outer one's functions. A core
 * keeps its game in static variables: a second user in one process gets a copy of the file, and so variables of its own. Its code
 * stays that of the first file, so that a processor keeps it once for all. */
#define _GNU_SOURCE
#include "system.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#ifdef __linux__
#  include <link.h>
#  include <sys/mman.h>
#endif
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- copies ------------------------------------------------------------------------------------------------------------- */

static int copy_file(int from, int to)
{
    char block[65536];
    ssize_t got;
    if (lseek(from, 0, SEEK_SET)) return -1;
    while ((got = read(from, block, sizeof block)) > 0)
        for (ssize_t put = 0, more; put < got; put += more)
            if ((more = write(to, block + put, (size_t)(got - put))) <= 0) return -1;
    return got < 0 ? -1 : 0;
}

/* Into a new file, whose name ends with XXXXXX before. -1, with errno: it is not there. */
static int write_copy(int core, char *name)
{
    int file = mkstemp(name);
    if (file < 0) return -1;
    int failed = copy_file(core, file), why = errno;
    if (close(file) && !failed) failed = -1, why = errno;
    if (failed) unlink(name);
    errno = why;
    return failed;
}

#ifdef __linux__
struct sharing {
    ElfW(Addr) base;
    int file;
};

/* What is only read or run, and is what the file says, is mapped from the file. */
static void share_segment(const struct sharing *s, const ElfW(Phdr) * part)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), before = part->p_vaddr % page;
    const size_t bytes = part->p_filesz + before;
    unsigned char *loaded = (unsigned char *)(uintptr_t)(s->base + part->p_vaddr - before);
    if (part->p_type != PT_LOAD || part->p_flags & PF_W || part->p_filesz != part->p_memsz) return;
    void *fresh = mmap(NULL, bytes, PROT_READ | (part->p_flags & PF_X ? PROT_EXEC : 0), MAP_PRIVATE, s->file,
                       (off_t)(part->p_offset - before));
    if (fresh == MAP_FAILED) return;
    if (memcmp(fresh, loaded, bytes) != 0 ||
        mremap(fresh, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, loaded) == MAP_FAILED)
        munmap(fresh, bytes);
}

static int share_segments(struct dl_phdr_info *info, size_t size, void *user)
{
    const struct sharing *s = user;
    (void)size;
    if (info->dlpi_addr != s->base) return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) share_segment(s, &info->dlpi_phdr[i]);
    return 1;
}

/* Sixty-four copies of the code are more than a processor's caches hold. */
static void share_code(void *handle, int file)
{
    struct link_map *map;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map)) return;
    struct sharing s = {map->l_addr, file};
    dl_iterate_phdr(share_segments, &s);
}
#else
static void share_code(void *handle, int file)
{
    (void)handle, (void)file;
}
#endif

void *system_library_open(const char *path, char *why, size_t why_bytes)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) snprintf(why, why_bytes, "%s", dlerror());
    return library;
}

/* The copy has no name any more when this returns: it goes with the library. */
static void *load_copy(int core, char *name, char *message, size_t message_bytes)
{
    if (write_copy(core, name)) return snprintf(message, message_bytes, "%s", strerror(errno)), NULL;
    void *handle = system_library_open(name, message, message_bytes);
    unlink(name);
    if (handle) share_code(handle, core);
    return handle;
}

static void *open_copy(const char *path, char *message, size_t message_bytes)
{
    const char *folder = getenv("TMPDIR");
    char name[4096], why[256] = "the path is too long";
    void *handle = NULL;
    if (!folder || !*folder) folder = "/tmp";
    int core = open(path, O_RDONLY | O_CLOEXEC);
    if (core < 0)
        snprintf(why, sizeof why, "%s", strerror(errno));
    else if (snprintf(name, sizeof name, "%s/exphil-core-XXXXXX", folder) < (int)sizeof name)
        handle = load_copy(core, name, why, sizeof why);
    if (core >= 0) close(core);
    if (!handle)
        snprintf(message, message_bytes, "%s is in use, and no copy of it can be made in %.200s: %s", path,
                 folder, why);
    return handle;
}

void *system_library_open_alone(const char *path, void **copy, char *why, size_t why_bytes)
{
    void *loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    *copy = NULL;
    if (!loaded) return system_library_open(path, why, why_bytes);
    dlclose(loaded);
    return open_copy(path, why, why_bytes);
}

void *system_library_find(void *library, const char *name)
{
    return dlsym(library, name);
}

void system_library_close(void *library)
{
    if (library) dlclose(library);
}

void system_library_close_alone(void *library, void *copy)
{
    (void)copy;
    system_library_close(library);
}

int system_library_path(const void *inside, char *path, size_t path_bytes)
{
    Dl_info own;
    if (!dladdr(inside, &own) || !own.dli_fname) return -1;
    return (size_t)snprintf(path, path_bytes, "%s", own.dli_fname) < path_bytes ? 0 : -1;
}

/* ---- paths and files ---------------------------------------------------------------------------------------------------- */

const char *system_last_slash(const char *path)
{
    return strrchr(path, '/');
}

int system_is_readable(const char *path)
{
    return access(path, R_OK) == 0;
}

int system_is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

int system_is_special(const char *path)
{
    struct stat seen;
    return !stat(path, &seen) && !S_ISREG(seen.st_mode);
}

FILE *system_open(const char *path, const char *mode)
{
    return fopen(path, mode);
}

int system_file_seen(const char *path, uint64_t *id, int64_t *bytes)
{
    struct stat seen;
    if (lstat(path, &seen)) return -1;
    *id = seen.st_ino;
    *bytes = seen.st_size;
    return S_ISREG(seen.st_mode) ? 0 : 1;
}

int system_lock(const char *name, intptr_t *lock)
{
    struct stat seen = {0};
    int file = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (file < 0) return errno;
    int why = flock(file, LOCK_EX | LOCK_NB) || fstat(file, &seen) ? errno : 0;
    /* Without a name: its holder has removed it since it was opened here. */
    if (why == EWOULDBLOCK || (!why && seen.st_nlink == 0)) why = EBUSY;
    if (why) close(file);
    *lock = file;
    return why;
}

void system_unlock(const char *name, intptr_t lock)
{
    unlink(name);
    close((int)lock);
}

/* ---- the process -------------------------------------------------------------------------------------------------------- */

void system_arguments(int *argc, char ***argv)
{
    (void)argc, (void)argv;
}

const char *system_variable(const char *name)
{
    return getenv(name);
}

void system_hold_streams(void)
{
    for (int stream = 0; stream <= 2; stream++)
        if (fcntl(stream, F_GETFD) < 0 && open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY) < 0) return;
}

int system_silence(void)
{
    fflush(stdout);
    int kept = dup(STDOUT_FILENO), nowhere = open("/dev/null", O_WRONLY);
    if (kept >= 0 && nowhere >= 0) dup2(nowhere, STDOUT_FILENO);
    if (nowhere >= 0) close(nowhere);
    return kept;
}

void system_speak(int kept)
{
    fflush(stdout);
    if (kept < 0) return;
    dup2(kept, STDOUT_FILENO);
    close(kept);
}

long system_processors(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores < 1 ? 1 : cores;
}

int64_t system_now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

void system_sleep_ns(int64_t ns)
{
    struct timespec wait = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    if (ns > 0) nanosleep(&wait, NULL);
}
