/* Corpora of games under `exphil bench data`. */
#ifndef EXPHIL_BENCH_GAMES_H
#define EXPHIL_BENCH_GAMES_H

#include "bench.h"

/* Rows made of games, by one worker and by two, of few games and of many; how soon the first batch is there. */
bool bench_games(bench_report *report, const bench_options *options, exphil_context *context);

#endif
