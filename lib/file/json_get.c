/* Taking values out of a JSON document by name, with messages that say which one is missing or wrong. */
#include "file/file.h"

#include <stdio.h>

#define PATH_TEXT 160

/* Puts part before what is at *from; what does not fit is cut off in front. */
static void prepend(const char *begin, char **from, const char *part)
{
    size_t length = strlen(part), left = (size_t)(*from - begin);
    if (length > left) {
        part += length - left;
        length = left;
    }
    *from -= length;
    memcpy(*from, part, length);
}

static int32_t index_of(const xph_json *json, int32_t at)
{
    int32_t index = 0;
    for (int32_t i = xph_json_first(json, xph_json_parent(json, at)); i >= 0 && i != at; index++) {
        i = xph_json_next(json, i);
    }
    return index;
}

/* "heads[3].count": where a value, or a member of it, stands. */
static const char *path_text(const xph_json *json, int32_t at, const char *member, char *text)
{
    char *from = text + PATH_TEXT - 1, item[16];
    *from = '\0';
    if (member) prepend(text, &from, member);
    for (; at > 0; at = xph_json_parent(json, at)) {
        const char *name = xph_json_name(json, at);
        if (*from && *from != '[') prepend(text, &from, ".");
        snprintf(item, sizeof item, "[%d]", name ? 0 : (int)index_of(json, at));
        prepend(text, &from, !name ? item : *name ? name : "\"\"");
    }
    return *from ? from : "the whole";
}

static exphil_status complain(const xph_json *json, int32_t at, const char *member, const char *what,
                              exphil_error *error)
{
    char text[PATH_TEXT];
    return xph_fail(error, EXPHIL_E_FORMAT, "%s: %s %s", xph_json_label(json),
                    path_text(json, at, member, text), what);
}

exphil_status xph_json_refuse(const xph_json *json, int32_t at, const char *what, exphil_error *error)
{
    return complain(json, at, NULL, what, error);
}

exphil_status xph_json_get(const xph_json *json, int32_t object, const char *name, int32_t kind, int32_t *at,
                           exphil_error *error)
{
    static const char *const wrong[] = {
        [XPH_JSON_NULL] = "is not null",    [XPH_JSON_BOOL] = "is not true or false",
        [XPH_JSON_NUMBER] = "is no number", [XPH_JSON_TEXT] = "is no text",
        [XPH_JSON_ARRAY] = "is no array",   [XPH_JSON_OBJECT] = "is no object",
    };
    int32_t found = xph_json_find(json, object, name);
    if (found < 0) return complain(json, object, name, "is missing", error);
    if (xph_json_kind(json, found) != kind) return complain(json, object, name, wrong[kind], error);
    *at = found;
    return EXPHIL_OK;
}

exphil_status xph_json_get_text(const xph_json *json, int32_t object, const char *name, const char **text,
                                exphil_error *error)
{
    int32_t at = -1;
    XPH_TRY(xph_json_get(json, object, name, XPH_JSON_TEXT, &at, error));
    *text = xph_json_text(json, at);
    return EXPHIL_OK;
}

/* An optional minus and digits, nothing else (JSON numbers have no leading zeros). */
static bool read_integer(const char *text, int64_t *value)
{
    bool minus = *text == '-';
    int64_t sum = 0; /* negative: that side reaches further */
    for (const char *c = text + minus; *c; c++) {
        if (*c < '0' || *c > '9') return false;
        int64_t digit = *c - '0';
        if (sum < INT64_MIN / 10 || sum * 10 < INT64_MIN + digit) return false;
        sum = sum * 10 - digit;
    }
    if (!minus && sum == INT64_MIN) return false;
    *value = minus ? sum : -sum;
    return true;
}

exphil_status xph_json_int_at(const xph_json *json, int32_t at, int64_t low, int64_t high, int64_t *value,
                              exphil_error *error)
{
    int64_t read;
    if (xph_json_kind(json, at) != XPH_JSON_NUMBER || !read_integer(xph_json_text(json, at), &read)) {
        return complain(json, at, NULL, "is no integer of 64 bits", error);
    }
    if (read >= low && read <= high) {
        *value = read;
        return EXPHIL_OK;
    }
    char text[PATH_TEXT];
    return xph_fail(error, EXPHIL_E_FORMAT, "%s: %s is %lld, not in %lld..%lld", xph_json_label(json),
                    path_text(json, at, NULL, text), (long long)read, (long long)low, (long long)high);
}

exphil_status xph_json_get_int(const xph_json *json, int32_t object, const char *name, int64_t low,
                               int64_t high, int64_t *value, exphil_error *error)
{
    int32_t at = -1;
    XPH_TRY(xph_json_get(json, object, name, XPH_JSON_NUMBER, &at, error));
    return xph_json_int_at(json, at, low, high, value, error);
}

exphil_status xph_json_get_double(const xph_json *json, int32_t object, const char *name, double *value,
                                  exphil_error *error)
{
    int32_t at = -1;
    double read;
    XPH_TRY(xph_json_get(json, object, name, XPH_JSON_NUMBER, &at, error));
    if (!xph_parse_double(xph_json_text(json, at), &read)) {
        return complain(json, object, name, "is out of the range of a double", error);
    }
    *value = read;
    return EXPHIL_OK;
}

exphil_status xph_json_get_hex(const xph_json *json, int32_t object, const char *name, uint64_t *value,
                               exphil_error *error)
{
    const char *text;
    XPH_TRY(xph_json_get_text(json, object, name, &text, error));
    if (xph_hex_value(text, value)) return EXPHIL_OK;
    return complain(json, object, name, "is not 16 digits of 0-9a-f", error);
}

const char *xph_hex_text(char *text, uint64_t value)
{
    for (int i = 15; i >= 0; i--, value >>= 4) text[i] = "0123456789abcdef"[value & 15];
    text[16] = '\0';
    return text;
}

bool xph_hex_value(const char *text, uint64_t *value)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t sum = 0;
    for (int i = 0; i < 16; i++) {
        const char *digit = text[i] ? strchr(digits, text[i]) : NULL;
        if (!digit) return false;
        sum = sum << 4 | (uint64_t)(digit - digits);
    }
    if (text[16]) return false;
    *value = sum;
    return true;
}
