/* Resuming a run: the file is not trusted, and nothing of the trainer changes before all of it has been
 * checked. */
#include "train/checkpoint.h"
#include "train/settings.h"

static exphil_status read_counters(const xph_json *json, uint64_t counters[XPH_CHECKPOINT_COUNTERS],
                                   exphil_error *error)
{
    int32_t object;
    XPH_TRY(xph_json_get(json, 0, "counters", XPH_JSON_OBJECT, &object, error));
    for (int i = 0; i < XPH_CHECKPOINT_COUNTERS; i++) {
        XPH_TRY(xph_json_get_hex(json, object, xph_checkpoint_counter[i], &counters[i], error));
        if (counters[i] >= (uint64_t)1 << (i == 3 ? 48 : 60)) /* an epoch is part of a random stream's name */
            return xph_fail(error, EXPHIL_E_FORMAT, "checkpoint: counters.%s is out of range",
                            xph_checkpoint_counter[i]);
    }
    return EXPHIL_OK;
}

static bool all_finite(const xph_array *array)
{
    const unsigned char *at = array->data;
    size_t element = array->dtype == XPH_DTYPE_F64 ? sizeof(double) : sizeof(float);
    for (size_t i = 0; i < array->bytes; i += element) {
        double wide;
        float narrow;
        memcpy(&narrow, at + i, sizeof narrow);
        if (element == sizeof wide)
            memcpy(&wide, at + i, sizeof wide);
        else
            wide = (double)narrow;
        if (!(wide - wide == 0.0)) return false;
    }
    return true;
}

/* Exactly the expected tensors. */
static exphil_status match_arrays(const xph_checkpoint *c, const xph_tensors *file, exphil_error *error)
{
    const xph_array *beside = xph_tensors_find(file, XPH_CHECKPOINT_BESIDE);
    if (c->beside && !beside)
        return xph_fail(error, EXPHIL_E_MISMATCH, "checkpoint: it is a trainer's, with nothing of a learner");
    if (c->beside && (beside->dtype != XPH_DTYPE_U8 || beside->bytes != c->beside->bytes))
        return xph_fail(
            error, EXPHIL_E_MISMATCH,
            "checkpoint: its learner has %zu bytes, this one %zu: streams, time, teacher or world "
            "differ",
            beside->bytes, c->beside->bytes);
    if (file->count - (beside && !c->beside) != c->count) /* a trainer alone has no use for a learner's */
        return xph_fail(error, EXPHIL_E_MISMATCH, "checkpoint has %lld tensors, this run has %lld",
                        (long long)file->count, (long long)c->count);
    for (int64_t i = 0; i < c->count; i++) {
        const xph_array *want = &c->arrays[i], *got = xph_tensors_find(file, want->name);
        if (!got) return xph_fail(error, EXPHIL_E_MISMATCH, "checkpoint lacks tensor %s", want->name);
        if (got->dtype != want->dtype || got->rank != want->rank ||
            memcmp(got->dim, want->dim, sizeof got->dim) != 0)
            return xph_fail(error, EXPHIL_E_MISMATCH, "checkpoint: type or shape of %s differs", want->name);
    }
    return EXPHIL_OK;
}

/* Fills the host arenas from the file, whose data is read here: all finite. */
static exphil_status take_arrays(xph_checkpoint *c, xph_tensors *file, exphil_error *error)
{
    XPH_TRY(match_arrays(c, file, error));
    XPH_TRY(xph_tensors_load(file, error));
    for (int64_t k = 0; k < c->kinds; k++) memset(c->arena[k], 0, c->trainer->arena_bytes);
    for (int64_t i = 0; i < c->count; i++) {
        const xph_array *want = &c->arrays[i], *got = xph_tensors_find(file, want->name);
        if (want->dtype != XPH_DTYPE_U8 && !all_finite(got))
            return xph_fail(error, EXPHIL_E_FORMAT, "checkpoint: %s holds NaN or infinity", want->name);
        memcpy((void *)(uintptr_t)want->data, got->data, want->bytes);
    }
    return EXPHIL_OK;
}

static exphil_status read_scale(const xph_json *json, xph_stored_run *run, exphil_error *error)
{
    int32_t object;
    uint64_t bits, good;
    XPH_TRY(xph_json_get(json, 0, "loss_scale", XPH_JSON_OBJECT, &object, error));
    XPH_TRY(xph_json_get_hex(json, object, "value", &bits, error));
    XPH_TRY(xph_json_get_hex(json, object, "good", &good, error));
    memcpy(&run->loss_scale, &bits, sizeof bits);
    if (!(run->loss_scale >= 1.0 && run->loss_scale <= 0x1p24))
        return xph_fail(error, EXPHIL_E_FORMAT, "checkpoint: loss_scale.value is out of range");
    if (good >= (uint64_t)1 << 60)
        return xph_fail(error, EXPHIL_E_FORMAT, "checkpoint: loss_scale.good is out of range");
    run->good = (int64_t)good;
    return EXPHIL_OK;
}

