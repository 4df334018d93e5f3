/* What a frame of a game looks like, checked, copied and hashed in one place, for data, models and sessions.
 * A copy is one flat block with the defaults written out (id widths, layout hash), and hashes like its
 * original. */
#include "base/base.h"

#include <stdio.h>
#include <string.h>

#define NAME_MOST    31 /* characters of a layout, codec, id or head */
#define FLOATS_MOST  4096
#define ENTRIES_MOST 65536
#define WIDTH_MOST   256
#define WIDTH_USUAL  8
#define BITS_MOST    31
#define CLASSES_MOST 1024

/* Of a name that may be NULL or without end; NAME_MOST + 1: too long. */
static size_t text_length(const char *text)
{
    size_t length = 0;
    while (text && length <= NAME_MOST && text[length]) length++;
    return length;
}

/* Names of layouts and codecs: printable ASCII without blanks. */
static exphil_status check_title(const char *text, const char *field, exphil_error *error)
{
    size_t length = text_length(text);
    bool fine = length >= 1 && length <= NAME_MOST;
    for (size_t i = 0; fine && i < length; i++) fine = text[i] > 0x20 && text[i] < 0x7F;
    if (fine) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_INVALID, "spec.%s must be 1..%d printable characters", field, NAME_MOST);
}

static bool name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

bool xph_name_fine(const char *text)
{
    size_t length = text_length(text);
    bool fine = length >= 1 && length <= NAME_MOST;
    for (size_t i = 0; fine && i < length; i++) fine = name_char(text[i]);
    return fine;
}

static exphil_status check_name(const char *text, const char *field, int64_t index, exphil_error *error)
{
    if (xph_name_fine(text)) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_INVALID, "spec.%s[%d].name must be 1..%d of [a-z0-9_.]", field,
                    (int)index, NAME_MOST);
}

static exphil_status check_range(int64_t value, int64_t low, int64_t high, const char *field,
                                 exphil_error *error)
{
    if (value >= low && value <= high) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_INVALID, "spec.%s is %lld, must be %lld..%lld", field, (long long)value,
                    (long long)low, (long long)high);
}

static exphil_status check_id(const exphil_id_spec *ids, int64_t index, exphil_error *error)
{
    const exphil_id_spec *id = &ids[index];
    XPH_TRY(check_name(id->name, "ids", index, error));
    if (id->entries < 1 || id->entries > ENTRIES_MOST) {
        return xph_fail(error, EXPHIL_E_INVALID, "spec.ids[%d] %s: entries is %d, must be 1..%d", (int)index,
                        id->name, (int)id->entries, ENTRIES_MOST);
    }
    if (id->width < 0 || id->width > WIDTH_MOST) {
        return xph_fail(error, EXPHIL_E_INVALID, "spec.ids[%d] %s: width is %d, must be 0..%d", (int)index,
                        id->name, (int)id->width, WIDTH_MOST);
    }
    for (int64_t i = 0; i < index; i++) {
        if (strcmp(ids[i].name, id->name) == 0) {
            return xph_fail(error, EXPHIL_E_INVALID, "spec.ids[%d] and [%d] are both called %s", (int)i,
                            (int)index, id->name);
        }
    }
    return EXPHIL_OK;
}

static bool value_fits(const exphil_head_spec *head, int64_t value)
{
    int64_t limit = head->kind == EXPHIL_BERNOULLI ? (int64_t)1 << head->count : head->count;
    return value >= 0 && value < limit;
}

static exphil_status check_head_sizes(const exphil_head_spec *head, int64_t index, exphil_error *error)
{
    bool bits = head->kind == EXPHIL_BERNOULLI;
    int32_t low = bits ? 1 : 2, high = bits ? BITS_MOST : CLASSES_MOST;
    if (!bits && head->kind != EXPHIL_CATEGORICAL) {
        return xph_fail(error, EXPHIL_E_INVALID, "spec.heads[%d] %s: kind %d is unknown", (int)index,
                        head->name, (int)head->kind);
    }
    if (head->count < low || head->count > high) {
        return xph_fail(error, EXPHIL_E_INVALID, "spec.heads[%d] %s: count is %d, must be %d..%d", (int)index,
                        head->name, (int)head->count, (int)low, (int)high);
    }
    if (!value_fits(head, head->neutral)) {
        return xph_fail(error, EXPHIL_E_INVALID, "spec.heads[%d] %s: neutral %d is no value of this head",
                        (int)index, head->name, (int)head->neutral);
    }
    if (head->reserved) {
        return xph_fail(error, EXPHIL_E_INVALID, "spec.heads[%d] %s: reserved must be 0", (int)index,
                        head->name);
    }
    return EXPHIL_OK;
}

