/* See policy.h. Exponentials are most of the work: rows are taken in strips, so that they are computed several at a time. */
#include "learn/policy.h"

#include "device/policy_row.h"
#include "learn/powers.h"

enum { STRIP = 1024, CLASSES_MOST = STRIP }; /* numbers on the stack; of a head */

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
                chances[i] = -xph_bit_of(logs[i]).down;
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
            xph_bit s = xph_bit_of(log[i]);
            sum -= action[h] >> i & 1 ? s.down : s.up;
        }
    }
    return sum;
}

/* ---- the loss ------------------------------------------------------------------------------------------------------- */

static void head_of_row(const xph_policy_terms *terms, const xph_head *head, const xph_policy_head *one,
                        double advance, xph_policy_result *result, double *restrict gradient)
{
    for (int32_t i = 0; head->kind == EXPHIL_BERNOULLI && i < head->count; i++) {
        const xph_policy_unit unit = xph_bit_unit(one, i);
        xph_policy_add(result, &unit);
        gradient[i] = xph_bit_gradient(terms, one, advance, i);
    }
    if (head->kind == EXPHIL_BERNOULLI) return;
    const xph_policy_unit unit = xph_classes_unit(one, head->count);
    xph_policy_add(result, &unit);
    for (int32_t i = 0; i < head->count; i++) gradient[i] = xph_class_gradient(terms, one, &unit, advance, i);
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
        const xph_policy_head one = {.log = c->logs + at,
                                     .p = c->chances + at,
                                     .old = rows->old ? rows->old + at : NULL,
                                     .old_p = rows->old ? rows->old_chances + at : NULL,
                                     .teacher = rows->teacher ? rows->teacher + at : NULL,
                                     .teacher_p = rows->teacher ? rows->teacher_chances + at : NULL,
                                     .step = 1,
                                     .action = rows->action[t * c->policy->heads + h]};
        head_of_row(terms, head, &one, advance, result, by_logit);
        if (c->gradient) give(c, by_logit, h, at);
    }
    result->loss = xph_policy_row_loss(terms, result);
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
        loss_of_row(c, t, xph_policy_surrogate(c->terms, rows->advantage[t], ratio[i], &result[t]),
                    &result[t]);
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

double xph_policy_imitate(const xph_policy *policy, const int32_t *action, const double *logs,
                          const double *chances, double scale, void *gradient, xph_type type)
{
    static const xph_policy_terms terms = XPH_POLICY_IMITATES;
    const xph_policy_rows row = {.count = 1, .action = action};
    const loss_call c = {policy, &terms, &row, logs, chances, scale, gradient, type};
    xph_policy_result unused = {0};
    if (gradient) loss_of_row(&c, 0, -1.0, &unused);
    return -xph_policy_log_probability(policy, logs, action);
}
