/* The other side of the pipe, as the game is, and programs that a check starts. peer_posix.c or peer_windows.c. */
#ifndef PEER_H
#define PEER_H

#include <stddef.h>

typedef struct peer peer;
typedef struct peer_program peer_program;

/* A FIFO, where somebody must make one before it can be opened. */
void peer_make(const char *path);
/* Opens the pipe for reading; where the reader makes pipes, makes it as Slippi's Dolphin does. room: bytes that it takes at
 * least before it is full; 0: as many as the game's does. NULL: it cannot be had. */
peer *peer_open(const char *path, size_t room);
/* What has been written, without waiting: bytes, a terminator behind them. Whoever wrote and is gone makes place for another. */
size_t peer_read(peer *p, char *text, size_t room);
/* Somebody writes: has opened the pipe, and not closed it, or what was written has not been read. */
int peer_has_writer(const peer *p);
void peer_close(peer *p);
/* A pipe of that name goes, if it stays by itself. */
void peer_remove(const char *path);

/* Paths that are no pipe: what creation must say. The last has none. beside: a file that is there, or NULL. */
struct peer_refusal {
    const char *path, *what;
    int error;
};
extern const struct peer_refusal peer_refusals[];
/* A signal of a broken pipe was left to whoever runs next. */
int peer_signal_left(void);

/* command is a list of words in UTF-8, NULL behind it. NULL: it does not start. */
peer_program *peer_start(char **command);
/* Its exit status when it has ended, then it is gone; -1: not yet. */
int peer_ended(peer_program *program);
void peer_pause(void); /* a fifth of a millisecond, or what the system has */
#endif
