/* Reading safetensors (huggingface/safetensors: u64 little-endian N, N bytes of JSON, data). Stricter than
 * the format where the format leaves a choice: limits of file.h, printable names, each field exactly once, no
 * other fields. The header is read first, then its tensors are compared with the file's size, then the data
 * is read: a hole of gigabytes, which takes no space on disk, takes no memory here. */
#include "file/tensor_rules.h"

#include <inttypes.h>

#define PREFIX 8

static uint64_t read_u64(const uint8_t *p)
{
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--) value = value << 8 | p[i];
    return value;
}

static exphil_status check_metadata(const xph_json *header, int32_t at, exphil_error *error)
{
    if (xph_json_kind(header, at) != XPH_JSON_OBJECT)
        return xph_json_refuse(header, at, "is no object", error);
    for (int32_t i = xph_json_first(header, at); i >= 0; i = xph_json_next(header, i)) {
        if (xph_json_kind(header, i) != XPH_JSON_TEXT) return xph_json_refuse(header, i, "is no text", error);
    }
    return EXPHIL_OK;
}

static exphil_status read_shape(const xph_json *header, int32_t at, xph_array *tensor, exphil_error *error)
{
    int32_t shape = -1;
    XPH_TRY(xph_json_get(header, at, "shape", XPH_JSON_ARRAY, &shape, error));
    tensor->rank = xph_json_count(header, shape);
    if (tensor->rank > XPH_TENSORS_RANK) {
        return xph_json_refuse(header, shape, "has more than 4 dimensions", error);
    }
    int32_t item = xph_json_first(header, shape);
    for (int32_t i = 0; i < XPH_TENSORS_RANK; i++) tensor->dim[i] = 1;
    for (int32_t i = 0; i < tensor->rank; i++, item = xph_json_next(header, item)) {
        XPH_TRY(xph_json_int_at(header, item, 0, INT64_MAX, &tensor->dim[i], error));
    }
    return EXPHIL_OK;
}

/* begin <= end <= data_bytes, and as long as the shape says. */
static exphil_status read_offsets(const xph_json *header, int32_t at, size_t data_bytes, xph_array *tensor,
                                  exphil_error *error)
{
    int32_t offsets = -1;
    int64_t begin = 0, end = 0;
    size_t needed = 0;
    XPH_TRY(xph_json_get(header, at, "data_offsets", XPH_JSON_ARRAY, &offsets, error));
    if (xph_json_count(header, offsets) != 2) {
        return xph_json_refuse(header, offsets, "has not two numbers", error);
    }
    int32_t first = xph_json_first(header, offsets);
    XPH_TRY(xph_json_int_at(header, first, 0, (int64_t)data_bytes, &begin, error));
    XPH_TRY(xph_json_int_at(header, xph_json_next(header, first), begin, (int64_t)data_bytes, &end, error));
    if (!xph_tensor_bytes(tensor->dtype, tensor->rank, tensor->dim, &needed)) {
        return xph_json_refuse(header, at, "has a shape that is too large, or not whole bytes", error);
    }
    if ((size_t)(end - begin) != needed) {
        return xph_fail(error, EXPHIL_E_FORMAT,
                        "%s: tensor \"%s\" has %" PRId64 " bytes of data, its shape needs %zu",
                        xph_json_label(header), tensor->name, end - begin, needed);
    }
    tensor->begin = (size_t)begin;
    tensor->bytes = needed;
    return EXPHIL_OK;
}

static exphil_status read_tensor(const xph_json *header, int32_t at, size_t data_bytes, xph_array *tensor,
                                 exphil_error *error)
{
    const char *dtype;
    tensor->name = xph_json_name(header, at);
    if (!xph_tensor_name_good(tensor->name)) {
        return xph_json_refuse(header, at, "is not named with 1 to 127 printable ASCII characters", error);
    }
    if (xph_json_kind(header, at) != XPH_JSON_OBJECT)
        return xph_json_refuse(header, at, "is no object", error);
    XPH_TRY(xph_json_get_text(header, at, "dtype", &dtype, error));
    tensor->dtype = xph_dtype_find(dtype);
    if (tensor->dtype < 0) return xph_json_refuse(header, at, "has an unknown dtype", error);
    XPH_TRY(read_shape(header, at, tensor, error));
    XPH_TRY(read_offsets(header, at, data_bytes, tensor, error));
    if (xph_json_count(header, at) != 3) {
        return xph_json_refuse(header, at, "has fields besides dtype, shape and data_offsets", error);
    }
    return EXPHIL_OK;
}

