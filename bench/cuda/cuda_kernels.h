/* Operations of table A on a device, timed at the shapes of training and play. */
#ifndef EXPHIL_CUDA_KERNELS_BENCH_H
#define EXPHIL_CUDA_KERNELS_BENCH_H

#include "device/backend.h"

#include <stdbool.h>

enum { CARD_BLOCKS = 512 };

typedef struct card {
    const xph_backend *backend;
    xph_device *device;
    xph_stream *stream;
    bool smoke;  /* small shapes, once */
    double copy; /* bytes per second that a copy on the device moves, read and written */
    double
        set_bytes; /* what one set of arguments takes: several are run in turn, so that no cache holds them */
    struct {
        void *at;
        size_t bytes;
    } block[CARD_BLOCKS]; /* of the case that runs */
    int blocks;
    uint32_t random;
    bool failed;
} card;

/* Letters as in backend.h; what a case does not have is 0. */
typedef struct shape {
    int64_t batch, time, width, states;
    xph_type type;
    int32_t math;
} shape;

/* An operation: give fills args of args_bytes and says how many bytes must move. */
typedef struct card_op {
    const char *subject;
    xph_op op;
    double (*give)(card *c, const shape *s, void *args);
    size_t args_bytes, scratch_at; /* SIZE_MAX: none */
} card_op;

typedef struct card_case {
    const card_op *of;
    shape shape;
    double bar_us, bar_share; /* at most so long; at least this share of the copy's rate; 0: no goal */
} card_case;

/* Memory of the device, until the case ends: numbers in (-scale, scale) of the type; zeros; given bytes. */
void *card_numbers(card *c, xph_type type, int64_t count, double scale);
void *card_zeros(card *c, size_t bytes);
void *card_bytes(card *c, const void *from, size_t bytes);
size_t card_size(xph_type type);

/* All cases, ended by one of no operation. */
extern const card_case card_cases[];
/* Shapes as small as the code paths allow. */
shape card_small(const card_case *k);
/* Of a product; 0: none. */
double card_flop(const card_case *k);

#endif
