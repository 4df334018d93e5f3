/* Optimizers, trainers, evaluation: one call, one answer. Training that goes on by itself is nif_training.c. */
#include "nif.h"

static const char *const which_names[] = {"weights", "averaged", NULL};

/* ---- results ----------------------------------------------------------------------------------------------- */

ERL_NIF_TERM make_metrics(ErlNifEnv *env, const exphil_metrics *metrics, int64_t heads)
{
    ERL_NIF_TERM losses = enif_make_list(env, 0);
    for (int64_t i = heads; i-- > 0;)
        losses = enif_make_list_cell(env, make_number(env, metrics->head_loss[i]), losses);
    return with_key(env, make_record(env, &metrics_info, metrics), "head_loss", losses);
}

ERL_NIF_TERM make_report(ErlNifEnv *env, const exphil_report *report)
{
    ERL_NIF_TERM heads = enif_make_list(env, 0);
    for (int64_t i = report->heads; i-- > 0;)
        heads = enif_make_list_cell(env, make_record(env, &head_report, &report->head[i]), heads);
    return with_key(env, make_record(env, &report_info, report), "heads", heads);
}

ERL_NIF_TERM make_comparison(ErlNifEnv *env, const exphil_comparison *comparison)
{
    ERL_NIF_TERM heads = enif_make_list(env, 0);
    for (int64_t i = comparison->heads; i-- > 0;)
        heads = enif_make_list_cell(env, make_record(env, &head_comparison, &comparison->head[i]), heads);
    return with_key(env, make_record(env, &comparison_info, comparison), "heads", heads);
}

bool read_comparison(call *c, ERL_NIF_TERM map, exphil_comparison *comparison)
{
    ERL_NIF_TERM list, each;
    unsigned heads = 0;
    if (failed(c)) return false;
    if (!enif_get_map_value(c->env, map, atom(c->env, "heads"), &list) ||
        !enif_get_list_length(c->env, list, &heads) || heads > EXPHIL_HEADS_MAX)
        return fail(c, EXPHIL_E_INVALID, "comparison: heads: not a list of at most %d", EXPHIL_HEADS_MAX);
    enif_make_map_remove(c->env, map, atom(c->env, "heads"), &map);
    comparison->heads = heads;
    for (int i = 0; enif_get_list_cell(c->env, list, &each, &list); i++)
        read_record(c, each, &head_comparison, &comparison->head[i]);
    return read_record(c, map, &comparison_info, comparison);
}

/* ---- optimizers -------------------------------------------------------------------------------------------- */

NIF(nif_optimizer_create)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_optimizer_config config = EXPHIL_OPTIMIZER_CONFIG_INIT;
    exphil_optimizer *optimizer = NULL;
    handle *model = hold(&c, argv[0], MODEL);
    if (read_record(&c, argv[1], &optimizer_config, &config))
        done(&c, exphil_optimizer_create(model->object, &config, &optimizer, &c.error));
    return finish_ok(&c, make_handle(&c, OPTIMIZER, optimizer, NULL, model));
}

NIF(nif_optimizer_info)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_optimizer_info info = EXPHIL_OPTIMIZER_INFO_INIT;
    handle *optimizer = hold(&c, argv[0], OPTIMIZER);
    if (optimizer) done(&c, exphil_optimizer_query(optimizer->object, &info, &c.error));
    return finish_ok(&c, make_record(env, &optimizer_info, &info));
}

/* ---- trainers ---------------------------------------------------------------------------------------------- */

static struct widths *model_widths(call *c, const exphil_model *model)
{
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    if (failed(c) || !done(c, exphil_model_query(model, &info, &c->error))) return NULL;
    struct widths *widths = enif_alloc(sizeof *widths);
    if (widths)
        *widths = (struct widths){.floats = info.float_count,
                                  .ids = info.id_count,
                                  .heads = info.head_count,
                                  .slots = info.action_slots,
                                  .logits = info.logit_count,
                                  .real_bytes = info.type == EXPHIL_TYPE_F64 ? sizeof(double) : sizeof(float),
                                  .values = info.value != EXPHIL_VALUE_NONE};
    else
        fail(c, EXPHIL_E_MEMORY, "could not make a handle");
    return widths;
}

