/* Start and end of a Dolphin. All that it reads and writes lies in one temporary folder, so that it neither sees nor touches the
 * settings of the person whose machine it is; it dies with this process, however that ends. */
#define _GNU_SOURCE
#include "dolphin.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

volatile sig_atomic_t dolphin_interrupted;

static int fail(struct dolphin *d, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int fail(struct dolphin *d, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(d->message, sizeof d->message, format, list);
    va_end(list);
    return DOLPHIN_FAILED;
}

static void nap(int milliseconds)
{
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    nanosleep(&time, NULL);
}

/* ---- program and folder ---- */

static int find_program(const char *name, char *path)
{
    const char *folders = getenv("PATH");
    if (!name) name = getenv("DOLPHIN");
    if (name)
        return snprintf(path, DOLPHIN_PATH, "%s", name) < DOLPHIN_PATH && access(path, X_OK) == 0 ? 0 : -1;
    for (const char *at = folders ? folders : ""; *at;) {
        int length = (int)strcspn(at, ":");
        if (snprintf(path, DOLPHIN_PATH, "%.*s/dolphin-emu-nogui", length, at) < DOLPHIN_PATH &&
            !access(path, X_OK))
            return 0;
        at += length + (at[length] == ':');
    }
    snprintf(path, DOLPHIN_PATH, "/usr/games/dolphin-emu-nogui");
    return access(path, X_OK);
}

/* One file of the user folder. */
static int put_file(struct dolphin *d, const char *name, const char *text)
{
    char path[DOLPHIN_PATH + 40];
    snprintf(path, sizeof path, "%s/%s", d->folder, name);
    FILE *file = fopen(path, "w");
    int failed = !file || fputs(text, file) < 0;
    if (file && fclose(file)) failed = 1;
    return failed ? fail(d, "%s: %s", path, strerror(errno)) : DOLPHIN_OK;
}

static int put_folder(struct dolphin *d, const char *name)
{
    char path[DOLPHIN_PATH + 40];
    snprintf(path, sizeof path, "%s/%s", d->folder, name);
    return mkdir(path, 0700) ? fail(d, "%s: %s", path, strerror(errno)) : DOLPHIN_OK;
}

/* One thread for processor and video, so that a game runs the same every time. TimingVariance: how many milliseconds Dolphin may
 * be late before it lets them go; with its 40 it would catch up by several frames at once, too fast for anybody to answer (with 1
 * or 2 it loses the beat altogether). */
static int put_settings(struct dolphin *d, double speed)
{
    char text[1024];
    int tenths = (int)(speed * 10 + 0.5);
    snprintf(text, sizeof text,
             "[Core]\nSIDevice0 = 6\nSIDevice1 = 0\nSIDevice2 = 0\nSIDevice3 = 0\nEmulationSpeed = %d.%d\n"
             "TimingVariance = %d\nCPUThread = False\nFastDiscSpeed = True\nSkipIPL = True\nSlotA = "
             "255\nSlotB = 255\n"
             "[DSP]\nBackend = No Audio Output\nDSPThread = False\n"
             "[Analytics]\nEnabled = False\nPermissionAsked = True\n"
             "[Interface]\nUsePanicHandlers = False\n[Input]\nBackgroundInput = True\n",
             tenths / 10, tenths % 10, speed < 2 ? 8 : 4);
    return put_file(d, "Config/Dolphin.ini", text);
}

static int put_controller(struct dolphin *d)
{
    return put_file(
        d, "Config/GCPadNew.ini",
        "[GCPad1]\nDevice = Pipe/0/exphil\n"
        "Buttons/A = `Button A`\nButtons/B = `Button B`\nButtons/X = `Button X`\nButtons/Y = `Button Y`\n"
        "Buttons/Z = `Button Z`\nButtons/Start = `Button START`\n"
        "D-Pad/Up = `Button D_UP`\nD-Pad/Down = `Button D_DOWN`\n"
        "D-Pad/Left = `Button D_LEFT`\nD-Pad/Right = `Button D_RIGHT`\n"
        "Main Stick/Up = `Axis MAIN Y +`\nMain Stick/Down = `Axis MAIN Y -`\n"
        "Main Stick/Left = `Axis MAIN X -`\nMain Stick/Right = `Axis MAIN X +`\n"
        "C-Stick/Up = `Axis C Y +`\nC-Stick/Down = `Axis C Y -`\n"
        "C-Stick/Left = `Axis C X -`\nC-Stick/Right = `Axis C X +`\n"
        "Triggers/L = `Button L`\nTriggers/R = `Button R`\n"
        "Triggers/L-Analog = `Axis L -+`\nTriggers/R-Analog = `Axis R -+`\n");
}

/* The pipe is there before Dolphin is: it looks only once. */
static int make_folder(struct dolphin *d, double speed)
{
    char pipe_path[DOLPHIN_PATH + 40];
    const char *temporary = getenv("TMPDIR");
    if (snprintf(d->folder, sizeof d->folder, "%s/dolphin-XXXXXX",
                 temporary && *temporary ? temporary : "/tmp") >= (int)sizeof d->folder ||
        !mkdtemp(d->folder)) {
        int error = errno;
        fail(d, "a user folder %s: %s", d->folder, strerror(error));
        d->folder[0] = 0;
        return DOLPHIN_FAILED;
    }
    if (put_folder(d, "Config") || put_folder(d, "Pipes") || put_settings(d, speed) || put_controller(d))
        return DOLPHIN_FAILED;
    snprintf(pipe_path, sizeof pipe_path, "%s/Pipes/exphil", d->folder);
    d->pad = controller_create(pipe_path, 0);
    return d->pad ? DOLPHIN_OK : fail(d, "%s: %s", pipe_path, strerror(errno));
}

static int remove_one(const char *path, const struct stat *found, int kind, struct FTW *place)
{
    (void)found, (void)kind, (void)place;
    return remove(path);
}

/* ---- the process ---- */

/* In the child. What it prints goes to a file, of which the last lines tell why it ended. */
static void become_dolphin(const struct dolphin *d, const char *program, const char *game, pid_t parent)
{
    char path[DOLPHIN_PATH + 40];
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    snprintf(path, sizeof path, "%s/output", d->folder);
    int output = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600), null = open("/dev/null", O_RDONLY);
    if (output < 0 || dup2(null, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0) _exit(126);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(126); /* it ended before the line above */
    setenv("HOME", d->folder, 1);
    setenv("XDG_RUNTIME_DIR", d->folder, 1);
    unsetenv("XDG_CONFIG_HOME"), unsetenv("XDG_CACHE_HOME"), unsetenv("XDG_DATA_HOME"), unsetenv("DISPLAY");
    execl(program, program, "-u", d->folder, "-p", "headless", "-v", "Null", "-a", "HLE", "-e", game,
          (char *)NULL);
    fprintf(stderr, "%s: %s\n", program, strerror(errno));
    _exit(127);
}

/* The last line that Dolphin said; its many lines of progress end with \r. */
static void last_words(const struct dolphin *d, char *text, int bytes)
{
    char path[DOLPHIN_PATH + 40], line[300];
    snprintf(path, sizeof path, "%s/output", d->folder);
    snprintf(text, (size_t)bytes, "nothing");
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        char *word = strrchr(line, '\r') ? strrchr(line, '\r') + 1 : line;
        word[strcspn(word, "\n")] = 0;
        if (*word) snprintf(text, (size_t)bytes, "%s", word);
    }
    if (file) fclose(file);
}

