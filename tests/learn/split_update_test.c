/* Updates whose loss is the host's: what forward gives over a chunk has the bits of the steps of a session that began it,
 * for every block, delay and kind of heads; backward makes the update that the library's own loss makes; what comes
 * between and what is wrong is refused and changes nothing. */
#include "model_case.h"

#include <exphil/learn.h>

#include <math.h>
#include <stdlib.h>

enum { B = 3, T = 12, CHUNKS = 3 };

/* ---- a chunk as it was played --------------------------------------------------------------------------------------- */

typedef struct chunk {
    exphil_session *session;
    const xph_model_shape *shape;
    float *floats, *logits, *values;         /* [B*T, ...] row b*T + t */
    int32_t *ids, *past, *actions, *history; /* history [B, slots, A], newest first */
    float mask[B * T];
    uint8_t reset[B * T];
    void *states;
    size_t state_bytes;
    xph_rng rng;
} chunk;

static void *zeros(int64_t count)
{
    void *block = calloc((size_t)count + 1, sizeof(float));
    assert_non_null(block);
    return block;
}

static void begin(chunk *c, const exphil_model *model)
{
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    const xph_model_shape *shape = xph_model_shape_of(model);
    config.streams = B;
    config.seed = 9;
    config.deliver = EXPHIL_DELIVER_DECIDED;
    *c = (chunk){.shape = shape, .rng = {.seed = 4, .stream = XPH_RNG_TEST}};
    assert_ok(exphil_session_create(model, &config, &c->session, NULL));
    c->floats = zeros(B * T * shape->floats);
    c->ids = zeros(B * T * shape->ids);
    c->past = zeros(B * T * shape->slots * shape->heads);
    c->actions = zeros(B * T * shape->heads);
    c->history = zeros(B * shape->slots * shape->heads);
    c->logits = zeros(B * T * shape->logits);
    c->values = zeros(B * T);
    c->state_bytes = exphil_session_state_size(c->session);
    c->states = zeros((int64_t)(B * c->state_bytes));
    for (int i = 0; i < B * T; i++) c->mask[i] = 1.0f;
}

static void end(chunk *c)
{
    void *const all[] = {c->floats, c->ids, c->past, c->actions, c->history, c->logits, c->values, c->states};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]);
    exphil_session_destroy(c->session);
}

static void forget(chunk *c, const exphil_spec *spec, int64_t b)
{
    int64_t heads = c->shape->heads, slots = c->shape->slots;
    for (int64_t i = 0; i < slots * heads; i++)
        c->history[b * slots * heads + i] = spec->heads[i % heads].neutral;
}

static void remember(chunk *c, int64_t b, const int32_t *action)
{
    int64_t heads = c->shape->heads, slots = c->shape->slots;
    int32_t *history = c->history + b * slots * heads;
    if (!slots) return;
    memmove(history + heads, history, (size_t)((slots - 1) * heads) * sizeof *history);
    memcpy(history, action, (size_t)heads * sizeof *history);
}

/* Rows are random; some episodes end within the chunk. */
static void play_frame(chunk *c, const exphil_spec *spec, int64_t t, bool first)
{
    const xph_model_shape *shape = c->shape;
    float floats[B * 16];
    int32_t ids[B * 4], actions[B * EXPHIL_HEADS_MAX];
    for (int64_t b = 0; b < B; b++) {
        int64_t row = b * T + t, past = shape->slots * shape->heads;
        c->reset[row] = first || xph_rng_below(&c->rng, 7) == 0;
        if (c->reset[row]) {
            assert_ok(exphil_session_reset(c->session, b));
            forget(c, spec, b);
        }
        for (int64_t i = 0; i < shape->floats; i++)
            floats[b * shape->floats + i] = (float)model_case_uniform(&c->rng, -1.5, 1.5);
        for (int64_t i = 0; i < shape->ids; i++)
            ids[b * shape->ids + i] = (int32_t)xph_rng_below(&c->rng, (uint64_t)spec->ids[i].entries);
        memcpy(c->floats + row * shape->floats, floats + b * shape->floats,
               (size_t)shape->floats * sizeof(float));
        memcpy(c->ids + row * shape->ids, ids + b * shape->ids, (size_t)shape->ids * sizeof(int32_t));
        memcpy(c->past + row * past, c->history + b * past, (size_t)past * sizeof(int32_t));
    }
    assert_ok(exphil_session_step_row(c->session, floats, ids, NULL, actions));
    for (int64_t b = 0; b < B; b++) {
        int64_t row = b * T + t;
        assert_ok(exphil_session_logits(c->session, b, c->logits + row * shape->logits, shape->logits));
        if (shape->value) assert_ok(exphil_session_value(c->session, b, &c->values[row]));
        memcpy(c->actions + row * shape->heads, actions + b * shape->heads,
               (size_t)shape->heads * sizeof(int32_t));
        remember(c, b, actions + b * shape->heads);
    }
}

