/* Chunks as flat blocks: written where they were played, taken where they are learnt from. A block is copied to its place in
 * a rollout that holds no rows, where nothing looks at it, and checked there: it counts once all of it is sound, and nobody
 * changes it between. */
#include "learn/block.h"

#include <exphil/blocks.h>

#define MAGIC 0x31304B434F4C4258ull /* "XBLOCK01": another number when parts or their meaning change */

enum { HASHED_AT = offsetof(xph_flat_head, bytes) };

/* ---- layout -------------------------------------------------------------------------------------------- */

size_t xph_flat_parts(const exphil_rollout *r, int64_t streams, xph_flat_part parts[XPH_FLAT_PARTS])
{
    const xph_model_shape *s = r->shape;
    const xph_flat_part all[XPH_FLAT_PARTS] = {
        {"state", XPH_FLAT_FLOATS, r->state, 1, s->state, sizeof(float), 0},
        {"next value", XPH_FLAT_FLOATS, (void *)r->next_value, 1, 1, sizeof(float), 0},
        {"floats", XPH_FLAT_FLOATS, (void *)r->floats, r->rows, s->floats, sizeof(float), 0},
        {"ids", XPH_FLAT_IDS, (void *)r->ids, r->rows, s->ids, sizeof(int32_t), 0},
        {"past actions", XPH_FLAT_ACTIONS, (void *)r->past, r->rows, s->slots * s->heads, sizeof(int32_t), 0},
        {"actions", XPH_FLAT_ACTIONS, (void *)r->actions, r->rows, s->heads, sizeof(int32_t), 0},
        {"logits", XPH_FLAT_FLOATS, (void *)r->logits, r->rows, s->logits, sizeof(float), 0},
        {"value", XPH_FLAT_FLOATS, (void *)r->value, r->rows, 1, sizeof(float), 0},
        {"reward", XPH_FLAT_FLOATS, (void *)r->reward, r->rows, 1, sizeof(float), 0},
        {"value at the cut", XPH_FLAT_FLOATS, (void *)r->cut_off, r->rows, 1, sizeof(float), 0},
        {"taken", XPH_FLAT_FLAGS, r->taken, r->rows, 1, 1, 0},
        {"log-probability", XPH_FLAT_LOGS, (void *)r->log_probability, r->rows, 1, sizeof(double), 0},
        {"end", XPH_FLAT_ENDS, r->end, r->rows, 1, 1, 0},
        {"reset", XPH_FLAT_RESETS, r->reset, r->rows, 1, 1, 0},
        {"episode's reward", XPH_FLAT_DOUBLES, (void *)r->ended_sum, r->rows, 1, sizeof(double), 0},
        {"episode's frames", XPH_FLAT_FRAMES, (void *)r->ended_frames, r->rows, 1, sizeof(int64_t), 0},
    };
    xph_cutter c = {NULL, 0};
    (void)xph_cut(&c, 1, sizeof(xph_flat_head), 1);
    for (int i = 0; i < XPH_FLAT_PARTS; i++) {
        parts[i] = all[i];
        parts[i].at = c.at;
        (void)xph_cut(&c, streams, parts[i].rows * parts[i].width, parts[i].element);
    }
    return c.at;
}

static size_t bytes_of(const xph_flat_part *part, int64_t streams)
{
    return (size_t)(streams * part->rows * part->width) * part->element;
}

size_t exphil_rollout_block_size(const exphil_rollout *rollout)
{
    xph_flat_part parts[XPH_FLAT_PARTS];
    return rollout ? xph_flat_parts(rollout, rollout->streams, parts) : 0;
}

/* ---- saving -------------------------------------------------------------------------------------------- */

static uint64_t weights_of(const exphil_rollout *r)
{
    return xph_play_weights_now(r->session)->hash;
}

