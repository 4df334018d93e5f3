/* Files that are holes for the most part: they take no space on a disk and must take none in memory, and little time. The
 * head of a file is looked at first, what it says against the size of the file, and the rest only then. */
#include "slp_writer.h"
#include "train_case.h"

#include <exphil/slp.h>

#include <stdio.h>
#include <stdlib.h>

#define HOLE ((uint64_t)1 << 31) /* of a weights file 16 GiB are allowed */

enum { LITTLE = 1 << 20 };

static test_io io;

static uint64_t peak_of(const exphil_context *context)
{
    exphil_memory_info info = EXPHIL_MEMORY_INFO_INIT;
    assert_int_equal(exphil_context_memory(context, &info, NULL), EXPHIL_OK);
    return info.host_peak_bytes;
}

/* The file "content": these bytes, then zeros up to size. */
static void lay(const void *content, size_t bytes, uint64_t size)
{
    io.content = content;
    io.content_bytes = bytes;
    io.content_size = size;
    atomic_store(&io.bytes_read, 0);
}

static void assert_little(const exphil_context *context, uint64_t peak_before)
{
    assert_true(peak_of(context) <= peak_before + LITTLE);
    assert_true(atomic_load(&io.bytes_read) <= LITTLE);
    assert_int_equal(atomic_load(&io.open_files), 0);
}

static void refuse_model(exphil_context *context, const char *says)
{
    exphil_model *model = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    uint64_t before = peak_of(context);
    assert_int_equal(exphil_model_load(context, "content", &model, &error), EXPHIL_E_FORMAT);
    assert_says(&error, says);
    assert_little(context, before);
}

static void refuse_checkpoint(const train_run *run, const char *says)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    uint64_t before = peak_of(run->context);
    assert_int_equal(exphil_trainer_resume(run->trainer, "content", &error), EXPHIL_E_FORMAT);
    assert_says(&error, says);
    assert_little(run->context, before);
}

/* A header that fits the size of the file, as far as the format goes. */
static size_t forge(char *file, size_t bytes)
{
    uint64_t floats = (HOLE - 512) / 4, length = 504;
    memset(file, ' ', bytes);
    memcpy(file, &length, sizeof length);
    int used = snprintf(file + 8, bytes - 8,
                        "{\"__metadata__\":{\"some\":\"text\"},\"t\":{\"dtype\":\"F32\",\"shape\":[%llu],"
                        "\"data_offsets\":[0,%llu]}}",
                        (unsigned long long)floats, (unsigned long long)floats * 4);
    file[8 + used] = ' ';
    return 512;
}

static void weights_and_checkpoints(void **state)
{
    test_io_init(&io);
    train_plan plan = train_plan_of("gru", EXPHIL_MODE_CARRY);
    plan.io = &io;
    train_run run = train_begin(&plan);
    (void)train_steps(&run, 1);
    char forged[512], *path = strdup(test_path("net"));
    lay(NULL, 0, HOLE);
    refuse_model(run.context, "'{' must stand here");
    refuse_checkpoint(&run, "'{' must stand here");
    lay(forged, forge(forged, sizeof forged), HOLE);
    refuse_model(run.context, "exphil.format is missing");
    refuse_checkpoint(&run, "has no exphil.optimizer");
    /* Good files, and a hole behind them. */
    assert_int_equal(exphil_trainer_save(run.trainer, path, NULL), EXPHIL_OK);
    exphil_model *narrow = NULL;
    assert_int_equal(exphil_model_quantize(run.model, EXPHIL_TYPE_I8, &narrow, NULL), EXPHIL_OK);
    assert_int_equal(exphil_model_save(narrow, test_path("narrow"), NULL), EXPHIL_OK);
    const char *const files[] = {"net", "narrow", "net.optimizer"};
    for (int i = 0; i < 3; i++) {
        size_t bytes;
        char *data = test_read(test_path(files[i]), &bytes);
        lay(data, bytes, HOLE);
        i < 2 ? refuse_model(run.context, "the tensors end at byte")
              : refuse_checkpoint(&run, "the tensors end at byte");
        free(data);
    }
    exphil_model_destroy(narrow);
    free(path);
    train_end(&run);
    test_folder_remove();
}

