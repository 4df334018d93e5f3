/* The loss of a batch where its logits are (XPH_OP_POLICY_LOSS): what a chunk says to it goes to the device once, of a batch the
 * numbers of its streams go there and the sums of its rows come back. */
#include "learn/loss.h"

static const xph_backend *backend_of(const exphil_learner *l)
{
    return l->trainer->device->backend;
}

static xph_stream *stream_of(const exphil_learner *l)
{
    return xph_net_stream(l->trainer->feed.net);
}

static exphil_status failed(const exphil_learner *l, exphil_status status, exphil_error *error)
{
    return status < 0
               ? xph_fail_device(error, l->trainer->device, status, "learner: the device failed in the loss")
               : EXPHIL_OK;
}

/* ---- which, and memory ---------------------------------------------------------------------------------------------------- */

static xph_policy_loss_args args_of(const exphil_rollout *r, int32_t part, int64_t streams)
{
    return (xph_policy_loss_args){.part = part,
                                  .rows = streams * (part == XPH_POLICY_LOGS ? r->rows : r->time),
                                  .time = r->time,
                                  .stride = r->rows,
                                  .all = r->streams * r->time,
                                  .heads = r->policy.heads,
                                  .logits = r->policy.logits,
                                  .head = r->policy.head,
                                  .temperature = r->policy.temperature};
}

void xph_loss_choose(exphil_learner *l, const exphil_rollout *r)
{
    xph_policy_loss_args logs = args_of(r, XPH_POLICY_LOGS, r->streams),
                         loss = args_of(r, XPH_POLICY_LOSS, l->each);
    xph_op_info info = {0};
    xph_device *device = l->trainer->device;
    const xph_kernel *kernel = NULL;
    if (xph_choose_kernel(device, XPH_OP_POLICY_LOSS, &logs, &kernel) < 0 ||
        device->backend->query(device, XPH_OP_POLICY_LOSS, &loss, &info) < 0 || info.kernel != kernel)
        kernel = NULL;
    if (!kernel && !device->backend->host_memory)
        xph_log(l->context, EXPHIL_LOG_INFO,
                "learner: the device has no kernel for %lld logits, the host computes the loss",
                (long long)r->policy.logits);
    l->loss.kernel = kernel;
    l->loss.scratch_bytes = info.scratch_bytes;
}

static void cut_said(xph_loss_said *said, const exphil_learner *l, const exphil_rollout *r,
                     unsigned char *base)
{
    const int64_t rows = r->streams * r->time;
    xph_cutter c = {base, 0};
    said->advantage = xph_cut(&c, rows, 1, sizeof(double));
    said->target = xph_cut(&c, rows, 1, sizeof(double));
    said->log_probability = xph_cut(&c, rows, 1, sizeof(double));
    said->counts = xph_cut(&c, rows, 1, 1);
    said->streams = xph_cut(&c, l->each, 1, sizeof(int64_t));
    said->tally = xph_cut(&c, 1, 1, sizeof(xph_policy_tally));
    said->not_finite = xph_cut(&c, 1, 1, sizeof(uint32_t));
    said->memory = base;
    said->bytes = c.at;
}

static void cut_device(xph_loss_device *d, const exphil_learner *l, const exphil_rollout *r,
                       unsigned char *base)
{
    const int64_t rows = r->streams * r->time, taught = l->teacher ? rows : 0, logits = r->policy.logits;
    xph_cutter c = {base, 0};
    cut_said(&d->here, l, r, xph_cut(&c, 1, 1, d->host.bytes));
    d->played = xph_cut(&c, r->streams * r->rows, logits, sizeof(float));
    d->old = xph_cut(&c, rows, logits, sizeof(double));
    d->old_chances = xph_cut(&c, rows, logits, sizeof(double));
    d->teacher = xph_cut(&c, taught, logits, sizeof(double));
    d->teacher_chances = xph_cut(&c, taught, logits, sizeof(double));
    d->scratch = xph_cut(&c, 1, 1, d->scratch_bytes);
    d->memory = base;
    d->bytes = c.at;
}

