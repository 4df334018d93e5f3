/* Creation and cold calls of sessions. The memory of a session is two blocks, one on the host and one on the
 * device, divided once, here. */
#include "play/play.h"

static void *cut(xph_cutter *c, size_t count, size_t element)
{
    return xph_cut(c, (int64_t)count, 1, element);
}

/* The same cuts of the host's and of the device's memory. */
static void cut_staged(exphil_session *session, xph_cutter *c, bool host)
{
    const xph_model_shape *shape = session->shape;
    size_t rows = (size_t)session->rows, streams = (size_t)session->streams, first = c->at,
           slots = (size_t)(shape->slots * shape->heads);
    unsigned char *base = c->base ? c->base + first : NULL;
    float *floats = cut(c, rows * (size_t)shape->floats, sizeof(float));
    int32_t *ids = cut(c, rows * (size_t)shape->tables, sizeof(int32_t)),
            *past = cut(c, rows * slots, sizeof(int32_t)),
            *previous = cut(c, streams * (size_t)shape->heads, sizeof(int32_t));
    xph_draw *draw = cut(c, streams, sizeof *draw);
    uint8_t *reset = cut(c, rows, 1);
    const size_t own = c->at - first;
    float *noise = cut(c, streams * (size_t)shape->logits, sizeof *noise);
    session->staged_bytes = c->at - first;
    session->every_bytes = session->draws ? own : session->staged_bytes;
    if (!host) {
        session->d_staged = base;
        return;
    }
    session->staged = base;
    session->floats = floats;
    session->noise = noise;
    session->ids = ids;
    session->past = past;
    session->previous = previous;
    session->draw = draw;
    session->reset = reset;
}

/* Where the net gives actions, outputs lie as there; doubles are made floats on the way. */
static void lay_out_outputs(exphil_session *session)
{
    const xph_net *net = session->net;
    const xph_model_shape *shape = session->shape;
    const size_t streams = (size_t)session->streams;
    const unsigned char *first = xph_net_actions(net), *logits = xph_net_logits(net),
                        *values = xph_net_values(net);
    if (first) {
        session->values_at = values ? (size_t)(values - first) : 0;
        session->logits_at = (size_t)(logits - first);
        session->outputs_bytes = session->logits_at + streams * (size_t)shape->logits * sizeof(float);
        return;
    }
    xph_cutter c = {NULL, 0};
    (void)cut(&c, shape->value ? streams : 0, sizeof(float));
    session->logits_at = c.at;
    (void)cut(&c, streams * (size_t)shape->logits, sizeof(float));
    session->outputs_bytes = c.at;
}

static void cut_outputs(exphil_session *session, xph_cutter *c)
{
    lay_out_outputs(session);
    for (int i = 0; i < 2; i++) session->outputs[i] = cut(c, session->outputs_bytes, 1);
    if (!xph_net_actions(session->net))
        session->actions = session->fresh_actions =
            cut(c, (size_t)(session->streams * session->shape->heads), sizeof(int32_t));
    if (c->base) xph_play_point(session);
}

static void cut_host(exphil_session *session, xph_cutter *c)
{
    const xph_model_shape *shape = session->shape;
    size_t streams = (size_t)session->streams;
    session->host = cut(c, streams, session->host_bytes);
    cut_staged(session, c, true);
    cut_outputs(session, c);
    session->melee_floats = cut(c, streams * (size_t)shape->floats, sizeof(float));
    session->melee_ids = cut(c, streams * (size_t)shape->ids, sizeof(int32_t));
    session->decided = cut(c, streams * (size_t)shape->heads, sizeof(int32_t));
    session->overridden = cut(c, streams, 1);
    session->wide = shape->type == XPH_F64
                        ? cut(c, streams * (size_t)(shape->logits + shape->value), sizeof(double))
                        : NULL;
}

/* A device that works in the host's memory, or does a step in one launch, reads what was staged where it stands. */
static void cut_device(exphil_session *session, xph_cutter *c)
{
    size_t streams = (size_t)session->streams;
    for (int i = 0; i < 2; i++) session->state[i] = cut(c, streams, session->state_bytes);
    const bool here = session->device->backend->host_memory;
    if (here || xph_net_joins(session->net))
        session->d_staged = session->staged;
    else
        cut_staged(session, c, false);
    if (here) {
        session->d_actions = session->actions;
        return;
    }
    session->d_actions = xph_net_actions(session->net);
}

