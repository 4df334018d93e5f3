/* Opens a core with a name space of its own, so that a core within a core does not take the outer one's functions. A core
 * keeps its game in static variables: a second user in one process gets a copy of the file, and so variables of its own. */
#define _POSIX_C_SOURCE 200809L
#include "core_library.h"

#include <dlfcn.h>
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

/* The file has no name any more when this returns: it goes with the library. */
static void *open_copy(const char *path)
{
    const char *folder = getenv("TMPDIR");
    char name[4096];
    if (snprintf(name, sizeof name, "%s/exphil-core-XXXXXX", folder ? folder : "/tmp") >= (int)sizeof name)
        return NULL;
    int file = mkstemp(name);
    FILE *out = file < 0 ? NULL : fdopen(file, "wb");
    if (!out) return NULL;
    int failed = copy_file(path, out);
    if (fclose(out)) failed = -1;
    void *handle = failed ? NULL : dlopen(name, RTLD_NOW | RTLD_LOCAL);
    unlink(name);
    return handle;
}

static void *open_alone(const char *path)
{
    void *loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (!loaded) return dlopen(path, RTLD_NOW | RTLD_LOCAL);
    dlclose(loaded);
    return open_copy(path);
}

int core_library_open(struct core_library *core, const char *path, char *message, size_t message_bytes)
{
    memset(core, 0, sizeof *core);
    core->handle = open_alone(path);
    if (!core->handle) {
        const char *why = dlerror();
        snprintf(message, message_bytes, "%s", why ? why : path);
        return -1;
    }
    if (!find_functions(core, path, message, message_bytes)) return 0;
    core_library_close(core);
    return -1;
}

void core_library_close(struct core_library *core)
{
    if (core->handle) dlclose(core->handle);
    memset(core, 0, sizeof *core);
}
