#include "controller.h"

#include "pipe.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct controller {
    pipe_end *pipe;
    int flush;
    int said; /* sent is what the reader knows */
    exphil_pad sent;
};

static const struct {
    uint32_t bit;
    const char *name;
} buttons[] = {{EXPHIL_PAD_A, "A"},           {EXPHIL_PAD_B, "B"},           {EXPHIL_PAD_X, "X"},
               {EXPHIL_PAD_Y, "Y"},           {EXPHIL_PAD_Z, "Z"},           {EXPHIL_PAD_L, "L"},
               {EXPHIL_PAD_R, "R"},           {EXPHIL_PAD_START, "START"},   {EXPHIL_PAD_D_UP, "D_UP"},
               {EXPHIL_PAD_D_DOWN, "D_DOWN"}, {EXPHIL_PAD_D_LEFT, "D_LEFT"}, {EXPHIL_PAD_D_RIGHT, "D_RIGHT"}};

/* Millionths, written without printf's floats: a host's locale may have a decimal comma. */
static long stick_millionths(float value)
{
    double k = round(80.0 * fmin(fmax((double)value, -1), 1));
    return k == 0 ? 500000 : lround(1e6 * (0.5 + (k + 0.25) / 254));
}

static long trigger_millionths(float value)
{
    double k = round(140.0 * fmin(fmax((double)value, 0), 1));
    return k == 0 ? 0 : lround(1e6 * (k + 0.25) / 255);
}

static size_t put_stick(char *text, size_t room, const char *name, float x, float y)
{
    return (size_t)snprintf(text, room, "SET %s 0.%06ld 0.%06ld\n", name, stick_millionths(x),
                            stick_millionths(y));
}

size_t controller_format(const exphil_pad *before, const exphil_pad *pad, int flush,
                         char text[CONTROLLER_TEXT_MAX])
{
    size_t used = 0, room = CONTROLLER_TEXT_MAX;
    for (size_t i = 0; i < sizeof buttons / sizeof buttons[0]; i++)
        if (!before || (before->buttons ^ pad->buttons) & buttons[i].bit)
            used += (size_t)snprintf(text + used, room - used, "%s %s\n",
                                     pad->buttons & buttons[i].bit ? "PRESS" : "RELEASE", buttons[i].name);
    if (!before || before->main_x != pad->main_x || before->main_y != pad->main_y)
        used += put_stick(text + used, room - used, "MAIN", pad->main_x, pad->main_y);
    if (!before || before->c_x != pad->c_x || before->c_y != pad->c_y)
        used += put_stick(text + used, room - used, "C", pad->c_x, pad->c_y);
    if (!before || before->trigger != pad->trigger)
        used +=
            (size_t)snprintf(text + used, room - used, "SET L 0.%06ld\n", trigger_millionths(pad->trigger));
    if (flush) used += (size_t)snprintf(text + used, room - used, "FLUSH\n");
    return used;
}

static int open_pipe(controller *c)
{
    int opened = 0, status = pipe_open(c->pipe, &opened);
    if (opened) c->said = 0;
    return status;
}

controller *controller_create(const char *path, int flush)
{
    controller *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->flush = flush;
    c->pipe = pipe_create(path);
    int status = c->pipe ? open_pipe(c) : -errno;
    if (status >= 0) return c;
    controller_destroy(c);
    errno = -status;
    return NULL;
}

void controller_forget(controller *c)
{
    c->said = 0;
}

static int lose_reader(controller *c, int status)
{
    pipe_close(c->pipe);
    return status;
}

static int is_finite(const exphil_pad *pad)
{
    return isfinite(pad->main_x) && isfinite(pad->main_y) && isfinite(pad->c_x) && isfinite(pad->c_y) &&
           isfinite(pad->trigger);
}

int controller_send(controller *c, const exphil_pad *pad)
{
    char text[CONTROLLER_TEXT_MAX];
    if (!is_finite(pad)) return -EINVAL;
    int status = open_pipe(c);
    if (status != CONTROLLER_OK) return status;
    if (pipe_lost_reader(c->pipe)) {
        pipe_close(c->pipe);
        status = open_pipe(c); /* there may be another one by now */
        if (status != CONTROLLER_OK) return status;
    }
    size_t bytes = controller_format(c->said ? &c->sent : NULL, pad, c->flush, text);
    status = bytes ? pipe_write(c->pipe, text, bytes) : CONTROLLER_OK;
    if (status == CONTROLLER_FULL) return status;
    if (status != CONTROLLER_OK) return lose_reader(c, status);
    c->sent = *pad;
    c->said = 1;
    return CONTROLLER_OK;
}

void controller_destroy(controller *c)
{
    static const exphil_pad nothing;
    if (!c) return;
    if (c->pipe && pipe_is_open(c->pipe) && c->said) (void)controller_send(c, &nothing);
    pipe_destroy(c->pipe);
    free(c);
}