/* The spec of the model, for lists that must fit its heads. */
static const exphil_spec *model_heads(call *c, const exphil_model *model)
{
    exphil_spec *spec = chunk(c, sizeof *spec);
    if (!spec) return NULL;
    *spec = (exphil_spec)EXPHIL_SPEC_INIT;
    return done(c, exphil_model_spec(model, spec, &c->error)) ? spec : NULL;
}

NIF(nif_trainer_create)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_trainer_config config = EXPHIL_TRAINER_CONFIG_INIT;
    exphil_trainer *trainer = NULL;
    handle *model = hold(&c, argv[0], MODEL);
    handle *optimizer = hold(&c, argv[1], OPTIMIZER);
    handle *prefetcher = enif_is_identical(argv[2], atom_nil) ? NULL : hold(&c, argv[2], PREFETCHER);
    if (!failed(&c)) c.spec = model_heads(&c, model->object);
    if (!read_record(&c, argv[3], &trainer_config, &config)) return finish(&c, 0);
    struct widths *widths = model_widths(&c, model->object);
    if (!widths || !done(&c, exphil_trainer_create(model->object, optimizer->object,
                                                   prefetcher ? prefetcher->object : NULL, &config, &trainer,
                                                   &c.error))) {
        if (widths) enif_free(widths);
        return finish(&c, 0);
    }
    return finish_ok(&c, make_handle(&c, TRAINER, trainer, widths, model));
}

NIF(nif_trainer_step)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    handle *trainer = hold(&c, argv[0], TRAINER);
    if (!trainer || !done(&c, exphil_trainer_step(trainer->object, &metrics, &c.error))) return finish(&c, 0);
    return finish_ok(&c, make_metrics(env, &metrics, ((const struct widths *)trainer->extra)->heads));
}

ERL_NIF_TERM key_of(call *c, ERL_NIF_TERM map, const char *key)
{
    ERL_NIF_TERM value = atom_nil;
    if (!failed(c) && !enif_get_map_value(c->env, map, atom(c->env, key), &value))
        fail(c, EXPHIL_E_INVALID, "batch: %s is missing", key);
    return value;
}

void read_batch(call *c, ERL_NIF_TERM map, const struct widths *w, exphil_batch *batch)
{
    batch->batch = read_integer(c, key_of(c, map, "batch"), "batch", 1, INT32_MAX);
    batch->time = read_integer(c, key_of(c, map, "time"), "time", 1, INT32_MAX);
    int64_t rows = failed(c) ? 0 : batch->batch * batch->time;
    if (rows > (int64_t)1 << 40) {
        fail(c, EXPHIL_E_INVALID, "batch: %lld rows", (long long)rows);
        return;
    }
    batch->floats = read_array(c, key_of(c, map, "floats"), "floats", rows * w->floats, sizeof(float));
    batch->ids = read_array(c, key_of(c, map, "ids"), "ids", rows * w->ids, sizeof(int32_t));
    batch->past = read_array(c, key_of(c, map, "past"), "past", rows * w->slots * w->heads, sizeof(int32_t));
    batch->actions = read_array(c, key_of(c, map, "actions"), "actions", rows * w->heads, sizeof(int32_t));
    batch->mask = read_array(c, key_of(c, map, "mask"), "mask", rows, sizeof(float));
    batch->reset = read_array(c, key_of(c, map, "reset"), "reset", rows, 1);
    for (int64_t i = 0; !failed(c) && i < rows; i++) batch->frames += batch->mask[i] > 0;
}

