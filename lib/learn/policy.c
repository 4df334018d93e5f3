/* See policy.h. Exponentials are most of the work: rows are taken in strips, so that they are computed several at a time. */
#include "learn/policy.h"

#include "learn/powers.h"

enum { STRIP = 1024, CLASSES_MOST = STRIP }; /* numbers on the stack; of a head */

/* The logarithms of 1 + e^x and 1 + e^-x. */
typedef struct softplus {
    double up, down;
} softplus;

static softplus softplus_of(double x)
{
    double rest = xph_power(x > 0.0 ? -x : x), more = rest < 1e-8 ? rest : xph_log_double(1.0 + rest);
    return (softplus){(x > 0.0 ? x : 0.0) + more, (-x > 0.0 ? -x : 0.0) + more};
}

/* ---- distributions ---------------------------------------------------------------------------------------------------- */

static void scale_row(const void *logits, xph_type type, int64_t from, int32_t count, double temperature,
                      double *to)
{
    for (int32_t i = 0; i < count; i++)
        to[i] = (type == XPH_F64 ? ((const double *)logits)[from + i]
                                 : (double)((const float *)logits)[from + i]) /
                temperature;
}

static double largest(const double *x, int32_t count)
{
    double most = x[0];
    for (int32_t i = 1; i < count; i++)
        if (x[i] > most) most = x[i];
    return most;
}

/* Of rows that lie width apart: x less the logarithm of the sum of e^x. */
static void normalise(double *x, int64_t width, int64_t rows, int32_t count)
{
    double most[STRIP], shares[STRIP];
    const int64_t each = STRIP / count;
    for (int64_t first = 0; first < rows; first += each) {
        const int64_t some = rows - first < each ? rows - first : each;
        double *at = x + first * width;
        for (int64_t t = 0; t < some; t++) {
            most[t] = largest(at + t * width, count);
            for (int32_t i = 0; i < count; i++) shares[t * count + i] = at[t * width + i] - most[t];
        }
        xph_powers(shares, some * count);
        for (int64_t t = 0; t < some; t++) {
            double sum = 0.0;
            for (int32_t i = 0; i < count; i++) sum += shares[t * count + i];
            most[t] += xph_log_double(sum);
            for (int32_t i = 0; i < count; i++) at[t * width + i] -= most[t];
        }
    }
}

void xph_policy_logs(const xph_policy *policy, const void *logits, xph_type type, int64_t rows, double *logs)
{
    const int64_t width = policy->logits;
    for (int64_t h = 0; h < policy->heads; h++) {
        const xph_head *head = &policy->head[h];
        for (int64_t t = 0; t < rows; t++)
            scale_row(logits, type, t * width + head->first, head->count, policy->temperature[h],
                      logs + t * width + head->first);
        if (head->kind == EXPHIL_CATEGORICAL) normalise(logs + head->first, width, rows, head->count);
    }
}

void xph_policy_chances(const xph_policy *policy, const double *logs, int64_t rows, double *chances)
{
    const int64_t width = policy->logits;
    memcpy(chances, logs, (size_t)(rows * width) * sizeof *logs);
    for (int64_t h = 0; h < policy->heads; h++) {
        const xph_head *head = &policy->head[h];
        for (int64_t t = 0; head->kind == EXPHIL_BERNOULLI && t < rows; t++)
            for (int64_t i = t * width + head->first; i < t * width + head->first + head->count; i++)
                chances[i] = -softplus_of(logs[i]).down;
    }
    xph_powers(chances, rows * width);
}

double xph_policy_log_probability(const xph_policy *policy, const double *logs, const int32_t *action)
{
    double sum = 0.0;
    for (int64_t h = 0; h < policy->heads; h++) {
        const xph_head *head = &policy->head[h];
        const double *log = logs + head->first;
        if (head->kind == EXPHIL_CATEGORICAL) sum += log[action[h]];
        for (int32_t i = 0; head->kind == EXPHIL_BERNOULLI && i < head->count; i++) {
            softplus s = softplus_of(log[i]);
            sum -= action[h] >> i & 1 ? s.down : s.up;
        }
    }
    return sum;
}

