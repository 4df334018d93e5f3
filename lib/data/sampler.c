/* Batches from a dataset: defaults and limits of exphil_sampling, then for every batch of the plan the
 * copying of rows, with the targets d frames later and the actions decided before them. Works on a snapshot
 * of the dataset, so that the host may go on adding episodes.
 *
 * Only rows that have a target are sampled: the last d frames of an episode have none, and nothing after
 * them depends on them. So every batch has rows to learn from. */
#include "data/sampler.h"

#include "data/game_rows.h"
#include "device/device.h"
#include "melee/melee.h"

#define BATCH_MOST   4096
#define TIME_MOST    65536
#define DELAY_MOST   64
#define SLOTS_MOST   (DELAY_MOST + 1)
#define BUFFERS_MOST 64
#define WORKERS_MOST 64
#define EPOCH_MOST   ((int64_t)1 << 48)
#define STRETCH      256 /* frames whose past actions are dropped together */

/* Frames of a span: what is shuffled holds at least one. */
#define SHUFFLE_LEAST 1024

/* Of one who fills: actions around a stretch of rows, and a piece of a corpus. */
typedef struct xph_filler {
    uint8_t *packed;
    xph_piece_buffer piece;
} xph_filler;

struct xph_sampler {
    exphil_context *context;
    exphil_dataset *dataset; /* a snapshot of its own */
    exphil_sampling sampling;
    xph_order order;
    int64_t planned; /* epoch that the plan is of; -1: none */
    atomic_bool stop;
    xph_batch_buffer own;    /* of xph_sampler_batch, made when it is first needed */
    xph_melee_mirror mirror; /* of its rows, if sampling.mirror is above 0 */
    xph_filler *fillers;     /* [workers] */
    size_t packed_bytes;
    xph_told told;
    uint16_t *values; /* [episodes, conditions] of the dataset; NULL: none */
    size_t values_bytes;
    int32_t fixed[EXPHIL_CONDITIONS_MAX + 1]; /* by xph_sampler_fix: values, then the id of the delay */
    bool fixes, before;                       /* before: batches have what buffer->before is */
    xph_game_lane **lanes; /* [B]: where games are kept that a lane goes through; NULL: the filler keeps them */
    xph_window_rows *group; /* of the windows that were begun last; NULL: none */
};

/* ---- configuration ----------------------------------------------------------------------------------- */

static exphil_status check_range(int64_t value, int64_t low, int64_t high, const char *field,
                                 exphil_error *error)
{
    if (value >= low && value <= high) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_INVALID, "sampling.%s is %lld, must be %lld..%lld", field,
                    (long long)value, (long long)low, (long long)high);
}

/* Fields that mean nothing in the mode are refused, not ignored. */
static exphil_status check_mode(const exphil_sampling *how, exphil_error *error)
{
    if (how->mode == EXPHIL_MODE_WINDOW) {
        if (how->segment_frames)
            return xph_fail(error, EXPHIL_E_INVALID, "sampling.segment_frames is for EXPHIL_MODE_CARRY");
        if (how->shuffle_frames && how->in_order)
            return xph_fail(error, EXPHIL_E_INVALID,
                            "sampling.shuffle_frames is for shuffled windows, in_order is 1");
        return EXPHIL_OK;
    }
    if (how->mode != EXPHIL_MODE_CARRY)
        return xph_fail(error, EXPHIL_E_INVALID, "sampling.mode is %d, which is no mode", (int)how->mode);
    if (how->last_only)
        return xph_fail(error, EXPHIL_E_INVALID, "sampling.last_only is for EXPHIL_MODE_WINDOW");
    if (how->stride != 1)
        return xph_fail(error, EXPHIL_E_INVALID, "sampling.stride is for EXPHIL_MODE_WINDOW");
    if (how->shuffle_frames)
        return xph_fail(error, EXPHIL_E_INVALID, "sampling.shuffle_frames is for EXPHIL_MODE_WINDOW");
    return EXPHIL_OK;
}

/* What shuffle_frames 0 means for a dataset: here, all windows together, as in 0.1. The only place where a kind of
 * dataset chooses; neither its size nor a limit of memory may. */
static int64_t usual_shuffle_frames(const exphil_dataset *dataset)
{
    return dataset->of_games ? 65536 : 0;
}

/* Rows that are there are copied faster than they are used. */
static int32_t usual_workers(const exphil_dataset *dataset)
{
    int32_t workers = dataset->of_games ? xph_cpu_count() / 4 : 1;
    return workers < 1 ? 1 : workers > 4 ? 4 : workers;
}

static exphil_status check_shuffle(const exphil_sampling *how, exphil_error *error)
{
    int64_t frames = how->shuffle_frames;
    if (!frames || (frames >= SHUFFLE_LEAST && frames <= XPH_ORDERED_MAX)) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_INVALID, "sampling.shuffle_frames is %lld, must be 0 or %d..%lld",
                    (long long)frames, SHUFFLE_LEAST, (long long)XPH_ORDERED_MAX);
}

static exphil_status check_drop(const exphil_sampling *how, exphil_error *error)
{
    if (!(how->drop_past >= 0.0 && how->drop_past <= 1.0))
        return xph_fail(error, EXPHIL_E_INVALID, "sampling.drop_past is %g, must be 0..1", how->drop_past);
    if (how->drop_past > 0.0 && how->action_slots == 0)
        return xph_fail(error, EXPHIL_E_INVALID,
                        "sampling.drop_past is %g, but action_slots is 0: there are no past actions",
                        how->drop_past);
    return EXPHIL_OK;
}

