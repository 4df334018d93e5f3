/* Weights files of models: what is saved comes back to the last bit and the same bytes; everything that
 * does not belong together is refused by name; damage, missing memory, failing files; Python in between. */
#include "context_case.h"
#include "model_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- there and back ------------------------------------------------------------------------------------ */

static exphil_model *load(const char *path)
{
    exphil_model *model = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_model_load(context, path, &model, &error) != EXPHIL_OK) fail_msg("%s", error.message);
    return model;
}

static void save(const exphil_model *model, const char *path)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_model_save(model, path, &error) != EXPHIL_OK) fail_msg("%s", error.message);
}

static void assert_same_model(const exphil_model *one, const exphil_model *two)
{
    exphil_model_info a = EXPHIL_MODEL_INFO_INIT, b = EXPHIL_MODEL_INFO_INIT;
    assert_int_equal(exphil_model_query(one, &a, NULL), EXPHIL_OK);
    assert_int_equal(exphil_model_query(two, &b, NULL), EXPHIL_OK);
    assert_memory_equal(&a, &b, sizeof a);
    assert_int_equal(xph_model_config_hash(one), xph_model_config_hash(two));
}

static void there_and_back(const exphil_model_config *config)
{
    const char *one = test_path("one.safetensors"), *two = test_path("two.safetensors");
    exphil_model *model = model_case_create(context, config);
    save(model, one);
    exphil_model *loaded = load(one);
    assert_same_model(model, loaded);
    save(loaded, two);
    assert_same_file(one, two);
    size_t bytes;
    char *file = test_read(one, &bytes);
    exphil_model *from_memory = NULL;
    assert_int_equal(exphil_model_load_memory(context, file, bytes, &from_memory, NULL), EXPHIL_OK);
    memset(file, 0xFF, bytes); /* it was copied */
    assert_same_model(model, from_memory);
    free(file);
    exphil_model_destroy(from_memory);
    exphil_model_destroy(loaded);
    exphil_model_destroy(model);
}

static void every_kind_comes_back(void **state)
{
    static const char *const patterns[] = {EACH_BLOCK "(mamba ffn)*2 attention", "(lstm gru)"};
    enum { PATTERNS = sizeof patterns / sizeof patterns[0] };
    for (int i = 0; i < 2 * PATTERNS; i++) {
        exphil_model_config config =
            model_case_config(patterns[i % PATTERNS], i < PATTERNS ? EXPHIL_TYPE_F32 : EXPHIL_TYPE_F64);
        config.mode = i & 1 ? EXPHIL_MODE_WINDOW : EXPHIL_MODE_CARRY;
        config.window_frames = i & 1 ? 7 : 0;
        config.heads = i & 2 ? EXPHIL_HEADS_AUTOREGRESSIVE : EXPHIL_HEADS_INDEPENDENT;
        config.no_previous_action = i & 4 ? 1 : 0;
        config.seed = i == 3 ? UINT64_MAX : (uint64_t)i;
        there_and_back(&config);
    }
}

static void other_ends_come_back(void **state)
{
    for (int i = 0; i < 2 * MODEL_CASE_ENDS; i++) {
        exphil_model_config config = model_case_config("norm gru_only", EXPHIL_TYPE_F32);
        config.heads = i & 1;
        config.input_width = i < 2 ? 0 : 11 * i;
        model_case_end(&config, i / 2);
        there_and_back(&config);
    }
}

static void the_default_comes_back(void **state)
{
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    config.hidden = 32;
    there_and_back(&config); /* melee2 and exphil81 */
}

/* ---- what is in the file ------------------------------------------------------------------------------- */

/* A file taken apart, to be put together again with something changed. Everything is malloc'ed or in the
 * file. */
typedef struct parts {
    char *file;
    xph_tensors tensors;
    xph_array array[80];
    int64_t count;
    xph_pair pair[16];
    int64_t pairs;
    char *model; /* its own copy of the pair exphil.model */
} parts;

static int pair_index(const parts *p, const char *key)
{
    for (int i = 0; i < p->pairs; i++) {
        if (strcmp(p->pair[i].key, key) == 0) return i;
    }
    fail_msg("no pair %s", key);
    return -1;
}

static exphil_model_config small_config(void)
{
    exphil_model_config config = model_case_config("mamba ffn", EXPHIL_TYPE_F32);
    config.hidden = 4;
    config.head_width = 4;
    config.mamba_states = 2;
    config.mamba_rank = 1;
    return config;
}

