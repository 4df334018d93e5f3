/* `exphil train`: its options, and the checks that need no data. */
#include "conditions.h"
#include "config.h"
#include "files.h"
#include "notes.h"
#include "options.h"
#include "presets.h"
#include "ranks_engine.h"
#include "train_run.h"
#include "weights.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- the output ---------------------------------------------------------------------------------------- */

/* No file that is written is this one. */
static bool outputs_spare(const train_options *o, const char *input)
{
    return output_spares("log", o->log, input) && output_spares("keep-bad-batch", o->bad_batch, input) &&
           output_spares("out", o->out, input) && output_spares("out", o->checkpoint, input) &&
           output_spares("out", o->best_weights, input) && output_spares("out", o->scores, input) &&
           output_spares("out", o->record, input);
}

/* A file that the run writes beside OUT, under a name of its own, is none of those. */
static bool outputs_spare_other(const train_options *o, const char *option, const char *path)
{
    return output_spares(option, path, o->out) && output_spares(option, path, o->checkpoint) &&
           output_spares(option, path, o->best_weights) && output_spares(option, path, o->scores) &&
           output_spares(option, path, o->record) && output_spares(option, path, o->config);
}

/* The files that are written are no inputs, and are not each other; data are compared when they are loaded. */
static bool name_outputs(train_options *o)
{
    const char *const written[][2] = {{"out", o->out},          {"out", o->checkpoint},
                                      {"out", o->best_weights}, {"out", o->scores},
                                      {"log", o->log},          {"keep-bad-batch", o->bad_batch}};
    for (size_t i = 0; i < sizeof written / sizeof written[0]; i++) {
        o->data.outputs[i].option = written[i][0];
        o->data.outputs[i].path = written[i][1];
    }
    return outputs_spare_other(o, "log", o->log) && outputs_spare_other(o, "keep-bad-batch", o->bad_batch) &&
           outputs_spare_other(o, "tensorboard", o->tensorboard) &&
           output_spares("keep-bad-batch", o->bad_batch, o->log) &&
           output_spares("tensorboard", o->tensorboard, o->log) &&
           output_spares("tensorboard", o->tensorboard, o->bad_batch) &&
           output_spares("out", o->out, o->config) && output_spares("out", o->checkpoint, o->config) &&
           outputs_spare(o, o->init) && outputs_spare(o, o->conditions) && outputs_spare(o, o->weights);
}

/* ---- options that do not go together ------------------------------------------------------------------- */

/* What a weights file already says; a NULL ends them. */
static const char *const of_weights[] = {"layout",         "codec",      "blocks",
                                         "hidden",         "head-width", "attention-window",
                                         "heads",          "delay",      "no-previous-action",
                                         "recorded-start", "mode",       "window",
                                         NETWORK_NAMES,    NULL};

static bool check_init(const option_command *command, const train_options *o)
{
    if (!o->init) return true;
    for (const char *const *name = of_weights; *name; name++) {
        if (!options_given(command, *name)) continue;
        fprintf(stderr, "exphil: --%s and --init: the weights say that already; leave --%s out\n", *name,
                *name);
        return false;
    }
    return true;
}

/* Says what it stands for. */
static bool take_preset(const option_command *command, const train_options *o)
{
    static const preset presets[] = {{"first", PRESET_FIRST}, {"standard", PRESET_STANDARD}, {NULL, NULL}};
    char taken[PRESET_TEXT];
    if (!o->preset) return true;
    if (!preset_take(command, presets, o->preset, o->init ? of_weights : NULL, taken)) return false;
    if (!o->quiet && !o->json)
        fprintf(stderr, "--preset %s: %s\n", o->preset, taken[0] ? taken : "all was given");
    return true;
}

static bool has_past(const train_options *o)
{
    return !o->no_previous || o->chosen.delays[o->chosen.delay_count - 1] > 0;
}

