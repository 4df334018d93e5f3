/* The real cuBLASLt, where the machine has it, as far as it works without a GPU: it has every function that cuda/blaslt.c looks
 * up, and what it answers where there is no device is a status and no crash. */
#include "test.h"

#include "cublaslt.h"

#include <dlfcn.h>
#include <stdio.h>

static void *real_library(void)
{
    static const char *const names[] = {
#ifdef EXPHIL_CUBLASLT_LIBRARY
        EXPHIL_CUBLASLT_LIBRARY,
#endif
        "libcublasLt.so.13", "libcublasLt.so.12"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *at = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL);
        if (at) return at;
    }
    printf("SKIPPED: there is no libcublasLt\n");
    skip();
    return NULL;
}

static void every_function_is_there(void **state)
{
    static const char *const names[] = {"cublasLtCreate",
                                        "cublasLtDestroy",
                                        "cublasLtGetVersion",
                                        "cublasLtMatmulDescCreate",
                                        "cublasLtMatmulDescSetAttribute",
                                        "cublasLtMatmulDescDestroy",
                                        "cublasLtMatrixLayoutCreate",
                                        "cublasLtMatrixLayoutDestroy",
                                        "cublasLtMatmulPreferenceCreate",
                                        "cublasLtMatmulPreferenceSetAttribute",
                                        "cublasLtMatmulPreferenceDestroy",
                                        "cublasLtMatmulAlgoGetHeuristic",
                                        "cublasLtMatmulAlgoCheck",
                                        "cublasLtMatmulAlgoConfigGetAttribute",
                                        "cublasLtMatmul"};
    _Static_assert(sizeof names / sizeof *names == sizeof(lt_library) / sizeof(void *), "every one of them");
    void *at = real_library();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!dlsym(at, names[i])) fail_msg("it lacks %s", names[i]);
}

static void what_needs_no_device_works(void **state)
{
    lt_library lt;
    lt_handle handle = NULL;
    lt_desc desc = NULL;
    lt_layout layout = NULL;
    lt_pref pref = NULL;
    const int32_t transposed = LT_OP_T;
    void *at = real_library();
#define FIND(name) *(void **)(&lt.name) = dlsym(at, #name)
    FIND(cublasLtCreate);
    FIND(cublasLtDestroy);
    FIND(cublasLtGetVersion);
    FIND(cublasLtMatmulDescCreate);
    FIND(cublasLtMatmulDescSetAttribute);
    FIND(cublasLtMatmulDescDestroy);
    FIND(cublasLtMatrixLayoutCreate);
    FIND(cublasLtMatrixLayoutDestroy);
    FIND(cublasLtMatmulPreferenceCreate);
    FIND(cublasLtMatmulPreferenceDestroy);
#undef FIND
    assert_true(lt.cublasLtGetVersion() >= 120000);
    assert_int_equal(lt.cublasLtMatmulDescCreate(&desc, LT_COMPUTE_32F, LT_R_32F), 0);
    assert_int_equal(lt.cublasLtMatmulDescSetAttribute(desc, LT_DESC_TRANSA, &transposed, sizeof transposed),
                     0);
    assert_int_equal(lt.cublasLtMatrixLayoutCreate(&layout, LT_R_32F, 8, 8, 8), 0);
    assert_int_equal(lt.cublasLtMatmulPreferenceCreate(&pref), 0);
    lt.cublasLtMatmulPreferenceDestroy(pref);
    lt.cublasLtMatrixLayoutDestroy(layout);
    lt.cublasLtMatmulDescDestroy(desc);
    printf("version %zu; descriptions and layouts are made\n", lt.cublasLtGetVersion());
#ifndef EXPHIL_SANITIZE /* it loses 192 bytes where there is no device, which is not ours to mend */
    const int status = lt.cublasLtCreate(&handle);
    printf("cublasLtCreate gives %d\n", status);
    if (status == 0) lt.cublasLtDestroy(handle);
#else
    (void)handle;
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_function_is_there),
        cmocka_unit_test(what_needs_no_device_works),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
