/* The live stream: the same walker and the same records, one frame at a time. Two frame buffers take turns: a
 * frame that is completed by the start of the next can be returned while the next is already being built. */
#include "melee/slp_internal.h"

enum phase { HEAD, EVENTS, OVER, FAILED };

struct shot {
    exphil_slp_frame frame;
    exphil_slp_player players[XPH_SLP_SLOTS];
    exphil_slp_item items[EXPHIL_SLP_STREAM_ITEMS];
};

struct exphil_slp_stream {
    exphil_context *context;
    const struct shot *ready; /* what the last push made ready, or NULL */
    struct shot *building;
    uint64_t position; /* bytes of whole units taken so far */
    uint64_t end;      /* where the event stream ends; UINT64_MAX: not said */
    size_t have;       /* bytes in buffer: the start of a unit */
    exphil_error failure;
    xph_busy busy;
    int32_t phase;
    uint32_t given; /* the frame being built was delivered at its bookend */
    struct xph_slp_container container;
    struct xph_slp_walk walk;
    exphil_slp_frame previous; /* stage values of the frame delivered last */
    struct shot shots[2];
    uint8_t buffer[XPH_SLP_EVENT];
};

_Static_assert(XPH_SLP_EVENT >= XPH_SLP_HEADER + 1 + UINT8_MAX, "header and payload table must fit");

/* ---- units: the head (container header and payload table), then single events -------------------------- */

/* Bytes that the head has, as far as `have` of them tell. */
static size_t head_bytes(const uint8_t *head, size_t have)
{
    if (have == 0) return 1;
    size_t table = head[0] == XPH_SLP_PAYLOADS ? 0 : XPH_SLP_HEADER;
    if (have < table + 2) return table + 2;
    int32_t declared;
    if (table && xph_slp_header_read(head, have, &declared, NULL) < 0) return table; /* refused at once */
    return table + 1 + head[table + 1] + (head[table + 1] == 0);
}

static size_t unit_bytes(const exphil_slp_stream *stream, const uint8_t *unit, size_t have)
{
    if (stream->phase == HEAD) return head_bytes(unit, have);
    if (have == 0) return 1;
    if (stream->walk.table.use[unit[0]] == XPH_SLP_NO_SIZE)
        return unit[0] == 'U' && stream->container.open ? 2 : 1;
    return 1 + (size_t)stream->walk.table.size[unit[0]];
}

/* The next whole unit, in the caller's data when it is whole there, else in the buffer; NULL: more is needed.
 */
static const uint8_t *next_unit(exphil_slp_stream *stream, const uint8_t *data, size_t bytes, size_t *used,
                                size_t *unit)
{
    if (stream->have == 0 && bytes > *used) {
        *unit = unit_bytes(stream, data + *used, bytes - *used);
        if (*unit <= bytes - *used) {
            *used += *unit;
            return data + *used - *unit;
        }
    }
    for (;;) {
        *unit = unit_bytes(stream, stream->buffer, stream->have);
        if (stream->have == *unit) break;
        size_t missing = *unit - stream->have, there = bytes - *used;
        size_t taken = missing < there ? missing : there;
        if (taken == 0) return NULL;
        memcpy(stream->buffer + stream->have, data + *used, taken);
        stream->have += taken;
        *used += taken;
    }
    stream->have = 0;
    return stream->buffer;
}

/* ---- frames -------------------------------------------------------------------------------------------- */

static void start_shot(exphil_slp_stream *stream, const struct xph_slp_instance *instance)
{
    stream->building->frame = stream->previous;
    xph_slp_next_frame(&stream->building->frame, instance);
    stream->given = 0;
}

/* Delivers the frame being built, whose instance is complete, unless that was done already. */
static void give(exphil_slp_stream *stream, const struct xph_slp_instance *instance)
{
    struct shot *shot = stream->building;
    if (stream->given) return;
    shot->frame.slots = xph_slp_slots(instance);
    shot->frame.items = shot->items;
    stream->previous = shot->frame;
    stream->ready = shot;
    stream->given = 1;
    stream->walk.info.frame_count++;
    stream->walk.info.item_count += shot->frame.item_count;
    if (stream->walk.info.first_frame == XPH_SLP_NO_FRAME ||
        shot->frame.frame < stream->walk.info.first_frame)
        stream->walk.info.first_frame = shot->frame.frame;
    if (shot->frame.frame > stream->walk.info.last_frame) stream->walk.info.last_frame = shot->frame.frame;
}

