/* Ranks: started, watched, ended, started again. See launch.h.
 *
 * A start ends when every rank has ended and no process of their groups is left. It has at most two ends of its own: the first
 * bad end of a rank, after which the others get SIGTERM and, after the grace, SIGKILL; or a signal to launch, which the ranks get
 * too, and after which they have all the time that they want, until a second one. */
#include "commands.h"
#include "launch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#  include <sys/prctl.h>
#endif

/* Bytes of an id; descriptors of a rank, and of all else; how often a group that has no leader is looked at. */
enum { ID_MOST = 4096, RANK_FILES = 4, OTHER_FILES = 64, TICK_MS = 20, TRY_AGAIN = 75 };

typedef struct rank {
    pid_t group; /* its process, and the group of that; 0: it was not started */
    bool ended;
    int status; /* as waitpid has it */
    int id;     /* where it gets the id; -1: done */
    launch_stream stream[LAUNCH_STREAMS];
} rank;

typedef struct run {
    const launch_options *o;
    rank ranks[LAUNCH_RANKS_MOST];
    int count;                   /* ranks of this start */
    int gpus[LAUNCH_RANKS_MOST]; /* of the options', those that are still used: rank r has gpus[r] */
    int gpu_count;
    int start;
    int id, progress; /* from rank 0; -1: closed */
    bool id_given;
    int keeper, slots[2];
    struct rlimit files;
    bool ending, killed, told; /* SIGTERM was sent, SIGKILL; of processes without a leader was told */
    int64_t until;             /* then SIGKILL */
    int stop;                  /* the signal that asked for an end; 0: none */
    int bad, bad_status;       /* rank of the first bad end, -1: none; as waitpid has it */
    int unable;                /* exit status when the command cannot be run; 0: it can */
    bool progressed;
    int blamed; /* rank that the start before failed by, without a checkpoint since; -1: none */
} run;

/* ---- signals to launch ---------------------------------------------------------------------------------------- */

static volatile sig_atomic_t asked, taken, again, pause_asked;
static int wake[2] = {-1, -1};

/* Two that come at once, as those of timeout(1), are one. */
static void on_signal(int which)
{
    int before = errno;
    if (which == SIGTSTP)
        pause_asked = 1;
    else if (which != SIGCHLD && taken)
        again = 1;
    else if (which != SIGCHLD && !asked)
        asked = which;
    (void)!write(wake[1], "", 1);
    errno = before;
}

static bool catch_signals(void)
{
    static const int ours[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGTSTP};
    struct sigaction action = {.sa_handler = on_signal}, before;
    sigset_t heard;
    sigemptyset(&action.sa_mask);
    sigemptyset(&heard);
    if (!launch_pipe(wake)) return complain_of_file("launch: a pipe");
    for (int i = 0; i < 2; i++) (void)fcntl(wake[i], F_SETFL, O_NONBLOCK);
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++) {
        bool ignored = sigaction(ours[i], NULL, &before) == 0 && before.sa_handler == SIG_IGN;
        if (!ignored || (ours[i] != SIGHUP && ours[i] != SIGTSTP)) (void)sigaction(ours[i], &action, NULL);
        sigaddset(&heard, ours[i]);
    }
    (void)signal(SIGPIPE, SIG_IGN);
    (void)sigprocmask(SIG_UNBLOCK, &heard, NULL);
    return true;
}

/* ---- what is shared ------------------------------------------------------------------------------------------- */

bool launch_pipe(int ends[2])
{
    if (pipe(ends) < 0) return false;
    for (int i = 0; i < 2; i++) (void)fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    return true;
}

void launch_close(int *fd)
{
    if (*fd >= 0) (void)close(*fd);
    *fd = -1;
}

bool launch_group_there(pid_t group)
{
    return kill(-group, 0) == 0 || errno == EPERM;
}

void launch_signal(pid_t group, int which)
{
    if (kill(-group, which) == 0) (void)kill(-group, SIGCONT);
}

static void signal_all(const run *r, int which)
{
    for (int i = 0; i < r->count; i++)
        if (r->ranks[i].group) launch_signal(r->ranks[i].group, which);
}

/* ---- beginning ------------------------------------------------------------------------------------------------ */

/* Commands find their descriptors under the two least numbers that are free now: nobody else gets them. */
static bool reserve(run *r)
{
    for (int i = 0; i < 2; i++)
        if ((r->slots[i] = open("/dev/null", O_RDWR | O_CLOEXEC)) < 0) return complain_of_file("/dev/null");
    return true;
}

