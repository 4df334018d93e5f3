/* JSON by jansson, base64 by hand (RFC 4648, with padding, nothing between the characters). */
#include "spectator_message.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static const char *const kinds[] = {"",           "connect_request", "connect_reply", "start_game",
                                    "game_event", "end_game",        "menu_event"};

/* ---- base64 ---------------------------------------------------------------------------------------------- */

static int digit(char c)
{
    const char *at = c ? strchr(alphabet, c) : NULL;
    return at ? (int)(at - alphabet) : -1;
}

/* Bytes decoded, or -1. text_bytes is a multiple of 4 in anything that is valid. */
static int64_t decode(const char *text, size_t text_bytes, uint8_t *out, size_t room)
{
    size_t pad = 0, used = 0;
    if (text_bytes % 4) return -1;
    while (pad < 2 && pad < text_bytes && text[text_bytes - 1 - pad] == '=') pad++;
    size_t total = text_bytes / 4 * 3 - pad;
    if (total > room) return -1;
    for (size_t i = 0; i < text_bytes; i += 4) {
        uint32_t bits = 0;
        for (size_t k = 0; k < 4; k++) {
            int value = i + k >= text_bytes - pad ? 0 : digit(text[i + k]);
            if (value < 0) return -1;
            bits = bits << 6 | (uint32_t)value;
        }
        for (int shift = 16; shift >= 0 && used < total; shift -= 8) out[used++] = (uint8_t)(bits >> shift);
    }
    return (int64_t)used;
}

static char *encode(const uint8_t *data, size_t bytes)
{
    char *text = malloc((bytes + 2) / 3 * 4 + 1), *at = text;
    if (!text) return NULL;
    for (size_t i = 0; i < bytes; i += 3) {
        uint32_t bits = (uint32_t)data[i] << 16;
        if (i + 1 < bytes) bits |= (uint32_t)data[i + 1] << 8;
        if (i + 2 < bytes) bits |= data[i + 2];
        for (int k = 0; k < 4; k++) *at++ = alphabet[bits >> (18 - 6 * k) & 63];
        if (i + 1 >= bytes) at[-2] = '=';
        if (i + 2 >= bytes) at[-1] = '=';
    }
    *at = '\0';
    return text;
}

/* ---- texts ----------------------------------------------------------------------------------------------- */

static spectator_kind kind_of(const char *name)
{
    for (size_t i = 1; i < sizeof kinds / sizeof kinds[0]; i++)
        if (!strcmp(name, kinds[i])) return (spectator_kind)i;
    return SPECTATOR_OTHER;
}

/* A cursor that is there must be an integer from 0 on, far enough from the end to count on. */
static int read_cursor(const json_t *object, const char *key, int64_t *cursor)
{
    const json_t *value = json_object_get(object, key);
    *cursor = -1;
    if (!value) return 1;
    if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > INT64_MAX / 2)
        return 0;
    *cursor = json_integer_value(value);
    return 1;
}

static void read_version(const json_t *object, char version[32])
{
    const char *text = json_string_value(json_object_get(object, "version"));
    version[0] = '\0';
    if (!text || strlen(text) > 31) return;
    for (const char *c = text; *c; c++)
        if (*c < ' ' || *c > '~') return;
    memcpy(version, text, strlen(text) + 1);
}

static const char *read_payload(const json_t *object, spectator_message *message, uint8_t *payload)
{
    const json_t *value = json_object_get(object, "payload");
    if (!json_is_string(value)) return "an event without payload";
    int64_t bytes =
        decode(json_string_value(value), json_string_length(value), payload, SPECTATOR_PAYLOAD_MAX);
    if (bytes < 0) return "a payload that is not base64, or too long";
    message->payload_bytes = (size_t)bytes;
    return NULL;
}

static const char *read_object(const json_t *object, spectator_message *message, uint8_t *payload)
{
    const char *type = json_string_value(json_object_get(object, "type"));
    if (!type) return "a message without type";
    memset(message, 0, sizeof *message);
    message->kind = kind_of(type);
    if (!read_cursor(object, "cursor", &message->cursor) ||
        !read_cursor(object, "next_cursor", &message->next_cursor))
        return "a cursor that is none";
    if (message->kind == SPECTATOR_CONNECT_REPLY) read_version(object, message->version);
    if ((message->kind == SPECTATOR_CONNECT_REQUEST || message->kind == SPECTATOR_CONNECT_REPLY ||
         message->kind == SPECTATOR_GAME_EVENT) &&
        message->cursor < 0)
        return "a message without cursor";
    if (message->next_cursor < 0 && message->cursor >= 0) message->next_cursor = message->cursor + 1;
    if (message->kind != SPECTATOR_GAME_EVENT && message->kind != SPECTATOR_MENU_EVENT) return NULL;
    return read_payload(object, message, payload);
}

const char *spectator_message_read(const void *text, size_t text_bytes, spectator_message *message,
                                   uint8_t *payload)
{
    json_error_t error;
    if (text_bytes > SPECTATOR_TEXT_MAX) return "a message that is too long";
    json_t *root = json_loadb(text, text_bytes, JSON_REJECT_DUPLICATES, &error);
    const char *wrong = "a message that is not JSON";
    if (root)
        wrong = json_is_object(root) ? read_object(root, message, payload) : "a message that is no object";
    json_decref(root);
    return wrong;
}

char *spectator_message_write(spectator_kind kind, int64_t cursor, const void *payload, size_t payload_bytes)
{
    json_t *object = json_object();
    char *text = NULL, *base64 = payload ? encode(payload, payload_bytes) : NULL;
    int failed = !object || (payload && !base64) ||
                 json_object_set_new(object, "type", json_string(kinds[kind])) ||
                 (base64 && json_object_set_new(object, "payload", json_string(base64))) ||
                 (cursor >= 0 && json_object_set_new(object, "cursor", json_integer(cursor)));
    int numbered = kind == SPECTATOR_GAME_EVENT || kind == SPECTATOR_START_GAME || kind == SPECTATOR_END_GAME;
    if (!failed && numbered && cursor >= 0)
        failed = json_object_set_new(object, "next_cursor", json_integer(cursor + 1));
    if (!failed && kind == SPECTATOR_CONNECT_REPLY)
        failed = json_object_set_new(object, "nick", json_string("exphil")) ||
                 json_object_set_new(object, "version", json_string("3.19.1"));
    if (!failed) text = json_dumps(object, JSON_COMPACT);
    free(base64);
    json_decref(object);
    return text;
}
