/* A libretro core as a loaded library: its functions, found by name. Used by the plugin and by the runner. */
#ifndef EXPHIL_CORE_LIBRARY_H
#define EXPHIL_CORE_LIBRARY_H

#include "system.h"

#include <libretro-common/libretro.h>
#include <stddef.h>

/* All functions of the interface. */
#define CORE_FUNCTIONS(X)                                                                                    \
  X(retro_set_environment)                                                                                   \
  X(retro_set_video_refresh)                                                                                 \
  X(retro_set_audio_sample)                                                                                  \
  X(retro_set_audio_sample_batch)                                                                            \
  X(retro_set_input_poll)                                                                                    \
  X(retro_set_input_state)                                                                                   \
  X(retro_init)                                                                                              \
  X(retro_deinit)                                                                                            \
  X(retro_api_version)                                                                                       \
  X(retro_get_system_info)                                                                                   \
  X(retro_get_system_av_info)                                                                                \
  X(retro_set_controller_port_device)                                                                        \
  X(retro_reset)                                                                                             \
  X(retro_run)                                                                                               \
  X(retro_serialize_size)                                                                                    \
  X(retro_serialize)                                                                                         \
  X(retro_unserialize)                                                                                       \
  X(retro_cheat_reset)                                                                                       \
  X(retro_cheat_set)                                                                                         \
  X(retro_load_game)                                                                                         \
  X(retro_load_game_special)                                                                                 \
  X(retro_unload_game)                                                                                       \
  X(retro_get_region)                                                                                        \
  X(retro_get_memory_data)                                                                                   \
  X(retro_get_memory_size)

struct core_library {
    void *handle, *copy;
#define CORE_POINTER(name) __typeof__(&name) name;
    CORE_FUNCTIONS(CORE_POINTER)
#undef CORE_POINTER
};

/* Where systems keep their cores, SYSTEM_BETWEEN between. */
#ifndef EXPHIL_CORE_FOLDERS
#  define EXPHIL_CORE_FOLDERS SYSTEM_CORES
#endif
/* The path of a file in one of these folders. -1: there is none. */
int core_library_find(const char *file, char *path, size_t path_bytes);
/* -1 with a message: not there, a function missing, or another version of the interface. */
int core_library_open(struct core_library *core, const char *path, char *message, size_t message_bytes);
void core_library_close(struct core_library *core);

#endif
