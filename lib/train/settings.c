/* What must be the same for a run to continue bit for bit. Every setting is 64 bits in the file; how it is
 * printed depends on its kind. Settings that the schedule does not use do not count. */
#include "train/settings.h"

#include <stdio.h>

enum {
    HASH,
    WHOLE,
    NUMBER,
    DELAYS, /* a bit for each */
    LATER = 16,
    SPARE = 32
}; /* LATER: absent in older checkpoints, where it was 0; SPARE: so too,
                                                       * and not written when it is 0 */
typedef struct setting {
    const char *name;
    int32_t kind;
    uint64_t value;
} setting;
enum { SHOWN_TEXT = 256 };

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint64_t losses_hash(const exphil_trainer *trainer)
{
    xph_hasher hasher;
    xph_hash_begin(&hasher);
    for (int64_t h = 0; h < xph_model_shape_of(trainer->model)->heads; h++) {
        const xph_head_loss *loss = &trainer->losses.head[h];
        const double numbers[3] = {loss->weight, loss->smoothing, loss->focal_gamma};
        xph_hash_add(&hasher, numbers, sizeof numbers);
        xph_hash_add(&hasher, trainer->losses.positive[h], sizeof trainer->losses.positive[h]);
    }
    return xph_hash_end(&hasher);
}

static uint64_t conditions_hash(const xph_told *told)
{
    xph_hasher hasher;
    xph_hash_begin(&hasher);
    for (int64_t i = 0; i < told->conditions; i++) {
        const int32_t numbers[2] = {told->condition[i].values, told->condition[i].width};
        xph_hash_add(&hasher, told->name[i], sizeof told->name[i]);
        xph_hash_add(&hasher, numbers, sizeof numbers);
    }
    return told->conditions ? xph_hash_end(&hasher) : 0;
}

/* The longest is model.delay_frames. */
static uint64_t shorter_delays(const xph_told *told)
{
    uint64_t bits = 0;
    for (int64_t i = 0; i + 1 < told->delays; i++) bits |= (uint64_t)1 << told->delay[i];
    return bits;
}

static uint64_t masks_hash(const xph_told *told)
{
    xph_hasher hasher;
    xph_hash_begin(&hasher);
    for (int64_t i = 0; i < told->conditions; i++)
        xph_hash_add(&hasher, &told->condition[i].mask, sizeof told->condition[i].mask);
    return told->conditions ? xph_hash_end(&hasher) : 0;
}

static int64_t put(setting *to, const setting *from, size_t bytes)
{
    memcpy(to, from, bytes);
    return (int64_t)(bytes / sizeof *from);
}

/* The hash of the whole configuration comes last: it differs when nothing nameable does. */
static int64_t model_settings(const exphil_trainer *trainer, setting *to)
{
    const xph_model_shape *shape = xph_model_shape_of(trainer->model);
    const xph_told *told = xph_model_told(trainer->model);
    const setting list[] = {
        {"model.spec", HASH, shape->spec_hash},
        {"model.hidden", WHOLE, (uint64_t)shape->hidden},
        {"model.mode", WHOLE, (uint64_t)shape->mode},
        {"model.window_frames", WHOLE, (uint64_t)shape->window},
        {"model.delay_frames", WHOLE, (uint64_t)shape->delay},
        {"model.action_slots", WHOLE, (uint64_t)shape->slots},
        {"model.conditions", HASH | LATER | SPARE, conditions_hash(told)},
        {"model.shorter_delays", DELAYS | LATER | SPARE, shorter_delays(told)},
        {"model.type", WHOLE, (uint64_t)shape->type},
        {"model.weights", WHOLE, (uint64_t)shape->weights},
        {"model.neutral_start", WHOLE | LATER | SPARE, (uint64_t)shape->neutral_start},
        {"model.value", WHOLE | LATER | SPARE, (uint64_t)(shape->value * (2 - shape->detached))},
        {"model.blocks_and_widths", HASH, xph_model_config_hash(trainer->model)},
    };
    return put(to, list, sizeof list);
}

