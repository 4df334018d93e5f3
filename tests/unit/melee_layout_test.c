/* Layout tables: every column described exactly once, names and sources that fit, hashes and widths that
 * never change by accident, and presets that pass the rules of specs. */
#include "melee/codec.h"
#include "melee/layout.h"
#include "test.h"

#include <stdio.h>

enum { LAYOUTS = 4 };
static const char *const names[LAYOUTS] = {"melee2", "exphil288", "slippi", "slippi-nana"};

static exphil_melee_field field_at(const char *layout, int64_t index)
{
    exphil_melee_field field = EXPHIL_MELEE_FIELD_INIT;
    assert_int_equal(exphil_melee_field_get(layout, index, &field, NULL), EXPHIL_OK);
    return field;
}

/* Every float and every id belongs to exactly one field. */
static void check_cover(const char *layout, int64_t floats, int64_t ids)
{
    int32_t float_seen[XPH_MELEE_FLOATS_MOST] = {0}, id_seen[EXPHIL_IDS_MAX] = {0};
    for (int64_t i = 0; i < exphil_melee_field_count(layout); i++) {
        exphil_melee_field field = field_at(layout, i);
        assert_true(field.count >= 1 && field.offset >= 0);
        assert_true(field.offset + field.count <= (field.is_id ? ids : floats));
        for (int64_t j = 0; j < field.count; j++) (field.is_id ? id_seen : float_seen)[field.offset + j]++;
    }
    for (int64_t i = 0; i < floats; i++) {
        if (float_seen[i] != 1)
            fail_msg("%s: column %d is described %d times", layout, (int)i, float_seen[i]);
    }
    for (int64_t i = 0; i < ids; i++) assert_int_equal(id_seen[i], 1);
}

static void test_cover(void **state)
{
    for (int i = 0; i < LAYOUTS; i++)
        assert_true(xph_melee_layout_find(names[i])->float_count <= XPH_MELEE_FLOATS_MOST);
    check_cover("melee2", 278, 18);
    check_cover("exphil288", 288, 0);
    check_cover("slippi", 960, 0);
    check_cover("slippi-nana", 1854, 0);
    check_cover(NULL, 278, 18);
}

static void check_field(const exphil_melee_field *field)
{
    assert_true(strlen(field->name) >= 1 && strlen(field->name) < 63);
    assert_true(strlen(field->source) >= 1 && strlen(field->source) < 63); /* 63 could have been cut */
    assert_true(field->low <= field->high);
    if (field->is_id) {
        assert_true(field->count == 1 && field->low == 0 && field->high >= 1);
    } else if (field->count > 1) {
        assert_true(field->scale == 0);
    }
}

static void test_fields(void **state)
{
    for (int layout = 0; layout < LAYOUTS; layout++) {
        int64_t count = exphil_melee_field_count(names[layout]);
        for (int64_t i = 0; i < count; i++) {
            exphil_melee_field field = field_at(names[layout], i);
            check_field(&field);
            for (int64_t j = 0; j < i; j++) {
                exphil_melee_field other = field_at(names[layout], j);
                if (field.is_id == other.is_id) assert_string_not_equal(field.name, other.name);
            }
        }
    }
}

/* Numbers need a text for the day they are not finite; offsets need the source they name. */
static void test_trouble(void **state)
{
    for (int k = 0; k < LAYOUTS; k++) {
        const xph_melee_layout *layout = xph_melee_layout_find(names[k]);
        for (int32_t i = 0; i < layout->section_count; i++) {
            const xph_melee_section *section = &layout->sections[i];
            for (int32_t j = 0; j < section->count; j++) {
                const xph_melee_field *field = &section->fields[j];
                assert_int_equal(field->trouble != NULL, field->kind == XPH_FIELD_NUMBER);
                if (field->trouble) assert_memory_equal(field->trouble, field->name, strlen(field->name));
                assert_true(field->from < XPH_MELEE_VALUES);
            }
        }
    }
}

