/* Improvement by what was played: a chunk's advantages, then some passes over its streams in batches, each of them one
 * update. Sums have an order that shapes alone decide, whatever the number of threads: on a GPU that of policy_loss.cu, else
 * that of streams and frames. */
#include "learn/loss.h"
#include "learn/returns.h"

/* ---- a chunk -------------------------------------------------------------------------------------------------------------- */

/* Zero in the place of the state that the teacher's last pass left. */
static exphil_status forget(const exphil_learner *l)
{
    const xph_feed *taught = &l->taught;
    if (!taught->state_bytes) return EXPHIL_OK;
    return taught->device->backend->zero(xph_net_stream(taught->net), taught->state[1], taught->state_bytes);
}

/* The teacher over all rows that were played, once: its own state goes on from chunk to chunk. */
static exphil_status teach(exphil_learner *l, const exphil_rollout *r, exphil_error *error)
{
    static const xph_losses plain;
    exphil_batch batch = EXPHIL_BATCH_INIT;
    double sums[EXPHIL_HEADS_MAX];
    batch.batch = r->streams;
    batch.time = r->rows;
    batch.floats = r->floats;
    batch.ids = r->ids;
    batch.past = r->past;
    batch.actions = r->actions;
    batch.mask = l->chunk.ones;
    batch.reset = r->reset;
    exphil_status status =
        xph_feed_measure(&l->taught, xph_model_weights(l->teacher), l->teacher_packed, &plain, &batch, sums);
    bool finite = true;
    if (status >= 0 && l->loss.kernel) status = xph_loss_teacher_on_device(l, r, &finite);
    if (status >= 0 && !l->loss.kernel) {
        status = xph_feed_logits(&l->taught, l->narrow, l->wide);
        finite = xph_find_not_finite(l->narrow, r->streams * r->rows * l->shape->logits) < 0;
    }
    if (status < 0)
        return xph_fail_device(error, l->taught.device, status, "learner: the device failed at the teacher");
    if (finite) return EXPHIL_OK;
    (void)forget(l); /* of all streams: it may hold what is not finite */
    return xph_fail(error, EXPHIL_E_NUMERIC, "learner: the teacher's logits are not finite");
}

static exphil_status prepare(exphil_learner *l, const exphil_rollout *r, exphil_error *error)
{
    if (l->teacher) XPH_TRY(teach(l, r, error));
    xph_learner_value_chunk(l, r);
    if (l->loss.kernel)
        XPH_TRY(xph_loss_chunk_on_device(l, r, error));
    else
        xph_loss_chunk_by_host(l, r);
    bool value_only = l->chunks < l->config.value_only;
    l->terms = (xph_policy_terms){.clip = l->config.clip};
    l->imitation = 0.0;
    if (value_only) return EXPHIL_OK;
    l->imitation = l->config.imitation;
    l->terms = (xph_policy_terms){.surrogate = l->config.surrogate,
                                  .clip = l->config.clip,
                                  .to_old = l->config.to_old,
                                  .to_teacher = l->config.to_teacher,
                                  .from_teacher = l->config.from_teacher,
                                  .entropy = l->config.entropy};
    return EXPHIL_OK;
}

/* ---- a batch -------------------------------------------------------------------------------------------------------------- */

static void gather_stream(exphil_learner *l, const exphil_rollout *r, int64_t i, int64_t b)
{
    const xph_model_shape *s = l->shape;
    const size_t T = (size_t)r->time, state = (size_t)s->state * s->real_bytes;
    const int64_t from = b * r->rows, to = i * r->time, past = s->slots * s->heads;
    xph_part *p = &l->part;
    memcpy(p->floats + to * s->floats, r->floats + from * s->floats, T * (size_t)s->floats * sizeof(float));
    memcpy(p->ids + to * s->ids, r->ids + from * s->ids, T * (size_t)s->ids * sizeof(int32_t));
    memcpy(p->past + to * past, r->past + from * past, T * (size_t)past * sizeof(int32_t));
    memcpy(p->actions + to * s->heads, r->actions + from * s->heads, T * (size_t)s->heads * sizeof(int32_t));
    memcpy(p->reset + to, r->reset + from, T);
    for (int64_t t = 0; t < r->time; t++) {
        const uint8_t what = l->chunk.counts[b * r->time + t];
        const bool learnt = what == XPH_ROW_PLAYED || (what == XPH_ROW_IMITATED && l->imitation > 0.0);
        p->mask[to + t] = learnt ? 1.0f : 0.0f;
    }
    if (state) memcpy(p->states + (size_t)i * state, r->state + (size_t)b * state, state);
}

