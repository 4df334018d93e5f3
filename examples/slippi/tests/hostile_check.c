/* Both ends with somebody at the other who does what nobody should.
 *   hostile_check GAME.slp      the spectator, against a server made here: garbage, gaps, silence, floods, old protocols
 *   hostile_check client PORT   a client that sends garbage to serve_slp at PORT; that it lives on is for live_check to see */
#include "../system.h"
#include "spectator.h"
#include "spectator_message.h"

#include <enet/enet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_MS                                                                                          \
  60000 /* until what should come is given up: it ends what would hang, and measures nothing */

struct stage {
    ENetHost *host; /* the bad server */
    ENetPeer *peer; /* who is connected to it */
    spectator *spectator;
    int64_t asked; /* the cursor of the latest request; -1: none came */
    uint8_t *game; /* events of a whole game */
    size_t game_bytes;
    int seen[SPECTATOR_DAMAGED + 1]; /* events by kind */
};

static int failures;

static void check(int fine, const char *what)
{
    if (!fine) fprintf(stderr, "hostile_check: %s\n", what), failures++;
}

static int64_t now_ms(void)
{
    return system_now_ns() / 1000000;
}

static void serve(struct stage *s)
{
    static uint8_t payload[SPECTATOR_PAYLOAD_MAX];
    ENetEvent event;
    while (s->host && enet_host_service(s->host, &event, 0) > 0) {
        spectator_message message;
        if (event.type == ENET_EVENT_TYPE_CONNECT) s->peer = event.peer;
        if (event.type == ENET_EVENT_TYPE_DISCONNECT && s->peer == event.peer) s->peer = NULL;
        if (event.type != ENET_EVENT_TYPE_RECEIVE) continue;
        if (!spectator_message_read(event.packet->data, event.packet->dataLength, &message, payload) &&
            message.kind == SPECTATOR_CONNECT_REQUEST)
            s->asked = message.cursor;
        enet_packet_destroy(event.packet);
    }
}

/* Both sides by turns, until `kind` has been seen `count` times or nothing more came in so many polls of a millisecond. */
static int play_for(struct stage *s, spectator_event kind, int count, int patience)
{
    for (int quiet = 0; s->seen[kind] < count && quiet < patience; quiet++) {
        serve(s);
        spectator_event event = spectator_poll(s->spectator, 1);
        if (event == SPECTATOR_NOTHING) continue;
        if (event == SPECTATOR_FAILED) return check(0, spectator_trouble(s->spectator)), 0;
        s->seen[event]++;
        quiet = 0;
    }
    return s->seen[kind] >= count;
}

static int play(struct stage *s, spectator_event kind, int count)
{
    return play_for(s, kind, count, PATIENCE_MS);
}

static void forget(struct stage *s)
{
    memset(s->seen, 0, sizeof s->seen);
}

static void send_bytes(struct stage *s, const void *data, size_t bytes)
{
    ENetPacket *packet = enet_packet_create(data, bytes, ENET_PACKET_FLAG_RELIABLE);
    if (s->peer && packet && enet_peer_send(s->peer, 0, packet) == 0) return;
    check(0, "the server could not send");
    if (packet) enet_packet_destroy(packet);
}

static void send_text(struct stage *s, const char *text)
{
    send_bytes(s, text, strlen(text));
}

static void send_message(struct stage *s, spectator_kind kind, int64_t cursor, const void *data, size_t bytes)
{
    char *text = spectator_message_write(kind, cursor, data, bytes);
    if (text) send_text(s, text);
    free(text);
}

/* The whole game in pieces of any size, with cursors from the given one on (-1: without start and end message, as old
 * servers did; events have cursors all the same). Returns the next cursor. */
static int64_t send_game(struct stage *s, int64_t cursor, size_t piece, int old)
{
    if (!old) send_message(s, SPECTATOR_START_GAME, cursor++, NULL, 0);
    for (size_t at = 0; at < s->game_bytes; at += piece) {
        size_t bytes = s->game_bytes - at < piece ? s->game_bytes - at : piece;
        send_message(s, SPECTATOR_GAME_EVENT, cursor++, s->game + at, bytes);
    }
    if (!old) send_message(s, SPECTATOR_END_GAME, cursor++, NULL, 0);
    return cursor;
}

