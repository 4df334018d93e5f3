/* Writing safetensors: canonical, aligned, with a checksum of the data (XXH64, as hexadecimal text in the
 * metadata). Nothing is written that the reader would refuse. */
#include "file/tensor_rules.h"

#include <inttypes.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#  error "tensor data is written as it lies in memory, which must be little-endian"
#endif

static size_t alignment_of(size_t bytes)
{
    size_t align = XPH_TENSORS_ALIGN;
    while (bytes % align) align /= 2;
    return align;
}

/* Sizes that are multiples of 64 first, then of 32, ...: whatever stands before a tensor is a multiple of
 * its own alignment. The format allows no holes that could do it. */
static bool comes_before(const xph_array *a, const xph_array *b)
{
    size_t align_a = alignment_of(a->bytes), align_b = alignment_of(b->bytes);
    if (align_a != align_b) return align_a > align_b;
    return strcmp(a->name, b->name) < 0;
}

static exphil_status check_tensor(const xph_array *tensor, exphil_error *error)
{
    size_t bytes;
    if (!xph_tensor_name_good(tensor->name) || strcmp(tensor->name, "__metadata__") == 0) {
        return xph_fail(error, EXPHIL_E_INVALID, "\"%s\" cannot be the name of a tensor", tensor->name);
    }
    if (tensor->rank < 0 || tensor->rank > XPH_TENSORS_RANK || tensor->dtype < 0 ||
        tensor->dtype >= XPH_DTYPE_COUNT ||
        !xph_tensor_bytes(tensor->dtype, tensor->rank, tensor->dim, &bytes) || bytes != tensor->bytes) {
        return xph_fail(error, EXPHIL_E_INVALID,
                        "tensor \"%s\": type, shape and %zu bytes do not fit together", tensor->name,
                        tensor->bytes);
    }
    return EXPHIL_OK;
}

/* After sorting equal names are neighbours only within one alignment, so each is compared with all before
 * it. */
static exphil_status check_all(const xph_array *tensor, int64_t count, exphil_error *error)
{
    size_t total = 0;
    for (int64_t i = 0; i < count; i++) {
        XPH_TRY(check_tensor(&tensor[i], error));
        for (int64_t j = 0; j < i; j++) {
            if (strcmp(tensor[i].name, tensor[j].name) == 0) {
                return xph_fail(error, EXPHIL_E_INVALID, "two tensors have the name \"%s\"", tensor[i].name);
            }
        }
        if (!xph_size_add(total, tensor[i].bytes, &total) ||
            total > XPH_TENSORS_MOST_BYTES - 2 * XPH_JSON_MOST_BYTES) {
            return xph_fail(error, EXPHIL_E_UNSUPPORTED, "the tensors have more than 16 GiB together");
        }
    }
    return EXPHIL_OK;
}

static uint64_t checksum(const xph_array *tensor, int64_t count)
{
    xph_hasher hasher;
    xph_hash_begin(&hasher);
    for (int64_t i = 0; i < count; i++) xph_hash_add(&hasher, tensor[i].data, tensor[i].bytes);
    return xph_hash_end(&hasher);
}

/* Smallest key greater than after; NULL: none. Pairs are few, so this is the whole sorting. */
static const xph_pair *next_pair(const xph_pair *pairs, int64_t count, const char *after)
{
    const xph_pair *best = NULL;
    for (int64_t i = 0; i < count; i++) {
        if (after && strcmp(pairs[i].key, after) <= 0) continue;
        if (!best || strcmp(pairs[i].key, best->key) < 0) best = &pairs[i];
    }
    return best;
}

/* Equal keys are written once, the checksum's place among them is where it belongs. */
static void add_metadata(xph_json_out *out, const xph_pair *pairs, int64_t count, uint64_t sum)
{
    const xph_pair *pair = next_pair(pairs, count, NULL);
    bool summed = false;
    xph_json_open(out, "__metadata__", '{');
    while (pair || !summed) {
        if (!summed && (!pair || strcmp(XPH_TENSORS_CHECKSUM, pair->key) <= 0)) {
            if (pair && strcmp(XPH_TENSORS_CHECKSUM, pair->key) == 0)
                pair = next_pair(pairs, count, pair->key);
            xph_json_add_hex(out, XPH_TENSORS_CHECKSUM, sum);
            summed = true;
        } else {
            xph_json_add_text(out, pair->key, pair->value);
            pair = next_pair(pairs, count, pair->key);
        }
    }
    xph_json_close(out, '}');
}