static exphil_status allocate(exphil_session *session, exphil_error *error)
{
    const xph_backend *backend = session->device->backend;
    xph_cutter host = {NULL, 0}, device = {NULL, 0};
    xph_play_lay_out(session);
    cut_host(session, &host);
    cut_device(session, &device);
    if (host.at == SIZE_MAX || device.at == SIZE_MAX)
        return xph_fail(error, EXPHIL_E_INVALID, "session: streams is too large");
    session->memory_bytes = host.at;
    void *block = NULL;
    exphil_status status = backend->host_alloc(session->device, host.at, &block);
    if (status < 0) return xph_no_device_memory(error, session->device, status, host.at);
    session->memory = memset(block, 0, host.at);
    block = NULL;
    if (device.at) status = backend->alloc(session->device, device.at, &block);
    if (status < 0) return xph_no_device_memory(error, session->device, status, device.at);
    session->d_memory = block;
    session->d_memory_bytes = device.at;
    host = (xph_cutter){session->memory, 0};
    device = (xph_cutter){session->d_memory, 0};
    cut_host(session, &host);
    cut_device(session, &device);
    if (device.at == 0) return EXPHIL_OK; /* windows on the CPU carry nothing */
    status = backend->zero(xph_net_stream(session->net), session->d_memory, device.at);
    if (status < 0)
        return xph_fail_device(error, session->device, status,
                               "session: the device could not clear its state");
    return EXPHIL_OK;
}

static void free_session(exphil_session *session)
{
    exphil_context *context = session->context;
    const xph_backend *backend = session->device->backend;
    if (session->net) backend->stream_wait(xph_net_stream(session->net)); /* before its memory is another's */
    xph_play_drop(session);
    if (session->d_memory) backend->free(session->device, session->d_memory, session->d_memory_bytes);
    if (session->memory) backend->host_free(session->device, session->memory, session->memory_bytes);
    xph_net_destroy(session->net);
    xph_free(context, session, sizeof *session);
    xph_context_release(context);
}

