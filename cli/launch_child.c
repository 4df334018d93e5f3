/* What a rank does before it is the command: streams, descriptors, environment. See launch.h. */
#include "launch.h"
#include "rank_place.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#ifdef __linux__
#  include <sys/prctl.h>
#endif

static bool set_number(const char *name, int number)
{
    char text[16];
    (void)snprintf(text, sizeof text, "%d", number);
    return setenv(name, text, 1) == 0;
}

/* A descriptor under the number that the command is told; without one it is told none. */
static bool give(int fd, int slot, const char *name)
{
    if (fd < 0) return unsetenv(name) == 0;
    return dup2(fd, slot) >= 0 && set_number(name, slot);
}

static bool set_environment(const launch_place *p)
{
    rank_place_forget();
    return set_number("EXPHIL_RANK", p->rank) && set_number("EXPHIL_RANKS", p->ranks) &&
           set_number("EXPHIL_LOCAL_RANK", p->rank) && set_number("EXPHIL_LOCAL_RANKS", p->ranks) &&
           set_number("EXPHIL_RESTART", p->start) && set_number("RANK", p->rank) &&
           set_number("WORLD_SIZE", p->ranks) && set_number("LOCAL_RANK", p->rank) &&
           set_number("LOCAL_WORLD_SIZE", p->ranks) && setenv("MASTER_ADDR", "127.0.0.1", 1) == 0 &&
           set_number("MASTER_PORT", p->port) && (!p->gpu || setenv("CUDA_VISIBLE_DEVICES", p->gpu, 1) == 0);
}

/* Nobody types for many: standard input is empty. */
static bool set_descriptors(const launch_place *p)
{
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 && dup2(p->out, STDOUT_FILENO) >= 0 &&
           dup2(p->err, STDERR_FILENO) >= 0 && give(p->id_in, p->slots[0], "EXPHIL_ID_IN") &&
           give(p->id_out, p->slots[0], "EXPHIL_ID_OUT") &&
           give(p->progress, p->slots[1], "EXPHIL_PROGRESS_OUT");
}

/* As launch found them; but who forwards signals is heard. */
static void set_signals(void)
{
    static const int ours[] = {SIGINT, SIGTERM, SIGCHLD, SIGPIPE};
    sigset_t none;
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++) (void)signal(ours[i], SIG_DFL);
    struct sigaction hangup;
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN) (void)signal(SIGHUP, SIG_DFL);
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

_Noreturn void launch_child(const launch_place *p)
{
    (void)setpgid(0, 0);
    launch_keeper_tell(p->keeper, getpid(), true);
#ifdef __linux__
    /* Should the keeper be killed as well. */
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
#endif
    if (getppid() != p->launch) _exit(1);
    if (set_descriptors(p) && set_environment(p)) {
        (void)setrlimit(RLIMIT_NOFILE, &p->files);
        set_signals();
        (void)execvp(p->command[0], p->command);
    }
    int why = errno;
    (void)!write(p->failed, &why, sizeof why);
    _exit(127);
}
