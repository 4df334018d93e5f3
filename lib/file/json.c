/* Reading JSON (RFC 8259). Written here because the result must be right even when memory is short: jansson
 * 2.14 gives shortened strings and no error when an allocation fails while it reads one, and its allocator is
 * global to the process. It is the reference in the tests.
 *
 * One pass counts values, then everything is one allocation of known size: values in the order of the text, a
 * hash table of members, texts. No recursion. Numbers stay text until they are used; nothing depends on the
 * locale. */
#include "file/file.h"

#include <stdio.h>

#define NONE UINT32_MAX

typedef struct value {
    int32_t kind;
    int32_t parent, next;
    int32_t count;
    uint32_t name, text; /* where they begin in texts; NONE. true has a text too */
} value;

struct xph_json {
    exphil_context *context;
    const char *label;
    size_t bytes; /* of the whole allocation */
    value *values;
    int32_t *slots; /* of members: value + 1, or 0 */
    char *texts;
    uint32_t slot_count; /* a power of two */
    int32_t used, capacity;
};

typedef struct reader {
    xph_json *json;
    const unsigned char *text;
    size_t bytes, at, base;
    uint32_t texts_used;
    int32_t depth;
    int32_t open[XPH_JSON_MOST_DEPTH], last[XPH_JSON_MOST_DEPTH]; /* containers, and their latest children */
    exphil_error *error;
} reader;

static exphil_status refuse_at(const reader *r, size_t at, const char *what)
{
    return xph_fail(r->error, EXPHIL_E_FORMAT, "%s, byte %zu: %s", r->json->label, r->base + at, what);
}

static exphil_status refuse(const reader *r, const char *what)
{
    return refuse_at(r, r->at, what);
}

/* ---- members by name ----------------------------------------------------------------------------------- */

/* The slot that holds the member, or the free one where it belongs. There is always a free one. */
static uint32_t slot_of(const xph_json *json, int32_t object, const char *name)
{
    uint64_t hash = xph_hash(name, strlen(name)) + (uint64_t)object * 0x9E3779B97F4A7C15u;
    uint32_t slot = (uint32_t)(hash ^ hash >> 32) & (json->slot_count - 1);
    for (;; slot = (slot + 1) & (json->slot_count - 1)) {
        int32_t at = json->slots[slot] - 1;
        if (at < 0) return slot;
        const value *v = &json->values[at];
        if (v->parent == object && strcmp(json->texts + v->name, name) == 0) return slot;
    }
}

int32_t xph_json_find(const xph_json *json, int32_t object, const char *name)
{
    if (xph_json_kind(json, object) != XPH_JSON_OBJECT) return -1;
    return json->slots[slot_of(json, object, name)] - 1;
}

/* ---- texts --------------------------------------------------------------------------------------------- */

size_t xph_utf8_length(const void *text, size_t left)
{
    const unsigned char *p = text;
    unsigned char c = p[0], low = 0x80, high = 0xBF;
    size_t length = c < 0x80 ? 1 : c < 0xC2 ? 0 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : c < 0xF5 ? 4 : 0;
    if (length < 2) return length;
    if (length > left) return 0;
    if (c == 0xE0) low = 0xA0;  /* shorter forms exist */
    if (c == 0xED) high = 0x9F; /* surrogates */
    if (c == 0xF0) low = 0x90;
    if (c == 0xF4) high = 0x8F; /* beyond U+10FFFF */
    if (p[1] < low || p[1] > high) return 0;
    for (size_t i = 2; i < length; i++) {
        if ((p[i] & 0xC0) != 0x80) return 0;
    }
    return length;
}

static int hex_digit(unsigned char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The four digits at `at`; false: they are not there. */
static bool read_unit(const reader *r, size_t at, uint32_t *unit)
{
    uint32_t sum = 0;
    if (at > r->bytes || r->bytes - at < 4) return false;
    for (size_t i = 0; i < 4; i++) {
        int digit = hex_digit(r->text[at + i]);
        if (digit < 0) return false;
        sum = sum << 4 | (uint32_t)digit;
    }
    *unit = sum;
    return true;
}

static size_t put_utf8(char *to, uint32_t code)
{
    if (code < 0x80) {
        to[0] = (char)code;
        return 1;
    }
    size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--, code >>= 6) to[i] = (char)(0x80 | (code & 0x3F));
    to[0] = (char)(0xF00u >> length | code);
    return length;
}

