/* One run at a time writes OUT: a lock that ends with its process, however that ends. */
#include "commands.h"
#include "log_write.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char path[PATH_MAX];
static int held = -1;

/* What holds something is a file of somebody's, which unlocking would remove. */
static bool is_lock(void)
{
    struct stat of;
    if (fstat(held, &of) == 0 && S_ISREG(of.st_mode) && of.st_size == 0) return true;
    fprintf(stderr, "exphil: %s is no lock of a run: it holds something; rename it\n", path);
    (void)close(held);
    held = -1;
    return false;
}

bool run_lock(const char *out)
{
    (void)snprintf(path, sizeof path, "%s.lock", out);
    held = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (held < 0) return complain_of_file(path);
    if (!is_lock()) return false;
    if (flock(held, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
        return true; /* not every file system has locks */
    fprintf(stderr, "exphil: --out %s: another run writes it at this moment\n", out);
    (void)close(held);
    held = -1;
    return false;
}

bool run_lock_take_over(const char *out)
{
    const struct timespec moment = {0, 10000000};
    enum { MOMENTS = 1000 };
    (void)snprintf(path, sizeof path, "%s.lock", out);
    held = open(path, O_RDWR | O_CLOEXEC);
    if (held < 0) return complain_of_file(path);
    for (int i = 0; i < MOMENTS; i++) {
        if (flock(held, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return true;
        nanosleep(&moment, NULL);
    }
    fprintf(stderr, "exphil: --out %s: its lock is still held\n", out);
    (void)close(held);
    held = -1;
    return false;
}

void run_unlock(void)
{
    if (held < 0) return;
    (void)unlink(path);
    (void)close(held);
    held = -1;
}
