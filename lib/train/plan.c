/* The memory that a training will take. Model, optimizer and trainer are made by their own functions on a context that
 * measures (lib/device/measure.c), and looked at; what a prefetcher takes is told by the functions that it allocates by. */
#include "train/checkpoint.h"
#include "train/ranks.h"

#include <exphil/plan.h>
#include <exphil/ranks.h>

enum { BATCH_MOST = 4096 };

typedef struct plan_job {
    exphil_context *context; /* that of the training */
    const exphil_plan_config *config;
    xph_room room;
} plan_job;

/* One batch that is planned, and what of it has been given a purpose. */
typedef struct measured {
    const plan_job *job;
    exphil_context *context; /* that measures */
    xph_device *device;
    exphil_model *model;
    exphil_optimizer *optimizer;
    exphil_trainer *trainer;
    xph_held before, purpose[EXPHIL_PLAN_PURPOSES];
    xph_data_bytes data;
    uint64_t snapshot;
    xph_checkpoint_sizes files;
} measured;

/* ---- purposes ---------------------------------------------------------------------------------------------------- */

static bool in_host_memory(const measured *m)
{
    return m->device->backend->host_memory != 0;
}

static void add_host(measured *m, int purpose, uint64_t bytes)
{
    m->purpose[purpose].host += bytes;
}

/* Host memory that the device gives. */
static void add_pinned(measured *m, int purpose, uint64_t bytes)
{
    add_host(m, purpose, bytes);
    if (in_host_memory(m)) m->purpose[purpose].limited += bytes;
}

/* A block of the device, as it is rounded up. */
static void add_block(measured *m, int purpose, size_t bytes)
{
    const xph_backend *backend = m->device->backend;
    xph_held *to = &m->purpose[purpose];
    if (!bytes) return;
    if (backend->alloc_bytes) bytes = backend->alloc_bytes(bytes);
    *(in_host_memory(m) ? &to->host : &to->device) += bytes;
    to->limited += bytes;
}

static void add_part(measured *m, int purpose, size_t bytes)
{
    xph_held *to = &m->purpose[purpose];
    *(in_host_memory(m) ? &to->host : &to->device) += bytes;
    to->limited += bytes;
}

static void add_net(measured *m, const xph_net *net)
{
    const xph_backend *backend = m->device->backend;
    size_t kept = xph_net_kept_bytes(net), all = xph_net_bytes(net);
    size_t whole = backend->alloc_bytes ? backend->alloc_bytes(all) : all;
    add_part(m, EXPHIL_PLAN_ACTIVATIONS, kept);
    add_part(m, EXPHIL_PLAN_WORKSPACE, whole - kept);
    if (backend->stream_bytes)
        add_part(m, EXPHIL_PLAN_WORKSPACE, backend->stream_bytes(m->device, XPH_STREAM_NET));
}

static void add_feed(measured *m, const xph_feed *feed)
{
    for (int s = 0; s < 2; s++) {
        for (int i = 0; i < XPH_FEED_INPUTS; i++)
            if (feed->slot[s].own[i]) add_block(m, EXPHIL_PLAN_BATCHES, feed->bytes[i]);
        add_pinned(m, EXPHIL_PLAN_BATCHES, sizeof *feed->slot[s].given + xph_feed_tables_bytes(feed));
        add_block(m, EXPHIL_PLAN_STATE, feed->bytes[XPH_FEED_INPUTS + s]);
    }
    for (int i = XPH_FEED_INPUTS + 2; i < XPH_FEED_BLOCKS; i++)
        add_block(m, EXPHIL_PLAN_WORKSPACE, feed->bytes[i]);
    add_net(m, feed->net);
}