static exphil_batch batch_of(const exphil_learner *l, int64_t epoch)
{
    exphil_batch batch = EXPHIL_BATCH_INIT;
    batch.batch = l->each;
    batch.time = l->time;
    batch.epoch = epoch;
    batch.floats = l->part.floats;
    batch.ids = l->part.ids;
    batch.past = l->part.past;
    batch.actions = l->part.actions;
    batch.mask = l->part.mask;
    batch.reset = l->part.reset;
    return batch;
}

static int64_t count_rows(const exphil_learner *l, const exphil_rollout *r, const int64_t *streams,
                          uint8_t what)
{
    int64_t rows = 0;
    for (int64_t i = 0; i < l->each; i++)
        for (int64_t t = 0; t < r->time; t++) rows += l->chunk.counts[streams[i] * r->time + t] == what;
    return rows;
}

static exphil_status run_batch(exphil_learner *l, const exphil_rollout *r, const int64_t *streams,
                               int64_t epoch, bool learns, xph_tally *sum, exphil_error *error)
{
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    xph_tally own = {0};
    const int64_t rows = count_rows(l, r, streams, XPH_ROW_PLAYED),
                  imitated = count_rows(l, r, streams, XPH_ROW_IMITATED);
    if (!rows && !(imitated && l->imitation > 0.0)) return EXPHIL_OK;
    for (int64_t i = 0; i < l->each; i++) gather_stream(l, r, i, streams[i]);
    const exphil_batch batch = batch_of(l, epoch);
    const xph_loss_job job = {.l = l,
                              .r = r,
                              .streams = streams,
                              .scale = xph_mean(1.0, (double)rows),
                              .imitation = xph_mean(l->imitation, (double)imitated),
                              .learns = learns};
    XPH_TRY(
        (l->loss.kernel ? xph_loss_on_device : xph_loss_by_host)(&job, &batch, &own, sum, &metrics, error));
    if (!learns) return EXPHIL_OK;
    if (sum->batches == 0.0) sum->first_apart = own.apart;
    sum->norm += metrics.gradient_norm;
    sum->batches += 1.0;
    l->updates++;
    return EXPHIL_OK;
}

static void shuffle(exphil_learner *l, int64_t epoch)
{
    xph_rng rng = {.seed = l->config.seed,
                   .stream = XPH_RNG_LEARN | (uint64_t)(l->chunks * l->config.epochs + epoch) << 8};
    int64_t *order = l->part.order;
    for (int64_t i = 0; i < l->streams; i++) order[i] = i;
    for (int64_t i = l->streams - 1; i > 0; i--) {
        int64_t k = (int64_t)xph_rng_below(&rng, (uint64_t)i + 1), kept = order[i];
        order[i] = order[k];
        order[k] = kept;
    }
}

/* One pass over all streams. */
static exphil_status run_epoch(exphil_learner *l, const exphil_rollout *r, int64_t epoch, bool learns,
                               xph_tally *sum, exphil_error *error)
{
    *sum = (xph_tally){0};
    shuffle(l, epoch);
    for (int64_t first = 0; first < l->streams; first += l->each) {
        if (xph_cancelled(l->context))
            return xph_fail(error, EXPHIL_E_CANCELLED, "learning cancelled by the host");
        XPH_TRY(run_batch(l, r, l->part.order + first, epoch, learns, sum, error));
    }
    return EXPHIL_OK;
}

/* ---- metrics ------------------------------------------------------------------------------------------------------------- */

static void note_episodes(const exphil_rollout *r, exphil_learner_metrics *m)
{
    double sum = 0.0, frames = 0.0, reward = 0.0;
    for (int64_t b = 0; b < r->streams; b++)
        for (int64_t f = 0; f < r->rows; f++) {
            int64_t row = b * r->rows + f;
            reward += (double)r->reward[row];
            if (r->end[row] == EXPHIL_GOES_ON) continue;
            m->episodes++;
            sum += r->ended_sum[row];
            frames += (double)r->ended_frames[row];
        }
    m->reward = reward / (double)(r->streams * r->rows);
    m->episode_return = m->episodes ? sum / (double)m->episodes : 0.0;
    m->episode_frames = m->episodes ? frames / (double)m->episodes : 0.0;
}

