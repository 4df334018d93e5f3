/* Evaluation of a policy alone: its past actions are its own decisions, everything else is recorded. That is
 * what a session of the episode's delay does that is told what its batches are told, is shown the rows of an
 * episode from its first one on, and takes the most likely
 * values: a lane here computes what a stream computes there, operation by operation, so decisions and logits
 * have the same bits.
 *
 * Lanes go through whole episodes side by side. They are dealt to the workers: each runs its lanes with a net
 * of its own on one thread, some frames at a time, so that workers seldom wait for each other. A device with
 * its own memory has one net for all lanes. Sums are kept for each episode and then added in one order: the
 * figures depend on neither lanes nor workers. */
#include "train/walk.h"

enum { SLICE = 32, LANES_MOST = 64, LANES_MOST_WINDOW = 16 };

/* An episode that is played, and what came of it. */
typedef struct episode {
    int64_t number, first, frames; /* its first frame in the dataset; rows that have a target */
    int64_t done, changes, exact, exact_change;
    double nll;
} episode;

/* Where a lane stands, and the rows that it is shown next. */
typedef struct lane {
    episode *of; /* NULL: there is none left */
    xph_shown as;
    int64_t t, count;
    float *floats;          /* [SLICE,F] */
    int32_t *ids, *targets; /* [SLICE,tables], [SLICE,A] */
    int32_t *before;        /* [A] recorded, of the frame before */
    int32_t *past;          /* [slots,A] decided, newest first; neutral in the slots that it does not see */
    int32_t *decided;       /* [A] the newest, seen or not */
    /* Of a slice that is shown afterwards: [SLICE,A] each, [SLICE,L]. Else of one frame. */
    int32_t *drawn, *earlier;
    double *logits;
} lane;

/* The lanes of one worker. */
typedef struct group {
    struct alone *of;
    xph_net *net;
    lane *lanes;
    int64_t count;
    unsigned char *staged; /* what the device takes for a pass, in one piece: */
    size_t staged_bytes;
    float *floats;                            /* [rows,F] */
    int32_t *ids, *past, *previous, *actions; /* [rows,tables], [rows,slots*A], [lanes,A], [rows,A] targets */
    uint8_t *reset;                           /* [rows] */
    int32_t *drawn;                           /* [lanes,A] */
    void *logits;                             /* [lanes,L], or [rows,L] of given actions */
    unsigned char *memory;
    size_t memory_bytes;
    unsigned char *d_staged, *state[2]; /* on the device; state [lanes,state] each */
    int32_t *d_drawn;
    unsigned char *d_memory;
    size_t d_memory_bytes;
    bool lagging, back; /* as in a session: xph_net_io */
    exphil_status status;
    int64_t bad_head; /* of EXPHIL_E_NUMERIC */
} group;

typedef struct alone {
    exphil_context *context;
    xph_device *device;
    const exphil_model *model;
    const xph_model_shape *shape;
    const exphil_spec *spec;
    const void *weights, *packed;
    const xph_sampler *sampler;
    const exphil_dataset *dataset;
    xph_sample_head how[EXPHIL_HEADS_MAX];
    xph_see see; /* NULL: nobody looks */
    void *see_arg;
    bool windowed, given; /* given: the logits of a head depend on the values of the heads before it */
    int64_t span;         /* frames of a pass: 1, or the window */
    uint64_t *keys;       /* [all episodes] */
    episode *episodes;    /* those that are played, longest first */
    lane *lanes;
    group *groups;
    unsigned char *rows; /* of all lanes */
    int64_t all, episode_count, next, lane_count, group_count;
    size_t row_bytes; /* of one lane */
} alone;

/* ---- which episodes ------------------------------------------------------------------------------------ */

static exphil_status look_at(const alone *a, int64_t number, episode *found, exphil_error *error)
{
    exphil_episode_info info = EXPHIL_EPISODE_INFO_INIT;
    XPH_TRY(exphil_dataset_episode(a->dataset, number, &info, error));
    int64_t frames = info.frames > a->shape->delay ? info.frames - a->shape->delay : 0;
    *found = (episode){.number = number, .first = info.first, .frames = frames};
    return EXPHIL_OK;
}

/* Episodes in a fixed order that has nothing to do with theirs, until there are enough frames; then the
 * longest first, so that lanes end together. */
