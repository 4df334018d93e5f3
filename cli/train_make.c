/* Makes from the options everything that a run needs: data, model, batches, optimizer, trainer. */
#include "notes.h"
#include "train_run.h"

#include <inttypes.h>
#include <string.h>

/* A run goes on by the rule that it began with: version 0.1 knew the other only. */
static bool earlier_start(const train_state *r)
{
    exphil_model *model = NULL;
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    if (!r->options->resume || exphil_model_load(r->context, r->options->out, &model, NULL) < 0) return false;
    bool earlier = exphil_model_query(model, &info, NULL) >= 0 && !info.neutral_start;
    exphil_model_destroy(model);
    return earlier;
}

static void fill_model_config(const train_state *r, exphil_model_config *config)
{
    const train_options *o = r->options;
    *config = (exphil_model_config)EXPHIL_MODEL_CONFIG_INIT;
    config->spec = &r->spec;
    config->blocks = o->blocks;
    config->seed = (uint64_t)o->seed;
    config->hidden = o->hidden;
    config->head_width = o->head_width;
    config->attention_window_frames = o->attention_window;
    config->window_frames = o->window;
    config->delay_frames = o->chosen.delays[o->chosen.delay_count - 1];
    config->delays = o->chosen.delay_count > 1 ? o->chosen.delays : NULL;
    config->delay_count = o->chosen.delay_count > 1 ? o->chosen.delay_count : 0;
    config->conditions = o->told.spec;
    config->condition_count = o->told.count;
    config->no_previous_action = o->no_previous;
    config->neutral_start = config->delay_frames > 0 && !o->recorded_start && !earlier_start(r);
    config->mode = o->chosen.mode;
    config->heads = o->chosen.heads;
    config->value = o->outcome.kind;
    network_fill(&o->network, config);
}

static bool make_model(train_state *r)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_model_config config;
    if (r->model) return true;
    fill_model_config(r, &config);
    if (exphil_model_create(r->context, &config, &r->model, &error) >= 0) return true;
    return network_refused(r->options->command, &error);
}

void train_optimizer_config(const train_state *r, exphil_optimizer_config *config)
{
    const train_options *o = r->options;
    *config = (exphil_optimizer_config)EXPHIL_OPTIMIZER_CONFIG_INIT;
    config->rate = o->rate;
    config->decay = o->decay;
    config->clip_norm = o->clip;
    config->ema_decay = o->ema;
    config->low_ratio = o->low_ratio;
    config->warmup_updates = o->warmup;
    config->total_updates = r->updates;
    config->restart_updates = o->restart;
    config->schedule = o->chosen.schedule;
    config->resume_new_total = o->resume && o->updates_given;
}

void train_trainer_config(const train_state *r, train_losses *losses, exphil_trainer_config *config)
{
    const train_options *o = r->options;
    *losses = (train_losses){.positive = {0}};
    *config = (exphil_trainer_config)EXPHIL_TRAINER_CONFIG_INIT;
    for (int64_t h = 0; h < r->spec.head_count; h++) {
        bool bits = r->spec.heads[h].kind == EXPHIL_BERNOULLI;
        losses->head[h].smoothing = bits ? 0.0 : o->smoothing;
        losses->head[h].focal_gamma = o->focal;
        for (int i = 0; bits && i < 32; i++) losses->positive[i] = (float)o->button_weight;
        if (bits && o->button_weight != 1.0) losses->head[h].positive_weight = losses->positive;
    }
    config->losses = losses->head;
    config->accumulate = o->accumulate;
    config->shards = o->shards > 1 ? (int32_t)o->shards : 0;
    config->activations = o->chosen.activations;
    config->precision = o->chosen.precision;
    config->fake_quantize = o->chosen.fake_quantize;
    config->checkpoint_blocks = (int32_t)o->checkpoint_blocks;
    config->own_past = o->own_past;
    config->own_past_ramp_updates = o->own_past_ramp;
    config->own_past_seed = o->own_past > 0.0 ? (uint64_t)o->seed : 0;
    config->saved_weights = o->ema > 0.0 ? EXPHIL_WEIGHTS_AVERAGED : EXPHIL_WEIGHTS;
}