static int open_stage(struct stage *s, exphil_context *context)
{
    ENetAddress address = {.host = ENET_HOST_ANY, .port = 0};
    exphil_error error = EXPHIL_ERROR_INIT;
    enet_initialize();
    s->host = enet_host_create(&address, 4, 1, 0, 0);
    if (!s->host) return 0;
    spectator_config config = {.port = s->host->address.port, .connect_ms = 200, .retry_ms = 20};
    s->spectator = spectator_create(context, &config, &error);
    s->asked = -1;
    return s->spectator != NULL;
}

static void await_request(struct stage *s)
{
    int64_t start = now_ms();
    s->asked = -1;
    while (s->asked < 0 && now_ms() - start < PATIENCE_MS) {
        serve(s);
        spectator_event event = spectator_poll(s->spectator, 1);
        if (event > 0) s->seen[event]++;
    }
    check(s->asked >= 0, "no request came");
}

static int frames_of(const struct stage *s, exphil_context *context)
{
    exphil_slp *slp;
    if (exphil_slp_read(context, s->game, s->game_bytes, NULL, &slp, NULL) < 0) return -1;
    int64_t frames = exphil_slp_frame_count(slp);
    exphil_slp_destroy(slp);
    return (int)frames;
}

/* Nobody answers: the spectator asks again and again, and polling takes no longer than it should. */
static void check_silence(struct stage *s)
{
    int64_t start = now_ms();
    check(spectator_poll(s->spectator, 0) == SPECTATOR_NOTHING, "polling finds something");
    check(spectator_poll(s->spectator, 60) == SPECTATOR_NOTHING && now_ms() - start >= 60,
          "polling does not wait");
    for (int i = 0; i < 2; i++) await_request(s); /* the second after the first was not answered in 200 ms */
    check(s->seen[SPECTATOR_LOST] == 0 && s->seen[SPECTATOR_CONNECTED] == 0,
          "silence passes for a connection");
    check(s->asked == 0, "the first request is not for cursor 0");
}

static void check_garbage(struct stage *s, int frames)
{
    static const char *const bad[] = {"",
                                      "{",
                                      "null",
                                      "[]",
                                      "{}",
                                      "{\"type\":7}",
                                      "\xff\xfe",
                                      "{\"type\":\"game_event\"}",
                                      "{\"type\":\"game_event\",\"cursor\":-5,\"payload\":\"\"}",
                                      "{\"type\":\"game_event\",\"cursor\":1.5,\"payload\":\"\"}",
                                      "{\"type\":\"game_event\",\"cursor\":1,\"payload\":\"A===\"}",
                                      "{\"type\":\"game_event\",\"cursor\":1,\"payload\":\"AB CD\"}",
                                      "{\"type\":\"game_event\",\"cursor\":1,\"payload\":{}}",
                                      "{\"type\":\"menu_event\",\"payload\":\"x\"}",
                                      "{\"type\":\"connect_reply\",\"cursor\":\"a\"}",
                                      "{\"type\":\"connect_reply\",\"cursor\":3}"};
    int count = (int)(sizeof bad / sizeof bad[0]);
    char *large = malloc(SPECTATOR_TEXT_MAX + 100);
    send_text(s, "{\"type\":\"start_game\",\"cursor\":0}"); /* before the greeting */
    send_message(s, SPECTATOR_CONNECT_REPLY, 40, NULL, 0);
    check(play(s, SPECTATOR_CONNECTED, 1) && s->seen[SPECTATOR_DAMAGED] == 1,
          "a message before the greeting passes");
    forget(s);
    for (int i = 0; i < count; i++) send_text(s, bad[i]);
    if (large) memset(large, ' ', SPECTATOR_TEXT_MAX + 100), send_bytes(s, large, SPECTATOR_TEXT_MAX + 100);
    send_text(s, "{\"type\":\"weather\",\"cursor\":1}"); /* not known, not wrong */
    free(large);
    check(play(s, SPECTATOR_DAMAGED, count + 1), "bad messages pass");
    check(s->seen[SPECTATOR_FRAME] == 0 && s->seen[SPECTATOR_LOST] == 0, "bad messages do something");
    send_game(s, 40, 777, 0);
    check(play(s, SPECTATOR_GAME_END, 1) && s->seen[SPECTATOR_FRAME] == frames,
          "a game after bad messages is not whole");
    check(s->seen[SPECTATOR_GAME_BEGIN] == 1 && s->seen[SPECTATOR_DAMAGED] == count + 1,
          "a good game is refused");
}

