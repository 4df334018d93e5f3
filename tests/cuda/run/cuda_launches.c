/* What a policy asks of a GPU in one update or one step: every kernel with its grid, its arguments and its stream, every copy,
 * every product of cuBLASLt, in order, as the library enqueues them on the emulated GPU, whose kernels do nothing here (emu_dry).
 * tools/cuda-gate counts what they cost.
 *
 *   cuda_launches CASE FILE [small]
 *
 * CASE: of bench/cuda/cost_cases.h, or one with -transposed behind it: operands of products in tf32 that do not lie along the sum
 * are transposed first (cuda/blaslt_transposed.c), by a file of choices as a library would have it that knows no other way;
 * small: of small sizes. FILE gets a line an operation, those of an update or step that
 * is not among the first between "begin" and "end":
 *   plugin PATH BASE                                         what addresses of kernels are to be taken from
 *   launch STREAM KERNEL GX GY GZ BX BY BZ CLUSTER SHARED ARGUMENTS NAME       (KERNEL: in the plugin; ARGUMENTS: hexadecimal)
 *   product STREAM M N K TYPE RESULT COMPUTE BIAS ADDS TRANSPOSED_A TRANSPOSED_B A B C D
 *   copy STREAM TO FROM BYTES KIND AT                        (KIND: up, down, device; AT: in FILE.bytes, or -1)
 *   set STREAM TO BYTES
 *   run                                                      an operation of table A begins
 *   ran CANDIDATE                                            it ends; - where it was refused
 * FILE.bytes has what was copied to the device and is small enough to be ids, actions, masks or resets. */
#include "cost_cases.h"
#include "emulated.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT_MOST = 8 << 20, WARM_UPDATES = 3, MULTIPROCESSORS = 132 }; /* of an H100 or H200 */

static FILE *list, *bytes;
static bool begun, aside; /* aside: nothing is noted */
static const char *plugin_base;
static int (*product_of)(void (*function)(const void *), const void *data, fake_product *product);

/* ---- what is written ---- */

static bool write_product(const emu_event *e)
{
    const struct {
        void (*function)(const void *);
        _Alignas(16) unsigned char data[256];
    } *call = (const void *)e->arguments;
    fake_product p;
    if (strcmp(e->name, "called") != 0 || !product_of(call->function, call->data, &p)) return false;
    fprintf(list, "product %p %lld %lld %lld %d %d %d %d %d %d %d %p %p %p %p\n", e->stream, p.m, p.n, p.k,
            p.type, p.result, p.compute, p.bias, p.adds, p.transposed[0], p.transposed[1], p.a, p.b, p.c,
            p.d);
    return true;
}

static void write_launch(const emu_event *e)
{
    if (write_product(e)) return;
    fprintf(list, "launch %p %tx %u %u %u %u %u %u %u %zu ", e->stream, (const char *)e->kernel - plugin_base,
            e->grid[0], e->grid[1], e->grid[2], e->block[0], e->block[1], e->block[2], e->cluster,
            e->shared_bytes);
    for (size_t i = 0; i < e->argument_bytes; i++) fprintf(list, "%02x", e->arguments[i]);
    fprintf(list, " %s\n", e->name);
}

static void write_copy(const emu_event *e)
{
    const char *kind = e->to_device && e->from_device ? "device" : e->to_device ? "up" : "down";
    long at = -1;
    if (e->to_device && !e->from_device && e->bytes <= KEPT_MOST) {
        at = ftell(bytes);
        fwrite(e->to, 1, e->bytes, bytes);
    }
    if (begun || at >= 0)
        fprintf(list, "copy %p %p %p %zu %s %ld\n", e->stream, e->to, e->from, e->bytes, kind, at);
}

static void watch(const emu_event *e)
{
    if (aside) return;
    if (e->kind == EMU_COPY) write_copy(e);
    if (e->kind == EMU_LAUNCH && begun) write_launch(e);
    if (e->kind == EMU_SET && begun) fprintf(list, "set %p %p %zu\n", e->stream, e->to, e->bytes);
}

/* ---- what is run ---- */

static void begin(int64_t round)
{
    if (round < WARM_UPDATES) return;
    begun = true;
    fprintf(list, "begin\n");
}

