/* Watches a game of Slippi Dolphin while it is played: a client of its spectator stream (ENet over UDP 51441, one channel, JSON),
 * which gives each frame as soon as the game has sent it. Frames that netplay simulates again come again.
 *
 * A lost connection is made anew by itself, and goes on behind the last message that arrived. The other side is not trusted:
 * what it sends can cost the game that it is part of, nothing else. One thread at a time. */
#ifndef SPECTATOR_H
#define SPECTATOR_H

#include <exphil/slp.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SPECTATOR_PORT 51441

typedef struct spectator spectator;

typedef struct spectator_config {
    const char *host; /* NULL: 127.0.0.1 */
    uint16_t port;    /* 0: SPECTATOR_PORT */
    uint16_t reserved;
    int32_t connect_ms; /* an attempt that takes longer is given up; 0 = 3000 */
    int32_t retry_ms;   /* between attempts; 0 = 500 */
} spectator_config;

typedef enum spectator_event {
    SPECTATOR_FAILED = -1, /* out of memory or sockets; spectator_trouble says it */
    SPECTATOR_NOTHING = 0, /* the time is over */
    SPECTATOR_CONNECTED,   /* the game has answered */
    SPECTATOR_LOST,        /* no connection any more; polling makes it again */
    SPECTATOR_GAME_BEGIN,  /* the next frame is the first of a game */
    SPECTATOR_FRAME,       /* a frame is complete: see spectator_stream */
    SPECTATOR_GAME_END,    /* of the game that had begun */
    SPECTATOR_MENU,        /* see spectator_menu */
    SPECTATOR_DAMAGED /* something unusable came, spectator_trouble says what. In a game: a part is missing, and
                                    nothing comes before the next one begins, unless a SPECTATOR_GAME_BEGIN says so */
} spectator_event;

typedef struct spectator_stats {
    uint64_t messages, damaged, frames, connections;
} spectator_stats;

/* config may be NULL. Nothing is sent before the first poll. */
spectator *spectator_create(exphil_context *context, const spectator_config *config, exphil_error *error);
void spectator_destroy(spectator *s);
/* What happens next: waits timeout_ms at most, not at all with 0. */
spectator_event spectator_poll(spectator *s, int32_t timeout_ms);
/* After SPECTATOR_FRAME: exphil_slp_stream_frame, _player, _melee_frame of this one are good until the next poll. */
exphil_slp_stream *spectator_stream(spectator *s);
/* After SPECTATOR_MENU: the bytes of one menu event (0x3E first), until the next poll. */
const uint8_t *spectator_menu(const spectator *s, size_t *bytes);
/* One line about the last SPECTATOR_DAMAGED, _LOST or _FAILED. */
const char *spectator_trouble(const spectator *s);
/* Of the game's recorder, as it says itself: "3.19.1"; empty before SPECTATOR_CONNECTED. */
const char *spectator_version(const spectator *s);
void spectator_query(const spectator *s, spectator_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
