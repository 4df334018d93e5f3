/* Sessions: the calls of every frame.
 *
 * What a step costs is measured once, at creation, on a clone: the best of some steps in a row, and the worst of such while
 * the window of attention fills, after which the cost stays. Twice that is taken as the most that a step costs with cold
 * caches. Below direct_ns it runs where its process runs; from there on, or on a device other than the CPU, it moves to a
 * dirty scheduler, and with it resets and state blocks, which touch no more memory than a step does. So no scheduler is
 * held for a millisecond, which is what the VM asks. */
#define _GNU_SOURCE
#include "nif.h"

#include <sys/resource.h>
#include <time.h>

#define TRIALS      24
#define TRIALS_NS   20000000 /* no more of them after this time */
#define DIRECT_NS   500000   /* where the caller does not say */
#define SCHEDULE_NS 1000000  /* what the VM allows a NIF */
#define PERCENT_NS  10000    /* a hundredth of it */

static const field option_fields[] = {FIELD(struct option, dirty, T_BOOL, 1, NULL, NULL),
                                      FIELD(struct option, track, T_BOOL, 1, NULL, NULL),
                                      FIELD(struct option, direct_ns, T_I64, 1, NULL, NULL)};
record option_map = {
    .name = "session", .bytes = sizeof(struct option), .fields = option_fields, .field_count = 3};

/* ---- creation ---------------------------------------------------------------------------------------------- */

static int64_t now(void)
{
    return enif_monotonic_time(ERL_NIF_NSEC);
}

/* Frames that attention looks back: its bias has one column for each. */
static int64_t longest_window(call *c, const exphil_model *model)
{
    static const char end[] = ".relative_bias";
    int64_t longest = 0;
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    if (!done(c, exphil_model_query(model, &info, &c->error))) return 0;
    for (int64_t i = 0; i < info.tensor_count; i++) {
        exphil_tensor_info tensor = EXPHIL_TENSOR_INFO_INIT;
        if (!done(c, exphil_model_tensor_info(model, i, &tensor, &c->error))) return 0;
        size_t length = strlen(tensor.name);
        bool is = length >= sizeof end && strcmp(tensor.name + length - (sizeof end - 1), end) == 0;
        if (is && tensor.dim[1] > longest) longest = tensor.dim[1];
    }
    return longest;
}

struct trial {
    exphil_session *session;
    float *floats;
    int32_t *ids, *actions;
    int64_t steps; /* so far */
};

static int64_t best_of_trials(struct trial *trial)
{
    int64_t best = INT64_MAX, spent = 0;
    for (int i = 0; i < TRIALS && spent < TRIALS_NS; i++) {
        int64_t start = now();
        /* Weights that lead to NaN fail here as they will later; the time is the same. */
        exphil_status status =
            exphil_session_step_row(trial->session, trial->floats, trial->ids, NULL, trial->actions);
        (void)status;
        int64_t took = now() - start;
        if (took < best) best = took;
        spent += took;
        trial->steps++;
    }
    return best;
}

/* Twice what a step took is at least direct_ns; twice may be more than a number holds. */
static bool too_slow(const struct play *play)
{
    return play->step_ns >= play->direct_ns / 2 + play->direct_ns % 2;
}

/* Steps of a clone on rows of zeros: the session itself does not move. Ends early when it is clear that they are slow. */
static void measure(call *c, const exphil_session *session, struct play *play)
{
    struct trial trial = {.floats = chunk(c, (size_t)(play->streams * play->floats + 1) * sizeof(float)),
                          .ids = chunk(c, (size_t)(play->streams * play->ids + 1) * sizeof(int32_t)),
                          .actions = chunk(c, (size_t)(play->streams * play->heads + 1) * sizeof(int32_t))};
    if (failed(c) || !done(c, exphil_session_clone(session, &trial.session, &c->error))) return;
    do {
        int64_t best = best_of_trials(&trial);
        if (best > play->step_ns) play->step_ns = best;
    } while (trial.steps <= play->window && !too_slow(play));
    play->step_count = trial.steps;
    exphil_session_destroy(trial.session);
}

