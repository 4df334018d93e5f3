/* --keep-bad-batch: the batch of an update whose loss or gradient was not finite, as safetensors, and where in it the policy
 * goes wrong. Batches are a function of data and seed: this one is made again. */
#include "system.h"
#include "train_run.h"

#include "base/double.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One array of the file. */
typedef struct array {
    const char *name, *type;
    const void *data;
    int64_t dim[4];
    int rank;
    size_t element;
} array;

/* Where its rows come from, [B*T] each; -1 and 0 in padding. */
typedef struct origin {
    uint64_t *game;
    int64_t *frame, *port;
} origin;

typedef struct bad_batch {
    train_state *run;
    exphil_prefetcher *prefetcher;
    exphil_batch batch;
    origin from;
    int64_t epoch, index, worst; /* worst: row, -1: not known */
    double cost;                 /* of that row, nats; not finite where its logits are not */
} bad_batch;

/* ---- which batch, and of which games ------------------------------------------------------------------- */

static bool make_again(bad_batch *b, exphil_error *error)
{
    const train_state *r = b->run;
    const int64_t each = r->data.batches_per_epoch, number = (r->done + r->skipped) * r->options->accumulate;
    b->epoch = number / each;
    b->index = number % each;
    b->batch = (exphil_batch)EXPHIL_BATCH_INIT;
    exphil_sampling sampling = r->sampling; /* of all ranks */
    sampling.first_lane = sampling.lane_count = 0;
    return exphil_prefetcher_create(r->train, &sampling, &b->prefetcher, error) >= 0 &&
           exphil_prefetcher_seek(b->prefetcher, b->epoch, b->index, error) >= 0 &&
           exphil_prefetcher_next(b->prefetcher, &b->batch, error) == EXPHIL_OK;
}

static bool find_origin(bad_batch *b)
{
    const int64_t rows = b->batch.batch * b->batch.time;
    b->from.game = calloc((size_t)rows, sizeof *b->from.game);
    b->from.frame = calloc((size_t)rows, sizeof *b->from.frame);
    b->from.port = calloc((size_t)rows, sizeof *b->from.port);
    if (!b->from.game || !b->from.frame || !b->from.port) return false;
    for (int64_t row = 0; row < rows; row++) {
        exphil_episode_info info = EXPHIL_EPISODE_INFO_INIT;
        int64_t frame = b->batch.rows[row], episode = -1;
        b->from.frame[row] = b->from.port[row] = -1;
        if (frame < 0 || exphil_dataset_rows(b->run->train, frame, 1, NULL, NULL, NULL, &episode, NULL) < 0 ||
            exphil_dataset_episode(b->run->train, episode, &info, NULL) < 0)
            continue;
        b->from.game[row] = info.game;
        b->from.port[row] = info.port;
        b->from.frame[row] = info.first_game_frame + frame - info.first;
    }
    return true;
}

/* ---- which row ----------------------------------------------------------------------------------------- */

/* -log p of an action. */
static double cost_of(const exphil_spec *spec, const float *logits, const int32_t *action)
{
    double cost = 0.0;
    for (int64_t h = 0; h < spec->head_count; logits += spec->heads[h++].count) {
        double most = (double)logits[0], sum = 0.0;
        for (int32_t k = 0; k < spec->heads[h].count; k++) {
            double y = (double)logits[k];
            if (spec->heads[h].kind == EXPHIL_BERNOULLI) cost += xph_softplus_of(action[h] >> k & 1 ? -y : y);
            most = y > most ? y : most;
        }
        if (spec->heads[h].kind == EXPHIL_BERNOULLI) continue;
        for (int32_t k = 0; k < spec->heads[h].count; k++) sum += xph_exp_of((double)logits[k] - most);
        cost += xph_log_of(sum) + most - (double)logits[action[h]];
    }
    return cost;
}

/* The rows of a lane through a session: its past actions are those of the batch. False: it ends here. */
static bool try_row(bad_batch *b, exphil_session *session, float *logits, int64_t count, int64_t row)
{
    const exphil_spec *spec = &b->run->spec;
    const int32_t *action = b->batch.actions + row * spec->head_count;
    int32_t drawn[EXPHIL_HEADS_MAX];
    if (b->batch.reset[row] && exphil_session_reset(session, 0) < 0) return false;
    exphil_status status =
        exphil_session_step_row(session, b->batch.floats + row * spec->float_count,
                                b->batch.ids ? b->batch.ids + row * spec->id_count : NULL, NULL, drawn);
    double cost = INFINITY;
    if (status >= 0 && exphil_session_logits(session, 0, logits, count) >= 0)
        cost = cost_of(spec, logits, action);
    if (status < 0 && status != EXPHIL_E_NUMERIC) return false;
    if (!(cost <= b->cost) || b->worst < 0) {
        b->cost = isnan(cost) ? INFINITY : cost;
        b->worst = row;
    }
    return isfinite(cost) && exphil_session_override(session, 0, action) >= 0;
}

static void find_worst(bad_batch *b)
{
    exphil_session_config config = EXPHIL_SESSION_CONFIG_INIT;
    exphil_session_info info = EXPHIL_SESSION_INFO_INIT;
    exphil_model *model = NULL;
    exphil_session *session = NULL;
    config.deterministic = 1;
    config.deliver = EXPHIL_DELIVER_DECIDED;
    config.delay_frames = &b->run->sampling.delay_frames;
    b->worst = -1;
    if (exphil_trainer_model(b->run->trainer, EXPHIL_WEIGHTS, &model, NULL) >= 0 &&
        exphil_session_create(model, &config, &session, NULL) >= 0 &&
        exphil_session_query(session, &info, NULL) >= 0) {
        float *logits = calloc((size_t)info.logit_count, sizeof *logits);
        for (int64_t lane = 0; logits && lane < b->batch.batch; lane++) {
            bool goes = exphil_session_reset(session, 0) >= 0;
            for (int64_t t = 0; goes && t < b->batch.time; t++) {
                int64_t row = lane * b->batch.time + t;
                goes = !(b->batch.mask[row] > 0.0f) || try_row(b, session, logits, info.logit_count, row);
            }
        }
        free(logits);
    }
    exphil_session_destroy(session);
    exphil_model_destroy(model);
}

