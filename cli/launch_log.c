/* Output of the ranks, line by line, and launch's own. See launch.h.
 *
 * What is to be written stands in two queues, or one where stdout and stderr are the same file. Nothing is ever written
 * that would have to wait, so a reader who does not read keeps launch from no signal and no end of a rank: ranks are then not
 * read either, and wait as behind any pipe. */
#include "commands.h"
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_MOST = 16384, LINE_MOST = 262144, QUEUE_MUCH = 262144, WRITES_MOST = 64, READS_MOST = 64 };

typedef struct outlet {
    int fd;
    bool gone; /* nobody takes it any more */
    char *text;
    size_t from, held, room; /* text[from .. from + held) waits */
} outlet;

static outlet outlets[LAUNCH_STREAMS];
static bool same, lost;
static const char *folder;
static int files[LAUNCH_RANKS_MOST]; /* descriptor + 1; 0: not open */

static outlet *outlet_of(int which)
{
    return &outlets[same ? LAUNCH_OUT : which];
}

/* At least this much room; false: no memory. */
static bool grow(char **text, size_t *room, size_t wanted)
{
    size_t more = *room ? *room : 4096;
    while (more < wanted) more *= 2;
    if (more == *room) return true;
    char *moved = realloc(*text, more);
    if (!moved) return false;
    *text = moved;
    *room = more;
    return true;
}

static void put(outlet *to, const char *text, size_t length)
{
    if (to->gone || length == 0) return;
    if (to->from && to->from + to->held + length > to->room) {
        memmove(to->text, to->text + to->from, to->held);
        to->from = 0;
    }
    if (!grow(&to->text, &to->room, to->from + to->held + length)) {
        lost = true;
        return;
    }
    memcpy(to->text + to->from + to->held, text, length);
    to->held += length;
}

void launch_say(const char *format, ...)
{
    char line[PATH_MAX + 512] = "exphil: ";
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line + 8, sizeof line - 9, format, arguments);
    va_end(arguments);
    size_t end = 8 + (length < 0 ? 0 : (size_t)length < sizeof line - 10 ? (size_t)length : sizeof line - 10);
    line[end++] = '\n';
    put(outlet_of(LAUNCH_ERR), line, end);
}

/* ---- the files ----------------------------------------------------------------------------------------------- */

static void keep(int rank, const char *text, size_t length)
{
    while (files[rank] > 0 && length > 0) {
        ssize_t done = write(files[rank] - 1, text, length);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) {
            launch_say("--log-dir: %s/rank-%d.log: %s; what follows is not in it", folder, rank,
                       strerror(errno));
            (void)close(files[rank] - 1);
            files[rank] = -1;
            lost = true;
            return;
        }
        text += done;
        length -= (size_t)done;
    }
}