static exphil_status check_head(const exphil_head_spec *heads, int64_t index, exphil_error *error)
{
    XPH_TRY(check_name(heads[index].name, "heads", index, error));
    XPH_TRY(check_head_sizes(&heads[index], index, error));
    for (int64_t i = 0; i < index; i++) {
        if (strcmp(heads[i].name, heads[index].name) == 0) {
            return xph_fail(error, EXPHIL_E_INVALID, "spec.heads[%d] and [%d] are both called %s", (int)i,
                            (int)index, heads[i].name);
        }
    }
    return EXPHIL_OK;
}

exphil_status xph_spec_check(const exphil_spec *spec, exphil_error *error)
{
    if (!spec) return xph_fail(error, EXPHIL_E_INVALID, "spec is NULL");
    exphil_spec known = EXPHIL_SPEC_INIT;
    XPH_TRY(XPH_TAKE(exphil_spec, &known, spec, error));
    XPH_TRY(check_title(known.layout, "layout", error));
    XPH_TRY(check_title(known.codec, "codec", error));
    XPH_TRY(check_range(known.float_count, 0, FLOATS_MOST, "float_count", error));
    XPH_TRY(check_range(known.id_count, 0, EXPHIL_IDS_MAX, "id_count", error));
    XPH_TRY(check_range(known.head_count, 1, EXPHIL_HEADS_MAX, "head_count", error));
    if (known.float_count + known.id_count == 0) {
        return xph_fail(error, EXPHIL_E_INVALID, "spec.float_count and spec.id_count are both 0");
    }
    if (known.id_count && !known.ids) return xph_fail(error, EXPHIL_E_INVALID, "spec.ids is NULL");
    if (!known.heads) return xph_fail(error, EXPHIL_E_INVALID, "spec.heads is NULL");
    for (int64_t i = 0; i < known.id_count; i++) XPH_TRY(check_id(known.ids, i, error));
    for (int64_t i = 0; i < known.head_count; i++) XPH_TRY(check_head(known.heads, i, error));
    return EXPHIL_OK;
}

/* ---- hash ---------------------------------------------------------------------------------------------- */

static void add_number(xph_hasher *hasher, uint64_t value)
{
    uint8_t bytes[8]; /* little-endian on every machine */
    for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)(value >> (8 * i));
    xph_hash_add(hasher, bytes, sizeof bytes);
}

/* With its length, so that no two lists of texts look alike. */
static void add_text(xph_hasher *hasher, const char *text)
{
    size_t length = text_length(text);
    add_number(hasher, length);
    xph_hash_add(hasher, text, length);
}

static int32_t width_of(const exphil_id_spec *id)
{
    return id->width ? id->width : WIDTH_USUAL;
}

static void add_layout(xph_hasher *hasher, const exphil_spec *spec)
{
    add_text(hasher, spec->layout);
    add_number(hasher, (uint64_t)spec->float_count);
    add_number(hasher, (uint64_t)spec->id_count);
    for (int64_t i = 0; i < spec->id_count; i++) {
        add_text(hasher, spec->ids[i].name);
        add_number(hasher, (uint64_t)spec->ids[i].entries);
        add_number(hasher, (uint64_t)width_of(&spec->ids[i]));
    }
}

/* 0 stands for "not given" and "invalid", so no hash is 0. */
static uint64_t end_hash(const xph_hasher *hasher)
{
    uint64_t hash = xph_hash_end(hasher);
    return hash ? hash : 1;
}

static uint64_t layout_hash_of(const exphil_spec *spec)
{
    if (spec->layout_hash) return spec->layout_hash;
    xph_hasher hasher;
    xph_hash_begin(&hasher);
    add_layout(&hasher, spec);
    return end_hash(&hasher);
}

