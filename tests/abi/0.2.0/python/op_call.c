/* The table of operations; arrays of the caller into an operation's struct. Compiled into exphil._native and into exphil._xla. */
#include "op_call.h"

#ifdef _WIN32
#  include <windows.h>
#else
#  include <pthread.h>
#endif
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* ---- the table ------------------------------------------------------------------------------------------- */

/* clang-format off */
#define INPUT(s, f, name, axes) { name, axes, offsetof(s, f), EXPHIL_PY_INPUT, 0, -1, 0, 0 }
#define MAYBE(s, f, name, axes) { name, axes, offsetof(s, f), EXPHIL_PY_INPUT, 1, -1, 0, 0 }
#define RESET(s) { "reset", "BbTf", offsetof(s, reset), EXPHIL_PY_INPUT, 1, -1, 1, 0 }
#define OUTPUT(s, f, name, axes, read) { name, axes, offsetof(s, f), EXPHIL_PY_OUTPUT, 0, -1, 0, read }
#define STATE(s, f, name, axes) { name, axes, offsetof(s, f), EXPHIL_PY_OUTPUT, 1, -1, 0, 0 }
#define DY(s, axes) { "dy", axes, offsetof(s, dy), EXPHIL_PY_DOUTPUT, 0, -1, 0, 0 }
#define DSTATE(s, f, name, axes) { name, axes, offsetof(s, f), EXPHIL_PY_DOUTPUT, 1, -1, 0, 0 }
#define GRAD(s, f, name, axes, of) { name, axes, offsetof(s, f), EXPHIL_PY_DINPUT, 1, of, 0, 0 }

#define SCAN(f, name, axes) INPUT(exphil_scan_args, f, name, axes)
#define SCAN_MAYBE(f, name, axes) MAYBE(exphil_scan_args, f, name, axes)
#define SCAN_GRAD(f, name, axes, of) GRAD(exphil_scan_args, f, name, axes, of)
#define ATT_GRAD(f, name, axes, of) GRAD(exphil_attention_args, f, name, axes, of)
#define RNN_GRAD(f, name, axes, of) GRAD(exphil_rnn_args, f, name, axes, of)
#define NORM_GRAD(f, name, axes, of) GRAD(exphil_norm_args, f, name, axes, of)
#define CONV_GRAD(f, name, axes, of) GRAD(exphil_conv_args, f, name, axes, of)

#define RNN_FIELDS                                                                                           \
  INPUT(exphil_rnn_args, gates, "gates", "BbTfGc"),                                                          \
  INPUT(exphil_rnn_args, weight, "weight", "GfUc"),                                                          \
  MAYBE(exphil_rnn_args, bias, "bias", "Gc"), RESET(exphil_rnn_args),                                        \
  MAYBE(exphil_rnn_args, h_in, "h0", "BbUc")

