/* See policy.h. */
#include "learn/policy.h"

#include "base/scalar.h"

#define EXP_LEAST                                                                                            \
  (-700.0) /* e^-700 is next to nothing beside 1, and the smallest that xph_exp_double takes */

static double power(double x)
{
    return x < EXP_LEAST ? 0.0 : xph_exp_double(x < 700.0 ? x : 700.0);
}

/* log(1 + e^x) */
static double softplus(double x)
{
    double rest = power(x > 0.0 ? -x : x);
    return (x > 0.0 ? x : 0.0) + (rest < 1e-8 ? rest : xph_log_double(1.0 + rest));
}

static double logit_at(const void *logits, xph_type type, int64_t i)
{
    return type == XPH_F64 ? ((const double *)logits)[i] : (double)((const float *)logits)[i];
}

void xph_policy_logs(const xph_policy *policy, const void *logits, xph_type type, double *logs)
{
    for (int64_t h = 0; h < policy->heads; h++) {
        const xph_head *head = &policy->head[h];
        double *to = logs + head->first, most, sum = 0.0;
        for (int32_t i = 0; i < head->count; i++)
            to[i] = logit_at(logits, type, head->first + i) / policy->temperature[h];
        if (head->kind == EXPHIL_BERNOULLI) continue;
        most = to[0];
        for (int32_t i = 1; i < head->count; i++)
            if (to[i] > most) most = to[i];
        for (int32_t i = 0; i < head->count; i++) sum += power(to[i] - most);
        most += xph_log_double(sum);
        for (int32_t i = 0; i < head->count; i++) to[i] -= most;
    }
}

double xph_policy_log_probability(const xph_policy *policy, const double *logs, const int32_t *action)
{
    double sum = 0.0;
    for (int64_t h = 0; h < policy->heads; h++) {
        const xph_head *head = &policy->head[h];
        const double *log = logs + head->first;
        if (head->kind == EXPHIL_CATEGORICAL) sum += log[action[h]];
        for (int32_t i = 0; head->kind == EXPHIL_BERNOULLI && i < head->count; i++)
            sum -= softplus(action[h] >> i & 1 ? -log[i] : log[i]);
    }
    return sum;
}

/* ---- the loss ------------------------------------------------------------------------------------------------------- */

/* What the surrogate asks of log p: its gradient is advance * (gradient of log p). */
static double surrogate(const xph_policy_terms *terms, const xph_policy_row *row, double log_probability,
                        xph_policy_result *result)
{
    double apart = log_probability - row->log_probability, ratio = power(apart), low = 1.0 - terms->clip,
           high = 1.0 + terms->clip;
    double bounded = ratio < low ? low : ratio > high ? high : ratio;
    double free = ratio * row->advantage, held = bounded * row->advantage;
    result->ratio = ratio;
    result->apart = apart < 0.0 ? -apart : apart;
    result->clipped = held < free ? 1.0 : 0.0;
    result->surrogate = held < free ? held : free;
    return held < free ? 0.0 : -terms->surrogate * free;
}

/* A categorical head: log p of new, old and teacher; gradient by the scaled logits. */
static void categorical(const xph_policy_terms *terms, const double *log, const double *old,
                        const double *teacher, int32_t count, int32_t action, double advance,
                        xph_policy_result *result, double *gradient)
{
    double entropy = 0.0, to_old = 0.0, to = 0.0, from = 0.0;
    for (int32_t i = 0; i < count; i++) {
        double p = power(log[i]);
        entropy -= p * log[i];
        if (old) to_old += power(old[i]) * (old[i] - log[i]);
        if (teacher) to += p * (log[i] - teacher[i]);
        if (teacher) from += power(teacher[i]) * (teacher[i] - log[i]);
    }
    for (int32_t i = 0; i < count; i++) {
        double p = power(log[i]);
        double d = advance * ((i == action ? 1.0 : 0.0) - p) + terms->entropy * p * (log[i] + entropy);
        if (old) d += terms->to_old * (p - power(old[i]));
        if (teacher) d += terms->to_teacher * p * (log[i] - teacher[i] - to);
        if (teacher) d += terms->from_teacher * (p - power(teacher[i]));
        gradient[i] = d;
    }
    result->entropy += entropy;
    result->kl_old += to_old;
    result->kl_to_teacher += to;
    result->kl_from_teacher += from;
}