static exphil_status choose(alone *a, int64_t most, exphil_error *error)
{
    const uint64_t low = UINT32_MAX;
    int64_t frames = 0;
    episode found;
    for (int64_t i = 0; i < a->all; i++) a->keys[i] = (xph_hash(&i, sizeof i) & ~low) | (uint64_t)i;
    xph_sort(a->keys, a->all);
    for (int64_t i = 0; i < a->all && frames < most; i++) {
        uint64_t number = a->keys[i] & low;
        XPH_TRY(look_at(a, (int64_t)number, &found, error));
        if (found.frames) a->keys[a->episode_count++] = (low - (uint64_t)found.frames) << 32 | number;
        frames += found.frames;
    }
    xph_sort(a->keys, a->episode_count);
    a->episodes = xph_calloc(a->context, (size_t)a->episode_count, sizeof *a->episodes);
    if (!a->episodes) return xph_no_memory((size_t)a->episode_count * sizeof *a->episodes, error);
    for (int64_t i = 0; i < a->episode_count; i++)
        XPH_TRY(look_at(a, (int64_t)(a->keys[i] & low), &a->episodes[i], error));
    /* As many lanes as the longest episode keeps busy. */
    int64_t most_lanes = a->windowed ? LANES_MOST_WINDOW : LANES_MOST;
    a->lane_count = (frames + a->episodes[0].frames - 1) / a->episodes[0].frames;
    if (a->lane_count > most_lanes) a->lane_count = most_lanes;
    return EXPHIL_OK;
}

/* ---- memory -------------------------------------------------------------------------------------------- */

/* Cuts 64-byte aligned parts of a block; without base it only measures. */
static void *cut(unsigned char *base, size_t *at, size_t bytes)
{
    void *part = base ? base + *at : NULL;
    *at += (bytes + 63) / 64 * 64;
    return part;
}

static size_t cells(int64_t a, int64_t b)
{
    return (size_t)(a * b) * 4;
}

static size_t cut_lane(const alone *a, unsigned char *base, lane *l)
{
    size_t at = 0;
    l->floats = cut(base, &at, cells(SLICE, a->shape->floats));
    l->ids = cut(base, &at, cells(SLICE, a->shape->tables));
    l->targets = cut(base, &at, cells(SLICE, a->shape->heads));
    l->before = cut(base, &at, cells(1, a->shape->heads));
    l->past = cut(base, &at, cells(a->shape->slots, a->shape->heads));
    l->decided = cut(base, &at, cells(1, a->shape->heads));
    l->drawn = cut(base, &at, cells(a->see ? SLICE : 0, a->shape->heads));
    l->earlier = cut(base, &at, cells(a->see ? SLICE : 0, a->shape->heads));
    l->logits = cut(base, &at, 2 * cells(a->see ? SLICE : 1, a->shape->logits));
    return at;
}

static size_t cut_host(const alone *a, group *g)
{
    const xph_model_shape *shape = a->shape;
    int64_t rows = g->count * a->span;
    size_t at = 0;
    g->staged = g->memory;
    g->floats = cut(g->memory, &at, cells(rows, shape->floats));
    g->ids = cut(g->memory, &at, cells(rows, shape->tables));
    g->past = cut(g->memory, &at, cells(rows, shape->slots * shape->heads));
    g->previous = cut(g->memory, &at, cells(g->count, shape->heads));
    g->actions = cut(g->memory, &at, cells(rows, shape->heads));
    g->reset = cut(g->memory, &at, (size_t)rows);
    g->staged_bytes = at;
    g->drawn = cut(g->memory, &at, cells(g->count, shape->heads));
    g->logits =
        cut(g->memory, &at, (size_t)((a->given ? rows : g->count) * shape->logits) * shape->real_bytes);
    return at;
}

static size_t cut_device(const alone *a, group *g)
{
    const bool host_memory = a->device->backend->host_memory;
    size_t at = 0, state = a->windowed ? 0 : (size_t)a->shape->state * a->shape->real_bytes;
    for (int i = 0; i < 2; i++) g->state[i] = cut(g->d_memory, &at, (size_t)g->count * state);
    g->d_staged = host_memory ? g->staged : cut(g->d_memory, &at, g->staged_bytes);
    g->d_drawn = host_memory ? g->drawn : cut(g->d_memory, &at, cells(g->count, a->shape->heads));
    return at;
}

