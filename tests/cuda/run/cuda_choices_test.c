/* Algorithms of cuBLASLt from a file (cuda/choices.c): what was timed is written, taken and named, gives the same bits every
 * time, and a file that is odd, of another card or cut anywhere is refused whole, with the byte. And libraries in the place of
 * cuBLASLt's that are none. */
#include "emulated.h"
#include "test_files.h"

#include "device/device.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIDE = 16, BYTES = SIDE * SIDE * 4 };

/* A product of drawn numbers on a fresh device; its name in the plan. */
static void product(float y[SIDE * SIDE], char name[64], const char *tune_to)
{
    float x[SIDE * SIDE];
    void *at[3];
    exphil_context *context = emulated_context();
    xph_device *device = xph_context_backend(context);
    const xph_backend *b = device->backend;
    xph_stream *stream = NULL;
    xph_op_info info = {0};
    exphil_error error = EXPHIL_ERROR_INIT;
    for (int i = 0; i < SIDE * SIDE; i++) x[i] = (float)((i * 7919) % 1013) / 1013.0f - 0.4f;
    assert_int_equal(b->stream_create(device, XPH_STREAM_NET, &stream), EXPHIL_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(b->alloc(device, BYTES, &at[i]), EXPHIL_OK);
        assert_int_equal(b->upload(stream, at[i], x, BYTES), EXPHIL_OK);
    }
    xph_linear_args a = {.rows = SIDE, .in = SIDE, .out = SIDE, .x = at[0], .ldx = SIDE, .w = at[1]};
    a.y = at[2];
    a.ldy = SIDE;
    assert_int_equal(b->query(device, XPH_OP_LINEAR, &a, &info), EXPHIL_OK);
    snprintf(name, 64, "%s", info.name);
    assert_int_equal(b->run(stream, info.kernel, &a), EXPHIL_OK);
    assert_int_equal(b->download(stream, y, at[2], BYTES), EXPHIL_OK);
    assert_int_equal(b->stream_wait(stream), EXPHIL_OK);
    if (tune_to && b->tune(device, tune_to, (xph_tune_fn)(void (*)(void))print_message_of, NULL, &error) < 0)
        fail_msg("%s", error.message);
    for (int i = 0; i < 3; i++) b->free(device, at[i], BYTES);
    b->stream_destroy(stream);
    exphil_context_destroy(context);
}
