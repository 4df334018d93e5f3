/* The keeper: ends the ranks when launch was killed, so that no process of theirs keeps a GPU. Each group tells the keeper of
 * itself before it is the command; launch tells it of groups that are done. The end of launch, whatever it was, is the end
 * of that pipe. See launch.h. */
#include "commands.h"
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct notice {
    pid_t group;
    int there;
} notice;

/* Of two starts at most. */
static pid_t groups[2 * LAUNCH_RANKS_MOST];
static int count;

static void note(const notice *n)
{
    int i = 0;
    while (i < count && groups[i] != n->group) i++;
    if (n->there && i == count && count < (int)(sizeof groups / sizeof groups[0]))
        groups[count++] = n->group;
    else if (!n->there && i < count)
        groups[i] = groups[--count];
}

/* Ended groups go. */
static void forget_ended(void)
{
    for (int i = count - 1; i >= 0; i--)
        if (!launch_group_there(groups[i])) groups[i] = groups[--count];
}

static void end_groups(double grace)
{
    int64_t until = now_ns() + (int64_t)(grace * 1e9);
    for (int i = 0; i < count; i++) launch_signal(groups[i], SIGTERM);
    for (forget_ended(); count > 0 && now_ns() < until; forget_ended()) (void)poll(NULL, 0, 20);
    for (int i = 0; i < count; i++) (void)kill(-groups[i], SIGKILL);
}

/* It is in no one's group, has nobody's streams, and hears no signal but SIGKILL. */
static _Noreturn void keep_watch(int from, double grace)
{
    notice n;
    int nothing = open("/dev/null", O_RDWR);
    (void)setsid();
    for (int stream = 0; nothing >= 0 && stream <= 2; stream++) (void)dup2(nothing, stream);
    for (;;) {
        ssize_t length = read(from, &n, sizeof n);
        if (length == (ssize_t)sizeof n)
            note(&n);
        else if (length >= 0 || errno != EINTR)
            break;
    }
    end_groups(grace);
    _exit(0);
}

int launch_keeper_begin(double grace)
{
    int ends[2];
    sigset_t all, before;
    if (!launch_pipe(ends)) {
        fprintf(stderr, "exphil: launch: a pipe: %s\n", strerror(errno));
        return -1;
    }
    sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, &before);
    pid_t keeper = fork();
    if (keeper == 0) {
        (void)close(ends[1]);
        keep_watch(ends[0], grace);
    }
    int why = errno;
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    (void)close(ends[0]);
    if (keeper > 0) return ends[1];
    (void)close(ends[1]);
    fprintf(stderr, "exphil: launch: a process: %s\n", strerror(why));
    return -1;
}

void launch_keeper_tell(int keeper, pid_t group, bool there)
{
    notice n = {group, there};
    while (write(keeper, &n, sizeof n) < 0 && errno == EINTR) continue;
}