static void take_apart(const char *path, parts *p)
{
    static const char *const keys[] = {"exphil.format", "exphil.model", "exphil.trained_updates",
                                       "exphil.trained_frames"};
    size_t bytes;
    exphil_error error = EXPHIL_ERROR_INIT;
    memset(p, 0, sizeof *p);
    p->file = test_read(path, &bytes);
    if (xph_tensors_parse(context, p->file, bytes, "t", &p->tensors, &error) != EXPHIL_OK)
        fail_msg("%s", error.message);
    p->count = p->tensors.count;
    assert_in_range(p->count, 1, 78);
    memcpy(p->array, p->tensors.tensor, (size_t)p->count * sizeof *p->array);
    assert_non_null(
        xph_tensors_metadata(&p->tensors, "exphil.model_xxh64")); /* left out below: it is optional */
    for (int i = 0; i < 4; i++) {
        p->pair[p->pairs] = (xph_pair){keys[i], xph_tensors_metadata(&p->tensors, keys[i])};
        assert_non_null(p->pair[p->pairs++].value);
    }
    p->model = malloc(8192);
    snprintf(p->model, 8192, "%s", p->pair[1].value);
    p->pair[1].value = p->model;
}

static void small_parts(parts *p)
{
    exphil_model_config config = small_config();
    exphil_model *model = model_case_create(context, &config);
    const char *path = test_path("parts.safetensors");
    save(model, path);
    exphil_model_destroy(model);
    take_apart(path, p);
}

/* Exchanges the first occurrence of from in the configuration. */
static void edit(parts *p, const char *from, const char *to)
{
    char *at = strstr(p->model, from);
    assert_non_null(at);
    memmove(at + strlen(to), at + strlen(from), strlen(at + strlen(from)) + 1);
    memcpy(at, to, strlen(to));
}

static exphil_status put_together(parts *p, exphil_error *error)
{
    const char *path = test_path("changed.safetensors");
    xph_file_writer writer = {.context = context};
    exphil_model *model = NULL;
    assert_int_equal(xph_tensors_write(context, p->array, p->count, p->pair, p->pairs, path, &writer, error),
                     EXPHIL_OK);
    assert_int_equal(xph_file_commit(&writer, error), EXPHIL_OK);
    size_t bytes;
    char *file = test_read(path, &bytes);
    exphil_status status = exphil_model_load_memory(context, file, bytes, &model, error);
    free(file);
    exphil_model_destroy(model);
    if (status < 0) assert_null(model);
    xph_tensors_free(&p->tensors);
    free(p->file);
    free(p->model);
    return status;
}

static void refused(parts *p, exphil_status status, const char *message)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_status found = put_together(p, &error);
    assert_string_equal(error.message, message);
    assert_int_equal(found, status);
}

static void refused_edit(const char *from, const char *to, exphil_status status, const char *message)
{
    parts p;
    small_parts(&p);
    edit(&p, from, to);
    refused(&p, status, message);
}

static void wrong_configurations(void **state)
{
    refused_edit("\"hidden\":4", "\"hidden\":0", EXPHIL_E_FORMAT,
                 "weights: exphil.model: hidden is 0, not in 1..2147483647");
    refused_edit("\"hidden\":4,", "", EXPHIL_E_FORMAT, "weights: exphil.model: hidden is missing");
    refused_edit("\"hidden\":4", "\"hidden\":\"4\"", EXPHIL_E_FORMAT,
                 "weights: exphil.model: hidden is no number");
    refused_edit("\"hidden\":4", "\"width\":1,\"hidden\":4", EXPHIL_E_FORMAT,
                 "weights: exphil.model: the whole has other fields than this version knows");
    refused_edit("\"carry\"", "\"carried\"", EXPHIL_E_FORMAT,
                 "weights: exphil.model: mode is an unknown word");
    refused_edit("\"bernoulli\"", "\"binary\"", EXPHIL_E_FORMAT,
                 "weights: exphil.model: heads[0].kind is an unknown word");
    refused_edit("\"entries\":7,", "", EXPHIL_E_FORMAT,
                 "weights: exphil.model: ids[1] has other fields than this version knows");
    refused_edit("{\"layout\"", "[\"layout\"", EXPHIL_E_FORMAT,
                 "weights: exphil.model, byte 9: ',' or ']' must stand here");
    refused_edit("\"neutral\":2", "\"neutral\":5", EXPHIL_E_FORMAT,
                 "weights: exphil.model: spec.heads[1] stick: neutral 5 is no value of this head");
    refused_edit("\"delay_frames\":1", "\"delay_frames\":65", EXPHIL_E_FORMAT,
                 "weights: exphil.model: exphil_model_config.delay_frames is 65, must be 0..64");
}