/* Tables of one-hots: only they have one, each column is set by a number or by all others, and no number leads past the last. */
static void test_one_hots(void **state)
{
    for (int k = 0; k < LAYOUTS; k++) {
        const xph_melee_layout *layout = xph_melee_layout_find(names[k]);
        for (int64_t i = 0; i < exphil_melee_field_count(names[k]); i++) {
            const exphil_melee_field field = field_at(names[k], i);
            const char *rule;
            bool set[1024] = {false};
            const bool one_hot = xph_melee_one_hot(layout, i, &rule);
            assert_int_equal(one_hot, field.scale == 0 && field.high != 0 && field.count > 1);
            assert_int_equal(rule != NULL, strstr(field.source, "masked") != NULL);
            for (int32_t n = -1; one_hot && n < 65536; n++) {
                const int32_t column = xph_melee_one_hot_column(layout, i, n);
                assert_in_range(column + 1, 0, field.count);
                if (column >= 0) set[column] = true;
                if (n >= XPH_MELEE_NUMBERS) assert_int_equal(column, xph_melee_one_hot_column(layout, i, -1));
            }
            const bool sparse = one_hot && strcmp(field.name, "stage") == 0 && field.count == 64;
            for (int32_t c = 0; one_hot && !sparse && c < field.count; c++) assert_true(set[c]);
        }
    }
}

static void test_id_specs(void **state)
{
    exphil_spec spec = EXPHIL_SPEC_INIT;
    assert_int_equal(exphil_melee_spec(NULL, NULL, &spec, NULL), EXPHIL_OK);
    int64_t ids = 0;
    for (int64_t i = 0; i < exphil_melee_field_count("melee2"); i++) {
        exphil_melee_field field = field_at("melee2", i);
        if (!field.is_id) continue;
        assert_string_equal(spec.ids[field.offset].name, field.name);
        assert_int_equal(spec.ids[field.offset].entries, (int32_t)field.high + 1);
        ids++;
    }
    assert_int_equal(ids, spec.id_count);
}

static void test_presets(void **state)
{
    const char *codecs[] = {"exphil81", "exphil81-floor", "slippi", "slippi-fine"};
    const int64_t logits[] = {81, 81, 81, 151};
    uint64_t hashes[4 * LAYOUTS];
    for (int i = 0; i < 4 * LAYOUTS; i++) {
        exphil_spec spec = EXPHIL_SPEC_INIT;
        assert_int_equal(exphil_melee_spec(names[i / 4], codecs[i % 4], &spec, NULL), EXPHIL_OK);
        assert_int_equal(xph_spec_check(&spec, NULL), EXPHIL_OK);
        assert_int_equal(xph_spec_logits(&spec), logits[i % 4]);
        assert_string_equal(spec.layout, names[i / 4]);
        assert_string_equal(spec.codec, codecs[i % 4]);
        hashes[i] = exphil_spec_hash(&spec);
        for (int j = 0; j < i; j++) assert_true(hashes[i] != hashes[j]);
    }
    exphil_spec usual = EXPHIL_SPEC_INIT;
    assert_int_equal(exphil_melee_spec(NULL, NULL, &usual, NULL), EXPHIL_OK);
    assert_true(exphil_spec_hash(&usual) == hashes[0]);
}

/* Known answers. Rows in files mean what these hashes say: whoever changes a table must mean to. */
static void test_hashes(void **state)
{
    static const uint64_t known[LAYOUTS] = {UINT64_C(0x982da86c9d58967e), UINT64_C(0x9a1793b78e8bd66b),
                                            UINT64_C(0xc3746a7585509f5b), UINT64_C(0xf8897e985ee215e9)};
    for (int i = 0; i < LAYOUTS; i++) {
        uint64_t hash = xph_melee_layout_hash(xph_melee_layout_find(names[i]));
        if (hash != known[i]) fail_msg("%s %016llx", names[i], (unsigned long long)hash);
    }
}

