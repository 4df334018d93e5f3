/* What blocks and heads are made of, as nodes of an ONNX graph. */
#include "model/onnx_graph.h"

#include <stdio.h>

#define GELU_CUBE  0.044715f           /* Hendrycks & Gimpel 2016, by tanh */
#define GELU_SCALE 0.7978845608028654f /* sqrt(2 / pi) */
#define SMALL_ROW  0x1p-100f           /* a row below is rounded to 0 (lib/device/backend.h) */

xph_onnx_value xph_onnx_of(xph_onnx *g, const char *op, const char *name, xph_onnx_value x)
{
    xph_onnx_node(g, op);
    xph_onnx_in(g, x);
    return xph_onnx_out(g, name);
}

xph_onnx_value xph_onnx_both(xph_onnx *g, const char *op, const char *name, xph_onnx_value x,
                             xph_onnx_value y)
{
    xph_onnx_node(g, op);
    xph_onnx_in(g, x);
    xph_onnx_in(g, y);
    return xph_onnx_out(g, name);
}

xph_onnx_value xph_onnx_where(xph_onnx *g, const char *name, xph_onnx_value which, xph_onnx_value x,
                              xph_onnx_value y)
{
    xph_onnx_node(g, "Where");
    xph_onnx_in(g, which);
    xph_onnx_in(g, x);
    xph_onnx_in(g, y);
    return xph_onnx_out(g, name);
}

xph_onnx_value xph_onnx_concat(xph_onnx *g, const char *name, xph_onnx_value x, xph_onnx_value y,
                               int32_t axis)
{
    xph_onnx_node(g, "Concat");
    xph_onnx_in(g, x);
    xph_onnx_in(g, y);
    xph_onnx_set_int(g, "axis", axis);
    return xph_onnx_out(g, name);
}

xph_onnx_value xph_onnx_cast(xph_onnx *g, const char *name, xph_onnx_value x, int32_t type)
{
    xph_onnx_node(g, "Cast");
    xph_onnx_in(g, x);
    xph_onnx_set_int(g, "to", type);
    return xph_onnx_out(g, name);
}

xph_onnx_value xph_onnx_widen(xph_onnx *g, const char *name, xph_onnx_value x, int32_t axis)
{
    xph_onnx_value at = xph_onnx_axis(g, axis);
    return xph_onnx_both(g, "Unsqueeze", name, x, at);
}

xph_onnx_value xph_onnx_sum(xph_onnx *g, const char *name, xph_onnx_value x, int32_t axis, bool keep)
{
    xph_onnx_value at = xph_onnx_axis(g, axis);
    xph_onnx_node(g, "ReduceSum");
    xph_onnx_in(g, x);
    xph_onnx_in(g, at);
    xph_onnx_set_int(g, "keepdims", keep);
    return xph_onnx_out(g, name);
}

xph_onnx_value xph_onnx_gather(xph_onnx *g, const char *name, xph_onnx_value x, xph_onnx_value at,
                               int32_t axis)
{
    xph_onnx_node(g, "Gather");
    xph_onnx_in(g, x);
    xph_onnx_in(g, at);
    xph_onnx_set_int(g, "axis", axis);
    return xph_onnx_out(g, name);
}

/* A name behind another, for what belongs to a value. */
static const char *part(char text[XPH_ONNX_NAME], const char *name, const char *word)
{
    snprintf(text, XPH_ONNX_NAME, "%s.%s", name, word);
    return text;
}

xph_onnx_value xph_onnx_reshape(xph_onnx *g, const char *name, xph_onnx_value x, int32_t rank,
                                const int64_t *dims)
{
    char text[XPH_ONNX_NAME];
    xph_onnx_value shape = xph_onnx_ints(g, part(text, name, "shape"), rank, dims);
    return xph_onnx_both(g, "Reshape", name, x, shape);
}

