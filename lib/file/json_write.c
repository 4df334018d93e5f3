/* Writing JSON: text in context memory, always with an end, whatever fails. */
#include "file/file.h"

#include <math.h>
#include <stdio.h>

void xph_json_begin(xph_json_out *out, exphil_context *context)
{
    *out = (xph_json_out){.context = context};
}

void xph_json_drop(xph_json_out *out)
{
    xph_free(out->context, out->text, out->capacity);
    *out = (xph_json_out){.context = out->context, .status = EXPHIL_E_STATE};
}

/* Space for so many more bytes and the end. */
static bool reserve(xph_json_out *out, size_t more)
{
    if (out->status < 0) return false;
    if (out->capacity - out->bytes > more) return true;
    size_t capacity = out->capacity ? out->capacity : 256;
    while (capacity - out->bytes <= more) {
        if (!xph_size_mul(capacity, 2, &capacity)) {
            out->status = EXPHIL_E_MEMORY;
            return false;
        }
    }
    char *text = xph_alloc(out->context, capacity);
    if (!text) {
        out->status = EXPHIL_E_MEMORY;
        return false;
    }
    if (out->bytes) memcpy(text, out->text, out->bytes);
    xph_free(out->context, out->text, out->capacity);
    out->text = text;
    out->capacity = capacity;
    return true;
}

static void add(xph_json_out *out, const char *bytes, size_t count)
{
    if (!reserve(out, count)) return;
    memcpy(out->text + out->bytes, bytes, count);
    out->bytes += count;
    out->text[out->bytes] = '\0';
}

static void add_quoted(xph_json_out *out, const char *text)
{
    size_t left = strlen(text);
    add(out, "\"", 1);
    while (left) {
        char escape[8];
        size_t length = xph_utf8_length(text, left);
        if (!length) {
            if (out->status >= 0) out->status = EXPHIL_E_INVALID;
            return;
        }
        if (*text == '"' || *text == '\\') add(out, "\\", 1);
        if ((unsigned char)*text < 0x20) {
            add(out, escape, (size_t)snprintf(escape, sizeof escape, "\\u%04x", (unsigned)*text));
        } else {
            add(out, text, length);
        }
        text += length;
        left -= length;
    }
    add(out, "\"", 1);
}

/* The comma and the name before a value. */
static void begin_value(xph_json_out *out, const char *name)
{
    char last = '{';
    if (out->bytes) last = out->text[out->bytes - 1];
    if (last != '{' && last != '[') add(out, ",", 1);
    if (!name) return;
    add_quoted(out, name);
    add(out, ":", 1);
}

void xph_json_open(xph_json_out *out, const char *name, char bracket)
{
    begin_value(out, name);
    add(out, &bracket, 1);
}

void xph_json_close(xph_json_out *out, char bracket)
{
    add(out, &bracket, 1);
}

void xph_json_add_text(xph_json_out *out, const char *name, const char *text)
{
    begin_value(out, name);
    add_quoted(out, text);
}

void xph_json_add_int(xph_json_out *out, const char *name, int64_t value)
{
    char text[24];
    begin_value(out, name);
    add(out, text, (size_t)snprintf(text, sizeof text, "%lld", (long long)value));
}

void xph_json_add_double(xph_json_out *out, const char *name, double value)
{
    char text[XPH_DOUBLE_TEXT];
    if (!xph_finite(value)) {
        if (out->status >= 0) out->status = EXPHIL_E_NUMERIC;
        return;
    }
    begin_value(out, name);
    xph_format_double(text, value, 17);
    add(out, text, strlen(text));
}

void xph_json_add_hex(xph_json_out *out, const char *name, uint64_t value)
{
    char text[XPH_HEX_TEXT];
    xph_json_add_text(out, name, xph_hex_text(text, value));
}

void xph_json_pad(xph_json_out *out, size_t base, size_t align)
{
    while (out->status >= 0 && (base + out->bytes) % align) add(out, " ", 1);
}

exphil_status xph_json_end(xph_json_out *out, exphil_error *error)
{
    exphil_status status = out->status;
    if (status >= 0) return EXPHIL_OK;
    xph_json_drop(out);
    return xph_fail(error, status, "%s",
                    status == EXPHIL_E_MEMORY    ? "could not get memory for JSON"
                    : status == EXPHIL_E_NUMERIC ? "a number for JSON is not finite"
                                                 : "a text for JSON is not UTF-8");
}