static exphil_status check_mirror(const exphil_sampling *how, exphil_error *error)
{
    if (how->mirror >= 0 && how->mirror <= 1) return EXPHIL_OK;
    char text[XPH_DOUBLE_TEXT];
    return xph_fail(error, EXPHIL_E_INVALID, "sampling.mirror is %s, must be 0..1",
                    xph_format_double(text, how->mirror, 6));
}

static exphil_status resolve(const exphil_dataset *dataset, const exphil_sampling *given,
                             exphil_sampling *how, xph_told *told, exphil_error *error)
{
    exphil_sampling known = EXPHIL_SAMPLING_INIT;
    XPH_TRY(XPH_TAKE(exphil_sampling, &known, given, error));
    if (!known.batch) known.batch = 16;
    if (!known.time) known.time = 60;
    if (!known.stride) known.stride = 1;
    if (!known.buffers) known.buffers = 2;
    if (!known.workers) known.workers = usual_workers(dataset);
    if (!known.shuffle_frames && known.mode == EXPHIL_MODE_WINDOW && !known.in_order)
        known.shuffle_frames = usual_shuffle_frames(dataset);
    XPH_TRY(check_mode(&known, error));
    XPH_TRY(check_range(known.batch, 1, BATCH_MOST, "batch", error));
    XPH_TRY(check_range(known.time, 1, TIME_MOST, "time", error));
    XPH_TRY(check_range(known.stride, 1, XPH_FRAMES_MAX, "stride", error));
    XPH_TRY(check_range(known.segment_frames, 0, INT64_MAX, "segment_frames", error));
    XPH_TRY(check_shuffle(&known, error));
    XPH_TRY(check_range(known.delay_frames, 0, DELAY_MOST, "delay_frames", error));
    XPH_TRY(xph_told_take(told, known.conditions, known.condition_count, known.delays, known.delay_count,
                          &known.delay_frames, "sampling", error));
    known.conditions = told->conditions ? told->condition : NULL;
    known.delays = told->delays ? told->delay : NULL;
    XPH_TRY(check_range(known.action_slots, 0, SLOTS_MOST, "action_slots", error));
    XPH_TRY(check_range(known.memory_bytes, 0, INT64_MAX, "memory_bytes", error));
    XPH_TRY(check_range(known.workers, 1, WORKERS_MOST, "workers", error));
    XPH_TRY(check_range(known.in_order, 0, 1, "in_order", error));
    XPH_TRY(check_range(known.last_only, 0, 1, "last_only", error));
    XPH_TRY(check_range(known.buffers, 1, BUFFERS_MOST, "buffers", error));
    XPH_TRY(check_range(known.neutral_start, 0, 1, "neutral_start", error));
    XPH_TRY(check_range(known.reserved, 0, 0, "reserved", error));
    XPH_TRY(check_range(known.reserved_2, 0, 0, "reserved_2", error));
    XPH_TRY(check_drop(&known, error));
    XPH_TRY(check_mirror(&known, error));
    if (known.segment_frames > XPH_FRAMES_MAX) known.segment_frames = XPH_FRAMES_MAX; /* never cuts */
    *how = known;
    return EXPHIL_OK;
}

/* ---- memory for a batch -------------------------------------------------------------------------------- */

/* Takes count items of item_bytes behind *at, which stays a multiple of 64. */
static bool take(size_t *at, size_t rows, int64_t count, size_t item_bytes, size_t *offset)
{
    size_t bytes;
    *offset = *at;
    return xph_size_mul(rows, (size_t)count, &bytes) && xph_size_mul(bytes, item_bytes, &bytes) &&
           xph_size_add(*at, bytes, at) && xph_size_align(*at, 64, at);
}

/* Where the parts of a batch lie in its memory, and how much that is. */
typedef struct places {
    size_t bytes, floats, ids, past, actions, mask, reset, dropped, told, before;
} places;

static exphil_status place_batch(const xph_sampler *sampler, places *at, exphil_error *error)
{
    const xph_row_shape *shape = &sampler->dataset->shape;
    const exphil_sampling *how = &sampler->sampling;
    size_t rows = (size_t)(how->batch * how->time);
    *at = (places){.bytes = 0};
    if (take(&at->bytes, rows, shape->floats, sizeof(float), &at->floats) &&
        take(&at->bytes, rows, shape->ids, sizeof(int32_t), &at->ids) &&
        take(&at->bytes, rows, how->action_slots * shape->heads, sizeof(int32_t), &at->past) &&
        take(&at->bytes, rows, shape->heads, sizeof(int32_t), &at->actions) &&
        take(&at->bytes, rows, 1, sizeof(float), &at->mask) && take(&at->bytes, rows, 1, 1, &at->reset) &&
        take(&at->bytes, rows, how->drop_past > 0.0, 1, &at->dropped) &&
        take(&at->bytes, rows, xph_told_columns(&sampler->told), sizeof(int32_t), &at->told) &&
        take(&at->bytes, rows, sampler->before ? shape->heads : 0, sizeof(int32_t), &at->before))
        return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_INVALID, "a batch of %lld x %lld rows is too large", (long long)how->batch,
                    (long long)how->time);
}

