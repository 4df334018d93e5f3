/* Outcomes in training. See train_outcome.h. */
#include "train_outcome.h"

#include "notes.h"
#include "train_run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- options --------------------------------------------------------------------------------------------- */

/* Options that ask for outcomes, and those of them that are about weights of frames; a NULL ends them. */
static const char *const of_rewards[] = {"half-life",
                                         "reward-stock",
                                         "reward-damage",
                                         "reward-ledge",
                                         "reward-stalling",
                                         "reward-approach",
                                         "value-weight",
                                         "value-only",
                                         "outcome-beta",
                                         "outcome-cap",
                                         "value-warmup",
                                         "shuffled-weights",
                                         NULL};
static const char *const of_weighing[] = {"outcome-cap", "value-warmup", "shuffled-weights", NULL};

static const char *first_given(const option_command *command, const char *const *names)
{
    for (; *names; names++)
        if (options_given(command, *names)) return *names;
    return NULL;
}

static bool refuse(const char *option, const char *why)
{
    fprintf(stderr, "exphil: --%s %s\n", option, why);
    return false;
}

static const char *const kinds[] = {"none", "detached", "shared"}; /* by EXPHIL_VALUE_... */

static bool read_words(outcome_options *o)
{
    int i = 0;
    while (o->value && i < 3 && strcmp(o->value, kinds[i]) != 0) i++;
    if (i == 3) {
        fprintf(stderr, "exphil: --value wants none, detached or shared, not %s\n", o->value);
        return false;
    }
    o->kind = o->value ? i : EXPHIL_VALUE_NONE;
    if (!o->rewards || strcmp(o->rewards, "melee") == 0 || strcmp(o->rewards, "none") == 0) return true;
    fprintf(stderr, "exphil: --rewards wants melee or none, not %s\n", o->rewards);
    return false;
}

/* Updates by what came have a loss of their own, which the library computes from one batch in plain nll. */
static bool check_others(const train_options *o)
{
    const char *option = o->own_past > 0.0                                  ? "own-past"
                         : o->accumulate > 1                                ? "accumulate"
                         : o->shards > 1                                    ? "shards"
                         : o->chosen.precision == EXPHIL_PRECISION_F16      ? "precision f16"
                         : o->smoothing > 0.0                               ? "smoothing"
                         : o->focal > 0.0                                   ? "focal"
                         : o->button_weight < 1.0 || o->button_weight > 1.0 ? "button-weight"
                                                                            : NULL;
    if (!option) return true;
    fprintf(
        stderr,
        "exphil: --%s and --value: updates that learn from what came do not go with that; leave --%s out%s\n",
        option, option, o->outcome.rewards ? "" : ", or take --rewards none");
    return false;
}

static bool check_weighing(const option_command *command, const outcome_options *o)
{
    const char *weighing = first_given(command, of_weighing);
    if (o->beta == 0.0 && weighing) return refuse(weighing, "is for --outcome-beta X");
    if (o->value_only && o->beta > 0.0)
        return refuse("value-only", "and --outcome-beta: what is not imitated has no weight");
    if (o->beta > 0.0 && o->beta < 1e-6) return refuse("outcome-beta", "wants 0, or 0.000001 or more");
    return true;
}

static double field(double option)
{
    return option == 0.0 ? -1.0 : option; /* of a struct in which 0 is the default */
}