static int64_t optimizer_settings(const exphil_optimizer_config *config, setting *to)
{
    bool cosine = config->schedule == EXPHIL_SCHEDULE_COSINE,
         restarts = config->schedule == EXPHIL_SCHEDULE_RESTARTS;
    const setting list[] = {
        {"optimizer.rate", NUMBER, bits_of(config->rate)},
        {"optimizer.beta1", NUMBER, bits_of(config->beta1)},
        {"optimizer.beta2", NUMBER, bits_of(config->beta2)},
        {"optimizer.epsilon", NUMBER, bits_of(config->epsilon)},
        {"optimizer.decay", NUMBER, bits_of(config->decay)},
        {"optimizer.clip_norm", NUMBER, bits_of(config->clip_norm)},
        {"optimizer.ema_decay", NUMBER, bits_of(config->ema_decay)},
        {"optimizer.schedule", WHOLE, (uint64_t)config->schedule},
        {"optimizer.warmup_updates", WHOLE, (uint64_t)config->warmup_updates},
        {"optimizer.low_ratio", NUMBER, cosine || restarts ? bits_of(config->low_ratio) : 0},
        {"optimizer.total_updates", WHOLE, cosine ? (uint64_t)config->total_updates : 0},
        {"optimizer.restart_updates", WHOLE, restarts ? (uint64_t)config->restart_updates : 0},
        {"optimizer.restart_factor", NUMBER, restarts ? bits_of(config->restart_factor) : 0},
    };
    return put(to, list, sizeof list);
}

static int64_t data_settings(const exphil_prefetcher *prefetcher, setting *to)
{
    const exphil_sampling *sampling = xph_prefetcher_sampling(prefetcher);
    const setting list[] = {
        {"dataset", HASH, xph_dataset_content_hash(xph_prefetcher_dataset(prefetcher))},
        {"sampling.batch", WHOLE, (uint64_t)sampling->batch},
        {"sampling.time", WHOLE, (uint64_t)sampling->time},
        {"sampling.stride", WHOLE, (uint64_t)sampling->stride},
        {"sampling.segment_frames", WHOLE, (uint64_t)sampling->segment_frames},
        {"sampling.seed", WHOLE, sampling->seed},
        {"sampling.in_order", WHOLE, (uint64_t)sampling->in_order},
        {"sampling.last_only", WHOLE, (uint64_t)sampling->last_only},
        {"sampling.shuffle_frames", WHOLE | LATER | SPARE, (uint64_t)sampling->shuffle_frames},
        {"sampling.drop_past", NUMBER | LATER | SPARE, bits_of(sampling->drop_past)},
        {"sampling.mirror", NUMBER | LATER | SPARE, sampling->mirror > 0 ? bits_of(sampling->mirror) : 0},
        {"dataset.conditions", HASH | LATER | SPARE, xph_prefetcher_values_hash(prefetcher)},
        {"sampling.masks", HASH | LATER | SPARE, masks_hash(xph_prefetcher_told(prefetcher))},
        {"sampling.balance_character", NUMBER | LATER | SPARE, bits_of(sampling->balance_character)},
        {"sampling.balance_action", NUMBER | LATER | SPARE, bits_of(sampling->balance_action)},
        {"sampling.balance_change", NUMBER | LATER | SPARE, bits_of(sampling->balance_change)},
        {"dataset.weights", HASH | LATER | SPARE, xph_prefetcher_weights_hash(prefetcher)},
    };
    return put(to, list, sizeof list);
}

