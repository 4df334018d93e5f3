/* Rows: packing of actions, blocks and their references, and the one check of all rows that come into a
 * dataset, whether from a host, a replay or a file: every float finite, every id and action in range. */
#include "data/game_rows.h"

/* ---- shape and actions ------------------------------------------------------------------------------- */

static uint8_t width_of(const exphil_head_spec *head)
{
    int32_t bits = head->kind == EXPHIL_BERNOULLI ? head->count : head->count <= 256 ? 8 : 16;
    return bits <= 8 ? 1 : bits <= 16 ? 2 : 4;
}

void xph_row_shape_of(const exphil_spec *spec, xph_row_shape *shape)
{
    *shape = (xph_row_shape){
        .spec = spec, .floats = spec->float_count, .ids = spec->id_count, .heads = spec->head_count};
    for (int64_t a = 0; a < shape->heads; a++) {
        shape->width[a] = width_of(&spec->heads[a]);
        shape->action_bytes += shape->width[a];
    }
    shape->row_bytes = 4 * (shape->floats + shape->ids) + shape->action_bytes;
}

void xph_action_pack(const xph_row_shape *shape, const int32_t *action, uint8_t *packed)
{
    for (int64_t a = 0; a < shape->heads; a++) {
        for (int i = 0; i < shape->width[a]; i++) *packed++ = (uint8_t)((uint32_t)action[a] >> (8 * i));
    }
}

void xph_action_unpack(const xph_row_shape *shape, const uint8_t *packed, int32_t *action)
{
    for (int64_t a = 0; a < shape->heads; a++) {
        uint32_t value = packed[0];
        if (shape->width[a] > 1) value |= (uint32_t)packed[1] << 8;
        if (shape->width[a] > 2) value |= (uint32_t)packed[2] << 16 | (uint32_t)packed[3] << 24;
        action[a] = (int32_t)value; /* 31 bits at most, or checked by xph_rows_flaw */
        packed += shape->width[a];
    }
}

/* ---- blocks ------------------------------------------------------------------------------------------ */

/* Bytes of frames rows; false when that is more than there can be. */
static bool rows_bytes(const xph_row_shape *shape, int64_t frames, size_t *bytes)
{
    return frames >= 1 && frames <= XPH_FRAMES_MAX &&
           xph_size_mul((size_t)frames, (size_t)shape->row_bytes, bytes);
}

/* Floats, then ids, then actions: alignment falls from 4 to 1, so there are no gaps. */
static void place_rows(xph_block_buffer *buffer, const xph_row_shape *shape, int64_t frames, uint8_t *rows)
{
    buffer->floats = (float *)(void *)rows;
    rows += (size_t)(frames * shape->floats) * sizeof(float);
    buffer->ids = (int32_t *)(void *)rows;
    buffer->actions = rows + (size_t)(frames * shape->ids) * sizeof(int32_t);
}

size_t xph_block_head_bytes(void)
{
    return (sizeof(xph_block) + 63) / 64 * 64;
}

exphil_status xph_block_create(exphil_context *context, const xph_row_shape *shape, int64_t frames,
                               xph_block **block, xph_block_buffer *buffer, exphil_error *error)
{
    size_t head = xph_block_head_bytes(), bytes;
    if (!rows_bytes(shape, frames, &bytes) || !xph_size_add(bytes, head, &bytes))
        return xph_fail(error, EXPHIL_E_INVALID, "%lld frames are too many", (long long)frames);
    xph_block *made = xph_alloc(context, bytes);
    if (!made) return xph_no_memory(bytes, error);
    *made = (xph_block){.context = context, .references = 1, .frames = frames, .bytes = bytes};
    place_rows(buffer, shape, frames, (uint8_t *)made + head);
    made->rows = (xph_rows){buffer->floats, buffer->ids, buffer->actions};
    *block = made;
    return EXPHIL_OK;
}