/* Says what failed; of memory, what would fit. Returns false. */
static bool fail_to_make(train_state *r, const char *what, const exphil_error *error)
{
    complain(what, error);
    return error->status == EXPHIL_E_MEMORY && train_advise_memory(r);
}

static bool make_optimizer(train_state *r)
{
    exphil_optimizer_config config;
    exphil_error error = EXPHIL_ERROR_INIT;
    train_optimizer_config(r, &config);
    if (exphil_optimizer_create(r->model, &config, &r->optimizer, &error) >= 0) return true;
    return fail_to_make(r, "optimizer", &error);
}

static bool make_trainer(train_state *r)
{
    exphil_trainer_config config;
    exphil_error error = EXPHIL_ERROR_INIT;
    train_losses losses;
    train_trainer_config(r, &losses, &config);
    if (r->prefetcher) ranks_lend(r->options->ranks, &config);
    if (exphil_trainer_create(r->model, r->optimizer, r->prefetcher, &config, &r->trainer, &error) >= 0)
        return true;
    ranks_together(r->options->ranks, r->prefetcher != NULL);
    return fail_to_make(r, "trainer", &error);
}

void train_drop(train_state *r)
{
    exphil_trainer_destroy(r->trainer);
    exphil_optimizer_destroy(r->optimizer);
    exphil_prefetcher_destroy(r->prefetcher);
    r->trainer = NULL;
    r->optimizer = NULL;
    r->prefetcher = NULL;
}

/* By measurement, as the batch: doc/performance.md. */
#define MIRROR 0.5

/* Asked of a dataset without frames, which can be no more than that. Where nobody asked, data without a mirror are shown as
 * they are. */
static bool choose_mirror(train_state *r)
{
    exphil_dataset_config config = EXPHIL_DATASET_CONFIG_INIT;
    exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
    exphil_dataset *empty = NULL;
    exphil_prefetcher *none = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    config.spec = &r->spec;
    bool asked = r->options->mirror >= 0.0;
    r->mirror = sampling.mirror = asked ? r->options->mirror : MIRROR;
    if (exphil_dataset_create(r->context, &config, &empty, &error) < 0)
        return complain("dataset", &error) == 0;
    /* an empty dataset is refused in any case */
    bool refused = exphil_prefetcher_create(empty, &sampling, &none, &error) < 0 &&
                   strstr(error.message, "mirror") != NULL;
    exphil_prefetcher_destroy(none);
    exphil_dataset_destroy(empty);
    if (refused && !asked) r->mirror = 0.0;
    return !refused || !asked || complain("--mirror", &error) == 0;
}

/* What the options ask for is made without data and dropped: a model or trainer that cannot be is refused before replays
 * are read, which may take minutes. */
static bool check_plan(train_state *r)
{
    r->updates = r->options->updates ? r->options->updates : INT32_MAX;
    bool fine = choose_mirror(r) && make_model(r) && make_optimizer(r) && make_trainer(r);
    train_drop(r);
    return fine;
}

/* A table tells a policy nothing by a name that it does not have. */
static bool check_names(const train_state *r)
{
    const condition_table *table = &r->options->told;
    exphil_sampling told = EXPHIL_SAMPLING_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_model_sampling(r->model, &told, &error) < 0) return complain("model", &error) == 0;
    for (int64_t i = 0, k; i < table->count; i++) {
        for (k = 0; k < told.condition_count; k++)
            if (strcmp(told.conditions[k].name, table->name[i]) == 0) break;
        if (k < told.condition_count) continue;
        fprintf(stderr, "exphil: --conditions: %s has %s, which the weights of --init do not know\n",
                table->of.path, table->name[i]);
        return false;
    }
    return true;
}

