/* Specs: every rule refused by name, hashes that change with every property and with nothing else, flat
 * copies. */
#include "test.h"

#include <stdio.h>

typedef struct sample {
    exphil_spec spec;
    exphil_id_spec ids[2];
    exphil_head_spec heads[2];
} sample;

static sample *fresh(void)
{
    static sample s;
    s = (sample){.ids = {{"state", 400, 16}, {"own.age", 64, 0}},
                 .heads = {{"buttons", EXPHIL_BERNOULLI, 8, 0, 0}, {"main_x", EXPHIL_CATEGORICAL, 17, 8, 0}}};
    s.spec = (exphil_spec){sizeof s.spec, "pong", "pad-2", 12, 2, s.ids, 2, s.heads, 0};
    return &s;
}

static void test_valid(void **state)
{
    assert_int_equal(xph_spec_check(&fresh()->spec, NULL), EXPHIL_OK);
    assert_int_equal(xph_spec_logits(&fresh()->spec), 25);
    sample *s = fresh();
    s->spec.float_count = 0;
    assert_int_equal(xph_spec_check(&s->spec, NULL), EXPHIL_OK);
    s = fresh();
    s->spec.id_count = 0;
    s->spec.ids = NULL;
    assert_int_equal(xph_spec_check(&s->spec, NULL), EXPHIL_OK);
}

static void check_broken(const sample *s, const char *change, const char *part)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(xph_spec_check(&s->spec, &error), EXPHIL_E_INVALID);
    if (!strstr(error.message, part)) fail_msg("%s: %s", change, error.message);
    assert_true(exphil_spec_hash(&s->spec) == 0);
}

