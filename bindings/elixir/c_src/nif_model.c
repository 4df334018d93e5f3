/* Models: create, load, save, look inside, quantise, compare. */
#include "nif.h"

static ERL_NIF_TERM give_model(call *c, exphil_model *model, handle *relative)
{
    return finish_ok(c, make_handle(c, MODEL, model, NULL, relative));
}

NIF(nif_model_create)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_model_config config = EXPHIL_MODEL_CONFIG_INIT;
    exphil_model *model = NULL;
    handle *context = hold(&c, argv[0], CONTEXT);
    if (read_record(&c, argv[1], &model_config, &config))
        done(&c, exphil_model_create(context->object, &config, &model, &c.error));
    return give_model(&c, model, context);
}

NIF(nif_model_load)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_model *model = NULL;
    handle *context = hold(&c, argv[0], CONTEXT);
    const char *path = read_text(&c, argv[1], "path");
    if (path) done(&c, exphil_model_load(context->object, path, &model, &c.error));
    return give_model(&c, model, context);
}

NIF(nif_model_load_memory)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_model *model = NULL;
    ErlNifBinary data;
    handle *context = hold(&c, argv[0], CONTEXT);
    if (read_binary(&c, argv[1], "data", &data))
        done(&c, exphil_model_load_memory(context->object, data.data, data.size, &model, &c.error));
    return give_model(&c, model, context);
}

NIF(nif_model_save)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    handle *model = hold(&c, argv[0], MODEL);
    const char *path = read_text(&c, argv[1], "path");
    if (path) done(&c, exphil_model_save(model->object, path, &c.error));
    return finish(&c, 0);
}

NIF(nif_model_export_onnx)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    handle *model = hold(&c, argv[0], MODEL);
    const char *path = read_text(&c, argv[1], "path");
    if (path) done(&c, exphil_model_export_onnx(model->object, path, &c.error));
    return finish(&c, 0);
}

NIF(nif_model_info)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    handle *model = hold(&c, argv[0], MODEL);
    if (model) done(&c, exphil_model_query(model->object, &info, &c.error));
    return finish_ok(&c, make_record(env, &model_info, &info));
}

NIF(nif_model_spec)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_spec spec = EXPHIL_SPEC_INIT;
    handle *model = hold(&c, argv[0], MODEL);
    if (!model || !done(&c, exphil_model_spec(model->object, &spec, &c.error))) return finish(&c, 0);
    return finish_ok(&c, make_spec(env, &spec));
}

NIF(nif_model_sampling)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
    handle *model = hold(&c, argv[0], MODEL);
    if (model) done(&c, exphil_model_sampling(model->object, &sampling, &c.error));
    return finish_ok(&c, make_record(env, &sampling_config, &sampling));
}

/* ---- tensors ----------------------------------------------------------------------------------------------- */

static ERL_NIF_TERM make_tensor(ErlNifEnv *env, const exphil_tensor_info *info)
{
    ERL_NIF_TERM shape = enif_make_list(env, 0);
    for (int32_t i = info->rank; i-- > 0;)
        shape = enif_make_list_cell(env, enif_make_int64(env, info->dim[i]), shape);
    ERL_NIF_TERM dims[4];
    for (int32_t i = 0; i < info->rank && i < 4; i++) enif_get_list_cell(env, shape, &dims[i], &shape);
    shape = enif_make_tuple_from_array(env, dims, (unsigned)info->rank);
    return with_key(env, make_record(env, &tensor_info, info), "shape", shape);
}

NIF(nif_model_tensors)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_model_info model_is = EXPHIL_MODEL_INFO_INIT;
    ERL_NIF_TERM list = enif_make_list(env, 0);
    handle *model = hold(&c, argv[0], MODEL);
    if (!model || !done(&c, exphil_model_query(model->object, &model_is, &c.error))) return finish(&c, 0);
    for (int64_t i = model_is.tensor_count; i-- > 0;) {
        exphil_tensor_info info = EXPHIL_TENSOR_INFO_INIT;
        if (!done(&c, exphil_model_tensor_info(model->object, i, &info, &c.error))) break;
        list = enif_make_list_cell(env, make_tensor(env, &info), list);
    }
    return finish_ok(&c, list);
}

