/* Saving and resuming a run. "<path>" is a weights file for play; "<path>.optimizer" holds all that resume
 * reads, as safetensors: per tensor its weights, moments and average, the carried state of the lanes, and in
 * the metadata the counters and every setting that must be the same for the run to continue bit for bit. */
#include "train/train.h"

#include "file/file.h"
#include "train/settings.h"

#define CHECKPOINT_KEY "exphil.optimizer"
#define CHECKPOINT_SUM_KEY                                                                                   \
  "exphil.optimizer_xxh64" /* of that text: the file's own checksum is of the data only */
#define CHECKPOINT_SUFFIX ".optimizer"
enum { KINDS = 4 };
static const char *const kind_name[KINDS] = {"weights", "m", "v", "average"};

/* Host copies of everything on the device that a checkpoint holds. */
typedef struct checkpoint {
    exphil_trainer *trainer;
    void *arena[KINDS], *state;
    xph_array *arrays;
    char (*names)[XPH_TENSORS_NAME];
    int64_t count, kinds; /* arrays; kinds: 3 without averaged weights */
    int64_t batch, time;
    xph_stream *stream; /* of its own until the trainer has a net */
    size_t state_bytes, arrays_bytes, names_bytes;
    char *path;
    size_t path_bytes;
} checkpoint;

static void *device_arena(const exphil_trainer *trainer, int64_t kind)
{
    const exphil_optimizer *optimizer = trainer->optimizer;
    void *const arena[KINDS] = {trainer->weights, optimizer->m, optimizer->v, optimizer->average};
    return arena[kind];
}

static void checkpoint_free(checkpoint *c)
{
    exphil_context *context = c->trainer->context;
    for (int k = 0; k < KINDS; k++) xph_free(context, c->arena[k], c->trainer->arena_bytes);
    xph_free(context, c->state, c->state_bytes);
    xph_free(context, c->arrays, c->arrays_bytes);
    xph_free(context, c->names, c->names_bytes);
    xph_free(context, c->path, c->path_bytes);
    if (c->stream) c->trainer->device->backend->stream_destroy(c->stream);
}

static xph_stream *stream_of(const checkpoint *c)
{
    return c->stream ? c->stream : xph_net_stream(c->trainer->feed.net);
}

static size_t state_bytes_of(const exphil_trainer *trainer, int64_t batch)
{
    const xph_model_shape *shape = xph_model_shape_of(trainer->model);
    return (size_t)batch * (size_t)shape->state * shape->real_bytes;
}

static exphil_status checkpoint_make(checkpoint *c, exphil_trainer *trainer, int64_t batch, int64_t time,
                                     const char *path, exphil_error *error)
{
    exphil_context *context = trainer->context;
    int64_t tensors = xph_model_param_count(trainer->model);
    *c = (checkpoint){
        .trainer = trainer, .kinds = trainer->optimizer->average ? 4 : 3, .batch = batch, .time = time};
    c->state_bytes = state_bytes_of(trainer, batch);
    c->count = tensors * c->kinds + (c->state_bytes ? 1 : 0);
    c->arrays_bytes = (size_t)c->count * sizeof *c->arrays;
    c->names_bytes = (size_t)c->count * sizeof *c->names;
    c->path_bytes = strlen(path) + sizeof CHECKPOINT_SUFFIX;
    for (int64_t k = 0; k < c->kinds; k++) c->arena[k] = xph_alloc(context, trainer->arena_bytes);
    if (c->state_bytes) c->state = xph_alloc(context, c->state_bytes);
    c->arrays = xph_calloc(context, 1, c->arrays_bytes);
    c->names = xph_calloc(context, 1, c->names_bytes);
    c->path = xph_alloc(context, c->path_bytes);
    if (!c->arena[0] || !c->arena[1] || !c->arena[2] || (c->kinds == 4 && !c->arena[3]) ||
        (c->state_bytes && !c->state) || !c->arrays || !c->names || !c->path)
        return xph_no_memory(trainer->arena_bytes, error);
    memcpy(c->path, path, strlen(path));
    memcpy(c->path + strlen(path), CHECKPOINT_SUFFIX, sizeof CHECKPOINT_SUFFIX);
    exphil_status status = EXPHIL_OK;
    if (!trainer->feed.net) status = trainer->device->backend->stream_create(trainer->device, 0, &c->stream);
    return status < 0 ? xph_fail(error, status, "checkpoint: no stream on the device") : EXPHIL_OK;
}