static int64_t list_settings(const exphil_trainer *trainer, setting *to)
{
    const exphil_communicator *with = &trainer->communicator;
    int64_t count = model_settings(trainer, to);
    to[count++] = (setting){"losses", HASH, losses_hash(trainer)};
    to[count++] = (setting){"accumulate", WHOLE, (uint64_t)trainer->accumulate};
    to[count++] = (setting){"fake_quantize", WHOLE | LATER, (uint64_t)trainer->fake_quantize};
    to[count++] = (setting){"precision", WHOLE | LATER, (uint64_t)trainer->precision};
    to[count++] = (setting){"activations", WHOLE | LATER, (uint64_t)trainer->activations};
    /* making activations again changes nothing where they were kept as they are */
    bool same = trainer->activations == EXPHIL_TYPE_F32;
    to[count++] =
        (setting){"checkpoint_blocks", WHOLE | LATER, same ? 0 : (uint64_t)trainer->checkpoint_blocks};
    const xph_own_past *own = &trainer->own_past;
    to[count++] = (setting){"own_past", NUMBER | LATER | SPARE, bits_of(own->share)};
    to[count++] =
        (setting){"own_past_ramp_updates", WHOLE | LATER | SPARE, own->share > 0.0 ? (uint64_t)own->ramp : 0};
    to[count++] = (setting){"own_past_seed", WHOLE | LATER | SPARE, own->share > 0.0 ? own->seed : 0};
    to[count++] =
        (setting){"shards", WHOLE | LATER | SPARE, trainer->shards > 1 ? (uint64_t)trainer->shards : 0};
    /* ranks that meet do together what one does alone */
    bool alone = trainer->said != NULL;
    to[count++] = (setting){"communicator.rank", WHOLE, alone ? 0 : (uint64_t)with->rank};
    to[count++] = (setting){"communicator.ranks", WHOLE, alone ? 1 : (uint64_t)with->ranks};
    count += optimizer_settings(&trainer->optimizer->config, to + count);
    if (trainer->prefetcher) count += data_settings(trainer->prefetcher, to + count);
    return count;
}

void xph_settings_write(const exphil_trainer *trainer, xph_json_out *out)
{
    setting settings[XPH_SETTINGS_MOST];
    int64_t count = list_settings(trainer, settings);
    xph_json_open(out, "settings", '{');
    for (int64_t i = 0; i < count; i++)
        if (settings[i].value || !(settings[i].kind & SPARE))
            xph_json_add_hex(out, settings[i].name, settings[i].value);
    xph_json_close(out, '}');
}

int64_t xph_settings_values(const exphil_trainer *trainer, uint64_t value[XPH_SETTINGS_MOST])
{
    setting settings[XPH_SETTINGS_MOST];
    int64_t count = list_settings(trainer, settings);
    for (int64_t i = 0; i < count; i++) value[i] = settings[i].value;
    return count;
}

static const char *show_delays(char text[SHOWN_TEXT], uint64_t bits)
{
    size_t at = (size_t)snprintf(text, SHOWN_TEXT, "{");
    for (int d = 0; d < 64; d++)
        if (bits >> d & 1) at += (size_t)snprintf(text + at, SHOWN_TEXT - at, at > 1 ? " %d" : "%d", d);
    snprintf(text + at, SHOWN_TEXT - at, "}");
    return text;
}

static const char *show(char text[SHOWN_TEXT], int32_t kind, uint64_t value)
{
    double number;
    memcpy(&number, &value, sizeof number);
    if (kind == DELAYS) return show_delays(text, value);
    if (kind == NUMBER) return xph_format_double(text, number, 9);
    if (kind == WHOLE)
        snprintf(text, SHOWN_TEXT, "%lld", (long long)value);
    else
        snprintf(text, SHOWN_TEXT, "%016llx", (unsigned long long)value);
    return text;
}

const char *xph_settings_name(const exphil_trainer *trainer, int64_t i)
{
    setting settings[XPH_SETTINGS_MOST];
    return i < list_settings(trainer, settings) ? settings[i].name : "";
}

exphil_status xph_settings_differ(const exphil_trainer *trainer, int64_t i, uint64_t value, uint64_t first,
                                  int32_t rank, exphil_error *error)
{
    setting settings[XPH_SETTINGS_MOST];
    char own[SHOWN_TEXT], zero[SHOWN_TEXT];
    (void)list_settings(trainer, settings);
    const int32_t kind = settings[i].kind & ~(LATER | SPARE);
    return xph_fail(error, EXPHIL_E_MISMATCH, "rank %d has %s %s, rank 0 has %s", rank, settings[i].name,
                    show(own, kind, value), show(zero, kind, first));
}