exphil_status xph_batch_buffer_create(const xph_sampler *sampler, xph_batch_buffer *buffer,
                                      exphil_error *error)
{
    const exphil_sampling *how = &sampler->sampling;
    places at;
    XPH_TRY(place_batch(sampler, &at, error));
    size_t bytes = at.bytes;
    xph_device *device = xph_context_backend(sampler->context);
    void *block = NULL;
    exphil_status status = device->backend->host_alloc(device, bytes, &block);
    if (status < 0) return xph_no_device_memory(error, device, status, bytes);
    uint8_t *memory = block;
    *buffer = (xph_batch_buffer){.memory = memory,
                                 .bytes = bytes,
                                 .floats = (float *)(void *)(memory + at.floats),
                                 .mask = (float *)(void *)(memory + at.mask),
                                 .ids = (int32_t *)(void *)(memory + at.ids),
                                 .past = (int32_t *)(void *)(memory + at.past),
                                 .actions = (int32_t *)(void *)(memory + at.actions),
                                 .reset = memory + at.reset,
                                 .dropped = how->drop_past > 0.0 ? memory + at.dropped : NULL};
    if (xph_told_columns(&sampler->told)) buffer->told = (int32_t *)(void *)(memory + at.told);
    if (sampler->before) buffer->before = (int32_t *)(void *)(memory + at.before);
    if (how->mode != EXPHIL_MODE_WINDOW || !how->shuffle_frames) return EXPHIL_OK;
    buffer->windows = xph_calloc(sampler->context, (size_t)how->batch, sizeof *buffer->windows);
    if (buffer->windows) return EXPHIL_OK;
    xph_batch_buffer_free(sampler, buffer);
    return xph_no_memory((size_t)how->batch * sizeof *buffer->windows, error);
}

void xph_sampler_end(const xph_sampler *sampler, xph_batch_buffer *buffer)
{
    for (int64_t b = 0; buffer->windows && b < sampler->sampling.batch; b++) {
        xph_window_rows_release(buffer->windows[b].rows);
        buffer->windows[b].rows = NULL;
    }
    xph_window_rows_release(buffer->fresh);
    buffer->fresh = NULL;
}

void xph_batch_buffer_free(const xph_sampler *sampler, xph_batch_buffer *buffer)
{
    xph_sampler_end(sampler, buffer);
    xph_free(sampler->context, buffer->windows, (size_t)sampler->sampling.batch * sizeof *buffer->windows);
    xph_device *device = xph_context_backend(sampler->context);
    if (buffer->memory) device->backend->host_free(device, buffer->memory, buffer->bytes);
    *buffer = (xph_batch_buffer){.memory = NULL};
}

void xph_batch_buffer_show(const xph_sampler *sampler, const xph_batch_buffer *buffer, exphil_batch *batch)
{
    *batch = (exphil_batch){.struct_size = sizeof *batch,
                            .batch = sampler->sampling.batch,
                            .time = sampler->sampling.time,
                            .epoch = buffer->epoch,
                            .index = buffer->index,
                            .frames = atomic_load(&buffer->frames),
                            .floats = buffer->floats,
                            .ids = buffer->ids,
                            .past = buffer->past,
                            .actions = buffer->actions,
                            .mask = buffer->mask,
                            .reset = buffer->reset,
                            .dropped = buffer->dropped,
                            .conditions = buffer->told};
}

/* ---- mirror ------------------------------------------------------------------------------------------ */

static exphil_status make_mirror(xph_sampler *made, exphil_error *error)
{
    const exphil_spec *spec = made->dataset->spec;
    exphil_spec preset = EXPHIL_SPEC_INIT;
    if (!(made->sampling.mirror > 0)) return EXPHIL_OK;
    if (exphil_melee_spec(spec->layout, spec->codec, &preset, NULL) < 0 ||
        exphil_spec_hash(&preset) != made->dataset->spec_hash)
        return xph_fail(error, EXPHIL_E_INVALID,
                        "sampling.mirror is for a Melee spec; layout \"%s\" with codec \"%s\" is none",
                        spec->layout, spec->codec);
    exphil_status status = xph_melee_mirror_make(xph_melee_layout_find(spec->layout),
                                                 xph_melee_codec_find(spec->codec), &made->mirror, error);
    return status < 0 ? xph_fail_within(error, status, "sampling.mirror") : EXPHIL_OK;
}

/* Number `game` of the epoch's stream: no other game, batch or thread comes into it. */
static bool is_mirrored(const xph_sampler *sampler, int64_t epoch, uint64_t game)
{
    const exphil_sampling *how = &sampler->sampling;
    if (!(how->mirror > 0)) return false;
    xph_rng rng = {.seed = how->seed, .stream = XPH_RNG_MIRROR | (uint64_t)epoch << 8, .position = game};
    return (double)xph_rng_u32(&rng) < how->mirror * 0x1p32;
}

static void mirror_rows(const xph_sampler *sampler, int64_t row, int64_t count, xph_batch_buffer *buffer)
{
    const xph_row_shape *shape = &sampler->dataset->shape;
    int64_t slots = sampler->sampling.action_slots;
    xph_melee_mirror_rows(&sampler->mirror, buffer->floats + row * shape->floats,
                          buffer->ids + row * shape->ids, count);
    xph_melee_mirror_actions(buffer->actions + row * shape->heads, count);
    xph_melee_mirror_actions(buffer->past + row * slots * shape->heads, count * slots);
}

/* ---- rows -------------------------------------------------------------------------------------------- */

static void neutral_action(const xph_row_shape *shape, int32_t *action)
{
    for (int64_t a = 0; a < shape->heads; a++) action[a] = shape->spec->heads[a].neutral;
}

