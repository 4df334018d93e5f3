/* Weights files. The first byte says what the rest is: 0 a whole file; 'c' the text of a calibration, 'b'
 * and 'i' that of the configuration of a model in bfloat16 and int8, 's' the numbers of a matrix in int8
 * and of its scale, else the text of a configuration, put into a good file, so that the search need not
 * find its way through lengths and offsets. What is taken must come back the same after it was saved:
 * save(load(save(x))) == save(x). */
#include "file/file.h"
#include "memory_io.h"

#include <stdlib.h>

static memory_io io;
static exphil_context *context;

/* A good file, taken apart. */
typedef struct good_file {
    uint8_t *data;
    size_t bytes;
    xph_tensors parts;
} good_file;
static good_file plain, bf16, i8;

static void check(bool fine)
{
    if (!fine) abort();
}

static void take(const exphil_model *model, good_file *file)
{
    check(exphil_model_save(model, "x", NULL) == EXPHIL_OK);
    file->data = memory_io_take(&io, &file->bytes);
    check(xph_tensors_parse(context, file->data, file->bytes, "x", &file->parts, NULL) == EXPHIL_OK);
}

static void take_rounded(const exphil_model *model, int32_t type, good_file *file)
{
    exphil_model *quantized;
    check(exphil_model_quantize(model, type, &quantized, NULL) == EXPHIL_OK);
    take(quantized, file);
    exphil_model_destroy(quantized);
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
    take(model, &plain);
    take_rounded(model, EXPHIL_TYPE_BF16, &bf16);
    take_rounded(model, EXPHIL_TYPE_I8, &i8);
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

/* These tensors with this configuration, and a calibration if there is one. */
static void load_parts(const xph_array *tensor, int64_t count, const char *text, const char *calibration)
{
    xph_file_writer writer = {.context = context};
    const xph_pair pairs[] = {
        {"exphil.format", "1"}, {"exphil.model", text}, {"exphil.calibration", calibration}};
    int64_t used = calibration ? 3 : 2;
    if (xph_tensors_write(context, tensor, count, pairs, used, "x", &writer, NULL) != EXPHIL_OK) return;
    size_t file_bytes;
    check(xph_file_commit(&writer, NULL) == EXPHIL_OK);
    uint8_t *file = memory_io_take(&io, &file_bytes);
    load(file, file_bytes);
    free(file);
}

/* A good file with this text as its configuration, or as its calibration. Texts that are no UTF-8 cannot
 * get that far. */
static void load_text(const good_file *file, bool calibration, const uint8_t *data, size_t bytes)
{
    char *text = malloc(bytes + 1);
    check(text);
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    const char *known = xph_tensors_metadata(&file->parts, "exphil.model");
    load_parts(file->parts.tensor, file->parts.count, calibration ? known : text, calibration ? text : NULL);
    free(text);
}

/* The numbers of one matrix and its scales, one behind the other, as far as they go. */
static void load_numbers(const uint8_t *data, size_t bytes)
{
    static const char *const names[] = {"blocks.1.up.weight", "blocks.1.up.weight.scale"};
    xph_array tensor[64];
    uint8_t numbers[2][256];
    check(i8.parts.count <= 64);
    memcpy(tensor, i8.parts.tensor, (size_t)i8.parts.count * sizeof *tensor);
    for (int64_t i = 0; i < i8.parts.count; i++)
        for (int n = 0; n < 2; n++) {
            if (strcmp(tensor[i].name, names[n]) != 0) continue;
            check(tensor[i].bytes <= sizeof numbers[n]);
            memcpy(numbers[n], tensor[i].data, tensor[i].bytes);
            tensor[i].data = numbers[n];
        }
    for (int n = 0; n < 2; n++) {
        size_t whole = xph_tensors_find(&i8.parts, names[n])->bytes, some = bytes < whole ? bytes : whole;
        memcpy(numbers[n], data, some);
        data += some;
        bytes -= some;
    }
    load_parts(tensor, i8.parts.count, xph_tensors_metadata(&i8.parts, "exphil.model"), NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    prepare();
    if (!bytes) return 0;
    if (data[0] == 0)
        load(data + 1, bytes - 1);
    else if (data[0] == 's')
        load_numbers(data + 1, bytes - 1);
    else if (data[0] == 'c')
        load_text(&i8, true, data + 1, bytes - 1);
    else
        load_text(data[0] == 'b' ? &bf16 : data[0] == 'i' ? &i8 : &plain, false, data + 1, bytes - 1);
    return 0;
}