static double unexplained(const exphil_learner *l, const exphil_rollout *r)
{
    const xph_chunk *c = &l->chunk;
    double rows = 0.0, sum = 0.0, square = 0.0, miss = 0.0;
    for (int64_t i = 0; i < r->streams * r->time; i++) {
        if (c->counts[i] != XPH_ROW_PLAYED) continue;
        rows += 1.0;
        sum += c->target[i];
    }
    const double middle = xph_mean(sum, rows);
    for (int64_t b = 0; b < r->streams; b++)
        for (int64_t t = 0; t < r->time; t++) {
            int64_t i = b * r->time + t;
            if (c->counts[i] != XPH_ROW_PLAYED) continue;
            double apart = c->target[i] - (double)r->value[b * r->rows + t];
            miss += apart * apart;
            square += (c->target[i] - middle) * (c->target[i] - middle);
        }
    return rows > 0.0 ? xph_unexplained(miss, square, rows * middle * middle) : 0.0;
}

static void note_tally(const exphil_learner *l, const xph_tally *sum, exphil_learner_metrics *m)
{
    const double rows = sum->rows;
    m->rows = (int64_t)rows;
    m->imitated = (int64_t)sum->imitated;
    m->loss = xph_tally_loss(l, sum);
    m->value_loss = xph_mean(sum->miss, rows);
    m->ratio = xph_mean(sum->ratio, rows);
    m->clipped = xph_mean(sum->clipped, rows);
    m->kl_old = xph_mean(sum->kl_old, rows);
    m->kl_to_teacher = xph_mean(sum->to_teacher, rows);
    m->kl_from_teacher = xph_mean(sum->from_teacher, rows);
    m->entropy = xph_mean(sum->entropy, rows);
    m->nll = xph_mean(sum->nll, sum->imitated);
    if (sum->batches > 0.0) m->gradient_norm = sum->norm / sum->batches;
}

/* ---- the update ---------------------------------------------------------------------------------------------------------- */

static exphil_status make_mark(exphil_learner *l, exphil_error *error)
{
    if (!l->chunk.mark) {
        size_t bytes = xph_mark_bytes(l->trainer);
        l->chunk.mark = xph_alloc(l->context, bytes);
        if (!l->chunk.mark) return xph_no_memory(bytes, error);
        l->chunk.mark_bytes = bytes;
    }
    XPH_TRY(xph_trainer_shape(l->trainer, l->each, l->time, error));
    return xph_trainer_mark(l->trainer, l->chunk.mark, error);
}

/* What the whole chunk came to: if it is too far from what played it, its updates are taken back. */
static exphil_status settle(exphil_learner *l, const exphil_rollout *r, exphil_learner_metrics *m,
                            exphil_error *error)
{
    xph_tally whole;
    if (l->config.most_kl >= XPH_KL_NEVER) return EXPHIL_OK;
    XPH_TRY(run_epoch(l, r, l->config.epochs, false, &whole, error));
    m->kl_old = xph_mean(whole.kl_old, whole.rows);
    if (m->kl_old <= l->config.most_kl) return EXPHIL_OK;
    m->taken_back = 1;
    return xph_trainer_return(l->trainer, l->chunk.mark, error);
}

static exphil_status learn(exphil_learner *l, const exphil_rollout *r, exphil_learner_metrics *m,
                           exphil_error *error)
{
    xph_tally sum = {0};
    XPH_TRY(xph_learner_shape(l, r, error));
    XPH_TRY(make_mark(l, error));
    XPH_TRY(prepare(l, r, error));
    note_episodes(r, m);
    m->unexplained = unexplained(l, r);
    for (int64_t epoch = 0; epoch < l->config.epochs; epoch++) {
        XPH_TRY(run_epoch(l, r, epoch, true, &sum, error));
        if (epoch == 0) m->recomputed = sum.first_apart;
        note_tally(l, &sum, m);
    }
    return settle(l, r, m, error);
}

exphil_status xph_learner_check_rollout(const exphil_learner *l, const exphil_rollout *r, exphil_error *error)
{
    if (r->context != l->context)
        return xph_fail(error, EXPHIL_E_MISMATCH, "rollout and learner are of different contexts");
    if (xph_model_config_hash(xph_play_weights_now(r->session)->model) !=
        xph_model_config_hash(l->trainer->model))
        return xph_fail(error, EXPHIL_E_MISMATCH,
                        "the rollout was played by a model of another configuration");
    return EXPHIL_OK;
}