static void save(const exphil_rollout *r, unsigned char *block, size_t size_bytes)
{
    xph_flat_part parts[XPH_FLAT_PARTS];
    xph_flat_head head = {.magic = MAGIC,
                          .bytes = xph_flat_parts(r, r->streams, parts),
                          .spec = r->shape->spec_hash,
                          .model = xph_model_config_hash(xph_play_weights_now(r->session)->model),
                          .weights = weights_of(r),
                          .streams = r->streams,
                          .time = r->time,
                          .delay = r->delay,
                          .heads = r->policy.heads};
    for (int64_t h = 0; h < head.heads; h++) head.temperature[h] = r->policy.temperature[h];
    memset(block, 0, size_bytes);
    for (int i = 0; i < XPH_FLAT_PARTS; i++) {
        size_t bytes = bytes_of(&parts[i], r->streams);
        if (bytes) memcpy(block + parts[i].at, parts[i].base, bytes);
    }
    memcpy(block, &head, sizeof head);
    head.hash = xph_hash(block + HASHED_AT, size_bytes - HASHED_AT);
    memcpy(block, &head, sizeof head);
}

exphil_status exphil_rollout_block_save(const exphil_rollout *rollout, void *block, size_t size_bytes,
                                        exphil_error *error)
{
    XPH_OWN_FPU;
    if (!rollout || !block)
        return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL", rollout ? "block" : "rollout");
    exphil_rollout *r = (exphil_rollout *)(uintptr_t)rollout; /* only its flag changes */
    XPH_TRY(xph_context_check(r->context, error));
    if (!xph_busy_enter(&r->busy)) return xph_busy_error("rollout", error);
    exphil_status status = xph_rollout_check_full(r, error);
    if (status >= 0) status = xph_rollout_take_overrides(r, error);
    if (status >= 0 && size_bytes != exphil_rollout_block_size(r))
        status = xph_fail(error, EXPHIL_E_INVALID, "size_bytes is %zu, a block has %zu", size_bytes,
                          exphil_rollout_block_size(r));
    if (status >= 0) save(r, block, size_bytes);
    xph_busy_leave(&r->busy);
    return status;
}

/* ---- the head ------------------------------------------------------------------------------------------ */

/* Of bytes from anywhere. */
static exphil_status read_head(const unsigned char *block, size_t size_bytes, xph_flat_head *head,
                               exphil_error *error)
{
    if (size_bytes < sizeof *head)
        return xph_fail(error, EXPHIL_E_FORMAT, "block: %zu bytes are none, its head has %zu", size_bytes,
                        sizeof *head);
    memcpy(head, block, sizeof *head);
    if (head->magic != MAGIC)
        return xph_fail(error, EXPHIL_E_FORMAT,
                        "block: byte 0 does not begin a block of this release of libexphil");
    if (head->bytes != size_bytes)
        return xph_fail(error, EXPHIL_E_FORMAT, "block: it has %llu bytes (byte %zu), %zu are given",
                        (unsigned long long)head->bytes, offsetof(xph_flat_head, bytes), size_bytes);
    if (!xph_hash_equal(xph_hash(block + HASHED_AT, size_bytes - HASHED_AT), head->hash))
        return xph_fail(error, EXPHIL_E_FORMAT,
                        "block: damaged: the hash (byte %zu) is not that of its bytes",
                        offsetof(xph_flat_head, hash));
    return EXPHIL_OK;
}

exphil_status exphil_block_query(const void *block, size_t size_bytes, exphil_block_info *info,
                                 exphil_error *error)
{
    XPH_OWN_FPU;
    exphil_block_info known = EXPHIL_BLOCK_INFO_INIT;
    xph_flat_head head;
    if (!block || !info) return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL", block ? "info" : "block");
    XPH_TRY(XPH_CHECK_OUTPUT(exphil_block_info, info, error));
    XPH_TRY(read_head(block, size_bytes, &head, error));
    known.streams = head.streams;
    known.time = head.time;
    known.spec_hash = head.spec;
    known.weights_hash = head.weights;
    known.delay_frames = (int32_t)head.delay;
    return XPH_GIVE(exphil_block_info, info, &known, error);
}