static bool allow_files(run *r)
{
    rlim_t wanted = (rlim_t)r->count * RANK_FILES + OTHER_FILES;
    if (getrlimit(RLIMIT_NOFILE, &r->files) < 0 || r->files.rlim_cur >= wanted) return true;
    struct rlimit more = r->files;
    more.rlim_cur = wanted;
    if (wanted <= r->files.rlim_max && setrlimit(RLIMIT_NOFILE, &more) == 0) return true;
    fprintf(stderr, "exphil: launch: %d ranks need %d open files, and %d are allowed (ulimit -n)\n", r->count,
            (int)wanted, (int)r->files.rlim_max);
    return false;
}

/* One that nobody uses at this moment. */
static int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int found = 0, fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0) return 0;
    if (bind(fd, (struct sockaddr *)&address, length) == 0 &&
        getsockname(fd, (struct sockaddr *)&address, &length) == 0)
        found = ntohs(address.sin_port);
    (void)close(fd);
    return found;
}

/* ---- a start -------------------------------------------------------------------------------------------------- */

/* The command of this start: from the second on it goes on where the one before ended. */
static void make_command(const run *r, char **words)
{
    static char resume_word[] = "--resume";
    const launch_options *o = r->o;
    bool resume = o->exphil && r->start > 0 && o->restart_args.count == 0;
    int count = 0;
    for (int i = 0; o->command[i]; i++)
        if (strcmp(o->command[i], resume_word) == 0) resume = false;
    for (int i = 0; o->command[i]; i++) {
        words[count++] = o->command[i];
        if (resume && i == 1) words[count++] = resume_word;
    }
    for (int i = 0; r->start > 0 && i < o->restart_args.count; i++)
        words[count++] = (char *)(uintptr_t)o->restart_args.text[i];
    words[count] = NULL;
}

/* What a process has that is to become a rank. */
typedef struct beginning {
    int out[2], err[2], id[2], failed[2];
} beginning;

static void close_beginning(beginning *b)
{
    for (int i = 0; i < 2; i++) {
        launch_close(&b->out[i]);
        launch_close(&b->err[i]);
        launch_close(&b->id[i]);
        launch_close(&b->failed[i]);
    }
}

/* The command cannot be run: why is errno, and what could not be done may be NULL. Returns false. */
static bool unable(run *r, const char *what, int why)
{
    launch_say("launch: %s: %s", what ? what : r->o->command[0], strerror(why));
    r->unable = what ? 1 : why == ENOENT ? 127 : 126;
    return false;
}

/* launch's ends of the pipes of a new rank. */
static void take_ends(run *r, int which, beginning *b)
{
    rank *k = &r->ranks[which];
    int *const from[LAUNCH_STREAMS] = {b->out, b->err};
    for (int i = 0; i < LAUNCH_STREAMS; i++) {
        k->stream[i] = (launch_stream){.fd = from[i][0], .rank = which, .which = i};
        (void)fcntl(k->stream[i].fd, F_SETFL, O_NONBLOCK);
        from[i][0] = -1;
    }
    k->id = b->id[1];
    b->id[1] = -1;
}

/* Starts a rank, and waits until it is the command. False, said: it is not. */
static bool start_rank(run *r, launch_place *place)
{
    beginning b = {{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}};
    rank *k = &r->ranks[place->rank];
    sigset_t all, before;
    int why = 0;
    if (!launch_pipe(b.out) || !launch_pipe(b.err) || !launch_pipe(b.failed) ||
        (place->rank > 0 && !launch_pipe(b.id))) {
        why = errno;
        close_beginning(&b);
        return unable(r, "a pipe", why);
    }
    place->out = b.out[1];
    place->err = b.err[1];
    place->id_in = b.id[0];
    place->failed = b.failed[1];
    place->gpu = r->o->gpu ? r->o->gpu[r->gpus[place->rank]] : NULL;
    sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, &before);
    pid_t child = fork();
    if (child == 0) launch_child(place);
    why = errno;
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    if (child < 0) {
        close_beginning(&b);
        return unable(r, "a process", why);
    }
    k->group = child;
    take_ends(r, place->rank, &b);
    launch_close(&b.failed[1]);
    ssize_t length;
    while ((length = read(b.failed[0], &why, sizeof why)) < 0 && errno == EINTR) continue;
    close_beginning(&b);
    return length <= 0 || unable(r, NULL, why);
}