/* Weights to start from say what the data must look like; without them options do, or a corpus. */
static bool load_data(train_state *r, int count, char **paths)
{
    const train_options *o = r->options;
    exphil_error error = EXPHIL_ERROR_INIT;
    r->spec = (exphil_spec)EXPHIL_SPEC_INIT;
    if (o->init) {
        if (!load_weights(r->context, o->init, "--init wants weights", &r->model)) return false;
        if (!outcome_head(r)) return false; /* the spec is the model's */
        if (exphil_model_spec(r->model, &r->spec, &error) < 0) return complain(o->init, &error) == 0;
        if (!check_names(r)) return false;
    } else if (!preset_spec(&o->data, &r->spec)) {
        return false;
    }
    if ((o->init || !is_one_corpus(&o->data, count, paths)) && !check_plan(r)) return false;
    if (!load_dataset(r->context, &r->spec, &r->loading, count, paths, &r->all)) return false;
    if (o->init || !is_one_corpus(&o->data, count, paths)) return true;
    return exphil_dataset_spec(r->all, &r->spec, &error) >= 0 || complain(paths[0], &error) == 0;
}

/* Whole games can only be held out where there are two. */
static bool check_games(const train_state *r, int32_t by)
{
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_dataset_query(r->all, &info, &error) < 0) return complain("dataset", &error) == 0;
    if (by != EXPHIL_SPLIT_GAME || info.games > 1) return true;
    fprintf(stderr,
            "exphil: --held-out: the data are one game, which --split game cannot divide; --split time holds "
            "out its end\n");
    return false;
}

/* Scoring reads every frame that it scores: of large data some games, drawn at random, say as much in less time. */
static bool draw_few(train_state *r, const exphil_dataset *from, const char *what, exphil_dataset **few)
{
    exphil_split_config config = EXPHIL_SPLIT_CONFIG_INIT;
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT, drawn = EXPHIL_DATASET_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_dataset *rest = NULL;
    int64_t most = r->options->score_frames;
    if (exphil_dataset_query(from, &info, &error) < 0) return complain("dataset", &error) == 0;
    if (!most || info.frames <= most || info.games < 2) return true;
    config.held_out = (double)most / (double)info.frames;
    config.seed = (uint64_t)r->options->seed;
    exphil_status status = exphil_dataset_split(from, &config, &rest, few, &error);
    exphil_dataset_destroy(rest);
    if (status == EXPHIL_E_INVALID) return true; /* all of it may be one match */
    if (status < 0 || exphil_dataset_query(*few, &drawn, &error) < 0) return complain("split", &error) == 0;
    if (!r->options->quiet && !r->options->json)
        fprintf(stderr,
                "%s: %" PRId64 " of %" PRId64 " games, %" PRId64 " frames, are scored (--score-frames)\n",
                what, drawn.games, info.games, drawn.frames);
    return true;
}

/* Games are of unequal length, and few games are a coarse measure: the part is told in frames. */
static void say_held_out(const train_state *r)
{
    exphil_dataset_info all = EXPHIL_DATASET_INFO_INIT, held = EXPHIL_DATASET_INFO_INIT;
    if (r->options->quiet || r->options->json || exphil_dataset_query(r->all, &all, NULL) < 0 ||
        exphil_dataset_query(r->held, &held, NULL) < 0)
        return;
    double part = (double)held.frames / (double)all.frames, asked = r->options->held_out;
    fprintf(stderr,
            "held out: %" PRId64 " of %" PRId64 " game%s, %" PRId64 " of %" PRId64 " frames, %.1f %%\n",
            held.games, all.games, plural(all.games), held.frames, all.frames, 100.0 * part);
    if (part < asked / 2 || part > asked * 2)
        fprintf(
            stderr,
            "exphil: warning: that is far from the %.1f %% of --held-out, since games are few or of unequal "
            "length: another --seed draws others, --split time takes the end of each\n",
            100.0 * asked);
}

static bool split_data(train_state *r)
{
    exphil_split_config config = EXPHIL_SPLIT_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (r->options->held_out <= 0.0) {
        r->train = r->all;
        r->all = NULL;
        return draw_few(r, r->train, "the training data", &r->few);
    }
    config.held_out = r->options->held_out;
    config.seed = (uint64_t)r->options->seed;
    config.by = r->options->chosen.split;
    if (!check_games(r, config.by)) return false;
    exphil_status status = exphil_dataset_split(r->all, &config, &r->train, &r->held, &error);
    if (status == EXPHIL_E_INVALID && config.by == EXPHIL_SPLIT_STABLE)
        fprintf(stderr,
                "exphil: --split stable draws each game by itself, and no game, or all, would be held "
                "out: another --seed, more games, or --split game\n");
    if (status < 0) return complain("split", &error) == 0;
    say_held_out(r);
    return draw_few(r, r->train, "the training data", &r->few) &&
           draw_few(r, r->held, "what is held out", &r->few_held);
}

