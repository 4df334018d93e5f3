/* A kind of layer: what it declares when a model is made and what it emits when a net is planned; and the
 * input and the heads, which do the same. */
#ifndef XPH_MODEL_LAYER_H
#define XPH_MODEL_LAYER_H

#include "base/base.h"
#include "model/net_plan.h"
#include "model/tensor_table.h"

/* ---- declaring tensors (declare.c; the layers call it) ------------------------------------------------- */

/* Collects the table; the first failure sticks and makes the rest do nothing. prefix: "blocks.0." or "". */
typedef struct xph_declaring {
    exphil_model *model;
    exphil_error *error;
    exphil_status status;
    char prefix[32];
} xph_declaring;

/* columns 0: a vector of rows elements. */
void xph_declare(xph_declaring *to, const char *name, int64_t rows, int64_t columns, int32_t flags,
                 xph_init init, double scale);
/* The vector that products with the matrix add which was declared so many tensors before. */
void xph_declare_bias(xph_declaring *to, int32_t before, const char *name, int64_t rows, xph_init init,
                      double scale);
/* "<name>.weight" [out,in], uniform +-scale/sqrt(in), and "<name>.bias" [out], zero. */
void xph_declare_linear(xph_declaring *to, const char *name, int64_t in, int64_t out, double scale);
/* "<name>.weight" and "<name>.bias" [width] of a LayerNorm, one and zero. */
void xph_declare_norm(xph_declaring *to, const char *name, int64_t width);
/* 1/sqrt(number of blocks): on what a block adds to its input, so that depth does not change the scale of
 * the sum. */
double xph_residual_scale(const exphil_model *model);

/* ---- layers -------------------------------------------------------------------------------------------- */

/* Every kind of block, in the order of its number, which is in the hash of models: XPH_BLOCK_<NAME>, its layer
 * xph_layer_<name>, its word in a pattern <name>. Whoever has something for each makes it of this list. */
/* clang-format off */
#define XPH_BLOCKS(each) \
    each(MAMBA, mamba) each(LSTM, lstm) each(GRU, gru) each(ATTENTION, attention) each(MLP, mlp) each(FFN, ffn) \
    each(LSTM_BARE, lstm_bare) each(GRU_BARE, gru_bare) each(FFN_GELU, ffn_gelu)                                \
    each(MAMBA_EXPHIL, mamba_exphil) each(LSTM_ONLY, lstm_only) each(GRU_ONLY, gru_only) each(DENSE, dense)     \
    each(NORM, norm) each(RELU, relu)
/* clang-format on */
#define XPH_BLOCK_NUMBER(NAME, name) XPH_BLOCK_##NAME,
enum { XPH_BLOCKS(XPH_BLOCK_NUMBER) XPH_BLOCK_KINDS };
#undef XPH_BLOCK_NUMBER

typedef struct xph_layer {
    void (*declare)(xph_declaring *to, xph_block *block); /* tensors and state */
    void (*forward)(xph_plan *plan, const xph_block *block, xph_saved *saved);
    void (*backward)(xph_plan *plan, const xph_block *block, const xph_saved *saved);
    /* Of xph_saved.more by bit: what is stored for backward where activations are bfloat16, as such or as it
     * is. The rest is made again from it, or not read by backward. */
    uint32_t bf16, exact;
    bool any_width,
        to_hidden; /* x may have another width than hidden; whatever it has, what is given has that */
} xph_layer;
#define XPH_BLOCK_LAYER(NAME, name) extern const xph_layer xph_layer_##name;
XPH_BLOCKS(XPH_BLOCK_LAYER)
#undef XPH_BLOCK_LAYER
/* NULL past the last (layers.c) */
const xph_layer *xph_layer_of(xph_block_kind kind);
const char *xph_block_word(xph_block_kind kind);

/* All blocks, and where their activations wait for backward (segment.c). */
void xph_blocks_forward(xph_plan *plan);
void xph_blocks_backward(xph_plan *plan);

void xph_input_declare(xph_declaring *to);
void xph_input_forward(xph_plan *plan);
void xph_input_backward(xph_plan *plan);

#define XPH_REPEAT_SCALE 4.0 /* where a past action meets its own logit in a new model */

void xph_heads_declare(xph_declaring *to);
void xph_heads_forward(xph_plan *plan);
void xph_heads_backward(xph_plan *plan);
void xph_heads_draw(xph_plan *plan); /* last frame of every stream */

/* Heads with hidden layers of their own (heads_layers.c). What they are shown: z, their actions where those are known, or none
 * where they are drawn, and past actions, rows apart. */
typedef struct xph_heads_input {
    xph_ref z, actions, past;
} xph_heads_input;
void xph_layers_declare(xph_declaring *to);
/* To the logits; base as in xph_heads_args, or none. */
void xph_layers_forward(xph_plan *plan, const xph_heads_input *shown, xph_ref base);
void xph_layers_backward(xph_plan *plan, const xph_heads_input *shown, xph_ref dz);
void xph_layers_draw(xph_plan *plan, const xph_heads_input *shown, xph_ref base);

/* From u, the last LayerNorm, of plan->rows rows; nothing where the model has no value head. forward gives the trunk,
 * for plan->value_z; backward adds to du, but where the head is detached. */
void xph_value_declare(xph_declaring *to);
xph_ref xph_value_forward(xph_plan *plan, xph_ref u, bool all);
void xph_value_backward(xph_plan *plan, xph_ref u, xph_ref du);

#endif
