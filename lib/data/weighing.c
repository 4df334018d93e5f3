/* What rows weigh in batches. Classes are counted in up to three passes over the same rows: how heavy each value of each head
 * is, then each class, then what comes out. Sums are made in one order by one thread: no worker comes into them. */
#include "data/weighing.h"

#include "data/order.h"
#include "data/row_weights.h"

#define RATIO_LEAST 0.1
#define RATIO_MOST  10.0
#define FACTOR_MOST 10.0

struct xph_weighing {
    exphil_context *context;
    const exphil_dataset *dataset;
    const exphil_sampling *how;
    uint64_t hash;
    uint32_t *characters; /* those that occur, ascending */
    double *character;    /* [characters] weight of each class, then its factor */
    int64_t character_count, character_capacity, weight_capacity; /* of characters, of character */
    double *value;  /* [values] weight of each value of all heads */
    double *action; /* [values] of the class of which it is the rarest value, then its factor */
    int64_t first_value[EXPHIL_HEADS_MAX]; /* of a head: its classes, or 2 for each bit */
    int64_t values;
    double change[2];          /* of targets that repeat, that differ; then their factors */
    double scale;              /* of the product of factors */
    double rows, sum, squares; /* those that were counted, of what they weigh */
    int32_t read[(XPH_PIECE + 1) * EXPHIL_HEADS_MAX]; /* actions at hand; no place for a stack */
};

/* ---- classes ----------------------------------------------------------------------------------------- */

static bool reads_actions(const exphil_sampling *how)
{
    return how->balance_action > 0 || how->balance_change > 0;
}

static bool balances(const exphil_sampling *how)
{
    return reads_actions(how) || how->balance_character > 0;
}

