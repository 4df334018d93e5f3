/* Reads and writes choices of algorithms (choices.h). A file is taken whole or not at all. */
#include "choices.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST "exphil cublaslt choices 1\n"

enum { MOST_BYTES = 16 << 20, MOST_PRODUCTS = 1 << 14, LINE = 1024, NUMBERS = 24 };

static uint64_t sum_of(const char *text, size_t bytes)
{
    uint64_t sum = 0xcbf29ce484222325u;
    for (size_t i = 0; i < bytes; i++) sum = (sum ^ (unsigned char)text[i]) * 0x100000001b3u;
    return sum;
}

/* ---- numbers of a product, in the order of the file ---- */

typedef struct field {
    const char *name;
    size_t at;
    int32_t bytes;
    int64_t least, most;
} field;

#define SHAPE(name, bytes, least, most)                                                                      \
  {                                                                                                          \
#    name, offsetof(lt_choice, shape.name), bytes, least, most                                               \
  }
#define ALIGN(i, name)                                                                                       \
  {                                                                                                          \
    name, offsetof(lt_choice, shape.align) + 4 * (i), 4, 1, 256                                              \
  }
#define CONFIG(i, name)                                                                                      \
  {                                                                                                          \
    name, offsetof(lt_choice, config) + 4 * (i), 4, -1, INT32_MAX                                            \
  }
static const field fields[NUMBERS] = {
    SHAPE(m, 8, 1, INT32_MAX),
    SHAPE(n, 8, 1, INT32_MAX),
    SHAPE(k, 8, 1, INT32_MAX),
    SHAPE(lda, 8, 1, INT64_MAX),
    SHAPE(ldb, 8, 1, INT64_MAX),
    SHAPE(ldc, 8, 1, INT64_MAX),
    SHAPE(ldd, 8, 1, INT64_MAX),
    SHAPE(transpose_a, 4, 0, 1),
    SHAPE(transpose_b, 4, 0, 1),
    SHAPE(type_ab, 4, 0, 64),
    SHAPE(type_cd, 4, 0, 64),
    SHAPE(compute, 4, 0, 128),
    SHAPE(bias, 4, -1, 64),
    ALIGN(0, "align_a"),
    ALIGN(1, "align_b"),
    ALIGN(2, "align_c"),
    ALIGN(3, "align_d"),
    ALIGN(4, "align_bias"),
    SHAPE(transposed, 4, 0, LT_TRANSPOSED),
    {"workspace", offsetof(lt_choice, workspace_bytes), 8, 0, (int64_t)LT_WORKSPACE},
    CONFIG(0, "algorithm"),
    CONFIG(1, "tile"),
    CONFIG(2, "stages"),
    CONFIG(3, "parts"),
};

static int64_t get(const lt_choice *c, const field *f)
{
    int32_t narrow;
    int64_t wide;
    memcpy(&narrow, (const char *)c + f->at, sizeof narrow);
    if (f->bytes == 4) return narrow;
    memcpy(&wide, (const char *)c + f->at, sizeof wide);
    return wide;
}

static void put(lt_choice *c, const field *f, int64_t value)
{
    const int32_t narrow = (int32_t)value;
    memcpy((char *)c + f->at, f->bytes == 4 ? (const void *)&narrow : (const void *)&value, (size_t)f->bytes);
}

/* ---- reading ---- */

typedef struct reader {
    const char *path, *text;
    size_t at, bytes;
    exphil_error *error;
} reader;

static exphil_status wrong(const reader *r, const char *what)
{
    return xph_cuda_fail(r->error, EXPHIL_E_FORMAT, 0, "EXPHIL_CUBLASLT_CHOICES: %.200s: byte %zu: %s wanted",
                         r->path, r->at, what);
}

static bool take(reader *r, const char *word)
{
    size_t length = strlen(word);
    if (r->bytes - r->at < length || memcmp(r->text + r->at, word, length) != 0) return false;
    r->at += length;
    return true;
}

