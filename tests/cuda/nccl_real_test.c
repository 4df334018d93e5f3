/* The real NCCL, where the machine has it, as far as it works without a GPU: what cuda/nccl_api.h says of it is so, it has
 * every function that is looked up, and an id is made by the way that a trainer takes. */
#include "test.h"

#include "kernels.h"
#include "nccl_api.h"

#if defined(__has_include)
#  if __has_include(<nccl.h>) && __has_include(<cuda_runtime.h>)
#    include <nccl.h>
#    define HEADER NCCL_VERSION_CODE
#  endif
#endif
#ifndef HEADER
#  define HEADER 0
#endif

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

const xph_backend *xph_backend_query(uint32_t abi, const xph_host *host);

/* NULL: there is none. */
static const char *real_library(void)
{
    static const char *const names[] = {
#ifdef EXPHIL_NCCL_LIBRARY
        EXPHIL_NCCL_LIBRARY,
#endif
        "libnccl.so.2"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *at = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL);
        if (at) return names[i];
    }
    return NULL;
}

static void the_header_is_ours(void **state)
{
#if HEADER
    const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
    assert_int_equal(xph_nccl_checked, HEADER);
    assert_int_equal(theirs.magic, NC_CONFIG_MAGIC);
    assert_int_equal(theirs.blocking, NC_UNDEFINED);
    printf("nccl.h of version %d\n", HEADER);
#else
    printf("SKIPPED: there is no nccl.h\n");
    skip();
#endif
}

static void every_function_is_there(void **state)
{
    const char *name = real_library();
    if (!name) {
        printf("SKIPPED: there is no libnccl.so.2\n");
        skip();
    }
    void *at = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
#define FIND(function)                                                                                       \
  if (!dlsym(at, #function)) fail_msg("%s lacks %s", name, #function);
    NC_EACH_FUNCTION(FIND)
#undef FIND
    nc_library nccl;
    int version = 0;
    *(void **)(&nccl.ncclGetVersion) = dlsym(at, "ncclGetVersion");
    assert_int_equal(nccl.ncclGetVersion(&version), NC_SUCCESS);
    assert_true(version >= NC_LEAST_VERSION);
    printf("%s of version %d\n", name, version);
}

/* In a process of its own, for the library goes on listening. 0: all is well. */
static int make_ids(const char *name)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    static uint8_t id[2][XPH_COMM_ID_BYTES], nothing[XPH_COMM_ID_BYTES];
    setenv("EXPHIL_NCCL", name, 1);
    setenv("NCCL_SOCKET_IFNAME", "lo", 0);
    const xph_backend *gpu = xph_backend_query(XPH_BACKEND_ABI, NULL);
    for (int i = 0; i < 2; i++)
        if (gpu->comm_id(id[i], &error) < 0) {
            fprintf(stderr, "%s\n", error.message);
            return 1;
        }
    if (memcmp(id[0], nothing, sizeof nothing) == 0) return 2;
    return memcmp(id[0], id[1], sizeof nothing) == 0 ? 3 : 0;
}

static void an_id_is_made(void **state)
{
    const char *name = real_library();
    int status = -1;
    if (!name) {
        printf("SKIPPED: there is no libnccl.so.2\n");
        skip();
    }
    pid_t child = fork();
    if (!child) _exit(make_ids(name));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_header_is_ours),
        cmocka_unit_test(every_function_is_there),
        cmocka_unit_test(an_id_is_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