/* Where a character stands among those that occur, or would. */
static int64_t find_character(const xph_weighing *w, uint32_t character)
{
    int64_t low = 0;
    for (int64_t high = w->character_count; low < high;) {
        int64_t middle = low + (high - low) / 2;
        if (w->characters[middle] < character) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The rarest of an action's values; of equally rare ones the first. */
static int64_t rarest_value(const xph_weighing *w, const int32_t *action)
{
    const exphil_spec *spec = w->dataset->spec;
    int64_t best = -1;
    for (int64_t h = 0; h < spec->head_count; h++) {
        bool bits = spec->heads[h].kind == EXPHIL_BERNOULLI;
        for (int32_t i = 0; i < (bits ? spec->heads[h].count : 1); i++) {
            int64_t at = w->first_value[h] + (bits ? 2 * i + ((action[h] >> i) & 1) : action[h]);
            if (best < 0 || w->value[at] < w->value[best]) best = at;
        }
    }
    return best;
}

static void add_values(xph_weighing *w, const int32_t *action, double weight)
{
    const exphil_spec *spec = w->dataset->spec;
    for (int64_t h = 0; h < spec->head_count; h++) {
        bool bits = spec->heads[h].kind == EXPHIL_BERNOULLI;
        for (int32_t i = 0; i < (bits ? spec->heads[h].count : 1); i++)
            w->value[w->first_value[h] + (bits ? 2 * i + ((action[h] >> i) & 1) : action[h])] += weight;
    }
}

/* before may be NULL: then nothing was decided before the action, which is neutral. */
static bool differs(const xph_weighing *w, const int32_t *action, const int32_t *before)
{
    const exphil_spec *spec = w->dataset->spec;
    for (int64_t h = 0; h < spec->head_count; h++)
        if (action[h] != (before ? before[h] : spec->heads[h].neutral)) return true;
    return false;
}

/* Weights of classes become factors. */
static void weights_to_factors(double *class, int64_t count, double share)
{
    double all = 0.0, occur = 0.0;
    for (int64_t i = 0; i < count; i++) {
        all += class[i];
        occur += class[i] > 0.0;
    }
    for (int64_t i = 0; i < count; i++) {
        double ratio = class[i] > 0.0 ? all / (occur * class[i]) : RATIO_MOST;
        if (ratio < RATIO_LEAST) ratio = RATIO_LEAST;
        if (ratio > RATIO_MOST) ratio = RATIO_MOST;
        class[i] = 1.0 - share + share * ratio;
    }
}

static double character_factor(const xph_weighing *w, const xph_episode *episode)
{
    if (!(w->how->balance_character > 0)) return 1.0;
    return w->character[find_character(w, (uint32_t)episode->block->facts.character)];
}

/* Of the product, before it is scaled. */
static double factor_of(const xph_weighing *w, double character, const int32_t *action, const int32_t *before)
{
    double factor = character;
    if (w->how->balance_action > 0) factor *= w->action[rarest_value(w, action)];
    if (w->how->balance_change > 0) factor *= w->change[differs(w, action, before)];
    return factor < FACTOR_MOST ? factor : FACTOR_MOST;
}

/* ---- counting ---------------------------------------------------------------------------------------- */

static void note(xph_weighing *w, double rows, double weight)
{
    w->rows += rows;
    w->sum += rows * weight;
    w->squares += rows * weight * weight;
}

/* What the host says of one episode's rows that have a target. */
static double look_at_episode(xph_weighing *w, int64_t index, xph_hasher *hasher, bool *any)
{
    const xph_episode *episode = &w->dataset->episodes[index];
    int64_t end = xph_usable_frames(episode, w->how->delay_frames);
    double sum = 0.0;
    float weight;
    for (int64_t t = 0, count; t < end; t += count) {
        count = xph_row_weights_run(w->dataset->weights, episode, t, end, &weight);
        sum += (double)count * (double)weight;
        note(w, (double)count, (double)weight);
    }
    for (int64_t t = 0, count; t < episode->frames; t += count) {
        count = xph_row_weights_run(w->dataset->weights, episode, t, episode->frames, &weight);
        if (weight == 1.0f) continue;
        const int64_t place[3] = {index, t, count};
        xph_hash_add(hasher, place, sizeof place);
        xph_hash_add(hasher, &weight, sizeof weight);
        *any = true;
    }
    return sum;
}

static exphil_status count_character(xph_weighing *w, const xph_episode *episode, double weight,
                                     exphil_error *error)
{
    uint32_t character = (uint32_t)episode->block->facts.character;
    int64_t at = find_character(w, character);
    if (at == w->character_count || w->characters[at] != character) {
        uint32_t *characters = xph_grow(w->context, w->characters, &w->character_capacity,
                                        w->character_count + 1, sizeof *characters, error);
        if (!characters) return EXPHIL_E_MEMORY;
        w->characters = characters;
        double *weights = xph_grow(w->context, w->character, &w->weight_capacity, w->character_count + 1,
                                   sizeof *weights, error);
        if (!weights) return EXPHIL_E_MEMORY;
        w->character = weights;
        size_t behind = (size_t)(w->character_count - at);
        memmove(characters + at + 1, characters + at, behind * sizeof *characters);
        memmove(weights + at + 1, weights + at, behind * sizeof *weights);
        characters[at] = character;
        weights[at] = 0.0;
        w->character_count++;
    }
    w->character[at] += weight;
    return EXPHIL_OK;
}

static exphil_status look_at_episodes(xph_weighing *w, exphil_error *error)
{
    xph_hasher hasher;
    bool any = false;
    xph_hash_begin(&hasher);
    for (int64_t i = 0; i < w->dataset->episode_count; i++) {
        double weight = look_at_episode(w, i, &hasher, &any);
        if (w->how->balance_character > 0)
            XPH_TRY(count_character(w, &w->dataset->episodes[i], weight, error));
    }
    if (any) w->hash = xph_hash_end(&hasher);
    if (w->sum > 0.0) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_INVALID, "none of the %.0f rows with a target weighs more than 0",
                    w->rows);
}

/* What comes out where characters alone are balanced. */
static void sum_episodes(xph_weighing *w)
{
    w->rows = w->sum = w->squares = 0.0;
    for (int64_t i = 0; i < w->dataset->episode_count; i++) {
        const xph_episode *episode = &w->dataset->episodes[i];
        int64_t end = xph_usable_frames(episode, w->how->delay_frames);
        double factor = factor_of(w, character_factor(w, episode), NULL, NULL);
        float weight;
        for (int64_t t = 0, count; t < end; t += count) {
            count = xph_row_weights_run(w->dataset->weights, episode, t, end, &weight);
            note(w, (double)count, (double)weight * factor);
            w->scale += (double)count * (double)weight;
        }
    }
}

enum { VALUES, CLASSES, RESULT };

/* Actions of frames [first, first + count) of the dataset, which are targets of rows d frames before them. */
static void count_stretch(xph_weighing *w, int32_t pass, int64_t first, int64_t count, const int32_t *actions)
{
    const xph_episode *episode = &w->dataset->episodes[xph_episode_of(w->dataset, first)];
    int64_t heads = w->dataset->shape.heads;
    double character = pass == RESULT ? character_factor(w, episode) : 1.0;
    for (int64_t i = 0; i < count; i++) {
        int64_t frame = first - episode->first + i, row = frame - w->how->delay_frames;
        const int32_t *action = actions + i * heads, *before = frame ? action - heads : NULL;
        float said;
        if (row < 0) continue;
        (void)xph_row_weights_run(w->dataset->weights, episode, row, row + 1, &said);
        double weight = (double)said;
        if (pass == VALUES) {
            add_values(w, action, weight);
        } else if (pass == CLASSES) {
            if (w->action) w->action[rarest_value(w, action)] += weight;
            w->change[differs(w, action, before)] += weight;
        } else {
            note(w, 1.0, weight * factor_of(w, character, action, before));
            w->scale += weight;
        }
    }
}

static exphil_status count_pass(xph_weighing *w, int32_t pass, exphil_error *error)
{
    const exphil_dataset *dataset = w->dataset;
    int64_t rows = xph_dataset_action_rows(dataset);
    xph_piece_buffer buffer = {.context = dataset->context};
    exphil_status status = EXPHIL_OK;
    for (int64_t done = 0, first, count; done < rows && status >= 0; done += count) {
        count = xph_dataset_action_run(dataset, done, &first);
        int64_t before = first > dataset->episodes[xph_episode_of(dataset, first)].first;
        if (xph_cancelled(dataset->context))
            status = xph_fail(error, EXPHIL_E_CANCELLED, "cancelled by the host");
        if (status >= 0)
            status =
                xph_dataset_read_actions(dataset, &buffer, first - before, count + before, w->read, error);
        if (status >= 0) count_stretch(w, pass, first, count, w->read + before * dataset->shape.heads);
    }
    xph_piece_buffer_free(&buffer);
    return status;
}

static void count_values(xph_weighing *w, const exphil_spec *spec)
{
    for (int64_t h = 0; h < spec->head_count; h++) {
        w->first_value[h] = w->values;
        w->values += (int64_t)spec->heads[h].count * (spec->heads[h].kind == EXPHIL_BERNOULLI ? 2 : 1);
    }
}

static exphil_status make_values(xph_weighing *w, exphil_error *error)
{
    count_values(w, w->dataset->spec);
    w->value = xph_calloc(w->context, (size_t)w->values, sizeof *w->value);
    w->action = xph_calloc(w->context, (size_t)w->values, sizeof *w->action);
    return w->value && w->action ? EXPHIL_OK : xph_no_memory((size_t)w->values * sizeof *w->value, error);
}

static exphil_status count_actions(xph_weighing *w, exphil_error *error)
{
    const exphil_sampling *how = w->how;
    if (how->balance_action > 0) {
        XPH_TRY(make_values(w, error));
        XPH_TRY(count_pass(w, VALUES, error));
    }
    XPH_TRY(count_pass(w, CLASSES, error));
    if (w->action) weights_to_factors(w->action, w->values, how->balance_action);
    weights_to_factors(w->change, 2, how->balance_change);
    w->rows = w->sum = w->squares = 0.0;
    XPH_TRY(count_pass(w, RESULT, error));
    if (w->sum > 0.0) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_INVALID,
                    "sampling.balance_%s: none of the %.0f rows that were counted weighs more than 0",
                    how->balance_action > 0 ? "action" : "change", w->rows);
}

