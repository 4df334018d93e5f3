/* A model as the files of this room see it: configuration, table of tensors, blocks, weights.
 *
 * Creation: config.c checks and fills in defaults, pattern.c reads the blocks, layers.c has every layer
 * declare its tensors and its state and lays them out, model.c gets the memory and init.c fills it. weights.c
 * carries values in and out. */
#ifndef XPH_MODEL_TENSOR_TABLE_H
#define XPH_MODEL_TENSOR_TABLE_H

#include "base/base.h"
#include "model/model.h"

#define XPH_BLOCKS_MOST      64
#define XPH_BLOCKS_TEXT      256  /* characters of a pattern, its end among them */
#define XPH_DELAY_WIDTH      8    /* of a row of the delays' table */
#define XPH_NORM_EPSILON     1e-5 /* the usual one, which no file names */
#define XPH_HEAD_LAYERS_MOST 4

/* ---- tensors ------------------------------------------------------------------------------------------- */

/* How a tensor starts (init.c). scale: half-width of the uniform distributions. */
typedef int32_t xph_init;
enum {
    XPH_INIT_ZERO,
    XPH_INIT_ONE,
    XPH_INIT_UNIFORM,
    XPH_INIT_STATES, /* [D,N]: log(1..N) in every row */
    XPH_INIT_REPEAT, /* [L, slots*L]: scale where a logit meets itself in the newest past action */
    XPH_INIT_BITS,   /* [L]: -scale for the bits of Bernoulli heads, else 0 */
    XPH_INIT_SAME,   /* scale */
    XPH_INIT_DT      /* softplus of it is log-uniform in [1e-3, 1e-1] */
};

/* What a layer says of a tensor that it declares (layer.h). */
enum {
    XPH_DECAYS = 1,
    XPH_PACKS = 2,
    XPH_KEEPS_HALF = 4, /* packs, but never with less than a bfloat16 */
    XPH_KEEPS_ALL = 8,  /* packs, and is never rounded */
    XPH_PREPARES = 16   /* is the a_log of a scan, which the device may prepare (scan_pack) */
};

typedef struct xph_tensor {
    xph_param param;
    xph_init init;
    double scale;
    int32_t packs;                  /* 1: has a packed form, of a matrix [out,in] */
    int32_t prepares;               /* 1: has a prepared form instead, the decay of a scan [width,states] */
    int32_t keeps;                  /* when weights are rounded: 0 or an XPH_KEEPS */
    int32_t bias, reserved;         /* of a matrix: index of the vector that its products add, or -1 */
    size_t packed_at, packed_bytes; /* in the packed arena; 0 bytes: the device wants none */
} xph_tensor;

/* ---- blocks -------------------------------------------------------------------------------------------- */

typedef int32_t xph_block_kind; /* XPH_BLOCK_... (layer.h) */

typedef struct xph_block {
    xph_block_kind kind;
    int32_t first;           /* index of its first tensor; the others follow in the layer's order */
    int64_t width;           /* of x in front of it */
    int64_t state_at, state; /* place and reals of its state in that of a stream */
} xph_block;

/* ---- model --------------------------------------------------------------------------------------------- */

struct exphil_model {
    exphil_context *context;
    xph_device *device;
    atomic_int references;      /* the caller's handle and every child */
    exphil_spec *spec;          /* own copy */
    exphil_model_config config; /* defaults filled in; its pointers lead into this model */
    xph_told told;
    char blocks[XPH_BLOCKS_TEXT]; /* the pattern as it was given */
    xph_block block[XPH_BLOCKS_MOST];
    int64_t block_count;
    xph_tensor *tensor; /* in the order input, ids, blocks, norm, heads, value */
    int64_t tensor_count, tensor_capacity;
    int32_t input_first, norm_first, heads_first, layers_first,
        value_first;             /* indices of tensors; layers: of the heads */
    int64_t first_width, widest; /* of x in front of the first block; the most that it has anywhere */
    int64_t row;                 /* width of an input row: floats + ids + conditions + past actions */
    xph_head head[EXPHIL_HEADS_MAX], alone[EXPHIL_HEADS_MAX]; /* alone: with 0 as first logit */
    xph_model_shape shape;
    void *weights;      /* device */
    xph_mutex *packing; /* guards packed */
    void *packed;       /* device; NULL until somebody wants it, and after a change */
    bool packed_valid;
    atomic_bool prepared; /* packed and hash are those of the weights, and nobody needs the mutex for them */
    uint64_t hash;
    uint64_t updates, frames; /* training that the weights have seen */
    xph_notes notes;
    exphil_comparison calibration; /* of a quantised model, if calibrated */
    bool calibrated;
};

