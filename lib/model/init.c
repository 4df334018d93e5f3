/* Initial weights. Every tensor draws from a random stream named after it, so that adding or removing a
 * tensor changes no other. All arithmetic is in double without the C library's functions and rounded once:
 * the same seed gives the same bits everywhere.
 *
 * Linear weights uniform +-1/sqrt(inputs) (PyTorch's default), their biases zero; what a block adds to its
 * input is scaled by 1/sqrt(blocks). LSTM and GRU uniform +-1/sqrt(hidden), convolution +-1/sqrt(taps),
 * biases too, as in PyTorch. Mamba: A_log = log(1..N), D = 1, bias of dt so that softplus gives steps
 * log-uniform in [1e-3, 1e-1] (Gu & Dao 2023). Where past actions are inputs, the heads begin by repeating
 * the newest one. */
#include "base/scalar.h"
#include "model/tensor_table.h"

#define DT_LOW  1e-3
#define DT_HIGH 1e-1

static double uniform(xph_rng *rng, double scale)
{
    return (2.0 * xph_rng_double(rng) - 1.0) * scale;
}

/* x with softplus(x) = dt: x = log(e^dt - 1) = dt + log(1 - e^-dt). */
static double draw_dt(xph_rng *rng)
{
    double low = xph_log_double(DT_LOW), high = xph_log_double(DT_HIGH);
    double dt = xph_exp_double(low + (high - low) * xph_rng_double(rng));
    return dt + xph_log_double(1.0 - xph_exp_double(-dt));
}

/* Negative for the bits of Bernoulli heads: together with REPEAT a bit that was on is as likely to stay as one that
 * was off. */
static double bit_bias(const exphil_model *model, double scale, int64_t logit)
{
    for (int64_t h = 0; h < model->shape.heads; h++) {
        const xph_head *head = &model->head[h];
        if (logit >= head->first && logit < head->first + head->count)
            return head->kind == EXPHIL_BERNOULLI ? -scale : 0.0;
    }
    return 0.0;
}

static double draw(const exphil_model *model, const xph_tensor *tensor, xph_rng *rng, int64_t i)
{
    switch (tensor->init) {
    case XPH_INIT_REPEAT: /* [L, slots * L], the newest slot first */
        return i / tensor->param.dim[1] == i % tensor->param.dim[1] ? tensor->scale : 0.0;
    case XPH_INIT_BITS:
        return bit_bias(model, tensor->scale, i);
    case XPH_INIT_ONE:
        return 1.0;
    case XPH_INIT_SAME:
        return tensor->scale;
    case XPH_INIT_UNIFORM:
        return uniform(rng, tensor->scale);
    case XPH_INIT_STATES:
        return xph_log_double((double)(i % tensor->param.dim[1] + 1));
    case XPH_INIT_DT:
        return draw_dt(rng);
    default:
        return 0.0;
    }
}

static void fill(const exphil_model *model, const xph_tensor *tensor, void *to)
{
    uint64_t name = xph_hash(tensor->param.name, strlen(tensor->param.name));
    xph_rng rng = {.seed = model->config.seed, .stream = name << 8 | XPH_RNG_INIT};
    for (int64_t i = 0; i < tensor->param.count; i++) {
        double value = draw(model, tensor, &rng, i);
        if (model->shape.type == XPH_F64)
            ((double *)to)[i] = value;
        else
            ((float *)to)[i] = (float)value;
    }
}

static size_t largest_bytes(const exphil_model *model)
{
    int64_t most = 0;
    for (int64_t i = 0; i < model->tensor_count; i++)
        if (model->tensor[i].param.count > most) most = model->tensor[i].param.count;
    return (size_t)most * model->shape.real_bytes;
}

exphil_status xph_model_init(exphil_model *model, exphil_error *error)
{
    size_t bytes = largest_bytes(model);
    void *host = xph_alloc(model->context, bytes);
    if (!host) return xph_no_memory(bytes, error);
    exphil_status status = EXPHIL_OK;
    for (int64_t i = 0; i < model->tensor_count && status >= 0; i++) {
        const xph_tensor *tensor = &model->tensor[i];
        fill(model, tensor, host);
        status = xph_model_push(model, tensor->param.offset, tensor->param.count, host, error);
    }
    xph_free(model->context, host, bytes);
    return status;
}
