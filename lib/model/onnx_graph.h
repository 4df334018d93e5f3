/* A model's step as an ONNX graph (onnx.ai, IR 8, opset 17): what the files onnx_*.c share. Every value and every
 * node has a name: that of a node is that of the value it makes. The first failure sticks and makes the rest do
 * nothing, as in declare.c. Private to lib/model. */
#ifndef XPH_MODEL_ONNX_GRAPH_H
#define XPH_MODEL_ONNX_GRAPH_H

#include "model/tensor_table.h"

#define XPH_ONNX_BATCH "N" /* the first dimension of what streams have: as many as the host likes */
#define XPH_ONNX_NAME  160 /* with its end */

/* TensorProto.DataType */
enum { XPH_ONNX_FLOAT = 1, XPH_ONNX_UINT8 = 2, XPH_ONNX_INT64 = 7, XPH_ONNX_BFLOAT16 = 16 };

/* A value, by its name. "": none. */
typedef struct xph_onnx_value {
    char name[XPH_ONNX_NAME];
} xph_onnx_value;

/* A tensor of the model as an initializer: rows [first, first + rows) of what a weights file stores. */
typedef struct xph_onnx_weight {
    int32_t index, scale; /* of the tensor; 1: its scales, 0: its numbers */
    int64_t first, rows;
    int32_t turned;                    /* 1: [in,out] instead of [out,in], numbers + 128 */
    size_t head_at, head_bytes, bytes; /* its message up to the numbers, in heads; the numbers' bytes */
} xph_onnx_weight;

typedef struct xph_onnx {
    const exphil_model *model;
    exphil_error *error;
    exphil_status status;
    xph_proto_out body,
        heads; /* of the graph: all but weights; what stands in front of the numbers of each */
    xph_onnx_weight *weight;
    int64_t weights, capacity;
    size_t node, weight_bytes; /* where the open node began; bytes of all numbers */
    uint32_t axes;             /* constants that are there: bit a */
    bool middle;               /* likewise, of xph_onnx_int8 */
    char prefix[48];           /* in front of names: "blocks.0." or "" */
} xph_onnx;

void xph_onnx_begin(xph_onnx *g, const exphil_model *model, exphil_error *error);
exphil_status xph_onnx_end(xph_onnx *g); /* all is there; drop is the caller's, in any case */
void xph_onnx_drop(xph_onnx *g);
/* EXPHIL_E_UNSUPPORTED, with the words of the format. */
void xph_onnx_refuse(xph_onnx *g, const char *format, ...) XPH_PRINTF(2, 3);
/* A tensor of the heads, by its name; a model without it is refused, not misread. */
int64_t xph_onnx_find(xph_onnx *g, const char *name);

/* ---- values of the graph ------------------------------------------------------------------------------- */

/* dims [rank]; -1: XPH_ONNX_BATCH. An output is a value of this name that a node makes. what: for people. */
xph_onnx_value xph_onnx_input(xph_onnx *g, const char *name, int32_t type, int32_t rank, const int64_t *dims,
                              const char *what);
void xph_onnx_output(xph_onnx *g, xph_onnx_value value, int32_t type, int32_t rank, const int64_t *dims,
                     const char *what);
xph_onnx_value xph_onnx_floats(xph_onnx *g, const char *name, int64_t count, const float *values);
xph_onnx_value xph_onnx_ints(xph_onnx *g, const char *name, int64_t count, const int64_t *values);
xph_onnx_value xph_onnx_float(xph_onnx *g, const char *name, float value); /* without dimensions */
xph_onnx_value xph_onnx_int(xph_onnx *g, const char *name, int64_t value); /* likewise */
xph_onnx_value xph_onnx_axis(xph_onnx *g, int32_t axis);                   /* [1], one for all who ask */
/* A tensor of the model, in floats; and rows of it, by a name of their own. */
xph_onnx_value xph_onnx_tensor(xph_onnx *g, int64_t index);
xph_onnx_value xph_onnx_rows(xph_onnx *g, int64_t index, const char *part, int64_t first, int64_t rows);
/* A matrix of int8 as [in,out] of bytes, numbers + 128; the byte that is 0; its scales [out]. */
typedef struct xph_onnx_bytes {
    xph_onnx_value numbers, middle, scale;
} xph_onnx_bytes;
xph_onnx_bytes xph_onnx_int8(xph_onnx *g, int64_t index);

/* ---- nodes --------------------------------------------------------------------------------------------- */

/* node, then its inputs and attributes in any order, then its outputs, of which the last ends it. */
void xph_onnx_node(xph_onnx *g, const char *op);
void xph_onnx_in(xph_onnx *g, xph_onnx_value value);
void xph_onnx_set_int(xph_onnx *g, const char *name, int64_t value);
void xph_onnx_set_ints(xph_onnx *g, const char *name, int64_t count, const int64_t *values);
void xph_onnx_set_float(xph_onnx *g, const char *name, float value);
xph_onnx_value xph_onnx_also(xph_onnx *g, const char *name); /* an output that is not the last */
xph_onnx_value xph_onnx_out(xph_onnx *g, const char *name);