static void add_tensor(xph_json_out *out, const xph_array *tensor, size_t begin)
{
    xph_json_open(out, tensor->name, '{');
    xph_json_add_text(out, "dtype", xph_dtype_name(tensor->dtype));
    xph_json_open(out, "shape", '[');
    for (int32_t i = 0; i < tensor->rank; i++) xph_json_add_int(out, NULL, tensor->dim[i]);
    xph_json_close(out, ']');
    xph_json_open(out, "data_offsets", '[');
    xph_json_add_int(out, NULL, (int64_t)begin);
    xph_json_add_int(out, NULL, (int64_t)(begin + tensor->bytes));
    xph_json_close(out, ']');
    xph_json_close(out, '}');
}

static exphil_status make_header(const xph_array *tensor, int64_t count, const xph_pair *pairs,
                                 int64_t pair_count, uint64_t sum, xph_json_out *out, exphil_error *error)
{
    size_t at = 0;
    xph_json_open(out, NULL, '{');
    add_metadata(out, pairs, pair_count, sum);
    for (int64_t i = 0; i < count; i++) {
        add_tensor(out, &tensor[i], at);
        at += tensor[i].bytes;
    }
    xph_json_close(out, '}');
    xph_json_pad(out, 8, XPH_TENSORS_ALIGN);
    XPH_TRY(xph_json_end(out, error));
    if (out->bytes <= XPH_JSON_MOST_BYTES) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_UNSUPPORTED, "the header would have %zu bytes, at most %zu are allowed",
                    out->bytes, XPH_JSON_MOST_BYTES);
}

static exphil_status add_all(const xph_json_out *header, const xph_array *tensor, int64_t count,
                             xph_file_writer *writer, exphil_error *error)
{
    uint8_t length[8];
    for (int i = 0; i < 8; i++) length[i] = (uint8_t)((uint64_t)header->bytes >> 8 * i);
    XPH_TRY(xph_file_add(writer, length, sizeof length, error));
    XPH_TRY(xph_file_add(writer, header->text, header->bytes, error));
    for (int64_t i = 0; i < count; i++) XPH_TRY(xph_file_add(writer, tensor[i].data, tensor[i].bytes, error));
    return EXPHIL_OK;
}

static exphil_status write_sorted(exphil_context *context, const xph_array *tensor, int64_t count,
                                  const xph_pair *pairs, int64_t pair_count, const char *path,
                                  xph_file_writer *writer, exphil_error *error)
{
    xph_json_out header;
    xph_file_writer begun = {.context = context};
    XPH_TRY(check_all(tensor, count, error));
    xph_json_begin(&header, context);
    exphil_status status =
        make_header(tensor, count, pairs, pair_count, checksum(tensor, count), &header, error);
    if (status >= 0) status = xph_file_begin(context, path, &begun, error);
    if (status >= 0) status = add_all(&header, tensor, count, &begun, error);
    xph_json_drop(&header);
    if (status >= 0) *writer = begun;
    return status;
}

exphil_status xph_tensors_write(exphil_context *context, const xph_array *tensors, int64_t count,
                                const xph_pair *pairs, int64_t pair_count, const char *path,
                                xph_file_writer *writer, exphil_error *error)
{
    if (count < 0 || count > XPH_TENSORS_MOST) {
        return xph_fail(error, EXPHIL_E_UNSUPPORTED, "%" PRId64 " tensors, at most %d are allowed", count,
                        XPH_TENSORS_MOST);
    }
    size_t bytes = (size_t)count * sizeof *tensors;
    xph_array *sorted = xph_alloc(context, bytes);
    if (!sorted) return xph_no_memory(bytes, error);
    if (bytes) memcpy(sorted, tensors, bytes);
    xph_tensor_sort(sorted, count, comes_before);
    exphil_status status = write_sorted(context, sorted, count, pairs, pair_count, path, writer, error);
    xph_free(context, sorted, bytes);
    return status;
}

/* The text has grown by doubling, and was there twice when it last did. */
exphil_status xph_tensors_write_bytes(exphil_context *context, const xph_array *tensors, int64_t count,
                                      size_t *header, size_t *memory, exphil_error *error)
{
    xph_json_out text;
    xph_json_begin(&text, context);
    exphil_status status = make_header(tensors, count, NULL, 0, 0, &text, error);
    *header = text.bytes;
    *memory = (size_t)count * sizeof *tensors + text.capacity + text.capacity / 2;
    xph_json_drop(&text);
    return status;
}