/* ---- the file ------------------------------------------------------------------------------------------ */

static size_t bytes_of(const array *a)
{
    size_t bytes = a->element;
    for (int d = 0; d < a->rank; d++) bytes *= (size_t)a->dim[d];
    return bytes;
}

static char *header_text(const bad_batch *b, const array *arrays, int count, const exphil_error *why)
{
    const train_state *r = b->run;
    char text[3][24];
    json_int_t at = 0;
    snprintf(text[0], sizeof text[0], "%" PRId64, r->done + 1);
    snprintf(text[1], sizeof text[1], "%" PRId64, b->epoch);
    snprintf(text[2], sizeof text[2], "%" PRId64, b->index);
    json_t *header = json_object();
    json_object_set_new(header, "__metadata__",
                        json_pack("{s:s,s:s,s:s,s:s,s:s,s:s}", "layout", r->spec.layout, "codec",
                                  r->spec.codec, "update", text[0], "epoch", text[1], "batch", text[2],
                                  "error", why->message));
    for (int i = 0; i < count; i++) {
        json_t *shape = json_array();
        const json_int_t bytes = (json_int_t)bytes_of(&arrays[i]);
        for (int d = 0; d < arrays[i].rank; d++) json_array_append_new(shape, json_integer(arrays[i].dim[d]));
        json_object_set_new(header, arrays[i].name,
                            json_pack("{s:s,s:o,s:[I,I]}", "dtype", arrays[i].type, "shape", shape,
                                      "data_offsets", at, at + bytes));
        at += bytes;
    }
    char *made = json_dumps(header, JSON_COMPACT);
    json_decref(header);
    return made;
}

/* Every element of eight bytes first, so that all lie on multiples of their size. */
static bool write_file(const bad_batch *b, const char *path, const exphil_error *why)
{
    const exphil_batch *x = &b->batch;
    const exphil_spec *s = &b->run->spec;
    const int64_t B = x->batch, T = x->time;
    const array arrays[] = {
        {"game", "U64", b->from.game, {B, T}, 2, 8},
        {"frame", "I64", b->from.frame, {B, T}, 2, 8},
        {"port", "I64", b->from.port, {B, T}, 2, 8},
        {"rows", "I64", x->rows, {B, T}, 2, 8},
        {"floats", "F32", x->floats, {B, T, s->float_count}, 3, 4},
        {"ids", "I32", x->ids, {B, T, s->id_count}, 3, 4},
        {"past", "I32", x->past, {B, T, b->run->sampling.action_slots, s->head_count}, 4, 4},
        {"actions", "I32", x->actions, {B, T, s->head_count}, 3, 4},
        {"mask", "F32", x->mask, {B, T}, 2, 4},
        {"reset", "U8", x->reset, {B, T}, 2, 1}};
    const int count = (int)(sizeof arrays / sizeof arrays[0]);
    char *text = header_text(b, arrays, count, why);
    FILE *file = text ? system_open(path, "wb") : NULL;
    if (!file) {
        free(text);
        return complain_of_file(path);
    }
    size_t length = strlen(text), padded = (length + 63) / 64 * 64;
    unsigned char size[8];
    for (int i = 0; i < 8; i++) size[i] = (unsigned char)((uint64_t)padded >> 8 * i);
    bool fine = fwrite(size, 1, 8, file) == 8 && fprintf(file, "%-*s", (int)padded, text) == (int)padded;
    for (int i = 0; i < count; i++) {
        size_t bytes = bytes_of(&arrays[i]);
        fine = fine && (bytes == 0 || fwrite(arrays[i].data, 1, bytes, file) == bytes);
    }
    fine = fclose(file) == 0 && fine;
    free(text);
    return fine || complain_of_file(path);
}

static void say(const bad_batch *b, const char *path)
{
    const int64_t lane = b->worst / b->batch.time;
    fprintf(stderr, "exphil: batch %" PRId64 " of epoch %" PRId64 " is kept in %s\n", b->index, b->epoch,
            path);
    if (b->worst < 0) return;
    fprintf(stderr, "exphil: lane %" PRId64 ", game %016" PRIx64 ", port %" PRId64 ", frame %" PRId64 ": ",
            lane, b->from.game[b->worst], b->from.port[b->worst], b->from.frame[b->worst]);
    if (isfinite(b->cost))
        fprintf(stderr, "costs most, %.4g nats\n", b->cost);
    else
        fprintf(stderr, "what the policy says is not finite\n");
}

void keep_bad_batch(train_state *r, const exphil_error *why)
{
    bad_batch b = {.run = r, .worst = -1, .cost = -1.0};
    exphil_error error = EXPHIL_ERROR_INIT;
    if (!r->options->bad_batch || r->bad_batch_kept || !train_first(r)) return;
    if (!make_again(&b, &error)) {
        complain("--keep-bad-batch", &error);
    } else if (!find_origin(&b)) {
        fprintf(stderr, "exphil: --keep-bad-batch: no memory\n");
    } else {
        find_worst(&b);
        r->bad_batch_kept = write_file(&b, r->options->bad_batch, why);
        if (r->bad_batch_kept) say(&b, r->options->bad_batch);
    }
    free(b.from.game);
    free(b.from.frame);
    free(b.from.port);
    exphil_prefetcher_destroy(b.prefetcher);
}