/* Starts all. What is started when one cannot be is left to be ended. */
static void start_all(run *r, char **words)
{
    int id[2] = {-1, -1}, saved[2] = {-1, -1};
    launch_place place = {.ranks = r->count,
                          .start = r->start,
                          .port = free_port(),
                          .command = words,
                          .slots = {r->slots[0], r->slots[1]},
                          .keeper = r->keeper,
                          .launch = getpid(),
                          .files = r->files};
    make_command(r, words);
    if (!launch_pipe(id) || !launch_pipe(saved)) (void)unable(r, "a pipe", errno);
    for (int i = 0; i < r->count && !r->unable; i++)
        if (!launch_log_rank(i, r->count, r->start)) r->unable = 1;
    for (int i = 0; i < r->count && !r->unable; i++) {
        place.rank = i;
        place.id_out = i == 0 ? id[1] : -1;
        place.progress = i == 0 ? saved[1] : -1;
        (void)start_rank(r, &place);
    }
    launch_close(&id[1]);
    launch_close(&saved[1]);
    r->id = id[0];
    r->progress = saved[0];
    if (r->id >= 0) (void)fcntl(r->id, F_SETFL, O_NONBLOCK);
    if (r->progress >= 0) (void)fcntl(r->progress, F_SETFL, O_NONBLOCK);
}

/* ---- what rank 0 says ----------------------------------------------------------------------------------------- */

/* A pipe that nobody has written to takes it at once. Without bytes they read its end. */
static void give_id(run *r, const char *block, size_t length)
{
    for (int i = 1; i < r->count; i++) {
        if (length && r->ranks[i].id >= 0) (void)!write(r->ranks[i].id, block, length);
        launch_close(&r->ranks[i].id);
    }
}

