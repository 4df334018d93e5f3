/* The machine as this process sees it, under WASI: one core; memory is not known. */
#include "base/base.h"

int32_t xph_cpu_count(void)
{
    return 1;
}

int64_t xph_memory_total(void)
{
    return 0;
}
