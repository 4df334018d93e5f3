/* A stand-in for cuBLASLt on the emulated GPU: the functions that cuda/blaslt.c looks up, done by plain loops as kernels of
 * their stream. It refuses what the real one does by its header and documentation (types that do not go together, a bias
 * of another type than the result, addresses aligned worse than was said, a workspace that is not), and whatever else a
 * test asks it to. */
#include "fake_blaslt.h"

#include "blaslt_api.h"
#include "fake_numbers.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lt_handle {
    int magic;
};
struct lt_desc {
    int compute, transpose[2], epilogue, bias_type;
    const void *bias;
    pthread_t by; /* whose bias it is */
};
struct lt_layout {
    int type;
    uint64_t rows, columns;
    int64_t ld;
};
struct lt_pref {
    size_t workspace;
    uint32_t schemes, align[4];
};

enum { MAGIC = 0x17, OK = 0, INVALID = 7, NOT_SUPPORTED = 15, REMEMBERED = 256 };
/* Words of an algorithm: alignments of a, b, c, d, bias; its number; what marks it as ours. */
enum { ALGO_BIAS = 4, ALGO_NUMBER = 5, ALGO_MARK = 6, MARK = 0x5eed };

__attribute__((visibility("default"))) fake_blaslt fake;

/* In a program that is no test: the device is in the plugin of this folder. */
static void find_device(void)
{
    const char *folder = getenv("EXPHIL_BACKEND_DIR");
    char path[4096];
    if (fake.call || !folder) return;
    snprintf(path, sizeof path, "%s/libexphil_cuda.so", folder);
    void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!plugin) return;
    *(void **)(&fake.call) = dlsym(plugin, "emu_call");
    *(void **)(&fake.capturing) = dlsym(plugin, "emu_capturing");
    *(void **)(&fake.spoil) = dlsym(plugin, "emu_spoil_capture");
}

int cublasLtCreate(lt_handle *handle)
{
    find_device();
    *handle = calloc(1, sizeof **handle);
    (*handle)->magic = MAGIC;
    fake.alive++;
    return OK;
}

int cublasLtDestroy(lt_handle handle)
{
    free(handle);
    fake.alive--;
    return OK;
}

size_t cublasLtGetVersion(void)
{
    return 130000;
}

int cublasLtMatmulDescCreate(lt_desc *desc, int compute, int scale)
{
    *desc = calloc(1, sizeof **desc);
    **desc = (struct lt_desc){.compute = compute, .epilogue = LT_EPILOGUE_DEFAULT, .bias_type = -1};
    fake.alive++;
    return scale == LT_R_32F ? OK : INVALID;
}

static int take(void *to, size_t size, const void *value, size_t bytes)
{
    if (bytes != size) return INVALID;
    memcpy(to, value, bytes);
    return OK;
}

int cublasLtMatmulDescSetAttribute(lt_desc desc, int attribute, const void *value, size_t bytes)
{
    switch (attribute) {
    case LT_DESC_TRANSA:
        return take(&desc->transpose[0], sizeof(int), value, bytes);
    case LT_DESC_TRANSB:
        return take(&desc->transpose[1], sizeof(int), value, bytes);
    case LT_DESC_EPILOGUE:
        return take(&desc->epilogue, sizeof(int), value, bytes);
    case LT_DESC_BIAS_DATA_TYPE:
        return take(&desc->bias_type, sizeof(int), value, bytes);
    case LT_DESC_BIAS_POINTER:
        desc->by = pthread_self();
        sched_yield(); /* to whoever does not wait */
        return take((void *)&desc->bias, sizeof desc->bias, value, bytes);
    default:
        return INVALID;
    }
}

int cublasLtMatmulDescDestroy(lt_desc desc)
{
    free(desc);
    fake.alive--;
    return OK;
}

int cublasLtMatrixLayoutCreate(lt_layout *layout, int type, uint64_t rows, uint64_t columns, int64_t ld)
{
    *layout = calloc(1, sizeof **layout);
    **layout = (struct lt_layout){type, rows, columns, ld};
    fake.alive++;
    return ld >= (int64_t)rows ? OK : INVALID;
}

int cublasLtMatrixLayoutDestroy(lt_layout layout)
{
    free(layout);
    fake.alive--;
    return OK;
}

