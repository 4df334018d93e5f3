/* Ranks of different versions of the library: two of it in one process, the second opened from a file, in which the version can be
 * set and all else is the same. And a neighbour that speaks as 0.1 did, which has no meetings. */
#include "test_places.h"
#include "thread_ranks.h"
#include "train_case.h"

#include <exphil/ranks.h>

#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#define OTHER EXPHIL_BINARY_DIR "/tests/libother_version.so"

/* What a rank calls of its library. */
#define EACH_FUNCTION(F)                                                                                     \
  F(exphil_context_create)                                                                                   \
  F(exphil_context_destroy)                                                                                  \
  F(exphil_dataset_create)                                                                                   \
  F(exphil_dataset_add_rows)                                                                                 \
  F(exphil_dataset_destroy)                                                                                  \
  F(exphil_model_create)                                                                                     \
  F(exphil_model_sampling)                                                                                   \
  F(exphil_model_destroy)                                                                                    \
  F(exphil_rank_lanes)                                                                                       \
  F(exphil_prefetcher_create)                                                                                \
  F(exphil_prefetcher_destroy)                                                                               \
  F(exphil_optimizer_create)                                                                                 \
  F(exphil_optimizer_destroy)                                                                                \
  F(exphil_trainer_create)                                                                                   \
  F(exphil_trainer_step)                                                                                     \
  F(exphil_trainer_destroy)
typedef struct library {
#define FIELD(name) __typeof__(name) *name;
    EACH_FUNCTION(FIELD)
#undef FIELD
} library;

static const library linked = {
#define TAKE(name) .name = name,
    EACH_FUNCTION(TAKE)
#undef TAKE
};

