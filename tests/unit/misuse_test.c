/* Wrong use of every public function: its status, a message that names the culprit, outputs as they were. A row of the
 * tables is a call; it fails here unless it is refused in exactly that way. */
#include "melee_frame.h"
#include "play_case.h"
#include "train_case.h"

#include <exphil/slp.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- a world in which everything is right ---------------------------------------------------------------------------- */

static struct world {
    test_io io;
    train_plan plan;
    train_run run, hand; /* with a prefetcher, and by hand */
    exphil_context *elsewhere;
    exphil_model *melee, *quantized;
    exphil_comparison comparison;
    exphil_session *session, *live; /* of run.model, of melee */
    exphil_dataset *empty, *replays;
    exphil_slp_stream *stream;
    exphil_batch batch;
    exphil_melee_frame frame;
    float floats[8 * 13], big[4096];
    int32_t ids[8 * 2 + EXPHIL_IDS_MAX], actions[8 * 3], zero[EXPHIL_HEADS_MAX];
    unsigned char block[65536];
} w;

static int make_world(void **state)
{
    (void)state;
    test_io_init(&w.io);
    w.plan = train_plan_of("gru", EXPHIL_MODE_CARRY);
    w.plan.io = &w.io;
    w.run = train_begin(&w.plan);
    (void)train_steps(&w.run, 1);
    w.plan.by_hand = true;
    w.hand = train_begin(&w.plan);
    w.plan.by_hand = false;
    w.elsewhere = test_context(NULL, NULL, 1);
    exphil_model_config config = model_case_config("mlp", EXPHIL_TYPE_F32);
    config.spec = NULL;
    w.melee = model_case_create(w.run.context, &config);
    assert_ok(exphil_model_quantize(w.run.model, EXPHIL_TYPE_I8, &w.quantized, NULL));
    w.comparison = (exphil_comparison)EXPHIL_COMPARISON_INIT;
    w.comparison.frames = 1;
    w.comparison.heads = 3;
    assert_ok(exphil_model_calibration_set(w.quantized, &w.comparison, NULL));
    w.session = play_session(w.run.model, NULL);
    w.live = play_session(w.melee, NULL);
    exphil_dataset_config data = EXPHIL_DATASET_CONFIG_INIT;
    assert_ok(exphil_dataset_create(w.run.context, &data, &w.replays, NULL));
    data.spec = &model_case_spec;
    assert_ok(exphil_dataset_create(w.run.context, &data, &w.empty, NULL));
    assert_ok(exphil_slp_stream_create(w.run.context, &w.stream, NULL));
    w.batch = train_batch(w.run.model, 2, 4, 0);
    w.frame = melee_frame();
    for (int t = 0; t < 8; t++) train_row(0, t, w.floats + 13 * t, w.ids + 2 * t, w.actions + 3 * t);
    return 0;
}

static int end_world(void **state)
{
    (void)state;
    train_batch_free(&w.batch);
    exphil_slp_stream_destroy(w.stream);
    exphil_dataset_destroy(w.empty);
    exphil_dataset_destroy(w.replays);
    exphil_session_destroy(w.session);
    exphil_session_destroy(w.live);
    exphil_model_destroy(w.quantized);
    exphil_model_destroy(w.melee);
    exphil_context_destroy(w.elsewhere);
    train_end(&w.hand);
    train_end(&w.run);
    test_folder_remove();
    return 0;
}

/* ---- outputs that must stay as they are ------------------------------------------------------------------------------ */

enum { OUTS = 3, OUT_BYTES = 32768 };
static _Alignas(64) unsigned char out[OUTS][OUT_BYTES], kept[OUTS][OUT_BYTES];

/* A place for an output, filled with bytes that no output has; struct_size 0: not a struct. */
static void *place(int which, size_t struct_size)
{
    memset(out[which], 0x6B, OUT_BYTES);
    if (struct_size) memcpy(out[which], &struct_size, sizeof struct_size);
    memcpy(kept[which], out[which], OUT_BYTES);
    return out[which];
}
#define OUT(type)  ((type *)place(0, 0))
#define OUT2(type) ((type *)place(1, 0))
#define FILL(type) ((type *)place(0, sizeof(type)))

static void check(const char *call, exphil_status status, exphil_status want, const exphil_error *error,
                  const char *says)
{
    if (status != want)
        fail_msg("%s\n  gives %s, not %s (%s)", call, exphil_status_name(status), exphil_status_name(want),
                 error->message);
    if (error->status != want) fail_msg("%s\n  the error says %s", call, exphil_status_name(error->status));
    if (!strstr(error->message, says)) fail_msg("%s\n  \"%s\" not in \"%s\"", call, says, error->message);
    if (memcmp(out, kept, sizeof out) != 0) fail_msg("%s\n  wrote to its outputs", call);
}

