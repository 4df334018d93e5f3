/* What must be C in the Python package: the cancel hook, which is asked thousands of times a second and may not take
 * the interpreter lock each time; the destructor of DLPack capsules; and where the loaded library lies. Compiled as a
 * part of exphil._native, behind Python.h, exphil.h and python_hooks.cdef (both of whose structs of DLPack are those of
 * its specification 1.1). */
#ifdef _WIN32
#  include <windows.h>
#else
#  include <dlfcn.h>
#  include <time.h>
#endif

/* Between two looks for a signal. Taking the lock from a busy thread costs up to 5 ms: this is 5 percent at most. */
#define LOOK_EVERY_NS 100000000

static int64_t now_ns(void)
{
#ifdef _WIN32
    return (int64_t)GetTickCount64() * 1000000;
#else
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
#endif
}

void exphil_py_cancel(exphil_py_hooks *hooks, int32_t cancelled)
{
    __atomic_store_n(&hooks->cancelled, cancelled, __ATOMIC_RELAXED);
}

/* Python handles signals on its main thread only, so that no other thread needs to look. look_ns is the main thread's
 * alone. */
int32_t exphil_py_cancelled(void *user)
{
    exphil_py_hooks *hooks = user;
    if (__atomic_load_n(&hooks->cancelled, __ATOMIC_RELAXED)) return 1;
    if ((uint64_t)PyThread_get_thread_ident() != hooks->main_thread) return 0;
    const int64_t now = now_ns();
    if (now < hooks->look_ns) return 0;
    hooks->look_ns = now + LOOK_EVERY_NS;
    return exphil_py_look(user);
}

/* A capsule that nobody took still owns its tensor. A taken one has another name. The interpreter may be about to
 * raise something, which stays as it is. */
static void end_plain(PyObject *capsule)
{
    PyObject *type, *value, *traceback;
    if (!PyCapsule_IsValid(capsule, "dltensor")) return;
    PyErr_Fetch(&type, &value, &traceback);
    struct DLManagedTensor *tensor = PyCapsule_GetPointer(capsule, "dltensor");
    if (tensor && tensor->deleter) tensor->deleter(tensor);
    PyErr_Restore(type, value, traceback);
}

static void end_versioned(PyObject *capsule)
{
    PyObject *type, *value, *traceback;
    if (!PyCapsule_IsValid(capsule, "dltensor_versioned")) return;
    PyErr_Fetch(&type, &value, &traceback);
    struct DLManagedTensorVersioned *tensor = PyCapsule_GetPointer(capsule, "dltensor_versioned");
    if (tensor && tensor->deleter) tensor->deleter(tensor);
    PyErr_Restore(type, value, traceback);
}

uintptr_t exphil_py_capsule_end(int32_t versioned)
{
    return versioned ? (uintptr_t)end_versioned : (uintptr_t)end_plain;
}

#ifndef EXPHIL_PY_ABI /* without a compiled module Python itself opens the library, and knows its path */
/* Path of the libexphil that this process runs, or "?". */
const char *exphil_py_library_path(void)
{
    Dl_info found;
    return dladdr((void *)(uintptr_t)exphil_version, &found) && found.dli_fname ? found.dli_fname : "?";
}
#endif
