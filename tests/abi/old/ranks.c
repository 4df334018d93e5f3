/* The old program, several ranks: two threads train one model on one joint batch, each with a context of its own, and are one rank
 * again; what wants a GPU is refused on the CPU. */
#include "old.h"

#if EXPHIL_VERSION >= 200
#  include <pthread.h>

enum { RANKS = 2, BATCH = 5, TIME = 16, UPDATES = 4, MOST = 65536 };

/* ---- sums over two threads, in the order of the ranks ------------------------------------------------------- */

static struct meeting {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int32_t came, left;
    const void *of[RANKS];
    double sum[MOST];
} meeting = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, {NULL}, {0}};

static void add(int64_t count, int32_t type)
{
    for (int64_t i = 0; i < count; i++) {
        if (type == EXPHIL_TYPE_F32)
            meeting.sum[i] = (double)(((const float *)meeting.of[0])[i] + ((const float *)meeting.of[1])[i]);
        else
            meeting.sum[i] = ((const double *)meeting.of[0])[i] + ((const double *)meeting.of[1])[i];
    }
}

/* Nobody begins the next sum before all have taken this one. */
static int32_t all_reduce(void *user, void *data, int64_t count, int32_t type)
{
    const int32_t rank = *(const int32_t *)user;
    if (count > MOST) return 1;
    pthread_mutex_lock(&meeting.lock);
    while (meeting.left > 0) pthread_cond_wait(&meeting.changed, &meeting.lock);
    meeting.of[rank] = data;
    if (++meeting.came == RANKS) {
        add(count, type);
        meeting.came = 0;
        meeting.left = RANKS;
        pthread_cond_broadcast(&meeting.changed);
    }
    while (!meeting.left) pthread_cond_wait(&meeting.changed, &meeting.lock);
    for (int64_t i = 0; i < count; i++) {
        if (type == EXPHIL_TYPE_F32)
            ((float *)data)[i] = (float)meeting.sum[i];
        else
            ((double *)data)[i] = meeting.sum[i];
    }
    if (--meeting.left == 0) pthread_cond_broadcast(&meeting.changed);
    pthread_mutex_unlock(&meeting.lock);
    return 0;
}

/* ---- ranks -------------------------------------------------------------------------------------------------- */

typedef struct rank {
    int32_t number;
    exphil_error *error; /* of this thread */
    exphil_metrics *metrics[UPDATES + 1];
    exphil_model_info *trained;
} rank;

#  define RANK_DONE(call)                                                                                    \
    do {                                                                                                     \
      if ((call) != EXPHIL_OK) {                                                                             \
        fprintf(stderr, "%s:%d: rank %d: %s\n", __FILE__, __LINE__, (int)r->number, r->error->message);      \
        exit(1);                                                                                             \
      }                                                                                                      \
    } while (0)

static exphil_prefetcher *make_prefetcher(const rank *r, const exphil_model *model,
                                          const exphil_dataset *dataset, int32_t of)
{
    exphil_sampling *sampling = EDGE(exphil_sampling, EXPHIL_SAMPLING_INIT);
    exphil_prefetcher *prefetcher = NULL;
    RANK_DONE(exphil_model_sampling(model, sampling, r->error));
    sampling->batch = BATCH;
    sampling->time = TIME;
    if (of > 1)
        RANK_DONE(
            exphil_rank_lanes(BATCH, r->number, of, &sampling->first_lane, &sampling->lane_count, r->error));
    RANK_DONE(exphil_prefetcher_create(dataset, sampling, &prefetcher, r->error));
    return prefetcher;
}

static exphil_trainer *make_trainer(rank *r, const exphil_model *model, exphil_prefetcher *prefetcher)
{
    exphil_communicator communicator = {sizeof communicator, &r->number, all_reduce, r->number, RANKS};
    exphil_trainer_config *config = EDGE(exphil_trainer_config, EXPHIL_TRAINER_CONFIG_INIT);
    exphil_optimizer *optimizer = task_optimizer(model);
    exphil_trainer *trainer = NULL;
    config->reduction = EXPHIL_REDUCTION_SUMS;
    config->communicator = EDGE_OF(communicator);
    RANK_DONE(exphil_trainer_create(model, optimizer, prefetcher, config, &trainer, r->error));
    exphil_optimizer_destroy(optimizer);
    return trainer;
}

/* What wants a device of its own says so, and changes nothing. */
static void refuse(const rank *r, exphil_context *context, exphil_trainer *trainer,
                   exphil_prefetcher *prefetcher)
{
    exphil_device_communicator *device = EDGE(exphil_device_communicator, EXPHIL_DEVICE_COMMUNICATOR_INIT);
    exphil_communicator *host = EDGE(exphil_communicator, {sizeof(exphil_communicator)});
    exphil_ranks_config *config = EDGE(exphil_ranks_config, EXPHIL_RANKS_CONFIG_INIT);
    exphil_error *why = r->error;
    exphil_ranks *ranks = NULL;
    uint8_t id[EXPHIL_RANKS_ID_BYTES] = {0};
    CHECK(exphil_ranks_id(context, id, why) == EXPHIL_E_UNSUPPORTED);
    config->id = id, config->context = context, config->ranks = 1;
    CHECK(exphil_ranks_open(config, &ranks, why) == EXPHIL_E_UNSUPPORTED && !ranks);
    config->ranks = 0;
    CHECK(exphil_ranks_open(config, &ranks, why) == EXPHIL_E_INVALID && !ranks);
    CHECK(exphil_ranks_communicator(NULL, device, why) == EXPHIL_E_INVALID);
    CHECK(exphil_ranks_host_communicator(NULL, host, why) == EXPHIL_E_INVALID);
    device->ranks = 1;
    CHECK(exphil_trainer_set_device_communicator(trainer, device, prefetcher, why) == EXPHIL_E_UNSUPPORTED);
    CHECK(exphil_trainer_set_device_communicator(trainer, NULL, prefetcher, why) == EXPHIL_E_INVALID);
}