/* The losses of outcomes are of one rank. */
static bool check_ranks(const option_command *command, const train_options *o)
{
    const ranks_engine *engine = ranks_engine_for(o->mpi);
    if (o->shards & (o->shards - 1))
        fprintf(stderr, "exphil: --shards wants a power of two, not %" PRId64 "\n", o->shards);
    else if (o->batch > 0 && o->batch % o->shards)
        fprintf(stderr, "exphil: --shards %" PRId64 " does not divide --batch %" PRId64 "\n", o->shards,
                o->batch);
    else if (o->shards > 1 && o->accumulate > 1)
        fprintf(stderr,
                "exphil: --shards and --accumulate: a larger --batch in more shards takes no more memory\n");
    else if (options_given(command, "ranks-timeout") && !engine && !ranks_started())
        fprintf(stderr, "exphil: --ranks-timeout is for several processes: --mpi, or exphil launch\n");
    else if (engine && o->outcome.learns)
        fprintf(stderr,
                "exphil: %s and --value: what comes of frames is learnt by one process alone; --rewards none "
                "makes the head without\n",
                engine == &ranks_by_mpi ? "--mpi" : "exphil launch");
    else
        return true;
    return false;
}

static bool check_together(const option_command *command, const train_options *o)
{
    if (options_given(command, "epochs") && options_given(command, "updates"))
        fprintf(stderr, "exphil: --epochs and --updates: give one of them\n");
    else if (options_given(command, "most-updates") && options_given(command, "updates"))
        fprintf(stderr, "exphil: --most-updates and --updates: give one of them\n");
    else if (o->rate * o->decay > 1.0)
        fprintf(stderr, "exphil: --rate times --decay is above 1: weights would change their sign\n");
    else if (options_given(command, "own-past-ramp") && o->own_past == 0.0)
        fprintf(stderr, "exphil: --own-past-ramp wants --own-past P\n");
    else if (!has_past(o) && (o->drop_past > 0.0 || o->own_past > 0.0))
        fprintf(stderr, "exphil: --no-previous-action and --%s: there are no past actions\n",
                o->drop_past > 0.0 ? "drop-past" : "own-past");
    else if (o->chosen.schedule == EXPHIL_SCHEDULE_RESTARTS && !o->restart)
        fprintf(stderr, "exphil: --schedule restarts wants --restart N, updates between restarts\n");
    else if (o->chosen.schedule == EXPHIL_SCHEDULE_COSINE && o->updates && o->warmup >= o->updates)
        fprintf(stderr, "exphil: --warmup wants fewer updates than --updates, or --schedule constant\n");
    else if (options_given(command, "condition-mask") && !o->conditions)
        fprintf(stderr, "exphil: --condition-mask is for --conditions FILE\n");
    else if (o->held_out <= 0.0 && (o->best || o->patience || options_given(command, "least-gain")))
        fprintf(stderr, "exphil: --%s wants --held-out SHARE, which is scored\n",
                o->best       ? "best"
                : o->patience ? "patience"
                              : "least-gain");
    else if (options_given(command, "least-gain") && !o->patience)
        fprintf(stderr, "exphil: --least-gain is for --patience N\n");
    else if (o->best && strcmp(o->best, score_names[SCORE_ALONE]) == 0 && o->alone == 0)
        fprintf(stderr, "exphil: --best alone and --alone 0: nothing would be measured\n");
    else if (options_given(command, "clip") && o->clip == 0.0)
        fprintf(stderr, "exphil: --clip wants a norm above 0, or a negative number for none, not 0\n");
    else
        return true;
    return false;
}

static bool check_network(const option_command *command, train_options *o)
{
    return network_check(command, &o->network, has_past(o));
}

/* A policy that stays as it is has no score to gain. */
static bool check_best(train_options *o)
{
    if (o->outcome.value_only && !o->best && o->held_out > 0.0) {
        o->best = score_names[SCORE_UNEXPLAINED];
        o->chosen.best = SCORE_UNEXPLAINED;
    }
    if (o->chosen.best != SCORE_UNEXPLAINED || o->outcome.learns) return true;
    fprintf(stderr, "exphil: --best unexplained wants --value detached or --value shared\n");
    return false;
}