uint64_t exphil_spec_hash(const exphil_spec *spec)
{
    if (xph_spec_check(spec, NULL) < 0) return 0;
    xph_hasher hasher;
    xph_hash_begin(&hasher);
    add_text(&hasher, "exphil spec 1"); /* another number when what is hashed here changes */
    add_layout(&hasher, spec);
    add_number(&hasher, layout_hash_of(spec));
    add_text(&hasher, spec->codec);
    add_number(&hasher, (uint64_t)spec->head_count);
    for (int64_t i = 0; i < spec->head_count; i++) {
        const exphil_head_spec *head = &spec->heads[i];
        add_text(&hasher, head->name);
        add_number(&hasher, (uint64_t)head->kind);
        add_number(&hasher, (uint64_t)head->count);
        add_number(&hasher, (uint64_t)head->neutral);
    }
    return end_hash(&hasher);
}

/* ---- copy ---------------------------------------------------------------------------------------------- */

/* The block that xph_spec_copy returns the first member of. Small enough (about 5 KiB) to need no packing. */
struct spec_block {
    exphil_spec spec;
    exphil_id_spec ids[EXPHIL_IDS_MAX];
    exphil_head_spec heads[EXPHIL_HEADS_MAX];
    char titles[2][NAME_MOST + 1];
    char id_names[EXPHIL_IDS_MAX][NAME_MOST + 1];
    char head_names[EXPHIL_HEADS_MAX][NAME_MOST + 1];
};

static const char *keep_text(char *to, const char *from)
{
    memcpy(to, from, strlen(from) + 1); /* xph_spec_check has seen that it is at most NAME_MOST long */
    return to;
}

exphil_status xph_spec_copy(exphil_context *context, const exphil_spec *spec, exphil_spec **copy,
                            exphil_error *error)
{
    XPH_TRY(xph_spec_check(spec, error));
    struct spec_block *block = xph_calloc(context, 1, sizeof *block);
    if (!block) return xph_no_memory(sizeof *block, error);
    block->spec = (exphil_spec){.struct_size = sizeof block->spec,
                                .layout = keep_text(block->titles[0], spec->layout),
                                .codec = keep_text(block->titles[1], spec->codec),
                                .float_count = spec->float_count,
                                .id_count = spec->id_count,
                                .ids = block->ids,
                                .head_count = spec->head_count,
                                .heads = block->heads,
                                .layout_hash = layout_hash_of(spec)};
    for (int64_t i = 0; i < spec->id_count; i++) {
        block->ids[i] = spec->ids[i];
        block->ids[i].name = keep_text(block->id_names[i], spec->ids[i].name);
        block->ids[i].width = width_of(&spec->ids[i]);
    }
    for (int64_t i = 0; i < spec->head_count; i++) {
        block->heads[i] = spec->heads[i];
        block->heads[i].name = keep_text(block->head_names[i], spec->heads[i].name);
    }
    *copy = &block->spec;
    return EXPHIL_OK;
}

void xph_spec_free(exphil_context *context, exphil_spec *spec)
{
    xph_free(context, spec, sizeof(struct spec_block));
}

/* ---- actions ------------------------------------------------------------------------------------------- */

int64_t xph_spec_logits(const exphil_spec *spec)
{
    int64_t logits = 0;
    for (int64_t i = 0; i < spec->head_count; i++) logits += spec->heads[i].count;
    return logits;
}

exphil_status xph_action_check(const exphil_spec *spec, const int32_t *action, int64_t row,
                               exphil_error *error)
{
    for (int64_t i = 0; i < spec->head_count; i++) {
        const exphil_head_spec *head = &spec->heads[i];
        if (value_fits(head, action[i])) continue;
        char place[40] = "";
        if (row >= 0) snprintf(place, sizeof place, "row %lld: ", (long long)row);
        return xph_fail(error, EXPHIL_E_INVALID, "%saction head %s is %d; it has %d %s", place, head->name,
                        (int)action[i], (int)head->count,
                        head->kind == EXPHIL_BERNOULLI ? "bits" : "classes");
    }
    return EXPHIL_OK;
}