/* Of one of two ranks; a device's own communicator is none of the CPU's. */
static void plan(const rank *r, exphil_context *context, const exphil_model *model)
{
    exphil_communicator communicator = {sizeof communicator, NULL, all_reduce, r->number, RANKS};
    exphil_device_communicator *device = EDGE(exphil_device_communicator, EXPHIL_DEVICE_COMMUNICATOR_INIT);
    exphil_trainer_config *trainer = EDGE(exphil_trainer_config, EXPHIL_TRAINER_CONFIG_INIT);
    exphil_plan_config *config = EDGE(exphil_plan_config, EXPHIL_PLAN_CONFIG_INIT);
    exphil_plan *planned = EDGE(exphil_plan, EXPHIL_PLAN_INIT);
    trainer->communicator = EDGE_OF(communicator);
    trainer->reduction = EXPHIL_REDUCTION_SUMS;
    config->model = model, config->trainer = trainer;
    config->most_batch = 32;
    RANK_DONE(exphil_trainer_plan(context, config, planned, r->error));
    CHECK(planned->fits == 1 && planned->largest_batch == 32);
    trainer->communicator = NULL;
    trainer->device_communicator = device;
    device->ranks = 1;
    CHECK(exphil_trainer_plan(context, config, planned, r->error) == EXPHIL_E_UNSUPPORTED);
}

static void go_on_alone(rank *r, exphil_context *context, exphil_trainer *trainer, const exphil_model *model,
                        const exphil_dataset *dataset)
{
    exphil_prefetcher *all = make_prefetcher(r, model, dataset, 1);
    exphil_model *trained = NULL;
    if (r->number == 0) refuse(r, context, trainer, all);
    if (r->number == 0) plan(r, context, model);
    RANK_DONE(exphil_trainer_set_communicator(trainer, NULL, all, r->error));
    r->metrics[UPDATES] = EDGE(exphil_metrics, EXPHIL_METRICS_INIT);
    RANK_DONE(exphil_trainer_step(trainer, r->metrics[UPDATES], r->error));
    RANK_DONE(exphil_trainer_model(trainer, EXPHIL_WEIGHTS, &trained, r->error));
    r->trained = EDGE(exphil_model_info, EXPHIL_MODEL_INFO_INIT);
    RANK_DONE(exphil_model_query(trained, r->trained, r->error));
    exphil_model_destroy(trained);
    exphil_prefetcher_destroy(all);
}

static void *train(void *of)
{
    rank *r = of;
    exphil_context_config *config = EDGE(exphil_context_config, EXPHIL_CONTEXT_CONFIG_INIT);
    exphil_context *context = NULL;
    double numbers[2] = {r->number, -r->number};
    config->threads = 1;
    RANK_DONE(exphil_context_create(config, &context, r->error));
    exphil_dataset *dataset = task_dataset(context);
    exphil_model *model = task_model(context, task_config());
    exphil_prefetcher *prefetcher = make_prefetcher(r, model, dataset, RANKS);
    exphil_trainer *trainer = make_trainer(r, model, prefetcher);
    for (int i = 0; i < UPDATES; i++) {
        r->metrics[i] = EDGE(exphil_metrics, EXPHIL_METRICS_INIT);
        RANK_DONE(exphil_trainer_step(trainer, r->metrics[i], r->error));
    }
    RANK_DONE(exphil_trainer_agree(trainer, numbers, 2, r->error));
    CHECK(numbers[0] == RANKS - 1 && numbers[1] == 0);
    go_on_alone(r, context, trainer, model, dataset);
    exphil_trainer_destroy(trainer);
    exphil_prefetcher_destroy(prefetcher);
    exphil_model_destroy(model);
    exphil_dataset_destroy(dataset);
    exphil_context_destroy(context);
    return NULL;
}

void ranks(exphil_context *context)
{
    static rank of[RANKS];
    pthread_t thread[RANKS];
    (void)context;
    for (int32_t i = 0; i < RANKS; i++) {
        of[i].number = i;
        of[i].error = EDGE(exphil_error, EXPHIL_ERROR_INIT);
        CHECK(pthread_create(&thread[i], NULL, train, &of[i]) == 0);
    }
    for (int i = 0; i < RANKS; i++) CHECK(pthread_join(thread[i], NULL) == 0);
    for (int i = 0; i < UPDATES; i++) {
        CHECK(of[0].metrics[i]->loss == of[1].metrics[i]->loss && of[0].metrics[i]->update == i + 1);
        digest_metrics(of[0].metrics[i]);
    }
    for (int i = 0; i < RANKS; i++) { /* alone: the carried state of the other's lanes begins anew */
        CHECK(of[i].metrics[UPDATES]->update == UPDATES + 1 && of[i].trained->weights_hash);
        digest_metrics(of[i].metrics[UPDATES]);
        DIGEST(of[i].trained);
    }
    digest_end("ranks");
}

#else
typedef int nothing_before_0_2;
#endif
