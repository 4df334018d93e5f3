/* Which lanes of a joint batch a rank fills. */
#include "base/base.h"

#include <exphil/ranks.h>

#define BATCH_MOST 4096 /* exphil_sampling.batch */

static exphil_status check_lanes(int64_t batch, int32_t rank, int32_t ranks, exphil_error *error)
{
    if (batch < 1 || batch > BATCH_MOST)
        return xph_fail(error, EXPHIL_E_INVALID, "batch is %lld, must be 1..%d", (long long)batch,
                        BATCH_MOST);
    if (ranks < 1 || ranks > batch)
        return xph_fail(error, EXPHIL_E_INVALID, "ranks is %d, must be 1..%lld: each has a lane of the batch",
                        (int)ranks, (long long)batch);
    if (rank < 0 || rank >= ranks)
        return xph_fail(error, EXPHIL_E_INVALID, "rank is %d, must be 0..%d", (int)rank, (int)ranks - 1);
    return EXPHIL_OK;
}

exphil_status exphil_rank_lanes(int64_t batch, int32_t rank, int32_t ranks, int64_t *first_lane,
                                int64_t *lane_count, exphil_error *error)
{
    if (!first_lane || !lane_count)
        return xph_fail(error, EXPHIL_E_INVALID, "%s is NULL", first_lane ? "lane_count" : "first_lane");
    XPH_TRY(check_lanes(batch, rank, ranks, error));
    *first_lane = rank * batch / ranks;
    *lane_count = (rank + 1) * batch / ranks - *first_lane;
    return EXPHIL_OK;
}
