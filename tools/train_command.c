/* `exphil train`: replays or a corpus in, a weights file, a checkpoint and a log out. */
#include "commands.h"
#include "options.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct train_options {
    data_options data;
    const char *out, *log, *init, *split, *heads, *mode, *schedule, *device, *isa, *blocks;
    int64_t updates, epochs, delay, seed, batch, time, segment, accumulate, warmup, restart, threads;
    int64_t log_every, eval_every, save_every, head_width, hidden, window, attention_window, stride;
    double rate, decay, clip, ema, low_ratio, held_out, smoothing, focal, button_weight;
    bool json, resume, no_previous, last_only, quiet;
} train_options;

/* Everything a run holds. */
typedef struct run {
    const train_options *options;
    exphil_context *context;
    exphil_model *model;
    exphil_dataset *all, *train, *held;
    exphil_prefetcher *prefetcher;
    exphil_optimizer *optimizer;
    exphil_trainer *trainer;
    exphil_spec spec;
    exphil_prefetcher_info data;
    exphil_head_loss losses[EXPHIL_HEADS_MAX];
    float positive[32];
    int64_t updates, done, frames;
    double loss, frames_per_second;
    FILE *log;
} run;

static volatile sig_atomic_t interrupted;
static void on_interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

static int32_t choose(const char *text, const char *const *names, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        if (strcmp(text, names[i]) == 0) return i;
    return -1;
}

static bool set_choice(const char *option, const char *text, const char *a, const char *b, const char *c, int32_t *value)
{
    const char *const names[] = { a, b, c ? c : a };
    *value = choose(text, names, 3);
    if (*value >= 0) return true;
    fprintf(stderr, "exphil: --%s wants %s, %s%s%s, not %s\n", option, a, b, c ? ", " : "", c ? c : "", text);
    return false;
}

static bool fill_model_config(run *r, exphil_model_config *config)
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
    config->delay_frames = (int32_t)o->delay;
    config->no_previous_action = o->no_previous;
    return set_choice("mode", o->mode, "carry", "window", NULL, &config->mode) &&
           set_choice("heads", o->heads, "independent", "autoregressive", NULL, &config->heads);
}

static bool make_model(run *r)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    if (r->options->init) {
        if (exphil_model_load(r->context, r->options->init, &r->model, &error) >= 0) return true;
        return complain(r->options->init, &error) == 0;
    }
    exphil_model_config config;
    if (!fill_model_config(r, &config)) return false;
    if (exphil_model_create(r->context, &config, &r->model, &error) >= 0) return true;
    return complain("model", &error) == 0;
}

static bool split_data(run *r)
{
    exphil_split_config config = EXPHIL_SPLIT_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (r->options->held_out <= 0.0) {
        r->train = r->all;
        r->all = NULL;
        return true;
    }
    config.held_out = r->options->held_out;
    config.seed = (uint64_t)r->options->seed;
    if (!set_choice("split", r->options->split, "game", "time", NULL, &config.by)) return false;
    if (exphil_dataset_split(r->all, &config, &r->train, &r->held, &error) >= 0) return true;
    return complain("split", &error) == 0;
}

static bool make_prefetcher(run *r)
{
    const train_options *o = r->options;
    exphil_sampling sampling = EXPHIL_SAMPLING_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_model_sampling(r->model, &sampling, &error) < 0) return complain("sampling", &error) == 0;
    sampling.batch = o->batch;
    if (o->time && sampling.mode == EXPHIL_MODE_CARRY) sampling.time = o->time;
    sampling.segment_frames = o->segment;
    sampling.stride = o->stride;
    sampling.last_only = o->last_only;
    sampling.seed = (uint64_t)o->seed;
    r->data = (exphil_prefetcher_info)EXPHIL_PREFETCHER_INFO_INIT;
    if (exphil_prefetcher_create(r->train, &sampling, &r->prefetcher, &error) < 0 ||
        exphil_prefetcher_query(r->prefetcher, &r->data, &error) < 0)
        return complain("prefetcher", &error) == 0;
    r->updates = o->updates ? o->updates
                            : (o->epochs * r->data.batches_per_epoch + o->accumulate - 1) / o->accumulate;
    return true;
}

