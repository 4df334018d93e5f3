/* The metadata element behind the event stream: an UBJSON object of which only playedOn, startAt and lastFrame
 * are read, and only to be shown. No recursion: open containers are counted on a stack of XPH_SLP_DEPTH. Each
 * value costs at least one byte, counted and typed containers are refused, so time is linear in the bytes. */
#include "melee/slp_internal.h"

struct reader {
    const uint8_t *data;
    size_t at, end;
};

enum { FAILED = 0, VALUE, OPEN_OBJECT, OPEN_ARRAY, CLOSE_OBJECT, CLOSE_ARRAY };

struct value {
    int32_t kind;
    bool is_number;
    int64_t number;      /* when is_number */
    const uint8_t *text; /* NULL unless a string */
    size_t text_bytes;
};

static bool take(struct reader *reader, size_t bytes, const uint8_t **at)
{
    if (bytes > reader->end - reader->at) return false;
    *at = reader->data + reader->at;
    reader->at += bytes;
    return true;
}

/* The next tag; 'N' is a filler. 0 at the end, which is no tag. */
static uint8_t next_tag(struct reader *reader)
{
    const uint8_t *tag;
    while (take(reader, 1, &tag))
        if (*tag != 'N') return *tag;
    return 0;
}

static size_t width_of(uint8_t tag)
{
    switch (tag) {
    case 'i':
    case 'U':
        return 1;
    case 'I':
        return 2;
    case 'l':
        return 4;
    case 'L':
        return 8;
    default:
        return 0;
    }
}

static bool read_integer(struct reader *reader, uint8_t tag, int64_t *number)
{
    const uint8_t *p;
    size_t width = width_of(tag);
    if (width == 0 || !take(reader, width, &p)) return false;
    uint64_t bits = tag != 'U' && p[0] & 0x80 ? UINT64_MAX : 0; /* sign */
    for (size_t i = 0; i < width; i++) bits = bits << 8 | p[i];
    memcpy(number, &bits, sizeof *number);
    return true;
}

/* A length, itself a tagged integer, and that many bytes. */
static bool read_text(struct reader *reader, struct value *value)
{
    int64_t length;
    if (!read_integer(reader, next_tag(reader), &length) || length < 0) return false;
    if ((uint64_t)length > (uint64_t)(reader->end - reader->at)) return false;
    value->text_bytes = (size_t)length;
    return take(reader, value->text_bytes, &value->text);
}

static bool read_container(struct reader *reader, struct value *value, int32_t kind)
{
    value->kind = kind;
    if (reader->at >= reader->end) return false;
    return reader->data[reader->at] != '$' && reader->data[reader->at] != '#';
}

static bool read_value(struct reader *reader, uint8_t tag, struct value *value)
{
    const uint8_t *skipped;
    *value = (struct value){.kind = VALUE};
    switch (tag) {
    case 'Z':
    case 'T':
    case 'F':
        return true;
    case 'C':
        return take(reader, 1, &skipped);
    case 'd':
        return take(reader, 4, &skipped);
    case 'D':
        return take(reader, 8, &skipped);
    case 'S':
    case 'H':
        return read_text(reader, value);
    case '{':
        return read_container(reader, value, OPEN_OBJECT);
    case '[':
        return read_container(reader, value, OPEN_ARRAY);
    default:
        value->is_number = true;
        return read_integer(reader, tag, &value->number);
    }
}

static bool key_is(const struct value *key, const char *name)
{
    size_t length = strlen(name);
    return key->text_bytes == length && memcmp(key->text, name, length) == 0;
}

/* Plain characters only: the text comes from an untrusted file and is printed. */
static void copy_text(char *to, size_t capacity, const struct value *value)
{
    size_t length = value->text_bytes < capacity - 1 ? value->text_bytes : capacity - 1;
    memset(to, 0, capacity);
    for (size_t i = 0; i < length; i++) {
        uint8_t byte = value->text[i] >= 0x20 && value->text[i] < 0x7F ? value->text[i] : (uint8_t)'?';
        memcpy(to + i, &byte, 1);
    }
}

/* Some recorders count the zero that ends the text. */
static void copy_date(char *to, size_t capacity, const struct value *value)
{
    struct value date = *value;
    while (date.text_bytes && date.text[date.text_bytes - 1] == 0) date.text_bytes--;
    copy_text(to, capacity, &date);
}

static void note(exphil_slp_info *info, const struct value *key, const struct value *value)
{
    if (value->text && key_is(key, "playedOn")) copy_text(info->played_on, sizeof info->played_on, value);
    if (value->text && key_is(key, "startAt")) copy_date(info->started_at, sizeof info->started_at, value);
    if (value->is_number && value->number > INT32_MIN && value->number <= INT32_MAX &&
        key_is(key, "lastFrame"))
        info->metadata_last_frame = (int32_t)value->number;
}

/* One member of an object, or one element of an array, or the end of the container. */
static bool read_member(struct reader *reader, bool in_object, struct value *key, struct value *value)
{
    uint8_t tag = next_tag(reader);
    if (tag == (in_object ? '}' : ']')) {
        value->kind = in_object ? CLOSE_OBJECT : CLOSE_ARRAY;
        return true;
    }
    if (!in_object) return read_value(reader, tag, value);
    reader->at -= tag != 0; /* a key is a string without its tag */
    return read_text(reader, key) && read_value(reader, next_tag(reader), value);
}

static bool read_object(struct reader *reader, exphil_slp_info *info)
{
    bool object[XPH_SLP_DEPTH] = {true};
    size_t depth = 1;
    struct value key = {0}, value = {0};
    if (next_tag(reader) != '{' || !read_container(reader, &value, OPEN_OBJECT)) return false;
    while (depth > 0) {
        if (!read_member(reader, object[depth - 1], &key, &value)) return false;
        if (value.kind == VALUE && depth == 1) note(info, &key, &value);
        if (value.kind >= CLOSE_OBJECT) depth--;
        if (value.kind != OPEN_OBJECT && value.kind != OPEN_ARRAY) continue;
        if (depth == XPH_SLP_DEPTH) return false;
        object[depth++] = value.kind == OPEN_OBJECT;
    }
    return true;
}

void xph_slp_metadata_read(const uint8_t *data, size_t bytes, size_t at, exphil_slp_info *info)
{
    static const uint8_t key[10] = {'U', 8, 'm', 'e', 't', 'a', 'd', 'a', 't', 'a'};
    if (at >= bytes || data[at] == '}') return;
    struct reader reader = {data, at, bytes};
    const uint8_t *found;
    exphil_slp_info noted = *info;
    if (take(&reader, sizeof key, &found) && memcmp(found, key, sizeof key) == 0 &&
        read_object(&reader, &noted)) {
        *info = noted;
        info->metadata = EXPHIL_SLP_METADATA_OK;
        return;
    }
    info->metadata = EXPHIL_SLP_METADATA_UNREADABLE;
    info->problems |= EXPHIL_SLP_PROBLEM_METADATA;
    info->problem_count++;
}
