/* What was learnt behind a live game, in the trainer's checkpoint. Imitation keeps its pieces there, as one block: a head with
 * settings that must be equal, lengths of the pieces, weights, floats, ids, actions of all their rows. Reinforcement keeps what a
 * learner keeps (resume.c). */
#include "learn/live.h"

#include "data/data.h"

#define MAGIC 0x31304556494C4C58ull /* "XLLIVE01" */

typedef struct head {
    uint64_t magic, bytes;
    /* settings that must be equal: */
    double share, approved;
    int64_t piece_frames, updates, batch, time;
    uint64_t seed, sampling; /* the latter: hash of all else in it */
    uint64_t dataset;        /* content hash of the host's rows; another one begins in its own order */
    int64_t epoch, index;    /* of its next batch */
    int64_t pieces, rows, person, made, skipped;
    double loss;
} head;

typedef struct saved {
    exphil_live *live;
    unsigned char *block;
    size_t bytes;
    head head;
    xph_pieces read; /* what the block holds, until it is known to be whole */
} saved;

/* Of what changes batches and has no name of its own in the head. */
static uint64_t sampling_hash(const exphil_live *live)
{
    exphil_sampling s = live->sampling;
    s.memory_bytes = 0;
    s.buffers = s.workers = 0;
    s.batch = s.time = 0;
    return xph_hash(&s, sizeof s);
}

static head head_of(const exphil_live *live)
{
    const exphil_live_config *c = &live->config;
    const xph_live_data *data = &live->data;
    return (head){.magic = MAGIC,
                  .share = c->share,
                  .approved = c->approved,
                  .piece_frames = c->piece_frames,
                  .updates = c->updates,
                  .batch = live->sampling.batch,
                  .time = live->sampling.time,
                  .seed = c->seed,
                  .sampling = sampling_hash(live),
                  .dataset = data->dataset ? xph_dataset_content_hash(data->dataset) : 0,
                  .epoch = data->epoch,
                  .index = data->index,
                  .pieces = live->pieces.count,
                  .rows = live->pieces.rows,
                  .person = live->pieces.person,
                  .made = live->told.updates,
                  .skipped = live->told.skipped,
                  .loss = live->told.loss};
}

/* ---- the block -------------------------------------------------------------------------------------------------- */

/* Where the parts of a block of so many pieces and rows lie in memory. */
typedef struct parts {
    head *head;
    int64_t *lengths;
    float *weight, *floats;
    int32_t *ids, *actions;
} parts;

/* False: no memory has so many bytes. */
static bool cut(const exphil_live *live, int64_t pieces, int64_t rows, unsigned char *base, parts *p,
                size_t *bytes)
{
    const xph_model_shape *s = live->shape;
    xph_cutter c = {base, 0};
    if (pieces < 0 || rows < 0 || pieces > (int64_t)1 << 40 || rows > (int64_t)1 << 40) return false;
    p->head = xph_cut(&c, 1, sizeof(head), 1);
    p->lengths = xph_cut(&c, pieces, 1, sizeof(int64_t));
    p->weight = xph_cut(&c, rows, 1, sizeof(float));
    p->floats = xph_cut(&c, rows, s->floats, sizeof(float));
    p->ids = xph_cut(&c, rows, s->ids, sizeof(int32_t));
    p->actions = xph_cut(&c, rows, s->heads, sizeof(int32_t));
    *bytes = c.at;
    return c.at != SIZE_MAX;
}

static exphil_status fill_lengths(const exphil_live *live, int64_t *lengths, exphil_error *error)
{
    const xph_pieces *all = &live->pieces;
    for (int64_t i = 0; i < all->count; i++) {
        exphil_episode_info info = EXPHIL_EPISODE_INFO_INIT;
        XPH_TRY(exphil_dataset_episode(all->dataset, i, &info, error));
        lengths[i] = info.frames;
    }
    return EXPHIL_OK;
}

static exphil_status fill(saved *s, exphil_error *error)
{
    const exphil_live *live = s->live;
    const xph_pieces *all = &live->pieces;
    parts p;
    size_t bytes;
    (void)cut(live, all->count, all->rows, s->block, &p, &bytes);
    *p.head = s->head;
    XPH_TRY(fill_lengths(live, p.lengths, error));
    if (all->rows) memcpy(p.weight, all->weight, (size_t)all->rows * sizeof *p.weight);
    return exphil_dataset_rows(all->dataset, 0, all->rows, p.floats, p.ids, p.actions, NULL, error);
}

