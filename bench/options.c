/* Which rows of a subject are measured, and how thoroughly. */
#include "bench.h"
#include "system.h"

#include <string.h>

bool bench_wanted(const bench_options *options, const char *subject, const char *what)
{
    for (int i = 0; i < options->filters; i++)
        if (strstr(subject, options->filter[i]) || strstr(what, options->filter[i])) return true;
    return options->filters == 0;
}

bench_effort bench_effort_of(const bench_options *options)
{
    double scale = options->effort > 0 ? options->effort : 1;
    bench_effort effort = {.rounds = 7, .round_ns = 20e6 * scale, .most_ns = 3e9 * scale};
    if (options->quick) effort = (bench_effort){.rounds = 1, .round_ns = 1, .sample_ns = 1};
    return effort;
}

const char *bench_folder(const bench_options *options)
{
    if (options->folder) return options->folder;
    return system_there("/tmp") ? "/tmp" : system_temporary(0);
}