/* Fills *known from given (NULL: all defaults) with every 0 replaced. spec stays as given, NULL included. */
exphil_status xph_model_config_resolve(const exphil_model_config *given, exphil_model_config *known,
                                       exphil_error *error);
/* Reads a pattern: kinds[XPH_BLOCKS_MOST] and their number. EXPHIL_E_INVALID names the column, counted
 * from 1. */
exphil_status xph_pattern_read(const char *text, xph_block_kind *kinds, int64_t *count, exphil_error *error);

/* Everything but the weights, which have no memory yet: what a file is compared with before it costs any.
 * Then the memory, zero. make does both; init fills it by the seed. model is not NULL in outline. narrow as
 * in xph_model_shape; EXPHIL_E_UNSUPPORTED when the device cannot hold weights so. */
exphil_status xph_model_outline(exphil_context *context, const exphil_model_config *config, xph_type narrow,
                                exphil_model **model, exphil_error *error);
exphil_status xph_model_zero(exphil_model *model, exphil_error *error);
exphil_status xph_model_make(exphil_context *context, const exphil_model_config *config, xph_type narrow,
                             exphil_model **model, exphil_error *error);
exphil_status xph_model_init(exphil_model *model, exphil_error *error);

/* Fills the table of tensors, their places and the sizes in shape (layers.c). */
exphil_status xph_model_declare(exphil_model *model, exphil_error *error);
/* All packed forms of an arena of weights. */
exphil_status xph_model_pack(const exphil_model *model, xph_stream *stream, xph_type type,
                             const void *weights, void *packed);

/* What a tensor is rounded to where weights are rounded to narrow (0: nowhere), and in this model; 0: it is
 * not. */
xph_type xph_tensor_narrow(const xph_tensor *tensor, xph_type narrow);
xph_type xph_model_narrow(const exphil_model *model, int64_t index);
/* EXPHIL_E_STATE about a model whose weights are rounded, else EXPHIL_OK. */
exphil_status xph_model_check_plain(const exphil_model *model, const char *what, exphil_error *error);
/* The name of an EXPHIL_TYPE, "?" for what is none. */
const char *xph_type_word(int32_t type);
/* A comparison that may stand with this model: EXPHIL_E_INVALID names the field. */
exphil_status xph_calibration_check(const exphil_model *model, const exphil_comparison *comparison,
                                    exphil_error *error);

/* What every public call on a model begins with: EXPHIL_E_INVALID for NULL, EXPHIL_E_STATE in a forked
 * child. */
exphil_status xph_model_check(const exphil_model *model, exphil_error *error);
/* Index of a tensor, -1 for an unknown name. */
int64_t xph_model_find(const exphil_model *model, const char *name);
/* True while nobody but the caller's handle uses the model: its weights may be changed. */
bool xph_model_alone(const exphil_model *model);
/* Elements [first, first + count) of an arena, device to host and host to this model's arena. push lets
 * the packed form be made anew. weights NULL: the model's own. */
exphil_status xph_model_pull(const exphil_model *model, const void *weights, int64_t first, int64_t count,
                             void *host, exphil_error *error);
exphil_status xph_model_push(exphil_model *model, int64_t first, int64_t count, const void *host,
                             exphil_error *error);

#endif
