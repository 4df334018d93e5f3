/* The writing end of a named pipe that a game reads: what controller.c wants of a system. pipe_posix.c or pipe_windows.c.
 *
 * POSIX: a FIFO in the file system. Either side makes it, it stays, and whoever opens it reads or writes.
 * Windows: Slippi's Dolphin makes four as it starts, \\.\pipe\slippibot1 to \\.\pipe\slippibot4 (CreateNamedPipe, inbound, bytes,
 * one instance of 256 bytes each), and they go with it. The bot is the client (CreateFile, writing only), as libmelee is; see
 * README.md for where this was read. */
#ifndef SLIPPI_PIPE_H
#define SLIPPI_PIPE_H

#include <stddef.h>

typedef struct pipe_end pipe_end;

/* What to say of a path that is none. */
extern const char pipe_wanted[];
/* What to say of one that nobody reads. */
extern const char pipe_no_reader[];

/* Statuses are those of controller.h. */

/* Where the writer makes pipes, it is there afterwards. NULL and errno; EINVAL: path is no pipe. */
pipe_end *pipe_create(const char *path);
/* Does not wait. Where it was not open before, *opened becomes 1. */
int pipe_open(pipe_end *pipe, int *opened);
int pipe_is_open(const pipe_end *pipe);
/* All of text, which the reader gets whole, or nothing of it. Never waits, raises no signal. */
int pipe_write(pipe_end *pipe, const char *text, size_t bytes);
/* Known without a write, so that what did not change is not taken for what arrived. */
int pipe_lost_reader(pipe_end *pipe);
void pipe_close(pipe_end *pipe);
void pipe_destroy(pipe_end *pipe);
/* path names a pipe, whether or not there is one now. */
int pipe_is_name(const char *path);
#endif