static void end(int64_t round)
{
    if (round < WARM_UPDATES) return;
    begun = false;
    fprintf(list, "end\n");
}

static exphil_status run(const xph_backend *real, xph_stream *stream, const char *name,
                         exphil_status (*work)(void *arg), void *arg)
{
    if (begun) fprintf(list, "run\n");
    const exphil_status status = work(arg);
    if (begun) fprintf(list, "ran %s\n", status < 0 ? "-" : name);
    return status;
}

/* ---- choices ---- */

static void nothing(int64_t round)
{
    (void)round;
}

static exphil_status just_run(const xph_backend *real, xph_stream *stream, const char *name,
                              exphil_status (*work)(void *arg), void *arg)
{
    (void)real, (void)stream, (void)name;
    return work(arg);
}

static void no_line(void *user, const char *line)
{
    (void)user, (void)line;
}

/* Products of the case are asked for, then tuned on a library that has nothing but for operands along the sum. */
static void choose_transposed(const char *name, const char *path, bool small)
{
    const cost_watch how = {
        .rounds = 1, .small = small, .dry = true, .begin = nothing, .end = nothing, .run = just_run};
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_context *context = emulated_context(); /* open all the while, so that plans stay */
    xph_device *device = xph_context_backend(context);
    aside = true;
    cost_case_run(context, name, &how);
    emulated_blaslt()->along = 1;
    if (device->backend->tune(device, path, no_line, NULL, &error) < 0) {
        fprintf(stderr, "cuda_launches: %s\n", error.message);
        exit(1);
    }
    emulated_blaslt()->along = 0;
    exphil_context_destroy(context);
    setenv("EXPHIL_CUBLASLT_CHOICES", path, 1);
    aside = false;
}

static FILE *open_file(const char *name, const char *behind)
{
    char path[4096];
    snprintf(path, sizeof path, "%s%s", name, behind);
    FILE *file = fopen(path, "wb");
    if (file) return file;
    perror(path);
    exit(1);
}

static void find_plugin(void)
{
    Dl_info where;
    void *library = dlopen(EMULATED_BLASLT, RTLD_NOW | RTLD_LOCAL),
         *plugin = dlopen(EMULATED_FOLDER "/libexphil_cuda.so", RTLD_NOW | RTLD_LOCAL);
    if (library) *(void **)(&product_of) = dlsym(library, "fake_product_of");
    void *known = plugin ? dlsym(plugin, "emu_dry") : NULL;
    if (!product_of || !known || !dladdr(known, &where)) {
        fprintf(stderr, "cuda_launches: there is no emulated GPU in " EMULATED_FOLDER "\n");
        exit(1);
    }
    plugin_base = where.dli_fbase;
    fprintf(list, "plugin " EMULATED_FOLDER "/libexphil_cuda.so %p\n", where.dli_fbase);
}

int main(int count, char **words)
{
    const cost_watch how = {
        .rounds = WARM_UPDATES + 1, .small = count == 4, .dry = true, .begin = begin, .end = end, .run = run};
    if (count != 3 && (count != 4 || strcmp(words[3], "small") != 0)) {
        fprintf(stderr, "usage: cuda_launches CASE FILE [small]\n");
        return 2;
    }
    setenv("EXPHIL_CUBLASLT", EMULATED_BLASLT, 1);
    list = open_file(words[2], "");
    bytes = open_file(words[2], ".bytes");
    find_plugin();
    emulated_blaslt();
    emulated_gpu()->multiprocessors(MULTIPROCESSORS);
    emulated_gpu()->dry(watch);
    char name[64], path[4096];
    snprintf(name, sizeof name, "%s", words[1]);
    char *behind = strstr(name, "-transposed");
    if (behind) *behind = 0;
    snprintf(path, sizeof path, "%s.choices", words[2]);
    if (behind) choose_transposed(name, path, how.small);
    exphil_context *context = emulated_context();
    const bool known = cost_case_run(context, name, &how);
    exphil_context_destroy(context);
    emulated_gpu()->dry(NULL);
    const char *fault = emulated_gpu()->fault();
    if (!known) fprintf(stderr, "cuda_launches: no case %s\n", words[1]);
    if (fault) fprintf(stderr, "cuda_launches: %s\n", fault);
    return fclose(list) || fclose(bytes) || fault || !known;
}