struct play *play_create(call *c, const handle *context, const exphil_session *session,
                         const struct option *option)
{
    exphil_session_info info = EXPHIL_SESSION_INFO_INIT;
    if (failed(c) || !done(c, exphil_session_query(session, &info, &c->error))) return NULL;
    size_t frames = (size_t)info.streams * sizeof(exphil_melee_frame);
    size_t pads = (size_t)info.streams * sizeof(exphil_pad);
    struct play *play = enif_alloc(sizeof *play + frames + pads);
    if (!play) {
        fail(c, EXPHIL_E_MEMORY, "could not get %zu bytes", sizeof *play + frames + pads);
        return NULL;
    }
    *play = (struct play){.streams = info.streams,
                          .floats = info.float_count,
                          .ids = info.id_count,
                          .heads = info.head_count,
                          .logits = info.logit_count};
    play->state_bytes = info.state_bytes;
    play->window = option->window;
    play->direct_ns = option->direct_ns;
    play->frame = (exphil_melee_frame *)(play + 1);
    play->pad = (exphil_pad *)(play->frame + info.streams);
    measure(c, session, play);
    play->dirty = option->dirty || !((const struct home *)context->extra)->cpu || too_slow(play);
    play->track = option->track;
    int64_t percent = play->step_ns / PERCENT_NS;
    play->percent = percent < 1 ? 1 : percent > 100 ? 100 : (int)percent;
    return play;
}

/* The session is gone when there can be no handle of it. */
static ERL_NIF_TERM give_session(call *c, exphil_session *session, handle *relative,
                                 const struct option *option)
{
    handle *context = relative->context;
    struct play *play = play_create(c, context, session, option);
    if (failed(c)) {
        exphil_session_destroy(session);
        if (play) enif_free(play);
    }
    return finish_ok(c, make_handle(c, SESSION, session, play, relative));
}

bool read_session(call *c, ERL_NIF_TERM map, const exphil_model *model, exphil_session_config *config,
                  struct option *option)
{
    exphil_spec *spec = chunk(c, sizeof *spec);
    if (!spec) return false;
    *spec = (exphil_spec)EXPHIL_SPEC_INIT;
    if (!done(c, exphil_model_spec(model, spec, &c->error))) return false;
    c->spec = spec;
    *option = (struct option){.direct_ns = DIRECT_NS};
    ERL_NIF_TERM own = enif_make_new_map(c->env), value;
    for (size_t i = 0; i < option_map.field_count; i++) {
        if (!enif_get_map_value(c->env, map, option_map.keys[i], &value)) continue;
        enif_make_map_put(c->env, own, option_map.keys[i], value, &own);
        enif_make_map_remove(c->env, map, option_map.keys[i], &map);
    }
    if (!read_record(c, own, &option_map, option) || !read_record(c, map, &session_config, config))
        return false;
    if (option->direct_ns < 0)
        return fail(c, EXPHIL_E_INVALID, "session: direct_ns is %lld, 0 or more is wanted",
                    (long long)option->direct_ns);
    option->window = longest_window(c, model);
    return !failed(c);
}

NIF(nif_session_create)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    exphil_session *session = NULL;
    struct option option;
    handle *model = hold(&c, argv[0], MODEL);
    if (!model || !read_session(&c, argv[1], model->object, &config, &option) ||
        !done(&c, exphil_session_create(model->object, &config, &session, &c.error)))
        return finish(&c, 0);
    return give_session(&c, session, model, &option);
}

NIF(nif_session_clone)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_session *clone = NULL;
    handle *session = hold(&c, argv[0], played_kind(env, argv[0]));
    if (!session || !done(&c, exphil_session_clone(session_of(session), &clone, &c.error)))
        return finish(&c, 0);
    const struct play *play = session->extra;
    struct option option = {play->dirty, play->track, play->direct_ns, play->window};
    return give_session(&c, clone, session, &option);
}

/* ---- hot calls --------------------------------------------------------------------------------------------- */

exphil_session *session_of(const handle *h)
{
    if (h->kind == LIVE_LEARNER) return exphil_live_session(((const struct live *)h->object)->of);
    return h->kind == ROLLOUT ? exphil_rollout_session(h->object) : h->object;
}

enum kind played_kind(ErlNifEnv *env, ERL_NIF_TERM term)
{
    if (handle_of(env, term, LIVE_LEARNER)) return LIVE_LEARNER;
    return handle_of(env, term, ROLLOUT) ? ROLLOUT : SESSION;
}

/* Hot calls return a status only. */
bool stepped(call *c, const handle *h, exphil_status status)
{
    if (status >= 0) return true;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_session_error(session_of(h), &error) == status && !failed(c)) c->error = error;
    return done(c, status);
}

