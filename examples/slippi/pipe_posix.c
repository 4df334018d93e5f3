/* A pipe's writes of up to PIPE_BUF bytes are whole or not at all, and a frame's lines are at most 400 bytes: the game never
 * sees half a frame. */
#define _POSIX_C_SOURCE 200809L
#define _DEFAULT_SOURCE /* flock */
#include "pipe.h"

#include "controller.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

const char pipe_wanted[] = "not a FIFO; name another place for the pipe";
const char pipe_no_reader[] = "nobody reads it";

struct pipe_end {
    int file; /* -1: no reader so far */
    char path[];
};

/* write(2) to a pipe whose reader is gone raises SIGPIPE in this thread: held back, and taken away again, unless there was
 * one before, which is somebody else's. */
static ssize_t write_quietly(int file, const void *data, size_t bytes)
{
    sigset_t pipe_only, before, pending;
    struct timespec now = {0, 0};
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    sigpending(&pending);
    int was_pending = sigismember(&pending, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
    ssize_t done;
    do done = write(file, data, bytes);
    while (done < 0 && errno == EINTR);
    int error = errno;
    if (done < 0 && error == EPIPE && !was_pending)
        while (sigtimedwait(&pipe_only, NULL, &now) < 0 && errno == EINTR) continue;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return done;
}

static int check_fifo(const char *path)
{
    struct stat found;
    if (mkfifo(path, 0600) == 0) return 0;
    if (errno != EEXIST || stat(path, &found) < 0) return -1;
    if (S_ISFIFO(found.st_mode)) return 0;
    errno = EINVAL;
    return -1;
}

int pipe_is_name(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 && S_ISFIFO(found.st_mode);
}

pipe_end *pipe_create(const char *path)
{
    if (check_fifo(path) < 0) return NULL;
    pipe_end *made = malloc(sizeof *made + strlen(path) + 1);
    if (!made) return NULL;
    made->file = -1;
    strcpy(made->path, path);
    return made;
}

/* One controller at a time: the commands of two would mix. 0, or an errno value. */
static int take_pipe(int file)
{
    struct stat found;
    if (fstat(file, &found) < 0) return errno;
    if (!S_ISFIFO(found.st_mode)) return EINVAL;
    if (flock(file, LOCK_EX | LOCK_NB) == 0) return 0;
    return errno == EWOULDBLOCK ? EBUSY : errno;
}

/* ENXIO says that there is no reader. */
int pipe_open(pipe_end *pipe, int *opened)
{
    if (pipe->file >= 0) return CONTROLLER_OK;
    *opened = 1;
    pipe->file = open(pipe->path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (pipe->file < 0) return errno == ENXIO ? CONTROLLER_NO_READER : -errno;
    int error = take_pipe(pipe->file);
    if (!error) return CONTROLLER_OK;
    pipe_close(pipe);
    return -error;
}

int pipe_is_open(const pipe_end *pipe)
{
    return pipe->file >= 0;
}

int pipe_lost_reader(pipe_end *pipe)
{
    struct pollfd file = {.fd = pipe->file, .events = 0};
    return poll(&file, 1, 0) == 1 && (file.revents & POLLERR);
}

int pipe_write(pipe_end *pipe, const char *text, size_t bytes)
{
    if (write_quietly(pipe->file, text, bytes) >= 0) return CONTROLLER_OK;
    if (errno == EAGAIN) return CONTROLLER_FULL;
    return errno == EPIPE ? CONTROLLER_NO_READER : -errno;
}

void pipe_close(pipe_end *pipe)
{
    if (pipe->file >= 0) close(pipe->file);
    pipe->file = -1;
}

void pipe_destroy(pipe_end *pipe)
{
    if (!pipe) return;
    pipe_close(pipe);
    free(pipe);
}