/* ---- taking -------------------------------------------------------------------------------------------- */

static exphil_status differs(exphil_error *error, const char *what, size_t at, long long found,
                             long long expected)
{
    return xph_fail(error, EXPHIL_E_MISMATCH, "block: %s is %lld (byte %zu), this rollout's is %lld", what,
                    found, at, expected);
}

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* What plays here and there is the same, but for its weights. */
static exphil_status check_play(const exphil_rollout *r, const xph_flat_head *head, exphil_error *error)
{
    const exphil_model *model = xph_play_weights_now(r->session)->model;
    if (head->spec != r->shape->spec_hash)
        return xph_fail(error, EXPHIL_E_MISMATCH,
                        "block: its rows are of another layout, %016llx (byte %zu), not %s/%s, %016llx",
                        (unsigned long long)head->spec, offsetof(xph_flat_head, spec),
                        r->session->spec->layout, r->session->spec->codec,
                        (unsigned long long)r->shape->spec_hash);
    if (head->delay != r->delay)
        return differs(error, "delay_frames", offsetof(xph_flat_head, delay), head->delay, r->delay);
    if (head->model != xph_model_config_hash(model))
        return xph_fail(error, EXPHIL_E_MISMATCH,
                        "block: it was played by a model of another configuration (byte %zu)",
                        offsetof(xph_flat_head, model));
    if (head->time != r->time)
        return differs(error, "time", offsetof(xph_flat_head, time), head->time, r->time);
    if (head->heads != r->policy.heads)
        return differs(error, "head_count", offsetof(xph_flat_head, heads), head->heads, r->policy.heads);
    for (int64_t h = 0; h < EXPHIL_HEADS_MAX; h++) {
        const double expected = h < head->heads ? r->policy.temperature[h] : 0.0;
        size_t at = offsetof(xph_flat_head, temperature) + (size_t)h * sizeof expected;
        if (bits_of(head->temperature[h]) != bits_of(expected)) /* 0 has no sign */
            return xph_fail(error, EXPHIL_E_MISMATCH,
                            "block: heads[%lld].temperature (byte %zu) is not this rollout's", (long long)h,
                            at);
    }
    return EXPHIL_OK;
}

/* Where the block's streams go. */
static exphil_status check_place(const exphil_rollout *r, const xph_flat_head *head, int64_t first,
                                 exphil_error *error)
{
    const size_t at = offsetof(xph_flat_head, streams);
    if (head->streams < 1)
        return xph_fail(error, EXPHIL_E_FORMAT, "block: streams is %lld (byte %zu)", (long long)head->streams,
                        at);
    if (head->streams > r->streams - first)
        return xph_fail(error, EXPHIL_E_MISMATCH,
                        "block: streams is %lld (byte %zu), this rollout has %lld from stream %lld on",
                        (long long)head->streams, at, (long long)(r->streams - first), (long long)first);
    for (int64_t b = first; b < first + head->streams; b++)
        if (r->arrived[b])
            return xph_fail(error, EXPHIL_E_STATE, "stream %lld of this chunk is there already",
                            (long long)b);
    return EXPHIL_OK;
}

static exphil_status check_weights(const exphil_rollout *r, const xph_flat_head *head, int32_t weights,
                                   exphil_error *error)
{
    if (weights == EXPHIL_BLOCK_ANY || head->weights == weights_of(r)) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_MISMATCH,
                    "block: it was played by weights %016llx (byte %zu), this rollout has %016llx",
                    (unsigned long long)head->weights, offsetof(xph_flat_head, weights),
                    (unsigned long long)weights_of(r));
}

