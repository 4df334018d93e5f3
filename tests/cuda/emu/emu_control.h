/* The emulated GPU as tests written in C see it: its memory, its schedules, what went wrong. */
#ifndef EXPHIL_EMU_CONTROL_H
#define EXPHIL_EMU_CONTROL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* tests find them in the plugin */

/* Order of blocks, of warps in a block and of lanes in a warp between two places where they meet. Blocks of a cluster run one by
 * one from a place where all meet to the next, so that who reads what another has yet to tell it finds nothing there; at random
 * they take turns at barriers of their own, too. */
enum { EMU_FORWARD, EMU_REVERSE, EMU_RANDOM, EMU_SCHEDULES };
void emu_schedule(int schedule);

/* When work of streams runs: at once; as late as the host's waits allow, branches of graphs last first; or whenever
 * chance has it, streams and branches mixed as their events allow. All finish what is enqueued before the change. */
enum { EMU_EAGER, EMU_LAZY, EMU_SHUFFLED, EMU_TIMINGS };
void emu_timing(int timing, uint64_t seed);

/* What events tell, in milliseconds, instead of the time of the day; NULL: that. Called when their turn comes. */
void emu_clock(double (*milliseconds)(void));

/* On: the host that touches device memory is stopped by a signal, also while work is enqueued that has not run. */
void emu_protect(int on);

/* Device memory filled with NaN. It ends at a page that cannot be touched (up to alignment, and 16 bytes at most), in
 * the reverse schedule it begins after one. NULL where there is none left. */
void *emu_alloc(size_t bytes, size_t alignment);
void emu_free(void *address);
size_t emu_allocated(void); /* bytes not freed yet, of cudaMalloc too */

/* What went wrong first since emu_clear, in words, or NULL. A fault throws away what streams still hold. */
const char *emu_fault(void);
void emu_clear(void);

/* ---- machines that are not as one would wish ---- */

/* error (35 old driver, 100 none): what every call answers, and no device is counted. 1, 0 at the start. Devices are
 * all alike; the limits below are those of all together. */
void emu_devices(int count, int error);
void emu_memory(size_t bytes);       /* that cudaMalloc can give altogether; 0: 4 GiB, as at the start */
void emu_multiprocessors(int count); /* 0: 4, as at the start */
/* Blocks that a cluster may have at most, 16 at the start; clusters that run at once at most, 0: as many as there are
 * multiprocessors for. */
void emu_clusters(int blocks);
void emu_clusters_at_once(int count);
/* That a block may be allowed; 0: 227 KB, as at the start. What was allowed more is not any longer. */
void emu_shared(size_t bytes);
/* The processor that kernels were compiled for, 90 at the start. Less: the driver made code for this one of it, in which kernels of
 * clusters do nothing. */
void emu_code(int processor);
/* Whether a device has its primary context: whoever makes one pays with hundreds of megabytes. */
int emu_has_context(int device);
/* Another process has the device for itself: a context cannot be made. */
void emu_exclusive(int device, int on);
/* Off: the driver tells none of its functions. */
void emu_entries(int on);
/* The n-th from now fails, 1 the next; 0: none. An allocation (of the device, or pinned) for want of memory; an operation
 * of a stream with a fault. */
void emu_fail_allocation(int64_t n);
void emu_fail_operation(int64_t n);

/* ---- what was asked of it since emu_counts_clear ---- */

typedef struct emu_counts {
    int64_t mallocs, frees, pinned; /* calls of cudaMalloc(Async), of cudaFree(Async), of cudaHostAlloc */
    int64_t launches, copies, sets; /* by the host, or recorded by it */
    int64_t graph_launches;
    int64_t operations;              /* that ran, also in graphs */
    int64_t synchronisations, waits; /* calls that wait; those that had to */
    int64_t spins;                   /* of the calls that wait those which keep a processor busy meanwhile */
    int64_t null_streams;            /* calls with the null stream */
    int64_t objects;                 /* streams, events, graphs and pinned blocks that live now */
} emu_counts;
emu_counts emu_count(void);
void emu_counts_clear(void);

/* ---- what runs, without running it ---- */

enum { EMU_LAUNCH, EMU_COPY, EMU_SET };
typedef struct emu_event {
    int kind;
    const void *stream; /* only to tell streams apart */
    /* of a launch */
    const char *name;   /* as in the source */
    const void *kernel; /* its address in the plugin */
    unsigned grid[3], block[3], cluster;
    size_t shared_bytes, argument_bytes;
    const unsigned char *arguments; /* as a device has them */
    /* of copies and sets */
    void *to;
    const void *from;
    size_t bytes;
    int to_device, from_device; /* 0: memory of the host */
} emu_event;
/* From now on kernels do nothing, and memory is not filled with NaN: watch is called for every operation when it would
 * run, in graphs too, and may look at device memory, but calls nothing of CUDA. Copies and sets take place. NULL: as before. */
void emu_dry(void (*watch)(const emu_event *event));

/* ---- for a stand-in of a library that works on the device; streams are cudaStream_t ---- */

/* function(copy of data, of 256 bytes at most) as a kernel of one thread: 0 or a cudaError_t. */
int emu_call(void *stream, void (*function)(const void *), const void *data, size_t bytes);
int emu_capturing(void *stream);
/* An operation of a stream that has to wait for other threads or processes: meet(copy of data) is called, with device
 * memory open and not from the stream's thread, until it gives nonzero; it does not wait itself and calls nothing of
 * CUDA. gone(copy of data), which may be NULL: it was the last time, or its graph is gone. 0 or a cudaError_t. */
int emu_meet(void *stream, int (*meet)(const void *), void (*gone)(const void *), const void *data,
             size_t bytes);
int emu_device(void);                   /* of this thread */
int emu_device_of(const void *address); /* whose memory it is; -1: no device's */
int emu_stream_device(void *stream);
/* What no capture allows: it is invalid then. */
void emu_spoil_capture(void *stream);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