int cublasLtMatmulPreferenceCreate(lt_pref *pref)
{
    *pref = calloc(1, sizeof **pref);
    fake.alive++;
    return OK;
}

int cublasLtMatmulPreferenceSetAttribute(lt_pref pref, int attribute, const void *value, size_t bytes)
{
    int align = attribute - LT_PREF_MIN_ALIGNMENT_A_BYTES;
    if (attribute == LT_PREF_MAX_WORKSPACE_BYTES)
        return take(&pref->workspace, sizeof pref->workspace, value, bytes);
    if (attribute == LT_PREF_REDUCTION_SCHEME_MASK)
        return take(&pref->schemes, sizeof pref->schemes, value, bytes);
    return align >= 0 && align < 4 ? take(&pref->align[align], sizeof(uint32_t), value, bytes) : INVALID;
}

int cublasLtMatmulPreferenceDestroy(lt_pref pref)
{
    free(pref);
    fake.alive--;
    return OK;
}

/* ---- what it takes ---- */

static int is_narrow(int type)
{
    return type == LT_R_16F || type == LT_R_16BF;
}

/* The rows of the table of types for which the sums are float. */
static int types_fit(const struct lt_desc *desc, int ab, int cd)
{
    if (desc->compute == LT_COMPUTE_32F_FAST_TF32) return ab == LT_R_32F && cd == LT_R_32F;
    if (desc->compute != LT_COMPUTE_32F) return 0;
    return ab == LT_R_32F ? cd == LT_R_32F : is_narrow(ab) && (cd == ab || cd == LT_R_32F);
}

static size_t bytes_of(int type)
{
    return is_narrow(type) ? 2 : 4;
}

static int bias_fits(const struct lt_desc *desc, const struct lt_layout *d)
{
    if (desc->epilogue == LT_EPILOGUE_DEFAULT) return 1;
    return desc->epilogue == LT_EPILOGUE_BIAS && desc->bias && desc->bias_type == d->type &&
           (uintptr_t)desc->bias % bytes_of(d->type) == 0;
}

static int shapes_fit(const struct lt_desc *desc, const struct lt_layout *a, const struct lt_layout *b,
                      const struct lt_layout *c, const struct lt_layout *d)
{
    uint64_t m = desc->transpose[0] ? a->columns : a->rows, k = desc->transpose[0] ? a->rows : a->columns;
    uint64_t n = desc->transpose[1] ? b->rows : b->columns, inner = desc->transpose[1] ? b->columns : b->rows;
    return k == inner && d->rows == m && d->columns == n && c->rows == m && c->columns == n &&
           c->type == d->type && a->type == b->type;
}

/* ---- what it refuses ---- */

static void remember(const struct lt_desc *desc, const struct lt_layout *a, const struct lt_layout *b,
                     const struct lt_layout *d)
{
    static int64_t known[REMEMBERED][14];
    const int64_t shape[14] = {desc->compute,
                               desc->transpose[0],
                               desc->transpose[1],
                               desc->bias_type,
                               a->type,
                               (int64_t)a->rows,
                               (int64_t)a->columns,
                               a->ld,
                               (int64_t)b->rows,
                               (int64_t)b->columns,
                               b->ld,
                               d->type,
                               (int64_t)d->rows,
                               d->ld};
    if (fake.shapes >= REMEMBERED) abort();
    for (int i = 0; i < fake.shapes; i++)
        if (memcmp(known[i], shape, sizeof shape) == 0) return;
    memcpy(known[fake.shapes++], shape, sizeof shape);
}

static int refuses(const struct lt_desc *desc, const struct lt_layout *a, const struct lt_layout *b,
                   const struct lt_layout *d, int where)
{
    int which = desc->transpose[0] ? FAKE_Y : desc->transpose[1] ? FAKE_DW : FAKE_DX;
    if (fake.where != where || !(fake.which & which)) return 0;
    fake.refusals++;
    remember(desc, a, b, d);
    return 1;
}

static lt_algo algo_of(const struct lt_desc *desc, const uint32_t align[4], int number)
{
    lt_algo algo = {{align[0], align[1], align[2], align[3]}};
    if (desc->bias)
        algo.data[ALGO_BIAS] = (uint64_t)(((uintptr_t)desc->bias | 256) & -((uintptr_t)desc->bias | 256));
    algo.data[ALGO_NUMBER] = (uint64_t)number;
    algo.data[ALGO_MARK] = MARK;
    return algo;
}

