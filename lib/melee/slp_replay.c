/* A whole replay. Pass 1 walks all events and lists the complete instances; pass 2 decodes those that count
 * into arrays of exactly the right size. Memory depends on the bytes that are present, never on a number read
 * from the file: an instance costs at least 10 bytes of input, a record 91, an item 38. */
#include "melee/melee.h"
#include "melee/slp_internal.h"

enum { CANCEL_EVERY = 16384 }; /* frames between two looks at the cancel hook */

/* What both passes need, and what goes when reading is done. */
struct reading {
    exphil_context *context;
    const uint8_t *data;
    size_t bytes;
    exphil_slp_config config;
    struct xph_slp_container container;
    struct xph_slp_walk walk;
    struct xph_slp_instance *list;
    size_t count, capacity;
};

/* ---- pass 1 -------------------------------------------------------------------------------------------- */

static exphil_status list_grow(struct reading *reading, exphil_error *error)
{
    /* About one frame of two players in the leanest layout; so longer replays never grow the list. */
    size_t capacity = reading->capacity ? 2 * reading->capacity : reading->bytes / 180 + 16;
    struct xph_slp_instance *list = xph_alloc(reading->context, capacity * sizeof *list);
    if (!list) return xph_no_memory(capacity * sizeof *list, error);
    if (reading->count) memcpy(list, reading->list, reading->count * sizeof *list);
    xph_free(reading->context, reading->list, reading->capacity * sizeof *list);
    reading->list = list;
    reading->capacity = capacity;
    return EXPHIL_OK;
}

/* Notes the instance that the walker has just closed. */
static exphil_status list_add(struct reading *reading, exphil_error *error)
{
    if (reading->count == reading->capacity) XPH_TRY(list_grow(reading, error));
    reading->list[reading->count++] = reading->walk.before;
    return EXPHIL_OK;
}

static int32_t stop_at(const struct reading *reading, size_t at)
{
    const struct xph_slp_container *container = &reading->container;
    if (at == container->end) {
        bool unfinished = container->kind == EXPHIL_SLP_CONTAINER && container->open;
        return unfinished ? EXPHIL_SLP_STOP_END_OF_FILE : EXPHIL_SLP_STOP_COMPLETE;
    }
    const uint8_t *here = reading->data + at;
    if (reading->walk.table.use[here[0]] != XPH_SLP_NO_SIZE) return EXPHIL_SLP_STOP_TRUNCATED;
    if (container->open && here[0] == 'U' && container->end - at > 1 && here[1] == 8)
        return EXPHIL_SLP_STOP_METADATA;
    return EXPHIL_SLP_STOP_UNKNOWN_CODE;
}

/* Walks from `at` to where the events stop; *stopped gets that offset. */
static exphil_status walk_events(struct reading *reading, size_t at, size_t *stopped, exphil_error *error)
{
    struct xph_slp_walk *walk = &reading->walk;
    const uint8_t *data = reading->data;
    size_t end = reading->container.end;
    uint32_t did;
    while (at < end) {
        uint8_t code = data[at];
        size_t size = walk->table.size[code];
        if (walk->table.use[code] == XPH_SLP_NO_SIZE || size > end - at - 1) break;
        XPH_TRY(xph_slp_walk_event(walk, data + at, at, &did, error));
        if (did & XPH_SLP_CLOSED) XPH_TRY(list_add(reading, error));
        at += 1 + size;
    }
    *stopped = at;
    if (xph_slp_walk_close(walk, at)) return list_add(reading, error);
    return EXPHIL_OK;
}

static exphil_status first_pass(struct reading *reading, exphil_error *error)
{
    static const char *const reasons[] = {"end", "end", "metadata", "a cut event", "an event without size"};
    struct xph_slp_container *container = &reading->container;
    exphil_slp_info *info = &reading->walk.info;
    size_t used, stopped;
    xph_slp_walk_begin(&reading->walk);
    XPH_TRY(xph_slp_container_read(reading->data, reading->bytes, container, error));
    XPH_TRY(xph_slp_table_read(reading->data, container->begin, container->end, &reading->walk.table, &used,
                               error));
    XPH_TRY(walk_events(reading, container->begin + used, &stopped, error));
    info->stop = stop_at(reading, stopped);
    if (!reading->walk.started)
        return xph_fail(error, EXPHIL_E_FORMAT, "no game start event: %s at offset %zu", reasons[info->stop],
                        stopped);
    info->input_bytes = reading->bytes;
    info->stop_offset = stopped;
    info->container = container->kind;
    info->raw_declared_bytes = container->declared;
    info->problems |= container->problems;
    info->problem_count += container->problems != 0;
    info->truncated =
        info->stop == EXPHIL_SLP_STOP_TRUNCATED || container->problems & EXPHIL_SLP_PROBLEM_LENGTH;
    return EXPHIL_OK;
}

