/* What differs between systems, for the files of this room and the loader of plugins. NAME.c holds the POSIX code;
 * NAME_windows.c, NAME_macos.c and NAME_wasi.c stand in for it there (CMakeLists.txt). */
#ifndef XPH_BASE_SYSTEM_H
#define XPH_BASE_SYSTEM_H

#include "base/base.h"

/* ---- locks and threads (locks.c) ----------------------------------------------------------------------- */

#if defined(_WIN32)
typedef struct xph_lock {
    void *state; /* an SRWLOCK; all zero is open */
} xph_lock;
typedef struct xph_condition {
    void *state; /* a CONDITION_VARIABLE */
} xph_condition;
typedef void *xph_thread_handle;
#elif defined(__wasi__)
typedef struct xph_lock { /* one thread: nobody to keep off */
    char none;
} xph_lock;
typedef struct xph_condition {
    char none;
} xph_condition;
typedef char xph_thread_handle;
#else
#  include <pthread.h>
typedef struct xph_lock {
    pthread_mutex_t state;
} xph_lock;
typedef struct xph_condition {
    pthread_cond_t state;
} xph_condition;
typedef pthread_t xph_thread_handle;
#endif

int32_t xph_lock_begin(xph_lock *lock); /* an errno value */
void xph_lock_end(xph_lock *lock);
void xph_lock_take(xph_lock *lock);
void xph_lock_leave(xph_lock *lock);

int32_t xph_condition_begin(xph_condition *condition); /* an errno value */
void xph_condition_end(xph_condition *condition);
void xph_condition_wait(xph_condition *condition, xph_lock *lock);
/* At most so long, on a clock that nobody sets. */
void xph_condition_wait_for(xph_condition *condition, xph_lock *lock, int64_t ns);
void xph_condition_wake_one(xph_condition *condition);
void xph_condition_wake_all(xph_condition *condition);

/* Stays where it is while its thread runs. */
typedef struct xph_running {
    xph_thread_handle handle;
    void (*fn)(void *arg);
    void *arg;
} xph_running;
/* A thread that calls fn(arg), with a stack of its own size and all signals blocked; returns an errno value. */
int32_t xph_thread_start(xph_running *thread, void (*fn)(void *arg), void *arg);
void xph_thread_end(xph_running *thread); /* waits for its end */
void xph_thread_yield(void);              /* whoever else wants the processor gets it */

/* ---- the process (process.c) --------------------------------------------------------------------------- */

/* Memory in huge pages where the system gives them for the asking and `bytes` is some megabytes. */
void *xph_pages_alloc(size_t bytes, size_t align);
void xph_pages_free(void *pointer);

/* A byte that is 1 here and reads 0 in a forked child; NULL: the system has none, then xph_process_number tells. */
const volatile unsigned char *xph_birth_mark(void);
void xph_birth_mark_free(const volatile unsigned char *mark);
int64_t xph_process_number(void); /* another one in a forked child; 0 where nothing forks */

/* Length of the value of a variable of the environment, in UTF-8, of which value[bytes] holds what fits, ended by 0. -1: there
 * is none, or the program runs with more rights than its user has. */
int64_t xph_environment(const char *name, char *value, size_t bytes);

/* ---- the machine (machine.c) ---------------------------------------------------------------------------- */

/* To be asked on AArch64 only: whether the processor has products of int8 (FEAT_DotProd). */
bool xph_machine_multiplies(void);

/* ---- shared libraries (library.c) ---------------------------------------------------------------------- */

/* NULL: reason[bytes] says why. */
void *xph_library_open(const char *path, char *reason, size_t bytes);
/* Fills the pointer to a function at `function`; false: the library has no such name. */
bool xph_library_find(void *library, const char *name, void *function);
void xph_library_close(void *library);
/* Folder of the file that holds this code; false when it is only known by a relative name (a program that has the
 * library inside), which would mean the current folder. */
bool xph_library_folder(char *folder, size_t bytes);

#if defined(_WIN32)
#  define XPH_PLUGIN_NAME  "exphil_%s.dll"
#  define XPH_LIBZSTD      "libzstd.dll"
#  define XPH_LIBZSTD_FROM " (beside the program or this library)"
#elif defined(__APPLE__)
#  define XPH_PLUGIN_NAME  "libexphil_%s.dylib"
#  define XPH_LIBZSTD      "libzstd.1.dylib"
#  define XPH_LIBZSTD_FROM " (Homebrew: zstd)"
#else
#  define XPH_PLUGIN_NAME  "libexphil_%s.so"
#  define XPH_LIBZSTD      "libzstd.so.1"
#  define XPH_LIBZSTD_FROM " (Debian: libzstd1)"
#endif

/* ---- files (io.c) -------------------------------------------------------------------------------------- */

/* The file system. user is not looked at. */
extern const exphil_io xph_system_io;

/* Does a folder's path that ends in c need no separator before a name? */
static inline bool xph_path_open(char c)
{
#if defined(_WIN32)
    return c == '/' || c == '\\' || c == ':'; /* "c:" is the current folder of that drive */
#else
    return c == '/';
#endif
}

#endif