static bool make_optimizer(run *r)
{
    const train_options *o = r->options;
    exphil_optimizer_config config = EXPHIL_OPTIMIZER_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    config.rate = o->rate;
    config.decay = o->decay;
    config.clip_norm = o->clip;
    config.ema_decay = o->ema;
    config.low_ratio = o->low_ratio;
    config.warmup_updates = o->warmup;
    config.total_updates = r->updates;
    config.restart_updates = o->restart;
    if (!set_choice("schedule", o->schedule, "constant", "cosine", "restarts", &config.schedule)) return false;
    if (exphil_optimizer_create(r->model, &config, &r->optimizer, &error) >= 0) return true;
    return complain("optimizer", &error) == 0;
}

static bool make_trainer(run *r)
{
    const train_options *o = r->options;
    exphil_trainer_config config = EXPHIL_TRAINER_CONFIG_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    for (int64_t h = 0; h < r->spec.head_count; h++) {
        bool bits = r->spec.heads[h].kind == EXPHIL_BERNOULLI;
        r->losses[h].smoothing = bits ? 0.0 : o->smoothing;
        r->losses[h].focal_gamma = o->focal;
        for (int i = 0; bits && i < 32; i++) r->positive[i] = (float)o->button_weight;
        if (bits && o->button_weight != 1.0) r->losses[h].positive_weight = r->positive;
    }
    config.losses = r->losses;
    config.accumulate = o->accumulate;
    if (exphil_trainer_create(r->model, r->optimizer, r->prefetcher, &config, &r->trainer, &error) < 0)
        return complain("trainer", &error) == 0;
    if (o->resume && exphil_trainer_resume(r->trainer, o->out, &error) < 0) return complain(o->out, &error) == 0;
    exphil_optimizer_info info = EXPHIL_OPTIMIZER_INFO_INIT;
    if (exphil_optimizer_query(r->optimizer, &info, &error) < 0) return complain("optimizer", &error) == 0;
    r->done = info.updates;
    return true;
}

static bool open_log(run *r)
{
    if (!r->options->log) return true;
    r->log = fopen(r->options->log, r->options->resume ? "a" : "w");
    if (r->log) return true;
    perror(r->options->log);
    return false;
}

static void log_object(run *r, json_t *object)
{
    char *text = object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(12)) : NULL;
    if (r->log && text) {
        fprintf(r->log, "%s\n", text);
        fflush(r->log);
    }
    free(text);
    json_decref(object);
}

static void log_metrics(run *r, const exphil_metrics *m)
{
    if (!r->log) return;
    json_t *heads = json_object();
    for (int64_t h = 0; h < r->spec.head_count; h++)
        json_object_set_new(heads, r->spec.heads[h].name, json_real(m->head_loss[h]));
    log_object(r, json_pack("{s:s,s:I,s:I,s:I,s:f,s:f,s:f,s:f,s:I,s:o}", "kind", "train", "update", (json_int_t)m->update,
                            "epoch", (json_int_t)m->epoch, "frames", (json_int_t)m->frames, "loss", m->loss,
                            "gradient_norm", m->gradient_norm, "rate", m->rate, "frames_per_second",
                            r->frames_per_second, "waited_ns", (json_int_t)m->waited_ns, "heads", heads));
}

static bool evaluate(run *r, const char *kind, exphil_dataset *data, exphil_report *report)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    int32_t which = r->options->ema > 0.0 ? EXPHIL_WEIGHTS_AVERAGED : EXPHIL_WEIGHTS;
    if (exphil_trainer_evaluate(r->trainer, which, data, r->train, report, &error) < 0)
        return complain("evaluation", &error) == 0;
    json_t *object = report_json(report, &r->spec);
    json_object_set_new(object, "kind", json_string(kind));
    json_object_set_new(object, "update", json_integer(r->done));
    log_object(r, object);
    return true;
}