exphil_status xph_block_of(xph_shared_file *corpus, uint64_t at, int64_t frames, xph_block **block,
                           exphil_error *error)
{
    size_t pieces = (size_t)xph_pieces(frames);
    size_t bytes = sizeof(xph_block) + pieces * (sizeof(uint64_t) + sizeof(atomic_bool));
    xph_block *made = xph_alloc(corpus->context, bytes);
    if (!made) return xph_no_memory(bytes, error);
    *made = (xph_block){.context = corpus->context,
                        .references = 1,
                        .frames = frames,
                        .bytes = bytes,
                        .corpus = xph_shared_retain(corpus),
                        .at = at,
                        .piece_hash = (uint64_t *)(made + 1)};
    made->checked = (atomic_bool *)(made->piece_hash + pieces);
    for (size_t i = 0; i < pieces; i++) atomic_init(&made->checked[i], false);
    *block = made;
    return EXPHIL_OK;
}

xph_block *xph_block_retain(xph_block *block)
{
    atomic_fetch_add(&block->references, 1);
    return block;
}

void xph_block_release(xph_block *block)
{
    if (!block || atomic_fetch_sub(&block->references, 1) != 1) return;
    xph_shared_file *corpus = block->corpus;
    xph_row_source *source = block->source;
    xph_free(block->context, block, block->bytes);
    xph_shared_release(corpus);
    xph_row_source_release(source);
}

/* ---- the gate ---------------------------------------------------------------------------------------- */

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static const xph_flaw no_flaw = {XPH_FLAW_NONE, 0, 0, 0};

/* ids [rows, ids]; rows count from `first` in messages. */
static xph_flaw find_bad_id(const xph_row_shape *shape, const int32_t *ids, int64_t first, int64_t rows)
{
    for (int64_t t = 0; t < rows; t++, ids += shape->ids) {
        for (int64_t k = 0; k < shape->ids; k++) {
            if (ids[k] < 0 || ids[k] >= shape->spec->ids[k].entries)
                return (xph_flaw){XPH_FLAW_ID, ids[k], first + t, k};
        }
    }
    return no_flaw;
}

typedef struct limits {
    int64_t of[EXPHIL_HEADS_MAX]; /* actions are below */
} limits;

static limits limits_of(const xph_row_shape *shape)
{
    limits limit = {{0}};
    for (int64_t a = 0; a < shape->heads; a++) {
        const exphil_head_spec *head = &shape->spec->heads[a];
        limit.of[a] = head->kind == EXPHIL_BERNOULLI ? (int64_t)1 << head->count : head->count;
    }
    return limit;
}

/* The head whose action is none of its own, or -1. */
static int64_t bad_head(const xph_row_shape *shape, const limits *limit, const int32_t *action)
{
    for (int64_t a = 0; a < shape->heads; a++)
        if (action[a] < 0 || action[a] >= limit->of[a]) return a;
    return -1;
}

static xph_flaw find_bad_action(const xph_row_shape *shape, const uint8_t *packed, int64_t first,
                                int64_t rows)
{
    const limits limit = limits_of(shape);
    for (int64_t t = 0; t < rows; t++, packed += shape->action_bytes) {
        int32_t action[EXPHIL_HEADS_MAX];
        xph_action_unpack(shape, packed, action);
        int64_t a = bad_head(shape, &limit, action);
        if (a >= 0) return (xph_flaw){XPH_FLAW_ACTION, action[a], first + t, a};
    }
    return no_flaw;
}

exphil_status xph_rows_recheck(const xph_row_shape *shape, const xph_block *block, const int32_t *ids,
                               int64_t rows, const int32_t *actions, int64_t action_rows, exphil_error *error)
{
    if (!block->checked) return EXPHIL_OK;
    const limits limit = limits_of(shape);
    bool good = find_bad_id(shape, ids, 0, rows).kind == XPH_FLAW_NONE;
    for (int64_t i = 0; i < action_rows && good; i++)
        good = bad_head(shape, &limit, actions + i * shape->heads) < 0;
    return good ? EXPHIL_OK
                : xph_fail(error, EXPHIL_E_FORMAT,
                           "\"%s\" was changed while it was open: its rows were checked, and "
                           "now hold ids or actions that do not exist",
                           block->corpus->name);
}

