/* Times the algorithms of cuBLASLt for every product that was asked for, and writes the fastest to a file (choices.h). Products of
 * a backward pass in tf32 are also timed with operands transposed first, copies included. */
#include "blaslt.h"

#include <stdio.h>
#include <stdlib.h>

enum { ALIGNMENTS = LT_ALIGNMENTS };

enum { FOUND_MOST = 32, SAMPLES = 5, LAUNCHES = 8 };

typedef struct bench {
    xph_cuda_device *device;
    xph_blaslt *lt;
    cudaStream_t stream;
    cudaEvent_t begin, end;
    void *workspace, *scratch, *block[ALIGNMENTS], *at[ALIGNMENTS];
    size_t bytes[ALIGNMENTS], scratch_bytes;
} bench;

static size_t width_of(int32_t type)
{
    return type == LT_R_32F ? 4 : 2;
}

/* Numbers between 1/2 and 1 of either sign in every type: zeros would cost less power than numbers do. */
static cudaError_t fill(const bench *b, void *to, size_t bytes, int32_t type)
{
    static const uint16_t exponent[] = {0x3800, 0x3f00};
    uint16_t words[4096];
    uint32_t random = 1;
    for (size_t i = 0; i < 4096; i++) {
        random = random * 1664525u + 1013904223u;
        const uint16_t high = (uint16_t)(exponent[type != LT_R_16F] | (random >> 16 & 0x807fu));
        words[i] = type == LT_R_32F && i % 2 == 0 ? (uint16_t)(random >> 16) : high;
    }
    for (size_t done = 0; done < bytes; done += sizeof words) {
        size_t part = bytes - done < sizeof words ? bytes - done : sizeof words;
        cudaError_t code = cudaMemcpyAsync((char *)to + done, words, part, cudaMemcpyHostToDevice, b->stream);
        if (code) return code;
    }
    return cudaStreamSynchronize(b->stream);
}

/* Blocks for the matrices of a product, aligned as it was and no better: the library reads that off the address of the bias. */
static exphil_status blocks_for(bench *b, const shape *s)
{
    const bool ta = s->transpose_a == LT_OP_T, tb = s->transpose_b == LT_OP_T;
    const int64_t columns[ALIGNMENTS] = {ta ? s->m : s->k, tb ? s->k : s->n, s->n, s->n, 1};
    const int64_t ld[ALIGNMENTS] = {s->lda, s->ldb, s->ldc, s->ldd, s->m};
    const int32_t type[ALIGNMENTS] = {s->type_ab, s->type_ab, s->type_cd, s->type_cd,
                                      s->bias < 0 ? LT_R_32F : s->bias};
    for (int i = 0; i < ALIGNMENTS; i++) {
        size_t size = (size_t)columns[i] * (size_t)ld[i] * width_of(type[i]);
        b->bytes[i] = size + 1024;
        exphil_status status = xph_cuda_alloc(&b->device->base, b->bytes[i], &b->block[i]);
        if (status < 0) return status;
        b->at[i] = (char *)b->block[i] + (-(uintptr_t)b->block[i] & 511) + s->align[i];
        status = xph_cuda_check(&b->device->base, fill(b, b->at[i], size, type[i]), "filling a matrix");
        if (status < 0) return status;
    }
    b->scratch_bytes = xph_lt_may_transpose(s, LT_TRANSPOSED) ? xph_lt_transposed_bytes(s, LT_TRANSPOSED)
                       : xph_lt_may_transpose(s, LT_TRANSPOSED_A)
                           ? xph_lt_transposed_bytes(s, LT_TRANSPOSED_A)
                           : 0;
    return b->scratch_bytes ? xph_cuda_alloc(&b->device->base, b->scratch_bytes, &b->scratch) : EXPHIL_OK;
}

static void blocks_free(bench *b)
{
    cudaStreamSynchronize(b->stream);
    for (int i = 0; i < ALIGNMENTS; i++) {
        if (b->block[i]) xph_cuda_free(&b->device->base, b->block[i], b->bytes[i]);
        b->block[i] = NULL;
    }
    if (b->scratch) xph_cuda_free(&b->device->base, b->scratch, b->scratch_bytes);
    b->scratch = NULL;
}