/* The mean of the factors over what the host says is 1 then. */
static exphil_status balance(xph_weighing *w, exphil_error *error)
{
    if (w->how->balance_character > 0)
        weights_to_factors(w->character, w->character_count, w->how->balance_character);
    w->scale = 0.0;
    if (reads_actions(w->how))
        XPH_TRY(count_actions(w, error));
    else
        sum_episodes(w);
    w->scale /= w->sum;
    return EXPHIL_OK;
}

/* ---- making ------------------------------------------------------------------------------------------ */

static exphil_status make(xph_weighing *w, exphil_error *error)
{
    XPH_TRY(look_at_episodes(w, error));
    return balances(w->how) ? balance(w, error) : EXPHIL_OK;
}

size_t xph_weighing_bytes(const exphil_dataset *dataset, const exphil_sampling *how)
{
    xph_weighing none = {.how = how};
    if (!xph_row_weights_any(dataset->weights) && !balances(how)) return 0;
    if (how->balance_action > 0) count_values(&none, dataset->spec);
    return sizeof none + (size_t)none.values * (sizeof *none.value + sizeof *none.action);
}

exphil_status xph_weighing_create(const exphil_dataset *dataset, const exphil_sampling *how,
                                  xph_weighing **weighing, exphil_error *error)
{
    *weighing = NULL;
    if (!xph_row_weights_any(dataset->weights) && !balances(how)) return EXPHIL_OK;
    xph_weighing *made = xph_calloc(dataset->context, 1, sizeof *made);
    if (!made) return xph_no_memory(sizeof *made, error);
    made->context = dataset->context;
    made->dataset = dataset;
    made->how = how;
    made->scale = 1.0;
    exphil_status status = make(made, error);
    if (status < 0) {
        xph_weighing_free(made);
        return status;
    }
    *weighing = made;
    return EXPHIL_OK;
}

