/* Contexts, models and sessions. */
#include "addon.h"

#include <stdio.h>
#include <string.h>

static napi_value version(napi_env env, napi_callback_info info)
{
    napi_value text;
    (void)info;
    napi_create_string_utf8(env, exphil_version_string(), NAPI_AUTO_LENGTH, &text);
    return text;
}

static napi_value context_create(napi_env env, napi_callback_info info)
{
    napi_value options;
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_context *context = NULL;
    struct texts texts = {.count = 0};
    bool made = arguments(env, info, 1, &options) && fill(env, options, context_fields, &config, &texts) &&
                check(env, exphil_context_create(&config, &context, &error), &error);
    drop_texts(&texts);
    return made ? wrap(env, A_CONTEXT, context, NULL, NULL) : NULL;
}

static napi_value context_memory(napi_env env, napi_callback_info info)
{
    napi_value value;
    struct handle *context;
    exphil_memory_info raw = EXPHIL_MEMORY_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (!arguments(env, info, 1, &value) || !(context = handle_of(env, value, A_CONTEXT))) return NULL;
    if (!check(env, exphil_context_memory(context->raw, &raw, &error), &error)) return NULL;
    return tell(env, memory_fields, &raw);
}

napi_value wrap_model(napi_env env, exphil_model *model, struct owner *owner)
{
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    struct handle *handle = NULL;
    exphil_status status = exphil_model_query(model, &info, &error);
    napi_value value = wrap(env, A_MODEL, model, owner, &handle);
    if (!value || !check(env, status, &error)) return NULL;
    handle->heads = info.head_count;
    return value;
}

static napi_value model_create(napi_env env, napi_callback_info info)
{
    napi_value value[3]; /* context, fields, spec */
    struct handle *context;
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    exphil_spec spec = EXPHIL_SPEC_INIT;
    exphil_id_spec ids[EXPHIL_IDS_MAX] = {{0}};
    exphil_head_spec heads[EXPHIL_HEADS_MAX] = {{0}};
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_model *model = NULL;
    struct texts texts = {.count = 0};
    if (!arguments(env, info, 3, value) || !(context = handle_of(env, value[0], A_CONTEXT))) return NULL;
    bool own = is_set(env, value[2]);
    if (own) config.spec = &spec;
    bool made = fill(env, value[1], model_fields, &config, &texts) &&
                (!own || fill_spec(env, value[2], &spec, &texts, ids, heads)) &&
                check(env, exphil_model_create(context->raw, &config, &model, &error), &error);
    drop_texts(&texts);
    return made ? wrap_model(env, model, context->owner) : NULL;
}

/* (context, path) or (context, bytes). */
static napi_value model_load(napi_env env, napi_callback_info info)
{
    napi_value value[2];
    struct handle *context;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_model *model = NULL;
    struct texts texts = {.count = 0};
    bool memory = false;
    size_t bytes = 0;
    void *data = NULL;
    if (!arguments(env, info, 2, value) || !(context = handle_of(env, value[0], A_CONTEXT))) return NULL;
    napi_is_typedarray(env, value[1], &memory);
    if (memory) {
        napi_typedarray_type type;
        napi_get_typedarray_info(env, value[1], &type, &bytes, &data, NULL, NULL);
        if (type != napi_uint8_array) return fail(env, EXPHIL_E_INVALID, "weights: must be a Uint8Array", 0);
        if (!check(env, exphil_model_load_memory(context->raw, data, bytes, &model, &error), &error))
            return NULL;
        return wrap_model(env, model, context->owner);
    }
    const char *path = keep_text(env, &texts, value[1], "path");
    bool made = path && check(env, exphil_model_load(context->raw, path, &model, &error), &error);
    drop_texts(&texts);
    return made ? wrap_model(env, model, context->owner) : NULL;
}

static napi_value model_save(napi_env env, napi_callback_info info)
{
    napi_value value[2];
    struct handle *model;
    exphil_error error = EXPHIL_ERROR_INIT;
    struct texts texts = {.count = 0};
    if (!arguments(env, info, 2, value) || !(model = handle_of(env, value[0], A_MODEL))) return NULL;
    const char *path = keep_text(env, &texts, value[1], "path");
    if (path) check(env, exphil_model_save(model->raw, path, &error), &error);
    drop_texts(&texts);
    return NULL;
}