/* Names, shapes and places of all arrays: "m.blocks.0.norm.weight" lies where its tensor lies in the arena. */
static exphil_status list_arrays(checkpoint *c, exphil_error *error)
{
    const exphil_trainer *trainer = c->trainer;
    size_t element = xph_model_shape_of(trainer->model)->real_bytes;
    int32_t dtype = element == sizeof(double) ? XPH_DTYPE_F64 : XPH_DTYPE_F32;
    int64_t at = 0;
    for (int64_t k = 0; k < c->kinds; k++)
        for (int64_t i = 0; i < xph_model_param_count(trainer->model); i++, at++) {
            const xph_param *param = xph_model_param(trainer->model, i);
            size_t length = strlen(kind_name[k]), name = strlen(param->name);
            if (length + 1 + name >= XPH_TENSORS_NAME)
                return xph_fail(error, EXPHIL_E_INTERNAL, "checkpoint: the name of %s is too long",
                                param->name);
            memcpy(c->names[at], kind_name[k], length);
            c->names[at][length] = '.';
            memcpy(c->names[at] + length + 1, param->name, name + 1);
            c->arrays[at] = (xph_array){c->names[at],
                                        dtype,
                                        param->rank,
                                        {param->dim[0], param->dim[1], param->dim[2], param->dim[3]},
                                        (const unsigned char *)c->arena[k] + (size_t)param->offset * element,
                                        (size_t)param->count * element,
                                        0};
        }
    if (c->state_bytes)
        c->arrays[at] = (xph_array){
            "state",  dtype,          2, {c->batch, xph_model_shape_of(trainer->model)->state, 1, 1},
            c->state, c->state_bytes, 0};
    return EXPHIL_OK;
}

/* ---- settings and counters as JSON -------------------------------------------------------------------------------- */

/* Settings (settings.c) are compared, counters are taken over. */
typedef struct field {
    const char *name;
    uint64_t value;
} field;
enum { COUNTERS = 7 };