/* ---- writing ------------------------------------------------------------------------------------------------------ */

static exphil_status write_pieces(saved *s, const char *path, exphil_error *error)
{
    exphil_live *live = s->live;
    parts p;
    s->head = head_of(live);
    if (!cut(live, live->pieces.count, live->pieces.rows, NULL, &p, &s->bytes))
        return xph_fail(error, EXPHIL_E_MEMORY, "live: the pieces are too many");
    s->head.bytes = s->bytes;
    s->block = xph_calloc(live->learning, 1, s->bytes);
    if (!s->block) return xph_no_memory(s->bytes, error);
    exphil_status status = fill(s, error);
    const xph_beside beside = {.data = s->block, .bytes = s->bytes};
    if (status >= 0) status = xph_trainer_save(live->trainer, path, &beside, error);
    return status;
}

exphil_status xph_live_write(exphil_live *live, const char *path, exphil_error *error)
{
    saved s = {.live = live};
    if (live->rollout) return exphil_learner_save(live->learner, live->received, NULL, path, error);
    exphil_status status = write_pieces(&s, path, error);
    xph_free(live->learning, s.block, s.bytes);
    return status;
}

/* ---- reading ------------------------------------------------------------------------------------------------------ */

/* Memory for as much as the file has. */
static exphil_status fit(void *user, size_t bytes, xph_beside *beside, exphil_error *error)
{
    saved *s = user;
    if (bytes < sizeof(head))
        return xph_fail(error, EXPHIL_E_FORMAT,
                        "checkpoint: what was learnt live has %zu bytes, its head %zu", bytes, sizeof(head));
    s->block = xph_calloc(s->live->learning, 1, bytes);
    if (!s->block) return xph_no_memory(bytes, error);
    s->bytes = beside->bytes = bytes;
    beside->data = s->block;
    return EXPHIL_OK;
}

static exphil_status differs(const char *name, double before, double now, exphil_error *error)
{
    return xph_fail(error, EXPHIL_E_MISMATCH, "checkpoint was made with %s %.9g, this is %.9g", name, before,
                    now);
}

static exphil_status check_settings(const head *found, const head *own, exphil_error *error)
{
    const struct {
        const char *name;
        double before, now;
    } settings[] = {{"share", found->share, own->share},
                    {"approved", found->approved, own->approved},
                    {"piece_frames", (double)found->piece_frames, (double)own->piece_frames},
                    {"updates", (double)found->updates, (double)own->updates},
                    {"sampling.batch", (double)found->batch, (double)own->batch},
                    {"sampling.time", (double)found->time, (double)own->time}};
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        if (!(settings[i].before == settings[i].now))
            return differs(settings[i].name, settings[i].before, settings[i].now, error);
    if (found->seed != own->seed)
        return xph_fail(error, EXPHIL_E_MISMATCH, "checkpoint was made with seed %llu, this is %llu",
                        (unsigned long long)found->seed, (unsigned long long)own->seed);
    if (found->sampling != own->sampling)
        return xph_fail(error, EXPHIL_E_MISMATCH, "checkpoint was made with another sampling than this");
    if (!found->dataset != !own->dataset)
        return xph_fail(error, EXPHIL_E_MISMATCH, "checkpoint was made with%s a dataset, this is with%s",
                        found->dataset ? "" : "out", own->dataset ? "" : "out");
    return EXPHIL_OK;
}

static exphil_status damaged(const char *what, exphil_error *error)
{
    return xph_fail(error, EXPHIL_E_FORMAT, "checkpoint: what was learnt live is damaged: %s", what);
}

static exphil_status read_piece(saved *s, const parts *p, int64_t at, int64_t rows, exphil_error *error)
{
    const xph_model_shape *shape = s->live->shape;
    for (int64_t i = at; i < at + rows; i++)
        if (!(p->weight[i] >= 0.0f && p->weight[i] <= 1.0f)) return damaged("a weight is none", error);
    return xph_pieces_add(&s->read, s->live->learning, rows, p->floats + at * shape->floats,
                          p->ids + at * shape->ids, p->actions + at * shape->heads, p->weight + at, error);
}