/* B batch, T frames, D width, N states, H heads, E dim, W window, U hidden, G gates * hidden, K taps, J taps - 1, R a ring. */
static const exphil_py_op table[] = {
    {"scan", "selective_scan", EXPHIL_OP_SCAN, EXPHIL_OP_SCAN_GRAD, 23, 0, "DN", 0, sizeof(exphil_scan_args), {
        SCAN(u, "u", "BbDcTf"), SCAN(delta, "delta", "BbDcTf"), SCAN(a, "A", "DfNc"), SCAN(b, "B", "BbNcTf"),
        SCAN(c, "C", "BbNcTf"), SCAN_MAYBE(skip, "D", "Dc"), SCAN_MAYBE(z, "z", "BbDcTf"),
        SCAN_MAYBE(delta_bias, "delta_bias", "Dc"), RESET(exphil_scan_args),
        SCAN_MAYBE(state_in, "initial_state", "BbDfNc"),
        OUTPUT(exphil_scan_args, y, "out", "BbDcTf", 0), STATE(exphil_scan_args, state_out, "last_state", "BbDfNc"),
        DY(exphil_scan_args, "BbDcTf"), DSTATE(exphil_scan_args, dstate_out, "dlast_state", "BbDfNc"),
        SCAN_GRAD(du, "du", "BbDcTf", 0), SCAN_GRAD(ddelta, "ddelta", "BbDcTf", 1), SCAN_GRAD(da, "dA", "DfNc", 2),
        SCAN_GRAD(db, "dB", "BbNcTf", 3), SCAN_GRAD(dc, "dC", "BbNcTf", 4), SCAN_GRAD(dskip, "dD", "Dc", 5),
        SCAN_GRAD(dz, "dz", "BbDcTf", 6), SCAN_GRAD(ddelta_bias, "ddelta_bias", "Dc", 7),
        SCAN_GRAD(dstate_in, "dinitial_state", "BbDfNc", 9)}},
    {"attention", "attention", EXPHIL_OP_ATTENTION, EXPHIL_OP_ATTENTION_GRAD, 13, 1, "HEW", 0, sizeof(exphil_attention_args), {
        INPUT(exphil_attention_args, q, "q", "BbTfHmEc"), INPUT(exphil_attention_args, k, "k", "BbTfHmEc"),
        INPUT(exphil_attention_args, v, "v", "BbTfHmEc"), MAYBE(exphil_attention_args, bias, "bias", "HfWc"),
        RESET(exphil_attention_args), MAYBE(exphil_attention_args, state_in, "initial_state", "BbRc"),
        OUTPUT(exphil_attention_args, y, "out", "BbTfHmEc", 1),
        STATE(exphil_attention_args, state_out, "last_state", "BbRc"), DY(exphil_attention_args, "BbTfHmEc"),
        ATT_GRAD(dq, "dq", "BbTfHmEc", 0), ATT_GRAD(dk, "dk", "BbTfHmEc", 1), ATT_GRAD(dv, "dv", "BbTfHmEc", 2),
        ATT_GRAD(dbias, "dbias", "HfWc", 3)}},
    {"lstm", "lstm", EXPHIL_OP_LSTM, EXPHIL_OP_LSTM_GRAD, 17, 1, "U", 4, sizeof(exphil_rnn_args), {
        RNN_FIELDS, MAYBE(exphil_rnn_args, c_in, "c0", "BbUc"),
        OUTPUT(exphil_rnn_args, y, "out", "BbTfUc", 1), STATE(exphil_rnn_args, h_out, "h", "BbUc"),
        STATE(exphil_rnn_args, c_out, "c", "BbUc"), DY(exphil_rnn_args, "BbTfUc"),
        DSTATE(exphil_rnn_args, dh_out, "dh", "BbUc"), DSTATE(exphil_rnn_args, dc_out, "dc", "BbUc"),
        RNN_GRAD(dgates, "dgates", "BbTfGc", 0), RNN_GRAD(dweight, "dweight", "GfUc", 1),
        RNN_GRAD(dbias, "dbias", "Gc", 2), RNN_GRAD(dh_in, "dh0", "BbUc", 4), RNN_GRAD(dc_in, "dc0", "BbUc", 5)}},
    {"gru", "gru", EXPHIL_OP_GRU, EXPHIL_OP_GRU_GRAD, 13, 1, "U", 3, sizeof(exphil_rnn_args), {
        RNN_FIELDS, OUTPUT(exphil_rnn_args, y, "out", "BbTfUc", 1), STATE(exphil_rnn_args, h_out, "h", "BbUc"),
        DY(exphil_rnn_args, "BbTfUc"), DSTATE(exphil_rnn_args, dh_out, "dh", "BbUc"),
        RNN_GRAD(dgates, "dgates", "BbTfGc", 0), RNN_GRAD(dweight, "dweight", "GfUc", 1),
        RNN_GRAD(dbias, "dbias", "Gc", 2), RNN_GRAD(dh_in, "dh0", "BbUc", 4)}},
    {"norm", "layer_norm_silu", EXPHIL_OP_NORM, EXPHIL_OP_NORM_GRAD, 8, 1, "D", 0, sizeof(exphil_norm_args), {
        INPUT(exphil_norm_args, x, "x", "BbTfDc"), INPUT(exphil_norm_args, gain, "weight", "Dc"),
        INPUT(exphil_norm_args, shift, "bias", "Dc"), OUTPUT(exphil_norm_args, y, "out", "BbTfDc", 0),
        DY(exphil_norm_args, "BbTfDc"), NORM_GRAD(dx, "dx", "BbTfDc", 0), NORM_GRAD(dgain, "dweight", "Dc", 1),
        NORM_GRAD(dshift, "dbias", "Dc", 2)}},
    {"conv", "causal_conv1d", EXPHIL_OP_CONV, EXPHIL_OP_CONV_GRAD, 13, 0, "DK", 0, sizeof(exphil_conv_args), {
        INPUT(exphil_conv_args, x, "x", "BbDcTf"), INPUT(exphil_conv_args, weight, "weight", "DfKc"),
        MAYBE(exphil_conv_args, bias, "bias", "Dc"), RESET(exphil_conv_args),
        MAYBE(exphil_conv_args, state_in, "initial_states", "BbDcJf"),
        OUTPUT(exphil_conv_args, y, "out", "BbDcTf", 0), STATE(exphil_conv_args, state_out, "final_states", "BbDcJf"),
        DY(exphil_conv_args, "BbDcTf"), DSTATE(exphil_conv_args, dstate_out, "dfinal_states", "BbDcJf"),
        CONV_GRAD(dx, "dx", "BbDcTf", 0), CONV_GRAD(dweight, "dweight", "DfKc", 1), CONV_GRAD(dbias, "dbias", "Dc", 2),
        CONV_GRAD(dstate_in, "dinitial_states", "BbDcJf", 4)}},
    {0}};