/* What was chosen for a run stays, on a machine with other memory too. */
static bool kept_batch(train_state *r)
{
    exphil_model *model = NULL;
    if (exphil_model_load(r->context, r->options->out, &model, NULL) < 0) return false;
    json_t *notes = notes_of(model);
    int64_t batch = (int64_t)json_integer_value(json_object_get(notes_train(notes), "batch"));
    json_decref(notes);
    exphil_model_destroy(model);
    if (batch >= 1 && batch <= 4096) r->batch = batch;
    return r->batch == batch && batch > 0;
}

/* By measurement: doc/performance.md, bench/defaults.py tells how. Little data, many passes. */
enum { BATCH = 16, EPOCHS = 16, LEAST_UPDATES = 300 };

/* As many lanes as the data fill; in window mode a lane is one window. */
static bool choose_batch(train_state *r, const exphil_sampling *sampling)
{
    exphil_dataset_info info = EXPHIL_DATASET_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    bool window = sampling->mode == EXPHIL_MODE_WINDOW;
    if (exphil_dataset_query(r->train, &info, &error) < 0) return complain("dataset", &error) == 0;
    int64_t step = window ? (sampling->stride ? sampling->stride : 1) : sampling->time ? sampling->time : 60;
    int64_t full = info.frames / step, most = full < BATCH ? full : BATCH;
    if (most < 1) most = 1;
    if (r->options->resume && r->options->batch <= 0 && kept_batch(r)) return true;
    if (r->options->batch == TRAIN_BATCH_AUTO) return train_auto_batch(r, full);
    r->batch = r->options->batch ? r->options->batch : most;
    if (r->batch > most && r->batch > full && !window)
        fprintf(stderr,
                "exphil: warning: %" PRId64 " frames do not fill a batch of %" PRId64 " x %" PRId64
                " frames; the rest is computed for nothing. --batch %" PRId64 " fits\n",
                info.frames, r->batch, step, most);
    return true;
}

static void choose_updates(train_state *r)
{
    const train_options *o = r->options;
    int64_t epochs = o->epochs ? o->epochs : EPOCHS, each = r->data.batches_per_epoch;
    r->updates = o->updates ? o->updates : (epochs * each + o->accumulate - 1) / o->accumulate;
    if (!o->updates && !o->epochs && r->updates < LEAST_UPDATES) r->updates = LEAST_UPDATES;
    if (o->most_updates && r->updates > o->most_updates) r->updates = o->most_updates;
    char mirrored[48] = "", together[48] = "";
    if (r->mirror > 0.0) (void)snprintf(mirrored, sizeof mirrored, ", %g of the games mirrored", r->mirror);
    if (o->ranks) (void)snprintf(together, sizeof together, " on %" PRId32 " ranks", ranks_count(o->ranks));
    if (!o->quiet && !o->json)
        fprintf(stderr,
                "%" PRId64 " update%s, %.1f passes over %" PRId64 " frames, %" PRId64
                " sequence%s at a time%s%s\n",
                r->updates, plural(r->updates),
                (double)r->updates * (double)o->accumulate / (double)(each > 0 ? each : 1),
                r->data.frames_per_epoch, r->batch, plural(r->batch), together, mirrored);
}

bool train_weighs(const train_options *o)
{
    return o->weights || o->balance_character > 0 || o->balance_action > 0 || o->balance_change > 0;
}

static void say_share(const train_state *r)
{
    if (!train_weighs(r->options) || r->options->quiet || r->options->json) return;
    fprintf(stderr, "these frames tell as much as %.1f %% of them would, if all weighed the same\n",
            100.0 * r->data.effective_share);
}

