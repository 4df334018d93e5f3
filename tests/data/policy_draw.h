/* What programs share that make policies of the installed library alone: failing, memory, and numbers drawn. Before it stands
 * PROGRAM, a string: its name in messages. */
#ifndef POLICY_DRAW_H
#define POLICY_DRAW_H

#include <exphil/exphil.h>
#include <stdio.h>
#include <stdlib.h>

static exphil_error error = EXPHIL_ERROR_INIT;

static void must(exphil_status status, const char *what)
{
    if (status >= 0) return;
    fprintf(stderr, PROGRAM ": %s: %s %s\n", what, exphil_status_name(status), error.message);
    exit(1);
}

static void *zeroed(int64_t count, size_t size)
{
    void *made = calloc((size_t)count + 1, size);
    if (!made) exit(1);
    return made;
}

/* xorshift64*: Vigna 2016, An experimental exploration of Marsaglia's xorshift generators, scrambled. */
static uint64_t random_state = 20260101;
static uint32_t draw(void)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (uint32_t)((random_state * 0x2545F4914F6CDD1Du) >> 32);
}

static float draw_float(float scale)
{
    return (float)((double)draw() / 2147483648.0 - 1.0) * scale;
}

#endif