exphil_status xph_learner_check_bound(const exphil_learner *l, const exphil_rollout *r, exphil_error *error)
{
    XPH_TRY(xph_learner_check_rollout(l, r, error));
    if (!l->teacher || !l->with || (l->with == r && r->taught_by == l)) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_STATE, "learner: its teacher follows another rollout%s",
                    l->with == r ? ", or another learner had a chunk of this one" : "");
}

void xph_learner_bind(exphil_learner *l, exphil_rollout *r)
{
    l->with = r;
    r->taught_by = l;
}

static exphil_status trainer_hash(const exphil_learner *l, uint64_t *hash, exphil_error *error)
{
    exphil_model *model = NULL;
    XPH_TRY(exphil_trainer_model(l->trainer, EXPHIL_WEIGHTS, &model, error));
    exphil_status status = xph_model_weights_hash(model, hash, error);
    exphil_model_destroy(model);
    return status;
}

/* Blocks say for themselves what played them; the session has to have the weights that learn in either case. */
static exphil_status check_played(const exphil_learner *l, const exphil_rollout *r, exphil_error *error)
{
    const uint64_t played = xph_play_weights_now(r->session)->hash;
    uint64_t own = 0;
    XPH_TRY(trainer_hash(l, &own, error));
    if (xph_hash_equal(own, played)) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_MISMATCH, "the rollout plays weights %016llx, the trainer has %016llx",
                    (unsigned long long)played, (unsigned long long)own);
}

/* What failed halfway never was. */
static exphil_status take_back(exphil_learner *l, int64_t updates, exphil_status status)
{
    if (l->updates == updates || status == EXPHIL_E_DEVICE) return status;
    if (xph_trainer_return(l->trainer, l->chunk.mark, NULL) >= 0) l->updates = updates;
    return status;
}

exphil_status xph_learner_adopt(const exphil_learner *l, exphil_rollout *r, exphil_error *error)
{
    exphil_model *model = NULL;
    XPH_TRY(exphil_trainer_model(l->trainer, EXPHIL_WEIGHTS, &model, error));
    exphil_status status = xph_rollout_adopt(r, model, error);
    exphil_model_destroy(model);
    return status;
}

static exphil_status update(exphil_learner *l, exphil_rollout *r, exphil_learner_metrics *m,
                            exphil_error *error)
{
    XPH_TRY(xph_learner_check_bound(l, r, error));
    XPH_TRY(xph_rollout_check_full(r, error));
    XPH_TRY(check_played(l, r, error));
    XPH_TRY(xph_rollout_take_overrides(r, error));
    const int64_t updates = l->updates;
    xph_parallel_hold(l->context);
    exphil_status status = learn(l, r, m, error);
    xph_parallel_release(l->context);
    if (status < 0) status = take_back(l, updates, status);
    if (status < 0 && status != EXPHIL_E_NUMERIC) return status;
    /* What a refused chunk was played by is what the trainer has again. */
    exphil_status adopted = status < 0 ? EXPHIL_OK : xph_learner_adopt(l, r, error);
    if (adopted < 0) return take_back(l, updates, adopted);
    if (l->taught.net && xph_feed_swap(&l->taught) < 0)
        return xph_fail(error, EXPHIL_E_DEVICE, "learner: the device failed at the teacher");
    if (m->taken_back) l->updates = updates;
    l->chunks++;
    m->chunks = l->chunks;
    m->updates = l->updates;
    xph_learner_bind(l, r);
    xph_rollout_next(r);
    return status;
}

exphil_status exphil_learner_update(exphil_learner *learner, exphil_rollout *rollout,
                                    exphil_learner_metrics *metrics, exphil_error *error)
{
    XPH_OWN_FPU;
    exphil_learner_metrics known = EXPHIL_LEARNER_METRICS_INIT;
    if (!learner || !rollout)
        return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL", learner ? "rollout" : "learner");
    XPH_TRY(xph_context_check(learner->context, error));
    XPH_TRY(XPH_CHECK_OUTPUT(exphil_learner_metrics, metrics, error));
    if (!xph_busy_enter(&learner->busy)) return xph_busy_error("learner", error);
    exphil_status status = xph_busy_enter(&rollout->busy) ? EXPHIL_OK : xph_busy_error("rollout", error);
    if (status >= 0) {
        status = update(learner, rollout, &known, error);
        xph_busy_leave(&rollout->busy);
    }
    xph_busy_leave(&learner->busy);
    xph_log_flush(learner->context);
    if (status < 0 || !metrics) return status;
    return XPH_GIVE(exphil_learner_metrics, metrics, &known, error);
}
