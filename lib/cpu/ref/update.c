/* The parts of an update that are no arithmetic over arenas: what follows from the norm, and zeros for what a refused
 * update has spoilt. */
#include "cpu/ref/lanes.h"
#include "settle.h"

#include <string.h>

static int64_t one_item(const void *args)
{
    (void)args;
    return 1;
}

static void settle_run(const void *args, int64_t begin, int64_t end)
{
    (void)begin, (void)end;
    xph_settle(args);
}

static void clear_run(const void *args, int64_t begin, int64_t end)
{
    const xph_clear_args *a = args;
    (void)begin, (void)end;
    if (a->control->verdict != XPH_UPDATE_DONE) memset(a->x, 0, (size_t)a->count * sizeof(real));
}

const xph_candidate XPH_LIST(settle)[] = {
    {.name = XPH_LABEL("settle"), .phase = {{one_item, settle_run}}},
    XPH_LIST_END,
};
const xph_candidate XPH_LIST(clear)[] = {
    {.name = XPH_LABEL("clear"), .phase = {{one_item, clear_run}}},
    XPH_LIST_END,
};