static napi_value model_info(napi_env env, napi_callback_info info)
{
    napi_value value;
    struct handle *model;
    exphil_model_info raw = EXPHIL_MODEL_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (!arguments(env, info, 1, &value) || !(model = handle_of(env, value, A_MODEL))) return NULL;
    return check(env, exphil_model_query(model->raw, &raw, &error), &error) ? tell(env, info_fields, &raw)
                                                                            : NULL;
}

static napi_value model_quantize(napi_env env, napi_callback_info info)
{
    napi_value value[2];
    struct handle *model;
    exphil_model *small = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    int32_t type = 0;
    if (!arguments(env, info, 2, value) || !(model = handle_of(env, value[0], A_MODEL))) return NULL;
    if (!read_number(env, value[1], "type", F_I32, &type)) return NULL;
    if (!check(env, exphil_model_quantize(model->raw, type, &small, &error), &error)) return NULL;
    return wrap_model(env, small, model->owner);
}

static napi_value wrap_session(napi_env env, exphil_session *session, struct owner *owner)
{
    exphil_session_info info = EXPHIL_SESSION_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    struct handle *handle = NULL;
    exphil_status status = exphil_session_query(session, &info, &error);
    napi_value value = wrap(env, A_SESSION, session, owner, &handle);
    if (!value || !check(env, status, &error)) return NULL;
    handle->streams = info.streams;
    handle->floats = info.streams * info.float_count;
    handle->ids = info.streams * info.id_count;
    handle->actions = info.streams * info.head_count;
    handle->noise = info.streams * info.logit_count;
    handle->logits = info.logit_count;
    handle->heads = info.head_count;
    return value;
}

/* What the host will run with, if it says so; the library compares. */
static bool checked(napi_env env, napi_value value, const char *name, int32_t *number, const int32_t **place)
{
    if (!is_set(env, value)) return true;
    *place = number;
    return read_number(env, value, name, F_I32, number);
}

/* heads: an object for each head of the model. */
static bool fill_heads(napi_env env, napi_value value, const struct handle *model, exphil_head_play *heads,
                       exphil_session_config *config)
{
    char message[96];
    if (!is_set(env, value)) return true;
    int64_t count = fill_list(env, value, play_fields, heads, sizeof *heads, EXPHIL_HEADS_MAX, "heads", NULL);
    if (count < 0) return false;
    config->heads = heads;
    if (count == model->heads) return true;
    snprintf(message, sizeof message, "heads: has %lld entries, the model has %lld heads", (long long)count,
             (long long)model->heads);
    return fail(env, EXPHIL_E_INVALID, message, 0), false;
}

static napi_value session_create(napi_env env, napi_callback_info info)
{
    napi_value value[6]; /* model, fields, delay, mode, spec, heads */
    struct handle *model;
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    exphil_spec spec = EXPHIL_SPEC_INIT;
    exphil_id_spec ids[EXPHIL_IDS_MAX] = {{0}};
    exphil_head_spec heads[EXPHIL_HEADS_MAX] = {{0}};
    exphil_head_play play[EXPHIL_HEADS_MAX] = {{0}};
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_session *session = NULL;
    struct texts texts = {.count = 0};
    int32_t delay = 0, mode = 0;
    if (!arguments(env, info, 6, value) || !(model = handle_of(env, value[0], A_MODEL))) return NULL;
    bool own = is_set(env, value[4]);
    if (own) config.spec = &spec;
    bool made = fill(env, value[1], session_fields, &config, NULL) &&
                checked(env, value[2], "delay_frames", &delay, &config.delay_frames) &&
                checked(env, value[3], "mode", &mode, &config.mode) &&
                (!own || fill_spec(env, value[4], &spec, &texts, ids, heads)) &&
                fill_heads(env, value[5], model, play, &config) &&
                check(env, exphil_session_create(model->raw, &config, &session, &error), &error);
    drop_texts(&texts);
    return made ? wrap_session(env, session, model->owner) : NULL;
}

static napi_value session_clone(napi_env env, napi_callback_info info)
{
    napi_value value;
    struct handle *session;
    exphil_session *clone = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (!arguments(env, info, 1, &value) || !(session = handle_of(env, value, A_SESSION))) return NULL;
    if (!check(env, exphil_session_clone(session->raw, &clone, &error), &error)) return NULL;
    return wrap_session(env, clone, session->owner);
}

napi_value session_done(napi_env env, struct handle *session, exphil_status status)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    if (status >= 0) return NULL;
    exphil_session_error(session->raw, &error);
    return fail(env, status, error.message, error.native_code);
}

