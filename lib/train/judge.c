/* A head's logits against what was done. */
#include "train/walk.h"

#include "base/double.h"

static int32_t judge_bits(const double *logit, int32_t count, int32_t target, double *nll)
{
    int32_t best = 0;
    *nll = 0.0;
    for (int32_t bit = 0; bit < count; bit++) {
        bool on = (target >> bit) & 1;
        if (logit[bit] > 0.0) best |= (int32_t)1 << bit;
        *nll += xph_softplus_of(on ? -logit[bit] : logit[bit]);
    }
    return best;
}

static int32_t judge_classes(const double *logit, int32_t count, int32_t target, double *nll, int32_t *rank)
{
    int32_t best = 0;
    double sum = 0.0;
    *rank = 0;
    for (int32_t k = 0; k < count; k++) {
        if (logit[k] > logit[best]) best = k;
        if (logit[k] > logit[target] || (logit[k] == logit[target] && k < target)) (*rank)++;
    }
    for (int32_t k = 0; k < count; k++) sum += xph_exp_of(logit[k] - logit[best]);
    *nll = xph_log_of(sum) + logit[best] - logit[target];
    return best;
}

int32_t xph_judge_head(const xph_head *head, const double *logit, int32_t target, double *nll, int32_t *rank)
{
    *rank = 0;
    return head->kind == EXPHIL_BERNOULLI ? judge_bits(logit, head->count, target, nll)
                                          : judge_classes(logit, head->count, target, nll, rank);
}

int64_t xph_judge(const exphil_model *model, xph_seen *seen)
{
    const xph_head *heads = xph_model_heads(model);
    const int64_t count = xph_model_shape_of(model)->heads;
    int64_t bad = -1;
    for (int64_t h = 0; h < count; h++) {
        const double *logit = seen->logits + heads[h].first;
        seen->likely[h] = xph_judge_head(&heads[h], logit, seen->target[h], &seen->nll[h], &seen->rank[h]);
        if (bad < 0 && !xph_finite(seen->nll[h])) bad = h;
    }
    return bad;
}
