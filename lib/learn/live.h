/* What the files of a learner behind a live game share. Two threads meet here: the one that plays (live.c) and the one that
 * learns (live_thread.c). What they both touch is a ring, two pointers to models, counters, and what the lock guards. */
#ifndef XPH_LEARN_LIVE_H
#define XPH_LEARN_LIVE_H

#include "learn/learn.h"

#include <exphil/blocks.h>
#include <exphil/live.h>

#include <stdatomic.h>

/* ---- the ring (live_ring.c) ----------------------------------------------------------------------------- */

/* Entries of one size, in order, from one thread to another. Nobody waits: an entry that finds no room is refused. What was
 * written can be taken back until it is published. */
typedef struct xph_ring {
    unsigned char *entries;
    size_t bytes; /* of one */
    int64_t capacity;
    int64_t written;                 /* the writer's alone */
    _Atomic int64_t published, read; /* by the writer, by the reader */
} xph_ring;
/* Where the next entry goes, NULL: there is no room; then it is written. Hot. */
unsigned char *xph_ring_room(const xph_ring *ring);
void xph_ring_written(xph_ring *ring);
/* Shows all but the latest `kept` entries to the reader. Hot. */
void xph_ring_publish(xph_ring *ring, int64_t kept);
/* The latest entry, which may have been shown and done with; NULL: none was ever written. And takes it back, unless it was shown:
 * false. Hot. */
const unsigned char *xph_ring_last(const xph_ring *ring);
bool xph_ring_take_back(xph_ring *ring);
/* The oldest entry, NULL: there is none; then it is done with. */
const unsigned char *xph_ring_front(const xph_ring *ring);
void xph_ring_done(xph_ring *ring);

/* An entry of imitation: a head, then floats [F], ids [K], the action [A] that acted. */
typedef struct xph_live_head {
    int64_t
        stamp; /* of the session's step: the entry after it follows if its step began with this one's state */
    uint8_t person; /* 1: the person played */
    uint8_t starts; /* 1: it does not follow the entry before it */
    uint8_t reserved[6];
} xph_live_head;

/* ---- imitation (live_imitate.c) --------------------------------------------------------------------------- */

/* A piece under way: rows of one episode that follow each other. The first `used` of them were in the piece before and only lead
 * up to the others. */
typedef struct xph_piece {
    float *floats;
    int32_t *ids, *actions;
    uint8_t *person;
    int64_t rows, used, most, overlap;
} xph_piece;

/* All pieces so far, with a weight for each row. */
typedef struct xph_pieces {
    exphil_dataset *dataset; /* NULL: not made yet */
    float *weight;           /* [rows] */
    int64_t rows, capacity;
    int64_t count, person; /* pieces; rows in which the person played */
} xph_pieces;

/* The host's rows, which are learnt from beside pieces: some lanes of every batch are theirs, the others are pieces'. */
typedef struct xph_live_data {
    exphil_dataset *dataset; /* as it was; NULL: there is none */
    exphil_prefetcher *prefetcher;
    int64_t epoch, index; /* of the batch that comes next */
    bool fresh;           /* what is carried in these lanes is not theirs */
} xph_live_data;

/* A batch as it is put together. */
typedef struct xph_live_batch {
    int64_t lanes, time, given; /* of the lanes the host's rows have the first `given` */
    float *floats, *mask;
    int32_t *ids, *past, *actions;
    uint8_t *reset, *dropped;
} xph_live_batch;

/* ---- both ----------------------------------------------------------------------------------------------- */

typedef enum xph_live_task {
    XPH_LIVE_NOTHING,
    XPH_LIVE_SETTLE,
    XPH_LIVE_SAVE,
    XPH_LIVE_RESUME
} xph_live_task;