/* Members that are there only where they are not the usual. */
static void wrong_ends(void **state)
{
    static const char *const edits[][2] = {
        {"\"head_layers\":9,", "head_layers is 9, not in 1..4"},
        {"\"head_layers\":0,", "head_layers is 0, not in 1..4"},
        {"\"no_final_norm\":0,", "no_final_norm is 0, not in 1..1"},
        {"\"no_head_past\":true,", "no_head_past is no number"},
        {"\"head_units\":-1,", "head_units is -1, not in 1..2147483647"},
        {"\"head_units\":4,", "exphil_model_config.head_units is given, which needs head_layers"},
        {"\"head_layers\":1,\"head_units\":9000,",
         "exphil_model_config.head_units is 9000, must be 1..8192, or 0 for head_width"},
        {"\"head_activation\":\"silu\",", "head_activation is an unknown word"},
        {"\"head_activation\":\"relu\",",
         "exphil_model_config.head_activation is given, which needs head_layers"},
        {"\"input_width\":0,", "input_width is 0, not in 1..2147483647"},
        {"\"norm_epsilon\":0,", "norm_epsilon is 0"},
        {"\"norm_epsilon\":5,", "exphil_model_config.norm_epsilon is 5, must be 1e-12..0.1, or 0 for 1e-05"},
    };
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        char text[200], message[200];
        snprintf(text, sizeof text, "%s\"hidden\":4", edits[i][0]);
        snprintf(message, sizeof message, "weights: exphil.model: %s", edits[i][1]);
        refused_edit("\"hidden\":4", text, EXPHIL_E_FORMAT, message);
    }
}

static void configurations_that_do_not_fit(void **state)
{
    parts p;
    exphil_error error = EXPHIL_ERROR_INIT;
    small_parts(&p);
    edit(&p, "\"hidden\":4", "\"hidden\":5");
    assert_int_equal(put_together(&p, &error), EXPHIL_E_FORMAT);
    assert_non_null(strstr(error.message, "the model needs"));
    small_parts(&p);
    edit(&p, "\"mamba ffn\"", "\"mamba fnf\"");
    assert_int_equal(put_together(&p, &error), EXPHIL_E_FORMAT);
    assert_non_null(strstr(error.message, "column 7"));
    small_parts(&p);
    edit(&p, "\"type\":\"F32\"", "\"type\":\"F64\"");
    assert_int_equal(put_together(&p, &error), EXPHIL_E_FORMAT);
    assert_non_null(strstr(error.message, "is F32, the model is F64"));
}

/* A configuration of many gigabytes on a file of a few kilobytes: refused before it costs anything. */
static void large_words_small_file(void **state)
{
    exphil_memory_info before = EXPHIL_MEMORY_INFO_INIT, after = EXPHIL_MEMORY_INFO_INIT;
    parts p;
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(exphil_context_memory(context, &before, NULL), EXPHIL_OK);
    small_parts(&p);
    edit(&p, "\"hidden\":4", "\"hidden\":8192");
    edit(&p, "\"mamba ffn\"", "\"ffn*64\"");
    assert_int_equal(put_together(&p, &error), EXPHIL_E_FORMAT);
    assert_int_equal(exphil_context_memory(context, &after, NULL), EXPHIL_OK);
    assert_true(after.host_peak_bytes < before.host_used_bytes + (8 << 20));
}