/* ---- the loss ------------------------------------------------------------------------------------------------------- */

/* What the surrogate asks of log p: its gradient is advance * (gradient of log p). */
static double surrogate(const xph_policy_terms *terms, double advantage, double ratio,
                        xph_policy_result *result)
{
    double low = 1.0 - terms->clip, high = 1.0 + terms->clip;
    double bounded = ratio < low ? low : ratio > high ? high : ratio;
    double free = ratio * advantage, held = bounded * advantage;
    result->ratio = ratio;
    result->clipped = held < free ? 1.0 : 0.0;
    result->surrogate = held < free ? held : free;
    return held < free ? 0.0 : -terms->surrogate * free;
}

/* One head of one row: what the policy, the one that played and the teacher say, each by its logs and chances. */
typedef struct one_head {
    const double *log, *p, *old, *old_p, *teacher, *teacher_p;
    int32_t count, action;
} one_head;

/* Gradients are those by the scaled logits. */
static void categorical(const xph_policy_terms *terms, const one_head *h, double advance,
                        xph_policy_result *result, double *restrict gradient)
{
    const double *log = h->log, *p = h->p, *old = h->old, *teacher = h->teacher;
    double entropy = 0.0, to_old = 0.0, to = 0.0, from = 0.0;
    for (int32_t i = 0; i < h->count; i++) {
        entropy -= p[i] * log[i];
        if (old) to_old += h->old_p[i] * (old[i] - log[i]);
        if (teacher) to += p[i] * (log[i] - teacher[i]);
        if (teacher) from += h->teacher_p[i] * (teacher[i] - log[i]);
    }
    for (int32_t i = 0; i < h->count; i++) {
        double d =
            advance * ((i == h->action ? 1.0 : 0.0) - p[i]) + terms->entropy * p[i] * (log[i] + entropy);
        if (old) d += terms->to_old * (p[i] - h->old_p[i]);
        if (teacher) d += terms->to_teacher * p[i] * (log[i] - teacher[i] - to);
        if (teacher) d += terms->from_teacher * (p[i] - h->teacher_p[i]);
        gradient[i] = d;
    }
    result->entropy += entropy;
    result->kl_old += to_old;
    result->kl_to_teacher += to;
    result->kl_from_teacher += from;
}

/* KL between two bits; p: the chance of the first. */
static double bit_divergence(softplus a, double p, softplus b)
{
    return p * (b.down - a.down) + (1.0 - p) * (b.up - a.up);
}

static void bits(const xph_policy_terms *terms, const one_head *h, double advance, xph_policy_result *result,
                 double *restrict gradient)
{
    for (int32_t i = 0; i < h->count; i++) {
        const double y = h->log[i], p = h->p[i], spread = p * (1.0 - p);
        const softplus own = softplus_of(y);
        double d = advance * ((double)(h->action >> i & 1) - p) + terms->entropy * spread * y;
        result->entropy += p * own.down + (1.0 - p) * own.up;
        if (h->old) {
            result->kl_old += bit_divergence(softplus_of(h->old[i]), h->old_p[i], own);
            d += terms->to_old * (p - h->old_p[i]);
        }
        if (h->teacher) {
            const softplus taught = softplus_of(h->teacher[i]);
            result->kl_to_teacher += bit_divergence(own, p, taught);
            result->kl_from_teacher += bit_divergence(taught, h->teacher_p[i], own);
            d += terms->to_teacher * spread * (y - h->teacher[i]);
            d += terms->from_teacher * (p - h->teacher_p[i]);
        }
        gradient[i] = d;
    }
}

/* A call of xph_policy_loss. */
typedef struct loss_call {
    const xph_policy *policy;
    const xph_policy_terms *terms;
    const xph_policy_rows *rows;
    const double *logs, *chances;
    double scale;
    void *gradient;
    xph_type type;
} loss_call;

static void give(const loss_call *c, const double *by_logit, int64_t h, int64_t at)
{
    for (int32_t i = 0; i < c->policy->head[h].count; i++) {
        double d = c->scale * by_logit[i] / c->policy->temperature[h];
        if (c->type == XPH_F64)
            ((double *)c->gradient)[at + i] = d;
        else
            ((float *)c->gradient)[at + i] = (float)d;
    }
}

