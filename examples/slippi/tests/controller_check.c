/* The pipe writer by itself: what is written, that every value reaches the game as it was meant, and pipes with no reader, a
 * reader that leaves, one that does not read, two writers, and things that are no pipe.
 *   controller_check PIPE */
#include "../system.h"
#include "controller.h"
#include "peer.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    check(used < CONTROLLER_TEXT_MAX && used < 512 /* POSIX: the least PIPE_BUF */,
          "the longest frame does not fit");
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

static void check_pipe(const char *path)
{
    char text[4096];
    exphil_pad rest = {0, 0, 0, 0, 0, 0}, pad = {EXPHIL_PAD_B, 0, 0, 0, 0, 0}, bad = {0, NAN, 0, 0, 0, 0};
    peer_remove(path);
    controller *c = controller_create(path, 0);
    check(c != NULL, "no FIFO was made");
    if (!c) return;
    check(controller_send(c, &pad) == CONTROLLER_NO_READER, "a pipe without reader was written");
    check(controller_send(c, &bad) == -EINVAL, "a pad that is not finite was taken");
    peer *reader = peer_open(path, 0);
    check(controller_send(c, &pad) == CONTROLLER_OK, "a pipe with a reader was not written");
    peer_read(reader, text, sizeof text);
    check(strstr(text, "PRESS B\n") && strstr(text, "RELEASE A\n") && strstr(text, "SET MAIN 0.5"),
          "a new reader did not get everything");
    check(controller_send(c, &pad) == CONTROLLER_OK && peer_read(reader, text, sizeof text) == 0,
          "a pad that did not change was written");
    peer_close(reader);
    check(controller_send(c, &rest) == CONTROLLER_NO_READER,
          "a reader that left is not told"); /* no SIGPIPE */
    check(controller_send(c, &rest) == CONTROLLER_NO_READER, "a reader that left came back");
    reader = peer_open(path, 0);
    check(controller_send(c, &pad) == CONTROLLER_OK && peer_read(reader, text, sizeof text) > 100,
          "a second reader did not get everything");
    int status = CONTROLLER_OK;
    for (int i = 0; i < 100000 && status == CONTROLLER_OK; i++)
        status = controller_send(c, i % 2 ? &pad : &rest);
    check(status == CONTROLLER_FULL, "a full pipe is not told");
    size_t length = 0, last = 0;
    while ((length = peer_read(reader, text, sizeof text)) > 0) last = length;
    check(last > 0 && text[0] == '\0', "the pipe was not emptied");
    controller_destroy(c);
    peer_close(reader);
}

/* Readers that come and go between two sends. */
static void check_readers(const char *path)
{
    char text[4096];
    exphil_pad pad = {EXPHIL_PAD_B, 0, 0, 0, 0, 0};
    peer_remove(path);
    controller *c = controller_create(path, 0);
    peer *reader = peer_open(path, 0);
    check(c && controller_send(c, &pad) == CONTROLLER_OK, "a pipe with a reader was not written");
    peer_close(reader);
    check(controller_send(c, &pad) == CONTROLLER_NO_READER, "an unchanged pad hides that nobody reads");
    reader = peer_open(path, 0);
    check(controller_send(c, &pad) == CONTROLLER_OK && peer_read(reader, text, sizeof text) > 100,
          "a reader that came late did not get everything");
    peer_close(reader);
    reader = peer_open(path, 0);
    controller_forget(c);
    check(controller_send(c, &pad) == CONTROLLER_OK && peer_read(reader, text, sizeof text) > 100 &&
              strstr(text, "PRESS B\n"),
          "what was forgotten is not said again");
    /* A change that found the pipe full is made up for. */
    exphil_pad rest = {0, 0, 0, 0, 0, 0}, both = {EXPHIL_PAD_A | EXPHIL_PAD_B, 0, 0, 0, 0, 0};
    for (int i = 0; controller_send(c, i % 2 ? &pad : &rest) == CONTROLLER_OK && i < 100000; i++) continue;
    check(controller_send(c, &both) == CONTROLLER_FULL, "a full pipe is not told");
    while (peer_read(reader, text, sizeof text) > 0) continue;
    check(controller_send(c, &both) == CONTROLLER_OK && peer_read(reader, text, sizeof text) > 0 &&
              strstr(text, "PRESS A\n"),
          "the change that found no room is lost");
    controller_destroy(c);
    peer_close(reader);
}

/* The second is refused, when a reader comes or at once, and gets the pipe when it is free. */
static void check_two(const char *path)
{
    char text[4096];
    exphil_pad pad = {EXPHIL_PAD_B, 0, 0, 0, 0, 0};
    controller *first = controller_create(path, 0), *second = controller_create(path, 0);
    check(first && second, "a pipe without a reader is refused");
    peer *reader = peer_open(path, 0);
    if (!first || !second || !reader) return;
    check(controller_send(first, &pad) == CONTROLLER_OK, "the first of two cannot write");
    size_t written = peer_read(reader, text, sizeof text);
    check(controller_send(second, &pad) == -EBUSY && peer_read(reader, text, sizeof text) == 0, "two write");
    check(controller_create(path, 0) == NULL && errno == EBUSY, "a pipe that is written to is given away");
    controller_destroy(first);
    check(peer_read(reader, text, sizeof text) > 0, "the first of two does not let go");
    check(controller_send(second, &pad) == CONTROLLER_OK && peer_read(reader, text, sizeof text) == written,
          "a pipe that is free again is refused");
    controller_destroy(second);
    peer_close(reader);
}

static void check_refusals(void)
{
    const char *other = "controller_check.file";
    FILE *file = fopen(other, "w");
    if (file) fclose(file);
    check(controller_create(other, 0) == NULL && errno == EINVAL, "a file passes for a FIFO");
    remove(other);
    for (const struct peer_refusal *r = peer_refusals; r->path; r++)
        check(controller_create(r->path, 0) == NULL && errno == r->error, r->what);
    controller_destroy(NULL);
}

int main(int argc, char **argv)
{
    system_arguments(&argc, &argv);
    if (argc != 2) return fprintf(stderr, "controller_check PIPE\n"), 2;
    setlocale(LC_ALL, "");
    check_lines();
    setlocale(LC_ALL, "C");
    check_values();
    check_pipe(argv[1]);
    check_readers(argv[1]);
    check_two(argv[1]);
    check_refusals();
    check(!peer_signal_left(), "SIGPIPE is left pending");
    peer_remove(argv[1]);
    if (!failures) printf("controller: fine\n");
    return failures != 0;
}
