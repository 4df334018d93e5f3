/* Saving a run. */
#include "train/checkpoint.h"
#include "train/settings.h"

/* ---- settings and counters as JSON -------------------------------------------------------------------------------- */

/* Settings (settings.c) are compared, counters are taken over. */
static void write_counters(const exphil_trainer *trainer, xph_json_out *out)
{
    const uint64_t value[XPH_CHECKPOINT_COUNTERS] = {(uint64_t)trainer->optimizer->updates,
                                                     (uint64_t)trainer->frames,
                                                     (uint64_t)trainer->skipped,
                                                     (uint64_t)trainer->epoch,
                                                     (uint64_t)trainer->index,
                                                     trainer->base_updates,
                                                     trainer->base_frames};
    xph_json_open(out, "counters", '{');
    for (int i = 0; i < XPH_CHECKPOINT_COUNTERS; i++)
        xph_json_add_hex(out, xph_checkpoint_counter[i], value[i]);
    xph_json_close(out, '}');
}

/* All updates are settled: the last result is what the device carries. */
static void write_scale(const exphil_trainer *trainer, xph_json_out *out)
{
    const xph_control *last = trainer->pending[!trainer->pending_parity].result;
    uint64_t bits;
    memcpy(&bits, &last->loss_scale, sizeof bits);
    xph_json_open(out, "loss_scale", '{');
    xph_json_add_hex(out, "value", bits);
    xph_json_add_hex(out, "good", (uint64_t)last->good);
    xph_json_close(out, '}');
}

static exphil_status write_json(const xph_checkpoint *c, xph_json_out *out, exphil_error *error)
{
    const exphil_trainer *trainer = c->trainer;
    xph_json_begin(out, trainer->context);
    xph_json_open(out, NULL, '{');
    xph_json_add_int(out, "version", 1);
    xph_json_add_int(out, "batch", c->batch);
    xph_json_add_int(out, "time", c->time);
    xph_settings_write(trainer, out);
    write_counters(trainer, out);
    if (trainer->precision == EXPHIL_PRECISION_F16) write_scale(trainer, out);
    xph_json_close(out, '}');
    return xph_json_end(out, error);
}

/* ---- saving ---------------------------------------------------------------------------------------------------------- */

exphil_status xph_checkpoint_fetch(xph_checkpoint *c, exphil_error *error)
{
    const exphil_trainer *trainer = c->trainer;
    const xph_backend *backend = trainer->device->backend;
    xph_stream *stream = xph_checkpoint_stream(c);
    const size_t own_bytes = xph_checkpoint_state_bytes(trainer, c->lanes);
    exphil_status status = EXPHIL_OK;
    for (int64_t k = 0; status >= 0 && k < c->kinds; k++)
        status =
            backend->download(stream, c->arena[k], xph_checkpoint_arena(trainer, k), trainer->arena_bytes);
    if (status >= 0 && c->state_bytes && trainer->feed.net)
        status = backend->download(stream, xph_checkpoint_own_state(c), trainer->feed.state[0], own_bytes);
    else if (c->state_bytes && trainer->resumed.state)
        memcpy(xph_checkpoint_own_state(c), trainer->resumed.state, own_bytes);
    if (status >= 0) status = backend->stream_wait(stream);
    if (status < 0) return xph_fail(error, status, "checkpoint: the device failed to give its memory");
    return EXPHIL_OK;
}

static exphil_status write_optimizer(xph_checkpoint *c, exphil_error *error)
{
    xph_json_out json;
    XPH_TRY(write_json(c, &json, error));
    const char *notes = c->trainer->noted ? c->trainer->notes.text : NULL;
    char sum[XPH_HEX_TEXT], notes_sum[XPH_HEX_TEXT] = "";
    if (notes) (void)xph_hex_text(notes_sum, xph_hash(notes, strlen(notes)));
    const xph_pair pairs[] = {{XPH_CHECKPOINT_KEY, json.text},
                              {XPH_CHECKPOINT_SUM_KEY, xph_hex_text(sum, xph_hash(json.text, json.bytes))},
                              {XPH_CHECKPOINT_NOTES_KEY, notes},
                              {XPH_CHECKPOINT_NOTES_SUM_KEY, notes_sum}};
    xph_file_writer writer;
    exphil_status status = xph_tensors_write(c->trainer->context, c->arrays, c->count, pairs, notes ? 4 : 2,
                                             c->path, &writer, error);
    xph_json_drop(&json);
    if (status >= 0) status = xph_file_commit(&writer, error);
    return status;
}

static exphil_status write_weights(const exphil_trainer *trainer, const char *path, exphil_error *error)
{
    xph_file_writer writer;
    const void *weights =
        trainer->saved_weights == EXPHIL_WEIGHTS_AVERAGED ? trainer->optimizer->average : trainer->weights;
    const xph_trained trained = {trainer->base_updates + (uint64_t)trainer->optimizer->updates,
                                 trainer->base_frames + (uint64_t)trainer->frames,
                                 xph_trainer_notes(trainer)};
    XPH_TRY(xph_model_write(trainer->model, weights, &trained, NULL, 0, path, &writer, error));
    return xph_file_commit(&writer, error);
}

exphil_status xph_checkpoint_write(xph_checkpoint *c, const char *path, exphil_error *error)
{
    XPH_TRY(write_optimizer(c, error));
    return write_weights(c->trainer, path, error);
}

exphil_status xph_checkpoint_shape(const exphil_trainer *trainer, int64_t *batch, int64_t *time,
                                   exphil_error *error)
{
    bool made = trainer->feed.net != NULL;
    *batch = made ? trainer->feed.batch : trainer->resumed.batch;
    *time = made ? trainer->feed.time : trainer->resumed.time;
    return xph_trainer_shaped(trainer) ? EXPHIL_OK
                                       : xph_fail(error, EXPHIL_E_STATE, "trainer has not seen a batch yet");
}
