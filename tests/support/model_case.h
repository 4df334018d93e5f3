/* What the tests of models share: a small made-up game, models of any pattern on it, and random chunks of
 * frames with everything a net needs. The device is the CPU, so its addresses are plain memory. */
#ifndef EXPHIL_MODEL_CASE_H
#define EXPHIL_MODEL_CASE_H

#include "test.h"

#include "model/layer.h"
#include "model/model.h"

/* Of the library's list of blocks, so that a new one is tested: each alone, as the first patterns of a list, and one
 * pattern of all, which may go on. */
#define EACH_BLOCK                        XPH_BLOCKS(MODEL_CASE_ALONE)
#define ALL_BLOCKS                        XPH_BLOCKS(MODEL_CASE_ONE_OF_ALL)
/* For what takes long: one of those that share their code, each alone or all in a row. The others differ from them in what
 * of it they use (a LayerNorm or none, x added or not), which the tests of lib/model walk through. */
#define EACH_OF_SOME                      "mamba", "lstm", "gru_only", "attention", "mlp", "ffn_gelu", "mamba_exphil",
#define SOME_BLOCKS                       "mamba lstm gru_only attention mlp ffn_gelu mamba_exphil "
#define MODEL_CASE_ALONE(NAME, name)      #name,
#define MODEL_CASE_ONE_OF_ALL(NAME, name) #name " "

/* 13 floats, two ids, heads of 3 bits, 5 and 4 classes. Static. */
extern const exphil_spec model_case_spec;

/* Small odd sizes (hidden 24, and so on) on that spec; the caller changes what it wants. */
exphil_model_config model_case_config(const char *blocks, int32_t type);
/* Ways of ending that are not the usual, 0 to MODEL_CASE_ENDS - 1: heads with layers as ExPhil has them, as slippi-ai does, deep
 * ones, and no LayerNorm behind the blocks. */
enum { MODEL_CASE_ENDS = 4 };
void model_case_end(exphil_model_config *config, int end);
/* Fails the test when it cannot be made. */
exphil_model *model_case_create(exphil_context *context, const exphil_model_config *config);

typedef struct model_case {
    exphil_model *model;
    const xph_model_shape *shape;
    int64_t batch, time, rows;
    float *floats;
    int32_t *ids, *past, *actions;
    uint8_t *reset;                     /* NULL: no resets */
    void *weights, *packed, *gradients; /* arenas of its own: the model's weights, shaken */
    void *state;                        /* [B, state], of small random numbers where that makes sense */
    void *dlogits;                      /* [M, L] */
    void *dvalues;                      /* [M]; NULL: the model has no value head */
} model_case;

/* resets: one frame in so many starts an episode; 0: none. shake: half-width of what is added to every
 * weight. */
model_case *model_case_make(exphil_model *model, int64_t batch, int64_t time, int64_t resets, double shake,
                            uint64_t seed);
void model_case_free(model_case *c);
xph_net_io model_case_io(const model_case *c, const void *state_in, void *state_out);
/* Frames [first, first + time) of every stream as a case of its own, which shares the weights. */
model_case *model_case_cut(const model_case *c, int64_t first, int64_t time);

/* Element i of an array of the model's type. */
double model_case_get(const model_case *c, const void *array, int64_t i);
void model_case_set(const model_case *c, void *array, int64_t i, double value);
double model_case_uniform(xph_rng *rng, double low, double high);
/* Largest |a - b| / (|b| + rms(b)); infinity when a number is none. */
double model_case_error(const double *a, const double *b, int64_t count);

/* From a copy as long as it says; the model is destroyed again. */
exphil_status model_case_load(exphil_context *context, const char *file, size_t bytes, exphil_error *error);
/* Loads a file of weights cut at every byte, which is refused, and with every bit flipped, which is refused by
 * one of three statuses: FORMAT, MISMATCH, or this one; a few flips load. */
void model_case_damage(exphil_context *context, const char *path, exphil_status also);

#define assert_ok(call)                                                                                      \
  do {                                                                                                       \
    exphil_error model_case_failure = EXPHIL_ERROR_INIT;                                                     \
    exphil_status model_case_status = (call);                                                                \
    (void)model_case_failure;                                                                                \
    assert_int_equal(model_case_status, EXPHIL_OK);                                                          \
  } while (0)

#endif
