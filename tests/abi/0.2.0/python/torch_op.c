/* The operations as torch's own, for torch 2.9 and later: registered through its stable
 * binary interface, whose functions are found in the libraries that the process has loaded. Neither torch's headers nor its
 * libraries are needed to build this. What a kernel gets and gives is a stack of 64-bit values: a handle of a tensor, an
 * integer, a double's bits, or for what is optional NULL or the address of such a value.
 *
 * There are three of each: exphil::scan has a gradient, and gives the states and what backward needs where they are wanted;
 * exphil::scan_backward; and exphil::scan_plain, which gives the result alone and has no gradient: torch would ask Python for it in
 * every call, wanted or not.
 *
 * Compiled into exphil._native. Python's part, ops_torch.py, gives the shapes without data and the gradients. */
#include "torch_op.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef uint64_t torch_value;
typedef void torch_kernel(torch_value *stack, uint64_t inputs, uint64_t outputs);

/* Found by name in libtorch_cpu.so and what it loads; those of the GPU in libtorch_cuda.so, or NULL. */
static struct {
    int32_t (*get_sizes)(void *, int64_t **);
    int32_t (*get_strides)(void *, int64_t **);
    int32_t (*get_dim)(void *, int64_t *);
    int32_t (*get_dtype)(void *, int32_t *);
    int32_t (*get_device_type)(void *, int32_t *);
    int32_t (*get_device_index)(void *, int32_t *);
    int32_t (*get_data_ptr)(void *, void **);
    int32_t (*empty_strided)(int64_t, const int64_t *, const int64_t *, int32_t, int32_t, int32_t, void **);
    int32_t (*copy_into)(void *, void *, int32_t);
    int32_t (*delete_tensor)(void *);
    int32_t (*library_def)(const char *, const char *, uint32_t, void **);
    int32_t (*library_impl)(const char *, const char *, const char *, uint32_t, void **);
    int32_t (*def)(void *, const char *);
    int32_t (*impl)(void *, const char *, torch_kernel *);
    int32_t (*type_f32)(void), (*type_f64)(void), (*type_u8)(void), (*type_bool)(void);
    int32_t (*device_cpu)(void);
    void (*delete_value)(void *); /* operator delete: of an optional one */
    void (*throw_error)(const char *);
    int32_t (*cuda_stream)(int32_t, void **);
    int32_t f32, f64, u8, boolean, cpu;
} torch;

/* Which of the three. */
enum { FORWARD = 0, BACKWARD = 1, PLAIN = 2, VARIANTS = 3 };
static const char *const suffixes[VARIANTS] = {"", "_backward", "_plain"};

/* ---- one call -------------------------------------------------------------------------------------------- */

typedef struct torch_call {
    exphil_py_call call;
    exphil_py_array arrays[EXPHIL_PY_FIELDS];
    void *handle[EXPHIL_PY_FIELDS]; /* of what is taken */
    void *given[EXPHIL_PY_FIELDS];  /* of what is given, in the stack's order */
    int taken_count, given_count;
    void *saved;
    int variant;
    exphil_py_numbers numbers;
    uint64_t wanted; /* bits: of forward 1 states, 2 what backward needs; of backward the gradients */
    int32_t device_type, device;
    exphil_error error;
} torch_call;

static void release(torch_call *c)
{
    for (int i = 0; i < c->taken_count; i++)
        if (c->handle[i]) torch.delete_tensor(c->handle[i]);
    if (c->saved) torch.delete_tensor(c->saved);
    c->taken_count = 0;
    c->saved = NULL;
}

/* Torch makes a RuntimeError of every exception; Python makes of that what the status says. */
static _Thread_local int32_t last_status;

int32_t exphil_py_torch_status(void)
{
    return last_status;
}

/* Does not return: the exception passes through the kernel, which holds nothing any more, into torch. */
static void fail(torch_call *c, int32_t status, const char *message)
{
    char text[320];
    last_status = status;
    snprintf(text, sizeof text, "exphil: %s", message);
    release(c);
    for (int i = 0; i < c->given_count; i++)
        if (c->given[i]) torch.delete_tensor(c->given[i]);
    torch.throw_error(text);
    __builtin_unreachable();
}