static bool save(run *r)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    return exphil_trainer_save(r->trainer, r->options->out, &error) >= 0 || complain(r->options->out, &error) == 0;
}

static bool due(int64_t done, int64_t every) { return every > 0 && done % every == 0; }

/* One update and what is due after it. */
static bool one_update(run *r, progress *bar)
{
    exphil_metrics metrics = EXPHIL_METRICS_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_status status = exphil_trainer_step(r->trainer, &metrics, &error);
    if (status == EXPHIL_E_NUMERIC) {
        complain("update", &error);
        return true;
    }
    if (status < 0) return complain("update", &error) == 0;
    double rate = metrics.time_ns > 0 ? (double)(metrics.frames - r->frames) * 1e9 / (double)metrics.time_ns : 0.0;
    r->frames = metrics.frames;
    r->frames_per_second = r->frames_per_second > 0.0 ? 0.95 * r->frames_per_second + 0.05 * rate : rate;
    r->done = metrics.update;
    r->loss = metrics.loss;
    if (due(r->done, r->options->log_every) || r->done == r->updates) log_metrics(r, &metrics);
    progress_show(bar, r->done, r->loss, r->frames_per_second, r->done == r->updates);
    exphil_report report = EXPHIL_REPORT_INIT;
    if (r->held && due(r->done, r->options->eval_every) && !evaluate(r, "held_out", r->held, &report)) return false;
    return !due(r->done, r->options->save_every) || r->done == r->updates || save(r);
}

static bool loop(run *r)
{
    progress bar;
    int64_t refused = 0;
    progress_begin(&bar, r->done, r->updates, r->options->quiet || r->options->json);
    while (r->done < r->updates && !interrupted) {
        int64_t before = r->done;
        if (!one_update(r, &bar)) return false;
        refused = r->done == before ? refused + 1 : 0;
        if (refused == 10) {
            fprintf(stderr, "exphil: ten updates in a row were refused; stopping\n");
            return false;
        }
    }
    if (interrupted) fprintf(stderr, "\nexphil: stopped after update %" PRId64 "; --resume goes on\n", r->done);
    return save(r);
}

/* The averaged weights are what one plays: they replace the plain ones in the weights file. */
static bool export_average(run *r)
{
    exphil_model *model = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (r->options->ema <= 0.0) return true;
    if (exphil_trainer_model(r->trainer, EXPHIL_WEIGHTS_AVERAGED, &model, &error) < 0 ||
        exphil_model_save(model, r->options->out, &error) < 0) {
        exphil_model_destroy(model);
        return complain("averaged weights", &error) == 0;
    }
    exphil_model_destroy(model);
    return true;
}

static bool finish(run *r)
{
    exphil_report train = EXPHIL_REPORT_INIT, held = EXPHIL_REPORT_INIT;
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (!export_average(r) || !evaluate(r, "train_set", r->train, &train)) return false;
    if (r->held && !evaluate(r, "held_out", r->held, &held)) return false;
    if (exphil_model_query(r->model, &info, &error) < 0) return complain("model", &error) == 0;
    if (r->options->json) {
        json_t *object = json_pack("{s:s,s:s,s:I,s:I,s:f,s:f,s:o}", "weights", r->options->out, "blocks", info.blocks,
                                   "parameters", (json_int_t)info.parameter_count, "updates", (json_int_t)r->done,
                                   "loss", r->loss, "frames_per_second", r->frames_per_second, "train",
                                   report_json(&train, &r->spec));
        if (r->held) json_object_set_new(object, "held_out", report_json(&held, &r->spec));
        print_json(object);
        return true;
    }
    printf("%s: %s, %" PRId64 " parameters, %" PRId64 " updates\n\non the training data\n", r->options->out, info.blocks,
           info.parameter_count, r->done);
    print_report(&train, &r->spec);
    if (r->held) printf("\nheld out\n");
    if (r->held) print_report(&held, &r->spec);
    return true;
}

