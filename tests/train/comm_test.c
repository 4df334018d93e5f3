/* Several ranks train one model: same bits on all of them, the same as one trainer with all the lanes (to rounding), and
 * what one rank must refuse all refuse. Ranks are threads with contexts of their own. */
#include "test.h"

#include <math.h>
#include <stdlib.h>

enum { RANKS = 3, LANES = 2, TIME = 5, FLOATS = 4, UPDATES = 4, ROWS = RANKS * LANES * TIME };
static const exphil_head_spec heads[2] = {{"bits", EXPHIL_BERNOULLI, 2, 0, 0},
                                          {"way", EXPHIL_CATEGORICAL, 3, 1, 0}};

static float floats[UPDATES][ROWS * FLOATS];
static int32_t actions[UPDATES][ROWS * 2];
static float mask[ROWS];
static uint8_t reset[ROWS];

/* All ranks bring their data; the last one adds them up in the order of the ranks. */
static struct meeting {
    test_meeting *barrier;
    float *data[RANKS];
    int32_t code;
} meeting;

typedef struct rank {
    int32_t index, ranks, code;
    bool bad; /* its batches overflow */
    exphil_status status[UPDATES];
    float *weights;
    size_t bytes;
} rank;

static int32_t all_reduce(void *user, void *data, int64_t count, int32_t type)
{
    rank *r = user;
    assert_int_equal(type, EXPHIL_TYPE_F32);
    if (r->code) return r->code;
    meeting.data[r->index] = data;
    if (test_meeting_come(meeting.barrier))
        for (int64_t i = 0; i < count; i++) {
            float sum = meeting.data[0][i];
            for (int k = 1; k < RANKS; k++) sum += meeting.data[k][i];
            for (int k = 0; k < RANKS; k++) meeting.data[k][i] = sum;
        }
    (void)test_meeting_come(meeting.barrier);
    return 0;
}

static exphil_trainer *make(exphil_context *context, rank *r)
{
    exphil_spec spec = EXPHIL_SPEC_INIT;
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    exphil_optimizer_config adam = EXPHIL_OPTIMIZER_CONFIG_INIT;
    exphil_trainer_config how = EXPHIL_TRAINER_CONFIG_INIT;
    exphil_communicator with = {sizeof with, r, all_reduce, r->index, r->ranks};
    exphil_model *model = NULL;
    exphil_optimizer *optimizer = NULL;
    exphil_trainer *trainer = NULL;
    spec.layout = spec.codec = "ranks";
    spec.float_count = FLOATS;
    spec.head_count = 2;
    spec.heads = heads;
    config.spec = &spec;
    config.blocks = "gru";
    config.hidden = config.head_width = 8;
    config.no_previous_action = 1;
    adam.clip_norm = -1;
    how.communicator = r->ranks > 1 ? &with : NULL;
    assert_int_equal(exphil_model_create(context, &config, &model, NULL), EXPHIL_OK);
    assert_int_equal(exphil_optimizer_create(model, &adam, &optimizer, NULL), EXPHIL_OK);
    assert_int_equal(exphil_trainer_create(model, optimizer, NULL, &how, &trainer, NULL), EXPHIL_OK);
    exphil_optimizer_destroy(optimizer);
    exphil_model_destroy(model);
    return trainer;
}

static void keep_weights(exphil_trainer *trainer, rank *r)
{
    exphil_model *model = NULL;
    exphil_tensor_info info = EXPHIL_TENSOR_INFO_INIT;
    assert_int_equal(exphil_trainer_model(trainer, EXPHIL_WEIGHTS, &model, NULL), EXPHIL_OK);
    r->bytes = 0;
    for (int64_t i = 0; exphil_model_tensor_info(model, i, &info, NULL) >= 0; i++) {
        r->weights = realloc(r->weights, r->bytes + info.size_bytes);
        assert_non_null(r->weights);
        assert_int_equal(
            exphil_model_tensor_get(model, info.name, (char *)r->weights + r->bytes, info.size_bytes, NULL),
            EXPHIL_OK);
        r->bytes += info.size_bytes;
    }
    exphil_model_destroy(model);
}