struct exphil_live {
    exphil_context *context; /* of the session */
    exphil_session *session; /* own, or the rollout's */
    exphil_rollout *rollout; /* reinforcement: plays; else NULL */
    xph_busy busy;
    const xph_model_shape *shape;
    const exphil_spec *spec;
    exphil_live_config config; /* defaults filled in; its pointers are not used after creation */
    xph_ring ring;             /* of frames, or of chunks as blocks */
    bool owed;     /* a settled chunk's weights enter when the one under way ends, although it is paced */
    float *floats; /* [F], [K], [A] of Melee */
    int32_t *ids, *action;
    unsigned char *memory;
    size_t memory_bytes;
    _Atomic int64_t frames, person, dropped, taken_back, adopted;
    /* New weights on their way to the session, prepared; and a model that it is done with, on its way back. */
    _Atomic(exphil_model *) fresh, spent;

    /* the thread that learns, and what the lock guards */
    xph_thread *thread;
    xph_mutex *lock;
    atomic_bool ending;
    bool begun;           /* what learns was made, or could not be made */
    xph_live_task task;   /* asked for, until it is done */
    const char *path;     /* of save and resume */
    exphil_status answer; /* of the last task */
    char *save_path;      /* where the thread saves by itself; NULL: nowhere */
    size_t save_path_bytes;
    exphil_error error, failure; /* why; and what ended learning, status OK: nothing */
    exphil_model *newest;        /* weights, on the context of the session */
    exphil_live_info told;       /* counters of the thread */

    /* the thread's own */
    exphil_context *learning;
    exphil_model *start, *teacher; /* there */
    exphil_optimizer *optimizer;
    exphil_trainer *trainer;
    exphil_sampling sampling;
    xph_piece piece;
    xph_pieces pieces;
    float *weight; /* of the rows of a piece */
    xph_live_data data;
    xph_live_batch batch;
    exphil_rollout *received;
    exphil_learner *learner;
    unsigned char *thread_memory;
    size_t thread_bytes;
};

/* Of the thread that learns: makes what it works with; one piece or chunk, if there is one in the ring (done tells); what is left
 * of a piece; and an end to all. */
exphil_status xph_live_imitate_make(exphil_live *live, const exphil_live_config *given, exphil_error *error);
exphil_status xph_live_imitate(exphil_live *live, bool *done, exphil_error *error);
exphil_status xph_live_imitate_rest(exphil_live *live, exphil_error *error);
void xph_live_imitate_cut(
    exphil_live *live); /* what comes next is another piece, to which nothing leads up */
void xph_live_imitate_end(exphil_live *live);
exphil_status xph_live_reinforce_make(exphil_live *live, const exphil_live_config *given,
                                      exphil_error *error);
exphil_status xph_live_reinforce(exphil_live *live, bool *done, exphil_error *error);
void xph_live_reinforce_end(exphil_live *live);

/* None yet. */
exphil_status xph_pieces_begin(exphil_context *context, const exphil_spec *spec, xph_pieces *pieces,
                               exphil_error *error);
/* One more, with the weights of its rows; all of it or nothing. */
exphil_status xph_pieces_add(xph_pieces *pieces, exphil_context *context, int64_t rows, const float *floats,
                             const int32_t *ids, const int32_t *actions, const float *weight,
                             exphil_error *error);
void xph_pieces_free(xph_pieces *pieces, exphil_context *context);

/* The thread's, after updates: a copy of the newest weights goes to the session (live_publish.c). */
exphil_status xph_live_publish(exphil_live *live, exphil_error *error);
/* What was learnt in a checkpoint (live_save.c). */
exphil_status xph_live_write(exphil_live *live, const char *path, exphil_error *error);
exphil_status xph_live_read(exphil_live *live, const char *path, exphil_error *error);

/* live_thread.c: starts it and waits until it has what it works with; ends it. given: the host's configuration. */
exphil_status xph_live_start(exphil_live *live, const exphil_model *model, const exphil_live_config *given,
                             exphil_error *error);
void xph_live_stop(exphil_live *live);
/* By another thread: has a task done and waits for it. */
exphil_status xph_live_ask(exphil_live *live, xph_live_task task, const char *path, exphil_error *error);

#endif