static void wrong_metadata(void **state)
{
    parts p;
    small_parts(&p);
    p.pair[pair_index(&p, "exphil.format")].key = "other";
    refused(&p, EXPHIL_E_FORMAT,
            "weights: __metadata__.exphil.format is missing: these are not the weights of a libexphil model");
    small_parts(&p);
    p.pair[pair_index(&p, "exphil.model")].key = "other";
    refused(&p, EXPHIL_E_FORMAT,
            "weights: __metadata__.exphil.model is missing: these are not the weights of a libexphil model");
    small_parts(&p);
    p.pair[pair_index(&p, "exphil.format")].value = "2";
    refused(&p, EXPHIL_E_FORMAT, "weights: exphil.format is \"2\", this library reads \"1\"");
    small_parts(&p);
    p.pair[p.pairs++] = (xph_pair){"exphil.model_xxh64", "0000000000000000"};
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(put_together(&p, &error), EXPHIL_E_FORMAT);
    assert_non_null(strstr(error.message, "exphil.model is damaged: checksum "));
    static const char *const counters[] = {"", "x", "-1", "01", "1 ", "18446744073709551616"};
    for (int i = 0; i < 6; i++) {
        small_parts(&p);
        p.pair[pair_index(&p, "exphil.trained_frames")].value = counters[i];
        refused(&p, EXPHIL_E_FORMAT, "weights: __metadata__.exphil.trained_frames is no number of 64 bits");
    }
}

static int array_index(const parts *p, const char *name)
{
    for (int i = 0; i < p->count; i++) {
        if (strcmp(p->array[i].name, name) == 0) return i;
    }
    fail_msg("no tensor %s", name);
    return -1;
}

static void wrong_tensors(void **state)
{
    parts p;
    char message[240];
    static float bad[65536];
    static double wide[65536];
    small_parts(&p);
    p.count--; /* the last in the file: whatever it is */
    snprintf(message, sizeof message, "weights: tensor \"%s\" is missing", p.array[p.count].name);
    refused(&p, EXPHIL_E_FORMAT, message);
    small_parts(&p);
    p.array[p.count++] = (xph_array){"more", XPH_DTYPE_F32, 1, {1, 1, 1, 1}, bad, 4, 0};
    refused(&p, EXPHIL_E_FORMAT, "weights: tensor \"more\" is not one of the model's");
    const float values[] = {(float)NAN, (float)INFINITY, -(float)INFINITY};
    for (int i = 0; i < 3; i++) {
        small_parts(&p);
        xph_array *array = &p.array[array_index(&p, "blocks.0.in_proj.weight")];
        assert_true(array->bytes < sizeof bad);
        memcpy(bad, array->data, array->bytes);
        bad[3] = values[i];
        array->data = bad;
        refused(&p, EXPHIL_E_NUMERIC,
                "weights: tensor \"blocks.0.in_proj.weight\" is not finite at element 3");
    }
    small_parts(&p);
    xph_array *array = &p.array[array_index(&p, "blocks.0.in_proj.weight")];
    array->dtype = XPH_DTYPE_F64;
    array->data = wide;
    array->bytes *= 2;
    refused(&p, EXPHIL_E_FORMAT, "weights: tensor \"blocks.0.in_proj.weight\" is F64, the model is F32");
    small_parts(&p);
    array = &p.array[array_index(&p, "blocks.0.in_proj.weight")];
    int64_t rows = array->dim[0];
    array->dim[0] = array->dim[1];
    array->dim[1] = rows;
    refused(&p, EXPHIL_E_FORMAT,
            "weights: tensor \"blocks.0.in_proj.weight\" has 2 dimensions [4,16,...], the model needs 2 "
            "[16,4,...]");
}

static void a_layout_that_has_changed(void **state)
{
    exphil_model_config config = small_config();
    exphil_spec spec = EXPHIL_SPEC_INIT;
    assert_int_equal(exphil_melee_spec("melee2", "exphil81", &spec, NULL), EXPHIL_OK);
    uint64_t known = spec.layout_hash;
    spec.layout_hash ^= 1;
    config.spec = &spec;
    exphil_model *model = model_case_create(context, &config), *loaded = NULL;
    const char *path = test_path("changed.safetensors");
    char wanted[240];
    exphil_error error = EXPHIL_ERROR_INIT;
    save(model, path);
    assert_int_equal(exphil_model_load(context, path, &loaded, &error), EXPHIL_E_MISMATCH);
    snprintf(wanted, sizeof wanted, "for layout melee2 with hash %016llx, which is %016llx in this library",
             (unsigned long long)(known ^ 1), (unsigned long long)known);
    assert_non_null(strstr(error.message, wanted));
    exphil_model_destroy(model);
}

/* ---- more than the model ------------------------------------------------------------------------------- */

