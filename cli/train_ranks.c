/* What the ranks of a run decide together: each acts by its own clock and signals no more, but by what any rank was told. */
#include "ranks.h"
#include "stop.h"
#include "train_run.h"

#include <inttypes.h>
#include <stdio.h>

bool train_first(const train_state *r)
{
    return ranks_first(r->options->ranks);
}

bool train_stopping(const train_state *r)
{
    return r->options->ranks ? r->stopping : stop_asked();
}

bool train_apart(const train_state *r, const exphil_error *error)
{
    bool apart = error->status == EXPHIL_E_DEVICE || error->status == EXPHIL_E_MISMATCH;
    if (apart) ranks_together(r->options->ranks, false);
    return apart;
}

bool train_agree(train_state *r, bool fine, bool *any)
{
    enum { STOP, FAILED, ANY, NUMBERS };
    int32_t rank = 0;
    double number[NUMBERS];
    exphil_error error = EXPHIL_ERROR_INIT;
    if (!r->options->ranks) return fine;
    exphil_status status;
    do {
        rank = ranks_rank(r->options->ranks);
        number[STOP] = stop_number();
        number[FAILED] = fine ? 0.0 : (double)rank + 1.0;
        number[ANY] = any && *any ? 1.0 : 0.0;
        status = exphil_trainer_agree(r->trainer, number, NUMBERS, &error);
    } while (status < 0 && train_mend(r, &error));
    if (status < 0) {
        (void)train_apart(r, &error);
        return complain(ranks_name(r->options->ranks), &error) == 0;
    }
    stop_ask((int)number[STOP]);
    r->stopping = number[STOP] > 0.0;
    if (any) *any = number[ANY] > 0.0;
    if (number[FAILED] > 0.0 && fine && rank == 0 && !r->stopping)
        fprintf(stderr, "exphil: %s: rank %.0f cannot go on, and so none can\n",
                ranks_name(r->options->ranks), number[FAILED] - 1.0);
    return number[FAILED] <= 0.0;
}