static void read_id(run *r)
{
    char block[ID_MOST + 1];
    ssize_t length = read(r->id, block, sizeof block);
    if (length < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (length <= 0) {
        launch_close(&r->id);
        give_id(r, block, 0);
        return;
    }
    if (length > ID_MOST || r->id_given)
        launch_say("rank 0 wrote %s to EXPHIL_ID_OUT: the others get %s",
                   r->id_given ? "again" : "more than 4096 bytes",
                   r->id_given ? "only what it wrote first" : "no id");
    if (!r->id_given) give_id(r, block, length > ID_MOST ? 0 : (size_t)length);
    r->id_given = true;
}

static void read_progress(run *r)
{
    char bytes[256];
    ssize_t length = read(r->progress, bytes, sizeof bytes);
    if (length < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (length <= 0)
        launch_close(&r->progress);
    else
        r->progressed = true;
}

/* ---- ends of ranks -------------------------------------------------------------------------------------------- */

static int status_of(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Was it ended by a signal, also as a shell tells it? What SIGINT, SIGTERM and SIGHUP ask for is an end that was wanted. */
static bool signalled(int status)
{
    int code = status_of(status), number = code - 128;
    return WIFSIGNALED(status) ||
           (number > 0 && number < NSIG && number != SIGINT && number != SIGTERM && number != SIGHUP);
}

static bool try_again(int status)
{
    return signalled(status) || status_of(status) == TRY_AGAIN;
}

/* How well an end tells what went wrong: ranks that miss another one end a moment later, and may be seen at once. */
static int weight(int status)
{
    return signalled(status) ? 3 : status_of(status) == TRY_AGAIN ? 2 : status != 0;
}

static void say_end(const run *r, int which)
{
    int status = r->ranks[which].status;
    if (WIFSIGNALED(status))
        launch_say("rank %d was ended by signal %d (%s)", which, WTERMSIG(status),
                   strsignal(WTERMSIG(status)));
    else
        launch_say("rank %d ended with status %d", which, WEXITSTATUS(status));
}

/* Is this an end that was asked for? */
static bool wanted(const run *r, int status)
{
    int code = status_of(status);
    return code == 0 || r->ending || r->unable || code == 128 + r->stop ||
           (r->killed && code == 128 + SIGKILL);
}

static void ask_to_end(run *r)
{
    r->ending = true;
    r->until = now_ns() + (int64_t)(r->o->grace * 1e9);
    signal_all(r, SIGTERM);
}

/* Notes who has ended; the first bad end is the end of all. */
static void reap(run *r)
{
    int status, worst = -1;
    pid_t process;
    while ((process = waitpid(-1, &status, WNOHANG)) > 0) {
        int i = 0;
        while (i < r->count && (r->ranks[i].group != process || r->ranks[i].ended)) i++;
        if (i == r->count) continue; /* what a rank left, or the keeper */
        r->ranks[i].ended = true;
        r->ranks[i].status = status;
        for (int k = 0; k < LAUNCH_STREAMS; k++) launch_log_drain(&r->ranks[i].stream[k]);
        if (wanted(r, status)) continue;
        say_end(r, i);
        if (worst < 0 || weight(status) > weight(r->ranks[worst].status)) worst = i;
    }
    if (worst < 0 || r->stop) return;
    r->bad = worst;
    r->bad_status = r->ranks[worst].status;
    ask_to_end(r);
}

/* ---- the end of a start --------------------------------------------------------------------------------------- */

static bool all_ended(const run *r)
{
    for (int i = 0; i < r->count; i++)
        if (r->ranks[i].group && !r->ranks[i].ended) return false;
    return true;
}

/* A rank of which processes are left; -1: none. */
static int left_behind(const run *r)
{
    for (int i = 0; i < r->count; i++)
        if (r->ranks[i].group && launch_group_there(r->ranks[i].group)) return i;
    return -1;
}

static void kill_all(run *r)
{
    for (int i = 0; i < r->count; i++)
        if (r->ranks[i].group) (void)kill(-r->ranks[i].group, SIGKILL);
    r->killed = true;
}

static void say_kill(const run *r)
{
    char who[96] = "";
    size_t length = 0;
    for (int i = 0; i < r->count && length < sizeof who - 16; i++)
        if (r->ranks[i].group && launch_group_there(r->ranks[i].group))
            length += (size_t)snprintf(who + length, sizeof who - length, "%s%d", length ? ", " : "", i);
    launch_say("SIGTERM did not end rank %s%s: SIGKILL", who, length < sizeof who - 16 ? "" : ", ...");
}

/* What signals to launch ask for. */
static void hear(run *r)
{
    char bytes[256];
    while (read(wake[0], bytes, sizeof bytes) > 0) continue;
    if (pause_asked) {
        pause_asked = 0;
        for (int i = 0; i < r->count; i++)
            if (r->ranks[i].group) (void)kill(-r->ranks[i].group, SIGSTOP);
        (void)raise(SIGSTOP);
        signal_all(r, SIGCONT);
    }
    if (asked && !r->stop) {
        r->stop = asked;
        if (!r->ending) signal_all(r, r->stop);
        taken = 1;
    }
    if (again && !r->killed) kill_all(r);
}

/* Ends what should have ended; true: nothing is left of this start. */
static bool settle(run *r)
{
    bool ended = all_ended(r);
    int left = ended ? left_behind(r) : -1;
    if (ended && left < 0) return true;
    if (r->unable && !r->ending) ask_to_end(r);
    if (ended && !r->ending && !r->stop) ask_to_end(r);
    if (ended && r->stop && !r->told && !r->killed) {
        launch_say("rank %d has ended, and processes that it started go on: another signal ends them", left);
        r->told = true;
    }
    if (r->ending && !r->killed && now_ns() >= r->until) {
        say_kill(r);
        kill_all(r);
    }
    return false;
}

/* ---- the loop ------------------------------------------------------------------------------------------------- */

/* Everything that can happen, and the time until something is due. */
static void wait_for_something(run *r, struct pollfd *wait)
{
    int count = launch_log_poll(wait);
    bool due = r->ending || all_ended(r);
    wait[count++] = (struct pollfd){.fd = wake[0], .events = POLLIN};
    if (r->id >= 0) wait[count++] = (struct pollfd){.fd = r->id, .events = POLLIN};
    if (r->progress >= 0) wait[count++] = (struct pollfd){.fd = r->progress, .events = POLLIN};
    for (int i = 0; i < r->count; i++)
        for (int k = 0; k < LAUNCH_STREAMS; k++)
            if (launch_log_open(&r->ranks[i].stream[k]))
                wait[count++] = (struct pollfd){.fd = r->ranks[i].stream[k].fd, .events = POLLIN};
    (void)poll(wait, (nfds_t)count, due ? TICK_MS : -1);
}

/* Each stream is read once and a little, so that none keeps others waiting. */
static void read_all(run *r)
{
    for (int i = 0; i < r->count; i++)
        for (int k = 0; k < LAUNCH_STREAMS; k++)
            if (launch_log_open(&r->ranks[i].stream[k])) (void)launch_log_read(&r->ranks[i].stream[k]);
    if (r->id >= 0) read_id(r);
    if (r->progress >= 0) read_progress(r);
}

/* One start, from the first process to the last. */
static void one_start(run *r, char **words)
{
    struct pollfd wait[LAUNCH_STREAMS * (LAUNCH_RANKS_MOST + 1) + 3];
    memset(r->ranks, 0, sizeof r->ranks);
    for (int i = 0; i < r->count; i++)
        for (int k = 0; k < LAUNCH_STREAMS; k++) r->ranks[i].id = r->ranks[i].stream[k].fd = -1;
    r->ending = r->killed = r->told = r->id_given = r->progressed = false;
    r->bad = -1;
    start_all(r, words);
    for (;;) {
        hear(r);
        read_all(r);
        reap(r);
        launch_log_write();
        if (settle(r)) break;
        wait_for_something(r, wait);
    }
    if (r->id >= 0) read_id(r);
    if (r->progress >= 0) read_progress(r);
    launch_close(&r->id);
    launch_close(&r->progress);
    for (int i = 0; i < r->count; i++) {
        launch_close(&r->ranks[i].id);
        for (int k = 0; k < LAUNCH_STREAMS; k++) launch_log_close(&r->ranks[i].stream[k]);
        if (r->ranks[i].group) launch_keeper_tell(r->keeper, r->ranks[i].group, false);
    }
}

/* ---- another start, or the end -------------------------------------------------------------------------------- */

/* A rank that fails a second time, with nothing saved between, is left out: another GPU takes its place, or none. */
static void leave_out(run *r)
{
    bool twice = r->blamed == r->bad && !r->progressed;
    int before = r->count;
    r->blamed = r->bad;
    if (!twice || r->o->keep_ranks || r->count == 1) return;
    char of[LAUNCH_NAME + 16] = "";
    if (r->o->gpu) (void)snprintf(of, sizeof of, " (GPU %s)", r->o->gpu[r->gpus[r->bad]]);
    if (r->o->gpu) {
        memmove(&r->gpus[r->bad], &r->gpus[r->bad + 1],
                sizeof r->gpus[0] * (size_t)(r->gpu_count - r->bad - 1));
        r->gpu_count--;
    }
    if (!r->o->gpu || r->count > r->gpu_count) r->count--;
    launch_say("rank %d%s failed twice without a checkpoint between and is left out: %s", r->bad, of,
               r->count < before ? "there is one rank fewer" : "another GPU takes its place");
    r->blamed = -1;
}

static bool start_again(run *r)
{
    if (r->unable || r->bad < 0 || r->stop || !try_again(r->bad_status)) return false;
    if (r->start >= r->o->max_restarts) {
        if (r->o->max_restarts > 0)
            launch_say("launch: it was started again %d times, and is not any more", r->start);
        return false;
    }
    leave_out(r);
    r->start++;
    launch_say("launch: start %d, at most %d, with %d rank%s", r->start, (int)r->o->max_restarts, r->count,
               plural(r->count));
    return true;
}

/* After a signal: what failed while it ended, or that signal. */
static int stopped_status(const run *r)
{
    int status = 0;
    for (int i = 0; i < r->count; i++) {
        int code = status_of(r->ranks[i].status);
        if (!wanted(r, r->ranks[i].status)) return code;
        if (code) status = 128 + r->stop;
    }
    return status;
}

static int status_at_end(const run *r)
{
    return r->unable ? r->unable : r->bad >= 0 ? status_of(r->bad_status) : r->stop ? stopped_status(r) : 0;
}

/* Whoever reads may take the time that he wants, until a signal. */
static void write_rest(const run *r)
{
    struct pollfd wait[LAUNCH_STREAMS + 1];
    while (launch_log_write(), !launch_log_empty()) {
        char bytes[256];
        int count = launch_log_poll(wait);
        wait[count++] = (struct pollfd){.fd = wake[0], .events = POLLIN};
        (void)poll(wait, (nfds_t)count, -1);
        while (read(wake[0], bytes, sizeof bytes) > 0) continue;
        if (again || (asked && !r->stop)) return;
    }
}

static bool prepare(run *r)
{
    r->count = (int)r->o->ranks;
    r->gpu_count = r->o->gpu_count;
    r->blamed = -1;
    for (int i = 0; i < r->gpu_count; i++) r->gpus[i] = i;
    if (!reserve(r) || !allow_files(r) || (r->keeper = launch_keeper_begin(r->o->grace)) < 0) return false;
#ifdef __linux__
    /* What ranks leave is launch's to wait for. */
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
#endif
    return catch_signals() && launch_log_begin(r->o->log_dir);
}

int launch_ranks(const launch_options *o)
{
    static run r;
    int count = 0, status = 1;
    while (o->command[count]) count++;
    char **words = calloc((size_t)count + TEXTS_MOST + 2, sizeof *words);
    r.o = o;
    if (words && prepare(&r)) {
        do one_start(&r, words);
        while (start_again(&r));
        status = status_at_end(&r);
    }
    write_rest(&r);
    free(words);
    if (launch_log_end() || status) return status;
    fprintf(stderr, "exphil: the output could not be written in full\n");
    return 1;
}
