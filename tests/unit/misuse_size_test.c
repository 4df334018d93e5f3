/* Structs of a size that is none, wherever the interface reads or writes one; errors that are none. */
#include "misuse_case.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- sizes of structs -------------------------------------------------------------------------------------------------- */

/* One row per struct that is read: a good one, and a call that takes it. */
typedef exphil_status (*take_fn)(const void *given, exphil_error *e);

/* Makes an object of it, which is destroyed again. */
#define TAKE(name, object, create, ...)                                                                      \
  static exphil_status name(const void *given, exphil_error *e)                                              \
  {                                                                                                          \
    object *made = NULL;                                                                                     \
    exphil_status status = create(__VA_ARGS__, &made, e);                                                    \
    object##_destroy(made);                                                                                  \
    return status;                                                                                           \
  }
TAKE(take_context, exphil_context, exphil_context_create, given)
TAKE(take_dataset, exphil_dataset, exphil_dataset_create, w.run.context, given)
TAKE(take_model, exphil_model, exphil_model_create, w.run.context, given)
TAKE(take_sampling, exphil_prefetcher, exphil_prefetcher_create, w.run.dataset, given)
TAKE(take_optimizer, exphil_optimizer, exphil_optimizer_create, w.run.model, given)
TAKE(take_session, exphil_session, exphil_session_create, w.run.model, given)

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

static exphil_status take_split(const void *given, exphil_error *e)
{
    exphil_dataset *made[2] = {NULL, NULL};
    exphil_status status = exphil_dataset_split(w.run.dataset, given, &made[0], &made[1], e);
    exphil_dataset_destroy(made[0]);
    exphil_dataset_destroy(made[1]);
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
    return test_aligned(align, bytes);
}

static void some_free(void *user, void *pointer, size_t bytes)
{
    test_aligned_free(pointer);
}

static void in_a_row(void *user, void (*fn)(void *arg, int64_t i, int32_t worker), void *arg, int64_t count)
{
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
        {"exphil_spec", misuse_take_spec, &model_case_spec, SIZES(exphil_spec)},
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
  }                                                                                                          \
  _Static_assert(1, "ends with a semicolon")
GIVE(give_device, exphil_device_get(0, to, e));
GIVE(give_context_device, exphil_context_device(w.run.context, to, e));
GIVE(give_memory, exphil_context_memory(w.run.context, to, e));
GIVE(give_melee_spec, exphil_melee_spec(NULL, NULL, to, e));
GIVE(give_field, exphil_melee_field_get("melee2", 0, to, e));
GIVE(give_model, exphil_model_query(w.run.model, to, e));
GIVE(give_model_spec, exphil_model_spec(w.run.model, to, e));
GIVE(give_tensor, exphil_model_tensor_info(w.run.model, 0, to, e));
GIVE(give_sampling, exphil_model_sampling(w.run.model, to, e));
GIVE(give_dataset, exphil_dataset_query(w.run.dataset, to, e));
GIVE(give_dataset_spec, exphil_dataset_spec(w.run.dataset, to, e));
GIVE(give_episode, exphil_dataset_episode(w.run.dataset, 0, to, e));
GIVE(give_batch, exphil_prefetcher_next(w.run.prefetcher, to, e));
GIVE(give_prefetcher, exphil_prefetcher_query(w.run.prefetcher, to, e));
GIVE(give_optimizer, exphil_optimizer_query(w.run.optimizer, to, e));
GIVE(give_metrics, exphil_trainer_step(w.run.trainer, to, e));
GIVE(give_metrics_by_hand, exphil_trainer_step_batch(w.hand.trainer, &w.batch, to, e));
GIVE(give_report, exphil_evaluate(w.run.model, w.run.dataset, NULL, NULL, 0, to, e));
GIVE(give_comparison, exphil_model_compare(w.run.model, w.quantized, w.run.dataset, 0, to, e));
GIVE(give_calibration, exphil_model_calibration_get(w.quantized, to, e));
GIVE(give_trainer_report, exphil_trainer_evaluate(w.run.trainer, EXPHIL_WEIGHTS, w.run.dataset, NULL, to, e));
GIVE(give_session, exphil_session_query(w.session, to, e));

static void sizes_of_outputs(void **state)
{
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
            exphil_status status = cases[i].give(misuse_place(0, wrong[k]), &e);
            misuse_check(cases[i].name, status, EXPHIL_E_INVALID, &e, "struct_size");
            after = train_snapshot(w.run.trainer, &bytes);
            assert_memory_equal(before, after, bytes); /* refused before the work */
            free(before);
            free(after);
        }
        /* A longer one: filled as far as it is known, its size and its tail left alone. */
        unsigned char *to = misuse_place(0, cases[i].bytes + 40);
        size_t size = 0;
        exphil_status status = cases[i].give(to, NULL);
        if (status != EXPHIL_OK && status != EXPHIL_END)
            fail_msg("%s, longer: %s", cases[i].name, exphil_status_name(status));
        memcpy(&size, to, sizeof size);
        assert_int_equal(size, cases[i].bytes + 40);
        assert_memory_equal(to + cases[i].bytes, misuse_kept[0] + cases[i].bytes, 40);
    }
    (void)misuse_place(0, 0);
}

/* An error struct that is none is left alone, and so is the message of one that is not needed. */
static void errors_that_are_none(void **state)
{
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_of_inputs),
        cmocka_unit_test(sizes_of_outputs),
        cmocka_unit_test(errors_that_are_none),
    };
    return cmocka_run_group_tests(tests, misuse_begin, misuse_end);
}
