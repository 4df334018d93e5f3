/* The POSIX half of system.h. */
#ifndef EXAMPLES_SYSTEM_POSIX_H
#define EXAMPLES_SYSTEM_POSIX_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static inline void system_arguments(int *argc, char ***argv)
{
    (void)argc, (void)argv;
}

static inline int64_t system_now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static inline void system_wait_until(int64_t ns)
{
#ifdef __APPLE__ /* it cannot sleep until a time */
    for (int64_t left = ns - system_now_ns(); left > 0; left = ns - system_now_ns()) {
        struct timespec time = {.tv_sec = (time_t)(left / 1000000000), .tv_nsec = (long)(left % 1000000000)};
        nanosleep(&time, NULL);
    }
#else
    struct timespec time = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL)) continue;
#endif
}

static inline int system_can_write(const char *path, const char *beside)
{
    struct stat found;
    if (!stat(path, &found) && S_ISDIR(found.st_mode)) return errno = EISDIR, 0;
    int file = open(beside, O_WRONLY | O_CREAT | O_EXCL, 0600);
    return file >= 0 && !close(file) && !unlink(beside);
}

static inline int system_list(const char *path, const char *ending, char ***names)
{
    struct dirent **entries;
    int found = scandir(path, &entries, NULL, alphasort), count = 0;
    if (found < 0) return -1;
    char **list = calloc((size_t)found + 1, sizeof *list);
    for (int i = 0; i < found; i++) {
        const char *name = entries[i]->d_name;
        size_t length = strlen(name), last = strlen(ending);
        if (list && length > last && !strcmp(name + length - last, ending) && (list[count] = strdup(name)))
            count++;
        free(entries[i]);
    }
    free(entries);
    *names = list;
    return count;
}
#endif