/* Processor time and switches of this thread: unlike the clock they tell the library from a busy machine. */
struct cost cost_now(const struct play *play)
{
    struct timespec time;
    struct rusage usage;
    if (!play->track) return (struct cost){0, 0, 0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    getrusage(RUSAGE_THREAD, &usage);
    return (struct cost){(int64_t)time.tv_sec * 1000000000 + time.tv_nsec, usage.ru_nvcsw, usage.ru_nivcsw};
}

void track(struct play *play, struct cost from)
{
    struct cost to = cost_now(play);
    play->waits += to.waits - from.waits;
    if (to.preempted > from.preempted) {
        play->preempted++;
        return;
    }
    int64_t took = to.cpu_ns - from.cpu_ns;
    if (took > play->max_cpu_ns) play->max_cpu_ns = took;
    play->long_steps += took >= SCHEDULE_NS;
}

/* How many frames there are of one list, packed binary or map; more than one answer is wanted if *many. */
static void read_frames(call *c, ERL_NIF_TERM term, struct play *play, bool *many)
{
    ErlNifBinary packed;
    ERL_NIF_TERM each;
    unsigned length = 1;
    *many = enif_get_list_length(c->env, term, &length) || play->streams > 1;
    if (enif_inspect_binary(c->env, term, &packed)) {
        size_t want = (size_t)play->streams * sizeof *play->frame;
        if (packed.size != want)
            fail(c, EXPHIL_E_INVALID, "frames: %zu bytes, %zu are wanted", packed.size, want);
        else
            memcpy(play->frame, packed.data, want);
        return;
    }
    if ((int64_t)length != play->streams) {
        fail(c, EXPHIL_E_INVALID, "frames: %u given, the session has %lld streams", length,
             (long long)play->streams);
        return;
    }
    if (!enif_is_list(c->env, term)) {
        read_frame(c, term, play->frame);
        return;
    }
    for (int64_t i = 0; enif_get_list_cell(c->env, term, &each, &term); i++)
        if (!read_frame(c, each, &play->frame[i])) return;
}

static ERL_NIF_TERM make_pads(ErlNifEnv *env, const struct play *play, bool many)
{
    if (!many) return make_record(env, &melee_pad, play->pad);
    ERL_NIF_TERM list = enif_make_list(env, 0);
    for (int64_t i = play->streams; i-- > 0;)
        list = enif_make_list_cell(env, make_record(env, &melee_pad, &play->pad[i]), list);
    return list;
}

static ERL_NIF_TERM step(call *c, handle *session, const ERL_NIF_TERM argv[])
{
    struct play *play = session->extra;
    bool many = false;
    read_frames(c, argv[1], play, &many);
    if (failed(c)) return finish(c, 0);
    struct cost from = cost_now(play);
    exphil_status status = exphil_session_step(session_of(session), play->frame, play->pad);
    track(play, from);
    return finish_ok(c, stepped(c, session, status) ? make_pads(c->env, play, many) : 0);
}

static ERL_NIF_TERM step_row(call *c, handle *session, const ERL_NIF_TERM argv[])
{
    struct play *play = session->extra;
    ERL_NIF_TERM actions;
    const float *noise = NULL;
    const float *floats = read_array(c, argv[1], "floats", play->streams * play->floats, sizeof *floats);
    const int32_t *ids = read_array(c, argv[2], "ids", play->streams * play->ids, sizeof *ids);
    if (!enif_is_identical(argv[3], atom_nil))
        noise = read_array(c, argv[3], "noise", play->streams * play->logits, sizeof *noise);
    if (failed(c)) return finish(c, 0);
    void *to =
        enif_make_new_binary(c->env, (size_t)(play->streams * play->heads) * sizeof(int32_t), &actions);
    struct cost from = cost_now(play);
    exphil_status status = exphil_session_step_row(session_of(session), floats, ids, noise, to);
    track(play, from);
    stepped(c, session, status);
    return finish_ok(c, actions);
}

static ERL_NIF_TERM reset(call *c, handle *session, const ERL_NIF_TERM argv[])
{
    int64_t stream = read_integer(c, argv[1], "stream", INT64_MIN, INT64_MAX);
    if (!failed(c)) stepped(c, session, exphil_session_reset(session_of(session), stream));
    return finish(c, 0);
}

static ERL_NIF_TERM state_save(call *c, handle *session, const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM state;
    int64_t stream = read_integer(c, argv[1], "stream", INT64_MIN, INT64_MAX);
    if (failed(c)) return finish(c, 0);
    size_t bytes = ((const struct play *)session->extra)->state_bytes;
    void *to = enif_make_new_binary(c->env, bytes, &state);
    stepped(c, session, exphil_session_state_save(session_of(session), stream, to, bytes));
    return finish_ok(c, state);
}

static ERL_NIF_TERM state_restore(call *c, handle *session, const ERL_NIF_TERM argv[])
{
    ErlNifBinary state;
    int64_t stream = read_integer(c, argv[1], "stream", INT64_MIN, INT64_MAX);
    if (read_binary(c, argv[2], "state", &state))
        stepped(c, session,
                exphil_session_state_restore(session_of(session), stream, state.data, state.size));
    return finish(c, 0);
}

static ERL_NIF_TERM value(call *c, handle *session, const ERL_NIF_TERM argv[])
{
    float value = 0;
    int64_t stream = read_integer(c, argv[1], "stream", INT64_MIN, INT64_MAX);
    if (!failed(c)) stepped(c, session, exphil_session_value(session_of(session), stream, &value));
    return finish_ok(c, make_number(c->env, (double)value));
}

static ERL_NIF_TERM adopt(call *c, handle *session, const ERL_NIF_TERM argv[])
{
    exphil_model *before = NULL;
    handle *model = hold(c, argv[1], MODEL);
    if (model) stepped(c, session, exphil_session_adopt(session_of(session), model->object, &before));
    return finish_ok(c, before ? make_handle(c, MODEL, before, NULL, session) : atom_nil);
}

ERL_NIF_TERM run_hot(ErlNifEnv *env, const ERL_NIF_TERM argv[], enum kind kind, hot *fn)
{
    call c;
    call_begin(&c, env);
    handle *played = hold(&c, argv[0], kind);
    return played ? fn(&c, played, argv) : finish(&c, 0);
}

/* Where a session's calls run never changes, and what says so lives as long as the handle: it may be read before the
 * handle is held. */
ERL_NIF_TERM route(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[], enum kind kind, const char *name,
                   hot *fn, nif *dirty)
{
    const handle *played = handle_of(env, argv[0], kind);
    const struct play *play = played ? played->extra : NULL;
    if (play && play->dirty)
        return enif_schedule_nif(env, name, ERL_NIF_DIRTY_JOB_CPU_BOUND, dirty, argc, argv);
    ERL_NIF_TERM answer = run_hot(env, argv, kind, fn);
    if (play) enif_consume_timeslice(env, play->percent);
    return answer;
}

HOT(session, step, played_kind(env, argv[0]))
HOT(session, step_row, played_kind(env, argv[0]))
HOT(session, reset, played_kind(env, argv[0]))
HOT(session, state_save, played_kind(env, argv[0]))
HOT(session, state_restore, played_kind(env, argv[0]))
HOT(session, value, played_kind(env, argv[0]))
HOT(session, adopt, played_kind(env, argv[0]))

NIF(nif_session_logits)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    ERL_NIF_TERM logits;
    handle *session = hold(&c, argv[0], played_kind(env, argv[0]));
    int64_t stream = read_integer(&c, argv[1], "stream", INT64_MIN, INT64_MAX);
    if (failed(&c)) return finish(&c, 0);
    const struct play *play = session->extra;
    void *to = enif_make_new_binary(env, (size_t)play->logits * sizeof(float), &logits);
    stepped(&c, session, exphil_session_logits(session_of(session), stream, to, play->logits));
    return finish_ok(&c, logits);
}