/* clang-format on */

const exphil_py_op *exphil_py_op_table(void)
{
    return table;
}

int32_t exphil_py_takes(const exphil_py_field *field, int32_t backward)
{
    if (field->kind == EXPHIL_PY_INPUT) return 1;
    return backward && (field->kind == EXPHIL_PY_DOUTPUT || field->read_back);
}

int32_t exphil_py_gives(const exphil_py_field *field, int32_t backward)
{
    return field->kind == (backward ? EXPHIL_PY_DINPUT : EXPHIL_PY_OUTPUT);
}

/* ---- arrays into the struct ------------------------------------------------------------------------------ */

static int32_t refuse(exphil_py_call *call, const exphil_py_field *field, const char *format, ...)
{
    va_list arguments;
    const int length = snprintf(call->message, sizeof call->message, "%s: %s ", call->op->title, field->name);
    va_start(arguments, format);
    vsnprintf(call->message + length, sizeof call->message - (size_t)length, format, arguments);
    va_end(arguments);
    call->failed = (int32_t)(field - call->op->field);
    return -1;
}

static int64_t *dim(exphil_py_call *call, char letter)
{
    return &call->dims[letter - 'A'];
}

static int64_t product(int64_t a, int64_t b)
{
    int64_t made;
    return __builtin_mul_overflow(a, b, &made) ? INT64_MAX : made;
}

/* Dimensions that others give. */
static void derive(exphil_py_call *call)
{
    *dim(call, 'G') = product(call->op->gates, *dim(call, 'U'));
    *dim(call, 'J') = *dim(call, 'K') - 1;
    call->known_by['G' - 'A'] = call->known_by['U' - 'A'];
    call->known_by['J' - 'A'] = call->known_by['K' - 'A'];
    int64_t ring = product(product(2 * *dim(call, 'H'), *dim(call, 'E')), *dim(call, 'W'));
    *dim(call, 'R') = ring > INT64_MAX - 2 ? ring : ring + 2;
}

static int axes_of(const exphil_py_field *field)
{
    return (int)strlen(field->axes) / 2;
}

static bool derived(char letter)
{
    return letter == 'G' || letter == 'J' || letter == 'R';
}

static void learn(exphil_py_call *call, const exphil_py_field *field, char letter, int64_t size)
{
    if (*dim(call, letter) >= 0) return;
    *dim(call, letter) = size;
    call->known_by[letter - 'A'] = (int32_t)(field - call->op->field);
}