static int launch(const bench *b, const plan *p, const lt_found *found, int times)
{
    const float one = 1.0f, zero = 0.0f; /* sums that grow with every launch would end in infinities */
    int code = p->key.bias >= 0 ? xph_lt_bias(p, b->at[ALIGNMENTS - 1]) : 0;
    for (int i = 0; !code && i < times; i++) {
        const void *operand[2] = {b->at[0], b->at[1]};
        code = xph_lt_transpose(&p->key, p->asked.transposed, operand, b->scratch, b->stream);
        if (!code)
            code = xph_lt.cublasLtMatmul(b->lt->handle, p->desc, &one, operand[0], p->a, operand[1], p->b,
                                         &zero, b->at[2], p->c, b->at[3], p->d, &found->algo, b->workspace,
                                         LT_WORKSPACE, b->stream);
    }
    return code;
}

/* The least milliseconds of one launch; below 0: it does not run. */
static float time_of(const bench *b, const plan *p, const lt_found *found)
{
    float least = -1.0f;
    if (launch(b, p, found, 1)) return -1.0f;
    for (int i = 0; i < SAMPLES; i++) {
        float ms = 0.0f;
        if (cudaEventRecord(b->begin, b->stream) || launch(b, p, found, LAUNCHES) ||
            cudaEventRecord(b->end, b->stream) || cudaEventSynchronize(b->end) ||
            cudaEventElapsedTime(&ms, b->begin, b->end))
            return -1.0f;
        if (least < 0.0f || ms < least) least = ms;
    }
    return least / (float)LAUNCHES;
}

static int32_t config(const lt_algo *algo, int attribute)
{
    int32_t value = -1;
    size_t written = 0;
    return xph_lt.cublasLtMatmulAlgoConfigGetAttribute(algo, attribute, &value, sizeof value, &written)
               ? -1
               : value;
}

/* What was tried of a product. own: what the library would take itself, below 0: that does not run. */
typedef struct tried {
    int count;
    float own, best;
    lt_choice choice;
} tried;

/* Of two that differ by less than a hundredth the one that the library prefers, and the product as it is. */
static void try_all(const bench *b, const plan *p, tried *t)
{
    static const int attributes[LT_CONFIGS] = {LT_CONFIG_ID, LT_CONFIG_TILE_ID, LT_CONFIG_STAGES_ID,
                                               LT_CONFIG_SPLITK_NUM};
    lt_found found[FOUND_MOST];
    int count = 0;
    if (xph_lt_ask(b->lt, p, found, FOUND_MOST, &count)) return;
    for (int i = 0; i < count; i++) {
        if (found[i].state || found[i].workspace_bytes > LT_WORKSPACE) continue;
        const float ms = time_of(b, p, &found[i]);
        if (ms < 0.0f) continue;
        if (t->count++ == 0 && !p->asked.transposed) t->own = ms;
        if (t->count > 1 && ms >= 0.99f * t->best) continue;
        t->best = ms;
        t->choice = (lt_choice){
            .shape = p->key, .workspace_bytes = (int64_t)found[i].workspace_bytes, .algo = found[i].algo};
        t->choice.shape.transposed = p->asked.transposed;
        for (int k = 0; k < LT_CONFIGS; k++) t->choice.config[k] = config(&found[i].algo, attributes[k]);
    }
}

/* As it is first. */
static void try_ways(const bench *b, const shape *of, tried *t)
{
    for (int32_t which = 0; which <= LT_TRANSPOSED; which++) {
        if (which && !xph_lt_may_transpose(of, which)) continue;
        plan p = {.key = *of, .asked = xph_lt_transposed(of, which)};
        if (xph_lt_describe(&p, b->at[ALIGNMENTS - 1]) == 0) try_all(b, &p, t);
        xph_lt_free(&p);
    }
}

static const char *type_name(const shape *s)
{
    return s->compute == LT_COMPUTE_32F_FAST_TF32 ? "tf32" : xph_lt_type(s->type_ab);
}