/* By place; empty tensors stand before the one that begins where they do. */
static bool lies_before(const xph_array *a, const xph_array *b)
{
    if (a->begin != b->begin) return a->begin < b->begin;
    if (a->bytes != b->bytes) return a->bytes < b->bytes;
    return strcmp(a->name, b->name) < 0;
}

/* Together they are the data: no hole, no overlap, nothing behind. */
static exphil_status check_cover(const xph_tensors *tensors, exphil_error *error)
{
    size_t at = 0;
    const char *label = xph_json_label(tensors->header);
    for (int64_t i = 0; i < tensors->count; i++) {
        const xph_array *tensor = &tensors->tensor[i];
        size_t begin = tensor->begin;
        if (begin != at) {
            return xph_fail(error, EXPHIL_E_FORMAT,
                            "%s: tensor \"%s\" begins at byte %zu of the data, %s byte %zu", label,
                            tensor->name, begin,
                            begin < at ? "inside the one that ends at" : "behind a hole from", at);
        }
        at += tensor->bytes;
    }
    if (at == tensors->data_bytes) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_FORMAT,
                    "%s: the tensors end at byte %zu of the data, the file at byte %zu", label, at,
                    tensors->data_bytes);
}

static exphil_status check_sum(const xph_tensors *tensors, const uint8_t *data, exphil_error *error)
{
    uint64_t expected;
    const char *label = xph_json_label(tensors->header),
               *text = xph_tensors_metadata(tensors, XPH_TENSORS_CHECKSUM);
    if (!text) return EXPHIL_OK;
    if (!xph_hex_value(text, &expected)) {
        return xph_fail(error, EXPHIL_E_FORMAT, "%s: __metadata__.%s is not 16 digits of 0-9a-f", label,
                        XPH_TENSORS_CHECKSUM);
    }
    uint64_t found = xph_hash(data, tensors->data_bytes);
    if (xph_hash_equal(found, expected)) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_FORMAT,
                    "%s: the data is damaged: checksum %016" PRIx64 ", %016" PRIx64 " expected", label, found,
                    expected);
}

/* The only place where pointers into the data are made. */
static exphil_status attach(xph_tensors *tensors, const uint8_t *data, exphil_error *error)
{
    XPH_TRY(check_sum(tensors, data, error));
    for (int64_t i = 0; i < tensors->count; i++) tensors->tensor[i].data = data + tensors->tensor[i].begin;
    return EXPHIL_OK;
}

static exphil_status read_tensors(xph_tensors *tensors, exphil_error *error)
{
    const xph_json *header = tensors->header;
    int32_t metadata = xph_json_find(header, 0, "__metadata__");
    if (metadata >= 0) XPH_TRY(check_metadata(header, metadata, error));
    int64_t filled = 0;
    for (int32_t at = xph_json_first(header, 0); at >= 0; at = xph_json_next(header, at)) {
        if (at == metadata) continue;
        XPH_TRY(read_tensor(header, at, tensors->data_bytes, &tensors->tensor[filled++], error));
    }
    xph_tensor_sort(tensors->tensor, tensors->count, lies_before);
    return check_cover(tensors, error);
}

/* Length of the header, which stands in the first PREFIX of size bytes. */
static exphil_status header_length(const uint8_t *prefix, uint64_t size, const char *label, size_t *length,
                                   exphil_error *error)
{
    if (size < PREFIX) {
        return xph_fail(error, EXPHIL_E_FORMAT,
                        "%s: ends at byte %" PRIu64 ", inside the length of the header", label, size);
    }
    if (size > XPH_TENSORS_MOST_BYTES) {
        return xph_fail(error, EXPHIL_E_FORMAT, "%s: %" PRIu64 " bytes, at most %zu are allowed", label, size,
                        XPH_TENSORS_MOST_BYTES);
    }
    uint64_t found = read_u64(prefix);
    if (found > XPH_JSON_MOST_BYTES || found > size - PREFIX) {
        return xph_fail(error, EXPHIL_E_FORMAT,
                        "%s: byte 0 says the header has %" PRIu64 " bytes; %" PRIu64
                        " follow, at most %zu are allowed: no safetensors file, or a cut one",
                        label, found, size - PREFIX, XPH_JSON_MOST_BYTES);
    }
    *length = (size_t)found;
    return EXPHIL_OK;
}

