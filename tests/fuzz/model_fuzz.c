/* Weights files. The first byte says what the rest is: 0 a whole file; else the text of the configuration,
 * put into a good file, so that the search need not find its way through lengths and offsets. What is
 * taken must come back the same after it was saved: save(load(save(x))) == save(x). */
#include "file/file.h"
#include "memory_io.h"

#include <stdlib.h>

static memory_io io;
static exphil_context *context;
static uint8_t *good;
static size_t good_bytes;
static xph_tensors parts; /* of the good file */

static void check(bool fine)
{
    if (!fine) abort();
}

static void make_good(void)
{
    static const exphil_id_spec ids[] = {{"stage", 3, 2}};
    static const exphil_head_spec heads[] = {{"buttons", EXPHIL_BERNOULLI, 2, 0, 0},
                                             {"stick", EXPHIL_CATEGORICAL, 3, 1, 0}};
    exphil_spec spec = EXPHIL_SPEC_INIT;
    spec.layout = spec.codec = "made-up";
    spec.float_count = 2;
    spec.id_count = 1;
    spec.ids = ids;
    spec.head_count = 2;
    spec.heads = heads;
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    config.spec = &spec;
    config.blocks = "mamba ffn";
    config.hidden = config.head_width = 2;
    config.mamba_states = config.mamba_rank = 1;
    exphil_model *model;
    check(exphil_model_create(context, &config, &model, NULL) == EXPHIL_OK);
    check(exphil_model_save(model, "x", NULL) == EXPHIL_OK);
    good = memory_io_take(&io, &good_bytes);
    check(xph_tensors_parse(context, good, good_bytes, "x", &parts, NULL) == EXPHIL_OK);
    exphil_model_destroy(model);
}

static void prepare(void)
{
    if (context) return;
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    memory_io_init(&io);
    config.io = &io.hook;
    config.threads = 1;
    check(exphil_context_create(&config, &context, NULL) == EXPHIL_OK);
    make_good();
}

static uint8_t *save(const exphil_model *model, size_t *bytes)
{
    check(exphil_model_save(model, "x", NULL) == EXPHIL_OK);
    return memory_io_take(&io, bytes);
}

static void load(const uint8_t *data, size_t bytes)
{
    exphil_model *model = NULL, *again = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_status status = exphil_model_load_memory(context, data, bytes, &model, &error);
    if (status < 0) {
        check(status == error.status && error.message[0] && !model);
        check(status != EXPHIL_E_INTERNAL && status != EXPHIL_E_MEMORY && status != EXPHIL_E_INVALID);
        return;
    }
    size_t first_bytes, second_bytes;
    uint8_t *first = save(model, &first_bytes);
    check(exphil_model_load_memory(context, first, first_bytes, &again, &error) == EXPHIL_OK);
    uint8_t *second = save(again, &second_bytes);
    check(first_bytes == second_bytes && memcmp(first, second, first_bytes) == 0);
    free(first);
    free(second);
    exphil_model_destroy(again);
    exphil_model_destroy(model);
}

/* The good file with this text as its configuration. Texts that are no UTF-8 cannot get that far. */
static void load_text(const uint8_t *data, size_t bytes)
{
    char *text = malloc(bytes + 1);
    check(text);
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    xph_file_writer writer = {.context = context};
    const xph_pair pairs[] = {{"exphil.format", "1"}, {"exphil.model", text}};
    exphil_status status =
        xph_tensors_write(context, parts.tensor, parts.count, pairs, 2, "x", &writer, NULL);
    if (status == EXPHIL_OK) {
        size_t file_bytes;
        check(xph_file_commit(&writer, NULL) == EXPHIL_OK);
        uint8_t *file = memory_io_take(&io, &file_bytes);
        load(file, file_bytes);
        free(file);
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    prepare();
    if (!bytes) return 0;
    if (data[0] == 0)
        load(data + 1, bytes - 1);
    else
        load_text(data + 1, bytes - 1);
    return 0;
}