xph_onnx_value xph_onnx_of(xph_onnx *g, const char *op, const char *name, xph_onnx_value x);
xph_onnx_value xph_onnx_both(xph_onnx *g, const char *op, const char *name, xph_onnx_value x,
                             xph_onnx_value y);
xph_onnx_value xph_onnx_where(xph_onnx *g, const char *name, xph_onnx_value which, xph_onnx_value x,
                              xph_onnx_value y);
xph_onnx_value xph_onnx_concat(xph_onnx *g, const char *name, xph_onnx_value x, xph_onnx_value y,
                               int32_t axis);
xph_onnx_value xph_onnx_cast(xph_onnx *g, const char *name, xph_onnx_value x, int32_t type);
xph_onnx_value xph_onnx_widen(xph_onnx *g, const char *name, xph_onnx_value x, int32_t axis); /* Unsqueeze */
xph_onnx_value xph_onnx_sum(xph_onnx *g, const char *name, xph_onnx_value x, int32_t axis, bool keep);
xph_onnx_value xph_onnx_gather(xph_onnx *g, const char *name, xph_onnx_value x, xph_onnx_value at,
                               int32_t axis);
/* Of a shape whose 0 is "as it was". */
xph_onnx_value xph_onnx_reshape(xph_onnx *g, const char *name, xph_onnx_value x, int32_t rank,
                                const int64_t *dims);
/* The first count along an axis. */
xph_onnx_value xph_onnx_first(xph_onnx *g, const char *name, xph_onnx_value x, int64_t count, int32_t axis);
/* Cut along an axis into parts of these widths, named with the numbers or the names given; one part: x itself. */
void xph_onnx_split(xph_onnx *g, const char *name, xph_onnx_value x, int32_t axis, int32_t parts,
                    const int64_t *width, const char *const *names, xph_onnx_value *to);

/* What the model computes: y = x W^T + bias, with weights of fewer bits as lib/device/backend.h rounds them (bias
 * -1: none; plus: added instead, or ""); LayerNorm by its two tensors; x sigmoid(x); GELU by tanh. */
xph_onnx_value xph_onnx_linear(xph_onnx *g, const char *name, xph_onnx_value x, int64_t weight, int64_t bias);
xph_onnx_value xph_onnx_gemm(xph_onnx *g, const char *name, xph_onnx_value x, xph_onnx_value weight,
                             xph_onnx_value plus);
xph_onnx_value xph_onnx_norm(xph_onnx *g, const char *name, xph_onnx_value x, int64_t first);
xph_onnx_value xph_onnx_silu(xph_onnx *g, const char *name, xph_onnx_value x);
xph_onnx_value xph_onnx_gelu(xph_onnx *g, const char *name, xph_onnx_value x);

/* ---- the step ------------------------------------------------------------------------------------------ */

/* A state: what comes in as prefix + name goes out as prefix + name_out. Zero at an episode's start. */
xph_onnx_value xph_onnx_state(xph_onnx *g, const char *name, int32_t rank, const int64_t *dims);
void xph_onnx_state_out(xph_onnx *g, xph_onnx_value value, int32_t rank, const int64_t *dims);

/* What a row is put together from, and what the heads need of it besides. */
typedef struct xph_onnx_row {
    xph_onnx_value past, delay; /* [N, queue, A] decided actions, newest first; [N]; "": there are none */
    xph_onnx_value seen;        /* [N, slots * L], past actions as the network sees them; "": no slots */
    xph_onnx_value pressed; /* [N, L] bool, logits that the newest decided action has on; "" without bits */
    int64_t queue;
} xph_onnx_row;
xph_onnx_value xph_onnx_enter(xph_onnx *g, xph_onnx_row *row);               /* onnx_input.c: x [N,H] */
xph_onnx_value xph_onnx_blocks(xph_onnx *g, xph_onnx_value x);               /* onnx_blocks.c */
void xph_onnx_heads(xph_onnx *g, xph_onnx_value x, const xph_onnx_row *row); /* onnx_heads.c */
/* What a head with layers sees: the trunk [N, Z]; "" or as codes, bits and one-hots: the values of the heads before it
 * [N, its first logit], and its own in the newest past action [N, its count]. */
typedef struct xph_onnx_shown {
    xph_onnx_value z, before, last;
} xph_onnx_shown;
/* Its logits (onnx_layers.c), with base added unless that is "". */
xph_onnx_value xph_onnx_layers(xph_onnx *g, const char *head, const xph_onnx_shown *shown,
                               xph_onnx_value base);
/* Layout and codec as JSON, for hosts that make rows and controllers (onnx_text.c); false: they are not the
 * library's own, and nothing is written. */
bool xph_onnx_layout(const exphil_model *model, xph_json_out *out);
bool xph_onnx_codec(const exphil_model *model, xph_json_out *out);

/* What stands between two heads or two logits: their kinds and places. */
bool xph_onnx_has(const exphil_model *model, int32_t kind); /* EXPHIL_BERNOULLI, EXPHIL_CATEGORICAL */

#endif
