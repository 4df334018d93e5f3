/* Tensors of a model to and from other libraries in the same process (DLPack). Out: no copy, the tensor
 * holds a reference to the model. In: a copy, with any strides, from memory that the CPU can read. */
#include "model/dlpack_abi.h"
#include "model/tensors.h"

#include <inttypes.h>

_Static_assert(sizeof(void *) != 8 || offsetof(xph_dlpack_tensor, shape) == 24, "layout of DLTensor");
_Static_assert(sizeof(void *) != 8 || sizeof(xph_dlpack_tensor) == 48, "layout of DLTensor");
_Static_assert(sizeof(void *) != 8 || sizeof(struct DLManagedTensor) == 64, "layout of DLManagedTensor");
_Static_assert(sizeof(void *) != 8 || offsetof(struct DLManagedTensorVersioned, tensor) == 32,
               "layout of DLManagedTensorVersioned");

/* ---- out ----------------------------------------------------------------------------------------------- */

/* One piece of memory; the managed struct points back to it. */
typedef struct exported {
    union {
        struct DLManagedTensor plain;
        struct DLManagedTensorVersioned versioned;
    } managed;
    exphil_model *model;
    int64_t shape[4], strides[4];
} exported;

static void end_export(exported *block)
{
    exphil_model *model = block->model;
    xph_free(model->context, block, sizeof *block);
    xph_model_release(model);
}

static void delete_plain(struct DLManagedTensor *self)
{
    if (self) end_export(self->manager);
}

static void delete_versioned(struct DLManagedTensorVersioned *self)
{
    if (self) end_export(self->manager);
}

static exphil_status fill_tensor(const exphil_model *model, const xph_param *param, exported *block,
                                 xph_dlpack_tensor *tensor, exphil_error *error)
{
    exphil_device_info device = EXPHIL_DEVICE_INFO_INIT;
    XPH_TRY(exphil_context_device(model->context, &device, error));
    bool cuda = strncmp(device.id, "cuda", 4) == 0;
    size_t skip = (size_t)param->offset * model->shape.real_bytes;
    *tensor = (xph_dlpack_tensor){.data = (char *)(uintptr_t)model->weights + skip,
                                  .device_type = cuda ? XPH_DLPACK_CUDA : XPH_DLPACK_CPU,
                                  .device_id = cuda ? device.index : 0,
                                  .rank = param->rank,
                                  .type_code = XPH_DLPACK_FLOAT,
                                  .type_bits = (uint8_t)(8 * model->shape.real_bytes),
                                  .type_lanes = 1,
                                  .shape = block->shape,
                                  .strides = block->strides};
    int64_t stride = 1;
    for (int32_t d = param->rank - 1; d >= 0; d--) {
        block->shape[d] = param->dim[d];
        block->strides[d] = stride;
        stride *= param->dim[d];
    }
    return EXPHIL_OK;
}

/* Memory for the export of one tensor; what is inside the managed struct is the caller's to fill. */
static exphil_status begin_export(const exphil_model *model, exported **block, exphil_error *error)
{
    exported *made = xph_calloc(model->context, 1, sizeof *made);
    if (!made) return xph_no_memory(sizeof *made, error);
    made->model = xph_model_retain(model);
    *block = made;
    return EXPHIL_OK;
}

exphil_status exphil_model_tensor_to_dlpack(const exphil_model *model, const char *name,
                                            struct DLManagedTensor **tensor, exphil_error *error)
{
    const xph_param *param = NULL;
    exported *block = NULL;
    XPH_TRY(xph_named_param(model, name, &param, error));
    if (!tensor) return xph_fail(error, EXPHIL_E_INVALID, "tensor is NULL");
    XPH_TRY(begin_export(model, &block, error));
    exphil_status status = fill_tensor(model, param, block, &block->managed.plain.tensor, error);
    if (status < 0) {
        end_export(block);
        return status;
    }
    block->managed.plain.manager = block;
    block->managed.plain.deleter = delete_plain;
    *tensor = &block->managed.plain;
    return EXPHIL_OK;
}

