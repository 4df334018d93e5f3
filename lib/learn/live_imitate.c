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

static void cut_batch(exphil_live *live, xph_cutter *c)
{
    const xph_model_shape *s = live->shape;
    xph_live_batch *b = &live->batch;
    const int64_t rows = b->lanes * b->time;
    b->floats = xph_cut(c, rows, s->floats, sizeof(float));
    b->ids = xph_cut(c, rows, s->ids, sizeof(int32_t));
    b->past = xph_cut(c, rows, s->slots * s->heads, sizeof(int32_t));
    b->actions = xph_cut(c, rows, s->heads, sizeof(int32_t));
    b->mask = xph_cut(c, rows, 1, sizeof(float));
    b->reset = xph_cut(c, rows, 1, 1);
    b->dropped = xph_cut(c, rows, 1, 1);
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
    cut_batch(live, c);
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

/* ---- batches ---------------------------------------------------------------------------------------------------- */

static exphil_status next_batch(exphil_prefetcher *prefetcher, exphil_batch *batch, exphil_error *error)
{
    exphil_status status = exphil_prefetcher_next(prefetcher, batch, error);
    return status == EXPHIL_END ? exphil_prefetcher_next(prefetcher, batch, error) : status;
}

static void put_rows(void *to, const void *from, int64_t at, int64_t rows, int64_t width, size_t element)
{
    const size_t each = (size_t)width * element;
    if (each) memcpy((unsigned char *)to + (size_t)at * each, from, (size_t)rows * each);
}

/* Lanes [first, ...) of the batch that is put together. fresh: what is carried there is of other lanes. */
static void put_lanes(exphil_live *live, int64_t first, const exphil_batch *batch, bool fresh)
{
    const xph_model_shape *s = live->shape;
    const xph_live_batch *b = &live->batch;
    const int64_t at = first * b->time, rows = batch->batch * b->time;
    put_rows(b->floats, batch->floats, at, rows, s->floats, sizeof(float));
    put_rows(b->ids, batch->ids, at, rows, s->ids, sizeof(int32_t));
    put_rows(b->past, batch->past, at, rows, s->slots * s->heads, sizeof(int32_t));
    put_rows(b->actions, batch->actions, at, rows, s->heads, sizeof(int32_t));
    put_rows(b->mask, batch->mask, at, rows, 1, sizeof(float));
    put_rows(b->reset, batch->reset, at, rows, 1, 1);
    if (batch->dropped)
        put_rows(b->dropped, batch->dropped, at, rows, 1, 1);
    else
        memset(b->dropped + at, 0, (size_t)rows);
    for (int64_t lane = 0; fresh && lane < batch->batch; lane++) b->reset[at + lane * b->time] = 1;
}

static double sum_of(const float *mask, int64_t first, int64_t end)
{
    double sum = 0.0;
    for (int64_t i = first; i < end; i++) sum += (double)mask[i];
    return sum;
}

/* Lanes of pieces, with the weights of their rows; returns the sum of these. */
static double put_pieces(exphil_live *live, const exphil_batch *batch, bool fresh)
{
    const xph_live_batch *b = &live->batch;
    const int64_t at = b->given * b->time, rows = batch->batch * b->time;
    put_lanes(live, b->given, batch, fresh);
    for (int64_t i = 0; i < rows; i++)
        if (batch->rows[i] >= 0) b->mask[at + i] *= live->pieces.weight[batch->rows[i]];
    return sum_of(b->mask, at, at + rows);
}

/* Lanes of the host's rows; then those of pieces, whose weights sum to `own`, have their share of the loss. */
static exphil_status put_given(exphil_live *live, double own, exphil_error *error)
{
    const xph_live_batch *b = &live->batch;
    xph_live_data *data = &live->data;
    exphil_batch batch = EXPHIL_BATCH_INIT;
    if (!data->prefetcher) return EXPHIL_OK;
    XPH_TRY(next_batch(data->prefetcher, &batch, error));
    put_lanes(live, 0, &batch, data->fresh || batch.index == 0);
    *data = (xph_live_data){data->dataset, data->prefetcher, batch.epoch, batch.index + 1, false};
    const double sum = sum_of(b->mask, 0, b->given * b->time);
    const double factor = sum > 0.0 ? live->config.share / (1.0 - live->config.share) * sum / own : 1.0;
    for (int64_t i = b->given * b->time; i < b->lanes * b->time; i++)
        b->mask[i] = (float)((double)b->mask[i] * factor);
    return EXPHIL_OK;
}

static exphil_batch whole_batch(const exphil_live *live)
{
    const xph_live_batch *b = &live->batch;
    exphil_batch batch = EXPHIL_BATCH_INIT;
    batch.batch = b->lanes;
    batch.time = b->time;
    batch.epoch = live->pieces.count;
    batch.floats = b->floats;
    batch.ids = b->ids;
    batch.past = b->past;
    batch.actions = b->actions;
    batch.mask = b->mask;
    batch.reset = b->reset;
    batch.dropped = b->dropped;
    return batch;
}

/* ---- updates ---------------------------------------------------------------------------------------------------- */

typedef struct updates {
    int64_t done, skipped;
    double loss; /* sum */
} updates;

/* One update, or a batch of pieces in which nothing counts: counts tells. */
static exphil_status make_update(exphil_live *live, exphil_prefetcher *prefetcher, bool *counts,
                                 updates *made, exphil_error *error)
{
    exphil_batch batch = EXPHIL_BATCH_INIT;
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    XPH_TRY(next_batch(prefetcher, &batch, error));
    const double own = put_pieces(live, &batch, !*counts);
    *counts = own > 0.0;
    if (!*counts) return EXPHIL_OK;
    XPH_TRY(put_given(live, own, error));
    const exphil_batch whole = whole_batch(live);
    exphil_status status = exphil_trainer_step_batch(live->trainer, &whole, &metrics, error);
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
    exphil_prefetcher_info info = EXPHIL_PREFETCHER_INFO_INIT;
    int64_t idle = 0, tried = 0;
    bool counts = false;
    XPH_TRY(exphil_prefetcher_query(prefetcher, &info, error));
    while (tried < live->config.updates && idle <= info.batches_per_epoch) {
        XPH_TRY(make_update(live, prefetcher, &counts, made, error));
        tried += counts;
        idle = counts ? 0 : idle + 1;
    }
    return EXPHIL_OK;
}

/* Of lanes of pieces, in the order of their count. */
static exphil_sampling sampling_of_pieces(const exphil_live *live)
{
    exphil_sampling sampling = live->sampling;
    sampling.batch = live->batch.lanes - live->batch.given;
    sampling.seed = xph_mix(live->config.seed + (uint64_t)live->pieces.count);
    sampling.balance_character = sampling.balance_action = sampling.balance_change = 0.0;
    sampling.memory_bytes = 0;
    return sampling;
}

static exphil_status learn_all(exphil_live *live, exphil_error *error)
{
    exphil_prefetcher *prefetcher = NULL;
    const exphil_sampling sampling = sampling_of_pieces(live);
    updates made = {0};
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

static exphil_status end_and_keep(exphil_live *live, exphil_error *error)
{
    xph_piece *p = &live->piece;
    exphil_status status = end_piece(live, error);
    keep_last(live, p->rows < p->overlap ? p->rows : p->overlap);
    return status;
}

void xph_live_imitate_cut(exphil_live *live)
{
    live->piece.rows = live->piece.used = 0;
}

exphil_status xph_live_imitate_rest(exphil_live *live, exphil_error *error)
{
    return live->piece.rows > live->piece.used ? end_and_keep(live, error) : EXPHIL_OK;
}

exphil_status xph_live_imitate(exphil_live *live, bool *done, exphil_error *error)
{
    xph_piece *p = &live->piece;
    for (const unsigned char *entry; (entry = xph_ring_front(&live->ring));) {
        xph_live_head head;
        memcpy(&head, entry, sizeof head);
        *done = true;
        if (head.starts && p->rows) {
            exphil_status status = xph_live_imitate_rest(live, error);
            xph_live_imitate_cut(live);
            return status;
        }
        append(live, entry);
        xph_ring_done(&live->ring);
        if (p->rows - p->used >= live->config.piece_frames) return end_and_keep(live, error);
    }
    *done = false;
    return EXPHIL_OK;
}

/* ---- making and freeing ------------------------------------------------------------------------------------------ */

static exphil_status differs(const char *field, int64_t given, int64_t own, exphil_error *error)
{
    if (given == own) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_MISMATCH, "live config: sampling.%s is %lld, the model's is %lld", field,
                    (long long)given, (long long)own);
}

/* What follows from the model may be left at 0. */
static exphil_status take_own(exphil_live *live, exphil_sampling *s, exphil_error *error)
{
    exphil_sampling own = EXPHIL_SAMPLING_INIT;
    XPH_TRY(exphil_model_sampling(live->start, &own, error));
    if (s->delay_frames == 0) s->delay_frames = own.delay_frames;
    if (s->action_slots == 0) s->action_slots = own.action_slots;
    if (s->neutral_start == 0) s->neutral_start = own.neutral_start;
    if (s->mode == 0) s->mode = own.mode;
    if (s->time == 0) s->time = own.time ? own.time : 60;
    if (s->batch == 0) s->batch = 16;
    XPH_TRY(differs("mode", s->mode, own.mode, error));
    XPH_TRY(differs("delay_frames", s->delay_frames, own.delay_frames, error));
    XPH_TRY(differs("action_slots", s->action_slots, own.action_slots, error));
    XPH_TRY(differs("neutral_start", s->neutral_start, own.neutral_start, error));
    return own.time ? differs("time", s->time, own.time, error) : EXPHIL_OK;
}

static exphil_status take_sampling(exphil_live *live, const exphil_sampling *given, bool data,
                                   exphil_error *error)
{
    exphil_sampling *s = &live->sampling;
    *s = (exphil_sampling)EXPHIL_SAMPLING_INIT;
    XPH_TRY(XPH_TAKE(exphil_sampling, s, given, error));
    XPH_TRY(take_own(live, s, error));
    const char *no = s->condition_count || s->delay_count ? "conditions or several delays"
                     : s->seed                            ? "a seed: the live config has one"
                     : s->in_order                        ? "in_order"
                     : s->first_lane || s->lane_count     ? "lanes of a rank"
                                                          : NULL;
    if (no) return xph_fail(error, EXPHIL_E_INVALID, "live config: sampling has %s", no);
    if (s->batch < 1 + data || s->batch > 4096 || s->time < 1 || s->time > 65536)
        return xph_fail(error, EXPHIL_E_INVALID, "live config: sampling of %lld lanes of %lld frames",
                        (long long)s->batch, (long long)s->time);
    double lanes = (double)s->batch * (1.0 - live->config.share) + 0.5;
    int64_t own = !data                            ? 0
                  : lanes < 1.0                    ? 1
                  : lanes > (double)(s->batch - 1) ? s->batch - 1
                                                   : (int64_t)lanes;
    live->batch = (xph_live_batch){.lanes = s->batch, .time = s->time, .given = own};
    return EXPHIL_OK;
}

static exphil_status open_data(exphil_live *live, const exphil_dataset *dataset, exphil_error *error)
{
    exphil_sampling sampling = live->sampling;
    if (!dataset) return EXPHIL_OK;
    if (xph_dataset_spec_hash(dataset) != live->shape->spec_hash) {
        const exphil_spec *other = xph_dataset_spec_of(dataset);
        return xph_fail(error, EXPHIL_E_MISMATCH,
                        "live config: dataset has rows of %s/%s, the model is for %s/%s", other->layout,
                        other->codec, live->spec->layout, live->spec->codec);
    }
    sampling.batch = live->batch.given;
    sampling.seed = xph_mix(~live->config.seed);
    live->data.fresh = true;
    XPH_TRY(xph_dataset_snapshot(dataset, &live->data.dataset, error));
    return exphil_prefetcher_create(live->data.dataset, &sampling, &live->data.prefetcher, error);
}

/* A prefetcher of a few rows of nothing looks at all that sampling says, before there is a piece. */
static exphil_status try_sampling(exphil_live *live, exphil_error *error)
{
    const exphil_sampling sampling = sampling_of_pieces(live);
    xph_piece *p = &live->piece;
    xph_pieces none = {.dataset = NULL};
    exphil_prefetcher *prefetcher = NULL;
    const int64_t heads = live->shape->heads, window = live->shape->window ? live->shape->window : 1;
    const int64_t rows = live->shape->delay + window;
    for (int64_t i = 0; i < rows * heads; i++) p->actions[i] = live->spec->heads[i % heads].neutral;
    XPH_TRY(xph_pieces_begin(live->learning, live->spec, &none, error));
    exphil_status status =
        xph_pieces_add(&none, live->learning, rows, p->floats, p->ids, p->actions, live->weight, error);
    if (status >= 0) status = exphil_prefetcher_create(none.dataset, &sampling, &prefetcher, error);
    exphil_prefetcher_destroy(prefetcher);
    xph_pieces_free(&none, live->learning);
    return status;
}

exphil_status xph_live_imitate_make(exphil_live *live, const exphil_live_config *given, exphil_error *error)
{
    xph_cutter c = {NULL, 0};
    XPH_TRY(take_sampling(live, given->sampling, given->dataset != NULL, error));
    live->piece.overlap = overlap_of(live);
    live->piece.most = live->piece.overlap + live->config.piece_frames;
    cut_all(live, &c);
    live->thread_bytes = c.at;
    live->thread_memory = xph_calloc(live->learning, 1, c.at);
    if (!live->thread_memory) return xph_no_memory(c.at, error);
    c = (xph_cutter){live->thread_memory, 0};
    cut_all(live, &c);
    XPH_TRY(xph_pieces_begin(live->learning, live->spec, &live->pieces, error));
    XPH_TRY(try_sampling(live, error));
    return open_data(live, given->dataset, error);
}

void xph_live_imitate_end(exphil_live *live)
{
    if (!live->learning) return;
    xph_pieces_free(&live->pieces, live->learning);
    exphil_prefetcher_destroy(live->data.prefetcher);
    if (live->data.dataset) xph_dataset_release(live->data.dataset);
    xph_free(live->learning, live->thread_memory, live->thread_bytes);
}
