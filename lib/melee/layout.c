/* Layouts by name: lookup, the field list for people and tests, the layout hash, and the preset specs that
 * join a layout with a codec. */
#include "melee/layout.h"
#include "melee/codec.h"

static const xph_melee_layout *const layouts[] = {&xph_melee_layout_melee2, &xph_melee_layout_exphil288,
                                                  &xph_melee_layout_slippi, &xph_melee_layout_slippi_nana};

const xph_melee_layout *xph_melee_layout_find(const char *name)
{
    if (!name) return layouts[0];
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        if (strcmp(layouts[i]->name, name) == 0) return layouts[i];
    }
    return NULL;
}

/* ---- fields -------------------------------------------------------------------------------------------- */

int64_t exphil_melee_field_count(const char *layout)
{
    const xph_melee_layout *found = xph_melee_layout_find(layout);
    int64_t count = 0;
    for (int32_t i = 0; found && i < found->section_count; i++) count += found->sections[i].count;
    return count;
}

static const xph_melee_field *field_at(const xph_melee_layout *layout, int64_t index)
{
    for (int32_t i = 0; i < layout->section_count; i++) {
        if (index < layout->sections[i].count) return &layout->sections[i].fields[index];
        index -= layout->sections[i].count;
    }
    return NULL;
}

bool xph_melee_one_hot(const xph_melee_layout *layout, int64_t index, const char **rule)
{
    const xph_melee_field *field = field_at(layout, index);
    *rule = field->places ? field->places->rule : NULL;
    return field->kind == XPH_FIELD_ONE_HOT;
}

int32_t xph_melee_place(const xph_melee_field *field, double number)
{
    const xph_melee_places *places = field->places;
    const uint8_t *place = places ? places->place : NULL;
    const int32_t numbers = place ? places->numbers : field->count;
    int32_t column = -1;
    if (number >= 0 && number < numbers) column = place ? place[(int32_t)number] - 1 : (int32_t)number;
    return column < 0 && places ? places->other - 1 : column;
}

int32_t xph_melee_one_hot_column(const xph_melee_layout *layout, int64_t index, int32_t number)
{
    return xph_melee_place(field_at(layout, index), number);
}

/* Cuts what does not fit; a test sees to it that nothing has to be cut. */
static void copy_text(char to[64], const char *from)
{
    size_t length = strlen(from);
    if (length > 63) length = 63;
    memcpy(to, from, length);
    to[length] = '\0';
}

exphil_status exphil_melee_field_get(const char *layout, int64_t index, exphil_melee_field *field,
                                     exphil_error *error)
{
    const xph_melee_layout *found = xph_melee_layout_find(layout);
    if (!found) return xph_fail(error, EXPHIL_E_INVALID, "layout \"%s\" is unknown", layout);
    const xph_melee_field *from = index < 0 ? NULL : field_at(found, index);
    if (!from) {
        return xph_fail(error, EXPHIL_E_INVALID, "index is %lld, layout %s has %lld fields", (long long)index,
                        found->name, (long long)exphil_melee_field_count(found->name));
    }
    exphil_melee_field known = {.struct_size = sizeof known,
                                .offset = from->offset,
                                .count = from->count,
                                .scale = from->scale,
                                .low = from->low,
                                .high = from->high,
                                .is_id = from->kind == XPH_FIELD_ID};
    copy_text(known.name, from->name);
    copy_text(known.source, from->source);
    return XPH_GIVE(exphil_melee_field, field, &known, error);
}

/* ---- hash ---------------------------------------------------------------------------------------------- */

static void add_number(xph_hasher *hasher, uint64_t value)
{
    uint8_t bytes[8]; /* little-endian on every machine */
    for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)(value >> (8 * i));
    xph_hash_add(hasher, bytes, sizeof bytes);
}

static void add_double(xph_hasher *hasher, double value)
{
    uint64_t same;
    memcpy(&same, &value, sizeof same);
    add_number(hasher, same);
}

static void add_text(xph_hasher *hasher, const char *text)
{
    size_t length = strlen(text);
    add_number(hasher, length);
    xph_hash_add(hasher, text, length);
}

static void add_field(xph_hasher *hasher, const xph_melee_field *field)
{
    add_text(hasher, field->name);
    add_text(hasher, field->source);
    add_number(hasher, field->offset);
    add_number(hasher, field->count);
    add_number(hasher, field->kind);
    add_double(hasher, field->scale);
    add_double(hasher, field->low);
    add_double(hasher, field->high);
}

uint64_t xph_melee_layout_hash(const xph_melee_layout *layout)
{
    xph_hasher hasher;
    xph_hash_begin(&hasher);
    add_text(&hasher, layout->name);
    add_number(&hasher, (uint64_t)layout->float_count);
    add_number(&hasher, (uint64_t)layout->id_count);
    for (int32_t i = 0; i < layout->id_count; i++) {
        add_text(&hasher, layout->ids[i].name);
        add_number(&hasher, (uint64_t)layout->ids[i].entries);
    }
    for (int32_t i = 0; i < layout->section_count; i++) {
        const xph_melee_section *section = &layout->sections[i];
        add_number(&hasher, section->who);
        add_number(&hasher, section->fill_absent);
        for (int32_t j = 0; j < section->count; j++) add_field(&hasher, &section->fields[j]);
    }
    return xph_hash_end(&hasher);
}

/* ---- presets ------------------------------------------------------------------------------------------- */

exphil_status exphil_melee_spec(const char *layout, const char *codec, exphil_spec *spec, exphil_error *error)
{
    XPH_OWN_FPU;
    const xph_melee_layout *rows = xph_melee_layout_find(layout);
    const xph_melee_codec *actions = xph_melee_codec_find(codec);
    if (!rows) {
        return xph_fail(error, EXPHIL_E_INVALID,
                        "layout \"%s\" is unknown; there are melee2, exphil288, slippi and slippi-nana",
                        layout);
    }
    if (!actions) {
        return xph_fail(error, EXPHIL_E_INVALID,
                        "codec \"%s\" is unknown; there are exphil81, exphil81-floor, slippi and slippi-fine",
                        codec);
    }
    exphil_spec known = {.struct_size = sizeof known,
                         .layout = rows->name,
                         .codec = actions->name,
                         .float_count = rows->float_count,
                         .id_count = rows->id_count,
                         .ids = rows->ids,
                         .head_count = actions->head_count,
                         .heads = actions->heads,
                         .layout_hash = xph_melee_layout_hash(rows)};
    return XPH_GIVE(exphil_spec, spec, &known, error);
}
