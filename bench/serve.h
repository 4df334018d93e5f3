/* `exphil bench serve`: one thing to time, told by a driver when to run, so that peers of other makers can be timed in turn
 * with it. */
#ifndef EXPHIL_BENCH_SERVE_H
#define EXPHIL_BENCH_SERVE_H

#include "bench.h"

/* words: what to serve
 *   cell lstm|gru|mlp IN HIDDEN TYPE        a bare cell
 *   decision BLOCKS HIDDEN TYPE             a whole policy on frames of a game
 *   update NAME THREADS                     an update of `exphil bench train`
 *   adam COUNT                              AdamW over so many parameters
 *   norm ROWS WIDTH                         LayerNorm + SiLU
 * Puts weights, inputs and what must come out into folder (case.json names the files), prints "ready", and then answers
 * each line on stdin:
 *   round CALLS PAUSE_NS    {"ns": [...]}: one call each, after one that does not count
 *   run CALLS               {"ran": CALLS}: not timed, and not once more
 *   quit                    ends
 * Returns the exit status. */
int bench_serve(const bench_options *options, int count, char **words);

#endif
