/* Heads with hidden layers of their own as an ONNX graph (heads_layers.c, doc/model.md). */
#include "model/onnx_graph.h"

#include <stdio.h>

static int64_t tensor_of(xph_onnx *g, const char *head, const char *what)
{
    char name[XPH_ONNX_NAME];
    snprintf(name, sizeof name, "heads.%s.%s", head, what);
    return xph_onnx_find(g, name);
}

/* The linear of layer k, called `name`. */
static xph_onnx_value layer(xph_onnx *g, const char *head, int32_t k, const char *name, xph_onnx_value x)
{
    char text[32];
    snprintf(text, sizeof text, "%d.weight", (int)k);
    const int64_t weight = tensor_of(g, head, text);
    return xph_onnx_linear(g, name, x, weight, weight + 1);
}

/* s and the rows of a table that codes take; s alone without codes. */
static xph_onnx_value add_rows(xph_onnx *g, const char *head, const char *what, xph_onnx_value codes,
                               xph_onnx_value s)
{
    char name[XPH_ONNX_NAME];
    if (!*codes.name) return s;
    xph_onnx_value rows = xph_onnx_tensor(g, tensor_of(g, head, what));
    rows = xph_onnx_both(g, "MatMul", what, codes, rows);
    snprintf(name, sizeof name, "layer.0.%s", what);
    return xph_onnx_both(g, "Add", name, s, rows);
}

static xph_onnx_value activated(xph_onnx *g, int32_t k, xph_onnx_value s)
{
    char name[XPH_ONNX_NAME];
    const int32_t kind = g->model->config.head_activation;
    snprintf(name, sizeof name, "layer.%d.active", (int)k);
    if (kind == EXPHIL_ACTIVATION_RELU) return xph_onnx_of(g, "Relu", name, s);
    if (kind == EXPHIL_ACTIVATION_GELU_TANH) return xph_onnx_gelu(g, name, s);
    if (kind != EXPHIL_ACTIVATION_SILU) xph_onnx_refuse(g, "head_activation %d has no form there", (int)kind);
    return xph_onnx_silu(g, name, s);
}

xph_onnx_value xph_onnx_layers(xph_onnx *g, const char *head, const xph_onnx_shown *shown,
                               xph_onnx_value base)
{
    const int32_t layers = g->model->config.head_layers;
    xph_onnx_value s = layer(g, head, 0, "layer.0", shown->z);
    s = add_rows(g, head, "before", shown->before, s);
    s = add_rows(g, head, "last", shown->last, s);
    for (int32_t k = 1; k < layers; k++) {
        char name[XPH_ONNX_NAME];
        snprintf(name, sizeof name, "layer.%d", (int)k);
        s = layer(g, head, k, name, activated(g, k - 1, s));
    }
    s = activated(g, layers - 1, s);
    if (!*base.name) return layer(g, head, layers, "logits", s);
    s = layer(g, head, layers, "logits.own", s);
    return xph_onnx_both(g, "Add", "logits", s, base);
}