/* The state of the lanes goes to the net, or waits for it. */
static exphil_status install_state(xph_checkpoint *c)
{
    exphil_trainer *trainer = c->trainer;
    if (trainer->feed.net) {
        if (c->state_bytes)
            XPH_TRY(trainer->device->backend->upload(xph_checkpoint_stream(c), trainer->feed.state[0],
                                                     c->state, c->state_bytes));
        return xph_trainer_refresh(trainer);
    }
    xph_resumed_drop(trainer);
    trainer->resumed = (xph_resumed){c->batch, c->time, c->state, c->state_bytes};
    c->state = NULL;
    return EXPHIL_OK;
}

/* From here on only the device can fail. */
static exphil_status install(xph_stored_run *run, exphil_error *error)
{
    xph_checkpoint *c = &run->copies;
    const uint64_t *counters = run->counters;
    exphil_trainer *trainer = c->trainer;
    const xph_backend *backend = trainer->device->backend;
    xph_stream *stream = xph_checkpoint_stream(c);
    exphil_status status = EXPHIL_OK;
    for (int64_t k = 0; status >= 0 && k < c->kinds; k++)
        status = backend->upload(stream, xph_checkpoint_arena(trainer, k), c->arena[k], trainer->arena_bytes);
    if (status >= 0) status = install_state(c);
    if (status >= 0) status = backend->stream_wait(stream);
    if (status < 0) return xph_fail(error, status, "checkpoint: the device failed to take its memory");
    trainer->optimizer->updates = (int64_t)counters[0];
    trainer->frames = (int64_t)counters[1];
    trainer->skipped = (int64_t)counters[2];
    trainer->epoch = (int64_t)counters[3];
    trainer->index = (int64_t)counters[4];
    trainer->base_updates = counters[5];
    trainer->base_frames = counters[6];
    trainer->metrics = (exphil_metrics)EXPHIL_METRICS_INIT;
    trainer->late = (exphil_error)EXPHIL_ERROR_INIT;
    status = xph_control_put(trainer, stream, run->loss_scale, run->good);
    return status < 0 ? xph_fail_device(error, trainer->device, status,
                                        "trainer: the device could not take its control block")
                      : EXPHIL_OK;
}

static exphil_status seek(const exphil_trainer *trainer, const uint64_t counters[XPH_CHECKPOINT_COUNTERS],
                          exphil_error *error)
{
    if (!trainer->prefetcher) return EXPHIL_OK;
    exphil_prefetcher_info info = EXPHIL_PREFETCHER_INFO_INIT;
    XPH_TRY(exphil_prefetcher_query(trainer->prefetcher, &info, error));
    int64_t epoch = (int64_t)counters[3], index = (int64_t)counters[4];
    if (index > info.batches_per_epoch)
        return xph_fail(error, EXPHIL_E_FORMAT,
                        "checkpoint: counters.index %lld is beyond the epoch's %lld batches",
                        (long long)index, (long long)info.batches_per_epoch);
    if (index == info.batches_per_epoch) {
        epoch++;
        index = 0;
    }
    return exphil_prefetcher_seek(trainer->prefetcher, epoch, index, error);
}

/* Counters and arrays, into memory that is there. */
static exphil_status read_run(xph_stored_run *run, xph_tensors *file, const xph_json *json,
                              exphil_error *error)
{
    xph_checkpoint *c = &run->copies;
    XPH_TRY(read_counters(json, run->counters, error));
    if (c->trainer->precision == EXPHIL_PRECISION_F16) XPH_TRY(read_scale(json, run, error));
    XPH_TRY(xph_checkpoint_list(c, error));
    XPH_TRY(take_arrays(c, file, error));
    return c->beside ? c->beside->check(c->beside->user, error) : EXPHIL_OK;
}

/* Without a prefetcher the first batch must have the file's shape. Until it comes, no more memory is allocated
 * than the file's own size accounts for. */
static exphil_status read_shape(const exphil_trainer *trainer, const xph_tensors *file, const xph_json *json,
                                int64_t lanes, int64_t *batch, int64_t *time, exphil_error *error)
{
    const xph_model_shape *shape = xph_model_shape_of(trainer->model);
    XPH_TRY(xph_json_get_int(json, 0, "batch", 1, 4096, batch, error));
    XPH_TRY(xph_json_get_int(json, 0, "time", 1, 65536, time, error));
    if (trainer->feed.net && (lanes != *batch || trainer->feed.time != *time))
        return xph_fail(error, EXPHIL_E_MISMATCH,
                        "checkpoint has batches of %lld x %lld, this run of %lld x %lld", (long long)*batch,
                        (long long)*time, (long long)lanes, (long long)trainer->feed.time);
    if (shape->mode == EXPHIL_MODE_WINDOW && *time != shape->window)
        return xph_fail(error, EXPHIL_E_FORMAT, "checkpoint: time is %lld, the model's window is %lld",
                        (long long)*time, (long long)shape->window);
    const xph_array *state = xph_tensors_find(file, "state");
    size_t bytes = state ? state->bytes : 0, expected = xph_checkpoint_state_bytes(trainer, *batch);
    if (bytes != expected)
        return xph_fail(error, EXPHIL_E_MISMATCH,
                        "checkpoint: state has %llu bytes, a batch of %lld has %llu",
                        (unsigned long long)bytes, (long long)*batch, (unsigned long long)expected);
    return EXPHIL_OK;
}