/* (session, floats, ids, actions, noise) */
static napi_value step_row(napi_env env, napi_callback_info info)
{
    napi_value value[5];
    struct handle *session;
    void *floats, *ids, *actions, *noise = NULL;
    if (!arguments(env, info, 5, value) || !(session = handle_of(env, value[0], A_SESSION)) ||
        !array(env, value[1], napi_float32_array, session->floats, "floats", &floats) ||
        !array(env, value[2], napi_int32_array, session->ids, "ids", &ids) ||
        !array(env, value[3], napi_int32_array, session->actions, "actions", &actions) ||
        (is_set(env, value[4]) && !array(env, value[4], napi_float32_array, session->noise, "noise", &noise)))
        return NULL;
    return session_done(env, session, exphil_session_step_row(session->raw, floats, ids, noise, actions));
}

/* (session, stream, data): the stream of a call that has one and its array. */
static struct handle *stream_of(napi_env env, napi_callback_info info, int64_t *stream, napi_value *data)
{
    napi_value value[3];
    struct handle *session;
    if (!arguments(env, info, 3, value) || !(session = handle_of(env, value[0], A_SESSION)) ||
        !read_number(env, value[1], "stream", F_I64, stream))
        return NULL;
    return *data = value[2], session;
}

static napi_value session_logits(napi_env env, napi_callback_info info)
{
    napi_value value;
    int64_t stream;
    void *logits;
    struct handle *session = stream_of(env, info, &stream, &value);
    if (!session || !array(env, value, napi_float32_array, session->logits, "logits", &logits)) return NULL;
    return session_done(env, session, exphil_session_logits(session->raw, stream, logits, session->logits));
}

static napi_value session_reset(napi_env env, napi_callback_info info)
{
    napi_value value;
    int64_t stream;
    struct handle *session = stream_of(env, info, &stream, &value);
    return session ? session_done(env, session, exphil_session_reset(session->raw, stream)) : NULL;
}

static napi_value session_override(napi_env env, napi_callback_info info)
{
    napi_value value;
    int64_t stream;
    void *action;
    struct handle *session = stream_of(env, info, &stream, &value);
    if (!session || !array(env, value, napi_int32_array, session->heads, "action", &action)) return NULL;
    return session_done(env, session, exphil_session_override(session->raw, stream, action));
}

static napi_value state_save(napi_env env, napi_callback_info info)
{
    napi_value value;
    int64_t stream;
    void *state;
    struct handle *session = stream_of(env, info, &stream, &value);
    if (!session) return NULL;
    size_t bytes = exphil_session_state_size(session->raw);
    if (!array(env, value, napi_uint8_array, (int64_t)bytes, "state", &state)) return NULL;
    return session_done(env, session, exphil_session_state_save(session->raw, stream, state, bytes));
}

static napi_value state_restore(napi_env env, napi_callback_info info)
{
    napi_value value;
    int64_t stream;
    void *state;
    struct handle *session = stream_of(env, info, &stream, &value);
    if (!session) return NULL;
    size_t bytes = exphil_session_state_size(session->raw);
    if (!array(env, value, napi_uint8_array, (int64_t)bytes, "state", &state)) return NULL;
    return session_done(env, session, exphil_session_state_restore(session->raw, stream, state, bytes));
}

static napi_value session_info(napi_env env, napi_callback_info info)
{
    napi_value value;
    struct handle *session;
    exphil_session_info raw = EXPHIL_SESSION_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (!arguments(env, info, 1, &value) || !(session = handle_of(env, value, A_SESSION))) return NULL;
    if (!check(env, exphil_session_query(session->raw, &raw, &error), &error)) return NULL;
    return tell(env, session_info_fields, &raw);
}

const struct entry play_entries[] = {{"version", version},
                                     {"close", object_close},
                                     {"kind", object_kind},
                                     {"contextCreate", context_create},
                                     {"contextMemory", context_memory},
                                     {"modelCreate", model_create},
                                     {"modelLoad", model_load},
                                     {"modelSave", model_save},
                                     {"modelInfo", model_info},
                                     {"modelQuantize", model_quantize},
                                     {"sessionCreate", session_create},
                                     {"sessionClone", session_clone},
                                     {"stepRow", step_row},
                                     {"logits", session_logits},
                                     {"reset", session_reset},
                                     {"override", session_override},
                                     {"saveState", state_save},
                                     {"restoreState", state_restore},
                                     {"sessionInfo", session_info},
                                     {NULL, NULL}};