static void extra_pairs_and_counters(void **state)
{
    exphil_model_config config = small_config();
    exphil_model *model = model_case_create(context, &config);
    const char *path = test_path("extra.safetensors");
    const xph_pair extra = {"exphil.pair", "0123"};
    xph_file_writer writer = {.context = context};
    exphil_error error = EXPHIL_ERROR_INIT;
    const xph_trained trained = {UINT64_MAX, 77, NULL};
    assert_int_equal(xph_model_write(model, NULL, &trained, &extra, 1, path, &writer, &error), EXPHIL_OK);
    assert_false(test_exists(path)); /* begun only */
    assert_int_equal(xph_file_commit(&writer, &error), EXPHIL_OK);
    parts p;
    take_apart(path, &p);
    assert_string_equal(xph_tensors_metadata(&p.tensors, "exphil.pair"), "0123");
    assert_int_equal(put_together(&p, &error), EXPHIL_OK);
    exphil_model *loaded = load(path);
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    assert_int_equal(exphil_model_query(loaded, &info, NULL), EXPHIL_OK);
    assert_true(info.trained_updates == UINT64_MAX && info.trained_frames == 77);
    exphil_model_destroy(loaded);
    exphil_model_destroy(model);
}

static void python_in_between(void **state)
{
    exphil_model_config config = model_case_config("mamba gru attention", EXPHIL_TYPE_F32);
    exphil_model *model = model_case_create(context, &config);
    const char *one = test_path("one.safetensors"), *two = test_path("two.safetensors"),
               *three = test_path("three.safetensors");
    char said[1024];
    save(model, one);
    if (!test_safetensors_rewrite(one, two, said, sizeof said)) {
        exphil_model_destroy(model);
        skip();
    }
    assert_non_null(strstr(
        said, " exphil.data_xxh64 exphil.format exphil.model exphil.model_xxh64 exphil.trained_frames"));
    exphil_model *loaded = load(two);
    assert_same_model(model, loaded);
    save(loaded, three);
    assert_same_file(one, three);
    exphil_model_destroy(loaded);
    exphil_model_destroy(model);
}