static void close_run(run *r)
{
    exphil_trainer_destroy(r->trainer);
    exphil_optimizer_destroy(r->optimizer);
    exphil_prefetcher_destroy(r->prefetcher);
    exphil_dataset_destroy(r->held);
    exphil_dataset_destroy(r->train);
    exphil_dataset_destroy(r->all);
    exphil_model_destroy(r->model);
    exphil_context_destroy(r->context);
    if (r->log) fclose(r->log);
}

static bool execute(run *r, int count, char **paths)
{
    const train_options *o = r->options;
    exphil_error error = EXPHIL_ERROR_INIT;
    bool corpus = count == 1 && strstr(paths[0], ".corpus") != NULL;
    return open_context(o->threads, o->device, o->isa, &r->context) && preset_spec(&o->data, &r->spec) &&
           load_dataset(r->context, &r->spec, &o->data, count, paths, &r->all) &&
           (!corpus || exphil_dataset_spec(r->all, &r->spec, &error) >= 0) && split_data(r) && make_model(r) &&
           make_prefetcher(r) && make_optimizer(r) && make_trainer(r) && open_log(r) && loop(r) && finish(r);
}

int train_command(int argc, char **argv)
{
    train_options o = { .out = "policy.safetensors", .split = "game", .heads = "independent", .mode = "carry",
                        .schedule = "cosine", .blocks = "mamba*2", .epochs = 20, .batch = 16, .time = 60,
                        .accumulate = 1, .log_every = 1, .rate = 1e-3, .button_weight = 1.0 };
    const option_entry entries[] = {
        { NULL, 0, NULL, NULL, "data" },
        { "layout", OPTION_TEXT, &o.data.layout, "NAME", "melee2 (default) or exphil288" },
        { "codec", OPTION_TEXT, &o.data.codec, "NAME", "exphil81 (default) or exphil81-floor" },
        { "port", OPTION_INT, &o.data.port, "N", "imitate this port; default: every human player" },
        { "opponent", OPTION_INT, &o.data.opponent, "N", "the other port; default: the first other player" },
        { "character", OPTION_TEXT, &o.data.character, "NAME", "imitate only this character" },
        { "first", OPTION_INT, &o.data.first, "FRAME", "first game frame to use (default 0)" },
        { "last", OPTION_INT, &o.data.last, "FRAME", "last game frame to use (default: all)" },
        { "held-out", OPTION_NUMBER, &o.held_out, "SHARE", "part of the data kept for evaluation" },
        { "split", OPTION_TEXT, &o.split, "HOW", "game: whole games; time: the end of each" },
        { NULL, 0, NULL, NULL, "model" },
        { "blocks", OPTION_TEXT, &o.blocks, "PATTERN", "e.g. mamba*2 (default), '(lstm ffn)*3', attention*2" },
        { "hidden", OPTION_INT, &o.hidden, "N", "width (default 256)" },
        { "head-width", OPTION_INT, &o.head_width, "N", "width of the action heads' trunk (default 128)" },
        { "attention-window", OPTION_INT, &o.attention_window, "N", "frames that attention sees (default 60)" },
        { "heads", OPTION_TEXT, &o.heads, "KIND", "independent (default) or autoregressive" },
        { "delay", OPTION_INT, &o.delay, "N", "frames between decision and effect (default 0)" },
        { "no-previous-action", OPTION_FLAG, &o.no_previous, NULL, "past actions are not inputs" },
        { "mode", OPTION_TEXT, &o.mode, "MODE", "carry (default) or window" },
        { "window", OPTION_INT, &o.window, "N", "frames of a window (default 60)" },
        { "init", OPTION_TEXT, &o.init, "FILE", "start from these weights" },
        { NULL, 0, NULL, NULL, "training" },
        { "epochs", OPTION_INT, &o.epochs, "N", "passes over the data (default 20)" },
        { "updates", OPTION_INT, &o.updates, "N", "updates instead of epochs" },
        { "batch", OPTION_INT, &o.batch, "N", "sequences at a time (default 16)" },
        { "time", OPTION_INT, &o.time, "N", "frames of a chunk (default 60)" },
        { "segment", OPTION_INT, &o.segment, "N", "cut games into pieces of N frames (default: as batch needs)" },
        { "stride", OPTION_INT, &o.stride, "N", "window mode: frames between windows" },
        { "last-only", OPTION_FLAG, &o.last_only, NULL, "window mode: loss on the last frame only" },
        { "accumulate", OPTION_INT, &o.accumulate, "N", "batches per update (default 1)" },
        { "rate", OPTION_NUMBER, &o.rate, "X", "learning rate (default 0.001)" },
        { "schedule", OPTION_TEXT, &o.schedule, "KIND", "cosine (default), constant, restarts" },
        { "warmup", OPTION_INT, &o.warmup, "N", "updates of linear warm-up" },
        { "restart", OPTION_INT, &o.restart, "N", "updates between restarts" },
        { "low-ratio", OPTION_NUMBER, &o.low_ratio, "X", "lowest rate / rate" },
        { "decay", OPTION_NUMBER, &o.decay, "X", "weight decay (default 0)" },
        { "clip", OPTION_NUMBER, &o.clip, "X", "gradient norm at most (default 1; negative: off)" },
        { "ema", OPTION_NUMBER, &o.ema, "X", "decay of averaged weights, which are then what is saved" },
        { "smoothing", OPTION_NUMBER, &o.smoothing, "X", "label smoothing of categorical heads" },
        { "focal", OPTION_NUMBER, &o.focal, "X", "focal gamma" },
        { "button-weight", OPTION_NUMBER, &o.button_weight, "X", "weight of pressed buttons (default 1)" },
        { "seed", OPTION_INT, &o.seed, "N", "of weights and order" },
        { NULL, 0, NULL, NULL, "output" },
        { "out", OPTION_TEXT, &o.out, "FILE", "weights (default policy.safetensors)" },
        { "resume", OPTION_FLAG, &o.resume, NULL, "go on from FILE.optimizer" },
        { "log", OPTION_TEXT, &o.log, "FILE", "one JSON object per line" },
        { "log-every", OPTION_INT, &o.log_every, "N", "updates between lines (default 1)" },
        { "eval-every", OPTION_INT, &o.eval_every, "N", "updates between evaluations of the held-out part" },
        { "save-every", OPTION_INT, &o.save_every, "N", "updates between checkpoints" },
        { "threads", OPTION_INT, &o.threads, "N", "default: one per core" },
        { "device", OPTION_TEXT, &o.device, "NAME", "cpu (default), cuda:0, auto" },
        { "isa", OPTION_TEXT, &o.isa, "NAME", "cap: ref, avx2, avx512" },
        { "quiet", OPTION_FLAG, &o.quiet, NULL, "no progress" },
        { "json", OPTION_FLAG, &o.json, NULL, "print one JSON object at the end" },
        { NULL, 0, NULL, NULL, NULL },
    };
    const option_command command = { "train [OPTIONS] FILE...",
                                     "Trains a policy by behaviour cloning. FILE: .slp replays, folders of them, or one "
                                     ".corpus.\nCtrl-C saves a checkpoint; --resume goes on to the last bit.",
                                     entries };
    int count, status;
    if (!options_read(&command, argc, argv, &count, &status)) return status;
    if (count == 0 || o.accumulate < 1) {
        fprintf(stderr, "exphil: train wants %s; see exphil train --help\n", count ? "--accumulate >= 1" : "files");
        return 2;
    }
    signal(SIGINT, on_interrupt);
    run r = { .options = &o };
    bool fine = execute(&r, count, argv + 1);
    close_run(&r);
    return fine ? 0 : 1;
}
