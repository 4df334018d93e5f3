/* Three things go on: the connection (waiting, connecting, greeting, there), the game (is one known from its start without
 * a gap), and the message in hand, of which frames are taken one per poll. */
#include "spectator.h"

#include "spectator_message.h"
#include "system.h"

#include <enet/enet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum link { WAITING, CONNECTING, GREETING, THERE };
enum {
    GAME_TABLE = 0x35, /* the event that a recording starts with */
    RESUME_MS = 10000, /* a connection lost for longer: the game counts as another one */
    QUIET_MAX = 64     /* messages that mean nothing: so many are read in one poll whose time is over */
};

struct spectator {
    ENetHost *host;
    ENetPeer *peer;
    ENetAddress address;
    exphil_slp_stream *stream;
    int32_t connect_ms, retry_ms;
    enum link link;
    int in_game;      /* all of it since its start is known */
    int64_t until_ms; /* WAITING: the next attempt; CONNECTING, GREETING: given up */
    int64_t lost_ms;
    int64_t next_cursor; /* of the message that is expected */
    int in_hand;         /* the message has events that were not taken; of its bytes used are */
    size_t used;
    spectator_message message;
    spectator_stats stats;
    char trouble[320];
    char version[32];
    uint8_t payload[SPECTATOR_PAYLOAD_MAX];
};

static int64_t now_ms(void)
{
    return system_now_ns() / 1000000;
}

__attribute__((format(printf, 2, 3))) static void note(spectator *s, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(s->trouble, sizeof s->trouble, format, list);
    va_end(list);
}

/* ---- creation -------------------------------------------------------------------------------------------- */

static spectator *refuse(spectator *s, exphil_error *error, exphil_status status, const char *text)
{
    if (error) {
        exphil_error said = EXPHIL_ERROR_INIT;
        said.status = status;
        snprintf(said.message, sizeof said.message, "%s", text);
        *error = said;
    }
    spectator_destroy(s);
    return NULL;
}

spectator *spectator_create(exphil_context *context, const spectator_config *config, exphil_error *error)
{
    static const spectator_config defaults;
    if (!config) config = &defaults;
    if (enet_initialize()) return refuse(NULL, error, EXPHIL_E_IO, "spectator: ENet does not start");
    spectator *s = calloc(1, sizeof *s);
    if (!s) return enet_deinitialize(), refuse(NULL, error, EXPHIL_E_MEMORY, "spectator: no memory");
    s->connect_ms = config->connect_ms > 0 ? config->connect_ms : 3000;
    s->retry_ms = config->retry_ms > 0 ? config->retry_ms : 500;
    s->until_ms = now_ms();
    if (enet_address_set_host(&s->address, config->host ? config->host : "127.0.0.1"))
        return refuse(s, error, EXPHIL_E_INVALID, "spectator: the host has no address");
    s->address.port = config->port ? config->port : SPECTATOR_PORT;
    if (exphil_slp_stream_create(context, &s->stream, error) < 0) return spectator_destroy(s), NULL;
    s->host = enet_host_create(NULL, 1, 1, 0, 0);
    if (!s->host) return refuse(s, error, EXPHIL_E_IO, "spectator: no socket");
    s->host->maximumPacketSize = 4 * SPECTATOR_TEXT_MAX; /* what is larger is never put together */
    s->host->maximumWaitingData = 64 * SPECTATOR_TEXT_MAX;
    return s;
}

void spectator_destroy(spectator *s)
{
    if (!s) return;
    if (s->peer) enet_peer_disconnect_now(s->peer, 0);
    if (s->host) enet_host_destroy(s->host);
    exphil_slp_stream_destroy(s->stream);
    free(s);
    enet_deinitialize();
}

/* ---- connection ------------------------------------------------------------------------------------------ */

static spectator_event lose(spectator *s, const char *why)
{
    int known = s->link == THERE;
    if (known) s->lost_ms = now_ms();
    if (s->peer) enet_peer_reset(s->peer);
    s->peer = NULL;
    s->link = WAITING;
    s->until_ms = now_ms() + s->retry_ms;
    note(s, "%s", why);
    return known ? SPECTATOR_LOST : SPECTATOR_NOTHING; /* an attempt that came to nothing is not an event */
}

