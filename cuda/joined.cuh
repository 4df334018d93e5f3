/* A step of play in one launch (sm_90): the operations of a net for one frame, done one after the other by a cluster of
 * blocks, a cluster for each row. What one operation leaves for the next lies in shared memory, "vectors", in which every
 * number has a place of its own for the whole launch: nothing is written over.
 *
 * Elements of a vector belong to the blocks by GRAINs, in turn. A block computes its own. Where others need them, too, it
 * writes them into the shared memory of the whole cluster, and the blocks meet before they are read. Where an operation reads
 * its own elements alone (a convolution those of its channels) nobody waits. What is cheap and needs a whole vector (LayerNorm)
 * every block computes for itself.
 *
 * joined_plan.cu makes the list of operations, joined.cu does it. It travels with the launch, so it is kept small: places in
 * shared memory in place of addresses, and states by their distance from that of the first.
 */
#ifndef XPH_CUDA_JOINED_CUH
#define XPH_CUDA_JOINED_CUH

#include "kernels.h"

constexpr int JOINED_THREADS = 512, JOINED_WARPS = JOINED_THREADS / 32;
constexpr int GRAIN = 16; /* elements: one of each grain for a warp */
constexpr int JOINED_STEPS = 35, JOINED_TABLES = 32, JOINED_HEADS = 16;
constexpr int JOINED_WIDTH = 1024;           /* most of a norm and of the trunk of the heads */
constexpr int JOINED_COLUMNS = 4;            /* of a head that a lane has, at most */
constexpr int64_t JOINED_BYTES = 200 * 1024; /* most of the vectors */
constexpr int NOWHERE = -1;                  /* for a place: there is none */

static_assert(GRAIN == JOINED_WARPS, "warp w has element w of every grain");

enum joined_kind {
    JOINED_EMBED,
    JOINED_LINEAR, /* rows of w and x are read four numbers at a time */
    JOINED_ODD,    /* a product whose rows do not lie so, or that takes SiLU(x) */
    JOINED_NORM,
    JOINED_CONV,
    JOINED_SCAN,
    JOINED_RNN,
    JOINED_ATTEND, /* a head's keys in parts, which JOINED_GATHER puts together */
    JOINED_GATHER,
    JOINED_ACTIVATE,
    JOINED_SUM,
    JOINED_SAMPLE
};

/* y = W f(x) + bias + residual, f the identity or SiLU; leave: where row 0 of y goes outside of the cluster, or NULL. */
struct joined_linear {
    const float *w, *bias;
    float *leave;
    int in, out, x, residual, y, ld_leave;
};
struct joined_norm {
    const float *gain, *shift;
    float epsilon;
    int width, x, y;
};
struct joined_conv {
    const float *w, *bias;
    int state, width, taps, x, y;
};
struct joined_scan {
    const float *delta_bias, *rates, *skip;
    int state, width, states, x, dt, b, c, z, y;
};
struct joined_rnn {
    const float *w, *bias;
    int state, hidden, lstm, gx, y;
};
/* Units of work are parts of heads, heads * splits of them, dealt out to the blocks. parts: of every unit the base and the sum of
 * its softmax, and dim sums of values; own: the same of every warp of the block, for the unit it works on. */
struct joined_attention {
    const float *bias;
    int state, heads, dim, window, splits, lagging, qkv, parts, own, y;
};
struct joined_activate {
    float low, high;
    int kind, count, x, y;
};
struct joined_sum {
    int count, x, from, y;
};

/* meets: the blocks meet before it. spreads: what it makes goes to all of them. */
struct joined_step {
    uint8_t kind, meets, spreads, flags;
    union {
        joined_linear linear;
        joined_norm norm;
        joined_conv conv;
        joined_scan scan;
        joined_rnn rnn;
        joined_attention attention;
        joined_activate activate;
        joined_sum sum;
    };
};
/* flags */
constexpr uint8_t JOINED_SILU = 1;  /* odd: of x; norm: of y */
constexpr uint8_t JOINED_QUADS = 2; /* rnn: weights and state are read four numbers at a time */
constexpr uint8_t JOINED_RATES =
    4; /* scan: rates are, else they are the logarithms of what they are made of */
constexpr uint8_t JOINED_COUNTS = 8; /* scan: rate n is that of n + 1, and rates is NULL */

struct joined_table {
    const float *table;
    int64_t width;
};
struct joined_program {
    /* Of row 0, and numbers between rows. */
    const float *state_in;
    float *state_out;
    int64_t ld_state;
    int32_t count, floats; /* steps; of the vectors */
    int32_t turns, unused; /* a cluster has 2^turns blocks */
    /* the input row, its width, and its place */
    xph_embed_args embed;
    int32_t row_width, row;
    /* what is drawn: places of trunk, of what logits start from, and of numbers that are fetched at the beginning */
    int32_t width, heads, logits, z, base, noise_at, previous_at, ld_noise, ld_previous, ld_actions, ld_y,
        draws_quads;
    const float *v, *bias, *e, *noise;
    const xph_draw *draw;
    const int32_t *previous;
    int32_t *actions;
    float *y;
    joined_table table[JOINED_TABLES];
    xph_head head[JOINED_HEADS];
    xph_sample_head how[JOINED_HEADS];
    joined_step step[JOINED_STEPS];
};
static_assert(sizeof(joined_program) <= 4096 - 8, "it fits the parameters of a launch");

/* Clusters of so many blocks that the device runs at once. */
int joined_room(unsigned blocks, size_t shared_bytes);
int joined_launch(const joined_program &program, unsigned blocks, int64_t rows, cudaStream_t stream);

#endif
