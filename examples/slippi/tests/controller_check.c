/* The pipe writer by itself: what is written, that every value reaches the game as it was meant, and pipes with no reader, a
 * reader that leaves, one that does not read, two writers, and things that are no pipe.
 *   controller_check PIPE */
#define _POSIX_C_SOURCE 200809L
#include "controller.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int failures;

static void check(int fine, const char *what)
{
    if (!fine) fprintf(stderr, "controller_check: %s\n", what), failures++;
}

static void check_lines(void)
{
    char text[CONTROLLER_TEXT_MAX];
    exphil_pad rest = {0, 0, 0, 0, 0, 0}, pad = {EXPHIL_PAD_A | EXPHIL_PAD_D_UP, 1, -1, 0, 0.5f, 0.35f};
    size_t used = controller_format(&rest, &rest, 0, text);
    check(used == 0, "a pad that did not change is written");
    used = controller_format(&rest, &rest, 1, text);
    check(used == 6 && !memcmp(text, "FLUSH\n", 6), "a frame without changes is not flushed");
    used = controller_format(&rest, &pad, 0, text);
    const char *want =
        "PRESS A\nPRESS D_UP\nSET MAIN 0.815945 0.186024\nSET C 0.500000 0.658465\nSET L 0.193137\n";
    check(used == strlen(want) && !memcmp(text, want, used), "changes are written otherwise");
    used = controller_format(&pad, &rest, 0, text);
    want = "RELEASE A\nRELEASE D_UP\nSET MAIN 0.500000 0.500000\nSET C 0.500000 0.500000\nSET L 0.000000\n";
    check(used == strlen(want) && !memcmp(text, want, used), "letting go is written otherwise");
    pad.buttons = ~0u;
    used = controller_format(NULL, &pad, 1, text);
    check(used < CONTROLLER_TEXT_MAX && used < PIPE_BUF, "the longest frame does not fit");
}

/* The byte as Dolphin's two ways make it: cut (Ishiiruka), rounded (mainline). */
static int stick_byte(double value, int rounded)
{
    double byte = (value - 0.5) * 254;
    return (int)(rounded ? round(byte) : floor(byte));
}

static void check_values(void)
{
    char text[CONTROLLER_TEXT_MAX], name[16];
    for (int k = -80; k <= 80; k++) {
        int press = k < 60 ? k + 80 : 140; /* 0..140 */
        exphil_pad pad = {0, (float)k / 80, (float)-k / 80, 0, 0, (float)press / 140};
        double x = 0, y = 0, l = 0;
        text[controller_format(NULL, &pad, 0, text)] = '\0';
        const char *main = strstr(text, "SET MAIN"), *trigger = strstr(text, "SET L");
        check(main && sscanf(main, "SET %15s %lf %lf", name, &x, &y) == 3, "MAIN is not said");
        check(trigger && sscanf(trigger, "SET %15s %lf", name, &l) == 2, "L is not said");
        for (int rounded = 0; rounded < 2; rounded++)
            check(stick_byte(x, rounded) == k && stick_byte(y, rounded) == -k,
                  "a stick reaches the game otherwise");
        check((int)(l * 255) == press && lround(l * 255) == press, "a trigger reaches the game otherwise");
    }
}

static size_t read_all(int file, char *text, size_t room)
{
    ssize_t done = read(file, text, room - 1);
    text[done > 0 ? done : 0] = '\0';
    return done > 0 ? (size_t)done : 0;
}

static void check_pipe(const char *path)
{
    char text[4096];
    exphil_pad rest = {0, 0, 0, 0, 0, 0}, pad = {EXPHIL_PAD_B, 0, 0, 0, 0, 0}, bad = {0, NAN, 0, 0, 0, 0};
    unlink(path);
    controller *c = controller_create(path, 0);
    check(c != NULL, "no FIFO was made");
    if (!c) return;
    check(controller_send(c, &pad) == CONTROLLER_NO_READER, "a pipe without reader was written");
    check(controller_send(c, &bad) == -EINVAL, "a pad that is not finite was taken");
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    check(controller_send(c, &pad) == CONTROLLER_OK, "a pipe with a reader was not written");
    read_all(reader, text, sizeof text);
    check(strstr(text, "PRESS B\n") && strstr(text, "RELEASE A\n") && strstr(text, "SET MAIN 0.5"),
          "a new reader did not get everything");
    check(controller_send(c, &pad) == CONTROLLER_OK && read_all(reader, text, sizeof text) == 0,
          "a pad that did not change was written");
    close(reader);
    check(controller_send(c, &rest) == CONTROLLER_NO_READER,
          "a reader that left is not told"); /* no SIGPIPE */
    check(controller_send(c, &rest) == CONTROLLER_NO_READER, "a reader that left came back");
    reader = open(path, O_RDONLY | O_NONBLOCK);
    check(controller_send(c, &pad) == CONTROLLER_OK && read_all(reader, text, sizeof text) > 100,
          "a second reader did not get everything");
    int status = CONTROLLER_OK;
    for (int i = 0; i < 100000 && status == CONTROLLER_OK; i++)
        status = controller_send(c, i % 2 ? &pad : &rest);
    check(status == CONTROLLER_FULL, "a full pipe is not told");
    size_t length = 0, last = 0;
    while ((length = read_all(reader, text, sizeof text)) > 0) last = length;
    check(last > 0 && text[0] == '\0', "the pipe was not emptied");
    controller_destroy(c);
    close(reader);
}