/* What belongs to the other mode; with --init the weights say which it is, and the library looks. */
static bool check_mode(const option_command *command, const train_options *o)
{
    static const char *const window[] = {"window", "stride", "shuffle-frames", "last-only"},
                             *const carry[] = {"time", "segment"};
    bool carries = o->chosen.mode == EXPHIL_MODE_CARRY;
    const char *const *others = carries ? window : carry;
    size_t count = carries ? sizeof window / sizeof window[0] : sizeof carry / sizeof carry[0];
    for (size_t i = 0; !o->init && i < count; i++) {
        if (!options_given(command, others[i])) continue;
        fprintf(stderr, "exphil: --%s is for --mode %s\n", others[i], carries ? "window" : "carry");
        return false;
    }
    return true;
}

enum { CHOICES_MOST = 6 };
/* Words that stand for a number: names[i] is values[i]. */
typedef struct choice {
    const char *option, *text;
    int32_t *value;
    const char *names[CHOICES_MOST + 1]; /* a NULL ends them */
    int32_t values[CHOICES_MOST];
} choice;

static bool read_choice(const choice *c)
{
    for (int i = 0; c->names[i]; i++) {
        if (strcmp(c->text, c->names[i]) != 0) continue;
        *c->value = c->values[i];
        return true;
    }
    fprintf(stderr, "exphil: --%s wants ", c->option);
    for (int i = 0; c->names[i]; i++)
        fprintf(stderr, "%s%s", i == 0 ? "" : c->names[i + 1] ? ", " : " or ", c->names[i]);
    fprintf(stderr, ", not %s\n", c->text);
    return false;
}

static bool read_choices(train_options *o)
{
    const choice choices[] = {
        {"split",
         o->split,
         &o->chosen.split,
         {"game", "time", "stable"},
         {EXPHIL_SPLIT_GAME, EXPHIL_SPLIT_TIME, EXPHIL_SPLIT_STABLE}},
        {"heads",
         o->heads,
         &o->chosen.heads,
         {"independent", "autoregressive"},
         {EXPHIL_HEADS_INDEPENDENT, EXPHIL_HEADS_AUTOREGRESSIVE}},
        {"mode", o->mode, &o->chosen.mode, {"carry", "window"}, {EXPHIL_MODE_CARRY, EXPHIL_MODE_WINDOW}},
        {"schedule",
         o->schedule,
         &o->chosen.schedule,
         {"constant", "cosine", "restarts"},
         {EXPHIL_SCHEDULE_CONSTANT, EXPHIL_SCHEDULE_COSINE, EXPHIL_SCHEDULE_RESTARTS}},
        {"activations",
         o->activations,
         &o->chosen.activations,
         {"f32", "bf16"},
         {EXPHIL_TYPE_F32, EXPHIL_TYPE_BF16}},
        {"best",
         o->best,
         &o->chosen.best,
         {"nll", "loss", "exact", "change", "alone", "unexplained"},
         {SCORE_NLL, SCORE_LOSS, SCORE_EXACT, SCORE_CHANGE, SCORE_ALONE, SCORE_UNEXPLAINED}},
        {"fake-quantize",
         o->fake_quantize,
         &o->chosen.fake_quantize,
         {"int8", "bf16"},
         {EXPHIL_TYPE_I8, EXPHIL_TYPE_BF16}},
    };
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++)
        if (choices[i].text && !read_choice(&choices[i])) return false;
    return precision_of(o->precision, &o->chosen.precision) &&
           delays_read(o->delay, o->chosen.delays, &o->chosen.delay_count);
}

/* ---- the files of a run, which of ranks the first has ---------------------------------------------------- */

/* Rank 0 says which rank differs from it, and in what: yes is what it has itself. */
static bool same_on_all(const train_options *o, bool own, const char *yes, const char *no)
{
    int32_t other;
    if (!ranks_other(o->ranks, own ? 1.0 : 0.0, &other)) return false;
    if (other && ranks_first(o->ranks))
        fprintf(stderr, "exphil: %s: rank 0 has %s and rank %" PRId32 " has %s\n", ranks_name(o->ranks),
                own ? yes : no, other, own ? no : yes);
    return !other;
}

