/* A core's functions. A core keeps its game in static variables: each user in one process gets variables of its own. */
#include "core_library.h"

#include "system.h"

#include <stdio.h>
#include <string.h>

static int find_functions(struct core_library *core, const char *path, char *message, size_t message_bytes)
{
#define CORE_FIND(name)                                                                                      \
  *(void **)&core->name = system_library_find(core->handle, #name);                                          \
  if (!core->name) return snprintf(message, message_bytes, "%s is no libretro core: no %s", path, #name), -1;
    CORE_FUNCTIONS(CORE_FIND)
#undef CORE_FIND
    unsigned version = core->retro_api_version();
    if (version == RETRO_API_VERSION) return 0;
    snprintf(message, message_bytes, "%s speaks version %u of libretro, not %d", path, version,
             RETRO_API_VERSION);
    return -1;
}

int core_library_find(const char *file, char *path, size_t path_bytes)
{
    for (const char *folder = EXPHIL_CORE_FOLDERS; *folder;) {
        size_t length = strcspn(folder, SYSTEM_BETWEEN);
        int written = snprintf(path, path_bytes, "%.*s/%s", (int)length, folder, file);
        if (written > 0 && (size_t)written < path_bytes && system_is_readable(path)) return 0;
        folder += length + (folder[length] != 0);
    }
    return -1;
}

int core_library_open(struct core_library *core, const char *path, char *message, size_t message_bytes)
{
    memset(core, 0, sizeof *core);
    core->handle = system_library_open_alone(path, &core->copy, message, message_bytes);
    if (!core->handle) return -1;
    if (!find_functions(core, path, message, message_bytes)) return 0;
    core_library_close(core);
    return -1;
}

void core_library_close(struct core_library *core)
{
    system_library_close_alone(core->handle, core->copy);
    memset(core, 0, sizeof *core);
}