/* Everything but the data, of a file of size bytes. */
static exphil_status read_header(xph_tensors *tensors, const uint8_t *text, size_t length, size_t size,
                                 const char *label, exphil_error *error)
{
    if (!length || text[0] != '{') {
        return xph_fail(error, EXPHIL_E_FORMAT, "%s, byte 8: '{' must stand here", label);
    }
    XPH_TRY(
        xph_json_parse(tensors->context, (const char *)text, length, label, PREFIX, &tensors->header, error));
    const xph_json *header = tensors->header;
    tensors->skip = PREFIX + length;
    tensors->data_bytes = size - tensors->skip;
    tensors->count = xph_json_count(header, 0) - (xph_json_find(header, 0, "__metadata__") >= 0);
    if (tensors->count > XPH_TENSORS_MOST) {
        return xph_fail(error, EXPHIL_E_FORMAT, "%s: %" PRId64 " tensors, at most %d are allowed", label,
                        tensors->count, XPH_TENSORS_MOST);
    }
    tensors->tensor = xph_calloc(tensors->context, (size_t)tensors->count, sizeof *tensors->tensor);
    if (!tensors->tensor) return xph_no_memory((size_t)tensors->count * sizeof *tensors->tensor, error);
    return read_tensors(tensors, error);
}

exphil_status xph_tensors_parse(exphil_context *context, const void *data, size_t bytes, const char *label,
                                xph_tensors *tensors, exphil_error *error)
{
    xph_tensors read = {.context = context};
    size_t length;
    XPH_TRY(header_length(data, bytes, label, &length, error));
    exphil_status status = read_header(&read, (const uint8_t *)data + PREFIX, length, bytes, label, error);
    if (status >= 0) status = attach(&read, (const uint8_t *)data + read.skip, error);
    if (status < 0) {
        xph_tensors_free(&read);
        return status;
    }
    *tensors = read;
    return EXPHIL_OK;
}

static exphil_status read_head(xph_tensors *tensors, const char *label, exphil_error *error)
{
    const xph_file *file = &tensors->file;
    uint8_t prefix[PREFIX] = {0};
    size_t length;
    xph_file_data text = {.context = tensors->context};
    if (file->bytes >= PREFIX) XPH_TRY(xph_file_read(file, 0, prefix, PREFIX, error));
    XPH_TRY(header_length(prefix, file->bytes, label, &length, error));
    XPH_TRY(xph_file_fetch(file, PREFIX, length, &text, error));
    exphil_status status = read_header(tensors, text.data, length, (size_t)file->bytes, label, error);
    xph_file_release(&text);
    return status;
}

exphil_status xph_tensors_open(exphil_context *context, const char *path, const char *label,
                               xph_tensors *tensors, exphil_error *error)
{
    xph_tensors read = {.context = context};
    XPH_TRY(xph_file_open(context, path, UINT64_MAX, &read.file, error));
    exphil_status status = read_head(&read, label, error);
    if (status < 0) {
        xph_tensors_free(&read);
        return status;
    }
    *tensors = read;
    return EXPHIL_OK;
}

exphil_status xph_tensors_load(xph_tensors *tensors, exphil_error *error)
{
    if (!tensors->file.context || tensors->data.data) return EXPHIL_OK;
    XPH_TRY(xph_file_fetch(&tensors->file, tensors->skip, tensors->data_bytes, &tensors->data, error));
    return attach(tensors, tensors->data.data, error);
}

void xph_tensors_free(xph_tensors *tensors)
{
    if (tensors->tensor) {
        xph_free(tensors->context, tensors->tensor, (size_t)tensors->count * sizeof *tensors->tensor);
    }
    xph_json_free(tensors->header);
    xph_file_release(&tensors->data);
    xph_file_close(&tensors->file);
    *tensors = (xph_tensors){.context = tensors->context};
}

const xph_array *xph_tensors_find(const xph_tensors *tensors, const char *name)
{
    for (int64_t i = 0; i < tensors->count; i++) {
        if (strcmp(tensors->tensor[i].name, name) == 0) return &tensors->tensor[i];
    }
    return NULL;
}

const char *xph_tensors_metadata(const xph_tensors *tensors, const char *key)
{
    int32_t metadata = xph_json_find(tensors->header, 0, "__metadata__");
    return xph_json_text(tensors->header, xph_json_find(tensors->header, metadata, key));
}
