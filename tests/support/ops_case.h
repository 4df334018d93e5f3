/* What the tests of exphil/ops.h share: every operation as a table of its arrays, so that a test can lay them out in any way, leave
 * some out, move one, and compare what comes out as doubles. */
#ifndef EXPHIL_OPS_CASE_H
#define EXPHIL_OPS_CASE_H

#include "kernel_case.h"

#include <exphil/ops.h>

/* What forward and backward do with an array. */
enum { OPS_FORWARD_IN = 1, OPS_FORWARD_OUT = 2, OPS_BACKWARD_IN = 4, OPS_BACKWARD_OUT = 8, OPS_BYTES = 16 };
enum { OPS_MOST = 32, OPS_ARGS = 2048 };

typedef struct ops_array {
    const char *name;
    size_t at; /* of the exphil_input or exphil_output in the arguments */
    uint32_t role;
    int64_t count[3]; /* batch, frame, column */
    double low, high; /* of numbers that go in */
    double *x;        /* [batch][frame][column] */
    bool left_out;
} ops_array;

/* Arguments of one operation and its gradient, with numbers but without arrays. */
typedef struct ops_case {
    int32_t op; /* forward; backward is the next one, where there is one */
    _Alignas(64) unsigned char args[OPS_ARGS];
    size_t saved_at; /* of `saved`, behind which saved_bytes stands; 0: none */
    int count;
    ops_array array[OPS_MOST];
} ops_case;

typedef struct ops_shape {
    int64_t batch, frames, width, more; /* more: states, window, taps; unused */
    int64_t resets;                     /* one frame in so many; 0: none */
    int32_t flag;                       /* scan: steps as they are, A itself; norm: SiLU; attention: method */
} ops_shape;

/* Forward operations: EXPHIL_OP_SCAN, EXPHIL_OP_ATTENTION, ..., all that are even less one. */
extern const int32_t ops_forward[7];
/* All arrays, of random numbers. Attention has 2 heads. Alive until case_release. */
ops_case *ops_case_make(int32_t op, const ops_shape *shape);
ops_array *ops_find(ops_case *c, const char *name); /* fails the test where there is none */
void ops_leave_out(ops_case *c, const char *name);

/* How arrays lie: dense; rows and batch entries apart; columns apart, frames together; frames outermost. */
enum { OPS_DENSE, OPS_PADDED, OPS_COLUMNS_APART, OPS_TIME_FIRST, OPS_LAYOUTS };

/* An array in memory. */
typedef struct ops_laid {
    unsigned char *data;
    size_t bytes;
    int64_t stride[3];
} ops_laid;
/* One call laid out: arguments with the addresses of laid. */
typedef struct ops_run {
    const ops_case *c;
    int32_t op, type;
    bool backward;
    _Alignas(64) unsigned char args[OPS_ARGS];
    ops_laid laid[OPS_MOST];
    void *saved, *workspace;
    size_t saved_bytes, workspace_bytes;
    int64_t copies;
} ops_run;
/* Guarded memory for every array that the call uses, filled; saved of a forward run before (NULL: new), and workspace as the query
 * says. */
ops_run *ops_run_make(exphil_ops *ops, const ops_case *c, bool backward, int32_t type, int layout,
                      void *saved);
/* Runs, and gives what an array holds then. */
exphil_status ops_run_do(exphil_ops *ops, ops_run *r, exphil_error *error);
double *ops_run_result(const ops_run *r, int array);
static inline bool ops_is_out(const ops_run *r, int array)
{
    const ops_array *a = &r->c->array[array];
    return !a->left_out && a->role & (r->backward ? OPS_BACKWARD_OUT : OPS_FORWARD_OUT);
}
static inline bool ops_is_in(const ops_run *r, int array)
{
    const ops_array *a = &r->c->array[array];
    return !a->left_out && a->role & (r->backward ? OPS_BACKWARD_IN : OPS_FORWARD_IN);
}

/* Forward; its results become the numbers of arrays that backward reads. Gives saved. */
void *ops_forward_of(exphil_ops *ops, ops_case *c, int32_t type);
static inline int64_t ops_elements(const ops_array *a)
{
    return a->count[0] * a->count[1] * a->count[2];
}

/* The same by the kernel of the context's device itself, on dense arrays: results[i] as ops_run_result, NULL for what is no
 * output. saved as above. */
void ops_direct(exphil_context *context, const ops_case *c, bool backward, int32_t type, const void *saved,
                double *results[OPS_MOST]);

exphil_ops *ops_make(exphil_context *context, int32_t threads);

#endif
