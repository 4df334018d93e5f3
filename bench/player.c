/* Policies that play: see step.h. */
#include "frames.h"
#include "platform.h"
#include "say.h"
#include "step.h"

#include <stdlib.h>
#include <string.h>

const char *bench_type_name(int32_t type)
{
    return type == EXPHIL_TYPE_I8 ? "int8" : type == EXPHIL_TYPE_BF16 ? "bf16" : "f32";
}

/* ---- memory that knows itself -------------------------------------------------------------------------- */

static void *block_alloc(void *user, size_t bytes, size_t align)
{
    bench_blocks *b = user;
    void *p = bench_aligned(align < sizeof(void *) ? sizeof(void *) : align, bytes);
    if (!p) return NULL;
    if (b->count < STEP_BLOCKS) {
        b->at[b->count].address = p;
        b->at[b->count++].bytes = bytes;
    }
    return p;
}

static void block_free(void *user, void *pointer, size_t bytes)
{
    bench_blocks *b = user;
    (void)bytes;
    for (int i = 0; i < b->count; i++)
        if (b->at[i].address == pointer) {
            b->at[i] = b->at[--b->count];
            break;
        }
    bench_aligned_free(pointer);
}

void bench_player_flush(void *player)
{
    const bench_player *p = player;
    for (int i = 0; i < p->blocks->count; i++) bench_clear(p->blocks->at[i].address, p->blocks->at[i].bytes);
    bench_flush(p->frames, sizeof *p->frames);
}

/* ---- making one ---------------------------------------------------------------------------------------- */

/* Matrices that a step reads whole, in their type, and vectors in float. Of tables and of what past actions add only
 * single rows are read. */
static bool count_weights(bench_player *p, exphil_error *error)
{
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    if (exphil_model_query(p->model, &info, error) < 0) return false;
    for (int64_t i = 0; i < info.tensor_count; i++) {
        exphil_tensor_info t = EXPHIL_TENSOR_INFO_INIT;
        if (exphil_model_tensor_info(p->model, i, &t, error) < 0) return false;
        if (strncmp(t.name, "ids.", 4) == 0 || strcmp(t.name, "heads.past.weight") == 0) continue;
        double numbers = 1;
        for (int32_t d = 0; d < t.rank; d++) numbers *= (double)t.dim[d];
        /* not the rates of a scan and the taps of a convolution */
        bool matrix = t.rank == 2 && !strstr(t.name, ".A_log") && !strstr(t.name, ".conv.");
        double each = !matrix || p->type == EXPHIL_TYPE_F32 ? 4 : p->type == EXPHIL_TYPE_BF16 ? 2 : 1;
        p->weight_bytes += numbers * each;
    }
    return true;
}

static exphil_status draw_model(const bench_player *p, const bench_policy *policy, exphil_model **drawn,
                                exphil_error *error)
{
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    exphil_spec spec = EXPHIL_SPEC_INIT;
    exphil_status status = exphil_melee_spec("exphil288", NULL, &spec, error);
    if (status < 0) return status;
    config.spec = &spec;
    config.blocks = policy->blocks;
    config.hidden = policy->hidden;
    config.seed = 1;
    return exphil_model_create(p->context, &config, drawn, error);
}

/* The model in float, drawn or from a file, then converted to the type. A file of fewer bits has that type alone. */
static exphil_status make_model(bench_player *p, const bench_policy *policy, exphil_error *error)
{
    exphil_model *first = NULL;
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    exphil_status status = policy->file ? exphil_model_load(p->context, policy->file, &first, error)
                                        : draw_model(p, policy, &first, error);
    if (status >= 0) status = exphil_model_query(first, &info, error);
    if (status < 0 || info.weights == p->type) {
        p->model = first;
        return status;
    }
    status = info.weights == EXPHIL_TYPE_F32 ? exphil_model_quantize(first, p->type, &p->model, error)
                                             : EXPHIL_E_UNSUPPORTED;
    exphil_model_destroy(first);
    return status;
}

static exphil_status make_all(bench_player *p, const bench_policy *policy, const char *isa,
                              exphil_error *error)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_session_config play = EXPHIL_SESSION_CONFIG_INIT;
    exphil_allocator allocator = {sizeof allocator, p->blocks, block_alloc, block_free};
    config.allocator = &allocator;
    config.threads = 1;
    config.cpu_isa = isa;
    play.streams = p->streams;
    exphil_status status = exphil_context_create(&config, &p->context, error);
    if (status >= 0) status = make_model(p, policy, error);
    if (status >= 0) status = exphil_session_create(p->model, &play, &p->session, error);
    return status;
}

bool bench_player_make(bench_player *p, const bench_policy *policy, int32_t type, int64_t streams,
                       const char *isa, bool *absent)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    *p = (bench_player){.type = type, .streams = streams};
    p->blocks = calloc(1, sizeof *p->blocks);
    p->frames = calloc((size_t)(STEP_FRAMES * streams), sizeof *p->frames);
    p->pads = calloc((size_t)streams, sizeof *p->pads);
    *absent = false;
    if (!p->blocks || !p->frames || !p->pads) {
        bench_say(NULL, "no memory");
        bench_player_end(p);
        return false;
    }
    for (int64_t i = 0; i < STEP_FRAMES; i++)
        for (int64_t s = 0; s < streams; s++) bench_frame(&p->frames[i * streams + s], i + 17 * s);
    exphil_status status = make_all(p, policy, isa, &error);
    *absent = status == EXPHIL_E_UNSUPPORTED;
    if (status >= 0 && count_weights(p, &error)) return true;
    if (!*absent) bench_say(policy->name, error.message);
    bench_player_end(p);
    return false;
}

void bench_player_end(bench_player *p)
{
    exphil_session_destroy(p->session);
    exphil_model_destroy(p->model);
    exphil_context_destroy(p->context);
    free(p->frames);
    free(p->pads);
    free(p->blocks);
    p->session = NULL, p->model = NULL, p->context = NULL;
    p->frames = NULL, p->pads = NULL, p->blocks = NULL;
}

/* Once is enough to know why. */
static void step_failed(bench_player *p)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    (void)exphil_session_error(p->session, &error);
    if (!p->failed) bench_say(bench_type_name(p->type), error.message);
    p->failed = true;
}

void bench_player_step(void *player, int64_t calls)
{
    bench_player *p = player;
    for (int64_t i = 0; i < calls; i++) {
        const exphil_melee_frame *frames = p->frames + p->at * p->streams;
        if (exphil_session_step(p->session, frames, p->pads) < 0) step_failed(p);
        p->at = (p->at + 1) % STEP_FRAMES;
    }
}