static exphil_status make_group(alone *a, group *g, exphil_error *error)
{
    const xph_backend *backend = a->device->backend;
    uint32_t flags = backend->host_memory ? XPH_NET_INLINE : 0;
    void *block = NULL;
    g->of = a;
    XPH_TRY(xph_net_create(a->model, g->count, a->span, flags, &g->net, error));
    g->memory_bytes = cut_host(a, g);
    exphil_status status = backend->host_alloc(a->device, g->memory_bytes, &block);
    if (status < 0) return xph_no_device_memory(error, a->device, status, g->memory_bytes);
    g->memory = block;
    (void)cut_host(a, g);
    g->d_memory_bytes = cut_device(a, g);
    if (g->d_memory_bytes == 0) return EXPHIL_OK; /* windows on the CPU carry nothing */
    status = backend->alloc(a->device, g->d_memory_bytes, &block);
    if (status < 0) return xph_no_device_memory(error, a->device, status, g->d_memory_bytes);
    g->d_memory = block;
    (void)cut_device(a, g);
    status = backend->zero(xph_net_stream(g->net), g->d_memory, g->d_memory_bytes);
    return status < 0 ? xph_fail_device(error, a->device, status, "the device could not clear a state")
                      : EXPHIL_OK;
}

static exphil_status make_lanes(alone *a, exphil_error *error)
{
    int64_t workers = a->device->backend->host_memory ? xph_workers(a->context) : 1;
    lane measured;
    a->group_count = workers < a->lane_count ? workers : a->lane_count;
    a->row_bytes = cut_lane(a, NULL, &measured);
    a->lanes = xph_calloc(a->context, (size_t)a->lane_count, sizeof *a->lanes);
    a->groups = xph_calloc(a->context, (size_t)a->group_count, sizeof *a->groups);
    a->rows = xph_calloc(a->context, (size_t)a->lane_count, a->row_bytes);
    if (!a->lanes || !a->groups || !a->rows)
        return xph_no_memory((size_t)a->lane_count * a->row_bytes, error);
    for (int64_t i = 0; i < a->lane_count; i++)
        (void)cut_lane(a, a->rows + (size_t)i * a->row_bytes, &a->lanes[i]);
    for (int64_t i = 0; i < a->group_count; i++) {
        int64_t first = a->lane_count * i / a->group_count, end = a->lane_count * (i + 1) / a->group_count;
        a->groups[i].lanes = a->lanes + first;
        a->groups[i].count = end - first;
        XPH_TRY(make_group(a, &a->groups[i], error));
    }
    return EXPHIL_OK;
}

static void free_group(const alone *a, group *g)
{
    const xph_backend *backend = a->device->backend;
    if (g->net) backend->stream_wait(xph_net_stream(g->net));
    if (g->d_memory) backend->free(a->device, g->d_memory, g->d_memory_bytes);
    if (g->memory) backend->host_free(a->device, g->memory, g->memory_bytes);
    xph_net_destroy(g->net);
}

static void free_alone(alone *a)
{
    for (int64_t i = 0; a->groups && i < a->group_count; i++) free_group(a, &a->groups[i]);
    xph_free(a->context, a->groups, (size_t)a->group_count * sizeof *a->groups);
    xph_free(a->context, a->lanes, (size_t)a->lane_count * sizeof *a->lanes);
    xph_free(a->context, a->rows, (size_t)a->lane_count * a->row_bytes);
    xph_free(a->context, a->episodes, (size_t)a->episode_count * sizeof *a->episodes);
    xph_free(a->context, a->keys, (size_t)a->all * sizeof *a->keys);
}

/* ---- rows of the dataset, on the calling thread -------------------------------------------------------- */

static void neutral(const alone *a, int32_t *actions, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        for (int64_t h = 0; h < a->shape->heads; h++)
            actions[i * a->shape->heads + h] = a->spec->heads[h].neutral;
}

/* What was recorded before the first target, as a batch of the sampler has it. */
static exphil_status begin(alone *a, lane *l, exphil_error *error)
{
    l->of = a->next < a->episode_count ? &a->episodes[a->next++] : NULL;
    l->t = 0;
    if (!l->of) return EXPHIL_OK;
    l->as = xph_sampler_shown(a->sampler, 0, l->of->number);
    neutral(a, l->past, a->shape->slots);
    neutral(a, l->decided, 1);
    neutral(a, l->before, 1);
    if (l->as.delay == 0 || a->shape->neutral_start) return EXPHIL_OK;
    return exphil_dataset_frame(a->dataset, l->of->first + l->as.delay - 1, NULL, NULL, l->before, error);
}