bool train_sampling(const train_state *r, exphil_sampling *sampling, exphil_error *error)
{
    const train_options *o = r->options;
    *sampling = (exphil_sampling)EXPHIL_SAMPLING_INIT;
    if (exphil_model_sampling(r->model, sampling, error) < 0) return false;
    if (o->time && sampling->mode == EXPHIL_MODE_CARRY) sampling->time = o->time;
    sampling->segment_frames = o->segment;
    sampling->stride = o->stride;
    sampling->shuffle_frames = o->shuffle_frames;
    sampling->last_only = o->last_only;
    sampling->drop_past = o->drop_past;
    sampling->balance_character = o->balance_character;
    sampling->balance_action = o->balance_action;
    sampling->balance_change = o->balance_change;
    sampling->seed = (uint64_t)o->seed;
    sampling->mirror = r->mirror;
    sampling->workers = (int32_t)o->workers;
    sampling->memory_bytes = (int64_t)o->memory_bytes;
    return true;
}

/* Of batches that do not go into --memory, too. */
static bool fail_to_fill(train_state *r, const exphil_sampling *sampling, const exphil_error *error)
{
    complain("prefetcher", error);
    if (strstr(error->message, "memory_bytes"))
        fprintf(stderr, "exphil: --memory must be larger, or --batch%s smaller\n",
                sampling->mode == EXPHIL_MODE_WINDOW ? ", --window or --shuffle-frames" : "");
    else if (error->status == EXPHIL_E_MEMORY)
        return train_advise_memory(r);
    return false;
}

/* Every rank has a lane at least. */
bool train_lanes(const train_state *r, int64_t batch, exphil_sampling *sampling)
{
    const ranks *all = r->options->ranks;
    exphil_error error = EXPHIL_ERROR_INIT;
    sampling->batch = batch;
    if (!all) return true;
    if (exphil_rank_lanes(batch, ranks_rank(all), ranks_count(all), &sampling->first_lane,
                          &sampling->lane_count, &error) >= 0)
        return true;
    fprintf(stderr,
            "exphil: --batch: %" PRId64 " sequence%s at a time for %" PRId32
            " ranks: each wants one; --batch %" PRId32 " is the least\n",
            batch, plural(batch), ranks_count(all), ranks_count(all));
    return false;
}

static bool make_prefetcher(train_state *r)
{
    const int64_t shards = r->options->shards;
    exphil_sampling sampling;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (!train_sampling(r, &sampling, &error)) return complain("sampling", &error) == 0;
    if (!r->updates) r->updates = INT32_MAX; /* until it is known how many batches there are */
    if (!choose_batch(r, &sampling)) return false;
    if (r->options->batch <= 0 && r->batch % shards)
        r->batch += shards - r->batch % shards; /* nobody asked for another */
    if (!train_lanes(r, r->batch, &sampling)) return false;
    r->data = (exphil_prefetcher_info)EXPHIL_PREFETCHER_INFO_INIT;
    train_check_memory(r);
    if (exphil_prefetcher_create(r->train, &sampling, &r->prefetcher, &error) < 0 ||
        exphil_prefetcher_query(r->prefetcher, &r->data, &error) < 0)
        return fail_to_fill(r, &sampling, &error);
    r->sampling = sampling;
    choose_updates(r);
    say_share(r);
    return true;
}

uint64_t train_memory(const train_state *r)
{
    exphil_memory_info info = EXPHIL_MEMORY_INFO_INIT;
    if (exphil_context_memory(r->context, &info, NULL) < 0) return 0;
    return info.host_used_bytes + info.device_used_bytes;
}

bool train_make(train_state *r, int count, char **paths)
{
    const train_options *o = r->options;
    machine_options machine = o->machine;
    char device[RANKS_DEVICE];
    ranks_machine(o->ranks, &machine, device);
    r->loading = o->data;
    r->loading.threads = machine.threads;
    if (!open_context(&machine, o->data.cancel, &r->context) || !load_data(r, count, paths) ||
        !choose_mirror(r) || !split_data(r) || !make_model(r))
        return false;
    r->memory = train_memory(r);
    return make_prefetcher(r) && make_optimizer(r) && make_trainer(r) && train_resume(r) &&
           (o->resume || train_notes_begin(r));
}