NIF(nif_trainer_step_batch)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_batch batch = EXPHIL_BATCH_INIT;
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    handle *trainer = hold(&c, argv[0], TRAINER);
    if (!trainer) return finish(&c, 0);
    const struct widths *widths = trainer->extra;
    if (!enif_is_map(env, argv[1])) fail(&c, EXPHIL_E_INVALID, "batch: not a map");
    read_batch(&c, argv[1], widths, &batch);
    if (failed(&c) || !done(&c, exphil_trainer_step_batch(trainer->object, &batch, &metrics, &c.error)))
        return finish(&c, 0);
    return finish_ok(&c, make_metrics(env, &metrics, widths->heads));
}

NIF(nif_trainer_model)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_model *model = NULL;
    handle *trainer = hold(&c, argv[0], TRAINER);
    int32_t which = read_name(&c, argv[1], "which", which_names);
    if (!failed(&c)) done(&c, exphil_trainer_model(trainer->object, which, &model, &c.error));
    return finish_ok(&c, make_handle(&c, MODEL, model, NULL, trainer));
}

NIF(nif_trainer_save)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    handle *trainer = hold(&c, argv[0], TRAINER);
    const char *path = read_text(&c, argv[1], "path");
    if (path) done(&c, exphil_trainer_save(trainer->object, path, &c.error));
    return finish(&c, 0);
}

NIF(nif_trainer_resume)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    handle *trainer = hold(&c, argv[0], TRAINER);
    const char *path = read_text(&c, argv[1], "path");
    if (path) done(&c, exphil_trainer_resume(trainer->object, path, &c.error));
    return finish(&c, 0);
}

/* ---- evaluation -------------------------------------------------------------------------------------------- */

/* The second dataset may be nil, or the first once more: one handle is held once. */
static const exphil_dataset *frequencies_of(call *c, ERL_NIF_TERM term, const ERL_NIF_TERM dataset)
{
    if (enif_is_identical(term, atom_nil) || enif_is_identical(term, dataset)) return NULL;
    handle *frequencies = hold(c, term, DATASET);
    return frequencies ? frequencies->object : NULL;
}

NIF(nif_trainer_evaluate)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_report report = EXPHIL_REPORT_INIT;
    handle *trainer = hold(&c, argv[0], TRAINER);
    int32_t which = read_name(&c, argv[1], "which", which_names);
    handle *dataset = hold(&c, argv[2], DATASET);
    const exphil_dataset *frequencies = frequencies_of(&c, argv[3], argv[2]);
    if (!failed(&c))
        done(&c, exphil_trainer_evaluate(trainer->object, which, dataset->object, frequencies, &report,
                                         &c.error));
    return finish_ok(&c, make_report(env, &report));
}

struct evaluate_in {
    const exphil_head_loss *losses;
    int64_t batch;
};
static const field evaluate_fields[] = {FIELD(struct evaluate_in, losses, T_RECORDS_AT, 1, NULL, &head_loss),
                                        FIELD(struct evaluate_in, batch, T_I64, 1, NULL, NULL)};
record evaluate_map = {
    .name = "evaluate", .bytes = sizeof(struct evaluate_in), .fields = evaluate_fields, .field_count = 2};

NIF(nif_evaluate)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    struct evaluate_in in = {NULL, 0};
    exphil_report report = EXPHIL_REPORT_INIT;
    handle *model = hold(&c, argv[0], MODEL);
    handle *dataset = hold(&c, argv[1], DATASET);
    const exphil_dataset *frequencies = frequencies_of(&c, argv[2], argv[1]);
    if (!failed(&c)) c.spec = model_heads(&c, model->object);
    if (read_record(&c, argv[3], &evaluate_map, &in))
        done(&c, exphil_evaluate(model->object, dataset->object, frequencies, in.losses, in.batch, &report,
                                 &c.error));
    return finish_ok(&c, make_report(env, &report));
}