static exphil_status fill(alone *a, lane *l, exphil_error *error)
{
    const xph_model_shape *shape = a->shape;
    if (!l->of || l->t == l->of->frames) XPH_TRY(begin(a, l, error));
    l->count = l->of ? l->of->frames - l->t : 0;
    if (l->count > SLICE) l->count = SLICE;
    for (int64_t i = 0; i < l->count; i++) {
        int64_t frame = l->of->first + l->t + i;
        float *floats = l->floats + i * shape->floats;
        int32_t *ids = l->ids + i * shape->tables, *target = l->targets + i * shape->heads;
        int64_t delay = l->as.delay;
        XPH_TRY(exphil_dataset_frame(a->dataset, frame, floats, ids, delay ? NULL : target, error));
        if (delay) XPH_TRY(exphil_dataset_frame(a->dataset, frame + delay, NULL, NULL, target, error));
        memcpy(ids + shape->ids, l->as.told, cells(1, shape->told));
    }
    return EXPHIL_OK;
}

/* ---- a pass, on a worker ------------------------------------------------------------------------------- */

/* The rows of a window move up by one, the newest comes last: width cells of 4 bytes each. */
static void push(void *rows, int64_t span, int64_t width, const void *row)
{
    size_t bytes = cells(1, width), rest = bytes * (size_t)(span - 1);
    if (bytes == 0) return;
    memmove(rows, (unsigned char *)rows + bytes, rest);
    memcpy((unsigned char *)rows + rest, row, bytes);
}

static exphil_status stage(group *g, int64_t i, int64_t at)
{
    const alone *a = g->of;
    const xph_model_shape *shape = a->shape;
    const lane *l = &g->lanes[i];
    int64_t row = i * a->span, t = l->t + at, slots = shape->slots * shape->heads;
    if (t == 0) { /* nothing of the episode before is left in the window */
        memset(g->floats + row * shape->floats, 0, cells(a->span, shape->floats));
        memset(g->ids + row * shape->tables, 0, cells(a->span, shape->tables));
        memset(g->past + row * slots, 0, cells(a->span, slots));
    }
    push(g->floats + row * shape->floats, a->span, shape->floats, l->floats + at * shape->floats);
    push(g->ids + row * shape->tables, a->span, shape->tables, l->ids + at * shape->tables);
    push(g->past + row * slots, a->span, slots, l->past);
    push(g->actions + row * shape->heads, a->span, shape->heads, l->targets + at * shape->heads);
    memcpy(g->previous + i * shape->heads, l->decided, cells(1, shape->heads));
    if (a->windowed) {
        memset(g->reset + row, 0, (size_t)a->span);
        g->reset[row + a->span - 1 - (t < a->span - 1 ? t : a->span - 1)] = 1;
        return EXPHIL_OK;
    }
    size_t state = (size_t)shape->state * shape->real_bytes;
    if (t > 0 || state == 0) return EXPHIL_OK;
    g->lagging = false;
    return a->device->backend->zero(xph_net_stream(g->net), g->state[0] + (size_t)i * state, state);
}

static const void *there(const group *g, const void *staged)
{
    return g->d_staged + ((const unsigned char *)staged - g->staged);
}

static exphil_status run_net(group *g)
{
    const alone *a = g->of;
    const xph_backend *backend = a->device->backend;
    xph_stream *stream = xph_net_stream(g->net);
    bool carried = !a->windowed && a->shape->state;
    const xph_net_io io = {.floats = there(g, g->floats),
                           .ids = there(g, g->ids),
                           .past = there(g, g->past),
                           .actions = there(g, g->actions),
                           .reset = a->windowed ? there(g, g->reset) : NULL,
                           .state_in = carried ? g->state[0] : NULL,
                           .state_out = carried ? g->state[1] : NULL,
                           .ld_state = a->shape->state,
                           .lagging = g->lagging,
                           .back = g->back};
    if (g->d_staged != g->staged) XPH_TRY(backend->upload(stream, g->d_staged, g->staged, g->staged_bytes));
    XPH_TRY(
        xph_net_sample(g->net, a->weights, a->packed, &io, a->how, NULL, there(g, g->previous), g->d_drawn));
    if (g->d_drawn != g->drawn)
        XPH_TRY(backend->download(stream, g->drawn, g->d_drawn, cells(g->count, a->shape->heads)));
    if (a->given) XPH_TRY(xph_net_heads(g->net));
    int64_t rows = a->given ? g->count * a->span : g->count;
    XPH_TRY(backend->download(stream, g->logits, xph_net_logits(g->net),
                              (size_t)(rows * a->shape->logits) * a->shape->real_bytes));
    XPH_TRY(backend->stream_wait(stream));
    unsigned char *before = g->state[0];
    g->state[0] = g->state[1];
    g->state[1] = before;
    g->lagging = true;
    g->back = !g->back;
    return EXPHIL_OK;
}

