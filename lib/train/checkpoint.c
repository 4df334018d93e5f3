/* Host copies of what a run is made of, and the names under which a checkpoint has them. */
#include "train/checkpoint.h"

const char *const xph_checkpoint_counter[XPH_CHECKPOINT_COUNTERS] = {
    "updates", "frames", "skipped", "epoch", "index", "base_updates", "base_frames"};

static const char *const kind_name[XPH_CHECKPOINT_KINDS] = {"weights", "m", "v", "average"};

void *xph_checkpoint_arena(const exphil_trainer *trainer, int64_t kind)
{
    const exphil_optimizer *optimizer = trainer->optimizer;
    void *const arena[XPH_CHECKPOINT_KINDS] = {trainer->weights, optimizer->m, optimizer->v,
                                               optimizer->average};
    return arena[kind];
}

void xph_checkpoint_free(xph_checkpoint *c)
{
    exphil_context *context = c->trainer->context;
    for (int k = 0; k < XPH_CHECKPOINT_KINDS; k++) xph_free(context, c->arena[k], c->trainer->arena_bytes);
    xph_free(context, c->state, c->state_bytes);
    xph_free(context, c->arrays, c->arrays_bytes);
    xph_free(context, c->names, c->names_bytes);
    xph_free(context, c->path, c->path_bytes);
    if (c->stream) c->trainer->device->backend->stream_destroy(c->stream);
}

xph_stream *xph_checkpoint_stream(const xph_checkpoint *c)
{
    return c->stream ? c->stream : xph_net_stream(c->trainer->feed.net);
}

size_t xph_checkpoint_state_bytes(const exphil_trainer *trainer, int64_t batch)
{
    const xph_model_shape *shape = xph_model_shape_of(trainer->model);
    return (size_t)batch * (size_t)shape->state * shape->real_bytes;
}

/* Sizes of everything. */
static void size_copies(xph_checkpoint *c)
{
    c->kinds = c->trainer->optimizer->average ? 4 : 3;
    c->state_bytes = xph_checkpoint_state_bytes(c->trainer, c->batch);
    c->count =
        xph_model_param_count(c->trainer->model) * c->kinds + (c->state_bytes ? 1 : 0) + (c->beside ? 1 : 0);
    c->arrays_bytes = (size_t)c->count * sizeof *c->arrays;
    c->names_bytes = (size_t)c->count * sizeof *c->names;
}

exphil_status xph_checkpoint_make(xph_checkpoint *c, exphil_trainer *trainer, int64_t batch, int64_t time,
                                  const char *path, const xph_beside *beside, exphil_error *error)
{
    exphil_context *context = trainer->context;
    *c = (xph_checkpoint){.trainer = trainer, .batch = batch, .time = time, .lanes = batch, .beside = beside};
    size_copies(c);
    c->path_bytes = strlen(path) + sizeof XPH_CHECKPOINT_SUFFIX;
    for (int64_t k = 0; k < c->kinds; k++) c->arena[k] = xph_alloc(context, trainer->arena_bytes);
    if (c->state_bytes) c->state = xph_alloc(context, c->state_bytes);
    c->arrays = xph_calloc(context, 1, c->arrays_bytes);
    c->names = xph_calloc(context, 1, c->names_bytes);
    c->path = xph_alloc(context, c->path_bytes);
    if (!c->arena[0] || !c->arena[1] || !c->arena[2] || (c->kinds == 4 && !c->arena[3]) ||
        (c->state_bytes && !c->state) || !c->arrays || !c->names || !c->path)
        return xph_no_memory(trainer->arena_bytes, error);
    memcpy(c->path, path, strlen(path));
    memcpy(c->path + strlen(path), XPH_CHECKPOINT_SUFFIX, sizeof XPH_CHECKPOINT_SUFFIX);
    exphil_status status = EXPHIL_OK;
    if (!trainer->feed.net) status = trainer->device->backend->stream_create(trainer->device, 0, &c->stream);
    return status < 0 ? xph_fail(error, status, "checkpoint: no stream on the device") : EXPHIL_OK;
}

/* Names, shapes and places of all arrays: "m.blocks.0.norm.weight" lies where its tensor lies in the
 * arena. */
exphil_status xph_checkpoint_list(xph_checkpoint *c, exphil_error *error)
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
            const unsigned char *arena = (const unsigned char *)c->arena[k];
            c->arrays[at] =
                (xph_array){c->names[at],
                            dtype,
                            param->rank,
                            {param->dim[0], param->dim[1], param->dim[2], param->dim[3]},
                            arena ? arena + (size_t)param->offset * element : NULL, /* of a size */
                            (size_t)param->count * element,
                            0};
        }
    if (c->beside)
        c->arrays[c->count - 1] =
            (xph_array){XPH_CHECKPOINT_BESIDE, XPH_DTYPE_U8,     1, {(int64_t)c->beside->bytes, 1, 1, 1},
                        c->beside->data,       c->beside->bytes, 0};
    if (c->state_bytes)
        c->arrays[at] = (xph_array){
            "state",  dtype,          2, {c->batch, xph_model_shape_of(trainer->model)->state, 1, 1},
            c->state, c->state_bytes, 0};
    return EXPHIL_OK;
}

/* ---- how much it takes --------------------------------------------------------------------------------- */

static exphil_status size_files(xph_checkpoint *c, xph_checkpoint_sizes *sizes, exphil_error *error)
{
    exphil_context *context = c->trainer->context;
    size_t header, memory, weights = 0;
    int64_t tensors = xph_model_param_count(c->trainer->model);
    XPH_TRY(xph_checkpoint_list(c, error));
    for (int64_t i = 0; i < tensors; i++) weights += c->arrays[i].bytes;
    XPH_TRY(xph_tensors_write_bytes(context, c->arrays, tensors, &header, &memory, error));
    sizes->weights_file = header + weights;
    XPH_TRY(xph_tensors_write_bytes(context, c->arrays, c->count, &header, &memory, error));
    sizes->file = header + (size_t)c->kinds * weights + c->state_bytes;
    sizes->copies = (size_t)c->kinds * c->trainer->arena_bytes + c->state_bytes + c->arrays_bytes +
                    c->names_bytes + memory;
    return EXPHIL_OK;
}

exphil_status xph_checkpoint_measure(exphil_trainer *trainer, int64_t batch, xph_checkpoint_sizes *sizes,
                                     exphil_error *error)
{
    exphil_context *context = trainer->context;
    xph_checkpoint c = {.trainer = trainer, .batch = batch};
    size_copies(&c);
    c.arrays = xph_calloc(context, 1, c.arrays_bytes);
    c.names = xph_calloc(context, 1, c.names_bytes);
    exphil_status status =
        c.arrays && c.names ? size_files(&c, sizes, error) : xph_no_memory(c.names_bytes, error);
    xph_checkpoint_free(&c);
    return status;
}