static library opened(void *file)
{
    library found;
#define FIND(function)                                                                                       \
  *(void **)(&found.function) = dlsym(file, #function);                                                      \
  if (!found.function || found.function == function) fail_msg("no other " #function);
    EACH_FUNCTION(FIND)
#undef FIND
    return found;
}

/* Two ranks, each with a library; what their trainers, or their first updates, came to. */
typedef struct pair {
    const library *of[2];
    exphil_status status[2];
    exphil_error error[2];
    double loss[2];
} pair;

typedef struct objects {
    exphil_context *context;
    exphil_dataset *dataset;
    exphil_model *model;
    exphil_prefetcher *prefetcher;
    exphil_optimizer *optimizer;
    exphil_trainer *trainer;
} objects;

static objects make(const library *l, const thread_rank *rank)
{
    enum { FRAMES = 60 };
    static const float floats[FRAMES * 13];
    static const int32_t ids[FRAMES * 2], actions[FRAMES * 3];
    objects o = {.context = NULL};
    exphil_dataset_config data = EXPHIL_DATASET_CONFIG_INIT;
    exphil_model_config model = model_case_config("mlp", EXPHIL_TYPE_F32);
    exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
    data.spec = &model_case_spec;
    assert_ok(l->exphil_context_create(NULL, &o.context, NULL));
    assert_ok(l->exphil_dataset_create(o.context, &data, &o.dataset, NULL));
    assert_ok(l->exphil_dataset_add_rows(o.dataset, 1, FRAMES, floats, ids, actions, NULL));
    assert_ok(l->exphil_model_create(o.context, &model, &o.model, NULL));
    assert_ok(l->exphil_model_sampling(o.model, &sampling, NULL));
    sampling.batch = 4;
    sampling.time = 5;
    assert_ok(
        l->exphil_rank_lanes(4, rank->rank, rank->ranks, &sampling.first_lane, &sampling.lane_count, NULL));
    assert_ok(l->exphil_prefetcher_create(o.dataset, &sampling, &o.prefetcher, NULL));
    assert_ok(l->exphil_optimizer_create(o.model, NULL, &o.optimizer, NULL));
    return o;
}

static void one_rank(thread_rank *rank)
{
    pair *p = rank->user;
    const library *l = p->of[rank->rank];
    exphil_error *error = &p->error[rank->rank];
    exphil_trainer_config how = EXPHIL_TRAINER_CONFIG_INIT;
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    objects o = make(l, rank);
    how.communicator = &rank->communicator;
    how.reduction = EXPHIL_REDUCTION_SUMS;
    *error = (exphil_error)EXPHIL_ERROR_INIT;
    exphil_status status =
        l->exphil_trainer_create(o.model, o.optimizer, o.prefetcher, &how, &o.trainer, error);
    if (status >= 0) status = l->exphil_trainer_step(o.trainer, &metrics, error);
    p->status[rank->rank] = status;
    p->loss[rank->rank] = metrics.loss;
    l->exphil_trainer_destroy(o.trainer);
    l->exphil_optimizer_destroy(o.optimizer);
    l->exphil_prefetcher_destroy(o.prefetcher);
    l->exphil_model_destroy(o.model);
    l->exphil_dataset_destroy(o.dataset);
    l->exphil_context_destroy(o.context);
}

static void run(pair *p)
{
    void *user[2] = {p, p};
    thread_ranks_run(2, one_rank, user, (thread_how){0, -1, false});
}

static void *other_file(void)
{
    void *file = dlopen(OTHER, RTLD_NOW | RTLD_LOCAL);
    if (!file) fail_msg("%s", dlerror());
    return file;
}

static void set_version(void *file, uint32_t more)
{
    uint32_t *by = dlsym(file, "other_version");
    assert_non_null(by);
    *by = more;
}

/* Whichever rank has the other one. */
static void versions_are_named(void **state)
{
    void *file = other_file();
    const library other = opened(file);
    char own[32], theirs[32], message[128];
    const uint32_t version = exphil_version(), next = version + 10203;
    snprintf(own, sizeof own, "%u.%u.%u", version / 10000, version / 100 % 100, version % 100);
    snprintf(theirs, sizeof theirs, "%u.%u.%u", next / 10000, next / 100 % 100, next % 100);
    set_version(file, 10203);
    for (int odd = 0; odd < 2; odd++) {
        pair p = {.of = {odd ? &linked : &other, odd ? &other : &linked}};
        run(&p);
        snprintf(message, sizeof message, "rank 1 has version %s of the library, rank 0 has %s",
                 odd ? theirs : own, odd ? own : theirs);
        for (int r = 0; r < 2; r++) {
            assert_int_equal(p.status[r], EXPHIL_E_MISMATCH);
            assert_string_equal(p.error[r].message, message);
        }
    }
    dlclose(file);
}

/* It is the version alone that they are refused for. */
static void the_same_version_trains(void **state)
{
    void *file = other_file();
    const library other = opened(file);
    pair p = {.of = {&linked, &other}}, same = {.of = {&linked, &linked}};
    set_version(file, 0);
    run(&p);
    run(&same);
    for (int r = 0; r < 2; r++) {
        if (p.status[r] < 0) fail_msg("rank %d: %s", r, p.error[r].message);
        assert_true(p.loss[r] == same.loss[0] && p.loss[r] > 0.0);
    }
    dlclose(file);
}

/* ---- a neighbour of 0.1 --------------------------------------------------------------------------------------------- */

/* Its first call gives its gradients, in float. */
static void speaks_as_before(thread_rank *rank)
{
    pair *p = rank->user;
    static float gradients[2 * 24 * 2]; /* as many bytes as a meeting of two has */
    if (rank->rank == 0) {
        one_rank(rank);
        return;
    }
    for (int i = 0; i < 96; i++) gradients[i] = 1e-3f * (float)(i - 50);
    p->status[1] = rank->communicator.all_reduce(rank->communicator.user, gradients, p->loss[1] > 0 ? 48 : 96,
                                                 p->loss[1] > 0 ? EXPHIL_TYPE_F64 : EXPHIL_TYPE_F32);
}

/* Where the communicator sees that the calls are not the same, and where it does not. */
static void a_neighbour_without_meetings(void **state)
{
    for (int unseen = 0; unseen < 2; unseen++) {
        pair p = {.of = {&linked, NULL}, .loss = {0, unseen}};
        void *user[2] = {&p, &p};
        thread_ranks_run(2, speaks_as_before, user, (thread_how){0, -1, false});
        assert_int_equal(p.status[0], EXPHIL_E_IO);
        if (unseen)
            assert_says(&p.error[0], "all_reduce gave no sum of doubles: what rank");
        else
            assert_string_equal(p.error[0].message, "communicator: all_reduce failed with 78 on rank 0");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_neighbour_without_meetings),
        cmocka_unit_test(versions_are_named),
        cmocka_unit_test(the_same_version_trains),
    };
    const struct CMUnitTest alone[] = {cmocka_unit_test(a_neighbour_without_meetings)};
    if (access(OTHER, R_OK) == 0) return cmocka_run_group_tests(tests, NULL, NULL);
    printf("SKIPPED: no second library is built: ranks of two versions are untested here\n");
    return cmocka_run_group_tests(alone, NULL, NULL);
}