static bool describe(void *handle, exphil_py_array *array)
{
    int64_t rank, *sizes, *strides;
    int32_t type;
    if (torch.get_dim(handle, &rank) || torch.get_sizes(handle, &sizes) ||
        torch.get_strides(handle, &strides) || torch.get_dtype(handle, &type) ||
        torch.get_data_ptr(handle, &array->data))
        return false;
    array->rank = (int32_t)rank;
    array->type = type == torch.f32                           ? EXPHIL_OPS_F32
                  : type == torch.f64                         ? EXPHIL_OPS_F64
                  : type == torch.u8 || type == torch.boolean ? 2
                                                              : -1;
    for (int i = 0; i < rank && i < EXPHIL_PY_RANK; i++) {
        array->sizes[i] = sizes[i];
        array->strides[i] = strides[i];
    }
    return true;
}

/* The handle in a value of the stack, NULL for none. The value's own memory is given back. */
static void *unwrap(torch_value value, bool optional)
{
    torch_value inner = value;
    if (optional && value) {
        memcpy(&inner, (void *)value, sizeof inner);
        torch.delete_value((void *)value);
    }
    return (void *)inner;
}

/* All values leave the stack before anything can go wrong, so that nothing is lost. */
static void take_all(torch_call *c, const exphil_py_op *op, torch_value *at)
{
    for (int i = 0; i < op->fields; i++)
        if (exphil_py_takes(&op->field[i], c->call.backward))
            c->handle[c->taken_count++] = unwrap(*at++, op->field[i].optional);
    if (op->saves && c->call.backward) c->saved = unwrap(*at++, false);
    if (op->forward == EXPHIL_OP_SCAN || op->forward == EXPHIL_OP_ATTENTION) {
        c->numbers.first = (int64_t)*at++;
        c->numbers.second = (int64_t)*at++;
    } else if (op->forward == EXPHIL_OP_NORM) {
        c->numbers.first = (int64_t)*at++;
        memcpy(&c->numbers.real, at++, sizeof c->numbers.real);
    }
    if (c->variant != PLAIN) c->wanted = *at;
}

static void refuse(torch_call *c, const exphil_py_op *op, const char *name, const char *why)
{
    snprintf(c->call.message, sizeof c->call.message, "%s: %s %s", op->title, name, why);
    fail(c, EXPHIL_E_INVALID, c->call.message);
}

/* Elements that lie nowhere: those of a storage that was given back, say. */
static bool without_memory(const exphil_py_array *array)
{
    for (int i = 0; i < array->rank && i < EXPHIL_PY_RANK; i++)
        if (!array->sizes[i]) return false;
    return !array->data;
}

/* An array's address, on the device of the first one. */
static void look(torch_call *c, const exphil_py_op *op, const char *name, void *handle,
                 exphil_py_array *array)
{
    int32_t type, device;
    if (!describe(handle, array) || torch.get_device_type(handle, &type) ||
        torch.get_device_index(handle, &device))
        refuse(c, op, name, "is missing, or has no memory of its own");
    if (handle == c->handle[0]) {
        c->device_type = type;
        c->device = device;
    } else if (type != c->device_type || device != c->device) {
        refuse(c, op, name, "must be on the device of the first array");
    }
    if (without_memory(array)) refuse(c, op, name, "has elements but no memory");
}

static void look_at_arrays(torch_call *c, const exphil_py_op *op)
{
    int at = 0;
    for (int i = 0; i < op->fields; i++) {
        if (!exphil_py_takes(&op->field[i], c->call.backward)) continue;
        c->arrays[at].rank = -1;
        if (c->handle[at]) look(c, op, op->field[i].name, c->handle[at], &c->arrays[at]);
        at++;
    }
}

