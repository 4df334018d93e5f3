/* `exphil train --resume`: goes on from a checkpoint, also to another end, and translates the library's message about a
 * checkpoint of another run into options. */
#include "system.h"
#include "train_run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WORDS = 4 };

/* A setting of a checkpoint and the option it comes from; words[i] stands for the number i. */
typedef struct setting {
    const char *name, *option;
    const char *words[WORDS];
} setting;

static const setting settings[] = {
    {"model.hidden", "hidden", {0}},
    {"model.mode", "mode", {"carry", "window"}},
    {"model.window_frames", "window", {0}},
    {"model.delay_frames", "delay", {0}},
    {"model.value", "value", {"none", "detached", "shared"}},
    {"accumulate", "accumulate", {0}},
    {"shards", "shards", {0}},
    {"fake_quantize", "fake-quantize", {"off", "f64", "bf16", "int8"}},
    {"precision", "precision", {"f32", "tf32", "bf16", "f16"}},
    {"activations", "activations", {"f32", "f64", "bf16", "int8"}},
    {"checkpoint_blocks", "checkpoint-blocks", {0}},
    {"optimizer.rate", "rate", {0}},
    {"optimizer.decay", "decay", {0}},
    {"optimizer.clip_norm", "clip", {0}},
    {"optimizer.ema_decay", "ema", {0}},
    {"optimizer.schedule", "schedule", {"constant", "cosine", "restarts"}},
    {"optimizer.warmup_updates", "warmup", {0}},
    {"optimizer.low_ratio", "low-ratio", {0}},
    {"optimizer.total_updates", "updates", {0}},
    {"optimizer.restart_updates", "restart", {0}},
    {"sampling.batch", "batch", {0}},
    {"sampling.time", "time", {0}},
    {"sampling.stride", "stride", {0}},
    {"sampling.shuffle_frames", "shuffle-frames", {0}},
    {"sampling.segment_frames", "segment", {0}},
    {"sampling.seed", "seed", {0}},
    {"sampling.drop_past", "drop-past", {0}},
    {"own_past", "own-past", {0}},
    {"own_past_ramp_updates", "own-past-ramp", {0}},
    {"own_past_seed", "seed", {0}},
    {"sampling.mirror", "mirror", {0}},
    {"sampling.last_only", "last-only", {"off", "on"}},
    {"sampling.balance_character", "balance-character", {0}},
    {"sampling.balance_action", "balance-action", {0}},
    {"sampling.balance_change", "balance-change", {0}},
};

/* Of these the file keeps a hash or a sum alone. */
#define MODEL_OPTIONS "--blocks, --heads, --attention-window or another option of the model"
static const char *const several[][2] = {
    {"model.spec", "--layout or --codec"},      {"model.action_slots", "--no-previous-action or --delay"},
    {"model.weights", MODEL_OPTIONS}, /* their number */
    {"model.blocks_and_widths", MODEL_OPTIONS}, {"losses", "--smoothing, --focal or --button-weight"},
    {"model.conditions", "--conditions"},       {"model.shorter_delays", "--delay"},
    {"dataset.conditions", "--conditions"},     {"dataset.weights", "--frame-weights"},
    {"sampling.masks", "--condition-mask"},     {"dataset", "the data, --held-out or --split"},
};

static const char *word_of(const setting *s, const char *number)
{
    long index = strtol(number, NULL, 10);
    return index >= 0 && index < WORDS && s->words[index] ? s->words[index] : number;
}

/* now "": the message had no space for values. */
static bool say_option(const char *name, const char *before, const char *now)
{
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        if (strcmp(settings[i].name, name) != 0) continue;
        if (now[0])
            fprintf(stderr, "exphil: --%s: the checkpoint was made with %s, this run has %s\n",
                    settings[i].option, word_of(&settings[i], before), word_of(&settings[i], now));
        else
            fprintf(stderr, "exphil: --%s: the checkpoint was made with another value\n", settings[i].option);
        return true;
    }
    for (size_t i = 0; i < sizeof several / sizeof several[0]; i++) {
        if (strcmp(several[i][0], name) != 0) continue;
        fprintf(stderr, "exphil: the checkpoint was made with another choice of %s\n", several[i][1]);
        return true;
    }
    return false;
}