static exphil_status tune_one(bench *b, const plan *p, lt_choices *to, xph_tune_fn told, void *user)
{
    char line[256], name[LT_NAME], own[32] = "none";
    tried t = {.own = -1.0f};
    exphil_status status = blocks_for(b, &p->key);
    if (status >= 0) try_ways(b, &p->key, &t);
    blocks_free(b);
    if (status < 0) return status;
    if (!t.count) {
        /* a product that the library began and did not end is the device's */
        const cudaError_t code = cudaStreamSynchronize(b->stream);
        return code ? xph_cuda_check(&b->device->base, code, "tuning") : EXPHIL_OK;
    }
    to->of[to->count++] = t.choice;
    xph_choice_name(&t.choice, name);
    if (t.own >= 0.0f) snprintf(own, sizeof own, "%.2f us", (double)t.own * 1e3);
    snprintf(line, sizeof line, "%s m %lld n %lld k %lld %s: %s, %.2f us; cuBLASLt's first %s; %d tried",
             p->key.transpose_a == LT_OP_T   ? "y"
             : p->key.transpose_b == LT_OP_T ? "dw"
                                             : "dx",
             (long long)p->key.m, (long long)p->key.n, (long long)p->key.k, type_name(&p->key), name,
             (double)t.best * 1e3, own, t.count);
    told(user, line);
    return EXPHIL_OK;
}

/* In the order in which they were asked for first. */
static exphil_status tune_all(bench *b, lt_choices *to, xph_tune_fn told, void *user)
{
    exphil_status status = EXPHIL_OK;
    int64_t count = 0;
    for (const plan *p = b->lt->plans; p; p = p->next) count++;
    const plan **order = calloc((size_t)count + 1, sizeof(plan *));
    to->of = calloc((size_t)count + 1, sizeof *to->of);
    if (!order || !to->of) status = EXPHIL_E_MEMORY;
    int64_t i = count;
    for (const plan *p = b->lt->plans; status >= 0 && p; p = p->next) order[--i] = p;
    for (i = 0; status >= 0 && i < count; i++)
        if (!order[i]->refused) status = tune_one(b, order[i], to, told, user);
    free(order);
    return status;
}

static exphil_status bench_open(bench *b)
{
    exphil_status status = xph_cuda_alloc(&b->device->base, LT_WORKSPACE, &b->workspace);
    if (status < 0) return status;
    cudaError_t code = cudaStreamCreateWithFlags(&b->stream, cudaStreamNonBlocking);
    if (!code) code = cudaEventCreateWithFlags(&b->begin, cudaEventDefault);
    if (!code) code = cudaEventCreateWithFlags(&b->end, cudaEventDefault);
    return xph_cuda_check(&b->device->base, code, "a stream to tune on");
}

static void bench_close(bench *b)
{
    if (b->begin) cudaEventDestroy(b->begin);
    if (b->end) cudaEventDestroy(b->end);
    if (b->stream) cudaStreamDestroy(b->stream);
    if (b->workspace) xph_cuda_free(&b->device->base, b->workspace, LT_WORKSPACE);
}

exphil_status xph_cuda_tune(xph_device *device, const char *path, xph_tune_fn told, void *user,
                            exphil_error *error)
{
    XPH_ON(device);
    bench b = {.device = (xph_cuda_device *)device, .lt = ((xph_cuda_device *)device)->blaslt};
    lt_choices choices;
    if (!b.lt) return xph_cuda_fail(error, EXPHIL_E_UNSUPPORTED, 0, "there is no cuBLASLt to tune");
    xph_choices_head(&choices, b.device, xph_lt.cublasLtGetVersion());
    pthread_mutex_lock(&b.lt->lock);
    exphil_status status = bench_open(&b);
    if (status >= 0) status = tune_all(&b, &choices, told, user);
    bench_close(&b);
    pthread_mutex_unlock(&b.lt->lock);
    if (status < 0)
        xph_cuda_fail(error, status, 0, "tuning failed after %lld products", (long long)choices.count);
    if (status >= 0 && !choices.count)
        status = xph_cuda_fail(error, EXPHIL_E_UNSUPPORTED, 0, "cuBLASLt did no product: nothing to tune");
    if (status >= 0) status = xph_choices_write(path, &choices, error);
    xph_choices_free(&choices);
    return status;
}