static void play(chunk *c, const exphil_spec *spec, bool first)
{
    for (int64_t b = 0; b < B; b++)
        assert_ok(exphil_session_state_save(c->session, b, (char *)c->states + (size_t)b * c->state_bytes,
                                            c->state_bytes));
    for (int64_t t = 0; t < T; t++) play_frame(c, spec, t, first && t == 0);
}

static exphil_batch batch_of(const chunk *c)
{
    exphil_batch batch = EXPHIL_BATCH_INIT;
    batch.batch = B;
    batch.time = T;
    batch.floats = c->floats;
    batch.ids = c->ids;
    batch.past = c->past;
    batch.actions = c->actions;
    batch.mask = c->mask;
    batch.reset = c->reset;
    return batch;
}

/* ---- trainers ------------------------------------------------------------------------------------------------------ */

typedef struct run {
    exphil_context *context;
    exphil_model *model;
    exphil_optimizer *optimizer;
    exphil_trainer *trainer;
} run;

static run begin_run(const exphil_model_config *config, int threads, const exphil_trainer_config *how)
{
    run r = {.context = test_context(NULL, NULL, threads)};
    exphil_trainer_config known = EXPHIL_TRAINER_CONFIG_INIT;
    if (how) known = *how;
    known.as_played = 1;
    r.model = model_case_create(r.context, config);
    assert_ok(exphil_optimizer_create(r.model, NULL, &r.optimizer, NULL));
    assert_ok(exphil_trainer_create(r.model, r.optimizer, NULL, &known, &r.trainer, NULL));
    return r;
}

static void end_run(run *r)
{
    exphil_trainer_destroy(r->trainer);
    exphil_optimizer_destroy(r->optimizer);
    exphil_model_destroy(r->model);
    exphil_context_destroy(r->context);
}

static uint64_t weights_of(const run *r)
{
    exphil_model *model = NULL;
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    assert_ok(exphil_trainer_model(r->trainer, EXPHIL_WEIGHTS, &model, NULL));
    assert_ok(exphil_model_query(model, &info, NULL));
    exphil_model_destroy(model);
    return info.weights_hash;
}

/* ---- tests ---------------------------------------------------------------------------------------------------------- */

static void check_played(const char *blocks, int32_t delay, int32_t heads, int32_t value)
{
    exphil_model_config config = model_case_config(blocks, EXPHIL_TYPE_F32);
    config.delay_frames = delay;
    config.heads = heads;
    config.value = value;
    run r = begin_run(&config, 2, NULL);
    const exphil_spec *spec = xph_model_spec(r.model);
    exphil_forward given = EXPHIL_FORWARD_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    chunk c;
    begin(&c, r.model);
    for (int i = 0; i < CHUNKS; i++) {
        play(&c, spec, i == 0);
        exphil_batch batch = batch_of(&c);
        exphil_status status =
            exphil_trainer_forward(r.trainer, &batch, c.states, B * c.state_bytes, &given, &error);
        if (status < 0) fail_msg("%s: %s", blocks, error.message);
        assert_int_equal(given.rows, B * T);
        assert_int_equal(given.logit_count, c.shape->logits);
        if (memcmp(given.logits, c.logits, (size_t)(B * T * c.shape->logits) * sizeof(float)) != 0)
            fail_msg("%s, delay %d, chunk %d: other logits than in play", blocks, delay, i);
        if (value && memcmp(given.values, c.values, sizeof(float) * B * T) != 0)
            fail_msg("%s: other values than in play", blocks);
        if (!value) assert_null(given.values);
        assert_ok(exphil_trainer_abandon(r.trainer, NULL));
    }
    end(&c);
    end_run(&r);
}

