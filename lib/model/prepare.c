/* What a session wants of a model beside its weights, made once, so that a hot call finds it. */
#include "device/device.h"
#include "model/tensor_table.h"

exphil_status xph_model_prepare(const exphil_model *model, exphil_error *error)
{
    exphil_model *shared =
        (exphil_model *)(uintptr_t)model; /* what is kept beside the weights says nothing new */
    const void *packed = NULL;
    uint64_t hash = 0;
    if (atomic_load_explicit(&shared->prepared, memory_order_acquire)) return EXPHIL_OK;
    XPH_TRY(xph_model_packed(shared, &packed, error));
    XPH_TRY(xph_model_weights_hash(model, &hash, error));
    xph_mutex_lock(shared->packing);
    shared->hash = hash;
    atomic_store_explicit(&shared->prepared, true, memory_order_release);
    xph_mutex_unlock(shared->packing);
    return EXPHIL_OK;
}

bool xph_model_prepared(const exphil_model *model, const void **packed, uint64_t *hash)
{
    if (!atomic_load_explicit(&model->prepared, memory_order_acquire)) return false;
    *packed = model->packed;
    *hash = model->hash;
    return true;
}