static bool find_tensor(call *c, const exphil_model *model, const char *name, exphil_tensor_info *info)
{
    exphil_model_info model_is = EXPHIL_MODEL_INFO_INIT;
    if (!done(c, exphil_model_query(model, &model_is, &c->error))) return false;
    for (int64_t i = 0; i < model_is.tensor_count; i++) {
        if (!done(c, exphil_model_tensor_info(model, i, info, &c->error))) return false;
        if (strcmp(info->name, name) == 0) return true;
    }
    return fail(c, EXPHIL_E_INVALID, "the model has no tensor %s", name);
}

NIF(nif_model_tensor)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_tensor_info info = EXPHIL_TENSOR_INFO_INIT;
    ERL_NIF_TERM data = atom_nil;
    handle *model = hold(&c, argv[0], MODEL);
    const char *name = read_text(&c, argv[1], "name");
    if (name && find_tensor(&c, model->object, name, &info)) {
        unsigned char *to = enif_make_new_binary(env, info.size_bytes, &data);
        done(&c, exphil_model_tensor_get(model->object, name, to, info.size_bytes, &c.error));
    }
    if (failed(&c)) return finish(&c, 0);
    return finish_ok(&c, with_key(env, make_tensor(env, &info), "data", data));
}

NIF(nif_model_put_tensor)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    ErlNifBinary data;
    handle *model = hold(&c, argv[0], MODEL);
    const char *name = read_text(&c, argv[1], "name");
    if (read_binary(&c, argv[2], "data", &data))
        done(&c, exphil_model_tensor_set(model->object, name, data.data, data.size, &c.error));
    return finish(&c, 0);
}

/* ---- learning ---------------------------------------------------------------------------------------------- */

static const char *const value_names[] = {"none", "detached", "shared", NULL};

NIF(nif_model_with_value)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_model *made = NULL;
    ErlNifUInt64 seed = 0;
    handle *model = hold(&c, argv[0], MODEL);
    int32_t value = read_name(&c, argv[1], "value", value_names);
    if (!failed(&c) && !enif_get_uint64(env, argv[2], &seed))
        fail(&c, EXPHIL_E_INVALID, "seed: not an integer in 0..2^64-1");
    if (!failed(&c)) done(&c, exphil_model_with_value(model->object, value, seed, &made, &c.error));
    return give_model(&c, made, model);
}

NIF(nif_model_prepare)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    handle *model = hold(&c, argv[0], MODEL);
    if (model) done(&c, exphil_model_prepare(model->object, &c.error));
    return finish(&c, 0);
}

/* ---- fewer bits -------------------------------------------------------------------------------------------- */

NIF(nif_model_quantize)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_model *made = NULL;
    handle *model = hold(&c, argv[0], MODEL);
    int32_t type = read_name(&c, argv[1], "type", type_names);
    if (!failed(&c)) done(&c, exphil_model_quantize(model->object, type, &made, &c.error));
    return give_model(&c, made, model);
}

NIF(nif_model_compare)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_comparison comparison = EXPHIL_COMPARISON_INIT;
    handle *reference = hold(&c, argv[0], MODEL);
    handle *model = hold(&c, argv[1], MODEL);
    handle *dataset = hold(&c, argv[2], DATASET);
    int64_t batch = read_integer(&c, argv[3], "batch", INT64_MIN, INT64_MAX);
    if (!failed(&c))
        done(&c, exphil_model_compare(reference->object, model->object, dataset->object, batch, &comparison,
                                      &c.error));
    return finish_ok(&c, make_comparison(env, &comparison));
}

NIF(nif_model_calibration)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_comparison comparison = EXPHIL_COMPARISON_INIT;
    handle *model = hold(&c, argv[0], MODEL);
    if (model) done(&c, exphil_model_calibration_get(model->object, &comparison, &c.error));
    return finish_ok(&c, make_comparison(env, &comparison));
}

NIF(nif_model_put_calibration)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_comparison comparison = EXPHIL_COMPARISON_INIT;
    handle *model = hold(&c, argv[0], MODEL);
    if (read_comparison(&c, argv[1], &comparison))
        done(&c, exphil_model_calibration_set(model->object, &comparison, &c.error));
    return finish(&c, 0);
}
