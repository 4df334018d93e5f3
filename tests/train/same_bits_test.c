/* Same bits everywhere: dot products, training and play give one digest for every instruction set that this processor
 * has, any number of threads and of streams: the one kept in tests/data/kept/same_bits.txt. The digests are printed too
 * ("bits: ..."), so that programs made by other compilers and with other flags can be compared (tests/host/builds.sh), and
 * so that the kept ones can be replaced by a commit that says why (doc/testing.md). */
#include "play_case.h"
#include "test_places.h"
#include "train_case.h"

#include "cpu/kernels.h"

#include <stdio.h>
#include <stdlib.h>

/* Those of 0.1, whose digests are kept since; and the others. */
#define FIRST_BLOCKS "mamba lstm gru attention mlp ffn"
enum { FIRST_COUNT = 6 };

static void later_blocks(char pattern[XPH_BLOCKS_TEXT])
{
    pattern[0] = 0;
    for (xph_block_kind kind = FIRST_COUNT; xph_block_word(kind); kind++)
        strcat(strcat(pattern, xph_block_word(kind)), " ");
}

enum { DOTS = 1024, DOT_LENGTH = 577, UPDATES = 20, STEPS = 10000 };

#define EVERY_LEVEL(isa)                                                                                     \
  for (xph_isa isa = XPH_ISA_REF; isa < XPH_ISA_COUNT; isa++)                                                \
    if (xph_cpu_has(isa))

static const int64_t batches[] = {1, 7, 64};
#if defined(EXPHIL_TEST_FEWER) /* about other mistakes: the digests are those of all numbers of threads */
static const int32_t threads[] = {2};
#else
static const int32_t threads[] = {1, 2, 4};
#endif
enum { THREADS = sizeof threads / sizeof *threads };

static void same(const char *what, uint64_t *first, uint64_t digest, const char *isa, int64_t a, int64_t b)
{
    if (*first == 0) *first = digest;
    if (*first != digest)
        fail_msg("%s: other bits with %s, %lld, %lld", what, isa, (long long)a, (long long)b);
}

static char told[1024];

static void tell(const char *what, int64_t size, uint64_t digest)
{
    size_t used = strlen(told);
    int n = snprintf(told + used, sizeof told - used, "bits: %s %lld %016llx\n", what, (long long)size,
                     (unsigned long long)digest);
    assert_true(n > 0 && (size_t)n < sizeof told - used);
    print_message("%s", told + used);
}

/* ---- dot products ------------------------------------------------------------------------------------------------- */

static void run_phase(const xph_phase *phase, const void *args, int64_t pieces)
{
    int64_t items = phase->items(args);
    for (int64_t p = 0; p < pieces; p++) phase->run(args, items * p / pieces, items * (p + 1) / pieces);
}

static uint64_t dots(const xph_kernel_set *set, const float *x, const float *w, int64_t rows, int64_t pieces)
{
    float *y = malloc((size_t)(rows * DOTS) * sizeof *y);
    xph_linear_args args = {.type = XPH_F32,
                            .rows = rows,
                            .in = DOT_LENGTH,
                            .out = DOTS,
                            .x = x,
                            .ldx = DOT_LENGTH,
                            .w = w,
                            .y = y,
                            .ldy = DOTS};
    const xph_candidate *candidate = xph_kernels_choose(set, XPH_OP_LINEAR, &args);
    void *scratch = candidate->scratch_bytes ? calloc(1, candidate->scratch_bytes(&args) + 1) : NULL;
    for (int i = 0; i < XPH_PHASES && candidate->phase[i].run; i++)
        run_phase(&candidate->phase[i], &args, pieces);
    uint64_t digest = xph_hash(y, DOTS * sizeof *y);
    free(scratch);
    free(y);
    return digest;
}

static void dot_products(void **state)
{
    uint64_t first = 0;
    float *x = malloc(64 * DOT_LENGTH * sizeof *x), *w = malloc(DOTS * DOT_LENGTH * sizeof *w);
    xph_rng rng = {.seed = 11, .stream = XPH_RNG_TEST};
    for (int i = 0; i < DOTS * DOT_LENGTH; i++) w[i] = (float)model_case_uniform(&rng, -1, 1);
    for (int i = 0; i < 64 * DOT_LENGTH; i++) x[i] = (float)model_case_uniform(&rng, -1, 1);
    EVERY_LEVEL(isa)
    for (size_t b = 0; b < 3; b++)
        for (size_t t = 0; t < THREADS; t++)
            same("dot products", &first, dots(xph_kernels_pick(XPH_F32, isa), x, w, batches[b], threads[t]),
                 xph_isa_name(isa), batches[b], threads[t]);
    tell("dots", DOTS, first);
    free(x);
    free(w);
}

/* ---- training ----------------------------------------------------------------------------------------------------- */

static uint64_t trained(const char *blocks, int64_t batch, const char *isa, int32_t workers)
{
    train_plan plan = train_plan_of(blocks, EXPHIL_MODE_CARRY);
    plan.sampling.batch = batch;
    plan.episodes = 70;
    plan.threads = workers;
    plan.isa = isa;
    train_run run = train_begin(&plan);
    train_steps(&run, UPDATES);
    size_t bytes = 0;
    unsigned char *all = train_snapshot(run.trainer, &bytes);
    uint64_t digest = xph_hash(all, bytes);
    free(all);
    train_end(&run);
    return digest;
}

