/* Notes: they go with the weights wherever these go, they change no bit of anything else, and what is no text is refused. */
#include "train_case.h"

#include <exphil/notes.h>

#include <stdio.h>
#include <stdlib.h>

static exphil_context *context;

static const char text[] =
    "{\"who\":\"f\xc3\xb6x \xe2\x82\xac \xf0\x9f\xa6\x8a\",\"line\":\"a\\nb\",\"quote\":\"\\\"\"}\n\x01\x1f";

static exphil_model *model_of(int64_t hidden)
{
    exphil_model_config config = model_case_config("gru", EXPHIL_TYPE_F32);
    config.hidden = config.head_width = hidden;
    return model_case_create(context, &config);
}

static void has(const exphil_model *model, const char *want)
{
    const char *notes = NULL;
    assert_ok(exphil_model_notes(model, &notes, NULL));
    assert_string_equal(notes, want);
}

static uint64_t hash_of(const exphil_model *model)
{
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    assert_ok(exphil_model_query(model, &info, NULL));
    return info.weights_hash;
}

static exphil_model *again(const exphil_model *model, const char *name)
{
    exphil_model *loaded = NULL;
    const char *path = test_path(name);
    assert_ok(exphil_model_save(model, path, NULL));
    assert_ok(exphil_model_load(context, path, &loaded, NULL));
    return loaded;
}

/* Through a file and through rounding; without notes the file is the one that never heard of them. */
static void they_go_with_the_weights(void **state)
{
    exphil_model *model = model_of(4), *rounded = NULL;
    uint64_t hash = hash_of(model);
    has(model, "");
    exphil_model *plain = again(model, "plain");
    has(plain, "");
    assert_ok(exphil_model_notes_set(model, text, NULL));
    has(model, text);
    assert_int_equal(hash_of(model), hash);
    exphil_model *loaded = again(model, "noted");
    has(loaded, text);
    assert_int_equal(hash_of(loaded), hash);
    assert_ok(exphil_model_quantize(loaded, EXPHIL_TYPE_BF16, &rounded, NULL));
    has(rounded, text);
    exphil_model *stored = again(rounded, "rounded");
    has(stored, text);
    assert_ok(exphil_model_notes_set(loaded, "", NULL));
    has(loaded, "");
    assert_ok(exphil_model_save(loaded, test_path("cleared"), NULL));
    assert_same_file(test_path("plain"), test_path("cleared"));
    exphil_model *all[] = {model, plain, loaded, rounded, stored};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) exphil_model_destroy(all[i]);
}

/* The longest text, of what takes most room in a file. */
static void the_longest(void **state)
{
    char *most = malloc(EXPHIL_NOTES_MOST + 2);
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_model *model = model_of(4);
    memset(most, '\x02', EXPHIL_NOTES_MOST + 1);
    most[EXPHIL_NOTES_MOST + 1] = 0;
    assert_int_equal(exphil_model_notes_set(model, most, &error), EXPHIL_E_INVALID);
    assert_says(&error, "notes: longer than 65536 bytes");
    has(model, "");
    most[EXPHIL_NOTES_MOST] = 0;
    assert_ok(exphil_model_notes_set(model, most, NULL));
    exphil_model *loaded = again(model, "longest");
    has(loaded, most);
    /* A character of four bytes that would end behind the limit. */
    memcpy(most + EXPHIL_NOTES_MOST - 3, "\xf0\x9f\xa6\x8a", 5);
    assert_int_equal(exphil_model_notes_set(model, most, &error), EXPHIL_E_INVALID);
    assert_says(&error, "notes: longer");
    exphil_model_destroy(loaded);
    exphil_model_destroy(model);
    free(most);
}