/* Packed actions of an episode from frame `first` on. */
typedef struct stretch {
    const uint8_t *packed;
    int64_t first, end;
} stretch;

/* The action of frame t, neutral before frame `first`. */
static void action_at(const xph_row_shape *shape, const stretch *acted, int64_t t, int64_t first,
                      int32_t *action)
{
    if (t < first) {
        neutral_action(shape, action);
    } else {
        xph_action_unpack(shape, acted->packed + (t - acted->first) * shape->action_bytes, action);
    }
}

xph_shown xph_sampler_shown(const xph_sampler *sampler, int64_t epoch, int64_t episode)
{
    const xph_told *told = &sampler->told;
    const int64_t longest = sampler->sampling.delay_frames, slots = sampler->sampling.action_slots;
    xph_shown s = {.delay = longest, .slots = slots};
    const uint16_t *values = sampler->values ? sampler->values + episode * told->conditions : NULL;
    if (!xph_told_columns(told)) return s;
    xph_told_draw(told, &sampler->dataset->episodes[episode], sampler->sampling.seed, epoch, values, s.told);
    if (sampler->fixes) memcpy(s.told, sampler->fixed, (size_t)told->conditions * sizeof *s.told);
    if (sampler->fixed[EXPHIL_CONDITIONS_MAX])
        s.told[told->conditions] = sampler->fixed[EXPHIL_CONDITIONS_MAX];
    if (!told->delays) return s;
    s.delay = told->delay[s.told[told->conditions] - 1];
    s.slots = xph_told_slots(s.delay, longest, slots);
    return s;
}

/* Targets, and the actions decided before them: row t has t+d, then t+d-1, t+d-2, ... The first that an episode can have
 * decided acts in its frame d. */
static void copy_actions(const xph_sampler *sampler, const stretch *acted, const xph_shown *as, int64_t t,
                         int64_t count, int64_t row, xph_batch_buffer *buffer)
{
    const xph_row_shape *shape = &sampler->dataset->shape;
    const exphil_sampling *how = &sampler->sampling;
    int64_t heads = shape->heads, slots = how->action_slots, first = how->neutral_start ? as->delay : 0;
    for (int64_t i = 0; i < count; i++, t++, row++) {
        int64_t decided = t + as->delay;
        action_at(shape, acted, decided, 0, buffer->actions + row * heads);
        if (buffer->before) action_at(shape, acted, decided - 1, first, buffer->before + row * heads);
        int32_t *past = buffer->past + row * slots * heads;
        for (int64_t s = 0; s < slots; s++) {
            int64_t acts = s < as->slots ? decided - 1 - s : -1;
            action_at(shape, acted, acts, first, past + s * heads);
        }
    }
}

/* All that copying count frames from t on looks at: actions before and after them too. */
static stretch stretch_of(const xph_sampler *sampler, const uint8_t *packed, const xph_episode *episode,
                          const xph_shown *as, int64_t t, int64_t count)
{
    int64_t delay = as->delay, slots = as->slots;
    if (sampler->before && slots < 1) slots = 1;
    int64_t first = t + (delay < slots ? delay - slots : 0), end = t + count + delay;
    return (stretch){packed, first < 0 ? 0 : first, end > episode->frames ? episode->frames : end};
}

/* ---- dropped past actions ------------------------------------------------------------------------------ */

/* Past actions of count rows from row on: those of a stretch elsewhere, from its frame `skip` on, in the slots that the
 * rows see. Neutral ones before that episode, and behind it where it is short. */
static exphil_status take_elsewhere(const xph_sampler *sampler, xph_filler *with, const xph_shown *as,
                                    int64_t frame, int64_t skip, int64_t count, int64_t row,
                                    xph_batch_buffer *buffer, exphil_error *error)
{
    const exphil_dataset *dataset = sampler->dataset;
    const xph_row_shape *shape = &dataset->shape;
    const xph_episode *other = &dataset->episodes[xph_episode_of(dataset, frame)];
    int64_t slots = sampler->sampling.action_slots, last = other->frames - STRETCH,
            start = frame - other->first;
    start = start < last ? start : last < 0 ? 0 : last;
    stretch acted = {with->packed, start + skip - as->slots, start + skip + count - 1};
    if (acted.first < 0) acted.first = 0;
    if (acted.end > other->frames) acted.end = other->frames;
    if (acted.first < acted.end) {
        int64_t at = other->offset + acted.first, acts = acted.end - acted.first;
        XPH_TRY(xph_rows_verify(shape, other->block, at, acts, &with->piece, error));
        XPH_TRY(xph_rows_copy(shape, other->block, at, acts, &with->piece, NULL, NULL, with->packed, error));
    }
    int32_t *past = buffer->past + row * slots * shape->heads;
    for (int64_t i = 0; i < count * slots; i++) {
        int64_t t = start + skip + i / slots - 1 - i % slots;
        bool there = t < acted.end && i % slots < as->slots;
        action_at(shape, &acted, t, there ? acted.first : t + 1, past + i * shape->heads);
    }
    return xph_rows_recheck(shape, other->block, NULL, 0, past, count * slots, error);
}

/* Stretch by stretch of the rows from frame t of an episode on. What is drawn for a stretch lies at a place of its own in
 * the epoch's stream of numbers: a hash says where. */
