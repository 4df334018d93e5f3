/* What a call of the kernels costs in C: the median of 100,000 scans of a tiny shape, each timed alone, with one thread.
 * call.py builds and runs it. Prints nanoseconds of a call, of a query and a call, and of the clock alone. */
#include <exphil/ops.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BATCH = 1, FRAMES = 1, WIDTH = 4, STATES = 2, CALLS = 100000 };

static int64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int main(void)
{
    static float rows[8][BATCH * FRAMES * WIDTH], a[WIDTH * STATES];
    static char workspace[65536];
    static int64_t took[CALLS];
    exphil_context *context = NULL;
    exphil_ops *ops = NULL;
    exphil_ops_config config = EXPHIL_OPS_CONFIG_INIT;
    exphil_op_info info = EXPHIL_OP_INFO_INIT;
    exphil_scan_args args = EXPHIL_SCAN_ARGS_INIT;
    config.threads = 1;
    if (exphil_context_create(NULL, &context, NULL) < 0 ||
        exphil_ops_create(context, &config, &ops, NULL) < 0)
        return 1;
    args.batch = BATCH, args.frames = FRAMES, args.width = WIDTH, args.states = STATES;
    args.u.data = rows[0], args.delta.data = rows[1], args.a.data = a, args.b.data = rows[2],
    args.c.data = rows[3];
    args.y.data = rows[4];
    for (int i = 0; i < WIDTH * STATES; i++) a[i] = -1;
    if (exphil_ops_query(ops, &args, &info, NULL) < 0 || info.workspace_bytes > sizeof workspace) return 1;
    for (int what = 0; what < 3; what++) {
        for (int i = 0; i < CALLS; i++) {
            const int64_t began = now_ns();
            if (what == 1 && exphil_ops_query(ops, &args, &info, NULL) < 0) return 1;
            if (what < 2 && exphil_ops_run(ops, &args, workspace, sizeof workspace, NULL, NULL) < 0) return 1;
            took[i] = now_ns() - began;
        }
        qsort(took, CALLS, sizeof *took, by_size);
        printf("%lld ", (long long)took[CALLS / 2]);
    }
    putchar('\n');
    exphil_ops_destroy(ops);
    exphil_context_destroy(context);
    return 0;
}