static exphil_status take(exphil_rollout *r, int64_t first, int32_t weights, const unsigned char *block,
                          size_t size_bytes, exphil_error *error)
{
    xph_flat_part parts[XPH_FLAT_PARTS];
    xph_flat_head head;
    XPH_TRY(read_head(block, size_bytes, &head, error));
    XPH_TRY(check_play(r, &head, error));
    XPH_TRY(check_weights(r, &head, weights, error));
    XPH_TRY(check_place(r, &head, first, error));
    size_t expected = xph_flat_parts(r, head.streams, parts);
    if (size_bytes != expected)
        return xph_fail(error, EXPHIL_E_FORMAT,
                        "block: %lld such streams have %zu bytes, it has %zu (byte %zu)",
                        (long long)head.streams, expected, size_bytes, offsetof(xph_flat_head, bytes));
    for (int i = 0; i < XPH_FLAT_PARTS; i++) {
        size_t bytes = bytes_of(&parts[i], head.streams);
        if (bytes) memcpy(parts[i].base + bytes_of(&parts[i], first), block + parts[i].at, bytes);
    }
    XPH_TRY(xph_flat_check(r, first, head.streams, parts, error));
    memset(r->arrived + first, 1, (size_t)head.streams);
    r->received += head.streams;
    if (r->received < r->streams) return EXPHIL_OK;
    r->decided = r->rewarded = r->rows;
    return EXPHIL_END;
}

static exphil_status check_taker(const exphil_rollout *r, int64_t first, int32_t weights, exphil_error *error)
{
    if (weights != EXPHIL_BLOCK_CURRENT && weights != EXPHIL_BLOCK_ANY)
        return xph_fail(error, EXPHIL_E_INVALID, "weights is %d, not EXPHIL_BLOCK_CURRENT or ANY", weights);
    if (first < 0 || first >= r->streams)
        return xph_fail(error, EXPHIL_E_INVALID, "first_stream is %lld, outside 0..%lld", (long long)first,
                        (long long)(r->streams - 1));
    XPH_TRY(xph_rollout_check_whole(r, error));
    if (xph_rollout_full(r))
        return xph_fail(error, EXPHIL_E_STATE, "rollout: the chunk is full: a learner takes it first");
    if (r->decided)
        return xph_fail(error, EXPHIL_E_STATE, "rollout: %lld rows of the chunk are recorded already",
                        (long long)r->decided);
    return EXPHIL_OK;
}

exphil_status exphil_rollout_block_take(exphil_rollout *rollout, int64_t first_stream, int32_t weights,
                                        const void *block, size_t size_bytes, exphil_error *error)
{
    XPH_OWN_FPU;
    if (!rollout || !block)
        return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL", rollout ? "block" : "rollout");
    XPH_TRY(xph_context_check(rollout->context, error));
    if (!xph_busy_enter(&rollout->busy)) return xph_busy_error("rollout", error);
    exphil_status status = check_taker(rollout, first_stream, weights, error);
    if (status >= 0) status = take(rollout, first_stream, weights, block, size_bytes, error);
    xph_busy_leave(&rollout->busy);
    return status;
}

/* ---- the next chunk ------------------------------------------------------------------------------------ */

static exphil_status adopt(exphil_rollout *r, const exphil_model *model, exphil_error *error)
{
    XPH_TRY(xph_rollout_check_whole(r, error));
    if (r->decided && !xph_rollout_full(r))
        return xph_fail(error, EXPHIL_E_STATE,
                        "rollout: a chunk is under way, %lld of its %lld rows are played",
                        (long long)r->decided, (long long)r->rows);
    if (model) XPH_TRY(xph_rollout_adopt(r, model, error));
    xph_rollout_next(r);
    return EXPHIL_OK;
}

exphil_status exphil_rollout_adopt(exphil_rollout *rollout, const exphil_model *model, exphil_error *error)
{
    XPH_OWN_FPU;
    if (!rollout) return xph_fail(error, EXPHIL_E_INVALID, "rollout is NULL");
    XPH_TRY(xph_context_check(rollout->context, error));
    if (!xph_busy_enter(&rollout->busy)) return xph_busy_error("rollout", error);
    exphil_status status = adopt(rollout, model, error);
    xph_busy_leave(&rollout->busy);
    return status;
}