xph_flaw xph_rows_flaw(const xph_row_shape *shape, const xph_rows *rows, int64_t first, int64_t frames)
{
    int64_t at = xph_find_not_finite(rows->floats, frames * shape->floats);
    if (at >= 0) return (xph_flaw){XPH_FLAW_FLOAT, 0, first + at / shape->floats, at % shape->floats};
    xph_flaw flaw = find_bad_id(shape, rows->ids, first, frames);
    return flaw.kind == XPH_FLAW_NONE ? find_bad_action(shape, rows->actions, first, frames) : flaw;
}

exphil_status xph_flaw_fail(const xph_row_shape *shape, const xph_flaw *flaw, exphil_error *error)
{
    if (flaw->kind == XPH_FLAW_FLOAT) {
        return xph_fail(error, EXPHIL_E_NUMERIC, "row %lld: float %lld is not finite", (long long)flaw->row,
                        (long long)flaw->column);
    }
    if (flaw->kind == XPH_FLAW_ID) {
        const exphil_id_spec *id = &shape->spec->ids[flaw->column];
        return xph_fail(error, EXPHIL_E_INVALID, "row %lld: id %lld (%s) is %d, must be 0..%d",
                        (long long)flaw->row, (long long)flaw->column, id->name, (int)flaw->value,
                        (int)id->entries - 1);
    }
    const exphil_head_spec *head = &shape->spec->heads[flaw->column];
    return xph_fail(error, EXPHIL_E_INVALID, "row %lld: action head %lld (%s) is %d; it has %d %s",
                    (long long)flaw->row, (long long)flaw->column, head->name, (int)flaw->value,
                    (int)head->count, head->kind == EXPHIL_BERNOULLI ? "bits" : "classes");
}

/* ---- columns ----------------------------------------------------------------------------------------- */

exphil_status xph_columns_create(exphil_context *context, int64_t floats, xph_columns *columns,
                                 exphil_error *error)
{
    size_t count = (size_t)floats;
    uint32_t *first = xph_calloc(context, count, sizeof *first);
    uint8_t *varies = first ? xph_calloc(context, count, 1) : NULL;
    if (!varies) {
        xph_free(context, first, count * sizeof *first);
        return xph_no_memory(count * 5, error);
    }
    *columns = (xph_columns){.first = first, .varies = varies, .floats = floats};
    return EXPHIL_OK;
}

void xph_columns_free(exphil_context *context, xph_columns *columns)
{
    xph_free(context, columns->first, (size_t)columns->floats * sizeof *columns->first);
    xph_free(context, columns->varies, (size_t)columns->floats);
    *columns = (xph_columns){.first = NULL};
}

/* Equal for numbers that are equal: -0 is 0. */
static uint32_t number_bits(float value)
{
    uint32_t bits = bits_of(value);
    return bits << 1 ? bits : 0;
}

void xph_columns_add(xph_columns *columns, const float *rows, int64_t frames)
{
    if (!columns->any && frames > 0) {
        for (int64_t f = 0; f < columns->floats; f++) columns->first[f] = number_bits(rows[f]);
        columns->any = true;
    }
    /* Names of their own, so that the compiler sees that bytes written here are no counts read there. */
    const uint32_t *restrict first = columns->first;
    uint8_t *restrict varies = columns->varies;
    int64_t floats = columns->floats;
    for (int64_t t = 0; t < frames; t++, rows += floats) {
        for (int64_t f = 0; f < floats; f++) varies[f] |= number_bits(rows[f]) != first[f];
    }
}

void xph_columns_merge(xph_columns *columns, const xph_columns *other)
{
    if (!other->any) return;
    for (int64_t f = 0; f < columns->floats; f++) {
        if (!columns->any) columns->first[f] = other->first[f];
        columns->varies[f] |= other->varies[f] | (columns->first[f] != other->first[f]);
    }
    columns->any = true;
}