/* The first array that has a dimension says how large it is; a row of gates says hidden. */
static int32_t look(exphil_py_call *call, const exphil_py_field *field, const exphil_py_array *array,
                    int32_t type)
{
    static const char *const names[] = {"float32", "float64"};
    if (array->rank < 0) return field->optional ? 0 : refuse(call, field, "is missing");
    if (array->rank != axes_of(field))
        return refuse(call, field, "has %d dimensions, must have %d", (int)array->rank, axes_of(field));
    if (field->bytes && array->type != 2)
        return refuse(call, field, "must have elements of type bool or uint8");
    if (!field->bytes && array->type != EXPHIL_OPS_F32 && array->type != EXPHIL_OPS_F64)
        return refuse(call, field, "must have elements of type float32 or float64");
    if (!field->bytes && array->type != type)
        return refuse(call, field, "has elements of type %s, those of %s are %s", names[array->type],
                      call->op->field[0].name, names[type]);
    for (int i = 0; i < array->rank; i++) {
        const char letter = field->axes[2 * i];
        if (!derived(letter)) learn(call, field, letter, array->sizes[i]);
        if (letter != 'G' || *dim(call, 'U') >= 0) continue;
        if (array->sizes[i] % call->op->gates)
            return refuse(call, field, "has %lld elements along axis %d, must have a multiple of %d",
                          (long long)array->sizes[i], i, (int)call->op->gates);
        learn(call, field, 'U', array->sizes[i] / call->op->gates);
    }
    return 0;
}

static int32_t fits(exphil_py_call *call, const exphil_py_field *field, const exphil_py_array *array)
{
    for (int i = 0; i < array->rank; i++) {
        const char letter = field->axes[2 * i];
        const int32_t by = call->known_by[letter - 'A'];
        if (array->sizes[i] == *dim(call, letter)) continue;
        return refuse(call, field, "has %lld elements along axis %d, must have %lld%s%s",
                      (long long)array->sizes[i], i, (long long)*dim(call, letter),
                      by < 0 ? "" : " because of ", by < 0 ? "" : call->op->field[by].name);
    }
    return 0;
}

/* Strides of an array as the struct has them: false where it cannot say them. */
static bool strides_of(const exphil_py_field *field, const exphil_py_array *array, exphil_input *made)
{
    int64_t *const slots[3] = {&made->batch_stride, &made->frame_stride, &made->column_stride};
    for (int i = 0; i < array->rank; i++) {
        if (array->sizes[i] <= 1) continue;
        if (array->strides[i] < 1) return false;
        const char slot = field->axes[2 * i + 1];
        if (slot == 'm') {
            const int64_t inner = array->sizes[i + 1];
            if (inner > 1 && array->strides[i] != inner * array->strides[i + 1]) return false;
            if (inner == 1) made->column_stride = array->strides[i];
            continue;
        }
        *slots[slot == 'b' ? 0 : slot == 'f' ? 1 : 2] = array->strides[i];
    }
    return true;
}

static bool without_elements(const exphil_py_array *array)
{
    for (int i = 0; i < array->rank; i++)
        if (!array->sizes[i]) return true;
    return false;
}

static void store(exphil_py_call *call, const exphil_py_field *field, const exphil_input *made)
{
    memcpy((char *)&call->args + field->offset, made, sizeof *made);
}

/* Of an array without elements the address is not looked at, but NULL would say that there is no array. */
static double nothing;

static int32_t enter(exphil_py_call *call, const exphil_py_field *field, const exphil_py_array *array)
{
    exphil_input made = {0};
    const size_t element = field->bytes ? 1 : array->type == EXPHIL_OPS_F64 ? 8 : 4;
    if (array->rank < 0) return 0;
    if (fits(call, field, array)) return -1;
    made.data = without_elements(array) ? &nothing : array->data;
    if (made.data != &nothing && ((uintptr_t)made.data % element || !strides_of(field, array, &made))) {
        refuse(call, field, "must lie in memory without gaps, aligned to its elements");
        return 1;
    }
    store(call, field, &made);
    return 0;
}

static void enter_numbers(exphil_py_call *call, const exphil_py_numbers *numbers)
{
    switch (call->op->forward) {
    case EXPHIL_OP_SCAN:
        call->args.scan.delta_plain = numbers->first != 0;
        if (numbers->second) {
            call->args.scan.a_log = call->args.scan.a;
            memset(&call->args.scan.a, 0, sizeof call->args.scan.a);
        }
        break;
    case EXPHIL_OP_ATTENTION:
        call->args.attention.method = (int32_t)numbers->second;
        break;
    case EXPHIL_OP_NORM:
        call->args.norm.silu = numbers->first != 0;
        call->args.norm.epsilon = numbers->real;
        break;
    default:
        break;
    }
}

