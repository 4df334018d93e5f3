/* Distributions of a policy's actions, what is measured of them, and its gradients by the logits. All in double, of + - * /
 * alone, so that play and training compute the same number on every system. */
#ifndef XPH_LEARN_POLICY_H
#define XPH_LEARN_POLICY_H

#include "base/base.h"
#include "device/backend.h"

/* Heads of a policy, and the temperature at which each is drawn. */
typedef struct xph_policy {
    const xph_head *head;
    int64_t heads, logits;
    double temperature[EXPHIL_HEADS_MAX];
} xph_policy;

/* What the logits [n, L] of n rows stand for, in logs [n, L]: of a categorical head log p of each class; of a Bernoulli head
 * the logit of each bit, divided by the temperature. */
void xph_policy_logs(const xph_policy *policy, const void *logits, xph_type type, int64_t rows, double *logs);
/* From these, p of each class and of each bit that is 1, in chances [n, L]. */
void xph_policy_chances(const xph_policy *policy, const double *logs, int64_t rows, double *chances);
/* Log-probability of an action [A] by the logs [L] of its row: the sum over heads. */
double xph_policy_log_probability(const xph_policy *policy, const double *logs, const int32_t *action);

/* Rows as they were played. */
typedef struct xph_policy_rows {
    int64_t count;
    const int32_t *action;         /* [n, A] */
    const double *log_probability; /* [n] recorded in play */
    const double *advantage;       /* [n] */
    const uint8_t *counts;         /* [n] XPH_ROW_...; NULL: all are PLAYED. Of the others nothing comes */
    const double *old;             /* [n, L] logs when they were played; NULL: no KL to it */
    const double *old_chances;     /* [n, L] of the same */
    const double *teacher;         /* [n, L] logs; NULL: none */
    const double *teacher_chances;
} xph_policy_rows;

/* Loss of each row by its logs and chances, in result [n], and scale times its gradient by the logits, in gradient [n, L] of
 * this type; gradient NULL: not wanted.
 *   -c min(r A, clip(r, 1-epsilon, 1+epsilon) A) + beta KL(old || new) + k KL(new || teacher) + k' KL(teacher || new)
 *   - e H(new),    r = exp(log p_new(action) - log p_recorded)
 * (Schulman et al. 2017, "Proximal Policy Optimization Algorithms"). KL and entropy are sums over heads; of autoregressive
 * heads each is exact given what was taken before it. */
void xph_policy_loss(const xph_policy *policy, const xph_policy_terms *terms, const xph_policy_rows *rows,
                     const double *logs, const double *chances, double scale, void *gradient, xph_type type,
                     xph_policy_result *result);
/* Imitation of the action [A] of one row by its logs and chances [L]: returns -log p(action), and scale times its gradient by the
 * logits, as above. */
double xph_policy_imitate(const xph_policy *policy, const int32_t *action, const double *logs,
                          const double *chances, double scale, void *gradient, xph_type type);

#endif
