/* Updates whose loss is the host's own, in two halves; and imitation weighted by what came of it. */
#include "nif.h"

#define ALIGNED 16

/* Copies one array of a batch behind the widths of its trainer, whose end is *at. */
static const void *keep(const void *from, size_t bytes, char *base, size_t *at)
{
    void *to = base + *at;
    *at += (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
    return bytes ? memcpy(to, from, bytes) : to;
}

/* The library's batch stays as it is until backward or abandon: a copy of it, which goes with the handle. */
static bool keep_batch(call *c, handle *trainer, exphil_batch *batch)
{
    const struct widths *w = trainer->extra;
    const size_t rows = (size_t)(batch->batch * batch->time),
                 head = (sizeof *w + ALIGNED - 1) / ALIGNED * ALIGNED;
    const size_t floats = rows * (size_t)w->floats * sizeof(float),
                 ids = rows * (size_t)w->ids * sizeof(int32_t),
                 past = rows * (size_t)(w->slots * w->heads) * sizeof(int32_t),
                 actions = rows * (size_t)w->heads * sizeof(int32_t);
    const size_t all = head + floats + ids + past + actions + rows * (sizeof(float) + 1) + 6 * ALIGNED;
    char *grown = enif_realloc(trainer->extra, all);
    if (!grown) return fail(c, EXPHIL_E_MEMORY, "could not get %zu bytes", all);
    trainer->extra = grown;
    size_t at = head;
    batch->floats = keep(batch->floats, floats, grown, &at);
    batch->ids = keep(batch->ids, ids, grown, &at);
    batch->past = keep(batch->past, past, grown, &at);
    batch->actions = keep(batch->actions, actions, grown, &at);
    batch->mask = keep(batch->mask, rows * sizeof(float), grown, &at);
    batch->reset = keep(batch->reset, rows, grown, &at);
    return true;
}

/* trainer, batch, states or nil. */
NIF(nif_trainer_forward)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_batch batch = EXPHIL_BATCH_INIT;
    exphil_forward forward = EXPHIL_FORWARD_INIT;
    ErlNifBinary states = {0};
    handle *trainer = hold(&c, argv[0], TRAINER);
    if (!trainer) return finish(&c, 0);
    struct widths *w = trainer->extra;
    if (w->half_rows)
        fail(&c, EXPHIL_E_STATE, "trainer: the forward before has had no backward yet, nor abandon");
    if (!failed(&c) && !enif_is_map(env, argv[1])) fail(&c, EXPHIL_E_INVALID, "batch: not a map");
    read_batch(&c, argv[1], w, &batch);
    if (!enif_is_identical(argv[2], atom_nil)) read_binary(&c, argv[2], "states", &states);
    if (failed(&c) || !keep_batch(&c, trainer, &batch) ||
        !done(&c,
              exphil_trainer_forward(trainer->object, &batch, states.data, states.size, &forward, &c.error)))
        return finish(&c, 0);
    w = trainer->extra;
    w->half_rows = forward.rows;
    const size_t reals = (size_t)forward.rows * w->real_bytes;
    ERL_NIF_TERM map = with_key(env, enif_make_new_map(env), "rows", enif_make_int64(env, forward.rows));
    map = with_key(env, map, "logits", make_binary(env, forward.logits, reals * (size_t)forward.logit_count));
    map = with_key(env, map, "values", forward.values ? make_binary(env, forward.values, reals) : atom_nil);
    return finish_ok(&c, map);
}

/* trainer, dlogits, dvalues or nil, loss. */
NIF(nif_trainer_backward)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    const void *dvalues = NULL;
    double loss = 0;
    ErlNifSInt64 whole;
    handle *trainer = hold(&c, argv[0], TRAINER);
    if (!trainer) return finish(&c, 0);
    struct widths *w = trainer->extra;
    if (!w->half_rows) fail(&c, EXPHIL_E_STATE, "trainer: forward has not been called");
    const void *dlogits = read_array(&c, argv[1], "dlogits", w->half_rows * w->logits, w->real_bytes);
    if (!enif_is_identical(argv[2], atom_nil))
        dvalues = read_array(&c, argv[2], "dvalues", w->half_rows, w->real_bytes);
    if (!failed(&c) && !enif_get_double(env, argv[3], &loss)) {
        if (enif_get_int64(env, argv[3], &whole))
            loss = (double)whole;
        else
            fail(&c, EXPHIL_E_INVALID, "loss: not a number");
    }
    if (failed(&c)) return finish(&c, 0);
    w->half_rows = 0; /* whatever comes of it */
    if (!done(&c, exphil_trainer_backward(trainer->object, dlogits, dvalues, loss, &metrics, &c.error)))
        return finish(&c, 0);
    return finish_ok(&c, make_metrics(env, &metrics, w->heads));
}

NIF(nif_trainer_abandon)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    handle *trainer = hold(&c, argv[0], TRAINER);
    if (trainer && done(&c, exphil_trainer_abandon(trainer->object, &c.error)))
        ((struct widths *)trainer->extra)->half_rows = 0;
    return finish(&c, 0);
}

NIF(nif_trainer_step_outcome)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_outcome_config config = EXPHIL_OUTCOME_CONFIG_INIT;
    exphil_outcome_metrics metrics = EXPHIL_OUTCOME_METRICS_INIT;
    handle *trainer = hold(&c, argv[0], TRAINER);
    if (read_record(&c, argv[1], &outcome_config, &config))
        done(&c, exphil_trainer_step_outcome(trainer->object, &config, &metrics, &c.error));
    return finish_ok(&c, make_record(env, &outcome_metrics, &metrics));
}