static exphil_status drop_past(const xph_sampler *sampler, xph_filler *with, const xph_episode *episode,
                               const xph_shown *as, int64_t t, int64_t count, int64_t row,
                               xph_batch_buffer *buffer, exphil_error *error)
{
    if (!buffer->dropped) return EXPHIL_OK;
    for (int64_t done = 0, part; done < count; done += part) {
        int64_t skip = (t + done) % STRETCH;
        const xph_episode_facts *facts = &episode->block->facts;
        const uint64_t key[] = {facts->game, (uint64_t)(facts->port ? facts->port : episode->first),
                                (uint64_t)(facts->first_game_frame + episode->offset),
                                (uint64_t)((t + done) / STRETCH)};
        xph_rng rng = {.seed = sampler->sampling.seed,
                       .stream = XPH_RNG_DROP | (uint64_t)buffer->epoch << 8,
                       .position = xph_hash(key, sizeof key) << 2};
        bool drops = xph_rng_double(&rng) < sampler->sampling.drop_past;
        part = count - done < STRETCH - skip ? count - done : STRETCH - skip;
        memset(buffer->dropped + row + done, drops, (size_t)part);
        if (!drops) continue;
        int64_t frame = (int64_t)xph_rng_below(&rng, (uint64_t)sampler->dataset->frames);
        XPH_TRY(take_elsewhere(sampler, with, as, frame, skip, part, row + done, buffer, error));
    }
    return EXPHIL_OK;
}

static void copy_told(const xph_sampler *sampler, const xph_shown *as, int64_t count, int64_t row,
                      xph_batch_buffer *buffer)
{
    int64_t columns = xph_told_columns(&sampler->told);
    for (int64_t i = 0; columns && i < count; i++)
        memcpy(buffer->told + (row + i) * columns, as->told, (size_t)columns * sizeof *as->told);
}

/* Copies count frames of one episode, from its row t on, to the rows from row on. Row t of the episode is row offset + t
 * of the block. */
static exphil_status copy_rows(const xph_sampler *sampler, xph_filler *with, int64_t index,
                               const xph_block *block, int64_t offset, int64_t t, int64_t count, int64_t row,
                               xph_batch_buffer *buffer, exphil_error *error)
{
    const xph_row_shape *shape = &sampler->dataset->shape;
    const xph_episode *episode = &sampler->dataset->episodes[index];
    const xph_shown as = xph_sampler_shown(sampler, buffer->epoch, index);
    stretch acted = stretch_of(sampler, with->packed, episode, &as, t, count);
    int64_t acts = acted.end - acted.first;
    XPH_TRY(xph_rows_verify(shape, block, offset + acted.first, acts, &with->piece, error));
    XPH_TRY(xph_rows_copy(shape, block, offset + t, count, &with->piece, buffer->floats + row * shape->floats,
                          buffer->ids + row * shape->ids, NULL, error));
    XPH_TRY(xph_rows_copy(shape, block, offset + acted.first, acts, &with->piece, NULL, NULL, with->packed, error));
    copy_actions(sampler, &acted, &as, t, count, row, buffer);
    copy_told(sampler, &as, count, row, buffer);
    int64_t slots = sampler->sampling.action_slots;
    XPH_TRY(xph_rows_recheck(shape, block, buffer->ids + row * shape->ids, count,
                             buffer->actions + row * shape->heads, count, error));
    XPH_TRY(xph_rows_recheck(shape, block, NULL, 0, buffer->past + row * slots * shape->heads, count * slots,
                             error));
    xph_game_lane *lane = with->piece.lane;
    with->piece.lane = with->piece.own; /* the lane's own game stays */
    XPH_TRY(drop_past(sampler, with, episode, &as, t, count, row, buffer, error));
    with->piece.lane = lane;
    if (is_mirrored(sampler, buffer->epoch, block->facts.game)) mirror_rows(sampler, row, count, buffer);
    bool last_only = sampler->sampling.last_only;
    for (int64_t i = 0; i < count; i++) {
        bool counts = !last_only || i == count - 1;
        buffer->mask[row + i] = counts ? 1.0f : 0.0f;
        buffer->reset[row + i] = 0;
        atomic_fetch_add_explicit(&buffer->frames, counts, memory_order_relaxed);
    }
    return EXPHIL_OK;
}

/* Rows without frames: all zero; the first starts from a zero state, so that no state runs on into
 * padding. */
static void pad_rows(const xph_sampler *sampler, int64_t row, int64_t count, bool first,
                     xph_batch_buffer *buffer)
{
    const xph_row_shape *shape = &sampler->dataset->shape;
    int64_t heads = shape->heads, slots = sampler->sampling.action_slots;
    size_t rows = (size_t)count;
    memset(buffer->floats + row * shape->floats, 0, rows * (size_t)shape->floats * sizeof(float));
    memset(buffer->ids + row * shape->ids, 0, rows * (size_t)shape->ids * sizeof(int32_t));
    memset(buffer->past + row * slots * heads, 0, rows * (size_t)(slots * heads) * sizeof(int32_t));
    memset(buffer->actions + row * heads, 0, rows * (size_t)heads * sizeof(int32_t));
    memset(buffer->mask + row, 0, rows * sizeof(float));
    memset(buffer->reset + row, 0, rows);
    if (buffer->dropped) memset(buffer->dropped + row, 0, rows);
    int64_t columns = xph_told_columns(&sampler->told);
    if (columns) memset(buffer->told + row * columns, 0, rows * (size_t)columns * sizeof *buffer->told);
    if (first && count) buffer->reset[row] = 1;
}