static void arguments_and_paths(void **state)
{
    exphil_model_config config = small_config();
    exphil_model *model = model_case_create(context, &config), *out = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    assert_int_equal(exphil_model_save(NULL, "x", &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_model_save(model, NULL, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_model_save(model, "", &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_model_save(model, test_folder(), &error), EXPHIL_E_IO);
    assert_int_equal(exphil_model_save(model, test_path("no/such/folder"), &error), EXPHIL_E_IO);
    const char *link = test_path("link");
    save(model, test_path("target"));
    if (test_link(test_path("target"), link))
        assert_int_equal(exphil_model_save(model, link, &error), EXPHIL_E_IO);
    else
        print_message("SKIPPED: no symbolic links can be made here\n");
    assert_int_equal(exphil_model_load(context, NULL, &out, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_model_load(NULL, link, &out, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_model_load(context, link, NULL, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_model_load(context, test_path("absent"), &out, &error), EXPHIL_E_IO);
    assert_int_equal(error.native_code, 2);
    assert_int_equal(exphil_model_load(context, test_folder(), &out, &error), EXPHIL_E_IO);
    assert_int_equal(exphil_model_load_memory(context, NULL, 5, &out, &error), EXPHIL_E_INVALID);
    assert_int_equal(exphil_model_load_memory(context, "abc", 0, &out, &error), EXPHIL_E_FORMAT);
    assert_null(out);
    test_write(test_path("text"), "not a file of weights", 21);
    assert_int_equal(exphil_model_load(context, test_path("text"), &out, &error), EXPHIL_E_FORMAT);
    assert_non_null(strstr(error.message, "text\": weights: byte 0 says the header has"));
    exphil_model_destroy(model);
}

/* ---- damage -------------------------------------------------------------------------------------------- */

static void every_prefix_and_flip(void **state)
{
    exphil_model_config config = small_config();
    exphil_model *model = model_case_create(context, &config);
    const char *path = test_path("damage.safetensors");
    save(model, path);
    exphil_model_destroy(model);
    model_case_damage(context, path, EXPHIL_E_UNSUPPORTED);
}

static void memory_fails(void **state)
{
    test_memory memory;
    test_memory_init(&memory);
    exphil_context *poor = test_context(&memory, NULL, 1);
    exphil_model_config config = small_config();
    exphil_model *model = model_case_create(poor, &config);
    const char *path = test_path("memory.safetensors"),
               *temporary = test_path("memory.safetensors.exphil-tmp");
    long long before = atomic_load(&memory.calls), failed = 0;
    for (int forever = 0; forever < 2; forever++) {
        exphil_status saved = EXPHIL_E_MEMORY, loaded = EXPHIL_E_MEMORY;
        memory.fail_on = forever;
        for (long long k = 1; saved < 0; k++, failed++) {
            exphil_error error = EXPHIL_ERROR_INIT;
            test_write(path, "old", 3);
            memory.fail_at = before + k;
            atomic_store(&memory.calls, before);
            saved = exphil_model_save(model, path, &error);
            if (saved < 0) assert_int_equal(saved, EXPHIL_E_MEMORY);
            size_t bytes;
            free(test_read(path, &bytes));
            assert_int_equal(bytes > 3, saved == EXPHIL_OK);
            assert_false(test_exists(temporary));
        }
        for (long long k = 1; loaded < 0; k++, failed++) {
            exphil_error error = EXPHIL_ERROR_INIT;
            exphil_model *made = NULL;
            long long live = atomic_load(&memory.live);
            memory.fail_at = before + k;
            atomic_store(&memory.calls, before);
            loaded = exphil_model_load(poor, path, &made, &error);
            if (loaded < 0) assert_int_equal(loaded, EXPHIL_E_MEMORY);
            exphil_model_destroy(made);
            assert_int_equal(atomic_load(&memory.live), live);
        }
        memory.fail_at = 0;
    }
    assert_true(failed > 20);
    exphil_model_destroy(model);
    exphil_context_destroy(poor);
    assert_memory_clean(&memory);
}

static void files_fail(void **state)
{
    static const int32_t codes[] = {5, 28, 24, 122}; /* EIO, ENOSPC, EMFILE, EDQUOT */
    test_io io;
    test_io_init(&io);
    exphil_context *broken = test_context(NULL, &io, 1);
    exphil_model_config config = small_config();
    exphil_model *model = model_case_create(broken, &config);
    const char *path = test_path("io.safetensors"), *temporary = test_path("io.safetensors.exphil-tmp");
    for (int round = 0; round < 8; round++) {
        io.code = codes[round % 4];
        io.fail_on = round >= 4;
        io.most_bytes = round & 1 ? 100 : 0;
        exphil_status saved = EXPHIL_E_IO, loaded = EXPHIL_E_IO;
        for (long long k = 1; saved < 0; k++) {
            exphil_error error = EXPHIL_ERROR_INIT;
            io.fail_at = 0;
            test_write(path, "old", 3);
            io.fail_at = k;
            atomic_store(&io.calls, 0);
            saved = exphil_model_save(model, path, &error);
            if (saved < 0) assert_true(saved == EXPHIL_E_IO && error.native_code == io.code);
            size_t bytes;
            char *file = test_read(path, &bytes);
            assert_true(bytes == 3 ? !memcmp(file, "old", 3) && saved < 0
                                   : model_case_load(context, file, bytes, &error) == EXPHIL_OK);
            assert_int_equal(atomic_load(&io.open_files), 0);
            free(file);
            remove(temporary); /* where removing it was what failed */
        }
        for (long long k = 1; loaded < 0; k++) {
            exphil_error error = EXPHIL_ERROR_INIT;
            exphil_model *made = NULL;
            io.fail_at = k;
            atomic_store(&io.calls, 0);
            loaded = exphil_model_load(broken, path, &made, &error);
            if (loaded < 0) assert_true(loaded == EXPHIL_E_IO && error.native_code == io.code && !made);
            exphil_model_destroy(made);
            assert_int_equal(atomic_load(&io.open_files), 0);
        }
        io.fail_at = 0;
    }
    exphil_model_destroy(model);
    exphil_context_destroy(broken);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_comes_back),
        cmocka_unit_test(other_ends_come_back),
        cmocka_unit_test(the_default_comes_back),
        cmocka_unit_test(wrong_ends),
        cmocka_unit_test(wrong_configurations),
        cmocka_unit_test(configurations_that_do_not_fit),
        cmocka_unit_test(large_words_small_file),
        cmocka_unit_test(wrong_metadata),
        cmocka_unit_test(wrong_tensors),
        cmocka_unit_test(a_layout_that_has_changed),
        cmocka_unit_test(extra_pairs_and_counters),
        cmocka_unit_test(python_in_between),
        cmocka_unit_test(arguments_and_paths),
        cmocka_unit_test(every_prefix_and_flip),
        cmocka_unit_test(memory_fails),
        cmocka_unit_test(files_fail),
    };
    return cmocka_run_group_tests(tests, context_open, context_close);
}