/* With --resume, whether there is something to go on from is asked of every rank. */
static bool find_run(train_options *o)
{
    const bool asked = o->resume;
    char found[TRAIN_PATH + 64];
    keep_begins(o);
    (void)snprintf(found, sizeof found, "a run in --out %s", o->out);
    if (!same_on_all(o, asked, "--resume", "none") ||
        !same_on_all(o, o->resume, found, "none there (--resume wants it in a folder that all ranks see)"))
        return false;
    bool first = ranks_first(o->ranks);
    return ranks_all(o->ranks, (!first || train_take_up(o)) && name_outputs(o) &&
                                   (!first || keep_may_begin(o)) && (!first || run_lock(o->out)));
}

static bool read_tables(train_options *o)
{
    if (o->conditions && !conditions_read(o->conditions, o->condition_mask, &o->told)) return false;
    if (o->weights && !weights_read(o->weights, &o->weighed)) return false;
    o->data.tables[0] = o->conditions ? &o->told.of : NULL;
    o->data.tables[1] = o->weights ? &o->weighed : NULL;
    return true;
}

static int run(train_options *o, int count, char **paths)
{
    if (!keep_names(o) || !find_run(o)) return 1;
    /* The command that began a run goes on with it: its weights say what those of --init said. */
    if (o->resume && o->init) o->init = o->out;
    if (o->resume) o->force = false;
    o->updates_given = o->updates || o->epochs;
    o->data.quiet = o->quiet;
    o->given = notes_options(o->command);
    int status = read_tables(o) ? train_run(o, count, paths) : 1;
    run_unlock();
    replay_table_free(&o->told.of);
    replay_table_free(&o->weighed);
    json_decref(o->given);
    return status;
}

/* ---- the command --------------------------------------------------------------------------------------- */

static train_options asked = {.out = "policy.safetensors",
                              .split = "game",
                              .score_frames = 1000000,
                              .heads = "independent",
                              .mode = "carry",
                              .schedule = "cosine",
                              .blocks = "mamba*2",
                              .time = 60,
                              .accumulate = 1,
                              .shards = 1,
                              .activations = "f32",
                              .log_every = 1,
                              .eval_every = -1,
                              .save_minutes = 5.0,
                              .ranks_timeout = 600.0,
                              .alone = ALONE_FRAMES,
                              .mirror = TRAIN_MIRROR_WHERE_THERE_IS,
                              .rate = 1e-3,
                              .button_weight = 1.0,
                              .condition_mask = 0.1,
                              .outcome = OUTCOME_DEFAULTS,
                              .delay = "0",
                              .data.if_weights = "--init FILE starts from weights"};