exphil_status xph_loss_make(exphil_learner *l, const exphil_rollout *r, exphil_error *error)
{
    const xph_backend *backend = backend_of(l);
    xph_device *device = l->trainer->device;
    xph_loss_device *d = &l->loss;
    void *block = NULL;
    if (!d->kernel) return EXPHIL_OK;
    cut_said(&d->host, l, r, NULL);
    cut_device(d, l, r, NULL);
    exphil_status status = backend->host_alloc(device, d->host.bytes, &block);
    if (status < 0) return xph_no_device_memory(error, device, status, d->host.bytes);
    cut_said(&d->host, l, r, block);
    status = backend->alloc(device, d->bytes, &block);
    if (status < 0) {
        const size_t bytes = d->bytes;
        xph_loss_drop(l);
        return xph_no_device_memory(error, device, status, bytes);
    }
    cut_device(d, l, r, block);
    return EXPHIL_OK;
}

void xph_loss_drop(exphil_learner *l)
{
    const xph_backend *backend = backend_of(l);
    xph_loss_device *d = &l->loss;
    if (d->memory && l->trainer->feed.net) (void)backend->stream_wait(stream_of(l));
    if (d->memory && l->taught.net) (void)backend->stream_wait(xph_net_stream(l->taught.net));
    if (d->memory) backend->free(l->trainer->device, d->memory, d->bytes);
    if (d->host.memory) backend->host_free(l->trainer->device, d->host.memory, d->host.bytes);
    *d = (xph_loss_device){.kernel = NULL};
}

/* ---- a chunk -------------------------------------------------------------------------------------------------------------- */

static exphil_status take_logs(const exphil_learner *l, const exphil_rollout *r, xph_stream *stream,
                               const float *logits, double *logs, double *chances, uint32_t *not_finite)
{
    xph_policy_loss_args args = args_of(r, XPH_POLICY_LOGS, r->streams);
    args.y = logits;
    args.logs = logs;
    args.chances = chances;
    args.not_finite = not_finite;
    return backend_of(l)->run(stream, l->loss.kernel, &args);
}

static void stage_chunk(const exphil_learner *l, const exphil_rollout *r)
{
    const xph_chunk *c = &l->chunk;
    const xph_loss_said *host = &l->loss.host;
    const size_t rows = (size_t)(r->streams * r->time), each = (size_t)r->time * sizeof(double);
    memcpy(host->advantage, c->advantage, rows * sizeof(double));
    memcpy(host->target, c->target, rows * sizeof(double));
    memcpy(host->counts, c->counts, rows);
    for (int64_t b = 0; b < r->streams; b++)
        memcpy(host->log_probability + b * r->time, r->log_probability + b * r->rows, each);
}

static exphil_status send_chunk(const exphil_learner *l, const exphil_rollout *r)
{
    const xph_backend *backend = backend_of(l);
    const xph_loss_device *d = &l->loss;
    const size_t bytes = (size_t)((unsigned char *)d->host.streams - d->host.memory);
    const int64_t numbers = r->streams * r->rows * r->policy.logits;
    xph_stream *stream = stream_of(l);
    stage_chunk(l, r);
    XPH_TRY(backend->upload(stream, d->here.memory, d->host.memory, bytes));
    XPH_TRY(backend->upload(stream, d->played, r->logits, (size_t)numbers * sizeof(float)));
    XPH_TRY(take_logs(l, r, stream, d->played, d->old, d->old_chances, NULL));
    return backend->stream_wait(stream);
}

exphil_status xph_loss_chunk_on_device(exphil_learner *l, const exphil_rollout *r, exphil_error *error)
{
    return failed(l, send_chunk(l, r), error);
}

exphil_status xph_loss_teacher_on_device(exphil_learner *l, const exphil_rollout *r, bool *finite)
{
    const xph_backend *backend = backend_of(l);
    const xph_loss_device *d = &l->loss;
    xph_stream *stream = xph_net_stream(l->taught.net);
    XPH_TRY(backend->zero(stream, d->here.not_finite, sizeof *d->here.not_finite));
    XPH_TRY(take_logs(l, r, stream, xph_net_logits(l->taught.net), d->teacher, d->teacher_chances,
                      d->here.not_finite));
    XPH_TRY(backend->download(stream, d->host.not_finite, d->here.not_finite, sizeof *d->here.not_finite));
    XPH_TRY(backend->stream_wait(stream));
    *finite = !*d->host.not_finite;
    return EXPHIL_OK;
}

