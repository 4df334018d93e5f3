/* Algorithms of cuBLASLt from a file (cuda/choices.c): what was timed is written, taken and named, gives the same bits every
 * time, and a file that is odd, of another card or cut anywhere is refused whole, with the byte. And libraries in the place of
 * cuBLASLt's that are none. */
#include "emulated.h"

#include "device/device.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static exphil_status opens(exphil_error *error)
{
    const exphil_context_config config = emulated_config("cuda:0", NULL, NULL);
    exphil_context *context = NULL;
    *error = (exphil_error)EXPHIL_ERROR_INIT;
    const exphil_status status = exphil_context_create(&config, &context, error);
    if (status >= 0) exphil_context_destroy(context);
    return status;
}

static char text[1 << 16];
static size_t text_bytes;

static const char *tuned(void)
{
    static char path[512];
    float y[EMULATED_NUMBERS];
    char name[64];
    snprintf(path, sizeof path, "%s", test_path("choices"));
    unsetenv("EXPHIL_CUBLASLT_CHOICES");
    emulated_product(y, name, path);
    assert_string_equal(name, "linear_cublaslt");
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    text_bytes = fread(text, 1, sizeof text - 1, file);
    text[text_bytes] = 0;
    fclose(file);
    return path;
}

/* Whichever the clock found, the file is made to say number 1, which adds in another order. */
static void the_choice_is_taken_and_named(void **state)
{
    fake_blaslt *lt = emulated_blaslt();
    float own[EMULATED_NUMBERS], chosen[2][EMULATED_NUMBERS];
    char name[64];
    const char *path = tuned();
    emulated_product(own, name, NULL);
    char *word = strstr(text, " 0000000000005eed");
    assert_non_null(word);
    word[-1] = '1';
    char *sum = strstr(text, "\nsum ");
    snprintf(sum + 5, 18, "%016llx\n", (unsigned long long)emulated_sum(text, (size_t)(sum + 1 - text)));
    test_write(path, text, text_bytes);
    setenv("EXPHIL_CUBLASLT_CHOICES", path, 1);
    for (int i = 0; i < 2; i++) {
        lt->by[1] = lt->queries = lt->checks = 0;
        emulated_product(chosen[i], name, NULL);
        assert_non_null(strstr(name, "linear_cublaslt/"));
        assert_int_equal(lt->by[1], 1);
        assert_int_equal(lt->queries, 0);
        assert_int_equal(lt->checks, 1);
    }
    assert_memory_equal(chosen[0], chosen[1], sizeof own);
    assert_memory_not_equal(chosen[0], own, sizeof own);
    emulated_clean();
}

/* Cut anywhere, a byte changed, of another driver. */
static void files_are_taken_whole(void **state)
{
    const char *path = (emulated_blaslt(), tuned());
    exphil_error error;
    setenv("EXPHIL_CUBLASLT_CHOICES", path, 1);
    assert_int_equal(opens(&error), EXPHIL_OK);
    for (size_t cut = 0; cut < text_bytes; cut++) {
        test_write(path, text, cut);
        assert_int_equal(opens(&error), EXPHIL_E_FORMAT);
        assert_non_null(strstr(error.message, "byte "));
    }
    for (size_t at = 0; at < text_bytes; at++) {
        text[at] ^= 1;
        test_write(path, text, text_bytes);
        const exphil_status status = opens(&error);
        text[at] ^= 1;
        if (status != EXPHIL_E_FORMAT) fail_msg("byte %zu changed: %d %s", at, status, error.message);
    }
    char *driver = strstr(text, "\ndriver "), *sum = strstr(text, "\nsum ");
    driver[8] = driver[8] == '1' ? '2' : '1';
    snprintf(sum + 5, 18, "%016llx\n", (unsigned long long)emulated_sum(text, (size_t)(sum + 1 - text)));
    test_write(path, text, text_bytes);
    assert_int_equal(opens(&error), EXPHIL_E_UNSUPPORTED);
    assert_non_null(strstr(error.message, "driver"));
    emulated_clean();
}

static int told;
static char last[512];

static void hear(void *user, exphil_log_level level, const char *message)
{
    if (level > EXPHIL_LOG_WARNING) return;
    told++;
    snprintf(last, sizeof last, "%s", message);
}

