/* Files that the environment names and that are not what they should be: libraries that are cut, too old, or none, in the places
 * of cuBLASLt, cuDNN and NCCL, and choices of algorithms that are too long, of another version, hold zeros, or speak of products
 * that nobody asks for or twice of one. What is odd is told once, by a line of the log or a status, nothing hangs or ends the
 * process, and the work is done. */
#include "emulated.h"

#include "device/device.h"

#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the log ---- */

typedef struct heard {
    int lines, asked; /* lines with the words that are asked for */
    const char *words;
    char last[512];
} heard;

static void hear(void *user, exphil_log_level level, const char *message)
{
    heard *h = user;
    if (level > EXPHIL_LOG_WARNING) return;
    h->lines++;
    if (h->words && strstr(message, h->words)) {
        h->asked++;
        snprintf(h->last, sizeof h->last, "%s", message);
    }
}

static exphil_status opened(const char *device, heard *h, exphil_context **context, exphil_error *error)
{
    exphil_context_config config = emulated_config(device, hear, h);
    config.threads = 1;
    *error = (exphil_error)EXPHIL_ERROR_INIT;
    return exphil_context_create(&config, context, error);
}

/* ---- files ---- */

static const char *kept_path(const char *name)
{
    static char paths[16][512];
    static int next;
    char *path = paths[next++ % 16];
    snprintf(path, sizeof paths[0], "%s", test_path(name));
    return path;
}

static const char *written(const char *name, const void *data, size_t bytes)
{
    const char *path = kept_path(name);
    test_write(path, data, bytes);
    return path;
}

/* The first bytes of another, or with a hole behind it of any length. */
static const char *cut(const char *name, const char *from, size_t bytes)
{
    size_t all;
    char *data = test_read(from, &all);
    assert_non_null(data);
    const char *path = written(name, data, bytes < all ? bytes : all);
    if (bytes > all) assert_int_equal(truncate(path, (off_t)bytes), 0);
    free(data);
    return path;
}

/* ---- libraries ---- */

/* What a process of its own says: 0, all is well; it may not wait for ever. */
typedef int (*trial)(const char *path);