static const option_entry entries[] = {
    {NULL, 0, NULL, NULL, "data"},
    {"layout", OPTION_TEXT, &asked.data.layout, "NAME", "melee2 (default), exphil288, slippi or slippi-nana"},
    {"codec", OPTION_TEXT, &asked.data.codec, "NAME",
     "exphil81 (default), exphil81-floor, slippi or slippi-fine"},
    FILE_OPTIONS(asked.data.files),
    {"held-out", OPTION_NUMBER, &asked.held_out, "SHARE",
     "share of the data that is only scored, not learnt from, as 0.1 (default 0: none)"},
    {"split", OPTION_TEXT, &asked.split, "HOW",
     "hold out whole games: game (default); the end of each: time; or games whose side stays when others are "
     "added: stable"},
    {"mirror", OPTION_NUMBER, &asked.mirror, "SHARE",
     "part of the games shown with left and right exchanged, others each epoch (default 0.5; 0 where layout "
     "or "
     "codec have no mirror)"},
    {"conditions", OPTION_TEXT, &asked.conditions, "FILE",
     "table file,port,NAME,... of who plays, which the policy is told (default: none)"},
    {"condition-mask", OPTION_NUMBER, &asked.condition_mask, "SHARE",
     "part of the episodes that training shows without (default 0.1)"},
    {"frame-weights", OPTION_TEXT, &asked.weights, "FILE",
     "table file,port,first,last,weight of how much frames count in training (default: all alike)"},
    {"balance-character", OPTION_NUMBER, &asked.balance_character, "SHARE",
     "part of the weight given to the imitated characters evenly (default 0: as they are)"},
    {"balance-action", OPTION_NUMBER, &asked.balance_action, "SHARE",
     "part of the weight given evenly to frequent and rare inputs (default 0)"},
    {"balance-change", OPTION_NUMBER, &asked.balance_change, "SHARE",
     "part of the weight given evenly to frames that change the input and that repeat it (default 0)"},
    {NULL, 0, NULL, NULL, "players and games, of replays and corpora of games"},
    SELECT_OPTIONS(asked.data.select, "imitate"),
    FRAME_OPTIONS(asked.data.select),
    {NULL, 0, NULL, NULL, "model"},
    {"blocks", OPTION_TEXT, &asked.blocks, "PATTERN", "mamba*2 (default), '(lstm ffn)*3', attention*2, ..."},
    {"hidden", OPTION_INT, &asked.hidden, "N", "width (default 256)"},
    {"head-width", OPTION_INT, &asked.head_width, "N",
     "width of the layer that the heads, one for each stick and the buttons, share (default 128)"},
    {"attention-window", OPTION_INT, &asked.attention_window, "N", "frames that attention sees (default 60)"},
    {"heads", OPTION_TEXT, &asked.heads, "KIND",
     "independent (default): all at once; autoregressive: each sees what those before it chose"},
    NETWORK_OPTIONS(asked.network),
    {"delay", OPTION_TEXT, &asked.delay, "N",
     "frames from a decision to its effect, as where it will play (default 0); 0,2,4: one policy for each"},
    {"no-previous-action", OPTION_FLAG, &asked.no_previous, NULL,
     "past actions are no inputs (default: they are)"},
    {"recorded-start", OPTION_FLAG, &asked.recorded_start, NULL,
     "with a delay: before an episode stand recorded actions, as in 0.1 (default: neutral, as in play)"},
    {"mode", OPTION_TEXT, &asked.mode, "MODE",
     "carry (default): memory goes on for a whole game; window: a decision sees the last frames"},
    {"window", OPTION_INT, &asked.window, "N", "window mode: frames of a window (default 60)"},
    {"init", OPTION_TEXT, &asked.init, "FILE",
     "start from these weights, which say layout, codec and model (default: new)"},
    {NULL, 0, NULL, NULL, "training"},
    {"epochs", OPTION_INT, &asked.epochs, "N",
     "passes over the data (default 16, or what makes 300 updates)"},
    {"updates", OPTION_INT, &asked.updates, "N", "updates instead of epochs (default: by epochs)"},
    {"most-updates", OPTION_INT, &asked.most_updates, "N",
     "updates at most, however many epochs are (default: no limit)"},
    {"batch", OPTION_AUTO, &asked.batch, "N",
     "sequences at a time (default 16, fewer for little data); auto: what fits in memory and the data fill, "
     "at most 64"},
    {"time", OPTION_INT, &asked.time, "N",
     "carry mode: frames that gradients go back, one chunk of a sequence (default 60)"},
    {"segment", OPTION_INT, &asked.segment, "N",
     "cut games into pieces of N frames (default: as batch needs)"},
    {"stride", OPTION_INT, &asked.stride, "N", "window mode: frames between windows (default 1)"},
    {"shuffle-frames", OPTION_INT, &asked.shuffle_frames, "N",
     "window mode: shuffle pieces of 1024 frames, then the windows of N frames of them, "
     "for large data: 65536, say (default: all windows together)"},
    {"last-only", OPTION_FLAG, &asked.last_only, NULL,
     "window mode: loss on the last frame only (default: on all)"},
    {"drop-past", OPTION_NUMBER, &asked.drop_past, "P",
     "probability that a stretch of 256 frames has the past actions of another one (default 0)"},
    {"own-past", OPTION_NUMBER, &asked.own_past, "P",
     "probability that a past action is the policy's own decision (default 0)"},
    {"own-past-ramp", OPTION_INT, &asked.own_past_ramp, "N",
     "updates over which --own-past is reached (default 0: at once)"},
    {"accumulate", OPTION_INT, &asked.accumulate, "N", "batches whose gradients make one update (default 1)"},
    {"shards", OPTION_INT, &asked.shards, "N",
     "same bits with any number of ranks (--mpi, exphil launch) that divides N, a power of two; a batch is "
     "computed in so many parts (default 1)"},
    {"checkpoint-blocks", OPTION_INT, &asked.checkpoint_blocks, "N",
     "recompute activations N blocks at a time, same result: 1 saves most memory, all of them none "
     "(default 0: keep them)"},
    {"activations", OPTION_TEXT, &asked.activations, "TYPE",
     "how they are kept for gradients: f32 (default), or bf16 in half the memory"},
    {"precision", OPTION_TEXT, &asked.precision, "NAME",
     "of the arithmetic on a GPU: f32 (default), tf32, bf16 or f16; weights stay f32"},
    {"fake-quantize", OPTION_TEXT, &asked.fake_quantize, "TYPE",
     "train for exphil quantize: forward with weights rounded to int8 or bf16 (default: not)"},
    {"rate", OPTION_NUMBER, &asked.rate, "X", "learning rate (default 0.001)"},
    {"schedule", OPTION_TEXT, &asked.schedule, "KIND", "of the rate: cosine (default), constant, restarts"},
    {"warmup", OPTION_INT, &asked.warmup, "N",
     "updates in which the rate rises from 0 to --rate (default 0)"},
    {"restart", OPTION_INT, &asked.restart, "N", "updates between restarts; restarts need it (no default)"},
    {"low-ratio", OPTION_NUMBER, &asked.low_ratio, "X",
     "lowest rate of a schedule, as a share of --rate (default 0)"},
    {"decay", OPTION_NUMBER, &asked.decay, "X", "weight decay (default 0)"},
    {"clip", OPTION_NUMBER, &asked.clip, "X", "gradient norm at most (default 1; negative: off)"},
    {"ema", OPTION_NUMBER, &asked.ema, "X",
     "decay of averaged weights, which are then saved (default 0: none)"},
    {"smoothing", OPTION_NUMBER, &asked.smoothing, "X", "label smoothing of categorical heads (default 0)"},
    {"focal", OPTION_NUMBER, &asked.focal, "X",
     "gamma of the focal loss: more weight on frames that are hard (default 0: plain cross-entropy)"},
    {"button-weight", OPTION_NUMBER, &asked.button_weight, "X",
     "weight of a pressed button beside one that is not (default 1)"},
    {"seed", OPTION_INT, &asked.seed, "N",
     "of the random numbers: first weights, order of the data, split (default 0)"},
    {NULL, 0, NULL, NULL, "what came of it, of replays and corpora of games"},
    OUTCOME_OPTIONS(asked.outcome),
    {NULL, 0, NULL, NULL, "output"},
    {"out", OPTION_TEXT, &asked.out, "FILE",
     "weights (default policy.safetensors); FILE.optimizer: the checkpoint; FILE.scores: its held-out "
     "scores; FILE.run.json: all options"},
    {"config", OPTION_TEXT, &asked.config, "FILE", CONFIG_HELP},
    {"preset", OPTION_TEXT, &asked.preset, "NAME",
     "first: some minutes, for a first policy of new data, " PRESET_FIRST
     "; or standard: until it learns no more, " PRESET_STANDARD "; what is given wins (default: none)"},
    {"resume", OPTION_FLAG, &asked.resume, NULL,
     "go on from OUT.optimizer, with the --log and --tensorboard that the run had, or begin where there is "
     "none yet; with --updates or --epochs of another number the run is made longer or shorter (default: "
     "begin anew)"},
    {"force", OPTION_FLAG, &asked.force, NULL, "replace OUT and LOG if they are there (default: refuse)"},
    {"log", OPTION_TEXT, &asked.log, "FILE",
     "one JSON object per line, for exphil plot, as doc/file-format.md says; --resume goes on with it; that "
     "of a run that did not come to its end is moved to FILE.1 (default: none)"},
    {"tensorboard", OPTION_TEXT, &asked.tensorboard, "DIR",
     "the same numbers as event files of TensorBoard; --resume adds a file (default: none)"},
    {"log-every", OPTION_INT, &asked.log_every, "N",
     "updates between lines of the log and of events (default 1)"},
    {"eval-every", OPTION_INT, &asked.eval_every, "N",
     "updates between held-out scores; 0: at the end (default: 5 to 20 in a run, of large data of the end of "
     "each game, "
     "so that they take about a tenth of its time)"},
    {"best", OPTION_TEXT, &asked.best, "SCORE",
     "held-out score of the best weights, kept beside OUT as policy.best.safetensors: lowest nll (default), "
     "loss, "
     "alone, the nll with its own past actions, or unexplained, the value's (default with --value-only); "
     "highest "
     "exact or change"},
    {"patience", OPTION_INT, &asked.patience, "N",
     "end after N held-out scores without a gain in --best (default 0: never)"},
    {"least-gain", OPTION_NUMBER, &asked.least_gain, "SHARE",
     "the least gain that counts for --patience, as 0.01: a hundredth of the score (default 0: any)"},
    {"score-frames", OPTION_INT, &asked.score_frames, "N",
     "score about so many frames at most of training and held-out data, whole games drawn at random (default "
     "1000000; 0: all)"},
    {"alone", OPTION_INT, &asked.alone, "N", "at the end, and for --best alone: " ALONE_HELP},
    {"save-minutes", OPTION_NUMBER, &asked.save_minutes, "X",
     "minutes between checkpoints (default 5; 0: none by the clock); one comes with new best weights, too"},
    {"save-every", OPTION_INT, &asked.save_every, "N",
     "updates between checkpoints, besides (default 0: none)"},
    {"keep", OPTION_INT, &asked.keep, "N",
     "the last N checkpoints stay, with their weights, as policy.1200.safetensors for update 1200 (default "
     "0: only OUT)"},
    {"keep-bad-batch", OPTION_TEXT, &asked.bad_batch, "FILE",
     "keep the first batch whose loss or gradient is not finite, as safetensors (default: none)"},
    {"mpi", OPTION_FLAG, &asked.mpi, NULL,
     "this process is one of several that mpirun or srun has started, which train together; --batch is of "
     "all "
     "of them (default: alone)"},
    {"ranks-timeout", OPTION_NUMBER, &asked.ranks_timeout, "SECONDS",
     "that a process of --mpi or exphil launch waits for another, as while one reads data and another is "
     "done (default 600)"},
    {"threads", OPTION_INT, &asked.machine.threads, "N",
     "processor threads (default 0: one per core; of several processes the share of this one)"},
    {"workers", OPTION_INT, &asked.workers, "N",
     "threads of those that make batches, which change none (default 1; of games one of four, at most 4)"},
    {"memory", OPTION_BYTES, &asked.memory_bytes, "BYTES",
     "of corpora of games: most memory for games and batches, as 512MiB; less is slower (default: as "
     "needed)"},
    {"device", OPTION_TEXT, &asked.machine.device, "NAME", DEVICE_HELP},
    {"memory-limit", OPTION_BYTES, &asked.machine.memory_limit, "BYTES", LIMIT_HELP},
    {"isa", OPTION_TEXT, &asked.machine.isa, "NAME", ISA_HELP},
    {"quiet", OPTION_FLAG, &asked.quiet, NULL,
     "no progress, no lines about the data (default: shown; --json: no progress)"},
    {"json", OPTION_FLAG, &asked.json, NULL, "print one JSON object at the end (default: a table)"},
    {NULL, 0, NULL, NULL, NULL},
};