static void forward_has_the_bits_of_play(void **unused)
{
    static const char *const patterns[] = {EACH_BLOCK "mamba*2", "mamba attention gru mlp ffn"};
    static const int32_t delays[] = {0, 1, 18};
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++)
        for (int d = 0; d < 3; d++)
            check_played(patterns[i], delays[d], (int32_t)(i + (size_t)d) % 2,
                         d == 0   ? EXPHIL_VALUE_NONE
                         : d == 1 ? EXPHIL_VALUE_DETACHED
                                  : EXPHIL_VALUE_SHARED);
}

/* Gradient of the mean over rows and heads as the library's loss defines it. */
static double own_loss(const run *r, const chunk *c, const exphil_forward *given, float *dlogits)
{
    const xph_head *head = xph_model_heads(r->model);
    const float *logits = given->logits;
    double loss = 0.0, rows = (double)given->rows;
    for (int64_t row = 0; row < given->rows; row++)
        for (int64_t h = 0; h < c->shape->heads; h++) {
            const float *y = logits + row * given->logit_count + head[h].first;
            float *d = dlogits + row * given->logit_count + head[h].first;
            int32_t action = c->actions[row * c->shape->heads + h];
            double sum = 0.0;
            for (int32_t k = 0; k < head[h].count; k++) sum += exp((double)y[k]);
            for (int32_t k = 0; k < head[h].count; k++) {
                bool bits = head[h].kind == EXPHIL_BERNOULLI;
                double p = bits ? 1.0 / (1.0 + exp(-(double)y[k])) : exp((double)y[k]) / sum;
                double target = bits ? (double)(action >> k & 1) : (double)(k == action);
                double weight = bits ? 1.0 / (double)head[h].count : 1.0;
                d[k] = (float)(weight * (p - target) / rows);
                if (bits)
                    loss -= weight * log(target > 0.5 ? p : 1.0 - p) / rows;
                else if (target > 0.5)
                    loss -= log(p) / rows;
            }
        }
    return loss;
}

static void backward_makes_the_library_s_update(void **unused)
{
    exphil_model_config config = model_case_config("gru", EXPHIL_TYPE_F32);
    run own = begin_run(&config, 1, NULL), library = begin_run(&config, 1, NULL);
    const exphil_spec *spec = xph_model_spec(own.model);
    chunk c;
    begin(&c, own.model);
    float *dlogits = zeros(B * T * c.shape->logits);
    for (int i = 0; i < 4; i++) {
        exphil_forward given = EXPHIL_FORWARD_INIT;
        exphil_metrics a = EXPHIL_METRICS_INIT, b = EXPHIL_METRICS_INIT;
        play(&c, spec, i == 0);
        exphil_batch batch = batch_of(&c);
        assert_ok(exphil_trainer_forward(own.trainer, &batch, NULL, 0, &given, NULL));
        double loss = own_loss(&own, &c, &given, dlogits);
        assert_ok(exphil_trainer_backward(own.trainer, dlogits, NULL, loss, &a, NULL));
        assert_ok(exphil_trainer_step_batch(library.trainer, &batch, &b, NULL));
        assert_int_equal(a.update, i + 1);
        assert_int_equal(a.frames, b.frames);
        assert_true(fabs(a.loss - b.loss) < 1e-5 * b.loss);
        assert_true(fabs(a.gradient_norm - b.gradient_norm) < 1e-4 * b.gradient_norm);
    }
    free(dlogits);
    end(&c);
    end_run(&own);
    end_run(&library);
}

/* Values are learnt: the head comes near what it is asked for. */
static void values_are_learnt(void **unused)
{
    exphil_model_config config = model_case_config("gru", EXPHIL_TYPE_F32);
    config.value = EXPHIL_VALUE_SHARED;
    run r = begin_run(&config, 1, NULL);
    chunk c;
    begin(&c, r.model);
    play(&c, xph_model_spec(r.model), true);
    exphil_batch batch = batch_of(&c);
    float *dlogits = zeros(B * T * c.shape->logits), dvalues[B * T];
    double first = 0.0, last = 0.0;
    for (int i = 0; i < 200; i++) {
        exphil_forward given = EXPHIL_FORWARD_INIT;
        assert_ok(exphil_trainer_forward(r.trainer, &batch, c.states, B * c.state_bytes, &given, NULL));
        last = 0.0;
        for (int k = 0; k < B * T; k++) {
            float wanted = c.floats[k * c.shape->floats], miss = ((const float *)given.values)[k] - wanted;
            dvalues[k] = 2.0f * miss / (B * T);
            last += (double)(miss * miss) / (B * T);
        }
        if (i == 0) first = last;
        assert_ok(exphil_trainer_backward(r.trainer, dlogits, dvalues, last, NULL, NULL));
    }
    assert_true(last < 0.2 * first);
    free(dlogits);
    end(&c);
    end_run(&r);
}