/* The rest of \uXXXX, with its second half where it is a surrogate. 6 or 12 bytes of input give at most 3
 * or 4. */
static exphil_status read_unicode(reader *r, char *to, size_t *length)
{
    uint32_t code, low;
    if (!read_unit(r, r->at + 2, &code)) return refuse(r, "\\u needs four hexadecimal digits");
    size_t used = 6;
    if (code >= 0xD800 && code < 0xDC00 && r->bytes - r->at >= 12 && r->text[r->at + 6] == '\\' &&
        r->text[r->at + 7] == 'u' && read_unit(r, r->at + 8, &low) && low >= 0xDC00 && low < 0xE000) {
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        used = 12;
    }
    if (code >= 0xD800 && code < 0xE000) return refuse(r, "half of a surrogate pair");
    if (!code) return refuse(r, "\\u0000 in a text");
    r->at += used;
    *length = put_utf8(to, code);
    return EXPHIL_OK;
}

static exphil_status read_escape(reader *r, char *to, size_t *length)
{
    static const char from[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    if (r->bytes - r->at < 2) return refuse(r, "the text ends in an escape");
    if (r->text[r->at + 1] == 'u') return read_unicode(r, to, length);
    const char *found = r->text[r->at + 1] ? strchr(from, r->text[r->at + 1]) : NULL;
    if (!found) return refuse(r, "unknown escape");
    *to = means[found - from];
    *length = 1;
    r->at += 2;
    return EXPHIL_OK;
}

/* A string whose opening quote is at r->at; *text is where it begins in texts. Never longer than in the
 * input. */
static exphil_status read_string(reader *r, uint32_t *text)
{
    size_t begin = r->at++;
    char *to = r->json->texts + r->texts_used;
    *text = r->texts_used;
    while (r->at < r->bytes && r->text[r->at] != '"') {
        size_t length = 0;
        if (r->text[r->at] < 0x20) return refuse(r, "control character in a text");
        if (r->text[r->at] == '\\') {
            XPH_TRY(read_escape(r, to, &length));
        } else {
            length = xph_utf8_length(r->text + r->at, r->bytes - r->at);
            if (!length) return refuse(r, "not UTF-8");
            memcpy(to, r->text + r->at, length);
            r->at += length;
        }
        to += length;
    }
    if (r->at == r->bytes) return refuse_at(r, begin, "text without an end");
    r->at++;
    *to++ = '\0';
    r->texts_used = (uint32_t)(to - r->json->texts);
    return EXPHIL_OK;
}

/* ---- values -------------------------------------------------------------------------------------------- */

static void skip_space(reader *r)
{
    while (r->at < r->bytes && r->text[r->at] && strchr(" \t\n\r", r->text[r->at])) r->at++;
}

static bool take(reader *r, char c)
{
    if (r->at == r->bytes || r->text[r->at] != (unsigned char)c) return false;
    r->at++;
    return true;
}

static size_t take_digits(reader *r)
{
    size_t begin = r->at;
    while (r->at < r->bytes && r->text[r->at] >= '0' && r->text[r->at] <= '9') r->at++;
    return r->at - begin;
}

static exphil_status read_number(reader *r, uint32_t *text)
{
    size_t begin = r->at;
    take(r, '-');
    size_t first = r->at, digits = take_digits(r);
    bool good = digits && (digits == 1 || r->text[first] != '0');
    if (good && take(r, '.')) good = take_digits(r) > 0;
    if (good && (take(r, 'e') || take(r, 'E'))) {
        if (!take(r, '+')) take(r, '-');
        good = take_digits(r) > 0;
    }
    if (!good) return refuse_at(r, begin, "a value must stand here");
    *text = r->texts_used;
    memcpy(r->json->texts + r->texts_used, r->text + begin, r->at - begin);
    r->texts_used += (uint32_t)(r->at - begin);
    r->json->texts[r->texts_used++] = '\0'; /* in the place of the bracket or comma that follows */
    return EXPHIL_OK;
}

static bool take_word(reader *r, const char *word)
{
    size_t length = strlen(word);
    if (r->bytes - r->at < length || memcmp(r->text + r->at, word, length) != 0) return false;
    r->at += length;
    return true;
}

/* A value that is not an array or object. */
static exphil_status read_plain(reader *r, value *v)
{
    v->kind = XPH_JSON_BOOL;
    if (take_word(r, "true")) {
        v->text = 0;
        return EXPHIL_OK;
    }
    if (take_word(r, "false")) return EXPHIL_OK;
    v->kind = XPH_JSON_NULL;
    if (take_word(r, "null")) return EXPHIL_OK;
    if (r->at < r->bytes && r->text[r->at] == '"') {
        v->kind = XPH_JSON_TEXT;
        return read_string(r, &v->text);
    }
    v->kind = XPH_JSON_NUMBER;
    return read_number(r, &v->text);
}

/* The parent of the next value gets one more child. */
static void append(reader *r, int32_t at)
{
    value *values = r->json->values;
    int32_t level = r->depth - 1;
    if (level < 0) return;
    values[at].parent = r->open[level];
    if (values[r->open[level]].count++) values[r->last[level]].next = at;
    r->last[level] = at;
}

static exphil_status read_value(reader *r, uint32_t name)
{
    xph_json *json = r->json;
    if (json->used == json->capacity) return refuse(r, "too many values");
    int32_t at = json->used++;
    value *v = &json->values[at];
    *v = (value){.parent = -1, .next = -1, .name = name, .text = NONE};
    append(r, at);
    bool object = r->at < r->bytes && r->text[r->at] == '{';
    if (!object && (r->at == r->bytes || r->text[r->at] != '[')) return read_plain(r, v);
    v->kind = object ? XPH_JSON_OBJECT : XPH_JSON_ARRAY;
    if (r->depth == XPH_JSON_MOST_DEPTH) return refuse(r, "nested too deeply");
    r->open[r->depth++] = at;
    r->at++;
    return EXPHIL_OK;
}

static exphil_status read_member(reader *r)
{
    xph_json *json = r->json;
    uint32_t name;
    size_t begin = r->at;
    if (r->at == r->bytes || r->text[r->at] != '"') return refuse(r, "a name must stand here");
    XPH_TRY(read_string(r, &name));
    uint32_t slot = slot_of(json, r->open[r->depth - 1], json->texts + name);
    if (json->slots[slot]) return refuse_at(r, begin, "this name stands twice");
    json->slots[slot] =
        json->used + 1; /* the value that read_value makes next; it has a name from the start */
    skip_space(r);
    if (!take(r, ':')) return refuse(r, "':' must stand here");
    skip_space(r);
    return read_value(r, name);
}

/* The next item or member of the innermost open array or object, or its end. */
static exphil_status read_item(reader *r)
{
    const value *open = &r->json->values[r->open[r->depth - 1]];
    bool object = open->kind == XPH_JSON_OBJECT;
    skip_space(r);
    if (take(r, object ? '}' : ']')) {
        r->depth--;
        return EXPHIL_OK;
    }
    if (open->count) {
        if (!take(r, ','))
            return refuse(r, object ? "',' or '}' must stand here" : "',' or ']' must stand here");
        skip_space(r);
    }
    return object ? read_member(r) : read_value(r, NONE);
}

static exphil_status read_all(reader *r)
{
    skip_space(r);
    if (r->at == r->bytes || !strchr("{[", r->text[r->at]) || !r->text[r->at]) {
        return refuse(r, "'{' or '[' must stand here");
    }
    XPH_TRY(read_value(r, NONE));
    while (r->depth) XPH_TRY(read_item(r));
    skip_space(r);
    return r->at == r->bytes ? EXPHIL_OK : refuse(r, "something follows the end");
}

/* ---- the document -------------------------------------------------------------------------------------- */

/* At least as many as there are values: each is the first in its array or object, follows a comma, or is
 * the top. */
static size_t count_values(const char *text, size_t bytes)
{
    size_t count = 1;
    bool quoted = false;
    for (size_t i = 0; i < bytes; i++) {
        if (quoted && text[i] == '\\') {
            i++;
        } else if (text[i] == '"') {
            quoted = !quoted;
        } else if (!quoted && (text[i] == ',' || text[i] == '{' || text[i] == '[')) {
            count++;
        }
    }
    return count;
}

/* One allocation: the struct, values, slots, texts. The sizes are bounded by the limits, far from
 * overflow. */
static xph_json *allocate(exphil_context *context, const char *label, size_t count, size_t text_bytes)
{
    size_t slots = 4;
    while (slots < 2 * count) slots *= 2;
    size_t bytes = sizeof(xph_json) + count * sizeof(value) + slots * sizeof(int32_t) + text_bytes + 1;
    xph_json *json = xph_alloc(context, bytes);
    if (!json) return NULL;
    *json = (xph_json){.context = context, .label = label, .bytes = bytes, .capacity = (int32_t)count};
    json->values = (value *)(json + 1);
    json->slots = (int32_t *)(json->values + count);
    json->texts = (char *)(json->slots + slots);
    json->slot_count = (uint32_t)slots;
    memset(json->slots, 0, slots * sizeof(int32_t));
    return json;
}

exphil_status xph_json_parse(exphil_context *context, const char *text, size_t bytes, const char *label,
                             size_t base, xph_json **json, exphil_error *error)
{
    if (bytes > XPH_JSON_MOST_BYTES) {
        return xph_fail(error, EXPHIL_E_FORMAT, "%s: %zu bytes of JSON, at most %zu are allowed", label,
                        bytes, XPH_JSON_MOST_BYTES);
    }
    size_t count = count_values(text, bytes);
    if (count > XPH_JSON_MOST_VALUES) {
        return xph_fail(error, EXPHIL_E_FORMAT, "%s: more than %d values", label, XPH_JSON_MOST_VALUES);
    }
    xph_json *made = allocate(context, label, count, bytes);
    if (!made) return xph_no_memory(bytes, error);
    reader r = {
        .json = made, .text = (const unsigned char *)text, .bytes = bytes, .base = base, .error = error};
    exphil_status status = read_all(&r);
    if (status < 0) {
        xph_json_free(made);
        return status;
    }
    *json = made;
    return EXPHIL_OK;
}

void xph_json_free(xph_json *json)
{
    if (json) xph_free(json->context, json, json->bytes);
}

int32_t xph_json_kind(const xph_json *json, int32_t at)
{
    return at < 0 || at >= json->used ? -1 : json->values[at].kind;
}

int32_t xph_json_count(const xph_json *json, int32_t at)
{
    return at < 0 || at >= json->used ? 0 : json->values[at].count;
}

int32_t xph_json_first(const xph_json *json, int32_t at)
{
    return xph_json_count(json, at) ? at + 1 : -1;
}

int32_t xph_json_next(const xph_json *json, int32_t at)
{
    return at < 0 || at >= json->used ? -1 : json->values[at].next;
}

int32_t xph_json_parent(const xph_json *json, int32_t at)
{
    return at < 0 || at >= json->used ? -1 : json->values[at].parent;
}

const char *xph_json_label(const xph_json *json)
{
    return json->label;
}

const char *xph_json_name(const xph_json *json, int32_t at)
{
    if (at < 0 || at >= json->used || json->values[at].name == NONE) return NULL;
    return json->texts + json->values[at].name;
}

const char *xph_json_text(const xph_json *json, int32_t at)
{
    int32_t kind = xph_json_kind(json, at);
    return kind == XPH_JSON_TEXT || kind == XPH_JSON_NUMBER ? json->texts + json->values[at].text : NULL;
}

bool xph_json_true(const xph_json *json, int32_t at)
{
    return xph_json_kind(json, at) == XPH_JSON_BOOL && json->values[at].text != NONE;
}