/* Every struct begins alike: size, op, type, batch, frames, and then its own dimensions. */
static void enter_head(exphil_py_call *call, int32_t type)
{
    exphil_norm_args *args = &call->args.norm;
    int64_t *own = &args->width;
    args->struct_size = (size_t)call->op->struct_size;
    args->op = call->backward ? call->op->backward : call->op->forward;
    args->type = type;
    args->batch = *dim(call, 'B');
    args->frames = *dim(call, 'T');
    for (const char *letter = call->op->dims; *letter; letter++) *own++ = *dim(call, *letter);
}
_Static_assert(offsetof(exphil_scan_args, width) == offsetof(exphil_norm_args, width) &&
                   offsetof(exphil_attention_args, heads) == offsetof(exphil_norm_args, width) &&
                   offsetof(exphil_rnn_args, hidden) == offsetof(exphil_norm_args, width) &&
                   offsetof(exphil_conv_args, width) == offsetof(exphil_norm_args, width) &&
                   offsetof(exphil_scan_args, states) == offsetof(exphil_scan_args, width) + 8 &&
                   offsetof(exphil_attention_args, window) == offsetof(exphil_attention_args, heads) + 16 &&
                   offsetof(exphil_conv_args, taps) == offsetof(exphil_conv_args, width) + 8,
               "structs begin alike");

int32_t exphil_py_begin(exphil_py_call *call, const exphil_py_op *op, int32_t backward,
                        const exphil_py_array *arrays, const exphil_py_numbers *numbers)
{
    const int32_t type = arrays[0].type;
    int at = 0;
    memset(&call->args, 0, sizeof call->args);
    memset(call->dims, -1, sizeof call->dims);
    memset(call->known_by, -1, sizeof call->known_by);
    call->op = op;
    call->backward = backward;
    if (op->forward == EXPHIL_OP_ATTENTION) {
        *dim(call, 'W') = numbers->first;
        if (numbers->second != (int32_t)numbers->second) {
            snprintf(call->message, sizeof call->message, "%s: method is %lld, must be 0..2", op->name,
                     (long long)numbers->second);
            return -1;
        }
    }
    for (int i = 0; i < op->fields; i++)
        if (exphil_py_takes(&op->field[i], backward) && look(call, &op->field[i], &arrays[at++], type))
            return -1;
    derive(call);
    enter_head(call, type);
    at = 0;
    for (int i = 0; i < op->fields; i++) {
        if (!exphil_py_takes(&op->field[i], backward)) continue;
        const int32_t status = enter(call, &op->field[i], &arrays[at]);
        if (status) {
            call->failed = at;
            return status;
        }
        at++;
    }
    enter_numbers(call, numbers);
    return 0;
}

void exphil_py_shape(const exphil_py_call *call, const exphil_py_field *field, exphil_py_array *array)
{
    int64_t columns = 1, frames = 1;
    array->rank = axes_of(field);
    array->type = ((const exphil_norm_args *)&call->args)->type;
    for (int i = 0; i < array->rank; i++) {
        const char slot = field->axes[2 * i + 1];
        array->sizes[i] = call->dims[field->axes[2 * i] - 'A'];
        if (slot == 'c' || slot == 'm') columns *= array->sizes[i];
        if (slot == 'f') frames = array->sizes[i];
    }
    for (int i = 0; i < array->rank; i++) {
        const char slot = field->axes[2 * i + 1];
        array->strides[i] = slot == 'c'   ? 1
                            : slot == 'm' ? array->sizes[i + 1]
                            : slot == 'f' ? columns
                                          : columns * frames;
        if (!array->strides[i]) array->strides[i] = 1;
    }
}

/* The gradient of the logarithm has the field of that of A. */
void exphil_py_put(exphil_py_call *call, const exphil_py_field *field, void *data)
{
    exphil_py_array array;
    exphil_py_shape(call, field, &array);
    store(call, field, &(exphil_input){.data = data ? data : without_elements(&array) ? &nothing : NULL});
}

