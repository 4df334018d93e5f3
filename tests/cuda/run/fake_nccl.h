/* What tests ask of the stand-in for NCCL, and what it tells them. */
#ifndef EXPHIL_FAKE_NCCL_H
#define EXPHIL_FAKE_NCCL_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { FAKE_NCCL_RANKS = 8 /* at most */, FAKE_NCCL_VERSION = 22809 };

/* What goes wrong in one rank. */
typedef struct fake_nccl_fault {
    int init_code;   /* what ncclCommInitRankConfig answers */
    int init_polls;  /* questions until it has come, others being there */
    int group_polls; /* questions until an exchange is enqueued */
    /* the exchange, from 1 on (the first is that of comm_open), that never ends; 0: none. With async_code the communicator
     * says so, soon after it was enqueued */
    int stuck_at, async_code;
    /* what is done for the n-th time, also by recordings that are replayed, never ends (as `runs` counts); 0: none */
    int64_t hangs_at;
    int refuses; /* what a call answers while its stream is captured; 0: none */
} fake_nccl_fault;

typedef struct fake_nccl {
    /* the device (emu_control.h) */
    int (*meet)(void *stream, int (*meet)(const void *), void (*gone)(const void *), const void *data,
                size_t bytes);
    int (*capturing)(void *stream);
    int (*device)(void);
    int (*device_of)(const void *address);
    int (*stream_device)(void *stream);
    /* given */
    int version; /* 0: FAKE_NCCL_VERSION */
    fake_nccl_fault fault[FAKE_NCCL_RANKS];
    int hears; /* 1: a rank that gave up is an error on the others, as a process that is gone is */
    /* told */
    atomic_int alive;                      /* communicators that were neither destroyed nor aborted */
    atomic_int exchanges, plain_sums;      /* enqueued or recorded: groups, and ncclAllReduce */
    atomic_int recorded;                   /* of them, recorded */
    _Atomic int64_t runs[FAKE_NCCL_RANKS]; /* exchanges that a rank's device began to do */
    atomic_int hung;                       /* one has come to its hangs_at */
    atomic_int aborts;
    char said[256]; /* the first mistake of who uses it, or "" */
} fake_nccl;

#endif