static void what_is_no_text_is_refused(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"ab\x80", "notes: byte 2 is not UTF-8"},    {"\xc3", "notes: byte 0 is not UTF-8"},
        {"x\xe2\x82", "notes: byte 1 is not UTF-8"}, {"\xed\xa0\x80", "notes: byte 0 is not UTF-8"},
        {"\xc0\xaf", "notes: byte 0 is not UTF-8"},  {"\xf5\x80\x80\x80", "notes: byte 0 is not UTF-8"}};
    exphil_model *model = model_of(4);
    exphil_session *session = NULL;
    const char *notes = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_ok(exphil_model_notes_set(model, "kept", NULL));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(exphil_model_notes_set(model, cases[i].text, &error), EXPHIL_E_INVALID);
        assert_says(&error, cases[i].says);
    }
    assert_int_equal(exphil_model_notes_set(NULL, "x", &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_model_notes(model, NULL, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_model_notes(NULL, &notes, &error), EXPHIL_E_INVALID);
    assert_ok(exphil_session_create(model, NULL, &session, NULL));
    assert_int_equal(exphil_model_notes_set(model, "x", &error), EXPHIL_E_STATE);
    assert_says(&error, "in use");
    has(model, "kept");
    exphil_session_destroy(session);
    exphil_model_destroy(model);
}

/* Replaces one text of a file by one of the same length, and loads it. */
static void forged(const char *from, const char *to, exphil_status want, const char *says)
{
    size_t bytes;
    char *file = test_read(test_path("forge"), &bytes), *at = NULL;
    exphil_model *model = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    for (size_t i = 0; i + strlen(from) <= bytes && !at; i++)
        if (memcmp(file + i, from, strlen(from)) == 0) at = file + i;
    assert_non_null(at);
    assert_int_equal(strlen(from), strlen(to));
    memcpy(at, to, strlen(to));
    exphil_status status = exphil_model_load_memory(context, file, bytes, &model, &error);
    if (status != want || !strstr(error.message, says))
        fail_msg("%s: %s\n  wanted: %s", exphil_status_name(status), error.message, says);
    free(file);
}

static void forged_files_are_refused(void **state)
{
    exphil_model *model = model_of(4);
    assert_ok(exphil_model_notes_set(model, "marker \x01 \xc3\xb6", NULL));
    assert_ok(exphil_model_save(model, test_path("forge"), NULL));
    forged("marker", "Marker", EXPHIL_E_FORMAT, "exphil.notes is damaged");
    forged("\\u0001", "\\u00z1", EXPHIL_E_FORMAT, "\\u needs four hexadecimal digits");
    forged("\\u0001", "\\ud800", EXPHIL_E_FORMAT, "half of a surrogate pair");
    forged("\\u0001", "\\u0000", EXPHIL_E_FORMAT, "\\u0000 in a text");
    forged("\\u0001", "\\q0001", EXPHIL_E_FORMAT, "unknown escape");
    forged("\xc3\xb6", "\xc3\xc3", EXPHIL_E_FORMAT, "UTF-8");
    exphil_model_destroy(model);
}

/* Too long for notes, not for a file: written by somebody else, without a checksum. */
static void long_ones_of_others(void **state)
{
    exphil_model *model = model_of(4), *loaded = NULL;
    size_t bytes;
    exphil_error error = EXPHIL_ERROR_INIT;
    xph_file_writer writer = {.context = context};
    assert_ok(exphil_model_save(model, test_path("short"), NULL));
    char *most = malloc(EXPHIL_NOTES_MOST + 2), *file = test_read(test_path("short"), &bytes);
    memset(most, 'n', EXPHIL_NOTES_MOST + 1);
    most[EXPHIL_NOTES_MOST + 1] = 0;
    xph_tensors tensors;
    assert_ok(xph_tensors_parse(context, file, bytes, "t", &tensors, NULL));
    const xph_pair pairs[] = {{"exphil.format", "1"},
                              {"exphil.model", xph_tensors_metadata(&tensors, "exphil.model")},
                              {"exphil.notes", most}};
    for (int i = 0; i < 2; i++, most[EXPHIL_NOTES_MOST] = 0) {
        assert_ok(xph_tensors_write(context, tensors.tensor, tensors.count, pairs, 3, test_path("long"),
                                    &writer, NULL));
        assert_ok(xph_file_commit(&writer, NULL));
        exphil_status status = exphil_model_load(context, test_path("long"), &loaded, &error);
        assert_int_equal(status, i ? EXPHIL_OK : EXPHIL_E_FORMAT);
    }
    assert_says(&error, "weights: exphil.notes: notes: longer than 65536 bytes");
    has(loaded, most);
    xph_tensors_free(&tensors);
    free(file);
    free(most);
    exphil_model_destroy(loaded);
    exphil_model_destroy(model);
}

static void wrote(train_run *run, const char *want)
{
    exphil_model *written = NULL, *given = NULL;
    const char *path = test_path("run");
    const char *notes = NULL;
    assert_ok(exphil_trainer_save(run->trainer, path, NULL));
    assert_ok(exphil_model_load(run->context, path, &written, NULL));
    assert_ok(exphil_model_notes(written, &notes, NULL));
    assert_string_equal(notes, want);
    assert_ok(exphil_trainer_model(run->trainer, EXPHIL_WEIGHTS, &given, NULL));
    assert_ok(exphil_model_notes(given, &notes, NULL));
    assert_string_equal(notes, want);
    exphil_model_destroy(written);
    exphil_model_destroy(given);
}

static void a_trainer_writes_its_own(void **state)
{
    train_plan plan = train_plan_of("gru", EXPHIL_MODE_CARRY);
    train_run run = train_begin(&plan);
    exphil_error error = EXPHIL_ERROR_INIT;
    train_steps(&run, 2);
    wrote(&run, "");
    assert_ok(exphil_trainer_save(run.trainer, test_path("before"), NULL));
    assert_ok(exphil_trainer_notes_set(run.trainer, text, NULL));
    wrote(&run, text);
    assert_int_equal(exphil_trainer_notes_set(run.trainer, "\xff", &error), EXPHIL_E_INVALID);
    assert_says(&error, "notes: byte 0 is not UTF-8");
    assert_int_equal(exphil_trainer_notes_set(NULL, "x", &error), EXPHIL_E_INVALID);
    wrote(&run, text);
    assert_ok(exphil_trainer_save(run.trainer, test_path("noted"), NULL));
    /* A checkpoint without notes leaves what is there, one with notes brings its own. */
    assert_ok(exphil_trainer_resume(run.trainer, test_path("before"), NULL));
    wrote(&run, text);
    assert_ok(exphil_trainer_notes_set(run.trainer, NULL, NULL));
    wrote(&run, "");
    assert_ok(exphil_trainer_resume(run.trainer, test_path("noted"), NULL));
    wrote(&run, text);
    /* Notes that are not what was written change nothing. */
    size_t bytes;
    char *file = test_read(test_path("noted.optimizer"), &bytes), *at = file;
    while (at < file + bytes && strncmp(at, "exphil.notes_xxh64\":\"", 21) != 0) at++;
    assert_true(at < file + bytes);
    at[21] = at[21] == '0' ? '1' : '0';
    test_write(test_path("torn.optimizer"), file, bytes);
    assert_ok(exphil_trainer_notes_set(run.trainer, "mine", NULL));
    assert_int_equal(exphil_trainer_resume(run.trainer, test_path("torn"), &error), EXPHIL_E_FORMAT);
    assert_says(&error, "exphil.notes is damaged, its checksum differs");
    wrote(&run, "mine");
    free(file);
    train_end(&run);
}

/* A trainer of a model with notes goes on with these. */
static void a_model_s_notes_go_on(void **state)
{
    train_plan plan = train_plan_of("gru", EXPHIL_MODE_CARRY);
    train_run run = train_begin(&plan);
    exphil_model *model = NULL, *given = NULL;
    exphil_optimizer *optimizer = NULL;
    exphil_trainer *trainer = NULL;
    const char *notes = NULL;
    assert_ok(exphil_trainer_notes_set(run.trainer, "first", NULL));
    assert_ok(exphil_trainer_model(run.trainer, EXPHIL_WEIGHTS, &model, NULL));
    assert_ok(exphil_optimizer_create(model, NULL, &optimizer, NULL));
    assert_ok(exphil_trainer_create(model, optimizer, run.prefetcher, NULL, &trainer, NULL));
    assert_ok(exphil_trainer_model(trainer, EXPHIL_WEIGHTS, &given, NULL));
    assert_ok(exphil_model_notes(given, &notes, NULL));
    assert_string_equal(notes, "first");
    exphil_model_destroy(given);
    exphil_trainer_destroy(trainer);
    exphil_optimizer_destroy(optimizer);
    exphil_model_destroy(model);
    train_end(&run);
}

/* Wherever memory ends, notes are the old ones or the new ones. */
static void memory_may_fail(void **state)
{
    test_memory memory;
    test_memory_init(&memory);
    exphil_context *poor = test_context(&memory, NULL, 1);
    exphil_model_config config = model_case_config("gru", EXPHIL_TYPE_F32);
    exphil_model *model = model_case_create(poor, &config);
    const char *notes = NULL;
    assert_ok(exphil_model_notes_set(model, "old", NULL));
    memory.fail_at = atomic_load(&memory.calls) + 1;
    assert_int_equal(exphil_model_notes_set(model, "new", NULL), EXPHIL_E_MEMORY);
    assert_ok(exphil_model_notes(model, &notes, NULL));
    assert_string_equal(notes, "old");
    exphil_model_destroy(model);
    exphil_context_destroy(poor);
    assert_memory_clean(&memory);
}

static int open_context(void **state)
{
    context = test_context(NULL, NULL, 1);
    return 0;
}

static int close_context(void **state)
{
    exphil_context_destroy(context);
    return test_leave(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_go_with_the_weights),   cmocka_unit_test(the_longest),
        cmocka_unit_test(what_is_no_text_is_refused), cmocka_unit_test(forged_files_are_refused),
        cmocka_unit_test(long_ones_of_others),        cmocka_unit_test(a_trainer_writes_its_own),
        cmocka_unit_test(a_model_s_notes_go_on),      cmocka_unit_test(memory_may_fail),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