NIF(nif_session_override)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    handle *session = hold(&c, argv[0], played_kind(env, argv[0]));
    int64_t stream = read_integer(&c, argv[1], "stream", INT64_MIN, INT64_MAX);
    int64_t heads = failed(&c) ? 0 : ((const struct play *)session->extra)->heads;
    const int32_t *action = read_array(&c, argv[2], "action", heads, sizeof *action);
    if (!failed(&c)) stepped(&c, session, exphil_session_override(session_of(session), stream, action));
    return finish(&c, 0);
}

NIF(nif_session_info)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_session_info info = EXPHIL_SESSION_INFO_INIT;
    handle *session = hold(&c, argv[0], played_kind(env, argv[0]));
    if (!session || !done(&c, exphil_session_query(session_of(session), &info, &c.error)))
        return finish(&c, 0);
    const struct play *play = session->extra;
    ERL_NIF_TERM map = make_record(env, &session_info, &info);
    map = with_key(env, map, "dirty", play->dirty ? atom_true : atom_false);
    map = with_key(env, map, "trial_ns", enif_make_int64(env, play->step_ns));
    map = with_key(env, map, "trial_steps", enif_make_int64(env, play->step_count));
    const char *const names[] = {"preempted", "waits", "max_cpu_ns", "long_steps"};
    const int64_t tracked[] = {play->preempted, play->waits, play->max_cpu_ns, play->long_steps};
    for (int i = 0; i < 4; i++)
        map = with_key(env, map, names[i], play->track ? enif_make_int64(env, tracked[i]) : atom_nil);
    return finish_ok(&c, map);
}
