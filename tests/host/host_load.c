/* The shared library inside a process that is not its own: loading and using it leaves floating-point mode, locale,
 * signals, folder, mask and standard streams of the host as they were, for this thread and for later ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <exphil/exphil.h>

#include <dlfcn.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__SSE__)
#  include <xmmintrin.h>
#  define MODE() _mm_getcsr()
#else
#  define MODE() 0u
#endif

typedef struct host_state {
    uint32_t mode, mode_of_new_thread;
    char locale[256], folder[1024];
    struct sigaction action[32];
    sigset_t blocked;
    mode_t mask;
} host_state;

static void *mode_here(void *arg)
{
    *(uint32_t *)arg = MODE();
    return NULL;
}

static void observe(host_state *host)
{
    pthread_t thread;
    memset(host, 0, sizeof *host);
    host->mode = MODE() & ~0x3Fu;
    assert_int_equal(pthread_create(&thread, NULL, mode_here, &host->mode_of_new_thread), 0);
    pthread_join(thread, NULL);
    host->mode_of_new_thread &= ~0x3Fu;
    snprintf(host->locale, sizeof host->locale, "%s", setlocale(LC_ALL, NULL));
    assert_non_null(getcwd(host->folder, sizeof host->folder));
    for (int i = 1; i < 32; i++) {
        struct sigaction action;
        memset(&action, 0, sizeof action);
        sigaction(i, NULL, &action);
        host->action[i].sa_handler = action.sa_handler;
        host->action[i].sa_flags = action.sa_flags;
    }
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    for (int i = 1; i < 32; i++) {
        if (sigismember(&blocked, i)) sigaddset(&host->blocked, i);
    }
    host->mask = umask(0);
    umask(host->mask);
}

/* Everything that is written to the standard streams meanwhile. */
static int redirect(int stream, const char *path)
{
    int saved = dup(stream);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(dup2(fileno(file), stream) == stream);
    fclose(file);
    return saved;
}

#define FUNCTION(name)                                                                                       \
  ((void)(*(void **)(&name##_) = dlsym(library, #name)), assert_non_null((void *)(uintptr_t)name##_))

static void use(void *library)
{
    exphil_status (*exphil_context_create_)(const exphil_context_config *, exphil_context **, exphil_error *);
    void (*exphil_context_destroy_)(exphil_context *);
    exphil_status (*exphil_context_memory_)(const exphil_context *, exphil_memory_info *, exphil_error *);
    exphil_status (*exphil_model_load_)(exphil_context *, const char *, exphil_model **, exphil_error *);
    int64_t (*exphil_device_count_)(void);
    FUNCTION(exphil_context_create);
    FUNCTION(exphil_context_destroy);
    FUNCTION(exphil_context_memory);
    FUNCTION(exphil_device_count);
    FUNCTION(exphil_model_load);
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_memory_info memory = EXPHIL_MEMORY_INFO_INIT;
    exphil_context *context = NULL;
    exphil_model *model = NULL;
    config.threads = 3;
    config.device = "auto";
    assert_int_equal(exphil_context_create_(&config, &context, NULL), EXPHIL_OK);
    assert_int_equal(exphil_context_memory_(context, &memory, NULL), EXPHIL_OK);
    assert_true(exphil_device_count_() >= 1);
    assert_true(exphil_model_load_(context, "no such file", &model, NULL) < 0);
    exphil_context_destroy_(context);
}

static void the_host_does_not_notice(void **state)
{
    (void)state;
    static host_state before, loaded, used;
    char path[] = "exphil-host-XXXXXX";
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    close(descriptor);
    setlocale(LC_ALL, "de_DE.UTF-8"); /* if there is one: otherwise "C" stays */
    observe(&before);
    fflush(NULL);
    int out = redirect(1, path), err = redirect(2, path);
    void *library = dlopen(EXPHIL_SHARED_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    observe(&loaded);
    if (library) use(library);
    observe(&used);
    fflush(NULL);
    dup2(out, 1);
    dup2(err, 2);
    struct stat written;
    stat(path, &written);
    unlink(path);
    if (!library) fail_msg("%s", dlerror());
    assert_int_equal(written.st_size, 0);
    assert_memory_equal(&before, &loaded, sizeof before);
    assert_memory_equal(&before, &used, sizeof before);
}

/* Erlang and Python close and open libraries again; running threads and drivers must not be unmapped under them. */
static void closing_does_not_unmap(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        void *library = dlopen(EXPHIL_SHARED_LIBRARY, RTLD_NOW | RTLD_LOCAL);
        assert_non_null(library);
        if (i % 5 == 0) use(library);
        assert_int_equal(dlclose(library), 0);
    }
    void *still = dlopen(EXPHIL_SHARED_LIBRARY, RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(still);
    dlclose(still);
}

static void *use_on_small_stack(void *library)
{
    use(library);
    return NULL;
}

/* Threads of hosts can be as small as this. */
static void a_64_kib_stack_is_enough(void **state)
{
    (void)state;
    void *library = dlopen(EXPHIL_SHARED_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    assert_int_equal(pthread_attr_setstacksize(&attributes, 64 * 1024), 0);
    assert_int_equal(pthread_create(&thread, &attributes, use_on_small_stack, library), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    dlclose(library);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_host_does_not_notice),
        cmocka_unit_test(closing_does_not_unmap),
        cmocka_unit_test(a_64_kib_stack_is_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
