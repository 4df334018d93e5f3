/* A Dolphin of our own: started without a window in a temporary user folder, its game's memory mapped, a controller in a pipe, and
 * gone without a trace at the end. Nothing of Dolphin is changed or linked; Linux only, because of /proc and shared memory. */
#ifndef EXPHIL_DOLPHIN_H
#define EXPHIL_DOLPHIN_H

#include "../slippi/controller.h"

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

#define DOLPHIN_MEMORY_BYTES                                                                                 \
  0x01800000u /* of a GameCube: 24 MiB, at 0x80000000 and again, past the caches, at 0xC0000000 */
#define DOLPHIN_PATH 512

enum { DOLPHIN_OK = 0, DOLPHIN_MISSING = -1, DOLPHIN_FAILED = -2, DOLPHIN_INTERRUPTED = -3 };

struct dolphin {
    pid_t pid;             /* 0: not running */
    const uint8_t *memory; /* [DOLPHIN_MEMORY_BYTES], read only, changes as the game runs; NULL: none yet */
    controller *pad;       /* of player 1 */
    long poll_ns;          /* how long to sleep between two looks at the memory */
    int patience_s;        /* how long to wait for anything */
    char folder[DOLPHIN_PATH];      /* the user folder */
    char message[2 * DOLPHIN_PATH]; /* why the last call failed */
};

/* Set it from a signal handler: what is waiting gives up with DOLPHIN_INTERRUPTED. */
extern volatile sig_atomic_t dolphin_interrupted;

/* program NULL: $DOLPHIN, or dolphin-emu-nogui in $PATH or /usr/games. speed 1: as on a console; 0: as fast as can be. Returns
 * when the memory is there; the game may still be loading. On failure all is undone and d->message says why;
 * DOLPHIN_MISSING: there is no program. */
int dolphin_start(struct dolphin *d, const char *program, const char *game, double speed, int patience_s);
/* TERM, TERM again, KILL; a second each. The user folder goes too. Says in a word how it ended: "", "forced", "killed". */
const char *dolphin_stop(struct dolphin *d);

/* Bytes at an address of the console, or NULL. user: struct dolphin; the form of game_memory_fn. */
const uint8_t *dolphin_memory_at(void *user, uint32_t address, uint32_t bytes);
uint32_t dolphin_word(const struct dolphin *d, uint32_t address);
/* Sleeps until the word is another one than before. */
int dolphin_wait_word(struct dolphin *d, uint32_t address, uint32_t before, uint32_t *now);
/* Waits for the first reader of the pipe, so that no press is lost. */
int dolphin_wait_pad(struct dolphin *d);
/* DOLPHIN_OK while it runs, else the reason in d->message. */
int dolphin_check(struct dolphin *d);

/* For dolphin_start. Maps the memory of process d->pid: DOLPHIN_OK, DOLPHIN_FAILED, or 1: it has none yet. */
int dolphin_memory_open(struct dolphin *d);
void dolphin_memory_close(struct dolphin *d);

#endif
