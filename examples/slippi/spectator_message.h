/* Messages of the Slippi spectator protocol, read and written: JSON texts, whose payloads are base64. Pure functions on
 * bytes that nobody has looked at before: every byte is checked. */
#ifndef SPECTATOR_MESSAGE_H
#define SPECTATOR_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Longest text and payload that are looked at. A frame needs 3 kB; the longest event there can be, a list of codes in a
 * recording of 2020, has 64 KiB. */
#define SPECTATOR_TEXT_MAX    (256u * 1024u)
#define SPECTATOR_PAYLOAD_MAX (192u * 1024u)

typedef enum spectator_kind {
    SPECTATOR_OTHER,           /* a type that is not known: later protocols may have more */
    SPECTATOR_CONNECT_REQUEST, /* cursor */
    SPECTATOR_CONNECT_REPLY,   /* cursor, version */
    SPECTATOR_START_GAME,      /* cursor, next_cursor */
    SPECTATOR_GAME_EVENT,      /* cursor, next_cursor, payload: events of the .slp format */
    SPECTATOR_END_GAME,        /* cursor, next_cursor */
    SPECTATOR_MENU_EVENT       /* payload: one event of the menu */
} spectator_kind;

typedef struct spectator_message {
    spectator_kind kind;
    int64_t cursor, next_cursor; /* -1: not said */
    size_t payload_bytes;
    char version[32]; /* of the game's recorder; empty when not said or not plain */
} spectator_message;

/* payload has room for SPECTATOR_PAYLOAD_MAX bytes. NULL: fine; else what is wrong, static text, and nothing of message may
 * be used. */
const char *spectator_message_read(const void *text, size_t text_bytes, spectator_message *message,
                                   uint8_t *payload);
/* A text to send, to be freed; NULL without memory. Cursors below 0 and a NULL payload are left out. */
char *spectator_message_write(spectator_kind kind, int64_t cursor, const void *payload, size_t payload_bytes);

#ifdef __cplusplus
}
#endif
#endif