/* The game is over: what is complete and was not delivered yet is the last frame. */
static void finish(exphil_slp_stream *stream)
{
    if (xph_slp_walk_close(&stream->walk, stream->position)) give(stream, &stream->walk.before);
    stream->phase = OVER;
}

static void add_item(exphil_slp_stream *stream, const uint8_t *event, size_t size)
{
    struct shot *shot = stream->building;
    if (shot->frame.item_count < EXPHIL_SLP_STREAM_ITEMS) {
        xph_slp_decode_item(event, size, &shot->items[shot->frame.item_count++]);
        return;
    }
    stream->walk.info.problems |= EXPHIL_SLP_PROBLEM_ITEM_LIMIT;
    stream->walk.info.problem_count++;
}

static void decode_event(exphil_slp_stream *stream, const uint8_t *event)
{
    size_t size = stream->walk.table.size[event[0]];
    if (event[0] == XPH_SLP_PRE)
        xph_slp_decode_pre(event, size, &stream->building->players[xph_slp_slot_of(event)]);
    else if (event[0] == XPH_SLP_POST)
        xph_slp_decode_post(event, size, &stream->building->players[xph_slp_slot_of(event)]);
    else if (event[0] == XPH_SLP_ITEM)
        add_item(stream, event, size);
    else
        xph_slp_decode_frame(event, size, &stream->building->frame);
}

static exphil_status take_event(exphil_slp_stream *stream, const uint8_t *event, exphil_error *error)
{
    struct xph_slp_walk *walk = &stream->walk;
    uint32_t did;
    XPH_TRY(xph_slp_walk_event(walk, event, stream->position, &did, error));
    if (did & XPH_SLP_CLOSED) give(stream, &walk->before);
    if (did & XPH_SLP_OPENED) {
        stream->building = &stream->shots[stream->building == &stream->shots[0]];
        start_shot(stream, &walk->now);
    }
    if (did & XPH_SLP_TAKEN && !stream->given) decode_event(stream, event);
    if (event[0] == XPH_SLP_BOOKEND && did & XPH_SLP_TAKEN && xph_slp_complete(&walk->table, &walk->now))
        give(stream, &walk->now);
    if (did & XPH_SLP_ENDED) finish(stream);
    return EXPHIL_OK;
}

static exphil_status take_head(exphil_slp_stream *stream, const uint8_t *head, size_t bytes,
                               exphil_error *error)
{
    size_t used;
    struct xph_slp_container *container = &stream->container;
    XPH_TRY(xph_slp_container_read(head, bytes, container, error));
    XPH_TRY(xph_slp_table_read(head, container->begin, container->end, &stream->walk.table, &used, error));
    stream->end = container->open ? UINT64_MAX : XPH_SLP_HEADER + (uint64_t)container->declared;
    if (container->problems & EXPHIL_SLP_PROBLEM_NEGATIVE_LENGTH) {
        stream->walk.info.problems |= EXPHIL_SLP_PROBLEM_NEGATIVE_LENGTH;
        stream->walk.info.problem_count++;
    }
    xph_slp_blank_frame(&stream->walk.table, &stream->previous);
    stream->phase = EVENTS;
    return EXPHIL_OK;
}

static exphil_status take_unit(exphil_slp_stream *stream, const uint8_t *unit, size_t bytes,
                               exphil_error *error)
{
    if (stream->phase == HEAD) return take_head(stream, unit, bytes, error);
    if (stream->walk.table.use[unit[0]] != XPH_SLP_NO_SIZE) return take_event(stream, unit, error);
    if (bytes < 2 || unit[1] != 8)
        return xph_fail(error, EXPHIL_E_FORMAT,
                        "event 0x%02x at offset %llu has no size in the payload table", (unsigned)unit[0],
                        (unsigned long long)stream->position);
    finish(stream); /* metadata: the recording was closed */
    return EXPHIL_OK;
}

static exphil_status push(exphil_slp_stream *stream, const uint8_t *data, size_t bytes, size_t *used,
                          exphil_error *error)
{
    stream->ready = NULL;
    if (stream->phase == FAILED)
        return xph_fail(error, stream->failure.status, "%s", stream->failure.message);
    while (stream->phase != OVER) {
        size_t length;
        const uint8_t *unit = next_unit(stream, data, bytes, used, &length);
        if (!unit) return EXPHIL_AGAIN;
        if (length > stream->end - stream->position) { /* an event across the declared end is cut */
            finish(stream);
            return stream->ready ? EXPHIL_OK : EXPHIL_END;
        }
        if (take_unit(stream, unit, length, &stream->failure) < 0) {
            stream->phase = FAILED;
            return xph_fail(error, stream->failure.status, "%s", stream->failure.message);
        }
        stream->position += length;
        if (stream->position >= stream->end) finish(stream);
        if (stream->ready) return EXPHIL_OK;
    }
    return EXPHIL_END;
}

