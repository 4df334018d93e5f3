/* Opens a core with a name space of its own, so that a core within a core does not take the outer one's functions. A core
 * keeps its game in static variables: a second user in one process gets a copy of the file, and so variables of its own. Its code
 * stays that of the first file, so that a processor keeps it once for all. */
#define _GNU_SOURCE
#include "core_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#ifdef __linux__
#  include <link.h>
#  include <sys/mman.h>
#endif
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int find_functions(struct core_library *core, const char *path, char *message, size_t message_bytes)
{
    /* A pointer to a function travels through void *, as POSIX has it. */
#define CORE_FIND(name)                                                                                      \
  *(void **)&core->name = dlsym(core->handle, #name);                                                        \
  if (!core->name) return snprintf(message, message_bytes, "%s is no libretro core: no %s", path, #name), -1;
    CORE_FUNCTIONS(CORE_FIND)
#undef CORE_FIND
    unsigned version = core->retro_api_version();
    if (version == RETRO_API_VERSION) return 0;
    snprintf(message, message_bytes, "%s speaks version %u of libretro, not %d", path, version,
             RETRO_API_VERSION);
    return -1;
}

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

static void *open_file(const char *path, char *message, size_t message_bytes)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) snprintf(message, message_bytes, "%s", dlerror());
    return handle;
}

/* The copy has no name any more when this returns: it goes with the library. */
static void *load_copy(int core, char *name, char *message, size_t message_bytes)
{
    if (write_copy(core, name)) return snprintf(message, message_bytes, "%s", strerror(errno)), NULL;
    void *handle = open_file(name, message, message_bytes);
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

int core_library_find(const char *file, char *path, size_t path_bytes)
{
    for (const char *folder = EXPHIL_CORE_FOLDERS; *folder;) {
        size_t length = strcspn(folder, ":");
        int written = snprintf(path, path_bytes, "%.*s/%s", (int)length, folder, file);
        if (written > 0 && (size_t)written < path_bytes && access(path, R_OK) == 0) return 0;
        folder += length + (folder[length] != 0);
    }
    return -1;
}

static void *open_alone(const char *path, char *message, size_t message_bytes)
{
    void *loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (!loaded) return open_file(path, message, message_bytes);
    dlclose(loaded);
    return open_copy(path, message, message_bytes);
}

int core_library_open(struct core_library *core, const char *path, char *message, size_t message_bytes)
{
    memset(core, 0, sizeof *core);
    core->handle = open_alone(path, message, message_bytes);
    if (!core->handle) return -1;
    if (!find_functions(core, path, message, message_bytes)) return 0;
    core_library_close(core);
    return -1;
}

void core_library_close(struct core_library *core)
{
    if (core->handle) dlclose(core->handle);
    memset(core, 0, sizeof *core);
}