/* ---- a batch -------------------------------------------------------------------------------------------------------------- */

static exphil_status run_loss(const xph_loss_job *job, const xph_halves *halves)
{
    const exphil_learner *l = job->l;
    const xph_backend *backend = backend_of(l);
    const xph_loss_device *d = &l->loss;
    const size_t streams = (size_t)l->each * sizeof(int64_t);
    xph_policy_loss_args args = args_of(job->r, XPH_POLICY_LOSS, l->each);
    args.y = halves->logits;
    args.log_probability = d->here.log_probability;
    args.advantage = d->here.advantage;
    args.target = d->here.target;
    args.counts = d->here.counts;
    args.old = d->old;
    args.old_chances = d->old_chances;
    args.teacher = l->teacher ? d->teacher : NULL;
    args.teacher_chances = l->teacher ? d->teacher_chances : NULL;
    args.stream = d->here.streams;
    args.actions = halves->actions;
    args.values = halves->values;
    args.terms = l->terms;
    args.scale = job->scale;
    args.imitation = job->imitation;
    args.value = l->config.value;
    args.dlogits = job->learns ? halves->dlogits : NULL;
    args.dvalues = job->learns ? halves->dvalues : NULL;
    args.tally = d->here.tally;
    args.scratch = d->scratch;
    memcpy(d->host.streams, job->streams, streams);
    XPH_TRY(backend->upload(halves->stream, d->here.streams, d->host.streams, streams));
    XPH_TRY(backend->run(halves->stream, d->kernel, &args));
    XPH_TRY(backend->download(halves->stream, d->host.tally, d->here.tally, sizeof *d->here.tally));
    return backend->stream_wait(halves->stream);
}

static void take_tally(const xph_policy_tally *t, xph_tally *own)
{
    *own = (xph_tally){.rows = t->rows,
                       .loss = t->loss,
                       .miss = t->miss,
                       .ratio = t->ratio,
                       .clipped = t->clipped,
                       .kl_old = t->kl_old,
                       .to_teacher = t->to_teacher,
                       .from_teacher = t->from_teacher,
                       .entropy = t->entropy,
                       .imitated = t->imitated,
                       .nll = t->nll,
                       .apart = t->apart};
}

static void add_tally(const xph_tally *own, xph_tally *sum)
{
    sum->rows += own->rows;
    sum->loss += own->loss;
    sum->miss += own->miss;
    sum->ratio += own->ratio;
    sum->clipped += own->clipped;
    sum->kl_old += own->kl_old;
    sum->to_teacher += own->to_teacher;
    sum->from_teacher += own->from_teacher;
    sum->entropy += own->entropy;
    sum->imitated += own->imitated;
    sum->nll += own->nll;
    if (own->apart > sum->apart) sum->apart = own->apart;
}

exphil_status xph_loss_on_device(const xph_loss_job *job, const exphil_batch *batch, xph_tally *own,
                                 xph_tally *sum, exphil_metrics *metrics, exphil_error *error)
{
    exphil_learner *l = job->l;
    const xph_policy_tally *found = l->loss.host.tally;
    xph_halves halves;
    XPH_TRY(xph_trainer_forward_here(l->trainer, batch, l->part.states, &halves, error));
    const exphil_status status = failed(l, run_loss(job, &halves), error);
    if (status < 0) {
        (void)backend_of(l)->stream_wait(halves.stream); /* what was enqueued reads memory of the host */
        /* what abandon says beside the status is no more than that */
        const exphil_status left = exphil_trainer_abandon(l->trainer, NULL);
        return left == EXPHIL_E_DEVICE ? left : status;
    }
    take_tally(found, own);
    add_tally(own, sum);
    if (!job->learns) return exphil_trainer_abandon(l->trainer, error);
    return xph_trainer_backward_here(l->trainer, found->bad_logit, found->bad_value, xph_tally_loss(l, own),
                                     metrics, error);
}