bool outcome_check(const option_command *command, train_options *t)
{
    outcome_options *o = &t->outcome;
    const char *asks = first_given(command, of_rewards);
    if (!read_words(o)) return false;
    const bool none = o->rewards && strcmp(o->rewards, "none") == 0, head = o->kind != EXPHIL_VALUE_NONE;
    if (!asks && o->rewards && !none) asks = "rewards";
    if (asks && none) return refuse(asks, "and --rewards none: there is nothing to learn from");
    if (asks && !head && (!t->init || o->value))
        return refuse(asks, "wants --value detached or --value shared, a head that learns it");
    o->learns = !none && (head || asks);
    o->of.half_life = o->half_life;
    o->of.of = (exphil_melee_reward_config)EXPHIL_MELEE_REWARD_CONFIG_INIT;
    o->of.of.stock = field(o->stock);
    o->of.of.damage = field(o->damage);
    o->of.of.ledge = o->ledge;
    o->of.of.stalling = o->stalling;
    o->of.of.approach = o->approach;
    t->data.rewards = o->learns ? &o->of : NULL;
    if (!o->learns) return true;
    if (o->stock == 0.0 && o->damage == 0.0 && o->ledge == 0.0 && o->stalling == 0.0 && o->approach == 0.0)
        return refuse("reward-stock", "0, and all others 0: there is nothing to learn from");
    if (!(o->half_life >= 0.01)) return refuse("half-life", "wants 0.01 or more seconds");
    return check_others(t) && check_weighing(command, o);
}

/* ---- the head -------------------------------------------------------------------------------------------- */

/* New models are made with it; weights to start from may have another, or none. */
bool outcome_head(train_state *r)
{
    const train_options *o = r->options;
    exphil_model_info info = EXPHIL_MODEL_INFO_INIT;
    exphil_model *with = NULL;
    exphil_error error = EXPHIL_ERROR_INIT;
    if (exphil_model_query(r->model, &info, &error) < 0) return complain(o->init, &error) == 0;
    if (o->outcome.learns && !info.value && !o->outcome.kind) {
        fprintf(stderr,
                "exphil: --init %s: these weights have no value head; --value detached gives them one\n",
                o->init);
        return false;
    }
    if (!o->outcome.kind || o->outcome.kind == info.value) return true;
    if (o->resume) { /* weights to start from are those of the run */
        fprintf(stderr, "exphil: --value: the checkpoint was made with %s, this run has %s\n",
                kinds[info.value], kinds[o->outcome.kind]);
        return false;
    }
    if (exphil_model_with_value(r->model, o->outcome.kind, (uint64_t)o->seed, &with, &error) < 0)
        return complain(o->init, &error) == 0;
    if (!o->quiet && !o->json)
        fprintf(stderr, "%s: a new value head%s\n", o->init, info.value ? ", in the place of its own" : "");
    exphil_model_destroy(r->model);
    r->model = with;
    return true;
}

/* ---- an update ------------------------------------------------------------------------------------------- */

static void fill_config(const train_state *r, exphil_outcome_config *config)
{
    const outcome_options *o = &r->options->outcome;
    *config = (exphil_outcome_config)EXPHIL_OUTCOME_CONFIG_INIT;
    config->imitation = o->value_only ? -1.0 : 1.0;
    config->value = o->weight;
    config->beta = o->beta;
    config->cap = o->cap;
    config->warm_up = o->warmup;
    config->seed = (uint64_t)r->options->seed;
    config->shuffle = o->shuffled;
}

/* A batch alone explains little or much by chance: shown is a mean of late. */
static void show(train_state *r)
{
    const exphil_outcome_metrics *m = &r->outcome;
    if (!m->known) return;
    r->unexplained = r->unexplained > 0.0 ? 0.95 * r->unexplained + 0.05 * m->unexplained : m->unexplained;
}

exphil_status outcome_step(train_state *r, exphil_metrics *metrics, exphil_error *error)
{
    exphil_outcome_config config;
    exphil_optimizer_info optimizer = EXPHIL_OPTIMIZER_INFO_INIT;
    const int64_t began = now_ns(), each = r->data.batches_per_epoch > 0 ? r->data.batches_per_epoch : 1,
                  batch = r->done + r->skipped;
    fill_config(r, &config);
    exphil_status status = exphil_optimizer_query(r->optimizer, &optimizer, error);
    r->outcome = (exphil_outcome_metrics)EXPHIL_OUTCOME_METRICS_INIT;
    if (status >= 0) status = exphil_trainer_step_outcome(r->trainer, &config, &r->outcome, error);
    if (status < 0) return status;
    metrics->update = r->outcome.update;
    metrics->frames = r->outcome.frames;
    metrics->epoch = batch / each;
    metrics->loss = r->outcome.loss;
    metrics->gradient_norm = r->outcome.gradient_norm;
    metrics->rate = optimizer.rate;
    metrics->time_ns = now_ns() - began;
    show(r);
    return status;
}

