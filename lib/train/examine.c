/* Examination: the walk of an evaluation, with the host looking on. */
#include "train/walk.h"

#include <exphil/examine.h>

/* Between the walk and the host. */
typedef struct showing {
    const exphil_examination *how;
    const exphil_model *model;
    const xph_sampler *sampler;
    int64_t heads;
} showing;

static exphil_status show(void *arg, const xph_seen *seen, exphil_error *error)
{
    const showing *s = arg;
    double log_probability[EXPHIL_HEADS_MAX];
    int64_t first, delay = xph_model_shape_of(s->model)->delay;
    int64_t episode = xph_dataset_episode_of(xph_sampler_dataset(s->sampler), seen->frame, &first);
    if (xph_model_told(s->model)->delays) delay = xph_sampler_shown(s->sampler, 0, episode).delay;
    for (int64_t h = 0; h < s->heads; h++) log_probability[h] = -seen->nll[h];
    const exphil_examined frame = {.struct_size = sizeof frame,
                                   .frame = seen->frame,
                                   .episode = episode,
                                   .row = seen->frame - first,
                                   .floats = seen->floats,
                                   .ids = seen->ids,
                                   .recorded = seen->target,
                                   .before = seen->before,
                                   .likely = seen->likely,
                                   .log_probability = log_probability,
                                   .logits = seen->logits,
                                   .delay_frames = (int32_t)delay};
    if (s->how->see(s->how->user, &frame) == 0) return EXPHIL_OK;
    return xph_fail(error, EXPHIL_E_CANCELLED, "examination cancelled by the host");
}

static exphil_status examine(exphil_model *model, const exphil_dataset *dataset,
                             const exphil_examination *how, const xph_fixed *fixed, exphil_error *error)
{
    xph_losses losses;
    xph_walk walk;
    xph_alone_sums sums;
    double loss_sums[EXPHIL_HEADS_MAX] = {0};
    const void *packed = NULL, *weights = xph_model_weights(model);
    XPH_TRY(xph_losses_take(xph_model_spec(model), NULL, &losses, error));
    XPH_TRY(xph_model_packed(model, &packed, error));
    exphil_status status = xph_walk_make(&walk, model, dataset, &losses, how->batch, fixed, error);
    showing s = {how, model, walk.sampler, xph_model_shape_of(model)->heads};
    if (status >= 0 && how->alone_most_frames && xph_model_shape_of(model)->slots)
        status = xph_walk_alone(model, weights, packed, walk.sampler, how->alone_most_frames, show, &s, &sums,
                                error);
    else if (status >= 0)
        status = xph_walk_run(&walk, weights, packed, &losses, loss_sums, show, &s, error);
    xph_walk_free(&walk);
    return status;
}

exphil_status exphil_examine(const exphil_model *model, const exphil_dataset *dataset,
                             const exphil_examination *how, exphil_error *error)
{
    XPH_OWN_FPU;
    exphil_examination known = EXPHIL_EXAMINATION_INIT;
    xph_fixed fixed;
    if (!model || !dataset || !how)
        return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL",
                        !model     ? "model"
                        : !dataset ? "dataset"
                                   : "how");
    XPH_TRY(xph_context_check(xph_model_context(model), error));
    XPH_TRY(XPH_TAKE(exphil_examination, &known, how, error));
    if (!known.see) return xph_fail(error, EXPHIL_E_INVALID, "exphil_examination.see is NULL");
    if (known.alone_most_frames < 0)
        return xph_fail(error, EXPHIL_E_INVALID,
                        "exphil_examination.alone_most_frames is %lld, must be 0 or more",
                        (long long)known.alone_most_frames);
    XPH_TRY(
        xph_fixed_take(model, known.conditions, known.condition_count, known.delay_frames, &fixed, error));
    exphil_model *retained = xph_model_retain(model);
    exphil_status status = examine(retained, dataset, &known, &fixed, error);
    xph_model_release(retained);
    return status;
}
