/* What the parts of the emulated GPU know of each other: emu.cpp runs kernels, memory.cpp has its memory, runtime.cpp is
 * the API. All of it is used under the lock alone. */
#ifndef EXPHIL_EMU_DEVICE_H
#define EXPHIL_EMU_DEVICE_H

#include "emu.h"

#include <pthread.h>

#if defined(__SANITIZE_ADDRESS__)
#  define EMU_ASAN 1
#elif defined(__has_feature)
#  if __has_feature(address_sanitizer)
#    define EMU_ASAN 1
#  endif
#endif
#ifdef EMU_ASAN
#  include <sanitizer/asan_interface.h>
#endif
#ifdef EMU_TSAN /* of the sanitizer's run-time; no header has them */
extern "C" void AnnotateIgnoreSyncBegin(const char *file, int line);
extern "C" void AnnotateIgnoreSyncEnd(const char *file, int line);
extern "C" void AnnotateIgnoreReadsBegin(const char *file, int line);
extern "C" void AnnotateIgnoreReadsEnd(const char *file, int line);
extern "C" void AnnotateIgnoreWritesBegin(const char *file, int line);
extern "C" void AnnotateIgnoreWritesEnd(const char *file, int line);
#endif

namespace emu
{

/* ---- emu.cpp ---- */

extern pthread_mutex_t lock;
/* The thread sanitizer is told nothing of it: on a card calls of two threads do not wait for each other, and whoever relies on
 * that has a race. Nor of what is done under it, for whichever thread waits does the work of all streams. */
inline void take_lock()
{
#ifdef EMU_TSAN
    AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
#endif
    pthread_mutex_lock(&lock);
}

inline void let_lock_go()
{
    pthread_mutex_unlock(&lock);
#ifdef EMU_TSAN
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
#endif
}

struct guard {
    guard() { take_lock(); }
    ~guard() { let_lock_go(); }
    guard(const guard &) = delete;
    guard &operator=(const guard &) = delete;
};

extern bool failed;  /* nothing runs any more */
extern int schedule; /* EMU_FORWARD.. */

/* The first fault counts; the rest may be what it led to. */
__attribute__((format(printf, 1, 2))) void add_to_fault(const char *format, ...);
__attribute__((format(printf, 1, 2))) void fail(const char *format, ...);

bool fits(const launch_shape &shape);
size_t most_shared_of(const void *kernel);
size_t shared_limit();                                /* of a block that was allowed it */
constexpr int MULTIPROCESSORS = 4, CLUSTER_CODE = 90; /* the first: unless it is told otherwise */
extern int multiprocessors;
extern int code; /* for which processor kernels were compiled */
void run(const launch_shape &shape, const void *closure);

/* ---- memory.cpp ---- */

size_t page_bytes();

/* Between pages that cannot be touched. */
struct guarded {
    char *map, *data;
    size_t map_bytes;
};
guarded guarded_map(size_t bytes, size_t alignment);
void guarded_fill(const guarded *g, size_t bytes);
void fill_memory(bool on); /* of the device, with NaN: as at the start */
void guarded_unmap(void *map, size_t bytes);

void *take_memory(size_t bytes, size_t alignment, int device); /* NULL: none left */
bool give_memory(void *address);                               /* false: it was not taken */
void *take_pinned(size_t bytes);
bool give_pinned(void *address);
size_t memory_taken();
int64_t pinned_blocks();

enum address_kind { PAGEABLE, PINNED, DEVICE, BROKEN };
address_kind kind_of(const void *address, size_t bytes);
void add_place(const void *address); /* to the fault: which memory it is, or is near to */
bool is_of_device(const void *address);
int device_of(const void *address); /* whose memory it is */

/* Whether device memory can be touched now; does nothing where it is not protected. */
void expose();
void hide();
void protect(bool on);

}  // namespace emu

#endif