void exphil_session_destroy(exphil_session *session)
{
    if (session) free_session(session);
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static exphil_status check_host(const exphil_model *model, const exphil_session_config *config,
                                exphil_error *error)
{
    const xph_model_shape *shape = xph_model_shape_of(model);
    const exphil_spec *own = xph_model_spec(model);
    if (config->spec) XPH_TRY(xph_spec_check(config->spec, error));
    if (config->spec && exphil_spec_hash(config->spec) != shape->spec_hash)
        return xph_fail(error, EXPHIL_E_MISMATCH,
                        "the host gives %s/%s (%016llx), the model was trained on %s/%s (%016llx)",
                        config->spec->layout, config->spec->codec,
                        (unsigned long long)exphil_spec_hash(config->spec), own->layout, own->codec,
                        (unsigned long long)shape->spec_hash);
    if (config->delay_frames && !xph_model_told(model)->delays && *config->delay_frames != shape->delay)
        return xph_fail(error, EXPHIL_E_MISMATCH,
                        "the host runs with delay_frames %d, the model was trained with %d",
                        *config->delay_frames, shape->delay);
    static const char *const mode_name[] = {"carry", "window"};
    if (config->mode && *config->mode != shape->mode)
        return xph_fail(error, EXPHIL_E_MISMATCH,
                        "the host wants mode %s (%d), the model was trained in mode %s",
                        *config->mode == 0 || *config->mode == 1 ? mode_name[*config->mode] : "unknown",
                        *config->mode, mode_name[shape->mode]);
    return EXPHIL_OK;
}

/* Which of its delays a model plays with. */
static exphil_status take_delay(exphil_session *session, const int32_t *given, exphil_error *error)
{
    char text[XPH_DELAYS_TEXT];
    const xph_model_shape *shape = session->shape;
    session->delay = given ? *given : shape->delay;
    session->seen_slots = xph_told_slots(session->delay, shape->delay, shape->slots);
    if (given || session->told->delays < 2)
        return xph_told_delay(session->told, session->delay, &session->delay_id, error);
    return xph_fail(error, EXPHIL_E_INVALID,
                    "session config: delay_frames is NULL, the model needs to know which of %s it is",
                    xph_told_delays(session->told, text));
}

static void tell_streams(exphil_session *session, const int32_t *values)
{
    size_t bytes = (size_t)session->told->conditions * sizeof *values;
    for (int64_t b = 0; values && b < session->streams; b++) memcpy(xph_play_told(session, b), values, bytes);
}

static exphil_status check_config(const exphil_session_config *config, exphil_error *error)
{
    if (config->streams < 0 || config->streams > 4096)
        return xph_fail(error, EXPHIL_E_INVALID, "session config: streams is %lld, outside 0..4096",
                        (long long)config->streams);
    if (config->deadline_ns < 0)
        return xph_fail(error, EXPHIL_E_INVALID, "session config: deadline_ns is negative");
    if (config->deliver != EXPHIL_DELIVER_DUE && config->deliver != EXPHIL_DELIVER_DECIDED)
        return xph_fail(error, EXPHIL_E_INVALID, "session config: deliver is %d", config->deliver);
    if (config->deterministic != 0 && config->deterministic != 1)
        return xph_fail(error, EXPHIL_E_INVALID, "session config: deterministic is %d, not 0 or 1",
                        config->deterministic);
    if ((config->adoptable != 0 && config->adoptable != 1) || config->reserved)
        return xph_fail(error, EXPHIL_E_INVALID, "session config: %s is %d, not %s",
                        config->reserved ? "reserved" : "adoptable",
                        config->reserved ? config->reserved : config->adoptable,
                        config->reserved ? "0" : "0 or 1");
    return EXPHIL_OK;
}

static bool share_or_zero(float value)
{
    return value >= 0.0f && value < 1.0f;
}

static exphil_status take_heads(exphil_session *session, const exphil_head_play *given, exphil_error *error)
{
    for (int64_t h = 0; h < session->spec->head_count; h++) {
        exphil_head_play play = {0, 0, 0, 0};
        if (given) play = given[h];
        if (!(play.temperature >= 0.0f && play.temperature <= 1e6f))
            return xph_fail(error, EXPHIL_E_INVALID,
                            "session config: heads[%lld].temperature is out of range", (long long)h);
        if (!share_or_zero(play.press) || !share_or_zero(play.release))
            return xph_fail(error, EXPHIL_E_INVALID,
                            "session config: heads[%lld].press or release is outside [0, 1)", (long long)h);
        if (play.deterministic != 0 && play.deterministic != 1)
            return xph_fail(error, EXPHIL_E_INVALID,
                            "session config: heads[%lld].deterministic is %d, not 0 or 1", (long long)h,
                            play.deterministic);
        xph_sample_head *how = &session->how[h];
        how->temperature = play.temperature > 0.0f ? play.temperature : 1.0f;
        how->press = play.press > 0.0f ? play.press : 0.5f;
        how->release = play.release > 0.0f ? play.release : 0.5f;
        how->deterministic = play.deterministic || session->config.deterministic;
        if (how->release > how->press)
            return xph_fail(error, EXPHIL_E_INVALID, "session config: heads[%lld].release exceeds press",
                            (long long)h);
        session->drawing |= !how->deterministic;
    }
    return EXPHIL_OK;
}

/* Melee frames are taken only for a spec that is the library's own: another one may bear the same names. */
static void find_melee(exphil_session *session)
{
    exphil_spec own = EXPHIL_SPEC_INIT;
    if (exphil_melee_spec(session->spec->layout, session->spec->codec, &own, NULL) < 0) return;
    if (exphil_spec_hash(&own) != session->shape->spec_hash) return;
    session->layout = xph_melee_layout_find(session->spec->layout);
    session->codec = xph_melee_codec_find(session->spec->codec);
}

/* Of a saved state's layout and meaning. Any change of either takes a number that was never used; 100 is that of the first
 * release, 0.1.0, which took its own version. */
enum { STATE_VERSION = 100 };

/* What the steps after a restored state depend on besides the weights. */
static uint64_t hash_play(const exphil_session *session, const exphil_model *of)
{
    const uint64_t numbers[] = {STATE_VERSION,        session->host_bytes, (uint64_t)session->history,
                                session->state_bytes, session->windowed,   (uint64_t)session->config.deliver};
    xph_hasher hasher;
    xph_hash_begin(&hasher);
    xph_hash_add(&hasher, numbers, sizeof numbers);
    if (session->adoptable) { /* its states go with other weights too */
        uint64_t model = xph_model_config_hash(of);
        xph_hash_add(&hasher, &model, sizeof model);
    }
    if (session->delay_id) xph_hash_add(&hasher, &session->delay, sizeof session->delay);
    for (int64_t h = 0; h < session->spec->head_count; h++) {
        const xph_sample_head *how = &session->how[h];
        const float shares[] = {how->temperature, how->press, how->release};
        xph_hash_add(&hasher, shares, sizeof shares);
        xph_hash_add(&hasher, &how->deterministic, sizeof how->deterministic);
    }
    return xph_hash_end(&hasher);
}

/* ---- creation ----------------------------------------------------------------------------------------------------- */

static void seed_streams(exphil_session *session)
{
    for (int64_t b = 0; b < session->streams; b++)
        xph_play_at(session, b)->rng = (xph_rng){session->config.seed, XPH_RNG_SAMPLE | (uint64_t)b << 8, 0};
}

static exphil_status build(exphil_session *session, const exphil_model *model, const int32_t *conditions,
                           exphil_error *error)
{
    find_melee(session);
    session->windowed = session->shape->mode == EXPHIL_MODE_WINDOW;
    session->frames = session->windowed ? session->shape->window : 1;
    session->rows = session->streams * session->frames;
    session->history = xph_play_history_of(session->shape);
    session->state_bytes = session->windowed ? 0 : (size_t)session->shape->state * session->shape->real_bytes;
    const uint32_t joins = session->windowed ? 0 : XPH_NET_JOINS;
    XPH_TRY(xph_net_create(model, session->streams, session->frames, XPH_NET_INLINE | joins, &session->net,
                           error));
    session->draws = session->drawing && xph_net_draws(session->net);
    XPH_TRY(allocate(session, error));
    session->play_hash = hash_play(session, model);
    seed_streams(session);
    tell_streams(session, conditions);
    for (int64_t b = 0; b < session->streams; b++) {
        exphil_status status = xph_play_reset(session, b);
        if (status < 0)
            return xph_fail_device(error, session->device, status,
                                   "session: the device could not clear its state");
    }
    return xph_play_take(session, model, error);
}

static exphil_status create(const exphil_model *model, const exphil_session_config *known,
                            exphil_session **session, exphil_error *error)
{
    exphil_context *context = xph_model_context(model);
    exphil_session *made = xph_calloc(context, 1, sizeof *made);
    if (!made) return xph_no_memory(sizeof *made, error);
    made->context = xph_context_retain(context);
    made->device = xph_context_backend(context);
    made->config = *known;
    made->config.heads = NULL;
    made->config.spec = NULL;
    made->config.delay_frames = made->config.mode = made->config.conditions = NULL;
    made->streams = known->streams ? known->streams : 1;
    made->adoptable = known->adoptable;
    made->spec = xph_model_spec(model);
    made->shape = xph_model_shape_of(model);
    made->told = xph_model_told(model);
    made->error.struct_size = sizeof made->error;
    xph_latency_init(&made->latency, known->deadline_ns ? known->deadline_ns : 16666667);
    exphil_status status = take_heads(made, known->heads, error);
    if (status >= 0) status = take_delay(made, known->delay_frames, error);
    if (status >= 0) status = build(made, model, known->conditions, error);
    if (status < 0) {
        free_session(made);
        return status;
    }
    *session = made;
    return EXPHIL_OK;
}

exphil_status exphil_session_create(const exphil_model *model, const exphil_session_config *config,
                                    exphil_session **session, exphil_error *error)
{
    XPH_OWN_FPU;
    if (!model || !session)
        return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL", model ? "session" : "model");
    XPH_TRY(xph_context_check(xph_model_context(model), error));
    exphil_session_config known = EXPHIL_SESSION_CONFIG_INIT;
    XPH_TRY(XPH_TAKE(exphil_session_config, &known, config, error));
    XPH_TRY(check_config(&known, error));
    XPH_TRY(check_host(model, &known, error));
    XPH_TRY(xph_told_check(xph_model_told(model), known.conditions, known.condition_count,
                           "session config: ", error));
    return create(model, &known, session, error);
}

/* For the calls that take a text of their own. */
static exphil_status enter(const exphil_session *session, exphil_error *error)
{
    if (!session) return xph_fail(error, EXPHIL_E_INVALID, "session is NULL");
    XPH_TRY(xph_context_check(session->context, error));
    return xph_play_enter(session) < 0 ? xph_busy_error("session", error) : EXPHIL_OK;
}

static exphil_status copy_state(const exphil_session *from, exphil_session *to)
{
    const xph_backend *backend = to->device->backend;
    memcpy(to->host, from->host, (size_t)to->streams * to->host_bytes);
    memcpy(to->logits, from->logits, (size_t)(to->streams * to->shape->logits) * sizeof *to->logits);
    if (to->values) memcpy(to->values, from->values, (size_t)to->streams * sizeof *to->values);
    size_t bytes = (size_t)to->streams * to->state_bytes;
    if (bytes == 0) return EXPHIL_OK;
    to->lagging = false;
    XPH_TRY(backend->stream_wait(xph_net_stream(from->net)));
    XPH_TRY(backend->copy(xph_net_stream(to->net), to->state[0], from->state[0], bytes));
    return backend->stream_wait(xph_net_stream(to->net));
}

exphil_status exphil_session_clone(const exphil_session *session, exphil_session **clone, exphil_error *error)
{
    XPH_OWN_FPU;
    if (!clone) return xph_fail(error, EXPHIL_E_INVALID, "clone is NULL");
    XPH_TRY(enter(session, error));
    exphil_head_play heads[EXPHIL_HEADS_MAX];
    for (int h = 0; h < EXPHIL_HEADS_MAX; h++)
        heads[h] = (exphil_head_play){session->how[h].temperature, session->how[h].deterministic,
                                      session->how[h].press, session->how[h].release};
    exphil_session_config config = session->config;
    config.heads = heads;
    config.delay_frames = &session->delay;
    exphil_session *made = NULL;
    exphil_status status = create(session->slot[session->newest].model, &config, &made, error);
    if (status >= 0 && session->adoptable) {
        status = xph_play_take_both(session, made, error);
        if (status < 0) free_session(made);
    }
    if (status >= 0) {
        status = copy_state(session, made);
        if (status < 0) {
            free_session(made);
            xph_fail_device(error, session->device, status, "session: the device could not copy the state");
        }
    }
    xph_play_leave(session);
    if (status < 0) return status;
    *clone = made;
    return EXPHIL_OK;
}

/* ---- queries ------------------------------------------------------------------------------------------------------- */

static void fill_info(const exphil_session *session, exphil_session_info *info)
{
    const xph_latency *latency = &session->latency;
    info->steps = latency->steps;
    info->missed = latency->missed;
    memcpy(info->latency, latency->count, sizeof info->latency);
    info->last_ns = latency->last_ns;
    info->max_ns = latency->max_ns;
    info->p50_ns = xph_latency_quantile(latency, 50);
    info->p99_ns = xph_latency_quantile(latency, 99);
    info->streams = session->streams;
    info->float_count = session->shape->floats;
    info->id_count = session->shape->ids;
    info->head_count = session->shape->heads;
    info->logit_count = session->shape->logits;
    info->state_bytes = exphil_session_state_size(session);
    info->adoptions = session->adoptions;
    info->weights_hash = session->slot[session->now].hash;
}

exphil_status exphil_session_query(const exphil_session *session, exphil_session_info *info,
                                   exphil_error *error)
{
    XPH_OWN_FPU;
    XPH_TRY(enter(session, error));
    exphil_session_info known = EXPHIL_SESSION_INFO_INIT;
    fill_info(session, &known);
    xph_play_leave(session);
    return XPH_GIVE(exphil_session_info, info, &known, error);
}

exphil_status exphil_session_error(const exphil_session *session, exphil_error *error)
{
    XPH_TRY(enter(session, error));
    exphil_status status = session->error.status;
    if (status != EXPHIL_OK)
        (void)xph_fail_device(error, session->device, status, "%s", session->error.message);
    xph_play_leave(session);
    return status;
}