static void updates(void **state)
{
    for (size_t b = 0; b < 3; b++) {
        uint64_t first = 0;
        EVERY_LEVEL(isa)
        for (size_t t = 0; t < THREADS; t++)
            same("updates", &first, trained(FIRST_BLOCKS, batches[b], xph_isa_name(isa), threads[t]),
                 xph_isa_name(isa), batches[b], threads[t]);
        tell("updates", batches[b], first);
    }
}

/* ---- play --------------------------------------------------------------------------------------------------------- */

/* Logits of the first stream over so many frames; the others see frames of their own. */
static uint64_t played(const char *blocks, int64_t streams, int64_t steps, int32_t weights, const char *isa)
{
    exphil_context_config with = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_context *context = NULL;
    with.cpu_isa = isa;
    with.threads = 1;
    assert_ok(exphil_context_create(&with, &context, NULL));
    exphil_model_config config = model_case_config(blocks, EXPHIL_TYPE_F32);
    exphil_model *model = play_model(context, &config, 0.05), *narrow = NULL;
    if (weights != EXPHIL_TYPE_F32) {
        assert_ok(exphil_model_quantize(model, weights, &narrow, NULL));
        exphil_model_destroy(model);
        model = narrow;
    }
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    how.streams = streams;
    exphil_session *session = play_session(model, &how);
    play_frames *one = play_frames_make(model, 1, 64, 3), *all = play_frames_make(model, streams, 64, 4);
    for (int64_t t = 0; t < 64; t++) {
        memcpy(all->floats + t * streams * all->float_count, one->floats + t * one->float_count,
               (size_t)one->float_count * sizeof *one->floats);
        memcpy(all->ids + t * streams * all->id_count, one->ids + t * one->id_count,
               (size_t)one->id_count * sizeof *one->ids);
        memcpy(all->noise + t * streams * all->logits, one->noise + t * one->logits,
               (size_t)one->logits * sizeof *one->noise);
    }
    int32_t *actions = calloc((size_t)(streams * all->heads), sizeof *actions);
    float *logits = calloc((size_t)(streams * all->logits), sizeof *logits);
    xph_hasher hasher;
    xph_hash_begin(&hasher);
    for (int64_t t = 0; t < steps; t++) {
        play_step(session, all, t, false, actions);
        play_logits(session, all, logits);
        xph_hash_add(&hasher, logits, (size_t)all->logits * sizeof *logits);
        xph_hash_add(&hasher, actions, (size_t)all->heads * sizeof *actions);
    }
    play_frames_free(one);
    play_frames_free(all);
    free(actions);
    free(logits);
    exphil_session_destroy(session);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
    return xph_hash_end(&hasher);
}

static void steps(void **state)
{
    static const int32_t types[] = {EXPHIL_TYPE_F32, EXPHIL_TYPE_BF16, EXPHIL_TYPE_I8};
    static const char *const names[] = {"f32", "bf16", "int8"};
    for (int i = 0; i < 3; i++) {
        uint64_t first = 0;
        EVERY_LEVEL(isa)
        for (size_t b = 0; b < 3; b++)
            same("steps of many streams", &first,
                 played(FIRST_BLOCKS, batches[b], 200, types[i], xph_isa_name(isa)), xph_isa_name(isa),
                 batches[b], 200);
        tell(names[i], 200, first);
    }
    uint64_t first = 0;
    EVERY_LEVEL(isa)
    same("steps", &first, played(FIRST_BLOCKS, 1, STEPS, EXPHIL_TYPE_F32, xph_isa_name(isa)),
         xph_isa_name(isa), 1, STEPS);
    tell("steps", STEPS, first);
}

static void blocks_after_the_first(void **state)
{
    char pattern[XPH_BLOCKS_TEXT];
    uint64_t update = 0, step = 0, narrow = 0;
    later_blocks(pattern);
    EVERY_LEVEL(isa)
    {
        const char *name = xph_isa_name(isa);
        for (int32_t t = 1; t <= 2; t++) same("updates", &update, trained(pattern, 7, name, t), name, 7, t);
        for (int64_t b = 1; b <= 3; b += 2) {
            same("steps", &step, played(pattern, b, 100, EXPHIL_TYPE_F32, name), name, b, 100);
            same("steps", &narrow, played(pattern, b, 100, EXPHIL_TYPE_I8, name), name, b, 100);
        }
    }
    tell("later updates", 7, update);
    tell("later f32", 100, step);
    tell("later int8", 100, narrow);
}

/* ---- what was kept ------------------------------------------------------------------------------------------------ */

static void digests_are_the_kept_ones(void **state)
{
    size_t bytes = 0;
    char *kept = test_read(EXPHIL_SOURCE_DIR "/tests/data/kept/same_bits.txt", &bytes);
    if (!kept) fail_msg("tests/data/kept/same_bits.txt is not there");
    if (strcmp(kept, told) != 0) fail_msg("the bits have changed; kept are\n%s", kept);
    free(kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dot_products),
        cmocka_unit_test(updates),
        cmocka_unit_test(steps),
        cmocka_unit_test(blocks_after_the_first),
        cmocka_unit_test(digests_are_the_kept_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