/* As many as there are and are wanted; they add in other orders. */
int cublasLtMatmulAlgoGetHeuristic(lt_handle handle, lt_desc desc, lt_layout a, lt_layout b, lt_layout c,
                                   lt_layout d, lt_pref pref, int wanted, lt_found found[], int *count)
{
    if (handle->magic != MAGIC || wanted < 1 || pref->schemes & 1) return INVALID;
    if (!shapes_fit(desc, a, b, c, d)) return INVALID;
    *count = 0;
    fake.queries++;
    if (!types_fit(desc, a->type, d->type) || !bias_fits(desc, d)) return NOT_SUPPORTED;
    if (fake.along && (!desc->transpose[0] || desc->transpose[1])) return OK;
    if (refuses(desc, a, b, d, FAKE_AT_QUERY)) return fake.status == FAKE_NO_ALGORITHM ? OK : fake.status;
    for (int i = 0; i < wanted && i < FAKE_ALGORITHMS; i++) {
        memset(&found[i], 0, sizeof found[i]);
        found[i].workspace_bytes = fake.hungry >> i & 1 ? pref->workspace + 1 : pref->workspace / 2;
        found[i].state = fake.unfit >> i & 1 ? NOT_SUPPORTED : OK;
        found[i].algo = algo_of(desc, pref->align, i);
        ++*count;
    }
    return OK;
}

int cublasLtMatmulAlgoCheck(lt_handle handle, lt_desc desc, lt_layout a, lt_layout b, lt_layout c,
                            lt_layout d, const lt_algo *algo, lt_found *found)
{
    if (handle->magic != MAGIC || !shapes_fit(desc, a, b, c, d)) return INVALID;
    if (algo->data[ALGO_MARK] != MARK || algo->data[ALGO_NUMBER] >= FAKE_ALGORITHMS) return INVALID;
    if (!types_fit(desc, a->type, d->type) || !bias_fits(desc, d)) return NOT_SUPPORTED;
    fake.checks++;
    if (refuses(desc, a, b, d, FAKE_AT_CHECK)) return fake.status;
    const lt_algo kept = found->algo; /* never updated */
    memset(found, 0, sizeof *found);
    found->algo = kept;
    found->workspace_bytes = 1024;
    return OK;
}

int cublasLtMatmulAlgoConfigGetAttribute(const lt_algo *algo, int attribute, void *value, size_t bytes,
                                         size_t *written)
{
    const int32_t known = attribute == LT_CONFIG_ID ? (int32_t)algo->data[ALGO_NUMBER] : 1;
    if (bytes != sizeof known || !value || !written || algo->data[ALGO_MARK] != MARK) return INVALID;
    memcpy(value, &known, sizeof known);
    *written = sizeof known;
    return OK;
}

/* ---- numbers ---- */

static float get(const void *at, int type, int64_t i)
{
    uint16_t narrow;
    if (type == LT_R_32F) return ((const float *)at)[i];
    memcpy(&narrow, (const uint16_t *)at + i, sizeof narrow);
    return type == LT_R_16F ? half_to_float(narrow) : float_of((uint32_t)narrow << 16);
}

static void put(void *at, int type, int64_t i, float x)
{
    if (type == LT_R_32F)
        ((float *)at)[i] = x;
    else
        ((uint16_t *)at)[i] = type == LT_R_16F ? float_to_half(x) : (uint16_t)(rounded(bits_of(x), 16) >> 16);
}

/* ---- products ---- */

typedef struct job {
    struct lt_desc desc;
    struct lt_layout a, b, c, d;
    const void *at_a, *at_b, *at_c;
    void *at_d;
    float beta;
    int backwards; /* of an algorithm with an odd number: sums in float from the last to the first */
} job;

_Static_assert(sizeof(job) <= 256, "what emu_call copies");

static float factor(const job *j, const void *at, const struct lt_layout *from, int64_t i)
{
    const float x = get(at, from->type, i);
    return j->desc.compute == LT_COMPUTE_32F_FAST_TF32 ? float_of(rounded(bits_of(x), 13)) : x;
}

