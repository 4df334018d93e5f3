/* Rows of a batch: copied or made, with the targets d frames later and the actions decided before them, mirrored, and with
 * past actions from elsewhere where they are dropped. All of it for any number of workers at once. */
#include "data/filling.h"
#include "data/row_returns.h"

#define STRETCH 256 /* frames whose past actions are dropped together */

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
    if (slots < 1 && (sampler->before || sampler->sampling.balance_change > 0)) slots = 1;
    int64_t first = t + (delay < slots ? delay - slots : 0), end = t + count + delay;
    return (stretch){packed, first < 0 ? 0 : first, end > episode->frames ? episode->frames : end};
}

/* ---- weight ------------------------------------------------------------------------------------------ */

static void weigh_rows(const xph_sampler *sampler, const xph_episode *episode, const stretch *acted,
                       const xph_shown *as, int64_t t, int64_t count, int64_t row, xph_batch_buffer *buffer)
{
    bool last_only = sampler->sampling.last_only;
    int64_t frames = last_only ? count > 0 : count;
    for (int64_t i = 0; i < count; i++) {
        buffer->mask[row + i] = !last_only || i == count - 1 ? 1.0f : 0.0f;
        buffer->reset[row + i] = 0;
    }
    if (sampler->weighing)
        frames -= xph_weighing_rows(sampler->weighing, episode, as->delay, t, count, acted->packed,
                                    acted->first, buffer->mask + row);
    atomic_fetch_add_explicit(&buffer->frames, frames, memory_order_relaxed);
}

/* ---- mirror ------------------------------------------------------------------------------------------ */

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
    XPH_TRY(xph_rows_copy(shape, block, offset + acted.first, acts, &with->piece, NULL, NULL, with->packed,
                          error));
    copy_actions(sampler, &acted, &as, t, count, row, buffer);
    copy_told(sampler, &as, count, row, buffer);
    int64_t slots = sampler->sampling.action_slots;
    XPH_TRY(xph_rows_recheck(shape, block, buffer->ids + row * shape->ids, count,
                             buffer->actions + row * shape->heads, count, error));
    XPH_TRY(xph_rows_recheck(shape, block, NULL, 0, buffer->past + row * slots * shape->heads, count * slots,
                             error));
    weigh_rows(sampler, episode, &acted, &as, t, count, row, buffer);
    for (int64_t i = 0; i < count; i++) buffer->rows[row + i] = episode->first + t + i;
    if (buffer->returns)
        xph_row_returns_get(sampler->dataset->returns, episode, t, count, as.delay, buffer->returns + row);
    xph_game_lane *lane = with->piece.lane;
    with->piece.lane = with->piece.own; /* the lane's own game stays */
    XPH_TRY(drop_past(sampler, with, episode, &as, t, count, row, buffer, error));
    with->piece.lane = lane;
    if (is_mirrored(sampler, buffer->epoch, block->facts.game)) mirror_rows(sampler, row, count, buffer);
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
    for (int64_t i = 0; i < count; i++) buffer->rows[row + i] = -1;
    for (int64_t i = 0; buffer->returns && i < count; i++) buffer->returns[row + i] = __builtin_nanf("");
    memset(buffer->reset + row, 0, rows);
    if (buffer->dropped) memset(buffer->dropped + row, 0, rows);
    int64_t columns = xph_told_columns(&sampler->told);
    if (columns) memset(buffer->told + row * columns, 0, rows * (size_t)columns * sizeof *buffer->told);
    if (first && count) buffer->reset[row] = 1;
}

exphil_status xph_fill_lane(const xph_sampler *sampler, xph_filler *with, int64_t lane,
                            xph_batch_buffer *buffer, exphil_error *error)
{
    int64_t index = buffer->index;
    const xph_order *order = &sampler->order;
    const xph_lanes *lanes = &order->lanes;
    int64_t time = sampler->sampling.time, row = lane * time, end = row + time, at = index * time;
    int64_t joint = sampler->sampling.first_lane + lane;
    int64_t p = xph_order_piece(order, joint, at), pieces = lanes->lane[joint + 1];
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
    pad_rows(sampler, row, end - row, xph_order_lane_frames(order, joint) >= index * time, buffer);
    return EXPHIL_OK;
}

exphil_status xph_fill_window(xph_sampler *sampler, xph_filler *with, int64_t lane, xph_batch_buffer *buffer,
                              exphil_error *error)
{
    int64_t time = sampler->sampling.time, row = lane * time, count = 0;
    int64_t window = xph_sampler_window(sampler, buffer->index) + lane;
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
        XPH_TRY(copy_rows(sampler, with, place.at.episode, block, offset, place.at.row, count, row, buffer,
                          error));
        buffer->reset[row] = 1;
    }
    pad_rows(sampler, row + count, time - count, true, buffer);
    return EXPHIL_OK;
}