static void alone(trial of, const char *variable, const char *path)
{
    int status = -1;
    const pid_t child = fork();
    if (!child) {
        signal(SIGSEGV, SIG_DFL);
        alarm(120);
        setenv(variable, path, 1);
        _exit(of(path));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status != 0)
        fail_msg("%s=%.80s: %s %d", variable, path, WIFSIGNALED(status) ? "signal" : "exit",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

enum { BATCH = 4, TIME = 512, DIM = 64, WINDOW = 20 };

/* The kernel of a long attention. */
static const char *attention_by(const exphil_context *context)
{
    xph_device *device = xph_context_backend(context);
    xph_op_info info = {.refused = 0};
    xph_attention_args a = {.type = XPH_BF16,
                            .fresh = 1,
                            .batch = BATCH,
                            .time = TIME,
                            .heads = 1,
                            .dim = DIM,
                            .window = WINDOW,
                            .ldqkv = 3 * DIM,
                            .ldy = DIM,
                            .ld_state = 2 * WINDOW * DIM + 2};
    return device->backend->query(device, XPH_OP_ATTENTION, &a, &info) == EXPHIL_OK ? info.name : "none";
}

/* Two contexts, asked twice each: own kernels do it, which is said once. */
static int attention_without(const char *path)
{
    heard h = {.words = "no cuDNN, attention by own kernels: "};
    exphil_context *context[2];
    exphil_error error;
    for (int i = 0; i < 2; i++)
        if (opened("cuda:0", &h, &context[i], &error) < 0) return 1;
    for (int i = 0; i < 4; i++) {
        const char *by = attention_by(context[i % 2]);
        if (strcmp(by, "none") == 0 || strcmp(by, "attention_cudnn") == 0) return 2;
    }
    for (int i = 0; i < 2; i++) exphil_context_destroy(context[i]);
    return h.asked == 1 ? 0 : 3;
}

static int attention_with(const char *path)
{
    heard h = {.words = "cuDNN"};
    exphil_context *context;
    exphil_error error;
    (void)emulated_cudnn();
    if (opened("cuda:0", &h, &context, &error) < 0) return 1;
    const char *by = attention_by(context);
    if (strcmp(by, "attention_cudnn") != 0) return 2;
    exphil_context_destroy(context);
    return h.asked == 0 ? 0 : 3;
}

/* Of a library that says so of itself. */
static int too_old(const char *path)
{
    emulated_cudnn()->version = 8907;
    heard h = {.words = "it is too old"};
    exphil_context *context;
    exphil_error error;
    if (opened("cuda:0", &h, &context, &error) < 0) return 1;
    for (int i = 0; i < 2; i++)
        if (strcmp(attention_by(context), "attention_cudnn") == 0) return 2;
    exphil_context_destroy(context);
    return h.asked == 1 ? 0 : 3;
}

static int products_without(const char *path)
{
    heard h = {.words = "no cuBLASLt, products by own kernels: "};
    exphil_context *context[2];
    exphil_error error;
    for (int i = 0; i < 2; i++)
        if (opened("cuda:0", &h, &context[i], &error) < 0) return 1;
    for (int i = 0; i < 2; i++) exphil_context_destroy(context[i]);
    return h.asked == 1 ? 0 : 3;
}

static int no_ranks(const char *path)
{
    heard h = {.words = NULL};
    exphil_context *context;
    exphil_error error;
    uint8_t id[XPH_COMM_ID_BYTES];
    if (opened("cuda:0", &h, &context, &error) < 0) return 1;
    xph_device *device = xph_context_backend(context);
    for (int i = 0; i < 2; i++) {
        error = (exphil_error)EXPHIL_ERROR_INIT;
        if (device->backend->comm_id(id, &error) != EXPHIL_E_UNSUPPORTED) return 2;
        if (!strstr(error.message, "NCCL")) return 3;
    }
    exphil_context_destroy(context);
    return 0;
}

static const char *a_pipe(void)
{
    const char *path = kept_path("pipe");
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    return path;
}

/* Of the file, those that a loader maps. */
static size_t loaded_bytes(const char *path)
{
    size_t bytes, most = 0;
    char *data = test_read(path, &bytes);
    ElfW(Ehdr) head;
    memcpy(&head, data, sizeof head);
    for (size_t i = 0; i < head.e_phnum; i++) {
        ElfW(Phdr) part;
        memcpy(&part, data + head.e_phoff + i * sizeof part, sizeof part);
        if (part.p_type == PT_LOAD && part.p_offset + part.p_filesz > most)
            most = part.p_offset + part.p_filesz;
    }
    free(data);
    assert_true(most > 0 && most <= bytes);
    return most;
}

static void each_that_is_none(trial of, const char *variable, const char *real, const char *other)
{
    static char longest[5001];
    static const char zeros[4096];
    memset(longest, 'x', sizeof longest - 1);
    longest[0] = '/';
    const char *const odd[] = {"/",
                               "/dev/null",
                               "/dev/zero",
                               "nowhere/at/all",
                               "no-such-library.so",
                               longest,
                               other, /* lacks functions */
                               a_pipe(),
                               written("empty", "", 0),
                               written("words", "no library\n", 11),
                               written("zeros", zeros, sizeof zeros),
                               cut("huge", written("few", "\177ELF", 4), (size_t)1 << 36)};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) alone(of, variable, odd[i]);
    /* cut where the loader would touch what is no longer there */
    for (size_t part = 1; part <= 6; part++)
        alone(of, variable, cut("cut.so", real, loaded_bytes(real) * part / 8));
    alone(of, variable, cut("cut.so", real, 64));
    alone(of, variable, cut("cut.so", real, 100));
    /* and by one byte of the last that is to be in memory */
    alone(of, variable, cut("cut.so", real, loaded_bytes(real) - 1));
}

static void in_the_place_of_cudnn(void **state)
{
    each_that_is_none(attention_without, "EXPHIL_CUDNN", EMULATED_CUDNN, EMULATED_BLASLT);
    alone(too_old, "EXPHIL_CUDNN", EMULATED_CUDNN);
    /* a whole one is taken, with something behind it too */
    alone(attention_with, "EXPHIL_CUDNN", EMULATED_CUDNN);
    alone(attention_with, "EXPHIL_CUDNN", cut("longer.so", EMULATED_CUDNN, (size_t)1 << 20));
}

static void in_the_place_of_cublaslt(void **state)
{
    each_that_is_none(products_without, "EXPHIL_CUBLASLT", EMULATED_BLASLT, EMULATED_CUDNN);
}

static void in_the_place_of_nccl(void **state)
{
    each_that_is_none(no_ranks, "EXPHIL_NCCL", EMULATED_NCCL, EMULATED_BLASLT);
    test_folder_remove();
}

/* ---- choices ---- */

enum { TEXT = 1 << 16 };

/* A file of choices in parts. */
typedef struct choices {
    char head[512], line[1024]; /* up to the number of products; the one of emulated_product() */
} choices;

static choices choices_made(void)
{
    choices c;
    float y[EMULATED_NUMBERS];
    char name[64];
    unsetenv("EXPHIL_CUBLASLT_CHOICES");
    emulated_product(y, name, test_path("tuned"));
    size_t bytes;
    char *text = test_read(test_path("tuned"), &bytes), *at = strstr(text, "products ");
    assert_non_null(at);
    snprintf(c.head, sizeof c.head, "%.*s", (int)(at - text), text);
    at = strchr(at, '\n') + 1;
    snprintf(c.line, sizeof c.line, "%.*s", (int)(strchr(at, '\n') + 1 - at), at);
    free(text);
    return c;
}

/* With an algorithm's number, and a shape of other numbers where m is not 0. */
static void line_of(const choices *c, int number, long m, char to[1024])
{
    char *word;
    snprintf(to, 1024, "%s", c->line);
    word = strstr(to, " 0000000000005eed");
    assert_non_null(word);
    word[-1] = (char)('0' + number);
    if (!m) return;
    char rest[900];
    assert_true(snprintf(rest, sizeof rest, "%s", strchr(to + strlen("product "), ' ')) < (int)sizeof rest);
    snprintf(to, 1024, "product %ld%s", m, rest);
}

/* These lines after the head, with a right sum. bytes 0: as long as the text is. */
static const char *file_of(const char *head, const char *body, long products)
{
    static char text[TEXT];
    size_t at = (size_t)snprintf(text, sizeof text, "%sproducts %ld\n%s", head, products, body);
    at += (size_t)snprintf(text + at, sizeof text - at, "sum %016llx\n",
                           (unsigned long long)emulated_sum(text, at));
    return written("choices", text, at);
}

static int taken_number(fake_blaslt *lt, const char *path, char name[64], float y[EMULATED_NUMBERS])
{
    for (int i = 0; i < FAKE_ALGORITHMS; i++) lt->by[i] = 0;
    setenv("EXPHIL_CUBLASLT_CHOICES", path, 1);
    emulated_product(y, name, NULL);
    unsetenv("EXPHIL_CUBLASLT_CHOICES");
    for (int i = 0; i < FAKE_ALGORITHMS; i++)
        if (lt->by[i]) return i;
    return -1;
}

/* A choice for a product that nobody asks for, or none at all, changes nothing; of two for one the first counts, every time. */
static void choices_that_are_right(void **state)
{
    fake_blaslt *lt = emulated_blaslt();
    const choices c = choices_made();
    float own[EMULATED_NUMBERS], y[EMULATED_NUMBERS];
    char name[64], one[1024], two[1024], both[2048];
    unsetenv("EXPHIL_CUBLASLT_CHOICES");
    emulated_product(own, name, NULL);
    assert_string_equal(name, "linear_cublaslt");
    assert_int_equal(taken_number(lt, file_of(c.head, "", 0), name, y), 0);
    assert_string_equal(name, "linear_cublaslt");
    assert_memory_equal(y, own, sizeof own);
    line_of(&c, 1, 17, one);
    assert_int_equal(taken_number(lt, file_of(c.head, one, 1), name, y), 0);
    assert_string_equal(name, "linear_cublaslt");
    assert_memory_equal(y, own, sizeof own);
    line_of(&c, 1, 0, one);
    line_of(&c, 2, 0, two);
    for (int turn = 0; turn < 4; turn++) {
        snprintf(both, sizeof both, "%s%s", turn % 2 ? two : one, turn % 2 ? one : two);
        assert_int_equal(taken_number(lt, file_of(c.head, both, 2), name, y), turn % 2 ? 2 : 1);
        assert_non_null(strstr(name, "linear_cublaslt/"));
    }
    emulated_clean();
}

static exphil_status refused(const char *path, exphil_error *error)
{
    heard h = {.words = "EXPHIL_CUBLASLT_CHOICES"};
    exphil_context *context = NULL;
    setenv("EXPHIL_CUBLASLT_CHOICES", path, 1);
    const exphil_status status = opened("cuda:0", &h, &context, error);
    if (status >= 0) exphil_context_destroy(context);
    assert_int_equal(h.lines, 0); /* the status says it */
    /* who takes what there is goes on without the device, and is told why, once */
    exphil_error other;
    assert_int_equal(opened("auto", &h, &context, &other), EXPHIL_OK);
    exphil_device_info info = EXPHIL_DEVICE_INFO_INIT;
    assert_int_equal(exphil_context_device(context, &info, NULL), EXPHIL_OK);
    assert_string_equal(info.id, status < 0 ? "cpu" : "cuda:0");
    assert_int_equal(h.asked, status < 0);
    exphil_context_destroy(context);
    unsetenv("EXPHIL_CUBLASLT_CHOICES");
    return status;
}

static void choices_that_are_odd(void **state)
{
    (void)emulated_blaslt();
    const choices c = choices_made();
    exphil_error error;
    char head[600], one[1024], other[2048], *at;
    line_of(&c, 1, 0, one);
    assert_int_equal(refused(file_of(c.head, one, 1), &error), EXPHIL_OK);
    /* another version of the file, of the library, another card */
    snprintf(head, sizeof head, "exphil cublaslt choices 2%s", strchr(c.head, '\n'));
    assert_int_equal(refused(file_of(head, one, 1), &error), EXPHIL_E_FORMAT);
    assert_says(&error, "byte 0: \"exphil cublaslt choices 1\" wanted");
    snprintf(head, sizeof head, "%s", c.head);
    at = strstr(head, "\nlibrary ");
    at[9] = at[9] == '9' ? '8' : '9';
    assert_int_equal(refused(file_of(head, one, 1), &error), EXPHIL_E_UNSUPPORTED);
    assert_says(&error, "run exphil bench tune");
    snprintf(head, sizeof head, "exphil cublaslt choices 1\ncard Another%s", strstr(c.head, "\nisa "));
    assert_int_equal(refused(file_of(head, one, 1), &error), EXPHIL_E_UNSUPPORTED);
    assert_says(&error, "Another");
    /* more or fewer lines than it says, too many, a number below 0 */
    assert_int_equal(refused(file_of(c.head, one, 2), &error), EXPHIL_E_FORMAT);
    assert_says(&error, "\"product\" wanted");
    assert_int_equal(refused(file_of(c.head, one, 0), &error), EXPHIL_E_FORMAT);
    assert_says(&error, "sum wanted");
    assert_int_equal(refused(file_of(c.head, one, 1L << 40), &error), EXPHIL_E_FORMAT);
    assert_says(&error, "products wanted");
    assert_int_equal(refused(file_of(c.head, one, -1), &error), EXPHIL_E_FORMAT);
    /* shapes that cannot be */
    line_of(&c, 1, -5, other);
    assert_int_equal(refused(file_of(c.head, other, 1), &error), EXPHIL_E_FORMAT);
    assert_says(&error, "m wanted");
    line_of(&c, 1, 1L << 40, other);
    assert_int_equal(refused(file_of(c.head, other, 1), &error), EXPHIL_E_FORMAT);
    /* lines of another system */
    snprintf(other, sizeof other, "%.*s\r\n", (int)strlen(one) - 1, one);
    assert_int_equal(refused(file_of(c.head, other, 1), &error), EXPHIL_E_FORMAT);
    assert_says(&error, "the end of the line wanted");
    emulated_clean();
}

static void zeros_and_lengths(void **state)
{
    (void)emulated_blaslt();
    const choices c = choices_made();
    exphil_error error;
    char one[1024];
    size_t bytes;
    line_of(&c, 1, 0, one);
    char path[512]; /* names are in buffers that are used in turn */
    snprintf(path, sizeof path, "%s", file_of(c.head, one, 1));
    char *text = test_read(path, &bytes), *with = calloc(1, bytes + 2);
    /* a zero in the place of each byte, before it, and behind the end */
    for (size_t i = 0; i <= bytes; i += i < 200 ? 1 : 7) {
        memcpy(with, text, bytes);
        if (i < bytes) {
            with[i] = 0;
            assert_int_equal(refused(written("zeroed", with, bytes), &error), EXPHIL_E_FORMAT);
        }
        memcpy(with, text, i);
        with[i] = 0;
        memcpy(with + i + 1, text + i, bytes - i);
        assert_int_equal(refused(written("zeroed", with, bytes + 1), &error), EXPHIL_E_FORMAT);
        assert_says(&error, "byte ");
    }
    free(with);
    free(text);
    /* nothing but zeros; as long as may be; longer; much longer, which is not read */
    assert_int_equal(refused(cut("long", written("none", "", 0), 1 << 24), &error), EXPHIL_E_FORMAT);
    assert_int_equal(refused(cut("long", path, 1 << 24), &error), EXPHIL_E_FORMAT);
    assert_says(&error, "the end of the file wanted");
    assert_int_equal(refused(cut("long", path, (1 << 24) + 1), &error), EXPHIL_E_IO);
    assert_says(&error, "it is longer than 16 MiB");
    assert_int_equal(refused(cut("long", path, (size_t)1 << 40), &error), EXPHIL_E_IO);
    /* names of no use */
    assert_int_equal(refused(test_folder(), &error), EXPHIL_E_IO);
    assert_int_equal(refused(a_pipe(), &error), EXPHIL_E_IO);
    assert_int_equal(refused("/dev/zero", &error), EXPHIL_E_IO);
    emulated_clean();
}

static int setup(void **state)
{
    setenv("EXPHIL_CUBLASLT", "none", 1);
    setenv("EXPHIL_CUDNN", "none", 1);
    return 0;
}

static int use_cublaslt(void **state)
{
    setenv("EXPHIL_CUBLASLT", EMULATED_BLASLT, 1);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* each in processes of its own: a library is looked for once */
        cmocka_unit_test(in_the_place_of_cudnn),
        cmocka_unit_test(in_the_place_of_cublaslt),
        cmocka_unit_test(in_the_place_of_nccl),
        cmocka_unit_test_setup(choices_that_are_right, use_cublaslt),
        cmocka_unit_test_setup(choices_that_are_odd, use_cublaslt),
        cmocka_unit_test_setup(zeros_and_lengths, use_cublaslt),
    };
    return cmocka_run_group_tests(tests, setup, test_leave);
}