/* text NULL: there is none. */
static exphil_status read_text(const xph_tensors *file, const char *key, const char *sum_key,
                               const char **text, exphil_error *error)
{
    const char *found = xph_tensors_metadata(file, key), *sum = xph_tensors_metadata(file, sum_key);
    uint64_t expected;
    *text = found;
    if (!found && !sum) return EXPHIL_OK;
    if (!found || !sum)
        return xph_fail(error, EXPHIL_E_FORMAT, "checkpoint: its metadata have no %s", found ? sum_key : key);
    if (!xph_hex_value(sum, &expected) || !xph_hash_equal(xph_hash(found, strlen(found)), expected))
        return xph_fail(error, EXPHIL_E_FORMAT, "checkpoint: %s is damaged, its checksum differs", key);
    return EXPHIL_OK;
}

static exphil_status read_json(xph_stored_run *run, exphil_trainer *trainer, const char *path, int64_t lanes,
                               xph_tensors *file, const xph_json *json, xph_beside *beside,
                               exphil_error *error)
{
    int64_t batch = 0, time = 0;
    XPH_TRY(xph_settings_check(trainer, json, error));
    XPH_TRY(read_shape(trainer, file, json, lanes, &batch, &time, error));
    const xph_array *there = xph_tensors_find(file, XPH_CHECKPOINT_BESIDE);
    if (beside && beside->fit && there) XPH_TRY(beside->fit(beside->user, there->bytes, beside, error));
    XPH_TRY(xph_checkpoint_make(&run->copies, trainer, batch, time, path, beside, error));
    return read_run(run, file, json, error);
}

static exphil_status read_file(xph_stored_run *run, exphil_trainer *trainer, const char *path, int64_t lanes,
                               xph_tensors *file, xph_beside *beside, exphil_error *error)
{
    const char *text = NULL, *noted = NULL;
    XPH_TRY(read_text(file, XPH_CHECKPOINT_KEY, XPH_CHECKPOINT_SUM_KEY, &text, error));
    if (!text)
        return xph_fail(error, EXPHIL_E_FORMAT, "%s%s has no %s in its metadata", path, XPH_CHECKPOINT_SUFFIX,
                        XPH_CHECKPOINT_KEY);
    XPH_TRY(read_text(file, XPH_CHECKPOINT_NOTES_KEY, XPH_CHECKPOINT_NOTES_SUM_KEY, &noted, error));
    exphil_status status = xph_notes_take(trainer->context, noted, &run->notes, error);
    if (status == EXPHIL_E_INVALID) return xph_fail_within(error, EXPHIL_E_FORMAT, "checkpoint");
    XPH_TRY(status);
    run->noted = noted != NULL;
    xph_json *json = NULL;
    XPH_TRY(xph_json_parse(trainer->context, text, strlen(text), XPH_CHECKPOINT_KEY, 0, &json, error));
    status = read_json(run, trainer, path, lanes, file, json, beside, error);
    xph_json_free(json);
    return status;
}

exphil_status xph_run_read(xph_stored_run *run, exphil_trainer *trainer, const char *path, int64_t batch,
                           xph_beside *beside, exphil_error *error)
{
    exphil_context *context = trainer->context;
    size_t bytes = strlen(path) + sizeof XPH_CHECKPOINT_SUFFIX;
    *run = (xph_stored_run){.copies = {.trainer = trainer}, .loss_scale = 1.0};
    char *name = xph_alloc(context, bytes);
    if (!name) return xph_no_memory(bytes, error);
    memcpy(name, path, strlen(path)); /* NOLINT(bugprone-not-null-terminated-result): the suffix ends it */
    memcpy(name + strlen(path), XPH_CHECKPOINT_SUFFIX, sizeof XPH_CHECKPOINT_SUFFIX);
    xph_tensors file;
    exphil_status status = xph_tensors_open(context, name, "checkpoint", &file, error);
    if (status >= 0) {
        status = read_file(run, trainer, path, batch, &file, beside, error);
        xph_tensors_free(&file);
    }
    xph_free(context, name, bytes);
    return status;
}

/* A checkpoint without notes leaves those that the trainer has. */
exphil_status xph_run_install(xph_stored_run *run, exphil_error *error)
{
    exphil_trainer *trainer = run->copies.trainer;
    XPH_TRY(seek(trainer, run->counters, error));
    XPH_TRY(install(run, error));
    if (!run->noted) return EXPHIL_OK;
    xph_notes before = trainer->notes;
    trainer->notes = run->notes;
    trainer->noted = true;
    run->notes = before;
    return EXPHIL_OK;
}

void xph_run_free(xph_stored_run *run)
{
    xph_notes_free(run->copies.trainer->context, &run->notes);
    xph_checkpoint_free(&run->copies);
}
