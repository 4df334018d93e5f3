#define _POSIX_C_SOURCE 200809L
#include "system.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <time.h>

static void (*on_stop)(void);

static void stop(int number)
{
    (void)number;
    on_stop();
}

void system_arguments(int *argc, char ***argv)
{
    (void)argc, (void)argv;
}

void system_hold_streams(void)
{
    for (int stream = 0; stream <= 2; stream++)
        if (fcntl(stream, F_GETFD) < 0 && open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY) < 0) return;
}

void system_on_stop(void (*called)(void))
{
    struct sigaction action = {.sa_handler = stop};
    on_stop = called;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

int64_t system_now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

FILE *system_open(const char *path, const char *mode)
{
    return fopen(path, mode);
}

void system_socket_forget(void)
{
    errno = 0;
}

const char *system_socket_why(void)
{
    return errno ? strerror(errno) : "no memory";
}