/* Logits of lane i as doubles. */
static void fetch_logits(const group *g, int64_t i, double *logits)
{
    const alone *a = g->of;
    int64_t at = a->given ? (i + 1) * a->span - 1 : i, first = at * a->shape->logits;
    for (int64_t k = 0; k < a->shape->logits; k++)
        logits[k] = a->shape->type == XPH_F64 ? ((const double *)g->logits)[first + k]
                                              : (double)((const float *)g->logits)[first + k];
}

/* -log p of the target, summed over heads. */
static double judge(const group *g, const double *logits, const int32_t *target, int64_t *bad_head)
{
    xph_seen seen = {
        .target = target, .logits = logits, .value = __builtin_nan(""), .outcome = __builtin_nan("")};
    double sum = 0.0;
    int64_t bad = xph_judge(g->of->model, &seen);
    if (bad >= 0 && *bad_head < 0) *bad_head = bad;
    for (int64_t h = 0; h < g->of->shape->heads; h++) sum += seen.nll[h];
    return sum;
}

/* What was decided is past from now on, and counts where it is what was done. */
static void count_lane(group *g, int64_t i, int64_t at)
{
    const alone *a = g->of;
    lane *l = &g->lanes[i];
    size_t bytes = cells(1, a->shape->heads);
    const int32_t *drawn = g->drawn + i * a->shape->heads, *target = l->targets + at * a->shape->heads;
    bool exact = memcmp(drawn, target, bytes) == 0, change = memcmp(l->before, target, bytes) != 0;
    l->of->done++;
    l->of->exact += exact;
    l->of->changes += change;
    l->of->exact_change += exact && change;
    double *logits = l->logits + (a->see ? at * a->shape->logits : 0);
    fetch_logits(g, i, logits);
    l->of->nll += judge(g, logits, target, &g->bad_head);
    if (a->see) {
        memcpy(l->drawn + at * a->shape->heads, drawn, bytes);
        memcpy(l->earlier + at * a->shape->heads, l->before, bytes);
    }
    memcpy(l->before, target, bytes);
    memcpy(l->decided, drawn, bytes);
    if (l->as.slots == 0) return;
    memmove(l->past + a->shape->heads, l->past, bytes * (size_t)(l->as.slots - 1));
    memcpy(l->past, drawn, bytes);
}

static void run_group(void *arg, int64_t index, int32_t worker)
{
    group *g = &((alone *)arg)->groups[index];
    int64_t most = 0;
    (void)worker;
    for (int64_t i = 0; i < g->count; i++) most = g->lanes[i].count > most ? g->lanes[i].count : most;
    for (int64_t at = 0; at < most && g->status >= 0 && g->bad_head < 0; at++) {
        for (int64_t i = 0; i < g->count && g->status >= 0; i++)
            if (at < g->lanes[i].count) g->status = stage(g, i, at);
        if (g->status >= 0) g->status = run_net(g);
        for (int64_t i = 0; i < g->count && g->status >= 0; i++)
            if (at < g->lanes[i].count) count_lane(g, i, at);
    }
    for (int64_t i = 0; i < g->count; i++) g->lanes[i].t += g->lanes[i].count;
}

/* ---- all of it ----------------------------------------------------------------------------------------- */

/* Frames of the slice, lane after lane; lanes have moved on by it. */
static exphil_status show(const alone *a, exphil_error *error)
{
    const int64_t heads = a->shape->heads;
    xph_seen seen = {.value = __builtin_nan(""), .outcome = __builtin_nan("")};
    for (int64_t i = 0; a->see && i < a->lane_count; i++) {
        const lane *l = &a->lanes[i];
        for (int64_t at = 0; at < l->count; at++) {
            seen.frame = l->of->first + l->t - l->count + at;
            seen.floats = l->floats + at * a->shape->floats;
            seen.ids = l->ids + at * a->shape->tables;
            seen.target = l->targets + at * heads;
            seen.before = l->earlier + at * heads;
            seen.logits = l->logits + at * a->shape->logits;
            (void)xph_judge(a->model, &seen);
            memcpy(seen.likely, l->drawn + at * heads, cells(1, heads));
            XPH_TRY(a->see(a->see_arg, &seen, error));
        }
    }
    return EXPHIL_OK;
}