int dolphin_check(struct dolphin *d)
{
    int status;
    char words[300];
    if (dolphin_interrupted) return fail(d, "interrupted"), DOLPHIN_INTERRUPTED;
    if (d->pid <= 0) return DOLPHIN_FAILED; /* was said before */
    if (waitpid(d->pid, &status, WNOHANG) != d->pid) return DOLPHIN_OK;
    d->pid = 0;
    last_words(d, words, sizeof words);
    if (WIFSIGNALED(status))
        return fail(d, "Dolphin died of signal %d; it said last: %s", WTERMSIG(status), words);
    return fail(d, "Dolphin ended by itself with status %d; it said last: %s", WEXITSTATUS(status), words);
}

int dolphin_wait_pad(struct dolphin *d)
{
    static const exphil_pad nothing;
    for (int i = 0; i < 100 * d->patience_s; i++) {
        int status = controller_send(d->pad, &nothing);
        if (status == CONTROLLER_OK) return DOLPHIN_OK;
        if (status < 0) return fail(d, "the controller's pipe: %s", strerror(-status));
        status = dolphin_check(d);
        if (status != DOLPHIN_OK) return status;
        nap(10);
    }
    return fail(d, "Dolphin does not open the controller's pipe within %d s", d->patience_s);
}

static int wait_memory(struct dolphin *d)
{
    for (int i = 0; i < 50 * d->patience_s; i++) {
        int status = dolphin_check(d);
        if (status != DOLPHIN_OK) return status;
        status = dolphin_memory_open(d);
        if (status != 1) return status;
        nap(20);
    }
    return fail(d, "Dolphin shows no memory (/dev/shm/dolphin-emu.*) within %d s", d->patience_s);
}

int dolphin_start(struct dolphin *d, const char *program, const char *game, double speed, int patience_s)
{
    char path[DOLPHIN_PATH];
    pid_t parent = getpid();
    memset(d, 0, sizeof *d);
    d->patience_s = patience_s;
    d->poll_ns = speed > 0 && speed < 2 ? 200000 : 30000;
    if (find_program(program, path)) return fail(d, "there is no Dolphin: %s", path), DOLPHIN_MISSING;
    if (access(game, R_OK)) return fail(d, "%s: %s", game, strerror(errno));
    if (make_folder(d, speed) != DOLPHIN_OK) return dolphin_stop(d), DOLPHIN_FAILED;
    d->pid = fork();
    if (d->pid == 0) become_dolphin(d, path, game, parent);
    int status = d->pid < 0 ? fail(d, "fork: %s", strerror(errno)) : wait_memory(d);
    if (status == DOLPHIN_OK) status = dolphin_wait_pad(d);
    if (status != DOLPHIN_OK) dolphin_stop(d);
    return status;
}

static int ended(struct dolphin *d, int milliseconds)
{
    for (; milliseconds > 0; milliseconds -= 10) {
        if (waitpid(d->pid, NULL, WNOHANG) == d->pid) return 1;
        nap(10);
    }
    return 0;
}

/* The first TERM asks Dolphin to save and go, the second one says now. */
static const char *end_process(struct dolphin *d)
{
    kill(d->pid, SIGTERM);
    if (ended(d, 1000)) return "";
    kill(d->pid, SIGTERM);
    if (ended(d, 1000)) return "forced";
    kill(d->pid, SIGKILL);
    waitpid(d->pid, NULL, 0);
    return "killed";
}

const char *dolphin_stop(struct dolphin *d)
{
    const char *how = d->pid > 0 ? end_process(d) : "";
    d->pid = 0;
    dolphin_memory_close(d);
    controller_destroy(d->pad);
    d->pad = NULL;
    if (d->folder[0]) nftw(d->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    d->folder[0] = 0;
    return how;
}