/* Pieces of one byte, a gap, bytes that are no events, a game that begins within another, old servers. */
static void check_games(struct stage *s, int frames)
{
    forget(s);
    size_t whole = s->game_bytes;
    s->game_bytes = 4000; /* some frames */
    int64_t cursor = send_game(s, 100000, 1, 0);
    check(play(s, SPECTATOR_GAME_END, 1) && s->seen[SPECTATOR_FRAME] > 3 && !s->seen[SPECTATOR_DAMAGED],
          "bytes one by one are refused");
    s->game_bytes = whole;
    forget(s);
    send_message(s, SPECTATOR_START_GAME, cursor++, NULL, 0);
    send_message(s, SPECTATOR_GAME_EVENT, cursor++, s->game, 3000);
    send_message(s, SPECTATOR_GAME_EVENT, cursor + 5, s->game + 3500, 500);
    send_message(s, SPECTATOR_GAME_EVENT, cursor + 6, s->game + 4000, 500);
    check(play(s, SPECTATOR_DAMAGED, 1) && strstr(spectator_trouble(s->spectator), "missing"),
          "a gap passes");
    int before = s->seen[SPECTATOR_FRAME];
    cursor = send_game(s, cursor + 7, 5000, 0);
    check(play(s, SPECTATOR_GAME_END, 1) && s->seen[SPECTATOR_FRAME] == before + frames,
          "a game after a gap is not whole");
    forget(s);
    send_message(s, SPECTATOR_START_GAME, cursor++, NULL, 0);
    send_message(s, SPECTATOR_GAME_EVENT, cursor++, "these are no events at all", 26);
    check(play(s, SPECTATOR_DAMAGED, 1), "bytes that are no events pass");
    send_message(s, SPECTATOR_START_GAME, cursor++, NULL, 0);
    send_message(s, SPECTATOR_GAME_EVENT, cursor++, s->game, 6000);
    cursor = send_game(s, cursor, 20000, 0);
    check(play(s, SPECTATOR_GAME_END, 1) && s->seen[SPECTATOR_GAME_BEGIN] == 3,
          "a game within a game is not begun");
    forget(s);
    for (int i = 0; i < 2; i++) cursor = send_game(s, cursor, 400, 1);
    check(play(s, SPECTATOR_GAME_END, 2) && s->seen[SPECTATOR_FRAME] == 2 * frames &&
              s->seen[SPECTATOR_GAME_BEGIN] == 2,
          "games of an old server are not whole");
}

/* A connection that is lost in a game: the request names the place; another place means that the game is another one. */
static void check_return(struct stage *s, int frames)
{
    for (int same = 1; same >= 0; same--) {
        forget(s);
        send_message(s, SPECTATOR_START_GAME, 500, NULL, 0);
        send_message(s, SPECTATOR_GAME_EVENT, 501, s->game, 7000);
        check(play(s, SPECTATOR_FRAME, 2), "no frames");
        play_for(s, SPECTATOR_FRAME, 1000000, 200); /* all that there are */
        enet_peer_disconnect_now(s->peer, 0);
        s->peer = NULL;
        check(play(s, SPECTATOR_LOST, 1), "a lost connection is not told");
        await_request(s);
        check(s->asked == 502, "the request does not name the place");
        send_message(s, SPECTATOR_CONNECT_REPLY, same ? 502 : 900, NULL, 0);
        if (same) {
            send_message(s, SPECTATOR_GAME_EVENT, 502, s->game + 7000, s->game_bytes - 7000);
            send_message(s, SPECTATOR_END_GAME, 503, NULL, 0);
        } else {
            send_message(s, SPECTATOR_GAME_EVENT, 900, s->game + 7000, 900); /* in the middle: of no use */
            send_game(s, 901, 3000, 0);
        }
        int before = s->seen[SPECTATOR_FRAME];
        check(play(s, SPECTATOR_GAME_END, 1), "the game does not end");
        check(s->seen[SPECTATOR_FRAME] == (same ? frames : before + frames) &&
                  s->seen[SPECTATOR_DAMAGED] == 0,
              "a game is not whole after the connection was lost");
    }
    /* Without a game there is nothing to go on with: what is played next is wanted from its start. */
    enet_peer_disconnect_now(s->peer, 0);
    s->peer = NULL;
    check(play(s, SPECTATOR_LOST, 2), "a lost connection is not told");
    await_request(s);
    check(s->asked == 0, "the request names a place in a game that is over");
    send_message(s, SPECTATOR_CONNECT_REPLY, 0, NULL, 0);
    check(play(s, SPECTATOR_CONNECTED, 2), "no second greeting");
}