static exphil_status fill_lane(const xph_sampler *sampler, xph_filler *with, int64_t lane,
                               xph_batch_buffer *buffer, exphil_error *error)
{
    int64_t index = buffer->index;
    const xph_order *order = &sampler->order;
    const xph_lanes *lanes = &order->lanes;
    int64_t time = sampler->sampling.time, row = lane * time, end = row + time, at = index * time;
    int64_t p = xph_order_piece(order, lane, at), pieces = lanes->lane[lane + 1];
    for (; row < end && p < pieces; p++) {
        const xph_piece *piece = &lanes->pieces[p];
        int64_t skip = at - lanes->begin[p], count = piece->frames - skip;
        if (count > end - row) count = end - row;
        const xph_episode *episode = &sampler->dataset->episodes[piece->episode];
        XPH_TRY(copy_rows(sampler, with, piece->episode, episode->block, episode->offset, piece->first + skip,
                          count, row, buffer, error));
        if (!skip) buffer->reset[row] = 1;
        row += count;
        at += count;
    }
    pad_rows(sampler, row, end - row, xph_order_lane_frames(order, lane) >= index * time, buffer);
    return EXPHIL_OK;
}

static exphil_status fill_window(xph_sampler *sampler, xph_filler *with, int64_t lane, xph_batch_buffer *buffer,
                                 exphil_error *error)
{
    int64_t time = sampler->sampling.time, row = lane * time, count = 0;
    int64_t window = buffer->index * sampler->sampling.batch + lane;
    if (window < sampler->order.windows.count) {
        xph_window_place place = {.rows = NULL};
        if (buffer->windows)
            place = buffer->windows[lane];
        else if (!xph_order_window(&sampler->order, window, &sampler->stop, &place.at))
            return EXPHIL_E_CANCELLED;
        const xph_episode *episode = &sampler->dataset->episodes[place.at.episode];
        const xph_block *block = place.rows ? place.rows->runs[place.at.run].block : episode->block;
        int64_t offset = place.rows ? -place.rows->runs[place.at.run].row : episode->offset;
        count = xph_usable_frames(episode, sampler->sampling.delay_frames) - place.at.row;
        if (count > time) count = time;
        XPH_TRY(copy_rows(sampler, with, place.at.episode, block, offset, place.at.row, count, row, buffer, error));
        buffer->reset[row] = 1;
    }
    pad_rows(sampler, row + count, time - count, true, buffer);
    return EXPHIL_OK;
}

/* ---- sampler ----------------------------------------------------------------------------------------- */

/* Blocks of a game that a chunk touches. */
static int64_t chunk_blocks(const exphil_sampling *how)
{
    int64_t slots = how->action_slots > how->delay_frames ? how->action_slots - how->delay_frames : 1;
    return (how->time + how->delay_frames + slots + XPH_GAME_FRAMES - 1) / XPH_GAME_FRAMES + 1;
}

static exphil_status make_filler(const xph_sampler *made, xph_filler *filler, bool corpus, exphil_error *error)
{
    filler->piece.context = made->context;
    filler->packed = xph_alloc(made->context, made->packed_bytes);
    if (!filler->packed) return xph_no_memory(made->packed_bytes, error);
    if (corpus) XPH_TRY(xph_piece_buffer_make(&filler->piece, &made->dataset->shape, error));
    if (!made->dataset->of_games) return EXPHIL_OK;
    XPH_TRY(xph_unpacker_create(made->context, &filler->piece.unpacker, error));
    return xph_game_lane_create(made->context, chunk_blocks(&made->sampling), &filler->piece.own, error);
}

static size_t most_block_bytes(const exphil_dataset *dataset)
{
    size_t most = 0;
    const xph_row_source *last = NULL;
    for (int64_t i = 0; dataset->of_games && i < dataset->episode_count; i++) {
        const xph_row_source *source = dataset->episodes[i].block->source;
        if (source && source != last && source->block_bytes > most) most = source->block_bytes;
        last = source;
    }
    return most;
}

/* Lanes that keep decoded blocks of their own, within sampling.memory_bytes; the others use their worker's, and decode
 * again what another lane has pushed out. */
static exphil_status count_lanes(const xph_sampler *made, int64_t *lanes, exphil_error *error)
{
    const exphil_sampling *how = &made->sampling;
    bool windows = how->mode == EXPHIL_MODE_WINDOW;
    size_t lane = xph_game_lane_bytes(chunk_blocks(how), most_block_bytes(made->dataset));
    places batch;
    XPH_TRY(place_batch(made, &batch, error));
    uint64_t least = (uint64_t)(how->buffers + 1) * batch.bytes +
                     (uint64_t)how->workers * (xph_unpacker_bytes() + lane + made->packed_bytes);
    if (windows) least += 2 * xph_window_rows_most(how, &made->dataset->shape);
    *lanes = windows ? 0 : how->batch;
    if (!how->memory_bytes) return EXPHIL_OK;
    if ((uint64_t)how->memory_bytes < least)
        return xph_fail(error, EXPHIL_E_INVALID, "sampling.memory_bytes is %lld, these batches need at least %llu",
                        (long long)how->memory_bytes, (unsigned long long)least);
    uint64_t fit = ((uint64_t)how->memory_bytes - least) / lane;
    if (fit < (uint64_t)*lanes) *lanes = (int64_t)fit;
    return EXPHIL_OK;
}