/* call uses &e for its error. */
#define BAD(want, says, call)                                                                                \
  do {                                                                                                       \
    exphil_error e = EXPHIL_ERROR_INIT;                                                                      \
    exphil_status bad_status = (call);                                                                       \
    check(#call, bad_status, EXPHIL_E_##want, &e, says);                                                     \
  } while (0)

/* The hot calls keep their text in the session. */
#define HOT(session, want, says, call)                                                                       \
  do {                                                                                                       \
    exphil_error e = EXPHIL_ERROR_INIT;                                                                      \
    exphil_status bad_status = (call);                                                                       \
    (void)exphil_session_error(session, &e);                                                                 \
    check(#call, bad_status, EXPHIL_E_##want, &e, says);                                                     \
  } while (0)

/* ---- sizes of structs -------------------------------------------------------------------------------------------------- */

/* One row per struct that is read: a good one, and a call that takes it. */
typedef exphil_status (*take_fn)(const void *given, exphil_error *e);

static exphil_status take_context(const void *given, exphil_error *e)
{
    exphil_context *made = NULL;
    exphil_status status = exphil_context_create(given, &made, e);
    exphil_context_destroy(made);
    return status;
}

static exphil_status with_hook(const exphil_allocator *allocator, const exphil_io *io,
                               const exphil_executor *executor, exphil_error *e)
{
    exphil_context_config config = EXPHIL_CONTEXT_CONFIG_INIT;
    config.allocator = allocator;
    config.io = io;
    config.executor = executor;
    return take_context(&config, e);
}

static exphil_status take_allocator(const void *given, exphil_error *e)
{
    return with_hook(given, NULL, NULL, e);
}

static exphil_status take_io(const void *given, exphil_error *e)
{
    return with_hook(NULL, given, NULL, e);
}

static exphil_status take_executor(const void *given, exphil_error *e)
{
    return with_hook(NULL, NULL, given, e);
}

static exphil_status take_spec(const void *given, exphil_error *e)
{
    exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT;
    exphil_dataset *made = NULL;
    config.spec = given;
    exphil_status status = exphil_dataset_create(w.run.context, &config, &made, e);
    exphil_dataset_destroy(made);
    return status;
}

static exphil_status take_dataset(const void *given, exphil_error *e)
{
    exphil_dataset *made = NULL;
    exphil_status status = exphil_dataset_create(w.run.context, given, &made, e);
    exphil_dataset_destroy(made);
    return status;
}

static exphil_status take_model(const void *given, exphil_error *e)
{
    exphil_model *made = NULL;
    exphil_status status = exphil_model_create(w.run.context, given, &made, e);
    exphil_model_destroy(made);
    return status;
}

static exphil_status take_split(const void *given, exphil_error *e)
{
    exphil_dataset *made[2] = {NULL, NULL};
    exphil_status status = exphil_dataset_split(w.run.dataset, given, &made[0], &made[1], e);
    exphil_dataset_destroy(made[0]);
    exphil_dataset_destroy(made[1]);
    return status;
}

static exphil_status take_sampling(const void *given, exphil_error *e)
{
    exphil_prefetcher *made = NULL;
    exphil_status status = exphil_prefetcher_create(w.run.dataset, given, &made, e);
    exphil_prefetcher_destroy(made);
    return status;
}

static exphil_status take_optimizer(const void *given, exphil_error *e)
{
    exphil_optimizer *made = NULL;
    exphil_status status = exphil_optimizer_create(w.run.model, given, &made, e);
    exphil_optimizer_destroy(made);
    return status;
}

static exphil_status take_trainer(const void *given, exphil_error *e)
{
    exphil_optimizer *optimizer = NULL;
    exphil_trainer *made = NULL;
    assert_ok(exphil_optimizer_create(w.run.model, NULL, &optimizer, NULL));
    exphil_status status = exphil_trainer_create(w.run.model, optimizer, NULL, given, &made, e);
    exphil_trainer_destroy(made);
    exphil_optimizer_destroy(optimizer);
    return status;
}

static exphil_status take_comparison(const void *given, exphil_error *e)
{
    return exphil_model_calibration_set(w.quantized, given, e);
}

static exphil_status take_batch(const void *given, exphil_error *e)
{
    return exphil_trainer_step_batch(w.hand.trainer, given, NULL, e);
}

static exphil_status take_session(const void *given, exphil_error *e)
{
    exphil_session *made = NULL;
    exphil_status status = exphil_session_create(w.run.model, given, &made, e);
    exphil_session_destroy(made);
    return status;
}

static exphil_status take_frame(const void *given, exphil_error *e)
{
    float floats[4096];
    int32_t ids[EXPHIL_IDS_MAX];
    return exphil_melee_encode(NULL, given, floats, ids, e);
}

static exphil_status take_live_frame(const void *given, exphil_error *e)
{
    exphil_pad pad;
    exphil_status status = exphil_session_step(w.live, given, &pad);
    if (status < 0) (void)exphil_session_error(w.live, e);
    return status;
}

static void *some_alloc(void *user, size_t bytes, size_t align)
{
    (void)user;
    return aligned_alloc(align, (bytes + align - 1) / align * align);
}

static void some_free(void *user, void *pointer, size_t bytes)
{
    (void)user;
    (void)bytes;
    free(pointer);
}

static void in_a_row(void *user, void (*fn)(void *arg, int64_t i, int32_t worker), void *arg, int64_t count)
{
    (void)user;
    for (int64_t i = 0; i < count; i++) fn(arg, i, 0);
}

/* As long as this library has it; as short as the oldest caller gives it. */
#define SIZES(type) sizeof(type), XPH_LEAST(type)

static void check_sizes(const char *name, take_fn take, const void *good, size_t bytes, size_t least)
{
    static const size_t wrong[] = {0, 1, 7, 8, 65537, (size_t)1 << 40, SIZE_MAX};
    _Alignas(64) unsigned char given[8192] = {0};
    exphil_error e = EXPHIL_ERROR_INIT;
    size_t longer = bytes + 64;
    memcpy(given, good, bytes);
    if (take(given, &e) < 0) fail_msg("%s: %s", name, e.message);
    for (size_t i = 0; i <= sizeof wrong / sizeof wrong[0]; i++) {
        size_t size = i < sizeof wrong / sizeof wrong[0] ? wrong[i] : least - 1;
        if (size >= least && size < 65536) continue;
        memcpy(given, &size, sizeof size);
        exphil_status status = take(given, &e);
        if (status != EXPHIL_E_INVALID)
            fail_msg("%s of %zu bytes: %s", name, size, exphil_status_name(status));
        if (!strstr(e.message, "struct_size")) fail_msg("%s of %zu bytes: %s", name, size, e.message);
    }
    memcpy(given, &longer, sizeof longer);
    if (take(given, &e) < 0) fail_msg("%s with a longer, empty tail: %s", name, e.message);
    for (size_t at = bytes; at < longer; at += 21) {
        given[at] = 1;
        exphil_status status = take(given, &e);
        if (status != EXPHIL_E_VERSION)
            fail_msg("%s that uses byte %zu: %s", name, at, exphil_status_name(status));
        given[at] = 0;
    }
}

static void sizes_of_inputs(void **state)
{
    (void)state;
    const exphil_context_config context = EXPHIL_CONTEXT_CONFIG_INIT;
    const exphil_allocator allocator = {sizeof allocator, NULL, some_alloc, some_free};
    const exphil_executor executor = {sizeof executor, NULL, 1, 0, in_a_row};
    const exphil_dataset_config dataset = EXPHIL_DATASET_CONFIG_INIT;
    const exphil_split_config split = {sizeof split, 0.5, 1, EXPHIL_SPLIT_GAME, 0};
    const exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
    const exphil_optimizer_config optimizer = EXPHIL_OPTIMIZER_CONFIG_INIT;
    const exphil_trainer_config trainer = EXPHIL_TRAINER_CONFIG_INIT;
    const exphil_session_config session = EXPHIL_SESSION_CONFIG_INIT;
    const exphil_model_config model = model_case_config("mlp", EXPHIL_TYPE_F32);
    const struct {
        const char *name;
        take_fn take;
        const void *good;
        size_t bytes, least;
    } cases[] = {
        {"exphil_context_config", take_context, &context, SIZES(exphil_context_config)},
        {"exphil_allocator", take_allocator, &allocator, SIZES(exphil_allocator)},
        {"exphil_io", take_io, &w.io.hook, SIZES(exphil_io)},
        {"exphil_executor", take_executor, &executor, SIZES(exphil_executor)},
        {"exphil_spec", take_spec, &model_case_spec, SIZES(exphil_spec)},
        {"exphil_dataset_config", take_dataset, &dataset, SIZES(exphil_dataset_config)},
        {"exphil_model_config", take_model, &model, SIZES(exphil_model_config)},
        {"exphil_split_config", take_split, &split, SIZES(exphil_split_config)},
        {"exphil_sampling", take_sampling, &sampling, SIZES(exphil_sampling)},
        {"exphil_optimizer_config", take_optimizer, &optimizer, SIZES(exphil_optimizer_config)},
        {"exphil_trainer_config", take_trainer, &trainer, SIZES(exphil_trainer_config)},
        {"exphil_comparison", take_comparison, &w.comparison, SIZES(exphil_comparison)},
        {"exphil_batch", take_batch, &w.batch, SIZES(exphil_batch)},
        {"exphil_session_config", take_session, &session, SIZES(exphil_session_config)},
        {"exphil_melee_frame", take_frame, &w.frame, SIZES(exphil_melee_frame)},
        {"exphil_melee_frame in play", take_live_frame, &w.frame, SIZES(exphil_melee_frame)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_sizes(cases[i].name, cases[i].take, cases[i].good, cases[i].bytes, cases[i].least);
}

/* One row per struct that is written. */
typedef exphil_status (*give_fn)(void *to, exphil_error *e);
#define GIVE(name, call)                                                                                     \
  static exphil_status name(void *to, exphil_error *e)                                                       \
  {                                                                                                          \
    return call;                                                                                             \
  }
GIVE(give_device, exphil_device_get(0, to, e))
GIVE(give_context_device, exphil_context_device(w.run.context, to, e))
GIVE(give_memory, exphil_context_memory(w.run.context, to, e))
GIVE(give_melee_spec, exphil_melee_spec(NULL, NULL, to, e))
GIVE(give_field, exphil_melee_field_get("melee2", 0, to, e))
GIVE(give_model, exphil_model_query(w.run.model, to, e))
GIVE(give_model_spec, exphil_model_spec(w.run.model, to, e))
GIVE(give_tensor, exphil_model_tensor_info(w.run.model, 0, to, e))
GIVE(give_sampling, exphil_model_sampling(w.run.model, to, e))
GIVE(give_dataset, exphil_dataset_query(w.run.dataset, to, e))
GIVE(give_dataset_spec, exphil_dataset_spec(w.run.dataset, to, e))
GIVE(give_episode, exphil_dataset_episode(w.run.dataset, 0, to, e))
GIVE(give_batch, exphil_prefetcher_next(w.run.prefetcher, to, e))
GIVE(give_prefetcher, exphil_prefetcher_query(w.run.prefetcher, to, e))
GIVE(give_optimizer, exphil_optimizer_query(w.run.optimizer, to, e))
GIVE(give_metrics, exphil_trainer_step(w.run.trainer, to, e))
GIVE(give_metrics_by_hand, exphil_trainer_step_batch(w.hand.trainer, &w.batch, to, e))
GIVE(give_report, exphil_evaluate(w.run.model, w.run.dataset, NULL, NULL, 0, to, e))
GIVE(give_comparison, exphil_model_compare(w.run.model, w.quantized, w.run.dataset, 0, to, e))
GIVE(give_calibration, exphil_model_calibration_get(w.quantized, to, e))
GIVE(give_trainer_report, exphil_trainer_evaluate(w.run.trainer, EXPHIL_WEIGHTS, w.run.dataset, NULL, to, e))
GIVE(give_session, exphil_session_query(w.session, to, e))

static void sizes_of_outputs(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        give_fn give;
        size_t bytes, least;
    } cases[] = {
        {"exphil_device_info", give_device, SIZES(exphil_device_info)},
        {"exphil_device_info of a context", give_context_device, SIZES(exphil_device_info)},
        {"exphil_memory_info", give_memory, SIZES(exphil_memory_info)},
        {"exphil_spec of Melee", give_melee_spec, SIZES(exphil_spec)},
        {"exphil_melee_field", give_field, SIZES(exphil_melee_field)},
        {"exphil_model_info", give_model, SIZES(exphil_model_info)},
        {"exphil_spec of a model", give_model_spec, SIZES(exphil_spec)},
        {"exphil_tensor_info", give_tensor, SIZES(exphil_tensor_info)},
        {"exphil_sampling", give_sampling, SIZES(exphil_sampling)},
        {"exphil_dataset_info", give_dataset, SIZES(exphil_dataset_info)},
        {"exphil_spec of a dataset", give_dataset_spec, SIZES(exphil_spec)},
        {"exphil_episode_info", give_episode, SIZES(exphil_episode_info)},
        {"exphil_batch", give_batch, SIZES(exphil_batch)},
        {"exphil_prefetcher_info", give_prefetcher, SIZES(exphil_prefetcher_info)},
        {"exphil_optimizer_info", give_optimizer, SIZES(exphil_optimizer_info)},
        {"exphil_metrics", give_metrics, SIZES(exphil_metrics)},
        {"exphil_metrics by hand", give_metrics_by_hand, SIZES(exphil_metrics)},
        {"exphil_report", give_report, SIZES(exphil_report)},
        {"exphil_report of a trainer", give_trainer_report, SIZES(exphil_report)},
        {"exphil_comparison", give_comparison, SIZES(exphil_comparison)},
        {"exphil_comparison of a model", give_calibration, SIZES(exphil_comparison)},
        {"exphil_session_info", give_session, SIZES(exphil_session_info)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const size_t wrong[] = {1, 7, cases[i].least - 1, (size_t)1 << 40};
        for (size_t k = 0; k < sizeof wrong / sizeof wrong[0]; k++) {
            exphil_error e = EXPHIL_ERROR_INIT;
            size_t bytes;
            unsigned char *before = train_snapshot(w.run.trainer, &bytes), *after;
            exphil_status status = cases[i].give(place(0, wrong[k]), &e);
            check(cases[i].name, status, EXPHIL_E_INVALID, &e, "struct_size");
            after = train_snapshot(w.run.trainer, &bytes);
            assert_memory_equal(before, after, bytes); /* refused before the work */
            free(before);
            free(after);
        }
        /* A longer one: filled as far as it is known, its size and its tail left alone. */
        unsigned char *to = place(0, cases[i].bytes + 40);
        size_t size = 0;
        exphil_status status = cases[i].give(to, NULL);
        if (status != EXPHIL_OK && status != EXPHIL_END)
            fail_msg("%s, longer: %s", cases[i].name, exphil_status_name(status));
        memcpy(&size, to, sizeof size);
        assert_int_equal(size, cases[i].bytes + 40);
        assert_memory_equal(to + cases[i].bytes, kept[0] + cases[i].bytes, 40);
    }
    (void)place(0, 0);
}

/* An error struct that is none is left alone, and so is the message of one that is not needed. */
static void errors_that_are_none(void **state)
{
    (void)state;
    exphil_error e;
    memset(&e, 0x6B, sizeof e);
    e.struct_size = 12;
    exphil_error before = e;
    assert_int_equal(exphil_model_query(NULL, NULL, &e), EXPHIL_E_INVALID);
    assert_memory_equal(&e, &before, sizeof e);
    e.struct_size = sizeof e;
    before = e;
    exphil_memory_info info = EXPHIL_MEMORY_INFO_INIT;
    assert_ok(exphil_context_memory(w.run.context, &info, &e));
    assert_memory_equal(&e, &before, sizeof e);
}

/* ---- NULL ---------------------------------------------------------------------------------------------------------------- */

static void null_contexts_and_models(void **state)
{
    (void)state;
    exphil_context *c = w.run.context;
    exphil_model *m = w.run.model;
    BAD(INVALID, "context", exphil_context_create(NULL, NULL, &e));
    BAD(INVALID, "context", exphil_context_device(NULL, FILL(exphil_device_info), &e));
    BAD(INVALID, "NULL", exphil_context_device(c, NULL, &e));
    BAD(INVALID, "context", exphil_context_memory(NULL, FILL(exphil_memory_info), &e));
    BAD(INVALID, "NULL", exphil_context_memory(c, NULL, &e));
    BAD(INVALID, "NULL", exphil_device_get(0, NULL, &e));
    BAD(INVALID, "NULL", exphil_melee_spec(NULL, NULL, NULL, &e));
    BAD(INVALID, "NULL", exphil_melee_field_get("melee2", 0, NULL, &e));
    BAD(INVALID, "context", exphil_model_create(NULL, NULL, OUT(exphil_model *), &e));
    BAD(INVALID, "model", exphil_model_create(c, NULL, NULL, &e));
    BAD(INVALID, "context", exphil_model_load(NULL, "x", OUT(exphil_model *), &e));
    BAD(INVALID, "path", exphil_model_load(c, NULL, OUT(exphil_model *), &e));
    BAD(INVALID, "model", exphil_model_load(c, "x", NULL, &e));
    BAD(INVALID, "context", exphil_model_load_memory(NULL, "x", 1, OUT(exphil_model *), &e));
    BAD(INVALID, "data", exphil_model_load_memory(c, NULL, 1, OUT(exphil_model *), &e));
    BAD(INVALID, "model", exphil_model_load_memory(c, "x", 1, NULL, &e));
    BAD(INVALID, "model", exphil_model_save(NULL, "x", &e));
    BAD(INVALID, "path", exphil_model_save(m, NULL, &e));
    BAD(INVALID, "model", exphil_model_query(NULL, FILL(exphil_model_info), &e));
    BAD(INVALID, "NULL", exphil_model_query(m, NULL, &e));
    BAD(INVALID, "model", exphil_model_spec(NULL, FILL(exphil_spec), &e));
    BAD(INVALID, "NULL", exphil_model_spec(m, NULL, &e));
    BAD(INVALID, "model", exphil_model_tensor_info(NULL, 0, FILL(exphil_tensor_info), &e));
    BAD(INVALID, "NULL", exphil_model_tensor_info(m, 0, NULL, &e));
    BAD(INVALID, "model", exphil_model_tensor_get(NULL, "norm.bias", OUT(float), 96, &e));
    BAD(INVALID, "name", exphil_model_tensor_get(m, NULL, OUT(float), 96, &e));
    BAD(INVALID, "data", exphil_model_tensor_get(m, "norm.bias", NULL, 96, &e));
    BAD(INVALID, "model", exphil_model_tensor_set(NULL, "norm.bias", w.floats, 96, &e));
    BAD(INVALID, "name", exphil_model_tensor_set(w.hand.model, NULL, w.floats, 96, &e));
    BAD(INVALID, "model",
        exphil_model_tensor_to_dlpack(NULL, "norm.bias", OUT(struct DLManagedTensor *), &e));
    BAD(INVALID, "name", exphil_model_tensor_to_dlpack(m, NULL, OUT(struct DLManagedTensor *), &e));
    BAD(INVALID, "tensor", exphil_model_tensor_to_dlpack(m, "norm.bias", NULL, &e));
    BAD(INVALID, "tensor", exphil_model_tensor_to_dlpack_versioned(m, "norm.bias", NULL, &e));
    BAD(INVALID, "model",
        exphil_model_tensor_to_dlpack_versioned(NULL, "norm.bias", OUT(struct DLManagedTensorVersioned *),
                                                &e));
    BAD(INVALID, "model", exphil_model_tensor_from_dlpack(NULL, "norm.bias", NULL, &e));
    BAD(INVALID, "model", exphil_model_export_onnx(NULL, "x", &e));
    BAD(INVALID, "path", exphil_model_export_onnx(m, NULL, &e));
    BAD(INVALID, "model", exphil_model_calibration_set(NULL, &w.comparison, &e));
    BAD(INVALID, "comparison", exphil_model_calibration_set(w.quantized, NULL, &e));
    BAD(INVALID, "model", exphil_model_calibration_get(NULL, FILL(exphil_comparison), &e));
    BAD(INVALID, "comparison", exphil_model_calibration_get(w.quantized, NULL, &e));
    BAD(INVALID, "model", exphil_model_sampling(NULL, FILL(exphil_sampling), &e));
    BAD(INVALID, "sampling", exphil_model_sampling(m, NULL, &e));
    assert_int_equal(exphil_spec_hash(NULL), 0);
    assert_int_equal(exphil_melee_field_count("pong"), 0);
    assert_string_equal(exphil_status_name(12345), "EXPHIL_UNKNOWN");
}

static void null_data(void **state)
{
    (void)state;
    exphil_context *c = w.run.context;
    exphil_dataset *d = w.run.dataset;
    exphil_prefetcher *p = w.run.prefetcher;
    exphil_split_config split = {sizeof split, 0.5, 1, EXPHIL_SPLIT_GAME, 0};
    BAD(INVALID, "context", exphil_dataset_create(NULL, NULL, OUT(exphil_dataset *), &e));
    BAD(INVALID, "dataset", exphil_dataset_create(c, NULL, NULL, &e));
    BAD(INVALID, "context", exphil_dataset_open(NULL, "x", OUT(exphil_dataset *), &e));
    BAD(INVALID, "path", exphil_dataset_open(c, NULL, OUT(exphil_dataset *), &e));
    BAD(INVALID, "dataset", exphil_dataset_open(c, "x", NULL, &e));
    BAD(INVALID, "dataset", exphil_dataset_save(NULL, "x", &e));
    BAD(INVALID, "path", exphil_dataset_save(d, NULL, &e));
    BAD(INVALID, "dataset", exphil_dataset_add_replay(NULL, "x", NULL, NULL, &e));
    BAD(INVALID, "path", exphil_dataset_add_replay(w.replays, NULL, NULL, NULL, &e));
    BAD(INVALID, "dataset", exphil_dataset_add_replay_memory(NULL, "x", 1, NULL, NULL, &e));
    BAD(INVALID, "data", exphil_dataset_add_replay_memory(w.replays, NULL, 1, NULL, NULL, &e));
    BAD(INVALID, "dataset", exphil_dataset_add_rows(NULL, 1, 8, w.floats, w.ids, w.actions, &e));
    BAD(INVALID, "floats", exphil_dataset_add_rows(w.empty, 1, 8, NULL, w.ids, w.actions, &e));
    BAD(INVALID, "ids", exphil_dataset_add_rows(w.empty, 1, 8, w.floats, NULL, w.actions, &e));
    BAD(INVALID, "actions", exphil_dataset_add_rows(w.empty, 1, 8, w.floats, w.ids, NULL, &e));
    BAD(INVALID, "dataset", exphil_dataset_query(NULL, FILL(exphil_dataset_info), &e));
    BAD(INVALID, "NULL", exphil_dataset_query(d, NULL, &e));
    BAD(INVALID, "dataset", exphil_dataset_spec(NULL, FILL(exphil_spec), &e));
    BAD(INVALID, "dataset", exphil_dataset_episode(NULL, 0, FILL(exphil_episode_info), &e));
    BAD(INVALID, "NULL", exphil_dataset_episode(d, 0, NULL, &e));
    BAD(INVALID, "dataset", exphil_dataset_frame(NULL, 0, OUT(float), NULL, NULL, &e));
    BAD(INVALID, "dataset",
        exphil_dataset_split(NULL, &split, OUT(exphil_dataset *), OUT2(exphil_dataset *), &e));
    BAD(INVALID, "NULL", exphil_dataset_split(d, &split, NULL, OUT2(exphil_dataset *), &e));
    BAD(INVALID, "NULL", exphil_dataset_split(d, &split, OUT(exphil_dataset *), NULL, &e));
    BAD(INVALID, "config is NULL",
        exphil_dataset_split(d, NULL, OUT(exphil_dataset *), OUT2(exphil_dataset *), &e));
    BAD(INVALID, "dataset", exphil_prefetcher_create(NULL, NULL, OUT(exphil_prefetcher *), &e));
    BAD(INVALID, "prefetcher", exphil_prefetcher_create(d, NULL, NULL, &e));
    BAD(INVALID, "prefetcher", exphil_prefetcher_next(NULL, FILL(exphil_batch), &e));
    BAD(INVALID, "batch", exphil_prefetcher_next(p, NULL, &e));
    BAD(INVALID, "prefetcher", exphil_prefetcher_seek(NULL, 0, 0, &e));
    BAD(INVALID, "prefetcher", exphil_prefetcher_query(NULL, FILL(exphil_prefetcher_info), &e));
    BAD(INVALID, "NULL", exphil_prefetcher_query(p, NULL, &e));
}

static int32_t no_reduce(void *user, void *data, int64_t count, int32_t type)
{
    (void)user;
    (void)data;
    (void)count;
    (void)type;
    return 0;
}

static void null_training(void **state)
{
    (void)state;
    exphil_model *m = w.run.model;
    exphil_trainer *t = w.run.trainer;
    exphil_optimizer *own = NULL;
    exphil_communicator alone = {sizeof alone, NULL, NULL, 0, 1};
    exphil_trainer_config config = EXPHIL_TRAINER_CONFIG_INIT;
    config.communicator = &alone;
    assert_ok(exphil_optimizer_create(m, NULL, &own, NULL));
    BAD(INVALID, "all_reduce", exphil_trainer_create(m, own, NULL, &config, OUT(exphil_trainer *), &e));
    alone.all_reduce = no_reduce;
    alone.rank = 1;
    BAD(INVALID, "rank 1 of 1", exphil_trainer_create(m, own, NULL, &config, OUT(exphil_trainer *), &e));
    config.communicator = NULL;
    config.precision = 9;
    BAD(INVALID, "precision", exphil_trainer_create(m, own, NULL, &config, OUT(exphil_trainer *), &e));
    config.precision = EXPHIL_PRECISION_TF32; /* the CPU has none but floats */
    BAD(UNSUPPORTED, "precision", exphil_trainer_create(m, own, NULL, &config, OUT(exphil_trainer *), &e));
    config.precision = 0;
    config.loss_scale = 0.5;
    BAD(INVALID, "loss_scale", exphil_trainer_create(m, own, NULL, &config, OUT(exphil_trainer *), &e));
    config.loss_scale = 0.0;
    config.activations = 77;
    BAD(UNSUPPORTED, "activations", exphil_trainer_create(m, own, NULL, &config, OUT(exphil_trainer *), &e));
    config.activations = 0;
    config.checkpoint_blocks = -1;
    BAD(INVALID, "checkpoint_blocks",
        exphil_trainer_create(m, own, NULL, &config, OUT(exphil_trainer *), &e));
    config.checkpoint_blocks = 0;
    for (int32_t type = 1; type <= 9; type += type == 1 ? 3 : 5) { /* F64, F16, none */
        config.fake_quantize = type;
        BAD(UNSUPPORTED, "fake_quantize",
            exphil_trainer_create(m, own, NULL, &config, OUT(exphil_trainer *), &e));
    }
    BAD(UNSUPPORTED, "fake_quantize",
        exphil_trainer_create(w.quantized, own, NULL, NULL, OUT(exphil_trainer *), &e));
    BAD(UNSUPPORTED, "fake_quantize",
        exphil_optimizer_create(w.quantized, NULL, OUT(exphil_optimizer *), &e));
    exphil_optimizer_destroy(own);
    BAD(INVALID, "model", exphil_optimizer_create(NULL, NULL, OUT(exphil_optimizer *), &e));
    BAD(INVALID, "optimizer", exphil_optimizer_create(m, NULL, NULL, &e));
    BAD(INVALID, "optimizer", exphil_optimizer_query(NULL, FILL(exphil_optimizer_info), &e));
    BAD(INVALID, "NULL", exphil_optimizer_query(w.run.optimizer, NULL, &e));
    BAD(INVALID, "model",
        exphil_trainer_create(NULL, w.run.optimizer, NULL, NULL, OUT(exphil_trainer *), &e));
    BAD(INVALID, "optimizer", exphil_trainer_create(m, NULL, NULL, NULL, OUT(exphil_trainer *), &e));
    BAD(INVALID, "trainer", exphil_trainer_create(m, w.run.optimizer, NULL, NULL, NULL, &e));
    BAD(STATE, "optimizer", exphil_trainer_create(m, w.run.optimizer, NULL, NULL, OUT(exphil_trainer *), &e));
    BAD(INVALID, "trainer", exphil_trainer_step(NULL, FILL(exphil_metrics), &e));
    BAD(INVALID, "trainer", exphil_trainer_step_batch(NULL, &w.batch, NULL, &e));
    BAD(INVALID, "batch", exphil_trainer_step_batch(w.hand.trainer, NULL, NULL, &e));
    BAD(STATE, "prefetcher", exphil_trainer_step(w.hand.trainer, FILL(exphil_metrics), &e));
    BAD(INVALID, "trainer", exphil_trainer_model(NULL, 0, OUT(exphil_model *), &e));
    BAD(INVALID, "model", exphil_trainer_model(t, 0, NULL, &e));
    BAD(INVALID, "which is 7", exphil_trainer_model(t, 7, OUT(exphil_model *), &e));
    BAD(STATE, "ema_decay", exphil_trainer_model(t, EXPHIL_WEIGHTS_AVERAGED, OUT(exphil_model *), &e));
    BAD(INVALID, "trainer", exphil_trainer_save(NULL, "x", &e));
    BAD(INVALID, "path", exphil_trainer_save(t, NULL, &e));
    BAD(INVALID, "path", exphil_trainer_save(t, "", &e));
    BAD(INVALID, "trainer", exphil_trainer_resume(NULL, "x", &e));
    BAD(INVALID, "path", exphil_trainer_resume(t, NULL, &e));
    BAD(INVALID, "path", exphil_trainer_resume(t, "", &e));
    BAD(INVALID, "model", exphil_evaluate(NULL, w.run.dataset, NULL, NULL, 0, FILL(exphil_report), &e));
    BAD(INVALID, "dataset", exphil_evaluate(m, NULL, NULL, NULL, 0, FILL(exphil_report), &e));
    BAD(INVALID, "report", exphil_evaluate(m, w.run.dataset, NULL, NULL, 0, NULL, &e));
    exphil_comparison *compared = FILL(exphil_comparison);
    BAD(INVALID, "reference", exphil_model_compare(NULL, m, w.run.dataset, 0, compared, &e));
    BAD(INVALID, "model", exphil_model_compare(m, NULL, w.run.dataset, 0, compared, &e));
    BAD(INVALID, "dataset", exphil_model_compare(m, m, NULL, 0, compared, &e));
    BAD(INVALID, "comparison", exphil_model_compare(m, m, w.run.dataset, 0, NULL, &e));
    BAD(INVALID, "batch", exphil_model_compare(m, m, w.run.dataset, -1, compared, &e));
    BAD(INVALID, "batch", exphil_model_compare(m, m, w.run.dataset, 4097, compared, &e));
    BAD(INVALID, "empty", exphil_model_compare(m, m, w.empty, 0, compared, &e));
    BAD(MISMATCH, "spec", exphil_model_compare(w.melee, m, w.run.dataset, 0, compared, &e));
    BAD(INVALID, "trainer", exphil_trainer_evaluate(NULL, 0, w.run.dataset, NULL, FILL(exphil_report), &e));
    BAD(INVALID, "dataset", exphil_trainer_evaluate(t, 0, NULL, NULL, FILL(exphil_report), &e));
    BAD(INVALID, "report", exphil_trainer_evaluate(t, 0, w.run.dataset, NULL, NULL, &e));
}

static void null_play(void **state)
{
    (void)state;
    exphil_session *s = w.session;
    size_t bytes = exphil_session_state_size(s);
    (void)place(0, 0);
    (void)place(1, 0);
    BAD(INVALID, "model", exphil_session_create(NULL, NULL, OUT(exphil_session *), &e));
    BAD(INVALID, "session", exphil_session_create(w.run.model, NULL, NULL, &e));
    BAD(INVALID, "session", exphil_session_clone(NULL, OUT(exphil_session *), &e));
    BAD(INVALID, "clone", exphil_session_clone(s, NULL, &e));
    BAD(INVALID, "session", exphil_session_query(NULL, FILL(exphil_session_info), &e));
    BAD(INVALID, "NULL", exphil_session_query(s, NULL, &e));
    BAD(INVALID, "session", exphil_session_error(NULL, &e));
    HOT(w.live, INVALID, "frames is NULL", exphil_session_step(w.live, NULL, OUT(exphil_pad)));
    HOT(w.live, INVALID, "pads is NULL", exphil_session_step(w.live, &w.frame, NULL));
    HOT(s, STATE, "exphil_session_step_row", exphil_session_step(s, &w.frame, OUT(exphil_pad)));
    HOT(s, INVALID, "floats is NULL", exphil_session_step_row(s, NULL, w.ids, NULL, OUT(int32_t)));
    HOT(s, INVALID, "ids is NULL", exphil_session_step_row(s, w.floats, NULL, NULL, OUT(int32_t)));
    HOT(s, INVALID, "actions is NULL", exphil_session_step_row(s, w.floats, w.ids, NULL, NULL));
    HOT(s, INVALID, "logits is NULL", exphil_session_logits(s, 0, NULL, 12));
    HOT(s, INVALID, "action is NULL", exphil_session_override(s, 0, NULL));
    HOT(s, INVALID, "state is NULL", exphil_session_state_save(s, 0, NULL, bytes));
    HOT(s, INVALID, "state is NULL", exphil_session_state_restore(s, 0, NULL, bytes));
    exphil_pad pad;
    int32_t action[3];
    float logits[12];
    assert_int_equal(exphil_session_step(NULL, &w.frame, &pad), EXPHIL_E_INVALID);
    assert_int_equal(exphil_session_step_row(NULL, w.floats, w.ids, NULL, action), EXPHIL_E_INVALID);
    assert_int_equal(exphil_session_logits(NULL, 0, logits, 12), EXPHIL_E_INVALID);
    assert_int_equal(exphil_session_reset(NULL, 0), EXPHIL_E_INVALID);
    assert_int_equal(exphil_session_override(NULL, 0, action), EXPHIL_E_INVALID);
    assert_int_equal(exphil_session_state_save(NULL, 0, w.block, bytes), EXPHIL_E_INVALID);
    assert_int_equal(exphil_session_state_restore(NULL, 0, w.block, bytes), EXPHIL_E_INVALID);
    assert_int_equal(exphil_session_state_size(NULL), 0);
}

static void null_melee_and_replays(void **state)
{
    (void)state;
    exphil_context *c = w.run.context;
    const exphil_pad pad = {0, 0, 0, 0, 0, 0};
    BAD(INVALID, "frame", exphil_melee_encode(NULL, NULL, OUT(float), OUT2(int32_t), &e));
    BAD(INVALID, "floats", exphil_melee_encode(NULL, &w.frame, NULL, OUT2(int32_t), &e));
    BAD(INVALID, "ids", exphil_melee_encode(NULL, &w.frame, OUT(float), NULL, &e));
    BAD(INVALID, "pad", exphil_melee_pad_encode(NULL, NULL, OUT(int32_t), &e));
    BAD(INVALID, "action", exphil_melee_pad_encode(NULL, &pad, NULL, &e));
    BAD(INVALID, "action", exphil_melee_pad_decode(NULL, NULL, OUT(exphil_pad), &e));
    BAD(INVALID, "pad", exphil_melee_pad_decode(NULL, w.zero, NULL, &e));
    BAD(INVALID, "context", exphil_slp_open(NULL, "x", NULL, OUT(exphil_slp *), &e));
    BAD(INVALID, "path", exphil_slp_open(c, NULL, NULL, OUT(exphil_slp *), &e));
    BAD(INVALID, "slp", exphil_slp_open(c, "x", NULL, NULL, &e));
    BAD(INVALID, "context", exphil_slp_read(NULL, "x", 1, NULL, OUT(exphil_slp *), &e));
    BAD(INVALID, "data", exphil_slp_read(c, NULL, 1, NULL, OUT(exphil_slp *), &e));
    BAD(INVALID, "slp", exphil_slp_read(c, "x", 1, NULL, NULL, &e));
    BAD(INVALID, "slp", exphil_slp_query(NULL, FILL(exphil_slp_info), &e));
    BAD(INVALID, "context", exphil_slp_stream_create(NULL, OUT(exphil_slp_stream *), &e));
    BAD(INVALID, "stream", exphil_slp_stream_create(c, NULL, &e));
    BAD(INVALID, "stream", exphil_slp_stream_reset(NULL, &e));
    BAD(INVALID, "stream", exphil_slp_stream_push(NULL, "x", 1, OUT(size_t), &e));
    BAD(INVALID, "data", exphil_slp_stream_push(w.stream, NULL, 1, OUT(size_t), &e));
    BAD(INVALID, "used_bytes", exphil_slp_stream_push(w.stream, "x", 1, NULL, &e));
    BAD(INVALID, "stream", exphil_slp_stream_query(NULL, FILL(exphil_slp_info), &e));
    BAD(STATE, "", exphil_slp_stream_query(w.stream, FILL(exphil_slp_info), &e));
    BAD(INVALID, "stream", exphil_slp_stream_melee_frame(NULL, 1, 0, FILL(exphil_melee_frame), &e));
    BAD(STATE, "", exphil_slp_stream_melee_frame(w.stream, 1, 0, FILL(exphil_melee_frame), &e));
    BAD(INVALID, "frame", exphil_slp_stream_melee_frame(w.stream, 1, 0, NULL, &e));
    BAD(INVALID, "slp", exphil_slp_dump(NULL, EXPHIL_SLP_DUMP_STATE, 0, OUT(char), 24, &e));
    assert_int_equal(exphil_slp_frame_count(NULL), 0);
    assert_int_equal(exphil_slp_slot_count(NULL), 0);
    assert_int_equal(exphil_slp_dump_bytes(NULL, EXPHIL_SLP_DUMP_STATE, 0), 0);
    assert_int_equal(exphil_slp_dump_bytes(NULL, EXPHIL_SLP_DUMP_ITEMS, 0), 0);
    assert_null(exphil_slp_frame_at(NULL, 0));
    assert_null(exphil_slp_slot_at(NULL, 0));
    assert_null(exphil_slp_player_at(NULL, 0, 0, 0));
    assert_null(exphil_slp_stream_frame(NULL));
    assert_null(exphil_slp_stream_player(NULL, 0, 0));
    exphil_melee_frame *frame = FILL(exphil_melee_frame);
    BAD(INVALID, "slp", exphil_slp_melee_frame(NULL, 0, 1, 0, frame, &e));
    BAD(INVALID, "slp", exphil_slp_melee_pad(NULL, 0, 1, OUT(exphil_pad), &e));
}

/* ---- values out of range ------------------------------------------------------------------------------------------------ */

static void values_of_models(void **state)
{
    (void)state;
    exphil_context *c = w.run.context;
    static const struct {
        exphil_model_config config;
        exphil_status status;
        const char *says;
    } cases[] = {
        {{.hidden = -1}, EXPHIL_E_INVALID, "hidden"},
        {{.hidden = INT64_MAX}, EXPHIL_E_INVALID, "hidden"},
        {{.head_width = -5}, EXPHIL_E_INVALID, "head_width"},
        {{.mamba_states = INT64_MIN}, EXPHIL_E_INVALID, "mamba_states"},
        {{.mamba_expand = 1 << 30}, EXPHIL_E_INVALID, "mamba_expand"},
        {{.mamba_taps = -2}, EXPHIL_E_INVALID, "mamba_taps"},
        {{.mamba_rank = -2}, EXPHIL_E_INVALID, "mamba_rank"},
        {{.attention_heads = -1}, EXPHIL_E_INVALID, "attention_heads"},
        {{.attention_dim = -1}, EXPHIL_E_INVALID, "attention_dim"},
        {{.attention_window_frames = -1}, EXPHIL_E_INVALID, "attention_window_frames"},
        {{.ffn_expand = -1}, EXPHIL_E_INVALID, "ffn_expand"},
        {{.mode = EXPHIL_MODE_WINDOW, .window_frames = -1}, EXPHIL_E_INVALID, "window_frames"},
        {{.delay_frames = 65}, EXPHIL_E_INVALID, "delay_frames"},
        {{.delay_frames = -1}, EXPHIL_E_INVALID, "delay_frames"},
        {{.no_previous_action = 2}, EXPHIL_E_INVALID, "no_previous_action"},
        {{.mode = 2}, EXPHIL_E_INVALID, "mode"},
        {{.heads = 2}, EXPHIL_E_INVALID, "heads"},
        {{.type = 99}, EXPHIL_E_UNSUPPORTED, "type"},
        {{.reserved = 1}, EXPHIL_E_INVALID, "reserved"},
        {{.blocks = "mamba*0"}, EXPHIL_E_INVALID, "blocks"},
        {{.blocks = "rwkv"}, EXPHIL_E_INVALID, "blocks"},
        {{.blocks = ""}, EXPHIL_E_INVALID, "blocks"},
        {{.blocks = "(gru"}, EXPHIL_E_INVALID, "blocks"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        exphil_model_config config = cases[i].config;
        exphil_error e = EXPHIL_ERROR_INIT;
        config.struct_size = sizeof config;
        exphil_status status = exphil_model_create(c, &config, OUT(exphil_model *), &e);
        check(cases[i].says, status, cases[i].status, &e, cases[i].says);
    }
    float some[24] = {0}, bad[24] = {0};
    bad[7] = NAN;
    BAD(INVALID, "index", exphil_model_tensor_info(w.run.model, -1, FILL(exphil_tensor_info), &e));
    BAD(INVALID, "index", exphil_model_tensor_info(w.run.model, 100000, FILL(exphil_tensor_info), &e));
    BAD(INVALID, "norm.bios", exphil_model_tensor_get(w.run.model, "norm.bios", OUT(float), 96, &e));
    BAD(INVALID, "size_bytes", exphil_model_tensor_get(w.run.model, "norm.bias", OUT(float), 95, &e));
    BAD(STATE, "use", exphil_model_tensor_set(w.run.model, "norm.bias", some, 96, &e));
    exphil_model_config config = model_case_config("gru", EXPHIL_TYPE_F32);
    exphil_model *own = model_case_create(c, &config);
    BAD(INVALID, "size_bytes", exphil_model_tensor_set(own, "norm.bias", some, 100, &e));
    BAD(NUMERIC, "norm.bias", exphil_model_tensor_set(own, "norm.bias", bad, 96, &e));
    BAD(INVALID, "nothing", exphil_model_tensor_set(own, "nothing", some, 96, &e));
    exphil_model_destroy(own);
    BAD(INVALID, "model", exphil_model_quantize(NULL, EXPHIL_TYPE_BF16, OUT(exphil_model *), &e));
    BAD(INVALID, "quantized", exphil_model_quantize(w.run.model, EXPHIL_TYPE_BF16, NULL, &e));
    BAD(INVALID, "type", exphil_model_quantize(w.run.model, 99, OUT(exphil_model *), &e));
    BAD(INVALID, "type", exphil_model_quantize(w.run.model, -1, OUT(exphil_model *), &e));
    BAD(UNSUPPORTED, "F64", exphil_model_quantize(w.run.model, EXPHIL_TYPE_F64, OUT(exphil_model *), &e));
    BAD(STATE, "rounded", exphil_model_quantize(w.quantized, EXPHIL_TYPE_BF16, OUT(exphil_model *), &e));
    BAD(STATE, "rounded", exphil_model_tensor_set(w.quantized, "norm.bias", some, 96, &e));
    exphil_comparison comparison = w.comparison;
    comparison.frames = 0;
    BAD(INVALID, "frames", exphil_model_calibration_set(w.quantized, &comparison, &e));
    BAD(STATE, "not quantised", exphil_model_calibration_set(w.run.model, &w.comparison, &e));
    BAD(STATE, "calibrated", exphil_model_calibration_get(w.run.model, FILL(exphil_comparison), &e));
    BAD(FORMAT, "", exphil_model_load_memory(c, "x", 1, OUT(exphil_model *), &e));
    BAD(FORMAT, "", exphil_model_load_memory(c, "x", 0, OUT(exphil_model *), &e));
}

static void values_of_specs(void **state)
{
    (void)state;
    static const exphil_head_spec good_head = {"head", EXPHIL_CATEGORICAL, 3, 1, 0};
    static const exphil_id_spec good_id = {"id", 5, 0};
    static const struct {
        exphil_head_spec head;
        const char *says;
    } heads[] = {
        {{NULL, EXPHIL_CATEGORICAL, 3, 0, 0}, "name"},
        {{"Upper", EXPHIL_CATEGORICAL, 3, 0, 0}, "name"},
        {{"h", 2, 3, 0, 0}, "kind"},
        {{"h", EXPHIL_BERNOULLI, 32, 0, 0}, "count"},
        {{"h", EXPHIL_CATEGORICAL, 1, 0, 0}, "count"},
        {{"h", EXPHIL_CATEGORICAL, 1025, 0, 0}, "count"},
        {{"h", EXPHIL_CATEGORICAL, 3, 3, 0}, "neutral"},
        {{"h", EXPHIL_BERNOULLI, 2, 4, 0}, "neutral"},
        {{"h", EXPHIL_CATEGORICAL, 3, -1, 0}, "neutral"},
        {{"h", EXPHIL_CATEGORICAL, 3, 0, 1}, "reserved"},
    };
    static const struct {
        exphil_id_spec id;
        const char *says;
    } ids[] = {
        {{NULL, 5, 0}, "name"},       {{"", 5, 0}, "name"},     {{"i", 0, 0}, "entries"},
        {{"i", 65537, 0}, "entries"}, {{"i", 5, 257}, "width"}, {{"i", 5, -1}, "width"},
    };
    exphil_spec good = {sizeof good, "toy", "toy", 2, 1, &good_id, 1, &good_head, 0};
    assert_int_equal(take_spec(&good, NULL), EXPHIL_OK);
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        exphil_spec spec = good;
        spec.heads = &heads[i].head;
        BAD(INVALID, heads[i].says, take_spec(&spec, &e));
        assert_int_equal(exphil_spec_hash(&spec), 0);
    }
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        exphil_spec spec = good;
        spec.ids = &ids[i].id;
        BAD(INVALID, ids[i].says, take_spec(&spec, &e));
    }
    exphil_spec spec = good;
    spec.float_count = 4097;
    BAD(INVALID, "float_count", take_spec(&spec, &e));
    spec.float_count = -1;
    BAD(INVALID, "float_count", take_spec(&spec, &e));
    spec = good;
    spec.id_count = 65;
    BAD(INVALID, "id_count", take_spec(&spec, &e));
    spec = good;
    spec.ids = NULL;
    BAD(INVALID, "ids", take_spec(&spec, &e));
    spec = good;
    spec.head_count = 0;
    BAD(INVALID, "head_count", take_spec(&spec, &e));
    spec.head_count = 17;
    BAD(INVALID, "head_count", take_spec(&spec, &e));
    spec = good;
    spec.heads = NULL;
    BAD(INVALID, "heads", take_spec(&spec, &e));
    spec = good;
    spec.layout = NULL;
    BAD(INVALID, "layout", take_spec(&spec, &e));
    spec = good;
    spec.codec = "a name of more than thirty-one bytes";
    BAD(INVALID, "codec", take_spec(&spec, &e));
    spec = good;
    spec.float_count = spec.id_count = 0;
    BAD(INVALID, "float_count", take_spec(&spec, &e));
}

static void values_of_data(void **state)
{
    (void)state;
    exphil_dataset *d = w.run.dataset;
    float floats[8 * 13];
    int32_t ids[16], actions[24];
    memcpy(floats, w.floats, sizeof floats);
    memcpy(ids, w.ids, sizeof ids);
    memcpy(actions, w.actions, sizeof actions);
    floats[13 * 2 + 5] = INFINITY;
    BAD(NUMERIC, "row 2", exphil_dataset_add_rows(w.empty, 1, 8, floats, ids, actions, &e));
    floats[13 * 2 + 5] = 0;
    ids[2 * 7] = 5;
    BAD(INVALID, "row 7", exphil_dataset_add_rows(w.empty, 1, 8, floats, ids, actions, &e));
    ids[2 * 7] = 0;
    actions[3 * 1 + 1] = 5;
    BAD(INVALID, "row 1", exphil_dataset_add_rows(w.empty, 1, 8, floats, ids, actions, &e));
    actions[3 * 1 + 1] = -1;
    BAD(INVALID, "row 1", exphil_dataset_add_rows(w.empty, 1, 8, floats, ids, actions, &e));
    BAD(INVALID, "frames", exphil_dataset_add_rows(w.empty, 1, 0, floats, ids, w.actions, &e));
    BAD(INVALID, "frames", exphil_dataset_add_rows(w.empty, 1, -8, floats, ids, w.actions, &e));
    BAD(INVALID, "frames", exphil_dataset_add_rows(w.empty, 1, INT64_MAX, floats, ids, w.actions, &e));
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    assert_ok(exphil_dataset_query(w.empty, &info, NULL));
    assert_int_equal(info.frames, 0);
    BAD(INVALID, "index", exphil_dataset_frame(d, -1, OUT(float), NULL, NULL, &e));
    BAD(INVALID, "index", exphil_dataset_frame(d, INT64_MAX, OUT(float), NULL, NULL, &e));
    BAD(INVALID, "index", exphil_dataset_episode(d, 5, FILL(exphil_episode_info), &e));
    BAD(INVALID, "index", exphil_dataset_episode(d, -1, FILL(exphil_episode_info), &e));
    static const struct {
        exphil_split_config config;
        const char *says;
    } splits[] = {
        {{.held_out = 0}, "held_out"},
        {{.held_out = 1}, "held_out"},
        {{.held_out = NAN}, "held_out"},
        {{.held_out = 0.5, .by = 2}, "by"},
        {{.held_out = 0.5, .reserved = 1}, "reserved"},
    };
    for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++) {
        exphil_split_config config = splits[i].config;
        config.struct_size = sizeof config;
        BAD(INVALID, splits[i].says,
            exphil_dataset_split(d, &config, OUT(exphil_dataset *), OUT2(exphil_dataset *), &e));
    }
    exphil_split_config half = {sizeof half, 0.5, 1, EXPHIL_SPLIT_GAME, 0};
    BAD(INVALID, "", exphil_dataset_split(w.empty, &half, OUT(exphil_dataset *), OUT2(exphil_dataset *), &e));
    static const struct {
        exphil_sampling how;
        const char *says;
    } samplings[] = {
        {{.batch = -1}, "batch"},
        {{.batch = 4097}, "batch"},
        {{.time = -1}, "time"},
        {{.time = INT64_MAX}, "time"},
        {{.stride = -1}, "stride"},
        {{.segment_frames = -1}, "segment_frames"},
        {{.mode = 3}, "mode"},
        {{.delay_frames = 65}, "delay_frames"},
        {{.delay_frames = -1}, "delay_frames"},
        {{.action_slots = 66}, "action_slots"},
        {{.in_order = 2}, "in_order"},
        {{.last_only = 1}, "last_only"},
        {{.buffers = 65}, "buffers"},
    };
    for (size_t i = 0; i < sizeof samplings / sizeof samplings[0]; i++) {
        exphil_sampling how = samplings[i].how;
        how.struct_size = sizeof how;
        BAD(INVALID, samplings[i].says, exphil_prefetcher_create(d, &how, OUT(exphil_prefetcher *), &e));
    }
    BAD(INVALID, "", exphil_prefetcher_create(w.empty, NULL, OUT(exphil_prefetcher *), &e));
    BAD(INVALID, "epoch", exphil_prefetcher_seek(w.run.prefetcher, -1, 0, &e));
    BAD(INVALID, "index", exphil_prefetcher_seek(w.run.prefetcher, 0, 1 << 20, &e));
    BAD(MISMATCH, "made-up", exphil_evaluate(w.melee, d, NULL, NULL, 0, FILL(exphil_report), &e));
    BAD(INVALID, "empty", exphil_evaluate(w.run.model, w.empty, NULL, NULL, 0, FILL(exphil_report), &e));
    BAD(INVALID, "Melee", exphil_dataset_add_replay_memory(d, "x", 1, NULL, NULL, &e));
    BAD(FORMAT, "", exphil_dataset_add_replay_memory(w.replays, "x", 1, NULL, NULL, &e));
    BAD(FORMAT, "", exphil_dataset_add_replay_memory(w.replays, "x", 0, NULL, NULL, &e));
}

static void values_of_play(void **state)
{
    (void)state;
    exphil_session *s = w.session;
    static const struct {
        exphil_session_config config;
        const char *says;
    } configs[] = {
        {{.streams = -1}, "streams"},
        {{.streams = 4097}, "streams"},
        {{.deadline_ns = -1}, "deadline_ns"},
        {{.deliver = 2}, "deliver"},
        {{.deterministic = 2}, "deterministic"},
    };
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++) {
        exphil_session_config config = configs[i].config;
        config.struct_size = sizeof config;
        BAD(INVALID, configs[i].says, exphil_session_create(w.run.model, &config, OUT(exphil_session *), &e));
    }
    static const struct {
        exphil_head_play play;
        const char *says;
    } plays[] = {
        {{-1, 0, 0, 0}, "heads[1].temperature"},  {{NAN, 0, 0, 0}, "heads[1].temperature"},
        {{0, 0, 1.5f, 0}, "heads[1].press"},      {{0, 0, 0, -0.5f}, "heads[1].press"},
        {{0, 0, 0.3f, 0.6f}, "heads[1].release"}, {{INFINITY, 0, 0, 0}, "heads[1].temperature"},
        {{0, 2, 0, 0}, "heads[1].deterministic"}, {{0, -1, 0, 0}, "heads[1].deterministic"},
    };
    for (size_t i = 0; i < sizeof plays / sizeof plays[0]; i++) {
        const exphil_head_play heads[3] = {{0, 0, 0, 0}, plays[i].play, {0, 0, 0, 0}};
        exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
        config.heads = heads;
        BAD(INVALID, plays[i].says, exphil_session_create(w.run.model, &config, OUT(exphil_session *), &e));
    }
    float floats[13];
    int32_t ids[2], wild[3] = {0, 5, 0};
    memcpy(floats, w.floats, sizeof floats);
    memcpy(ids, w.ids, sizeof ids);
    floats[12] = NAN;
    HOT(s, NUMERIC, "floats[12]", exphil_session_step_row(s, floats, ids, NULL, OUT(int32_t)));
    floats[12] = 0;
    ids[1] = -1;
    HOT(s, INVALID, "ids[1]", exphil_session_step_row(s, floats, ids, NULL, OUT(int32_t)));
    HOT(s, INVALID, "stick is 5", exphil_session_override(s, 0, wild));
    HOT(s, INVALID, "stream is 1", exphil_session_reset(s, 1));
    HOT(s, INVALID, "stream is -2", exphil_session_reset(s, -2));
    HOT(s, INVALID, "count", exphil_session_logits(s, 0, OUT(float), 11));
    HOT(s, INVALID, "stream is 9", exphil_session_logits(s, 9, OUT(float), 12));
    HOT(s, INVALID, "size_bytes", exphil_session_state_save(s, 0, OUT(unsigned char), 5));
    HOT(s, INVALID, "size_bytes", exphil_session_state_restore(s, 0, w.block, SIZE_MAX));
    memset(w.block, 0, sizeof w.block);
    HOT(s, FORMAT, "state", exphil_session_state_restore(s, 0, w.block, exphil_session_state_size(s)));
}

static void values_of_melee(void **state)
{
    (void)state;
    exphil_melee_frame f = w.frame;
    f.player[1].y = NAN;
    BAD(NUMERIC, "own.y", exphil_melee_encode(NULL, &f, OUT(float), OUT2(int32_t), &e));
    HOT(w.live, NUMERIC, "own.y", exphil_session_step(w.live, &f, OUT(exphil_pad)));
    f = w.frame;
    f.own_port = 1;
    BAD(INVALID, "own_port", exphil_melee_encode(NULL, &f, OUT(float), OUT2(int32_t), &e));
    HOT(w.live, INVALID, "own_port", exphil_session_step(w.live, &f, OUT(exphil_pad)));
    f.own_port = 5;
    BAD(INVALID, "own_port", exphil_melee_encode(NULL, &f, OUT(float), OUT2(int32_t), &e));
    f = w.frame;
    f.opponent_port = 2;
    BAD(INVALID, "opponent_port", exphil_melee_encode(NULL, &f, OUT(float), OUT2(int32_t), &e));
    f = w.frame;
    f.item_count = 16;
    BAD(INVALID, "item_count", exphil_melee_encode(NULL, &f, OUT(float), OUT2(int32_t), &e));
    BAD(INVALID, "pong", exphil_melee_encode("pong", &w.frame, OUT(float), OUT2(int32_t), &e));
    BAD(INVALID, "pong", exphil_melee_spec("pong", NULL, FILL(exphil_spec), &e));
    BAD(INVALID, "pong", exphil_melee_spec(NULL, "pong", FILL(exphil_spec), &e));
    BAD(INVALID, "", exphil_melee_field_get("melee2", -1, FILL(exphil_melee_field), &e));
    BAD(INVALID, "", exphil_melee_field_get("melee2", 1 << 20, FILL(exphil_melee_field), &e));
    const exphil_pad bad = {0, NAN, 0, 0, 0, 0};
    int32_t wild[EXPHIL_HEADS_MAX] = {-1};
    BAD(NUMERIC, "main_x", exphil_melee_pad_encode(NULL, &bad, OUT(int32_t), &e));
    BAD(INVALID, "pong", exphil_melee_pad_encode("pong", &bad, OUT(int32_t), &e));
    BAD(INVALID, "", exphil_melee_pad_decode(NULL, wild, OUT(exphil_pad), &e));
    BAD(INVALID, "", exphil_device_get(-1, FILL(exphil_device_info), &e));
    BAD(INVALID, "", exphil_device_get(1 << 20, FILL(exphil_device_info), &e));
}

/* ---- files -------------------------------------------------------------------------------------------------------------- */

static void files_that_are_not_there(void **state)
{
    (void)state;
    exphil_context *c = w.run.context;
    char absent[512], folder[512];
    (void)snprintf(absent, sizeof absent, "%s", test_path("absent"));
    (void)snprintf(folder, sizeof folder, "%s", test_folder());
    BAD(IO, "absent", exphil_model_load(c, absent, OUT(exphil_model *), &e));
    BAD(IO, "absent", exphil_dataset_open(c, absent, OUT(exphil_dataset *), &e));
    BAD(IO, "absent", exphil_dataset_add_replay(w.replays, absent, NULL, NULL, &e));
    BAD(IO, "absent", exphil_trainer_resume(w.run.trainer, absent, &e));
    BAD(IO, "absent", exphil_slp_open(c, absent, NULL, OUT(exphil_slp *), &e));
    BAD(IO, "", exphil_model_load(c, folder, OUT(exphil_model *), &e));
    BAD(IO, "", exphil_dataset_open(c, folder, OUT(exphil_dataset *), &e));
    BAD(IO, "", exphil_model_save(w.run.model, folder, &e));
    BAD(IO, "", exphil_dataset_save(w.run.dataset, folder, &e));
    (void)snprintf(absent, sizeof absent, "%s", test_path("no/such/folder"));
    BAD(IO, "no/such/folder", exphil_model_save(w.run.model, absent, &e));
    BAD(IO, "no/such/folder", exphil_trainer_save(w.run.trainer, absent, &e));
    BAD(IO, "no/such/folder", exphil_dataset_save(w.run.dataset, absent, &e));
}

static void disks_that_are_full(void **state)
{
    (void)state;
    char path[512];
    (void)snprintf(path, sizeof path, "%s", test_path("full"));
    for (int which = 0; which < 3; which++) {
        exphil_error e = EXPHIL_ERROR_INIT;
        w.io.code = ENOSPC;
        w.io.fail_on = true;
        w.io.fail_at = atomic_load(&w.io.calls) + 5; /* somewhere among the writes */
        exphil_status status = which == 0   ? exphil_model_save(w.run.model, path, &e)
                               : which == 1 ? exphil_dataset_save(w.run.dataset, path, &e)
                                            : exphil_trainer_save(w.run.trainer, path, &e);
        w.io.fail_at = 0;
        w.io.fail_on = false;
        check("save", status, EXPHIL_E_IO, &e, "No space left");
        assert_int_equal(e.native_code, ENOSPC);
        assert_false(test_exists(path));
    }
}

/* Numbers next to which one more or one less does not fit: an overflow ends the run under the sanitizers. */
static void numbers_at_the_ends(void **state)
{
    (void)state;
    static const int64_t far[] = {INT64_MAX, INT64_MAX - 1, INT64_MIN, INT64_MIN + 1, -2};
    exphil_session *s = w.session;
    exphil_model *m = w.run.model;
    exphil_dataset *d = w.run.dataset;
    size_t bytes = exphil_session_state_size(s);
    for (size_t i = 0; i < sizeof far / sizeof far[0]; i++) {
        int64_t n = far[i];
        HOT(s, INVALID, "stream", exphil_session_reset(s, n));
        HOT(s, INVALID, "stream", exphil_session_override(s, n, w.zero));
        HOT(s, INVALID, "stream", exphil_session_logits(s, n, OUT(float), 12));
        HOT(s, INVALID, "count", exphil_session_logits(s, 0, OUT(float), n));
        HOT(s, INVALID, "stream", exphil_session_state_save(s, n, OUT(unsigned char), bytes));
        HOT(s, INVALID, "stream", exphil_session_state_restore(s, n, w.block, bytes));
        BAD(INVALID, "index", exphil_dataset_frame(d, n, OUT(float), NULL, NULL, &e));
        BAD(INVALID, "index", exphil_dataset_episode(d, n, FILL(exphil_episode_info), &e));
        BAD(INVALID, "frames", exphil_dataset_add_rows(w.empty, 1, n, w.floats, w.ids, w.actions, &e));
        BAD(INVALID, "epoch", exphil_prefetcher_seek(w.run.prefetcher, n, 0, &e));
        BAD(INVALID, "index", exphil_prefetcher_seek(w.run.prefetcher, 0, n, &e));
        BAD(INVALID, "batch", exphil_evaluate(m, d, NULL, NULL, n, FILL(exphil_report), &e));
        BAD(INVALID, "batch", exphil_model_compare(m, m, d, n, FILL(exphil_comparison), &e));
        BAD(INVALID, "", exphil_model_tensor_info(m, n, FILL(exphil_tensor_info), &e));
        BAD(INVALID, "", exphil_melee_field_get("melee2", n, FILL(exphil_melee_field), &e));
        BAD(INVALID, "", exphil_device_get(n, FILL(exphil_device_info), &e));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_of_inputs),
        cmocka_unit_test(sizes_of_outputs),
        cmocka_unit_test(errors_that_are_none),
        cmocka_unit_test(null_contexts_and_models),
        cmocka_unit_test(null_data),
        cmocka_unit_test(null_training),
        cmocka_unit_test(null_play),
        cmocka_unit_test(null_melee_and_replays),
        cmocka_unit_test(values_of_models),
        cmocka_unit_test(values_of_specs),
        cmocka_unit_test(values_of_data),
        cmocka_unit_test(values_of_play),
        cmocka_unit_test(values_of_melee),
        cmocka_unit_test(numbers_at_the_ends),
        cmocka_unit_test(files_that_are_not_there),
        cmocka_unit_test(disks_that_are_full),
    };
    return cmocka_run_group_tests(tests, make_world, end_world);
}