/* After a filled-in length metadata stand where it says, else where the events stopped. */
static void read_metadata(const struct reading *reading, exphil_slp_info *info)
{
    const struct xph_slp_container *container = &reading->container;
    if (container->kind != EXPHIL_SLP_CONTAINER) return;
    if (!container->open)
        xph_slp_metadata_read(reading->data, reading->bytes, XPH_SLP_HEADER + (size_t)container->declared,
                              info);
    else if (info->stop == EXPHIL_SLP_STOP_METADATA)
        xph_slp_metadata_read(reading->data, reading->bytes, (size_t)info->stop_offset, info);
}

/* ---- storage --------------------------------------------------------------------------------------------- */

static exphil_status make_storage(const struct reading *reading, exphil_slp *slp, exphil_error *error)
{
    int64_t records[XPH_SLP_SLOTS] = {0};
    for (size_t i = 0; i < reading->count; i++) {
        uint8_t slots = xph_slp_slots(&reading->list[i]);
        for (uint32_t slot = 0; slot < XPH_SLP_SLOTS; slot++) records[slot] += slots >> slot & 1;
        slp->item_count += (size_t)reading->list[i].items;
    }
    slp->frame_count = reading->count;
    return xph_slp_storage_make(slp, records, error);
}

/* ---- pass 2 -------------------------------------------------------------------------------------------- */

/* Where the values of one instance go. */
struct target {
    exphil_slp_player *player[XPH_SLP_SLOTS]; /* NULL: not wanted */
    exphil_slp_item *item;
    exphil_slp_frame frame;
};

static void decode_event(const struct xph_slp_table *table, const uint8_t *event, struct target *target)
{
    size_t size = table->size[event[0]];
    exphil_slp_player *player;
    switch (event[0]) {
    case XPH_SLP_PRE:
    case XPH_SLP_POST:
        player = event[5] < EXPHIL_SLP_PORTS ? target->player[xph_slp_slot_of(event)] : NULL;
        if (!player) return;
        if (event[0] == XPH_SLP_PRE)
            xph_slp_decode_pre(event, size, player);
        else
            xph_slp_decode_post(event, size, player);
        return;
    case XPH_SLP_ITEM:
        if (xph_slp_i32(event + 1) == target->frame.frame) xph_slp_decode_item(event, size, target->item++);
        return;
    case XPH_SLP_BOOKEND:
        if (xph_slp_i32(event + 1) != target->frame.frame) return;
        break;
    default:
        break;
    }
    xph_slp_decode_frame(event, size, &target->frame);
}

static void decode_instance(const struct reading *reading, const struct xph_slp_instance *instance,
                            struct target *target)
{
    const struct xph_slp_table *table = &reading->walk.table;
    for (size_t at = (size_t)instance->begin; at < (size_t)instance->end;) {
        const uint8_t *event = reading->data + at;
        if (table->use[event[0]] == XPH_SLP_USE) decode_event(table, event, target);
        at += 1 + (size_t)table->size[event[0]];
    }
}

static exphil_status second_pass(struct reading *reading, exphil_slp *slp, exphil_error *error)
{
    struct target target = {.item = slp->items};
    xph_slp_blank_frame(&reading->walk.table, &target.frame);
    for (size_t i = 0; i < reading->count; i++) {
        const struct xph_slp_instance *instance = &reading->list[i];
        if (i % CANCEL_EVERY == 0 && xph_cancelled(slp->context))
            return xph_fail(error, EXPHIL_E_CANCELLED, "cancelled at frame %d", (int)instance->frame);
        const exphil_slp_item *items = target.item;
        xph_slp_next_frame(&target.frame, instance);
        xph_slp_next_records(slp, i, xph_slp_slots(instance), target.player);
        decode_instance(reading, instance, &target);
        target.frame.slots = xph_slp_slots(instance);
        target.frame.items = items;
        target.frame.item_count = instance->items;
        slp->frames[i] = target.frame;
    }
    return EXPHIL_OK;
}