/* The second is refused, when a reader comes or at once, and gets the pipe when it is free. */
/* Readers that come and go between two sends. */
static void check_readers(const char *path)
{
    char text[4096];
    exphil_pad pad = {EXPHIL_PAD_B, 0, 0, 0, 0, 0};
    unlink(path);
    controller *c = controller_create(path, 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    check(c && controller_send(c, &pad) == CONTROLLER_OK, "a pipe with a reader was not written");
    close(reader);
    check(controller_send(c, &pad) == CONTROLLER_NO_READER, "an unchanged pad hides that nobody reads");
    reader = open(path, O_RDONLY | O_NONBLOCK);
    check(controller_send(c, &pad) == CONTROLLER_OK && read_all(reader, text, sizeof text) > 100,
          "a reader that came late did not get everything");
    close(reader);
    reader = open(path, O_RDONLY | O_NONBLOCK);
    controller_forget(c);
    check(controller_send(c, &pad) == CONTROLLER_OK && read_all(reader, text, sizeof text) > 100 &&
              strstr(text, "PRESS B\n"),
          "what was forgotten is not said again");
    /* A change that found the pipe full is made up for. */
    exphil_pad rest = {0, 0, 0, 0, 0, 0}, both = {EXPHIL_PAD_A | EXPHIL_PAD_B, 0, 0, 0, 0, 0};
    for (int i = 0; controller_send(c, i % 2 ? &pad : &rest) == CONTROLLER_OK && i < 100000; i++) continue;
    check(controller_send(c, &both) == CONTROLLER_FULL, "a full pipe is not told");
    while (read_all(reader, text, sizeof text) > 0) continue;
    check(controller_send(c, &both) == CONTROLLER_OK && read_all(reader, text, sizeof text) > 0 &&
              strstr(text, "PRESS A\n"),
          "the change that found no room is lost");
    controller_destroy(c);
    close(reader);
}

static void check_two(const char *path)
{
    char text[4096];
    exphil_pad pad = {EXPHIL_PAD_B, 0, 0, 0, 0, 0};
    controller *first = controller_create(path, 0), *second = controller_create(path, 0);
    check(first && second, "a pipe without a reader is refused");
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    if (!first || !second || reader < 0) return;
    check(controller_send(first, &pad) == CONTROLLER_OK, "the first of two cannot write");
    size_t written = read_all(reader, text, sizeof text);
    check(controller_send(second, &pad) == -EBUSY && read_all(reader, text, sizeof text) == 0, "two write");
    check(controller_create(path, 0) == NULL && errno == EBUSY, "a pipe that is written to is given away");
    controller_destroy(first);
    check(read_all(reader, text, sizeof text) > 0, "the first of two does not let go");
    check(controller_send(second, &pad) == CONTROLLER_OK && read_all(reader, text, sizeof text) == written,
          "a pipe that is free again is refused");
    controller_destroy(second);
    close(reader);
}

static void check_refusals(const char *path)
{
    char other[1024];
    snprintf(other, sizeof other, "%s.file", path);
    FILE *file = fopen(other, "w");
    if (file) fclose(file);
    check(controller_create(other, 0) == NULL && errno == EINVAL, "a file passes for a FIFO");
    unlink(other);
    check(controller_create("/dev/null", 0) == NULL && errno == EINVAL, "a device passes for a FIFO");
    check(controller_create("/nowhere/at/all", 0) == NULL && errno == ENOENT, "a FIFO was made in no folder");
    controller_destroy(NULL);
}

int main(int argc, char **argv)
{
    sigset_t pending;
    if (argc != 2) return fprintf(stderr, "controller_check PIPE\n"), 2;
    setlocale(LC_ALL, "");
    check_lines();
    setlocale(LC_ALL, "C");
    check_values();
    check_pipe(argv[1]);
    check_readers(argv[1]);
    check_two(argv[1]);
    check_refusals(argv[1]);
    sigpending(&pending);
    check(!sigismember(&pending, SIGPIPE), "SIGPIPE is left pending");
    unlink(argv[1]);
    if (!failures) printf("controller: fine\n");
    return failures != 0;
}