static void add_trainer(measured *m)
{
    const exphil_trainer *t = m->trainer;
    const xph_own_past *own = &t->own_past;
    add_block(m, EXPHIL_PLAN_WEIGHTS, t->arena_bytes);
    if (t->rounded) add_block(m, EXPHIL_PLAN_WEIGHTS, t->arena_bytes);
    add_block(m, EXPHIL_PLAN_GRADIENTS, t->arena_bytes);
    if (t->shared) add_host(m, EXPHIL_PLAN_GRADIENTS, t->arena_bytes);
    add_block(m, EXPHIL_PLAN_GRADIENTS, t->joining_bytes);
    add_block(m, EXPHIL_PLAN_WORKSPACE, xph_device_ranks_bytes(t));
    add_block(m, EXPHIL_PLAN_MOMENTS, t->optimizer->arena_bytes);
    add_block(m, EXPHIL_PLAN_MOMENTS, t->optimizer->arena_bytes);
    if (t->optimizer->average) add_block(m, EXPHIL_PLAN_AVERAGE, t->optimizer->arena_bytes);
    add_block(m, EXPHIL_PLAN_PACKED, t->packed_bytes);
    add_block(m, EXPHIL_PLAN_WORKSPACE, t->norm_scratch_bytes);
    if (t->kept) add_block(m, EXPHIL_PLAN_STATE, t->feed.state_bytes);
    add_feed(m, &t->feed);
    if (!own->net) return;
    add_net(m, own->net);
    add_pinned(m, EXPHIL_PLAN_WORKSPACE, own->memory_bytes);
    add_block(m, EXPHIL_PLAN_WORKSPACE, own->d_memory_bytes);
}

/* What has no other purpose. */
static void add_rest(measured *m)
{
    xph_held rest = xph_held_since(m->context, &m->before);
    if (!m->job->config->model) add_block(m, EXPHIL_PLAN_WEIGHTS, m->trainer->arena_bytes);
    for (int p = 0; p < EXPHIL_PLAN_OTHER; p++) {
        rest.host -= m->purpose[p].host;
        rest.device -= m->purpose[p].device;
        rest.limited -= m->purpose[p].limited;
    }
    m->purpose[EXPHIL_PLAN_OTHER] = rest;
    add_host(m, EXPHIL_PLAN_OTHER, xph_parallel_bytes(m->job->context));
}

static void add_data(measured *m)
{
    if (m->job->config->by_hand) return;
    add_pinned(m, EXPHIL_PLAN_BATCHES, m->data.batches);
    add_host(m, EXPHIL_PLAN_GAMES, m->data.games);
    add_host(m, EXPHIL_PLAN_ORDER,
             m->data.order + m->snapshot + xph_prefetcher_bytes(m->data.how.lane_count));
}

/* Whoever samples a dataset has a snapshot of it: as much as one without rows. */
static exphil_status measure_snapshot(measured *m, exphil_error *error)
{
    exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT;
    exphil_dataset *empty = NULL;
    xph_held before = xph_context_held(m->context);
    config.spec = xph_model_spec(m->model);
    XPH_TRY(exphil_dataset_create(m->context, &config, &empty, error));
    m->snapshot = xph_held_since(m->context, &before).host;
    xph_dataset_release(empty);
    return EXPHIL_OK;
}

/* ---- making what is measured ------------------------------------------------------------------------------------- */

/* A model that is there already costs nothing. */
static exphil_status make_model(measured *m, exphil_error *error)
{
    const exphil_plan_config *config = m->job->config;
    m->before = xph_context_held(m->context);
    XPH_TRY(xph_model_blank(m->context, config->model, config->model_config, &m->model, error));
    if (config->model) m->before = xph_context_held(m->context);
    return EXPHIL_OK;
}

/* Another number of lanes: with lanes of several ranks the joint batch becomes larger or smaller in proportion. */
static void resize(exphil_sampling *sampling, int64_t lanes)
{
    int64_t own = sampling->lane_count, joint = sampling->batch ? sampling->batch : 16;
    sampling->batch = own ? (joint * lanes + own - 1) / own : lanes;
    sampling->first_lane = 0;
    sampling->lane_count = own ? lanes : 0;
}