static void *train(void *given)
{
    rank *r = given;
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_trainer *trainer = make(context, r);
    int64_t lanes = r->ranks > 1 ? LANES : LANES * RANKS, first = r->index * LANES * TIME;
    for (int u = 0; u < UPDATES; u++) {
        exphil_batch batch = EXPHIL_BATCH_INIT;
        float huge[LANES * TIME * FLOATS];
        for (int i = 0; i < LANES * TIME * FLOATS; i++) huge[i] = 3e38f;
        batch.batch = lanes;
        batch.time = TIME;
        batch.frames = lanes * TIME;
        batch.floats = r->bad ? huge : &floats[u][first * FLOATS];
        batch.actions = &actions[u][first * 2];
        batch.mask = mask;
        batch.reset = reset;
        r->status[u] = exphil_trainer_step_batch(trainer, &batch, NULL, NULL);
    }
    keep_weights(trainer, r);
    exphil_trainer_destroy(trainer);
    exphil_context_destroy(context);
    return NULL;
}

static void run_ranks(rank ranks[RANKS])
{
    test_thread thread[RANKS];
    meeting.barrier = test_meeting_make(RANKS);
    for (int k = 0; k < RANKS; k++) test_thread_start(&thread[k], train, &ranks[k]);
    for (int k = 0; k < RANKS; k++) (void)test_thread_join(&thread[k]);
    test_meeting_free(meeting.barrier);
}

static int make_data(void **state)
{
    xph_rng rng = {.seed = 5, .stream = XPH_RNG_TEST};
    for (int u = 0; u < UPDATES; u++) {
        for (int i = 0; i < ROWS * FLOATS; i++) floats[u][i] = 2.0f * xph_rng_float(&rng) - 1.0f;
        for (int i = 0; i < ROWS; i++) {
            actions[u][2 * i] = (int32_t)xph_rng_below(&rng, 4);
            actions[u][2 * i + 1] = (int32_t)xph_rng_below(&rng, 3);
        }
    }
    for (int i = 0; i < ROWS; i++) {
        mask[i] = 1.0f;
        reset[i] = i % TIME == 0;
    }
    return 0;
}

static void ranks_agree(void **state)
{
    rank ranks[RANKS] = {
        {.index = 0, .ranks = RANKS}, {.index = 1, .ranks = RANKS}, {.index = 2, .ranks = RANKS}};
    rank alone = {.ranks = 1};
    run_ranks(ranks);
    train(&alone);
    double worst = 0.0;
    for (int k = 0; k < RANKS; k++) {
        for (int u = 0; u < UPDATES; u++) assert_int_equal(ranks[k].status[u], EXPHIL_OK);
        assert_memory_equal(ranks[k].weights, ranks[0].weights, ranks[0].bytes);
    }
    for (size_t i = 0; i < alone.bytes / sizeof(float); i++)
        worst = fmax(worst, fabs((double)alone.weights[i] - (double)ranks[0].weights[i]));
    assert_true(worst < 1e-4);
    assert_true(memcmp(alone.weights, ranks[0].weights, alone.bytes) != 0 || worst == 0.0);
    for (int k = 0; k < RANKS; k++) free(ranks[k].weights);
    free(alone.weights);
}

static void all_refuse_what_one_must(void **state)
{
    rank ranks[RANKS] = {{.index = 0, .ranks = RANKS},
                         {.index = 1, .ranks = RANKS, .bad = true},
                         {.index = 2, .ranks = RANKS}};
    run_ranks(ranks);
    for (int k = 0; k < RANKS; k++) {
        for (int u = 0; u < UPDATES; u++) assert_int_equal(ranks[k].status[u], EXPHIL_E_NUMERIC);
        assert_memory_equal(ranks[k].weights, ranks[0].weights, ranks[0].bytes);
        if (k) free(ranks[k].weights);
    }
    free(ranks[0].weights);
}

static void failures_change_nothing(void **state)
{
    rank broken = {.ranks = 2, .code = 5};
    train(&broken);
    for (int u = 0; u < UPDATES; u++) assert_int_equal(broken.status[u], EXPHIL_E_IO);
    rank fresh = {.ranks = 1};
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_trainer *trainer = make(context, &fresh);
    keep_weights(trainer, &fresh);
    assert_memory_equal(fresh.weights, broken.weights, fresh.bytes);
    exphil_trainer_destroy(trainer);
    exphil_context_destroy(context);
    free(fresh.weights);
    free(broken.weights);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ranks_agree),
                                       cmocka_unit_test(all_refuse_what_one_must),
                                       cmocka_unit_test(failures_change_nothing)};
    return cmocka_run_group_tests(tests, make_data, NULL);
}