static void list_counters(const exphil_trainer *trainer, field to[COUNTERS])
{
    to[0] = (field){"updates", (uint64_t)trainer->optimizer->updates};
    to[1] = (field){"frames", (uint64_t)trainer->frames};
    to[2] = (field){"skipped", (uint64_t)trainer->skipped};
    to[3] = (field){"epoch", (uint64_t)trainer->epoch};
    to[4] = (field){"index", (uint64_t)trainer->index};
    to[5] = (field){"base_updates", trainer->base_updates};
    to[6] = (field){"base_frames", trainer->base_frames};
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

static exphil_status write_json(const checkpoint *c, xph_json_out *out, exphil_error *error)
{
    const exphil_trainer *trainer = c->trainer;
    field counters[COUNTERS];
    list_counters(trainer, counters);
    xph_json_begin(out, trainer->context);
    xph_json_open(out, NULL, '{');
    xph_json_add_int(out, "version", 1);
    xph_json_add_int(out, "batch", c->batch);
    xph_json_add_int(out, "time", c->time);
    xph_settings_write(trainer, out);
    xph_json_open(out, "counters", '{');
    for (int i = 0; i < COUNTERS; i++) xph_json_add_hex(out, counters[i].name, counters[i].value);
    xph_json_close(out, '}');
    if (trainer->precision == EXPHIL_PRECISION_F16) write_scale(trainer, out);
    xph_json_close(out, '}');
    return xph_json_end(out, error);
}

/* ---- saving ---------------------------------------------------------------------------------------------------------- */

static exphil_status fetch(checkpoint *c, exphil_error *error)
{
    const exphil_trainer *trainer = c->trainer;
    const xph_backend *backend = trainer->device->backend;
    xph_stream *stream = stream_of(c);
    exphil_status status = EXPHIL_OK;
    for (int64_t k = 0; status >= 0 && k < c->kinds; k++)
        status = backend->download(stream, c->arena[k], device_arena(trainer, k), trainer->arena_bytes);
    if (status >= 0 && c->state_bytes && trainer->feed.net)
        status = backend->download(stream, c->state, trainer->feed.state[0], c->state_bytes);
    else if (c->state_bytes && trainer->resumed.state)
        memcpy(c->state, trainer->resumed.state, c->state_bytes);
    if (status >= 0) status = backend->stream_wait(stream);
    if (status < 0) return xph_fail(error, status, "checkpoint: the device failed to give its memory");
    return EXPHIL_OK;
}

static exphil_status write_optimizer(checkpoint *c, exphil_error *error)
{
    xph_json_out json;
    XPH_TRY(write_json(c, &json, error));
    char sum[XPH_HEX_TEXT];
    const xph_pair pairs[] = {{CHECKPOINT_KEY, json.text},
                              {CHECKPOINT_SUM_KEY, xph_hex_text(sum, xph_hash(json.text, json.bytes))}};
    xph_file_writer writer;
    exphil_status status =
        xph_tensors_write(c->trainer->context, c->arrays, c->count, pairs, 2, c->path, &writer, error);
    xph_json_drop(&json);
    if (status >= 0) status = xph_file_commit(&writer, error);
    return status;
}

static exphil_status write_weights(const exphil_trainer *trainer, const char *path, exphil_error *error)
{
    xph_file_writer writer;
    XPH_TRY(xph_model_write(trainer->model, trainer->weights,
                            trainer->base_updates + (uint64_t)trainer->optimizer->updates,
                            trainer->base_frames + (uint64_t)trainer->frames, NULL, 0, path, &writer, error));
    return xph_file_commit(&writer, error);
}

static exphil_status save(exphil_trainer *trainer, const char *path, exphil_error *error)
{
    checkpoint c;
    bool made = trainer->feed.net != NULL;
    int64_t batch = made ? trainer->feed.batch : trainer->resumed.batch,
            time = made ? trainer->feed.time : trainer->resumed.time;
    if (!xph_trainer_shaped(trainer))
        return xph_fail(error, EXPHIL_E_STATE, "trainer has not seen a batch yet");
    exphil_status status = checkpoint_make(&c, trainer, batch, time, path, error);
    if (status >= 0) status = xph_trainer_settle(trainer, error);
    if (status >= 0) status = list_arrays(&c, error);
    if (status >= 0) status = fetch(&c, error);
    if (status >= 0) status = write_optimizer(&c, error);
    if (status >= 0) status = write_weights(trainer, path, error);
    checkpoint_free(&c);
    return status;
}

exphil_status exphil_trainer_save(const exphil_trainer *trainer, const char *path, exphil_error *error)
{
    XPH_OWN_FPU;
    if (!trainer || !path)
        return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL", trainer ? "path" : "trainer");
    if (!path[0]) return xph_fail(error, EXPHIL_E_INVALID, "path is empty");
    XPH_TRY(xph_trainer_enter(trainer, error));
    exphil_status status = save((exphil_trainer *)(uintptr_t)trainer, path, error);
    xph_trainer_leave(trainer);
    return status;
}

/* ---- resuming --------------------------------------------------------------------------------------------------------- */

static exphil_status read_counters(const xph_json *json, uint64_t counters[COUNTERS], exphil_error *error)
{
    static const char *const name[COUNTERS] = {"updates", "frames",       "skipped",    "epoch",
                                               "index",   "base_updates", "base_frames"};
    int32_t object;
    XPH_TRY(xph_json_get(json, 0, "counters", XPH_JSON_OBJECT, &object, error));
    for (int i = 0; i < COUNTERS; i++) {
        XPH_TRY(xph_json_get_hex(json, object, name[i], &counters[i], error));
        if (counters[i] >= (uint64_t)1 << (i == 3 ? 48 : 60)) /* an epoch is part of a random stream's name */
            return xph_fail(error, EXPHIL_E_FORMAT, "checkpoint: counters.%s is out of range", name[i]);
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
static exphil_status match_arrays(const checkpoint *c, const xph_tensors *file, exphil_error *error)
{
    if (file->count != c->count)
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
static exphil_status take_arrays(checkpoint *c, xph_tensors *file, exphil_error *error)
{
    XPH_TRY(match_arrays(c, file, error));
    XPH_TRY(xph_tensors_load(file, error));
    for (int64_t k = 0; k < c->kinds; k++) memset(c->arena[k], 0, c->trainer->arena_bytes);
    for (int64_t i = 0; i < c->count; i++) {
        const xph_array *want = &c->arrays[i], *got = xph_tensors_find(file, want->name);
        if (!all_finite(got))
            return xph_fail(error, EXPHIL_E_FORMAT, "checkpoint: %s holds NaN or infinity", want->name);
        memcpy((void *)(uintptr_t)want->data, got->data, want->bytes);
    }
    return EXPHIL_OK;
}

typedef struct loss_scale {
    double value;
    int64_t good;
} loss_scale;

static exphil_status read_scale(const xph_json *json, loss_scale *scale, exphil_error *error)
{
    int32_t object;
    uint64_t bits, good;
    XPH_TRY(xph_json_get(json, 0, "loss_scale", XPH_JSON_OBJECT, &object, error));
    XPH_TRY(xph_json_get_hex(json, object, "value", &bits, error));
    XPH_TRY(xph_json_get_hex(json, object, "good", &good, error));
    memcpy(&scale->value, &bits, sizeof bits);
    scale->good = (int64_t)(good & 0xffffffffu);
    if (!(scale->value >= 1.0 && scale->value <= 0x1p24))
        return xph_fail(error, EXPHIL_E_FORMAT, "checkpoint: loss_scale.value is out of range");
    return EXPHIL_OK;
}

/* The state of the lanes goes to the net, or waits for it. */
static exphil_status install_state(checkpoint *c)
{
    exphil_trainer *trainer = c->trainer;
    if (trainer->feed.net) {
        if (c->state_bytes)
            XPH_TRY(trainer->device->backend->upload(stream_of(c), trainer->feed.state[0], c->state,
                                                     c->state_bytes));
        return xph_trainer_refresh(trainer);
    }
    xph_resumed_drop(trainer);
    trainer->resumed = (xph_resumed){c->batch, c->time, c->state, c->state_bytes};
    c->state = NULL;
    return EXPHIL_OK;
}

/* From here on only the device can fail. */
static exphil_status install(checkpoint *c, const uint64_t counters[COUNTERS], const loss_scale *scale,
                             exphil_error *error)
{
    exphil_trainer *trainer = c->trainer;
    const xph_backend *backend = trainer->device->backend;
    xph_stream *stream = stream_of(c);
    exphil_status status = EXPHIL_OK;
    for (int64_t k = 0; status >= 0 && k < c->kinds; k++)
        status = backend->upload(stream, device_arena(trainer, k), c->arena[k], trainer->arena_bytes);
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
    return xph_control_begin(trainer, scale->value, scale->good, error);
}

static exphil_status seek(const exphil_trainer *trainer, const uint64_t counters[COUNTERS],
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

static exphil_status resume_from(checkpoint *c, xph_tensors *file, const xph_json *json, exphil_error *error)
{
    uint64_t counters[COUNTERS];
    loss_scale scale = {1.0, 0};
    XPH_TRY(read_counters(json, counters, error));
    if (c->trainer->precision == EXPHIL_PRECISION_F16) XPH_TRY(read_scale(json, &scale, error));
    XPH_TRY(list_arrays(c, error));
    XPH_TRY(take_arrays(c, file, error));
    XPH_TRY(seek(c->trainer, counters, error));
    return install(c, counters, &scale, error);
}

/* Without a prefetcher the first batch tells the shape that the file does: until it comes, only what the file pays for is
 * asked for. */
static exphil_status read_shape(const exphil_trainer *trainer, const xph_tensors *file, const xph_json *json,
                                int64_t *batch, int64_t *time, exphil_error *error)
{
    const xph_model_shape *shape = xph_model_shape_of(trainer->model);
    XPH_TRY(xph_json_get_int(json, 0, "batch", 1, 4096, batch, error));
    XPH_TRY(xph_json_get_int(json, 0, "time", 1, 65536, time, error));
    if (trainer->feed.net && (trainer->feed.batch != *batch || trainer->feed.time != *time))
        return xph_fail(error, EXPHIL_E_MISMATCH,
                        "checkpoint has batches of %lld x %lld, this run of %lld x %lld", (long long)*batch,
                        (long long)*time, (long long)trainer->feed.batch, (long long)trainer->feed.time);
    if (shape->mode == EXPHIL_MODE_WINDOW && *time != shape->window)
        return xph_fail(error, EXPHIL_E_FORMAT, "checkpoint: time is %lld, the model's window is %lld",
                        (long long)*time, (long long)shape->window);
    const xph_array *state = xph_tensors_find(file, "state");
    size_t bytes = state ? state->bytes : 0, expected = state_bytes_of(trainer, *batch);
    if (bytes != expected)
        return xph_fail(error, EXPHIL_E_MISMATCH,
                        "checkpoint: state has %llu bytes, a batch of %lld has %llu",
                        (unsigned long long)bytes, (long long)*batch, (unsigned long long)expected);
    return EXPHIL_OK;
}

static exphil_status read_text(const char *path, const xph_tensors *file, const char **text,
                               exphil_error *error)
{
    const char *found = xph_tensors_metadata(file, CHECKPOINT_KEY),
               *sum = xph_tensors_metadata(file, CHECKPOINT_SUM_KEY);
    uint64_t expected;
    if (!found || !sum)
        return xph_fail(error, EXPHIL_E_FORMAT, "%s%s has no %s in its metadata", path, CHECKPOINT_SUFFIX,
                        found ? CHECKPOINT_SUM_KEY : CHECKPOINT_KEY);
    if (!xph_hex_value(sum, &expected) || !xph_hash_equal(xph_hash(found, strlen(found)), expected))
        return xph_fail(error, EXPHIL_E_FORMAT, "checkpoint: %s is damaged, its checksum differs",
                        CHECKPOINT_KEY);
    *text = found;
    return EXPHIL_OK;
}

static exphil_status resume_file(exphil_trainer *trainer, const char *path, xph_tensors *file,
                                 exphil_error *error)
{
    const char *text = NULL;
    XPH_TRY(read_text(path, file, &text, error));
    xph_json *json = NULL;
    XPH_TRY(xph_json_parse(trainer->context, text, strlen(text), CHECKPOINT_KEY, 0, &json, error));
    checkpoint c = {.trainer = trainer};
    int64_t batch = 0, time = 0;
    exphil_status status = xph_settings_check(trainer, json, error);
    if (status >= 0) status = read_shape(trainer, file, json, &batch, &time, error);
    if (status >= 0) {
        status = checkpoint_make(&c, trainer, batch, time, path, error);
        if (status >= 0) status = resume_from(&c, file, json, error);
        checkpoint_free(&c);
    }
    xph_json_free(json);
    return status;
}

static exphil_status resume(exphil_trainer *trainer, const char *path, exphil_error *error)
{
    exphil_context *context = trainer->context;
    size_t bytes = strlen(path) + sizeof CHECKPOINT_SUFFIX;
    char *name = xph_alloc(context, bytes);
    if (!name) return xph_no_memory(bytes, error);
    memcpy(name, path, strlen(path)); /* NOLINT(bugprone-not-null-terminated-result): the suffix ends it */
    memcpy(name + strlen(path), CHECKPOINT_SUFFIX, sizeof CHECKPOINT_SUFFIX);
    xph_tensors file;
    exphil_status status = xph_tensors_open(context, name, "checkpoint", &file, error);
    if (status >= 0) {
        status = resume_file(trainer, path, &file, error);
        xph_tensors_free(&file);
    }
    xph_free(context, name, bytes);
    return status;
}

exphil_status exphil_trainer_resume(exphil_trainer *trainer, const char *path, exphil_error *error)
{
    XPH_OWN_FPU;
    if (!trainer || !path)
        return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL", trainer ? "path" : "trainer");
    if (!path[0]) return xph_fail(error, EXPHIL_E_INVALID, "path is empty");
    XPH_TRY(xph_trainer_enter(trainer, error));
    exphil_status status = xph_trainer_settle(trainer, error);
    if (status >= 0) status = resume(trainer, path, error);
    xph_trainer_leave(trainer);
    return status;
}
