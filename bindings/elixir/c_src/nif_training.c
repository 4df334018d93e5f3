/* Training on a thread of its own. The thread holds the trainer from the first update to the last, tells its owner by
 * messages {:libexphil_training, tag, event}, and stops when it is told to, when its owner dies, or at its end:
 *
 *   {:progress, metrics}     every so many updates
 *   {:report, report}        after an evaluation
 *   {:saved, path}           after a checkpoint
 *   {:skipped, error}        an update that NaN or infinity made void; training goes on
 *   {:done, metrics} | {:cancelled, metrics} | {:error, error}     the last one
 *
 * The thread keeps the handle of the training, and the reaper joins the thread: nobody else waits for it. */
#include "nif.h"

#define STACK_KILOWORDS 128 /* 1 MiB, as the library's own threads have */

struct run {
    atomic_bool stop;
    int64_t updates, progress_every, evaluate_every, save_every, skip_limit;
    int64_t saved; /* update of the last checkpoint; -1: none */
    char *save;
    handle *self, *trainer, *dataset; /* kept and entered */
    int64_t heads;
    struct grave *grave;
    ErlNifTid thread;
    ErlNifPid owner;
    ErlNifEnv *tag_env;
    ERL_NIF_TERM tag;
    exphil_metrics last;
};

struct run_in {
    int64_t updates, progress_every, evaluate_every, save_every, skip_limit;
    const char *save;
};
#define ONE(member, type) FIELD(struct run_in, member, type, 1, NULL, NULL)
static const field run_fields[] = {ONE(updates, T_I64),        ONE(progress_every, T_I64),
                                   ONE(evaluate_every, T_I64), ONE(save_every, T_I64),
                                   ONE(skip_limit, T_I64),     ONE(save, T_TEXT)};
record run_map = {.name = "training", .bytes = sizeof(struct run_in), .fields = run_fields, .field_count = 6};

void training_stop(handle *training)
{
    struct run *run = training->object;
    if (run) atomic_store(&run->stop, true);
}

void training_free(void *object)
{
    struct run *run = object;
    if (run->save) enif_free(run->save);
    if (run->tag_env) enif_free_env(run->tag_env);
    enif_free(run);
}

/* ---- the thread -------------------------------------------------------------------------------------------- */

static void tell(struct run *run, ErlNifEnv *env, const char *event, ERL_NIF_TERM value)
{
    ERL_NIF_TERM message =
        enif_make_tuple3(env, atom(env, "libexphil_training"), enif_make_copy(env, run->tag),
                         make_pair(env, atom(env, event), value));
    enif_send(NULL, &run->owner, env, message);
    enif_clear_env(env);
}

static bool due(int64_t update, int64_t every)
{
    return every > 0 && update % every == 0;
}

/* Once for each update: the last one may be due by number and again as the last. */
static bool save(struct run *run, call *c, ErlNifEnv *env)
{
    if (run->saved == run->last.update) return true;
    if (!done(c, exphil_trainer_save(run->trainer->object, run->save, &c->error))) return false;
    run->saved = run->last.update;
    tell(run, env, "saved", make_text(env, run->save));
    return true;
}

static bool evaluate(struct run *run, call *c, ErlNifEnv *env)
{
    exphil_report report = EXPHIL_REPORT_INIT;
    if (!done(c, exphil_trainer_evaluate(run->trainer->object, EXPHIL_WEIGHTS, run->dataset->object, NULL,
                                         &report, &c->error)))
        return false;
    tell(run, env, "report", make_report(env, &report));
    return true;
}

static void give_all_back(struct run *run)
{
    give_back(run->trainer);
    if (run->dataset) give_back(run->dataset);
}

/* One update. One that NaN or infinity made void changes nothing but the place in the data: it is told and passed over, as
 * often in a row as skip_limit says. */
static bool update(struct run *run, call *c, ErlNifEnv *env, int64_t *skipped)
{
    exphil_status status = exphil_trainer_step(run->trainer->object, &run->last, &c->error);
    if (status == EXPHIL_E_NUMERIC && *skipped < run->skip_limit) {
        ++*skipped;
        tell(run, env, "skipped", error_term(env, &c->error));
        c->error.status = EXPHIL_OK;
        c->error.message[0] = '\0';
        return true;
    }
    *skipped = 0;
    return done(c, status);
}

static bool train(struct run *run, call *c, ErlNifEnv *env)
{
    int64_t skipped = 0;
    for (int64_t n = 1; run->updates == 0 || n <= run->updates; n++) {
        if (atomic_load(&run->stop)) return fail(c, EXPHIL_E_CANCELLED, "cancelled");
        if (!update(run, c, env, &skipped)) return false;
        if (due(n, run->progress_every))
            tell(run, env, "progress", make_metrics(env, &run->last, run->heads));
        if (run->dataset && due(n, run->evaluate_every) && !evaluate(run, c, env)) return false;
        if (run->save && due(n, run->save_every) && !save(run, c, env)) return false;
    }
    return true;
}

/* What was cancelled is saved too; that cannot be cancelled. */
static void save_last(struct run *run, call *c, ErlNifEnv *env)
{
    call whole;
    call_begin(&whole, NULL);
    static const atomic_bool never;
    whole.stop = &never;
    if (!save(run, &whole, env)) c->error = whole.error;
    call_end(&whole);
}