static bool open_ranks(train_options *o)
{
    const ranks_wanted wanted = {.timeout = o->ranks_timeout, .tree = o->shards > 1, .machine = o->machine};
    const ranks_engine *engine = ranks_engine_for(o->mpi);
    return !engine || (ranks_open(engine, &wanted, &o->ranks) && train_options_same(o->ranks, o->command));
}

/* Games are held out by draws of the seed: scores of such a run are not those of the other. */
static void warn_of_seed(const train_options *o)
{
    if (!o->config || o->quiet || o->held_out == 0.0 || o->chosen.split == EXPHIL_SPLIT_TIME ||
        config_whole(o->config, "seed", 0) == o->seed)
        return;
    fprintf(stderr,
            "exphil: warning: with another --seed than that of %s other games are held out; --split time, "
            "in both, holds out the same\n",
            o->config);
}

int train_command(int argc, char **argv)
{
    static bool given[sizeof entries / sizeof entries[0]];
    static const option_command command = {
        .usage = "train [OPTIONS] FILE...",
        .about =
            "Trains a policy by behaviour cloning: it learns to press what the players of replays pressed.\n"
            "FILE: " FILES_HELP OR_ROWS_HELP "\n"
            "Ctrl-C, SIGTERM and SIGHUP save a checkpoint and end with status 130, 143 and 129, a second one "
            "at "
            "once;\n--resume goes on to the last bit. With --held-out the best weights are kept too.\n"
            "mpirun -n 4 exphil train --mpi ... trains by four processes, exphil launch --gpus all -- exphil "
            "train --device cuda ...\n"
            "by one for each GPU of this machine, to the weights of one but for rounding; status 75 says "
            "that "
            "one of them failed,\nand that --resume may be tried.\n"
            "At the end it scores: nll is minus the log of the probability that the policy gave to what was "
            "pressed, nats\na frame, summed over the parts of the controller; the training objective is what "
            "was minimised: the mean over a\nhead's bits, with --smoothing, --focal and --button-weight. Its "
            "columns: exact is the whole action right; top 3,\nright among the three likeliest; change, on "
            "frames that change the input; majority, always the commonest action;\ncopy, always the last one "
            "again; freq nll, by how often each occurs. Alone, past actions are the policy's own\ndecisions, "
            "as in play.\n"
            "With --value a head learns what is to come of each frame: rewards, those of later frames "
            "counting less, to "
            "the game's\nend. unexplained is the part of their variance that it leaves, 0 perfect, 1 as good "
            "as the mean; "
            "effective, with\n--outcome-beta, how many frames of equal weight would tell as much, as a share "
            "(below 0.2 "
            "the beta is too small);\nclipped, the share at --outcome-cap.",
        .entry = entries,
        .given = given};
    int count, status;
    char **paths = argv + 1;
    asked.command = &command;
    if (!options_read(&command, argc, argv, &count, &status)) return status;
    if (asked.config && !config_read(&command, asked.config, &count, &paths)) return 2;
    if (!take_preset(&command, &asked)) return 2;
    if (!any_files(&asked.data, count)) {
        fprintf(stderr, "exphil: train wants files; see exphil train --help\n");
        return 2;
    }
    if (!read_choices(&asked) || !outcome_check(&command, &asked) || !check_best(&asked) ||
        !check_ranks(&command, &asked) || !check_together(&command, &asked) ||
        !check_network(&command, &asked) || !check_mode(&command, &asked) ||
        !select_check(&asked.data.select) || !check_init(&command, &asked))
        return 2;
    if (!open_ranks(&asked)) return ranks_end(asked.ranks, 1);
    asked.silent = asked.quiet;
    if (!ranks_first(asked.ranks)) asked.quiet = true;
    warn_of_seed(&asked);
    return ranks_end(asked.ranks, run(&asked, count, paths));
}