static void replays(void **state)
{
    test_io_init(&io);
    exphil_context *context = test_context(NULL, &io, 1);
    exphil_dataset *dataset = NULL;
    exphil_slp *slp = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_slp_config config = EXPHIL_SLP_CONFIG_INIT;
    config.limit_bytes = INT32_MAX;
    assert_int_equal(exphil_dataset_create(context, NULL, &dataset, NULL), EXPHIL_OK);
    uint64_t before = peak_of(context);
    lay(NULL, 0, INT32_MAX);
    assert_int_equal(exphil_slp_open(context, "content", &config, &slp, &error), EXPHIL_E_FORMAT);
    assert_non_null(strstr(error.message, "not a replay: byte 0x00 at offset 0"));
    assert_int_equal(exphil_dataset_add_replay(dataset, "content", NULL, NULL, &error), EXPHIL_E_FORMAT);
    assert_non_null(strstr(error.message, "at most 67108864 are allowed"));
    /* The container's header alone. */
    slp_writer writer;
    slp_begin(&writer, &slp_layouts[SLP_NEWEST], false);
    slp_head(&writer, &slp_layouts[SLP_NEWEST]);
    lay(writer.data, 15, 60 << 20);
    assert_int_equal(exphil_dataset_add_replay(dataset, "content", NULL, NULL, &error), EXPHIL_E_FORMAT);
    assert_non_null(strstr(error.message, "no event payloads event (0x35) at offset 15"));
    assert_little(context, before);
    slp_free(&writer);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
}

static int32_t stop_after_records(void *user)
{
    return atomic_load(&io.bytes_read) > *(long long *)user;
}

/* What a loss of power leaves behind good records may be any number of zeros: they are looked at in pieces of little memory,
 * and the host is asked in between. */
static void corpora(void **state)
{
    long long most = 8 << 20;
    test_io_init(&io);
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_context *context = NULL;
    config.io = &io.hook;
    config.threads = 1;
    config.cancel = stop_after_records;
    config.cancel_user = &most;
    assert_int_equal(exphil_context_create(&config, &context, NULL), EXPHIL_OK);
    exphil_dataset *dataset = train_dataset(context, 3), *back = NULL;
    assert_int_equal(exphil_dataset_save(dataset, test_path("corpus"), NULL), EXPHIL_OK);
    size_t bytes;
    char *data = test_read(test_path("corpus"), &bytes), *footer = NULL;
    for (size_t at = 0; at + 8 <= bytes; at += 64)
        if (memcmp(data + at, "endindex", 8) == 0) footer = data + at;
    assert_non_null(footer);
    uint64_t before = peak_of(context);
    lay(data, (size_t)(footer - data), (uint64_t)1 << 40);
    assert_int_equal(exphil_dataset_open(context, "content", &back, NULL), EXPHIL_E_CANCELLED);
    assert_true(atomic_load(&io.bytes_read) <= most + LITTLE);
    assert_true(peak_of(context) <= before + LITTLE);
    assert_int_equal(atomic_load(&io.open_files), 0);
    lay(data, (size_t)(footer - data), 4 << 20); /* to the end */
    assert_int_equal(exphil_dataset_open(context, "content", &back, NULL), EXPHIL_OK);
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    assert_int_equal(exphil_dataset_query(back, &info, NULL), EXPHIL_OK);
    assert_int_equal(info.episodes, 3);
    assert_int_equal(info.recovered, 1);
    assert_true(peak_of(context) <= before + LITTLE);
    exphil_dataset_destroy(back);
    lay(NULL, 0, (uint64_t)1 << 40);
    assert_int_equal(exphil_dataset_open(context, "content", &back, NULL), EXPHIL_E_FORMAT);
    assert_little(context, before);
    free(data);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
    test_folder_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_and_checkpoints),
        cmocka_unit_test(replays),
        cmocka_unit_test(corpora),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