/* All that filling needs, so that it cannot run out of memory but for the games that lanes enter. */
static exphil_status make_places(xph_sampler *made, exphil_error *error)
{
    const exphil_dataset *dataset = made->dataset;
    const exphil_sampling *how = &made->sampling;
    int64_t most = how->time + how->delay_frames + how->action_slots + 1, lanes = 0;
    bool corpus = false;
    made->packed_bytes = (size_t)(most * dataset->shape.action_bytes);
    if (dataset->of_games) XPH_TRY(count_lanes(made, &lanes, error));
    made->fillers = xph_calloc(made->context, (size_t)how->workers, sizeof *made->fillers);
    if (!made->fillers) return xph_no_memory((size_t)how->workers * sizeof *made->fillers, error);
    for (int64_t i = 0; i < dataset->episode_count && !corpus; i++)
        corpus = dataset->episodes[i].block->corpus != NULL;
    for (int32_t i = 0; i < how->workers; i++) XPH_TRY(make_filler(made, &made->fillers[i], corpus, error));
    made->lanes = xph_calloc(made->context, (size_t)how->batch, sizeof *made->lanes);
    if (!made->lanes) return xph_no_memory((size_t)how->batch * sizeof *made->lanes, error);
    for (int64_t b = 0; b < lanes; b++)
        XPH_TRY(xph_game_lane_create(made->context, chunk_blocks(how), &made->lanes[b], error));
    return EXPHIL_OK;
}

static exphil_status make_sampler(xph_sampler *made, const exphil_dataset *dataset,
                                  const exphil_sampling *sampling, exphil_error *error)
{
    XPH_TRY(resolve(dataset, sampling, &made->sampling, &made->told, error));
    XPH_TRY(xph_dataset_snapshot(dataset, &made->dataset, error));
    XPH_TRY(make_mirror(made, error));
    XPH_TRY(xph_conditions_of(made->dataset, &made->told, &made->values, &made->values_bytes, error));
    XPH_TRY(make_places(made, error));
    return xph_order_create(made->dataset, &made->sampling, &made->order, error);
}

exphil_status xph_sampler_create(const exphil_dataset *dataset, const exphil_sampling *sampling,
                                 xph_sampler **sampler, exphil_error *error)
{
    exphil_context *context = xph_dataset_context(dataset);
    xph_sampler *made = xph_calloc(context, 1, sizeof *made);
    if (!made) return xph_no_memory(sizeof *made, error);
    made->context = xph_context_retain(context);
    made->planned = -1;
    exphil_status status = make_sampler(made, dataset, sampling, error);
    if (status < 0) {
        xph_sampler_destroy(made);
        return status;
    }
    *sampler = made;
    return EXPHIL_OK;
}

void xph_sampler_destroy(xph_sampler *sampler)
{
    if (!sampler) return;
    exphil_context *context = sampler->context;
    xph_batch_buffer_free(sampler, &sampler->own);
    for (int32_t i = 0; sampler->fillers && i < sampler->sampling.workers; i++) {
        xph_free(context, sampler->fillers[i].packed, sampler->packed_bytes);
        if (sampler->fillers[i].piece.context) xph_piece_buffer_free(&sampler->fillers[i].piece);
    }
    xph_free(context, sampler->fillers, (size_t)sampler->sampling.workers * sizeof *sampler->fillers);
    for (int64_t b = 0; sampler->lanes && b < sampler->sampling.batch; b++) xph_game_lane_free(sampler->lanes[b]);
    xph_free(context, sampler->lanes, (size_t)sampler->sampling.batch * sizeof *sampler->lanes);
    xph_window_rows_release(sampler->group);
    xph_free(context, sampler->values, sampler->values_bytes);
    xph_order_free(&sampler->order);
    xph_dataset_release(sampler->dataset);
    xph_free(context, sampler, sizeof *sampler);
    xph_context_release(context);
}

const exphil_sampling *xph_sampler_sampling(const xph_sampler *sampler)
{
    return &sampler->sampling;
}

const xph_told *xph_sampler_told(const xph_sampler *sampler)
{
    return &sampler->told;
}

uint64_t xph_sampler_values_hash(const xph_sampler *sampler)
{
    return sampler->values ? xph_hash(sampler->values, sampler->values_bytes) : 0;
}

void xph_sampler_fix(xph_sampler *sampler, const int32_t *conditions, int32_t delay_id)
{
    sampler->fixes = conditions != NULL;
    if (conditions) memcpy(sampler->fixed, conditions, (size_t)sampler->told.conditions * sizeof *conditions);
    sampler->fixed[EXPHIL_CONDITIONS_MAX] = delay_id;
    sampler->before = true;
}

const int32_t *xph_sampler_before(const xph_sampler *sampler)
{
    return sampler->own.before;
}

const exphil_dataset *xph_sampler_dataset(const xph_sampler *sampler)
{
    return sampler->dataset;
}

int64_t xph_sampler_batches(const xph_sampler *sampler)
{
    return sampler->order.batches;
}

int64_t xph_sampler_frames(const xph_sampler *sampler)
{
    return sampler->order.frames;
}

void xph_sampler_stop(xph_sampler *sampler)
{
    atomic_store_explicit(&sampler->stop, true, memory_order_relaxed);
}