/* While one has the device open with choices, others have them too, or are told why not. */
static void the_first_choices_hold(void **state)
{
    const char *path = (emulated_blaslt(), tuned());
    char other[512], copy[512];
    exphil_error error;
    const exphil_context_config config = emulated_config("cuda:0", hear, NULL);
    exphil_context *more = NULL;
    snprintf(other, sizeof other, "%s", test_path("other"));
    snprintf(copy, sizeof copy, "%s", test_path("copy"));
    test_write(copy, text, text_bytes);
    char *word = strstr(text, " 0000000000005eed"), *sum = strstr(text, "\nsum ");
    assert_non_null(word);
    word[-1] = word[-1] == '1' ? '2' : '1';
    snprintf(sum + 5, 18, "%016llx\n", (unsigned long long)emulated_sum(text, (size_t)(sum + 1 - text)));
    test_write(other, text, text_bytes);
    for (int named = 0; named < 2; named++) {
        if (named) setenv("EXPHIL_CUBLASLT_CHOICES", path, 1);
        exphil_context *first = emulated_context();
        setenv("EXPHIL_CUBLASLT_CHOICES", other, 1);
        assert_int_equal(opens(&error), EXPHIL_E_UNSUPPORTED);
        assert_non_null(strstr(error.message, "is open with other choices"));
        setenv("EXPHIL_CUBLASLT_CHOICES", "/nowhere", 1);
        assert_int_equal(opens(&error), EXPHIL_E_IO);
        setenv("EXPHIL_CUBLASLT_CHOICES", copy, 1);
        assert_int_equal(opens(&error), named ? EXPHIL_OK : EXPHIL_E_UNSUPPORTED);
        unsetenv("EXPHIL_CUBLASLT_CHOICES");
        told = 0;
        assert_int_equal(exphil_context_create(&config, &more, NULL), EXPHIL_OK);
        assert_int_equal(told, named);
        if (named) assert_non_null(strstr(last, "products as EXPHIL_CUBLASLT_CHOICES said"));
        exphil_context_destroy(first);
        exphil_context_destroy(more);
    }
    setenv("EXPHIL_CUBLASLT_CHOICES", other, 1);
    assert_int_equal(opens(&error), EXPHIL_OK);
    unsetenv("EXPHIL_CUBLASLT_CHOICES");
    emulated_clean();
}

static void files_that_are_none(void **state)
{
    exphil_error error;
    static char longest[5001];
    memset(longest, 'x', sizeof longest - 1);
    longest[0] = '/';
    assert_int_equal(mkfifo(test_path("pipe"), 0600), 0);
    const char *const odd[] = {"/", "/dev/null", "/nowhere", longest, test_path("pipe")};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        setenv("EXPHIL_CUBLASLT_CHOICES", odd[i], 1);
        assert_int_equal(opens(&error), EXPHIL_E_IO);
    }
    unsetenv("EXPHIL_CUBLASLT_CHOICES");
    assert_int_equal(opens(&error), EXPHIL_OK);
    emulated_clean();
}

/* Each in a process of its own, for the library is looked for once: it runs with own kernels, and nothing hangs. */
static void libraries_that_are_none(void **state)
{
    static char longest[5001];
    char empty[512], words[512], pipe[512];
    memset(longest, 'x', sizeof longest - 1);
    longest[0] = '/';
    snprintf(empty, sizeof empty, "%s", test_path("empty"));
    snprintf(words, sizeof words, "%s", test_path("words"));
    snprintf(pipe, sizeof pipe, "%s", test_path("pipe"));
    test_write(empty, "", 0);
    test_write(words, "no library\n", 11);
    const char *const odd[] = {"/",  empty,   words,       "/dev/zero",  "nowhere/at/all",
                               pipe, longest, longest + 1, EMULATED_NCCL};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        int status = -1;
        const pid_t child = fork();
        if (!child) {
            exphil_error error;
            alarm(60);
            setenv("EXPHIL_CUBLASLT", odd[i], 1);
            _exit(opens(&error) == EXPHIL_OK ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        if (status != 0) fail_msg("EXPHIL_CUBLASLT=%.60s: %d", odd[i], status);
    }
    test_folder_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_choice_is_taken_and_named), cmocka_unit_test(files_are_taken_whole),
        cmocka_unit_test(the_first_choices_hold),        cmocka_unit_test(files_that_are_none),
        cmocka_unit_test(libraries_that_are_none),
    };
    setenv("EXPHIL_CUBLASLT", EMULATED_BLASLT, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