void xph_weighing_free(xph_weighing *weighing)
{
    if (!weighing) return;
    exphil_context *context = weighing->context;
    size_t values = (size_t)weighing->values;
    xph_free(context, weighing->characters,
             (size_t)weighing->character_capacity * sizeof *weighing->characters);
    xph_free(context, weighing->character, (size_t)weighing->weight_capacity * sizeof *weighing->character);
    xph_free(context, weighing->value, values * sizeof *weighing->value);
    xph_free(context, weighing->action, values * sizeof *weighing->action);
    xph_free(context, weighing, sizeof *weighing);
}

uint64_t xph_weighing_hash(const xph_weighing *weighing)
{
    return weighing ? weighing->hash : 0;
}

double xph_weighing_share(const xph_weighing *weighing)
{
    return weighing ? weighing->sum * weighing->sum / (weighing->rows * weighing->squares) : 1.0;
}

/* ---- rows of a batch --------------------------------------------------------------------------------- */

/* Of rows whose targets are the actions of frame t and those behind it. */
static void balance_rows(const xph_weighing *w, const xph_episode *episode, int64_t t, int64_t count,
                         const uint8_t *packed, int64_t packed_first, float *mask)
{
    const xph_row_shape *shape = &w->dataset->shape;
    int32_t action[2][EXPHIL_HEADS_MAX];
    double character = character_factor(w, episode);
    for (int64_t i = 0; i < count; i++) {
        int64_t frame = t + i;
        const uint8_t *at = packed + (frame - packed_first) * shape->action_bytes;
        if (!(mask[i] > 0.0f)) continue;
        xph_action_unpack(shape, at, action[0]);
        bool before = frame && w->how->balance_change > 0;
        if (before) xph_action_unpack(shape, at - shape->action_bytes, action[1]);
        double factor = factor_of(w, character, action[0], before ? action[1] : NULL);
        mask[i] = (float)((double)mask[i] * factor * w->scale);
    }
}

int64_t xph_weighing_rows(const xph_weighing *weighing, const xph_episode *episode, int64_t delay, int64_t t,
                          int64_t count, const uint8_t *packed, int64_t packed_first, float *mask)
{
    int64_t fell = 0;
    for (int64_t i = 0, run; i < count; i += run) {
        float weight;
        run = xph_row_weights_run(weighing->dataset->weights, episode, t + i, t + count, &weight);
        for (int64_t k = i; k < i + run; k++) {
            fell += mask[k] > 0.0f && !(weight > 0.0f);
            mask[k] *= weight;
        }
    }
    if (balances(weighing->how))
        balance_rows(weighing, episode, t + delay, count, packed, packed_first, mask);
    return fell;
}