xph_onnx_value xph_onnx_first(xph_onnx *g, const char *name, xph_onnx_value x, int64_t count, int32_t axis)
{
    char text[XPH_ONNX_NAME];
    xph_onnx_value begin = xph_onnx_axis(g, 0), end = xph_onnx_ints(g, part(text, name, "end"), 1, &count),
                   at = xph_onnx_axis(g, axis);
    xph_onnx_node(g, "Slice");
    xph_onnx_in(g, x);
    xph_onnx_in(g, begin);
    xph_onnx_in(g, end);
    xph_onnx_in(g, at);
    return xph_onnx_out(g, name);
}

void xph_onnx_split(xph_onnx *g, const char *name, xph_onnx_value x, int32_t axis, int32_t parts,
                    const int64_t *width, const char *const *names, xph_onnx_value *to)
{
    char text[XPH_ONNX_NAME];
    to[0] = x;
    if (parts == 1) return;
    xph_onnx_value widths = xph_onnx_ints(g, part(text, name, "widths"), parts, width);
    xph_onnx_node(g, "Split");
    xph_onnx_in(g, x);
    xph_onnx_in(g, widths);
    xph_onnx_set_int(g, "axis", axis);
    for (int32_t i = 0; i < parts; i++) {
        part(text, name, names[i]);
        to[i] = i + 1 < parts ? xph_onnx_also(g, text) : xph_onnx_out(g, text);
    }
}

/* ---- what the model computes ---------------------------------------------------------------------------- */

xph_onnx_value xph_onnx_gemm(xph_onnx *g, const char *name, xph_onnx_value x, xph_onnx_value weight,
                             xph_onnx_value plus)
{
    xph_onnx_node(g, "Gemm");
    xph_onnx_in(g, x);
    xph_onnx_in(g, weight);
    if (*plus.name) xph_onnx_in(g, plus);
    xph_onnx_set_int(g, "transB", 1);
    return xph_onnx_out(g, name);
}

/* To the nearest bfloat16. Below 2^-50 the library has 0, which changes no sum. */
static xph_onnx_value rounded_half(xph_onnx *g, const char *name, xph_onnx_value x)
{
    char text[XPH_ONNX_NAME];
    xph_onnx_value half = xph_onnx_cast(g, part(text, name, "bf16"), x, XPH_ONNX_BFLOAT16);
    return xph_onnx_cast(g, part(text, name, "rounded"), half, XPH_ONNX_FLOAT);
}

/* u = round(x * 127 / max|x|), an exact sum of integers, then the scale of each column and that of the row, one after
 * the other: as one product they would look to ONNX Runtime (1.32) like its own quantisation, which it replaces by
 * another operation. Both sides are bytes about 128: of signed ones that runtime has no fast product, and bytes with
 * signed ones saturate on processors without VNNI. */
static xph_onnx_value product_i8(xph_onnx *g, const char *name, xph_onnx_value x, int64_t weight)
{
    static const int64_t last = -1;
    char text[XPH_ONNX_NAME];
    const xph_onnx_bytes w = xph_onnx_int8(g, weight);
    xph_onnx_value most = xph_onnx_float(g, part(text, name, "most"), 127.0f),
                   least = xph_onnx_float(g, part(text, name, "least"), SMALL_ROW),
                   middle = xph_onnx_float(g, part(text, name, "middle"), 128.0f),
                   size = xph_onnx_of(g, "Abs", part(text, name, "abs"), x);
    xph_onnx_node(g, "ReduceMax");
    xph_onnx_in(g, size);
    xph_onnx_set_ints(g, "axes", 1, &last);
    xph_onnx_set_int(g, "keepdims", 1);
    xph_onnx_value top = xph_onnx_out(g, part(text, name, "top"));
    top = xph_onnx_both(g, "Max", part(text, name, "largest"), top, least);
    xph_onnx_value levels = xph_onnx_both(g, "Div", part(text, name, "levels"), most, top);
    xph_onnx_value u = xph_onnx_both(g, "Mul", part(text, name, "scaled"), x, levels);
    u = xph_onnx_of(g, "Round", part(text, name, "rounded"), u);
    u = xph_onnx_both(g, "Add", part(text, name, "raised"), u, middle);
    u = xph_onnx_cast(g, part(text, name, "u8"), u, XPH_ONNX_UINT8);
    xph_onnx_node(g, "MatMulInteger");
    xph_onnx_in(g, u);
    xph_onnx_in(g, w.numbers);
    xph_onnx_in(g, w.middle);
    xph_onnx_in(g, w.middle);
    u = xph_onnx_out(g, part(text, name, "i32"));
    u = xph_onnx_cast(g, part(text, name, "sum"), u, XPH_ONNX_FLOAT);
    u = xph_onnx_both(g, "Mul", part(text, name, "columns"), u, w.scale);
    top = xph_onnx_both(g, "Div", part(text, name, "row"), top, most);
    return xph_onnx_both(g, "Mul", part(text, name, "product"), u, top);
}