/* ---- public -------------------------------------------------------------------------------------------- */

static void begin(exphil_slp_stream *stream)
{
    xph_slp_walk_begin(&stream->walk);
    stream->ready = NULL;
    stream->building = &stream->shots[0];
    stream->position = 0;
    stream->end = UINT64_MAX;
    stream->have = 0;
    stream->failure = (exphil_error)EXPHIL_ERROR_INIT;
    stream->phase = HEAD;
    stream->given = 0;
}

exphil_status exphil_slp_stream_create(exphil_context *context, exphil_slp_stream **stream,
                                       exphil_error *error)
{
    XPH_TRY(xph_context_check(context, error));
    if (!stream) return xph_fail(error, EXPHIL_E_INVALID, "stream is NULL");
    exphil_slp_stream *made = xph_calloc(context, 1, sizeof *made);
    if (!made) return xph_no_memory(sizeof *made, error);
    made->context = xph_context_retain(context);
    begin(made);
    *stream = made;
    return EXPHIL_OK;
}

void exphil_slp_stream_destroy(exphil_slp_stream *stream)
{
    if (!stream) return;
    exphil_context *context = stream->context;
    xph_free(context, stream, sizeof *stream);
    xph_context_release(context);
}

static exphil_status enter(exphil_slp_stream *stream, exphil_error *error)
{
    XPH_TRY(xph_context_check(stream->context, error));
    return xph_busy_enter(&stream->busy) ? EXPHIL_OK : xph_busy_error("exphil_slp_stream", error);
}

exphil_status exphil_slp_stream_push(exphil_slp_stream *stream, const void *data, size_t size_bytes,
                                     size_t *used_bytes, exphil_error *error)
{
    XPH_OWN_FPU;
    if (!stream) return xph_fail(error, EXPHIL_E_INVALID, "stream is NULL");
    if (!used_bytes) return xph_fail(error, EXPHIL_E_INVALID, "used_bytes is NULL");
    if (!data && size_bytes) return xph_fail(error, EXPHIL_E_INVALID, "data is NULL");
    XPH_TRY(enter(stream, error));
    size_t used = 0;
    exphil_status status = push(stream, data, size_bytes, &used, error);
    if (status >= 0) *used_bytes = used;
    xph_busy_leave(&stream->busy);
    return status;
}

exphil_status exphil_slp_stream_reset(exphil_slp_stream *stream, exphil_error *error)
{
    if (!stream) return xph_fail(error, EXPHIL_E_INVALID, "stream is NULL");
    XPH_TRY(enter(stream, error));
    begin(stream);
    xph_busy_leave(&stream->busy);
    return EXPHIL_OK;
}

static exphil_status give_info(exphil_slp_stream *stream, exphil_slp_info *info, exphil_error *error)
{
    if (!stream->walk.started)
        return xph_fail(error, EXPHIL_E_STATE, "no game start event in the first %llu bytes",
                        (unsigned long long)stream->position);
    exphil_slp_info now = stream->walk.info;
    now.input_bytes = stream->position + stream->have;
    now.stop_offset = stream->position;
    now.container = stream->container.kind;
    now.raw_declared_bytes = stream->container.declared;
    now.rollback = EXPHIL_SLP_ALL;
    return XPH_GIVE(exphil_slp_info, info, &now, error);
}

exphil_status exphil_slp_stream_query(exphil_slp_stream *stream, exphil_slp_info *info, exphil_error *error)
{
    if (!stream) return xph_fail(error, EXPHIL_E_INVALID, "stream is NULL");
    XPH_TRY(enter(stream, error));
    exphil_status status = give_info(stream, info, error);
    xph_busy_leave(&stream->busy);
    return status;
}

const exphil_slp_frame *exphil_slp_stream_frame(const exphil_slp_stream *stream)
{
    return stream && stream->ready ? &stream->ready->frame : NULL;
}

const exphil_slp_player *exphil_slp_stream_player(const exphil_slp_stream *stream, int32_t port,
                                                  int32_t follower)
{
    if (!stream || !stream->ready) return NULL;
    if (port < 0 || port >= EXPHIL_SLP_PORTS || follower < 0 || follower > 1) return NULL;
    int32_t slot = 2 * port + follower;
    return stream->ready->frame.slots >> slot & 1 ? &stream->ready->players[slot] : NULL;
}
