/* What must be C where the package has no module that was compiled for an interpreter (build_wheel.py): python_hooks.c, to which
 * Python hands the functions that it calls. Knows no Python of any version. */
#include <exphil/exphil.h>

typedef struct exphil_py_python {
    int (*capsule_is_valid)(void *capsule, const char *name);
    void *(*capsule_pointer)(void *capsule, const char *name);
    void (*fetch)(void **type, void **value, void **traceback);
    void (*restore)(void *type, void *value, void *traceback);
    unsigned long (*thread)(void);
    int32_t (*look)(void *user);
} exphil_py_python;

static exphil_py_python python;

#define PyObject                  void
#define PyCapsule_IsValid         python.capsule_is_valid
#define PyCapsule_GetPointer      python.capsule_pointer
#define PyErr_Fetch               python.fetch
#define PyErr_Restore             python.restore
#define PyThread_get_thread_ident python.thread
#define exphil_py_look            python.look
#define EXPHIL_PY_ABI

/* extern "Python" is what Python calls back through tables of its own: python.look is all of it that C calls here. */
typedef struct exphil_py_hooks {
    int64_t serial;
    int64_t look_ns;
    uint64_t main_thread;
    int32_t cancelled;
} exphil_py_hooks;

typedef struct exphil_py_dltensor {
    void *data;
    int32_t device_type, device_id, rank;
    uint8_t type_code, type_bits;
    uint16_t type_lanes;
    int64_t *shape, *strides;
    uint64_t offset_bytes;
} exphil_py_dltensor;

struct DLManagedTensor {
    exphil_py_dltensor tensor;
    void *manager;
    void (*deleter)(struct DLManagedTensor *self);
};

struct DLManagedTensorVersioned {
    uint32_t major, minor;
    void *manager;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    exphil_py_dltensor tensor;
};

#include "python_hooks.c"

/* Before anything else is called; look_at may be set later. */
void exphil_py_python_set(void *const *functions)
{
    __builtin_memcpy(&python, functions, sizeof python);
}
