/* Interposed names, and a seccomp filter. */
#include "traps.h"
#include "test.h"

#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

atomic_llong trap_locks, trap_mallocs;
static pthread_t watched;

bool traps_count(void)
{
    return true;
}

void traps_watch(void)
{
    watched = pthread_self();
}

static int count_and(const char *name, void *object)
{
    int (*next)(void *) = NULL;
    void *found = dlsym(RTLD_NEXT, name);
    memcpy(&next, &found, sizeof next);
    if (pthread_equal(pthread_self(), watched)) atomic_fetch_add(&trap_locks, 1);
    return next(object);
}

#define TRAP(name, type)                                                                                     \
  int name(type *object);                                                                                    \
  int name(type *object)                                                                                     \
  {                                                                                                          \
    return count_and(#name, object);                                                                         \
  }
TRAP(pthread_mutex_lock, pthread_mutex_t)
TRAP(pthread_mutex_trylock, pthread_mutex_t)
TRAP(pthread_mutex_unlock, pthread_mutex_t)
TRAP(pthread_cond_signal, pthread_cond_t)
TRAP(pthread_cond_broadcast, pthread_cond_t)
TRAP(pthread_rwlock_rdlock, pthread_rwlock_t)
TRAP(pthread_rwlock_wrlock, pthread_rwlock_t)

/* What the C library itself gives out: the allocator hook alone would not see a plain malloc. */
#ifndef EXPHIL_SANITIZE
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *pointer, size_t bytes);
void *malloc(size_t bytes);
void *calloc(size_t count, size_t bytes);
void *realloc(void *pointer, size_t bytes);
void *malloc(size_t bytes)
{
    atomic_fetch_add(&trap_mallocs, 1);
    return __libc_malloc(bytes);
}
void *calloc(size_t count, size_t bytes)
{
    atomic_fetch_add(&trap_mallocs, 1);
    return __libc_calloc(count, bytes);
}
void *realloc(void *pointer, size_t bytes)
{
    atomic_fetch_add(&trap_mallocs, 1);
    return __libc_realloc(pointer, bytes);
}
#endif

bool traps_give_up_system_calls(void)
{
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {sizeof program / sizeof program[0], program};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

void traps_call_the_system(void)
{
    (void)getppid();
}

/* What waitpid says. */
static int lived(trap_life life, void *arg)
{
    const struct rlimit no_core = {0, 0};
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        (void)setrlimit(RLIMIT_CORE, &no_core);
        _exit(life(arg));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == TRAPS_NO_FILTER)
        test_left_out("this system has no seccomp filters");
    return status;
}

void assert_quiet_life(trap_life life, void *arg)
{
    const int status = lived(life, arg);
    if (WIFSIGNALED(status)) fail_msg("ended by signal %d: a system call was made", WTERMSIG(status));
    assert_int_equal(WEXITSTATUS(status), TRAPS_FINE);
}

void assert_guilty_life(trap_life life, void *arg)
{
    const int status = lived(life, arg);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSYS);
}
