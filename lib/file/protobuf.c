/* Writing messages of Protocol Buffers (protobuf.dev, "Encoding"): bytes in context memory that grow as they are
 * needed. Of a message inside another the length is known when it is closed, and is put in front of it then. */
#include "file/file.h"

enum { VARINT = 0, LENGTH = 2, FIXED32 = 5, VARINT_MOST = 10 };

void xph_proto_begin(xph_proto_out *out, exphil_context *context)
{
    *out = (xph_proto_out){.context = context};
}

void xph_proto_drop(xph_proto_out *out)
{
    xph_free(out->context, out->data, out->capacity);
    *out = (xph_proto_out){.context = out->context, .status = EXPHIL_E_STATE};
}

static bool reserve(xph_proto_out *out, size_t more)
{
    size_t wanted = 0, capacity = out->capacity ? out->capacity : 256;
    if (out->status < 0) return false;
    if (out->capacity - out->bytes >= more) return true;
    bool fits = xph_size_add(out->bytes, more, &wanted);
    while (fits && capacity < wanted) fits = xph_size_mul(capacity, 2, &capacity);
    unsigned char *data = fits ? xph_alloc(out->context, capacity) : NULL;
    if (!data) {
        out->status = EXPHIL_E_MEMORY;
        return false;
    }
    if (out->bytes) memcpy(data, out->data, out->bytes);
    xph_free(out->context, out->data, out->capacity);
    out->data = data;
    out->capacity = capacity;
    return true;
}

static void add(xph_proto_out *out, const void *data, size_t bytes)
{
    if (!reserve(out, bytes) || !bytes) return;
    memcpy(out->data + out->bytes, data, bytes);
    out->bytes += bytes;
}

/* Seven bits a byte, the lowest first; all bytes but the last have the eighth. */
static size_t varint(uint64_t value, uint8_t to[VARINT_MOST])
{
    size_t bytes = 0;
    for (; value > 0x7F; value >>= 7) to[bytes++] = (uint8_t)(value | 0x80);
    to[bytes++] = (uint8_t)value;
    return bytes;
}

static void add_varint(xph_proto_out *out, uint64_t value)
{
    uint8_t text[VARINT_MOST];
    add(out, text, varint(value, text));
}

static void add_tag(xph_proto_out *out, int32_t field, int32_t wire)
{
    add_varint(out, (uint64_t)field << 3 | (uint64_t)wire);
}

void xph_proto_add_int(xph_proto_out *out, int32_t field, int64_t value)
{
    add_tag(out, field, VARINT);
    add_varint(out, (uint64_t)value);
}

void xph_proto_add_float(xph_proto_out *out, int32_t field, float value)
{
    uint32_t bits;
    uint8_t bytes[4];
    memcpy(&bits, &value, sizeof bits);
    for (int i = 0; i < 4; i++) bytes[i] = (uint8_t)(bits >> 8 * i);
    add_tag(out, field, FIXED32);
    add(out, bytes, sizeof bytes);
}

void xph_proto_add_length(xph_proto_out *out, int32_t field, size_t bytes)
{
    add_tag(out, field, LENGTH);
    add_varint(out, bytes);
}

void xph_proto_add_bytes(xph_proto_out *out, int32_t field, const void *data, size_t bytes)
{
    xph_proto_add_length(out, field, bytes);
    add(out, data, bytes);
}

void xph_proto_add_text(xph_proto_out *out, int32_t field, const char *text)
{
    xph_proto_add_bytes(out, field, text, strlen(text));
}

size_t xph_proto_open(xph_proto_out *out, int32_t field)
{
    add_tag(out, field, LENGTH);
    return out->bytes;
}

void xph_proto_close(xph_proto_out *out, size_t mark, size_t elsewhere)
{
    uint8_t length[VARINT_MOST];
    if (out->status < 0) return;
    size_t inside = out->bytes - mark, bytes = varint((uint64_t)inside + elsewhere, length);
    if (!reserve(out, bytes)) return;
    memmove(out->data + mark + bytes, out->data + mark, inside);
    memcpy(out->data + mark, length, bytes);
    out->bytes += bytes;
}

exphil_status xph_proto_end(xph_proto_out *out, exphil_error *error)
{
    exphil_status status = out->status;
    if (status >= 0) return EXPHIL_OK;
    xph_proto_drop(out);
    return xph_fail(error, status, "could not get memory for a message");
}