/* KL between two bits by their logits a and b. */
static double bit_divergence(double a, double b)
{
    double p = power(-softplus(-a));
    return p * (softplus(-b) - softplus(-a)) + (1.0 - p) * (softplus(b) - softplus(a));
}

static void bits(const xph_policy_terms *terms, const double *logit, const double *old, const double *teacher,
                 int32_t count, int32_t action, double advance, xph_policy_result *result, double *gradient)
{
    for (int32_t i = 0; i < count; i++) {
        double y = logit[i], p = power(-softplus(-y)), spread = p * (1.0 - p);
        double d = advance * ((double)(action >> i & 1) - p) + terms->entropy * spread * y;
        result->entropy += p * softplus(-y) + (1.0 - p) * softplus(y);
        if (old) {
            result->kl_old += bit_divergence(old[i], y);
            d += terms->to_old * (p - power(-softplus(-old[i])));
        }
        if (teacher) {
            result->kl_to_teacher += bit_divergence(y, teacher[i]);
            result->kl_from_teacher += bit_divergence(teacher[i], y);
            d += terms->to_teacher * spread * (y - teacher[i]);
            d += terms->from_teacher * (p - power(-softplus(-teacher[i])));
        }
        gradient[i] = d;
    }
}

enum { CLASSES_MOST = 1024 }; /* of a head */

xph_policy_result xph_policy_loss(const xph_policy *policy, const xph_policy_terms *terms,
                                  const xph_policy_row *row, const double *logs, double scale, void *gradient,
                                  xph_type type)
{
    xph_policy_result result = {0};
    double by_logit[CLASSES_MOST];
    double log_probability = xph_policy_log_probability(policy, logs, row->action);
    double advance = surrogate(terms, row, log_probability, &result);
    for (int64_t h = 0; h < policy->heads; h++) {
        const xph_head *head = &policy->head[h];
        const double *old = row->old ? row->old + head->first : NULL,
                     *teacher = row->teacher ? row->teacher + head->first : NULL;
        if (head->kind == EXPHIL_BERNOULLI)
            bits(terms, logs + head->first, old, teacher, head->count, row->action[h], advance, &result,
                 by_logit);
        else
            categorical(terms, logs + head->first, old, teacher, head->count, row->action[h], advance,
                        &result, by_logit);
        for (int32_t i = 0; gradient && i < head->count; i++) {
            double d = scale * by_logit[i] / policy->temperature[h];
            if (type == XPH_F64)
                ((double *)gradient)[head->first + i] = d;
            else
                ((float *)gradient)[head->first + i] = (float)d;
        }
    }
    result.loss = -terms->surrogate * result.surrogate + terms->to_old * result.kl_old +
                  terms->to_teacher * result.kl_to_teacher + terms->from_teacher * result.kl_from_teacher -
                  terms->entropy * result.entropy;
    return result;
}

/* At the probability that it has, the surrogate of an action with advantage 1 has the gradient of its log-probability. */
double xph_policy_imitate(const xph_policy *policy, const int32_t *action, const double *logs, double scale,
                          void *gradient, xph_type type)
{
    static const xph_policy_terms terms = {.surrogate = 1.0, .clip = 1.0};
    const double log = xph_policy_log_probability(policy, logs, action);
    const xph_policy_row row = {.action = action, .log_probability = log, .advantage = 1.0};
    if (gradient) (void)xph_policy_loss(policy, &terms, &row, logs, scale, gradient, type);
    return -log;
}
