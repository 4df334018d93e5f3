/* Any bytes as a safetensors file. What is taken must be covered by its tensors, and must come back the
 * same after it was written in our own way: write(parse(write(x))) == write(x). */
#include "file/file.h"
#include "memory_io.h"

#include <stdlib.h>

static memory_io io;
static exphil_context *context;

static void check(bool good)
{
    if (!good) abort();
}

static exphil_context *get_context(void)
{
    if (context) return context;
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    memory_io_init(&io);
    config.io = &io.hook;
    config.threads = 1;
    check(exphil_context_create(&config, &context, NULL) == EXPHIL_OK);
    return context;
}

/* The data lies without gaps, in order; every byte of it can be read. */
static void check_cover(const xph_tensors *tensors, const uint8_t *end)
{
    uint64_t sum = 0;
    const uint8_t *at = NULL;
    for (int64_t i = 0; i < tensors->count; i++) {
        const xph_array *array = &tensors->tensor[i];
        check(!at || array->data == (const void *)at);
        at = array->data;
        for (size_t b = 0; b < array->bytes; b++) sum += *at++;
        check(xph_tensors_find(tensors, array->name) == array);
    }
    check(!at || at == end);
    check(sum != 1 || tensors->count);
}

/* All text of __metadata__ but the checksum, which the writer makes. */
static int64_t collect_pairs(const xph_tensors *tensors, xph_pair *pairs, int64_t most)
{
    int64_t count = 0;
    const xph_json *header = tensors->header;
    int32_t metadata = xph_json_find(header, 0, "__metadata__");
    for (int32_t i = xph_json_first(header, metadata); i >= 0 && count < most; i = xph_json_next(header, i)) {
        if (strcmp(xph_json_name(header, i), XPH_TENSORS_CHECKSUM) == 0) continue;
        pairs[count++] = (xph_pair){xph_json_name(header, i), xph_json_text(header, i)};
    }
    return count;
}

/* Written again; NULL where the writer has its reasons (a header that grew too long). */
static uint8_t *rewrite(const xph_tensors *tensors, size_t *bytes)
{
    static xph_pair pairs[256];
    exphil_error error = EXPHIL_ERROR_INIT;
    xph_file_writer writer = {.context = context};
    int64_t count = collect_pairs(tensors, pairs, 256);
    exphil_status status =
        xph_tensors_write(context, tensors->tensor, tensors->count, pairs, count, "x", &writer, &error);
    if (status == EXPHIL_E_UNSUPPORTED) return NULL;
    check(status == EXPHIL_OK && xph_file_commit(&writer, &error) == EXPHIL_OK);
    return memory_io_take(&io, bytes);
}

static void check_round_trip(const xph_tensors *tensors)
{
    size_t first_bytes, second_bytes;
    xph_tensors again;
    uint8_t *first = rewrite(tensors, &first_bytes);
    if (!first) return;
    check(xph_tensors_parse(context, first, first_bytes, "x", &again, NULL) == EXPHIL_OK);
    check(again.count == tensors->count);
    uint8_t *second = rewrite(&again, &second_bytes);
    check(second && first_bytes == second_bytes && memcmp(first, second, first_bytes) == 0);
    xph_tensors_free(&again);
    free(first);
    free(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    xph_tensors tensors;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_status status = xph_tensors_parse(get_context(), data, bytes, "x", &tensors, &error);
    if (status < 0) {
        check(status == error.status && error.message[0]);
        return 0;
    }
    check_cover(&tensors, data + bytes);
    check_round_trip(&tensors);
    xph_tensors_free(&tensors);
    return 0;
}
