/* The loss of a batch as the host computes it, by streams on all threads. Sums are in the order of streams and frames, whatever
 * their number. */
#include "learn/loss.h"

static void logs_of_stream(void *arg, int64_t b, int32_t worker)
{
    const struct {
        exphil_learner *l;
        const exphil_rollout *r;
    } *job = arg;
    const exphil_rollout *r = job->r;
    xph_chunk *c = &job->l->chunk;
    const int64_t width = r->policy.logits, from = b * r->rows * width, to = b * r->time * width;
    (void)worker;
    xph_policy_logs(&r->policy, r->logits + from, XPH_F32, r->time, c->old + to);
    xph_policy_chances(&r->policy, c->old + to, r->time, c->old_chances + to);
    if (!job->l->teacher) return;
    xph_policy_logs(&r->policy, job->l->narrow + from, XPH_F32, r->time, c->teacher + to);
    xph_policy_chances(&r->policy, c->teacher + to, r->time, c->teacher_chances + to);
}

void xph_loss_chunk_by_host(exphil_learner *learner, const exphil_rollout *rollout)
{
    struct {
        exphil_learner *l;
        const exphil_rollout *r;
    } job = {learner, rollout};
    xph_parallel(learner->context, logs_of_stream, &job, rollout->streams);
}

/* ---- a batch -------------------------------------------------------------------------------------------------------------- */

typedef struct host_job {
    const xph_loss_job *of;
    const exphil_forward *forward;
} host_job;

/* What the host did in the policy's place, in row t of a stream, number `at` of the batch: nothing but its probability is asked
 * for. */
static double imitate(const xph_loss_job *job, const xph_policy_rows *rows, int64_t t, int64_t at)
{
    const xph_policy *policy = &job->r->policy;
    const xph_chunk *c = &job->l->chunk;
    float *dlogits = job->imitation > 0.0 ? job->l->part.dlogits + at * policy->logits : NULL;
    return xph_policy_imitate(policy, rows->action + t * policy->heads, c->logs + at * policy->logits,
                              c->chances + at * policy->logits, job->imitation, dlogits, XPH_F32);
}

static void loss_of_stream(void *arg, int64_t i, int32_t worker)
{
    const host_job *given = arg;
    const xph_loss_job *job = given->of;
    exphil_learner *l = job->l;
    const exphil_rollout *r = job->r;
    const xph_chunk *c = &l->chunk;
    const int64_t width = r->policy.logits, b = job->streams[i];
    const int64_t at = i * r->time, from = b * r->time, played = b * r->rows;
    const float *logits = given->forward->logits, *values = given->forward->values;
    const xph_policy_rows rows = {.count = r->time,
                                  .action = r->actions + played * r->policy.heads,
                                  .log_probability = r->log_probability + played,
                                  .advantage = c->advantage + from,
                                  .counts = c->counts + from,
                                  .old = c->old + from * width,
                                  .old_chances = c->old_chances + from * width,
                                  .teacher = l->teacher ? c->teacher + from * width : NULL,
                                  .teacher_chances = l->teacher ? c->teacher_chances + from * width : NULL};
    (void)worker;
    xph_policy_logs(&r->policy, logits + at * width, XPH_F32, r->time, c->logs + at * width);
    xph_policy_chances(&r->policy, c->logs + at * width, r->time, c->chances + at * width);
    xph_policy_loss(&r->policy, &l->terms, &rows, c->logs + at * width, c->chances + at * width, job->scale,
                    l->part.dlogits + at * width, XPH_F32, c->result + at);
    for (int64_t t = 0; t < r->time; t++) {
        const uint8_t what = rows.counts[t];
        const double miss = what == XPH_ROW_PLAYED ? (double)values[at + t] - c->target[from + t] : 0.0;
        c->miss[at + t] = miss * miss;
        l->part.dvalues[at + t] = (float)(2.0 * l->config.value * job->scale * miss);
        if (what == XPH_ROW_IMITATED) c->miss[at + t] = imitate(job, &rows, t, at + t);
    }
}

static void add_rows(const exphil_learner *l, const exphil_rollout *r, const int64_t *streams, xph_tally *sum)
{
    const xph_chunk *c = &l->chunk;
    for (int64_t i = 0; i < l->each; i++)
        for (int64_t t = 0; t < r->time; t++) {
            const xph_policy_result *row = &c->result[i * r->time + t];
            const uint8_t what = c->counts[streams[i] * r->time + t];
            sum->imitated += what == XPH_ROW_IMITATED;
            sum->nll += what == XPH_ROW_IMITATED ? c->miss[i * r->time + t] : 0.0;
            if (what != XPH_ROW_PLAYED) continue;
            sum->rows += 1.0;
            sum->loss += row->loss + l->config.value * c->miss[i * r->time + t];
            sum->miss += c->miss[i * r->time + t];
            sum->ratio += row->ratio;
            sum->clipped += row->clipped;
            sum->kl_old += row->kl_old;
            sum->to_teacher += row->kl_to_teacher;
            sum->from_teacher += row->kl_from_teacher;
            sum->entropy += row->entropy;
            if (row->apart > sum->apart) sum->apart = row->apart;
        }
}

double xph_tally_loss(const exphil_learner *l, const xph_tally *sum)
{
    const double loss = xph_mean(sum->loss, sum->rows);
    return l->imitation > 0.0 ? loss + l->imitation * xph_mean(sum->nll, sum->imitated) : loss;
}

exphil_status xph_loss_by_host(const xph_loss_job *job, const exphil_batch *batch, xph_tally *own,
                               xph_tally *sum, exphil_metrics *metrics, exphil_error *error)
{
    exphil_learner *l = job->l;
    exphil_forward forward = EXPHIL_FORWARD_INIT;
    XPH_TRY(xph_trainer_forward(l->trainer, batch, l->part.states, &forward, error));
    host_job all = {job, &forward};
    xph_parallel(l->context, loss_of_stream, &all, l->each);
    add_rows(l, job->r, job->streams, own);
    add_rows(l, job->r, job->streams, sum);
    if (!job->learns) return exphil_trainer_abandon(l->trainer, error);
    return exphil_trainer_backward(l->trainer, l->part.dlogits, l->part.dvalues, xph_tally_loss(l, own),
                                   metrics, error);
}
