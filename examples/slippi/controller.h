/* Writes controllers into a named pipe of Dolphin: `PRESS A`, `SET MAIN 0.815945 0.500000`, a line each.
 *
 * Values are those that reach the game. Dolphin makes a stick value v the byte floor(254 (v - 0.5)), and Melee takes 80 of it for
 * a full stick; a trigger becomes floor(255 v), of which Melee takes 140 for a full press. So a stick at k/80, as recorded games
 * and the library's codecs have it, is written as 0.5 + (k + 1/4) / 254, and comes back as k/80 exactly: neither cutting nor
 * rounding the byte changes it. (The plain (1 + x) / 2 of other games would make a half-tilted stick 63 of 80.) */
#ifndef CONTROLLER_H
#define CONTROLLER_H

#include <exphil/exphil.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct controller controller;

enum {
    CONTROLLER_OK = 0,
    CONTROLLER_NO_READER = 1, /* nobody has opened the pipe, or who had is gone; the next send tries again */
    CONTROLLER_FULL = 2 /* the reader does not read; nothing was written, the next send makes up for it */
};                      /* negative: -errno */

#define CONTROLLER_TEXT_MAX 512

/* Makes the FIFO when it is not there (Dolphin looks for it as it starts; on Windows Dolphin makes the pipe, and until then there
 * is no reader). NULL and errno on failure; EINVAL: path is something else than a FIFO, on Windows no name like
 * \\.\pipe\slippibot1; EBUSY: another controller writes to it. flush: end every frame with FLUSH, for a Dolphin with blocking
 * pipes. */
controller *controller_create(const char *path, int flush);
/* Never waits, never raises SIGPIPE. One write of whole lines, only of what changed since the last one that was written;
 * a reader that comes after a send that found none gets everything. -EINVAL: a value is not finite; -EBUSY: another controller
 * was there first. */
int controller_send(controller *c, const exphil_pad *pad);
/* The next send says everything: the reader may be another one, as after a restart of the game, which the pipe does not show. */
void controller_forget(controller *c);
/* Lets go of all buttons, if there is a reader, and closes. The FIFO stays. */
void controller_destroy(controller *c);

/* The lines of one frame: bytes written, without a terminator. before NULL: everything is said. */
size_t controller_format(const exphil_pad *before, const exphil_pad *pad, int flush,
                         char text[CONTROLLER_TEXT_MAX]);

#ifdef __cplusplus
}
#endif
#endif