/* One difference: the words of the library are in lib/train/settings.h. False: it is none that an option makes. */
static bool explain_one(const char *text, const char *parts)
{
    char name[64] = "", before[64] = "", now[64] = "";
    return sscanf(text, parts, name, before, now) >= 1 && say_option(name, before, now);
}

/* What stands behind the first one. */
static void explain_others(const char *text)
{
    long long more = 0;
    for (const char *at = strstr(text, "; "); at; at = strstr(at + 2, "; ")) {
        if (sscanf(at, "; and %lld more", &more) == 1)
            fprintf(stderr, "exphil: and %lld more settings differ\n", more);
        else if (!explain_one(at, "; %63[^ ;] %63[^,;], now %63[^ ;]"))
            fprintf(stderr, "exphil: %.*s differs too\n", (int)strcspn(at + 2, ";"), at + 2);
    }
}

static void explain_resume(const train_options *o, const exphil_error *error)
{
    static const char begin[] = "checkpoint was made with ", head[] = "; model.value ";
    const char *at = strstr(error->message, begin), *value = strstr(error->message, head);
    if (value) /* then the number of weights, which comes first, is another one too */
        (void)explain_one(value, "; %63[^ ;] %63[^,;], now %63[^ ;]");
    else if (at && explain_one(at + sizeof begin - 1, "%63s %63[^,], this run has %63[^ ;]"))
        explain_others(at);
    else
        complain(o->out, error);
    if (error->status != EXPHIL_E_MISMATCH) return;
    fprintf(stderr,
            "exphil: --resume goes on with the run as it was planned; --init %s --out OTHER starts a new one "
            "from its weights\n",
            o->out);
}

/* ---- going on -------------------------------------------------------------------------------------------- */

/* The end of the run is that of its schedule: a cosine falls to it. Weights of 0.1 do not say which it was. */
static void say_end(const train_state *r, double rate)
{
    const train_options *o = r->options;
    const int64_t before = r->planned_before;
    if (o->quiet || o->json || !before || before == r->updates || r->done >= r->updates) return;
    fprintf(stderr, "after update %" PRId64 " the run goes on to update %" PRId64 ", not %" PRId64, r->done,
            r->updates, before);
    if (o->chosen.schedule == EXPHIL_SCHEDULE_COSINE)
        fprintf(stderr, ": its cosine schedule ends there now, and the next rate is %.3g\n", rate);
    else
        fprintf(stderr, "; its schedule, %s, does not depend on that\n", o->schedule);
}

void train_say_resumed(const train_state *r)
{
    const train_options *o = r->options;
    system_facts facts;
    struct tm date;
    char when[32] = "";
    if (o->quiet || o->json) return;
    if (system_look(o->checkpoint, &facts) && system_date(facts.modified, false, &date))
        (void)strftime(when, sizeof when, " of %Y-%m-%d %H:%M", &date);
    fprintf(stderr, "goes on from update %" PRId64 ", a checkpoint%s\n", r->done, when);
}

static bool check_end(const train_state *r)
{
    if (!r->options->updates_given || r->updates >= r->done) return true;
    fprintf(stderr,
            "exphil: --%s: %" PRId64 " updates are fewer than the %" PRId64 " that the run has made\n",
            r->options->updates ? "updates" : "epochs", r->updates, r->done);
    return false;
}

bool train_resume(train_state *r)
{
    const train_options *o = r->options;
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_optimizer_info info = EXPHIL_OPTIMIZER_INFO_INIT;
    if (!o->resume) return true;
    if (exphil_trainer_resume(r->trainer, o->out, &error) < 0) {
        ranks_together(o->ranks, true);
        explain_resume(o, &error);
        return false;
    }
    if (exphil_optimizer_query(r->optimizer, &info, &error) < 0) return complain("optimizer", &error) == 0;
    r->done = info.updates;
    if (!check_end(r) || !train_notes_begin(r) || !keep_resume(r)) return false;
    say_end(r, info.rate);
    return true;
}