static spectator_event connect_now(spectator *s)
{
    s->peer = enet_host_connect(s->host, &s->address, 1, 0);
    if (!s->peer) return note(s, "ENet has no connection to give"), SPECTATOR_FAILED;
    enet_peer_timeout(s->peer, 0, 3000,
                      10000); /* ms; ENet's own 5 and 30 seconds are a long time in a game */
    s->link = CONNECTING;
    s->until_ms = now_ms() + s->connect_ms;
    return SPECTATOR_NOTHING;
}

/* A game goes on where it stopped, when not much time has gone by; after that, or without one, whatever is played now is
 * wanted from its start: another Dolphin counts from 0 again, and its message of the same number is of another game. */
static spectator_event greet(spectator *s)
{
    if (now_ms() - s->lost_ms > RESUME_MS) s->in_game = 0;
    if (!s->in_game) s->next_cursor = 0;
    char *text = spectator_message_write(SPECTATOR_CONNECT_REQUEST, s->next_cursor, NULL, 0);
    ENetPacket *packet = text ? enet_packet_create(text, strlen(text), ENET_PACKET_FLAG_RELIABLE) : NULL;
    free(text);
    if (!packet || enet_peer_send(s->peer, 0, packet) < 0) {
        if (packet) enet_packet_destroy(packet);
        return note(s, "no memory to greet with"), SPECTATOR_FAILED;
    }
    enet_host_flush(s->host);
    s->link = GREETING;
    s->until_ms = now_ms() + s->connect_ms;
    return SPECTATOR_NOTHING;
}

/* ---- messages -------------------------------------------------------------------------------------------- */

static spectator_event damage(spectator *s, const char *what)
{
    s->stats.damaged++;
    note(s, "%s", what);
    return SPECTATOR_DAMAGED;
}

static spectator_event begin_game(spectator *s)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    s->in_game = 1;
    if (exphil_slp_stream_reset(s->stream, &error) >= 0) return SPECTATOR_GAME_BEGIN;
    s->in_game = 0;
    return note(s, "%s", error.message), SPECTATOR_FAILED;
}

static spectator_event end_game(spectator *s)
{
    int running = s->in_game;
    s->in_game = 0;
    return running ? SPECTATOR_GAME_END : SPECTATOR_NOTHING;
}

/* Goes on with the payload in hand until something has happened or it is used up. */
static spectator_event take_events(spectator *s)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    size_t used = 0, left = s->message.payload_bytes - s->used;
    exphil_status status = exphil_slp_stream_push(s->stream, s->payload + s->used, left, &used, &error);
    s->used += used;
    if (status == EXPHIL_OK) return s->stats.frames++, SPECTATOR_FRAME;
    s->in_hand = 0;
    if (status == EXPHIL_AGAIN) return SPECTATOR_NOTHING;
    if (status == EXPHIL_END) return end_game(s);
    s->in_game = 0;
    return damage(s, error.message);
}

/* Recorders before start_game was invented just begin: with the table of events, when no game is under way. */
static spectator_event take_game_event(spectator *s)
{
    if (s->message.payload_bytes == 0) return SPECTATOR_NOTHING;
    s->in_hand = s->in_game || s->payload[0] == GAME_TABLE;
    return s->in_hand && !s->in_game ? begin_game(s) : SPECTATOR_NOTHING;
}

/* A reliable channel loses nothing, so a gap is the other side's doing: what is left of the game cannot be read. */
static spectator_event take_numbered(spectator *s)
{
    int gap = s->message.cursor >= 0 && s->message.cursor != s->next_cursor;
    if (s->message.cursor >= 0) s->next_cursor = s->message.next_cursor;
    if (s->message.kind == SPECTATOR_START_GAME) return begin_game(s);
    if (s->message.kind == SPECTATOR_END_GAME) return end_game(s);
    if (gap && s->in_game) {
        s->in_game = 0;
        return damage(s, "a part of the game is missing");
    }
    return take_game_event(s);
}

