/* What the tests of sums over ranks share: ranks that are threads or processes, each with an emulated GPU of its own and a
 * communicator by the stand-in for NCCL, and numbers whose order of addition shows. */
#ifndef EXPHIL_RANKS_BED_H
#define EXPHIL_RANKS_BED_H

#include "test.h"
#include "test_places.h"

#include "emu_control.h"
#include "fake_nccl.h"
#include "kernels.h"

#include <pthread.h>

#define RANKS_LIBRARY EXPHIL_BINARY_DIR "/tests/plugin-emulated/libfake_nccl.so"

enum {
    MOST = 40000 /* numbers, more than a ring of the stand-in holds */,
    PATIENT = 120000,
    IMPATIENT = 300 /* ms */
};

extern fake_nccl *ranks_fake;
extern const xph_backend *ranks_gpu;
extern xph_host ranks_host;
extern char ranks_log[4096];       /* warnings and errors */
extern atomic_int ranks_cancelled; /* what the host's hook says */

/* One rank; args are those it comes with. */
typedef struct rank_of {
    int rank, ranks;
    xph_comm_args args;
    void *arg;
    void (*body)(struct rank_of *r);
    xph_device *device;
    xph_stream *stream;
    xph_comm *comm;
    exphil_error error;
} rank_of;

/* In a body, where cmocka's own end nothing, and other ranks would wait: says which rank, and ends the program. */
_Noreturn void rank_fail(const rank_of *r, const char *file, int line, const char *words);
#define WANT(r, condition)                                                                                   \
  do {                                                                                                       \
    if (!(condition)) rank_fail(r, __FILE__, __LINE__, #condition);                                          \
  } while (0)

int ranks_set_up(void **state);
/* Sets all up, and runs the tests. */
int ranks_main(int (*run)(void));
/* Nobody made a mistake, and nothing is left. */
void ranks_clean(void);

void ranks_id(uint8_t id[XPH_COMM_ID_BYTES]);
void rank_init(rank_of *r, int rank, int ranks, uint32_t flags, const uint8_t *id);
/* In a body: device, stream, communicator. */
void rank_open(rank_of *r);
void rank_close(rank_of *r);

/* As threads. */
void ranks_run(rank_of *r, int count, void (*body)(rank_of *r));
/* A whole group, with an arg for all. */
void ranks_run_group(int ranks, uint32_t flags, void (*body)(rank_of *r), void *arg);
/* As processes, which end with these statuses. */
void ranks_run_processes(int ranks, void (*const body[])(rank_of *r), const int status[]);

/* Where the ranks of one process meet: the arg of ranks_agree. */
typedef struct meeting {
    pthread_barrier_t all;
    unsigned char shared[MOST * 8 + 8]; /* with the guard behind them */
} meeting;
meeting *meeting_make(int ranks);
void meeting_end(meeting *m);
/* Waits for all, who have the same bytes. Without a meeting: true. */
bool ranks_agree(const rank_of *r, const void *got, size_t bytes);

size_t ranks_size(xph_type type);
void ranks_fill(xph_type type, void *to, int64_t count, int rank, uint64_t seed);
/* The sum, by a plain loop or as a tree. */
void ranks_want(xph_type type, void *to, int64_t count, int ranks, bool tree, uint64_t seed);
bool ranks_near(xph_type type, const void *got, const void *right, int64_t count);

#endif
