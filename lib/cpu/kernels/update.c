/* Clears what a refused update has spoilt. */
#include "cpu/kernels/real.h"

#include <string.h>

static int64_t one_item(const void *args)
{
    (void)args;
    return 1;
}

static void clear_run(const void *args, int64_t begin, int64_t end)
{
    const xph_clear_args *a = args;
    (void)begin, (void)end;
    if (a->control->verdict != XPH_UPDATE_DONE) memset(a->x, 0, (size_t)a->count * sizeof(real));
}

const xph_candidate XPH_LIST(clear)[] = {
    {.name = XPH_LABEL("clear"), .phase = {{one_item, clear_run}}},
    XPH_LIST_END,
};
