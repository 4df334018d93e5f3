/* The first half of an update whose loss is the host's, with states that sessions saved. */
#include "learn/learn.h"

static double real_at(const unsigned char *state, xph_type type, int64_t i)
{
    float narrow;
    double wide;
    if (type != XPH_F64) {
        memcpy(&narrow, state + (size_t)i * sizeof narrow, sizeof narrow);
        return (double)narrow;
    }
    memcpy(&wide, state + (size_t)i * sizeof wide, sizeof wide);
    return wide;
}

static exphil_status gather_states(const exphil_trainer *trainer, int64_t lanes, const void *blocks,
                                   size_t size_bytes, unsigned char *to, exphil_error *error)
{
    const xph_model_shape *shape = xph_model_shape_of(trainer->model);
    size_t each = size_bytes / (size_t)lanes, bytes = (size_t)shape->state * shape->real_bytes;
    for (int64_t b = 0; b < lanes; b++) {
        const void *state = NULL;
        exphil_error why = EXPHIL_ERROR_INIT;
        exphil_status status = xph_play_block_state(
            trainer->model, (const unsigned char *)blocks + (size_t)b * each, each, &state, &why);
        if (status < 0) return xph_fail(error, status, "states[%lld]: %s", (long long)b, why.message);
        memcpy(to + (size_t)b * bytes, state, bytes);
        int64_t bad = -1;
        for (int64_t i = 0; bad < 0 && i < shape->state; i++)
            if (!xph_finite(real_at(to + (size_t)b * bytes, shape->type, i))) bad = i;
        if (bad >= 0)
            return xph_fail(error, EXPHIL_E_NUMERIC, "states[%lld] is not finite at %lld", (long long)b,
                            (long long)bad);
    }
    return EXPHIL_OK;
}

static exphil_status forward_from(exphil_trainer *trainer, const exphil_batch *batch, const void *states,
                                  size_t size_bytes, exphil_forward *forward, exphil_error *error)
{
    const xph_model_shape *shape = xph_model_shape_of(trainer->model);
    if (shape->mode == EXPHIL_MODE_WINDOW)
        return xph_fail(error, EXPHIL_E_UNSUPPORTED, "states: windows begin from nothing");
    if (batch->batch < 1 || batch->batch > 4096 || size_bytes % (size_t)batch->batch)
        return xph_fail(error, EXPHIL_E_INVALID, "states: %zu bytes are not those of %lld lanes", size_bytes,
                        (long long)batch->batch);
    size_t bytes = (size_t)(batch->batch * shape->state) * shape->real_bytes;
    unsigned char *gathered = xph_alloc(trainer->context, bytes ? bytes : 1);
    if (!gathered) return xph_no_memory(bytes, error);
    exphil_status status = gather_states(trainer, batch->batch, states, size_bytes, gathered, error);
    if (status >= 0) status = xph_trainer_forward(trainer, batch, gathered, forward, error);
    xph_free(trainer->context, gathered, bytes ? bytes : 1);
    return status;
}

exphil_status exphil_trainer_forward(exphil_trainer *trainer, const exphil_batch *batch, const void *states,
                                     size_t size_bytes, exphil_forward *forward, exphil_error *error)
{
    XPH_OWN_FPU;
    exphil_batch known = EXPHIL_BATCH_INIT;
    if (!trainer || !batch || !forward)
        return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL",
                        !trainer ? "trainer"
                        : !batch ? "batch"
                                 : "forward");
    XPH_TRY(xph_context_check(trainer->context, error));
    if (!states) return xph_trainer_forward(trainer, batch, NULL, forward, error);
    XPH_TRY(XPH_TAKE(exphil_batch, &known, batch, error));
    return forward_from(trainer, &known, states, size_bytes, forward, error);
}