static exphil_status size_data(measured *m, int64_t batch, exphil_error *error)
{
    const exphil_plan_config *config = m->job->config;
    exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
    if (config->sampling)
        XPH_TRY(XPH_TAKE(exphil_sampling, &sampling, config->sampling, error));
    else
        XPH_TRY(exphil_model_sampling(m->model, &sampling, error));
    if (batch) resize(&sampling, batch);
    const exphil_dataset *dataset = config->by_hand ? NULL : config->dataset;
    XPH_TRY(xph_data_bytes_of(dataset, xph_model_spec(m->model), &sampling, false, &m->data, error));
    return xph_trainer_check_sampling(m->model, &m->data.how, &m->data.told, error);
}

static exphil_status make_trainer(measured *m, int64_t batch, exphil_error *error)
{
    const exphil_plan_config *config = m->job->config;
    XPH_TRY(make_model(m, error));
    XPH_TRY(size_data(m, batch, error));
    XPH_TRY(exphil_optimizer_create(m->model, config->optimizer, &m->optimizer, error));
    XPH_TRY(exphil_trainer_create(m->model, m->optimizer, NULL, config->trainer, &m->trainer, error));
    return xph_trainer_shape(m->trainer, m->data.how.lane_count, m->data.how.time, error);
}

static exphil_status measure_saving(measured *m, exphil_error *error)
{
    XPH_TRY(xph_checkpoint_measure(m->trainer, m->data.how.lane_count, &m->files, error));
    if (!m->job->config->no_checkpoint)
        add_host(m, EXPHIL_PLAN_SAVING, m->files.copies + xph_model_write_bytes(m->model));
    return EXPHIL_OK;
}

/* As exphil_trainer_evaluate begins: a copy of the weights, packed. */
static exphil_status measure_scores(measured *m, const exphil_model *copy, const xph_held *before,
                                    exphil_error *error)
{
    const exphil_plan_config *config = m->job->config;
    xph_held own = xph_held_since(m->context, before), *forced = &m->purpose[EXPHIL_PLAN_EVALUATION],
             *alone = &m->purpose[EXPHIL_PLAN_ALONE];
    XPH_TRY(xph_evaluate_held(copy, config->scored, config->frequencies, &m->trainer->losses,
                              config->alone_most_frames, forced, alone, error));
    xph_held *const both[] = {forced, alone};
    for (int i = 0; i < 2; i++) {
        if (!both[i]->host) continue;
        both[i]->host += own.host + m->snapshot;
        both[i]->device += own.device;
        both[i]->limited += own.limited;
    }
    return EXPHIL_OK;
}

static exphil_status measure_evaluation(measured *m, exphil_error *error)
{
    exphil_model *copy = NULL;
    const void *packed = NULL;
    xph_held before = xph_context_held(m->context);
    if (!m->job->config->scored) return EXPHIL_OK;
    XPH_TRY(exphil_trainer_model(m->trainer, EXPHIL_WEIGHTS, &copy, error));
    exphil_status status = xph_model_packed(copy, &packed, error);
    if (status >= 0) status = measure_scores(m, copy, &before, error);
    xph_model_release(copy);
    return status;
}