static void *new_tensor(torch_call *c, const exphil_py_array *array, int32_t type, void **data)
{
    void *made = NULL;
    if (torch.empty_strided(array->rank, array->sizes, array->strides, type, c->device_type, c->device,
                            &made) ||
        torch.get_data_ptr(made, data))
        fail(c, EXPHIL_E_MEMORY, c->call.message[0] ? c->call.message : "no memory for a tensor");
    return made;
}

static int32_t type_of(const torch_call *c, const exphil_py_array *array)
{
    (void)c;
    return array->type == EXPHIL_OPS_F64 ? torch.f64 : array->type == EXPHIL_OPS_F32 ? torch.f32 : torch.u8;
}

/* The same elements without gaps. */
static void copy(torch_call *c, int which)
{
    exphil_py_array *array = &c->arrays[which];
    int64_t stride = 1;
    for (int i = array->rank - 1; i >= 0; i--) {
        array->strides[i] = stride;
        if (array->sizes[i] > 1 && __builtin_mul_overflow(stride, array->sizes[i], &stride))
            fail(c, EXPHIL_E_INVALID, c->call.message);
    }
    void *made = new_tensor(c, array, type_of(c, array), &array->data);
    if (torch.copy_into(made, c->handle[which], 0)) {
        torch.delete_tensor(made);
        fail(c, EXPHIL_E_MEMORY, "a tensor cannot be copied");
    }
    torch.delete_tensor(c->handle[which]);
    c->handle[which] = made;
}

static void begin(torch_call *c, const exphil_py_op *op)
{
    for (int copies = 0;; copies++) {
        const int32_t status = exphil_py_begin(&c->call, op, c->call.backward, c->arrays, &c->numbers);
        if (!status) return;
        if (status < 0 || copies > EXPHIL_PY_FIELDS) fail(c, EXPHIL_E_INVALID, c->call.message);
        copy(c, c->call.failed); /* where there is no memory for that, the message is why it was needed */
        c->call.message[0] = 0;
    }
}

static bool is_wanted(const torch_call *c, const exphil_py_field *field, int number)
{
    return c->call.backward ? c->wanted >> number & 1 : !field->optional || c->wanted & 1;
}

/* An output that is not wanted is a tensor without elements. */
static void add_outputs(torch_call *c, const exphil_py_op *op)
{
    static const exphil_py_array none = {.rank = 1, .strides = {1}};
    for (int i = 0; i < op->fields; i++) {
        const exphil_py_field *field = &op->field[i];
        exphil_py_array array = none;
        void *data;
        if (!exphil_py_gives(field, c->call.backward) || (c->variant == PLAIN && field->optional)) continue;
        const bool wanted = is_wanted(c, field, c->given_count);
        if (wanted) exphil_py_shape(&c->call, field, &array);
        c->given[c->given_count] =
            new_tensor(c, &array, c->arrays[0].type == EXPHIL_OPS_F64 ? torch.f64 : torch.f32, &data);
        c->given_count++;
        if (wanted) exphil_py_put(&c->call, field, data);
    }
}

static void *bytes_of(torch_call *c, size_t bytes, void **data)
{
    const exphil_py_array array = {.rank = 1, .sizes = {(int64_t)bytes}, .strides = {1}};
    return new_tensor(c, &array, torch.u8, data);
}

/* Forward: room for what backward needs is the last output. Backward: that room again. */
static void add_saved(torch_call *c, const exphil_py_op *op, size_t bytes)
{
    void *data;
    if (!op->saves || c->variant == PLAIN) return;
    if (c->call.backward) {
        exphil_py_array array = {0};
        look(c, op, "saved", c->saved, &array);
        if (array.rank != 1 || array.type != 2 || (array.sizes[0] > 1 && array.strides[0] != 1))
            refuse(c, op, "saved", "must be a vector of uint8 without gaps");
        exphil_py_put_saved(&c->call, array.data ? array.data : &c->saved, (size_t)array.sizes[0]);
        return;
    }
    c->given[c->given_count] = bytes_of(c, c->wanted & 2 ? bytes : 0, &data);
    c->given_count++;
    if (c->wanted & 2) exphil_py_put_saved(&c->call, data, bytes);
}