int32_t exphil_py_put_array(exphil_py_call *call, const exphil_py_field *field, const exphil_py_array *array)
{
    exphil_py_array wanted;
    exphil_input made = {.data = array->data};
    exphil_py_shape(call, field, &wanted);
    if (array->rank != wanted.rank)
        return refuse(call, field, "has %d dimensions, must have %d", (int)array->rank, (int)wanted.rank);
    if (array->type != wanted.type)
        return refuse(call, field, "must have elements of the type of %s", call->op->field[0].name);
    if (fits(call, field, array)) return -1;
    if (without_elements(array)) made.data = &nothing;
    if (made.data != &nothing && !strides_of(field, array, &made))
        return refuse(call, field, "must not lie in memory like this");
    if ((uintptr_t)made.data % (array->type == EXPHIL_OPS_F64 ? 8 : 4))
        return refuse(call, field, "is not aligned to its elements");
    store(call, field, &made);
    return 0;
}

void exphil_py_put_saved(exphil_py_call *call, void *data, size_t bytes)
{
    switch (call->op->forward) {
    case EXPHIL_OP_ATTENTION:
        call->args.attention.saved = data;
        call->args.attention.saved_bytes = bytes;
        break;
    case EXPHIL_OP_LSTM:
    case EXPHIL_OP_GRU:
        call->args.rnn.saved = data;
        call->args.rnn.saved_bytes = bytes;
        break;
    case EXPHIL_OP_NORM:
        call->args.norm.saved = data;
        call->args.norm.saved_bytes = bytes;
        break;
    default:
        break;
    }
}

/* ---- kernels for callers that cannot be given any -------------------------------------------------------- */

/* A registered operator or handler belongs to the process, and so does this. */
enum { DEVICES = 17 }; /* the CPU first */
static exphil_ops *of_device[DEVICES];

#ifdef _WIN32 /* no process is forked there */
static SRWLOCK guard = SRWLOCK_INIT;
static void lock(void)
{
    AcquireSRWLockExclusive(&guard);
}
static void unlock(void)
{
    ReleaseSRWLockExclusive(&guard);
}
static void remember_once(void) {}
#else
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void lock(void)
{
    pthread_mutex_lock(&guard);
}
static void unlock(void)
{
    pthread_mutex_unlock(&guard);
}

/* What the parent made must not be used in the child, which makes its own. */
static void forget(void)
{
    const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    memcpy(&guard, &fresh, sizeof guard);
    memset(of_device, 0, sizeof of_device);
}

static void remember(void)
{
    pthread_atfork(NULL, NULL, forget);
}

static void remember_once(void)
{
    pthread_once(&once, remember);
}
#endif

static exphil_ops *make(int32_t device, exphil_error *error)
{
    char name[16] = "cpu";
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_context *context = NULL;
    exphil_ops *made = NULL;
    if (device >= 0) snprintf(name, sizeof name, "cuda:%d", (int)device);
    config.device = name;
    if (exphil_context_create(&config, &context, error) < 0) return NULL;
    const exphil_status status = exphil_ops_create(context, NULL, &made, error);
    exphil_context_destroy(context); /* ops keep it */
    return status < 0 ? NULL : made;
}

exphil_ops *exphil_py_ops(int32_t device, exphil_error *error)
{
    if (device < -1 || device + 1 >= DEVICES) device = DEVICES - 2;
    exphil_ops *found = __atomic_load_n(&of_device[device + 1], __ATOMIC_ACQUIRE);
    if (found) return found;
    remember_once();
    lock();
    found = of_device[device + 1];
    if (!found) {
        found = make(device, error);
        __atomic_store_n(&of_device[device + 1], found, __ATOMIC_RELEASE);
    }
    unlock();
    return found;
}

void exphil_py_ops_set(int32_t device, exphil_ops *ops)
{
    if (device < -1 || device + 1 >= DEVICES) return;
    remember_once();
    __atomic_store_n(&of_device[device + 1], ops, __ATOMIC_RELEASE);
}