static exphil_status measure_all(measured *m, int64_t batch, exphil_error *error)
{
    XPH_TRY(make_trainer(m, batch, error));
    add_trainer(m);
    add_rest(m);
    XPH_TRY(measure_snapshot(m, error));
    add_data(m);
    XPH_TRY(measure_saving(m, error));
    return measure_evaluation(m, error);
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

/* While a net is planned, before the first update, the host holds a little more too. */
static uint64_t worst(const measured *m, size_t field, uint64_t steady, int32_t *purpose)
{
    uint64_t most = field == offsetof(xph_held, host) ? xph_net_planning_bytes() : 0;
    *purpose = EXPHIL_PLAN_UPDATES;
    for (int p = EXPHIL_PLAN_SAVING; p <= EXPHIL_PLAN_ALONE; p++) {
        uint64_t bytes;
        memcpy(&bytes, (const unsigned char *)&m->purpose[p] + field, sizeof bytes);
        if (bytes <= most) continue;
        most = bytes;
        *purpose = p;
    }
    return steady + most;
}

static void fill_plan(const measured *m, exphil_plan *plan)
{
    const plan_job *job = m->job;
    uint64_t limited = 0;
    int32_t unused;
    plan->batch = m->data.how.lane_count;
    plan->time = m->data.how.time;
    for (int64_t i = 0; i < xph_model_param_count(m->model); i++)
        plan->parameter_count += xph_model_param(m->model, i)->count;
    for (int p = 0; p < EXPHIL_PLAN_PURPOSES; p++) {
        plan->host_bytes[p] = m->purpose[p].host;
        plan->device_bytes[p] = m->purpose[p].device;
        if (p > EXPHIL_PLAN_OTHER) continue;
        plan->host_steady_bytes += m->purpose[p].host;
        plan->device_steady_bytes += m->purpose[p].device;
        limited += m->purpose[p].limited;
    }
    plan->host_peak_bytes =
        worst(m, offsetof(xph_held, host), plan->host_steady_bytes, &plan->host_peak_purpose);
    plan->device_peak_bytes =
        worst(m, offsetof(xph_held, device), plan->device_steady_bytes, &plan->device_peak_purpose);
    plan->limited_peak_bytes = worst(m, offsetof(xph_held, limited), limited, &unused);
    plan->host_room_bytes = job->room.host;
    plan->device_room_bytes = job->room.device;
    plan->limited_room_bytes = job->room.limited;
    plan->weights_file_bytes = m->files.weights_file;
    plan->checkpoint_file_bytes = m->files.file;
    plan->fits = plan->host_peak_bytes <= job->room.host && plan->device_peak_bytes <= job->room.device &&
                 plan->limited_peak_bytes <= job->room.limited;
}

/* batch 0: that of the sampling. */
static exphil_status plan_batch(const plan_job *job, int64_t batch, exphil_plan *plan, exphil_error *error)
{
    measured m = {.job = job};
    XPH_TRY(xph_context_measure(job->context, &m.context, error));
    m.device = xph_context_backend(m.context);
    exphil_status status = measure_all(&m, batch, error);
    if (status >= 0) fill_plan(&m, plan);
    exphil_trainer_destroy(m.trainer);
    exphil_optimizer_destroy(m.optimizer);
    xph_model_release(m.model);
    xph_context_release(m.context);
    return status;
}

/* ---- the largest batch ------------------------------------------------------------------------------------------- */

/* A batch without a size, or for which exphil_sampling.memory_bytes is too little, does not fit. */
static exphil_status fits(const plan_job *job, int64_t batch, bool *fit, exphil_error *error)
{
    exphil_plan plan = EXPHIL_PLAN_INIT;
    exphil_error why = EXPHIL_ERROR_INIT;
    exphil_status status = plan_batch(job, batch, &plan, &why);
    *fit = status >= 0 && plan.fits;
    if (status >= 0 || status == EXPHIL_E_MEMORY || status == EXPHIL_E_INVALID) return EXPHIL_OK;
    return xph_fail(error, status, "%s", why.message);
}

/* Lanes that a batch has at least, and a multiple of: one in each shard of this rank. The plan of one batch has checked them. */
static exphil_status find_unit(const plan_job *job, int64_t *unit, exphil_error *error)
{
    exphil_trainer_config trainer = EXPHIL_TRAINER_CONFIG_INIT;
    exphil_communicator with = {.struct_size = sizeof with, .ranks = 1};
    exphil_device_communicator gpus = EXPHIL_DEVICE_COMMUNICATOR_INIT;
    XPH_TRY(XPH_TAKE(exphil_trainer_config, &trainer, job->config->trainer, error));
    XPH_TRY(XPH_TAKE(exphil_communicator, &with, trainer.communicator, error));
    XPH_TRY(XPH_TAKE(exphil_device_communicator, &gpus, trainer.device_communicator, error));
    *unit = trainer.shards > 1 ? trainer.shards / (trainer.device_communicator ? gpus.ranks : with.ranks) : 1;
    return EXPHIL_OK;
}

/* Doubles while it fits, then halves what is between. */
static exphil_status find_largest(const plan_job *job, int64_t *largest, exphil_error *error)
{
    int64_t unit;
    XPH_TRY(find_unit(job, &unit, error));
    int64_t most = (job->config->most_batch ? job->config->most_batch : BATCH_MOST) / unit, low = 0, high = 1;
    bool fit = true;
    while (fit && low < most) {
        XPH_TRY(fits(job, high * unit, &fit, error));
        if (!fit) break;
        low = high;
        high = 2 * high < most ? 2 * high : most;
    }
    while (!fit && high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        bool does;
        XPH_TRY(fits(job, middle * unit, &does, error));
        *(does ? &low : &high) = middle;
    }
    *largest = low * unit;
    return EXPHIL_OK;
}

/* ---- the call ---------------------------------------------------------------------------------------------------- */

static exphil_status check_dataset(const plan_job *job, const exphil_dataset *dataset, const char *name,
                                   exphil_error *error)
{
    if (!dataset || xph_dataset_context(dataset) == job->context) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_MISMATCH, "plan config: %s is of another context", name);
}

