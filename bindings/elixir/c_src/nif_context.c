/* Contexts: devices, memory, and the two hooks. Log lines become messages to a process. Long calls are cancelled when the
 * process that made them is gone, work of a training thread when it is told to stop. */
#include "nif.h"

/* The library calls this from the thread that called it, so call_current() is that call. */
static void heard(void *user, exphil_log_level level, const char *message)
{
    const struct home *home = user;
    const call *c = call_current();
    ErlNifEnv *env = enif_alloc_env();
    if (!env) return;
    ERL_NIF_TERM line = enif_make_tuple3(env, atom(env, "libexphil_log"), atom(env, log_level_names[level]),
                                         make_text(env, message));
    enif_send(c ? c->env : NULL, &home->pid, env, line);
    enif_free_env(env);
}

static int32_t cancelled(void *user)
{
    (void)user;
    const call *c = call_current();
    if (!c) return 0;
    if (c->stop) return atomic_load(c->stop);
    return c->env && !enif_is_current_process_alive(c->env);
}

NIF(nif_context_create)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    read_record(&c, argv[0], &context_config, &config);
    struct home *home = failed(&c) ? NULL : enif_alloc(sizeof *home);
    if (!home) return fail(&c, EXPHIL_E_MEMORY, "no memory"), finish(&c, 0);
    home->listening = !enif_is_identical(argv[1], atom_nil);
    if (home->listening && !enif_get_local_pid(env, argv[1], &home->pid))
        fail(&c, EXPHIL_E_INVALID, "log: not a process of this node");
    if (home->listening) config.log = heard;
    config.log_user = home;
    config.cancel = cancelled;
    exphil_context *context = NULL;
    exphil_device_info device = EXPHIL_DEVICE_INFO_INIT;
    if (failed(&c) || !done(&c, exphil_context_create(&config, &context, &c.error)) ||
        !done(&c, exphil_context_device(context, &device, &c.error))) {
        exphil_context_destroy(context);
        enif_free(home);
        return finish(&c, 0);
    }
    home->cpu = strncmp(device.id, "cpu", 3) == 0;
    return finish_ok(&c, make_handle(&c, CONTEXT, context, home, NULL));
}

NIF(nif_context_device)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_device_info info = EXPHIL_DEVICE_INFO_INIT;
    handle *context = hold(&c, argv[0], CONTEXT);
    if (context) done(&c, exphil_context_device(context->object, &info, &c.error));
    return finish_ok(&c, make_record(env, &device_info, &info));
}

NIF(nif_context_memory)
{
    (void)argc;
    call c;
    call_begin(&c, env);
    exphil_memory_info info = EXPHIL_MEMORY_INFO_INIT;
    handle *context = hold(&c, argv[0], CONTEXT);
    if (context) done(&c, exphil_context_memory(context->object, &info, &c.error));
    return finish_ok(&c, make_record(env, &memory_info, &info));
}

NIF(nif_devices)
{
    (void)argc, (void)argv;
    call c;
    call_begin(&c, env);
    ERL_NIF_TERM list = enif_make_list(env, 0);
    for (int64_t i = exphil_device_count(); i-- > 0;) {
        exphil_device_info info = EXPHIL_DEVICE_INFO_INIT;
        if (!done(&c, exphil_device_get(i, &info, &c.error))) break;
        list = enif_make_list_cell(env, make_record(env, &device_info, &info), list);
    }
    return finish_ok(&c, list);
}