exphil_status exphil_model_tensor_to_dlpack_versioned(const exphil_model *model, const char *name,
                                                      struct DLManagedTensorVersioned **tensor,
                                                      exphil_error *error)
{
    const xph_param *param = NULL;
    exported *block = NULL;
    XPH_TRY(xph_named_param(model, name, &param, error));
    if (!tensor) return xph_fail(error, EXPHIL_E_INVALID, "tensor is NULL");
    XPH_TRY(begin_export(model, &block, error));
    struct DLManagedTensorVersioned *managed = &block->managed.versioned;
    exphil_status status = fill_tensor(model, param, block, &managed->tensor, error);
    if (status < 0) {
        end_export(block);
        return status;
    }
    managed->major = XPH_DLPACK_MAJOR;
    managed->minor = XPH_DLPACK_MINOR;
    managed->manager = block;
    managed->deleter = delete_versioned;
    managed->flags = XPH_DLPACK_READ_ONLY;
    *tensor = managed;
    return EXPHIL_OK;
}

/* ---- in ------------------------------------------------------------------------------------------------ */

static exphil_status check_shape(const xph_param *param, const xph_dlpack_tensor *from, exphil_error *error)
{
    if (from->rank != param->rank) {
        return xph_fail(error, EXPHIL_E_INVALID, "tensor has %d dimensions, \"%s\" has %d", (int)from->rank,
                        param->name, (int)param->rank);
    }
    if (from->rank && !from->shape) return xph_fail(error, EXPHIL_E_INVALID, "tensor.shape is NULL");
    for (int32_t d = 0; d < from->rank; d++) {
        if (from->shape[d] == param->dim[d]) continue;
        return xph_fail(error, EXPHIL_E_INVALID,
                        "tensor.shape[%d] is %" PRId64 ", that of \"%s\" is %" PRId64, (int)d, from->shape[d],
                        param->name, param->dim[d]);
    }
    return EXPHIL_OK;
}

static exphil_status check_source(const xph_dlpack_tensor *from, exphil_error *error)
{
    if (from->device_type != XPH_DLPACK_CPU && from->device_type != XPH_DLPACK_CUDA_HOST) {
        return xph_fail(error, EXPHIL_E_UNSUPPORTED,
                        "tensor is on device type %d; only memory of the CPU can be read",
                        (int)from->device_type);
    }
    bool real = from->type_code == XPH_DLPACK_FLOAT && from->type_lanes == 1 &&
                (from->type_bits == 32 || from->type_bits == 64);
    if (!real) {
        return xph_fail(error, EXPHIL_E_UNSUPPORTED,
                        "tensor has type code %u, %u bits, %u lanes; only float32 and float64 can be read",
                        (unsigned)from->type_code, (unsigned)from->type_bits, (unsigned)from->type_lanes);
    }
    return from->data ? EXPHIL_OK : xph_fail(error, EXPHIL_E_INVALID, "tensor.data is NULL");
}

/* Address of element i in row-major order. Strides may be zero or negative. */
static const char *element(const xph_dlpack_tensor *from, int64_t i)
{
    int64_t at = 0, dense = 1;
    for (int32_t d = from->rank - 1; d >= 0; d--) {
        at += i % from->shape[d] * (from->strides ? from->strides[d] : dense);
        dense *= from->shape[d];
        i /= from->shape[d];
    }
    return (const char *)from->data + from->offset_bytes + at * (from->type_bits / 8);
}

/* Double to float rounds; what is too large for a float becomes infinite and is refused by xph_param_set. */
static void gather(const xph_dlpack_tensor *from, xph_type type, int64_t count, void *to)
{
    for (int64_t i = 0; i < count; i++) {
        const char *source = element(from, i);
        double value;
        float single;
        if (from->type_bits == 64) {
            memcpy(&value, source, sizeof value);
        } else {
            memcpy(&single, source, sizeof single);
            value = (double)single;
        }
        if (type == XPH_F64)
            ((double *)to)[i] = value;
        else
            ((float *)to)[i] = (float)value;
    }
}

exphil_status exphil_model_tensor_from_dlpack(exphil_model *model, const char *name,
                                              const struct DLManagedTensor *tensor, exphil_error *error)
{
    XPH_OWN_FPU;
    const xph_param *param = NULL;
    XPH_TRY(xph_named_param(model, name, &param, error));
    if (!tensor) return xph_fail(error, EXPHIL_E_INVALID, "tensor is NULL");
    XPH_TRY(check_source(&tensor->tensor, error));
    XPH_TRY(check_shape(param, &tensor->tensor, error));
    size_t bytes = (size_t)param->count * model->shape.real_bytes;
    void *host = xph_alloc(model->context, bytes);
    if (!host) return xph_no_memory(bytes, error);
    gather(&tensor->tensor, model->shape.type, param->count, host);
    exphil_status status = xph_param_set(model, param, host, error);
    xph_free(model->context, host, bytes);
    return status;
}
