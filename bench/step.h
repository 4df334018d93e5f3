/* Whole policies as a game plays them, and the same without a game around. */
#ifndef EXPHIL_BENCH_STEP_H
#define EXPHIL_BENCH_STEP_H

#include "bench.h"

#include <exphil/exphil.h>

typedef struct bench_policy {
    const char *name, *blocks;
    int64_t hidden;
    double floor_bar;       /* f32, warm: at most so many times reading the weights; 0: none */
    double int8_bar;        /* int8: at most so many times f32 */
    double f32_us, int8_us; /* at most; 0: none */
    double paced_f32_us, paced_int8_us;
    const char *file; /* weights to load instead of drawing blocks; NULL: none */
} bench_policy;

enum { STEP_FRAMES = 64, STEP_BLOCKS = 4096 };

/* Where the library put things, so that they can be thrown out of the caches. */
typedef struct bench_blocks {
    struct {
        void *address;
        size_t bytes;
    } at[STEP_BLOCKS];
    int count;
} bench_blocks;

/* One model in one type of weights with one session. */
typedef struct bench_player {
    exphil_context *context;
    exphil_model *model;
    exphil_session *session;
    bench_blocks *blocks;
    exphil_melee_frame *frames; /* [STEP_FRAMES][streams] */
    exphil_pad *pads;           /* [streams] */
    int64_t streams, at;
    int32_t type;
    double weight_bytes; /* that a step reads */
    bool failed;
} bench_player;

const char *bench_type_name(int32_t type);
/* False with a message; *absent: this release has no kernels for these weights. */
bool bench_player_make(bench_player *p, const bench_policy *policy, int32_t type, int64_t streams,
                       const char *isa, bool *absent);
void bench_player_end(bench_player *p);
/* `calls` decisions of all streams: encode, step, heads, sampling. */
void bench_player_step(void *player, int64_t calls);
void bench_player_flush(void *player);

/* Threads on every core that walk through more memory than fits any cache, at normal priority. */
typedef struct bench_neighbour bench_neighbour;
bench_neighbour *bench_neighbour_begin(void);
void bench_neighbour_end(bench_neighbour *neighbour);

#endif