/* A valid spec with this one thing changed is refused with these words. */
#define BROKEN(change, part)                                                                                 \
  do {                                                                                                       \
    sample *s = fresh();                                                                                     \
    s->change;                                                                                               \
    check_broken(s, #change, part);                                                                          \
  } while (0)

static void test_broken(void **state)
{
    BROKEN(spec.struct_size = 8, "struct_size");
    BROKEN(spec.layout = NULL, "spec.layout");
    BROKEN(spec.layout = "a234567890123456789012345678901x", "spec.layout");
    BROKEN(spec.codec = "", "spec.codec");
    BROKEN(spec.codec = "a b", "spec.codec");
    BROKEN(spec.float_count = -1, "float_count");
    BROKEN(spec.float_count = 4097, "float_count");
    BROKEN(spec.id_count = 65, "id_count");
    BROKEN(spec.id_count = -1, "id_count");
    BROKEN(spec.head_count = 0, "head_count");
    BROKEN(spec.head_count = 17, "head_count");
    BROKEN(spec.ids = NULL, "spec.ids is NULL");
    BROKEN(spec.heads = NULL, "spec.heads is NULL");
    BROKEN(spec.float_count = s->spec.id_count = 0, "both 0");
    BROKEN(ids[1].name = "Upper", "ids[1].name");
    BROKEN(ids[1].name = "state", "both called state");
    BROKEN(ids[0].entries = 0, "entries is 0");
    BROKEN(ids[0].entries = 65537, "entries is 65537");
    BROKEN(ids[0].width = -1, "width is -1");
    BROKEN(ids[0].width = 257, "width is 257");
    BROKEN(heads[0].name = NULL, "heads[0].name");
    BROKEN(heads[1].name = "buttons", "both called buttons");
    BROKEN(heads[1].kind = 2, "kind 2");
    BROKEN(heads[0].count = 0, "count is 0");
    BROKEN(heads[0].count = 32, "count is 32");
    BROKEN(heads[1].count = 1, "count is 1");
    BROKEN(heads[1].count = 1025, "count is 1025");
    BROKEN(heads[1].neutral = 17, "neutral 17");
    BROKEN(heads[0].neutral = 256, "neutral 256");
    BROKEN(heads[0].neutral = -1, "neutral -1");
    BROKEN(heads[0].reserved = 1, "reserved");
    assert_int_equal(xph_spec_check(NULL, NULL), EXPHIL_E_INVALID);
    assert_true(exphil_spec_hash(NULL) == 0);
}

static void test_extremes(void **state)
{
    sample *s = fresh();
    s->heads[0].count = 31;
    s->heads[0].neutral = INT32_MAX;
    s->heads[1].count = 1024;
    s->ids[0].entries = 65536;
    s->ids[0].width = 256;
    s->spec.float_count = 4096;
    s->spec.layout = "a23456789012345678901234567890x";
    assert_int_equal(xph_spec_check(&s->spec, NULL), EXPHIL_OK);
}

/* Each changes one property that matters. */
static bool change(sample *s, int which)
{
    switch (which) {
    case 0:
        s->spec.layout = "ping";
        return true;
    case 1:
        s->spec.codec = "pad-3";
        return true;
    case 2:
        s->spec.float_count++;
        return true;
    case 3:
        s->spec.id_count--;
        return true;
    case 4:
        s->spec.head_count--;
        return true;
    case 5:
        s->spec.layout_hash = 7;
        return true;
    case 6:
        s->ids[0].name = "states";
        return true;
    case 7:
        s->ids[1].entries++;
        return true;
    case 8:
        s->ids[1].width = 9;
        return true;
    case 9:
        s->heads[0].name = "button";
        return true;
    case 10:
        s->heads[0].kind = EXPHIL_CATEGORICAL;
        return true;
    case 11:
        s->heads[1].count++;
        return true;
    case 12:
        s->heads[1].neutral++;
        return true;
    default:
        return false;
    }
}

static void test_hash(void **state)
{
    uint64_t seen[16];
    int count = 0;
    seen[count++] = exphil_spec_hash(&fresh()->spec);
    assert_true(seen[0] != 0);
    for (int which = 0; change(fresh(), which); which++) {
        sample *s = fresh();
        change(s, which);
        uint64_t hash = exphil_spec_hash(&s->spec);
        for (int i = 0; i < count; i++) assert_true(hash != seen[i]);
        seen[count++] = hash;
    }
    sample *s = fresh();
    s->ids[1].width = 8; /* what 0 means */
    assert_true(exphil_spec_hash(&s->spec) == seen[0]);
}

/* A known answer: hashes stand in files, so they must never change by accident. */
static void test_hash_answer(void **state)
{
    uint64_t hash = exphil_spec_hash(&fresh()->spec);
    if (hash != UINT64_C(0x1c1af4e2c5a8bad4)) fail_msg("hash is %016llx", (unsigned long long)hash);
}

static void test_copy(void **state)
{
    test_memory memory;
    test_memory_init(&memory);
    exphil_context *context = test_context(&memory, NULL, 1);
    sample *s = fresh();
    uint64_t hash = exphil_spec_hash(&s->spec);
    exphil_spec *copy = NULL;
    assert_int_equal(xph_spec_copy(context, &s->spec, &copy, NULL), EXPHIL_OK);
    memset(s, 0xEE, sizeof *s);
    assert_int_equal(xph_spec_check(copy, NULL), EXPHIL_OK);
    assert_string_equal(copy->layout, "pong");
    assert_string_equal(copy->codec, "pad-2");
    assert_string_equal(copy->ids[1].name, "own.age");
    assert_int_equal(copy->ids[1].width, 8);
    assert_string_equal(copy->heads[1].name, "main_x");
    assert_int_equal(copy->heads[1].neutral, 8);
    assert_true(copy->layout_hash != 0);
    assert_true(exphil_spec_hash(copy) == hash);
    exphil_spec *second = NULL;
    assert_int_equal(xph_spec_copy(context, copy, &second, NULL), EXPHIL_OK);
    assert_true(second->layout_hash == copy->layout_hash);
    xph_spec_free(context, second);
    xph_spec_free(context, copy);
    xph_spec_free(context, NULL);
    exphil_context_destroy(context);
    assert_memory_clean(&memory);
}

static void test_copy_fails(void **state)
{
    test_memory memory;
    test_memory_init(&memory);
    exphil_context *context = test_context(&memory, NULL, 1);
    exphil_spec *copy = NULL;
    sample *s = fresh();
    s->spec.head_count = 0;
    assert_int_equal(xph_spec_copy(context, &s->spec, &copy, NULL), EXPHIL_E_INVALID);
    memory.fail_at = atomic_load(&memory.calls) + 1;
    assert_int_equal(xph_spec_copy(context, &fresh()->spec, &copy, NULL), EXPHIL_E_MEMORY);
    assert_null(copy);
    exphil_context_destroy(context);
    assert_memory_clean(&memory);
}

static void test_actions(void **state)
{
    const exphil_spec *spec = &fresh()->spec;
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(xph_action_check(spec, (int32_t[]){255, 16}, 0, &error), EXPHIL_OK);
    assert_int_equal(xph_action_check(spec, (int32_t[]){256, 16}, 31, &error), EXPHIL_E_INVALID);
    assert_string_equal(error.message, "row 31: action head buttons is 256; it has 8 bits");
    assert_int_equal(xph_action_check(spec, (int32_t[]){0, 17}, -1, &error), EXPHIL_E_INVALID);
    assert_string_equal(error.message, "action head main_x is 17; it has 17 classes");
    assert_int_equal(xph_action_check(spec, (int32_t[]){-1, 0}, -1, NULL), EXPHIL_E_INVALID);
    assert_int_equal(xph_action_check(spec, (int32_t[]){0, -1}, -1, NULL), EXPHIL_E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid),       cmocka_unit_test(test_broken),
        cmocka_unit_test(test_extremes),    cmocka_unit_test(test_hash),
        cmocka_unit_test(test_hash_answer), cmocka_unit_test(test_copy),
        cmocka_unit_test(test_copy_fails),  cmocka_unit_test(test_actions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