/* What differs, and what the file has. */
typedef struct difference {
    const setting *now;
    uint64_t stored;
} difference;

/* Is this the consequence of another difference? */
static bool implied(const difference *list, int64_t count, const setting *s)
{
    const bool whole =
                   strcmp(s->name, "model.blocks_and_widths") == 0 || strcmp(s->name, "model.weights") == 0,
               slots = strcmp(s->name, "model.action_slots") == 0;
    for (int64_t i = 0; i < count; i++) {
        if (whole && strncmp(list[i].now->name, "model.", 6) == 0) return true;
        if (slots && strcmp(list[i].now->name, "model.delay_frames") == 0) return true;
    }
    return false;
}

/* One line: the first with both values, the others as short as they must be. Returns how many found no place. */
static int64_t tell(const difference *list, int64_t count, bool values, char *text, size_t bytes)
{
    size_t used = 0;
    for (int64_t i = 0; i < count; i++) {
        const setting *s = list[i].now;
        const int32_t kind = s->kind & ~(LATER | SPARE);
        char before[SHOWN_TEXT], now[SHOWN_TEXT];
        int wrote;
        show(before, kind, list[i].stored);
        show(now, kind, s->value);
        if (i == 0)
            wrote = snprintf(text, bytes, "checkpoint was made with %s %s, this run has %s", s->name, before,
                             now);
        else if (kind == HASH || !values)
            wrote = snprintf(text + used, bytes - used, "; %s", s->name);
        else
            wrote = snprintf(text + used, bytes - used, "; %s %s, now %s", s->name, before, now);
        if (wrote < 0 || (size_t)wrote >= bytes - used) {
            text[used] = 0;
            return count - i;
        }
        used += (size_t)wrote;
    }
    return 0;
}

static exphil_status refuse(const difference *list, int64_t count, exphil_error *error)
{
    char text[sizeof error->message - sizeof "; and 99 more"];
    int64_t left_out = tell(list, count, true, text, sizeof text);
    if (left_out) left_out = tell(list, count, false, text, sizeof text);
    if (!left_out) return xph_fail(error, EXPHIL_E_MISMATCH, "%s", text);
    return xph_fail(error, EXPHIL_E_MISMATCH, "%s; and %lld more", text, (long long)left_out);
}

/* Is this difference one that the run asks for? */
static bool allowed(const exphil_trainer *trainer, const setting *s)
{
    return trainer->optimizer->config.resume_new_total && strcmp(s->name, "optimizer.total_updates") == 0;
}

exphil_status xph_settings_check(const exphil_trainer *trainer, const xph_json *json, exphil_error *error)
{
    setting settings[XPH_SETTINGS_MOST];
    difference list[XPH_SETTINGS_MOST];
    int64_t count = list_settings(trainer, settings), found = 0, version;
    int32_t object;
    XPH_TRY(xph_json_get_int(json, 0, "version", 1, 1, &version, error));
    XPH_TRY(xph_json_get(json, 0, "settings", XPH_JSON_OBJECT, &object, error));
    bool fed = xph_json_find(json, object, "dataset") >= 0;
    if (fed != (trainer->prefetcher != NULL))
        return xph_fail(error, EXPHIL_E_MISMATCH, "checkpoint was made %s a prefetcher, this trainer has %s",
                        fed ? "with" : "without", fed ? "none" : "one");
    for (int64_t i = 0; i < count; i++) {
        uint64_t stored = 0;
        bool absent = settings[i].kind & LATER && xph_json_find(json, object, settings[i].name) < 0;
        if (!absent) XPH_TRY(xph_json_get_hex(json, object, settings[i].name, &stored, error));
        if (stored != settings[i].value && !implied(list, found, &settings[i]) &&
            !allowed(trainer, &settings[i]))
            list[found++] = (difference){&settings[i], stored};
    }
    return found ? refuse(list, found, error) : EXPHIL_OK;
}