xph_onnx_value xph_onnx_linear(xph_onnx *g, const char *name, xph_onnx_value x, int64_t weight, int64_t bias)
{
    xph_type narrow = xph_model_narrow(g->model, weight);
    xph_onnx_value plus = {""};
    if (bias >= 0) plus = xph_onnx_tensor(g, bias);
    if (narrow == XPH_I8) {
        xph_onnx_value y = product_i8(g, name, x, weight);
        return bias < 0 ? y : xph_onnx_both(g, "Add", name, y, plus);
    }
    if (narrow == XPH_BF16) x = rounded_half(g, name, x);
    xph_onnx_value matrix = xph_onnx_tensor(g, weight);
    return xph_onnx_gemm(g, name, x, matrix, plus);
}

xph_onnx_value xph_onnx_norm(xph_onnx *g, const char *name, xph_onnx_value x, int64_t first)
{
    xph_onnx_value gain = xph_onnx_tensor(g, first), shift = xph_onnx_tensor(g, first + 1);
    xph_onnx_node(g, "LayerNormalization");
    xph_onnx_in(g, x);
    xph_onnx_in(g, gain);
    xph_onnx_in(g, shift);
    xph_onnx_set_int(g, "axis", -1);
    xph_onnx_set_float(g, "epsilon", (float)g->model->config.norm_epsilon);
    return xph_onnx_out(g, name);
}

xph_onnx_value xph_onnx_silu(xph_onnx *g, const char *name, xph_onnx_value x)
{
    char text[XPH_ONNX_NAME];
    xph_onnx_value gate = xph_onnx_of(g, "Sigmoid", part(text, name, "gate"), x);
    return xph_onnx_both(g, "Mul", name, x, gate);
}

/* x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) */
xph_onnx_value xph_onnx_gelu(xph_onnx *g, const char *name, xph_onnx_value x)
{
    char text[XPH_ONNX_NAME];
    xph_onnx_value cube = xph_onnx_float(g, part(text, name, "cube"), GELU_CUBE),
                   scale = xph_onnx_float(g, part(text, name, "scale"), GELU_SCALE),
                   one = xph_onnx_float(g, part(text, name, "one"), 1.0f),
                   half = xph_onnx_float(g, part(text, name, "half"), 0.5f);
    xph_onnx_value t = xph_onnx_both(g, "Mul", part(text, name, "square"), x, x);
    t = xph_onnx_both(g, "Mul", part(text, name, "x3"), t, x);
    t = xph_onnx_both(g, "Mul", part(text, name, "x3.scaled"), t, cube);
    t = xph_onnx_both(g, "Add", part(text, name, "sum"), x, t);
    t = xph_onnx_both(g, "Mul", part(text, name, "sum.scaled"), t, scale);
    t = xph_onnx_of(g, "Tanh", part(text, name, "tanh"), t);
    t = xph_onnx_both(g, "Add", part(text, name, "share"), t, one);
    t = xph_onnx_both(g, "Mul", part(text, name, "twice"), x, t);
    return xph_onnx_both(g, "Mul", name, t, half);
}
