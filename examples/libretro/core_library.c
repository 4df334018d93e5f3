/* Opens a core with a name space of its own, so that a core within a core does not take the outer one's functions. A core
 * keeps its game in static variables: a second user in one process gets a copy of the file, and so variables of its own. */
#define _POSIX_C_SOURCE 200809L
#include "core_library.h"

#include <dlfcn.h>
#include <errno.h>
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

static int copy_file(const char *from, FILE *out)
{
    char block[65536];
    size_t got;
    FILE *in = fopen(from, "rb");
    if (!in) return -1;
    while ((got = fread(block, 1, sizeof block, in)) > 0 && fwrite(block, got, 1, out) == 1) {
    }
    int failed = got > 0 || ferror(in);
    fclose(in);
    return failed ? -1 : 0;
}

/* Into a new file, whose name ends with XXXXXX before. -1, with errno: it is not there. */
static int write_copy(const char *path, char *name)
{
    int file = mkstemp(name);
    if (file < 0) return -1;
    FILE *out = fdopen(file, "wb");
    int failed = !out || copy_file(path, out), why = errno;
    if (out ? fclose(out) : close(file)) {
        if (!failed) why = errno;
        failed = 1;
    }
    if (failed) unlink(name);
    errno = why;
    return failed ? -1 : 0;
}

static void *open_file(const char *path, char *message, size_t message_bytes)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) snprintf(message, message_bytes, "%s", dlerror());
    return handle;
}

/* The file has no name any more when this returns: it goes with the library. */
static void *open_copy(const char *path, char *message, size_t message_bytes)
{
    const char *folder = getenv("TMPDIR");
    char name[4096];
    if (!folder || !*folder) folder = "/tmp";
    errno = ENAMETOOLONG;
    if (snprintf(name, sizeof name, "%s/exphil-core-XXXXXX", folder) >= (int)sizeof name ||
        write_copy(path, name)) {
        int why = errno;
        snprintf(message, message_bytes, "%s is in use, and no copy of it can be made in %.200s: %s", path,
                 folder, strerror(why));
        return NULL;
    }
    void *handle = open_file(name, message, message_bytes);
    unlink(name);
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
