/* The calls that save and resume a run: of one rank, or of all together. */
#include "train/checkpoint.h"
#include "train/ranks.h"

/* Of ranks that meet the first alone has a file. */
static exphil_status check_path(const exphil_trainer *trainer, const char *path, exphil_error *error)
{
    if (xph_ranks_meet(trainer) && trainer->communicator.rank) return EXPHIL_OK;
    if (!path) return xph_fail(error, EXPHIL_E_INVALID, "path is NULL");
    return path[0] ? EXPHIL_OK : xph_fail(error, EXPHIL_E_INVALID, "path is empty");
}

static exphil_status save(exphil_trainer *trainer, const char *path, const xph_beside *beside,
                          exphil_error *error)
{
    xph_checkpoint c;
    int64_t batch, time;
    XPH_TRY(xph_checkpoint_shape(trainer, &batch, &time, error));
    exphil_status status = xph_checkpoint_make(&c, trainer, batch, time, path, beside, error);
    if (status >= 0) status = xph_trainer_settle(trainer, error);
    if (status >= 0) status = xph_checkpoint_list(&c, error);
    if (status >= 0) status = xph_checkpoint_fetch(&c, error);
    if (status >= 0) status = xph_checkpoint_write(&c, path, error);
    xph_checkpoint_free(&c);
    return status;
}

exphil_status xph_trainer_save(const exphil_trainer *trainer, const char *path, const xph_beside *beside,
                               exphil_error *error)
{
    if (!trainer) return xph_fail(error, EXPHIL_E_INVALID, "trainer is NULL");
    XPH_TRY(xph_trainer_enter(trainer, error));
    exphil_trainer *own = (exphil_trainer *)(uintptr_t)trainer;
    exphil_status status = check_path(trainer, path, error);
    if (xph_ranks_meet(own))
        status = xph_ranks_save(own, path, status, error);
    else if (status >= 0)
        status = save(own, path, beside, error);
    xph_trainer_leave(trainer);
    return status;
}

exphil_status exphil_trainer_save(const exphil_trainer *trainer, const char *path, exphil_error *error)
{
    XPH_OWN_FPU;
    return xph_trainer_save(trainer, path, NULL, error);
}

static exphil_status resume(exphil_trainer *trainer, const char *path, xph_beside *beside,
                            exphil_error *error)
{
    xph_stored_run run;
    exphil_status status = xph_run_read(&run, trainer, path, trainer->feed.batch, beside, error);
    if (status >= 0) status = xph_run_install(&run, error);
    xph_run_free(&run);
    return status;
}

exphil_status xph_trainer_resume(exphil_trainer *trainer, const char *path, xph_beside *beside,
                                 exphil_error *error)
{
    if (!trainer) return xph_fail(error, EXPHIL_E_INVALID, "trainer is NULL");
    XPH_TRY(xph_trainer_enter(trainer, error));
    exphil_status status = check_path(trainer, path, error);
    if (status >= 0) status = xph_trainer_settle(trainer, error);
    if (xph_ranks_meet(trainer))
        status = xph_ranks_resume(trainer, path, status, error);
    else if (status >= 0)
        status = resume(trainer, path, beside, error);
    xph_trainer_leave(trainer);
    return status;
}

exphil_status exphil_trainer_resume(exphil_trainer *trainer, const char *path, exphil_error *error)
{
    XPH_OWN_FPU;
    return xph_trainer_resume(trainer, path, NULL, error);
}
