/* Rewards of a dataset, as a host gives them. */
#include "data/row_returns.h"

#include <exphil/learn.h>

static exphil_status check(int32_t port, const float *rewards, int64_t count, int32_t over, double half_life,
                           exphil_error *error)
{
    if (port < 0 || port > 4) return xph_fail(error, EXPHIL_E_INVALID, "port is %d, must be 0..4", (int)port);
    if (!rewards) return xph_fail(error, EXPHIL_E_INVALID, "rewards is NULL");
    if (count < 1 || count > INT32_MAX)
        return xph_fail(error, EXPHIL_E_INVALID, "count is %lld, must be 1..%d", (long long)count, INT32_MAX);
    if (over != 0 && over != 1)
        return xph_fail(error, EXPHIL_E_INVALID, "over is %d, must be 0 or 1", (int)over);
    if (!(half_life >= 0.01 && half_life <= 1e9))
        return xph_fail(error, EXPHIL_E_INVALID, "half_life_frames is %g, must be 0.01..1e9", half_life);
    int64_t bad = xph_find_not_finite(rewards, count);
    return bad < 0 ? EXPHIL_OK
                   : xph_fail(error, EXPHIL_E_NUMERIC, "rewards[%lld] is not finite", (long long)bad);
}

exphil_status exphil_dataset_rewards_set(exphil_dataset *dataset, uint64_t game, int32_t port,
                                         int32_t first_frame, const float *rewards, int64_t count,
                                         int32_t over, double half_life_frames, exphil_error *error)
{
    XPH_OWN_FPU;
    XPH_TRY(xph_dataset_enter(dataset, error));
    exphil_status status = check(port, rewards, count, over, half_life_frames, error);
    if (status >= 0)
        status = xph_row_returns_set(dataset->context, &dataset->returns, game, port, first_frame, rewards,
                                     count, over, half_life_frames, error);
    xph_dataset_leave(dataset);
    return status;
}