/* What was abandoned or refused never was. */
static void nothing_changes_halfway(void **unused)
{
    exphil_model_config config = model_case_config("gru attention", EXPHIL_TYPE_F32);
    config.value = EXPHIL_VALUE_DETACHED;
    run r = begin_run(&config, 1, NULL), plain = begin_run(&config, 1, NULL);
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_forward given = EXPHIL_FORWARD_INIT;
    chunk c;
    begin(&c, r.model);
    play(&c, xph_model_spec(r.model), true);
    exphil_batch batch = batch_of(&c);
    float *dlogits = zeros(B * T * c.shape->logits), dvalues[B * T] = {0};
    for (int i = 0; i < 3; i++) {
        assert_ok(exphil_trainer_forward(r.trainer, &batch, NULL, 0, &given, NULL));
        if (i == 0) {
            assert_ok(exphil_trainer_abandon(r.trainer, NULL));
        } else if (i == 1) {
            dlogits[5] = NAN;
            assert_int_equal(exphil_trainer_backward(r.trainer, dlogits, NULL, 0.0, NULL, &error),
                             EXPHIL_E_NUMERIC);
            assert_string_equal(error.message, "dlogits[5] is not finite");
            dlogits[5] = 0.0f;
        } else {
            dvalues[3] = INFINITY;
            assert_int_equal(exphil_trainer_backward(r.trainer, dlogits, dvalues, 0.0, NULL, &error),
                             EXPHIL_E_NUMERIC);
            assert_string_equal(error.message, "dvalues[3] is not finite");
        }
        assert_ok(exphil_trainer_step_batch(r.trainer, &batch, NULL, NULL));
        assert_ok(exphil_trainer_step_batch(plain.trainer, &batch, NULL, NULL));
        assert_true(weights_of(&r) == weights_of(&plain));
    }
    free(dlogits);
    end(&c);
    end_run(&r);
    end_run(&plain);
}

/* Numbers that the host gave leave the carried state where the batch began; a gradient that overflows leaves none. */
static void a_gradient_that_overflows_forgets_the_state(void **unused)
{
    exphil_model_config config = model_case_config("gru", EXPHIL_TYPE_F32);
    run r = begin_run(&config, 1, NULL), plain = begin_run(&config, 1, NULL),
        kept = begin_run(&config, 1, NULL);
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_forward given = EXPHIL_FORWARD_INIT;
    chunk c;
    begin(&c, r.model);
    play(&c, xph_model_spec(r.model), true);
    exphil_batch batch = batch_of(&c);
    int64_t count = B * T * c.shape->logits;
    float *dlogits = zeros(count);
    for (int64_t i = 0; i < count; i++) dlogits[i] = 3e38f;
    assert_ok(exphil_trainer_step_batch(r.trainer, &batch, NULL, NULL));
    assert_ok(exphil_trainer_step_batch(plain.trainer, &batch, NULL, NULL));
    assert_ok(exphil_trainer_step_batch(kept.trainer, &batch, NULL, NULL));
    play(&c, xph_model_spec(r.model), false);
    assert_ok(exphil_trainer_forward(r.trainer, &batch, NULL, 0, &given, NULL));
    assert_int_equal(exphil_trainer_backward(r.trainer, dlogits, NULL, 0.0, NULL, &error), EXPHIL_E_NUMERIC);
    assert_true(weights_of(&r) == weights_of(&plain));
    for (int b = 0; b < B; b++) c.reset[b * T] = 0;
    assert_ok(exphil_trainer_step_batch(r.trainer, &batch, NULL, NULL));
    const uint64_t forgotten = weights_of(&r);
    for (int k = 0; k < 2;
         k++) { /* what has no state before is as what is told to begin anew, and not as what goes on */
        for (int b = 0; b < B; b++) c.reset[b * T] = k == 0;
        assert_ok(exphil_trainer_step_batch(k ? kept.trainer : plain.trainer, &batch, NULL, NULL));
    }
    assert_true(weights_of(&plain) == forgotten && weights_of(&kept) != forgotten);
    free(dlogits);
    end(&c);
    end_run(&r);
    end_run(&plain);
    end_run(&kept);
}

