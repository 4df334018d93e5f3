/* What a policy asks of a GPU in one update or one step: every kernel with its grid, its arguments and its stream, every copy,
 * every product of cuBLASLt, in order, as the library enqueues them on the emulated GPU, whose kernels do nothing here (emu_dry).
 * tools/cuda-gate counts what they cost.
 *
 *   cuda_launches CASE FILE
 *
 * CASE: update, the policy of bench/cuda/cuda_policy.c; melee2, that which `exphil train` trains by default (ids, past
 * actions); each with -f32, -tf32, -bf16 or -f16 behind it; step-N, a step of N players of the first, melee2-step-N of the second.
 * FILE gets a line an operation, those of the third update or step between "begin" and "end":
 *   plugin PATH BASE                                         what addresses of kernels are to be taken from
 *   launch STREAM KERNEL GX GY GZ BX BY BZ CLUSTER SHARED ARGUMENTS NAME       (KERNEL: in the plugin; ARGUMENTS: hexadecimal)
 *   product STREAM M N K TYPE RESULT COMPUTE BIAS ADDS TRANSPOSED_A TRANSPOSED_B A B C D
 *   copy STREAM TO FROM BYTES KIND AT                        (KIND: up, down, device; AT: in FILE.bytes, or -1)
 *   set STREAM TO BYTES
 * FILE.bytes has what was copied to the device and is small enough to be ids, actions, masks or resets. */
#include "emulated.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLOATS = 288, BATCH = 256, TIME = 60, HIDDEN = 256, KEPT_MOST = 8 << 20, WARM_UPDATES = 3 };

static FILE *list, *bytes;
static bool begun;
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
    if (e->kind == EMU_COPY) write_copy(e);
    if (e->kind == EMU_LAUNCH && begun) write_launch(e);
    if (e->kind == EMU_SET && begun) fprintf(list, "set %p %p %zu\n", e->stream, e->to, e->bytes);
}

static void begin(void)
{
    begun = true;
    fprintf(list, "begin\n");
}

static void end(void)
{
    begun = false;
    fprintf(list, "end\n");
}

/* ---- policies ---- */

static void must(exphil_status status, const exphil_error *error)
{
    if (status >= 0) return;
    fprintf(stderr, "cuda_launches: %s: %s\n", exphil_status_name(status), error->message);
    exit(1);
}

static uint32_t chance = 1;

static uint32_t draw(uint32_t below)
{
    chance = chance * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(chance >> 8) * below >> 24);
}

static exphil_spec spec_of(bool melee)
{
    exphil_spec known = EXPHIL_SPEC_INIT, spec = EXPHIL_SPEC_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    must(exphil_melee_spec(NULL, NULL, &known, &error), &error);
    if (melee) return known;
    spec.layout = "bench";
    spec.codec = "bench";
    spec.float_count = FLOATS;
    spec.head_count = known.head_count;
    spec.heads = known.heads;
    return spec;
}

static exphil_model *model_of(exphil_context *context, const exphil_spec *spec, bool melee)
{
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_model *model = NULL;
    config.spec = spec;
    config.blocks = "mamba*2";
    config.hidden = HIDDEN;
    config.seed = 1;
    config.no_previous_action = !melee;
    must(exphil_model_create(context, &config, &model, &error), &error);
    return model;
}

/* ---- batches ---- */

/* Some ids are the same for a whole game, as characters and stages are; others change, most often to one of a few. */
static int32_t id_of(const exphil_spec *spec, int64_t k, int64_t stream, int64_t frame)
{
    const int32_t entries = spec->ids[k].entries;
    if (entries < 64) return (int32_t)((uint32_t)(stream * 7 + k * 5) % (uint32_t)entries);
    if (frame % 8) return -1; /* as in the frame before */
    const uint32_t few = entries / 8 > 1 ? (uint32_t)entries / 8 : 1;
    return (int32_t)(draw(4) ? draw(few) : draw((uint32_t)entries));
}

static int32_t *ids_of(const exphil_spec *spec, int64_t streams, int64_t frames)
{
    const int64_t wide = spec->id_count;
    int32_t *ids = calloc((size_t)(streams * frames * wide) + 1, sizeof *ids);
    for (int64_t row = 0; row < streams * frames; row++)
        for (int64_t k = 0; k < wide; k++) {
            const int32_t id = id_of(spec, k, row / frames, row % frames);
            ids[row * wide + k] = id < 0 ? ids[(row - 1) * wide + k] : id;
        }
    return ids;
}

static int32_t action_of(const exphil_head_spec *head, int64_t row)
{
    if (row % 5) return head->neutral;
    return (int32_t)draw(head->kind == EXPHIL_BERNOULLI ? 1u << head->count : (uint32_t)head->count);
}

static int32_t *actions_of(const exphil_spec *spec, int64_t rows)
{
    int32_t *actions = calloc((size_t)(rows * spec->head_count) + 1, sizeof *actions);
    for (int64_t i = 0; i < rows * spec->head_count; i++)
        actions[i] = action_of(&spec->heads[i % spec->head_count], i / spec->head_count);
    return actions;
}

static float *floats_of(const exphil_spec *spec, int64_t rows)
{
    float *floats = calloc((size_t)(rows * spec->float_count) + 1, sizeof *floats);
    for (int64_t i = 0; i < rows * spec->float_count; i++) floats[i] = (float)draw(2000) / 1000.0f - 1.0f;
    return floats;
}

