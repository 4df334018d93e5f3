/* The kernels of exphil/ops.h under the names and shapes that Python knows: which arrays an operation has, in the order in
 * which torch's operators and XLA's handlers take them, and where they go in its struct. Knows neither Python, torch nor XLA.
 * Read by cffi too (build_native.py), which leaves out the directives. Private. */
#ifndef EXPHIL_OP_CALL_H
#define EXPHIL_OP_CALL_H

#include <exphil/ops.h>

/* What a field of an operation is. Forward takes the inputs and gives the outputs; backward takes the inputs, the outputs that it
 * reads, and gradients of outputs, and gives gradients of inputs. */
enum {
    EXPHIL_PY_INPUT = 1,
    EXPHIL_PY_OUTPUT = 2,
    EXPHIL_PY_DOUTPUT = 3, /* gradient of an output */
    EXPHIL_PY_DINPUT = 4,  /* gradient of an input: of the number of_input */
    EXPHIL_PY_FIELDS = 28,
    EXPHIL_PY_RANK = 4
};
typedef struct exphil_py_field {
    const char *name; /* of the argument */
    const char *
        axes; /* of each axis its dimension and its place in the struct: b, f, c, or m: together with the next one */
    int32_t offset;    /* in the struct */
    int32_t kind;      /* EXPHIL_PY_... */
    int32_t optional;  /* may be missing */
    int32_t of_input;  /* of EXPHIL_PY_DINPUT */
    int32_t bytes;     /* elements are bytes */
    int32_t read_back; /* of EXPHIL_PY_OUTPUT: backward reads it */
} exphil_py_field;

/* Numbers beside the arrays: delta_plain and whether A is a logarithm (scan), window and method (attention), silu and epsilon
 * (norm). */
typedef struct exphil_py_numbers {
    int64_t first, second;
    double real;
} exphil_py_numbers;

typedef struct exphil_py_op {
    const char *name;          /* NULL: behind the last one */
    const char *title;         /* of the function that a user calls, for messages */
    int32_t forward, backward; /* EXPHIL_OP_... */
    int32_t fields, saves;     /* saves: forward keeps something for backward */
    const char *dims;          /* letters of the dimensions behind frames, in the struct's order */
    int32_t gates, struct_size;
    exphil_py_field field[EXPHIL_PY_FIELDS];
} exphil_py_op;

/* An array as its owner describes it. type: EXPHIL_OPS_F32, EXPHIL_OPS_F64, 2 for bytes, -1 for anything else. rank -1: missing. */
typedef struct exphil_py_array {
    void *data;
    int32_t type, rank;
    int64_t sizes[EXPHIL_PY_RANK], strides[EXPHIL_PY_RANK]; /* in elements */
} exphil_py_array;

/* A call that is being made. failed: the field that is wrong. */
typedef struct exphil_py_call {
    const exphil_py_op *op;
    int32_t backward, failed;
    int64_t dims[26];
    int32_t known_by[26]; /* the field that said so, -1: a number, or others */
    char message[240];
    union {
        size_t struct_size;
        exphil_scan_args scan;
        exphil_attention_args attention;
        exphil_rnn_args rnn;
        exphil_norm_args norm;
        exphil_conv_args conv;
    } args;
} exphil_py_call;

/* All operations that have a backward; the last one has no name. */
const exphil_py_op *exphil_py_op_table(void);

/* Whether a field is taken (inputs) or given (outputs) by forward, or backward. */
int32_t exphil_py_takes(const exphil_py_field *field, int32_t backward);
int32_t exphil_py_gives(const exphil_py_field *field, int32_t backward);

/* Begins a call with the arrays that it takes, in the order of the fields: 0, or -1 with the message, or 1: the one numbered
 * failed must be copied into an array without gaps first, because no strides of the struct say how it lies. */
int32_t exphil_py_begin(exphil_py_call *call, const exphil_py_op *op, int32_t backward,
                        const exphil_py_array *arrays, const exphil_py_numbers *numbers);
/* The shape of what a call gives, with the strides that the kernel writes without a copy. */
void exphil_py_shape(const exphil_py_call *call, const exphil_py_field *field, exphil_py_array *array);
/* Where it gives it: without strides, as exphil_py_shape says. */
void exphil_py_put(exphil_py_call *call, const exphil_py_field *field, void *data);
/* An array of the caller's own shape and strides instead: 0, or -1 with the message. */
int32_t exphil_py_put_array(exphil_py_call *call, const exphil_py_field *field, const exphil_py_array *array);
void exphil_py_put_saved(exphil_py_call *call, void *data, size_t bytes);

/* Kernels of a device for callers that cannot be given any: those that were set, else made on a context of its own when they
 * are first asked for, and again after fork(). NULL with the error. device: -1 the CPU, else the number of a GPU, at most
 * 15. */
exphil_ops *exphil_py_ops(int32_t device, exphil_error *error);
/* They must live as long as the process. NULL: again its own. */
void exphil_py_ops_set(int32_t device, exphil_ops *ops);

#endif
