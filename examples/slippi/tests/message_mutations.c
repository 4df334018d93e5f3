/* Messages that nobody should send: valid ones, changed at random a million times, are read, and what was read is fed to the
 * live reader in pieces of any size. Nothing must crash (run it under sanitizers); what is read must keep its bounds.
 *   message_mutations ROUNDS [SEED] */
#include "spectator_message.h"

#include <exphil/slp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 1;

/* xorshift64*: Vigna 2016. */
static uint32_t draw(uint32_t below)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (uint32_t)((state * 0x2545F4914F6CDD1Du) >> 32) % below;
}

static const char *const seeds[] = {
    "{\"type\":\"connect_reply\",\"nick\":\"a\",\"version\":\"3.19.1\",\"cursor\":12}",
    "{\"type\":\"start_game\",\"cursor\":0,\"next_cursor\":1}",
    "{\"type\":\"end_game\",\"cursor\":9,\"next_cursor\":10,\"dolphin_closed\":true}",
    "{\"type\":\"menu_event\",\"payload\":\"PgACAAAA\"}",
    "{\"type\":\"game_event\",\"cursor\":1,\"next_cursor\":2,\"payload\":\"NRY2Avg3AEA4AFQ=\"}",
    "{\"type\":\"game_event\",\"cursor\":9223372036854775807,\"next_cursor\":-1,\"payload\":\"\"}",
    "{\"type\":[],\"cursor\":1e308,\"payload\":{\"a\":[[[[[[[[[[]]]]]]]]]]}}",
    "[1,2,3]",
    "",
    "null",
    "{\"type\":\"\\u0000\",\"type\":\"\\ud800\"}",
};
static const char *const pieces[] = {"\"type\":",  "\"cursor\":", "\"payload\":",
                                     "game_event", "=",           "==",
                                     "\\u0000",    "-1",          "99999999999999999999",
                                     "1.5",        "null",        "{",
                                     "}",          "[",           "]",
                                     "\"",         "NRY2",        "PAAA"};

static size_t mutate(char *text, size_t bytes, size_t room)
{
    for (uint32_t n = draw(6); n > 0; n--) {
        size_t at = bytes ? draw((uint32_t)bytes) : 0;
        const char *piece = pieces[draw(sizeof pieces / sizeof pieces[0])];
        size_t length = strlen(piece), cut = bytes ? draw((uint32_t)(bytes - at)) % 16 : 0;
        switch (draw(4)) {
        case 0:
            if (bytes) text[at] = (char)draw(256);
            break;
        case 1:
            memmove(text + at, text + at + cut, bytes - at - cut);
            bytes -= cut;
            break;
        case 2:
            if (bytes + length > room) break;
            memmove(text + at + length, text + at, bytes - at);
            memcpy(text + at, piece, length);
            bytes += length;
            break;
        default:
            if (bytes) text[at] = (char)(text[at] ^ 1 << draw(8));
        }
    }
    return bytes;
}

/* A whole small game in one payload, so that what is changed in it reaches the reader of events. */
static char *game_message(void)
{
    static uint8_t events[4096];
    size_t at = 0;
    static const uint16_t sizes[][2] = {{0x36, 760}, {0x37, 64}, {0x38, 84}, {0x39, 6},
                                        {0x3A, 12},  {0x3B, 44}, {0x3C, 8}};
    events[at++] = 0x35;
    events[at++] = 22;
    for (size_t i = 0; i < 7; i++) {
        events[at++] = (uint8_t)sizes[i][0];
        events[at++] = (uint8_t)(sizes[i][1] >> 8);
        events[at++] = (uint8_t)sizes[i][1];
    }
    static const uint8_t order[] = {0, 4, 1, 1, 5, 2, 2, 6, 3};
    for (size_t i = 0; i < sizeof order; i++) {
        events[at] = (uint8_t)sizes[order[i]][0];
        if (order[i] == 1 || order[i] == 2) events[at + 5] = (uint8_t)(i % 2);
        if (order[i] == 0) events[at + 1] = 3, events[at + 2] = 16;
        at += 1u + sizes[order[i]][1];
    }
    return spectator_message_write(SPECTATOR_GAME_EVENT, 1, events, at);
}

static int feed(exphil_slp_stream *stream, const uint8_t *payload, size_t bytes)
{
    size_t at = 0;
    if (draw(8) == 0 && exphil_slp_stream_reset(stream, NULL) < 0) return 1;
    while (at < bytes) {
        size_t piece = 1 + draw((uint32_t)(bytes - at)), used = 0;
        exphil_status status = exphil_slp_stream_push(stream, payload + at, piece, &used, NULL);
        if (used > piece) return fprintf(stderr, "message_mutations: more used than given\n"), 1;
        at += used;
        if (status == EXPHIL_OK) {
            exphil_melee_frame frame = EXPHIL_MELEE_FRAME_INIT;
            for (int port = 1; port <= 4; port++)
                if (exphil_slp_stream_melee_frame(stream, port, 0, &frame, NULL) >= 0 &&
                    frame.own_port != port)
                    return 1;
        } else if (status != EXPHIL_AGAIN) {
            return exphil_slp_stream_reset(stream, NULL) < 0;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    static uint8_t payload[SPECTATOR_PAYLOAD_MAX];
    static char text[16384];
    exphil_context *context;
    exphil_slp_stream *stream;
    char *game = game_message();
    long rounds = argc > 1 ? atol(argv[1]) : 1000, read = 0;
    if (argc > 2) state = strtoull(argv[2], NULL, 10) | 1;
    if (!game || exphil_context_create(NULL, &context, NULL) < 0 ||
        exphil_slp_stream_create(context, &stream, NULL) < 0)
        return 1;
    for (long round = 0; round < rounds; round++) {
        size_t which = draw(sizeof seeds / sizeof seeds[0] + 4);
        const char *seed = which < sizeof seeds / sizeof seeds[0] ? seeds[which] : game;
        size_t bytes = strlen(seed);
        memcpy(text, seed, bytes);
        bytes = mutate(text, bytes, sizeof text);
        /* A block of exactly that size: reading behind it is seen. */
        char *block = malloc(bytes ? bytes : 1);
        if (!block) return 1;
        memcpy(block, text, bytes);
        spectator_message message;
        const char *wrong = spectator_message_read(block, bytes, &message, payload);
        free(block);
        if (wrong) continue;
        read++;
        if (message.payload_bytes > sizeof payload || message.cursor < -1 || message.next_cursor < -1 ||
            memchr(message.version, '\0', sizeof message.version) == NULL ||
            feed(stream, payload, message.payload_bytes))
            return fprintf(stderr, "message_mutations: round %ld\n", round), 1;
    }
    exphil_slp_stream_destroy(stream);
    exphil_context_destroy(context);
    free(game);
    printf("messages: %ld of %ld changed ones could be read\n", read, rounds);
    return read < rounds / 100 || read == rounds;
}
