/* Imitation behind a live game. Frames are gathered to pieces; after each piece some updates are made of all that there is. Which
 * updates these are depends on the frames alone: not on when they came, nor on how many of them wait. */
#include "learn/live.h"

#include "data/data.h"

enum { LEAD_FRAMES = 60 }; /* rows that lead up to a piece, where the policy has a memory */

/* ---- pieces ---------------------------------------------------------------------------------------------------- */

/* Rows of the piece before that are shown again: those whose targets are yet to come, and what past actions and memory need to
 * be as they were in play. */
static int64_t overlap_of(const exphil_live *live)
{
    const xph_model_shape *s = live->shape;
    int64_t lead = s->mode == EXPHIL_MODE_WINDOW ? s->window - 1 : s->state ? LEAD_FRAMES : 0;
    return s->delay + (lead > s->slots ? lead : s->slots);
}

static void cut_all(exphil_live *live, xph_cutter *c)
{
    const xph_model_shape *s = live->shape;
    xph_piece *p = &live->piece;
    p->floats = xph_cut(c, p->most, s->floats, sizeof(float));
    p->ids = xph_cut(c, p->most, s->ids, sizeof(int32_t));
    p->actions = xph_cut(c, p->most, s->heads, sizeof(int32_t));
    p->person = xph_cut(c, p->most, 1, 1);
    live->weight = xph_cut(c, p->most, 1, sizeof(float));
    live->mask = xph_cut(c, live->sampling.batch * live->sampling.time, 1, sizeof(float));
    live->reset = xph_cut(c, live->sampling.batch * live->sampling.time, 1, 1);
}

static void append(exphil_live *live, const unsigned char *entry)
{
    const xph_model_shape *s = live->shape;
    xph_piece *p = &live->piece;
    xph_live_head head;
    memcpy(&head, entry, sizeof head);
    entry += sizeof head;
    memcpy(p->floats + p->rows * s->floats, entry, (size_t)s->floats * sizeof(float));
    entry += (size_t)s->floats * sizeof(float);
    memcpy(p->ids + p->rows * s->ids, entry, (size_t)s->ids * sizeof(int32_t));
    entry += (size_t)s->ids * sizeof(int32_t);
    memcpy(p->actions + p->rows * s->heads, entry, (size_t)s->heads * sizeof(int32_t));
    p->person[p->rows] = head.person;
    p->rows++;
}

/* Rows that the next piece begins with. */
static void keep_last(exphil_live *live, int64_t rows)
{
    const xph_model_shape *s = live->shape;
    xph_piece *p = &live->piece;
    const int64_t from = p->rows - rows;
    memmove(p->floats, p->floats + from * s->floats, (size_t)(rows * s->floats) * sizeof(float));
    memmove(p->ids, p->ids + from * s->ids, (size_t)(rows * s->ids) * sizeof(int32_t));
    memmove(p->actions, p->actions + from * s->heads, (size_t)(rows * s->heads) * sizeof(int32_t));
    memmove(p->person, p->person + from, (size_t)rows);
    p->rows = p->used = rows;
}

/* By the action that acts d frames later, which is a row's target; those of the piece before count no more. Returns the sum. */
static double weigh(const exphil_live *live, float *weight, int64_t *person)
{
    const xph_piece *p = &live->piece;
    const int64_t delay = live->shape->delay;
    double sum = 0.0;
    for (int64_t i = 0; i < p->rows; i++) {
        const int64_t target = i + delay;
        const bool counts = target >= p->used && target < p->rows;
        weight[i] = !counts ? 0.0f : p->person[target] ? 1.0f : (float)live->config.approved;
        *person += counts && p->person[target];
        sum += (double)weight[i];
    }
    return sum;
}

/* ---- updates ---------------------------------------------------------------------------------------------------- */

/* What a row of a piece weighs in a batch, so that all of them together have their share. */
static double factor_of(const exphil_live *live)
{
    const xph_pieces *all = &live->pieces;
    if (all->base == 0 || all->sum == 0.0) return 1.0;
    double factor = live->config.share / (1.0 - live->config.share) * (double)all->base / all->sum;
    return factor < 1e-3 ? 1e-3 : factor > 1e3 ? 1e3 : factor;
}