/* Any property of any field changes the hash. */
static void test_hash_covers(void **state)
{
    const xph_melee_field plain = {"a", "a is not finite", "b", 0, 1, XPH_FIELD_NUMBER, 0, 1, -1, 1, NULL};
    uint64_t seen[9];
    for (int change = 0; change < 9; change++) {
        xph_melee_field field = plain;
        if (change == 1) field.name = "c";
        if (change == 2) field.source = "c";
        if (change == 3) field.offset = 1;
        if (change == 4) field.count = 2;
        if (change == 5) field.kind = XPH_FIELD_FLAG;
        if (change == 6) field.scale = 2;
        if (change == 7) field.low = -2;
        if (change == 8) field.high = 2;
        xph_melee_section section = {&field, 1, XPH_WHO_OWN, 0};
        xph_melee_layout layout = {"x", &section, 1, 1, 0, NULL};
        seen[change] = xph_melee_layout_hash(&layout);
        for (int i = 0; i < change; i++) assert_true(seen[i] != seen[change]);
    }
}

static void test_refused(void **state)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_spec spec = EXPHIL_SPEC_INIT;
    exphil_melee_field field = EXPHIL_MELEE_FIELD_INIT;
    assert_int_equal(exphil_melee_field_count("melee3"), 0);
    assert_int_equal(exphil_melee_spec("melee3", NULL, &spec, &error), EXPHIL_E_INVALID);
    assert_non_null(strstr(error.message, "melee3"));
    assert_int_equal(exphil_melee_spec(NULL, "exphil82", &spec, &error), EXPHIL_E_INVALID);
    assert_non_null(strstr(error.message, "exphil82"));
    assert_null(spec.layout);
    assert_int_equal(exphil_melee_spec(NULL, NULL, NULL, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_melee_field_get("melee3", 0, &field, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_melee_field_get("melee2", -1, &field, &error), EXPHIL_E_INVALID);
    int64_t count = exphil_melee_field_count("melee2");
    assert_int_equal(exphil_melee_field_get("melee2", count, &field, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_melee_field_get("melee2", count - 1, &field, &error), EXPHIL_OK);
    field.struct_size = 8;
    assert_int_equal(exphil_melee_field_get("melee2", 0, &field, &error), EXPHIL_E_INVALID);
}

static void test_names(void **state)
{
    assert_string_equal(xph_melee_character_name(2), "fox");
    assert_string_equal(xph_melee_character_name(10), "mewtwo");
    assert_string_equal(xph_melee_character_name(25), "ganondorf");
    assert_null(xph_melee_character_name(26));
    assert_null(xph_melee_character_name(-1));
    assert_int_equal(xph_melee_character_find("FOX"), 2);
    assert_int_equal(xph_melee_character_find("Dr. Mario"), 22);
    assert_int_equal(xph_melee_character_find("drmario"), 22);
    assert_int_equal(xph_melee_character_find("fo"), -1);
    assert_int_equal(xph_melee_character_find("foxx"), -1);
    assert_int_equal(xph_melee_character_find(""), -1);
    assert_int_equal(xph_melee_character_find(NULL), -1);
    for (int32_t i = 0; i < 26; i++)
        assert_int_equal(xph_melee_character_find(xph_melee_character_name(i)), i);
    assert_string_equal(xph_melee_stage_name(31), "battlefield");
    assert_null(xph_melee_stage_name(1));
    assert_int_equal(xph_melee_stage_find("Yoshi's Story"), 8);
    assert_int_equal(xph_melee_stage_find("nowhere"), -1);
    for (int32_t i = 0; i < 90; i++) {
        if (xph_melee_stage_name(i)) assert_int_equal(xph_melee_stage_find(xph_melee_stage_name(i)), i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cover),    cmocka_unit_test(test_fields),      cmocka_unit_test(test_trouble),
        cmocka_unit_test(test_one_hots), cmocka_unit_test(test_id_specs),    cmocka_unit_test(test_presets),
        cmocka_unit_test(test_hashes),   cmocka_unit_test(test_hash_covers), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