/* Which two streams are one file? */
static bool same_file(int one, int other)
{
    struct stat a, b;
    return fstat(one, &a) == 0 && fstat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool launch_log_begin(const char *log_folder)
{
    struct stat facts;
    outlets[LAUNCH_OUT].fd = STDOUT_FILENO;
    outlets[LAUNCH_ERR].fd = STDERR_FILENO;
    same = same_file(STDOUT_FILENO, STDERR_FILENO);
    folder = log_folder;
    if (!folder) return true;
    if (mkdir(folder, 0777) < 0 && errno != EEXIST) {
        launch_say("--log-dir %s: %s", folder, strerror(errno));
        return false;
    }
    if (stat(folder, &facts) == 0 && S_ISDIR(facts.st_mode)) return true;
    launch_say("--log-dir %s: that is no folder", folder);
    return false;
}

bool launch_log_rank(int rank, int ranks, int start)
{
    char path[PATH_MAX], line[96];
    struct stat facts;
    if (!folder || files[rank] < 0) return true;
    if (files[rank] == 0) {
        (void)snprintf(path, sizeof path, "%s/rank-%d.log", folder, rank);
        int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
        if (fd < 0 || fstat(fd, &facts) < 0 || !S_ISREG(facts.st_mode)) {
            launch_say("--log-dir: %s: %s", path, fd < 0 ? strerror(errno) : "that is no regular file");
            if (fd >= 0) (void)close(fd);
            return false;
        }
        files[rank] = fd + 1;
    }
    int length = snprintf(line, sizeof line, "exphil launch: start %d, rank %d of %d\n", start, rank, ranks);
    keep(rank, line, (size_t)length);
    return true;
}

/* ---- from the ranks to the queues ---------------------------------------------------------------------------- */

static void put_line(const launch_stream *s, const char *line, size_t length)
{
    char name[16];
    if (s->rank > 0) {
        int width = snprintf(name, sizeof name, "[%d] ", s->rank);
        put(outlet_of(s->which), name, (size_t)width);
    }
    put(outlet_of(s->which), line, length);
}

/* All whole lines of text. Returns their bytes. */
static size_t put_lines(const launch_stream *s)
{
    size_t done = 0;
    for (char *end; done < s->held && (end = memchr(s->text + done, '\n', s->held - done));) {
        size_t length = (size_t)(end - s->text) + 1 - done;
        put_line(s, s->text + done, length);
        done += length;
    }
    keep(s->rank, s->text, done);
    return done;
}

/* What has no end gets one. There is always room for that. */
static void put_piece(launch_stream *s)
{
    if (s->held == 0) return;
    s->text[s->held] = '\n';
    put_line(s, s->text, s->held + 1);
    keep(s->rank, s->text, s->held + 1);
    s->held = 0;
}

static void close_stream(launch_stream *s)
{
    put_piece(s);
    free(s->text);
    s->text = NULL;
    s->room = 0;
    launch_close(&s->fd);
}

bool launch_log_read(launch_stream *s)
{
    if (s->fd < 0) return false;
    if (!grow(&s->text, &s->room, s->held + READ_MOST + 1)) {
        launch_say("rank %d: no memory for its output", s->rank);
        lost = true;
        close_stream(s);
        return false;
    }
    ssize_t length = read(s->fd, s->text + s->held, READ_MOST);
    if (length < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    if (length <= 0) {
        close_stream(s);
        return false;
    }
    s->held += (size_t)length;
    size_t done = put_lines(s);
    memmove(s->text, s->text + done, s->held - done);
    s->held -= done;
    if (s->held >= LINE_MOST) put_piece(s);
    return true;
}

/* Somebody may write on and on: no more is read than a pipe holds. */
void launch_log_drain(launch_stream *s)
{
    for (int i = 0; i < READS_MOST && launch_log_read(s); i++) continue;
}

void launch_log_close(launch_stream *s)
{
    launch_log_drain(s);
    if (s->fd >= 0) close_stream(s);
}

bool launch_log_open(const launch_stream *s)
{
    return s->fd >= 0 && outlet_of(s->which)->held < QUEUE_MUCH;
}

/* ---- from the queues to the world ---------------------------------------------------------------------------- */

int launch_log_poll(struct pollfd *wait)
{
    int count = 0;
    for (int i = 0; i < LAUNCH_STREAMS; i++)
        if (outlets[i].held && !outlets[i].gone)
            wait[count++] = (struct pollfd){.fd = outlets[i].fd, .events = POLLOUT};
    return count;
}

/* A pipe that is ready takes PIPE_BUF bytes at once. */
static bool write_some(outlet *to)
{
    struct pollfd ready = {.fd = to->fd, .events = POLLOUT};
    if (to->held == 0 || to->gone || poll(&ready, 1, 0) <= 0) return false;
    ssize_t done = write(to->fd, to->text + to->from, to->held < PIPE_BUF ? to->held : PIPE_BUF);
    if (done < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    if (done < 0) {
        to->gone = lost = true;
        to->held = 0;
        return false;
    }
    to->from = to->held == (size_t)done ? 0 : to->from + (size_t)done;
    to->held -= (size_t)done;
    return true;
}

void launch_log_write(void)
{
    for (int i = 0; i < LAUNCH_STREAMS; i++)
        for (int k = 0; k < WRITES_MOST && write_some(&outlets[i]); k++) continue;
}

bool launch_log_empty(void)
{
    return outlets[LAUNCH_OUT].held == 0 && outlets[LAUNCH_ERR].held == 0;
}

bool launch_log_end(void)
{
    for (int i = 0; i < LAUNCH_RANKS_MOST; i++)
        if (files[i] > 0 && close(files[i] - 1) < 0) lost = true;
    for (int i = 0; i < LAUNCH_STREAMS; i++) free(outlets[i].text);
    memset(outlets, 0, sizeof outlets);
    memset(files, 0, sizeof files);
    return !lost;
}
