/* The kernels alone, on arrays of one's own: a selective scan and its gradient, checked against a difference.
 *
 *     cc ops.c $(pkg-config --cflags --libs exphil) -o ops && ./ops
 */
#include <exphil/ops.h>

#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 2, FRAMES = 60, WIDTH = 64, STATES = 16, ROWS = BATCH * FRAMES };

static float u[ROWS * WIDTH], delta[ROWS * WIDTH], b[ROWS * STATES], c[ROWS * STATES], a_log[WIDTH * STATES];
static float y[ROWS * WIDTH], dy[ROWS * WIDTH], du[ROWS * WIDTH];

static void must(exphil_status status, const exphil_error *error)
{
    if (status >= 0) return;
    fprintf(stderr, "%s: %s\n", exphil_status_name(status), error->message);
    exit(1);
}

/* A number in -1..1. */
static float wave(int i)
{
    return (float)(i * 37 % 101 - 50) / 50.0f;
}

/* Asks how much workspace is needed, and runs. A program that runs one shape often keeps the workspace. */
static void run(exphil_ops *ops, const exphil_scan_args *args)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_op_info info = EXPHIL_OP_INFO_INIT;
    must(exphil_ops_query(ops, args, &info, &error), &error);
    void *workspace = malloc(info.workspace_bytes);
    must(exphil_ops_run(ops, args, workspace, info.workspace_bytes, NULL, &error), &error);
    free(workspace);
}

/* The sum of y, where dy is 1. */
static double sum_of(exphil_ops *ops, const exphil_scan_args *args)
{
    double sum = 0.0;
    run(ops, args);
    for (int i = 0; i < ROWS * WIDTH; i++) sum += y[i];
    return sum;
}

int main(void)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_context *context = NULL;
    exphil_ops *ops = NULL;
    must(exphil_context_create(NULL, &context, &error), &error);
    must(exphil_ops_create(context, NULL, &ops, &error), &error);
    for (int i = 0; i < ROWS * WIDTH; i++) {
        u[i] = wave(i);
        delta[i] = wave(i + 7) - 3.0f;
        dy[i] = 1.0f;
    }
    for (int i = 0; i < ROWS * STATES; i++) {
        b[i] = wave(3 * i);
        c[i] = wave(5 * i);
    }
    for (int i = 0; i < WIDTH * STATES; i++) a_log[i] = 0.2f * (float)(i % STATES);

    exphil_scan_args args = EXPHIL_SCAN_ARGS_INIT;
    args.batch = BATCH, args.frames = FRAMES, args.width = WIDTH, args.states = STATES;
    args.u.data = u, args.delta.data = delta, args.b.data = b, args.c.data = c, args.a_log.data = a_log;
    args.y.data = y;

    exphil_scan_args gradient = args; /* the same arrays, and the gradients */
    gradient.op = EXPHIL_OP_SCAN_GRAD;
    gradient.dy.data = dy, gradient.du.data = du;
    run(ops, &gradient);

    const int at = 1000;
    const float before = u[at];
    u[at] = before + 0.5f;
    double difference = sum_of(ops, &args);
    u[at] = before - 0.5f; /* y is linear in u */
    difference -= sum_of(ops, &args);
    printf("gradient %.4f, difference %.4f\n", du[at], difference);
    exphil_ops_destroy(ops);
    exphil_context_destroy(context);
    difference -= du[at];
    return difference < 1e-3 && difference > -1e-3 ? 0 : 1;
}