static void work(const void *data)
{
    const job *j = data;
    const int ta = j->desc.transpose[0], tb = j->desc.transpose[1];
    const int64_t inner = (int64_t)(ta ? j->a.rows : j->a.columns);
    for (int64_t column = 0; column < (int64_t)j->d.columns; column++)
        for (int64_t row = 0; row < (int64_t)j->d.rows; row++) {
            double sum = 0.0;
            for (int64_t i = 0; i < inner; i++) {
                const int64_t k = j->backwards ? inner - 1 - i : i;
                sum += (double)factor(j, j->at_a, &j->a, ta ? k + row * j->a.ld : row + k * j->a.ld) *
                       (double)factor(j, j->at_b, &j->b, tb ? column + k * j->b.ld : k + column * j->b.ld);
                if (j->backwards) sum = (double)(float)sum;
            }
            if (j->beta != 0.0f) sum += (double)(j->beta * get(j->at_c, j->c.type, row + column * j->c.ld));
            if (j->desc.epilogue == LT_EPILOGUE_BIAS)
                sum += (double)get(j->desc.bias, j->desc.bias_type, row);
            put(j->at_d, j->d.type, row + column * j->d.ld, (float)sum);
        }
}

__attribute__((visibility("default"))) int fake_product_of(void (*function)(const void *), const void *data,
                                                           fake_product *product)
{
    const job *j = data;
    if (function != work) return 0;
    *product = (fake_product){.m = (long long)j->d.rows,
                              .n = (long long)j->d.columns,
                              .k = (long long)(j->desc.transpose[0] ? j->a.rows : j->a.columns),
                              .type = j->a.type,
                              .result = j->d.type,
                              .compute = j->desc.compute,
                              .bias = j->desc.epilogue == LT_EPILOGUE_BIAS,
                              .adds = j->beta != 0.0f,
                              .transposed = {j->desc.transpose[0], j->desc.transpose[1]},
                              .a = j->at_a,
                              .b = j->at_b,
                              .c = j->at_c,
                              .d = j->at_d};
    return 1;
}

static int addresses_fit(const job *j, const lt_algo *algo)
{
    const void *const address[4] = {j->at_a, j->at_b, j->at_c, j->at_d};
    const int type[4] = {j->a.type, j->b.type, j->c.type, j->d.type};
    for (int i = 0; i < 4; i++)
        if (!address[i] || (uintptr_t)address[i] % algo->data[i] || (uintptr_t)address[i] % bytes_of(type[i]))
            return 0;
    if (j->desc.epilogue == LT_EPILOGUE_BIAS &&
        (!j->desc.bias || !algo->data[4] || (uintptr_t)j->desc.bias % algo->data[4]))
        return 0;
    return j->at_c != j->at_d || j->c.ld == j->d.ld; /* in place: one layout */
}

int cublasLtMatmul(lt_handle handle, lt_desc desc, const void *alpha, const void *a, lt_layout la,
                   const void *b, lt_layout lb, const void *beta, const void *c, lt_layout lc, void *d,
                   lt_layout ld, const lt_algo *algo, void *workspace, size_t workspace_bytes, void *stream)
{
    const job j = {
        *desc, *la, *lb, *lc, *ld, a, b, c, d, *(const float *)beta, algo->data[ALGO_NUMBER] % 2 != 0};
    if (algo->data[ALGO_MARK] != MARK || algo->data[ALGO_NUMBER] >= FAKE_ALGORITHMS) return INVALID;
    if (handle->magic != MAGIC || *(const float *)alpha != 1.0f || !stream) return INVALID;
    if (!workspace || workspace_bytes < 1024 || (uintptr_t)workspace % 256) return INVALID;
    if (!addresses_fit(&j, algo)) return INVALID;
    if (refuses(desc, la, lb, ld, FAKE_AT_RUN)) return fake.status;
    if (fake.idle >> algo->data[ALGO_NUMBER] & 1) return NOT_SUPPORTED;
    if (fake.capturing(stream) && refuses(desc, la, lb, ld, FAKE_IN_CAPTURE)) {
        if (fake.spoils) fake.spoil(stream);
        return fake.status;
    }
    if (desc->bias && !pthread_equal(desc->by, pthread_self())) fake.together++;
    fake.products++;
    fake.by[algo->data[ALGO_NUMBER]]++;
    return fake.call(stream, work, &j, sizeof j) ? 13 : OK;
}