static exphil_status read_pieces(saved *s, const head *found, exphil_error *error)
{
    parts p;
    size_t bytes;
    int64_t at = 0;
    if (!cut(s->live, found->pieces, found->rows, s->block, &p, &bytes) || bytes != s->bytes ||
        found->bytes != bytes)
        return damaged("its length", error);
    for (int64_t i = 0; i < found->pieces; i++) {
        if (p.lengths[i] < 1 || p.lengths[i] > found->rows - at)
            return damaged("the length of a piece", error);
        exphil_status status = read_piece(s, &p, at, p.lengths[i], error);
        if (status == EXPHIL_E_INVALID || status == EXPHIL_E_NUMERIC)
            return xph_fail_within(error, EXPHIL_E_FORMAT, "checkpoint: a live piece");
        XPH_TRY(status);
        at += p.lengths[i];
    }
    return at == found->rows ? EXPHIL_OK : damaged("the sum of its pieces", error);
}

/* Before anything changes: the pieces of the file, made anew beside those that there are. */
static exphil_status check(void *user, exphil_error *error)
{
    saved *s = user;
    exphil_live *live = s->live;
    head found;
    memcpy(&found, s->block, sizeof found);
    if (found.magic != MAGIC)
        return xph_fail(error, EXPHIL_E_MISMATCH,
                        "checkpoint: it is not of imitation behind a live game, or of "
                        "another release");
    const head own = head_of(live);
    XPH_TRY(check_settings(&found, &own, error));
    if (found.person < 0 || found.person > found.rows || found.made < 0 || found.skipped < 0 ||
        found.epoch < 0 || found.index < 0 || !xph_finite(found.loss))
        return damaged("a counter", error);
    s->head = found;
    XPH_TRY(xph_pieces_begin(live->learning, live->spec, &s->read, error));
    return read_pieces(s, &found, error);
}

/* The host's rows go on where they were; of another dataset they begin anew. */
static void take_place(exphil_live *live, const head *found)
{
    xph_live_data *data = &live->data;
    exphil_prefetcher_info info = EXPHIL_PREFETCHER_INFO_INIT;
    int64_t epoch = found->epoch, index = found->index;
    data->fresh = true;
    data->epoch = data->index = 0;
    if (!data->prefetcher || xph_dataset_content_hash(data->dataset) != found->dataset ||
        exphil_prefetcher_query(data->prefetcher, &info, NULL) < 0 || index > info.batches_per_epoch)
        return;
    if (index == info.batches_per_epoch) epoch++, index = 0;
    if (exphil_prefetcher_seek(data->prefetcher, epoch, index, NULL) < 0) return;
    data->epoch = epoch;
    data->index = index;
    data->fresh = false;
}

static exphil_status read_imitation(exphil_live *live, const char *path, exphil_error *error)
{
    saved s = {.live = live};
    xph_beside beside = {.fit = fit, .check = check, .user = &s};
    exphil_status status = xph_trainer_resume(live->trainer, path, &beside, error);
    if (status >= 0) {
        const xph_pieces before = live->pieces;
        s.read.person = s.head.person;
        live->pieces = s.read;
        s.read = before;
        take_place(live, &s.head);
        xph_mutex_lock(live->lock);
        live->told.pieces = s.head.pieces;
        live->told.learnt = s.head.person;
        live->told.updates = s.head.made;
        live->told.skipped = s.head.skipped;
        live->told.loss = s.head.loss;
        xph_mutex_unlock(live->lock);
    }
    xph_pieces_free(&s.read, live->learning);
    xph_free(live->learning, s.block, s.bytes);
    return status;
}

static exphil_status read_reinforcement(exphil_live *live, const char *path, exphil_error *error)
{
    XPH_TRY(exphil_learner_resume(live->learner, live->received, NULL, path, error));
    xph_mutex_lock(live->lock);
    live->told.pieces = live->learner->chunks;
    live->told.updates = live->learner->updates;
    xph_mutex_unlock(live->lock);
    return EXPHIL_OK;
}

exphil_status xph_live_read(exphil_live *live, const char *path, exphil_error *error)
{
    XPH_TRY(live->rollout ? read_reinforcement(live, path, error) : read_imitation(live, path, error));
    return xph_live_publish(live, error);
}
