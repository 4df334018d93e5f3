/* A pipe's writes of up to PIPE_BUF bytes are whole or not at all, and a frame's lines are at most 400 bytes: the game never
 * sees half a frame. */
#define _POSIX_C_SOURCE 200809L
#define _DEFAULT_SOURCE /* flock */
#include "controller.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct controller {
    char *path;
    int file; /* -1: no reader so far */
    int flush;
    int said; /* sent is what the reader knows */
    exphil_pad sent;
};

static const struct {
    uint32_t bit;
    const char *name;
} buttons[] = {{EXPHIL_PAD_A, "A"},           {EXPHIL_PAD_B, "B"},           {EXPHIL_PAD_X, "X"},
               {EXPHIL_PAD_Y, "Y"},           {EXPHIL_PAD_Z, "Z"},           {EXPHIL_PAD_L, "L"},
               {EXPHIL_PAD_R, "R"},           {EXPHIL_PAD_START, "START"},   {EXPHIL_PAD_D_UP, "D_UP"},
               {EXPHIL_PAD_D_DOWN, "D_DOWN"}, {EXPHIL_PAD_D_LEFT, "D_LEFT"}, {EXPHIL_PAD_D_RIGHT, "D_RIGHT"}};

/* Millionths, written without printf's floats: a host's locale may have a decimal comma. */
static long stick_millionths(float value)
{
    double k = round(80.0 * fmin(fmax((double)value, -1), 1));
    return k == 0 ? 500000 : lround(1e6 * (0.5 + (k + 0.25) / 254));
}

static long trigger_millionths(float value)
{
    double k = round(140.0 * fmin(fmax((double)value, 0), 1));
    return k == 0 ? 0 : lround(1e6 * (k + 0.25) / 255);
}

static size_t put_stick(char *text, size_t room, const char *name, float x, float y)
{
    return (size_t)snprintf(text, room, "SET %s 0.%06ld 0.%06ld\n", name, stick_millionths(x),
                            stick_millionths(y));
}

size_t controller_format(const exphil_pad *before, const exphil_pad *pad, int flush,
                         char text[CONTROLLER_TEXT_MAX])
{
    size_t used = 0, room = CONTROLLER_TEXT_MAX;
    for (size_t i = 0; i < sizeof buttons / sizeof buttons[0]; i++)
        if (!before || (before->buttons ^ pad->buttons) & buttons[i].bit)
            used += (size_t)snprintf(text + used, room - used, "%s %s\n",
                                     pad->buttons & buttons[i].bit ? "PRESS" : "RELEASE", buttons[i].name);
    if (!before || before->main_x != pad->main_x || before->main_y != pad->main_y)
        used += put_stick(text + used, room - used, "MAIN", pad->main_x, pad->main_y);
    if (!before || before->c_x != pad->c_x || before->c_y != pad->c_y)
        used += put_stick(text + used, room - used, "C", pad->c_x, pad->c_y);
    if (!before || before->trigger != pad->trigger)
        used +=
            (size_t)snprintf(text + used, room - used, "SET L 0.%06ld\n", trigger_millionths(pad->trigger));
    if (flush) used += (size_t)snprintf(text + used, room - used, "FLUSH\n");
    return used;
}

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

/* One controller at a time: the commands of two would mix. 0, or an errno value. */
static int take_pipe(int file)
{
    struct stat found;
    if (fstat(file, &found) < 0) return errno;
    if (!S_ISFIFO(found.st_mode)) return EINVAL;
    if (flock(file, LOCK_EX | LOCK_NB) == 0) return 0;
    return errno == EWOULDBLOCK ? EBUSY : errno;
}

/* Does not wait for a reader: ENXIO says that there is none. */
static int open_pipe(controller *c)
{
    if (c->file >= 0) return CONTROLLER_OK;
    c->said = 0;
    c->file = open(c->path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (c->file < 0) return errno == ENXIO ? CONTROLLER_NO_READER : -errno;
    int error = take_pipe(c->file);
    if (!error) return CONTROLLER_OK;
    close(c->file);
    c->file = -1;
    return -error;
}

controller *controller_create(const char *path, int flush)
{
    controller *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->file = -1;
    c->flush = flush;
    int status = check_fifo(path) < 0 || !(c->path = strdup(path)) ? -errno : open_pipe(c);
    if (status >= 0) return c;
    controller_destroy(c);
    errno = -status;
    return NULL;
}

void controller_forget(controller *c)
{
    c->said = 0;
}

/* Nobody reads: known without a write, so that an unchanged pad is not taken for one that arrived. */
static int reader_is_gone(const controller *c)
{
    struct pollfd pipe = {.fd = c->file, .events = 0};
    return poll(&pipe, 1, 0) == 1 && (pipe.revents & POLLERR);
}

static int lose_reader(controller *c, int status)
{
    close(c->file);
    c->file = -1;
    return status;
}

static int is_finite(const exphil_pad *pad)
{
    return isfinite(pad->main_x) && isfinite(pad->main_y) && isfinite(pad->c_x) && isfinite(pad->c_y) &&
           isfinite(pad->trigger);
}

int controller_send(controller *c, const exphil_pad *pad)
{
    char text[CONTROLLER_TEXT_MAX];
    if (!is_finite(pad)) return -EINVAL;
    int status = open_pipe(c);
    if (status != CONTROLLER_OK) return status;
    if (reader_is_gone(c)) return lose_reader(c, CONTROLLER_NO_READER);
    size_t bytes = controller_format(c->said ? &c->sent : NULL, pad, c->flush, text);
    if (bytes && write_quietly(c->file, text, bytes) < 0) {
        if (errno == EAGAIN) return CONTROLLER_FULL;
        return lose_reader(c, errno == EPIPE ? CONTROLLER_NO_READER : -errno);
    }
    c->sent = *pad;
    c->said = 1;
    return CONTROLLER_OK;
}

void controller_destroy(controller *c)
{
    static const exphil_pad nothing;
    if (!c) return;
    if (c->file >= 0 && c->said) (void)controller_send(c, &nothing);
    if (c->file >= 0) close(c->file);
    free(c->path);
    free(c);
}