static void compute(torch_call *c, const exphil_py_op *op)
{
    unsigned char near[4096];
    exphil_op_info info = EXPHIL_OP_INFO_INIT;
    void *workspace = near, *tensor = NULL, *stream = NULL;
    const bool cpu = c->device_type == torch.cpu;
    exphil_ops *ops = exphil_py_ops(cpu ? -1 : c->device, &c->error);
    if (c->call.backward) add_saved(c, op, 0);
    if (!ops || exphil_ops_query(ops, &c->call.args, &info, &c->error) < 0)
        fail(c, c->error.status, c->error.message);
    if (!c->call.backward) add_saved(c, op, info.saved_bytes);
    if (!cpu && (!torch.cuda_stream || torch.cuda_stream(c->device, &stream)))
        fail(c, EXPHIL_E_DEVICE, "torch tells no stream of its device");
    if (!cpu || info.workspace_bytes > sizeof near) tensor = bytes_of(c, info.workspace_bytes, &workspace);
    const exphil_status status =
        exphil_ops_run(ops, &c->call.args, workspace, info.workspace_bytes, stream, &c->error);
    if (tensor) torch.delete_tensor(tensor);
    if (status < 0) fail(c, c->error.status, c->error.message);
}

static void run(int number, int variant, torch_value *stack)
{
    const exphil_py_op *op = &exphil_py_op_table()[number];
    torch_call c = {.variant = variant, .error = EXPHIL_ERROR_INIT};
    c.call.backward = variant == BACKWARD;
    take_all(&c, op, stack);
    look_at_arrays(&c, op);
    begin(&c, op);
    add_outputs(&c, op);
    compute(&c, op);
    release(&c);
    for (int i = 0; i < c.given_count; i++) stack[i] = (torch_value)c.given[i];
}

/* A kernel is a bare address: three for each operation, in the order of the table. */
#define KERNEL(number, variant)                                                                              \
  static void kernel_##number##_##variant(torch_value *stack, uint64_t inputs, uint64_t outputs)             \
  {                                                                                                          \
    (void)inputs, (void)outputs;                                                                             \
    run(number, variant, stack);                                                                             \
  }
#define KERNELS(number) KERNEL(number, 0) KERNEL(number, 1) KERNEL(number, 2)
#define NAMES(number)                                                                                        \
  {                                                                                                          \
    kernel_##number##_0, kernel_##number##_1, kernel_##number##_2                                            \
  }
KERNELS(0)
KERNELS(1)
KERNELS(2)
KERNELS(3)
KERNELS(4)
KERNELS(5)
static torch_kernel *const kernels[][VARIANTS] = {NAMES(0), NAMES(1), NAMES(2), NAMES(3), NAMES(4), NAMES(5)};

/* ---- registration ---------------------------------------------------------------------------------------- */

static bool find(void *library, const char *name, void *slot)
{
    void *found = dlsym(library, name);
    memcpy(slot, &found, sizeof found);
    return found != NULL;
}