static bool number(reader *r, int64_t least, int64_t most, int64_t *value)
{
    const size_t begin = r->at;
    const bool minus = r->at < r->bytes && r->text[r->at] == '-';
    int64_t n = 0;
    size_t at = begin + minus, digits = at;
    for (; at < r->bytes && r->text[at] >= '0' && r->text[at] <= '9'; at++)
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, r->text[at] - '0', &n))
            return false;
    if (at == digits) return false;
    n = minus ? -n : n;
    if (n < least || n > most) return false;
    r->at = at;
    *value = n;
    return true;
}

static bool word(reader *r, uint64_t *value)
{
    uint64_t w = 0;
    if (r->bytes - r->at < 16) return false;
    for (int i = 0; i < 16; i++) {
        const char *digits = "0123456789abcdef", c = r->text[r->at + (size_t)i];
        const char *found = c ? strchr(digits, c) : NULL;
        if (!found) return false;
        w = w << 4 | (uint64_t)(found - digits);
    }
    r->at += 16;
    *value = w;
    return true;
}

static bool text_line(reader *r, const char *name, char *to, size_t room)
{
    size_t length = 0;
    if (!take(r, name)) return false;
    while (r->at + length < r->bytes && r->text[r->at + length] != '\n') length++;
    if (r->at + length == r->bytes || length == 0 || length >= room) return false;
    if (memchr(r->text + r->at, 0, length)) return false;
    memcpy(to, r->text + r->at, length);
    to[length] = 0;
    r->at += length + 1;
    return true;
}

static bool number_line(reader *r, const char *name, int64_t most, int64_t *to)
{
    return take(r, name) && number(r, 0, most, to) && take(r, "\n");
}

static exphil_status read_product(reader *r, lt_choice *c)
{
    if (!take(r, "product")) return wrong(r, "\"product\"");
    for (int i = 0; i < NUMBERS; i++) {
        int64_t value;
        if (!take(r, " ") || !number(r, fields[i].least, fields[i].most, &value))
            return wrong(r, fields[i].name);
        put(c, &fields[i], value);
    }
    if (c->shape.transposed && !xph_lt_may_transpose(&c->shape, c->shape.transposed))
        return wrong(r, "a product whose operands can be transposed");
    for (int i = 0; i < 8; i++)
        if (!take(r, " ") || !word(r, &c->algo.data[i])) return wrong(r, "a word of the algorithm");
    return take(r, "\n") ? EXPHIL_OK : wrong(r, "the end of the line");
}

static exphil_status read_text(reader *r, lt_choices *to)
{
    uint64_t sum;
    exphil_status status = EXPHIL_OK;
    if (!take(r, FIRST)) return wrong(r, "\"exphil cublaslt choices 1\"");
    if (!text_line(r, "card ", to->card, sizeof to->card)) return wrong(r, "card");
    if (!text_line(r, "isa ", to->isa, sizeof to->isa)) return wrong(r, "isa");
    if (!number_line(r, "driver ", INT32_MAX, &to->driver)) return wrong(r, "driver");
    if (!number_line(r, "library ", INT32_MAX, &to->library)) return wrong(r, "library");
    if (!number_line(r, "products ", MOST_PRODUCTS, &to->count)) return wrong(r, "products");
    to->of = calloc((size_t)to->count + 1, sizeof *to->of);
    to->taken = calloc((size_t)to->count + 1, sizeof *to->taken);
    if (!to->of || !to->taken)
        return xph_cuda_fail(r->error, EXPHIL_E_MEMORY, 0, "could not get %zu bytes",
                             ((size_t)to->count + 1) * (sizeof *to->of + sizeof *to->taken));
    for (int64_t i = 0; status >= 0 && i < to->count; i++) status = read_product(r, &to->of[i]);
    if (status < 0) return status;
    const uint64_t is = sum_of(r->text, r->at);
    if (!take(r, "sum ")) return wrong(r, "sum");
    if (!word(r, &sum) || sum != is) return wrong(r, "the sum of what is before it");
    if (!take(r, "\n") || r->at != r->bytes) return wrong(r, "the end of the file");
    return EXPHIL_OK;
}

