/* Numbers that ranks agree on, for their host. */
#include "train/ranks.h"

#include <exphil/ranks.h>

static exphil_status take_numbers(const double *numbers, int64_t count, struct xph_said *own,
                                  exphil_error *error)
{
    _Static_assert((int)EXPHIL_AGREE_MOST <= (int)XPH_SAID_NUMBERS, "numbers have room in a meeting");
    if (!numbers) return xph_fail(error, EXPHIL_E_INVALID, "numbers is NULL");
    if (count < 1 || count > EXPHIL_AGREE_MOST)
        return xph_fail(error, EXPHIL_E_INVALID, "count is %lld, must be 1..%d", (long long)count,
                        EXPHIL_AGREE_MOST);
    for (int64_t i = 0; i < count; i++) {
        if (!xph_finite(numbers[i]))
            return xph_fail(error, EXPHIL_E_INVALID, "numbers[%lld] is not finite", (long long)i);
        own->number[i] = numbers[i];
    }
    own->frames = (double)count;
    return EXPHIL_OK;
}

static exphil_status same_count(const exphil_trainer *trainer, exphil_error *error)
{
    const struct xph_said *said = trainer->said;
    for (int32_t r = 1; r < trainer->communicator.ranks; r++)
        if (said[r].frames != said[0].frames)
            return xph_fail(error, EXPHIL_E_MISMATCH, "rank %d agrees on %.0f numbers, rank 0 on %.0f", r,
                            said[r].frames, said[0].frames);
    return EXPHIL_OK;
}

exphil_status exphil_trainer_agree(exphil_trainer *trainer, double *numbers, int64_t count,
                                   exphil_error *error)
{
    struct xph_said own = {.call = 0.0};
    XPH_TRY(xph_trainer_enter(trainer, error));
    exphil_status status = take_numbers(numbers, count, &own, error);
    status = xph_ranks_say(trainer, XPH_CALL_AGREE, own, status, error);
    if (status >= 0 && xph_ranks_meet(trainer)) status = same_count(trainer, error);
    for (int64_t i = 0; status >= 0 && xph_ranks_meet(trainer) && i < count; i++)
        for (int32_t r = 0; r < trainer->communicator.ranks; r++)
            if (r == 0 || trainer->said[r].number[i] > numbers[i]) numbers[i] = trainer->said[r].number[i];
    xph_trainer_leave(trainer);
    return status;
}