/* Shares of nothing are no numbers; where all weigh the same nothing is told of weights. */
void outcome_log(const train_state *r, json_t *line)
{
    const exphil_outcome_metrics *m = &r->outcome;
    json_object_update_new(line, json_pack("{s:f,s:I}", "nll", m->nll, "known", (json_int_t)m->known));
    if (m->known)
        json_object_update_new(
            line, json_pack("{s:f,s:f}", "value_loss", m->value_loss, "unexplained", m->unexplained));
    if (m->known && r->options->outcome.beta > 0.0)
        json_object_update_new(
            line, json_pack("{s:f,s:f}", "effective_share", m->effective, "clipped_share", m->clipped));
}

void outcome_words(const train_state *r, char *to, size_t size)
{
    (void)snprintf(to, size, "%s", r->words);
    if (!r->options->outcome.learns || !(r->unexplained > 0.0)) return;
    size_t used = strlen(to);
    (void)snprintf(to + used, size - used, "  unexplained %.3f", r->unexplained);
    used = strlen(to);
    if (r->options->outcome.beta > 0.0)
        (void)snprintf(to + used, size - used, "  effective %.2f  clipped %.2f", r->outcome.effective,
                       r->outcome.clipped);
}

/* ---- notes ----------------------------------------------------------------------------------------------- */

json_t *outcome_notes(const train_options *t)
{
    const outcome_options *o = &t->outcome;
    if (!o->learns) return NULL;
    json_t *notes = json_object();
    rewards_write(&o->of, notes);
    json_object_update_new(notes,
                           json_pack("{s:f,s:f,s:f,s:I,s:b,s:b}", "value-weight", o->weight, "outcome-beta",
                                     o->beta, "outcome-cap", o->cap, "value-warmup", (json_int_t)o->warmup,
                                     "shuffled-weights", o->shuffled, "value-only", o->value_only));
    return notes;
}

static void text_of(const json_t *value, char text[32])
{
    if (json_is_boolean(value))
        (void)snprintf(text, 32, "%s", json_is_true(value) ? "on" : "off");
    else if (json_is_string(value))
        (void)snprintf(text, 32, "%.31s", json_string_value(value));
    else
        (void)snprintf(text, 32, "%g", json_number_value(value));
}

/* One that the checkpoint lacks was made without outcomes. */
static bool same_option(const char *name, const json_t *now, const json_t *before)
{
    char text[2][32] = {"none", "none"};
    if (now && before && json_equal(now, before)) return true;
    if (before) text_of(before, text[0]);
    if (now) text_of(now, text[1]);
    fprintf(stderr, "exphil: --%s: the checkpoint was made with %s, this run has %s\n", name, text[0],
            text[1]);
    return false;
}

bool outcome_same(const train_options *o, const json_t *before)
{
    json_t *now = outcome_notes(o), *value;
    const char *name;
    bool same = true;
    if (!now || !before)
        same = (!now && !before) ||
               same_option("rewards", json_object_get(now, "rewards"), json_object_get(before, "rewards"));
    else
        json_object_foreach(now, name, value) same =
            same_option(name, value, json_object_get(before, name)) && same;
    json_decref(now);
    if (!same)
        fprintf(stderr,
                "exphil: --resume goes on with the run as it was planned; --init %s --out OTHER starts a new "
                "one from "
                "its weights\n",
                o->out);
    return same;
}

bool outcome_rewards(const json_t *train, rewards_options *of)
{
    const json_t *told = json_object_get(train, "outcome");
    *of = (rewards_options){.of = EXPHIL_MELEE_REWARD_CONFIG_INIT, .half_life = 4.0};
    rewards_read(of, told);
    return json_is_object(told);
}