/* The trainer and the dataset are free before the last message, so that its reader may use them. */
static void *training_thread(void *arg)
{
    struct run *run = arg;
    handle *self = run->self;
    struct grave *grave = run->grave;
    ErlNifEnv *env = enif_alloc_env();
    call c;
    call_begin(&c, NULL);
    c.stop = &run->stop;
    bool whole = train(run, &c, env);
    if (run->save && (whole || c.error.status == EXPHIL_E_CANCELLED)) save_last(run, &c, env);
    call_end(&c);
    give_all_back(run);
    if (!failed(&c))
        tell(run, env, "done", make_metrics(env, &run->last, run->heads));
    else if (c.error.status == EXPHIL_E_CANCELLED)
        tell(run, env, "cancelled", make_metrics(env, &run->last, run->heads));
    else
        tell(run, env, "error", error_term(env, &c.error));
    enif_free_env(env);
    bury_thread(grave, enif_thread_self(), self);
    return NULL;
}

/* ---- start and cancel -------------------------------------------------------------------------------------- */

/* All numbers of the map are counts. */
static bool check_counts(call *c, const struct run_in *in)
{
    for (size_t i = 0; i < run_map.field_count; i++) {
        const field *f = &run_fields[i];
        int64_t count = 0;
        if (f->type != T_I64) continue;
        memcpy(&count, (const char *)in + f->offset, sizeof count);
        if (count < 0)
            return fail(c, EXPHIL_E_INVALID, "training: %s: %lld is below 0", f->name, (long long)count);
    }
    return true;
}

static bool read_run(call *c, struct run *run, ERL_NIF_TERM map)
{
    struct run_in in = {0, 1, 0, 0, 0, NULL};
    if (!read_record(c, map, &run_map, &in) || !check_counts(c, &in)) return false;
    run->updates = in.updates;
    run->progress_every = in.progress_every;
    run->evaluate_every = in.evaluate_every;
    run->save_every = in.save_every;
    run->skip_limit = in.skip_limit;
    if (in.save) {
        size_t bytes = strlen(in.save) + 1;
        run->save = enif_alloc(bytes);
        if (!run->save) return fail(c, EXPHIL_E_MEMORY, "no memory for a path");
        memcpy(run->save, in.save, bytes);
    }
    return true;
}

/* From this call's hands into the thread's: finish() no longer leaves them. */
static void take_over(call *c)
{
    for (int i = 0; i < c->held_count; i++) enif_keep_resource(c->held[i]);
    c->held_count = 0;
}

static bool start(call *c, struct run *run, ERL_NIF_TERM term)
{
    run->self = handle_of(c->env, term, TRAINING);
    run->grave = grave_for_thread();
    if (!run->grave) return fail(c, EXPHIL_E_MEMORY, "could not start a thread");
    enif_keep_resource(run->self);
    take_over(c);
    /* An owner that is dead already: the thread stops at once and nobody hears of it. */
    if (monitor_owner(run->self, c->env, &run->owner) != 0) atomic_store(&run->stop, true);
    ErlNifThreadOpts *opts = enif_thread_opts_create("libexphil_training");
    if (opts) opts->suggested_stack_size = STACK_KILOWORDS;
    int rc = enif_thread_create("libexphil_training", &run->thread, training_thread, run, opts);
    if (opts) enif_thread_opts_destroy(opts);
    if (rc == 0) return true;
    give_all_back(run);
    enif_release_resource(run->self);
    enif_free(run->grave);
    return fail(c, EXPHIL_E_MEMORY, "could not start a thread");
}

/* trainer, dataset to evaluate or nil, {owner, tag}, options. */
NIF(nif_training_start)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    const ERL_NIF_TERM *pair;
    int arity;
    handle *trainer = hold(&c, argv[0], TRAINER);
    handle *dataset = enif_is_identical(argv[1], atom_nil) ? NULL : hold(&c, argv[1], DATASET);
    struct run *run = failed(&c) ? NULL : enif_alloc(sizeof *run);
    if (!run) return fail(&c, EXPHIL_E_MEMORY, "no memory"), finish(&c, 0);
    memset(run, 0, sizeof *run);
    run->last = (exphil_metrics)EXPHIL_METRICS_INIT;
    run->saved = -1;
    run->trainer = trainer;
    run->dataset = dataset;
    run->heads = ((const struct widths *)trainer->extra)->heads;
    run->tag_env = enif_alloc_env();
    if (!enif_get_tuple(env, argv[2], &arity, &pair) || arity != 2 ||
        !enif_get_local_pid(env, pair[0], &run->owner))
        fail(&c, EXPHIL_E_INVALID, "owner: not a process of this node");
    if (!read_run(&c, run, argv[3])) {
        training_free(run);
        return finish(&c, 0);
    }
    run->tag = enif_make_copy(run->tag_env, pair[1]);
    ERL_NIF_TERM term = make_handle(&c, TRAINING, run, NULL, trainer);
    if (!failed(&c)) start(&c, run, term);
    return finish_ok(&c, term);
}

NIF(nif_training_cancel)
{
    (void)argc;
    handle *training = handle_of(env, argv[0], TRAINING);
    if (!training) return enif_make_badarg(env);
    training_stop(training);
    return atom_ok;
}