static exphil_status load(const char *path, char **text, size_t *bytes, exphil_error *error)
{
    struct stat about;
    /* nothing waits for whoever would write into a pipe */
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const char *why = NULL;
    size_t got = 0;
    if (file < 0 || fstat(file, &about) != 0)
        why = strerror(errno);
    else if (!S_ISREG(about.st_mode))
        why = "it is no regular file";
    else if (about.st_size > MOST_BYTES)
        why = "it is longer than 16 MiB";
    char *at = why ? NULL : malloc((size_t)about.st_size + 1);
    if (!why && !at) why = strerror(ENOMEM);
    for (ssize_t n = 1; !why && n != 0 && got < (size_t)about.st_size; got += (size_t)n) {
        n = read(file, at + got, (size_t)about.st_size - got);
        if (n < 0) {
            n = 0;
            why = strerror(errno);
        }
    }
    if (file >= 0) close(file);
    *text = at;
    *bytes = got;
    return why ? xph_cuda_fail(error, EXPHIL_E_IO, 0, "EXPHIL_CUBLASLT_CHOICES: %.200s: %s", path, why)
               : EXPHIL_OK;
}

void xph_choices_head(lt_choices *choices, const xph_cuda_device *device, size_t library)
{
    int driver = 0;
    *choices = (lt_choices){.library = (int64_t)library};
    cudaDriverGetVersion(&driver);
    choices->driver = driver;
    snprintf(choices->card, sizeof choices->card, "%s", device->info.name);
    snprintf(choices->isa, sizeof choices->isa, "%s", device->info.isa);
}

static exphil_status belongs(const char *path, const lt_choices *file, const lt_choices *here,
                             exphil_error *error)
{
    if (strcmp(file->card, here->card) == 0 && strcmp(file->isa, here->isa) == 0 &&
        file->driver == here->driver && file->library == here->library)
        return EXPHIL_OK;
    return xph_cuda_fail(error, EXPHIL_E_UNSUPPORTED, 0,
                         "EXPHIL_CUBLASLT_CHOICES: %.200s: it is of %.60s (%s), driver %lld, cuBLASLt %lld; "
                         "here are %.60s (%s), %lld, %lld: run exphil bench tune",
                         path, file->card, file->isa, (long long)file->driver, (long long)file->library,
                         here->card, here->isa, (long long)here->driver, (long long)here->library);
}

exphil_status xph_choices_read(const char *path, const xph_cuda_device *device, size_t library,
                               lt_choices *choices, exphil_error *error)
{
    char *text = NULL;
    lt_choices here, file = {.count = 0};
    reader r = {.path = path, .error = error};
    xph_choices_head(&here, device, library);
    exphil_status status = load(path, &text, &r.bytes, error);
    r.text = text;
    if (status >= 0) status = read_text(&r, &file);
    if (status >= 0) status = belongs(path, &file, &here, error);
    free(text);
    if (status < 0) xph_choices_free(&file);
    *choices = file;
    return status;
}

void xph_choices_free(lt_choices *choices)
{
    free(choices->of);
    free(choices->taken);
    choices->of = NULL;
    choices->taken = NULL;
    choices->count = 0;
}

/* Those of a file begin as zeros, so that nothing is undefined between their numbers. */
bool xph_choices_same(const lt_choices *a, const lt_choices *b)
{
    return a->count == b->count && (!a->count || memcmp(a->of, b->of, (size_t)a->count * sizeof *a->of) == 0);
}

/* ---- writing ---- */

static size_t product_line(const lt_choice *c, char line[LINE])
{
    int at = snprintf(line, LINE, "product");
    for (int i = 0; i < NUMBERS; i++)
        at += snprintf(line + at, LINE - (size_t)at, " %lld", (long long)get(c, &fields[i]));
    for (int i = 0; i < 8; i++) at += snprintf(line + at, LINE - (size_t)at, " %016" PRIx64, c->algo.data[i]);
    at += snprintf(line + at, LINE - (size_t)at, "\n");
    return (size_t)at;
}