/* The batch with the weights of pieces; false: nothing in it counts. first: what was carried is not of these lanes. */
static bool take_batch(exphil_live *live, exphil_batch *batch, double factor, bool first)
{
    const int64_t rows = batch->batch * batch->time;
    double sum = 0.0;
    for (int64_t i = 0; i < rows; i++) {
        const int64_t at = batch->rows[i] - live->pieces.base;
        live->mask[i] =
            at < 0 ? batch->mask[i] : (float)((double)(batch->mask[i] * live->pieces.weight[at]) * factor);
        live->reset[i] = batch->reset[i] || (first && i % batch->time == 0);
        sum += (double)live->mask[i];
    }
    batch->mask = live->mask;
    batch->reset = live->reset;
    return sum > 0.0;
}

static exphil_status next_batch(exphil_prefetcher *prefetcher, exphil_batch *batch, exphil_error *error)
{
    exphil_status status = exphil_prefetcher_next(prefetcher, batch, error);
    return status == EXPHIL_END ? exphil_prefetcher_next(prefetcher, batch, error) : status;
}

typedef struct updates {
    int64_t done, skipped;
    double loss; /* sum */
} updates;

/* One update, or a batch in which nothing counts: counts tells. */
static exphil_status make_update(exphil_live *live, exphil_prefetcher *prefetcher, double factor,
                                 bool *counts, updates *made, exphil_error *error)
{
    exphil_batch batch = EXPHIL_BATCH_INIT;
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    XPH_TRY(next_batch(prefetcher, &batch, error));
    *counts = take_batch(live, &batch, factor, !*counts);
    if (!*counts) return EXPHIL_OK;
    exphil_status status = exphil_trainer_step_batch(live->trainer, &batch, &metrics, error);
    made->skipped += status == EXPHIL_E_NUMERIC;
    if (status == EXPHIL_E_NUMERIC) return EXPHIL_OK;
    XPH_TRY(status);
    made->loss += metrics.loss;
    made->done++;
    return EXPHIL_OK;
}

/* Ends early where an epoch passes in which nothing counts. */
static exphil_status make_updates(exphil_live *live, exphil_prefetcher *prefetcher, updates *made,
                                  exphil_error *error)
{
    const double factor = factor_of(live);
    exphil_prefetcher_info info = EXPHIL_PREFETCHER_INFO_INIT;
    int64_t idle = 0, tried = 0;
    bool counts = false;
    XPH_TRY(exphil_prefetcher_query(prefetcher, &info, error));
    while (tried < live->config.updates && idle <= info.batches_per_epoch) {
        XPH_TRY(make_update(live, prefetcher, factor, &counts, made, error));
        tried += counts;
        idle = counts ? 0 : idle + 1;
    }
    return EXPHIL_OK;
}

static exphil_status learn_all(exphil_live *live, exphil_error *error)
{
    exphil_prefetcher *prefetcher = NULL;
    exphil_sampling sampling = live->sampling;
    updates made = {0};
    sampling.seed = xph_mix(live->config.seed + (uint64_t)live->pieces.count);
    XPH_TRY(exphil_prefetcher_create(live->pieces.dataset, &sampling, &prefetcher, error));
    exphil_status status = make_updates(live, prefetcher, &made, error);
    exphil_prefetcher_destroy(prefetcher);
    XPH_TRY(status);
    XPH_TRY(xph_live_publish(live, error));
    xph_mutex_lock(live->lock);
    live->told.pieces = live->pieces.count;
    live->told.learnt = live->pieces.person;
    live->told.updates += made.done;
    live->told.skipped += made.skipped;
    if (made.done) live->told.loss = made.loss / (double)made.done;
    xph_mutex_unlock(live->lock);
    return EXPHIL_OK;
}

/* A piece is learnt from if there is anything to learn in it. */
static exphil_status end_piece(exphil_live *live, exphil_error *error)
{
    xph_piece *p = &live->piece;
    int64_t person = 0;
    if (weigh(live, live->weight, &person) == 0.0) return EXPHIL_OK;
    XPH_TRY(xph_pieces_add(&live->pieces, live->learning, p->rows, p->floats, p->ids, p->actions,
                           live->weight, error));
    live->pieces.person += person;
    return learn_all(live, error);
}

static void begin_piece(exphil_live *live)
{
    live->piece.rows = live->piece.used = 0;
}

exphil_status xph_live_imitate_rest(exphil_live *live, exphil_error *error)
{
    exphil_status status = live->piece.rows > live->piece.used ? end_piece(live, error) : EXPHIL_OK;
    begin_piece(live);
    return status;
}

