/* Processes of POSIX. */
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORDS = 32 };

bool test_emulated(void)
{
    const char *emulator = getenv("EXPHIL_EMULATOR");
    return emulator && *emulator;
}

/* The words of the emulator, cut at blanks in `text`. */
static int emulator_words(char *text, size_t bytes, char **words)
{
    int count = 0;
    char *rest = NULL;
    if (!test_emulated()) return 0;
    snprintf(text, bytes, "%s", getenv("EXPHIL_EMULATOR"));
    for (char *word = strtok_r(text, " ", &rest); word && count < WORDS / 2;
         word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    return count;
}

test_process test_start_self(const char *const *arguments)
{
    char self[512] = {0}, text[1024], *words[WORDS + 1] = {NULL};
    int count = emulator_words(text, sizeof text, words);
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    words[count++] = self;
    for (int i = 0; arguments[i]; i++) {
        assert_true(count < WORDS);
        words[count++] = (char *)(uintptr_t)arguments[i];
    }
    pid_t child = fork();
    if (child == 0) {
        execvp(words[0], words);
        _exit(127);
    }
    assert_true(child > 0);
    return child;
}

int test_wait(test_process process)
{
    int status = -1;
    assert_int_equal(waitpid((pid_t)process, &status, 0), (pid_t)process);
    return WIFEXITED(status) ? WEXITSTATUS(status) : TEST_KILLED;
}

void test_kill(test_process process)
{
    assert_int_equal(kill((pid_t)process, SIGKILL), 0);
}

void test_die(void)
{
    kill(getpid(), SIGKILL);
}

int test_in_copy(int (*fn)(void *arg), void *arg)
{
    pid_t child = fork();
    if (child == 0) _exit(fn(arg));
    assert_true(child > 0);
    return test_wait(child);
}

void test_setenv(const char *name, const char *value)
{
    assert_int_equal(value ? setenv(name, value, 1) : unsetenv(name), 0);
}

void test_end_after(int seconds)
{
    alarm((unsigned)seconds);
}

/* Bytes: of addresses, and of memory. */
static bool statm(size_t bytes[2])
{
    unsigned long pages[2] = {0};
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file) return false;
    const bool found = fscanf(file, "%lu %lu", &pages[0], &pages[1]) == 2;
    fclose(file);
    for (int i = 0; i < 2; i++) bytes[i] = pages[i] * test_page_bytes();
    return found;
}

int64_t test_resident_bytes(void)
{
    size_t bytes[2];
    return statm(bytes) ? (int64_t)bytes[1] : -1;
}

bool test_limit_memory(size_t more_bytes)
{
    size_t bytes[2];
    if (!statm(bytes)) return false;
    const struct rlimit limit = {bytes[0] + more_bytes, bytes[0] + more_bytes};
    return setrlimit(RLIMIT_AS, &limit) == 0;
}

static int64_t ns_of(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int64_t test_clock_ns(void)
{
    return ns_of(CLOCK_MONOTONIC);
}

int64_t test_processor_ns(void)
{
    return ns_of(CLOCK_PROCESS_CPUTIME_ID);
}

bool test_signals_open(void)
{
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    return !sigismember(&blocked, SIGUSR1);
}

bool test_has_signals(void)
{
    return true;
}
