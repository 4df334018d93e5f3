/* The cluster of blocks that the emulated GPU runs at the moment, without clusters a single block (emu.cpp), for what is kept of
 * blocks elsewhere: their shared memory (shared.cpp). */
#ifndef EXPHIL_EMU_CLUSTER_H
#define EXPHIL_EMU_CLUSTER_H

#include "device.h"

#if !defined(__x86_64__) && !defined(__aarch64__) && !defined(EMU_UCONTEXT)
#  define EMU_UCONTEXT
#endif
#ifdef EMU_UCONTEXT
#  include <ucontext.h>
#endif

namespace emu
{

enum {
    MOST_THREADS = 1024,
    WARP = 32,
    MOST_LANES = 8192, /* of a cluster */
    MOST_WARPS = MOST_LANES / WARP,
    MOST_SHARED = 48 * 1024,   /* of a block, static and dynamic */
    MOST_ALLOWED = 227 * 1024, /* where the kernel was allowed more, if emu_shared says nothing else */
    STACK_BYTES = 256 * 1024
};

enum state_of_lane : uint8_t { READY, IN_BARRIER, IN_CLUSTER, IN_MEETING, ENDED };

struct fiber {
    void *stack_pointer;
#ifdef EMU_UCONTEXT
    ucontext_t context;
#endif
    void *fake_stack; /* of the address sanitizer */
    uint3 index;
    unsigned lane, warp, rank; /* warp of the cluster; rank of the block in it */
    state_of_lane state;
    meeting kind;
    unsigned mask, source;
    uint64_t value, result;
    place at;
};

struct warp {
    unsigned ready, waiting; /* bits of lanes: can run; in a meeting */
};

/* A block of the cluster. */
struct block_state {
    uint3 index;
    unsigned ended, in_barrier, entered;
    size_t shared_bytes;
};

struct cluster_state {
    fiber lanes[MOST_LANES];
    warp warps[MOST_WARPS];
    block_state blocks[MOST_CLUSTER];
    unsigned size, threads, warp_count; /* blocks; of each of them: threads and warps */
    unsigned ended, in_cluster, barriers;
    unsigned made; /* fibers that wait for a block */
    uint64_t serial;
    size_t most_shared, dynamic_bytes;
    void (*body)(const void *);
    const void *closure;
    const char *kernel;
};

extern cluster_state cluster;
extern fiber *running; /* NULL: the scheduler */
extern shared_array *all_shared;

bool begin_fault(const char *what); /* false: there was one before */
[[noreturn]] void end_fiber();      /* of a lane that a fault ended */

}  // namespace emu

#endif