exphil_status xph_sampler_place(const xph_sampler *sampler, int64_t epoch, int64_t index, exphil_error *error)
{
    if (epoch < 0 || epoch >= EPOCH_MOST)
        return xph_fail(error, EXPHIL_E_INVALID, "epoch is %lld, must be 0..2^48-1", (long long)epoch);
    if (index < 0 || index >= sampler->order.batches) {
        return xph_fail(error, EXPHIL_E_INVALID, "index is %lld; an epoch has %lld batches", (long long)index,
                        (long long)sampler->order.batches);
    }
    return EXPHIL_OK;
}

void xph_sampler_forget(xph_sampler *sampler)
{
    xph_window_rows_release(sampler->group);
    sampler->group = NULL;
}

int64_t xph_sampler_planned(const xph_sampler *sampler)
{
    return sampler->planned;
}

int32_t xph_sampler_workers(const xph_sampler *sampler)
{
    return sampler->sampling.workers;
}

/* The group that the order has at hand becomes the one whose rows are made next. One that was to be made before it is
 * made at once: batches seldom reach over two borders. */
static exphil_status enter_group(xph_sampler *sampler, xph_batch_buffer *buffer, exphil_error *error)
{
    for (int64_t i = 0; buffer->fresh && i < buffer->fresh->count; i++)
        XPH_TRY(xph_sampler_run(sampler, 0, i, buffer, error));
    xph_window_rows_release(buffer->fresh);
    xph_window_rows_release(sampler->group);
    buffer->fresh = sampler->group = NULL;
    XPH_TRY(xph_window_rows_create(&sampler->order, &sampler->group, error));
    buffer->fresh = xph_window_rows_retain(sampler->group);
    return EXPHIL_OK;
}

static exphil_status find_windows(xph_sampler *sampler, xph_batch_buffer *buffer, exphil_error *error)
{
    const xph_windows *windows = &sampler->order.windows;
    int64_t batch = sampler->sampling.batch;
    for (int64_t b = 0; b < batch && buffer->index * batch + b < windows->count; b++) {
        xph_window_place *place = &buffer->windows[b];
        if (!xph_order_window(&sampler->order, buffer->index * batch + b, &sampler->stop, &place->at))
            return EXPHIL_E_CANCELLED;
        const xph_window_rows *group = sampler->group;
        bool there = group && group->epoch == buffer->epoch && group->first == windows->first;
        if (!sampler->dataset->of_games) continue;
        if (!there) XPH_TRY(enter_group(sampler, buffer, error));
        place->rows = xph_window_rows_retain(sampler->group);
    }
    return EXPHIL_OK;
}

exphil_status xph_sampler_begin(xph_sampler *sampler, int64_t epoch, int64_t index, xph_batch_buffer *buffer,
                                exphil_error *error)
{
    xph_sampler_end(sampler, buffer);
    if (sampler->planned != epoch) {
        sampler->planned = -1;
        if (!xph_order_plan(&sampler->order, epoch, &sampler->stop)) return EXPHIL_E_CANCELLED;
        sampler->planned = epoch;
    }
    buffer->epoch = epoch;
    buffer->index = index;
    atomic_store(&buffer->frames, 0);
    return buffer->windows ? find_windows(sampler, buffer, error) : EXPHIL_OK;
}

exphil_status xph_sampler_run(xph_sampler *sampler, int32_t worker, int64_t run, xph_batch_buffer *buffer,
                              exphil_error *error)
{
    xph_filler *with = &sampler->fillers[worker];
    with->piece.lane = NULL;
    return xph_window_rows_make(buffer->fresh, &sampler->dataset->shape, run, &with->piece, error);
}

exphil_status xph_sampler_lane(xph_sampler *sampler, int32_t worker, int64_t lane, xph_batch_buffer *buffer,
                               exphil_error *error)
{
    xph_filler *with = &sampler->fillers[worker];
    with->piece.lane = sampler->lanes[lane];
    return sampler->sampling.mode == EXPHIL_MODE_WINDOW ? fill_window(sampler, with, lane, buffer, error)
                                                        : fill_lane(sampler, with, lane, buffer, error);
}

static exphil_status fill_all(xph_sampler *sampler, int64_t epoch, int64_t index, xph_batch_buffer *buffer,
                              exphil_error *error)
{
    XPH_TRY(xph_sampler_begin(sampler, epoch, index, buffer, error));
    for (int64_t i = 0; buffer->fresh && i < buffer->fresh->count; i++)
        XPH_TRY(xph_sampler_run(sampler, 0, i, buffer, error));
    for (int64_t lane = 0; lane < sampler->sampling.batch; lane++)
        XPH_TRY(xph_sampler_lane(sampler, 0, lane, buffer, error));
    return EXPHIL_OK;
}

/* All of a batch, by the caller alone. */
static exphil_status fill(xph_sampler *sampler, int64_t epoch, int64_t index, xph_batch_buffer *buffer,
                          exphil_error *error)
{
    exphil_status status = fill_all(sampler, epoch, index, buffer, error);
    if (status < 0) xph_sampler_forget(sampler);
    xph_sampler_end(sampler, buffer);
    return status;
}

exphil_status xph_sampler_batch(xph_sampler *sampler, int64_t epoch, int64_t index, exphil_batch *batch,
                                exphil_error *error)
{
    XPH_TRY(xph_sampler_place(sampler, epoch, index, error));
    if (!sampler->own.memory) XPH_TRY(xph_batch_buffer_create(sampler, &sampler->own, error));
    XPH_TRY(fill(sampler, epoch, index, &sampler->own, error));
    exphil_batch now;
    xph_batch_buffer_show(sampler, &sampler->own, &now);
    return XPH_GIVE(exphil_batch, batch, &now, error);
}