exphil_status xph_live_imitate(exphil_live *live, bool *done, exphil_error *error)
{
    xph_piece *p = &live->piece;
    for (const unsigned char *entry; (entry = xph_ring_front(&live->ring));) {
        xph_live_head head;
        memcpy(&head, entry, sizeof head);
        *done = true;
        if (head.starts && p->rows) return xph_live_imitate_rest(live, error);
        append(live, entry);
        xph_ring_done(&live->ring);
        if (p->rows - p->used < live->config.piece_frames) continue;
        exphil_status status = end_piece(live, error);
        keep_last(live, p->rows < p->overlap ? p->rows : p->overlap);
        return status;
    }
    *done = false;
    return EXPHIL_OK;
}

/* ---- making and freeing ------------------------------------------------------------------------------------------ */

static exphil_status take_sampling(exphil_live *live, const exphil_sampling *given, exphil_error *error)
{
    exphil_sampling *s = &live->sampling;
    *s = (exphil_sampling)EXPHIL_SAMPLING_INIT;
    XPH_TRY(given ? XPH_TAKE(exphil_sampling, s, given, error)
                  : exphil_model_sampling(live->start, s, error));
    static const xph_told none;
    if (s->condition_count || s->delay_count)
        return xph_fail(error, EXPHIL_E_UNSUPPORTED,
                        "live config: sampling has conditions or several delays");
    if (s->seed)
        return xph_fail(error, EXPHIL_E_INVALID,
                        "live config: sampling.seed is %llu: seed is the live config's",
                        (unsigned long long)s->seed);
    if (s->batch == 0) s->batch = 16;
    if (s->time == 0) s->time = 60;
    if (s->batch < 0 || s->batch > 4096 || s->time < 0 || s->time > 65536)
        return xph_fail(error, EXPHIL_E_INVALID, "live config: sampling of %lld x %lld is out of range",
                        (long long)s->batch, (long long)s->time);
    return xph_trainer_check_sampling(live->start, s, &none, error);
}

static exphil_status check_dataset(const exphil_live *live, const exphil_dataset *dataset,
                                   exphil_error *error)
{
    if (!dataset || xph_dataset_spec_hash(dataset) == live->shape->spec_hash) return EXPHIL_OK;
    const exphil_spec *other = xph_dataset_spec_of(dataset);
    return xph_fail(error, EXPHIL_E_MISMATCH,
                    "live config: dataset has rows of %s/%s, the model is for %s/%s", other->layout,
                    other->codec, live->spec->layout, live->spec->codec);
}

/* With data a prefetcher can be made at once, which looks at all of sampling. */
static exphil_status try_sampling(exphil_live *live, exphil_error *error)
{
    exphil_prefetcher *prefetcher = NULL;
    if (live->pieces.base == 0) return EXPHIL_OK;
    XPH_TRY(exphil_prefetcher_create(live->pieces.dataset, &live->sampling, &prefetcher, error));
    exphil_prefetcher_destroy(prefetcher);
    return EXPHIL_OK;
}

exphil_status xph_live_imitate_make(exphil_live *live, const exphil_live_config *given, exphil_error *error)
{
    xph_cutter c = {NULL, 0};
    XPH_TRY(check_dataset(live, given->dataset, error));
    XPH_TRY(take_sampling(live, given->sampling, error));
    live->piece.overlap = overlap_of(live);
    live->piece.most = live->piece.overlap + live->config.piece_frames;
    cut_all(live, &c);
    live->thread_bytes = c.at;
    live->thread_memory = xph_calloc(live->learning, 1, c.at);
    if (!live->thread_memory) return xph_no_memory(c.at, error);
    c = (xph_cutter){live->thread_memory, 0};
    cut_all(live, &c);
    if (given->dataset) XPH_TRY(xph_dataset_snapshot(given->dataset, &live->given, error));
    XPH_TRY(xph_pieces_begin(live->learning, live->given, live->spec, &live->pieces, error));
    return try_sampling(live, error);
}

void xph_live_imitate_end(exphil_live *live)
{
    if (!live->learning) return;
    xph_pieces_free(&live->pieces, live->learning);
    if (live->given) xph_dataset_release(live->given);
    xph_free(live->learning, live->thread_memory, live->thread_bytes);
}