static const char *find_all(void *library)
{
    const struct {
        const char *name;
        void *slot;
    } wanted[] = {{"aoti_torch_get_sizes", &torch.get_sizes},
                  {"aoti_torch_get_strides", &torch.get_strides},
                  {"aoti_torch_get_dim", &torch.get_dim},
                  {"aoti_torch_get_dtype", &torch.get_dtype},
                  {"aoti_torch_get_device_type", &torch.get_device_type},
                  {"aoti_torch_get_device_index", &torch.get_device_index},
                  {"aoti_torch_get_data_ptr", &torch.get_data_ptr},
                  {"aoti_torch_empty_strided", &torch.empty_strided},
                  {"aoti_torch_copy_", &torch.copy_into},
                  {"aoti_torch_delete_tensor_object", &torch.delete_tensor},
                  {"aoti_torch_library_init_def", &torch.library_def},
                  {"aoti_torch_library_init_impl", &torch.library_impl},
                  {"aoti_torch_library_def", &torch.def},
                  {"aoti_torch_library_impl", &torch.impl},
                  {"aoti_torch_dtype_float32", &torch.type_f32},
                  {"aoti_torch_dtype_float64", &torch.type_f64},
                  {"aoti_torch_dtype_uint8", &torch.type_u8},
                  {"aoti_torch_dtype_bool", &torch.type_bool},
                  {"aoti_torch_device_type_cpu", &torch.device_cpu},
                  {"_ZdlPv", &torch.delete_value},
                  {"_ZSt21__throw_runtime_errorPKc", &torch.throw_error}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (!find(library, wanted[i].name, wanted[i].slot)) return wanted[i].name;
    torch.f32 = torch.type_f32();
    torch.f64 = torch.type_f64();
    torch.u8 = torch.type_u8();
    torch.boolean = torch.type_bool();
    torch.cpu = torch.device_cpu();
    return NULL;
}

/* "scan(Tensor u, ..., Tensor? D, ..., int plain, int log, int wanted) -> (Tensor, Tensor)" */
static void schema(const exphil_py_op *op, int variant, char *text, size_t size)
{
    const bool backward = variant == BACKWARD;
    size_t at = (size_t)snprintf(text, size, "%s%s(", op->name, suffixes[variant]);
    int given = op->saves && variant == FORWARD;
    for (int i = 0; i < op->fields; i++) {
        const exphil_py_field *field = &op->field[i];
        given += exphil_py_gives(field, backward) && !(variant == PLAIN && field->optional);
        if (exphil_py_takes(field, backward))
            at += (size_t)snprintf(text + at, size - at, "Tensor%s %s, ", field->optional ? "?" : "",
                                   field->name);
    }
    if (op->saves && backward) at += (size_t)snprintf(text + at, size - at, "Tensor saved, ");
    const char *numbers = op->forward == EXPHIL_OP_SCAN        ? "int plain, int log, "
                          : op->forward == EXPHIL_OP_ATTENTION ? "int window, int method, "
                          : op->forward == EXPHIL_OP_NORM      ? "int silu, float epsilon, "
                                                               : "";
    at += (size_t)snprintf(text + at, size - at, "%s%s", numbers, variant == PLAIN ? "" : "int wanted, ");
    at -= 2; /* the last comma */
    at += (size_t)snprintf(text + at, size - at, ") -> %s", given > 1 ? "(Tensor" : "Tensor");
    for (int i = 1; i < given; i++) at += (size_t)snprintf(text + at, size - at, ", Tensor");
    if (given > 1) snprintf(text + at, size - at, ")");
}

const char *exphil_py_torch_register(void)
{
    char text[1024];
    void *definitions, *implementations[2];
    void *library = dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_LAZY);
    if (!library) return "libtorch_cpu.so";
    const char *missing = find_all(library);
    if (missing) return missing;
    void *gpu = dlopen("libtorch_cuda.so", RTLD_NOLOAD | RTLD_LAZY);
    if (gpu) find(gpu, "aoti_torch_get_current_cuda_stream", &torch.cuda_stream);
    if (torch.library_def("exphil", "torch_op.c", 1, &definitions) ||
        torch.library_impl("exphil", "CPU", "torch_op.c", 1, &implementations[0]) ||
        torch.library_impl("exphil", "CUDA", "torch_op.c", 1, &implementations[1]))
        return "a library of the name exphil that nobody has registered yet";
    for (const exphil_py_op *op = exphil_py_op_table(); op->name; op++) {
        for (int variant = 0; variant < VARIANTS; variant++) {
            char name[32];
            schema(op, variant, text, sizeof text);
            snprintf(name, sizeof name, "%s%s", op->name, suffixes[variant]);
            torch_kernel *kernel = kernels[op - exphil_py_op_table()][variant];
            if (torch.def(definitions, text) || torch.impl(implementations[0], name, kernel) ||
                torch.impl(implementations[1], name, kernel))
                return "an operator that can be registered";
        }
    }
    return NULL; /* the libraries stay: their end would take the operators back */
}
