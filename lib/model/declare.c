/* What layers declare their tensors with: each becomes a row of the table. */
#include "model/layer.h"

#include <stdio.h>

double xph_residual_scale(const exphil_model *model)
{
    return 1.0 / __builtin_sqrt((double)model->block_count);
}

static exphil_status grow(exphil_model *model, exphil_error *error)
{
    if (model->tensor_count < model->tensor_capacity) return EXPHIL_OK;
    int64_t capacity = model->tensor_capacity ? 2 * model->tensor_capacity : 64;
    size_t bytes = (size_t)capacity * sizeof *model->tensor,
           old = (size_t)model->tensor_capacity * sizeof *model->tensor;
    xph_tensor *more = xph_alloc(model->context, bytes);
    if (!more) return xph_no_memory(bytes, error);
    if (old) memcpy(more, model->tensor, old);
    xph_free(model->context, model->tensor, old);
    model->tensor = more;
    model->tensor_capacity = capacity;
    return EXPHIL_OK;
}

void xph_declare(xph_declaring *to, const char *name, int64_t rows, int64_t columns, int32_t flags,
                 xph_init init, double scale)
{
    exphil_model *model = to->model;
    if (to->status >= 0) to->status = grow(model, to->error);
    if (to->status < 0) return;
    xph_tensor tensor = {.init = init,
                         .scale = scale,
                         .bias = -1,
                         .packs = (flags & XPH_PACKS) != 0,
                         .prepares = (flags & XPH_PREPARES) != 0};
    tensor.keeps = flags & (XPH_KEEPS_HALF | XPH_KEEPS_ALL);
    tensor.param = (xph_param){.rank = columns ? 2 : 1,
                               .decays = (flags & XPH_DECAYS) != 0,
                               .dim = {rows, columns ? columns : 1, 1, 1},
                               .count = rows * (columns ? columns : 1)};
    snprintf(tensor.param.name, sizeof tensor.param.name, "%s%s", to->prefix, name);
    model->tensor[model->tensor_count++] = tensor;
}

void xph_declare_bias(xph_declaring *to, int32_t before, const char *name, int64_t rows, xph_init init,
                      double scale)
{
    exphil_model *model = to->model;
    xph_declare(to, name, rows, 0, 0, init, scale);
    if (to->status < 0) return;
    int64_t own = model->tensor_count - 1;
    model->tensor[own - before].bias = (int32_t)own;
}

void xph_declare_linear(xph_declaring *to, const char *name, int64_t in, int64_t out, double scale)
{
    char text[64];
    snprintf(text, sizeof text, "%s.weight", name);
    xph_declare(to, text, out, in, XPH_DECAYS | XPH_PACKS, XPH_INIT_UNIFORM,
                scale / __builtin_sqrt((double)in));
    snprintf(text, sizeof text, "%s.bias", name);
    xph_declare_bias(to, 1, text, out, XPH_INIT_ZERO, 0.0);
}

void xph_declare_norm(xph_declaring *to, const char *name, int64_t width)
{
    char text[64];
    snprintf(text, sizeof text, "%s.weight", name);
    xph_declare(to, text, width, 0, 0, XPH_INIT_ONE, 0.0);
    snprintf(text, sizeof text, "%s.bias", name);
    xph_declare(to, text, width, 0, 0, XPH_INIT_ZERO, 0.0);
}