static exphil_status slice(alone *a, bool *more, exphil_error *error)
{
    *more = false;
    if (xph_cancelled(a->context))
        return xph_fail(error, EXPHIL_E_CANCELLED, "evaluation cancelled by the host");
    for (int64_t i = 0; i < a->lane_count; i++) {
        XPH_TRY(fill(a, &a->lanes[i], error));
        *more |= a->lanes[i].count > 0;
    }
    if (*more) xph_parallel(a->context, run_group, a, a->group_count);
    for (int64_t i = 0; i < a->group_count; i++) {
        const group *g = &a->groups[i];
        if (g->status < 0)
            return xph_fail_device(error, a->device, g->status, "evaluation: the device failed");
        if (g->bad_head >= 0)
            return xph_fail(error, EXPHIL_E_NUMERIC,
                            "evaluation: with its own past the logits of head %s are not finite",
                            a->spec->heads[g->bad_head].name);
    }
    return show(a, error);
}

/* Episodes and lanes; nothing is written to what is the device's. */
static exphil_status make(alone *a, int64_t most, exphil_error *error)
{
    a->keys = xph_calloc(a->context, (size_t)a->all, sizeof *a->keys);
    if (!a->keys) return xph_no_memory((size_t)a->all * sizeof *a->keys, error);
    XPH_TRY(choose(a, most, error));
    return make_lanes(a, error);
}

static exphil_status run(alone *a, int64_t most, exphil_error *error)
{
    bool more = true;
    XPH_TRY(make(a, most, error));
    for (int64_t i = 0; i < a->group_count; i++) {
        a->groups[i].bad_head = -1;
        memset(a->groups[i].memory, 0, a->groups[i].memory_bytes);
    }
    while (more) XPH_TRY(slice(a, &more, error));
    return EXPHIL_OK;
}

static xph_alone_sums sum_up(const alone *a)
{
    xph_alone_sums sums = {.frames = 0};
    for (int64_t i = 0; i < a->episode_count; i++) {
        const episode *e = &a->episodes[i];
        sums.frames += e->done;
        sums.changes += e->changes;
        sums.exact += e->exact;
        sums.exact_change += e->exact_change;
        sums.nll += e->nll;
    }
    return sums;
}

static exphil_status alone_of(const exphil_model *model, const exphil_dataset *dataset, alone *a,
                              exphil_error *error)
{
    const xph_model_shape *shape = xph_model_shape_of(model);
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    XPH_TRY(exphil_dataset_query(dataset, &info, error));
    *a = (alone){.context = xph_model_context(model),
                 .device = xph_context_backend(xph_model_context(model)),
                 .model = model,
                 .shape = shape,
                 .spec = xph_model_spec(model),
                 .dataset = dataset,
                 .windowed = shape->mode == EXPHIL_MODE_WINDOW,
                 .given = shape->autoregressive,
                 .span = shape->mode == EXPHIL_MODE_WINDOW ? shape->window : 1,
                 .all = info.episodes};
    for (int64_t h = 0; h < shape->heads; h++) a->how[h] = (xph_sample_head){1.0f, 0.5f, 0.5f, 1};
    return EXPHIL_OK;
}

exphil_status xph_walk_alone(const exphil_model *model, const void *weights, const void *packed,
                             const xph_sampler *sampler, int64_t most, xph_see see, void *arg,
                             xph_alone_sums *sums, exphil_error *error)
{
    alone a;
    XPH_TRY(alone_of(model, xph_sampler_dataset(sampler), &a, error));
    a.weights = weights;
    a.packed = packed;
    a.sampler = sampler;
    a.see = see;
    a.see_arg = arg;
    exphil_status status = run(&a, most, error);
    if (status >= 0) *sums = sum_up(&a);
    free_alone(&a);
    return status;
}

exphil_status xph_alone_held(const exphil_model *model, const exphil_dataset *dataset, int64_t most,
                             xph_held *held, exphil_error *error)
{
    const exphil_context *context = xph_model_context(model);
    xph_held before = xph_context_held(context);
    alone a;
    XPH_TRY(alone_of(model, dataset, &a, error));
    exphil_status status = make(&a, most, error);
    if (status >= 0) *held = xph_held_since(context, &before);
    if (status >= 0) held->host += xph_net_planning_bytes() + xph_dataset_reader_bytes(dataset);
    free_alone(&a);
    return status;
}