/* As much of nothing as the line holds must not keep a poll without time from coming back. */
static void check_flood(struct stage *s)
{
    for (int i = 0; i < 5000; i++) send_text(s, "{\"type\":\"weather\"}");
    spectator_stats before, after = {0};
    for (int i = 0; i < 300 || (after.messages <= 1000 && i < PATIENCE_MS); i++) {
        serve(s);
        spectator_query(s->spectator, &before);
        (void)spectator_poll(s->spectator, 0);
        spectator_query(s->spectator, &after);
        if (after.messages - before.messages > 100) {
            check(0, "a flood holds polling up");
            return;
        }
    }
    check(after.messages > 1000, "the flood did not come");
}

static int check_spectator(const char *path)
{
    static struct stage s;
    exphil_context *context;
    FILE *file = fopen(path, "rb");
    s.game = malloc(1 << 22);
    if (!file || !s.game || exphil_context_create(NULL, &context, NULL) < 0 || !open_stage(&s, context))
        return fprintf(stderr, "hostile_check: cannot begin\n"), 1;
    s.game_bytes = fread(s.game, 1, 1 << 22, file);
    fclose(file);
    uint32_t declared =
        (uint32_t)s.game[11] << 24 | (uint32_t)s.game[12] << 16 | (uint32_t)s.game[13] << 8 | s.game[14];
    if (s.game_bytes < 10000 || declared > s.game_bytes - 15)
        return fprintf(stderr, "hostile_check: %s\n", path), 1;
    memmove(s.game, s.game + 15, declared);
    s.game_bytes = declared;
    int frames = frames_of(&s, context);
    check_silence(&s);
    check_garbage(&s, frames);
    check_games(&s, frames);
    check_return(&s, frames);
    check_flood(&s);
    spectator_destroy(s.spectator);
    if (s.peer) enet_peer_reset(s.peer);
    enet_host_destroy(s.host);
    exphil_context_destroy(context);
    free(s.game);
    if (!failures) printf("hostile: the spectator stands it\n");
    return failures != 0;
}

static int annoy_server(uint16_t port)
{
    static const char *const bad[] = {"",
                                      "{",
                                      "{\"type\":\"connect_request\"}",
                                      "{\"type\":\"connect_request\",\"cursor\":-1}",
                                      "{\"type\":\"connect_request\",\"cursor\":4611686018427387903}",
                                      "{\"type\":\"connect_request\",\"cursor\":1e30}",
                                      "{\"type\":\"game_event\",\"cursor\":0}"};
    ENetAddress address;
    ENetEvent event;
    ENetHost *host;
    enet_initialize();
    enet_address_set_host(&address, "127.0.0.1");
    address.port = port;
    for (size_t i = 0; i < 24; i++) { /* more than it has places, and none says goodbye */
        if (!(host = enet_host_create(NULL, 1, 3, 0, 0))) return 1;
        ENetPeer *peer = enet_host_connect(host, &address, 3, 0);
        if (peer && enet_host_service(host, &event, 100) > 0 && event.type == ENET_EVENT_TYPE_CONNECT) {
            const char *text = bad[i % (sizeof bad / sizeof bad[0])];
            enet_peer_send(peer, i % 3 == 2,
                           enet_packet_create(text, strlen(text), ENET_PACKET_FLAG_RELIABLE));
            if (enet_host_service(host, &event, 20) > 0 && event.type == ENET_EVENT_TYPE_RECEIVE)
                enet_packet_destroy(event.packet);
            if (i % 2) enet_peer_disconnect_now(peer, 0);
        }
        enet_host_destroy(host);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2) return check_spectator(argv[1]);
    if (argc == 3 && !strcmp(argv[1], "client")) return annoy_server((uint16_t)atoi(argv[2]));
    return fprintf(stderr, "hostile_check GAME.slp | client PORT\n"), 2;
}
