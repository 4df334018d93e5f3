#define _GNU_SOURCE /* F_SETPIPE_SZ */
#include "peer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct peer {
    int file;
};
struct peer_program {
    pid_t process;
};

const struct peer_refusal peer_refusals[] = {{"/dev/null", "a device passes for a FIFO", EINVAL},
                                             {"/nowhere/at/all", "a FIFO was made in no folder", ENOENT},
                                             {NULL, NULL, 0}};

void peer_make(const char *path)
{
    (void)mkfifo(path, 0600);
}

peer *peer_open(const char *path, size_t room)
{
    peer *p = malloc(sizeof *p);
    if (!p) return NULL;
    p->file = open(path, O_RDONLY | O_NONBLOCK);
    if (p->file >= 0 && (!room || fcntl(p->file, F_SETPIPE_SZ, (int)room) >= 0)) return p;
    peer_close(p);
    return NULL;
}

size_t peer_read(peer *p, char *text, size_t room)
{
    ssize_t done = read(p->file, text, room - 1);
    text[done > 0 ? done : 0] = '\0';
    return done > 0 ? (size_t)done : 0;
}

int peer_has_writer(const peer *p)
{
    struct pollfd file = {.fd = p->file, .events = POLLIN};
    return poll(&file, 1, 0) == 1 && !(file.revents & POLLIN) ? !(file.revents & POLLHUP) : 1;
}

void peer_close(peer *p)
{
    if (p && p->file >= 0) close(p->file);
    free(p);
}

void peer_remove(const char *path)
{
    unlink(path);
}

int peer_signal_left(void)
{
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGPIPE);
}

peer_program *peer_start(char **command)
{
    peer_program *program = malloc(sizeof *program);
    if (!program) return NULL;
    program->process = fork();
    if (program->process == 0) {
        execvp(command[0], command);
        _exit(127);
    }
    if (program->process > 0) return program;
    free(program);
    return NULL;
}

int peer_ended(peer_program *program)
{
    int status;
    if (waitpid(program->process, &status, WNOHANG) != program->process) return -1;
    free(program);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

void peer_pause(void)
{
    struct timespec little = {0, 200000};
    nanosleep(&little, NULL);
}
