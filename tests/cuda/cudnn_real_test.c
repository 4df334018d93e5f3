/* cuDNN's own library and header against what cuda/cudnn_api.h says of them, where the machine has them; and whether the real
 * library, asked without a GPU for one that it is told of, knows the graph of attention and has engines for it. That needs
 * the driver's stand-in of the toolkit, which has to be found before a program starts: the test starts itself anew. */
#include "test.h"

#include "cudnn_attention.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__has_include)
#  if __has_include(<cudnn_version.h>)
#    include <cudnn_version.h>
#    define HEADER CUDNN_VERSION
#  endif
#endif
#ifndef HEADER
#  define HEADER 0
#endif

enum { DESCRIBES_DEVICES = 90800 };

static const char *real_library(void)
{
    static const char *const names[] = {
#ifdef EXPHIL_CUDNN_LIBRARY
        EXPHIL_CUDNN_LIBRARY,
#endif
        "libcudnn.so.9"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (dlopen(names[i], RTLD_LAZY | RTLD_LOCAL)) return names[i];
    return NULL;
}

/* false: skipped. */
static bool opened(dn_library *lib)
{
    const char *name = real_library();
    if (!name) return false;
    void *at = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
#define FIND(function)                                                                                       \
  *(void **)(&lib->function) = dlsym(at, #function);                                                         \
  if (!lib->function) fail_msg("%s lacks %s", name, #function);
    DN_EACH_FUNCTION(FIND)
#undef FIND
    return true;
}

#define OPENED(lib)                                                                                          \
  if (!opened(lib)) {                                                                                        \
    printf("SKIPPED: there is no libcudnn.so.9\n");                                                          \
    skip();                                                                                                  \
  }

static void the_header_is_ours(void **state)
{
#if HEADER
    assert_int_equal(xph_cudnn_checked, HEADER);
    printf("cudnn.h of version %d\n", HEADER);
#else
    printf("SKIPPED: there is no cudnn.h\n");
    skip();
#endif
}

static void every_function_is_there(void **state)
{
    dn_library lib;
    OPENED(&lib);
    assert_true(lib.cudnnGetVersion() >= DN_LEAST_VERSION);
    printf("%s of version %zu\n", real_library(), lib.cudnnGetVersion());
}

static xph_cudnn_shape shape_of(int64_t time, int64_t dim, int64_t window, int type, int64_t pad)
{
    return (xph_cudnn_shape){4, 2, time, dim, window, 6 * dim + pad, 2 * dim + pad, type, 0};
}

static const xph_cudnn_shape known[] = {
    {32, 4, 512, 64, 512, 768, 256, DN_BFLOAT16, 0},  {32, 4, 512, 64, 60, 768, 256, DN_HALF, 0},
    {4, 2, 577, 88, 30, 552, 200, DN_BFLOAT16, 0},    {7, 1, 513, 40, 100, 128, 48, DN_HALF, 0},
    {2, 2, 2048, 128, 700, 768, 256, DN_BFLOAT16, 0}, {8, 1, 512, 8, 512, 24, 8, DN_BFLOAT16, 0}};
enum { KNOWN = sizeof known / sizeof *known };

/* Every attribute is one of the real library's, of its type, and a graph is finalized without a GPU. */
static void the_graph_is_finalized(void **state)
{
    dn_library lib;
    OPENED(&lib);
    for (size_t i = 0; i < KNOWN; i++) {
        xph_cudnn_graph g;
        const int status = xph_cudnn_graph_make(&lib, NULL, &known[i], &g);
        if (status) fail_msg("shape %zu: status %d for %s", i, status, g.where);
        assert_int_equal(g.tensors,
                         known[i].window < known[i].time ? XPH_CUDNN_TENSORS : XPH_CUDNN_TENSORS - 1);
        xph_cudnn_graph_drop(&lib, &g);
    }
}

/* A GPU as the library describes them. */
static dn_desc described(const dn_library *lib, int compute, int processors, int shared, int cache)
{
    char text[1024];
    dn_desc device = NULL;
    const int length = snprintf(
        text, sizeof text,
        "{\"deviceName\":\"described\",\"cudaDeviceId\":0,\"deviceVer\":%d,\"driverVer\":13000,"
        "\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":65536,"
        "\"multiProcessorCount\":%d,\"warpSize\":32,\"maxSharedMemoryPerBlock\":49152,"
        "\"maxSharedMemoryPerBlockOptin\":%d,\"reservedSharedMemoryPerBlock\":1024,"
        "\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,"
        "\"maxThreadsPerSM\":2048,\"pciDeviceId\":0,\"isTccDriver\":0,\"supportCoopLaunch\":1,"
        "\"totalGlobalMem\":80000000000,\"smClockRateKHz\":1755000,\"memClockRateKHz\":2619000,"
        "\"l2CacheSize\":%d}",
        compute, processors, shared, cache);
    assert_int_equal(lib->cudnnBackendCreateDescriptor(DN_DEVICE, &device), DN_SUCCESS);
    assert_int_equal(lib->cudnnBackendSetAttribute(device, DN_DEVICE_JSON, DN_OF_CHAR, length + 1, text),
                     DN_SUCCESS);
    assert_int_equal(lib->cudnnBackendFinalize(device), DN_SUCCESS);
    return device;
}

static int engines_for(const dn_library *lib, dn_desc device, const xph_cudnn_shape *s)
{
    xph_cudnn_graph g;
    dn_desc configs[8];
    int count = 0;
    assert_int_equal(xph_cudnn_graph_make(lib, NULL, s, &g), DN_SUCCESS);
    const int status = xph_cudnn_engines(lib, &g, device, 8, configs, &count);
    if (status && status != XPH_CUDNN_NO_ENGINE) fail_msg("status %d for %s", status, g.where);
    xph_cudnn_graph_drop(lib, &g);
    return count;
}

/* For the H100 (sm_90) and the A100 (sm_80), and engines that add in a fixed order; none where the stand-in has none. */
static void engines_are_there(void **state)
{
    dn_library lib;
    const xph_cudnn_shape odd = shape_of(512, 60, 512, DN_BFLOAT16, 0);
    OPENED(&lib);
    if (!getenv("EXPHIL_CUDNN_REAL") || !dlopen("libcuda.so.1", RTLD_LAZY) ||
        lib.cudnnGetVersion() < DESCRIBES_DEVICES) {
        printf("SKIPPED: no driver's stand-in, or a library that describes no devices\n");
        skip();
    }
    dn_desc devices[2] = {described(&lib, 900, 132, 232448, 52428800),
                          described(&lib, 800, 108, 166912, 41943040)};
    for (int d = 0; d < 2; d++) {
        for (size_t i = 0; i < KNOWN; i++) {
            const int count = engines_for(&lib, devices[d], &known[i]);
            if (!count) fail_msg("device %d has no engine for shape %zu", d, i);
            printf("device %d, shape %zu: %d configurations of engines\n", d, i, count);
        }
        assert_int_equal(engines_for(&lib, devices[d], &odd), 0); /* heads of 60 */
        lib.cudnnBackendDestroyDescriptor(devices[d]);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_header_is_ours),
        cmocka_unit_test(every_function_is_there),
        cmocka_unit_test(the_graph_is_finalized),
        cmocka_unit_test(engines_are_there),
    };
#ifdef EXPHIL_CUDA_STUB
    if (!getenv("EXPHIL_CUDNN_REAL")) {
        setenv("EXPHIL_CUDNN_REAL", "1", 1);
        setenv("LD_LIBRARY_PATH", EXPHIL_CUDA_STUB, 1);
        execv("/proc/self/exe", argv);
    }
#endif
    return cmocka_run_group_tests(tests, NULL, NULL);
}