static char *text_of(const lt_choices *c, size_t *bytes)
{
    size_t room = (size_t)(c->count + 2) * LINE;
    char *text = malloc(room);
    if (!text) return NULL;
    size_t at =
        (size_t)snprintf(text, room, FIRST "card %s\nisa %s\ndriver %lld\nlibrary %lld\nproducts %lld\n",
                         c->card, c->isa, (long long)c->driver, (long long)c->library, (long long)c->count);
    for (int64_t i = 0; i < c->count; i++) at += product_line(&c->of[i], text + at);
    at += (size_t)snprintf(text + at, room - at, "sum %016" PRIx64 "\n", sum_of(text, at));
    *bytes = at;
    return text;
}

/* Under another name first: whoever reads finds the old file or the new one. */
exphil_status xph_choices_write(const char *path, const lt_choices *choices, exphil_error *error)
{
    char beside[4096];
    size_t bytes = 0;
    if (snprintf(beside, sizeof beside, "%s.new", path) >= (int)sizeof beside)
        return xph_cuda_fail(error, EXPHIL_E_INVALID, 0, "path is longer than %zu bytes", sizeof beside - 5);
    char *text = text_of(choices, &bytes);
    if (!text) return xph_cuda_fail(error, EXPHIL_E_MEMORY, 0, "no memory for the text of the choices");
    FILE *file = fopen(beside, "wbe");
    bool good = file && fwrite(text, 1, bytes, file) == bytes;
    if (good) good = fflush(file) == 0 && fsync(fileno(file)) == 0;
    if (file) good = fclose(file) == 0 && good;
    if (good) good = rename(beside, path) == 0;
    int why = errno;
    if (file && !good) unlink(beside);
    free(text);
    return good ? EXPHIL_OK : xph_cuda_fail(error, EXPHIL_E_IO, 0, "%.200s: %s", path, strerror(why));
}

/* ---- finding ---- */

static bool aligned_for(const lt_choice *c, const lt_shape *shape)
{
    for (int i = 0; i < LT_MATRICES + (shape->bias >= 0); i++)
        if (c->shape.align[i] > shape->align[i]) return false;
    return true;
}

const lt_choice *xph_choices_find(const lt_choices *choices, const lt_shape *shape, bool alignment)
{
    for (int64_t i = 0; i < choices->count; i++) {
        const lt_choice *c = &choices->of[i];
        if (memcmp(&c->shape, shape, offsetof(lt_shape, align)) != 0) continue;
        if (!alignment || aligned_for(c, shape)) return c;
    }
    return NULL;
}

const lt_choice *xph_choices_take(lt_choices *choices, const lt_shape *shape)
{
    const lt_choice *found = xph_choices_find(choices, shape, true);
    choices->asked++;
    choices->answered += found != NULL;
    if (found && choices->taken) choices->taken[found - choices->of] = true;
    return found;
}

/* A file of other shapes does nothing, which nobody would see. */
void xph_choices_tell(const lt_choices *choices, const xph_cuda_device *device)
{
    int64_t taken = 0;
    char text[160];
    if (!choices->taken || !choices->asked) return;
    for (int64_t i = 0; i < choices->count; i++) taken += choices->taken[i];
    snprintf(text, sizeof text,
             "cuda:%d: EXPHIL_CUBLASLT_CHOICES: %lld of %lld choices fit; %lld of %lld products have one",
             device->ordinal, (long long)taken, (long long)choices->count, (long long)choices->answered,
             (long long)choices->asked);
    device->host.log(device->host.context, EXPHIL_LOG_INFO, text);
}

void xph_choice_name(const lt_choice *c, char name[LT_NAME])
{
    static const char *const behind[] = {"", ".ta", ".tb", ".tab"};
    snprintf(name, LT_NAME, "%d.%d.%d.%d%s", (int)c->config[0] % 10000, (int)c->config[1] % 10000,
             (int)c->config[2] % 10000, (int)c->config[3] % 10000, behind[c->shape.transposed]);
}