static spectator_event take_reply(spectator *s)
{
    if (s->link != GREETING) return damage(s, "a second greeting");
    /* Somewhere else than asked: another game, or this one from its start, which begins with its own message. */
    if (s->message.cursor != s->next_cursor) s->in_game = 0;
    s->next_cursor = s->message.cursor;
    s->link = THERE;
    s->stats.connections++;
    memcpy(s->version, s->message.version, sizeof s->version);
    return SPECTATOR_CONNECTED;
}

static spectator_event take_message(spectator *s, const ENetPacket *packet)
{
    s->used = 0;
    s->in_hand = 0;
    const char *wrong = spectator_message_read(packet->data, packet->dataLength, &s->message, s->payload);
    s->stats.messages++;
    if (wrong) {
        s->message = (spectator_message){.kind = SPECTATOR_OTHER};
        return damage(s, wrong);
    }
    if (s->message.kind == SPECTATOR_CONNECT_REPLY) return take_reply(s);
    if (s->link != THERE) return damage(s, "a message before the greeting");
    switch (s->message.kind) {
    case SPECTATOR_START_GAME:
    case SPECTATOR_GAME_EVENT:
    case SPECTATOR_END_GAME:
        return take_numbered(s);
    case SPECTATOR_MENU_EVENT:
        return s->message.payload_bytes ? SPECTATOR_MENU : SPECTATOR_NOTHING;
    default:
        return SPECTATOR_NOTHING;
    }
}

/* ---- polling --------------------------------------------------------------------------------------------- */

/* What is due by the clock; else how long nothing is. */
static spectator_event keep_time(spectator *s, int64_t *wait_ms)
{
    int64_t left = s->until_ms - now_ms();
    if (s->link == THERE) return SPECTATOR_NOTHING;
    if (left > 0) {
        if (*wait_ms > left) *wait_ms = left;
        return SPECTATOR_NOTHING;
    }
    *wait_ms = 0;
    return s->link == WAITING ? connect_now(s) : lose(s, "no answer");
}

static spectator_event handle(spectator *s, const ENetEvent *event)
{
    spectator_event result = SPECTATOR_NOTHING;
    if (event->type == ENET_EVENT_TYPE_CONNECT && s->link == CONNECTING) return greet(s);
    if (event->type == ENET_EVENT_TYPE_DISCONNECT && s->link != WAITING)
        return lose(s, "the game closed the connection");
    if (event->type == ENET_EVENT_TYPE_RECEIVE) {
        if (s->link != WAITING) result = take_message(s, event->packet);
        enet_packet_destroy(event->packet);
    }
    return result;
}

/* One thing: events of the message in hand, or what the clock or the socket has. more: there may be another at once. */
static spectator_event advance(spectator *s, int64_t wait_ms, int *more)
{
    ENetEvent event;
    *more = 1;
    if (s->in_game && s->in_hand) return take_events(s);
    spectator_event result = keep_time(s, &wait_ms);
    if (result != SPECTATOR_NOTHING) return result;
    int found = enet_host_service(s->host, &event, (uint32_t)wait_ms);
    *more = found > 0;
    return found > 0 ? handle(s, &event) : found < 0 ? lose(s, "the socket fails") : SPECTATOR_NOTHING;
}

spectator_event spectator_poll(spectator *s, int32_t timeout_ms)
{
    int64_t end = now_ms() + (timeout_ms > 0 ? timeout_ms : 0);
    for (int quiet = 0;; quiet++) {
        int more;
        int64_t left = end - now_ms();
        spectator_event result = advance(s, left > 0 ? left : 0, &more);
        if (result != SPECTATOR_NOTHING) return result;
        if (now_ms() >= end && (!more || quiet >= QUIET_MAX)) return SPECTATOR_NOTHING;
    }
}

exphil_slp_stream *spectator_stream(spectator *s)
{
    return s->stream;
}

const uint8_t *spectator_menu(const spectator *s, size_t *bytes)
{
    *bytes = s->message.kind == SPECTATOR_MENU_EVENT ? s->message.payload_bytes : 0;
    return s->payload;
}

const char *spectator_trouble(const spectator *s)
{
    return s->trouble;
}

const char *spectator_version(const spectator *s)
{
    return s->version;
}

void spectator_query(const spectator *s, spectator_stats *stats)
{
    *stats = s->stats;
}
