/* What differs between systems: libraries, paths and settings in UTF-8, the clock, a lock on a file. system_posix.c or
 * system_windows.c; threads.h has the threads of a world's crew. */
#ifndef EXPHIL_LIBRETRO_SYSTEM_H
#define EXPHIL_LIBRETRO_SYSTEM_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef _WIN32
#  define SYSTEM_LIBRARY ".dll"
#  define SYSTEM_BETWEEN ";" /* folders of a list */
#  define SYSTEM_CORES   "C:\\RetroArch-Win64\\cores;C:\\RetroArch\\cores"
#elif defined __APPLE__ /* linked, never run */
#  define SYSTEM_LIBRARY ".dylib"
#  define SYSTEM_BETWEEN ":"
#  define SYSTEM_CORES   "/Applications/RetroArch.app/Contents/Resources/cores"
#else
#  define SYSTEM_LIBRARY ".so"
#  define SYSTEM_BETWEEN ":"
#  define SYSTEM_CORES                                                                                       \
    "/usr/lib/x86_64-linux-gnu/libretro:/usr/lib/aarch64-linux-gnu/libretro:/usr/lib/libretro"
#endif

/* ---- libraries ---- */

/* With a name space of its own. NULL with a reason. */
void *system_library_open(const char *path, char *why, size_t why_bytes);
/* As a library that nobody else in this process has: of one that is loaded already a copy is made, with variables of its own.
 * *copy is what system_library_close_alone wants. */
void *system_library_open_alone(const char *path, void **copy, char *why, size_t why_bytes);
/* A pointer to a function travels through void *, as POSIX and Windows have it. NULL: there is none. */
void *system_library_find(void *library, const char *name);
void system_library_close(void *library);
void system_library_close_alone(void *library, void *copy);
/* The file of the library that inside lies in. -1: it cannot be told. */
int system_library_path(const void *inside, char *path, size_t path_bytes);

/* ---- paths and files ---- */

/* The last thing that parts a folder from what is in it; NULL: there is none. */
const char *system_last_slash(const char *path);
int system_is_readable(const char *path);
int system_is_there(const char *path);
/* It is there and no file of bytes: to open a pipe would wait for the other side. */
int system_is_special(const char *path);
FILE *system_open(const char *path, const char *mode);
/* What tells a file from another that takes its name, without following a link. 0; 1: no file of bytes; -1: not there. */
int system_file_seen(const char *path, uint64_t *id, int64_t *bytes);
/* 0: name is a file now that nobody else can lock, and that goes when it is unlocked. EBUSY: somebody has. Else an errno. */
int system_lock(const char *name, intptr_t *lock);
void system_unlock(const char *name, intptr_t lock);

/* ---- the process ---- */

/* In main, first: argv in UTF-8. Where it is that already it stays. */
void system_arguments(int *argc, char ***argv);
/* A setting of the environment; NULL: it is not set. It stays until it is asked for again. */
const char *system_variable(const char *name);
/* Files that are opened later must not get the numbers of closed standard streams: messages would go into them. */
void system_hold_streams(void);
/* What is printed from now on goes nowhere, until it is let out again. */
int system_silence(void);
void system_speak(int kept);
long system_processors(void); /* at least 1 */
int64_t system_now_ns(void);  /* of a clock that only goes forward */
void system_sleep_ns(int64_t ns);

#endif