static exphil_status check_flag(int32_t flag, const char *name, exphil_error *error)
{
    if (flag == 0 || flag == 1) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_INVALID, "plan config: %s is %d, must be 0 or 1", name, (int)flag);
}

static exphil_status check_config(const plan_job *job, exphil_error *error)
{
    const exphil_plan_config *config = job->config;
    if (!config->model == !config->model_config)
        return xph_fail(error, EXPHIL_E_INVALID, "plan config: %s of model and model_config",
                        config->model ? "both" : "neither");
    if (config->model && xph_model_context(config->model) != job->context)
        return xph_fail(error, EXPHIL_E_MISMATCH, "plan config: model is of another context");
    XPH_TRY(check_dataset(job, config->dataset, "dataset", error));
    XPH_TRY(check_dataset(job, config->scored, "scored", error));
    XPH_TRY(check_dataset(job, config->frequencies, "frequencies", error));
    if (config->alone_most_frames < 0)
        return xph_fail(error, EXPHIL_E_INVALID, "plan config: alone_most_frames is %lld, must be 0 or more",
                        (long long)config->alone_most_frames);
    if (config->most_batch < 0 || config->most_batch > BATCH_MOST)
        return xph_fail(error, EXPHIL_E_INVALID, "plan config: most_batch is %lld, must be 0..%d",
                        (long long)config->most_batch, BATCH_MOST);
    XPH_TRY(check_flag(config->by_hand, "by_hand", error));
    return check_flag(config->no_checkpoint, "no_checkpoint", error);
}

exphil_status exphil_trainer_plan(exphil_context *context, const exphil_plan_config *config,
                                  exphil_plan *plan, exphil_error *error)
{
    XPH_OWN_FPU;
    if (!config || !plan) return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL", config ? "plan" : "config");
    exphil_plan_config known = EXPHIL_PLAN_CONFIG_INIT;
    exphil_plan now = EXPHIL_PLAN_INIT;
    XPH_TRY(XPH_TAKE(exphil_plan_config, &known, config, error));
    if (!context && known.model) context = xph_model_context(known.model);
    XPH_TRY(xph_context_check(context, error));
    XPH_TRY(XPH_CHECK_OUTPUT(exphil_plan, plan, error));
    plan_job job = {.context = context, .config = &known, .room = xph_context_room(context)};
    XPH_TRY(check_config(&job, error));
    if (known.host_limit_bytes) job.room.host = known.host_limit_bytes;
    if (known.device_limit_bytes && job.room.device != UINT64_MAX) job.room.device = known.device_limit_bytes;
    XPH_TRY(plan_batch(&job, 0, &now, error));
    XPH_TRY(find_largest(&job, &now.largest_batch, error));
    return XPH_GIVE(exphil_plan, plan, &now, error);
}