/* All rows count; an episode begins with every eighth stream, and with every eighth other in the middle. */
static exphil_batch batch_of(const exphil_spec *spec, int64_t slots)
{
    const int64_t rows = BATCH * TIME;
    exphil_batch batch = EXPHIL_BATCH_INIT;
    float *mask = calloc((size_t)rows, sizeof *mask);
    uint8_t *reset = calloc((size_t)rows, 1);
    for (int64_t row = 0; row < rows; row++) mask[row] = 1;
    for (int64_t b = 0; b < BATCH; b++)
        if (b % 4 == 0) reset[b * TIME + (b % 8 ? TIME / 2 : 0)] = 1;
    batch.batch = BATCH;
    batch.time = TIME;
    batch.frames = rows;
    batch.floats = floats_of(spec, rows);
    batch.ids = ids_of(spec, BATCH, TIME);
    batch.actions = actions_of(spec, rows);
    batch.past = slots ? actions_of(spec, rows * slots) : NULL;
    batch.mask = mask;
    batch.reset = reset;
    return batch;
}

static void free_batch(const exphil_batch *batch)
{
    const void *const all[] = {batch->floats, batch->ids,  batch->actions,
                               batch->past,   batch->mask, batch->reset};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free((void *)(uintptr_t)all[i]);
}

/* ---- cases ---- */

static void update(exphil_context *context, bool melee, int32_t precision)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_optimizer_config adam = EXPHIL_OPTIMIZER_CONFIG_INIT;
    exphil_trainer_config config = EXPHIL_TRAINER_CONFIG_INIT;
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    exphil_optimizer *optimizer = NULL;
    exphil_trainer *trainer = NULL;
    const exphil_spec spec = spec_of(melee);
    exphil_model *model = model_of(context, &spec, melee);
    adam.rate = 1e-4;
    adam.decay = 0.01;
    adam.clip_norm = 1;
    config.precision = precision;
    must(exphil_model_query(model, &info, &error), &error);
    must(exphil_optimizer_create(model, &adam, &optimizer, &error), &error);
    must(exphil_trainer_create(model, optimizer, NULL, &config, &trainer, &error), &error);
    const exphil_batch batch = batch_of(&spec, info.action_slots);
    for (int i = 0; i <= WARM_UPDATES; i++) {
        if (i == WARM_UPDATES) begin();
        must(exphil_trainer_step_batch(trainer, &batch, &metrics, &error), &error);
    }
    end();
    free_batch(&batch);
    exphil_trainer_destroy(trainer);
    exphil_optimizer_destroy(optimizer);
    exphil_model_destroy(model);
}

/* Nothing is computed, so that what a step gives is not looked at. */
static void step(exphil_context *context, bool melee, int64_t streams)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    exphil_session *session = NULL;
    const exphil_spec spec = spec_of(melee);
    exphil_model *model = model_of(context, &spec, melee);
    float *floats = floats_of(&spec, streams);
    int32_t *ids = ids_of(&spec, streams, 1), *actions = actions_of(&spec, streams);
    config.streams = streams;
    must(exphil_session_create(model, &config, &session, &error), &error);
    for (int i = 0; i <= WARM_UPDATES; i++) {
        if (i == WARM_UPDATES) begin();
        (void)!exphil_session_step_row(session, floats, spec.id_count ? ids : NULL, NULL, actions);
    }
    end();
    free(floats);
    free(ids);
    free(actions);
    exphil_session_destroy(session);
    exphil_model_destroy(model);
}

static bool run(exphil_context *context, const char *name)
{
    static const struct {
        const char *name;
        int32_t precision;
    } kinds[] = {{"f32", EXPHIL_PRECISION_F32},
                 {"tf32", EXPHIL_PRECISION_TF32},
                 {"bf16", EXPHIL_PRECISION_BF16},
                 {"f16", EXPHIL_PRECISION_F16}};
    const bool melee = strncmp(name, "melee2-", 7) == 0;
    const char *what = melee ? name + 7 : strncmp(name, "update-", 7) == 0 ? name + 7 : name;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (what != name && strcmp(what, kinds[i].name) == 0) {
            update(context, melee, kinds[i].precision);
            return true;
        }
    if (strncmp(what, "step-", 5) != 0 || atoll(what + 5) < 1) return false;
    step(context, melee, atoll(what + 5));
    return true;
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
    if (count != 3) {
        fprintf(stderr, "usage: cuda_launches CASE FILE\n");
        return 2;
    }
    setenv("EXPHIL_CUBLASLT", EMULATED_BLASLT, 1);
    list = open_file(words[2], "");
    bytes = open_file(words[2], ".bytes");
    find_plugin();
    emulated_blaslt();
    emulated_gpu()->dry(watch);
    exphil_context *context = emulated_context();
    const bool known = run(context, words[1]);
    exphil_context_destroy(context);
    emulated_gpu()->dry(NULL);
    const char *fault = emulated_gpu()->fault();
    if (!known) fprintf(stderr, "cuda_launches: no case %s\n", words[1]);
    if (fault) fprintf(stderr, "cuda_launches: %s\n", fault);
    return fclose(list) || fclose(bytes) || fault || !known;
}