static void loss_of_row(const loss_call *c, int64_t t, double advance, xph_policy_result *result)
{
    const xph_policy_terms *terms = c->terms;
    const xph_policy_rows *rows = c->rows;
    double by_logit[CLASSES_MOST];
    for (int64_t h = 0; h < c->policy->heads; h++) {
        const xph_head *head = &c->policy->head[h];
        const int64_t at = t * c->policy->logits + head->first;
        const one_head one = {.log = c->logs + at,
                              .p = c->chances + at,
                              .old = rows->old ? rows->old + at : NULL,
                              .old_p = rows->old ? rows->old_chances + at : NULL,
                              .teacher = rows->teacher ? rows->teacher + at : NULL,
                              .teacher_p = rows->teacher ? rows->teacher_chances + at : NULL,
                              .count = head->count,
                              .action = rows->action[t * c->policy->heads + h]};
        if (head->kind == EXPHIL_BERNOULLI)
            bits(terms, &one, advance, result, by_logit);
        else
            categorical(terms, &one, advance, result, by_logit);
        if (c->gradient) give(c, by_logit, h, at);
    }
    result->loss = -terms->surrogate * result->surrogate + terms->to_old * result->kl_old +
                   terms->to_teacher * result->kl_to_teacher + terms->from_teacher * result->kl_from_teacher -
                   terms->entropy * result->entropy;
}

/* A row of which nothing comes. */
static void pass_over(const loss_call *c, int64_t t)
{
    const size_t bytes = (size_t)c->policy->logits * (c->type == XPH_F64 ? sizeof(double) : sizeof(float));
    if (c->gradient) memset((unsigned char *)c->gradient + (size_t)t * bytes, 0, bytes);
}

static void loss_of_strip(const loss_call *c, int64_t first, int64_t count, xph_policy_result *result)
{
    const xph_policy_rows *rows = c->rows;
    double apart[STRIP], ratio[STRIP];
    for (int64_t i = 0, t = first; i < count; i++, t++) {
        apart[i] = xph_policy_log_probability(c->policy, c->logs + t * c->policy->logits,
                                              rows->action + t * c->policy->heads) -
                   rows->log_probability[t];
        ratio[i] = apart[i];
    }
    xph_powers(ratio, count);
    for (int64_t i = 0, t = first; i < count; i++, t++) {
        result[t] = (xph_policy_result){0};
        if (rows->counts && rows->counts[t] != XPH_ROW_PLAYED) {
            pass_over(c, t);
            continue;
        }
        result[t].apart = apart[i] < 0.0 ? -apart[i] : apart[i];
        loss_of_row(c, t, surrogate(c->terms, rows->advantage[t], ratio[i], &result[t]), &result[t]);
    }
}

void xph_policy_loss(const xph_policy *policy, const xph_policy_terms *terms, const xph_policy_rows *rows,
                     const double *logs, const double *chances, double scale, void *gradient, xph_type type,
                     xph_policy_result *result)
{
    const loss_call c = {policy, terms, rows, logs, chances, scale, gradient, type};
    for (int64_t first = 0; first < rows->count; first += STRIP)
        loss_of_strip(&c, first, rows->count - first < STRIP ? rows->count - first : STRIP, result);
}

/* At the probability that it has, the surrogate of an action with advantage 1 has the gradient of its log-probability. */
double xph_policy_imitate(const xph_policy *policy, const int32_t *action, const double *logs,
                          const double *chances, double scale, void *gradient, xph_type type)
{
    static const xph_policy_terms terms = {.surrogate = 1.0, .clip = 1.0};
    const xph_policy_rows row = {.count = 1, .action = action};
    const loss_call c = {policy, &terms, &row, logs, chances, scale, gradient, type};
    xph_policy_result unused = {0};
    if (gradient) loss_of_row(&c, 0, -1.0, &unused);
    return -xph_policy_log_probability(policy, logs, action);
}