/* ---- public -------------------------------------------------------------------------------------------- */

static exphil_status read_all(struct reading *reading, exphil_slp *slp, exphil_error *error)
{
    XPH_TRY(first_pass(reading, error));
    XPH_TRY(xph_slp_select(slp->context, reading->list, &reading->count, reading->config.rollback, error));
    XPH_TRY(make_storage(reading, slp, error));
    XPH_TRY(second_pass(reading, slp, error));
    slp->info = reading->walk.info;
    slp->info.rollback = reading->config.rollback;
    slp->match_tag = reading->walk.match_tag;
    read_metadata(reading, &slp->info);
    xph_slp_sum_up(slp);
    return EXPHIL_OK;
}

static exphil_status take_config(const exphil_slp_config *given, exphil_slp_config *config,
                                 exphil_error *error)
{
    exphil_slp_config known = EXPHIL_SLP_CONFIG_INIT;
    XPH_TRY(XPH_TAKE(exphil_slp_config, &known, given, error));
    if (known.flags) return xph_fail(error, EXPHIL_E_INVALID, "exphil_slp_config.flags must be 0");
    if (known.rollback < EXPHIL_SLP_LAST || known.rollback > EXPHIL_SLP_ALL)
        return xph_fail(error, EXPHIL_E_INVALID,
                        "exphil_slp_config.rollback is %d, not one of EXPHIL_SLP_LAST, ...",
                        (int)known.rollback);
    if (known.limit_bytes > INT32_MAX)
        return xph_fail(error, EXPHIL_E_INVALID, "exphil_slp_config.limit_bytes is %zu, more than 2 GiB - 1",
                        known.limit_bytes);
    if (known.limit_bytes == 0) known.limit_bytes = XPH_SLP_LIMIT;
    *config = known;
    return EXPHIL_OK;
}

static exphil_status read_bytes(exphil_context *context, const uint8_t *data, size_t bytes,
                                const exphil_slp_config *config, exphil_slp **slp, exphil_error *error)
{
    exphil_slp *made = xph_calloc(context, 1, sizeof *made);
    if (!made) return xph_no_memory(sizeof *made, error);
    made->context = xph_context_retain(context);
    struct reading reading = {.context = context, .data = data, .bytes = bytes, .config = *config};
    exphil_status status = read_all(&reading, made, error);
    xph_free(context, reading.list, reading.capacity * sizeof *reading.list);
    if (status < 0)
        exphil_slp_destroy(made);
    else
        *slp = made;
    return status;
}

exphil_status exphil_slp_read(exphil_context *context, const void *data, size_t size_bytes,
                              const exphil_slp_config *config, exphil_slp **slp, exphil_error *error)
{
    XPH_OWN_FPU;
    exphil_slp_config known = EXPHIL_SLP_CONFIG_INIT;
    XPH_TRY(xph_context_check(context, error));
    if (!data && size_bytes) return xph_fail(error, EXPHIL_E_INVALID, "data is NULL");
    if (!slp) return xph_fail(error, EXPHIL_E_INVALID, "slp is NULL");
    XPH_TRY(take_config(config, &known, error));
    if (size_bytes > known.limit_bytes)
        return xph_fail(error, EXPHIL_E_FORMAT, "%zu bytes go beyond the limit at offset %zu", size_bytes,
                        known.limit_bytes);
    return read_bytes(context, data, size_bytes, &known, slp, error);
}

exphil_status exphil_slp_open(exphil_context *context, const char *path, const exphil_slp_config *config,
                              exphil_slp **slp, exphil_error *error)
{
    XPH_OWN_FPU;
    exphil_slp_config known = EXPHIL_SLP_CONFIG_INIT;
    xph_file_data file;
    XPH_TRY(xph_context_check(context, error));
    if (!path) return xph_fail(error, EXPHIL_E_INVALID, "path is NULL");
    if (!slp) return xph_fail(error, EXPHIL_E_INVALID, "slp is NULL");
    XPH_TRY(take_config(config, &known, error));
    XPH_TRY(xph_slp_file_read(context, path, known.limit_bytes, &file, error));
    exphil_status status = read_bytes(context, file.data, file.bytes, &known, slp, error);
    xph_file_release(&file);
    return status < 0 ? xph_fail_within(error, status, "%s", path) : status;
}