static void calls_between_are_refused(void **unused)
{
    exphil_model_config config = model_case_config("gru", EXPHIL_TYPE_F32);
    run r = begin_run(&config, 1, NULL);
    exphil_forward given = EXPHIL_FORWARD_INIT;
    exphil_model *model = NULL;
    chunk c;
    begin(&c, r.model);
    play(&c, xph_model_spec(r.model), true);
    exphil_batch batch = batch_of(&c);
    float *dlogits = zeros(B * T * c.shape->logits);
    assert_int_equal(exphil_trainer_backward(r.trainer, dlogits, NULL, 0.0, NULL, NULL), EXPHIL_E_STATE);
    assert_int_equal(exphil_trainer_abandon(r.trainer, NULL), EXPHIL_E_STATE);
    assert_ok(exphil_trainer_forward(r.trainer, &batch, NULL, 0, &given, NULL));
    assert_int_equal(exphil_trainer_forward(r.trainer, &batch, NULL, 0, &given, NULL), EXPHIL_E_STATE);
    assert_int_equal(exphil_trainer_step_batch(r.trainer, &batch, NULL, NULL), EXPHIL_E_STATE);
    assert_int_equal(exphil_trainer_model(r.trainer, EXPHIL_WEIGHTS, &model, NULL), EXPHIL_E_STATE);
    assert_int_equal(exphil_trainer_save(r.trainer, "none", NULL), EXPHIL_E_STATE);
    assert_int_equal(exphil_trainer_resume(r.trainer, "none", NULL), EXPHIL_E_STATE);
    assert_int_equal(exphil_trainer_backward(r.trainer, dlogits, dlogits, 0.0, NULL, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_trainer_abandon(r.trainer, NULL), EXPHIL_E_STATE);
    assert_ok(exphil_trainer_step_batch(r.trainer, &batch, NULL, NULL));
    free(dlogits);
    end(&c);
    end_run(&r);
}

static void bad_states_are_refused(void **unused)
{
    exphil_model_config config = model_case_config("gru", EXPHIL_TYPE_F32);
    run r = begin_run(&config, 1, NULL);
    exphil_forward given = EXPHIL_FORWARD_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    chunk c;
    begin(&c, r.model);
    play(&c, xph_model_spec(r.model), true);
    exphil_batch batch = batch_of(&c);
    size_t bytes = B * c.state_bytes;
    unsigned char *states = c.states;
    assert_int_equal(exphil_trainer_forward(r.trainer, &batch, states, bytes - 1, &given, &error),
                     EXPHIL_E_INVALID);
    assert_int_equal(exphil_trainer_forward(r.trainer, &batch, states, bytes - B, &given, &error),
                     EXPHIL_E_FORMAT);
    states[c.state_bytes] ^= 1;
    assert_int_equal(exphil_trainer_forward(r.trainer, &batch, states, bytes, &given, &error),
                     EXPHIL_E_FORMAT);
    assert_non_null(strstr(error.message, "states[1]"));
    states[c.state_bytes] ^= 1;
    float bad = NAN;
    memcpy(states + 3 * c.state_bytes - (size_t)c.shape->logits * sizeof bad - sizeof bad, &bad, sizeof bad);
    assert_int_equal(exphil_trainer_forward(r.trainer, &batch, states, bytes, &given, &error),
                     EXPHIL_E_NUMERIC);
    assert_non_null(strstr(error.message, "states[2]"));
    assert_int_equal(exphil_trainer_forward(r.trainer, NULL, NULL, 0, &given, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_trainer_forward(r.trainer, &batch, NULL, 0, NULL, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_trainer_forward(NULL, &batch, NULL, 0, &given, NULL), EXPHIL_E_INVALID);
    end(&c);
    end_run(&r);
}

static void save_all(const exphil_session *session, unsigned char *to)
{
    const size_t bytes = exphil_session_state_size(session);
    for (int64_t b = 0; b < B; b++)
        assert_ok(exphil_session_state_save(session, b, to + (size_t)b * bytes, bytes));
}

/* Of just the right size, and of another model; of this model, and of another size. */
static void states_say_of_what_model_they_are(void **unused)
{
    static const char *const others[] = {"gru mlp", "gru ffn", "mlp gru"};
    exphil_model_config config = model_case_config("gru", EXPHIL_TYPE_F32);
    run r = begin_run(&config, 1, NULL);
    exphil_forward given = EXPHIL_FORWARD_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    chunk c;
    begin(&c, r.model);
    play(&c, xph_model_spec(r.model), true);
    exphil_batch batch = batch_of(&c);
    exphil_session_config how = EXPHIL_SESSION_CONFIG_INIT;
    how.streams = B;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        exphil_session *session = NULL;
        config.blocks = others[i];
        exphil_model *other = model_case_create(r.context, &config);
        assert_ok(exphil_session_create(other, &how, &session, NULL));
        assert_int_equal(exphil_session_state_size(session), c.state_bytes);
        save_all(session, c.states);
        assert_int_equal(
            exphil_trainer_forward(r.trainer, &batch, c.states, B * c.state_bytes, &given, &error),
            EXPHIL_E_MISMATCH);
        assert_says(&error, "states[0]: a state of a model of another configuration");
        exphil_session_destroy(session);
        exphil_model_destroy(other);
    }
    for (int adoptable = 0; adoptable < 2; adoptable++) {
        exphil_session *session = NULL;
        how.adoptable = adoptable;
        assert_ok(exphil_session_create(r.model, &how, &session, NULL));
        const size_t bytes = exphil_session_state_size(session);
        unsigned char *states = malloc(B * (bytes + 4));
        save_all(session, states);
        assert_int_equal(exphil_trainer_forward(r.trainer, &batch, states, B * (bytes + 4), &given, &error),
                         EXPHIL_E_FORMAT);
        assert_ok(exphil_trainer_forward(r.trainer, &batch, states, B * bytes, &given, NULL));
        assert_ok(exphil_trainer_abandon(r.trainer, NULL));
        free(states);
        exphil_session_destroy(session);
    }
    end(&c);
    end_run(&r);
}

/* A model with a new value head decides as before and expects 0. */
static void a_value_head_is_added(void **unused)
{
    exphil_model_config config = model_case_config("mamba", EXPHIL_TYPE_F32);
    exphil_context *context = test_context(NULL, NULL, 1);
    exphil_model *model = model_case_create(context, &config), *with = NULL, *again = NULL;
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    float value = 1.0f;
    assert_ok(exphil_model_with_value(model, EXPHIL_VALUE_SHARED, 3, &with, NULL));
    assert_ok(exphil_model_query(with, &info, NULL));
    assert_int_equal(info.value, EXPHIL_VALUE_SHARED);
    chunk a, b;
    begin(&a, model);
    begin(&b, with);
    play(&a, xph_model_spec(model), true);
    play(&b, xph_model_spec(with), true);
    assert_memory_equal(a.logits, b.logits, (size_t)(B * T * a.shape->logits) * sizeof(float));
    for (int i = 0; i < B * T; i++) assert_true(b.values[i] == 0.0f);
    assert_int_equal(exphil_session_value(a.session, 0, &value), EXPHIL_E_STATE);
    assert_int_equal(exphil_session_value(b.session, B, &value), EXPHIL_E_INVALID);
    assert_int_equal(exphil_session_value(b.session, 0, NULL), EXPHIL_E_INVALID);
    assert_ok(exphil_model_with_value(with, EXPHIL_VALUE_DETACHED, 3, &again, NULL));
    assert_int_equal(exphil_model_with_value(model, EXPHIL_VALUE_NONE, 3, &again, NULL), EXPHIL_E_INVALID);
    assert_int_equal(exphil_model_with_value(model, 3, 3, &again, NULL), EXPHIL_E_INVALID);
    end(&a);
    end(&b);
    exphil_model_destroy(again);
    uint64_t found[3];
    for (int i = 0; i < 3; i++) { /* its trunk is drawn from the seed */
        assert_ok(exphil_model_with_value(model, EXPHIL_VALUE_SHARED, i == 2 ? 3 : 4, &again, NULL));
        assert_ok(exphil_model_query(again, &info, NULL));
        found[i] = info.weights_hash;
        exphil_model_destroy(again);
    }
    assert_true(found[0] == found[1] && found[0] != found[2]);
    exphil_model_destroy(with);
    exphil_model_destroy(model);
    exphil_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_has_the_bits_of_play),
        cmocka_unit_test(backward_makes_the_library_s_update),
        cmocka_unit_test(values_are_learnt),
        cmocka_unit_test(nothing_changes_halfway),
        cmocka_unit_test(calls_between_are_refused),
        cmocka_unit_test(bad_states_are_refused),
        cmocka_unit_test(states_say_of_what_model_they_are),
        cmocka_unit_test(a_gradient_that_overflows_forgets_the_state),
        cmocka_unit_test(a_value_head_is_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
